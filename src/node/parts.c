/* Starts the node's parts and forwards the events of each to the others. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/names.h"
#include "base/units.h"
#include "gpu/counters.h"
#include "io/file-save.h"
#include "node/nested.h"
#include "node/node-inside.h"
#include "node/take-over.h"
#include "policy/file.h"
#include "tuner/search-history.h"

enum { STATE_PATH = CONFIG_PATH + 40 };

static void save_state(struct node *node, uint64_t job, const char *text)
{
    char path[STATE_PATH];

    ledger_writer_state_path(node->writer, job, path, sizeof path);
    file_save(node->saver, path, text, NULL, NULL);
}

/* ---- energy ---- */

static void on_row(const struct attribution_row *row, void *user)
{
    struct node *node = user;

    ledger_writer_energy(node->writer, node->roster, row);
}

static void on_total(const struct attribution_total *total, void *user)
{
    struct node *node = user;

    ledger_writer_total(node->writer, total);
    if (node->windows && total->board < LEDGER_BOARDS)
        client_windows_total(node->windows, total);
    if (node->released)
        released_boards_kick(node->released);
}

static int start_attribution(struct node *node, uw_error *err)
{
    struct attribution_opts opts = {.loop = node->loop,
                                    .sampler = node->sampler,
                                    .n = node->n,
                                    .roster = node->roster,
                                    .interval_ns = node->config.node.interval_ns,
                                    .before = node->before,
                                    .waste = &node->config.waste,
                                    .boards = node->boards,
                                    .on_row = on_row,
                                    .on_total = on_total,
                                    .user = node};

    return attribution_new(&opts, &node->attribution, err);
}

/* ---- caps ---- */

static struct caps_conf conf_of(const struct node_config *c, bool private)
{
    const struct cap_class *cls = node_config_class(c, "default");

    return (struct caps_conf){.cls = cls ? *cls : CAP_CLASS_DEFAULT,
                              .others = (enum caps_others)c->caps.others,
                              .reassert_ns = c->caps.reassert_ns,
                              .yield_ns = c->caps.yield_ns,
                              .dry_run = c->node.dry_run,
                              .clocks = c->caps.clocks,
                              .always_hold = c->caps.always_hold,
                              .hold_claimed = private};
}

static void tell_phases(struct node *node, const struct caps_what *what)
{
    double most_w = what->event == CAPS_EVENT_CAP && what->enforced_mw
                        ? w_of_mw(what->enforced_mw)
                        : INFINITY;

    if (what->event == CAPS_EVENT_CAP || what->event == CAPS_EVENT_CLOCK)
        job_records_on_cap(node->records, what->board, most_w);
    if (what->event == CAPS_EVENT_CAP && node->phases)
        phase_watch_cap(node->phases, what->board, what->enforced_mw);
}

static void on_caps(const struct caps_what *what, void *user)
{
    struct node *node = user;
    struct caps_what told = *what;

    if (what->event == CAPS_EVENT_WITHDRAW && node->how)
        told.text = names_word(NAMES_CLAIM_END, node->how);
    caps_log(node->caps, node_info(node, what->board), what);
    if (what->event == CAPS_EVENT_CAP && node->attribution)
        attribution_cap(node->attribution, what->board, what->enforced_mw);
    ledger_writer_caps(node->writer, node->caps, &told, node->ending);
    if (what->event == CAPS_EVENT_CLAIM && node->opts.private && !node->actuator_over)
        actuator_link_start(node->link);
    if (what->event == CAPS_EVENT_STATE)
        released_boards_kick(node->released);
    if (node->searches)
        searches_on_caps(node->searches, what);
    tell_phases(node, what);
    if (node->policy)
        node_policy_changed(node->policy);
    node_tell(node, NODE_EVENT_CAPS, &told);
    if (node->opts.on_caps)
        node->opts.on_caps(node->opts.user);
}

void node_withdraw_claim(struct node *node, uint64_t id, enum claim_end how)
{
    node->how = how;
    for (size_t i = 0; i < node->n; i++)
        (void)caps_withdraw(node->caps, i, id, NULL);
    node->how = CLAIM_END_WITHDRAWN;
}

static void on_process_end(uint64_t claim, void *user)
{
    node_withdraw_claim(user, claim, CLAIM_END_PROCESS);
}

