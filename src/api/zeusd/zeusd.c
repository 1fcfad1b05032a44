/* zeusd's API: routes and forms of answers. */
#include "api/zeusd/zeusd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/zeusd/zeusd-inside.h"
#include "base/error.h"
#include "base/units.h"

/* ---- answers ---- */

void zeusd_put_string(struct text *t, const char *value)
{
    char escape[8];

    text_put(t, "\"");
    for (; *value != '\0'; value++) {
        unsigned char c = (unsigned char)*value;
        if (c == '"' || c == '\\') {
            (void)snprintf(escape, sizeof escape, "\\%c", c);
            text_put(t, escape);
        } else if (c < 0x20) {
            (void)snprintf(escape, sizeof escape, "\\u%04x", c);
            text_put(t, escape);
        } else {
            text_add(t, value, 1);
        }
    }
    text_put(t, "\"");
}

void zeusd_json(struct http_exchange *x, struct text *t)
{
    if (t->failed)
        http_fail(x, 503, "out of memory");
    else
        http_reply(x, 200, "application/json", t->at, t->len, NULL);
    text_free(t);
}

void zeusd_bad(struct http_exchange *x, unsigned status, const char *text)
{
    http_fail(x, status, "%s", text);
}

void zeusd_plain(struct http_exchange *x, unsigned status, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n < 0)
        n = 0;
    size_t len = (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    http_reply(x, status, "text/plain; charset=utf-8", text, len, NULL);
}

void zeusd_error(struct zeusd_errors *e, unsigned id, unsigned status, const char *text)
{
    text_put(&e->text, e->status ? "," : "{\"errors\":{");
    text_put(&e->text, "\"");
    text_put_u64(&e->text, id);
    text_put(&e->text, "\":");
    zeusd_put_string(&e->text, text);
    if (status > e->status)
        e->status = status;
}

void zeusd_errors_reply(struct http_exchange *x, struct zeusd_errors *e)
{
    text_put(&e->text, "}}");
    if (e->text.failed)
        http_fail(x, 503, "out of memory");
    else
        http_reply(x, e->status, "application/json", e->text.at, e->text.len, NULL);
    text_free(&e->text);
    e->status = 0;
}

/* ---- the node ---- */

const struct node_view *zeusd_look(struct zeusd *z)
{
    return node_look(z->node);
}

size_t zeusd_place(const struct node_view *v, unsigned gpu)
{
    size_t i = 0;

    while (i < v->n_boards && v->board[i].info->index != gpu)
        i++;
    return i;
}

const struct view_board *zeusd_board(const struct node_view *v, unsigned gpu)
{
    size_t i = zeusd_place(v, gpu);

    return i < v->n_boards ? &v->board[i] : NULL;
}

/* ---- the server's own description ---- */

static void discover(struct zeusd *z, struct http_exchange *x)
{
    const struct node_view *v = zeusd_look(z);
    struct text t = {0};
    size_t cpus = zeusd_packages(v);

    text_put(&t, "{\"gpus\":[");
    for (size_t i = 0; i < v->n_boards; i++) {
        text_put(&t, i > 0 ? ",{\"id\":" : "{\"id\":");
        text_put_u64(&t, v->board[i].info->index);
        text_put(&t, ",\"name\":");
        zeusd_put_string(&t, v->board[i].info->name);
        text_put(&t, "}");
    }
    text_put(&t, "],\"cpus\":[");
    for (unsigned i = 0; i < cpus; i++) {
        text_put(&t, i > 0 ? ",{\"id\":" : "{\"id\":");
        text_put_u64(&t, i);
        text_put(&t, zeusd_has_dram(v, i) ? ",\"dram_available\":true}"
                                          : ",\"dram_available\":false}");
    }
    text_put(&t, "],\"enabled_api_groups\":[\"gpu-control\",\"gpu-read\"");
    if (cpus > 0)
        text_put(&t, ",\"cpu-read\"");
    text_put(&t, "],\"auth_required\":false}");
    zeusd_json(x, &t);
}

static void tell_time(struct zeusd *z, struct http_exchange *x)
{
    struct text t = {0};

    text_put(&t, "{\"timestamp_ms\":");
    text_put_u64(&t, (uint64_t)loop_utc_ns(z->loop) / NS_PER_MS);
    text_put(&t, "}");
    zeusd_json(x, &t);
}

