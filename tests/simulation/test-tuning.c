/* The daemon's searches in virtual time: jobs, pages, samplers, claims, ramp, actuator
 * and meters as they are, on eight simulated boards.
 *
 * Usage: test-tuning [CASE]: all without.
 */
#include <errno.h>
#include <math.h>

#include "tuner/searches-inside.h"
#include "tuning-scene.h"
#include "verdict.h"

static size_t claims_on(const struct scene *s, size_t board)
{
    struct caps_view v;
    caps_look(s->caps, board, &v);
    return v.claims->n;
}

static uint64_t put_claim(struct scene *s, size_t board, enum claim_kind kind,
                          uint32_t mw)
{
    struct claim claim = {.kind = kind, .mw = mw, .until_ns = CLAIM_FOREVER};
    uint64_t id = 0;
    uw_error err = {""};

    (void)snprintf(claim.who, sizeof claim.who, "budget");
    int r = caps_claim(s->caps, board, &claim, &id, &err);
    ok(r == 0, "a claim of %.0f W on board %zu %s", w_of_mw(mw), board, err.text);
    return id;
}

/* ---- several at once ---- */

static const struct play three[JOBS] = {
    {.workload = "resnet50", .boards = "0,1", .goal = "edp", .seconds = 900},
    {.workload = "vgg19", .boards = "2,3,4,5", .goal = "energy", .seconds = 900},
    {.workload = "alexnet", .boards = "6,7", .goal = "slowdown:1.1", .seconds = 900},
};

static uint32_t alone(const struct play *p, double *ret_saved)
{
    struct scene s;
    uint32_t held = 0;

    if (scene_open(&s) && begin(&s, p)) {
        pass(&s, 850);
        held = report_of(&s, 0)->holding ? report_of(&s, 0)->held_mw : 0;
        *ret_saved = report_of(&s, 0)->saved.fraction;
    }
    scene_close(&s);
    return held;
}

/* Whether a cap is within 1 % of the true optimum, and within the bound if there is one.
 * The curve is so flat there that caps some percent apart are equally good.
 */
static bool within_goal(const struct play *p, uint32_t mw)
{
    struct goal goal;

    if (mw == 0 || goal_parse(p->goal, &goal, NULL) < 0)
        return false;
    struct verdict v = judge("v100", p->workload, &goal, mw);
    printf("# %s: %.0f W, optimum %.0f W, regret %.2f %%, time x %.4f\n", p->goal,
           w_of_mw(mw), w_of_mw(v.oracle_mw), 100 * v.regret, v.slowdown);
    return v.regret <= 0.01 &&
           (goal.kind != GOAL_SLOWDOWN || v.slowdown <= goal.param * 1.002);
}

static void several(void)
{
    struct searches_view view;
    uint32_t held[JOBS] = {0}, own;
    double saved[JOBS] = {0}, saved_alone = 0;
    struct scene s;

    if (!scene_open(&s)) {
        scene_close(&s);
        return;
    }
    for (size_t i = 0; i < JOBS; i++)
        (void)begin(&s, &three[i]);
    pass(&s, 850);
    for (size_t i = 0; i < JOBS; i++) {
        const struct tuner_report *r = report_of(&s, i);
        held[i] = r->holding ? r->held_mw : 0;
        saved[i] = r->saved.fraction;
        ok(searches_look(s.tunings, i + 1, &view) && view.on && view.cap_mw == held[i] &&
               strcmp(view.goal, three[i].goal) == 0 && view.saved.known &&
               strstr(view.state, "holds"),
           "job %zu is told about: %s, %s, %.0f W, saved %.1f +- %.1f %%", i + 1,
           view.goal, view.state, w_of_mw(view.cap_mw), 100 * view.saved.fraction,
           100 * view.saved.half);
        ok(s.run[i].saves > 1 && s.run[i].saves < 60, "… its state was kept %u times",
           s.run[i].saves);
    }
    for (size_t b = 0; b < BOARDS; b++) {
        size_t job = b < 2 ? 0 : b < 6 ? 1 : 2;
        ok(in_force(&s, b) == held[job], "board %zu is at its job's %.0f W", b,
           w_of_mw(held[job]));
    }
    pass(&s, 600);
    for (size_t i = 0; i < JOBS; i++)
        ok(s.run[i].ended_s > 0 && searches_look(s.tunings, i + 1, &view) &&
               strcmp(view.state, "over") == 0 && view.saved.known,
           "job %zu is over, what it saved is still told: %.1f %%", i + 1,
           100 * view.saved.fraction);
    for (size_t b = 0; b < BOARDS; b++)
        ok(in_force(&s, b) == 300000 && claims_on(&s, b) == 0,
           "board %zu has its original back, and no claim", b);
    scene_close(&s);
    for (size_t i = 0; i < JOBS && !sanitized(); i++) {
        own = alone(&three[i], &saved_alone);
        ok(within_goal(&three[i], held[i]) && within_goal(&three[i], own),
           "job %zu holds what its goal asks for, beside others and alone: %.0f W, %.0f "
           "W (saved %.1f, %.1f %%)",
           i + 1, w_of_mw(held[i]), w_of_mw(own), 100 * saved[i], 100 * saved_alone);
    }
}

