#include "slurm/gres.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/auto.h"
#include "base/error.h"

enum { GROUPS_MAX = 4, DIGITS_MAX = 9 };

/* A part of a text that is not NUL-terminated. */
struct span {
    const char *at;
    size_t len;
};

/* ---- expressions ---- */

/* A range of an expression's brackets: "07" or "0-7".  width: with leading zeros. */
struct range {
    uint32_t from, to;
    int width;
};

/* Reads up to DIGITS_MAX digits; returns their number; 0: none, or too many. */
static size_t digits(struct span s, uint32_t *ret)
{
    size_t n = 0;

    *ret = 0;
    while (n < s.len && isdigit((unsigned char)s.at[n])) {
        if (n == DIGITS_MAX)
            return 0;
        *ret = *ret * 10 + (uint32_t)(s.at[n++] - '0');
    }
    return n;
}

/* Takes the first range off the inside of brackets. */
static bool next_range(struct span *inside, struct range *ret)
{
    struct span s = *inside;
    size_t n = digits(s, &ret->from);

    if (n == 0)
        return false;
    ret->to = ret->from;
    ret->width = (int)n;
    s = (struct span){s.at + n, s.len - n};
    if (s.len > 0 && *s.at == '-') {
        n = digits((struct span){s.at + 1, s.len - 1}, &ret->to);
        if (n == 0 || ret->to < ret->from)
            return false;
        s = (struct span){s.at + 1 + n, s.len - 1 - n};
    }
    if (s.len > 0 && *s.at != ',')
        return false;
    *inside = s.len > 0 ? (struct span){s.at + 1, s.len - 1} : s;
    return true;
}

/* Takes the first expression off a list with commas; those in brackets separate ranges.
 */
static bool next_item(struct span *list, struct span *ret)
{
    size_t n = 0;
    bool inside = false;

    if (list->len == 0)
        return false;
    while (n < list->len && (inside || list->at[n] != ',')) {
        inside = list->at[n] == '[' || (inside && list->at[n] != ']');
        n++;
    }
    *ret = (struct span){list->at, n};
    n += n < list->len;
    *list = (struct span){list->at + n, list->len - n};
    return true;
}

/* Splits at the first brackets: false if there are none, or they are not closed. */
static bool split(struct span s, struct span *ret_before, struct span *ret_inside,
                  struct span *ret_after)
{
    const char *open = memchr(s.at, '[', s.len);
    const char *close = open ? memchr(open, ']', s.len - (size_t)(open - s.at)) : NULL;

    if (!close)
        return false;
    *ret_before = (struct span){s.at, (size_t)(open - s.at)};
    *ret_inside = (struct span){open + 1, (size_t)(close - open - 1)};
    *ret_after = (struct span){close + 1, s.len - (size_t)(close + 1 - s.at)};
    return true;
}

/* Whether these digits are a number in the ranges, with the same width. */
static bool in_ranges(struct span inside, struct span number)
{
    struct range r = {0};
    uint32_t v = 0;
    char text[DIGITS_MAX + 2];

    if (digits(number, &v) != number.len)
        return false;
    while (inside.len > 0 && next_range(&inside, &r)) {
        int n = snprintf(text, sizeof text, "%0*u", r.width, v);
        if (v >= r.from && v <= r.to && (size_t)n == number.len)
            return true;
    }
    return false;
}

/* NOLINTNEXTLINE(misc-no-recursion): GROUPS_MAX deep at most */
static bool matches(struct span s, const char *name, int groups)
{
    struct span before, inside, after;
    size_t len = strlen(name);

    if (!split(s, &before, &inside, &after))
        return s.len == len && memcmp(s.at, name, len) == 0;
    if (groups == 0 || len < before.len || memcmp(before.at, name, before.len) != 0)
        return false;
    name += before.len;
    for (size_t n = 1; n <= DIGITS_MAX && isdigit((unsigned char)name[n - 1]); n++)
        if (in_ranges(inside, (struct span){name, n}) &&
            matches(after, name + n, groups - 1))
            return true;
    return false;
}

