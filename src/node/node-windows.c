/* Windows that clients hold open: whose they are, and on which boards. */
#include <errno.h>

#include "base/error.h"
#include "node/node-inside.h"

int node_windows_start(struct node *node, uw_error *err)
{
    struct sampler *sampler[BOARDS_MAX];
    struct client_windows_opts opts = {
        .loop = node->loop, .sampler = sampler, .n = node->n};

    for (size_t i = 0; i < node->n; i++)
        sampler[i] = node->board[i].sampler;
    return client_windows_new(&opts, &node->windows, err);
}

void node_windows_stop(struct node *node)
{
    client_windows_free(take(node->windows));
}

/* A token for one job has no business with all boards' windows. */
static int may(struct node *node, const struct node_who *who, uw_error *err)
{
    if (!who->may_claim || who->only_job)
        return node_refuse(
            node, who, fail(err, -EPERM, "%s may hold no windows open here", who->name),
            err);
    if (!node->windows)
        return fail(err, -EAGAIN, "no boards are open now");
    return 0;
}

static uid_t whose(const struct node_who *who)
{
    return who->admin ? CLIENT_WINDOWS_ANYBODY : who->uid;
}

int node_window_begin(struct node *node, const struct node_who *who, uint64_t *ret_id,
                      uw_error *err)
{
    int r = may(node, who, err);

    return r < 0 ? r : client_windows_begin(node->windows, who->uid, ret_id, err);
}

int node_window_end(struct node *node, const struct node_who *who, uint64_t id,
                    client_window_fn fn, void *user, uw_error *err)
{
    int r = may(node, who, err);

    return r < 0 ? r : client_windows_end(node->windows, whose(who), id, fn, user, err);
}

int node_window_drop(struct node *node, const struct node_who *who, uint64_t id,
                     uw_error *err)
{
    int r = may(node, who, err);

    return r < 0 ? r : client_windows_drop(node->windows, whose(who), id, err);
}
