/* What `measure` and `run` print at their end. */
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "cli/figures.h"
#include "cli/job-node.h"
#include "cli/job-report.h"
#include "gpu/gpu.h"
#include "io/json.h"
#include "tap.h"

/* Which of a daemon's messages are new. */
static void notes(void)
{
    static const struct {
        const char *name;
        unsigned number;
        const char *text;
        size_t known;
    } cases[] = {
        {"none was shown", 0, "", 0},
        {"the last was shown", 5, "holds 160 W", 3},
        {"one before was shown", 4, "trying 160 W", 2},
        {"the numbers went on beyond them", 2, "measuring 300 W", 0},
        {"a new daemon's message has the number", 4, "holds 200 W", 0},
        {"a new daemon has fewer messages", 9, "holds 160 W", 0},
    };
    static const char text[] = "[{\"number\": 3, \"text\": \"measuring 300 W\"},"
                               " {\"number\": 4, \"text\": \"trying 160 W\"},"
                               " {\"number\": 5, \"text\": \"holds 160 W\"}]";
    auto_(json_free) struct json *doc = NULL;

    if (!ok(json_read("messages", text, strlen(text), &doc, NULL) == 0, "messages"))
        return;
    for (size_t i = 0; i < n_elements(cases); i++)
        is_int((long long)job_notes_known(json_root(doc), cases[i].number, cases[i].text),
               (long long)cases[i].known, "%s", cases[i].name);
}

/* The report as text, which the caller frees; NULL: it cannot be written. */
static char *text_of(const struct job_run *run, const struct job_result *result)
{
    char *text = NULL;
    size_t size = 0;

    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    job_report_text(run, result, to);
    return fclose(to) == 0 ? text : NULL;
}

/* The report of a job on boards whose figures have these reasons. */
static char *report_of(uint32_t first, uint32_t second)
{
    static const struct gpu_info info[] = {{.index = 0, .name = "one"},
                                           {.index = 1, .name = "two (simulated)"}};
    const struct cmd cmd = {.name = "measure"};
    const struct job_run run = {.cmd = &cmd};
    struct meter_result figure = {
        .energy_j = 1000, .power_w = 100, .half_j = 20, .method = METER_COUNTER};
    struct job_board board[] = {{.info = &info[0], .used = true, .energy = figure},
                                {.info = &info[1], .used = true, .energy = figure}};
    struct job_result result = {.measured = true,
                                .simulated = true,
                                .time_s = 10,
                                .energy_j = 2000,
                                .half_j = 28,
                                .power_w = 200,
                                .n = 2,
                                .n_used = 2,
                                .board = board};

    board[0].energy.why = first;
    board[1].energy.why = second;
    return text_of(&run, &result);
}

static unsigned times(const char *text, const char *word)
{
    unsigned n = 0;

    for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
        n++;
    return n;
}

static unsigned widest(const char *text)
{
    unsigned most = 0;

    for (size_t len; *text; text += len + (text[len] == '\n')) {
        char line[400];
        len = strcspn(text, "\n");
        (void)snprintf(line, sizeof line, "%.*s", (int)len, text);
        most = text_columns(line) > most ? text_columns(line) : most;
    }
    return most;
}

/* A word like "stuck" is explained, once, where it stands. */
static void reasons(void)
{
    auto_(mem_free) char *none = report_of(0, 0);
    auto_(mem_free) char *both =
        report_of(METER_WHY_STUCK, METER_WHY_STUCK | METER_WHY_COARSE);

    if (!ok(none && both, "reports"))
        return;
    ok(times(none, "(counter)\n") == 2 && !strchr(none, ';') && !strstr(none, ": "),
       "no reason, none explained");
    ok(strstr(none, "underwatt measure (simulated boards and time)\n") &&
           strstr(none, "\n  GPU 1  two  "),
       "the title alone says that boards are simulated");
    ok(strstr(both, "(counter; stuck)\n") && strstr(both, "(counter; stuck, coarse)\n"),
       "each board's reasons");
    auto_(mem_free) char *all = report_of((METER_WHY_COARSE << 1) - 1, 0);
    ok(all && widest(all) <= 80 &&
           times(all, "in step with the sensor, which may miss\n         parts of it\n"),
       "all of them in lines of 80 columns");
    ok(times(both, "\n         stuck: the counter or the reading was stuck") == 1 &&
           times(both, "\n         coarse: few readings") == 1,
       "each of them in plain words, once");
}

