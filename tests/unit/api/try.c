#include "try.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "node/policy-trial.h"
#include "virtual/virtual-loop.h"

/* ---- node.h, in place of the node's own ---- */

static struct fake *fake_of(struct node *node)
{
    return (struct fake *)(void *)node;
}

const struct node_view *node_look(struct node *node)
{
    struct fake *f = fake_of(node);
    return &f->made.view;
}

int node_board(struct node *node, const char *name, size_t *ret, uw_error *err)
{
    struct fake *f = fake_of(node);
    char index[24];

    for (size_t i = 0; i < f->made.view.n_boards; i++) {
        (void)snprintf(index, sizeof index, "%zu", i);
        if (strcmp(name, index) == 0 || strcmp(name, f->made.info[i].uuid) == 0) {
            *ret = i;
            return 0;
        }
    }
    return fail(err, -ENOENT, "there is no board '%s': 0 to %zu", name,
                f->made.view.n_boards - 1);
}

static int called(struct fake *f, const char *what, uw_error *err)
{
    f->calls++;
    (void)snprintf(f->last, sizeof f->last, "%s", what);
    return f->r < 0 ? fail(err, f->r, "%s", f->text ? f->text : "made-up failure") : 0;
}

static void keep(char *to, size_t size, const char *from)
{
    (void)snprintf(to, size, "%s", from ? from : "");
}

int node_claim(struct node *node, const struct node_who *who,
               const struct node_claim *ask, uint64_t *ret_id, uw_error *err)
{
    struct fake *f = fake_of(node);
    (void)who;

    f->claim = *ask;
    keep(f->board, sizeof f->board, ask->board);
    keep(f->why, sizeof f->why, ask->why);
    keep(f->preset, sizeof f->preset, ask->preset);
    *ret_id = 77;
    return called(f, "claim", err);
}

int node_withdraw(struct node *node, const struct node_who *who, uint64_t id,
                  uw_error *err)
{
    struct fake *f = fake_of(node);
    (void)who;

    f->id = id;
    return called(f, "withdraw", err);
}

int node_job_begin(struct node *node, const struct node_who *who,
                   const struct node_job *ask, uint64_t *ret_id, uw_error *err)
{
    struct fake *f = fake_of(node);
    (void)who;

    f->job = *ask;
    keep(f->name, sizeof f->name, ask->reg.name);
    keep(f->preset, sizeof f->preset, ask->preset);
    memcpy(f->label, ask->reg.label, ask->reg.n_labels * sizeof *f->label);
    *ret_id = 88;
    return called(f, "job_begin", err);
}

int node_job_join(struct node *node, const struct node_who *who,
                  const struct node_job *ask, uint64_t *ret_id, uw_error *err)
{
    struct fake *f = fake_of(node);
    (void)who;
    (void)err;

    keep(f->group, sizeof f->group, ask->reg.group);
    *ret_id = 87;
    return strcmp(f->group, "there") == 0;
}

int node_job_leave(struct node *node, const struct node_who *who, uint64_t id, pid_t pid,
                   uw_error *err)
{
    struct fake *f = fake_of(node);
    (void)who;

    f->id = id;
    f->pid = pid;
    return called(f, "job_leave", err);
}

int node_job_goal(struct node *node, const struct node_who *who, uint64_t id,
                  const struct goal *goal, uw_error *err)
{
    struct fake *f = fake_of(node);
    (void)who;

    f->id = id;
    f->goal[0] = '\0';
    if (goal)
        (void)goal_text(goal, f->goal);
    return called(f, "job_goal", err);
}

int node_job_end(struct node *node, const struct node_who *who, uint64_t id,
                 uw_error *err)
{
    struct fake *f = fake_of(node);
    (void)who;

    f->id = id;
    return called(f, "job_end", err);
}

int node_scheduler_put(struct node *node, const struct node_who *who,
                       const struct scheduler_ask *ask, uint64_t *ret_id, uw_error *err)
{
    struct fake *f = fake_of(node);
    (void)who;

    f->scheduler = *ask;
    keep(f->name, sizeof f->name, ask->reg.name);
    keep(f->why, sizeof f->why, ask->ask);
    keep(f->preset, sizeof f->preset, ask->cls);
    memcpy(f->label, ask->reg.label, ask->reg.n_labels * sizeof *f->label);
    *ret_id = 100;
    int r = called(f, "scheduler_put", err);
    return r < 0 ? r : f->was_there;
}

int node_scheduler_amend(struct node *node, const struct node_who *who, const char *name,
                         const struct scheduler_facts *facts, uw_error *err)
{
    struct fake *f = fake_of(node);
    (void)who;

    f->facts = *facts;
    keep(f->name, sizeof f->name, name);
    memcpy(f->label, facts->label, facts->n_labels * sizeof *f->label);
    return called(f, "scheduler_amend", err);
}

