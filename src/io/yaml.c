#include "io/yaml.h"

#include <errno.h>
#include <libfyaml.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/units.h"
#include "base/utf8.h"
#include "io/file.h"
#include "io/yaml-inside.h"

struct key {
    char *text;
    unsigned line, column;
};

struct yaml_node {
    const struct yaml *doc;
    struct yaml_node *next; /* next node of the document */
    enum yaml_kind kind;
    unsigned line, column;
    const char *key; /* key of this value in a map; else NULL */
    const struct yaml_node *parent;
    char *text;               /* scalar */
    struct yaml_node **items; /* sequence, map */
    struct key *keys;         /* map: of the items */
    size_t n, cap_items, cap_keys;
};

struct yaml {
    char *name;
    bool hidden;
    struct yaml_node *root;
    struct yaml_node *nodes; /* all of them: the last one read first */
    size_t n_nodes;
};

/* The reader's state while events come in. */
struct reader {
    struct yaml *doc;
    struct yaml_node *open[YAML_MAX_DEPTH]; /* enclosing sequences and maps */
    size_t depth;
    struct key key; /* key in the innermost map whose value has not been read */
    unsigned line, column;
    bool ended; /* a document has ended */
    uw_error *err;
};

void yaml_free(struct yaml *doc)
{
    if (!doc)
        return;
    while (doc->nodes) {
        struct yaml_node *node = doc->nodes;
        doc->nodes = node->next;
        for (size_t i = 0; node->keys && i < node->n; i++)
            free(node->keys[i].text);
        free(node->keys);
        free(node->items);
        free(node->text);
        free(node);
    }
    free(doc->name);
    free(doc);
}

__attribute__((format(printf, 3, 4))) static int refuse(const struct reader *rd, int r,
                                                        const char *format, ...)
{
    const struct yaml_place at = {rd->doc->name, rd->line, rd->column, rd->doc->hidden};
    va_list args;

    va_start(args, format);
    r = yaml_complain(&at, "", rd->err, r, format, args);
    va_end(args);
    return r;
}

static int out_of_memory(const struct reader *rd)
{
    return refuse(rd, -ENOMEM, "out of memory");
}

/* Attaches a node to its parent. */
static int attach(struct reader *rd, struct yaml_node *node)
{
    struct yaml_node *parent = rd->depth > 0 ? rd->open[rd->depth - 1] : NULL;
    int r = 0;

    if (!parent) {
        rd->doc->root = node;
        return 0;
    }
    r = array_grow(&parent->items, &parent->cap_items, parent->n, YAML_MAX_NODES);
    if (r >= 0 && parent->kind == YAML_MAP)
        r = array_grow(&parent->keys, &parent->cap_keys, parent->n, YAML_MAX_NODES);
    if (r < 0)
        return out_of_memory(rd);
    node->parent = parent;
    if (parent->kind == YAML_MAP) {
        node->key = rd->key.text;
        parent->keys[parent->n] =
            (struct key){take(rd->key.text), rd->key.line, rd->key.column};
    }
    parent->items[parent->n++] = node;
    return 0;
}

static int new_node(struct reader *rd, enum yaml_kind kind, char *text)
{
    if (++rd->doc->n_nodes > YAML_MAX_NODES) {
        free(text);
        return refuse(rd, -EFBIG, "more than %d values", YAML_MAX_NODES);
    }
    struct yaml_node *node = calloc(1, sizeof *node);
    if (!node) {
        free(text);
        return out_of_memory(rd);
    }
    node->doc = rd->doc;
    node->kind = kind;
    node->line = rd->line;
    node->column = rd->column;
    node->text = text;
    node->next = rd->doc->nodes;
    rd->doc->nodes = node;
    int r = attach(rd, node);
    if (r < 0 || kind == YAML_SCALAR)
        return r;
    if (rd->depth == YAML_MAX_DEPTH)
        return refuse(rd, -EFBIG, "nested deeper than %d", YAML_MAX_DEPTH);
    rd->open[rd->depth++] = node;
    return 0;
}

/* Whether the next event must be a key. */
static bool wants_key(const struct reader *rd)
{
    return rd->depth > 0 && rd->open[rd->depth - 1]->kind == YAML_MAP && !rd->key.text;
}

static int on_key(struct reader *rd, char *key)
{
    const struct yaml_node *map = rd->open[rd->depth - 1];
    const struct yaml_node *first = yaml_get(map, key);
    int r = 0;

    if (map->n >= YAML_MAX_KEYS)
        r = refuse(rd, -EFBIG, "more than %d keys", YAML_MAX_KEYS);
    else if (strcmp(key, "<<") == 0)
        r = refuse(rd, -EINVAL, "merge keys (<<) are not understood here");
    else if (first)
        r = refuse(rd, -EINVAL, "key '%.60s' is already set on line %u", key,
                   first->line);
    if (r < 0)
        free(key);
    else
        rd->key = (struct key){key, rd->line, rd->column};
    return r;
}

