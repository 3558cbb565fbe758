/* Least squares for a population of sums of terms: variable projection, as numpy_kernel.fit defines it.
 *
 * Notation: Phi the terms' values (m columns), J the derivatives of the terms along the free constants (q columns), y the target,
 * all times the roots of the weights; b the linear coefficients, D_k = b_owner(k) J_k, r = y - Phi b.
 *
 * One pass per trial gives Phi, J and all inner products of [Phi J y]. The products give the factor of Phi'Phi and the curvature
 * D'(1 - P)D; what decides convergence, the loss and the gradient D'r, is computed from the explicit residual. Where the
 * products are too coarse (columns nearly dependent), Phi is orthogonalised column by column instead. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

#define DEPENDENT 1e-9       /* as in numpy_kernel.py */
#define CONVERGED_STEP 1e-10
#define REDUNDANT 1e-6
#define EXACT 1e-28
#define COARSE 1e-8          /* smallest pivot of the normalised Phi'Phi that the products can be trusted with */
#define REFINE 0.1           /* below this pivot b is refined once */
#define CHUNK 256

enum { CONVERGED, MAX_ITERATIONS, SINGULAR, NON_FINITE };

typedef struct {
    const Call *call;
    const FitJob *job;
    const double *root, *y; /* padded to n_padded; root is NULL without weights */
    double yy;
    int64_t n_padded;
    int32_t most_terms, most_free;
    atomic_int *has_no_memory;
} Context;

typedef struct {
    Workspace ws;
    double *Z;        /* most_terms + most_free columns of n_padded */
    double *Q;        /* most_terms + most_free columns, used where Phi is orthogonalised */
    double *residual; /* n_padded */
    double *small;    /* all the small matrices and vectors */
    const double **columns;
    int32_t *where, *owner, *kept;
    int64_t *free_index;
} Own;

/* One candidate while it is fitted. */
typedef struct {
    const Context *context;
    Own *own;
    int64_t first;   /* program */
    int32_t m, q, w; /* w = m + q + 1 */
    double *gram;                  /* w x w */
    double *factor;                /* m x m */
    double *scale, *b, *trial_b;   /* m */
    double *theta;                 /* q: the free constants */
    double *W;                     /* q x m: the directions' coefficients along Phi */
    double *normal, *damped;       /* q x q */
    double *slope, *step, *work;   /* q, q, max(m, q) */
    double loss;
    int is_singular, has_step;
} Problem;

static size_t small_size(const Context *c) {
    size_t m = (size_t)c->most_terms, q = (size_t)c->most_free, w = m + q + 1;
    return w * w + m * m + 3 * m + q * m + 2 * q * q + 3 * q + (m + q) + 8;
}

static void *enter(void *pointer) {
    Context *c = pointer;
    Own *own = calloc(1, sizeof *own);
    if (!own) return NULL;
    size_t columns = (size_t)c->most_terms + (size_t)c->most_free + 1, rows = (size_t)c->n_padded;
    own->Z = aligned_alloc(64, (columns * rows * sizeof(double) + 64) / 64 * 64);
    own->residual = aligned_alloc(64, (rows * sizeof(double) + 64) / 64 * 64);
    own->small = malloc(small_size(c) * sizeof(double));
    own->columns = malloc(columns * sizeof *own->columns);
    own->where = malloc(columns * sizeof *own->where);
    own->owner = malloc(columns * sizeof *own->owner);
    own->kept = malloc(columns * sizeof *own->kept);
    own->free_index = malloc(columns * sizeof *own->free_index);
    int failed = workspace_new(&own->ws, c->call->longest, c->call->inputs.n_features, c->call->most_constants, WANT_CONSTANTS);
    if (failed || !own->Z || !own->residual || !own->small || !own->columns || !own->where || !own->owner ||
        !own->kept || !own->free_index) {
        if (failed) memset(&own->ws, 0, sizeof own->ws);
        workspace_free(&own->ws);
        free(own->Z), free(own->residual), free(own->small), free(own->columns), free(own->where), free(own->owner);
        free(own->kept), free(own->free_index), free(own);
        return NULL;
    }
    for (size_t k = 0; k < columns; k++) own->where[k] = (int32_t)k;
    return own;
}

