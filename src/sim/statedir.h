/* The files of a state directory, for their writer and for readers. */
#ifndef SIM_STATEDIR_H
#define SIM_STATEDIR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/auto.h"
#include "sim/state.h"
#include "underwatt/error.h"

/* ---- the writer's side ---- */

struct statedir {
    char path[SIM_SOCKET_MAX];
    int lock_fd, listen_fd;
    struct sim_page *page; /* mapped; zero except version and size */
};

/* Creates the directory, takes its lock, copies the library, creates page and socket.
 * -EBUSY: a world lives there (the text names its pid); -ENAMETOOLONG.
 */
int statedir_make(const char *path, const char *library, struct statedir *ret,
                  uw_error *err);
/* Makes the page visible; it must be filled in. */
int statedir_publish(struct statedir *dir, uw_error *err);
/* Redirects standard error to the directory's log. */
void statedir_log(const struct statedir *dir);
/* Marks the page stopped and removes every file, and the directory if that is
 * then empty.
 */
void statedir_remove(struct statedir *dir);

/* ---- the readers' side ---- */

/* A program in a world loads the library of its state directory.  The directory must
 * belong to this user or root, be no link, and be writable by its owner alone; else
 * -EPERM.
 */
int statedir_trust(const char *path, uw_error *err);

enum { STATEDIR_NONE = 1, STATEDIR_DEAD = 2 };

/* Maps the page of a living world read-only; unmap it with statedir_unmap().
 * STATEDIR_NONE: no world there; STATEDIR_DEAD: a world was killed there, and its files
 * remain.
 */
int statedir_map(const char *path, const struct sim_page **ret, uw_error *err);
void statedir_unmap(const struct sim_page *page);
DEFINE_AUTO(const struct sim_page *, statedir_unmap);
/* Removes the files of a killed world; -EBUSY where a world lives. */
int statedir_clean(const char *path, uw_error *err);

/* Connects to the world's process, sends one request and reads one answer.  The caller
 * closes *ret_fd.  -EIO: the world has stopped.
 */
int statedir_request(const char *path, const struct sim_request *request, int *ret_fd,
                     struct sim_reply *ret, uw_error *err);
/* Reads the next answer. */
int statedir_wait(int fd, struct sim_reply *ret, uw_error *err);

#endif
