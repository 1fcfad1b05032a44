/* Boards that are released: the driver is let go of on them, by the actuator and by us,
 * so that they can be reset, and taken back after.  Step by step for each board: original
 * back (caps), what it took so far booked, the actuator's handle, ours.  Which ones they
 * are is kept beside the ledger, so that a daemon that begins meanwhile leaves them
 * alone.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "io/file.h"
#include "io/json.h"
#include "node/node-inside.h"
#include "node/released.h"

enum {
    BOOKED_MS = 4000, /* for the last stretch to be booked */
    AGAIN_MS = 100,
    KNOWN_MAX = 128 * 1024, /* bytes of the file */
};

static void kick(struct node *node, uint64_t wait_ms)
{
    if (node->away.timer)
        loop_timer_set(node->away.timer,
                       wait_ms ? loop_now_ns(node->loop) + wait_ms * NS_PER_MS : 0, 0);
}

static uint64_t device_bit(const struct node *node, size_t i)
{
    return 1ull << node_info(node, i)->index;
}

bool node_is_detached(const struct node *node, size_t i)
{
    return board_view(boards_at(node->boards, i))->away;
}

/* ---- what is kept ---- */

static void path_of(const struct node *node, char *ret, size_t size)
{
    const char *ledger = node->config.ledger.path, *slash = strrchr(ledger, '/');

    ret[0] = '\0';
    if (slash)
        (void)snprintf(ret, size, "%.*s/released.json", (int)(slash - ledger), ledger);
}

/* When a board comes back by itself, in CLOCK_BOOTTIME, which nobody sets (the file is of
 * this boot alone); -1: when it is asked for.
 */
static int64_t until_ns(struct node *node, size_t device)
{
    struct caps_view v;

    for (size_t i = 0; i < node->n; i++) {
        if (node_info(node, i)->index != device)
            continue;
        caps_look(node->caps, i, &v);
        return v.back_ns == CLAIM_FOREVER ? -1 : (int64_t)v.back_ns;
    }
    return -1;
}

static void put_board(struct node *node, struct json_out *o, size_t i)
{
    const struct gpu_info *info = &node->away.known[i];

    json_out_object(o, NULL);
    json_out_text(o, "uuid", info->uuid);
    json_out_text(o, "name", info->name);
    json_out_text(o, "pci_bus_id", info->pci_bus_id);
    json_out_text(o, "backend", info->backend);
    json_out_int(o, "arch", info->arch);
    json_out_int(o, "abilities", info->abilities);
    json_out_bool(o, "simulated", info->simulated);
    json_out_bool(o, "released", node->away.devices >> i & 1);
    if (node->away.devices >> i & 1)
        json_out_int(o, "until_ns", until_ns(node, i));
    json_out_end(o);
}

static void answer(struct node_board *b, int r, const char *text)
{
    caps_done_fn fn = b->away.fn;

    b->away.fn = NULL;
    if (fn)
        fn(r, text, b->away.user);
}

/* A daemon that begins from now on knows of them: it may be told that they are gone. */
static void on_kept(struct node *node)
{
    for (size_t i = 0; i < node->n; i++)
        if (node->board[i].away.phase == DETACH_GONE)
            answer(&node->board[i], 0, "");
}

static void keep(struct node *node)
{
    auto_(json_out_free) struct json_out *o = NULL;
    auto_(mem_free) char *text = NULL;
    char path[CONFIG_PATH + 40];

    path_of(node, path, sizeof path);
    if (!node->away.devices) {
        node_save(node, path, NULL, on_kept);
        return;
    }
    o = json_out_new();
    json_out_object(o, NULL);
    json_out_text(o, "boot", node->boot_id);
    json_out_array(o, "boards");
    for (size_t i = 0; i < node->away.n_known; i++)
        put_board(node, o, i);
    json_out_end(o);
    json_out_end(o);
    if (json_out_string(o, &text, NULL) == 0)
        node_save(node, path, text, on_kept);
    else
        on_kept(node);
}

static int read_known(struct node *node, const char *path, uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;
    struct released kept = {.n = 0};
    int r = json_read_file(path, KNOWN_MAX, &doc, err);

    if (r == 0)
        r = released_read(json_root(doc), node->boot_id, &kept, err);
    if (r < 0)
        return r;
    node->away.known = take(kept.board);
    node->away.n_known = kept.n;
    node->away.devices = kept.away;
    memcpy(node->away.until_ns, kept.until_ns, sizeof kept.until_ns);
    return 0;
}

