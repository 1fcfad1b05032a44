/* The released boards as stored in released.json beside the ledger: a daemon that starts
 * meanwhile leaves them alone.  Parses the file's text; pure.
 */
#ifndef CAPS_RELEASED_FILE_H
#define CAPS_RELEASED_FILE_H

#include <stdint.h>

#include "base/auto.h"
#include "board/boards.h"
#include "io/json.h"
#include "underwatt/error.h"

struct released {
    struct gpu_info *board; /* all of the node, in the driver's order */
    size_t n;               /* 1..BOARDS_MAX */
    uint64_t away;          /* bits of the released boards */
    int64_t
        until_ns[BOARDS_MAX]; /* end of the release (CLOCK_BOOTTIME); -1: on request */
    int64_t since_ns[BOARDS_MAX]; /* its begin; 0: unknown, in older files */
};
void released_fini(struct released *r);
static inline void released_fini_p(struct released *p)
{
    released_fini(p);
}

/* -ESTALE: written in another boot; -EINVAL, -E2BIG, -ERANGE; -ENOMEM.  *ret changes on
 * success only.
 */
int released_read(const struct json_value *root, const char *boot, struct released *ret,
                  uw_error *err);

#endif
