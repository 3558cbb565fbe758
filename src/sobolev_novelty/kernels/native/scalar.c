/* Operators on single numbers, for subtrees without variables. */
#include <math.h>

#include "kernel.h"

#define EXP exp
#define LOG log
#define SIN sin
#define COS cos
#define EXP_PLAIN exp
#define LOG_PLAIN log

double scalar_value(int op, double a, double b) {
    switch (op) {
#define U(NAME, VALUE, FIRST, SECOND) case OP_##NAME: return VALUE;
        UNARY_OPERATORS(U) FLAT_UNARY_OPERATORS(U)
#undef U
#define B(NAME, VALUE, FA, FB, FAA, FAB, FBB) case OP_##NAME: return VALUE;
        BINARY_OPERATORS(B) FLAT_BINARY_OPERATORS(B)
#undef B
        default: return NAN;
    }
}

double scalar_first(int op, int which, double a, double b, double v) {
    (void)v;
    switch (op) {
#define U(NAME, VALUE, FIRST, SECOND) case OP_##NAME: return FIRST;
        UNARY_OPERATORS(U) FLAT_UNARY_OPERATORS(U)
#undef U
#define B(NAME, VALUE, FA, FB, FAA, FAB, FBB) case OP_##NAME: return which ? (FB) : (FA);
        BINARY_OPERATORS(B) FLAT_BINARY_OPERATORS(B)
#undef B
        default: return NAN;
    }
}
