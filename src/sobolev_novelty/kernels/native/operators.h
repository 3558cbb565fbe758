/* The operator table of operators.py, row by row: value, first and second partial derivatives.
 *
 * a, b are the operands and v the value. The position of a row is its opcode, from 1; ARITY says in which of the two
 * lists the row's formulas stand. Append new rows at the end. The rows after N_OPERATORS are pow with a constant exponent and
 * forms for some ranges of operands, never read from a program. EXP, LOG, SIN, COS are the includer's (fastmath.h or math.h). tests/kernels/test_kernels.py compares names and formulas with operators.py. */
#ifndef SOBOLEV_OPERATORS_H
#define SOBOLEV_OPERATORS_H

enum {
    OP_CONSTANT = 0,
    OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_POW, OP_NEG, OP_SQRT, OP_CBRT, OP_SQUARE, OP_CUBE, OP_INV, OP_EXP, OP_LOG,
    OP_LOG2, OP_LOG10, OP_SIN, OP_COS, OP_TAN, OP_COT, OP_ARCSIN, OP_ARCCOS, OP_ARCTAN, OP_SINH, OP_COSH, OP_TANH,
    OP_ABS, OP_SIGN, OP_MIN, OP_MAX, OP_ARCSINH, OP_ARCCOSH, OP_ARCTANH, OP_LOG1P, OP_SIGMOID, OP_GPDIV, OP_GPLOG,
    OP_GPINV, OP_LOGABS, OP_SQRTABS, OP_POWABS, OP_AQ,
    OP_HALF, OP_POW4, OP_POW5, OP_POW6, OP_POWM2, OP_POWM3, OP_POWM4, OP_SIN_LARGE, OP_COS_LARGE,
    OP_EXP_PLAIN, OP_LOG_PLAIN,
    N_ALL_OPERATORS
};
#define N_OPERATORS OP_AQ
#define FIRST_VARIABLE 256
#define MAX_PROGRAM_LENGTH 100000

#define OPERATOR_NAMES                                                                                                  \
    "", "add", "sub", "mul", "div", "pow", "neg", "sqrt", "cbrt", "square", "cube", "inv", "exp", "log", "log2",        \
        "log10", "sin", "cos", "tan", "cot", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "abs", "sign",       \
        "min", "max", "arcsinh", "arccosh", "arctanh", "log1p", "sigmoid", "gpdiv", "gplog", "gpinv", "logabs",         \
        "sqrtabs", "powabs", "aq"

#define IS_BINARY(op)                                                                                                   \
    ((op) <= OP_POW || (op) == OP_MIN || (op) == OP_MAX || (op) == OP_GPDIV || (op) == OP_POWABS || (op) == OP_AQ)

#define LN2 0.693147180559945309417
#define LN10 2.30258509299404568402
#define GPLEARN_GUARD 1e-3

#define SOBOLEV_INLINE static inline __attribute__((always_inline))
SOBOLEV_INLINE double sign_(double a) { return a != a ? a : (double)((a > 0.0) - (a < 0.0)); }
SOBOLEV_INLINE double min_(double a, double b) { return (a <= b) | (a != a) ? a : b; }
SOBOLEV_INLINE double max_(double a, double b) { return (a >= b) | (a != a) ? a : b; }
SOBOLEV_INLINE double outside(double a, double yes, double no) { return __builtin_fabs(a) > GPLEARN_GUARD ? yes : no; }
SOBOLEV_INLINE double p15(double t) { return t * __builtin_sqrt(t); }
/* pow(a, 0.5): unlike sqrt, +0 at -0 and +inf at -inf. */
SOBOLEV_INLINE double half_(double a) { return a == -__builtin_inf() ? __builtin_inf() : __builtin_sqrt(a + 0.0); }

