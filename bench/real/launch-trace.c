/* Finds the steps in recorded launches (launches.csv of session.py) as underwattd would
 * that reads them every POLL_MS.
 *
 *     launch-trace FILE.csv POLL_MS [FROM_S TO_S]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/auto.h"
#include "base/rng.h"
#include "base/units.h"
#include "core/progress/launches.h"

enum { ROWS = 1000000, LINE = 256 };

struct recorded {
    size_t n;
    double at[ROWS];
    uint64_t count[ROWS];
};

struct told {
    double known_s; /* NAN: never */
    struct step_slot first, last;
    struct launches_found found;
};

static int load(const char *path, double from, double to, struct recorded *ret)
{
    char line[LINE];
    FILE *f = fopen(path, "re");

    if (!f)
        return -1;
    while (fgets(line, sizeof line, f) && ret->n < ROWS) {
        unsigned long long kernels, graphs;
        double at;
        if (sscanf(line, "%lf,%llu,%llu", &at, &kernels, &graphs) != 3 || at < from ||
            at > to)
            continue;
        ret->at[ret->n] = at;
        ret->count[ret->n++] = kernels + graphs;
    }
    (void)fclose(f);
    return ret->n < 2 ? -1 : 0;
}

static int play(const struct recorded *r, double poll_ms, struct told *ret)
{
    auto_(launches_free) struct launches *l = NULL;
    struct launches_budget budget;
    struct step_slot slots[LAUNCHES_PROCESSES];
    struct rng rng;
    size_t i = 0;

    rng_init(&rng, 1);
    launches_budget_job(&budget, NULL);
    if (launches_new(&l) < 0)
        return -1;
    *ret = (struct told){.known_s = NAN};
    double t = r->at[0];
    while (t < r->at[r->n - 1]) {
        while (i + 1 < r->n && r->at[i + 1] <= t)
            i++;
        const struct launch_count c = {10, 20, r->count[i], true};
        launches_feed(l, &c, 1, ns_of_s(t), &budget);
        if (launches_slots(l, slots) > 0) {
            if (isnan(ret->known_s)) {
                ret->known_s = t - r->at[0];
                ret->first = slots[0];
            }
            ret->last = slots[0];
        }
        t += 1e-3 * poll_ms * (1 + 0.2 * rng_uniform(&rng));
    }
    launches_state(l, &ret->found);
    return 0;
}

int main(int argc, char **argv)
{
    static struct recorded recorded;
    double poll_ms = 0, from = 0, to = HUGE_VAL;
    struct told told;
    uw_error err = {{0}};

    if ((argc != 3 && argc != 5) || parse_double(argv[2], &poll_ms, &err) < 0 ||
        (argc > 4 && (parse_double(argv[3], &from, &err) < 0 ||
                      parse_double(argv[4], &to, &err) < 0)) ||
        poll_ms < 1) {
        (void)fprintf(stderr, "launch-trace FILE.csv POLL_MS [FROM_S TO_S]: %s\n",
                      err.text);
        return 2;
    }
    if (load(argv[1], from, to, &recorded) < 0 || play(&recorded, poll_ms, &told) < 0) {
        (void)fprintf(stderr, "launch-trace: %s: no two rows of that time\n", argv[1]);
        return 1;
    }
    uint64_t steps = told.last.steps - told.first.steps;
    double s = s_between(told.first.last_step_ns, told.last.last_step_ns);
    (void)printf("{\"poll_ms\": %g, \"seconds\": %.1f, \"known\": %s, ", poll_ms,
                 recorded.at[recorded.n - 1] - recorded.at[0],
                 isnan(told.known_s) ? "false" : "true");
    if (!isnan(told.known_s))
        (void)printf("\"known_after_s\": %.2f, ", told.known_s);
    (void)printf("\"why\": %d, \"launches\": %llu, \"steps\": %llu, \"step_ms\": %.3f}\n",
                 (int)told.found.why, (unsigned long long)told.found.launches,
                 (unsigned long long)steps, steps > 0 ? 1e3 * s / (double)steps : 0.0);
    return 0;
}
