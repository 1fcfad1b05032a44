#include "node/ledger-writer.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/log.h"
#include "base/names.h"
#include "base/units.h"
#include "io/file.h"
#include "node/charges.h"
#include "node/revisions.h"
#include "node/rule-rows.h"
#include "node/wasters.h"

enum {
    FLUSH_MS = 20,
    CLOCK_SET_S = 60, /* least change of UTC that counts as setting it */
    QUARTERS = 4,     /* quarters checked for a revision in a tick */
};

struct ledger_writer {
    struct ledger_writer_opts opts;
    enum ledger_trouble trouble;
    char boot_id[40];
    struct boards *boards; /* NULL: unknown */
    struct ledger_domain domain[LEDGER_DOMAINS];
    size_t n_domains;
    struct ledger *ledger;      /* owned until the queue takes it */
    struct ledger_batch *early; /* rows until the queue runs */
    struct ledger_queue *queue;
    struct loop_timer *flush;
    bool flushing;                 /* a flush is due */
    int64_t ahead_ns;              /* UTC offset at the last tick; 0: none yet */
    char text[200];                /* why the ledger could not be used; "": it could */
    uint64_t lost;                 /* rows lost by earlier queues */
    struct ledger_revised revised; /* revised by earlier queues */
    struct rule_rows *rule_rows;
    struct charges *charges;
    struct revisions *revisions;
    struct wasters *wasters;
    struct ledger_batch *rest;      /* unwritten rows while boards are reopened */
    char rest_uuid[BOARDS_MAX][96]; /* the boards of these rows */
};

int ledger_writer_new(const struct ledger_writer_opts *opts, struct ledger_writer **ret)
{
    auto_(rule_rows_free) struct rule_rows *rule_rows = NULL;
    auto_(charges_free) struct charges *charges = NULL;
    auto_(revisions_free) struct revisions *revisions = NULL;
    auto_(wasters_free) struct wasters *wasters = NULL;
    int r = rule_rows_new(&rule_rows);
    r = r < 0 ? r : charges_new(&charges);
    r = r < 0 ? r : revisions_new(&revisions);
    r = r < 0 ? r : wasters_new(&wasters);
    struct ledger_writer *w = r < 0 ? NULL : calloc(1, sizeof *w);

    if (!w)
        return -ENOMEM;
    w->opts = *opts;
    w->rule_rows = take(rule_rows);
    w->charges = take(charges);
    w->revisions = take(revisions);
    w->wasters = take(wasters);
    *ret = w;
    return 0;
}

static int64_t utc_of(const struct ledger_writer *w, uint64_t at_ns)
{
    return loop_utc_ns(w->opts.loop) - (int64_t)(loop_now_ns(w->opts.loop) - at_ns);
}

int64_t ledger_writer_ahead_ns(const struct ledger_writer *w)
{
    return loop_utc_ns(w->opts.loop) - (int64_t)loop_now_ns(w->opts.loop);
}

static const struct gpu_info *info_of(const struct ledger_writer *w, size_t board)
{
    return board_view(boards_at(w->boards, board))->info;
}

static size_t n_boards(const struct ledger_writer *w)
{
    return w->boards ? boards_count(w->boards) : 0;
}

/* ---- opening ---- */

static int read_boot_id(struct ledger_writer *w, uw_error *err)
{
    auto_(mem_free) char *text = NULL;
    int r = file_read("/proc/sys/kernel/random/boot_id", 256, &text, NULL, err);

    if (r == 0)
        (void)snprintf(w->boot_id, sizeof w->boot_id, "%.*s", (int)strcspn(text, "\n"),
                       text);
    return r;
}

static struct ledger_keep keep_of(const struct node_config *config)
{
    return (struct ledger_keep){.booked_ns = config->ledger.keep_fine_ns,
                                .minute_ns = config->ledger.keep_minute_ns,
                                .hour_ns = config->ledger.keep_hour_ns,
                                .search_ns =
                                    config->history_ns ? config->history_ns : NS_PER_MS};
}

void ledger_writer_configure(struct ledger_writer *w)
{
    const struct ledger_keep keep = keep_of(w->opts.config);

    if (w->queue)
        ledger_queue_keep(w->queue, &keep);
}

