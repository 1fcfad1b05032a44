/* `underwatt cap set`: makes a claim on each board, at the daemon or at a node in this
 * process, and watches the claims until the user ends the command.
 */
#include "cli/cap-ask.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ask/own-node.h"
#include "base/auto.h"
#include "base/error.h"
#include "cli/cap-read.h"
#include "cli/cli-loop.h"
#include "cli/daemon.h"
#include "cli/own-place.h"
#include "cli/take.h"
#include "cli/who.h"

enum { FIRST_QUERY_MS = 100, QUERY_MS = 300, HELD_QUERY_MS = 2000 };
enum { OWN_QUERY_MS = 25, OWN_HELD_QUERY_MS = 200, ANSWER_MS = 500 };
enum { BACK_QUERY_MS = 50, BACK_MS = 5000 };

/* One query of claims and boards: requests one after the other. */
struct query {
    uint64_t claim[BOARDS_MAX]; /* 0: no longer watched */
    double left_s;              /* remaining time of --for; 0: no end */
    size_t at;                  /* the target whose claim is being made again */
    bool again;                 /* the daemon did not answer the last query */
    struct json *gpus, *claims;
};

struct remote_hold {
    struct cap_remote *o;
    struct cap_hold *h;
    const struct cap_arg *cap;
    const struct cap_boards *boards; /* before the claims; NULL: of a node of its own */
    struct loop *loop;
    struct own_node *own; /* NULL: the daemon */
    struct loop_timer *tick, *enough;
    struct query query;
    uint64_t begin_ns;
    char said[BOARDS_MAX][240]; /* the last problem reported for each board */
    bool querying, silent, told, line_there, tty;
    bool signalled;
    bool ending, again; /* a second signal has arrived */
};

/* ---- requests ---- */

static struct json_out *claim_body(const struct cap_remote *o, const struct cap_hold *h,
                                   size_t i, double for_s)
{
    const struct cap_target *t = &h->target[i];
    struct json_out *body = json_out_new();
    char text[48];

    json_out_object(body, NULL);
    json_out_text(body, "gpu", t->uuid);
    if (t->clock_mhz)
        (void)snprintf(text, sizeof text, "%" PRIu32 " MHz", t->clock_mhz);
    else
        (void)snprintf(text, sizeof text, "%.10g W", w_of_mw(t->cap_mw));
    if (h->preset)
        json_out_text(body, "preset", h->preset);
    else
        json_out_text(body, t->clock_mhz ? "clock" : "cap", text);
    json_out_text(body, "why", o->why ? o->why : "underwatt cap");
    (void)snprintf(text, sizeof text, "%.3f s", for_s);
    if (for_s > 0 && !o->own) /* on_enough() ends the command */
        json_out_text(body, "for", text);
    if (o->own)
        json_out_bool(body, "at_once", !t->busy);
    else if (!o->detach)
        json_out_int(body, "pid", getpid());
    json_out_end(body);
    return body;
}

static uint64_t made_id(const struct json *doc)
{
    return take_u64(doc ? json_root(doc) : NULL, "id");
}

static int claim(const struct cap_remote *o, const struct cap_hold *h, size_t i,
                 double for_s, uint64_t *ret, uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;

    int r =
        ask_wait(o->daemon, "POST", "/v1/claims", claim_body(o, h, i, for_s), &doc, err);
    if (r < 0)
        return r;
    *ret = made_id(doc);
    return *ret ? 0 : fail(err, -EPROTO, "the daemon's answer has no claim id");
}

/* ---- answers ---- */

static void clear_line(struct remote_hold *g)
{
    if (g->line_there)
        (void)fputs("\r\033[K", stderr);
    g->line_there = false;
}

static void trouble(struct remote_hold *g, size_t i, const char *text)
{
    if (strcmp(g->said[i], text) == 0)
        return;
    (void)snprintf(g->said[i], sizeof g->said[i], "%s", text);
    clear_line(g);
    const struct cap_target *t = &g->h->target[i];
    if (text[0])
        cli_say("cap: GPU %u: %s", t->index, error_after(text, t->uuid));
}

static int on_dropped(struct ask_answer *answer, void *user)
{
    (void)answer;
    (void)user;
    return 0;
}

