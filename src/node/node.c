#include "node/node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "base/utf8.h"
#include "board/selection.h"
#include "node/accounting.h"
#include "node/capped-by.h"
#include "node/node-inside.h"

enum {
    HISTORY_S = 180, /* of a daemon's meter: windows are asked for sooner */
    WAKE_W = 5,      /* a rise above the idle power that shows work */
    REOPEN_S = 10,   /* between attempts to open boards */
    SILENT_S = 30,   /* before boards are reopened because of a silent one */
    REOPENS_MAX = 9, /* doublings of that delay: up to 4 h */
    END_S = 5,       /* deadline of node_end() */
    MARK_S = 5,      /* between checks for a reload of the driver */
};

static int start_boards(struct node *node, uw_error *err);

const struct gpu_info *node_info(const struct node *node, size_t board)
{
    return board_view(boards_at(node->boards, board))->info;
}

void node_listen(struct node *node, node_listen_fn fn, void *user)
{
    node->listen = fn;
    node->listen_user = user;
}

void node_tell(struct node *node, enum node_event event, const void *what)
{
    if (node->listen)
        node->listen(event, what, node->listen_user);
}

uint64_t node_next_job(void *user)
{
    const struct node *node = user;

    return node->opts.next_job ? node->opts.next_job(node->opts.user) : 0;
}

/* ---- once a second ---- */

/* Looks for new processes after a rise of power or utilization on a board without a job.
 */
static void watch_rest(struct node *node, size_t i)
{
    struct node_rest *rest = &node->rest[i];
    const struct gpu_sample *s = &sampler_board(node->sampler[i], 0)->last;
    struct maybe power = viewer_power(node->viewer, i, 0);
    bool busy = s->has & GPU_HAS_UTIL && s->util_gpu > 0;

    if (power.known) {
        if (rest->power_w > 0 && power.v > 1.15 * rest->power_w + WAKE_W)
            roster_look(node->roster, i);
        rest->power_w = power.v;
    }
    if (busy && !rest->busy)
        roster_look(node->roster, i);
    rest->busy = busy;
}

/* Sets the sampling rate of a board by its jobs and its cap. */
static void pace(struct node *node, size_t i)
{
    enum sampler_rate rate = SAMPLER_REST;

    if (roster_in_use(node->roster, i)) {
        rate = node_is_searched(node, i) ? SAMPLER_SEARCH : SAMPLER_JOB;
        node->rest[i].power_w = 0;
        node->rest[i].busy = false;
    } else {
        watch_rest(node, i);
    }
    if (node->opts.runs_job || (node->measured >> i & 1))
        rate = SAMPLER_ALL;
    sampler_rate(node->sampler[i], 0, rate, caps_state(node->caps, i) != CAPS_FREE);
}

/* Whether a board that was silent at opening answers now: its limits are unknown. */
static bool has_come_back(struct node *node)
{
    for (size_t i = 0; i < node->n; i++) {
        const struct board_view *v = board_view(boards_at(node->boards, i));
        const struct sampler_now *now = sampler_board(node->sampler[i], 0);
        if (v->has_first || v->has_limits || now->failures || !now->last.has)
            continue;
        log_event(LOG_LEVEL_NOTICE, LOG_EVENT_BOARD_BACK, "gpu=%u uuid=%s",
                  v->info->index, v->info->uuid);
        ledger_writer_event(node->writer, LEDGER_EVENT_BOARD_BACK, i, (uid_t)-1,
                            "the board answers");
        return true;
    }
    return false;
}

static bool was_reloaded(struct node *node)
{
    if (!boards_outdated(node->boards))
        return false;
    log_event(LOG_LEVEL_WARNING, LOG_EVENT_DRIVER_RELOAD, "was=%s",
              log_quote(boards_driver_mark(node->boards)).text);
    ledger_writer_event(node->writer, LEDGER_EVENT_DRIVER_RELOAD, SIZE_MAX, (uid_t)-1,
                        boards_driver_mark(node->boards));
    return true;
}

/* Reopens all boards from the ledger, as after a restart: after a reload of the driver,
 * or when a silent board answers.  Not for a private node, which has no ledger: its
 * claims and claimants would be lost.
 */
static bool reopen(struct node *node, uint64_t now_ns)
{
    if (node->ending || node->opts.private || s_between(node->marked_ns, now_ns) < MARK_S)
        return false;
    node->marked_ns = now_ns;
    if (!was_reloaded(node) && !has_come_back(node))
        return false;
    loop_timer_set(node->reopen, 0, 0);
    return true;
}

