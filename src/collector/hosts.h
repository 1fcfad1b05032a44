/* Expands lists of nodes such as "n[1-3,07]", with one call of `scontrol show hostnames`
 * per list.
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

/* The nodes of a list, each after a newline or at the beginning; NULL: unknown.  A list
 * without brackets is always known: *ret_plain is set, and the names are separated by
 * commas.
 */
const char *hosts_find(const struct hosts *h, const char *list, bool *ret_plain);
/* Stores a copy of both; a full table is emptied first.  -ENOMEM. */
int hosts_add(struct hosts *h, const char *list, const char *names);

/* Calls fn for each valid node name: [A-Za-z0-9._-], at most 63 bytes. */
void hosts_each(const char *names, char between,
                void (*fn)(const char *name, size_t len, void *user), void *user);
bool hosts_is_name(const char *name, size_t len);

#endif
