#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tuner/tuner-inside.h"

enum { TICK_MS = 250, REFERENCE_WINDOWS = 2, WARM_STEPS = 3 };
#define CHECK_S 10.0   /* at the first cap, where steps are made of launches */
#define UNSEEN_S 120.0 /* no steps for so long: nothing is held blind */
#define STALL_FACTOR 8.0
#define STALL_LEAST_S \
    15.0 /* and 2 s of the wall's clock, where simulated time is faster */

void tuner_note(struct tuner *t, bool important, const char *format, ...)
{
    char text[TUNER_TEXT];
    va_list args;

    if (!t->o.note)
        return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    t->o.note(text, important, t->o.user);
}

static const char *uuid_of(const struct tuner *t, size_t i)
{
    return board_view(t->o.boards[i])->info->uuid;
}

/* ---- what to do next ---- */

uint32_t tuner_reference_mw(const struct tuner *t)
{
    if (t->ceiling_mw >= t->report.original_mw)
        return t->report.original_mw;
    return t->ceiling_mw / MW_PER_W * MW_PER_W; /* the search asks for whole watts */
}

/* A cap asked for by name: two reference windows, then there. */
static void fixed_step(struct tuner *t, struct search_step *ret)
{
    struct savings_mean *ref = &tuner_savings(t)->reference;
    bool known = ref->windows >= REFERENCE_WINDOWS;

    *ret = (struct search_step){
        .kind = known ? SEARCH_HOLD : SEARCH_MEASURE,
        .cap_mw = known ? t->asked_mw : t->report.original_mw,
        .check_steps = 2,
        .settle_s = 2,
        .settle_steps = 1,
    };
    (void)snprintf(ret->why, sizeof ret->why, known ? "asked for" : "reference");
}

double tuner_ramp_rate(const struct tuner *t)
{
    double share = t->o.ramp > 0 ? t->o.ramp : SEARCH_RAMP;
    uint32_t top = 0;
    for (size_t i = 0; i < t->o.n; i++)
        if (tuner_limits(t, i).default_mw > top)
            top = tuner_limits(t, i).default_mw;
    return share * top;
}

static uint32_t first_cap(const struct tuner *t, double peak_w)
{
    uint32_t mw = mw_of_w(peak_w * SEARCH_FIRST);
    return mw > t->report.original_mw ? t->report.original_mw : mw;
}

static struct search_step next_step(struct tuner *t)
{
    struct search_step step;

    if (t->visiting && tuner_reference_mw(t) + MW_PER_W < t->report.reference_mw)
        reference_check_over(t); /* others allow it no more */
    if (t->visiting)
        return reference_check_step(t);
    if (t->search)
        return *search_step(t->search);
    fixed_step(t, &step);
    if (!t->o.caps->walks) {
        step.ramp_mw_s = tuner_ramp_rate(t);
        step.first_mw = t->report.peak_w > 0 ? first_cap(t, t->report.peak_w) : 0;
    }
    return step;
}

/* Once: that an earlier run's curve does not fit this one's. */
static void tell_memory(struct tuner *t)
{
    struct search_result known = {0};

    if (!t->search || !t->report.earlier_job || t->report.memory == SEARCH_MEMORY_DENIED)
        return;
    search_result(t->search, &known);
    t->report.memory = known.memory;
    if (known.memory == SEARCH_MEMORY_DENIED)
        tuner_note(t, true,
                   "what job %" PRIu64 " measured does not fit this run: forgotten",
                   t->report.earlier_job);
}

