/* What survives the actuator: per board a lock and an entry, in one directory that
 * the actuator's user alone may write.
 *
 * UUID.lock is locked with flock() for as long as a board is held, and says for
 * whom; it is never removed.  UUID.cap is the entry: written and synced before
 * the first write to the board, removed once its original is back.  After that
 * it is changed in place without a sync: it has a fixed size far below a page,
 * so a killed process leaves the old or the new text, and what only a power cut
 * could lose is void after the reboot anyway.
 *
 * Symbolic links, files of another owner, hard-linked ones and those that
 * others may write are refused, never followed, never changed.  An entry that is
 * one of those, or no entry at all, is kept aside as UUID.cap.damaged: nobody
 * knows what its board's original was, so that board is not held until root has
 * removed that file.
 */
#ifndef ACTUATOR_JOURNAL_H
#define ACTUATOR_JOURNAL_H

#include <stddef.h>
#include <sys/types.h>

#include "actuator/core.h"
#include "actuator/holder.h"
#include "base/auto.h"
#include "underwatt/error.h"

struct journal {
    int dir_fd;
    char dir[256];
    char boot[48]; /* of this kernel */
};

enum {
    JOURNAL_NONE = 1,  /* no entry */
    JOURNAL_TAKEN = 2, /* another process holds the lock */
};

/* Makes dir (mode 0711) where it is missing; its parent must be there. */
int journal_open(const char *dir, struct journal *ret, uw_error *err);
void journal_close(struct journal *journal);

/* *ret_fd is the lock: closing it gives it up, too.  client: who is named to others.
 * JOURNAL_TAKEN: *ret_holder is who has it.
 */
int journal_lock(const struct journal *journal, const char *uuid, pid_t client,
                 int *ret_fd, struct holder *ret_holder, uw_error *err);

/* Give it up: nobody is named in it any more, until the next one is. */
void journal_unlock(int lock_fd);

/* Another client's now: who is named to others. */
void journal_lock_name(int lock_fd, pid_t client);

/* All of these need the board's lock. */
int journal_write(const struct journal *journal, const struct cap_entry *entry,
                  uw_error *err); /* atomic, synced */
int journal_note(const struct journal *journal, const struct cap_entry *entry,
                 uw_error *err); /* in place, of an entry that is there */
/* 0, JOURNAL_NONE, -EBADMSG (not an entry) or -EPERM (refused as above). */
int journal_read(const struct journal *journal, const char *uuid, struct cap_entry *ret,
                 uw_error *err);
/* As journal_read(), but a damaged entry (-EBADMSG, -EPERM) is put aside.  -EBADMSG: this
 * board has one aside, from now or from before; err names board, file and what is wrong.
 */
#define JOURNAL_DAMAGED ".cap.damaged"
int journal_take(const struct journal *journal, const char *uuid, struct cap_entry *ret,
                 uw_error *err);
int journal_remove(const struct journal *journal, const char *uuid, uw_error *err);

/* UUIDs of the entries there are, damaged ones' too, at most max of them. */
int journal_list(const struct journal *journal, char (*ret)[96], size_t max,
                 size_t *ret_n, uw_error *err);

/* The entry as text and back; pure.  A text is always JOURNAL_BYTES long. */
enum { JOURNAL_BYTES = 512 };
void journal_format(const struct cap_entry *entry, char ret[JOURNAL_BYTES]);
int journal_parse(const char *text, size_t size, struct cap_entry *ret, uw_error *err);

/* Every character that a mark of a driver must not have becomes '_'. */
void journal_clean_mark(char *mark);

#endif
