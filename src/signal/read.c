#include "signal/read.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/error.h"
#include "base/moment.h"
#include "base/units.h"
#include "base/utf8.h"
#include "io/json.h"

#define DIGITS "0123456789"
#define SPAN_S (SIGNAL_DAYS * INT64_C(86400))

void signal_reading_fini(struct signal_reading *r)
{
    free(r->point);
    *r = (struct signal_reading){0};
}

/* ---- JSON ---- */

bool signal_path_check(const char *path)
{
    size_t keys = 1;

    for (const char *p = path; *p; p++) {
        if (*p == '.' && (p == path || p[1] == '.' || !p[1]))
            return false;
        keys += *p == '.';
    }
    return keys <= SIGNAL_PATH_KEYS;
}

/* The value at the path; NULL: there is none. */
static const struct json_value *walk(const struct json_value *v, const char *path)
{
    char key[SIGNAL_PATH];
    uint64_t at = 0;

    while (v && *path) {
        size_t n = strcspn(path, ".");
        memcpy(key, path, n);
        key[n] = '\0';
        path += n + (path[n] == '.');
        if (json_get(v, key))
            v = json_get(v, key);
        else
            v = parse_u64(key, &at, NULL) == 0 ? json_at(v, at) : NULL;
    }
    return v;
}

static bool json_value(const struct json_value *v, enum policy_type type,
                       struct signal_value *ret)
{
    const char *text = json_as_text(v);

    *ret = (struct signal_value){.type = type};
    if (type == POLICY_NUMBER)
        return json_as_double(v, &ret->number);
    if (type == POLICY_TRUTH)
        return json_as_bool(v, &ret->truth);
    if (!text || !*text || strlen(text) >= sizeof ret->text || !utf8_is_plain(text))
        return false;
    (void)snprintf(ret->text, sizeof ret->text, "%s", text);
    return true;
}

static int read_json(const struct signal_format *f, const char *text, size_t len,
                     struct signal_reading *ret, uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;
    const char *where = f->path[0] ? f->path : "the value";
    struct signal_value value;
    bool open = !f->whole && len > 0 && !strchr("}]\n", text[len - 1]);
    int r = json_read_hidden(f->name, text, len, &doc, err);

    if (r < 0)
        return r;
    if (open)
        return fail(err, -EINVAL, "%s: its last line has no end: it may be torn",
                    f->name);
    const struct json_value *v = walk(json_root(doc), f->path);
    if (!v)
        return fail(err, -ENODATA, "%s: there is no %s", f->name, where);
    if (json_is_none(v))
        return fail(err, -ENODATA, "%s: %s is null", f->name, where);
    if (!json_value(v, f->type, &value))
        return fail(err, -EINVAL, "%s: %s is not %s", f->name, where,
                    signal_type_name(f->type));
    *ret = (struct signal_reading){.value = value};
    return 0;
}

/* ---- CSV ---- */

/* A part of a line, without surrounding blanks and quotes. */
struct field {
    const char *at;
    size_t len;
};

struct csv {
    const struct signal_format *format;
    const char *at, *end; /* the rest of the text */
    unsigned line;        /* number of the last line, from 1 */
    int64_t utc_s;
    size_t column;  /* column of the values */
    bool has_times; /* the first data line begins with a time */
    unsigned rows;
    int64_t last_s; /* time of the line before */
    size_t cap;
    struct signal_reading reading;
    uw_error *err;
};

static struct field trim(const char *at, size_t len)
{
    while (len > 0 && isspace((unsigned char)at[len - 1]))
        len--;
    while (len > 0 && isspace((unsigned char)*at)) {
        at++;
        len--;
    }
    if (len >= 2 && *at == '"' && at[len - 1] == '"')
        return (struct field){at + 1, len - 2};
    return (struct field){at, len};
}

/* The k-th field; false: the line has fewer. */
static bool field_at(struct field line, size_t k, struct field *ret)
{
    size_t from = 0, n = 0;
    bool quoted = false;

    for (size_t i = 0; i <= line.len; i++) {
        quoted ^= i < line.len && line.at[i] == '"';
        if (i < line.len && (line.at[i] != ',' || quoted))
            continue;
        if (n++ == k) {
            *ret = trim(line.at + from, i - from);
            return true;
        }
        from = i + 1;
    }
    return false;
}

static bool field_is(struct field f, const char *text)
{
    return strlen(text) == f.len && memcmp(text, f.at, f.len) == 0;
}

