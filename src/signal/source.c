#include "signal/source.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/nearest.h"
#include "base/units.h"
#include "base/utf8.h"
#include "signal/kind.h"

enum {
    WAIT_S = 60,
    AHEAD_S = 5,
    MESSAGE = 80,
    PAST_S = 12 * 3600, /* age up to which values replace earlier ones */
};

static const struct source_kind *const kinds[] = {
    &kind_electricitymaps, &kind_watttime,     &kind_uk,    &kind_csv, &kind_json,
    &kind_static,          &kind_carbon_aware, &kind_entsoe};

static const char *const outcomes[SOURCE_OUTCOMES] = {
    [SOURCE_VALUES] = "values",     [SOURCE_SAME] = "not modified",
    [SOURCE_LOGGED_IN] = "login",   [SOURCE_REFUSED] = "refused",
    [SOURCE_WAIT] = "wait",         [SOURCE_NO_DATA] = "no data",
    [SOURCE_BAD] = "not understood"};

const char *source_outcome_name(enum source_outcome outcome)
{
    return outcomes[outcome];
}

void source_values_fini(struct source_values *v)
{
    for (size_t i = 0; i < v->n; i++)
        free(v->series[i].point);
    *v = (struct source_values){.n = 0};
}

/* ---- kinds ---- */

const struct source_kind *source_kind_at(size_t i)
{
    return i < n_elements(kinds) ? kinds[i] : NULL;
}

const struct source_kind *source_kind_find(const char *type)
{
    for (size_t i = 0; i < n_elements(kinds); i++)
        if (strcmp(kinds[i]->type, type) == 0)
            return kinds[i];
    return NULL;
}

const char *source_kind_type(const struct source_kind *kind)
{
    return kind->type;
}

const char *source_kind_licence(const struct source_kind *kind)
{
    return kind->licence;
}

void source_origin(const struct source_config *c, char ret[SOURCE_ORIGIN])
{
    ret[0] = '\0';
    if (c->kind->origin)
        c->kind->origin(c, ret);
}

const char *source_kind_gives(const struct source_kind *kind, size_t i)
{
    return i < SOURCE_GIVES ? kind->gives[i] : NULL;
}

void source_kind_every(const struct source_config *c, unsigned *ret_least_s,
                       unsigned *ret_usual_s)
{
    *ret_least_s = c->file[0] ? 1 : c->kind->least_s;
    *ret_usual_s = c->file[0] ? 10 : c->kind->usual_s;
}

bool source_needs_secret(const struct source_config *c)
{
    return (c->kind->must & (KEY_KEY_FILE | KEY_LOGIN_FILE)) != 0;
}

const char *source_signal(const struct source_config *c, size_t i, char ret[SIGNAL_NAME])
{
    static const char ending[] = ".forecast";
    const char *name = c->kind->gives[i];

    if (c->as[0])
        (void)snprintf(ret, SIGNAL_NAME, "%.*s%s", (int)(SIGNAL_NAME - sizeof ending),
                       c->as, signal_is_forecast(name) ? ending : "");
    else
        (void)snprintf(ret, SIGNAL_NAME, "%s", name);
    return ret;
}

/* ---- requests ---- */

/* FNV-1a, to recognise a URL. */
static uint64_t hash(const char *text)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    return h;
}

static void put_header(struct source_request *r, const char *name, const char *value)
{
    if (!value[0] || r->n_headers == SOURCE_HEADERS)
        return;
    struct source_sent *h = &r->header[r->n_headers++];
    h->name = name;
    (void)snprintf(h->value, sizeof h->value, "%s", value);
}

static bool needs_login(const struct source_config *c, const struct source_state *s,
                        int64_t utc_s)
{
    return c->kind->ask_login && (!s->token[0] || utc_s >= s->token_ends_utc_s);
}

