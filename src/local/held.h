/* Which boards an Underwatt caps at the moment, as the actuator's journal says. */
#ifndef LOCAL_HELD_H
#define LOCAL_HELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "actuator/holder.h"

/* Where the actuator keeps its files; state_dir: of a simulated world, NULL: real boards.
 */
void held_dir(const char *state_dir, char *ret, size_t size);

struct held {
    bool entry;           /* there is an entry: an original is owed */
    bool known;           /* … that we may read: the two limits below */
    bool damaged;         /* a damaged entry is kept aside: nobody knows the original */
    struct holder holder; /* who has the board's lock */
    pid_t pid;            /* whose cap it is; 0 unknown … */
    bool gone;            /* … or nobody's any more: it was left behind */
    uint32_t original_mw; /* comes back at the end */
    uint32_t cap_mw;
    bool clocks; /* the SM clock was locked, too */
};

/* dir: the actuator's.  Ordinary users may not read what is in that of real boards: then
 * no more is known than which files there are, and who has the lock.
 */
void held_look(const char *dir, const char *uuid, struct held *ret);

#endif
