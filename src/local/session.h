/* One job on one node without a daemon, from the first driver call to the report: opens
 * the boards, selects the job's, holds them where caps are wanted, starts the job,
 * measures it, searches for its cap and releases the boards.  Used by `measure`, `run`
 * and the tests in virtual time.
 *
 * Owns: the boards, their sampler, the job, its progress page, the tuner and the client
 * of the actuator. May touch: gpu, the actuator's process, the job's process and its
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
    /* Which boards: --gpus, else what the job's environment lists, else (both NULL) those
     * on which CMD's processes show up.
     */
    const char *gpus;
    const struct gpu_visible *visible;
    const struct gpu_backend *cpu; /* processors; NULL: GPUs alone */
    const char *const *argv;
    const char *runtime_dir; /* for the progress page */
    const char *inject;      /* see struct job_opts */
    uid_t uid;               /* whose job it is */

    enum session_caps caps;
    struct goal goal;
    struct cap_arg cap;
    double window_s, warm_s;                         /* 0: the tuner's own */
    double checks_share;                             /* see struct tuner_opts */
    int looks;                                       /* same */
    const char *actuator_library, *actuator_program; /* see actuator/client.h */

    tuner_note_fn note; /* lines for a human */
    void *user;
};

struct session_board {
    const struct gpu_info *info;
    bool used; /* counts in the result */
    struct meter_result energy;
};

/* Why a session ended without running CMD, for the exit code. */
enum session_end {
    SESSION_RAN = 0,    /* CMD ran: status says how it ended */
    SESSION_BEFORE,     /* failed before CMD was started */
    SESSION_USAGE,      /* a bad value: boards that are not there, a cap out of range */
    SESSION_NOT_FOUND,  /* CMD is not there … */
    SESSION_CANNOT_RUN, /* … or cannot be run */
};

struct session_result {
    enum session_end end;
    uw_error error; /* of a session that did not run, or of the measuring */
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
    size_t n_cpu; /* domains of the processor whose energy is known (not in energy_j) */
    const struct session_board *cpu;  /* borrowed */
    const struct tuner_report *tuner; /* NULL: no caps were wanted, or none began */
    uint64_t steps; /* training steps reported; 0: the job tells nothing */
    char
        launches[JOB_PROGRESS_LAUNCHES]; /* what they showed; "": nobody asked to count */
    bool silent; /* caps were wanted, and the job never told of a step */
};

/* Called once, at the end; the loop may then be stopped. */
typedef int (*session_done_fn)(struct session *s, const struct session_result *result,
                               void *user);

int session_start(const struct session_opts *opts, session_done_fn done,
                  struct session **ret, uw_error *err);
void session_free(struct session *s);
DEFINE_AUTO(struct session *, session_free);

/* A signal for us goes to the job, unless it has had it already (told: the terminal's
 * Ctrl-C reaches the whole group).  Without a job SIGINT and SIGTERM end the session; a
 * second one also gives up waiting for boards to be given back.
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
