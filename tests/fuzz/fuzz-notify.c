/* Datagrams to underwatt-start: a sign of life is a whole line, whatever else is there.
 */
#include <string.h>

#include "daemon/notify.h"
#include "fuzz.h"

/* The same, said in another way: between two newlines. */
static bool has_line(const char *framed, size_t size, const char *line)
{
    return memmem(framed, size, line, strlen(line)) != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    char framed[258] = "\n";

    if (size > 256)
        return fuzz_say("passed-over", "longer than 256 bytes");
    if (size)
        memcpy(framed + 1, text, size);
    framed[size + 1] = '\n';
    bool beats = notify_beats(text, size);
    must(beats == (has_line(framed, size + 2, "\nWATCHDOG=1\n") ||
                   has_line(framed, size + 2, "\nREADY=1\n")));
    return fuzz_say(beats ? "beats" : "silent", "%zu bytes", size);
}
