/* Held values as JSON: for the cache, and for clients. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/utf8.h"
#include "signal/held-read.h"
#include "signal/held.h"
#include "signal/kind.h"

enum { OF_TEXT = 24, CACHE_VERSION = 1 };

void held_fini(struct held *h)
{
    source_values_fini(&h->values);
}

/* ---- writing ---- */

/* s: uses the ends that count; NULL: those that the source gave.  Points that ended
 * before since_utc_s are left out.
 */
static void put_series(struct json_out *o, const struct signals_source *s,
                       const struct source_series *series, int64_t since_utc_s)
{
    json_out_array(o, "series");
    for (size_t i = 0; series && i < series->n; i++) {
        const struct source_point *p = &series->point[i];
        int64_t end_utc_s = s ? held_end(s, series, p) : p->to_utc_s;
        if (end_utc_s < since_utc_s)
            continue;
        json_out_object(o, NULL);
        held_put_utc(o, "begin_utc", p->from_utc_s);
        held_put_utc(o, "end_utc", end_utc_s);
        json_out_given(o, "value", p->v);
        json_out_bool(o, "estimated", p->estimated);
        json_out_end(o);
    }
    json_out_end(o);
}

static uint64_t mix(uint64_t h, const char *text)
{
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    return (h ^ 0xffu) * 0x100000001b3u;
}

/* The configuration on which a source's values depend: values of another zone must not
 * be used for this one.
 */
static const char *of_config(const struct source_config *c, char ret[OF_TEXT])
{
    uint64_t h = mix(0xcbf29ce484222325u, source_kind_type(c->kind));
    char numbers[80];

    (void)snprintf(numbers, sizeof numbers, "%u %u %x", c->api, c->year, c->provides);
    const char *const texts[] = {c->zone, c->region, c->postcode, c->location,
                                 c->url,  c->file,   c->path,     c->column,
                                 c->unit, c->as,     numbers};
    for (size_t i = 0; i < n_elements(texts); i++)
        h = mix(h, texts[i]);
    (void)snprintf(ret, OF_TEXT, "%016" PRIx64, h);
    return ret;
}

int held_write(const struct source_config *c, const struct held *h, char **ret,
               uw_error *err)
{
    auto_(json_out_free) struct json_out *o = json_out_new();
    char of[OF_TEXT];

    json_out_object(o, NULL);
    json_out_int(o, "cache", CACHE_VERSION);
    json_out_text(o, "source", c->name);
    json_out_text(o, "of", of_config(c, of));
    held_put_utc(o, "asked_utc", h->asked_utc_s);
    held_put_utc(o, "rest_utc", h->rest_utc_s);
    held_put_utc(o, "known_utc", h->known_utc_s);
    json_out_array(o, "signals");
    for (size_t i = 0; i < h->values.n; i++) {
        const struct source_series *s = &h->values.series[i];
        json_out_object(o, NULL);
        json_out_text(o, "name", s->signal);
        json_out_text(o, "unit", s->unit);
        held_put_utc(o, "issued_utc", s->issued_utc_s);
        put_series(o, NULL, s, 0);
        json_out_end(o);
    }
    json_out_end(o);
    json_out_end(o);
    return json_out_string(o, ret, err);
}

struct held_origin held_origin(const struct signals_source *s)
{
    struct held_origin from = {.source = s->c.name,
                               .type = source_kind_type(s->c.kind),
                               .licence = source_kind_licence(s->c.kind),
                               .limits = s};

    source_origin(&s->c, from.origin);
    return from;
}

void held_show(struct json_out *o, const struct held_origin *from, const char *signal,
               const struct source_series *series, int64_t utc_s, const char *error)
{
    static const struct signal_facts none;
    const struct signals_source *s = from->limits;
    const struct source_point *now = held_now(s, series, utc_s);
    bool ahead = signal_is_forecast(signal);

    json_out_object(o, NULL);
    json_out_text(o, "name", signal);
    json_out_text(o, "unit", series ? series->unit : NULL);
    json_out_text(o, "source", from->source);
    json_out_text(o, "type", from->type);
    json_out_text(o, "licence", from->licence);
    json_out_text(o, "origin", from->origin[0] ? from->origin : NULL);
    json_out_text(o, "site", from->site);
    json_out_text(o, "state", now ? "known" : "unknown");
    json_out_given(o, "value", now && !ahead ? now->v : (double)NAN);
    held_put_utc(o, "time_utc", now ? now->from_utc_s : 0);
    held_put_utc(o, "end_utc", now ? held_end(s, series, now) : 0);
    if (now)
        json_out_bool(o, "estimated", now->estimated);
    else
        json_out_null(o, "estimated");
    held_put_utc(o, "issued_utc", series ? series->issued_utc_s : 0);
    json_out_text(o, "error", error[0] ? error : NULL);
    facts_show(o, from->facts ? from->facts : &none);
    put_series(o, s, series, from->since_utc_s);
    json_out_end(o);
}

/* ---- reading ---- */

static bool gives(const struct source_config *c, const char *signal)
{
    char name[SIGNAL_NAME];

    for (unsigned i = 0; source_kind_gives(c->kind, i); i++)
        if (take_gives(c, i) && strcmp(source_signal(c, i, name), signal) == 0)
            return true;
    return false;
}

static int check_head(const struct source_config *c, const char *name,
                      const struct json_value *root, uw_error *err)
{
    const char *source = json_as_text(json_get(root, "source"));
    const char *of = json_as_text(json_get(root, "of"));
    uint64_t version = 0;
    char own[OF_TEXT];

    if (!json_as_u64(json_get(root, "cache"), &version) || !source || !of)
        return held_bad(err, name);
    if (version != CACHE_VERSION)
        return fail(err, -EINVAL, "%s: of another version of this program", name);
    if (strcmp(source, c->name) != 0 || strcmp(of, of_config(c, own)) != 0)
        return fail(err, -EINVAL,
                    "%s: of another source, or of another configuration of %s", name,
                    c->name);
    return 0;
}

int held_read(const struct source_config *c, const char *name, const char *text,
              size_t len, struct held *ret, uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;
    struct held h = {.asked_utc_s = 0};

    if (json_read_hidden(name, text, len, &doc, NULL) < 0)
        return held_bad(err, name);
    const struct json_value *root = json_root(doc), *list = json_get(root, "signals");
    int r = check_head(c, name, root, err);
    if (r == 0 && (!json_is_list(list) || json_count(list) > SOURCE_GIVES ||
                   !held_read_utc(root, "asked_utc", &h.asked_utc_s) ||
                   !held_read_utc(root, "rest_utc", &h.rest_utc_s) ||
                   !held_read_utc(root, "known_utc", &h.known_utc_s)))
        r = held_bad(err, name);
    for (size_t i = 0; r == 0 && i < json_count(list); i++) {
        struct source_series *s = &h.values.series[h.values.n];
        r = held_read_series(name, json_at(list, i), s, err);
        h.values.n += r == 0;
        if (r == 0 && !gives(c, s->signal))
            r = held_bad(err, name);
    }
    if (r < 0) {
        held_fini(&h);
        return r;
    }
    *ret = h;
    return 0;
}
