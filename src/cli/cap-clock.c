/* `underwatt cap set --clock` with the daemon: a claim on the SM clock of each board. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "cli/cap-daemon.h"
#include "cli/take.h"
#include "io/loop.h"

enum { LOOK_MS = 500, BACK_LOOK_MS = 100, BACK_LOOKS = 50 };

struct lock_board {
    unsigned index;
    char uuid[96];
    uint64_t claim;  /* 0: over */
    char state[240]; /* of the claim, as it was last said */
    bool reached, lost, restored;
};

struct locks {
    const struct cap_remote *o;
    uint32_t mhz;
    uint64_t for_ns;
    bool simulated;
    struct loop *loop;
    struct loop_timer *tick, *enough;
    struct lock_board board[BOARDS_MAX];
    size_t n;
};

static int claim(const struct locks *g, size_t i, uint64_t *ret, uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;
    struct json_out *body = json_out_new();
    char text[48];

    json_out_object(body, NULL);
    json_out_text(body, "gpu", g->board[i].uuid);
    (void)snprintf(text, sizeof text, "%" PRIu32 " MHz", g->mhz);
    json_out_text(body, "clock", text);
    json_out_text(body, "why", g->o->why ? g->o->why : "underwatt cap");
    (void)snprintf(text, sizeof text, "%.3f s", s_of_ns(g->for_ns));
    if (g->for_ns > 0)
        json_out_text(body, "for", text);
    if (!g->o->detach)
        json_out_int(body, "pid", getpid());
    json_out_end(body);
    int r = httpc_ask(g->o->daemon, "POST", "/v1/claims", body, &doc, err);
    if (r < 0)
        return r;
    *ret = take_u64(doc ? json_root(doc) : NULL, "id");
    return *ret ? 0 : fail(err, -EPROTO, "the daemon gave the claim no number");
}

static void withdraw(const struct locks *g, size_t i)
{
    char path[64];
    uw_error err = {""};

    if (!g->board[i].claim)
        return;
    (void)snprintf(path, sizeof path, "/v1/claims/%" PRIu64, g->board[i].claim);
    int r = httpc_ask(g->o->daemon, "DELETE", path, NULL, NULL, &err);
    if (r < 0 && r != -ENOENT) /* it may be over by now */
        cli_say("cap: GPU %u: %s", g->board[i].index, err.text);
}

/* All of them or none. */
static int claim_all(struct locks *g)
{
    uw_error err = {""};
    int r = 0;

    for (size_t i = 0; i < g->n && r >= 0; i++) {
        r = claim(g, i, &g->board[i].claim, &err);
        if (r < 0)
            cli_say("cap: GPU %u: %s", g->board[i].index, err.text);
    }
    if (r >= 0)
        return EXIT_OK;
    for (size_t i = 0; i < g->n; i++)
        withdraw(g, i);
    return cli_exit_of(r);
}

/* ---- while it is held ---- */

static const struct json_value *by_id(const struct json_value *claims, uint64_t id)
{
    for (size_t i = 0; i < json_count(claims); i++)
        if (take_u64(json_at(claims, i), "id") == id)
            return json_at(claims, i);
    return NULL;
}

static void see(struct locks *g, size_t i, const struct json_value *c)
{
    struct lock_board *b = &g->board[i];
    const char *state = c ? take_text(c, "state") : "its claim is withdrawn or over";
    bool in_force = c && take_claim_status(c) == CAPS_MET;

    b->reached |= in_force;
    b->lost = b->reached && !in_force;
    if (strcmp(b->state, state) != 0)
        cli_say("cap: GPU %u: at most %" PRIu32 " MHz: %s%s", b->index, g->mhz, state,
                g->simulated ? " (simulated)" : "");
    (void)snprintf(b->state, sizeof b->state, "%s", state);
    if (!c)
        b->claim = 0;
}

static int on_tick(struct loop_timer *timer, uint64_t now, void *user)
{
    struct locks *g = user;
    auto_(json_free) struct json *doc = NULL;
    uw_error err = {""};
    size_t left = 0;
    (void)timer;
    (void)now;

    if (httpc_ask(g->o->daemon, "GET", "/v1/claims", NULL, &doc, &err) < 0)
        return 0; /* the claims end with the daemon, or go on with the next one */
    const struct json_value *claims = json_get(json_root(doc), "claims");
    for (size_t i = 0; i < g->n; i++) {
        if (g->board[i].claim)
            see(g, i, by_id(claims, g->board[i].claim));
        left += g->board[i].claim > 0;
    }
    if (left == 0)
        loop_stop(g->loop, 0);
    return 0;
}

static int on_enough(struct loop_timer *timer, uint64_t now, void *user)
{
    struct locks *g = user;
    (void)timer;
    (void)now;
    loop_stop(g->loop, 0);
    return 0;
}

static int on_signal(struct loop_signal *source, int signo, void *user)
{
    struct locks *g = user;
    (void)source;
    (void)signo;
    loop_stop(g->loop, 0);
    return 0;
}

/* Nobody's lock that is as low as ours was, in the actuator's word. */
static bool is_back(const struct locks *g, size_t i)
{
    auto_(json_free) struct json *doc = NULL;
    char path[160];

    (void)snprintf(path, sizeof path, "/v1/gpus/%s/explain", g->board[i].uuid);
    if (httpc_ask(g->o->daemon, "GET", path, NULL, &doc, NULL) < 0)
        return false;
    const struct json_value *clock = json_get(json_root(doc), "clock");
    uint64_t locked = take_u64(clock, "locked_mhz"), claim = take_u64(clock, "claim");
    bool reset = locked == 0 && !take_bool(json_root(doc), "unrestored");
    return reset || claim > 0; /* another's claim keeps it */
}