int node_caps_start(struct node *node, uint64_t first_claim, uw_error *err)
{
    struct caps_opts opts = {.loop = node->loop,
                             .boards = node->boards,
                             .conf = conf_of(&node->config, node->opts.private),
                             .first_id = first_claim,
                             .on_event = on_caps,
                             .user = node};
    size_t n_kept = 0;
    const struct kept_board *kept = viewer_kept(node->viewer, &n_kept);

    int r = caps_new(&opts, &node->caps, err);
    if (r == 0)
        r = budget_new(node->loop, node->caps, node->n, &node->budget, err);
    if (r == 0)
        budget_configure(node->budget, node->config.budget_mw);
    if (r == 0 && claim_watches_new(node->loop, on_process_end, node, &node->watches) < 0)
        r = fail(err, -ENOMEM, "out of memory");
    for (size_t i = 0; r == 0 && i < n_kept; i++)
        for (size_t k = 0; k < node->n; k++)
            if (strcmp(kept[i].info.uuid, node_info(node, k)->uuid) == 0)
                caps_count_on(node->caps, k, viewer_kept_cap(node->viewer, i));
    return r;
}

void node_caps_configure(struct node *node)
{
    struct caps_conf conf = conf_of(&node->config, node->opts.private);

    if (!node->caps)
        return;
    budget_configure(node->budget, node->config.budget_mw);
    caps_configure(node->caps, &conf);
}

void node_caps_tick(struct node *node)
{
    const char *budget = caps_log_budget(node->budget, &node->budget_log);

    if (budget)
        ledger_writer_event(node->writer, LEDGER_EVENT_BUDGET, SIZE_MAX, (uid_t)-1,
                            budget);
    for (size_t i = 0; i < node->n; i++) {
        const struct sampler_now *now = sampler_board(node->sampler[i], 0);
        sampler_watch_clock(node->sampler[i], 0, caps_watches_clock(node->caps, i));
        if (now->limits.has == 0 || now->limits.at_ns == node->rest[i].seen_ns)
            continue; /* stale limits would look like another program's change */
        node->rest[i].seen_ns = now->limits.at_ns;
        caps_seen(node->caps, i, &now->limits);
    }
}

/* ---- the actuator ---- */

/* A counter of the processors, opened by the actuator: samples are retried at once. */
static int on_counter(struct actuator *act, const char *zone, int fd, void *user)
{
    struct node *node = user;
    (void)act;

    if (zone && gpu_given_put(node->opts.cpu_given, zone, fd) < 0)
        log_event(LOG_LEVEL_WARNING, LOG_EVENT_NO_CPU_ENERGY, "zone=%s reason=refused",
                  zone);
    processors_retry(node->processors);
    return 0;
}

/* Notifies the callers that wait in node_need_actuator(). */
static void tell_needed(struct node *node, int r, const char *text)
{
    caps_done_fn fn = node->needed;

    node->needed = NULL;
    if (fn)
        fn(r, text, node->needed_user);
}

static void on_actuator_ready(struct actuator *act, void *user)
{
    struct node *node = user;

    if (node->actuator_text[0]) {
        log_event(LOG_LEVEL_NOTICE, LOG_EVENT_ACTUATOR, "state=connected");
        ledger_writer_event(node->writer, LEDGER_EVENT_ACTUATOR, SIZE_MAX, (uid_t)-1,
                            "connected");
    }
    node->actuator_text[0] = '\0';
    if (node->caps)
        caps_use_actuator(node->caps, act);
    released_boards_use_actuator(node->released, act);
    tell_needed(node, 0, "");
    if (node->processors && node->opts.cpu_given)
        (void)actuator_counters(act, on_counter, node);
}

static bool on_actuator_lost(const char *text, void *user)
{
    struct node *node = user;

    node->actuator_over = node->opts.private;
    if (node->searches && node->opts.private)
        searches_no_actuator(node->searches, text);
    if (node->caps && node->opts.private)
        caps_no_actuator(node->caps, text);
    else if (node->caps)
        caps_use_actuator(node->caps, NULL);
    released_boards_use_actuator(node->released, NULL);
    if (!node->ending && strcmp(node->actuator_text, text) != 0) {
        (void)snprintf(node->actuator_text, sizeof node->actuator_text, "%s", text);
        log_event(LOG_LEVEL_WARNING, LOG_EVENT_READ_ONLY, "reason=%s",
                  log_quote(text).text);
        ledger_writer_event(node->writer, LEDGER_EVENT_READ_ONLY, SIZE_MAX, (uid_t)-1,
                            text);
    }
    tell_needed(node, -EPERM, text);
    return !node->ending && !node->opts.private;
}

