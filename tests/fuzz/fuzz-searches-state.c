/* What a daemon kept of a search: read back in full, or refused. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "tuner/searches-inside.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct searches_memory m, again;
    struct searches_ask ask, ask2;
    struct cap_class cls, cls2;
    uw_error err;
    char *text = malloc(size + 1), *out = NULL;

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (searches_state_read(text, &ask, &cls, &m, &err) >= 0) {
        if (m.known.n_caps > TUNER_CAPS_MAX || m.known.n_regimes > TUNER_REGIMES_MAX ||
            m.n_uuids > BOARDS_MAX)
            __builtin_trap();
        if (searches_state_write(&ask, &m, &out, &err) >= 0 &&
            searches_state_read(out, &ask2, &cls2, &again, &err) < 0)
            __builtin_trap();
        (void)fuzz_say("accepted", "%zu caps, %zu regimes, %zu boards", m.known.n_caps,
                       m.known.n_regimes, m.n_uuids);
    } else {
        (void)fuzz_say("refused", "%s", err.text);
    }
    free(out);
    free(text);
    return 0;
}
