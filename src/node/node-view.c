/* What the node shows: node_look(). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/units.h"
#include "gpu/select.h"
#include "node/node-inside.h"

enum { FRESH_S = 5, LOST_S = 3600 };

static void look_at_board(struct node *node, size_t i, uint64_t now_ns)
{
    struct node_board *b = &node->board[i];
    struct view_board *v = &node->view_board[i];
    const struct sampler_now *now = sampler_board(b->sampler, 0);
    uint64_t fresh_ns = 3 * node->config.sampling.rest_ns;

    *v = (struct view_board){.info = board_view(boards_at(node->boards, i))->info,
                             .last = now->last,
                             .calls = board_calls(boards_at(node->boards, i)),
                             .failures = now->failures};
    if (node_is_detached(node, i) ||
        b->away.phase == DETACH_RETURNING) { /* what was last seen there is none of now */
        v->last = (struct gpu_sample){0};
        v->failures = 0;
        now_ns = 0;
    }
    if (fresh_ns < FRESH_S * NS_PER_S)
        fresh_ns = FRESH_S * NS_PER_S;
    v->power_w.known =
        now_ns &&
        mean_known(&b->mean, now_ns > fresh_ns ? now_ns - fresh_ns : 0, &v->power_w.v);
    if (b->lost.at_ns && s_between(b->lost.at_ns, now_ns) < LOST_S) {
        v->lost_ns = b->lost.at_ns;
        v->lost_text = b->lost.text;
    }
    memcpy(v->throttle_s, b->throttle_s, sizeof v->throttle_s);
    caps_look(node->caps, i, &v->cap);
    if (v->cap.state == CAPS_HELD && v->cap.enforced_mw) { /* newer than a sample's */
        v->last.has |= GPU_HAS_ENFORCED;
        v->last.enforced_mw = v->cap.enforced_mw;
    }
    node_attribution_board(node, i, v);
}

/* As long as they are away: what they are and what is claimed, nothing that is read. */
static void await_board(struct node *node, size_t i)
{
    struct view_board *v = &node->view_board[i];

    v->info = &node->kept[i].info;
    v->cap.claims = &node->kept[i].claims;
    v->cap.state = CAPS_LOST;
    v->cap.enforced_mw = 0;
    v->cap.ramping = v->cap.waiting = v->cap.failed = false;
    (void)snprintf(v->cap.text, sizeof v->cap.text, "waiting for the boards");
    v->last = (struct gpu_sample){0};
    v->power_w.known = false;
    v->n_jobs = 0;
}

void node_keep(struct node *node)
{
    if (!node->open || node->kept)
        return;
    struct node_kept *kept = calloc(node->n, sizeof *kept);
    if (!kept)
        return; /* they are out of view for a moment */
    (void)node_look(node);
    for (size_t i = 0; i < node->n; i++) {
        kept[i].info = *node->view_board[i].info;
        kept[i].claims = *node->view_board[i].cap.claims;
    }
    node->kept = kept;
    node->n_kept = node->n;
    for (size_t i = 0; i < node->n_kept; i++)
        await_board(node, i);
}

void node_keep_no_more(struct node *node)
{
    free(node->kept);
    node->kept = NULL;
    node->n_kept = 0;
}

static void look_at_job(struct node *node, const struct job_entry *job,
                        struct view_job *v)
{
    const struct steps *steps = searches_steps(node->tunings, job->id);
    const struct node_job_rec *rec = node_job_rec(node, job->id);
    uint64_t end = job->ended_ns ? job->ended_ns : loop_now_ns(node->loop);

    *v = (struct view_job){.job = job, .time_s = s_between(job->began_ns, end)};
    if (rec)
        v->phase = rec->phase;
    node_attribution_job(node, job->id, v);
    if (steps) {
        v->steps = steps->has_mark ? steps->mark.steps : 0;
        v->step_s = steps->step_s;
    }
    (void)searches_look(node->tunings, job->id, &v->search);
    for (size_t i = 0; i < node->n && !job->ended_ns; i++) {
        struct view_board *b = &node->view_board[i];
        if (job->boards & (1ull << i) && b->n_jobs < n_elements(b->job))
            b->job[b->n_jobs++] = job->id;
    }
}

