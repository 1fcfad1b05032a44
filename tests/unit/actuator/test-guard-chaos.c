/* The guard under everything at once, in virtual time: clients of two users that hold,
 * set, hang, die and come back, boards that fail and hang, others who write limits.  Each
 * round from a seed, which is printed when it fails: run it with SEED [ROUNDS].
 */
#include "actuator/guard.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/rng.h"
#include "base/units.h"
#include "remove-tree.h"
#include "tap.h"
#include "unit/actuator/fake.h"
#include "virtual/virtual-loop.h"

enum {
    ROUNDS = 500,
    STEPS = 120,
    BOARDS = 4,
    CLIENTS = 3,
    ASKED_MAX = STEPS * 8,
    ORIGINAL_MW = 250000,
    GRACE_S = 10,
};

static char top[] = "/dev/shm/test-chaos-XXXXXX"; /* thousands of fsync() */

struct client {
    struct world *world;
    struct guard_session *session; /* NULL: not there */
    unsigned answers[ASKED_MAX];   /* of each request of this session */
    uint32_t asked;
    bool hangs; /* does not renew */
};

struct world {
    struct rng rng;
    struct loop *loop;
    struct journal journal;
    struct guard *guard;
    struct loop_timer *pause;
    struct client client[CLIENTS];
    bool locks[BOARDS];   /* somebody has asked for a clock lock there */
    bool foreign[BOARDS]; /* somebody else has written a limit there */
    unsigned holds, adopted, strange;
};

static unsigned below(struct world *w, unsigned n)
{
    return (unsigned)rng_below(&w->rng, n);
}

static void on_answer(const struct proto_answer *answer, void *user)
{
    struct client *c = user;

    if (answer->seq == 0)
        return;
    if (answer->seq > c->asked)
        c->world->strange++;
    else
        c->answers[answer->seq - 1]++;
    const struct actuator_reply *reply = &answer->reply;
    if (answer->type == PROTO_HOLD && reply->result == ACTUATOR_DONE) {
        c->world->holds++;
        c->world->adopted += reply->enforced_mw != reply->original_mw;
    }
}

static int on_pause(struct loop_timer *timer, uint64_t now, void *user)
{
    struct world *w = user;

    (void)timer;
    (void)now;
    loop_stop(w->loop, 0);
    return 0;
}

static void pass(struct world *w, unsigned ms)
{
    loop_timer_set(w->pause, loop_now_ns(w->loop) + ms * NS_PER_MS, 0);
    (void)loop_run(w->loop, NULL);
}

static void ask(struct client *c, enum proto_type type, unsigned board, uint32_t a)
{
    char uuid[8] = "";

    if (!c->session || c->asked == ASKED_MAX)
        return;
    if (type != PROTO_RENEW)
        (void)snprintf(uuid, sizeof uuid, "GPU-%u", board);
    struct proto_request request = proto_request(type, ++c->asked, uuid);
    request.a = a;
    request.b = type == PROTO_CLOCKS ? a : 0;
    guard_request(c->session, &request);
}

static void come(struct world *w, struct client *c)
{
    const struct guard_client who = {.pid = 100 + (pid_t)(c - w->client),
                                     .uid = c == w->client + 2 ? 1001 : 1000};

    memset(c->answers, 0, sizeof c->answers);
    c->asked = 0;
    c->hangs = false;
    if (guard_session_new(w->guard, &who, on_answer, c, &c->session, NULL) < 0)
        w->strange++;
}

/* More than one answer to a request, or none to one that was asked long ago. */
static unsigned badly_answered(const struct client *c, bool all)
{
    unsigned bad = 0;

    for (uint32_t i = 0; i < c->asked; i++) {
        bool wrong = c->answers[i] > 1 || (all && c->answers[i] != 1);
        if (wrong)
            printf("# client %d, request %u: %u answers\n", (int)(c - c->world->client),
                   i + 1, c->answers[i]);
        bad += wrong;
    }
    return bad;
}

static void go(struct world *w, struct client *c)
{
    w->strange += badly_answered(c, false);
    guard_session_free(take(c->session));
}

static void trouble(struct world *w, unsigned board)
{
    struct gpu_dev *dev = &fake_dev[board];

    switch (below(w, 8)) {
    case 6:
        dev->lock_fails = below(w, 2) ? -EPERM : -EIO;
        dev->lock_takes = dev->lock_fails == -EIO && below(w, 2);
        break;
    case 7:
        dev->reset_fails = -EIO;
        break;
    case 0:
        dev->set_mw = 150000 + below(w, 100) * 1000 + 7;
        w->foreign[board] = true;
        break;
    case 1:
        dev->set_fails = -EIO;
        break;
    case 2:
        dev->read_fails = -EIO;
        break;
    case 3:
        dev->set_takes_ns = below(w, 2) ? 60 * NS_PER_MS : 4 * NS_PER_S;
        break;
    default:
        dev->set_fails = dev->read_fails = dev->lock_fails = dev->reset_fails = 0;
        dev->set_takes_ns = 0;
        break;
    }
}

