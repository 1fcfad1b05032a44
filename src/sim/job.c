#include "sim/job.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/units.h"
#include "sim/machine.h"

#define DEFAULT_PHASES "load=1s,train,validate=5%,checkpoint=1s"

static const struct {
    const char *name;
    enum uw_phase phase;
    const char *unit; /* NULL: takes no amount */
    const char *fallback;
} phases[] = {
    {"startup", UW_PHASE_STARTUP, "TIME", "5s"},
    {"load", UW_PHASE_LOAD, "TIME", "1s"},
    {"train", UW_PHASE_TRAIN, NULL, NULL},
    {"validate", UW_PHASE_VALIDATE, "PERCENT%", "5%"},
    {"checkpoint", UW_PHASE_CHECKPOINT, "TIME", "1s"},
};

static int parse_percent(const char *text, double *ret, uw_error *err)
{
    char number[32];
    size_t n = strlen(text);

    if (n < 2 || n > sizeof number || text[n - 1] != '%')
        return fail(err, -EINVAL, "'%.20s' is not a percentage like 5%%", text);
    memcpy(number, text, n - 1);
    number[n - 1] = '\0';
    double v;
    int r = parse_double(number, &v, err);
    if (r)
        return r;
    if (v <= 0 || v > 1000)
        return fail(err, -ERANGE, "%s%% is outside 0..1000 %%", number);
    *ret = v;
    return 0;
}

static int parse_amount(const char *text, const char *unit, struct sim_job_phase *ret,
                        uw_error *err)
{
    uint64_t ns;

    if (strcmp(unit, "TIME") != 0)
        return parse_percent(text, &ret->percent, err);
    int r = parse_duration(text, &ns, err);
    if (!r)
        ret->s = s_of_ns(ns);
    return r;
}

static int parse_phase(const char *text, struct sim_job_phase *ret, uw_error *err)
{
    size_t n = strcspn(text, "=");
    const char *amount = text[n] == '=' ? text + n + 1 : NULL;
    struct nearest near = {0};
    char hint[NEAREST_TEXT];

    for (size_t i = 0; i < n_elements(phases); i++) {
        nearest_try(&near, text, n, phases[i].name);
        if (strlen(phases[i].name) != n || strncmp(phases[i].name, text, n) != 0)
            continue;
        *ret = (struct sim_job_phase){.phase = phases[i].phase};
        if (!phases[i].unit)
            return amount ? fail(err, -EINVAL, "'train' takes no amount: give --steps")
                          : 0;
        return parse_amount(amount ? amount : phases[i].fallback, phases[i].unit, ret,
                            err);
    }
    return fail(err, -EINVAL,
                "'%.40s' is none of: startup=TIME, load=TIME, train, validate=PERCENT%%, "
                "checkpoint=TIME%s",
                text, nearest_text(&near, hint));
}

static int parse_phases(const char *text, struct sim_job *job, uw_error *err)
{
    char copy[JOB_TEXT_MAX];
    char *rest = copy;
    char *word;
    bool trains = false;

    if (strlen(text) >= sizeof copy)
        return fail(err, -E2BIG, "longer than %d characters", JOB_TEXT_MAX - 1);
    memcpy(copy, text, strlen(text) + 1);
    job->n_phases = 0;
    job->startup_s = 0;
    while ((word = strsep(&rest, ","))) {
        struct sim_job_phase p;
        int r = parse_phase(word, &p, err);
        if (r)
            return r;
        if (p.phase == UW_PHASE_STARTUP) {
            job->startup_s = p.s;
            continue;
        }
        if (job->n_phases == JOB_PHASES_MAX)
            return fail(err, -E2BIG, "more than %d phases", JOB_PHASES_MAX);
        trains = trains || p.phase == UW_PHASE_TRAIN;
        job->phase[job->n_phases++] = p;
    }
    return trains ? 0 : fail(err, -EINVAL, "'%.40s' has no train phase", text);
}

static int parse_gpus(const char *text, struct sim_job *job, uw_error *err)
{
    char copy[JOB_TEXT_MAX];
    char *rest = copy;
    char *word;

    if (strlen(text) >= sizeof copy)
        return fail(err, -E2BIG, "longer than %d characters", JOB_TEXT_MAX - 1);
    memcpy(copy, text, strlen(text) + 1);
    job->boards = 0;
    job->beyond = 0;
    if (strcmp(text, SIM_JOB_ALL) == 0)
        return 0;
    while ((word = strsep(&rest, ","))) {
        uint64_t i;
        int r = parse_u64(word, &i, err);
        if (r)
            return r;
        if (i >= SIM_MACHINE_BOARDS_MAX) {
            job->beyond = i; /* the world says which boards it has */
            continue;
        }
        if (job->boards & (1ull << i))
            return fail(err, -EINVAL, "board %s is listed twice", word);
        job->boards |= 1ull << i;
    }
    return 0;
}

static int parse_count(const char *text, uint32_t max, uint32_t *ret, uw_error *err)
{
    uint64_t v;

    int r = parse_u64(text, &v, err);
    if (r)
        return r;
    if (v < 1 || v > max)
        return fail(err, -ERANGE, "%s is outside 1..%u", text, max);
    *ret = (uint32_t)v;
    return 0;
}

