/* The additive terms of a formula: the rules of sobolev_novelty/algebra/terms.py, which defines them.
 *
 * A product is a coefficient and powers of bases, sorted by base; a sum is a list of products. Bases are numbered: equal
 * structure, equal number. Where Python compares structures, this compares their 64-bit hashes.
 */
#pragma once
#include "corpus.h"

enum { MAX_FACTORS = 24, MAX_BASES = 192, POOL = 6000, MAX_TOKENS = 256 };
typedef struct { double coefficient; int n; int16_t base[MAX_FACTORS]; double power[MAX_FACTORS]; } Product;
typedef struct { Product *product; int n; } Sum;       /* n < 0: more than the workspace holds */

typedef struct {
    uint64_t structure;
    int op, operand;                   /* a function of a base; a variable has its token as op, a sum has op 0 */
    int start, end;                    /* the slice of tokens it stands for; start < 0: the product in `sum` */
    Sum sum;                           /* what a sum or a product stands for; n = 0 for others */
    double leading;                    /* sums raised to powers: coefficient to which proportional ones refer */
    int is_whole;                      /* not to be opened: its terms would be too many */
} Base;

typedef struct {
    const int8_t *token;
    const double *constant;
    int end[MAX_TOKENS], n_bases, used;
    int n_failed;                      /* powers whose rule did not hold */
    Base base[MAX_BASES];
    Product pool[POOL];
} Terms;

static const Sum TOO_MANY = {NULL, -1};

static uint64_t bits(double x) { uint64_t b; memcpy(&b, &x, sizeof b); return b; }

/* Coefficients are told apart by twelve digits, as in terms.py. */
static uint64_t digits_hash(double x) {
    char text[40];
    uint64_t h = 5;
    snprintf(text, sizeof text, "%.12g", x);
    for (const char *c = text; *c; c++) h = mix(h, (uint64_t)(unsigned char)*c);
    return h;
}
static uint64_t powers_hash(const Terms *T, const Product *p) {
    uint64_t h = 0;
    for (int i = 0; i < p->n; i++) h += mix(T->base[p->base[i]].structure, bits(p->power[i]));
    return mix(11, h);
}
static Sum new_sum(Terms *T, int n) {
    if (n > MAX_TERMS || T->used + n > POOL) return TOO_MANY;
    Sum s = {T->pool + T->used, n};
    T->used += n;
    return s;
}
/* The number of this structure, or -1 when there are too many. */
static int number(Terms *T, uint64_t structure, Base fresh) {
    for (int i = 0; i < T->n_bases; i++) if (T->base[i].structure == structure) return i;
    if (T->n_bases == MAX_BASES) return -1;
    fresh.structure = structure;
    T->base[T->n_bases] = fresh;
    return T->n_bases++;
}
static Sum one_base(Terms *T, int base, double power, double coefficient) {
    if (base < 0) return TOO_MANY;
    Sum s = new_sum(T, 1);
    if (s.n > 0) *s.product = (Product){.coefficient = coefficient, .n = 1, .base = {(int16_t)base}, .power = {power}};
    return s;
}
static Sum a_constant(Terms *T, double value) {
    Sum s = new_sum(T, value != 0);
    if (s.n > 0) *s.product = (Product){.coefficient = value, .n = 0};
    return s;
}
static int same_powers(const Product *a, const Product *b) {
    return a->n == b->n && !memcmp(a->base, b->base, sizeof(int16_t) * (size_t)a->n) &&
           !memcmp(a->power, b->power, sizeof(double) * (size_t)a->n);
}
/* out = a b; false when there are too many factors. */
static int join(const Product *a, const Product *b, Product *out) {
    int i = 0, j = 0, n = 0;
    double coefficient = a->coefficient * b->coefficient;
    Product o;
    while (i < a->n || j < b->n) {
        if (n == MAX_FACTORS) return 0;
        int p = i < a->n ? a->base[i] : MAX_BASES, q = j < b->n ? b->base[j] : MAX_BASES;
        double power = 0;
        if (p <= q) power += a->power[i++];
        if (q <= p) power += b->power[j++];
        if (power != 0) { o.base[n] = (int16_t)(p < q ? p : q); o.power[n++] = power; }
    }
    o.coefficient = coefficient;
    o.n = n;
    *out = o;
    return 1;
}
/* Like terms added up, cancelled ones dropped, in order of first appearance. */
static Sum merged(Terms *T, Sum s) {
    if (s.n <= 0) return s;
    if (s.n == 1) return s.product->coefficient != 0 ? s : (Sum){s.product, 0};
    double magnitude[MAX_TERMS];
    Sum out = new_sum(T, s.n);
    if (out.n < 0) return out;
    int n = 0;
    for (int i = 0; i < s.n; i++) {
        int j = 0;
        while (j < n && !same_powers(&out.product[j], &s.product[i])) j++;
        if (j == n) { out.product[n++] = s.product[i]; magnitude[j] = fabs(s.product[i].coefficient); continue; }
        out.product[j].coefficient += s.product[i].coefficient;
        magnitude[j] += fabs(s.product[i].coefficient);
    }
    for (int j = 0; j < n; j++) if (!isfinite(magnitude[j])) return s;     /* adding up would overflow */
    int kept = 0;
    for (int j = 0; j < n; j++)
        if (fabs(out.product[j].coefficient) > 1e-12 * magnitude[j]) out.product[kept++] = out.product[j];
    out.n = kept;
    return out;
}
static int is_one_base(Sum s) { return s.n == 1 && s.product->coefficient == 1 && s.product->n == 1 && s.product->power[0] == 1; }

