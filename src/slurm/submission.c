/* srun, sbatch and salloc: the options, checked before the job is submitted. */
#include <stdlib.h>

#include "base/auto.h"
#include "base/error.h"
#include "slurm/context.h"

/* Slurm takes an option of a plugin from its environment under this name. */
#define CAP_OF_ENVIRONMENT "SLURM_SPANK__SLURM_SPANK_OPTION_underwatt_gpu_power_cap"

/* What this process has been told: one submits one job. */
static const char *table_path;
static bool cap_is_default; /* of the environment alone: an option goes before it */
static bool have[OPTIONS];

void submission_begin(spank_t sp, const struct arguments *args)
{
    const char *cap = getenv("SLURM_GPU_POWER_CAP");

    table_path = args->boards;
    for (int i = 0; i < OPTIONS; i++)
        (void)spank_option_register(sp, &context_option[i]);
    if (cap && *cap && !getenv(CAP_OF_ENVIRONMENT)) {
        cap_is_default = true;
        (void)setenv(CAP_OF_ENVIRONMENT, cap, 0);
    }
}

/* Checks a wish against the site's table; a table that cannot be read refuses nobody. */
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

int submission_option(int which, const char *value, int remote)
{
    struct wish w;
    uw_error err;

    if (remote || which < 0 || which >= OPTIONS)
        return 0;
    int r = context_wish((enum option)which, value ? value : "", &w, &err);
    if (r == 0)
        r = check(&w, &err);
    if (r < 0) {
        slurm_error("underwatt: --%s: %s", context_option[which].name, err.text);
        return -1;
    }
    if (which == OPTION_CAP && have[OPTION_CAP])
        cap_is_default = false; /* the environment's comes first */
    have[which] = true;
    if (have[OPTION_CAP] && have[OPTION_GOAL] && !cap_is_default) {
        slurm_error("underwatt: --gpu-power-cap or --gpu-power-goal, not both");
        return -1;
    }
    return 0;
}
