/* Fork and exec. */
#ifndef IO_SPAWN_H
#define IO_SPAWN_H

#include "io/loop.h"

int loop_child_spawn(const struct loop_child_opts *opts, pid_t *ret, uw_error *err);

#endif
