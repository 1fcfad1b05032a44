/* Time zones by name, without the C library's one zone of the process: the offset of the
 * wall clock at an instant, and when it changes next.  Reads the machine's zone files
 * (TZif, RFC 8536) once; a zone that was read is a value and may be used by any thread.
 */
#ifndef IO_ZONE_H
#define IO_ZONE_H

#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "underwatt/error.h"

#define ZONE_FOLDER "/usr/share/zoneinfo"
enum { ZONE_NAME_MAX = 47, ZONE_FILE_MAX = 64 << 10 };

struct zone;

/* name: "Europe/Berlin"; "UTC" needs no file.  -EINVAL (no such form, not a zone file),
 * -ENOENT (not known here), -ENOMEM, or as file_read().
 */
int zone_read(const char *name, struct zone **ret, uw_error *err);
/* The bytes of a zone file. */
int zone_parse(const void *bytes, size_t len, struct zone **ret, uw_error *err);
void zone_free(struct zone *z);
DEFINE_AUTO(struct zone *, zone_free);

struct zone_now {
    int32_t offset_s,
        after_s;          /* the wall clock is UTC + offset_s; from the change on … */
    int64_t change_utc_s; /* INT64_MAX: none is known */
};
void zone_at(const struct zone *z, int64_t utc_s, struct zone_now *ret);
/* The first instant at which the wall clock, in seconds as if it were UTC, shows wall_s;
 * of a time that a change leaves out, as if the clock had not been changed.
 */
int64_t zone_utc_s(const struct zone *z, int64_t wall_s);

/* The name of a process's zone: of its variable TZ or, without one (NULL), of what
 * /etc/localtime links to (NULL: there is none, which is UTC).  -EINVAL: it has no name.
 */
int zone_own_name(const char *tz, const char *local_time, char ret[ZONE_NAME_MAX + 1],
                  uw_error *err);

#endif
