/* One request to a unix socket and its answer, within a deadline.  May be called in
 * other people's processes: no descriptor is left, no signal raised, nothing allocated,
 * nothing tried twice.
 */
#ifndef SLURM_CLIENT_H
#define SLURM_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "slurm/message.h"

uint64_t client_now_ns(void); /* CLOCK_MONOTONIC */

/* Returns how many bytes of the answer stand in ret: all of it, or its first
 * MESSAGE_KEPT.  -errno: -ETIMEDOUT at until_ns, -EMSGSIZE for an answer of more than
 * MESSAGE_ANSWER bytes, -ENAMETOOLONG, what socket(), connect(), send() and recv() say.
 */
int client_ask(const char *path, const char *request, size_t len, uint64_t until_ns,
               char ret[MESSAGE_KEPT]);

#endif