/* ---- others' claims ---- */

static void budgets(void)
{
    const struct play play = {
        .workload = "vgg19", .boards = "0,1", .goal = "edp", .seconds = 2400};
    struct scene s;

    if (!scene_begin(&s, &play))
        return;
    uint64_t hard = put_claim(&s, 1, CLAIM_HARD, 220000);
    wait_for_hold(&s, 0);
    const struct tuner_report *r = report_of(&s, 0);
    ok(r->holding && r->reference_mw == 220000 && r->held_mw <= 220000,
       "a budget of 220 W: the reference is %.0f W, %.0f W is held",
       w_of_mw(r->reference_mw), w_of_mw(r->held_mw));
    bool above = false;
    for (size_t i = 0; i < r->n_caps; i++)
        above |= r->cap[i].cap_mw > 220000;
    ok(!above, "… and no window counts as one above it");

    uint32_t held = r->held_mw;
    uint64_t lower = put_claim(&s, 0, CLAIM_HARD, 160000);
    pass(&s, 60);
    r = report_of(&s, 0);
    ok(in_force(&s, 0) == 160000 && r->holding && r->held_mw == 160000,
       "a lower budget is held instead: %.0f W, \"%s\"", w_of_mw(r->held_mw), r->why);
    ok(in_force(&s, 1) == 160000, "… on all boards of the job");
    ok(caps_withdraw(s.caps, 0, lower, NULL) == 0, "(it goes)");
    pass(&s, 60);
    r = report_of(&s, 0);
    ok(r->holding && r->held_mw == held && in_force(&s, 0) == held,
       "the best cap is held again: %.0f W", w_of_mw(r->held_mw));
    ok(caps_withdraw(s.caps, 1, hard, NULL) == 0, "(the first one goes, too)");
    pass(&s, 120);
    r = report_of(&s, 0);
    ok(r->changes == 0 && r->stalls == 0 && r->saved.known,
       "none of this is taken for a change of the job");
    scene_close(&s);
}

static double edp_of(const char *workload, uint32_t mw)
{
    const struct plant_board *b = plant_board_find("v100");
    struct plant_steady step = plant_steady_step(b, plant_workload_find(b, workload), mw);
    return step.energy_j * step.time_s;
}

static double best_edp(const char *workload)
{
    double best = INFINITY;

    for (uint32_t mw = 150000; mw <= 300000; mw += 1000)
        best = fmin(best, edp_of(workload, mw));
    return best;
}

/* A person's claim while the search measures: what was in force counts. */
static void meddling(void)
{
    const struct play play = {
        .workload = "resnet50", .boards = "0", .goal = "edp", .seconds = 1500};
    struct scene s;

    if (!scene_begin(&s, &play))
        return;
    for (int i = 0; i < 40; i++) {
        uint64_t id;
        struct claim claim = {
            .kind = CLAIM_HARD, .mw = 170000, .until_ns = CLAIM_FOREVER};
        pass(&s, 7);
        if (caps_claim(s.caps, 0, &claim, &id, NULL) == 0) {
            pass(&s, 2);
            (void)caps_withdraw(s.caps, 0, id, NULL);
        }
    }
    wait_for_hold(&s, 0);
    const struct tuner_report *r = report_of(&s, 0);
    double worse = edp_of(play.workload, r->held_mw) / best_edp(play.workload) - 1;
    ok(r->holding && worse <= 0.01,
       "budgets that come and go every 9 s: %.0f W, %.2f %% over the best",
       w_of_mw(r->held_mw), 100 * worse);
    scene_close(&s);
}

/* ---- the reasons of claims ---- */

