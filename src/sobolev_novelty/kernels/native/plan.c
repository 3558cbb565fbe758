/* Checking programs, and laying one out for the tile loops. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

/* NULL where every program is one tree over known operators, columns and constants; else what is wrong with program *bad. */
const char *check_population(const Population *p, int64_t n_codes, int64_t n_constants, int64_t *bad, int64_t *longest,
                             int64_t *most_constants) {
    *longest = 0;
    *most_constants = 0;
    *bad = -1;
    if (p->n_programs < 0 || p->offsets[0] != 0 || p->constant_offsets[0] != 0 ||
        p->offsets[p->n_programs] != n_codes || p->constant_offsets[p->n_programs] != n_constants)
        return "offsets do not span the codes and constants";
    for (int64_t i = 0; i < p->n_programs; i++) {
        int64_t start = p->offsets[i], end = p->offsets[i + 1], open = 1, constants = 0;
        *bad = i;
        if (start < 0 || end < start || end > n_codes) return "has offsets that decrease or leave the codes";
        if (end - start > MAX_PROGRAM_LENGTH) return "is longer than the limit of 100000 nodes. Simplify it first";
        for (int64_t k = start; k < end; k++) {
            int32_t code = p->codes[k];
            if (open == 0) return "holds more than one tree";
            if (code == OP_CONSTANT) {
                constants++;
                open--;
            } else if (code >= FIRST_VARIABLE) {
                if ((int64_t)code - FIRST_VARIABLE >= p->n_features) return "refers to a column that X does not have";
                open--;
            } else if (code < 0 || code > N_OPERATORS) {
                return "holds an unknown operator";
            } else {
                open += IS_BINARY(code) ? 1 : 0;
            }
        }
        if (open != 0) return "ends early: operands are missing";
        if (p->constant_offsets[i] < 0 || p->constant_offsets[i + 1] - p->constant_offsets[i] != constants)
            return "has a different number of constants than its offsets say";
        if (end - start > *longest) *longest = end - start;
        if (constants > *most_constants) *most_constants = constants;
    }
    *bad = -1;
    return NULL;
}

/* Rows of a tile for a program that needs this many tile rows of doubles. */
static int32_t tile_rows(size_t n_slots) {
    size_t rows = TILE;
    while (rows > LANES && n_slots * rows * sizeof(double) > TILE_BYTES) rows /= 2;
    return (int32_t)rows;
}

size_t second_rows(int64_t n_used) { return (size_t)(1 + n_used + n_used * (n_used + 1) / 2); }

/* Room for programs of this length. Second-order tiles depend on the variables too: second_room() makes room for them. */
int workspace_new(Workspace *ws, int64_t longest, int64_t n_features, int64_t most_constants, int want) {
    memset(ws, 0, sizeof *ws);
    size_t n = (size_t)longest + 1, d = (size_t)n_features + 1, rows = d + (size_t)most_constants + 1;
    ws->nodes = malloc(n * sizeof *ws->nodes);
    ws->stack = malloc(n * sizeof *ws->stack);
    ws->steps = malloc(n * sizeof *ws->steps);
    ws->spare = malloc(n * sizeof *ws->spare);
    ws->used = malloc(d * sizeof *ws->used);
    ws->column_slot = malloc(d * sizeof *ws->column_slot);
    ws->touched = malloc(rows);
    ws->x = malloc(d * sizeof *ws->x);
    ws->gradient = malloc(rows * sizeof *ws->gradient);
    size_t slots = 3 * n + 4; /* as at the end of plan() */
    ws->n_tile_doubles = slots * LANES > TILE_BYTES / sizeof(double) ? slots * LANES : TILE_BYTES / sizeof(double);
    if (slots * TILE < ws->n_tile_doubles) ws->n_tile_doubles = slots * TILE;
    if (want != WANT_SECOND) ws->tiles = aligned_alloc(64, (ws->n_tile_doubles * sizeof(double) + 63) / 64 * 64);
    if (!ws->nodes || !ws->stack || !ws->steps || !ws->spare || !ws->used || !ws->column_slot || !ws->touched || !ws->x ||
        !ws->gradient || (want != WANT_SECOND && !ws->tiles)) {
        workspace_free(ws);
        return -1;
    }
    for (size_t k = 0; k < d; k++) ws->column_slot[k] = -1;
    for (int k = 0; k < TILE; k++) ws->ones[k] = 1.0;
    return 0;
}

void workspace_free(Workspace *ws) {
    free(ws->nodes);
    free(ws->stack);
    free(ws->steps);
    free(ws->spare);
    free(ws->used);
    free(ws->column_slot);
    free(ws->touched);
    free(ws->x);
    free(ws->gradient);
    free(ws->tiles);
    free(ws->masks);
    memset(ws, 0, sizeof *ws);
}

/* The cheaper form of a power with this exponent. */
static uint8_t constant_power(double exponent) {
    if (exponent == 2.0) return OP_SQUARE;
    if (exponent == 3.0) return OP_CUBE;
    if (exponent == -1.0) return OP_INV;
    if (exponent == 0.5) return OP_HALF;
    if (exponent == 4.0) return OP_POW4;
    if (exponent == 5.0) return OP_POW5;
    if (exponent == 6.0) return OP_POW6;
    if (exponent == -2.0) return OP_POWM2;
    if (exponent == -3.0) return OP_POWM3;
    if (exponent == -4.0) return OP_POWM4;
    return OP_POW;
}

