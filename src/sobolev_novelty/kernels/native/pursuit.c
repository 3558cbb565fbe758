/* Matching pursuit: columns joined from those of two matrices, scaled to unit length and laid out in panels, and the columns that
 * would explain most beside given ones. numpy_pursuit.py defines both. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

#define TASKS_PER_THREAD 4

static void *enter_unit(void *context) {
    const UnitJob *job = context;
    return malloc((size_t)(job->n_rows * PANEL + 1) * sizeof(double));
}

/* The columns of one panel. */
static void unit_task(void *context, void *own, int64_t task) {
    const UnitJob *job = context;
    int64_t n = job->n_rows, start = (job->begin / PANEL + task) * PANEL, last = job->begin + job->n_columns;
    int64_t from = start > job->begin ? start : job->begin, to = start + PANEL < last ? start + PANEL : last;
    double *columns = own, factors[PANEL];
    for (int64_t place = from; place < to; place++) {
        int64_t k = place - job->begin;
        double *column = columns + (place - from) * n;
        int is_there = job->hot->join(job->left + job->first[k] * n, job->right + job->second[k] * n, n, job->how, job->is_log, column);
        double length = is_there ? sqrt(job->hot->dot(column, column, n)) : 0.0, factor = 1.0 / length;
        job->lengths[place] = length;
        factors[place - from] = isfinite(length) && isfinite(factor) ? factor : 0.0;
    }
    if (job->panels) job->hot->pack(columns, factors, to - from, n, from - start, job->panels + start * n);
}

int unit_columns(const UnitJob *job) {
    if (!job->n_columns) return 0;
    int64_t n_panels = (job->begin + job->n_columns - 1) / PANEL - job->begin / PANEL + 1;
    Work work = {enter_unit, unit_task, free};
    return run_parallel(&work, (void *)job, n_panels, job->n_threads);
}

typedef struct {
    const OfferJob *job;
    const float *directions; /* (n_groups, n_rows, GROUP) */
    int64_t n_groups, n_panels, n_tasks;
    int64_t *places; /* (n_tasks, n_nodes, n_top): each task's best */
    float *gains;
} Offers;

static void *enter(void *context) {
    const Offers *offers = context;
    return aligned_alloc(64, (size_t)(offers->n_groups * GROUP + 1) * PANEL * sizeof(float));
}

/* Into a list sorted from the largest; of equals the one that came first, which has the smaller place, stays in front. */
static void insert(int64_t *places, float *gains, int64_t n, int64_t place, float gain) {
    int64_t k = n - 1;
    if (!(gain > gains[k])) return;
    for (; k > 0 && gain > gains[k - 1]; k--) gains[k] = gains[k - 1], places[k] = places[k - 1];
    gains[k] = gain, places[k] = place;
}

static void offer_task(void *context, void *own, int64_t task) {
    const Offers *offers = context;
    const OfferJob *job = offers->job;
    int64_t n = job->n_top, first = task * offers->n_panels / offers->n_tasks, end = (task + 1) * offers->n_panels / offers->n_tasks;
    int64_t *places = offers->places + task * job->n_nodes * n;
    float *gains = offers->gains + task * job->n_nodes * n, *inner = own, *gain = inner + offers->n_groups * GROUP * PANEL;
    for (int64_t p = first; p < end && !should_stop(); p++) {
        job->hot->inner(job->panels + p * job->n_rows * PANEL, offers->directions, job->n_rows, job->n_directions, inner);
        for (int64_t c = 0; c < job->n_nodes; c++) {
            int64_t begin = job->offsets[c];
            int64_t size = 2 * PANEL, from = job->parents[c], to = job->slots[c];
            const float *parent = from < 0 ? NULL : job->standings + (from * offers->n_panels + p) * size;
            float *own_standing = to < 0 ? NULL : job->standings + (to * offers->n_panels + p) * size;
            job->hot->gains(inner, job->members + begin, job->weights + begin, job->offsets[c + 1] - begin, parent, own_standing,
                            job->smallest, gain);
            for (int64_t k = 0; k < PANEL; k++) insert(places + c * n, gains + c * n, n, p * PANEL + k, gain[k]);
        }
    }
}

int pursuit_offers(const OfferJob *job) {
    Offers offers = {.job = job, .n_groups = (job->n_directions + GROUP - 1) / GROUP, .n_panels = (job->n_columns + PANEL - 1) / PANEL};
    int64_t n_lists = job->n_nodes * job->n_top, wanted = job->n_threads > 1 ? (int64_t)job->n_threads * TASKS_PER_THREAD : 1;
    if (!n_lists || !offers.n_panels) return 0;
    offers.n_tasks = wanted < offers.n_panels ? wanted : offers.n_panels;
    size_t n_entries = (size_t)(offers.n_tasks * n_lists);
    float *packed = calloc((size_t)(offers.n_groups * GROUP * job->n_rows) + 1, sizeof(float));
    offers.places = malloc(n_entries * sizeof(int64_t));
    offers.gains = calloc(n_entries, sizeof(float));
    int result = packed && offers.places && offers.gains ? 0 : -1;
    if (!result) {
        for (int64_t d = 0; d < job->n_directions; d++)
            for (int64_t i = 0; i < job->n_rows; i++)
                packed[(d / GROUP * job->n_rows + i) * GROUP + d % GROUP] = job->directions[d * job->n_rows + i];
        offers.directions = packed;
        for (size_t k = 0; k < n_entries; k++) offers.places[k] = -1;
        Work work = {enter, offer_task, free};
        result = run_parallel(&work, &offers, offers.n_tasks, job->n_threads);
    }
    for (int64_t task = 0; !result && task < offers.n_tasks; task++)
        for (int64_t k = 0; k < n_lists; k++) {
            int64_t list = k / job->n_top * job->n_top, from = task * n_lists + k;
            insert(job->places + list, job->gains + list, job->n_top, offers.places[from], offers.gains[from]);
        }
    free(packed);
    free(offers.places);
    free(offers.gains);
    return result;
}
