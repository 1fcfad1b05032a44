#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int fail(uw_error *err, int r, const char *format, ...)
{
    if (!err)
        return r;

    va_list args;
    va_start(args, format);
    if (vsnprintf(err->text, sizeof err->text, format, args) < 0)
        err->text[0] = '\0';
    va_end(args);
    return r;
}

int fail_in(uw_error *err, int r, const char *format, ...)
{
    if (!err)
        return r;

    uw_error old = *err;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);

    size_t used = n < 0 ? 0 : (size_t)n;
    if (used > sizeof err->text - 1)
        used = sizeof err->text - 1;
    size_t room = sizeof err->text - 1 - used;
    size_t sep = room < 2 ? room : 2;
    memcpy(err->text + used, ": ", sep);
    used += sep;
    room -= sep;
    size_t len = strnlen(old.text, sizeof old.text);
    if (len > room)
        len = room;
    memcpy(err->text + used, old.text, len);
    err->text[used + len] = '\0';
    return r;
}

const char *error_after(const char *text, const char *name)
{
    size_t n = strlen(name);

    return strncmp(text, name, n) == 0 && strncmp(text + n, ": ", 2) == 0 ? text + n + 2
                                                                          : text;
}
