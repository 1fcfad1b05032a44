#include "caps/released-boards.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "caps/released-file.h"
#include "io/file-save.h"
#include "io/json.h"

enum {
    BOOKED_MS = 4000, /* longest wait for the last energy to be attributed */
    FAULT_MS = 1000,
    KNOWN_MAX = 128 * 1024, /* bytes of the file */
    PATH_BYTES = 600,
};

/* A board on its way out and back. */
struct leaving {
    enum {
        DETACH_HERE = 0,
        DETACH_BOOKING,  /* caps have released it: waits until its energy is attributed */
        DETACH_ACTUATOR, /* waits until the actuator has closed the driver for it */
        DETACH_DRIVER,   /* waits until this daemon has closed the driver for it */
        DETACH_GONE,     /* can be reset */
        DETACH_RETURNING, /* attached; waits for the first sample */
    } phase;
    bool unseen; /* away when the boards were opened: only its identity is known */
    bool asked;  /* a request to the actuator is in flight */
    bool told;   /* the actuator's failure to release it was logged */
    uint64_t since_ns;
    uint64_t hold_off_ns; /* delay before it returns; 0: on request */
    uint64_t energy_mj;   /* its counter at the release; 0 unknown */
    caps_done_fn fn;      /* called once; NULL: none */
    void *user;
    struct sampler_ear ear; /* while it returns: receives its first sample */
    struct released_boards *of;
};

struct released_boards {
    struct released_boards_opts opts;
    char path[PATH_BYTES];

    /* These outlive an opening; bits and positions are in the driver's order. */
    uint64_t devices;       /* boards without an open driver */
    struct gpu_info *known; /* all boards */
    size_t n_known;
    /* From the file: */
    int64_t until_ns[BOARDS_MAX]; /* -1: on request */
    int64_t since_ns[BOARDS_MAX]; /* 0: unknown */

    /* For one opening; bits and positions are in the set's order. */
    struct boards *boards; /* NULL: closed */
    struct caps *caps;
    struct sampler *sampler[BOARDS_MAX];
    struct leaving board[BOARDS_MAX];
    size_t n;
    struct actuator *act; /* NULL: none */
    uint64_t let_go;      /* boards for which the actuator has closed the driver */
    bool ending, moving;  /* moving: boards_attach() is under way … */
    uint64_t asked;       /* … to detach these boards */
    struct loop_timer *timer;
};

static void kick(struct released_boards *rb, uint64_t wait_ms)
{
    if (rb->timer)
        loop_timer_set(rb->timer,
                       wait_ms ? loop_now_ns(rb->opts.loop) + wait_ms * NS_PER_MS : 0, 0);
}

static void on_heard(size_t board, const struct gpu_sample *sample, void *user)
{
    (void)board;
    (void)sample;
    kick(user, 0);
}

static void stop_hearing(struct released_boards *rb, size_t i)
{
    struct sampler_ear *ear = &rb->board[i].ear;

    if (ear->fn)
        sampler_deaf(rb->sampler[i], 0, ear);
    *ear = (struct sampler_ear){0};
}

static const struct gpu_info *info_of(const struct released_boards *rb, size_t i)
{
    return board_view(boards_at(rb->boards, i))->info;
}

static uint64_t device_bit(const struct released_boards *rb, size_t i)
{
    return 1ull << info_of(rb, i)->index;
}

bool released_boards_is_away(const struct released_boards *rb, size_t i)
{
    return board_view(boards_at(rb->boards, i))->away;
}

bool released_boards_is_blind(const struct released_boards *rb, size_t i)
{
    return released_boards_is_away(rb, i) || rb->board[i].phase == DETACH_RETURNING;
}

/* ---- the file ---- */

/* When a board was released and when it returns by itself, in CLOCK_BOOTTIME (the file is
 * valid in this boot only).
 */
static void note_times(struct released_boards *rb, size_t device)
{
    struct caps_view v;

    for (size_t i = 0; i < rb->n; i++) {
        if (info_of(rb, i)->index != device)
            continue;
        caps_look(rb->caps, i, &v);
        rb->until_ns[device] = v.back_ns == CLAIM_FOREVER ? -1 : (int64_t)v.back_ns;
        rb->since_ns[device] = (int64_t)v.released_ns;
    }
}