static void note_policy(struct node *node, double dt_s)
{
    for (size_t i = 0; i < job_records_count(node->records); i++) {
        struct job_record *rec = job_records_at(node->records, i);
        const struct job_entry *job =
            rec->ended_ns ? NULL : roster_find(node->roster, rec->id);
        if (job)
            capped_by_tick(&rec->capped, node->caps, job->boards, dt_s);
    }
}

static int on_tick(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct node *node = user;
    double dt = s_between(node->ticked_ns, now_ns);
    (void)timer;

    if (reopen(node, now_ns))
        return 0;

    node->ticked_ns = now_ns;
    viewer_tick(node->viewer, dt);
    bool hot = node->policy && node_policy_is_hot(node->policy);
    if (node->phases)
        phase_watch_hurry(node->phases,
                          node->policy && node_policy_in_force(node->policy));
    for (size_t i = 0; i < node->n; i++) {
        sampler_watch_heat(node->sampler[i], 0, hot);
        if (!released_boards_is_away(node->released, i))
            pace(node, i);
    }
    ledger_writer_tick(node->writer);
    if (node->outside)
        outside_tick(node->outside);
    node_caps_tick(node);
    released_boards_step(node->released);
    job_records_tick(node->records, now_ns);
    node_nested_tick(node);
    if (node->policy) {
        note_policy(node, dt);
        node_policy_changed(node->policy);
    }
    node_tell(node, NODE_EVENT_SAMPLES, NULL);
    return 0;
}

/* ---- boards, and the parts that depend on them ---- */

static void close_boards(struct node *node)
{
    loop_timer_free(take(node->tick));
    if (node->released)
        released_boards_close(node->released);
    if (node->viewer)
        viewer_close(node->viewer);
    node->open = false;
    claim_watches_free(take(node->watches));
    client_windows_free(take(node->windows));
    processors_stop(node->processors);
    node_jobs_stop(node);
    if (node->caps)
        caps_use_actuator(node->caps, NULL);
    actuator_link_free(take(node->link));
    if (node->policy)
        node_policy_close(node->policy);
    budget_free(take(node->budget));
    caps_free(take(node->caps));
    for (size_t i = 0; i < node->n; i++)
        sampler_free(take(node->sampler[i]));
    window_worker_free(take(node->window_worker));
    node->n = 0;
    if (node->writer)
        ledger_writer_close(node->writer);
    boards_free(take(node->boards));
}

static int start_samplers(struct node *node, uw_error *err)
{
    size_t n = boards_count(node->boards);

    memset(node->rest, 0, sizeof node->rest);
    node->silent = 0;
    if (viewer_room(node->viewer, n) < 0)
        return fail(err, -ENOMEM, "out of memory");
    int r = window_worker_new(node->loop, &node->window_worker, err);
    for (size_t i = 0; i < n && r >= 0; i++) {
        struct board *b = boards_at(node->boards, i);
        const struct config_sampling *c = &node->config.sampling;
        struct sampler_opts opts = {.period_ns = c->job_ns,
                                    .rest_ns = c->rest_ns,
                                    .search_ns = c->search_ns,
                                    .seed = i + 1,
                                    .history_s = node->opts.private ? 0 : HISTORY_S,
                                    .folds = node->window_worker};
        if (node->opts.runs_job)
            opts = (struct sampler_opts){.seed = i + 1, .folds = node->window_worker};
        r = sampler_new(node->loop, &b, 1, &opts, &node->sampler[i], err);
        if (r < 0)
            return r;
        node->n = i + 1;
        const struct board_view *v = board_view(b);
        bool silent = v->error.text[0] && !v->away;
        node->silent += silent;
        if (silent)
            log_event(LOG_LEVEL_WARNING, LOG_EVENT_BOARD_SILENT,
                      "gpu=%u uuid=%s reason=%s", v->info->index, v->info->uuid,
                      log_quote(v->error.text).text);
    }
    return r;
}

/* For a board that was silent at opening, not even the UUID is known: reopens all boards
 * later, with a delay that doubles each time.
 */
static void plan_reopen(struct node *node)
{
    if (node->silent == 0 || node->opts.private) {
        node->reopens = 0;
        return;
    }
    uint64_t wait_s = (uint64_t)SILENT_S << node->reopens;
    if (node->reopens < REOPENS_MAX)
        node->reopens++;
    loop_timer_set(node->reopen, loop_now_ns(node->loop) + wait_s * NS_PER_S, 0);
}

