/* A cache of the last results of reads of one series: rules are evaluated each second,
 * and a percentile of a full history takes 0.3 ms.  Pure.
 */
#ifndef POLICY_SIGNAL_FOLDS_H
#define POLICY_SIGNAL_FOLDS_H

#include "core/policy/series.h"

struct signal_fold {
    struct policy_read read;
    int64_t utc_s; /* when it was computed */
    struct policy_folded folded;
};

struct signal_folds {
    struct signal_fold *fold; /* NULL before the first */
    size_t n, cap;
};

void signal_folds_fini(struct signal_folds *f); /* also of {0} */
/* The series has changed: drops all results. */
void signal_folds_forget(struct signal_folds *f);
/* As policy_series_fold(); read->signal is not looked at. */
void signal_folds_read(struct signal_folds *f, const struct policy_points *points,
                       enum policy_series series, const struct policy_read *read,
                       int64_t utc_s, struct policy_folded *ret);

#endif
