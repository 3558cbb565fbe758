/* Text of a formula -> prefix tokens, where it is made of this unit's operators.
 *
 * The grammar is that of sobolev_novelty/language/parsing/machine.py. A text that this reader does not know for certain is left to that
 * one: refused here does not mean wrong. Quotients become products with inverses, negations products with -1.
 */
#pragma once
#include "terms.h"

enum { MAX_TEXT = 8192, MAX_NAME = 64, MAX_WAITING = 256 };
/* What a word may mean where it is called, beside the unit's own tokens. */
enum { UNKNOWN = 0, CALL_DIV = 100, CALL_POW, CALL_NEG };

/* Words that are not variables, and the columns there are (none: any name is a variable). Sorted by bytes. */
typedef struct {
    const char *const *word;
    const int32_t *call;               /* token of the function, or UNKNOWN */
    const double *value;               /* of a constant; nan where the word is no operand */
    int32_t n_words;
    const char *const *column;
    const int32_t *column_index;
    int32_t n_columns;
} Words;

typedef struct { int op, left, right; double constant; } ReadNode;
typedef struct { int precedence, op, below; } Waiting;
typedef struct { const char *name; int length; int64_t key; } Variable;

typedef struct {
    ReadNode node[MAX_TOKENS];
    int operand[MAX_TOKENS], n_nodes, n_operands;
    Waiting waiting[MAX_WAITING];
    int n_waiting;
    Variable variable[MAX_DIM];
    int n_variables;
    int8_t token[MAX_TOKENS];          /* the result */
    double constant[MAX_TOKENS];
    int length;
} Reader;

