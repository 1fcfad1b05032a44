/* libunderwatt: power and energy of this node's boards, and how a program takes part in
 * their management.
 *
 * Where the node daemon, underwattd(8), runs, a context is its client: no thread, no
 * descriptor and no driver call of its own, a request (under a millisecond) a call.
 * Where none runs it reads the boards itself (local mode), which begins a thread; jobs
 * and claims are the daemon's and are refused there with -ENOTSUP.
 *
 * Return values: 0 or a documented positive outcome on success, -errno on failure.  On
 * failure *err (may be NULL) holds one line for a human.  Out-parameters are written only
 * on success.  Threads: one context per thread, or the caller's lock.  fork(): a
 * daemon's client goes on in the child; a local context does not (-ECHILD), and the
 * child need not free it.  Nothing here aborts, exits, prints, raises SIGPIPE or leaves a
 * descriptor open over exec; of the environment UNDERWATT_SOCKET is read, when a context
 * is opened, and UNDERWATT_PROGRESS, LOCAL_RANK, MASTER_PORT and SLURM_* by
 * uw_progress_attach().  Units: in
 * the names (mW, W, J, s).  C99 and C++.
 *
 * With the daemon each function that asks it may fail with -ECONNREFUSED (it does not
 * run), -ETIMEDOUT (no answer within 10 s), -EAGAIN (asked too often, or not now: ask
 * again), -EACCES (its socket is not this user's to use), -EPROTO (what answers is no
 * underwattd of this version) or -ENOMEM.
 *
 *     uw_ctx *ctx;
 *     uw_window *win;
 *     uw_energy e;
 *     uw_error err;
 *
 *     if (uw_ctx_open(NULL, &ctx, &err) < 0) …
 *     uw_window_begin(ctx, &win, &err);
 *     work();
 *     uw_window_end(win, &err);
 *     uw_window_energy(win, uw_device_at(ctx, 0), &e, &err);
 *     printf("%.0f J +- %.0f J\n", e.energy_j, e.half_j);
 *     uw_window_free(win);
 *     uw_ctx_free(ctx);
 */
#ifndef UNDERWATT_UNDERWATT_H
#define UNDERWATT_UNDERWATT_H

#include <stddef.h>
#include <stdint.h>

#include "underwatt/error.h"
#include "underwatt/progress.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef UW_API
#define UW_API
#endif

typedef struct uw_ctx uw_ctx;
typedef struct uw_device uw_device;
typedef struct uw_window uw_window;

enum uw_flags {
    UW_LOCAL = 1,  /* read the boards here, whether a daemon runs or not */
    UW_DAEMON = 2, /* the daemon or nothing: -ECONNREFUSED where none runs */
};

/* NULL stands for all defaults.  Set size to sizeof(uw_options); what a later version
 * adds is then 0.
 */
typedef struct uw_options {
    size_t size;
    const char *boards; /* what shows the boards, as --boards of underwatt(1) has it:
                         * "nvml=/opt/libnvidia-ml.so.1", "replay=trace.csv"; NULL: what
                         * the system has.  A simulated one leads to its own world's
                         * daemon. */
    const char *clock;  /* of a sped-up simulated node, as UNDERWATT_CLOCK has it; or
                         * NULL.  Local mode alone. */
    unsigned flags;     /* enum uw_flags; 0: the daemon where it runs, else local */
    const char *socket; /* the daemon's; NULL: UNDERWATT_SOCKET, else the usual place. One
                         * that was named must answer. */
} uw_options;

/* Version of the library that is loaded, "0.1.0". */
UW_API const char *uw_version(void);

/* Every board the node has; in local mode they are sampled from now on.  -ENODEV: no
 * library, no driver or no board, the text says which.  -EINVAL: options that are none (a
 * flag that is not known, too, and what a later version of this header added).  Free
 * *ret_ctx with uw_ctx_free().
 */
UW_API int uw_ctx_open(const uw_options *opts, uw_ctx **ret_ctx, uw_error *err);
/* 1: a client of the daemon; 0: local mode. */
UW_API int uw_ctx_has_daemon(const uw_ctx *ctx);
/* Frees its devices and ends its windows; NULL is fine. */
UW_API void uw_ctx_free(uw_ctx *ctx);