static int on_scalar(struct reader *rd, struct fy_token *value)
{
    size_t len = 0;
    const char *text = value ? fy_token_get_text(value, &len) : "";

    if (!text)
        return out_of_memory(rd);
    if (memchr(text, '\0', len))
        return refuse(rd, -EINVAL, "a NUL byte in a text");
    char *copy = strndup(text, len);
    if (!copy)
        return out_of_memory(rd);
    return wants_key(rd) ? on_key(rd, copy) : new_node(rd, YAML_SCALAR, copy);
}

static int on_start(struct reader *rd, enum yaml_kind kind)
{
    if (wants_key(rd))
        return refuse(rd, -EINVAL, "a key must be plain text");
    return new_node(rd, kind, NULL);
}

static int no_anchor(const struct reader *rd, const struct fy_token *anchor,
                     const struct fy_token *tag)
{
    if (anchor)
        return refuse(rd, -EINVAL, "anchors (&) and aliases (*) are not understood here");
    if (tag)
        return refuse(rd, -EINVAL, "tags (!) are not understood here");
    return 0;
}

static int on_event(struct reader *rd, struct fy_event *e)
{
    const struct fy_mark *mark = fy_event_start_mark(e);
    int r = 0;

    if (mark && mark->line >= 0)
        rd->line = (unsigned)mark->line + 1;
    if (mark && mark->column >= 0)
        rd->column = (unsigned)mark->column + 1;
    switch (e->type) {
    case FYET_DOCUMENT_START:
        return rd->ended ? refuse(rd, -EINVAL, "a second document") : 0;
    case FYET_DOCUMENT_END:
        rd->ended = true;
        return 0;
    case FYET_ALIAS:
        return refuse(rd, -EINVAL, "anchors (&) and aliases (*) are not understood here");
    case FYET_SCALAR:
        r = no_anchor(rd, e->scalar.anchor, e->scalar.tag);
        return r < 0 ? r : on_scalar(rd, e->scalar.value);
    case FYET_SEQUENCE_START:
        r = no_anchor(rd, e->sequence_start.anchor, e->sequence_start.tag);
        return r < 0 ? r : on_start(rd, YAML_SEQ);
    case FYET_MAPPING_START:
        r = no_anchor(rd, e->mapping_start.anchor, e->mapping_start.tag);
        return r < 0 ? r : on_start(rd, YAML_MAP);
    case FYET_SEQUENCE_END:
    case FYET_MAPPING_END:
        rd->depth--;
        return 0;
    default:
        return 0;
    }
}

/* The parser's error as "NAME:LINE: text". */
static int syntax_error(struct reader *rd, struct fy_diag *diag)
{
    void *prev = NULL;
    const struct fy_diag_error *e = fy_diag_errors_iterate(diag, &prev);

    if (!e)
        return refuse(rd, -EINVAL, "not YAML");
    if (rd->doc->hidden) { /* the parser's text may show the file's text */
        rd->line = (unsigned)e->line;
        rd->column = (unsigned)e->column;
        return refuse(rd, -EINVAL, "not YAML");
    }
    return fail(rd->err, -EINVAL, "%s:%d: %s", rd->doc->name, e->line, e->msg);
}

static int read_events(struct reader *rd, struct fy_parser *parser, struct fy_diag *diag)
{
    for (;;) {
        struct fy_event *e = fy_parser_parse(parser);
        if (!e)
            return fy_parser_get_stream_error(parser) ? syntax_error(rd, diag) : 0;
        bool last = e->type == FYET_STREAM_END;
        int r = on_event(rd, e);
        fy_parser_event_free(parser, e);
        if (r < 0 || last)
            return r;
    }
}

static int parse(struct reader *rd, const char *text, size_t len)
{
    struct fy_diag_cfg diag_cfg;

    fy_diag_cfg_default(&diag_cfg);
    diag_cfg.fp = NULL;
    struct fy_diag *diag = fy_diag_create(&diag_cfg);
    if (!diag)
        return out_of_memory(rd);
    fy_diag_set_collect_errors(diag, true);
    struct fy_parse_cfg cfg = {.search_path = "",
                               .flags =
                                   FYPCF_QUIET | FYPCF_COLLECT_DIAG | FYPCF_JSON_NONE,
                               .diag = diag};
    struct fy_parser *parser = fy_parser_create(&cfg);
    int r = parser && fy_parser_set_string(parser, text, len) == 0
                ? read_events(rd, parser, diag)
                : out_of_memory(rd);
    fy_parser_destroy(parser);
    fy_diag_destroy(diag);
    free(rd->key.text);
    return r;
}

