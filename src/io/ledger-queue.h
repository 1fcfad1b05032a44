/* The ledger behind a worker: rows are collected in the loop's thread and written by a
 * thread of its own, one transaction a flush.  A full or slow disk never stops the loop:
 * rows wait (merged if many), failures are counted, and the next flush tries again.
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
    const char *why;       /* why the ledger is not open; or NULL */
    enum ledger_trouble trouble; /* the kind of that trouble */
    uint64_t flush_ns;           /* between automatic flushes; 0: 10 s */
    uint64_t tidy_ns;            /* between checks for rows to roll up; 0: 5 min */
    /* A write failed (r < 0, text), or works again (r == 0); LEDGER_ASIDE, LEDGER_ANEW: a
     * new file is written (text: why): running jobs, claims in force and searches must be
     * added before this returns.  May be NULL.
     */
    void (*on_state)(int r, const char *text, void *user);
    void *user;
};
int ledger_queue_new(const struct ledger_queue_opts *opts, struct ledger_queue **ret,
                     uw_error *err);
struct ledger_queue_stats;
/* Writes the waiting rows (2 s at most), then closes the ledger.  Returns the rows that
 * could not be written, which the caller then owns; NULL: none.  *ret: how it ended, not
 * touched where q is NULL; may be NULL.
 */
struct ledger_batch *ledger_queue_end(struct ledger_queue *q,
                                      struct ledger_queue_stats *ret);
/* The same; such rows are lost. */
void ledger_queue_free(struct ledger_queue *q);
DEFINE_AUTO(struct ledger_queue *, ledger_queue_free);

/* The batch for ledger_add_…(); never NULL; valid until the loop runs on. Report a row
 * that it refuses with ledger_queue_lost().
 */
struct ledger_batch *ledger_queue_rows(struct ledger_queue *q);
void ledger_queue_lost(struct ledger_queue *q);
/* Starts writing the collected rows.  Never blocks. */
void ledger_queue_flush(struct ledger_queue *q);

/* Sets how long rows are kept, from the next tidying on; 0: the defaults. */
void ledger_queue_keep(struct ledger_queue *q, const struct ledger_keep *keep);

struct ledger_queue_stats {
    uint64_t rows;     /* written */
    uint64_t failures; /* flushes that failed */
    uint64_t lost;     /* rows that were dropped */
    size_t waiting;    /* rows not written yet */
    size_t kept;       /* rows that waited when writing last worked again */
    struct ledger_revised revised;
    bool failing;
    enum ledger_trouble trouble;
    char text[200]; /* why; "" */
};
void ledger_queue_look(const struct ledger_queue *q, struct ledger_queue_stats *ret);

/* Makes a report of all rows written before, in another thread with a connection of its
 * own.  fn is called once in the loop's thread, never from inside: r < 0 with a text, or
 * 0 and the report to send (borrowed for the call).  -EAGAIN: too many reports wait.
 */
typedef void (*ledger_report_fn)(int r, const struct json_out *report, const char *text,
                                 void *user);
int ledger_queue_report(struct ledger_queue *q, const struct ledger_query *query,
                        ledger_report_fn fn, void *user, uw_error *err);

#endif
