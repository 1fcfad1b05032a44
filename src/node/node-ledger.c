/* What the node writes into its ledger, and what it takes over from it. */
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
#include "io/proc.h"
#include "node/node-inside.h"

enum {
    STATE_MAX = 256 * 1024, /* of a search */
    FLUSH_MS = 20,
    CLOCK_SET_S = 60, /* UTC against the time that passed */
};

/* What stands for a goal where a percentage is asked for by name: "cap 85%". */
#define CAP_GOAL "cap "

int64_t node_utc(const struct node *node, uint64_t at_ns)
{
    return loop_utc_ns(node->loop) - (int64_t)(loop_now_ns(node->loop) - at_ns);
}

static int64_t utc_ahead(const struct node *node)
{
    return loop_utc_ns(node->loop) - (int64_t)loop_now_ns(node->loop);
}

/* ---- opening ---- */

static int read_boot_id(struct node *node, uw_error *err)
{
    auto_(mem_free) char *text = NULL;
    int r = file_read("/proc/sys/kernel/random/boot_id", 256, &text, NULL, err);

    if (r == 0)
        (void)snprintf(node->boot_id, sizeof node->boot_id, "%.*s",
                       (int)strcspn(text, "\n"), text);
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

void node_ledger_configure(struct node *node)
{
    const struct ledger_keep keep = keep_of(&node->config);

    if (node->queue)
        ledger_queue_keep(node->queue, &keep);
}

static int tell_boards(struct node *node, uw_error *err)
{
    struct ledger_board board[BOARDS_MAX];
    struct ledger_domain domain[LEDGER_DOMAINS];

    for (size_t i = 0; i < node->n; i++) {
        const struct gpu_info *info = node_info(node, i);
        board[i] = (struct ledger_board){info->uuid, info->name, info->pci_bus_id};
    }
    int r = ledger_boards(node->ledger, board, node->n, err);
    return r < 0 ? r
                 : ledger_domains(node->ledger, domain, node_rapl_domains(node, domain),
                                  err);
}

/* The ledger cannot be used: boards, caps and budget come first, and rows wait in memory
 * until it can.  Said once a reason, whose text the views show.
 */
static void go_without(struct node *node, int r, const char *why)
{
    node->ledger_trouble = ledger_trouble(r);
    if (strcmp(node->ledger_text, why) == 0)
        return;
    (void)snprintf(node->ledger_text, sizeof node->ledger_text, "%s", why);
    log_event(LOG_LEVEL_ERROR, "ledger-failed", "reason=%s in=memory earlier_runs=%s",
              log_quote(why).text, ledger_is_readable(node->ledger) ? "read" : "unknown");
}

/* It was open, and fails now. */
static int leave(struct node *node, int r, const uw_error *why, uw_error *err)
{
    ledger_leave(node->ledger);
    go_without(node, r, why->text);
    return tell_boards(node, err);
}

int node_ledger_open(struct node *node, uw_error *err)
{
    const struct config_ledger *c = &node->config.ledger;
    struct ledger_opts opts = {.path = c->path,
                               .simulated = node->opts.simulated,
                               .boot_id = node->boot_id,
                               .version = node->opts.version,
                               .utc_ns = loop_utc_ns(node->loop),
                               .keep = keep_of(&node->config)};
    uw_error why = {""};
    int r = 0;

    if (!c->path[0] || node->ledger)
        return 0;
    if (!node->boot_id[0] && node->opts.boot_id)
        (void)snprintf(node->boot_id, sizeof node->boot_id, "%s", node->opts.boot_id);
    else if (!node->boot_id[0])
        r = read_boot_id(node, err);
    if (r == 0)
        r = ledger_open(&opts, &node->ledger, &why);
    if (r == LEDGER_ASIDE)
        log_event(LOG_LEVEL_ERROR, "ledger-aside", "reason=%s", log_quote(why.text).text);
    if (r >= 0) {
        node->ledger_text[0] = '\0';
    } else if (why.text[0]) {
        int failed = r;
        r = ledger_open_later(&opts, failed, &node->ledger, err);
        if (r == 0)
            go_without(node, failed, why.text);
    }
    if (r < 0)
        return r;
    node->early = ledger_batch_new();
    return node->early ? 0 : fail(err, -ENOMEM, "out of memory");
}

static int64_t midnight(int64_t utc_ns)
{
    const int64_t day = 86400 * (int64_t)NS_PER_S;

    return utc_ns - utc_ns % day;
}

static int read_sums(struct node *node, size_t i, uw_error *err)
{
    struct ledger_sums all = {0}, today = {0};
    int64_t utc = loop_utc_ns(node->loop);
    int r = ledger_board_sums(node->ledger, i, 0, &all, err);

    if (r == 0)
        r = ledger_board_sums(node->ledger, i, midnight(utc), &today, err);
    if (r == 0)
        node->before[i] = (struct attribution_board){
            .energy_j = all.job_j + all.idle_j + all.unattributed_j,
            .attributed_j = all.job_j,
            .idle_j = all.idle_j,
            .unattributed_j = all.unattributed_j,
            .today_j = today.job_j + today.idle_j + today.unattributed_j};
    return r;
}

/* The place that a board of the rows that wait has now. */
static size_t place_now(const struct node *node, size_t was)
{
    if (was >= LEDGER_BOARDS)
        return was; /* processors are opened once */
    for (size_t i = 0; was < BOARDS_MAX && node->rest_uuid[was][0] && i < node->n; i++)
        if (strcmp(node_info(node, i)->uuid, node->rest_uuid[was]) == 0)
            return i;
    return SIZE_MAX;
}

/* Before anything is read: what is taken over may stand in them alone. */
static int write_rest(struct node *node, uw_error *err)
{
    size_t map[LEDGER_PLACES];
    int r = 0;

    if (!node->rest)
        return 0;
    for (size_t i = 0; i < LEDGER_PLACES; i++)
        map[i] = place_now(node, i);
    node->ledger_lost += ledger_batch_move(node->rest, map);
    if (ledger_is_open(node->ledger)) {
        r = ledger_write(node->ledger, node->rest, err);
        if (r >= 0)
            ledger_batch_clear(node->rest);
    }
    if (ledger_batch_join(node->rest, node->early) < 0)
        node->ledger_lost += ledger_batch_rows(node->early);
    ledger_batch_free(node->early);
    node->early = take(node->rest);
    return r;
}

int node_ledger_boards(struct node *node, uw_error *err)
{
    uw_error why = {""};
    int r = 0;

    memset(node->before, 0, sizeof node->before);
    if (!node->ledger)
        return 0;
    r = tell_boards(node, &why);
    if (r == 0)
        r = write_rest(node, &why);
    if (r < 0)
        r = leave(node, r, &why, err);
    if (r < 0 || !ledger_is_readable(node->ledger))
        return r;
    for (size_t i = 0; i < node->n && r == 0; i++)
        r = read_sums(node, i, &why);
    return r < 0 ? leave(node, r, &why, err) : 0;
}

/* ---- what is taken over ---- */

void node_state_path(const struct node *node, uint64_t job, char *ret, size_t size)
{
    (void)snprintf(
        ret, size, "%.*s/job-%ju.json",
        (int)(strrchr(node->config.ledger.path, '/') - node->config.ledger.path),
        node->config.ledger.path, (uintmax_t)job);
}

static void read_ask(const struct ledger_job *job, struct node_job_rec *rec)
{
    if (job->cls)
        (void)snprintf(rec->cls, sizeof rec->cls, "%s", job->cls);
    if (job->command)
        (void)snprintf(rec->same, sizeof rec->same, "%s", job->command);
    rec->search =
        job->goal && job->goal[0] && goal_parse(job->goal, &rec->goal, NULL) == 0;
    rec->cap.mw = rec->search ? 0 : job->named_mw;
    if (job->goal && strncmp(job->goal, CAP_GOAL, strlen(CAP_GOAL)) == 0)
        (void)parse_cap(job->goal + strlen(CAP_GOAL), &rec->cap, NULL);
    rec->asked = rec->search || rec->cap.mw || rec->cap.percent > 0;
}

/* A search that an earlier run had begun goes on where it was. */
static void take_over_search(struct node *node, const struct job_entry *entry,
                             struct node_job_rec *rec)
{
    auto_(mem_free) char *state = NULL;
    char path[CONFIG_PATH + 40];
    uw_error err = {""};

    if (!rec->asked)
        return;
    node_state_path(node, entry->id, path, sizeof path);
    (void)file_read(path, STATE_MAX, &state, NULL, NULL);
    if (node_search_begin(node, entry, rec, state ? state : "", &err) < 0)
        log_event(LOG_LEVEL_WARNING, "search-lost", "job=%ju reason=%s",
                  (uintmax_t)entry->id, log_quote(err.text).text);
}

static void end_lost_job(struct node *node, const struct ledger_job *job)
{
    struct ledger_job over = *job;

    over.ended_utc_ns = loop_utc_ns(node->loop);
    (void)ledger_add_job(node->early, &over);
}

static enum job_source source_of(const char *name)
{
    return (enum job_source)names_number_or(NAMES_JOB_SOURCE, name, JOB_RUN);
}

/* A job of the ledger as the roster takes it. */
struct earlier {
    struct roster_register reg;
    struct label label[LABELS_MAX];
    struct job_proc proc[JOB_PROCS];
};

static void read_earlier(const struct ledger_job *job, struct earlier *ret)
{
    struct roster_register *reg = &ret->reg;

    *reg = (struct roster_register){.source = source_of(job->source),
                                    .name = job->name,
                                    .uid = job->uid,
                                    .boards = job->held,
                                    .firm = job->firm,
                                    .proc = ret->proc,
                                    .pid = job->pid,
                                    .pid_start = job->pid_start,
                                    .label = ret->label,
                                    .id = job->id,
                                    .began_utc_ns = job->began_utc_ns};
    for (size_t i = 0; i < job->n_labels && i < LABELS_MAX; i++, reg->n_labels++) {
        struct label *l = &ret->label[i];
        (void)snprintf(l->key, sizeof l->key, "%s", job->label[i].key);
        (void)snprintf(l->value, sizeof l->value, "%s", job->label[i].value);
    }
    reg->n_procs = job_procs_parse(job->processes, ret->proc);
    if (reg->n_procs == 0 && reg->pid > 0) /* of before the ledger knew them all */
        ret->proc[reg->n_procs++] = (struct job_proc){reg->pid, reg->pid_start};
}

/* Who says that it still runs: its process, one of the processes that it was found by,
 * or, of a scheduler's without one, the scheduler; within this boot.
 */
static int go_on(struct node *node, const struct ledger_job *job, const char *boot_id,
                 uw_error *err)
{
    struct earlier e = {0};
    uint64_t id = job->id;

    if (strcmp(boot_id, node->boot_id) != 0)
        return fail(err, -ESTALE, "of another boot of this machine");
    struct node_job_rec *rec = node_job_rec_new(node, id);
    if (!rec)
        return fail(err, -ENOMEM, "out of memory");
    read_earlier(job, &e);
    read_ask(job, rec);
    rec->admin = job->firm || e.reg.source == JOB_REGISTERED;
    if (ledger_is_readable(node->ledger))
        (void)ledger_job_energy(node->ledger, id, &rec->before_j, &rec->before_half_j,
                                NULL);
    int r = roster_begin(node->roster, &e.reg, &id, err);
    if (r < 0)
        node_job_rec_drop(node, job->id);
    else
        take_over_search(node, roster_find(node->roster, id), rec);
    return r;
}

/* Its boards say nothing yet: it waits for them in the ledger, as claims there do. */
static bool waits(const struct node *node, const struct ledger_job *job,
                  const char *boot_id)
{
    return node->silent > 0 && job->held == 0 && source_of(job->source) == JOB_FOUND &&
           strcmp(boot_id, node->boot_id) == 0;
}

static int take_over_job(const struct ledger_job *job, const char *boot_id, void *user)
{
    struct node *node = user;
    uw_error err = {""};

    if (waits(node, job, boot_id) || ledger_batch_has_job(node->early, job->id))
        return 0; /* of the latter rows that wait know more */
    if (go_on(node, job, boot_id, &err) == 0) {
        log_event(LOG_LEVEL_NOTICE, "job-taken-over", "job=%ju source=%s name=%s",
                  (uintmax_t)job->id, log_quote(job->source).text,
                  log_quote(job->name).text);
        return 0;
    }
    end_lost_job(node, job);
    log_event(LOG_LEVEL_NOTICE, "job-over", "job=%ju source=%s name=%s reason=%s",
              (uintmax_t)job->id, log_quote(job->source).text, log_quote(job->name).text,
              log_quote(err.text).text);
    return 0;
}

/* Boards are opened anew, and rows that wait tell of jobs. */
static void take_over_waiting(const struct ledger_job *job, void *user)
{
    struct node *node = user;
    struct ledger_job row = *job;
    uw_error err = {""};

    if (row.ended_utc_ns || roster_find(node->roster, row.id) ||
        go_on(node, &row, node->boot_id, &err) == 0)
        return;
    end_lost_job(node, &row);
    log_event(LOG_LEVEL_NOTICE, "job-over", "job=%ju reason=%s", (uintmax_t)row.id,
              log_quote(err.text).text);
}

/* A claim on the clock stands in the ledger with its kind after this word and its MHz in
 * the place of the milliwatts (docs/ledger.md): an older daemon refuses it as out of
 * range.
 */
#define CLOCK_KIND "clock "

static bool is_clock_kind(const char *kind)
{
    return strncmp(kind, CLOCK_KIND, strlen(CLOCK_KIND)) == 0;
}

static enum claim_kind kind_of(const char *name)
{
    name += is_clock_kind(name) ? strlen(CLOCK_KIND) : 0;
    return (enum claim_kind)names_number_or(NAMES_CLAIM_KIND, name, CLAIM_NAMED);
}

/* A job's cap by name, which its tuning has stated anew already. */
static bool is_stated(const struct node *node, size_t board, uint64_t job,
                      enum claim_source source)
{
    struct caps_view v;

    if (!job || source != CLAIM_OF_JOB_CAP)
        return false;
    caps_look(node->caps, board, &v);
    for (size_t i = 0; i < v.claims->n; i++)
        if (v.claims->claim[i].job == job && v.claims->claim[i].source == source)
            return true;
    return false;
}

/* Its claims are in view while boards are opened anew: the ledger may not know of what
 * has been done to them.
 */
static bool is_in_view(const struct node *node, size_t board)
{
    for (size_t k = 0; k < node->n_kept; k++)
        if (strcmp(node_info(node, board)->uuid, node->kept[k].info.uuid) == 0)
            return true;
    return false;
}

/* What was promised to somebody ends here: never without a word. */
static void lose_claim(struct node *node, const struct ledger_claim *c,
                       enum claim_end how, const char *why)
{
    struct ledger_claim_end end = {.id = c->id,
                                   .board = c->board,
                                   .utc_ns = loop_utc_ns(node->loop),
                                   .how = names_word(NAMES_CLAIM_END, how)};
    char text[240];

    (void)snprintf(text, sizeof text, "claim %ju of %.60s: %s", (uintmax_t)c->id, c->who,
                   why);
    log_event(LOG_LEVEL_WARNING, "claim-lost", "claim=%ju gpu=%u who=%s reason=%s",
              (uintmax_t)c->id, node_info(node, c->board)->index, log_quote(c->who).text,
              log_quote(why).text);
    (void)ledger_add_claim_end(node->early, &end);
    node_ledger_event(node, "claim-lost", c->board, c->uid, text);
}

/* Why it cannot be taken over (*ret_how: in a word); NULL: it may. */
static const char *is_over(struct node *node, const struct ledger_claim *c,
                           const char *boot_id, enum claim_end *ret_how)
{
    *ret_how = CLAIM_END_RESTART;
    if (strcmp(boot_id, node->boot_id) != 0)
        return "it was of another boot of this machine";
    *ret_how = CLAIM_END_JOB;
    if (c->job && !node_job_rec(node, c->job))
        return "its job ended while no daemon was there";
    return NULL;
}

static int take_over_claim(const struct ledger_claim *c, const char *boot_id, void *user)
{
    struct node *node = user;
    enum claim_end how = CLAIM_END_RESTART;
    enum claim_source source = (enum claim_source)names_number_or(
        NAMES_CLAIM_SOURCE, c->source, CLAIM_OF_PERSON);
    uint64_t now = loop_now_ns(node->loop);
    int64_t utc = loop_utc_ns(node->loop);
    struct claim claim = {.id = c->id,
                          .kind = kind_of(c->kind),
                          .source = source,
                          .pid = c->pid,
                          .pid_start = c->pid_start,
                          .mw = is_clock_kind(c->kind) ? 0 : c->mw,
                          .mhz = is_clock_kind(c->kind) ? c->mw : 0,
                          .made_ns = now,
                          .until_ns = CLAIM_FOREVER,
                          .uid = c->uid,
                          .job = c->job,
                          .admin = c->job == 0}; /* users' always have one */
    uw_error err = {""};

    /* The search and the budget state theirs anew. */
    if (c->walked || source == CLAIM_OF_BUDGET || c->board >= node->n ||
        is_in_view(node, c->board) || is_stated(node, c->board, c->job, claim.source))
        return 0;
    const char *why = is_over(node, c, boot_id, &how);
    if (why) {
        lose_claim(node, c, how, why);
        return 0;
    }
    if (c->made_utc_ns < utc && (uint64_t)(utc - c->made_utc_ns) < now)
        claim.made_ns = now - (uint64_t)(utc - c->made_utc_ns);
    if (c->until_utc_ns != LEDGER_FOREVER)
        claim.until_ns = now + (uint64_t)(c->until_utc_ns - utc);
    (void)snprintf(claim.who, sizeof claim.who, "%s", c->who);
    (void)snprintf(claim.why, sizeof claim.why, "%s", c->why);
    if (!node_watch_again(node, &claim))
        lose_claim(node, c, CLAIM_END_PROCESS,
                   "its process ended while no daemon was there");
    else if (caps_claim(node->caps, c->board, &claim, NULL, &err) < 0)
        lose_claim(node, c, CLAIM_END_REFUSED, err.text);
    return 0;
}

static bool is_there(const struct node *node, size_t board, uint64_t claim)
{
    struct caps_view v;

    caps_look(node->caps, board, &v);
    for (size_t i = 0; i < v.claims->n; i++)
        if (v.claims->claim[i].id == claim)
            return true;
    return false;
}

static void take_over_kept(struct node *node, size_t board, const struct claim *kept)
{
    const struct ledger_claim lost = {
        .id = kept->id, .board = board, .uid = kept->uid, .who = kept->who};
    struct claim claim = *kept;
    uw_error err = {""};

    if (claim.walked || claim.source == CLAIM_OF_BUDGET ||
        is_there(node, board, claim.id) ||
        is_stated(node, board, claim.job, claim.source))
        return;
    if (claim.job && !node_job_rec(node, claim.job))
        lose_claim(node, &lost, CLAIM_END_JOB, "its job ended while boards were away");
    else if (!node_watch_again(node, &claim))
        lose_claim(node, &lost, CLAIM_END_PROCESS,
                   "its process ended while boards were away");
    else if (caps_claim(node->caps, board, &claim, NULL, &err) < 0)
        lose_claim(node, &lost, CLAIM_END_REFUSED, err.text);
}

/* Boards are opened anew: of claims what is in view counts. */
static void take_over_view(struct node *node)
{
    for (size_t k = 0; k < node->n_kept; k++)
        for (size_t i = 0; i < node->n; i++) {
            const struct claims *claims = &node->kept[k].claims;
            if (strcmp(node_info(node, i)->uuid, node->kept[k].info.uuid) != 0)
                continue;
            for (size_t c = 0; c < claims->n; c++)
                take_over_kept(node, i, &claims->claim[c]);
        }
}

static int take_over(struct node *node, uw_error *err)
{
    bool reads = ledger_is_readable(node->ledger);
    int r = node_history_start(node, err);

    if (r >= 0 && reads)
        r = ledger_open_jobs(node->ledger, take_over_job, node, err);
    if (r >= 0)
        ledger_batch_jobs(node->early, take_over_waiting, node);
    if (r >= 0 && reads)
        r = ledger_open_claims(node->ledger, loop_utc_ns(node->loop), utc_ahead(node),
                               take_over_claim, node, err);
    if (r >= 0)
        take_over_view(node);
    if (r < 0 || !ledger_is_open(node->ledger))
        return r;
    r = ledger_write(node->ledger, node->early, err);
    if (r < 0)
        return r;
    ledger_batch_clear(node->early);
    /* Claims on a board that says nothing wait for it in the ledger. */
    return node->silent == 0
               ? ledger_claims_settle(node->ledger, loop_utc_ns(node->loop), err)
               : 0;
}

int node_ledger_take_over(struct node *node, uw_error *err)
{
    uw_error why = {""};

    if (!node->ledger)
        return node_history_start(node, err);
    int r = take_over(node, &why);
    if (r >= 0)
        return 0;
    take_over_view(node);
    return leave(node, r, &why, err);
}

/* ---- from now on ---- */

static void add_claim(struct node *node, struct ledger_batch *b,
                      const struct caps_what *what);

static void restate_jobs(struct node *node)
{
    for (size_t i = 0; i < roster_count(node->roster); i++)
        node_ledger_job(node, roster_at(node->roster, i));
}

static void restate_claims(struct node *node)
{
    for (size_t i = 0; i < node->n; i++) {
        struct caps_view v;
        caps_look(node->caps, i, &v);
        for (size_t k = 0; k < v.claims->n; k++)
            add_claim(node, ledger_queue_rows(node->queue),
                      &(struct caps_what){.event = CAPS_EVENT_CLAIM,
                                          .board = i,
                                          .claim = &v.claims->claim[k]});
    }
}

/* Boards are about to be opened anew: rows that wait tell of all jobs. */
void node_ledger_keep(struct node *node)
{
    struct ledger_queue_stats stats;

    if (!node->queue)
        return;
    ledger_queue_look(node->queue, &stats);
    if (stats.failing)
        restate_jobs(node);
}

/* A new file knows nothing of the jobs that run, nor of the claims that are in force: a
 * restart would end the ones and forget the others.
 */
static void restate(struct node *node)
{
    for (size_t i = 0; i < history_count(node->history); i++)
        node_ledger_search(node, history_at(node->history, i));
    restate_jobs(node);
    restate_claims(node);
}

/* The file may be another by the time of the last rows: they tell of all that stands. */
void node_ledger_end(struct node *node)
{
    node_ledger_event(node, "stop", SIZE_MAX, (uid_t)-1, node->opts.version);
    if (!node->queue)
        return;
    restate_jobs(node);
    restate_claims(node);
}

static void on_state(int r, const char *text, void *user)
{
    struct node *node = user;

    if (r > 0) {
        log_event(LOG_LEVEL_ERROR, r == LEDGER_ASIDE ? "ledger-aside" : "ledger-anew",
                  "reason=%s", log_quote(text).text);
        restate(node);
    } else if (r < 0) {
        log_event(LOG_LEVEL_ERROR, "ledger-failed", "reason=%s in=memory",
                  log_quote(text).text);
    } else {
        struct ledger_queue_stats stats;
        ledger_queue_look(node->queue, &stats);
        node->ledger_text[0] = '\0';
        log_event(LOG_LEVEL_NOTICE, "ledger", "state=written rows=%zu lost=%ju",
                  stats.kept, (uintmax_t)stats.lost);
    }
}

static int on_flush(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct node *node = user;
    (void)timer;
    (void)now_ns;

    node->flushing = false;
    if (node->queue)
        ledger_queue_flush(node->queue);
    return 0;
}

int node_ledger_start(struct node *node, uw_error *err)
{
    struct ledger_queue_opts opts = {.loop = node->loop,
                                     .ledger = node->ledger,
                                     .why = node->ledger_text,
                                     .trouble = node->ledger_trouble,
                                     .flush_ns = node->config.node.interval_ns,
                                     .on_state = on_state,
                                     .user = node};

    if (!node->ledger)
        return 0;
    int r = ledger_queue_new(&opts, &node->queue, err);
    if (r < 0)
        return r;
    node->ledger = NULL;
    node->flushing = false;
    r = loop_timer_new(node->loop, UINT64_MAX, 0, on_flush, node, &node->flush, err);
    if (r < 0)
        return r;
    if (ledger_batch_join(ledger_queue_rows(node->queue), node->early) < 0)
        ledger_queue_lost(node->queue);
    ledger_batch_free(take(node->early));
    node_ledger_event(node, "start", SIZE_MAX, (uid_t)-1, node->opts.version);
    return 0;
}

/* Rows that could not be written: they wait on, unless the daemon ends. */
static void keep_rest(struct node *node, struct ledger_batch *rest)
{
    size_t rows = rest ? ledger_batch_rows(rest) : 0;

    if (rest && !node->ending) {
        memset(node->rest_uuid, 0, sizeof node->rest_uuid);
        for (size_t i = 0; node->boards && i < boards_count(node->boards); i++)
            (void)snprintf(node->rest_uuid[i], sizeof node->rest_uuid[i], "%s",
                           node_info(node, i)->uuid);
        node->rest = rest;
        return;
    }
    ledger_batch_free(rest);
    if (node->ending && node->rest) { /* no boards since then */
        rows += ledger_batch_rows(node->rest);
        ledger_batch_free(take(node->rest));
    }
    node->ledger_lost += rows;
    if (rows)
        log_event(LOG_LEVEL_ERROR, "ledger-lost", "rows=%zu", rows);
}

void node_ledger_stop(struct node *node)
{
    struct ledger_queue_stats stats = {0};

    loop_timer_free(take(node->flush));
    if (node->queue)
        ledger_queue_look(node->queue, &stats);
    node->ledger_lost += stats.lost;
    struct ledger_batch *rest = ledger_queue_end(node->queue); /* may call on_state() */
    node->queue = NULL;
    if (!rest && node->early && ledger_batch_rows(node->early) > 0)
        rest = take(node->early);
    keep_rest(node, rest);
    ledger_batch_free(take(node->early));
    ledger_close(take(node->ledger));
}

/* ---- rows ---- */

static struct ledger_batch *rows(struct node *node)
{
    return node->queue ? ledger_queue_rows(node->queue) : node->early;
}

static void added(struct node *node, int r)
{
    if (r < 0 && node->queue)
        ledger_queue_lost(node->queue);
}

/* What a restart takes over is written at once, several rows together. */
static void flush_soon(struct node *node)
{
    if (!node->flush || node->flushing)
        return;
    node->flushing = true;
    loop_timer_set(node->flush, loop_now_ns(node->loop) + FLUSH_MS * NS_PER_MS, 0);
}

void node_ledger_energy(struct node *node, const struct attribution_row *row)
{
    static const enum ledger_kind kinds[] = {[ATTRIBUTION_JOB] = LEDGER_JOB,
                                             [ATTRIBUTION_IDLE] = LEDGER_IDLE,
                                             [ATTRIBUTION_UNATTRIBUTED] =
                                                 LEDGER_UNATTRIBUTED};
    struct ledger_batch *b = rows(node);
    struct ledger_energy e = {.begin_utc_ns = row->begin_utc_ns,
                              .end_utc_ns = row->end_utc_ns,
                              .board = row->board,
                              .kind = kinds[row->kind],
                              .job = row->kind == ATTRIBUTION_JOB ? row->job : 0,
                              .phase = row->phase,
                              .cap_mw = row->cap_mw,
                              .energy_j = row->energy_j,
                              .half_j = row->half_j,
                              .simulated = node->opts.simulated};

    if (!b)
        return;
    e.method = row->method == METER_COUNTER ? LEDGER_COUNTED : LEDGER_SUMMED;
    if (row->lost || (row->why & (METER_WHY_GAP | METER_WHY_RESET)))
        e.method |= LEDGER_BRIDGED;
    added(node, ledger_add_energy(b, &e));
}

void node_ledger_total(struct node *node, const struct attribution_total *t)
{
    struct ledger_batch *b = rows(node);
    struct ledger_meter m = {.begin_utc_ns = t->begin_utc_ns,
                             .end_utc_ns = t->end_utc_ns,
                             .board = t->board,
                             .begin_j = t->begin_j,
                             .end_j = t->end_j};

    if (b)
        added(node, ledger_add_meter(b, &m));
}

void node_ledger_job(struct node *node, const struct job_entry *job)
{
    struct ledger_batch *b = rows(node);
    const struct node_job_rec *rec = node_job_rec(node, job->id);
    struct ledger_label label[LABELS_MAX];
    struct searches_view search = {0};
    char goal[GOAL_TEXT_MAX] = "", processes[JOB_PROCS * JOB_PROC_TEXT];

    if (!b)
        return;
    job_procs_text(job, processes, sizeof processes);
    for (size_t i = 0; i < job->n_labels && i < LABELS_MAX; i++)
        label[i] = (struct ledger_label){job->label[i].key, job->label[i].value};
    if (node->tunings)
        (void)searches_look(node->tunings, job->id, &search);
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
                             .pid = job->pid,
                             .pid_start = job->pid_start,
                             .cap_mw = search.cap_mw,
                             .saved_known = search.saved_known,
                             .saved = search.saved,
                             .saved_half = search.saved_half,
                             .slowdown = search.slowdown,
                             .slowdown_half = search.slowdown_half,
                             .saved_j = search.saved_j,
                             .saved_half_j = search.saved_half_j};
    if (search.report) {
        row.looks = search.report->saved.pairs;
        row.model_known = search.report->modelled;
        row.model_saved = search.report->model_saving;
        row.model_slowdown = search.report->model_slowdown;
    }
    if (rec) {
        row.cls = rec->cls;
        row.command = rec->same;
        if (!rec->search && rec->cap.percent > 0)
            (void)snprintf(goal, sizeof goal, CAP_GOAL "%.12g%%", rec->cap.percent);
        row.goal = rec->search ? goal_text(&rec->goal, goal) : goal;
        row.named_mw = rec->search ? 0 : rec->cap.mw;
    }
    added(node, ledger_add_job(b, &row));
    flush_soon(node);
}