int tuner_next(struct tuner *t)
{
    uint64_t now = loop_now_ns(t->o.loop);

    t->step = next_step(t);
    tell_memory(t);
    bool reference =
        t->step.cap_mw >= tuner_reference_mw(t) && t->step.kind == SEARCH_MEASURE;
    if (t->step.kind == SEARCH_HOLD && t->looking) {
        t->looking = false;
        gap_probes_made(&t->report.looks, s_between(t->look_ns, now),
                        t->report.windows - t->look_windows);
    }
    if (t->step.kind == SEARCH_HOLD) {
        if (t->warm) /* what is compared with the visit is as cool as before it */
            t->step.settle_s = fmax(t->step.settle_s, REFERENCE_CHECK_SETTLE_S);
        t->warm = false;
        bool other = !t->report.holding || t->report.held_mw != t->step.cap_mw;
        tuner_note(t, other, "holds %.0f W: %s", w_of_mw(t->step.cap_mw), t->step.why);
        if (other) {
            change_init(&t->change, 0);
            savings_hold_anew(tuner_savings(t));
            t->hold_at_mw = 0;
        }
        t->report.holding = true;
        t->report.held_mw = t->step.cap_mw;
        (void)snprintf(t->report.why, sizeof t->report.why, "%s", t->step.why);
        if (t->stretch.kind != STRETCH_HOLD || other)
            tuner_turn(t, STRETCH_SEARCH); /* until it is there */
    } else if (t->visiting) {
        tuner_turn(t, STRETCH_REFERENCE_CHECK);
        tuner_note(t, false, "goes to %.0f W: %s", w_of_mw(t->step.cap_mw), t->step.why);
    } else {
        t->report.holding = t->looking; /* it comes back, or finds a better one */
        tuner_turn(t, reference ? STRETCH_REFERENCE : STRETCH_SEARCH);
        tuner_note(t, t->search != NULL, "goes to %.0f W: %s", w_of_mw(t->step.cap_mw),
                   t->step.why);
    }
    ramp_to(&t->ramp, tuner_lock_target(t, tuner_slack_target(t)), t->step.first_mw,
            t->step.ramp_mw_s, t->step.urgent, now);
    t->first_seen = false;
    t->state = TUNER_WALK;
    progress_period_rest(t->o.pulse);
    loop_timer_set(t->timer, now, TICK_MS * NS_PER_MS);
    return 0;
}

/* ---- leaving ---- */

static int tuner_on_release(struct actuator *act, const struct actuator_reply *reply,
                            void *user)
{
    struct tuner *t = user;
    (void)act;

    t->releasing--;
    t->report.unsure |= reply->result == ACTUATOR_GONE;
    if (reply->result != ACTUATOR_DONE && reply->result != ACTUATOR_YIELDED &&
        reply->result != ACTUATOR_GONE) {
        t->report.restored = false;
        tuner_of_board(reply, t->report.restore, sizeof t->report.restore);
    }
    return t->state == TUNER_OVER ? tuner_maybe_done(t) : 0;
}

static void release_all(struct tuner *t)
{
    t->report.restored = true;
    for (size_t i = 0; i < t->o.n; i++) {
        int r = t->o.caps->release(t->o.caps_of, i, tuner_on_release, t);
        if (r == 0) {
            t->releasing++;
        } else if (r == -ENOTCONN) {
            t->report.unsure = true;
        } else {
            t->report.restored = false;
            (void)snprintf(t->report.restore, sizeof t->report.restore,
                           "%s: cannot be released now; the lease's end restores it",
                           uuid_of(t, i));
        }
    }
}

static int leave(struct tuner *t)
{
    if (t->state == TUNER_LEFT || t->state == TUNER_OVER)
        return 0;
    tuner_note(t, true, "no more caps: %s", t->report.ended);
    tuner_lock_end(t);
    t->report.ended_ns = loop_now_ns(t->o.loop);
    window_cancel(&t->window);
    progress_period_rest(t->o.pulse);
    t->state = TUNER_LEFT;
    loop_timer_set(t->timer, UINT64_MAX, 0);
    release_all(t);
    return 0;
}

/* ---- the walk ---- */

/* Waiting at the first cap: on once the job has done check_steps more. */
static void check_first(struct tuner *t, uint64_t now)
{
    if (!t->ramp.waiting || t->commanded_mw != t->ramp.at_mw)
        return;
    const struct step_mark *mark = &t->steps.mark;
    if (!t->first_seen || (!t->beat && mark->generation != t->first.generation)) {
        t->first_seen = true;
        t->first = *mark;
        t->first_ns = now;
        return;
    }
    unsigned more = t->step.check_steps + 1;
    double least_s = t->rate.on ? CHECK_S : more * t->beat_s;
    bool done = t->beat ? s_between(t->first_ns, now) >= least_s
                        : steps_known(&t->steps) && mark->steps >= t->first.steps + more;
    if (done)
        ramp_checked(&t->ramp, now);
}

