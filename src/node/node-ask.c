/* What may be asked of the node, and by whom. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/log.h"
#include "base/names.h"
#include "base/units.h"
#include "gpu/select.h"
#include "io/proc.h"
#include "node/node-inside.h"

enum {
    USER_CLAIMS_MAX = 8,               /* of one user's on a board … */
    USERS_CLAIMS_MAX = CLAIMS_MAX - 8, /* … and of all users': the rest is for others */
    TOLD_AGAIN_S = 60,
    USER_REFUSALS_MAX = 8, /* causes of one user's told of in that time */
};

/* ---- refusals ---- */

/* The same for texts that differ in their numbers alone: who tries them all is told of
 * once.
 */
static uint64_t cause_of(const char *text)
{
    uint64_t h = 1469598103934665603ull; /* FNV-1a */

    for (const char *p = text; *p; p++)
        if (*p < '0' || *p > '9')
            h = (h ^ (unsigned char)*p) * 1099511628211ull;
    return h;
}

static bool told_lately(const struct node_refusal *f, uint64_t now)
{
    return f->told_ns && s_between(f->told_ns, now) < TOLD_AGAIN_S;
}

/* Where to count it; NULL: so many were told of lately that this one is not. */
static struct node_refusal *refusal_of(struct node *node, enum node_say what, uid_t uid,
                                       uint64_t cause, uint64_t now)
{
    struct node_refusal *oldest = &node->refusal[0];
    unsigned of_uid = 0;

    for (size_t i = 0; i < n_elements(node->refusal); i++) {
        struct node_refusal *f = &node->refusal[i];
        if (f->told_ns && f->what == what && f->uid == uid && f->cause == cause)
            return f;
        of_uid += f->what == what && f->uid == uid && told_lately(f, now);
        if (f->told_ns < oldest->told_ns)
            oldest = f;
    }
    if (of_uid >= USER_REFUSALS_MAX || told_lately(oldest, now))
        return NULL;
    *oldest = (struct node_refusal){.what = what, .uid = uid, .cause = cause};
    return oldest;
}

void node_say_once(struct node *node, enum node_say what, size_t board, uid_t uid,
                   const char *who, const uw_error *why)
{
    static const char *const names[] = {"refused", "withdrawn"};
    uint64_t now = loop_now_ns(node->loop);
    struct node_refusal *f =
        refusal_of(node, what, uid, cause_of(why->text) + board, now);
    char text[320];

    if (!f || told_lately(f, now)) {
        node->refused_untold++;
        if (f)
            f->again++;
        return;
    }
    (void)snprintf(text, sizeof text, "%s: %s", who ? who : "somebody", why->text);
    log_event(LOG_LEVEL_WARNING, names[what], "uid=%u who=%s reason=%s again=%" PRIu64,
              (unsigned)uid, log_quote(who ? who : "").text, log_quote(why->text).text,
              f->again);
    node_ledger_event(node, names[what], board, uid, text);
    f->told_ns = now ? now : 1;
    f->again = 0;
}

int node_refuse(struct node *node, const struct node_who *who, int r, const uw_error *err)
{
    node_say_once(node, NODE_SAY_REFUSED, SIZE_MAX, who->uid, who->name, err);
    return r;
}

/* ---- claims that end with a process ---- */

static void watch_stop(struct node_watch *w)
{
    loop_fd_free(w->source);
    if (w->fd >= 0)
        (void)close(w->fd);
    *w = (struct node_watch){.fd = -1};
}

void node_watches_stop(struct node *node)
{
    for (size_t i = 0; i < n_elements(node->watch); i++)
        if (node->watch[i].node)
            watch_stop(&node->watch[i]);
}

static void withdraw_everywhere(struct node *node, uint64_t id, enum claim_end how)
{
    node->how = how;
    for (size_t i = 0; i < node->n; i++)
        (void)caps_withdraw(node->caps, i, id, NULL);
    node->how = CLAIM_END_WITHDRAWN;
}

