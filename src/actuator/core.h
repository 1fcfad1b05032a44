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

/* An entry of the journal; journal.h describes its file. */
struct cap_entry {
    char uuid[96];
    char boot[48];   /* the kernel's boot id */
    char driver[96]; /* identifies the load of the driver; "": unknown */
    uint32_t original_mw;
    uint32_t intended_mw; /* the limit that Underwatt set last, or is about to set */
    uint32_t readback_mw; /* the limit that was set when last read */
    bool clocks;          /* Underwatt has locked the SM clock */
};

/* A board's report of its limit. */
struct cap_seen {
    bool readable;
    bool told;            /* the driver reports the requested limit */
    uint32_t set_mw;      /* the requested limit, where the driver reports it; else … */
    uint32_t enforced_mw; /* … the limit in force */
};
struct cap_seen core_seen(const struct gpu_sample *sample);

/* Whether this limit may be set on this board.  DONE, or REFUSED with a text that names
 * the range.
 */
enum actuator_result core_check_limit(const struct gpu_info *info,
                                      const struct gpu_limits *limits, uint32_t mw,
                                      uw_error *err);
/* Restrictions of root's configuration, in addition to the board's range. */
enum { CORE_RULES_BOARDS_MAX = 64 };
struct core_rules {
    bool listed; /* only the listed boards are allowed; else all */
    char board[CORE_RULES_BOARDS_MAX][96];
    size_t n_boards;
    struct cap_arg from, to; /* allowed range of limits; not set: the board's range */
    bool clocks;             /* SM clocks may be locked … */
    uint32_t clocks_from_mhz,
        clocks_to_mhz; /* … to an upper end in this range; 0: the board's own end */
};
/* Whether this board may be held at all.  DONE or REFUSED.  rules NULL: every board may.
 */
enum actuator_result core_check_board(const struct core_rules *rules, const char *uuid,
                                      uw_error *err);
/* The range in which limits may be set: see struct actuator_range.  If only the original
 * limit is allowed, both ends are equal to it.  original_mw 0: unknown.
 */
struct actuator_range core_range(const struct core_rules *rules,
                                 const struct gpu_limits *limits, uint32_t original_mw);
/* Root's range in the form that is sent to clients, and the range of core_range() that a
 * client computes from it.
 */
void core_tell_rules(const struct core_rules *rules, struct actuator_reply *ret);
struct actuator_range core_told_range(const struct actuator_rule *from,
                                      const struct actuator_rule *to,
                                      const struct gpu_limits *limits,
                                      uint32_t original_mw);
/* Whether this limit may be set; the original always may. */
enum actuator_result core_check_rules(const struct core_rules *rules, const char *uuid,
                                      const struct gpu_limits *limits,
                                      uint32_t original_mw, uint32_t mw, uw_error *err);
/* Whether the SM clocks may be locked to this range.  0, 0: a reset, which is always
 * allowed where clocks can be locked at all.  DONE or REFUSED.
 */
enum actuator_result core_check_clocks(const struct core_rules *rules,
                                       const struct gpu_info *info, uint32_t min_mhz,
                                       uint32_t max_mhz, uw_error *err);
/* Maps the backend's result r of a lock.  *ret_locked: the lock may be in force. */
enum actuator_result core_judge_clocks(int r, bool *ret_locked);

/* Whether the limit that is set is another program's. */
bool core_is_foreign(const struct cap_entry *entry, const struct cap_seen *seen);

/* Maps the backend's result r of a write.  before and after: the limit read right before
 * and right after the write.  A driver may round the value slightly; if the requested
 * limit is entirely different afterwards, another program has written it.
 */
enum actuator_result core_judge(uint32_t asked_mw, int r, const struct cap_seen *before,
                                const struct cap_seen *after);

/* Decides what to do with an entry that an earlier actuator left. */
enum recovery_why {
    RECOVERY_RESTORE, /* the limit is Underwatt's: write the original */
    RECOVERY_AT_ORIGINAL,
    RECOVERY_OTHER_BOOT,   /* the driver lost the limit in a reboot … */
    RECOVERY_OTHER_DRIVER, /* … or in a reload */
    RECOVERY_FOREIGN,      /* another program wrote the limit: not undone */
    RECOVERY_UNREADABLE,   /* the board does not answer: the entry stays */
};
struct recovery {
    enum recovery_why why;
    bool set_original;
    bool reset_clocks;
    bool drop; /* once both steps above are done, which are independent of each other */
};
struct recovery core_recover(const struct cap_entry *entry, const char *boot,
                             const char *driver, const struct cap_seen *seen);
/* As text, for the log. */
const char *core_recovery_text(enum recovery_why why);

/* A client's request to hold a board: the state of the board, and the decision. */
struct core_board {
    bool free;       /* no client holds the board */
    bool restoring;  /* its original limit is being restored */
    bool hangs;      /* a call hangs in the driver */
    bool left;       /* its holder has disconnected, and the grace runs … */
    uid_t left_uid;  /* … with this uid as the former holder's */
    bool yielded_to; /* this client's session has seen another program's limit there */
};
enum core_hold {
    CORE_HOLD_BEGIN, /* record the original limit, prove the right to set limits */
    CORE_HOLD_ADOPT, /* take over the cap in force, without a write */
    CORE_HOLD_YIELDED,
    CORE_HOLD_TAKEN,
    CORE_HOLD_RESTORING,
    CORE_HOLD_HANGS,
};
enum core_hold core_hold(const struct core_board *board, uid_t uid);
/* The result and the text of a refused hold; NULL for the first two. */
const char *core_hold_refusal(enum core_hold what, enum actuator_result *ret);

/* How much longer a lease lasts whose end is noticed late: this process stood still,
 * often with the whole machine, and the client could not renew.  0: it is over.
 */
uint64_t core_lease_more_ns(uint64_t due_ns, uint64_t now_ns);

/* Decides what happens to a held board whose client has disconnected. */
enum core_left {
    CORE_LEFT_RESTORE, /* at once */
    CORE_LEFT_KEEP,    /* for the grace */
};
/* ending: the release was requested, or the lease has expired. */
enum core_left core_leave(uint64_t grace_ns, bool ending);

/* A board whose original limit could not be restored, as one line. */
struct core_kept {
    const char *uuid;
    uint32_t in_force_mw; /* when last read; 0: unknown */
    uint32_t original_mw; /* 0: unknown */
    bool hangs;           /* a call hangs in the driver … */
    uint64_t hangs_ns;    /* … for this time */
    const char
        *why;   /* else the error of the last attempt, which may begin with the UUID */
    bool entry; /* the journal's entry is kept for the next start */
};
void core_kept_text(const struct core_kept *kept, char *ret, size_t size);

/* The exit status of a recovery, by the boards that had something to undo. */
enum core_status { CORE_ALL = 0, CORE_NONE = 1, CORE_SOME = 3 };
enum core_status core_status(unsigned restored, unsigned failed);

/* The delay after the n-th failed attempt to restore (n from 1); 0: give up; the entry is
 * kept for the next start.
 */
uint64_t core_retry_ns(unsigned n);

/* A UUID in the form that drivers print: 1 to 80 letters, digits and '-', not beginning
 * with '-'.  It is used as a file name.
 */
bool core_is_uuid(const char *text);

#endif
