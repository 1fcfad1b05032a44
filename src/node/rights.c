#include "node/rights.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "base/nearest.h"
#include "base/units.h"
#include "caps/claim-sources.h"
#include "gpu/select.h"
#include "tuner/tuner.h"

enum {
    USER_CLAIMS_MAX = 8,               /* claims of one user on a board */
    USERS_CLAIMS_MAX = CLAIMS_MAX - 8, /* claims of all users; the rest is reserved */
};

/* A claim under check. */
struct claim_check {
    const struct node_who *who;
    const struct node_claim *ask;
    uint64_t now_ns;
    uint64_t boards; /* bits */
    struct claim claim;
};

const char *rights_name(const struct node_who *who)
{
    return who->name ? who->name : "somebody";
}

/* A token for a job also requires the job's user: a new ledger counts jobs from 1 again,
 * so the number may belong to another user's job.
 */
static bool is_own_job(const struct node_who *who, const struct job_entry *job)
{
    return job->uid == who->uid && (!who->only_job || who->only_job == job->id);
}

static size_t n_boards(const struct rights *rs)
{
    return rs->boards ? boards_count(rs->boards) : 0;
}

int rights_board_named(const struct gpu_info *const *info, size_t n, const char *name,
                       size_t *ret, uw_error *err)
{
    struct selection chosen;

    if (select_list(name, info, n, &chosen, err) < 0)
        return -ENOENT;
    if (chosen.n != 1)
        return fail(err, -ENOENT, "'%.60s' does not name a single board", name);
    *ret = chosen.at[0];
    return 0;
}

static int find_board(const struct rights *rs, const char *name, size_t *ret,
                      uw_error *err)
{
    const struct gpu_info *info[BOARDS_MAX] = {NULL};

    for (size_t i = 0; i < n_boards(rs); i++)
        info[i] = board_view(boards_at(rs->boards, i))->info;
    return rights_board_named(info, n_boards(rs), name, ret, err);
}

/* Finds the boards of the claim, and the job that the claim is for. */
static int find_boards(const struct rights *rs, struct claim_check *a, uw_error *err)
{
    const struct node_claim *ask = a->ask;
    const struct job_entry *job = NULL;
    size_t at = 0;

    if (a->claim.job) {
        job = roster_find(rs->roster, a->claim.job);
        if (!job)
            return fail(err, -ENOENT, "there is no job %" PRIu64, a->claim.job);
        if (!a->who->admin && !is_own_job(a->who, job))
            return fail(err, -EPERM,
                        "%s may not claim for job %" PRIu64
                        ": the job belongs to another user",
                        rights_name(a->who), a->claim.job);
    }
    if (!ask->board) {
        if (!job)
            return fail(err, -EINVAL, "a claim names a GPU or a job");
        if (!job->boards)
            return fail(err, -ENOENT, "job %" PRIu64 " has no GPU (yet)", job->id);
        a->boards = job->boards;
        return 0;
    }
    int r = find_board(rs, ask->board, &at, err);
    if (r < 0)
        return r;
    if (job && !(job->boards & (1ull << at)))
        return fail(err, -EPERM, "job %" PRIu64 " does not have GPU %s", job->id,
                    ask->board);
    a->boards = 1ull << at;
    return 0;
}

/* A job that entitles uid to claim on a board, preferably a registered one; 0: none. */
static uint64_t job_by_which(const struct rights *rs, uid_t uid, size_t board)
{
    uint64_t found = 0;

    for (size_t i = 0; i < roster_count(rs->roster); i++) {
        const struct job_entry *job = roster_at(rs->roster, i);
        if (job->ended_ns || job->uid != uid || !(job->boards >> board & 1))
            continue;
        if (job->source != JOB_FOUND)
            return job->id;
        found = job->id;
    }
    return found;
}

static int check_rights(const struct rights *rs, struct claim_check *a, size_t board,
                        uw_error *err)
{
    const struct node_who *who = a->who;
    const struct gpu_info *info = board_view(boards_at(rs->boards, board))->info;
    uid_t uid = who->uid;
    struct caps_view v;
    unsigned own = 0, users = 0;

    if (who->admin)
        return 0;
    if (!roster_may_claim(rs->roster, uid, board))
        return fail(err, -EPERM,
                    "%s may not claim on GPU %u (%s): no job of this user "
                    "has the board alone",
                    rights_name(who), info->index, info->uuid);
    if (!a->claim.job) /* the claim ends with the job that entitles to it */
        a->claim.job = job_by_which(rs, uid, board);
    if (!a->claim.job)
        return fail(err, -EPERM,
                    "%s may not claim on GPU %u (%s): this user has no job on the board",
                    rights_name(who), info->index, info->uuid);
    caps_look(rs->caps, board, &v);
    for (size_t i = 0; i < v.claims->n; i++) {
        const struct claim *c = &v.claims->claim[i];
        users += c->kind != CLAIM_HARD && c->source != CLAIM_OF_SEARCH;
        own += c->uid == uid && c->source != CLAIM_OF_SEARCH;
    }
    if (own >= USER_CLAIMS_MAX || users >= USERS_CLAIMS_MAX)
        return fail(err, -E2BIG, "GPU %u (%s): %s has %u claims on it, of %u by users",
                    info->index, info->uuid, rights_name(who), own, users);
    return 0;
}