static int tell_boards(struct ledger_writer *w, uw_error *err)
{
    struct ledger_board board[BOARDS_MAX];

    for (size_t i = 0; i < n_boards(w); i++) {
        const struct gpu_info *info = info_of(w, i);
        board[i] = (struct ledger_board){info->uuid, info->name, info->pci_bus_id};
    }
    int r = ledger_boards(w->ledger, board, n_boards(w), err);
    return r < 0 ? r : ledger_domains(w->ledger, w->domain, w->n_domains, err);
}

/* The ledger cannot be used: the node continues, and keeps rows in memory until it can.
 * Logs each reason once.
 */
static void use_memory(struct ledger_writer *w, int r, const char *why)
{
    w->trouble = ledger_trouble(r);
    if (strcmp(w->text, why) == 0)
        return;
    (void)snprintf(w->text, sizeof w->text, "%s", why);
    log_event(LOG_LEVEL_ERROR, LOG_EVENT_LEDGER_FAILED,
              "reason=%s in=memory earlier_runs=%s", log_quote(why).text,
              ledger_is_readable(w->ledger) ? "read" : "unknown");
}

int ledger_writer_leave(struct ledger_writer *w, int r, const uw_error *why,
                        uw_error *err)
{
    ledger_leave(w->ledger);
    use_memory(w, r, why->text);
    return tell_boards(w, err);
}

int ledger_writer_open(struct ledger_writer *w, uw_error *err)
{
    const struct config_ledger *c = &w->opts.config->ledger;
    struct ledger_opts opts = {.path = c->path,
                               .simulated = w->opts.simulated,
                               .boot_id = w->boot_id,
                               .version = w->opts.version,
                               .utc_ns = loop_utc_ns(w->opts.loop),
                               .keep = keep_of(w->opts.config)};
    uw_error why = {""};
    int r = 0;

    if (!c->path[0] || w->ledger)
        return 0;
    if (!w->boot_id[0] && w->opts.boot_id)
        (void)snprintf(w->boot_id, sizeof w->boot_id, "%s", w->opts.boot_id);
    else if (!w->boot_id[0])
        r = read_boot_id(w, err);
    if (r == 0)
        r = ledger_open(&opts, &w->ledger, &why);
    if (r == LEDGER_ASIDE)
        log_event(LOG_LEVEL_ERROR, LOG_EVENT_LEDGER_ASIDE, "reason=%s",
                  log_quote(why.text).text);
    if (r >= 0) {
        w->text[0] = '\0';
    } else if (why.text[0]) {
        int failed = r;
        r = ledger_open_later(&opts, failed, &w->ledger, err);
        if (r == 0)
            use_memory(w, failed, why.text);
    }
    if (r < 0)
        return r;
    w->early = ledger_batch_new();
    return w->early ? 0 : fail(err, -ENOMEM, "out of memory");
}

static int64_t midnight(int64_t utc_ns)
{
    const int64_t day = 86400 * (int64_t)NS_PER_S;

    return utc_ns - utc_ns % day;
}

static int read_sums(struct ledger_writer *w, size_t i, struct attribution_board *ret,
                     uw_error *err)
{
    struct ledger_sums all = {0}, today = {0};
    int64_t utc = loop_utc_ns(w->opts.loop);
    int r = ledger_board_sums(w->ledger, i, 0, &all, err);

    if (r == 0)
        r = ledger_board_sums(w->ledger, i, midnight(utc), &today, err);
    if (r < 0)
        return r;
    *ret = (struct attribution_board){
        .energy_j = all.job_j + all.idle_j + all.unattributed_j,
        .attributed_j = all.job_j,
        .idle_j = all.idle_j,
        .unattributed_j = all.unattributed_j,
        .today_j = today.job_j + today.idle_j + today.unattributed_j};
    memcpy(ret->use_j, all.use_j, sizeof ret->use_j);
    memcpy(ret->use_s, all.use_s, sizeof ret->use_s);
    return 0;
}

/* The present position of a board of the kept rows. */
static size_t place_now(const struct ledger_writer *w, size_t was)
{
    if (was >= LEDGER_BOARDS)
        return was; /* processors are never reopened */
    for (size_t i = 0; was < BOARDS_MAX && w->rest_uuid[was][0] && i < n_boards(w); i++)
        if (strcmp(info_of(w, i)->uuid, w->rest_uuid[was]) == 0)
            return i;
    return SIZE_MAX;
}