/* The number of a whole sum, used as one factor or as a function's operand. */
static int as_base(Terms *T, Sum s, int start, int end) {
    Sum m = merged(T, s);
    if (m.n < 0) return -1;
    if (is_one_base(m)) return m.product->base[0];
    uint64_t h = 0;
    for (int i = 0; i < m.n; i++) h += mix(digits_hash(m.product[i].coefficient), powers_hash(T, &m.product[i]));
    return number(T, mix(13, h), (Base){.start = start, .end = end, .sum = m});
}
static int is_usable(const Product *p) {
    if (!isfinite(p->coefficient) || p->coefficient == 0) return 0;
    for (int i = 0; i < p->n; i++) if (!isfinite(p->power[i])) return 0;
    return 1;
}
static int real_power(double x, double exponent, double *out) {
    *out = pow(x, exponent);
    return isfinite(*out) && *out != 0;
}
/* A base in the product that hides a factor: sqrt(x + 1)**2 is x + 1, and sqrt(x**2)**2 is x**2. */
static int hidden_factor(Terms *T, const Product *p, Sum *factor) {
    for (int i = 0; i < p->n; i++) {
        const Base *b = &T->base[p->base[i]];
        double e = p->power[i], c;
        if (b->sum.n == 0 || b->is_whole) continue;
        if (e == 1) { *factor = b->sum; return i; }
        if (b->sum.n != 1 || e != floor(e) || !real_power(b->sum.product->coefficient, e, &c)) continue;
        *factor = new_sum(T, 1);
        if (factor->n < 0) return i;
        *factor->product = *b->sum.product;
        factor->product->coefficient = c;
        for (int k = 0; k < factor->product->n; k++) factor->product->power[k] *= e;
        return i;
    }
    return -1;
}
static void drop_factor(Product *p, int i) {
    p->n--;
    memmove(p->base + i, p->base + i + 1, sizeof(int16_t) * (size_t)(p->n - i));
    memmove(p->power + i, p->power + i + 1, sizeof(double) * (size_t)(p->n - i));
}
/* Products in which no base hides a factor. `todo` is a stack with the first product on top. */
static Sum settled(Terms *T, Sum s) {
    Product todo[MAX_TERMS];
    Sum unused;
    int n_todo = 0, n_done = 0, is_settled = 1;
    for (int i = 0; i < s.n && is_settled; i++) is_settled = hidden_factor(T, &s.product[i], &unused) < 0;
    if (is_settled) return s;
    Sum done = new_sum(T, MAX_TERMS);
    if (done.n < 0) return done;
    for (int i = s.n - 1; i >= 0; i--) todo[n_todo++] = s.product[i];
    while (n_todo) {
        Product p = todo[--n_todo];
        Sum factor;
        int i = hidden_factor(T, &p, &factor);
        if (i < 0) { done.product[n_done++] = p; continue; }
        if (factor.n < 0 || n_done + n_todo + factor.n > MAX_TERMS) return TOO_MANY;
        int base = p.base[i], fits = 1;
        Product rest = p;
        drop_factor(&rest, i);
        for (int k = factor.n - 1; k >= 0; k--) {
            if (!join(&rest, &factor.product[k], &todo[n_todo + factor.n - 1 - k])) return TOO_MANY;
            fits &= is_usable(&todo[n_todo + factor.n - 1 - k]);
        }
        if (fits) { n_todo += factor.n; continue; }
        T->base[base].is_whole = 1;
        todo[n_todo++] = p;
    }
    done.n = n_done;
    return done;
}
/* A sum to a power: 2x + 2 and x + 1 are one base, with the ratio in the coefficient. */
static Sum sum_power(Terms *T, Sum m, int start, int end, double exponent) {
    int first = 0;
    uint64_t lowest = UINT64_MAX, h = 0, key[MAX_TERMS];
    for (int i = 0; i < m.n; i++) if ((key[i] = powers_hash(T, &m.product[i])) < lowest) { lowest = key[i]; first = i; }
    double leading = m.product[first].coefficient, factor;
    for (int i = 0; i < m.n; i++) h += mix(key[i], digits_hash(m.product[i].coefficient / leading));
    int base = number(T, mix(17, h), (Base){.start = start, .end = end, .sum = m, .leading = leading});
    if (base < 0) return TOO_MANY;
    double ratio = leading / T->base[base].leading;
    if ((exponent == floor(exponent) || ratio > 0) && real_power(ratio, exponent, &factor))
        return one_base(T, base, exponent, factor);
    return one_base(T, as_base(T, m, start, end), exponent, 1);
}
/* s to a constant power, as one product; n = 0 where the numeric factor has no such power. */
static Sum raised(Terms *T, Sum s, int start, int end, double exponent) {
    Sum m = merged(T, s);
    if (m.n <= 0) return m;
    if (m.n > 1) return sum_power(T, m, start, end, exponent);
    const Product *p = m.product;
    double factor;
    if (exponent == floor(exponent)) {
        if (!real_power(p->coefficient, exponent, &factor)) return (Sum){NULL, 0};
        Sum out = new_sum(T, 1);
        if (out.n < 0) return out;
        *out.product = *p;
        out.product->coefficient = factor;
        for (int i = 0; i < p->n; i++) out.product->power[i] *= exponent;
        return out;
    }
    if (!(p->coefficient > 0) || !real_power(p->coefficient, exponent, &factor))
        return one_base(T, as_base(T, m, start, end), exponent, 1);
    Sum bare = new_sum(T, 1);
    if (bare.n < 0) return bare;
    *bare.product = *p;
    bare.product->coefficient = 1;
    return one_base(T, as_base(T, bare, -1, -1), exponent, factor);
}
static int is_constant(Sum s, double *value) {
    *value = 0;
    for (int i = 0; i < s.n; i++) {
        if (s.product[i].n) return 0;
        *value += s.product[i].coefficient;
    }
    return 1;
}
static double of_constants(int op, double a, double b) {
    switch (op) {
    case ADD: return a + b;
    case SUB: return a - b;
    case MUL: return a * b;
    case INV: return 1 / a;
    case ABS: return fabs(a);
    case SQUARE: return a * a;
    case SQRT: return sqrt(a);
    case SIN: return sin(a);
    case COS: return cos(a);
    case TAN: return tan(a);
    case ARCTAN: return atan(a);
    case LOG: return log(a);
    case EXP: return exp(a);
    case POWER: return pow(a, b);
    default: return a * a * a;
    }
}
static Sum distributed(Terms *T, int op, Sum a, Sum b) {
    Sum out = new_sum(T, op == MUL ? a.n * b.n : a.n + b.n);
    if (out.n < 0) return out;
    if (op == MUL) {
        for (int i = 0; i < a.n; i++)
            for (int j = 0; j < b.n; j++)
                if (!join(&a.product[i], &b.product[j], &out.product[i * b.n + j])) return TOO_MANY;
        return out;
    }
    for (int i = 0; i < a.n; i++) out.product[i] = a.product[i];
    for (int j = 0; j < b.n; j++) {
        out.product[a.n + j] = b.product[j];
        if (op == SUB) out.product[a.n + j].coefficient = -b.product[j].coefficient;
    }
    return out;
}
/* The rule of an operator that additive structure passes through. *holds: whether there is one. */
static Sum by_rule(Terms *T, int op, Sum a, Sum b, double exponent, int start, int end, int *holds) {
    Sum s;
    switch (op) {
    case ADD: case SUB: case MUL: s = distributed(T, op, a, b); *holds = 1; break;
    case INV: s = raised(T, a, start, end, -1); *holds = s.n != 0; break;
    case SQUARE: s = raised(T, a, start, end, 2); *holds = s.n != 0; break;
    case CUBE: s = raised(T, a, start, end, 3); *holds = s.n != 0; break;
    case SQRT: s = raised(T, a, start, end, 0.5); *holds = s.n != 0; break;
    case POWER: s = raised(T, a, start, end, exponent); *holds = s.n != 0; break;
    default: *holds = 0; return (Sum){NULL, 0};
    }
    for (int i = 0; i < s.n; i++) *holds &= is_usable(&s.product[i]);
    return s;
}
static Sum expand(Terms *T, int p) {
    int op = T->token[p], second = 0;
    if (op == CONSTANT) return a_constant(T, T->constant[p]);
    if (is_variable(op)) return one_base(T, number(T, mix(2, (uint64_t)op), (Base){.op = op, .start = p, .end = p + 1}), 1, 1);
    Sum a = expand(T, p + 1), b = {NULL, 0};
    if (a.n < 0) return a;
    if (is_binary(op)) {
        second = T->end[p + 1];
        if ((b = expand(T, second)).n < 0) return b;
    }
    double u, v = op == POWER ? T->constant[p] : 0;
    if (is_constant(a, &u) && (!second || is_constant(b, &v)) && isfinite(of_constants(op, u, v)))
        return a_constant(T, of_constants(op, u, v));
    int holds;
    Sum s = by_rule(T, op, a, b, T->constant[p], p + 1, T->end[p + 1], &holds);
    if (s.n < 0) return s;
    if (holds) return settled(T, s);
    T->n_failed += !second && (op == INV || op == SQUARE || op == CUBE || op == SQRT || op == POWER);
    int child = as_base(T, a, p + 1, T->end[p + 1]), other = second ? as_base(T, b, second, T->end[second]) : 0;
    if (child < 0 || other < 0) return TOO_MANY;
    uint64_t h = T->base[child].structure;
    if (second) {
        uint64_t k = T->base[other].structure;
        h = op == SUB ? mix(h, k) : mix(3, h) + mix(3, k);
    }
    if (op == POWER) h = mix(h, bits(T->constant[p]));
    Base fresh = {.op = op, .operand = child, .start = p, .end = T->end[p]};
    return one_base(T, number(T, mix(100 + (uint64_t)op, h), fresh), 1, 1);
}
/* Merged terms of a formula; *n_before counts them before like terms were merged. */
static Sum additive_terms(Terms *T, const int8_t *token, const double *constant, int length, int *n_before) {
    T->token = token;
    T->constant = constant;
    T->n_bases = T->used = T->n_failed = 0;
    for (int p = length - 1; p >= 0; p--) {
        int t = token[p];
        T->end[p] = is_binary(t) ? T->end[T->end[p + 1]] : is_unary(t) ? T->end[p + 1] : p + 1;
    }
    Sum s = expand(T, 0);
    *n_before = s.n;
    return merged(T, s);
}