static int stalled(struct tuner *t, uint64_t now)
{
    double least_s = fmax(STALL_LEAST_S, 2 * loop_speed(t->o.loop));

    if (t->ramp.at_mw >= t->report.original_mw ||
        steps_late_s(&t->steps, now, STALL_FACTOR, least_s) <= 0)
        return 0;
    if (tuner_ran_well(t))
        return tuner_gap(t);
    t->report.stalls++;
    tuner_note(t, true, "no progress at %.0f W: goes up", w_of_mw(t->ramp.at_mw));
    t->steps.phase_ns = t->anew_ns = now; /* judged anew from here */
    if (tuner_slack_stall(t) || tuner_lock_stall(t))
        return tuner_next(t);
    if (t->search) {
        search_on_stall(t->search, t->ramp.at_mw);
        return tuner_next(t);
    }
    (void)snprintf(t->report.ended, sizeof t->report.ended,
                   "the job made no progress at %.0f W", w_of_mw(t->ramp.at_mw));
    return leave(t);
}

/* A cap by name that is on its way, or in force, needs none. */
static bool needs_steps(const struct tuner *t)
{
    if (!t->search)
        return t->step.kind == SEARCH_MEASURE || t->ramp.waiting;
    return !t->beat && !t->safe;
}

bool tuner_waits(const struct tuner *t)
{
    return t->state == TUNER_WAIT && !t->listening;
}

static int tuner_on_tick(struct loop_timer *timer, uint64_t now, void *user)
{
    struct tuner *t = user;
    (void)timer;

    if (t->stopped || (t->state != TUNER_WALK && t->state != TUNER_WINDOW))
        return 0;
    if (t->refused)
        return leave(t);
    if (needs_steps(t) && !steps_seen(&t->steps) && s_between(t->seen_ns, now) > UNSEEN_S)
        return tuner_unseen(t);
    if (t->gap)
        return tuner_gap_lasts(t, now);
    if (reference_check_is_late(t, now)) {
        reference_check_over(t); /* a pause of the job, or steps that are too long */
        window_cancel(&t->window);
        t->beat_ns = 0; /* what it did there belongs to no hold */
        return tuner_next(t);
    }
    if (t->state == TUNER_WALK && t->pending == 0) {
        if (tuner_is_late(t, now))
            return tuner_gap(t); /* no way down blind */
        check_first(t, now);
        uint32_t mw = ramp_at(&t->ramp, now);
        if (mw != t->commanded_mw)
            return tuner_command(t, mw);
        int r = 0;
        if (ramp_arrived(&t->ramp) && !tuner_slack_walks(t, now) &&
            !tuner_lock_walks(t, now, &r))
            return tuner_arrived(t, now);
        if (r < 0)
            return r;
    }
    tuner_lock_see(t);
    return stalled(t, now);
}

static int begin_when_warm(struct tuner *t, uint64_t now)
{
    double warm_s = t->o.warm_s > 0 ? t->o.warm_s : 10;

    if (!steps_known(&t->steps) || !steps_training(&t->steps) || tuner_rests(t))
        return 0;
    if (!t->has_begun || t->begun.generation != t->steps.mark.generation) {
        t->has_begun = true;
        t->begun = t->steps.mark;
        t->begun_ns = now;
        return 0;
    }
    if (t->steps.mark.steps < t->begun.steps + WARM_STEPS ||
        s_between(t->begun_ns, now) < warm_s)
        return 0;
    t->report.started = true;
    if (t->known_by_period) /* other units */
        tuner_new_regime(t, NULL);
    t->known_by_period = t->rate.in_regime = false;
    return tuner_next(t);
}