static int on_process_end(struct loop_fd *source, int fd, int events, void *user)
{
    struct node_watch *w = user;
    struct node *node = w->node;
    uint64_t id = w->claim;
    (void)source;
    (void)fd;
    (void)events;

    watch_stop(w);
    withdraw_everywhere(node, id, CLAIM_END_PROCESS);
    return 0;
}

/* uid: whose process it has to be; (uid_t)-1: anybody's.  *ret_start: since when. */
static int watch_process(struct node *node, pid_t pid, uint64_t start, uid_t uid,
                         struct node_watch **ret, struct proc_facts *facts, uw_error *err)
{
    struct node_watch *w = NULL;
    int r = 0;

    for (size_t i = 0; i < n_elements(node->watch) && !w; i++)
        w = node->watch[i].node ? NULL : &node->watch[i];
    if (!w)
        return fail(err, -E2BIG, "%d claims end with a process already",
                    NODE_WATCHES_MAX);
    if (uid == (uid_t)-1) {
        r = proc_read("/proc", pid, facts);
        uid = facts->uid;
    }
    if (r == 0)
        r = proc_open_pidfd("/proc", pid, start, uid, facts);
    if (r < 0)
        return fail(err, r, "process %d: %s", (int)pid,
                    r == -EPERM ? "another user's" : strerror(-r));
    *w = (struct node_watch){.node = node, .fd = r, .pid = pid};
    r = loop_fd_new(node->loop, w->fd, LOOP_READ, on_process_end, w, &w->source, err);
    if (r < 0) {
        watch_stop(w);
        return r;
    }
    *ret = w;
    return 0;
}

bool node_watch_again(struct node *node, const struct claim *claim)
{
    struct proc_facts facts;
    struct node_watch *w = NULL;

    if (!claim->pid)
        return true;
    for (size_t i = 0; i < n_elements(node->watch); i++)
        if (node->watch[i].node && node->watch[i].claim == claim->id)
            return true; /* of another board */
    int r =
        watch_process(node, claim->pid, claim->pid_start, (uid_t)-1, &w, &facts, NULL);
    if (r == 0)
        w->claim = claim->id;
    return r == 0;
}

/* ---- claims ---- */

/* A claim being made, on several boards where a job has several. */
struct asking {
    const struct node_who *who;
    const struct node_claim *ask;
    uint64_t boards; /* bits */
    struct claim claim;
    struct node_watch *watch;
};

static const char *name_of(const struct node_who *who)
{
    return who->name ? who->name : "somebody";
}

/* A token for one job is its user's alone: a ledger begun anew counts jobs from 1 again,
 * and another's may have that number by now.
 */
static bool is_own_job(const struct node_who *who, const struct job_entry *job)
{
    return job->uid == who->uid && (!who->only_job || who->only_job == job->id);
}

/* The boards that are meant, and the job that the claim is for. */
static int find_boards(struct node *node, struct asking *a, uw_error *err)
{
    const struct node_claim *ask = a->ask;
    const struct job_entry *job = NULL;
    size_t at = 0;

    if (a->claim.job) {
        job = roster_find(node->roster, a->claim.job);
        if (!job)
            return fail(err, -ENOENT, "there is no job %" PRIu64, a->claim.job);
        if (!a->who->admin && !is_own_job(a->who, job))
            return fail(err, -EPERM,
                        "%s may not claim for job %" PRIu64 ": it is another user's",
                        name_of(a->who), a->claim.job);
    }
    if (!ask->board) {
        if (!job)
            return fail(err, -EINVAL, "a claim names a GPU or a job");
        if (!job->boards)
            return fail(err, -ENOENT, "job %" PRIu64 " has no GPU (yet)", job->id);
        a->boards = job->boards;
        return 0;
    }
    int r = node_board(node, ask->board, &at, err);
    if (r < 0)
        return r;
    if (job && !(job->boards & (1ull << at)))
        return fail(err, -EPERM, "GPU %s is none of job %" PRIu64 "'s", ask->board,
                    job->id);
    a->boards = 1ull << at;
    return 0;
}

