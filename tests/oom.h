/* Fails each allocation of an operation once.  How to use it in a unit test:
 *
 *     static int op(void *user)           does the whole thing and frees it again:
 *     {                                   0, or the -errno that came of it
 *         auto_(yaml_free) struct yaml *doc = NULL;
 *         return yaml_read("f", "a: 1", 4, &doc, NULL);
 *     }
 *     oom_each("yaml_read", op, NULL);    TAP: one result
 *
 * op runs first as it is (and must return 0), then with its first allocation
 * failing, then with its second, …, until it asks for no more.  Each of those runs
 * has to end in -ENOMEM; whether it also freed what it had is for the address
 * sanitizer to say (`tools/check asan`), so run the test there too.
 *
 * In the meson.build of the test add 'oom.c' of this folder and the linker's words:
 *
 *     executable('test-x-oom', ['test-oom.c', oom_c], link_args: oom_link, …)
 *
 * What is counted: malloc, calloc, realloc, reallocarray, strdup, strndup, asprintf,
 * vasprintf called from code that is linked into the program (all our rooms, under
 * sanitizers as well).  Allocations inside shared libraries are not; where a library
 * takes allocators (json_set_alloc_funcs), give it oom_malloc and oom_free.  libuv
 * aborts where it cannot grow its own tables, so it keeps its own.
 */
#ifndef TESTS_OOM_H
#define TESTS_OOM_H

#include <stdbool.h>
#include <stddef.h>

#include "tap.h"

/* tap.h counts in each file of its own: the test's file reports for oom.c. */
bool oom_result(bool good, const char *text);
#ifndef OOM_C
bool oom_result(bool good, const char *text)
{
    return ok(good, "%s", text);
}
#endif

/* The n-th allocation from now on fails (1: the next), once; 0: none does. */
void oom_fail_at(unsigned long n);
/* Allocations since oom_fail_at(). */
unsigned long oom_count(void);

void *oom_malloc(size_t size);
void oom_free(void *p);

/* As above; false (and "not ok") with the number of the allocation that was not
 * answered with -ENOMEM.
 */
bool oom_each(const char *name, int (*op)(void *user), void *user);

/* For operations that may do without some memory: 0 is as good as -ENOMEM. */
bool oom_each_tolerant(const char *name, int (*op)(void *user), void *user);

#endif
