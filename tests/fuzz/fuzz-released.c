/* released.json of any content: what is accepted names boards that can be left alone. */
#include <string.h>

#include "base/auto.h"
#include "caps/released-file.h"
#include "fuzz.h"

static void check(const struct released *r)
{
    must(r->n >= 1 && r->n <= BOARDS_MAX);
    must(r->n == BOARDS_MAX || r->away >> r->n == 0);
    for (size_t i = 0; i < r->n; i++) {
        const struct gpu_info *info = &r->board[i];
        bool away = r->away >> i & 1;
        must(info->index == i && r->until_ns[i] >= -1 && r->since_ns[i] >= 0);
        must(memchr(info->uuid, '\0', sizeof info->uuid) != NULL);
        must(memchr(info->name, '\0', sizeof info->name) != NULL);
        must(memchr(info->pci_bus_id, '\0', sizeof info->pci_bus_id) != NULL);
        must(!away || info->uuid[0]);
        must(away || r->until_ns[i] == -1);
        must(away || r->since_ns[i] == 0);
        fuzz_add(" %s", info->uuid);
        if (away)
            fuzz_add(" away until %lld", (long long)r->until_ns[i]);
        if (r->since_ns[i])
            fuzz_add(" since %lld", (long long)r->since_ns[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_(json_free) struct json *doc = NULL;
    auto_(released_fini) struct released r = {.n = 7};
    uw_error err;

    if (json_read("fuzz", (const char *)data, size, &doc, &err) < 0)
        return fuzz_say("refused", "%s", err.text);
    if (released_read(json_root(doc), "b007", &r, &err) < 0) {
        must(r.n == 7 && !r.board && err.text[0]);
        return fuzz_say("refused", "%s", err.text);
    }
    (void)fuzz_say("accepted", "%zu boards:", r.n);
    check(&r);
    return 0;
}
