#include "policy/signal-folds.h"

#include <stdlib.h>

#include "base/array.h"

void signal_folds_fini(struct signal_folds *f)
{
    free(f->fold);
    *f = (struct signal_folds){0};
}

void signal_folds_forget(struct signal_folds *f)
{
    f->n = 0;
}

static bool is_same(double a, double b)
{
    return a >= b && a <= b;
}

static struct signal_fold *find(const struct signal_folds *f,
                                const struct policy_read *read)
{
    for (size_t i = 0; i < f->n; i++) {
        const struct policy_read *r = &f->fold[i].read;
        if (r->fold == read->fold && is_same(r->window_s, read->window_s) &&
            is_same(r->percent, read->percent))
            return &f->fold[i];
    }
    return NULL;
}

/* NULL: no memory.  Without room, reads of an old policy are dropped. */
static struct signal_fold *add(struct signal_folds *f, const struct policy_read *read)
{
    if (f->n == POLICY_READS_MAX)
        signal_folds_forget(f);
    if (array_grow(&f->fold, &f->cap, f->n, POLICY_READS_MAX) < 0)
        return NULL;
    f->fold[f->n] = (struct signal_fold){.read = *read};
    return &f->fold[f->n++];
}

void signal_folds_read(struct signal_folds *f, const struct policy_points *points,
                       enum policy_series series, const struct policy_read *read,
                       int64_t utc_s, struct policy_folded *ret)
{
    struct signal_fold *last = find(f, read);

    if (last && utc_s >= last->utc_s && utc_s < last->folded.next_utc_s) {
        *ret = last->folded;
        return;
    }
    policy_series_fold(points, series, read, utc_s, ret);
    if (!last)
        last = add(f, read);
    if (!last)
        return;
    last->utc_s = utc_s;
    last->folded = *ret;
}
