/* A kind of source, and functions that the files of the kinds share: URLs, times, answers
 * in JSON.  Other files use signal/source.h.
 */
#ifndef SIGNAL_KIND_H
#define SIGNAL_KIND_H

#include "io/json.h"
#include "signal/source.h"

#define G_PER_LB 453.592 /* lb/MWh times this / 1000: g/kWh */

/* An answer to read: status 200, or any status if the kind has `own_refusals`. */
struct taking {
    const struct source_config *c;
    const struct source_answer *a;
    const char *secret; /* NULL: none */
    unsigned step;
    int64_t now_utc_s; /* by the source's clock or the local one, whichever is ahead */
    struct source_values *values;
    unsigned gives[SOURCE_GIVES]; /* the signal of each series of values */
    int64_t
        ahead_s; /* seconds by which a present value lies in the future; 0: none does */
    uw_error *why;
};

struct asking {
    const struct source_config *c;
    const struct source_state *s;
    const char *secret;
    int64_t utc_s;
    struct source_request *request;
    size_t url_len; /* SOURCE_URL: the URL is too long */
};

struct source_kind {
    const char *type;
    const char *gives[SOURCE_GIVES + 1];
    unsigned ahead;     /* bits of gives: values in the future are kept */
    unsigned must, may; /* enum source_key */
    enum source_way way;
    unsigned least_s, usual_s; /* seconds between rounds; of a file: 1 s and 10 s */
    unsigned steps;
    bool own_refusals;
    bool whole_url;  /* `url` is the whole URL of the request, not the base of the service
                      */
    const char *url; /* of the service; NULL: `url` is given */
    const char *licence; /* NULL: unknown */
    /* May be NULL.  Called after the mandatory keys were checked. */
    int (*check)(const struct source_config *c, const char *countries, uw_error *err);
    /* Whether this step of a round makes a request; NULL: every step does. */
    bool (*wants)(const struct source_config *c, unsigned step);
    /* Appends the path and query to the service's URL, and adds headers.  NULL: no
     * request is made.
     */
    void (*ask)(struct asking *a);
    /* A login, where the kind has one: the request, and the token from the answer: 0, or
     * an outcome with its line in *why.
     */
    void (*ask_login)(struct asking *a);
    int (*read_login)(struct taking *t, struct source_state *s);
    /* 0, or an outcome with its line in t->why, or -ENOMEM. */
    int (*read)(struct taking *t);
    /* As source_origin(); NULL: nothing to say. */
    void (*origin)(const struct source_config *c, char ret[SOURCE_ORIGIN]);
};

extern const struct source_kind kind_electricitymaps, kind_uk, kind_watttime, kind_csv,
    kind_json, kind_static, kind_carbon_aware, kind_entsoe;

/* Checks a URL of the configuration; name: for messages.  It must be https, or http for
 * this machine or if `insecure` is set.  -EINVAL.
 */
int url_check(const char *name, const char *url, bool insecure, uw_error *err);

/* ---- requests ---- */

void ask_put(struct asking *a, const char *text);
/* Percent-encodes bytes that are not allowed in a URL. */
void ask_put_encoded(struct asking *a, const char *text);
/* "?key=value", or "&key=value". */
void ask_query(struct asking *a, const char *key, const char *value);
/* "2026-11-26T18:00Z", "202611261800".  Returns ret. */
enum { MINUTE_TEXT = 40 };
const char *minute_iso(int64_t utc_s, char ret[MINUTE_TEXT]);
const char *minute_plain(int64_t utc_s, char ret[MINUTE_TEXT]);
/* Adds a header with the secret; before: its prefix ("Bearer "). */
void ask_secret_header(struct asking *a, const char *name, const char *before,
                       const char *value);

/* ---- answers ---- */

/* The present time by the source's clock or the local one, whichever is ahead.
 * SOURCE_BAD: the difference is too large.
 */
int answer_clock(const struct source_answer *a, int64_t *ret_utc_s, uw_error *why);
/* A header by its name, case-insensitive; NULL: none. */
const char *answer_header(const struct source_answer *a, const char *name);
/* "Thu, 26 Nov 2026 18:00:00 GMT"; false: it is none. */
bool http_date(const char *text, int64_t *ret_utc_s);
/* A text with a time of ISO 8601, UTC where it has no zone. */
bool json_time(const struct json_value *v, int64_t *ret_utc_s);

/* The body; 0, SOURCE_BAD or -ENOMEM. */
int take_json(struct taking *t, struct json **ret);
/* Whether the source is configured to give the i-th signal of its kind. */
bool take_gives(const struct source_config *c, unsigned i);
/* Begins the values of that signal; NULL: the source is not configured to give it. */
struct source_series *take_series(struct taking *t, unsigned i, const char *unit,
                                  int64_t issued_utc_s);
/* Adds a point, in any order; series NULL: no effect.  to equal to from: until the age
 * limit.  0, SOURCE_BAD, -ENOMEM.
 */
int take_point(struct taking *t, struct source_series *series,
               const struct source_point *point);
/* Whether a text contains the secret, or the password of a login. */
bool secret_in(const char *text, const char *secret);
/* A number; null and a missing one are unknown (NaN).  false: something else. */
bool take_number(const struct json_value *v, double *ret);

#endif
