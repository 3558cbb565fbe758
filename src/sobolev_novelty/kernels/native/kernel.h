/* Types and interfaces of the compiled kernel.
 *
 * A program is prefix code. plan() turns it into nodes, one per token, in a workspace that each thread allocates once per
 * call; the "hot" functions then walk the nodes over tiles of rows. The hot file is compiled once per instruction set and
 * reached through a table of functions. Tiles hold a multiple of LANES rows: the last N mod LANES rows of X are copied to a
 * padded block, so every loop is whole vectors and a row's result does not depend on where its tile begins. */
#ifndef SOBOLEV_KERNEL_H
#define SOBOLEV_KERNEL_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "operators.h"

#define LANES 8
#define TILE 256
/* Tiles shrink from TILE towards LANES rows where a program's tiles would exceed this many bytes. */
#define TILE_BYTES (1 << 20)
/* Pursuit: columns side by side in a panel, and directions side by side. */
#define PANEL 32
#define GROUP 6
/* How two columns are joined; numpy_pursuit.py gives the names in this order. */
enum { JOIN_LEFT, JOIN_ADD, JOIN_SUB, JOIN_MUL, N_JOINS };
/* Terms and free constants of one candidate, together. */
#define MAX_COLUMNS 4096

typedef struct {
    const int32_t *codes;
    const int64_t *offsets;
    const double *constants;
    const int64_t *constant_offsets;
    int64_t n_programs;
    int64_t n_features;
} Population;

typedef struct {
    const double *rows; /* (n_features, n_rows), contiguous */
    const double *tail; /* (n_features, LANES): the last n_rows mod LANES rows, padded */
    int64_t n_rows;
    int64_t n_whole; /* n_rows rounded down to a multiple of LANES */
    int64_t n_features;
} Inputs;

/* One stretch of rows: n of them run (whole vectors), the first `real` are samples. */
typedef struct {
    int64_t row, n, real;
    int is_tail;
} Tile;

static inline Tile tile_at(const Inputs *in, int64_t row, int64_t rows) {
    Tile t = {row, LANES, in->n_rows - row, 1};
    if (row < in->n_whole) {
        t.n = t.real = in->n_whole - row < rows ? in->n_whole - row : rows;
        t.is_tail = 0;
    }
    return t;
}

enum { KIND_SLOT, KIND_VARIABLE, KIND_SCALAR };
enum { WANT_VALUES, WANT_INPUTS, WANT_CONSTANTS, WANT_SECOND };

typedef struct {
    double scalar; /* KIND_SCALAR: the value */
    double scale;  /* adjoint = scale * slot[adjoint] (scale alone where adjoint < 0) */
    int32_t a, b;  /* positions of the operands; b < 0 for unary operators */
    int32_t slot;  /* KIND_SLOT: where the value lies */
    int32_t index; /* variable: column; constant: position among the constants; operator: unused */
    int32_t adjoint;
    int32_t level; /* first adjoint slot that the subtree may use */
    uint8_t op;    /* opcode; OP_CONSTANT for leaves */
    uint8_t fast;  /* opcode of the cheaper form of a constant power, else op */
    uint8_t kind;
    uint8_t active; /* the subtree holds a wanted leaf */
    uint8_t owned;  /* the subtree may overwrite its adjoint's slot */
} Node;

typedef struct {
    Node *nodes;
    int32_t *stack;
    int32_t *steps; /* operator nodes to run, operands first */
    int32_t *spare; /* second order: slots to take again */
    int32_t *used;  /* columns that the program reads; ascending for second order */
    int32_t *column_slot; /* per feature: position in used, or -1; always -1 between programs */
    uint8_t *touched;
    const double **x;  /* per feature: the tile's inputs */
    double **gradient; /* per feature or constant: where the tile's derivative goes */
    double *tiles;
    const double *out; /* the root's values, while a gradient runs */
    double ones[TILE];
    size_t n_tile_doubles;
    uint8_t *masks; /* second order: which derivatives each slot holds */
    size_t n_mask_bytes;
    /* the current program */
    int32_t length, n_steps, n_slots, n_used, tile, n_constants;
} Workspace;

