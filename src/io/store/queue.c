#include "io/ledger-queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "core/carbon/accounting.h"

enum {
    SQUEEZE_FROM = 4096, /* rows that wait after failed writes */
    SHED_FROM = 32768,
    REPORTS_MAX = 16, /* waiting reports at once */
};

/* One call of the writer's thread.  It owns its data, so that a call that never returns
 * can be abandoned.
 */
struct write_work {
    struct ledger_queue *q;
    struct ledger *l;
    struct ledger_batch *rows;
    bool tidy; /* a step of rolling up instead of rows */
    struct ledger_keep keep;
    bool has_keep; /* it is new */
    bool settle;   /* the rows contain everything that is open */
    int renewed;   /* LEDGER_ASIDE, LEDGER_ANEW: the file has changed; 0 */
    uint64_t now_ns;
    int64_t utc_ns;
    struct ledger_revised revised; /* by these rows, once written */
    uw_error err, renewed_err;
};

struct ledger_queue {
    struct loop *loop;
    struct loop_worker *writer, *reader;
    struct loop_timer *flush, *tidy;
    struct write_work *work; /* NULL after it was abandoned to a call that hangs */
    char *path;
    struct ledger_batch *open; /* waiting rows */
    bool busy, again, want_tidy, closing;
    bool settle; /* the next rows contain everything that is open */
    struct ledger_keep keep;
    bool has_keep;
    size_t reports;
    struct ledger_queue_opts opts;
    struct ledger_queue_stats stats;
};

static void work_free(struct write_work *w)
{
    if (!w)
        return;
    ledger_batch_free(w->rows);
    ledger_close(w->l);
    free(w);
}
DEFINE_AUTO(struct write_work *, work_free);

/* ---- the writer's thread ---- */

/* The result of ledger_ready(). */
static int be_ready(struct write_work *w)
{
    int r = ledger_ready(&w->l, w->utc_ns, &w->err);

    if (r > 0) {
        w->renewed = r;
        w->renewed_err = w->err;
    }
    return r < 0 ? r : 0;
}

static int tidy_step(struct write_work *w)
{
    return ledger_tidy(w->l, ledger_clock(w->l, w->now_ns, w->utc_ns), &w->err);
}

static int add_rows(struct write_work *w)
{
    int r = ledger_write(w->l, w->rows, &w->err);

    w->revised = *ledger_revised(w->l);
    return r;
}

static int write_rows(struct loop *loop, void *user)
{
    struct write_work *w = user;

    (void)loop;
    int r = be_ready(w);
    if (r < 0)
        return r;
    if (w->has_keep)
        ledger_keep(w->l, &w->keep);
    w->has_keep = false;
    if (w->settle && !w->renewed)
        ledger_settle(w->l, w->utc_ns);
    r = w->tidy ? tidy_step(w) : add_rows(w);
    if (r != -EBADMSG)
        return r;
    r = ledger_renew(&w->l, w->utc_ns, &w->err);
    if (r != LEDGER_ASIDE)
        return r;
    w->renewed = r;
    w->renewed_err = w->err;
    return w->tidy ? 0 : add_rows(w);
}

/* ---- the loop's thread ---- */

static void submit(struct ledger_queue *q, bool tidy);

static void note_state(struct ledger_queue *q, int r, const char *text)
{
    bool failing = r < 0, was = q->stats.failing;

    q->stats.failing = failing;
    q->stats.trouble = ledger_trouble(failing ? r : 0);
    (void)snprintf(q->stats.text, sizeof q->stats.text, "%s", failing ? text : "");
    if (q->opts.on_state && failing != was)
        q->opts.on_state(failing ? r : 0, q->stats.text, q->opts.user);
}

/* Rows that were not written go back before newer ones, merged if there are many. */
static void put_back(struct ledger_queue *q, struct ledger_batch *rows)
{
    struct ledger_batch *newer = q->open;

    if (ledger_batch_rows(rows) + ledger_batch_rows(newer) > SQUEEZE_FROM) {
        (void)ledger_batch_squeeze(rows);
        (void)ledger_batch_squeeze(newer);
    }
    size_t most = SHED_FROM - ledger_batch_rows(newer);
    if (ledger_batch_rows(newer) < SHED_FROM)
        q->stats.lost += ledger_batch_shed(rows, most);
    if (ledger_batch_join(rows, newer) < 0) {
        q->stats.lost += ledger_batch_rows(newer);
        ledger_batch_clear(newer);
    }
    q->work->rows = newer;
    q->open = rows;
}

static void wrote(struct ledger_queue *q, int r)
{
    struct ledger_batch *rows = q->work->rows;

    if (r >= 0) {
        q->stats.kept = q->stats.failing ? ledger_batch_rows(rows) : 0;
        q->stats.rows += ledger_batch_rows(rows);
        ledger_revised_add(&q->stats.revised, &q->work->revised);
        ledger_batch_clear(rows);
        note_state(q, 0, "");
        return;
    }
    q->stats.failures++;
    if (r == -EINVAL) { /* it would never be accepted */
        q->stats.lost += ledger_batch_rows(rows);
        ledger_batch_clear(rows);
    } else {
        put_back(q, rows);
    }
    note_state(q, r, q->work->err.text);
}

