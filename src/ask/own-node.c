#include "ask/own-node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "ask/job-number.h"
#include "base/error.h"
#include "base/units.h"

enum { WAITING_MAX = 64, LOOK_MS = 500, FEED_US = 500, FEED_MAX_MS = 250 };

struct own_node {
    struct loop *loop;
    char *dir;                        /* own_node_opts.runtime_dir, or NULL */
    const struct own_node_opts *opts; /* while own_node_new() runs */
    struct node_config config;
    struct node *node;
    struct api *api;
    struct ask *ask;
    /* Claims that wait for the actuator. */
    struct http_exchange *waiting[WAITING_MAX];
    size_t n_waiting;
    bool starting; /* the actuator is starting */
    void (*note)(uint64_t job, const char *text, bool important, void *user);
    void *note_user;
    struct loop_timer *feeding; /* timer of own_node_feed() */
    uint64_t feed_ns;           /* time of its next check */
    bool waiting_for_caps;      /* own_node_wait() is running */
    bool over;                  /* the wait of a function of own-node.h has ended: */
    int r;
    uw_error error;
};

/* ---- claims wait for the actuator ---- */

static void on_gone(struct http_exchange *x, void *user)
{
    struct own_node *own = user;

    for (size_t i = 0; i < own->n_waiting; i++)
        if (own->waiting[i] == x)
            own->waiting[i] = NULL;
}

static void on_actuator(int r, const char *text, void *user)
{
    struct own_node *own = user;
    size_t n = own->n_waiting;

    own->starting = false;
    own->n_waiting = 0;
    for (size_t i = 0; i < n; i++) {
        struct http_exchange *x = own->waiting[i];
        if (!x)
            continue;
        http_on_gone(x, NULL, NULL);
        if (r < 0)
            http_fail(x, 403, "%s", text);
        else
            api_handle(x, own->api);
    }
    own->over = true;
    own->r = r < 0 ? fail(&own->error, r, "%s", text) : 0;
    if (n == 0) /* own_node_actuator() waits */
        loop_stop(own->loop, 0);
}

static void wait_for_actuator(struct own_node *own, struct http_exchange *x)
{
    uw_error err = {""};
    int r = own->starting ? 0 : node_need_actuator(own->node, on_actuator, own, &err);

    if (r == 1) {
        api_handle(x, own->api);
    } else if (r < 0) {
        http_fail_r(x, r, &err);
    } else if (own->n_waiting == WAITING_MAX) {
        http_fail(x, 503, "too many claims wait for the actuator");
    } else {
        own->starting = true;
        own->waiting[own->n_waiting++] = x;
        http_on_gone(x, on_gone, own);
    }
}

static void handle(struct http_exchange *x, void *user)
{
    struct own_node *own = user;

    if (http_method(x) == HTTP_POST && strcmp(http_path(x), "/v1/claims") == 0)
        wait_for_actuator(own, x);
    else
        api_handle(x, own->api);
}

/* ---- life ---- */

/* The daemon's defaults, without the parts that only a daemon has. */
static int configure(struct own_node *own, const struct own_node_opts *opts,
                     uw_error *err)
{
    struct node_config *c = &own->config;
    int r = node_config_init(c, NULL, err);

    if (r < 0)
        return r;
    c->ledger.path[0] = '\0';
    c->history_ns = 0;
    c->jobs.discover = c->jobs.phases = false;
    c->sampling.job_ns = 0; /* the meter's own period, for a command that measures */
    c->api.socket[0] = c->api.job_socket[0] = '\0';
    if (opts->runs_job) {
        c->jobs.look_ns = LOOK_MS * NS_PER_MS;
        c->caps.yield_ns = CAPS_YIELD_FOREVER_NS; /* another program's limit stays */
    }
    if (opts->socket && strlen(opts->socket) >= sizeof c->api.socket)
        return fail(err, -ENAMETOOLONG, "%s: a socket's path has at most %zu bytes",
                    opts->socket, sizeof c->api.socket - 1);
    if (opts->socket)
        memcpy(c->api.socket, opts->socket, strlen(opts->socket) + 1);
    if (!opts->runtime_dir || opts->socket)
        return 0;
    int n = snprintf(c->api.socket, sizeof c->api.socket, "%s/node-%s%s%d.sock",
                     opts->runtime_dir, opts->world ? opts->world : "",
                     opts->world ? "-" : "", (int)getpid());
    if (n < 0 || (size_t)n >= sizeof c->api.socket)
        c->api.socket[0] = '\0'; /* other users may not read */
    return 0;
}

static int on_ready(struct node *node, int r, const uw_error *err, void *user)
{
    struct own_node *own = user;
    (void)node;

    own->over = true;
    own->r = r < 0 ? fail(&own->error, r, "%s", err->text) : 0;
    loop_stop(own->loop, 0);
    return 0;
}

static int on_choose(struct boards *set, void *user, uw_error *err)
{
    struct own_node *own = user;

    return own->opts->choose(set, own->opts->user, err);
}

static void on_note(uint64_t job, const char *text, bool important, void *user)
{
    struct own_node *own = user;

    if (own->note)
        own->note(job, text, important, own->note_user);
}

static uint64_t next_job(void *user)
{
    const struct own_node *own = user;

    return own->dir ? job_number(own->dir) : 0;
}

