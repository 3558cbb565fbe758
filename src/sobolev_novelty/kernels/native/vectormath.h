/* Prototypes that let the compiler call glibc's vector maths (libmvec) in plain loops.
 *
 * <math.h> gives them only under -ffast-math, which would break inf and nan; SOBOLEV_LIBMVEC is set by the build where the
 * linker finds them: 1 for the functions of glibc 2.22 (sin, cos, exp, log, pow), 2 for those of 2.35. */
#ifndef SOBOLEV_VECTORMATH_H
#define SOBOLEV_VECTORMATH_H

#if SOBOLEV_LIBMVEC >= 1
#define SIMD_BASIC __attribute__((simd("notinbranch"), const, nothrow))
#else
#define SIMD_BASIC __attribute__((const, nothrow))
#endif
#if SOBOLEV_LIBMVEC >= 2
#define SIMD_MORE __attribute__((simd("notinbranch"), const, nothrow))
#else
#define SIMD_MORE __attribute__((const, nothrow))
#endif

SIMD_BASIC double sin(double);
SIMD_BASIC double cos(double);
SIMD_BASIC double exp(double);
SIMD_BASIC double log(double);
SIMD_BASIC double pow(double, double);
SIMD_MORE double tan(double);
SIMD_MORE double asin(double);
SIMD_MORE double acos(double);
SIMD_MORE double atan(double);
SIMD_MORE double sinh(double);
SIMD_MORE double cosh(double);
SIMD_MORE double tanh(double);
SIMD_MORE double asinh(double);
SIMD_MORE double acosh(double);
SIMD_MORE double atanh(double);
SIMD_MORE double cbrt(double);
SIMD_MORE double log2(double);
SIMD_MORE double log10(double);
SIMD_MORE double log1p(double);

#endif
