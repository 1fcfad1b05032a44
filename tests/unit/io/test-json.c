#include "io/json.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/utf8.h"
#include "io/file.h"
#include "tap.h"

static void document(struct json_out *o)
{
    json_out_object(o, NULL);
    json_out_bool(o, "simulated", true);
    json_out_text(o, "board", "a \"b\"\\\n\t\x01 \xc3\xa4 \xff");
    json_out_text(o, "none", NULL);
    json_out_array(o, "points");
    json_out_object(o, NULL);
    json_out_int(o, "cap_mw", -250000);
    json_out_double(o, "time_s", 0.1);
    json_out_end(o);
    json_out_double(o, NULL, NAN);
    json_out_end(o);
    json_out_object(o, "empty");
    json_out_end(o);
    json_out_end(o);
}

static const char want[] =
    "{\n"
    "  \"simulated\": true,\n"
    "  \"board\": \"a \\\"b\\\"\\\\\\n\\t\\u0001 \xc3\xa4 \xef\xbf\xbd\",\n"
    "  \"none\": null,\n"
    "  \"points\": [\n"
    "    {\n"
    "      \"cap_mw\": -250000,\n"
    "      \"time_s\": 0.1\n"
    "    },\n"
    "    null\n"
    "  ],\n"
    "  \"empty\": {}\n"
    "}";
static const char want_line[] =
    "{\"simulated\": true, \"board\": \"a \\\"b\\\"\\\\\\n\\t\\u0001 \xc3\xa4 "
    "\xef\xbf\xbd\", "
    "\"none\": null, \"points\": [{\"cap_mw\": -250000, \"time_s\": 0.1}, null], "
    "\"empty\": {}}\n";

/* Objects under the root on a line, the items of its arrays on one each. */
static const char want_rows[] = "{\n"
                                "  \"totals\": {\"a\": 1, \"b\": [2, 3], \"c\": {}},\n"
                                "  \"rows\": [\n"
                                "    {\"name\": \"x\\n  ]\", \"at\": [4, {\"d\": 5}]},\n"
                                "    6\n"
                                "  ],\n"
                                "  \"none\": [],\n"
                                "  \"last\": {\"e\": 7}\n"
                                "}";

static void rows(void)
{
    auto_(json_out_free) struct json_out *o = json_out_new();
    auto_(mem_free) char *text = NULL;
    uw_error err = {""};

    json_out_object(o, NULL);
    json_out_object(o, "totals");
    json_out_int(o, "a", 1);
    json_out_array(o, "b");
    json_out_int(o, NULL, 2);
    json_out_int(o, NULL, 3);
    json_out_end(o);
    json_out_object(o, "c");
    json_out_end(o);
    json_out_end(o);
    json_out_array(o, "rows");
    json_out_object(o, NULL);
    json_out_text(o, "name", "x\n  ]");
    json_out_array(o, "at");
    json_out_int(o, NULL, 4);
    json_out_object(o, NULL);
    json_out_int(o, "d", 5);
    json_out_end(o);
    json_out_end(o);
    json_out_end(o);
    json_out_int(o, NULL, 6);
    json_out_end(o);
    json_out_array(o, "none");
    json_out_end(o);
    json_out_object(o, "last");
    json_out_int(o, "e", 7);
    json_out_end(o);
    ok(json_out_rows(o, &text, &err) == -EINVAL && !text, "not ended yet: %s", err.text);
    json_out_end(o);
    if (ok(json_out_rows(o, &text, &err) == 0, "as a table"))
        is_str(text, want_rows, "as written");
}

