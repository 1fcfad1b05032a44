/* policy.yaml: a site's rules, classes and presets, read into the values of core/policy.
 * All or nothing: an error names file, line, what is wrong and, of a condition, the
 * column.
 *
 * Owns what it has read; touches no file by itself but the machine's time zones
 * and list of countries.  Runs
 * on the caller's thread.  Explained in docs/policies.md; an example is
 * docs/policies/example.yaml.
 */
#ifndef POLICY_FILE_H
#define POLICY_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "core/policy/limit.h"
#include "core/policy/policy.h"
#include "policy/signal-source.h"
#include "underwatt/error.h"

enum { POLICY_FILE_MAX = 1 << 20, POLICY_LIMITS_MAX = 2, POLICY_SIGNALS_MAX = 128 };

/* For accounting. */
struct policy_facility {
    const char *zone; /* of the grid (signal/grid-zone.h); NULL: none */
    double pue;       /* 0: none, or pue_signal */
    const struct policy_signal *pue_signal;
    const char *currency;
};

struct policy_file {
    struct policy policy;
    uint64_t every_ns; /* conditions are evaluated no more often */
    struct policy_limits limits;
    struct policy_facility facility;
    struct signal_sources sources; /* the site's signals, and where they come from */
};

/* name: the file in errors.  hidden: errors do not show the text (yaml_read_hidden()).
 * 0, -EINVAL or -ERANGE, or as yaml_read().
 */
int policy_file_read(const char *name, const char *text, size_t len, bool hidden,
                     struct policy_file **ret, uw_error *err);
void policy_file_free(struct policy_file *f);
DEFINE_AUTO(struct policy_file *, policy_file_free);

/* The zone of the schedule of a rule that has one, for policy_schedule_at(). */
void policy_file_zone(const struct policy_file *f, size_t rule, int64_t utc_s,
                      struct policy_zone *ret);

/* policy_check() with "FILE:LINE: " in front of each text, which shows names of rules and
 * classes, hidden or not.  Returns how many are errors.
 */
typedef void (*policy_file_finding_fn)(bool error, const char *text, void *user);
size_t policy_file_check(const struct policy_file *f, policy_file_finding_fn fn,
                         void *user);

#endif
