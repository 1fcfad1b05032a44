#include "node/doors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "node/api/api.h"
#include "node/jobdoor.h"

struct doors {
    struct node *node;
    struct jobdoor *jobs;
    struct api *api;
};

/* A job's page, from whoever's process it is: the job has to be theirs. */
static int on_page(uint64_t job, uid_t uid, int fd, uw_error *err, void *user)
{
    struct doors *d = user;
    char name[32];
    struct node_who who = {
        .uid = uid, .admin = uid == 0, .may_claim = true, .name = name};

    (void)snprintf(name, sizeof name, "uid %u", (unsigned)uid);
    return node_job_page(d->node, &who, job, fd, err);
}

void doors_close(struct doors *d)
{
    if (!d)
        return;
    api_free(d->api);
    jobdoor_free(d->jobs);
    free(d);
}

int doors_open(struct loop *loop, struct node *node, const struct node_config *config,
               doors_reload_fn reload, void *user, struct doors **ret, uw_error *err)
{
    auto_(doors_close) struct doors *d = calloc(1, sizeof *d);

    if (!d)
        return fail(err, -ENOMEM, "out of memory");
    d->node = node;
    int r = 0;
    if (config->api.job_socket[0])
        r = jobdoor_new(loop, config->api.job_socket, on_page, d, &d->jobs, err);
    if (r == 0)
        r = api_new(loop, node, config, &d->api, err);
    if (r < 0)
        return r;
    api_on_reload(d->api, reload, user);
    *ret = take(d);
    return 0;
}

int doors_configure(struct doors *d, const struct node_config *config, uw_error *err)
{
    return api_configure(d->api, config, err);
}