static void writes(void)
{
    auto_(json_out_free) struct json_out *o = json_out_new();
    auto_(mem_free) char *text = NULL;
    auto_(mem_free) char *line = NULL;
    size_t line_len = 0;
    uw_error err = {""};

    document(o);
    if (ok(json_out_string(o, &text, &err) == 0, "a document %s", err.text))
        is_str(text, want, "as written");
    FILE *file = open_memstream(&line, &line_len);
    ok(json_out_line(o, file, &err) == 0, "on one line");
    (void)fclose(file);
    is_str(line, want_line, "as written");

    char path[] = "/tmp/uw-test-json.XXXXXX";
    auto_(fd_close) int fd = mkstemp(path);
    auto_(mem_free) char *got = NULL;
    size_t len = 0;
    ok(fd >= 0 && json_out_write(o, path, &err) == 0, "into a file");
    ok(file_read(path, 4096, &got, &len, NULL) == 0 && len == sizeof want &&
           memcmp(got, want, len - 1) == 0 && got[len - 1] == '\n',
       "whole, with a newline");
    (void)unlink(path);
    ok(json_out_write(o, "/no/such/folder/x", &err) == -ENOENT, "not there: %s",
       err.text);
    FILE *full = fopen("/dev/full", "w");
    ok(full && json_out_line(o, full, &err) == -ENOSPC, "no space: %s", err.text);
    if (full)
        (void)fclose(full);
}

static void digits(void)
{
    static const struct {
        double v;
        const char *want;
    } table[] = {
        {1.0 / 3, "0.3333333"},
        {0.1 + 0.2, "0.3"},
        {1.2000000000000002, "1.2"},
        {123456789012, "123456800000"},
        {-12345678.9, "-12345680"},
        {INFINITY, "null"},
        {-0.5, "-0.5"},
        {1234.567, "1234.567"},
        {1e-9, "1e-09"},
        {1e15, "1e+15"},
    };

    for (size_t i = 0; i < n_elements(table); i++) {
        auto_(json_out_free) struct json_out *o = json_out_new();
        auto_(mem_free) char *text = NULL;
        json_out_double(o, NULL, table[i].v);
        if (ok(json_out_string(o, &text, NULL) == 0, "a number"))
            is_str(text, table[i].want, "of seven digits");
    }
}

static void counters(void)
{
    auto_(json_out_free) struct json_out *o = json_out_new();
    auto_(mem_free) char *text = NULL;

    json_out_array(o, NULL);
    json_out_counter(o, NULL, 9460800000.0016);
    json_out_counter(o, NULL, 0.1 + 0.2);
    json_out_counter(o, NULL, NAN);
    json_out_given(o, NULL, 1764302400.25);
    json_out_end(o);
    if (ok(json_out_string(o, &text, NULL) == 0, "counters"))
        is_str(text, "[\n  9460800000.002,\n  0.3,\n  null,\n  1764302400.25\n]",
               "of whole thousandths; a value as it was given");
}

static void numbers(void)
{
    /* clang-format off */
    static const struct { double v; const char *want; } table[] = {
        {0, "0"}, {1, "1"}, {-2.5, "-2.5"}, {0.1, "0.1"}, {1.0 / 3, "0.3333333333333333"},
        {0.1 + 0.2, "0.30000000000000004"}, {1e300, "1e+300"}, {INFINITY, "null"}, {-NAN, "null"},
        {300.005, "300.005"}, {1e15, "1e+15"}, {123456789012345, "123456789012345"},
    };
    /* clang-format on */
    for (size_t i = 0; i < n_elements(table); i++) {
        auto_(json_out_free) struct json_out *o = json_out_new();
        auto_(mem_free) char *text = NULL;
        json_out_exact_double(o, NULL, table[i].v);
        if (ok(json_out_string(o, &text, NULL) == 0, "a number"))
            is_str(text, table[i].want, "in the shortest form");
    }
}

