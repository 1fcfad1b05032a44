#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/job-node.h"
#include "cli/take.h"
#include "gpu/device-files.h"
#include "gpu/select.h"

/* The daemon's boards as a list to select from. */
static size_t read_boards(const struct json *doc, struct gpu_info *info,
                          const struct gpu_info **list, struct job_boards *ret)
{
    const struct json_value *gpus = json_get(json_root(doc), "gpus");
    size_t n = 0;

    for (size_t i = 0; i < json_count(gpus) && n < JOB_BOARDS_MAX; i++) {
        const struct json_value *g = json_at(gpus, i);
        struct gpu_info *b = &info[n];
        b->index = (unsigned)take_u64(g, "gpu");
        take_copy(g, "uuid", b->uuid, sizeof b->uuid);
        take_copy(g, "name", b->name, sizeof b->name);
        take_copy(g, "pci_bus_id", b->pci_bus_id, sizeof b->pci_bus_id);
        b->simulated = take_bool(g, "simulated");
        uint64_t minor = 0;
        b->has_minor = json_as_u64(json_get(g, "minor"), &minor) && minor <= UINT32_MAX;
        b->minor = (uint32_t)minor;
        ret->simulated |= b->simulated;
        list[n++] = b;
    }
    return n;
}

int job_boards(const struct json *gpus, const struct job_run *j, struct job_boards *ret,
               uw_error *err)
{
    const struct gpu_visible *visible = &j->env->visible;
    const struct gpu_info *list[JOB_BOARDS_MAX];
    auto_(mem_free) struct gpu_info *info = calloc(JOB_BOARDS_MAX, sizeof *info);
    struct selection sel = {0};
    uw_error why = {""};

    *ret = (struct job_boards){0};
    if (!info)
        return fail(err, -ENOMEM, "out of memory");
    size_t n = read_boards(gpus, info, list, ret);
    int r = 0;
    if (j->gpus && (r = select_list(j->gpus, list, n, &sel, err)) < 0)
        return fail_in(err, r, "--gpus");
    if (!j->gpus && visible->name) {
        /* Its indices count the boards of this process, not those of the daemon. */
        if (select_is_index(visible->list))
            n = device_files_filter(list, n, j->env->sim_state);
        r = visible->job->select(visible->list, visible->order, list, n, &sel, &why);
    }
    if (r < 0)
        return r;
    /* The daemon does not tell the parts of a board in MIG mode. */
    if (!j->gpus && visible->name && sel.n == 0 && !select_is_part(visible->list))
        return fail(err, -EINVAL, "%s='%.60s' names no board of this machine",
                    visible->name, visible->list);
    if (r == SELECT_UNSURE)
        (void)snprintf(ret->note, sizeof ret->note, "%s", why.text);
    for (size_t i = 0; i < sel.n; i++)
        (void)snprintf(ret->uuid[i], sizeof ret->uuid[i], "%s", list[sel.at[i]]->uuid);
    ret->n = sel.n;
    return 0;
}
