/* JSON out and in (reading through jansson).
 *
 * Writing: a builder that remembers its first failure, so that nobody checks each
 * call; json_out_write() reports it.  Keys are NULL inside arrays and for the root.
 *
 *     auto_(json_out_free) struct json_out *o = json_out_new();
 *     json_out_object(o, NULL);
 *     json_out_bool(o, "simulated", true);
 *     json_out_array(o, "points");
 *     …
 *     json_out_end(o);
 *     json_out_end(o);
 *     return json_out_write(o, path, err);
 */
#ifndef IO_JSON_H
#define IO_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/auto.h"
#include "underwatt/error.h"

struct json_out;
/* NULL out of memory; every function takes that NULL and json_out_write() says it. */
struct json_out *json_out_new(void);
void json_out_free(struct json_out *o);
DEFINE_AUTO(struct json_out *, json_out_free);

void json_out_object(struct json_out *o, const char *key);
void json_out_array(struct json_out *o, const char *key);
void json_out_end(struct json_out *o); /* of the innermost object or array */
/* The shortest decimal that reads back as v; NaN and infinity become null. */
void json_out_double(struct json_out *o, const char *key, double v);
void json_out_int(struct json_out *o, const char *key, int64_t v);
void json_out_bool(struct json_out *o, const char *key, bool v);
/* NULL becomes null; bytes that are no UTF-8 become U+FFFD. */
void json_out_text(struct json_out *o, const char *key, const char *v);
void json_out_null(struct json_out *o, const char *key);
/* Null where the value is not known. */
void json_out_known_double(struct json_out *o, const char *key, bool known, double v);
void json_out_known_int(struct json_out *o, const char *key, bool known, int64_t v);

/* Write with a newline at the end: to a path (whole or not at all, mode 0666 less
 * the umask), or to standard output where path is "-".  -ENOMEM, -EINVAL (something
 * is left open, or has no key where one belongs), or the write's -errno.  Keys that
 * are there twice are the caller's own fault and not noticed.
 */
int json_out_write(const struct json_out *o, const char *path, uw_error *err);
/* The same on one line, to a stream (flushed). */
int json_out_line(const struct json_out *o, FILE *file, uw_error *err);
/* The text; free() it. */
int json_out_string(const struct json_out *o, char **ret, uw_error *err);
/* The same, for tables: each key of the root on a line, or, where its value is an array,
 * each of its items.
 */
int json_out_rows(const struct json_out *o, char **ret, uw_error *err);

/* Reading.  -EINVAL with FILE:LINE (duplicate keys too; jansson says the
 * same of a text that it had no memory for), -EFBIG beyond max bytes, or
 * read's -errno.  Of a file nothing is shown where file_hides() says so. */
struct json;       /* a document; owns all its values */
struct json_value; /* borrowed: lives as long as its document */
int json_read_file(const char *path, size_t max, struct json **ret, uw_error *err);
int json_read(const char *name, const char *text, size_t len, struct json **ret,
              uw_error *err);
void json_free(struct json *doc);
DEFINE_AUTO(struct json *, json_free);
const struct json_value *json_root(const struct json *doc);
/* Each character of its texts that a line of a terminal must not have (utf8_is_plain())
 * becomes '?'.  Keys stay.  -ENOMEM.
 */
int json_make_plain(struct json *doc);

/* NULL (also for a NULL value) where it is no object, or has no such key. */
const struct json_value *json_get(const struct json_value *v, const char *key);
/* Items of an array; 0 and NULL else. */
size_t json_count(const struct json_value *v);
const struct json_value *json_at(const struct json_value *v, size_t i);
/* fn for each key of an object, in the text's order; ends where fn returns other than
 * 0, and returns that.  -EINVAL where v is no object.
 */
typedef int (*json_each_fn)(const char *key, const struct json_value *v, void *user);
int json_each(const struct json_value *v, json_each_fn fn, void *user);
/* A text, borrowed; NULL else. */
const char *json_as_text(const struct json_value *v);
/* A whole number that is not negative; false else. */
bool json_as_u64(const struct json_value *v, uint64_t *ret);

/* The value of a key of an object: -ENOENT (not there), -EINVAL (another type),
 * -ERANGE (a whole number is wanted and it is none of that range), with a text
 * that names the key; *ret is written only on success.
 */
int json_get_double(const struct json_value *v, const char *key, double *ret,
                    uw_error *err);
int json_get_u64(const struct json_value *v, const char *key, uint64_t *ret,
                 uw_error *err);
int json_get_bool(const struct json_value *v, const char *key, bool *ret, uw_error *err);
/* Borrowed. */
int json_get_text(const struct json_value *v, const char *key, const char **ret,
                  uw_error *err);

#endif
