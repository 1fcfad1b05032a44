/* Fits the nine numbers of a plant_workload to the published sweep of each
 * (board, network) and writes src/plant/fitted.c:
 *
 *     build/bench/fit-plant CAP_OPTIMA.csv [STARTS] > src/plant/fitted.c
 *
 * Cost: log errors of time and energy of each row, and for each target how much
 * worse its metric is at the published cap than at the model's own optimum on the
 * 5 W grid; first as squares, then polished towards the least maximum.
 * Nelder-Mead from random starts, everything from a fixed seed.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/rng.h"
#include "base/units.h"
#include "plant/board.h"
#include "plant/workload.h"

enum { N_PAR = 9, N_ROWS = 5, N_PAIRS = 12, GRID_MW = 5000, EVALS = 4000 };

enum metric { BY_DEFAULT, BY_E, BY_EDP, BY_EDS20, BY_EDS15 };
static const char *const targets[] = {"default", "E", "EDP", "EDS2.0", "EDS1.5"};

struct row {
    uint32_t cap_mw;
    double time_s, energy_j;
};

struct pair {
    const struct plant_board *board;
    char name[24];
    struct row row[N_ROWS]; /* by enum metric */
    double power;           /* exponent of the errors in the cost: 2, later more */
};

struct point {
    double x[N_PAR]; /* unbounded parameters */
    double cost;
};

static double metric_of(enum metric m, double t, double e, const struct plant_steady *ref)
{
    double k = m == BY_EDS20 ? 2 : 1.5;

    if (m == BY_E)
        return e / ref->energy_j;
    if (m == BY_EDP)
        return e * t / (ref->energy_j * ref->time_s);
    return (k - 1) / k * e / ref->energy_j + 1 / k * t / ref->time_s;
}

/* ---- the parameters, each within its bounds ---- */

static double between(double low, double high, double u)
{
    return low + (high - low) / (1 + exp(-u));
}

static void workload_of(const struct pair *p, const double *x, struct plant_workload *w)
{
    const struct row *top = &p->row[BY_DEFAULT];
    double max_w = p->board->max_mw * 1e-3;

    w->gap_s = top->time_s * between(0.02, 0.62, x[0]);
    double busy = top->time_s - w->gap_s;
    double share = between(0.03, 0.97, x[1]);
    double stretch = between(0.94, 1.06, x[2]);
    w->tc_s = busy * share * stretch;
    w->tm_s = busy * (1 - share) * stretch;
    w->gap_w = between(15, 0.55 * max_w, x[3]);
    w->ps_w = between(15, 0.5 * max_w, x[4]);
    w->d_w = between(0.4, 1.08, x[5]) * max_w - w->ps_w;
    w->s = between(0, 3, x[6]);
    w->vmin = between(0.4, 1, x[7]);
    w->eta = between(0.96, 1, x[8]);
}

/* ---- cost ---- */

struct errors {
    double time[N_ROWS], energy[N_ROWS], gap[N_ROWS];
    double worst_row, worst_gap;
};

static void errors_of(const struct pair *p, const struct plant_workload *w,
                      struct errors *ret)
{
    const struct plant_board *b = p->board;
    struct plant_steady ref = plant_steady(b, w, b->default_mw);
    double best[N_ROWS] = {0, INFINITY, INFINITY, INFINITY, INFINITY};

    *ret = (struct errors){0};
    for (uint32_t cap = b->min_mw; cap <= b->max_mw; cap += GRID_MW) {
        struct plant_steady at = plant_steady(b, w, cap);
        for (int m = BY_E; m <= BY_EDS15; m++)
            best[m] =
                fmin(best[m], metric_of((enum metric)m, at.time_s, at.energy_j, &ref));
    }
    for (int m = 0; m < N_ROWS; m++) {
        const struct row *r = &p->row[m];
        struct plant_steady at = plant_steady(b, w, r->cap_mw);
        ret->time[m] = at.time_s / r->time_s - 1;
        ret->energy[m] = at.energy_j / r->energy_j - 1;
        double row = fmax(fabs(ret->time[m]), fabs(ret->energy[m]));
        ret->worst_row = fmax(ret->worst_row, row);
        if (m == BY_DEFAULT)
            continue;
        ret->gap[m] =
            metric_of((enum metric)m, at.time_s, at.energy_j, &ref) / best[m] - 1;
        ret->worst_gap = fmax(ret->worst_gap, ret->gap[m]);
    }
}

