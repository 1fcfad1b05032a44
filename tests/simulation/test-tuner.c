/* The tuner alone, in virtual time (tuner-bench.h).
 *
 * Usage: test-tuner [CASE]: all without.
 */
#include "tuner-bench.h"

/* Stopped when a window is over whose energy is not known yet. */
static void stopped(void)
{
    struct bench b;

    if (bench_open(&b, "edp")) {
        ok(reach(&b, TUNER_ENERGY), "(a window below the original is over)");
        const struct tuner_report *r = tuner_report(b.tuner);
        unsigned windows = r->account->reference.windows;
        double time_s = savings_mean_time(&r->account->reference);
        b.still = true;
        (void)tuner_on_stopped(b.tuner, true);
        pass(&b.s, 30);
        ok(b.cap_mw == 300000, "its job is stopped: %.0f W", w_of_mw(b.cap_mw));
        r = tuner_report(b.tuner);
        ok(r->account->reference.windows == windows &&
               savings_mean_time(&r->account->reference) == time_s,
           "… and the window is none at the original: %u of %.4f s, %u of %.4f s",
           windows, time_s, r->account->reference.windows,
           savings_mean_time(&r->account->reference));
        b.still = false;
        (void)tuner_on_stopped(b.tuner, false);
        hold(&b);
        ok(tuner_report(b.tuner)->holding, "it goes on, and so does the search: %s",
           b.why);
    }
    bench_close(&b);
}

/* Neither a stop of the job in a hold, nor a wait for its board, nor the way back to the
 * cap after these is time of the search; nor is a time in which nobody read its steps.
 */
static void stopped_in_hold(void)
{
    struct bench b;

    if (bench_open(&b, "edp")) {
        hold(&b);
        pass(&b.s, 100);
        struct savings_saved was = tuner_report(b.tuner)->saved;
        ok(was.search_s > 20 && was.back_s == 0, "(a hold: %.0f s of search)",
           was.search_s);
        b.still = true;
        (void)tuner_on_stopped(b.tuner, true);
        pass(&b.s, 165);
        (void)lose_board(&b); /* counts once, as a stop */
        pass(&b.s, 165);
        b.still = false;
        (void)tuner_on_stopped(b.tuner, false);
        pass(&b.s, 150);
        const struct tuner_report *r = tuner_report(b.tuner);
        is_near(r->stopped_s, 330, 0.01, "s of a stop");
        is_near(r->saved.search_s, was.search_s, 1, "s of search");
        ok(r->saved.back_s > 20 && r->saved.back_s < 120 && r->waited_s == 0,
           "… %.0f s on the way back", r->saved.back_s);
        double back_s = r->saved.back_s;
        b.taken = true;
        walk_soon(&b);
        pass(&b.s, 60);
        b.taken = false;
        walk_soon(&b);
        pass(&b.s, 150);
        r = tuner_report(b.tuner);
        is_near(r->waited_s, 60, 0.5, "s of a wait");
        is_near(r->saved.search_s, was.search_s, 1, "s of search");
        ok(r->saved.back_s > back_s + 20, "… %.0f s on ways back", r->saved.back_s);
        double booked_s = savings_time_s(r->account, r->n_regimes);
        b.mute = true;
        pass(&b.s, 50);
        b.mute = false;
        (void)tuner_on_gap(b.tuner);
        pass(&b.s, 60);
        r = tuner_report(b.tuner);
        is_near(r->saved.search_s, was.search_s, 1, "s of search");
        is_near(savings_time_s(r->account, r->n_regimes) - booked_s, 60, 21,
                "s of steps that were read");
    }
    bench_close(&b);
}

/* The whole way to a cap is one claim. */
static void one_claim(void)
{
    struct bench b;

    if (bench_open(&b, "edp")) {
        ok(reach(&b, TUNER_WALK), "(on the way down)");
        const struct claim_way *way = &b.cap.way;
        unsigned stated = b.stated;
        uint32_t first_mw = b.cap_mw, target_mw = b.cap.ramp.target_mw;
        ok(way->own && way->rate_mw_s > 0 && way->check_units > 1 &&
               first_mw == way->first_mw,
           "at the first cap, %.0f W, for %u units, then %.1f W/s", w_of_mw(first_mw),
           way->check_units, way->rate_mw_s / 1000);
        b.still = true;
        pass(&b.s, 5);
        is_int(b.cap_mw, (intmax_t)first_mw, "no step, no way on");
        b.still = false;
        for (int i = 0; i < 3000 && b.tuner->state == TUNER_WALK; i++)
            pass(&b.s, 0.1);
        ok(b.tuner->state == TUNER_MEASURE && b.cap_mw == target_mw &&
               target_mw < first_mw && b.stated == stated && stated == 1,
           "%.0f W are measured: %u claim", w_of_mw(b.cap_mw), b.stated);
    }
    bench_close(&b);
}