/* The job by which uid may claim on a board, rather one that was registered; 0: none. */
static uint64_t job_by_which(const struct node *node, uid_t uid, size_t board)
{
    uint64_t found = 0;

    for (size_t i = 0; i < roster_count(node->roster); i++) {
        const struct job_entry *job = roster_at(node->roster, i);
        if (job->ended_ns || job->uid != uid || !(job->boards >> board & 1))
            continue;
        if (job->source != JOB_FOUND)
            return job->id;
        found = job->id;
    }
    return found;
}

static int check_rights(struct node *node, struct asking *a, size_t board, uw_error *err)
{
    const struct node_who *who = a->who;
    const struct gpu_info *info = node_info(node, board);
    uid_t uid = who->uid;
    struct caps_view v;
    unsigned own = 0, users = 0;

    if (who->admin)
        return 0;
    if (!roster_may_claim(node->roster, uid, board))
        return fail(err, -EPERM,
                    "%s may not claim on GPU %u (%s): no job of that user "
                    "has it alone",
                    name_of(who), info->index, info->uuid);
    if (!a->claim.job) /* it ends with the job that gives the right */
        a->claim.job = job_by_which(node, uid, board);
    if (!a->claim.job)
        return fail(err, -EPERM,
                    "%s may not claim on GPU %u (%s): no job of theirs is "
                    "there",
                    name_of(who), info->index, info->uuid);
    caps_look(node->caps, board, &v);
    for (size_t i = 0; i < v.claims->n; i++) {
        users += v.claims->claim[i].kind != CLAIM_HARD && !v.claims->claim[i].walked;
        own += v.claims->claim[i].uid == uid && !v.claims->claim[i].walked;
    }
    if (own >= USER_CLAIMS_MAX || users >= USERS_CLAIMS_MAX)
        return fail(err, -E2BIG, "GPU %u (%s): %s has %u claims on it, of %u by users",
                    info->index, info->uuid, name_of(who), own, users);
    return 0;
}

/* What the actuator would refuse, as far as it has said so.  A hard claim is held up. */
static int check_settable(const struct node *node, enum claim_kind kind, size_t board,
                          uint32_t mw, uw_error *err)
{
    const struct board_view *b = board_view(boards_at(node->boards, board));
    struct caps_view v;

    caps_look(node->caps, board, &v);
    bool low = mw < v.range.min_mw && mw >= b->limits.min_mw;
    bool between = cap_settable(&v.bounds, mw, false) != mw && mw <= b->limits.max_mw;
    if (kind == CLAIM_HARD || (!low && !between))
        return 0;
    return fail(err, -ERANGE,
                "GPU %u (%s): %g W is outside %g..%g W, the range of the actuator's "
                "configuration",
                b->info->index, b->info->uuid, w_of_mw(mw), w_of_mw(v.range.min_mw),
                w_of_mw(v.range.max_mw));
}

/* Watts on this board, within what its asker may claim. */
static int check_limit(struct node *node, const struct asking *a, size_t board,
                       uint32_t *ret_mw, uw_error *err)
{
    const struct board_view *b = board_view(boards_at(node->boards, board));
    uint32_t from = 0, to = 0, mw = a->ask->cap.mw;

    *ret_mw = 0;
    if (a->ask->clock_mhz) /* its range is the board's: caps.c */
        return a->ask->cap.mw || a->ask->cap.percent > 0
                   ? fail(err, -EINVAL, "a claim is on watts or on the clock, not both")
                   : 0;
    if (!b->has_limits)
        return fail(err, -ENOTSUP, "GPU %u (%s) cannot be capped", b->info->index,
                    b->info->uuid);
    if (a->ask->cap.percent > 0)
        mw = mw_of_w(w_of_mw(b->limits.default_mw) * a->ask->cap.percent / 100);
    if (mw == 0)
        return fail(err, -EINVAL, "a claim names its watts, more than 0");
    node_config_range(&node->config, &b->limits, &from, &to);
    if (!a->who->admin && (mw < from || mw > to))
        return fail(
            err, -ERANGE, "GPU %u (%s): %g W is outside %g..%g W, which users may claim",
            b->info->index, b->info->uuid, w_of_mw(mw), w_of_mw(from), w_of_mw(to));
    int r = check_settable(node, a->ask->kind, board, mw, err);
    if (r == 0)
        *ret_mw = mw;
    return r;
}

