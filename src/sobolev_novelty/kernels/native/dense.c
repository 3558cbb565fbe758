/* Small dense algebra: matrices of the size of a candidate's number of terms, row-major. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

/* A = L L' in the lower triangle, read from the upper one. 0, or 1 + the first column whose pivot is not above smallest times
 * its diagonal element. */
int cholesky(double *A, int32_t n, int32_t ld, double smallest) {
    for (int32_t j = 0; j < n; j++) {
        if (should_stop()) return 1 + j;
        double *row = A + (int64_t)j * ld;
        double diagonal = row[j], pivot = diagonal;
        for (int32_t k = 0; k < j; k++) {
            double value = A[(int64_t)k * ld + j];
            const double *other = A + (int64_t)k * ld;
            for (int32_t p = 0; p < k; p++) value -= row[p] * other[p];
            row[k] = value / other[k];
            pivot -= row[k] * row[k];
        }
        if (!(pivot > smallest * diagonal) || !isfinite(pivot)) return 1 + j;
        row[j] = sqrt(pivot);
    }
    return 0;
}

/* x <- L^-1 x */
void lower_solve(const double *L, int32_t n, int32_t ld, double *x) {
    for (int32_t i = 0; i < n; i++) {
        const double *row = L + (int64_t)i * ld;
        double value = x[i];
        for (int32_t k = 0; k < i; k++) value -= row[k] * x[k];
        x[i] = value / row[i];
    }
}

void cholesky_solve(const double *L, int32_t n, int32_t ld, double *x) {
    lower_solve(L, n, ld, x);
    for (int32_t i = n - 1; i >= 0; i--) {
        x[i] /= L[(int64_t)i * ld + i];
        for (int32_t k = 0; k < i; k++) x[k] -= L[(int64_t)i * ld + k] * x[i];
    }
}

size_t novelty_work(int32_t m) { return (size_t)m * (size_t)m + (size_t)m; }

/* nu_i = 1 / |row i of R^-1|. G holds the upper triangle of the inner products; squaring loses digits where some nu is small. */
int novelty_from_gram(const double *G, int32_t m, const Rules *rules, double *nu, double *work) {
    for (int32_t i = 0; i < m; i++)
        for (int32_t j = i; j < m; j++)
            work[(int64_t)i * m + j] = i == j ? 1.0 : G[(int64_t)i * m + j] / sqrt(G[(int64_t)i * m + i]) / sqrt(G[(int64_t)j * m + j]);
    if (cholesky(work, m, m, 1e-7)) return 1;
    double *column = work + (int64_t)m * m;
    for (int32_t i = 0; i < m && !should_stop(); i++) { /* column i of L^-1, whose square is (G^-1)_ii */
        double square = 0.0;
        memset(column, 0, (size_t)m * sizeof(double));
        column[i] = 1.0;
        for (int32_t r = i; r < m; r++) {
            const double *row = work + (int64_t)r * m;
            double value = column[r];
            for (int32_t k = i; k < r; k++) value -= row[k] * column[k];
            column[r] = value / row[r];
            square += column[r] * column[r];
        }
        nu[i] = fmin(1.0, 1.0 / sqrt(square));
        if (!(nu[i] > rules->gram_is_enough)) return 1;
    }
    return 0;
}

/* What follows is projection.py in C, in extended precision: see its Notation and its rules on rounding. Matrices of Wide are
 * column-major here: a column is what novelty is about. */

