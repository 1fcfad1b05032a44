/* The holder of a board's lock: the process that /proc/locks names, and the client that
 * the lock's file names, if that client still runs.
 */
#ifndef ACTUATOR_HOLDER_H
#define ACTUATOR_HOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct holder {
    bool locked;   /* a process has the lock, or this cannot be determined … */
    pid_t pid;     /* … this process, an actuator; 0: unknown */
    char name[32]; /* its name … */
    bool stopped;  /* … and whether a signal has stopped the process */
    pid_t client;  /* the client for which the lock is held, if it still runs; else 0 */
    bool client_gone; /* the client that the lock's file names has ended */
};

/* /proc/locks, read at its first use; the kernel stops all calls for locks meanwhile. */
struct holder_locks {
    bool read;
    char *text; /* NULL: it cannot be read */
};
void holder_locks_fini(struct holder_locks *locks);

/* dir: the actuator's folder.  locks: for several boards looked at together; NULL: read
 * for this one.  If no process has the lock, locked is false and the rest is empty.
 */
void holder_look(const char *dir, const char *uuid, struct holder_locks *locks,
                 struct holder *ret);
/* The same for an open lock. */
void holder_of(int lock_fd, struct holder *ret);
/* Writes the client's pid into a lock that this process holds.  0 or -errno. */
int holder_name(int lock_fd, pid_t client);

/* Whether the holder is about to release the lock by itself: no command uses the lock
 * (the holder restores what an ended command left), or the holder has released it
 * meanwhile.
 */
bool holder_passes(const struct holder *h);

/* The process to name in messages: the client, else the owner of the lock; 0: unknown. */
pid_t holder_pid(const struct holder *h);
/* "underwatt (pid 12, uid 1000)", "underwatt-actuator (pid 34, root, stopped)", "another
 * Underwatt": the one spelling of it in messages.
 */
const char *holder_text(const struct holder *h, char *ret, size_t size);

/* The process that /proc/locks lists with a FLOCK on this file; 0: none.  Pure. */
pid_t holder_parse(const char *locks, unsigned major, unsigned minor,
                   unsigned long inode);

#endif
