/* Output of squeue of any content: jobs with ids, whose figures add up.  The first byte
 * says whether it is JSON ('j') or lines.
 */
#include <stdlib.h>
#include <string.h>

#include "collector/figures.h"
#include "collector/jobs.h"
#include "fuzz.h"

#define NONCE "00f1"
enum { NOW_S = 1795705529 };

static uint64_t check_jobs(const struct jobs *jobs)
{
    uint64_t running = 0;

    for (size_t i = 0; i < jobs->n; i++) {
        const struct slurm_job *j = &jobs->job[i];
        must(j->id > 0 && j->stage != JOB_IS_OTHER);
        must(j->tasks > 0 && j->tasks <= JOBS_TASKS_MAX);
        must(j->submit_s >= 0 && j->eligible_s >= 0 && j->limit_s >= 0);
        must(strlen(j->name) + strlen(j->nodes) + strlen(j->qos) < JOBS_TEXT_MAX);
        running += j->stage == JOB_IS_RUNNING;
    }
    return running;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct jobs jobs = {.n = 0};
    struct queues q;
    uw_error err = {""};

    if (size < 1)
        return fuzz_say("skipped", "empty");
    char *text = malloc(size);
    must(text);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    int r = data[0] == 'j' ? jobs_read_json(text, size - 1, "4090,", &jobs, &err)
                           : jobs_read_text(text, size - 1, NONCE, "4090,", &jobs, &err);
    if (data[0] == 'j')
        free(text);
    if (r < 0) {
        must(err.text[0] && !jobs.job);
        return fuzz_say("refused", "%s", err.text);
    }
    uint64_t running = check_jobs(&jobs);
    queues_init(&q);
    queues_add(&q, &jobs, NOW_S);
    must(q.n >= 1 && q.n <= FIGURES_MAX);
    for (size_t i = 1; i < q.n; i++)
        must(q.of[i].word[0] && q.of[i].wait_s <= q.of[0].wait_s);
    (void)fuzz_say("jobs", "%zu, %ju run, %ju wait, %ju GPUs, %zu partitions", jobs.n,
                   (uintmax_t)running, (uintmax_t)q.of[0].depth, (uintmax_t)q.of[0].gpus,
                   q.n - 1);
    jobs_fini(&jobs);
    return 0;
}
