/* What a cap for a phase comes to on the simulated boards, against one static cap of the
 * same time: a job that trains for five times as long as it validates, with validations
 * of 0.5 to 60 s.  Prints a table, or JSON with --json.
 *
 *     phasecaps [--json] [CAP%] [NOTICE_MS]
 *
 * The cap is CAP% of the default limit (60 %) while the job validates.  Each set call is
 * made NOTICE_MS (20 ms) after the phase has changed and takes as long as the board's.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/units.h"
#include "plant/plant.h"

#define WORKLOAD "resnet50"
#define TRAINS 5.0    /* training time over validation time */
#define LEAST_S 120.0 /* of a run; and … */
enum { LEAST_CYCLES = 4, BISECTIONS = 14 };

static double cap_share = 0.60, notice_s = 0.020;

struct run {
    double time_s, energy_j;
};

/* A job: the steps of its phases and their frequency. */
struct work {
    const struct plant_board *board;
    uint32_t train, validate, cycles;
};

static bool begin(const struct work *w, struct plant_gpu **ret_gpu,
                  struct plant_job **ret_job)
{
    const struct plant_job_phase phases[] = {{UW_PHASE_TRAIN, w->train, 0},
                                             {UW_PHASE_VALIDATE, w->validate, 0}};
    struct plant_gpu_opts gpu = {.board = w->board, .seed = 1, .ideal = true};
    uw_error err = {""};

    if (plant_gpu_new(&gpu, ret_gpu, &err) < 0)
        return false;
    struct plant_job_opts job = {.gpus = ret_gpu,
                                 .n_gpus = 1,
                                 .workload = WORKLOAD,
                                 .epochs = w->cycles,
                                 .steps = w->train,
                                 .phases = phases,
                                 .n_phases = 2};
    if (plant_job_new(&job, ret_job, &err) < 0) {
        plant_gpu_free(*ret_gpu);
        return false;
    }
    return true;
}

/* The whole job, with train_mw in training and validate_mw in validation. */
static struct run play(const struct work *w, uint32_t train_mw, uint32_t validate_mw)
{
    struct plant_gpu *gpu = NULL;
    struct plant_job *job = NULL;
    struct plant_job_state now;
    uint64_t set_ns = UINT64_MAX;
    uint32_t phase = UW_PHASE_TRAIN;

    if (!begin(w, &gpu, &job))
        return (struct run){NAN, NAN};
    uint64_t late_ns = ns_of_s(notice_s) + w->board->set_limit_ns;
    plant_gpu_set_cap(gpu, train_mw);
    for (plant_job_state(job, &now); !now.done; plant_job_state(job, &now)) {
        uint64_t next_ns = plant_job_next_ns(job);
        if (now.phase != phase) {
            phase = now.phase;
            set_ns = plant_gpu_now_ns(gpu) + late_ns;
        }
        if (set_ns <= next_ns) {
            plant_job_advance(job, set_ns);
            plant_gpu_set_cap(gpu, phase == UW_PHASE_TRAIN ? train_mw : validate_mw);
            set_ns = UINT64_MAX;
        } else {
            plant_job_advance(job, next_ns);
        }
    }
    struct run r = {s_of_ns(now.done_ns), plant_gpu_energy_j(gpu)};
    plant_job_free(job);
    plant_gpu_free(gpu);
    return r;
}

/* Seconds of a step of this phase at the default limit. */
static double step_s(const struct plant_board *board, bool validates)
{
    const struct work w = {board, 50, 1, 1}, v = {board, 50, 51, 1};

    double one_s = play(&w, board->default_mw, board->default_mw).time_s;
    double more_s = play(&v, board->default_mw, board->default_mw).time_s;
    double validate_s = (more_s - one_s) / 50;
    return validates ? validate_s : (one_s - validate_s) / 50;
}

static uint32_t count(double s, double step)
{
    return (uint32_t)fmax(1, round(s / step));
}

/* The static cap, in W, with the same total time, and its run. */
static double static_cap(const struct work *w, double time_s, struct run *ret)
{
    double low = w->board->min_mw, high = w->board->default_mw;

    for (int i = 0; i < BISECTIONS; i++) {
        double middle = (low + high) / 2;
        *ret = play(w, (uint32_t)middle, (uint32_t)middle);
        if (ret->time_s > time_s)
            low = middle;
        else
            high = middle;
    }
    *ret = play(w, (uint32_t)high, (uint32_t)high);
    return high * 1e-3;
}

