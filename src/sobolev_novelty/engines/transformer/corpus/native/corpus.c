/* Batches of formulas with their data: generator, inputs, additive terms, novelty filter, hold-out by skeleton.
 *
 * One translation unit with no dependency but the C library; called through ctypes, which releases the interpreter's lock.
 * Build: see ../build.py.
 */
#include "physics.h"
#include "inputs.h"
#include "novelty.h"
#include "reader.h"
#include "skeleton.h"

#if defined(_WIN32)
#define PUBLIC __declspec(dllexport)
#else
#define PUBLIC __attribute__((visibility("default")))
#endif

typedef struct {
    Formula formula;
    int dim, n_points, n_terms;
    double y[N_POINTS], min_nu;
    Units units;                       /* of the inputs; PHYSICS only */
} Sample;

static int float_length(const Formula *f) {
    int n = f->length;
    for (int i = 0; i < f->length; i++) n += 2 * (f->token[i] == CONSTANT);
    return n;
}
/* Values of the formula at its points: finite, bounded, not constant. The first points stop most invalid formulas. */
static Verdict target(const Settings *s, Workspace *w, Sample *out) {
    const Formula *f = &out->formula;
    int n = out->n_points;
    for (int part = 0; part < 2; part++) {
        int count = part ? n : 16;
        const Jet *top = run(w->stack, f->token, f->constant, 0, f->length, w->X, count, 0, s->max_angle);
        if (!top) return TOO_LONG;
        for (int i = 0; i < count; i++) if (!(fabs(out->y[i] = top->row[0][i]) < s->max_target)) return NOT_FINITE;
    }
    double mean = 0, spread = deviation(out->y, n);
    for (int i = 0; i < n; i++) mean += out->y[i] / n;
    return spread > 1e-4 * fabs(mean) && spread > 1e-5 ? ACCEPTED : FLAT;
}
static void copy_from_file(const Settings *s, int64_t number, Formula *f) {
    int64_t start = s->file_starts[number];
    f->length = (int)(s->file_starts[number + 1] - start);
    f->is_full = 0;
    memcpy(f->token, s->file_tokens + start, (size_t)f->length);
    memcpy(f->constant, s->file_constants + start, sizeof(double) * (size_t)f->length);
}
static Verdict draw(const Settings *s, Workspace *w, Random *r, int dim, int n_unary, int64_t number, Sample *out) {
    Formula *f = &out->formula;
    if (s->law == E2ESR) generate_e2esr(r, dim, n_unary, f);
    else if (s->law == PHYSICS) generate_physics(r, dim, f, &out->units);
    else if (s->law == FROM_FILE) copy_from_file(s, number, f);
    else generate_lean(r, dim, f);
    if (f->is_full || f->length < 2 || f->length > s->max_nodes || float_length(f) > s->max_float_tokens) return TOO_LONG;
    int fewest = s->law != LEAN && 5 * dim > s->min_points ? 5 * dim : s->min_points;
    out->n_points = uniform(r) < s->full_share ? N_POINTS : fewest + below(r, N_POINTS - fewest + 1);
    sample_inputs(r, pick(r, s->input_weights, N_INPUT_KINDS), dim, out->n_points, w->X);
    return target(s, w, out);
}
static int is_held_out(const Settings *s, uint64_t hash) {
    int64_t low = 0, high = s->n_held_out;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (s->held_out[middle] < hash) low = middle + 1;
        else high = middle;
    }
    return low < s->n_held_out && s->held_out[low] == hash;
}
/* Candidate number `index`. E2ESR fixes dimension and number of unaries and draws until the values are valid, so that
 * rejection does not change their law. counts[v] counts the attempts that ended with verdict v. */
