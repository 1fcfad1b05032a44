/* A simulated node inside one process on a virtual loop: boards behind the table
 * of gpu/gpu.h and training jobs as programs of that loop.
 *
 *     struct virtual_world *world;
 *     sim_machine_builtin("v100", 4, &machine, err);
 *     virtual_world_new(loop, &machine, seed, &world, err);
 *     opts = (struct gpu_open_opts){.clock = …, .backend_user = world};
 *     virtual_backend.open(&opts, &lib, err);
 *
 * From then on loop_child_new() with argv {"train", "--workload", "resnet50",
 * "--gpus", "0,1", …} (or "underwatt-sim", "train", …) runs a training job with
 * the options of `underwatt-sim train`.  A job reports to the progress page that
 * UNDERWATT_PROGRESS of its environment names: a file, or VIRTUAL_PROGRESS for
 * the page in memory that virtual_world_progress() returns.  The pid in its slot is
 * the pid of this process, so that a reader finds the process alive; the driver's list
 * of processes has the virtual pid.  The job's environment may set the user (VIRTUAL_UID,
 * else root) and the cgroup (VIRTUAL_CGROUP, a path, else "/").  A job with
 * VIRTUAL_LAUNCHES (launching.h) reports no steps; the page counts its launches.
 */
#ifndef VIRTUAL_VIRTUAL_WORLD_H
#define VIRTUAL_VIRTUAL_WORLD_H

#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "gpu/gpu.h"
#include "io/loop.h"
#include "io/proc.h"
#include "sim/machine.h"
#include "underwatt/error.h"
#include "underwatt/progress.h"
#include "virtual/virtual-loop.h"

struct virtual_world;

#define VIRTUAL_PROGRESS "virtual:"
#define VIRTUAL_UID "UNDERWATT_SIM_UID"
#define VIRTUAL_LAUNCHES "UNDERWATT_SIM_LAUNCHES"
#define VIRTUAL_CGROUP "UNDERWATT_SIM_CGROUP"

/* Duration of a call on a board that hangs: longer than any deadline. */
#define VIRTUAL_HANG_NS (3600ull * 1000000000ull)

/* Deterministic for a machine and a seed.  Free the world before the loop. */
int virtual_world_new(struct loop *loop, const struct sim_machine *machine, uint64_t seed,
                      struct virtual_world **ret, uw_error *err);
void virtual_world_free(struct virtual_world *world);
DEFINE_AUTO(struct virtual_world *, virtual_world_free);

/* A backend of gpu/gpu.h; backend_user is the world. set_limit and the other writes spend
 * the machine's set latency with loop_spend().
 */
extern const struct gpu_backend virtual_backend;

/* The page in memory; valid while the world lives. */
const struct uw_progress_page *virtual_world_progress(const struct virtual_world *world);

/* The true values, which clients cannot read: energy since the world began, and power
 * now. 0: no such board.
 */
double virtual_world_true_j(struct virtual_world *world, size_t board);
double virtual_world_true_w(struct virtual_world *world, size_t board);

/* Its true temperature, °C, and that of the air. */
double virtual_world_true_c(struct virtual_world *world, size_t board);
void virtual_world_set_ambient(struct virtual_world *world, size_t board,
                               double ambient_c);

/* Changes how a board differs from others of its model: a hot slot, another share of the
 * job's work.
 */
void virtual_world_set_trait(struct virtual_world *world, size_t board,
                             const struct plant_trait *trait);

/* Upper end of the SM clock's lock, which clients cannot read; 0: none. */
uint32_t virtual_world_locked_mhz(struct virtual_world *world, size_t board);

/* The facts that /proc gives for a real process (a proc_read_fn); `world` is the world.
 */
int virtual_world_proc(pid_t pid, struct proc_facts *ret, void *world);

/* What a call that reads the energy counter takes; at the start 0.  On an H200 it was 3
 * to 4 ms of a processor, against 14 us for the power readings (docs/cost.md).
 */
void virtual_world_set_counter_ns(struct virtual_world *world, uint64_t ns);

/* The boards do not count the time for which their limit held them down; before the
 * library is opened.
 */
void virtual_world_uncounted(struct virtual_world *world);
/* The user who sets limits (at the start 0, root); the machine may refuse a user. */
void virtual_world_set_uid(struct virtual_world *world, uid_t uid);

/* Applies a fault at once (sim/machine.h; sim_fault_parse() parses one). */
int virtual_world_fault(struct virtual_world *world, const struct sim_fault *fault,
                        uw_error *err);

#endif
