/* Requests to the node, claims whose right is lost, and its view. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "base/utf8.h"
#include "io/progress.h"
#include "node/nested.h"
#include "node/node-inside.h"

enum { FRESH_S = 5 };

/* The state against which rights are checked. */
static struct rights rights_of(const struct node *node)
{
    return (struct rights){.config = &node->config,
                           .boards = node->open ? node->boards : NULL,
                           .caps = node->caps,
                           .roster = node->roster,
                           .records = node->records};
}

/* Records the refusal and returns r. */
static int refuse(struct node *node, const struct node_who *who, enum refusal of, int r,
                  const uw_error *why)
{
    refusals_say(node->refusals, of, r, SIZE_MAX, who->uid, who->name, why);
    return r;
}

/* ---- claims ---- */

/* The name of a preset precedes the client's reason; "…" is in the place of an end for
 * which there is no room.
 */
static void fill_why(const struct node_claim *ask, char ret[CLAIM_TEXT])
{
    static const char cut[] = "…";
    const char *why = ask->why ? ask->why : "";
    size_t len = strlen(why);
    int n = 0;

    if (ask->preset)
        n = snprintf(ret, CLAIM_TEXT, "preset %.48s (%g %%)%s", ask->preset,
                     ask->cap.percent, len ? ": " : "");
    size_t room = CLAIM_TEXT - (size_t)n - 1;
    bool whole = len <= room;
    if (!whole)
        len = utf8_bad(why, room - strlen(cut));
    (void)snprintf(ret + n, CLAIM_TEXT - (size_t)n, "%.*s%s", (int)len, why,
                   whole ? "" : cut);
}

static int fill_claim(struct node *node, const struct node_who *who,
                      const struct node_claim *ask, struct claim *c, uw_error *err)
{
    uint64_t start = 0;
    int n = snprintf(c->who, sizeof c->who, "%.48s", rights_name(who));

    c->kind = ask->kind;
    c->mhz = ask->clock_mhz;
    c->uid = who->uid;
    c->admin = who->admin;
    c->way.own = ask->at_once; /* otherwise by the class of the board's job */
    c->raises = node->opts.private && ask->kind == CLAIM_NAMED && !ask->clock_mhz;
    fill_why(ask, c->why);
    if (!ask->pid)
        return 0;
    int r = claim_watches_begin(node->watches, ask->pid, 0,
                                who->admin ? (uid_t)-1 : who->uid, &start, err);
    if (r < 0)
        return r;
    c->pid = ask->pid;
    c->pid_start = start;
    (void)snprintf(c->who + n, sizeof c->who - (size_t)n, ", process %d.%" PRIu64,
                   (int)c->pid, start);
    return 0;
}

static int make_claim(struct node *node, const struct node_who *who,
                      const struct node_claim *ask, uint64_t boards, struct claim *claim,
                      uw_error *err)
{
    const struct rights rights = rights_of(node);
    int r = fill_claim(node, who, ask, claim, err);

    for (size_t i = 0; i < node->n && r == 0; i++) {
        if (!(boards & (1ull << i)))
            continue;
        r = rights_limit(&rights, who, ask, i, &claim->mw, err);
        if (r == 0)
            r = caps_claim(node->caps, i, claim, &claim->id, err);
    }
    if (r < 0 && claim->id)
        node_withdraw_claim(node, claim->id, CLAIM_END_REFUSED);
    claim_watches_assign(node->watches, r < 0 ? 0 : claim->id);
    return r;
}

