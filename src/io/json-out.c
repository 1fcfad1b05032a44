/* Writing JSON: a growing text, and the first failure. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "base/units.h"
#include "base/utf8.h"
#include "io/file.h"
#include "io/json.h"

enum { OUT_MAX = 1 << 28, DEPTH_MAX = 32 };

struct json_out {
    char *text;
    size_t len, cap;
    struct {
        bool is_object;
        size_t n;
    } open[DEPTH_MAX];
    size_t depth;
    bool has_root;
    int failed; /* the first failure, or 0 */
};

struct json_out *json_out_new(void)
{
    return calloc(1, sizeof(struct json_out));
}

void json_out_free(struct json_out *o)
{
    if (!o)
        return;
    free(o->text);
    free(o);
}

static void put(struct json_out *o, const char *text, size_t len)
{
    void *items = o->text;

    if (o->failed)
        return;
    int r = array_reserve(&items, &o->cap, o->len + len + 1, 1, OUT_MAX);
    o->text = items;
    if (r < 0) {
        o->failed = r;
        return;
    }
    memcpy(o->text + o->len, text, len);
    o->len += len;
    o->text[o->len] = '\0';
}

static void put_text(struct json_out *o, const char *text)
{
    put(o, text, strlen(text));
}

/* Writes an escape if JSON requires one for c; returns false if it does not. */
static bool put_escaped(struct json_out *o, unsigned char c)
{
    static const char from[] = "\"\\\n\t\r\b\f", to[] = "\"\\ntrbf";
    const char *at = c ? strchr(from, c) : NULL;
    char hex[8];

    if (at) {
        put(o, "\\", 1);
        put(o, &to[at - from], 1);
        return true;
    }
    if (c >= 0x20 && c != 0x7f)
        return false;
    (void)snprintf(hex, sizeof hex, "\\u%04x", c);
    put_text(o, hex);
    return true;
}

static void put_string(struct json_out *o, const char *text)
{
    size_t len = strlen(text);

    put(o, "\"", 1);
    for (size_t i = 0; i < len;) {
        size_t n = utf8_char(text + i, len - i);
        if (n == 0) {
            put_text(o, "\xef\xbf\xbd"); /* U+FFFD */
            n = 1;
        } else if (n > 1 || !put_escaped(o, (unsigned char)text[i])) {
            put(o, text + i, n);
        }
        i += n;
    }
    put(o, "\"", 1);
}

/* Writes the comma, the line break and the key before a value; false: no value is
 * allowed here.
 */
static bool begin(struct json_out *o, const char *key)
{
    if (!o || o->failed)
        return false;
    bool in_object = o->depth > 0 && o->open[o->depth - 1].is_object;
    if (in_object != (key != NULL) || (o->depth == 0 && o->has_root)) {
        o->failed = -EINVAL;
        return false;
    }
    o->has_root = true;
    if (o->depth == 0)
        return true;
    if (o->open[o->depth - 1].n++ > 0)
        put(o, ",", 1);
    put(o, "\n", 1);
    for (size_t i = 0; i < o->depth; i++)
        put(o, "  ", 2);
    if (key) {
        put_string(o, key);
        put(o, ": ", 2);
    }
    return true;
}

static void open_one(struct json_out *o, const char *key, bool is_object)
{
    if (!begin(o, key))
        return;
    if (o->depth == DEPTH_MAX) {
        o->failed = -EINVAL;
        return;
    }
    o->open[o->depth].is_object = is_object;
    o->open[o->depth++].n = 0;
    put(o, is_object ? "{" : "[", 1);
}

void json_out_object(struct json_out *o, const char *key)
{
    open_one(o, key, true);
}

void json_out_array(struct json_out *o, const char *key)
{
    open_one(o, key, false);
}

void json_out_end(struct json_out *o)
{
    if (!o || o->failed)
        return;
    if (o->depth == 0) {
        o->failed = -EINVAL;
        return;
    }
    o->depth--;
    if (o->open[o->depth].n > 0) {
        put(o, "\n", 1);
        for (size_t i = 0; i < o->depth; i++)
            put(o, "  ", 2);
    }
    put(o, o->open[o->depth].is_object ? "}" : "]", 1);
}

/* Whole numbers up to 1e15 without an exponent. */
static void format(double v, int digits, char *text, size_t size)
{
    double scale = 1;

    (void)snprintf(text, size, "%.*g", digits, v);
    if (fabs(v) >= 1e15 || fabs(v) < 1 || !strchr(text, 'e'))
        return;
    for (int i = (int)floor(log10(fabs(v))) + 1; i > digits; i--)
        scale *= 10;
    (void)snprintf(text, size, "%.0f", rint(v / scale) * scale);
}

static void put_double(struct json_out *o, const char *key, double v, int digits,
                       int digits_max)
{
    char text[40];

    if (!isfinite(v)) {
        json_out_null(o, key);
        return;
    }
    for (; digits <= digits_max; digits++) {
        double back = 0;
        format(v, digits, text, sizeof text);
        for (char *p = text; *p; p++)
            if (*p == ',') /* the decimal comma of some locales */
                *p = '.';
        if (parse_double(text, &back, NULL) == 0 && back == v)
            break;
    }
    if (begin(o, key))
        put_text(o, text);
}

