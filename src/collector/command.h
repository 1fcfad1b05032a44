/* Runs a Slurm command for its output, with a deadline and a size limit.  Its environment
 * has the variables that it needs (PATH, SLURM_CONF), and none that changes its output.
 */
#ifndef COLLECTOR_COMMAND_H
#define COLLECTOR_COMMAND_H

#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "io/loop.h"
#include "underwatt/error.h"

struct command;

/* r: 0 (it exited with 0: text is its output, with a NUL at len, the caller's to free());
 * -EPROTO (another status; the text of *why is its first line on standard error),
 * -ETIMEDOUT, -EFBIG, -ENOMEM, or the start's -errno.  The command may be freed from it.
 */
typedef void (*command_fn)(int r, char *text, size_t len, const uw_error *why,
                           void *user);

struct command_opts {
    const char *const *argv; /* ends with NULL */
    const char *env;         /* "NAME=value"; NULL: none */
    uint64_t deadline_ns;    /* kernel time: then it and its children are killed */
    size_t max;              /* bytes that it may print */
    command_fn fn;
    void *user;
};
/* fn is called once, never from inside command_new(), unless the command is freed before.
 */
int command_new(struct loop *loop, const struct command_opts *opts, struct command **ret,
                uw_error *err);
void command_free(struct command *c); /* kills it */
DEFINE_AUTO(struct command *, command_free);

#endif