/* Starts the parts that depend on the boards, from the ledger to the actuator. */
static int start_parts(struct node *node, uw_error *err)
{
    struct ledger_domain domain[LEDGER_DOMAINS];
    size_t n_domains = processors_domains(node->processors, domain);
    uint64_t first_claim = 0, first_job = 0;
    int r = ledger_writer_boards(node->writer, node->boards, domain, n_domains,
                                 node->before, err);
    struct ledger *ledger = ledger_writer_ledger(node->writer);

    if (r == 0 && ledger) {
        first_claim = ledger_first_claim(ledger);
        first_job = ledger_first_job(ledger);
    }
    if (r == 0)
        r = node_caps_start(node, first_claim, err);
    /* Reopening with other boards continues even if the budget is too small. */
    if (r == 0 && !node->ready)
        r = budget_check(node->caps, node->n, node->config.budget_mw, err);
    if (r == 0)
        r = node_jobs_start(node, first_job, err);
    if (r == 0)
        r = released_boards_open(node->released, node->boards, node->caps, node->sampler,
                                 err);
    if (r == 0)
        r = node_take_over(node, err);
    if (r == 0)
        r = ledger_writer_start(node->writer, err);
    return r == 0 ? node_actuator_start(node, err) : r;
}

static int use_boards(struct node *node, uw_error *err)
{
    uint64_t now = loop_now_ns(node->loop);
    int r = ledger_writer_open(node->writer, err);

    if (r == 0)
        r = start_samplers(node, err);
    if (r == 0)
        r = start_parts(node, err);
    struct client_windows_opts windows = {.loop = node->loop,
                                          .sampler = node->sampler,
                                          .n = node->n,
                                          .whole = node->opts.runs_job,
                                          .sparse = !node->opts.private};
    if (r == 0)
        r = client_windows_new(&windows, &node->windows, err);
    if (r < 0)
        return r;
    node->ticked_ns = now;
    node->open = true;
    viewer_open(node->viewer,
                &(struct viewer_sources){.boards = node->boards,
                                         .sampler = node->sampler,
                                         .caps = node->caps,
                                         .released = node->released,
                                         .roster = node->roster,
                                         .records = node->records,
                                         .searches = node->searches,
                                         .attribution = node->attribution,
                                         .phases = node->phases,
                                         .charges = ledger_writer_charges(node->writer)});
    viewer_drop(node->viewer);
    processors_start(node->processors, node->roster, node->n,
                     node->config.node.interval_ns);
    plan_reopen(node);
    if (node->policy)
        r = node_policy_open(node->policy, node->caps, node->n, err);
    if (r < 0)
        return r;
    node_scheduler_opened(node);
    const uint64_t tick = NODE_TICK_MS * NS_PER_MS;
    uint64_t first = node->opts.private /* each round wakes its loop */
                         ? now + tick
                         : (now / tick + 1) * tick + NODE_TICK_AT_MS * NS_PER_MS;
    r = loop_timer_new(node->loop, first, tick, on_tick, node, &node->tick, err);
    if (r == 0)
        loop_timer_slack(node->tick, NODE_TICK_SLACK_MS * NS_PER_MS);
    return r;
}

static int on_reopen(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct node *node = user;
    uw_error err = {""};
    (void)timer;
    (void)now_ns;

    viewer_keep(node->viewer);
    if (ledger_writer_is_failing(node->writer))
        node_restate_jobs(node); /* the rows kept in memory must hold all jobs */
    close_boards(node);
    if (start_boards(node, &err) < 0)
        loop_timer_set(node->reopen, loop_now_ns(node->loop) + REOPEN_S * NS_PER_S, 0);
    return 0;
}

/* There are no boards yet: logs each reason once, and tries again later. */
static void no_boards(struct node *node, const uw_error *err)
{
    if (strcmp(node->boards_error.text, err->text) != 0)
        log_event(LOG_LEVEL_WARNING, LOG_EVENT_NO_BOARDS, "reason=%s",
                  log_quote(err->text).text);
    node->boards_error = *err;
    loop_timer_set(node->reopen, loop_now_ns(node->loop) + REOPEN_S * NS_PER_S, 0);
}

/* For a private node: keeps the boards that its caller names. */
static int choose_own(struct node *node, struct boards *set, uw_error *err)
{
    bool use[BOARDS_MAX] = {false};

    if (node->opts.choose)
        return node->opts.choose(set, node->opts.user, err);
    int r = selection_named(set, node->opts.gpus, node->opts.visible, use, err);
    if (r < 0 || r == SELECTION_E_OPEN)
        return r < 0 ? r : 0;
    if (r == SELECTION_E_UNSURE && node->opts.note)
        node->opts.note(0, err->text, true, node->opts.user);
    boards_keep_these(set, use);
    return 0;
}