int tuner_on_steps(struct tuner *t, const struct steps *steps, uint64_t now_ns)
{
    struct stretch_done d;

    if (tuner_rate_beats(t, steps))
        return 0;
    t->steps = *steps;
    tuner_see_gap(t, now_ns);
    if (steps_seen(steps))
        t->seen_ns = now_ns;
    if (steps_seen(steps) && tuner_on_told(t))
        return 0;
    if (t->report.started && !t->beat && t->state != TUNER_OVER &&
        stretch_feed(&t->stretch, &t->steps, &d))
        tuner_book(t, &d, 0, 0);
    if (t->gap && !t->gap_goes_on)
        return 0;
    if (t->gap)
        return tuner_gap_over(t);
    if (tuner_halted(t))
        return 0;
    switch (t->state) {
    case TUNER_WAIT:
        return begin_when_warm(t, now_ns);
    case TUNER_WINDOW:
        return tuner_on_window(t, now_ns);
    default:
        return 0;
    }
}

int tuner_hold_unseen(struct tuner *t, uint32_t mw, const char *why)
{
    uint64_t now = loop_now_ns(t->o.loop);

    tuner_slack_end(t);
    t->report.holding = true;
    (void)snprintf(t->report.why, sizeof t->report.why, "%s", why);
    t->step = (struct search_step){
        .kind = SEARCH_HOLD,
        .cap_mw = mw,
        .ramp_mw_s = t->o.caps->walks ? 0 : tuner_ramp_rate(t),
    };
    t->report.held_mw = mw;
    ramp_to(&t->ramp, mw, 0, t->step.ramp_mw_s, false, now);
    t->state = TUNER_WALK;
    loop_timer_set(t->timer, now, TICK_MS * NS_PER_MS);
    return 0;
}

int tuner_cap_now(struct tuner *t)
{
    if (t->search || t->state != TUNER_WAIT)
        return 0;
    return tuner_hold_unseen(t, t->asked_mw, "asked for");
}

int tuner_to_original(struct tuner *t)
{
    tuner_slack_end(t);
    tuner_lock_end(t);
    ramp_init(&t->ramp, t->report.original_mw, MW_PER_W, loop_now_ns(t->o.loop));
    return tuner_command(t, t->report.original_mw);
}

int tuner_resume(struct tuner *t, uint32_t held_mw)
{
    if (t->state != TUNER_WAIT || t->o.n == 0)
        return 0;
    if (held_mw > t->report.original_mw)
        held_mw = t->report.original_mw;
    t->report.holding = true;
    t->report.held_mw = held_mw;
    (void)snprintf(t->report.why, sizeof t->report.why, "held before, goes on");
    ramp_init(&t->ramp, held_mw, MW_PER_W, loop_now_ns(t->o.loop));
    return tuner_command(t, held_mw);
}

int tuner_blind(struct tuner *t)
{
    if (!t->search || t->state != TUNER_WAIT || !t->report.holding)
        return 0;
    tuner_note(t, true,
               "no step is told of since: back to the original cap until one is");
    t->report.holding = false;
    return tuner_to_original(t);
}

static int tuner_on_rehold(struct actuator *act, const struct actuator_reply *reply,
                           void *user)
{
    struct tuner *t = user;
    uint64_t now = loop_now_ns(t->o.loop);
    (void)act;

    t->pending--;
    if (t->state == TUNER_OVER)
        return tuner_maybe_done(t);
    if (reply->result != ACTUATOR_DONE && t->state == TUNER_REHOLD) {
        tuner_of_board(reply, t->report.ended, sizeof t->report.ended);
        t->report.away =
            reply->result == ACTUATOR_GONE || reply->result == ACTUATOR_YIELDED;
        return leave(t);
    }
    if (t->pending > 0 || t->state != TUNER_REHOLD)
        return 0;
    ramp_init(&t->ramp, t->report.original_mw, MW_PER_W, now);
    t->commanded_mw = t->report.original_mw;
    if (t->listening && !t->beat) { /* a period that is lost began it once */
        tuner_listen_anew(t);
        return 0;
    }
    if (t->paused) { /* goes on with its next step */
        t->state = TUNER_WALK;
        return 0;
    }
    if (t->report.started)
        return tuner_next(t);
    t->state = TUNER_WAIT; /* a cap by name, or resumed, and no progress to be seen */
    if (t->search && t->report.holding)
        return tuner_resume(t, t->report.held_mw);
    return tuner_cap_now(t);
}

