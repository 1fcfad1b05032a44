#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/names.h"
#include "core/optimum/propose.h"
#include "tuner/tuner-table.h"

#define RULE_ENDS_S 5.0 /* longest time of an earlier phase's rule in training */
#define STALL_FACTOR 8.0
#define STALL_LEAST_S 15.0 /* and 2 s of real time, for a faster simulation */

/* ---- time ---- */

static bool is_timed(const struct tuner *t)
{
    return !t->stopped && (t->state == TUNER_WALK || t->state == TUNER_MEASURE ||
                           t->state == TUNER_LATE || t->state == TUNER_PAUSED);
}

static bool works(const struct tuner *t)
{
    return t->state == TUNER_WALK || t->state == TUNER_MEASURE;
}

/* When missing steps count as lost.  A cap by name needs no steps on its ramp or when
 * held.
 */
static uint64_t lost_ns(const struct tuner *t)
{
    const struct progress_source *source = progress_source(&t->progress);
    bool needed = t->search || t->step.kind == SEARCH_MEASURE;

    return needed && source->lost_ns ? source->lost_ns(&t->progress) : UINT64_MAX;
}

bool tuner_waits(const struct tuner *t)
{
    return t->state == TUNER_WAIT && t->progress.by == TUNER_BY_STEPS && !t->stopped;
}

/* Whether a cap of the tuner is in force, or on the way. */
static bool is_capped(const struct tuner *t)
{
    return board_caps_lower(&t->caps, t->report.original_mw);
}

/* Seconds by which the next step is late under a cap, negative until then; 0: no step is
 * awaited.
 */
static double late_by(const struct tuner *t, uint64_t now)
{
    double least_s = fmax(STALL_LEAST_S, 2 * loop_speed(t->o.loop));
    const struct progress_source *source = progress_source(&t->progress);

    if (!is_capped(t) || !source->late_s)
        return 0;
    return source->late_s(&t->progress.steps, now, STALL_FACTOR, least_s);
}

/* The same while the cap is lowered: seconds by which the step is so late that the cap
 * goes down no further.
 */
static double stays_by(const struct tuner *t, uint64_t now)
{
    if (t->state != TUNER_WALK || !t->search || !is_capped(t))
        return 0;
    return pause_late_s(&t->pause, &t->progress.steps, now, loop_speed(t->o.loop));
}

