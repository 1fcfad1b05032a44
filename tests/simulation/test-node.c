/* The node under random claims, kills, ends, faults and driver reloads, in virtual time
 * from a printed seed: the limit in force is always what the claims that live ask for,
 * no claim outlives its time, originals come back, the ledger stays readable; and a long
 * quiet time with flat memory and descriptors.
 *
 * Usage: test-node [SEED [ROUNDS [DAYS]]]
 */
#include <malloc.h>

#include "base/names.h"
#include "base/rng.h"
#include "open-files.h"
#include "unit/node/node-scene.h"

enum { CLAIMS = 64, CALM_S = 16, TAKES_S = 5 };

struct mine {
    uint64_t id; /* 0: none */
    size_t board;
    uint32_t mw;
    uint64_t until_ns;
};

static struct {
    struct rng rng;
    struct mine claim[CLAIMS];
    uint64_t calm_ns[BOARDS];  /* no fault of it was under way since … */
    uint64_t moved_ns[BOARDS]; /* … and what is wanted has not changed since */
    void *lib;                 /* the tester's own way to the boards */
    unsigned checks, starts, kills, ends, faults, claims, over;
    unsigned wrong;
} c;

static const struct node_who root = {
    .admin = true, .may_claim = true, .name = "user root"};

static uint64_t now(void)
{
    return loop_now_ns(w.loop);
}

/* What the board itself says, past the node; 0: nothing. */
static uint32_t truth(size_t board)
{
    struct gpu_sample s = {0};

    if (virtual_backend.sample(virtual_backend.at(c.lib, board), GPU_HAS_ENFORCED, &s,
                               NULL) < 0)
        return 0;
    return s.enforced_mw;
}

static uint32_t wanted(size_t board)
{
    uint32_t mw = ORIGINAL_MW;

    for (size_t i = 0; i < CLAIMS; i++) {
        const struct mine *m = &c.claim[i];
        if (m->id && m->board == board && m->until_ns > now() && m->mw < mw)
            mw = m->mw;
    }
    return mw;
}

static void drop_over(void)
{
    for (size_t i = 0; i < CLAIMS; i++) {
        struct mine *m = &c.claim[i];
        if (m->id && m->until_ns <= now()) {
            if (m->until_ns > c.moved_ns[m->board])
                c.moved_ns[m->board] = m->until_ns;
            m->id = 0;
            c.over++;
        }
    }
}

static void complain(size_t board, uint32_t got, uint32_t want)
{
    const struct node_view *v = w.node ? node_look(w.node) : NULL;

    if (c.wrong++ > 5)
        return;
    printf("# %.1f s: board %zu has %u mW, its claims want %u mW\n", s_of_ns(now()),
           board, got, want);
    if (v && v->n_boards > board)
        printf("#   state %s, target %u, ramp %u, text '%s', failures %u\n",
               names_word(NAMES_CAP_STATE, v->board[board].cap.state),
               v->board[board].cap.verdict.target_mw, v->board[board].cap.ramp_mw,
               v->board[board].cap.text, (unsigned)v->board[board].failures);
}

/* What the API asks, of boards that are closed, too: shown from before, without a
 * sampler. */
static void ask_history(void)
{
    struct meter_power of[256];

    for (size_t i = 0; w.node && i <= BOARDS; i++) {
        struct node_history h = {.buf = of, .room = n_elements(of)};
        if (node_history(w.node, i, &h, NULL) < 0 || (i == BOARDS && h.n > 0))
            c.wrong++;
    }
}

static void check(void)
{
    drop_over();
    ask_history();
    for (size_t i = 0; i < BOARDS; i++) {
        uint64_t since = c.calm_ns[i];
        if (now() < since + CALM_S * NS_PER_S ||
            now() < c.moved_ns[i] + TAKES_S * NS_PER_S)
            continue;
        uint32_t want = w.node ? wanted(i) : ORIGINAL_MW, got = truth(i);
        c.checks++;
        if (got != want)
            complain(i, got, want);
    }
}

