/* How fast a year goes by: simulated board-years a second, for idle boards, for
 * jobs on one cap and for caps that change every minute.
 *
 *     build/bench/plant [DAYS] [--json FILE]
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/auto.h"
#include "base/rng.h"
#include "base/units.h"
#include "plant/plant.h"

enum { BOARDS = 16, JOB_BOARDS = 4 };

struct run {
    const char *name;
    const char *board;
    bool coarse, job, caps, looked_at;
};

static double cpu_s(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static uint64_t look(struct plant_gpu *const *gpu)
{
    uint64_t sum = 0;
    struct plant_reading r;

    for (int i = 0; i < BOARDS; i++) {
        plant_gpu_read(gpu[i], &r);
        sum += r.energy_mj;
    }
    return sum;
}

/* json: file for its row, or NULL. */
static int play(const struct run *run, double days, bool first, FILE *json)
{
    struct plant_gpu *gpu[BOARDS];
    struct plant_job *job[BOARDS / JOB_BOARDS] = {0};
    const struct plant_board *b = plant_board_find(run->board);
    uint64_t end = ns_of_s(days * 86400),
             step = run->caps ? 60 * NS_PER_S : 3600 * NS_PER_S;
    struct rng rng;
    double began = cpu_s(), joules = 0;

    rng_init(&rng, 1);
    for (unsigned i = 0; i < BOARDS; i++) {
        struct plant_gpu_opts o = {.board = b, .seed = i, .coarse = run->coarse};
        if (plant_gpu_new(&o, &gpu[i], NULL) < 0)
            return 1;
    }
    for (size_t k = 0; run->job && k < BOARDS / JOB_BOARDS; k++) {
        struct plant_job_opts o = {.gpus = &gpu[k * JOB_BOARDS],
                                   .n_gpus = JOB_BOARDS,
                                   .workload = "resnet50",
                                   .epochs = 1000000};
        if (plant_job_new(&o, &job[k], NULL) < 0)
            return 1;
    }
    for (uint64_t t = step; t <= end; t += step) {
        for (int i = 0; i < BOARDS; i++) {
            plant_gpu_advance(gpu[i], t);
            uint32_t range = b->max_mw - b->min_mw;
            if (run->caps)
                plant_gpu_set_cap(gpu[i], b->min_mw + (uint32_t)rng_below(&rng, range));
        }
        if (run->looked_at)
            (void)look(gpu);
    }
    double took = cpu_s() - began, years = BOARDS * days / 365;
    for (int i = 0; i < BOARDS; i++)
        joules += plant_gpu_energy_j(gpu[i]);
    printf("%-44s %8.1f board-years/s   %7.3f MWh in %.2f s\n", run->name, years / took,
           joules / 3.6e9, took);
    if (json)
        (void)fprintf(json,
                      "%s\n{\"what\":\"%s\",\"board_years_per_s\":%.6g,\"mwh\":%.9g,"
                      "\"processor_s\":%.6g}",
                      first ? "" : ",", run->name, years / took, joules / 3.6e9, took);
    for (size_t k = 0; k < BOARDS / JOB_BOARDS; k++)
        plant_job_free(job[k]);
    for (unsigned i = 0; i < BOARDS; i++)
        plant_gpu_free(gpu[i]);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct run runs[] = {
        {"idle, read hourly", "v100", false, false, false, true},
        {"jobs, coarse, read hourly", "v100", true, true, false, true},
        {"jobs, read hourly", "v100", false, true, false, true},
        {"jobs, part-time counter, read hourly", "a100", false, true, false, true},
        {"jobs, a cap a minute, coarse", "v100", true, true, true, false},
        {"jobs, a cap a minute", "v100", false, true, true, false},
    };
    double days = 30;
    auto_(file_close) FILE *json = NULL;
    uw_error err;

    if (argc > 2 && strcmp(argv[argc - 2], "--json") == 0) {
        json = fopen(argv[argc - 1], "we");
        if (!json) {
            (void)fprintf(stderr, "plant: %s: %s\n", argv[argc - 1], strerror(errno));
            return 1;
        }
        argc -= 2;
    }
    if (argc > 2 || (argc > 1 && parse_double(argv[1], &days, &err) < 0)) {
        (void)fprintf(stderr, "plant: %s\n",
                      argc > 2 ? "usage: plant [DAYS] [--json FILE]" : err.text);
        return 2;
    }
    printf("simulated; %.0f days of %d boards, jobs of %d boards\n", days, BOARDS,
           JOB_BOARDS);
    if (json)
        (void)fprintf(json,
                      "{\"simulated\":true,\"days\":%g,\"boards\":%d,"
                      "\"boards_per_job\":%d,\"rows\":[",
                      days, BOARDS, JOB_BOARDS);
    for (size_t i = 0; i < n_elements(runs); i++)
        if (play(&runs[i], days, i == 0, json) != 0)
            return 1;
    if (json)
        (void)fputs("]}\n", json);
    return 0;
}
