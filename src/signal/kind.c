#include "signal/kind.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/array.h"
#include "base/error.h"
#include "base/moment.h"
#include "base/units.h"

#define SPAN_S (SIGNAL_DAYS * INT64_C(86400))
#define VALUE_MAX 1e6 /* for any value in its unit: a larger one has a wrong unit */

/* ---- requests ---- */

void ask_put(struct asking *a, const char *text)
{
    size_t n = strlen(text);

    if (n >= SOURCE_URL - a->url_len) {
        a->url_len = SOURCE_URL;
        return;
    }
    memcpy(a->request->url + a->url_len, text, n + 1);
    a->url_len += n;
}

void ask_put_encoded(struct asking *a, const char *text)
{
    for (; *text; text++) {
        char part[4] = {*text, '\0'};
        if (!isalnum((unsigned char)*text) && !strchr("-._~", *text))
            (void)snprintf(part, sizeof part, "%%%02X", (unsigned char)*text);
        ask_put(a, part);
    }
}

void ask_query(struct asking *a, const char *key, const char *value)
{
    if (a->url_len < SOURCE_URL)
        ask_put(a, strchr(a->request->url, '?') ? "&" : "?");
    ask_put(a, key);
    ask_put(a, "=");
    ask_put_encoded(a, value);
}

const char *minute_iso(int64_t utc_s, char ret[MINUTE_TEXT])
{
    time_t t = (time_t)utc_s;
    struct tm tm;

    ret[0] = '\0';
    if (gmtime_r(&t, &tm))
        (void)strftime(ret, MINUTE_TEXT, "%Y-%m-%dT%H:%MZ", &tm);
    return ret;
}

const char *minute_plain(int64_t utc_s, char ret[MINUTE_TEXT])
{
    time_t t = (time_t)utc_s;
    struct tm tm;

    ret[0] = '\0';
    if (gmtime_r(&t, &tm))
        (void)strftime(ret, MINUTE_TEXT, "%Y%m%d%H%M", &tm);
    return ret;
}

void ask_secret_header(struct asking *a, const char *name, const char *before,
                       const char *value)
{
    struct source_sent *h = &a->request->header[a->request->n_headers++];

    h->name = name;
    h->is_secret = true;
    (void)snprintf(h->value, sizeof h->value, "%s%s", before, value);
}

/* ---- answers ---- */

const char *answer_header(const struct source_answer *a, const char *name)
{
    for (size_t i = 0; i < a->n_headers; i++)
        if (strcasecmp(a->header[i].name, name) == 0)
            return a->header[i].value;
    return NULL;
}

bool http_date(const char *text, int64_t *ret_utc_s)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char iso[32], month[4];
    const char *at;
    struct moment m;

    /* Thu, 26 Nov 2026 18:00:00 GMT */
    if (strlen(text) != 29 || text[3] != ',' || strcmp(text + 25, " GMT") != 0)
        return false;
    (void)snprintf(month, sizeof month, "%.3s", text + 8);
    at = strstr(months, month);
    if (!at || (at - months) % 3 != 0)
        return false;
    (void)snprintf(iso, sizeof iso, "%.4s-%02d-%.2sT%.8sZ", text + 12,
                   (int)(at - months) / 3 + 1, text + 5, text + 17);
    if (!moment_read(iso, &m))
        return false;
    *ret_utc_s = moment_utc_s(&m);
    return true;
}

bool json_time(const struct json_value *v, int64_t *ret_utc_s)
{
    const char *text = json_as_text(v);
    struct moment m;

    if (!text || !moment_read(text, &m) || m.date_only)
        return false;
    *ret_utc_s = moment_utc_s(&m);
    return true;
}

int take_json(struct taking *t, struct json **ret)
{
    int r = json_read_hidden("the answer", t->a->body ? t->a->body : "", t->a->len, ret,
                             t->why);

    return r == -EINVAL ? SOURCE_BAD : r;
}

bool take_gives(const struct source_config *c, unsigned i)
{
    return c->provides >> i & 1;
}

struct source_series *take_series(struct taking *t, unsigned i, const char *unit,
                                  int64_t issued_utc_s)
{
    if (!take_gives(t->c, i))
        return NULL;
    t->gives[t->values->n] = i;
    struct source_series *s = &t->values->series[t->values->n++];
    (void)source_signal(t->c, i, s->signal);
    (void)snprintf(s->unit, sizeof s->unit, "%s", unit);
    s->issued_utc_s = issued_utc_s;
    return s;
}

int take_point(struct taking *t, struct source_series *series,
               const struct source_point *point)
{
    if (!series)
        return 0;
    if (isinf(point->v) || fabs(point->v) > VALUE_MAX)
        return fail(t->why, SOURCE_BAD, "%s: %g %s is no value: %g at most",
                    series->signal, point->v, series->unit, VALUE_MAX);
    if (signal_in_range(series->signal, point->v, t->why) < 0)
        return SOURCE_BAD;
    if (point->to_utc_s < point->from_utc_s)
        return fail(t->why, SOURCE_BAD, "%s: a value ends before it begins",
                    series->signal);
    if (point->from_utc_s < t->a->utc_s - SPAN_S ||
        point->from_utc_s > t->a->utc_s + SPAN_S)
        return 0;
    int r = array_grow(&series->point, &series->cap, series->n, SIGNAL_POINTS);
    if (r == -E2BIG)
        return fail(t->why, SOURCE_BAD, "%s: more than %d values", series->signal,
                    SIGNAL_POINTS);
    if (r == 0)
        series->point[series->n++] = *point;
    return r;
}

bool take_number(const struct json_value *v, double *ret)
{
    *ret = (double)NAN;
    return !v || json_is_none(v) || json_as_double(v, ret);
}

bool secret_in(const char *text, const char *secret)
{
    const char *password = secret ? strchr(secret, ':') : NULL;

    return (secret && secret[0] && strstr(text, secret)) ||
           (password && password[1] && strstr(text, password + 1));
}
