#include "io/http-owner.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct question {
    struct nlmsghdr head;
    struct inet_diag_req_v2 body;
};

union end {
    struct sockaddr sa;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
};

static uint16_t port_of(const union end *e, void *ret_address)
{
    if (e->sa.sa_family == AF_INET) {
        memcpy(ret_address, &e->in.sin_addr, sizeof e->in.sin_addr);
        return e->in.sin_port;
    }
    memcpy(ret_address, &e->in6.sin6_addr, sizeof e->in6.sin6_addr);
    return e->in6.sin6_port;
}

/* Finds the other end's socket, whose source is the peer. */
static int question_of(int fd, struct question *q)
{
    union end ours = {0}, theirs = {0};
    socklen_t n = sizeof ours, m = sizeof theirs;

    if (getsockname(fd, &ours.sa, &n) < 0 || getpeername(fd, &theirs.sa, &m) < 0)
        return -errno;
    if (theirs.sa.sa_family != AF_INET && theirs.sa.sa_family != AF_INET6)
        return -EAFNOSUPPORT;
    *q = (struct question){
        .head = {.nlmsg_len = sizeof *q,
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST},
        .body = {.sdiag_family = (uint8_t)theirs.sa.sa_family,
                 .sdiag_protocol = IPPROTO_TCP,
                 .id.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}};
    q->body.id.idiag_sport = port_of(&theirs, q->body.id.idiag_src);
    q->body.id.idiag_dport = port_of(&ours, q->body.id.idiag_dst);
    return 0;
}

/* A closing socket has no owner any more: the kernel reports 0, which is root. */
static int owner_in(const void *bytes, size_t n, uid_t *ret)
{
    const struct nlmsghdr *head = bytes;
    const struct inet_diag_msg *msg = NLMSG_DATA(head);

    if (n < NLMSG_LENGTH(sizeof *msg) || head->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
        msg->idiag_state != TCP_ESTABLISHED)
        return -ENOENT;
    *ret = msg->idiag_uid;
    return 0;
}

int http_owner(int fd, uid_t *ret)
{
    struct question q;
    _Alignas(struct nlmsghdr) char answer[1024];

    int r = question_of(fd, &q);
    if (r < 0)
        return r;
    int diag =
        socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
    if (diag < 0)
        return -errno;
    ssize_t n =
        send(diag, &q, sizeof q, 0) < 0 ? -1 : recv(diag, answer, sizeof answer, 0);
    r = n < 0 ? -errno : owner_in(answer, (size_t)n, ret);
    (void)close(diag);
    return r;
}