static int write_done(struct loop *loop, void *user, int r)
{
    struct write_work *w = user;
    struct ledger_queue *q = w->q;
    bool again = q->again, tidied = w->tidy;

    (void)loop;
    q->busy = q->again = false;
    if (r == -ETIMEDOUT) { /* happens only during free: the thread keeps it */
        q->work = NULL;
        return 0;
    }
    if (tidied)
        q->want_tidy = r == 1;
    else
        wrote(q, r);
    if (tidied && r < 0)
        note_state(q, r, w->err.text);
    if (r >= 0)
        w->settle = false;
    if (q->closing)
        return 0;
    if (w->renewed) {
        int renewed = w->renewed;
        w->renewed = 0;
        q->settle = again = q->opts.on_state != NULL;
        if (q->opts.on_state)
            q->opts.on_state(renewed, w->renewed_err.text, q->opts.user);
    }
    if (again && (q->settle || ledger_batch_rows(q->open) > 0))
        submit(q, false);
    else if (q->want_tidy)
        submit(q, true);
    return 0;
}

static void submit(struct ledger_queue *q, bool tidy)
{
    struct write_work *w = q->work;

    if (q->busy) {
        q->again = q->again || !tidy;
        q->want_tidy = q->want_tidy || tidy;
        return;
    }
    if (!tidy) {
        if (ledger_batch_rows(q->open) == 0 && !q->stats.failing && !q->settle)
            return;
        struct ledger_batch *empty = w->rows;
        w->rows = q->open;
        q->open = empty;
    }
    w->tidy = tidy;
    if (q->has_keep) {
        w->has_keep = true;
        w->keep = q->keep;
        q->has_keep = false;
    }
    if (!tidy) {
        w->settle = w->settle || q->settle;
        q->settle = false;
    }
    w->now_ns = loop_now_ns(q->loop);
    w->utc_ns = loop_utc_ns(q->loop);
    q->busy = true;
    int r = loop_worker_submit(
        q->writer, &(struct loop_work){.fn = write_rows, .done = write_done, .work = w});
    if (r < 0) {
        q->busy = false;
        if (!tidy)
            put_back(q, w->rows);
    }
}

static int on_flush(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    (void)now_ns;
    submit(user, false);
    return 0;
}

static int on_tidy(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    (void)now_ns;
    submit(user, true);
    return 0;
}

static int start(struct ledger_queue *q, uw_error *err)
{
    uint64_t now = loop_now_ns(q->loop);
    uint64_t flush_ns = q->opts.flush_ns ? q->opts.flush_ns : 10 * NS_PER_S;
    uint64_t tidy_ns = q->opts.tidy_ns ? q->opts.tidy_ns : 300 * NS_PER_S;

    int r = loop_worker_new(q->loop, "ledger", &q->writer, err);
    if (r >= 0)
        r = loop_worker_new(q->loop, "report", &q->reader, err);
    if (r >= 0)
        r = loop_timer_new(q->loop, now + flush_ns, flush_ns, on_flush, q, &q->flush,
                           err);
    if (r >= 0)
        r = loop_timer_new(q->loop, now + tidy_ns, tidy_ns, on_tidy, q, &q->tidy, err);
    return r;
}

int ledger_queue_new(const struct ledger_queue_opts *opts, struct ledger_queue **ret,
                     uw_error *err)
{
    auto_(ledger_queue_free) struct ledger_queue *q = calloc(1, sizeof *q);

    if (!q)
        return fail(err, -ENOMEM, "out of memory");
    q->loop = opts->loop;
    q->opts = *opts;
    q->work = calloc(1, sizeof *q->work);
    q->open = ledger_batch_new();
    q->path = strdup(ledger_path(opts->ledger));
    if (!q->work || !q->open || !q->path)
        return fail(err, -ENOMEM, "out of memory");
    q->work->q = q;
    q->work->rows = ledger_batch_new();
    if (!q->work->rows)
        return fail(err, -ENOMEM, "out of memory");
    int r = start(q, err);
    if (r < 0)
        return r;
    q->work->l = opts->ledger; /* the queue owns it from here on */
    q->stats.failing = !ledger_is_open(opts->ledger);
    q->stats.trouble = opts->trouble;
    if (q->stats.failing)
        (void)snprintf(q->stats.text, sizeof q->stats.text, "%s",
                       opts->why ? opts->why : "");
    *ret = take(q);
    return 0;
}

