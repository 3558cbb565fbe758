/* exp, log, sin and cos without branches, so that the compiler turns a loop over them into vectors on any processor.
 *
 * About one unit in the last place; inf and nan as in <math.h>. libmvec leaves its vector code for every lane that is negative,
 * huge or not finite, which random formulas produce all the time; here such lanes cost nothing. sin and cos are for |a| up to
 * LARGE_ANGLE: tiles beyond take the library's functions. exp_plain and log_plain are for tiles without special cases. */
#ifndef SOBOLEV_FASTMATH_H
#define SOBOLEV_FASTMATH_H

#include <stdint.h>

#ifdef __FMA__
#define FMA(a, b, c) __builtin_fma(a, b, c)
#define LARGE_ANGLE 1e12
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#define LARGE_ANGLE 1e7
#endif

SOBOLEV_INLINE uint64_t bits_of(double a) {
    union { double d; uint64_t u; } w = {.d = a};
    return w.u;
}
SOBOLEV_INLINE double double_of(uint64_t u) {
    union { uint64_t u; double d; } w = {.u = u};
    return w.d;
}

#define ROUNDER 0x1.8p52 /* a + ROUNDER has the nearest integer to a in its low bits */

/* e^r - 1 for |r| <= ln 2 / 2: r + r^2 P(r), P a Chebyshev fit of degree 9 (1e-17). */
SOBOLEV_INLINE double exp_reduced(double r) {
    double r2 = r * r, r4 = r2 * r2;
    double p01 = FMA(0x1.5555555555556p-3, r, 0x1.0000000000001p-1), p23 = FMA(0x1.11111111109b3p-7, r, 0x1.5555555553d63p-5);
    double p45 = FMA(0x1.a01a01a7c41d5p-13, r, 0x1.6c16c1788bd90p-10), p67 = FMA(0x1.71de0dae63bb3p-19, r, 0x1.a019b90d2ae7ap-16);
    double p89 = FMA(0x1.af38a9b0ec855p-26, r, 0x1.289185613a3d6p-22);
    return FMA(FMA(FMA(p89, r4, FMA(p67, r2, p45)), r4, FMA(p23, r2, p01)), r2, r);
}

/* a - k ln 2 */
SOBOLEV_INLINE double less_ln2(double a, double k) {
    return FMA(-k, 1.90821492927058770002e-10, FMA(-k, 6.93147180369123816490e-01, a));
}

#define BIASED (ROUNDER + 1023.0) /* its low bits, shifted by 52, are the power of two */

/* 2^k in two factors, so that denormal results are rounded once. */
SOBOLEV_INLINE double exp_fast(double a) {
    double x = a > 710.0 ? 710.0 : a;
    x = x < -746.0 ? -746.0 : x;
    double k = FMA(x, 0x1.71547652b82fep0, ROUNDER) - ROUNDER, p = exp_reduced(less_ln2(x, k));
    double t1 = FMA(k, 0.5, BIASED), t2 = (k - (t1 - BIASED)) + BIASED;
    double two1 = double_of(bits_of(t1) << 52), two2 = double_of(bits_of(t2) << 52);
    return FMA(p, two1, two1) * two2;
}

/* exp for |a| <= 700 or nan. */
SOBOLEV_INLINE double exp_plain(double a) {
    double t = FMA(a, 0x1.71547652b82fep0, BIASED), two = double_of(bits_of(t) << 52);
    return FMA(exp_reduced(less_ln2(a, t - BIASED)), two, two);
}

/* log of u's double times 2^-shift, normal and positive: 2^k m, m in [sqrt(1/2), sqrt(2)), and the series of fdlibm's e_log.c. */
SOBOLEV_INLINE double log_of_bits(uint64_t bits, double shift) {
    uint64_t u = bits + (0x3ff0000000000000u - 0x3fe6a09e00000000u);
    double k = double_of((u >> 52) | 0x4330000000000000u) - (0x1p52 + 1023.0 + shift);
    double f = double_of((u & 0x000fffffffffffffu) + 0x3fe6a09e00000000u) - 1.0;
    double s = f / (2.0 + f), z = s * s, w = z * z, half = 0.5 * f * f;
    double t1 = w * FMA(w, FMA(w, 1.531383769920937332e-01, 2.222219843214978396e-01), 3.999999999940941908e-01);
    double t2 = z * FMA(w, FMA(w, FMA(w, 1.479819860511658591e-01, 1.818357216161805012e-01), 2.857142874366239149e-01),
                        6.666666666666735130e-01);
    double rest = half - FMA(s, half + (t1 + t2), k * 1.90821492927058770002e-10);
    return k * 6.93147180369123816490e-01 - (rest - f);
}

