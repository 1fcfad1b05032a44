/* Where a job's progress page comes in: a SOCK_SEQPACKET socket beside the API's.  One
 * packet "page JOB" with one descriptor (SCM_RIGHTS), answered "done" or "refused WHY".
 */
#ifndef JOBS_PAGE_SOCKET_H
#define JOBS_PAGE_SOCKET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/auto.h"
#include "io/loop.h"
#include "underwatt/error.h"

struct page_socket;

enum {
    PAGE_SOCKET_PACKET = 64,
    PAGE_SOCKET_ANSWER = 256,
    PAGE_SOCKET_PEERS = 64,
    PAGE_SOCKET_USER_PEERS = 16, /* of one user: for the next one the oldest goes */
};

/* uid: the peer's (SO_PEERCRED).  fd is the callee's, whatever it returns.  < 0: *err is
 * told to the peer.
 */
typedef int (*page_socket_fn)(uint64_t job, uid_t uid, int fd, uw_error *err, void *user);

/* Listens at path (made anew, mode 0666; a stale socket of ours there is replaced). */
int page_socket_new(struct loop *loop, const char *path, page_socket_fn fn, void *user,
                    struct page_socket **ret, uw_error *err);
/* Removes the socket's file. */
void page_socket_free(struct page_socket *d);
DEFINE_AUTO(struct page_socket *, page_socket_free);

/* "page 12" to 12.  -EINVAL: text says what is wrong. */
int page_socket_parse(const char *text, size_t size, uint64_t *ret_job, uw_error *err);

/* The client's side; blocks for 2 s at most: for a worker.  0, -errno of the socket,
 * -EPERM with the daemon's words.
 */
int page_socket_send(const char *path, uint64_t job, int page_fd, uw_error *err);

#endif