/* Writes the kept rows before anything is read: jobs and claims may exist only in these
 * rows.
 */
static int write_rest(struct ledger_writer *w, uw_error *err)
{
    size_t map[LEDGER_PLACES];
    int r = 0;

    if (!w->rest)
        return 0;
    for (size_t i = 0; i < LEDGER_PLACES; i++)
        map[i] = place_now(w, i);
    w->lost += ledger_batch_move(w->rest, map);
    if (ledger_is_open(w->ledger)) {
        r = ledger_write(w->ledger, w->rest, err);
        if (r >= 0)
            ledger_batch_clear(w->rest);
    }
    if (ledger_batch_join(w->rest, w->early) < 0)
        w->lost += ledger_batch_rows(w->early);
    ledger_batch_free(w->early);
    w->early = take(w->rest);
    return r;
}

int ledger_writer_boards(struct ledger_writer *w, struct boards *boards,
                         const struct ledger_domain *domain, size_t n_domains,
                         struct attribution_board before[BOARDS_MAX], uw_error *err)
{
    uw_error why = {""};
    int r = 0;

    memset(before, 0, BOARDS_MAX * sizeof *before);
    charges_drop_boards(w->charges);
    w->boards = boards;
    w->n_domains = n_domains;
    if (n_domains)
        memcpy(w->domain, domain, n_domains * sizeof *domain);
    if (!w->ledger)
        return 0;
    r = tell_boards(w, &why);
    if (r == 0)
        r = write_rest(w, &why);
    if (r < 0)
        r = ledger_writer_leave(w, r, &why, err);
    if (r < 0 || !ledger_is_readable(w->ledger))
        return r;
    for (size_t i = 0; i < n_boards(w) && r == 0; i++)
        r = read_sums(w, i, &before[i], &why);
    return r < 0 ? ledger_writer_leave(w, r, &why, err) : 0;
}

struct ledger *ledger_writer_ledger(const struct ledger_writer *w)
{
    return w->ledger;
}

struct ledger_batch *ledger_writer_early(const struct ledger_writer *w)
{
    return w->early;
}

const char *ledger_writer_boot_id(const struct ledger_writer *w)
{
    return w->boot_id;
}

bool ledger_writer_is_on(const struct ledger_writer *w)
{
    return w->queue != NULL;
}

bool ledger_writer_is_failing(const struct ledger_writer *w)
{
    struct ledger_queue_stats stats = {0};

    if (w->queue)
        ledger_queue_look(w->queue, &stats);
    return stats.failing;
}

void ledger_writer_folder(const struct ledger_writer *w, char *ret, size_t size)
{
    const char *path = w->opts.config->ledger.path, *slash = strrchr(path, '/');

    (void)snprintf(ret, size, "%.*s", slash ? (int)(slash - path) : 0, path);
}

void ledger_writer_state_path(const struct ledger_writer *w, uint64_t job, char *ret,
                              size_t size)
{
    const char *path = w->opts.config->ledger.path, *slash = strrchr(path, '/');

    ret[0] = '\0';
    if (slash)
        (void)snprintf(ret, size, "%.*s/job-%ju.json", (int)(slash - path), path,
                       (uintmax_t)job);
}

/* ---- the queue ---- */

static void on_state(int r, const char *text, void *user)
{
    struct ledger_writer *w = user;

    if (r > 0) {
        log_event(LOG_LEVEL_ERROR,
                  r == LEDGER_ASIDE ? LOG_EVENT_LEDGER_ASIDE : LOG_EVENT_LEDGER_ANEW,
                  "reason=%s", log_quote(text).text);
        w->opts.restate(w->opts.user);
    } else if (r < 0) {
        log_event(LOG_LEVEL_ERROR, LOG_EVENT_LEDGER_FAILED, "reason=%s in=memory",
                  log_quote(text).text);
    } else {
        struct ledger_queue_stats stats;
        ledger_queue_look(w->queue, &stats);
        w->text[0] = '\0';
        log_event(LOG_LEVEL_NOTICE, LOG_EVENT_LEDGER, "state=written rows=%zu lost=%ju",
                  stats.kept, (uintmax_t)stats.lost);
    }
}

