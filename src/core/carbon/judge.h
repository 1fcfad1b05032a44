/* Judges forecasts against actual values.  Pure: time is an argument.
 *
 * Of each issue of a forecast the values for 1, 3, 6, 12 and 24 h after its making are
 * kept until the actual value of that time is known; then their errors count, together
 * with those of two reference forecasts: persistence (the value that was known when the
 * forecast was made) and the value at the same time of the day before.  Explained in
 * docs/signals.md#judged-forecasts.
 */
#ifndef CORE_CARBON_JUDGE_H
#define CORE_CARBON_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    JUDGE_HORIZONS = 5,
    JUDGE_EVERY_S = 900,      /* least time between two judged issues */
    JUDGE_WAIT_S = 48 * 3600, /* longest wait for the actual value */
    JUDGE_LAST_S = 7200,      /* greatest age of the value for persistence */
    JUDGE_DAYS = 28,          /* days whose errors count */
    JUDGE_OPEN = 1152,        /* (46 + 5 * 48) h of issues, four an hour, and a few */
    JUDGE_ENOUGH = 48,        /* values for a verdict, of … */
    JUDGE_ENOUGH_DAYS = 3,    /* … so many days */
};
/* The i-th horizon; 0 after the last one. */
int64_t judge_horizon_s(size_t i);

/* A value between two times; NaN: unknown. */
struct judge_point {
    int64_t from_utc_s, to_utc_s;
    double v;
    bool estimated;
};
struct judge_series {
    const struct judge_point *point; /* in the order of time, without overlap */
    size_t n;
};

/* A forecast value whose actual value is not known yet. */
struct judge_case {
    int64_t issued_utc_s; /* when the forecast was made … */
    unsigned horizon;     /* … of which horizon it is */
    double forecast, last;
    double yesterday; /* NaN: unknown */
};
/* Sums of absolute errors. */
struct judge_sum {
    uint64_t n, n_yesterday, missed; /* missed: values without an actual value in time */
    double forecast, last, yesterday;
};
struct judge_day {
    int64_t day; /* day since 1970 of the forecast time; n = 0 for all horizons: free */
    struct judge_sum sum[JUDGE_HORIZONS];
};
struct judge {
    uint64_t seen;        /* identifies the last issue; 0: none */
    int64_t issued_utc_s; /* of the last one that is judged */
    unsigned worse;       /* bits of horizons: judge_verdict() */
    size_t n;
    struct judge_case open[JUDGE_OPEN];
    struct judge_day day[JUDGE_DAYS];
};

/* One step with the present series: judges what has become known, and keeps a new issue.
 * issued_utc_s: when the source made the forecast; 0: unknown, a changed forecast counts
 * as made now.  Values that lie in the future after the clock was set back are dropped.
 */
void judge_step(struct judge *j, int64_t issued_utc_s, int64_t utc_s,
                const struct judge_series *forecast, const struct judge_series *actual);

/* Whether nothing is kept any more: no value waits, and all errors are older than
 * JUDGE_DAYS.
 */
bool judge_is_over(const struct judge *j, int64_t utc_s);

/* Mean absolute errors at a horizon over the last JUDGE_DAYS days.  false: none. */
struct judge_score {
    uint64_t n, n_yesterday, missed;
    unsigned days; /* with a value */
    double forecast, last;
    double yesterday; /* NaN: unknown */
};
bool judge_score(const struct judge *j, size_t horizon, int64_t utc_s,
                 struct judge_score *ret);

/* Updates j->worse, the horizons at which the forecast is worse than persistence; a
 * horizon is removed when the forecast is better by a twentieth.  With too few values it
 * stays unchanged.  Returns whether it has changed.
 */
bool judge_verdict(struct judge *j, int64_t utc_s);

#endif