UW_API size_t uw_device_count(const uw_ctx *ctx);
/* Borrowed: valid until uw_ctx_free(). NULL when i is out of range. */
UW_API uw_device *uw_device_at(uw_ctx *ctx, size_t i);
UW_API const char *uw_device_id(const uw_device *dev); /* stable across reboots */
UW_API const char *uw_device_name(const uw_device *dev);
UW_API int uw_device_is_simulated(const uw_device *dev); /* 1 or 0 */
/* 1: a board of the daemon whose device file this process may not open, as in a job of
 * Slurm with ConstrainDevices: indices of CUDA_VISIBLE_DEVICES do not count it.  Asked
 * when the context is opened; 0 in local mode, where the driver leaves such boards out.
 */
UW_API int uw_device_is_closed(const uw_device *dev);

typedef struct uw_limits {
    uint32_t min_mw, max_mw, default_mw;
    uint32_t enforced_mw; /* in force now; 0: unknown */
} uw_limits;

/* -ENOTSUP: the board's limits cannot be read.  -ETIMEDOUT: the driver hangs. */
UW_API int uw_device_limits(uw_device *dev, uw_limits *ret, uw_error *err);
/* The driver's newest reading, the instant one where the board has both; with the daemon
 * the mean of the last second or two.  -ENODATA: the daemon does not know it now.
 */
UW_API int uw_device_power(uw_device *dev, double *ret_w, uw_error *err);

/* A window of time, over all boards.  It begins now.  With the daemon: a user may hold
 * 4096; then the oldest goes whose energy is known, else the oldest that has not ended.
 */
UW_API int uw_window_begin(uw_ctx *ctx, uw_window **ret, uw_error *err);
/* It ends now: notes the time, asks nobody and waits for nothing.  The daemon is told
 * with the next window's beginning or when its energy is asked for, which has to be
 * within 120 s.  -EALREADY: it has ended before.
 */
UW_API int uw_window_stop(uw_window *win, uw_error *err);
/* Of a window that has ended.  1: uw_window_energy() can tell now; 0: not yet.  Waits at
 * most 1 ms (for the daemon's answer).
 */
UW_API int uw_window_ready(uw_window *win, uw_error *err);
/* Of a window that has ended: waits until its energy can be told, timeout_s at most.
 * Below 0: about 0.3 s, at most 4 s in local mode and 10 s with the daemon (boards at
 * rest are read every 3 s).  -ETIMEDOUT: not yet; after each failure it may be called
 * again.
 */
UW_API int uw_window_wait(uw_window *win, double timeout_s, uw_error *err);
/* uw_window_stop(), if it has not ended, and uw_window_wait(win, -1, err).  -EALREADY:
 * its energy is known.
 */
UW_API int uw_window_end(uw_window *win, uw_error *err);

typedef struct uw_energy {
    double time_s;
    double energy_j;
    double half_j; /* half width of the 95 % interval, the sensor's gain error left out */
    double power_w;     /* mean */
    const char *method; /* "counter", "integrated", … : static text */
    char why[96];       /* reasons for a wide interval, "reset, stuck"; "": none */
} uw_energy;

/* Of a window whose energy is known.  -EAGAIN: it is not, yet; -EINVAL: not ended, or a
 * device of another context; -ENODATA: the board told nothing about that time, or the
 * daemon that had seen its beginning was restarted.
 */
UW_API int uw_window_energy(const uw_window *win, const uw_device *dev, uw_energy *ret,
                            uw_error *err);
typedef struct uw_sample {
    double time_s; /* since the window's beginning */
    double over_s; /* power_w is the mean of so long before that */
    double power_w;
} uw_sample;

