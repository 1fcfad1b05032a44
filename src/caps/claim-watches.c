#include "caps/claim-watches.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "io/proc.h"

enum { WATCHES_MAX = 256 };

struct watch {
    struct claim_watches *of; /* NULL: free */
    uint64_t claim;           /* 0: not assigned */
    int fd;
    struct loop_fd *source;
};

struct claim_watches {
    struct loop *loop;
    claim_watches_fn fn;
    void *user;
    struct watch watch[WATCHES_MAX];
};

static void stop(struct watch *w)
{
    loop_fd_free(w->source);
    if (w->fd >= 0)
        (void)close(w->fd);
    *w = (struct watch){.fd = -1};
}

int claim_watches_new(struct loop *loop, claim_watches_fn fn, void *user,
                      struct claim_watches **ret)
{
    struct claim_watches *w = calloc(1, sizeof *w);

    if (!w)
        return -ENOMEM;
    w->loop = loop;
    w->fn = fn;
    w->user = user;
    *ret = w;
    return 0;
}

void claim_watches_free(struct claim_watches *w)
{
    for (size_t i = 0; w && i < WATCHES_MAX; i++)
        if (w->watch[i].of)
            stop(&w->watch[i]);
    free(w);
}

static int on_process_end(struct loop_fd *source, int fd, int events, void *user)
{
    struct watch *w = user;
    struct claim_watches *of = w->of;
    uint64_t claim = w->claim;
    (void)source;
    (void)fd;
    (void)events;

    stop(w);
    of->fn(claim, of->user);
    return 0;
}

static struct watch *find(const struct claim_watches *w, uint64_t claim)
{
    for (size_t i = 0; i < WATCHES_MAX; i++)
        if (w->watch[i].of && w->watch[i].claim == claim)
            return (struct watch *)&w->watch[i];
    return NULL;
}

int claim_watches_begin(struct claim_watches *w, pid_t pid, uint64_t start, uid_t uid,
                        uint64_t *ret_start, uw_error *err)
{
    struct proc_facts facts = {0};
    struct watch *free_one = NULL;
    int r = 0;

    for (size_t i = 0; i < WATCHES_MAX && !free_one; i++)
        free_one = w->watch[i].of ? NULL : &w->watch[i];
    if (!free_one)
        return fail(err, -E2BIG, "%d claims end with a process already", WATCHES_MAX);
    if (uid == (uid_t)-1) {
        r = proc_read("/proc", pid, &facts);
        uid = facts.uid;
    }
    if (r == 0)
        r = proc_open_pidfd("/proc", pid, start, uid, &facts);
    if (r < 0)
        return fail(err, r, "process %d: %s", (int)pid,
                    r == -EPERM ? "another user's" : strerror(-r));
    *free_one = (struct watch){.of = w, .fd = r};
    r = loop_fd_new(w->loop, free_one->fd, LOOP_READ, on_process_end, free_one,
                    &free_one->source, err);
    if (r < 0) {
        stop(free_one);
        return r;
    }
    if (ret_start)
        *ret_start = facts.start;
    return 0;
}

void claim_watches_assign(struct claim_watches *w, uint64_t claim)
{
    struct watch *pending = find(w, 0);

    if (pending && claim)
        pending->claim = claim;
    else if (pending)
        stop(pending);
}

bool claim_watches_has(const struct claim_watches *w, uint64_t claim)
{
    return find(w, claim) != NULL;
}

void claim_watches_end(struct claim_watches *w, uint64_t claim)
{
    for (struct watch *one; claim && (one = find(w, claim));)
        stop(one);
}