/* In the middle of a search no window's energy is known any more. */
static void unmeasured(void)
{
    struct bench b;

    if (bench_open(&b, "slowdown:1.2")) {
        ok(reach(&b, TUNER_MEASURE), "(a window below the original)");
        sampler_count_in(b.s.sampler[0], 0, false);
        ok(rests(&b), "no cap is left in force unmeasured: %s", b.why);
        pass(&b.s, 300);
        ok(rests(&b), "tried again, and so again: %s", b.why);
        sampler_count_in(b.s.sampler[0], 0, true);
        hold(&b);
        ok(b.cap_mw < 300000 && tuner_report(b.tuner)->holding,
           "it ends with a cap once it can be: %s", b.why);
        pass(&b.s, 60);
        sampler_count_in(b.s.sampler[0], 0, false);
        ok(rests(&b), "a cap that is held is not held blind either: %s", b.why);
    }
    bench_close(&b);
}

/* What a claim says of its cap is why it is held, not what came before. */
static void why(void)
{
    struct bench b;

    if (bench_open(&b, "edp")) {
        hold(&b);
        pass(&b.s, 30);
        b.still = true;
        (void)tuner_on_stopped(b.tuner, true);
        pass(&b.s, 10);
        ok(strstr(b.why, "stopped"), "\"%s\"", b.why);
        b.still = false;
        (void)tuner_on_stopped(b.tuner, false);
        pass(&b.s, 100);
        ok(b.cap_mw < 300000 && strncmp(b.why, "holds ", 6) == 0,
           "held again at %.0f W: \"%s\"", w_of_mw(b.cap_mw), b.why);
    }
    bench_close(&b);
}

static void rest_for(struct bench *b, double seconds)
{
    b->still = true;
    pass(&b->s, seconds);
    b->still = false;
}

/* A job that ran well makes no step for a while: no cap did that. */
static void gaps(void)
{
    struct bench b;

    if (bench_open(&b, "slowdown:1.2")) {
        ok(reach(&b, TUNER_WALK), "(on the way down)");
        pass(&b.s, 20);
        uint32_t was = b.cap_mw;
        rest_for(&b, 40);
        ok(b.cap_mw <= was && was <= b.cap_mw + 15000,
           "a pause on the way: it waits there, %.0f W", w_of_mw(b.cap_mw));
        rest_for(&b, 60);
        ok(b.cap_mw == 300000, "… and the original comes back when it lasts");
        hold(&b);
        pass(&b.s, 120); /* and looks from what the hold tells */
        uint32_t held = b.cap_mw;
        ok(held < 300000, "it goes on: held %.0f W", w_of_mw(held));
        rest_for(&b, 50);
        ok(b.cap_mw == held, "a pause of a hold: its cap stays");
        pass(&b.s, 30);
        rest_for(&b, 300);
        char text[TUNER_TEXT];
        tuner_status(b.tuner, text, sizeof text);
        ok(b.cap_mw == 300000 && strstr(text, "no step"), "a long one: \"%s\"", text);
        pass(&b.s, 120);
        const struct tuner_report *r = tuner_report(b.tuner);
        ok(b.cap_mw == held && r->stalls == 0 && r->changes == 0,
           "held again: %.0f W, %u stalls, %u changes", w_of_mw(b.cap_mw), r->stalls,
           r->changes);
    }
    bench_close(&b);
}

/* A cap by name of a job that reports nothing: a stop of the job does not end
 * it. */
