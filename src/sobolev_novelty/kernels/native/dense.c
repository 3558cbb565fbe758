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

/* One reflection that takes column x of n rows to its first row; the same for the others, stride apart. */
static void reflect(Wide *x, int64_t n, int64_t stride, int32_t n_others) {
    Wide norm = sqrtl(dot(x, x, n)), square;
    x[0] += copysignl(norm, x[0]);
    square = dot(x, x, n);
    if (!(square > 0.0)) return;
    for (int32_t k = 1; k <= n_others; k++) {
        Wide *y = x + k * stride, share = 2.0 / square * dot(x, y, n);
        for (int64_t i = 0; i < n; i++) y[i] -= share * x[i];
    }
    x[0] = -copysignl(norm, x[0]);
}

typedef struct {
    Wide *S, *inverse, *A, *total, *left;
} Room;

/* The n kept columns of U (m rows): nu, the sum of the weights, and what is left for each unit of weight. */
static void of_distinct(const Wide *U, int32_t m, const int32_t *kept, int32_t n, const Rules *rules, double *nu, Room room) {
    const int64_t rows = (int64_t)m + n;
    const Wide price = (Wide)rules->precision * rules->precision;
    for (int32_t k = 0; k < n; k++) {
        Wide *column = room.S + k * rows;
        memcpy(column, U + (int64_t)kept[k] * m, (size_t)m * sizeof(Wide));
        memset(column + m, 0, (size_t)n * sizeof(Wide));
        column[m + k] = rules->precision;
    }
    for (int32_t j = 0; j < n && !should_stop(); j++) reflect(room.S + j * rows + j, rows - j, rows, n - 1 - j);
    /* rows of T^-1, from the last; row i begins at column i */
    for (int32_t i = n - 1; i >= 0 && !should_stop(); i--) {
        Wide *row = room.inverse + (int64_t)i * n, pivot = room.S[i * rows + i];
        memset(row, 0, (size_t)n * sizeof(Wide));
        for (int32_t k = i + 1; k < n; k++) {
            Wide t = room.S[k * rows + i];
            for (int32_t j = k; j < n; j++) row[j] -= t * room.inverse[(int64_t)k * n + j];
        }
        row[i] += 1.0;
        for (int32_t j = i; j < n; j++) row[j] /= pivot;
    }
    for (int32_t i = 0; i < n && !should_stop(); i++)
        for (int32_t j = i; j < n; j++)
            room.A[(int64_t)i * n + j] = room.A[(int64_t)j * n + i] =
                dot(room.inverse + (int64_t)i * n + j, room.inverse + (int64_t)j * n + j, n - j);
    for (int32_t i = 0; i < n; i++) {
        Wide diagonal = room.A[(int64_t)i * n + i], square = 1.0 / diagonal - price, total = 0.0, squares = 0.0;
        for (int32_t j = 0; j < n; j++) {
            Wide w = j == i ? 0.0 : room.A[(int64_t)i * n + j] / diagonal;
            total += fabsl(w), squares += w * w;
        }
        room.total[i] = total;
        room.left[i] = sqrtl(fmaxl(square - price * squares, 0.0)) / (1.0 + total);
        nu[kept[i]] = (double)sqrtl(fminl(fmaxl(square, 0.0), 1.0));
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

/* Places (of n, in this order) of the kept columns that those before do not rebuild up to rounding; the first n_sure are among
 * them, and at least one of the others is not. Returns their number. */
static int32_t independent(const Wide *U, int32_t m, const int32_t *order, int32_t n, int32_t n_sure, double rounding, Room room,
                           int32_t *taken) {
    Wide *Q = room.S, *inverse = room.inverse, *inside = room.total, *weights = room.left;
    int32_t count = 0;
    for (int32_t j = 0; j < n && !should_stop(); j++) {
        Wide *q = Q + (int64_t)count * m, total = 0.0;
        memcpy(q, U + (int64_t)order[j] * m, (size_t)m * sizeof(Wide));
        memset(inside, 0, (size_t)n * sizeof(Wide));
        for (int twice = 0; twice < 2; twice++)
            for (int32_t i = 0; i < count; i++) {
                Wide part = dot(Q + (int64_t)i * m, q, m);
                for (int32_t k = 0; k < m; k++) q[k] -= part * Q[(int64_t)i * m + k];
                inside[i] += part;
            }
        for (int32_t i = 0; i < count; i++) {
            weights[i] = dot(inverse + (int64_t)i * n + i, inside + i, count - i);
            total += fabsl(weights[i]);
        }
        Wide length = sqrtl(dot(q, q, m));
        int is_last = j == n - 1 && count == n - 1;
        if (count == m || (j >= n_sure && (!(length > rounding * (1.0 + total)) || is_last))) continue;
        for (int32_t k = 0; k < m; k++) q[k] /= length;
        for (int32_t i = 0; i < count; i++) inverse[(int64_t)i * n + count] = -weights[i] / length;
        inverse[(int64_t)count * n + count] = 1.0 / length;
        taken[count++] = order[j];
    }
    return count;
}

/* Leave out the redundant ones of the n kept columns; returns how many stay. order and taken hold n places each. */
static int32_t without_redundant(const Wide *U, int32_t m, int32_t *kept, int32_t n, const Rules *rules, Room room, int32_t *order,
                                 int32_t *taken) {
    int32_t n_sure = 0, count;
    for (int32_t i = 0; i < n; i++)
        if (!(room.left[i] <= rules->redundant)) order[n_sure++] = i;
    count = n_sure;
    for (int32_t i = 0; i < n; i++) {
        if (!(room.left[i] <= rules->redundant)) continue;
        int32_t place = count++; /* by falling weights: those that take the smallest to rebuild come last, and go */
        for (; place > n_sure && room.total[order[place - 1]] < room.total[i]; place--) order[place] = order[place - 1];
        order[place] = i;
    }
    if (n_sure == n) return n;
    for (int32_t i = 0; i < n; i++) order[i] = kept[order[i]];
    count = independent(U, m, order, n, n_sure, rules->redundant, room, taken);
    for (int32_t i = 0; i < count; i++) { /* back into their own order */
        int32_t place = i;
        for (; place > 0 && kept[place - 1] > taken[i]; place--) kept[place] = kept[place - 1];
        kept[place] = taken[i];
    }
    return count;
}

/* 0, 1 where the weights are so large that R should have been found in extended precision, -1 without memory. */
int novelty_from_triangle(const Wide *R, int32_t m, const Rules *rules, double *nu, double *lengths) {
    const size_t square = (size_t)m * (size_t)m;
    Wide *U = malloc((5 * square + 2 * (size_t)m + 1) * sizeof(Wide));
    int32_t *kept = calloc(3 * (size_t)m + 1, sizeof *kept), n = 0;
    uint8_t *is_zero = calloc((size_t)m + 1, 1);
    Wide largest = 0.0;
    if (!U || !kept || !is_zero) {
        free(U), free(kept), free(is_zero);
        return -1;
    }
    Room room = {U + square, U + 3 * square, U + 4 * square, U + 5 * square, U + 5 * square + m};
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
    n = n > 1 ? representatives(U, m, kept, n, rules, is_zero) : 0;
    for (int32_t before = n + 1; n > 0 && n < before && !should_stop();) {
        of_distinct(U, m, kept, n, rules, nu, room);
        largest = 0.0; /* of the last pass: before it, weights make use of the rounding of redundant columns */
        for (int32_t i = 0; i < n; i++) {
            largest = fmaxl(largest, room.total[i]);
            is_zero[kept[i]] |= room.left[i] <= rules->rounding;
        }
        before = n;
        n = without_redundant(U, m, kept, n, rules, room, kept + m, kept + 2 * m);
    }
    for (int32_t j = 0; j < m; j++)
        if (is_zero[j]) nu[j] = 0.0;
    free(U), free(kept), free(is_zero);
    return largest > rules->large_weight;
}

/* R (m x m, column-major) takes up n rows of the m columns of B, ldb apart. B is used up. */
void absorb_wide(Wide *R, Wide *B, int64_t ldb, int64_t n, int32_t m) {
    for (int32_t j = 0; j < m && !should_stop(); j++) {
        Wide *b = B + j * ldb, head = R[(int64_t)j * m + j], tail = dot(b, b, n), norm = sqrtl(head * head + tail);
        if (!(tail > 0.0)) continue;
        Wide first = head + copysignl(norm, head), square = first * first + tail;
        for (int32_t k = j + 1; k < m; k++) {
            Wide *r = R + (int64_t)k * m + j, *c = B + k * ldb, share = 2.0 / square * (first * *r + dot(b, c, n));
            *r -= share * first;
            for (int64_t i = 0; i < n; i++) c[i] -= share * b[i];
        }
        R[(int64_t)j * m + j] = -copysignl(norm, head);
    }
}
