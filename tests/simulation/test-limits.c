/* A node with limits of a policy in virtual time: boards under a temperature while the
 * air becomes warmer, the node's rise at starts and after pauses, by what the boards draw
 * in truth; limits beside rules, budgets, people's claims and searches.
 */
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>

#include <sqlite3.h>

#include "base/names.h"
#include "base/rng.h"
#include "io/progress.h"
#include "plant/plant.h"
#include "policy/limits.h"
#include "simulation/policy-scene.h"
#include "tuner/tuner.h"

static const struct limits_view *limits(void)
{
    static struct limits_view v;
    const struct view_policy *p = &node_look(w.node)->policy;

    v = (struct limits_view){.n_boards = 0};
    if (p->limits)
        limits_look(p->limits, &v);
    return &v;
}

static const struct claim *limit_claim(size_t board, const char *who)
{
    const struct claims *c = node_look(w.node)->board[board].cap.claims;

    for (size_t i = 0; c && i < c->n; i++)
        if (c->claim[i].source == CLAIM_OF_LIMIT && strcmp(c->claim[i].who, who) == 0)
            return &c->claim[i];
    return NULL;
}

static uint64_t writes(size_t board)
{
    return node_look(w.node)->board[board].cap.writes;
}

static bool begin_scene(const char *name, const char *boards, const char *policy)
{
    scene_boards = boards;
    return begin_policy_scene(name, policy);
}

static void end_scene(void)
{
    end_node();
    end_policy_scene();
}

static struct loop_child *run_job(const char *gpus, const char *phases)
{
    const char *argv[] = {"underwatt-sim", "train",  "--workload",
                          "resnet50",      "--gpus", gpus,
                          "--epochs",      "100000", phases ? "--phases" : NULL,
                          phases,          NULL};
    const char *env[] = {VIRTUAL_UID "=1000",
                         VIRTUAL_CGROUP "=/user.slice/user-1000.slice/session-1.scope",
                         NULL};
    struct loop_child_opts opts = {
        .argv = argv, .env = env, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    struct loop_child *child = NULL;
    uw_error err = {""};

    if (loop_child_new(w.loop, &opts, nobody_cares, NULL, &child, &err) < 0)
        printf("# train: %s\n", err.text);
    return child;
}

static void end_job(struct loop_child *child)
{
    (void)loop_child_kill(child, SIGKILL);
    run_s(1);
    loop_child_free(child);
}

/* ---- rise ---- */

enum { EIGHT = 8 };
#define RATE_W_S (5000.0 / 60)
#define EIGHT_H100 "boards: [{model: h100, count: 8}]\n"
#define RISE "policy: 1\nlimits: [{node: true, rise: 5 kW/min}]\n"

static double joules(void)
{
    double sum = 0;

    for (size_t i = 0; i < EIGHT; i++)
        sum += virtual_world_true_j(w.sim, i);
    return sum;
}

/* What was seen of the node's true power, from a moment on. */
struct rise_seen {
    double base_w, over_w, step_w, most_w, reached_s;
};

/* over_w: the most by which a second's mean is above base + max(first, rate x time);
 * step_w: the largest rise in the first 3 s.
 */
static struct rise_seen watch(double base_w, double first_w, unsigned seconds)
{
    struct rise_seen s = {.base_w = base_w, .over_w = -1e9};
    double was_j = joules(), settled_w = 0;