static void mute(void)
{
    struct bench b;

    use_named = 200000;
    if (bench_open(&b, "edp")) {
        b.mute = true;
        (void)tuner_on_stopped(b.tuner, true);
        ok(!tuner_waits(b.tuner), "a stopped job is not one that reports no steps");
        (void)tuner_on_stopped(b.tuner, false);
        ok(tuner_waits(b.tuner), "… until it continues");
        (void)tuner_on_silent(b.tuner);
        pass(&b.s, 120);
        is_int(b.cap_mw, 200000, "its cap is set");
        (void)tuner_on_stopped(b.tuner, true);
        pass(&b.s, 1);
        is_int(b.cap_mw, 300000, "stopped: the original");
        (void)lose_board(&b);
        pass(&b.s, 1);
        is_int(b.cap_mw, 300000, "… still, when its boards are back");
        (void)tuner_on_stopped(b.tuner, false);
        pass(&b.s, 120);
        is_int(b.cap_mw, 200000, "it continues, and has its cap again: %s", b.why);
    }
    bench_close(&b);
    use_named = 0;
}

/* Pauses in every window: no bound is held blind. */
static void restless(void)
{
    struct bench b;
    bool back = false;

    if (bench_open(&b, "slowdown:1.2")) {
        ok(reach(&b, TUNER_MEASURE), "(a window below the original)");
        for (int i = 0; i < 40 && !back; i++) {
            pass(&b.s, 6);
            rest_for(&b, 20);
            back = strstr(b.noted, "cannot be measured") && b.cap_mw == 300000;
        }
        ok(back, "the original is back: %s", b.why);
    }
    bench_close(&b);
}

/* The job changes more often than regimes are kept apart: what was saved before
 * stays in the sum.
 */
static void many_changes(void)
{
    enum { CHANGES = TUNER_REGIMES_MAX + 1 };
    struct bench b;

    if (bench_open(&b, "edp")) {
        const struct tuner_report *r = tuner_report(b.tuner);
        double saved_j = 0, steps = 0;
        bool grows = true;
        for (unsigned i = 0; i < 3 * CHANGES && r->changes < CHANGES; i++) {
            unsigned before = r->changes;
            hold(&b);
            pass(&b.s, 90);
            b.pace = i % 2 ? 1 : 0.7;
            for (int k = 0; k < 40 && r->changes == before; k++)
                pass(&b.s, 5);
            (void)tuner_report(b.tuner);
            grows = grows && r->saved.steps > steps && r->saved.energy_j > saved_j;
            steps = r->saved.steps;
            saved_j = r->saved.energy_j;
        }
        hold(&b);
        pass(&b.s, 60);
        (void)tuner_report(b.tuner);
        ok(r->changes == CHANGES && r->n_regimes == TUNER_REGIMES_MAX &&
               r->account->older.regimes == CHANGES + 1 - TUNER_REGIMES_MAX,
           "%u changes, %zu regimes and %u older ones", r->changes, r->n_regimes,
           r->account->older.regimes);
        ok(grows, "what was saved grows with each, at last to %.0f J", r->saved.energy_j);
        ok(r->saved.steps > 0.97 * b.done && r->saved.steps <= b.done,
           "… over all of its steps: %.0f of %.0f", r->saved.steps, b.done);
    }
    bench_close(&b);
}

/* For so long, or until a lock is held. */
static bool hold_lock(struct bench *b, double seconds)
{
    char text[TUNER_TEXT] = "";

    for (double s = 0; s < seconds && !strstr(text, "MHz"); s += 5) {
        pass(&b->s, 5);
        tuner_status(b->tuner, text, sizeof text);
        if (!strstr(text, "holds"))
            text[0] = '\0';
    }
    return text[0] != '\0';
}

/* A lock that costs less time than the cap it stands for. */
static void locks(void)
{
    struct bench b;

    use_clocks = true;
    bool open = bench_open(&b, "slowdown:1.05");
    use_clocks = false;
    if (open) {
        hold(&b);
        uint32_t held = tuner_report(b.tuner)->held_mw;
        bool kept = hold_lock(&b, 3000);
        ok(kept && b.mhz, "a lock is held: %u MHz, %.0f W; the cap was %.0f W", b.mhz,
           w_of_mw(b.cap_mw), w_of_mw(held));
        ok(locked_mw(b.mhz) < held && rate_of(&b) * STEP_S >= 1 / 1.052,
           "… at less power, time x %.3f", 1 / (rate_of(&b) * STEP_S));
        uint32_t mhz = b.mhz;
        pass(&b.s, 3600);
        const struct tuner_report *r = tuner_report(b.tuner);
        ok(b.mhz == mhz && b.bad_visits == 0 && r->saved.pairs > 0 && r->saved.known &&
               r->saved.fraction > 0.2,
           "… for an hour; %u pairs with the original, %.1f %% saved", r->saved.pairs,
           100 * r->saved.fraction);
        (void)tuner_on_stopped(b.tuner, true);
        pass(&b.s, 5);
        ok(b.mhz == 0 && b.cap_mw == 300000, "the job is stopped: neither lock nor cap");
        (void)tuner_on_stopped(b.tuner, false);
        pass(&b.s, 200);
        ok(b.mhz == mhz, "it goes on: %u MHz again", b.mhz);
        b.disobeyed = true;
        pass(&b.s, 120);
        ok(b.mhz == 0 && b.cap_mw == held,
           "a lock that is not obeyed is given back: %.0f W", w_of_mw(b.cap_mw));
        b.disobeyed = false;
        unsigned asked = b.locks;
        pass(&b.s, 600);
        ok(b.locks == asked && b.cap_mw == held, "… and not tried again in this hold");
    }
    bench_close(&b);
}

