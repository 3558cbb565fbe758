/* Novelty of every term of every candidate, as geometry.py and projection.py define it.
 *
 * A signature column is cut into segments: the values, one per input of the gradient, one per pair of second derivatives. A term
 * has a segment only for the columns of X it contains; the others are zero and cost nothing. Rows are worked through in blocks that
 * stay in cache. Each block adds its inner products, times the square of the segment's factor, to the candidate's Gram matrix;
 * the p x m matrix never exists. Where the Gram matrix is too coarse (some novelty is small, or squares leave the range of
 * doubles), a second walk over the blocks updates a triangular factor by Householder reflections instead, and where that is too
 * coarse as well, a third one does so in extended precision.
 *
 * Where the intercept is free, every candidate begins with the constant 1, which is no program: what is left of the other columns
 * beside it is their Gram matrix less one outer product, or their triangular factor without its first row and column.
 *
 * Terms that several candidates share are evaluated once, before the candidates, as far as CACHE_BYTES reach. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

#define CACHE_BYTES ((size_t)256 << 20)
#define BLOCK_BYTES ((size_t)512 << 10) /* half of a common second-level cache */
#define CHUNK 256
#define CONSTANT (-1) /* the member that stands for the constant 1 */

enum { NOVELTY_OK, TOO_FEW_ROWS, NO_TERMS };

typedef struct {
    const Call *call;
    const NoveltyJob *job;
    int64_t n_padded;
    int64_t *used_offsets; /* per program: its columns in used, ascending */
    int32_t *used;
    int64_t *cached;       /* per program: place in cache, or -1 */
    int64_t *shared;       /* the programs in the cache */
    double *cache;         /* rows of n_padded */
    int64_t most_rows;     /* rows of the widest candidate */
    int32_t most_terms;
    int64_t n_segments;
    atomic_int failed;
} Context;

typedef struct {
    Workspace ws;
    double *block;        /* most_rows rows of block_rows */
    const double **rows;  /* per entry: the row in this block */
    int32_t *entry_term;  /* entries in order of segment, then term */
    int64_t *entry_row;   /* row within the candidate */
    int64_t *first_entry; /* per segment in use, plus one */
    int64_t *segment_of;  /* which segment that is */
    int64_t *count;       /* per segment */
    int64_t *term_row;    /* first row of each term */
    int64_t *with_constant;
    const double **columns;
    double *bad;          /* per row of the block: 0, or nan */
    double *gram, *part, *R, *B, *scale, *nu, *lengths, *work;
} Own;

/* One candidate while it is worked on. */
typedef struct {
    Context *context;
    Own *own;
    const int64_t *members;
    int32_t m;
    int64_t n_rows, n_entries, n_segments, block_rows, good;
    int has_bad;
} Candidate; /* m counts the constant where the intercept is free */

static int64_t rows_of(const Context *c, int64_t program) {
    if (program == CONSTANT) return 1;
    int64_t k = c->used_offsets[program + 1] - c->used_offsets[program];
    return c->job->order == 0 ? 1 : c->job->order == 1 ? 1 + k : (int64_t)second_rows(k);
}

/* The segment of row r of a program: r = 0 the value, then its used columns, then their pairs. */
static int64_t segment(const Context *c, int64_t program, int64_t r) {
    if (r == 0) return 0;
    const int32_t *used = c->used + c->used_offsets[program];
    int64_t k = c->used_offsets[program + 1] - c->used_offsets[program], d = c->call->inputs.n_features;
    if (r <= k) return 1 + used[r - 1];
    r -= 1 + k;
    for (int64_t i = 0;; r -= k - i, i++)
        if (r < k - i) {
            int64_t j = used[i], l = used[i + r];
            return 1 + d + j * d - j * (j - 1) / 2 + (l - j);
        }
}

static int want_of(const Context *c) {
    return c->job->order == 0 ? WANT_VALUES : c->job->order == 1 ? WANT_INPUTS : WANT_SECOND;
}

