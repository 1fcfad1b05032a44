/* Slurm's jobs, parsed from the output of squeue, and which of them wait.
 *
 * Owns: nothing.  Touches: nothing; the time is an argument.  Thread: any. Explained in
 * docs/slurm.md#collector-and-queue.
 *
 * The text is outside data: users choose names of jobs, and fields moved between Slurm's
 * versions.  A job without an id or a state is left out; any other field that is missing
 * is "" or 0.
 */
#ifndef COLLECTOR_JOBS_H
#define COLLECTOR_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "underwatt/error.h"

enum {
    JOBS_TEXT_MAX = 64 << 20, /* bytes that squeue may print */
    JOBS_MAX = 1000000,
    JOBS_TASKS_MAX = 4000001, /* Slurm's own bound of an array's indices, and 1 */
    JOBS_NONCE = 9,           /* 48 bits as 8 letters, and NUL */
};

enum job_stage { JOB_IS_OTHER, JOB_IS_PENDING, JOB_IS_RUNNING };

/* Texts are borrowed from the struct jobs and may have any bytes but NUL. */
struct slurm_job {
    const char *name, *user, *account, *qos, *reason;
    const char *partition; /* "main,long": of a job that waits for the first of them */
    const char *nodes;     /* "n[1-2]" */
    uint64_t id;
    uint64_t array_id, task;      /* of an array's task; array_id 0: none */
    uint64_t het_id, het_offset;  /* component of a heterogeneous job; het_id 0: none */
    uint64_t tasks;               /* number of tasks of this entry, a pending array */
    uint64_t gpus;                /* of all nodes, for each of the tasks */
    int64_t submit_s, eligible_s; /* UTC; 0: not told, not eligible */
    int64_t limit_s;              /* 0: unlimited, not told */
    enum job_stage stage;
    uint32_t uid; /* of user; where has_uid */
    bool has_uid;
    bool has_task;
    bool has_eligible; /* eligible_s was told */
    bool node_away;    /* a node that it requires is down, drained or in maintenance */
};

struct jobs {
    struct slurm_job *job;
    size_t n, cap;
    char *text; /* owns the texts */
    struct json *doc;
};
void jobs_fini(struct jobs *jobs);
static inline void jobs_fini_p(struct jobs *jobs)
{
    jobs_fini(jobs);
}

/* types: the cluster's types of GPUs whose names are numbers, ",4090,": see
 * jobs_gres_types().
 */

/* Output of `squeue --json`, of 20.11 to 25.x.  text has a NUL at len and is changed.
 * -EPROTO: no such output, or squeue tells an error in it (it exits with 0 then), -E2BIG,
 * -ENOMEM.
 */
int jobs_read_json(char *text, size_t len, const char *types, struct jobs *ret,
                   uw_error *err);

/* Parses the output of squeue with the format below, whose fields are separated by the
 * nonce.  Takes text (NUL at len; free()d otherwise) in any case.  A line without nonces
 * continues a name that contains a line end: without the nonce nobody can forge a job.
 * -EPROTO (also if no line has the form), -E2BIG, -ENOMEM.
 */
int jobs_read_text(char *text, size_t len, const char *nonce, const char *types,
                   struct jobs *ret, uw_error *err);
/* The value of SQUEUE_FORMAT2: other users may read arguments. */
int jobs_format(const char *nonce, char *ret, size_t size);

/* The list of nodes in "ReqNodeNotAvail, UnavailableNodes:n[1-2]"; NULL: the reason has
 * none.
 */
const char *job_unavailable(const struct slurm_job *job);
/* Whether the job waits for other jobs to end: pending, eligible, and not for a reason
 * for which it would also wait on an idle cluster.
 */
bool job_waits(const struct slurm_job *job, int64_t now_s);

/* ---- for both readers ---- */

/* GPUs in "cpu=1,gres/gpu=8,gres/gpu:a100=8"; false: none is told. */
bool jobs_tres_gpus(const char *tres, uint64_t *ret);
/* GPUs in "gres:gpu:a100:2,gres/gpu:1", "gpu:2"; 0: none.  "gpu:4090" is one GPU where
 * that is a type, or else 4090.
 */
uint64_t jobs_gres_gpus(const char *gres, const char *types);
/* Adds the types of a node's "gpu:4090:8(S:0-1),gpu:a100:1" that are numbers to types (""
 * at first); what does not fit is left out.
 */
enum { JOBS_TYPES = 256 };
void jobs_gres_types(const char *gres, char types[static JOBS_TYPES]);
/* How many indices "2-4,7,9-15:2%1" has; 1 at least. */
uint64_t jobs_task_count(const char *list);
/* Room for one more, all of it 0 and "". */
int jobs_add(struct jobs *jobs, struct slurm_job **ret, uw_error *err);

#endif
