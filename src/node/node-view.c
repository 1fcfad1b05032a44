/* What the node shows: node_look(). */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "gpu/select.h"
#include "node/node-inside.h"

enum { FRESH_S = 5 };

/* Power as the board itself averages it, where its last word is fresh. */
static struct view_value power_of(const struct sampler_now *now, uint64_t now_ns)
{
    struct view_value v = {0};

    if (now->last.has == 0 || s_between(now->last.at_ns, now_ns) > FRESH_S)
        return v;
    v.known = now->last.has & (GPU_HAS_AVERAGE | GPU_HAS_POWER);
    v.v = now->last.has & GPU_HAS_AVERAGE ? now->last.average_w : now->last.power_w;
    return v;
}

static void look_at_board(struct node *node, size_t i, uint64_t now_ns)
{
    struct node_board *b = &node->board[i];
    struct view_board *v = &node->view_board[i];
    const struct sampler_now *now = sampler_board(b->sampler, 0);

    *v = (struct view_board){.info = board_view(boards_at(node->boards, i))->info,
                             .last = now->last,
                             .calls = sampler_calls(b->sampler),
                             .failures = now->failures,
                             .power_w = power_of(now, now_ns)};
    memcpy(v->throttle_s, b->throttle_s, sizeof v->throttle_s);
}

const struct node_view *node_look(struct node *node)
{
    uint64_t now_ns = loop_now_ns(node->loop);

    for (size_t i = 0; i < node->n; i++)
        look_at_board(node, i, now_ns);
    node->view = (struct node_view){
        .hostname = node->hostname,
        .version = node->opts.version,
        .simulated = node->opts.simulated,
        .dry_run = node->config.node.dry_run,
        .now_ns = now_ns,
        .began_ns = node->began_ns,
        .utc_ns = loop_utc_ns(node->loop),
        .board = node->view_board,
        .n_boards = node->n,
        .config_loads = node->config_loads,
        .config_failures = node->config_failures,
    };
    return &node->view;
}

int node_board(struct node *node, const char *name, size_t *ret, uw_error *err)
{
    const struct gpu_info *info[BOARDS_MAX] = {NULL};
    struct selection chosen;

    for (size_t i = 0; i < node->n; i++)
        info[i] = board_view(boards_at(node->boards, i))->info;
    if (select_list(name, info, node->n, &chosen, err) < 0)
        return -ENOENT;
    if (chosen.n != 1)
        return fail(err, -ENOENT, "'%.60s' is no single board", name);
    *ret = chosen.at[0];
    return 0;
}