/* What the hot file offers, once per instruction set. */
typedef struct {
    const char *name;
    /* Values of rows [row, row + n), n a multiple of LANES, into out. */
    void (*values)(Workspace *, int64_t n, double *out);
    /* The same and derivatives: gradient rows of ws->gradient (those of used columns or wanted constants). */
    void (*gradient)(Workspace *, int64_t n, double *out, int want);
    /* Values, first and second derivatives, to be read with second_row(). */
    void (*second)(Workspace *, int64_t n);
    /* upper triangle of the products of n_columns columns, added to gram (row-major, leading dimension ld) times weight */
    void (*gram)(const double *const *columns, int32_t n_columns, int64_t n, double weight, double *gram, int32_t ld,
                 const int32_t *where);
    double (*dot)(const double *, const double *, int64_t n);
    void (*axpy)(double, const double *, double *, int64_t n);
    void (*scale)(double *, const double *, int64_t n); /* x *= w */
    /* One Householder sweep over [R; B]: R (m x m, row-major, upper) takes up the n rows of the m columns of B. */
    void (*absorb)(double *R, double *B, int64_t ldb, int64_t n, int32_t m);
    /* Pursuit: the column a joined with b, or the logarithm of its size, and whether there is one; columns of n_rows times their
     * factors into a panel, from place k on; inner products of a panel with directions that come GROUP by GROUP, and the gains that follow from some of them. */
    int (*join)(const double *a, const double *b, int64_t n, int how, int is_log, double *out);
    void (*pack)(const double *columns, const double *factors, int64_t n_columns, int64_t n_rows, int64_t k, float *panel);
    void (*inner)(const float *panel, const float *directions, int64_t n_rows, int64_t n_directions, float *out);
    void (*gains)(const float *inner, const int64_t *members, const float *weights, int64_t n_members, const float *parent, float *own,
                  float smallest, float *out);
} Hot;

extern const Hot hot_baseline;
#ifdef SOBOLEV_X86
extern const Hot hot_avx2;
extern const Hot hot_avx512;
#endif
const Hot *hot_select(int level); /* level < 0: the best this processor has */

/* scalar.c */
double scalar_value(int op, double a, double b);
double scalar_first(int op, int which, double a, double b, double v);

/* plan.c */
const char *check_population(const Population *, int64_t n_codes, int64_t n_constants, int64_t *bad, int64_t *longest,
                             int64_t *most_constants);
int workspace_new(Workspace *, int64_t longest, int64_t n_features, int64_t most_constants, int want);
void workspace_free(Workspace *);
void plan(Workspace *, const Population *, int64_t program, const double *constants, const uint8_t *free_constants,
          int want);
void set_inputs(Workspace *, const Inputs *, int64_t row);
size_t second_rows(int64_t n_used);
/* Row r of the root (value, k gradient rows, k (k + 1) / 2 pairs of the k used columns); NULL where it is zero. */
const double *second_row(const Workspace *, size_t r);
int second_room(Workspace *); /* after plan(): 0, or -1 where memory ran out */

/* stop.c: whether somebody wants this call to end (Ctrl-C). The thread that made the call looks from time to time; all its
 * threads learn of it. Whoever is told to stop may leave results half done: the call ends in an exception. */
typedef struct Stopping Stopping;
typedef struct {
    int (*look)(void *state); /* 1 where the call must end */
    void *state;
} Watch;
Stopping *watch_begin(Stopping *room, Watch); /* for this thread and those that run_parallel starts from it */
void watch_end(void);
Stopping *watch_current(void);
void watch_join(Stopping *);
int should_stop(void); /* cheap: once per tile or matrix row */
struct Stopping {
    Watch watch;
    _Atomic int wanted;
    int64_t next_look; /* of the thread that made the call */
};

/* In builds for tests every allocation can be made to fail in turn: see tests/kernels/test_kernel_faults.py. */
#ifdef SOBOLEV_FAULTS
int allocation_fails(void);
int64_t count_allocations(int64_t failing); /* the failing-th from now on fails (none where < 0); returns those since the last call */
#define malloc(n) (allocation_fails() ? NULL : malloc(n))
#define calloc(n, size) (allocation_fails() ? NULL : calloc(n, size))
#define aligned_alloc(a, n) (allocation_fails() ? NULL : aligned_alloc(a, n))
#endif

