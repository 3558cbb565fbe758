/* The corpus filter (Appendix D.4): novelty of every additive term on the formula's points, as sobolev_novelty.accepts. */
#pragma once
#include "machine.h"
#include "terms.h"

enum { MIN_ROWS = 32, LANES = 8 };

typedef struct {
    Jet stack[MAX_STACK];
    Terms terms;
    Jet *base, *term;                  /* one per base and per term, grown on demand */
    uint8_t is_ready[MAX_BASES];
    int n_base_jets, n_term_jets;
    double X[MAX_DIM * N_POINTS], judged[MAX_DIM * N_POINTS];
} Workspace;

static int reserve(Jet **jets, int *have, int need) {
    if (need <= *have) return 1;
    Jet *grown = realloc(*jets, sizeof(Jet) * (size_t)need);
    if (!grown) return 0;
    *jets = grown;
    *have = need;
    return 1;
}
static Workspace *workspace_new(void) { return calloc(1, sizeof(Workspace)); }
static void workspace_free(Workspace *w) {
    if (!w) return;
    free(w->base);
    free(w->term);
    free(w);
}
static void copy_jet(Jet *to, const Jet *from, int n, int dim) {
    to->mask = from->mask;
    for (int k = 0; k <= dim; k++)
        if (k == 0 || (from->mask >> k & 1)) memcpy(to->row[k], from->row[k], sizeof(double) * (size_t)n);
}
/* a = a**e, with e > 0 */
static void raise_jet(Jet *a, double e, int n, int dim) {
    double *v = a->row[0], g[N_POINTS];
    if (e == 1) return;
    if (e == 2) for (int i = 0; i < n; i++) { g[i] = 2 * v[i]; v[i] *= v[i]; }
    else if (e == .5) for (int i = 0; i < n; i++) { v[i] = sqrt(v[i]); g[i] = .5 / v[i]; }
    else for (int i = 0; i < n; i++) { g[i] = e * pow(v[i], e - 1); v[i] = pow(v[i], e); }
    for (int k = 1; k <= dim; k++)
        if (a->mask >> k & 1) for (int i = 0; i < n; i++) a->row[k][i] *= g[i];
}
static void divide_jets(Jet *a, const Jet *b, int n, int dim) {        /* a = a / b */
    double *v = a->row[0], q[N_POINTS];
    const double *u = b->row[0];
    for (int i = 0; i < n; i++) { q[i] = 1 / u[i]; v[i] /= u[i]; }
    for (int k = 1; k <= dim; k++) {
        double *p = a->row[k];
        const double *d = b->row[k];
        int in_a = a->mask >> k & 1, in_b = b->mask >> k & 1;
        if (in_a && in_b) for (int i = 0; i < n; i++) p[i] = p[i] * q[i] - d[i] * (v[i] * q[i]);
        else if (in_a) for (int i = 0; i < n; i++) p[i] *= q[i];
        else if (in_b) for (int i = 0; i < n; i++) p[i] = -d[i] * (v[i] * q[i]);
    }
    a->mask |= b->mask;
}
/* The product of powers without its coefficient, as numerator / denominator, into `out`. */
static void product_jet(const Workspace *w, const Product *p, Jet *out, int n, int dim) {
    Jet power, below_line;
    int n_above = 0, n_below = 0;
    for (int i = 0; i < p->n; i++) {
        int is_above = p->power[i] > 0;
        Jet *side = is_above ? out : &below_line;
        int *count = is_above ? &n_above : &n_below;
        Jet *target = *count ? &power : side;
        copy_jet(target, &w->base[p->base[i]], n, dim);
        raise_jet(target, fabs(p->power[i]), n, dim);
        if (*count) multiply_jets(&power, side, n, dim);
        ++*count;
    }
    if (!n_above) {
        out->mask = 0;
        for (int i = 0; i < n; i++) out->row[0][i] = 1;
    }
    if (n_below) divide_jets(out, &below_line, n, dim);
}
/* Values and derivatives of a base and of those it is made of. */
static int prepare_base(Workspace *w, int b, const double *X, int n, int dim) {
    if (w->is_ready[b]) return 1;
    const Base *base = &w->terms.base[b];
    if (base->start < 0) {
        const Product *p = base->sum.product;
        for (int i = 0; i < p->n; i++) if (!prepare_base(w, p->base[i], X, n, dim)) return 0;
        product_jet(w, p, &w->base[b], n, dim);
    } else {
        Jet *top = run(w->stack, w->terms.token, w->terms.constant, base->start, base->end, X, n, dim, INFINITY);
        if (!top) return 0;
        copy_jet(&w->base[b], top, n, dim);
    }
    return w->is_ready[b] = 1;
}
static double deviation(const double *x, int n) {
    double mean = 0, variance = 0;
    for (int i = 0; i < n; i++) mean += x[i];
    mean /= n;
    for (int i = 0; i < n; i++) variance += (x[i] - mean) * (x[i] - mean);
    return sqrt(variance / n);
}
/* Lanes of their own keep the order of additions the same for every instruction set. */
static double dot(const double *restrict a, const double *restrict b, int n) {
    double lane[LANES] = {0}, sum = 0;
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) lane[k] += a[i + k] * b[i + k];
    for (; i < n; i++) lane[0] += a[i] * b[i];
    for (int k = 0; k < LANES; k++) sum += lane[k];
    return sum;
}
static double dot_jets(const Jet *a, const Jet *b, int n, int dim) {
    double sum = dot(a->row[0], b->row[0], n);
    for (int k = 1; k <= dim; k++) if (a->mask & b->mask & (1u << k)) sum += dot(a->row[k], b->row[k], n);
    return sum;
}
static void scale_jet(Jet *a, int rows, int dim, double scale) {
    for (int k = 0; k <= dim; k++)
        if (k == 0 || (a->mask >> k & 1)) for (int i = 0; i < rows; i++) a->row[k][i] *= scale;
}
/* A jet of peak 1 less the constant; 0 where no more than rounding is left, as geometry.beside_constant. */
static int is_more_than_constant(Jet *a, int rows, int dim) {
    static const double constant_share = 1e-13;
    double before = dot_jets(a, a, rows, dim), mean = 0;
    for (int i = 0; i < rows; i++) mean += a->row[0][i];
    mean /= rows;
    for (int i = 0; i < rows; i++) a->row[0][i] -= mean;
    return dot_jets(a, a, rows, dim) > constant_share * constant_share * before;
}
/* Weight the rows, drop those that are not finite in every term, scale to unit length. Returns rows left; *is_null: a term is 0.
 * With a free intercept the constant is taken out, and terms that are nothing else are left out: *m terms stay. */
