/* Writes the node's rows into its ledger.
 *
 * Owns: the ledger until the queue takes it, then the queue; rows kept in memory while
 * there is no queue or the ledger cannot be written.
 * Touches: the ledger's file.  Thread: the loop's; the file is written in a worker's.
 * Explained in docs/design/ledger.md.
 *
 * Order of calls: open, boards, (take over the rows of earlier runs), start, rows, close;
 * all again whenever boards are reopened.  Rows are accepted at any time, and dropped
 * without a ledger.
 */
#ifndef NODE_LEDGER_WRITER_H
#define NODE_LEDGER_WRITER_H

#include "caps/caps.h"
#include "config/config.h"
#include "energy/attribution.h"
#include "io/ledger-queue.h"
#include "jobs/job-records.h"
#include "node/charges.h"
#include "node/view.h"
#include "policy/engine.h"
#include "policy/signal-files.h"
#include "policy/signals.h"
#include "tuner/searches.h"

/* Suffix of a job's goal column for a default goal that was not requested: "slowdown:1.05
 * by default".
 */
#define LEDGER_GOAL_DEFAULT " by default"
/* Prefix of a job's goal column for a named percentage: "cap 85%". */
#define LEDGER_CAP_GOAL "cap "
/* Prefix of the request of a scheduler's job in its goal column, whether in force or not:
 * "hold cap 300 W", "off hold goal edp" if its user has ended the search.  The goal of
 * the search stands before it if it differs: "energy hold goal edp"; "energy hold -": no
 * request.  "hold GPUs: …": why the job's boards are unknown.  An older daemon ignores
 * all of these.
 */
#define LEDGER_HOLD_GOAL "hold "
#define LEDGER_OFF_GOAL "off "
#define LEDGER_ASKED_GOAL "goal "
/* Prefix of the kind of a claim on the clock, whose row has MHz in place of milliwatts
 * (docs/design/ledger.md): an older daemon refuses the value as out of range.
 */
#define LEDGER_CLOCK_KIND "clock "

struct ledger_writer;

struct ledger_writer_opts {
    struct loop *loop;
    const struct node_config *config; /* borrowed; read at each use */
    bool simulated;
    const char *version, *boot_id; /* borrowed; boot_id NULL: the kernel's */
    /* A new file is being written: write all searches, jobs and claims again. */
    void (*restate)(void *user);
    void *user;
};
/* -ENOMEM */
int ledger_writer_new(const struct ledger_writer_opts *opts, struct ledger_writer **ret);
/* Rows that cannot be written are lost; the log gives their number. */
void ledger_writer_free(struct ledger_writer *w);
DEFINE_AUTO(struct ledger_writer *, ledger_writer_free);

/* A ledger that cannot be opened is not an error: its rows are kept in memory. */
int ledger_writer_open(struct ledger_writer *w, uw_error *err);
/* Sets the boards (borrowed until ledger_writer_close()) and the processors; before: what
 * the ledger holds for each board.
 */
int ledger_writer_boards(struct ledger_writer *w, struct boards *boards,
                         const struct ledger_domain *domain, size_t n_domains,
                         struct attribution_board before[BOARDS_MAX], uw_error *err);
/* Starts the queue, which writes all rows from now on. */
int ledger_writer_start(struct ledger_writer *w, uw_error *err);
/* Rows that were not written are kept for the next ledger_writer_open(). */
void ledger_writer_close(struct ledger_writer *w);

/* Before ledger_writer_start(): the ledger (NULL: none), and the rows for it. */
struct ledger *ledger_writer_ledger(const struct ledger_writer *w);
struct ledger_batch *ledger_writer_early(const struct ledger_writer *w);
/* Gives up reading and writing the ledger after failure r: rows stay in memory. */
int ledger_writer_leave(struct ledger_writer *w, int r, const uw_error *why,
                        uw_error *err);

const char *ledger_writer_boot_id(const struct ledger_writer *w); /* "" unknown */
bool ledger_writer_is_on(const struct ledger_writer *w);          /* the queue runs */
bool ledger_writer_is_failing(const struct ledger_writer *w);
/* The folder of the ledger; "" without one. */
void ledger_writer_folder(const struct ledger_writer *w, char *ret, size_t size);
/* The path of a search's saved state, beside the ledger; "" without a ledger. */
void ledger_writer_state_path(const struct ledger_writer *w, uint64_t job, char *ret,
                              size_t size);
/* UTC less CLOCK_BOOTTIME. */
int64_t ledger_writer_ahead_ns(const struct ledger_writer *w);

/* ---- rows ---- */

/* The row's energy is charged with the factors that were known at its time.  roster: has
 * the row's job; may be NULL.
 */
void ledger_writer_energy(struct ledger_writer *w, const struct roster *roster,
                          const struct attribution_row *row);
/* The present value of a signal from now on; a signal that is no factor of energy is
 * ignored.
 */
void ledger_writer_signal(struct ledger_writer *w, const struct signal_view *v);
/* For views; borrowed. */
const struct charges *ledger_writer_charges(const struct ledger_writer *w);
/* Values of a factor from its source, including past times: booked rows are revised by
 * them (node/revisions.h).
 */
void ledger_writer_values(struct ledger_writer *w, const struct signal_values *v);
void ledger_writer_total(struct ledger_writer *w, const struct attribution_total *total);
/* rec may be NULL. */
void ledger_writer_job(struct ledger_writer *w, const struct job_entry *job,
                       const struct job_record *rec, const struct searches_view *search);
void ledger_writer_search(struct ledger_writer *w, const struct ledger_search *s);
void ledger_writer_claim(struct ledger_writer *w, size_t board, const struct claim *c);
/* ending: withdrawals are not written, so that the next run takes the claims over. */
void ledger_writer_caps(struct ledger_writer *w, const struct caps *caps,
                        const struct caps_what *what, bool ending);
/* board SIZE_MAX, uid (uid_t)-1: none. */
void ledger_writer_event(struct ledger_writer *w, enum ledger_word kind, size_t board,
                         uid_t uid, const char *text);

/* A rule takes effect or ends (board SIZE_MAX: the board is lost); the text of the row.
 */
void ledger_writer_rule(struct ledger_writer *w, const struct engine_event *event,
                        size_t board, const char *text);

/* Call at each tick: reports when UTC was set, and the activity of rules without rows;
 * revises booked rows.
 */
void ledger_writer_tick(struct ledger_writer *w);
/* Applies the retention of a new configuration. */
void ledger_writer_configure(struct ledger_writer *w);
/* Fills the view's fields of the ledger. */
void ledger_writer_look(const struct ledger_writer *w, struct node_view *ret);
/* See node_report(). */
int ledger_writer_report(struct ledger_writer *w, const struct ledger_query *query,
                         ledger_report_fn fn, void *user, uw_error *err);

#endif