/* parallel.c */
typedef struct {
    void *(*enter)(void *context);              /* per thread: its workspace, or NULL where memory ran out */
    void (*task)(void *context, void *own, int64_t i);
    void (*leave)(void *own);
} Work;
/* 0, or -1 where no thread found memory, or where the call was stopped. */
int run_parallel(const Work *, void *context, int64_t n_tasks, int n_threads);

/* dense.c */
int cholesky(double *A, int32_t n, int32_t ld, double smallest);
void lower_solve(const double *L, int32_t n, int32_t ld, double *x);
void cholesky_solve(const double *L, int32_t n, int32_t ld, double *x);
typedef long double Wide;
/* The numbers of projection.py, which says what they mean. */
#define N_PRICES 3
typedef struct {
    double gram_is_enough, same, near, relation, rounding, span_tolerance, spacing, large_weight, constant_share, prices[N_PRICES];
} Rules;
#define N_RULES (sizeof(Rules) / sizeof(double))
/* Novelties of m columns. From their Gram matrix (work holds novelty_work(m) doubles; 1 where that is not accurate enough, else
 * work begins with the lower triangle of its normalised factor), or from a triangular factor, column-major. */
size_t novelty_work(int32_t m);
int novelty_from_gram(const double *G, int32_t m, const Rules *, double *nu, double *work);
int novelty_from_triangle(const Wide *R, int32_t m, const Rules *, int is_rounded, double *nu, double *lengths);
void absorb_wide(Wide *R, Wide *B, int64_t ldb, int64_t n, int32_t m, const int32_t *last);

/* drivers */
typedef struct {
    Population population;
    Inputs inputs;
    const Hot *hot;
    int64_t longest, most_constants;
    int n_threads;
} Call;

int derivatives(const Call *, int order, double *out);
int jacobians(const Call *, double *values, double *jacobian);
typedef struct {
    const int64_t *term_offsets;
    int64_t n_candidates;
    const uint8_t *free_constants;
    const double *y, *weights; /* weights may be NULL */
    int n_iterations;
    double *coefficients, *constants, *loss;
    int32_t *status;
} FitJob;
int fit(const Call *, const FitJob *);
typedef struct {
    const int64_t *members, *offsets; /* candidate c: programs members[offsets[c] .. offsets[c + 1]) */
    int64_t n_candidates;
    const double *factors; /* one per derivative row: value, gradient, pairs */
    int order;
    int free_intercept; /* 1: the constant is projected out of every term */
    int64_t min_rows;
    const Rules *rules;
    double *novelty, *lengths; /* one per member */
    double *triangles;         /* or NULL: per candidate its m x m normalised triangular factor, row-major, and not always novelties */
    const int64_t *triangle_offsets;
    int64_t *rows;             /* one per candidate */
    int32_t *status;
} NoveltyJob;
int novelties(const Call *, const NoveltyJob *);

/* pursuit.c */
/* Lengths of the columns, and the columns divided by them as panels, (ceil(n_columns / PANEL), n_rows, PANEL); zeros in place of
 * those without a length. The last panel need not be full: what is behind its last column is the caller's. */
typedef struct {
    const Hot *hot;
    const double *left, *right;    /* (any, n_rows) */
    const int64_t *first, *second; /* (n_columns): which of left and of right each column joins */
    int64_t n_columns, n_rows, begin; /* begin: the place of the first of them in lengths and panels */
    int how, is_log;
    double *lengths;
    float *panels; /* NULL where only the lengths are wanted */
    int n_threads;
} UnitJob;
int unit_columns(const UnitJob *);
typedef struct {
    const Hot *hot;
    const float *panels, *directions; /* directions: (n_directions, n_rows) */
    int64_t n_columns, n_rows, n_directions, n_nodes, n_top;
    const int64_t *members, *offsets; /* node c: its residual, then its basis: directions members[offsets[c] .. offsets[c + 1]) */
    float smallest;
    int n_threads;
    const int64_t *parents, *slots; /* (n_nodes): standings to begin with and to write, -1 for none */
    const float *weights;           /* (n_members) */
    float *standings;               /* (any, n_panels, 2, PANEL) */
    int64_t *places; /* (n_nodes, n_top), filled with -1: the columns of the largest gains, largest first */
    float *gains;    /* (n_nodes, n_top), filled with 0 */
} OfferJob;
int pursuit_offers(const OfferJob *);

#endif
