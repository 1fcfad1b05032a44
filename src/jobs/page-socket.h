/* SOCK_SEQPACKET socket through which clients pass the progress pages of jobs to the
 * daemon, and get them: one packet "page JOB" with one descriptor (SCM_RIGHTS), or "take
 * JOB" with none.  The answer is "done", to "take" with the page's descriptor; "none":
 * the job has no page (yet); or "refused WHY".
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
/* The descriptor of the job's page, which stays the callee's; -ENODATA: it has none. */
typedef int (*page_socket_take_fn)(uint64_t job, uid_t uid, uw_error *err, void *user);

struct page_socket_opts {
    page_socket_fn give;
    page_socket_take_fn lend;
    void *user;
};

/* Creates the socket at path (mode 0666) and listens; replaces a stale socket.
 * -EADDRINUSE: another process listens there.
 */
int page_socket_new(struct loop *loop, const char *path,
                    const struct page_socket_opts *opts, struct page_socket **ret,
                    uw_error *err);
/* Removes the socket's file. */
void page_socket_free(struct page_socket *d);
DEFINE_AUTO(struct page_socket *, page_socket_free);

enum page_word { PAGE_GIVEN, PAGE_TAKEN }; /* "page", "take" */
/* Parses "page 12", "take 12".  -EINVAL: wrong form. */
int page_socket_parse(const char *text, size_t size, enum page_word *ret,
                      uint64_t *ret_job, uw_error *err);

/* The client's side.  Each socket call blocks for up to 2 s: call it in a worker.  -errno
 * of the socket; -EPERM: the daemon refused, *err holds its reason.
 */
int page_socket_send(const char *path, uint64_t job, int page_fd, uw_error *err);
/* -ENODATA: the job has no page (yet).  The caller owns *ret_fd. */
int page_socket_take(const char *path, uint64_t job, int *ret_fd, uw_error *err);

#endif
