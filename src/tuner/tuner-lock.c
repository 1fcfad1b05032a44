/* Locks of the SM clock for a job whose searched cap is held: core/optimum/lock.h says
 * what to try and what to keep, here it is gone to and its windows told.
 *
 * Safety: where the cap rises the lock is in force before, where it falls the lock stays
 * until it has fallen.  A lock is walked down from the clock that is seen, by the cap's
 * share of the highest clock a second.
 */
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/units.h"
#include "tuner/tuner-inside.h"

enum { GRAIN_MHZ = 15, SEEN_LEAST = 3, BEGIN_WINDOWS = 2 };
#define SAME 0.05       /* caps that are no further apart: what was tried at one holds */
#define LATE_S 30.0     /* a lock that is not in force by then is none … */
#define LATE_WALL_S 3.0 /* … nor so long by the wall's clock, where time is faster */

static bool has_locks(const struct tuner *t)
{
    return t->o.clocks && t->search && t->o.caps->clock &&
           !(t->o.slack > 0 && t->o.n >= 2) && t->o.goal.kind != GOAL_TIME;
}

static bool in_hold(const struct tuner *t)
{
    return t->step.kind == SEARCH_HOLD && !t->visiting && !tuner_halted(t);
}

static bool is_out(const struct tuner *t)
{
    double out_mw = t->lock.out_mw;

    return fabs(t->step.cap_mw - out_mw) <= SAME * out_mw;
}

static bool wanted(const struct tuner *t)
{
    return has_locks(t) && in_hold(t) && !is_out(t) && !t->beat && !t->safe;
}

/* What its step wants now; 0: no lock. */
static uint32_t want_mhz(const struct tuner *t)
{
    return t->lock.machine && in_hold(t) ? lock_step(t->lock.machine)->clock_mhz : 0;
}

bool tuner_lock_moved(const struct tuner *t)
{
    const struct tuner_lock *l = &t->lock;

    return l->asked_mhz || (l->machine && lock_step(l->machine)->cap_mw != l->held_mw);
}

bool tuner_lock_measures(const struct tuner *t)
{
    if (!t->lock.machine)
        return false;
    const struct lock_step *step = lock_step(t->lock.machine);
    return step->kind == LOCK_MEASURE || step->check;
}

/* ---- what is asked of the boards ---- */

static void watch(struct tuner *t, bool on)
{
    if (t->lock.watched == on)
        return;
    t->lock.watched = on;
    for (size_t i = 0; i < t->o.n; i++)
        t->o.caps->clock_watch(t->o.caps_of, i, on);
}

static int ask(struct tuner *t, uint32_t mhz, uw_error *err)
{
    int r = 0;

    t->lock.asked_mhz = mhz;
    t->lock.asked_ns = loop_now_ns(t->o.loop);
    for (size_t i = 0; i < t->o.n; i++) {
        int one = t->o.caps->clock(t->o.caps_of, i, mhz, r < 0 ? NULL : err);
        r = r < 0 ? r : one;
    }
    return r;
}

void tuner_lock_off(struct tuner *t)
{
    if (t->lock.asked_mhz)
        (void)ask(t, 0, NULL);
    t->lock.rises = false;
}

void tuner_lock_end(struct tuner *t)
{
    if (!has_locks(t))
        return;
    tuner_lock_off(t);
    watch(t, false);
    lock_free(t->lock.machine);
    t->lock = (struct tuner_lock){.out_mw = t->lock.out_mw, .asked_ns = t->lock.asked_ns};
}

void tuner_lock_forget(struct tuner *t)
{
    tuner_lock_end(t);
    t->lock.out_mw = 0;
}

bool tuner_lock_stall(struct tuner *t)
{
    if (!tuner_lock_moved(t))
        return false;
    uint32_t held_mw = t->lock.held_mw;
    tuner_lock_end(t);
    t->lock.out_mw = held_mw;
    return true;
}

enum force { FORCE_YES, FORCE_NOT_YET, FORCE_NEVER };

/* Is what was asked in force on every board? */
static enum force look(const struct tuner *t)
{
    enum force ret = FORCE_YES;

