/* Steps of Slurm's jobs in a made-up /proc, and in this machine's. */
#include "jobs/step-watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"
#include "virtual/virtual-loop.h"

enum { OWN = 4711 };
static char root[64];
static struct step_jobs jobs;

static void put(int pid, const char *name, const char *text, size_t n)
{
    char path[128];

    (void)snprintf(path, sizeof path, "%s/%d/%s", root, pid, name);
    FILE *f = fopen(path, "w");
    if (f) {
        (void)fwrite(text, 1, n, f);
        (void)fclose(f);
    }
}

static void child(int pid, int ppid, unsigned uid, const char *cmdline,
                  const char *cgroup)
{
    char path[128], text[256];

    (void)snprintf(path, sizeof path, "%s/%d", root, pid);
    (void)mkdir(path, 0755);
    int n = snprintf(text, sizeof text,
                     "%d (x) S %d %d %d 0 0 0 1 2 3 4 5 6 7 8 20 0 1 0 %d 1 2\n", pid,
                     ppid, pid, pid, 1000 + pid);
    put(pid, "stat", text, (size_t)n);
    n = snprintf(text, sizeof text, "Name:\tx\nUid:\t%u\t0\t0\t0\n", uid);
    put(pid, "status", text, (size_t)n);
    bool stepd = strncmp(cmdline, "slurmstepd", 10) == 0;
    put(pid, "comm", stepd ? "slurmstepd\n" : "x\n", stepd ? 11 : 2);
    put(pid, "cmdline", cmdline, strlen(cmdline) + 1);
    put(pid, "cgroup", cgroup, strlen(cgroup));
}

/* A process whose command line cannot be read without a wait. */
static void locked(int pid, unsigned uid, const char *comm, const char *cgroup)
{
    char path[128];

    child(pid, 1, uid, comm, cgroup);
    (void)snprintf(path, sizeof path, "%s/%d/cmdline", root, pid);
    ok(unlink(path) == 0 && mkfifo(path, 0600) == 0, "the memory of %d is locked", pid);
}

static void process(int pid, unsigned uid, const char *cmdline, const char *cgroup)
{
    child(pid, 1, uid, cmdline, cgroup);
}

static void clear(int pid)
{
    static const char *const names[] = {"stat",    "status", "comm",
                                        "cmdline", "cgroup", ""};
    char path[128];

    for (size_t i = 0; i < n_elements(names); i++) {
        (void)snprintf(path, sizeof path, "%s/%d/%s", root, pid, names[i]);
        if (names[i][0])
            (void)unlink(path);
        else
            (void)rmdir(path);
    }
}

#define NONE "0::/system.slice/slurmd.service\n"

static void made_up(void)
{
    const struct step_job *j;

    is_int(step_jobs_read(root, OWN, &jobs), -EACCES, "no process 1: hidden");
    process(1, 0, "/sbin/init", "0::/init.scope\n");
    process(10, 0, "slurmstepd: [42.batch]", NONE);
    process(11, 0, "slurmstepd: [42.0]", NONE);
    process(12, OWN, "slurmstepd: [43.0]", NONE);
    process(13, 1000, "slurmstepd: [44.0]", NONE);
    process(14, 1000, "python", "4:memory:/slurm/uid_1000/job_45/step_0/task_0\n");
    process(15, 1000, "python", "0::/user.slice/user-1000.slice/slurm/uid_0/job_46\n");
    process(16, 0, "slurmstepd: [47", NONE);
    process(17, 1000, "python",
            "0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0\n");
    process(18, 0, "", "");
    locked(19, 1000, "python", NONE);
    locked(20, 1000, "slurmstepd: [47.0]", "0::/slurm/uid_1000/job_45/step_0/task_1\n");
    is_int(step_jobs_read(root, OWN, &jobs), 0, "a made-up /proc");
    is_int((long)jobs.n, 3, "three jobs");
    j = step_jobs_find(&jobs, 42);
    ok(j && j->n_procs == 2 && j->proc[0].start >= 1010 && j->proc[0].start <= 1011,
       "two steps of one job, with their starts");
    ok(step_jobs_find(&jobs, 43), "the daemon's own user's, as in a test's cluster");
    ok(!step_jobs_find(&jobs, 44), "a user's program of that name is none");
    j = step_jobs_find(&jobs, 45);
    ok(j && j->n_procs == 0, "a process in the job's control group");
    ok(!step_jobs_find(&jobs, 46), "not in a user's own slice");
    ok(!step_jobs_find(&jobs, 47) && !step_jobs_find(&jobs, 1), "no other");
    clear(11);
    char path[128];
    (void)snprintf(path, sizeof path, "%s/12/status", root);
    (void)unlink(path); /* as where it ends meanwhile */
    is_int(step_jobs_read(root, OWN, &jobs), 0, "once more");
    ok(step_jobs_find(&jobs, 42)->n_procs == 1 && !step_jobs_find(&jobs, 43),
       "what is gone is gone");
    for (int pid = 1; pid <= 20; pid++)
        clear(pid);
    is_int(step_jobs_read("/nonexistent", OWN, &jobs), -ENOENT, "no folder");
}

