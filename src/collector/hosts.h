/* Nodes of lists as Slurm writes them, "n[1-3,07]": `scontrol show hostnames` says, once
 * a list.
 */
#ifndef COLLECTOR_HOSTS_H
#define COLLECTOR_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

enum { HOSTS_LISTS = 4096, HOSTS_TEXT = 1 << 20 };

/* Remembered lists; zeroed: none. */
struct hosts {
    struct {
        char *list, *names; /* names: one a line */
    } of[HOSTS_LISTS];
    size_t n;
};
void hosts_fini(struct hosts *h);

/* The nodes of a list, each behind a newline or at the begin; NULL: not known.  A list
 * without brackets is known: *ret_plain, and its names are between commas.
 */
const char *hosts_find(const struct hosts *h, const char *list, bool *ret_plain);
/* Takes a copy of both; when it is full the others are forgotten.  -ENOMEM. */
int hosts_add(struct hosts *h, const char *list, const char *names);

/* Calls fn for each name that can be one of a node's: [A-Za-z0-9._-], 63 bytes at most.
 */
void hosts_each(const char *names, char between,
                void (*fn)(const char *name, size_t len, void *user), void *user);
bool hosts_is_name(const char *name, size_t len);

#endif
