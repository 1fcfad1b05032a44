/* A simulated node: boards of plant/, jobs on the boards, and faults.
 *
 * Owns: the boards, jobs, pending faults and permissions of one world.
 * May touch: plant/ and base/ alone; no clock, file or socket.  sim_world_advance()
 * alone moves the world's time.
 * Thread: the caller's; no lock and no global state.
 * Explained in: docs/architecture.md; docs/machine-file.md for machines and faults.
 *
 * Two things run a world: underwatt-sim in real time (server.h), and the virtual
 * backend of tests in a virtual loop (tests/virtual/virtual-world.h).
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/auto.h"
#include "plant/job.h"
#include "sim/job.h"
#include "sim/machine.h"
#include "sim/state.h"
#include "underwatt/error.h"

struct sim_world;

enum { SIM_JOBS_MAX = 64 };

/* Simulated time starts at start_ns.  seed 0: the machine's. */
int sim_world_new(const struct sim_machine *machine, uint64_t seed, uint64_t start_ns,
                  struct sim_world **ret, uw_error *err);
void sim_world_free(struct sim_world *world);
DEFINE_AUTO(struct sim_world *, sim_world_free);

/* Advances the world to now_ns; an earlier time is ignored. */
void sim_world_advance(struct sim_world *world, uint64_t now_ns);
/* When a job next changes phase or ends a step, or a fault is due; UINT64_MAX: never. */
uint64_t sim_world_next_ns(const struct sim_world *world);
bool sim_world_busy(const struct sim_world *world);
size_t sim_world_n_jobs(const struct sim_world *world);

size_t sim_world_n_boards(const struct sim_world *world);
/* -EINVAL: the world has no such board. */
int sim_world_no_board(const struct sim_world *world, uint64_t board, uw_error *err);
/* Borrowed; never changes. */
const struct sim_identity *sim_world_identity(const struct sim_world *world, size_t i);
/* As of the last advance. */
void sim_world_readings(const struct sim_world *world, size_t i,
                        struct sim_readings *ret);
void sim_world_procs(const struct sim_world *world, size_t i, uint64_t utc_us,
                     struct sim_procs *ret);
uint64_t sim_world_load_id(const struct sim_world *world);
bool sim_world_driver_gone(const struct sim_world *world);
/* Changes how board i differs from its model. */
void sim_world_set_trait(struct sim_world *world, size_t i,
                         const struct plant_trait *trait);
double sim_world_true_j(const struct sim_world *world, size_t i);
double sim_world_true_w(const struct sim_world *world, size_t i);
double sim_world_true_c(const struct sim_world *world, size_t i);
void sim_world_set_ambient(struct sim_world *world, size_t i, double ambient_c);
/* The upper end of the lock of its SM clock; 0: none. */
uint32_t sim_world_locked_mhz(const struct sim_world *world, size_t i);

/* Requests of clients; uid is the client's. */
enum sim_result sim_world_set_limit(struct sim_world *world, size_t i, uint64_t mw,
                                    uid_t uid);
enum sim_result sim_world_lock_clocks(struct sim_world *world, size_t i, uint64_t min_mhz,
                                      uint64_t max_mhz, uid_t uid);
enum sim_result sim_world_reset_clocks(struct sim_world *world, size_t i, uid_t uid);
enum sim_result sim_world_persistence(struct sim_world *world, size_t i, bool on,
                                      uid_t uid);

/* Resets board i, which no process may have open: limit, energy counter and clock lock
 * return to their values after a load of the driver, and the board's faults end.
 */
void sim_world_reset(struct sim_world *world, size_t i);

/* Applies at once, regardless of at_ns. -EINVAL: no such board, or a limit out of range.
 */
int sim_world_fault(struct sim_world *world, const struct sim_fault *fault,
                    uw_error *err);

/* ---- jobs ---- */

struct sim_job_state {
    enum uw_phase phase;
    uint64_t steps;        /* whole training steps done */
    uint64_t last_step_ns; /* simulated time at which the last of them ended */
    uint64_t total_steps;
    bool done;
};

/* Starts a job now; *ret_id is valid until the job is removed. -EINVAL: no such board, or
 * no such workload on it; -EBUSY: too many jobs.
 */
int sim_world_job_add(struct sim_world *world, const struct sim_job *job, pid_t pid,
                      unsigned *ret_id, uw_error *err);
void sim_world_job_state(const struct sim_world *world, unsigned id,
                         struct sim_job_state *ret);
/* The job's process is stopped or continued.  A paused job does no steps, and its boards
 * draw little more than static power.  The boards of a driven job do what was granted
 * before.
 */
void sim_world_job_pause(struct sim_world *world, unsigned id, bool paused);
/* Ends the job's load at once. */
void sim_world_job_remove(struct sim_world *world, unsigned id);

/* Grants a driven job its next phase: as plant_job_grant(). -EINVAL: no driven job, no
 * such phase, or an amount outside 1..JOB_STEPS_MAX steps or 1 ns .. JOB_GRANT_MAX_S.
 */
int sim_world_grant(struct sim_world *world, unsigned id, enum uw_phase phase,
                    uint64_t amount, uw_error *err);
/* Collects the oldest grant that is done; false: none. */
bool sim_world_granted(struct sim_world *world, unsigned id, struct plant_granted *ret);
/* When a driven job's boards or a fault next change something, at the latest with the end
 * of a grant; UINT64_MAX: never.
 */
uint64_t sim_world_driven_ns(const struct sim_world *world);

#endif