int node_claim(struct node *node, const struct node_who *who,
               const struct node_claim *asked, uint64_t *ret_id, uw_error *err)
{
    const struct rights rights = rights_of(node);
    struct node_claim as = *asked, *ask = &as;
    struct claim claim = {0};
    uint64_t boards = 0;
    uw_error why = {""};
    int r =
        ask->preset ? node_policy_preset(node->policy, ask->preset, &ask->cap, err) : 0;

    if (r < 0)
        return r; /* the same error as for other malformed requests */
    r = rights_claim(&rights, who, ask, loop_now_ns(node->loop), &boards, &claim, &why);

    if (r == 0 && ask->at_once && !node->opts.private)
        r = fail(&why, -EPERM,
                 "%s may not set a cap at once: only a command's own node may",
                 rights_name(who));
    if (r == 0 && node->actuator_over)
        r = fail(&why, -EPERM, "%s", node->actuator_text);

    if (r == 0)
        r = make_claim(node, who, ask, boards, &claim, &why);
    if (r < 0) {
        (void)fail(err, r, "%s", why.text);
        return refuse(node, who, REFUSAL_CLAIM, r, &why);
    }
    if (ret_id)
        *ret_id = claim.id;
    return 0;
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
    int r = found         ? rights_withdraw(who, found, &why)
            : !node->open ? fail(&why, -EAGAIN, "no GPU is open (yet)")
                          : fail(&why, -ENOENT, "there is no claim %" PRIu64, id);
    if (r < 0) {
        (void)fail(err, r, "%s", why.text);
        return r == -EPERM ? refuse(node, who, REFUSAL_WITHDRAW, r, &why) : r;
    }
    uint64_t job = found && found->source == CLAIM_OF_SCHEDULER ? found->job : 0;
    node_withdraw_claim(node, id, CLAIM_END_WITHDRAWN);
    claim_watches_end(node->watches, id);
    if (job)
        scheduler_withdrawn(node->scheduler, job, rights_name(who));
    return 0;
}

/* ---- rights that are lost ---- */

/* Records the loss once a minute and user, and adds it to the explanation of the board's
 * cap.
 */
static void say_lost(struct node *node, size_t board, const struct claim *c, size_t n)
{
    char more[40] = "", what[24], text[300];
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
    (void)snprintf(text, sizeof text, "%s: %s", c->who, why.text);
    viewer_lost(node->viewer, board, text);
    refusals_say(node->refusals, REFUSAL_RIGHT, 0, board, c->uid, c->who, &why);
}

/* Whether a search would cap another job's part of a board in MIG mode. */
static bool shares_slices(const struct node *node, const struct job_record *rec,
                          const struct job_entry *job, size_t board)
{
    return (rec->search || rec->ruled || rec->lent) && (job->boards >> board & 1) &&
           node_info(node, board)->mig_enabled &&
           roster_other(node->roster, job->id, board);
}

/* Bars or unbars the searches of jobs by their user's right to this board. */
static void bar_searches(struct node *node, size_t board)
{
    for (size_t i = 0; i < job_records_count(node->records) && node->searches; i++) {
        const struct job_record *rec = job_records_at(node->records, i);
        const struct job_entry *job =
            (rec->asked || rec->ruled || rec->lent) && !rec->ended_ns
                ? roster_find(node->roster, rec->id)
                : NULL;
        if (job)
            searches_bar(node->searches, rec->id, board,
                         (job->waits >> board & 1) ||
                             shares_slices(node, rec, job, board) ||
                             ((job->boards >> board & 1) && !rec->admin &&
                              !roster_keeps_claim(node->roster, job->uid, board)));
    }
}

/* Withdraws claims whose user has lost the right: the new user of a board must not find
 * the former user's caps.
 */
void node_check_rights(struct node *node, size_t board)
{
    struct rights rights = rights_of(node);
    struct caps_view v;
    struct claim first;
    uint64_t id[CLAIMS_MAX];
    size_t n = 0;

    if (!node->caps || board >= node->n)
        return;
    caps_look(node->caps, board, &v);
    for (size_t i = 0; i < v.claims->n; i++) {
        const struct claim *c = &v.claims->claim[i];
        if (rights_stands(&rights, board, c))
            continue;
        if (n == 0)
            first = *c;
        id[n++] = c->id;
    }
    node->how = CLAIM_END_RIGHT;
    bar_searches(node, board); /* searches withdraw their claims themselves */
    for (size_t i = 0; i < n; i++)
        (void)caps_withdraw(node->caps, board, id[i], NULL);
    node->how = CLAIM_END_WITHDRAWN;
    if (n > 0)
        say_lost(node, board, &first, n);
}

/* ---- jobs ---- */