void node_detach_forget(struct node *node, const char *why)
{
    char path[CONFIG_PATH + 40];

    log_event(LOG_LEVEL_WARNING, "release-lost", "reason=%s", log_quote(why).text);
    free(take(node->away.known));
    node->away.n_known = 0;
    node->away.devices = 0;
    path_of(node, path, sizeof path);
    if (path[0])
        (void)unlink(path);
}

int node_detach_start(struct node *node, uw_error *err)
{
    char path[CONFIG_PATH + 40];
    uw_error why = {""};

    path_of(node, path, sizeof path);
    int r = path[0] ? read_known(node, path, &why) : 0;
    if (r == -ENOMEM)
        return fail(err, r, "%s", why.text);
    if (r < 0 && r != -ENOENT)
        node_detach_forget(node, why.text);
    return 0;
}

void node_detach_opts(const struct node *node, struct gpu_open_opts *opts)
{
    opts->known = node->away.known;
    opts->n_known = node->away.devices ? node->away.n_known : 0;
    opts->away = node->away.devices;
}

/* ---- one board, step by step ---- */

/* It stays ours: claims count again. */
static void refuse(struct node *node, size_t i, int r, const char *text)
{
    struct node_board *b = &node->board[i];

    log_event(LOG_LEVEL_WARNING, "not-released", "gpu=%u reason=%s",
              node_info(node, i)->index, log_quote(text).text);
    node_ledger_event(node, "not-released", i, (uid_t)-1, text);
    b->away.phase = DETACH_HERE;
    node_attribution_detach(node, i, false);
    (void)caps_take_back(node->caps, i, NULL);
    answer(b, r, text);
}

static int on_detached(struct actuator *act, const struct actuator_reply *reply,
                       void *user)
{
    struct node_board *b = user;
    struct node *node = b->away.node;
    size_t i = (size_t)(b - node->board);
    bool done = reply->result == ACTUATOR_DONE || reply->result == ACTUATOR_GONE;
    (void)act;

    b->away.asked = false;
    if (done)
        node->away.actuator |= 1ull << i;
    if (b->away.phase == DETACH_ACTUATOR && done)
        b->away.phase = DETACH_DRIVER;
    else if (b->away.phase == DETACH_ACTUATOR)
        refuse(node, i,
               reply->result == ACTUATOR_BUSY      ? -EBUSY
               : reply->result == ACTUATOR_REFUSED ? -ENOTSUP
                                                   : -EIO,
               reply->text);
    else if (!done && !b->away.told)
        log_event(LOG_LEVEL_WARNING, "not-released", "gpu=%u by=actuator reason=%s",
                  node_info(node, i)->index, log_quote(reply->text).text);
    b->away.told = !done;
    if (done || b->away.phase != DETACH_GONE) /* else again with the next tick */
        kick(node, 0);
    return 0;
}

/* 0: an answer will come; else the actuator has nothing to let go of. */
static int ask_actuator(struct node *node, size_t i)
{
    struct node_board *b = &node->board[i];

    if (!node->actuator_ready || b->away.asked || (node->away.actuator >> i & 1))
        return b->away.asked ? 0 : -ENOTCONN;
    int r = actuator_detach(node->actuator, node_info(node, i)->uuid, on_detached, b);
    b->away.asked = r == 0;
    return r;
}

static void begin(struct node *node, size_t i)
{
    struct node_board *b = &node->board[i];

    b->away.phase = DETACH_BOOKING;
    b->away.since_ns = loop_now_ns(node->loop);
    node_attribution_detach(node, i, true);
    sampler_refresh(b->sampler, 0); /* its counter now, to see a reset by */
}

static void is_away(struct node *node, size_t i)
{
    struct node_board *b = &node->board[i];
    const struct gpu_sample *last = &sampler_board(b->sampler, 0)->last;

    b->away.phase = DETACH_GONE;
    b->away.energy_mj = last->has & GPU_HAS_ENERGY ? last->energy_mj : 0;
    b->mean = (struct mean_power){0};
    caps_back_after(node->caps, i, b->away.hold_off_ns);
    sampler_detach(b->sampler, 0, true);
    node->away.devices |= device_bit(node, i);
    log_event(LOG_LEVEL_NOTICE, "released", "gpu=%u uuid=%s", node_info(node, i)->index,
              node_info(node, i)->uuid);
}

