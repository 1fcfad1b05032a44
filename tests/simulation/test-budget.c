/* A node's budget in virtual time, in random worlds: searches, claims, other splits and
 * other budgets come and go while boards refuse, hang or vanish and the daemon is killed
 * and started anew.  At every write of a limit, whoever makes it, the sum of all that are
 * in force is looked at as only the driver knows it: once the budget was kept it stays
 * kept, until it is lowered or there is no room for all minimums.
 *
 * In every third world root's actuator.yaml has a range, which may end under the
 * originals; when the daemon is away its actuator may be started anew with another.
 * Nothing is ever asked of the actuator that the range forbids.
 *
 * Left out is what no daemon can hold: others' limits, an actuator that dies (its keeper
 * restores at once), a daemon that is away for longer than the grace, and a board that
 * hangs or falls off the bus while none is there (the actuator restores it).  One board
 * is in trouble at a time: for two there may be no room.
 *
 * Usage: test-budget [SEED [ROUNDS]]
 */
#pragma GCC diagnostic ignored "-Wunused-function" /* it leaves out much of the scene */
#include "simulation/chaos-scene.h"

#include "base/names.h"
#include "node/node-inside.h"

enum { N = 4, MOST = 8 };

static struct {
    uint32_t mw[MOST];
    bool on; /* it was kept, and has to be from now on */
    unsigned long writes, looked;
    uint32_t budget_mw;
    uint64_t lost_ns; /* a board is, until then */
    struct round *round;
    struct core_rules rules; /* of the actuator; nothing set: none */
    unsigned long ranges;    /* lives of an actuator that has some */
} wire;

static struct gpu_backend watched;

static bool has_range(void)
{
    return wire.rules.from.mw || wire.rules.to.mw;
}

/* The least that boards come to. */
static uint32_t least_mw(void)
{
    return N * (wire.rules.from.mw > MIN_MW ? wire.rules.from.mw : MIN_MW);
}

static void new_range(struct round *r)
{
    uint32_t from = (uint32_t)(140 + below(r, 60)) * 1000;

    wire.rules = (struct core_rules){.from.mw = from};
    if (below(r, 2))
        wire.rules.to.mw = from + (uint32_t)(10 + below(r, 60)) * 1000;
    wire.ranges++;
}

static uint64_t sum_in_force(void)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < N; i++)
        sum += wire.mw[i];
    return sum;
}

static int watched_set(struct gpu_dev *dev, uint32_t mw, uw_error *err)
{
    uint32_t index = virtual_backend.info(dev)->index;
    int r = virtual_backend.set_limit(dev, mw, err);
    struct caps_budget_view v;

    wire.writes++;
    if (r != 0)
        return r;
    wire.mw[index] = mw;
    if (wire.round->node && wire.round->node->caps) {
        budget_look(wire.round->node->budget, &v);
        wire.on = wire.on && !v.is_short; /* minimums and what does not come down */
    }
    wire.looked += wire.on;
    if (getenv("CHAOS_LOG"))
        log_event(LOG_LEVEL_DEBUG, LOG_EVENT_CAP,
                  "at=%.3f gpu=%u mw=%u sum=%" PRIu64 " on=%d",
                  s_between(1000 * NS_PER_S, now_of(wire.round)), index, mw,
                  sum_in_force(), wire.on);
    if (wire.on && sum_in_force() > wire.budget_mw)
        bad(wire.round, "%u mW on board %u: %" PRIu64 " of %u mW are in force", mw, index,
            sum_in_force(), wire.budget_mw);
    return r;
}

/* ---- what happens ---- */

static void do_claim(struct round *r)
{
    static const enum claim_kind kinds[] = {CLAIM_SOFT, CLAIM_NAMED, CLAIM_HARD};
    char name[24];
    struct node_claim ask = {.board = name,
                             .kind = kinds[below(r, 3)],
                             .cap = {.mw = (uint32_t)(150 + below(r, 100)) * 1000},
                             .ttl_ns = ns_of_s(1 + (double)below(r, 30)),
                             .why = "a test"};

    (void)snprintf(name, sizeof name, "%zu", (size_t)below(r, N));
    if (r->node)
        (void)node_claim(r->node, &root, &ask, NULL, NULL);
}

static void do_job(struct round *r)
{
    struct run *run = &r->run[below(r, RUNS)];

    if (run->child)
        end_run(r, run);
    else if (r->node)
        begin_run(r, run);
}

/* Two boards share out what they have in another way, as slack asks for it. */
static void do_want(struct round *r)
{
    size_t board[2] = {below(r, N), 0};
    uint32_t mw[2];
    struct caps_view v;

    if (!r->node || !r->node->caps)
        return;
    board[1] = (board[0] + 1 + below(r, N - 1)) % N;
    caps_look(r->node->caps, board[0], &v);
    uint32_t move = (uint32_t)below(r, 40) * 1000;
    mw[0] = v.share_mw - (move < v.share_mw ? move : 0);
    mw[1] = v.share_mw + move;
    caps_budget_want(r->node->caps, board, below(r, 4) ? mw : NULL, 2,
                     1 + (unsigned)below(r, 3));
}