static double cost(const struct pair *p, const double *x)
{
    struct plant_workload w = {0};
    struct errors e;
    double sum = 0;

    workload_of(p, x, &w);
    if (w.d_w < 1)
        return 1e9;
    errors_of(p, &w, &e);
    /* Bounds are 1.5 % for a row and 1 % for a gap. */
    for (int m = 0; m < N_ROWS; m++)
        sum += pow(fabs(e.time[m]) / 0.015, p->power) +
               pow(fabs(e.energy[m]) / 0.015, p->power) +
               pow(fabs(e.gap[m]) / 0.01, p->power);
    /* Keeps flat directions in the middle of their bounds. */
    for (int i = 0; i < N_PAR; i++)
        sum += 1e-6 * x[i] * x[i];
    return sum;
}

/* ---- Nelder and Mead, adaptive coefficients (Gao and Han 2012) ---- */

static int by_cost(const void *a, const void *b)
{
    double d = ((const struct point *)a)->cost - ((const struct point *)b)->cost;
    return d < 0 ? -1 : d > 0;
}

static void along(const struct pair *p, const double *from, const double *to, double by,
                  struct point *ret)
{
    for (int i = 0; i < N_PAR; i++)
        ret->x[i] = from[i] + by * (to[i] - from[i]);
    ret->cost = cost(p, ret->x);
}

static void shrink(const struct pair *p, struct point *s)
{
    for (int k = 1; k <= N_PAR; k++) {
        struct point q;
        along(p, s[0].x, s[k].x, 1 - 1.0 / N_PAR, &q);
        s[k] = q;
    }
}

static void step(const struct pair *p, struct point *s)
{
    double centre[N_PAR] = {0};
    struct point *worst = &s[N_PAR], r, t;
    double contract = 0.75 - 0.5 / N_PAR;

    qsort(s, N_PAR + 1, sizeof *s, by_cost);
    for (int k = 0; k < N_PAR; k++)
        for (int i = 0; i < N_PAR; i++)
            centre[i] += s[k].x[i] / N_PAR;
    along(p, centre, worst->x, -1, &r);
    if (r.cost < s[0].cost) {
        along(p, centre, worst->x, -(1 + 2.0 / N_PAR), &t);
        *worst = t.cost < r.cost ? t : r;
        return;
    }
    if (r.cost < s[N_PAR - 1].cost) {
        *worst = r;
        return;
    }
    along(p, centre, worst->x, r.cost < worst->cost ? -contract : contract, &t);
    if (t.cost < fmin(r.cost, worst->cost))
        *worst = t;
    else
        shrink(p, s);
}

static struct point descend(const struct pair *p, const double *x, double size, int n)
{
    struct point s[N_PAR + 1];

    for (int k = 0; k <= N_PAR; k++) {
        memcpy(s[k].x, x, sizeof s[k].x);
        if (k > 0)
            s[k].x[k - 1] += size;
        s[k].cost = cost(p, s[k].x);
    }
    for (int i = 0; i < n; i++)
        step(p, s);
    qsort(s, N_PAR + 1, sizeof *s, by_cost);
    return s[0];
}

static struct point fit(struct pair *p, unsigned starts, uint64_t seed)
{
    struct point best = {.cost = INFINITY};
    struct rng rng;

    rng_init(&rng, seed);
    p->power = 2;
    for (unsigned i = 0; i < starts; i++) {
        double x[N_PAR];
        for (int k = 0; k < N_PAR; k++)
            x[k] = 1.5 * rng_normal(&rng);
        struct point q = descend(p, x, 0.7, EVALS / 8);
        if (q.cost < 2 * best.cost)
            q = descend(p, q.x, 0.2, EVALS / 2);
        if (q.cost < best.cost)
            best = q;
    }
    for (int k = 0; k < 8; k++) {
        p->power = k < 4 ? 4 : 8;
        best = descend(p, best.x, k % 2 ? 0.02 : 0.2, EVALS);
    }
    return best;
}

/* ---- output file ---- */