static void is_back(struct node *node, size_t i)
{
    struct node_board *b = &node->board[i];

    b->away.phase = DETACH_RETURNING;
    b->away.since_ns = loop_now_ns(node->loop);
    node->away.devices &= ~device_bit(node, i);
    node->away.actuator &= ~(1ull << i); /* the next hold takes it back there */
    sampler_detach(b->sampler, 0, false);
}

/* It answers again.  Was it reset?  A counter that has passed its old value since does
 * not tell.
 */
static void welcome(struct node *node, size_t i)
{
    struct node_board *b = &node->board[i];
    const struct gpu_info *info = node_info(node, i);
    const struct gpu_sample *last = &sampler_board(b->sampler, 0)->last;
    bool reset = last->has & GPU_HAS_ENERGY && last->energy_mj < b->away.energy_mj;

    b->away.phase = DETACH_HERE;
    node_attribution_detach(node, i, false);
    log_event(LOG_LEVEL_NOTICE, "taken-back", "gpu=%u uuid=%s reset=%s", info->index,
              info->uuid, reset ? "true" : "unknown");
    if (reset)
        node_ledger_event(node, "reset", i, (uid_t)-1, "while it was released");
}

/* All boards whose time has come, at once. */
static int on_moved(struct boards *set, int r, const uw_error *err, void *user)
{
    struct node *node = user;
    bool stands = r == 0 || r == -EBUSY || r == -ENOTSUP;
    (void)set;

    node->away.moving = false;
    for (size_t i = 0; i < node->n; i++) {
        struct node_board *b = &node->board[i];
        if (b->away.phase == DETACH_DRIVER && !(node->away.asked >> i & 1))
            continue; /* has come since, and is next */
        if (b->away.phase == DETACH_DRIVER && r == 0)
            is_away(node, i);
        else if (b->away.phase == DETACH_DRIVER)
            refuse(node, i, r, err->text);
        else if (b->away.phase == DETACH_GONE && r == 0 && !node_is_detached(node, i))
            is_back(node, i);
    }
    if (r == 0)
        keep(node);
    if (!stands) {
        log_event(LOG_LEVEL_ERROR, "driver", "reason=%s", log_quote(err->text).text);
        loop_timer_set(node->reopen, 0, 0);
    }
    kick(node, stands ? 0 : NODE_TICK_MS);
    return 0;
}

static void move(struct node *node, uint64_t away)
{
    uw_error err = {""};
    int r = 0;

    if (!node->away.known)
        r = boards_all(node->boards, &node->away.known, &node->away.n_known);
    if (r == 0)
        r = boards_attach(node->boards, away, on_moved, node, &err);
    node->away.moving = r == 0;
    node->away.asked = away;
    for (size_t i = 0; r < 0 && i < node->n; i++)
        if (node->board[i].away.phase == DETACH_DRIVER)
            refuse(node, i, r, err.text[0] ? err.text : "out of memory");
}

/* What is wanted of a board, and the next step there.  True: the driver is to be let go
 * of on it (or stays so).
 */
static bool step(struct node *node, size_t i)
{
    struct node_board *b = &node->board[i];
    uint64_t now = loop_now_ns(node->loop);
    struct caps_view v;

    caps_look(node->caps, i, &v);
    if (!v.let_go &&
        (b->away.phase == DETACH_BOOKING || b->away.phase == DETACH_ACTUATOR ||
         (b->away.phase == DETACH_DRIVER && !node->away.moving))) {
        b->away.phase = DETACH_HERE; /* taken back before it was gone */
        node_attribution_detach(node, i, false);
        answer(b, -EAGAIN, "it was taken back meanwhile");
    }
    if (v.let_go && (b->away.phase == DETACH_HERE || b->away.phase == DETACH_RETURNING))
        begin(node, i);
    if (b->away.phase == DETACH_BOOKING &&
        (attribution_board_settled(node->book, i) ||
         now > b->away.since_ns + BOOKED_MS * NS_PER_MS))
        b->away.phase = DETACH_ACTUATOR;
    if (b->away.phase == DETACH_ACTUATOR && ask_actuator(node, i) < 0)
        b->away.phase = DETACH_DRIVER;
    if (b->away.phase == DETACH_GONE && v.let_go)
        (void)ask_actuator(node, i); /* one that has come since */
    if (b->away.phase == DETACH_RETURNING) {
        const struct sampler_now *s = sampler_board(b->sampler, 0);
        if (s->failures == 0 && s->last.began_ns >= b->away.since_ns)
            welcome(node, i);
    }
    return b->away.phase == DETACH_DRIVER || (b->away.phase == DETACH_GONE && v.let_go);
}

