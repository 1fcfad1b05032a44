/* A budget over the boards of a node: at every write of a limit the sum of all that are
 * in force is looked at, as only the driver knows it.
 */
#include <errno.h>

#include "base/names.h"
#include "unit/caps/caps-scene.h"

enum { N = 4 };

static struct caps_conf conf = {.cls = {.first = 0.9, .floor = 0.5, .rate = 0.01}};

/* ---- what is in force, at each write ---- */

static struct {
    uint32_t mw[N];
    uint64_t most_mw; /* the sum is not to be above it … */
    bool on;          /* … from now on */
    unsigned writes, over;
    uint64_t worst_mw;
} wire;

static struct gpu_backend watched;

static void wire_look(void)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < N; i++)
        sum += wire.mw[i];
    if (wire.on && sum > wire.most_mw)
        wire.over++;
    if (wire.on && sum > wire.worst_mw)
        wire.worst_mw = sum;
}

static int watched_set(struct gpu_dev *dev, uint32_t mw, uw_error *err)
{
    int r = virtual_backend.set_limit(dev, mw, err);

    wire.writes++;
    if (r == 0)
        wire.mw[virtual_backend.info(dev)->index] = mw;
    wire_look();
    return r;
}

static void watch(uint32_t most_w)
{
    wire.on = true;
    wire.most_mw = W(most_w);
    wire.over = wire.writes = 0;
    wire.worst_mw = 0;
    wire_look();
}

static void is_kept(const char *name)
{
    ok(wire.over == 0, "%s: %u writes, at most %.0f of %.0f W in force", name,
       wire.writes, (double)wire.worst_mw / 1000, (double)wire.most_mw / 1000);
}

static struct scene *node_of(const char *name, uint32_t budget_w)
{
    watched = virtual_backend;
    watched.set_limit = watched_set;
    scene_backend = &watched;
    wire.on = false;
    for (size_t i = 0; i < N; i++)
        wire.mw[i] = W(300);
    scene_budget_mw = W(budget_w);
    return scene_new(name, N, &conf);
}

static void budget(struct scene *s, uint32_t w)
{
    budget_configure(s->budget, W(w));
    caps_configure(s->caps, &conf);
}

static void are_limits(struct scene *s, const double w[N], const char *name)
{
    bool good = true;

    for (size_t i = 0; i < N; i++)
        good = good && limit_of(s, i) == W(w[i]);
    if (!ok(good, "%s: %.0f, %.0f, %.0f, %.0f W", name, w[0], w[1], w[2], w[3]))
        for (size_t i = 0; i < N; i++) {
            struct caps_view v = look(s, i);
            printf("# board %zu: %u mW, %s, plan %u, target %u '%s'\n", i, limit_of(s, i),
                   names_word(NAMES_CAP_STATE, v.state), v.plan_mw, v.verdict.target_mw,
                   v.text);
        }
}

static const struct claim *claim_of_budget(struct scene *s, size_t board)
{
    struct caps_view v = look(s, board);

    for (size_t i = 0; i < v.claims->n; i++)
        if (v.claims->claim[i].source == CLAIM_OF_BUDGET)
            return &v.claims->claim[i];
    return NULL;
}

/* ---- */

static void test_life(void)
{
    struct scene *s = node_of("a budget's life", 800);
    struct caps_view v = look(s, 0);
    struct caps_budget_view b;
    uw_error err = {""};

    are_limits(s, (double[]){200, 200, 200, 200}, "equal shares");
    ok(v.claims->n == 1 && v.claims->claim[0].kind == CLAIM_HARD, "a hard claim each");
    is_str(v.claims->claim[0].who, "budget of this node", "… who");
    is_str(v.claims->claim[0].why, "800 W for 4 boards: an equal share", "… and why");
    budget_look(s->budget, &b);
    ok(b.budget_mw == W(800) && b.counted_mw == W(800) && b.least_mw == W(600) &&
           !b.is_short && !b.late,
       "all of it is granted");
    ok(caps_withdraw(s->caps, 0, v.claims->claim[0].id, &err) == -EPERM,
       "not withdrawn: %s", err.text);
    watch(1000);
    budget(s, 1000);
    pass(s, 1);
    are_limits(s, (double[]){250, 250, 250, 250}, "a higher one");
    is_kept("never above");
    wire.on = false;
    budget(s, 700);
    pass(s, 1);
    are_limits(s, (double[]){175, 175, 175, 175}, "a lower one");
    ok(budget_check(s->caps, N, W(599), &err) == -ERANGE, "too low a one: %s", err.text);
    budget(s, 0);
    pass(s, 1);
    are_limits(s, (double[]){300, 300, 300, 300}, "none");
    ok(look(s, 0).claims->n == 0 && look(s, 0).state == CAPS_FREE, "nothing is left");
    scene_free(s);
}

