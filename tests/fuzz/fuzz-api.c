/* Requests of any content through routes and bodies, over a node that takes what it is
 * asked only where it is of the form that node.h promises.  "WHO METHOD TARGET\nBODY".
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/routes.h"
#include "base/auto.h"
#include "base/error.h"
#include "fuzz.h"
#include "http-try.h"
#include "node/policy-trial.h"
#include "virtual/virtual-loop.h"

static struct gpu_info info = {.index = 0, .uuid = "GPU-1", .name = "x"};
static struct claims none;
static struct view_board boards[1];
static struct job_entry entry = {.id = 3, .source = JOB_RUN, .name = "n", .uid = 7};
static struct view_job jobs[1];
static struct node_view view;

const struct node_view *node_look(struct node *node)
{
    (void)node;
    return &view;
}

int node_board(struct node *node, const char *name, size_t *ret, uw_error *err)
{
    (void)node;
    must(*name && strlen(name) < 256);
    *ret = 0;
    return strcmp(name, "0") == 0 || strcmp(name, info.uuid) == 0
               ? 0
               : fail(err, -ENOENT, "no board '%s'", name);
}

/* The one of them that is set is sound. */
static void must_cap(const struct cap_arg *cap)
{
    must((cap->mw > 0) != (cap->percent > 0) && cap->percent == cap->percent);
}

static bool any_cap(const struct cap_arg *cap)
{
    return cap->mw > 0 || cap->percent != 0;
}

/* A claim is on the cap, by a preset or on the SM clock, one of them. */
static void must_claim(const struct node_claim *ask)
{
    must(!ask->preset || (*ask->preset && strlen(ask->preset) < POLICY_PRESET_NAME));
    if (ask->clock_mhz > 0 || ask->preset)
        must(!any_cap(&ask->cap) && !(ask->clock_mhz > 0 && ask->preset));
    else
        must_cap(&ask->cap);
}

int node_claim(struct node *node, const struct node_who *who,
               const struct node_claim *ask, uint64_t *ret_id, uw_error *err)
{
    (void)node;
    (void)who;
    (void)err;
    must(ask->board || ask->job);
    must(ask->kind >= CLAIM_SOFT && ask->kind <= CLAIM_HARD && ask->why && ask->pid >= 0);
    must(strlen(ask->why) < CLAIM_TEXT);
    must_claim(ask);
    *ret_id = 1;
    (void)fuzz_say("", "claim %u mW %g %% %u MHz %s for %g s: ", ask->cap.mw,
                   ask->cap.percent, ask->clock_mhz, ask->preset ? ask->preset : "-",
                   (double)ask->ttl_ns / 1e9);
    return 0;
}

int node_withdraw(struct node *node, const struct node_who *who, uint64_t id,
                  uw_error *err)
{
    (void)node;
    (void)who;
    (void)err;
    must(id > 0);
    return id & 1 ? 0 : -ENOENT;
}

int node_job_goal(struct node *node, const struct node_who *by, uint64_t id,
                  const struct goal *goal, uw_error *err)
{
    char form[GOAL_TEXT_MAX];

    (void)fuzz_say("", "goal %s: ", goal ? goal_text(goal, form) : "-");
    return node_withdraw(node, by, id, err);
}

int node_job_join(struct node *node, const struct node_who *by,
                  const struct node_job *ask, uint64_t *ret_id, uw_error *err)
{
    (void)node;
    (void)by;
    (void)err;

    *ret_id = ask->before ? ask->before : 1;
    if (ask->reg.group) {
        must(ask->reg.group[0] && strlen(ask->reg.group) < JOB_GROUP && ask->reg.pid);
        (void)fuzz_say("", "group %s: ", ask->reg.group);
    }
    return ask->before != 0;
}

int node_job_leave(struct node *node, const struct node_who *by, uint64_t id, pid_t pid,
                   uw_error *err)
{
    (void)fuzz_say("", "pid %ld: ", (long)pid);
    return node_withdraw(node, by, id, err);
}

int node_job_end(struct node *node, const struct node_who *by, uint64_t id, uw_error *err)
{
    return node_withdraw(node, by, id, err);
}

static void must_label(const struct label *l)
{
    must(memchr(l->key, 0, LABEL_KEY) && memchr(l->value, 0, LABEL_VALUE) && l->key[0]);
}

int node_scheduler_put(struct node *node, const struct node_who *who,
                       const struct scheduler_ask *ask, uint64_t *ret_id, uw_error *err)
{
    (void)node;
    (void)who;
    (void)err;

    must(strncmp(ask->reg.name, "slurm:", 6) == 0 && ask->reg.name[6] >= '1' &&
         strlen(ask->reg.name) <= 16);
    must(ask->n_minors <= SCHEDULER_MINORS && strlen(ask->ask) < JOB_ASK &&
         ask->reg.n_labels <= LABELS_MAX && ask->reg.uid != (uid_t)-1);
    must(!ask->cls || strlen(ask->cls) < JOB_CLASS);
    for (size_t i = 0; i < ask->reg.n_labels; i++)
        must_label(&ask->reg.label[i]);
    *ret_id = entry.id;
    (void)fuzz_say("", "%s, %zu boards, '%s': ", ask->reg.name, ask->n_minors, ask->ask);
    return 0;
}

