/* The daemon's searches in virtual time where what they go by is lost: steps, a period,
 * boards one after the other, looks at the reference.
 *
 * Usage: test-lost [CASE]: all without.
 */
#include "tuning-scene.h"

#include "tuner/searches-inside.h"

/* ---- progress that is lost ---- */

/* Its page cannot be read, or can again. */
static void unreadable(struct run *r, bool yes)
{
    static const char none[8] = "";
    static char was[8];
    int fd = open(progress_page_path(r->page), O_RDWR | O_CLOEXEC);

    bool done =
        yes ? pread(fd, was, sizeof was, 0) == 8 && pwrite(fd, none, sizeof none, 0) == 8
            : pwrite(fd, was, sizeof was, 0) == 8;
    ok(fd >= 0 && done, "(the page %s)", yes ? "cannot be read" : "is whole again");
    (void)close(fd);
}

/* Mid-search, at a cap that only looks: a bound is not held blind. */
static void lost_steps(void)
{
    const struct play play = {
        .workload = "resnet50", .boards = "0", .goal = "slowdown:1.2", .seconds = 3000};
    struct searches_view view;
    struct scene s;

    if (!scene_begin(&s, &play))
        return;
    pass(&s, 60);
    for (int i = 0; i < 120 && in_force(&s, 0) > 200000; i++)
        pass(&s, 1);
    ok(in_force(&s, 0) <= 200000 && !report_of(&s, 0)->holding, "(a look at %.0f W)",
       w_of_mw(in_force(&s, 0)));
    unreadable(&s.run[0], true);
    pass(&s, 130);
    (void)searches_look(s.tunings, 1, &view);
    ok(in_force(&s, 0) == 300000 &&
           strstr(s.said, "the job's steps can no longer be followed"),
       "no steps for two minutes: the original is back: %.0f W, %s",
       w_of_mw(in_force(&s, 0)), view.state);
    wait_for_hold(&s, 0);
    pass(&s, 20);
    const struct tuner_report *r = report_of(&s, 0);
    ok(r->by == TUNER_BY_PERIOD && r->holding,
       "… and the period of its power stands for them: %.0f W", w_of_mw(r->held_mw));
    unreadable(&s.run[0], false);
    pass(&s, 30);
    ok(report_of(&s, 0)->by == TUNER_BY_STEPS, "its steps are back, and count");
    wait_for_hold(&s, 0);
    ok(report_of(&s, 0)->holding, "… to a cap: %.0f W",
       w_of_mw(report_of(&s, 0)->held_mw));
    scene_close(&s);
}

/* The program ends, its job stays: what the search held before is not for that. */
static void lost_period(void)
{
    const struct play play = {.workload = "resnet50",
                              .boards = "0,1",
                              .goal = "edp",
                              .seconds = 700,
                              .mute = true};
    struct actuator_opts act = {.on_ready = on_ready, .on_event = on_event};
    struct searches_view view;
    uw_error err = {""};
    struct scene s;

    if (!scene_begin(&s, &play))
        return;
    s.run[0].stays = true;
    wait_for_hold(&s, 0);
    ok(report_of(&s, 0)->by == TUNER_BY_PERIOD, "(holds by its period: %.0f W)",
       w_of_mw(report_of(&s, 0)->held_mw));
    for (int i = 0; i < 400 && !strstr(s.said, "the safe cap"); i++)
        pass(&s, 5);
    pass(&s, 120);
    (void)searches_look(s.tunings, 1, &view);
    ok(in_force(&s, 0) == 240000 && in_force(&s, 1) == 240000 &&
           strstr(view.state, "safe cap"),
       "its period is lost: the safe cap stands: %.0f W, %s", w_of_mw(in_force(&s, 0)),
       view.state);
    caps_use_actuator(s.caps, NULL);
    actuator_free(take(s.act));
    pass(&s, 40);
    act.user = &s;
    int r = actuator_start_virtual(s.loop, &virtual_backend, boards_lib(s.boards), &act,
                                   &s.act, &err);
    pass(&s, 300);
    ok(r == 0 && in_force(&s, 0) == 240000 && in_force(&s, 1) == 240000,
       "… and again after its caps were lost for a while: %.0f W",
       w_of_mw(in_force(&s, 0)));
    scene_close(&s);
}

