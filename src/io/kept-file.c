#include "io/kept-file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/units.h"
#include "io/file.h"

enum {
    KEPT_MAX = 32 << 20, /* bytes */
    READ_MS = 5000,
    EVERY_S = 60, /* least time between two writes of one file */
};

void kept_file_init(struct kept_file *f, const char *folder, const char *name,
                    struct loop_worker *worker,
                    void (*say)(const char *state, const char *why, void *user),
                    void *user)
{
    *f = (struct kept_file){.worker = worker, .say = say, .user = user};
    if (folder && folder[0])
        (void)snprintf(f->path, sizeof f->path, "%s/%s.json", folder, name);
}

int kept_file_read(const struct kept_file *f, char **ret_text, size_t *ret_len,
                   uw_error *why)
{
    if (!f->path[0])
        return -ENOENT;
    return file_read_regular(f->path, KEPT_MAX, READ_MS, ret_text, ret_len, why);
}

void kept_file_say(const struct kept_file *f, const char *state, const char *why)
{
    f->say(state, why, f->user);
}

bool kept_file_due(const struct kept_file *f, uint64_t now_ns)
{
    return f->path[0] && !f->saving &&
           (!f->saved_ns || now_ns - f->saved_ns >= EVERY_S * NS_PER_S);
}

static int save(struct loop *loop, void *work)
{
    struct kept_file *f = work;
    (void)loop;

    return file_write(f->path, f->text, strlen(f->text), 0600, &f->why);
}

static int on_saved(struct loop *loop, void *work, int r)
{
    struct kept_file *f = work;
    (void)loop;

    f->saving = r == -ETIMEDOUT; /* the thread still uses the text */
    if (f->saving)
        return 0;
    free(take(f->text));
    if (r < 0 && !f->fails && !f->ends)
        kept_file_say(f, "not-written", f->why.text);
    f->fails = r < 0;
    return 0;
}

void kept_file_write(struct kept_file *f, char *text, uint64_t now_ns)
{
    const struct loop_work work = {.fn = save, .done = on_saved, .work = f};

    f->why = (uw_error){""};
    f->text = text;
    f->saving = loop_worker_submit(f->worker, &work) == 0;
    f->saved_ns = now_ns;
    if (!f->saving)
        free(take(f->text));
}