static Verdict make(const Settings *s, int64_t index, Workspace *w, Sample *out, int64_t *counts) {
    Random r = {mix(s->seed, (uint64_t)index)};
    int64_t number = s->law == FROM_FILE ? (int64_t)(uniform(&r) * (double)s->n_file) : 0;
    int dim = s->law == FROM_FILE ? s->file_dims[number] : 1 + pick(&r, s->dim_weights, s->max_dim);
    int n_unary = s->law == E2ESR ? below(&r, 5) : 0;
    out->dim = dim;
    Verdict v = TOO_LONG;
    for (int attempt = 0; attempt < s->tries; attempt++) {
        v = draw(s, w, &r, dim, n_unary, number, out);
        if (v == ACCEPTED) break;
        counts[v]++;
    }
    if (v != ACCEPTED) return v;
    int n_before;
    Sum terms = additive_terms(&w->terms, out->formula.token, out->formula.constant, out->formula.length, &n_before);
    out->n_terms = terms.n;
    out->min_nu = NAN;
    if (terms.n < 0) v = TOO_MANY_TERMS;
    else if (terms.n == 0) v = NO_TERMS;
    else if ((s->law == LEAN || s->law == PHYSICS) && terms.n != n_before) v = LIKE_TERMS;
    else if (s->n_held_out && is_held_out(s, skeleton_hash(&w->terms, terms))) v = HELD_OUT;
    else if (s->arm == FILTERED) {
        const double *X = w->X;
        int n = out->n_points;
        if (s->judge_kind >= 0) {
            sample_inputs(&r, s->judge_kind, dim, N_POINTS, w->judged);
            X = w->judged;
            n = N_POINTS;
        }
        v = judge(w, terms, X, n, dim, s->tau, s->is_free, &out->min_nu);
    } else if (s->arm == MATCHED && uniform(&r) >= s->keep[(dim - 1) * (MAX_TERMS + 1) + terms.n]) v = THINNED;
    counts[v]++;
    return v;
}
/* The settings' limits on length make room for every accepted formula. */
static void write_tokens(const Formula *f, int with_floats, int16_t *out, int length) {
    int n = 0;
    memset(out, 0, sizeof(int16_t) * (size_t)length);
    out[n++] = BEGIN;
    for (int i = 0; i < f->length; i++) {
        if (!with_floats || f->token[i] != CONSTANT) { out[n++] = f->token[i]; continue; }
        int mantissa, exponent;
        digits(f->constant[i], &mantissa, &exponent);
        out[n++] = f->constant[i] < 0 ? MINUS : PLUS;
        out[n++] = (int16_t)(FIRST_MANTISSA + mantissa - 100);
        out[n++] = (int16_t)(FIRST_EXPONENT + exponent - LOWEST_EXPONENT);
    }
    out[n] = END;
}

/* ------------------------------------------------------------------ what Python calls */
/* The first `size` formulas of the corpus among candidates `index` to `end`, points repeated up to N_POINTS.
 * X (size, N_POINTS, MAX_DIM), y (size, N_POINTS), tokens (size, length), indices, dims, n_terms (size,), counts (N_VERDICTS,).
 * Returns how many were found, or -1 when memory is out. */
PUBLIC int32_t sobolev_corpus_fill(const Settings *s, int64_t index, int64_t end, int32_t size, int32_t with_floats, int32_t length, float *X,
                                   float *y, int16_t *tokens, int64_t *indices, int8_t *dims, int8_t *n_terms, int64_t *counts) {
    Workspace *w = workspace_new();
    if (!w) return -1;
    Sample out;
    int done = 0;
    for (; done < size && index < end; index++) {
        if (make(s, index, w, &out, counts) != ACCEPTED) continue;
        write_tokens(&out.formula, with_floats, tokens + (int64_t)done * length, length);
        float *x = X + (int64_t)done * N_POINTS * MAX_DIM;
        for (int i = 0; i < N_POINTS; i++) {
            int from = i % out.n_points;
            for (int j = 0; j < MAX_DIM; j++) x[i * MAX_DIM + j] = j < out.dim ? (float)w->X[j * N_POINTS + from] : 0.f;
            y[(int64_t)done * N_POINTS + i] = (float)out.y[from];
        }
        indices[done] = index;
        dims[done] = (int8_t)out.dim;
        n_terms[done] = (int8_t)out.n_terms;
        done++;
    }
    workspace_free(w);
    return done;
}
/* Candidate `index` in full precision: token and constant (MAX_NODES,), X (MAX_DIM, N_POINTS), y (N_POINTS,).
 * info: length, dim, n_points, n_terms; units (MAX_DIM, N_UNITS), of the physics grammar only. Returns its verdict, or -1 when memory is out. */
