/* The two requests to underwattd (docs/slurm.md), and the parsing of its answers.  Pure;
 * nothing is allocated.
 */
#ifndef SLURM_MESSAGE_H
#define SLURM_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "slurm/wish.h"
#include "underwatt/error.h"

enum {
    MESSAGE_GPUS_MAX = 64,
    MESSAGE_LABELS_MAX = 4,
    MESSAGE_LABEL = 64,     /* bytes of a value; a longer one is cut */
    MESSAGE_REQUEST = 8192, /* bytes of a request */
    MESSAGE_ANSWER = 65536, /* bytes of an answer that are read at most */
    MESSAGE_KEPT = 4096,    /* bytes of these that are parsed */
};

struct message_label {
    const char *key, *value; /* value NULL or "": left out */
};

/* The data sent to the daemon about a job that begins. */
struct message_job {
    uint32_t id;
    uid_t uid;
    unsigned minor[MESSAGE_GPUS_MAX];
    size_t n_minors;
    struct message_label label[MESSAGE_LABELS_MAX];
    uint64_t limit_s;       /* 0: unknown */
    const struct wish *ask; /* cap, preset or goal; NULL: none */
    const struct wish *cls; /* NULL: none */
    const char *unknown;    /* why its GPUs are unknown; NULL: known */
};

/* Write the request that registers a job, or ends one.  Returns its length, -E2BIG. */
int message_begin(const struct message_job *job, char ret[MESSAGE_REQUEST]);
int message_end(uint32_t job_id, char ret[MESSAGE_REQUEST]);

/* The status of an answer, 100 to 599; -EPROTO where this is no answer of HTTP/1.x. */
int message_status(const char *answer, size_t len);
/* Whether an answer has all bytes that its head announces; without Content-Length it ends
 * with the connection.
 */
bool message_complete(const char *answer, size_t len);
/* The string at a key of an answer's JSON, for a line of the log: characters that are not
 * plain ASCII become '?', a long string is cut.  false: no such string.
 */
bool message_word(const char *answer, size_t len, const char *key, char *ret,
                  size_t size);

#endif