/* A board that this opening has never seen comes back: all is opened anew for it. */
static bool reopens(struct node *node, uint64_t want)
{
    bool any = false;

    for (size_t i = 0; i < node->n; i++) {
        struct node_board *b = &node->board[i];
        if (b->away.phase != DETACH_GONE || !b->away.unseen || (want >> i & 1))
            continue;
        node->away.devices &= ~device_bit(node, i);
        any = true;
    }
    if (!any)
        return false;
    keep(node);
    loop_timer_set(node->reopen, 0, 0);
    return true;
}

void node_detach_step(struct node *node)
{
    uint64_t want = 0, is = 0;
    bool waits = false;

    if (!node->open || node->ending)
        return;
    for (size_t i = 0; i < node->n; i++) {
        want |= step(node, i) ? 1ull << i : 0;
        is |= node_is_detached(node, i) ? 1ull << i : 0;
        waits |= node->board[i].away.phase == DETACH_BOOKING ||
                 node->board[i].away.phase == DETACH_RETURNING;
    }
    if (waits)
        kick(node, AGAIN_MS);
    if (want != is && !node->away.moving && !reopens(node, want))
        move(node, want);
}

static int on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    (void)now_ns;
    node_detach_step(user);
    return 0;
}

/* ---- beginning and end ---- */

/* Boards that were released when all were opened stay so. */
static int resume(struct node *node, size_t i, uw_error *err)
{
    struct node_board *b = &node->board[i];
    int64_t until = node->away.until_ns[node_info(node, i)->index];
    int64_t left = until < 0 ? 0 : until - (int64_t)loop_now_ns(node->loop);

    b->away.phase = DETACH_GONE;
    b->away.unseen = true;
    sampler_detach(b->sampler, 0, true);
    node_attribution_detach(node, i, true);
    return caps_release(node->caps, i,
                        until < 0  ? 0
                        : left > 0 ? (uint64_t)left
                                   : 1,
                        NULL, NULL, err);
}

int node_detach_open(struct node *node, uw_error *err)
{
    int r =
        loop_timer_new(node->loop, UINT64_MAX, 0, on_timer, node, &node->away.timer, err);

    node->away.actuator = 0;
    node->away.moving = false;
    for (size_t i = 0; i < node->n && r == 0; i++) {
        node->board[i].away.node = node;
        if (node_is_detached(node, i))
            r = resume(node, i, err);
    }
    return r;
}

void node_detach_close(struct node *node)
{
    for (size_t i = 0; i < node->n; i++) {
        struct node_board *b = &node->board[i];
        if (b->away.phase == DETACH_GONE && node->caps) /* the time, for resume() */
            node->away.until_ns[node_info(node, i)->index] =
                until_ns(node, node_info(node, i)->index);
        if (!node->ending)
            answer(b, -EAGAIN, "the boards were opened anew: release it again");
    }
    loop_timer_free(take(node->away.timer));
}

void node_detach_kick(struct node *node)
{
    kick(node, 0);
}

void node_detach_actuator_gone(struct node *node)
{
    node->away.actuator = 0;
    for (size_t i = 0; i < node->n; i++)
        node->board[i].away.asked = false;
    kick(node, 0);
}

/* ---- what is asked ---- */

static void on_let_go(int r, const char *text, void *user)
{
    struct node_board *b = user;

    if (r < 0) {
        caps_back_after(b->away.node->caps, (size_t)(b - b->away.node->board),
                        b->away.hold_off_ns);
        answer(b, r, text);
    }
    kick(b->away.node, 0);
}

int node_detach_release(struct node *node, size_t i, uint64_t hold_off_ns,
                        caps_done_fn fn, void *user, uw_error *err)
{
    struct node_board *b = &node->board[i];

    int r = boards_hang(node->boards, err);
    if (r == 0)
        r = caps_release(node->caps, i, 0, on_let_go, b, err);
    if (r < 0)
        return r;
    b->away.hold_off_ns = hold_off_ns;
    b->away.fn = fn;
    b->away.user = user;
    return 0;
}
