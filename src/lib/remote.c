/* A context that is a client of the daemon: one request per call, no connection between
 * calls.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "board/boards.h"
#include "gpu/device-files.h"
#include "lib/inside.h"

enum { ANSWER_S = 10, FIRST_ANSWER_S = 3, WHY_MAX = 95 };

struct remote {
    uw_ctx ctx;
    struct door door;
    struct daemon_address where;
    struct lib_done done;
    uw_device device[BOARDS_MAX];
    char id[BOARDS_MAX][LIB_TEXT], name[BOARDS_MAX][LIB_TEXT];
};

static const struct lib_mode remote_mode;

static const struct remote *remote_of(const uw_ctx *ctx)
{
    return (const struct remote *)ctx;
}

int lib_remote(const uw_ctx *ctx, const char *what, const struct door **ret,
               uw_error *err)
{
    if (ctx->mode != &remote_mode)
        return fail(err, -ENOTSUP,
                    "%s needs the daemon, which did not run when this context was "
                    "opened: systemctl start underwattd, or underwatt-start; for "
                    "simulated boards underwatt-sim exec -- underwatt-start",
                    what);
    if (ret)
        *ret = &remote_of(ctx)->door;
    return 0;
}

const char *lib_job_socket(const uw_ctx *ctx)
{
    return remote_of(ctx)->where.job_socket;
}

/* ---- boards ---- */

static uint32_t mw_at(const struct json_value *v, const char *key)
{
    uint64_t mw = 0;

    return json_as_u64(json_get(v, key), &mw) && mw <= UINT32_MAX ? (uint32_t)mw : 0;
}

static int ask_board(const uw_device *dev, struct json **ret, uw_error *err)
{
    char path[LIB_TEXT + 16];

    (void)snprintf(path, sizeof path, "/v1/gpus/%s", dev->id);
    int r = door_ask(&remote_of(dev->ctx)->door, "GET", path, NULL, ret, err);
    if (r == -ENOENT)
        return fail(err, -ENODEV, "the daemon no longer has board %s", dev->id);
    return r;
}

static int remote_limits(uw_device *dev, uw_limits *ret, uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;

    int r = ask_board(dev, &doc, err);
    if (r < 0)
        return r;
    const struct json_value *v = doc ? json_get(json_root(doc), "limits") : NULL;
    uw_limits l = {.min_mw = mw_at(v, "min_mw"),
                   .max_mw = mw_at(v, "max_mw"),
                   .default_mw = mw_at(v, "default_mw"),
                   .enforced_mw = mw_at(v, "enforced_mw")};
    if (!l.min_mw || !l.max_mw)
        return fail(err, -ENOTSUP, "%s: the limits of this board cannot be read",
                    dev->id);
    *ret = l;
    return 0;
}

static int remote_power(uw_device *dev, double *ret_w, uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;
    double w;

    int r = ask_board(dev, &doc, err);
    if (r < 0)
        return r;
    if (!doc || json_get_double(json_root(doc), "power_w", &w, NULL) < 0)
        return fail(err, -ENODATA,
                    "%s: the daemon does not know the power of this board now", dev->id);
    *ret_w = w;
    return 0;
}

/* ---- claims ---- */

static int check_why(const char *why, uw_error *err)
{
    if (why && strlen(why) > WHY_MAX)
        return fail(err, -EINVAL, "why has %zu bytes, more than %d", strlen(why),
                    WHY_MAX);
    return 0;
}

int lib_claim(const uw_ctx *ctx, const struct lib_claim *claim, uint64_t *ret_id,
              uw_error *err)
{
    const struct door *door = NULL;
    auto_(json_free) struct json *doc = NULL;
    char text[48];

    int r = lib_remote(ctx, "capping", &door, err);
    if (r == 0)
        r = check_why(claim->why, err);
    if (r < 0)
        return r;
    struct json_out *o = json_out_new();
    json_out_object(o, NULL);
    if (claim->dev)
        json_out_text(o, "gpu", claim->dev->id);
    if (claim->job)
        json_out_int(o, "job", (int64_t)claim->job);
    json_out_text(o, claim->preset ? "preset" : "cap",
                  claim->preset ? claim->preset : claim->cap);
    json_out_text(o, "kind", "named");
    if (claim->for_s > 0) {
        (void)snprintf(text, sizeof text, "%.9g s", claim->for_s);
        json_out_text(o, "for", text);
    }
    if (claim->why)
        json_out_text(o, "why", claim->why);
    json_out_int(o, "pid", getpid());
    json_out_end(o);
    r = door_ask(door, "POST", "/v1/claims", o, &doc, err);
    if (r < 0)
        return r;
    if (!doc || json_get_u64(json_root(doc), "id", ret_id, NULL) < 0)
        return fail(err, -EPROTO, "the daemon gave no id for the claim");
    return 0;
}