/* Each misuse makes the whole fail, once, at the end. */
static void misuse_key(struct json_out *o)
{
    json_out_object(o, NULL);
    json_out_int(o, NULL, 1);
    json_out_end(o);
}
static void misuse_array(struct json_out *o)
{
    json_out_array(o, NULL);
    json_out_int(o, "a", 1);
    json_out_end(o);
}
static void misuse_open(struct json_out *o)
{
    json_out_array(o, NULL);
}
static void misuse_ends(struct json_out *o)
{
    json_out_array(o, NULL);
    json_out_end(o);
    json_out_end(o);
}
static void misuse_roots(struct json_out *o)
{
    json_out_int(o, NULL, 1);
    json_out_int(o, NULL, 1);
}
static void misuse_none(struct json_out *o)
{
    (void)o;
}
static void misuse_deep(struct json_out *o)
{
    for (int i = 0; i < 33; i++)
        json_out_array(o, NULL);
    for (int i = 0; i < 33; i++)
        json_out_end(o);
}

static void misuses(void)
{
    static const struct {
        const char *name;
        void (*run)(struct json_out *o);
    } table[] = {
        {"no key in an object", misuse_key}, {"a key in an array", misuse_array},
        {"left open", misuse_open},          {"an end too many", misuse_ends},
        {"two roots", misuse_roots},         {"nothing at all", misuse_none},
        {"too deep", misuse_deep},
    };
    for (size_t i = 0; i < n_elements(table); i++) {
        auto_(json_out_free) struct json_out *o = json_out_new();
        char *text = NULL;
        uw_error err = {""};
        table[i].run(o);
        ok(json_out_string(o, &text, &err) == -EINVAL && !text && err.text[0], "%s",
           table[i].name);
    }
    uw_error err = {""};
    document(NULL);
    ok(json_out_write(NULL, "-", &err) == -ENOMEM && err.text[0], "out of memory: %s",
       err.text);
}

static void reads(void)
{
    auto_(json_free) struct json *doc = NULL;
    struct json *none = NULL;
    const char *text = "kept";
    uint64_t u = 77;
    double d = 77;
    bool b = false;
    uw_error err = {""};

    if (!ok(json_read("f", want, sizeof want - 1, &doc, &err) == 0, "read back"))
        return;
    const struct json_value *root = json_root(doc), *points = json_get(root, "points");
    ok(json_get_bool(root, "simulated", &b, &err) == 0 && b, "a truth");
    ok(json_get_text(root, "board", &text, &err) == 0 && strncmp(text, "a \"b\"", 5) == 0,
       "a text");
    ok(json_count(points) == 2 && json_count(root) == 0 && json_count(NULL) == 0,
       "counts");
    ok(json_get_double(json_at(points, 0), "time_s", &d, &err) == 0 && d == 0.1,
       "a number");
    ok(json_get_double(json_at(points, 0), "cap_mw", &d, &err) == 0 && d == -250000,
       "whole");
    ok(!json_at(points, 2) && !json_at(NULL, 0) && !json_get(NULL, "a") &&
           !json_get(points, "a"),
       "what is not there");
    ok(json_get_u64(json_at(points, 0), "cap_mw", &u, &err) == -ERANGE && u == 77,
       "below 0: %s", err.text);
    ok(json_get_u64(json_at(points, 0), "time_s", &u, &err) == -ERANGE && u == 77,
       "not whole");
    ok(json_get_u64(root, "board", &u, &err) == -EINVAL && u == 77, "no number: %s",
       err.text);
    ok(json_get_u64(root, "none-such", &u, &err) == -ENOENT &&
           strstr(err.text, "none-such"),
       "missing: %s", err.text);
    ok(json_get_bool(root, "board", &b, &err) == -EINVAL &&
           json_get_double(root, "board", &d, &err) == -EINVAL &&
           json_get_text(root, "points", &text, &err) == -EINVAL,
       "other types");
    /* clang-format off */
    static const struct { const char *text, *says; } bad[] = {
        {"{\"a\": 1,\n \"b\": }", "f:2: "}, {"", "f:1: "}, {"{\"a\": 1, \"a\": 2}", "f:1: "},
        {"[1, 2", "f:1: "}, {"[\"\xff\"]", "f:1: "}, {"1 2", "f:1: "}, {"[1e999]", "f:1: "},
    };
    /* clang-format on */
    for (size_t i = 0; i < n_elements(bad); i++)
        ok(json_read("f", bad[i].text, strlen(bad[i].text), &none, &err) == -EINVAL &&
               !none && strncmp(err.text, bad[i].says, 5) == 0,
           "refused: %s", err.text);
    static char deep[100000];
    memset(deep, '[', sizeof deep);
    ok(json_read("f", deep, sizeof deep, &none, &err) == -EINVAL && !none, "deep");
    is_str(err.text, "f:1: nested deeper than 2048 levels", "in words");
    ok(json_read("f", "[\"\\u0000\"]", 10, &none, &err) == -EINVAL && !none, "a NUL");
    is_str(err.text, "f:1: a text has the character \\u0000", "in words");
    ok(json_read_file("/no/such", 10, &none, &err) == -ENOENT && !none, "no file");
    ok(json_read_file("/proc/self/stat", 5, &none, &err) == -EFBIG && !none, "too large");
    ok(json_read_file("/etc/passwd", 1 << 20, &none, &err) == -EINVAL && !none &&
           file_hides() == !strstr(err.text, "root"),
       "a file's text is shown without privilege alone: %s", err.text);
}