SOBOLEV_INLINE double log_fast(double a) {
    int is_small = a < 0x1p-1022;
    double value = log_of_bits(bits_of(is_small ? a * 0x1p54 : a), is_small ? 54.0 : 0.0);
    double edge = a == 0.0 ? -__builtin_inf() : __builtin_nan("");
    value = a < __builtin_inf() ? value : a;
    return a > 0.0 ? value : edge;
}

/* log for normal positive a. */
SOBOLEV_INLINE double log_plain(double a) { return log_of_bits(bits_of(a), 0.0); }

/* x - n pi, n a multiple of 1/2 */
SOBOLEV_INLINE double less_pi(double x, double n) {
#ifdef __FMA__
    double r = FMA(-n, 0x1.921fb54442d18p1, x);
    r = FMA(-n, 0x1.1a62633145c07p-53, r);
    return FMA(-n, -0x1.f1976b8p-109, r);
#else
    double r = x - n * 3.1415926218032836914;
    r = r - n * 3.1786509424591713469e-08;
    r = r - n * 1.2246467864107188502e-16;
    return r - n * 1.2736634327021899816e-24;
#endif
}

/* sin r for |r| <= pi / 2: r + r^3 Q(r^2), a Chebyshev fit (1e-18). */
SOBOLEV_INLINE double sin_reduced(double r) {
    double z = r * r, z2 = z * z, z4 = z2 * z2;
    double q01 = FMA(0x1.1111111111107p-7, z, -0x1.5555555555555p-3), q23 = FMA(0x1.71de3a54564dfp-19, z, -0x1.a01a01a018aaap-13);
    double q45 = FMA(0x1.612401540ed0fp-33, z, -0x1.ae6455a1c0795p-26), q67 = FMA(0x1.89a43bea5b135p-49, z, -0x1.ae51366b753a9p-41);
    double q = FMA(FMA(q67, z2, q45), z4, FMA(q23, z2, q01));
    return FMA(z * r, q, r);
}

SOBOLEV_INLINE double sin_fast(double a) {
    double t = FMA(a, 0x1.45f306dc9c883p-2, ROUNDER), n = t - ROUNDER;
    return double_of(bits_of(sin_reduced(less_pi(a, n))) ^ (bits_of(t) << 63));
}

SOBOLEV_INLINE double cos_fast(double a) {
    double t = FMA(a, 0x1.45f306dc9c883p-2, -0.5) + ROUNDER, n = (t - ROUNDER) + 0.5;
    return double_of(bits_of(sin_reduced(less_pi(a, n))) ^ (~bits_of(t) << 63));
}

/* Whether some |a| lies in the closed range. Compared by bits: the nans stand above inf. */
static inline int has_between(const double *A, int64_t n, double first, double last) {
    const uint64_t low = bits_of(first), range = bits_of(last) - low;
    uint64_t found = 0;
    for (int64_t i = 0, end = n & -(int64_t)LANES; i < end; i++) /* unsigned: what lies below wraps around */
        found |= (bits_of(__builtin_fabs(A[i])) - low) <= range;
    return found != 0;
}

/* Whether all a are normal and positive. */
static inline int are_normal(const double *A, int64_t n) {
    const uint64_t low = bits_of(0x1p-1022), range = bits_of(0x1.fffffffffffffp1023) - low;
    uint64_t odd = 0;
    for (int64_t i = 0, end = n & -(int64_t)LANES; i < end; i++) odd |= (bits_of(A[i]) - low) > range;
    return odd == 0;
}

#endif
