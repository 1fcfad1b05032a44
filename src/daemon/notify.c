#include "daemon/notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "base/auto.h"
#include "base/error.h"

int notify(const char *socket_name, const char *state, uw_error *err)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};

    if (!socket_name || !*socket_name)
        return 0;
    size_t len = strlen(socket_name);
    if ((socket_name[0] != '/' && socket_name[0] != '@') || len >= sizeof addr.sun_path)
        return fail(err, -EINVAL, "NOTIFY_SOCKET: '%.80s' is not a socket name",
                    socket_name);
    memcpy(addr.sun_path, socket_name, len);
    if (addr.sun_path[0] == '@') /* abstract namespace */
        addr.sun_path[0] = '\0';

    auto_(fd_close) int fd =
        socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return fail(err, -errno, "NOTIFY_SOCKET: %s", strerror(errno));
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&addr,
               size) < 0)
        return fail(err, -errno, "NOTIFY_SOCKET %.80s: %s", socket_name, strerror(errno));
    return 0;
}

int notify_reloading(const char *socket_name, uw_error *err)
{
    struct timespec now = {0};
    char text[80];

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    (void)snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
                   (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000);
    return notify(socket_name, text, err);
}

static bool line_is(const char *line, size_t n, const char *word)
{
    return n == strlen(word) && memcmp(line, word, n) == 0;
}

bool notify_beats(const char *text, size_t n)
{
    const char *end = text + n;

    for (const char *line = text, *stop; line < end; line = stop + 1) {
        stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop)
            stop = end;
        size_t len = (size_t)(stop - line);
        if (line_is(line, len, "WATCHDOG=1") || line_is(line, len, "READY=1"))
            return true;
    }
    return false;
}
