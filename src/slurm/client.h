/* One request to a unix socket and its answer, within a deadline.  May be called in
 * other people's processes: no descriptor is left, no signal raised, nothing allocated,
 * nothing tried twice.
 */
#ifndef SLURM_CLIENT_H
#define SLURM_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "base/units.h"
#include "slurm/message.h"

/* What an answer may take where the process itself was kept from a CPU until the
 * deadline: the request is sent even then.
 */
#define CLIENT_LEAST_NS (5 * NS_PER_MS)

uint64_t client_now_ns(void); /* CLOCK_MONOTONIC */

/* Returns how many bytes of the answer stand in ret: all of it, or its first
 * MESSAGE_KEPT.  -errno: -ETIMEDOUT at until_ns, or CLIENT_LEAST_NS after the
 * request where that is later, -EMSGSIZE for an answer of more than
 * MESSAGE_ANSWER bytes, -ENAMETOOLONG, what socket(), connect(), send() and recv() say.
 */
int client_ask(const char *path, const char *request, size_t len, uint64_t until_ns,
               char ret[MESSAGE_KEPT]);

#endif
