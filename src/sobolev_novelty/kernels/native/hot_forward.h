/* Values: one loop per operator and kind of operands. n is a multiple of LANES. */

#define ROWS(n) _Pragma("GCC ivdep") for (int64_t i = 0, end = (n) & -(int64_t)LANES; i < end; i++)
enum { VECTORS, SCALAR_RIGHT, SCALAR_LEFT };

/* The form of an operator for what this tile holds. */
static inline int for_tile(int op, const double *A, int64_t n) {
    switch (op) {
        case OP_SIN: return has_between(A, n, LARGE_ANGLE, 0x1.fffffffffffffp1023) ? OP_SIN_LARGE : op;
        case OP_COS: return has_between(A, n, LARGE_ANGLE, 0x1.fffffffffffffp1023) ? OP_COS_LARGE : op;
        case OP_EXP: return has_between(A, n, 700.0, __builtin_inf()) ? op : OP_EXP_PLAIN;
        case OP_LOG: return are_normal(A, n) ? OP_LOG_PLAIN : op;
        default: return op;
    }
}

static void forward(int op, int kind, int64_t n, const double *A, const double *B, double sa, double sb, double *D) {
    op = for_tile(op, A, n);
    switch (op) {
#define U(NAME, VALUE, FIRST, SECOND)                                                                                   \
    case OP_##NAME:                                                                                                     \
        ROWS(n) {                                                                                                       \
            double a = A[i];                                                                                            \
            D[i] = VALUE;                                                                                               \
        }                                                                                                               \
        return;
        UNARY_OPERATORS(U) FLAT_UNARY_OPERATORS(U) POWERS(U) LARGE_ANGLES(U) PLAIN_FORMS(U)
#undef U
#define B(NAME, VALUE, FA, FB, FAA, FAB, FBB)                                                                           \
    case OP_##NAME:                                                                                                     \
        if (kind == VECTORS) {                                                                                          \
            ROWS(n) {                                                                                                   \
                double a = A[i], b = B[i];                                                                              \
                D[i] = VALUE;                                                                                           \
            }                                                                                                           \
        } else if (kind == SCALAR_RIGHT) {                                                                              \
            double b = sb;                                                                                              \
            ROWS(n) {                                                                                                   \
                double a = A[i];                                                                                        \
                D[i] = VALUE;                                                                                           \
            }                                                                                                           \
        } else {                                                                                                        \
            double a = sa;                                                                                              \
            ROWS(n) {                                                                                                   \
                double b = B[i];                                                                                        \
                D[i] = VALUE;                                                                                           \
            }                                                                                                           \
        }                                                                                                               \
        return;
        BINARY_OPERATORS(B) FLAT_BINARY_OPERATORS(B)
#undef B
        default: return;
    }
}

static inline double *slot(const Workspace *ws, int32_t k) { return ws->tiles + (size_t)k * (size_t)ws->tile; }

/* The tile of a node's value; NULL for scalars. */
static inline const double *operand(const Workspace *ws, const Node *node) {
    if (node->kind == KIND_SLOT) return slot(ws, node->slot);
    return node->kind == KIND_VARIABLE ? ws->x[node->index] : NULL;
}

static void fill(double *D, double value, int64_t n) { ROWS(n) D[i] = value; }

/* Run all steps; the root's value goes to out. */
static void values(Workspace *ws, int64_t n, double *out) {
    const Node *root = ws->nodes;
    for (int32_t k = 0; k < ws->n_steps; k++) {
        const Node *node = ws->nodes + ws->steps[k];
        const Node *left = ws->nodes + node->a, *right = node->b < 0 ? NULL : ws->nodes + node->b;
        const double *A = operand(ws, left), *B = right ? operand(ws, right) : NULL;
        int kind = !A ? SCALAR_LEFT : !B ? SCALAR_RIGHT : VECTORS;
        forward(node->fast, kind, n, A, B, left->scalar, right ? right->scalar : 0.0,
                node == root ? out : slot(ws, node->slot));
    }
    if (root->kind == KIND_SCALAR) fill(out, root->scalar, n);
    if (root->kind == KIND_VARIABLE) memcpy(out, ws->x[root->index], (size_t)n * sizeof(double));
}