static int begin_job(struct node *node, const struct node_who *who,
                     const struct node_job *ask, uint64_t *ret_id, uw_error *err)
{
    struct roster_register reg = ask->reg;
    bool capped = !ask->search && (ask->cap.mw || ask->cap.percent > 0);
    uint64_t id = 0;
    const struct rights rights = rights_of(node);
    int r = rights_begin_job(&rights, who, ask, err);

    if (r < 0)
        return r;
    reg.id = 0;
    bool firm = who->admin && !node->opts.private;
    reg.firm = firm;
    r = roster_begin(node->roster, &reg, &id, err);
    if (r < 0)
        return r;
    struct job_record *rec = job_records_find(node->records, id);
    if (!rec) {
        (void)roster_end(node->roster, id, NULL);
        return job_records_full(node->records)
                   ? fail(err, -E2BIG, "%d jobs exist already", ROSTER_MAX)
                   : fail(err, -ENOMEM, "out of memory for a job");
    }
    rec->admin = firm; /* otherwise other users' processes on a board bar its caps */
    rec->search = ask->search;
    rec->by_default = ask->by_default;
    rec->goal = ask->goal;
    rec->cap = capped ? ask->cap : (struct cap_arg){0};
    (void)snprintf(rec->preset, sizeof rec->preset, "%s",
                   capped && ask->preset ? ask->preset : "");
    (void)snprintf(rec->cls, sizeof rec->cls, "%s", ask->cls ? ask->cls : "");
    job_key(ask->command, ask->reg.label, ask->reg.n_labels, rec->key);
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
                   const struct node_job *asked, uint64_t *ret_id, uw_error *err)
{
    struct node_job ask = *asked;
    int page = ask.page_fd;
    uw_error why = {""};
    uint64_t id = 0;
    int r = ask.preset ? node_policy_preset(node->policy, ask.preset, &ask.cap, &why) : 0;

    if (node->roster)
        ask.reg.boards = roster_default_boards(node->roster, &ask.reg);
    if (r == 0)
        r = begin_job(node, who, &ask, &id, &why);
    if (r == 0 && node->caps)
        caps_look_for_holders(node->caps);

    if (r == 0 && page >= 0) {
        r = searches_page(node->searches, id, page, &why);
        if (r < 0)
            (void)roster_end(node->roster, id, NULL);
        else
            page = -1;
    }
    if (page >= 0)
        (void)close(page);
    if (r < 0) {
        (void)fail(err, r, "%s", why.text);
        return refuse(node, who, REFUSAL_JOB, r, &why);
    }
    *ret_id = id;
    return 0;
}

int node_job_join(struct node *node, const struct node_who *who,
                  const struct node_job *asked, uint64_t *ret_id, uw_error *err)
{
    struct node_job ask = *asked;
    struct roster_register *reg = &ask.reg;
    const struct rights rights = rights_of(node);
    uw_error why = {""};

    if (!node->roster || !reg->group || !reg->group[0])
        return 0;
    uint64_t id = roster_group(node->roster, reg->uid, reg->group);
    if (!id && roster_has_part(node->roster, ask.before, reg->uid, reg->pid))
        id = ask.before;
    if (!id)
        return 0;
    reg->boards = roster_default_boards(node->roster, reg);
    int r = rights_join_job(&rights, who, id, &ask, &why);
    if (r == 0)
        r = roster_join(node->roster, id, reg, &why);
    if (r < 0) {
        (void)fail(err, r, "%s", why.text);
        return refuse(node, who, REFUSAL_JOB, r, &why);
    }
    *ret_id = id;
    return 1;
}

/* A user may not end a scheduler's job or a found one. */
static int may_end(struct node *node, const struct node_who *who, uint64_t id,
                   uw_error *err)
{
    const struct rights rights = rights_of(node);
    int r = rights_job(&rights, who, id, err);

    if (r == 0 && !who->admin && roster_find(node->roster, id)->source != JOB_RUN)
        return fail(err, -EPERM, "%s may not end job %" PRIu64 ": only its scheduler may",
                    rights_name(who), id);
    return r;
}

int node_job_leave(struct node *node, const struct node_who *who, uint64_t id, pid_t pid,
                   uw_error *err)
{
    uw_error why = {""};
    int r = may_end(node, who, id, &why);

    if (r == 0)
        r = roster_leave(node->roster, id, pid, &why);
    if (r < 0)
        (void)fail(err, r, "%s", why.text);
    return r == -EPERM ? refuse(node, who, REFUSAL_END, r, &why) : r;
}

/* For a search that begins later: all processes of a group report their steps to this
 * page.
 */