static void lose(struct remote_hold *g, size_t i, const char *text)
{
    struct cap_target *t = &g->h->target[i];
    char path[64];

    /* The daemon keeps trying; a node in this process leaves the board alone. */
    (void)snprintf(path, sizeof path, "/v1/claims/%" PRIu64, t->claim);
    if (g->own && t->claim)
        (void)ask_request(g->o->daemon, "DELETE", path, NULL, on_dropped, NULL, NULL);
    t->lost = true;
    t->claim = 0;
    (void)snprintf(t->text, sizeof t->text, "%s", text);
    trouble(g, i, text);
}

static void see_own(struct remote_hold *g, size_t i, const struct json_value *gpu,
                    const struct json_value *claim)
{
    struct cap_target *t = &g->h->target[i];
    char line[sizeof g->said[0]];

    switch (cap_read_own(gpu, claim, t, line, sizeof line)) {
    case CAP_READ_GOES_ON:
        trouble(g, i, line);
        break;
    case CAP_READ_LOST:
        lose(g, i, line);
        who_say_daemon("cap", (pid_t)take_u64(json_get(gpu, "cap"), "taken_by"));
        break;
    case CAP_READ_FAILED:
        (void)snprintf(t->text, sizeof t->text, "%.199s", line);
        trouble(g, i, line);
        if (!g->ending)
            loop_stop(g->loop, 0); /* all boards are released */
    }
}

/* Update the target from the daemon's answer and report what delays it. */
static void see(struct remote_hold *g, size_t i, const struct json_value *gpu,
                const struct json_value *claim)
{
    char line[sizeof g->said[0]];

    if (g->own) {
        see_own(g, i, gpu, claim);
    } else if (g->o->clock) {
        cap_read_clock(claim, &g->h->target[i], line, sizeof line);
        trouble(g, i, line);
    } else if (cap_read_board(gpu, &g->h->target[i], line, sizeof line))
        trouble(g, i, line);
    else
        lose(g, i, line);
}

static bool all_reached(const struct remote_hold *g)
{
    size_t held = 0, reached = 0;

    for (size_t i = 0; i < g->h->n; i++) {
        held += g->h->target[i].claim > 0;
        reached += g->h->target[i].claim > 0 && g->h->target[i].reached;
    }
    return held > 0 && reached == held;
}

static void tell(struct remote_hold *g, const struct json_value *gpus)
{
    size_t n = 0;

    if (g->told || !all_reached(g))
        return;
    g->told = true;
    clear_line(g);
    for (size_t i = 0; i < g->h->n; i++) {
        const struct cap_target *t = &g->h->target[i];
        const struct json_value *gpu = take_entry(gpus, "gpu", t->index);
        const struct json_value *cap = json_get(gpu, "cap");
        bool ours = take_u64(cap, "claim") == t->claim || t->enforced_mw == t->cap_mw;
        n += t->claim > 0;
        if (!t->claim || t->clock_mhz) /* see() has reported the clock */
            continue;
        cli_say("cap: GPU %u at %g W%s, was %g W%s%s%s", t->index,
                w_of_mw(t->enforced_mw), cap_preset_text(g->h), w_of_mw(t->original_mw),
                g->h->simulated ? " (simulated)" : "",
                ours ? "" : "; lower than asked: ", ours ? "" : take_text(cap, "why"));
    }
    cap_hold_tell(g->h, n, s_between(g->begin_ns, loop_now_ns(g->loop)));
}

static void live_line(struct remote_hold *g)
{
    if (!g->tty || g->told || g->o->clock || g->own)
        return;
    (void)fputs("\r\033[Kcap:", stderr);
    for (size_t i = 0; i < g->h->n && i < 4; i++) {
        const struct cap_target *t = &g->h->target[i];
        (void)fprintf(stderr, " GPU %u %g W (to %g W)", t->index, w_of_mw(t->enforced_mw),
                      w_of_mw(t->cap_mw));
    }
    (void)fflush(stderr);
    g->line_there = true;
}

static void on_silence(struct remote_hold *g, const char *why)
{
    if (!g->silent) {
        clear_line(g);
        cli_say("cap: the daemon does not answer (%.150s): its actuator keeps the "
                "boards for its grace period only; retrying",
                why);
    }
    g->silent = true;
}

