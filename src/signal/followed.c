#include "signal/followed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/utf8.h"
#include "signal/held-read.h"

enum { CACHE_VERSION = 1 };

void followed_fini(struct followed *f)
{
    for (size_t i = 0; i < f->n; i++)
        free(f->signal[i].series.point);
    free(f->signal);
    *f = (struct followed){.n = 0};
}

static struct followed_signal *find(const struct followed *f, const char *signal)
{
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->signal[i].series.signal, signal) == 0)
            return &f->signal[i];
    return NULL;
}

/* ---- reading ---- */

/* A text of this key; null or missing: "".  False: it cannot be shown, or does not fit.
 */
static bool read_word(const struct json_value *v, const char *key, char *ret, size_t size)
{
    const struct json_value *at = json_get(v, key);
    const char *text = json_as_text(at);

    ret[0] = '\0';
    if (!at || json_is_none(at))
        return true;
    if (!text || strlen(text) >= size || !utf8_is_plain(text))
        return false;
    (void)snprintf(ret, size, "%s", text);
    return true;
}

static int read_signal(const char *name, const struct json_value *v,
                       struct followed_signal *ret, uw_error *err)
{
    struct followed_signal s = {.series = {.n = 0}};
    struct signal_decl d = {.type = POLICY_NUMBER, .age_ns = UINT64_C(60000000000)};

    if (!read_word(v, "name", d.name, sizeof d.name) ||
        !read_word(v, "source", s.source, sizeof s.source) || !s.source[0] ||
        !read_word(v, "type", s.type, sizeof s.type) ||
        !read_word(v, "licence", s.licence, sizeof s.licence) ||
        !read_word(v, "origin", s.origin, sizeof s.origin) ||
        signal_declared(&d, "EUR", NULL) < 0)
        return held_bad(err, name);
    (void)held_read_error(v, s.error);
    if (json_count(json_get(v, "series")) > 0) {
        int r = held_read_series(name, v, &s.series, err);
        if (r < 0)
            return r;
    }
    memcpy(s.series.signal, d.name, sizeof d.name);
    *ret = s;
    return 0;
}

static int read_signals(const char *name, const struct json_value *list,
                        struct followed *f, uw_error *err)
{
    size_t n = json_count(list);

    if (!json_is_list(list) || n > FOLLOWED_MAX)
        return held_bad(err, name);
    f->signal = calloc(n + 1, sizeof *f->signal);
    if (!f->signal)
        return fail(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) {
        struct followed_signal s = {.series = {.n = 0}};
        int r = read_signal(name, json_at(list, i), &s, err);
        if (r < 0)
            return r;
        if (find(f, s.series.signal)) {
            free(s.series.point);
            return held_bad(err, name);
        }
        f->signal[f->n++] = s;
    }
    return 0;
}

int followed_read(const char *name, const char *text, size_t len, struct followed *ret,
                  uw_error *err)
{
    auto_(followed_fini) struct followed f = {.n = 0};
    auto_(json_free) struct json *doc = NULL;

    if (json_read_hidden(name, text, len, &doc, NULL) < 0)
        return held_bad(err, name);
    int r = read_signals(name, json_get(json_root(doc), "signals"), &f, err);
    if (r < 0)
        return r;
    *ret = f;
    f = (struct followed){.n = 0};
    return 0;
}

void followed_take(struct followed *held, struct followed *from)
{
    for (size_t i = 0; i < from->n; i++) {
        struct followed_signal *s = &from->signal[i];
        struct followed_signal *old = find(held, s->series.signal);
        if (!old || strcmp(old->source, s->source) != 0)
            continue;
        if (s->series.n > 0) {
            (void)held_join(&old->series, &s->series); /* without memory the new alone */
            continue;
        }
        s->series = old->series;
        old->series = (struct source_series){.n = 0};
    }
    followed_fini(held);
    *held = *from;
    *from = (struct followed){.n = 0};
}

/* ---- writing ---- */

const struct signals_source *followed_limits(void)
{
    static const struct signals_source none;

    return &none;
}

void followed_show(struct json_out *o, const char *site, const struct followed_signal *s,
                   int64_t since_utc_s, int64_t utc_s, const char *error,
                   const struct signal_facts *facts)
{
    struct held_origin origin = {.source = s->source,
                                 .type = s->type,
                                 .licence = s->licence[0] ? s->licence : NULL,
                                 .site = site,
                                 .limits = followed_limits(),
                                 .facts = facts,
                                 .since_utc_s = since_utc_s};

    memcpy(origin.origin, s->origin, sizeof origin.origin);
    held_show(o, &origin, s->series.signal, s->series.n > 0 ? &s->series : NULL, utc_s,
              error[0] ? error : s->error);
}

/* ---- the cache ---- */

int followed_write(const char *site, const struct followed *f, char **ret, uw_error *err)
{
    auto_(json_out_free) struct json_out *o = json_out_new();

    json_out_object(o, NULL);
    json_out_int(o, "cache", CACHE_VERSION);
    json_out_text(o, "follow", site);
    held_put_utc(o, "asked_utc", f->asked_utc_s);
    json_out_array(o, "signals");
    for (size_t i = 0; i < f->n; i++)
        followed_show(o, site, &f->signal[i], f->asked_utc_s - NODE_PAST_S,
                      f->asked_utc_s, "", NULL);
    json_out_end(o);
    json_out_end(o);
    return json_out_joined(o, ret, err);
}

static int check_head(const char *site, const char *name, const struct json_value *root,
                      uw_error *err)
{
    const char *follow = json_as_text(json_get(root, "follow"));
    uint64_t version = 0;

    if (!json_as_u64(json_get(root, "cache"), &version) || !follow)
        return held_bad(err, name);
    if (version != CACHE_VERSION)
        return fail(err, -EINVAL, "%s: of another version of this program", name);
    if (strcmp(follow, site) != 0)
        return fail(err, -EINVAL, "%s: of another site", name);
    return 0;
}

int followed_load(const char *site, const char *name, const char *text, size_t len,
                  struct followed *ret, uw_error *err)
{
    auto_(followed_fini) struct followed f = {.n = 0};
    auto_(json_free) struct json *doc = NULL;
    int64_t asked_utc_s = 0;

    if (json_read_hidden(name, text, len, &doc, NULL) < 0)
        return held_bad(err, name);
    int r = check_head(site, name, json_root(doc), err);
    if (r == 0 && !held_read_utc(json_root(doc), "asked_utc", &asked_utc_s))
        r = held_bad(err, name);
    if (r == 0)
        r = read_signals(name, json_get(json_root(doc), "signals"), &f, err);
    if (r < 0)
        return r;
    f.asked_utc_s = asked_utc_s;
    *ret = f;
    f = (struct followed){.n = 0};
    return 0;
}