static bool may_be(uint64_t job, uid_t uid)
{
    const struct step_job *j = step_jobs_find(&jobs, job);

    return j && step_job_may_be_of(j, uid);
}

/* Whose a job is that has a step. */
static void users(void)
{
    process(1, 0, "/sbin/init", "0::/init.scope\n");
    child(30, 41, 1000, "python", NONE); /* before its parent, as where pids began anew */
    process(41, 0, "slurmstepd: [42.0]", NONE);
    child(42, 41, 0, "sleep", NONE);
    process(43, 0, "slurmstepd: [43.extern]", NONE);
    child(44, 43, 0, "sleep", NONE);
    process(45, 0, "python", "4:memory:/slurm/uid_1001/job_44/step_0/task_0\n");
    process(46, 1002, "python",
            "0::/system.slice/slurmstepd.scope/job_45/step_0/user/task_0\n");
    for (int i = 0; i < STEP_UIDS; i++) {
        child(50 + 2 * i, 41, 1000, "python", NONE);
        process(51 + 2 * i, 2000 + (unsigned)i, "python",
                "0::/system.slice/slurmstepd.scope/job_46/step_0/user/task_0\n");
    }
    is_int(step_jobs_read(root, OWN, &jobs), 0, "steps of several users");
    ok(may_be(42, 1000) && !may_be(42, 1001), "whose a slurmstepd's child is");
    ok(may_be(43, 1000) && may_be(43, 1001), "root's alone: anybody's");
    ok(may_be(44, 1001) && !may_be(44, 1000), "whom the control group names");
    ok(may_be(45, 1002) && !may_be(45, 1000), "whose a process in the group is");
    ok(may_be(46, 1000), "of too many to tell: anybody's");
    for (int pid = 1; pid <= 60; pid++)
        clear(pid);
}

static struct {
    unsigned calls;
    int r;
    bool jobs;
} heard;

static void on_steps(int r, const struct step_jobs *got, void *user)
{
    (void)user;
    heard.calls++;
    heard.r = r;
    heard.jobs = got != NULL;
}

static int stop(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    (void)now_ns;
    loop_stop(user, 0);
    return 0;
}

static void watched(void)
{
    struct loop *loop = NULL;
    struct loop_timer *timer = NULL;
    struct step_watch *w = NULL;
    uw_error err = {""};

    if (!ok(loop_new_virtual(1000000000, 1700000000, &loop, &err) == 0 &&
                step_watch_new(loop, on_steps, NULL, &w, &err) == 0 &&
                loop_timer_new(loop, loop_now_ns(loop) + 1000000000, 0, stop, loop,
                               &timer, &err) == 0,
            "a watch %s", err.text))
        return;
    step_watch_look(w);
    step_watch_look(w);
    is_int(heard.calls, 0, "not from inside");
    (void)loop_run(loop, &err);
    ok(heard.calls == 1 && heard.jobs == (heard.r == 0), "one look at a time");
    step_watch_look(w);
    step_watch_free(w);
    is_int(heard.calls, 1, "none after the end");
    loop_timer_free(timer);
    loop_free(loop);
}

int main(void)
{
    (void)snprintf(root, sizeof root, "/tmp/uw-test-steps-XXXXXX");
    if (!mkdtemp(root))
        return 1;
    made_up();
    users();
    (void)rmdir(root);
    watched();
    return done();
}
