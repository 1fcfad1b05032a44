/* Writes dcgm-exporter's job files. */
#include "api/mapping.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "io/file.h"

enum { BOARDS = 64 };

struct mapping {
    char *path; /* for messages */
    int dir;
    struct text now;
    struct {
        unsigned index;
        char *text; /* the file's content; NULL: unknown */
    } file[BOARDS];
    size_t n;
};

int mapping_new(const char *dir, struct mapping **ret, uw_error *err)
{
    auto_(mapping_free) struct mapping *m = calloc(1, sizeof *m);

    if (!m)
        return fail(err, -ENOMEM, "no memory");
    m->dir = -1;
    m->path = strdup(dir);
    if (!m->path)
        return fail(err, -ENOMEM, "no memory");
    *ret = take(m);
    return 0;
}

/* ---- one file ---- */

/* Written to a temporary file and renamed: a reader sees the old text or the new one.
 * Not synced: after a crash of the machine no job is running.
 */
static int put(const struct mapping *m, unsigned index, const char *text, uw_error *err)
{
    char name[16], beside[24];

    (void)snprintf(name, sizeof name, "%u", index);
    (void)snprintf(beside, sizeof beside, ".%u.new", index);
    (void)unlinkat(m->dir, beside, 0); /* left by a killed daemon */
    auto_(fd_close) int fd = openat(
        m->dir, beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    int r = fd < 0 ? -errno : file_write_all(fd, text, strlen(text));
    if (r == 0 && fchmod(fd, 0644) < 0)
        r = -errno;
    if (r == 0 && renameat(m->dir, beside, m->dir, name) < 0)
        r = -errno;
    if (r < 0) {
        if (fd >= 0)
            (void)unlinkat(m->dir, beside, 0);
        return fail(err, r, "%s/%s: %s", m->path, name, strerror(-r));
    }
    return 0;
}

/* ---- content ---- */

static bool is_plain(const char *id)
{
    for (const char *p = id; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("._+-[]", *p))
            return false;
    return *id != '\0';
}

/* The Slurm id of a job, as Slurm's prolog or the process' cgroup gives it; a name that a
 * user gave to a job is not trusted.  NULL: none.
 */
static const char *slurm_id(const struct job_entry *job)
{
    static const char slurm[] = "slurm:";

    if (job->source == JOB_REGISTERED && strncmp(job->name, slurm, sizeof slurm - 1) == 0)
        return job->name + sizeof slurm - 1;
    for (size_t i = 0; job->source == JOB_FOUND && i < job->n_labels; i++)
        if (strcmp(job->label[i].key, "slurm") == 0)
            return job->label[i].value;
    return NULL;
}

static void put_job(struct text *t, const struct job_entry *job)
{
    const char *id = slurm_id(job);

    if (id && is_plain(id))
        text_put(t, id);
    else
        text_put_u64(t, job->id);
    text_add(t, "\n", 1);
}

static int board_text(struct mapping *m, const struct node_view *v, size_t board)
{
    text_clear(&m->now);
    text_put(&m->now, "");
    for (size_t i = 0; i < v->n_jobs; i++) {
        const struct job_entry *job = v->job[i].job;
        if (!job->ended_ns && job->boards >> board & 1)
            put_job(&m->now, job);
    }
    return m->now.failed;
}

static int update_one(struct mapping *m, const struct node_view *v, size_t board,
                      uw_error *err)
{
    unsigned index = v->board[board].info->index;
    int r = board_text(m, v, board);

    if (r < 0)
        return fail(err, r, "%s: no memory", m->path);
    if (m->file[board].text && m->file[board].index == index &&
        strcmp(m->file[board].text, m->now.at) == 0)
        return 0;
    char *kept = strdup(m->now.at);
    if (!kept)
        return fail(err, -ENOMEM, "%s: no memory", m->path);
    free(take(m->file[board].text));
    r = put(m, index, kept, err);
    if (r < 0) {
        free(kept);
        return r;
    }
    m->file[board].index = index;
    m->file[board].text = kept;
    return 0;
}

int mapping_update(struct mapping *m, const struct node_view *view, uw_error *err)
{
    size_t n = view->n_boards < BOARDS ? view->n_boards : BOARDS;
    int first = 0;

    if (m->dir < 0)
        m->dir = open(m->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (m->dir < 0)
        return fail(err, -errno, "%s: %s (dcgm-exporter's folder of jobs)", m->path,
                    strerror(errno));
    for (size_t i = 0; i < n; i++) {
        int r = update_one(m, view, i, first == 0 ? err : NULL);
        if (first == 0)
            first = r;
    }
    if (n > m->n)
        m->n = n;
    if (first < 0) { /* the folder may have been replaced: open it again */
        (void)close(m->dir);
        m->dir = -1;
    }
    return first;
}

void mapping_free(struct mapping *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n; i++) {
        if (m->dir >= 0 && m->file[i].text && m->file[i].text[0])
            (void)put(m, m->file[i].index, "", NULL);
        free(m->file[i].text);
    }
    text_free(&m->now);
    if (m->dir >= 0)
        (void)close(m->dir);
    free(m->path);
    free(m);
}