/* Without search.clocks there is none. */
static void no_locks(void)
{
    struct bench b;

    if (bench_open(&b, "energy")) {
        hold(&b);
        pass(&b.s, 600);
        ok(b.locks == 0 && !b.watched, "no clock is locked unasked");
    }
    bench_close(&b);
}

/* Nothing is ever asked for that root's actuator.yaml forbids. */
static void ranges(void)
{
    static const struct actuator_range cases[] = {
        {200000, 300000}, {150000, 210000}, {180000, 220000}};
    struct bench b;

    for (size_t i = 0; i < n_elements(cases); i++) {
        use_range = cases[i];
        if (bench_open(&b, "energy")) {
            hold(&b);
            pass(&b.s, 60);
            const struct tuner_report *r = tuner_report(b.tuner);
            ok(r->holding && b.refused == 0 && b.cap_mw >= cases[i].min_mw &&
                   b.cap_mw <= cases[i].max_mw,
               "in %.0f..%.0f W: %.0f W held, %u limits outside",
               w_of_mw(cases[i].min_mw), w_of_mw(cases[i].max_mw), w_of_mw(b.cap_mw),
               b.refused);
        }
        bench_close(&b);
    }
    use_range = (struct actuator_range){0};
}

/* ---- any event in any state ---- */

/* The next of a fixed sequence of numbers below n. */
static unsigned draw(uint64_t *seed, unsigned n)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((*seed >> 33) % n);
}

static bool has_row(enum tuner_state state, enum tuner_event event)
{
    size_t n;
    const struct tuner_row *rows = tuner_rows(&n);

    for (size_t i = 0; i < n; i++)
        if (rows[i].on == event && rows[i].in & (1u << state))
            return true;
    return false;
}

/* The event with what comes with it. */
static int send(struct bench *b, enum tuner_event event)
{
    struct tuner_moved moved = {true, b->cap_mw, b->cap_mw};
    struct search_window window = {.cap_mw = b->cap_mw,
                                   .time_s = 0.5,
                                   .energy_j = 100,
                                   .time_rse = 0.003,
                                   .energy_rse = 0.003,
                                   .length = 1};
    struct energy_sum_window peak = {.peak_w = 250};
    struct progress_period_heard heard = {
        .known = true, .period_s = 0.5, .rse = 0.001, .confidence = 0.9};

    switch (event) {
    case ON_STOPPED:
        return tuner_on_stopped(b->tuner, true);
    case ON_CONTINUED:
        return tuner_on_stopped(b->tuner, false);
    case ON_BOARDS_LOST:
        return lose_board(b);
    case ON_MOVED:
        return tuner_event(b->tuner, event, &moved);
    case ON_JOULES:
        return tuner_event(b->tuner, event, &window);
    case ON_PEAK:
        return tuner_event(b->tuner, event, &peak);
    case ON_SURE:
        b->tuner->progress.found = heard;
        return tuner_event(b->tuner, event, NULL);
    default:
        return tuner_event(b->tuner, event, NULL);
    }
}

static int when_done(struct tuner *t, void *user)
{
    bool *done = user;
    (void)t;

    *done = true;
    return 0;
}

static void set_rule(struct bench *b, uint32_t mw)
{
    b->rule_mw = mw;
    walk_soon(b);
    pass(&b->s, 0.01);
}