static void give_back(struct locks *g)
{
    struct loop_timer *timer = NULL;

    for (size_t i = 0; i < g->n; i++)
        withdraw(g, i);
    for (size_t i = 0; i < g->n; i++) {
        struct lock_board *b = &g->board[i];
        for (int k = 0; k < BACK_LOOKS && !(b->restored = is_back(g, i)); k++) {
            uint64_t at = loop_now_ns(g->loop) +
                          (uint64_t)(BACK_LOOK_MS * 1e6 * loop_speed(g->loop));
            if (loop_timer_new(g->loop, at, 0, on_enough, g, &timer, NULL) == 0)
                (void)loop_run(g->loop, NULL);
            loop_timer_free(take(timer));
        }
        if (!b->restored)
            cli_say("cap: GPU %u: it is not confirmed that its clock is reset", b->index);
    }
}

static int exit_code(const struct locks *g)
{
    size_t good = 0;

    for (size_t i = 0; i < g->n; i++)
        good += g->board[i].reached && !g->board[i].lost;
    return good == g->n ? EXIT_OK : good > 0 ? EXIT_PARTIAL : EXIT_FAIL;
}

static int hold(struct locks *g)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct loop_signal *source[n_elements(signals)] = {NULL};
    uint64_t now = loop_now_ns(g->loop);
    uint64_t look_ns = (uint64_t)(LOOK_MS * 1e6 * loop_speed(g->loop));
    uw_error err = {""};
    int r = 0;

    for (size_t i = 0; i < n_elements(signals) && r == 0; i++)
        r = loop_signal_new(g->loop, signals[i], on_signal, g, &source[i], &err);
    int code = r == 0 ? claim_all(g) : EXIT_FAIL;
    bool begun = code == EXIT_OK;
    if (begun)
        r = loop_timer_new(g->loop, now + look_ns / 5, look_ns, on_tick, g, &g->tick,
                           &err);
    if (begun && r == 0 && g->for_ns)
        r = loop_timer_new(g->loop, now + g->for_ns, 0, on_enough, g, &g->enough, &err);
    if (begun && r == 0)
        r = loop_run(g->loop, &err);
    if (r < 0)
        code = cli_fail(EXIT_FAIL, "cap: %s", err.text);
    loop_timer_free(g->tick);
    loop_timer_free(g->enough);
    if (begun)
        give_back(g);
    for (size_t i = 0; i < n_elements(signals); i++)
        loop_signal_free(source[i]);
    return code == EXIT_OK ? exit_code(g) : code;
}

/* ---- the whole ---- */

static int write_json(const struct locks *g)
{
    auto_(json_out_free) struct json_out *o = json_out_new();
    uw_error err = {""};

    json_out_object(o, NULL);
    json_out_bool(o, "simulated", g->simulated);
    json_out_array(o, "boards");
    for (size_t i = 0; i < g->n; i++) {
        const struct lock_board *b = &g->board[i];
        json_out_object(o, NULL);
        json_out_int(o, "index", b->index);
        json_out_text(o, "uuid", b->uuid);
        json_out_int(o, "clock_mhz", g->mhz);
        json_out_known_int(o, "claim", b->claim, (int64_t)b->claim);
        json_out_bool(o, "reached", b->reached);
        json_out_bool(o, "held_to_the_end", b->reached && !b->lost);
        json_out_bool(o, "restored", b->restored);
        json_out_end(o);
    }
    json_out_end(o);
    json_out_end(o);
    int r = json_out_write(o, g->o->json, &err);
    return r < 0 ? cli_fail(EXIT_FAIL, "cap: %s", err.text) : EXIT_OK;
}

static int run(struct locks *g)
{
    struct loop_clock clock = {0, 1};
    uw_error err = {""};

    int r = loop_clock_parse(g->o->env->clock, &clock, &err);
    if (r == 0)
        r = loop_new_real(clock, &g->loop, &err);
    if (r < 0)
        return cli_fail(EXIT_FAIL, "cap: %s", err.text);
    int code = hold(g);
    loop_free(g->loop);
    return code;
}

int cap_daemon_clock(const struct cap_remote *o, uint32_t mhz, uint64_t for_ns)
{
    auto_(cap_boards_fini) struct cap_boards boards = {.n = 0};
    struct locks g = {.o = o, .mhz = mhz, .for_ns = for_ns};

    int code = cap_boards_get(o, &boards);
    if (code != EXIT_OK)
        return code;
    g.simulated = boards.simulated;
    for (size_t i = 0; i < boards.n; i++) {
        struct lock_board *b = &g.board[g.n++];
        b->index = (unsigned)take_u64(boards.at[i], "gpu");
        take_copy(boards.at[i], "uuid", b->uuid, sizeof b->uuid);
    }
    if (!o->detach) {
        code = run(&g);
    } else {
        code = claim_all(&g);
        for (size_t i = 0; i < g.n && code == EXIT_OK; i++)
            cli_say("cap: GPU %u: claim %" PRIu64 ", at most %" PRIu32
                    " MHz, left to the daemon; `underwatt cap clear --gpus %u` withdraws "
                    "it",
                    g.board[i].index, g.board[i].claim, mhz, g.board[i].index);
    }
    if (o->json && code != EXIT_USAGE && code != EXIT_FAIL) {
        int r = write_json(&g);
        code = r == EXIT_OK ? code : r;
    }
    return code;
}
