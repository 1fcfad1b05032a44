/* "GET /gpu/get_power?gpu_ids=0": a method and a target for zeusd's API. */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/zeusd/zeusd.h"
#include "fuzz.h"
#include "http-try.h"
#include "io/http.h"
#include "virtual/virtual-loop.h"

static struct gpu_info info[2] = {{.index = 0, .name = "a\"b\\"},
                                  {.index = 63, .name = "c"}};
static struct view_board board[2];
static struct node_view view = {.board = board, .n_boards = 2};

const struct node_view *node_look(struct node *node)
{
    (void)node;
    return &view;
}

int node_claim(struct node *node, const struct node_who *who,
               const struct node_claim *ask, uint64_t *ret_id, uw_error *err)
{
    (void)node, (void)who, (void)err;
    assert(strcmp(ask->board, "0") == 0 || strcmp(ask->board, "63") == 0);
    *ret_id = 1;
    return ask->cap.mw % 2 ? -EPERM : 0;
}

int node_withdraw(struct node *node, const struct node_who *who, uint64_t id,
                  uw_error *err)
{
    (void)node, (void)who, (void)id, (void)err;
    return 0;
}

static void handler(struct http_exchange *x, void *user)
{
    static const struct node_who who = {.uid = 1000, .may_claim = true};

    zeusd_handle(user, x, &who);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct loop *loop;
    static struct zeusd *z;
    char text[2048];
    struct http_try *t = NULL;

    if (!loop) {
        board[0].info = &info[0];
        board[1].info = &info[1]; /* which has not answered yet */
        board[0].power_w = (struct maybe){.known = true, .v = 200};
        board[0].last = (struct gpu_sample){.has = GPU_HAS_ENERGY, .energy_mj = 5000};
        if (loop_new_virtual(1, 0, &loop, NULL) < 0 ||
            zeusd_new(loop, NULL, &z, NULL) < 0)
            abort();
    }
    if (size >= sizeof text)
        return fuzz_say("passed-over", "longer than %zu bytes", sizeof text - 1);
    memcpy(text, data, size);
    text[size] = '\0';
    char *target = strchr(text, ' ');
    if (!target)
        return fuzz_say("passed-over", "no target");
    *target++ = '\0';
    struct http_try_ask ask = {.method = text, .target = target, .peer = {.local = true}};
    if (http_try_new(loop, handler, z, &ask, &t) < 0)
        abort();
    unsigned status = http_try_status(t);
    assert(status == 0 || (status >= 200 && status < 600));
    if (status != 0)
        assert(strlen(http_try_body(t, NULL)) < 8192);
    (void)fuzz_say("open", "%s", "");
    if (status != 0) {
        (void)snprintf(fuzz_said.word, sizeof fuzz_said.word, "%u", status);
        fuzz_add("%s", http_try_body(t, NULL));
    }
    http_try_free(t);
    return 0;
}
