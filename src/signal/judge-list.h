/* The judges of the forecasts of one process, each identified by its signal: their state
 * over rounds, and which verdicts have changed.
 *
 * Owns: the judges.  Touches: nothing; time is an argument. Explained in
 * docs/design/signals.md#forecasts-judged.
 */
#ifndef SIGNAL_JUDGE_LIST_H
#define SIGNAL_JUDGE_LIST_H

#include "base/auto.h"
#include "signal/facts.h"
#include "signal/judged.h"

/* {0}: none. */
struct judge_list {
    struct judged *judged[JUDGED_MAX];
    size_t n;
    bool changed; /* set by judge_list_step(), cleared by the writer of the list */
    bool is_full; /* as last reported */
    bool lacks;   /* a forecast found no place in this round */
};
void judge_list_fini(struct judge_list *l);

/* Replaces the judges by those of judged_write(), less those that are over.  As
 * judged_read(); *l is unchanged on failure.
 */
int judge_list_read(struct judge_list *l, const char *name, const char *text, size_t len,
                    int64_t utc_s, uw_error *err);
int judge_list_write(const struct judge_list *l, char **ret, uw_error *err);

/* A forecast as it is held now, and the signal that it predicts, in the same unit. */
struct judge_forecast {
    const char *signal, *source, *unit; /* plain texts; the source is cut to fit */
    int64_t issued_utc_s;               /* as of judge_step() */
    struct judge_series ahead, came;
};
/* The signal that a forecast predicts: "carbon" for "carbon.forecast". */
void judge_list_foretold(const char *forecast, char ret[SIGNAL_NAME]);

/* A round over all forecasts begins. */
void judge_list_begin(struct judge_list *l);
/* judge_step() and judge_verdict() for this forecast; its judge restarts if its source or
 * unit has changed.  Positive: what to report.
 */
enum {
    JUDGE_LIST_VERDICT = 1, /* the horizons at which the forecast is worse have changed */
    JUDGE_LIST_FULL,        /* JUDGED_MAX other forecasts are judged: reported once */
};
int judge_list_step(struct judge_list *l, const struct judge_forecast *forecast,
                    int64_t utc_s);
/* Sets the scores of this forecast, where it has a judge. */
void judge_list_facts(const struct judge_list *l, const char *signal, int64_t utc_s,
                      struct signal_facts *f);

#endif
