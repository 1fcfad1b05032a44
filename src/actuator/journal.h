/* The state that survives the actuator: a lock and an entry for each board, in one
 * directory that only the actuator's user may write.
 *
 * UUID.lock is locked with flock() for as long as a board is held, and contains the
 * client's pid; it is never removed.  UUID.cap is the entry: it is written and synced
 * before the first write to the board, and removed once the original limit is restored.
 * Later changes are written in place without a sync: the entry has a fixed size far below
 * a page, so a killed process leaves the old or the new text, and a power loss ends the
 * boot for which the entry is valid anyway.
 *
 * Symbolic links, files of another owner, hard-linked files and those that other users
 * may write are refused, never followed, never changed.  Such an entry, or one that is
 * not valid, is kept aside as UUID.cap.damaged: the board's original limit is then
 * unknown, so the board is not held until root has removed that file.
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
    char boot[48]; /* boot id of the running kernel */
};

enum {
    JOURNAL_NONE = 1,  /* no entry */
    JOURNAL_TAKEN = 2, /* another process holds the lock */
};

/* Creates dir (mode 0711) if it is missing; its parent must exist. */
int journal_open(const char *dir, struct journal *ret, uw_error *err);
void journal_close(struct journal *journal);

/* Locks a board; closing *ret_fd releases the lock.  client: the pid to report to other
 * processes.  JOURNAL_TAKEN: *ret_holder is the holder.
 */
int journal_lock(const struct journal *journal, const char *uuid, pid_t client,
                 int *ret_fd, struct holder *ret_holder, uw_error *err);

/* Whether another process has the lock, which this process does not have: JOURNAL_TAKEN
 * (*ret_holder is the holder), or 0.
 */
int journal_look(const struct journal *journal, const char *uuid,
                 struct holder *ret_holder, uw_error *err);

/* Releases the lock and clears the pid in its file. */
void journal_unlock(int lock_fd);

/* Writes the pid of the new client into the lock's file. */
void journal_lock_name(int lock_fd, pid_t client);

/* The functions below require the board's lock. */
int journal_write(const struct journal *journal, const struct cap_entry *entry,
                  uw_error *err); /* atomic, synced */
int journal_note(const struct journal *journal, const struct cap_entry *entry,
                 uw_error *err); /* in place; the entry must exist */
/* 0, JOURNAL_NONE, -EBADMSG (not an entry) or -EPERM (refused as above). */
int journal_read(const struct journal *journal, const char *uuid, struct cap_entry *ret,
                 uw_error *err);
/* As journal_read(), but a damaged entry (-EBADMSG, -EPERM) is moved aside.  -EBADMSG:
 * this board has a damaged entry, new or from before; err names the board, the file and
 * the fault.
 */
#define JOURNAL_DAMAGED ".cap.damaged"
int journal_take(const struct journal *journal, const char *uuid, struct cap_entry *ret,
                 uw_error *err);
int journal_remove(const struct journal *journal, const char *uuid, uw_error *err);

/* The UUIDs of all entries, damaged ones included; at most max. */
int journal_list(const struct journal *journal, char (*ret)[96], size_t max,
                 size_t *ret_n, uw_error *err);

/* Format and parse an entry; pure.  The text is always JOURNAL_BYTES long. */
enum { JOURNAL_BYTES = 512 };
void journal_format(const struct cap_entry *entry, char ret[JOURNAL_BYTES]);
int journal_parse(const char *text, size_t size, struct cap_entry *ret, uw_error *err);

/* Replaces each character that is not allowed in a driver's mark by '_'. */
void journal_clean_mark(char *mark);

#endif
