#include "sim/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

struct report {
    struct uw_progress_page *page;
    struct uw_progress_slot *slot;
    bool mapped;
    int fd; /* of the file; -1: a page in memory */
};

static int take_slot(struct uw_progress_page *page, uint64_t pid, bool mapped,
                     struct report **ret, uw_error *err)
{
    if (memcmp(page->magic, UW_PROGRESS_MAGIC, sizeof page->magic) != 0 ||
        page->version != UW_PROGRESS_VERSION || page->slots > UW_PROGRESS_SLOTS)
        return fail(err, -EINVAL, "not a progress page of version %d",
                    UW_PROGRESS_VERSION);
    auto_(mem_free) struct report *r = calloc(1, sizeof *r);
    if (!r)
        return fail(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < page->slots && !r->slot; i++) {
        uint64_t none = 0;
        if (__atomic_compare_exchange_n(&page->slot[i].pid, &none, pid, false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            r->slot = &page->slot[i];
    }
    if (!r->slot)
        return fail(err, -EUSERS, "all %u slots of the progress page are taken",
                    page->slots);
    r->page = page;
    r->mapped = mapped;
    r->fd = -1;
    *ret = take(r);
    return 0;
}

int report_open_page(struct uw_progress_page *page, uint64_t pid, struct report **ret,
                     uw_error *err)
{
    return take_slot(page, pid, false, ret, err);
}

int report_open(const char *path, uint64_t pid, struct report **ret, uw_error *err)
{
    struct stat st;

    auto_(fd_close) int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st))
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    if (st.st_size < UW_PROGRESS_BYTES)
        return fail(err, -EINVAL, "%s: %lld bytes are too few for a progress page", path,
                    (long long)st.st_size);
    void *p = mmap(NULL, UW_PROGRESS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    int r = take_slot(p, pid, true, ret, err);
    if (r) {
        (void)munmap(p, UW_PROGRESS_BYTES);
        return fail_in(err, r, "%s", path);
    }
    (*ret)->fd = fd_take(&fd);
    return 0;
}

void report_write(struct report *report, uint64_t steps, uint64_t last_step_ns,
                  enum uw_phase phase)
{
    struct uw_progress_slot *s = report->slot;
    bool other = s->phase != (uint32_t)phase;

    __atomic_store_n(&s->phase, (uint32_t)phase, __ATOMIC_RELAXED);
    __atomic_store_n(&s->last_step_ns, last_step_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&s->steps, steps, __ATOMIC_RELEASE);
    if (other && report->fd >= 0)
        (void)futimens(report->fd, NULL); /* notifies the daemon: docs/progress.md */
}

void report_close(struct report *report)
{
    if (!report)
        return;
    if (report->mapped)
        (void)munmap(report->page, UW_PROGRESS_BYTES);
    if (report->fd >= 0)
        (void)close(report->fd);
    free(report);
}
