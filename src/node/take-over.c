#include "node/take-over.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/log.h"
#include "base/names.h"
#include "base/units.h"
#include "caps/claim-sources.h"
#include "io/file.h"

enum {
    STATE_MAX = 256 * 1024, /* bytes of a search's state */
    STATE_PATH = CONFIG_PATH + 40,
};

static const struct gpu_info *info_of(const struct take_over *t, size_t board)
{
    return board_view(boards_at(t->boards, board))->info;
}

/* ---- jobs ---- */

static enum job_source source_of(const char *name)
{
    return (enum job_source)names_number_or(NAMES_JOB_SOURCE, name, JOB_RUN);
}

/* "85%", or with the name of its preset: "85% balanced". */
static void read_cap(const char *text, struct job_record *rec)
{
    char share[32];
    size_t n = strcspn(text, " ");

    if (n >= sizeof share)
        return;
    memcpy(share, text, n);
    share[n] = '\0';
    if (parse_cap(share, &rec->cap, NULL) == 0 && text[n])
        (void)snprintf(rec->preset, sizeof rec->preset, "%s", text + n + 1);
}

/* "edp", or "slowdown:1.05 by default". */
static bool read_goal(const char *text, struct job_record *rec)
{
    char goal[GOAL_TEXT_MAX];
    size_t n = strlen(text), end = strlen(LEDGER_GOAL_DEFAULT);

    rec->by_default = n > end && strcmp(text + n - end, LEDGER_GOAL_DEFAULT) == 0;
    n -= rec->by_default ? end : 0;
    if (n >= sizeof goal)
        return false;
    memcpy(goal, text, n);
    goal[n] = '\0';
    return goal_parse(goal, &rec->goal, NULL) == 0;
}

/* Reads a scheduler's request at the end of "edp hold goal slowdown:1.05", "off hold
 * goal edp" or "hold cap 300 W"; returns the length of the text before it.  A cap by
 * name has none.
 */
static size_t read_hold(const char *text, struct job_record *rec)
{
    bool by_name = strncmp(text, LEDGER_CAP_GOAL, strlen(LEDGER_CAP_GOAL)) == 0;
    const char *hold = by_name ? NULL : strstr(text, LEDGER_HOLD_GOAL);

    if (!hold)
        return strlen(text);
    const char *ask = hold + strlen(LEDGER_HOLD_GOAL);
    if (strncmp(ask, JOB_UNKNOWN_GPUS, strlen(JOB_UNKNOWN_GPUS)) == 0)
        (void)snprintf(rec->refused, sizeof rec->refused, "%s", ask);
    else if (strcmp(ask, "-") != 0)
        (void)snprintf(rec->ask, sizeof rec->ask, "%s", ask);
    rec->off = strncmp(text, LEDGER_OFF_GOAL, strlen(LEDGER_OFF_GOAL)) == 0;
    return hold > text ? (size_t)(hold - text) - 1 : 0;
}

static void read_ask(const struct ledger_job *job, struct job_record *rec)
{
    const char *text = job->goal ? job->goal : "";
    size_t n = read_hold(text, rec), cap = strlen(LEDGER_CAP_GOAL);
    char goal[GOAL_TEXT_MAX + sizeof LEDGER_GOAL_DEFAULT];

    if (job->cls)
        (void)snprintf(rec->cls, sizeof rec->cls, "%s", job->cls);
    if (job->command)
        (void)snprintf(rec->key, sizeof rec->key, "%s", job->command);
    (void)snprintf(goal, sizeof goal, "%.*s", (int)n, text);
    rec->search = n < sizeof goal && read_goal(goal, rec);
    rec->cap.mw = rec->search ? 0 : job->named_mw;
    if (strncmp(text, LEDGER_CAP_GOAL, cap) == 0)
        read_cap(text + cap, rec);
    if (rec->search && !text[n] && source_of(job->source) == JOB_REGISTERED &&
        strncmp(job->name, ROSTER_SLURM, strlen(ROSTER_SLURM)) == 0)
        (void)snprintf(rec->ask, sizeof rec->ask, LEDGER_ASKED_GOAL "%s", goal);
    rec->asked = rec->search || rec->cap.mw || rec->cap.percent > 0;
}

