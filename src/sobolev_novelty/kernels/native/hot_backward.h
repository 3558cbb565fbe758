/* First derivatives by reverse accumulation over a tile.
 *
 * The adjoint of a node is scale * G[i]. Sums, differences, signs and constant factors only change the scale, so they cost
 * nothing; every other operator is one loop per active operand: D[i] (+)= scale * G[i] * partial. Operands that hold no wanted
 * leaf are skipped, so their partial never contributes a nan. */

/* LOADING is handed on: semicolons in it, not commas. */
#define SET(LOADING, PARTIAL)                                                                                           \
    ROWS(n) {                                                                                                           \
        LOADING;                                                                                                        \
        D[i] = s * G[i] * (PARTIAL);                                                                                    \
    }
#define PUSH(LOADING, PARTIAL)                                                                                          \
    if (add) {                                                                                                          \
        ROWS(n) {                                                                                                       \
            LOADING;                                                                                                    \
            D[i] += s * G[i] * (PARTIAL);                                                                               \
        }                                                                                                               \
    } else {                                                                                                            \
        SET(LOADING, PARTIAL)                                                                                           \
    }

typedef struct {
    int op, kind;
    int64_t n;
    const double *A, *B, *V;
    double sa, sb;
} Step;

static void push_unary(const Step *p, double s, const double *G, double *D, int add) {
    const double *A = p->A, *V = p->V;
    int64_t n = p->n;
    (void)V;
    switch (p->op == OP_SIN || p->op == OP_COS ? for_tile(p->op, A, n) : p->op) {
#define LOAD                                                                                                            \
    double a = A[i]; double v = V[i];                                                                                   \
    (void)a; (void)v
#define U(NAME, VALUE, FIRST, SECOND) case OP_##NAME: PUSH(LOAD, FIRST) return;
        UNARY_OPERATORS(U) FLAT_UNARY_OPERATORS(U) POWERS(U) LARGE_ANGLES(U)
#undef U
#undef LOAD
        default: return;
    }
}

/* The partial along an operand that is one number is for a constant, which has its row to itself: nothing is added. */
static void push_binary(const Step *p, int which, double s, const double *G, double *D, int add) {
    const double *A = p->A, *B = p->B, *V = p->V;
    int64_t n = p->n;
    const double sa = p->sa, sb = p->sb;
    (void)V;
    switch (p->op) {
#define LOAD_VV                                                                                                         \
    double a = A[i]; double b = B[i]; double v = V[i];                                                                  \
    (void)a; (void)b; (void)v
#define LOAD_VS                                                                                                         \
    double a = A[i]; double b = sb; double v = V[i];                                                                    \
    (void)a; (void)b; (void)v
#define LOAD_SV                                                                                                         \
    double a = sa; double b = B[i]; double v = V[i];                                                                    \
    (void)a; (void)b; (void)v
#define B(NAME, VALUE, FA, FB, FAA, FAB, FBB)                                                                           \
    case OP_##NAME:                                                                                                     \
        if (p->kind == VECTORS) {                                                                                       \
            if (which) {                                                                                                \
                PUSH(LOAD_VV, FB)                                                                                       \
            } else {                                                                                                    \
                PUSH(LOAD_VV, FA)                                                                                       \
            }                                                                                                           \
        } else if (p->kind == SCALAR_RIGHT) {                                                                           \
            if (which) {                                                                                                \
                SET(LOAD_VS, FB)                                                                                        \
            } else {                                                                                                    \
                PUSH(LOAD_VS, FA)                                                                                       \
            }                                                                                                           \
        } else if (which) {                                                                                             \
            PUSH(LOAD_SV, FB)                                                                                           \
        } else {                                                                                                        \
            SET(LOAD_SV, FA)                                                                                            \
        }                                                                                                               \
        return;
        BINARY_OPERATORS(B) FLAT_BINARY_OPERATORS(B)
#undef B
        default: return;
    }
}

/* Add scale * G (G NULL: ones) to a leaf's row, or store it where the row is untouched. */
static void push_leaf(double *D, double s, const double *G, int64_t n, int add) {
    if (!G && !add) {
        fill(D, s, n);
    } else if (!G) {
        ROWS(n) D[i] += s;
    } else if (add) {
        ROWS(n) D[i] += s * G[i];
    } else {
        ROWS(n) D[i] = s * G[i];
    }
}