/* Checks for what YAML allows: UTF-8 without control characters. */
static int check_bytes(struct reader *rd, const char *text, size_t len)
{
    size_t bad = utf8_bad(text, len);

    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (i == bad)
            return refuse(rd, -EINVAL, "byte 0x%02x is not UTF-8", c);
        if (c == 0x7f || (c < 0x20 && c != '\t' && c != '\n' && c != '\r'))
            return refuse(rd, -EINVAL, "control character 0x%02x", c);
        rd->line += c == '\n';
        rd->column = c == '\n' ? 1 : rd->column + 1;
    }
    return 0;
}

static int read_text(const char *name, const char *text, size_t len, bool hidden,
                     struct yaml **ret, uw_error *err)
{
    auto_(yaml_free) struct yaml *doc = calloc(1, sizeof *doc);

    if (doc)
        doc->name = strdup(name);
    if (!doc || !doc->name)
        return fail(err, -ENOMEM, "%s: out of memory", name);
    if (len > YAML_MAX_BYTES)
        return fail(err, -EFBIG, "%s: larger than %d bytes", name, YAML_MAX_BYTES);

    doc->hidden = hidden;
    struct reader rd = {.doc = doc, .line = 1, .column = 1, .err = err};
    int r = check_bytes(&rd, text, len);
    if (r < 0)
        return r;
    rd.line = rd.column = 1;
    r = parse(&rd, text, len);
    if (r < 0)
        return r;
    if (!doc->root || (doc->root->kind == YAML_SCALAR && !*doc->root->text)) {
        rd.depth = 0;
        r = new_node(&rd, YAML_MAP, NULL);
        if (r < 0)
            return r;
    }
    *ret = take(doc);
    return 0;
}

int yaml_read(const char *name, const char *text, size_t len, struct yaml **ret,
              uw_error *err)
{
    return read_text(name, text, len, false, ret, err);
}

int yaml_read_hidden(const char *name, const char *text, size_t len, struct yaml **ret,
                     uw_error *err)
{
    return read_text(name, text, len, true, ret, err);
}

int yaml_read_file(const char *path, struct yaml **ret, uw_error *err)
{
    auto_(mem_free) char *text = NULL;
    size_t len;
    int r = file_read(path, YAML_MAX_BYTES, &text, &len, err);

    return r < 0 ? r : read_text(path, text, len, file_hides(), ret, err);
}

int yaml_read_shown(const char *path, struct yaml **ret, bool *ret_hidden, uw_error *err)
{
    auto_(mem_free) char *text = NULL;
    size_t len;

    *ret_hidden = false;
    int r = file_read_shown(path, YAML_MAX_BYTES, &text, &len, ret_hidden, err);
    return r < 0 ? r : read_text(path, text, len, *ret_hidden, ret, err);
}

/* ---- the tree ---- */

const struct yaml_node *yaml_root(const struct yaml *doc)
{
    return doc->root;
}

enum yaml_kind yaml_kind(const struct yaml_node *node)
{
    return node->kind;
}

unsigned yaml_line(const struct yaml_node *node)
{
    return node->line;
}

size_t yaml_count(const struct yaml_node *node)
{
    return node->n;
}

const struct yaml_node *yaml_at(const struct yaml_node *node, size_t i)
{
    return i < node->n ? node->items[i] : NULL;
}

const char *yaml_key_at(const struct yaml_node *node, size_t i)
{
    return node->kind == YAML_MAP && i < node->n ? node->keys[i].text : NULL;
}

const struct yaml_node *yaml_get(const struct yaml_node *node, const char *key)
{
    if (node->kind != YAML_MAP)
        return NULL;
    for (size_t i = 0; i < node->n; i++)
        if (strcmp(node->keys[i].text, key) == 0)
            return node->items[i];
    return NULL;
}

const char *yaml_raw(const struct yaml_node *node)
{
    return node->text;
}

const char *yaml_keys_of(const struct yaml_node *node, char ret[YAML_KEYS])
{
    const char *between = ": ";
    char rest[YAML_KEYS];

    ret[0] = '\0';
    for (; node && node->key; node = node->parent) {
        memcpy(rest, ret, sizeof rest);
        if (snprintf(ret, YAML_KEYS, "%.60s%s%s", node->key, between, rest) >= YAML_KEYS)
            return memcpy(ret, rest, sizeof rest);
        between = ".";
    }
    return ret;
}

struct yaml_place yaml_place(const struct yaml_node *node)
{
    const struct yaml *doc = node->doc;

    return (struct yaml_place){doc->name, node->line, node->column, doc->hidden};
}

struct yaml_place yaml_place_of_key(const struct yaml_node *map, size_t i)
{
    struct yaml_place at = yaml_place(map);

    at.line = map->keys[i].line;
    at.column = map->keys[i].column;
    return at;
}
