#include "tuner/lock-search.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/units.h"
#include "tuner/activity.h"

enum { SEEN_LEAST = 3, BEGIN_WINDOWS = 2 };
#define SAME 0.05       /* out_mw applies to caps within this part of it */
#define LATE_S 30.0     /* longest time until a lock is in force */
#define LATE_WALL_S 3.0 /* the same in real time, for a faster simulation */

static bool wanted(const struct lock_search *l, uint32_t cap_mw)
{
    double out_mw = l->out_mw;

    return l->phase != LOCK_OFF && fabs(cap_mw - out_mw) > SAME * out_mw;
}

static bool moved(const void *self)
{
    const struct lock_search *l = self;

    return l->asked_mhz || (l->machine && lock_step(l->machine)->cap_mw != l->held_mw);
}

static bool measures(const void *self)
{
    const struct lock_search *l = self;

    if (!l->machine)
        return false;
    const struct lock_step *step = lock_step(l->machine);
    return step->kind == LOCK_MEASURE || step->check;
}

/* ---- requests ---- */

static void read_clock(const struct lock_search *l, size_t i, struct caps_clock_view *ret)
{
    l->caps->table->clock_look(l->caps->of, i, ret);
}

/* phase: LOCK_IDLE or LOCK_WATCHES. */
static void watch(struct lock_search *l, enum lock_phase phase)
{
    bool on = phase == LOCK_WATCHES, was = l->phase >= LOCK_WATCHES;

    l->phase = phase;
    if (on == was)
        return;
    for (size_t i = 0; i < l->caps->n; i++)
        l->caps->table->clock_watch(l->caps->of, i, on);
}

/* Claims the lock; its ramp starts from the clock that was seen under load. */
static int ask(struct lock_search *l, uint32_t mhz, uw_error *err)
{
    const struct claim_way way = {.own = true, .rate_mw_s = l->rate_mhz_s};
    int r = 0;

    l->asked_mhz = mhz;
    l->asked_ns = loop_now_ns(l->loop);
    for (size_t i = 0; i < l->caps->n; i++) {
        int one = l->caps->table->clock(l->caps->of, i, mhz, &way, r < 0 ? NULL : err);
        r = r < 0 ? r : one;
    }
    return r;
}

/* Removes the lock until the hold continues. */
static void off(struct lock_search *l)
{
    if (l->asked_mhz)
        (void)ask(l, 0, NULL);
    if (l->phase == LOCK_RISES)
        l->phase = LOCK_WORKS;
}

static void end(struct lock_search *l)
{
    if (l->phase == LOCK_OFF)
        return;
    off(l);
    watch(l, LOCK_IDLE);
    lock_free(l->machine);
    *l = (struct lock_search){.caps = l->caps,
                              .notes = l->notes,
                              .loop = l->loop,
                              .goal = l->goal,
                              .window_s = l->window_s,
                              .ramp = l->ramp,
                              .phase = LOCK_IDLE,
                              .out_mw = l->out_mw,
                              .asked_ns = l->asked_ns};
}

/* Ends the search for a lock while this cap is held. */
static void leave(struct lock_search *l)
{
    uint32_t held_mw = l->held_mw;

    end(l);
    l->out_mw = held_mw;
}

static bool on_news(void *self, enum activity_news news)
{
    struct lock_search *l = self;

    if (news == ACTIVITY_HALT)
        off(l);
    if (news == ACTIVITY_END || news == ACTIVITY_REGIME)
        end(l);
    if (news == ACTIVITY_REGIME)
        l->out_mw = 0;
    if (news != ACTIVITY_STALL || !moved(l))
        return false;
    leave(l);
    return true;
}

enum force { FORCE_YES, FORCE_NOT_YET, FORCE_NEVER };

/* When a request that is not in force counts as late. */
static uint64_t late_ns(const void *self)
{
    const struct lock_search *l = self;
    double late_s = fmax(LATE_S, LATE_WALL_S * loop_speed(l->loop));

    return l->asked_ns ? l->asked_ns + ns_of_s(late_s) : UINT64_MAX;
}

/* Whether the last request is in force on every board.  A lock that still ramps down is
 * not late.
 */