static int on_flush(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct ledger_writer *w = user;
    (void)timer;
    (void)now_ns;

    w->flushing = false;
    if (w->queue)
        ledger_queue_flush(w->queue);
    return 0;
}

int ledger_writer_start(struct ledger_writer *w, uw_error *err)
{
    struct ledger_queue_opts opts = {.loop = w->opts.loop,
                                     .ledger = w->ledger,
                                     .why = w->text,
                                     .trouble = w->trouble,
                                     .flush_ns = w->opts.config->node.interval_ns,
                                     .on_state = on_state,
                                     .user = w};

    if (!w->ledger)
        return 0;
    int r = ledger_queue_new(&opts, &w->queue, err);
    if (r < 0)
        return r;
    w->ledger = NULL;
    w->flushing = false;
    r = loop_timer_new(w->opts.loop, UINT64_MAX, 0, on_flush, w, &w->flush, err);
    if (r < 0)
        return r;
    if (ledger_batch_join(ledger_queue_rows(w->queue), w->early) < 0)
        ledger_queue_lost(w->queue);
    ledger_batch_free(take(w->early));
    ledger_writer_event(w, LEDGER_EVENT_START, SIZE_MAX, (uid_t)-1, w->opts.version);
    return 0;
}

/* Keeps unwritten rows for the next opening; last: they are lost. */
static void keep_rest(struct ledger_writer *w, struct ledger_batch *rest, bool last)
{
    size_t rows = rest ? ledger_batch_rows(rest) : 0;

    if (rest && !last) {
        memset(w->rest_uuid, 0, sizeof w->rest_uuid);
        for (size_t i = 0; i < n_boards(w); i++)
            (void)snprintf(w->rest_uuid[i], sizeof w->rest_uuid[i], "%s",
                           info_of(w, i)->uuid);
        w->rest = rest;
        return;
    }
    ledger_batch_free(rest);
    if (last && w->rest) { /* the boards were not opened since */
        rows += ledger_batch_rows(w->rest);
        ledger_batch_free(take(w->rest));
    }
    w->lost += rows;
    if (rows)
        log_event(LOG_LEVEL_ERROR, LOG_EVENT_LEDGER_LOST, "rows=%zu", rows);
}

static void close_all(struct ledger_writer *w, bool last)
{
    struct ledger_queue_stats stats = {0};

    loop_timer_free(take(w->flush));
    struct ledger_batch *rest =
        ledger_queue_end(w->queue, &stats); /* may call on_state() */
    w->queue = NULL;
    w->lost += stats.lost;
    ledger_revised_add(&w->revised, &stats.revised);
    if (!rest && w->early && ledger_batch_rows(w->early) > 0)
        rest = take(w->early);
    keep_rest(w, rest, last);
    ledger_batch_free(take(w->early));
    ledger_close(take(w->ledger));
    w->boards = NULL;
}

/* Writes the counts of rule actions that have no rows of their own. */
static void count_rules(struct ledger_writer *w, bool all)
{
    struct rule_count c;
    char text[240], job[40];
    uint64_t now_ns = loop_now_ns(w->opts.loop);

    while (rule_rows_count(w->rule_rows, all, now_ns, &c)) {
        double s = s_of_ns(now_ns - c.since_ns);
        job[0] = '\0';
        if (c.job)
            (void)snprintf(job, sizeof job, " for job %" PRIu64, c.job);
        if (c.claims)
            (void)snprintf(text, sizeof text,
                           "%s: %" PRIu64 " more claims in %.0f s, without rows of "
                           "these claims and caps",
                           c.name, c.n, s);
        else
            (void)snprintf(text, sizeof text,
                           "rule %s took effect %" PRIu64
                           " more times%s in %.0f s, without rows",
                           c.name, c.n, job, s);
        ledger_writer_event(w, LEDGER_EVENT_RULE, c.board, (uid_t)-1, text);
    }
}

void ledger_writer_close(struct ledger_writer *w)
{
    count_rules(w, true);
    rule_rows_clear(w->rule_rows);
    close_all(w, false);
}

