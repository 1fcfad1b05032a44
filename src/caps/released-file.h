/* The boards that are released, as released.json beside the ledger keeps them: a daemon
 * that begins meanwhile leaves them alone.  Pure reading of that file's text.
 */
#ifndef CAPS_RELEASED_FILE_H
#define CAPS_RELEASED_FILE_H

#include <stdint.h>

#include "base/auto.h"
#include "board/boards.h"
#include "io/json.h"
#include "underwatt/error.h"

struct released {
    struct gpu_info *board;       /* all of the node, in the driver's order */
    size_t n;                     /* 1..BOARDS_MAX */
    uint64_t away;                /* bits of those that are released … */
    int64_t until_ns[BOARDS_MAX]; /* … until then (CLOCK_BOOTTIME); -1: until asked for */
};
void released_fini(struct released *r);
static inline void released_fini_p(struct released *p)
{
    released_fini(p);
}

/* 0; -ESTALE: of another boot than this; -EINVAL, -E2BIG, -ERANGE; -ENOMEM.  *ret is
 * written on success alone.
 */
int released_read(const struct json_value *root, const char *boot, struct released *ret,
                  uw_error *err);

#endif
