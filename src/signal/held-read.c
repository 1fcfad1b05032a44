/* Reads the files and answers of underwatt-signals.  Separate from the kinds of sources,
 * which readers do not need.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "signal/held-read.h"
#include "signal/held.h"

void held_signal_fini(struct held_signal *s)
{
    free(s->point);
    free(s->estimated);
    *s = (struct held_signal){.n = 0};
}

/* ---- values ---- */

/* A number, or null: unknown. */
static bool read_number(const struct json_value *v, double *ret)
{
    *ret = (double)NAN;
    return json_is_none(v) || json_as_double(v, ret);
}

static bool is_word(const char *text, size_t size)
{
    return text && text[0] && strlen(text) < size && utf8_is_plain(text);
}

int held_bad(uw_error *err, const char *name)
{
    return fail(err, -EINVAL, "%s: no values of signals, or damaged", name);
}

static int read_point(const char *name, const struct json_value *v,
                      struct source_point *ret, uw_error *err)
{
    if (!held_read_time(json_get(v, "begin_utc"), &ret->from_utc_s) ||
        !held_read_time(json_get(v, "end_utc"), &ret->to_utc_s) ||
        ret->to_utc_s < ret->from_utc_s || !json_get(v, "value") ||
        !read_number(json_get(v, "value"), &ret->v) ||
        !json_as_bool(json_get(v, "estimated"), &ret->estimated))
        return held_bad(err, name);
    return 0;
}

int held_read_series(const char *name, const struct json_value *v,
                     struct source_series *ret, uw_error *err)
{
    const struct json_value *list = json_get(v, "series");
    const char *signal = json_as_text(json_get(v, "name"));
    const char *unit = json_as_text(json_get(v, "unit"));
    size_t n = json_count(list);
    struct source_series s = {.n = 0};

    if (!is_word(signal, sizeof s.signal) || !unit || strlen(unit) >= sizeof s.unit ||
        !json_is_list(list) || n > SIGNAL_POINTS ||
        !held_read_utc(v, "issued_utc", &s.issued_utc_s))
        return held_bad(err, name);
    (void)snprintf(s.signal, sizeof s.signal, "%s", signal);
    (void)snprintf(s.unit, sizeof s.unit, "%s", unit);
    s.point = calloc(n + 1, sizeof *s.point);
    if (!s.point)
        return fail(err, -ENOMEM, "out of memory");
    s.cap = n + 1;
    for (int r = 0; s.n < n; s.n++) {
        struct source_point *p = &s.point[s.n];
        r = read_point(name, json_at(list, s.n), p, err);
        if (r == 0 && s.n > 0 && p[-1].from_utc_s >= p->from_utc_s)
            r = held_bad(err, name);
        if (r < 0) {
            free(s.point);
            return r;
        }
    }
    *ret = s;
    return 0;
}

/* ---- reading answers ---- */

static const struct json_value *find_signal(const struct json_value *root,
                                            const char *signal)
{
    const struct json_value *list = json_get(root, "signals");

    for (size_t i = 0; i < json_count(list); i++) {
        const char *name = json_as_text(json_get(json_at(list, i), "name"));
        if (name && strcmp(name, signal) == 0)
            return json_at(list, i);
    }
    return NULL;
}

static void put_point(struct held_signal *h, int64_t utc_s, double v, bool estimated)
{
    h->point[h->n] = (struct policy_point){utc_s, v};
    h->estimated[h->n++] = estimated;
}

/* A store accepts at most SIGNAL_POINTS, gaps included. */
static void drop_oldest(struct held_signal *h)
{
    size_t left = h->n > SIGNAL_POINTS ? h->n - SIGNAL_POINTS : 0;

    h->n -= left;
    memmove(h->point, h->point + left, h->n * sizeof *h->point);
    memmove(h->estimated, h->estimated + left, h->n * sizeof *h->estimated);
}

/* Points that do not end at the start of the next one are followed by an unknown one. */
static int take_points(const struct source_series *s, int64_t utc_s,
                       struct held_signal *ret)
{
    size_t longest = 0;

    ret->point = calloc(2 * s->n + 1, sizeof *ret->point);
    ret->estimated = calloc(2 * s->n + 1, sizeof *ret->estimated);
    if (!ret->point || !ret->estimated)
        return -ENOMEM;
    for (size_t i = 0; i < s->n; i++) {
        const struct source_point *p = &s->point[i];
        size_t s_long = (size_t)(p->to_utc_s - p->from_utc_s);
        longest = s_long > longest ? s_long : longest;
        put_point(ret, p->from_utc_s, p->v, p->estimated);
        if (!isnan(p->v) && p->from_utc_s <= utc_s)
            ret->time_utc_s = p->from_utc_s;
        if (i + 1 < s->n && s->point[i + 1].from_utc_s > p->to_utc_s)
            put_point(ret, p->to_utc_s, (double)NAN, false);
    }
    ret->age_s = longest < SIGNAL_AGE_MAX_S ? longest : SIGNAL_AGE_MAX_S;
    if (s->n > 0) {
        const struct source_point *last = &s->point[s->n - 1];
        if ((uint64_t)(last->to_utc_s - last->from_utc_s) < longest)
            put_point(ret, last->to_utc_s, (double)NAN, false);
    }
    drop_oldest(ret);
    return 0;
}

bool held_read_error(const struct json_value *v, char ret[HELD_ERROR])
{
    const char *text = json_as_text(json_get(v, "error"));

    (void)snprintf(ret, HELD_ERROR, "%s", text && utf8_is_plain(text) ? text : "");
    utf8_mend(ret);
    return ret[0];
}

int held_take(const char *name, const char *text, size_t len, const char *signal,
              int64_t utc_s, struct held_signal *ret, uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;
    struct held_signal h = {.n = 0};
    struct source_series s = {.n = 0};

    if (json_read_hidden(name, text, len, &doc, NULL) < 0 ||
        !json_is_list(json_get(json_root(doc), "signals")))
        return held_bad(err, name);
    const struct json_value *v = find_signal(json_root(doc), signal);
    /* an instance that follows another one knows only the signals of its last answer */
    if (!v && held_read_error(json_root(doc), h.error))
        return fail(err, -ENOENT, "%s: %s", name, h.error);
    if (!v)
        return fail(err, -ENOENT, "%s: no source there gives %s", name, signal);
    const char *source = json_as_text(json_get(v, "source"));
    const char *state = json_as_text(json_get(v, "state"));
    h.known = state && strcmp(state, "known") == 0;
    if (!is_word(source, sizeof h.source))
        return held_bad(err, name);
    (void)snprintf(h.source, sizeof h.source, "%s", source);
    const char *origin = json_as_text(json_get(v, "origin"));
    if (is_word(origin, sizeof h.origin))
        (void)snprintf(h.origin, sizeof h.origin, "%s", origin);
    const char *licence = json_as_text(json_get(v, "licence"));
    if (is_word(licence, sizeof h.licence))
        (void)snprintf(h.licence, sizeof h.licence, "%s", licence);
    (void)held_read_error(v, h.error);
    facts_read(v, &h.facts);
    if (json_count(json_get(v, "series")) > 0) {
        int r = held_read_series(name, v, &s, err);
        if (r < 0)
            return r;
    }
    (void)snprintf(h.unit, sizeof h.unit, "%s", s.unit);
    int r = take_points(&s, utc_s, &h);
    free(s.point);
    if (r < 0) {
        held_signal_fini(&h);
        return fail(err, r, "out of memory");
    }
    *ret = h;
    return 0;
}