static void stir(uint64_t for_ns)
{
    for (size_t i = 0; i < BOARDS; i++)
        if (now() + for_ns > c.calm_ns[i])
            c.calm_ns[i] = now() + for_ns;
}

/* ---- what happens ---- */

static void make_claim(void)
{
    struct mine *m = NULL;
    uint64_t ttl_s = rng_below(&c.rng, 10) == 0 ? 0 : 5 + rng_below(&c.rng, 120);
    char board[4];
    uw_error err;

    for (size_t i = 0; i < CLAIMS && !m; i++)
        m = c.claim[i].id ? NULL : &c.claim[i];
    if (!m)
        return;
    m->board = rng_below(&c.rng, BOARDS);
    m->mw = 150000 + 1000 * (uint32_t)rng_below(&c.rng, 150);
    (void)snprintf(board, sizeof board, "%zu", m->board);
    int r = claim(&root, board, CLAIM_HARD, m->mw, (double)ttl_s, &m->id, &err);
    if (r < 0) { /* no boards now, or the board has all it can have */
        m->id = 0;
        if (r != -EAGAIN && r != -E2BIG && r != -ENOENT && r != -ENOTSUP)
            ok(false, "a claim fails: %d %s", r, err.text);
        return;
    }
    m->until_ns = ttl_s ? now() + ttl_s * NS_PER_S : UINT64_MAX;
    c.moved_ns[m->board] = now();
    c.claims++;
}

static void withdraw(void)
{
    struct mine *m = &c.claim[rng_below(&c.rng, CLAIMS)];
    uw_error err = {""};

    drop_over();
    if (!m->id || !node_look(w.node)->n_boards)
        return;
    int r = node_withdraw(w.node, &root, m->id, &err);
    if (r < 0)
        ok(false, "claim %" PRIu64 " cannot be withdrawn: %s", m->id, err.text);
    c.moved_ns[m->board] = now();
    m->id = 0;
}

/* The virtual actuator ends with its node: unlike the service it cannot go on restoring a
 * board that is lost.
 */
static bool calm(void)
{
    for (size_t i = 0; i < BOARDS; i++)
        if (now() < c.calm_ns[i])
            return false;
    return true;
}

static void restart(bool orderly)
{
    if (!calm())
        return;
    if (orderly) {
        (void)node_end(w.node, on_node_end, NULL);
        for (unsigned i = 0; i < 20 && !w.ended; i++)
            run_s(0.5);
        if (!w.ended)
            ok(false, "the node does not end");
    } else { /* its rows of the last moments may be lost: not the claims */
        run_s(0.05);
    }
    node_free(take(w.node));
    c.kills += !orderly;
    c.ends += orderly;
    stir(0);
    if (rng_below(&c.rng, 3) == 0) { /* away for a while: the originals are back */
        for (size_t i = 0; i < BOARDS; i++)
            c.calm_ns[i] = now();
        run_s(CALM_S + 1 + (double)rng_below(&c.rng, 20));
        check();
    }
    if (!start_node())
        ok(false, "the node does not start");
    c.starts++;
    stir(0);
}

static void make_fault(void)
{
    static const char *const kinds[] = {"lost", "refuse", "stuck"};
    unsigned for_s = 1 + (unsigned)rng_below(&c.rng, 20);
    char text[40];

    c.faults++;
    if (rng_below(&c.rng, 5) == 0) {
        fault(rng_below(&c.rng, 2) ? "reload" : "unload for 3s");
        stir(20 * NS_PER_S);
        return;
    }
    size_t board = rng_below(&c.rng, BOARDS);
    (void)snprintf(text, sizeof text, "%zu %s for %us", board,
                   kinds[rng_below(&c.rng, n_elements(kinds))], for_s);
    fault(text);
    uint64_t calm = now() + (for_s + 35) * NS_PER_S; /* tried again every half minute */
    if (calm > c.calm_ns[board])
        c.calm_ns[board] = calm;
}

