#include "board/selection.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/error.h"
#include "gpu/select.h"

int selection_named(struct boards *set, const char *gpus,
                    const struct gpu_visible *visible, bool *use, uw_error *err)
{
    const struct gpu_info *info[BOARDS_MAX];
    struct selection chosen = {0};
    size_t n = boards_count(set);
    int r;

    for (size_t i = 0; i < n; i++) {
        info[i] = board_view(boards_at(set, i))->info;
        use[i] = false;
    }
    if (!gpus && (!visible || !visible->name))
        return SELECTION_E_OPEN;
    if (gpus) {
        r = select_list(gpus, info, n, &chosen, err);
        if (r < 0)
            return fail_in(err, r, "--gpus");
    } else {
        r = visible->job->select(visible->list, visible->order, info, n, &chosen, err);
        if (r < 0)
            return fail_in(err, r, "%s", visible->name);
        if (chosen.n == 0)
            return fail(err, -EINVAL, "%s='%.60s' names no board of this machine",
                        visible->name, visible->list);
    }
    for (size_t i = 0; i < chosen.n; i++)
        use[chosen.at[i]] = true;
    return r == SELECT_UNSURE ? SELECTION_E_UNSURE : 0;
}

pid_t selection_foreign(const struct gpu_proc *procs, size_t n, uid_t uid)
{
    for (size_t i = 0; i < n; i++) {
        struct stat st;
        char path[64];

        (void)snprintf(path, sizeof path, "/proc/%d", (int)procs[i].pid);
        if (stat(path, &st) == 0 && st.st_uid != uid)
            return procs[i].pid;
    }
    return 0;
}