static void leave(void *pointer) {
    Own *own = pointer;
    workspace_free(&own->ws);
    free(own->Z), free(own->Q), free(own->residual), free(own->small), free(own->columns), free(own->where);
    free(own->owner), free(own->kept), free(own->free_index), free(own);
}

static double *column(const Problem *p, int32_t k) { return p->own->Z + (int64_t)k * p->context->n_padded; }

/* Weights, and zeros where the rows are padding. */
static void finish_column(Problem *p, int32_t k) {
    const Context *c = p->context;
    int64_t N = c->call->inputs.n_rows;
    if (c->root) c->call->hot->scale(column(p, k), c->root, N);
    for (int64_t i = N; i < c->n_padded; i++) column(p, k)[i] = 0.0;
}

/* Phi and J at the constants in job->constants, and the products of all columns. Terms without a free constant stay. */
static void evaluate(Problem *p, int is_first) {
    const Context *c = p->context;
    const Call *call = c->call;
    const Inputs *in = &call->inputs;
    Workspace *ws = &p->own->ws;
    int32_t next_free = p->m;
    for (int32_t t = 0; t < p->m; t++) {
        int64_t program = p->first + t, constant = call->population.constant_offsets[program];
        const uint8_t *free_constants = c->job->free_constants + constant;
        int32_t first_free = next_free;
        for (int64_t k = constant; k < call->population.constant_offsets[program + 1]; k++) next_free += c->job->free_constants[k];
        int want = next_free > first_free ? WANT_CONSTANTS : WANT_VALUES;
        if (want == WANT_VALUES && !is_first) continue;
        plan(ws, &call->population, program, c->job->constants + constant, free_constants, want);
        for (Tile s = tile_at(in, 0, ws->tile); s.real && !should_stop(); s = tile_at(in, s.row + s.real, ws->tile)) {
            double *out = column(p, t) + s.row;
            set_inputs(ws, in, s.row);
            if (want == WANT_VALUES) {
                call->hot->values(ws, s.n, out);
            } else {
                for (int32_t k = 0, row = first_free; k < ws->n_constants; k++)
                    ws->gradient[k] = free_constants[k] ? column(p, row++) + s.row : NULL;
                call->hot->gradient(ws, s.n, out, WANT_CONSTANTS);
            }
        }
        finish_column(p, t);
        for (int32_t k = first_free; k < next_free; k++) finish_column(p, k);
    }
    memset(p->gram, 0, (size_t)p->w * (size_t)p->w * sizeof(double));
    for (int64_t row = 0; row < c->n_padded && !should_stop(); row += CHUNK) {
        for (int32_t k = 0; k < p->w - 1; k++) p->own->columns[k] = column(p, k) + row;
        p->own->columns[p->w - 1] = c->y + row;
        int64_t n = c->n_padded - row < CHUNK ? c->n_padded - row : CHUNK;
        call->hot->gram(p->own->columns, p->w, n, 1.0, p->gram, p->w, p->own->where);
    }
}

static double product(const Problem *p, int32_t i, int32_t j) {
    return i <= j ? p->gram[(int64_t)i * p->w + j] : p->gram[(int64_t)j * p->w + i];
}

/* r = y - Phi b; its square. */
static double residual(Problem *p, const double *b) {
    const Context *c = p->context;
    const Hot *hot = c->call->hot;
    memcpy(p->own->residual, c->y, (size_t)c->n_padded * sizeof(double));
    for (int32_t k = 0; k < p->m; k++)
        if (b[k] != 0.0) hot->axpy(-b[k], column(p, k), p->own->residual, c->n_padded);
    return hot->dot(p->own->residual, p->own->residual, c->n_padded);
}