static void fault(struct scene *s, const char *text)
{
    struct sim_fault f;
    uw_error err = {""};

    int r = sim_fault_parse(text, &f, &err);
    if (r >= 0)
        r = virtual_world_fault(s->world, &f, &err);
    ok(r >= 0, "(%s) %s", text, err.text);
}

/* Board 1 falls off after it has answered, and before board 0 is back. */
static void lost_in_turn(void)
{
    const struct play play = {
        .workload = "resnet50", .boards = "0,1", .goal = "edp", .seconds = 3000};
    struct scene s;

    if (!scene_begin(&s, &play))
        return;
    wait_for_hold(&s, 0);
    pass(&s, 60);
    uint32_t held = report_of(&s, 0)->held_mw;
    fault(&s, "0 lost");
    pass(&s, 15);
    fault(&s, "1 lost");
    pass(&s, 15);
    fault(&s, "0 found");
    pass(&s, 60);
    fault(&s, "1 found");
    pass(&s, 200);
    ok(in_force(&s, 0) == held && in_force(&s, 1) == held,
       "both are back, and the cap: %.0f and %.0f W", w_of_mw(in_force(&s, 0)),
       w_of_mw(in_force(&s, 1)));
    fault(&s, "0 lost");
    pass(&s, 30);
    ok(in_force(&s, 1) == 300000, "one is lost once more, and that is seen: %.0f W",
       w_of_mw(in_force(&s, 1)));
    scene_close(&s);
}

/* A board is away for longer than the search waits for it. */
static void lost_for_long(void)
{
    const struct play play = {
        .workload = "resnet50", .boards = "0,1", .goal = "edp", .seconds = 4000};
    struct scene s;

    if (!scene_begin(&s, &play))
        return;
    wait_for_hold(&s, 0);
    uint32_t held = report_of(&s, 0)->held_mw;
    fault(&s, "0 lost");
    pass(&s, 900);
    ok(in_force(&s, 1) == 300000,
       "a quarter of an hour without it: the other's original");
    fault(&s, "0 found");
    pass(&s, 100);
    wait_for_hold(&s, 0);
    const struct tuner_report *t = report_of(&s, 0);
    ok(t->holding && !t->ended[0] && t->held_mw == held && in_force(&s, 0) == held &&
           in_force(&s, 1) == held,
       "it is found, and the cap is back: %.0f W %s", w_of_mw(t->held_mw), t->ended);
    scene_close(&s);
}

/* Slack that finds nothing leaves the looks at the reference alone. */
static void nothing_waits(void)
{
    const struct play play = {
        .workload = "vgg19", .boards = "0,1", .goal = "slowdown:1.05", .seconds = 5000};
    struct scene s;

    slack = 0.002;
    visits = 0.05;
    if (scene_open(&s) && begin(&s, &play)) {
        wait_for_hold(&s, 0);
        pass(&s, 3600);
        ok(in_force(&s, 0) == report_of(&s, 0)->held_mw, "(no board waits)");
        ok(report_of(&s, 0)->checks.n >= 1, "… and the reference is looked at: %u times",
           report_of(&s, 0)->checks.n);
    }
    scene_close(&s);
    slack = visits = 0;
}