    for (unsigned t = 1; t <= seconds; t++) {
        run_s(1);
        double now_j = joules(), mean_w = now_j - was_j;
        was_j = now_j;
        s.over_w = fmax(s.over_w, mean_w - base_w - fmax(first_w, RATE_W_S * t));
        s.most_w = fmax(s.most_w, mean_w);
        if (t <= 3)
            s.step_w = fmax(s.step_w, mean_w - base_w);
        if (mean_w > settled_w + 20) {
            settled_w = mean_w;
            s.reached_s = t;
        }
    }
    return s;
}

static double mean_w(unsigned seconds)
{
    double was_j = joules();

    run_s(seconds);
    return (joules() - was_j) / seconds;
}

static void check_rise(const char *what, const struct rise_seen *s, double first_w)
{
    printf("# %s: from %.0f W, first step %.0f of %.0f W, to %.0f W in %.0f s, %+.0f W "
           "from the bound\n",
           what, s->base_w, s->step_w, first_w, s->most_w, s->reached_s, s->over_w);
    ok(s->over_w <= 0.01 * s->most_w, "%s: within the bound: %+.0f W", what, s->over_w);
    ok(s->step_w <= first_w + 1, "%s: the first step is as told: %.0f of %.0f W", what,
       s->step_w, first_w);
    ok(s->most_w > 3800, "%s: and all of it in the end: %.0f W", what, s->most_w);
}

static void rises(void)
{
    if (!begin_scene("8 boards that start at once", EIGHT_H100, RISE))
        return;
    run_s(30);
    unsigned low = 0;
    for (size_t i = 0; i < EIGHT; i++)
        low +=
            in_force(i) == 200000 && limits()->row[LIMIT_RISE][i].state == LIMIT_NO_JOB;
    ok(low == EIGHT, "boards without a job are at their minimum: %u", low);
    double idle_w = mean_w(5), first_w = limits()->first_w;
    ok(fabs(first_w - (EIGHT * 200 - idle_w)) < 20, "the first step is told: %.0f W",
       first_w);
    uint64_t before = writes(0);
    struct loop_child *child = run_job("0,1,2,3,4,5,6,7", NULL);
    struct rise_seen s = watch(idle_w, first_w, 120);
    check_rise("a start", &s, first_w);
    unsigned open = 0;
    for (size_t i = 0; i < EIGHT; i++)
        open += !limit_claim(i, "limit rise") && in_force(i) == 700000;
    ok(open == EIGHT && limits()->row[LIMIT_RISE][0].state == LIMIT_FREE,
       "no claim is left: %u", open);
    printf("# %ju writes a board\n", (uintmax_t)(writes(0) - before));
    before = writes(0);
    run_s(1800);
    ok(writes(0) == before, "and none comes while it runs");
    end_job(child);
    run_s(30);
    ok(limits()->fall_w > 2000, "the fall is told: %.0f W", limits()->fall_w);
    ok(in_force(0) == 200000, "at the minimum again");
    idle_w = mean_w(5);
    child = run_job("0,1,2,3,4,5,6,7", NULL);
    s = watch(idle_w, limits()->first_w, 120);
    check_rise("another start", &s, first_w);
    end_job(child);
    end_scene();
}

/* Over any time that begins 12 s after a larger draw the node rises by no more than the
 * first step, or what the rate allows.
 */
enum { TRACE_S = 1500, FRESH_S = 12 };

static double over_any(const double *mean, unsigned n, double first_w)
{
    double over = -1e9;

    for (unsigned a = FRESH_S; a < n; a++) {
        double top_w = 0;
        for (unsigned k = a - FRESH_S; k <= a; k++)
            top_w = fmax(top_w, mean[k]);
        for (unsigned b = a + 1; b < n; b++)
            over = fmax(over, mean[b] - top_w - fmax(first_w, RATE_W_S * (b - a)));
    }
    return over;
}

static void pauses(const char *board, const char *phases)
{
    static double mean[TRACE_S];
    double least_w = 1e9, most_w = 0, was_j;
    char boards[64];

    (void)snprintf(boards, sizeof boards, "boards: [{model: %s, count: 8}]\n", board);
    if (!begin_scene(phases, boards, RISE))
        return;
    run_s(30);
    double first_w = limits()->first_w;
    struct loop_child *child = run_job("0,1,2,3,4,5,6,7", phases);
    run_s(10);
    was_j = joules();
    for (unsigned t = 0; t < TRACE_S; t++) {
        run_s(1);
        mean[t] = joules() - was_j;
        was_j += mean[t];
        least_w = fmin(least_w, mean[t]);
        most_w = fmax(most_w, mean[t]);
    }
    double over_w = over_any(mean, TRACE_S, first_w);
    printf("# %s, %s: between %.0f and %.0f W, %+.0f W from the bound\n", board, phases,
           least_w, most_w, over_w);
    ok(most_w - least_w > 2 * first_w, "there are pauses: from %.0f to %.0f W", least_w,
       most_w);
    ok(over_w <= 0.01 * most_w, "after each the rise is bounded: %+.0f W", over_w);
    end_job(child);
    end_scene();
}

/* Pauses of one length; at first the job loads its data for so long. */
static void pauses_of(const char *board, unsigned seconds)
{
    char phases[32];

    (void)snprintf(phases, sizeof phases, "load=%us,train", seconds);
    pauses(board, phases);
}

static void random_pauses(uint64_t seed)
{
    char phases[64] = "";
    struct rng rng;

    rng_init(&rng, seed);
    for (size_t i = 0; i < 2; i++) {
        size_t n = strlen(phases);
        (void)snprintf(phases + n, sizeof phases - n, "%sload=%us,train", i ? "," : "",
                       (unsigned)(FRESH_S + rng_below(&rng, 90)));
    }
    pauses("h100", phases);
}

/* Most of these were above the bound where one reading of a pause decided what the board
 * was held at, what its end was charged with, and that it ended.
 */
static void all_pauses(void)
{
    static const struct {
        const char *board;
        unsigned s;
    } some[] = {{"h100", 23}, {"h100", 31}, {"h100", 40}, {"h100", 57},
                {"h100", 58}, {"h100", 60}, {"h100", 61}, {"h100", 63},
                {"h100", 93}, {"a100", 27}, {"b200", 62}};
    bool soak = getenv("UNDERWATT_SOAK") != NULL;

    for (size_t i = 0; i < n_elements(some); i++)
        pauses_of(some[i].board, some[i].s);
    for (unsigned s = FRESH_S; soak && s <= 100; s++)
        pauses_of("h100", s);
    for (uint64_t seed = 3; seed <= (soak ? 20 : 4); seed++) /* both were above it, too */
        random_pauses(seed);
}

/* The job of 4 boards runs when another one begins on the others. */
static void one_after_the_other(void)
{
    static double mean[TRACE_S];

    if (!begin_scene("4 boards, then 4 others", EIGHT_H100, RISE))
        return;
    run_s(30);
    double idle_w = mean_w(5);
    struct loop_child *first = run_job("0,1,2,3", NULL), *second = NULL;
    double was_j = joules();
    for (unsigned t = 0; t < 200; t++) {
        if (t == 20)
            second = run_job("4,5,6,7", NULL);
        run_s(1);
        mean[t] = joules() - was_j;
        was_j += mean[t];
    }
    double late_w = 0;
    for (unsigned t = 30; t < 200; t++)
        late_w = fmax(late_w, mean[t] - idle_w - RATE_W_S * (t + 1));
    ok(late_w <= 40 && mean[199] > 3800,
       "both starts are charged: %+.0f W from what the rate allows", late_w);
    end_job(first);
    end_job(second);
    end_scene();
}

/* Caps of others come and go: the node does not jump when they go. */
static void follows(void)
{
    uw_error err;

    if (!begin_scene("claims that end", EIGHT_H100, RISE))
        return;
    run_s(30);
    struct loop_child *child = run_job("0,1,2,3,4,5,6,7", NULL);
    run_s(120);
    uint64_t id[EIGHT] = {0};
    for (size_t i = 0; i < EIGHT; i++) {
        char board[8];
        (void)snprintf(board, sizeof board, "%zu", i);
        ok(claim(&root, board, CLAIM_NAMED, 400000, 3600, &id[i], &err) == 0,
           "a cap by name: %s", err.text);
    }
    run_s(120);
    const struct claim *c = limit_claim(0, "limit rise");
    const struct caps_view *v = &node_look(w.node)->board[0].cap;
    ok(c && c->mw > 400000 && c->mw <= 407000 && in_force(0) == 400000 &&
           v->verdict.claim == id[0],
       "the limit stays a little above it: %u mW", c ? c->mw : 0);
    double base_w = mean_w(5);
    for (size_t i = 0; i < EIGHT; i++)
        (void)node_withdraw(w.node, &root, id[i], &err);
    struct rise_seen s = watch(base_w, 0, 60); /* 7 W a board, and a second's rise */
    ok(s.over_w <= EIGHT * 7 + RATE_W_S && s.most_w > 3800, "its end is no step: %+.0f W",
       s.over_w);
    end_job(child);
    end_scene();
}

static void without(void)
{
    if (!begin_scene("the same without a limit", EIGHT_H100, "policy: 1\n"))
        return;
    run_s(30);
    double idle_w = mean_w(5);
    struct loop_child *child = run_job("0,1,2,3,4,5,6,7", NULL);
    struct rise_seen s = watch(idle_w, 1040, 30);
    printf("# no limit: from %.0f W by %.0f W in 3 s\n", s.base_w, s.step_w);
    ok(s.over_w > 2000 && in_force(0) == 700000, "the test sees what it bounds: %+.0f W",
       s.over_w);
    end_job(child);
    end_scene();
}

/* ---- temperature ---- */

static const struct {
    const char *model;
    double limit_c;
} hot[] = {{"rtx6000", 62}, {"v100", 65}, {"a100", 60}, {"h100", 62}, {"b200", 65}};

static void heat_policy(char *ret, size_t size, double limit_c, const char *more)
{
    (void)snprintf(ret, size,
                   "policy: 1\nlimits: [{boards: all, temperature: %g °C}]\n%s", limit_c,
                   more);
}

/* The highest true temperature of board 0 in so many seconds. */
static double hottest(unsigned seconds)
{
    double most_c = 0;

    while (seconds-- > 0) {
        run_s(1);
        most_c = fmax(most_c, virtual_world_true_c(w.sim, 0));
    }
    return most_c;
}

static void warmer(size_t i)
{
    const struct plant_board *b = plant_board_find(hot[i].model);
    char boards[80], policy[160], name[80];
    double limit_c = hot[i].limit_c;

    (void)snprintf(boards, sizeof boards, "boards: [{model: %s, count: 1}]\n", b->key);
    (void)snprintf(name, sizeof name, "%s under %g C", b->key, limit_c);
    heat_policy(policy, sizeof policy, limit_c, "");
    if (!begin_scene(name, boards, policy))
        return;
    struct loop_child *child = run_job("0", NULL);
    double cool = hottest(1800) - limit_c;
    virtual_world_set_ambient(w.sim, 0, b->ambient_c + 10);
    double warm = hottest(1800) - limit_c;
    uint64_t before = writes(0);
    warm = fmax(warm, hottest(3600) - limit_c);
    uint64_t settled = writes(0) - before;
    const struct limits_row *row = &limits()->row[LIMIT_TEMPERATURE][0];
    const struct claim *c = limit_claim(0, "limit temperature");
    printf("# %+.2f K at most, with air 10 K warmer %+.2f K, then %ju writes an hour at "
           "%.0f W: %s\n",
           cool, warm, (uintmax_t)settled, w_of_mw(c ? c->mw : 0), c ? c->why : "");
    ok(cool <= 2 && warm <= 2, "%s: %+.2f and %+.2f K above the limit at most", b->key,
       cool, warm);
    ok(settled <= 12, "%s: %ju writes an hour", b->key, (uintmax_t)settled);
    ok(c && row->state == LIMIT_ACTS && in_force(0) == c->mw && c->kind == CLAIM_HARD &&
           strstr(c->why, "the limit is") && row->margin_known && row->margin_k < 5,
       "%s: a hard claim, with its reason: %s", b->key, c ? c->why : "");
    virtual_world_set_ambient(w.sim, 0, b->ambient_c);
    double cold = hottest(1800) - limit_c;
    ok(cold <= 2 && virtual_world_true_c(w.sim, 0) > limit_c - 4,
       "%s: up again where the air is cooler: %+.2f K, at %.1f C", b->key, cold,
       virtual_world_true_c(w.sim, 0));
    end_job(child);
    run_s(1200);
    ok(!limit_claim(0, "limit temperature") && in_force(0) == b->default_mw,
       "%s: without a job it is let go", b->key);
    end_scene();
}

/* A person's lower cap hides the limit's for half an hour, and ends. */
static void other_ends(size_t i)
{
    const struct plant_board *b = plant_board_find(hot[i].model);
    char boards[80], policy[160], name[80];
    double limit_c = hot[i].limit_c;
    uint64_t id = 0;
    uw_error err = {""};

    (void)snprintf(boards, sizeof boards, "boards: [{model: %s, count: 1}]\n", b->key);
    (void)snprintf(name, sizeof name, "%s under %g C, beside a cap that ends", b->key,
                   limit_c);
    heat_policy(policy, sizeof policy, limit_c, "");
    if (!begin_scene(name, boards, policy))
        return;
    virtual_world_set_ambient(w.sim, 0, b->ambient_c + 10);
    struct loop_child *child = run_job("0", NULL);
    run_s(1800);
    const struct claim *c = limit_claim(0, "limit temperature");
    uint32_t heat_mw = c ? c->mw : 0;
    uint32_t other_mw = heat_mw / 100 * 90 < b->min_mw ? b->min_mw : heat_mw / 100 * 90;
    ok(heat_mw && claim(&root, "0", CLAIM_NAMED, other_mw, 7200, &id, &err) == 0,
       "%s: a cap below the limit's %.0f W: %s", b->key, w_of_mw(heat_mw), err.text);
    run_s(1800);
    c = limit_claim(0, "limit temperature");
    ok(c && c->mw >= other_mw && in_force(0) == other_mw, "%s: it hides the limit's",
       b->key);
    (void)node_withdraw(w.node, &root, id, &err);
    double over_k = hottest(1200) - limit_c;
    printf("# %+.2f K at most\n", over_k);
    ok(over_k <= 2 && limit_claim(0, "limit temperature"),
       "%s: its end is no overshoot: %+.2f K", b->key, over_k);
    end_job(child);
    end_scene();
}

static void heats(void)
{
    for (size_t i = 0; i < n_elements(hot); i++) {
        warmer(i);
        other_ends(i);
    }
}

/* The lowest of all wins. */
static void lowest(void)
{
    uint64_t id = 0;
    uw_error err;
    char policy[400];

    heat_policy(policy, sizeof policy, 55,
                "hard: true\n"
                "rules:\n  - {name: fuse, when: job.age > 30 min and job.age < 40 min,\n"
                "     for: 0 s, release: 0 s, kind: hard, cap: 160 W}\n");
    if (!begin_scene("beside a rule, a budget and a person", NULL, policy))
        return;
    struct loop_child *child = run_job("0", NULL);
    run_s(1200);
    const struct claim *c = limit_claim(0, "limit temperature");
    uint32_t heat_mw = c ? c->mw : 0;
    ok(c && in_force(0) == heat_mw && heat_mw < 280000 && heat_mw > 165000,
       "the limit alone: %u mW", heat_mw);
    w.config.budget_mw = 4 * 290000;
    ok(reload(&err) == 0, "a budget above it: %s", err.text);
    run_s(30);
    ok(in_force(0) == heat_mw && limit_claim(0, "limit temperature"), "changes nothing");
    ok(claim(&root, "0", CLAIM_NAMED, heat_mw - 5000, 3600, &id, &err) == 0,
       "a person's");
    run_s(60);
    ok(in_force(0) == heat_mw - 5000, "the lower one of a person: %u mW", in_force(0));
    run_s(900 - 1200 + 1800 - 390);
    run_s(60);
    ok(in_force(0) == 160000, "the rule's, lower than both: %u mW", in_force(0));
    ok(node_withdraw(w.node, &root, id, &err) == 0, "the person's ends");
    run_s(900);
    c = limit_claim(0, "limit temperature");
    ok(c && in_force(0) == c->mw && in_force(0) > 165000,
       "and the rule: the limit's again: %u mW", in_force(0));
    ok(node_withdraw(w.node, &root, c->id, &err) == -EPERM &&
           strstr(err.text, "a limit of the policy"),
       "nobody withdraws it: %s", err.text);
    end_job(child);
    end_scene();
}

/* Events of the ledger with this text. */
static int events(const char *like)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    int n = -1;