static double percent(double is, double was)
{
    return 100 * (is / was - 1);
}

struct row {
    double phase_s, energy, slower, static_w, static_energy, static_slower;
};

static void measure(const struct plant_board *board, double phase_s, struct row *ret)
{
    double train_s = step_s(board, false), validate_s = step_s(board, true);
    struct work w = {board, count(TRAINS * phase_s, train_s), count(phase_s, validate_s),
                     0};
    double cycle_s = w.train * train_s + w.validate * validate_s;
    uint32_t cap_mw = (uint32_t)fmax(cap_share * board->default_mw, board->min_mw);
    struct run fixed;

    w.cycles = (uint32_t)fmax(LEAST_CYCLES, ceil(LEAST_S / cycle_s));
    struct run none = play(&w, board->default_mw, board->default_mw);
    struct run capped = play(&w, board->default_mw, cap_mw);
    double fixed_w = static_cap(&w, capped.time_s, &fixed);
    *ret = (struct row){.phase_s = w.validate * validate_s,
                        .energy = percent(capped.energy_j, none.energy_j),
                        .slower = percent(capped.time_s, none.time_s),
                        .static_w = fixed_w,
                        .static_energy = percent(fixed.energy_j, none.energy_j),
                        .static_slower = percent(fixed.time_s, none.time_s)};
}

static void print_row(const char *key, const struct row *r, bool json, bool first)
{
    if (json)
        printf("%s\n  {\"board\": \"%s\", \"phase_s\": %.3f, \"energy_percent\": %.3f, "
               "\"time_percent\": %.3f, \"static_w\": %.1f, \"static_energy_percent\": "
               "%.3f, \"static_time_percent\": %.3f}",
               first ? "" : ",", key, r->phase_s, r->energy, r->slower, r->static_w,
               r->static_energy, r->static_slower);
    else
        printf("| %s | %.2f s | %+.1f %% | %+.2f %% | %.0f W | %+.1f %% | %s |\n", key,
               r->phase_s, r->energy, r->slower, r->static_w, r->static_energy,
               r->energy < r->static_energy ? "phase caps" : "static cap");
}

static int print_table(bool json)
{
    static const double lengths[] = {0.5, 1, 2, 5, 10, 30, 60};
    size_t n_boards;
    const struct plant_board *boards = plant_boards(&n_boards);
    bool first = true;

    if (json)
        printf("{\"simulated\": true, \"cap_percent\": %.0f, \"notice_ms\": %.0f, "
               "\"rows\": [",
               100 * cap_share, 1000 * notice_s);
    else
        printf("simulated; %s, %.0f %% of the default limit while it validates, a sixth "
               "of the time; noticed after %.0f ms\n\n"
               "| board | phase | energy | time | static cap | its energy | less energy "
               "|\n|---|---|---|---|---|---|---|\n",
               WORKLOAD, 100 * cap_share, 1000 * notice_s);
    for (size_t b = 0; b < n_boards; b++)
        for (size_t i = 0; i < n_elements(lengths); i++) {
            struct row r;
            measure(&boards[b], lengths[i], &r);
            print_row(boards[b].key, &r, json, first);
            first = false;
        }
    if (json)
        printf("\n]}\n");
    return fflush(stdout) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
    double number[2] = {100 * cap_share, 1000 * notice_s};
    uw_error err = {""};
    int r = 0;

    for (int i = 1 + json; i < argc && i < 3 + json && r == 0; i++)
        r = parse_double(argv[i], &number[i - 1 - json], &err);
    if (r < 0 || argc > 3 + json || !(number[0] > 0 && number[0] <= 100) ||
        !(number[1] >= 0 && number[1] <= 10000)) {
        (void)fprintf(stderr, "phasecaps: %s\n",
                      r < 0 ? err.text
                            : "[--json] [CAP% 1 to 100] [NOTICE_MS 0 to 10000]");
        return 2;
    }
    cap_share = number[0] / 100;
    notice_s = number[1] / 1000;
    return print_table(json);
}
