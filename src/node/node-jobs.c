/* The node's jobs: roster, searches; what is kept of them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/names.h"
#include "base/units.h"
#include "io/file.h"
#include "node/node-inside.h"

/* ---- records ---- */

struct node_job_rec *node_job_rec(struct node *node, uint64_t id)
{
    for (size_t i = 0; i < node->n_jobs; i++)
        if (node->job[i]->id == id)
            return node->job[i];
    return NULL;
}

void node_job_rec_free(struct node_job_rec *rec)
{
    job_phase_free(rec->follow);
    free(rec);
}

static void forget(struct node *node, size_t at)
{
    uint64_t id = node->job[at]->id;

    if (node->tunings)
        searches_forget(node->tunings, id);
    node_attribution_forget(node, id);
    node_job_rec_free(node->job[at]);
    node->job[at] = node->job[--node->n_jobs];
}

void node_job_rec_drop(struct node *node, uint64_t id)
{
    for (size_t i = 0; i < node->n_jobs; i++)
        if (node->job[i]->id == id) {
            forget(node, i);
            return;
        }
}

/* Where all are taken the one that ended first makes room. */
static void make_room(struct node *node)
{
    size_t oldest = SIZE_MAX;

    if (node->n_jobs < n_elements(node->job))
        return;
    for (size_t i = 0; i < node->n_jobs; i++)
        if (node->job[i]->ended_ns &&
            (oldest == SIZE_MAX || node->job[i]->ended_ns < node->job[oldest]->ended_ns))
            oldest = i;
    if (oldest != SIZE_MAX)
        forget(node, oldest);
}

struct node_job_rec *node_job_rec_new(struct node *node, uint64_t id)
{
    make_room(node);
    if (node->n_jobs == n_elements(node->job))
        return NULL;
    struct node_job_rec *rec = calloc(1, sizeof *rec);
    if (!rec)
        return NULL;
    rec->id = id;
    if (node->config.jobs.phases) /* without memory: it is not followed */
        (void)job_phase_new(node->loop, &rec->follow);
    node->job[node->n_jobs++] = rec;
    return rec;
}

/* ---- searches ---- */

/* A file to be written beside the loop. */
struct saving {
    char path[CONFIG_PATH + 40];
    char *text; /* NULL: to be removed */
    struct node *node;
    void (*fn)(struct node *node);
};

static void saving_free(struct saving *s)
{
    if (!s)
        return;
    free(s->text);
    free(s);
}
DEFINE_AUTO(struct saving *, saving_free);

static int save_work(struct loop *loop, void *work)
{
    struct saving *s = work;
    (void)loop;

    if (!s->text)
        return unlink(s->path) < 0 && errno != ENOENT ? -errno : 0;
    return file_write(s->path, s->text, strlen(s->text), 0600, NULL);
}

static int save_done(struct loop *loop, void *work, int r)
{
    const struct saving *s = work;
    void (*fn)(struct node * node) = s->fn;
    struct node *node = s->node;
    (void)loop;

    if (r != -ETIMEDOUT)
        saving_free(work);
    if (fn)
        fn(node);
    return 0;
}

void node_save(struct node *node, const char *path, const char *text,
               void (*fn)(struct node *node))
{
    auto_(saving_free) struct saving *s = calloc(1, sizeof *s);

    if (!s || !node->saver || !node->config.ledger.path[0]) {
        if (fn)
            fn(node);
        return;
    }
    s->node = node;
    s->fn = fn;
    (void)snprintf(s->path, sizeof s->path, "%s", path);
    if (text)
        s->text = strdup(text);
    struct loop_work work = {.fn = save_work, .done = save_done, .work = s};
    if ((!text || s->text) && loop_worker_submit(node->saver, &work) == 0)
        (void)take(s);
    else if (fn)
        fn(node);
}

static void save_state(struct node *node, uint64_t job, const char *text)
{
    char path[CONFIG_PATH + 40];

    if (!node->config.ledger.path[0])
        return;
    node_state_path(node, job, path, sizeof path);
    node_save(node, path, text, NULL);
}

static struct sampler *sampler_of(size_t board, void *user)
{
    struct node *node = user;

    return board < node->n ? node->board[board].sampler : NULL;
}

static void on_save(uint64_t job, const char *state, void *user)
{
    struct node *node = user;
    const struct job_entry *entry = roster_find(node->roster, job);

    save_state(node, job, state);
    if (entry)
        node_ledger_job(node, entry);
}

static void on_note(uint64_t job, const char *text, bool important, void *user)
{
    (void)user;
    log_event(important ? LOG_LEVEL_NOTICE : LOG_LEVEL_DEBUG, "search",
              "job=%" PRIu64 " text=%s", job, log_quote(text).text);
}

int node_search_begin(struct node *node, const struct job_entry *job,
                      struct node_job_rec *rec, const char *state, uw_error *err)
{
    struct searches_ask ask = {
        .search = rec->search,
        .goal = rec->goal,
        .cap = rec->cap,
        .cls = node_config_class(&node->config, rec->cls[0] ? rec->cls : "default"),
        .state = state};
    int r = searches_begin(node->tunings, job, &ask, err);

    rec->asked = r == 0;
    return r;
}

bool node_is_searched(struct node *node, size_t board)
{
    for (size_t i = 0; i < node->n_jobs; i++) {
        const struct node_job_rec *rec = node->job[i];
        const struct job_entry *job = rec->asked && rec->search && !rec->ended_ns
                                          ? roster_find(node->roster, rec->id)
                                          : NULL;
        if (job && job->boards & (1ull << board))
            return true;
    }
    return false;
}