static bool field_text(struct field f, char *ret, size_t size)
{
    if (f.len >= size || memchr(f.at, '\0', f.len))
        return false;
    memcpy(ret, f.at, f.len);
    ret[f.len] = '\0';
    return true;
}

static bool field_time(struct field f, int64_t *ret)
{
    char text[40];
    struct moment m;

    if (!field_text(f, text, sizeof text) || !moment_read(text, &m))
        return false;
    *ret = moment_utc_s(&m);
    return true;
}

/* "Nov"; after a day "November", too, but not "market 1". */
static bool is_month(const char *text, bool behind_day)
{
    static const char *const months[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                         "jul", "aug", "sep", "oct", "nov", "dec"};

    if (strlen(text) < 4 || (isalpha((unsigned char)text[3]) && !behind_day))
        return false;
    for (size_t i = 0; i < n_elements(months); i++)
        if (strncasecmp(text, months[i], 3) == 0)
            return strpbrk(text, DIGITS);
    return false;
}

/* A date or a time in some form: "26.11.2026 23:00", "23:00", "20261126T2300Z",
 * "26 Nov 2026", "Nov 26 2026".
 */
static bool looks_like_time(const char *text)
{
    size_t numbers = 0;
    const char *p = text;

    for (size_t n = 0; (n = strspn(p, DIGITS)) > 0; numbers++)
        for (p += n; *p && strchr("./-: T", *p);)
            p++;
    return numbers >= 2 || is_month(p, numbers > 0);
}

/* The next line with content; false: there is none. */
static bool next_line(struct csv *c, struct field *ret)
{
    while (c->at < c->end) {
        const char *stop = memchr(c->at, '\n', (size_t)(c->end - c->at));
        size_t len = (size_t)(stop - c->at); /* the text ends with a newline */
        *ret = (struct field){c->at, len};
        c->at = stop + 1;
        c->line++;
        if (len > 0 && ret->at[len - 1] == '\r')
            ret->len--;
        if (ret->len > 0 && ret->at[0] != '#')
            return true;
    }
    return false;
}

static int fail_line(const struct csv *c, const char *what)
{
    return fail(c->err, -EINVAL, "%s:%u: %s", c->format->name, c->line, what);
}

/* Refuses a line that begins with a time of another form or, if a number cannot be the
 * key of a line, with a number: most likely a time, too.
 */
static int check_first(const struct csv *c, struct field line, bool may_be_number)
{
    struct field f;
    char text[40];
    double number = 0;

    if (!field_at(line, 1, &f) || !field_at(line, 0, &f) ||
        !field_text(f, text, sizeof text) || !utf8_is_plain(text))
        return 0;
    bool is_number = parse_double(text, &number, NULL) == 0;
    if (is_number ? may_be_number : !looks_like_time(text))
        return 0;
    return fail(c->err, -EINVAL,
                "%s:%u: '%s' is not a time as 2026-11-25T14:00Z or 2026-11-25 14:00",
                c->format->name, c->line, text);
}

/* Finds the column of the values, by the line of column names. */
static int find_column(struct csv *c, struct field line)
{
    const char *want = c->format->column;
    struct field f;

    if (!*want) {
        c->column = field_at(line, 1, &f) ? 1 : 0;
        return 0;
    }
    for (size_t k = 0; field_at(line, k, &f); k++) {
        if (field_is(f, want)) {
            c->column = k;
            return 0;
        }
    }
    return fail(c->err, -EINVAL, "%s:%u: there is no column '%s'", c->format->name,
                c->line, want);
}

/* *ret->number NaN: the field is empty. */
static int csv_value(const struct csv *c, struct field f, struct signal_value *ret)
{
    enum policy_type type = c->format->type;
    char text[SIGNAL_TEXT];

    *ret = (struct signal_value){.type = type, .number = (double)NAN};
    if (!field_text(f, text, sizeof text) || (type != POLICY_NUMBER && !text[0]))
        return fail_line(c, "the value is none");
    if (type == POLICY_NUMBER && text[0] && parse_double(text, &ret->number, NULL) < 0)
        return fail_line(c, "the value is not a number");
    if (type == POLICY_TRUTH && !(ret->truth = field_is(f, "true")) &&
        !field_is(f, "false"))
        return fail_line(c, "the value is neither true nor false");
    if (type == POLICY_TEXT && !utf8_is_plain(text))
        return fail_line(c, "the value has characters that cannot be shown");
    memcpy(ret->text, text, sizeof text);
    return 0;
}

