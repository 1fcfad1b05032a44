/* One request to a unix socket and its answer, within a deadline.  May be called in
 * foreign processes: it leaves no descriptor open, raises no signal, allocates nothing
 * and retries nothing.
 */
#ifndef SLURM_CLIENT_H
#define SLURM_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "base/units.h"
#include "slurm/message.h"

/* Time for an answer if the process itself did not get a CPU until the deadline: the
 * request is sent even then.
 */
#define CLIENT_LEAST_NS (5 * NS_PER_MS)

uint64_t client_now_ns(void); /* CLOCK_MONOTONIC */

/* Returns the number of bytes of the answer in ret: all of it, or its first MESSAGE_KEPT.
 * -errno: -ETIMEDOUT at until_ns, or CLIENT_LEAST_NS after the request if that is later,
 * -EMSGSIZE for an answer of more than MESSAGE_ANSWER bytes, -ENAMETOOLONG, or the error
 * of socket(), connect(), send() or recv().
 */
int client_ask(const char *path, const char *request, size_t len, uint64_t until_ns,
               char ret[MESSAGE_KEPT]);

#endif
