/* A zone file of any bytes: what is accepted answers for any time. */
#include <stdint.h>

#include "fuzz.h"
#include "io/zone.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t times[] = {INT64_MIN,     -631152000, 0,
                                    1774745999,    1774746000, 4102444800,
                                    INT64_MAX - 1, INT64_MAX};
    auto_(zone_free) struct zone *z = NULL;
    uw_error err = {{0}};
    struct zone_now now;

    if (zone_parse(data, size, &z, &err) < 0) {
        must(!z && err.text[0]);
        return fuzz_say("refused", "%s", err.text);
    }
    (void)fuzz_say("accepted", "offsets");
    for (size_t i = 0; i < n_elements(times); i++) {
        zone_at(z, times[i], &now);
        must(now.change_utc_s > times[i] || times[i] == INT64_MAX);
        fuzz_add(" %d", now.offset_s);
    }
    return 0;
}
