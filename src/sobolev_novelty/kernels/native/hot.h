/* Names of the hot functions, once per instruction set: the build defines SOBOLEV_ISA as baseline, avx2 or avx512. */
#ifndef SOBOLEV_HOT_H
#define SOBOLEV_HOT_H
#include "kernel.h"

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define ISA(name) JOIN(name, SOBOLEV_ISA)
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

void ISA(gram)(const double *const *, int32_t, int64_t, double, double *, int32_t, const int32_t *);
double ISA(dot)(const double *, const double *, int64_t);
void ISA(axpy)(double, const double *, double *, int64_t);
void ISA(scale)(double *, const double *, int64_t);
void ISA(absorb)(double *, double *, int64_t, int64_t, int32_t);
int ISA(join)(const double *, const double *, int64_t, int, int, double *);
void ISA(pack)(const double *, const double *, int64_t, int64_t, int64_t, float *);
void ISA(inner)(const float *, const float *, int64_t, int64_t, float *);
void ISA(gains)(const float *, const int64_t *, const float *, int64_t, const float *, float *, float, float *);
#endif
