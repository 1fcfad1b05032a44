/* Processes on a board: three lists (compute, graphics, MPS clients), each in up to three
 * versions of different layout.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "gpu/nvml/dev.h"

enum {
    /* Bytes to allocate per entry in any version: some 535 drivers write 32 bytes per _v3
     * entry, and later ones may write more.
     */
    ENTRY_ROOM = 64,
    TRIES = 4, /* the list may grow between two calls */
    ROOM_FIRST = 16,
    ROOM_MORE = 8,
    ROOM_MOST = 4096,
    OTHERS_EVERY = 8, /* polls of the compute list per poll of the other two */
};
#define NO_MEMORY ((nvml_result)0xfffffffe) /* not a result of NVML */

/* One version of one list. */
struct list_call {
    nvml_result (*fn)(nvml_device, unsigned *, void *);
    size_t stride;
};

static struct list_call choose(const struct lib *lib, const struct nvml_proc_calls *calls,
                               unsigned skip)
{
    struct list_call order[3] = {
        {calls->v3, sizeof(struct nvml_proc_v2)},
        {calls->v2, sizeof(struct nvml_proc_v2)},
        {calls->v1, sizeof(struct nvml_proc_v1)},
    };

    if (lib->prefer_v2 && calls->v2)
        order[0].fn = NULL;
    for (size_t i = 0; i < n_elements(order); i++) {
        if (order[i].fn && skip-- == 0)
            return order[i];
    }
    return (struct list_call){0};
}

/* Fetches one version of a list: *ret_raw (freed by the caller) with *ret_n entries.
 * Most lists fit into the first allocation, so that one call is enough.
 */
static nvml_result fetch(struct gpu_dev *dev, const struct list_call *call,
                         char **ret_raw, unsigned *ret_n)
{
    nvml_result r = NVML_INSUFFICIENT_SIZE;
    unsigned n = ROOM_FIRST - ROOM_MORE;

    for (int i = 0; i < TRIES && r == NVML_INSUFFICIENT_SIZE; i++) {
        unsigned room = (n < ROOM_MOST ? n : ROOM_MOST) + ROOM_MORE;
        char *raw = calloc(room, ENTRY_ROOM);
        if (!raw)
            return NO_MEMORY;
        n = room;
        dev_count(dev);
        r = call->fn(dev->handle, &n, raw);
        if (r == NVML_OK) {
            *ret_raw = raw;
            *ret_n = n < room ? n : room;
            return r;
        }
        free(raw);
        if (n <= room) /* the driver did not return the number: double the room */
            n = 2 * room;
    }
    return r;
}

struct found {
    struct gpu_proc *proc;
    size_t n;
};

static void add(struct found *f, uint32_t pid, uint64_t bytes, bool compute)
{
    if (pid == 0)
        return;
    for (size_t i = 0; i < f->n; i++) {
        if (f->proc[i].pid == (pid_t)pid)
            return; /* already found on another list */
    }
    if (f->n < GPU_PROCS_MAX)
        f->proc[f->n++] = (struct gpu_proc){
            .pid = (pid_t)pid,
            .used_bytes = bytes == UINT64_MAX ? 0 : bytes, /* all ones: unknown */
            .compute = compute,
        };
}

static nvml_result one_list(struct gpu_dev *dev, const struct nvml_proc_calls *calls,
                            bool compute, struct found *f)
{
    nvml_result r = NVML_FUNCTION_NOT_FOUND;

    for (unsigned skip = 0; skip < 3; skip++) {
        struct list_call call = choose(dev->lib, calls, skip);
        char *raw = NULL;
        unsigned n = 0;
        if (!call.fn)
            return r;
        r = fetch(dev, &call, &raw, &n);
        if (nvml_is_unable(r))
            continue; /* try an older version */
        for (unsigned i = 0; r == NVML_OK && i < n; i++) {
            struct nvml_proc_v1 p; /* all versions begin with these members */
            memcpy(&p, raw + i * call.stride, sizeof p);
            add(f, p.pid, p.used_bytes, compute);
        }
        free(raw);
        return r;
    }
    return r;
}

/* Hash of the set of processes, independent of their order; never 0. */
static uint64_t sum_of(const struct found *f)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < f->n; i++) {
        uint64_t x = (uint64_t)f->proc[i].pid * 0x9e3779b97f4a7c15u;
        sum += x ^ x >> 29;
    }
    return sum | 1;
}