static int on_actuator_event(struct actuator *act, enum actuator_event event,
                             const struct actuator_reply *what, void *user)
{
    struct node *node = user;
    (void)act;

    if (node->caps)
        caps_on_actuator(node->caps, event, what);
    if (event == ACTUATOR_EVENT_WRITING && node->opts.on_caps)
        node->opts.on_caps(node->opts.user);
    return 0;
}

int node_actuator_start(struct node *node, uw_error *err)
{
    struct actuator_link_opts opts = {
        .loop = node->loop,
        .socket = node->config.actuator_socket,
        .simulated = node->opts.simulated,
        .service = node->opts.service,
        .virtual = node->opts.virtual_actuator ? node->opts.backend : NULL,
        .boards_lib = boards_lib(node->boards),
        .local = node->opts.private,
        .library = node->opts.gpu.source,
        .on_ready = on_actuator_ready,
        .on_lost = on_actuator_lost,
        .on_event = on_actuator_event,
        .user = node};
    int r = node->link ? 0 : actuator_link_new(&opts, &node->link, err);

    if (r == 0 && !node->config.node.dry_run && !node->opts.private)
        actuator_link_start(node->link);
    return r;
}

/* ---- boards that are released ---- */

static void on_detach(size_t board, bool away, void *user)
{
    struct node *node = user;

    attribution_detach(node->attribution, board, away);
}

static bool is_settled(size_t board, void *user)
{
    struct node *node = user;

    return attribution_board_settled(node->attribution, board);
}

static void on_released_event(enum ledger_word kind, size_t board, const char *text,
                              void *user)
{
    struct node *node = user;

    ledger_writer_event(node->writer, kind, board, (uid_t)-1, text);
}

static void reopen_soon(void *user)
{
    struct node *node = user;

    loop_timer_set(node->reopen, 0, 0);
}

static int new_released(struct node *node, uw_error *err)
{
    const char *ledger = node->config.ledger.path, *slash = strrchr(ledger, '/');
    char path[STATE_PATH] = "";
    struct released_boards_opts opts = {.loop = node->loop,
                                        .path = path,
                                        .boot_id = ledger_writer_boot_id(node->writer),
                                        .worker = node->saver,
                                        .on_detach = on_detach,
                                        .is_settled = is_settled,
                                        .on_event = on_released_event,
                                        .reopen = reopen_soon,
                                        .user = node};

    if (slash)
        (void)snprintf(path, sizeof path, "%.*s/released.json", (int)(slash - ledger),
                       ledger);
    return released_boards_new(&opts, &node->released, err);
}

/* ---- searches ---- */

static struct sampler *sampler_of(size_t board, void *user)
{
    struct node *node = user;

    return board < node->n ? node->sampler[board] : NULL;
}

static void on_save(uint64_t job, const char *state, void *user)
{
    struct node *node = user;
    const struct job_entry *entry = roster_find(node->roster, job);

    if (!entry || entry->ended_ns) /* its state was removed */
        return;
    save_state(node, job, state);
    node_ledger_job(node, entry);
}

static void on_note(uint64_t job, const char *text, bool important, void *user)
{
    struct node *node = user;
    struct job_record *rec = job_records_find(node->records, job);

    if (rec && important)
        job_notes_add(&rec->notes, text);
    if (node->opts.note)
        node->opts.note(job, text, important, node->opts.user);
    log_event(important ? LOG_LEVEL_NOTICE : LOG_LEVEL_DEBUG, LOG_EVENT_SEARCH,
              "job=%" PRIu64 " text=%s", job, log_quote(text).text);
}

/* The entry of a job's searches in the history: sets uid, key and boards of *ret; false:
 * the history keeps none.
 */
