/* A tuner alone, in virtual time: steps are made up, caps are limits set at once, and the
 * energy is that of a simulated board at work, as its sampler sees it.
 */
#ifndef TUNER_BENCH_H
#define TUNER_BENCH_H

#include "../../bench/capplay.h"
#include "tuner/tuner-table.h"
#include "tuning-scene.h"

#define STEP_S 0.4 /* at the original, and longer below it */
#define LOOK_S 0.1

struct bench {
    struct scene s;
    struct energy_sum *meters;
    struct tuner *tuner;
    struct loop_timer *walk, *look;
    struct cap_play cap, lock;
    uint32_t cap_mw, mhz; /* in force; 0: no lock */
    uint32_t rule_mw;     /* the cap that a rule asks for; 0: no rule */
    unsigned stated;      /* claims */
    unsigned locks;       /* asked for */
    unsigned bad_visits;  /* looks at a reference that was none */
    unsigned refused;     /* limits that root's range forbids */
    bool disobeyed;       /* locks are not */
    bool taken;           /* another Underwatt holds the board */
    bool watched;
    double done; /* steps */
    bool still;  /* the job makes none */
    bool mute;   /* … and reports none */
    bool beats;  /* … but its power has a period */
    double pace; /* more or fewer of them; 1 */
    struct steps steps;
    uint64_t looked_ns;
    char why[TUNER_TEXT]; /* the last note */
    char noted[8192];
};

/* What the board draws at most under a lock: as much as under this cap. */
static uint32_t locked_mw(uint32_t mhz)
{
    uint32_t mw = (uint32_t)(300000 * pow(mhz / 1530.0, 2.5)) / 1000 * 1000;

    return mw < 150000 ? 150000 : mw; /* the board's lowest limit */
}

static void set_limit(struct bench *b, uint32_t mw)
{
    struct sim_fault f;
    char text[32];
    uw_error err = {""};

    b->cap_mw = mw;
    if (b->mhz && locked_mw(b->mhz) < mw)
        mw = locked_mw(b->mhz);
    (void)snprintf(text, sizeof text, "0 limit %.0fW", w_of_mw(mw));
    int r = sim_fault_parse(text, &f, &err);
    if (r >= 0)
        r = virtual_world_fault(b->s.world, &f, &err);
    if (r < 0)
        ok(false, "%s: %s", text, err.text);
}

static void walk_soon(struct bench *b)
{
    loop_timer_set(b->walk, loop_now_ns(b->s.loop) + NS_PER_MS, 0);
}

static bool is_ruled(const struct bench *b)
{
    return b->rule_mw && b->rule_mw < b->cap.ramp.target_mw;
}

static void bench_told(const struct bench *b, struct claim_told *ret)
{
    cap_play_told(&b->cap, ret);
    ret->taken = b->taken;
    if (!b->rule_mw)
        return;
    ret->rules_mw = b->rule_mw;
    ret->ruled = is_ruled(b);
    if (b->rule_mw < ret->in_force_mw)
        ret->in_force_mw = b->rule_mw;
}

static int bench_on_walk(struct loop_timer *timer, uint64_t now, void *user)
{
    struct bench *b = user;
    struct claim_told told;
    uint64_t next = cap_play_step(&b->cap, now);

    if (b->lock.claim) {
        uint64_t lock_ns = cap_play_step(&b->lock, now);
        next = lock_ns < next ? lock_ns : next;
        b->mhz = b->lock.in_force_mw;
    }
    loop_timer_set(timer, next, 0);
    bench_told(b, &told);
    set_limit(b, told.in_force_mw);
    return tuner_on_told(b->tuner, 0, &told, "");
}

/* Root's range, of the next tuner; 0, 0: none. */
static struct actuator_range use_range;

static int bench_state(void *caps, size_t board, uint32_t mw, const struct claim_way *way,
                       uw_error *err)
{
    struct bench *b = caps;
    (void)board;
    (void)err;

    b->refused += use_range.max_mw && mw != 300000 &&
                  (mw < use_range.min_mw || mw > use_range.max_mw);
    b->stated++;
    cap_play_state(&b->cap, mw, way, loop_now_ns(b->s.loop));
    walk_soon(b);
    return 0;
}

static void bench_progressed(void *caps, unsigned units)
{
    struct bench *b = caps;

    cap_play_progressed(&b->cap, units, loop_now_ns(b->s.loop));
    walk_soon(b);
}

static void bench_look(const void *caps, size_t board, struct claim_told *ret)
{
    const struct bench *b = caps;
    (void)board;

    bench_told(b, ret);
}

