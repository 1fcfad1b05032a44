/* A job has ended on this node, and with it its claims.  Slurm may call this twice, for
 * a job whose prolog never ran, and without the job's options: each end is reported.
 */
#include "slurm/context.h"
#include "slurm/message.h"

void epilog(spank_t sp, int argc, char **argv)
{
    struct hook h;
    char request[MESSAGE_REQUEST];

    if (!hook_begin(&h, "epilog", sp, argc, argv))
        return;
    hook_ask(&h, request, message_end(h.job, request), "");
    hook_end(&h);
}
