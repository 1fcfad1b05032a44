/* What root's configuration allows: underwatt-actuator.yaml(5). */
#ifndef ACTUATOR_RULES_H
#define ACTUATOR_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "actuator/core.h"
#include "base/units.h"
#include "underwatt/error.h"

#define RULES_USERS "/etc/passwd"
#define RULES_FILE UNDERWATT_ETC "/actuator.yaml"

enum {
    RULES_CLIENTS_MAX = 16,
    RULES_GRACE_S = 10,
    RULES_GRACE_MAX_S = 60,
};

/* Without pointers: copied by assignment. */
struct rules {
    uid_t client[RULES_CLIENTS_MAX]; /* uids that may connect besides root and this
                                        process's uid */
    size_t n_clients;
    struct core_rules boards;
    bool realtime; /* run its threads in a real-time class where allowed */
    uint64_t grace_ns;
    char library[512];  /* path of NVML; "": the system's */
    char powercap[512]; /* folder of the processors' counters; "": the kernel's */
};

/* The rules without a file: every board in its own range; only root and this uid may
 * connect.
 */
struct rules rules_default(void);

/* users: the file in which names of clients are looked up, in the form of /etc/passwd
 * (NULL: no lookup, no such client is served); no other user database is queried, as its
 * libraries must not be loaded into a root process.  *ret is written only on success.
 * -EINVAL, -ERANGE, -E2BIG with FILE:LINE.
 */
int rules_read(const char *name, const char *text, size_t len, const char *users,
               struct rules *ret, uw_error *err);
/* Adds a client: a user of that file, or a uid. */
int rules_add_client(struct rules *rules, const char *text, const char *users,
                     uw_error *err);
/* privileged: the file and every folder above it must be writable by root only, and error
 * texts quote nothing from the file, which the caller may not be allowed to read.
 * -ENOENT: no such file; -EPERM, and as above.
 */
int rules_read_file(const char *path, bool privileged, const char *users,
                    struct rules *ret, uw_error *err);
/* The same for a check by hand: errors quote a file that everybody may read. */
int rules_check_file(const char *path, bool privileged, const char *users,
                     struct rules *ret, uw_error *err);

#endif
