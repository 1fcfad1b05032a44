/* Paths as the systems write them, and as somebody writes them who wants to be taken
 * for another's job.
 */
#include "core/job/cgroup.h"

#include <stdlib.h>

#include "base/names.h"
#include "tap.h"

#define POD "4b9f3c1e-0a2d-4c57-9e55-0123456789ab"
#define POD_ "4b9f3c1e_0a2d_4c57_9e55_0123456789ab"
#define STATIC_POD "0123456789abcdef0123456789abcdef"
#define ID64 "8f0c1d2e3a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5"
#define USER "/user.slice/user-1000.slice"

static const struct {
    const char *name, *text;
    enum cgroup_kind kind;
    const char *id, *step, *container;
    long uid; /* -1: none told */
    const char *shown;
} cases[] = {
    /* clang-format off */
    {"slurm, cgroup v1", "4:memory:/slurm/uid_1000/job_42/step_0/task_1\n", CGROUP_SLURM, "42", "0", "", 1000, "slurm:42"},
    {"slurm v1 with the node's name", "9:devices:/slurm_node7/uid_1001/job_7/step_batch\n", CGROUP_SLURM, "7", "batch", "", 1001, "slurm:7"},
    {"slurm, cgroup v2", "0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0\n", CGROUP_SLURM, "42", "0", "", -1, "slurm:42"},
    {"slurm v2, several slurmd", "0::/system.slice/node3_slurmstepd.scope/job_9/step_extern\n", CGROUP_SLURM, "9", "extern", "", -1, "slurm:9"},
    {"slurm v2, no step yet", "0::/system.slice/slurmstepd.scope/job_42", CGROUP_SLURM, "42", "", "", -1, "slurm:42"},
    {"slurm's daemon is no job", "0::/system.slice/slurmstepd.scope/system\n", CGROUP_SERVICE, "slurmstepd", "", "", -1, "service:slurmstepd"},
    {"slurmd is a service", "0::/system.slice/slurmd.service\n", CGROUP_SERVICE, "slurmd", "", "", -1, "service:slurmd"},
    {"no number of a job", "0::/system.slice/slurmstepd.scope/job_x/step_0\n", CGROUP_SERVICE, "slurmstepd", "", "", -1, "service:slurmstepd"},
    {"a number too long", "4:m:/slurm/uid_1000/job_42424242424/step_0\n", CGROUP_NONE, "", "", "", -1, ""},
    {"no uid where one belongs", "4:m:/slurm/uid_/job_42/step_0\n", CGROUP_NONE, "", "", "", -1, ""},
    {"a uid that none is", "4:m:/slurm/uid_4294967296/job_42\n", CGROUP_NONE, "", "", "", -1, ""},
    {"slurm's path within a user's own slice", "0::" USER "/user@1000.service/slurm/uid_0/job_42/step_0\n", CGROUP_SESSION, "user@1000", "", "", 1000, "session:user@1000"},
    {"slurmstepd.scope within a user's own slice", "0::" USER "/user@1000.service/app.slice/slurmstepd.scope/job_42/step_0\n", CGROUP_SESSION, "slurmstepd", "", "", 1000, "session:slurmstepd"},
    {"slurm's path below another's root", "0::/evil/slurm/uid_0/job_42/step_0\n", CGROUP_NONE, "", "", "", -1, ""},
    {"a scope that only ends like it", "0::/system.slice/xslurmstepd.scope/job_42/step_0\n", CGROUP_SERVICE, "xslurmstepd", "", "", -1, "service:xslurmstepd"},

    {"pod, cgroupfs", "11:cpuset:/kubepods/besteffort/pod" POD "/" ID64 "\n", CGROUP_KUBERNETES, POD, "", ID64, -1, "k8s:" POD},
    {"pod, cgroupfs, guaranteed", "0::/kubepods/pod" POD "/" ID64 "\n", CGROUP_KUBERNETES, POD, "", ID64, -1, "k8s:" POD},
    {"pod, systemd, containerd", "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" POD_ ".slice/cri-containerd-" ID64 ".scope\n", CGROUP_KUBERNETES, POD, "", ID64, -1, "k8s:" POD},
    {"pod, systemd, CRI-O", "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_ ".slice/crio-" ID64 ".scope/container\n", CGROUP_KUBERNETES, POD, "", ID64, -1, "k8s:" POD},
    {"pod, systemd, docker", "0::/kubepods.slice/kubepods-pod" POD_ ".slice/docker-" ID64 ".scope\n", CGROUP_KUBERNETES, POD, "", ID64, -1, "k8s:" POD},
    {"pod, kubelet's own slice", "0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod" POD_ ".slice/cri-containerd-" ID64 ".scope\n", CGROUP_KUBERNETES, POD, "", ID64, -1, "k8s:" POD},
    {"pod, node in docker (kind)", "0::/docker/" ID64 "/kubelet/kubepods/besteffort/pod" POD "/" ID64 "\n", CGROUP_KUBERNETES, POD, "", ID64, -1, "k8s:" POD},
    {"pod, containerd without units", "1:name=systemd:/system.slice/containerd.service/kubepods-besteffort-pod" POD_ ".slice:cri-containerd:" ID64 "\n", CGROUP_KUBERNETES, POD, "", ID64, -1, "k8s:" POD},
    {"static pod", "0::/kubepods/burstable/pod" STATIC_POD "/" ID64 "\n", CGROUP_KUBERNETES, STATIC_POD, "", ID64, -1, "k8s:" STATIC_POD},
    {"pod, container unknown", "0::/kubepods/burstable/pod" POD "\n", CGROUP_KUBERNETES, POD, "", "", -1, "k8s:" POD},
    {"a pod's uid with a letter too many", "0::/kubepods/burstable/pod" POD "a/" ID64 "\n", CGROUP_NONE, "", "", "", -1, ""},
    {"a pod's uid that is none", "0::/kubepods/burstable/podzzzzzzzz-0a2d-4c57-9e55-0123456789ab\n", CGROUP_NONE, "", "", "", -1, ""},
    {"dashes at wrong ends", "0::/kubepods/pod------------------------------------\n", CGROUP_NONE, "", "", "", -1, ""},
    {"a pod's path within a user's slice", "0::" USER "/user@1000.service/kubepods/besteffort/pod" POD "/x\n", CGROUP_SESSION, "user@1000", "", "", 1000, "session:user@1000"},

    {"docker, cgroupfs", "5:cpu:/docker/" ID64 "\n", CGROUP_DOCKER, ID64, "", "", -1, "docker:8f0c1d2e3a4b"},
    {"docker, systemd", "0::/system.slice/docker-" ID64 ".scope\n", CGROUP_DOCKER, ID64, "", "", -1, "docker:8f0c1d2e3a4b"},
    {"docker in docker: the inner one", "5:cpu:/docker/aaaaaaaaaaaa/docker/bbbbbbbbbbbb\n", CGROUP_DOCKER, "bbbbbbbbbbbb", "", "", -1, "docker:bbbbbbbbbbbb"},
    {"podman, root's", "0::/machine.slice/libpod-" ID64 ".scope/container\n", CGROUP_PODMAN, ID64, "", "", -1, "podman:8f0c1d2e3a4b"},
    {"podman, a user's", "0::" USER "/user@1000.service/user.slice/libpod-" ID64 ".scope\n", CGROUP_PODMAN, ID64, "", "", -1, "podman:8f0c1d2e3a4b"},
    {"no digits in the container", "0::/system.slice/docker-xyzxyzxyzxyz.scope\n", CGROUP_SERVICE, "docker-xyzxyzxyzxyz", "", "", -1, "service:docker-xyzxyzxyzxyz"},
    {"a container's id too short", "5:cpu:/docker/abc\n", CGROUP_NONE, "", "", "", -1, ""},

    {"session", "0::" USER "/session-3.scope\n", CGROUP_SESSION, "session-3", "", "", 1000, "session:session-3"},
    {"a user's app", "0::" USER "/user@1000.service/app.slice/app-foo.scope\n", CGROUP_SESSION, "app-foo", "", "", 1000, "session:app-foo"},
    {"a user's slice alone", "0::" USER "\n", CGROUP_NONE, "", "", "", 1000, ""},
    {"a service", "0::/system.slice/ollama.service\n", CGROUP_SERVICE, "ollama", "", "", -1, "service:ollama"},
    {"a unit with odd letters", "0::/system.slice/a\\x2db\".service\n", CGROUP_NONE, "", "", "", -1, ""},
    {"the root", "0::/\n", CGROUP_NONE, "", "", "", -1, ""},
    {"nothing", "", CGROUP_NONE, "", "", "", -1, ""},
    {"no colons, no path", "hello", CGROUP_NONE, "", "", "", -1, ""},

    {"several lines: the best", "12:pids:/user.slice/user-1000.slice/session-3.scope\n4:memory:/slurm/uid_1000/job_42/step_0\n1:name=systemd:/system.slice/slurmd.service\n", CGROUP_SLURM, "42", "0", "", 1000, "slurm:42"},
    {"several lines: the one with the step", "4:memory:/slurm/uid_1000/job_42\n5:cpu:/slurm/uid_1000/job_42/step_1\n", CGROUP_SLURM, "42", "1", "", 1000, "slurm:42"},
    {"a colon in the path", "0::/system.slice/a:b.service\n", CGROUP_SERVICE, "a:b", "", "", -1, "service:a:b"},
    {"deeper than is looked", "0::/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/docker/" ID64 "\n", CGROUP_NONE, "", "", "", -1, ""},
    /* clang-format on */
};

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cgroup_job job;
        char shown[CGROUP_ID + 16];
        char *exact = strndup(cases[i].text, strlen(cases[i].text)); /* for ASan */

        memset(&job, 0x5a, sizeof job);
        cgroup_parse(exact, strlen(exact), &job);
        free(exact);
        is_str(names_word(NAMES_CGROUP, job.kind),
               names_word(NAMES_CGROUP, cases[i].kind), cases[i].name);
        is_str(job.id, cases[i].id, "  its id");
        is_str(job.step, cases[i].step, "  its step");
        is_str(job.container, cases[i].container, "  its container");
        is_int(job.has_uid ? (long)job.uid : -1, cases[i].uid, "  its uid");
        is_str(cgroup_name(&job, shown, sizeof shown), cases[i].shown, "  its name");
    }
    struct cgroup_job job;
    char small[8];
    cgroup_parse("/docker/" ID64, 8 + 64, &job);
    is_str(cgroup_name(&job, small, sizeof small), "docker:", "a small room is kept");
    return done();
}