/* Samples [start, start + n) of all rows of a program, stride apart; rows up to the padded end are zero. */
static int evaluate_rows(const Context *c, Workspace *ws, int64_t program, int64_t start, int64_t n, double *out, int64_t stride) {
    const Call *call = c->call;
    const Inputs *in = &call->inputs;
    int64_t rows = rows_of(c, program), last = start + n < in->n_rows ? start + n : in->n_rows;
    int want = want_of(c);
    if (program == CONSTANT) {
        for (int64_t i = 0; i < n; i++) out[i] = start + i < last ? 1.0 : 0.0;
        return 0;
    }
    const int32_t *used = c->used + c->used_offsets[program];
    plan(ws, &call->population, program, call->population.constants + call->population.constant_offsets[program], NULL, want);
    if (want == WANT_SECOND && second_room(ws)) return -1;
    for (int64_t row = start; row < last && !should_stop();) {
        int64_t room = in->n_whole > row && last - row < ws->tile ? (last - row) / LANES * LANES : ws->tile;
        Tile t = tile_at(in, row, room);
        double *at = out + (row - start);
        set_inputs(ws, in, row);
        if (want == WANT_VALUES) {
            call->hot->values(ws, t.n, at);
        } else if (want == WANT_INPUTS) {
            for (int64_t k = 1; k < rows; k++) ws->gradient[used[k - 1]] = at + k * stride;
            call->hot->gradient(ws, t.n, at, want);
        } else {
            call->hot->second(ws, t.n);
            for (int64_t r = 0; r < rows; r++) {
                const double *from = second_row(ws, (size_t)r);
                if (from) memcpy(at + r * stride, from, (size_t)t.n * sizeof(double));
                else memset(at + r * stride, 0, (size_t)t.n * sizeof(double));
            }
        }
        row += t.real;
    }
    for (int64_t r = 0; r < rows && last - start < n; r++)
        memset(out + r * stride + (last - start), 0, (size_t)(n - (last - start)) * sizeof(double));
    return 0;
}

static int64_t place_in_cache(const Context *c, int64_t program) { return program == CONSTANT ? -1 : c->cached[program]; }

/* Entries (segment, term) in order of segment, by counting; and where each term's rows begin. */
static void lay_out(Candidate *p) {
    Context *c = p->context;
    Own *own = p->own;
    p->n_rows = p->n_segments = 0;
    for (int32_t t = 0; t < p->m; t++) {
        own->term_row[t] = p->n_rows;
        for (int64_t r = 0; r < rows_of(c, p->members[t]); r++, p->n_rows++) {
            int64_t s = segment(c, p->members[t], r);
            if (own->count[s]++ == 0) own->segment_of[p->n_segments++] = s;
        }
    }
    int64_t start = 0;
    for (int64_t k = 0; k < p->n_segments; k++) {
        int64_t n = own->count[own->segment_of[k]];
        own->first_entry[k] = start;
        own->count[own->segment_of[k]] = start; /* from here on: the next free entry */
        start += n;
    }
    own->first_entry[p->n_segments] = p->n_entries = start;
    for (int32_t t = 0; t < p->m; t++)
        for (int64_t r = 0; r < rows_of(c, p->members[t]); r++) {
            int64_t e = own->count[segment(c, p->members[t], r)]++;
            own->entry_term[e] = t;
            own->entry_row[e] = own->term_row[t] + r;
        }
    for (int64_t k = 0; k < p->n_segments; k++) own->count[own->segment_of[k]] = 0;
    size_t rows = BLOCK_BYTES / sizeof(double) / (size_t)(p->n_rows ? p->n_rows : 1) / CHUNK * CHUNK;
    p->block_rows = rows < CHUNK ? CHUNK : (int64_t)rows < c->n_padded ? (int64_t)rows : c->n_padded;
    if (p->block_rows > c->n_padded) p->block_rows = c->n_padded;
}

/* Point own->rows at the candidate's rows for the samples from start on: in the cache, or evaluated into the block. */
static int load(Candidate *p, int64_t start, int64_t n) {
    Context *c = p->context;
    Own *own = p->own;
    for (int32_t t = 0; t < p->m; t++) {
        double *out = own->block + own->term_row[t] * p->block_rows;
        if (place_in_cache(c, p->members[t]) < 0 && evaluate_rows(c, &own->ws, p->members[t], start, n, out, p->block_rows)) return -1;
    }
    for (int64_t e = 0; e < p->n_entries; e++) {
        int32_t t = own->entry_term[e];
        int64_t place = place_in_cache(c, p->members[t]), r = own->entry_row[e];
        own->rows[e] = place < 0 ? own->block + r * p->block_rows : c->cache + (place + r - own->term_row[t]) * c->n_padded + start;
    }
    return 0;
}