static int unit_signatures(Jet *term, int *n_terms, const double *X, int n, int dim, int is_free, int *is_null) {
    int m = *n_terms, n_kept = 0;
    uint8_t is_finite[N_POINTS];
    int rows = 0, kept[N_POINTS];
    memset(is_finite, 1, sizeof is_finite);
    for (int k = 0; k <= dim; k++) {
        double scale = k ? deviation(X + (k - 1) * N_POINTS, n) / sqrt((double)dim) : 1;
        for (int t = 0; t < m; t++) {
            if (k && !(term[t].mask >> k & 1)) continue;
            double *row = term[t].row[k];
            for (int i = 0; i < n; i++) { row[i] *= scale; is_finite[i] &= isfinite(row[i]) != 0; }
        }
    }
    for (int i = 0; i < n; i++) if (is_finite[i]) kept[rows++] = i;
    *is_null = 0;
    for (int t = 0; t < m && rows >= MIN_ROWS; t++) {
        double peak = 0;
        for (int k = 0; k <= dim; k++) {
            if (k && !(term[t].mask >> k & 1)) continue;
            double *row = term[t].row[k];
            for (int i = 0; i < rows; i++) { row[i] = row[kept[i]]; peak = fmax(peak, fabs(row[i])); }
        }
        if (peak == 0) {
            if (!is_free) *is_null = 1;
            continue;
        }
        scale_jet(&term[t], rows, dim, 1 / peak);      /* the peak first: squares of 1e200 leave the range */
        if (is_free && !is_more_than_constant(&term[t], rows, dim)) continue;
        scale_jet(&term[t], rows, dim, 1 / sqrt(dot_jets(&term[t], &term[t], rows, dim)));
        if (n_kept < t) term[n_kept] = term[t];
        n_kept++;
    }
    *n_terms = n_kept;
    return rows;
}
/* The smallest ν of unit signatures: ν_i² = 1/(G⁻¹)_ii, from a Cholesky factor. A pivot bounds its ν² from above. */
static double smallest_novelty(const Jet *term, int m, int rows, int dim) {
    static const double dependent = 1e-10;
    double L[MAX_TERMS][MAX_TERMS], smallest = 1;
    for (int i = 0; i < m; i++)
        for (int j = 0; j <= i; j++) {
            double d = dot_jets(&term[i], &term[j], rows, dim);
            for (int k = 0; k < j; k++) d -= L[i][k] * L[j][k];
            if (i == j && d < dependent) return 0;
            L[i][j] = i == j ? sqrt(d) : d / L[j][j];
        }
    for (int i = 0; i < m; i++) {
        double z[MAX_TERMS], sum = 0;                  /* (G⁻¹)_ii = |L⁻¹ e_i|² */
        for (int k = i; k < m; k++) {
            double d = k == i;
            for (int q = i; q < k; q++) d -= L[k][q] * z[q];
            z[k] = d / L[k][k];
            sum += z[k] * z[k];
        }
        smallest = fmin(smallest, sqrt(1 / sum));
    }
    return smallest;
}
/* The verdict on formula terms that `additive_terms` has just left in the workspace. */
static Verdict judge(Workspace *w, Sum terms, const double *X, int n, int dim, double tau, int is_free, double *min_nu) {
    *min_nu = NAN;
    if (terms.n == 0) return NO_TERMS;
    if (!reserve(&w->base, &w->n_base_jets, w->terms.n_bases) || !reserve(&w->term, &w->n_term_jets, terms.n)) return TOO_MANY_TERMS;
    memset(w->is_ready, 0, sizeof w->is_ready);
    for (int t = 0; t < terms.n; t++) {
        const Product *p = &terms.product[t];
        for (int i = 0; i < p->n; i++) if (!prepare_base(w, p->base[i], X, n, dim)) return TOO_MANY_TERMS;
        product_jet(w, p, &w->term[t], n, dim);
    }
    int is_null, m = terms.n, rows = unit_signatures(w->term, &m, X, n, dim, is_free, &is_null);
    if (rows < MIN_ROWS) return TOO_FEW_ROWS;
    *min_nu = is_null || m == 0 ? 0 : m == 1 ? 1 : smallest_novelty(w->term, m, rows, dim);
    return *min_nu > tau ? ACCEPTED : LOW_NOVELTY;
}
