/* Energy of the processors while CMD runs, for the report: read beside the node, whose
 * own figures of processors are for all users and therefore coarse.
 */
#ifndef CLI_JOB_CPU_H
#define CLI_JOB_CPU_H

#include "base/auto.h"
#include "cli/job-result.h"

struct job_cpu;

enum { JOB_CPU_MAX = 16 };

/* Opens the counters of this machine (source: as of gpu_boards) and reads them from then
 * on; runs the loop until they are open.  Without readable counters it has none. -ENOMEM.
 */
int job_cpu_new(struct loop *loop, const char *source, struct gpu_clock clock,
                struct job_cpu **ret);
void job_cpu_free(struct job_cpu *c); /* NULL is fine for all functions */
DEFINE_AUTO(struct job_cpu *, job_cpu_free);

/* An end of the window is now. */
void job_cpu_mark(struct job_cpu *c, uint64_t now_ns);
/* Runs the loop until the energy is known; returns how many domains have one. */
size_t job_cpu_energy(struct job_cpu *c, uint64_t begin_ns, uint64_t end_ns,
                      struct job_board ret[static JOB_CPU_MAX]);

#endif
