/* Reading JSON: jansson's tree, with places and keys in errors. */
#include "io/json.h"

#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "io/file.h"

struct json {
    json_t *root;
};

void json_free(struct json *doc)
{
    if (!doc)
        return;
    json_decref(doc->root);
    free(doc);
}

static const json_t *tree(const struct json_value *v)
{
    return (const json_t *)(const void *)v;
}

static const struct json_value *value(const json_t *v)
{
    return (const struct json_value *)(const void *)v;
}

/* jansson's message without the names of its functions. */
static const char *in_words(const json_error_t *why)
{
    switch (json_error_code(why)) {
    case json_error_stack_overflow:
        return "nested deeper than 2048 levels";
    case json_error_null_character:
    case json_error_null_byte_in_key:
        return "a text has the character \\u0000";
    default:
        return why->text;
    }
}

static int read_text(const char *name, const char *text, size_t len, bool hidden,
                     struct json **ret, uw_error *err)
{
    json_error_t why;
    auto_(json_free) struct json *doc = calloc(1, sizeof *doc);

    if (!doc)
        return fail(err, -ENOMEM, "%s: out of memory", name);
    doc->root = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    /* jansson leaves the text empty in some of these cases. */
    if (!doc->root && (json_error_code(&why) == json_error_out_of_memory || !why.text[0]))
        return fail(err, -ENOMEM, "%s: out of memory", name);
    if (!doc->root && hidden)
        return fail(err, -EINVAL, "%s:%d: column %d: not JSON", name, why.line,
                    why.column);
    if (!doc->root)
        return fail(err, -EINVAL, "%s:%d: %s", name, why.line, in_words(&why));
    *ret = take(doc);
    return 0;
}

static int make_plain_text(json_t *v)
{
    if (utf8_is_plain(json_string_value(v)))
        return 0;
    auto_(mem_free) char *text = strdup(json_string_value(v));
    if (!text)
        return -ENOMEM;
    utf8_mend(text);
    return json_string_set(v, text) == 0 ? 0 : -ENOMEM;
}

/* The recursion is bounded: jansson limits the depth it reads. */
static int make_plain_value(json_t *v) /* NOLINT(misc-no-recursion) */
{
    const char *key;
    json_t *item;
    size_t i;
    int r = json_is_string(v) ? make_plain_text(v) : 0;

    json_array_foreach(v, i, item) r = r < 0 ? r : make_plain_value(item);
    json_object_foreach(v, key, item) r = r < 0 ? r : make_plain_value(item);
    return r;
}

int json_make_plain(struct json *doc)
{
    return make_plain_value(doc->root);
}

/* The first of n items with the UUID of like; n: none. */
static size_t find_uuid(const json_t *list, size_t n, const json_t *like)
{
    const char *uuid = json_string_value(json_object_get(like, "uuid"));
    size_t i = uuid ? 0 : n;

    for (; i < n; i++) {
        const json_t *item = json_array_get(list, i);
        const char *other = json_string_value(json_object_get(item, "uuid"));
        if (other && strcmp(uuid, other) == 0)
            break;
    }
    return i;
}

static json_int_t claims_of(const json_t *item)
{
    return json_integer_value(json_object_get(item, "claims"));
}

static int extend_list(json_t *to, json_t *list)
{
    size_t i, n = json_array_size(to); /* the items of list may share a UUID */
    json_t *item;
    int r = 0;

    json_array_foreach(list, i, item)
    {
        size_t at = find_uuid(to, n, item);
        if (at == n)
            r = json_array_append(to, item);
        else if (claims_of(item) > claims_of(json_array_get(to, at)))
            r = json_array_set(to, at, item);
        if (r < 0)
            return -ENOMEM;
    }
    return 0;
}

int json_extend(struct json *doc, const struct json *more)
{
    const char *key;
    json_t *list, *to;
    int r = 0;

    json_object_foreach(more->root, key, list)
    {
        to = json_object_get(doc->root, key);
        if (r == 0 && json_is_array(list) && json_is_array(to))
            r = extend_list(to, list);
    }
    return r;
}