bool gres_names(const char *expression, size_t len, const char *name)
{
    struct span list = {expression, len}, item;

    while (next_item(&list, &item))
        if (matches(item, name, GROUPS_MAX))
            return true;
    return false;
}

/* ---- device files ---- */

struct reading {
    const char *node;
    gres_fn *fn;
    void *user;
    bool own; /* only lines that begin with NodeName are read, or only the others */
    unsigned n;
    bool typed; /* a line of GPUs was read, and has this type */
    char type[GRES_TYPE_MAX];
    struct gres_type *want; /* the only type to find; NULL: any type, but only one */
};

/* Passes on each path of an expression whose begin is in path.  The brackets that come
 * first vary slowest.
 */
/* NOLINTNEXTLINE(misc-no-recursion): GROUPS_MAX deep at most */
static bool spread(struct reading *to, char path[GRES_PATH_MAX], size_t used,
                   struct span s, int groups)
{
    struct span before, inside, after;
    struct range r = {0};
    bool more = split(s, &before, &inside, &after);
    struct span plain = more ? before : s;

    if (used + plain.len >= GRES_PATH_MAX || (more && groups == 0) ||
        memchr(plain.at, '[', plain.len) || memchr(plain.at, ']', plain.len))
        return false;
    memcpy(path + used, plain.at, plain.len);
    used += plain.len;
    path[used] = '\0';
    if (!more) {
        if (to->n == GRES_DEVICES_MAX)
            return false;
        if (to->want && to->want->found == to->want->count)
            return true;
        if (to->want)
            to->want->found++;
        to->fn(to->n++, path, to->user);
        return true;
    }
    if (inside.len == 0)
        return false;
    while (inside.len > 0) {
        if (!next_range(&inside, &r) || r.to - r.from >= GRES_DEVICES_MAX)
            return false;
        for (uint32_t v = r.from; v <= r.to; v++) {
            int n = snprintf(path + used, GRES_PATH_MAX - used, "%0*u", r.width, v);
            if (n < 0 || (size_t)n >= GRES_PATH_MAX - used ||
                !spread(to, path, used + (size_t)n, after, groups - 1))
                return false;
        }
    }
    return true;
}

static bool files(struct reading *to, struct span list)
{
    char path[GRES_PATH_MAX];
    struct span item;

    while (next_item(&list, &item))
        if (item.len == 0 || *item.at != '/' || !spread(to, path, 0, item, GROUPS_MAX))
            return false;
    return true;
}

/* ---- lines ---- */

/* The values of a line that concern devices; len 0: it has none. */
struct line {
    struct span first; /* its first key */
    struct span node, name, file, many, detect, type;
};

static bool is_word(struct span s, const char *word)
{
    return s.len == strlen(word) && strncasecmp(s.at, word, s.len) == 0;
}

/* Takes the first "Key=value" off a line; the value may be quoted. */
static bool next_pair(struct span *s, struct span *ret_key, struct span *ret_value)
{
    size_t i = 0, from = 0;
    bool quoted = false;

    while (i < s->len && isspace((unsigned char)s->at[i]))
        i++;
    from = i;
    while (i < s->len && s->at[i] != '=' && !isspace((unsigned char)s->at[i]))
        i++;
    *ret_key = (struct span){s->at + from, i - from};
    *ret_value = (struct span){s->at + i, 0};
    if (i < s->len && s->at[i] == '=') {
        quoted = i + 1 < s->len && s->at[i + 1] == '"';
        from = i += quoted ? 2 : 1;
        while (i < s->len &&
               (quoted ? s->at[i] != '"' : !isspace((unsigned char)s->at[i])))
            i++;
        *ret_value = (struct span){s->at + from, i - from};
        i += quoted && i < s->len;
    }
    *s = (struct span){s->at + i, s->len - i};
    return ret_key->len > 0;
}

/* Whether a line of this type is to be read. */
static bool same_type(struct reading *to, struct span type)
{
    char name[sizeof to->type];

    (void)snprintf(name, sizeof name, "%.*s", (int)type.len, type.at ? type.at : "");
    if (to->want)
        return !to->want->name[0] || strcasecmp(to->want->name, name) == 0;
    if (to->typed)
        return strcmp(to->type, name) == 0;
    memcpy(to->type, name, sizeof name);
    return to->typed = true;
}