#define POW_A(a, b) ((b) == 0.0 ? 0.0 : (b) * pow((a), (b) - 1.0))
#define POW_B(a, b, v) (((a) == 0.0) & ((b) > 0.0) ? 0.0 : (v) * LOG(a))
#define POW_AA(a, b) ((b) * ((b) - 1.0) == 0.0 ? 0.0 : (b) * ((b) - 1.0) * pow((a), (b) - 2.0))
#define POW_AB(a, b) (((a) == 0.0) & ((b) > 1.0) ? 0.0 : pow((a), (b) - 1.0) * (1.0 + (b) * LOG(a)))
#define POW_BB(a, b, v) (((a) == 0.0) & ((b) > 0.0) ? 0.0 : (v) * (LOG(a) * LOG(a)))
#define ABS_(a) __builtin_fabs(a)

/* The rows are in lists by what can become of them, so that no loop is compiled that nothing reaches: a second derivative is asked
 * for only where there is one, and the forms for some ranges of operands are no part of a program.
 *
 * U(name, value, first, second) */
#define UNARY_OPERATORS(U)                                                                                              \
    U(SQRT, __builtin_sqrt(a), 0.5 / v, -0.25 / (v * v * v))                                                            \
    U(CBRT, cbrt(a), 1.0 / (3.0 * v * v), -2.0 / (9.0 * (v * v * v * v * v)))                                           \
    U(SQUARE, a * a, 2.0 * a, 2.0)                                                                                      \
    U(CUBE, a * a * a, 3.0 * a * a, 6.0 * a)                                                                            \
    U(INV, 1.0 / a, -v * v, 2.0 * v * v * v)                                                                            \
    U(EXP, EXP(a), v, v)                                                                                                \
    U(LOG, LOG(a), 1.0 / a, -1.0 / (a * a))                                                                             \
    U(LOG2, log2(a), 1.0 / (a * LN2), -1.0 / (a * a * LN2))                                                             \
    U(LOG10, log10(a), 1.0 / (a * LN10), -1.0 / (a * a * LN10))                                                         \
    U(SIN, SIN(a), COS(a), -v)                                                                                          \
    U(COS, COS(a), -SIN(a), -v)                                                                                         \
    U(TAN, tan(a), 1.0 + v * v, 2.0 * v * (1.0 + v * v))                                                                \
    U(COT, 1.0 / tan(a), -(1.0 + v * v), 2.0 * v * (1.0 + v * v))                                                       \
    U(ARCSIN, asin(a), 1.0 / __builtin_sqrt(1.0 - a * a), a / p15(1.0 - a * a))                                         \
    U(ARCCOS, acos(a), -1.0 / __builtin_sqrt(1.0 - a * a), -a / p15(1.0 - a * a))                                       \
    U(ARCTAN, atan(a), 1.0 / (1.0 + a * a), -2.0 * a / ((1.0 + a * a) * (1.0 + a * a)))                                 \
    U(SINH, sinh(a), cosh(a), v)                                                                                        \
    U(COSH, cosh(a), sinh(a), v)                                                                                        \
    U(TANH, tanh(a), 1.0 - v * v, -2.0 * v * (1.0 - v * v))                                                             \
    U(ARCSINH, asinh(a), 1.0 / __builtin_sqrt(a * a + 1.0), -a / p15(a * a + 1.0))                                      \
    U(ARCCOSH, acosh(a), 1.0 / __builtin_sqrt(a * a - 1.0), -a / p15(a * a - 1.0))                                      \
    U(ARCTANH, atanh(a), 1.0 / (1.0 - a * a), 2.0 * a / ((1.0 - a * a) * (1.0 - a * a)))                                \
    U(LOG1P, log1p(a), 1.0 / (1.0 + a), -1.0 / ((1.0 + a) * (1.0 + a)))                                                 \
    U(SIGMOID, 1.0 / (1.0 + EXP(-a)), v * (1.0 - v), v * (1.0 - v) * (1.0 - 2.0 * v))                                   \
    U(GPLOG, outside(a, LOG(ABS_(a)), 0.0), outside(a, 1.0 / a, 0.0), outside(a, -1.0 / (a * a), 0.0))                  \
    U(GPINV, outside(a, 1.0 / a, 0.0), -v * v, 2.0 * v * v * v)                                                         \
    U(LOGABS, LOG(ABS_(a)), 1.0 / a, -1.0 / (a * a))                                                                    \
    U(SQRTABS, __builtin_sqrt(ABS_(a)), 0.5 * sign_(a) / v, -0.25 / (v * v * v))