static void utf8(void)
{
    /* clang-format off */
    static const struct { const char *text; size_t bad; } table[] = {
        {"abc", 3}, {"\xc3\xa4", 2}, {"\xe2\x82\xac", 3}, {"\xf0\x9f\x98\x80", 4}, {"", 0},
        {"a\x80", 1}, {"\xc0\x80", 0}, {"\xc3", 0}, {"\xe0\x80\x80", 0}, {"\xed\xa0\x80", 0},
        {"\xf4\x90\x80\x80", 0}, {"\xf5\x80\x80\x80", 0}, {"\xf0\x80\x80\x80", 0},
        {"\xe2\x82", 0}, {"\xe2\x82x", 0}, {"\xf4\x8f\xbf\xbf", 4}, {"ab\xffz", 2},
    };
    /* clang-format on */
    for (size_t i = 0; i < n_elements(table); i++)
        is_int(utf8_bad(table[i].text, strlen(table[i].text)), table[i].bad, "UTF-8 %zu",
               i);
}

static int join(const char *key, const struct json_value *v, void *user)
{
    char *text = user;
    uint64_t n = 0;

    if (!json_as_u64(v, &n))
        return -ERANGE;
    size_t len = strlen(text);
    (void)snprintf(text + len, 64 - len, "%s=%d ", key, (int)n);
    return n == 9 ? 1 : 0;
}

static void each(void)
{
    static const struct {
        const char *text, *want;
        int r;
    } cases[] = {
        {"{\"b\": 1, \"a\": 2}", "b=1 a=2 ", 0},
        {"{}", "", 0},
        {"{\"b\": 9, \"a\": 2}", "b=9 ", 1},
        {"[1]", "", -EINVAL},
        {"{\"b\": -1}", "", -ERANGE},
        {"{\"b\": 1.0}", "", -ERANGE},
        {"{\"b\": \"1\"}", "", -ERANGE},
        {"1", "", -EINVAL},
    };

    for (size_t i = 0; i < n_elements(cases); i++) {
        auto_(json_free) struct json *doc = NULL;
        char text[64] = "";
        if (json_read("f", cases[i].text, strlen(cases[i].text), &doc, NULL) < 0)
            continue;
        int r = json_each(json_root(doc), join, text);
        ok(r == cases[i].r && strcmp(text, cases[i].want) == 0, "each key of %s: %d '%s'",
           cases[i].text, r, text);
    }
    ok(json_each(NULL, join, NULL) == -EINVAL, "no value is no object");
    uint64_t n = 7;
    ok(!json_as_u64(NULL, &n) && n == 7, "nor a number");
}

