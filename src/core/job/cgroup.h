/* Which job a process belongs to, as the text of its /proc/PID/cgroup tells.  Pure.
 *
 * Paths as Slurm (cgroup v1 and v2), the kubelet (cgroupfs and systemd drivers, with
 * docker, containerd, CRI-O), docker, podman and systemd lay them out.  What lies
 * within a user's own slice can be laid out by that user: there nothing is taken for
 * Slurm's or the kubelet's.
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
    char step[16];             /* Slurm: "0", "batch", "extern", "interactive"; "" */
    char container[CGROUP_ID]; /* Kubernetes; "" unknown */
    bool has_uid;              /* Slurm v1 and users' slices name one */
    uint32_t uid;
};

/* The best that any of its lines ("4:memory:/slurm/uid_1000/job_42") tells; a single
 * path without the two colons is fine, too.  kind CGROUP_NONE: nothing known there.
 */
void cgroup_parse(const char *text, size_t n, struct cgroup_job *ret);

/* "slurm:42", "k8s:POD-UID", "docker:0123456789ab"; "" for none.  Returns ret. */
const char *cgroup_name(const struct cgroup_job *job, char *ret, size_t size);
/* Does a name look like a scheduler's or a container's: "slurm:…", "k8s:…", "docker:…",
 * "podman:…"?
 */
bool cgroup_is_name(const char *name);

#endif
