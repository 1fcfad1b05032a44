/* The progress page of a job (underwatt/progress.h): made here, written by the
 * job, read in a way that a truncating or lying job cannot hurt.
 */
#ifndef IO_PROGRESS_H
#define IO_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "underwatt/error.h"
#include "underwatt/progress.h"

struct progress_page;

/* Pages are named so, with six letters or digits behind it. */
#define PROGRESS_PREFIX "progress-"

/* Make a page of its own name in dir (which must be there), mode 0600, never one
 * that exists.  It is locked (flock(2), shared) for as long as it is open here, where the
 * file system can.  -errno of open and write; -EAGAIN: others take each away.
 */
int progress_page_new(const char *dir, struct progress_page **ret, uw_error *err);
/* A page that its maker handed over (a descriptor of a regular file in memory: memfd or
 * tmpfs, for whoever else keeps it could make a read hang).  The descriptor is taken on
 * success.  -EINVAL: text says what is wrong with it.
 */
int progress_page_adopt(int fd, struct progress_page **ret, uw_error *err);
/* The descriptor given up, the page freed. */
void progress_page_disown(struct progress_page *page);
/* Removes the file (unless the job has put another in its place), closes. */
void progress_page_free(struct progress_page *page);
DEFINE_AUTO(struct progress_page *, progress_page_free);

/* Removes the pages in dir that makers of this user left when they were killed, and says
 * how many.  One stays while anybody has it locked (its maker, a daemon that it was
 * handed to with a locked descriptor), while it is in the environment of a process that
 * is seen from here and may be looked into, and while a process that has a slot in it
 * lives.
 */
unsigned progress_clear(const char *dir);

/* For UNDERWATT_PROGRESS; borrowed.  "": handed over. */
const char *progress_page_path(const struct progress_page *page);

int progress_page_fd(const struct progress_page *page); /* borrowed */

/* A process of that pid exists, seen from here. */
bool progress_alive(uint64_t pid);

/* What is wrong with a page or a slot that was read: nothing to fail over. */
enum progress_flaw {
    PROGRESS_SHORT = 1u << 0,  /* the file was cut: the slots beyond are not there */
    PROGRESS_MAGIC = 1u << 1,  /* header overwritten: nothing is read */
    PROGRESS_BACK = 1u << 2,   /* a slot's steps went backwards under the same pid */
    PROGRESS_FUTURE = 1u << 3, /* a slot's last_step_ns lies after now_ns */
    PROGRESS_TORN = 1u << 4,   /* it changed while it was read, again and again */
    PROGRESS_PHASE = 1u << 5,  /* a phase that is none; read as UW_PHASE_UNKNOWN */
};

struct progress_seen {
    unsigned index; /* of the slot in the page */
    uint32_t flaws; /* enum progress_flaw */
    bool alive;     /* a process of that pid exists (seen from here) */
    uint64_t pid, steps, last_step_ns;
    uint32_t phase; /* enum uw_phase */
};

struct progress_read {
    uint32_t flaws; /* of the page and of all slots together */
    size_t n;
    struct progress_seen slot[UW_PROGRESS_SLOTS]; /* those with a pid, by index */
};

/* Read all slots at now_ns (the loop's).  0 with what there is, flaws told; or
 * -EIO and the like, where the file cannot be read at all.  One pread(2) (four at
 * most, where a slot changes meanwhile): may be called from the loop.
 */
int progress_page_read(struct progress_page *page, uint64_t now_ns,
                       struct progress_read *ret, uw_error *err);

#endif
