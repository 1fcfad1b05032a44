/* The actuator's decisions: pure, no clock, no driver, no file. */
#ifndef ACTUATOR_CORE_H
#define ACTUATOR_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "actuator/result.h"
#include "base/units.h"
#include "gpu/gpu.h"
#include "underwatt/error.h"

/* What a board's journal says; see journal.h for the file. */
struct cap_entry {
    char uuid[96];
    char boot[48];   /* the kernel's boot id */
    char driver[96]; /* mark of the driver's load; "" unknown */
    uint32_t original_mw;
    uint32_t intended_mw; /* what we set last, or are about to set */
    uint32_t readback_mw; /* what was set when we last looked */
    bool clocks;          /* the SM clock was locked by us */
};

/* What a board reports of its limit. */
struct cap_seen {
    bool readable;
    bool told;       /* the driver tells what was asked of it */
    uint32_t set_mw; /* the limit asked for of the driver, where it tells, else … */
    uint32_t enforced_mw; /* … the one in force */
};
struct cap_seen core_seen(const struct gpu_sample *sample);

/* May this board be given this limit?  DONE or REFUSED, with a text that names
 * the range.
 */
enum actuator_result core_check_limit(const struct gpu_info *info,
                                      const struct gpu_limits *limits, uint32_t mw,
                                      uw_error *err);
/* What root's configuration allows, beside what the board does. */
enum { CORE_RULES_BOARDS_MAX = 64 };
struct core_rules {
    bool listed; /* only these boards; else all */
    char board[CORE_RULES_BOARDS_MAX][96];
    size_t n_boards;
    struct cap_arg from, to; /* of the default limit; nothing set: the board's range */
    bool clocks;             /* SM clocks may be locked … */
    uint32_t clocks_from_mhz, clocks_to_mhz; /* … to an upper end between these; 0: the
                                              * board's */
};
/* May this board be held at all?  DONE or REFUSED.  rules may be NULL: all is. */
enum actuator_result core_check_board(const struct core_rules *rules, const char *uuid,
                                      uw_error *err);
/* Where its limits may be set: see struct actuator_range.  Where nothing but the original
 * may, both ends are that.  original_mw 0: not known.
 */
struct actuator_range core_range(const struct core_rules *rules,
                                 const struct gpu_limits *limits, uint32_t original_mw);
/* May it be given this limit?  The original always may. */
enum actuator_result core_check_rules(const struct core_rules *rules, const char *uuid,
                                      const struct gpu_limits *limits,
                                      uint32_t original_mw, uint32_t mw, uw_error *err);
/* May its SM clocks be locked to this range?  0, 0: a reset, which always may be where
 * they can be locked at all.  DONE or REFUSED.
 */
enum actuator_result core_check_clocks(const struct core_rules *rules,
                                       const struct gpu_info *info, uint32_t min_mhz,
                                       uint32_t max_mhz, uw_error *err);
/* The result of a lock; r: the backend's result. *ret_locked: the lock may be in force.
 */
enum actuator_result core_judge_clocks(int r, bool *ret_locked);

/* Whether the limit that is set is another program's. */
bool core_is_foreign(const struct cap_entry *entry, const struct cap_seen *seen);

/* The result of a write. r: the backend's result; before and after: what was read right
 * before and right after it. A driver may round the value slightly; if quite another
 * value is requested from it afterwards, another program has written.
 */
enum actuator_result core_judge(uint32_t asked_mw, int r, const struct cap_seen *before,
                                const struct cap_seen *after);

/* What to do with an entry that an earlier actuator left. */
enum recovery_why {
    RECOVERY_RESTORE, /* the limit is ours: write the original */
    RECOVERY_AT_ORIGINAL,
    RECOVERY_OTHER_BOOT,   /* the driver forgot our limit with the reboot … */
    RECOVERY_OTHER_DRIVER, /* … or with its reload */
    RECOVERY_FOREIGN,      /* a limit that we did not write: not ours to undo */
    RECOVERY_UNREADABLE,   /* the board does not answer: the entry stays */
};
struct recovery {
    enum recovery_why why;
    bool set_original;
    bool reset_clocks;
    bool drop; /* once the two above are done, of which neither waits for the other */
};
struct recovery core_recover(const struct cap_entry *entry, const char *boot,
                             const char *driver, const struct cap_seen *seen);
/* As text, for the log. */
const char *core_recovery_text(enum recovery_why why);

/* A client asks to hold a board.  What is known of it, and what to do. */
struct core_board {
    bool free;       /* held by nobody */
    bool restoring;  /* its original is on the way back */
    bool hangs;      /* a call hangs in the driver */
    bool left;       /* its holder has gone, its grace runs … */
    uid_t left_uid;  /* … and this is whose it was */
    bool yielded_to; /* another's limit was seen there by this client's session */
};
enum core_hold {
    CORE_HOLD_BEGIN, /* note the original, prove the right */
    CORE_HOLD_ADOPT, /* take over what is in force, write nothing */
    CORE_HOLD_YIELDED,
    CORE_HOLD_TAKEN,
    CORE_HOLD_RESTORING,
    CORE_HOLD_HANGS,
};
enum core_hold core_hold(const struct core_board *board, uid_t uid);
/* The answer and the text of those that are refused; NULL for the first two. */
const char *core_hold_refusal(enum core_hold what, enum actuator_result *ret);

/* What happens to a held board whose client has gone. */
enum core_left {
    CORE_LEFT_RESTORE, /* at once */
    CORE_LEFT_KEEP,    /* for the grace */
};
/* ending: its release was asked for, or its lease is over. */
enum core_left core_leave(uint64_t grace_ns, bool ending);

/* A board whose original could not be brought back, in a line. */
struct core_kept {
    const char *uuid;
    uint32_t in_force_mw; /* when last read; 0: unknown */
    uint32_t original_mw; /* 0: unknown */
    bool hangs;           /* a call hangs in the driver … */
    uint64_t hangs_ns;    /* … for so long */
    const char *why;      /* else: the last attempt's text; it may begin with the UUID */
    bool entry;           /* its journal's entry waits for the next start */
};
void core_kept_text(const struct core_kept *kept, char *ret, size_t size);

/* The exit status of one that restores: of boards that had something to undo. */
enum core_status { CORE_ALL = 0, CORE_NONE = 1, CORE_SOME = 3 };
enum core_status core_status(unsigned restored, unsigned failed);

/* How long to wait after the n-th failed attempt to restore (n from 1); 0: give
 * up, the entry stays for the next start.
 */
uint64_t core_retry_ns(unsigned n);

/* A UUID as drivers print them: letters, digits, '-', 1 to 80 of them, no '-' first.
 * It becomes a file's name.
 */
bool core_is_uuid(const char *text);

#endif