/* Samples where something is not finite become zero in all rows (copied out of the cache first). Returns the good samples. */
static int64_t clean(Candidate *p, int64_t start, int64_t n) {
    Own *own = p->own;
    int64_t real = p->context->call->inputs.n_rows - start < n ? p->context->call->inputs.n_rows - start : n, good = 0;
    memset(own->bad, 0, (size_t)n * sizeof(double));
    /* A finite derivative can overflow when it is weighted, so finiteness is judged after weighting. */
    for (int64_t k = 0; k < p->n_segments; k++)
        for (int64_t e = own->first_entry[k]; e < own->first_entry[k + 1]; e++) {
            const double *row = own->rows[e], factor = p->context->job->factors[own->segment_of[k]];
            for (int64_t i = 0; i < n; i++) own->bad[i] += row[i] * factor * 0.0;
        }
    for (int64_t i = 0; i < real; i++) good += own->bad[i] == 0.0;
    if (good == real) return good;
    p->has_bad = 1;
    for (int64_t e = 0; e < p->n_entries; e++) {
        double *to = own->block + own->entry_row[e] * p->block_rows;
        const double *from = own->rows[e];
        for (int64_t i = 0; i < n; i++) to[i] = own->bad[i] == 0.0 ? from[i] : 0.0;
        own->rows[e] = to;
    }
    return good;
}

/* part = the inner products of this block; 0 where a square is not finite. */
static int multiply(Candidate *p, int64_t n) {
    Own *own = p->own;
    const Call *call = p->context->call;
    memset(own->part, 0, (size_t)p->m * (size_t)p->m * sizeof(double));
    for (int64_t i = 0; i < n; i += CHUNK)
        for (int64_t k = 0; k < p->n_segments && !should_stop(); k++) {
            int64_t first = own->first_entry[k], count = own->first_entry[k + 1] - first;
            double factor = p->context->job->factors[own->segment_of[k]];
            for (int64_t e = 0; e < count; e++) own->columns[e] = own->rows[first + e] + i;
            call->hot->gram(own->columns, (int32_t)count, n - i < CHUNK ? n - i : CHUNK, factor * factor, own->part, p->m,
                            own->entry_term + first);
        }
    for (int32_t t = 0; t < p->m; t++)
        if (!isfinite(own->part[(int64_t)t * p->m + t])) return 0;
    return 1;
}

/* The Gram matrix of all blocks. 1 where it is of no use, -1 without memory. */
static int gram_of_blocks(Candidate *p) {
    Own *own = p->own;
    int useless = 0;
    memset(own->gram, 0, (size_t)p->m * (size_t)p->m * sizeof(double));
    for (int64_t start = 0; start < p->context->n_padded && !should_stop(); start += p->block_rows) {
        int64_t n = p->context->n_padded - start < p->block_rows ? p->context->n_padded - start : p->block_rows;
        int64_t real = p->context->call->inputs.n_rows - start < n ? p->context->call->inputs.n_rows - start : n;
        if (load(p, start, n)) return -1;
        if (!multiply(p, n)) {
            real = clean(p, start, n);
            useless |= !multiply(p, n);
        }
        p->good += real;
        for (int64_t k = 0; k < (int64_t)p->m * p->m; k++) own->gram[k] += own->part[k];
    }
    for (int32_t t = 0; t < p->m; t++) {
        double square = own->gram[(int64_t)t * p->m + t];
        useless |= !(square > 1e-200 && square < 1e200);
    }
    return useless;
}

/* Largest magnitude of each column, as the scale that brings it to order one. */
static int scales_of_blocks(Candidate *p) {
    Own *own = p->own;
    for (int32_t t = 0; t < p->m; t++) own->scale[t] = 0.0;
    for (int64_t start = 0; start < p->context->n_padded && !should_stop(); start += p->block_rows) {
        int64_t n = p->context->n_padded - start < p->block_rows ? p->context->n_padded - start : p->block_rows;
        if (load(p, start, n)) return -1;
        clean(p, start, n);
        for (int64_t k = 0; k < p->n_segments; k++)
            for (int64_t e = own->first_entry[k]; e < own->first_entry[k + 1]; e++) {
                double largest = 0.0, factor = fabs(p->context->job->factors[own->segment_of[k]]);
                for (int64_t i = 0; i < n; i++) largest = fabs(own->rows[e][i]) > largest ? fabs(own->rows[e][i]) : largest;
                /* The product may overflow: sizes are compared as factor times value only within the range. */
                double size = fmin(largest * factor, 1.7e308);
                own->scale[own->entry_term[e]] = fmax(own->scale[own->entry_term[e]], size);
            }
    }
    return 0;
}

