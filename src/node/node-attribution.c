/* The books of the node's energy, on their way to ledger and views. */
#include <math.h>

#include "node/node-inside.h"

static void on_row(const struct attribution_row *row, void *user)
{
    node_ledger_energy(user, row);
}

static void on_total(const struct attribution_total *total, void *user)
{
    struct node *node = user;

    node_ledger_total(node, total);
    if (node->windows)
        client_windows_total(node->windows, total);
}

int node_attribution_start(struct node *node, uw_error *err)
{
    struct sampler *sampler[BOARDS_MAX];
    struct attribution_opts opts = {.loop = node->loop,
                                    .sampler = sampler,
                                    .n = node->n,
                                    .roster = node->roster,
                                    .interval_ns = node->config.node.interval_ns,
                                    .before = node->before,
                                    .on_row = on_row,
                                    .on_total = on_total,
                                    .user = node};

    for (size_t i = 0; i < node->n; i++)
        sampler[i] = node->board[i].sampler;
    return attribution_new(&opts, &node->book, err);
}

void node_attribution_stop(struct node *node)
{
    attribution_free(take(node->book));
}

void node_attribution_turn(struct node *node, size_t board)
{
    if (node->book)
        attribution_turn(node->book, board);
    node_rapl_turn(node);
}

void node_attribution_cap(struct node *node, size_t board, uint32_t enforced_mw)
{
    if (node->book)
        attribution_cap(node->book, board, enforced_mw);
}

void node_attribution_detach(struct node *node, size_t board, bool away)
{
    if (node->book)
        attribution_detach(node->book, board, away);
}

void node_attribution_forget(struct node *node, uint64_t job)
{
    if (node->book)
        attribution_forget(node->book, job);
    node_rapl_forget(node, job);
}

void node_attribution_board(struct node *node, size_t i, struct view_board *ret)
{
    const struct attribution_board *b = attribution_board(node->book, i);

    ret->energy_j = b->energy_j;
    ret->idle_j = b->idle_j;
    ret->unattributed_j = b->unattributed_j;
    ret->attributed_j = b->attributed_j;
    ret->today_j = b->today_j;
}

void node_attribution_job(struct node *node, uint64_t id, struct view_job *ret)
{
    const struct attribution_job *b = attribution_job(node->book, id);
    const struct node_job_rec *rec = node_job_rec(node, id);
    bool known = b || (rec && rec->before_j > 0);
    double half2 = 0;

    ret->settled = ret->job->ended_ns && attribution_settled(node->book, id);
    if (b) {
        ret->energy_j += b->energy_j;
        half2 += b->half2_j2;
    }
    if (rec) {
        ret->energy_j += rec->before_j;
        half2 += rec->before_half_j * rec->before_half_j;
    }
    ret->half_j = (struct view_value){.known = known, .v = sqrt(half2)};
}
