/* YAML of any content: never a crash, and what is accepted is a tree in bounds. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "fuzz.h"
#include "io/yaml.h"

/* libfyaml 0.7.12 forgets 512 bytes on some errors in flow style; not ours to mend. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libfyaml.so";
}

struct fields {
    const char *name;
    uint64_t count, latency_ns;
    double gain;
    bool shared;
    uint32_t limit_mw;
    int type;
    const struct yaml_node *faults;
};

/* Every accessor over every item of the uppermost two levels. */
static void walk(const struct yaml_node *node, int level)
{
    for (size_t i = 0; i < yaml_count(node) && level < 2; i++) {
        const struct yaml_node *item = yaml_at(node, i);
        const char *key = yaml_key_at(node, i), *text;
        if (yaml_line(item) == 0 || (key && yaml_get(node, key) != item))
            abort();
        if (yaml_text(item, &text, NULL) == 0 && yaml_count(item) > 0)
            abort();
        for (size_t j = 0; j < yaml_count(item); j++)
            if (yaml_line(yaml_at(item, j)) < yaml_line(item))
                abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct yaml_word types[] = {{"v100", 1}, {"a100", 2}, {NULL, 0}};
    static const struct yaml_key keys[] = {
        {"name", YAML_TYPE_TEXT, offsetof(struct fields, name), true, 0, 0, NULL},
        {"count", YAML_TYPE_U64, offsetof(struct fields, count), false, 1, 64, NULL},
        {"latency", YAML_TYPE_DURATION, offsetof(struct fields, latency_ns), false, 0, 9,
         NULL},
        {"gain", YAML_TYPE_DOUBLE, offsetof(struct fields, gain), false, 0.5, 2, NULL},
        {"shared", YAML_TYPE_BOOL, offsetof(struct fields, shared), false, 0, 0, NULL},
        {"limit", YAML_TYPE_POWER, offsetof(struct fields, limit_mw), false, 50, 1000,
         NULL},
        {"type", YAML_TYPE_WORD, offsetof(struct fields, type), false, 0, 0, types},
        {"faults", YAML_TYPE_NODE, offsetof(struct fields, faults), false, 0, 0, NULL},
        {NULL, 0, 0, false, 0, 0, NULL},
    };
    auto_(yaml_free) struct yaml *doc = NULL;
    struct fields fields = {.count = 1, .gain = 1};
    uw_error err;

    if (yaml_read("fuzz", (const char *)data, size, &doc, &err) < 0)
        return fuzz_say("refused", "%s", err.text);
    walk(yaml_root(doc), 0);
    int r = yaml_read_map(yaml_root(doc), keys, &fields, &err);
    if (fields.count < 1 || fields.count > 64 ||
        !(fields.gain >= 0.5 && fields.gain <= 2))
        abort();
    return fuzz_say(r < 0 ? "tree" : "map", "%zu items; %s", yaml_count(yaml_root(doc)),
                    r < 0 ? err.text : "");
}