static int keep_page(struct node *node, uint64_t id, int *fd, uw_error *err)
{
    const struct job_entry *job = roster_find(node->roster, id);
    struct job_record *rec = job_records_find(node->records, id);
    struct progress_page *file;
    struct stat was, is;

    if (!rec || !job || job->source != JOB_RUN)
        return fail(err, -ENOENT, "job %" PRIu64 " has no search or cap", id);
    if (rec->page_fd >= 0) {
        bool same = fstat(rec->page_fd, &was) == 0 && fstat(*fd, &is) == 0 &&
                    was.st_dev == is.st_dev && was.st_ino == is.st_ino;
        return same ? 0 : fail(err, -EBUSY, "job %" PRIu64 " has a page", id);
    }
    int r = progress_page_adopt(*fd, &file, err);
    if (r < 0)
        return r;
    progress_page_disown(file);
    rec->page_fd = fd_take(fd);
    return 0;
}

int node_job_page(struct node *node, const struct node_who *who, uint64_t id, int page_fd,
                  uw_error *err)
{
    auto_(fd_close) int fd = page_fd;
    const struct rights rights = rights_of(node);
    uw_error why = {""};
    int r = rights_job(&rights, who, id, &why);

    if (r == 0)
        r = searches_page(node->searches, id, fd, &why);
    if (r == 0)
        (void)fd_take(&fd);
    else if (r == -ENOENT)
        r = keep_page(node, id, &fd, &why);
    if (r < 0)
        (void)fail(err, r, "%s", why.text);
    return r == -EPERM ? refuse(node, who, REFUSAL_PAGE, r, &why) : r;
}

int node_job_page_of(struct node *node, uid_t uid, uint64_t id, uw_error *err)
{
    const struct job_entry *job = node->roster ? roster_find(node->roster, id) : NULL;

    if (!job || job->uid != uid)
        return fail(err, -ENOENT, "there is no job %" PRIu64 " of this user", id);
    const struct job_record *rec = job_records_find(node->records, id);
    int fd = searches_page_fd(node->searches, id);
    if (fd < 0 && rec)
        fd = rec->page_fd;
    return fd >= 0 ? fd : fail(err, -ENODATA, "job %" PRIu64 " has no page", id);
}

int node_give_goal(struct node *node, const struct job_entry *job, struct job_record *rec,
                   uw_error *err)
{
    const struct goal *goal = job_record_goal(rec);
    const struct cap_class *cls =
        node_config_class(&node->config, nested_class(node->records, job, rec));
    int r = searches_goal(node->searches, job->id, goal, cls, err);

    if (r != -ENOENT || !goal)
        return r;
    r = node_search_begin(node, job, rec, NULL, err);
    if (r == 0 && rec->page_fd >= 0 &&
        searches_page(node->searches, job->id, rec->page_fd, NULL) == 0)
        rec->page_fd = -1;
    return r;
}

/* ---- jobs in a scheduler's job ---- */

static int give_goal(const struct job_entry *job, struct job_record *rec, void *user,
                     uw_error *err)
{
    return node_give_goal(user, job, rec, err);
}

static struct nested nested_of(struct node *node)
{
    return (struct nested){node->roster, node->records, node->searches, give_goal, node};
}

void node_nested_begin(struct node *node, const struct job_entry *job,
                       struct job_record *rec)
{
    const struct nested nested = nested_of(node);

    nested_begin(&nested, job, rec);
}

void node_nested_tick(struct node *node)
{
    const struct nested nested = nested_of(node);

    nested_tick(&nested);
}

/* ---- goals ---- */

static int set_goal(struct node *node, const struct node_who *who, uint64_t id,
                    const struct goal *goal, uw_error *err)
{
    const struct rights rights = rights_of(node);
    int r = rights_job(&rights, who, id, err);
    struct job_record *rec = r == 0 ? job_records_find(node->records, id) : NULL;

    if (r < 0)
        return r;
    if (!rec || !node->searches)
        return fail(err, -EAGAIN, "no GPU is open (yet)");
    if (rec->cap.mw || rec->cap.percent > 0 || scheduler_caps(rec))
        return fail(err, -EEXIST,
                    "job %" PRIu64 " holds a cap by name: it cannot be searched", id);
    const struct job_record before = *rec;
    rec->search = goal != NULL;
    rec->off = goal == NULL;
    rec->by_default = false;
    if (goal)
        rec->goal = *goal;
    r = node_give_goal(node, roster_find(node->roster, id), rec, err);
    if (r == -ENOENT) /* the job has no search, and needs none */
        r = 0;
    if (r < 0)
        *rec = before;
    return r;
}