static int check_time(struct node *node, struct asking *a, uw_error *err)
{
    uint64_t now = loop_now_ns(node->loop), longest = node->config.caps.longest_ns;
    uint64_t ttl = a->ask->ttl_ns;

    if (!a->who->admin && ttl > longest)
        return fail(err, -ERANGE, "%g s is longer than users may claim: %g s at most",
                    s_of_ns(ttl), s_of_ns(longest));
    if (!a->who->admin && !ttl && !a->claim.job)
        ttl = longest;
    a->claim.made_ns = now;
    a->claim.until_ns = ttl && ttl < CLAIM_FOREVER - now ? now + ttl : CLAIM_FOREVER;
    return 0;
}

static int check_who(struct node *node, struct asking *a, uw_error *err)
{
    const struct node_who *who = a->who;
    const struct node_claim *ask = a->ask;

    if (!who->may_claim)
        return fail(err, -EPERM, "%s may read alone", name_of(who));
    if (ask->kind < CLAIM_SOFT || ask->kind > CLAIM_HARD)
        return fail(err, -EINVAL, "a claim is soft, named or hard");
    if (ask->kind == CLAIM_HARD && !who->admin)
        return fail(err, -EPERM, "%s may make no hard claim: that is for administrators",
                    name_of(who));
    if (who->only_job && ask->job && ask->job != who->only_job)
        return fail(err, -EPERM, "%s is for job %" PRIu64 " alone", name_of(who),
                    who->only_job);
    a->claim.job = ask->job;
    if (who->only_job && !who->admin)
        a->claim.job = who->only_job;
    return node->open ? 0 : fail(err, -EAGAIN, "no GPU is there (yet)");
}

/* Everything that can be refused, before anything is changed. */
static int check_claim(struct node *node, struct asking *a, uw_error *err)
{
    uint32_t mw = 0;
    int r = check_who(node, a, err);

    if (r == 0)
        r = find_boards(node, a, err);
    if (r == 0)
        r = check_time(node, a, err);
    for (size_t i = 0; i < node->n && r == 0; i++) {
        if (!(a->boards & (1ull << i)))
            continue;
        r = check_rights(node, a, i, err);
        if (r == 0)
            r = check_limit(node, a, i, &mw, err);
    }
    return r;
}

static int fill_claim(struct node *node, struct asking *a, uw_error *err)
{
    struct proc_facts facts = {0};
    struct claim *c = &a->claim;
    int n = snprintf(c->who, sizeof c->who, "%.48s", name_of(a->who));

    c->kind = a->ask->kind;
    c->mhz = a->ask->clock_mhz;
    c->uid = a->who->uid;
    c->admin = a->who->admin;
    (void)snprintf(c->why, sizeof c->why, "%s", a->ask->why ? a->ask->why : "");
    if (!a->ask->pid)
        return 0;
    int r = watch_process(node, a->ask->pid, 0, a->who->admin ? (uid_t)-1 : a->who->uid,
                          &a->watch, &facts, err);
    if (r < 0)
        return r;
    c->pid = a->ask->pid;
    c->pid_start = facts.start;
    (void)snprintf(c->who + n, sizeof c->who - (size_t)n, ", process %d.%" PRIu64,
                   (int)c->pid, c->pid_start);
    return 0;
}