/* Without a second derivative. */
#define FLAT_UNARY_OPERATORS(U)                                                                                         \
    U(NEG, -a, -1.0, 0.0)                                                                                               \
    U(ABS, ABS_(a), sign_(a), 0.0)                                                                                      \
    U(SIGN, sign_(a), 0.0, 0.0)

/* pow with a constant exponent. */
#define POWERS(U)                                                                                                       \
    U(HALF, half_(a), 0.5 / v, -0.25 / (v * v * v))                                                                     \
    U(POW4, (a * a) * (a * a), 4.0 * (a * a * a), 12.0 * (a * a))                                                       \
    U(POW5, (a * a) * (a * a) * a, 5.0 * ((a * a) * (a * a)), 20.0 * (a * a * a))                                       \
    U(POW6, (a * a * a) * (a * a * a), 6.0 * ((a * a) * (a * a) * a), 30.0 * ((a * a) * (a * a)))                       \
    U(POWM2, 1.0 / (a * a), -2.0 / (a * a * a), 6.0 / ((a * a) * (a * a)))                                              \
    U(POWM3, 1.0 / (a * a * a), -3.0 / ((a * a) * (a * a)), 12.0 / ((a * a) * (a * a) * a))                             \
    U(POWM4, 1.0 / ((a * a) * (a * a)), -4.0 / ((a * a) * (a * a) * a), 20.0 / ((a * a * a) * (a * a * a)))

/* Angles that need a long reduction; values that need no care. */
#define LARGE_ANGLES(U)                                                                                                 \
    U(SIN_LARGE, sin(a), cos(a), -v)                                                                                    \
    U(COS_LARGE, cos(a), -sin(a), -v)

#define PLAIN_FORMS(U)                                                                                                  \
    U(EXP_PLAIN, EXP_PLAIN(a), v, v)                                                                                    \
    U(LOG_PLAIN, LOG_PLAIN(a), 1.0 / a, -1.0 / (a * a))

/* B(name, value, f_a, f_b, f_aa, f_ab, f_bb) */
#define BINARY_OPERATORS(B)                                                                                             \
    B(MUL, a * b, b, a, 0.0, 1.0, 0.0)                                                                                  \
    B(DIV, a / b, 1.0 / b, -v / b, 0.0, -1.0 / (b * b), 2.0 * v / (b * b))                                              \
    B(POW, pow(a, b), POW_A(a, b), POW_B(a, b, v), POW_AA(a, b), POW_AB(a, b), POW_BB(a, b, v))                         \
    B(GPDIV, outside(b, a / b, 1.0), outside(b, 1.0 / b, 0.0), outside(b, -v / b, 0.0), 0.0,                            \
      outside(b, -1.0 / (b * b), 0.0), outside(b, 2.0 * v / (b * b), 0.0))                                              \
    B(POWABS, pow(ABS_(a), b), POW_A(ABS_(a), b) * sign_(a), POW_B(ABS_(a), b, v), POW_AA(ABS_(a), b),                  \
      POW_AB(ABS_(a), b) * sign_(a), POW_BB(ABS_(a), b, v))                                                             \
    B(AQ, a / __builtin_sqrt(1.0 + b * b), 1.0 / __builtin_sqrt(1.0 + b * b), -a * b / p15(1.0 + b * b), 0.0,           \
      -b / p15(1.0 + b * b), a * (2.0 * b * b - 1.0) / ((1.0 + b * b) * p15(1.0 + b * b)))

/* Without a second derivative. */
#define FLAT_BINARY_OPERATORS(B)                                                                                        \
    B(ADD, a + b, 1.0, 1.0, 0.0, 0.0, 0.0)                                                                              \
    B(SUB, a - b, 1.0, -1.0, 0.0, 0.0, 0.0)                                                                             \
    B(MIN, min_(a, b), (double)(a <= b), 1.0 - (double)(a <= b), 0.0, 0.0, 0.0)                                         \
    B(MAX, max_(a, b), (double)(a >= b), 1.0 - (double)(a >= b), 0.0, 0.0, 0.0)

#endif
