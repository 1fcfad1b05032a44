/* Who a process is, as /proc tells it. */
#ifndef CLI_WHO_H
#define CLI_WHO_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct who {
    bool known; /* false: gone, or of another pid namespace */
    uid_t uid;
    char user[40];     /* a name, or the uid where it has none */
    char command[120]; /* the command line, blanks between words, nothing that a
                          terminal would obey; cut with "…" */
};

/* root: "" , or the folder that stands for / in tests. */
void who_is(const char *root, pid_t pid, struct who *ret);

#endif