static inline int is_digit(int c) { return c >= '0' && c <= '9'; }
static inline int is_word(int c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

static int find_word(const char *const *sorted, int n, const char *name, int length) {
    int low = 0, high = n;
    while (low < high) {
        int middle = (low + high) / 2, order = strncmp(sorted[middle], name, (size_t)length);
        if (order == 0) order = sorted[middle][length] != 0;
        if (order == 0) return middle;
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return -1;
}
static int push(Reader *r, int op, int left, int right, double constant) {
    if (r->n_nodes == MAX_TOKENS || r->n_operands == MAX_TOKENS) return 0;
    r->node[r->n_nodes] = (ReadNode){op, left, right, constant};
    r->operand[r->n_operands++] = r->n_nodes++;
    return 1;
}
/* Digits with a point and an exponent, as Python reads them; NULL where the number is not plain. */
static const char *read_number(const char *p, const char *end, double *value) {
    char text[64];
    const char *start = p;
    int n_digits = 0, is_zero = 1;
    for (; p < end && (is_digit(*p) || *p == '.'); p++) {
        if (*p == '.' && memchr(start, '.', (size_t)(p - start))) return NULL;
        n_digits += is_digit(*p);
        is_zero &= *p == '0' || *p == '.';
    }
    if (!n_digits) return NULL;
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-')) p++;
        if (p == end || !is_digit(*p)) return NULL;
        while (p < end && is_digit(*p)) p++;
    }
    if ((p < end && (is_word(*p) || *p == '.')) || p - start >= (int)sizeof text) return NULL;
    memcpy(text, start, (size_t)(p - start));
    text[p - start] = 0;
    char *stop;
    *value = strtod(text, &stop);
    return *stop || !isfinite(*value) || (*value == 0 && !is_zero) ? NULL : p;
}
/* The number of x0, x1, …; -1 for another name, -2 for a name that Python may renumber. */
static int numbered(const char *name, int length) {
    if (name[0] != 'x' && name[0] != 'X') return -1;
    int i = 1 + (length > 1 && name[1] == '_'), value = 0;
    if (i == length) return -1;
    for (int k = i; k < length; k++) {
        if (!is_digit(name[k])) return -1;
        value = value < 1000000 ? 10 * value + name[k] - '0' : value;
    }
    return name[0] == 'x' && i == 1 && (name[1] != '0' || length == 2) && length <= 7 ? value : -2;
}
static int read_variable(Reader *r, const Words *w, const char *name, int length) {
    for (int j = 0; j < r->n_variables; j++)
        if (r->variable[j].length == length && !memcmp(r->variable[j].name, name, (size_t)length))
            return push(r, FIRST_VARIABLE + j, -1, -1, 0);
    int64_t key;
    if (w->n_columns) {
        int found = find_word(w->column, w->n_columns, name, length);
        if (found < 0) return 0;
        key = w->column_index[found];
    } else if ((key = numbered(name, length)) == -2) return 0;
    if (r->n_variables == MAX_DIM) return 0;
    r->variable[r->n_variables] = (Variable){name, length, key};
    return push(r, FIRST_VARIABLE + r->n_variables++, -1, -1, 0);
}
static int precedence_of(int op) { return op == ADD || op == SUB ? 1 : op == CALL_NEG ? 3 : op == CALL_POW ? 4 : 2; }

static int apply(Reader *r, int op) {                  /* to the operands on top; false where Python must decide */
    int last = r->operand[--r->n_operands];
    ReadNode *b = &r->node[last];
    if (op == CALL_NEG) {
        if (b->op == CONSTANT) {
            b->constant = -b->constant;
            r->operand[r->n_operands++] = last;
            return 1;
        }
        if (!push(r, CONSTANT, -1, -1, -1)) return 0;
        return push(r, MUL, r->operand[--r->n_operands], last, 0);
    }
    if (is_unary(op)) return push(r, op, last, -1, 0);
    int first = r->operand[--r->n_operands];
    ReadNode *a = &r->node[first];
    if (op == CALL_POW) {
        double e = b->constant;
        if (b->op != CONSTANT || e == 0 || fabs(e) > 10000) return 0;
        if (e != 1) return push(r, POWER, first, -1, e);
        r->operand[r->n_operands++] = first;
        return 1;
    }
    if (op == CALL_DIV) {
        if (a->op == CONSTANT && b->op == CONSTANT) {
            double quotient = a->constant / b->constant;
            return isfinite(quotient) && push(r, CONSTANT, -1, -1, quotient);
        }
        if (!push(r, INV, last, -1, 0)) return 0;
        last = r->operand[--r->n_operands];
        return push(r, MUL, first, last, 0);
    }
    return push(r, op, first, last, 0);
}
static int reduce(Reader *r, int precedence) {         /* what waits with at least this precedence */
    while (r->waiting[r->n_waiting - 1].precedence >= precedence)
        if (!apply(r, r->waiting[--r->n_waiting].op)) return 0;
    return 1;
}
static int wait_for(Reader *r, Waiting entry) {
    if (r->n_waiting == MAX_WAITING) return 0;
    r->waiting[r->n_waiting++] = entry;
    return 1;
}
static int close_bracket(Reader *r) {
    if (!reduce(r, 1) || r->n_waiting == 1) return 0;
    Waiting open = r->waiting[--r->n_waiting];
    int n = r->n_operands - open.below;
    if (open.op == UNKNOWN) return n == 1;
    int arity = is_unary(open.op) || open.op == CALL_NEG ? 1 : 2;
    return n == arity && apply(r, open.op);
}
/* A word where an operand may begin: a call, a constant or a variable. Returns where it ends, NULL where Python must decide. */
static const char *read_word(Reader *r, const Words *w, const char *p, const char *end, int *wants) {
    const char *start = p;
    while (p < end && is_word(*p)) p++;
    int length = (int)(p - start), found = find_word(w->word, w->n_words, start, length);
    const char *next = p;
    while (next < end && (*next == ' ' || *next == '\t')) next++;
    if (length > MAX_NAME || (next < end && *next == '.')) return NULL;
    if (next < end && *next == '(') {
        int call = found < 0 ? UNKNOWN : w->call[found];
        if (call == UNKNOWN || !wait_for(r, (Waiting){0, call, r->n_operands})) return NULL;
        return next + 1;
    }
    *wants = 0;
    if (found < 0) return read_variable(r, w, start, length) ? p : NULL;
    return isnan(w->value[found]) || !push(r, CONSTANT, -1, -1, w->value[found]) ? NULL : p;
}
static int infix_op(const char **p, const char *end) {
    switch (*(*p)++) {
    case '+': return ADD;
    case '-': return SUB;
    case '/': return CALL_DIV;
    case '^': return CALL_POW;
    case '*':
        if (*p == end || **p != '*') return MUL;
        ++*p;
        return CALL_POW;
    default: return UNKNOWN;
    }
}
static int comes_before(const Variable *a, const Variable *b) { /* numbers by number, then names by their letters */
    if (a->key >= 0 || b->key >= 0) return a->key >= 0 && (b->key < 0 || a->key < b->key);
    int order = memcmp(a->name, b->name, (size_t)(a->length < b->length ? a->length : b->length));
    return order ? order < 0 : a->length < b->length;
}
/* place[j]: the rank of variable j. */
static void rank_variables(const Reader *r, int *place) {
    for (int j = 0; j < r->n_variables; j++) {
        place[j] = 0;
        for (int k = 0; k < r->n_variables; k++) place[j] += comes_before(&r->variable[k], &r->variable[j]);
    }
}
static int write_prefix(Reader *r) {
    int stack[MAX_TOKENS + 1], n = 0, place[MAX_DIM];
    rank_variables(r, place);
    stack[n++] = r->operand[0];
    r->length = 0;
    while (n) {
        const ReadNode *node = &r->node[stack[--n]];
        if (r->length == MAX_TOKENS || n + 2 > MAX_TOKENS) return 0;
        r->token[r->length] = (int8_t)(is_variable(node->op) ? FIRST_VARIABLE + place[node->op - FIRST_VARIABLE] : node->op);
        r->constant[r->length++] = node->constant;
        if (is_binary(node->op)) stack[n++] = node->right;
        if (node->left >= 0) stack[n++] = node->left;
    }
    return 1;
}
/* False where Python must decide. */
static int read_formula(Reader *r, const Words *w, const char *p, const char *end) {
    int wants = 1;                                     /* an operand */
    r->n_nodes = r->n_operands = r->n_variables = 0;
    r->waiting[0] = (Waiting){0, UNKNOWN, 0};
    r->n_waiting = 1;
    if (end - p > MAX_TEXT) return 0;
    while (p < end) {
        int c = (unsigned char)*p;
        if (c == ' ' || c == '\t' || c == '\r' || c == '\n') { p++; continue; }
        if (c == '(' && wants) {
            if (!wait_for(r, (Waiting){0, UNKNOWN, r->n_operands})) return 0;
            p++;
        } else if (wants && c == '-') {
            if (!wait_for(r, (Waiting){3, CALL_NEG, 0})) return 0;
            p++;
        } else if (wants && c == '+') {
            p++;
        } else if (wants && (is_digit(c) || c == '.')) {
            double value;
            if (!(p = read_number(p, end, &value)) || !push(r, CONSTANT, -1, -1, value)) return 0;
            wants = 0;
        } else if (wants && is_word(c)) {
            if (!(p = read_word(r, w, p, end, &wants))) return 0;
        } else if (!wants && c == ')') {
            if (!close_bracket(r)) return 0;
            p++;
        } else if (!wants && c == ',') {
            if (!reduce(r, 1) || r->waiting[r->n_waiting - 1].op == UNKNOWN) return 0;
            wants = 1;
            p++;
        } else if (!wants) {
            int op = infix_op(&p, end), precedence = precedence_of(op);
            /* Powers associate to the right. */
            if (op == UNKNOWN || !reduce(r, op == CALL_POW ? 5 : precedence) || !wait_for(r, (Waiting){precedence, op, 0}))
                return 0;
            wants = 1;
        } else return 0;
    }
    return !wants && reduce(r, 1) && r->n_waiting == 1 && write_prefix(r);
}
