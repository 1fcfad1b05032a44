/* What the files of libunderwatt share: lib.c (the public functions), local.c (reads the
 * boards itself), remote.c (asks the daemon), job.c (jobs and their steps), progress.c
 * (progress pages).
 */
#ifndef LIB_INSIDE_H
#define LIB_INSIDE_H

#ifndef UW_API
#define UW_API __attribute__((visibility("default")))
#endif
#include "underwatt/underwatt.h"

#include <stdint.h>
#include <sys/types.h>

#include "config/daemon-address.h"
#include "io/json.h"
#include "lib/door.h"

enum { LIB_TEXT = 96 };

struct uw_device {
    uw_ctx *ctx;
    size_t at;
    const char *id, *name;
    int simulated;
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
    int (*end)(uw_ctx *ctx, uw_window *win, uw_error *err);
};

struct uw_ctx { /* the first member of each mode's struct */
    const struct lib_mode *mode;
    pid_t pid;
    size_t n;
    uw_device *device;
};

/* Energy of one board. */
struct lib_energy {
    int r;
    uw_error err; /* where r < 0 */
    uw_energy energy;
};

struct uw_window {
    uw_ctx *ctx;
    int ended;
    uint64_t begin_ns, end_ns; /* local: the loop's time */
    uint64_t id;               /* the daemon's */
    struct lib_energy board[]; /* one a device of the context */
};

/* progress.c: the slot of that process in the page, taken where it has none: that of
 * rank (< 0: none), else the first that is free; NULL: there is none.
 */
struct uw_progress_slot *lib_slot(struct uw_progress_page *page, int rank, pid_t process);
void lib_slot_step(struct uw_progress_slot *slot); /* a step has ended now */

/* job.c: the page of a job begun here; borrowed. */
int lib_job_page(const uw_job *job);

/* local.c */
int lib_local_open(const uw_options *opts, uw_ctx **ret, uw_error *err);

/* remote.c */
enum { LIB_ABSENT = 1 };
/* LIB_ABSENT: no daemon answers, and the user named no address. */
int lib_remote_open(const struct daemon_address *where, uw_ctx **ret, uw_error *err);
/* -ENOTSUP, *err saying what to start, in local mode. */
int lib_remote(const uw_ctx *ctx, const char *what, const struct door **ret,
               uw_error *err);
const char *lib_job_socket(const uw_ctx *ctx);
/* The name of a method in an answer, as static text; an unknown name gives "none". */
const char *lib_method(const char *name);
/* Of a window's end, its boards in any order; pure.  A board that it leaves out is
 * -ENODATA. */
int lib_read_window(const struct json_value *doc, uw_window *win, uw_error *err);

#endif
