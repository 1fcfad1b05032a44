/* A job's search waits in a hold, as slowdown:F leaves no time yet for the next cap: a
 * user's cap comes and goes, another daemon takes over, the held cap turns out too slow.
 * Also, of a job with a cap by name: a user's cap below it comes and goes, and another
 * Underwatt holds a board.
 *
 * Usage: test-waits [CASE]: all without.
 */
#include "tuner/searches-inside.h"
#include "tuner/tuner-table.h"
#include "tuning-scene.h"
#include "verdict.h"

#define BOUND 1.02
static const struct play play = {
    .workload = "resnet50", .boards = "0,1", .goal = "slowdown:1.02", .seconds = 3000};
static const struct play by_name = {
    .workload = "resnet50", .boards = "2,3", .cap = "60%", .seconds = 3000};

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

static void read_state(struct scene *s, struct searches_ask *ret_ask,
                       struct searches_memory *ret)
{
    static struct cap_class cls;
    uw_error err = {""};

    ok(searches_state_read(s->run[0].state, ret_ask, &cls, ret, &err) == 0,
       "its state is read %s", err.text);
}

/* Another daemon takes the job over, 5 s ago. */
static void take_over(struct scene *s)
{
    static struct searches_memory memory;
    struct searches_ask ask;
    uw_error err = {""};

    searches_free(take(s->tunings));
    int r = new_tunings(s, &err);
    read_state(s, &ask, &memory);
    ask.state = s->run[0].state;
    ok(r == 0 && searches_begin(s->tunings, &s->run[0].entry, &ask, &err) == 0 &&
           hand_over(s, &s->run[0], &err) == 0,
       "another daemon takes the job over %s", err.text);
    pass(s, 5);
}

static void daemon_goes(void)
{
    struct scene s;
    bool low = false, moved = false;

    if (!begin_waiting(&s))
        return;
    struct tuner_report before = *report_of(&s, 0);
    take_over(&s);
    ok(in_force(&s, 0) == before.held_mw && report_of(&s, 0)->searching,
       "the cap is held at once, and the search is not over: %.0f W",
       w_of_mw(before.held_mw));
    for (int i = 0; i < 300; i++) {
        pass(&s, 1);
        low |= in_force(&s, 0) < 240000; /* what one window of the search may take */
        moved |= in_force(&s, 0) < before.held_mw;
    }
    const struct tuner_report *t = report_of(&s, 0);
    ok(moved && t->holding && !low,
       "it goes on when there is time: %u windows, %u before, %.0f W", t->windows,
       before.windows, w_of_mw(t->held_mw));
    scene_close(&s);
}

/* Another daemon takes over when the search has used its windows: it is over. */
static void windows_used(void)
{
    static struct searches_memory memory;
    auto_(mem_free) char *text = NULL;
    struct searches_ask ask;
    struct scene s;

    if (!begin_waiting(&s))
        return;
    read_state(&s, &ask, &memory);
    memory.cap[memory.known.n_caps] = memory.cap[0];
    memory.cap[memory.known.n_caps++].cap_mw = 280000;
    for (size_t i = 0; i < memory.known.n_caps; i++)
        memory.cap[i].mean.windows = 4;
    ok(memory.known.n_caps >= 6 && searches_state_write(&ask, &memory, &text, NULL) == 0,
       "%zu caps with 4 windows each are kept", memory.known.n_caps);
    (void)snprintf(s.run[0].state, sizeof s.run[0].state, "%s", text ? text : "");
    take_over(&s);
    ok(!report_of(&s, 0)->searching, "the search has no windows left and is over");
    scene_close(&s);
}

/* The wait shows that the held cap takes too long: the search waits at the original. */
static void too_slow(void)
{
    static struct searches_memory memory;
    struct searches_ask ask;
    struct scene s;

    if (!begin_waiting(&s))
        return;
    struct search *search = searches_find(s.tunings, s.run[0].entry.id)->tuner->search;
    struct search_window known[SEARCH_WINDOWS_MAX];
    size_t n = search_known(search, known, n_elements(known) - 1);
    uint32_t held = report_of(&s, 0)->held_mw;
    known[n] = known[0];
    known[n++].cap_mw = 295000;
    for (size_t i = 1; i < n; i++) { /* each cap below the original */
        known[i].time_s = 1.5 * known[0].time_s;
        known[i].time_rse = known[i].energy_rse = 1e-5;
        (void)search_on_window(search, &known[i], NULL);
    }
    for (int i = 0; i < 30 && in_force(&s, 0) < 300000; i++)
        pass(&s, 1);
    pass(&s, 1);
    const struct tuner_report *t = report_of(&s, 0);
    read_state(&s, &ask, &memory);
    ok(in_force(&s, 0) == 300000 && !t->holding && memory.held_mw == 0,
       "… %.0f W is held no more, also for the next daemon: %.0f W", w_of_mw(held),
       w_of_mw(memory.held_mw));
    scene_close(&s);
}

static uint64_t put_named(struct scene *s, uint32_t mw)
{
    struct claim claim = {.kind = CLAIM_NAMED,
                          .mw = mw,
                          .until_ns = CLAIM_FOREVER,
                          .job = 1, /* hers, too */
                          .who = "user berta, process 12.345"};
    uint64_t id = 0;

    (void)caps_claim(s->caps, 3, &claim, &id, NULL);
    ok(id > 0, "another's claim of %.0f W", w_of_mw(mw));
    return id;
}

static const char *state_of(struct scene *s)
{
    static struct searches_view v;

    (void)searches_look(s->tunings, 1, &v);
    return v.state;
}