static void put_board(struct released_boards *rb, struct json_out *o, size_t i)
{
    const struct gpu_info *info = &rb->known[i];

    json_out_object(o, NULL);
    json_out_text(o, "uuid", info->uuid);
    json_out_text(o, "name", info->name);
    json_out_text(o, "pci_bus_id", info->pci_bus_id);
    json_out_text(o, "backend", info->backend);
    json_out_int(o, "arch", info->arch);
    json_out_int(o, "abilities", info->abilities);
    if (info->has_minor)
        json_out_int(o, "minor", info->minor);
    json_out_bool(o, "simulated", info->simulated);
    json_out_bool(o, "released", rb->devices >> i & 1);
    if (rb->devices >> i & 1) {
        note_times(rb, i);
        json_out_int(o, "until_ns", rb->until_ns[i]);
        json_out_int(o, "since_ns", rb->since_ns[i]);
    }
    json_out_end(o);
}

static void answer(struct leaving *b, int r, const char *text)
{
    caps_done_fn fn = b->fn;

    b->fn = NULL;
    if (fn)
        fn(r, text, b->user);
}

/* The file is written, so a new daemon will leave the boards alone: answers releases. */
static void on_kept(void *user)
{
    struct released_boards *rb = user;

    for (size_t i = 0; i < rb->n; i++)
        if (rb->board[i].phase == DETACH_GONE)
            answer(&rb->board[i], 0, "");
}

static void keep(struct released_boards *rb)
{
    auto_(json_out_free) struct json_out *o = NULL;
    auto_(mem_free) char *text = NULL;
    if (!rb->devices) {
        file_save(rb->opts.worker, rb->path, NULL, on_kept, rb);
        return;
    }
    o = json_out_new();
    json_out_object(o, NULL);
    json_out_text(o, "boot", rb->opts.boot_id);
    json_out_array(o, "boards");
    for (size_t i = 0; i < rb->n_known; i++)
        put_board(rb, o, i);
    json_out_end(o);
    json_out_end(o);
    if (json_out_string(o, &text, NULL) == 0)
        file_save(rb->opts.worker, rb->path, text, on_kept, rb);
    else
        on_kept(rb);
}

static int read_known(struct released_boards *rb, uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;
    struct released kept = {.n = 0};
    int r = json_read_file(rb->path, KNOWN_MAX, &doc, err);

    if (r == 0)
        r = released_read(json_root(doc), rb->opts.boot_id, &kept, err);
    if (r < 0)
        return r;
    rb->known = take(kept.board);
    rb->n_known = kept.n;
    rb->devices = kept.away;
    memcpy(rb->until_ns, kept.until_ns, sizeof kept.until_ns);
    memcpy(rb->since_ns, kept.since_ns, sizeof kept.since_ns);
    return 0;
}

static void forget(struct released_boards *rb, const char *why)
{
    log_event(LOG_LEVEL_WARNING, LOG_EVENT_RELEASE_LOST, "reason=%s",
              log_quote(why).text);
    free(take(rb->known));
    rb->n_known = 0;
    rb->devices = 0;
    (void)unlink(rb->path);
}

bool released_boards_reject(struct released_boards *rb, const char *why)
{
    if (!rb->devices)
        return false;
    forget(rb, why);
    return true;
}

void released_boards_gpu_opts(const struct released_boards *rb,
                              struct gpu_open_opts *opts)
{
    opts->known = rb->known;
    opts->n_known = rb->devices ? rb->n_known : 0;
    opts->away = rb->devices;
}

/* ---- the steps of one board ---- */

/* The board cannot be released: its claims apply again. */
static void refuse(struct released_boards *rb, size_t i, int r, const char *text)
{
    struct leaving *b = &rb->board[i];

    log_event(LOG_LEVEL_WARNING, LOG_EVENT_NOT_RELEASED, "gpu=%u reason=%s",
              info_of(rb, i)->index, log_quote(text).text);
    rb->opts.on_event(LEDGER_EVENT_NOT_RELEASED, i, text, rb->opts.user);
    b->phase = DETACH_HERE;
    rb->opts.on_detach(i, false, rb->opts.user);
    (void)caps_take_back(rb->caps, i, NULL);
    answer(b, r, error_after(text, info_of(rb, i)->uuid)); /* the request names it */
}

