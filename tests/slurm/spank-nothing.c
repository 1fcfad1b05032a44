/* A plugin whose hooks do nothing: what Slurm itself takes for any. */
#pragma GCC visibility push(default)
#include <slurm/spank.h>
SPANK_PLUGIN(nothing, 1)
#pragma GCC visibility pop

int slurm_spank_job_prolog(spank_t sp, int argc, char **argv)
{
    (void)sp;
    (void)argc;
    (void)argv;
    return ESPANK_SUCCESS;
}

int slurm_spank_job_epilog(spank_t sp, int argc, char **argv)
{
    (void)sp;
    (void)argc;
    (void)argv;
    return ESPANK_SUCCESS;
}
