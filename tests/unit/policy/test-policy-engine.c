/* The engine of rules over made-up boards, jobs and signals: what it claims, when, and
 * under which name; goals; what it does with another policy; what it reads and when.
 */
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "base/units.h"
#include "io/loop.h"
#include "oom.h"
#include "policy/engine.h"
#include "policy/file.h"
#include "tap.h"
#include "virtual/virtual-loop.h"

enum { BOARDS = 2, JOBS = 3, LOG = 64 };
#define W(x) ((uint32_t)((x)*1000))

static struct {
    struct loop *loop;
    struct loop_timer *pause;
    struct policy_engine *engine;
    struct policy_file *file;
    struct policy_board board[BOARDS];
    struct engine_job job[JOBS];
    struct policy_fact fact[JOBS][2];
    size_t n_jobs;
    /* signals: NaN is unknown */
    double carbon, price, board_c[BOARDS], age_s[JOBS];
    const char *phase[JOBS];
    unsigned asked; /* values */
    struct engine_claim claim[BOARDS][2];
    bool claimed[BOARDS][2];
    struct goal goal[JOBS];
    bool has_goal[JOBS];
    char by[JOBS][ENGINE_WHO];
    unsigned goals;
    char log[LOG][160];
    size_t n_log;
} w;

/* ---- the world ---- */

static void on_look(struct engine_world *ret, void *user)
{
    (void)user;
    *ret = (struct engine_world){w.board, BOARDS, w.job, w.n_jobs};
}

static size_t job_at(uint64_t id)
{
    size_t i = 0;

    while (i + 1 < w.n_jobs && w.job[i].id != id)
        i++;
    return i;
}

static void number(struct policy_value *ret, double v)
{
    ret->known = v == v;
    ret->number = v;
}

static void on_value(const struct policy_signal *signal, const struct policy_read *read,
                     const struct engine_of *of, struct policy_value *ret, void *user)
{
    (void)read;
    (void)user;
    w.asked++;
    if (strcmp(signal->name, "carbon") == 0) {
        number(ret, w.carbon / 3.6e6);
    } else if (strcmp(signal->name, "price") == 0) {
        number(ret, w.price / 3.6e6);
    } else if (strcmp(signal->name, "board.temperature") == 0) {
        number(ret, w.board_c[of->board]);
    } else if (strcmp(signal->name, "job.age") == 0) {
        number(ret, w.age_s[job_at(of->job)]);
    } else if (strcmp(signal->name, "job.phase") == 0 && w.phase[job_at(of->job)]) {
        ret->known = true;
        ret->text = w.phase[job_at(of->job)];
    }
}

static void on_zone(size_t rule, int64_t utc_s, struct policy_zone *ret, void *user)
{
    (void)user;
    policy_file_zone(w.file, rule, utc_s, ret);
}

static void on_claim(size_t board, bool hard, const struct engine_claim *claim,
                     void *user)
{
    (void)user;
    w.claimed[board][hard] = claim != NULL;
    if (claim)
        w.claim[board][hard] = *claim;
}

static void on_goal(uint64_t job, const struct goal *goal, const char *by, void *user)
{
    size_t i = job_at(job);

    (void)user;
    w.goals++;
    w.has_goal[i] = goal != NULL;
    if (goal)
        w.goal[i] = *goal;
    (void)snprintf(w.by[i], sizeof w.by[i], "%s", by);
}

static void on_event(const struct engine_event *ev, void *user)
{
    (void)user;
    if (w.n_log == LOG)
        return;
    (void)snprintf(w.log[w.n_log++], sizeof w.log[0], "%s %zu/%d %s%s: %s",
                   ev->rule->name, ev->board, (int)ev->job,
                   ev->begins ? "begins" : "ends ", ev->how, ev->why);
}

static int on_pause(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    (void)now_ns;
    (void)user;
    loop_stop(w.loop, 0);
    return 0;
}