static void on_answer(struct remote_hold *g, const struct query *l)
{
    const struct json_value *claims = json_get(json_root(l->claims), "claims");
    const struct json_value *gpus = json_get(json_root(l->gpus), "gpus");
    size_t left = 0;

    if (g->silent)
        cli_say("cap: the daemon answers again");
    g->silent = false;
    for (size_t i = 0; i < g->h->n; i++) {
        struct cap_target *t = &g->h->target[i];
        if (!t->claim)
            continue;
        t->claim = l->claim[i];
        const struct json_value *claim = take_entry(claims, "id", t->claim);
        if (claim && g->h->preset) /* a reload may have changed the preset */
            t->cap_mw = (uint32_t)take_u64(claim, "cap_mw");
        if (claim)
            see(g, i, take_entry(gpus, "gpu", t->index), claim);
        else
            lose(g, i, "the claim was withdrawn or has ended");
        left += t->claim > 0;
    }
    tell(g, gpus);
    live_line(g);
    if (left == 0 && !g->ending)
        loop_stop(g->loop, 0);
}

/* ---- a query ---- */

static int query_over(struct remote_hold *g, int r, const char *text)
{
    struct query *l = &g->query;
    double ms = g->own    ? (g->told ? OWN_HELD_QUERY_MS : OWN_QUERY_MS)
                : g->told ? HELD_QUERY_MS
                          : QUERY_MS;

    g->querying = false;
    if (r < 0 && !g->ending)
        on_silence(g, text);
    else if (!g->ending)
        on_answer(g, l);
    json_free(take(l->claims));
    json_free(take(l->gpus));
    if (!g->ending)
        loop_timer_set(g->tick, loop_now_ns(g->loop) + cli_wall_ns(g->loop, ms), 0);
    return 0;
}

static int query_ask(struct remote_hold *g, const char *path, ask_fn fn)
{
    uw_error err = {""};
    int r = ask_request(g->o->daemon, "GET", path, NULL, fn, g, &err);

    return r < 0 ? query_over(g, r, err.text) : 0;
}

static int on_gpus(struct ask_answer *answer, void *user)
{
    struct remote_hold *g = user;

    g->query.gpus = take(answer->doc);
    return query_over(g, answer->r, answer->error.text);
}

static int on_claims(struct ask_answer *answer, void *user)
{
    struct remote_hold *g = user;

    if (answer->r < 0)
        return query_over(g, answer->r, answer->error.text);
    json_free(g->query.claims);
    g->query.claims = take(answer->doc);
    return query_ask(g, "/v1/gpus", on_gpus);
}

static int claim_next(struct remote_hold *g);

static int on_claimed(struct ask_answer *answer, void *user)
{
    struct remote_hold *g = user;

    if (answer->r < 0)
        return query_over(g, answer->r, answer->error.text);
    g->query.claim[g->query.at++] = made_id(answer->doc);
    return claim_next(g);
}

/* The daemon lost the claims, because it uses another ledger: makes them again. */
static int claim_next(struct remote_hold *g)
{
    struct query *l = &g->query;
    const struct json_value *claims = json_get(json_root(l->claims), "claims");
    uw_error err = {""};

    while (l->at < g->h->n &&
           (!l->claim[l->at] || take_entry(claims, "id", l->claim[l->at])))
        l->at++;
    if (l->at == g->h->n)
        return query_ask(g, "/v1/claims", on_claims);
    int r = ask_request(g->o->daemon, "POST", "/v1/claims",
                        claim_body(g->o, g->h, l->at, l->left_s), on_claimed, g, &err);
    return r < 0 ? query_over(g, r, err.text) : 0;
}

static int on_claims_again(struct ask_answer *answer, void *user)
{
    struct remote_hold *g = user;

    if (answer->r < 0)
        return query_over(g, answer->r, answer->error.text);
    g->query.claims = take(answer->doc);
    return claim_next(g);
}

static int on_tick(struct loop_timer *timer, uint64_t now, void *user)
{
    struct remote_hold *g = user;
    double spent_s = s_between(g->begin_ns, now);
    (void)timer;

    if (g->querying)
        return 0;
    g->query = (struct query){.again = g->silent};
    if (g->h->for_ns > 0)
        g->query.left_s = fmax(s_of_ns(g->h->for_ns) - spent_s, 1);
    for (size_t i = 0; i < g->h->n; i++)
        g->query.claim[i] = g->h->target[i].claim;
    g->querying = true;
    return query_ask(g, "/v1/claims", g->query.again ? on_claims_again : on_claims);
}

static int on_enough(struct loop_timer *timer, uint64_t now, void *user)
{
    struct remote_hold *g = user;
    (void)timer;
    (void)now;
    loop_stop(g->loop, 0);
    return 0;
}

static int on_signal(struct loop_signal *source, int signo, void *user)
{
    struct remote_hold *g = user;
    (void)source;
    (void)signo;
    g->signalled = true;
    g->again = g->ending; /* second signal: the claims end with this process */
    loop_stop(g->loop, 0);
    return 0;
}

