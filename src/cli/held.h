/* Which boards an Underwatt caps at the moment, as the actuator's journal says. */
#ifndef CLI_HELD_H
#define CLI_HELD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Of simulated ones: the world's folder/actuator. */
#define HELD_REAL_DIR "/run/underwatt-actuator"

struct held {
    bool known;           /* there is an entry that we may read */
    pid_t pid;            /* whose cap it is; 0 unknown … */
    bool gone;            /* … and no longer there: the cap was left behind */
    uint32_t original_mw; /* comes back at the end */
    uint32_t cap_mw;
};

/* dir: the actuator's.  Ordinary users may not read that of real boards: then
 * nothing is known.
 */
void held_look(const char *dir, const char *uuid, struct held *ret);

#endif