/* What the daemon says of a job's boards is printed as what a window says of them. */
static void by_gpu(void)
{
    static const char text[] =
        "{\"time_s\": 20, \"energy_j\": 6000, \"half_j\": 60, \"booked_s\": 20,"
        " \"settled\": true, \"energy_by_gpu\": ["
        "{\"gpu\": 3, \"uuid\": \"GPU-3\", \"name\": \"three\", \"energy_j\": 4000,"
        " \"half_j\": 40, \"power_w\": 200, \"method\": \"counter\", \"why\": \"\"},"
        "{\"gpu\": 1, \"uuid\": \"GPU-1\", \"name\": \"one\", \"energy_j\": 1500,"
        " \"half_j\": 30, \"power_w\": 150, \"method\": \"integrated\","
        " \"why\": \"gap\"},"
        "{\"gpu\": null, \"uuid\": null, \"name\": null, \"energy_j\": 500,"
        " \"half_j\": 10, \"power_w\": null, \"method\": \"counter\", \"why\": \"\"}]}";
    const struct cmd cmd = {.name = "run"};
    const struct job_run run = {.cmd = &cmd};
    auto_(json_free) struct json *doc = NULL;
    auto_(mem_free) char *said = NULL;
    struct job_answer a;

    if (!ok(json_read("answer", text, sizeof text - 1, &doc, NULL) == 0, "an answer"))
        return;
    job_answer(doc, &a);
    said = text_of(&run, &a.result);
    if (!ok(said != NULL, "a report"))
        return;
    ok(strstr(said, "  GPU 3  three                          4.000 ± 0.040 kJ"
                    "   200.0 W  (counter)\n"),
       "a board: %s", said);
    ok(strstr(said, "  GPU 1  one                            1.500 ± 0.030 kJ"
                    "   150.0 W  (integrated;\n         gap)\n"),
       "another one, with what is less sure");
    ok(times(said, "         gap: ") == 1, "… in words");
    ok(widest(said) <= 80, "no line has more than 80 columns, but %u", widest(said));
    ok(strstr(said, "mean power 300.0 W\n"), "one decimal in the sum, too");
    ok(strstr(said, "  GPU -  no longer known to the daemon        500 ± 10 J"
                    "         -  (counter)\n"),
       "boards that are away");
    is_int((long long)a.result.n_used, 3, "all count");
}

/* A job whose boards were found late: its energy is of less than its time. */
static void found_late(void)
{
    static const char text[] = "{\"time_s\": 20, \"energy_j\": 2600, \"half_j\": 5, "
                               "\"booked_s\": 10, \"settled\": true}";
    auto_(json_free) struct json *doc = NULL;
    struct job_answer a;

    if (!ok(json_read("answer", text, sizeof text - 1, &doc, NULL) == 0, "an answer"))
        return;
    job_answer(doc, &a);
    is_near(a.result.power_w, 260, 1e-9, "mean power is over the time of the energy");
    is_near(a.result.time_s, 20, 1e-9, "the job's time is whole");
}

/* A mean with a relative error of 1 %. */
#define MEAN(n, t, e)                                                                 \
    {                                                                                 \
        .windows = (n), .sum_wt = 1e4, .sum_t = 1e4 * (t), .sum_t2 = 1e4 * (t) * (t), \
        .sum_we = 1e4, .sum_e = 1e4 * (e), .sum_e2 = 1e4 * (e) * (e)                  \
    }

/* The measured caps stand in their order, whatever the order of the trials, with the
 * value of a goal that is not their energy or time.
 */
