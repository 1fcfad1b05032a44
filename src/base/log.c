#include "base/log.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/utf8.h"

static enum log_level log_level_max = LOG_LEVEL_INFO;

void log_set_level(enum log_level level)
{
    log_level_max = level;
}

static bool in_journal;

void log_set_journal(const char *stream)
{
    char ours[64];
    struct stat st;

    in_journal = false;
    if (!stream || fstat(STDERR_FILENO, &st) < 0)
        return;
    (void)snprintf(ours, sizeof ours, "%ju:%ju", (uintmax_t)st.st_dev,
                   (uintmax_t)st.st_ino);
    in_journal = strcmp(stream, ours) == 0;
}

bool log_has_journal(void)
{
    return in_journal;
}

void log_event(enum log_level level, enum log_word event, const char *format, ...)
{
    if (level > log_level_max)
        return;

    char line[1024];
    enum names of = event >= LOG_EVENT_SIGNALS_READY     ? NAMES_SIGNALS_EVENT
                    : event >= LOG_EVENT_COLLECTOR_READY ? NAMES_COLLECTOR_EVENT
                    : event >= LOG_EVENT_SIM_START       ? NAMES_SIM_EVENT
                                                         : NAMES_LOG_EVENT;
    int n =
        snprintf(line, sizeof line, "<%d>event=%s ", (int)level, names_word(of, event));
    if (n < 0 || (size_t)n >= sizeof line)
        return;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line + n, sizeof line - (size_t)n, format, args);
    va_end(args);
    const char *words = strchr(line, '>') + 1;
    (void)fprintf(stderr, "%s\n", in_journal ? line : words);
}

struct log_text log_quote(const char *value)
{
    struct log_text out;
    size_t used = 0;

    out.text[used++] = '"';
    for (const char *p = value; *p && used + 6 < sizeof out.text; p++) {
        size_t wide = utf8_plain_char(p, strnlen(p, 4));
        if (*p == '"' || *p == '\\') {
            out.text[used++] = '\\';
            out.text[used++] = *p;
        } else if (wide == 0) { /* invalid or invisible: escape each byte */
            int n = snprintf(out.text + used, sizeof out.text - used, "\\x%02x",
                             (unsigned char)*p);
            used += n > 0 ? (size_t)n : 0;
        } else {
            memcpy(out.text + used, p, wide);
            used += wide;
            p += wide - 1;
        }
    }
    out.text[used++] = '"';
    out.text[used] = '\0';
    return out;
}
