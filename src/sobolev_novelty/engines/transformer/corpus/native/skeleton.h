/* The hash of a formula's skeleton: its additive terms without their constants.
 *
 * Two formulas have the same hash when they differ only in coefficients (inside functions too), signs, an offset, the order of
 * operands and the names of variables. Names are erased by colouring: the colour of a variable is the hash of the
 * formula in which it alone is marked. The few pairs that colours cannot tell apart count as equal, which holds out more.
 */
#pragma once
#include "terms.h"

static uint64_t product_hash(const Product *p, const uint64_t *base_hash) {
    if (p->n == 0) return mix(23, 1);
    if (p->n == 1 && p->power[0] == 1) return base_hash[p->base[0]];
    uint64_t h = 0;
    for (int i = 0; i < p->n; i++) h += mix(base_hash[p->base[i]], bits(p->power[i]));
    return mix(29, h);
}
static uint64_t sum_hash(Sum s, const uint64_t *base_hash, int without_constant) {
    uint64_t h = 0, only = 0;
    int n = 0;
    for (int i = 0; i < s.n; i++) {
        if (without_constant && s.product[i].n == 0 && s.n > 1) continue;
        h += mix(31, only = product_hash(&s.product[i], base_hash));
        n++;
    }
    return n == 1 ? only : mix(37, h);
}
static uint64_t coloured_hash(const Terms *T, Sum terms, const uint64_t *colour) {
    uint64_t hash[MAX_BASES];
    for (int i = 0; i < T->n_bases; i++) {             /* a base is made of bases with smaller numbers */
        const Base *b = &T->base[i];
        if (is_variable(b->op)) hash[i] = mix(41, colour[b->op - FIRST_VARIABLE]);
        else if (b->op) hash[i] = mix(43 + (uint64_t)b->op, hash[b->operand]);
        else hash[i] = sum_hash(b->sum, hash, 0);
    }
    return sum_hash(terms, hash, 1);
}
static uint64_t skeleton_hash(const Terms *T, Sum terms) {
    uint64_t colour[MAX_DIM] = {0}, refined[MAX_DIM];
    for (int j = 0; j < MAX_DIM; j++) {
        colour[j] = 1;
        refined[j] = coloured_hash(T, terms, colour);
        colour[j] = 0;
    }
    return coloured_hash(T, terms, refined);
}
