#include "caps/actuator-link.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/units.h"

enum { CONNECT_FIRST_MS = 500, CONNECT_MOST_S = 30 };

struct actuator_link {
    struct actuator_link_opts opts;
    struct actuator *act;
    bool ready;
    unsigned failures; /* since the last connection that worked */
    struct loop_timer *timer;
};

/* Ends the connection and plans the next attempt. */
static void lose(struct actuator_link *l, const char *text)
{
    uint64_t wait_ns = CONNECT_FIRST_MS * NS_PER_MS;

    l->ready = false;
    bool again = l->opts.on_lost(text, l->opts.user);
    actuator_free(take(l->act));
    if (!again)
        return;
    for (unsigned i = 0; i < l->failures && wait_ns < CONNECT_MOST_S * NS_PER_S; i++)
        wait_ns *= 2;
    if (wait_ns > CONNECT_MOST_S * NS_PER_S)
        wait_ns = CONNECT_MOST_S * NS_PER_S;
    l->failures++;
    loop_timer_set(l->timer, loop_now_ns(l->opts.loop) + wait_ns, 0);
}

static int on_ready(struct actuator *act, int r, const char *text, void *user)
{
    struct actuator_link *l = user;

    if (r < 0) {
        lose(l, text);
        return 0;
    }
    l->ready = true;
    l->failures = 0;
    l->opts.on_ready(act, l->opts.user);
    return 0;
}

static int on_event(struct actuator *act, enum actuator_event event,
                    const struct actuator_reply *what, void *user)
{
    struct actuator_link *l = user;
    int r = l->opts.on_event(act, event, what, l->opts.user);

    if (event == ACTUATOR_EVENT_ENDED)
        lose(l, what && what->text[0] ? what->text : "the actuator is gone");
    return r;
}

static int connect_now(struct actuator_link *l, uw_error *err)
{
    struct actuator_opts opts = {.on_ready = on_ready,
                                 .on_event = on_event,
                                 .user = l,
                                 .library = l->opts.library,
                                 .simulated = l->opts.simulated};

    if (l->opts.local && !l->opts.virtual && !l->opts.service)
        return actuator_start_local(l->opts.loop, &opts, &l->act, err);
    if (l->opts.service)
        return actuator_connect_virtual(l->opts.loop, l->opts.service, &opts, &l->act,
                                        err);
    if (l->opts.virtual)
        return actuator_start_virtual(l->opts.loop, l->opts.virtual, l->opts.boards_lib,
                                      &opts, &l->act, err);
    return actuator_connect(l->opts.loop, l->opts.socket, &opts, &l->act, err);
}

static int on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct actuator_link *l = user;
    uw_error err = {""};
    (void)timer;
    (void)now_ns;

    if (!l->act && connect_now(l, &err) < 0)
        lose(l, err.text);
    return 0;
}

int actuator_link_new(const struct actuator_link_opts *opts, struct actuator_link **ret,
                      uw_error *err)
{
    auto_(actuator_link_free) struct actuator_link *l = calloc(1, sizeof *l);

    if (!l)
        return fail(err, -ENOMEM, "out of memory");
    l->opts = *opts;
    int r = loop_timer_new(opts->loop, UINT64_MAX, 0, on_timer, l, &l->timer, err);
    if (r < 0)
        return r;
    *ret = take(l);
    return 0;
}

void actuator_link_free(struct actuator_link *l)
{
    if (!l)
        return;
    actuator_free(l->act);
    loop_timer_free(l->timer);
    free(l);
}

void actuator_link_start(struct actuator_link *l)
{
    if (!l->act)
        loop_timer_set(l->timer, 0, 0);
}

struct actuator *actuator_link_ready(const struct actuator_link *l)
{
    return l && l->ready ? l->act : NULL;
}
