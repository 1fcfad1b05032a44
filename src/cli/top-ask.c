#include "cli/top-ask.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "ask/ask.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/cli-loop.h"
#include "config/daemon-address.h"

enum { EVERY_S = 60, ANSWER_S = 60, REPORT_BYTES = 64 << 20, TURN_MS = 1 };

struct top_ask {
    struct loop *loop;
    struct top *top;
    struct ask *ask;
    uint64_t next_ns;
    bool waits;
};

static int on_answer(struct ask_answer *answer, void *user)
{
    struct top_ask *a = user;
    struct top *t = a->top;
    int r = answer->r;

    a->waits = false;
    t->wasted_trouble[0] = '\0';
    if (r >= 0 && !answer->doc)
        r = fail(&answer->error, -EINVAL, "the answer is empty");
    if (r >= 0)
        r = top_take_waste(t, json_root(answer->doc), &answer->error);
    if (r < 0)
        (void)snprintf(t->wasted_trouble, sizeof t->wasted_trouble, "%.199s",
                       answer->error.text);
    return 0;
}

int top_ask_new(const struct cli_env *env, const char *boards, struct loop *loop,
                struct top *top, struct top_ask **ret, uw_error *err)
{
    auto_(top_ask_free) struct top_ask *a = calloc(1, sizeof *a);
    struct httpc *client = NULL;
    struct daemon_address where;

    if (!a)
        return fail(err, -ENOMEM, "out of memory");
    a->loop = loop;
    a->top = top;
    int r = daemon_address(env->socket, boards, &where, err);
    const struct httpc_opts opts = {.socket = where.socket,
                                    .timeout_ns = ANSWER_S * NS_PER_S,
                                    .body_max = REPORT_BYTES};
    if (r == 0)
        r = httpc_new(&opts, &client, err);
    if (r == 0)
        r = ask_http(loop, client, &a->ask, err);
    if (r < 0)
        return r;
    *ret = take(a);
    return 0;
}

void top_ask_free(struct top_ask *a)
{
    if (!a)
        return;
    ask_free(a->ask);
    free(a);
}

bool top_ask_turn(struct top_ask *a)
{
    static const char path[] = "/v1/report?waste=true&from=today";
    uint64_t now = loop_now_ns(a->loop);
    uw_error err = {""};

    if (!a->waits && now >= a->next_ns) {
        a->next_ns = now + EVERY_S * NS_PER_S;
        a->waits = ask_request(a->ask, "GET", path, NULL, on_answer, a, &err) == 0;
        if (!a->waits)
            (void)snprintf(a->top->wasted_trouble, sizeof a->top->wasted_trouble,
                           "%.199s", err.text);
    }
    if (a->waits)
        cli_loop_wait(a->loop, TURN_MS);
    return a->waits;
}