static void pass(double s)
{
    loop_timer_set(w.pause, loop_now_ns(w.loop) + ns_of_s(s), 0);
    if (loop_run(w.loop, NULL) < 0)
        ok(false, "the loop runs");
}

/* The values as they are now are looked at. */
static void changed(void)
{
    policy_engine_changed(w.engine);
    pass(1.5);
}

static void use(const char *text)
{
    struct policy_file *file = NULL, *old = w.file;
    uw_error err = {""};

    if (policy_file_read("test", text, strlen(text), false, &file, &err) < 0) {
        ok(false, "the policy: %s", err.text);
        return;
    }
    if (policy_engine_use(w.engine, &file->policy, file->every_ns, &err) < 0)
        ok(false, "in force: %s", err.text);
    w.file = file;
    policy_file_free(old);
    pass(1.5); /* the first evaluation */
}

static struct engine_job *add_job(uint64_t id, uint64_t boards, const char *user)
{
    struct engine_job *j = &w.job[w.n_jobs];

    w.fact[w.n_jobs][0] = (struct policy_fact){"user", user};
    *j = (struct engine_job){
        .id = id, .boards = boards, .facts = {w.fact[w.n_jobs], 1}, .phase.told = true};
    w.age_s[w.n_jobs++] = 0;
    return j;
}

static void begin(const char *name)
{
    static const struct engine_opts opts = {.look = on_look,
                                            .value = on_value,
                                            .zone = on_zone,
                                            .claim = on_claim,
                                            .goal = on_goal,
                                            .event = on_event};
    struct engine_opts o = opts;

    printf("# %s\n", name);
    memset(&w, 0, sizeof w);
    /* a Wednesday, 12:00 UTC */
    if (loop_new_virtual(1000 * NS_PER_S, 1763553600, &w.loop, NULL) < 0 ||
        loop_timer_new(w.loop, UINT64_MAX, 0, on_pause, NULL, &w.pause, NULL) < 0)
        abort();
    o.loop = w.loop;
    if (policy_engine_new(&o, &w.engine, NULL) < 0)
        abort();
    for (size_t i = 0; i < BOARDS; i++)
        w.board[i] = (struct policy_board){
            .original_mw = W(700), .default_mw = W(700), .min_mw = W(200)};
    w.carbon = w.price = 100;
}

static void end(void)
{
    policy_engine_free(w.engine);
    policy_file_free(w.file);
    loop_timer_free(w.pause);
    loop_free(w.loop);
}

static bool is_claim(size_t board, bool hard, double watts, const char *who)
{
    const struct engine_claim *c = &w.claim[board][hard];

    if (watts <= 0)
        return !w.claimed[board][hard];
    return w.claimed[board][hard] && c->mw == W(watts) && strcmp(c->who, who) == 0;
}

static enum policy_state state_of(const char *rule, size_t board)
{
    struct engine_row row;

    for (size_t i = 0; policy_engine_row(w.engine, i, &row); i++)
        if (strcmp(row.rule->name, rule) == 0 && row.board == board)
            return row.state;
    return (enum policy_state)99;
}

/* ---- tests ---- */

#define DIRTY                        \
    "rules:\n"                       \
    "  - name: dirty-grid\n"         \
    "    when: carbon > 400 g/kWh\n" \
    "    for: 10 s\n"                \
    "    release: 20 s\n"            \
    "    cap: -25 %\n"