/* The last cap tried is held: its claim stays, and says so. */
static void trial_is_held(void)
{
    const struct play play = {
        .workload = "resnet50", .boards = "0,1", .goal = "slowdown:1.1", .seconds = 900};
    struct caps_view v;
    struct scene s;
    char begin[32];

    if (!scene_begin(&s, &play))
        return;
    wait_for_hold(&s, 0);
    (void)snprintf(begin, sizeof begin,
                   "holds %.0f W: ", w_of_mw(report_of(&s, 0)->held_mw));
    for (size_t b = 0; b < 2; b++) {
        caps_look(s.caps, b, &v);
        ok(v.claims->n == 1 && v.claims->claim[0].mw == report_of(&s, 0)->held_mw &&
               strncmp(v.claims->claim[0].why, begin, strlen(begin)) == 0,
           "the claim on board %zu: %s", b, v.claims->claim[0].why);
    }
    scene_close(&s);
}

/* ---- a cap by name ---- */

static void named(void)
{
    const struct play play = {
        .workload = "resnet50", .boards = "2,3", .cap = "60%", .seconds = 900};
    struct caps_view v;
    struct scene s;

    if (!scene_begin(&s, &play))
        return;
    wait_for_hold(&s, 0);
    caps_look(s.caps, 2, &v);
    ok(v.claims->n == 1 && v.claims->claim[0].kind == CLAIM_NAMED &&
           !v.claims->claim[0].way.own && v.claims->claim[0].mw == 180000 &&
           v.claims->claim[0].uid == 1000 && v.claims->claim[0].job == 1,
       "a claim by name, which caps walk: %s", v.claims->claim[0].who);
    ok(v.ramping && v.enforced_mw > 180000, "… gradually: at %.0f W",
       w_of_mw(v.enforced_mw));
    const struct tuner_report *r = report_of(&s, 0);
    ok(r->holding && !r->reached && r->lowest_mw == v.enforced_mw,
       "… which the report has as the lowest limit so far: %.0f W",
       w_of_mw(r->lowest_mw));
    unsigned saves = s.run[0].saves;
    pass(&s, 40);
    caps_look(s.caps, 2, &v);
    ok(v.ramping && s.run[0].saves > saves,
       "what it saves on the way is kept for another daemon: %u times, at %.0f W",
       s.run[0].saves - saves, w_of_mw(v.enforced_mw));
    pass(&s, 360);
    r = report_of(&s, 0);
    ok(in_force(&s, 2) == 180000 && in_force(&s, 3) == 180000 && r->reached,
       "it is in force");
    ok(r->holding && r->held_mw == 180000 && r->saved.known && r->saved.fraction > 0.05 &&
           r->reference_mw == 300000,
       "what it saves is told: %.1f %%", 100 * r->saved.fraction);
    ok(r->demand_w > 150 && r->demand_w < 300 && r->peak_w >= r->demand_w,
       "demand %.0f W and peak %.0f W are known", r->demand_w, r->peak_w);
    scene_close(&s);
}

/* A driver that takes seconds for a limit: steps of before it is there are none under it.
 */
static void slow_driver(void)
{
    const struct play play = {
        .workload = "resnet50", .boards = "2", .cap = "60%", .seconds = 300};
    struct scene s;

    set_latency_ns = 2500 * NS_PER_MS;
    if (scene_open(&s) && begin(&s, &play)) {
        wait_for_hold(&s, 0);
        for (int i = 0; i < 60 && s.first_waits < 0; i++)
            pass(&s, 1);
        ok(s.first_waits == 1, "the first cap comes into force: its stay begins");
        pass(&s, 250);
        ok(in_force(&s, 2) == 180000, "and ends: %.0f W", w_of_mw(in_force(&s, 2)));
    }
    scene_close(&s);
    set_latency_ns = 0;
}

static void refused(void)
{
    struct job_entry job = {.id = 1, .boards = 1, .uid = 1000};
    struct searches_ask ask = {.cap = {.mw = 40000}};
    uw_error err = {""};
    struct scene s;

    if (scene_open(&s)) {
        ok(searches_begin(s.tunings, &job, &ask, &err) == -ERANGE &&
               strstr(err.text, "40 W is outside 150..300 W"),
           "a cap out of range is refused: %s", err.text);
        ok(!report_of_job(&s, 1) && claims_on(&s, 0) == 0, "… nothing stays");
        ask.cap.mw = 200000;
        job.boards = 0;
        ok(searches_begin(s.tunings, &job, &ask, &err) == 0 &&
               isnan(report_of_job(&s, 1)->busy),
           "a job without boards: how busy they are is unknown, not 0 %s", err.text);
        searches_forget(s.tunings, 1);
        ok(searches_page(s.tunings, 1, 0, &err) == -ENOENT, "no page for no job: %s",
           err.text);
    }
    scene_close(&s);
}