/* A claimant like any other, whose claims stay without it. */
static void test_freed(void)
{
    struct scene *s = node_of("a budget that is freed", 800);
    const struct claim *c = claim_of_budget(s, 2);
    uw_error err = {""};

    ok(c && c->admin && claim_is_at_once(c) && c->until_ns == CLAIM_FOREVER,
       "a claim at once, without an end");
    uint64_t id = c ? c->id : 0;
    budget(s, 720);
    pass(s, 1);
    c = claim_of_budget(s, 2);
    ok(c && c->id == id && c->mw == W(180), "another budget changes the same claim");
    unsigned claims = told(s, CAPS_EVENT_CLAIM);
    pass(s, 60);
    ok(told(s, CAPS_EVENT_CLAIM) == claims, "which is not stated anew without a change");
    ok(caps_withdraw(s->caps, 2, id, &err) == -EPERM &&
           strstr(err.text, "is the node's budget: budget.node in underwattd.yaml"),
       "%s", err.text);
    budget_free(take(s->budget));
    pass(s, 1);
    c = claim_of_budget(s, 2);
    ok(c && c->id == id && claim_of_budget(s, 0) && claim_of_budget(s, 3),
       "freed: its claims stay");
    are_limits(s, (double[]){180, 180, 180, 180}, "and so do the limits");
    scene_free(s);
}

/* Boards that take no more claims count at their most; the others share the rest. */
static void test_full(void)
{
    struct scene *s = node_of("a board that takes no more claims", 0);
    uint64_t last = 0;

    for (int i = 0; i < CLAIMS_MAX; i++)
        last = claim(s, 0, CLAIM_HARD, 300);
    budget(s, 800);
    pass(s, 1);
    ok(!claim_of_budget(s, 0), "there is no place for the budget's");
    are_limits(s, (double[]){300, 166, 166, 166}, "the others share the rest");
    withdraw(s, 0, last);
    pass(s, 1);
    are_limits(s, (double[]){200, 200, 200, 200}, "until there is one");
    scene_free(s);
}

static void test_others_claims(void)
{
    struct scene *s = node_of("with others' claims", 800);

    watch(800);
    uint64_t id = claim(s, 0, CLAIM_HARD, 160);
    claim(s, 1, CLAIM_NAMED, 190);
    pass(s, 60);
    are_limits(s, (double[]){160, 190, 200, 200}, "the lowest decides");
    withdraw(s, 0, id);
    pass(s, 1);
    are_limits(s, (double[]){200, 190, 200, 200}, "… then the share");
    is_kept("never above");
    scene_free(s);
}

static void test_wants(void)
{
    struct scene *s = node_of("another split", 800);
    const size_t board[2] = {1, 2};
    const uint32_t moved[2] = {W(170), W(230)}, back[2] = {W(230), W(170)},
                   more[2] = {W(200), W(231)};

    watch(800);
    caps_budget_want(s->caps, board, moved, 2, 7);
    pass(s, 1);
    are_limits(s, (double[]){200, 170, 230, 200}, "watts move");
    is_str(look(s, 2).claims->claim[0].why,
           "800 W for 4 boards: watts moved between the boards of the job",
           "… it says so");
    caps_budget_want(s->caps, board, back, 2, 7);
    pass(s, 1);
    are_limits(s, (double[]){200, 230, 170, 200}, "… the other way");
    caps_budget_want(s->caps, board, more, 2, 7);
    pass(s, 1);
    are_limits(s, (double[]){200, 200, 200, 200}, "more than the sum: equal shares");
    caps_budget_want(s->caps, board, moved, 2, 7);
    pass(s, 1);
    caps_budget_want(s->caps, board, NULL, 2, 0);
    pass(s, 1);
    are_limits(s, (double[]){200, 200, 200, 200}, "no more of it");
    is_kept("never above");
    scene_free(s);
}