static int make_claim(struct node *node, struct asking *a, uw_error *err)
{
    int r = fill_claim(node, a, err);

    for (size_t i = 0; i < node->n && r == 0; i++) {
        if (!(a->boards & (1ull << i)))
            continue;
        r = check_limit(node, a, i, &a->claim.mw, err);
        if (r == 0)
            r = caps_claim(node->caps, i, &a->claim, &a->claim.id, err);
    }
    if (r < 0 && a->claim.id)
        withdraw_everywhere(node, a->claim.id, CLAIM_END_REFUSED);
    if (r < 0 && a->watch)
        watch_stop(a->watch);
    else if (a->watch)
        a->watch->claim = a->claim.id;
    return r;
}

int node_claim(struct node *node, const struct node_who *who,
               const struct node_claim *ask, uint64_t *ret_id, uw_error *err)
{
    struct asking a = {.who = who, .ask = ask};
    uw_error why = {""};
    int r = check_claim(node, &a, &why);

    if (r == 0)
        r = make_claim(node, &a, &why);
    if (r < 0) {
        (void)fail(err, r, "%s", why.text);
        return node_refuse(node, who, r, &why);
    }
    if (ret_id)
        *ret_id = a.claim.id;
    return 0;
}

/* ---- withdrawing ---- */

static int may_withdraw(const struct node_who *who, const struct caps_view *v,
                        const struct claim *c, uw_error *err)
{
    if (!who->may_claim)
        return fail(err, -EPERM, "%s may read alone", name_of(who));
    if (c->id == v->budget_claim)
        return fail(err, -EPERM,
                    "claim %" PRIu64
                    " is the node's budget: budget.node in underwattd.yaml changes it",
                    c->id);
    if (who->admin)
        return 0;
    if (c->uid == who->uid && !c->walked && (!who->only_job || c->job == who->only_job))
        return 0;
    return fail(err, -EPERM, "%s may not withdraw claim %" PRIu64 ": it is not theirs",
                name_of(who), c->id);
}

int node_withdraw(struct node *node, const struct node_who *who, uint64_t id,
                  uw_error *err)
{
    const struct claim *found = NULL;
    struct caps_view v;
    uw_error why = {""};

    for (size_t i = 0; i < node->n && !found; i++) {
        caps_look(node->caps, i, &v);
        found = claims_find(v.claims, id);
    }
    int r = found         ? may_withdraw(who, &v, found, &why)
            : !node->open ? fail(&why, -EAGAIN, "no GPU is there (yet)")
                          : fail(&why, -ENOENT, "there is no claim %" PRIu64, id);
    if (r < 0) {
        (void)fail(err, r, "%s", why.text);
        return r == -EPERM ? node_refuse(node, who, r, &why) : r;
    }
    withdraw_everywhere(node, id, CLAIM_END_WITHDRAWN);
    for (size_t i = 0; i < n_elements(node->watch); i++)
        if (node->watch[i].node && node->watch[i].claim == id)
            watch_stop(&node->watch[i]);
    return 0;
}

/* ---- jobs ---- */

static int check_job(struct node *node, const struct node_who *who,
                     const struct node_job *ask, uw_error *err)
{
    if (!who->may_claim || who->only_job)
        return fail(err, -EPERM, "%s may begin no job", name_of(who));
    if (ask->reg.source != JOB_RUN && ask->reg.source != JOB_REGISTERED)
        return fail(err, -EINVAL, "a job is run or registered");
    if (!who->admin && ask->reg.source == JOB_REGISTERED)
        return fail(err, -EPERM, "%s may register no job: that is for administrators",
                    name_of(who));
    if (!who->admin && ask->reg.uid != who->uid)
        return fail(err, -EPERM, "%s may not begin a job of uid %u", name_of(who),
                    (unsigned)ask->reg.uid);
    if (!who->admin && !ask->reg.pid)
        return fail(err, -EINVAL, "a job that is run names its process");
    if (ask->cls && *ask->cls && !node_config_class(&node->config, ask->cls))
        return fail(err, -EINVAL, "there is no class '%.60s' of jobs", ask->cls);
    if (node->n < 64 && ask->reg.boards >> node->n)
        return fail(err, -ENOENT, "there are %zu GPUs", node->n);
    return node->open ? 0 : fail(err, -EAGAIN, "no GPU is there (yet)");
}