/* ---- jobs that tell nothing, lose boards, or outlive a daemon ---- */

static void silent(void)
{
    const struct play by_goal = {.workload = "resnet50",
                                 .boards = "0",
                                 .goal = "edp",
                                 .seconds = 900,
                                 .mute = true};
    const struct play too_fast = {.workload = "alexnet",
                                  .boards = "2",
                                  .goal = "edp",
                                  .seconds = 900,
                                  .mute = true};
    const struct play by_name = {.workload = "resnet50",
                                 .boards = "1",
                                 .cap = "200 W",
                                 .seconds = 300,
                                 .mute = true};
    struct searches_view view;
    struct scene s;

    if (scene_open(&s) && begin(&s, &by_goal) && begin(&s, &by_name) &&
        begin(&s, &too_fast)) {
        pass(&s, 36);
        ok(claims_on(&s, 0) == 0 && in_force(&s, 0) == 300000,
           "a job that tells of no steps is not capped at first");
        ok(searches_look(s.tunings, 1, &view) && strstr(view.state, "no steps"),
           "… and that is told: %s", view.state);
        pass(&s, 164);
        ok(in_force(&s, 1) == 200000, "a cap by name comes all the same");
        ok(in_force(&s, 2) >= 240000 && in_force(&s, 2) < 300000 &&
               searches_look(s.tunings, 3, &view) && strstr(view.state, "safe cap"),
           "where no period is sure: %s", view.state);
        const struct tuner_report *safe = report_of(&s, 2);
        ok(safe->by == TUNER_BY_NOTHING && safe->unknown[0], "… for: %s", safe->unknown);
        wait_for_hold(&s, 0);
        pass(&s, 2);
        const struct tuner_report *r = report_of(&s, 0);
        ok(r->by == TUNER_BY_PERIOD && r->confidence >= PROGRESS_PERIOD_SURE,
           "the period stands for its steps: %.4g s, sure to %.2f", r->period_s,
           r->confidence);
        is_near(r->held_mw, 174000, 12000, "… and finds the cap: %.0f W",
                w_of_mw(r->held_mw));
        ok((strstr(s.run[0].state, "\"by_period\":true") ||
            strstr(s.run[0].state, "\"by_period\": true")),
           "… which is kept with its state");
        ok(hand_over(&s, &s.run[0], NULL) == 0, "now it tells of its steps");
        pass(&s, 60);
        ok(report_of(&s, 0)->by == TUNER_BY_STEPS && report_of(&s, 0)->n_regimes == 2,
           "they win, in a regime of their own");
    }
    scene_close(&s);
}

/* Until it holds, and what it has saved is known. */
static double hold_first(struct scene *s)
{
    wait_for_hold(s, 0);
    for (int i = 0; i < 30 && !report_of(s, 0)->saved.known; i++)
        pass(s, 10);
    return report_of(s, 0)->saved.energy_j;
}

static void boards_change(void)
{
    const struct play play = {
        .workload = "resnet50", .boards = "0,1", .goal = "edp", .seconds = 2000};
    struct scene s;

    if (!scene_begin(&s, &play))
        return;
    (void)hold_first(&s);
    struct savings_saved before = report_of(&s, 0)->saved;
    s.run[0].entry.boards = 1;
    (void)searches_on_job(s.tunings, ROSTER_CHANGE, &s.run[0].entry);
    pass(&s, 20);
    ok(claims_on(&s, 1) == 0 && in_force(&s, 1) == 300000,
       "a board that the job has lost gets its original back");
    ok(report_of(&s, 0)->n_regimes == 2 && before.energy_j > 0 &&
           report_of(&s, 0)->saved.energy_j >= 0.98 * before.energy_j,
       "what was saved there is kept: %.0f J, %.0f J", before.energy_j,
       report_of(&s, 0)->saved.energy_j);
    wait_for_hold(&s, 0);
    pass(&s, 60); /* the way down */
    ok(report_of(&s, 0)->holding && in_force(&s, 0) == report_of(&s, 0)->held_mw &&
           in_force(&s, 1) == 300000,
       "the search goes on with what is left: %.0f W",
       w_of_mw(report_of(&s, 0)->held_mw));
    scene_close(&s);
}

/* Somebody else computes on one of two boards: both are let go at once, and what was
 * found holds again when he has gone.
 */