/* The power of a board over a window whose energy is known: *ret_n samples, n (above 0)
 * at most; where there are more, each is the mean of several.  They follow each other
 * from the window's beginning to its end, and power times length sums to its energy
 * within the interval; a time of which nothing is known is in none of them.  Each is
 * between two readings of what the energy is measured by: 50 to 150 ms in local mode;
 * with the daemon 0.5 s while a job runs on the board, and 3 s at rest.  So fine are the
 * last 3 minutes before the call; what is longer ago is means of 10 s in local mode, and
 * of 10 s and more, about 1 % of the age, with the daemon, which gives 2048 samples at
 * most. -EAGAIN, -EINVAL: as for uw_window_energy(), and where buf is NULL or n is 0;
 * -ENODATA: the board has told nothing.
 */
UW_API int uw_window_samples(uw_window *win, const uw_device *dev, uw_sample *buf,
                             size_t n, size_t *ret_n, uw_error *err);
/* Processors and their memory in a window whose energy is known.  Their number, which is
 * 0 before; names are "package-0", "dram-0"; "": i is out of range.  The energy lies
 * between values of every second in local mode, where this process may read the counters
 * (root), and for the daemon's administrators; for others between whole joules of every 2
 * s (boards.rapl_period): half_j says what that leaves open.  -ENODATA: not known, or the
 * daemon measures none; in local mode -EPERM: this process may not read the counter,
 * -ENOTSUP: this node has none (a simulated one those that uw_options.boards names).
 */
UW_API size_t uw_window_processors(const uw_window *win);
UW_API const char *uw_window_processor_name(const uw_window *win, size_t i);
UW_API int uw_window_processor(const uw_window *win, size_t i, uw_energy *ret,
                               uw_error *err);
UW_API void uw_window_free(uw_window *win); /* NULL is fine */

/* ---- progress: needs no context, and no daemon where UNDERWATT_PROGRESS is set ---- */

typedef struct uw_job uw_job;
typedef struct uw_progress uw_progress;

/* A slot of this process in the progress page of job, or, where job is NULL, in the page
 * whose path is in UNDERWATT_PROGRESS: LOCAL_RANK's where that is set and nobody alive
 * has it, else the first that is free, else that of a dead process.  The page of a job
 * that was found is asked of the daemon.  A process has one slot in a page: a second call
 * gives the same.  Where UNDERWATT_PROGRESS is not set and this process runs in a job of
 * Slurm's with a goal (--gpu-power-goal), it begins a job whose search has that goal, one
 * for all processes of a step, which ends with them (docs/slurm.md).  -ENOENT:
 * UNDERWATT_PROGRESS is not set, and there is no such job; -EINVAL: what it names is no
 * page; -ENOSPC: no slot is free; -ENODATA: the daemon has no page of the job (yet). Free
 * it with uw_progress_detach().
 */
UW_API int uw_progress_attach(uw_job *job, uw_progress **ret, uw_error *err);
/* The slot of the calling process, which it alone writes (last_step_ns before steps, each
 * as one word).  A child after fork() takes a slot of its own with its first call.  NULL:
 * none is free.
 */
UW_API struct uw_progress_slot *uw_progress_slot_of(uw_progress *progress);
/* A step has ended: a few stores in memory.  NULL is fine. */
UW_API void uw_progress_step(uw_progress *progress);
/* What comes now; touches the page where that is another phase. */
UW_API int uw_progress_phase(uw_progress *progress, enum uw_phase phase, uw_error *err);
/* Of the page, to touch (futimens(2)) after a store of another phase; borrowed. */
UW_API int uw_progress_fd(const uw_progress *progress);
/* Where it began a job in one of Slurm's: as uw_job_renew(), to be called now and then;
 * else nothing.
 */
UW_API int uw_progress_renew(uw_progress *progress, uw_error *err);
/* Gives the slot of the calling process back.  NULL is fine. */
UW_API void uw_progress_detach(uw_progress *progress);

/* ---- with the daemon alone: claims and jobs (-ENOTSUP in local mode) ---- */