/* ---- withdrawal ---- */

static int withdraw(struct ask *daemon, uint64_t id, uw_error *err)
{
    char path[64];

    (void)snprintf(path, sizeof path, "/v1/claims/%" PRIu64, id);
    int r = ask_wait(daemon, "DELETE", path, NULL, NULL, err);
    return r == -ENOENT ? 0 : r; /* the claim has ended */
}

static bool is_back(struct ask *daemon, const struct cap_target *t, bool sure)
{
    auto_(json_free) struct json *doc = NULL;
    char path[160];

    (void)snprintf(path, sizeof path, "/v1/gpus/%s/explain", t->uuid);
    if (ask_wait(daemon, "GET", path, NULL, &doc, NULL) < 0)
        return false;
    return t->clock_mhz ? cap_read_unlocked(json_root(doc))
                        : cap_read_back(json_root(doc), sure);
}

static void give_back_one(struct remote_hold *g, struct ask *daemon, size_t i)
{
    struct cap_target *t = &g->h->target[i];
    uw_error err = {""};

    int r = t->claim ? withdraw(daemon, t->claim, &err) : 0;
    if (r < 0) {
        cli_say("cap: GPU %u: %s", t->index, error_after(err.text, t->uuid));
        return;
    }
    for (int ms = 0; !t->restored && !g->again && ms < BACK_MS; ms += BACK_QUERY_MS) {
        t->restored = is_back(daemon, t, ms > BACK_MS / 4);
        if (!t->restored)
            cli_loop_wait(g->loop, BACK_QUERY_MS);
    }
    if (!t->restored)
        cli_say("cap: GPU %u: not confirmed that %s", t->index,
                t->clock_mhz ? "the clock lock is reset"
                             : "the original limit is restored");
}

static bool is_own_back(struct remote_hold *g, size_t i)
{
    auto_(json_free) struct json *doc = NULL;
    struct cap_target *t = &g->h->target[i];
    char path[160], line[sizeof t->text];

    (void)snprintf(path, sizeof path, "/v1/gpus/%s/explain", t->uuid);
    if (ask_wait(g->o->daemon, "GET", path, NULL, &doc, NULL) < 0)
        return false;
    int back = cap_read_own_back(json_root(doc), line, sizeof line);
    t->restored = back > 0;
    if (back < 0) {
        t->lost = true;
        trouble(g, i, line);
    }
    if (back <= 0 && !t->original_mw) /* not held yet, and it may be written */
        t->original_mw =
            (uint32_t)take_u64(json_get(json_root(doc), "bounds"), "original_mw");
    return back != 0;
}

/* Reads the state at the end, which the last query may have missed.  True: a cap is
 * being written.
 */
static bool look_again(struct remote_hold *g)
{
    struct query l = {.left_s = 0};
    bool asked = false;

    for (size_t i = 0; i < g->h->n; i++)
        l.claim[i] = g->h->target[i].claim;
    if (ask_wait(g->o->daemon, "GET", "/v1/claims", NULL, &l.claims, NULL) == 0 &&
        ask_wait(g->o->daemon, "GET", "/v1/gpus", NULL, &l.gpus, NULL) == 0)
        on_answer(g, &l);
    json_free(l.claims);
    json_free(l.gpus);
    for (size_t i = 0; i < g->h->n; i++)
        asked |= g->h->target[i].claim && g->h->target[i].asked;
    return asked;
}

/* Boards that were lost belong to others, or the actuator restores them: cap_left()
 * reads.
 */
static void give_back_own(struct remote_hold *g)
{
    bool was_held[BOARDS_MAX] = {false};

    for (int ms = 0; look_again(g) && !g->again && ms < ANSWER_MS; ms += OWN_QUERY_MS)
        cli_loop_wait(g->loop, OWN_QUERY_MS);
    for (size_t i = 0; i < g->h->n; i++) {
        was_held[i] = g->h->target[i].claim > 0;
        if (was_held[i])
            (void)withdraw(g->o->daemon, g->h->target[i].claim, NULL);
    }
    uint64_t until = loop_now_ns(g->loop) + cli_wall_ns(g->loop, BACK_MS);
    for (size_t i = 0; i < g->h->n; i++)
        while (was_held[i] && !is_own_back(g, i) && !g->again &&
               loop_now_ns(g->loop) < until)
            own_node_wait(g->own, until);
}

