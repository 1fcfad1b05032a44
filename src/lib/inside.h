/* What the files of libunderwatt share: lib.c (the public functions), local.c (reads the
 * boards itself), remote.c and remote-windows.c (ask the daemon), job.c (jobs and their
 * steps), progress.c (progress pages).
 */
#ifndef LIB_INSIDE_H
#define LIB_INSIDE_H

#ifndef UW_API
#define UW_API __attribute__((visibility("default")))
#endif
#include "underwatt/underwatt.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "config/daemon-address.h"
#include "io/json.h"
#include "lib/door.h"

enum { LIB_TEXT = 96, LIB_COMMAND = 128, LIB_PROCESSORS = 16, LIB_PROCESSOR = 32 };

struct uw_device {
    uw_ctx *ctx;
    size_t at;
    const char *id, *name;
    int simulated;
    int closed; /* its device file, to this process */
};

/* The calls of one mode.  lib.c checks all arguments before a call; where `threads` is
 * set, lib.c also checks that the process that opened the context calls.
 */
struct lib_mode {
    int threads; /* the context does not survive a fork */
    void (*close)(uw_ctx *ctx);
    int (*limits)(uw_device *dev, uw_limits *ret, uw_error *err);
    int (*power)(uw_device *dev, double *ret_w, uw_error *err);
    int (*begin)(uw_ctx *ctx, uw_window *win, uw_error *err);
    int (*stop)(uw_ctx *ctx, uw_window *win, uw_error *err); /* waits for nothing */
    /* Of a stopped window.  1: its boards' energies are filled in; 0: not yet, after
     * timeout_ns (0: waits for nothing; LIB_FOREVER: the mode's own limit).
     */
    int (*await)(uw_ctx *ctx, uw_window *win, uint64_t timeout_ns, uw_error *err);
    void (*drop)(uw_ctx *ctx, uw_window *win); /* before the window is freed */
    /* Why processor i of a ready window is not known: -errno. */
    int (*no_processor)(uw_ctx *ctx, const uw_window *win, size_t i, uw_error *err);
    /* Of a window that is ready; n > 0. */
    int (*samples)(uw_ctx *ctx, uw_window *win, size_t dev, uw_sample *buf, size_t n,
                   size_t *ret_n, uw_error *err);
};
#define LIB_FOREVER UINT64_MAX

struct uw_ctx { /* the first member of each mode's struct */
    const struct lib_mode *mode;
    pid_t pid;
    size_t n;
    uw_device *device;
    uw_window *windows; /* the newest first */
};

/* Energy of one board. */
struct lib_energy {
    int r;
    uw_error err; /* where r < 0 */
    uw_energy energy;
};

/* A processor, or its memory. */
struct lib_processor {
    char name[LIB_PROCESSOR];
    bool known;
    uw_energy energy;
};

struct uw_window {
    uw_ctx *ctx; /* NULL: it was freed */
    uw_window *before, *after;
    pid_t pid;    /* of the process that began it */
    bool stopped; /* set last: stop() may run beside another thread's call (Python) */
    bool ready;
    uint64_t begin_ns,
        end_ns;  /* local: the loop's time; remote: end_ns, CLOCK_BOOTTIME */
    uint64_t id; /* the daemon's */
    bool told;   /* the daemon knows that it is stopped */
    struct lib_processor processor[LIB_PROCESSORS];
    size_t n_processors;
    uw_window *queue;          /* local: the next that is stopped */
    bool known;                /* … and board is filled in, under the context's lock */
    struct lib_energy board[]; /* one a device of the context */
};

/* progress.c: the slot of that process in the page, taken where it has none: that of
 * rank (< 0: none), else the first that is free; NULL: there is none.
 */
struct uw_progress_slot *lib_slot(struct uw_progress_page *page, int rank, pid_t process);
/* Another attachment of the process may have given it back. */
bool lib_slot_is_of(const struct uw_progress_slot *slot, pid_t process);
void lib_slot_step(struct uw_progress_slot *slot); /* a step has ended now */

/* job.c: the page of the job, borrowed; of a job that was found, the daemon gives it:
 * -ENODATA where it has none.
 */
int lib_job_page(uw_job *job, uw_error *err);
/* A request for the job: sub is what follows its path ("", "/goal"). */
int lib_job_ask(const uw_job *job, const char *method, const char *sub,
                struct json_out *body, struct json **ret, uw_error *err);
/* The job has that goal from now on ("": none); tells the daemon of its page. */
int lib_job_goal(uw_job *job, const char *goal, uw_error *err);
int lib_job_found(uw_ctx *ctx, uint64_t id, uw_job **ret, uw_error *err);
const uw_ctx *lib_job_ctx(const uw_job *job);

/* job-search.c: whether a cap is watts or a percentage, and not the name of a preset. */
bool lib_cap_is_figure(const char *cap);

/* remote.c: a claim on a board (dev) or on all boards of a job (number, else 0). */
struct lib_claim {
    const uw_device *dev;
    uint64_t job;
    const char *cap, *preset, *why; /* cap or preset */
    double for_s;
};
int lib_claim(const uw_ctx *ctx, const struct lib_claim *claim, uint64_t *ret_id,
              uw_error *err);

/* slurm.c: begins a job in that of Slurm's that this process runs in.  LIB_ABSENT: it
 * runs in none, or in one that has no goal, or no daemon answers.
 */
int lib_slurm_begin(uw_ctx **ret_ctx, uw_job **ret_job, uw_error *err);

/* local.c */
int lib_local_open(const uw_options *opts, uw_ctx **ret, uw_error *err);

/* remote-windows.c: the daemon's windows, and ids that it may forget. */
struct lib_done {
    uint64_t *id;
    size_t n, room;
};
int lib_remote_begin(uw_ctx *ctx, uw_window *win, uw_error *err);
int lib_remote_stop(uw_ctx *ctx, uw_window *win, uw_error *err);
int lib_remote_await(uw_ctx *ctx, uw_window *win, uint64_t timeout_ns, uw_error *err);
void lib_remote_drop(uw_ctx *ctx, uw_window *win);
int lib_remote_no_processor(uw_ctx *ctx, const uw_window *win, size_t i, uw_error *err);
int lib_remote_samples(uw_ctx *ctx, uw_window *win, size_t dev, uw_sample *buf, size_t n,
                       size_t *ret_n, uw_error *err);
void lib_remote_drop_all(uw_ctx *ctx); /* tells the daemon, if it answers soon */

/* remote.c */
struct lib_done *lib_remote_done(uw_ctx *ctx);
enum { LIB_ABSENT = 1 };
/* LIB_ABSENT: no daemon answers, and the user named no address. */
int lib_remote_open(const struct daemon_address *where, uw_ctx **ret, uw_error *err);
/* -ENOTSUP, *err saying what to start, in local mode. */
int lib_remote(const uw_ctx *ctx, const char *what, const struct door **ret,
               uw_error *err);
const char *lib_job_socket(const uw_ctx *ctx);

/* remote-windows.c */
/* The name of a method in an answer, as static text; an unknown name gives "none". */
const char *lib_method(const char *name);
/* Of a window's end, its boards in any order; pure.  A board that it leaves out is
 * -ENODATA. */
int lib_read_window(const struct json_value *doc, uw_window *win, uw_error *err);

#endif
