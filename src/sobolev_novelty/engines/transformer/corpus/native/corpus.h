/* Tokens, limits, random numbers and the settings that define a corpus.
 *
 * A formula is a prefix list of tokens with one double per CONSTANT token. Everything about formula number `index` follows
 * from (settings, index): the generator of random numbers starts anew for each index.
 */
#ifndef SOBOLEV_CORPUS_H
#define SOBOLEV_CORPUS_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The vocabulary of tokenizer.py, in its order; float tokens (sign, mantissa, exponent) follow the skeleton tokens. */
enum {
    PAD, BEGIN, END, CONSTANT, FIRST_VARIABLE,
    ADD = 14, SUB, MUL, INV, ABS, SQUARE, SQRT, SIN, COS, TAN, ARCTAN, LOG, EXP, CUBE, N_SKELETON_TOKENS,
    PLUS = N_SKELETON_TOKENS, MINUS, FIRST_MANTISSA, FIRST_EXPONENT = FIRST_MANTISSA + 900,
};
/* Formulas that are read from text may also raise to a constant power, which stands at the token's place among the constants. */
enum { POWER = N_SKELETON_TOKENS };
enum { LOWEST_EXPONENT = -10, N_EXPONENTS = 19 };
enum { MAX_DIM = 10, N_POINTS = 200, MAX_NODES = 80, MAX_TERMS = 64, N_UNARY = CUBE - INV + 1 };

static inline int is_variable(int t) { return t >= FIRST_VARIABLE && t < ADD; }
static inline int is_binary(int t) { return t >= ADD && t <= MUL; }
static inline int is_unary(int t) { return t >= INV && t <= POWER; }
static inline int is_sum(int t) { return t == ADD || t == SUB; }

typedef struct {
    int8_t token[MAX_NODES];
    double constant[MAX_NODES];
    int length, is_full;
} Formula;

/* Why a candidate is in the corpus or not, in the order in which it is asked; the names stand in corpus/__init__.py. */
typedef enum {
    ACCEPTED, TOO_LONG, NOT_FINITE, FLAT, TOO_MANY_TERMS, LIKE_TERMS, NO_TERMS, HELD_OUT, TOO_FEW_ROWS, LOW_NOVELTY, THINNED,
    N_VERDICTS,
} Verdict;

enum { LEAN, E2ESR, PHYSICS, FROM_FILE };              /* laws of formulas */
enum { RANDOM, FILTERED, MATCHED };                    /* arms */
enum { WHITENED, MOVED, SHARED_BOX, BOXES, LOG_BOXES, CURVES, UNIT_TO_FIVE, N_INPUT_KINDS };

/* Mirrored field by field in corpus/library.py. */
typedef struct {
    uint64_t seed;
    int32_t law, arm, judge_kind;      /* judge_kind: inputs on which the filter judges; -1 for the formula's own */
    int32_t max_dim, max_nodes, max_float_tokens, min_points, tries;
    int32_t is_free;                   /* the filter judges beside a free intercept */
    double full_share;                 /* share of formulas with N_POINTS points; the others have fewer */
    double max_target, max_angle, tau;
    double dim_weights[MAX_DIM], input_weights[N_INPUT_KINDS];
    const uint64_t *held_out;          /* sorted */
    int64_t n_held_out;
    const double *keep;                /* MATCHED: (MAX_DIM, MAX_TERMS + 1), chance to stay by dimension and terms */
    const int8_t *file_tokens;         /* FROM_FILE: formulas one after the other, formula i from file_starts[i] on */
    const double *file_constants;
    const int64_t *file_starts;        /* (n_file + 1,) */
    const int8_t *file_dims;
    int64_t n_file;
} Settings;

/* ------------------------------------------------------------------ random numbers (splitmix64) */
typedef struct { uint64_t state; } Random;

static inline uint64_t next64(Random *r) {
    uint64_t z = (r->state += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}
static inline uint64_t mix(uint64_t a, uint64_t b) {
    Random r = {a * 0xD6E8FEB86659FD93ull + b};
    return next64(&r);
}
static inline double uniform(Random *r) { return (double)(next64(r) >> 11) * 0x1.0p-53; }
static inline int below(Random *r, int n) { return (int)(uniform(r) * n); }
static inline double log_uniform(Random *r, double low, double high) { return low * pow(high / low, uniform(r)); }
static double normal(Random *r) {
    double u = 1.0 - uniform(r), v = uniform(r);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}
static int pick(Random *r, const double *weights, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += weights[i];
    double u = uniform(r) * sum;
    for (int i = 0; i < n; i++) if ((u -= weights[i]) < 0) return i;
    return n - 1;
}
static void shuffle(Random *r, int *a, int n) {
    for (int i = n - 1; i > 0; i--) {
        int j = below(r, i + 1), x = a[i];
        a[i] = a[j];
        a[j] = x;
    }
}

/* ------------------------------------------------------------------ decimal constants of three digits */
/* Division by an exact power of ten rounds correctly, so Python's float("123e-2") is the same number. */
static double decimal(int mantissa, int exponent) {
    double power = 1;
    for (int i = abs(exponent); i > 0; i--) power *= 10;
    return exponent < 0 ? mantissa / power : mantissa * power;
}
static void digits(double c, int *mantissa, int *exponent) {
    double a = fabs(c);
    int e = (int)floor(log10(a)) - 2;
    double m = round(e < 0 ? a * decimal(1, -e) : a / decimal(1, e));
    if (m >= 1000) { m = round(m / 10); e++; }
    if (m < 100) { m *= 10; e--; }
    *mantissa = (int)m;
    *exponent = e;
}
#endif