void ledger_writer_free(struct ledger_writer *w)
{
    if (!w)
        return;
    count_rules(w, true);
    close_all(w, true);
    rule_rows_free(w->rule_rows);
    charges_free(w->charges);
    revisions_free(w->revisions);
    wasters_free(w->wasters);
    free(w);
}

/* ---- rows ---- */

static struct ledger_batch *rows(struct ledger_writer *w)
{
    return w->queue ? ledger_queue_rows(w->queue) : w->early;
}

static void added(struct ledger_writer *w, int r)
{
    if (r < 0 && w->queue)
        ledger_queue_lost(w->queue);
}

/* Rows that a restart needs are written soon, several at a time. */
static void flush_soon(struct ledger_writer *w)
{
    if (!w->flush || w->flushing)
        return;
    w->flushing = true;
    loop_timer_set(w->flush, loop_now_ns(w->opts.loop) + FLUSH_MS * NS_PER_MS, 0);
}

/* Counts the waste of jobs, by user and project. */
static void count_waste(struct ledger_writer *w, const struct roster *roster,
                        const struct ledger_energy *e)
{
    const struct job_entry *job = roster && e->job ? roster_find(roster, e->job) : NULL;

    wasters_add(w->wasters, e, job,
                job && job->within ? roster_find(roster, job->within) : NULL);
}

void ledger_writer_energy(struct ledger_writer *w, const struct roster *roster,
                          const struct attribution_row *row)
{
    static const enum ledger_kind kinds[] = {[ATTRIBUTION_JOB] = LEDGER_JOB,
                                             [ATTRIBUTION_IDLE] = LEDGER_IDLE,
                                             [ATTRIBUTION_UNATTRIBUTED] =
                                                 LEDGER_UNATTRIBUTED};
    struct ledger_batch *b = rows(w);
    struct ledger_energy e = {.begin_utc_ns = row->begin_utc_ns,
                              .end_utc_ns = row->end_utc_ns,
                              .board = row->board,
                              .kind = kinds[row->kind],
                              .job = row->kind == ATTRIBUTION_JOB ? row->job : 0,
                              .phase = row->phase,
                              .cap_mw = row->cap_mw,
                              .energy_j = row->energy_j,
                              .half_j = row->half_j,
                              .simulated = w->opts.simulated,
                              .waste = row->kind == ATTRIBUTION_JOB ? row->waste
                                                                    : WASTE_WORKING};

    if (!b)
        return;
    e.method = meter_counted(row->method, row->why) ? LEDGER_COUNTED : LEDGER_SUMMED;
    if (row->lost || (row->why & (METER_WHY_GAP | METER_WHY_RESET)))
        e.method |= LEDGER_BRIDGED;
    charges_put(w->charges, row, &e);
    count_waste(w, roster, &e);
    added(w, ledger_add_energy(b, &e));
}

void ledger_writer_signal(struct ledger_writer *w, const struct signal_view *v)
{
    charges_signal(w->charges, loop_now_ns(w->opts.loop), v);
}

const struct charges *ledger_writer_charges(const struct ledger_writer *w)
{
    return w->charges;
}

void ledger_writer_values(struct ledger_writer *w, const struct signal_values *v)
{
    revisions_values(w->revisions, v);
}

/* While the file cannot be written, the rows to revise are not in it. */
static void revise(struct ledger_writer *w)
{
    struct ledger_batch *b = rows(w);
    struct ledger_revision rev;
    struct ledger_queue_stats stats = {0};

    if (w->queue)
        ledger_queue_look(w->queue, &stats);
    revisions_lost(w->revisions, w->lost + stats.lost);
    for (int i = 0; w->queue && i < QUARTERS && !stats.failing; i++) {
        if (!revisions_next(w->revisions, loop_utc_ns(w->opts.loop), &rev))
            return;
        added(w, ledger_add_revision(b, &rev));
    }
}

void ledger_writer_total(struct ledger_writer *w, const struct attribution_total *t)
{
    struct ledger_batch *b = rows(w);
    struct ledger_meter m = {.begin_utc_ns = t->begin_utc_ns,
                             .end_utc_ns = t->end_utc_ns,
                             .board = t->board,
                             .begin_j = t->begin_j,
                             .end_j = t->end_j};

    if (b)
        added(w, ledger_add_meter(b, &m));
}

