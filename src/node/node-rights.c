/* Claims end with the right to them: whoever else begins to compute on a board finds it
 * without its former user's caps.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "node/node-inside.h"

static bool is_admins(const struct node *node, uint64_t job)
{
    const struct node_job_rec *rec = job ? node_job_rec((struct node *)node, job) : NULL;

    return rec && rec->admin;
}

static bool stands(const struct node *node, size_t board, const struct claim *c)
{
    return c->kind == CLAIM_HARD || c->admin || is_admins(node, c->job) ||
           roster_keeps_claim(node->roster, c->uid, board);
}

/* Said once: in the log and the ledger (once a minute and user), and to whoever asks
 * why the board's cap is what it is.
 */
static void say_lost(struct node *node, size_t board, const struct claim *c, size_t n)
{
    struct node_lost *lost = &node->board[board].lost;
    char more[40] = "", what[24];
    uw_error why = {""};

    if (c->mhz)
        (void)snprintf(what, sizeof what, "%" PRIu32 " MHz", c->mhz);
    else
        (void)snprintf(what, sizeof what, "%.6g W", w_of_mw(c->mw));
    if (n > 1)
        (void)snprintf(more, sizeof more, " and %zu more", n - 1);
    (void)fail(&why, 0,
               "claim %" PRIu64 " (%s)%s on GPU %u withdrawn: another user computes "
               "there, or has a scheduler's job",
               c->id, what, more, node_info(node, board)->index);
    lost->at_ns = loop_now_ns(node->loop);
    lost->id = c->id;
    (void)snprintf(lost->text, sizeof lost->text, "%s: %s", c->who, why.text);
    node_say_once(node, NODE_SAY_WITHDRAWN, board, c->uid, c->who, &why);
}

/* The searches of jobs whose user has lost the right here, and of those who have it
 * again.
 */
static void bar_searches(struct node *node, size_t board)
{
    for (size_t i = 0; i < node->n_jobs && node->tunings; i++) {
        const struct node_job_rec *rec = node->job[i];
        const struct job_entry *job =
            rec->asked && !rec->ended_ns ? roster_find(node->roster, rec->id) : NULL;
        if (job)
            searches_bar(node->tunings, rec->id, board,
                         (job->waits >> board & 1) ||
                             ((job->boards >> board & 1) && !rec->admin &&
                              !roster_keeps_claim(node->roster, job->uid, board)));
    }
}

void node_rights_check(struct node *node, size_t board)
{
    struct caps_view v;
    struct claim first;
    uint64_t id[CLAIMS_MAX];
    size_t n = 0;

    if (!node->caps || board >= node->n)
        return;
    caps_look(node->caps, board, &v);
    for (size_t i = 0; i < v.claims->n; i++) {
        const struct claim *c = &v.claims->claim[i];
        if (stands(node, board, c))
            continue;
        if (n == 0)
            first = *c;
        id[n++] = c->id;
    }
    node->how = CLAIM_END_RIGHT;
    bar_searches(node, board); /* these withdraw theirs, and make no others */
    for (size_t i = 0; i < n; i++)
        (void)caps_withdraw(node->caps, board, id[i], NULL);
    node->how = CLAIM_END_WITHDRAWN;
    if (n > 0)
        say_lost(node, board, &first, n);
}