    for (size_t i = 0; i < t->o.n; i++) {
        struct caps_clock_view v;
        t->o.caps->clock_look(t->o.caps_of, i, &v);
        if (t->lock.asked_mhz && (v.failed || v.given_up || !v.on))
            return FORCE_NEVER;
        if (v.locked_mhz != t->lock.asked_mhz &&
            (t->lock.asked_mhz || v.verdict.by == CAP_BY_ORIGINAL))
            ret = FORCE_NOT_YET;
    }
    double late_s = fmax(LATE_S, LATE_WALL_S * loop_speed(t->o.loop));
    if (ret == FORCE_NOT_YET &&
        s_between(t->lock.asked_ns, loop_now_ns(t->o.loop)) > late_s)
        return FORCE_NEVER;
    return ret;
}

void tuner_lock_see(struct tuner *t)
{
    struct tuner_lock *l = &t->lock;

    if (!l->watched || t->window.state != WINDOW_OPEN)
        return;
    for (size_t i = 0; i < t->o.n; i++) {
        struct caps_clock_view v;
        t->o.caps->clock_look(t->o.caps_of, i, &v);
        if (v.seen_ns == l->seen_ns[i])
            continue;
        l->seen_ns[i] = v.seen_ns;
        l->seen_sum += v.seen_mhz;
        l->seen_n++;
        if (v.seen_mhz > l->seen_most_mhz)
            l->seen_most_mhz = v.seen_mhz;
    }
}

static void see_anew(struct tuner_lock *l)
{
    l->seen_sum = 0;
    l->seen_n = 0;
    l->seen_most_mhz = 0;
}

/* ---- the machine ---- */

