/* Attributes the node's energy: queries the meter once for each stretch of time of each
 * board and splits its energy between jobs, idle and unattributed, which add up to the
 * meter's total.
 *
 * Owns: the open stretches, and sums by board and job.  Touches: the samplers' meters,
 * the roster.  Thread: the loop's.  Explained in docs/design/ledger.md.
 *
 * A stretch ends at every interval, and when the jobs on the board, a job's phase or the
 * cap in force change.  Stretches of a board follow each other without a gap; a stretch
 * whose energy the meter does not know (the driver hung) is marked as lost.
 */
#ifndef ENERGY_ATTRIBUTION_H
#define ENERGY_ATTRIBUTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "board/sampler.h"
#include "core/job/split.h"
#include "core/job/waste.h"
#include "core/meter/half-sum.h"
#include "jobs/roster.h"
#include "underwatt/error.h"

struct attribution;

enum attribution_kind { ATTRIBUTION_JOB, ATTRIBUTION_IDLE, ATTRIBUTION_UNATTRIBUTED };

/* The part of one job, idle or unattributed in one stretch of one board. */
struct attribution_row {
    size_t board;
    enum attribution_kind kind;
    uint64_t job;    /* 0 unless ATTRIBUTION_JOB */
    uint32_t phase;  /* of the job */
    uint32_t cap_mw; /* in force; 0: unknown */
    uint64_t begin_ns, end_ns;
    int64_t begin_utc_ns, end_utc_ns;
    double energy_j, half_j; /* half_j: 95 %, without gain error */
    enum split_method split;
    enum meter_method method; /* METER_NONE: not measured; energy_j is 0 */
    uint32_t why;             /* enum meter_why */
    bool lost;                /* the meter did not know the energy in time */
    enum waste_class waste;
};
/* Called at least 2.5 s after the end of the row's stretch, except at the end and after
 * attribution_hurry().
 */
typedef void (*attribution_row_fn)(const struct attribution_row *row, void *user);
/* The board's total energy at both ends of a stretch; follows the stretch's rows. */
struct attribution_total {
    size_t board;
    uint64_t begin_ns, end_ns;
    int64_t begin_utc_ns, end_utc_ns;
    double begin_j, end_j;
    double half_j; /* of the difference; 95 %, without gain error */
    enum meter_method method;
    uint32_t why; /* enum meter_why */
    bool lost;    /* as in attribution_row */
};
typedef void (*attribution_total_fn)(const struct attribution_total *total, void *user);

/* Sums of a board; initial values come from the ledger, so that counters continue. */
struct attribution_board {
    double energy_j, attributed_j, idle_j, unattributed_j;
    double today_j; /* since midnight UTC of the last row */
    double lost_s;  /* total length of lost stretches */
    /* By enum waste_class, energy_j in parts; what is unattributed counts as working. The
     * time of a board that several jobs share counts for each.
     */
    double use_j[WASTE_N], use_s[WASTE_N];
    uint64_t rows;
};
/* What the last stretch of a board came to. */
struct attribution_waste {
    enum waste_class class; /* of several jobs': the one that counts for most */
    uint64_t since_ns;      /* when that began; 0: working */
};
/* A job's energy on one board. */
struct attribution_part {
    size_t
        board; /* SIZE_MAX: boards that only earlier runs of the daemon had, together */
    double energy_j;
    struct half_sum half;
    double time_s;            /* for which that energy is */
    enum meter_method method; /* of several, the one furthest from a counter */
    uint32_t why;             /* enum meter_why */
};
struct attribution_job {
    uint64_t job;
    double time_s;     /* for which energy is booked, on one board or more */
    uint64_t until_ns; /* to which time */
    /* Its energy: the sum over the boards that it has had, in their order. */
    struct attribution_part *part;
    size_t n_parts, parts_room;
};

#define ATTRIBUTION_NOBODY 0
#define ATTRIBUTION_SOMEBODY UINT64_MAX

struct attribution_opts {
    struct loop *loop;
    struct sampler *const *sampler; /* one per board, with that board only; borrowed */
    size_t n;
    struct roster *roster; /* NULL: not split (RAPL domains), `who` tells the user */
    uint64_t interval_ns;  /* 0: 10 s */
    const struct attribution_board *before; /* initial sums, one per board; NULL: 0 */
    /* Without a roster: returns the job that uses the whole node alone now,
     * ATTRIBUTION_NOBODY (idle) or ATTRIBUTION_SOMEBODY (unattributed).  A stretch with
     * differing results is unattributed.
     */
    uint64_t (*who)(void *user);
    /* With a roster: thresholds of waste, read at each use (borrowed; NULL: nothing is
     * judged), and the boards of the samplers, for their limits.
     */
    const struct waste_limits *waste;
    struct boards *boards;
    attribution_row_fn on_row;
    attribution_total_fn on_total; /* or NULL */
    void *user;
};
int attribution_new(const struct attribution_opts *opts, struct attribution **ret,
                    uw_error *err);
/* Drops stretches without rows; call attribution_end() first. */
void attribution_free(struct attribution *b);
DEFINE_AUTO(struct attribution *, attribution_free);

/* A job has ended on these boards, and somebody may wait for its energy: reads each board
 * at the end of its last stretch and when the meter is ready, which is when that stretch
 * is booked.  b may be NULL.
 */
void attribution_hurry(struct attribution *b, uint64_t boards);
/* Sets the cap in force on a board from now on. */
void attribution_cap(struct attribution *b, size_t board, uint32_t cap_mw);
/* Ends the board's stretch before its jobs change: the roster's on_turn.  b may be NULL.
 */
void attribution_turn(struct attribution *b, size_t board);
/* Without a roster: calls `who` for the open stretches.  Call about once a second. */
void attribution_see(struct attribution *b);
/* The board is detached (away) or attached again.  Its energy while detached is not
 * attributed.  b may be NULL.
 */
void attribution_detach(struct attribution *b, size_t board, bool away);
/* Whether no ended stretch of this board waits for its energy. */
bool attribution_board_settled(const struct attribution *b, size_t board);
/* Ends all stretches now; calls fn when all are booked, after at most a few seconds.
 * -EALREADY.
 */
int attribution_end(struct attribution *b, int (*fn)(struct attribution *b, void *user),
                    void *user);

const struct attribution_board *attribution_board(const struct attribution *b,
                                                  size_t board);
struct attribution_waste attribution_waste(const struct attribution *b, size_t board);
/* NULL: nothing was booked to the job yet.  Its parts are valid until the next turn of
 * the loop.
 */
const struct attribution_job *attribution_job(const struct attribution *b, uint64_t job);
/* Whether no ended stretch with this job waits for its energy; true after the job's end:
 * all of its energy is booked.
 */
bool attribution_settled(const struct attribution *b, uint64_t job);
/* What earlier runs of the daemon have booked to the job, in time_s: before its first row
 * of this one.  -ENOMEM.
 */
int attribution_resume(struct attribution *b, uint64_t job, double time_s,
                       const struct attribution_part *part, size_t n);
/* Drops the sums of an ended and settled job. */
void attribution_forget(struct attribution *b, uint64_t job);

#endif
