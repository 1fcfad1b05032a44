/* What a finished trial of the search is said to have shown. */
#include <string.h>

#include "base/auto.h"
#include "base/units.h"
#include "core/optimum/search.h"
#include "tap.h"

enum { W = MW_PER_W };

struct seen {
    uint32_t cap_w;
    double time_s, energy_j;
};

/* clang-format off */
static const struct {
    const char *name;
    struct goal goal;
    unsigned windows; /* that the search may take; 0: as many as it likes */
    struct seen seen[4];
    const char *said;
} cases[] = {
    {"nothing before the reference", {GOAL_EDP, 0}, 0, {{0}}, ""},
    {"nothing of the reference", {GOAL_EDP, 0}, 0, {{300, 1, 100}}, ""},
    {"against the reference", {GOAL_EDP, 0}, 0,
     {{300, 1, 100}, {150, 1.2, 70}}, "150 W: 16.00 ± 0.47 % lower EDP than at 300 W; best so far"},
    {"against the best other cap", {GOAL_EDP, 0}, 0,
     {{300, 1, 100}, {150, 1.2, 70}, {200, 1.1, 80}}, "200 W: 12.00 ± 0.49 % lower EDP than at 300 W; best: 150 W"},
    {"no difference", {GOAL_ENERGY, 0}, 0,
     {{300, 1, 100}, {150, 1.2, 100.001}}, "150 W: same energy as at 300 W; best: 300 W"},
    {"beyond the bound", {GOAL_SLOWDOWN, 1.05}, 0,
     {{300, 1, 100}, {150, 1.26, 70}}, "150 W: 26.00 ± 0.70 % slower, 5 % allowed; best: 300 W"},
    {"just beyond the bound", {GOAL_SLOWDOWN, 1.05}, 0,
     {{300, 1, 100}, {150, 1.0504, 70}}, "150 W: 5.04 ± 0.58 % slower, 5 % allowed; best: 300 W"},
    {"a cap beyond the bound is no better one", {GOAL_SLOWDOWN, 1.05}, 0,
     {{300, 1, 100}, {150, 1.26, 70}, {200, 1.04, 85}}, "200 W: 15.000 ± 0.024 % lower energy than at 300 W; best so far"},
    {"the hold begins", {GOAL_EDP, 0}, 2,
     {{300, 1, 100}, {150, 1.05, 70}}, "150 W: 26.50 ± 0.41 % lower EDP than at 300 W; best so far"},
    {"no effect", {GOAL_EDP, 0}, 0,
     {{300, 1, 100}, {290, 1, 100}}, "290 W: no effect"},
};
/* clang-format on */

/* A look out of a hold that finds nothing better. */
static void back(void)
{
    struct search_setup setup = {.goal = {GOAL_EDP, 0},
                                 .min_mw = 100 * W,
                                 .max_mw = 300 * W,
                                 .default_mw = 300 * W,
                                 .original_mw = 300 * W};
    auto_(search_free) struct search *s = NULL;
    struct search_window w = {.cap_mw = 300 * W, .time_s = 1, .energy_j = 290};
    uint32_t held_mw = 0;
    char said[SEARCH_WHY_MAX] = "";

    (void)search_new(&setup, &s, NULL);
    for (int i = 0; i < 24 && search_step(s)->kind == SEARCH_MEASURE; i++) {
        w.cap_mw = search_step(s)->cap_mw;
        w.time_s = w.cap_mw < 200 * W ? 1.5 : 1.0;
        w.energy_j = w.cap_mw < 200 * W ? 290 : 1.2 * w_of_mw(w.cap_mw);
        (void)search_on_window(s, &w, NULL);
    }
    held_mw = search_step(s)->cap_mw;
    ok(search_step(s)->kind == SEARCH_HOLD && search_probe_gap(s, 1), "a look");
    for (int i = 0; i < 6 && search_step(s)->kind == SEARCH_MEASURE; i++) {
        w.cap_mw = search_step(s)->cap_mw;
        w.time_s = 3;
        w.energy_j = 600;
        (void)search_on_window(s, &w, NULL);
        search_trial(s, w.cap_mw, held_mw, said);
    }
    ok(strstr(said, " higher EDP than at 300 W") && strstr(said, " W; back to "), "%s",
       said);
}

