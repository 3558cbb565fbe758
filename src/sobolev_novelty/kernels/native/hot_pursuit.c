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

typedef double vecd __attribute__((vector_size(WIDE * sizeof(double)), aligned(8), may_alias));
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLED(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
typedef int32_t veci __attribute__((vector_size(WIDE * sizeof(int32_t))));
#define SHUFFLED(a, b, ...) __builtin_shuffle(a, b, (veci){__VA_ARGS__})
#endif

/* Rows and columns of sixteen vectors change places: in steps of 8, 4, 2 and 1, each a pair of vectors at a time. */
SOBOLEV_INLINE void transposed(vecf *rows) {
#define STEP(distance, low, high)                                    \
    for (int k = 0; k < WIDE; k++)                                   \
        if (!(k & distance)) {                                       \
            vecf a = rows[k], b = rows[k + distance];                \
            rows[k] = SHUFFLED(a, b, low), rows[k + distance] = SHUFFLED(a, b, high); \
        }
#define LIST(...) __VA_ARGS__
    STEP(8, LIST(0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23), LIST(8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31))
    STEP(4, LIST(0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27), LIST(4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31))
    STEP(2, LIST(0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29), LIST(2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31))
    STEP(1, LIST(0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30), LIST(1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31))
}

/* Sixteen columns at a time where there are so many and as many rows; what is left one number after the other. A column without a
 * length has the factor 0 and need not be finite. */
void ISA(pack)(const double *columns, const double *factors, int64_t n_columns, int64_t n_rows, int64_t k, float *panel) {
    int64_t c = 0;
    for (; c + WIDE <= n_columns; c += WIDE)
        for (int64_t row = 0; row < n_rows; row += WIDE) {
            vecf rows[WIDE];
            int n = n_rows - row < WIDE ? (int)(n_rows - row) : WIDE;
            for (int j = 0; j < WIDE; j++) {
                const double *column = columns + (c + j) * n_rows + row, factor = factors[c + j];
                rows[j] = (vecf){0};
                if (factor == 0.0) continue;
                if (n == WIDE) rows[j] = __builtin_convertvector(*(const vecd *)column * factor, vecf);
                else
                    for (int i = 0; i < n; i++) rows[j][i] = (float)(column[i] * factor);
            }
            transposed(rows);
            for (int i = 0; i < n; i++) STOREF(panel + (row + i) * PANEL + k + c) = rows[i];
        }
    for (; c < n_columns; c++)
        for (int64_t i = 0; i < n_rows; i++)
            panel[i * PANEL + k + c] = factors[c] != 0.0 ? (float)(columns[c * n_rows + i] * factors[c]) : 0.0f;
}

SOBOLEV_INLINE void inner_of_some(const float *panel, const float *directions, int64_t n_rows, int n, float *out) {
    for (int first = 0; first < PANEL / WIDE; first += AT_ONCE) {
        vecf sums[GROUP][AT_ONCE];
        for (int k = 0; k < n; k++)
            for (int v = 0; v < AT_ONCE; v++) sums[k][v] = (vecf){0};
        const float *p = panel + first * WIDE, *q = directions;
        for (int64_t i = 0; i < n_rows; i++, p += PANEL, q += GROUP) {
            vecf row[AT_ONCE];
            for (int v = 0; v < AT_ONCE; v++) row[v] = LOADF(p + v * WIDE);
            for (int k = 0; k < n; k++)
                for (int v = 0; v < AT_ONCE; v++) sums[k][v] += row[v] * q[k];
        }
        for (int k = 0; k < n; k++)
            for (int v = 0; v < AT_ONCE; v++) STOREF(out + k * PANEL + (first + v) * WIDE) = sums[k][v];
    }
}

/* out[direction][PANEL]: inner products of the panel's columns with all directions, which come GROUP by GROUP. */
void ISA(inner)(const float *panel, const float *directions, int64_t n_rows, int64_t n_directions, float *out) {
    for (; n_directions > 0; n_directions -= GROUP, directions += n_rows * GROUP, out += GROUP * PANEL) {
        switch (n_directions) { /* a number that the compiler knows keeps the sums in registers */
            case 1: inner_of_some(panel, directions, n_rows, 1, out); break;
            case 2: inner_of_some(panel, directions, n_rows, 2, out); break;
            case 3: inner_of_some(panel, directions, n_rows, 3, out); break;
            case 4: inner_of_some(panel, directions, n_rows, 4, out); break;
            case 5: inner_of_some(panel, directions, n_rows, 5, out); break;
            default: inner_of_some(panel, directions, n_rows, GROUP, out);
        }
    }
}

/* Share of the residual's energy that each column of the panel would take away: the square of its inner product with the residual
 * over its energy outside the basis; 0 where less than `smallest` of it is outside. Both numbers, a column's standing, are those of
 * the parent (PANEL of the first, PANEL of the second) less what the members take away; members[0] is the residual itself, or -1 where
 * it follows from the parent's: times weights[0], less the other members times theirs. The standing is written to own, if given. */
void ISA(gains)(const float *inner, const int64_t *members, const float *weights, int64_t n_members, const float *parent, float *own,
                float smallest, float *out) {
    for (int v = 0; v < PANEL; v += WIDE) {
        vecf fresh = (vecf){0} + 1.0f, along = (vecf){0};
        if (parent) fresh = LOADF(parent + PANEL + v);
        if (members[0] < 0) along = weights[0] * LOADF(parent + v);
        for (int64_t k = 1; k < n_members; k++) {
            vecf a = LOADF(inner + members[k] * PANEL + v);
            fresh -= a * a;
            along -= weights[k] * a;
        }
        if (members[0] >= 0) along = LOADF(inner + members[0] * PANEL + v);
        if (own) STOREF(own + v) = along, STOREF(own + PANEL + v) = fresh;
        vecf gain = along * along / fresh;
        for (int l = 0; l < WIDE; l++) out[v + l] = fresh[l] > smallest ? gain[l] : 0.0f;
    }
}