static bool history_place(struct node *node, uint64_t job, uint64_t boards,
                          struct ledger_search *ret)
{
    const struct job_entry *entry = roster_find(node->roster, job);
    const struct job_record *rec = job_records_find(node->records, job);
    const char *model = search_history_model(node->boards, boards, &ret->boards);

    if (!node->config.history_ns || !rec || !rec->key[0] || !model ||
        (!entry && !rec->ended_ns))
        return false;
    ret->job = job;
    ret->utc_ns = loop_utc_ns(node->loop);
    ret->uid = entry ? entry->uid : rec->last.uid;
    (void)snprintf(ret->same, sizeof ret->same, "%s", rec->key);
    (void)snprintf(ret->model, sizeof ret->model, "%s", model);
    return true;
}

static const struct ledger_search *find_earlier(struct node *node,
                                                const struct ledger_search *at)
{
    return history_find(node->history, at->uid, at->same, at->model, at->boards,
                        at->utc_ns - (int64_t)node->config.history_ns);
}

static bool on_earlier(uint64_t job, uint64_t boards, struct tuner_earlier *ret,
                       void *user)
{
    struct node *node = user;
    struct ledger_search at = {0};
    const struct ledger_search *s =
        history_place(node, job, boards, &at) ? find_earlier(node, &at) : NULL;

    if (s)
        search_history_earlier(s, ret);
    return s != NULL;
}

static void on_learnt(uint64_t job, uint64_t boards, const struct tuner_report *r,
                      void *user)
{
    struct node *node = user;
    struct ledger_search s = {0};

    if (history_place(node, job, boards, &s) &&
        search_history_measured(r, find_earlier(node, &s), &s) &&
        history_put(node->history, &s) == 0)
        ledger_writer_search(node->writer, &s);
}

int node_search_begin(struct node *node, const struct job_entry *job,
                      struct job_record *rec, const char *state, uw_error *err)
{
    node_nested_begin(node, job, rec);
    const struct goal *goal = job_record_goal(rec);
    struct searches_ask ask = {
        .search = goal != NULL,
        .goal = goal ? *goal : rec->goal,
        .cap = rec->cap,
        .preset = rec->preset,
        .cls = node_config_class(&node->config, nested_class(node->records, job, rec)),
        .state = state};
    int r = searches_begin(node->searches, job, &ask, err);

    rec->asked = r == 0 && !rec->ruled && (!rec->lent || rec->search);
    return r;
}

bool node_is_searched(const struct node *node, size_t board)
{
    for (size_t i = 0; i < job_records_count(node->records); i++) {
        const struct job_record *rec = job_records_at(node->records, i);
        bool searched = rec->ruled || rec->lent || (rec->asked && rec->search);
        const struct job_entry *job =
            searched && !rec->ended_ns ? roster_find(node->roster, rec->id) : NULL;
        if (job && job->boards & (1ull << board))
            return true;
    }
    return false;
}

/* ---- jobs ---- */

void node_ledger_job(struct node *node, const struct job_entry *job)
{
    struct searches_view search = {0};

    if (node->searches)
        (void)searches_look(node->searches, job->id, &search);
    ledger_writer_job(node->writer, job, job_records_find(node->records, job->id),
                      &search);
}

static void begin_found(struct node *node, const struct job_entry *job,
                        struct job_record *rec)
{
    uw_error err = {""};

    if (job->source != JOB_FOUND || !node->config.search.found)
        return;
    rec->search = true;
    rec->goal = node->config.search.goal;
    if (node_search_begin(node, job, rec, NULL, &err) < 0)
        log_event(LOG_LEVEL_WARNING, LOG_EVENT_SEARCH_REFUSED,
                  "job=%" PRIu64 " reason=%s", job->id, log_quote(err.text).text);
}

/* rec is NULL if there was no room for a record. */
static void end_job(struct node *node, const struct job_entry *job,
                    struct job_record *rec)
{
    node->how = CLAIM_END_JOB;
    caps_withdraw_job(node->caps, job->id);
    node->how = CLAIM_END_WITHDRAWN;
    if (rec)
        job_records_end(node->records, rec, job);
    phase_watch_end(node->phases, job->id);
    save_state(node, job->id, NULL);
    attribution_hurry(node->attribution, job->boards);
    log_event(LOG_LEVEL_INFO, LOG_EVENT_JOB_END, "job=%" PRIu64 " name=%s", job->id,
              log_quote(job->name).text);
}

