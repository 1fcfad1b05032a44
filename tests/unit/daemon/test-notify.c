/* Which datagrams to the starter are signs of life. */
#include "daemon/notify.h"

#include <stdlib.h>
#include <string.h>

#include "tap.h"

#define TEXT(s) (s), sizeof(s) - 1

/* clang-format off */
static const struct {
    const char *name;
    const char *text;
    size_t n;
    bool beats;
} cases[] = {
    {"a heartbeat",                TEXT("WATCHDOG=1"),                     true},
    {"a start",                    TEXT("READY=1"),                        true},
    {"with a newline behind it",   TEXT("WATCHDOG=1\n"),                   true},
    {"the first of two lines",     TEXT("READY=1\nSTATUS=Running"),        true},
    {"the last of two lines",      TEXT("STATUS=Running\nWATCHDOG=1"),     true},
    {"behind an empty line",       TEXT("\n\nWATCHDOG=1\n"),               true},
    {"nothing",                    TEXT(""),                               false},
    {"an empty line",              TEXT("\n"),                             false},
    {"an end",                     TEXT("STOPPING=1"),                     false},
    {"a reload",                   TEXT("RELOADING=1\nMONOTONIC_USEC=7"),  false},
    {"within a status",            TEXT("STATUS=no WATCHDOG=1 is sent"),   false},
    {"at the end of a status",     TEXT("STATUS=WATCHDOG=1"),              false},
    {"not ready",                  TEXT("NOTREADY=1"),                     false},
    {"more digits",                TEXT("WATCHDOG=12"),                    false},
    {"another value",              TEXT("READY=0"),                        false},
    {"a space behind it",          TEXT("WATCHDOG=1 "),                    false},
    {"a carriage return",          TEXT("WATCHDOG=1\r\n"),                 false},
    {"a NUL within the line",      TEXT("STATUS=\0WATCHDOG=1"),            false},
    {"a NUL behind it",            TEXT("WATCHDOG=1\0"),                   false},
    {"a line behind a NUL",        TEXT("STATUS=\0\nWATCHDOG=1"),          true},
    {"small letters",              TEXT("watchdog=1"),                     false},
    {"cut short",                  TEXT("WATCHDOG="),                      false},
};
/* clang-format on */

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        /* a copy of exactly that size: a sanitizer sees the first byte beyond */
        char *copy = malloc(cases[i].n + 1);
        char *text = copy ? copy + 1 : NULL;
        if (!ok(copy != NULL, "memory"))
            break;
        memcpy(text, cases[i].text, cases[i].n);
        ok(notify_beats(text, cases[i].n) == cases[i].beats, "%s: %s", cases[i].name,
           cases[i].beats ? "a sign of life" : "none");
        free(copy);
    }
    return done();
}
