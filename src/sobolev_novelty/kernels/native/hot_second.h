/* Second derivatives: forward accumulation of value, first and second derivatives along the variables a subtree contains.
 *
 * A slot is a block of rows: the value, k first derivatives, k (k + 1) / 2 second ones, for the k columns the program uses, in
 * ascending order. The mask of a slot says which of them are there; absent ones are zero and cost nothing. */

static void curvature(const Step *p, int pair, double *D) {
    const double *A = p->A, *B = p->B, *V = p->V;
    int64_t n = p->n;
    (void)V;
    switch (p->op) {
#define U(NAME, VALUE, FIRST, SECOND)                                                                                   \
    case OP_##NAME:                                                                                                     \
        ROWS(n) {                                                                                                       \
            double a = A[i], v = V[i];                                                                                  \
            (void)a, (void)v;                                                                                           \
            D[i] = SECOND;                                                                                              \
        }                                                                                                               \
        return;
        UNARY_OPERATORS(U) POWERS(U)
#undef U
/* An operand that is differentiated is a row; the other may be one number. */
#define CURVE(LEFT, RIGHT, FORMULA)                                                                                     \
    ROWS(n) {                                                                                                           \
        double a = LEFT, b = RIGHT, v = V[i];                                                                           \
        (void)a, (void)b, (void)v;                                                                                      \
        D[i] = FORMULA;                                                                                                 \
    }
#define B(NAME, VALUE, FA, FB, FAA, FAB, FBB)                                                                           \
    case OP_##NAME:                                                                                                     \
        if (pair == 0) {                                                                                                \
            CURVE(A[i], B ? B[i] : p->sb, FAA)                                                                          \
        } else if (pair == 1) {                                                                                         \
            CURVE(A[i], B[i], FAB)                                                                                      \
        } else {                                                                                                        \
            CURVE(A ? A[i] : p->sa, B[i], FBB)                                                                          \
        }                                                                                                               \
        return;
        BINARY_OPERATORS(B)
#undef B
        default: return;
    }
}

/* Second partials that are zero everywhere are skipped, as the NumPy kernel does. */
static int is_flat(int op, int pair) {
    switch (op) {
        case OP_ADD: case OP_SUB: case OP_NEG: case OP_ABS: case OP_SIGN: case OP_MIN: case OP_MAX: return 1;
        case OP_MUL: return pair != 1;
        case OP_DIV: case OP_GPDIV: case OP_AQ: return pair == 0;
        default: return 0;
    }
}

static void multiply_add(double *D, const double *A, const double *B, int64_t n, int add) {
    if (add) {
        ROWS(n) D[i] += A[i] * B[i];
    } else {
        ROWS(n) D[i] = A[i] * B[i];
    }
}

typedef struct {
    const double *first;       /* k rows, or NULL for a leaf */
    const double *second;
    const uint8_t *mask;       /* k + pairs flags, or NULL for a leaf */
    int32_t leaf;              /* the column's place, or -1 */
} Jet;

static inline const double *jet_first(const Workspace *ws, const Jet *jet, int32_t j) {
    if (jet->leaf >= 0) return jet->leaf == j ? ws->ones : NULL;
    return jet->mask && jet->mask[j] ? jet->first + (size_t)j * (size_t)ws->tile : NULL;
}

static inline int32_t pair_index(int32_t j, int32_t k, int32_t n) { return j * n - j * (j - 1) / 2 + (k - j); }

static Jet jet_of(const Workspace *ws, const Node *node, size_t block, size_t mask_block) {
    Jet jet = {NULL, NULL, NULL, -1};
    if (node->kind == KIND_VARIABLE) {
        for (int32_t j = 0; j < ws->n_used; j++)
            if (ws->used[j] == node->index) jet.leaf = j;
    } else if (node->kind == KIND_SLOT) {
        const double *base = ws->tiles + (size_t)node->slot * block;
        jet.first = base + ws->tile;
        jet.second = base + (size_t)(1 + ws->n_used) * (size_t)ws->tile;
        jet.mask = ws->masks + (size_t)node->slot * mask_block;
    }
    return jet;
}