/* ---- the roster ---- */

static void begin_found(struct node *node, const struct job_entry *job,
                        struct node_job_rec *rec)
{
    uw_error err = {""};

    if (job->source != JOB_FOUND || !node->config.search.found)
        return;
    rec->search = true;
    rec->goal = node->config.search.goal;
    if (node_search_begin(node, job, rec, NULL, &err) < 0)
        log_event(LOG_LEVEL_WARNING, "search-refused", "job=%" PRIu64 " reason=%s",
                  job->id, log_quote(err.text).text);
}

static void end_job(struct node *node, const struct job_entry *job,
                    struct node_job_rec *rec)
{
    node->how = CLAIM_END_JOB;
    caps_withdraw_job(node->caps, job->id);
    node->how = CLAIM_END_WITHDRAWN;
    node_phases_end(rec);
    rec->last = *job;
    rec->ended_ns = loop_now_ns(node->loop);
    if (rec->asked)
        save_state(node, job->id, NULL);
    log_event(LOG_LEVEL_INFO, "job-end", "job=%" PRIu64 " name=%s", job->id,
              log_quote(job->name).text);
}

static void on_job(enum roster_event event, const struct job_entry *job, void *user)
{
    struct node *node = user;
    struct node_job_rec *rec = node_job_rec(node, job->id);

    if (event == ROSTER_BEGIN && !rec) {
        rec = node_job_rec_new(node, job->id);
        if (rec)
            begin_found(node, job, rec);
        log_event(LOG_LEVEL_INFO, "job-begin", "job=%" PRIu64 " source=%s name=%s uid=%u",
                  job->id, names_word(NAMES_JOB_SOURCE, job->source),
                  log_quote(job->name).text, (unsigned)job->uid);
    }
    if (node->tunings)
        (void)searches_on_job(node->tunings, event, job);
    node_ledger_job(node, job);
    if (event == ROSTER_END && rec)
        end_job(node, job, rec);
    for (size_t i = 0; i < node->n; i++)
        if (job->boards >> i & 1)
            node_rights_check(node, i);
    node_tell(node, NODE_EVENT_JOB, job);
}

static void on_turn(size_t board, void *user)
{
    node_attribution_turn(user, board);
}

/* What somebody has named is another's, who computes there. */
static void on_pass(size_t board, const struct job_entry *from,
                    const struct job_entry *to, void *user)
{
    struct node *node = user;
    char text[200];

    if (from)
        (void)snprintf(text, sizeof text,
                       "to job %" PRIu64 " of uid %u, which computes there: job %" PRIu64
                       " of uid %u, which had named it, does not",
                       to->id, (unsigned)to->uid, from->id, (unsigned)from->uid);
    else
        (void)snprintf(text, sizeof text,
                       "to job %" PRIu64 " of uid %u, which had named it: nobody else "
                       "has it any more",
                       to->id, (unsigned)to->uid);
    log_event(LOG_LEVEL_NOTICE, "board-passed", "gpu=%u job=%" PRIu64 " text=%s",
              node_info(node, board)->index, to->id, log_quote(text).text);
    node_ledger_event(node, "board-passed", board, to->uid, text);
}

static void on_look(size_t board, void *user)
{
    node_rights_check(user, board);
}

/* ---- beginning and end ---- */

int node_jobs_start(struct node *node, uint64_t first_job, uw_error *err)
{
    struct roster_opts roster = {.loop = node->loop,
                                 .boards = node->boards,
                                 .look_ns = node->config.jobs.look_ns,
                                 .no_found = !node->config.jobs.discover,
                                 .read = node->opts.read,
                                 .read_user = node->opts.read_user,
                                 .first_id = first_job,
                                 .on_event = on_job,
                                 .on_turn = on_turn,
                                 .on_pass = on_pass,
                                 .on_look = on_look,
                                 .user = node};
    struct searches_opts tunings = {
        .loop = node->loop,
        .boards = node->boards,
        .caps = node->caps,
        .sampler = sampler_of,
        .checks_share =
            node->config.reference_share > 0 ? node->config.reference_share : -1,
        .looks = node->config.looks ? (int)node->config.looks : -1,
        .slack = node->config.slack,
        .clocks = node->config.search_clocks,
        .save = on_save,
        .earlier = node_history_earlier,
        .learnt = node_history_learnt,
        .note = on_note,
        .user = node};
    int r = roster_new(&roster, &node->roster, err);

    if (r == 0)
        r = node_attribution_start(node, err);
    if (r == 0)
        r = loop_worker_new(node->loop, "saver", &node->saver, err);
    return r == 0 ? searches_new(&tunings, &node->tunings, err) : r;
}

void node_jobs_stop(struct node *node)
{
    searches_free(take(node->tunings));
    node_attribution_stop(node);
    roster_free(take(node->roster));
    loop_worker_free(take(node->saver));
    while (node->n_jobs > 0)
        node_job_rec_free(node->job[--node->n_jobs]);
}

void node_jobs_tick(struct node *node, uint64_t now_ns)
{
    for (size_t i = node->n_jobs; i-- > 0;) {
        struct node_job_rec *rec = node->job[i];
        if (rec->ended_ns && s_between(rec->ended_ns, now_ns) > NODE_KEEP_JOB_S)
            forget(node, i);
        else if (!rec->ended_ns)
            node_phases_tick(node, rec, now_ns);
    }
}
