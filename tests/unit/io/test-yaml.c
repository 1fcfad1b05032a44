#include "io/yaml.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "tap.h"

/* clang-format off */
static const struct { const char *name, *text; int r; const char *says; } documents[] = {
    {"nothing", "", 0, ""},
    {"a comment alone", "# nothing\n", 0, ""},
    {"a map", "a: 1\nb: [1, 2]\nc: {d: e}\n", 0, ""},
    {"JSON", "{\"a\": [1, 2.5, true, null]}", 0, ""},
    {"a duplicate key", "a: 1\nb: 2\na: 3\n", -EINVAL, "f.yaml:3: key 'a' is already set on line 1"},
    {"an anchor", "a: &x 1\nb: 2\n", -EINVAL, "f.yaml:1: anchors (&) and aliases (*) are not understood here"},
    {"an alias", "\na: *x\n", -EINVAL, "f.yaml:2: anchors (&) and aliases (*) are not understood here"},
    {"an anchored list", "a: &x [1]\n", -EINVAL, "f.yaml:1: anchors (&) and aliases (*) are not understood here"},
    {"an anchored map", "a: &x {b: 1}\n", -EINVAL, "f.yaml:1: anchors (&) and aliases (*) are not understood here"},
    {"a merge key", "a:\n  <<: {b: 1}\n", -EINVAL, "f.yaml:2: merge keys (<<) are not understood here"},
    {"a tag", "a: !!str 1\n", -EINVAL, "f.yaml:1: tags (!) are not understood here"},
    {"a list as a key", "a: 1\n[b]: 1\n", -EINVAL, "f.yaml:2: a key must be plain text"},
    {"a map as a key", "? {b: 1}\n: 1\n", -EINVAL, "f.yaml:1: a key must be plain text"},
    {"a second document", "a: 1\n---\nb: 1\n", -EINVAL, "f.yaml:2: a second document"},
    {"an open list", "a: 1\nb: [1, 2\nc: 3\n", -EINVAL, "f.yaml:"},
    {"a tab", "a:\n\tb: 1\n", -EINVAL, "f.yaml:2: "},
    {"an open quote", "a: \"b\n", -EINVAL, "f.yaml:1: "},
    {"a NUL by escape", "a: \"b\\0c\"\n", -EINVAL, "f.yaml:1: a NUL byte in a text"},
    {"no UTF-8", "a: \xff\xfe\n", -EINVAL, "f.yaml:1"},
    {"a control character", "a: b\n\x01", -EINVAL, "f.yaml:2: control character 0x01"},
    {"too deep", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", -EFBIG, "f.yaml:1: nested deeper than 32"},
    {"as deep as may be", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", 0, ""},
};
/* clang-format on */

static void read_documents(void)
{
    for (size_t i = 0; i < n_elements(documents); i++) {
        struct yaml *doc = NULL;
        uw_error err = {""};
        int r =
            yaml_read("f.yaml", documents[i].text, strlen(documents[i].text), &doc, &err);
        bool says =
            strncmp(err.text, documents[i].says, strlen(documents[i].says)) == 0 &&
            (r < 0) == (err.text[0] != '\0');
        if (!ok(r == documents[i].r && (r == 0) == (doc != NULL) && says, "%s: %d",
                documents[i].name, r))
            printf("# %d: %s\n", r, err.text);
        yaml_free(doc);
    }
}

static void bounds(void)
{
    struct yaml *doc = NULL;
    uw_error err = {""};
    size_t size = YAML_MAX_BYTES + 1;
    auto_(mem_free) char *text = calloc(1, size + 1);

    if (!ok(text != NULL, "memory"))
        return;
    memset(text, '#', size);
    ok(yaml_read("f", text, size, &doc, &err) == -EFBIG && !doc, "too large: %s",
       err.text);
    ok(yaml_read("f", text, size - 1, &doc, NULL) == 0, "as large as may be");
    yaml_free(take(doc));
    text[0] = '[';
    for (size_t i = 1; i < 2 * YAML_MAX_NODES + 9; i += 2) {
        text[i] = '1';
        text[i + 1] = ',';
    }
    ok(yaml_read("f", text, 2 * YAML_MAX_NODES + 9, &doc, &err) == -EFBIG && !doc,
       "too many values: %s", err.text);
    size_t n = 0;
    for (unsigned i = 0; i <= YAML_MAX_KEYS; i++)
        n += (size_t)snprintf(text + n, size - n, "k%u: 1\n", i);
    ok(yaml_read("f", text, n, &doc, &err) == -EFBIG && strstr(err.text, "f:1001: "),
       "too many keys: %s", err.text);
    ok(yaml_read_file("/no/such/file", &doc, &err) == -ENOENT &&
           strncmp(err.text, "/no/such/file: ", 15) == 0,
       "a file that is not there: %s", err.text);
}

static void tree(void)
{
    static const char text[] = "# a machine\n"
                               "boards:\n"
                               "  - type: v100\n"
                               "    count: 4\n"
                               "  - {type: \"rtx 6000\", count: 2}\n"
                               "empty:\n"
                               "text: >\n"
                               "  two\n"
                               "  lines\n";
    auto_(yaml_free) struct yaml *doc = NULL;
    const char *value = NULL;

    if (!ok(yaml_read("m", text, strlen(text), &doc, NULL) == 0, "a tree"))
        return;
    const struct yaml_node *root = yaml_root(doc), *boards = yaml_get(root, "boards");
    ok(yaml_kind(root) == YAML_MAP && yaml_count(root) == 3, "three keys");
    is_str(yaml_key_at(root, 1), "empty", "the second key");
    ok(!yaml_key_at(root, 3) && !yaml_at(root, 3) && !yaml_get(root, "none"),
       "no fourth");
    ok(yaml_kind(boards) == YAML_SEQ && yaml_count(boards) == 2 &&
           yaml_line(boards) == 3 && !yaml_key_at(boards, 0) && !yaml_get(boards, "type"),
       "a list");
    const struct yaml_node *second = yaml_at(boards, 1);
    ok(yaml_text(yaml_get(second, "type"), &value, NULL) == 0, "a text");
    is_str(value, "rtx 6000", "quoted");
    is_int(yaml_line(yaml_get(second, "count")), 5, "its line");
    ok(yaml_text(yaml_get(root, "empty"), &value, NULL) == 0 && *value == '\0',
       "empty text");
    ok(yaml_text(yaml_get(root, "text"), &value, NULL) == 0, "folded");
    is_str(value, "two lines\n", "folded text");
    ok(yaml_count(yaml_get(root, "text")) == 0, "a scalar has no items");
}

struct board {
    const char *name;
    uint64_t count;
    double gain;
    bool shared;
    uint32_t limit_mw;
    uint64_t latency_ns;
    int type;
    const struct yaml_node *faults;
};
static const struct yaml_word types[] = {{"v100", 1}, {"a100", 2}, {NULL, 0}};
/* clang-format off */
static const struct yaml_key keys[] = {
    {"name", YAML_TYPE_TEXT, offsetof(struct board, name), true, 0, 0, NULL},
    {"count", YAML_TYPE_U64, offsetof(struct board, count), false, 1, 64, NULL},
    {"gain", YAML_TYPE_DOUBLE, offsetof(struct board, gain), false, 0.5, 2, NULL},
    {"shared", YAML_TYPE_BOOL, offsetof(struct board, shared), false, 0, 0, NULL},
    {"limit", YAML_TYPE_POWER, offsetof(struct board, limit_mw), false, 50, 1000, NULL},
    {"latency", YAML_TYPE_DURATION, offsetof(struct board, latency_ns), false, 0, 1, NULL},
    {"type", YAML_TYPE_WORD, offsetof(struct board, type), false, 0, 0, types},
    {"faults", YAML_TYPE_NODE, offsetof(struct board, faults), false, 0, 0, NULL},
    {NULL, 0, 0, false, 0, 0, NULL},
};
static const struct { const char *text; int r; const char *says; } maps[] = {
    {"name: a\ncount: 4\ngain: 1.5\nshared: true\nlimit: 250 W\nlatency: 32 ms\ntype: a100\nfaults: [1]\n", 0, ""},
    {"name: a\ncuont: 4\n", -EINVAL, "m.yaml:2: unknown key 'cuont': did you mean 'count'?"},
    {"name: a\n\nsub:\n  b: 1\n", -EINVAL, "m.yaml:3: unknown key 'sub'"},
    {"name: a\n\"s\\n\\e[31mb\": 1\n", -EINVAL, "m.yaml:2: unknown key 's??[31mb'"},
    {"count: 4\n", -EINVAL, "m.yaml:1: key 'name' is missing"},
    {"", -EINVAL, "m.yaml:1: key 'name' is missing"},
    {"- name\n", -EINVAL, "m.yaml:1: a map of keys is wanted here, not a list"},
    {"name: [a]\n", -EINVAL, "m.yaml:1: name: a value is wanted here, not a list"},
    {"name: a\ncount: {b: 1}\n", -EINVAL, "m.yaml:2: count: a value is wanted here, not a map of keys"},
    {"name: a\ncount: four\n", -EINVAL, "m.yaml:2: count: 'four' is not a whole number"},
    {"name: a\ncount:\n", -EINVAL, "m.yaml:2: count: '' is not a whole number"},
    {"name: a\ncount: 65\n", -ERANGE, "m.yaml:2: count: 65 is outside 1..64"},
    {"name: a\ngain: 0.1\n", -ERANGE, "m.yaml:2: gain: 0.1 is outside 0.5..2"},
    {"name: a\nshared: yes\n", -EINVAL, "m.yaml:2: shared: 'yes' is none of: false, true"},
    {"name: a\nlimit: 300\n", -EINVAL, "m.yaml:2: limit: '300' has no unit"},
    {"name: a\nlimit: 30 W\n", -ERANGE, "m.yaml:2: limit: 30 W is outside 50..1000 W"},
    {"name: a\nlatency: 2 s\n", -ERANGE, "m.yaml:2: latency: 2 s is outside 0..1 s"},
    {"name: a\ntype: a10\n", -EINVAL, "m.yaml:2: type: 'a10' is none of: v100, a100: did you mean 'a100'?"},
    {"name: a\ntype: h100\n", -EINVAL, "m.yaml:2: type: 'h100' is none of: v100, a100"},
};
/* clang-format on */

static void read_maps(void)
{
    for (size_t i = 0; i < n_elements(maps); i++) {
        auto_(yaml_free) struct yaml *doc = NULL;
        struct board b = {.name = "x", .count = 77};
        uw_error err = {""};
        int r = yaml_read("m.yaml", maps[i].text, strlen(maps[i].text), &doc, &err);
        if (!ok(r == 0, "document %zu", i))
            continue;
        r = yaml_read_map(yaml_root(doc), keys, &b, &err);
        if (!ok(r == maps[i].r &&
                    strncmp(err.text, maps[i].says, strlen(maps[i].says)) == 0 &&
                    (r == 0) == (err.text[0] == '\0'),
                "map %zu: %s", i, maps[i].says))
            printf("# %d: %s\n", r, err.text);
        if (r == 0) {
            ok(strcmp(b.name, "a") == 0 && b.count == 4 && b.shared && b.type == 2,
               "fields");
            ok(b.limit_mw == 250000 && b.latency_ns == 32000000 && b.faults,
               "quantities");
            is_near(b.gain, 1.5, 0, "a double");
        } else {
            ok(b.count == 77 || strstr(maps[i].text, "count: 4"),
               "a bad count is not kept");
        }
    }
}

static void single_values(void)
{
    static const char text[] = "a: 5\nb: x\nc: -1.5\n";
    static const char *const known[] = {"a", "b", "c", NULL}, *const few[] = {"a", "c",
                                                                              NULL};
    auto_(yaml_free) struct yaml *doc = NULL;
    uint64_t u = 77;
    uw_error err = {""};

    if (!ok(yaml_read("s", text, strlen(text), &doc, NULL) == 0, "a document"))
        return;
    const struct yaml_node *root = yaml_root(doc);
    ok(yaml_check_keys(root, known, &err) == 0, "all keys known");
    ok(yaml_check_keys(root, few, &err) == -EINVAL, "one is not");
    is_str(err.text, "s:2: unknown key 'b'", "named");
    ok(yaml_u64_in(yaml_get(root, "a"), 1, 4, &u, &err) == -ERANGE && u == 77,
       "out of range");
    is_str(err.text, "s:1: a: 5 is outside 1..4", "named with its range");
    ok(yaml_u64_in(yaml_get(root, "a"), 1, 5, &u, &err) == 0 && u == 5, "in range");
    ok(yaml_fail(yaml_get(root, "c"), &err, -EDOM, "bad %s", "sign") == -EDOM,
       "own words");
    is_str(err.text, "s:3: bad sign", "with the place");
}

/* Of a hidden text no error shows anything: "secret" and 4711 stand wherever one may. */
/* clang-format off */
static const struct { const char *text, *says; } hidden[] = {
    {"secret:*:20228:0:99999:7:::\n", "h:1: column 1: unknown key '…'"},
    {"secret\n", "h:1: column 1: a map of keys is wanted here, not …"},
    {"- secret\n", "h:1: column 1: a map of keys is wanted here, not …"},
    {"name: a\nsecret: 4711\n", "h:2: column 1: unknown key '…'"},
    {"name: a\n  secret: 4711\n", "h:1: column 7: not YAML"},
    {"name: a\nsecret: 1\nsecret: 2\n", "h:3: column 1: key '…' is already set on line …"},
    {"name: a\nsecret: *secret\n", "h:2: column 10: anchors (&) and aliases (*) are not understood here"},
    {"name: a\nsecret: !secret 1\n", "h:2: column 17: tags (!) are not understood here"},
    {"name: \"secret\n", "h:1:"},
    {"name: {secret\n", "h:"},
    {"name: secret\x01\n", "h:1: column 13: control character 0x…"},
    {"name: secret\xff\n", "h:1: column 13: byte 0x… is not UTF-8"},
    {"name: [secret]\n", "h:1: column 7: a value is wanted here, not …"},
    {"name: a\ncount: secret\n", "h:2: column 8: this is not a whole number from 0"},
    {"name: a\ncount: 4711\n", "h:2: column 8: … is outside …..…"},
    {"name: a\ngain: secret\n", "h:2: column 7: this is not a number"},
    {"name: a\ngain: 4711\n", "h:2: column 7: … is outside …..…"},
    {"name: a\nshared: secret\n", "h:2: column 9: this is none of: false, true"},
    {"name: a\nlimit: 4711\n", "h:2: column 8: this is not a power with its unit, as in 300 W"},
    {"name: a\nlimit: 4711 W\n", "h:2: column 8: … is outside …..…"},
    {"name: a\nlatency: secret\n", "h:2: column 10: this is not a time with its unit, as in 5 s"},
    {"name: a\ntype: secret\n", "h:2: column 7: this is none of: v100, a100"},
    {"name: a\nfaults: secret\n", "h:2: column 9: this value is refused"},
};
/* clang-format on */

static int read_hidden(const char *text, uw_error *err)
{
    auto_(yaml_free) struct yaml *doc = NULL;
    struct board b = {.name = "x"};
    int r = yaml_read_hidden("h", text, strlen(text), &doc, err);

    if (r == 0)
        r = yaml_read_map(yaml_root(doc), keys, &b, err);
    if (r == 0 && b.faults) /* as callers do that have been told why by another */
        r = yaml_fail(b.faults, err, -EINVAL, "%s", "secret");
    return r;
}

static void hidden_texts(void)
{
    for (size_t i = 0; i < n_elements(hidden); i++) {
        uw_error err = {""};
        int r = read_hidden(hidden[i].text, &err);
        ok(r < 0 && !strstr(err.text, "secret") && !strstr(err.text, "4711") &&
               strncmp(err.text, hidden[i].says, strlen(hidden[i].says)) == 0,
           "hidden %zu: %s", i, err.text);
    }
}

/* Formats with all that stands for arguments left out. */
static void words(void)
{
    auto_(yaml_free) struct yaml *doc = NULL;
    uw_error err = {""};

    if (!ok(yaml_read_hidden("w", "a: 1\n", 5, &doc, NULL) == 0, "a document"))
        return;
    const struct yaml_node *root = yaml_root(doc);
    (void)yaml_fail(root, &err, -EINVAL, "%s: %d %% of %-5.3s, %*d%s|%zu", "k", 1, "b", 3,
                    4, "c", (size_t)5);
    is_str(err.text, "w:1: column 1: … % of …, …|…", "conversions of all kinds");
    (void)yaml_fail(root, &err, -EINVAL, "range: %s", "secret");
    is_str(err.text, "w:1: column 1: range: this value is refused", "one at the end");
    (void)yaml_fail(root, &err, -EINVAL, "%s is declared twice", "secret");
    is_str(err.text, "w:1: column 1: … is declared twice", "one at the beginning");
    (void)yaml_fail_key(root, 0, &err, -EINVAL, "unknown key '%.40s%s%.60s'%s", "a", ".",
                        "b", ": did you mean 'c'?");
    is_str(err.text, "w:1: column 1: unknown key '…'", "three and a hint");
    (void)yaml_fail_key(root, 0, &err, -EINVAL, "%.3f", 1.5);
    is_str(err.text, "w:1: column 1: this value is refused", "nothing but an argument");
}

int main(void)
{
    hidden_texts();
    words();
    read_documents();
    bounds();
    tree();
    read_maps();
    single_values();
    return done();
}
