/* Sources of signals: services on the internet, files, a table.  Determines the next
 * request to a source, and interprets its answers.
 *
 * Owns: nothing; configuration, state and values belong to the caller.  Touches: nothing,
 * and time is an argument: the caller has the sockets and files and carries requests and
 * answers.  Explained in docs/signals.md.
 *
 * A source works in rounds.  source_next() gives the requests of a round one by one;
 * source_take() reads the answer to the last one and advances, until source_next()
 * returns SOURCE_E_DONE.
 *
 * Each kind of source is a row (struct source_kind) in a file of its own.
 */
#ifndef SIGNAL_SOURCE_H
#define SIGNAL_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "signal/read.h"
#include "signal/signal.h"
#include "underwatt/error.h"

enum {
    SOURCE_URL = 1024, /* of a request; … */
    SOURCE_BASE = 512, /* … of a configuration, as files */
    SOURCE_WORD = 64,
    SOURCE_ORIGIN = 96,
    SOURCE_TOKEN = 4096,
    SOURCE_TAG = 128, /* longer tags are not kept */
    SOURCE_GIVES = 3, /* signals of a source */
    SOURCE_STEPS = 2, /* requests of a round, excluding a login */
    SOURCE_HEADERS = 4,
    SOURCE_EVERY_MAX_S = 7 * 86400, /* between rounds */
    SOURCE_BODY_MAX = 4 << 20,      /* of an answer, or of a file */
    SOURCE_WAIT_MAX_S = 86400,      /* longest Retry-After that is respected */
    SOURCE_SKEW_S =
        300, /* largest difference between the source's clock and the local one */
};

/* ---- configuration ---- */

/* Keys that a kind has in addition to the common ones (name, type, every, age, provides,
 * as).
 */
enum source_key {
    KEY_API = 1 << 0,
    KEY_ZONE = 1 << 1,
    KEY_REGION = 1 << 2,
    KEY_POSTCODE = 1 << 3,
    KEY_LOCATION = 1 << 4,
    KEY_URL = 1 << 5,
    KEY_FILE = 1 << 6,
    KEY_PATH = 1 << 7,
    KEY_COLUMN = 1 << 8,
    KEY_UNIT = 1 << 9,
    KEY_YEAR = 1 << 10,
    KEY_KEY_FILE = 1 << 11,
    KEY_LOGIN_FILE = 1 << 12,
};
enum { SOURCE_KEYS = 13 };
/* "api", "zone", … of the i-th bit. */
const char *source_key_name(size_t i);

struct source_kind;
struct source_config {
    char name[SOURCE_WORD]; /* of messages */
    const struct source_kind *kind;
    unsigned given;    /* enum source_key: which of the keys below are given */
    unsigned api;      /* version; 0: the newest */
    unsigned year;     /* 0: the newest */
    unsigned provides; /* bits of the kind's gives; 0: the first */
    bool insecure;     /* a URL without TLS to another host is allowed */
    char zone[SOURCE_WORD], region[SOURCE_WORD], postcode[SOURCE_WORD],
        location[SOURCE_WORD];
    char url[SOURCE_BASE]; /* URL of the service; "": the kind's default */
    char file[SOURCE_BASE];
    char path[SIGNAL_PATH];   /* in JSON */
    char column[SOURCE_WORD]; /* of CSV */
    char unit[SIGNAL_UNIT];   /* of its numbers */
    char as[SIGNAL_NAME];     /* name used instead of the signal's own; "": none */
};

/* The kinds, in their order; NULL behind the last. */
const struct source_kind *source_kind_at(size_t i);
/* NULL: there is none. */
const struct source_kind *source_kind_find(const char *type);
const char *source_kind_type(const struct source_kind *kind);
/* The licence of the service's values; NULL: determined by the site's contract or its own
 * files.
 */
const char *source_kind_licence(const struct source_kind *kind);
/* The attribution that the licence requires; of a table also the year and what the
 * figures include; "": nothing beyond the name of the source.
 */
void source_origin(const struct source_config *c, char ret[SOURCE_ORIGIN]);
/* The i-th signal that the kind can give ("carbon.forecast"), NULL after the last.
 * "value": the kind has no name for it, and `as` gives the name.
 */
const char *source_kind_gives(const struct source_kind *kind, size_t i);
/* Seconds between rounds: the least, and the default. */
void source_kind_every(const struct source_config *c, unsigned *ret_least_s,
                       unsigned *ret_usual_s);
/* Whether a request needs the content of key_file or login_file. */
bool source_needs_secret(const struct source_config *c);