/* The call that lowers a board fails. */
static void test_refused(void)
{
    struct scene *s = node_of("a board whose limit cannot be set", 1000);

    fault(s, "1 refuse for 20s");
    wire.on = false;
    budget(s, 800);
    pass(s, 1);
    are_limits(s, (double[]){200, 250, 200, 200}, "for a while the others wait for it");
    pass(s, 3);
    are_limits(s, (double[]){183, 250, 183, 183}, "then they make room");
    is_str(look(s, 0).claims->claim[0].why,
           "800 W for 4 boards: GPU 1 is not lowered and counts 250 W", "… and say why");
    watch(800);
    pass(s, 80);
    are_limits(s, (double[]){200, 200, 200, 200}, "until it is lowered");
    is_kept("never above meanwhile");
    scene_free(s);
}

/* Nobody raises others while an answer is due. */
static void test_lost(void)
{
    struct scene *s = node_of("a board that is lost", 800);
    const size_t board[2] = {0, 1};
    const uint32_t moved[2] = {W(230), W(170)};

    watch(800);
    fault(s, "1 lost for 20s");
    caps_budget_want(s->caps, board, moved, 2, 7);
    pass(s, 1.5);
    ok(limit_of(s, 0) <= W(200), "what is to come down does not: nothing goes up");
    ok(limit_of(s, 2) == W(166), "it counts at its most, others make room at once");
    pass(s, 5);
    caps_budget_want(s->caps, board, NULL, 2, 0);
    pass(s, 100);
    are_limits(s, (double[]){200, 200, 200, 200}, "it is back");
    is_kept("never above");
    scene_free(s);
}

static void test_release(void)
{
    struct scene *s = node_of("a board that is released", 800);
    uw_error err = {""};

    watch(800);
    ok(caps_release(s->caps, 3, 0, scene_on_done, s, &err) == 0, "it is asked for");
    pass(s, 2);
    ok(s->done_r == 0, "it is let go: %s", s->done_text);
    are_limits(s, (double[]){166, 166, 166, 300}, "the others have made room before");
    is_str(look(s, 0).claims->claim[0].why,
           "800 W for 4 boards: GPU 3 is released and counts 300 W", "they say why");
    ok(caps_take_back(s->caps, 3, &err) == 0, "it is taken back");
    pass(s, 2);
    are_limits(s, (double[]){200, 200, 200, 200}, "and lowered before they go up");
    is_kept("never above");
    scene_free(s);
}

/* Its limit may be another when its time is over: until the actuator has looked it counts
 * at its most.
 */
static void test_release_over(void)
{
    scene_found_w = 250;
    struct scene *s = node_of("a board that was reset comes back by itself", 800);
    uw_error err = {""};

    for (size_t i = 0; i < N; i++)
        wire.mw[i] = W(200);
    pass(s, 2);
    are_limits(s, (double[]){200, 200, 200, 200}, "equal shares");
    (void)caps_release(s->caps, 3, 20 * NS_PER_S, scene_on_done, s, &err);
    pass(s, 19.99);
    fault(s, "3 limit 300W");
    wire.mw[3] = W(300);
    watch(800);
    pass(s, 5);
    are_limits(s, (double[]){200, 200, 200, 200},
               "it is lowered before the others go up");
    is_kept("never above");
    scene_found_w = 0;
    scene_free(s);
}

