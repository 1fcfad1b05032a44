/* `underwatt cap`: claims, at the daemon or at a node of the command's own. */
#ifndef CLI_CAP_ASK_H
#define CLI_CAP_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "ask/ask.h"
#include "base/units.h"
#include "cli/cap-target.h"
#include "io/json.h"

struct cap_remote {
    const struct cli_env *env;
    const char *boards;
    struct loop *loop;
    struct ask *daemon;
    const char *gpus; /* NULL: all */
    const char *json; /* of show: write JSON there */
    const char *why;  /* of set: the reason shown to others; NULL: "underwatt cap" */
    bool own;         /* by a node in this process, not the daemon */
    bool detach;      /* set: leave the claims with the daemon */
    bool clock;       /* set: MHz of the SM clocks instead of watts */
};

static inline void cap_remote_fini_p(struct cap_remote *o)
{
    ask_free(o->daemon);
}

/* The boards of the daemon that `gpus` selects.  cap_boards_get() returns EXIT_OK, or
 * another exit code after a line on stderr.
 */
struct cap_boards {
    struct json *doc; /* owns the values in `at` */
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

/* Makes a claim on each board, on all or on none, for the life of this process
 * (detached: for for_ns).  Holds the boards until for_ns has passed or SIGINT, SIGTERM or
 * SIGHUP arrives, then restores them; reports on stderr and returns cap_hold_code();
 * fills h's targets with the result. For a clock, cap->mw is in MHz.  Takes o->daemon.
 */
int cap_daemon_set(struct cap_remote *o, const struct cap_arg *cap, struct cap_hold *h);
/* The same without the daemon, for the targets of h, by a node of the command's own.  No
 * targets: only starts the actuator, which restores what killed commands left.
 */
int cap_own_hold(struct cap_hold *h);
/* Withdraws the claims that the caller made by hand. */
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
/* claims: NULL without the daemon; budget: take_budget(), or "". */
int cap_show(const char *json, const struct gpu_about *about, const struct cap_shown *b,
             size_t n, const struct json_value *claims, const char *budget);

#endif