/* A percentage comes to other watts on each board, and goes no further than the board:
 * true where it would.
 */
static bool is_cut(const struct node *node, const struct cap_arg *cap, size_t board,
                   struct cap_arg *ret)
{
    const struct board_view *b = board_view(boards_at(node->boards, board));
    struct gpu_limits limits = b->limits;
    struct caps_view v;

    caps_look(node->caps, board, &v);
    if (v.range.min_mw > limits.min_mw)
        limits.min_mw = v.range.min_mw;
    uint32_t mw = cap_of_limits(cap, &limits);
    *ret = *cap;
    if (cap->percent > 0 && b->has_limits)
        *ret = (struct cap_arg){.mw = mw};
    return cap->percent > 0 &&
           mw_of_w(w_of_mw(b->limits.default_mw) * cap->percent / 100) < mw;
}

/* A cap by name within what its asker may claim, on each board that it may be for. */
static int check_job_cap(struct node *node, const struct node_who *who,
                         const struct node_job *ask, uw_error *err)
{
    struct node_claim as = {.board = NULL};
    struct asking a = {.who = who, .ask = &as};
    size_t n = 0, cut = 0;
    uint32_t mw = 0;
    int r = 0;

    for (size_t i = 0; i < node->n && r == 0; i++) {
        if (ask->reg.boards && !(ask->reg.boards & (1ull << i)))
            continue;
        n++;
        cut += is_cut(node, &ask->cap, i, &as.cap);
        r = check_limit(node, &a, i, &mw, err);
    }
    if (r == 0 && cut == n && n > 0)
        return fail(err, -ERANGE, "%g %% of its default limit is less than any board can",
                    ask->cap.percent);
    return r;
}

static int begin_job(struct node *node, const struct node_who *who,
                     const struct node_job *ask, uint64_t *ret_id, uw_error *err)
{
    struct roster_register reg = ask->reg;
    bool capped = !ask->search && (ask->cap.mw || ask->cap.percent > 0);
    uint64_t id = 0;
    int r = check_job(node, who, ask, err);

    if (r == 0 && capped)
        r = check_job_cap(node, who, ask, err);
    if (r < 0)
        return r;
    reg.id = 0;
    reg.firm = who->admin;
    r = roster_begin(node->roster, &reg, &id, err);
    if (r < 0)
        return r;
    struct node_job_rec *rec = node_job_rec(node, id);
    if (!rec) {
        (void)roster_end(node->roster, id, NULL);
        return node->n_jobs < n_elements(node->job)
                   ? fail(err, -ENOMEM, "out of memory for a job")
                   : fail(err, -E2BIG, "%d jobs are there already", ROSTER_MAX);
    }
    rec->admin = who->admin;
    rec->search = ask->search;
    rec->goal = ask->goal;
    rec->cap = capped ? ask->cap : (struct cap_arg){0};
    (void)snprintf(rec->cls, sizeof rec->cls, "%s", ask->cls ? ask->cls : "");
    job_key(ask->command, ask->reg.label, ask->reg.n_labels, rec->same);
    if (ask->search || capped)
        r = node_search_begin(node, roster_find(node->roster, id), rec, NULL, err);
    if (r < 0) {
        (void)roster_end(node->roster, id, NULL);
        return r;
    }
    node_ledger_job(node, roster_find(node->roster, id));
    *ret_id = id;
    return 0;
}