static void one_claim(void)
{
    begin("a rule caps, holds within its hysteresis, and ends");
    add_job(4, 1, "anna");
    use("policy: 1\n" DIRTY);
    ok(is_claim(0, false, 0, "") && state_of("dirty-grid", 0) == RULE_FALSE,
       "a clean grid: no claim");
    w.carbon = 450;
    changed();
    ok(state_of("dirty-grid", 0) == RULE_WAITS && !w.claimed[0][0], "it waits");
    pass(10);
    ok(is_claim(0, false, 525, "rule dirty-grid"), "a quarter less: %u mW of %s",
       w.claim[0][0].mw, w.claim[0][0].who);
    ok(strcmp(w.claim[0][0].why, "carbon 450 g/kWh") == 0, "because: %s",
       w.claim[0][0].why);
    ok(!w.claimed[1][0], "the board without a job is left alone");
    w.carbon = 470;
    changed();
    ok(strcmp(w.claim[0][0].why, "carbon 450 g/kWh") == 0,
       "the reason stays what was true when it fired");
    w.carbon = 390;
    changed();
    pass(100);
    ok(is_claim(0, false, 525, "rule dirty-grid"), "390 is within the hysteresis");
    w.carbon = 370;
    changed();
    pass(15);
    ok(w.claimed[0][0], "370 is not, not yet for its release");
    pass(10);
    ok(!w.claimed[0][0] && w.n_log == 2, "it has ended");
    ok(strcmp(w.log[0], "dirty-grid 0/4 begins: carbon 450 g/kWh") == 0 &&
           strcmp(w.log[1], "dirty-grid 0/4 ends false: carbon 450 g/kWh") == 0,
       "told: %s, %s", w.log[0], w.log[1]);
    w.carbon = 450;
    changed();
    pass(11);
    ok(w.claimed[0][0], "once more");
    w.carbon = (double)NAN;
    changed();
    ok(!w.claimed[0][0] && state_of("dirty-grid", 0) == RULE_UNKNOWN,
       "an unknown signal ends it");
    end();
}

static void does_not_ratchet(void)
{
    begin("the base stays where the search's hold is");
    add_job(4, 1, "anna");
    w.board[0].hold_mw = W(400);
    w.carbon = 500;
    use("policy: 1\n" DIRTY "  - name: too\n    when: price > 1 EUR/kWh\n    for: 0 s\n"
        "    cap: -100 W\n");
    pass(20);
    ok(is_claim(0, false, 300, "rule dirty-grid"),
       "of 400 W: %u mW, the lower of -25 %% and -100 W, the first in the file",
       w.claim[0][0].mw);
    for (int i = 0; i < 10; i++) {
        w.carbon = 500 + i;
        changed();
    }
    ok(is_claim(0, false, 300, "rule dirty-grid"), "ten evaluations later, too");
    w.board[0].hold_mw = W(360);
    w.carbon = 600;
    changed();
    ok(is_claim(0, false, 260, "rule too"), "another hold: %u mW of %s", w.claim[0][0].mw,
       w.claim[0][0].who);
    end();
}

static void jobs_and_classes(void)
{
    begin("classes, hard rules, presets");
    add_job(4, 1, "prod");
    add_job(5, 2, "anna");
    w.carbon = 500;
    use("policy: 1\nhard: true\n"
        "classes:\n"
        "  - {name: production, match: {user: prod}, floor: 70 %}\n"
        "  - {name: rest, match: {}, preset: balanced}\n"
        "rules:\n"
        "  - name: dirty\n    jobs: {class: rest}\n    when: carbon > 400 g/kWh\n"
        "    for: 0 s\n    cap: 50 %\n"
        "  - name: fuse\n    when: price > 0.5 EUR/kWh\n    for: 0 s\n    kind: hard\n"
        "    cap: 250 W\n"
        "  - name: asks-demand\n    when: carbon > 400 g/kWh\n    for: 0 s\n"
        "    cap: 80 % of demand\n");
    ok(is_claim(0, false, 0, "") && state_of("dirty", 0) == RULE_OTHER_JOB,
       "not for production");
    ok(state_of("asks-demand", 0) == RULE_NO_DEMAND, "an unknown demand is said");
    ok(is_claim(1, false, 350, "rule dirty") && is_claim(1, true, 250, "rule fuse"),
       "one soft and one hard claim: %u, %u mW", w.claim[1][0].mw, w.claim[1][1].mw);
    w.board[0].demand_mw = W(600);
    w.carbon = 300;
    w.price = 0.1;
    changed();
    pass(100);
    ok(is_claim(1, false, 595, "class rest") && !w.claimed[1][1],
       "the class's preset alone: %s", w.claim[1][0].who);
    w.job[1].has_cap = true;
    changed();
    ok(!w.claimed[1][0], "not for a job that asked for a cap");
    w.n_jobs = 1;
    changed();
    ok(!w.claimed[1][0] && !w.claimed[1][1], "a job that ends takes its rules along");
    end();
}

