/* Threads that live for one call: nothing survives it, so forking the process afterwards is safe.
 *
 * Tasks are handed out one by one from a counter. Each task writes to its own place, so the result does not depend on the
 * number of threads. */
#include <pthread.h>
#include <stdatomic.h>

#include "kernel.h"

typedef struct {
    const Work *work;
    Stopping *stopping;
    void *context;
    int64_t n_tasks;
    atomic_llong next;
    atomic_int was_stopped;
} Shared;

static void *worker(void *argument) {
    Shared *shared = argument;
    watch_join(shared->stopping);
    void *own = shared->work->enter(shared->context);
    if (!own) return NULL;
    for (;;) {
        int64_t i = atomic_fetch_add(&shared->next, 1);
        if (i >= shared->n_tasks) break;
        if (should_stop()) {
            atomic_store(&shared->was_stopped, 1);
            break;
        }
        shared->work->task(shared->context, own, i);
    }
    shared->work->leave(own);
    return NULL;
}

int run_parallel(const Work *work, void *context, int64_t n_tasks, int n_threads) {
    Shared shared = {.work = work, .stopping = watch_current(), .context = context, .n_tasks = n_tasks};
    atomic_init(&shared.next, 0);
    atomic_init(&shared.was_stopped, 0);
    if (n_tasks <= 0) return 0;
    if (n_threads > n_tasks) n_threads = (int)n_tasks;
    pthread_t *threads = n_threads > 1 ? malloc((size_t)(n_threads - 1) * sizeof *threads) : NULL;
    int started = 0;
    if (threads) /* where the system refuses a thread, the others do its work */
        while (started < n_threads - 1 && pthread_create(threads + started, NULL, worker, &shared) == 0) started++;
    worker(&shared);
    for (int k = 0; k < started; k++) pthread_join(threads[k], NULL);
    free(threads);
    /* A thread that found no memory leaves its share to the others; the call fails only when none could work. */
    return atomic_load(&shared.next) >= n_tasks && !atomic_load(&shared.was_stopped) ? 0 : -1;
}
