/* The ledger behind a worker: rows are gathered in the loop's thread and written by a
 * thread of its own, one transaction a flush.  A disk that is full or slow never stops
 * the loop: rows wait (merged where they are many), failures are counted, and the next
 * flush tries again.
 */
#ifndef IO_LEDGER_QUEUE_H
#define IO_LEDGER_QUEUE_H

#include "io/json.h"
#include "io/ledger-report.h"
#include "io/ledger.h"
#include "io/loop.h"

struct ledger_queue;

struct ledger_queue_opts {
    struct loop *loop;
    struct ledger *ledger; /* taken over on success; closed by ledger_queue_free() */
    const char *why;       /* … why it is not open, where it is not; or NULL */
    enum ledger_trouble trouble; /* … in a word */
    uint64_t flush_ns;           /* between flushes nobody asked for; 0: 10 s */
    uint64_t tidy_ns;            /* between looks for what to roll up; 0: 60 s */
    /* A write failed (r < 0, text), or works again (r == 0); LEDGER_ASIDE, LEDGER_ANEW:
     * another file than before is written (text: why): jobs that run, claims in force
     * and searches are to be told to it at once, before this returns.  Or NULL.
     */
    void (*on_state)(int r, const char *text, void *user);
    void *user;
};
int ledger_queue_new(const struct ledger_queue_opts *opts, struct ledger_queue **ret,
                     uw_error *err);
/* Writes what waits (2 s at most), then closes the ledger.  Returns the rows that could
 * not be written, the caller's now; NULL: there are none.
 */
struct ledger_batch *ledger_queue_end(struct ledger_queue *q);
/* The same; such rows are lost. */
void ledger_queue_free(struct ledger_queue *q);
DEFINE_AUTO(struct ledger_queue *, ledger_queue_free);

/* The batch for ledger_add_…(); never NULL; valid until the loop runs on. Report a row
 * that it refuses with ledger_queue_lost().
 */
struct ledger_batch *ledger_queue_rows(struct ledger_queue *q);
void ledger_queue_lost(struct ledger_queue *q);
/* Write what has been gathered now.  Never blocks. */
void ledger_queue_flush(struct ledger_queue *q);

/* Changes how long rows are kept, from the next tidying on; 0: the defaults. */
void ledger_queue_keep(struct ledger_queue *q, const struct ledger_keep *keep);

struct ledger_queue_stats {
    uint64_t rows;     /* written */
    uint64_t failures; /* flushes that failed */
    uint64_t lost;     /* rows that were never taken */
    size_t waiting;    /* rows not written yet */
    size_t kept;       /* … had waited when writing worked again last */
    bool failing;
    enum ledger_trouble trouble;
    char text[200]; /* why; "" */
};
void ledger_queue_look(const struct ledger_queue *q, struct ledger_queue_stats *ret);

/* A report, made in another thread over a connection of its own, of all that was
 * written before.  fn is called once in the loop's thread, never from inside: r < 0
 * with a text, or 0 and the report to send (borrowed for the call).  -EAGAIN: too many
 * wait already.
 */
typedef void (*ledger_report_fn)(int r, const struct json_out *report, const char *text,
                                 void *user);
int ledger_queue_report(struct ledger_queue *q, const struct ledger_query *query,
                        ledger_report_fn fn, void *user, uw_error *err);

#endif
