/* The Python module: checks every buffer before the kernel touches memory, and releases the GIL. */
#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030b0000
#endif
#include <Python.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

#define MAX_THREADS 256

typedef struct {
    Py_buffer views[16];
    int n;
    void *copies[16];
    int n_copies;
} Buffers;

static void release(Buffers *buffers) {
    for (int k = 0; k < buffers->n; k++) PyBuffer_Release(buffers->views + k);
    for (int k = 0; k < buffers->n_copies; k++) free(buffers->copies[k]);
    buffers->n = buffers->n_copies = 0;
}

/* What memory is reached by is checked and used in a copy: another thread may write to the caller's array meanwhile. NULL with an
 * exception set where v is NULL or there is no memory. */
static const void *copy_of(Buffers *buffers, const Py_buffer *v) {
    if (!v) return NULL;
    void *copy = malloc((size_t)v->len + 1);
    if (!copy) return PyErr_NoMemory();
    memcpy(copy, v->buf, (size_t)v->len);
    return buffers->copies[buffers->n_copies++] = copy;
}

/* A C-contiguous buffer of the given letters and dimension; NULL with an exception set. */
static Py_buffer *view(Buffers *buffers, PyObject *object, const char *name, const char *letters, int size, int ndim,
                       int writable) {
    Py_buffer *v = buffers->views + buffers->n;
    if (PyObject_GetBuffer(object, v, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0))) {
        PyErr_Clear();
        PyErr_Format(PyExc_ValueError, "'%s' must be a C-contiguous%s array.", name, writable ? " writable" : "");
        return NULL;
    }
    buffers->n++;
    const char *format = v->format ? v->format : "B";
    if (v->itemsize != size || v->ndim != ndim || strlen(format) != 1 || !strchr(letters, format[0])) {
        PyErr_Format(PyExc_ValueError, "'%s' has format '%s' and %d dimension(s); expected one of '%s' and %d.", name,
                     format, v->ndim, letters, ndim);
        return NULL;
    }
    return v;
}

#define DOUBLES(o, name, ndim, w) view(buffers, o, name, "d", 8, ndim, w)
#define LONGS(o, name, w) view(buffers, o, name, "lq", 8, 1, w)
#define INTS(o, name, w) view(buffers, o, name, "il", 4, 1, w)

typedef struct {
    Call call;
    double *tail;
} Prepared;

static int refuse(const char *message) {
    PyErr_SetString(PyExc_ValueError, message);
    return -1;
}

