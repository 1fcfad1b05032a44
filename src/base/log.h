/* The daemons' log: one logfmt line per event on stderr, with journald's <N> priority in
 * front where stderr is journald's.  Libraries do not use it; a command with a node of
 * its own turns it off.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

#include "base/names.h"

enum log_level {
    LOG_LEVEL_NONE = 0, /* for log_set_level(): drops every line */
    LOG_LEVEL_ERROR = 3,
    LOG_LEVEL_WARNING = 4,
    LOG_LEVEL_NOTICE = 5,
    LOG_LEVEL_INFO = 6,
    LOG_LEVEL_DEBUG = 7,
};

enum log_word {
    LOG_EVENTS(NAME_ENUM) SIM_LOG_EVENTS(NAME_ENUM) COLLECTOR_LOG_EVENTS(NAME_ENUM)
        SIGNALS_LOG_EVENTS(NAME_ENUM)
};

/* format gives the key=value pairs.  Strings that a peer supplied go through
 * log_quote().
 */
void log_event(enum log_level level, enum log_word event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* stream is $JOURNAL_STREAM, "DEVICE:INODE" or NULL: whether journald reads stderr, as
 * systemd.exec(5) has it.  Initially it does not.
 */
void log_set_journal(const char *stream);
bool log_has_journal(void);

/* Lines above this level are dropped; initially LOG_LEVEL_INFO. */
void log_set_level(enum log_level level);

struct log_text {
    char text[256];
};
/* value in double quotes, truncated to fit; quotes, backslashes and characters that are
 * not plain (utf8_plain_char()) are escaped.
 */
struct log_text log_quote(const char *value);

#endif
