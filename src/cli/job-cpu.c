#include "cli/job-cpu.h"

#include <errno.h>
#include <stdlib.h>

#include "board/sampler.h"
#include "gpu/backends.h"

struct job_cpu {
    struct loop *loop;
    struct boards *set;
    struct board *domain[JOB_CPU_MAX];
    size_t n;
    struct sampler *sampler; /* NULL: no counter can be read */
    bool over;
    struct job_board *out; /* of job_cpu_energy() */
    size_t n_out;
};

static int on_open(struct boards *set, int r, const uw_error *err, void *user)
{
    struct job_cpu *c = user;
    (void)err;

    for (size_t i = 0; r == 0 && i < boards_count(set) && c->n < JOB_CPU_MAX; i++)
        if (board_view(boards_at(set, i))->first.has & GPU_HAS_ENERGY)
            c->domain[c->n++] = boards_at(set, i);
    c->over = true;
    loop_stop(c->loop, 0);
    return 0;
}

int job_cpu_new(struct loop *loop, const char *source, struct gpu_clock clock,
                struct job_cpu **ret)
{
    const struct gpu_open_opts opts = {.source = source, .clock = clock};
    const struct sampler_opts sampling = {0};
    auto_(job_cpu_free) struct job_cpu *c = calloc(1, sizeof *c);

    if (!c)
        return -ENOMEM;
    c->loop = loop;
    if (boards_open(loop, &gpu_processors, &opts, on_open, c, &c->set, NULL) == 0)
        (void)loop_run(loop, NULL);
    if (c->over && c->n > 0)
        (void)sampler_new(loop, c->domain, c->n, &sampling, &c->sampler, NULL);
    *ret = take(c);
    return 0;
}

void job_cpu_free(struct job_cpu *c)
{
    if (!c)
        return;
    sampler_free(c->sampler);
    boards_free(c->set);
    free(c);
}

void job_cpu_mark(struct job_cpu *c, uint64_t now_ns)
{
    if (c && c->sampler)
        sampler_mark(c->sampler, now_ns);
}

static int on_energy(struct sampler *sampler, const struct sampler_window *w, void *user)
{
    struct job_cpu *c = user;
    (void)sampler;

    for (size_t i = 0; w->r == 0 && i < c->n; i++)
        c->out[c->n_out++] = (struct job_board){
            .info = board_view(c->domain[i])->info, .used = true, .energy = w->board[i]};
    c->over = true;
    loop_stop(c->loop, 0);
    return 0;
}

size_t job_cpu_energy(struct job_cpu *c, uint64_t begin_ns, uint64_t end_ns,
                      struct job_board ret[static JOB_CPU_MAX])
{
    if (!c || !c->sampler)
        return 0;
    c->over = false;
    c->out = ret;
    if (sampler_window(c->sampler, begin_ns, end_ns, on_energy, c) == 0)
        (void)loop_run(c->loop, NULL);
    if (!c->over) /* interrupted */
        sampler_forget(c->sampler, c);
    return c->n_out;
}
