/* Physics grammar: unit-consistent sums of one to three monomials, some with a function of a dimensionless ratio.
 *
 * Each input has a unit, a vector of SI exponents. Inputs of the first term have units of common quantities; in every
 * further term one input, which occurs in no term before, gets the unit that makes the sum consistent. The numbers are a grammar's,
 * not those of any published corpus.
 */
#pragma once
#include "generate.h"

enum { N_UNITS = 5, MAX_UNIT = 4 };                    /* kg, m, s, A, K */
typedef struct { int8_t of[MAX_DIM][N_UNITS]; } Units;

static const int8_t QUANTITIES[][N_UNITS] = {
    {1, 0, 0, 0, 0}, {0, 1, 0, 0, 0}, {0, 1, 0, 0, 0}, {0, 0, 1, 0, 0}, {0, 0, -1, 0, 0},  /* mass, length, radius, time, frequency */
    {0, 1, -1, 0, 0}, {0, 1, -2, 0, 0}, {1, 1, -1, 0, 0}, {1, 1, -2, 0, 0}, {1, 2, -2, 0, 0},  /* speed, acceleration, momentum, force, energy */
    {1, 2, -3, 0, 0}, {1, -1, -2, 0, 0}, {1, -3, 0, 0, 0}, {0, 0, 1, 1, 0}, {0, 0, 0, 1, 0},  /* power, pressure, density, charge, current */
    {1, 1, -3, -1, 0}, {1, 0, -2, -1, 0}, {1, 2, -3, -1, 0}, {0, 0, 0, 0, 1}, {1, 2, -2, 0, -1},  /* electric, magnetic field, voltage, temperature, entropy */
    {0, -1, 0, 0, 0}, {0, 2, 0, 0, 0}, {0, 3, 0, 0, 0}, {0, 0, 0, 0, 0},                      /* wave number, area, volume, a number */
};
enum { N_QUANTITIES = sizeof QUANTITIES / sizeof QUANTITIES[0] };

/* One monomial: factors with exponents in halves, and a function (0: none) of a product of powers ±1. */
typedef struct { int variable[MAX_DIM], halves[MAX_DIM], n, function, ratio[2], ratio_sign, n_ratio, closing; } Monomial;
enum { ROOT_OF_REST = N_SKELETON_TOKENS + 1, INVERSE_ROOT_OF_REST };   /* sqrt(1 - r²), and its inverse */