/* When a step is so late that the originals must be restored. */
static uint64_t long_ns(const struct tuner *t)
{
    return pause_long_ns(&t->pause, &t->progress.steps, loop_speed(t->o.loop));
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The time at which late_s, negative until then, reaches 0; late_s 0: never. */
static uint64_t late_ns(double late_s, uint64_t now)
{
    return late_s < 0 ? now + ns_of_s(-late_s) : late_s > 0 ? now : UINT64_MAX;
}

/* The earliest time at which the job, or an activity, is late. */
static uint64_t work_due_ns(const struct tuner *t, uint64_t now)
{
    uint64_t due = earlier(late_ns(late_by(t, now), now), late_ns(stays_by(t, now), now));

    if (t->at == ACTIVITY_CHECK)
        due = earlier(due, reference_check_late_ns(&t->check));
    if (t->state != TUNER_WALK)
        return due;
    due = earlier(due, tuner_check_due_ns(t));
    return t->caps.pending ? due : earlier(due, activities_late_ns(t->activity));
}

/* The earliest time at which the state can change without an event. */
static uint64_t due_ns(const struct tuner *t, uint64_t now)
{
    uint64_t due = tuner_boards_due_ns(t);

    if (!is_timed(t))
        return due;
    if (t->caps.refused)
        return now; /* the end */
    due = earlier(due, lost_ns(t));
    if (t->state == TUNER_LATE)
        due = earlier(due, long_ns(t));
    return works(t) ? earlier(due, work_due_ns(t, now)) : due;
}

void tuner_arm(struct tuner *t)
{
    uint64_t now = loop_now_ns(t->o.loop);
    uint64_t due = due_ns(t, now);

    loop_timer_set(t->timer, due > now || due == UINT64_MAX ? due : now + 1, 0);
}

static int on_due(struct tuner *t, uint64_t now)
{
    int r = tuner_hear_boards(t, now);

    if (r < 0 || !is_timed(t))
        return r;
    if (t->caps.refused)
        return tuner_unmet(t, t->caps.text);
    if (now > lost_ns(t))
        return tuner_event(t, ON_LOST, NULL);
    if (t->state == TUNER_LATE)
        return now >= long_ns(t) ? tuner_event(t, ON_DUE, NULL) : 0;
    if (!works(t))
        return 0;
    if (t->at == ACTIVITY_CHECK && now > reference_check_late_ns(&t->check))
        return tuner_event(t, ON_DUE, NULL);
    if (late_by(t, now) > 0 || stays_by(t, now) > 0)
        return tuner_event(t, ON_LATE, NULL);
    tuner_check_first(t, now);
    return tuner_arrive(t);
}

static int tuner_on_timer(struct loop_timer *timer, uint64_t now, void *user)
{
    struct tuner *t = user;
    (void)timer;

    int r = on_due(t, now);
    tuner_arm(t);
    return r;
}

/* ---- steps ---- */

/* The job reports steps that were inferred so far, or unknown.  True: the reported steps
 * replace them, and this read is ignored; *ret: the result.
 */
static bool on_told(struct tuner *t, const struct steps *steps, int *ret)
{
    *ret = 0;
    if (!progress_is_told(&t->progress, steps) || t->state >= TUNER_LEFT || t->stopped)
        return false;
    if (t->state == TUNER_BOARDS)
        return progress_is_inferred(&t->progress);
    bool before = t->state == TUNER_WAIT;
    *ret = tuner_event(t, ON_TOLD, NULL);
    return !before;
}

/* Steps were read, and nothing is late. */
static int feed_source(struct tuner *t, uint64_t now)
{
    struct progress *p = &t->progress;
    const struct progress_source *source = progress_source(p);

    if (t->state == TUNER_WAIT && source->waits && !tuner_rests(t))
        return tuner_on_progress(t, source->waits(p, now));
    if (t->aside_mw && t->report.ruled && steps_training(&p->steps) &&
        s_between(p->steps.phase_ns, now) > RULE_ENDS_S)
        return tuner_late_aside(t);
    if (t->state != TUNER_MEASURE || t->report.ruled || !source->on_steps)
        return 0;
    if (p->window.state == WINDOW_OPEN)
        activities_see(t->activity);
    return tuner_on_progress(t, source->on_steps(p, now));
}

static int on_goes_on(struct tuner *t)
{
    if (t->state == TUNER_PAUSED)
        tuner_note(&t->notes, true, "the job continues");
    return tuner_event(t, ON_GOES_ON, NULL);
}

static int take_steps(struct tuner *t, const struct steps *steps, uint64_t now_ns)
{
    struct progress *p = &t->progress;
    bool late = tuner_is_late(t), goes_on = false;
    int r;

    if (!progress_takes(p, steps))
        return 0;
    p->steps = *steps;
    if (late)
        goes_on = pause_on_steps(&t->pause, &p->steps, now_ns);
    pause_mend(&t->pause, &p->steps);
    if (steps_seen(steps))
        p->told.seen_ns = now_ns;
    if (on_told(t, steps, &r) || r < 0)
        return r;
    if (t->started && !progress_is_inferred(p) && t->state != TUNER_OVER && !t->stopped &&
        !tuner_lacks_boards(t))
        regimes_on_steps(&t->regimes, &p->steps);
    if (late)
        return goes_on ? on_goes_on(t) : 0;
    if (t->stopped)
        return 0;
    if (works(t) && t->priced && !(tuner_left_s(t) > 0))
        return tuner_event(t, ON_SPENT, NULL);
    tuner_check_first(t, now_ns);
    return feed_source(t, now_ns);
}

int tuner_on_steps(struct tuner *t, const struct steps *steps, uint64_t now_ns)
{
    int r = take_steps(t, steps, now_ns);

    tuner_arm(t); /* the time that was due may have changed */
    return r;
}

/* ---- events from the caller ---- */

int tuner_resume(struct tuner *t, uint32_t held_mw)
{
    if (t->state != TUNER_WAIT || t->caps.n == 0)
        return 0;
    if (held_mw > t->report.original_mw)
        held_mw = t->report.original_mw;
    t->holding = true;
    t->report.held_mw = held_mw;
    (void)snprintf(t->report.why, sizeof t->report.why, "held before the restart");
    return tuner_command(t, held_mw, &CLAIM_AT_ONCE);
}

int tuner_on_stopped(struct tuner *t, bool stopped)
{
    uint64_t now = loop_now_ns(t->o.loop);

    if (stopped == t->stopped || t->state == TUNER_LEFT || t->state == TUNER_OVER)
        return 0;
    tuner_count_away(t);
    t->stopped = stopped;
    if (t->state == TUNER_WAIT && !t->started && !t->holding)
        return 0; /* no cap was claimed yet */
    if (stopped) {
        tuner_note(&t->notes, true, "the job is stopped: no cap until it continues");
        return tuner_event(t, ON_STOPPED, NULL);
    }
    tuner_note(&t->notes, true, "the job continues");
    pause_forgive(&t->pause, &t->progress.steps,
                  now); /* do not count the stop as a stall */
    return tuner_event(t, ON_CONTINUED, NULL);
}

int tuner_on_gap(struct tuner *t)
{
    struct tuner_moved same = {.was_mw = t->enforced_mw, .enforced_mw = t->enforced_mw};

    if (t->stopped || t->state >= TUNER_LEFT)
        return 0;
    pause_forgive(&t->pause, &t->progress.steps, loop_now_ns(t->o.loop));
    regimes_close(&t->regimes); /* the caps of that time are not known */
    return tuner_event(t, ON_MOVED, &same);
}

int tuner_no_caps(struct tuner *t, const char *text)
{
    return t->state == TUNER_OVER || t->state == TUNER_LEFT ? 0 : tuner_unmet(t, text);
}

/* ---- begin and end ---- */

int tuner_maybe_done(struct tuner *t)
{
    if (t->state != TUNER_OVER || !t->done || t->caps.pending || t->peaks_asked ||
        t->regimes.pending || t->energy.pending)
        return 0;
    tuner_done_fn done = t->done;
    t->done = NULL;
    savings_saved(t->regimes.savings, t->regimes.n, &t->report.saved);
    return done(t, t->done_user);
}

static int on_stretch(void *user)
{
    return tuner_maybe_done(user);
}

int tuner_finish(struct tuner *t, tuner_done_fn done, void *user)
{
    t->done = done;
    t->done_user = user;
    int r = tuner_event(t, ON_END, NULL);
    return r < 0 ? r : tuner_maybe_done(t);
}

/* The windows of the known cap count as windows of this search.  As windows of a hold or
 * a wait may be among them, at most as many count as one step takes.
 */
static void tell_known(struct search *s, const struct tuner_cap *c, double peak_w)
{
    unsigned n = c->mean.windows;
    const struct search_window w = {
        .cap_mw = c->cap_mw,
        .time_s = savings_mean_time(&c->mean),
        .energy_j = savings_mean_energy(&c->mean),
        .time_rse = savings_mean_time_rse(&c->mean),
        .energy_rse = savings_mean_energy_rse(&c->mean),
        .peak_w = peak_w,
        .length = n < PROPOSE_LENGTH_MAX ? n : PROPOSE_LENGTH_MAX,
        .known = true,
    };

    (void)search_on_window(s, &w, NULL);
}

/* Takes over the regimes of an earlier tuner, and the caps measured on these boards, the
 * reference first.
 */
static void take_known(struct tuner *t)
{
    const struct tuner_known *k = t->o.known;
    double share = t->check.checks.share;

    if (!k || k->n_regimes == 0)
        return;
    t->check.checks = k->kept.checks;
    t->check.checks.share = share;
    t->regimes.n = k->n_regimes;
    memcpy(t->regimes.savings, k->regime, k->n_regimes * sizeof *k->regime);
    t->report.windows = k->windows;
    t->report.changes = k->changes;
    t->progress.unit = k->by_period ? TUNER_BY_PERIOD : TUNER_BY_STEPS;
    t->report.stalls = k->stalls;
    t->report.stopped_s = k->stopped_s;
    t->report.waited_s = k->waited_s;
    if (k->n_caps == 0) { /* other boards: the measurements do not apply */
        regimes_add(&t->regimes);
        return;
    }
    t->report.reference_mw = k->reference_mw;
    t->report.allowed_mw = k->allowed_mw;
    t->report.lifted_mw = k->lifted_mw;
    t->report.demand_w = k->demand_w;
    t->report.peak_w = k->peak_w;
    t->gap.probes.n = k->kept.gap_checks.n;
    t->gap.probes.last_s = k->kept.gap_checks.last_s;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < k->n_caps && i < TUNER_CAPS_MAX; i++) {
            const struct tuner_cap *c = &k->cap[i];
            if ((c->cap_mw == k->reference_mw) != (pass == 0))
                continue;
            t->regimes.cap[t->regimes.n_caps++] = *c;
            if (t->search)
                tell_known(t->search, c, pass == 0 ? k->peak_w : 0);
        }
    }
    if (t->search && t->regimes.n_caps > 0 && !k->searching)
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
    tuner_note(&t->notes, true,
               "starting with %zu caps measured by job %" PRIu64
               ", the last run of this job",
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

/* How much may be spent on checks. */
static void init_checks(struct tuner *t)
{
    double share = t->o.checks_share;
    int probes = t->o.gap_checks;

    t->check.checks.share = share < 0 ? 0 : share > 0 ? share : VISITS_SHARE;
    t->gap.probes.most = (unsigned)(probes < 0   ? 0
                                    : probes > 0 ? probes
                                                 : GAP_PROBES_MAX);
}

/* Initialises the parts from the options. */
static void init_parts(struct tuner *t)
{
    const struct tuner_opts *o = &t->o;
    double ramp = o->ramp > 0 ? o->ramp : SEARCH_RAMP;
    bool locks = o->clocks && o->search && o->caps->clock && o->goal.kind != GOAL_TIME &&
                 !(o->slack > 0 && o->n >= 2);

    t->notes = (struct tuner_notes){o->note, o->user};
    t->trials.notes = &t->notes;
    t->caps = (struct board_caps){
        .table = o->caps,
        .of = o->caps_of,
        .boards = o->boards,
        .original_mw = o->original_mw,
        .range = o->range,
        .n = o->n,
        .cap = o->cap,
    };
    for (size_t i = 0; i < o->n; i++)
        o->caps->look(o->caps_of, i, &t->caps.told[i]);
    regimes_init(&t->regimes, o->meters, on_stretch, t);
    t->energy = (struct window_energy){
        .meters = o->meters, .n_boards = o->n, .on_piece = tuner_on_piece, .user = t};
    t->progress = (struct progress){
        .loop = o->loop,
        .power = o->period,
        .meters = o->meters,
        .caps = &t->caps,
        .regimes = &t->regimes,
        .notes = &t->notes,
        .window_s = o->window_s > 0 ? o->window_s : 10,
        .on_power = tuner_on_power,
        .user = t,
        .busy = NAN,
        .told.warm_s = o->warm_s > 0 ? o->warm_s : 10,
        .launches = {.rate = o->rate, .rate_of = o->rate_of},
        .none.likely = TUNER_BY_PERIOD,
    };
    steps_init(&t->progress.steps);
    t->activity[ACTIVITY_SAFE] = &t->safe;
    t->activity[ACTIVITY_REST] = &t->rest;
    t->activity[ACTIVITY_SLACK] = &t->slack;
    t->activity[ACTIVITY_LOCK] = &t->lock;
    t->activity[ACTIVITY_CHECK] = &t->check;
    t->activity[ACTIVITY_GAP] = &t->gap;
    t->safe = (struct safe_cap){.caps = &t->caps, .goal = o->goal};
    t->slack = (struct slack_search){
        .caps = &t->caps, .notes = &t->notes, .goal = o->goal, .most = o->slack};
    t->lock = (struct lock_search){
        .caps = &t->caps,
        .notes = &t->notes,
        .loop = o->loop,
        .goal = o->goal,
        .window_s = o->window_s,
        .ramp = ramp,
        .phase = locks ? LOCK_IDLE : LOCK_OFF,
    };
}

int tuner_new(const struct tuner_opts *opts, struct tuner **ret, uw_error *err)
{
    auto_(tuner_free) struct tuner *t = calloc(1, sizeof *t);

    if (!t)
        return fail(err, -ENOMEM, "out of memory");
    t->o = *opts;
    init_parts(t);
    init_checks(t);
    t->state = TUNER_WAIT;
    t->ceiling_mw = UINT32_MAX;
    t->report.cap = t->regimes.cap;
    t->report.account = t->regimes.savings;
    t->report.original_mw = highest(opts->original_mw, opts->n);
    int r = 0;
    if (opts->search) {
        struct search_setup setup = {
            .goal = opts->goal,
            .gpus = (unsigned)opts->n,
            .floor = opts->floor,
            .ramp = opts->ramp,
        };
        r = board_caps_common(&t->caps, &setup, err);
        if (r >= 0) {
            t->report.original_mw = setup.original_mw;
            r = search_new(&setup, &t->search, err);
        }
    } else {
        r = board_caps_take_named(&t->caps, t->report.original_mw, err);
    }
    if (r >= 0)
        r = take_earlier(t, err);
    if (r < 0)
        return r;
    take_known(t);
    t->o.known = NULL;
    t->o.earlier = NULL;
    t->began_ns = t->counted_ns = loop_now_ns(opts->loop);
    t->caps.commanded_mw = t->at_mw = t->report.original_mw;
    change_init(&t->change, 0);
    r = loop_timer_new(opts->loop, UINT64_MAX, 0, tuner_on_timer, t, &t->timer, err);
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
    regimes_fini(&t->regimes);
    free(t);
}
