/* The sweep of a real command: opens the boards, holds them, runs CMD at one cap after
 * the other in the plan's order, measures each whole run, and releases the boards.  Works
 * on real and virtual loops.
 *
 * Owns: the boards, their sampler, the runs so far and the state file.
 * May touch: gpu, the actuator's process, CMD's process.
 * Thread: the loop's; driver calls run in the boards' workers.
 * Explained in: docs/architecture.md, underwatt-sweep(1).
 *
 * Where no board is named, CMD runs once untouched while its processes are looked for
 * on all boards; that run counts as a reference where the default limit was in force.
 */
#ifndef SWEEP_SWEEPER_H
#define SWEEP_SWEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/sweep/sweep.h"
#include "gpu/gpu.h"
#include "io/loop.h"
#include "underwatt/error.h"

struct sweeper;

/* A run was made, or something happened that a human should know; for lines on
 * stderr.
 */
typedef void (*sweeper_note_fn)(const char *text, void *user);
typedef void (*sweeper_run_fn)(const struct sweep_run *run, size_t no, void *user);

struct sweeper_opts {
    struct loop *loop;
    const struct gpu_backend *backend;
    struct gpu_open_opts gpu;
    const char *gpus; /* see board/selection.h */
    const struct gpu_visible *visible;
    const char *const *argv;
    uid_t uid; /* whose job it is */

    uint32_t from_mw, to_mw, step_mw; /* 0, 0: the boards' whole range */
    unsigned runs;
    uint64_t seed;
    double settle_s;        /* between a new cap and the start of CMD */
    const char *state_path; /* or NULL */

    const char *actuator_library, *actuator_program; /* see actuator/client.h */
    const struct core_rules *rules;                  /* the same */
    sweeper_note_fn note;
    sweeper_run_fn on_run;
    void *user;
};

enum sweeper_end {
    SWEEPER_DONE = 0,    /* the whole plan */
    SWEEPER_USAGE,       /* a bad value: boards, range, state file */
    SWEEPER_BEFORE,      /* failed before CMD was started at all */
    SWEEPER_NOT_FOUND,   /* CMD is not there … */
    SWEEPER_CANNOT_RUN,  /* … or cannot be run */
    SWEEPER_CMD,         /* CMD failed: see status */
    SWEEPER_INTERRUPTED, /* by a signal: see signo */
    SWEEPER_FAILED,      /* another writer, a board lost, energy unknown … */
};

struct sweeper_result {
    enum sweeper_end end;
    uw_error error;
    int status; /* of waitpid(); SWEEPER_CMD */
    int signo;
    bool simulated;
    size_t n_boards;
    const char *board_name; /* of the first; borrowed */
    bool unlike;            /* the boards have different names */
    struct sweep_range range;
    size_t n_plan, n_done, n_resumed; /* runs; those found in the state file */
    const struct sweep_run *done;     /* borrowed */
    bool restored;                    /* every board is back at its original */
    char restore[200];                /* else: which is not, and why */
};

/* Called once, at the end. */
typedef int (*sweeper_done_fn)(struct sweeper *s, const struct sweeper_result *result,
                               void *user);

int sweeper_start(const struct sweeper_opts *opts, sweeper_done_fn done,
                  struct sweeper **ret, uw_error *err);
void sweeper_free(struct sweeper *s);
DEFINE_AUTO(struct sweeper *, sweeper_free);

/* SIGINT, SIGTERM …: goes to CMD, the sweep ends and the boards are given back; a
 * second one kills CMD.
 */
int sweeper_signal(struct sweeper *s, int signo);

/* For a live line. */
struct sweeper_now {
    size_t run, n_plan; /* the run under way, from 1; 0: none yet */
    uint32_t cap_mw;    /* 0: none set */
    bool running;       /* CMD runs */
    double time_s, power_w;
    bool left_known;
    double left_s; /* until the sweep's end, as far as can be told */
};
void sweeper_now(struct sweeper *s, struct sweeper_now *ret);

#endif
