/* Each allocation of a sweep and its views fails once. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/auto.h"
#include "chart/canvas.h"
#include "cli/view.h"
#include "oom.h"
#include "sweep/sweep-state.h"

#define W(w) ((uint32_t)(w)*1000u)

static const struct sweep_run runs[] = {{W(300), 100, 30000, 0},
                                        {W(150), 140, 21000, 450},
                                        {W(200), 110, 22000, 340},
                                        {W(300), 102, 30600, 590}};

static int plan(void *user)
{
    static const struct sweep_range range = {W(150), W(300), W(300), 0,   0,
                                             W(50),  NULL,   NULL,   NULL};
    auto_(mem_free) uint32_t *caps = NULL, *order = NULL;
    size_t n, n_order;
    (void)user;

    int r = sweep_grid(&range, &caps, &n, NULL);
    return r < 0 ? r
                 : sweep_plan(caps, n, &(struct sweep_order){W(300), 2, 1}, &order,
                              &n_order, NULL);
}

static int fold(void *user)
{
    auto_(sweep_free) struct sweep *sweep = NULL;
    (void)user;
    return sweep_fold(runs, n_elements(runs), W(300), NULL, &sweep, NULL);
}

struct show {
    int (*view)(const struct view *v, FILE *to, uw_error *err);
    const struct sweep *sweep;
    FILE *to;
};

static int show(void *user)
{
    struct show *s = user;
    struct view v = {
        .sweep = s->sweep,
        .runs = runs,
        .n_runs = n_elements(runs),
        .board = "b",
        .board_note = "",
        .workload = "w",
        .label = "w",
        .work_unit = "one run",
        .boards = 1,
        .method = "none",
    };
    return s->view(&v, s->to, NULL);
}

static int state(void *user)
{
    static const char text[] =
        "{\"underwatt_sweep\":1,\"simulated\":true,\"command\":[\"a\",\"b\"],\"boards\":"
        "[\"GPU-1\",\"GPU-2\"],\"min_mw\":1,\"max_mw\":2,\"default_mw\":2,\"from_mw\":1,"
        "\"to_mw\":2,\"step_mw\":1,\"runs\":1,\"seed\":1,\"began_utc_s\":1,\"done\":"
        "[{\"cap_mw\":2,\"at_s\":0,\"time_s\":1,\"energy_j\":1}]}";
    auto_(sweep_state_free) struct sweep_state *s = NULL;
    (void)user;
    return sweep_state_parse("text", text, sizeof text - 1, &s, NULL);
}

int main(void)
{
    auto_(sweep_free) struct sweep *sweep = NULL;
    FILE *null = fopen("/dev/null", "we");

    if (!null || sweep_fold(runs, n_elements(runs), W(300), NULL, &sweep, NULL) < 0)
        return 1;
    struct show svg = {view_svg, sweep, null}, html = {view_html, sweep, null},
                png = {view_png, sweep, null}, json = {view_json, sweep, null};
    oom_each("a plan", plan, NULL);
    oom_each("a fold", fold, NULL);
    oom_each("JSON", show, &json);
    oom_each("SVG", show, &svg);
    oom_each("HTML", show, &html);
    oom_each("PNG", show, &png);
    oom_each("a state", state, NULL);
    (void)fclose(null);
    canvas_forget_fonts();
    return done();
}