static Wide dot(const Wide *x, const Wide *y, int64_t n) {
    Wide sum = 0.0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

/* R (m x m, column-major) takes up n rows of the m columns of B, ldb apart. Column j of B is zero after its row last[j], where last
 * is given. B is used up. */
void absorb_wide(Wide *R, Wide *B, int64_t ldb, int64_t n, int32_t m, const int32_t *last) {
    for (int32_t j = 0; j < m && !should_stop(); j++) {
        if (last) n = last[j] + 1;
        Wide *b = B + j * ldb, head = R[(int64_t)j * m + j], tail = dot(b, b, n), norm = sqrtl(head * head + tail);
        if (!(tail > 0.0)) continue;
        Wide first = head + copysignl(norm, head), twice = 2.0 / (first * first + tail);
        for (int32_t k = j + 1; k < m; k++) {
            Wide *r = R + (int64_t)k * m + j, *c = B + k * ldb, share = twice * (first * *r + dot(b, c, n));
            *r -= share * first;
            for (int64_t i = 0; i < n; i++) c[i] -= share * b[i];
        }
        R[(int64_t)j * m + j] = -copysignl(norm, head);
    }
}

/* inverse, by rows, of the triangular factor of the n kept columns of U (m rows) with n rows below that hold the price on their
 * diagonal; room holds m n + n n numbers. */
static void priced_inverse(const Wide *U, int32_t m, const int32_t *kept, int32_t n, double price, Wide *room, Wide *inverse) {
    Wide *T = room + (int64_t)m * n;
    memset(T, 0, (size_t)n * (size_t)n * sizeof(Wide));
    for (int32_t k = 0; k < n; k++) {
        memcpy(room + (int64_t)k * m, U + (int64_t)kept[k] * m, (size_t)m * sizeof(Wide));
        T[(int64_t)k * n + k] = price;
    }
    absorb_wide(T, room, m, m, n, kept); /* U is triangular */
    for (int32_t i = n - 1; i >= 0 && !should_stop(); i--) { /* from the last row; row i begins at column i */
        Wide *row = inverse + (int64_t)i * n, pivot = T[(int64_t)i * n + i];
        for (int32_t j = i; j < n; j++) row[j] = j == i;
        for (int32_t k = i + 1; k < n; k++) {
            Wide t = T[(int64_t)k * n + i];
            for (int32_t j = k; j < n; j++) row[j] -= t * inverse[(int64_t)k * n + j];
        }
        for (int32_t j = i; j < n; j++) row[j] /= pivot;
    }
}

/* |w|^2 of the weights that rebuild column i, from the inverse of the triangular factor. */
static Wide square_of_weights(const Wide *inverse, int32_t n, int32_t i) {
    Wide squares = 0.0, own = dot(inverse + (int64_t)i * n + i, inverse + (int64_t)i * n + i, n - i);
    for (int32_t j = 0; j < n; j++) {
        int32_t from = i > j ? i : j;
        Wide product = j == i ? 0.0 : dot(inverse + (int64_t)i * n + from, inverse + (int64_t)j * n + from, n - from) / own;
        squares += product * product;
    }
    return squares;
}

/* 1 / ((G + price^2)^-1)_ii of column i, from the inverse of the triangular factor. */
static Wide priced_square(const Wide *inverse, int32_t n, int32_t i) {
    const Wide *row = inverse + (int64_t)i * n + i;
    return 1.0 / dot(row, row, n - i);
}

/* nu^2 of the n kept columns, none of which repeats another; room holds 3 m m numbers. 1 where may_leave and weights are large. */
static int of_distinct(const Wide *U, int32_t m, const int32_t *kept, int32_t n, const Rules *rules, const uint8_t *is_zero, Wide *room,
                       Wide *square, int may_leave) {
    const Wide inside = (Wide)rules->span_tolerance * rules->span_tolerance, large = (Wide)rules->large_weight * rules->large_weight;
    const Wide ratio = rules->prices[0] / rules->rounding;
    Wide *inverse = room + 2 * (int64_t)m * m, smallest = INFINITY;
    for (int32_t i = 0; i < n; i++) square[i] = INFINITY;
    for (int p = N_PRICES - 1; p >= 0 && !should_stop(); p--) {
        Wide price = (Wide)rules->prices[p] * rules->prices[p], dearer = 1.0 + (Wide)rules->spacing * rules->spacing / price, trace = 0.0;
        priced_inverse(U, m, kept, n, rules->prices[p], room, inverse);
        for (int32_t i = 0; i < n; i++) trace += 1.0 / priced_square(inverse, n, i);
        for (int32_t i = 0; i < n; i++) {
            Wide own = priced_square(inverse, n, i), found = fmaxl(own - price, 0.0);
            smallest = fminl(smallest, found);
            if (!(dearer * found < square[i])) continue;
            square[i] = dearer * found;
            /* trace * own is more than the square of the weights; what lower prices make of them is larger still */
            if (may_leave && !is_zero[kept[i]] && trace * own > large && square_of_weights(inverse, n, i) > large) return 1;
        }
        if (price * trace < 1e-12) return 0; /* the columns are so independent that no lower price would change a digit */
    }
    /* What is inside at the price of rounding is not far outside at the others. */
    if (!(smallest <= inside * (1.0 + ratio * ratio))) return 0;
    priced_inverse(U, m, kept, n, rules->rounding, room, inverse);
    for (int32_t i = 0; i < n; i++)
        if (priced_square(inverse, n, i) - (Wide)rules->rounding * rules->rounding <= inside) square[i] = 0.0;
    return 0;
}

/* Mark the columns that lie, up to rounding, in the plane of two others that all but coincide; room holds 2 m numbers. */
static void mark_in_planes(const Wide *U, int32_t m, const int32_t *live, int32_t n, const Rules *rules, Wide *across, uint8_t *is_zero) {
    Wide *rest = across + m;
    for (int32_t j = 0; j < n && !should_stop(); j++)
        for (int32_t k = j + 1; k < n; k++) {
            const Wide *u = U + (int64_t)live[j] * m, *v = U + (int64_t)live[k] * m;
            Wide cosine = dot(u, v, m), distance;
            if (!(fabsl(cosine) > 1.0 - rules->near * rules->near / 2.0)) continue;
            for (int32_t r = 0; r < m; r++) across[r] = v[r] - cosine * u[r];
            distance = sqrtl(dot(across, across, m));
            if (!(distance > rules->same)) continue;
            for (int32_t r = 0; r < m; r++) across[r] /= distance;
            for (int32_t i = 0; i < n; i++) {
                if (i == j || i == k) continue;
                const Wide *own = U + (int64_t)live[i] * m;
                Wide along = dot(u, own, m), aside;
                for (int32_t r = 0; r < m; r++) rest[r] = own[r] - along * u[r];
                aside = dot(across, rest, m);
                for (int32_t r = 0; r < m; r++) rest[r] -= aside * across[r];
                Wide weights = fabsl(aside) / distance + fabsl(along - cosine * aside / distance);
                if (sqrtl(dot(rest, rest, m)) <= rules->relation * (1.0 + weights)) is_zero[live[i]] = 1;
            }
        }
}

/* Columns that repeat no earlier one; is_zero marks those that repeat or are repeated. */
static int32_t representatives(const Wide *U, int32_t m, int32_t *kept, int32_t n, const Rules *rules, uint8_t *is_zero) {
    int32_t n_first = 0;
    for (int32_t j = 0; j < n && !should_stop(); j++) {
        const Wide *v = U + (int64_t)kept[j] * m;
        int repeats = 0;
        for (int32_t i = 0; i < n_first; i++) {
            const Wide *u = U + (int64_t)kept[i] * m;
            Wide cosine = dot(u, v, m), sign = cosine > 0.0 ? 1.0 : -1.0, square = 0.0;
            if (fabsl(cosine) < 1.0L - 1e-9L) continue;
            for (int32_t k = 0; k < m; k++) square += (u[k] - sign * v[k]) * (u[k] - sign * v[k]);
            if (!(square <= (Wide)rules->same * rules->same)) continue;
            is_zero[kept[i]] = is_zero[kept[j]] = 1;
            repeats = 1;
        }
        if (!repeats) kept[n_first++] = kept[j];
    }
    return n_first;
}

/* 0, -1 without memory; 1 where is_rounded and the weights are so large that R should be found in extended precision first. */
int novelty_from_triangle(const Wide *R, int32_t m, const Rules *rules, int is_rounded, double *nu, double *lengths) {
    const size_t size = (size_t)m * (size_t)m;
    Wide *U = malloc((4 * size + (size_t)m + 1) * sizeof(Wide));
    int32_t *kept = calloc((size_t)m + 1, sizeof *kept), n = 0;
    uint8_t *is_zero = calloc((size_t)m + 1, 1);
    int are_large = 0;
    if (!U || !kept || !is_zero) {
        free(U), free(kept), free(is_zero);
        return -1;
    }
    for (int32_t j = 0; j < m; j++) {
        Wide *u = U + (int64_t)j * m, length;
        memcpy(u, R + (int64_t)j * m, (size_t)m * sizeof(Wide));
        length = sqrtl(dot(u, u, m));
        lengths[j] = (double)length, nu[j] = 0.0;
        if (!(length > 0.0)) continue; /* a null column: no part of the others' span */
        for (int32_t i = 0; i < m; i++) u[i] /= length;
        kept[n++] = j;
    }
    if (n == 1) nu[kept[0]] = 1.0; /* a term alone, whatever rounding says of its unit length */
    if (n > 1) {
        mark_in_planes(U, m, kept, n, rules, U + size, is_zero);
        n = representatives(U, m, kept, n, rules, is_zero);
        Wide *square = U + 4 * size;
        are_large = of_distinct(U, m, kept, n, rules, is_zero, U + size, square, is_rounded);
        for (int32_t i = 0; i < n && !are_large; i++)
            if (!is_zero[kept[i]]) nu[kept[i]] = (double)sqrtl(fminl(square[i], 1.0));
    }
    free(U), free(kept), free(is_zero);
    return are_large;
}
