/* Forecasts against what came.  Pure: values in, values out, time an argument.
 *
 * Of each issue of a forecast the value 1, 3, 6, 12 and 24 h after its making is kept
 * until the actual value of that time is known; then its error counts beside those of two
 * guesses that need no forecast: persistence, the value that was known when the forecast
 * was made, and the value of the same time the day before.  Explained in
 * docs/signals.md#forecasts-judged.
 */
#ifndef CORE_CARBON_JUDGE_H
#define CORE_CARBON_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    JUDGE_HORIZONS = 5,
    JUDGE_EVERY_S = 900,      /* between two issues that are judged, at least */
    JUDGE_WAIT_S = 48 * 3600, /* for the actual value of a time, from that time on */
    JUDGE_LAST_S = 7200,      /* how old the value of persistence may be */
    JUDGE_DAYS = 28,          /* errors of so many days count */
    JUDGE_OPEN = 1152,        /* (46 + 5 * 48) h of issues, four an hour, and a few */
    JUDGE_ENOUGH = 48,        /* values for a verdict, of … */
    JUDGE_ENOUGH_DAYS = 3,    /* … so many days */
};
/* Of the i-th horizon; 0 behind the last one. */
int64_t judge_horizon_s(size_t i);

/* From this time to that one; NaN: unknown. */
struct judge_point {
    int64_t from_utc_s, to_utc_s;
    double v;
    bool estimated;
};
struct judge_series {
    const struct judge_point *point; /* in the order of time, without overlap */
    size_t n;
};

/* A value that waits for what comes. */
struct judge_case {
    int64_t issued_utc_s; /* when the forecast was made … */
    unsigned horizon;     /* … of which horizon it is */
    double forecast, last;
    double yesterday; /* NaN: unknown */
};
/* Sums of absolute errors. */
struct judge_sum {
    uint64_t n, n_yesterday, missed; /* missed: no actual value came in time */
    double forecast, last, yesterday;
};
struct judge_day {
    int64_t day; /* since 1970, of the time that was foretold; n = 0 of all: free */
    struct judge_sum sum[JUDGE_HORIZONS];
};
struct judge {
    uint64_t seen;        /* what tells the last issue from the next one; 0: none */
    int64_t issued_utc_s; /* of the last one that is judged */
    unsigned worse;       /* bits of horizons: judge_verdict() */
    size_t n;
    struct judge_case open[JUDGE_OPEN];
    struct judge_day day[JUDGE_DAYS];
};

/* What is held now: judges what has come, and keeps a new issue.  issued_utc_s: when the
 * source made the forecast; 0: it does not say, and what has changed is made now.  What
 * a clock that is set back leaves in the future is forgotten.
 */
void judge_step(struct judge *j, int64_t issued_utc_s, int64_t utc_s,
                const struct judge_series *forecast, const struct judge_series *actual);

/* Nothing is kept any more: no value waits, and errors are older than JUDGE_DAYS. */
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

/* Renews j->worse: horizons at which the forecast is worse than persistence, until it is
 * better by a twentieth; with too few values it stays.  Returns whether that has changed.
 */
bool judge_verdict(struct judge *j, int64_t utc_s);

#endif