int uw_device_claim(uw_device *dev, uint32_t cap_mw, double for_s, const char *why,
                    uint64_t *ret_id, uw_error *err)
{
    char cap[32];

    if (!dev || !ret_id)
        return fail(err, -EINVAL, "dev or ret_id is NULL");
    int r = lib_remote(dev->ctx, "capping", NULL, err);
    if (r == 0 && (cap_mw == 0 || !isfinite(for_s) || for_s < 0))
        r = fail(err, -EINVAL, "a cap of %" PRIu32 " mW for %g s is not valid", cap_mw,
                 for_s);
    if (r < 0)
        return r;
    (void)snprintf(cap, sizeof cap, "%" PRIu32 " mW", cap_mw);
    const struct lib_claim claim = {.dev = dev, .cap = cap, .why = why, .for_s = for_s};
    return lib_claim(dev->ctx, &claim, ret_id, err);
}

int uw_claim_withdraw(uw_ctx *ctx, uint64_t id, uw_error *err)
{
    const struct door *door = NULL;
    char path[64];

    if (!ctx)
        return fail(err, -EINVAL, "ctx is NULL");
    int r = lib_remote(ctx, "a claim", &door, err);
    if (r < 0)
        return r;
    (void)snprintf(path, sizeof path, "/v1/claims/%" PRIu64, id);
    return door_ask(door, "DELETE", path, NULL, NULL, err);
}

/* ---- opening ---- */

struct lib_done *lib_remote_done(uw_ctx *ctx)
{
    return &((struct remote *)ctx)->done;
}

static void remote_close(uw_ctx *ctx)
{
    lib_remote_drop_all(ctx);
    free(lib_remote_done(ctx)->id);
    free(ctx); /* its first member */
}

static const struct lib_mode remote_mode = {
    0,
    remote_close,
    remote_limits,
    remote_power,
    lib_remote_begin,
    lib_remote_stop,
    lib_remote_await,
    lib_remote_drop,
    lib_remote_no_processor,
    lib_remote_samples,
};

/* After the boards are read: finds those that this process may not use. */
static void find_closed(struct remote *c, const struct json_value *gpus)
{
    const char *sim_state = secure_getenv("UNDERWATT_SIM_STATE");
    enum device_file file[BOARDS_MAX] = {DEVICE_FILE_UNKNOWN};

    for (size_t i = 0; i < c->ctx.n; i++) {
        struct gpu_info board = {.simulated = c->device[i].simulated};
        uint64_t minor = 0;
        board.has_minor = json_as_u64(json_get(json_at(gpus, i), "minor"), &minor) &&
                          minor <= UINT32_MAX;
        board.minor = (uint32_t)minor;
        file[i] = device_file_of(&board, sim_state);
    }
    for (size_t i = 0; i < c->ctx.n; i++)
        c->device[i].closed = !device_file_allows(file, c->ctx.n, i);
}

static int read_boards(struct remote *c, const struct json_value *gpus, uw_error *err)
{
    size_t n = json_count(gpus);

    if (n == 0)
        return fail(err, -ENODEV, "the daemon at %s has no board (yet)", c->where.socket);
    for (size_t i = 0; i < n && i < BOARDS_MAX; i++) {
        const struct json_value *v = json_at(gpus, i);
        const char *uuid = json_as_text(json_get(v, "uuid"));
        const char *name = json_as_text(json_get(v, "name"));
        bool simulated = false;
        if (!uuid || !name || strlen(uuid) >= LIB_TEXT ||
            json_get_bool(v, "simulated", &simulated, NULL) < 0)
            return fail(err, -EPROTO, "the server at %s is not underwattd",
                        c->where.socket);
        (void)snprintf(c->id[i], LIB_TEXT, "%s", uuid);
        (void)snprintf(c->name[i], LIB_TEXT, "%s", name);
        c->device[i] = (uw_device){&c->ctx, i, c->id[i], c->name[i], simulated, 0};
        c->ctx.n = i + 1;
    }
    find_closed(c, gpus);
    return 0;
}

static int list_boards(struct remote *c, uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;
    const struct door first = {c->where.socket, FIRST_ANSWER_S * NS_PER_S};

    int r = door_ask(&first, "GET", "/v1/gpus", NULL, &doc, err);
    if (!c->where.named && r == -ECONNREFUSED)
        return LIB_ABSENT;
    if (r < 0)
        return r;
    return read_boards(c, doc ? json_get(json_root(doc), "gpus") : NULL, err);
}

int lib_remote_open(const struct daemon_address *where, uw_ctx **ret, uw_error *err)
{
    struct remote *c = calloc(1, sizeof *c);

    if (!c)
        return fail(err, -ENOMEM, "out of memory");
    c->where = *where;
    c->door = (struct door){c->where.socket, ANSWER_S * NS_PER_S};
    c->ctx.mode = &remote_mode;
    c->ctx.device = c->device;
    int r = list_boards(c, err);
    if (r != 0) {
        free(c);
        return r;
    }
    *ret = &c->ctx;
    return 0;
}