static void on_job(enum roster_event event, const struct job_entry *job, void *user)
{
    struct node *node = user;
    struct job_record *rec = job_records_find(node->records, job->id);

    if (event == ROSTER_BEGIN && !rec) {
        rec = job_records_add(node->records, job->id);
        if (rec)
            begin_found(node, job, rec);
        log_event(LOG_LEVEL_INFO, LOG_EVENT_JOB_BEGIN,
                  "job=%" PRIu64 " source=%s name=%s uid=%u", job->id,
                  names_word(NAMES_JOB_SOURCE, job->source), log_quote(job->name).text,
                  (unsigned)job->uid);
    }
    if (node->searches)
        (void)searches_on_job(node->searches, event, job);
    node_ledger_job(node, job);
    if (event == ROSTER_END)
        end_job(node, job, rec);
    bool slices = false;
    for (size_t i = 0; i < node->n; i++)
        if (job->boards >> i & 1) {
            node_check_rights(node, i);
            slices |= node_info(node, i)->mig_enabled;
        }
    if (slices)
        scheduler_look(node->scheduler);
    if (event == ROSTER_BEGIN && job->source == JOB_RUN && node->scheduler)
        scheduler_hurry(node->scheduler, job);
    if (node->policy)
        node_policy_changed(node->policy);
    node_tell(node, NODE_EVENT_JOB, job);
}

static void on_turn(size_t board, void *user)
{
    struct node *node = user;

    attribution_turn(node->attribution, board);
    processors_turn(node->processors);
}

/* A board that job `from` had passes to job `to`, which computes there. */
static void on_pass(size_t board, const struct job_entry *from,
                    const struct job_entry *to, void *user)
{
    struct node *node = user;
    char text[200];

    if (from)
        (void)snprintf(text, sizeof text,
                       "passed to job %" PRIu64
                       " of uid %u, which computes on it; job %" PRIu64
                       " of uid %u requested the board and does not compute on it",
                       to->id, (unsigned)to->uid, from->id, (unsigned)from->uid);
    else
        (void)snprintf(text, sizeof text,
                       "passed to job %" PRIu64
                       " of uid %u, which requested it; no other job has it",
                       to->id, (unsigned)to->uid);
    log_event(LOG_LEVEL_NOTICE, LOG_EVENT_BOARD_PASSED, "gpu=%u job=%" PRIu64 " text=%s",
              node_info(node, board)->index, to->id, log_quote(text).text);
    ledger_writer_event(node->writer, LEDGER_EVENT_BOARD_PASSED, board, to->uid, text);
}

static void on_look(size_t board, void *user)
{
    node_check_rights(user, board);
}

static void on_phase(uint64_t job, const struct view_phase *phase, void *user)
{
    struct node *node = user;
    const struct job_entry *entry = roster_find(node->roster, job);

    if (entry && phase_watch_phase(node->phases, job, entry->boards, phase->phase) &&
        node->policy)
        node_policy_hurry(node->policy, job);
}

static void on_told_phase(uint64_t job, void *user)
{
    struct node *node = user;

    job_records_told(node->records, job);
}

static const struct steps *steps_of(uint64_t job, void *user)
{
    struct node *node = user;

    return searches_steps(node->searches, job);
}

static void on_record_drop(uint64_t job, void *user)
{
    struct node *node = user;
    struct job_record *rec = job_records_find(node->records, job);

    if (rec && rec->lost) {
        rec->lost = false;
        node_ledger_job(node, &rec->last);
    }
    if (node->searches)
        searches_forget(node->searches, job);
    if (node->attribution)
        attribution_forget(node->attribution, job);
    processors_forget(node->processors, job);
}

static int start_searches(struct node *node, uw_error *err)
{
    const struct node_config *c = &node->config;
    struct searches_opts opts = {.loop = node->loop,
                                 .boards = node->boards,
                                 .caps = node->caps,
                                 .sampler = sampler_of,
                                 .checks_share =
                                     c->reference_share > 0 ? c->reference_share : -1,
                                 .gap_checks = c->gap_checks ? (int)c->gap_checks : -1,
                                 .slack = c->slack,
                                 .clocks = c->search_clocks,
                                 .window_s = node->opts.window_s,
                                 .once = node->opts.runs_job,
                                 .save = on_save,
                                 .earlier = on_earlier,
                                 .learnt = on_learnt,
                                 .note = on_note,
                                 .phase = on_told_phase,
                                 .user = node};

    return searches_new(&opts, &node->searches, err);
}