/* Adds MPS clients and graphics processes.  As these are rare, their lists are read only
 * if the compute list has changed or every OTHERS_EVERY polls, and cached in between.
 */
static nvml_result others(struct gpu_dev *dev, struct found *f)
{
    const struct nvml_abi *abi = &dev->lib->abi;
    size_t first = f->n;
    uint64_t sum = sum_of(f);

    if (dev->procs_sum == sum && ++dev->procs_polls % OTHERS_EVERY != 0 &&
        dev->n_others <= NVML_OTHERS_MAX) {
        for (size_t i = 0; i < dev->n_others; i++)
            add(f, (uint32_t)dev->others[i].pid, dev->others[i].used_bytes,
                dev->others[i].compute);
        return NVML_OK;
    }
    dev->procs_sum = 0; /* the cache is invalid until both lists were read */
    if (one_list(dev, &abi->mps, true, f) == NO_MEMORY ||
        one_list(dev, &abi->graphics, false, f) == NO_MEMORY)
        return NO_MEMORY;
    dev->procs_sum = sum;
    dev->n_others = f->n - first;
    if (dev->n_others <= NVML_OTHERS_MAX)
        memcpy(dev->others, f->proc + first, dev->n_others * sizeof *dev->others);
    return NVML_OK;
}

int dev_procs(struct gpu_dev *dev, struct gpu_proc *ret, size_t *ret_n, uw_error *err)
{
    const struct nvml_abi *abi = &dev->lib->abi;
    struct found f = {.proc = ret};

    int r = dev_usable(dev, err);
    if (r < 0)
        return r;
    lib_enter(dev->lib);
    nvml_result res = one_list(dev, &abi->compute, true, &f);
    if (res == NVML_OK) {
        res = others(dev, &f);
        *ret_n = f.n;
    }
    if (res == NO_MEMORY)
        r = fail(err, -ENOMEM, "no memory for the processes of a board");
    else
        r = nvml_fail(abi, res, "nvmlDeviceGetComputeRunningProcesses", err);
    lib_leave(dev->lib);
    return r;
}

/* ---- use ---- */

/* Converts samples that are newer than those of the last call; the driver keeps the
 * samples of about one second.
 */
static size_t gather(struct gpu_dev *dev, const struct nvml_proc_util *raw, unsigned n,
                     struct gpu_use *ret)
{
    uint64_t newest = dev->use_seen_us;
    size_t found = 0;

    for (unsigned i = 0; i < n; i++) {
        if (raw[i].pid == 0 || raw[i].at_us <= dev->use_seen_us || raw[i].sm > 100)
            continue;
        newest = raw[i].at_us > newest ? raw[i].at_us : newest;
        if (raw[i].sm > 0 && found < GPU_PROCS_MAX)
            ret[found++] =
                (struct gpu_use){.pid = (pid_t)raw[i].pid, .sm_percent = raw[i].sm};
    }
    dev->use_seen_us = newest;
    return found;
}

int dev_use(struct gpu_dev *dev, struct gpu_use *ret, size_t *ret_n, uw_error *err)
{
    const struct nvml_abi *abi = &dev->lib->abi;
    unsigned n = GPU_PROCS_MAX;

    int r = dev_usable(dev, err);
    if (r < 0)
        return r;
    if (!abi->proc_use)
        return fail(err, -ENOTSUP, "this driver does not report the use of processes");
    auto_(mem_free) struct nvml_proc_util *raw = calloc(n, sizeof *raw);
    if (!raw)
        return fail(err, -ENOMEM, "no memory for the use of a board");
    lib_enter(dev->lib);
    dev_count(dev);
    nvml_result res = abi->proc_use(dev->handle, raw, &n, dev->use_seen_us);
    if (res == NVML_OK)
        *ret_n = gather(dev, raw, n < GPU_PROCS_MAX ? n : GPU_PROCS_MAX, ret);
    else if (res == NVML_NOT_FOUND) /* no process used the board */
        *ret_n = 0;
    else
        r = nvml_fail(abi, res, "nvmlDeviceGetProcessUtilization", err);
    lib_leave(dev->lib);
    return r;
}