static void do_budget(struct round *r)
{
    uint32_t mw = (uint32_t)(600 + below(r, 450)) * 1000;
    uw_error err = {""};

    if (!r->node)
        return;
    if (mw < least_mw())
        mw = least_mw();
    r->config.budget_mw = mw;
    if (node_configure(r->node, &r->config, &err) < 0)
        bad(r, "a budget of %u mW is refused: %s", mw, err.text);
    if (mw < wire.budget_mw)
        wire.on = false;
    wire.budget_mw = mw;
}

static void do_kill(struct round *r)
{
    if (!r->node || r->hung || now_of(r) < wire.lost_ns)
        return;
    kill_node(r);
    r->back_ns = now_of(r) + ns_of_s(0.1 + 4 * rng_uniform(&r->g));
    /* Root stops the actuator, which restores all, and starts one with another range. */
    if (has_range() && below(r, 3) == 0) {
        wire.on = false;
        stop_guard(r);
        new_range(r);
        start_guard(r);
        if (wire.budget_mw < least_mw())
            r->config.budget_mw = wire.budget_mw = least_mw();
    }
}

/* Shorter than a lease. */
static void do_stop(struct round *r)
{
    if (!r->node || now_of(r) < wire.lost_ns)
        return;
    r->service.stopped = true;
    pass(r, 0.1 + 1.2 * rng_uniform(&r->g));
    r->service.stopped = false;
    pass(r, 0.6); /* it renews before the next stop */
}

static void do_fault(struct round *r)
{
    static const char *const kinds[] = {"lost", "refuse", "hang"};
    unsigned s = 1 + (unsigned)below(r, 20);
    size_t kind = below(r, r->may_hang && !r->hung ? 3 : 2);
    char text[64];

    if (r->hung || (kind != 1 && !r->node) || now_of(r) < r->fault_ns)
        return;
    r->fault_ns = now_of(r) + (s + 1) * NS_PER_S;
    if (kind == 0)
        wire.lost_ns = r->fault_ns;
    (void)snprintf(text, sizeof text, "%u %s for %us", (unsigned)below(r, N), kinds[kind],
                   s);
    r->hung = r->hung || kind == 2;
    fault(r, text);
}

static void do_release(struct round *r)
{
    char name[24];

    (void)snprintf(name, sizeof name, "%zu", (size_t)below(r, N));
    if (r->node && node_take_back(r->node, &root, name, NULL) < 0)
        (void)node_release(r->node, &root, name, 1 + below(r, 20 * NS_PER_S), NULL, NULL,
                           NULL);
}

static const struct event {
    void (*fn)(struct round *);
    const char *name;
} events[] = {
    {do_claim, "claim"}, {do_claim, "claim"},   {do_job, "job"},   {do_want, "split"},
    {do_want, "split"},  {do_want, "split"},    {do_kill, "kill"}, {do_budget, "budget"},
    {do_fault, "fault"}, {do_release, "board"}, {do_stop, "stop"},
};

static void happen(struct round *r)
{
    const struct event *e = &events[below(r, n_elements(events))];

    if (getenv("CHAOS_LOG"))
        printf("# %.3f s: %s\n", s_between(1000 * NS_PER_S, now_of(r)), e->name);
    e->fn(r);
}

static void come_back(struct round *r)
{
    if (!r->node && now_of(r) >= r->back_ns)
        begin_life(r);
}

/* ---- what must hold ---- */

/* Has it been reached?  From then on each write is looked at. */
static void look(struct round *r)
{
    struct caps_budget_view v;

    if (!r->node || !r->node->caps)
        return;
    for (size_t i = 0; i < N; i++) {
        struct caps_view cap;
        caps_look(r->node->caps, i, &cap);
        if (strstr(cap.text, "the actuator's configuration"))
            bad(r, "board %zu: %s", i, cap.text);
    }
    budget_look(r->node->budget, &v);
    if (v.is_short)
        wire.on = false; /* minimums, and what does not come down, are above it */
    else if (v.budget_mw == wire.budget_mw && v.counted_mw <= v.budget_mw)
        wire.on = true;
    for (size_t i = 0; wire.on && i < N; i++)
        if (wire.mw[i] < MIN_MW)
            bad(r, "board %zu: %u mW", i, wire.mw[i]);
    if (wire.on && sum_in_force() > wire.budget_mw)
        bad(r, "%" PRIu64 " of %u mW are in force", sum_in_force(), wire.budget_mw);
}