int node_scheduler_amend(struct node *node, const struct node_who *who, const char *name,
                         const struct scheduler_facts *facts, uw_error *err)
{
    (void)node;
    (void)who;
    (void)err;

    must(strncmp(name, "slurm:", 6) == 0 && name[6] >= '1' && strlen(name) <= 16);
    must(facts->n_labels <= LABELS_MAX);
    must(facts->for_ns <= FACTS_FOR_MAX_S * 1000000000ull);
    for (size_t i = 0; i < facts->n_labels; i++)
        must_label(&facts->label[i]);
    (void)fuzz_say("", "amend %s, %zu labels: ", name, facts->n_labels);
    return 0;
}

int node_scheduler_end(struct node *node, const struct node_who *who, const char *name,
                       uw_error *err)
{
    (void)node;
    (void)who;
    (void)err;
    (void)fuzz_say("", "end %s: ", name);
    return 0;
}

int node_window_drop(struct node *node, const struct node_who *by, uint64_t id,
                     uw_error *err)
{
    return node_withdraw(node, by, id, err);
}

int node_job_begin(struct node *node, const struct node_who *who,
                   const struct node_job *ask, uint64_t *ret_id, uw_error *err)
{
    const struct roster_register *reg = &ask->reg;
    (void)node;
    (void)err;

    must(reg->name && strlen(reg->name) < JOB_NAME && reg->n_labels <= LABELS_MAX);
    must(reg->boards <= 1 && reg->pid >= 0 && reg->uid != (uid_t)-1 &&
         ask->page_fd == -1);
    must(who->admin || reg->uid == who->uid);
    for (size_t i = 0; i < reg->n_labels; i++)
        must_label(&reg->label[i]);
    if (any_cap(&ask->cap))
        must_cap(&ask->cap);
    *ret_id = 2;
    (void)fuzz_say("", "job '%s', %zu labels, %u mW: ", reg->name, reg->n_labels,
                   ask->cap.mw);
    return 0;
}

int node_release(struct node *node, const struct node_who *who, const char *name,
                 uint64_t hold_off_ns, caps_done_fn fn, void *user, uw_error *err)
{
    (void)node;
    (void)who;
    (void)name;
    (void)err;
    fn(hold_off_ns > 1000000000 ? -EBUSY : 0, "it hangs", user);
    return 0;
}

int node_take_back(struct node *node, const struct node_who *who, const char *name,
                   uw_error *err)
{
    (void)node;
    (void)who;
    (void)name;
    (void)err;
    return 0;
}

/* Answers that the node gives once the call is over. */
static struct {
    client_window_fn window;
    ledger_report_fn report;
    void *user;
} waits;

int node_window_begin(struct node *node, const struct node_who *who, uint64_t *ret_id,
                      uw_error *err)
{
    (void)node;
    (void)who;
    (void)err;
    *ret_id = 4;
    return 0;
}

int node_window_end(struct node *node, const struct node_who *who, uint64_t id,
                    const struct client_window_ask *ask, uw_error *err)
{
    (void)node;
    (void)who;
    if (id != 4)
        return fail(err, -ENOENT, "no window %llu", (unsigned long long)id);
    waits.window = ask->fn;
    waits.user = ask->user;
    return 0;
}

static const struct client_window_result window = {
    1000000000, 3000000000, 1, {{.energy_j = 5, .method = METER_COUNTER}}};