static int row_of(char *line, struct pair *pairs, size_t *n, uw_error *err)
{
    char *field[8], *rest = line;
    double cap, e, t;
    size_t i;

    for (i = 0; i < n_elements(field); i++)
        if (!(field[i] = strsep(&rest, ",")))
            return -EINVAL;
    const struct plant_board *board =
        plant_board_find(strncmp(field[0], "v100", 4) == 0 ? "v100" : "rtx6000");
    char name[24];
    size_t len = 0;
    for (const char *c = field[1]; *c && len + 1 < sizeof name; c++)
        if (*c != '-')
            name[len++] = (char)(*c | 0x20);
    name[len] = '\0';
    for (i = 0; i < *n; i++)
        if (pairs[i].board == board && strcmp(pairs[i].name, name) == 0)
            break;
    if (i == N_PAIRS || parse_double(field[3], &cap, err) < 0 ||
        parse_double(field[5], &e, err) < 0 || parse_double(field[7], &t, err) < 0)
        return -EINVAL;
    pairs[i].board = board;
    memcpy(pairs[i].name, name, sizeof name);
    *n = i == *n ? i + 1 : *n;
    for (size_t m = 0; m < N_ROWS; m++)
        if (strcmp(field[2], targets[m]) == 0)
            pairs[i].row[m] = (struct row){mw_of_w(cap), t, e * 1e3};
    return 0;
}

static int read_pairs(const char *path, struct pair *pairs, size_t *ret_n)
{
    auto_(file_close) FILE *f = fopen(path, "r");
    char line[256];
    uw_error err;

    *ret_n = 0;
    for (unsigned no = 1; f && fgets(line, sizeof line, f); no++)
        if (no > 1 && row_of(line, pairs, ret_n, &err) < 0) {
            (void)fprintf(stderr, "%s:%u: not a row of the sweep\n", path, no);
            return -EINVAL;
        }
    if (*ret_n == N_PAIRS)
        return 0;
    (void)fprintf(stderr, "%s: %zu of %d sweeps found\n", path, *ret_n, N_PAIRS);
    return -EINVAL;
}

static void print(const struct pair *p, const struct point *best)
{
    struct plant_workload w = {0};
    struct errors e;
    bool small = strcmp(p->name, "inception4") == 0 || strcmp(p->name, "resnet152") == 0;
    unsigned batch = small ? 64 : 128;
    unsigned samples = strcmp(p->board->key, "v100") == 0 ? 100000 : 32000;

    workload_of(p, best->x, &w);
    errors_of(p, &w, &e);
    printf("    {\"%s\", \"%s\", %u, %u, %.6f, %.6f, %.6f,\n", p->board->key, p->name,
           batch, (samples + batch - 1) / batch, w.gap_s, w.tc_s, w.tm_s);
    printf("     %.5f, %.5f, %.5f, %.7f, %.7f, %.7f},", w.d_w, w.gap_w, w.ps_w, w.s,
           w.vmin, w.eta);
    printf(" /* rows %.2f %%, optima %.2f %% */\n", 100 * e.worst_row, 100 * e.worst_gap);
    (void)fflush(stdout);
    (void)fprintf(stderr, "%s %s: rows within %.3f %%, optima within %.3f %%, x %.3f\n",
                  p->board->key, p->name, 100 * e.worst_row, 100 * e.worst_gap,
                  plant_steady(p->board, &w, p->row[BY_E].cap_mw).x);
}

int main(int argc, char **argv)
{
    struct pair pairs[N_PAIRS] = {0};
    uint64_t starts = 60;
    size_t n;
    uw_error err;

    if (argc < 2 || argc > 3 || (argc == 3 && parse_u64(argv[2], &starts, &err) < 0)) {
        (void)fprintf(stderr, "usage: fit-plant CAP_OPTIMA.csv [STARTS]\n");
        return 2;
    }
    if (read_pairs(argv[1], pairs, &n) < 0)
        return 1;
    printf("/* Written by `build/bench/fit-plant CAP_OPTIMA.csv %u > "
           "src/plant/fitted.c`;\n * do not edit.  Worst error of time and energy over "
           "the rows, worst gap over the\n * optima.\n */\n#include \"plant/table.h\"\n\n"
           "/* clang-format off */\nconst struct plant_workload "
           "plant_fitted[PLANT_FITTED] = {\n",
           (unsigned)starts);
    for (size_t i = 0; i < n; i++) {
        struct point best = fit(&pairs[i], (unsigned)starts, i + 1);
        print(&pairs[i], &best);
    }
    printf("};\n/* clang-format on */\n");
    return 0;
}
