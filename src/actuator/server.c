#include "actuator/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "actuator/lines.h"
#include "base/error.h"
#include "base/units.h"
#include "gpu/counters.h"

enum {
    PEERS_MAX = 16,
    STRANGERS_MAX = 32,
    LINES_MAX = 20, /* lines a minute that clients can cause */
    AT_ONCE = 16,   /* messages of one peer before other peers have their turn */
};

struct peer {
    struct server *server;
    int fd;
    struct guard_client who;
    struct loop_fd *source;
    struct guard_session *session;
    uint32_t revision; /* revision of the protocol, from the peer's hello */
    bool deaf;         /* does not read its answers */
};

struct server {
    struct server_opts opts;
    bool local;
    int fd; /* listening; -1 in local mode */
    struct loop_fd *source;
    struct peer *peer[PEERS_MAX];
    uid_t stranger[STRANGERS_MAX]; /* uids already named in the log */
    size_t n_strangers;
    struct lines lines;
};

/* Clients must not be able to fill the log. */
static void say(struct server *s, const char *text)
{
    lines_say(&s->lines, text);
}

static void peer_free(struct peer *p)
{
    if (!p)
        return;
    guard_session_free(p->session);
    loop_fd_free(p->source);
    (void)close(p->fd);
    for (size_t i = 0; i < PEERS_MAX; i++)
        if (p->server->peer[i] == p)
            p->server->peer[i] = NULL;
    free(p);
}
DEFINE_AUTO(struct peer *, peer_free);

static void go_deaf(struct peer *p)
{
    p->deaf = true;
    (void)shutdown(p->fd, SHUT_RDWR); /* wakes on_peer, which frees it */
}

static void send_answer(const struct proto_answer *answer, void *user)
{
    struct peer *p = user;

    /* A client that does not read loses its lease soon; if an answer cannot be sent, the
     * session ends.
     */
    if (p->deaf || (answer->type == PROTO_WRITING && p->revision < 2) ||
        (answer->type == PROTO_BOARD && p->revision < 3))
        return;
    size_t size = proto_answer_size(p->revision);
    ssize_t n = send(p->fd, answer, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n != (ssize_t)size)
        go_deaf(p);
}

static void answer_excuse(struct peer *p, const struct proto_request *request)
{
    struct actuator_reply reply = {.result = ACTUATOR_DENIED};

    (void)snprintf(reply.text, sizeof reply.text, "%s", p->server->opts.excuse);
    struct proto_answer answer =
        proto_answer((enum proto_type)request->type, request->seq, &reply);
    send_answer(&answer, p);
}

/* Sends a counter's descriptor with the name of its zone. */
static void send_counter(struct peer *p, const struct proto_request *request)
{
    const struct gpu_counters *counters = p->server->opts.counters;
    bool there = counters && request->a < counters->n;
    struct actuator_reply reply = {.result = there ? ACTUATOR_DONE : ACTUATOR_GONE};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)),
                          .cmsg_level = SOL_SOCKET,
                          .cmsg_type = SCM_RIGHTS}};

    (void)snprintf(reply.text, sizeof reply.text, "%s",
                   there ? counters->at[request->a].name : "no such counter");
    struct proto_answer answer = proto_answer(PROTO_COUNTER, request->seq, &reply);
    if (!there) {
        send_answer(&answer, p);
        return;
    }
    memcpy(CMSG_DATA(&control.head), &counters->at[request->a].fd, sizeof(int));
    struct iovec data = {.iov_base = &answer, .iov_len = proto_answer_size(p->revision)};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    if (sendmsg(p->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)data.iov_len)
        go_deaf(p);
}

/* 1: there may be more, 0: no message now, negative: the peer has gone or violates the
 * protocol.
 */