/* Appends a scheduler job's request to its goal, if the goal does not include it. */
static void put_hold(const struct job_entry *job, const struct job_record *rec,
                     const char *form, char *goal, size_t size)
{
    size_t n = strlen(goal), skip = strlen(LEDGER_ASKED_GOAL);
    bool same = strncmp(rec->ask, LEDGER_ASKED_GOAL, skip) == 0 &&
                strcmp(rec->ask + skip, form) == 0;

    if (rec->search && !same &&
        strncmp(job->name, ROSTER_SLURM, strlen(ROSTER_SLURM)) == 0)
        (void)snprintf(goal + n, size - n, " " LEDGER_HOLD_GOAL "%s",
                       rec->ask[0] ? rec->ask : "-");
    else if (!rec->search && rec->ask[0])
        (void)snprintf(goal, size, "%s" LEDGER_HOLD_GOAL "%s",
                       rec->off ? LEDGER_OFF_GOAL : "", rec->ask);
    else if (!rec->search &&
             strncmp(rec->refused, JOB_UNKNOWN_GPUS, strlen(JOB_UNKNOWN_GPUS)) == 0)
        (void)snprintf(goal, size, LEDGER_HOLD_GOAL "%s", rec->refused);
}

/* The goal column of a job (docs/design/ledger.md). */
static void put_goal(const struct job_entry *job, const struct job_record *rec,
                     char *goal, size_t size)
{
    char form[GOAL_TEXT_MAX] = "";

    if (!rec->search && rec->cap.percent > 0)
        (void)snprintf(goal, size, LEDGER_CAP_GOAL "%.12g%%%s%s", rec->cap.percent,
                       rec->preset[0] ? " " : "", rec->preset);
    if (rec->search)
        (void)snprintf(goal, size, "%s%s", goal_text(&rec->goal, form),
                       rec->by_default ? LEDGER_GOAL_DEFAULT : "");
    if (job->source == JOB_REGISTERED)
        put_hold(job, rec, form, goal, size);
}

void ledger_writer_job(struct ledger_writer *w, const struct job_entry *job,
                       const struct job_record *rec, const struct searches_view *search)
{
    struct ledger_batch *b = rows(w);
    struct ledger_label label[LABELS_MAX];
    char goal[GOAL_TEXT_MAX + POLICY_PRESET_NAME + JOB_REFUSED] = "",
                                                   processes[JOB_PROCS * JOB_PROC_TEXT];

    _Static_assert(sizeof processes <= LEDGER_PROCESSES, "none is cut");
    if (!b)
        return;
    job_procs_text(job, processes, sizeof processes);
    for (size_t i = 0; i < job->n_labels && i < LABELS_MAX; i++)
        label[i] = (struct ledger_label){job->label[i].key, job->label[i].value};
    struct ledger_job row = {.id = job->id,
                             .source = names_word(NAMES_JOB_SOURCE, job->source),
                             .name = job->name,
                             .user = job->user,
                             .uid = job->uid,
                             .label = label,
                             .n_labels =
                                 job->n_labels < LABELS_MAX ? job->n_labels : LABELS_MAX,
                             .began_utc_ns = job->began_utc_ns,
                             .ended_utc_ns = job->ended_utc_ns,
                             .boards = job->boards,
                             .held = job->source == JOB_FOUND ? job->boards : job->given,
                             .processes = processes,
                             .firm = job->firm,
                             .within = job->within,
                             .pid = job->pid,
                             .pid_start = job->pid_start,
                             .cap_mw = search->cap_mw,
                             .saved_known = search->saved.known,
                             .saved = search->saved.fraction,
                             .saved_half = search->saved.half,
                             .slowdown = search->saved.slowdown,
                             .slowdown_half = search->saved.slowdown_half,
                             .saved_j = search->saved.energy_j,
                             .saved_half_j = search->saved.half_j};
    if (search->report) {
        row.looks = search->report->saved.pairs;
        row.model_known = search->report->modelled;
        row.model_saved = search->report->model_saving;
        row.model_slowdown = search->report->model_slowdown;
    }
    if (rec) {
        row.lost = rec->lost && job->ended_utc_ns;
        row.cls = rec->cls;
        row.command = rec->key;
        put_goal(job, rec, goal, sizeof goal);
        row.goal = goal;
        row.named_mw = rec->search ? 0 : rec->cap.mw;
    }
    added(w, ledger_add_job(b, &row));
    flush_soon(w);
}

