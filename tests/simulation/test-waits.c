/* Others move the boards of a job while its search waits in a hold, as slowdown:F leaves
 * no time yet for the next cap: a user's cap comes and goes, another daemon takes over.
 *
 * Usage: test-waits [CASE]: all without.
 */
#include "tuner/searches-inside.h"
#include "tuning-scene.h"
#include "verdict.h"

#define BOUND 1.02
static const struct play play = {
    .workload = "resnet50", .boards = "0,1", .goal = "slowdown:1.02", .seconds = 3000};

static bool waits(struct scene *s)
{
    return report_of(s, 0)->holding && report_of(s, 0)->searching;
}

static double slowdown_at(uint32_t mw)
{
    const struct goal goal = {.kind = GOAL_SLOWDOWN, .param = BOUND};

    return judge("v100", play.workload, &goal, mw).slowdown;
}

/* Until the search waits for time. */
static bool begin_waiting(struct scene *s)
{
    if (!scene_begin(s, &play))
        return false;
    for (int i = 0; i < 60 && !waits(s); i++)
        pass(s, 5);
    pass(s, 5);
    const struct tuner_report *t = report_of(s, 0);
    ok(waits(s) && in_force(s, 0) == t->held_mw &&
           slowdown_at(t->held_mw) <= BOUND * 1.002,
       "%.0f W is held: %s", w_of_mw(t->held_mw), t->why);
    return true;
}

/* 180 W for two minutes, which takes 1.2 times as long. */
static void user_cap(struct scene *s, const char *when)
{
    struct claim claim = {.kind = CLAIM_HARD, .mw = 180000, .until_ns = CLAIM_FOREVER};
    uint64_t id = 0;
    uw_error err = {""};
    bool above = false;

    int r = caps_claim(s->caps, 0, &claim, &id, &err);
    pass(s, 60);
    for (int i = 0; i < 60; i++) {
        pass(s, 1);
        above |= in_force(s, 0) > claim.mw || in_force(s, 1) > claim.mw;
    }
    ok(r == 0 && !above, "%s: a user's cap of 180 W is in force %s", when, err.text);
    (void)caps_withdraw(s->caps, 0, id, NULL);
    pass(s, 30);
    uint32_t low = in_force(s, 0);
    for (int i = 0; i < 300; i++) {
        pass(s, 1);
        low = in_force(s, 0) < low ? in_force(s, 0) : low;
    }
    ok(slowdown_at(low) <= BOUND * 1.002,
       "… 30 s after its end, and from then on, the bound holds: %.0f W, time x %.4f",
       w_of_mw(low), slowdown_at(low));
    const struct tuner_report *t = report_of(s, 0);
    ok(t->holding && in_force(s, 0) == t->held_mw && in_force(s, 1) == t->held_mw &&
           t->held_mw < 300000 && t->changes == 0 && t->stalls == 0,
       "… a cap is held, and no change of the job was seen: %.0f W", w_of_mw(t->held_mw));
}

static void claim_in_wait(void)
{
    struct scene s;

    if (!begin_waiting(&s))
        return;
    user_cap(&s, "in a wait");
    scene_close(&s);
}

static void claim_in_search(void)
{
    struct scene s;

    if (!scene_begin(&s, &play))
        return;
    pass(&s, 50);
    ok(!report_of(&s, 0)->holding, "the search has no cap yet");
    user_cap(&s, "in a search");
    scene_close(&s);
}

static void daemon_goes(void)
{
    static struct searches_memory memory;
    struct searches_ask ask;
    struct cap_class cls;
    uw_error err = {""};
    struct scene s;
    bool low = false;

    if (!begin_waiting(&s))
        return;
    struct tuner_report before = *report_of(&s, 0);
    searches_free(take(s.tunings));
    ok(new_tunings(&s, &err) == 0 &&
           searches_state_read(s.run[0].state, &ask, &cls, &memory, &err) == 0,
       "another daemon reads what was kept %s", err.text);
    ask.state = s.run[0].state;
    ok(searches_begin(s.tunings, &s.run[0].entry, &ask, &err) == 0 &&
           hand_over(&s, &s.run[0], &err) == 0,
       "and takes the job over %s", err.text);
    pass(&s, 5);
    ok(in_force(&s, 0) == before.held_mw && report_of(&s, 0)->searching,
       "the cap is held at once, and the search is not over: %.0f W",
       w_of_mw(before.held_mw));
    for (int i = 0; i < 300; i++) {
        pass(&s, 1);
        low |= in_force(&s, 0) < 240000; /* what one window of the search may take */
    }
    const struct tuner_report *t = report_of(&s, 0);
    ok(t->n_caps > before.n_caps && t->holding && !low,
       "it goes on when there is time: %zu caps, %zu before, %.0f W", t->n_caps,
       before.n_caps, w_of_mw(t->held_mw));
    scene_close(&s);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {
        {"claim", claim_in_wait},
        {"search", claim_in_search},
        {"daemon", daemon_goes},
    };
    struct statfs fs;

    verbose = argc > 1;
    if (statfs("/dev/shm", &fs) < 0 || fs.f_type != 0x01021994)
        return skip_all("/dev/shm is no tmpfs");
    for (size_t i = 0; i < n_elements(cases); i++)
        if (argc == 1 || strcmp(argv[1], cases[i].name) == 0)
            cases[i].run();
    return done();
}
