#include "slurm/client.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/units.h"

uint64_t client_now_ns(void)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Waits until the socket is ready, but checks at least once, however late: 0, -ETIMEDOUT
 * at the deadline, -errno.
 */
static int wait_ready(int fd, short events, uint64_t until_ns)
{
    for (;;) {
        uint64_t now = client_now_ns(), left_ns = now < until_ns ? until_ns - now : 0;
        struct timespec left = {(time_t)(left_ns / NS_PER_S), (long)(left_ns % NS_PER_S)};
        struct pollfd p = {.fd = fd, .events = events};
        int r = ppoll(&p, 1, &left, NULL);
        if (r > 0)
            return 0;
        if (r < 0 && errno != EINTR)
            return -errno;
        if (r == 0 || left_ns == 0)
            return -ETIMEDOUT;
    }
}

static int send_all(int fd, const char *bytes, size_t len, uint64_t until_ns)
{
    for (;;) {
        bool late = client_now_ns() >= until_ns;
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return -errno;
        if (n > 0) {
            bytes += n;
            len -= (size_t)n;
        }
        if (len == 0)
            return 0;
        int r = late ? -ETIMEDOUT : wait_ready(fd, POLLOUT, until_ns);
        if (r < 0)
            return r;
    }
}

static int receive(int fd, uint64_t until_ns, char ret[MESSAGE_KEPT])
{
    char dropped[1024];
    size_t kept = 0, total = 0;
    bool late = false;

    while (!late) {
        late = client_now_ns() >= until_ns;
        int r = wait_ready(fd, POLLIN, until_ns);
        if (r < 0)
            return r;
        bool full = kept == MESSAGE_KEPT;
        ssize_t n = full ? recv(fd, dropped, sizeof dropped, 0)
                         : recv(fd, ret + kept, MESSAGE_KEPT - kept, 0);
        if (n == 0)
            return (int)kept;
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return -errno;
        if (n < 0)
            continue;
        total += (size_t)n;
        kept += full ? 0 : (size_t)n;
        if (total > MESSAGE_ANSWER)
            return -EMSGSIZE;
        if (!full && message_complete(ret, kept))
            return (int)kept;
    }
    return -ETIMEDOUT;
}

int client_ask(const char *path, const char *request, size_t len, uint64_t until_ns,
               char ret[MESSAGE_KEPT])
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t n = strlen(path);

    if (n >= sizeof to.sun_path)
        return -ENAMETOOLONG;
    memcpy(to.sun_path, path, n);
    auto_(fd_close) int fd =
        socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    /* A unix socket connects at once; EAGAIN: its queue is full. */
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) < 0)
        return -errno;
    int r = send_all(fd, request, len, until_ns);
    uint64_t least_ns = client_now_ns() + CLIENT_LEAST_NS;
    return r < 0 ? r : receive(fd, until_ns > least_ns ? until_ns : least_ns, ret);
}