int node_job_goal(struct node *node, const struct node_who *who, uint64_t id,
                  const struct goal *goal, uw_error *err)
{
    uw_error why = {""};
    int r = set_goal(node, who, id, goal, &why);

    if (r == 0)
        node_ledger_job(node, roster_find(node->roster, id));
    else
        (void)fail(err, r, "%s", why.text);
    return r == -EPERM ? refuse(node, who, REFUSAL_JOB, r, &why) : r;
}

int node_job_end(struct node *node, const struct node_who *who, uint64_t id,
                 uw_error *err)
{
    uw_error why = {""};
    int r = may_end(node, who, id, &why);

    if (r == 0)
        r = roster_end(node->roster, id, &why);
    if (r < 0)
        (void)fail(err, r, "%s", why.text);
    return r == -EPERM ? refuse(node, who, REFUSAL_END, r, &why) : r;
}

/* ---- jobs by a scheduler's name ---- */

static int preset_of(const char *name, struct cap_arg *ret, void *user, uw_error *err)
{
    const struct node *node = user;

    return node_policy_preset(node->policy, name, ret, err);
}

static const char *class_at(size_t i, void *user)
{
    const struct node *node = user;

    return node_policy_class_at(node->policy, i);
}

static void forget(uint64_t job, void *user)
{
    struct node *node = user;

    searches_forget(node->searches, job);
}

static void withdraw(uint64_t claim, enum claim_end how, void *user)
{
    node_withdraw_claim(user, claim, how);
}

static void on_refused(const struct job_entry *job, int r, const uw_error *why,
                       void *user)
{
    struct node *node = user;

    refusals_say(node->refusals, REFUSAL_CLAIM, r, SIZE_MAX, job->uid, job->name, why);
}

static void on_changed(const struct job_entry *job, void *user)
{
    node_ledger_job(user, job);
}

int node_scheduler_start(struct node *node, uw_error *err)
{
    const struct scheduler_opts opts = {.loop = node->loop,
                                        .blind = node->opts.read || node->opts.private,
                                        .config = &node->config,
                                        .boards = node->boards,
                                        .caps = node->caps,
                                        .roster = node->roster,
                                        .records = node->records,
                                        .preset = preset_of,
                                        .class_at = class_at,
                                        .search = give_goal,
                                        .forget = forget,
                                        .withdraw = withdraw,
                                        .refused = on_refused,
                                        .changed = on_changed,
                                        .user = node};

    return scheduler_new(&opts, &node->scheduler, err);
}

static int may_schedule(struct node *node, const struct node_who *who, enum refusal of,
                        uw_error *err)
{
    if (who->admin)
        return 0;
    return refuse(node, who, of,
                  fail(err, -EPERM,
                       "%s may not register a scheduler's jobs or end them: "
                       "administrators only",
                       rights_name(who)),
                  err);
}

static int check_scheduler(struct node *node, const struct node_who *who, enum refusal of,
                           uw_error *err)
{
    int r = may_schedule(node, who, of, err);

    return r < 0 || node->open ? r : fail(err, -EAGAIN, "no GPU is open (yet)");
}

void node_scheduler_opened(struct node *node)
{
    while (node->n_ended > 0)
        scheduler_end(node->scheduler, node->ended[--node->n_ended]);
}

int node_scheduler_put(struct node *node, const struct node_who *who,
                       const struct scheduler_ask *ask, uint64_t *ret_id, uw_error *err)
{
    uw_error why = {""};
    int r = check_scheduler(node, who, REFUSAL_JOB, err);

    if (r < 0)
        return r;
    r = scheduler_put(node->scheduler, ask, ret_id, &why);
    if (r >= 0)
        return r;
    (void)fail(err, r, "%s", why.text);
    return refuse(node, who, REFUSAL_JOB, r, &why);
}

int node_scheduler_amend(struct node *node, const struct node_who *who, const char *name,
                         const struct scheduler_facts *facts, uw_error *err)
{
    int r = check_scheduler(node, who, REFUSAL_JOB, err);

    return r < 0 ? r : scheduler_amend(node->scheduler, name, facts, err);
}

int node_scheduler_end(struct node *node, const struct node_who *who, const char *name,
                       uw_error *err)
{
    int r = may_schedule(node, who, REFUSAL_END, err);

    if (r < 0)
        return r;
    if (node->open) {
        scheduler_end(node->scheduler, name);
        return 0;
    }
    if (node->n_ended == NODE_ENDED_MAX || strlen(name) >= NODE_ENDED_NAME)
        return fail(err, -EAGAIN, "no GPU is open (yet)");
    (void)snprintf(node->ended[node->n_ended++], NODE_ENDED_NAME, "%s", name);
    return 0;
}