void node_ledger_search(struct node *node, const struct ledger_search *s)
{
    struct ledger_batch *b = rows(node);

    if (b)
        added(node, ledger_add_search(b, s));
}

static void add_claim(struct node *node, struct ledger_batch *b,
                      const struct caps_what *what)
{
    const struct claim *c = what->claim;
    char kind[24];
    (void)snprintf(kind, sizeof kind, "%s%s", c->mhz ? CLOCK_KIND : "",
                   names_word(NAMES_CLAIM_KIND, c->kind));
    struct ledger_claim row = {.id = c->id,
                               .board = what->board,
                               .made_utc_ns = node_utc(node, c->made_ns),
                               .until_utc_ns = c->until_ns == CLAIM_FOREVER
                                                   ? LEDGER_FOREVER
                                                   : node_utc(node, c->until_ns),
                               .ahead_ns = utc_ahead(node),
                               .uid = c->uid,
                               .job = c->job,
                               .kind = kind,
                               .source = names_word(NAMES_CLAIM_SOURCE, c->source),
                               .pid = c->pid,
                               .pid_start = c->pid_start,
                               .mw = c->mhz ? c->mhz : c->mw,
                               .walked = c->walked,
                               .who = c->who,
                               .why = c->why};

    added(node, ledger_add_claim(b, &row));
    if (!c->walked)
        flush_soon(node);
}

