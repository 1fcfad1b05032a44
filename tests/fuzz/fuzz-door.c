/* Answers of a daemon as the library reads them: what is taken lies within the text. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "lib/door.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct door_answer a = {0};
    uw_error err = {""};
    char *text = malloc(size ? size : 1); /* its end is the end of what may be read */

    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    if (door_parse(text, size, &a, &err) == 0) {
        assert(a.status >= 100 && a.body >= text && a.body + a.len <= text + size);
        (void)fuzz_say("accepted", "%u, %zu bytes: %.*s", a.status, a.len, (int)a.len,
                       a.body);
    } else {
        assert(err.text[0] != '\0');
        (void)fuzz_say("refused", "%s", err.text);
    }
    free(text);
    return 0;
}