int node_scheduler_end(struct node *node, const struct node_who *who, const char *name,
                       uw_error *err)
{
    struct fake *f = fake_of(node);
    (void)who;

    keep(f->name, sizeof f->name, name);
    return called(f, "scheduler_end", err);
}

int node_release(struct node *node, const struct node_who *who, const char *name,
                 uint64_t hold_off_ns, caps_done_fn fn, void *user, uw_error *err)
{
    struct fake *f = fake_of(node);
    (void)who;

    keep(f->board, sizeof f->board, name);
    f->hold_off_ns = hold_off_ns;
    f->done = fn;
    f->user = user;
    int r = called(f, "release", err);
    if (r == 0 && !f->hold) {
        f->made.board[0].cap.state = CAPS_RELEASED;
        fn(0, "", user);
    }
    return r;
}

int node_take_back(struct node *node, const struct node_who *who, const char *name,
                   uw_error *err)
{
    struct fake *f = fake_of(node);
    (void)who;

    keep(f->board, sizeof f->board, name);
    f->made.board[0].cap.state = CAPS_HOLDING;
    return called(f, "take_back", err);
}

static int report(void *api, const struct routes_report *ask, ledger_report_fn fn,
                  void *user, uw_error *err)
{
    struct fake *f = api;

    f->report = *ask;
    keep(f->report_by, sizeof f->report_by, ask->by);
    f->report_done = fn;
    f->user = user;
    int r = called(f, "report", err);
    if (r == 0 && !f->hold) {
        auto_(json_out_free) struct json_out *o = json_out_new();
        json_out_object(o, NULL);
        json_out_text(o, "by", ask->by ? ask->by : "job");
        json_out_end(o);
        fn(0, o, "", user);
    }
    return r;
}

int node_window_begin(struct node *node, const struct node_who *who, uint64_t *ret_id,
                      uw_error *err)
{
    (void)who;
    *ret_id = 99;
    return called(fake_of(node), "window_begin", err);
}

/* Of 40 s before the view's time; what the last board did is not known. */
static void made_window(const struct fake *f, struct client_window_result *ret)
{
    *ret = (struct client_window_result){
        .begin_ns = 50000000000, .end_ns = 90000000000, .n = f->made.view.n_boards};
    for (size_t i = 0; i < ret->n; i++)
        ret->board[i] = (struct client_window_board){.energy_j = 4000,
                                                     .half_j = 2.5,
                                                     .method = METER_COUNTER,
                                                     .why = METER_WHY_SHORT};
    if (ret->n > 1)
        ret->board[ret->n - 1].r =
            fail(&ret->board[ret->n - 1].error, -ENODATA, "it hung");
}

int node_window_end(struct node *node, const struct node_who *who, uint64_t id,
                    const struct client_window_ask *ask, uw_error *err)
{
    struct fake *f = fake_of(node);
    struct client_window_result result;
    (void)who;

    f->id = id;
    f->window = *ask;
    f->user = ask->user;
    int r = called(f, "window_end", err);
    made_window(f, &result);
    if (r == 0 && !f->hold)
        ask->fn(0, &result, NULL, ask->user);
    return r;
}

int node_window_look(struct node *node, const struct node_who *who, uint64_t id,
                     struct client_window_result *ret, uw_error *err)
{
    struct fake *f = fake_of(node);
    (void)who;

    f->id = id;
    int r = called(f, "window_look", err);
    made_window(f, ret);
    return r < 0 ? r : !f->hold;
}

int node_history(struct node *node, size_t board, struct node_history *h, uw_error *err)
{
    (void)node;
    (void)err;
    h->buf[0] = (struct meter_power){.end_s = 178, .over_s = 178, .power_w = 100};
    h->n = board > 0 ? 0 : 1;
    h->length_s = board > 0 ? 0 : 180;
    return 0;
}

int node_window_powers(struct node *node, const struct node_who *who, uint64_t id,
                       struct client_window_powers *powers, uw_error *err)
{
    struct fake *f = fake_of(node);
    (void)who;

    f->id = id;
    if (powers->board > 0)
        return fail(err, -ENODATA, "it hung");
    powers->buf[0] = (struct meter_power){.end_s = 40, .over_s = 40, .power_w = 100};
    powers->buf[powers->room - 1] =
        (struct meter_power){.end_s = 100040.1234, .over_s = 0.1, .power_w = 300};
    powers->n = powers->room;
    return called(f, "window_powers", err);
}

int node_window_stop(struct node *node, const struct node_who *who, uint64_t id,
                     uint64_t boot_ns, uw_error *err)
{
    struct fake *f = fake_of(node);
    (void)who;

    f->stopped_id = id;
    f->stopped_ns = boot_ns;
    f->n_stopped++;
    return id == 404 ? fail(err, -ENOENT, "there is no window 404")
                     : called(f, "window_stop", err);
}

