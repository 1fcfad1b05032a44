#include "jobs/job-phase.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/units.h"

/* Power settles this long after a limit changes; samples from that time are ignored. */
#define SETTLE_S 3.0

struct heard {
    struct job_phase_board board;
    struct sampler_ear ear;
    bool known; /* power_w was read */
    bool fresh; /* power_w was read in this round */
    double power_w;
    double sm_util, mem_util; /* of this round; NAN: not read in this round */
};

struct job_phase {
    struct loop *loop;
    struct phases *phases; /* NULL: not listening to any board */
    struct heard heard[BOARDS_MAX];
    size_t n;
    uint64_t deaf_until_ns; /* samples before this time are ignored */
    enum phase_kind kind; /* result of the last round; these three as in job_phase_view */
    uint64_t since_ns, known_ns;
};

static bool all_told(const struct job_phase *f)
{
    bool all = true;

    for (size_t i = 0; i < f->n; i++)
        all &= f->heard[i].fresh;
    return all;
}

/* Uses the utilisation of the first board only: merging boards that are read in turn
 * would overstate how often the utilisation is read.
 */
static void end_round(struct job_phase *f, uint64_t at_ns)
{
    struct activity a = {.at_ns = at_ns,
                         .sm_util = f->heard[0].sm_util,
                         .mem_util = f->heard[0].mem_util,
                         .sm_mhz = NAN,
                         .energy_j = NAN};
    double n = 0;

    for (size_t i = 0; i < f->n; i++) {
        struct heard *h = &f->heard[i];
        if (h->known) {
            a.power_w += h->power_w;
            n++;
        }
        h->fresh = false;
    }
    f->heard[0].sm_util = f->heard[0].mem_util = NAN;
    a.power_w /= n;
    if (at_ns < f->deaf_until_ns)
        return;
    (void)phases_feed(f->phases, &a);
    enum phase_kind kind = phases_now(f->phases);
    if (kind != f->kind || phases_since(f->phases) != f->since_ns)
        f->known_ns = loop_now_ns(f->loop);
    f->kind = kind;
    f->since_ns = phases_since(f->phases);
}

static void hear(size_t board, const struct gpu_sample *s, void *user)
{
    struct job_phase *f = user;
    struct heard *h = &f->heard[board];
    uint64_t at_ns = s->began_ns + (s->at_ns - s->began_ns) / 2;

    if (s->has & GPU_HAS_UTIL) {
        h->sm_util = s->util_gpu;
        h->mem_util = s->util_mem;
    }
    if (!(s->has & (GPU_HAS_INSTANT | GPU_HAS_POWER)))
        return;
    if (h->fresh) /* a second sample of this board: do not wait for slower boards */
        end_round(f, at_ns);
    h->power_w = s->has & GPU_HAS_INSTANT ? s->instant_w : s->power_w;
    h->known = h->fresh = true;
    if (all_told(f))
        end_round(f, at_ns);
}

static void rest(struct job_phase *f)
{
    for (size_t i = 0; i < f->n; i++)
        sampler_deaf(f->heard[i].board.sampler, f->heard[i].board.at, &f->heard[i].ear);
    f->n = 0;
    phases_free(f->phases);
    f->phases = NULL;
    f->kind = PHASE_UNKNOWN;
    f->since_ns = f->known_ns = f->deaf_until_ns = 0;
}

int job_phase_hear(struct job_phase *f, const struct job_phase_board *board, size_t n)
{
    rest(f);
    if (n == 0)
        return 0;
    if (n > BOARDS_MAX)
        n = BOARDS_MAX;
    int r = phases_new(&f->phases);
    if (r < 0)
        return r;
    for (size_t i = 0; i < n; i++) {
        struct heard *h = &f->heard[i];
        *h = (struct heard){.board = board[i], .sm_util = NAN, .mem_util = NAN};
        h->ear = (struct sampler_ear){
            .fn = hear, .user = f, .board = i, .overhears = true, .patient = true};
        sampler_hear(board[i].sampler, board[i].at, &h->ear);
    }
    f->n = n;
    return 0;
}

void job_phase_on_cap(struct job_phase *f, double most_w)
{
    if (!f || !f->phases)
        return;
    phases_rescale(f->phases, most_w);
    f->deaf_until_ns = loop_now_ns(f->loop) + ns_of_s(SETTLE_S);
}

void job_phase_view(const struct job_phase *f, struct job_phase_view *ret)
{
    *ret = (struct job_phase_view){.kind = PHASE_UNKNOWN};
    if (f && f->phases)
        *ret = (struct job_phase_view){f->kind, f->since_ns, f->known_ns};
}

int job_phase_new(struct loop *loop, struct job_phase **ret)
{
    struct job_phase *f = calloc(1, sizeof *f);

    if (!f)
        return -ENOMEM;
    f->loop = loop;
    *ret = f;
    return 0;
}

void job_phase_free(struct job_phase *f)
{
    if (!f)
        return;
    rest(f);
    free(f);
}