/* Those whose programs ended while no daemon was there keep their searches' caps. */
static void end_jobs(struct round *r)
{
    const struct node_view *v = node_look(r->node);
    uint64_t ids[KNOWN_MAX];
    size_t n = 0;

    for (size_t i = 0; i < v->n_jobs && n < KNOWN_MAX; i++)
        ids[n++] = v->job[i].job->id;
    for (size_t i = 0; i < n; i++)
        (void)node_job_end(r->node, &root, ids[i], NULL);
}

/* Everything is quiet: all of the budget is granted. */
static void last_look(struct round *r)
{
    struct caps_budget_view v;

    for (size_t i = 0; i < RUNS; i++)
        end_run(r, &r->run[i]);
    r->back_ns = 0;
    come_back(r);
    end_jobs(r);
    for (size_t i = 0; i < N; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "%zu", i);
        (void)node_take_back(r->node, &root, name, NULL);
        caps_budget_want(r->node->caps, &i, NULL, 1, 0);
    }
    for (int i = 0; i < 100; i++) {
        pass(r, 1);
        look(r);
    }
    budget_look(r->node->budget, &v);
    uint64_t use = 0, granted = 0;
    bool gaps = false; /* who may not have more leaves watts that nobody may have */
    for (size_t i = 0; i < N; i++) {
        struct caps_view cap;
        caps_look(r->node->caps, i, &cap);
        use += cap.bounds.original_mw;
        granted += cap.plan_mw;
        bool top = cap.plan_mw == cap.bounds.max_mw && wire.rules.to.mw;
        gaps = gaps || (top && cap.plan_mw < cap.bounds.original_mw);
        if (cap.plan_mw > cap.bounds.max_mw && cap.plan_mw < cap.bounds.original_mw)
            bad(r, "board %zu: %u mW are planned, root's range ends at %u", i,
                cap.plan_mw, cap.bounds.max_mw);
        if (cap.plan_mw != wire.mw[i] && !r->bad[0])
            bad(r, "board %zu: %u mW in force, %u planned, original %u (%s: %s)", i,
                wire.mw[i], cap.plan_mw, cap.bounds.original_mw,
                names_word(NAMES_CAP_STATE, cap.state), cap.text);
    }
    if (!gaps && granted + N * 1000 <= (use < wire.budget_mw ? use : wire.budget_mw))
        bad(r, "%" PRIu64 " of %u mW granted at the end", granted, wire.budget_mw);
}

static void play(struct round *r, uint64_t seed)
{
    for (size_t i = 0; i < N; i++)
        wire.mw[i] = ORIGINAL_MW;
    wire.on = false;
    wire.lost_ns = 0;
    wire.round = r;
    wire.budget_mw = 800000;
    wire.rules = (struct core_rules){0};
    if (seed % 3 == 0) { /* open_round() begins the same numbers anew */
        rng_init(&r->g, seed + 1);
        new_range(r);
    }
    scene_rules = &wire.rules;
    if (!open_round(r, seed, N))
        bad(r, "no world");
    r->config.budget_mw = wire.budget_mw;
    begin_life(r);
    pass(r, 2);
    for (int i = 0; i < EVENTS && !r->bad[0]; i++) {
        look(r);
        happen(r);
        if (below(r, 3) == 0)
            continue; /* several at once */
        pass(r, 0.02 + (below(r, 3) ? 0.3 : 4) * rng_uniform(&r->g));
        come_back(r);
    }
    if (!r->bad[0] && !r->hung) /* a hung call has moved the boards' clocks on */
        last_look(r);
    wire.on = false;
    close_round(r);
}

int main(int argc, char **argv)
{
    static struct round r;
    uint64_t seed = 1, rounds = getenv("UNDERWATT_SANITIZED") ? 50 : 200;
    unsigned long lives = 0;

    if ((argc > 1 && parse_u64(argv[1], &seed, NULL)) ||
        (argc > 2 && parse_u64(argv[2], &rounds, NULL)))
        return 2;
    log_set_level((enum log_level)(getenv("CHAOS_LOG") ? LOG_LEVEL_DEBUG : 0));
    watched = virtual_backend;
    watched.set_limit = watched_set;
    scene_backend = &watched;
    for (uint64_t i = 0; i < rounds; i++) {
        play(&r, seed + i);
        lives += r.life;
        if (r.bad[0])
            ok(false, "seed %" PRIu64 ": %s", seed + i, r.bad);
    }
    ok(wire.looked > 10 * rounds && lives > rounds && wire.ranges >= rounds / 3,
       "%" PRIu64 " rounds from seed %" PRIu64
       ": %lu writes, %lu of them looked at, %lu lives of the daemon, %lu of an actuator "
       "with a range",
       rounds, seed, wire.writes, wire.looked, lives, wire.ranges);
    return done();
}