static int ask_http(const struct source_config *c, const char *secret,
                    struct source_state *s, int64_t utc_s, struct source_request *ret,
                    uw_error *err)
{
    struct asking a = {
        .c = c, .s = s, .secret = secret ? secret : "", .utc_s = utc_s, .request = ret};
    bool login = needs_login(c, s, utc_s);
    size_t n;

    ask_put(&a, c->url[0] ? c->url : c->kind->url);
    n = a.url_len;
    if (!c->kind->whole_url && n > 0 && n < SOURCE_URL && ret->url[n - 1] == '/')
        ret->url[--a.url_len] = '\0';
    if (login)
        c->kind->ask_login(&a);
    else
        c->kind->ask(&a);
    ret->is_login = login;
    if (a.url_len >= SOURCE_URL)
        return fail(err, -EINVAL, "%s: its URL has more than %d bytes", c->name,
                    SOURCE_URL - 1);
    if (login)
        return 0;
    struct source_seen *seen = &s->seen[s->step];
    if (seen->url_hash != hash(ret->url))
        *seen = (struct source_seen){.url_hash = hash(ret->url)};
    put_header(ret, "If-None-Match", seen->etag);
    put_header(ret, "If-Modified-Since", seen->modified);
    return 0;
}

int source_next(const struct source_config *c, const char *secret, struct source_state *s,
                int64_t utc_s, struct source_request *ret, uw_error *err)
{
    const struct source_kind *k = c->kind;

    if (utc_s < s->rest_utc_s && s->rest_utc_s - utc_s <= SOURCE_WAIT_MAX_S)
        return SOURCE_E_REST;
    s->rest_utc_s = 0;
    while (s->step < k->steps && k->wants && !k->wants(c, s->step))
        s->step++;
    if (s->step >= k->steps) {
        s->step = 0;
        s->logged_in = false;
        return SOURCE_E_DONE;
    }
    *ret = (struct source_request){.way = k->way};
    if (k->way == SOURCE_FILE || (k->way == SOURCE_HTTP && c->file[0])) {
        ret->way = SOURCE_FILE;
        (void)snprintf(ret->url, sizeof ret->url, "%s", c->file);
        return 0;
    }
    if (needs_login(c, s, utc_s))
        s->token[0] = '\0';
    return k->way == SOURCE_HTTP ? ask_http(c, secret, s, utc_s, ret, err) : 0;
}

/* ---- error texts of a server ---- */

/* The error text of the answer, preceded by ": "; "" if none can be shown. */
static void read_message(const struct source_answer *a, const char *secret,
                         const struct source_state *s, char ret[MESSAGE + 3])
{
    static const char *const keys[] = {"message", "error", "detail", "title"};
    auto_(json_free) struct json *doc = NULL;
    const struct json_value *v;
    const char *text = NULL;

    ret[0] = '\0';
    if (!a->body || json_read_hidden("", a->body, a->len, &doc, NULL) < 0)
        return;
    v = json_get(json_root(doc), "error");
    v = json_get(v, "message") ? v : json_root(doc);
    for (size_t i = 0; !text && i < n_elements(keys); i++)
        text = json_as_text(json_get(v, keys[i]));
    if (!text || !text[0] || !utf8_is_plain(text) || secret_in(text, secret) ||
        secret_in(text, s->token))
        return;
    (void)snprintf(ret, MESSAGE + 3, ": %s", text);
    utf8_mend(ret);
}

static int64_t wait_s(const struct source_answer *a)
{
    const char *text = answer_header(a, "Retry-After");
    uint64_t s = 0;
    int64_t at = 0;

    if (text && parse_u64(text, &s, NULL) == 0)
        at = s > SOURCE_WAIT_MAX_S ? SOURCE_WAIT_MAX_S : (int64_t)s;
    else if (text && http_date(text, &at))
        at -= a->utc_s;
    else
        return WAIT_S;
    return at < 1 ? 1 : at > SOURCE_WAIT_MAX_S ? SOURCE_WAIT_MAX_S : at;
}

