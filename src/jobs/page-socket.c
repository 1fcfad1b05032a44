#include "jobs/page-socket.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/units.h"

enum { FDS_MAX = 4, ACCEPTS_AT_ONCE = 16, WAIT_S = 2 };

struct peer {
    struct page_socket *server;
    int fd;
    uid_t uid;
    uint64_t arrival; /* order of connection */
    struct loop_fd *source;
};

struct page_socket {
    struct loop *loop;
    struct page_socket_opts opts;
    char path[sizeof((struct sockaddr_un *)0)->sun_path];
    dev_t dev;
    ino_t ino;
    int fd;
    struct loop_fd *source;
    struct peer *peer[PAGE_SOCKET_PEERS];
    uint64_t arrival; /* number of the next peer */
};

/* ---- parsing ---- */

static const char *const page_words[] = {[PAGE_GIVEN] = "page ", [PAGE_TAKEN] = "take "};
enum { WORD = 5 }; /* length of each word */

int page_socket_parse(const char *text, size_t size, enum page_word *ret,
                      uint64_t *ret_job, uw_error *err)
{
    char digits[24];
    size_t n = size - WORD;
    bool takes = size > WORD && memcmp(text, page_words[PAGE_TAKEN], WORD) == 0;

    if (size <= WORD || (!takes && memcmp(text, page_words[PAGE_GIVEN], WORD) != 0))
        return fail(err, -EINVAL, "not of the form \"page JOB\" or \"take JOB\"");
    const char *number = text + WORD;
    if (n >= sizeof digits || memchr(number, '\0', n))
        return fail(err, -EINVAL, "the job's number is too long");
    memcpy(digits, number, n);
    digits[n] = '\0';
    if (strspn(digits, "0123456789") != n)
        return fail(err, -EINVAL, "the job's number is not a number");
    int r = parse_u64(digits, ret_job, err);
    if (r == 0)
        *ret = takes ? PAGE_TAKEN : PAGE_GIVEN;
    return r;
}

static int address_of(const char *path, struct sockaddr_un *ret, uw_error *err)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof ret->sun_path)
        return fail(err, -ENAMETOOLONG, "%s: too long for a socket's path", path);
    (void)snprintf(ret->sun_path, sizeof ret->sun_path, "%s", path);
    return 0;
}

/* ---- peers ---- */

static void peer_free(struct peer *p)
{
    if (!p)
        return;
    loop_fd_free(p->source);
    (void)close(p->fd);
    for (size_t i = 0; i < PAGE_SOCKET_PEERS; i++)
        if (p->server->peer[i] == p)
            p->server->peer[i] = NULL;
    free(p);
}
DEFINE_AUTO(struct peer *, peer_free);

/* Returns the first descriptor of a packet and closes the others.  -1: none. */
static int first_fd(struct msghdr *msg, size_t *ret_n)
{
    int first = -1;

    *ret_n = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if ((*ret_n)++ == 0)
                first = fd;
            else
                (void)close(fd);
        }
    }
    return first;
}