void ledger_writer_search(struct ledger_writer *w, const struct ledger_search *s)
{
    struct ledger_batch *b = rows(w);

    if (b)
        added(w, ledger_add_search(b, s));
}

void ledger_writer_claim(struct ledger_writer *w, size_t board, const struct claim *c)
{
    struct ledger_batch *b = rows(w);
    char kind[24];

    if (!b || (c->source == CLAIM_OF_RULE &&
               !rule_rows_claim(w->rule_rows, c->who, board, c->kind == CLAIM_HARD, c->id,
                                loop_now_ns(w->opts.loop))))
        return;
    (void)snprintf(kind, sizeof kind, "%s%s", c->mhz ? LEDGER_CLOCK_KIND : "",
                   names_word(NAMES_CLAIM_KIND, c->kind));
    struct ledger_claim row = {.id = c->id,
                               .board = board,
                               .made_utc_ns = utc_of(w, c->made_ns),
                               .until_utc_ns = c->until_ns == CLAIM_FOREVER
                                                   ? LEDGER_FOREVER
                                                   : utc_of(w, c->until_ns),
                               .ahead_ns = ledger_writer_ahead_ns(w),
                               .uid = c->uid,
                               .job = c->job,
                               .kind = kind,
                               .source = names_word(NAMES_CLAIM_SOURCE, c->source),
                               .pid = c->pid,
                               .pid_start = c->pid_start,
                               .mw = c->mhz ? c->mhz : c->mw,
                               .overwrites = c->source == CLAIM_OF_SEARCH,
                               .who = c->who,
                               .why = c->why};

    added(w, ledger_add_claim(b, &row));
    if (!row.overwrites)
        flush_soon(w);
}

static void add_cap(struct ledger_writer *w, struct ledger_batch *b,
                    const struct caps *caps, const struct caps_what *what)
{
    struct caps_view v;

    caps_look(caps, what->board, &v);
    if (!rule_rows_cap(w->rule_rows, what->board, what->target_mw, v.verdict.claim))
        return;
    struct ledger_cap row = {.utc_ns = utc_of(w, what->at_ns),
                             .board = what->board,
                             .target_mw = what->target_mw,
                             .enforced_mw = what->enforced_mw,
                             .by = names_word(NAMES_CAP_BY, v.verdict.by),
                             .claim = v.verdict.claim};
    added(w, ledger_add_cap(b, &row));
}

void ledger_writer_caps(struct ledger_writer *w, const struct caps *caps,
                        const struct caps_what *what, bool ending)
{
    struct ledger_batch *b = rows(w);
    char text[240];

    if (!b)
        return;
    switch (what->event) {
    case CAPS_EVENT_CLAIM:
        ledger_writer_claim(w, what->board, what->claim);
        break;
    case CAPS_EVENT_WITHDRAW:
    case CAPS_EVENT_EXPIRE:
        if (!ending && /* at the end, the next run takes over the claims */
            (what->claim->source != CLAIM_OF_RULE ||
             rule_rows_claim_end(w->rule_rows, what->board, what->claim->id))) {
            struct ledger_claim_end end = {
                .id = what->claim->id,
                .board = what->board,
                .utc_ns = utc_of(w, what->at_ns),
                .how = what->event == CAPS_EVENT_EXPIRE
                           ? names_word(NAMES_CLAIM_END, CLAIM_END_EXPIRED)
                       : what->text && *what->text
                           ? what->text
                           : names_word(NAMES_CLAIM_END, CLAIM_END_WITHDRAWN)};
            added(w, ledger_add_claim_end(b, &end));
            if (what->claim->source != CLAIM_OF_SEARCH)
                flush_soon(w);
        }
        break;
    case CAPS_EVENT_CAP:
        add_cap(w, b, caps, what);
        break;
    case CAPS_EVENT_CLOCK:
        if (what->clock_mhz)
            (void)snprintf(text, sizeof text,
                           "locked to at most %" PRIu32 " MHz, claim %" PRIu64,
                           what->clock_mhz, what->claim ? what->claim->id : 0);
        else
            (void)snprintf(text, sizeof text, "the lock was removed");
        ledger_writer_event(w, LEDGER_EVENT_CLOCK, what->board, (uid_t)-1, text);
        break;
    case CAPS_EVENT_OTHER:
        (void)snprintf(text, sizeof text, "%s: %.1f W in force",
                       names_word(NAMES_CAP_CAUSE, what->cause),
                       w_of_mw(what->enforced_mw));
        ledger_writer_event(w, LEDGER_EVENT_OTHER_WRITER, what->board, (uid_t)-1, text);
        break;
    case CAPS_EVENT_FAIL:
        ledger_writer_event(w, LEDGER_EVENT_CAP_FAILED, what->board, (uid_t)-1,
                            what->text);
        break;
    case CAPS_EVENT_STATE:
        break;
    }
}

