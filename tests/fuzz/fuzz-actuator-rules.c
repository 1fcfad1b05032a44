/* The actuator's configuration: root's file, but read by root. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "actuator/rules.h"
#include "fuzz.h"

/* libfyaml 0.7.12 forgets 512 bytes on some errors in flow style; not ours to mend. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libfyaml.so";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct gpu_limits limits = {100000, 300000, 250000};
    struct rules rules = {.grace_ns = 7};
    uw_error err;

    if (rules_read("fuzz", (const char *)data, size, "/dev/null", &rules, &err) < 0) {
        if (rules.grace_ns != 7 || rules.n_clients || strncmp(err.text, "fuzz:", 5) != 0)
            abort();
        return fuzz_say("refused", "%s", err.text);
    }
    if (rules.n_clients > RULES_CLIENTS_MAX ||
        rules.boards.n_boards > CORE_RULES_BOARDS_MAX ||
        rules.grace_ns > RULES_GRACE_MAX_S * NS_PER_S ||
        (rules.library[0] && rules.library[0] != '/'))
        abort();
    for (size_t i = 0; i < rules.boards.n_boards; i++)
        if (!core_is_uuid(rules.boards.board[i]) ||
            core_check_board(&rules.boards, rules.boards.board[i], &err) != ACTUATOR_DONE)
            abort();
    if (core_check_rules(&rules.boards, "GPU-0", &limits, 123456, 123456, &err) !=
        ACTUATOR_DONE)
        abort(); /* the original always may be set */
    return fuzz_say("accepted", "%zu clients, %s%zu boards, %s, clocks %s %u..%u, '%s'",
                    rules.n_clients, rules.boards.listed ? "listed " : "",
                    rules.boards.n_boards,
                    rules.boards.from.mw || rules.boards.from.percent > 0 ||
                            rules.boards.to.mw || rules.boards.to.percent > 0
                        ? "a range"
                        : "no range",
                    rules.boards.clocks ? "on" : "off", rules.boards.clocks_from_mhz,
                    rules.boards.clocks_to_mhz, rules.library);
}
