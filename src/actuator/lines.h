/* Limits the lines of the log in a minute. The first line above the limit is replaced by
 * a notice; at the end of the minute the number of suppressed lines is logged.
 */
#ifndef ACTUATOR_LINES_H
#define ACTUATOR_LINES_H

#include "io/loop.h"

enum { LINES_S = 60 };

/* Memory of the caller, zeroed except for the first five members; call lines_fini() at
 * the end.
 */
struct lines {
    struct loop *loop;
    void (*say)(const char *text, void *user); /* NULL: lines are dropped */
    void *user;
    const char *what; /* noun in the notice: "lines" */
    unsigned max;     /* in a minute; a minute begins with its first line */
    unsigned told;
    uint64_t more; /* suppressed */
    uint64_t until_ns;
    struct loop_timer *timer;
};

void lines_say(struct lines *l, const char *text);
/* Reports the lines that have only been counted. */
void lines_fini(struct lines *l);

#endif
