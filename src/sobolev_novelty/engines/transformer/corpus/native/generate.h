/* Random formulas: the lean law, and E2ESR's own (Kamienny et al. 2022). */
#pragma once
#include "corpus.h"

typedef struct { int op, left, right, parent, size, first_variable; } Node;
typedef struct { Node node[64]; int count, root; } Tree;

static void put(Formula *f, int token, double constant) {
    if (f->length >= MAX_NODES) { f->is_full = 1; return; }
    f->token[f->length] = (int8_t)token;
    f->constant[f->length++] = constant;
}

/* ------------------------------------------------------------------ trees */
static void hang(Tree *t, int old, int new) {          /* new takes the place of old under old's parent */
    int parent = t->node[new].parent = t->node[old].parent;
    if (parent < 0) t->root = new;
    else if (t->node[parent].left == old) t->node[parent].left = new;
    else t->node[parent].right = new;
    t->node[old].parent = new;
}
/* Rémy's algorithm: every binary tree with n_binary operators is equally likely. */
static void grow_binary(Tree *t, Random *r, int n_binary, double share_add, double share_sub) {
    t->count = 1;
    t->root = 0;
    t->node[0] = (Node){.op = FIRST_VARIABLE, .left = -1, .right = -1, .parent = -1};
    for (int k = 0; k < n_binary; k++) {
        int old = below(r, t->count), new = t->count, leaf = t->count + 1;
        t->count += 2;
        double u = uniform(r);
        int op = u < share_add ? ADD : u < share_add + share_sub ? SUB : MUL, is_left = uniform(r) < 0.5;
        t->node[new] = (Node){.op = op, .left = is_left ? old : leaf, .right = is_left ? leaf : old};
        hang(t, old, new);
        t->node[leaf] = (Node){.op = FIRST_VARIABLE, .left = -1, .right = -1, .parent = new};
    }
}
static void name_leaves(Tree *t, Random *r, int dim) { /* each variable once, then any */
    int leaf[64], n = 0;
    for (int i = 0; i < t->count; i++) if (t->node[i].left < 0) leaf[n++] = i;
    shuffle(r, leaf, n);
    for (int i = 0; i < n; i++) t->node[leaf[i]].op = FIRST_VARIABLE + (i < dim ? i : below(r, dim));
}
static void put_unary_above(Tree *t, int i, int op) {
    int new = t->count++;
    t->node[new] = (Node){.op = op, .left = i, .right = -1};
    hang(t, i, new);
}
static int measure(Tree *t, int i) {
    Node *n = &t->node[i];
    n->size = 1;
    n->first_variable = n->op;
    if (n->left < 0) return 1;
    n->size += measure(t, n->left);
    n->first_variable = t->node[n->left].first_variable;
    if (is_binary(n->op)) {
        n->size += measure(t, n->right);
        if (t->node[n->right].first_variable < n->first_variable) n->first_variable = t->node[n->right].first_variable;
    }
    return n->size;
}