PUBLIC int32_t sobolev_corpus_formula(const Settings *s, int64_t index, int8_t *token, double *constant, double *X, double *y,
                                      int32_t *info, double *min_nu, int8_t *units) {
    Workspace *w = workspace_new();
    if (!w) return -1;
    int64_t counts[N_VERDICTS] = {0};
    Sample out;
    memset(&out, 0, sizeof out);
    Verdict v = make(s, index, w, &out, counts);
    memcpy(token, out.formula.token, sizeof out.formula.token);
    memcpy(constant, out.formula.constant, sizeof out.formula.constant);
    memcpy(X, w->X, sizeof w->X);
    memcpy(y, out.y, sizeof out.y);
    int32_t found[4] = {out.formula.length, out.dim, out.n_points, out.n_terms};
    memcpy(info, found, sizeof found);
    *min_nu = out.min_nu;
    memcpy(units, out.units.of, sizeof out.units.of);
    workspace_free(w);
    return (int32_t)v;
}
/* Of `n` candidates from `index` on: how many reach the filter, and how many pass it, by dimension and number of terms.
 * reached, passed (MAX_DIM, MAX_TERMS + 1). */
PUBLIC int32_t sobolev_corpus_survey(const Settings *s, int64_t index, int64_t n, int64_t *reached, int64_t *passed) {
    Workspace *w = workspace_new();
    if (!w) return -1;
    int64_t counts[N_VERDICTS] = {0};
    Sample out;
    for (int64_t i = index; i < index + n; i++) {
        Verdict v = make(s, i, w, &out, counts);
        if (v != ACCEPTED && v != TOO_FEW_ROWS && v != LOW_NOVELTY) continue;
        int cell = (out.dim - 1) * (MAX_TERMS + 1) + out.n_terms;
        reached[cell]++;
        passed[cell] += v == ACCEPTED;
    }
    workspace_free(w);
    return 0;
}
/* The verdict on one text, or -1 where Python must decide: an unknown operator, too large, or too close to the threshold. */
static int judge_text(Workspace *w, Reader *r, const Words *words, const char *text, const char *end, const double *X, int n, double tau,
                      double *min_nu) {
    static const double margin = 1e-6;                 /* novelties of the two kernels differ by less */
    if (!read_formula(r, words, text, end)) return -1;
    int n_before, dim = r->n_variables ? r->n_variables : 1;
    Sum terms = additive_terms(&w->terms, r->token, r->constant, r->length, &n_before);
    if (terms.n < 0 || w->terms.n_failed) return -1;
    if (words->n_columns) {
        int place[MAX_DIM];
        rank_variables(r, place);
        memcpy(w->X, X, sizeof(double) * N_POINTS);
        for (int j = 0; j < r->n_variables; j++)
            memcpy(w->X + place[j] * N_POINTS, X + r->variable[j].key * N_POINTS, sizeof(double) * N_POINTS);
        X = w->X;
    }
    Verdict v = judge(w, terms, X, n, dim, tau, 0, min_nu);
    return v == TOO_MANY_TERMS || fabs(*min_nu - tau) <= margin ? -1 : (int)v;
}
/* Formulas as text, the one after the other: formula i is text[start[i] .. start[i + 1]). X (columns, N_POINTS), of which n points count;
 * variable number k of a formula is column k, or the column of its name where `words` has columns. verdict, min_nu (size,).
 * Returns how many were decided; the others have verdict -1. */
PUBLIC int64_t sobolev_corpus_judge(const Words *words, const char *text, const int64_t *start, int64_t size, const double *X, int32_t n,
                                    double tau, int8_t *verdict, double *min_nu) {
    Workspace *w = workspace_new();
    Reader *r = malloc(sizeof *r);
    int64_t decided = 0;
    for (int64_t i = 0; i < size; i++) {
        min_nu[i] = NAN;
        verdict[i] = -1;
        if (w && r) verdict[i] = (int8_t)judge_text(w, r, words, text + start[i], text + start[i + 1], X, n, tau, &min_nu[i]);
        decided += verdict[i] >= 0;
    }
    workspace_free(w);
    free(r);
    return decided;
}
/* The skeleton's hash of a well-formed prefix list; 0 when its terms are too many. */
PUBLIC uint64_t sobolev_corpus_skeleton(const int8_t *token, const double *constant, int32_t length) {
    Terms *T = malloc(sizeof *T);
    if (!T || length > MAX_NODES) { free(T); return 0; }
    int n_before;
    Sum terms = additive_terms(T, token, constant, length, &n_before);
    uint64_t hash = terms.n < 0 ? 0 : skeleton_hash(T, terms);
    free(T);
    return hash;
}
/* Sizes that Python checks against its own. */
PUBLIC int32_t sobolev_corpus_sizes(int32_t *out) {
    int32_t sizes[6] = {(int32_t)sizeof(Settings), MAX_DIM, N_POINTS, MAX_NODES, MAX_TERMS, N_VERDICTS};
    memcpy(out, sizes, sizeof sizes);
    return 6;
}