/* A scheduler tells more of a job, or a user's name is known later. */
static void other_facts(void)
{
    begin("a job whose facts change");
    struct engine_job *j = add_job(4, 1, "");
    use("policy: 1\n"
        "classes:\n"
        "  - {name: annas, match: {user: anna}, goal: edp}\n"
        "rules:\n"
        "  - {name: hers, jobs: {class: annas}, when: job.age < 1 h, for: 0 s,\n"
        "     cap: 200 W, ramp: at once}\n");
    ok(!w.has_goal[0] && state_of("hers", 0) == RULE_OTHER_JOB, "nobody's");
    w.fact[0][0].value = "anna";
    changed();
    ok(state_of("hers", 0) == RULE_OTHER_JOB, "facts of one edition are the same");
    j->edition++;
    changed();
    ok(w.has_goal[0] && strcmp(w.by[0], "class annas") == 0 &&
           state_of("hers", 0) == RULE_ACTS && w.claimed[0][0],
       "hers: goal of her class, rule of her class");
    w.fact[0][0].value = "bert";
    j->edition++;
    changed();
    ok(!w.has_goal[0] && state_of("hers", 0) == RULE_OTHER_JOB && !w.claimed[0][0],
       "and not hers any more");
    end();
}

static void goals(void)
{
    begin("goals of classes and rules");
    add_job(4, 1, "anna");
    add_job(5, 2, "own")->has_goal = true;
    use("policy: 1\n"
        "classes:\n"
        "  - {name: keeps, match: {user: own}, goal: time}\n"
        "  - {name: rest, match: {}, goal: edp}\n"
        "rules:\n"
        "  - {name: cheap, when: price < 0.05 EUR/kWh, for: 0 s, release: 0 s,\n"
        "     goal: time, hold: 30 min}\n");
    ok(w.has_goal[0] && w.goal[0].kind == GOAL_EDP && strcmp(w.by[0], "class rest") == 0,
       "of its class: %s", w.by[0]);
    ok(!w.has_goal[1], "not where the job asked for one");
    w.price = 0.01;
    changed();
    ok(w.goal[0].kind == GOAL_TIME && strcmp(w.by[0], "rule cheap") == 0, "of a rule");
    ok(!w.has_goal[1] && state_of("cheap", 1) == RULE_OWN_GOAL,
       "the class keeps its own");
    w.price = 1;
    changed();
    pass(1700);
    ok(w.goal[0].kind == GOAL_TIME, "it stays for its hold");
    pass(110);
    ok(w.goal[0].kind == GOAL_EDP, "and not longer");
    unsigned told = w.goals;
    changed();
    ok(w.goals == told, "what does not change is not told again");
    policy_engine_rest(w.engine, true);
    w.has_goal[0] = false; /* as of a job that is found anew */
    policy_engine_rest(w.engine, false);
    pass(1.5);
    ok(w.has_goal[0] && w.goal[0].kind == GOAL_EDP && w.goals == told + 1,
       "after a rest it is told once more");
    ok(policy_engine_use(w.engine, NULL, 0, NULL) == 0 && !w.has_goal[0],
       "without a policy the job has its own");
    end();
}

