/* underwatt-start: what its files share.  start.c reads arguments and prepares folders
 * and sockets; start-run.c starts both programs, watches them and ends them.
 */
#ifndef DAEMON_START_H
#define DAEMON_START_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "gpu/backends.h"
#include "io/loop.h"

enum {
    START_OK = 0,
    START_FAILED = 1,
    START_USAGE = 2,
    START_PARTLY = 3,    /* some boards could not be restored */
    START_LISTEN_FD = 3, /* the actuator's, as socket activation has it */
    START_ARGS_MAX = 64,
};

enum { ACTUATOR, DAEMON };

struct program;

struct service {
    struct program *program;
    const char *name;
    const char *argv[START_ARGS_MAX];
    size_t n_args;
    uid_t uid;                /* it tells of its life as that one */
    struct loop_child *child; /* NULL: does not run */
    struct loop_timer *again; /* its next start */
    struct loop_timer *watchdog;
    unsigned silent_ms; /* without a sign of life for so long it is killed */
    uint64_t started_ns;
    unsigned backoff_ms;
    bool killed; /* it did not end in time */
};

struct program {
    /* What the command line says. */
    const char *user, *socket, *actuator, *actuator_config, *daemon;
    char **daemon_args; /* ends with NULL */

    char self[PATH_MAX], parent[16], uid[16];
    uid_t daemon_uid;
    char socket_path[sizeof((struct sockaddr_un *)NULL)->sun_path];
    char watch_name[sizeof((struct sockaddr_un *)NULL)->sun_path];
    char lock_path[sizeof((struct sockaddr_un *)NULL)->sun_path + sizeof ".lock"];
    char boards[GPU_BOARDS_TEXT]; /* "": the system's */
    char found[2][PATH_MAX + 64];
    struct service service[2]; /* the actuator with its keeper, the daemon */
    struct service recovery;   /* after an actuator that has left something */

    struct loop *loop;
    struct loop_signal *sigterm, *sigint, *sighup;
    int watch_fd; /* their hearts are heard here */
    struct loop_fd *watch_source;
    struct loop_timer *deadline;
    pid_t rest; /* group of a keeper that was killed; 0: nobody is left of it */
    uint64_t rest_since_ns; /* when the keeper died */
    bool clean;             /* the last actuator has restored all that it could */
    unsigned recoveries;
    bool ending;
    int result;
};

/* One line on standard error. */
__attribute__((format(printf, 1, 2))) void start_say(const char *format, ...);

/* Starts both and returns once both have ended, everything restored that could be:
 * p->result is the exit status then.
 */
int start_run(struct program *p, uw_error *err);

#endif