static uint32_t seen_mhz(const struct bench *b)
{
    double mhz = 1530 * pow(b->cap_mw / 300000.0, 0.4);

    return (uint32_t)(b->mhz && b->mhz < mhz && !b->disobeyed ? b->mhz : mhz);
}

static int bench_clock(void *caps, size_t board, uint32_t mhz,
                       const struct claim_way *way, uw_error *err)
{
    struct bench *b = caps;
    uint64_t now = loop_now_ns(b->s.loop);
    (void)board;
    (void)err;

    b->locks += mhz != 0;
    if (mhz && !b->lock.claim)
        cap_play_init(&b->lock, seen_mhz(b), 15, now);
    if (mhz)
        cap_play_state(&b->lock, mhz, way, now);
    else
        b->lock.claim = b->mhz = 0;
    set_limit(b, b->cap_mw);
    walk_soon(b);
    return 0;
}

static void bench_clock_watch(void *caps, size_t board, bool watch)
{
    struct bench *b = caps;
    (void)board;

    b->watched = watch;
}

static void bench_clock_look(void *caps, size_t board, struct caps_clock_view *ret)
{
    const struct bench *b = caps;
    (void)board;

    *ret = (struct caps_clock_view){
        .can = true,
        .on = true,
        .bounds = {.max_mhz = 1530, .min_mhz = 135},
        .verdict = {.by = b->lock.claim ? CAP_BY_CLAIM : CAP_BY_ORIGINAL},
        .locked_mhz = b->mhz,
        .ramping = b->lock.claim && !ramp_arrived(&b->lock.ramp),
        .given_up = b->mhz && b->disobeyed,
        .seen_mhz = seen_mhz(b),
        .seen_ns = b->watched ? loop_now_ns(b->s.loop) / NS_PER_S * NS_PER_S : 0,
    };
}

static void bench_drop(void *caps, size_t board)
{
    struct bench *b = caps;

    (void)bench_clock(caps, board, 0, NULL, NULL);
    cap_play_drop(&b->cap, loop_now_ns(b->s.loop));
}

static const struct tuner_caps bench_caps = {
    .state = bench_state,
    .drop = bench_drop,
    .progressed = bench_progressed,
    .look = bench_look,
    .clock = bench_clock,
    .clock_watch = bench_clock_watch,
    .clock_look = bench_clock_look,
};

/* The board is lost for a moment. */
static int lose_board(struct bench *b)
{
    struct claim_told told;

    cap_play_init(&b->cap, 300000, MW_PER_W, loop_now_ns(b->s.loop));
    cap_play_told(&b->cap, &told);
    told.progress = CLAIM_UNMET;
    told.why = UNMET_LOST;
    told.answers = false;
    walk_soon(b);
    return tuner_on_told(b->tuner, 0, &told, "lost");
}

static void bench_on_note(const char *text, bool important, void *user)
{
    struct bench *b = user;
    size_t n = strlen(b->noted);
    (void)important;

    (void)snprintf(b->why, sizeof b->why, "%s", text);
    (void)snprintf(b->noted + n, sizeof b->noted - n, "%s\n", text);
    if (verbose)
        printf("# %8.1f s  %s\n", (double)loop_now_ns(b->s.loop) * 1e-9, text);
}

/* Steps a second.  A lock costs less time than the cap of the same power. */
static double rate_of(const struct bench *b)
{
    double rate = b->pace * pow(b->cap_mw / 300000.0, 0.3) / STEP_S;
    double locked = b->pace * (1 - 0.1 * (1 - b->mhz / 1530.0)) / STEP_S;

    return b->mhz && !b->disobeyed && locked_mw(b->mhz) < b->cap_mw ? locked : rate;
}

/* The period of the boards' power, if it is one of those that are looked for.
 */
static void hear_period(struct bench *b, uint64_t now)
{
    struct progress *p = &b->tuner->progress;
    double s = 1 / rate_of(b), least_s = 0, most_s = INFINITY;
    struct progress_period_heard h = {.at_ns = now, .why = PERIOD_NONE};

    if (p->by == TUNER_BY_PERIOD)
        (void)progress_inferred_bounds(p, &least_s, &most_s);
    h.known = b->beats && !b->still && now > p->from_ns && s >= least_s && s <= most_s;
    if (h.known) {
        h.period_s = s;
        h.rse = 0.001;
        h.confidence = 0.95;
        h.cycles = floor(s_between(p->from_ns, now) / s);
        h.from_ns = p->from_ns;
        h.to_ns = p->from_ns + ns_of_s(h.cycles * s);
    }
    (void)tuner_on_power(&h, b->tuner);
}