/* One packet, with a descriptor unless it is -1. */
static int send_packet(int to, const char *text, int fd, int flags)
{
    union {
        char buf[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    char packet[PAGE_SOCKET_ANSWER];
    struct iovec iov = {packet, 0};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

    (void)snprintf(packet, sizeof packet, "%s", text);
    iov.iov_len = strlen(packet);
    if (fd >= 0) {
        msg.msg_control = control.buf;
        msg.msg_controllen = sizeof control.buf;
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    return sendmsg(to, &msg, flags | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static void answer(const struct peer *p, int r, int fd, const uw_error *err)
{
    char text[PAGE_SOCKET_ANSWER];

    (void)snprintf(text, sizeof text, "%s%s",
                   r == -ENODATA ? "none"
                   : r < 0       ? "refused "
                                 : "done",
                   r < 0 && r != -ENODATA ? err->text : "");
    (void)send_packet(p->fd, text, fd, MSG_DONTWAIT);
}

/* Serves a received packet of n bytes; *ret_fd: descriptor for the answer; -1: none. */
static int serve(const struct peer *p, struct msghdr *msg, size_t n, int *ret_fd,
                 uw_error *err)
{
    const struct page_socket_opts *o = &p->server->opts;
    enum page_word word = PAGE_GIVEN;
    uint64_t job = 0;
    size_t n_fds;
    int fd = first_fd(msg, &n_fds), r = 0;

    *ret_fd = -1;
    if (msg->msg_flags & (MSG_TRUNC | MSG_CTRUNC))
        r = fail(err, -EINVAL, "a packet of more than %d bytes or %d descriptors",
                 PAGE_SOCKET_PACKET, FDS_MAX);
    if (r == 0)
        r = page_socket_parse(msg->msg_iov->iov_base, n, &word, &job, err);
    if (r >= 0 && n_fds != (word == PAGE_GIVEN))
        r = fail(err, -EINVAL, "%zu descriptors in the packet instead of %d", n_fds,
                 word == PAGE_GIVEN);
    if (r < 0) {
        if (fd >= 0)
            (void)close(fd);
        return r;
    }
    if (word == PAGE_GIVEN)
        return o->give(job, p->uid, fd, err, o->user);
    r = o->lend(job, p->uid, err, o->user);
    if (r >= 0)
        *ret_fd = r;
    return r;
}

static int on_peer(struct loop_fd *source, int fd, int events, void *user)
{
    struct peer *p = user;
    char text[PAGE_SOCKET_PACKET];
    union {
        char buf[CMSG_SPACE(FDS_MAX * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = {text, sizeof text};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.buf,
                         .msg_controllen = sizeof control.buf};
    uw_error err = {""};
    size_t n_fds;
    (void)source;
    (void)events;

    ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0) {
        if (n == 0) {
            int extra = first_fd(&msg, &n_fds); /* may come without data */
            if (extra >= 0)
                (void)close(extra);
        }
        peer_free(p);
        return 0;
    }
    int back, r = serve(p, &msg, (size_t)n, &back, &err);
    answer(p, r, back, &err);
    return 0;
}

static size_t peers_of(const struct page_socket *d, uid_t uid)
{
    size_t n = 0;

    for (size_t i = 0; i < PAGE_SOCKET_PEERS; i++)
        n += d->peer[i] && d->peer[i]->uid == uid;
    return n;
}

static bool is_older(const struct peer *p, const struct peer *than)
{
    return !than || p->arrival < than->arrival;
}

/* Returns a free slot for a new peer of uid.  Disconnects the oldest peer of uid if the
 * user's limit is reached, or, if all slots are taken, the oldest peer of the users with
 * the most peers, so that no user can lock others out.
 */
static size_t free_place(struct page_socket *d, uid_t uid)
{
    bool full = peers_of(d, uid) >= PAGE_SOCKET_USER_PEERS;
    size_t most = 0, at = SIZE_MAX;

    for (size_t i = 0; i < PAGE_SOCKET_PEERS; i++) {
        if (!d->peer[i] && !full)
            return i;
        if (d->peer[i] && peers_of(d, d->peer[i]->uid) > most)
            most = peers_of(d, d->peer[i]->uid);
    }
    for (size_t i = 0; i < PAGE_SOCKET_PEERS; i++) {
        const struct peer *p = d->peer[i];
        if (p && (full ? p->uid == uid : peers_of(d, p->uid) == most) &&
            is_older(p, at == SIZE_MAX ? NULL : d->peer[at]))
            at = i;
    }
    peer_free(d->peer[at]);
    return at;
}

static int accept_one(struct page_socket *d)
{
    struct ucred cred;
    socklen_t len = sizeof cred;
    int fd = accept4(d->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return -errno;
    struct peer *p = calloc(1, sizeof *p);
    if (!p || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0) {
        free(p);
        (void)close(fd);
        return 0;
    }
    *p = (struct peer){.server = d, .fd = fd, .uid = cred.uid, .arrival = d->arrival++};
    if (loop_fd_new(d->loop, fd, LOOP_READ, on_peer, p, &p->source, NULL) < 0)
        peer_free(p);
    else
        d->peer[free_place(d, p->uid)] = p;
    return 0;
}

static int on_listen(struct loop_fd *source, int fd, int events, void *user)
{
    (void)source;
    (void)fd;
    (void)events;

    for (int i = 0; i < ACCEPTS_AT_ONCE; i++)
        if (accept_one(user) < 0)
            break;
    return 0;
}

/* ---- set-up ---- */

/* Removes a socket without a listener; fails if anything else is at the path. */
static int remove_stale(const struct sockaddr_un *at, uw_error *err)
{
    struct stat st;

    if (lstat(at->sun_path, &st) < 0)
        return errno == ENOENT
                   ? 0
                   : fail(err, -errno, "%s: %s", at->sun_path, strerror(errno));
    if (!S_ISSOCK(st.st_mode))
        return fail(err, -EEXIST, "%s: exists and is not a socket", at->sun_path);
    auto_(fd_close) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fail(err, -errno, "socket: %s", strerror(errno));
    if (connect(fd, (const struct sockaddr *)at, sizeof *at) == 0)
        return fail(err, -EADDRINUSE, "%s: another process listens there", at->sun_path);
    return unlink(at->sun_path) < 0
               ? fail(err, -errno, "%s: %s", at->sun_path, strerror(errno))
               : 0;
}

static int open_server(struct page_socket *d, const char *path, uw_error *err)
{
    struct sockaddr_un at;
    struct stat st;

    int r = address_of(path, &at, err);
    if (r >= 0)
        r = remove_stale(&at, err);
    if (r < 0)
        return r;
    d->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (d->fd < 0)
        return fail(err, -errno, "socket: %s", strerror(errno));
    if (bind(d->fd, (const struct sockaddr *)&at, sizeof at) < 0)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    memcpy(d->path, at.sun_path, sizeof d->path);
    if (lstat(path, &st) < 0 || chmod(path, 0666) < 0 || listen(d->fd, 64) < 0)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    d->dev = st.st_dev;
    d->ino = st.st_ino;
    return loop_fd_new(d->loop, d->fd, LOOP_READ, on_listen, d, &d->source, err);
}

int page_socket_new(struct loop *loop, const char *path,
                    const struct page_socket_opts *opts, struct page_socket **ret,
                    uw_error *err)
{
    auto_(page_socket_free) struct page_socket *d = calloc(1, sizeof *d);

    if (!d)
        return fail(err, -ENOMEM, "out of memory");
    d->fd = -1;
    d->loop = loop;
    d->opts = *opts;
    int r = open_server(d, path, err);
    if (r < 0)
        return r;
    *ret = take(d);
    return 0;
}

void page_socket_free(struct page_socket *d)
{
    struct stat st;

    if (!d)
        return;
    for (size_t i = 0; i < PAGE_SOCKET_PEERS; i++)
        peer_free(d->peer[i]);
    loop_fd_free(d->source);
    if (d->path[0] && lstat(d->path, &st) == 0 && st.st_dev == d->dev &&
        st.st_ino == d->ino)
        (void)unlink(d->path);
    if (d->fd >= 0)
        (void)close(d->fd);
    free(d);
}

/* ---- the client ---- */

/* Requests the job by that word, with page_fd (-1: none).  *ret_fd: the descriptor in
 * the answer; -1: none.
 */
static int ask_daemon(const char *path, enum page_word word, uint64_t job, int page_fd,
                      int *ret_fd, uw_error *err)
{
    auto_(fd_close) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const struct timeval wait = {.tv_sec = WAIT_S};
    char text[PAGE_SOCKET_ANSWER] = "", packet[PAGE_SOCKET_PACKET];
    union {
        char buf[CMSG_SPACE(FDS_MAX * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = {text, sizeof text - 1};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.buf,
                         .msg_controllen = sizeof control.buf};
    struct sockaddr_un at;
    size_t n_fds;

    *ret_fd = -1;
    if (fd < 0)
        return fail(err, -errno, "socket: %s", strerror(errno));
    int r = address_of(path, &at, err);
    if (r < 0)
        return r;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait) < 0 ||
        connect(fd, (const struct sockaddr *)&at, sizeof at) < 0)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    (void)snprintf(packet, sizeof packet, "%s%" PRIu64, page_words[word], job);
    r = send_packet(fd, packet, page_fd, 0);
    if (r < 0)
        return fail(err, r, "%s: %s", path, strerror(-r));
    ssize_t n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
    if (n <= 0)
        return fail(err, n < 0 ? -errno : -ECONNRESET, "%s: no answer", path);
    text[n] = '\0';
    *ret_fd = first_fd(&msg, &n_fds);
    if (strcmp(text, "done") == 0)
        return 0;
    if (strcmp(text, "none") == 0)
        return fail(err, -ENODATA, "job %" PRIu64 " has no progress page", job);
    const char *why = strncmp(text, "refused ", 8) == 0 ? text + 8 : text;
    return fail(err, -EPERM, "%s", why);
}

int page_socket_send(const char *path, uint64_t job, int page_fd, uw_error *err)
{
    auto_(fd_close) int back = -1;

    return ask_daemon(path, PAGE_GIVEN, job, page_fd, &back, err);
}

int page_socket_take(const char *path, uint64_t job, int *ret_fd, uw_error *err)
{
    auto_(fd_close) int back = -1;
    int r = ask_daemon(path, PAGE_TAKEN, job, -1, &back, err);

    if (r < 0)
        return r;
    if (back < 0)
        return fail(err, -EPROTO, "%s: no page in the answer", path);
    *ret_fd = fd_take(&back);
    return 0;
}