/* Adds a point that is near enough in time; of earlier ones, only the last one. */
static int add_point(struct csv *c, int64_t at_s, double v)
{
    struct signal_reading *r = &c->reading;

    if (at_s > c->utc_s + SPAN_S)
        return 0;
    if (at_s < c->utc_s - SPAN_S)
        r->n = 0;
    int x = array_grow(&r->point, &c->cap, r->n, SIGNAL_POINTS);
    if (x < 0)
        return fail(c->err, x, "%s: more than %d lines of %d days", c->format->name,
                    SIGNAL_POINTS, 2 * SIGNAL_DAYS);
    r->point[r->n++] = (struct policy_point){at_s, v};
    return 0;
}

static int take_line(struct csv *c, struct field line)
{
    struct signal_value value;
    struct field f = {0};
    int64_t at_s = 0;

    (void)field_at(line, 0, &f);
    bool timed = field_time(f, &at_s);
    if (c->rows++ == 0)
        c->has_times = timed;
    int r = timed || c->column == 0 ? 0 : check_first(c, line, c->rows < 2);
    if (r < 0)
        return r;
    if (timed != c->has_times)
        return fail_line(c, timed ? "the line begins with a time, others do not"
                                  : "the line does not begin with a time, others do");
    if (!field_at(line, c->column, &f))
        return fail_line(c, "the line has no such column");
    if (timed && (c->column == 0 || c->format->type != POLICY_NUMBER))
        return fail_line(c, "a series has a time and, in another column, a number");
    if (timed && c->rows > 1 && at_s <= c->last_s)
        return fail_line(c, "its time is not later than that of the line before");
    r = csv_value(c, f, &value);
    if (r < 0)
        return r;
    c->last_s = at_s;
    c->reading.value = value;
    return timed ? add_point(c, at_s, value.number) : 0;
}

/* Checks the result of all lines. */
static int check_reading(const struct csv *c)
{
    const char *file = c->format->name;
    const struct signal_reading *r = &c->reading;

    if (c->rows == 0)
        return fail(c->err, -ENODATA, "%s: there is no line with a value", file);
    if (!c->has_times && c->format->is_forecast)
        return fail(c->err, -EINVAL, "%s: lines of a forecast begin with a time", file);
    if (!c->has_times && r->value.type == POLICY_NUMBER && !isfinite(r->value.number))
        return fail(c->err, -ENODATA, "%s: the last line has no value", file);
    if (c->has_times && r->n == 0)
        return fail(c->err, -ENODATA, "%s: no line lies within %d days of now", file,
                    SIGNAL_DAYS);
    return 0;
}

static int read_lines(struct csv *c)
{
    struct field line, first = {0};
    int64_t at_s = 0;
    int r = 0;

    if (!next_line(c, &line))
        return check_reading(c);
    (void)field_at(line, 0, &first);
    c->column = 1;
    if (!field_time(first, &at_s)) {
        r = check_first(c, line, c->format->column[0]);
        if (r == 0)
            r = find_column(c, line);
    } else if (c->format->column[0]) {
        r = fail_line(c, "no line names the columns");
    } else {
        r = take_line(c, line);
    }
    while (r == 0 && next_line(c, &line))
        r = take_line(c, line);
    return r == 0 ? check_reading(c) : r;
}

static int read_csv(const struct signal_format *f, const char *text, size_t len,
                    int64_t utc_s, struct signal_reading *ret, uw_error *err)
{
    static const char mark[] = "\xef\xbb\xbf";
    size_t skip = len >= 3 && memcmp(text, mark, 3) == 0 ? 3 : 0;
    struct csv c = {
        .format = f, .at = text + skip, .end = text + len, .utc_s = utc_s, .err = err};

    if (len > 0 && text[len - 1] != '\n')
        return fail(err, -EINVAL, "%s: its last line has no end: it may be torn",
                    f->name);
    int r = read_lines(&c);
    if (r < 0) {
        signal_reading_fini(&c.reading);
        return r;
    }
    c.reading.is_series = c.has_times;
    *ret = c.reading;
    return 0;
}

int signal_read(const struct signal_format *format, const char *text, size_t len,
                int64_t utc_s, struct signal_reading *ret, uw_error *err)
{
    return format->csv ? read_csv(format, text, len, utc_s, ret, err)
                       : read_json(format, text, len, ret, err);
}