    if (sqlite3_open(w.config.ledger.path, &db) == SQLITE_OK &&
        sqlite3_prepare_v2(db,
                           "SELECT count(*) FROM event WHERE kind = 'limit' AND text "
                           "LIKE ?",
                           -1, &st, NULL) == SQLITE_OK &&
        sqlite3_bind_text(st, 1, like, -1, SQLITE_STATIC) == SQLITE_OK &&
        sqlite3_step(st) == SQLITE_ROW)
        n = sqlite3_column_int(st, 0);
    (void)sqlite3_finalize(st);
    (void)sqlite3_close(db);
    return n;
}

/* What a follower is told of limits from a moment on. */
static struct {
    unsigned n;
    struct limits_event last;
} followed;

static void on_limit(enum node_event event, const void *what, void *user)
{
    (void)user;
    if (event != NODE_EVENT_LIMIT)
        return;
    followed.n++;
    followed.last = *(const struct limits_event *)what;
}

/* A reload without the limit, which board 0 alone had been told of in state `was`. */
static void taken_away(enum limit_state was, const char *text)
{
    uw_error err;

    memset(&followed, 0, sizeof followed);
    node_listen(w.node, on_limit, NULL);
    is_int(limits()->row[LIMIT_TEMPERATURE][0].state, was, "the limit is there");
    write_policy("policy: 1\n");
    ok(reload(&err) == 0, "no limits: %s", err.text);
    is_int(followed.n, 1, "one event of limits");
    ok(followed.last.board == 0 && followed.last.state == LIMIT_FREE &&
           followed.last.cap_mw == 0,
       "of that board, which is free");
    is_str(followed.last.text, text, "its text");
    run_s(10);
    ok(!limit_claim(0, "limit temperature") && limits()->ask.temperature_c <= 0,
       "no claim is left");
    ok(reload(&err) == 0, "again: %s", err.text);
    is_int(followed.n, 1, "nothing more is told");
}

