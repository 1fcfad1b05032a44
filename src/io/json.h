/* JSON out and in (reading through jansson).
 *
 * Writing: a builder that remembers its first failure, so that callers need not check
 * each call; json_out_write() reports it.  Keys are NULL inside arrays and for the root.
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
/* NULL: out of memory; all functions accept that NULL, and json_out_write() reports it.
 */
struct json_out *json_out_new(void);
void json_out_free(struct json_out *o);
DEFINE_AUTO(struct json_out *, json_out_free);

void json_out_object(struct json_out *o, const char *key);
void json_out_array(struct json_out *o, const char *key);
void json_out_end(struct json_out *o); /* ends the innermost object or array */
/* Measured and modelled values: JSON_OUT_DIGITS significant digits, which show a board's
 * milliwatts.  NaN and infinity become null, here and below.
 */
enum { JSON_OUT_DIGITS = 7, JSON_OUT_GIVEN_DIGITS = 12 };
void json_out_double(struct json_out *o, const char *key, double v);
/* Sums that grow, of which programs take differences: whole thousandths (mJ, ms). */
void json_out_counter(struct json_out *o, const char *key, double v);
/* A value of a source or a user, of any size: JSON_OUT_GIVEN_DIGITS digits. */
void json_out_given(struct json_out *o, const char *key, double v);
/* For state, and sums of whole units: the shortest decimal that reads back as v. */
void json_out_exact_double(struct json_out *o, const char *key, double v);
void json_out_int(struct json_out *o, const char *key, int64_t v);
void json_out_bool(struct json_out *o, const char *key, bool v);
/* NULL becomes null; invalid UTF-8 becomes U+FFFD. */
void json_out_text(struct json_out *o, const char *key, const char *v);
void json_out_null(struct json_out *o, const char *key);
/* Null where known is false. */
void json_out_known_double(struct json_out *o, const char *key, bool known, double v);
void json_out_known_int(struct json_out *o, const char *key, bool known, int64_t v);

/* Writes with a newline at the end: to a path (atomically, mode 0666 less the umask), or
 * to standard output where path is "-".  -ENOMEM, -EINVAL (an object or array is not
 * ended, or a key is missing), or the write's -errno.  Duplicate keys are not detected.
 */
int json_out_write(const struct json_out *o, const char *path, uw_error *err);
/* The same on one line, to a stream (flushed). */
int json_out_line(const struct json_out *o, FILE *file, uw_error *err);
/* The text; free() it. */
int json_out_string(const struct json_out *o, char **ret, uw_error *err);
/* The same on one line. */
int json_out_joined(const struct json_out *o, char **ret, uw_error *err);
/* The same for tables: one line for each key of the root or, where its value is an array,
 * for each item.
 */
int json_out_rows(const struct json_out *o, char **ret, uw_error *err);

/* Reading.  -EINVAL with FILE:LINE (duplicate keys; also where jansson is out of memory),
 * -EFBIG beyond max bytes, or read's -errno.  Errors hide the file's text where
 * file_hides() says so. */
struct json;       /* a document; owns all its values */
struct json_value; /* borrowed: lives as long as its document */
int json_read_file(const char *path, size_t max, struct json **ret, uw_error *err);
int json_read(const char *name, const char *text, size_t len, struct json **ret,
              uw_error *err);
/* The same for a text that readers of the errors need not be allowed to read. */
int json_read_hidden(const char *name, const char *text, size_t len, struct json **ret,
                     uw_error *err);
void json_free(struct json *doc);
DEFINE_AUTO(struct json *, json_free);
const struct json_value *json_root(const struct json *doc);
/* Replaces each character of the values that a terminal must not print (utf8_is_plain())
 * by '?'.  Keys stay.  -ENOMEM.
 */
int json_make_plain(struct json *doc);

/* Appends the items of each array of more's root to the array of the same key in doc's.
 * Of two objects with one "uuid" the one with more "claims" stays, else the one that was
 * there.  -ENOMEM.
 */
int json_extend(struct json *doc, const struct json *more);
/* The text of a document, on one line; free() it.  NULL: out of memory. */
char *json_text(const struct json *doc);

/* NULL where v is NULL or not an object, or has no such key. */
const struct json_value *json_get(const struct json_value *v, const char *key);
/* Items of an array; 0 and NULL for other values. */
size_t json_count(const struct json_value *v);
const struct json_value *json_at(const struct json_value *v, size_t i);
/* Calls fn for each key of an object, in the text's order, until fn returns other than 0,
 * and returns that.  -EINVAL where v is not an object.
 */
typedef int (*json_each_fn)(const char *key, const struct json_value *v, void *user);
int json_each(const struct json_value *v, json_each_fn fn, void *user);
/* A string, borrowed; NULL for other values. */
const char *json_as_text(const struct json_value *v);
/* A whole number >= 0; false for other values. */
bool json_as_u64(const struct json_value *v, uint64_t *ret);
/* Any number; true or false; false for other values. */
bool json_as_double(const struct json_value *v, double *ret);
bool json_is_list(const struct json_value *v);
bool json_is_none(const struct json_value *v);
bool json_as_bool(const struct json_value *v, bool *ret);

/* The value of a key of an object: -ENOENT (missing), -EINVAL (another type), -ERANGE
 * (not a whole number of that range), with a text that names the key; *ret changes on
 * success only.
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