/* Continues a search of an earlier run from its saved state. */
static void take_over_search(const struct take_over *t, const struct job_entry *entry,
                             struct job_record *rec)
{
    auto_(mem_free) char *state = NULL;
    char path[STATE_PATH];
    uw_error err = {""};

    if (!rec->asked && entry->source != JOB_RUN) /* it may have another job's goal */
        return;
    ledger_writer_state_path(t->writer, entry->id, path, sizeof path);
    (void)file_read(path, STATE_MAX, &state, NULL, NULL);
    if (t->begin_search(entry, rec, state ? state : "", t->user, &err) < 0)
        log_event(LOG_LEVEL_WARNING, LOG_EVENT_SEARCH_LOST, "job=%ju reason=%s",
                  (uintmax_t)entry->id, log_quote(err.text).text);
}

static void end_lost_job(const struct take_over *t, const struct ledger_job *job)
{
    struct ledger_job over = *job;

    over.ended_utc_ns = loop_utc_ns(t->loop);
    (void)ledger_add_job(ledger_writer_early(t->writer), &over);
}

/* A job of the ledger in the form of the roster. */
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
    if (reg->n_procs == 0 && reg->pid > 0) /* written by an older daemon */
        ret->proc[reg->n_procs++] = (struct job_proc){reg->pid, reg->pid_start};
}

/* Reads the energy booked to the job, which continues; if it cannot be read, begins with
 * 0.
 */
static void read_energy(const struct take_over *t, uint64_t job)
{
    struct ledger_booked booked[LEDGER_BOARDS + 1];
    struct attribution_part part[LEDGER_BOARDS + 1];
    double time_s = 0;
    size_t n = 0;

    if (ledger_is_readable(ledger_writer_ledger(t->writer)))
        (void)ledger_job_energy(ledger_writer_ledger(t->writer), job, booked, &n, NULL);
    for (size_t i = 0; i < n; i++) {
        const struct ledger_booked *b = &booked[i];
        part[i] = (struct attribution_part){
            .board = b->board,
            .energy_j = b->energy_j,
            .half = {b->half_fixed_j, b->half_noise2_j2},
            .time_s = b->time_s,
            .method = b->method & LEDGER_SUMMED ? METER_INTEGRATED : METER_COUNTER,
            .why = b->method & LEDGER_BRIDGED ? METER_WHY_GAP : 0};
        time_s = fmax(time_s, b->time_s);
    }
    (void)attribution_resume(t->attribution, job, time_s, part, n);
}

static void read_record(const struct take_over *t, const struct ledger_job *job,
                        struct job_record *rec)
{
    bool registered = source_of(job->source) == JOB_REGISTERED;

    read_ask(job, rec);
    rec->admin = job->firm || registered;
    read_energy(t, job->id);
}

static uint64_t ns_at(const struct take_over *t, int64_t utc_ns)
{
    uint64_t now_ns = loop_now_ns(t->loop);
    int64_t ago_ns = loop_utc_ns(t->loop) - utc_ns;

    return ago_ns < 0                  ? now_ns
           : (uint64_t)ago_ns < now_ns ? now_ns - (uint64_t)ago_ns
                                       : 1;
}

/* A job that was taken to be over may come back after a restart, too. */
static void keep_lost(const struct take_over *t, const struct ledger_job *job)
{
    struct job_record *rec = job_records_add(t->records, job->id);
    struct earlier e = {0};

    if (!rec)
        return;
    read_record(t, job, rec);
    read_earlier(job, &e);
    struct job_entry *last = &rec->last;
    *last = (struct job_entry){.id = job->id,
                               .source = e.reg.source,
                               .uid = job->uid,
                               .boards = job->boards,
                               .so_far = job->boards,
                               .given = job->held,
                               .firm = job->firm,
                               .n_labels = e.reg.n_labels,
                               .pid = job->pid,
                               .pid_start = job->pid_start,
                               .n_procs = e.reg.n_procs,
                               .began_ns = ns_at(t, job->began_utc_ns),
                               .ended_ns = ns_at(t, job->ended_utc_ns),
                               .began_utc_ns = job->began_utc_ns,
                               .ended_utc_ns = job->ended_utc_ns};
    (void)snprintf(last->name, sizeof last->name, "%s", job->name);
    (void)snprintf(last->user, sizeof last->user, "%s", job->user);
    memcpy(last->label, e.label, sizeof last->label);
    memcpy(last->proc, e.proc, sizeof last->proc);
    rec->ended_ns = last->ended_ns;
    rec->lost = true;
    job_records_trim(t->records);
}