/* b from the factor of the normalised products, refined where they are a little coarse. 0, or 1 where too coarse. */
static int solve_products(Problem *p) {
    const Context *c = p->context;
    double smallest = 1.0;
    for (int32_t i = 0; i < p->m; i++)
        for (int32_t j = i; j < p->m; j++)
            p->factor[(int64_t)i * p->m + j] = product(p, i, j) / (p->scale[i] * p->scale[j]);
    if (cholesky(p->factor, p->m, p->m, COARSE)) return 1;
    for (int32_t i = 0; i < p->m; i++) {
        double pivot = p->factor[(int64_t)i * p->m + i];
        if (pivot * pivot < smallest) smallest = pivot * pivot;
        p->trial_b[i] = product(p, i, p->w - 1) / p->scale[i];
    }
    cholesky_solve(p->factor, p->m, p->m, p->trial_b);
    for (int32_t i = 0; i < p->m; i++) p->trial_b[i] /= p->scale[i];
    if (smallest >= REFINE) return 0;
    residual(p, p->trial_b);
    for (int32_t i = 0; i < p->m; i++) p->work[i] = c->call->hot->dot(column(p, i), p->own->residual, c->n_padded) / p->scale[i];
    cholesky_solve(p->factor, p->m, p->m, p->work);
    for (int32_t i = 0; i < p->m; i++) p->trial_b[i] += p->work[i] / p->scale[i];
    return 0;
}

/* x -= Q (Q'x), twice; coefficients of the kept columns are added to c. */
static void orthogonalise(const Problem *p, double *x, const int32_t *kept, int32_t n_kept, double *c, int32_t stride) {
    const Hot *hot = p->context->call->hot;
    int64_t rows = p->context->n_padded;
    for (int pass = 0; pass < 2; pass++)
        for (int32_t i = 0; i < n_kept && !should_stop(); i++) {
            const double *q = p->own->Q + kept[i] * rows;
            double along = hot->dot(q, x, rows);
            hot->axpy(-along, q, x, rows);
            if (c) c[(int64_t)kept[i] * stride] += along;
        }
}

/* Gram-Schmidt in the order of the columns; those within DEPENDENT of the span of the ones before are left out (b = 0). Then
 * D is orthogonalised too. -1 where there is no memory. */
static int solve_columns(Problem *p, int32_t *kept, int32_t *n_kept) {
    const Context *c = p->context;
    const Hot *hot = c->call->hot;
    int64_t rows = c->n_padded;
    if (!p->own->Q) {
        size_t columns = (size_t)c->most_terms + (size_t)c->most_free + 1;
        p->own->Q = aligned_alloc(64, (columns * (size_t)rows * sizeof(double) + 64) / 64 * 64);
        if (!p->own->Q) return -1;
    }
    memset(p->factor, 0, (size_t)p->m * (size_t)p->m * sizeof(double));
    *n_kept = 0;
    for (int32_t j = 0; j < p->m; j++) {
        double *q = p->own->Q + j * rows;
        p->trial_b[j] = 0.0;
        if (p->scale[j] == 0.0) continue;
        for (int64_t i = 0; i < rows; i++) q[i] = column(p, j)[i] / p->scale[j];
        orthogonalise(p, q, kept, *n_kept, p->factor + j, p->m);
        double length = sqrt(hot->dot(q, q, rows));
        if (!(length > DEPENDENT)) continue;
        for (int64_t i = 0; i < rows; i++) q[i] /= length;
        p->factor[(int64_t)j * p->m + j] = length;
        kept[(*n_kept)++] = j;
    }
    memcpy(p->own->residual, c->y, (size_t)rows * sizeof(double));
    for (int32_t i = 0; i < p->m; i++) p->work[i] = 0.0;
    orthogonalise(p, p->own->residual, kept, *n_kept, p->work, 1);
    for (int32_t i = *n_kept - 1; i >= 0; i--) { /* R b = Q'y */
        int32_t k = kept[i];
        double value = p->work[k];
        for (int32_t j = i + 1; j < *n_kept; j++) value -= p->factor[(int64_t)k * p->m + kept[j]] * p->trial_b[kept[j]];
        p->trial_b[k] = value / p->factor[(int64_t)k * p->m + k];
    }
    for (int32_t i = 0; i < p->m; i++)
        if (p->scale[i] != 0.0) p->trial_b[i] /= p->scale[i];
    return 0;
}