static void caps_sorted(void)
{
    static const struct tuner_cap caps[] = {{290000, MEAN(3, 0.5, 1200), {600, 0.0141}},
                                            {153000, MEAN(1, 0.7, 900), {630, 0.0141}},
                                            {180000, MEAN(2, 0.6, 950), {570, 0.0141}}};
    struct tuner_report tuner = {.original_mw = 300000,
                                 .holding = true,
                                 .held_mw = 180000,
                                 .reached = true,
                                 .cap = caps,
                                 .n_caps = 3,
                                 .reference_mw = 290000,
                                 .why = "all windows are used; 150 W not tried: the "
                                        "bound left no time for it",
                                 .stopped_s = 330,
                                 .waited_s = 41,
                                 .saved = {.known = true,
                                           .steps = 123456,
                                           .energy_j = 100,
                                           .half_j = 1400,
                                           .half = 0.013,
                                           .slowdown = 1.00001,
                                           .slowdown_half = 0.00056,
                                           .pairs = 12,
                                           .cost_known = true,
                                           .cost_j = 3536,
                                           .search_s = 317,
                                           .back_s = 62}};
    const struct cmd cmd = {.name = "run"};
    const struct job_run run = {
        .cmd = &cmd, .caps = JOB_CAPS_SEARCH, .goal = {.kind = GOAL_EDP}};
    const struct job_result result = {.tuner = &tuner};
    auto_(mem_free) char *said = NULL;

    said = text_of(&run, &result);
    if (!ok(said != NULL, "a report"))
        return;
    ok(strstr(
           said,
           "  caps      W  s a step         J a step           EDP, J s windows\n"
           "          290    0.5000        1200 ± 24           600 ± 17       3  "
           "(reference)\n"
           "          180    0.6000         950 ± 19           570 ± 16       2  (held)\n"
           "          153    0.7000         900 ± 18           630 ± 17       1\n"),
       "the highest cap first, with its EDP: %s", said);
    ok(strstr(said, "  saved  not distinguishable from zero: 100 ± 1400 J") &&
           strstr(said, "\n         compared with 12 measurements of the highest cap "
                        "allowed") &&
           widest(said) <= 80,
       "no line has more than 80 columns, but %u", widest(said));
    ok(strstr(said, "\n  cap    180 W of 300 W: all windows are used; 150 W not tried:"),
       "the reason is wrapped");
    ok(strstr(said, "\n  search 317 s, 3 caps;") &&
           strstr(said, "\n  stop   CMD was stopped for 330 s:") &&
           strstr(said, "\n  wait   41 s for boards that were held by others") &&
           strstr(said, "\n  back   62 s on the way to the held cap again"),
       "stops, waits and the way back are not those of the search");
}

/* A cap by name, begun under another claim that ended: the saving is unknown, and a cap
 * above that of the reference windows is no reference.
 */
static void reference_lost(void)
{
    static const struct tuner_cap caps[] = {{180000, MEAN(3, 0.6, 950), {NAN, NAN}},
                                            {220000, MEAN(2, 0.55, 1000), {NAN, NAN}}};
    struct tuner_report tuner = {.original_mw = 300000,
                                 .holding = true,
                                 .held_mw = 220000,
                                 .reached = true,
                                 .cap = caps,
                                 .n_caps = 2,
                                 .reference_mw = 180000,
                                 .allowed_mw = 180000,
                                 .lifted_mw = 300000,
                                 .why = "requested"};
    const struct cmd cmd = {.name = "run"};
    const struct job_run run = {.cmd = &cmd, .caps = JOB_CAPS_NAMED};
    const struct job_result result = {.tuner = &tuner};
    auto_(mem_free) char *said = NULL;

    said = text_of(&run, &result);
    if (!ok(said != NULL, "a report"))
        return;
    ok(strstr(said, "  from   180 W, not the original") &&
           strstr(said, "  saved  unknown: other claims allowed 300 W later, more than "
                        "the 180 W of the\n         reference windows\n"),
       "the report says which watts: %s", said);
    ok(strstr(said, "          220     0.550        1000 ± 20       2  (held)\n"
                    "          180     0.600         950 ± 19       3  (reference)\n"),
       "one cap is the reference: %s", said);
}

/* A job that ended before a cap was in force: no search failed where a cap was named. */
static void not_in_force(void)
{
    static const struct {
        enum job_caps caps;
        struct cap_arg cap;
        const char *said;
        unsigned changes;
    } cases[] = {
        {JOB_CAPS_SEARCH, {0}, "  cap    none was found before the job ended\n", 0},
        {JOB_CAPS_NAMED, {.mw = 200000}, "  cap    200 W was never in force\n", 0},
        {JOB_CAPS_NAMED,
         {.percent = 80},
         "  cap    80 % of the default limit was never in force\n",
         0},
        {JOB_CAPS_NAMED,
         {.mw = 200000},
         "  cap    200 W was not in force at the end: the job had changed\n",
         1}};
    struct tuner_report tuner = {.original_mw = 300000};
    const struct cmd cmd = {.name = "run"};
    const struct job_result result = {.tuner = &tuner};

    for (size_t i = 0; i < n_elements(cases); i++) {
        const struct job_run run = {
            .cmd = &cmd, .caps = cases[i].caps, .cap = cases[i].cap};
        tuner.changes = cases[i].changes;
        auto_(mem_free) char *said = NULL;
        said = text_of(&run, &result);
        if (!ok(said != NULL, "a report"))
            return;
        ok(strstr(said, cases[i].said), "a job without its cap: %s", said);
    }
}

int main(void)
{
    not_in_force();
    caps_sorted();
    reference_lost();
    reasons();
    by_gpu();
    found_late();
    notes();
    return done();
}
