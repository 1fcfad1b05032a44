/* Which boards Underwatt caps at the moment, by the actuator's journal. */
#ifndef LOCAL_HELD_H
#define LOCAL_HELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "actuator/holder.h"

/* The actuator's folder; state_dir: of a simulated world, NULL: real boards. */
void held_dir(const char *state_dir, char *ret, size_t size);

struct held {
    bool entry;           /* the journal has an entry: an original must be restored */
    bool known;           /* the entry was readable: both limits below are known */
    bool damaged;         /* a damaged entry is kept aside: the original is unknown */
    struct holder holder; /* owner of the board's lock */
    pid_t pid;            /* owner of the cap; 0 unknown */
    bool gone;            /* no process has the lock: the cap was left behind */
    uint32_t original_mw; /* restored at the end */
    uint32_t cap_mw;
    bool clocks; /* the SM clock was locked, too */
};

/* dir: the actuator's folder.  For real boards only root can read the files in it; other
 * users learn which files exist and who has the lock.
 */
void held_look(const char *dir, const char *uuid, struct held *ret);

#endif