static void barred(void)
{
    const struct play play = {
        .workload = "resnet50", .boards = "0,1", .goal = "edp", .seconds = 2000};
    struct searches_view view;
    struct scene s;

    if (!scene_begin(&s, &play))
        return;
    wait_for_hold(&s, 0);
    uint32_t held = report_of(&s, 0)->held_mw;
    unsigned caps = (unsigned)report_of(&s, 0)->n_caps;
    searches_bar(s.tunings, s.run[0].entry.id, 1, true);
    ok(claims_on(&s, 0) == 0 && claims_on(&s, 1) == 0,
       "no claim of a search stands where its user has lost the right");
    pass(&s, 60);
    ok(in_force(&s, 0) == 300000 && in_force(&s, 1) == 300000 && claims_on(&s, 1) == 0,
       "the originals are back, and stay");
    ok(searches_look(s.tunings, s.run[0].entry.id, &view) &&
           strcmp(view.state, "not capped: another user computes on GPU 1") == 0,
       "%s", view.state);
    searches_bar(s.tunings, s.run[0].entry.id, 1, false);
    pass(&s, 60);
    wait_for_hold(&s, 0);
    ok(report_of(&s, 0)->held_mw == held && in_force(&s, 1) == held &&
           report_of(&s, 0)->n_caps >= caps,
       "he has gone: %.0f W again, with what was measured (%zu caps, %u before)",
       w_of_mw(held), report_of(&s, 0)->n_caps, caps);
    scene_close(&s);
}

/* mute: it goes by the period of its boards' power. */
static void restart_of(bool mute)
{
    const struct play play = {.workload = "resnet50",
                              .boards = "0,1",
                              .goal = "edp",
                              .seconds = 2000,
                              .mute = mute};
    struct searches_ask ask;
    struct cap_class cls;
    static struct searches_memory memory;
    uw_error err = {""};
    struct scene s;

    if (!scene_begin(&s, &play))
        return;
    (void)hold_first(&s);
    pass(&s, 100);
    struct tuner_report before = *report_of(&s, 0);
    searches_free(take(s.tunings));
    ok(claims_on(&s, 0) == 0, "(a daemon goes, and its claims)");
    ok(new_tunings(&s, &err) == 0 &&
           searches_state_read(s.run[0].state, &ask, &cls, &memory, &err) == 0 &&
           ask.search && ask.goal.kind == GOAL_EDP,
       "another reads what was kept %s", err.text);
    ask.state = s.run[0].state;
    ok(searches_begin(s.tunings, &s.run[0].entry, &ask, &err) == 0,
       "and takes the job over %s", err.text);
    pass(&s, 3);
    ok(in_force(&s, 0) == before.held_mw && in_force(&s, 1) == before.held_mw,
       "the cap found is held at once, without a page: %.0f W", w_of_mw(before.held_mw));
    ok(report_of(&s, 0)->saved.known &&
           report_of(&s, 0)->saved.energy_j > 0.7 * before.saved.energy_j,
       "what was saved is kept: %.0f J of %.0f J", report_of(&s, 0)->saved.energy_j,
       before.saved.energy_j);
    if (!mute)
        ok(hand_over(&s, &s.run[0], &err) == 0, "the client hands the page over again");
    bool moved = false;
    for (int i = 0; i < 60; i++) {
        pass(&s, 5);
        moved |= in_force(&s, 0) != before.held_mw;
    }
    const struct tuner_report *r = report_of(&s, 0);
    ok(!mute || (!moved && r->by == TUNER_BY_PERIOD),
       "a job without steps keeps its cap while its period is looked for");
    ok(r->holding && fabs((double)r->held_mw / before.held_mw - 1) <= 0.02 &&
           r->windows > before.windows && r->saved.energy_j > before.saved.energy_j,
       "it goes on from what is known: %.0f W, %u windows after %u, %.0f J",
       w_of_mw(r->held_mw), r->windows, before.windows, r->saved.energy_j);
    scene_close(&s);
}

static void restart(void)
{
    restart_of(false);
    restart_of(true);
}

/* Until it holds again, the way down and all; what it had saved before is kept. */
static const struct tuner_report *hold_again(struct scene *s, double saved_j)
{
    wait_for_hold(s, 0);
    pass(s, 60);
    const struct tuner_report *t = report_of(s, 0);
    ok(t->saved.known && saved_j > 0 && t->saved.energy_j >= 0.98 * saved_j,
       "what was saved is kept: %.0f J, %.0f J", saved_j, t->saved.energy_j);
    return t;
}

