/* What `underwatt list` makes of the daemon's answers. */
#include "cli/list-daemon.h"

#include "tap.h"

static struct json *doc_of(const char *text)
{
    struct json *doc = NULL;
    uw_error err = {""};

    if (json_read("answer", text, strlen(text), &doc, &err) < 0)
        printf("# %s\n", err.text);
    return doc;
}

static void caps(void)
{
    /* clang-format off */
    static const struct { const char *name, *board, *line; size_t size; } cases[] = {
        {"free", "{\"cap\": {\"state\": \"free\", \"why\": \"x\", \"text\": \"\"}}", NULL, 64},
        {"another Underwatt's", "{\"cap\": {\"state\": \"free\", \"holder\": \"held by x\", \"why\": \"200 W: held by x\"}}", "200 W: held by x", 64},
        {"no cap in it", "{}", NULL, 64},
        {"no object", "{\"cap\": 3}", NULL, 64},
        {"held", "{\"cap\": {\"state\": \"held\", \"why\": \"210 W: soft claim\", \"text\": \"\"}}", "210 W: soft claim", 64},
        {"held, with a text", "{\"cap\": {\"state\": \"held\", \"why\": \"210 W\", \"text\": \"read back\"}}", "210 W", 64},
        {"yielded", "{\"cap\": {\"state\": \"yielded\", \"why\": \"210 W\", \"text\": \"another set 250 W\"}}", "210 W (yielded: another set 250 W)", 64},
        {"released", "{\"cap\": {\"state\": \"released\", \"why\": \"300 W\", \"text\": \"\"}}", "300 W (released)", 64},
        {"nothing said", "{\"cap\": {\"state\": \"lost\"}}", " (lost)", 64},
        {"too long for its place", "{\"cap\": {\"state\": \"lost\", \"why\": \"0123456789\", \"text\": \"\"}}", "0123456", 8},
    };
    /* clang-format on */

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        auto_(json_free) struct json *doc = doc_of(cases[i].board);
        char line[64] = "";
        bool has = doc && list_daemon_cap(json_root(doc), line, cases[i].size);
        ok(has == (cases[i].line != NULL), "%s: %s", cases[i].name,
           has ? "the daemon has a hand in it" : "it has none");
        if (cases[i].line)
            is_str(line, cases[i].line, cases[i].name);
    }
}

static void jobs(void)
{
    /* clang-format off */
    static const struct { const char *name, *board, *line; size_t size; } cases[] = {
        {"none", "{\"jobs\": []}", "", 64},
        {"no list", "{\"jobs\": null}", "", 64},
        {"one", "{\"jobs\": [12]}", "job 12 (anna)", 64},
        {"two", "{\"jobs\": [12, 14]}", "job 12 (anna), job 14 (uid 1002)", 64},
        {"one that ended meanwhile", "{\"jobs\": [13]}", "job 13 (?)", 64},
        {"what is no number", "{\"jobs\": [\"x\", -1, 12]}", "job 12 (anna)", 64},
        {"cut, never beyond its place", "{\"jobs\": [12, 14]}", "job 12 (anna), ", 16},
    };
    /* clang-format on */
    struct list_daemon d = {
        doc_of("{\"gpus\": [{\"uuid\": \"GPU-a\"}, {\"uuid\": \"GPU-b\", \"gpu\": 1}]}"),
        doc_of(
            "{\"jobs\": [{\"id\": 12, \"user\": \"anna\", \"uid\": 1001}, {\"id\": 14, "
            "\"user\": null, \"uid\": 1002}]}")};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        auto_(json_free) struct json *doc = doc_of(cases[i].board);
        char line[64] = "canary";
        list_daemon_jobs(&d, doc ? json_root(doc) : NULL, line, cases[i].size);
        is_str(line, cases[i].line, cases[i].name);
    }
    uint64_t gpu = 0;
    const struct json_value *b = list_daemon_board(&d, "GPU-b");
    ok(b && json_as_u64(json_get(b, "gpu"), &gpu) && gpu == 1, "a board by its UUID");
    ok(!list_daemon_board(&d, "GPU-c"), "one that the daemon does not know");
    list_daemon_fini(&d);
    ok(!list_daemon_board(&d, "GPU-a"), "no daemon: none");
}

int main(void)
{
    caps();
    jobs();
    return done();
}
