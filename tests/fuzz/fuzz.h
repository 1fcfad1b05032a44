/* What a fuzz target says of its inputs, beside LLVMFuzzerTestOneInput(). */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); /* -Wmissing-prototypes */

/* What became of the last input: a word ("accepted", "refused") and a text (the error,
 * or what was read).  replay.c compares both with what expect/NAME says of a seed; nobody
 * else looks at them.
 */
struct fuzz_said {
    char word[32], text[1024];
};
extern struct fuzz_said fuzz_said;

/* Say so, once an input: what is said last counts.  Returns 0, for the target to return.
 */
int fuzz_say(const char *word, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Add to the text, for what has several parts. */
void fuzz_add(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* An invariant: what it holds, the code behind relies on. */
static inline void must(bool good)
{
    if (!good)
        abort();
}

#endif
