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
    uid_t client[RULES_CLIENTS_MAX]; /* who may connect besides root and our own uid */
    size_t n_clients;
    struct core_rules boards;
    bool realtime; /* its threads are of a real-time class where they may */
    uint64_t grace_ns;
    char library[512];  /* NVML; "" the system's */
    char powercap[512]; /* the processors' counters; "" the kernel's */
};

/* Where there is no file: every board, its own range, root and our own uid alone. */
struct rules rules_default(void);

/* users: what names of clients are looked up in (NULL: they are not, nobody is served),
 * /etc/passwd's form; no other source of users is asked (their libraries have no place in
 * a process of root's).  *ret is written only on success.  -EINVAL, -ERANGE, -E2BIG with
 * FILE:LINE.
 */
int rules_read(const char *name, const char *text, size_t len, const char *users,
               struct rules *ret, uw_error *err);
/* One more client: a user of that file, or a uid. */
int rules_add_client(struct rules *rules, const char *text, const char *users,
                     uw_error *err);
/* privileged: the file and every folder above it must be root's alone to write, and
 * errors hold nothing of its text, which the caller may not be allowed to read. -ENOENT:
 * not there; -EPERM, and as above.
 */
int rules_read_file(const char *path, bool privileged, const char *users,
                    struct rules *ret, uw_error *err);

#endif
