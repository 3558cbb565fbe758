/* Small dense algebra: matrices of the size of a candidate's number of terms, row-major. */
#include <math.h>
#include <string.h>

#include "kernel.h"

/* A = L L' in the lower triangle, read from the upper one. 0, or 1 + the first column whose pivot is not above smallest times
 * its diagonal element. */
int cholesky(double *A, int32_t n, int32_t ld, double smallest) {
    for (int32_t j = 0; j < n; j++) {
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

#define GRAM_IS_ENOUGH 0.03 /* these three as in projection.py */
#define RANK_TOLERANCE 1e-12
#define NULL_COMPONENT 10.0

size_t novelty_work(int32_t m) { return 3 * (size_t)m * (size_t)m + (size_t)m; }

/* nu_i = 1 / |row i of R^-1|. G holds the upper triangle of the inner products; squaring loses digits where some nu is small. */
int novelty_from_gram(const double *G, int32_t m, double *nu, double *work) {
    for (int32_t i = 0; i < m; i++)
        for (int32_t j = i; j < m; j++)
            work[(int64_t)i * m + j] = G[(int64_t)i * m + j] / sqrt(G[(int64_t)i * m + i]) / sqrt(G[(int64_t)j * m + j]);
    if (cholesky(work, m, m, 1e-7)) return 1;
    double *column = work + (int64_t)m * m;
    for (int32_t i = 0; i < m; i++) { /* column i of L^-1, whose square is (G^-1)_ii */
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
        if (!(nu[i] > GRAM_IS_ENOUGH)) return 1;
    }
    return 0;
}

/* One-sided Jacobi: the columns of A (rows of the row-major transpose At) become orthogonal, A V = U S. Rows of Vt are the
 * columns of V. Small singular values keep their relative accuracy. */
static void jacobi_svd(double *At, double *Vt, double *s, int32_t m) {
    memset(Vt, 0, (size_t)m * (size_t)m * sizeof(double));
    for (int32_t i = 0; i < m; i++) Vt[(int64_t)i * m + i] = 1.0;
    for (int sweep = 0, rotated = 1; rotated && sweep < 60; sweep++) {
        rotated = 0;
        for (int32_t p = 0; p < m; p++)
            for (int32_t q = p + 1; q < m; q++) {
                double *x = At + (int64_t)p * m, *y = At + (int64_t)q * m, a = 0.0, b = 0.0, c = 0.0;
                for (int32_t k = 0; k < m; k++) a += x[k] * x[k], b += y[k] * y[k], c += x[k] * y[k];
                if (fabs(c) <= 1e-15 * sqrt(a * b) || c == 0.0) continue;
                double zeta = (b - a) / (2.0 * c), t = copysign(1.0, zeta) / (fabs(zeta) + sqrt(1.0 + zeta * zeta));
                double cosine = 1.0 / sqrt(1.0 + t * t), sine = cosine * t;
                double *v = Vt + (int64_t)p * m, *w = Vt + (int64_t)q * m;
                rotated = 1;
                for (int32_t k = 0; k < m; k++) {
                    double xk = x[k], vk = v[k];
                    x[k] = cosine * xk - sine * y[k], y[k] = sine * xk + cosine * y[k];
                    v[k] = cosine * vk - sine * w[k], w[k] = sine * vk + cosine * w[k];
                }
            }
    }
    for (int32_t i = 0; i < m; i++) {
        double square = 0.0;
        for (int32_t k = 0; k < m; k++) square += At[(int64_t)i * m + k] * At[(int64_t)i * m + k];
        s[i] = sqrt(square);
    }
}

/* Row norms of the inverse of the normalised R (upper, row-major, ld m); 1 where it is too close to singular to tell. */
static int by_inverse(const double *R, int32_t m, double *nu, double *row) {
    double total = 0.0;
    for (int32_t i = 0; i < m; i++) {
        double square = 0.0;
        for (int32_t j = i; j < m; j++) { /* row i of R^-1, left to right */
            double value = i == j ? 1.0 : 0.0;
            for (int32_t k = i; k < j; k++) value -= row[k] * R[(int64_t)k * m + j];
            row[j] = value / R[(int64_t)j * m + j];
            square += row[j] * row[j];
        }
        total += square;
        nu[i] = fmin(1.0, 1.0 / sqrt(square));
    }
    return !(total < 1e18);
}

/* Columns of zeros are null: nu = 0, and no part of the others' span. Columns with a component in the null space get 0. */
void novelty_from_triangle(const double *R, int32_t m, double *nu, double *lengths, double *work) {
    double *unit = work, *At = work, *Vt = work + (int64_t)m * m, *s = work + 3 * (int64_t)m * m, largest = 0.0;
    int32_t live = 0;
    for (int32_t j = 0; j < m; j++) {
        double square = 0.0;
        for (int32_t i = 0; i <= j; i++) square += R[(int64_t)i * m + j] * R[(int64_t)i * m + j];
        lengths[j] = sqrt(square);
        nu[j] = 0.0;
        live += square > 0.0;
    }
    if (live == m) {
        for (int32_t i = 0; i < m; i++)
            for (int32_t j = i; j < m; j++) unit[(int64_t)i * m + j] = R[(int64_t)i * m + j] / lengths[j];
        if (!by_inverse(unit, m, nu, s)) return;
    }
    for (int32_t j = 0; j < m; j++) /* null columns stay zero: they are their own null vectors */
        for (int32_t i = 0; i < m; i++)
            At[(int64_t)j * m + i] = i <= j && lengths[j] > 0.0 ? R[(int64_t)i * m + j] / lengths[j] : 0.0;
    jacobi_svd(At, Vt, s, m);
    for (int32_t i = 0; i < m; i++) largest = fmax(largest, s[i]);
    double smallest = largest; /* of those that span the range */
    for (int32_t i = 0; i < m; i++)
        if (s[i] > RANK_TOLERANCE * largest) smallest = fmin(smallest, s[i]);
    const double dependent = smallest > 0.0 ? NULL_COMPONENT * RANK_TOLERANCE * largest / smallest : 0.0;
    for (int32_t j = 0; j < m; j++) {
        double null = 0.0, inverse = 0.0;
        for (int32_t i = 0; i < m; i++) {
            double v = Vt[(int64_t)i * m + j];
            if (s[i] > RANK_TOLERANCE * largest) inverse += (v / s[i]) * (v / s[i]);
            else null += v * v;
        }
        nu[j] = lengths[j] == 0.0 || sqrt(null) > dependent ? 0.0 : fmin(1.0, 1.0 / sqrt(inverse));
    }
}