/* Chunk by chunk, the rows of the columns divided by scale: B (m columns of CHUNK rows), or, where W is given, there. */
static void fill_chunk(const Candidate *p, int64_t k, int64_t i, int64_t size, Wide *W) {
    Own *own = p->own;
    const double factor = p->context->job->factors[own->segment_of[k]], root = sqrt((double)p->good);
    if (W) memset(W, 0, (size_t)p->m * CHUNK * sizeof(Wide));
    else memset(own->B, 0, (size_t)p->m * CHUNK * sizeof(double));
    for (int64_t e = own->first_entry[k]; e < own->first_entry[k + 1]; e++) {
        int32_t t = own->entry_term[e];
        const double *from = own->rows[e] + i;
        double *to = own->B + (int64_t)t * CHUNK, scale = own->scale[t] > 0.0 ? 1.0 / own->scale[t] : 1.0;
        if (isinf(scale)) scale = 1e308;
        if (W) /* entries as NumPy rounds them: large weights make much of the last digit */
            for (int64_t r = 0; r < size; r++) W[(int64_t)t * CHUNK + r] = (Wide)(from[r] * factor / root) * root * scale;
        else
            for (int64_t r = 0; r < size; r++) to[r] = from[r] * scale * factor;
    }
}

/* R of the columns divided by scale, block by block: in own->R, or, where given, in extended precision in wide (column-major). */
static int triangle_of_blocks(Candidate *p, Wide *wide, Wide *W) {
    Own *own = p->own;
    const Call *call = p->context->call;
    if (wide) memset(wide, 0, (size_t)p->m * (size_t)p->m * sizeof(Wide));
    else memset(own->R, 0, (size_t)p->m * (size_t)p->m * sizeof(double));
    for (int64_t start = 0; start < p->context->n_padded && !should_stop(); start += p->block_rows) {
        int64_t n = p->context->n_padded - start < p->block_rows ? p->context->n_padded - start : p->block_rows;
        if (p->block_rows < p->context->n_padded || start) { /* a single block is still there, and clean */
            if (load(p, start, n)) return -1;
            if (p->has_bad) clean(p, start, n);
        }
        for (int64_t i = 0; i < n; i += CHUNK)
            for (int64_t k = 0; k < p->n_segments && !should_stop(); k++) {
                int64_t size = n - i < CHUNK ? n - i : CHUNK;
                fill_chunk(p, k, i, size, W);
                if (wide) absorb_wide(wide, W, CHUNK, size, p->m, NULL);
                else call->hot->absorb(own->R, own->B, CHUNK, size, p->m);
            }
    }
    return 0;
}

/* Whether beside the constant so little is left of a column of this length that it is rounding. */
static int is_constant(double left, double length, const Rules *rules) { return left <= rules->constant_share * length; }

/* The Gram matrix of what is left beside the first column; 1 where that is too coarse. */
static int gram_beside_first(double *gram, int32_t m, const Rules *rules) {
    const int32_t n = m - 1;
    for (int32_t i = 0; i < n; i++) {
        double length = gram[(int64_t)(i + 1) * m + i + 1], share = gram[i + 1] / gram[0];
        if (!(length - share * gram[i + 1] > rules->gram_is_enough * length)) return 1;
    }
    for (int32_t i = 0; i < n; i++) { /* written over rows that are no longer read; the first row is read to the end */
        double share = gram[i + 1] / gram[0];
        for (int32_t j = i; j < n; j++) gram[(int64_t)(i + 1) * m + j + 1] -= share * gram[j + 1];
    }
    for (int32_t i = 0; i < n; i++) memmove(gram + (int64_t)i * n, gram + (int64_t)(i + 1) * m + 1, (size_t)n * sizeof(double));
    return 0;
}