/* Takes over a job of this boot if the roster confirms it: by its process, by one of the
 * processes by which it was found, or, for a scheduler's job without one, at once.
 */
static int go_on(const struct take_over *t, const struct ledger_job *job,
                 const char *boot_id, uw_error *err)
{
    struct earlier e = {0};
    uint64_t id = job->id;

    if (strcmp(boot_id, ledger_writer_boot_id(t->writer)) != 0)
        return fail(err, -ESTALE, "from an earlier boot of this machine");
    struct job_record *rec = job_records_add(t->records, id);
    if (!rec)
        return fail(err, -ENOMEM, "out of memory");
    read_earlier(job, &e);
    read_record(t, job, rec);
    int r = roster_begin(t->roster, &e.reg, &id, err);
    if (r < 0)
        job_records_drop(t->records, job->id);
    else
        take_over_search(t, roster_find(t->roster, id), rec);
    return r;
}

/* A found job of a silent board stays in the ledger until the board answers. */
static bool waits(const struct take_over *t, const struct ledger_job *job,
                  const char *boot_id)
{
    return t->silent && job->held == 0 && source_of(job->source) == JOB_FOUND &&
           strcmp(boot_id, ledger_writer_boot_id(t->writer)) == 0;
}

static int take_over_job(const struct ledger_job *job, const char *boot_id, void *user)
{
    const struct take_over *t = user;
    uw_error err = {""};

    if (waits(t, job, boot_id) ||
        ledger_batch_has_job(ledger_writer_early(t->writer), job->id))
        return 0; /* the rows in memory are newer */
    if (job->lost) {
        keep_lost(t, job);
        return 0;
    }
    if (go_on(t, job, boot_id, &err) == 0) {
        log_event(LOG_LEVEL_NOTICE, LOG_EVENT_JOB_TAKEN_OVER, "job=%ju source=%s name=%s",
                  (uintmax_t)job->id, log_quote(job->source).text,
                  log_quote(job->name).text);
        return 0;
    }
    end_lost_job(t, job);
    log_event(LOG_LEVEL_NOTICE, LOG_EVENT_JOB_OVER, "job=%ju source=%s name=%s reason=%s",
              (uintmax_t)job->id, log_quote(job->source).text, log_quote(job->name).text,
              log_quote(err.text).text);
    return 0;
}

/* Takes over a job of the rows in memory, after boards were reopened. */
static void take_over_waiting(const struct ledger_job *job, void *user)
{
    const struct take_over *t = user;
    struct ledger_job row = *job;
    uw_error err = {""};

    if (row.lost)
        keep_lost(t, &row);
    if (row.ended_utc_ns || roster_find(t->roster, row.id) ||
        go_on(t, &row, ledger_writer_boot_id(t->writer), &err) == 0)
        return;
    end_lost_job(t, &row);
    log_event(LOG_LEVEL_NOTICE, LOG_EVENT_JOB_OVER, "job=%ju reason=%s",
              (uintmax_t)row.id, log_quote(err.text).text);
}

/* ---- claims ---- */

/* Watches a claim's process again; false: the process has ended. */
static bool watch_again(const struct take_over *t, const struct claim *claim)
{
    if (!claim->pid ||
        claim_watches_has(t->watches, claim->id)) /* watched for another board */
        return true;
    int r = claim_watches_begin(t->watches, claim->pid, claim->pid_start, (uid_t)-1, NULL,
                                NULL);
    if (r == 0)
        claim_watches_assign(t->watches, claim->id);
    return r == 0;
}

static bool is_clock_kind(const char *kind)
{
    return strncmp(kind, LEDGER_CLOCK_KIND, strlen(LEDGER_CLOCK_KIND)) == 0;
}

static enum claim_kind kind_of(const char *name)
{
    name += is_clock_kind(name) ? strlen(LEDGER_CLOCK_KIND) : 0;
    return (enum claim_kind)names_number_or(NAMES_CLAIM_KIND, name, CLAIM_NAMED);
}

/* Whether a job's cap by name has already been claimed again by its tuner. */
static bool is_stated(const struct take_over *t, size_t board, uint64_t job,
                      enum claim_source source)
{
    struct caps_view v;