/* Writes the waiting rows for the last time; false: they could not be written. */
static bool write_last(struct ledger_queue *q)
{
    struct write_work *w = q->work;
    int64_t utc_ns = loop_utc_ns(q->loop);
    int r = w && w->l ? ledger_ready(&w->l, utc_ns, NULL) : -ENODEV;

    if (r > 0 || (r == 0 && (w->settle || q->settle)))
        ledger_settle(w->l, utc_ns);
    if (r >= 0 && ledger_write(w->l, q->open, NULL) >= 0) {
        q->stats.rows += ledger_batch_rows(q->open);
        ledger_revised_add(&q->stats.revised, ledger_revised(w->l));
        return true;
    }
    if (ledger_batch_rows(q->open) == 0)
        return true;
    if (w && w->l)
        ledger_abandon(take(w->l));
    return false;
}

struct ledger_batch *ledger_queue_end(struct ledger_queue *q,
                                      struct ledger_queue_stats *ret)
{
    struct ledger_batch *rest = NULL;

    if (!q)
        return NULL;
    q->closing = true;
    loop_timer_free(q->flush);
    loop_timer_free(q->tidy);
    loop_worker_free(q->reader); /* before the ledger: its locks are the process's */
    loop_worker_free(q->writer);
    if (q->open && !write_last(q))
        rest = take(q->open);
    if (ret)
        *ret = q->stats;
    work_free(q->work);
    ledger_batch_free(q->open);
    free(q->path);
    free(q);
    return rest;
}

void ledger_queue_free(struct ledger_queue *q)
{
    ledger_batch_free(ledger_queue_end(q, NULL));
}

struct ledger_batch *ledger_queue_rows(struct ledger_queue *q)
{
    if (q->stats.failing && ledger_batch_rows(q->open) > SHED_FROM) {
        (void)ledger_batch_squeeze(q->open);
        q->stats.lost += ledger_batch_shed(q->open, SHED_FROM);
    }
    return q->open;
}

void ledger_queue_lost(struct ledger_queue *q)
{
    q->stats.lost++;
}

void ledger_queue_flush(struct ledger_queue *q)
{
    submit(q, false);
}

void ledger_queue_keep(struct ledger_queue *q, const struct ledger_keep *keep)
{
    q->keep = *keep;
    q->has_keep = true;
}

void ledger_queue_look(const struct ledger_queue *q, struct ledger_queue_stats *ret)
{
    *ret = q->stats;
    ret->waiting = ledger_batch_rows(q->open);
    if (q->busy && q->work && !q->work->tidy)
        ret->waiting += ledger_batch_rows(q->work->rows);
}

/* ---- reports ---- */

struct report_work {
    struct ledger_queue *q;
    char *path;
    struct ledger_query query;
    struct accounting *accounting; /* the query's; or NULL */
    struct json_out *out;
    ledger_report_fn fn;
    void *user;
    uw_error err;
};

static void report_work_free(struct report_work *w)
{
    if (!w)
        return;
    json_out_free(w->out);
    accounting_free(w->accounting);
    free(w->path);
    free(w);
}
DEFINE_AUTO(struct report_work *, report_work_free);

static int make_report(struct loop *loop, void *user)
{
    struct report_work *w = user;
    auto_(ledger_close) struct ledger *l = NULL;

    (void)loop;
    int r = ledger_open(&(struct ledger_opts){.path = w->path, .read_only = true}, &l,
                        &w->err);
    if (r < 0)
        return r;
    return ledger_report(l, &w->query, w->out, &w->err);
}

static int report_done(struct loop *loop, void *user, int r)
{
    struct report_work *w = user;

    (void)loop;
    w->q->reports--;
    if (r < 0) {
        w->fn(r, NULL,
              r == -ETIMEDOUT || r == -ECANCELED || r == -EBUSY ? "the daemon is ending"
                                                                : w->err.text,
              w->user);
        if (r == -ETIMEDOUT)
            return 0; /* its thread still uses it */
    } else {
        w->fn(0, w->out, "", w->user);
    }
    report_work_free(w);
    return 0;
}

int ledger_queue_report(struct ledger_queue *q, const struct ledger_query *query,
                        ledger_report_fn fn, void *user, uw_error *err)
{
    int r = ledger_query_check(query, err);
    if (r < 0)
        return r;
    if (q->reports >= REPORTS_MAX)
        return fail(err, -EAGAIN, "%d reports are being made already", REPORTS_MAX);
    auto_(report_work_free) struct report_work *w = calloc(1, sizeof *w);
    if (!w)
        return fail(err, -ENOMEM, "out of memory");
    w->q = q;
    w->query = *query;
    w->fn = fn;
    w->user = user;
    w->path = strdup(q->path);
    w->out = json_out_new();
    if (query->accounting)
        w->accounting = accounting_copy(query->accounting);
    w->query.accounting = w->accounting;
    if (!w->path || !w->out || (query->accounting && !w->accounting))
        return fail(err, -ENOMEM, "out of memory");
    r = loop_worker_submit(
        q->reader,
        &(struct loop_work){.fn = make_report, .done = report_done, .work = w});
    if (r < 0)
        return fail(err, r, "no report can be made now");
    q->reports++;
    (void)take(w);
    return 0;
}
