/* Limits the lines of the log in a minute. The first line above the limit is replaced by
 * a notice; at the end of the minute the number of suppressed lines is logged.
 */
#ifndef ACTUATOR_LINES_H
#define ACTUATOR_LINES_H

#include "io/loop.h"

enum { LINES_S = 60 };

/* The caller's memory, zeroed but for the first five; lines_fini() at the end. */
struct lines {
    struct loop *loop;
    void (*say)(const char *text, void *user); /* NULL: nobody listens */
    void *user;
    const char *what; /* these are, in the count: "lines" */
    unsigned max;     /* in a minute, which begins with its first */
    unsigned told;
    uint64_t more; /* not told */
    uint64_t until_ns;
    struct loop_timer *timer;
};

void lines_say(struct lines *l, const char *text);
/* Tells what has only been counted. */
void lines_fini(struct lines *l);

#endif
