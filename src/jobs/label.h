/* Keys of jobs' labels.  Pure. */
#ifndef JOBS_LABEL_H
#define JOBS_LABEL_H

#include <stdbool.h>
#include <stddef.h>

/* The form of a key, for messages; the number is LABEL_KEY - 1. */
#define LABEL_KEY_FORM "letters, digits, _-./, %d at most"

/* Whether the len bytes at key are a label's key, which reports and rules can name. */
bool label_key_valid(const char *key, size_t len);

#endif
