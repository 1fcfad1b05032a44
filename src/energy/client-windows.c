#include "energy/client-windows.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "board/boards.h"

enum {
    ASKING_MAX = 8, /* queries of one sampler at once; it has other callers as well */
    RETRY_MS = 50,
    FED_MAX_S = 8, /* longest wait for samples after a window's end */
};

/* A query of one board's meter. */
struct piece {
    struct piece *next;
    struct client_windows *w;
    struct window *win; /* NULL: dropped, the result is ignored */
    size_t board;
    uint64_t begin_ns, end_ns;
    bool asked;
};

struct part {         /* one board's part of a window */
    uint64_t upto_ns; /* before this time, energy is in sum or in pieces */
    unsigned pieces;  /* that wait or are queried */
    struct client_window_board sum;
};

struct window {
    struct window *next;
    uint64_t begin_ns, end_ns; /* begin_ns is also the id; end_ns 0: open */
    uid_t uid;
    client_window_fn fn;
    void *user;
    struct part part[];
};

struct client_windows {
    struct loop *loop;
    struct loop_timer *timer; /* queries pieces, answers windows */
    struct sampler *sampler[BOARDS_MAX];
    unsigned asking[BOARDS_MAX];
    size_t n, count;
    bool whole; /* see client_windows_opts */
    uint64_t last_id;
    struct window *first; /* oldest first */
    struct piece *piece;  /* oldest first */
};

/* ---- pieces ---- */

static void unknown(struct part *p, const char *text)
{
    if (p->sum.r < 0)
        return;
    p->sum.r = fail(&p->sum.error, -ENODATA, "%s", text);
}

/* Adds half widths linearly: the sensor's error dominates and is correlated. */
static void add(struct part *p, double energy_j, double half_j, enum meter_method method,
                uint32_t why)
{
    p->sum.energy_j += energy_j;
    p->sum.half_j += half_j;
    if (method > p->sum.method)
        p->sum.method = method;
    p->sum.why |= why;
}

static void soon(struct client_windows *w)
{
    loop_timer_set(w->timer, loop_now_ns(w->loop), 0);
}

static void want(struct client_windows *w, struct window *win, size_t board,
                 uint64_t begin_ns, uint64_t end_ns)
{
    struct part *part = &win->part[board];
    struct piece *p, **at = &w->piece;

    if (part->sum.r < 0 || end_ns <= begin_ns)
        return;
    p = calloc(1, sizeof *p);
    if (!p) {
        unknown(part, "out of memory in the daemon");
        return;
    }
    *p = (struct piece){
        .w = w, .win = win, .board = board, .begin_ns = begin_ns, .end_ns = end_ns};
    while (*at)
        at = &(*at)->next;
    *at = p;
    part->pieces++;
    soon(w);
}

static void unlink_piece(struct client_windows *w, struct piece *piece)
{
    struct piece **at = &w->piece;

    while (*at && *at != piece)
        at = &(*at)->next;
    if (*at)
        *at = piece->next;
    free(piece);
}

static int windows_on_piece(struct sampler *s, const struct sampler_window *answer,
                            void *user)
{
    struct piece *piece = user;
    struct client_windows *w = piece->w;
    (void)s;

    w->asking[piece->board]--;
    if (piece->win) {
        struct part *part = &piece->win->part[piece->board];
        part->pieces--;
        if (answer->r < 0)
            unknown(part, answer->error.text);
        else
            add(part, fmax(answer->board[0].energy_j, 0), answer->board[0].half_j,
                answer->board[0].method, answer->board[0].why);
    }
    unlink_piece(w, piece);
    soon(w);
    return 0;
}

/* Whether the meter has all samples for the piece, or the wait for them is over.  Else
 * requests a sample, as an idle board is sampled rarely.
 */
static bool is_fed(struct client_windows *w, const struct piece *p)
{
    struct meter *m = sampler_meter(w->sampler[p->board], 0);
    uint64_t now = loop_now_ns(w->loop), ready = meter_ready(m, p->end_ns);
    struct meter_state state;

    meter_state(m, &state);
    if (state.last_ns >= ready ||
        s_between(p->end_ns, now) > FED_MAX_S * fmax(1, loop_speed(w->loop)))
        return true;
    sampler_soon(w->sampler[p->board], ready > now ? ready : now);
    return false;
}

