/* What comes in at the job door: "page JOB", whatever else is refused. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "fuzz.h"
#include "jobs/page-socket.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t job = 0, again = 0;
    char text[PAGE_SOCKET_PACKET];
    uw_error err;

    if (size > PAGE_SOCKET_PACKET)
        return fuzz_say("refused", "longer than a packet");
    if (page_socket_parse((const char *)data, size, &job, &err) < 0)
        return fuzz_say("refused", "%s", err.text);
    /* what was taken says the same when it is written anew */
    int n = snprintf(text, sizeof text, "page %llu", (unsigned long long)job);
    if (page_socket_parse(text, (size_t)n, &again, &err) < 0 || again != job)
        __builtin_trap();
    return fuzz_say("accepted", "%s", text);
}