/* Refuses limits outside the actuator's known range; a hard claim is raised instead. */
static int check_settable(const struct rights *rs, const struct node_claim *ask,
                          size_t board, uint32_t mw, uw_error *err)
{
    const struct board_view *b = board_view(boards_at(rs->boards, board));
    char text[CAP_OUTSIDE_TEXT];
    struct caps_view v;

    caps_look(rs->caps, board, &v);
    bool low = mw < v.range.min_mw && mw >= b->limits.min_mw;
    bool between = cap_settable(&v.bounds, mw, false) != mw && mw <= b->limits.max_mw;
    if (ask->kind == CLAIM_HARD || (!low && !between))
        return 0;
    return fail(err, -ERANGE, "GPU %u (%s): %s", b->info->index, b->info->uuid,
                cap_outside(&ask->cap, mw, v.range.min_mw, v.range.max_mw,
                            ", the range of the actuator's configuration", text));
}

/* The limit in watts on this board, within the client's range. */
int rights_limit(const struct rights *rs, const struct node_who *who,
                 const struct node_claim *ask, size_t board, uint32_t *ret_mw,
                 uw_error *err)
{
    const struct board_view *b = board_view(boards_at(rs->boards, board));
    uint32_t from = 0, to = 0, mw = ask->cap.mw;
    char text[CAP_OUTSIDE_TEXT];

    *ret_mw = 0;
    if (ask->clock_mhz) /* caps.c checks the board's range */
        return ask->cap.mw || ask->cap.percent > 0
                   ? fail(err, -EINVAL, "a claim limits watts or the clock, not both")
                   : 0;
    if (!b->has_limits)
        return fail(err, -ENOTSUP, "GPU %u (%s) cannot be capped", b->info->index,
                    b->info->uuid);
    if (ask->cap.percent > 0)
        mw = mw_of_w(w_of_mw(b->limits.default_mw) * ask->cap.percent / 100);
    if (mw == 0)
        return fail(err, -EINVAL, "a claim needs a limit above 0 W");
    node_config_range(rs->config, &b->limits, &from, &to);
    if (!who->admin && (mw < from || mw > to))
        return fail(err, -ERANGE, "GPU %u (%s): %s", b->info->index, b->info->uuid,
                    cap_outside(&ask->cap, mw, from, to, ", the range for users", text));
    int r = check_settable(rs, ask, board, mw, err);
    if (r == 0)
        *ret_mw = mw;
    return r;
}

static int check_time(const struct rights *rs, struct claim_check *a, uw_error *err)
{
    uint64_t now = a->now_ns, longest = rs->config->caps.longest_ns;
    uint64_t ttl = a->ask->ttl_ns;

    if (!a->who->admin && ttl > longest)
        return fail(err, -ERANGE, "%g s is too long for a user: at most %g s",
                    s_of_ns(ttl), s_of_ns(longest));
    if (!a->who->admin && !ttl && !a->claim.job)
        ttl = longest;
    a->claim.made_ns = now;
    a->claim.until_ns = ttl && ttl < CLAIM_FOREVER - now ? now + ttl : CLAIM_FOREVER;
    return 0;
}

static int check_who(const struct rights *rs, struct claim_check *a, uw_error *err)
{
    const struct node_who *who = a->who;
    const struct node_claim *ask = a->ask;

    if (!who->may_claim)
        return fail(err, -EPERM, "%s may only read", rights_name(who));
    if (ask->kind < CLAIM_SOFT || ask->kind > CLAIM_HARD)
        return fail(err, -EINVAL, "a claim is soft, named or hard");
    if (ask->kind == CLAIM_HARD && !who->admin)
        return fail(err, -EPERM, "%s may not make hard claims: administrators only",
                    rights_name(who));
    if (who->only_job && ask->job && ask->job != who->only_job)
        return fail(err, -EPERM, "%s is for job %" PRIu64 " only", rights_name(who),
                    who->only_job);
    a->claim.job = ask->job;
    if (who->only_job && !who->admin)
        a->claim.job = who->only_job;
    return rs->boards ? 0 : fail(err, -EAGAIN, "no GPU is open (yet)");
}