static void another_policy(void)
{
    begin("another policy");
    add_job(4, 1, "anna");
    w.carbon = 500;
    use("policy: 1\n" DIRTY);
    pass(20);
    ok(w.claimed[0][0], "acts");
    use("policy: 1\nrules:\n  - {name: first, when: price > 90000 EUR/kWh, cap: 50 %}\n"
        "  - {name: dirty-grid, when: carbon > 400 g/kWh, for: 10 s, cap: 300 W}\n");
    ok(is_claim(0, false, 300, "rule dirty-grid") && w.n_log == 1,
       "the same name and condition: goes on with its new cap");
    use("policy: 1\nrules:\n"
        "  - {name: dirty-grid, when: carbon > 450 g/kWh, for: 10 s, cap: 300 W}\n");
    ok(!w.claimed[0][0] && strstr(w.log[1], "policy gone") != NULL,
       "another condition begins anew: %s", w.log[1]);
    pass(20);
    ok(w.claimed[0][0], "and fires");
    (void)policy_engine_use(w.engine, NULL, 0, NULL);
    ok(!w.claimed[0][0], "no policy, no claim");
    pass(100);
    struct engine_counts before, after;
    policy_engine_counts(w.engine, &before);
    policy_engine_changed(w.engine);
    pass(100);
    policy_engine_counts(w.engine, &after);
    ok(before.evaluations == after.evaluations, "nothing is evaluated without a policy");
    end();
}

static void only_what_changed(void)
{
    struct engine_counts a, b;

    begin("what is evaluated, and when");
    add_job(4, 3, "anna");
    use("policy: 1\ndefaults: {every: 5 s}\nrules:\n"
        "  - {name: c, when: carbon > 400 g/kWh, for: 0 s, cap: 50 %}\n"
        "  - {name: p, when: price > 400 EUR/kWh, for: 0 s, cap: 50 %}\n"
        "  - {name: t, when: board.temperature > 60 °C, until: board.temperature < 50 "
        "°C,\n"
        "     for: 0 s, cap: 50 %}\n");
    pass(10);
    policy_engine_counts(w.engine, &a);
    pass(1000);
    policy_engine_counts(w.engine, &b);
    ok(a.evaluations == b.evaluations,
       "nothing while nothing changes and nothing is due");
    w.carbon = 500;
    for (int i = 0; i < 10; i++) {
        policy_engine_changed(w.engine);
        pass(0.1);
    }
    pass(5);
    policy_engine_counts(w.engine, &b);
    ok(b.evaluations == a.evaluations + 2 && b.steps == a.steps + 2,
       "ten changes in a second: %d evaluations, %d steps of a rule on two boards",
       (int)(b.evaluations - a.evaluations), (int)(b.steps - a.steps));
    a = b;
    w.board_c[1] = 70;
    policy_engine_changed(w.engine);
    pass(6);
    policy_engine_counts(w.engine, &b);
    ok(b.steps == a.steps + 1 && w.claimed[1][0] &&
           strcmp(w.claim[1][0].who, "rule c") == 0,
       "one board's signal: one step");
    end();
}

static void schedules_and_dry_runs(void)
{
    char text[ENGINE_VALUE];
    struct engine_row row;

    begin("schedules, idle boards, dry runs");
    use("policy: 1\nrules:\n"
        "  - {name: noon, schedule: {from: \"12:30\", to: \"13:00\", zone: UTC}, for: 0 "
        "s,\n"
        "     cap: 50 %, idle_boards: true}\n"
        "  - {name: shown, when: carbon > 50 g/kWh, for: 0 s, cap: 40 %, dry_run: true,\n"
        "     idle_boards: true}\n"
        "  - {name: jobs, when: carbon > 50 g/kWh, for: 0 s, cap: 45 %}\n");
    ok(!w.claimed[0][0] && state_of("shown", 0) == RULE_DRY_RUN &&
           state_of("noon", 0) == RULE_OUT_OF_HOURS && state_of("jobs", 0) == RULE_NO_JOB,
       "shown, not done");
    pass(1700);
    ok(!w.claimed[0][0], "12:28");
    pass(110);
    ok(is_claim(0, false, 350, "rule noon") && is_claim(1, false, 350, "rule noon"),
       "12:30, boards without a job, too: %s", w.claim[0][0].why);
    loop_shift_utc(w.loop, (int64_t)(3600 * NS_PER_S));
    changed();
    ok(!w.claimed[0][0] && state_of("noon", 0) == RULE_OUT_OF_HOURS,
       "the clock is set ahead, 13:30");
    loop_shift_utc(w.loop, -(int64_t)(3600 * NS_PER_S));
    changed();
    ok(is_claim(0, false, 350, "rule noon"), "and back");
    pass(1800);
    ok(!w.claimed[0][0], "13:00");
    ok(policy_engine_read(w.engine, 1, 0, text) && strcmp(text, "carbon 100 g/kWh") == 0,
       "what a rule reads: %s", text);
    ok(!policy_engine_read(w.engine, 1, 1, text) &&
           !policy_engine_read(w.engine, 0, 0, text),
       "and no more");
    size_t n = 0;
    for (size_t i = 1; policy_engine_row(w.engine, i, &row); i += 3)
        n += strcmp(row.rule->name, "shown") == 0 && row.board == n;
    is_int((long long)n, BOARDS, "each third row is of the same rule, board by board");
    end();
}