/* programs: (codes, offsets, constants, constant_offsets); options: (n_threads, level). */
static int prepare(Prepared *prepared, Buffers *buffers, PyObject *programs, PyObject *X, int n_threads, int level) {
    PyObject *codes, *offsets, *constants, *constant_offsets;
    Call *call = &prepared->call;
    memset(prepared, 0, sizeof *prepared);
    if (!PyArg_ParseTuple(programs, "OOOO", &codes, &offsets, &constants, &constant_offsets)) return -1;
    Py_buffer *vc = INTS(codes, "codes", 0), *vo = vc ? LONGS(offsets, "offsets", 0) : NULL;
    Py_buffer *vk = vo ? DOUBLES(constants, "constants", 1, 0) : NULL;
    Py_buffer *vko = vk ? LONGS(constant_offsets, "constant_offsets", 0) : NULL;
    Py_buffer *vx = vko ? DOUBLES(X, "X", 2, 0) : NULL;
    if (!vx) return -1;
    Population *p = &call->population;
    if (vo->shape[0] < 1 || vo->shape[0] != vko->shape[0]) return refuse("'offsets' and 'constant_offsets' must have the same length, at least 1.");
    p->codes = copy_of(buffers, vc), p->offsets = copy_of(buffers, vo), p->constants = vk->buf;
    p->constant_offsets = copy_of(buffers, vko);
    if (PyErr_Occurred()) return -1;
    p->n_programs = vo->shape[0] - 1;
    p->n_features = vx->shape[0];
    if (p->n_features > (1 << 30)) return refuse("'X' has too many features.");
    int64_t bad;
    const char *problem = check_population(p, vc->shape[0], vk->shape[0], &bad, &call->longest, &call->most_constants);
    if (problem) {
        if (bad < 0) PyErr_Format(PyExc_ValueError, "The programs' %s.", problem);
        else PyErr_Format(PyExc_ValueError, "Program %lld %s.", (long long)bad, problem);
        return -1;
    }
    if (n_threads < 1) return refuse("'n_threads' must be at least 1.");
    call->n_threads = n_threads < MAX_THREADS ? n_threads : MAX_THREADS;
    call->hot = hot_select(level);
    Inputs *in = &call->inputs;
    in->rows = vx->buf, in->n_rows = vx->shape[1], in->n_features = vx->shape[0];
    in->n_whole = in->n_rows / LANES * LANES;
    prepared->tail = calloc((size_t)in->n_features * LANES + 1, sizeof(double));
    if (!prepared->tail) {
        PyErr_NoMemory();
        return -1;
    }
    if (in->n_rows) /* padding repeats the last row: no operator meets a value that is not in the sample */
        for (int64_t j = 0; j < in->n_features; j++)
            for (int64_t k = 0; k < LANES; k++) {
                int64_t row = in->n_whole + k < in->n_rows ? in->n_whole + k : in->n_rows - 1;
                prepared->tail[j * LANES + k] = in->rows[j * in->n_rows + row];
            }
    in->tail = prepared->tail;
    return 0;
}

static PyObject *finish(Prepared *prepared, Buffers *buffers, int result) {
    free(prepared->tail);
    release(buffers);
    if (PyErr_Occurred()) return NULL;
    if (result) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* Takes the GIL for a moment and lets Python look at its signals; an exception it raises stays set. */
static int python_wants_to_stop(void *state) {
    PyThreadState **saved = state;
    PyEval_RestoreThread(*saved);
    int wants = PyErr_CheckSignals() != 0;
    *saved = PyEval_SaveThread();
    return wants;
}

#define WITHOUT_THE_GIL(statement)                                            \
    do {                                                                      \
        Stopping stopping;                                                    \
        PyThreadState *saved = PyEval_SaveThread();                           \
        watch_begin(&stopping, (Watch){python_wants_to_stop, &saved});        \
        statement;                                                            \
        watch_end();                                                          \
        PyEval_RestoreThread(saved);                                          \
    } while (0)

static int64_t derivative_rows(int64_t d, int order) { return order == 0 ? 1 : order == 1 ? 1 + d : (int64_t)second_rows(d); }

static PyObject *py_derivatives(PyObject *self, PyObject *args) {
    PyObject *programs, *X, *out;
    int order, n_threads, level, result = 0;
    Buffers storage = {.n = 0, .n_copies = 0}, *buffers = &storage;
    Prepared prepared = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "O!OiOii", &PyTuple_Type, &programs, &X, &order, &out, &n_threads, &level)) return NULL;
    if (prepare(&prepared, buffers, programs, X, n_threads, level)) return finish(&prepared, buffers, 0);
    Py_buffer *vout = DOUBLES(out, "out", 3, 1);
    const Call *call = &prepared.call;
    if (vout && (order < 0 || order > 2)) refuse("'order' must be 0, 1 or 2.");
    else if (vout && (vout->shape[0] != call->population.n_programs || vout->shape[2] != call->inputs.n_rows ||
                      vout->shape[1] != derivative_rows(call->inputs.n_features, order)))
        refuse("'out' has the wrong shape.");
    if (!PyErr_Occurred()) {
        WITHOUT_THE_GIL(result = derivatives(call, order, vout->buf));
    }
    return finish(&prepared, buffers, result);
}