/* ------------------------------------------------------------------ lean: constants only where they matter */
/* Cauchy, 0.01 <= |c| < 99.9, three digits. */
static void put_cauchy(Formula *f, Random *r) {
    double c;
    do c = tan(3.141592653589793 * (uniform(r) - 0.5)); while (!(fabs(c) >= 0.01 && fabs(c) < 99.9));
    int mantissa, exponent;
    digits(c, &mantissa, &exponent);
    put(f, CONSTANT, copysign(decimal(mantissa, exponent), c));
}
static int undoes(int outer, int inner) {              /* compositions that a simplifier would remove */
    switch (outer) {
    case INV: return inner == INV || inner == EXP;
    case ABS: return inner == ABS || inner == SQUARE || inner == SQRT || inner == EXP;
    case SQUARE: return inner == ABS || inner == SQRT || inner == EXP || inner == INV;
    case SQRT: return inner == SQUARE || inner == EXP || inner == INV;
    case LOG: return inner == EXP || inner == INV || inner == SQUARE || inner == SQRT || inner == CUBE;
    case EXP: return inner == LOG;
    case CUBE: return inner == EXP || inner == INV;
    }
    return 0;
}
static int operands(const Tree *t, int i, int in_sum, int sign, int *id, int *signs, int k) {
    const Node *n = &t->node[i];
    if (in_sum ? !is_sum(n->op) : n->op != MUL) { id[k] = i; signs[k] = sign; return k + 1; }
    k = operands(t, n->left, in_sum, sign, id, signs, k);
    return operands(t, n->right, in_sum, n->op == SUB ? -sign : sign, id, signs, k);
}
/* One order for operands that commute: by first variable, then size, then operator. */
static int sorted_operands(const Tree *t, int i, int in_sum, int *id, int *signs) {
    int n = operands(t, i, in_sum, 1, id, signs, 0);
    for (int a = 1; a < n; a++)
        for (int b = a; b > 0; b--) {
            const Node *p = &t->node[id[b - 1]], *q = &t->node[id[b]];
            if (p->first_variable * 10000 + p->size * 100 + p->op <= q->first_variable * 10000 + q->size * 100 + q->op) break;
            int x = id[b]; id[b] = id[b - 1]; id[b - 1] = x;
            x = signs[b]; signs[b] = signs[b - 1]; signs[b - 1] = x;
        }
    return n;
}
static void write_lean(const Tree *t, int i, Formula *f, Random *r, double share_offset);

/* A right comb in canonical order; coefficients swallow signs, and the first term is never negative. */
static void write_sum(const Tree *t, int i, Formula *f, Random *r, double share_offset) {
    int id[32], sign[32], has_coefficient[32], n = sorted_operands(t, i, 1, id, sign);
    for (int j = 0; j < n; j++) if ((has_coefficient[j] = uniform(r) < 0.4)) sign[j] = 1;
    if (uniform(r) < share_offset) { put(f, ADD, 0); put_cauchy(f, r); }
    int flip = sign[0];
    for (int j = 0; j < n; j++) {
        if (j < n - 1) {
            int is_same = sign[j + 1] * flip > 0;
            put(f, is_same ? ADD : SUB, 0);
            if (!is_same) flip = -flip;
        }
        if (has_coefficient[j]) { put(f, MUL, 0); put_cauchy(f, r); }
        write_lean(t, id[j], f, r, 0.0);
    }
}
static void write_product(const Tree *t, int i, Formula *f, Random *r) {
    int id[32], sign[32], n = sorted_operands(t, i, 0, id, sign);
    for (int j = 0; j < n; j++) {
        if (j < n - 1) put(f, MUL, 0);
        write_lean(t, id[j], f, r, 0.15);
    }
}
/* Constants inside a function: no scale where it could be drawn out, no shift where it could. */
static void write_inner_constants(int op, Formula *f, Random *r) {
    double u = uniform(r);
    if ((op >= SIN && op <= ARCTAN) || op == EXP) {
        if (u < 0.2 && op != EXP) { put(f, ADD, 0); put_cauchy(f, r); }
        if (u < 0.5) { put(f, MUL, 0); put_cauchy(f, r); }
    } else if (u < 0.35) {
        put(f, ADD, 0);
        put_cauchy(f, r);
        if (uniform(r) < 0.4) { put(f, MUL, 0); put_cauchy(f, r); }
    }
}
static void write_lean(const Tree *t, int i, Formula *f, Random *r, double share_offset) {
    const Node *n = &t->node[i];
    if (f->is_full) return;
    if (is_sum(n->op)) { write_sum(t, i, f, r, share_offset); return; }
    if (n->op == MUL) { write_product(t, i, f, r); return; }
    put(f, n->op, 0);
    if (!is_unary(n->op)) return;
    if (!is_sum(t->node[n->left].op)) write_inner_constants(n->op, f, r);
    write_lean(t, n->left, f, r, 0.25);
}
static void generate_lean(Random *r, int dim, Formula *f) {
    static const double extra[5] = {.35, .25, .2, .12, .08}, unaries[5] = {.2, .3, .25, .15, .1};
    static const double weights[N_UNARY] = {3, .6, 3, 3, 1.2, 1.2, .2, .3, 1, 1.5, .7};     /* INV .. CUBE */
    Tree t;
    int n_binary = dim - 1 + pick(r, extra, 5), n_unary = pick(r, unaries, 5);
    if (n_binary == 0 && n_unary == 0) n_unary = 1;
    grow_binary(&t, r, n_binary, 0.25, 0.2);
    name_leaves(&t, r, dim);
    for (int k = 0; k < n_unary; k++)
        for (int attempt = 0; attempt < 8; attempt++) {
            measure(&t, t.root);
            int i = below(r, t.count), op = INV + pick(r, weights, N_UNARY), parent = t.node[i].parent;
            if (t.node[i].size > 8 || undoes(op, t.node[i].op) || (parent >= 0 && undoes(t.node[parent].op, op))) continue;
            put_unary_above(&t, i, op);
            break;
        }
    measure(&t, t.root);
    f->length = f->is_full = 0;
    if (!is_sum(t.node[t.root].op)) {
        if (uniform(r) < 0.3) { put(f, ADD, 0); put_cauchy(f, r); }
        if (uniform(r) < 0.5) { put(f, MUL, 0); put_cauchy(f, r); }
    }
    write_lean(&t, t.root, f, r, 0.3);
}

