#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fuzz.h"

struct fuzz_said fuzz_said;

/* One line of print. */
static void flatten(void)
{
    for (char *c = fuzz_said.text; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
}

int fuzz_say(const char *word, const char *format, ...)
{
    va_list ap;

    (void)snprintf(fuzz_said.word, sizeof fuzz_said.word, "%s", word);
    va_start(ap, format);
    (void)vsnprintf(fuzz_said.text, sizeof fuzz_said.text, format, ap);
    va_end(ap);
    flatten();
    return 0;
}

void fuzz_add(const char *format, ...)
{
    size_t n = strlen(fuzz_said.text);
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(fuzz_said.text + n, sizeof fuzz_said.text - n, format, ap);
    va_end(ap);
    flatten();
}