/* We were stopped for longer than a lease: the originals are in force.  Once every
 * board has said so, take them again and walk back to where we were.
 */
static int tuner_lease_over(struct tuner *t, const char *text)
{
    if (++t->leases_over < t->o.n)
        return 0;
    t->leases_over = 0;
    if (t->o.caps->lease_over)
        text = t->o.caps->lease_over;
    tuner_note(t, true, "%s: starts from the original cap again", text);
    reference_check_over(t);
    window_cancel(&t->window);
    tuner_turn(t, STRETCH_SEARCH);
    bool walked = t->report.started || t->step.cap_mw > 0;
    if (!t->report.started) { /* what was held before is in force no more */
        t->report.holding = false;
        ramp_init(&t->ramp, t->report.original_mw, MW_PER_W, loop_now_ns(t->o.loop));
        t->commanded_mw = t->report.original_mw;
    }
    t->state = walked ? TUNER_REHOLD : TUNER_WAIT;
    for (size_t i = 0; i < t->o.n; i++) {
        int r = t->o.caps->hold(t->o.caps_of, i, tuner_on_rehold, t);
        if (r < 0) {
            (void)snprintf(t->report.ended, sizeof t->report.ended,
                           "%s: the lease ran out and the actuator does not answer",
                           uuid_of(t, i));
            return leave(t);
        }
        t->pending++;
    }
    return 0;
}

/* A cap is on its way, in force, or being judged. */
static bool on_the_way(const struct tuner *t)
{
    return t->state == TUNER_WALK || t->state == TUNER_WINDOW || t->state == TUNER_ENERGY;
}

int tuner_on_stopped(struct tuner *t, bool stopped)
{
    uint64_t now = loop_now_ns(t->o.loop);

    if (stopped == t->stopped || t->state == TUNER_LEFT || t->state == TUNER_OVER)
        return 0;
    t->stopped = stopped;
    if (!t->report.started && !t->report.holding)
        return 0;
    if (stopped) {
        tuner_note(t, true, "the job is stopped: no cap until it goes on");
        t->gap = t->paused = false;
        return tuner_halt(t, now);
    }
    tuner_note(t, true, "the job goes on");
    t->steps.phase_ns = t->anew_ns = now; /* its stop is no stall */
    if (!on_the_way(t))
        return 0;
    if (t->listening && !t->beat) {
        tuner_listen_anew(t);
        return 0;
    }
    if (t->report.started)
        return tuner_next(t);
    t->state = TUNER_WAIT;
    return tuner_cap_now(t);
}

int tuner_on_force(struct tuner *t, uint32_t ceiling_mw, uint32_t enforced_mw)
{
    uint32_t was = t->enforced_mw ? t->enforced_mw : t->commanded_mw;
    uint32_t reference = tuner_reference_mw(t);
    bool moved = t->pending == 0 && enforced_mw && enforced_mw != was;

    if (ceiling_mw != t->ceiling_mw) {
        t->ceiling_mw = ceiling_mw;
        if (t->search)
            search_on_hard_limit(t->search, ceiling_mw >= t->report.original_mw
                                                ? SEARCH_NO_LIMIT
                                                : ceiling_mw);
    }
    if (!on_the_way(t) || tuner_halted(t) || !t->report.started || t->safe)
        return 0;
    bool other = (t->search && search_step(t->search)->cap_mw != t->step.cap_mw) ||
                 (t->step.kind == SEARCH_MEASURE && tuner_reference_mw(t) != reference);
    if (!moved && !other)
        return 0;
    if (moved) {
        tuner_ran_at(t, enforced_mw);
        tuner_rate_moves(t, was, enforced_mw);
    }
    if (t->pending == 0)
        t->enforced_mw = enforced_mw;
    window_cancel(&t->window); /* it began under another cap */
    t->beat_ns = 0;
    return tuner_next(t);
}

