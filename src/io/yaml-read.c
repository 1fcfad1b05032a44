/* Values from a YAML tree: scalars with units, ranges, words, whole maps. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/nearest.h"
#include "base/units.h"
#include "io/yaml-inside.h"

/* The error of a parser of base/units.h, preceded by place and key.  That error shows
 * the value; if values are hidden, the error names the expected form instead.
 */
static int placed(const struct yaml_node *node, const char *wanted, uw_error *err, int r)
{
    const struct yaml_place at = yaml_place(node);

    char keys[YAML_KEYS];

    if (r >= 0)
        return r;
    size_t len = strlen(yaml_keys_of(node, keys));
    if (len > 0 && !at.hidden) /* without the ": " */
        return fail_in(err, r, "%s:%u: %.*s", at.name, at.line, (int)len - 2, keys);
    return at.hidden ? fail(err, r, "%s:%u: column %u: this is not %s", at.name, at.line,
                            at.column, wanted)
                     : fail_in(err, r, "%s:%u", at.name, at.line);
}

int yaml_want(const struct yaml_node *node, enum yaml_kind kind, uw_error *err)
{
    static const char *const names[] = {"a value", "a list", "a map of keys"};
    const char *is = names[yaml_kind(node)];

    if (yaml_kind(node) == kind)
        return 0;
    switch (kind) { /* the format names the expected kind: yaml_fail() */
    case YAML_SCALAR:
        return yaml_fail_value(node, err, -EINVAL, "a value is wanted here, not %s", is);
    case YAML_SEQ:
        return yaml_fail_value(node, err, -EINVAL, "a list is wanted here, not %s", is);
    default:
        return yaml_fail_value(node, err, -EINVAL, "a map of keys is wanted here, not %s",
                               is);
    }
}

int yaml_text(const struct yaml_node *node, const char **ret, uw_error *err)
{
    int r = yaml_want(node, YAML_SCALAR, err);

    if (r >= 0)
        *ret = yaml_raw(node);
    return r;
}

int yaml_u64(const struct yaml_node *node, uint64_t *ret, uw_error *err)
{
    int r = yaml_want(node, YAML_SCALAR, err);

    return r < 0 ? r
                 : placed(node, "a whole number from 0", err,
                          parse_u64(yaml_raw(node), ret, err));
}

int yaml_double(const struct yaml_node *node, double *ret, uw_error *err)
{
    int r = yaml_want(node, YAML_SCALAR, err);

    return r < 0 ? r
                 : placed(node, "a number", err, parse_double(yaml_raw(node), ret, err));
}

int yaml_power(const struct yaml_node *node, uint32_t *ret_mw, uw_error *err)
{
    int r = yaml_want(node, YAML_SCALAR, err);

    return r < 0 ? r
                 : placed(node, "a power with its unit, as in 300 W", err,
                          parse_power(yaml_raw(node), ret_mw, err));
}

int yaml_duration(const struct yaml_node *node, uint64_t *ret_ns, uw_error *err)
{
    int r = yaml_want(node, YAML_SCALAR, err);

    return r < 0 ? r
                 : placed(node, "a time with its unit, as in 5 s", err,
                          parse_duration(yaml_raw(node), ret_ns, err));
}

int yaml_bool(const struct yaml_node *node, bool *ret, uw_error *err)
{
    static const struct yaml_word words[] = {{"false", 0}, {"true", 1}, {NULL, 0}};
    int value = 0;
    int r = yaml_word(node, words, &value, err);

    if (r >= 0)
        *ret = value == 1;
    return r;
}

int yaml_u64_in(const struct yaml_node *node, uint64_t min, uint64_t max, uint64_t *ret,
                uw_error *err)
{
    uint64_t v;
    int r = yaml_u64(node, &v, err);

    if (r < 0)
        return r;
    if (v < min || v > max)
        return yaml_fail_value(node, err, -ERANGE, "%ju is outside %ju..%ju",
                               (uintmax_t)v, (uintmax_t)min, (uintmax_t)max);
    *ret = v;
    return 0;
}

/* Lists "a, b, c" as far as it fits. */
static void list_words(const struct yaml_word *words, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; words[i].word && used < size; i++) {
        int n =
            snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "", words[i].word);
        used += n > 0 ? (size_t)n : 0;
    }
}

int yaml_word(const struct yaml_node *node, const struct yaml_word *words, int *ret,
              uw_error *err)
{
    char list[120], hint[NEAREST_TEXT];
    int r = yaml_want(node, YAML_SCALAR, err);

    if (r < 0)
        return r;
    for (size_t i = 0; words[i].word; i++)
        if (strcmp(words[i].word, yaml_raw(node)) == 0) {
            *ret = words[i].value;
            return 0;
        }
    struct nearest near = {0};
    for (size_t i = 0; words[i].word; i++)
        nearest_try(&near, yaml_raw(node), strlen(yaml_raw(node)), words[i].word);
    list_words(words, list, sizeof list);
    const struct yaml_place at = yaml_place(node);
    if (at.hidden) /* the words come from the table */
        return fail(err, -EINVAL, "%s:%u: column %u: this is none of: %s", at.name,
                    at.line, at.column, list);
    return yaml_fail_value(node, err, -EINVAL, "'%.40s' is none of: %s%s", yaml_raw(node),
                           list, nearest_text(&near, hint));
}