static PyObject *py_jacobians(PyObject *self, PyObject *args) {
    PyObject *programs, *X, *values, *jacobian;
    int n_threads, level, result = 0;
    Buffers storage = {.n = 0, .n_copies = 0}, *buffers = &storage;
    Prepared prepared = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "O!OOOii", &PyTuple_Type, &programs, &X, &values, &jacobian, &n_threads, &level)) return NULL;
    if (prepare(&prepared, buffers, programs, X, n_threads, level)) return finish(&prepared, buffers, 0);
    const Call *call = &prepared.call;
    const Population *p = &call->population;
    Py_buffer *vv = DOUBLES(values, "values", 2, 1), *vj = vv ? DOUBLES(jacobian, "jacobian", 2, 1) : NULL;
    if (vj && (vv->shape[0] != p->n_programs || vv->shape[1] != call->inputs.n_rows ||
               vj->shape[0] != p->constant_offsets[p->n_programs] || vj->shape[1] != call->inputs.n_rows))
        refuse("'values' or 'jacobian' has the wrong shape.");
    if (!PyErr_Occurred()) {
        WITHOUT_THE_GIL(result = jacobians(call, vv->buf, vj->buf));
    }
    return finish(&prepared, buffers, result);
}

/* Offsets that start at 0, never decrease and end at last. */
static int is_partition(const int64_t *offsets, int64_t n, int64_t last) {
    if (n < 1 || offsets[0] != 0 || offsets[n - 1] != last) return 0;
    for (int64_t k = 1; k < n; k++)
        if (offsets[k] < offsets[k - 1]) return 0;
    return 1;
}

/* fit(programs, term_offsets, free, X, y, weights or None, n_iterations, coefficients, constants, loss, status, threads, level) */
static PyObject *py_fit(PyObject *self, PyObject *args) {
    PyObject *programs, *X, *offsets, *free_, *y, *weights, *coefficients, *constants, *loss, *status;
    int n_iterations, n_threads, level, result = 0;
    Buffers storage = {.n = 0, .n_copies = 0}, *buffers = &storage;
    Prepared prepared = {0};
    FitJob job = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "O!OOOOOiOOOOii", &PyTuple_Type, &programs, &offsets, &free_, &X, &y, &weights,
                          &n_iterations, &coefficients, &constants, &loss, &status, &n_threads, &level))
        return NULL;
    if (prepare(&prepared, buffers, programs, X, n_threads, level)) return finish(&prepared, buffers, 0);
    const Population *p = &prepared.call.population;
    Py_ssize_t N = prepared.call.inputs.n_rows, n_constants = p->constant_offsets[p->n_programs];
    Py_buffer *vo = LONGS(offsets, "term_offsets", 0), *vf = vo ? view(buffers, free_, "free", "?B", 1, 1, 0) : NULL;
    Py_buffer *vy = vf ? DOUBLES(y, "y", 1, 0) : NULL, *vw = NULL;
    if (vy && weights != Py_None) vw = DOUBLES(weights, "weights", 1, 0);
    Py_buffer *vb = vy && !PyErr_Occurred() ? DOUBLES(coefficients, "coefficients", 1, 1) : NULL;
    Py_buffer *vk = vb ? DOUBLES(constants, "constants", 1, 1) : NULL, *vl = vk ? DOUBLES(loss, "loss", 1, 1) : NULL;
    Py_buffer *vs = vl ? INTS(status, "status", 1) : NULL;
    if (!vs) return finish(&prepared, buffers, 0);
    const int64_t *o = copy_of(buffers, vo);
    const uint8_t *is_free = o ? copy_of(buffers, vf) : NULL;
    if (!is_free) return finish(&prepared, buffers, 0);
    job.n_candidates = vo->shape[0] - 1;
    if (!is_partition(o, vo->shape[0], p->n_programs)) refuse("'term_offsets' must ascend from 0 to the number of programs.");
    else if (vf->shape[0] != n_constants || vk->shape[0] != n_constants) refuse("'free' must have one entry per constant.");
    else if (vy->shape[0] != N || (vw && vw->shape[0] != N)) refuse("'y' and 'weights' must have one entry per sample.");
    else if (vb->shape[0] != p->n_programs || vl->shape[0] != job.n_candidates || vs->shape[0] != job.n_candidates)
        refuse("The output arrays have the wrong shapes.");
    else if (n_iterations < 0) refuse("'n_iterations' must not be negative.");
    for (int64_t c = 0; !PyErr_Occurred() && c < job.n_candidates; c++)
        if (o[c + 1] - o[c] + p->constant_offsets[o[c + 1]] - p->constant_offsets[o[c]] > MAX_COLUMNS)
            refuse("A candidate has more than 4096 terms and constants. Fit fewer at a time.");
    if (!PyErr_Occurred()) {
        job.term_offsets = o, job.free_constants = is_free, job.y = vy->buf, job.weights = vw ? vw->buf : NULL;
        job.n_iterations = n_iterations, job.coefficients = vb->buf, job.constants = vk->buf;
        job.loss = vl->buf, job.status = vs->buf;
        WITHOUT_THE_GIL(result = fit(&prepared.call, &job));
    }
    return finish(&prepared, buffers, result);
}