static void not_held(void)
{
    char policy[160];

    heat_policy(policy, sizeof policy, 45, "");
    if (!begin_scene("a minimum that is too hot", NULL, policy))
        return;
    struct loop_child *child = run_job("0", NULL);
    run_s(1200);
    uint64_t before = writes(0);
    ok(limits()->row[LIMIT_TEMPERATURE][0].state == LIMIT_SHORT && in_force(0) == 150000,
       "said, at the minimum");
    run_s(3600);
    ok(writes(0) == before, "and nothing is written any more");
    is_int(events("%takes effect%"), 1, "the ledger has its begin once");
    is_int(events("%above the limit%"), 1, "and once that it is not held");
    is_int(events("%"), 2, "and nothing else");
    taken_away(LIMIT_SHORT,
               "limit temperature: no longer in effect: removed from the policy");
    end_job(child);
    end_scene();
}

/* A cool board whose temperature is unknown has no cap for a minute. */
static void silent(void)
{
    char policy[160];

    heat_policy(policy, sizeof policy, 100, "");
    if (!begin_scene("a cool board that falls silent", NULL, policy))
        return;
    run_s(30);
    fault("0 lost");
    run_s(60);
    ok(!limit_claim(0, "limit temperature"), "no cap");
    is_int(events("%the temperature is unknown%"), 1, "the ledger has it once");
    taken_away(LIMIT_UNKNOWN, "limit temperature: removed from the policy");
    end_scene();
}