/* ---- routes ---- */

static const struct {
    const char *path;
    enum zeusd_read what;
} READS[] = {
    {"/gpu/get_cumulative_energy", ZR_ENERGY},
    {"/gpu/get_power", ZR_POWER},
    {"/gpu/stream_power", ZR_STREAM},
    {"/gpu/get_power_limit", ZR_LIMIT},
    {"/gpu/get_power_limit_constraints", ZR_RANGE},
    {"/gpu/get_persistence_mode", ZR_PERSISTENCE},
    {"/cpu/get_cumulative_energy", ZR_CPU_ENERGY},
    {"/cpu/get_power", ZR_CPU_POWER},
    {"/cpu/stream_power", ZR_CPU_STREAM},
};
static const struct {
    const char *path;
    enum zeusd_write what;
} WRITES[] = {
    {"/gpu/set_power_limit", ZW_LIMIT},
    {"/gpu/set_persistence_mode", ZW_PERSISTENCE},
    {"/gpu/set_gpu_locked_clocks", ZW_LOCK},
    {"/gpu/set_mem_locked_clocks", ZW_LOCK},
    {"/gpu/reset_gpu_locked_clocks", ZW_RESET},
    {"/gpu/reset_mem_locked_clocks", ZW_RESET},
};

static bool try_read(struct zeusd *z, struct http_exchange *x, const char *path)
{
    if (strcmp(path, "/discover") == 0) {
        discover(z, x);
        return true;
    }
    if (strcmp(path, "/time") == 0) {
        tell_time(z, x);
        return true;
    }
    for (size_t i = 0; i < n_elements(READS); i++)
        if (strcmp(READS[i].path, path) == 0) {
            zeusd_read(z, x, READS[i].what);
            return true;
        }
    return false;
}

static bool try_write(struct zeusd *z, struct http_exchange *x, const char *path,
                      const struct node_who *who)
{
    for (size_t i = 0; i < n_elements(WRITES); i++)
        if (strcmp(WRITES[i].path, path) == 0) {
            zeusd_write(z, x, who, WRITES[i].what);
            return true;
        }
    return false;
}

void zeusd_handle(struct zeusd *z, struct http_exchange *x, const struct node_who *who)
{
    const char *path = http_path(x);
    enum http_method method = http_method(x);

    if (strncmp(path, "/cpu/", 5) == 0 && zeusd_packages(zeusd_look(z)) == 0)
        zeusd_bad(x, 404, "API group 'cpu-read' is not enabled on this server.");
    else if (strncmp(path, "/auth/", 6) == 0)
        zeusd_bad(x, 404, "Authentication is not enabled on this server.");
    else if (!(method == HTTP_GET && try_read(z, x, path)) &&
             !(method == HTTP_POST && try_write(z, x, path, who)))
        http_reply(x, 404, NULL, NULL, 0, NULL);
}

void zeusd_tell(struct zeusd *z, enum node_event event)
{
    if (event == NODE_EVENT_SAMPLES)
        zeusd_followers_tell(z);
    if (event != NODE_EVENT_JOB)
        zeusd_waits_tell(z);
}

/* ---- beginning and end ---- */

int zeusd_new(struct loop *loop, struct node *node, struct zeusd **ret, uw_error *err)
{
    auto_(zeusd_free) struct zeusd *z = calloc(1, sizeof *z);

    if (!z)
        return fail(err, -ENOMEM, "out of memory");
    z->loop = loop;
    z->node = node;
    int r = loop_timer_new(loop, UINT64_MAX, 0, zeusd_on_timer, z, &z->timer, err);
    if (r < 0)
        return r;
    *ret = take(z);
    return 0;
}

void zeusd_free(struct zeusd *z)
{
    if (!z)
        return;
    for (size_t i = 0; i < n_elements(z->follower); i++)
        if (z->follower[i].stream)
            http_stream_end(z->follower[i].stream);
    for (size_t i = 0; i < n_elements(z->wait); i++)
        if (z->wait[i].x) {
            http_on_gone(z->wait[i].x, NULL, NULL);
            zeusd_bad(z->wait[i].x, 503, "the daemon is stopping");
        }
    loop_timer_free(z->timer);
    free(z);
}
