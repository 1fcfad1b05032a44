#include "base/error.h"

#include <errno.h>
#include <string.h>

#include "tap.h"

int main(void)
{
    uw_error err = {{0}};

    is_int(fail(&err, -EINVAL, "cap %d", 7), -EINVAL, "fail returns what it is given");
    is_str(err.text, "cap 7", "… with the text");
    is_int(fail_in(&err, -EIO, "board %s", "A"), -EIO,
           "fail_in returns what it is given");
    is_str(err.text, "board A: cap 7", "… and puts the context first");
    is_int(fail(NULL, -EIO, "x"), -EIO, "no error object is fine");
    is_int(fail_in(NULL, -EIO, "x"), -EIO, "… for the context too");

    is_str(error_after("GPU-1: no right", "GPU-1"), "no right", "without its object");
    is_str(error_after("GPU-12: no right", "GPU-1"), "GPU-12: no right", "another one");
    is_str(error_after("GPU-1", "GPU-1"), "GPU-1", "no more than its object");

    char longest[400];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    (void)fail(&err, -1, "%s", longest);
    ok(strlen(err.text) == sizeof err.text - 1, "a long text is cut");
    (void)fail_in(&err, -1, "%s", "context");
    ok(strncmp(err.text, "context: xxx", 12) == 0, "the context stays in front");
    ok(strlen(err.text) == sizeof err.text - 1, "… and the whole is cut");
    (void)fail(&err, -1, "old");
    (void)fail_in(&err, -1, "%s", longest);
    ok(strlen(err.text) == sizeof err.text - 1, "a context that fills all is cut");
    return done();
}
