/* Ctrl-C inside a long call. The GIL is released while the kernel works, so Python cannot see a signal; the thread that made the
 * call takes the GIL back for a moment, some twenty times a second, and asks. */
#include <stdatomic.h>
#include <time.h>

#include "kernel.h"

#define LOOK_EVERY 50000000 /* nanoseconds */

/* One variable: each costs a call to find. */
static _Thread_local struct {
    Stopping *stopping;
    int is_caller;
    unsigned n_asked;
} own;

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

Stopping *watch_begin(Stopping *room, Watch watch) {
    room->watch = watch;
    room->next_look = now() + LOOK_EVERY;
    atomic_init(&room->wanted, 0);
    own.is_caller = 1;
    return own.stopping = room;
}

void watch_end(void) {
    own.stopping = NULL;
    own.is_caller = 0;
}

Stopping *watch_current(void) { return own.stopping; }

/* A thread of run_parallel's; the caller's own is left as it is. */
void watch_join(Stopping *stopping) {
    if (!own.is_caller) own.stopping = stopping;
}

int should_stop(void) {
    Stopping *s = own.stopping;
    if (!s) return 0;
    if (own.is_caller && own.n_asked++ % 8 == 0 && now() >= s->next_look) {
        if (s->watch.look(s->watch.state)) atomic_store(&s->wanted, 1);
        s->next_look = now() + LOOK_EVERY;
    }
    return atomic_load_explicit(&s->wanted, memory_order_relaxed);
}

#ifdef SOBOLEV_FAULTS
static atomic_llong allocations, next_to_fail = -1;

int allocation_fails(void) {
    long long number = atomic_fetch_add(&allocations, 1);
    return number == atomic_load(&next_to_fail);
}

int64_t count_allocations(int64_t failing) {
    atomic_store(&next_to_fail, failing);
    return atomic_exchange(&allocations, 0);
}
#endif
