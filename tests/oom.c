/* See oom.h: how to use this. */
#define OOM_C
#include "oom.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS_MAX = 20000 };

static atomic_ulong count, fail_at;

/* The linker's --wrap sends the calls here and the real ones to __real_…. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t n);
int __real_vasprintf(char **ret, const char *format, va_list args);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t n);
int __wrap_vasprintf(char **ret, const char *format, va_list args);
int __wrap_asprintf(char **ret, const char *format, ...);
int __wrap___vasprintf_chk(char **ret, int flag, const char *format, va_list args);
int __wrap___asprintf_chk(char **ret, int flag, const char *format, ...);

void oom_fail_at(unsigned long n)
{
    atomic_store(&count, 0);
    atomic_store(&fail_at, n);
}

unsigned long oom_count(void)
{
    return atomic_load(&count);
}

static bool fails(void)
{
    bool now = atomic_fetch_add(&count, 1) + 1 == atomic_load(&fail_at);

    if (now)
        errno = ENOMEM;
    return now;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return fails() ? NULL : __real_realloc(p, size);
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
    return fails() ? NULL : __real_reallocarray(p, n, size);
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t n)
{
    return fails() ? NULL : __real_strndup(text, n);
}

int __wrap_vasprintf(char **ret, const char *format, va_list args)
{
    return fails() ? -1 : __real_vasprintf(ret, format, args);
}

int __wrap_asprintf(char **ret, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int n = __wrap_vasprintf(ret, format, args);
    va_end(args);
    return n;
}

int __wrap___vasprintf_chk(char **ret, int flag, const char *format, va_list args)
{
    (void)flag;
    return __wrap_vasprintf(ret, format, args);
}

int __wrap___asprintf_chk(char **ret, int flag, const char *format, ...)
{
    va_list args;
    (void)flag;

    va_start(args, format);
    int n = __wrap_vasprintf(ret, format, args);
    va_end(args);
    return n;
}

void *oom_malloc(size_t size)
{
    return __wrap_malloc(size);
}

void oom_free(void *p)
{
    free(p);
}

static bool each(const char *name, int (*op)(void *user), void *user, bool tolerant)
{
    char text[200];
    unsigned long n = 0, bad = 0;
    int r, bad_r = 0;

    oom_fail_at(0);
    r = op(user);
    if (r != 0) {
        (void)snprintf(text, sizeof text, "%s: %d without any failure", name, r);
        return oom_result(false, text);
    }
    do {
        oom_fail_at(++n);
        r = op(user);
        if (oom_count() >= n && r != -ENOMEM && !(tolerant && r == 0) && bad == 0) {
            bad = n;
            bad_r = r;
        }
    } while (oom_count() >= n && n < RUNS_MAX);
    oom_fail_at(0);
    if (bad > 0)
        (void)snprintf(text, sizeof text, "%s: allocation %lu failed, it returned %d",
                       name, bad, bad_r);
    else
        (void)snprintf(text, sizeof text, "%s: each of %lu allocations failed once", name,
                       n - 1);
    return oom_result(bad == 0 && n > 1 && r == 0, text);
}

bool oom_each(const char *name, int (*op)(void *user), void *user)
{
    return each(name, op, user, false);
}

bool oom_each_tolerant(const char *name, int (*op)(void *user), void *user)
{
    return each(name, op, user, true);
}