void json_out_double(struct json_out *o, const char *key, double v)
{
    put_double(o, key, v, JSON_OUT_DIGITS, JSON_OUT_DIGITS);
}

void json_out_counter(struct json_out *o, const char *key, double v)
{
    put_double(o, key, rint(v * 1e3) / 1e3, 15, 15);
}

void json_out_given(struct json_out *o, const char *key, double v)
{
    put_double(o, key, v, JSON_OUT_GIVEN_DIGITS, JSON_OUT_GIVEN_DIGITS);
}

void json_out_exact_double(struct json_out *o, const char *key, double v)
{
    put_double(o, key, v, 15, 17);
}

void json_out_int(struct json_out *o, const char *key, int64_t v)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%" PRId64, v);
    if (begin(o, key))
        put_text(o, text);
}

void json_out_bool(struct json_out *o, const char *key, bool v)
{
    if (begin(o, key))
        put_text(o, v ? "true" : "false");
}

void json_out_null(struct json_out *o, const char *key)
{
    if (begin(o, key))
        put_text(o, "null");
}

void json_out_known_double(struct json_out *o, const char *key, bool known, double v)
{
    json_out_double(o, key, known ? v : (double)NAN);
}

void json_out_known_int(struct json_out *o, const char *key, bool known, int64_t v)
{
    if (known)
        json_out_int(o, key, v);
    else
        json_out_null(o, key);
}

void json_out_text(struct json_out *o, const char *key, const char *v)
{
    if (!v)
        json_out_null(o, key);
    else if (begin(o, key))
        put_string(o, v);
}

static int check(const struct json_out *o, uw_error *err)
{
    int r = o ? o->failed : -ENOMEM;

    if (r == 0 && (o->depth > 0 || !o->has_root))
        r = -EINVAL;
    if (r == -EINVAL)
        return fail(err, r, "JSON: a value stands where none may, or an end is missing");
    return r < 0 ? fail(err, r, "JSON: %s", strerror(-r)) : 0;
}

static int write_stream(const char *text, size_t len, FILE *file, uw_error *err)
{
    errno = 0;
    if (fwrite(text, 1, len, file) == len && putc('\n', file) != EOF && fflush(file) == 0)
        return 0;
    int r = errno > 0 ? -errno : -EIO;
    return fail(err, r, "JSON: %s", strerror(-r));
}

int json_out_write(const struct json_out *o, const char *path, uw_error *err)
{
    auto_(mem_free) char *text = NULL;
    int r = check(o, err);

    if (r < 0)
        return r;
    if (strcmp(path, "-") == 0)
        return write_stream(o->text, o->len, stdout, err);
    if (asprintf(&text, "%s\n", o->text) < 0) {
        text = NULL;
        return fail(err, -ENOMEM, "%s: out of memory", path);
    }
    return file_write(path, text, o->len + 1, FILE_MODE_UMASK, err);
}

/* Which line breaks a text keeps: none, or those of a table's rows. */
enum layout { ONE_LINE, ROWS };

/* Whether the line break before a line of this depth stays.  next: the line's first
 * character. array: the root's key to which the line belongs holds an array.
 */
static bool stays(enum layout layout, size_t depth, char next, bool array)
{
    bool end = next == '}' || next == ']';

    return layout == ROWS && (depth == 0 || (depth == 1 && (!end || array)) ||
                              (depth == 2 && array && !end));
}

/* Line breaks and indents are outside strings: inside a string \n is escaped. */
static int join(const struct json_out *o, enum layout layout, char **ret, uw_error *err)
{
    int r = check(o, err);

    if (r < 0)
        return r;
    char *out = malloc(o->len + 1);
    if (!out)
        return fail(err, -ENOMEM, "JSON: out of memory");
    bool array = false;
    size_t n = 0;
    for (const char *p = o->text; *p;) {
        if (*p != '\n') {
            out[n++] = *p++;
            continue;
        }
        size_t indent = strspn(p + 1, " "), depth = indent / 2;
        char next = p[1 + indent];
        if (depth == 2 && n > 0 && (out[n - 1] == '[' || out[n - 1] == '{'))
            array = out[n - 1] == '[';
        size_t keep = stays(layout, depth, next, array) ? 1 + indent : 0;
        memcpy(out + n, p, keep);
        n += keep;
        p += 1 + indent;
        if (keep == 0 && n > 0 && out[n - 1] == ',')
            out[n++] = ' ';
    }
    out[n] = '\0';
    *ret = out;
    return 0;
}

int json_out_line(const struct json_out *o, FILE *file, uw_error *err)
{
    auto_(mem_free) char *line = NULL;
    int r = join(o, ONE_LINE, &line, err);

    return r < 0 ? r : write_stream(line, strlen(line), file, err);
}

int json_out_joined(const struct json_out *o, char **ret, uw_error *err)
{
    return join(o, ONE_LINE, ret, err);
}

int json_out_rows(const struct json_out *o, char **ret, uw_error *err)
{
    return join(o, ROWS, ret, err);
}

int json_out_string(const struct json_out *o, char **ret, uw_error *err)
{
    int r = check(o, err);

    if (r < 0)
        return r;
    char *text = strdup(o->text);
    if (!text)
        return fail(err, -ENOMEM, "JSON: out of memory");
    *ret = text;
    return 0;
}