/* ---- boards that are released ---- */

static int may_hand_out(struct node *node, const struct node_who *who, const char *board,
                        size_t *ret, uw_error *err)
{
    uw_error why = {""};
    int r = who->admin && who->may_claim
                ? node_board(node, board, ret, &why)
                : fail(&why, -EPERM, "%s may not release GPUs: administrators only",
                       rights_name(who));

    if (r == 0 && !node->open)
        r = fail(&why, -EAGAIN, "no GPU is open (yet)");
    if (r < 0)
        (void)fail(err, r, "%s", why.text);
    return r == -EPERM ? refuse(node, who, REFUSAL_RELEASE, r, &why) : r;
}

int node_release(struct node *node, const struct node_who *who, const char *board,
                 uint64_t hold_off_ns, caps_done_fn fn, void *user, uw_error *err)
{
    size_t at = 0;
    int r = may_hand_out(node, who, board, &at, err);

    if (r == 0)
        r = released_boards_release(node->released, at, hold_off_ns, fn, user, err);
    if (r == 0)
        ledger_writer_event(node->writer, LEDGER_EVENT_RELEASE, at, who->uid,
                            rights_name(who));
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
        released_boards_kick(node->released);
    if (r == 0)
        ledger_writer_event(node->writer, LEDGER_EVENT_TAKE_BACK, at, who->uid,
                            rights_name(who));
    return r;
}

/* ---- energy windows of clients ---- */

/* A token for one job grants no right to windows of all boards. */
static int may_hold(struct node *node, const struct node_who *who, uw_error *err)
{
    if (!who->may_claim || who->only_job)
        return refuse(node, who, REFUSAL_WINDOW,
                      fail(err, -EPERM, "%s may not hold windows open", who->name), err);
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
    int r = may_hold(node, who, err);

    return r < 0 ? r : client_windows_begin(node->windows, who->uid, ret_id, err);
}

int node_window_stop(struct node *node, const struct node_who *who, uint64_t id,
                     uint64_t boot_ns, uw_error *err)
{
    int r = may_hold(node, who, err);
    uint64_t at_ns = boot_ns ? loop_at_ns(node->loop, boot_ns) : 0;

    return r < 0 ? r : client_windows_stop(node->windows, whose(who), id, at_ns, err);
}

int node_window_end(struct node *node, const struct node_who *who, uint64_t id,
                    const struct client_window_ask *ask, uw_error *err)
{
    int r = may_hold(node, who, err);

    return r < 0 ? r : client_windows_ask(node->windows, whose(who), id, ask, err);
}

int node_window_look(struct node *node, const struct node_who *who, uint64_t id,
                     struct client_window_result *ret, uw_error *err)
{
    int r = may_hold(node, who, err);

    return r < 0 ? r : client_windows_look(node->windows, whose(who), id, ret, err);
}

int node_window_powers(struct node *node, const struct node_who *who, uint64_t id,
                       struct client_window_powers *powers, uw_error *err)
{
    int r = may_hold(node, who, err);

    return r < 0 ? r : client_windows_powers(node->windows, whose(who), id, powers, err);
}

int node_window_drop(struct node *node, const struct node_who *who, uint64_t id,
                     uw_error *err)
{
    int r = may_hold(node, who, err);

    return r < 0 ? r : client_windows_drop(node->windows, whose(who), id, err);
}

size_t node_window_processors(struct node *node, bool exact,
                              const struct client_window_result *window,
                              struct processors_energy ret[LEDGER_DOMAINS])
{
    return processors_between(node->processors, exact, window->begin_ns, window->end_ns,
                              ret);
}

/* ---- signals from outside ---- */

static int may_set(struct node *node, const struct node_who *who, uw_error *err)
{
    if (who->admin)
        return 0;
    return refuse(node, who, REFUSAL_SIGNAL,
                  fail(err, -EPERM, "%s may not set signals: administrators only",
                       rights_name(who)),
                  err);
}

int node_signal_set(struct node *node, const struct node_who *who, const char *name,
                    const struct node_signal *ask, uw_error *err)
{
    int r = may_set(node, who, err);

    if (r == 0)
        r = node_outside(node, err);
    return r < 0 ? r : outside_set(node->outside, who, name, ask, err);
}

