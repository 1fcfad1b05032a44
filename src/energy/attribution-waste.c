/* Classifies stretches as waste: collects the boards' utilisation and the state of each
 * board for core/job/waste.h.
 */
#include "base/units.h"
#include "energy/attribution-inside.h"

enum { IDLE_S = 10 }; /* for a board without a job, before its mean power is known */

void attribution_on_sample(size_t board, const struct gpu_sample *s, void *user)
{
    struct account *a = user;
    (void)board;

    if (!a->open || !(s->has & GPU_HAS_UTIL))
        return;
    const double util = s->util_gpu * 0.01;
    attribution_add_readings(&a->util, &(struct readings){1, util, util});
}

void attribution_add_readings(struct readings *to, const struct readings *r)
{
    to->n += r->n;
    to->sum += r->sum;
    to->top = r->top > to->top ? r->top : to->top;
}

static struct waste_board board_of(const struct account *a, const struct stretch *s)
{
    const struct attribution_opts *o = &a->book->opts;
    const struct board_view *v = board_view(boards_at(o->boards, a->at));
    double idle_s = a->sum.use_s[WASTE_NOBODY];

    return (struct waste_board){
        .idle_w = idle_s >= IDLE_S ? a->sum.use_j[WASTE_NOBODY] / idle_s : 0,
        .limit_w = v->has_limits ? w_of_mw(v->limits.default_mw) : 0,
        .cap_w = w_of_mw(s->cap_mw)};
}

/* Whether the board has other jobs than in the stretch before. */
static bool is_anew(struct account *a, const struct stretch *s)
{
    bool anew = s->n != a->n_jobs;

    for (size_t i = 0; i < s->n && !anew; i++) {
        bool was = false;
        for (size_t k = 0; k < a->n_jobs; k++)
            was |= a->job[k] == s->part[i].user.job;
        anew = !was;
    }
    a->n_jobs = s->n;
    for (size_t i = 0; i < s->n; i++)
        a->job[i] = s->part[i].user.job;
    return anew;
}

enum waste_state attribution_judge(struct account *a, const struct stretch *s,
                                   const struct meter_result *m)
{
    const struct waste_limits *limits = a->book->opts.waste;
    struct waste_seen seen = {.begin_ns = s->begin_ns,
                              .end_ns = s->end_ns,
                              .n = s->util.n,
                              .mean = s->util.n ? s->util.sum / s->util.n : 0,
                              .top = s->util.top,
                              .power_w = -1};

    if (!limits || !a->book->opts.boards)
        return WASTE_STATE_BUSY;
    bool anew = is_anew(a, s) || s->n == 0 || s->unsure;
    if (m && s->end_ns > s->begin_ns)
        seen.power_w = m->energy_j / s_between(s->begin_ns, s->end_ns);
    struct waste_board board = board_of(a, s);
    enum waste_state state = waste_step(&a->track, limits, &board, &seen, anew);
    if (s->n == 0 || s->unsure) /* unattributed time belongs to no job */
        a->track = (struct waste_track){0};
    return s->n == 0 || s->unsure ? WASTE_STATE_BUSY : state;
}

/* When the present state began: includes the pause, and the time over which the
 * utilisation was averaged.
 */
static uint64_t since(const struct account *a, const struct stretch *s,
                      enum waste_class class)
{
    uint64_t under_ns = a->book->opts.waste ? a->book->opts.waste->under_ns : 0;

    if (class == WASTE_WORKING)
        return 0;
    if (class == WASTE_HELD || class == WASTE_ALLOCATED)
        return a->track.quiet_ns;
    return class == WASTE_UNDER && s->begin_ns > under_ns ? s->begin_ns - under_ns
                                                          : s->begin_ns;
}

void attribution_judged(struct account *a, const struct stretch *s,
                        enum waste_class class)
{
    struct attribution_waste *w = &a->waste;
    bool more = class == WASTE_HELD && w->class == WASTE_ALLOCATED;

    if (a->judged_ns == s->begin_ns && !more)
        return; /* the row of another job in the same stretch */
    a->judged_ns = s->begin_ns;
    if (class == w->class && class != WASTE_HELD && class != WASTE_ALLOCATED)
        return;
    *w = (struct attribution_waste){class, since(a, s, class)};
}
