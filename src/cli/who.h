/* The user and command line of a process, from /proc. */
#ifndef CLI_WHO_H
#define CLI_WHO_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct who {
    bool known;  /* false: ended, or in another pid namespace */
    bool daemon; /* underwattd, or the actuator's service: `underwatt-actuator --serve` */
    uid_t uid;
    char user[40];     /* the name, or the uid if it has no name */
    char command[120]; /* the command line, words separated by blanks, without control
                          characters; cut with "…" */
};

/* root: "", or the folder that tests use as /. */
void who_is(const char *root, pid_t pid, struct who *ret);
/* Where pid, which holds a board, is the node's daemon, the command says that --local is
 * to be omitted.
 */
void who_say_daemon(const char *command, pid_t pid);

#endif