int node_signal_unset(struct node *node, const struct node_who *who, const char *name,
                      uw_error *err)
{
    int r = may_set(node, who, err);

    if (r == 0)
        r = node_outside(node, err);
    return r < 0 ? r : outside_unset(node->outside, who, name, err);
}

int node_signals(struct node *node, const struct signal_view **ret, size_t *ret_n,
                 uw_error *err)
{
    int r = node_outside(node, err);

    if (r == 0)
        *ret = outside_look(node->outside, ret_n);
    return r;
}

/* ---- the policy ---- */

int node_policy_would(struct node *node, const struct node_who *who, const char *text,
                      struct policy_trial **ret, uw_error *err)
{
    if (!who->admin)
        return fail(err, -EPERM,
                    "%s may not test a policy against all jobs: administrators only",
                    rights_name(who));
    if (!node->policy)
        return fail(err, -ENOTSUP, "a command's own node has no policy");
    if (!node->open)
        return fail(err, -EAGAIN, "no GPU is open (yet)");
    return node_policy_try(node->policy, text, strlen(text), ret, err);
}

/* ---- of a private node ---- */

int node_need_actuator(struct node *node, caps_done_fn fn, void *user, uw_error *err)
{
    if (!node->link)
        return fail(err, -EAGAIN, "no GPU is open (yet)");
    if (actuator_link_ready(node->link))
        return 1;
    if (node->actuator_over)
        return fail(err, -EPERM, "%s", node->actuator_text);
    if (node->needed)
        return fail(err, -EBUSY, "the actuator is being started");
    node->needed = fn;
    node->needed_user = user;
    actuator_link_start(node->link);
    return 0;
}

void node_hold(struct node *node, bool hold)
{
    node->config.caps.always_hold = hold;
    if (node->caps)
        node_caps_configure(node);
}

bool node_held(const struct node *node, char ret[static JOB_HELD])
{
    ret[0] = '\0';
    return node->roster && roster_held(node->roster, geteuid(), ~0ull, ret);
}

/* ---- the view ---- */

const struct node_view *node_look(struct node *node)
{
    struct node_view *v = &node->view;
    uint64_t fresh_ns = 3 * node->config.sampling.rest_ns;
    bool ready = actuator_link_ready(node->link) != NULL;

    *v = (struct node_view){.hostname = node->hostname,
                            .version = node->opts.version,
                            .simulated = node->opts.simulated,
                            .dry_run = node->config.node.dry_run,
                            .read_only = !ready,
                            .now_ns = loop_now_ns(node->loop),
                            .began_ns = node->began_ns,
                            .utc_ns = loop_utc_ns(node->loop),
                            .rapl_ns = node->config.boards.rapl_ns,
                            .config_loads = node->config_loads,
                            .config_failures = node->config_failures,
                            .config_error = node->config_error};
    if (fresh_ns < FRESH_S * NS_PER_S)
        fresh_ns = FRESH_S * NS_PER_S;
    v->fresh_ns = fresh_ns;
    viewer_look(node->viewer, fresh_ns, v);
    if (node->budget)
        budget_look(node->budget, &v->budget);
    if (node->outside)
        v->signal = outside_look(node->outside, &v->n_signals);
    v->rapl = processors_look(node->processors, &v->n_rapl);
    (void)snprintf(v->actuator, sizeof v->actuator, "%s",
                   ready                       ? ""
                   : node->config.node.dry_run ? "dry run: not connected"
                   : node->actuator_text[0]    ? node->actuator_text
                   : node->opts.private        ? "starts with the first claim"
                                               : "not connected yet");
    ledger_writer_look(node->writer, v);
    node_policy_look(node->policy, &v->policy);
    v->policy.file = node->config.policy_file;
    v->policy.caps_cls = node->config.caps.cls;
    v->policy.n_caps_classes = node->config.caps.n_classes;
    return v;
}

int node_board(struct node *node, const char *name, size_t *ret, uw_error *err)
{
    return viewer_board(node->viewer, name, ret, err);
}

int node_report(struct node *node, const struct ledger_query *query, ledger_report_fn fn,
                void *user, uw_error *err)
{
    struct ledger_query q = *query;

    node->accounting->pue = node_policy_pue(node->policy);
    q.accounting = q.waste ? NULL : node->accounting;
    return ledger_writer_report(node->writer, &q, fn, user, err);
}
