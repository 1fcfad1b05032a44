#include "node/folds.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"

struct job { /* in the thread */
    struct meter *copy;
    uint64_t begin_ns, end_ns;
    struct meter_result result;
    double peak_w;
    uw_error error;
};

struct folds {
    struct loop_worker *worker;
    struct fold_ask *first; /* in the order in which they came; the first is served */
    bool busy;
    bool lost; /* whoever asked for what is computed has forgotten it */
    struct job job;
};

static void serve(struct folds *f);

static int compute(struct loop *loop, void *work)
{
    struct job *j = work;
    (void)loop;

    if (!j->copy)
        return fail(&j->error, -ENOMEM, "out of memory");
    int r = meter_window(j->copy, j->begin_ns, j->end_ns, &j->result, &j->error);
    if (r >= 0)
        (void)meter_peak(j->copy, j->begin_ns, j->end_ns, &j->peak_w, NULL);
    return r;
}

static int computed(struct loop *loop, void *work, int r)
{
    struct folds *f = (struct folds *)((char *)work - offsetof(struct folds, job));
    struct fold_ask *ask = f->first;
    (void)loop;

    meter_free(take(f->job.copy));
    f->busy = false;
    if (f->lost || !ask || r == -ECANCELED) {
        f->lost = false;
        if (r != -ECANCELED)
            serve(f);
        return 0;
    }
    f->first = ask->next;
    ask->r = r;
    ask->error = f->job.error;
    ask->result = f->job.result;
    ask->peak_w = f->job.peak_w;
    serve(f);
    return ask->done(ask, ask->user);
}

static void serve(struct folds *f)
{
    const struct fold_ask *ask = f->first;
    struct loop_work work = {.fn = compute, .done = computed, .work = &f->job};

    if (f->busy || !ask)
        return;
    f->job = (struct job){.copy = meter_clone(ask->meter),
                          .begin_ns = ask->begin_ns,
                          .end_ns = ask->end_ns};
    /* it refuses when it is being freed alone: nobody waits any more */
    f->busy = loop_worker_submit(f->worker, &work) == 0;
    if (!f->busy)
        meter_free(take(f->job.copy));
}

void folds_add(struct folds *f, struct fold_ask *ask)
{
    struct fold_ask **p = &f->first;

    while (*p)
        p = &(*p)->next;
    ask->next = NULL;
    *p = ask;
    serve(f);
}

void folds_forget(struct folds *f, const struct fold_ask *ask)
{
    if (f && f->busy && !f->lost && f->first == ask)
        f->lost = true;
    for (struct fold_ask **p = f ? &f->first : NULL; p && *p; p = &(*p)->next)
        if (*p == ask) {
            *p = ask->next;
            return;
        }
}

int folds_new(struct loop *loop, struct folds **ret, uw_error *err)
{
    auto_(folds_free) struct folds *f = calloc(1, sizeof *f);

    if (!f)
        return fail(err, -ENOMEM, "out of memory");
    int r = loop_worker_new(loop, "folds", &f->worker, err);
    if (r < 0)
        return r;
    *ret = take(f);
    return 0;
}

void folds_free(struct folds *f)
{
    if (!f)
        return;
    f->first = NULL;
    loop_worker_free(f->worker);
    free(f);
}
