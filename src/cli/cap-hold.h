/* `underwatt cap set`: boards held at caps until somebody says enough. */
#ifndef CLI_CAP_HOLD_H
#define CLI_CAP_HOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "board/boards.h"
#include "cli/cmd.h"

struct cap_target {
    unsigned index;
    char uuid[96];
    uint32_t cap_mw, default_mw;
    uint32_t clock_mhz; /* a lock of the SM clock instead of a cap; 0: a cap */
    bool busy;      /* a process works there: walked down to the cap, not set at once */
    uint64_t claim; /* with the daemon: its number; 0 none */
    /* What came of it. */
    uint32_t original_mw, enforced_mw; /* 0: unknown */
    bool reached;                      /* the cap was in force … */
    bool lost;                         /* … and then no more, or never */
    bool restored;                     /* the original was read back */
    char text[200];                    /* of the last thing that went wrong */
};

struct cap_hold {
    const struct cli_env *env;
    const char *library; /* NVML, or NULL */
    bool simulated;
    uint64_t for_ns; /* 0: until a signal */
    struct cap_target target[BOARDS_MAX];
    size_t n; /* 0: only start the actuator, which recovers what was left */
};

/* Holds until the time is over, SIGINT, SIGTERM or SIGHUP, then gives back.
 * EXIT_OK: all were reached and held to the end; EXIT_PARTIAL: some; EXIT_FAIL.
 * Says what happens on stderr.
 */
int cap_hold(struct cap_hold *h);
/* That exit code, of what came of the boards. */
int cap_hold_code(const struct cap_hold *h);
/* Says for how long n boards are held. */
void cap_hold_tell(const struct cap_hold *h, size_t n);
/* "200 W" or "1200 MHz": what the target asks for.  Static; not for threads. */
const char *cap_target_text(const struct cap_target *t);

#endif
