#include "signal/judge-list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void judge_list_fini(struct judge_list *l)
{
    while (l->n > 0)
        free(l->judged[--l->n]);
}

/* ---- places ---- */

/* Frees the places of forecasts that do not exist any more. */
static void drop_over(struct judge_list *l, int64_t utc_s)
{
    size_t left = 0;

    for (size_t i = 0; i < l->n; i++)
        if (judge_is_over(&l->judged[i]->judge, utc_s))
            free(l->judged[i]);
        else
            l->judged[left++] = l->judged[i];
    l->n = left;
}

static struct judged *find(const struct judge_list *l, const char *signal)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->judged[i]->signal, signal) == 0)
            return l->judged[i];
    return NULL;
}

static struct judged *judged_new(struct judge_list *l, int64_t utc_s)
{
    struct judged *d = NULL;

    if (l->n == JUDGED_MAX)
        drop_over(l, utc_s);
    if (l->n < JUDGED_MAX)
        d = calloc(1, sizeof *d);
    if (d)
        l->judged[l->n++] = d;
    l->lacks |= !d;
    l->is_full = !d;
    return d;
}

/* NULL: there are too many. */
static struct judged *judged_of(struct judge_list *l, const struct judge_forecast *f,
                                int64_t utc_s)
{
    struct judged *d = find(l, f->signal);

    if (d && strncmp(d->source, f->source, sizeof d->source - 1) == 0 &&
        strcmp(d->unit, f->unit) == 0)
        return d;
    if (!d)
        d = judged_new(l, utc_s);
    if (!d)
        return NULL;
    memset(d, 0, sizeof *d);
    (void)snprintf(d->signal, sizeof d->signal, "%s", f->signal);
    (void)snprintf(d->source, sizeof d->source, "%s", f->source);
    (void)snprintf(d->unit, sizeof d->unit, "%s", f->unit);
    return d;
}

/* ---- a round ---- */

void judge_list_foretold(const char *forecast, char ret[SIGNAL_NAME])
{
    const char *dot = strrchr(forecast, '.');

    (void)snprintf(ret, SIGNAL_NAME, "%.*s", dot ? (int)(dot - forecast) : 0, forecast);
}

void judge_list_begin(struct judge_list *l)
{
    l->is_full &= l->lacks;
    l->lacks = false;
}

int judge_list_step(struct judge_list *l, const struct judge_forecast *forecast,
                    int64_t utc_s)
{
    bool was_full = l->is_full;
    struct judged *d = judged_of(l, forecast, utc_s);

    if (!d)
        return was_full ? 0 : JUDGE_LIST_FULL;
    size_t waits = d->judge.n;
    uint64_t seen = d->judge.seen;
    judge_step(&d->judge, forecast->issued_utc_s, utc_s, &forecast->ahead,
               &forecast->came);
    bool turned = judge_verdict(&d->judge, utc_s);
    l->changed |= turned || d->judge.n != waits || d->judge.seen != seen;
    return turned ? JUDGE_LIST_VERDICT : 0;
}

void judge_list_facts(const struct judge_list *l, const char *signal, int64_t utc_s,
                      struct signal_facts *f)
{
    const struct judged *d = find(l, signal);

    if (d)
        facts_judge(f, &d->judge, utc_s);
}

/* ---- the file ---- */

int judge_list_read(struct judge_list *l, const char *name, const char *text, size_t len,
                    int64_t utc_s, uw_error *err)
{
    struct judge_list got = {.n = 0};
    int r = judged_read(name, text, len, got.judged, &got.n, err);

    if (r < 0)
        return r;
    judge_list_fini(l);
    *l = got;
    drop_over(l, utc_s);
    return 0;
}

int judge_list_write(const struct judge_list *l, char **ret, uw_error *err)
{
    return judged_write((const struct judged *const *)l->judged, l->n, ret, err);
}
