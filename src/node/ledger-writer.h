/* Writes the node's rows into its ledger.
 *
 * Owns: the ledger until the queue has it, then the queue; rows that wait in memory while
 * there is no queue, or while the ledger cannot be written.
 * Touches: the ledger's file.  Thread: the loop's; the file is written in a worker's.
 * Explained in docs/ledger.md.
 *
 * The order of calls: open, boards, (take over what earlier runs wrote), start, rows …,
 * close; then again from the top, as boards are opened anew.  Rows are taken at any time;
 * without a ledger they are dropped.
 */
#ifndef NODE_LEDGER_WRITER_H
#define NODE_LEDGER_WRITER_H

#include "caps/caps.h"
#include "config/config.h"
#include "energy/attribution.h"
#include "io/ledger-queue.h"
#include "jobs/job-records.h"
#include "node/view.h"
#include "tuner/searches.h"

/* In the place of a goal where a percentage is asked for by name: "cap 85%". */
#define LEDGER_CAP_GOAL "cap "
/* Before the kind of a claim on the clock, whose row has MHz in the place of milliwatts
 * (docs/ledger.md): an older daemon refuses it as out of range.
 */
#define LEDGER_CLOCK_KIND "clock "

struct ledger_writer;

struct ledger_writer_opts {
    struct loop *loop;
    const struct node_config *config; /* borrowed; read anew each time */
    bool simulated;
    const char *version, *boot_id; /* borrowed; boot_id NULL: the kernel's */
    /* Another file than before is written: tell it of searches, jobs and claims. */
    void (*restate)(void *user);
    void *user;
};
/* -ENOMEM */
int ledger_writer_new(const struct ledger_writer_opts *opts, struct ledger_writer **ret);
/* Rows that could not be written are lost, and the log says how many. */
void ledger_writer_free(struct ledger_writer *w);
DEFINE_AUTO(struct ledger_writer *, ledger_writer_free);

/* A ledger that cannot be opened is no failure: its rows wait. */
int ledger_writer_open(struct ledger_writer *w, uw_error *err);
/* The boards (borrowed until ledger_writer_close()) and processors are known: what was
 * attributed to each board before.
 */
int ledger_writer_boards(struct ledger_writer *w, struct boards *boards,
                         const struct ledger_domain *domain, size_t n_domains,
                         struct attribution_board before[BOARDS_MAX], uw_error *err);
/* From now on by the queue. */
int ledger_writer_start(struct ledger_writer *w, uw_error *err);
/* Rows that wait go on waiting for the next opening. */
void ledger_writer_close(struct ledger_writer *w);

/* Before ledger_writer_start(): the ledger (NULL: none), and rows for it. */
struct ledger *ledger_writer_ledger(const struct ledger_writer *w);
struct ledger_batch *ledger_writer_early(const struct ledger_writer *w);
/* … and it cannot be read or written any more: rows wait from now on. */
int ledger_writer_leave(struct ledger_writer *w, int r, const uw_error *why,
                        uw_error *err);

const char *ledger_writer_boot_id(const struct ledger_writer *w); /* "" unknown */
bool ledger_writer_is_on(const struct ledger_writer *w);          /* the queue is there */
bool ledger_writer_is_failing(const struct ledger_writer *w);
/* Where the state of a job's search is kept beside the ledger; "" without a ledger. */
void ledger_writer_state_path(const struct ledger_writer *w, uint64_t job, char *ret,
                              size_t size);
/* UTC less CLOCK_BOOTTIME. */
int64_t ledger_writer_ahead_ns(const struct ledger_writer *w);

/* ---- rows ---- */

void ledger_writer_energy(struct ledger_writer *w, const struct attribution_row *row);
void ledger_writer_total(struct ledger_writer *w, const struct attribution_total *total);
/* rec: NULL: none is kept. */
void ledger_writer_job(struct ledger_writer *w, const struct job_entry *job,
                       const struct job_record *rec, const struct searches_view *search);
void ledger_writer_search(struct ledger_writer *w, const struct ledger_search *s);
void ledger_writer_claim(struct ledger_writer *w, size_t board, const struct claim *c);
/* ending: claims that are withdrawn now are for the next run to take over. */
void ledger_writer_caps(struct ledger_writer *w, const struct caps *caps,
                        const struct caps_what *what, bool ending);
/* board SIZE_MAX, uid (uid_t)-1: of none. */
void ledger_writer_event(struct ledger_writer *w, const char *kind, size_t board,
                         uid_t uid, const char *text);

/* Each tick: says when UTC was set. */
void ledger_writer_tick(struct ledger_writer *w);
/* How long rows are kept, once the configuration was read anew. */
void ledger_writer_configure(struct ledger_writer *w);
/* How it stands. */
void ledger_writer_look(const struct ledger_writer *w, struct node_view *ret);
/* See node_report(). */
int ledger_writer_report(struct ledger_writer *w, const struct ledger_query *query,
                         ledger_report_fn fn, void *user, uw_error *err);

#endif
