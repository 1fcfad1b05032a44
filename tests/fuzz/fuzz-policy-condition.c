/* A condition of any text: what is accepted is a program within its bounds, whatever the
 * values are.
 */
#include <stdint.h>
#include <string.h>

#include "core/policy/condition.h"
#include "fuzz.h"
#include "unit/core/policy-signals.h"

static void evaluate(const struct policy_condition *c, const struct test_values *t)
{
    enum policy_truth constant = policy_condition_constant(c);
    struct policy_result result;

    for (uint64_t now_ns = 0; now_ns < 3; now_ns++) {
        policy_evaluate(c, t->value, now_ns ? 0.05 : 0, now_ns, &result);
        must(result.truth <= POLICY_UNKNOWN && result.due_ns > now_ns);
        must(constant == POLICY_UNKNOWN || constant == result.truth);
        must(result.unknown == POLICY_NO_SLOT ||
             policy_condition_uses(c, result.unknown));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[2048];
    struct test_values t = {0};
    struct policy_condition c;
    uw_error err = {{0}};

    if (size >= sizeof text)
        return fuzz_say("skipped", "too long");
    memcpy(text, data, size);
    text[size] = '\0';
    if (policy_condition_read(text, &test_catalogue, &t.reads, &c, &err) < 0) {
        must(strncmp(err.text, "column ", 7) == 0 && t.reads.n == 0);
        return fuzz_say("refused", "%s", err.text);
    }
    must(c.n_ops > 0 && c.n_ops <= POLICY_OPS && t.reads.n <= POLICY_READS_MAX);
    evaluate(&c, &t);
    for (size_t i = 0; i < t.reads.n; i++) {
        const struct policy_signal *s = &test_signals[t.reads.read[i].signal];
        give(&t, s->name,
             s->type == POLICY_NUMBER ? (struct policy_value){.number = (double)size - 20}
             : s->type == POLICY_TEXT
                 ? (struct policy_value){.text = "train"}
                 : (struct policy_value){.truth = size % 2, .until_ns = 2});
    }
    evaluate(&c, &t);
    return fuzz_say("accepted", "%u instructions, %zu values read", c.n_ops, t.reads.n);
}
