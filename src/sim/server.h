/* The process of a simulated world in real time: advances the world, publishes its state,
 * and answers requests.  Thread: one loop.
 */
#ifndef SIM_SERVER_H
#define SIM_SERVER_H

#include "sim/machine.h"
#include "underwatt/error.h"

struct server_opts {
    const struct sim_machine *machine;
    const char *state_dir; /* absolute */
    const char *library;   /* libnvidia-ml.so.1 to copy into the world */
    double speed;
    int ready_fd; /* gets one byte once clients may connect; -1: no reader */
};

/* Runs until SIM_OP_STOP, SIGTERM or SIGINT; returns 0 then.  Removes the files of the
 * state directory, and the directory if it is then empty. -EBUSY: a world runs there
 * already.
 */
int server_run(const struct server_opts *opts, uw_error *err);

#endif
