/* Windows at the daemon.  This process notes the time of a window's end; the daemon
 * receives it with the start of the next window, or when the energy is queried.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/error.h"
#include "base/names.h"
#include "base/units.h"
#include "core/meter/meter.h"
#include "lib/inside.h"

enum {
    ANSWER_S = 10, /* as for the other calls of a client */
    READY_MS = 1,  /* timeout of uw_window_ready() */
    LAST_MS = 200, /* timeout of uw_ctx_free() */
    LATE_MS = 100, /* delay of an answer beyond the daemon's wait */
    NAP_MS = 20,
    TOLD_MAX = 256,     /* windows per request */
    SAMPLES_MAX = 2048, /* samples per answer */
    DONE_MAX = 4096,    /* ids; others are dropped by the daemon's own limit */
};

static uint64_t clock_ns(clockid_t id)
{
    struct timespec t = {0};

    (void)clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static int ask(uw_ctx *ctx, const char *path, uint64_t timeout_ns, struct json_out *body,
               struct json **ret, uw_error *err)
{
    const struct door *own = NULL;

    (void)lib_remote(ctx, "", &own, NULL);
    const struct door door = {own->socket, timeout_ns};
    return door_ask(&door, "POST", path, body, ret, err);
}

/* ---- news for the daemon ---- */

/* The contents of a request, until it has succeeded. */
struct news {
    uw_window *stopped[TOLD_MAX];
    size_t n_stopped, n_done; /* n_done: number of ids from the start of the list */
};

/* NULL: there is no news. */
static struct json_out *tell(uw_ctx *ctx, struct news *ret)
{
    const struct lib_done *done = lib_remote_done(ctx);

    ret->n_stopped = 0;
    ret->n_done = done->n < TOLD_MAX ? done->n : TOLD_MAX;
    for (uw_window *w = ctx->windows; w && ret->n_stopped < TOLD_MAX; w = w->after)
        if (__atomic_load_n(&w->stopped, __ATOMIC_ACQUIRE) && !w->told)
            ret->stopped[ret->n_stopped++] = w;
    if (ret->n_stopped + ret->n_done == 0)
        return NULL;
    struct json_out *o = json_out_new();
    json_out_object(o, NULL);
    if (ret->n_stopped > 0)
        json_out_array(o, "stopped");
    for (size_t i = 0; i < ret->n_stopped; i++) {
        json_out_object(o, NULL);
        json_out_int(o, "id", (int64_t)ret->stopped[i]->id);
        json_out_int(o, "at_ns", (int64_t)ret->stopped[i]->end_ns);
        json_out_end(o);
    }
    if (ret->n_stopped > 0)
        json_out_end(o);
    if (ret->n_done > 0)
        json_out_array(o, "done");
    for (size_t i = 0; i < ret->n_done; i++)
        json_out_int(o, NULL, (int64_t)done->id[i]);
    if (ret->n_done > 0)
        json_out_end(o);
    json_out_end(o);
    return o;
}

static void told(uw_ctx *ctx, const struct news *news)
{
    struct lib_done *done = lib_remote_done(ctx);

    for (size_t i = 0; i < news->n_stopped; i++)
        news->stopped[i]->told = true;
    done->n -= news->n_done;
    if (done->n > 0)
        memmove(done->id, done->id + news->n_done, done->n * sizeof *done->id);
}

/* ---- begin, stop, drop ---- */

int lib_remote_begin(uw_ctx *ctx, uw_window *win, uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;
    struct news news;
    struct json_out *body = tell(ctx, &news);

    int r = ask(ctx, "/v1/windows", ANSWER_S * NS_PER_S, body, &doc, err);
    if (r == -ENOENT)
        return fail(err, -EPROTO, "this daemon keeps no windows: it is older than %s",
                    UW_VERSION);
    if (r < 0)
        return r;
    told(ctx, &news);
    if (!doc || json_get_u64(json_root(doc), "id", &win->id, NULL) < 0)
        return fail(err, -EPROTO, "the daemon gave no id for the window");
    return 0;
}

int lib_remote_stop(uw_ctx *ctx, uw_window *win, uw_error *err)
{
    (void)ctx;
    (void)err;
    win->end_ns = clock_ns(CLOCK_BOOTTIME);
    return 0;
}

void lib_remote_drop(uw_ctx *ctx, uw_window *win)
{
    struct lib_done *done = lib_remote_done(ctx);

    if (win->id == 0 || win->pid != getpid()) /* unknown, or of a forked child's parent */
        return;
    if (array_grow(&done->id, &done->room, done->n, DONE_MAX) == 0)
        done->id[done->n++] = win->id;
}

void lib_remote_drop_all(uw_ctx *ctx)
{
    struct news news;
    struct json_out *body = NULL;
    int r = 0;

    for (uw_window *w = ctx->windows; w; w = w->after) {
        lib_remote_drop(ctx, w);
        w->told = true;
    }
    while (r == 0 && (body = tell(ctx, &news))) {
        r = ask(ctx, "/v1/windows/batch", LAST_MS * NS_PER_MS, body, NULL, NULL);
        if (r == 0)
            told(ctx, &news);
    }
}

/* ---- energy ---- */

const char *lib_method(const char *name)
{
    int method = name ? names_number(NAMES_METER_METHOD, name) : -1;

    return names_word(NAMES_METER_METHOD, method < 0 ? METER_NONE : (unsigned)method);
}

static void read_board(const struct json_value *v, const char *id, double time_s,
                       struct lib_energy *ret)
{
    uw_energy e = {.time_s = time_s};
    const char *why = json_as_text(json_get(v, "why"));

    if (json_get_double(v, "energy_j", &e.energy_j, NULL) < 0 ||
        json_get_double(v, "half_j", &e.half_j, NULL) < 0 ||
        json_get_double(v, "power_w", &e.power_w, NULL) < 0) {
        ret->r = fail(&ret->err, -ENODATA, "%s: %s", id,
                      why && *why ? why : "the daemon does not know");
        return;
    }
    e.method = lib_method(json_as_text(json_get(v, "method")));
    (void)snprintf(e.why, sizeof e.why, "%s", why ? why : "");
    *ret = (struct lib_energy){.r = 0, .energy = e};
}

/* An older daemon reports none. */
static void read_processors(const struct json_value *list, double time_s, uw_window *win)
{
    win->n_processors = 0;
    for (size_t i = 0; i < json_count(list) && i < LIB_PROCESSORS; i++) {
        const struct json_value *v = json_at(list, i);
        struct lib_processor *p = &win->processor[win->n_processors];
        const char *name = json_as_text(json_get(v, "name"));
        if (!name || strlen(name) >= sizeof p->name)
            continue;
        *p = (struct lib_processor){
            .energy = {.time_s = time_s, .method = "interpolated"}};
        memcpy(p->name, name, strlen(name) + 1);
        p->known = json_as_double(json_get(v, "energy_j"), &p->energy.energy_j) &&
                   json_as_double(json_get(v, "half_j"), &p->energy.half_j) &&
                   json_as_double(json_get(v, "power_w"), &p->energy.power_w);
        win->n_processors++;
    }
}

int lib_read_window(const struct json_value *doc, uw_window *win, uw_error *err)
{
    const struct json_value *gpus = json_get(doc, "gpus");
    double time_s = 0;

    if (!gpus || json_get_double(doc, "time_s", &time_s, NULL) < 0 || time_s <= 0)
        return fail(err, -EPROTO, "the daemon's answer is not a window");
    read_processors(json_get(doc, "processors"), time_s, win);
    for (size_t i = 0; i < win->ctx->n; i++) {
        const char *id = win->ctx->device[i].id;
        struct lib_energy *e = &win->board[i];
        e->r = fail(&e->err, -ENODATA, "%s: the daemon no longer has this board", id);
        for (size_t k = 0; k < json_count(gpus); k++) {
            const struct json_value *v = json_at(gpus, k);
            const char *uuid = json_as_text(json_get(v, "uuid"));
            if (uuid && strcmp(uuid, id) == 0)
                read_board(v, id, time_s, e);
        }
    }
    return 0;
}

int lib_remote_no_processor(uw_ctx *ctx, const uw_window *win, size_t i, uw_error *err)
{
    (void)ctx;
    if (i >= win->n_processors)
        return fail(err, -ENODATA, "processor %zu: the daemon measures %zu (boards.rapl)",
                    i, win->n_processors);
    return fail(err, -ENODATA, "%s: its energy in that time is not known",
                win->processor[i].name);
}

/* False: it is not a sample. */
static bool read_sample(const struct json_value *v, uw_sample *ret)
{
    return json_as_double(json_get(v, "time_s"), &ret->time_s) &&
           json_as_double(json_get(v, "over_s"), &ret->over_s) &&
           json_as_double(json_get(v, "power_w"), &ret->power_w);
}

int lib_remote_samples(uw_ctx *ctx, uw_window *win, size_t dev, uw_sample *buf, size_t n,
                       size_t *ret_n, uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;
    const struct door *door = NULL;
    char path[LIB_TEXT + 96];

    (void)lib_remote(ctx, "", &door, NULL);
    (void)snprintf(path, sizeof path, "/v1/windows/%" PRIu64 "/samples?gpu=%s&most=%zu",
                   win->id, ctx->device[dev].id, n < SAMPLES_MAX ? n : SAMPLES_MAX);
    int r = door_ask(door, "GET", path, NULL, &doc, err);
    if (r == -ENOENT) /* an older daemon has no such path */
        return fail_in(err, -ENODATA, "no samples");
    if (r < 0)
        return r;
    const struct json_value *list = doc ? json_get(json_root(doc), "samples") : NULL;
    if (!list || json_count(list) > n)
        return fail(err, -EPROTO, "the daemon's answer has no samples");
    if (json_count(list) == 0) {
        const char *why = json_as_text(json_get(json_root(doc), "why"));
        return fail(err, -ENODATA, "%s: %s", ctx->device[dev].id, why ? why : "none");
    }
    for (size_t i = 0; i < json_count(list); i++)
        if (!read_sample(json_at(list, i), &buf[i]))
            return fail(err, -EPROTO, "the daemon's answer has a sample that is none");
    *ret_n = json_count(list);
    return 0;
}

static void unknown(uw_window *win, const char *text)
{
    for (size_t i = 0; i < win->ctx->n; i++)
        win->board[i].r = fail(&win->board[i].err, -ENODATA, "%s", text);
}

/* The daemon does not know the window: it was restarted, or has reopened its boards. */
static void lost(uw_window *win)
{
    win->id = 0; /* the daemon does not know the window any more */
    win->told = true;
    unknown(win, "the daemon does not know this window any more: it was restarted, its "
                 "driver was reloaded, or more windows were begun than it keeps");
}

static struct json_out *end_of(const uw_window *win, double wait_s)
{
    struct json_out *o = json_out_new();

    json_out_object(o, NULL);
    json_out_int(o, "at_ns", (int64_t)win->end_ns); /* also if it was told: too late? */
    json_out_double(o, "wait_s", wait_s);
    json_out_bool(o, "keep", true); /* until it is dropped: the answer may be lost */
    json_out_end(o);
    return o;
}

/* One query: 1, 0 (not known yet), -ETIMEDOUT (no answer), or another failure. */
static int ask_once(uw_ctx *ctx, uw_window *win, uint64_t wait_ns, uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;
    uint64_t limit_ns = wait_ns ? wait_ns + LATE_MS * NS_PER_MS : READY_MS * NS_PER_MS;
    uw_error why = {""};
    char path[64];

    (void)snprintf(path, sizeof path, "/v1/windows/%" PRIu64 "/end", win->id);
    int r = ask(ctx, path, limit_ns, end_of(win, s_of_ns(wait_ns)), &doc, &why);
    if (r == -ENOENT) {
        lost(win);
        return 1;
    }
    if (r == -EINVAL) { /* its end is too old, also in a later request */
        win->told = true;
        unknown(win, why.text);
        return 1;
    }
    if (r < 0)
        return fail(err, r, "%s", why.text);
    win->told = true;
    if (doc && json_get(json_root(doc), "ready"))
        return 0;
    r = lib_read_window(doc ? json_root(doc) : NULL, win, err);
    return r < 0 ? r : 1;
}

int lib_remote_await(uw_ctx *ctx, uw_window *win, uint64_t timeout_ns, uw_error *err)
{
    if (timeout_ns == 0) {
        int r = ask_once(ctx, win, 0, err);
        return r == -ETIMEDOUT || r == -EBUSY ? 0 : r;
    }
    uint64_t now = clock_ns(CLOCK_MONOTONIC), until = now + ANSWER_S * NS_PER_S;
    if (timeout_ns != LIB_FOREVER)
        until = timeout_ns < UINT64_MAX - now ? now + timeout_ns : UINT64_MAX;
    for (;;) {
        uint64_t left = now < until ? until - now : NS_PER_MS;
        uint64_t wait = left < ANSWER_S * NS_PER_S ? left : ANSWER_S * NS_PER_S;
        int r = ask_once(ctx, win, wait, err);
        bool later = r == -EBUSY || r == 0; /* another process waits for it; not yet */
        if (!later && (r != -ETIMEDOUT || timeout_ns == LIB_FOREVER))
            return r;
        now = clock_ns(CLOCK_MONOTONIC);
        if (now >= until)
            return 0;
        if (later)
            (void)poll(NULL, 0, NAP_MS);
    }
}
