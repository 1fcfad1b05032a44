#include "actuator/heart.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "base/units.h"

struct heart {
    struct loop *loop;
    struct loop_timer *timer;
    int fd;
};

static void tell(const struct heart *h, const char *text)
{
    (void)send(h->fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static int on_beat(struct loop_timer *timer, uint64_t now, void *user)
{
    (void)timer;
    (void)now;
    tell(user, "WATCHDOG=1");
    return 0;
}

void heart_free(struct heart *h)
{
    if (!h)
        return;
    loop_timer_free(h->timer);
    if (h->fd >= 0)
        (void)close(h->fd);
    free(h);
}

int heart_new(const char *socket_name, struct loop *loop, struct heart **ret,
              uw_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    *ret = NULL;
    if (!socket_name || !*socket_name)
        return 0;
    size_t len = strlen(socket_name);
    if ((socket_name[0] != '/' && socket_name[0] != '@') ||
        len >= sizeof address.sun_path)
        return fail(err, -EINVAL, "NOTIFY_SOCKET: '%.80s' is not the name of a socket",
                    socket_name);
    memcpy(address.sun_path, socket_name, len);
    if (address.sun_path[0] == '@') /* the abstract name space */
        address.sun_path[0] = '\0';
    auto_(heart_free) struct heart *h = calloc(1, sizeof *h);
    if (!h)
        return fail(err, -ENOMEM, "out of memory");
    h->loop = loop;
    h->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (h->fd < 0 ||
        connect(h->fd, (const struct sockaddr *)&address,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0)
        return fail(err, -errno, "NOTIFY_SOCKET %.80s: %s", socket_name, strerror(errno));
    *ret = take(h);
    return 0;
}

int heart_ready(struct heart *h, uw_error *err)
{
    if (!h)
        return 0;
    tell(h, "READY=1");
    return loop_timer_new(h->loop, loop_now_ns(h->loop), HEART_BEAT_MS * NS_PER_MS,
                          on_beat, h, &h->timer, err);
}

void heart_stopping(struct heart *h)
{
    if (h)
        tell(h, "STOPPING=1");
}
