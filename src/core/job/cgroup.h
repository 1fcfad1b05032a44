/* Which job a process belongs to, from the text of its /proc/PID/cgroup.  Pure.
 * Explained in docs/jobs.md.
 *
 * Recognised paths: Slurm (cgroup v1 and v2), kubelet (cgroupfs and systemd drivers, with
 * docker, containerd, CRI-O), docker, podman and systemd.  Users can create any path
 * inside their own slice, so Slurm and the kubelet are not recognised there.
 */
#ifndef CORE_JOB_CGROUP_H
#define CORE_JOB_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/names.h"

enum cgroup_kind { CGROUP_KINDS(NAME_ENUM) };

enum { CGROUP_ID = 68 };

struct cgroup_job {
    enum cgroup_kind kind;
    char id[CGROUP_ID];
    char step[16]; /* Slurm: "0", "batch", "extern", "interactive"; "": none */
    char container[CGROUP_ID]; /* Kubernetes; "": unknown */
    bool has_uid;              /* of Slurm v1 and users' slices */
    uint32_t uid;
};

/* Parses all lines ("4:memory:/slurm/uid_1000/job_42", or only the path); returns the
 * highest kind, if possible with a step or container.  CGROUP_NONE: no known path.
 */
void cgroup_parse(const char *text, size_t n, struct cgroup_job *ret);

/* Writes "slurm:42", "k8s:POD-UID", "docker:0123456789ab", or "" for CGROUP_NONE. Returns
 * ret.
 */
const char *cgroup_name(const struct cgroup_job *job, char *ret, size_t size);
/* Whether a name is one of a scheduler or container: "slurm:…", "k8s:…", "docker:…",
 * "podman:…".
 */
bool cgroup_is_name(const char *name);

#endif