static int take_message(struct peer *p)
{
    struct proto_request request;
    char data[sizeof request + 1];
    uw_error err;

    ssize_t n = recv(p->fd, data, sizeof data, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    if (n == 0)
        return -ECONNRESET;
    int r = proto_parse_request(data, (size_t)n, &request, &err);
    if (r < 0) {
        char text[300];
        (void)snprintf(text, sizeof text, "process %d: %s", p->who.pid, err.text);
        say(p->server, text);
        return r;
    }
    if (request.type == PROTO_HELLO)
        p->revision = request.a;
    if (request.type == PROTO_COUNTER)
        send_counter(p, &request);
    else if (p->session)
        guard_request(p->session, &request);
    else
        answer_excuse(p, &request);
    return p->deaf ? -EPIPE : 1;
}

static int on_peer(struct loop_fd *source, int fd, int events, void *user)
{
    struct peer *p = user;
    struct server *s = p->server;
    int r = 1;

    (void)source;
    (void)fd;
    (void)events;
    for (int i = 0; r > 0 && i < AT_ONCE; i++)
        r = take_message(p);
    if (r < 0) {
        peer_free(p);
        if (s->local)
            s->opts.on_gone(s->opts.user);
    }
    return 0;
}

/* Takes ownership of fd, also on failure. */
static int peer_new(struct server *s, int fd, const struct ucred *who, uw_error *err)
{
    size_t i = 0;
    auto_(peer_free) struct peer *p = calloc(1, sizeof *p);

    if (!p) {
        (void)close(fd);
        return fail(err, -ENOMEM, "out of memory");
    }
    *p = (struct peer){.server = s, .fd = fd, .who = {who->pid, who->uid}};
    while (i < PEERS_MAX && s->peer[i])
        i++;
    if (i == PEERS_MAX)
        return fail(err, -EMFILE, "%d clients are connected already", PEERS_MAX);
    int r = 0;
    if (s->opts.guard)
        r = guard_session_new(s->opts.guard, &p->who, send_answer, p, &p->session, err);
    if (r == 0)
        r = loop_fd_new(s->opts.loop, fd, LOOP_READ, on_peer, p, &p->source, err);
    if (r < 0)
        return r;
    s->peer[i] = take(p);
    return 0;
}

static bool is_client(const struct server *s, uid_t uid)
{
    for (size_t i = 0; i < s->opts.n_clients; i++)
        if (s->opts.client[i] == uid)
            return true;
    return uid == 0 || uid == geteuid();
}

/* Logs each refused uid only once, so that it cannot fill the log. */
static void say_stranger(struct server *s, const struct ucred *who)
{
    char text[160];

    for (size_t i = 0; i < s->n_strangers; i++)
        if (s->stranger[i] == who->uid)
            return;
    if (s->n_strangers == STRANGERS_MAX)
        return;
    s->stranger[s->n_strangers++] = who->uid;
    (void)snprintf(text, sizeof text,
                   "uid %u (process %d) may not connect: refused; later attempts are not "
                   "logged",
                   who->uid, who->pid);
    s->opts.say(text, s->opts.user);
}

static int on_connect(struct loop_fd *source, int listening, int events, void *user)
{
    struct server *s = user;
    struct ucred who;
    socklen_t len = sizeof who;
    uw_error err = {""};
    char text[300];

    (void)source;
    (void)events;
    int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return 0;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0) {
        (void)close(fd);
    } else if (!is_client(s, who.uid)) {
        say_stranger(s, &who);
        (void)close(fd);
    } else if (peer_new(s, fd, &who, &err) < 0) {
        (void)snprintf(text, sizeof text, "%s", err.text);
        say(s, text);
    }
    return 0;
}

void server_free(struct server *server)
{
    if (!server)
        return;
    for (size_t i = 0; i < PEERS_MAX; i++)
        peer_free(server->peer[i]);
    lines_fini(&server->lines);
    loop_fd_free(server->source);
    if (server->fd >= 0)
        (void)close(server->fd);
    free(server);
}

static struct server *new_server(const struct server_opts *opts, int fd, bool local)
{
    struct server *s = calloc(1, sizeof *s);

    if (s)
        *s = (struct server){.opts = *opts,
                             .fd = fd,
                             .local = local,
                             .lines = {.loop = opts->loop,
                                       .say = opts->say,
                                       .user = opts->user,
                                       .what = "lines that clients caused",
                                       .max = LINES_MAX}};
    return s;
}

int server_new_local(const struct server_opts *opts, int fd, struct server **ret,
                     uw_error *err)
{
    struct ucred who = {0};
    int type = 0;
    socklen_t len = sizeof type, who_len = sizeof who;

    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0 || type != SOCK_SEQPACKET ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &who_len) < 0)
        return fail(err, -ENOTSOCK,
                    "--local is for underwatt's use: standard input is not its socket "
                    "(does sudo log input here?)");
    auto_(server_free) struct server *s = new_server(opts, -1, true);
    if (!s)
        return fail(err, -ENOMEM, "out of memory");
    int r = peer_new(s, fd, &who, err);
    if (r == 0)
        *ret = take(s);
    return r;
}

int server_new_listening(const struct server_opts *opts, int fd, struct server **ret,
                         uw_error *err)
{
    auto_(server_free) struct server *s = new_server(opts, fd, false);

    if (!s) {
        (void)close(fd);
        return fail(err, -ENOMEM, "out of memory");
    }
    int r = loop_fd_new(opts->loop, fd, LOOP_READ, on_connect, s, &s->source, err);
    if (r == 0)
        *ret = take(s);
    return r;
}

int server_bind(const char *path, uid_t owner, int *ret_fd, uw_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(path);
    auto_(fd_close) int fd =
        socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (len >= sizeof address.sun_path)
        return fail(err, -ENAMETOOLONG, "%s: too long for a socket", path);
    memcpy(address.sun_path, path, len + 1);
    (void)unlink(path);
    mode_t mask = umask(0177);
    int r = fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) < 0 ||
                    (owner != (uid_t)-1 && lchown(path, owner, (gid_t)-1) < 0) ||
                    listen(fd, PEERS_MAX) < 0
                ? -errno
                : 0;
    (void)umask(mask);
    if (r < 0)
        return fail(err, r, "%s: %s", path, strerror(-r));
    *ret_fd = fd_take(&fd);
    return 0;
}
