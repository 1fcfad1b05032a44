#include "base/log.h"

#include <string.h>

#include "tap.h"

int main(void)
{
    is_str(log_quote("plain").text, "\"plain\"", "plain text in quotes");
    is_str(log_quote("a\"b\\c").text, "\"a\\\"b\\\\c\"",
           "quotes and backslashes escaped");
    is_str(log_quote("x\ny=1").text, "\"x\\x0ay=1\"", "a line feed cannot start a line");
    char longest[600];
    memset(longest, '\n', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    ok(strlen(log_quote(longest).text) < sizeof(struct log_text), "a long value is cut");
    return done();
}