static int on_detached(struct actuator *act, const struct actuator_reply *reply,
                       void *user)
{
    struct leaving *b = user;
    struct released_boards *rb = b->of;
    size_t i = (size_t)(b - rb->board);
    bool done = reply->result == ACTUATOR_DONE || reply->result == ACTUATOR_GONE;
    (void)act;

    b->asked = false;
    if (done)
        rb->let_go |= 1ull << i;
    if (b->phase == DETACH_ACTUATOR && done)
        b->phase = DETACH_DRIVER;
    else if (b->phase == DETACH_ACTUATOR)
        refuse(rb, i,
               reply->result == ACTUATOR_BUSY      ? -EBUSY
               : reply->result == ACTUATOR_REFUSED ? -ENOTSUP
                                                   : -EIO,
               reply->text);
    else if (!done && !b->told)
        log_event(LOG_LEVEL_WARNING, LOG_EVENT_NOT_RELEASED,
                  "gpu=%u by=actuator reason=%s", info_of(rb, i)->index,
                  log_quote(reply->text).text);
    b->told = !done;
    if (done || b->phase != DETACH_GONE) /* otherwise the next tick tries again */
        kick(rb, 0);
    return 0;
}

/* 0: an answer will follow; otherwise the actuator has nothing to close. */
static int ask_actuator(struct released_boards *rb, size_t i)
{
    struct leaving *b = &rb->board[i];

    if (!rb->act || b->asked || (rb->let_go >> i & 1))
        return b->asked ? 0 : -ENOTCONN;
    int r = actuator_detach(rb->act, info_of(rb, i)->uuid, on_detached, b);
    b->asked = r == 0;
    return r;
}

static void begin(struct released_boards *rb, size_t i)
{
    struct leaving *b = &rb->board[i];

    stop_hearing(rb, i);
    b->phase = DETACH_BOOKING;
    b->since_ns = loop_now_ns(rb->opts.loop);
    rb->opts.on_detach(i, true, rb->opts.user);
    sampler_refresh(rb->sampler[i], 0); /* reads its counter now, to detect a reset */
}

static void mark_away(struct released_boards *rb, size_t i)
{
    struct leaving *b = &rb->board[i];
    const struct gpu_sample *last = &sampler_board(rb->sampler[i], 0)->last;

    b->phase = DETACH_GONE;
    b->energy_mj = last->has & GPU_HAS_ENERGY ? last->energy_mj : 0;
    caps_back_after(rb->caps, i, b->hold_off_ns);
    sampler_detach(rb->sampler[i], 0, true);
    rb->devices |= device_bit(rb, i);
    log_event(LOG_LEVEL_NOTICE, LOG_EVENT_RELEASED, "gpu=%u uuid=%s",
              info_of(rb, i)->index, info_of(rb, i)->uuid);
}

static void mark_returning(struct released_boards *rb, size_t i)
{
    struct leaving *b = &rb->board[i];

    b->phase = DETACH_RETURNING;
    b->since_ns = loop_now_ns(rb->opts.loop);
    rb->devices &= ~device_bit(rb, i);
    rb->let_go &= ~(1ull << i); /* the next hold reopens the driver for it */
    sampler_detach(rb->sampler[i], 0, false);
    b->ear = (struct sampler_ear){.fn = on_heard, .user = rb, .overhears = true};
    sampler_hear(rb->sampler[i], 0, &b->ear);
}

/* The board answers again.  A reset shows in its counter, unless the counter has passed
 * its old value since.
 */
static void finish_return(struct released_boards *rb, size_t i)
{
    struct leaving *b = &rb->board[i];
    const struct gpu_info *info = info_of(rb, i);
    const struct gpu_sample *last = &sampler_board(rb->sampler[i], 0)->last;
    bool reset = last->has & GPU_HAS_ENERGY && last->energy_mj < b->energy_mj;

    b->phase = DETACH_HERE;
    stop_hearing(rb, i);
    rb->opts.on_detach(i, false, rb->opts.user);
    log_event(LOG_LEVEL_NOTICE, LOG_EVENT_TAKEN_BACK, "gpu=%u uuid=%s reset=%s",
              info->index, info->uuid, reset ? "true" : "unknown");
    if (reset)
        rb->opts.on_event(LEDGER_EVENT_RESET, i, "while it was released", rb->opts.user);
}