static bool reach_visit(struct bench *b, enum activity_id id)
{
    for (int i = 0; i < 30000 && b->tuner->at != id; i++)
        pass(&b->s, 0.1);
    return b->tuner->at == id;
}

/* A rule is above the cap that is held, and below that of a check of it. */
static void ruled_visits(void)
{
    static const enum activity_id ids[] = {ACTIVITY_CHECK, ACTIVITY_GAP};
    struct bench b;

    use_visits = true;
    for (size_t i = sanitized() ? 1 : 0; i < n_elements(ids); i++) {
        const char *name = activities[ids[i]]->name;
        if (bench_open(&b, "edp")) {
            ok(reach_visit(&b, ids[i]), "(a %s of a hold)", name);
            uint32_t held = tuner_report(b.tuner)->held_mw;
            unsigned above = 0, begun = 0;
            set_rule(&b, held + 1000);
            pass(&b.s, 120); /* the way down */
            for (int k = 0; k < 900; k++) {
                pass(&b.s, 1);
                above += b.cap_mw > held || b.tuner->report.ruled;
                begun += b.tuner->at == ACTIVITY_CHECK || b.tuner->at == ACTIVITY_GAP;
            }
            ok(!above && !begun && !strstr(b.tuner->step.why, "earlier"),
               "%s: the hold goes on below a rule: %u s above, %u", name, above, begun);
            set_rule(&b, 0);
            ok(reach_visit(&b, ACTIVITY_CHECK), "%s: it checks without one", name);
        }
        bench_close(&b);
    }
    use_visits = false;
}

static bool has_measured(const struct bench *b, uint32_t mw)
{
    const struct tuner_report *r = tuner_report(b->tuner);

    for (size_t i = 0; i < r->n_caps; i++)
        if (r->cap[i].cap_mw == mw)
            return true;
    return false;
}

/* A rule's cap comes into force when a window is over whose energy is not known
 * yet. */
static void ruled_window(void)
{
    struct bench b;

    if (bench_open(&b, "edp")) {
        ok(reach(&b, TUNER_ENERGY), "(a window below the original is over)");
        unsigned windows = tuner_report(b.tuner)->windows;
        uint32_t mw = b.cap_mw;
        set_rule(&b, 151000);
        pass(&b.s, 300);
        ok(tuner_report(b.tuner)->windows == windows && !has_measured(&b, 151000),
           "it is none at the rule's cap, %.0f W", w_of_mw(b.cap_mw));
        set_rule(&b, 0);
        hold(&b);
        ok(has_measured(&b, mw) && !has_measured(&b, 151000) &&
               tuner_report(b.tuner)->holding,
           "%.0f W are measured after it: %s", w_of_mw(mw), b.why);
    }
    bench_close(&b);
}

/* A long step under a rule's cap: the tuner's own cap did not do that. */
static void ruled_pause(void)
{
    static const uint32_t named_mw[] = {0, 200000};
    struct bench b;

    for (size_t i = 0; i < n_elements(named_mw); i++) {
        use_named = named_mw[i];
        if (bench_open(&b, "slowdown:1.05")) {
            hold(&b);
            pass(&b.s, 120);
            uint32_t held = tuner_report(b.tuner)->held_mw;
            set_rule(&b, 151000);
            rest_for(&b, 40);
            pass(&b.s, 30);
            const struct tuner_report *r = tuner_report(b.tuner);
            ok(r->stalls == 0 && b.tuner->state == TUNER_MEASURE && r->ruled,
               "%.0f W: no stall under a rule: %s", w_of_mw(held), b.why);
            set_rule(&b, 0);
            pass(&b.s, 120);
            ok(b.cap_mw == held && r->held_mw == held && r->holding,
               "… and held after it: %.0f W", w_of_mw(b.cap_mw));
        }
        bench_close(&b);
    }
    use_named = 0;
}

/* Until a period is found, at a rule's cap. */
static const struct tuner_report *find_ruled(struct bench *b)
{
    for (int i = 0; i < 600 && b->tuner->state == TUNER_WAIT; i++)
        pass(&b->s, 0.1);
    const struct tuner_report *r = tuner_report(b->tuner);
    ok(r->ruled && r->by == TUNER_BY_PERIOD && r->period_s > 1.15 * STEP_S,
       "found at a rule's %.0f W: %.3f s", w_of_mw(b->cap_mw), r->period_s);
    return r;
}