/* Makes all checks before any change. */
static int check_claim(const struct rights *rs, struct claim_check *a, uw_error *err)
{
    uint32_t mw = 0;
    int r = check_who(rs, a, err);

    if (r == 0)
        r = find_boards(rs, a, err);
    if (r == 0)
        r = check_time(rs, a, err);
    for (size_t i = 0; i < n_boards(rs) && r == 0; i++) {
        if (!(a->boards & (1ull << i)))
            continue;
        r = check_rights(rs, a, i, err);
        if (r == 0)
            r = rights_limit(rs, a->who, a->ask, i, &mw, err);
    }
    return r;
}

int rights_claim(const struct rights *rs, const struct node_who *who,
                 const struct node_claim *ask, uint64_t now_ns, uint64_t *ret_boards,
                 struct claim *ret, uw_error *err)
{
    struct claim_check a = {.who = who, .ask = ask, .now_ns = now_ns};
    int r = check_claim(rs, &a, err);

    if (r < 0)
        return r;
    *ret_boards = a.boards;
    *ret = a.claim;
    return 0;
}

/* ---- withdrawing ---- */

int rights_withdraw(const struct node_who *who, const struct claim *c, uw_error *err)
{
    if (!who->may_claim)
        return fail(err, -EPERM, "%s may only read", rights_name(who));
    if (claim_source_row(c->source)->may & MAY_NOT_END)
        return claim_source_refuse(c, err);
    if (who->admin)
        return 0;
    if (c->source == CLAIM_OF_SCHEDULER)
        return fail(err, -EPERM,
                    "%s may not withdraw claim %" PRIu64
                    ": the scheduler made the claim, and it ends with its job",
                    rights_name(who), c->id);
    if (c->uid == who->uid && c->source != CLAIM_OF_SEARCH &&
        (!who->only_job || c->job == who->only_job))
        return 0;
    return fail(err, -EPERM,
                "%s may not withdraw claim %" PRIu64 ": it belongs to another user",
                rights_name(who), c->id);
}

/* ---- jobs ---- */

static int check_job(const struct rights *rs, const struct node_who *who,
                     const struct node_job *ask, uw_error *err)
{
    size_t n = n_boards(rs);
    char none[NEAREST_NONE];

    if (!who->may_claim || who->only_job)
        return fail(err, -EPERM, "%s may not begin jobs", rights_name(who));
    if (ask->reg.source != JOB_RUN && ask->reg.source != JOB_REGISTERED)
        return fail(err, -EINVAL, "a job is run or registered");
    if (!who->admin && ask->reg.source == JOB_REGISTERED)
        return fail(err, -EPERM, "%s may not register jobs: administrators only",
                    rights_name(who));
    if (!who->admin && ask->reg.uid != who->uid)
        return fail(err, -EPERM, "%s may not begin a job of uid %u", rights_name(who),
                    (unsigned)ask->reg.uid);
    if (!who->admin && !ask->reg.pid)
        return fail(err, -EINVAL, "a job with source 'run' needs a process");
    if (ask->cls && *ask->cls && !node_config_class(rs->config, ask->cls))
        return fail(err, -EINVAL, "class %s",
                    node_config_no_class(rs->config, ask->cls, none));
    if (n < 64 && ask->reg.boards >> n)
        return fail(err, -ENOENT, "there are %zu GPUs", n);
    return rs->boards ? 0 : fail(err, -EAGAIN, "no GPU is open (yet)");
}

/* Converts a percentage to watts of this board, but at least its minimum.  True: the
 * minimum was above the percentage.
 */
static bool is_cut(const struct rights *rs, const struct cap_arg *cap, size_t board,
                   struct cap_arg *ret)
{
    const struct board_view *b = board_view(boards_at(rs->boards, board));
    struct gpu_limits limits = b->limits;
    struct caps_view v;

    caps_look(rs->caps, board, &v);
    if (v.range.min_mw > limits.min_mw)
        limits.min_mw = v.range.min_mw;
    uint32_t mw = cap_of_limits(cap, &limits);
    *ret = *cap;
    if (cap->percent > 0 && b->has_limits)
        *ret = (struct cap_arg){.mw = mw};
    return cap->percent > 0 &&
           mw_of_w(w_of_mw(b->limits.default_mw) * cap->percent / 100) < mw;
}

/* Reports that a percentage is below the range of all boards, with the values of the
 * first.
 */