/* The triangular factor of what is left beside the first column: row-major in R, or column-major in wide. */
static void triangle_beside_first(double *R, Wide *wide, int32_t m, const Rules *rules) {
    const int32_t n = m - 1;
    for (int32_t j = 1; j < m; j++) {
        Wide left = 0.0, first = wide ? wide[(int64_t)j * m] : R[j];
        for (int32_t i = 1; i <= j; i++) {
            Wide value = wide ? wide[(int64_t)j * m + i] : R[(int64_t)i * m + j];
            left += value * value;
        }
        if (!is_constant((double)sqrtl(left), (double)sqrtl(left + first * first), rules)) continue;
        for (int32_t i = 1; i <= j; i++)
            if (wide) wide[(int64_t)j * m + i] = 0.0;
            else R[(int64_t)i * m + j] = 0.0;
    }
    for (int32_t k = 0; k < n; k++)
        if (wide) memmove(wide + (int64_t)k * n, wide + (int64_t)(k + 1) * m + 1, (size_t)n * sizeof(Wide));
        else memmove(R + (int64_t)k * n, R + (int64_t)(k + 1) * m + 1, (size_t)n * sizeof(double));
}

/* Novelties by a triangular factor, in extended precision where the first one asks for it. -1 without memory. */
static int by_triangle(Candidate *p, double *nu, double *lengths) {
    Own *own = p->own;
    const int64_t m = p->m, n = m - p->context->job->free_intercept;
    const Rules *rules = p->context->job->rules;
    Wide *wide = malloc(((size_t)(m * m) + (size_t)m * CHUNK) * sizeof(Wide));
    if (!wide) return -1;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) wide[j * n + i] = i <= j ? own->R[i * n + j] : 0.0;
    int result = novelty_from_triangle(wide, (int32_t)n, rules, 1, nu, lengths);
    if (result == 1) {
        result = triangle_of_blocks(p, wide, wide + m * m);
        if (!result && n < m) triangle_beside_first(NULL, wide, p->m, rules);
        if (!result) result = novelty_from_triangle(wide, (int32_t)n, rules, 0, nu, lengths);
    }
    free(wide);
    return result < 0 ? -1 : 0;
}

/* The normalised factor alone, for those who ask other questions than novelty of it. */
static void copy_triangle(const Candidate *p, double *lengths, double *triangle) {
    const int64_t m = p->m - p->context->job->free_intercept;
    for (int64_t j = 0; j < m; j++) {
        double square = 0.0;
        for (int64_t i = 0; i <= j; i++) square += p->own->R[i * m + j] * p->own->R[i * m + j];
        lengths[j] = sqrt(square);
        for (int64_t i = 0; i < m; i++) triangle[i * m + j] = i <= j && square > 0.0 ? p->own->R[i * m + j] / lengths[j] : 0.0;
    }
}

static void task(void *pointer, void *own_pointer, int64_t i) {
    Context *c = pointer;
    Own *own = own_pointer;
    const NoveltyJob *job = c->job;
    Candidate p = {.context = c, .own = own, .members = job->members + job->offsets[i]};
    const int32_t n = (int32_t)(job->offsets[i + 1] - job->offsets[i]), first = job->free_intercept;
    double *nu = job->novelty + job->offsets[i], *lengths = job->lengths + job->offsets[i], *scale = own->scale + first;
    double *triangle = job->triangles ? job->triangles + job->triangle_offsets[i] : NULL;
    job->status[i] = NO_TERMS;
    job->rows[i] = c->call->inputs.n_rows; /* nothing that is not finite */
    if (n == 0) return;
    p.m = n + first;
    if (first) {
        own->with_constant[0] = CONSTANT;
        memcpy(own->with_constant + 1, p.members, (size_t)n * sizeof *p.members);
        p.members = own->with_constant;
    }
    lay_out(&p);
    int useless = gram_of_blocks(&p);
    job->rows[i] = p.good;
    job->status[i] = p.good < job->min_rows ? TOO_FEW_ROWS : NOVELTY_OK;
    for (int32_t t = 0; t < n; t++) nu[t] = lengths[t] = NAN;
    if (useless < 0) atomic_store(&c->failed, 1);
    if (useless < 0 || p.good < job->min_rows) return;
    double root = sqrt((double)p.good);
    if (!useless) {
        for (int32_t t = 0; t < p.m; t++) own->scale[t] = sqrt(own->gram[(int64_t)t * p.m + t]);
        if (!(first && gram_beside_first(own->gram, p.m, job->rules)) && !novelty_from_gram(own->gram, n, job->rules, nu, own->work)) {
            for (int32_t t = 0; t < n; t++) lengths[t] = sqrt(own->gram[(int64_t)t * n + t]) / root;
            for (int32_t a = 0; triangle && a < n; a++)
                for (int32_t b = 0; b < n; b++)
                    triangle[(int64_t)a * n + b] = a <= b ? own->work[(int64_t)b * n + a] : 0.0;
            return;
        }
    }
    int failed = (useless && scales_of_blocks(&p)) || triangle_of_blocks(&p, NULL, NULL);
    if (!failed && first) triangle_beside_first(own->R, NULL, p.m, job->rules);
    if (failed || (!triangle && by_triangle(&p, nu, lengths))) {
        atomic_store(&c->failed, 1);
        return;
    }
    if (triangle) copy_triangle(&p, lengths, triangle);
    for (int32_t t = 0; t < n; t++) lengths[t] = lengths[t] * (scale[t] > 0.0 ? scale[t] : 1.0) / root;
}

