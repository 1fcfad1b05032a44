#include "policy/subject.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct policy_signal *signal_of(const struct policy *policy, size_t slot)
{
    return &policy->catalogue->signal[policy->reads.read[slot].signal];
}

int subject_init(struct subject *s, const struct policy *policy)
{
    size_t n = policy->reads.n + 1; /* never 0 */

    *s = (struct subject){.value = calloc(n, sizeof *s->value),
                          .kept = calloc(policy->n_rules + 1, sizeof *s->kept),
                          .text = calloc(n, sizeof *s->text)};
    if (s->value && s->kept && s->text)
        return 0;
    subject_fini(s);
    return -ENOMEM;
}

void subject_fini(struct subject *s)
{
    free(s->value);
    free(s->kept);
    free(s->text);
    *s = (struct subject){.value = NULL};
}

/* A value that only stays known for longer is unchanged: its rule asks again at the old
 * time.
 */
static bool is_same(enum policy_type type, const struct policy_value *was,
                    const struct policy_value *now)
{
    if (was->known != now->known || (now->known && now->until_ns < was->until_ns))
        return false;
    if (!now->known)
        return true;
    switch (type) {
    case POLICY_TEXT:
        return strncmp(was->text, now->text, SUBJECT_TEXT - 1) == 0;
    case POLICY_TRUTH:
        return was->truth == now->truth;
    case POLICY_NUMBER:
        break;
    }
    return was->number >= now->number && was->number <= now->number;
}

void subject_read(struct subject *s, const struct policy *policy, enum policy_scope scope,
                  const struct engine_of *of, engine_value_fn value, void *user)
{
    s->changed = (struct slots){{0}};
    for (size_t i = 0; i < policy->reads.n; i++) {
        const struct policy_signal *signal = signal_of(policy, i);
        struct policy_value now = {.until_ns = UINT64_MAX};
        if (signal->scope != scope)
            continue;
        value(signal, &policy->reads.read[i], of, &now, user);
        if (!is_same(signal->type, &s->value[i], &now)) {
            s->changed.word[i / 64] |= UINT64_C(1) << (i % 64);
            s->text[i][0] = '\0';
        }
        if (now.known && signal->type == POLICY_TEXT) {
            (void)snprintf(s->text[i], sizeof s->text[i], "%s", now.text);
            now.text = s->text[i];
        }
        s->value[i] = now;
    }
}

void subject_copy(const struct subject *s, const struct policy *policy,
                  enum policy_scope scope, struct policy_value *at)
{
    for (size_t i = 0; i < policy->reads.n; i++)
        if (signal_of(policy, i)->scope == scope)
            at[i] = s->value[i];
}

const char *subject_value_text(const struct policy_signal *signal,
                               const struct policy_value *value,
                               char ret[static ENGINE_VALUE])
{
    struct policy_unit unit;
    double factor = 1;

    if (!value->known)
        (void)snprintf(ret, ENGINE_VALUE, "unknown");
    else if (signal->type == POLICY_TEXT)
        (void)snprintf(ret, ENGINE_VALUE, "%s", value->text);
    else if (signal->type == POLICY_TRUTH)
        (void)snprintf(ret, ENGINE_VALUE, "%s", value->truth ? "true" : "false");
    else if (signal->unit && policy_signal_unit(signal, &unit, &factor) && factor > 0)
        (void)snprintf(ret, ENGINE_VALUE, "%.4g %s", value->number / factor,
                       signal->unit);
    else
        (void)snprintf(ret, ENGINE_VALUE, "%.4g", value->number);
    return ret;
}