/* The outcome of a status that is not 200. */
static int take_refusal(const struct source_config *c, const char *secret,
                        struct source_state *s, const struct source_answer *a,
                        uw_error *why)
{
    char says[MESSAGE + 3];
    bool login = c->kind->ask_login && !s->token[0];

    read_message(a, secret, s, says);
    if (a->status == 304)
        return fail(why, SOURCE_SAME, "not modified");
    if (a->status == 401 && c->kind->ask_login && !login && !s->logged_in) {
        s->token[0] = '\0';
        return fail(why, SOURCE_LOGGED_IN, "its token has expired");
    }
    if (a->status == 401 || a->status == 403)
        return fail(why, SOURCE_REFUSED, "the %s is refused (status %u)%s",
                    login || (c->kind->must & KEY_LOGIN_FILE) ? "login" : "key",
                    a->status, says);
    if (a->status == 204)
        return fail(why, SOURCE_NO_DATA, "no value is known");
    if (a->status == 429 || (a->status >= 500 && a->status != 501)) {
        s->rest_utc_s = a->utc_s + wait_s(a);
        return fail(why, SOURCE_WAIT, "%s (status %u), again in %d s",
                    a->status == 429 ? "too many requests" : "the service fails",
                    a->status, (int)wait_s(a));
    }
    return fail(why, SOURCE_BAD, "status %u%s", a->status, says);
}

/* ---- values ---- */

static int by_time(const void *a, const void *b)
{
    const struct source_point *x = a, *y = b;

    return x->from_utc_s < y->from_utc_s ? -1 : x->from_utc_s > y->from_utc_s;
}

static bool is_same_value(const struct source_point *a, const struct source_point *b)
{
    return (isnan(a->v) && isnan(b->v)) || (a->v >= b->v && a->v <= b->v);
}

/* Sorts the points by time; each ends where the next one begins, or earlier. */
static int order(struct taking *t, struct source_series *s)
{
    size_t n = 0;

    if (s->n > 1)
        qsort(s->point, s->n, sizeof *s->point, by_time);
    for (size_t i = 0; i < s->n; i++) {
        struct source_point *p = &s->point[i];
        struct source_point *last = n > 0 ? &s->point[n - 1] : NULL;
        if (last && last->from_utc_s == p->from_utc_s) {
            if (!is_same_value(last, p))
                return fail(t->why, SOURCE_BAD, "%s: two values for one time", s->signal);
            continue;
        }
        if (last && last->to_utc_s > p->from_utc_s)
            last->to_utc_s = p->from_utc_s;
        s->point[n++] = *p;
    }
    s->n = n;
    return 0;
}

/* Drops present values that lie in the future. */
static void drop_future(struct taking *t, struct source_series *s)
{
    while (s->n > 0 && s->point[s->n - 1].from_utc_s > t->now_utc_s + AHEAD_S)
        t->ahead_s = s->point[--s->n].from_utc_s - t->now_utc_s;
}

/* Drops series without a known value; 0 if some are left, else the outcome. */
static int finish(struct taking *t, struct source_state *s)
{
    struct source_values *v = t->values;
    size_t n = 0;

    for (size_t i = 0; i < v->n; i++) {
        struct source_series own = v->series[i];
        int r = order(t, &v->series[i]);
        if (r != 0)
            return r;
        own = v->series[i];
        if (!(t->c->kind->ahead >> t->gives[i] & 1))
            drop_future(t, &own);
        bool known = false;
        if (own.n > 0 && own.point[0].from_utc_s <= t->now_utc_s - PAST_S)
            s->past_utc_s = t->now_utc_s;
        for (size_t k = 0; k < own.n; k++) {
            known |= !isnan(own.point[k].v);
            if (!isnan(own.point[k].v) && own.point[k].to_utc_s > s->known_utc_s &&
                own.point[k].from_utc_s <= t->now_utc_s)
                s->known_utc_s = own.point[k].to_utc_s;
        }
        v->series[i].point = NULL;
        if (known)
            v->series[n++] = own;
        else
            free(own.point);
    }
    v->n = n;
    if (n > 0)
        return 0;
    if (t->ahead_s > 0)
        return fail(t->why, SOURCE_BAD, "its values lie in the future, by %lld s",
                    (long long)t->ahead_s);
    return t->why->text[0] ? SOURCE_NO_DATA
                           : fail(t->why, SOURCE_NO_DATA, "no value is known");
}

/* ---- answers ---- */