/* Tightest of the boards.  False: one of them has no locks, or may not have them. */
static bool take_clocks(const struct tuner *t, struct lock_setup *ret)
{
    ret->max_mhz = UINT32_MAX;
    for (size_t i = 0; i < t->o.n; i++) {
        struct caps_clock_view v;
        t->o.caps->clock_look(t->o.caps_of, i, &v);
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

/* As measured in this regime; for slowdown:F at least as unsure as the search was. */
static double ratio_rse(struct tuner *t, double search_rse)
{
    const struct savings *a = tuner_savings(t);

    return fmax(search_rse, hypot(savings_mean_time_rse(&a->hold),
                                  savings_mean_time_rse(&a->reference)));
}

static bool not_tried(struct tuner *t, const char *why)
{
    tuner_note(t, true, "clock: not tried: %s", why);
    watch(t, false);
    t->lock.out_mw = t->step.cap_mw;
    return false;
}

/* False: not now, or not in this hold. */
static bool begin(struct tuner *t)
{
    struct tuner_lock *l = &t->lock;
    const struct savings *a = tuner_savings(t);
    struct lock_setup setup = {.goal = t->o.goal, .window_s = t->o.window_s};
    struct search_result known;
    uw_error err;

    if (!l->watched) {
        watch(t, true);
        return false;
    }
    if (a->hold.windows < BEGIN_WINDOWS || l->seen_n < SEEN_LEAST)
        return false;
    search_result(t->search, &known);
    if (!known.has_reference || !take_clocks(t, &setup))
        return not_tried(t, "clocks cannot be locked, or may not");
    setup.ref = (struct goal_ref){known.ref_energy_j, known.ref_time_s, 0};
    for (size_t i = 0; i < t->o.n; i++)
        setup.ref.pmax_w += w_of_mw(board_view(t->o.boards[i])->limits.max_mw);
    setup.held_mw = l->held_mw = t->step.cap_mw;
    setup.most_mw = tuner_reference_mw(t);
    setup.held_time_s = savings_mean_time(&a->hold);
    setup.held_energy_j = savings_mean_energy(&a->hold);
    setup.held_time_rse = ratio_rse(t, known.best_time_rse);
    setup.seen_mhz = l->seen_sum / l->seen_n;
    l->rate_mhz_s = (t->o.ramp > 0 ? t->o.ramp : SEARCH_RAMP) * setup.max_mhz;
    return lock_new(&setup, &l->machine, &err) >= 0 || not_tried(t, err.text);
}

/* The cap alone again, for the rest of the hold. */
static int over(struct tuner *t, const char *why)
{
    uint32_t held_mw = t->lock.held_mw;

    tuner_note(t, true, "%s", why);
    tuner_lock_end(t);
    t->lock.out_mw = held_mw;
    return tuner_next(t);
}

static int give_up(struct tuner *t, const char *why)
{
    char text[LOCK_WHY_MAX];

    lock_end(t->lock.machine, why);
    (void)snprintf(text, sizeof text, "%s", lock_step(t->lock.machine)->why);
    return over(t, text);
}

static bool is_there(const struct tuner *t)
{
    const struct lock_step *step = lock_step(t->lock.machine);

    return step->clock_mhz == t->lock.asked_mhz && step->cap_mw == t->commanded_mw;
}

int tuner_lock_on_window(struct tuner *t, const struct search_window *w, bool *ret_moved)
{
    struct tuner_lock *l = &t->lock;
    char why[LOCK_WHY_MAX];
    uw_error err;

    *ret_moved = false;
    if (!wanted(t))
        return 0;
    if (!l->machine && !begin(t)) {
        see_anew(l);
        return 0;
    }
    struct lock_window window = {w->cap_mw,   l->asked_mhz ? l->seen_most_mhz : 0,
                                 w->time_s,   w->energy_j,
                                 w->time_rse, w->energy_rse};
    see_anew(l);
    *ret_moved = true;
    if (l->asked_mhz && look(t) != FORCE_YES)
        return give_up(t, "the lock is not in force any more");
    if (lock_on_window(l->machine, &window, &err) < 0)
        return over(t, err.text);
    const struct lock_step *step = lock_step(l->machine);
    if (step->over) {
        (void)snprintf(why, sizeof why, "%s", step->why);
        return over(t, why);
    }
    *ret_moved = !is_there(t);
    if (!*ret_moved)
        return 0;
    tuner_note(t, true, "%s", step->why);
    change_init(&t->change, 0);
    savings_hold_anew(tuner_savings(t));
    t->hold_at_mw = 0;
    return tuner_next(t);
}

uint32_t tuner_lock_target(struct tuner *t, uint32_t mw)
{
    struct tuner_lock *l = &t->lock;

    l->rises = false;
    if (t->visiting || !has_locks(t))
        return mw;
    if (t->step.kind != SEARCH_HOLD || (l->machine && t->step.cap_mw != l->held_mw))
        tuner_lock_end(t);
    if (!l->machine)
        return mw;
    const struct lock_step *step = lock_step(l->machine);
    if (step->cap_mw > t->ramp.at_mw &&
        (l->asked_mhz != step->clock_mhz || look(t) != FORCE_YES)) {
        l->rises = true;
        return t->ramp.at_mw;
    }
    return step->cap_mw;
}

/* One step of the way from no lock, or another, to mhz. */
static int walk(struct tuner *t, uint32_t mhz, uint64_t now)
{
    struct tuner_lock *l = &t->lock;
    uw_error err = {""};

    if (!l->asked_mhz) { /* above the clock that is seen a lock changes nothing */
        uint32_t from = mhz;
        for (size_t i = 0; i < t->o.n; i++) {
            struct caps_clock_view v;
            t->o.caps->clock_look(t->o.caps_of, i, &v);
            if (v.seen_mhz > from)
                from = v.seen_mhz;
        }
        ramp_init(&l->ramp, from, GRAIN_MHZ, now);
    }
    if (l->ramp.target_mw != mhz)
        ramp_to(&l->ramp, mhz, 0, l->rate_mhz_s, false, now);
    uint32_t at = ramp_at(&l->ramp, now);
    if (at == l->asked_mhz)
        return 0;
    int r = ask(t, at, &err);
    return r < 0 ? give_up(t, err.text) : 0;
}

/* A window begins: what was seen until now was seen elsewhere. */
static bool arrived(struct tuner *t)
{
    see_anew(&t->lock);
    return false;
}

bool tuner_lock_walks(struct tuner *t, uint64_t now, int *ret_r)
{
    struct tuner_lock *l = &t->lock;
    uint32_t mhz = want_mhz(t);

    *ret_r = 0;
    if (!has_locks(t))
        return false;
    if (mhz && mhz != l->asked_mhz) {
        *ret_r = walk(t, mhz, now);
        return true;
    }
    if (!mhz && l->asked_mhz)
        (void)ask(t, 0, NULL);
    if (!l->asked_ns)
        return arrived(t); /* nothing is due */
    enum force is = look(t);
    if (is == FORCE_NOT_YET)
        return true;
    if (is == FORCE_NEVER && l->machine) {
        *ret_r = give_up(t, mhz ? "the lock did not come into force"
                                : "the lock was not taken back");
        return true;
    }
    l->asked_ns = 0;
    if (!l->rises)
        return arrived(t);
    *ret_r = tuner_next(t);
    return true;
}