void ledger_writer_event(struct ledger_writer *w, enum ledger_word kind, size_t board,
                         uid_t uid, const char *text)
{
    struct ledger_batch *b = rows(w);
    struct ledger_event row = {.utc_ns = loop_utc_ns(w->opts.loop),
                               .kind = names_word(NAMES_LEDGER_EVENT, kind),
                               .has_board = board != SIZE_MAX,
                               .has_uid = uid != (uid_t)-1,
                               .board = board == SIZE_MAX ? 0 : board,
                               .uid = uid,
                               .text = text ? text : ""};

    if (b)
        added(w, ledger_add_event(b, &row));
}

void ledger_writer_rule(struct ledger_writer *w, const struct engine_event *event,
                        size_t board, const char *text)
{
    if (rows(w) && rule_rows_event(w->rule_rows, event->rule->name, board, event->job,
                                   event->begins, loop_now_ns(w->opts.loop)))
        ledger_writer_event(w, LEDGER_EVENT_RULE, board, (uid_t)-1, text);
}

void ledger_writer_tick(struct ledger_writer *w)
{
    count_rules(w, false);
    revise(w);
    int64_t ahead_ns = ledger_writer_ahead_ns(w);
    double by_s = (double)(ahead_ns - w->ahead_ns) * 1e-9;
    bool first = w->ahead_ns == 0;
    char text[80];

    if (!first && fabs(by_s) < CLOCK_SET_S)
        return; /* slewing accumulates until it is reported */
    w->ahead_ns = ahead_ns;
    if (first)
        return;
    (void)snprintf(text, sizeof text, "UTC was set %.0f s %s", fabs(by_s),
                   by_s > 0 ? "forward" : "back");
    log_event(LOG_LEVEL_WARNING, LOG_EVENT_CLOCK_SET, "by_s=%.0f", by_s);
    ledger_writer_event(w, LEDGER_EVENT_CLOCK_SET, SIZE_MAX, (uid_t)-1, text);
}

void ledger_writer_look(const struct ledger_writer *w, struct node_view *ret)
{
    struct ledger_queue_stats stats;

    ret->wasters = w->wasters;
    ret->ledger_lost = w->lost;
    ret->ledger_revised = w->revised;
    if (!w->queue) { /* before the start, or while boards are reopened */
        ret->ledger_up = !w->text[0];
        ret->ledger_trouble = ret->ledger_up ? LEDGER_WELL : w->trouble;
        (void)snprintf(ret->ledger, sizeof ret->ledger, "%s", w->text);
        return;
    }
    ledger_queue_look(w->queue, &stats);
    ret->ledger_rows = stats.rows;
    ret->ledger_failures = stats.failures;
    ret->ledger_waiting = stats.waiting;
    ret->ledger_lost += stats.lost;
    ledger_revised_add(&ret->ledger_revised, &stats.revised);
    ret->ledger_up = !stats.failing;
    ret->ledger_trouble = stats.trouble;
    (void)snprintf(ret->ledger, sizeof ret->ledger, "%s", stats.text);
}

int ledger_writer_report(struct ledger_writer *w, const struct ledger_query *query,
                         ledger_report_fn fn, void *user, uw_error *err)
{
    if (!w->queue)
        return fail(err, -ENOTSUP, "this node keeps no ledger");
    return ledger_queue_report(w->queue, query, fn, user, err);
}