int tuner_on_event(struct tuner *t, enum actuator_event event,
                   const struct actuator_reply *what)
{
    if (t->state == TUNER_OVER || t->state == TUNER_LEFT)
        return 0;
    if (event == ACTUATOR_EVENT_LEASE)
        return tuner_lease_over(t, what->text);
    tuner_of_board(what, t->report.ended, sizeof t->report.ended);
    t->report.away = what->result == ACTUATOR_YIELDED;
    return leave(t);
}

/* ---- life ---- */

int tuner_maybe_done(struct tuner *t)
{
    if (t->state != TUNER_OVER || !t->done || t->pending || t->releasing ||
        t->stretches || t->pieces_asked)
        return 0;
    tuner_done_fn done = t->done;
    t->done = NULL;
    savings_saved(t->regime, t->report.n_regimes, &t->report.saved);
    return done(t, t->done_user);
}

int tuner_finish(struct tuner *t, tuner_done_fn done, void *user)
{
    bool left = t->state == TUNER_LEFT;
    struct stretch_done d;

    t->done = done;
    t->done_user = user;
    if (t->stretch.open) {
        enum stretch_kind other =
            t->stretch.kind == STRETCH_HOLD ? STRETCH_SEARCH : STRETCH_HOLD;
        if (stretch_turn(&t->stretch, other, &d))
            tuner_book(t, &d, 0, 0);
    }
    window_cancel(&t->window);
    progress_period_rest(t->o.pulse);
    loop_timer_set(t->timer, UINT64_MAX, 0);
    t->state = TUNER_OVER;
    if (!left)
        release_all(t);
    else if (!t->report.restored && t->o.caps->back(t->o.caps_of))
        t->report.restored = true;
    return tuner_maybe_done(t);
}

void tuner_verified(struct tuner *t, bool restored, const char *text)
{
    t->report.restored = restored;
    t->report.unsure = false;
    (void)snprintf(t->report.after, sizeof t->report.after, "%s", text);
    (void)snprintf(t->report.restore, sizeof t->report.restore, "%s",
                   restored ? "" : text);
}

/* Tightest range of the boards; a goal needs one cap that all can have. */
static int common_setup(const struct tuner *t, struct search_setup *ret, uw_error *err)
{
    struct search_setup s = {
        .goal = t->o.goal,
        .max_mw = UINT32_MAX,
        .original_mw = UINT32_MAX,
        .gpus = (unsigned)t->o.n,
        .floor = t->o.floor,
        .ramp = t->o.ramp,
    };

    for (size_t i = 0; i < t->o.n; i++) {
        const struct gpu_limits lim = tuner_limits(t, i);
        if (lim.min_mw > s.min_mw)
            s.min_mw = lim.min_mw;
        if (lim.max_mw < s.max_mw)
            s.max_mw = lim.max_mw;
        if (lim.default_mw > s.default_mw)
            s.default_mw = lim.default_mw;
        if (t->o.original_mw[i] < s.original_mw)
            s.original_mw = t->o.original_mw[i];
    }
    if (s.default_mw > s.max_mw)
        s.default_mw = s.max_mw;
    if (s.min_mw > s.original_mw)
        return fail(err, -ERANGE,
                    "the boards have no cap in common: %" PRIu32 " W at least, "
                    "%" PRIu32 " W at most",
                    s.min_mw / MW_PER_W, s.original_mw / MW_PER_W);
    *ret = s;
    return 0;
}

/* The cap asked for, as the highest of the boards. */
static int fixed_cap(struct tuner *t, uw_error *err)
{
    size_t outside = 0;
    bool lowers = false;

    for (size_t i = 0; i < t->o.n; i++) {
        const struct gpu_limits lim = tuner_limits(t, i);
        uint32_t own = cap_of_limits(&t->o.cap, &lim), mw = own, top = lim.max_mw;
        if (!t->o.cap.mw)
            mw = mw_of_w(w_of_mw(lim.default_mw) * t->o.cap.percent / 100);
        if (mw < t->o.original_mw[i])
            top = tuner_top_mw(t, i);
        outside += mw < lim.min_mw || mw > top;
        if (outside == (t->o.cap.mw ? 1 : t->o.n))
            return fail(err, -ERANGE, "%s: a cap of %.0f W is outside %.0f..%.0f W",
                        uuid_of(t, i), w_of_mw(mw), w_of_mw(lim.min_mw), w_of_mw(top));
        if (own > t->asked_mw)
            t->asked_mw = own;
        lowers |= own < t->o.original_mw[i];
    }
    /* Where one board's own is above its original, the others' are below theirs. */
    uint32_t most = t->report.original_mw - (t->o.cap.percent > 0 && lowers);
    if (t->asked_mw > most)
        t->asked_mw = most;
    return 0;
}

