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