/* A board that does not answer; a daemon that ends and comes back; reloads. */
static void unknown_and_reloads(void)
{
    char policy[160];
    uw_error err;

    heat_policy(policy, sizeof policy, 55, "");
    if (!begin_scene("a silent board, a restart, a reload", NULL, policy))
        return;
    struct loop_child *child = run_job("0", NULL);
    run_s(900);
    const struct claim *c = limit_claim(0, "limit temperature");
    uint32_t was = c ? c->mw : 0;
    ok(was > 150000, "acts: %u mW", was);
    fault("0 lost");
    run_s(40);
    c = limit_claim(0, "limit temperature");
    ok(c && c->mw == was && limits()->row[LIMIT_TEMPERATURE][0].state == LIMIT_UNKNOWN &&
           limits()->row[LIMIT_TEMPERATURE][1].state == LIMIT_FREE,
       "the board is lost: its claim stays, %u mW", c ? c->mw : 0);
    run_s(120);
    c = limit_claim(0, "limit temperature");
    ok(c && c->mw == 150000, "for its age limit, then the minimum: %u mW", c ? c->mw : 0);
    fault("0 found");
    run_s(600);
    c = limit_claim(0, "limit temperature");
    ok(c && c->mw > 160000 && in_force(0) == c->mw, "known again, up again: %u mW",
       c ? c->mw : 0);

    node_leave_caps(w.node);
    node_free(take(w.node));
    ok(start_node(), "a new daemon");
    double most_c = hottest(900);
    ok(most_c <= 57 && limit_claim(0, "limit temperature"), "holds it again: %.1f C",
       most_c);
    write_policy("policy: 1\nlimits: [{boards: all, temperature: 20 °C}]\n");
    ok(reload(&err) < 0 && strstr(err.text, "20 °C is outside 30..120 °C"), "refused: %s",
       err.text);
    run_s(30);
    ok(limit_claim(0, "limit temperature"), "the old one stays");
    taken_away(LIMIT_ACTS,
               "limit temperature: no longer in effect: removed from the policy");
    ok(in_force(0) == ORIGINAL_MW, "nothing stays capped");
    end_job(child);
    end_scene();
}

