#include "found.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "stats.h"
#include "vfboards.h"
#include "vfplay.h"

static const char *const goals[] = {"slowdown:1.01", "slowdown:1.05", "slowdown:1.1",
                                    "energy",        "edp",           "eds:2"};
static const double noises[] = {0, 0.003, 0.01};

enum { GOALS = 6, NOISES = 3, STEP_W = 5 };

/* Totals of all plants with one kind of kernels, one goal and one noise. */
struct cell {
    unsigned n;
    double cap, end;       /* mean saving of the goal's value, by the cap found … */
    double best_cap, best; /* … and by the best possible */
    unsigned kept, beside, ever;
    double search_windows, windows, cost;
    double worst;            /* the goal's value relative to that of the cap alone */
    double *late, *cap_late; /* time over the bound - 1: at the end, at the cap */
};

struct grid {
    double cap[GOALS], all[GOALS]; /* least value of a cap; of cap, lock or both */
};

static struct goal goal_at(size_t i)
{
    struct goal g = {0};

    (void)goal_parse(goals[i], &g, NULL);
    return g;
}

static void see(struct grid *best, const struct plant_vf *vf, const struct vfboard *board,
                double cap_w, uint32_t mhz)
{
    struct plant_steady ref = plant_vf_step(vf, board->max_w, 0);
    struct plant_steady at = plant_vf_step(vf, cap_w, mhz);
    struct goal_ref r = {ref.energy_j, ref.time_s, board->max_w};

    for (size_t g = 0; g < GOALS; g++) {
        struct goal goal = goal_at(g);
        double v = goal_relative(&goal, at.energy_j, at.time_s, &r);
        best->all[g] = fmin(best->all[g], v);
        if (!mhz)
            best->cap[g] = fmin(best->cap[g], v);
    }
}

/* Only caps in whole watts, only clocks, and every other clock with caps 5 W apart. */
static struct grid grid_of(const struct plant_vf *vf, const struct vfboard *board)
{
    int least = (int)board->min_w, most = (int)board->max_w;
    struct grid best;

    for (size_t g = 0; g < GOALS; g++)
        best.cap[g] = best.all[g] = 1;
    for (int w = most; w >= least; w--)
        see(&best, vf, board, w, 0);
    for (unsigned i = 0; plant_vf_clock_at(vf, i); i++)
        see(&best, vf, board, board->max_w, plant_vf_clock_at(vf, i));
    for (int w = most; w >= least; w -= STEP_W)
        for (unsigned i = 2; plant_vf_clock_at(vf, i); i += 2)
            see(&best, vf, board, w, plant_vf_clock_at(vf, i));
    return best;
}

static void add(struct cell *c, const struct vfplay *p, const struct vfplay_score *s,
                double best_cap, double best)
{
    double bound = p->goal.param;

    c->cap += 1 - s->cap.value;
    c->end += 1 - s->end.value;
    c->best_cap += 1 - best_cap;
    c->best += 1 - best;
    c->kept += s->end.mhz > 0;
    c->beside += s->end.mhz > 0 && w_of_mw(s->end.cap_mw) < p->max_w;
    c->ever += s->ever;
    c->search_windows += s->search_windows;
    c->windows += s->windows;
    c->cost += s->cost;
    c->worst = fmax(c->worst, s->end.value / s->cap.value - 1);
    c->late[c->n] = s->end.time / bound - 1;
    c->cap_late[c->n] = s->cap.time / bound - 1;
    c->n++;
}

static int play_board(size_t board, bool slow, unsigned plants,
                      struct cell cell[GOALS][NOISES], uw_error *err)
{
    const struct vfboard *b = &vfboards[board];
    struct vfplay_score s;
    struct rng rng;

    rng_init(&rng, 2026 + board);
    for (unsigned i = 0; i < plants; i++) {
        struct plant_vf vf = vfboard_made_up(board, slow, &rng);
        struct grid best = grid_of(&vf, b);
        for (size_t k = 0; k < (size_t)GOALS * NOISES; k++) {
            size_t g = k / NOISES, n = k % NOISES;
            struct vfplay p = {.vf = &vf,
                               .min_w = b->min_w,
                               .max_w = b->max_w,
                               .goal = goal_at(g),
                               .noise = noises[n],
                               .seed = (board * plants + i) * GOALS * NOISES + k};
            int r = vfplay(&p, &s, err);
            if (r < 0)
                return fail_in(err, r, "%s, plant %u, %s", b->name, i, goals[g]);
            add(&cell[g][n], &p, &s, best.cap[g], best.all[g]);
        }
    }
    return 0;
}

