/* Conditions of rules: a small typed language, read once into a flat program.
 *
 *     carbon > 400 g/kWh and not job.critical
 *     price > 0.35 EUR/kWh or price > 1.5 * price.mean(24 h)
 *     job.phase == 'validate'
 *
 * A condition is checked whole when it is read: names, types and units.  What is read can
 * be evaluated in one pass over at most POLICY_OPS instructions, without a branch back,
 * without memory of its own.  Unknown follows Kleene's logic.  Pure; explained in
 * docs/policies.md.
 */
#ifndef CORE_POLICY_CONDITION_H
#define CORE_POLICY_CONDITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/policy/signal.h"
#include "underwatt/error.h"

enum {
    POLICY_TEXT_MAX = 500,  /* bytes of a condition */
    POLICY_NESTED_MAX = 16, /* parentheses, `not` and signs inside each other */
    POLICY_OPS = 64,        /* instructions */
    POLICY_STACK = 24,      /* values at a time */
    POLICY_LITERALS = 128,  /* bytes of all texts in quotes */
    POLICY_NO_SLOT = UINT16_MAX,
};

enum policy_truth {
    POLICY_FALSE,
    POLICY_TRUE,
    POLICY_UNKNOWN,
};

struct policy_op {
    uint8_t code;
    int8_t way; /* of a signal and a number: where hysteresis moves it: -1, 0, 1 */
    uint16_t slot, text; /* of a read; where a text begins in literals */
    double number; /* a constant; of a comparison of two: what hysteresis is a part of */
};
struct policy_condition {
    struct policy_op op[POLICY_OPS];
    uint16_t n_ops, n_literals;
    char literals[POLICY_LITERALS];
    uint64_t reads[POLICY_READS_MAX / 64]; /* slots, one bit each */
};

/* -EINVAL with "column N: …": nothing changed, in *reads neither.  `reads` belongs to all
 * conditions that are evaluated with the same values.
 */
int policy_condition_read(const char *text, const struct policy_catalogue *catalogue,
                          struct policy_reads *reads, struct policy_condition *ret,
                          uw_error *err);

/* Whether the condition depends on this slot. */
static inline bool policy_condition_uses(const struct policy_condition *c, size_t slot)
{
    return c->reads[slot / 64] >> (slot % 64) & 1;
}

struct policy_result {
    enum policy_truth truth;
    uint16_t unknown; /* of an unknown truth: the first slot that was unknown, or
                       * POLICY_NO_SLOT: none was, a result is no number */
    uint64_t due_ns;  /* a value that was used becomes unknown; UINT64_MAX: none does */
};

/* values: one a slot of the reads.  widen: while the rule is on, its hysteresis (0.05);
 * else 0.  Each comparison (not == and !=) of a signal with a number N is then true
 * within |N| * widen beyond N, so that what is true stays true; below a `not` it is
 * narrowed for the same reason.  A number of 0 has no such margin.
 */
void policy_evaluate(const struct policy_condition *c, const struct policy_value *values,
                     double widen, uint64_t now_ns, struct policy_result *ret);

/* What the condition is whatever the values are; UNKNOWN: it depends on them. */
enum policy_truth policy_condition_constant(const struct policy_condition *c);

#endif