static void leave(void *pointer) {
    Own *own = pointer;
    workspace_free(&own->ws);
    free(own->block), free(own->rows), free(own->entry_term), free(own->entry_row), free(own->first_entry);
    free(own->segment_of), free(own->count), free(own->term_row), free(own->with_constant), free(own->columns), free(own->bad), free(own->gram);
    free(own);
}

static void *enter(void *pointer) {
    Context *c = pointer;
    Own *own = calloc(1, sizeof *own);
    if (!own) return NULL;
    size_t rows = (size_t)c->most_rows + 1, m = (size_t)c->most_terms + 1, segments = (size_t)c->n_segments + 2;
    size_t block = BLOCK_BYTES / sizeof(double) > rows * CHUNK ? BLOCK_BYTES / sizeof(double) : rows * CHUNK;
    size_t most_block = (size_t)c->n_padded > CHUNK ? (size_t)c->n_padded : CHUNK;
    int failed = workspace_new(&own->ws, c->call->longest, c->call->inputs.n_features, c->call->most_constants, want_of(c));
    own->block = aligned_alloc(64, (block * sizeof(double) + 64) / 64 * 64);
    own->rows = malloc(rows * sizeof *own->rows);
    own->entry_term = malloc(rows * sizeof *own->entry_term);
    own->entry_row = malloc(rows * sizeof *own->entry_row);
    own->first_entry = malloc((rows + 1) * sizeof *own->first_entry);
    own->segment_of = malloc(rows * sizeof *own->segment_of);
    own->count = calloc(segments, sizeof *own->count);
    own->term_row = malloc(m * sizeof *own->term_row);
    own->with_constant = malloc(m * sizeof *own->with_constant);
    own->columns = malloc(m * sizeof *own->columns);
    own->bad = malloc(most_block * sizeof *own->bad);
    own->gram = malloc((3 * m * m + m * CHUNK + 3 * m + novelty_work((int32_t)m)) * sizeof(double));
    if (failed || !own->block || !own->rows || !own->entry_term || !own->entry_row || !own->first_entry ||
        !own->segment_of || !own->count || !own->term_row || !own->with_constant || !own->columns || !own->bad || !own->gram) {
        leave(own);
        return NULL;
    }
    own->part = own->gram + m * m, own->R = own->part + m * m, own->B = own->R + m * m, own->scale = own->B + m * CHUNK;
    own->nu = own->scale + m, own->lengths = own->nu + m, own->work = own->lengths + m;
    return own;
}

/* The shared terms: task i evaluates one of them into the cache. */
static void *enter_cache(void *pointer) {
    Context *c = pointer;
    Workspace *ws = malloc(sizeof *ws);
    if (ws && workspace_new(ws, c->call->longest, c->call->inputs.n_features, c->call->most_constants, want_of(c))) {
        free(ws);
        return NULL;
    }
    return ws;
}

static void leave_cache(void *pointer) {
    workspace_free(pointer);
    free(pointer);
}

