/* The launches that a job's processes count behind its progress page
 * (underwatt/launches.h): place made for them here, read as the page is, in a way that
 * nothing the job does to it can hurt.
 */
#ifndef IO_LAUNCHES_H
#define IO_LAUNCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/progress.h"
#include "underwatt/error.h"
#include "underwatt/launches.h"

/* Make room behind the page. Every byte is written: a process that writes to a hole on a
 * full disk would be killed. -errno of write: the page is unchanged.
 */
int launches_add(struct progress_page *page, uw_error *err);

struct launches_seen {
    uint64_t pid, since_ns;
    uint32_t state; /* enum uw_launches_state, or what the job says */
    uint32_t cupti, result;
    bool alive; /* a process of that pid exists (seen from here) */
    uint64_t kernels[UW_LAUNCHES_STREAMS], graphs[UW_LAUNCHES_GRAPHS];
};
struct launches_read {
    size_t n;
    struct launches_seen slot[UW_LAUNCHES_SLOTS]; /* those with a pid */
};

enum { LAUNCHES_NO_PLACE = 1 }; /* a page without, cut, or overwritten: n is 0 */

/* 0, LAUNCHES_NO_PLACE, or pread's -errno.  One pread(2): may be called from the loop.
 * Each counter is whole; two of them may be some microseconds apart.
 */
int launches_read(const struct progress_page *page, struct launches_read *ret);

#endif
