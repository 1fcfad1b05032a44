#include "actuator/core.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"

enum { LATE_MS = 50 }; /* a loop that runs notices the end of a lease sooner */

struct cap_seen core_seen(const struct gpu_sample *sample)
{
    struct cap_seen seen = {0};

    if (sample->has & GPU_HAS_ENFORCED)
        seen.enforced_mw = sample->enforced_mw;
    seen.told = sample->has & GPU_HAS_REQUESTED;
    seen.set_mw = seen.told ? sample->requested_mw : seen.enforced_mw;
    if (!seen.enforced_mw)
        seen.enforced_mw = seen.set_mw;
    seen.readable = seen.set_mw > 0;
    return seen;
}

enum actuator_result core_check_limit(const struct gpu_info *info,
                                      const struct gpu_limits *limits, uint32_t mw,
                                      uw_error *err)
{
    if (!(info->abilities & GPU_CAN_SET_LIMIT) || !limits->max_mw)
        return (enum actuator_result)fail(
            err, ACTUATOR_REFUSED, "%s: this board takes no power limit", info->uuid);
    if (mw < limits->min_mw || mw > limits->max_mw)
        return (enum actuator_result)fail(err, ACTUATOR_REFUSED,
                                          "%s: %" PRIu32 " mW is outside %" PRIu32
                                          "..%" PRIu32 " mW",
                                          info->uuid, mw, limits->min_mw, limits->max_mw);
    return ACTUATOR_DONE;
}

enum actuator_result core_check_board(const struct core_rules *rules, const char *uuid,
                                      uw_error *err)
{
    if (!rules || !rules->listed)
        return ACTUATOR_DONE;
    for (size_t i = 0; i < rules->n_boards; i++)
        if (strcmp(rules->board[i], uuid) == 0)
            return ACTUATOR_DONE;
    return (enum actuator_result)fail(err, ACTUATOR_REFUSED,
                                      "%s: not among the boards that the actuator's "
                                      "configuration allows",
                                      uuid);
}

static uint32_t limit_of(const struct cap_arg *cap, const struct gpu_limits *limits,
                         uint32_t otherwise_mw)
{
    uint32_t whole_mw = limits->default_mw ? limits->default_mw : limits->max_mw;

    if (cap->mw)
        return cap->mw;
    return cap->percent > 0 ? mw_of_w(w_of_mw(whole_mw) * cap->percent / 100)
                            : otherwise_mw;
}

/* The limits of root's configuration, regardless of the board's own range. */
static struct actuator_range range_of(const struct core_rules *rules,
                                      const struct gpu_limits *limits)
{
    return (struct actuator_range){limit_of(&rules->from, limits, limits->min_mw),
                                   limit_of(&rules->to, limits, limits->max_mw)};
}

struct actuator_range core_range(const struct core_rules *rules,
                                 const struct gpu_limits *limits, uint32_t original_mw)
{
    struct actuator_range r = {limits->min_mw, limits->max_mw};

    if (rules && limits->max_mw) {
        struct actuator_range roots = range_of(rules, limits);
        r.min_mw = roots.min_mw > r.min_mw ? roots.min_mw : r.min_mw;
        r.max_mw = roots.max_mw < r.max_mw ? roots.max_mw : r.max_mw;
    }
    if (r.min_mw > r.max_mw)
        return (struct actuator_range){original_mw, original_mw};
    if (original_mw && original_mw < r.min_mw)
        r.min_mw = original_mw;
    return r;
}

enum { PPM_OF_PERCENT = 10000 };

static struct actuator_rule told_rule(const struct cap_arg *cap)
{
    return (struct actuator_rule){
        cap->mw, cap->mw ? 0 : (uint32_t)lround(cap->percent * PPM_OF_PERCENT)};
}

static struct cap_arg rule_told(const struct actuator_rule *rule)
{
    return (struct cap_arg){.mw = rule->mw,
                            .percent = (double)rule->ppm / PPM_OF_PERCENT};
}

void core_tell_rules(const struct core_rules *rules, struct actuator_reply *ret)
{
    if (!rules)
        return;
    ret->from = told_rule(&rules->from);
    ret->to = told_rule(&rules->to);
}

struct actuator_range core_told_range(const struct actuator_rule *from,
                                      const struct actuator_rule *to,
                                      const struct gpu_limits *limits,
                                      uint32_t original_mw)
{
    const struct core_rules rules = {.from = rule_told(from), .to = rule_told(to)};

    return core_range(&rules, limits, original_mw);
}

