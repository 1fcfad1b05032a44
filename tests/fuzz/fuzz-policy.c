/* A policy file of any content: what is accepted is within its bounds, and is checked. */
#include <stdint.h>
#include <string.h>

#include "fuzz.h"
#include "policy/file.h"

/* libfyaml 0.7.12 forgets 512 bytes on some errors in flow style; not ours to mend. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libfyaml.so";
}

static void on_finding(bool error, const char *text, void *user)
{
    (void)user;
    must(strncmp(text, "fuzz:", 5) == 0);
    fuzz_add("; %s%s", error ? "" : "warning ", text + 5);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_(policy_file_free) struct policy_file *f = NULL;
    uw_error err = {{0}};

    if (policy_file_read("fuzz", (const char *)data, size, false, &f, &err) < 0) {
        must(!f && err.text[0]);
        return fuzz_say("refused", "%s", err.text);
    }
    const struct policy *p = &f->policy;
    must(p->n_rules <= POLICY_RULES_MAX && p->n_classes <= POLICY_CLASSES_MAX &&
         p->n_presets <= POLICY_PRESETS_MAX && p->reads.n <= POLICY_READS_MAX &&
         f->limits.temperature_c <= 120 && f->limits.rise_w_s <= 1e6);
    for (size_t i = 0; i < p->n_rules; i++) {
        const struct policy_rule *rule = &p->rule[i];
        must(rule->name[0] && (rule->has_when || rule->has_schedule));
        must(rule->has_goal || rule->asks.cap.mw > 0 || rule->asks.cap.share > 0);
    }
    (void)fuzz_say("accepted", "%zu rules, %zu classes", p->n_rules, p->n_classes);
    (void)policy_file_check(f, on_finding, NULL);
    return 0;
}
