#include "base/log.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"

int main(void)
{
    is_str(log_quote("plain").text, "\"plain\"", "plain text in quotes");
    is_str(log_quote("a\"b\\c").text, "\"a\\\"b\\\\c\"",
           "quotes and backslashes escaped");
    is_str(log_quote("x\ny=1").text, "\"x\\x0ay=1\"", "a line feed cannot start a line");
    is_str(log_quote("a\xc2\x9b"
                     "b\u202ec\u200b€")
               .text,
           "\"a\\xc2\\x9b"
           "b\\xe2\\x80\\xae"
           "c\\xe2\\x80\\x8b€\"",
           "what is not seen as it is, byte by byte");
    is_str(log_quote("\xff\xfe").text, "\"\\xff\\xfe\"", "what is no UTF-8, too");
    char longest[600];
    memset(longest, '\n', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    ok(strlen(log_quote(longest).text) < sizeof(struct log_text), "a long value is cut");
    ok(!log_has_journal(), "no journal at first");
    struct stat st;
    char stream[64], other[64];
    (void)fstat(STDERR_FILENO, &st);
    (void)snprintf(stream, sizeof stream, "%ju:%ju", (uintmax_t)st.st_dev,
                   (uintmax_t)st.st_ino);
    (void)snprintf(other, sizeof other, "%ju:%ju", (uintmax_t)st.st_dev,
                   (uintmax_t)st.st_ino + 1);
    log_set_journal(stream);
    ok(log_has_journal(), "stderr is journald's");
    log_set_journal(other);
    ok(!log_has_journal(), "of another file: not");
    log_set_journal("");
    ok(!log_has_journal(), "nothing in it: not");
    log_set_journal(NULL);
    ok(!log_has_journal(), "unset: not");
    return done();
}
