/* What comes in at the job door: "page JOB", whatever else is refused. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "fuzz.h"
#include "node/jobdoor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t job = 0, again = 0;
    char text[JOBDOOR_PACKET];
    uw_error err;

    if (size > JOBDOOR_PACKET)
        return fuzz_say("refused", "longer than a packet");
    if (jobdoor_parse((const char *)data, size, &job, &err) < 0)
        return fuzz_say("refused", "%s", err.text);
    /* what was taken says the same when it is written anew */
    int n = snprintf(text, sizeof text, "page %llu", (unsigned long long)job);
    if (jobdoor_parse(text, (size_t)n, &again, &err) < 0 || again != job)
        __builtin_trap();
    return fuzz_say("accepted", "%s", text);
}
