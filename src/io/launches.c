#include "io/launches.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

_Static_assert(sizeof(struct uw_launches) == UW_LAUNCHES_END - UW_LAUNCHES_AT,
               "the layout behind the page");

int launches_add(struct progress_page *page, uw_error *err)
{
    struct uw_launches all = {.version = UW_LAUNCHES_VERSION, .slots = UW_LAUNCHES_SLOTS};
    int fd = progress_page_fd(page);

    memcpy(all.magic, UW_LAUNCHES_MAGIC, sizeof all.magic);
    ssize_t n = pwrite(fd, &all, sizeof all, UW_LAUNCHES_AT);
    if (n == (ssize_t)sizeof all)
        return 0;
    int r = n < 0 ? -errno : -ENOSPC;
    if (ftruncate(fd, UW_PROGRESS_BYTES) < 0)
        r = -errno;
    return fail(err, r, "%s: no place to count launches: %s", progress_page_path(page),
                strerror(-r));
}

int launches_read(const struct progress_page *page, struct launches_read *ret)
{
    struct uw_launches all;
    ssize_t n;

    ret->n = 0;
    do {
        n = pread(progress_page_fd(page), &all, sizeof all, UW_LAUNCHES_AT);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    if (n < (ssize_t)sizeof all ||
        memcmp(all.magic, UW_LAUNCHES_MAGIC, sizeof all.magic) != 0 ||
        all.version != UW_LAUNCHES_VERSION || all.slots != UW_LAUNCHES_SLOTS)
        return LAUNCHES_NO_PLACE;
    for (size_t i = 0; i < UW_LAUNCHES_SLOTS; i++) {
        const struct uw_launches_slot *slot = &all.slot[i];
        if (slot->pid == 0)
            continue;
        struct launches_seen *seen = &ret->slot[ret->n++];
        *seen = (struct launches_seen){
            .pid = slot->pid,
            .since_ns = slot->since_ns,
            .state = slot->state,
            .cupti = slot->cupti,
            .result = slot->result,
            .alive = progress_alive(slot->pid),
        };
        memcpy(seen->kernels, slot->kernels, sizeof seen->kernels);
        memcpy(seen->graphs, slot->graphs, sizeof seen->graphs);
    }
    return 0;
}