/* ---- beside a search ---- */

static const struct searches_view *search_of(uint64_t id)
{
    const struct node_view *v = node_look(w.node);

    for (size_t i = 0; i < v->n_jobs; i++)
        if (v->job[i].job->id == id)
            return &v->job[i].search;
    return NULL;
}

/* A job of board 0 with a search for `slowdown:1.05`. */
static struct loop_child *search_job(struct progress_page **ret_page, uint64_t *ret_id)
{
    const char *argv[] = {"underwatt-sim", "train",  "--workload",
                          "resnet50",      "--gpus", "0",
                          "--epochs",      "100000", NULL};
    char path[300];
    const char *env[] = {VIRTUAL_UID "=1000", path, NULL};
    struct loop_child_opts opts = {
        .argv = argv, .env = env, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    struct node_job ask = {
        .reg = {.source = JOB_REGISTERED, .name = "train", .uid = ANNA, .boards = 1},
        .search = true,
        .page_fd = -1};
    struct loop_child *child = NULL;
    uw_error err = {""};

    if (progress_page_new("/dev/shm", ret_page, NULL) < 0)
        abort();
    (void)snprintf(path, sizeof path, "UNDERWATT_PROGRESS=%s",
                   progress_page_path(*ret_page));
    (void)loop_child_new(w.loop, &opts, nobody_cares, NULL, &child, NULL);
    (void)goal_parse("slowdown:1.05", &ask.goal, NULL);
    ask.page_fd = open(progress_page_path(*ret_page), O_RDONLY | O_CLOEXEC);
    if (node_job_begin(w.node, &root, &ask, ret_id, &err) < 0)
        ok(false, "a job: %s", err.text);
    return child;
}

static void searches(void)
{
    struct progress_page *page = NULL;
    uint64_t id = 0;

    if (!begin_scene("a search under both limits", NULL,
                     "policy: 1\nlimits:\n  - {boards: all, temperature: 65 °C}\n"
                     "  - {node: true, rise: 1 W/s}\n"))
        return;
    run_s(30);
    struct loop_child *child = search_job(&page, &id);
    run_s(60);
    ok(search_of(id)->status == SEARCH_IS_RULED && limit_claim(0, "limit rise"),
       "it waits for the way up: %s", search_of(id)->state);
    for (int i = 0; i < 400 && !search_of(id)->report->holding; i++)
        run_s(5);
    run_s(1200);
    uint32_t held = search_of(id)->report->held_mw;
    ok(search_of(id)->report->holding && !limit_claim(0, "limit rise") &&
           !limit_claim(0, "limit temperature"),
       "then it searches, and holds %u mW", held);
    virtual_world_set_ambient(w.sim, 0, 44);
    run_s(900);
    const struct claim *c = limit_claim(0, "limit temperature");
    ok(c && c->mw < held && search_of(id)->status == SEARCH_IS_RULED,
       "in warm air it rests under %u mW: %s", c ? c->mw : 0, search_of(id)->state);
    unsigned windows = search_of(id)->report->windows;
    double steps = search_of(id)->report->saved.steps;
    run_s(1800);
    ok(search_of(id)->report->windows == windows &&
           search_of(id)->report->saved.steps <= steps + 1 &&
           search_of(id)->report->held_mw == held,
       "nothing is measured or compared, the hold stays");
    virtual_world_set_ambient(w.sim, 0, 30);
    run_s(1800);
    ok(search_of(id)->report->holding && search_of(id)->report->windows > windows &&
           in_force(0) >= held - 1000,
       "in cool air it goes on: %s, %u mW", search_of(id)->state, in_force(0));
    (void)node_job_end(w.node, &root, id, NULL);
    end_job(child);
    progress_page_free(page);
    end_scene();
}

/* argv[1]: only a job of these phases, as `load=57s,train`. */
int main(int argc, char **argv)
{
    log_set_level(LOG_LEVEL_ERROR);
    if (argc > 1) {
        pauses("h100", argv[1]);
        return done();
    }
    heats();
    lowest();
    not_held();
    silent();
    unknown_and_reloads();
    searches();
    rises();
    all_pauses();
    one_after_the_other();
    follows();
    without();
    return done();
}