static void on_caps(void *user)
{
    struct own_node *own = user;

    if (own->waiting_for_caps)
        loop_stop(own->loop, 0);
}

/* Runs the loop until the wait has ended. */
static int await(struct own_node *own, uw_error *err)
{
    int r = loop_run(own->loop, err);

    if (r < 0)
        return r;
    if (!own->over)
        return fail(err, -EINTR, "interrupted");
    return own->r < 0 ? fail(err, own->r, "%s", own->error.text) : 0;
}

static int open_node(struct own_node *own, const struct own_node_opts *opts,
                     uw_error *err)
{
    struct node_opts node = *opts->node;

    node.config = &own->config;
    node.private = true;
    node.choose = opts->choose ? on_choose : NULL;
    node.gpus = opts->only;
    node.visible = opts->visible;
    node.runs_job = opts->runs_job;
    node.note = on_note;
    node.next_job = next_job;
    node.on_caps = on_caps;
    node.on_ready = on_ready;
    node.user = own;
    int r = node_new(&node, &own->node, err);
    return r < 0 ? r : await(own, err);
}

/* Runs without a socket if it cannot be made and only other terminals need it. */
static int open_api(struct own_node *own, bool open, uw_error *err)
{
    int r = api_new_private(own->loop, own->node, &own->config, open, &own->api, err);

    if (r == 0 || open || !own->config.api.socket[0])
        return r;
    own->config.api.socket[0] = '\0';
    return api_new_private(own->loop, own->node, &own->config, open, &own->api, err);
}

int own_node_new(const struct own_node_opts *opts, struct own_node **ret, uw_error *err)
{
    auto_(own_node_free) struct own_node *own = calloc(1, sizeof *own);
    const struct http_peer self = {.local = true, .uid = geteuid(), .pid = getpid()};

    if (!own)
        return fail(err, -ENOMEM, "out of memory");
    own->loop = opts->node->loop;
    own->opts = opts;
    own->note = opts->note;
    own->note_user = opts->note_user;
    own->dir = opts->runtime_dir ? strdup(opts->runtime_dir) : NULL;
    int r = opts->runtime_dir && !own->dir ? fail(err, -ENOMEM, "out of memory")
                                           : configure(own, opts, err);
    if (r == 0)
        r = open_node(own, opts, err);
    if (r == 0)
        r = open_api(own, opts->socket != NULL, err);
    if (r == 0)
        r = ask_handler(own->loop, handle, own, &self, &own->ask, err);
    own->opts = NULL;
    if (r < 0)
        return r;
    *ret = take(own);
    return 0;
}

void own_node_free(struct own_node *own)
{
    if (!own)
        return;
    loop_timer_free(own->feeding);
    ask_free(own->ask);
    api_free(own->api);
    node_free(own->node);
    free(own->dir);
    free(own);
}

struct ask *own_node_ask(const struct own_node *own)
{
    return own->ask;
}

struct node *own_node_node(const struct own_node *own)
{
    return own->node;
}

int own_node_actuator(struct own_node *own, uw_error *err)
{
    own->over = false;
    int r = node_need_actuator(own->node, on_actuator, own, err);
    return r == 0 ? await(own, err) : r < 0 ? r : 0;
}

void own_node_hold(struct own_node *own, bool hold)
{
    node_hold(own->node, hold);
}

static int on_feeding(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct own_node *own = user;

    if (!node_is_fed(own->node)) {
        if (own->feed_ns < FEED_MAX_MS * NS_PER_MS)
            own->feed_ns *= 2;
        loop_timer_set(timer, now_ns + own->feed_ns, 0);
        return 0;
    }
    own->over = true;
    own->r = 0;
    loop_stop(own->loop, 0);
    return 0;
}

int own_node_feed(struct own_node *own, uw_error *err)
{
    own->over = false;
    own->feed_ns = FEED_US * NS_PER_US;
    int r = loop_timer_new(own->loop, loop_now_ns(own->loop) + own->feed_ns, 0,
                           on_feeding, own, &own->feeding, err);
    if (r == 0)
        r = await(own, err);
    loop_timer_free(own->feeding);
    own->feeding = NULL;
    return r;
}

static int on_waited(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct own_node *own = user;
    (void)timer;
    (void)now_ns;

    loop_stop(own->loop, 0);
    return 0;
}

void own_node_wait(struct own_node *own, uint64_t until_ns)
{
    struct loop_timer *timer = NULL;

    if (loop_timer_new(own->loop, until_ns, 0, on_waited, own, &timer, NULL) < 0)
        return;
    own->waiting_for_caps = true;
    (void)loop_run(own->loop, NULL);
    own->waiting_for_caps = false;
    loop_timer_free(timer);
}

int own_node_page(struct own_node *own, uint64_t job, int fd, uw_error *err)
{
    const struct node_who self = {.admin = true, .may_claim = true, .uid = geteuid()};

    return node_job_page(own->node, &self, job, fd, err);
}

int own_node_page_of(struct own_node *own, uid_t uid, uint64_t job, uw_error *err)
{
    return node_job_page_of(own->node, uid, job, err);
}

struct boards *own_node_boards(const struct own_node *own)
{
    return node_boards(own->node);
}
