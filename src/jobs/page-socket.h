/* SOCK_SEQPACKET socket through which a client passes a job's progress page to the
 * daemon: one packet "page JOB" with one descriptor (SCM_RIGHTS); the answer is "done" or
 * "refused WHY".
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
    PAGE_SOCKET_USER_PEERS = 16, /* of one user; a further one replaces the oldest */
};

/* uid: the peer's (SO_PEERCRED).  The callee owns fd, even if it fails.  < 0: the text of
 * *err is sent to the peer.
 */
typedef int (*page_socket_fn)(uint64_t job, uid_t uid, int fd, uw_error *err, void *user);

/* Creates the socket at path (mode 0666) and listens; replaces a stale socket.
 * -EADDRINUSE: another process listens there.
 */
int page_socket_new(struct loop *loop, const char *path, page_socket_fn fn, void *user,
                    struct page_socket **ret, uw_error *err);
/* Removes the socket's file. */
void page_socket_free(struct page_socket *d);
DEFINE_AUTO(struct page_socket *, page_socket_free);

/* Parses "page 12".  -EINVAL: wrong form. */
int page_socket_parse(const char *text, size_t size, uint64_t *ret_job, uw_error *err);

/* The client's side.  Each socket call blocks for up to 2 s: call it in a worker.  -errno
 * of the socket; -EPERM: the daemon refused, *err holds its reason.
 */
int page_socket_send(const char *path, uint64_t job, int page_fd, uw_error *err);

#endif
