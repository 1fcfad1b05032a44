#include "cli/nodes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "cli/daemon.h"
#include "cli/own-place.h"

enum { OWN_MAX = 32, ANSWER_MS = 1000 };

struct nodes {
    const struct cmd *cmd;
    struct httpc *daemon; /* NULL: the user's own commands */
    struct own_place place;
    struct httpc *own[OWN_MAX];
    size_t n;
    bool silent; /* no messages about commands that do not answer */
};

/* ---- the user's own commands ---- */

static void forget(struct nodes *n)
{
    for (size_t i = 0; i < n->n; i++)
        httpc_free(n->own[i]);
    n->n = 0;
}

static void on_node(const char *path, int pid, void *user)
{
    struct nodes *n = user;
    const struct httpc_opts opts = {.socket = path, .timeout_ns = ANSWER_MS * NS_PER_MS};
    auto_(httpc_free) struct httpc *c = NULL;
    auto_(json_free) struct json *doc = NULL;
    uw_error err = {""};

    if (n->n == OWN_MAX || httpc_new(&opts, &c, NULL) < 0)
        return;
    int r = httpc_ask(c, "GET", "/v1/claims", NULL, &doc, &err);
    if (r == -ETIMEDOUT && !n->silent)
        cli_say("%s: process %d does not answer", n->cmd->name, pid);
    else if (r < 0 && r != -ECONNREFUSED && r != -ENOENT && !n->silent)
        cli_say("%s: process %d: %s", n->cmd->name, pid, err.text);
    if (r < 0)
        return;
    bool claims = json_count(json_get(json_root(doc), "claims")) > 0;
    memmove(n->own + claims, n->own, claims ? n->n * sizeof n->own[0] : 0);
    n->own[claims ? 0 : n->n] = take(c);
    n->n++;
}

void nodes_look(struct nodes *n)
{
    if (n->daemon)
        return;
    forget(n);
    own_place_each(&n->place, on_node, n);
    n->silent = true;
}

/* ---- life ---- */

int nodes_need(const struct cmd *cmd, const struct cli_env *env, const char *boards,
               struct nodes **ret)
{
    auto_(nodes_free) struct nodes *n = calloc(1, sizeof *n);
    uw_error err = {""};

    if (!n)
        return cli_fail(EXIT_FAIL, "%s: out of memory", cmd->name);
    n->cmd = cmd;
    int r = daemon_open(env, boards, &n->daemon, &err);
    if (r == DAEMON_ABSENT) {
        own_place_open(env, boards, &n->place);
        nodes_look(n);
    }
    if (r != 0 && n->n == 0)
        return daemon_failed(cmd, env, boards, r, &err);
    *ret = take(n);
    return EXIT_OK;
}

void nodes_free(struct nodes *n)
{
    if (!n)
        return;
    forget(n);
    httpc_free(n->daemon);
    free(n);
}

bool nodes_are_own(const struct nodes *n)
{
    return !n->daemon;
}

/* ---- asking ---- */

static bool has_claims(const struct json *doc)
{
    return json_count(json_get(json_root(doc), "claims")) > 0;
}

/* For one board (/explain): the node with a claim on the board comes first. */
static int join(struct json **all, struct json **doc)
{
    if (!has_claims(*all) && has_claims(*doc)) {
        struct json *first = *all;
        *all = *doc;
        *doc = first;
    }
    return json_extend(*all, *doc);
}

int nodes_get(struct nodes *n, const char *path, const char *json, struct json **ret,
              uw_error *err)
{
    auto_(json_free) struct json *all = NULL;
    int r = -ENOENT;

    if (n->daemon)
        return daemon_get(n->daemon, path, json, ret, err);
    (void)fail(err, r, "no command of yours has a GPU any more");
    for (size_t i = 0; i < n->n && r != -ENOMEM; i++) {
        auto_(json_free) struct json *doc = NULL;
        uw_error why = {""};
        int got = httpc_ask(n->own[i], "GET", path, NULL, &doc, &why);
        if (got == 0 && doc && all)
            r = join(&all, &doc);
        else if (got == 0 && doc)
            all = take(doc);
        else if (!all)
            r = fail(err, got < 0 ? got : -EPROTO, "%s", why.text);
    }
    if (!all || r == -ENOMEM)
        return r;
    r = json ? daemon_write(json, all, err) : 0;
    if (r == 0)
        *ret = take(all);
    return r;
}