/* False: not yet, try again later. */
static bool ask_piece(struct client_windows *w, struct piece *p)
{
    if (w->asking[p->board] >= ASKING_MAX || !is_fed(w, p))
        return false;
    int r =
        sampler_window(w->sampler[p->board], p->begin_ns, p->end_ns, windows_on_piece, p);
    if (r < 0)
        return false;
    p->asked = true;
    w->asking[p->board]++;
    return true;
}

/* ---- windows ---- */

static struct window *find(const struct client_windows *w, uint64_t id)
{
    for (struct window *win = w->first; win; win = win->next)
        if (win->begin_ns == id)
            return win;
    return NULL;
}

static void forget(struct client_windows *w, struct window *win)
{
    struct window **at = &w->first;

    while (*at && *at != win)
        at = &(*at)->next;
    if (*at)
        *at = win->next;
    w->count--;
    for (struct piece *p = w->piece, *next; p; p = next) {
        next = p->next;
        if (p->win != win)
            continue;
        p->win = NULL;
        if (!p->asked)
            unlink_piece(w, p);
    }
    free(win);
}

static bool is_done(const struct client_windows *w, const struct window *win)
{
    bool done = win->end_ns != 0;

    for (size_t i = 0; i < w->n; i++)
        done = done && win->part[i].pieces == 0;
    return done;
}

static void answer(struct client_windows *w, struct window *win)
{
    struct client_window_board board[BOARDS_MAX];
    struct client_window_result result = {
        .begin_ns = win->begin_ns, .end_ns = win->end_ns, .n = w->n, .board = board};
    client_window_fn fn = win->fn;
    void *user = win->user;

    for (size_t i = 0; i < w->n; i++)
        board[i] = win->part[i].sum;
    forget(w, win);
    fn(0, &result, NULL, user);
}

static int windows_on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct client_windows *w = user;
    bool waits = false;

    for (struct piece *p = w->piece; p; p = p->next)
        if (!p->asked && !ask_piece(w, p))
            waits = true;
    for (struct window *win = w->first; win; win = win->next)
        if (is_done(w, win)) {
            answer(w, win); /* may have changed the list */
            loop_timer_set(timer, now_ns, 0);
            return 0;
        }
    if (waits)
        loop_timer_set(timer, now_ns + RETRY_MS * NS_PER_MS, 0);
    return 0;
}

/* Drops the oldest window of a user at the limit, but none that is ending. */
static void make_room(struct client_windows *w, uid_t uid)
{
    struct window *oldest = NULL;
    size_t n = 0;

    for (struct window *win = w->first; win; win = win->next) {
        if (win->uid != uid)
            continue;
        n++;
        if (!oldest && win->end_ns == 0)
            oldest = win;
    }
    if (n >= CLIENT_WINDOWS_PER_UID && oldest)
        forget(w, oldest);
}

int client_windows_begin(struct client_windows *w, uid_t uid, uint64_t *ret_id,
                         uw_error *err)
{
    uint64_t now = loop_now_ns(w->loop);
    struct window **at = &w->first;

    make_room(w, uid);
    if (w->count >= CLIENT_WINDOWS_MAX)
        return fail(err, -EBUSY, "%d windows are open on this node already",
                    CLIENT_WINDOWS_MAX);
    struct window *win = calloc(1, sizeof *win + w->n * sizeof *win->part);
    if (!win)
        return fail(err, -ENOMEM, "out of memory");
    win->begin_ns = now > w->last_id ? now : w->last_id + 1;
    win->uid = uid;
    for (size_t i = 0; i < w->n; i++) {
        win->part[i].upto_ns = win->begin_ns;
        sampler_mark(w->sampler[i], win->begin_ns);
        sampler_soon(w->sampler[i], win->begin_ns);
    }
    while (*at)
        at = &(*at)->next;
    *at = win;
    w->count++;
    w->last_id = win->begin_ns;
    *ret_id = win->begin_ns;
    return 0;
}

