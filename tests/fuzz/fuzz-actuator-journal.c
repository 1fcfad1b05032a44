/* A journal entry of any content; what is accepted reads the same once written. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "actuator/journal.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cap_entry entry, again;
    char text[JOURNAL_BYTES];
    uw_error err;

    if (journal_parse((const char *)data, size, &entry, &err) != 0)
        return fuzz_say("refused", "%s", err.text);
    if (!core_is_uuid(entry.uuid) || entry.original_mw == 0)
        abort();
    journal_format(&entry, text);
    if (journal_parse(text, sizeof text, &again, &err) != 0 ||
        strcmp(entry.uuid, again.uuid) != 0 || strcmp(entry.boot, again.boot) != 0 ||
        strcmp(entry.driver, again.driver) != 0 ||
        entry.original_mw != again.original_mw ||
        entry.intended_mw != again.intended_mw ||
        entry.readback_mw != again.readback_mw || entry.clocks != again.clocks)
        abort();
    return fuzz_say("accepted", "%s original %u intended %u read back %u%s", entry.uuid,
                    entry.original_mw, entry.intended_mw, entry.readback_mw,
                    entry.clocks ? " clocks" : "");
}