/* ------------------------------------------------------------------ E2ESR: a constant at every term and in every function */
/* sign * U{1..999} * 10^U{-3..-1} */
static void put_prefactor(Formula *f, Random *r) {
    double sign = uniform(r) < 0.5 ? -1 : 1;
    int mantissa = 1 + below(r, 999);
    put(f, CONSTANT, sign * decimal(mantissa, -3 + below(r, 3)));
}
/* Returns whether a constant was written. */
static int write_e2esr(const Tree *t, int i, Formula *f, Random *r) {
    const Node *n = &t->node[i];
    int wrote = 0;
    put(f, n->op, 0);
    if (n->left < 0 || f->is_full) return 0;
    if (is_unary(n->op) && !is_sum(t->node[n->left].op)) {
        put(f, ADD, 0); put_prefactor(f, r); put(f, MUL, 0); put_prefactor(f, r);
        wrote = 1;
    }
    for (int side = 0; side < (is_binary(n->op) ? 2 : 1); side++) {
        int child = side ? n->right : n->left;
        if (is_sum(n->op) && !is_sum(t->node[child].op)) { put(f, MUL, 0); put_prefactor(f, r); wrote = 1; }
        wrote |= write_e2esr(t, child, f, r);
    }
    return wrote;
}
static void generate_e2esr(Random *r, int dim, int n_unary, Formula *f) {
    static const double weights[N_UNARY] = {3, 1, 3, 5, 1, 1, .2, .2, 1, 1, 1};
    Tree t;
    int place[64], n_places = 0;
    grow_binary(&t, r, dim - 1 + below(r, 5), 1.0 / 3, 1.0 / 3);
    name_leaves(&t, r, dim);
    measure(&t, t.root);
    /* Unaries stand above subtrees of fewer than six symbols, never above the root. */
    for (int i = 0; i < t.count; i++) if (i != t.root && t.node[i].size < 6) place[n_places++] = i;
    shuffle(r, place, n_places);
    for (int k = 0; k < n_unary && k < n_places; k++) put_unary_above(&t, place[k], INV + pick(r, weights, N_UNARY));
    Formula body = {.length = 0, .is_full = 0};
    int has_constant = write_e2esr(&t, t.root, &body, r);
    f->length = f->is_full = 0;
    put(f, ADD, 0);
    put_prefactor(f, r);
    if (!has_constant) { put(f, MUL, 0); put_prefactor(f, r); }
    for (int i = 0; i < body.length; i++) put(f, body.token[i], body.constant[i]);
    f->is_full |= body.is_full;
}
