/* `underwatt cap` as a client of the daemon: claims instead of limits. */
#ifndef CLI_CAP_DAEMON_H
#define CLI_CAP_DAEMON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/units.h"
#include "cli/cap-hold.h"
#include "io/httpc.h"
#include "io/json.h"

struct cap_remote {
    const struct cli_env *env;
    const char *boards;
    struct httpc *daemon;
    const char *gpus; /* NULL: all */
    const char *json; /* of show */
    const char *why;  /* of set; NULL: "underwatt cap" */
    bool detach;      /* set: leave the claims with the daemon */
    bool clock;       /* set: MHz of the SM clocks instead of watts */
};

/* The daemon's boards, those that gpus means.  EXIT_OK, or EXIT_… after a line. */
struct cap_boards {
    struct json *doc; /* owns … */
    const struct json_value *at[BOARDS_MAX];
    size_t n;
    bool simulated;
};
int cap_boards_get(const struct cap_remote *o, struct cap_boards *ret);
void cap_boards_fini(struct cap_boards *b);
static inline void cap_boards_fini_p(struct cap_boards *b)
{
    cap_boards_fini(b);
}

/* A claim on each board, for as long as this process lives (or, detached, for for_ns);
 * all or none of them.  Holds, says and ends as cap_hold() does; fills h's boards and
 * what came of them.  cap: of a clock the MHz stand in .mw.
 */
int cap_daemon_set(const struct cap_remote *o, const struct cap_arg *cap,
                   struct cap_hold *h);
/* Withdraws what the caller has claimed by hand. */
int cap_daemon_clear(const struct cap_remote *o);
int cap_daemon_show(const struct cap_remote *o);

/* A board of `cap show`, with the daemon or without; 0: unknown. */
struct cap_shown {
    unsigned index;
    const char *uuid, *why;
    uint32_t enforced_mw, cap_mw, original_mw;
    struct gpu_limits limits;
    int64_t holder_pid;
    const struct json_value *gpu; /* the daemon's answer, or NULL */
};
/* claims: NULL without the daemon. */
int cap_show(const char *json, bool simulated, const struct cap_shown *b, size_t n,
             const struct json_value *claims);

#endif
