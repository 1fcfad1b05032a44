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
 * this process's own, so that whoever asks finds it alive; the driver's list of
 * processes has the virtual one.  Its environment may say whose it is: VIRTUAL_UID
 * (else root's) and VIRTUAL_CGROUP (a path, else "/").  Where it has VIRTUAL_LAUNCHES
 * (sim/launching.h) the job tells no steps, and its launches are counted in the page.
 */
#ifndef SIM_VIRTUAL_H
#define SIM_VIRTUAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "gpu/gpu.h"
#include "io/loop.h"
#include "io/proc.h"
#include "sim/machine.h"
#include "underwatt/error.h"
#include "underwatt/progress.h"

struct virtual_world;

#define VIRTUAL_PROGRESS "virtual:"
#define VIRTUAL_UID "UNDERWATT_SIM_UID"
#define VIRTUAL_LAUNCHES "UNDERWATT_SIM_LAUNCHES"
#define VIRTUAL_CGROUP "UNDERWATT_SIM_CGROUP"

/* What a call on a board that hangs takes: longer than any deadline. */
#define VIRTUAL_HANG_NS (3600ull * 1000000000ull)

/* Everything follows from the machine and the seed.  Free it before the loop. */
int virtual_world_new(struct loop *loop, const struct sim_machine *machine, uint64_t seed,
                      struct virtual_world **ret, uw_error *err);
void virtual_world_free(struct virtual_world *world);
DEFINE_AUTO(struct virtual_world *, virtual_world_free);

/* One of the tables behind gpu/gpu.h; backend_user is the world.  set_limit and
 * the other writes take the machine's set latency through loop_spend().
 */
extern const struct gpu_backend virtual_backend;

/* The page in memory; valid while the world lives. */
const struct uw_progress_page *virtual_world_progress(const struct virtual_world *world);

/* The plant's own truth, which no client can see: energy since the world began,
 * and power now.  0 where there is no such board.
 */
double virtual_world_true_j(struct virtual_world *world, size_t board);
double virtual_world_true_w(struct virtual_world *world, size_t board);

/* What sets a board apart from others of its model from now on: a hot slot, another split
 * of its job's work.
 */
void virtual_world_set_trait(struct virtual_world *world, size_t board,
                             const struct plant_trait *trait);

/* The upper end of the lock of its SM clock, which no client can ask for; 0: none. */
uint32_t virtual_world_locked_mhz(struct virtual_world *world, size_t board);

/* What /proc would tell of a program (a proc_read_fn); `world` is the world. */
int virtual_world_proc(pid_t pid, struct proc_facts *ret, void *world);

/* Who asks when limits are set (0, root, at the start): the machine may refuse. */
void virtual_world_set_uid(struct virtual_world *world, uid_t uid);

/* A fault of the script, at once (sim/machine.h; sim_fault_parse() reads one). */
int virtual_world_fault(struct virtual_world *world, const struct sim_fault *fault,
                        uw_error *err);

#endif