static void lower_than_named(void)
{
    static const char begins[] = "1: another claim is lower than the cap of 180 W: the "
                                 "limit goes to 160 W\n";
    static const char ends[] =
        "1: no other claim is lower than the cap of 180 W any more\n";
    struct scene s;

    if (!scene_begin(&s, &by_name))
        return;
    pass(&s, 500);
    uint64_t high = put_named(&s, 190000);
    pass(&s, 2);
    is_str(state_of(&s), "holds 180 W", "a claim above the cap changes nothing");
    uint64_t low = put_named(&s, 160000);
    pass(&s, 2);
    ok(strstr(state_of(&s), "; another claim is lower: 160 W by user berta"),
       "a lower one: %s", state_of(&s));
    pass(&s, 100);
    is_str(state_of(&s), "holds 180 W; another claim is lower: 160 W by user berta",
           "… in force");
    ok(in_force(&s, 3) == 160000 && in_force(&s, 2) == 180000, "… on its board");
    const char *at = strstr(s.said, begins);
    ok(at && !strstr(at + 1, begins) && !strstr(s.said, ends), "it is noted once: %s",
       s.said);
    (void)caps_withdraw(s.caps, 3, low, NULL);
    pass(&s, 100);
    is_str(state_of(&s), "holds 180 W", "it is withdrawn");
    at = strstr(s.said, ends);
    ok(at && !strstr(at + 1, ends) && strstr(s.said, begins) < at, "… noted once: %s",
       s.said);
    (void)caps_withdraw(s.caps, 3, high, NULL);
    scene_close(&s);
}

/* What the actuator tells of board 3: another Underwatt holds it at mw; 0: nobody does.
 */
static void hold_other(struct scene *s, uint32_t mw)
{
    struct actuator_reply reply = {
        .result = mw ? ACTUATOR_TAKEN : ACTUATOR_DONE, .pid = 12, .original_mw = 300000};
    struct sim_fault f;
    char text[32];

    (void)snprintf(text, sizeof text, "3 limit %.0fW", mw ? w_of_mw(mw) : 300);
    if (sim_fault_parse(text, &f, NULL) < 0 ||
        virtual_world_fault(s->world, &f, NULL) < 0)
        ok(false, "%s", text);
    (void)snprintf(reply.uuid, sizeof reply.uuid, "%s",
                   board_view(boards_at(s->boards, 3))->info->uuid);
    (void)snprintf(reply.text, sizeof reply.text, "%s",
                   mw ? "held by a test (pid 12, uid 0), original 300 W" : "");
    caps_on_actuator(s->caps, ACTUATOR_EVENT_BOARD, &reply);
}

#define WAITS "waits for its boards; GPU 3 is held by a test (pid 12, uid 0)"

/* No reference is measured meanwhile, and a window under way is dropped. */
static void held_by_another(void)
{
    static const char noted[] = "GPU 3: held by a test (pid 12, uid 0), original 300 W: "
                                "the job is measured when the board is free\n";
    struct scene s;

    if (!scene_begin(&s, &by_name))
        return;
    pass(&s, 5);
    hold_other(&s, 240000);
    pass(&s, 100);
    const struct tuner_report *t = report_of(&s, 0);
    is_str(state_of(&s), WAITS, "its board is held by another Underwatt");
    ok(strstr(s.said, noted) && t->windows == 0 && !t->reference_mw,
       "… nothing is measured: %u windows, %s", t->windows, s.said);
    hold_other(&s, 0);
    pass(&s, 20);
    is_str(state_of(&s), "measures at 300 W", "the board is free");
    unsigned windows = report_of(&s, 0)->windows;
    hold_other(&s, 300000);
    pass(&s, 20);
    t = report_of(&s, 0);
    is_str(state_of(&s), WAITS, "it is held again, and still at its original");
    ok(t->windows == windows && windows == 1, "… the window under way is dropped: %u, %u",
       windows, t->windows);
    hold_other(&s, 240000);
    pass(&s, 700);
    ok(strstr(state_of(&s), "not capped: GPU 3: held by a test") &&
           report_of(&s, 0)->windows == windows,
       "… for ten minutes: %s", state_of(&s));
    hold_other(&s, 0);
    pass(&s, 500);
    t = report_of(&s, 0);
    ok(t->reference_mw == 300000 && t->account->reference.windows == 2,
       "the reference is that of the original: %.0f W, %u windows",
       w_of_mw(t->reference_mw), t->account->reference.windows);
    is_str(state_of(&s), "holds 180 W", "… and the cap is held");
    scene_close(&s);
}

/* A claim that is decided and not written is no limit of a window. */
static void dry_run(void)
{
    const struct caps_conf conf = {.cls = CAP_CLASS_DEFAULT, .dry_run = true};
    struct scene s;

    if (!scene_begin(&s, &by_name))
        return;
    pass(&s, 5);
    caps_configure(s.caps, &conf);
    (void)put_named(&s, 240000);
    pass(&s, 100);
    const struct tuner_report *t = report_of(&s, 0);
    ok(t->reference_mw == 300000, "the reference is at the limit in force: %.0f W, %s",
       w_of_mw(t->reference_mw), state_of(&s));
    scene_close(&s);
}

int main(int argc, char **argv)
{
    static const struct scene_case cases[] = {
        {"claim", claim_in_wait},  {"search", claim_in_search},
        {"daemon", daemon_goes},   {"windows", windows_used},
        {"slow", too_slow},        {"named", lower_than_named},
        {"held", held_by_another}, {"dry", dry_run},
    };

    return play_cases(cases, n_elements(cases), argc, argv);
}
