#include "cli/jobs-text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/names.h"
#include "base/units.h"
#include "cli/figures.h"
#include "cli/take.h"
#include "core/progress/phases.h"

enum { NAME = 22, SAVED = 14, INDENT = 6, TABLE = 80 };
#define BOOKED_S 15 /* energy is booked every 10 s, 2.5 s later */

/* The fraction saved of the energy at the original cap. */
static struct figure saved_of(const struct json_value *saved)
{
    return figure_saved_in(100 * take_number(saved, "fraction"),
                           100 * take_number(saved, "fraction_half"), "%", SAVED);
}

/* Whether the job's saving has an interval, and whether that includes zero. */
static void look_at_saved(const struct json_value *job, bool *halves, bool *untold)
{
    const struct json_value *saved = json_get(json_get(job, "search"), "saved");
    double v = take_number(saved, "fraction"), half = take_number(saved, "fraction_half");
    bool known = !isnan(v) && !isnan(half);

    *halves |= known;
    *untold |= known && !figure_told(v, half);
}

static double cap_of_board(const struct json_value *gpus, uint64_t index)
{
    const struct json_value *gpu = take_entry(json_get(gpus, "gpus"), "gpu", index);

    return take_mw(json_get(gpu, "limits"), "enforced_mw");
}

/* The cap in force on the boards: "184 W", or "150-184 W" if they differ. */
static struct figure cap_of(const struct json_value *job, const struct json_value *gpus)
{
    const struct json_value *boards = json_get(job, "gpus");
    double least = INFINITY, most = 0;
    struct figure f = {"-"};

    for (size_t i = 0; i < json_count(boards); i++) {
        uint64_t index = 0;
        double w = json_as_u64(json_at(boards, i), &index) ? cap_of_board(gpus, index)
                                                           : (double)NAN;
        if (isnan(w))
            return f;
        least = fmin(least, w);
        most = fmax(most, w);
    }
    if (most > 0 && most - least < 0.5)
        return figure_watts(most);
    if (most > 0)
        (void)snprintf(f.t, sizeof f.t, "%.0f-%.0f W", least, most);
    return f;
}

/* Writes text in a field of `width` columns, cut with '~'; a figure, at the right, is not
 * cut.
 */
static void field(FILE *to, const char *text, unsigned width, bool right)
{
    unsigned n = text_columns(text), pad = n < width ? width - n : 0;

    if (right)
        (void)fprintf(to, "%*s", (int)pad, "");
    for (unsigned col = 0; *text;) {
        const char *next = text;
        col += text_next(&next);
        if (!right && n > width && col >= width) {
            (void)fputc('~', to);
            break;
        }
        (void)fprintf(to, "%.*s", (int)(next - text), text);
        text = next;
    }
    if (!right)
        (void)fprintf(to, "%*s", (int)pad, "");
}

static void row(FILE *to, const char *name, unsigned columns, const char *const cells[6])
{
    static const unsigned widths[6] = {7, 8, 9, 9, SAVED, 0};

    field(to, name, columns, false);
    for (size_t i = 0; cells[i]; i++) {
        (void)fputc(' ', to);
        field(to, cells[i], widths[i], i > 0);
    }
    (void)fputc('\n', to);
}

/* The daemon hides the names of other users' jobs. */
static void name_of(const struct json_value *job, char *ret, size_t size)
{
    const char *name = take_text(job, "name");

    take_owner(job, ret, size);
    size_t n = strlen(ret);
    if (*name)
        (void)snprintf(ret + n, size - n, ": %s", name);
}

/* ", validates for 12 s (recognised, confidence 66 %)" */
static void phase_of(const struct json_value *job, char *ret, size_t size)
{
    int phase = names_number(NAMES_JOB_PHASE, take_text(job, "phase"));
    double sure = take_number(job, "phase_confidence");
    char seen[48] = "";

    ret[0] = '\0';
    if (phase <= PHASE_UNKNOWN)
        return;
    if (!isnan(sure))
        (void)snprintf(seen, sizeof seen, " (recognised, confidence %.0f %%)",
                       100 * sure);
    double s = take_number(job, "phase_s");
    (void)snprintf(ret, size, ", %s%s%s%s", names_text(NAMES_JOB_PHASE, (unsigned)phase),
                   isnan(s) ? "" : " for ", isnan(s) ? "" : figure_time(s).t, seen);
}

