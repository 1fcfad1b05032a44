/* Timers: a binary heap by due time, then by the order of arming. */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/error.h"
#include "io/timers.h"

enum { TIMERS_MAX = 1 << 20 };

static bool before(const struct loop_timer *a, const struct loop_timer *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->seq < b->seq;
}

static void place(struct timer_heap *h, struct loop_timer *timer, size_t i)
{
    h->timer[i] = timer;
    timer->at = i + 1;
}

static void sift_up(struct timer_heap *h, struct loop_timer *timer, size_t i)
{
    while (i > 0 && before(timer, h->timer[(i - 1) / 2])) {
        place(h, h->timer[(i - 1) / 2], i);
        i = (i - 1) / 2;
    }
    place(h, timer, i);
}

static void sift_down(struct timer_heap *h, struct loop_timer *timer, size_t i)
{
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= h->n)
            break;
        if (child + 1 < h->n && before(h->timer[child + 1], h->timer[child]))
            child++;
        if (!before(h->timer[child], timer))
            break;
        place(h, h->timer[child], i);
        i = child;
    }
    place(h, timer, i);
}

/* Entry i now holds this timer, which is due at another time than its former one. */
static void sift(struct timer_heap *h, struct loop_timer *timer, size_t i)
{
    if (i > 0 && before(timer, h->timer[(i - 1) / 2]))
        sift_up(h, timer, i);
    else
        sift_down(h, timer, i);
}

static void heap_remove(struct loop_timer *timer)
{
    struct timer_heap *h = loop_heap(timer->loop);
    size_t i = timer->at - 1;
    struct loop_timer *last = h->timer[--h->n];

    timer->at = 0;
    h->n_counting -= !timer->weak;
    if (last != timer)
        sift(h, last, i);
}

/* The due time of an armed timer has changed: it counts as armed just now. */
static void heap_move(struct loop_timer *timer)
{
    struct timer_heap *h = loop_heap(timer->loop);

    timer->seq = h->next_seq++;
    sift(h, timer, timer->at - 1);
}

static void heap_add(struct loop_timer *timer)
{
    struct timer_heap *h = loop_heap(timer->loop);

    timer->seq = h->next_seq++;
    h->n_counting += !timer->weak;
    h->n++;
    sift_up(h, timer, h->n - 1);
}

struct loop_timer *loop_timer_first(struct loop *loop)
{
    const struct timer_heap *h = loop_heap(loop);

    return h->n > 0 ? h->timer[0] : NULL;
}

static uint64_t latest_ns(const struct loop_timer *timer)
{
    return timer->slack_ns < LOOP_NEVER - timer->due_ns ? timer->due_ns + timer->slack_ns
                                                        : LOOP_NEVER;
}

/* The earliest of the latest times.  No timer below another one is due before it, so
 * most of the heap is skipped.
 */
uint64_t timer_heap_wake_ns(const struct timer_heap *h)
{
    size_t below[8 * sizeof(size_t) + 1], n = 0; /* one a level, and two on the last */
    uint64_t best = LOOP_NEVER;

    below[n++] = 0;
    while (n > 0) {
        size_t i = below[--n];
        if (i >= h->n || h->timer[i]->due_ns >= best)
            continue;
        uint64_t own = latest_ns(h->timer[i]);
        best = own < best ? own : best;
        below[n++] = 2 * i + 2;
        below[n++] = 2 * i + 1;
    }
    return best;
}

int loop_timer_init(struct loop_timer *timer, struct loop *loop, loop_timer_fn fn,
                    void *user)
{
    struct timer_heap *h = loop_heap(loop);
    void *items = h->timer;
    int r =
        array_reserve(&items, &h->cap, h->n_reserved + 1, sizeof *h->timer, TIMERS_MAX);
    h->timer = items;
    if (r < 0)
        return r;
    h->n_reserved++;
    *timer = (struct loop_timer){.loop = loop, .fn = fn, .user = user};
    return 0;
}

void loop_timer_disarm(struct loop_timer *timer)
{
    if (timer->at == 0)
        return;
    heap_remove(timer);
    loop_rearm(timer->loop);
}

void loop_timer_fini(struct loop_timer *timer)
{
    if (!timer->loop)
        return;
    loop_timer_disarm(timer);
    loop_heap(timer->loop)->n_reserved--;
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
    loop_link_add(&loop_heap(loop)->all, &timer->link);
    loop_timer_set(timer, at_ns, period_ns);
    *ret = timer;
    return 0;
}

void loop_timer_set(struct loop_timer *timer, uint64_t at_ns, uint64_t period_ns)
{
    timer->due_ns = at_ns;
    timer->period_ns = period_ns;
    if (timer->at > 0)
        heap_move(timer);
    else
        heap_add(timer);
    loop_rearm(timer->loop);
}

void loop_timer_slack(struct loop_timer *timer, uint64_t slack_ns)
{
    timer->slack_ns = slack_ns;
    if (timer->at > 0)
        loop_rearm(timer->loop);
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

    if (period > 0) {
        uint64_t missed = now_ns > due ? (now_ns - due) / period : 0;
        timer->due_ns = due + period * (missed + 1);
        heap_move(timer);
    } else {
        heap_remove(timer);
    }
    /* The callback may free the timer: it is not used after this. */
    loop_took(loop, timer->fn(timer, now_ns, timer->user));
    loop_rearm(loop);
}