/* Windows with large errors: no digit below those of the interval. */
static void noisy(void)
{
    const struct search_setup setup = {.goal = {GOAL_EDP, 0},
                                       .min_mw = 100 * W,
                                       .max_mw = 300 * W,
                                       .default_mw = 300 * W,
                                       .original_mw = 300 * W};
    const struct search_window windows[] = {
        {.cap_mw = 300 * W, .time_s = 1, .energy_j = 100, .energy_rse = 0.12},
        {.cap_mw = 150 * W, .time_s = 1.2, .energy_j = 80, .energy_rse = 0.08}};
    auto_(search_free) struct search *s = NULL;
    char said[SEARCH_WHY_MAX];

    if (!ok(search_new(&setup, &s, NULL) == 0, "a search"))
        return;
    for (size_t i = 0; i < n_elements(windows); i++)
        (void)search_on_window(s, &windows[i], NULL);
    search_trial(s, 150 * W, 0, said);
    is_str(said, "150 W: 4 ± 27 % lower EDP than at 300 W; best so far", "noise");
}

static size_t columns(const char *text)
{
    size_t n = 0;

    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

/* Columns of what is said of one trial, of caps with four digits. */
static size_t said_of(const struct goal *goal, double time, double energy, double rse)
{
    const struct search_setup setup = {.goal = *goal,
                                       .min_mw = 1000 * W,
                                       .max_mw = 1400 * W,
                                       .default_mw = 1400 * W,
                                       .original_mw = 1400 * W,
                                       .max_windows = 2};
    const struct search_window windows[] = {
        {.cap_mw = 1400 * W, .time_s = 1, .energy_j = 1400, .peak_w = 1400},
        {.cap_mw = 1000 * W,
         .time_s = time,
         .energy_j = 1400 * energy,
         .time_rse = rse,
         .energy_rse = rse}};
    auto_(search_free) struct search *s = NULL;
    char said[SEARCH_WHY_MAX], back[SEARCH_WHY_MAX];

    if (search_new(&setup, &s, NULL) < 0)
        return 0;
    for (size_t i = 0; i < n_elements(windows); i++)
        (void)search_on_window(s, &windows[i], NULL);
    search_trial(s, 1000 * W, 0, said);
    search_trial(s, 1000 * W, search_step(s)->cap_mw, back);
    size_t n = columns(said), m = columns(back);
    if (n == 0 || n > 69 || m > 69)
        printf("# %s\n# %s\n", said, back);
    return n > m ? n : m;
}

/* The width that the header states, over all goals, results and intervals. */
static void widths(void)
{
    static const struct goal goals[] = {{GOAL_ENERGY, 0}, {GOAL_EDP, 0},
                                        {GOAL_EDS, 0},    {GOAL_TIME, 0},
                                        {GOAL_COST, 0.5}, {GOAL_SLOWDOWN, 1.025}};
    static const double rses[] = {0, 0.0001, 0.002, 0.1};
    size_t most = 0, silent = 0;

    for (size_t g = 0; g < n_elements(goals); g++)
        for (double time = 0.5; time < 1.4; time += 0.17)
            for (double energy = 0.5; energy < 1.4; energy += 0.17)
                for (size_t i = 0; i < n_elements(rses); i++) {
                    size_t n = said_of(&goals[g], time, energy, rses[i]);
                    most = n > most ? n : most;
                    silent += n == 0;
                }
    is_int(most, 69, "the longest line");
    is_int(silent, 0, "no trial is without one");
}

int main(void)
{
    widths();
    back();
    noisy();
    for (size_t i = 0; i < n_elements(cases); i++) {
        const struct search_setup setup = {.goal = cases[i].goal,
                                           .min_mw = 100 * W,
                                           .max_mw = 300 * W,
                                           .default_mw = 300 * W,
                                           .original_mw = 300 * W,
                                           .max_windows = cases[i].windows};
        auto_(search_free) struct search *s = NULL;
        char said[SEARCH_WHY_MAX];
        uint32_t cap_mw = 300 * W;

        if (!ok(search_new(&setup, &s, NULL) == 0, "a search"))
            continue;
        for (size_t k = 0; k < 4 && cases[i].seen[k].cap_w; k++) {
            const struct seen *seen = &cases[i].seen[k];
            cap_mw = seen->cap_w * W;
            struct search_window w = {.cap_mw = cap_mw,
                                      .time_s = seen->time_s,
                                      .energy_j = seen->energy_j,
                                      .time_rse = 0.002,
                                      .peak_w = 300};
            (void)search_on_window(s, &w, NULL);
        }
        search_trial(s, cap_mw, 0, said);
        is_str(said, cases[i].said, cases[i].name);
    }
    return done();
}
