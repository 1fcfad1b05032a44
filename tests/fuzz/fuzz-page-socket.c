/* What comes in at the job door: "page JOB" and "take JOB", whatever else is refused. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "fuzz.h"
#include "jobs/page-socket.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum page_word word = PAGE_GIVEN, same = PAGE_GIVEN;
    uint64_t job = 0, again = 0;
    char text[PAGE_SOCKET_PACKET];
    uw_error err;

    if (size > PAGE_SOCKET_PACKET)
        return fuzz_say("refused", "longer than a packet");
    if (page_socket_parse((const char *)data, size, &word, &job, &err) < 0)
        return fuzz_say("refused", "%s", err.text);
    /* what was taken says the same when it is written anew */
    int n = snprintf(text, sizeof text, "%s %llu", word == PAGE_TAKEN ? "take" : "page",
                     (unsigned long long)job);
    if (page_socket_parse(text, (size_t)n, &same, &again, &err) < 0 || again != job ||
        same != word)
        __builtin_trap();
    return fuzz_say("accepted", "%s", text);
}