static void round_of(void)
{
    switch (rng_below(&c.rng, 12)) {
    case 0:
        restart(false);
        break;
    case 1:
        restart(true);
        break;
    case 2:
        make_fault();
        break;
    case 3:
    case 4:
        withdraw();
        break;
    default:
        make_claim();
        break;
    }
    run_s(1 + (double)rng_below(&c.rng, 20));
    check();
}

static void chaos(uint64_t seed, unsigned rounds)
{
    struct gpu_open_opts opts = {.clock = {clock_of, w.loop}, .backend_user = w.sim};

    rng_init(&c.rng, seed);
    ok(virtual_backend.open(&opts, &c.lib, NULL) == 0, "seed %" PRIu64, seed);
    ok(start_node(), "a node");
    stir(0);
    for (unsigned i = 0; i < rounds && c.wrong == 0; i++)
        round_of();
    ok(c.wrong == 0 && c.checks > rounds,
       "%u rounds: %u limits compared, %u claims (%u ran out), %u kills, %u ends, %u "
       "faults",
       rounds, c.checks, c.claims, c.over, c.kills, c.ends, c.faults);
    memset(c.claim, 0, sizeof c.claim);
    (void)node_end(w.node, on_node_end, NULL);
    for (unsigned i = 0; i < 20 && !w.ended; i++)
        run_s(0.5);
    node_free(take(w.node));
    run_s(60);
    for (size_t i = 0; i < BOARDS; i++)
        is_int(truth(i), ORIGINAL_MW, "board %zu has its original limit at the end", i);
    virtual_backend.close(c.lib);
}

/* ---- a long time ---- */

static void soak(double days)
{
    struct loop_child *job = train("0,1", 1000);
    size_t bytes[2] = {0};
    size_t files[2] = {0};
    uw_error err;
    unsigned n = (unsigned)fmax(days * 24, 24);

    ok(start_node(), "a node for %g days", days);
    for (unsigned hour = 0; hour < n; hour++) {
        (void)claim(&root, "2", CLAIM_HARD, 200000, 600, NULL, &err);
        run_s(3600);
        if (hour == n / 4) {
            bytes[0] = mallinfo2().uordblks;
            files[0] = open_files();
        }
    }
    bytes[1] = mallinfo2().uordblks;
    files[1] = open_files();
    ok((double)bytes[1] <= (double)bytes[0] * 1.05 + 65536,
       "memory is flat: %zu KiB after a quarter, %zu KiB at the end", bytes[0] >> 10,
       bytes[1] >> 10);
    is_int(files[1], files[0], "descriptors are as many");
    const struct node_view *v = node_look(w.node);
    double sum = 0, all = 0;
    for (size_t i = 0; i < v->n_boards; i++) {
        sum += v->board[i].attributed_j + v->board[i].idle_j + v->board[i].unattributed_j;
        all += v->board[i].energy_j;
    }
    ok(all > 0 && fabs(sum / all - 1) < 1e-3, "the books add up: %.0f J of %.0f J", sum,
       all);
    ok(v->ledger_failures == 0, "no row was lost");
    (void)loop_child_kill(job, 9);
    loop_child_free(job);
}

static double number(char **argv, int argc, int i, double otherwise)
{
    double v = otherwise;

    if (i < argc)
        (void)parse_double(argv[i], &v, NULL);
    return v;
}

int main(int argc, char **argv)
{
    log_set_level((enum log_level)0);
    if (ok(open_world(), "a world")) {
        chaos((uint64_t)number(argv, argc, 1, 1), (unsigned)number(argv, argc, 2, 1000));
        close_world();
    }
    if (ok(open_world(), "another world")) {
        soak(number(argv, argc, 3, 2));
        close_world();
    }
    return done();
}