/* "STEP:TIME:POWER" */
static int parse_change(const char *text, struct sim_job *job, uw_error *err)
{
    char copy[64];
    char *rest = copy;
    double scale[2];
    uint32_t at = 0;

    if (strlen(text) >= sizeof copy)
        return fail(err, -EINVAL, "'%.40s…' is not STEP:TIME:POWER", text);
    memcpy(copy, text, strlen(text) + 1);
    char *step = strsep(&rest, ":");
    int r = parse_count(step, JOB_STEPS_MAX, &at, err);
    for (size_t i = 0; i < 2 && r >= 0; i++) {
        char *word = strsep(&rest, ":");
        if (!word)
            return fail(err, -EINVAL, "'%s' is not STEP:TIME:POWER", text);
        r = parse_double(word, &scale[i], err);
        if (r >= 0 && !(scale[i] >= 0.2 && scale[i] <= 5))
            r = fail(err, -ERANGE, "%s is outside 0.2..5", word);
    }
    if (r >= 0 && rest)
        r = fail(err, -EINVAL, "'%s' is not STEP:TIME:POWER", text);
    if (r < 0)
        return r;
    job->change_at = at;
    job->change_time = scale[0];
    job->change_power = scale[1];
    return 0;
}

static int parse_tells(const char *text, struct sim_job *job, uw_error *err)
{
    static const char *const words[] = {"steps", "phases", NULL};
    char none[NEAREST_NONE];

    job->steps_alone = strcmp(text, "steps") == 0;
    if (job->steps_alone || strcmp(text, "phases") == 0)
        return 0;
    return fail(err, -EINVAL, "%s", nearest_none_of(text, words, none));
}

static int parse_option(const char *name, const char *value, struct sim_job *job,
                        uw_error *err)
{
    if (strcmp(name, "--workload") == 0) {
        size_t n = strlen(value);
        if (n == 0 || n >= sizeof job->workload)
            return fail(err, -EINVAL, "unknown workload '%.40s'", value);
        memcpy(job->workload, value, n + 1);
        return 0;
    }
    if (strcmp(name, "--gpus") == 0)
        return parse_gpus(value, job, err);
    if (strcmp(name, "--epochs") == 0)
        return parse_count(value, JOB_EPOCHS_MAX, &job->epochs, err);
    if (strcmp(name, "--steps") == 0)
        return parse_count(value, JOB_STEPS_MAX, &job->steps, err);
    if (strcmp(name, "--phases") == 0)
        return parse_phases(value, job, err);
    if (strcmp(name, "--change") == 0)
        return parse_change(value, job, err);
    if (strcmp(name, "--tells") == 0)
        return parse_tells(value, job, err);
    static const char *const names[] = {"--workload", "--gpus",   "--epochs", "--steps",
                                        "--phases",   "--change", "--tells",  NULL};
    char hint[NEAREST_TEXT];
    return fail(err, -EINVAL,
                "unknown option%s: one of --workload, --gpus, --epochs, --steps, "
                "--phases, --change, --tells",
                nearest_of(name, names, hint));
}

int sim_job_parse(const char *const *args, size_t n, struct sim_job *ret, uw_error *err)
{
    struct sim_job job = {.workload = "resnet50", .epochs = 1};

    int r = parse_phases(DEFAULT_PHASES, &job, err);
    for (size_t i = 0; !r && i < n; i += 2) {
        if (i + 1 >= n)
            return fail(err, -EINVAL, "%s: a value is missing", args[i]);
        r = parse_option(args[i], args[i + 1], &job, err);
        if (r)
            return fail_in(err, r, "%s", args[i]);
    }
    if (!r)
        *ret = job;
    return r;
}

struct words {
    char copy[JOB_TEXT_MAX];
    const char *arg[32];
    size_t n;
};

static int split(const char *text, struct words *ret, uw_error *err)
{
    char *rest = ret->copy;
    char *word;

    ret->n = 0;
    if (strnlen(text, sizeof ret->copy) >= sizeof ret->copy)
        return fail(err, -E2BIG, "job options longer than %d characters",
                    JOB_TEXT_MAX - 1);
    memcpy(ret->copy, text, strlen(text) + 1);
    while ((word = strsep(&rest, " "))) {
        if (!*word)
            continue;
        if (ret->n == n_elements(ret->arg))
            return fail(err, -E2BIG, "more than %zu words of job options", ret->n);
        ret->arg[ret->n++] = word;
    }
    return 0;
}

int sim_job_parse_text(const char *text, struct sim_job *ret, uw_error *err)
{
    struct words words;
    int r = split(text, &words, err);

    return r ? r : sim_job_parse(words.arg, words.n, ret, err);
}

int sim_job_parse_driven(const char *text, struct sim_job *ret, uw_error *err)
{
    struct words words;
    struct sim_job job;

    int r = split(text, &words, err);
    for (size_t i = 0; !r && i < words.n; i += 2)
        if (strcmp(words.arg[i], "--workload") != 0 &&
            strcmp(words.arg[i], "--gpus") != 0)
            return fail(err, -EINVAL, "%s: not one of: --workload, --gpus", words.arg[i]);
    if (!r)
        r = sim_job_parse(words.arg, words.n, &job, err);
    if (r)
        return r;
    if (strcmp(job.workload, "none") == 0)
        return fail(err, -EINVAL, "--workload: 'none' has no steps to grant");
    job.driven = true;
    *ret = job;
    return 0;
}

int sim_job_text(const char *const *args, size_t n, char *ret, size_t size, uw_error *err)
{
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(args[i]);
        if (strchr(args[i], ' '))
            return fail(err, -EINVAL, "'%.40s' contains a blank", args[i]);
        if (at + len + 2 > size)
            return fail(err, -E2BIG, "job options longer than %zu characters", size - 1);
        if (i > 0)
            ret[at++] = ' ';
        memcpy(ret + at, args[i], len);
        at += len;
    }
    ret[at] = '\0';
    return 0;
}
