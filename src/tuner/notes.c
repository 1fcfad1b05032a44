#include "tuner/notes.h"

#include <stdarg.h>
#include <stdio.h>

void tuner_note(const struct tuner_notes *n, bool important, const char *format, ...)
{
    char text[TUNER_TEXT];
    va_list args;

    if (!n->fn)
        return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    n->fn(text, important, n->user);
}