size_t node_window_processors(struct node *node, bool exact,
                              const struct client_window_result *of,
                              struct processors_energy ret[LEDGER_DOMAINS])
{
    (void)node;
    (void)of;
    ret[0] = (struct processors_energy){"package-0", true, exact ? 600.5 : 600, 4};
    ret[1] = (struct processors_energy){.name = "dram-0"};
    return 2;
}

int node_window_drop(struct node *node, const struct node_who *who, uint64_t id,
                     uw_error *err)
{
    struct fake *f = fake_of(node);
    (void)who;

    f->id = id;
    f->n_dropped++;
    return called(f, "window_drop", err);
}

int node_policy_would(struct node *node, const struct node_who *who, const char *text,
                      struct policy_trial **ret, uw_error *err)
{
    struct fake *f = fake_of(node);
    (void)who;

    keep(f->why, sizeof f->why, text);
    int r = called(f, "policy", err);
    if (r < 0)
        return r;
    *ret = calloc(1, sizeof **ret);
    if (!*ret)
        return fail(err, -ENOMEM, "out of memory");
    (*ret)->claim[0][0] = (struct engine_claim){
        .mw = 225000, .who = "rule dirty-grid", .why = "carbon 430 g/kWh"};
    return 0;
}

void policy_trial_free(struct policy_trial *t)
{
    free(t);
}

int node_signal_set(struct node *node, const struct node_who *who, const char *name,
                    const struct node_signal *ask, uw_error *err)
{
    struct fake *f = fake_of(node);
    (void)who;

    f->signal = *ask;
    keep(f->name, sizeof f->name, name);
    keep(f->unit, sizeof f->unit, ask->unit);
    return called(f, "signal_set", err);
}

int node_signal_unset(struct node *node, const struct node_who *who, const char *name,
                      uw_error *err)
{
    struct fake *f = fake_of(node);
    (void)who;

    keep(f->name, sizeof f->name, name);
    return called(f, "signal_unset", err);
}

int node_signals(struct node *node, const struct signal_view **ret, size_t *ret_n,
                 uw_error *err)
{
    const struct fake *f = fake_of(node);
    (void)err;

    *ret = f->made.view.signal;
    *ret_n = f->made.view.n_signals;
    return 0;
}

static int reload(void *api, uw_error *err)
{
    return called(api, "reload", err);
}

static void ask(void *auth, struct http_exchange *x, auth_fn fn, void *user)
{
    struct fake *f = auth;

    if (f->refuse)
        http_fail(x, f->refuse, "refused by the test");
    else
        fn(x, &f->who, user);
}

void fake_as(struct fake *f, enum fake_who who)
{
    static const struct {
        const char *name;
        uid_t uid;
        bool admin, may_claim, local;
        uint64_t only_job;
    } rows[] = {
        [AS_ADMIN] = {"user root", 0, true, true, true, 0},
        [AS_USER1] = {"user user1", 1001, false, true, true, 0},
        [AS_STRANGER] = {"user nobody", 4711, false, true, true, 0},
        [AS_READER] = {"token grafana", (uid_t)-1, false, false, false, 0},
        [AS_JOB_TOKEN] = {"token job", 1002, false, true, false, 102},
    };

    f->who = (struct auth_who){.node = {.uid = rows[who].uid,
                                        .admin = rows[who].admin,
                                        .may_claim = rows[who].may_claim,
                                        .only_job = rows[who].only_job},
                               .local = rows[who].local};
    (void)snprintf(f->who.name, sizeof f->who.name, "%s", rows[who].name);
    f->who.node.name = f->who.name;
}

int fake_new(struct fake *f, size_t boards, size_t jobs)
{
    struct routes_opts opts = {.node = (struct node *)(void *)f,
                               .report = report,
                               .reload = reload,
                               .api = f,
                               .ask = ask,
                               .auth = f,
                               .metrics = true,
                               .per_job = true,
                               .max_jobs = 64};

    memset(f, 0, sizeof *f);
    made_init(&f->made, boards, jobs);
    fake_as(f, AS_ADMIN);
    int r = loop_new_virtual(100 * 1000000000ull, 1760000100, &f->loop, NULL);
    opts.loop = f->loop;
    return r < 0 ? r : routes_new(&opts, &f->routes, NULL);
}

void fake_free(struct fake *f)
{
    routes_free(f->routes);
    loop_free(f->loop);
}

struct http_try *fake_ask(struct fake *f, const char *method, const char *target,
                          const char *body)
{
    static const struct http_field json[] = {{"Content-Type", "application/json"},
                                             {NULL, NULL}};
    struct http_try_ask a = {.method = method,
                             .target = target,
                             .body = body,
                             .headers = body ? json : NULL,
                             .peer = {.local = f->who.local, .uid = f->who.node.uid}};
    struct http_try *t = NULL;

    return http_try_new(f->loop, routes_handle, f->routes, &a, &t) == 0 ? t : NULL;
}
