#include "board/window-worker.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"

struct job { /* used by the thread, which may outlive the window_worker */
    struct window_worker *folds; /* not used by the thread */
    struct meter *copy;
    uint64_t begin_ns, end_ns;
    struct meter_result result;
    double peak_w;
    uw_error error;
};

struct window_worker {
    struct loop *loop;
    struct loop_timer *late;
    struct loop_worker *worker;
    struct window_ask *first; /* queue; the first query is being computed */
    bool busy;
    bool lost; /* the query that is being computed was dropped */
};

static void serve(struct window_worker *f);

static int compute(struct loop *loop, void *work)
{
    struct job *j = work;
    (void)loop;

    int r = meter_window(j->copy, j->begin_ns, j->end_ns, &j->result, &j->error);
    if (r >= 0)
        (void)meter_peak(j->copy, j->begin_ns, j->end_ns, &j->peak_w, NULL);
    return r;
}

static void job_free(struct job *j)
{
    meter_free(j->copy);
    free(j);
}

/* Completes the first query. */
static int answer(struct window_worker *f, int r, const struct job *j)
{
    struct window_ask *ask = f->first;

    f->first = ask->next;
    ask->r = r;
    if (j) {
        ask->error = j->error;
        ask->result = j->result;
        ask->peak_w = j->peak_w;
    } else {
        (void)fail(&ask->error, r, "out of memory");
    }
    return ask->done(ask, ask->user);
}

static int computed(struct loop *loop, void *work, int r)
{
    struct job *j = work;
    struct window_worker *f = j->folds;
    bool told = !f->lost && f->first;
    (void)loop;

    f->busy = f->lost = false;
    if (r == -ETIMEDOUT) /* f is being freed while the thread still uses *j: leak it */
        return 0;
    if (r == -ECANCELED)
        told = false;
    int ret = told ? answer(f, r, j) : 0;
    job_free(j);
    if (r != -ECANCELED && !f->busy)
        serve(f);
    return ret;
}

static void serve(struct window_worker *f)
{
    const struct window_ask *ask = f->first;
    struct loop_work work = {.fn = compute, .done = computed};

    if (f->busy || !ask)
        return;
    struct job *j = calloc(1, sizeof *j);
    if (j)
        j->copy = meter_clone(ask->meter);
    if (!j || !j->copy) {
        free(j);
        loop_timer_set(f->late, loop_now_ns(f->loop), 0);
        return;
    }
    j->folds = f;
    j->begin_ns = ask->begin_ns;
    j->end_ns = ask->end_ns;
    work.work = j;
    /* Fails only while the worker is being freed; no query is pending then. */
    f->busy = loop_worker_submit(f->worker, &work) == 0;
    if (!f->busy)
        job_free(j);
}

/* No memory for a copy of the meter: fails the first query. */
static int on_late(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct window_worker *f = user;
    (void)timer;
    (void)now_ns;

    int r = !f->busy && f->first ? answer(f, -ENOMEM, NULL) : 0;
    serve(f);
    return r;
}

void window_worker_add(struct window_worker *f, struct window_ask *ask)
{
    struct window_ask **p = &f->first;

    while (*p)
        p = &(*p)->next;
    ask->next = NULL;
    *p = ask;
    serve(f);
}

void window_worker_forget(struct window_worker *f, const struct window_ask *ask)
{
    if (f && f->busy && !f->lost && f->first == ask)
        f->lost = true;
    for (struct window_ask **p = f ? &f->first : NULL; p && *p; p = &(*p)->next)
        if (*p == ask) {
            *p = ask->next;
            return;
        }
}

int window_worker_new(struct loop *loop, struct window_worker **ret, uw_error *err)
{
    auto_(window_worker_free) struct window_worker *f = calloc(1, sizeof *f);

    if (!f)
        return fail(err, -ENOMEM, "out of memory");
    f->loop = loop;
    int r = loop_timer_new(loop, UINT64_MAX, 0, on_late, f, &f->late, err);
    if (r >= 0)
        r = loop_worker_new(loop, "folds", &f->worker, err);
    if (r < 0)
        return r;
    *ret = take(f);
    return 0;
}

void window_worker_free(struct window_worker *f)
{
    if (!f)
        return;
    f->first = NULL;
    loop_worker_free(f->worker);
    loop_timer_free(f->late);
    free(f);
}
