#include "daemon/listeners.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/api.h"
#include "base/error.h"
#include "jobs/page-socket.h"

struct listeners {
    struct node *node;
    struct page_socket *jobs;
    struct api *api;
};

/* A process of user uid sends a job's progress page; the job must belong to that user. */
static int on_page(uint64_t job, uid_t uid, int fd, uw_error *err, void *user)
{
    struct listeners *d = user;
    char name[32];
    struct node_who who = {
        .uid = uid, .admin = uid == 0, .may_claim = true, .name = name};

    (void)snprintf(name, sizeof name, "uid %u", (unsigned)uid);
    return node_job_page(d->node, &who, job, fd, err);
}

/* A process of user uid requests the page of a job of that user. */
static int on_take(uint64_t job, uid_t uid, uw_error *err, void *user)
{
    const struct listeners *d = user;

    return node_job_page_of(d->node, uid, job, err);
}

void listeners_close(struct listeners *d)
{
    if (!d)
        return;
    api_free(d->api);
    page_socket_free(d->jobs);
    free(d);
}

int listeners_open(struct loop *loop, struct node *node, const struct node_config *config,
                   listeners_reload_fn reload, void *user, struct listeners **ret,
                   uw_error *err)
{
    auto_(listeners_close) struct listeners *d = calloc(1, sizeof *d);

    if (!d)
        return fail(err, -ENOMEM, "out of memory");
    d->node = node;
    const struct page_socket_opts pages = {on_page, on_take, d};
    int r = 0;
    if (config->api.job_socket[0])
        r = page_socket_new(loop, config->api.job_socket, &pages, &d->jobs, err);
    if (r == 0)
        r = api_new(loop, node, config, &d->api, err);
    if (r < 0)
        return r;
    api_on_reload(d->api, reload, user);
    *ret = take(d);
    return 0;
}

int listeners_configure(struct listeners *d, const struct node_config *config,
                        uw_error *err)
{
    return api_configure(d->api, config, err);
}
