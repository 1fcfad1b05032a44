/* The progress page of a job (underwatt/progress.h): made here, written by the job, read
 * so that a truncating or lying job can do no harm.
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

/* Names of pages begin so; six letters or digits follow. */
#define PROGRESS_PREFIX "progress-"

/* Makes a page with a new name in dir (which must exist), mode 0600.  It is locked
 * (flock(2), shared) while it is open here, where the file system can.  -errno of open
 * and write; -EAGAIN: other processes removed every try.
 */
int progress_page_new(const char *dir, struct progress_page **ret, uw_error *err);
/* Adopts a page that its maker handed over (a descriptor of a regular file in memory:
 * memfd or tmpfs, as another file system could make reads hang).  The descriptor is taken
 * on success.  -EINVAL: text says what is wrong with it.
 */
int progress_page_adopt(int fd, struct progress_page **ret, uw_error *err);
/* Frees the page; its descriptor stays open for the caller. */
void progress_page_disown(struct progress_page *page);
/* Removes the file (unless the job has replaced it), and closes it. */
void progress_page_free(struct progress_page *page);
DEFINE_AUTO(struct progress_page *, progress_page_free);

/* Removes the pages in dir that killed makers of this user left, and returns how many.  A
 * page stays while a process has it locked (its maker, or a daemon that got a locked
 * descriptor), while it is named in the environment of a process that is visible and
 * readable here, and while a process with a slot in it lives.
 */
unsigned progress_clear(const char *dir);

/* For UNDERWATT_PROGRESS; borrowed.  "": an adopted page. */
const char *progress_page_path(const struct progress_page *page);

int progress_page_fd(const struct progress_page *page); /* borrowed */

/* Whether a process with that pid exists, as seen from here. */
bool progress_alive(uint64_t pid);

/* Flaws of a page or a slot; reading goes on. */
enum progress_flaw {
    PROGRESS_SHORT = 1u << 0,  /* the file was cut: slots beyond are missing */
    PROGRESS_MAGIC = 1u << 1,  /* header overwritten: nothing is read */
    PROGRESS_BACK = 1u << 2,   /* a slot's steps went backwards under the same pid */
    PROGRESS_FUTURE = 1u << 3, /* a slot's last_step_ns is after now_ns */
    PROGRESS_TORN = 1u << 4,   /* changed during each of the reads */
    PROGRESS_PHASE = 1u << 5,  /* an unknown phase; read as UW_PHASE_UNKNOWN */
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

/* Reads all slots at now_ns (the loop's).  0, with flaws reported; or -EIO and the like,
 * where the file cannot be read at all.  One pread(2) (up to four, where a slot changes
 * meanwhile): may be called from the loop.
 */
int progress_page_read(struct progress_page *page, uint64_t now_ns,
                       struct progress_read *ret, uw_error *err);

/* A number that changes whenever a process or a phase in the page does; 0: unreadable.
 * One pread(2).
 */
uint64_t progress_page_phases(const struct progress_page *page);

#endif