static void phases(void)
{
    begin("phases");
    struct engine_job *j = add_job(4, 1, "anna");
    j->phase.told = false;
    j->phase.confidence = 0.5;
    w.phase[0] = "validate";
    use("policy: 1\nrules:\n"
        "  - {name: val, when: job.phase == 'validation', phase: true, confidence: 90 "
        "%,\n"
        "     cap: 60 %, least: 5 s}\n");
    ok(state_of("val", 0) == RULE_UNSURE, "seen, not surely enough");
    j->phase.confidence = 0.95;
    changed();
    ok(is_claim(0, false, 420, "rule val"), "surely enough");
    j->phase.length_s = (struct maybe){true, 4};
    changed();
    ok(state_of("val", 0) == RULE_SHORT && !w.claimed[0][0], "a short phase");
    j->phase.length_s.v = 6;
    changed();
    ok(is_claim(0, false, 420, "rule val"), "a longer one");
    j->phase.no_gain = true;
    changed();
    ok(state_of("val", 0) == RULE_NO_GAIN && !w.claimed[0][0], "a static cap is as good");
    j->phase.no_gain = false;
    j->phase.costly = true;
    changed();
    ok(state_of("val", 0) == RULE_COSTLY && !w.claimed[0][0], "returns cost too much");
    j->phase.costly = false;
    changed();
    ok(is_claim(0, false, 420, "rule val"), "neither");
    j->phase.no_gain = true;
    use("policy: 1\nrules:\n"
        "  - {name: val, when: job.phase == 'validation', phase: true, always: true,\n"
        "     cap: 50 %}\n");
    ok(is_claim(0, false, 350, "rule val"), "`always`: although a static cap is as good");
    w.phase[0] = "train";
    changed();
    ok(state_of("val", 0) == RULE_FALSE && !w.claimed[0][0], "it ends with the phase");
    end();
}

static void out_of_memory(void)
{
    static const char text[] = "policy: 1\n" DIRTY;
    bool survived = true;

    for (unsigned long n = 1; n < 40; n++) {
        begin("no memory");
        add_job(4, 1, "anna");
        w.carbon = 500;
        use(text);
        pass(20);
        oom_fail_at(n);
        policy_engine_changed(w.engine);
        add_job(5, 2, "bert");
        (void)policy_engine_use(w.engine, &w.file->policy, NS_PER_S, NULL);
        policy_engine_step(w.engine);
        oom_fail_at(0);
        changed();
        pass(30);
        survived = survived && w.claimed[0][0] && w.claimed[1][0];
        end();
    }
    ok(survived, "each failed allocation is made good later");
}

int main(void)
{
    one_claim();
    does_not_ratchet();
    jobs_and_classes();
    other_facts();
    goals();
    another_policy();
    only_what_changed();
    schedules_and_dry_runs();
    phases();
    out_of_memory();
    return done();
}
