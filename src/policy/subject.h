/* The last values of the signals of one node, board or job, and which of them changed.
 * Shared by the files of the engine.
 */
#ifndef POLICY_SUBJECT_H
#define POLICY_SUBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/policy/policy.h"

/* The subject of a value: by the scope of the signal. */
struct engine_of {
    size_t board;
    uint64_t job;
    const struct policy_class *cls; /* of the job; NULL: none of the policy's */
};
/* ret: initially unknown without an end. */
typedef void (*engine_value_fn)(const struct policy_signal *signal,
                                const struct policy_read *read,
                                const struct engine_of *of, struct policy_value *ret,
                                void *user);

enum { SLOT_WORDS = POLICY_READS_MAX / 64, SUBJECT_TEXT = 96, ENGINE_VALUE = 96 };

/* Some of the slots of a policy. */
struct slots {
    uint64_t word[SLOT_WORDS];
};
static inline bool slots_meet(const struct slots *a, const struct slots *b)
{
    for (size_t i = 0; i < SLOT_WORDS; i++)
        if (a->word[i] & b->word[i])
            return true;
    return false;
}
static inline void slots_add(struct slots *to, const struct slots *more)
{
    for (size_t i = 0; i < SLOT_WORDS; i++)
        to->word[i] |= more->word[i];
}

/* Results of a rule that reads only values of the subject and of the node, at one
 * evaluation: equal for all units of the subject.
 */
struct kept_answers {
    uint64_t evaluation;
    struct policy_answers answers;
};

struct subject {
    struct policy_value *value; /* one a slot; those of other scopes stay unknown */
    struct kept_answers *kept;  /* one a rule */
    /* Of each slot: of a text, where value.text points; of others, what is shown of it,
     * or
     * "" until somebody asks.
     */
    char (*text)[SUBJECT_TEXT];
    struct slots changed;
};

/* -ENOMEM */
int subject_init(struct subject *s, const struct policy *policy);
void subject_fini(struct subject *s);
/* Reads the values of this scope. */
void subject_read(struct subject *s, const struct policy *policy, enum policy_scope scope,
                  const struct engine_of *of, engine_value_fn value, void *user);
/* Copies the values of this scope to `at` (one per slot). */
void subject_copy(const struct subject *s, const struct policy *policy,
                  enum policy_scope scope, struct policy_value *at);

/* "420 g/kWh", "true", "validate", "unknown".  Returns ret. */
const char *subject_value_text(const struct policy_signal *signal,
                               const struct policy_value *value,
                               char ret[static ENGINE_VALUE]);

#endif