/* The steps that a job would have told by now. */
static int bench_on_look(struct loop_timer *timer, uint64_t now, void *user)
{
    struct bench *b = user;
    double rate = rate_of(b);
    (void)timer;

    if (b->tuner->at == ACTIVITY_CHECK && b->tuner->progress.window.state == WINDOW_OPEN)
        b->bad_visits += b->mhz != 0 || b->cap_mw != 300000;
    if (!b->still)
        b->done += s_between(b->looked_ns, now) * rate;
    b->looked_ns = now;
    if (b->mute && b->beats)
        hear_period(b, now);
    if (b->mute)
        return 0;
    struct step_slot slot = {.pid = 1,
                             .steps = (uint64_t)b->done,
                             .last_step_ns = now - ns_of_s(fmod(b->done, 1) / rate),
                             .phase = UW_PHASE_TRAIN,
                             .live = true};
    (void)steps_feed(&b->steps, &slot, 1, now);
    return tuner_on_steps(b->tuner, &b->steps, now);
}

/* A program that keeps board 0 busy. */
static int start_work(struct scene *s, uw_error *err)
{
    static const struct play play = {
        .workload = "resnet50", .boards = "0", .seconds = 9000};
    struct run *r = &s->run[s->n_runs++];

    r->scene = s;
    r->stays = true;
    int got = progress_page_new("/dev/shm", &r->page, err);
    return got < 0 ? got : start_program(s, r, &play, err);
}

static bool use_clocks;    /* of the next tuner */
static bool use_visits;    /* it checks the reference and gaps */
static uint32_t use_named; /* its cap by name; 0: it searches */

static bool bench_open(struct bench *b, const char *goal)
{
    static const uint32_t original_mw[] = {300000};
    static struct board *board;
    uw_error err = {""};

    *b = (struct bench){.cap_mw = 300000, .done = 1, .pace = 1};
    steps_init(&b->steps);
    if (!scene_open(&b->s))
        return false;
    board = boards_at(b->s.boards, 0);
    b->looked_ns = loop_now_ns(b->s.loop);
    cap_play_init(&b->cap, 300000, MW_PER_W, b->looked_ns);
    struct tuner_opts opts = {.loop = b->s.loop,
                              .caps = &bench_caps,
                              .caps_of = b,
                              .boards = &board,
                              .original_mw = original_mw,
                              .range = use_range.max_mw ? &use_range : NULL,
                              .n = 1,
                              .cap.mw = use_named,
                              .search = !use_named,
                              .clocks = use_clocks,
                              .checks_share = use_clocks || use_visits ? 0.05 : -1,
                              .gap_checks = use_visits ? 0 : -1,
                              .note = bench_on_note,
                              .user = b};
    int r = goal_parse(goal, &opts.goal, &err);
    if (r >= 0)
        r = start_work(&b->s, &err);
    if (r >= 0)
        r = energy_sum_new(b->s.sampler, 1, &b->meters, &err);
    opts.meters = b->meters;
    if (r >= 0)
        r = tuner_new(&opts, &b->tuner, &err);
    if (r >= 0)
        r = loop_timer_new(b->s.loop, UINT64_MAX, 0, bench_on_walk, b, &b->walk, &err);
    if (r >= 0)
        r = loop_timer_new(b->s.loop, b->looked_ns + ns_of_s(LOOK_S), ns_of_s(LOOK_S),
                           bench_on_look, b, &b->look, &err);
    return ok(r >= 0, "a tuner: %s %s", goal, err.text);
}

static void bench_close(struct bench *b)
{
    loop_timer_free(b->look);
    loop_timer_free(b->walk);
    tuner_free(b->tuner);
    energy_sum_free(b->meters);
    scene_close(&b->s);
}

/* Until the tuner is in this state at a cap that is lower. */
static bool reach(struct bench *b, enum tuner_state state)
{
    for (int i = 0; i < 300000; i++) {
        if (b->tuner->state == state && b->cap_mw < 290000)
            return true;
        pass(&b->s, 0.001);
    }
    return false;
}

static void hold(struct bench *b)
{
    for (int i = 0; i < 360 && !tuner_report(b->tuner)->holding; i++)
        pass(&b->s, 5);
}

/* Until the original is back because nothing can be measured. */
static bool rests(struct bench *b)
{
    char text[TUNER_TEXT] = "";

    for (int i = 0; i < 400 && !strstr(text, "cannot be measured"); i++) {
        pass(&b->s, 1);
        tuner_status(b->tuner, text, sizeof text);
    }
    pass(&b->s, 1);
    return b->cap_mw == 300000 && strstr(text, "cannot be measured");
}

#endif
