/* Matching pursuit over many columns in single precision: inner products and gains, compiled once per instruction set.
 *
 * A panel holds PANEL columns side by side, row after row, so that a vector is one row of sixteen columns: nothing is added up
 * across a vector, and the gains of a panel are vectors too. Directions come GROUP at a time, interleaved in the same way. */
#include <string.h>

#include "hot.h"
#include "fastmath.h"

#define WIDE 16
typedef float vecf __attribute__((vector_size(WIDE * sizeof(float))));
typedef float vecfu __attribute__((vector_size(WIDE * sizeof(float)), aligned(4), may_alias));
#define LOADF(p) (*(const vecfu *)(p))
#define STOREF(p) (*(vecfu *)(p))

#ifdef __AVX512F__
#define AT_ONCE (PANEL / WIDE) /* vectors of a panel whose sums fit into registers beside each other */
#else
#define AT_ONCE 1
#endif

/* Sizes below this have no logarithm worth having. */
#define SMALLEST_SIZE 1e-12

int ISA(join)(const double *restrict a, const double *restrict b, int64_t n, int how, int is_log, double *restrict out) {
    if (how == JOIN_ADD)
        for (int64_t i = 0; i < n; i++) out[i] = a[i] + b[i];
    else if (how == JOIN_SUB)
        for (int64_t i = 0; i < n; i++) out[i] = a[i] - b[i];
    else if (how == JOIN_MUL)
        for (int64_t i = 0; i < n; i++) out[i] = a[i] * b[i];
    else memcpy(out, a, (size_t)n * sizeof(double));
    if (!is_log) return 1;
    int64_t n_fine = 0;
    for (int64_t i = 0; i < n; i++) {
        out[i] = __builtin_fabs(out[i]);
        n_fine += out[i] > SMALLEST_SIZE && out[i] < __builtin_inf();
    }
    if (n_fine < n) return 0;
    for (int64_t i = 0; i < n; i++) out[i] = log_plain(out[i]);
    return 1;
}

/* Rows of a panel that are written together: they stay in the nearest cache while all columns come by. */
#define PACKED 64

void ISA(pack)(const double *columns, const double *factors, int64_t n_columns, int64_t n_rows, int64_t k, float *panel) {
    for (int64_t row = 0; row < n_rows; row += PACKED) {
        int64_t n = n_rows - row < PACKED ? n_rows - row : PACKED;
        for (int64_t c = 0; c < n_columns; c++) {
            const double *column = columns + c * n_rows + row, factor = factors[c];
            float *out = panel + row * PANEL + k + c;
            if (factor != 0.0)
                for (int64_t i = 0; i < n; i++) out[i * PANEL] = (float)(column[i] * factor);
            else /* a column without a length; its values need not be finite */
                for (int64_t i = 0; i < n; i++) out[i * PANEL] = 0.0f;
        }
    }
}

/* out[direction][PANEL]: inner products of the panel's columns with n_groups * GROUP directions. */
void ISA(inner)(const float *panel, const float *directions, int64_t n_rows, int64_t n_groups, float *out) {
    for (int64_t c = 0; c < n_groups; c++, directions += n_rows * GROUP, out += GROUP * PANEL)
        for (int first = 0; first < PANEL / WIDE; first += AT_ONCE) {
            vecf sums[GROUP][AT_ONCE];
            for (int k = 0; k < GROUP; k++)
                for (int v = 0; v < AT_ONCE; v++) sums[k][v] = (vecf){0};
            const float *p = panel + first * WIDE, *q = directions;
            for (int64_t i = 0; i < n_rows; i++, p += PANEL, q += GROUP) {
                vecf row[AT_ONCE];
                for (int v = 0; v < AT_ONCE; v++) row[v] = LOADF(p + v * WIDE);
                for (int k = 0; k < GROUP; k++)
                    for (int v = 0; v < AT_ONCE; v++) sums[k][v] += row[v] * q[k];
            }
            for (int k = 0; k < GROUP; k++)
                for (int v = 0; v < AT_ONCE; v++) STOREF(out + k * PANEL + (first + v) * WIDE) = sums[k][v];
        }
}

/* Share of the residual's energy that each column of the panel would take away: the square of its inner product with the residual
 * (members[0]) over its energy outside the basis (the other members); 0 where less than `smallest` of it is outside. */
void ISA(gains)(const float *inner, const int64_t *members, int64_t n_members, float smallest, float *out) {
    for (int v = 0; v < PANEL; v += WIDE) {
        vecf fresh = (vecf){0} + 1.0f, along = LOADF(inner + members[0] * PANEL + v);
        for (int64_t k = 1; k < n_members; k++) {
            vecf a = LOADF(inner + members[k] * PANEL + v);
            fresh -= a * a;
        }
        vecf gain = along * along / fresh;
        for (int l = 0; l < WIDE; l++) out[v + l] = fresh[l] > smallest ? gain[l] : 0.0f;
    }
}
