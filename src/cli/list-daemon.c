#include "cli/list-daemon.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cli/daemon.h"
#include "cli/take.h"

enum { ANSWER_S = 1 };

void list_daemon_fini(struct list_daemon *d)
{
    json_free(d->gpus);
    json_free(d->jobs);
    *d = (struct list_daemon){NULL, NULL};
}

void list_daemon_ask(const struct cli_env *env, const char *boards,
                     struct list_daemon *ret)
{
    auto_(httpc_free) struct httpc *daemon = NULL;
    auto_(json_free) struct json *gpus = NULL, *jobs = NULL;
    uw_error err = {""};

    *ret = (struct list_daemon){NULL, NULL};
    int r = daemon_open_within(env, boards, ANSWER_S * NS_PER_S, &daemon, &err);
    if (r == DAEMON_ABSENT)
        return;
    if (r == 0)
        r = httpc_ask(daemon, "GET", "/v1/gpus", NULL, &gpus, &err);
    if (r == 0)
        r = httpc_ask(daemon, "GET", "/v1/jobs", NULL, &jobs, &err);
    if (r < 0) {
        cli_say("list: %s; boards are read without the daemon", err.text);
        return;
    }
    ret->gpus = take(gpus);
    ret->jobs = take(jobs);
}

const struct json_value *list_daemon_board(const struct list_daemon *d, const char *uuid)
{
    const struct json_value *gpus = d->gpus ? json_get(json_root(d->gpus), "gpus") : NULL;

    for (size_t i = 0; i < json_count(gpus); i++)
        if (strcmp(take_text(json_at(gpus, i), "uuid"), uuid) == 0)
            return json_at(gpus, i);
    return NULL;
}

bool list_daemon_cap(const struct json_value *board, char *ret, size_t size)
{
    const struct json_value *cap = json_get(board, "cap");
    const char *state = take_text(cap, "state");
    char text[240];

    if (!*state || (take_cap_free(cap) && !*take_text(cap, "holder")))
        return false;
    int n = snprintf(ret, size, "%s", take_text(cap, "why"));
    if (n < 0 || (size_t)n >= size || strcmp(state, "held") == 0 || take_cap_free(cap))
        return true;
    take_cap_state(cap, text, sizeof text);
    (void)snprintf(ret + n, size - (size_t)n, " (%s)", text);
    return true;
}

void list_daemon_jobs(const struct list_daemon *d, const struct json_value *board,
                      char *ret, size_t size)
{
    const struct json_value *ids = json_get(board, "jobs");
    size_t at = 0;

    ret[0] = '\0';
    for (size_t i = 0; i < json_count(ids); i++) {
        uint64_t id = 0;
        if (!json_as_u64(json_at(ids, i), &id))
            continue;
        const struct json_value *job =
            take_entry(json_get(json_root(d->jobs), "jobs"), "id", id);
        char who[48];
        take_owner(job, who, sizeof who);
        int n = snprintf(ret + at, size - at, "%sjob %" PRIu64 " (%s)", at ? ", " : "",
                         id, job ? who : "?");
        if (n < 0 || (size_t)n >= size - at)
            return;
        at += (size_t)n;
    }
}