static void add_cap(struct node *node, struct ledger_batch *b,
                    const struct caps_what *what)
{
    struct caps_view v;

    caps_look(node->caps, what->board, &v);
    struct ledger_cap row = {.utc_ns = node_utc(node, what->at_ns),
                             .board = what->board,
                             .target_mw = what->target_mw,
                             .enforced_mw = what->enforced_mw,
                             .by = names_word(NAMES_CAP_BY, v.verdict.by),
                             .claim = v.verdict.claim};
    added(node, ledger_add_cap(b, &row));
}

void node_ledger_caps(struct node *node, const struct caps_what *what)
{
    struct ledger_batch *b = rows(node);
    char text[240];

    if (!b)
        return;
    switch (what->event) {
    case CAPS_EVENT_CLAIM:
        add_claim(node, b, what);
        break;
    case CAPS_EVENT_WITHDRAW:
    case CAPS_EVENT_EXPIRE:
        if (!node->ending) { /* else the next run takes them over */
            struct ledger_claim_end end = {
                .id = what->claim->id,
                .board = what->board,
                .utc_ns = node_utc(node, what->at_ns),
                .how = what->event == CAPS_EVENT_EXPIRE
                           ? names_word(NAMES_CLAIM_END, CLAIM_END_EXPIRED)
                       : what->text && *what->text
                           ? what->text
                           : names_word(NAMES_CLAIM_END, CLAIM_END_WITHDRAWN)};
            added(node, ledger_add_claim_end(b, &end));
            if (!what->claim->walked)
                flush_soon(node);
        }
        break;
    case CAPS_EVENT_CAP:
        add_cap(node, b, what);
        break;
    case CAPS_EVENT_CLOCK:
        if (what->clock_mhz)
            (void)snprintf(text, sizeof text,
                           "locked to at most %" PRIu32 " MHz, claim %" PRIu64,
                           what->clock_mhz, what->claim ? what->claim->id : 0);
        else
            (void)snprintf(text, sizeof text, "no longer locked by us");
        node_ledger_event(node, "clock", what->board, (uid_t)-1, text);
        break;
    case CAPS_EVENT_OTHER:
        (void)snprintf(text, sizeof text, "%s: %.1f W in force",
                       names_word(NAMES_CAP_CAUSE, what->cause),
                       w_of_mw(what->enforced_mw));
        node_ledger_event(node, "other-writer", what->board, (uid_t)-1, text);
        break;
    case CAPS_EVENT_FAIL:
        node_ledger_event(node, "cap-failed", what->board, (uid_t)-1, what->text);
        break;
    case CAPS_EVENT_STATE:
        break;
    }
}

