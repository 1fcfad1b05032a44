/* The launches that a job's processes count after its progress page
 * (underwatt/launches.h): makes the space for them, and reads it so that nothing that the
 * job writes there can do harm.
 */
#ifndef IO_LAUNCHES_H
#define IO_LAUNCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/progress.h"
#include "underwatt/error.h"
#include "underwatt/launches.h"

/* Makes the space after the page.  Every byte is written: a process that writes to a hole
 * on a full disk would be killed.  -errno of write: the page is unchanged.
 */
int launches_add(struct progress_page *page, uw_error *err);

struct launches_seen {
    uint64_t pid, since_ns;
    uint32_t state; /* enum uw_launches_state, or any value from the job */
    uint32_t cupti, result;
    bool alive; /* a process of that pid exists (seen from here) */
    uint64_t kernels[UW_LAUNCHES_STREAMS], graphs[UW_LAUNCHES_GRAPHS];
};
struct launches_read {
    size_t n;
    struct launches_seen slot[UW_LAUNCHES_SLOTS]; /* those with a pid */
};

enum { LAUNCHES_NO_PLACE = 1 }; /* the space is missing, cut, or overwritten: n is 0 */

/* 0, LAUNCHES_NO_PLACE, or pread's -errno.  One pread(2): may be called from the loop.
 * Each counter is consistent; two of them may be some microseconds apart.
 */
int launches_read(const struct progress_page *page, struct launches_read *ret);

#endif