/* "edp: holds 184 W, 612 steps, time x 1.041, trains for 60 s" */
static void put_search(const struct json_value *job, FILE *to)
{
    const struct json_value *search = json_get(job, "search");
    const char *goal = take_text(search, "goal");
    double slowdown = take_number(json_get(search, "saved"), "slowdown");
    uint64_t steps = take_u64(job, "steps");
    char state[250], text[500], slow[40] = "", done[40] = "", phase[100] = "";
    const char *energy = "";

    take_released(search, "state", state, sizeof state);
    if (!*state)
        (void)snprintf(state, sizeof state, "%s",
                       take_bool(job, "cap_held") ? "holds its cap" : "measured only");
    if (!take_bool(job, "running"))
        (void)snprintf(state, sizeof state, "over");
    if (steps > 0)
        (void)snprintf(done, sizeof done, ", %" PRIu64 " step%s", steps,
                       steps == 1 ? "" : "s");
    if (!isnan(slowdown))
        (void)snprintf(slow, sizeof slow, ", time x %.3f", slowdown);
    if (take_bool(job, "running"))
        phase_of(job, phase, sizeof phase);
    if (take_bool(job, "running") && isnan(take_energy(job)) &&
        json_count(json_get(job, "gpus")) > 0 && take_number(job, "time_s") > BOOKED_S)
        energy = ", its energy is not booked yet";
    (void)snprintf(text, sizeof text, "%s%s%.250s%s%s%s%s", goal, *goal ? ": " : "",
                   state, done, slow, phase, energy);
    (void)fprintf(to, "%*s", INDENT, "");
    text_wrap(to, INDENT, INDENT, text);
}

/* Writes that the job runs within a scheduler's job. */
static void put_within(const struct json_value *job, FILE *to)
{
    uint64_t within = take_u64(job, "within");
    char text[100];

    if (!within)
        return;
    (void)snprintf(text, sizeof text, "runs in job %" PRIu64 "%s", within,
                   take_u64(job, "goal_of") ? ", and has its goal" : "");
    (void)fprintf(to, "%*s", INDENT, "");
    text_wrap(to, INDENT, INDENT, text);
}

/* The request to the job's scheduler, and why it is not met. */
static void put_asked(const struct json_value *job, FILE *to)
{
    const char *asked = take_text(job, "asked"), *refused = take_text(job, "refused");
    const char *nodes = take_text(json_get(job, "labels"), "slurm.nodes");
    bool goal = *take_text(json_get(job, "search"), "goal") != '\0';
    const struct json_value *lower = json_get(job, "lower");
    char text[600], parts[120] = "", low[120] = "";

    if (!*asked && !*refused)
        return;
    double lower_mw = take_number(lower, "cap_mw");
    if (lower_mw > 0)
        (void)snprintf(low, sizeof low, "; %g W by %.95s", lower_mw / MW_PER_W,
                       take_text(lower, "who"));
    if (*nodes && goal)
        (void)snprintf(parts, sizeof parts,
                       "; each of its %.20s nodes searches for its own GPUs", nodes);
    (void)snprintf(text, sizeof text, "%s%.120s%s%s%s%s%.240s", *asked ? "asked: " : "",
                   asked, low, *asked ? parts : "", *asked && *refused ? "; " : "",
                   *refused ? "refused: " : "", refused);
    (void)fprintf(to, "%*s", INDENT, "");
    text_wrap(to, INDENT, INDENT, text);
}

/* The columns of the names: what they need, within a line of `width`. */
static unsigned name_columns(const struct json_value *list, bool all, unsigned width)
{
    unsigned most = NAME + (width > TABLE ? width - TABLE : 0), need = NAME;
    char name[200];

    for (size_t i = 0; i < json_count(list); i++) {
        const struct json_value *job = json_at(list, i);
        if (!all && !take_bool(job, "running"))
            continue;
        name_of(job, name, sizeof name);
        unsigned n = text_columns(name);
        need = n > need ? n : need;
    }
    return need < most ? need : most;
}

static void put_job(const struct json_value *job, const struct json_value *gpus,
                    unsigned columns, FILE *to)
{
    char boards[64], name[200];
    struct figure time = figure_time(take_number(job, "time_s"));
    struct figure energy = figure_joules(take_energy(job));
    struct figure cap = {"-"};
    struct figure saved = saved_of(json_get(json_get(job, "search"), "saved"));

    if (take_bool(job, "running"))
        cap = cap_of(job, gpus);
    name_of(job, name, sizeof name);
    take_boards(json_get(job, "gpus"), boards, sizeof boards);
    (void)fprintf(to, "%5" PRIu64 " ", take_u64(job, "id"));
    row(to, name, columns,
        (const char *const[6]){boards, time.t, energy.t, cap.t, saved.t, NULL});
    put_search(job, to);
    put_within(job, to);
    put_asked(job, to);
}

void jobs_text(const struct json_value *jobs, const struct json_value *gpus, bool all,
               unsigned width, FILE *to)
{
    const struct json_value *list = json_get(jobs, "jobs");
    unsigned columns = name_columns(list, all, width);
    bool halves = false, untold = false;
    size_t shown = 0;

    for (size_t i = 0; i < json_count(list); i++) {
        const struct json_value *job = json_at(list, i);
        if (!all && !take_bool(job, "running"))
            continue;
        if (shown++ == 0) {
            (void)fputs("  JOB ", to);
            row(to, "USER: NAME", columns,
                (const char *const[6]){"GPUS", "TIME", "ENERGY", "CAP", "SAVED", NULL});
        }
        put_job(job, gpus, columns, to);
        look_at_saved(job, &halves, &untold);
    }
    if (halves)
        figure_put_signs(to, 0, untold);
    if (shown == 0)
        (void)fprintf(to, "no job%s\n", all ? "" : " runs");
    else if (take_bool(jobs, "simulated"))
        (void)fprintf(to, "(simulated boards)\n");
}