static void leaf(Workspace *ws, Node *node, int32_t code, int32_t constant, const double *constants,
                 const uint8_t *free_constants, int want) {
    node->op = node->fast = OP_CONSTANT;
    node->a = node->b = -1;
    if (code == OP_CONSTANT) {
        node->kind = KIND_SCALAR;
        node->scalar = constants[constant];
        node->index = constant;
        node->active = want == WANT_CONSTANTS && (!free_constants || free_constants[constant]);
        return;
    }
    node->kind = KIND_VARIABLE;
    node->index = code - FIRST_VARIABLE;
    node->active = want == WANT_INPUTS || want == WANT_SECOND;
    if (ws->column_slot[node->index] < 0) {
        ws->column_slot[node->index] = ws->n_used;
        ws->used[ws->n_used++] = node->index;
    }
}

static int ascending(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Lay out one program. Values alone reuse slots like a stack (in place where an operand dies); derivatives keep every value. */
void plan(Workspace *ws, const Population *p, int64_t program, const double *constants, const uint8_t *free_constants,
          int want) {
    const int32_t *codes = p->codes + p->offsets[program];
    int32_t length = (int32_t)(p->offsets[program + 1] - p->offsets[program]);
    int32_t constant = (int32_t)(p->constant_offsets[program + 1] - p->constant_offsets[program]);
    int32_t top = 0, live = 0, n_slots = 0, n_spare = 0;
    ws->n_constants = constant;
    ws->n_steps = ws->n_used = 0;
    ws->length = length;
    for (int32_t i = length - 1; i >= 0; i--) {
        Node *node = ws->nodes + i;
        int32_t code = codes[i];
        if (code == OP_CONSTANT || code >= FIRST_VARIABLE) {
            if (code == OP_CONSTANT) constant--;
            leaf(ws, node, code, constant, constants, free_constants, want);
            ws->stack[top++] = i;
            continue;
        }
        int32_t a = ws->stack[--top], b = IS_BINARY(code) ? ws->stack[--top] : -1;
        const Node *left = ws->nodes + a, *right = b < 0 ? NULL : ws->nodes + b;
        node->op = node->fast = (uint8_t)code;
        node->a = a;
        node->b = b;
        node->index = -1;
        node->active = left->active || (right && right->active);
        ws->stack[top++] = i;
        if (left->kind == KIND_SCALAR && (!right || right->kind == KIND_SCALAR)) {
            node->kind = KIND_SCALAR;
            node->scalar = scalar_value(code, left->scalar, right ? right->scalar : 0.0);
            continue;
        }
        node->kind = KIND_SLOT;
        if (code == OP_POW && right->kind == KIND_SCALAR) node->fast = constant_power(right->scalar);
        if (want == WANT_VALUES) {
            live -= left->kind == KIND_SLOT;
            live -= right && right->kind == KIND_SLOT;
            node->slot = live++;
            if (live > n_slots) n_slots = live;
        } else if (want == WANT_SECOND) { /* operands are read after the value is there: not in place */
            node->slot = n_spare ? ws->spare[--n_spare] : n_slots++;
            if (left->kind == KIND_SLOT) ws->spare[n_spare++] = left->slot;
            if (right && right->kind == KIND_SLOT) ws->spare[n_spare++] = right->slot;
        } else {
            node->slot = n_slots++;
        }
        ws->steps[ws->n_steps++] = i;
    }
    for (int32_t k = 0; k < ws->n_used; k++) ws->column_slot[ws->used[k]] = -1;
    ws->n_slots = n_slots;
    if (want == WANT_SECOND) qsort(ws->used, (size_t)ws->n_used, sizeof *ws->used, ascending);
    /* A step gives each of its two operands at most one adjoint slot; then ones, and scratch for the root. */
    ws->tile = tile_rows((size_t)(want == WANT_VALUES ? n_slots : 3 * n_slots) + 4);
}

/* Second order: set the tile's rows and grow the scratch memory to what the program needs. */
int second_room(Workspace *ws) {
    size_t rows = second_rows(ws->n_used), slots = (size_t)ws->n_slots * rows + 2, bytes = (size_t)ws->n_slots * rows + 1;
    ws->tile = tile_rows(slots);
    size_t doubles = slots * (size_t)ws->tile;
    if (doubles > ws->n_tile_doubles || !ws->tiles) {
        free(ws->tiles);
        ws->n_tile_doubles = doubles;
        ws->tiles = aligned_alloc(64, (doubles * sizeof(double) + 63) / 64 * 64);
    }
    if (bytes > ws->n_mask_bytes || !ws->masks) {
        free(ws->masks);
        ws->n_mask_bytes = bytes;
        ws->masks = malloc(bytes);
    }
    return ws->tiles && ws->masks ? 0 : -1;
}

const double *second_row(const Workspace *ws, size_t r) {
    const Node *root = ws->nodes;
    size_t m = (size_t)ws->n_used, mask_block = m + m * (m + 1) / 2, block = (size_t)ws->tile * (1 + mask_block);
    if (root->kind == KIND_VARIABLE) return r == 0 ? ws->x[root->index] : r == 1 ? ws->ones : NULL;
    if (root->kind == KIND_SCALAR) return r == 0 ? ws->tiles + (size_t)ws->n_slots * block : NULL;
    if (r && !ws->masks[(size_t)root->slot * mask_block + r - 1]) return NULL;
    return ws->tiles + (size_t)root->slot * block + r * (size_t)ws->tile;
}

/* Point ws->x at the rows from row on; row == n_whole is the padded tail. */
void set_inputs(Workspace *ws, const Inputs *in, int64_t row) {
    for (int32_t k = 0; k < ws->n_used; k++) {
        int32_t j = ws->used[k];
        ws->x[j] = row < in->n_whole ? in->rows + j * in->n_rows + row : in->tail + (int64_t)j * LANES;
    }
}
