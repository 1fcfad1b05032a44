#include "io/touches.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/error.h"
#include "base/units.h"
#include "io/loop.h"

struct touched {
    struct touched *next;
    struct touches *all;
    int wd;
    void (*fn)(void *user);
    void *user;
    bool told; /* notified in the call under way */
};

struct touches {
    struct loop *loop;
    int fd;
    struct loop_fd *source; /* NULL: not watched */
    struct loop_timer *rest;
    struct touched *first;
};

static struct touched *find(const struct touches *t, int wd)
{
    for (struct touched *f = t->first; f; f = f->next)
        if (f->wd == wd)
            return f;
    return NULL;
}

static void note_all(const struct touches *t)
{
    char buf[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t n = read(t->fd, buf, sizeof buf);

    for (ssize_t at = 0; at < n;) {
        const struct inotify_event *e = (const void *)(buf + at);
        struct touched *f = find(t, e->wd);
        if (f)
            f->told = true;
        at += (ssize_t)(sizeof *e + e->len);
    }
}

/* Finds each one again, because fn may have removed others. */
static void tell_all(struct touches *t)
{
    struct touched *f = t->first;

    while (f) {
        if (f->told) {
            f->told = false;
            f->fn(f->user);
            f = t->first;
        } else {
            f = f->next;
        }
    }
}

static int touches_on_event(struct loop_fd *source, int fd, int events, void *user)
{
    struct touches *t = user;
    (void)source;
    (void)fd;
    (void)events;

    loop_fd_free(take(t->source));
    loop_timer_set(t->rest, loop_now_ns(t->loop) + TOUCHES_REST_MS * NS_PER_MS, 0);
    note_all(t);
    tell_all(t);
    return 0;
}

static int touches_on_rest(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct touches *t = user;
    (void)timer;

    if (!t->source &&
        loop_fd_new(t->loop, t->fd, LOOP_READ, touches_on_event, t, &t->source, NULL) < 0)
        loop_timer_set(t->rest, now_ns + NS_PER_S, 0);
    return 0;
}

int touches_new(struct loop *loop, struct touches **ret, uw_error *err)
{
    if (loop_is_virtual(loop))
        return -ENOTSUP;
    auto_(touches_free) struct touches *t = calloc(1, sizeof *t);
    if (!t)
        return fail(err, -ENOMEM, "out of memory");
    t->loop = loop;
    t->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (t->fd < 0)
        return fail(err, -errno, "inotify: %s", strerror(errno));
    int r = loop_timer_new(loop, UINT64_MAX, 0, touches_on_rest, t, &t->rest, err);
    if (r == 0)
        r = loop_fd_new(loop, t->fd, LOOP_READ, touches_on_event, t, &t->source, err);
    if (r < 0)
        return r;
    *ret = take(t);
    return 0;
}

void touches_free(struct touches *t)
{
    if (!t)
        return;
    loop_fd_free(t->source);
    loop_timer_free(t->rest);
    if (t->fd >= 0)
        (void)close(t->fd);
    free(t);
}

int touches_add(struct touches *t, int fd, void (*fn)(void *user), void *user,
                struct touched **ret)
{
    char path[40];

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int wd = inotify_add_watch(t->fd, path, IN_ATTRIB);
    if (wd < 0)
        return -errno;
    if (find(t, wd))
        return -EEXIST;
    struct touched *f = calloc(1, sizeof *f);
    if (!f) {
        (void)inotify_rm_watch(t->fd, wd);
        return -ENOMEM;
    }
    *f = (struct touched){.next = t->first, .all = t, .wd = wd, .fn = fn, .user = user};
    t->first = f;
    *ret = f;
    return 0;
}

void touches_remove(struct touched *file)
{
    if (!file)
        return;
    struct touched **at = &file->all->first;
    while (*at != file)
        at = &(*at)->next;
    *at = file->next;
    (void)inotify_rm_watch(file->all->fd, file->wd);
    free(file);
}