/* Whether the partial along this operand is one number, and which. */
static inline int constant_partial(const Node *node, int which, const Node *left, const Node *right, double *partial) {
    switch (node->op) {
        case OP_ADD: *partial = 1.0; return 1;
        case OP_SUB: *partial = which ? -1.0 : 1.0; return 1;
        case OP_NEG: *partial = -1.0; return 1;
        case OP_MUL:
            if ((which ? left : right)->kind != KIND_SCALAR) return 0;
            *partial = (which ? left : right)->scalar;
            return 1;
        case OP_DIV:
            if (which || right->kind != KIND_SCALAR) return 0;
            *partial = 1.0 / right->scalar;
            return 1;
        default: return 0;
    }
}

/* One operand of a node: hand its adjoint on. *next is the first free slot; a slot taken raises it. */
static void push(Workspace *ws, Node *node, int which, int64_t n, int32_t *next, int may_own) {
    Node *left = ws->nodes + node->a, *right = node->b < 0 ? NULL : ws->nodes + node->b;
    Node *child = which ? right : left;
    const double *G = node->adjoint < 0 ? NULL : slot(ws, node->adjoint);
    double partial;
    int alias = constant_partial(node, which, left, right, &partial);
    if (!alias && node->kind == KIND_SCALAR) {
        partial = scalar_first(node->op, which, left->scalar, right ? right->scalar : 0.0, node->scalar);
        alias = 1;
    }
    double *D = NULL;
    int add = 0;
    if (child->op == OP_CONSTANT) { /* a leaf: its row is the target */
        D = ws->gradient[child->index];
        add = ws->touched[child->index];
        ws->touched[child->index] = 1;
        if (alias) {
            push_leaf(D, node->scale * partial, G, n, add);
            return;
        }
    } else if (alias) {
        child->scale = node->scale * partial;
        child->adjoint = node->adjoint;
        child->owned = node->owned && may_own;
        child->level = *next;
        return;
    } else {
        if (may_own && node->owned) {
            child->adjoint = node->adjoint;
        } else {
            child->adjoint = (*next)++;
        }
        child->scale = 1.0;
        child->owned = 1;
        child->level = *next;
        D = slot(ws, child->adjoint);
    }
    if (!G) G = ws->ones;
    Step step = {node->op, VECTORS, n, operand(ws, left), right ? operand(ws, right) : NULL,
                 node == ws->nodes ? ws->out : slot(ws, node->slot), left->scalar, right ? right->scalar : 0.0};
    step.kind = !step.A ? SCALAR_LEFT : !step.B ? SCALAR_RIGHT : VECTORS;
    if (!right || (!which && node->fast != node->op)) {
        step.op = node->fast;
        push_unary(&step, node->scale, G, D, add);
    } else {
        push_binary(&step, which, node->scale, G, D, add);
    }
}

/* Values into out, derivatives along used inputs or wanted constants into ws->gradient. */
static void gradient(Workspace *ws, int64_t n, double *out, int want) {
    Node *root = ws->nodes;
    values(ws, n, out);
    if (want == WANT_INPUTS) {
        for (int32_t k = 0; k < ws->n_used; k++) ws->touched[ws->used[k]] = 0;
    } else {
        for (int32_t k = 0; k < ws->n_constants; k++) ws->touched[k] = 0;
    }
    if (!root->active) return;
    if (root->op == OP_CONSTANT) {
        push_leaf(ws->gradient[root->index], 1.0, NULL, n, 0);
        return;
    }
    ws->out = out;
    root->scale = 1.0;
    root->adjoint = -1;
    root->owned = 0;
    root->level = ws->n_slots;
    for (int32_t i = 0; i < ws->length; i++) { /* parents before operands */
        Node *node = ws->nodes + i;
        if (!node->active || node->op == OP_CONSTANT) continue;
        int32_t next = node->level;
        /* The right operand first: its adjoint waits in its slot while the left subtree runs. */
        int both = node->b >= 0 && ws->nodes[node->b].active && ws->nodes[node->a].active;
        if (both) {
            Node *right = ws->nodes + node->b;
            push(ws, node, 1, n, &next, 0);
            int aliased = right->op != OP_CONSTANT && right->adjoint == node->adjoint;
            push(ws, node, 0, n, &next, !aliased);
            /* The left subtree is done when the right one runs, so an aliased adjoint may be overwritten there. */
            if (aliased) right->owned = node->owned;
            /* ... unless the left operand took the parent's slot over, which !aliased excludes. */
        } else {
            push(ws, node, node->b >= 0 && ws->nodes[node->b].active, n, &next, 1);
        }
    }
}