int answer_clock(const struct source_answer *a, int64_t *ret_utc_s, uw_error *why)
{
    const char *date = answer_header(a, "Date"), *age = answer_header(a, "Age");
    uint64_t age_s = 0;
    int64_t at = 0;

    *ret_utc_s = a->utc_s;
    if (!date || !http_date(date, &at))
        return 0;
    /* age of an answer from a cache */
    if (age && parse_u64(age, &age_s, NULL) == 0 && age_s < SOURCE_WAIT_MAX_S)
        at += (int64_t)age_s;
    if (at > a->utc_s + SOURCE_SKEW_S || at < a->utc_s - SOURCE_SKEW_S)
        return fail(why, SOURCE_BAD,
                    "its clock and the local one differ by %lld s: %d s at most",
                    (long long)(at - a->utc_s), SOURCE_SKEW_S);
    if (at > a->utc_s)
        *ret_utc_s = at;
    return 0;
}

static void keep_tag(char to[SOURCE_TAG], const char *value)
{
    if (value && strlen(value) < SOURCE_TAG)
        (void)snprintf(to, SOURCE_TAG, "%s", value);
    else
        to[0] = '\0';
}

/* gzip, or zip, in which ENTSO-E packs many documents. */
static int check_plain(const struct source_answer *a, uw_error *why)
{
    if (a->body && a->len >= 4 &&
        (memcmp(a->body, "\x1f\x8b", 2) == 0 || memcmp(a->body, "PK\x03\x04", 4) == 0))
        return fail(why, SOURCE_BAD, "the answer is compressed, which was not asked for");
    return 0;
}

static int take_body(const struct source_config *c, const char *secret,
                     struct source_state *s, const struct source_answer *a,
                     struct source_values *ret, uw_error *why)
{
    struct taking t = {
        .c = c, .a = a, .secret = secret, .step = s->step, .values = ret, .why = why};
    int r = c->kind->way == SOURCE_HTTP ? answer_clock(a, &t.now_utc_s, why) : 0;

    if (c->kind->way != SOURCE_HTTP)
        t.now_utc_s = a->utc_s;
    if (r == 0)
        r = check_plain(a, why);
    if (r == 0)
        r = c->kind->read(&t);
    if (r == 0)
        r = finish(&t, s);
    if (r == 0 && a->status == 200) {
        keep_tag(s->seen[s->step].etag, answer_header(a, "ETag"));
        keep_tag(s->seen[s->step].modified, answer_header(a, "Last-Modified"));
    }
    return r;
}

static int take_login(const struct source_config *c, struct source_state *s,
                      const struct source_answer *a, uw_error *why)
{
    struct taking t = {.c = c, .a = a, .why = why};
    int r = check_plain(a, why);

    if (r == 0)
        r = c->kind->read_login(&t, s);
    if (r != 0)
        return r;
    s->logged_in = true;
    return fail(why, SOURCE_LOGGED_IN, "logged in");
}

int source_take(const struct source_config *c, const char *secret, struct source_state *s,
                const struct source_answer *answer, enum source_outcome *ret_outcome,
                struct source_values *ret, uw_error *why)
{
    auto_(source_values_fini) struct source_values values = {.n = 0};
    uw_error text = {""};
    int r;

    assert(s->step < c->kind->steps);
    if (answer->status != 200 && !(c->kind->own_refusals && answer->status == 400))
        r = take_refusal(c, secret, s, answer, &text);
    else if (c->kind->ask_login && !s->token[0])
        r = take_login(c, s, answer, &text);
    else
        r = take_body(c, secret, s, answer, &values, &text);
    if (r < 0)
        return fail(why, r, "%s: out of memory", c->name);
    if (r == SOURCE_WAIT)
        s->step = c->kind->steps;
    else if (r != SOURCE_LOGGED_IN)
        s->step++;
    if (r == SOURCE_VALUES) {
        *ret = values;
        values.n = 0;
    } else {
        (void)fail(why, 0, "%s: %s", c->name, text.text);
    }
    *ret_outcome = (enum source_outcome)r;
    return 0;
}