static void step(struct world *w)
{
    struct client *c = &w->client[below(w, CLIENTS)];
    unsigned board = below(w, BOARDS);

    switch (below(w, 12)) {
    case 0:
        if (c->session)
            go(w, c);
        if (below(w, 3)) { /* killed and started again */
            pass(w, below(w, 3000));
            come(w, c);
            for (unsigned i = 0; i < BOARDS; i++)
                ask(c, PROTO_HOLD, i, 0);
        }
        break;
    case 1:
        c->hangs = !c->hangs;
        break;
    case 2:
        trouble(w, board);
        break;
    case 3:
    case 4:
        ask(c, PROTO_HOLD, board, below(w, 3)); /* again, keeping or not */
        break;
    case 5:
        ask(c, PROTO_RELEASE, board, 0);
        break;
    case 6:
        if (board != BOARDS - 1) { /* of the last one clocks are never locked */
            ask(c, PROTO_CLOCKS, board, below(w, 2) * 900);
            w->locks[board] = true;
        } else {
            ask(c, PROTO_CLOCKS, board, 0);
        }
        break;
    default:
        ask(c, PROTO_LIMIT, board, 90000 + below(w, 22) * 10000);
        break;
    }
    if (!c->session && below(w, 2))
        come(w, c);
    pass(w, below(w, 8) ? below(w, 120) : below(w, 3000));
    for (unsigned i = 0; i < CLIENTS; i++)
        if (!w->client[i].hangs)
            ask(&w->client[i], PROTO_RENEW, 0, 0);
}

static void begin(struct world *w, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    rng_init(&w->rng, seed);
    (void)loop_new_virtual(1000 * NS_PER_S, 0, &w->loop, NULL);
    (void)loop_timer_new(w->loop, UINT64_MAX, 0, on_pause, w, &w->pause, NULL);
    fake_reset(w->loop);
    (void)journal_open(top, &w->journal, NULL);
    struct guard_opts opts = {.loop = w->loop,
                              .grace_ns = GRACE_S * NS_PER_S,
                              .backend = &fake_backend,
                              .journal = &w->journal};
    if (guard_new(&opts, &w->guard, NULL) < 0)
        w->strange++;
    for (unsigned i = 0; i < CLIENTS; i++) {
        w->client[i].world = w;
        come(w, &w->client[i]);
    }
}

/* Troubles end, calls come back, then everybody goes.  What is wrong then, in words. */
static const char *finish(struct world *w)
{
    const char *bad = NULL;
    char entry[20];
    struct cap_entry e;

    for (unsigned i = 0; i < BOARDS; i++) {
        fake_dev[i].set_fails = fake_dev[i].read_fails = 0;
        fake_dev[i].lock_fails = fake_dev[i].reset_fails = 0;
        fake_dev[i].set_takes_ns = 0;
    }
    pass(w, 30000);
    for (unsigned i = 0; i < CLIENTS; i++) {
        if (w->client[i].session && badly_answered(&w->client[i], true))
            bad = "a request was not answered once";
        if (w->client[i].session)
            go(w, &w->client[i]);
    }
    pass(w, GRACE_S * 1000 + 30000);
    if (!guard_is_idle(w->guard) || guard_hanging(w->guard))
        bad = "the guard is not idle";
    for (unsigned i = 0; i < BOARDS; i++) {
        (void)snprintf(entry, sizeof entry, "GPU-%u", i);
        if (journal_read(&w->journal, entry, &e, NULL) == 0)
            bad = "an entry is left";
        if (!w->foreign[i] && fake_dev[i].set_mw != ORIGINAL_MW)
            bad = "an original is not back";
        if (w->foreign[i] && fake_dev[i].set_mw % 1000 != 7 &&
            fake_dev[i].set_mw != ORIGINAL_MW)
            bad = "a limit of ours is left where another's had been";
        if (fake_dev[i].max_mhz)
            bad = "clocks are locked";
        if (fake_dev[i].resets && !w->locks[i])
            bad = "clocks that were never locked were reset";
    }
    if (w->strange)
        bad = "an answer too many";
    guard_free(w->guard);
    loop_timer_free(w->pause);
    loop_free(w->loop);
    journal_close(&w->journal);
    return bad;
}

int main(int argc, char **argv)
{
    uint64_t seed = 1, rounds = ROUNDS;
    unsigned holds = 0, adopted = 0, failed = 0;
    static struct world w;

    if (!mkdtemp(top))
        return skip_all("no temporary folder");
    if (argc > 1)
        (void)parse_u64(argv[1], &seed, NULL);
    if (argc > 1 && (argc == 2 || parse_u64(argv[2], &rounds, NULL) < 0))
        rounds = 1;
    for (uint64_t i = 0; i < rounds; i++, seed++) {
        begin(&w, seed);
        for (unsigned k = 0; k < STEPS; k++)
            step(&w);
        const char *bad = finish(&w);
        if (bad) {
            printf("# seed %ju: %s\n", (uintmax_t)seed, bad);
            failed++;
        }
        holds += w.holds;
        adopted += w.adopted;
    }
    is_int((int)failed, 0, "rounds that went wrong");
    ok(argc > 1 || (holds > 10 * ROUNDS && adopted > ROUNDS / 3),
       "%u holds, %u of them of a board with a cap", holds, adopted);
    remove_tree(top);
    return done();
}
