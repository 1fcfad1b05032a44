#include "cli/cap-hold.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "actuator/client.h"
#include "base/auto.h"
#include "base/units.h"
#include "cli/cli-loop.h"
#include "cli/who.h"
#include "core/cap/ramp.h"
#include "core/optimum/search.h"

enum { TICK_MS = 250 };

struct holding {
    struct cap_hold *h;
    struct loop *loop;
    struct actuator *act;
    struct loop_timer *tick, *enough;
    struct ramp ramp[BOARDS_MAX];
    uint32_t commanded_mw[BOARDS_MAX];
    bool held[BOARDS_MAX], asked[BOARDS_MAX];
    bool begun, ending, told;
    bool failed; /* no board was held */
};

static size_t target_of(const struct holding *g, const char *uuid)
{
    size_t i = 0;

    while (i < g->h->n && strcmp(g->h->target[i].uuid, uuid) != 0)
        i++;
    return i;
}

static void lose(struct holding *g, size_t i, const char *text)
{
    struct cap_target *t = &g->h->target[i];

    t->lost = true;
    g->held[i] = false;
    (void)snprintf(t->text, sizeof t->text, "%s", text);
    cli_say("cap: GPU %u: %s", t->index, text);
}

static void stop_when_done(struct holding *g)
{
    for (size_t i = 0; i < g->h->n; i++)
        if (g->held[i] || g->asked[i])
            return;
    if (g->begun)
        loop_stop(g->loop, 0);
}

/* ---- release ---- */

static int on_release(struct actuator *act, const struct actuator_reply *reply,
                      void *user)
{
    struct holding *g = user;
    size_t i = target_of(g, reply->uuid);
    (void)act;

    if (i == g->h->n)
        return 0;
    g->held[i] = g->asked[i] = false;
    g->h->target[i].restored = reply->result == ACTUATOR_DONE;
    if (reply->result != ACTUATOR_DONE)
        lose(g, i, reply->text);
    stop_when_done(g);
    return 0;
}

static void give_back(struct holding *g)
{
    g->ending = true;
    for (size_t i = 0; i < g->h->n; i++) {
        if (!g->held[i])
            continue;
        g->asked[i] = true;
        if (actuator_release(g->act, g->h->target[i].uuid, on_release, g) < 0) {
            g->asked[i] = false;
            lose(g, i, "the actuator restores it when this process ends");
        }
    }
    stop_when_done(g);
}

static int on_enough(struct loop_timer *timer, uint64_t now, void *user)
{
    (void)timer;
    (void)now;
    give_back(user);
    return 0;
}

static int on_signal(struct loop_signal *source, int signo, void *user)
{
    struct holding *g = user;
    (void)source;
    (void)signo;

    if (g->ending || !g->begun)
        loop_stop(g->loop, 0); /* second signal: the actuator restores the rest */
    else
        give_back(g);
    return 0;
}

/* ---- walking and holding ---- */

static int on_set(struct actuator *act, const struct actuator_reply *reply, void *user)
{
    struct holding *g = user;
    size_t i = target_of(g, reply->uuid);
    (void)act;

    if (i == g->h->n)
        return 0;
    struct cap_target *t = &g->h->target[i];
    g->asked[i] = false;
    switch (reply->result) {
    case ACTUATOR_CLAMPED:
        cli_say("cap: GPU %u: %s", t->index, reply->text);
        /* fall through */
    case ACTUATOR_DONE:
        t->enforced_mw = reply->enforced_mw;
        t->reached |= g->commanded_mw[i] == t->cap_mw;
        break;
    case ACTUATOR_BUSY:
        break;
    case ACTUATOR_YIELDED:
    case ACTUATOR_GONE:
        lose(g, i, reply->text);
        break;
    default:
        (void)snprintf(t->text, sizeof t->text, "%s", reply->text);
        cli_say("cap: GPU %u: %s", t->index, reply->text);
        if (!g->ending)
            give_back(g);
    }
    stop_when_done(g);
    return 0;
}

void cap_hold_tell(const struct cap_hold *h, size_t n)
{
    const char *what = n > 1 ? "them" : "it";

    if (h->for_ns > 0)
        cli_say("cap: held for %g s; ^C gives %s back sooner", s_of_ns(h->for_ns), what);
    else
        cli_say("cap: held for as long as this runs; ^C gives %s back", what);
}

static void tell(struct holding *g)
{
    size_t reached = 0, held = 0;

    for (size_t i = 0; i < g->h->n; i++) {
        held += g->held[i];
        reached += g->held[i] && g->h->target[i].reached;
    }
    if (g->told || held == 0 || reached < held)
        return;
    g->told = true;
    for (size_t i = 0; i < g->h->n; i++) {
        const struct cap_target *t = &g->h->target[i];
        if (g->held[i])
            cli_say("cap: GPU %u at %g W, was %g W%s", t->index, w_of_mw(t->enforced_mw),
                    w_of_mw(t->original_mw), g->h->simulated ? " (simulated)" : "");
    }
    cap_hold_tell(g->h, held);
}

static int on_tick(struct loop_timer *timer, uint64_t now, void *user)
{
    struct holding *g = user;
    (void)timer;

    for (size_t i = 0; i < g->h->n && !g->ending; i++) {
        uint32_t mw = ramp_at(&g->ramp[i], now);
        if (!g->held[i] || g->asked[i] || mw == g->commanded_mw[i])
            continue;
        g->commanded_mw[i] = mw;
        if (actuator_set_limit(g->act, g->h->target[i].uuid, mw, on_set, g) == 0)
            g->asked[i] = true;
        else
            g->commanded_mw[i] = 0; /* retry at the next tick */
    }
    tell(g);
    return 0;
}

