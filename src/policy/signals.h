/* The store of signals from outside: values of carbon, price, queues and other declared
 * signals, from files, adapters and administrators.
 *
 * Owns: the last value of each signal, values set by hand, histories and forecasts.
 * Touches: nothing; time is an argument.  Thread: the loop's. Explained in
 * docs/policies.md#signals-from-outside.
 *
 * A value holds from its time until the next one or until its age limit has passed; then
 * the signal is unknown: never 0, and never an outdated value.  A value set by hand takes
 * precedence over all others until it expires.
 *
 * For rules: signals_find() when a policy is read, on_change() for what to evaluate
 * again, signals_read() for the value of a read.  For adapters: signals_put(),
 * signals_put_series(), signals_fail().
 */
#ifndef POLICY_SIGNALS_H
#define POLICY_SIGNALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/names.h"
#include "core/policy/series.h"
#include "signal/facts.h"
#include "signal/signal.h"
#include "underwatt/error.h"

enum {
    SIGNALS_MAX = 256,
    SIGNAL_SOURCE = 200, /* "user anna", "file /srv/grid.csv" */
    SIGNAL_WHY = 200,
};

struct signals;

/* The same moment on the loop's clock and in UTC. */
struct signal_time {
    uint64_t now_ns;
    int64_t utc_ns;
};

enum signal_event { SIGNAL_EVENTS(NAME_ENUM) }; /* the store reports the last five */

struct signals_opts {
    /* The value, or whether it is known, or the series has changed.  May be NULL, as
     * on_event; both are called from inside the functions below, which they must not
     * call.
     */
    void (*on_change)(size_t i, void *user);
    void (*on_event)(enum signal_event event, size_t i, void *user);
    void *user;
};
/* -ENOMEM.  Holds the well-known signals, prices in EUR. */
int signals_new(const struct signals_opts *opts, struct signals **ret);
void signals_free(struct signals *s);
DEFINE_AUTO(struct signals *, signals_free);

/* Prepares other declarations of the site, each checked by signal_declared() before;
 * prices are in this currency.  Nothing changes before signals_use().  -EINVAL (a
 * duplicate name), -E2BIG, -ENOMEM.
 */
struct signals_plan;
int signals_plan_new(const struct signal_decl *decl, size_t n, const char *currency,
                     struct signals_plan **ret, uw_error *err);
void signals_plan_free(struct signals_plan *plan);
DEFINE_AUTO(struct signals_plan *, signals_plan_free);
/* Puts it in force and frees it.  Values of signals that stay are kept; indices are new.
 */
void signals_use(struct signals *s, struct signals_plan *plan);
/* Both at once; on failure nothing changed. */
int signals_declare(struct signals *s, const struct signal_decl *decl, size_t n,
                    const char *currency, uw_error *err);

/* ---- for rules ---- */

size_t signals_count(const struct signals *s);
/* As an entry of a catalogue; borrowed until signals_use(). */
const struct policy_signal *signals_at(const struct signals *s, size_t i);
/* -1: there is none. */
int signals_find(const struct signals *s, const char *name);
/* The value of a read of signal i now, or of its series; read->signal is not looked at.
 * A text is borrowed until the signal changes.  Of a series until_ns is when to read
 * again: until then, and while on_change() is not called, the value stays.
 */
void signals_read(struct signals *s, size_t i, const struct policy_read *read,
                  struct signal_time t, struct policy_value *ret);

/* ---- for sources ---- */

/* A value from a source.  unit: of a number; NULL or "": the signal's own. */
struct signal_put {
    const char *unit, *source; /* copied */
    int64_t utc_ns;            /* the time of the value, or of the series */
    uint64_t age_ns;           /* 0: the signal's age limit */
    bool listed;               /* the source is one of policy.yaml */
    bool estimated;            /* the source marks the value as estimated … */
    const bool *estimates;     /* … of each point of a series; NULL: as `estimated` */
};
/* -EINVAL: another type or unit; -ERANGE: the value is not a finite number, or its time
 * lies in the future.  Nothing changed.
 */
int signals_put(struct signals *s, size_t i, const struct signal_put *p,
                const struct signal_value *value, struct signal_time t, uw_error *err);
/* Replaces the series: in the order of time, NaN where nothing is known.  A point counts
 * until the next one, or for the age limit.  Of a signal that is no forecast they are
 * history, the value now, and the values to come as their time comes.  Copied; -E2BIG:
 * more than SIGNAL_POINTS.
 */
int signals_put_series(struct signals *s, size_t i, const struct signal_put *p,
                       const struct policy_point *point, size_t n, struct signal_time t,
                       uw_error *err);
/* Sets the facts besides the values; they are kept until the next call. */
void signals_tell(struct signals *s, size_t i, const struct signal_facts *facts);
/* Records that the source has no value, and why; earlier values stay until their age
 * limit.
 */
void signals_fail(struct signals *s, size_t i, const char *source, const char *why);
/* The signal no longer has a source in policy.yaml: drops the values and the error of the
 * old source; reported by the next signals_step().  Other values stay.
 */
void signals_unlist(struct signals *s, size_t i);

/* ---- by hand ---- */

enum {
    SIGNAL_FOR_S = 900,          /* default */
    SIGNAL_FOR_MAX_S = 24 * 3600 /* longest allowed */
};
/* by: "user anna"; for_ns 0: SIGNAL_FOR_S.  -EINVAL (type, unit, a forecast), -ERANGE. */
int signals_set(struct signals *s, size_t i, const struct signal_put *p,
                const struct signal_value *value, uint64_t for_ns, struct signal_time t,
                uw_error *err);
/* -ENOENT: none is set. */
int signals_unset(struct signals *s, size_t i, struct signal_time t, uw_error *err);

/* ---- time ---- */

/* Ends the values that have expired. */
void signals_step(struct signals *s, struct signal_time t);
/* When to call signals_step() next, on the loop's clock; UINT64_MAX: nothing ends. */
uint64_t signals_due(const struct signals *s, struct signal_time t);

/* ---- views ---- */

struct signal_view {
    const struct signal_decl *decl;
    const char *source; /* source of the value, known or not; "": there was none */
    const struct signal_value
        *value; /* in the signal's unit; NULL: unknown, a forecast */
    bool known; /* of a forecast: a part of it lies in the future */
    bool by_hand, estimated;
    bool used;      /* the site declares the signal, or it has had a value */
    double age_s;   /* of the value; 0 where there was none */
    int64_t utc_ns; /* time of the value; 0: there was none */
    double
        ends_s; /* time for which the value stays known; of a forecast: until its end */
    int64_t end_utc_ns; /* end of that time; 0: unknown */
    /* History or forecast, in the order of time, each until the next one; NaN: unknown.
     * Borrowed until the signal changes.
     */
    const struct policy_point *point;
    size_t points;
    int64_t point_end_utc_s; /* of the last one */
    bool is_series; /* the points are those of a source, not the values in force here */
    const bool *estimates; /* of each point of a series; NULL: as `estimated` */
    const char *why; /* error of the source, or why the value is unknown; "": neither */
    const struct signal_facts *facts; /* NULL: none are known.  Borrowed, as the points */
};
void signals_look(struct signals *s, size_t i, struct signal_time t,
                  struct signal_view *ret);

#endif