static void plain(void)
{
    /* clang-format off */
    static const struct {
        const char *name, *json, *text; /* of "a", as it is shown */
    } cases[] = {
        {"plain text", "{\"a\": \"caf\u00e9 \\u00e9 \\\\ \"}", "caf\u00e9 \u00e9 \\ "},
        {"an escape sequence", "{\"a\": \"\\u001b[2Jx\"}", "?[2Jx"},
        {"ends of lines", "{\"a\": \"a\\r\\nb\\tc\"}", "a??b?c"},
        {"DEL and C1", "{\"a\": \"\\u007f\\u009b1m\"}", "??1m"},
        {"another direction", "{\"a\": \"a\\u202eb\\u2066\"}", "a?b?"},
        {"nothing else is left", "{\"a\": \"\\u0001\"}", "?"},
        {"empty", "{\"a\": \"\"}", ""},
        {"within an array", "{\"b\": [1, [\"x\"]], \"a\": \"\\u0007\"}", "?"},
    };
    /* clang-format on */

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        auto_(json_free) struct json *doc = NULL;
        uw_error err = {""};
        const char *text = "";
        if (!ok(json_read("j", cases[i].json, strlen(cases[i].json), &doc, &err) == 0 &&
                    json_make_plain(doc) == 0,
                "%s %s", cases[i].name, err.text))
            continue;
        (void)json_get_text(json_root(doc), "a", &text, NULL);
        is_str(text, cases[i].text, cases[i].name);
    }

    static const char nested[] = "[{\"x\": [\"\\u001b\", 5, null]}, \"\\u0007\"]";
    auto_(json_free) struct json *doc = NULL;
    if (ok(json_read("j", nested, strlen(nested), &doc, NULL) == 0 &&
               json_make_plain(doc) == 0,
           "nested")) {
        const struct json_value *root = json_root(doc);
        const struct json_value *list = json_get(json_at(root, 0), "x");
        is_str(json_as_text(json_at(list, 0)), "?", "in an array of an object");
        is_str(json_as_text(json_at(root, 1)), "?", "in the outermost array");
        ok(json_count(list) == 3, "the rest stays");
    }
}

/* Documents of several nodes as one. */
static void extends(void)
{
    static const char mine[] =
        "{\"gpus\":[{\"uuid\":\"a\",\"w\":1},{\"uuid\":\"c\",\"claims\":0}],\"n\":1,"
        "\"jobs\":[1]}";
    static const char more[] =
        "{\"gpus\":[{\"uuid\":\"a\",\"w\":2},{\"uuid\":\"b\",\"w\":3},"
        "{\"uuid\":\"b\",\"w\":4},{\"uuid\":\"c\",\"claims\":1}],\"n\":2,"
        "\"jobs\":[1,{}],\"new\":[7]}";
    auto_(json_free) struct json *doc = NULL, *with = NULL;
    uw_error err = {""};

    ok(json_read("mine", mine, strlen(mine), &doc, &err) == 0 &&
           json_read("more", more, strlen(more), &with, &err) == 0 &&
           json_extend(doc, with) == 0,
       "a document extended by another: %s", err.text);
    auto_(mem_free) char *text = json_text(doc);
    is_str(text,
           "{\"gpus\":[{\"uuid\":\"a\",\"w\":1},{\"uuid\":\"c\",\"claims\":1},"
           "{\"uuid\":\"b\",\"w\":3},"
           "{\"uuid\":\"b\",\"w\":4}],\"n\":1,\"jobs\":[1,1,{}]}",
           "its lists have all items, of a board that both have the claimed one");
}

int main(void)
{
    writes();
    rows();
    numbers();
    digits();
    counters();
    misuses();
    reads();
    utf8();
    each();
    extends();
    plain();
    return done();
}
