#include "io/file-save.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "io/file.h"

struct saving {
    char *path, *text; /* text is NULL: the file is to be removed */
    void (*fn)(void *user);
    void *user;
};

static void saving_free(struct saving *s)
{
    if (!s)
        return;
    free(s->path);
    free(s->text);
    free(s);
}
DEFINE_AUTO(struct saving *, saving_free);

static int save_work(struct loop *loop, void *work)
{
    struct saving *s = work;
    (void)loop;

    if (!s->text)
        return unlink(s->path) < 0 && errno != ENOENT ? -errno : 0;
    return file_write(s->path, s->text, strlen(s->text), 0600, NULL);
}

static int save_done(struct loop *loop, void *work, int r)
{
    struct saving *s = work;
    void (*fn)(void *user) = s->fn;
    void *user = s->user;
    (void)loop;

    if (r != -ETIMEDOUT) /* otherwise the worker may still use it */
        saving_free(s);
    if (fn)
        fn(user);
    return 0;
}

static int submit(struct loop_worker *worker, const char *path, const char *text,
                  void (*fn)(void *user), void *user)
{
    auto_(saving_free) struct saving *s = calloc(1, sizeof *s);

    if (!s || !worker || !path[0])
        return -ENOENT;
    s->path = strdup(path);
    s->text = text ? strdup(text) : NULL;
    s->fn = fn;
    s->user = user;
    if (!s->path || (text && !s->text))
        return -ENOMEM;
    struct loop_work work = {.fn = save_work, .done = save_done, .work = s};
    int r = loop_worker_submit(worker, &work);
    if (r == 0)
        (void)take(s);
    return r;
}

void file_save(struct loop_worker *worker, const char *path, const char *text,
               void (*fn)(void *user), void *user)
{
    if (submit(worker, path, text, fn, user) < 0 && fn)
        fn(user);
}