static enum force in_force(struct lock_search *l)
{
    uint64_t now = loop_now_ns(l->loop);
    enum force ret = FORCE_YES;

    for (size_t i = 0; i < l->caps->n; i++) {
        struct caps_clock_view v;
        read_clock(l, i, &v);
        if (l->asked_mhz && (v.failed || v.given_up || !v.on))
            return FORCE_NEVER;
        if (v.ramping && l->asked_ns)
            l->asked_ns = now;
        if (v.locked_mhz != l->asked_mhz &&
            (l->asked_mhz || v.verdict.by == CAP_BY_ORIGINAL))
            ret = FORCE_NOT_YET;
    }
    return ret == FORCE_NOT_YET && now >= late_ns(l) ? FORCE_NEVER : ret;
}

/* Adds the boards' clocks to the open window. */
static void see(void *self)
{
    struct lock_search *l = self;

    for (size_t i = 0; l->phase >= LOCK_WATCHES && i < l->caps->n; i++) {
        struct caps_clock_view v;
        read_clock(l, i, &v);
        if (v.seen_ns == l->seen_ns[i])
            continue;
        l->seen_ns[i] = v.seen_ns;
        l->seen_sum += v.seen_mhz;
        l->seen_n++;
        if (v.seen_mhz > l->seen_most_mhz)
            l->seen_most_mhz = v.seen_mhz;
    }
}

static void see_anew(struct lock_search *l)
{
    l->seen_sum = 0;
    l->seen_n = 0;
    l->seen_most_mhz = 0;
}

/* ---- the machine ---- */

/* Stores the range of clocks common to all boards.  False: some board cannot be locked.
 */
static bool take_clocks(const struct lock_search *l, struct lock_setup *ret)
{
    ret->max_mhz = UINT32_MAX;
    for (size_t i = 0; i < l->caps->n; i++) {
        struct caps_clock_view v;
        read_clock(l, i, &v);
        if (!v.can || !v.on || v.given_up || v.verdict.by != CAP_BY_ORIGINAL)
            return false;
        if (v.bounds.max_mhz < ret->max_mhz)
            ret->max_mhz = v.bounds.max_mhz;
        if (v.bounds.min_mhz > ret->min_mhz)
            ret->min_mhz = v.bounds.min_mhz;
        if (v.bounds.floor_mhz > ret->floor_mhz)
            ret->floor_mhz = v.bounds.floor_mhz;
    }
    return ret->min_mhz < ret->max_mhz;
}

static bool not_tried(struct lock_search *l, uint32_t cap_mw, const char *why)
{
    tuner_note(l->notes, true, "clock: not tried: %s", why);
    watch(l, LOCK_IDLE);
    l->out_mw = cap_mw;
    return false;
}

/* Begins the search with core/optimum/lock.h; false: not yet, or not in this hold. */
static bool begin(struct lock_search *l, const struct activity_now *now)
{
    const struct savings *a = now->savings;
    const struct board_caps *b = l->caps;
    struct lock_setup setup = {.goal = l->goal, .window_s = l->window_s};
    struct search_result known;
    uw_error err;

    if (l->phase == LOCK_IDLE) {
        watch(l, LOCK_WATCHES);
        return false;
    }
    if (a->hold.windows < BEGIN_WINDOWS || l->seen_n < SEEN_LEAST)
        return false;
    search_result(now->search, &known);
    if (!known.has_reference || !take_clocks(l, &setup))
        return not_tried(l, now->cap_mw, "clock locks are not supported or not allowed");
    setup.ref = (struct goal_ref){known.ref_energy_j, known.ref_time_s, 0};
    for (size_t i = 0; i < b->n; i++)
        setup.ref.pmax_w += w_of_mw(board_view(b->boards[i])->limits.max_mw);
    setup.held_mw = l->held_mw = now->cap_mw;
    setup.most_mw = now->reference_mw;
    setup.held_time_s = savings_mean_time(&a->hold);
    setup.held_energy_j = savings_mean_energy(&a->hold);
    /* For slowdown:F, the error must not be smaller than the search's. */
    setup.held_time_rse =
        fmax(known.best_time_rse, hypot(savings_mean_time_rse(&a->hold),
                                        savings_mean_time_rse(&a->reference)));
    setup.seen_mhz = l->seen_sum / l->seen_n;
    l->rate_mhz_s = l->ramp * setup.max_mhz;
    if (lock_new(&setup, &l->machine, &err) < 0)
        return not_tried(l, now->cap_mw, err.text);
    l->phase = LOCK_WORKS;
    return true;
}