static void give_back(struct remote_hold *g)
{
    auto_(ask_free) struct ask *daemon = NULL;
    uw_error err = {""};

    int r = daemon_ask(g->o->env, g->o->boards, g->loop, &daemon,
                       &err); /* the connection in use may hang */
    if (r != 0)
        cli_say("cap: the daemon does not answer%s%s: its claims end with this process",
                r < 0 ? ": " : "", r < 0 ? err.text : "");
    for (size_t i = 0; i < g->h->n && r == 0; i++)
        give_back_one(g, daemon, i);
}

/* ---- the whole command ---- */

/* Fills the targets of the boards. */
static int aim(struct remote_hold *g, const struct cap_boards *b)
{
    struct cap_hold *h = g->h;
    uw_error err = {""};

    h->simulated = b->simulated;
    for (size_t i = 0; i < b->n; i++) {
        if (g->o->clock) {
            h->target[i].clock_mhz = g->cap->mw;
            h->target[i].index = (unsigned)take_u64(b->at[i], "gpu");
            take_copy(b->at[i], "uuid", h->target[i].uuid, sizeof h->target[i].uuid);
        } else if (cap_read_target(b->at[i], g->cap, &h->target[i], &err) < 0)
            return cli_fail(EXIT_USAGE, "cap: %s", err.text);
        h->n = i + 1;
    }
    return EXIT_OK;
}

/* Says which jobs' limits the claims lower. */
static void say_lowered(const struct remote_hold *g)
{
    auto_(json_free) struct json *doc = NULL;
    char line[160];

    if (!g->boards || g->o->clock ||
        ask_wait(g->o->daemon, "GET", "/v1/claims", NULL, &doc, NULL) < 0 || !doc)
        return;
    for (size_t i = 0; i < g->h->n; i++)
        if (cap_read_lowers(g->boards->at[i], json_get(json_root(doc), "claims"),
                            g->h->target[i].cap_mw, 0, line, sizeof line))
            cli_say("cap: %s", line);
}

static int claim_all(struct remote_hold *g)
{
    struct cap_hold *h = g->h;
    uw_error err = {""};
    int r = 0;

    for (size_t i = 0; i < h->n && r >= 0; i++) {
        r = claim(g->o, h, i, s_of_ns(h->for_ns), &h->target[i].claim, &err);
        if (r < 0 && !g->signalled)
            cli_say("cap: GPU %u: %s", h->target[i].index,
                    error_after(err.text, h->target[i].uuid));
    }
    if (r >= 0) {
        say_lowered(g);
        return EXIT_OK;
    }
    for (size_t i = 0; i < h->n; i++)
        if (h->target[i].claim)
            (void)withdraw(g->o->daemon, h->target[i].claim, NULL);
    return g->signalled ? cap_hold_code(h) : cli_exit_of(r);
}

/* A node in this process, and its actuator. */
static int open_own(struct remote_hold *g)
{
    const struct cap_hold *h = g->h;
    char only[BOARDS_MAX * 12] = "";
    struct own_setup setup;
    uw_error err = {""};
    size_t at = 0;

    own_setup(h->env, h->library, g->loop, &setup);
    for (size_t i = 0; i < h->n; i++)
        at += (size_t)snprintf(only + at, sizeof only - at, "%s%u", i ? "," : "",
                               h->target[i].index);
    setup.own.only = h->n > 0 ? only : NULL;
    int r = own_node_new(&setup.own, &g->own, &err);
    if (r == 0) {
        g->o->daemon = own_node_ask(g->own);
        r = own_node_actuator(g->own, &err);
    }
    if (r < 0 && g->signalled)
        return cap_hold_code(h);
    return r < 0 ? cli_fail(EXIT_FAIL, "cap: %s", err.text) : EXIT_OK;
}

static int start(struct remote_hold *g, uw_error *err)
{
    uint64_t now = loop_now_ns(g->loop);

    g->begin_ns = now;
    int r =
        loop_timer_new(g->loop, now + cli_wall_ns(g->loop, g->own ? 0 : FIRST_QUERY_MS),
                       0, on_tick, g, &g->tick, err);
    if (r == 0 && g->h->for_ns)
        r = loop_timer_new(g->loop, now + g->h->for_ns, 0, on_enough, g, &g->enough, err);
    return r;
}