static int ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void print_head(void)
{
    static const char *const words[] = {
        "saved of the goal's value in %: by the cap that the search found, with a lock",
        "chosen, by the best cap, by the best there is; plants that keep a lock, and one",
        "beside the cap, in %; windows of the search, and until the lock is decided on; "
        "what",
        "those cost, in % of an hour; worst: value over the cap's, in %; late: time over "
        "the",
        "bound in %, 99th percentile and most, of the cap and of what was chosen",
    };

    for (size_t i = 0; i < n_elements(words); i++)
        (void)printf("%s%s\n", i ? "" : "\n", words[i]);
    (void)printf("found   %-6s %-14s %5s %7s %6s %8s %6s %6s %6s %6s %5s %6s %6s",
                 "parts", "goal", "noise", "cap", "chosen", "best cap", "best", "kept",
                 "beside", "search", "lock", "cost", "worst");
    (void)printf("   %11s   %11s\n", "cap late", "chosen late");
}

static void print(const struct cell *c, bool slow, size_t g, double noise)
{
    double n = c->n;

    (void)printf("found   %-6s %-14s %5.1f %7.2f %6.2f %8.2f %6.2f",
                 slow ? "slow" : "fast", goals[g], 100 * noise, 100 * c->cap / n,
                 100 * c->end / n, 100 * c->best_cap / n, 100 * c->best / n);
    (void)printf(" %6.1f %6.1f %6.1f %5.1f %6.3f %6.3f", 100 * c->kept / n,
                 100 * c->beside / n, c->search_windows / n, c->windows / n,
                 100 * c->cost / n, 100 * c->worst);
    if (goal_at(g).kind == GOAL_SLOWDOWN)
        (void)printf("   %+5.2f %+5.2f   %+5.2f %+5.2f",
                     100 * quantile_of(c->cap_late, c->n, 0.99),
                     100 * c->cap_late[c->n - 1], 100 * quantile_of(c->late, c->n, 0.99),
                     100 * c->late[c->n - 1]);
    (void)printf("\n");
}

static void print_json(FILE *f, const struct cell *c, bool slow, size_t g, double noise)
{
    double n = c->n;

    (void)fprintf(f,
                  "\n  {\"part\":\"found\",\"kernels\":\"%s\",\"goal\":\"%s\","
                  "\"noise\":%g,\"plants\":%u,\"cap\":%.5f,\"found\":%.5f,"
                  "\"best_cap\":%.5f,\"best\":%.5f,\"kept\":%.5f,\"beside\":%.5f,"
                  "\"ever\":%.5f,\"search_windows\":%.3f,\"windows\":%.3f,"
                  "\"cost\":%.7f,\"worst\":%.6f",
                  slow ? "slow" : "fast", goals[g], noise, c->n, c->cap / n, c->end / n,
                  c->best_cap / n, c->best / n, c->kept / n, c->beside / n, c->ever / n,
                  c->search_windows / n, c->windows / n, c->cost / n, c->worst);
    if (goal_at(g).kind == GOAL_SLOWDOWN)
        (void)fprintf(f,
                      ",\"cap_late\":{\"p99\":%.6f,\"max\":%.6f},"
                      "\"late\":{\"p99\":%.6f,\"max\":%.6f}",
                      quantile_of(c->cap_late, c->n, 0.99), c->cap_late[c->n - 1],
                      quantile_of(c->late, c->n, 0.99), c->late[c->n - 1]);
    (void)fprintf(f, "}");
}

static void show(struct cell cell[GOALS][NOISES], bool slow, bool table, FILE *json,
                 const char **comma)
{
    for (size_t k = 0; k < (size_t)GOALS * NOISES; k++) {
        struct cell *c = &cell[k / NOISES][k % NOISES];
        double noise = noises[k % NOISES];
        qsort(c->late, c->n, sizeof *c->late, ascending);
        qsort(c->cap_late, c->n, sizeof *c->cap_late, ascending);
        if (table)
            print(c, slow, k / NOISES, noise);
        if (!json)
            continue;
        (void)fputs(*comma, json);
        *comma = ",";
        print_json(json, c, slow, k / NOISES, noise);
    }
}

int found_show(unsigned plants, bool table, FILE *json, const char **comma, uw_error *err)
{
    size_t most = (size_t)VFBOARDS * plants;
    auto_(mem_free) double *room = calloc(2 * most * GOALS * NOISES + 1, sizeof *room);
    int r = room ? 0 : fail(err, -ENOMEM, "no memory for %zu plants", most);

    if (table)
        print_head();
    for (int slow = 0; slow < 2 && r == 0; slow++) {
        struct cell cell[GOALS][NOISES] = {0};
        double *next = room;
        for (size_t k = 0; k < (size_t)GOALS * NOISES; k++, next += 2 * most) {
            cell[k / NOISES][k % NOISES].late = next;
            cell[k / NOISES][k % NOISES].cap_late = next + most;
        }
        for (size_t b = 0; b < VFBOARDS && r == 0; b++)
            r = play_board(b, slow, plants, cell, err);
        if (r == 0)
            show(cell, slow, table, json, comma);
    }
    return r;
}