/* Curvature and slope of the projected problem; has_step = 0 where J is not finite. */
static void linearise(Problem *p, const int32_t *kept, int32_t n_kept, int by_columns) {
    const Context *c = p->context;
    const Hot *hot = c->call->hot;
    int64_t rows = c->n_padded;
    int32_t m = p->m, q = p->q;
    p->has_step = 0;
    for (int32_t k = 0; k < q; k++)
        if (!isfinite(product(p, m + k, m + k))) return;
    p->has_step = 1;
    for (int32_t k = 0; k < q && !should_stop(); k++) {
        double *D = by_columns ? p->own->Q + (m + k) * rows : NULL;
        if (by_columns) { /* the projected direction itself */
            for (int64_t i = 0; i < rows; i++) D[i] = column(p, m + k)[i];
            orthogonalise(p, D, kept, n_kept, NULL, 0);
        } else {
            double *W = p->W + (int64_t)k * m;
            for (int32_t i = 0; i < m; i++) W[i] = product(p, i, m + k) / p->scale[i];
            lower_solve(p->factor, m, m, W);
        }
    }
    for (int32_t k = 0; k < q && !should_stop(); k++)
        for (int32_t l = k; l < q; l++) {
            double value;
            if (by_columns) {
                value = hot->dot(p->own->Q + (m + k) * rows, p->own->Q + (m + l) * rows, rows);
            } else {
                const double *V = p->W + (int64_t)k * m, *W = p->W + (int64_t)l * m;
                value = product(p, m + k, m + l);
                for (int32_t i = 0; i < m; i++) value -= V[i] * W[i];
            }
            p->normal[k * q + l] = value * p->b[p->own->owner[k]] * p->b[p->own->owner[l]];
        }
    for (int32_t k = 0; k < q; k++) {
        double b = p->b[p->own->owner[k]];
        p->slope[k] = b * hot->dot(column(p, m + k), p->own->residual, rows);
        /* What the linear coefficients already do: the direction stays where it is. */
        if (p->normal[k * q + k] <= REDUNDANT * REDUNDANT * b * b * product(p, m + k, m + k)) {
            for (int32_t l = 0; l < q; l++) p->normal[k < l ? k * q + l : l * q + k] = 0.0;
            p->slope[k] = 0.0;
        }
    }
}

/* The linear fit at the constants in job->constants. 1 and everything updated where its loss is below the given one. */
static int try_constants(Problem *p, double bound, int is_first) {
    const Context *c = p->context;
    int32_t *kept = p->own->kept, n_kept = 0;
    evaluate(p, is_first);
    for (int32_t i = 0; i < p->m; i++) {
        double square = product(p, i, i);
        if (!isfinite(square)) return 0;
        p->scale[i] = sqrt(square);
    }
    int by_columns = solve_products(p);
    if (by_columns && solve_columns(p, kept, &n_kept)) {
        atomic_store(c->has_no_memory, 1); /* not a property of the candidate */
        return 0;
    }
    double loss = residual(p, p->trial_b);
    if (!isfinite(loss) || !(loss < bound)) return 0;
    p->is_singular = by_columns && n_kept < p->m;
    memcpy(p->b, p->trial_b, (size_t)p->m * sizeof(double));
    p->loss = loss;
    if (p->q && c->job->n_iterations) linearise(p, kept, n_kept, by_columns);
    return 1;
}

/* (normal + damping diag) step = slope; 0, or 1 where it cannot be solved or leads nowhere finite. */
static int damped_step(Problem *p, double damping) {
    int32_t q = p->q;
    memcpy(p->damped, p->normal, (size_t)q * (size_t)q * sizeof(double));
    for (int32_t k = 0; k < q; k++) {
        double diagonal = p->normal[k * q + k];
        p->damped[k * q + k] += damping * (diagonal > 0.0 ? diagonal : 1.0);
    }
    if (cholesky(p->damped, q, q, 0.0)) return 1;
    memcpy(p->step, p->slope, (size_t)q * sizeof(double));
    cholesky_solve(p->damped, q, q, p->step);
    for (int32_t k = 0; k < q; k++)
        if (!isfinite(p->step[k]) || !isfinite(p->theta[k] + p->step[k])) return 1;
    return 0;
}

static int iterate(Problem *p) {
    const FitJob *job = p->context->job;
    double damping = 1e-3;
    for (int iteration = 0; iteration < job->n_iterations && !should_stop(); iteration++) {
        if (p->loss <= EXACT * p->context->yy) return CONVERGED;
        if (damped_step(p, damping)) {
            damping *= 10.0;
            continue;
        }
        double promised = 0.0, before = p->loss;
        for (int32_t k = 0; k < p->q; k++) promised += p->step[k] * p->slope[k];
        if (promised <= CONVERGED_STEP * before) return CONVERGED;
        for (int32_t k = 0; k < p->q; k++) job->constants[p->own->free_index[k]] = p->theta[k] + p->step[k];
        if (!try_constants(p, before, 0)) {
            damping *= 10.0;
            continue;
        }
        for (int32_t k = 0; k < p->q; k++) p->theta[k] = job->constants[p->own->free_index[k]];
        damping = damping * 0.1 > 1e-12 ? damping * 0.1 : 1e-12;
        if (before - p->loss <= CONVERGED_STEP * before || !p->has_step) return CONVERGED;
    }
    return MAX_ITERATIONS;
}

