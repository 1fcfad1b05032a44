#include "virtual/launching.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"
#include "underwatt/launches.h"

#define VALIDATES 0.75 /* of a kernel's time in training */

struct launching {
    char *page; /* mapped whole */
    struct uw_launches_slot *slot;
    double each, clump; /* launches of a step, at once on average */
    double next;        /* count at which the next clump is written */
    struct rng rng;
    double beside; /* launches that belong to no step */
    double step_s;
    struct sim_job_state last;
    uint64_t told_ns, phase_ns; /* time of the last call; begin of the phase */
};

static int parse_how(const char *how, struct launching *l, uw_error *err)
{
    char number[32];
    size_t n = strcspn(how, ":");

    if (n == 0 || n >= sizeof number)
        return fail(err, -EINVAL, "'%.40s' is not LAUNCHES[:CLUMP]", how);
    memcpy(number, how, n);
    number[n] = '\0';
    l->clump = 1;
    rng_init(&l->rng, 1);
    int r = parse_double(number, &l->each, err);
    if (r >= 0 && how[n])
        r = parse_double(how + n + 1, &l->clump, err);
    if (r >= 0 && (l->each < 1 || l->each > 1e9 || l->clump < 1 || l->clump > 1e6))
        r = fail(err, -ERANGE, "'%.40s' is outside 1..1000000000:1..1000000", how);
    return r;
}

int launching_open(const char *path, const char *how, uint64_t pid,
                   struct launching **ret, uw_error *err)
{
    auto_(launching_close) struct launching *l = calloc(1, sizeof *l);
    struct stat st;

    if (!l)
        return fail(err, -ENOMEM, "out of memory");
    int r = parse_how(how, l, err);
    if (r < 0)
        return r;
    auto_(fd_close) int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st))
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    if (st.st_size < UW_LAUNCHES_END)
        return fail(err, -EINVAL, "%s: the page has no room for launches", path);
    void *p = mmap(NULL, UW_LAUNCHES_END, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    l->page = p;
    struct uw_launches *all = (void *)(l->page + UW_LAUNCHES_AT);
    l->slot = &all->slot[0];
    l->slot->pid = pid;
    l->slot->since_ns = 1;
    l->slot->state = UW_LAUNCHES_ALONE;
    *ret = take(l);
    return 0;
}

/* Fraction done of the current step. */
static double part_of(const struct launching *l, uint64_t now_ns)
{
    uint64_t from = l->last.last_step_ns;

    if (l->phase_ns > from)
        from = l->phase_ns;
    return l->step_s > 0 ? fmin(1, s_between(from, now_ns) / l->step_s) : 0;
}

void launching_tell(struct launching *l, const struct sim_job_state *now, uint64_t now_ns)
{
    bool same = now->phase == l->last.phase;

    if (same && now->steps > l->last.steps && l->last.last_step_ns > l->phase_ns)
        l->step_s = s_between(l->last.last_step_ns, now->last_step_ns) /
                    (double)(now->steps - l->last.steps);
    if (same && now->phase == UW_PHASE_VALIDATE && l->step_s > 0)
        l->beside += s_between(l->told_ns, now_ns) / l->step_s / VALIDATES * l->each;
    if (!same)
        l->phase_ns = now_ns;
    l->last = *now;
    l->told_ns = now_ns;
    double count = l->beside + l->each * (double)now->steps;
    if (now->phase == UW_PHASE_TRAIN)
        count += l->each * part_of(l, now_ns);
    if (count < l->next)
        return;
    l->next = count + l->clump * 2 * rng_uniform(&l->rng);
    uint64_t whole = (uint64_t)count;
    if (whole > l->slot->kernels[0])
        __atomic_store_n(&l->slot->kernels[0], whole, __ATOMIC_RELAXED);
}

void launching_close(struct launching *l)
{
    if (!l)
        return;
    if (l->page)
        (void)munmap(l->page, UW_LAUNCHES_END);
    free(l);
}