/* novelties(programs, members, offsets, X, factors, order, free_intercept, min_rows, rules, novelty, lengths, rows, status,
 *           triangles or None, triangle_offsets, threads, level) */
static PyObject *py_novelties(PyObject *self, PyObject *args) {
    PyObject *programs, *X, *members, *offsets, *factors, *rules, *novelty, *lengths, *rows, *status, *triangles, *places;
    int order, free_intercept, min_rows, n_threads, level, result = 0;
    Buffers storage = {.n = 0, .n_copies = 0}, *buffers = &storage;
    Prepared prepared = {0};
    NoveltyJob job = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "O!OOOOipiOOOOOOOii", &PyTuple_Type, &programs, &members, &offsets, &X, &factors, &order,
                          &free_intercept, &min_rows, &rules, &novelty, &lengths, &rows, &status, &triangles, &places, &n_threads, &level))
        return NULL;
    if (prepare(&prepared, buffers, programs, X, n_threads, level)) return finish(&prepared, buffers, 0);
    Py_buffer *vm = LONGS(members, "members", 0), *vo = vm ? LONGS(offsets, "offsets", 0) : NULL;
    Py_buffer *vf = vo ? DOUBLES(factors, "factors", 1, 0) : NULL, *vn = vf ? DOUBLES(novelty, "novelty", 1, 1) : NULL;
    Py_buffer *vl = vn ? DOUBLES(lengths, "lengths", 1, 1) : NULL, *vr = vl ? LONGS(rows, "rows", 1) : NULL;
    Py_buffer *vs = vr ? INTS(status, "status", 1) : NULL, *vu = vs ? DOUBLES(rules, "rules", 1, 0) : NULL, *vt = NULL;
    Py_buffer *vp = vu ? LONGS(places, "triangle_offsets", 0) : NULL;
    if (vp && triangles != Py_None) vt = DOUBLES(triangles, "triangles", 1, 1);
    if (!vp || PyErr_Occurred()) return finish(&prepared, buffers, 0);
    const int64_t *m = copy_of(buffers, vm), *o = m ? copy_of(buffers, vo) : NULL, *places_of = o ? copy_of(buffers, vp) : NULL;
    const double *rules_of = places_of ? copy_of(buffers, vu) : NULL;
    if (!rules_of) return finish(&prepared, buffers, 0);
    job.n_candidates = vo->shape[0] - 1;
    if (order < 0 || order > 2) refuse("'order' must be 0, 1 or 2.");
    else if (!is_partition(o, vo->shape[0], vm->shape[0])) refuse("'offsets' must ascend from 0 to the number of members.");
    else if (vf->shape[0] != derivative_rows(prepared.call.inputs.n_features, order)) refuse("'factors' has the wrong length.");
    else if (vn->shape[0] != vm->shape[0] || vl->shape[0] != vm->shape[0] || vr->shape[0] != job.n_candidates ||
             vs->shape[0] != job.n_candidates || vu->shape[0] != (Py_ssize_t)N_RULES || vp->shape[0] != vo->shape[0] ||
             (vt && !is_partition(places_of, vp->shape[0], vt->shape[0])))
        refuse("The output arrays have the wrong shapes.");
    for (int64_t c = 0; vt && !PyErr_Occurred() && c < job.n_candidates; c++) {
        const int64_t count = o[c + 1] - o[c];
        if (places_of[c + 1] - places_of[c] != count * count) refuse("'triangle_offsets' has the wrong steps.");
    }
    for (Py_ssize_t k = 0; !PyErr_Occurred() && k < vm->shape[0]; k++)
        if (m[k] < 0 || m[k] >= prepared.call.population.n_programs) refuse("'members' names a program that is not there.");
    for (int64_t c = 0; !PyErr_Occurred() && c < job.n_candidates; c++)
        if (o[c + 1] - o[c] > MAX_COLUMNS) refuse("A candidate has more than 4096 terms. Split it.");
    if (!PyErr_Occurred()) {
        job.members = m, job.offsets = o, job.factors = vf->buf, job.order = order, job.min_rows = min_rows;
        job.free_intercept = free_intercept;
        job.novelty = vn->buf, job.lengths = vl->buf, job.rows = vr->buf, job.status = vs->buf, job.rules = (const Rules *)rules_of;
        job.triangles = vt ? vt->buf : NULL, job.triangle_offsets = places_of;
        WITHOUT_THE_GIL(result = novelties(&prepared.call, &job));
    }
    return finish(&prepared, buffers, result);
}