/* Checks the keys of a source, completes `provides` and `given`.  countries: iso3166.tab
 * of the time zone database, NULL: zones are checked by form alone.  -EINVAL with one
 * line; *c is unchanged then.
 */
int source_check(struct source_config *c, const char *countries, uw_error *err);
/* The name of the i-th signal of the kind: `as` counts.  Returns ret. */
const char *source_signal(const struct source_config *c, size_t i, char ret[SIGNAL_NAME]);

/* ---- requests ---- */

/* The state of a source between requests; {0} at the start.  The token is secret. */
struct source_state {
    unsigned step;  /* of the round */
    bool logged_in; /* logged in during this round: a token that is then refused is not
                       renewed again */
    char token[SOURCE_TOKEN];
    int64_t token_ends_utc_s;
    int64_t rest_utc_s;  /* no request before this time, because of a rate limit */
    int64_t known_utc_s; /* end of the last value received */
    int64_t past_utc_s;  /* when values of half a day ago, or older, were last received */
    struct source_seen { /* by step, for conditional requests */
        uint64_t url_hash;
        char etag[SOURCE_TAG], modified[SOURCE_TAG];
    } seen[SOURCE_STEPS];
};

enum source_way { SOURCE_HTTP, SOURCE_FILE, SOURCE_TABLE };

struct source_header {
    const char *name, *value;
};
/* A GET request, or a file to read, or neither: the table is built in.  Only the parts
 * that are not secret may be logged, and no header follows a redirect to another host.
 */
struct source_request {
    enum source_way way;
    bool is_login;
    char url[SOURCE_URL];     /* or the file; without secrets */
    const char *secret_query; /* "securityToken": a parameter that is put behind the URL
                                 with the secret as its value; NULL: none */
    const char *basic;        /* "user:password" of HTTP Basic; NULL: none.  Secret */
    struct source_sent {
        const char *name;
        char value[SOURCE_TOKEN + 16];
        bool is_secret;
    } header[SOURCE_HEADERS];
    size_t n_headers;
};

enum {
    SOURCE_E_DONE = 1, /* the round is over; the next call begins another */
    SOURCE_E_REST,     /* no request before rest_utc_s */
};
/* secret: the line of key_file or login_file ("user:password"), NULL: none; borrowed for
 * as long as *ret is used.  0, an outcome above, -EINVAL (the URL is too long).
 */
int source_next(const struct source_config *c, const char *secret, struct source_state *s,
                int64_t utc_s, struct source_request *ret, uw_error *err);

/* ---- answers ---- */

struct source_answer {
    unsigned status; /* 200 of a file and of a table */
    const struct source_header *header;
    size_t n_headers;
    const char *body; /* NULL: none */
    size_t len;
    int64_t utc_s;          /* now */
    int64_t modified_utc_s; /* of a file */
};

/* A value between two times, UTC; NaN: unknown. */
struct source_point {
    int64_t from_utc_s, to_utc_s;
    double v;
    bool estimated; /* the source marks it as estimated, or it is a placeholder for a
                       later value */
};
struct source_series {
    char signal[SIGNAL_NAME];
    char unit[SIGNAL_UNIT];     /* g/kWh, EUR/kWh, kW, kWh */
    int64_t issued_utc_s;       /* when the source made these values; 0: unknown */
    struct source_point *point; /* in the order of time, without overlap */
    size_t n, cap;
};
struct source_values {
    struct source_series series[SOURCE_GIVES];
    size_t n;
};
void source_values_fini(struct source_values *v); /* also of {0} */
static inline void source_values_fini_p(struct source_values *p)
{
    source_values_fini(p);
}

enum source_outcome {
    SOURCE_VALUES,    /* *ret holds some */
    SOURCE_SAME,      /* unchanged (304) */
    SOURCE_LOGGED_IN, /* or the token was refused: the same request is repeated at once */
    SOURCE_REFUSED,   /* the key, the login or its rights were refused */
    SOURCE_WAIT,      /* a rate limit, or the service is down: see rest_utc_s */
    SOURCE_NO_DATA,   /* the source has no value now */
    SOURCE_BAD,       /* the answer is not valid for the kind */
    SOURCE_OUTCOMES,
};
/* "values", "not modified", … */
const char *source_outcome_name(enum source_outcome outcome);

/* Processes the answer to the last request.  *ret is set for SOURCE_VALUES only; for the
 * outcomes without values *why is one line without any secret.  -ENOMEM: nothing changed.
 */
int source_take(const struct source_config *c, const char *secret, struct source_state *s,
                const struct source_answer *answer, enum source_outcome *ret_outcome,
                struct source_values *ret, uw_error *why);

#endif