int node_jobs_start(struct node *node, uint64_t first_job, uw_error *err)
{
    struct roster_opts roster = {.loop = node->loop,
                                 .boards = node->boards,
                                 .look_ns = node->config.jobs.look_ns,
                                 .rest_ns =
                                     node->opts.runs_job ? node->config.jobs.look_ns : 0,
                                 .no_found = !node->config.jobs.discover,
                                 .read = node->opts.read,
                                 .read_user = node->opts.read_user,
                                 .first_id = first_job,
                                 .next_id = node_next_job,
                                 .on_event = on_job,
                                 .on_turn = on_turn,
                                 .on_pass = on_pass,
                                 .on_look = on_look,
                                 .user = node};
    int r = roster_new(&roster, &node->roster, err);
    struct job_records_opts records = {.loop = node->loop,
                                       .roster = node->roster,
                                       .boards = node->boards,
                                       .sampler = node->sampler,
                                       .phases = node->config.jobs.phases,
                                       .steps = steps_of,
                                       .on_phase = on_phase,
                                       .on_drop = on_record_drop,
                                       .user = node};

    if (r == 0 && job_records_new(&records, &node->records) < 0)
        r = fail(err, -ENOMEM, "out of memory");
    if (r == 0)
        r = phase_watch_new(&(struct phase_watch_opts){node->loop, node->caps,
                                                       node->sampler, node->n,
                                                       node->writer, steps_of, node},
                            &node->phases, err);
    if (r == 0)
        r = start_attribution(node, err);
    if (r == 0)
        r = start_searches(node, err);
    return r == 0 ? node_scheduler_start(node, err) : r;
}

void node_jobs_stop(struct node *node)
{
    scheduler_free(take(node->scheduler));
    searches_free(take(node->searches));
    attribution_free(take(node->attribution));
    roster_free(take(node->roster));
    job_records_free(take(node->records));
    phase_watch_free(take(node->phases));
}

/* ---- the policy ---- */

static const struct node_view *policy_view(void *user)
{
    return node_look(user);
}

/* Whether the goal and the cap were requested.  A default goal, and the configuration's
 * goal for found jobs, were not.
 */
static void policy_asked(uint64_t job, bool *ret_goal, bool *ret_cap, void *user)
{
    struct node *node = user;
    const struct job_record *rec = job_records_find(node->records, job);
    const struct job_entry *entry = roster_find(node->roster, job);
    const struct job_record *outer =
        rec && rec->lent && entry ? job_records_find(node->records, entry->within) : NULL;

    *ret_goal =
        (rec && rec->search && !rec->by_default && entry && entry->source != JOB_FOUND) ||
        (outer && outer->search);
    *ret_cap = rec && ((rec->asked && !rec->search) || scheduler_caps(rec));
}

static void policy_goal(uint64_t job, const struct goal *goal, const char *by, void *user)
{
    struct node *node = user;
    struct job_record *rec = job_records_find(node->records, job);
    const struct job_entry *entry = roster_find(node->roster, job);
    char form[GOAL_TEXT_MAX], text[200];
    uw_error err = {""};

    if (!rec || !entry || !node->searches)
        return;
    rec->ruled = goal != NULL;
    if (goal)
        rec->rule_goal = *goal;
    int r = node_give_goal(node, entry, rec, &err);
    if (r < 0 && goal) {
        log_event(LOG_LEVEL_WARNING, LOG_EVENT_SEARCH_REFUSED,
                  "job=%" PRIu64 " reason=%s", job, log_quote(err.text).text);
        return;
    }
    if (goal)
        (void)snprintf(text, sizeof text, "the goal is %s, set by %s",
                       goal_text(goal, form), by);
    else
        (void)snprintf(text, sizeof text, "the policy no longer sets a goal");
    on_note(job, text, true, node);
}

static void policy_phases(uint64_t job, bool needed, void *user)
{
    struct node *node = user;

    if (node->searches)
        searches_hurry(node->searches, job, needed);
}