#define FLOATS(o, name, ndim, w) view(buffers, o, name, "f", 4, ndim, w)

static int threads_within(int n_threads) {
    if (n_threads < 1) refuse("'n_threads' must be at least 1.");
    return n_threads < MAX_THREADS ? n_threads : MAX_THREADS;
}

static int is_within(const int64_t *places, Py_ssize_t n, Py_ssize_t size) {
    for (Py_ssize_t k = 0; k < n; k++)
        if (places[k] < 0 || places[k] >= size) return 0;
    return 1;
}

/* unit_columns(left, right, first, second, how, is_log, begin, lengths, panels or None, threads, level) */
static PyObject *py_unit_columns(PyObject *self, PyObject *args) {
    PyObject *left, *right, *first, *second, *lengths, *panels;
    int n_threads, level, result = 0;
    Py_ssize_t begin;
    Buffers storage = {.n = 0, .n_copies = 0}, *buffers = &storage;
    Prepared prepared = {0};
    UnitJob job = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOipnOOii", &left, &right, &first, &second, &job.how, &job.is_log, &begin, &lengths, &panels,
                          &n_threads, &level))
        return NULL;
    Py_buffer *va = DOUBLES(left, "left", 2, 0), *vb = va ? DOUBLES(right, "right", 2, 0) : NULL;
    Py_buffer *vi = vb ? LONGS(first, "first", 0) : NULL, *vj = vi ? LONGS(second, "second", 0) : NULL;
    Py_buffer *vl = vj ? DOUBLES(lengths, "lengths", 1, 1) : NULL;
    Py_buffer *vp = vl && panels != Py_None ? FLOATS(panels, "panels", 3, 1) : NULL;
    const int64_t *i = vl && !PyErr_Occurred() ? copy_of(buffers, vi) : NULL, *j = i ? copy_of(buffers, vj) : NULL;
    job.n_threads = threads_within(n_threads);
    if (!j || PyErr_Occurred()) return finish(&prepared, buffers, 0);
    job.n_columns = vi->shape[0], job.n_rows = va->shape[1], job.begin = begin;
    if (vb->shape[1] != va->shape[1]) refuse("'left' and 'right' have different numbers of rows.");
    else if (vj->shape[0] != job.n_columns) refuse("'first' and 'second' have different lengths.");
    else if (!is_within(i, job.n_columns, va->shape[0]) || !is_within(j, job.n_columns, vb->shape[0]))
        refuse("'first' or 'second' names a column that is not there.");
    else if (job.how < 0 || job.how >= N_JOINS) refuse("'how' names no way to join columns.");
    else if (begin < 0 || begin > vl->shape[0] - job.n_columns) refuse("'lengths' has the wrong shape.");
    else if (vp && (vp->shape[0] != (vl->shape[0] + PANEL - 1) / PANEL || vp->shape[1] != job.n_rows || vp->shape[2] != PANEL))
        refuse("'panels' has the wrong shape.");
    if (!PyErr_Occurred()) {
        job.hot = hot_select(level), job.left = va->buf, job.right = vb->buf, job.first = i, job.second = j;
        job.lengths = vl->buf, job.panels = vp ? vp->buf : NULL;
        WITHOUT_THE_GIL(result = unit_columns(&job));
    }
    return finish(&prepared, buffers, result);
}