static int choose(struct node *node, struct boards *set, uw_error *err)
{
    const char *only = node->config.boards.only;

    if (!node->opts.private)
        return only[0] ? boards_keep(set, only, err) : 0;
    int r = choose_own(node, set, err);
    if (r == 0 && boards_count(set) == 0)
        return fail(err, -ENODEV, "no boards here");
    if (r == 0)
        node->opts.simulated = board_view(boards_at(set, 0))->info->simulated;
    return r;
}

static int on_boards(struct boards *set, int r, const uw_error *err, void *user)
{
    struct node *node = user;
    uw_error why = {"no board"};
    int result = 0;

    if (err && err->text[0])
        why = *err;
    if (r == 0)
        r = choose(node, set, &why);
    if (r == -ESTALE || r == -ENOTSUP)
        (void)released_boards_reject(node->released, why.text);
    if (r != 0 && node->opts.private) {
        result = r > 0 ? -ENODEV : r;
    } else if (r != 0) {
        no_boards(node, &why);
    } else if ((result = use_boards(node, &why)) == 0) {
        node->boards_error = (uw_error){""};
        log_event(LOG_LEVEL_INFO, LOG_EVENT_BOARDS, "count=%zu simulated=%s", node->n,
                  node->opts.simulated ? "true" : "false");
    }
    if (node->ready)
        return result;
    node->ready = true;
    return node->opts.on_ready(node, result, &why, node->opts.user);
}

static int start_boards(struct node *node, uw_error *err)
{
    struct gpu_open_opts opts = node->opts.gpu;

    released_boards_gpu_opts(node->released, &opts);
    return boards_open(node->loop, node->opts.backend, &opts, on_boards, node,
                       &node->boards, err);
}

int node_boards_begin(struct node *node, uw_error *err)
{
    return start_boards(node, err);
}

bool node_is_fed(const struct node *node)
{
    uint64_t now = loop_now_ns(node->loop);

    for (size_t i = 0; i < node->n; i++)
        if (!sampler_fed(node->sampler[i], now))
            return false;
    return node->open && roster_has_looked(node->roster);
}

struct boards *node_boards(const struct node *node)
{
    return node->open ? node->boards : NULL;
}

/* ---- beginning and end ---- */

static void set_opts(struct node *node, const struct node_opts *opts)
{
    node->opts = *opts;
    node->config = *opts->config;
    node->opts.config = &node->config;
    if (opts->gpu.source) {
        (void)snprintf(node->source, sizeof node->source, "%s", opts->gpu.source);
        node->opts.gpu.source = node->source;
    }
    if (node->config.node.hostname[0])
        memcpy(node->hostname, node->config.node.hostname, sizeof node->hostname);
    else if (gethostname(node->hostname, sizeof node->hostname - 1) < 0)
        (void)snprintf(node->hostname, sizeof node->hostname, "localhost");
    utf8_mend(node->hostname);
    node->began_ns = loop_now_ns(opts->loop);
    node->config_loads = 1;
}

int node_new(const struct node_opts *opts, struct node **ret, uw_error *err)
{
    auto_(node_free) struct node *node = calloc(1, sizeof *node);

    if (!node)
        return fail(err, -ENOMEM, "out of memory");
    node->loop = opts->loop;
    set_opts(node, opts);
    int r =
        loop_timer_new(node->loop, UINT64_MAX, 0, on_reopen, node, &node->reopen, err);
    if (r == 0)
        r = node_accounting_start(&node->config.accounting, &node->accounting, err);
    if (r == 0)
        r = node_parts_new(node, err);
    if (r < 0)
        return r;
    *ret = take(node);
    return 0;
}

/* The node has ended, or its deadline has passed. */
static int ended(struct node *node)
{
    int (*fn)(struct node * node, void *user) = node->on_end;

    node->on_end = NULL;
    return fn ? fn(node, node->end_user) : 0;
}

static int on_end_due(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    (void)now_ns;

    return ended(user);
}

static int end_part(struct node *node)
{
    if (--node->end_waits > 0)
        return 0;
    loop_timer_set(node->end_timer, 0, 0); /* never called from inside node_end() */
    return 0;
}

static void on_caps_end(int r, const char *text, void *user)
{
    struct node *node = user;

    if (r < 0)
        log_event(LOG_LEVEL_ERROR, LOG_EVENT_NOT_RESTORED, "reason=%s",
                  log_quote(text).text);
    (void)end_part(node);
}