static double *take(double **pool, size_t n) {
    double *start = *pool;
    *pool += n;
    return start;
}

static void task(void *pointer, void *own_pointer, int64_t candidate) {
    Context *c = pointer;
    Own *own = own_pointer;
    const FitJob *job = c->job;
    const int64_t *constant_offsets = c->call->population.constant_offsets;
    Problem p = {.context = c, .own = own, .first = job->term_offsets[candidate]};
    p.m = (int32_t)(job->term_offsets[candidate + 1] - p.first);
    for (int32_t t = 0; t < p.m; t++)
        for (int64_t k = constant_offsets[p.first + t]; k < constant_offsets[p.first + t + 1]; k++)
            if (job->free_constants[k]) {
                own->free_index[p.q] = k;
                own->owner[p.q++] = t;
            }
    p.w = p.m + p.q + 1;
    size_t m = (size_t)p.m, q = (size_t)p.q, w = (size_t)p.w;
    double *pool = own->small;
    p.gram = take(&pool, w * w), p.factor = take(&pool, m * m), p.scale = take(&pool, m), p.b = take(&pool, m);
    p.trial_b = take(&pool, m), p.normal = take(&pool, q * q), p.damped = take(&pool, q * q), p.slope = take(&pool, q);
    p.step = take(&pool, q), p.work = take(&pool, m + q), p.theta = take(&pool, q), p.W = take(&pool, q * m);
    for (int32_t k = 0; k < p.q; k++) p.theta[k] = job->constants[own->free_index[k]];
    job->loss[candidate] = INFINITY;
    job->status[candidate] = NON_FINITE;
    for (size_t t = 0; t < m; t++) job->coefficients[p.first + (int64_t)t] = 0.0;
    if (!try_constants(&p, INFINITY, 1)) return;
    int status = p.q && job->n_iterations && p.has_step ? iterate(&p) : CONVERGED;
    for (int32_t k = 0; k < p.q; k++) job->constants[own->free_index[k]] = p.theta[k];
    memcpy(job->coefficients + p.first, p.b, m * sizeof(double));
    job->loss[candidate] = p.loss;
    job->status[candidate] = p.is_singular ? SINGULAR : status;
}

int fit(const Call *call, const FitJob *job) {
    atomic_int has_no_memory;
    Context c = {.call = call, .job = job, .n_padded = (call->inputs.n_rows + LANES - 1) / LANES * LANES};
    atomic_init(&has_no_memory, 0);
    c.has_no_memory = &has_no_memory;
    for (int64_t i = 0; i < job->n_candidates; i++) {
        int64_t m = job->term_offsets[i + 1] - job->term_offsets[i], q = 0;
        int64_t first = call->population.constant_offsets[job->term_offsets[i]];
        int64_t last = call->population.constant_offsets[job->term_offsets[i + 1]];
        for (int64_t k = first; k < last; k++) q += job->free_constants[k];
        if (m > c.most_terms) c.most_terms = (int32_t)m;
        if (q > c.most_free) c.most_free = (int32_t)q;
    }
    double *y = calloc((size_t)c.n_padded + 1, sizeof(double)), *root = calloc((size_t)c.n_padded + 1, sizeof(double));
    if (!y || !root) {
        free(y), free(root);
        return -1;
    }
    for (int64_t i = 0; i < call->inputs.n_rows; i++) {
        root[i] = job->weights ? sqrt(job->weights[i]) : 1.0;
        y[i] = job->y[i] * root[i];
        c.yy += y[i] * y[i];
    }
    c.y = y;
    c.root = job->weights ? root : NULL;
    Work work = {enter, task, leave};
    int result = run_parallel(&work, &c, job->n_candidates, call->n_threads);
    free(y), free(root);
    return result || atomic_load(&has_no_memory) ? -1 : 0;
}
