/* srun, sbatch and salloc: the options, checked before the job is submitted. */
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/utf8.h"
#include "slurm/context.h"

/* Slurm takes a plugin's option from its environment under these names, and puts each
 * given option there, so that commands within a job find the job's options.
 */
#define OF_ENVIRONMENT "SLURM_SPANK__SLURM_SPANK_OPTION_underwatt_"
static const char *const of_environment[OPTIONS] = {OF_ENVIRONMENT "gpu_power_cap",
                                                    OF_ENVIRONMENT "gpu_power_goal",
                                                    OF_ENVIRONMENT "gpu_power_class"};

/* Options of this process, which submits one job. */
static const char *table_path;
static bool is_step;        /* a step of a running job: its options change nothing */
static bool cap_is_default; /* only from the environment: an option has precedence */
static bool have[OPTIONS];
static bool cap_first;          /* before the script's goal, which Slurm keeps */
static uw_error wrong_argument; /* of plugstack.conf; "": none */

#define DEFAULT_CAP "SLURM_GPU_POWER_CAP"

static int check(const struct wish *w, uw_error *err);

/* The shortest accepted abbreviations of options. */
static const char *const shortest[OPTIONS] = {"--gpu-power-ca", "--gpu-power-g",
                                              "--gpu-power-cl"};

/* Whether this process was called with an argument that begins like this. */
static bool called_with(const char *start)
{
    auto_(mem_free) char *text = NULL;
    int len = context_file("/proc/self/cmdline", &text, NULL);
    size_t n_start = strlen(start);

    for (int at = 0; at < len;) {
        size_t n = strnlen(text + at, (size_t)(len - at));
        if (n >= n_start && memcmp(text + at, start, n_start) == 0)
            return true;
        at += (int)n + 1;
    }
    return false;
}

/* Whether SLURM_GPU_POWER_CAP is wrong and an option is given, so that it does not
 * count.  Slurm passes its value before the options.
 */
static bool is_idle_default(const char *cap)
{
    struct wish w;
    uw_error err;

    if (!called_with(shortest[OPTION_CAP]) && !called_with(shortest[OPTION_GOAL]))
        return false;
    int r = context_wish(OPTION_CAP, cap, &w, &err);
    if (r == 0)
        r = check(&w, &err);
    if (r == 0)
        return false;
    utf8_mend(err.text);
    slurm_info("underwatt: " DEFAULT_CAP " does not count beside an option: %s",
               err.text);
    return true;
}

void submission_begin(spank_t sp, const struct arguments *args, const uw_error *wrong)
{
    const char *cap = getenv(DEFAULT_CAP);

    table_path = args->boards;
    wrong_argument = wrong ? *wrong : (uw_error){""};
    is_step = spank_context() == S_CTX_LOCAL && getenv("SLURM_JOB_ID");
    for (int i = 0; i < OPTIONS; i++)
        (void)spank_option_register(sp, &context_option[i]);
    if (is_step) /* the first one of salloc's job brings the job's options to the prolog
                  */
        return;
    for (int i = 0; i < OPTIONS; i++)
        (void)unsetenv(of_environment[i]); /* of the job in which this one is submitted */
    (void)unsetenv("SLURM_" CAP_FIRST);
    cap_is_default = cap && *cap && !is_idle_default(cap);
    if (cap_is_default)
        (void)setenv(of_environment[OPTION_CAP], cap, 1);
}

/* Checks a request against the site's table; a table that cannot be read refuses none. */
static int check(const struct wish *w, uw_error *err)
{
    auto_(mem_free) char *text = NULL;
    auto_(mem_free) struct table *t = NULL;
    uw_error why;

    if (!table_path)
        return 0;
    t = calloc(1, sizeof *t);
    int len = context_file(table_path, &text, &why);
    int r = len;
    if (len >= 0 && t)
        r = table_read(text, (size_t)len, t, &why);
    if (r < 0 || !t) {
        if (r < 0 && len >= 0)
            (void)fail_in(&why, r, "%s", table_path);
        slurm_info("underwatt: caps and classes are not checked: %s",
                   r < 0 ? why.text : "out of memory");
        return 0;
    }
    return table_check(t, w, err);
}

/* A cap and a goal: the command line has precedence over the script, whose option Slurm
 * keeps.  The prolog takes the goal of both, unless it learns that the cap is first.
 */
static int both(void)
{
    static bool told;
    bool cap = called_with(shortest[OPTION_CAP]),
         goal = called_with(shortest[OPTION_GOAL]);

    if (cap == goal) {
        slurm_error("underwatt: --gpu-power-cap or --gpu-power-goal, not both");
        return -1;
    }
    cap_first = cap;
    if (!told)
        slurm_info("underwatt: --%s goes before the script's --%s",
                   context_option[cap ? OPTION_CAP : OPTION_GOAL].name,
                   context_option[cap ? OPTION_GOAL : OPTION_CAP].name);
    told = true;
    return 0;
}

void submission_end(spank_t sp)
{
    /* The first step on a node passes the prolog the job's options. */
    if (is_step ? getenv("SLURM_" CAP_FIRST) != NULL : cap_first)
        (void)spank_job_control_setenv(sp, CAP_FIRST_SET, "yes", 1);
    else
        (void)spank_job_control_unsetenv(sp, CAP_FIRST_SET);
}

/* Whether the option belongs to a step in a running job; reports that to the user. */
static bool is_steps(enum option which)
{
    static bool told;
    bool written = !told && called_with(shortest[which]);

    if (!is_step && !(spank_context() == S_CTX_LOCAL && called_with("--jobid")))
        return false;
    if (written)
        slurm_info("underwatt: --%s of a step does not count: a cap, goal and class are "
                   "the job's",
                   context_option[which].name);
    told |= written;
    return true;
}

int submission_option(int which, const char *value, int remote)
{
    struct wish w;
    uw_error err;

    if (remote || which < 0 || which >= OPTIONS || is_steps((enum option)which))
        return 0;
    if (wrong_argument.text[0]) /* once, and only to users of an option */
        slurm_info("underwatt: plugstack.conf: %s", wrong_argument.text);
    wrong_argument.text[0] = '\0';
    int r = context_wish((enum option)which, value ? value : "", &w, &err);
    if (r == 0)
        r = check(&w, &err);
    if (r < 0) {
        utf8_mend(err.text);
        bool of_default = which == OPTION_CAP && cap_is_default && !have[OPTION_CAP];
        slurm_error("underwatt: %s%s: %s", of_default ? "" : "--",
                    of_default ? DEFAULT_CAP : context_option[which].name, err.text);
        return -1;
    }
    if (which == OPTION_CAP && have[OPTION_CAP])
        cap_is_default = false; /* the environment's comes first */
    have[which] = true;
    return have[OPTION_CAP] && have[OPTION_GOAL] && !cap_is_default ? both() : 0;
}
