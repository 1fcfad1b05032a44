/* The jobs of this node: registered (by `underwatt run`, by a scheduler) or found
 * through the driver's process list; who owns which board since when.
 */
#ifndef NODE_ROSTER_H
#define NODE_ROSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/optimum/goal.h"
#include "io/loop.h"
#include "node/boards.h"

struct roster;

enum {
    ROSTER_MAX = 256, /* jobs at once */
    LABELS_MAX = 16,
    LABEL_KEY = 32,
    LABEL_VALUE = 64,
    JOB_NAME = 96,
};

enum job_source {
    JOB_RUN,        /* underwatt run */
    JOB_REGISTERED, /* a scheduler's adapter (root or admin) */
    JOB_FOUND,      /* the driver's process list and /proc */
};
const char *job_source_name(enum job_source source); /* "run", "registered", "found" */

struct label {
    char key[LABEL_KEY], value[LABEL_VALUE];
};

struct job_entry {
    uint64_t id; /* of the ledger: never used twice */
    enum job_source source;
    char name[JOB_NAME]; /* "slurm:4711", "k8s:POD-UID", command's name … */
    uid_t uid;
    char user[32];   /* "" unknown */
    uint64_t boards; /* bit i: board i of the set */
    struct label label[LABELS_MAX];
    size_t n_labels;
    pid_t pid;       /* its first process; 0: none known */
    unsigned n_pids; /* processes seen on its boards */
    bool foreign;    /* found: somebody else's process is on one of its boards */
    uint64_t began_ns, ended_ns; /* ended 0: runs */
    int64_t began_utc_ns, ended_utc_ns;
    uint32_t phase; /* enum uw_phase */
};

enum roster_event { ROSTER_BEGIN, ROSTER_CHANGE, ROSTER_END };
typedef void (*roster_event_fn)(enum roster_event event, const struct job_entry *job,
                                void *user);

struct roster_opts {
    struct loop *loop;
    struct boards *boards;
    uint64_t look_ns; /* between looks at the process lists; 0: 2 s */
    const char *proc; /* "/proc"; tests give another */
    uint64_t first_id;
    roster_event_fn on_event;
    void *user;
};
int roster_new(const struct roster_opts *opts, struct roster **ret, uw_error *err);
void roster_free(struct roster *r);
DEFINE_AUTO(struct roster *, roster_free);

struct roster_register {
    enum job_source source; /* RUN or REGISTERED */
    const char *name;
    uid_t uid;
    uint64_t boards; /* 0: found by its processes (pid's descendants) */
    pid_t pid;       /* the job ends when this process does (pidfd); 0: by roster_end() */
    const struct label *label;
    size_t n_labels;
    uint64_t id; /* 0: a new one; else taken over after a restart */
    int64_t began_utc_ns;
};
/* -EINVAL, -ESRCH (no such process), -EPERM (pid is not uid's), -EBUSY (a board is
 * another user's job's), -E2BIG.
 */
int roster_begin(struct roster *r, const struct roster_register *reg, uint64_t *ret_id,
                 uw_error *err);
int roster_end(struct roster *r, uint64_t id, uw_error *err); /* -ENOENT */
const struct job_entry *roster_find(const struct roster *r, uint64_t id);
size_t roster_count(const struct roster *r);
const struct job_entry *roster_at(const struct roster *r, size_t i);

/* May uid claim on this board?  Admin and root: always.  Else only where a job of
 * that uid owns it: a registered or run one whose registration gave it the board, or
 * a found one while every process on the board is of that uid.
 */
bool roster_may_claim(const struct roster *r, uid_t uid, size_t board);

#endif