/* A period that is found at a rule's cap, at once and later, is not that of the
 * original.
 */
static void ruled_period(void)
{
    struct bench b;

    if (bench_open(&b, "edp")) {
        b.mute = b.beats = true;
        set_rule(&b, 151000);
        (void)send(&b, ON_SILENT);
        (void)find_ruled(&b);
        set_rule(&b, 0);
        pass(&b.s, 30);
        const struct tuner_report *r = tuner_report(b.tuner);
        double reference_s = savings_mean_time(&r->account->reference);
        ok(r->account->reference.windows > 0 && fabs(reference_s / STEP_S - 1) < 0.01 &&
               b.tuner->progress.inferred.missed == 0,
           "without it that of the original, %.3f s: %s", reference_s, b.why);
        hold(&b);
        uint32_t held = b.tuner->report.held_mw;
        rest_for(&b, 300);
        ok(held && held < 290000 && b.cap_mw == 300000 && !b.tuner->holding,
           "(%.0f W were held: %s)", w_of_mw(held), b.why);
        unsigned changes = r->changes;
        set_rule(&b, 151000);
        r = find_ruled(&b);
        ok(r->changes == changes, "it is the same job: %u changes", r->changes);
        set_rule(&b, 0);
        hold(&b);
        ok(tuner_report(b.tuner)->held_mw == held && r->changes == changes,
           "and its cap is held again: %s", b.why);
    }
    bench_close(&b);
}

/* Each pair of the table, as often as chance has it: the tuner goes on, and
 * ends at the original.
 */
static void any_event(void)
{
    static bool met[TUNER_STATES_N][TUNER_EVENTS_N];
    uint64_t seed = 1;
    unsigned n = 0, wrong = 0, left_high = 0, lives = sanitized() ? 8 : 24;

    for (unsigned life = 0; life < lives; life++) {
        struct bench b;
        bool done = false;
        if (!bench_open(&b, life % 2 ? "edp" : "slowdown:1.2"))
            return;
        pass(&b.s, draw(&seed, 60));
        for (unsigned i = 0; i < 80; i++) {
            enum tuner_event event = draw(&seed, TUNER_EVENTS_N);
            enum tuner_state was = b.tuner->state;
            for (int k = 0; k < 3 && !has_row(was, event); k++) /* rather one that has */
                event = draw(&seed, TUNER_EVENTS_N);
            if (event == ON_END || (event == ON_UNMET && i < 70) ||
                (event == ON_LATE && draw(&seed, 2)))
                continue;
            b.still = draw(&seed, 8) == 0;
            int r = send(&b, event);
            met[was][event] = true;
            wrong += r < 0 || (!has_row(was, event) && b.tuner->state != was);
            if (draw(&seed, 3))
                pass(&b.s, draw(&seed, 12) ? draw(&seed, 3) : draw(&seed, 80));
        }
        (void)tuner_finish(b.tuner, when_done, &done);
        pass(&b.s, 30);
        left_high += b.cap_mw != 300000 || b.mhz || !done;
        bench_close(&b);
    }
    for (unsigned state = 0; state < TUNER_OVER; state++)
        for (unsigned event = 0; event < TUNER_EVENTS_N; event++)
            n += met[state][event] && has_row(state, event);
    ok(wrong == 0, "%u events were answered with another state than the table has",
       wrong);
    ok(left_high == 0, "every tuner ends, and at the original: %u do not", left_high);
    ok(n >= (sanitized() ? 30 : 40), "%u pairs that have a row were met", n);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"stopped", stopped},
                 {"stopped in a hold", stopped_in_hold},
                 {"one claim", one_claim},
                 {"unmeasured", unmeasured},
                 {"why", why},
                 {"gaps", gaps},
                 {"mute", mute},
                 {"restless", restless},
                 {"many_changes", many_changes},
                 {"locks", locks},
                 {"no locks", no_locks},
                 {"ranges", ranges},
                 {"ruled visits", ruled_visits},
                 {"ruled window", ruled_window},
                 {"ruled pause", ruled_pause},
                 {"ruled period", ruled_period},
                 {"any event", any_event}};

    verbose = argc > 1;
    for (size_t i = 0; i < n_elements(cases); i++)
        if (argc < 2 || strcmp(argv[1], cases[i].name) == 0) {
            case_name = cases[i].name;
            cases[i].run();
        }
    return done();
}