static enum activity_verdict over(struct lock_search *l, const char *why)
{
    tuner_note(l->notes, true, "%s", why);
    leave(l);
    return ACTIVITY_OVER;
}

static enum activity_verdict give_up(struct lock_search *l, const char *why)
{
    lock_end(l->machine, why);
    return over(l, lock_step(l->machine)->why);
}

static enum activity_verdict on_hold(void *self, const struct activity_now *now)
{
    struct lock_search *l = self;
    const struct search_window *w = now->window;
    uw_error err;

    if (now->inferred || !wanted(l, now->cap_mw) || search_waits(now->search))
        return ACTIVITY_STAYS;
    if (!l->machine && !begin(l, now)) {
        see_anew(l);
        return ACTIVITY_STAYS;
    }
    struct lock_window window = {w->cap_mw,   l->asked_mhz ? l->seen_most_mhz : 0,
                                 w->time_s,   w->energy_j,
                                 w->time_rse, w->energy_rse,
                                 w->start_s,  w->lasted_s};
    see_anew(l);
    if (l->asked_mhz && in_force(l) != FORCE_YES)
        return give_up(l, "the lock is no longer in force");
    if (lock_on_window(l->machine, &window, &err) < 0)
        return over(l, err.text);
    const struct lock_step *step = lock_step(l->machine);
    if (step->over)
        return over(l, step->why);
    if (step->clock_mhz == l->asked_mhz && step->cap_mw == l->caps->commanded_mw)
        return ACTIVITY_STAYS;
    tuner_note(l->notes, true, "%s", step->why);
    return ACTIVITY_GOES;
}

static uint32_t target(void *self, const struct activity_target *to, uint32_t mw)
{
    struct lock_search *l = self;

    if (l->phase == LOCK_OFF)
        return mw;
    if (!to->hold || (l->machine && to->cap_mw != l->held_mw))
        end(l);
    if (!l->machine)
        return mw;
    const struct lock_step *step = lock_step(l->machine);
    l->phase = LOCK_WORKS;
    if (step->cap_mw > to->at_mw &&
        (l->asked_mhz != step->clock_mhz || in_force(l) != FORCE_YES)) {
        l->phase = LOCK_RISES;
        return to->at_mw;
    }
    return step->cap_mw;
}

/* A window begins: discards the clocks seen before. */
static enum activity_way arrived(struct lock_search *l)
{
    see_anew(l);
    return ACTIVITY_THERE;
}

static enum activity_way walk(void *self, bool hold, uint64_t now_ns)
{
    struct lock_search *l = self;
    uint32_t mhz = l->machine && hold ? lock_step(l->machine)->clock_mhz : 0;
    uw_error err = {""};
    (void)now_ns;

    if (l->phase == LOCK_OFF)
        return ACTIVITY_THERE;
    if (mhz != l->asked_mhz && ask(l, mhz, &err) < 0) {
        (void)give_up(l, err.text);
        return ACTIVITY_NEXT;
    }
    if (!l->asked_ns)
        return arrived(l); /* no change is due */
    enum force is = in_force(l);
    if (is == FORCE_NOT_YET)
        return ACTIVITY_WALKS;
    if (is == FORCE_NEVER && l->machine) {
        (void)give_up(l, mhz ? "the lock did not come into force"
                             : "the lock was not removed");
        return ACTIVITY_NEXT;
    }
    l->asked_ns = 0;
    return l->phase == LOCK_RISES ? ACTIVITY_NEXT : arrived(l);
}

const struct tuner_activity activity_lock = {
    .name = "lock",
    .on_hold = on_hold,
    .target = target,
    .walk = walk,
    .late_ns = late_ns,
    .see = see,
    .moved = moved,
    .measures = measures,
    .on_news = on_news,
};
