/* Slack under a node's budget, in virtual time: a job of four boards with 10 % between
 * their speeds, whose part of the budget is moved to where it makes the job faster; at
 * every write of a limit the sum of all that are in force is looked at.
 *
 * Usage: test-shares [CASE]
 */
#include <errno.h>

#include "simulation/tuning-scene.h"

#define SHARE_MW 200000u

/* As bench/spread.c has it: at equal shares the first board's step takes 10 % longer than
 * the last one's, evenly spread, as it needs more power for the same clock.
 */
static struct plant_trait spread[BOARDS];

static double plain_step_s(double power)
{
    const struct plant_board *b = plant_board_find("v100");
    const struct plant_workload *w = plant_workload_find(b, "vgg19");

    return w->gap_s + w->tc_s / plant_clock_at(b, w, w_of_mw(SHARE_MW) / power) + w->tm_s;
}

static void make_spread(void)
{
    for (size_t i = 0; i < 4; i++) {
        double want = plain_step_s(1) * (1.05 - 0.1 * (double)i / 3);
        double low = 0.5, high = 2;
        for (int k = 0; k < 50; k++) {
            double mid = (low + high) / 2;
            if (plain_step_s(mid) > want)
                high = mid;
            else
                low = mid;
        }
        spread[i] = (struct plant_trait){.power = high, .work = 1, .spin = 0.3};
        printf("# board %zu: power factor %.3f\n", i, high);
    }
}

static struct {
    uint32_t mw[BOARDS];
    bool reached; /* the budget was, at first */
    unsigned writes, over;
} wire;

static struct gpu_backend watched;

static int watched_set(struct gpu_dev *dev, uint32_t mw, uw_error *err)
{
    int r = virtual_backend.set_limit(dev, mw, err);
    uint64_t sum = 0;

    if (r == 0)
        wire.mw[virtual_backend.info(dev)->index] = mw;
    for (size_t i = 0; i < BOARDS; i++)
        sum += wire.mw[i];
    wire.reached = wire.reached || sum <= budget_mw;
    wire.writes++;
    wire.over += wire.reached && sum > budget_mw;
    return r;
}

static bool begin_under(struct scene *s, double share, double seconds)
{
    const struct play play = {
        .workload = "vgg19", .boards = "0,1,2,3", .goal = "time", .seconds = seconds};

    memset(&wire, 0, sizeof wire);
    for (size_t i = 0; i < BOARDS; i++)
        wire.mw[i] = 300000;
    watched = virtual_backend;
    watched.set_limit = watched_set;
    scene_backend = &watched;
    budget_mw = BOARDS * SHARE_MW;
    traits = spread;
    slack = share;
    looks = -1;
    return scene_begin(s, &play);
}

static void is_kept(const char *name)
{
    ok(wire.reached && wire.over == 0, "%s: %u writes, never above the budget", name,
       wire.writes);
}

static double step_s(struct scene *s, double seconds)
{
    struct step_mark from = searches_steps(s->tunings, 1)->mark, to;
    double steps, took_s;

    pass(s, seconds);
    to = searches_steps(s->tunings, 1)->mark;
    return steps_between(&from, &to, &steps, &took_s) ? took_s / steps : NAN;
}

static uint64_t sum_of(const struct scene *s, size_t n)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += in_force(s, i);
    return sum;
}

static void say_caps(const struct scene *s, const char *name)
{
    printf("# %s: %.0f, %.0f, %.0f, %.0f W\n", name, w_of_mw(in_force(s, 0)),
           w_of_mw(in_force(s, 1)), w_of_mw(in_force(s, 2)), w_of_mw(in_force(s, 3)));
}

static bool are_equal(const struct scene *s)
{
    bool equal = true;

    for (size_t i = 0; i < BOARDS; i++)
        equal = equal && in_force(s, i) == SHARE_MW;
    return equal;
}

