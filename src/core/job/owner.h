/* Whose a board is: may a user claim on it?  Pure. */
#ifndef CORE_JOB_OWNER_H
#define CORE_JOB_OWNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum owner_kind {
    OWNER_FOUND,      /* a job found through the process list, or one whose processes
                       * show up where it was given nothing */
    OWNER_RUN,        /* `underwatt run`: its user named the board */
    OWNER_REGISTERED, /* a scheduler or an administrator gave it the board */
};

struct owner_job { /* a job on the board */
    enum owner_kind kind;
    uint32_t uid;
};

struct owner_proc {
    bool known; /* false: nobody can tell whose it is */
    uint32_t uid;
    bool compute; /* else graphics alone: a desktop */
};

struct owner_board {
    const struct owner_job *job;
    size_t n_jobs;
    const struct owner_proc *proc;
    size_t n_procs;
    bool procs_known; /* the list is recent and complete */
};

/* Root always.  Registered: yes.  Run: unless a scheduler gave the board to somebody
 * else or another user computes on it.  Found: only while the list is known, not
 * empty, every process on it (graphics, too) is that user's and no scheduler gave it to
 * somebody else.  Where a run job only names the board and another computes there alone,
 * the right is the other's.
 */
bool owner_may_claim(const struct owner_board *b, uint32_t uid);

/* May what uid claimed here stand?  While the right to claim does: but a list of
 * processes that cannot be had for the moment takes nothing away, nor does it that
 * processes of uid's alone are there, and their job is not told yet.
 */
bool owner_keeps_claim(const struct owner_board *b, uint32_t uid);

/* Is somebody on the board who is not uid, or may not be? */
bool owner_foreign(const struct owner_board *b, uint32_t uid);

#endif