static void cache_task(void *pointer, void *own, int64_t i) {
    Context *c = pointer;
    int64_t program = c->shared[i];
    double *out = c->cache + c->cached[program] * c->n_padded;
    if (evaluate_rows(c, own, program, 0, c->n_padded, out, c->n_padded)) atomic_store(&c->failed, 1);
}

static int ascending(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Which columns each program reads. */
static int find_used(Context *c) {
    const Population *p = &c->call->population;
    int64_t total = 0, n_codes = p->offsets[p->n_programs];
    int64_t *seen = malloc(((size_t)p->n_features + 1) * sizeof *seen);
    c->used_offsets = malloc(((size_t)p->n_programs + 1) * sizeof *c->used_offsets);
    c->used = malloc(((size_t)n_codes + 1) * sizeof *c->used);
    c->cached = malloc(((size_t)p->n_programs + 1) * sizeof *c->cached);
    c->shared = malloc(((size_t)p->n_programs + 1) * sizeof *c->shared);
    if (!seen || !c->used_offsets || !c->used || !c->cached || !c->shared) {
        free(seen);
        return -1;
    }
    for (int64_t j = 0; j < p->n_features; j++) seen[j] = -1;
    for (int64_t i = 0; i < p->n_programs; i++) {
        c->used_offsets[i] = total;
        for (int64_t k = p->offsets[i]; k < p->offsets[i + 1]; k++) {
            int64_t column = (int64_t)p->codes[k] - FIRST_VARIABLE;
            if (column < 0 || seen[column] == i) continue;
            seen[column] = i;
            c->used[total++] = (int32_t)column;
        }
        qsort(c->used + c->used_offsets[i], (size_t)(total - c->used_offsets[i]), sizeof *c->used, ascending);
        c->cached[i] = -1;
    }
    c->used_offsets[p->n_programs] = total;
    free(seen);
    return 0;
}

/* Give shared programs a place in the cache, in the order of the programs, while it has room. */
static int fill_cache(Context *c) {
    const NoveltyJob *job = c->job;
    int64_t n_programs = c->call->population.n_programs, n_shared = 0, rows = 0;
    int64_t *uses = calloc((size_t)n_programs + 1, sizeof *uses);
    if (!uses) return -1;
    for (int64_t k = 0; k < job->offsets[job->n_candidates]; k++) uses[job->members[k]]++;
    for (int64_t i = 0; i < n_programs; i++) {
        size_t bytes = (size_t)(rows + rows_of(c, i)) * (size_t)c->n_padded * sizeof(double);
        if (uses[i] < 2 || bytes > CACHE_BYTES) continue;
        c->cached[i] = rows;
        c->shared[n_shared++] = i;
        rows += rows_of(c, i);
    }
    free(uses);
    if (!n_shared || !c->n_padded) return 0;
    c->cache = aligned_alloc(64, ((size_t)rows * (size_t)c->n_padded * sizeof(double) + 63) / 64 * 64);
    if (!c->cache) return -1;
    Work work = {enter_cache, cache_task, leave_cache};
    return run_parallel(&work, c, n_shared, c->call->n_threads);
}

int novelties(const Call *call, const NoveltyJob *job) {
    Context c = {.call = call, .job = job, .n_padded = (call->inputs.n_rows + LANES - 1) / LANES * LANES};
    int64_t d = call->inputs.n_features;
    atomic_init(&c.failed, 0);
    c.n_segments = job->order == 0 ? 1 : job->order == 1 ? 1 + d : (int64_t)second_rows(d);
    int result = find_used(&c);
    if (!result) {
        for (int64_t i = 0; i < job->n_candidates; i++) {
            int64_t rows = job->free_intercept, m = job->offsets[i + 1] - job->offsets[i] + job->free_intercept;
            for (int64_t k = job->offsets[i]; k < job->offsets[i + 1]; k++) rows += rows_of(&c, job->members[k]);
            if (rows > c.most_rows) c.most_rows = rows;
            if (m > c.most_terms) c.most_terms = (int32_t)m;
        }
        result = fill_cache(&c);
    }
    if (!result) {
        Work work = {enter, task, leave};
        result = run_parallel(&work, &c, job->n_candidates, call->n_threads);
    }
    free(c.used_offsets), free(c.used), free(c.cached), free(c.shared), free(c.cache);
    return result || atomic_load(&c.failed) ? -1 : 0;
}