void node_ledger_event(struct node *node, const char *kind, size_t board, uid_t uid,
                       const char *text)
{
    struct ledger_batch *b = rows(node);
    struct ledger_event row = {.utc_ns = loop_utc_ns(node->loop),
                               .kind = kind,
                               .has_board = board != SIZE_MAX,
                               .has_uid = uid != (uid_t)-1,
                               .board = board == SIZE_MAX ? 0 : board,
                               .uid = uid,
                               .text = text ? text : ""};

    if (b)
        added(node, ledger_add_event(b, &row));
}

void node_ledger_tick(struct node *node)
{
    int64_t ahead_ns = utc_ahead(node);
    double by_s = (double)(ahead_ns - node->utc_ahead_ns) * 1e-9;
    bool first = node->utc_ahead_ns == 0;
    char text[80];

    if (!first && fabs(by_s) < CLOCK_SET_S)
        return; /* slewed: that adds up until it is said */
    node->utc_ahead_ns = ahead_ns;
    if (first)
        return;
    (void)snprintf(text, sizeof text, "UTC was set %.0f s %s", fabs(by_s),
                   by_s > 0 ? "forward" : "back");
    log_event(LOG_LEVEL_WARNING, "clock-set", "by_s=%.0f", by_s);
    node_ledger_event(node, "clock-set", SIZE_MAX, (uid_t)-1, text);
}

int node_report(struct node *node, const struct ledger_query *query, ledger_report_fn fn,
                void *user, uw_error *err)
{
    if (!node->queue)
        return fail(err, -ENOTSUP, "this node keeps no ledger");
    return ledger_queue_report(node->queue, query, fn, user, err);
}