static void others_write(void)
{
    const struct play play = {
        .workload = "resnet50", .boards = "0,1", .goal = "edp", .seconds = 3000};
    struct sim_fault fault;
    uw_error err = {""};
    struct scene s;

    if (!scene_begin(&s, &play))
        return;
    (void)hold_first(&s);
    int r = sim_fault_parse("0 limit 210W", &fault, &err);
    if (r >= 0)
        r = virtual_world_fault(s.world, &fault, &err);
    ok(r >= 0, "(somebody else sets board 0 to 210 W) %s", err.text);
    pass(&s, 60);
    ok(in_force(&s, 0) == 210000, "theirs stays: %.0f W", w_of_mw(in_force(&s, 0)));
    ok(in_force(&s, 1) == 300000 && claims_on(&s, 1) == 0,
       "the job's other board has its original back");
    ok(report_of(&s, 0)->ended[0], "and the job says why: %s", report_of(&s, 0)->ended);
    double saved_j = report_of(&s, 0)->saved.energy_j;
    pass(&s, 500);
    ok(claims_on(&s, 0) == 0 && claims_on(&s, 1) == 0,
       "nothing is asked for ten minutes");
    pass(&s, 100);
    const struct tuner_report *t = hold_again(&s, saved_j);
    ok(t->holding && !t->ended[0] && in_force(&s, 0) == t->held_mw &&
           t->held_mw <= 210000,
       "then under what they left: %.0f W %s", w_of_mw(t->held_mw), t->ended);
    scene_close(&s);
}

/* A board of the job is released, as for a reset, and taken back. */
static void released(void)
{
    const struct play play = {
        .workload = "resnet50", .boards = "0,1", .goal = "edp", .seconds = 3000};
    uw_error err = {""};
    struct scene s;

    if (!scene_begin(&s, &play))
        return;
    double saved_j = hold_first(&s);
    uint32_t held = report_of(&s, 0)->held_mw;
    size_t caps = report_of(&s, 0)->n_caps;
    int r = caps_release(s.caps, 0, 0, NULL, NULL, &err);
    pass(&s, 700);
    ok(r == 0 && in_force(&s, 0) == 300000 && in_force(&s, 1) == 300000 &&
           claims_on(&s, 0) == 0 && claims_on(&s, 1) == 0,
       "a board is released: no caps, for as long as it is %s", err.text);
    r = caps_take_back(s.caps, 0, &err);
    pass(&s, 5);
    ok(r == 0 && in_force(&s, 0) > held, "it is taken back: no leap to %.0f W %s",
       w_of_mw(held), err.text);
    const struct tuner_report *t = hold_again(&s, saved_j);
    ok(t->holding && t->held_mw == held && in_force(&s, 0) == held &&
           in_force(&s, 1) == held && t->n_caps >= caps && t->n_regimes == 1,
       "then %.0f W again, by what was measured before (%zu caps, %zu before) %s",
       w_of_mw(t->held_mw), t->n_caps, caps, t->ended);
    scene_close(&s);
}

static void actuator_goes(void)
{
    const struct play play = {
        .workload = "resnet50", .boards = "0,1", .goal = "edp", .seconds = 1500};
    struct actuator_opts act = {.on_ready = on_ready, .on_event = on_event};
    uw_error err = {""};
    struct scene s;

    if (!scene_begin(&s, &play))
        return;
    wait_for_hold(&s, 0);
    uint32_t held = report_of(&s, 0)->held_mw;
    caps_use_actuator(s.caps, NULL);
    actuator_free(take(s.act));
    pass(&s, 40);
    ok(in_force(&s, 0) == 300000 && !report_of(&s, 0)->ended[0],
       "without an actuator the originals are in force, the search waits");
    act.user = &s;
    int r = actuator_start_virtual(s.loop, trace_backend(), boards_lib(s.boards), &act,
                                   &s.act, &err);
    pass(&s, 200);
    const struct tuner_report *t = report_of(&s, 0);
    ok(r == 0 && t->holding && t->held_mw == held && in_force(&s, 0) == held &&
           in_force(&s, 1) == held,
       "it is back, and so is the cap: %.0f W %s", w_of_mw(t->held_mw), t->ended);
    scene_close(&s);
}