int node_job_begin(struct node *node, const struct node_who *who,
                   const struct node_job *ask, uint64_t *ret_id, uw_error *err)
{
    int page = ask->page_fd;
    uw_error why = {""};
    uint64_t id = 0;
    int r = begin_job(node, who, ask, &id, &why);

    if (r == 0 && page >= 0) {
        r = searches_page(node->tunings, id, page, &why);
        if (r < 0)
            (void)roster_end(node->roster, id, NULL);
        else
            page = -1;
    }
    if (page >= 0)
        (void)close(page);
    if (r < 0) {
        (void)fail(err, r, "%s", why.text);
        return node_refuse(node, who, r, &why);
    }
    *ret_id = id;
    return 0;
}

static int own_job(struct node *node, const struct node_who *who, uint64_t id,
                   uw_error *err)
{
    const struct job_entry *job = node->roster ? roster_find(node->roster, id) : NULL;

    if (!job)
        return fail(err, -ENOENT, "there is no job %" PRIu64, id);
    if (who->may_claim && (who->admin || is_own_job(who, job)))
        return 0;
    return fail(err, -EPERM, "%s may not touch job %" PRIu64 ": it is another user's",
                name_of(who), id);
}

int node_job_page(struct node *node, const struct node_who *who, uint64_t id, int page_fd,
                  uw_error *err)
{
    auto_(fd_close) int fd = page_fd;
    uw_error why = {""};
    int r = own_job(node, who, id, &why);

    if (r == 0)
        r = searches_page(node->tunings, id, fd, &why);
    if (r == 0)
        (void)fd_take(&fd);
    else
        (void)fail(err, r, "%s", why.text);
    return r == -EPERM ? node_refuse(node, who, r, &why) : r;
}

int node_job_end(struct node *node, const struct node_who *who, uint64_t id,
                 uw_error *err)
{
    uw_error why = {""};
    int r = own_job(node, who, id, &why);

    if (r == 0 && !who->admin && roster_find(node->roster, id)->source != JOB_RUN)
        r = fail(&why, -EPERM, "%s may not end job %" PRIu64 ": its scheduler does",
                 name_of(who), id);
    if (r == 0)
        r = roster_end(node->roster, id, &why);
    if (r < 0)
        (void)fail(err, r, "%s", why.text);
    return r == -EPERM ? node_refuse(node, who, r, &why) : r;
}

/* ---- handing boards out ---- */

static int may_hand_out(struct node *node, const struct node_who *who, const char *board,
                        size_t *ret, uw_error *err)
{
    uw_error why = {""};
    int r =
        who->admin && who->may_claim
            ? node_board(node, board, ret, &why)
            : fail(&why, -EPERM, "%s may not release GPUs: that is for administrators",
                   name_of(who));

    if (r == 0 && !node->open)
        r = fail(&why, -EAGAIN, "no GPU is there (yet)");
    if (r < 0)
        (void)fail(err, r, "%s", why.text);
    return r == -EPERM ? node_refuse(node, who, r, &why) : r;
}

int node_release(struct node *node, const struct node_who *who, const char *board,
                 uint64_t hold_off_ns, caps_done_fn fn, void *user, uw_error *err)
{
    size_t at = 0;
    int r = may_hand_out(node, who, board, &at, err);

    if (r == 0)
        r = node_detach_release(node, at, hold_off_ns, fn, user, err);
    if (r == 0)
        node_ledger_event(node, "release", at, who->uid, name_of(who));
    return r;
}

int node_take_back(struct node *node, const struct node_who *who, const char *board,
                   uw_error *err)
{
    size_t at = 0;
    int r = may_hand_out(node, who, board, &at, err);

    if (r == 0)
        r = caps_take_back(node->caps, at, err);
    if (r == 0)
        node_detach_kick(node);
    if (r == 0)
        node_ledger_event(node, "take-back", at, who->uid, name_of(who));
    return r;
}