/* product = a_j b_k + a_k b_j over what is there (a_j a_k for one operand); 0 where nothing is. */
static int cross(const Workspace *ws, const Jet *left, const Jet *right, int same, int32_t j, int32_t k, int64_t n,
                 double *product) {
    const double *lj = jet_first(ws, left, j), *lk = jet_first(ws, left, k);
    const double *rj = jet_first(ws, right, j), *rk = jet_first(ws, right, k);
    int there = 0;
    if (lj && rk) {
        multiply_add(product, lj, rk, n, 0);
        there = 1;
    }
    if (!same && lk && rj) {
        multiply_add(product, lk, rj, n, there);
        there = 1;
    }
    return there;
}

static void second_step(Workspace *ws, const Node *node, int64_t n, size_t block, size_t mask_block, double *scratch) {
    const Node *left = ws->nodes + node->a, *right = node->b < 0 ? NULL : ws->nodes + node->b;
    size_t tile = (size_t)ws->tile;
    int32_t m = ws->n_used;
    double *value = ws->tiles + (size_t)node->slot * block, *first = value + tile, *second = first + (size_t)m * tile;
    uint8_t *mask = ws->masks + (size_t)node->slot * mask_block, *mask2 = mask + m;
    Jet jets[2] = {jet_of(ws, left, block, mask_block), right ? jet_of(ws, right, block, mask_block) : (Jet){0, 0, 0, -1}};
    const Node *nodes[2] = {left, right};
    Step step = {node->op, VECTORS, n, NULL, NULL, value, left->scalar, right ? right->scalar : 0.0};
    for (int q = 0; q < 2; q++) {
        const Node *side = nodes[q];
        const double *rows = NULL;
        if (side && side->kind == KIND_VARIABLE) rows = ws->x[side->index];
        if (side && side->kind == KIND_SLOT) rows = ws->tiles + (size_t)side->slot * block;
        *(q ? &step.B : &step.A) = rows;
    }
    step.kind = !step.A ? SCALAR_LEFT : !step.B ? SCALAR_RIGHT : VECTORS;
    forward(node->fast, step.kind, n, step.A, step.B, step.sa, step.sb, value);
    memset(mask, 0, mask_block);
    double *partial = scratch, *product = scratch + tile;
    for (int q = 0; q < 2; q++) {
        if (!nodes[q] || !nodes[q]->active) continue;
        if (!right || (q == 0 && node->fast != node->op)) {
            step.op = node->fast;
            push_unary(&step, 1.0, ws->ones, partial, 0);
        } else {
            step.op = node->op;
            push_binary(&step, q, 1.0, ws->ones, partial, 0);
        }
        for (int32_t j = 0; j < m; j++) {
            const double *d = jet_first(ws, jets + q, j);
            if (!d) continue;
            multiply_add(first + (size_t)j * tile, partial, d, n, mask[j]);
            mask[j] = 1;
        }
        for (int32_t r = 0; jets[q].mask && r < m * (m + 1) / 2; r++) {
            if (!jets[q].mask[m + r]) continue;
            multiply_add(second + (size_t)r * tile, partial, jets[q].second + (size_t)r * tile, n, mask2[r]);
            mask2[r] = 1;
        }
    }
    for (int pair = 0; pair < (right ? 3 : 1); pair++) {
        int p = pair == 2, q = pair >= 1;
        if (!nodes[p]->active || !nodes[q]->active || is_flat(node->op, pair)) continue;
        step.op = pair == 0 ? node->fast : node->op;
        curvature(&step, pair, partial);
        for (int32_t j = 0; j < m; j++)
            for (int32_t k = j; k < m; k++) {
                if (!cross(ws, jets + p, jets + q, p == q, j, k, n, product)) continue;
                int32_t r = pair_index(j, k, m);
                multiply_add(second + (size_t)r * tile, partial, product, n, mask2[r]);
                mask2[r] = 1;
            }
    }
}

/* Run all steps; second_row() then finds the root's rows. A root without a step leaves its value in the first scratch row. */
static void second(Workspace *ws, int64_t n) {
    const Node *root = ws->nodes;
    size_t m = (size_t)ws->n_used, mask_block = m + m * (m + 1) / 2, block = (size_t)ws->tile * (1 + mask_block);
    double *scratch = ws->tiles + (size_t)ws->n_slots * block;
    for (int32_t k = 0; k < ws->n_steps; k++) second_step(ws, ws->nodes + ws->steps[k], n, block, mask_block, scratch);
    if (root->kind == KIND_SCALAR) fill(scratch, root->scalar, n);
}