/* A lock of the clock comes to the same here as a cap: it is tried, and not kept. */
static void clocks_gain_nothing(void)
{
    const struct play play = {
        .workload = "resnet50", .boards = "0,1", .goal = "edp", .seconds = 3000};
    struct searches_view view;
    uint32_t locked[2] = {0};
    struct scene s;

    clocks = true;
    looks = -1;
    bool began = scene_begin(&s, &play);
    clocks = false;
    looks = 0;
    if (!began)
        return;
    wait_for_hold(&s, 0);
    uint32_t held = report_of(&s, 0)->held_mw;
    for (int i = 0; i < 2000; i++) {
        pass(&s, 1);
        for (size_t b = 0; b < 2; b++)
            if (virtual_world_locked_mhz(s.world, b))
                locked[b] = virtual_world_locked_mhz(s.world, b);
    }
    ok(locked[0] && locked[0] == locked[1], "both are locked for a while: %u MHz",
       locked[0]);
    const struct tuner_report *t = report_of(&s, 0);
    ok(t->holding && t->held_mw == held && t->lock_mhz == 0 && in_force(&s, 0) == held &&
           in_force(&s, 1) == held && t->changes == 0 && t->stalls == 0,
       "it brings nothing: %.0f W alone, %u changes, %u stalls", w_of_mw(t->held_mw),
       t->changes, t->stalls);
    ok(!virtual_world_locked_mhz(s.world, 0) && !virtual_world_locked_mhz(s.world, 1) &&
           strstr(s.said, "no lock is better"),
       "no lock is left");
    ok(searches_look(s.tunings, s.run[0].entry.id, &view) && strstr(view.state, "holds"),
       "%s", view.state);
    scene_close(&s);
}

/* ---- slack ---- */

/* A pipeline of four stages whose boards wait spinning, and four boards of another kind.
 */
static const struct plant_trait stages[BOARDS] = {
    {1, 1.00, 0.3}, {1, 0.84, 0.3}, {1, 0.92, 0.3}, {1, 0.88, 0.3}};

struct pace {
    double step_s, step_j; /* of the boards 0 to 3 */
    double held_w;
};

/* The next so many seconds as they truly were. */
static struct pace pace_of(struct scene *s, double seconds)
{
    struct step_mark from = searches_steps(s->tunings, 1)->mark, to;
    double energy_j = 0, steps, took_s;

    for (size_t i = 0; i < 4; i++)
        energy_j -= virtual_world_true_j(s->world, i);
    pass(s, seconds);
    for (size_t i = 0; i < 4; i++)
        energy_j += virtual_world_true_j(s->world, i);
    to = searches_steps(s->tunings, 1)->mark;
    if (!steps_between(&from, &to, &steps, &took_s))
        return (struct pace){0};
    return (struct pace){took_s / steps, energy_j / steps * took_s / seconds,
                         w_of_mw(report_of(s, 0)->held_mw)};
}

/* The job's pace with slack or without: first as it is, then after board 1 has become
 * the largest stage.
 */
static void pipeline(const char *goal, double share, bool change, struct pace *ret,
                     uint32_t *ret_mw)
{
    struct play play = {.workload = "vgg19", .boards = "0,1,2,3", .seconds = 5000};
    static const struct plant_trait larger = {1, 1.10, 0.3};
    struct scene s;

    play.goal = goal;
    traits = stages;
    slack = share;
    looks = -1; /* would fall into what is measured here */
    if (scene_open(&s) && begin(&s, &play)) {
        wait_for_hold(&s, 0);
        pass(&s, 600);
        for (size_t i = 0; i < 4; i++)
            ret_mw[i] = in_force(&s, i);
        ret_mw[4] = report_of(&s, 0)->held_mw;
        ret[0] = pace_of(&s, 250);
        if (change) {
            virtual_world_set_trait(s.world, 1, &larger);
            ret[1] = pace_of(&s, 800);
            ret[2] = pace_of(&s, 250);
        }
        ok(report_of(&s, 0)->stalls == 0 && !report_of(&s, 0)->ended[0],
           "%s, %.0f %%: no stall, and caps go on %s", goal, 100 * share,
           report_of(&s, 0)->ended);
        if (share > 0)
            ok(strstr(s.said, "slack: ") && strstr(s.said, "; GPU "),
               "… and says what it does, and for whom");
    }
    scene_close(&s);
    traits = NULL;
    slack = 0;
    looks = 0;
}