static void policy_rule(const struct node_rule_event *event, void *user)
{
    struct node *node = user;
    size_t board = event->rule->board;
    bool has_board = node->open && board < node->n; /* false for a lost board */
    char text[NODE_RULE_TEXT];

    node_rule_text(event, text);
    log_event(LOG_LEVEL_NOTICE, LOG_EVENT_RULE, "gpu=%d text=%s",
              has_board ? (int)node_info(node, board)->index : -1, log_quote(text).text);
    if (event->dry_run)
        return;
    ledger_writer_rule(node->writer, event->rule, has_board ? board : SIZE_MAX, text);
    if (has_board)
        node_tell(node, NODE_EVENT_RULE, event);
}

static void policy_limit(const struct limits_event *event, void *user)
{
    node_tell(user, NODE_EVENT_LIMIT, event);
}

int node_policy_file(struct node *node, const char *path, struct policy_file **ret,
                     uw_error *err)
{
    *ret = NULL;
    return node->policy ? node_policy_read(node->policy, path, ret, err) : 0;
}

static void policy_outside(const struct policy_signal *signal,
                           const struct policy_read *read, struct policy_value *ret,
                           void *user)
{
    const struct node *node = user;

    if (node->outside)
        outside_read(node->outside, signal, read, ret);
}

static void outside_changed(void *user)
{
    struct node *node = user;

    if (node->policy)
        node_policy_changed(node->policy);
}

int node_outside(struct node *node, uw_error *err)
{
    return node->outside ? 0
                         : outside_new(node->loop, node->writer, outside_changed, node,
                                       &node->outside, err);
}

int node_policy_take(struct node *node, struct policy_file *file, const char *path,
                     uw_error *err)
{
    /* the currency that signal_sources_read() takes, too */
    static const struct signal_sources none = {.currency = "EUR"};
    auto_(outside_plan_free) struct outside_plan *plan = NULL;

    if (!node->policy)
        return 0;
    bool was = node_policy_in_force(node->policy);
    int r = file ? node_outside(node, err) : 0;
    if (r == 0 && node->outside)
        r = outside_plan_new(node->outside, file ? &file->sources : &none, &plan, err);
    if (r < 0)
        return node_policy_refused(node->policy, file, r, err);
    r = node_policy_use(node->policy, file, err);
    if (r < 0)
        return r;
    outside_use(node->outside, take(plan));
    node_policy_book(node->policy, was, path);
    return 0;
}

/* A wrong file does not prevent the start. */
static int new_policy(struct node *node, uw_error *err)
{
    const struct node_policy_opts opts = {.loop = node->loop,
                                          .look = policy_view,
                                          .asked = policy_asked,
                                          .goal = policy_goal,
                                          .rule = policy_rule,
                                          .limit = policy_limit,
                                          .phases = policy_phases,
                                          .writer = node->writer,
                                          .outside = policy_outside,
                                          .user = node};
    struct policy_file *file = NULL;
    uw_error why = {""};
    int r = node->opts.private ? 0 : node_policy_new(&opts, &node->policy, err);

    if (r < 0)
        return r;
    r = node_policy_file(node, node->config.policy_file, &file, &why);
    if (r == 0)
        r = node_policy_take(node, file, node->config.policy_file, &why);
    if (r < 0)
        log_event(LOG_LEVEL_ERROR, LOG_EVENT_POLICY_REFUSED, "reason=%s in_force=none",
                  log_quote(why.text).text);
    return 0;
}

/* ---- the ledger ---- */

void node_restate_jobs(struct node *node)
{
    for (size_t i = 0; node->roster && i < roster_count(node->roster); i++)
        node_ledger_job(node, roster_at(node->roster, i));
    for (size_t i = 0; i < job_records_count(node->records); i++)
        if (job_records_at(node->records, i)->lost)
            node_ledger_job(node, &job_records_at(node->records, i)->last);
}

void node_restate_claims(struct node *node)
{
    for (size_t i = 0; node->caps && i < node->n; i++) {
        struct caps_view v;
        caps_look(node->caps, i, &v);
        for (size_t k = 0; k < v.claims->n; k++)
            ledger_writer_claim(node->writer, i, &v.claims->claim[k]);
    }
}

