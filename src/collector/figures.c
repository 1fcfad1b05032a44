#include "collector/figures.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

void queues_init(struct queues *q)
{
    *q = (struct queues){.n = 1};
}

/* Replaces each character that names of signals may not have by _. */
static void word_of(const char *name, size_t len, char ret[static FIGURES_WORD])
{
    size_t n = len < FIGURES_WORD - 1 ? len : FIGURES_WORD - 1;

    for (size_t i = 0; i < n; i++)
        ret[i] = isalnum((unsigned char)name[i]) && name[i] > 0 ? name[i] : '_';
    ret[n] = '\0';
}

static struct queue_figures *of(struct queues *q, const char *name, size_t len)
{
    char word[FIGURES_WORD];

    word_of(name, len, word);
    for (size_t i = 1; i < q->n; i++)
        if (strcmp(q->of[i].word, word) == 0)
            return &q->of[i];
    if (len == 0 || q->n == FIGURES_MAX)
        return NULL;
    struct queue_figures *f = &q->of[q->n++];
    *f = (struct queue_figures){.depth = 0};
    memcpy(f->word, word, sizeof word);
    return f;
}

int queues_partition(struct queues *q, const char *name)
{
    return of(q, name, strlen(name)) ? 0 : -E2BIG;
}

static void add(struct queue_figures *f, const struct slurm_job *job, bool counts,
                int64_t now_s)
{
    int64_t since_s = job->eligible_s > 0 ? job->eligible_s : job->submit_s;
    int64_t wait_s = since_s > 0 && since_s < now_s ? now_s - since_s : 0;

    f->depth += counts ? job->tasks : 0;
    f->gpus += job->gpus * job->tasks;
    if (wait_s > f->wait_s)
        f->wait_s = wait_s;
}

void queues_add(struct queues *q, const struct jobs *jobs, int64_t now_s)
{
    for (size_t i = 0; i < jobs->n; i++) {
        const struct slurm_job *job = &jobs->job[i];
        if (!job_waits(job, now_s))
            continue;
        add(&q->of[0], job, job->het_offset == 0, now_s);
        for (const char *p = job->partition; *p; p += *p == ',') {
            size_t len = strcspn(p, ",");
            struct queue_figures *f = of(q, p, len);
            if (f)
                add(f, job, true, now_s);
            p += len;
        }
    }
}