static void waits_for_one(void)
{
    static const char *const goals[] = {"edp", "slowdown:1.05"};
    struct pace with[3] = {{0}}, without[3] = {{0}};
    uint32_t mw[5] = {0}, plain[5] = {0};

    if (sanitized()) {
        pipeline(goals[0], 0.01, true, with, mw);
        return;
    }
    for (size_t k = 0; k < n_elements(goals); k++) {
        pipeline(goals[k], 0.01, k == 0, with, mw);
        pipeline(goals[k], 0, k == 0, without, plain);
        double time = with[0].step_s / without[0].step_s;
        double saved = 1 - with[0].step_j / without[0].step_j;
        ok(mw[0] > mw[1] && mw[0] <= mw[4],
           "%s: the largest stage keeps its watts: %.0f, %.0f, %.0f, %.0f W of %.0f W",
           goals[k], w_of_mw(mw[0]), w_of_mw(mw[1]), w_of_mw(mw[2]), w_of_mw(mw[3]),
           w_of_mw(mw[4]));
        ok(plain[0] == plain[1] && plain[0] == plain[4], "… without slack all have one");
        ok(saved >= 0.03, "… energy saved on top: %.1f %%", 100 * saved);
        ok(time <= 1.012, "… at no more than the time allowed: %+.2f %%",
           100 * (time - 1));
        if (k > 0)
            continue;
        /* Each looks for its own cap then: time goes with it at the most. */
        double caps = fmax(1, without[2].held_w / with[2].held_w);
        ok(caps < 1.03, "… about the same cap is held: %g W, %g W", with[2].held_w,
           without[2].held_w);
        ok(with[1].step_s <= 1.02 * caps * without[1].step_s,
           "another stage becomes the largest: the minutes after it %+.2f %%",
           100 * (with[1].step_s / without[1].step_s - 1));
        ok(with[2].step_s <= 1.012 * caps * without[2].step_s &&
               with[2].step_j <= 0.985 * without[2].step_j,
           "… and then %+.2f %% in time, %.1f %% energy saved",
           100 * (with[2].step_s / without[2].step_s - 1),
           100 * (1 - with[2].step_j / without[2].step_j));
    }
}

/* A board of four leaves, another falls off: the others are not kept low for it. */
static void one_leaves(void)
{
    const struct play play = {
        .workload = "vgg19", .boards = "0,1,2,3", .goal = "edp", .seconds = 3000};
    struct scene s;

    traits = stages;
    slack = 0.01;
    if (scene_open(&s) && begin(&s, &play)) {
        wait_for_hold(&s, 0);
        pass(&s, 300);
        ok(in_force(&s, 1) < in_force(&s, 0), "(boards have different caps)");
        s.run[0].entry.boards = 7;
        (void)searches_on_job(s.tunings, ROSTER_CHANGE, &s.run[0].entry);
        pass(&s, 10);
        for (size_t i = 0; i < 4; i++)
            ok(in_force(&s, i) == 300000, "board %zu has its original back: %.0f W", i,
               w_of_mw(in_force(&s, i)));
        wait_for_hold(&s, 0);
        pass(&s, 300);
        ok(in_force(&s, 1) < in_force(&s, 0) && in_force(&s, 3) == 300000,
           "those that are left are looked at anew: %.0f, %.0f, %.0f W",
           w_of_mw(in_force(&s, 0)), w_of_mw(in_force(&s, 1)), w_of_mw(in_force(&s, 2)));
        struct sim_fault fault;
        uw_error err = {""};
        int r = sim_fault_parse("2 lost", &fault, &err);
        if (r >= 0)
            r = virtual_world_fault(s.world, &fault, &err);
        pass(&s, 60);
        ok(r >= 0 && in_force(&s, 0) == 300000 && in_force(&s, 1) == 300000,
           "a board falls off the bus: the others have their originals, %.0f and %.0f W "
           "%s",
           w_of_mw(in_force(&s, 0)), w_of_mw(in_force(&s, 1)), err.text);
        r = sim_fault_parse("2 found", &fault, &err);
        if (r >= 0)
            r = virtual_world_fault(s.world, &fault, &err);
        pass(&s, 150); /* before slack measures at the first caps again */
        ok(r >= 0 && in_force(&s, 0) < 300000 && in_force(&s, 1) < in_force(&s, 0) &&
               in_force(&s, 2) < 300000,
           "it is back, and so are the caps: %.0f, %.0f, %.0f W",
           w_of_mw(in_force(&s, 0)), w_of_mw(in_force(&s, 1)), w_of_mw(in_force(&s, 2)));
    }
    scene_close(&s);
    traits = NULL;
    slack = 0;
}

int main(int argc, char **argv)
{
    static const struct scene_case cases[] = {
        {"several", several},        {"budgets", budgets},
        {"meddling", meddling},      {"named", named},
        {"refused", refused},        {"silent", silent},
        {"boards", boards_change},   {"barred", barred},
        {"restart", restart},        {"others", others_write},
        {"actuator", actuator_goes}, {"slack", waits_for_one},
        {"leaves", one_leaves},      {"slow", slow_driver},
        {"released", released},      {"clocks", clocks_gain_nothing},
        {"reason", trial_is_held},
    };

    return play_cases(cases, n_elements(cases), argc, argv);
}