/* "This board at most cap_mw, because of why (NULL: nothing said), for for_s seconds (0:
 * no end of its own)."  The daemon folds all claims on a board into one cap and walks
 * there; see underwatt-explain(1).  A claim ends with uw_claim_withdraw(), at its time,
 * and when this process ends, however it does.  It is asked for on boards of this user's
 * own jobs: -EPERM else.  -EINVAL: outside of what users may claim (the text has the
 * range), or for longer; for_s is negative or no number, why is longer than 95 bytes or
 * has a control character.  -EBUSY: too many on this board.  -ENOTSUP: it cannot be
 * capped.
 */
UW_API int uw_device_claim(uw_device *dev, uint32_t cap_mw, double for_s, const char *why,
                           uint64_t *ret_id, uw_error *err);
/* -ENOENT: there is none of that number (any more).  -EPERM: somebody else's. */
UW_API int uw_claim_withdraw(uw_ctx *ctx, uint64_t id, uw_error *err);

/* What a signal from outside is now, as underwatt-signal(1) lists them: "carbon" (in
 * g/kWh), "price".  Its unit goes into the size bytes of unit (0: nobody asks).  -ENOENT:
 * the daemon has no such signal; -ENODATA: it is unknown now, or no number.
 */
UW_API int uw_signal_value(uw_ctx *ctx, const char *name, double *ret, char *unit,
                           size_t size, uw_error *err);

typedef struct uw_label {
    const char *key, *value; /* 1 to 31 of A-Z a-z 0-9 _-./; 0 to 63 bytes */
} uw_label;

/* Set size to sizeof(uw_job_options); 0 and NULL stand for defaults. */
typedef struct uw_job_options {
    size_t size;
    const char *name; /* up to 95 bytes; shown to this user and administrators */
    const uw_label *labels;
    size_t n_labels; /* 16 at most */
    uw_device *const
        *devices; /* its boards; NULL: those on which this process shows up */
    size_t n_devices;
    const char *goal; /* "edp", "energy", "slowdown:1.05", … as underwatt-run(1) has it:
                       * its best cap is searched for, by the steps that it reports */
    const char *cap;  /* in place of a goal, held from now on: "250 W", "85%", or the name
                       * of a preset */
    const char *job_class; /* of its settings for caps, as underwattd.yaml(5) has them */
    const char *command;   /* up to 127 bytes that are the same for runs of the same job:
                            * what its search measures is told to the next one; NULL: it
                            * is not, unless a label "same" says so */
    const char *group;   /* up to 63 bytes: processes of this user on this node that name
                          * the same group are one job, as the ranks of a distributed
                          * training.  The first begins it, the others join with their
                          * devices, and it ends with the last of them */
    int default_devices; /* not 0: nobody named the devices, they are what
                          * CUDA_VISIBLE_DEVICES leaves.  In a job of Slurm's that has not
                          * all of them the boards are those of that job */
} uw_job_options;

/* This process, with those that it starts, is a job from now on: its energy is booked
 * to it, and the daemon ends it when this process ends.  A board that is another's is the
 * job's when it has become free, or this job alone computes there; no cap until then.
 * -EPERM, -EBUSY, -EAGAIN: it may begin none, or there are too many jobs, or 128
 * processes in the group, or more than 256 of a user join groups at once.  -EINVAL: a
 * name, label, goal or cap that is none.  Of the page for its steps -EPERM: the daemon
 * refused it; -ECONNRESET: it hung up.
 */
UW_API int uw_job_begin(uw_ctx *ctx, const uw_job_options *opts, uw_job **ret,
                        uw_error *err);
/* The daemon's number of it, as underwatt-jobs(1) and reports show it. */
UW_API uint64_t uw_job_id(const uw_job *job);
/* Of a job with a goal or a cap: a step has ended, and phase is what comes now
 * (UW_PHASE_TRAIN where nothing else is to be said).  A few stores in memory, no call of
 * the daemon (and futimens(2) of the page where the phase is another one): for every
 * iteration.  Of several processes (after fork) each counts by itself, and the slowest is
 * the job's progress; one thread a process.  NULL is fine.
 */
UW_API void uw_job_step(uw_job *job, enum uw_phase phase);
/* Tell a daemon that was restarted of the job's steps, and of the job if it does not know
 * it (its number is another then).  To be called now and then, as at an epoch's end.
 */