/* What is known from before: regimes of other boards or of an earlier daemon, and caps
 * that were measured with these boards, the reference first.
 */
static void take_known(struct tuner *t)
{
    const struct tuner_known *k = t->o.known;
    double share = t->o.visits_share;
    int looks = t->o.looks;

    share = share < 0 ? 0 : share > 0 ? share : VISITS_SHARE;
    t->report.visits.share = share;
    looks = looks < 0 ? 0 : looks > 0 ? looks : LOOKS;
    t->report.looks.most = (unsigned)looks;
    if (!k || k->n_regimes == 0)
        return;
    t->report.n_regimes = k->n_regimes;
    memcpy(t->regime, k->regime, k->n_regimes * sizeof *t->regime);
    t->report.windows = k->windows;
    t->report.changes = k->changes;
    t->known_by_period = k->by_period;
    t->report.stalls = k->stalls;
    t->report.visits = k->visits;
    t->report.visits.share = share;
    if (k->n_caps == 0) { /* other boards: nothing measured there holds here */
        tuner_add_savings(t);
        return;
    }
    t->report.reference_mw = k->reference_mw;
    t->report.demand_w = k->demand_w;
    t->report.peak_w = k->peak_w;
    t->report.looks.n = k->looks.n;
    t->report.looks.last_s = k->looks.last_s;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < k->n_caps && i < TUNER_CAPS_MAX; i++) {
            const struct tuner_cap *c = &k->cap[i];
            if ((c->cap_mw == k->reference_mw) != (pass == 0))
                continue;
            t->caps[t->report.n_caps++] = *c;
            struct search_window w = {
                .cap_mw = c->cap_mw,
                .time_s = savings_mean_time(&c->mean),
                .energy_j = savings_mean_energy(&c->mean),
                .time_rse = savings_mean_time_rse(&c->mean),
                .energy_rse = savings_mean_energy_rse(&c->mean),
                .peak_w = pass == 0 ? k->peak_w : 0,
            };
            if (t->search)
                (void)search_on_window(t->search, &w, NULL);
        }
    }
    if (t->search && t->report.n_caps > 0)
        search_on_found(t->search, k->held_mw);
}

static int take_earlier(struct tuner *t, uw_error *err)
{
    const struct tuner_earlier *e = t->o.earlier;
    int r = 0;

    if (!t->search || !e || e->n == 0 || (t->o.known && t->o.known->n_caps > 0))
        return 0;
    for (size_t i = 0; i < e->n && r >= 0; i++)
        r = search_on_earlier(t->search, &e->window[i], e->demand_w, err);
    if (r < 0)
        return fail_in(err, r, "job %" PRIu64, e->job);
    t->report.earlier_job = e->job;
    t->report.memory = SEARCH_MEMORY_KEPT;
    tuner_note(t, true, "has %zu caps of job %" PRIu64 " to go by, this job's last run",
               e->n, e->job);
    return 0;
}

static uint32_t highest(const uint32_t *v, size_t n)
{
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++)
        if (v[i] > top)
            top = v[i];
    return top;
}