/* NULL: no such window of this user, *err is set. */
static struct window *find_own(const struct client_windows *w, uid_t uid, uint64_t id,
                               uw_error *err)
{
    struct window *win = find(w, id);

    if (win && (uid == CLIENT_WINDOWS_ANYBODY || win->uid == uid))
        return win;
    (void)fail(err, -ENOENT, "there is no window %" PRIu64 " of this user", id);
    return NULL;
}

int client_windows_end(struct client_windows *w, uid_t uid, uint64_t id,
                       client_window_fn fn, void *user, uw_error *err)
{
    struct window *win = find_own(w, uid, id, err);
    uint64_t now = loop_now_ns(w->loop);

    if (!win)
        return -ENOENT;
    if (win->end_ns)
        return fail(err, -EALREADY, "window %" PRIu64 " is ending", id);
    win->end_ns = now > win->begin_ns ? now : win->begin_ns + 1;
    win->fn = fn;
    win->user = user;
    for (size_t i = 0; i < w->n; i++) {
        sampler_mark(w->sampler[i], win->end_ns);
        sampler_soon(w->sampler[i], win->end_ns);
        want(w, win, i, win->part[i].upto_ns, win->end_ns);
    }
    soon(w);
    return 0;
}

int client_windows_drop(struct client_windows *w, uid_t uid, uint64_t id, uw_error *err)
{
    struct window *win = find_own(w, uid, id, err);

    if (!win)
        return -ENOENT;
    if (win->end_ns)
        return fail(err, -EALREADY, "window %" PRIu64 " is ending", id);
    forget(w, win);
    return 0;
}

/* Adds a booked stretch to an open window.  Queries the meter for the part of a stretch
 * that began before the window, and for a gap before the stretch.
 */
static void take_in(struct client_windows *w, struct window *win,
                    const struct attribution_total *t)
{
    struct part *p = &win->part[t->board];

    if (win->end_ns || p->sum.r < 0 || t->end_ns <= p->upto_ns)
        return;
    if (t->lost) {
        unknown(p, "the board did not answer for a part of the window");
    } else if (t->begin_ns >= p->upto_ns) {
        want(w, win, t->board, p->upto_ns, t->begin_ns);
        add(p, t->end_j - t->begin_j, t->half_j, t->method, t->why);
    } else {
        want(w, win, t->board, p->upto_ns, t->end_ns);
    }
    p->upto_ns = t->end_ns;
}

void client_windows_total(struct client_windows *w, const struct attribution_total *total)
{
    for (struct window *win = w->first; win && total->board < w->n && !w->whole;
         win = win->next)
        take_in(w, win, total);
}

size_t client_windows_count(const struct client_windows *w)
{
    return w->count;
}

/* ---- set-up ---- */

int client_windows_new(const struct client_windows_opts *opts,
                       struct client_windows **ret, uw_error *err)
{
    auto_(client_windows_free) struct client_windows *w = calloc(1, sizeof *w);

    if (!w)
        return fail(err, -ENOMEM, "out of memory");
    w->loop = opts->loop;
    w->whole = opts->whole;
    for (size_t i = 0; i < opts->n && i < BOARDS_MAX; i++)
        w->sampler[w->n++] = opts->sampler[i];
    int r = loop_timer_new(w->loop, UINT64_MAX, 0, windows_on_timer, w, &w->timer, err);
    if (r < 0)
        return r;
    *ret = take(w);
    return 0;
}

void client_windows_free(struct client_windows *w)
{
    if (!w)
        return;
    while (w->first) {
        struct window *win = w->first;
        client_window_fn fn = win->end_ns ? win->fn : NULL;
        void *user = win->user;
        forget(w, win);
        if (fn)
            fn(-EAGAIN, NULL, "the boards are being reopened", user);
    }
    while (w->piece) {
        struct piece *p = w->piece;
        if (p->asked)
            sampler_forget(w->sampler[p->board], p);
        unlink_piece(w, p);
    }
    loop_timer_free(w->timer);
    free(w);
}
