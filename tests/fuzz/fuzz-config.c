/* The daemon's configuration of any content: what is accepted is within its bounds. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "config/config.h"
#include "fuzz.h"

/* libfyaml 0.7.12 forgets 512 bytes on some errors in flow style; not ours to mend. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libfyaml.so";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct node_config c;
    uw_error err = {{0}};

    if (node_config_init(&c, NULL, &err) < 0)
        abort();
    if (node_config_read(&c, "fuzz", (const char *)data, size, &err) < 0) {
        if (!err.text[0])
            abort(); /* a refusal says why */
        return fuzz_say("refused", "%s", err.text);
    }
    if (c.caps.n_classes == 0 || c.caps.n_classes > CONFIG_CLASSES_MAX ||
        c.sampling.search_ns > c.sampling.job_ns || c.node.interval_ns == 0 ||
        c.ledger.path[0] != '/' || c.accounting.embodied.n > EMBODIED_MODELS ||
        (c.api.tcp.listen[0] && !c.api.tcp.tokens[0]))
        abort();
    return fuzz_say("accepted",
                    "%zu classes, others %d, tcp '%s', ledger %s, grams of %zu",
                    c.caps.n_classes, c.caps.others, c.api.tcp.listen, c.ledger.path,
                    c.accounting.embodied.n);
}
