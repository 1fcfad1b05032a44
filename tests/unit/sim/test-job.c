#include "sim/job.h"

#include <errno.h>

#include "tap.h"

/* clang-format off */
static const struct {
    const char *text;
    int r;
    const char *says; /* a part of the error */
} bad[] = {
    {"--workload", -EINVAL, "--workload: a value is missing"},
    {"--colour red", -EINVAL, "unknown option: one of"},
    {"--gpus 0,0", -EINVAL, "twice"},
    {"--worklaod none", -EINVAL, "--worklaod: unknown option: did you mean '--workload'?"},
    {"--gpus ,", -EINVAL, "not a whole number"},
    {"--epochs 0", -ERANGE, "outside 1.."},
    {"--epochs two", -EINVAL, "not a whole number"},
    {"--steps -1", -EINVAL, "is below 0"},
    {"--phases load=1s", -EINVAL, "no train phase"},
    {"--phases train,sleep", -EINVAL, "'sleep' is none of"},
    {"--phases train=3", -EINVAL, "takes no amount"},
    {"--phases train,load=5", -EINVAL, "5"},
    {"--phases train,validate=5", -EINVAL, "percentage"},
    {"--phases train,validate=-5%", -ERANGE, "outside 0..1000"},
    {"--phases train,,train", -EINVAL, "'' is none of"},
    {"--change 10", -EINVAL, "STEP:TIME:POWER"},
    {"--change 10:1.1", -EINVAL, "STEP:TIME:POWER"},
    {"--change 10:1.1:1:1", -EINVAL, "STEP:TIME:POWER"},
    {"--change 0:1.1:1", -ERANGE, "outside 1.."},
    {"--change 10:9:1", -ERANGE, "outside 0.2..5"},
    {"--change 10:x:1", -EINVAL, "'x' is not a number"},
    {"--workload aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", -EINVAL, "unknown workload"},
};
/* clang-format on */

static void test_defaults(void)
{
    struct sim_job job;
    uw_error err;

    is_int(sim_job_parse(NULL, 0, &job, &err), 0, "no options");
    is_str(job.workload, "resnet50", "the default workload");
    is_int(job.boards, 0, "every board");
    is_int(job.epochs, 1, "one epoch");
    is_int(job.n_phases, 4, "four phases");
    is_int(job.phase[0].phase, UW_PHASE_LOAD, "data loading first");
    is_int(job.phase[1].phase, UW_PHASE_TRAIN, "then training");
    is_near(job.phase[2].percent, 5, 0, "validation over 5 %%");
    is_near(job.phase[3].s, 1, 1e-12, "a checkpoint of one second");
}

static void test_all(void)
{
    struct sim_job job;
    uw_error err;

    is_int(sim_job_parse_text("--workload vgg19 --gpus 0,3,63 --epochs 7  --steps 12 "
                              "--phases startup=1.5s,train,checkpoint=20ms",
                              &job, &err),
           0, "all options");
    is_str(job.workload, "vgg19", "workload");
    ok(job.boards == ((1ull << 63) | 9), "boards 0, 3, 63");
    is_int(job.epochs, 7, "epochs");
    is_int(job.steps, 12, "steps");
    is_near(job.startup_s, 1.5, 1e-12, "start-up");
    is_int(job.n_phases, 2, "start-up is no phase of an epoch");
    is_near(job.phase[1].s, 0.02, 1e-12, "checkpoint");
    is_int(sim_job_parse_text("--gpus 0 --gpus all", &job, &err), 0, "--gpus all");
    is_int(job.boards, 0, "is every board");
}

int main(void)
{
    test_defaults();
    test_all();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct sim_job job = {.workload = "canary"};
        uw_error err = {""};
        int r = sim_job_parse_text(bad[i].text, &job, &err);
        is_int(r, bad[i].r, "'%s' is refused", bad[i].text);
        if (!ok(strstr(err.text, bad[i].says) != NULL, "'%s' says '%s'", bad[i].text,
                bad[i].says))
            printf("# got: %s\n", err.text);
        is_str(job.workload, "canary", "and nothing is changed");
    }
    const char *args[] = {"--gpus", "0,1", "--phases", "train, load"};
    char text[64];
    uw_error err;
    is_int(sim_job_text(args, 4, text, sizeof text, &err), -EINVAL, "a blank in a word");
    is_int(sim_job_text(args, 2, text, 8, &err), -E2BIG, "too long for its room");
    is_int(sim_job_text(args, 2, text, sizeof text, &err), 0, "as one text");
    is_str(text, "--gpus 0,1", "with blanks between");
    return done();
}