/* boards_attach() has moved all boards that were due. */
static int on_moved(struct boards *set, int r, const uw_error *err, void *user)
{
    struct released_boards *rb = user;
    bool stands = r == 0 || r == -EBUSY || r == -ENOTSUP;
    (void)set;

    rb->moving = false;
    for (size_t i = 0; i < rb->n; i++) {
        struct leaving *b = &rb->board[i];
        if (b->phase == DETACH_DRIVER && !(rb->asked >> i & 1))
            continue; /* was due later, and is next */
        if (b->phase == DETACH_DRIVER && r == 0)
            mark_away(rb, i);
        else if (b->phase == DETACH_DRIVER)
            refuse(rb, i, r, err->text);
        else if (b->phase == DETACH_GONE && r == 0 && !released_boards_is_away(rb, i))
            mark_returning(rb, i);
    }
    if (r == 0)
        keep(rb);
    if (!stands) {
        log_event(LOG_LEVEL_ERROR, LOG_EVENT_DRIVER, "reason=%s",
                  log_quote(err->text).text);
        rb->opts.reopen(rb->opts.user);
    }
    kick(rb, stands ? 0 : FAULT_MS);
    return 0;
}

static void move(struct released_boards *rb, uint64_t away)
{
    uw_error err = {""};
    int r = 0;

    if (!rb->known)
        r = boards_all(rb->boards, &rb->known, &rb->n_known);
    if (r == 0)
        r = boards_attach(rb->boards, away, on_moved, rb, &err);
    rb->moving = r == 0;
    rb->asked = away;
    for (size_t i = 0; r < 0 && i < rb->n; i++)
        if (rb->board[i].phase == DETACH_DRIVER)
            refuse(rb, i, r, err.text[0] ? err.text : "out of memory");
}

/* Takes the next step of a board.  True: the driver must be closed for it, or stay
 * closed.
 */
static bool step(struct released_boards *rb, size_t i)
{
    struct leaving *b = &rb->board[i];
    uint64_t now = loop_now_ns(rb->opts.loop);
    bool let_go = caps_let_go(rb->caps, i);

    if (!let_go && (b->phase == DETACH_BOOKING || b->phase == DETACH_ACTUATOR ||
                    (b->phase == DETACH_DRIVER && !rb->moving))) {
        b->phase = DETACH_HERE; /* withdrawn before it was detached */
        rb->opts.on_detach(i, false, rb->opts.user);
        answer(b, -EAGAIN, "the board was taken back meanwhile");
    }
    if (let_go && (b->phase == DETACH_HERE || b->phase == DETACH_RETURNING))
        begin(rb, i);
    if (b->phase == DETACH_BOOKING && (rb->opts.is_settled(i, rb->opts.user) ||
                                       now >= b->since_ns + BOOKED_MS * NS_PER_MS))
        b->phase = DETACH_ACTUATOR;
    if (b->phase == DETACH_ACTUATOR && ask_actuator(rb, i) < 0)
        b->phase = DETACH_DRIVER;
    if (b->phase == DETACH_GONE && let_go)
        (void)ask_actuator(rb, i); /* a new actuator */
    if (b->phase == DETACH_RETURNING) {
        const struct sampler_now *s = sampler_board(rb->sampler[i], 0);
        if (s->failures == 0 && s->last.began_ns >= b->since_ns)
            finish_return(rb, i);
    }
    return b->phase == DETACH_DRIVER || (b->phase == DETACH_GONE && let_go);
}

/* A board that this opening has never seen returns: all boards must be reopened. */
static bool reopens(struct released_boards *rb, uint64_t want)
{
    bool any = false;

    for (size_t i = 0; i < rb->n; i++) {
        struct leaving *b = &rb->board[i];
        if (b->phase != DETACH_GONE || !b->unseen || (want >> i & 1))
            continue;
        rb->devices &= ~device_bit(rb, i);
        any = true;
    }
    if (!any)
        return false;
    keep(rb);
    rb->opts.reopen(rb->opts.user);
    return true;
}

void released_boards_step(struct released_boards *rb)
{
    uint64_t want = 0, is = 0;

    if (!rb->boards || rb->ending)
        return;
    for (size_t i = 0; i < rb->n; i++) {
        want |= step(rb, i) ? 1ull << i : 0;
        is |= released_boards_is_away(rb, i) ? 1ull << i : 0;
    }
    if (want != is && !rb->moving && !reopens(rb, want))
        move(rb, want);
}

static int on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    (void)now_ns;
    released_boards_step(user);
    return 0;
}

