/* One job on one node without a daemon, from the first driver call to the report: opens
 * the boards, selects the job's boards, holds them if caps are wanted, starts the job,
 * measures it, searches for its cap and releases the boards.  Used by `measure`, `run`
 * and the tests in virtual time.
 *
 * Owns: the boards, their sampler, the job, its progress page, the tuner and the client
 * of the actuator.  May touch: gpu, the actuator's process, the job's process and its
 * page. Thread: the loop's; driver calls run in the boards' workers. Explained in:
 * docs/architecture.md, underwatt-run(1), underwatt-measure(1).
 */
#ifndef LOCAL_SESSION_H
#define LOCAL_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "board/boards.h"
#include "core/meter/meter.h"
#include "gpu/gpu.h"
#include "io/loop.h"
#include "jobs/job-progress.h"
#include "tuner/tuner.h"

struct session;

enum session_caps {
    SESSION_MEASURE, /* no caps at all */
    SESSION_FIXED,   /* a cap by name */
    SESSION_SEARCH,  /* find the best one */
};

struct session_opts {
    struct loop *loop;
    const struct gpu_backend *backend;
    struct gpu_open_opts gpu;
    /* Which boards: gpus (--gpus), else visible (from the job's environment), else (both
     * NULL) those on which CMD's processes are found.
     */
    const char *gpus;
    const struct gpu_visible *visible;
    const struct gpu_backend *cpu; /* processors; NULL: GPUs only */
    const char *const *argv;
    const char *runtime_dir; /* for the progress page */
    const char *inject;      /* see struct job_opts */
    uid_t uid;               /* owner of the job */

    enum session_caps caps;
    struct goal goal;
    struct cap_arg cap;
    double window_s, warm_s;                         /* 0: the tuner's own */
    double checks_share;                             /* see struct tuner_opts */
    int gap_checks;                                  /* same */
    const char *actuator_library, *actuator_program; /* see actuator/client.h */

    tuner_note_fn note; /* lines for people */
    void *user;
};

struct session_board {
    const struct gpu_info *info;
    bool used; /* counts in the result */
    struct meter_result energy;
};

/* How a session ended, for the exit code. */
enum session_end {
    SESSION_RAN = 0,    /* CMD ran: see status */
    SESSION_BEFORE,     /* failed before CMD was started */
    SESSION_USAGE,      /* a bad value: unknown boards, a cap out of range */
    SESSION_NOT_FOUND,  /* CMD does not exist */
    SESSION_CANNOT_RUN, /* CMD cannot be executed */
};

struct session_result {
    enum session_end end;
    uw_error error; /* why CMD did not run, or could not be measured */
    int status;     /* of waitpid() */
    uint64_t begin_ns, end_ns;
    int64_t begin_utc_ns;
    bool simulated;
    bool measured; /* energy is known */
    double time_s, energy_j, half_j, power_w;
    uint32_t why; /* enum meter_why */
    size_t n;
    const struct session_board *board; /* every board of the node; borrowed */
    size_t n_used;
    size_t n_cpu; /* processor domains with known energy (not in energy_j) */
    const struct session_board *cpu; /* borrowed */
    const struct tuner_report
        *tuner;     /* NULL: no caps were wanted, or tuning did not start */
    uint64_t steps; /* training steps reported; 0: none */
    char launches[JOB_PROGRESS_LAUNCHES]; /* result of counting; "": not counted */
    bool silent; /* caps were wanted, but the job reported no step */
};

/* Called once, at the end; the loop may then be stopped. */
typedef int (*session_done_fn)(struct session *s, const struct session_result *result,
                               void *user);

int session_start(const struct session_opts *opts, session_done_fn done,
                  struct session **ret, uw_error *err);
void session_free(struct session *s);
DEFINE_AUTO(struct session *, session_free);

/* Passes a signal to the job, unless the job has had it (told: a terminal's Ctrl-C
 * reaches the whole group).  Without a job SIGINT and SIGTERM end the session; a second
 * one also ends the wait for releases.
 */
void session_signal(struct session *s, int signo, bool told);

/* For a live line. */
struct session_now {
    double time_s, power_w; /* since CMD's start; of the boards that count */
    uint64_t steps;
    double step_s;
    bool running;
    char status[120];
};
void session_now(struct session *s, struct session_now *ret);

#endif