/* A new file has no rows of running jobs and claims in force: without them a restart
 * would end the jobs and lose the claims.
 */
static void on_new_ledger(void *user)
{
    struct node *node = user;

    for (size_t i = 0; i < history_count(node->history); i++)
        ledger_writer_search(node->writer, history_at(node->history, i));
    node_restate_jobs(node);
    node_restate_claims(node);
}

static int on_search(const struct ledger_search *s, void *user)
{
    return history_put(user, s);
}

static int begin_taken_over(const struct job_entry *job, struct job_record *rec,
                            const char *state, void *user, uw_error *err)
{
    rec->lent |= !rec->asked && state && *state; /* searched for the outer job */
    node_nested_begin(user, job, rec);
    return rec->asked || rec->lent ? node_search_begin(user, job, rec, state, err) : 0;
}

int node_take_over(struct node *node, uw_error *err)
{
    struct ledger *ledger = ledger_writer_ledger(node->writer);
    struct take_over t = {.loop = node->loop,
                          .boards = node->boards,
                          .caps = node->caps,
                          .roster = node->roster,
                          .records = node->records,
                          .attribution = node->attribution,
                          .watches = node->watches,
                          .writer = node->writer,
                          .silent = node->silent > 0,
                          .begin_search = begin_taken_over,
                          .user = node};
    uw_error why = {""};
    int r = 0;

    t.kept = viewer_kept(node->viewer, &t.n_kept);
    if (ledger && ledger_is_readable(ledger))
        r = ledger_searches(ledger, on_search, node->history, &why);
    if (ledger && r >= 0)
        r = take_over_all(&t, &why);
    if (r < 0) {
        take_over_kept(&t);
        r = ledger_writer_leave(node->writer, r, &why, err);
    }
    scheduler_open(node->scheduler);
    return r < 0 ? r : 0;
}

/* ---- parts that live as long as the node ---- */

static int on_processors(void *user)
{
    struct node *node = user;
    uw_error why = {""};
    int r = node_boards_begin(node, &why);

    return r < 0 ? node->opts.on_ready(node, r, &why, node->opts.user) : 0;
}

static int new_processors(struct node *node, uw_error *err)
{
    struct processors_opts opts = {.loop = node->loop,
                                   .backend = node->opts.cpu,
                                   .gpu = {.clock = node->opts.gpu.clock,
                                           .source = node->opts.cpu_source,
                                           .given = node->opts.cpu_given},
                                   .shown_ns = node->config.boards.rapl_ns,
                                   .on_open = on_processors,
                                   .on_row = on_row,
                                   .on_total = on_total,
                                   .user = node};

    return processors_new(&opts, &node->processors, err);
}

static int new_small_parts(struct node *node)
{
    struct ledger_writer_opts opts = {.loop = node->loop,
                                      .config = &node->config,
                                      .simulated = node->opts.simulated,
                                      .version = node->opts.version,
                                      .boot_id = node->opts.boot_id,
                                      .restate = on_new_ledger,
                                      .user = node};
    int r = ledger_writer_new(&opts, &node->writer);

    if (r == 0)
        r = refusals_new(node->loop, node->writer, &node->refusals);
    if (r == 0)
        r = viewer_new(node->loop, &node->viewer);
    node->history = history_new();
    return node->history ? r : -ENOMEM;
}

int node_parts_new(struct node *node, uw_error *err)
{
    int r = new_small_parts(node);

    if (r < 0)
        return fail(err, r, "out of memory");
    r = ledger_writer_open(node->writer, err);
    if (r == 0)
        r = loop_worker_new(node->loop, "saver", &node->saver, err);
    if (r == 0)
        r = new_released(node, err);
    if (r == 0)
        r = new_policy(node, err);
    if (r < 0)
        return r;
    return node->opts.cpu ? new_processors(node, err) : node_boards_begin(node, err);
}

void node_parts_free(struct node *node)
{
    outside_free(node->outside);
    loop_worker_free(node->saver);
    processors_free(node->processors);
    released_boards_free(node->released);
    node_policy_free(node->policy);
    viewer_free(node->viewer);
    refusals_free(node->refusals);
    ledger_writer_free(node->writer);
    history_free(node->history);
}