/* ---- maps ---- */

/* near: a similar known key. */
static int unknown_key(const struct yaml_node *map, size_t i, const struct nearest *near,
                       uw_error *err)
{
    const char *key = yaml_key_at(map, i);

    if (near->word && !yaml_place_of_key(map, i).hidden)
        return yaml_fail_key(map, i, err, -EINVAL,
                             "unknown key '%.60s': did you mean '%s'?", key, near->word);
    return yaml_fail_key(map, i, err, -EINVAL, "unknown key '%.60s'", key);
}

int yaml_check_keys(const struct yaml_node *map, const char *const *keys, uw_error *err)
{
    int r = yaml_want(map, YAML_MAP, err);

    for (size_t i = 0; r >= 0 && i < yaml_count(map); i++) {
        const char *key = yaml_key_at(map, i);
        struct nearest near = {0};
        size_t k = 0;
        for (; keys[k] && strcmp(keys[k], key) != 0; k++)
            nearest_try(&near, key, strlen(key), keys[k]);
        if (!keys[k])
            r = unknown_key(map, i, &near, err);
    }
    return r;
}

/* The key's name is from the table, so it is shown for every file. */
static int missing(const struct yaml_node *map, const char *key, uw_error *err)
{
    const struct yaml_place at = yaml_place(map);

    return fail(err, -EINVAL, "%s:%u: key '%s' is missing", at.name, at.line, key);
}

/* The field's value v, in the unit of its range. */
static int in_range(const struct yaml_node *node, const struct yaml_key *key, double v,
                    const char *unit, uw_error *err)
{
    if ((key->min == 0 && key->max == 0) || (v >= key->min && v <= key->max))
        return 0;
    return yaml_fail_value(node, err, -ERANGE, "%g%s is outside %g..%g%s", v, unit,
                           key->min, key->max, unit);
}

static int read_number(const struct yaml_node *node, const struct yaml_key *key,
                       void *field, uw_error *err)
{
    uint64_t u;
    uint32_t mw;
    double d;
    int r;

    switch (key->type) {
    case YAML_TYPE_U64:
        r = yaml_u64(node, &u, err);
        if (r >= 0)
            r = in_range(node, key, (double)u, "", err);
        if (r >= 0)
            memcpy(field, &u, sizeof u);
        return r;
    case YAML_TYPE_DOUBLE:
        r = yaml_double(node, &d, err);
        if (r >= 0)
            r = in_range(node, key, d, "", err);
        if (r >= 0)
            memcpy(field, &d, sizeof d);
        return r;
    case YAML_TYPE_POWER:
        r = yaml_power(node, &mw, err);
        if (r >= 0)
            r = in_range(node, key, w_of_mw(mw), " W", err);
        if (r >= 0)
            memcpy(field, &mw, sizeof mw);
        return r;
    default:
        r = yaml_duration(node, &u, err);
        if (r >= 0)
            r = in_range(node, key, s_of_ns(u), " s", err);
        if (r >= 0)
            memcpy(field, &u, sizeof u);
        return r;
    }
}

static int read_field(const struct yaml_node *node, const struct yaml_key *key,
                      void *field, uw_error *err)
{
    switch (key->type) {
    case YAML_TYPE_TEXT:
        return yaml_text(node, field, err);
    case YAML_TYPE_BOOL:
        return yaml_bool(node, field, err);
    case YAML_TYPE_WORD:
        return yaml_word(node, key->words, field, err);
    case YAML_TYPE_NODE:
        memcpy(field, &node, sizeof node);
        return 0;
    default:
        return read_number(node, key, field, err);
    }
}

int yaml_read_map(const struct yaml_node *map, const struct yaml_key *keys, void *ret,
                  uw_error *err)
{
    int r = yaml_want(map, YAML_MAP, err);

    for (size_t i = 0; r >= 0 && i < yaml_count(map); i++) {
        const char *key = yaml_key_at(map, i);
        struct nearest near = {0};
        const struct yaml_key *k = keys;
        for (; k->key && strcmp(k->key, key) != 0; k++)
            nearest_try(&near, key, strlen(key), k->key);
        if (!k->key)
            return unknown_key(map, i, &near, err);
        r = read_field(yaml_at(map, i), k, (char *)ret + k->offset, err);
    }
    for (const struct yaml_key *k = keys; r >= 0 && k->key; k++)
        if (k->must && !yaml_get(map, k->key))
            r = missing(map, k->key, err);
    return r;
}
