/* Whether a user may claim on a board.  Pure.  Explained in docs/jobs.md. */
#ifndef CORE_JOB_OWNER_H
#define CORE_JOB_OWNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum owner_kind {
    OWNER_FOUND,      /* found through the process list, or any job on a board that it
                       * was not given */
    OWNER_RUN,        /* `underwatt run`: its user named the board */
    OWNER_REGISTERED, /* given the board by a scheduler or an administrator */
};

struct owner_job { /* a job on the board */
    enum owner_kind kind;
    uint32_t uid;
};

struct owner_proc {
    bool known; /* false: its user is unknown */
    uint32_t uid;
    bool compute; /* false: graphics only (a desktop) */
};

struct owner_board {
    const struct owner_job *job;
    size_t n_jobs;
    const struct owner_proc *proc;
    size_t n_procs;
    bool procs_known; /* the list is recent and complete */
};

/* Whether uid may claim on the board.  Root: always.  With a registered job: yes.  With a
 * run job: unless the board is registered for other users only, or another user computes
 * on it.  With a found job: only while the process list is known and not empty, all
 * processes (also graphics) are uid's, and the board is not registered for other users
 * only.
 */
bool owner_may_claim(const struct owner_board *b, uint32_t uid);

/* Whether existing claims of uid stay valid.  As owner_may_claim(), but an unknown or
 * empty process list does not end them, nor do processes of uid whose job is not known
 * yet.
 */
bool owner_keeps_claim(const struct owner_board *b, uint32_t uid);

/* Whether a process on the board belongs to another user, or to an unknown one. */
bool owner_foreign(const struct owner_board *b, uint32_t uid);

#endif