UW_API int uw_job_renew(uw_job *job, uw_error *err);
/* It ends now, its claims too; of a group, when the last process has called this or has
 * ended.  -ENOENT: the daemon knows no such job any more.
 */
UW_API int uw_job_end(uw_job *job, uw_error *err);
/* Does not end it: then it ends with this process.  NULL is fine. */
UW_API void uw_job_free(uw_job *job);

/* A job that runs already: by its number, or, where id is 0, the one that was begun for
 * this process or one that it descends from, as underwatt-run(1)'s CMD and all that it
 * starts (one that the daemon found by itself is not).  It does not end with this
 * process, and uw_job_step() on it does nothing: uw_progress_attach(). -ENOENT: there is
 * none.
 */
UW_API int uw_job_find(uw_ctx *ctx, uint64_t id, uw_job **ret, uw_error *err);
/* Whether a text is a goal; asks nobody.  -EINVAL: it is none, *err says what there is.
 */
UW_API int uw_goal_check(const char *goal, uw_error *err);
/* Another goal: the search goes on from what it has measured, and a job that had none
 * begins one.  NULL: none for now, the search rests and its boards are released. -EINVAL:
 * a goal that is none; -EPERM: another user's job; -EBUSY: it holds a cap by name.
 */
UW_API int uw_job_goal(uw_job *job, const char *goal, uw_error *err);
/* A cap on all boards of the job, by a claim as of uw_device_claim(): "250 W", "85%" of
 * each board's default limit, or the name of a preset ("balanced").
 */
UW_API int uw_job_cap(uw_job *job, const char *cap, double for_s, const char *why,
                      uint64_t *ret_id, uw_error *err);
/* Booked to the job so far: energy, and the time for which that is (0: nothing is booked
 * yet), without the time before its boards were known and the newest seconds, up to
 * node.interval (10 s) and what the daemon waits for its readings.  half_j is NAN where
 * it is not known.
 */
UW_API int uw_job_energy(uw_job *job, uw_energy *ret, uw_error *err);

/* Set size to sizeof(uw_search) before the call; a later version adds fields at the end.
 * Watts of caps are of one board; 0 and "": unknown or none.
 */
typedef struct uw_search {
    size_t size;
    uint32_t original_mw;     /* the limit found, of the board with the highest */
    uint32_t reference_mw;    /* the cap that others are compared with */
    uint32_t best_mw;         /* the best so far, or held */
    uint32_t held_mw;         /* held now */
    uint32_t lock_mhz;        /* lock of the SM clock */
    uint32_t caps, windows;   /* that were measured */
    uint32_t saved_known;     /* 1: the next six are known */
    double saved, saved_half; /* part of the energy at the reference cap; half of the 95 %
                               * interval, as in all names with half */
    double saved_j, saved_half_j;
    double slowdown, slowdown_half; /* time over the time at the reference cap */
    double search_s;                /* spent on searching */
    double step_s;
    uint64_t steps;
    char goal[80];   /* "edp" */
    char status[32]; /* "measures", "holds", "paused", …: as SearchStatus of the API */
    char progress[16]; /* "steps", "launches", "period", "unknown" */
    char text[96];     /* "measures at 210 W (window 3)" */
    char why[200];     /* why this cap */
} uw_search;
/* -ENODATA: the job has no search. */
UW_API int uw_job_search(uw_job *job, uw_search *ret, uw_error *err);

typedef struct uw_curve_point {
    uint32_t cap_mw;            /* in force */
    uint32_t windows;           /* measured there */
    double step_s, step_s_half; /* half of the 95 % interval; NAN: unknown */
    double step_j, step_j_half; /* of all boards of the job together */
} uw_curve_point;
/* The caps that were measured, in the order of their first window: *ret_n of them, of
 * which buf gets the first n.  -ENODATA: the job has no search.
 */
UW_API int uw_job_curve(uw_job *job, uw_curve_point *buf, size_t n, size_t *ret_n,
                        uw_error *err);

#ifdef __cplusplus
}
#endif

#endif
