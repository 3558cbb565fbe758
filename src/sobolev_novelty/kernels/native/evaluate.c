/* Values, derivatives and Jacobians of a population. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

typedef struct {
    const Call *call;
    int order, want;
    double *out, *jacobian;
    atomic_int failed;
} Job;

typedef struct {
    Workspace ws;
    double tail[LANES];     /* values of the padded rows */
    double *tail_rows;      /* derivatives of the padded rows */
} Own;

static void *enter(void *context) {
    Job *job = context;
    const Call *call = job->call;
    Own *own = malloc(sizeof *own);
    if (!own) return NULL;
    int64_t d = call->inputs.n_features, rows = d + call->most_constants + 1;
    own->tail_rows = malloc((size_t)rows * LANES * sizeof(double));
    if (!own->tail_rows || workspace_new(&own->ws, call->longest, d, call->most_constants, job->want)) {
        free(own->tail_rows);
        free(own);
        return NULL;
    }
    return own;
}

static void leave(void *pointer) {
    Own *own = pointer;
    workspace_free(&own->ws);
    free(own->tail_rows);
    free(own);
}

/* order 0 and 1: out holds 1 or 1 + d rows per program; rows of unused columns are zero. */
static void values_task(void *context, void *pointer, int64_t i) {
    Job *job = context;
    Own *own = pointer;
    Workspace *ws = &own->ws;
    const Call *call = job->call;
    const Inputs *in = &call->inputs;
    int64_t d = in->n_features, N = in->n_rows;
    double *out = job->out + i * N * (job->order ? 1 + d : 1);
    plan(ws, &call->population, i, call->population.constants + call->population.constant_offsets[i], NULL, job->want);
    if (job->order) { /* ws->touched is scratch between tiles */
        memset(ws->touched, 0, (size_t)d);
        for (int32_t k = 0; k < ws->n_used; k++) ws->touched[ws->used[k]] = 1;
        for (int64_t j = 0; j < d; j++)
            if (!ws->touched[j]) memset(out + (1 + j) * N, 0, (size_t)N * sizeof(double));
    }
    for (Tile t = tile_at(in, 0, ws->tile); t.real && !should_stop(); t = tile_at(in, t.row + t.real, ws->tile)) {
        double *target = t.is_tail ? own->tail : out + t.row;
        set_inputs(ws, in, t.row);
        if (job->order == 0) {
            call->hot->values(ws, t.n, target);
        } else {
            for (int32_t k = 0; k < ws->n_used; k++) {
                int64_t j = ws->used[k];
                ws->gradient[j] = t.is_tail ? own->tail_rows + k * LANES : out + (1 + j) * N + t.row;
            }
            call->hot->gradient(ws, t.n, target, WANT_INPUTS);
        }
        if (t.is_tail) {
            size_t bytes = (size_t)t.real * sizeof(double);
            memcpy(out + t.row, own->tail, bytes);
            if (job->order)
                for (int32_t k = 0; k < ws->n_used; k++)
                    memcpy(out + (1 + ws->used[k]) * N + t.row, own->tail_rows + k * LANES, bytes);
        }
    }
}

static void jacobian_task(void *context, void *pointer, int64_t i) {
    Job *job = context;
    Own *own = pointer;
    Workspace *ws = &own->ws;
    const Call *call = job->call;
    const Inputs *in = &call->inputs;
    int64_t N = in->n_rows, first = call->population.constant_offsets[i];
    double *out = job->out + i * N, *jacobian = job->jacobian + first * N;
    plan(ws, &call->population, i, call->population.constants + first, NULL, WANT_CONSTANTS);
    for (Tile t = tile_at(in, 0, ws->tile); t.real && !should_stop(); t = tile_at(in, t.row + t.real, ws->tile)) {
        set_inputs(ws, in, t.row);
        for (int32_t k = 0; k < ws->n_constants; k++)
            ws->gradient[k] = t.is_tail ? own->tail_rows + k * LANES : jacobian + k * N + t.row;
        call->hot->gradient(ws, t.n, t.is_tail ? own->tail : out + t.row, WANT_CONSTANTS);
        if (t.is_tail) {
            size_t bytes = (size_t)t.real * sizeof(double);
            memcpy(out + t.row, own->tail, bytes);
            for (int32_t k = 0; k < ws->n_constants; k++) memcpy(jacobian + k * N + t.row, own->tail_rows + k * LANES, bytes);
        }
    }
}

/* Copy one row of a tile, or zeros where there is none. */
static void put(double *out, const double *row, int64_t n) {
    if (row) memcpy(out, row, (size_t)n * sizeof(double));
    else memset(out, 0, (size_t)n * sizeof(double));
}

static void second_task(void *context, void *pointer, int64_t i) {
    Job *job = context;
    Own *own = pointer;
    Workspace *ws = &own->ws;
    const Call *call = job->call;
    const Inputs *in = &call->inputs;
    int64_t d = in->n_features, N = in->n_rows, rows = (int64_t)second_rows(d);
    double *out = job->out + i * N * rows;
    plan(ws, &call->population, i, call->population.constants + call->population.constant_offsets[i], NULL, WANT_SECOND);
    if (second_room(ws)) {
        atomic_store(&job->failed, 1);
        return;
    }
    if (ws->n_used < d) memset(out, 0, (size_t)(rows * N) * sizeof(double));
    for (Tile t = tile_at(in, 0, ws->tile); t.real && !should_stop(); t = tile_at(in, t.row + t.real, ws->tile)) {
        set_inputs(ws, in, t.row);
        call->hot->second(ws, t.n);
        put(out + t.row, second_row(ws, 0), t.real);
        size_t pair = 1 + (size_t)ws->n_used;
        for (int32_t k = 0; k < ws->n_used; k++) {
            int64_t j = ws->used[k];
            put(out + (1 + j) * N + t.row, second_row(ws, 1 + (size_t)k), t.real);
            for (int32_t l = k; l < ws->n_used; l++) {
                int64_t where = 1 + d + j * d - j * (j - 1) / 2 + (ws->used[l] - j);
                put(out + where * N + t.row, second_row(ws, pair++), t.real);
            }
        }
    }
}

int derivatives(const Call *call, int order, double *out) {
    Job job = {.call = call, .order = order, .out = out};
    job.want = order == 0 ? WANT_VALUES : order == 1 ? WANT_INPUTS : WANT_SECOND;
    atomic_init(&job.failed, 0);
    Work work = {enter, order == 2 ? second_task : values_task, leave};
    int result = run_parallel(&work, &job, call->inputs.n_rows ? call->population.n_programs : 0, call->n_threads);
    return result || atomic_load(&job.failed) ? -1 : 0;
}

int jacobians(const Call *call, double *values, double *jacobian) {
    Job job = {.call = call, .want = WANT_CONSTANTS, .out = values, .jacobian = jacobian};
    Work work = {enter, jacobian_task, leave};
    return run_parallel(&work, &job, call->inputs.n_rows ? call->population.n_programs : 0, call->n_threads);
}
