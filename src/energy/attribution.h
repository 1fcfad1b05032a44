/* Attributes the node's energy: the meter is asked once for each stretch of each board,
 * whose energy goes to jobs, idle and unattributed: their sum is the meter's total.
 *
 * Owns: the stretches that are open, and sums by board and job.  Touches: the samplers'
 * meters, the roster.  Thread: the loop's.  Explained in docs/ledger.md.
 *
 * A stretch ends every interval, and where the jobs on the board, a job's phase or the
 * cap in force change.  Stretches of a board follow each other without a gap: one whose
 * energy the meter cannot tell (the driver hung) is bridged and says so
 * (ATTRIBUTION_LOST).
 */
#ifndef ENERGY_ATTRIBUTION_H
#define ENERGY_ATTRIBUTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "board/sampler.h"
#include "core/job/split.h"
#include "jobs/roster.h"
#include "underwatt/error.h"

struct attribution;

enum attribution_kind { ATTRIBUTION_JOB, ATTRIBUTION_IDLE, ATTRIBUTION_UNATTRIBUTED };

/* One line: a part of one stretch of one board. */
struct attribution_row {
    size_t board;
    enum attribution_kind kind;
    uint64_t job;    /* 0 unless ATTRIBUTION_JOB */
    uint32_t phase;  /* of the job */
    uint32_t cap_mw; /* in force; 0 unknown */
    uint64_t begin_ns, end_ns;
    int64_t begin_utc_ns, end_utc_ns;
    double energy_j, half_j; /* 95 %, gain error left out */
    enum split_method split;
    enum meter_method method; /* METER_NONE: not measured; energy_j is 0 */
    uint32_t why;             /* enum meter_why */
    bool lost;                /* the meter could not tell this stretch in time */
};
/* A row may come more than 2 s after its stretch ended. */
typedef void (*attribution_row_fn)(const struct attribution_row *row, void *user);
/* After the rows of a stretch: what the meter's total was at both ends. */
struct attribution_total {
    size_t board;
    uint64_t begin_ns, end_ns;
    int64_t begin_utc_ns, end_utc_ns;
    double begin_j, end_j;
    double half_j; /* of their difference; 95 %, gain error left out */
    enum meter_method method;
    uint32_t why; /* enum meter_why */
    bool lost;    /* the meter could not tell */
};
typedef void (*attribution_total_fn)(const struct attribution_total *total, void *user);

/* What was booked before this program began, for counters that go on. */
struct attribution_board {
    double energy_j, attributed_j, idle_j, unattributed_j;
    double today_j; /* since midnight UTC of the last row */
    double lost_s;  /* time of which no meter could tell */
    uint64_t rows;
};
struct attribution_job {
    uint64_t job;
    double energy_j, half2_j2; /* half2: squared half widths added */
    double board_s;            /* board-seconds booked */
};

#define ATTRIBUTION_NOBODY 0
#define ATTRIBUTION_SOMEBODY UINT64_MAX

struct attribution_opts {
    struct loop *loop;
    struct sampler *const *sampler; /* one a board, of that board alone; borrowed */
    size_t n;
    struct roster *roster; /* NULL: nobody owns a part of it (RAPL domains): `who` says
                            * whose all of it is */
    uint64_t interval_ns;  /* 0: 10 s */
    const struct attribution_board *before; /* one a board, or NULL: all 0 */
    /* Without a roster: the job that has all of the node to itself now,
     * ATTRIBUTION_NOBODY (idle) or ATTRIBUTION_SOMEBODY (unattributed).  A stretch in
     * which that was not the same whenever it was asked (attribution_see()) is
     * unattributed.
     */
    uint64_t (*who)(void *user);
    attribution_row_fn on_row;
    attribution_total_fn on_total; /* or NULL */
    void *user;
};
int attribution_new(const struct attribution_opts *opts, struct attribution **ret,
                    uw_error *err);
/* Stretches under way are forgotten: attribution_end() first. */
void attribution_free(struct attribution *b);
DEFINE_AUTO(struct attribution *, attribution_free);

/* The cap in force on a board is this from now on. */
void attribution_cap(struct attribution *b, size_t board, uint32_t cap_mw);
/* Something about this board's jobs is about to change: the roster's on_turn. */
void attribution_turn(struct attribution *b, size_t board);
/* Without a roster: ask who it is now.  Once a second or so. */
void attribution_see(struct attribution *b);
/* A board is let go of: its stretch ends, none begins until it is back.  What it takes
 * meanwhile is in no book.
 */
void attribution_detach(struct attribution *b, size_t board, bool away);
/* No stretch of this board waits for its energy. */
bool attribution_board_settled(const struct attribution *b, size_t board);
/* All stretches end now; fn when all of them are booked (a few seconds at most). */
int attribution_end(struct attribution *b, int (*fn)(struct attribution *b, void *user),
                    void *user);

const struct attribution_board *attribution_board(const struct attribution *b,
                                                  size_t board);
/* NULL: nothing was booked to it yet. */
const struct attribution_job *attribution_job(const struct attribution *b, uint64_t job);
/* No stretch with this job in it waits for its energy: after the job's end, all is
 * booked. */
bool attribution_settled(const struct attribution *b, uint64_t job);
/* A job has ended and its last row was booked: its sum is not wanted any more. */
void attribution_forget(struct attribution *b, uint64_t job);

#endif