/* Another one raises the limit, and the cap is set again. */
static void limit_raised(void)
{
    const struct play play = {
        .workload = "resnet50", .boards = "0", .cap = "200 W", .seconds = 900};
    struct scene s;

    if (!scene_begin(&s, &play))
        return;
    for (int i = 0; i < 200 && in_force(&s, 0) > 200000; i++)
        pass(&s, 1);
    pass(&s, 100);
    fault(&s, "0 limit 300W");
    pass(&s, 2);
    ok(in_force(&s, 0) > 200000, "(raised to %.0f W)", w_of_mw(in_force(&s, 0)));
    pass(&s, 300);
    const struct savings *a = report_of(&s, 0)->account;
    const struct savings_sum *hold = &a->sum[STRETCH_HOLD];
    double dearer = hold->energy_j / hold->steps / savings_mean_energy(&a->hold);
    ok(in_force(&s, 0) == 200000 && hold->steps > 100 && dearer < 1.005,
       "the limit was raised and is %.0f W again: the steps of the hold are those at "
       "200 W alone: x %.4f",
       w_of_mw(in_force(&s, 0)), dearer);
    scene_close(&s);
}

/* ---- a board that two are to search on ---- */

static void two_searches(void)
{
    const struct play play = {
        .workload = "resnet50", .boards = "0", .goal = "slowdown:1.05", .seconds = 900};
    struct run *other;
    struct searches_ask ask = {.search = true};
    struct searches_view view;
    struct scene s;
    uw_error err = {""};

    if (!scene_begin(&s, &play))
        return;
    pass(&s, 60);
    other = &s.run[s.n_runs++];
    other->scene = &s;
    other->entry = (struct job_entry){.id = s.n_runs, .uid = 1000, .boards = 1};
    int r = goal_parse("energy", &ask.goal, &err);
    if (r >= 0)
        r = searches_begin(s.tunings, &other->entry, &ask, &err);
    ok(r >= 0, "a second job on board 0 %s", err.text);
    wait_for_hold(&s, 0);
    pass(&s, 200);
    const struct tuner_report *one = report_of(&s, 0);
    const struct savings *a = one->account;
    double slower = savings_mean_time(&a->hold) / savings_mean_time(&a->reference);
    ok(one->holding && one->reference_mw == 300000 && slower < 1.055 &&
           in_force(&s, 0) == one->held_mw,
       "the first one's bound is kept: time x %.3f at %.0f W", slower,
       w_of_mw(in_force(&s, 0)));
    (void)searches_look(s.tunings, 2, &view);
    ok(strstr(view.state, "job 1 has"), "… the second one waits: %s", view.state);
    for (int i = 0; i < 100 && !strstr(view.state, "looks for a period"); i++) {
        pass(&s, 20);
        (void)searches_look(s.tunings, 2, &view);
    }
    ok(s.run[0].ended_s > 0 && strstr(view.state, "looks for a period"),
       "… and begins when the first one is over: %s", view.state);
    scene_close(&s);
}

/* ---- jobs that begin one soon after the other ---- */

/* Each of them is looked at once a second all the same, and nothing stands still. */
static void jobs_in_turn(void)
{
    const struct play play = {
        .workload = "resnet50", .boards = "0", .cap = "200 W", .seconds = 600};
    struct play other = play;
    struct scene s;
    double most_s = 0;

    if (!scene_begin(&s, &play))
        return;
    pass(&s, 60);
    for (unsigned i = 0; i < 30; i++) {
        pass(&s, 0.1);
        if (i == 8 || i == 17) {
            other.boards = i == 8 ? "1" : "2";
            begin(&s, &other);
        }
        most_s = fmax(most_s, s_between(s.tunings->ticked_ns, loop_now_ns(s.loop)));
    }
    ok(most_s < 1.2 && s.tunings->stood_ns == 0,
       "jobs that begin 0.9 s apart: each is looked at after at most %.1f s", most_s);
    scene_close(&s);
}

int main(int argc, char **argv)
{
    static const struct scene_case cases[] = {
        {"dark", lost_steps},    {"period", lost_period},  {"turns", lost_in_turn},
        {"even", nothing_waits}, {"two", two_searches},    {"long", lost_for_long},
        {"begin", jobs_in_turn}, {"raised", limit_raised},
    };

    return play_cases(cases, n_elements(cases), argc, argv);
}
