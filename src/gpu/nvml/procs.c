/* Who runs on a board: three lists (compute, graphics, MPS clients), each in up
 * to three versions of different layout.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "gpu/nvml/dev.h"

enum {
    /* Room for an entry, whatever the version: some 535 drivers write 32 bytes a
     * _v3 entry, and nobody can say what comes next.
     */
    ENTRY_ROOM = 64,
    TRIES = 4, /* the list may have grown since it was counted */
};
#define NO_MEMORY ((nvml_result)0xfffffffe) /* none of NVML's */

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

/* Fetches the list of one version into *ret_raw (to be freed), *ret_n entries. */
static nvml_result fetch(struct gpu_dev *dev, const struct list_call *call,
                         char **ret_raw, unsigned *ret_n)
{
    unsigned n = 0;

    nvml_result r = call->fn(dev->handle, &n, NULL);
    if (r == NVML_OK) { /* nobody runs here */
        *ret_raw = NULL;
        *ret_n = 0;
        return r;
    }
    for (int i = 0; i < TRIES && r == NVML_INSUFFICIENT_SIZE; i++) {
        unsigned room = (n < 4096 ? n : 4096) + 8;
        char *raw = calloc(room, ENTRY_ROOM);
        if (!raw)
            return NO_MEMORY;
        n = room;
        r = call->fn(dev->handle, &n, raw);
        if (r == NVML_OK) {
            *ret_raw = raw;
            *ret_n = n < room ? n : room;
            return r;
        }
        free(raw);
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
            return; /* a process may be on two lists */
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
            continue; /* an older version may do */
        for (unsigned i = 0; r == NVML_OK && i < n; i++) {
            struct nvml_proc_v1 p; /* the same beginning in all versions */
            memcpy(&p, raw + i * call.stride, sizeof p);
            add(f, p.pid, p.used_bytes, compute);
        }
        free(raw);
        return r;
    }
    return r;
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
        (void)one_list(dev, &abi->mps, true, &f); /* few boards have these two */
        (void)one_list(dev, &abi->graphics, false, &f);
        *ret_n = f.n;
    }
    if (res == NO_MEMORY)
        r = fail(err, -ENOMEM, "no memory for the processes of a board");
    else
        r = nvml_fail(abi, res, "nvmlDeviceGetComputeRunningProcesses", err);
    lib_leave(dev->lib);
    return r;
}
