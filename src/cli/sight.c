#include "cli/sight.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/moment.h"
#include "base/units.h"
#include "cli/cli-loop.h"
#include "cli/daemon.h"
#include "cli/take.h"

#define SIGNALS_SOCKET "/run/underwatt-signals/signals.sock"
enum { ANSWER_S = 5, BODY_MAX = 64 << 20 };

void sights_free(struct sights *s)
{
    for (size_t i = 0; s->sight && i < s->n; i++)
        free(s->sight[i].point);
    free(s->sight);
    *s = (struct sights){.n = 0};
}

bool sight_is_name(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                            "0123456789_.-");

    return n > 0 && n < SIGNAL_NAME && !name[n] && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

/* ---- queries ---- */

/* The current time, in UTC or in the time of the simulated world. */
static int read_clock(const struct cli_env *env, int64_t *ret, uw_error *err)
{
    auto_(loop_free) struct loop *loop = NULL;
    int r = cli_loop_new(env, &loop, err);

    if (r == 0)
        *ret = loop_utc_ns(loop) / (int64_t)NS_PER_S;
    return r;
}

static int open_socket(const char *socket, struct httpc **ret, uw_error *err)
{
    auto_(httpc_free) struct httpc *c = NULL;
    auto_(httpc_reply_fini) struct httpc_reply reply = {.body = NULL};
    const struct httpc_opts opts = {.socket = socket,
                                    .what = "underwatt-signals",
                                    .timeout_ns = ANSWER_S * NS_PER_S,
                                    .body_max = BODY_MAX};
    int r = httpc_new(&opts, &c, err);

    if (r == 0)
        r = httpc_call(c, "GET", "/v1/signals?name=carbon", NULL, &reply, err);
    if (r == 0)
        *ret = take(c);
    return r;
}

/* Opens the daemon, with room for its answer; DAEMON_ABSENT. */
static int open_daemon(const struct cli_env *env, const char *boards, struct httpc **ret,
                       uw_error *err)
{
    auto_(httpc_free) struct httpc *probe = NULL;
    struct daemon_address where;
    int r = daemon_open(env, boards, &probe, err);

    if (r == 0)
        r = daemon_address(env->socket, boards, &where, err);
    if (r != 0)
        return r;
    const struct httpc_opts opts = {
        .socket = where.socket, .timeout_ns = ANSWER_S * NS_PER_S, .body_max = BODY_MAX};
    return httpc_new(&opts, ret, err);
}

int sight_link_open(const struct cmd *cmd, const struct cli_env *env, const char *boards,
                    const char *socket, struct sight_link *ret)
{
    struct sight_link l = {.daemon = !socket};
    uw_error err = {""}, why = {""};
    int r = read_clock(env, &l.utc_s, &err);

    if (r == 0)
        r = socket ? open_socket(socket, &l.client, &err)
                   : open_daemon(env, boards, &l.client, &err);
    if (r == DAEMON_ABSENT) {
        l.daemon = false;
        r = open_socket(SIGNALS_SOCKET, &l.client, &why);
        if (r < 0)
            return cli_fail(EXIT_FAIL,
                            "%s: %s; %s; this command needs one "
                            "of them (see underwatt-signals(8))",
                            cmd->name, err.text, why.text);
    }
    if (r < 0)
        return cli_fail(cli_exit_of(r), "%s: %s", cmd->name, err.text);
    *ret = l;
    return EXIT_OK;
}

void sight_link_close(struct sight_link *l)
{
    httpc_free(l->client);
    l->client = NULL;
}

/* ---- answers ---- */

static int64_t take_utc(const struct json_value *v, const char *key)
{
    const char *text = take_text(v, key);
    char plain[40];
    struct moment m;

    /* "2026-11-21T14:03:22.250Z": whole seconds are enough */
    size_t n = strcspn(text, ".");
    (void)snprintf(plain, sizeof plain, "%.*s%s", (int)(n < 32 ? n : 32), text,
                   text[n] ? "Z" : "");
    return moment_read(plain, &m) && !m.date_only ? moment_utc_s(&m) : 0;
}

