#include "jobs/step-watch.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/units.h"
#include "core/job/cgroup.h"
#include "core/job/lifetime.h"
#include "io/proc.h"

enum { DEADLINE_S = 20, TITLE = 64, STAT = 1024 };

const struct step_job *step_jobs_find(const struct step_jobs *jobs, uint64_t job)
{
    for (size_t i = 0; i < jobs->n; i++)
        if (jobs->job[i].job == job)
            return &jobs->job[i];
    return NULL;
}

bool step_job_may_be_of(const struct step_job *job, uid_t uid)
{
    for (size_t i = 0; i < job->n_uids; i++)
        if (job->uid[i] == uid)
            return true;
    return job->n_uids == 0 || job->n_uids == STEP_UIDS;
}

/* ---- reading ---- */

static struct step_job *place_of(struct step_jobs *jobs, uint64_t job)
{
    for (size_t i = 0; i < jobs->n; i++)
        if (jobs->job[i].job == job)
            return &jobs->job[i];
    if (jobs->n == STEP_JOBS_MAX)
        return NULL;
    struct step_job *place = &jobs->job[jobs->n++];
    *place = (struct step_job){.job = job};
    return place;
}

/* The number of bytes read; 0: none, or the process has ended. */
static int read_first(const char *root, const char *pid, const char *name, char *ret,
                      size_t size)
{
    char path[128];

    if (snprintf(path, sizeof path, "%s/%s/%s", root, pid, name) >= (int)sizeof path)
        return -ENAMETOOLONG;
    auto_(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT || errno == ESRCH ? 0 : -errno;
    ssize_t n = read(fd, ret, size);
    return n >= 0 ? (int)n : errno == ESRCH ? 0 : -errno;
}

static int add_stepd(const struct proc_facts *f, uint64_t job, struct step_jobs *ret)
{
    struct step_job *place = place_of(ret, job);

    if (!place)
        return -E2BIG;
    if (place->n_procs < STEP_PROCS)
        place->proc[place->n_procs++] = (struct job_proc){f->pid, f->start};
    return 0;
}

/* Root's processes, such as the one that waits in the step "extern", do not identify a
 * job's user.
 */
static void add_uid(struct step_job *place, uid_t uid)
{
    if (uid == 0 || place->n_uids == STEP_UIDS ||
        (place->n_uids > 0 && step_job_may_be_of(place, uid)))
        return;
    place->uid[place->n_uids++] = uid;
}

static int add_cgroup(const char *root, pid_t pid, const char *text, size_t n,
                      struct step_jobs *ret)
{
    struct cgroup_job group;
    struct proc_facts f;
    uint64_t job = 0;

    cgroup_parse(text, n, &group);
    if (group.kind != CGROUP_SLURM || parse_u64(group.id, &job, NULL) < 0)
        return 0;
    struct step_job *place = place_of(ret, job);
    if (!place)
        return -E2BIG;
    if (group.has_uid)
        add_uid(place, group.uid);
    else if (proc_read(root, pid, &f) == 0)
        add_uid(place, f.uid);
    return 0;
}

static struct step_job *job_of_stepd(struct step_jobs *jobs, pid_t pid)
{
    for (size_t i = 0; i < jobs->n; i++)
        for (size_t k = 0; k < jobs->job[i].n_procs; k++)
            if (jobs->job[i].proc[k].pid == pid)
                return &jobs->job[i];
    return NULL;
}

/* A child of a slurmstepd runs as the job's user. */
static int add_child(const char *root, const char *name, struct step_jobs *ret)
{
    char stat[STAT];
    struct proc_facts f;
    int n = read_first(root, name, "stat", stat, sizeof stat);

    if (n <= 0 || proc_parse_stat(stat, (size_t)n, &f) < 0)
        return n < 0 ? n : 0;
    struct step_job *place = job_of_stepd(ret, f.ppid);
    if (place && proc_read(root, f.pid, &f) == 0)
        add_uid(place, f.uid);
    return 0;
}

/* 1: it is a slurmstepd of root or uid, 0: it is not, or -errno.  Any user may name a
 * program slurmstepd, and may hold the lock of its memory, for which a read of its
 * command line waits.
 */
static int is_stepd(const char *root, const char *name, pid_t pid, uid_t uid,
                    struct proc_facts *ret)
{
    static const char comm[] = "slurmstepd\n";
    char text[PROC_COMM];
    int n = read_first(root, name, "comm", text, sizeof text);

    if (n < 0)
        return n;
    return n == (int)sizeof comm - 1 && memcmp(text, comm, sizeof comm - 1) == 0 &&
           proc_read(root, pid, ret) == 0 && (ret->uid == 0 || ret->uid == uid);
}

static int look_at(const char *root, const char *name, uid_t uid, struct step_jobs *ret)
{
    char title[TITLE], group[PROC_CGROUP];
    struct proc_facts f;
    uint64_t pid = 0;

    if (parse_u64(name, &pid, NULL) < 0 || pid > INT32_MAX)
        return 0;
    int n = is_stepd(root, name, (pid_t)pid, uid, &f);
    if (n > 0)
        n = read_first(root, name, "cmdline", title, sizeof title);
    uint64_t job = n > 0 ? lifetime_stepd(title, (size_t)n) : 0;
    if (n < 0 || job)
        return n < 0 ? n : add_stepd(&f, job, ret);
    n = read_first(root, name, "cgroup", group, sizeof group);
    if (n <= 0 || !memmem(group, (size_t)n, "slurm", 5))
        return n < 0 ? n : 0;
    return add_cgroup(root, (pid_t)pid, group, (size_t)n, ret);
}

/* children: also reads those of the slurmstepds found by an earlier pass. */
static int pass(const char *root, DIR *dir, uid_t uid, bool children,
                struct step_jobs *ret)
{
    struct dirent *e;

    for (errno = 0; (e = readdir(dir)); errno = 0) {
        if (!isdigit((unsigned char)e->d_name[0]))
            continue;
        int r = children ? add_child(root, e->d_name, ret)
                         : look_at(root, e->d_name, uid, ret);
        if (r < 0 && r != -EACCES)
            return r;
    }
    return errno ? -errno : 0;
}

static bool has_stepd(const struct step_jobs *jobs)
{
    for (size_t i = 0; i < jobs->n; i++)
        if (jobs->job[i].n_procs > 0)
            return true;
    return false;
}

int step_jobs_read(const char *root, uid_t uid, struct step_jobs *ret)
{
    auto_(dir_close) DIR *dir = opendir(root);
    struct proc_facts first;

    ret->n = 0;
    if (!dir)
        return -errno;
    if (proc_read(root, 1, &first) < 0) /* hidepid */
        return -EACCES;
    int r = pass(root, dir, uid, false, ret);
    if (r < 0 || !has_stepd(ret))
        return r;
    rewinddir(dir);
    return pass(root, dir, uid, true, ret);
}

/* ---- the worker ---- */

struct look {
    struct step_watch *watch;
    uid_t uid;
    struct step_jobs jobs;
};

struct step_watch {
    struct loop_worker *worker;
    struct look *look; /* under way; NULL: none */
    step_watch_fn fn;
    void *user;
};

static int do_look(struct loop *loop, void *work)
{
    struct look *l = work;
    (void)loop;

    return step_jobs_read("/proc", l->uid, &l->jobs);
}

static int on_look(struct loop *loop, void *work, int r)
{
    struct look *l = work;
    struct step_watch *w = l->watch;
    (void)loop;

    w->look = NULL;
    if (r != -ECANCELED)
        w->fn(r, r < 0 ? NULL : &l->jobs, w->user);
    if (r != -ETIMEDOUT) /* otherwise on_late() frees it */
        free(l);
    return 0;
}

static void on_late(struct loop *loop, void *work, int r)
{
    (void)loop;
    (void)r;
    free(work);
}

void step_watch_look(struct step_watch *w)
{
    if (w->look || loop_worker_hangs(w->worker))
        return;
    struct look *l = calloc(1, sizeof *l);
    if (!l)
        return;
    *l = (struct look){.watch = w, .uid = geteuid()};
    const struct loop_work work = {.fn = do_look,
                                   .done = on_look,
                                   .late = on_late,
                                   .work = l,
                                   .deadline_ns = DEADLINE_S * NS_PER_S};
    if (loop_worker_submit(w->worker, &work) < 0)
        free(l);
    else
        w->look = l;
}

static void ignore(int r, const struct step_jobs *jobs, void *user)
{
    (void)r;
    (void)jobs;
    (void)user;
}

int step_watch_new(struct loop *loop, step_watch_fn fn, void *user,
                   struct step_watch **ret, uw_error *err)
{
    auto_(step_watch_free) struct step_watch *w = calloc(1, sizeof *w);

    if (!w)
        return fail(err, -ENOMEM, "out of memory for the steps of jobs");
    w->fn = fn;
    w->user = user;
    int r = loop_worker_new(loop, "steps", &w->worker, err);
    if (r < 0)
        return r;
    *ret = take(w);
    return 0;
}

void step_watch_free(struct step_watch *w)
{
    if (!w)
        return;
    w->fn = ignore; /* the worker calls it for the look under way */
    loop_worker_free(w->worker);
    free(w);
}