/* 0 where a node begins with a standing that is not there or that this call writes, or writes one that another node writes. */
static int is_lineage(const int64_t *parents, const int64_t *slots, int64_t n_nodes, Py_ssize_t n_slots) {
    for (int64_t c = 0; c < n_nodes; c++) {
        if (parents[c] < -1 || parents[c] >= n_slots || slots[c] < -1 || slots[c] >= n_slots) return 0;
        for (int64_t other = 0; slots[c] >= 0 && other < n_nodes; other++)
            if (parents[other] == slots[c] || (other != c && slots[other] == slots[c])) return 0;
    }
    return 1;
}

/* offers(panels, n_columns, directions, members, offsets, parents, slots, weights, standings, smallest, places, gains, threads, level) */
static PyObject *py_offers(PyObject *self, PyObject *args) {
    PyObject *panels, *directions, *members, *offsets, *parents, *slots, *weights, *standings, *places, *gains;
    int n_threads, level, result = 0;
    Py_ssize_t n_columns;
    Buffers storage = {.n = 0, .n_copies = 0}, *buffers = &storage;
    Prepared prepared = {0};
    OfferJob job = {0};
    (void)self;
    if (!PyArg_ParseTuple(args, "OnOOOOOOOfOOii", &panels, &n_columns, &directions, &members, &offsets, &parents, &slots, &weights,
                          &standings, &job.smallest, &places, &gains, &n_threads, &level))
        return NULL;
    Py_buffer *vp = FLOATS(panels, "panels", 3, 0), *vd = vp ? FLOATS(directions, "directions", 2, 0) : NULL;
    Py_buffer *vm = vd ? LONGS(members, "members", 0) : NULL, *vo = vm ? LONGS(offsets, "offsets", 0) : NULL;
    Py_buffer *va = vo ? LONGS(parents, "parents", 0) : NULL, *vs = va ? LONGS(slots, "slots", 0) : NULL;
    Py_buffer *vw = vs ? FLOATS(weights, "weights", 1, 0) : NULL, *vt = vw ? FLOATS(standings, "standings", 4, 1) : NULL;
    Py_buffer *vc = vt ? view(buffers, places, "places", "lq", 8, 2, 1) : NULL, *vg = vc ? FLOATS(gains, "gains", 2, 1) : NULL;
    const int64_t *m = vg ? copy_of(buffers, vm) : NULL, *o = m ? copy_of(buffers, vo) : NULL;
    const int64_t *from = o ? copy_of(buffers, va) : NULL, *to = from ? copy_of(buffers, vs) : NULL;
    job.n_threads = threads_within(n_threads);
    if (!to || PyErr_Occurred()) return finish(&prepared, buffers, 0);
    job.n_columns = n_columns, job.n_rows = vd->shape[1], job.n_directions = vd->shape[0];
    job.n_nodes = vo->shape[0] - 1, job.n_top = vc->shape[1];
    if (n_columns < 0 || vp->shape[0] != (n_columns + PANEL - 1) / PANEL || vp->shape[1] != job.n_rows || vp->shape[2] != PANEL)
        refuse("'panels' has the wrong shape.");
    else if (!is_partition(o, vo->shape[0], vm->shape[0])) refuse("'offsets' must ascend from 0 to the number of members.");
    else if (vc->shape[0] != job.n_nodes || vg->shape[0] != job.n_nodes || vg->shape[1] != job.n_top)
        refuse("'places' or 'gains' has the wrong shape.");
    else if (va->shape[0] != job.n_nodes || vs->shape[0] != job.n_nodes || vw->shape[0] != vm->shape[0])
        refuse("'parents', 'slots' or 'weights' has the wrong length.");
    else if (vt->shape[1] != vp->shape[0] || vt->shape[2] != 2 || vt->shape[3] != PANEL) refuse("'standings' has the wrong shape.");
    else if (!is_lineage(from, to, job.n_nodes, vt->shape[0]))
        refuse("'parents' or 'slots' names a standing that is not there, or one that is written meanwhile.");
    for (int64_t c = 0; !PyErr_Occurred() && c < job.n_nodes; c++)
        if (o[c + 1] == o[c] || (m[o[c]] < 0 && from[c] < 0)) refuse("A node has no residual.");
    for (int64_t c = 0; !PyErr_Occurred() && c < job.n_nodes; c++)
        for (int64_t k = o[c]; k < o[c + 1]; k++)
            if (m[k] < (k == o[c] ? -1 : 0) || m[k] >= job.n_directions) refuse("'members' names a direction that is not there.");
    if (!PyErr_Occurred()) {
        job.hot = hot_select(level), job.panels = vp->buf, job.directions = vd->buf, job.members = m, job.offsets = o;
        job.parents = from, job.slots = to, job.weights = vw->buf, job.standings = vt->buf;
        job.places = vc->buf, job.gains = vg->buf;
        WITHOUT_THE_GIL(result = pursuit_offers(&job));
    }
    return finish(&prepared, buffers, result);
}