/* ---- beginning and end ---- */

/* Boards that were released when the boards were opened stay released. */
static int resume(struct released_boards *rb, size_t i, uw_error *err)
{
    struct leaving *b = &rb->board[i];
    size_t device = info_of(rb, i)->index;
    int64_t until = rb->until_ns[device];
    int64_t left = until < 0 ? 0 : until - (int64_t)loop_now_ns(rb->opts.loop);

    b->phase = DETACH_GONE;
    b->unseen = true;
    sampler_detach(rb->sampler[i], 0, true);
    rb->opts.on_detach(i, true, rb->opts.user);
    int r = caps_release(rb->caps, i,
                         until < 0  ? 0
                         : left > 0 ? (uint64_t)left
                                    : 1,
                         NULL, NULL, err);
    caps_released_since(rb->caps, i, (uint64_t)rb->since_ns[device]);
    return r;
}

int released_boards_new(const struct released_boards_opts *opts,
                        struct released_boards **ret, uw_error *err)
{
    auto_(released_boards_free) struct released_boards *rb = calloc(1, sizeof *rb);
    uw_error why = {""};

    if (!rb)
        return fail(err, -ENOMEM, "out of memory");
    rb->opts = *opts;
    (void)snprintf(rb->path, sizeof rb->path, "%s", opts->path);
    int r = rb->path[0] ? read_known(rb, &why) : 0;
    if (r == -ENOMEM)
        return fail(err, r, "%s", why.text);
    if (r < 0 && r != -ENOENT)
        forget(rb, why.text);
    *ret = take(rb);
    return 0;
}

void released_boards_free(struct released_boards *rb)
{
    if (!rb)
        return;
    released_boards_close(rb);
    free(rb->known);
    free(rb);
}

int released_boards_open(struct released_boards *rb, struct boards *boards,
                         struct caps *caps, struct sampler *const *sampler, uw_error *err)
{
    int r = loop_timer_new(rb->opts.loop, UINT64_MAX, 0, on_timer, rb, &rb->timer, err);

    rb->boards = boards;
    rb->caps = caps;
    rb->n = boards_count(boards);
    rb->act = NULL;
    rb->let_go = 0;
    rb->moving = false;
    memset(rb->board, 0, sizeof rb->board);
    for (size_t i = 0; i < rb->n && r == 0; i++) {
        rb->sampler[i] = sampler[i];
        rb->board[i].of = rb;
        if (released_boards_is_away(rb, i))
            r = resume(rb, i, err);
    }
    return r;
}

void released_boards_close(struct released_boards *rb)
{
    for (size_t i = 0; rb->boards && i < rb->n; i++) {
        struct leaving *b = &rb->board[i];
        stop_hearing(rb, i);
        if (b->phase == DETACH_GONE) /* kept for resume() */
            note_times(rb, info_of(rb, i)->index);
        if (!rb->ending)
            answer(b, -EAGAIN, "the boards were reopened: release the board again");
    }
    rb->boards = NULL;
    rb->n = 0;
    loop_timer_free(take(rb->timer));
}

void released_boards_end(struct released_boards *rb)
{
    rb->ending = true;
}

void released_boards_kick(struct released_boards *rb)
{
    kick(rb, 0);
}

void released_boards_use_actuator(struct released_boards *rb, struct actuator *act)
{
    rb->act = act;
    for (size_t i = 0; i < rb->n && !act; i++)
        rb->board[i].asked = false;
    if (!act)
        rb->let_go = 0;
    kick(rb, 0);
}

/* ---- requests ---- */

static void on_let_go(int r, const char *text, void *user)
{
    struct leaving *b = user;

    if (r < 0) {
        caps_back_after(b->of->caps, (size_t)(b - b->of->board), b->hold_off_ns);
        answer(b, r, text);
    }
    kick(b->of, 0);
}

int released_boards_release(struct released_boards *rb, size_t i, uint64_t hold_off_ns,
                            caps_done_fn fn, void *user, uw_error *err)
{
    struct leaving *b = &rb->board[i];

    int r = boards_hang(rb->boards, err);
    if (r == 0)
        r = caps_release(rb->caps, i, 0, on_let_go, b, err);
    if (r < 0)
        return r;
    b->hold_off_ns = hold_off_ns;
    b->fn = fn;
    b->user = user;
    return 0;
}
