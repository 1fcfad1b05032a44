#include "cuda/count.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cuda/cupti.h"

_Static_assert(sizeof(struct uw_launches_slot) == 256, "a slot's layout");
_Static_assert(sizeof(struct uw_launches) == UW_LAUNCHES_END - UW_LAUNCHES_AT,
               "the layout behind the page");

/* In a mapping of its own, which the kernel zeroes in any forked child:
 * there slot is NULL.
 */
struct count {
    struct uw_launches_slot *slot;
};

/* ---- the slot ---- */

static uint64_t now_ns(void)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int is_dead(uint64_t pid)
{
    return pid == 0 || (pid <= INT32_MAX && kill((pid_t)pid, 0) < 0 && errno == ESRCH);
}

static int take(struct uw_launches_slot *slot, uint64_t was, uint64_t pid)
{
    return __atomic_compare_exchange_n(&slot->pid, &was, pid, 0, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

/* The process's own slot (from before an exec), else a free one, else a dead process's.
 */
static struct uw_launches_slot *take_slot(struct uw_launches *all)
{
    uint64_t pid = (uint64_t)getpid();

    for (unsigned i = 0; i < UW_LAUNCHES_SLOTS; i++)
        if (__atomic_load_n(&all->slot[i].pid, __ATOMIC_RELAXED) == pid)
            return &all->slot[i];
    for (unsigned i = 0; i < UW_LAUNCHES_SLOTS; i++)
        if (take(&all->slot[i], 0, pid))
            return &all->slot[i];
    for (unsigned i = 0; i < UW_LAUNCHES_SLOTS; i++) {
        uint64_t was = __atomic_load_n(&all->slot[i].pid, __ATOMIC_RELAXED);
        if (is_dead(was) && take(&all->slot[i], was, pid))
            return &all->slot[i];
    }
    return NULL;
}

/* Whether the file is long enough and fully allocated: a write to a hole would kill the
 * process if the disk is full.
 */
static int is_usable(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= UW_LAUNCHES_END &&
           st.st_blocks * 512 >= UW_LAUNCHES_END;
}

static int map_page(const char *path, char **ret)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

    if (fd < 0)
        return -errno;
    int r = -ENODEV;
    if (is_usable(fd)) {
        /* from 0: the processor's pages may be larger than the offset of the slots */
        void *at = mmap(NULL, UW_LAUNCHES_END, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        r = at == MAP_FAILED ? -errno : 0;
        *ret = at;
    }
    (void)close(fd);
    return r;
}

int count_open(const char *path, struct count **ret)
{
    char *page = MAP_FAILED;
    int r = map_page(path, &page);

    if (page == MAP_FAILED)
        return r;
    struct uw_launches *all = (struct uw_launches *)(page + UW_LAUNCHES_AT);
    struct count *c = MAP_FAILED;
    if (memcmp(all->magic, UW_LAUNCHES_MAGIC, sizeof all->magic) != 0 ||
        all->version != UW_LAUNCHES_VERSION || all->slots != UW_LAUNCHES_SLOTS) {
        r = -ENODEV;
        goto failed;
    }
    c = mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (c == MAP_FAILED || madvise(c, sizeof *c, MADV_WIPEONFORK) < 0) {
        r = -errno;
        goto failed;
    }
    struct uw_launches_slot *slot = take_slot(all);
    if (!slot) {
        r = -ENOSPC;
        goto failed;
    }
    __atomic_store_n(&slot->since_ns, now_ns(), __ATOMIC_RELAXED);
    c->slot = slot;
    count_state(c, UW_LAUNCHES_BEGUN, 0, 0);
    *ret = c;
    return 0;
failed:
    if (c != MAP_FAILED)
        (void)munmap(c, sizeof *c);
    (void)munmap(page, UW_LAUNCHES_END);
    return r;
}

void count_state(struct count *c, enum uw_launches_state state, uint32_t cupti,
                 uint32_t result)
{
    struct uw_launches_slot *slot = c->slot;

    if (!slot)
        return;
    __atomic_store_n(&slot->cupti, cupti, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->result, result, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->state, (uint32_t)state, __ATOMIC_RELEASE);
}

/* ---- the callback ---- */

/* Fibonacci hashing: the upper bits of the product. */
static unsigned fold(const struct cupti_call *call, const void *stream, unsigned bits)
{
    uint64_t key = (uint64_t)(uintptr_t)stream ^ ((uint64_t)call->context_uid << 48);

    return (unsigned)((key * 0x9E3779B97F4A7C15u) >> (64 - bits));
}

static const void *stream_of(uint32_t id, const void *params)
{
    const struct cupti_launch_config *config;

    switch (id) {
    case CUPTI_LAUNCH_KERNEL:
    case CUPTI_LAUNCH_KERNEL_PTSZ:
    case CUPTI_LAUNCH_COOPERATIVE:
    case CUPTI_LAUNCH_COOPERATIVE_PTSZ:
        return ((const struct cupti_kernel_params *)params)->stream;
    case CUPTI_GRAPH_LAUNCH:
    case CUPTI_GRAPH_LAUNCH_PTSZ:
        return ((const struct cupti_graph_params *)params)->stream;
    case CUPTI_LAUNCH_KERNEL_EX:
    case CUPTI_LAUNCH_KERNEL_EX_PTSZ:
        config = ((const struct cupti_kernel_ex_params *)params)->config;
        return config ? config->stream : NULL;
    case CUPTI_LAUNCH_GRID_ASYNC:
        return ((const struct cupti_grid_async_params *)params)->stream;
    default:
        return NULL;
    }
}

void count_on_call(void *user, int32_t domain, uint32_t id, const void *data)
{
    struct uw_launches_slot *slot = ((struct count *)user)->slot;
    const struct cupti_call *call = data;
    const void *stream = NULL;

    if (!slot || domain != CUPTI_DOMAIN_DRIVER_API || call->site != CUPTI_SITE_EXIT ||
        (call->result && *call->result != 0))
        return;
    if (call->params)
        stream = stream_of(id, call->params);
    uint64_t *counter = id == CUPTI_GRAPH_LAUNCH || id == CUPTI_GRAPH_LAUNCH_PTSZ
                            ? &slot->graphs[fold(call, stream, 3)]
                            : &slot->kernels[fold(call, stream, 4)];
    (void)__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}