    if (!job || source != CLAIM_OF_JOB_CAP)
        return false;
    caps_look(t->caps, board, &v);
    for (size_t i = 0; i < v.claims->n; i++)
        if (v.claims->claim[i].job == job && v.claims->claim[i].source == source)
            return true;
    return false;
}

/* Whether the board's claims are kept in the view while boards are reopened: the ledger
 * may lack their latest changes.
 */
static bool is_in_view(const struct take_over *t, size_t board)
{
    for (size_t k = 0; k < t->n_kept; k++)
        if (strcmp(info_of(t, board)->uuid, t->kept[k].info.uuid) == 0)
            return true;
    return false;
}

/* Ends a claim that cannot be taken over, with a log line and an event. */
static void lose_claim(const struct take_over *t, const struct ledger_claim *c,
                       enum claim_end how, const char *why)
{
    struct ledger_claim_end end = {.id = c->id,
                                   .board = c->board,
                                   .utc_ns = loop_utc_ns(t->loop),
                                   .how = names_word(NAMES_CLAIM_END, how)};
    char text[240];

    (void)snprintf(text, sizeof text, "claim %ju of %.60s: %s", (uintmax_t)c->id, c->who,
                   why);
    log_event(LOG_LEVEL_WARNING, LOG_EVENT_CLAIM_LOST,
              "claim=%ju gpu=%u who=%s reason=%s", (uintmax_t)c->id,
              info_of(t, c->board)->index, log_quote(c->who).text, log_quote(why).text);
    (void)ledger_add_claim_end(ledger_writer_early(t->writer), &end);
    ledger_writer_event(t->writer, LEDGER_EVENT_CLAIM_LOST, c->board, c->uid, text);
}

static bool goes_on(const struct take_over *t, uint64_t job)
{
    const struct job_record *rec = job_records_find(t->records, job);

    return rec && !rec->lost;
}

/* The reason why a claim cannot be taken over (*ret_how: the ledger's word); NULL: it
 * can.
 */
static const char *is_over(const struct take_over *t, const struct ledger_claim *c,
                           const char *boot_id, enum claim_end *ret_how)
{
    *ret_how = CLAIM_END_RESTART;
    if (strcmp(boot_id, ledger_writer_boot_id(t->writer)) != 0)
        return "the claim is older than the machine's last boot";
    *ret_how = CLAIM_END_JOB;
    if (c->job && !goes_on(t, c->job))
        return "the job ended while no daemon ran";
    return NULL;
}

/* Searches, the budget, rules and grants make their claims again themselves. */
static bool makes_again(enum claim_source source)
{
    return source == CLAIM_OF_SEARCH || (claim_source_row(source)->may & MAY_NOT_END);
}

static int take_over_claim(const struct ledger_claim *c, const char *boot_id, void *user)
{
    const struct take_over *t = user;
    enum claim_end how = CLAIM_END_RESTART;
    enum claim_source source = (enum claim_source)names_number_or(
        NAMES_CLAIM_SOURCE, c->source, CLAIM_OF_PERSON);
    uint64_t now = loop_now_ns(t->loop);
    int64_t utc = loop_utc_ns(t->loop);
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
                          .admin = c->job == 0}; /* users' claims always have a job */
    uw_error err = {""};

    if (makes_again(source) || c->board >= boards_count(t->boards) ||
        is_in_view(t, c->board) || is_stated(t, c->board, c->job, source))
        return 0;
    const char *why = is_over(t, c, boot_id, &how);
    if (why) {
        lose_claim(t, c, how, why);
        return 0;
    }
    if (c->made_utc_ns < utc && (uint64_t)(utc - c->made_utc_ns) < now)
        claim.made_ns = now - (uint64_t)(utc - c->made_utc_ns);
    if (c->until_utc_ns != LEDGER_FOREVER)
        claim.until_ns = now + (uint64_t)(c->until_utc_ns - utc);
    (void)snprintf(claim.who, sizeof claim.who, "%s", c->who);
    (void)snprintf(claim.why, sizeof claim.why, "%s", c->why);
    claim.way.own = source == CLAIM_OF_SCHEDULER; /* at once, as before */
    if (!watch_again(t, &claim))
        lose_claim(t, c, CLAIM_END_PROCESS, "the process ended while no daemon ran");
    else if (caps_claim(t->caps, c->board, &claim, NULL, &err) < 0)
        lose_claim(t, c, CLAIM_END_REFUSED, err.text);
    return 0;
}

