/* What `measure` and `run` print at their end. */
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "cli/job-node.h"
#include "cli/job-report.h"
#include "gpu/gpu.h"
#include "io/json.h"
#include "tap.h"

/* The report of a job on boards whose figures have these reasons. */
static char *report_of(uint32_t first, uint32_t second)
{
    static const struct gpu_info info[] = {{.index = 0, .name = "one"},
                                           {.index = 1, .name = "two"}};
    const struct cmd cmd = {.name = "measure"};
    const struct job_run run = {.cmd = &cmd};
    struct meter_result figure = {
        .energy_j = 1000, .power_w = 100, .half_j = 20, .method = METER_COUNTER};
    struct job_board board[] = {{&info[0], true, figure}, {&info[1], true, figure}};
    struct job_result result = {.measured = true,
                                .time_s = 10,
                                .energy_j = 2000,
                                .half_j = 28,
                                .power_w = 200,
                                .n = 2,
                                .n_used = 2,
                                .board = board};
    char *text = NULL;
    size_t size = 0;

    board[0].energy.why = first;
    board[1].energy.why = second;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    job_report_text(&run, &result, to);
    return fclose(to) == 0 ? text : NULL;
}

static unsigned times(const char *text, const char *word)
{
    unsigned n = 0;

    for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
        n++;
    return n;
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
    ok(strstr(both, "(counter; stuck)\n") && strstr(both, "(counter; stuck, coarse)\n"),
       "each board's reasons");
    ok(times(both, "\n         stuck: the counter or the reading was stuck") == 1 &&
           times(both, "\n         coarse: an end") == 1,
       "each of them in plain words, once");
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

int main(void)
{
    reasons();
    found_late();
    return done();
}
