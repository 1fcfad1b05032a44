/* Shared by the files of underwatt-start: start.c reads arguments and prepares
 * directories and sockets; start-run.c starts both programs, watches and ends them.
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
    START_LISTEN_FD = 3, /* the actuator's socket, as in socket activation */
    START_ARGS_MAX = 64,
};

enum { ACTUATOR, DAEMON };

struct program;

struct service {
    struct program *program;
    const char *name;
    const char *argv[START_ARGS_MAX];
    size_t n_args;
    uid_t uid;                /* user that its notifications come from */
    struct loop_child *child; /* NULL: not running */
    struct loop_timer *again; /* timer of the next start */
    struct loop_timer *watchdog;
    unsigned silent_ms; /* killed after this time without a notification */
    unsigned missed;    /* parts of this time without one */
    uint64_t started_ns;
    unsigned backoff_ms;
    bool killed; /* by SIGKILL, as it did not end in time */
};

struct program {
    /* the command line */
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
    /* a recovery, if an actuator may have left something to restore */
    struct service recovery;

    struct loop *loop;
    struct loop_signal *sigterm, *sigint, *sighup;
    int watch_fd; /* receives their notifications */
    struct loop_fd *watch_source;
    struct loop_timer *deadline;
    pid_t orphans;             /* group of a keeper that was killed; 0: none */
    uint64_t orphans_since_ns; /* when the keeper died */
    bool clean;                /* the last actuator has restored all that it could */
    unsigned recoveries;
    bool ending;
    int result;
};

/* Prints one line to standard error. */
__attribute__((format(printf, 1, 2))) void start_say(const char *format, ...);

/* Starts both and returns when both have ended and all boards that could be restored are:
 * p->result is the exit status.
 */
int start_run(struct program *p, uw_error *err);

#endif