int tuner_new(const struct tuner_opts *opts, struct tuner **ret, uw_error *err)
{
    auto_(tuner_free) struct tuner *t = calloc(1, sizeof *t);

    if (!t)
        return fail(err, -ENOMEM, "out of memory");
    t->o = *opts;
    t->ceiling_mw = UINT32_MAX;
    t->report.cap = t->caps;
    t->report.account = t->regime;
    t->report.n_regimes = 1;
    t->report.busy = NAN;
    t->report.original_mw = highest(opts->original_mw, opts->n);
    int r = 0;
    if (opts->search) {
        struct search_setup setup = {0};
        r = common_setup(t, &setup, err);
        if (r >= 0) {
            t->report.original_mw = setup.original_mw;
            r = search_new(&setup, &t->search, err);
        }
    } else {
        r = fixed_cap(t, err);
    }
    if (r >= 0)
        r = take_earlier(t, err);
    if (r < 0)
        return r;
    take_known(t);
    t->o.known = NULL;
    t->o.earlier = NULL;
    steps_init(&t->steps);
    ramp_init(&t->ramp, t->report.original_mw, MW_PER_W, loop_now_ns(opts->loop));
    t->commanded_mw = t->report.original_mw;
    change_init(&t->change, 0);
    r = loop_timer_new(opts->loop, UINT64_MAX, 0, tuner_on_tick, t, &t->timer, err);
    if (r < 0)
        return r;
    *ret = take(t);
    return 0;
}

void tuner_free(struct tuner *t)
{
    if (!t)
        return;
    loop_timer_free(t->timer);
    slack_free(t->slack.machine);
    lock_free(t->lock.machine);
    search_free(t->search);
    tuner_drop_asks(t);
    free(t);
}

const struct tuner_report *tuner_report(struct tuner *t)
{
    struct search_result known = {0};

    if (t->search)
        search_result(t->search, &known);
    t->report.best_mw = known.has_reference ? known.best_mw : t->asked_mw;
    t->report.lock_mhz = t->lock.asked_mhz;
    t->report.lock_mw = t->lock.asked_mhz ? t->commanded_mw : 0;
    t->report.modelled = known.has_reference && known.ref_energy_j > 0;
    if (t->report.modelled) {
        t->report.model_saving = 1 - known.best_energy_j / known.ref_energy_j;
        t->report.model_slowdown = known.best_time_s / known.ref_time_s;
    }
    savings_saved(t->regime, t->report.n_regimes, &t->report.saved);
    return &t->report;
}

uint32_t tuner_cap_mw(const struct tuner *t)
{
    return t->commanded_mw;
}

void tuner_status(const struct tuner *t, char *ret, size_t size)
{
    static const char *const names[] = {"waits for training steps (UNDERWATT_PROGRESS)",
                                        "on the way to",
                                        "measures at",
                                        "measures at",
                                        "",
                                        "measures only",
                                        "over"};
    bool hold = t->step.kind == SEARCH_HOLD && t->report.holding;

    if (tuner_rests(t))
        (void)snprintf(ret, size, "cannot be measured: not capped for now");
    else if (t->paused && t->state < TUNER_LEFT)
        (void)snprintf(ret, size, "tells of no step: not capped until it does");
    else if (t->state == TUNER_WAIT && t->listening && !t->report.holding)
        (void)snprintf(ret, size, "%s",
                       t->safe ? "no steps, no period: not capped"
                               : "tells of no steps: listens for a period");
    else if (t->safe && t->state == TUNER_WINDOW)
        (void)snprintf(ret, size, "no steps, no period: safe cap %.0f W",
                       w_of_mw(t->report.held_mw));
    else if (t->state == TUNER_WAIT && t->report.holding)
        (void)snprintf(ret, size, "holds %.0f W, waits for training steps",
                       w_of_mw(t->report.held_mw));
    else if (t->state == TUNER_REHOLD)
        (void)snprintf(ret, size, "waits for its boards");
    else if (t->state == TUNER_WAIT || t->state >= TUNER_LEFT)
        (void)snprintf(ret, size, "%s", names[t->state]);
    else if (hold && t->lock.asked_mhz && !t->lock.asked_ns)
        (void)snprintf(ret, size, "%s %.0f W, %" PRIu32 " MHz",
                       tuner_lock_measures(t) ? "compares" : "holds",
                       w_of_mw(t->commanded_mw), t->lock.asked_mhz);
    else if (hold && t->state != TUNER_WALK)
        (void)snprintf(ret, size, "holds %.0f W", w_of_mw(t->step.cap_mw));
    else
        (void)snprintf(ret, size, "%s %.0f W (window %u)", names[t->state],
                       w_of_mw(t->step.cap_mw), t->report.windows + 1);
}
