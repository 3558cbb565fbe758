/* Dot products and Householder updates over columns, compiled once per instruction set with fused multiply-adds. */
#include "hot.h"

typedef double vec __attribute__((vector_size(LANES * sizeof(double))));
typedef double vecu __attribute__((vector_size(LANES * sizeof(double)), aligned(8), may_alias));
#define LOAD(p) (*(const vecu *)(p))
#define STORE(p) (*(vecu *)(p))

#ifdef __AVX512F__
#define BLOCK 4
#else
#define BLOCK 2
#endif

static inline double total(vec v) { return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7])); }

SOBOLEV_INLINE void block(const double *const *left, int nl, const double *const *right, int nr, int64_t n, double *out) {
    vec sum[BLOCK][BLOCK];
    for (int p = 0; p < nl; p++)
        for (int q = 0; q < nr; q++) sum[p][q] = (vec){0};
    for (int64_t i = 0; i < n; i += LANES) {
        vec r[BLOCK];
        for (int q = 0; q < nr; q++) r[q] = LOAD(right[q] + i);
        for (int p = 0; p < nl; p++) {
            vec l = LOAD(left[p] + i);
            for (int q = 0; q < nr; q++) sum[p][q] += l * r[q];
        }
    }
    for (int p = 0; p < nl; p++)
        for (int q = 0; q < nr; q++) out[p * BLOCK + q] = total(sum[p][q]);
}

/* A block that is not whole is the last one: it stands right of a whole one, or of itself. */
static void any_block(const double *const *left, int nl, const double *const *right, int nr, int64_t n, double *out) {
    switch (nl * 8 + nr) {
#define CASE(P, Q) case P * 8 + Q: block(left, P, right, Q, n, out); return;
        CASE(1, 1) CASE(2, 2)
#if BLOCK == 4
        CASE(3, 3) CASE(4, 1) CASE(4, 2) CASE(4, 3) CASE(4, 4)
#else
        CASE(2, 1)
#endif
        default: return;
    }
}

/* gram[where[i]][where[j]] += weight * <column i, column j>, i <= j; where ascends. n is a multiple of LANES. */
void ISA(gram)(const double *const *columns, int32_t m, int64_t n, double weight, double *gram, int32_t ld,
               const int32_t *where) {
    double products[BLOCK * BLOCK];
    for (int32_t i = 0; i < m && (i == 0 || !should_stop()); i += BLOCK)
        for (int32_t j = i; j < m; j += BLOCK) {
            int ni = m - i < BLOCK ? m - i : BLOCK, nj = m - j < BLOCK ? m - j : BLOCK;
            any_block(columns + i, ni, columns + j, nj, n, products);
            for (int p = 0; p < ni; p++)
                for (int q = i == j ? p : 0; q < nj; q++)
                    gram[where[i + p] * ld + where[j + q]] += weight * products[p * BLOCK + q];
        }
}

double ISA(dot)(const double *x, const double *y, int64_t n) {
    vec s0 = {0}, s1 = {0};
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        s0 += LOAD(x + i) * LOAD(y + i);
        s1 += LOAD(x + i + LANES) * LOAD(y + i + LANES);
    }
    double rest = 0.0;
    if (i + LANES <= n) {
        s0 += LOAD(x + i) * LOAD(y + i);
        i += LANES;
    }
    for (; i < n; i++) rest += x[i] * y[i];
    return total(s0 + s1) + rest;
}

void ISA(axpy)(double a, const double *x, double *y, int64_t n) {
    _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) y[i] += a * x[i];
}

void ISA(scale)(double *x, const double *w, int64_t n) {
    _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++) x[i] *= w[i];
}

/* x'y for four columns at once. */
static void dot4(const double *x, const double *const *y, int64_t n, double *out) {
    vec s[4] = {{0}, {0}, {0}, {0}};
    for (int64_t i = 0; i < n; i += LANES) {
        vec v = LOAD(x + i);
        for (int q = 0; q < 4; q++) s[q] += v * LOAD(y[q] + i);
    }
    for (int q = 0; q < 4; q++) out[q] = total(s[q]);
}

static void axpy4(const double *a, const double *x, double *const *y, int64_t n) {
    for (int64_t i = 0; i < n; i += LANES) {
        vec v = LOAD(x + i);
        for (int q = 0; q < 4; q++) STORE(y[q] + i) += a[q] * v;
    }
}

/* Householder: R (upper, row-major, m x m) takes up the n rows (a multiple of LANES) of B (m columns, ldb apart). B is lost. */
void ISA(absorb)(double *R, double *B, int64_t ldb, int64_t n, int32_t m) {
    for (int32_t k = 0; k < m && !should_stop(); k++) {
        double *x = B + k * ldb, *row = R + (int64_t)k * m;
        double sigma = ISA(dot)(x, x, n), alpha = row[k];
        if (sigma < 1e-280) continue; /* the columns are of order one: nothing is lost, and 1 / (beta v0) stays finite */
        double beta = __builtin_sqrt(alpha * alpha + sigma);
        if (alpha > 0.0) beta = -beta;
        double v0 = alpha - beta, factor = 1.0 / (beta * v0);
        row[k] = beta;
        int32_t j = k + 1;
        for (; j + 4 <= m; j += 4) {
            double *y[4] = {B + j * ldb, B + (j + 1) * ldb, B + (j + 2) * ldb, B + (j + 3) * ldb}, f[4];
            dot4(x, (const double *const *)y, n, f);
            for (int q = 0; q < 4; q++) {
                f[q] = (f[q] + v0 * row[j + q]) * factor;
                row[j + q] += f[q] * v0;
            }
            axpy4(f, x, y, n);
        }
        for (; j < m; j++) {
            double f = (ISA(dot)(x, B + j * ldb, n) + v0 * row[j]) * factor;
            row[j] += f * v0;
            ISA(axpy)(f, x, B + j * ldb, n);
        }
    }
}