static bool is_instance(const struct line *l)
{
    return l->many.len > 0 ||
           (l->file.len > 0 && memmem(l->file.at, l->file.len, "-caps/", 6));
}

/* cut: the line is longer than the text. */
typedef int line_fn(struct span text, bool cut, void *user, uw_error *err);

static int too_long(uw_error *err)
{
    return fail(err, -EINVAL, "more than %d bytes", GRES_LINE_MAX);
}

static int read_line(struct span text, bool cut, void *user, uw_error *err)
{
    struct reading *to = user;
    struct line l = {0};
    struct span key, value;
    const struct {
        const char *word;
        struct span *to;
    } keys[] = {{"NodeName", &l.node},      {"Name", &l.name},
                {"File", &l.file},          {"Files", &l.file},
                {"MultipleFiles", &l.many}, {"AutoDetect", &l.detect},
                {"Type", &l.type}};

    if (cut)
        return too_long(err);
    while (next_pair(&text, &key, &value)) {
        if (!l.first.len)
            l.first = key;
        if (is_word(key, "Include"))
            return fail(err, -EINVAL, "Include is not followed");
        for (size_t i = 0; i < n_elements(keys); i++)
            if (is_word(key, keys[i].word))
                *keys[i].to = value;
    }
    if (is_word(l.first, "NodeName") != to->own)
        return 0;
    if (l.node.len > 0 && !gres_names(l.node.at, l.node.len, to->node))
        return 0;
    if (l.detect.len > 0 && !is_word(l.detect, "off"))
        return fail(err, -ENOTSUP, "AutoDetect=%.*s leaves the order of the GPUs open",
                    (int)l.detect.len, l.detect.at);
    if (!is_word(l.name, "gpu"))
        return 0;
    if (!same_type(to, l.type))
        return to->want ? 0
                        : fail(err, -ENOTUNIQ,
                               "GPUs of several types: Slurm does not count them in the "
                               "order of the lines");
    if (is_instance(&l))
        return fail(err, -ENODEV,
                    "MIG instances: a cap is a whole board's, not an "
                    "instance's");
    if (l.file.len == 0)
        return fail(err, -ENOTSUP, "GPUs without File");
    if (!files(to, l.file))
        return fail(err, -EINVAL, "File=%.*s is no list of device files",
                    (int)(l.file.len > 80 ? 80 : l.file.len), l.file.at);
    return 0;
}

static int each_line(const char *text, size_t len, line_fn *fn, void *user, uw_error *err)
{
    char line[GRES_LINE_MAX];
    size_t used = 0;
    unsigned no = 0;
    bool cut = false;

    for (size_t at = 0; at < len;) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t n = end ? (size_t)(end - text) - at : len - at;
        const char *comment = memchr(text + at, '#', n);
        size_t kept = comment ? (size_t)(comment - text) - at : n;
        bool goes_on = false;

        no++;
        while (kept > 0 && isspace((unsigned char)text[at + kept - 1]))
            kept--;
        if (kept > 0 && !comment && text[at + kept - 1] == '\\') {
            goes_on = true;
            kept--;
        }
        if (used + kept >= sizeof line) {
            cut = true;
            kept = sizeof line - 1 - used;
        }
        memcpy(line + used, text + at, kept);
        used += kept;
        at += n + 1;
        if (goes_on && at < len)
            continue;
        int r = fn((struct span){line, used}, cut, user, err);
        if (r < 0)
            return fail_in(err, r, "line %u", no);
        used = 0;
        cut = false;
    }
    return 0;
}

/* Slurm counts the devices of lines that begin with NodeName after all others. */
static int read_twice(struct reading *to, const char *text, size_t len, uw_error *err)
{
    to->own = false;
    int r = each_line(text, len, read_line, to, err);

    to->own = true;
    return r < 0 ? r : each_line(text, len, read_line, to, err);
}

