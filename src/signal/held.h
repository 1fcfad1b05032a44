/* The values of a source over its rounds: the values held of each signal, the present
 * value, and both as JSON, for the cache and for clients.
 *
 * Owns: nothing.  Touches: nothing; time is an argument. Explained in
 * docs/signals.md#values-that-are-held.
 */
#ifndef SIGNAL_HELD_H
#define SIGNAL_HELD_H

#include "io/json.h"
#include "signal/config.h"
#include "signal/facts.h"
#include "signal/held-utc.h"
#include "signal/source.h"

/* Adds the values of a round to the held ones.  A forecast replaces the one before; of
 * another series, values before the first new one are kept, up to SIGNAL_POINTS.  Moves
 * from's points.  -ENOMEM: *held is unchanged.
 */
int held_add(struct source_values *held, struct source_values *from);
/* For one series: the new values, preceded by the kept old ones.  -ENOMEM: *new is
 * unchanged.
 */
int held_join(const struct source_series *old, struct source_series *new);
/* NULL: none is held. */
const struct source_series *held_find(const struct source_values *held,
                                      const char *signal);

/* When a point ends: at its own end, or after the age limit of its source or signal. */
int64_t held_end(const struct signals_source *s, const struct source_series *series,
                 const struct source_point *p);
/* The present point or, of a forecast, the first point that has not ended; NULL: the
 * signal is unknown.
 */
const struct source_point *held_now(const struct signals_source *s,
                                    const struct source_series *series, int64_t utc_s);

/* ---- the cache ---- */

struct held {
    struct source_values values;
    int64_t asked_utc_s;             /* the end of the last round; 0: there was none */
    int64_t rest_utc_s, known_utc_s; /* as of struct source_state */
};
void held_fini(struct held *h); /* also of {0} */

/* The cache of a source as a text; free() it. */
int held_write(const struct source_config *c, const struct held *h, char **ret,
               uw_error *err);
/* -EINVAL with one line: torn, of another source or of another configuration of it.
 * *ret is unchanged then.
 */
int held_read(const struct source_config *c, const char *name, const char *text,
              size_t len, struct held *ret, uw_error *err);

/* ---- what is served ---- */

/* Selection of signals. */
struct held_shown {
    const char *signal;  /* this one alone; NULL: all */
    int64_t since_utc_s; /* as of struct held_origin */
    bool asked; /* include the state of the sources, which changes with each request */
};
/* The origin of a signal. */
struct held_origin {
    const char *source, *type;
    const char *licence;        /* of its values; NULL: not known */
    char origin[SOURCE_ORIGIN]; /* as source_origin() */
    const char *site; /* URL of the instance that made the requests; NULL: this one */
    const struct signals_source *limits; /* as held_end() */
    const struct signal_facts *facts;    /* NULL: none */
    int64_t since_utc_s; /* points that ended before this time are left out; 0: none */
};
struct held_origin held_origin(const struct signals_source *s);

/* One signal as an object in o.  series: NULL: none is held; error: "": the source has no
 * error.
 */
void held_show(struct json_out *o, const struct held_origin *from, const char *signal,
               const struct source_series *series, int64_t utc_s, const char *error);

/* The inverse, for clients: the signal of this name in an answer.  Points are in the form
 * of the store, in which each point holds until the next one: unknown (NaN) where no
 * value is known.
 */
enum { HELD_ERROR = 200 };
struct held_signal {
    char source[SOURCE_WORD], unit[SIGNAL_UNIT];
    char origin[SOURCE_ORIGIN]; /* as source_origin() */
    char licence[SOURCE_WORD];  /* "": not known */
    bool known; /* a value is known now or, of a forecast, for a future time */
    char error[HELD_ERROR]; /* "": the source is well */
    int64_t time_utc_s;     /* of the last value that is no future; 0: there is none */
    uint64_t age_s;         /* of the point that counts for the longest time */
    struct policy_point *point;
    bool *estimated; /* estimated flag of each point */
    size_t n;
    struct signal_facts facts;
};
void held_signal_fini(struct held_signal *s); /* also of {0} */
static inline void held_signal_fini_p(struct held_signal *p)
{
    held_signal_fini(p);
}
/* -ENOENT: the answer has no such signal; -EINVAL: not a valid answer; -ENOMEM. */
int held_take(const char *name, const char *text, size_t len, const char *signal,
              int64_t utc_s, struct held_signal *ret, uw_error *err);

#endif
