#include "config/daemon-address.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "config/config.h"
#include "gpu/backends.h"

static int set_named(struct daemon_address *w, const char *path, uw_error *err)
{
    const char *slash = strrchr(path, '/');

    if (path[0] != '/')
        return fail(
            err, -EINVAL,
            "the daemon's socket (UNDERWATT_SOCKET): '%s' is not an absolute path", path);
    int n = snprintf(w->job_socket, sizeof w->job_socket, "%.*s/job.sock",
                     (int)(slash - path), path);
    if (strlen(path) >= sizeof w->socket || n < 0 || (size_t)n >= sizeof w->job_socket)
        return fail(err, -ENAMETOOLONG,
                    "the daemon's socket (UNDERWATT_SOCKET): a path has at most "
                    "%zu bytes",
                    sizeof w->socket - 1);
    memcpy(w->socket, path, strlen(path) + 1);
    w->named = true;
    return 0;
}

int daemon_address(const char *named, const char *boards, struct daemon_address *ret,
                   uw_error *err)
{
    struct daemon_address w = {.named = false};
    struct gpu_about about = {.simulated = false};
    struct node_config c;

    if (named && *named) {
        int r = set_named(&w, named, err);
        if (r == 0)
            *ret = w;
        return r;
    }
    if (gpu_boards_look(boards, &about, NULL) != 0)
        about.simulated = false;
    int r = node_config_init(&c, about.simulated ? about.state_dir : NULL, err);
    if (r < 0)
        return r;
    memcpy(w.socket, c.api.socket, sizeof w.socket);
    memcpy(w.job_socket, c.api.job_socket, sizeof w.job_socket);
    *ret = w;
    return 0;
}