/* Where the others cannot make room it is let go all the same, as was asked. */
static void test_release_short(void)
{
    struct scene *s = node_of("a board that is released, and no room", 700);
    struct caps_budget_view b;
    uw_error err = {""};

    (void)caps_release(s->caps, 3, 0, scene_on_done, s, &err);
    pass(s, 2);
    are_limits(s, (double[]){150, 150, 150, 300}, "the others are at their minimums");
    budget_look(s->budget, &b);
    ok(b.is_short && b.counted_mw == W(750), "… and it is said");
    ok(strstr(look(s, 0).claims->claim[0].why, "too small: the board's minimum") != NULL,
       "… in the claims");
    scene_free(s);
}

/* Nothing is known of boards that have said nothing so far. */
static void test_silent(void)
{
    struct caps_budget_view b;

    scene_silent = 1;
    struct scene *s = node_of("a board that says nothing from the start", 800);
    budget_look(s->budget, &b);
    ok(!b.unknown && b.counted_mw == W(798), "it counts at what the others take: %ju mW",
       (uintmax_t)b.counted_mw);
    are_limits(s, (double[]){0, 166, 166, 166}, "who share the rest");
    scene_free(s);
    scene_silent = N;
    s = node_of("all of them", 800);
    budget_look(s->budget, &b);
    ok(b.budget_mw == W(800) && b.unknown, "what may be in force is unknown, not 0");
    ok(budget_check(s->caps, N, W(800), NULL) == 0, "no reason to refuse a budget");
    scene_silent = 0;
    scene_free(s);
}

static void test_other_writer(void)
{
    struct scene *s = node_of("another writer", 800);

    conf.yield_ns = 20 * NS_PER_S;
    budget(s, 800);
    fault(s, "0 limit 280W");
    wire.mw[0] = W(280);
    pass(s, 6);
    ok(look(s, 0).state == CAPS_YIELDED, "theirs stays");
    ok(limit_of(s, 1) <= W(167) && limit_of(s, 3) <= W(167), "the others make room");
    watch(800);
    pass(s, 40);
    are_limits(s, (double[]){200, 200, 200, 200}, "then it is taken back");
    is_kept("never above from then on");
    conf.yield_ns = 0;
    scene_free(s);
}

/* Found at other limits than the default: more than that is of no use. */
static void test_originals(void)
{
    scene_found_w = 180;
    struct scene *s = node_of("originals under a share", 800);

    for (size_t i = 0; i < N; i++)
        wire.mw[i] = W(180);
    ok(look(s, 0).state == CAPS_FREE, "nothing is held");
    are_limits(s, (double[]){180, 180, 180, 180}, "they stay");
    budget(s, 640);
    pass(s, 1);
    are_limits(s, (double[]){160, 160, 160, 160}, "a lower budget lowers them");
    scene_found_w = 0;
    scene_free(s);
}

static void test_dry_run(void)
{
    conf.dry_run = true;
    struct scene *s = node_of("a dry run", 800);

    pass(s, 10);
    are_limits(s, (double[]){300, 300, 300, 300}, "nothing is written");
    ok(look(s, 0).verdict.target_mw == W(200), "but decided");
    conf.dry_run = false;
    scene_free(s);
}

/* The actuator dies, restores, and comes back. */
static void test_actuator(void)
{
    struct scene *s = node_of("the actuator dies", 800);
    const size_t board[2] = {0, 1};
    const uint32_t moved[2] = {W(230), W(170)};

    caps_budget_want(s->caps, board, moved, 2, 7);
    pass(s, 1);
    scene_no_actuator(s);
    pass(s, 10);
    are_limits(s, (double[]){300, 300, 300, 300}, "the originals are back");
    scene_actuator(s);
    pass(s, 0.5);
    watch(800);
    are_limits(s, (double[]){230, 170, 200, 200}, "and the shares with a new one");
    pass(s, 5);
    is_kept("never above from then on");
    scene_free(s);
}

int main(void)
{
    test_life();
    test_freed();
    test_full();
    test_others_claims();
    test_wants();
    test_refused();
    test_lost();
    test_release();
    test_release_over();
    test_release_short();
    test_silent();
    test_other_writer();
    test_originals();
    test_dry_run();
    test_actuator();
    return done();
}
