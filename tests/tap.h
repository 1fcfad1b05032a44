/* TAP for tests in C: ok(), is_…() and done().  main returns done(). */
#ifndef TESTS_TAP_H
#define TESTS_TAP_H

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int tap_n, tap_failed;

__attribute__((format(printf, 4, 5), unused)) static bool tap_result(
    bool good, const char *file, int line, const char *format, ...)
{
    char text[1000];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *p = text; (p = strchr(p, '\n'));) /* TAP has one line a result */
        *p = ' ';
    printf("%sok %d - %s\n", good ? "" : "not ", ++tap_n, text);
    if (!good) {
        tap_failed++;
        printf("# failed at %s:%d\n", file, line);
    }
    (void)fflush(stdout);
    return good;
}

/* ok(condition, "format", …): one test, named by the text. */
#define ok(cond, ...) tap_result((cond), __FILE__, __LINE__, __VA_ARGS__)

/* Strings are equal; shows both when not. */
#define is_str(got, want, name)                                      \
    do {                                                             \
        const char *got_ = (got), *want_ = (want);                   \
        if (!ok(strcmp(got_, want_) == 0, "%s", (name)))             \
            printf("#      got: %s\n# expected: %s\n", got_, want_); \
    } while (0)

/* Whole numbers are equal; shows both when not. */
#define is_int(got, want, ...)                                           \
    do {                                                                 \
        long long got_ = (long long)(got), want_ = (long long)(want);    \
        if (!ok(got_ == want_, __VA_ARGS__))                             \
            printf("#      got: %lld\n# expected: %lld\n", got_, want_); \
    } while (0)

/* |got - want| <= tolerance; shows both when not. */
#define is_near(got, want, tolerance, ...)                                             \
    do {                                                                               \
        double got_ = (got), want_ = (want), tol_ = (tolerance);                       \
        if (!ok(fabs(got_ - want_) <= tol_, __VA_ARGS__))                              \
            printf("#      got: %.9g\n# expected: %.9g +- %.3g\n", got_, want_, tol_); \
    } while (0)

/* Everything is skipped, and why: return skip_all("no …"). */
__attribute__((unused)) static int skip_all(const char *why)
{
    printf("1..0 # SKIP %s\n", why);
    return 0;
}

__attribute__((unused)) static void skip_one(const char *name, const char *why)
{
    printf("ok %d - %s # SKIP %s\n", ++tap_n, name, why);
}

/* Ends the plan; the value main returns. */
__attribute__((unused)) static int done(void)
{
    printf("1..%d\n", tap_n);
    return tap_failed ? 1 : 0;
}

#endif
