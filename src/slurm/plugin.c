/* The functions that Slurm calls.  No error here may fail a job: every hook returns 0. */
#include "slurm/context.h"

#pragma GCC visibility push(default)
SPANK_PLUGIN(underwatt, 1)
#pragma GCC visibility pop

int slurm_spank_init(spank_t sp, int argc, char **argv)
{
    struct arguments args;
    uw_error err;
    int r = context_arguments(argc, argv, &args, &err);

    switch (spank_context()) {
    case S_CTX_LOCAL:
    case S_CTX_ALLOCATOR:
        submission_begin(sp, &args, r < 0 ? &err : NULL);
        break;
    case S_CTX_REMOTE: /* otherwise the options would be unknown there */
        for (int i = 0; i < OPTIONS; i++)
            (void)spank_option_register(sp, &context_option[i]);
        break;
    case S_CTX_SLURMD:
        if (r < 0)
            slurm_error("underwatt: plugstack.conf: %s", err.text);
        break;
    default:
        break;
    }
    return ESPANK_SUCCESS;
}

int slurm_spank_init_post_opt(spank_t sp, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    if (spank_context() == S_CTX_LOCAL || spank_context() == S_CTX_ALLOCATOR)
        submission_end(sp);
    return ESPANK_SUCCESS;
}

int slurm_spank_job_prolog(spank_t sp, int argc, char **argv)
{
    prolog(sp, argc, argv);
    return ESPANK_SUCCESS;
}

int slurm_spank_job_epilog(spank_t sp, int argc, char **argv)
{
    epilog(sp, argc, argv);
    return ESPANK_SUCCESS;
}