int node_window_look(struct node *node, const struct node_who *who, uint64_t id,
                     struct client_window_result *ret, uw_error *err)
{
    (void)node;
    (void)who;
    (void)err;
    *ret = window;
    return id == 4;
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
    (void)node;
    (void)who;
    (void)err;
    for (size_t i = 0; i < powers->room; i++)
        powers->buf[i] = (struct meter_power){(double)i, 1, 5};
    powers->n = powers->room;
    return id == 4 ? 0 : -ENODATA;
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

int node_window_stop(struct node *node, const struct node_who *who, uint64_t id,
                     uint64_t boot_ns, uw_error *err)
{
    (void)node;
    (void)who;
    must(id > 0 && boot_ns <= INT64_MAX);
    (void)fuzz_say("", "stop %llu at %llu: ", (unsigned long long)id,
                   (unsigned long long)boot_ns);
    return id == 4 ? 0 : fail(err, -ENOENT, "no window %llu", (unsigned long long)id);
}

static int report(void *node, const struct routes_report *ask, ledger_report_fn fn,
                  void *user, uw_error *err)
{
    (void)node;
    (void)err;
    (void)fuzz_say("", "report by %s: ", ask->by ? ask->by : "-");
    waits.report = fn;
    waits.user = user;
    return 0;
}

int node_signals(struct node *node, const struct signal_view **ret, size_t *ret_n,
                 uw_error *err)
{
    (void)node;
    (void)err;

    *ret = view.signal;
    *ret_n = view.n_signals;
    return 0;
}

int node_policy_would(struct node *node, const struct node_who *who, const char *text,
                      struct policy_trial **ret, uw_error *err)
{
    (void)node;
    (void)who;
    (void)ret;
    (void)fuzz_say("", "policy of %zu bytes: ", strlen(text));
    return fail(err, -EAGAIN, "no GPU is open (yet)");
}

void policy_trial_free(struct policy_trial *t)
{
    (void)t;
}

int node_signal_set(struct node *node, const struct node_who *who, const char *name,
                    const struct node_signal *ask, uw_error *err)
{
    char shown[SIGNAL_SHOWN];
    (void)node;
    (void)who;
    (void)err;

    must(*name && ask->unit && strlen(ask->unit) < SIGNAL_UNIT);
    must(ask->value.type != POLICY_NUMBER || ask->value.number == ask->value.number);
    must(ask->value.type != POLICY_TEXT || ask->value.text[0]);
    (void)fuzz_say("", "%s for %g s: ", signal_value_show(&ask->value, ask->unit, shown),
                   (double)ask->for_ns / 1e9);
    return 0;
}

int node_signal_unset(struct node *node, const struct node_who *who, const char *name,
                      uw_error *err)
{
    (void)node;
    (void)who;
    must(*name);
    return fail(err, -ENOENT, "it is not set");
}

static int reload(void *node, uw_error *err)
{
    (void)node;
    (void)err;
    return 0;
}

static void answer_waiting(void)
{
    if (waits.window)
        waits.window(0, &window, "", waits.user);
    if (waits.report)
        waits.report(-EAGAIN, NULL, "too many wait", waits.user);
    waits.window = NULL;
    waits.report = NULL;
}

static struct auth_who who;

static void ask(void *auth, struct http_exchange *x, auth_fn fn, void *user)
{
    (void)auth;
    fn(x, &who, user);
}

static void set_up(uint8_t as)
{
    who = (struct auth_who){
        .node = {.uid = as & 1 ? 7 : (uid_t)-1, .admin = as & 2, .may_claim = as & 4},
        .name = "fuzz",
        .local = as & 8};
    who.node.name = who.name;
    boards[0] = (struct view_board){.info = &info, .cap = {.claims = &none}};
    jobs[0] = (struct view_job){.job = &entry};
    view = (struct node_view){.hostname = "h",
                              .version = "v",
                              .now_ns = 5,
                              .board = boards,
                              .n_boards = 1,
                              .job = jobs,
                              .n_jobs = 1};
}

/* What came back is one answer, and JSON where it says so. */
static void judge(struct http_try *t)
{
    auto_(json_free) struct json *doc = NULL;
    size_t len = 0;
    unsigned status = http_try_status(t);
    const char *type = http_try_header(t, "Content-Type");
    const char *body = http_try_body(t, &len);

    must(status >= 200 && status < 600 && status != 500);
    (void)snprintf(fuzz_said.word, sizeof fuzz_said.word, "%u", status);
    fuzz_add("%s: %.*s", type ? type : "", len < 400 ? (int)len : 400, body);
    if (!type || strcmp(type, "application/json") != 0)
        return;
    must(json_read("answer", body, len, &doc, NULL) == 0);
    if (status >= 400)
        must(json_get(json_root(doc), "error") != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct http_field json[] = {{"Content-Type", "application/json"},
                                             {NULL, NULL}};
    auto_(loop_free) struct loop *loop = NULL;
    struct routes_opts opts = {
        .report = report, .reload = reload, .ask = ask, .metrics = true, .max_jobs = 4};
    struct routes *routes = NULL;
    struct http_try *t = NULL;

    (void)fuzz_say("passed-over", "%s", "");
    if (size < 1)
        return 0;
    fuzz_said.text[0] = '\0';
    auto_(mem_free) char *text = strndup((const char *)data + 1, size - 1);
    if (!text || loop_new_virtual(1, 0, &loop, NULL) < 0)
        return 0;
    set_up(data[0]);
    opts.loop = loop;
    char *body = text, *line = strsep(&body, "\n"), *method = strsep(&line, " ");
    struct http_try_ask a = {.method = method,
                             .target = line ? line : "/",
                             .body = body,
                             .headers = json,
                             .peer = {.local = who.local, .uid = 7}};
    if (routes_new(&opts, &routes, NULL) == 0 &&
        http_try_new(loop, routes_handle, routes, &a, &t) == 0) {
        answer_waiting();
        judge(t);
    }
    http_try_free(t);
    routes_free(routes);
    return 0;
}