/* ---- beginning ---- */

static void begin_walk(struct holding *g, size_t i, uint32_t original_mw)
{
    const struct cap_target *t = &g->h->target[i];
    uint64_t now = loop_now_ns(g->loop);

    ramp_init(&g->ramp[i], original_mw, MW_PER_W, now);
    ramp_to(&g->ramp[i], t->cap_mw, 0, SEARCH_RAMP * t->default_mw, !t->busy, now);
    g->commanded_mw[i] = 0;
}

static bool is_daemons(pid_t pid)
{
    struct who who;

    who_is("", pid, &who);
    return who.daemon;
}

static int on_hold(struct actuator *act, const struct actuator_reply *reply, void *user)
{
    struct holding *g = user;
    size_t i = target_of(g, reply->uuid);
    (void)act;

    if (i == g->h->n)
        return 0;
    g->asked[i] = false;
    if (reply->result == ACTUATOR_DONE) {
        g->held[i] = true;
        g->h->target[i].original_mw = reply->original_mw;
        begin_walk(g, i, reply->original_mw);
    } else {
        lose(g, i, reply->text);
        if (reply->result == ACTUATOR_TAKEN && is_daemons(reply->pid))
            cli_say("cap: process %d is the node's daemon: omit --local to use it",
                    (int)reply->pid);
    }
    stop_when_done(g);
    return 0;
}

static int on_ready(struct actuator *act, int r, const char *text, void *user)
{
    struct holding *g = user;

    if (r < 0) {
        g->failed = true;
        cli_say("cap: %s", text);
        loop_stop(g->loop, 0);
        return 0;
    }
    for (size_t i = 0; i < g->h->n; i++) {
        if (actuator_hold(act, g->h->target[i].uuid, on_hold, g) == 0)
            g->asked[i] = true;
        else
            lose(g, i, "cannot be requested");
    }
    g->begun = true;
    stop_when_done(g); /* no target, or no board could be requested */
    return 0;
}

static int on_event(struct actuator *act, enum actuator_event event,
                    const struct actuator_reply *what, void *user)
{
    struct holding *g = user;
    size_t i = target_of(g, what->uuid);

    if (event == ACTUATOR_EVENT_ENDED) {
        for (i = 0; i < g->h->n; i++)
            if (g->held[i])
                lose(g, i, what->text);
        loop_stop(g->loop, 0);
        return 0;
    }
    if (i == g->h->n || !g->held[i])
        return 0;
    if (event == ACTUATOR_EVENT_LEASE && !g->ending) { /* this process was stopped */
        g->held[i] = false;
        g->asked[i] = actuator_hold(act, what->uuid, on_hold, g) == 0;
        if (g->asked[i])
            return 0;
    }
    lose(g, i, what->text);
    stop_when_done(g);
    return 0;
}

static int start(struct holding *g, uw_error *err)
{
    const struct actuator_opts opts = {.on_ready = on_ready,
                                       .on_event = on_event,
                                       .user = g,
                                       .library = g->h->library,
                                       .simulated = g->h->simulated};
    uint64_t now = loop_now_ns(g->loop);

    int r = loop_timer_new(g->loop, now, TICK_MS * NS_PER_MS, on_tick, g, &g->tick, err);
    if (r == 0 && g->h->for_ns)
        r = loop_timer_new(g->loop, now + g->h->for_ns, 0, on_enough, g, &g->enough, err);
    if (r == 0)
        r = actuator_start_local(g->loop, &opts, &g->act, err);
    return r;
}

const char *cap_target_text(const struct cap_target *t)
{
    static char text[32];

    if (t->clock_mhz)
        (void)snprintf(text, sizeof text, "%" PRIu32 " MHz", t->clock_mhz);
    else
        (void)snprintf(text, sizeof text, "%g W", w_of_mw(t->cap_mw));
    return text;
}

int cap_hold_code(const struct cap_hold *h)
{
    size_t good = 0;

    for (size_t i = 0; i < h->n; i++) {
        const struct cap_target *t = &h->target[i];
        good += t->reached && !t->lost && (t->restored || t->clock_mhz);
        if (!t->reached && !t->lost)
            cli_say("cap: GPU %u: ended before it reached %s", t->index,
                    cap_target_text(t));
    }
    if (good == 0 && h->n > 0)
        return EXIT_FAIL;
    return good == h->n ? EXIT_OK : EXIT_PARTIAL;
}

int cap_hold(struct cap_hold *h)
{
    struct cli_signals signals = {{NULL}};
    struct holding g = {.h = h};
    uw_error err = {""};

    int r = cli_loop_new(h->env, &g.loop, &err);
    if (r == 0)
        r = cli_signals_new(g.loop, 3, on_signal, &g, &signals, &err);
    if (r == 0)
        r = start(&g, &err);
    if (r == 0)
        r = loop_run(g.loop, &err);
    int code = r < 0      ? cli_fail(EXIT_FAIL, "cap: %s", err.text)
               : g.failed ? EXIT_FAIL
                          : cap_hold_code(h);
    cli_signals_free(&signals);
    loop_timer_free(g.tick);
    loop_timer_free(g.enough);
    actuator_free(g.act);
    loop_free(g.loop);
    return code;
}
