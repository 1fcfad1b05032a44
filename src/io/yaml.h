/* Strict reading of YAML files: a tree that knows its lines, so that every error begins
 * with "machine.yaml:12: ".  Refused: anchors, aliases, merge keys, tags, duplicate keys,
 * keys that are not plain text, a second document, more than YAML_MAX_BYTES, …_NODES,
 * …_DEPTH or …_KEYS.
 */
#ifndef IO_YAML_H
#define IO_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "underwatt/error.h"

enum {
    YAML_MAX_BYTES = 1 << 20,
    YAML_MAX_NODES = 100000,
    YAML_MAX_DEPTH = 32,
    YAML_MAX_KEYS = 1000, /* of one map */
};

struct yaml;      /* a document; owns all its nodes */
struct yaml_node; /* borrowed: lives as long as its document */

enum yaml_kind {
    YAML_SCALAR,
    YAML_SEQ,
    YAML_MAP,
};

/* name: the file in errors.  An empty document's root is an empty map.  -EINVAL, -EFBIG
 * (too large, too many nodes, too deep), -ENOMEM, or open's and read's -errno.
 */
int yaml_read(const char *name, const char *text, size_t len, struct yaml **ret,
              uw_error *err);
/* The same for a text that readers of the errors need not be allowed to read: errors give
 * "machine.yaml:12: column 5: " and the fault, without the text ("unknown key '…'").
 */
int yaml_read_hidden(const char *name, const char *text, size_t len, struct yaml **ret,
                     uw_error *err);
/* The path is the name in errors.  Hidden where file_hides() says so. */
int yaml_read_file(const char *path, struct yaml **ret, uw_error *err);
/* The same, before this process has threads: what every user may read is shown
 * (file_read_shown()).  *ret_hidden: whether it is not, also on failure; then
 * yaml_not_shown() says so once the document is refused.
 */
int yaml_read_shown(const char *path, struct yaml **ret, bool *ret_hidden, uw_error *err);
/* Says in *err, which has a line, why the line is short.  Returns r. */
int yaml_not_shown(int r, uw_error *err);
void yaml_free(struct yaml *doc);
DEFINE_AUTO(struct yaml *, yaml_free);

const struct yaml_node *yaml_root(const struct yaml *doc);
enum yaml_kind yaml_kind(const struct yaml_node *node);
unsigned yaml_line(const struct yaml_node *node);

/* Items of a sequence or values of a map, in the file's order; 0 for a scalar. */
size_t yaml_count(const struct yaml_node *node);
/* NULL when i is out of range. */
const struct yaml_node *yaml_at(const struct yaml_node *node, size_t i);
/* The i-th key of a map; NULL for other nodes. */
const char *yaml_key_at(const struct yaml_node *node, size_t i);
/* The value of a key; NULL when node is not a map or has no such key. */
const struct yaml_node *yaml_get(const struct yaml_node *node, const char *key);

/* fail() with "FILE:LINE: " in front.  Where the text is hidden, arguments of the format
 * are left out: put important words into the format itself.
 */
int yaml_fail(const struct yaml_node *node, uw_error *err, int r, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same with the line of the i-th key of a map. */
int yaml_fail_key(const struct yaml_node *map, size_t i, uw_error *err, int r,
                  const char *format, ...) __attribute__((format(printf, 5, 6)));

/* 0, or -EINVAL with a text that names the kind of the node. */
int yaml_want(const struct yaml_node *node, enum yaml_kind kind, uw_error *err);
/* 0 where the path of this key of the map is left out (NULL), or absolute and of at most
 * max bytes; else -EINVAL.
 */
int yaml_check_path(const struct yaml_node *map, const char *key, const char *path,
                    size_t max, uw_error *err);
/* Checks that each key of the map is one of keys (ends with NULL), else -EINVAL. */
int yaml_check_keys(const struct yaml_node *map, const char *const *keys, uw_error *err);

/* Scalars, through base/units.h.  -EINVAL or -ERANGE with FILE:LINE; *ret changes on
 * success only.  Units are part of the text: "300 W", "32 ms"; numbers may be quoted.
 */
int yaml_text(const struct yaml_node *node, const char **ret,
              uw_error *err); /* borrowed */
int yaml_u64(const struct yaml_node *node, uint64_t *ret, uw_error *err);
int yaml_double(const struct yaml_node *node, double *ret, uw_error *err);
int yaml_bool(const struct yaml_node *node, bool *ret, uw_error *err); /* true, false */
int yaml_power(const struct yaml_node *node, uint32_t *ret_mw, uw_error *err);
int yaml_duration(const struct yaml_node *node, uint64_t *ret_ns, uw_error *err);
/* With lowest and highest allowed; -ERANGE names them. */
int yaml_u64_in(const struct yaml_node *node, uint64_t min, uint64_t max, uint64_t *ret,
                uw_error *err);

struct yaml_word {
    const char *word; /* NULL ends the table */
    int value;
};
/* One of the words, else -EINVAL with the list of them. */
int yaml_word(const struct yaml_node *node, const struct yaml_word *words, int *ret,
              uw_error *err);

/* Reads a map by a table into a struct: unknown keys are errors, absent ones leave the
 * field unchanged, or fail where `must` is set.
 */
enum yaml_type {
    YAML_TYPE_TEXT = 1, /* const char *, borrowed from the document */
    YAML_TYPE_U64,      /* uint64_t */
    YAML_TYPE_DOUBLE,   /* double */
    YAML_TYPE_BOOL,     /* bool */
    YAML_TYPE_POWER,    /* uint32_t, mW */
    YAML_TYPE_DURATION, /* uint64_t, ns */
    YAML_TYPE_WORD,     /* int, from words */
    YAML_TYPE_NODE,     /* const struct yaml_node *, for the caller to read */
};
struct yaml_key {
    const char *key; /* NULL ends the table */
    enum yaml_type type;
    size_t offset; /* of the field in the struct */
    bool must;
    double min, max; /* of U64, DOUBLE (as it is), POWER (W), DURATION (s); both 0: any */
    const struct yaml_word *words;
};
/* On failure some fields of *ret may have changed: read into a copy. */
int yaml_read_map(const struct yaml_node *map, const struct yaml_key *keys, void *ret,
                  uw_error *err);

#endif