static PyObject *py_operators(PyObject *self, PyObject *args) {
    static const char *const names[] = {OPERATOR_NAMES};
    (void)self, (void)args;
    PyObject *list = PyList_New(0);
    for (int k = 1; list && k <= N_OPERATORS; k++) {
        PyObject *name = PyUnicode_FromString(names[k]);
        if (!name || PyList_Append(list, name)) Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

/* level -> (name of the instruction set, libmvec level) */
static PyObject *py_instruction_set(PyObject *self, PyObject *args) {
    int level;
    (void)self;
    if (!PyArg_ParseTuple(args, "i", &level)) return NULL;
    return Py_BuildValue("(si)", hot_select(level)->name, SOBOLEV_LIBMVEC);
}

#ifdef SOBOLEV_FAULTS
/* failing -> allocations since the last call: the failing-th allocation from now on gets no memory; none where it is negative. */
static PyObject *py_count_allocations(PyObject *self, PyObject *args) {
    long long failing;
    (void)self;
    if (!PyArg_ParseTuple(args, "L", &failing)) return NULL;
    return PyLong_FromLongLong(count_allocations(failing));
}
#endif

static PyMethodDef methods[] = {
#ifdef SOBOLEV_FAULTS
    {"count_allocations", py_count_allocations, METH_VARARGS, NULL},
#endif
    {"derivatives", py_derivatives, METH_VARARGS, NULL},
    {"jacobians", py_jacobians, METH_VARARGS, NULL},
    {"fit", py_fit, METH_VARARGS, NULL},
    {"novelties", py_novelties, METH_VARARGS, NULL},
    {"unit_columns", py_unit_columns, METH_VARARGS, NULL},
    {"offers", py_offers, METH_VARARGS, NULL},
    {"operators", py_operators, METH_NOARGS, NULL},
    {"instruction_set", py_instruction_set, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_native", "The compiled kernel; see numpy_kernel.py.", 0,
                                        methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&definition); }
