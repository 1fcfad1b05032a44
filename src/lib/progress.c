/* The slot of this process in a progress page (underwatt/progress.h). */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "io/progress.h"
#include "lib/inside.h"

/* Marks a slot that is being taken: with this bit the number is no pid, so readers see
 * no live process before the slot has its owner's values.
 */
#define TAKING (UINT64_C(1) << 63)

enum { NO_RANK = -1 };

struct uw_progress {
    int fd;
    struct uw_progress_page *page;
    int rank; /* LOCAL_RANK, or NO_RANK */
    struct uw_progress_slot *slot;
    pid_t pid; /* owner of the slot */
    /* For a program in a Slurm job: the job that it has begun for its steps. */
    uw_ctx *ctx;
    uw_job *job;
};

/* ---- slots ---- */

static uint64_t pid_of(const struct uw_progress_slot *slot)
{
    return __atomic_load_n(&slot->pid, __ATOMIC_ACQUIRE);
}

/* Whether no process uses a slot with that pid: there is none, or it is dead. */
static bool is_dead(uint64_t pid)
{
    return pid == 0 || !progress_alive(pid & ~TAKING);
}

/* Takes a slot whose pid was `was`; false: another process has taken it. */
static bool take_slot(struct uw_progress_slot *slot, uint64_t was, uint64_t pid)
{
    if (!__atomic_compare_exchange_n(&slot->pid, &was, pid | TAKING, 0, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return false;
    __atomic_store_n(&slot->steps, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->last_step_ns, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->phase, (uint32_t)UW_PHASE_UNKNOWN, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->pid, pid, __ATOMIC_RELEASE);
    return true;
}

/* Takes the first free slot for pid; dead: or one whose process is dead. */
static struct uw_progress_slot *first_slot(struct uw_progress_page *page, uint64_t pid,
                                           bool dead)
{
    for (size_t i = 0; i < UW_PROGRESS_SLOTS; i++) {
        struct uw_progress_slot *slot = &page->slot[i];
        uint64_t was = pid_of(slot);
        if ((was == 0 || (dead && is_dead(was))) && take_slot(slot, was, pid))
            return slot;
    }
    return NULL;
}

struct uw_progress_slot *lib_slot(struct uw_progress_page *page, int rank, pid_t process)
{
    uint64_t pid = (uint64_t)process;

    for (size_t i = 0; i < UW_PROGRESS_SLOTS; i++)
        if (pid_of(&page->slot[i]) == pid)
            return &page->slot[i];
    if (rank >= 0 && rank < UW_PROGRESS_SLOTS) {
        struct uw_progress_slot *slot = &page->slot[rank];
        uint64_t was = pid_of(slot);
        if (is_dead(was) && take_slot(slot, was, pid))
            return slot;
    }
    struct uw_progress_slot *slot = first_slot(page, pid, false);
    return slot ? slot : first_slot(page, pid, true);
}

bool lib_slot_is_of(const struct uw_progress_slot *slot, pid_t process)
{
    return pid_of(slot) == (uint64_t)process;
}

void lib_slot_step(struct uw_progress_slot *slot)
{
    struct timespec t;

    if (clock_gettime(CLOCK_BOOTTIME, &t) < 0)
        return;
    __atomic_store_n(&slot->last_step_ns,
                     (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec,
                     __ATOMIC_RELAXED);
    __atomic_store_n(&slot->steps, slot->steps + 1, __ATOMIC_RELEASE);
}

/* ---- pages ---- */

/* LOCAL_RANK, set by torchrun and others. */
static int local_rank(void)
{
    const char *text = secure_getenv("LOCAL_RANK");
    uint64_t rank = 0;

    if (!text || parse_u64(text, &rank, NULL) < 0 || rank >= UW_PROGRESS_SLOTS)
        return NO_RANK;
    return (int)rank;
}

static int check_page(const struct uw_progress_page *page, const char *name,
                      uw_error *err)
{
    if (memcmp(page->magic, UW_PROGRESS_MAGIC, sizeof page->magic) != 0 ||
        page->version != UW_PROGRESS_VERSION || page->slots != UW_PROGRESS_SLOTS)
        return fail(err, -EINVAL, "%s: not a progress page of version %d", name,
                    UW_PROGRESS_VERSION);
    return 0;
}

/* Maps the page of p->fd. */
static int map_page(struct uw_progress *p, const char *name, uw_error *err)
{
    struct stat st;

    if (fstat(p->fd, &st) < 0)
        return fail(err, -errno, "%s: %s", name, strerror(errno));
    if (!S_ISREG(st.st_mode) || st.st_size < UW_PROGRESS_BYTES)
        return fail(err, -EINVAL, "%s: not a progress page: %lld bytes, %d at least",
                    name, (long long)st.st_size, UW_PROGRESS_BYTES);
    void *at =
        mmap(NULL, UW_PROGRESS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);
    if (at == MAP_FAILED)
        return fail(err, -errno, "%s: %s", name, strerror(errno));
    p->page = at;
    return check_page(p->page, name, err);
}

static int open_job(struct uw_progress *p, uw_job *job, uw_error *err)
{
    int fd = lib_job_page(job, err);

    if (fd < 0)
        return fd;
    p->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (p->fd < 0)
        return fail(err, -errno, "progress page: %s", strerror(errno));
    return map_page(p, "progress page", err);
}

static int open_page(struct uw_progress *p, uw_error *err)
{
    const char *path = secure_getenv("UNDERWATT_PROGRESS");

    if (!path || !*path) {
        int r = lib_slurm_begin(&p->ctx, &p->job, err);
        if (r == LIB_ABSENT)
            return fail(err, -ENOENT,
                        "UNDERWATT_PROGRESS is not set: start the program with underwatt "
                        "run, or begin a job");
        return r < 0 ? r : open_job(p, p->job, err);
    }
    p->fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (p->fd < 0)
        return fail(err, -errno, "UNDERWATT_PROGRESS: %s: %s", path, strerror(errno));
    return map_page(p, path, err);
}

static void progress_free(struct uw_progress *p)
{
    if (!p)
        return;
    if (p->page)
        (void)munmap(p->page, UW_PROGRESS_BYTES);
    if (p->fd >= 0)
        (void)close(p->fd);
    uw_job_free(p->job);
    uw_ctx_free(p->ctx);
    free(p);
}
DEFINE_AUTO(struct uw_progress *, progress_free);

/* ---- public ---- */

int uw_progress_attach(uw_job *job, uw_progress **ret, uw_error *err)
{
    if (!ret)
        return fail(err, -EINVAL, "ret is NULL");
    auto_(progress_free) struct uw_progress *p = calloc(1, sizeof *p);
    if (!p)
        return fail(err, -ENOMEM, "out of memory");
    p->fd = -1;
    p->rank = local_rank();
    int r = job ? open_job(p, job, err) : open_page(p, err);
    if (r < 0)
        return r;
    if (!uw_progress_slot_of(p))
        return fail(err, -ENOSPC, "the progress page has no free slot: %d processes",
                    UW_PROGRESS_SLOTS);
    *ret = take(p);
    return 0;
}

struct uw_progress_slot *uw_progress_slot_of(uw_progress *p)
{
    if (!p)
        return NULL;
    pid_t pid = getpid();
    if (!p->slot || !lib_slot_is_of(p->slot, pid)) {
        p->slot = lib_slot(p->page, p->rank, pid);
        p->pid = pid;
    }
    return p->slot;
}

int uw_progress_renew(uw_progress *p, uw_error *err)
{
    return !p                                  ? fail(err, -EINVAL, "progress is NULL")
           : p->job && p->ctx->pid == getpid() ? uw_job_renew(p->job, err)
                                               : 0;
}

int uw_progress_fd(const uw_progress *p)
{
    return p ? p->fd : -1;
}

int uw_progress_phase(uw_progress *p, enum uw_phase phase, uw_error *err)
{
    struct uw_progress_slot *slot = uw_progress_slot_of(p);

    if (!slot)
        return fail(err, p ? -ENOSPC : -EINVAL,
                    p ? "the progress page has no free slot" : "progress is NULL");
    if ((int)phase < UW_PHASE_UNKNOWN || (int)phase > UW_PHASE_STARTUP)
        return fail(err, -EINVAL, "phase: %d is none (0 to %d)", (int)phase,
                    UW_PHASE_STARTUP);
    if (slot->phase == (uint32_t)phase)
        return 0;
    __atomic_store_n(&slot->phase, (uint32_t)phase, __ATOMIC_RELEASE);
    if (futimens(p->fd, NULL) < 0) /* otherwise noticed later: docs/progress.md */
        return fail(err, -errno, "progress page: %s", strerror(errno));
    return 0;
}

void uw_progress_step(uw_progress *p)
{
    struct uw_progress_slot *slot = uw_progress_slot_of(p);

    if (slot)
        lib_slot_step(slot);
}

void uw_progress_detach(uw_progress *p)
{
    if (p && p->slot && p->pid == getpid()) {
        uint64_t own = (uint64_t)p->pid;
        (void)__atomic_compare_exchange_n(&p->slot->pid, &own, 0, 0, __ATOMIC_ACQ_REL,
                                          __ATOMIC_RELAXED);
    }
    progress_free(p);
}