static void end(struct remote_hold *g, bool begun)
{
    g->ending = true;
    if (!g->own)
        ask_free(take(g->o->daemon)); /* ends a query that hangs */
    loop_timer_free(take(g->tick));
    loop_timer_free(take(g->enough));
    clear_line(g);
    if (begun && g->own)
        give_back_own(g);
    else if (begun)
        give_back(g);
    own_node_free(g->own); /* drops a query */
    json_free(g->query.claims);
    json_free(g->query.gpus);
}

static int hold(struct remote_hold *g)
{
    struct cli_signals signals = {{NULL}};
    uw_error err = {""};

    int r = cli_signals_new(g->loop, 3, on_signal, g, &signals, &err);
    int code = r == 0 ? EXIT_OK : EXIT_FAIL;
    if (code == EXIT_OK && g->o->own)
        code = open_own(g);
    if (code == EXIT_OK)
        code = claim_all(g);
    bool begun = code == EXIT_OK && g->h->n > 0;
    g->h->begun = begun;
    if (r == 0 && begun)
        r = start(g, &err);
    if (r == 0 && begun)
        r = loop_run(g->loop, &err);
    if (r < 0)
        code = cli_fail(EXIT_FAIL, "cap: %s", err.text);
    end(g, begun);
    cli_signals_free(&signals);
    return code == EXIT_OK ? cap_hold_code(g->h) : code;
}

int cap_own_hold(struct cap_hold *h)
{
    auto_(loop_free) struct loop *loop = NULL;
    struct cap_remote o = {.env = h->env, .boards = h->library, .own = true};
    struct remote_hold g = {.o = &o, .h = h};
    uw_error err = {""};

    int r = cli_loop_new(h->env, &loop, &err);
    if (r < 0)
        return cli_fail(EXIT_FAIL, "cap: %s", err.text);
    g.loop = o.loop = loop;
    return hold(&g);
}

/* Says which claims wait for a board that another command holds. */
static void say_waiting(const struct remote_hold *g)
{
    auto_(json_free) struct json *doc = NULL;

    if (ask_wait(g->o->daemon, "GET", "/v1/gpus", NULL, &doc, NULL) < 0 || !doc)
        return;
    for (size_t i = 0; i < g->h->n; i++) {
        const struct cap_target *t = &g->h->target[i];
        const struct json_value *gpu =
            take_entry(json_get(json_root(doc), "gpus"), "gpu", t->index);
        const char *holder = take_text(json_get(gpu, "cap"), "holder");
        uint64_t mw = take_u64(json_get(gpu, "limits"), "enforced_mw");
        if (*holder && (t->clock_mhz || !mw || mw > t->cap_mw))
            cli_say("cap: GPU %u: claim %" PRIu64 " is not in force yet: %s", t->index,
                    t->claim, holder);
    }
}

/* Makes the claims and leaves them with the daemon. */
static int leave(struct remote_hold *g)
{
    struct cap_hold *h = g->h;

    int code = claim_all(g);
    h->begun = code == EXIT_OK;
    for (size_t i = 0; i < h->n && code == EXIT_OK; i++)
        cli_say("cap: GPU %u: claim %" PRIu64 ", at most %s%s, left to the daemon; "
                "`underwatt cap clear --gpus %u` withdraws it",
                h->target[i].index, h->target[i].claim, cap_target_text(&h->target[i]),
                cap_preset_text(h), h->target[i].index);
    if (h->begun)
        say_waiting(g);
    return code;
}

static void say_ability(const struct cap_remote *o)
{
    auto_(json_free) struct json *doc = NULL;

    if (ask_wait(o->daemon, "GET", "/v1/node", NULL, &doc, NULL) < 0)
        return;
    const struct json_value *node = json_root(doc), *act = json_get(node, "actuator");
    if (take_bool(node, "dry_run"))
        cli_say("cap: dry run: the daemon records claims and sets no limits");
    else if (!take_bool(act, "up"))
        cli_say("cap: the daemon cannot set limits now: %s", take_text(act, "why"));
}

int cap_daemon_set(struct cap_remote *o, const struct cap_arg *cap, struct cap_hold *h)
{
    auto_(cap_boards_fini) struct cap_boards boards = {.n = 0};
    struct remote_hold g = {.o = o,
                            .h = h,
                            .cap = cap,
                            .boards = &boards,
                            .loop = o->loop,
                            .tty = isatty(STDERR_FILENO) == 1};

    int code = cap_boards_get(o, &boards);
    if (code == EXIT_OK)
        code = aim(&g, &boards);
    if (code != EXIT_OK)
        return code;
    say_ability(o);
    if (o->detach)
        return leave(&g);
    return hold(&g);
}
