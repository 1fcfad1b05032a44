#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "chart/canvas.h"
#include "cli/sweep.h"
#include "io/file.h"

enum { OUTPUTS = 6 };

struct output {
    const char *option, *path;
    int (*write)(const struct view *v, FILE *to, uw_error *err);
    bool draws;
};

static void outputs_of(const struct sweep_args *a, struct output ret[OUTPUTS])
{
    ret[0] = (struct output){"--csv", a->csv, view_csv, false};
    ret[1] = (struct output){"--json", a->json, view_json, false};
    ret[2] = (struct output){"--svg", a->svg, view_svg, true};
    ret[3] = (struct output){"--png", a->png, view_png, true};
    ret[4] = (struct output){"--html", a->html, view_html, true};
    ret[5] = (struct output){"--report", a->report, view_table, false};
}

static bool is_stdout(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

int sweep_outputs_check(const struct sweep_args *args)
{
    struct output all[OUTPUTS];

    outputs_of(args, all);
    for (size_t i = 0; i < OUTPUTS; i++) {
        uw_error err = {""};
        if (all[i].path && all[i].draws && canvas_load(&err) < 0)
            return cli_fail(EXIT_FAIL, "sweep: %s: %s", all[i].option, err.text);
    }
    return EXIT_OK;
}

static int write_file(const struct output *o, const struct view *v, uw_error *err)
{
    auto_(mem_free) char *text = NULL;
    size_t len = 0;

    FILE *mem = open_memstream(&text, &len);
    if (!mem)
        return fail(err, -ENOMEM, "out of memory");
    int r = o->write(v, mem, err);
    if (fclose(mem) != 0 && r >= 0)
        r = fail(err, -ENOMEM, "out of memory");
    return r < 0 ? r : file_write(o->path, text, len, FILE_MODE_UMASK, err);
}

static int write_outputs(const struct sweep_args *args, const struct view *v)
{
    struct output all[OUTPUTS];
    bool to_stdout = args->sim != NULL;
    int code = EXIT_OK;

    outputs_of(args, all);
    for (size_t i = 0; i < OUTPUTS; i++) {
        uw_error err = {{0}};
        int r = 0;
        if (!all[i].path)
            continue;
        if (is_stdout(all[i].path)) {
            to_stdout = false;
            r = all[i].write(v, stdout, &err);
        } else {
            r = write_file(&all[i], v, &err);
        }
        if (r < 0)
            code = cli_fail(EXIT_FAIL, "sweep: %s: %s", all[i].option, err.text);
    }
    canvas_forget_fonts();
    uw_error err = {{0}};
    bool table = !args->report && (args->sim ? to_stdout : !args->quiet);
    if (table && view_table(v, to_stdout ? stdout : stderr, &err) < 0)
        code = cli_fail(EXIT_FAIL, "sweep: %s", err.text);
    return code;
}

int sweep_show(const struct sweep_args *args, uint32_t default_mw, struct sweep_run *runs,
               size_t n, bool noisy, const struct view *v)
{
    auto_(sweep_free) struct sweep *sweep = NULL;
    struct view all = *v;
    struct sweep_choice choice = {args->goal, w_of_mw(v->most_mw) * (double)v->boards};
    struct sweep_drift drift;
    char method[800];
    uw_error err;

    sweep_drift(runs, n, default_mw, &drift);
    if (args->correct)
        sweep_correct(runs, n, default_mw, &drift);
    int r = sweep_fold(runs, n, default_mw, args->goal.param < 0 ? NULL : &choice, &sweep,
                       &err);
    if (r < 0)
        return cli_fail(EXIT_FAIL, "sweep: %s", err.text);
    all.sweep = sweep;
    all.drift = noisy ? &drift : NULL;
    all.corrected = args->correct;
    all.runs = runs;
    all.n_runs = n;
    (void)snprintf(method, sizeof method, "%s%s", v->method,
                   noisy && args->correct && drift.known
                       ? " A drift of the reference was removed from all figures."
                       : "");
    all.method = method;
    return write_outputs(args, &all);
}
