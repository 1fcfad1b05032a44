/* JSON of any content through the reader; its texts through the writer and back. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "fuzz.h"
#include "io/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_(json_free) struct json *doc = NULL;
    auto_(json_free) struct json *again = NULL;
    auto_(json_out_free) struct json_out *o = json_out_new();
    auto_(mem_free) char *text = NULL;
    const char *board = "", *board_again = NULL;
    double d = 0, d_again = 1;
    uint64_t u;
    bool b;
    uw_error err;

    if (json_read("fuzz", (const char *)data, size, &doc, &err) < 0)
        return fuzz_say("refused", "%s", err.text);
    const struct json_value *root = json_root(doc);
    (void)json_get_u64(root, "n", &u, &err);
    (void)json_get_bool(root, "simulated", &b, &err);
    (void)json_get_double(root, "n", &d, &err);
    (void)json_get_text(root, "board", &board, &err);
    for (size_t i = 0; i < json_count(root); i++)
        (void)json_get_double(json_at(root, i), "n", &d, &err);

    json_out_object(o, NULL);
    json_out_text(o, "board", board);
    json_out_double(o, "n", d);
    json_out_end(o);
    if (json_out_string(o, &text, &err) < 0 ||
        json_read("again", text, strlen(text), &again, &err) < 0 ||
        json_get_text(json_root(again), "board", &board_again, &err) < 0 ||
        json_get_double(json_root(again), "n", &d_again, &err) < 0 ||
        strcmp(board, board_again) != 0 || d != d_again)
        abort();
    return fuzz_say("accepted", "%zu items, n %g, board '%s'", json_count(root), d,
                    board);
}