int gres_read(const char *text, size_t len, const char *node, struct gres_types *types,
              gres_fn *fn, void *user, uw_error *err)
{
    struct reading to = {.node = node, .fn = fn, .user = user};
    int r = types ? 0 : read_twice(&to, text, len, err);

    for (size_t i = 0; types && i < types->n && r == 0; i++) {
        to.want = &types->type[i];
        to.want->found = 0;
        r = read_twice(&to, text, len, err);
    }
    return r < 0 ? r : (int)to.n;
}

/* ---- slurm.conf ---- */

struct node_line {
    const char *node;
    char usual[GRES_LINE_MAX], own[GRES_LINE_MAX]; /* of NodeName=DEFAULT, of the node */
    bool found;
};

static int node_line(struct span text, bool cut, void *user, uw_error *err)
{
    struct node_line *to = user;
    struct span key, value, gres = {NULL, 0};
    bool usual;

    if (!next_pair(&text, &key, &value))
        return 0;
    if (is_word(key, "Include"))
        return fail(err, -EINVAL, "Include is not followed");
    if (!is_word(key, "NodeName"))
        return 0;
    if (cut && text.len == 0) /* in the middle of the names */
        return too_long(err);
    usual = is_word(value, "DEFAULT");
    if (!usual && !gres_names(value.at, value.len, to->node))
        return 0;
    if (cut)
        return too_long(err);
    while (next_pair(&text, &key, &value))
        if (is_word(key, "Gres"))
            gres = value;
    if (usual && gres.len > 0)
        (void)snprintf(to->usual, sizeof to->usual, "%.*s", (int)gres.len, gres.at);
    if (usual)
        return 0;
    to->found = true;
    if (gres.len > 0)
        (void)snprintf(to->own, sizeof to->own, "%.*s", (int)gres.len, gres.at);
    else
        memcpy(to->own, to->usual, sizeof to->own);
    return 0;
}

/* A part of Gres: "gpu", "gpu:4", "gpu:a100:4(S:0-1)", "gpu:a100". */
static int add_type(const char *part, struct gres_types *to, uw_error *err)
{
    char type[GRES_LINE_MAX];
    unsigned count = 1;
    size_t i = 0;
    int n = 0;

    if (strncmp(part, "gpu", 3) != 0 || (part[3] && part[3] != ':'))
        return 0;
    (void)snprintf(type, sizeof type, "%s", part[3] ? part + 4 : "");
    type[strcspn(type, "(")] = '\0';
    char *last = strrchr(type, ':'), *number = last ? last + 1 : type;
    if (isdigit((unsigned char)*number)) {
        if (sscanf(number, "%4u%n", &count, &n) != 1 || number[n])
            return fail(err, -EINVAL, "Gres=%.60s has no count of GPUs", part);
        *(last ? last : type) = '\0';
    }
    while (i < to->n && strcasecmp(to->type[i].name, type) != 0)
        i++;
    if (strchr(type, ':') || strlen(type) >= GRES_TYPE_MAX || i == GRES_TYPES_MAX ||
        strcasecmp(type, "no_consume") == 0 ||
        (i < to->n && strcmp(to->type[i].name, type) != 0) ||
        (i > 0 && (!*type || !*to->type[0].name)))
        return fail(err, -EINVAL, "Gres=%.60s is not understood", part);
    to->n += i == to->n;
    (void)snprintf(to->type[i].name, GRES_TYPE_MAX, "%s", type);
    to->type[i].count += count;
    return 0;
}

int gres_types(const char *text, size_t len, const char *node, struct gres_types *ret,
               uw_error *err)
{
    struct node_line line = {.node = node};
    struct gres_types types = {0};
    int r = each_line(text, len, node_line, &line, err);

    if (r == 0 && !line.found)
        r = fail(err, -ENOENT, "no NodeName has %.60s", node);
    char *rest = line.own, *part;
    while (r == 0 && (part = strsep(&rest, ",")))
        r = add_type(part, &types, err);
    if (r == 0)
        *ret = types;
    return r;
}
