/* Stack machine: values and derivatives along the inputs of a slice of tokens, at up to N_POINTS points.
 *
 * It reads the slice from its end. Row 0 of a slot holds values, row 1 + j the derivative along input j; a bit mask says
 * which derivatives are not zero.
 */
#pragma once
#include "corpus.h"

enum { MAX_STACK = 40, N_ROWS = 1 + MAX_DIM };
typedef struct { double row[N_ROWS][N_POINTS]; uint32_t mask; } Jet;

static void apply_unary(Jet *a, int op, double exponent, int n, int dim, double max_angle) {
    double *v = a->row[0], g[N_POINTS];
    if (op >= SIN && op <= TAN)
        for (int i = 0; i < n; i++) if (!(fabs(v[i]) <= max_angle)) v[i] = NAN;
    switch (op) {
    case INV: for (int i = 0; i < n; i++) { v[i] = 1 / v[i]; g[i] = -v[i] * v[i]; } break;
    case ABS: for (int i = 0; i < n; i++) { g[i] = (v[i] > 0) - (v[i] < 0); v[i] = fabs(v[i]); } break;
    case SQUARE: for (int i = 0; i < n; i++) { g[i] = 2 * v[i]; v[i] *= v[i]; } break;
    case SQRT: for (int i = 0; i < n; i++) { v[i] = sqrt(v[i]); g[i] = .5 / v[i]; } break;
    case SIN: for (int i = 0; i < n; i++) { g[i] = cos(v[i]); v[i] = sin(v[i]); } break;
    case COS: for (int i = 0; i < n; i++) { g[i] = -sin(v[i]); v[i] = cos(v[i]); } break;
    case TAN: for (int i = 0; i < n; i++) { v[i] = tan(v[i]); g[i] = 1 + v[i] * v[i]; } break;
    case ARCTAN: for (int i = 0; i < n; i++) { g[i] = 1 / (1 + v[i] * v[i]); v[i] = atan(v[i]); } break;
    case LOG: for (int i = 0; i < n; i++) { g[i] = 1 / v[i]; v[i] = log(v[i]); } break;
    case EXP: for (int i = 0; i < n; i++) { v[i] = exp(v[i]); g[i] = v[i]; } break;
    case CUBE: for (int i = 0; i < n; i++) { g[i] = 3 * v[i] * v[i]; v[i] = v[i] * v[i] * v[i]; } break;
    case POWER: for (int i = 0; i < n; i++) { g[i] = exponent * pow(v[i], exponent - 1); v[i] = pow(v[i], exponent); } break;
    }
    for (int k = 1; k <= dim; k++)
        if (a->mask >> k & 1) for (int i = 0; i < n; i++) a->row[k][i] *= g[i];
}
/* b = a + s b */
static void add_jets(const Jet *a, Jet *b, double s, int n, int dim) {
    for (int k = 0; k <= dim; k++) {
        const double *p = a->row[k];
        double *q = b->row[k];
        int in_a = k == 0 || (a->mask >> k & 1), in_b = k == 0 || (b->mask >> k & 1);
        if (in_a && in_b) for (int i = 0; i < n; i++) q[i] = p[i] + s * q[i];
        else if (in_a) memcpy(q, p, sizeof(double) * (size_t)n);
        else if (in_b && s < 0) for (int i = 0; i < n; i++) q[i] = -q[i];
    }
    b->mask |= a->mask;
}
/* b = a b */
static void multiply_jets(const Jet *a, Jet *b, int n, int dim) {
    const double *u = a->row[0];
    double *v = b->row[0];
    for (int k = 1; k <= dim; k++) {
        const double *p = a->row[k];
        double *q = b->row[k];
        int in_a = a->mask >> k & 1, in_b = b->mask >> k & 1;
        if (in_a && in_b) for (int i = 0; i < n; i++) q[i] = p[i] * v[i] + u[i] * q[i];
        else if (in_a) for (int i = 0; i < n; i++) q[i] = p[i] * v[i];
        else if (in_b) for (int i = 0; i < n; i++) q[i] *= u[i];
    }
    for (int i = 0; i < n; i++) v[i] *= u[i];
    b->mask |= a->mask;
}
/* The slice [from, to) at n points, with `dim` derivatives (0: values only); NULL when the stack is too small. */
static Jet *run(Jet *stack, const int8_t *token, const double *constant, int from, int to, const double *X, int n, int dim,
                double max_angle) {
    int top = -1;
    for (int p = to - 1; p >= from; p--) {
        int t = token[p];
        if (is_binary(t)) {                            /* the left operand lies on top */
            Jet *a = &stack[top], *b = &stack[top - 1];
            if (t == MUL) multiply_jets(a, b, n, dim);
            else add_jets(a, b, t == ADD ? 1 : -1, n, dim);
            top--;
        } else if (is_unary(t)) {
            apply_unary(&stack[top], t, constant[p], n, dim, max_angle);
        } else {
            if (++top == MAX_STACK) return NULL;
            Jet *s = &stack[top];
            s->mask = 0;
            if (t == CONSTANT) {
                for (int i = 0; i < n; i++) s->row[0][i] = constant[p];
                continue;
            }
            int j = t - FIRST_VARIABLE;
            memcpy(s->row[0], X + j * N_POINTS, sizeof(double) * (size_t)n);
            if (dim) {
                s->mask = 2u << j;
                for (int i = 0; i < n; i++) s->row[1 + j][i] = 1;
            }
        }
    }
    return &stack[0];
}