char *json_text(const struct json *doc)
{
    /* 15 digits: more would show the noise of binary fractions */
    return json_dumps(doc->root,
                      JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
}

int json_read(const char *name, const char *text, size_t len, struct json **ret,
              uw_error *err)
{
    return read_text(name, text, len, false, ret, err);
}

int json_read_hidden(const char *name, const char *text, size_t len, struct json **ret,
                     uw_error *err)
{
    return read_text(name, text, len, true, ret, err);
}

int json_read_file(const char *path, size_t max, struct json **ret, uw_error *err)
{
    auto_(mem_free) char *text = NULL;
    size_t len;
    int r = file_read(path, max, &text, &len, err);

    return r < 0 ? r : read_text(path, text, len, file_hides(), ret, err);
}

const struct json_value *json_root(const struct json *doc)
{
    return value(doc->root);
}

const struct json_value *json_get(const struct json_value *v, const char *key)
{
    return v ? value(json_object_get(tree(v), key)) : NULL;
}

size_t json_count(const struct json_value *v)
{
    return v ? json_array_size(tree(v)) : 0;
}

const struct json_value *json_at(const struct json_value *v, size_t i)
{
    return v ? value(json_array_get(tree(v), i)) : NULL;
}

int json_each(const struct json_value *v, json_each_fn fn, void *user)
{
    json_t *object =
        (json_t *)tree(v); /* jansson's iterators take a pointer that is not const */

    if (!v || !json_is_object(object))
        return -EINVAL;
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
        int r = fn(json_object_iter_key(i), value(json_object_iter_value(i)), user);
        if (r != 0)
            return r;
    }
    return 0;
}

const char *json_as_text(const struct json_value *v)
{
    return v ? json_string_value(tree(v)) : NULL;
}

bool json_as_u64(const struct json_value *v, uint64_t *ret)
{
    const json_t *j = v ? tree(v) : NULL;

    if (!json_is_integer(j) || json_integer_value(j) < 0)
        return false;
    *ret = (uint64_t)json_integer_value(j);
    return true;
}

bool json_as_double(const struct json_value *v, double *ret)
{
    if (!json_is_number(v ? tree(v) : NULL))
        return false;
    *ret = json_number_value(tree(v));
    return true;
}

bool json_is_list(const struct json_value *v)
{
    return v && json_typeof(tree(v)) == JSON_ARRAY;
}

bool json_is_none(const struct json_value *v)
{
    return v && json_typeof(tree(v)) == JSON_NULL;
}

bool json_as_bool(const struct json_value *v, bool *ret)
{
    if (!json_is_boolean(v ? tree(v) : NULL))
        return false;
    *ret = json_is_true(tree(v));
    return true;
}

/* Writes the value of a key to *ret; fails where it is missing or not of these `types`.
 */
static int find(const struct json_value *v, const char *key, const json_type types[2],
                const char *what, const json_t **ret, uw_error *err)
{
    const json_t *got = v ? json_object_get(tree(v), key) : NULL;

    if (!got)
        return fail(err, -ENOENT, "key '%s' is missing", key);
    if (json_typeof(got) != types[0] && json_typeof(got) != types[1])
        return fail(err, -EINVAL, "'%s' is %s", key, what);
    *ret = got;
    return 0;
}

static const json_type NUMBER[] = {JSON_REAL, JSON_INTEGER},
                       BOOLEAN[] = {JSON_FALSE, JSON_TRUE},
                       TEXT[] = {JSON_STRING, JSON_STRING};

int json_get_double(const struct json_value *v, const char *key, double *ret,
                    uw_error *err)
{
    const json_t *got = NULL;
    int r = find(v, key, NUMBER, "not a number", &got, err);

    if (r == 0)
        *ret = json_number_value(got);
    return r;
}

int json_get_u64(const struct json_value *v, const char *key, uint64_t *ret,
                 uw_error *err)
{
    const json_t *got = NULL;
    int r = find(v, key, NUMBER, "not a number", &got, err);

    if (r == 0 && (!json_is_integer(got) || json_integer_value(got) < 0))
        return fail(err, -ERANGE, "'%s' is not a whole number from 0", key);
    if (r == 0)
        *ret = (uint64_t)json_integer_value(got);
    return r;
}

int json_get_bool(const struct json_value *v, const char *key, bool *ret, uw_error *err)
{
    const json_t *got = NULL;
    int r = find(v, key, BOOLEAN, "neither true nor false", &got, err);

    if (r == 0)
        *ret = json_is_true(got);
    return r;
}

int json_get_text(const struct json_value *v, const char *key, const char **ret,
                  uw_error *err)
{
    const json_t *got = NULL;
    int r = find(v, key, TEXT, "not a string", &got, err);

    if (r == 0)
        *ret = json_string_value(got);
    return r;
}