static void faster(bool gains, double least)
{
    double with = NAN, without = NAN;
    struct scene s;

    no_gain = !gains;
    printf("# sensors %s errors of gain\n", gains ? "with" : "without");
    if (begin_under(&s, 0, 5000)) {
        wait_for_hold(&s, 0);
        pass(&s, 1500); /* as warm as with slack */
        ok(are_equal(&s), "without slack: equal shares");
        without = step_s(&s, 300);
        is_kept("without slack");
        scene_close(&s);
    }
    if (begin_under(&s, 0.01, 5000)) {
        wait_for_hold(&s, 0);
        pass(&s, 1500);
        say_caps(&s, "with slack");
        with = step_s(&s, 300);
        ok(in_force(&s, 0) > SHARE_MW && in_force(&s, 3) < SHARE_MW,
           "watts have moved from the fastest to the slowest");
        ok(sum_of(&s, 4) <= 4 * SHARE_MW && in_force(&s, 4) == SHARE_MW,
           "… inside the job's part of the budget");
        ok(report_of(&s, 0)->stalls == 0 && !report_of(&s, 0)->ended[0], "no stall");
        s.run[0].entry.ended_ns = loop_now_ns(s.loop);
        (void)searches_on_job(s.tunings, ROSTER_END, &s.run[0].entry);
        pass(&s, 5);
        say_caps(&s, "after the job");
        ok(are_equal(&s), "equal shares again when the job ends");
        is_kept("with slack");
        scene_close(&s);
    }
    printf("# a step takes %.4f s, without slack %.4f s\n", with, without);
    ok(without / with >= 1 + least, "the job is faster by %.1f %%",
       100 * (without / with - 1));
}

/* The budget changes while watts are moved. */
static void reload(void)
{
    struct scene s;

    no_gain = true;
    if (!begin_under(&s, 0.01, 6000))
        return;
    wait_for_hold(&s, 0);
    pass(&s, 1500);
    ok(in_force(&s, 0) > SHARE_MW, "(watts have moved)");
    is_kept("until then");
    budget_mw = BOARDS * 180000;
    wire.reached = false;
    budget_configure(s.budget, budget_mw);
    pass(&s, 1);
    bool equal = true;
    for (size_t i = 0; i < BOARDS; i++)
        equal = equal && in_force(&s, i) == 180000;
    ok(equal, "a lower one: equal shares at once");
    pass(&s, 1500);
    say_caps(&s, "and then");
    ok(in_force(&s, 0) > 180000 && sum_of(&s, 4) <= 4 * 180000,
       "… and watts move inside it");
    is_kept("the lower one");
    scene_close(&s);
}

static void fault(struct scene *s, const char *text)
{
    struct sim_fault f;
    uw_error err = {""};

    if (sim_fault_parse(text, &f, &err) < 0 ||
        virtual_world_fault(s->world, &f, &err) < 0)
        ok(false, "fault '%s': %s", text, err.text);
}

/* Boards refuse and vanish while watts move. */
static void trouble(void)
{
    struct scene s;

    no_gain = true;
    if (!begin_under(&s, 0.01, 6000))
        return;
    wait_for_hold(&s, 0);
    pass(&s, 30);
    fault(&s, "3 refuse for 60s");
    pass(&s, 200);
    ok(wire.writes > 8, "(watts have moved)");
    is_kept("a board refuses");
    pass(&s, 600);
    fault(&s, "0 lost for 10s");
    pass(&s, 600);
    say_caps(&s, "after a board was lost");
    ok(sum_of(&s, BOARDS) <= budget_mw && sum_of(&s, 4) > 4 * (SHARE_MW - 2000),
       "the job has its part again");
    is_kept("a board is lost");
    scene_close(&s);
}

int main(int argc, char **argv)
{
    struct statfs fs;

    verbose = argc > 2;
    if (statfs("/dev/shm", &fs) < 0 || fs.f_type != 0x01021994)
        return skip_all("/dev/shm is no tmpfs");
    make_spread();
    if (argc < 2 ? !getenv("UNDERWATT_SANITIZED") : strcmp(argv[1], "faster") == 0)
        faster(false, 0.03);
    if (argc < 2 || strcmp(argv[1], "gains") == 0)
        faster(true, 0.02);
    if (argc < 2 || strcmp(argv[1], "reload") == 0)
        reload();
    if (argc < 2 || strcmp(argv[1], "trouble") == 0)
        trouble();
    return done();
}
