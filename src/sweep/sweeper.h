/* The sweep of a real command: a claimant at a node of its own (ask/own-node.h), which
 * runs CMD at one cap after another in the plan's order and measures each whole run.
 * Works on real and virtual loops.
 *
 * Owns: its node, the runs so far and the state file.
 * May touch: what the node touches, CMD's process.
 * Thread: the loop's.
 * Explained in: docs/architecture.md, underwatt-sweep(1).
 *
 * Where no board is named, CMD first runs once uncapped while all boards are searched for
 * its processes; that run counts as a reference where the default limit was in force.
 */
#ifndef SWEEP_SWEEPER_H
#define SWEEP_SWEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/sweep/sweep.h"
#include "gpu/backends.h"
#include "underwatt/error.h"

struct sweeper;

/* note: a line for people on stderr; run: a run has been made. */
typedef void (*sweeper_note_fn)(const char *text, void *user);
typedef void (*sweeper_run_fn)(const struct sweep_run *run, size_t no, void *user);

struct node_opts;

struct sweeper_opts {
    const struct node_opts *node;    /* as for own_node_new() */
    const char *runtime_dir, *world; /* the same */
    const char *gpus;                /* see board/selection.h */
    const struct gpu_visible *visible;
    const char *const *argv;
    uid_t uid; /* owner of the job */

    uint32_t from_mw, to_mw, step_mw; /* 0, 0: the whole range of the boards */
    const char *from_typed, *to_typed, *step_typed; /* of sweep_range; borrowed */
    unsigned runs;
    uint64_t seed;
    double settle_s;        /* between a new cap and the start of CMD */
    const char *state_path; /* or NULL */

    sweeper_note_fn note;
    sweeper_run_fn on_run;
    void *user;
};

enum sweeper_end {
    SWEEPER_DONE = 0,    /* the whole plan */
    SWEEPER_USAGE,       /* a bad value: boards, range, state file */
    SWEEPER_BEFORE,      /* failed before CMD was started at all */
    SWEEPER_NOT_FOUND,   /* CMD does not exist */
    SWEEPER_CANNOT_RUN,  /* CMD cannot be executed */
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
    bool unlike;            /* the boards differ in name */
    struct sweep_range range;
    size_t n_plan, n_done, n_resumed; /* runs; those from the state file */
    const struct sweep_run *done;     /* borrowed */
    bool restored;                    /* every original limit is restored */
    char restore[200];                /* else the board and the reason */
};

/* Called once, at the end. */
typedef int (*sweeper_done_fn)(struct sweeper *s, const struct sweeper_result *result,
                               void *user);

/* Reads the state file.  -EINVAL: it is none. */
int sweeper_new(const struct sweeper_opts *opts, sweeper_done_fn done,
                struct sweeper **ret, uw_error *err);
/* Opens the node, for which it runs the loop, and begins; failures are results, too. */
void sweeper_start(struct sweeper *s);
void sweeper_free(struct sweeper *s);
DEFINE_AUTO(struct sweeper *, sweeper_free);

/* Passes SIGINT, SIGTERM … to CMD, ends the sweep and releases the boards; a second
 * signal kills CMD.
 */
int sweeper_signal(struct sweeper *s, int signo);

/* For a live line. */
struct sweeper_now {
    size_t run, n_plan; /* the run under way, from 1; 0: none yet */
    uint32_t cap_mw;    /* 0: none set */
    bool running;       /* CMD runs */
    double time_s;
    double power_w; /* mean of the last second or two; NaN: unknown */
    bool left_known;
    double left_s; /* estimated time to the end of the sweep */
};
void sweeper_now(struct sweeper *s, struct sweeper_now *ret);

#endif
