/* Errors of YAML files, with and without the file's own text. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "io/yaml-inside.h"

static const char GAP[] = "…";

/* The end of the conversion that begins at format ("%-*.3lld"). */
static const char *conversion_end(const char *format)
{
    const char *p = format + 1;

    p += strspn(p, "-+ #0123456789.*'hlLqjzt");
    return *p ? p + 1 : p;
}

static void append(char *ret, size_t size, const char *text, size_t len)
{
    size_t used = strlen(ret);

    if (len < size - used) {
        memcpy(ret + used, text, len);
        ret[used + len] = '\0';
    }
}

static bool ends_in_gap(const char *text)
{
    size_t len = strlen(text), gap = sizeof GAP - 1;

    return len >= gap && memcmp(text + len - gap, GAP, gap) == 0;
}

/* Replaces a text that would consist of one gap alone. */
static void fill_gap(char *ret, size_t size)
{
    size_t len = strlen(ret), gap = sizeof GAP - 1;

    if (!ends_in_gap(ret) || (len > gap && strncmp(ret + len - gap - 2, ": ", 2) != 0))
        return;
    (void)snprintf(ret + len - gap, size - (len - gap), "this value is refused");
}

/* Removes a gap that follows a quoted one: a hint ("'%s'%s"). */
static void drop_hint(char *ret)
{
    static const char quoted[] = "…'…";
    size_t len = strlen(ret), n = sizeof quoted - 1;

    if (len >= n && strcmp(ret + len - n, quoted) == 0)
        ret[len - (sizeof GAP - 1)] = '\0';
}

/* The words of the format itself, with a gap for each argument.  Consecutive gaps become
 * one; a leading one ("%s: ", the name of a key) and a hint at the end are left out.
 */
static void words_of(const char *format, char *ret, size_t size)
{
    ret[0] = '\0';
    if (strncmp(format, "%s: ", 4) == 0)
        format += 4;
    while (*format) {
        const char *end = format[0] == '%' ? conversion_end(format) : format + 1;
        bool percent = end - format == 2 && format[1] == '%';
        if (format[0] != '%' || percent)
            append(ret, size, end - 1, 1);
        else if (!ends_in_gap(ret))
            append(ret, size, GAP, sizeof GAP - 1);
        format = end;
    }
    drop_hint(ret);
    fill_gap(ret, size);
}

int yaml_complain(const struct yaml_place *at, const char *keys, uw_error *err, int r,
                  const char *format, va_list args)
{
    uw_error why = {""};

    if (at->hidden) {
        words_of(format, why.text, sizeof why.text);
        return fail(err, r, "%s:%u: column %u: %s", at->name, at->line, at->column,
                    why.text);
    }
    append(why.text, sizeof why.text, keys, strlen(keys));
    size_t used = strlen(why.text);
    (void)vsnprintf(why.text + used, sizeof why.text - used, format, args);
    utf8_mend(why.text); /* a key of the file may contain any bytes */
    return fail(err, r, "%s:%u: %s", at->name, at->line, why.text);
}

int yaml_fail(const struct yaml_node *node, uw_error *err, int r, const char *format, ...)
{
    const struct yaml_place at = yaml_place(node);
    va_list args;

    va_start(args, format);
    r = yaml_complain(&at, "", err, r, format, args);
    va_end(args);
    return r;
}

int yaml_fail_value(const struct yaml_node *node, uw_error *err, int r,
                    const char *format, ...)
{
    const struct yaml_place at = yaml_place(node);
    char keys[YAML_KEYS];
    va_list args;

    va_start(args, format);
    r = yaml_complain(&at, yaml_keys_of(node, keys), err, r, format, args);
    va_end(args);
    return r;
}

int yaml_fail_key(const struct yaml_node *map, size_t i, uw_error *err, int r,
                  const char *format, ...)
{
    const struct yaml_place at = yaml_place_of_key(map, i);
    va_list args;

    va_start(args, format);
    r = yaml_complain(&at, "", err, r, format, args);
    va_end(args);
    return r;
}

int yaml_not_shown(int r, uw_error *err)
{
    uw_error why = err ? *err : (uw_error){""};

    return fail(err, r, "%s (its text is not shown: not every user may read it)",
                why.text);
}

int yaml_check_path(const struct yaml_node *map, const char *key, const char *path,
                    size_t max, uw_error *err)
{
    const struct yaml_node *at = yaml_get(map, key);

    if (!path)
        return 0;
    if (path[0] != '/')
        return yaml_fail(at, err, -EINVAL, "%s: '%.80s' is not an absolute path", key,
                         path);
    if (strlen(path) > max)
        return yaml_fail(at, err, -EINVAL, "%s: a path has at most %zu bytes", key, max);
    return 0;
}
