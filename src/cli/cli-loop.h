/* The event loop of a command, with the clock from the environment, and its signals. */
#ifndef CLI_CLI_LOOP_H
#define CLI_CLI_LOOP_H

#include "cli/cmd.h"
#include "gpu/gpu.h"
#include "io/loop.h"

/* -EINVAL: UNDERWATT_CLOCK cannot be read. */
int cli_loop_new(const struct cli_env *env, struct loop **ret, uw_error *err);
/* For gpu_open_opts: the time of the loop. */
struct gpu_clock cli_loop_clock(struct loop *loop);

/* The loop's time in which ms of the wall's pass. */
uint64_t cli_wall_ns(const struct loop *loop, double ms);
/* Runs the loop for ms of the wall's time; loop_stop() ends the wait. */
void cli_loop_wait(struct loop *loop, double ms);

/* Watches the first n of SIGINT, SIGTERM, SIGHUP and SIGQUIT, but no SIGHUP that is
 * ignored; ignores SIGPIPE, so that neither a client of the command's node that hangs up
 * nor a closed pipe of its output ends a command that has boards.  After a failure the
 * caller must still free *ret.
 */
enum { CLI_SIGNALS = 4 };
struct cli_signals {
    struct loop_signal *source[CLI_SIGNALS];
};
int cli_signals_new(struct loop *loop, size_t n, loop_signal_fn fn, void *user,
                    struct cli_signals *ret, uw_error *err);
void cli_signals_free(struct cli_signals *s);
/* Whether a process sent the last signo; false: the kernel, for a key of the terminal,
 * to each process of the foreground.
 */
bool cli_signal_sent(int signo);

#endif