static size_t look_at_jobs(struct node *node)
{
    size_t n = 0, running = roster_count(node->roster);

    if (array_reserve((void **)&node->view_job, &node->cap_view_job, VIEW_JOBS_MAX,
                      sizeof *node->view_job, VIEW_JOBS_MAX) < 0)
        return 0;
    for (size_t i = 0; i < running && n < VIEW_JOBS_MAX; i++)
        look_at_job(node, roster_at(node->roster, i), &node->view_job[n++]);
    for (size_t i = 0; i < node->n_jobs && n < VIEW_JOBS_MAX; i++)
        if (node->job[i]->ended_ns)
            look_at_job(node, &node->job[i]->last, &node->view_job[n++]);
    return n;
}

static void look_at_ledger(const struct node *node, struct node_view *v)
{
    struct ledger_queue_stats stats;

    v->ledger_lost = node->ledger_lost;
    if (!node->queue) { /* not yet, or while boards are opened anew */
        v->ledger_up = !node->ledger_text[0];
        v->ledger_trouble = v->ledger_up ? LEDGER_WELL : node->ledger_trouble;
        (void)snprintf(v->ledger, sizeof v->ledger, "%s", node->ledger_text);
        return;
    }
    ledger_queue_look(node->queue, &stats);
    v->ledger_rows = stats.rows;
    v->ledger_failures = stats.failures;
    v->ledger_waiting = stats.waiting;
    v->ledger_lost += stats.lost;
    v->ledger_up = !stats.failing;
    v->ledger_trouble = stats.trouble;
    (void)snprintf(v->ledger, sizeof v->ledger, "%s", stats.text);
}

const struct node_view *node_look(struct node *node)
{
    uint64_t now_ns = loop_now_ns(node->loop);

    for (size_t i = 0; i < node->n && node->open; i++)
        look_at_board(node, i, now_ns);
    for (size_t i = 0; i < node->n_kept; i++) /* no claim outlives its end */
        (void)claims_expire(&node->kept[i].claims, now_ns, NULL, NULL);
    node->view = (struct node_view){
        .hostname = node->hostname,
        .version = node->opts.version,
        .simulated = node->opts.simulated,
        .dry_run = node->config.node.dry_run,
        .read_only = !node->actuator_ready,
        .now_ns = now_ns,
        .began_ns = node->began_ns,
        .utc_ns = loop_utc_ns(node->loop),
        .board = node->view_board,
        .n_boards = node->open ? node->n : node->n_kept,
        .n_jobs = node->open ? look_at_jobs(node) : 0,
        .rapl_ns = node->config.boards.rapl_ns,
        .config_loads = node->config_loads,
        .config_failures = node->config_failures,
    };
    if (node->caps)
        caps_budget_look(node->caps, &node->view.budget);
    node->view.job = node->view_job;
    node->view.rapl = node_rapl_look(node, &node->view.n_rapl);
    (void)snprintf(node->view.actuator, sizeof node->view.actuator, "%s",
                   node->actuator_ready        ? ""
                   : node->config.node.dry_run ? "dry run: none is asked for"
                   : node->actuator_text[0]    ? node->actuator_text
                                               : "not connected yet");
    look_at_ledger(node, &node->view);
    return &node->view;
}

int node_board(struct node *node, const char *name, size_t *ret, uw_error *err)
{
    const struct gpu_info *info[BOARDS_MAX] = {NULL};
    struct selection chosen;

    size_t n = node->open ? node->n : node->n_kept;

    for (size_t i = 0; i < n; i++)
        info[i] = node->open ? node_info(node, i) : &node->kept[i].info;
    if (select_list(name, info, n, &chosen, err) < 0)
        return -ENOENT;
    if (chosen.n != 1)
        return fail(err, -ENOENT, "'%.60s' is no single board", name);
    *ret = chosen.at[0];
    return 0;
}