static int take_points(const struct json_value *v, struct sight *s)
{
    const struct json_value *list = json_get(v, "series");
    size_t n = json_count(list);

    s->point = calloc(n + 1, sizeof *s->point);
    if (!s->point)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const struct json_value *at = json_at(list, i);
        struct stretch_point p = {take_utc(at, "begin_utc"), take_utc(at, "end_utc"),
                                  take_number(at, "value")};
        if (isfinite(p.v) && p.from_utc_s < p.to_utc_s &&
            (s->n == 0 || s->point[s->n - 1].to_utc_s <= p.from_utc_s))
            s->point[s->n++] = p;
    }
    return 0;
}

static void take_value(const struct json_value *v, struct sight *s)
{
    const struct json_value *value = json_get(v, "value");
    struct signal_value held = {.type = POLICY_TRUTH};

    s->number = (double)NAN;
    if (json_as_text(value))
        take_copy(v, "value", s->value, sizeof s->value);
    else if (json_as_double(value, &s->number))
        (void)signal_value_show(&(struct signal_value){.number = s->number}, s->unit,
                                s->value);
    else if (json_as_bool(value, &held.truth))
        (void)signal_value_show(&held, s->unit, s->value);
}

/* Reads the daemon's form, or that of underwatt-signals. */
static int take_sight(const struct sight_link *l, const struct json_value *v,
                      struct sight *s)
{
    take_copy(v, "name", s->name, sizeof s->name);
    take_copy(v, "unit", s->unit, sizeof s->unit);
    take_copy(v, "source", s->source, sizeof s->source);
    take_copy(v, l->daemon ? "why" : "error", s->why, sizeof s->why);
    s->ahead = signal_is_forecast(s->name);
    s->known =
        l->daemon ? take_bool(v, "known") : strcmp(take_text(v, "state"), "known") == 0;
    s->estimated = take_bool(v, "estimated");
    s->time_utc_s = take_utc(v, "time_utc");
    facts_read(v, &s->facts);
    s->end_utc_s = take_utc(v, "end_utc");
    take_value(v, s);
    if (!s->known && !s->why[0])
        (void)snprintf(s->why, sizeof s->why, "the source has no value yet");
    int r = take_points(v, s);
    if (r == 0 && s->ahead && s->n > 0 && s->known)
        s->end_utc_s = s->point[s->n - 1].to_utc_s;
    return r;
}

static int ask(const struct sight_link *l, const char *name, struct sights *ret,
               uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;
    auto_(sights_free) struct sights s = {.n = 0};
    char path[SIGNAL_NAME + 32];

    (void)snprintf(path, sizeof path, "/v1/signals%s%s", name ? "?name=" : "",
                   name ? name : "");
    int r = httpc_ask(l->client, "GET", path, NULL, &doc, err);
    if (r < 0)
        return r;
    const struct json_value *list = json_get(json_root(doc), "signals");
    s.sight = calloc(json_count(list) + 1, sizeof *s.sight);
    if (!s.sight)
        return fail(err, -ENOMEM, "out of memory");
    for (; r == 0 && s.n < json_count(list); s.n++)
        r = take_sight(l, json_at(list, s.n), &s.sight[s.n]);
    if (r != 0)
        return fail(err, r, "out of memory");
    ret->n = s.n;
    ret->sight = take(s.sight);
    return 0;
}

int sight_get(const struct sight_link *l, const char *name, struct sights *ret,
              uw_error *err)
{
    auto_(sights_free) struct sights all = {.n = 0};
    int r = ask(l, name, &all, err);

    for (size_t i = 0; r == 0 && !name && l->daemon && i < all.n; i++) {
        auto_(sights_free) struct sights one = {.n = 0};
        struct sight *s = &all.sight[i];
        if (!s->ahead || !s->known)
            continue;
        r = ask(l, s->name, &one, err);
        if (r != 0 || one.n != 1)
            continue;
        free(s->point);
        *s = one.sight[0];
        one.sight[0].point = NULL;
    }
    if (r < 0)
        return r;
    ret->n = all.n;
    ret->sight = take(all.sight);
    return 0;
}