static int fail_percent(const struct rights *rs, const struct node_job *ask,
                        uw_error *err)
{
    size_t at = ask->reg.boards ? (size_t)__builtin_ctzll(ask->reg.boards) : 0;
    const struct board_view *b = board_view(boards_at(rs->boards, at));
    struct caps_view v;

    caps_look(rs->caps, at, &v);
    return fail(err, -ERANGE,
                "GPU %u (%s): %g %% of the default limit, %g W, is outside %g..%g W, as "
                "on all boards",
                b->info->index, b->info->uuid, ask->cap.percent,
                w_of_mw(b->limits.default_mw) * ask->cap.percent / 100,
                w_of_mw(v.range.min_mw ? v.range.min_mw : b->limits.min_mw),
                w_of_mw(v.range.max_mw ? v.range.max_mw : b->limits.max_mw));
}

/* Checks a cap by name on each board that the job may use.  A job that names no boards
 * need not use those that cannot be capped.
 */
static int check_job_cap(const struct rights *rs, const struct node_who *who,
                         const struct node_job *ask, uw_error *err)
{
    struct node_claim as = {.board = NULL};
    size_t n = 0, cut = 0;
    uint32_t mw = 0;
    int r = 0;

    for (size_t i = 0; i < n_boards(rs) && r == 0; i++) {
        if (ask->reg.boards ? !(ask->reg.boards & (1ull << i))
                            : !board_view(boards_at(rs->boards, i))->has_limits)
            continue;
        n++;
        cut += is_cut(rs, &ask->cap, i, &as.cap);
        r = rights_limit(rs, who, &as, i, &mw, err);
    }
    if (r == 0 && cut == n && n > 0)
        return fail_percent(rs, ask, err);
    return r;
}

/* Whether each board of the job takes the cap in watts; any board, where the job's boards
 * are not known yet.
 */
static int check_taken(const struct rights *rs, const struct node_job *ask, uw_error *err)
{
    uint32_t mw = ask->cap.mw;
    char text[CAP_OUTSIDE_TEXT];

    if (!mw)
        return 0;
    if (!ask->reg.boards)
        return boards_check_cap(rs->boards, &ask->cap, err);
    for (size_t i = 0; i < n_boards(rs); i++) {
        const struct board_view *b = board_view(boards_at(rs->boards, i));
        if (!(ask->reg.boards & (1ull << i)) ||
            (mw >= b->limits.min_mw && mw <= b->limits.max_mw))
            continue;
        return fail(
            err, -ERANGE, "GPU %u (%s): %s", b->info->index, b->info->uuid,
            cap_outside(&ask->cap, mw, b->limits.min_mw, b->limits.max_mw, "", text));
    }
    return 0;
}

int rights_begin_job(const struct rights *rs, const struct node_who *who,
                     const struct node_job *ask, uw_error *err)
{
    bool capped = !ask->search && (ask->cap.mw || ask->cap.percent > 0);
    int r = check_job(rs, who, ask, err);

    if (r == 0 && capped)
        r = check_job_cap(rs, who, ask, err);
    return r == 0 && capped ? check_taken(rs, ask, err) : r;
}

int rights_job(const struct rights *rs, const struct node_who *who, uint64_t id,
               uw_error *err)
{
    const struct job_entry *job = rs->roster ? roster_find(rs->roster, id) : NULL;

    if (!job)
        return fail(err, -ENOENT, "there is no job %" PRIu64, id);
    if (who->may_claim && (who->admin || is_own_job(who, job)))
        return 0;
    return fail(err, -EPERM,
                "%s may not touch job %" PRIu64 ": the job belongs to another user",
                rights_name(who), id);
}

int rights_join_job(const struct rights *rs, const struct node_who *who, uint64_t id,
                    const struct node_job *ask, uw_error *err)
{
    int r = rights_job(rs, who, id, err);

    if (r < 0)
        return r;
    const struct job_entry *job = roster_find(rs->roster, id);
    const struct job_record *rec = job_records_find(rs->records, id);
    struct node_job more = *ask;
    more.reg.boards &= ~(job->given | job->waits);
    if (n_boards(rs) < 64 && more.reg.boards >> n_boards(rs))
        return fail(err, -ENOENT, "there are %zu GPUs", n_boards(rs));
    if (more.reg.boards && job->firm && !who->admin)
        return fail(err, -EPERM,
                    "%s may not add GPUs to job %" PRIu64
                    ": an administrator began the job",
                    rights_name(who), id);
    if (!more.reg.boards || !rec || !(rec->cap.mw || rec->cap.percent > 0))
        return 0;
    more.cap = rec->cap;
    r = check_job_cap(rs, who, &more, err);
    return r == 0 ? check_taken(rs, &more, err) : r;
}

bool rights_stands(const struct rights *rs, size_t board, const struct claim *c)
{
    const struct job_record *rec = c->job ? job_records_find(rs->records, c->job) : NULL;

    return c->kind == CLAIM_HARD || c->admin || (rec && rec->admin) ||
           roster_keeps_claim(rs->roster, c->uid, board);
}