static int draw_halves(Random *r) {                    /* exponents 1, 2, -1, -2, 1/2, 3 */
    static const int halves[6] = {2, 4, -2, -4, 1, 6};
    static const double weights[6] = {.55, .16, .2, .05, .02, .02};
    return halves[pick(r, weights, 6)];
}
/* A dimensionless argument: an angle, a ratio or a product whose second input has the unit that it needs. */
static void draw_function(Random *r, Monomial *m, Units *u) {
    static const int functions[5] = {SIN, COS, EXP, ROOT_OF_REST, INVERSE_ROOT_OF_REST};
    static const double weights[5] = {.25, .25, .3, .1, .1};
    m->function = functions[pick(r, weights, 5)];
    m->n_ratio = m->n >= 3 && uniform(r) < .8 ? 2 : 1;
    for (int k = 0; k < m->n_ratio; k++) m->ratio[k] = m->variable[--m->n];
    if (m->n_ratio == 1) { memset(u->of[m->ratio[0]], 0, N_UNITS); return; }
    m->ratio_sign = m->function >= ROOT_OF_REST || uniform(r) < .6 ? -1 : 1;
    for (int k = 0; k < N_UNITS; k++) u->of[m->ratio[1]][k] = (int8_t)(-m->ratio_sign * u->of[m->ratio[0]][k]);
}
static void unit_of(const Monomial *m, const Units *u, int without, int *halves) {
    memset(halves, 0, sizeof(int) * N_UNITS);
    for (int i = 0; i < m->n; i++)
        for (int k = 0; k < N_UNITS && m->variable[i] != without; k++) halves[k] += m->halves[i] * u->of[m->variable[i]][k];
}
/* The unit that the closing input of a term needs; false where it is not one of small whole numbers. */
static int close_unit(Monomial *m, Units *u, const int *wanted) {
    int rest[N_UNITS], place = 0;
    unit_of(m, u, m->closing, rest);
    while (m->variable[place] != m->closing) place++;
    for (int k = 0; k < N_UNITS; k++) {
        int missing = wanted[k] - rest[k], exponent = m->halves[place];
        if (missing % exponent || abs(missing / exponent) > MAX_UNIT) return 0;
        u->of[m->closing][k] = (int8_t)(missing / exponent);
    }
    return 1;
}
static void put_power(Formula *f, int variable, int halves) {
    if (halves == 1) put(f, SQRT, 0);
    if (halves == 4) put(f, SQUARE, 0);
    if (halves == 6) put(f, CUBE, 0);
    put(f, FIRST_VARIABLE + variable, 0);
}
static void put_ratio(Formula *f, const Monomial *m) {
    if (m->n_ratio == 2) put(f, MUL, 0);
    put(f, FIRST_VARIABLE + m->ratio[0], 0);
    if (m->n_ratio == 2 && m->ratio_sign < 0) put(f, INV, 0);
    if (m->n_ratio == 2) put(f, FIRST_VARIABLE + m->ratio[1], 0);
}
static void put_function(Formula *f, Random *r, const Monomial *m) {
    if (m->function >= ROOT_OF_REST) {
        if (m->function == INVERSE_ROOT_OF_REST) put(f, INV, 0);
        put(f, SQRT, 0); put(f, SUB, 0); put(f, CONSTANT, 1); put(f, SQUARE, 0);
    } else {
        put(f, m->function, 0);
        if (m->function == EXP && uniform(r) < .7) { put(f, MUL, 0); put(f, CONSTANT, -1); }
        else if (uniform(r) < .3) { put(f, MUL, 0); put_prefactor(f, r); }
    }
    put_ratio(f, m);
}
/* Small numbers, multiples of pi to three digits, now and then any number. */
static void put_number(Formula *f, Random *r) {
    static const double numbers[12] = {2, 3, 4, .5, .25, .333, .667, 3.14, 6.28, 12.6, 1.57, .159};
    double u = uniform(r);
    if (u < .35) return;
    put(f, MUL, 0);
    if (u < .8) put(f, CONSTANT, numbers[below(r, 12)]);
    else put_prefactor(f, r);
}
static void write_monomial(Formula *f, Random *r, const Monomial *m) {
    int n_above = 0, n_below = 0, above[MAX_DIM + 1], below_line[MAX_DIM];
    for (int i = 0; i < m->n; i++) {
        if (m->halves[i] > 0) above[n_above++] = i;
        else below_line[n_below++] = i;
    }
    if (m->function) above[n_above++] = -1;
    put_number(f, r);
    for (int i = 0; i < n_above; i++) {
        if (i < n_above - 1 || n_below) put(f, MUL, 0);
        if (above[i] < 0) put_function(f, r, m);
        else put_power(f, m->variable[above[i]], m->halves[above[i]]);
    }
    if (n_below) put(f, INV, 0);
    for (int i = 0; i < n_below; i++) {
        if (i < n_below - 1) put(f, MUL, 0);
        put_power(f, m->variable[below_line[i]], -m->halves[below_line[i]]);
    }
}
/* Inputs dealt to the terms, a later term also borrows one from an earlier; returns whether the units close. */
static int draw_monomials(Random *r, int dim, int n_terms, Monomial *term, Units *u) {
    int order[MAX_DIM], wanted[N_UNITS];
    for (int j = 0; j < dim; j++) {
        order[j] = j;
        memcpy(u->of[j], QUANTITIES[below(r, N_QUANTITIES)], N_UNITS);
    }
    shuffle(r, order, dim);
    for (int t = 0; t < n_terms; t++) term[t] = (Monomial){.n = 1, .variable = {order[t]}, .closing = order[t]};
    for (int j = n_terms; j < dim; j++) {
        Monomial *m = &term[below(r, n_terms)];
        m->variable[m->n++] = order[j];
    }
    for (int t = 0; t < n_terms; t++) {
        Monomial *m = &term[t];
        if (m->n > 1 && uniform(r) < .35) draw_function(r, m, u);
        if (t && m->n < MAX_DIM && uniform(r) < .5) {
            const Monomial *from = &term[below(r, t)];
            m->variable[m->n++] = from->variable[below(r, from->n)];
        }
        for (int i = 0; i < m->n; i++) m->halves[i] = draw_halves(r);
        if (t == 0) unit_of(m, u, -1, wanted);
        else if (!close_unit(m, u, wanted)) return 0;
    }
    return 1;
}
static void generate_physics(Random *r, int dim, Formula *f, Units *u) {
    static const double weights[3] = {.45, .37, .18};
    Monomial term[3];
    int n_terms = 1 + pick(r, weights, dim < 3 ? dim : 3), closes = 0;
    f->length = f->is_full = 0;
    for (int attempt = 0; attempt < 20 && !closes; attempt++) closes = draw_monomials(r, dim, n_terms, term, u);
    if (!closes) { f->is_full = 1; return; }
    double whole = uniform(r);                         /* a root or an inverse of the whole sum keeps it consistent */
    if (n_terms > 1 && whole < .12) put(f, whole < .07 ? SQRT : INV, 0);
    for (int t = 0; t < n_terms; t++) {
        if (t < n_terms - 1) put(f, uniform(r) < .65 ? ADD : SUB, 0);
        write_monomial(f, r, &term[t]);
    }
}
