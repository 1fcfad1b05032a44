/* Who holds a board's lock: the process that /proc/locks names, and the client that the
 * lock's file names, if it still runs.
 */
#ifndef ACTUATOR_HOLDER_H
#define ACTUATOR_HOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct holder {
    bool locked;      /* some process has the lock, or nobody can tell … */
    pid_t pid;        /* … this one, an actuator; 0: not known */
    char name[32];    /* its name … */
    bool stopped;     /* … and that a signal has stopped it */
    pid_t client;     /* for whom, where that process still runs; else 0 */
    bool client_gone; /* the one that the lock names has ended */
};

/* dir: the actuator's.  Of a lock that nobody has: locked is false, the rest is empty. */
void holder_look(const char *dir, const char *uuid, struct holder *ret);
/* The same of an open lock. */
void holder_of(int lock_fd, struct holder *ret);
/* Name the client in a lock of ours.  0 or -errno. */
int holder_name(int lock_fd, pid_t client);

/* It gives the lock up by itself and soon: no command stands behind it (what one that has
 * ended left is being restored), or it has given it up meanwhile.
 */
bool holder_passes(const struct holder *h);

/* The process to name: the client, else whoever has the lock; 0: not known. */
pid_t holder_pid(const struct holder *h);
/* "process 12", "process 34 (underwatt-actuator, stopped)", … */
const char *holder_text(const struct holder *h, char *ret, size_t size);

/* The process that has a FLOCK of this file, as /proc/locks has it; 0: none.  Pure. */
pid_t holder_parse(const char *locks, unsigned major, unsigned minor,
                   unsigned long inode);

#endif