enum actuator_result core_check_rules(const struct core_rules *rules, const char *uuid,
                                      const struct gpu_limits *limits,
                                      uint32_t original_mw, uint32_t mw, uw_error *err)
{
    if (!rules || mw == original_mw)
        return ACTUATOR_DONE;
    struct actuator_range roots = range_of(rules, limits);
    if (mw < roots.min_mw || mw > roots.max_mw)
        return (enum actuator_result)fail(
            err, ACTUATOR_REFUSED,
            "%s: %" PRIu32 " mW is outside %" PRIu32 "..%" PRIu32
            " mW, the range of the actuator's configuration",
            uuid, mw, roots.min_mw, roots.max_mw);
    return ACTUATOR_DONE;
}

static enum actuator_result check_clock_rules(const struct core_rules *rules,
                                              const char *uuid, uint32_t max_mhz,
                                              uint32_t top_mhz, uw_error *err)
{
    if (!rules)
        return ACTUATOR_DONE;
    if (!rules->clocks)
        return (enum actuator_result)fail(
            err, ACTUATOR_REFUSED,
            "%s: the actuator's configuration does not allow locked clocks (clocks)",
            uuid);
    uint32_t from_mhz = rules->clocks_from_mhz ? rules->clocks_from_mhz : 1;
    uint32_t to_mhz = rules->clocks_to_mhz ? rules->clocks_to_mhz : top_mhz;
    if (max_mhz < from_mhz || max_mhz > to_mhz)
        return (enum actuator_result)fail(
            err, ACTUATOR_REFUSED,
            "%s: a clock of %" PRIu32 " MHz is outside %" PRIu32 "..%" PRIu32
            " MHz, the range of the actuator's configuration",
            uuid, max_mhz, from_mhz, to_mhz);
    return ACTUATOR_DONE;
}

enum actuator_result core_check_clocks(const struct core_rules *rules,
                                       const struct gpu_info *info, uint32_t min_mhz,
                                       uint32_t max_mhz, uw_error *err)
{
    if (!(info->abilities & GPU_CAN_LOCK_CLOCKS))
        return (enum actuator_result)fail(err, ACTUATOR_REFUSED,
                                          "%s: this board's clocks cannot be locked",
                                          info->uuid);
    if (!min_mhz && !max_mhz)
        return ACTUATOR_DONE;
    uint32_t top = info->clock_max_mhz ? info->clock_max_mhz : 10000;
    if (!min_mhz || min_mhz > max_mhz || max_mhz > top)
        return (enum actuator_result)fail(err, ACTUATOR_REFUSED,
                                          "%s: clocks %" PRIu32 "..%" PRIu32
                                          " MHz are outside 1..%" PRIu32 " MHz",
                                          info->uuid, min_mhz, max_mhz, top);
    return check_clock_rules(rules, info->uuid, max_mhz, top, err);
}

enum actuator_result core_judge_clocks(int r, bool *ret_locked)
{
    switch (r) {
    case 0:
        *ret_locked = true;
        return ACTUATOR_DONE;
    case -EPERM:
        *ret_locked = false;
        return ACTUATOR_DENIED;
    case -ERANGE:
    case -ENOTSUP:
        *ret_locked = false;
        return ACTUATOR_REFUSED;
    case -ENODEV:
        *ret_locked = true;
        return ACTUATOR_GONE;
    default:
        *ret_locked = true; /* unknown: it counts as locked, and is reset at the end */
        return ACTUATOR_UNKNOWN;
    }
}

bool core_is_foreign(const struct cap_entry *entry, const struct cap_seen *seen)
{
    return seen->readable && seen->set_mw != entry->intended_mw &&
           seen->set_mw != entry->readback_mw;
}

static bool is_rounding(uint32_t a_mw, uint32_t b_mw)
{
    enum { ROUNDING_MW = 5000 };

    return (a_mw > b_mw ? a_mw - b_mw : b_mw - a_mw) <= ROUNDING_MW;
}

enum actuator_result core_judge(uint32_t asked_mw, int r, const struct cap_seen *before,
                                const struct cap_seen *after)
{
    if (r == -EPERM)
        return ACTUATOR_DENIED;
    if (r == -ERANGE || r == -ENOTSUP)
        return ACTUATOR_REFUSED;
    if (r == -ENODEV)
        return ACTUATOR_GONE;
    if (!after->readable)
        return ACTUATOR_UNKNOWN;
    if (r < 0)
        return before->readable && after->set_mw == before->set_mw &&
                       after->set_mw != asked_mw
                   ? ACTUATOR_REFUSED
                   : ACTUATOR_UNKNOWN;
    if (after->told && after->set_mw != before->set_mw &&
        !is_rounding(after->set_mw, asked_mw))
        return ACTUATOR_YIELDED;
    return after->enforced_mw == asked_mw ? ACTUATOR_DONE : ACTUATOR_CLAMPED;
}

