/* The boards of `underwatt cap set`: what is asked of each, and what became of it. */
#ifndef CLI_CAP_TARGET_H
#define CLI_CAP_TARGET_H

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
    bool busy;          /* a process uses the board: ramp down instead of one step */
    uint64_t claim;     /* with the daemon: the id of the claim; 0: none */
    /* Results. */
    uint32_t original_mw, enforced_mw; /* 0: unknown */
    bool asked;                        /* the cap is written and not read back yet */
    bool reached;                      /* the cap was in force */
    bool lost;                         /* the cap is no longer in force, or never was */
    bool restored;                     /* the original was read back */
    char text[200];                    /* the last error */
};

struct cap_hold {
    const struct cli_env *env;
    const char *library; /* NVML, or NULL */
    bool simulated;
    uint64_t for_ns;    /* 0: until a signal */
    const char *preset; /* whose share of the default limit is held; NULL: none */
    double percent;     /* of the preset */
    struct cap_target target[BOARDS_MAX];
    size_t n;   /* 0: start the actuator only, which restores limits left by others */
    bool begun; /* claims were made: the targets have the result */
};

/* The exit code for these results: EXIT_OK: each board reached its cap and kept it;
 * EXIT_PARTIAL: some did; EXIT_FAIL.
 */
int cap_hold_code(const struct cap_hold *h);
/* Says for how long n boards are held, spent_s after the command's begin. */
void cap_hold_tell(const struct cap_hold *h, size_t n, double spent_s);
/* ", preset balanced (85 %)"; "" without one.  Static; not for threads. */
const char *cap_preset_text(const struct cap_hold *h);
/* "200 W" or "1200 MHz": what the target asks for.  Static; not for threads. */
const char *cap_target_text(const struct cap_target *t);

#endif