static bool is_there(const struct take_over *t, size_t board, uint64_t claim)
{
    struct caps_view v;

    caps_look(t->caps, board, &v);
    for (size_t i = 0; i < v.claims->n; i++)
        if (v.claims->claim[i].id == claim)
            return true;
    return false;
}

static void take_over_kept_claim(const struct take_over *t, size_t board,
                                 const struct claim *kept)
{
    const struct ledger_claim lost = {
        .id = kept->id, .board = board, .uid = kept->uid, .who = kept->who};
    struct claim claim = *kept;
    uw_error err = {""};

    if (makes_again(claim.source) || is_there(t, board, claim.id) ||
        is_stated(t, board, claim.job, claim.source))
        return;
    if (claim.job && !goes_on(t, claim.job))
        lose_claim(t, &lost, CLAIM_END_JOB, "the job ended while boards were away");
    else if (!watch_again(t, &claim))
        lose_claim(t, &lost, CLAIM_END_PROCESS,
                   "the process ended while boards were away");
    else if (caps_claim(t->caps, board, &claim, NULL, &err) < 0)
        lose_claim(t, &lost, CLAIM_END_REFUSED, err.text);
}

void take_over_kept(const struct take_over *t)
{
    for (size_t k = 0; k < t->n_kept; k++)
        for (size_t i = 0; i < boards_count(t->boards); i++) {
            const struct claims *claims = &t->kept[k].claims;
            if (strcmp(info_of(t, i)->uuid, t->kept[k].info.uuid) != 0)
                continue;
            for (size_t c = 0; c < claims->n; c++)
                take_over_kept_claim(t, i, &claims->claim[c]);
        }
}

/* Removes the states of searches whose jobs ended while no daemon ran. */
static void drop_states(const struct take_over *t)
{
    char path[STATE_PATH], folder[STATE_PATH];
    const struct dirent *e;

    ledger_writer_state_path(t->writer, 0, path, sizeof path);
    const char *name = strrchr(path, '/');
    if (!name)
        return;
    (void)snprintf(folder, sizeof folder, "%.*s/", (int)(name - path), path);
    auto_(dir_close) DIR *dir = opendir(folder);
    while (dir && (e = readdir(dir))) {
        const char *id = e->d_name + strcspn(e->d_name, "0123456789");
        char digits[24];
        uint64_t job = 0;
        (void)snprintf(digits, sizeof digits, "%.*s", (int)strspn(id, "0123456789"), id);
        if (parse_u64(digits, &job, NULL) < 0)
            continue;
        ledger_writer_state_path(t->writer, job, path, sizeof path);
        if (strcmp(strrchr(path, '/') + 1, e->d_name) == 0 &&
            !roster_find(t->roster, job))
            (void)unlink(path);
    }
}

int take_over_all(const struct take_over *t, uw_error *err)
{
    bool reads = ledger_is_readable(ledger_writer_ledger(t->writer));
    int r = 0;

    if (r >= 0 && reads)
        r = ledger_open_jobs(ledger_writer_ledger(t->writer), take_over_job, (void *)t,
                             err);
    if (r >= 0)
        ledger_batch_jobs(ledger_writer_early(t->writer), take_over_waiting, (void *)t);
    if (r >= 0 && reads)
        r = ledger_open_claims(ledger_writer_ledger(t->writer), loop_utc_ns(t->loop),
                               ledger_writer_ahead_ns(t->writer), take_over_claim,
                               (void *)t, err);
    if (r >= 0)
        take_over_kept(t);
    if (r < 0 || !ledger_is_open(ledger_writer_ledger(t->writer)))
        return r;
    r = ledger_write(ledger_writer_ledger(t->writer), ledger_writer_early(t->writer),
                     err);
    if (r < 0)
        return r;
    ledger_batch_clear(ledger_writer_early(t->writer));
    if (t->silent) /* its jobs and claims stay open in the ledger */
        return 0;
    if (reads)
        drop_states(t);
    return ledger_claims_settle(ledger_writer_ledger(t->writer), loop_utc_ns(t->loop),
                                err);
}
