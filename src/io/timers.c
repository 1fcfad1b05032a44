/* Timers: a binary heap by due time, then by the order of arming. */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/error.h"
#include "io/loop-inside.h"

enum { TIMERS_MAX = 1 << 20 };

static bool before(const struct loop_timer *a, const struct loop_timer *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->seq < b->seq;
}

static void place(struct loop *loop, struct loop_timer *timer, size_t i)
{
    loop->heap[i] = timer;
    timer->at = i + 1;
}

static void sift_up(struct loop *loop, struct loop_timer *timer, size_t i)
{
    while (i > 0 && before(timer, loop->heap[(i - 1) / 2])) {
        place(loop, loop->heap[(i - 1) / 2], i);
        i = (i - 1) / 2;
    }
    place(loop, timer, i);
}

static void sift_down(struct loop *loop, struct loop_timer *timer, size_t i)
{
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= loop->n_heap)
            break;
        if (child + 1 < loop->n_heap && before(loop->heap[child + 1], loop->heap[child]))
            child++;
        if (!before(loop->heap[child], timer))
            break;
        place(loop, loop->heap[child], i);
        i = child;
    }
    place(loop, timer, i);
}

static void heap_remove(struct loop_timer *timer)
{
    struct loop *loop = timer->loop;
    size_t i = timer->at - 1;
    struct loop_timer *last = loop->heap[--loop->n_heap];

    timer->at = 0;
    loop->n_counting -= !timer->weak;
    if (last == timer)
        return;
    if (i > 0 && before(last, loop->heap[(i - 1) / 2]))
        sift_up(loop, last, i);
    else
        sift_down(loop, last, i);
}

static void heap_add(struct loop_timer *timer)
{
    struct loop *loop = timer->loop;

    timer->seq = loop->next_seq++;
    loop->n_counting += !timer->weak;
    loop->n_heap++;
    sift_up(loop, timer, loop->n_heap - 1);
}

struct loop_timer *loop_timer_first(const struct loop *loop)
{
    return loop->n_heap > 0 ? loop->heap[0] : NULL;
}

int loop_timer_init(struct loop_timer *timer, struct loop *loop, loop_timer_fn fn,
                    void *user)
{
    void *items = loop->heap;
    int r = array_reserve(&items, &loop->cap_heap, loop->n_reserved + 1,
                          sizeof *loop->heap, TIMERS_MAX);
    loop->heap = items;
    if (r < 0)
        return r;
    loop->n_reserved++;
    *timer = (struct loop_timer){.loop = loop, .fn = fn, .user = user};
    return 0;
}

void loop_timer_disarm(struct loop_timer *timer)
{
    if (timer->at == 0)
        return;
    heap_remove(timer);
    timer->loop->ops->rearm(timer->loop);
}

void loop_timer_fini(struct loop_timer *timer)
{
    if (!timer->loop)
        return;
    loop_timer_disarm(timer);
    timer->loop->n_reserved--;
    timer->loop = NULL;
}

int loop_timer_new(struct loop *loop, uint64_t at_ns, uint64_t period_ns,
                   loop_timer_fn fn, void *user, struct loop_timer **ret, uw_error *err)
{
    struct loop_timer *timer = malloc(sizeof *timer);
    int r = timer ? loop_timer_init(timer, loop, fn, user) : -ENOMEM;

    if (r < 0) {
        free(timer);
        return fail(err, r, "timer: %s",
                    r == -E2BIG ? "too many timers" : "out of memory");
    }
    loop_link_add(&loop->timers, &timer->link);
    loop_timer_set(timer, at_ns, period_ns);
    *ret = timer;
    return 0;
}

void loop_timer_set(struct loop_timer *timer, uint64_t at_ns, uint64_t period_ns)
{
    if (timer->at > 0)
        heap_remove(timer);
    timer->due_ns = at_ns;
    timer->period_ns = period_ns;
    heap_add(timer);
    timer->loop->ops->rearm(timer->loop);
}

void loop_timer_free(struct loop_timer *timer)
{
    if (!timer)
        return;
    loop_link_remove(&timer->link);
    loop_timer_fini(timer);
    free(timer);
}

void loop_timer_fire(struct loop_timer *timer, uint64_t now_ns)
{
    struct loop *loop = timer->loop;
    uint64_t due = timer->due_ns, period = timer->period_ns;

    heap_remove(timer);
    if (period > 0) {
        uint64_t missed = now_ns > due ? (now_ns - due) / period : 0;
        timer->due_ns = due + period * (missed + 1);
        heap_add(timer);
    }
    /* The callback may free the timer: it is not touched after this. */
    loop_took(loop, timer->fn(timer, now_ns, timer->user));
    loop->ops->rearm(loop);
}