static int on_attributed(struct attribution *b, void *user)
{
    (void)b;
    return end_part(user);
}

int node_end(struct node *node, int (*fn)(struct node *node, void *user), void *user)
{
    int r = loop_timer_new(node->loop, loop_now_ns(node->loop) + END_S * NS_PER_S, 0,
                           on_end_due, node, &node->end_timer, NULL);

    if (r < 0)
        return r;
    node->on_end = fn;
    node->end_user = user;
    node->ending = true;
    node->end_waits = 1;
    if (node->policy)
        node_policy_rest(node->policy);
    released_boards_end(node->released);
    if (node->open) {
        ledger_writer_event(node->writer, LEDGER_EVENT_STOP, SIZE_MAX, (uid_t)-1,
                            node->opts.version);
        if (ledger_writer_is_on(node->writer)) {
            /* The file may have been replaced: the last rows restate everything. */
            node_restate_jobs(node);
            node_restate_claims(node);
        }
        node->end_waits++;
        if (node->leave_caps || caps_end(node->caps, on_caps_end, node) < 0)
            node->end_waits--;
        node->end_waits++;
        if (attribution_end(node->attribution, on_attributed, node) < 0)
            node->end_waits--;
        node->end_waits += processors_end(node->processors, on_attributed, node);
    }
    return end_part(node);
}

void node_leave_caps(struct node *node)
{
    node->leave_caps = true;
}

void node_free(struct node *node)
{
    if (!node)
        return;
    node->ending = true;
    if (node->released)
        released_boards_end(node->released);
    close_boards(node);
    node_parts_free(node);
    accounting_free(node->accounting);
    loop_timer_free(node->reopen);
    loop_timer_free(node->end_timer);
    free(node);
}

struct caps *node_caps(const struct node *node)
{
    return node->caps;
}

struct sampler *node_sampler(const struct node *node, size_t board)
{
    return board < node->n ? node->sampler[board] : NULL;
}

int node_history(struct node *node, size_t board, struct node_history *h, uw_error *err)
{
    uint64_t now = loop_now_ns(node->loop), from = now - ns_of_s(HISTORY_S);
    struct sampler *s = node_sampler(node, board); /* NULL while boards are closed */
    struct meter_state state;

    h->n = 0;
    h->length_s = 0;
    if (!s)
        return 0;
    struct meter *m = sampler_meter(s, 0);
    uint64_t since = meter_since(m);
    if (since == UINT64_MAX)
        return 0;
    meter_state(m, &state);
    from = now < ns_of_s(HISTORY_S) || from < since ? since : from;
    int r = state.last_ns > from
                ? meter_powers(m, from, state.last_ns, h->buf, h->room, &h->n, err)
                : -ENODATA;
    if (r == 0)
        h->length_s = s_between(from, now);
    return r == -ENODATA ? 0 : r;
}

void node_measure(struct node *node, uint64_t boards)
{
    node->measured = boards;
    for (size_t i = 0; node->open && i < node->n; i++)
        pace(node, i);
}

int node_configure(struct node *node, const struct node_config *config, uw_error *err)
{
    auto_(accounting_free) struct accounting *accounting = NULL;
    struct policy_file *policy = NULL;
    int r = node->open ? budget_check(node->caps, node->n, config->budget_mw, err) : 0;

    if (r == 0)
        r = node_accounting_read(&config->accounting, &accounting, err);
    if (r == 0)
        r = node_policy_file(node, config->policy_file, &policy, err);
    if (r == 0)
        r = node_policy_take(node, policy, config->policy_file, err);
    if (r < 0)
        return r;
    accounting_free(node->accounting);
    node->accounting = take(accounting);
    node_config_take_live(&node->config, config);
    config = &node->config;
    node->config_loads++;
    node->config_error[0] = '\0';
    node_caps_configure(node);
    ledger_writer_configure(node->writer);
    processors_period(node->processors, config->boards.rapl_ns);
    for (size_t i = 0; i < node->n; i++)
        sampler_periods(node->sampler[i], config->sampling.job_ns,
                        config->sampling.rest_ns, config->sampling.search_ns);
    if (node->open)
        r = node_actuator_start(node, err);
    ledger_writer_event(node->writer, LEDGER_EVENT_CONFIG, SIZE_MAX, (uid_t)-1, "loaded");
    return r;
}

void node_config_failed(struct node *node, const char *text)
{
    node->config_failures++;
    (void)snprintf(node->config_error, sizeof node->config_error, "%s", text);
    ledger_writer_event(node->writer, LEDGER_EVENT_CONFIG, SIZE_MAX, (uid_t)-1, text);
}