struct recovery core_recover(const struct cap_entry *entry, const char *boot,
                             const char *driver, const struct cap_seen *seen)
{
    if (strcmp(entry->boot, boot) != 0)
        return (struct recovery){.why = RECOVERY_OTHER_BOOT, .drop = true};
    if (entry->driver[0] && driver[0] && strcmp(entry->driver, driver) != 0)
        return (struct recovery){.why = RECOVERY_OTHER_DRIVER, .drop = true};
    if (!seen->readable)
        return (struct recovery){.why = RECOVERY_UNREADABLE,
                                 .reset_clocks = entry->clocks};

    struct recovery what = {.reset_clocks = entry->clocks, .drop = true};
    if (seen->set_mw == entry->original_mw) {
        what.why = RECOVERY_AT_ORIGINAL;
    } else if (core_is_foreign(entry, seen)) {
        what.why = RECOVERY_FOREIGN;
    } else {
        what.why = RECOVERY_RESTORE;
        what.set_original = true;
    }
    return what;
}

const char *core_recovery_text(enum recovery_why why)
{
    switch (why) {
    case RECOVERY_RESTORE:
        return "Underwatt's limit is in force";
    case RECOVERY_AT_ORIGINAL:
        return "the original limit is in force";
    case RECOVERY_OTHER_BOOT:
        return "entry dropped: the machine was rebooted since";
    case RECOVERY_OTHER_DRIVER:
        return "entry dropped: the driver was reloaded since";
    case RECOVERY_FOREIGN:
        return "entry dropped: Underwatt did not set the limit in force";
    case RECOVERY_UNREADABLE:
        return "the board does not answer, the entry stays";
    }
    return "?";
}

enum core_hold core_hold(const struct core_board *board, uid_t uid)
{
    if (board->hangs)
        return CORE_HOLD_HANGS;
    if (board->restoring)
        return CORE_HOLD_RESTORING;
    if (board->left && board->left_uid == uid)
        return CORE_HOLD_ADOPT;
    if (!board->free)
        return CORE_HOLD_TAKEN;
    return board->yielded_to ? CORE_HOLD_YIELDED : CORE_HOLD_BEGIN;
}

const char *core_hold_refusal(enum core_hold what, enum actuator_result *ret)
{
    switch (what) {
    case CORE_HOLD_BEGIN:
    case CORE_HOLD_ADOPT:
        return NULL;
    case CORE_HOLD_YIELDED:
        *ret = ACTUATOR_YIELDED;
        return "another program set the limit: this session does not change it";
    case CORE_HOLD_TAKEN:
        *ret = ACTUATOR_TAKEN;
        return "held already";
    case CORE_HOLD_RESTORING:
        *ret = ACTUATOR_UNKNOWN;
        return "its original is still being restored";
    case CORE_HOLD_HANGS:
        *ret = ACTUATOR_UNKNOWN;
        return "a call hangs in the driver";
    }
    return NULL;
}

uint64_t core_lease_more_ns(uint64_t due_ns, uint64_t now_ns)
{
    return now_ns > due_ns + LATE_MS * NS_PER_MS ? ACTUATOR_RENEW_MS * NS_PER_MS : 0;
}

enum core_left core_leave(uint64_t grace_ns, bool ending)
{
    return grace_ns > 0 && !ending ? CORE_LEFT_KEEP : CORE_LEFT_RESTORE;
}

void core_kept_text(const struct core_kept *kept, char *ret, size_t size)
{
    char in_force[64] = "the limit in force is unknown", original[48] = "unknown";
    size_t n = strlen(kept->uuid);
    const char *why = kept->why;

    if (kept->in_force_mw)
        (void)snprintf(in_force, sizeof in_force, "%g W was in force when last read",
                       w_of_mw(kept->in_force_mw));
    if (kept->original_mw)
        (void)snprintf(original, sizeof original, "%g W", w_of_mw(kept->original_mw));
    if (strncmp(why, kept->uuid, n) == 0 && why[n] == ':')
        why += n + 1 + (why[n + 1] == ' ');
    char hangs[64];
    (void)snprintf(hangs, sizeof hangs, "a call has hung in the driver for %.0f s",
                   s_of_ns(kept->hangs_ns));
    (void)snprintf(ret, size, "%s: not restored: %s, the original is %s: %s%s",
                   kept->uuid, in_force, original, kept->hangs ? hangs : why,
                   kept->entry ? "; its entry waits for underwatt-actuator --recover"
                               : "");
}

enum core_status core_status(unsigned restored, unsigned failed)
{
    if (!failed)
        return CORE_ALL;
    return restored ? CORE_SOME : CORE_NONE;
}

uint64_t core_retry_ns(unsigned n)
{
    enum { ATTEMPTS = 20 };

    if (n >= ATTEMPTS)
        return 0;
    uint64_t ns = 100 * NS_PER_MS << (n > 6 ? 6 : n);
    return ns > 5 * NS_PER_S ? 5 * NS_PER_S : ns;
}

bool core_is_uuid(const char *text)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "0123456789-";
    size_t n = strspn(text, good);

    return n > 0 && n <= 80 && text[n] == '\0' && text[0] != '-';
}
