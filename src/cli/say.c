#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>

#include "cli/cmd.h"

static void say(const char *format, va_list args)
{
    (void)fflush(stdout);
    (void)fputs("underwatt: ", stderr);
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
}

void cli_say(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(format, args);
    va_end(args);
}

int cli_fail(int code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(format, args);
    va_end(args);
    return code;
}

int cli_exit_of(int r)
{
    if (r >= 0)
        return EXIT_OK;
    return r == -EINVAL || r == -ERANGE ? EXIT_USAGE : EXIT_FAIL;
}

int cli_exit_of_status(int status)
{
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : 1;
}

int cli_exit_of_exec(int r)
{
    return r == -ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}
