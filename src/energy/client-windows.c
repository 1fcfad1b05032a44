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
#include "core/meter/half-sum.h"
#include "core/meter/power-log.h"

enum {
    ASKING_MAX = 8, /* concurrent queries of one sampler; it has other callers as well */
    RETRY_MS = 50,
    FED_MAX_S = 8,  /* longest wait for samples after a window's end is known */
    OFTEN_S = 2,    /* between starts of windows, as with a window per step */
    OFTEN_ROW = 3,  /* number of such windows in a row */
    MARK_MAX_S = 2, /* an older end is not marked: dense samples would come too late */
};
_Static_assert((int)CLIENT_WINDOWS_BACK_S < 180, "below the history of the meters");

/* A query of one board's meter. */
struct piece {
    struct piece *next;
    struct client_windows *w;
    struct window *win; /* NULL: dropped, the result is ignored */
    size_t board;
    uint64_t begin_ns, end_ns;
    uint64_t until_ns; /* waits for samples until then */
    bool asked;
    bool read;  /* a reading has been requested since the meter was ready */
    bool shown; /* a reading has been requested when the counter was to show the end */
    bool minus; /* booked to the window although it is after the window's end */
};

struct part {         /* one board's part of a window */
    uint64_t upto_ns; /* before this time, energy is in the sums or in pieces */
    unsigned pieces;  /* that wait or are being queried */
    int r;            /* -ENODATA: the energy is unknown; text is the reason (or NULL) */
    char *text;
    double energy_j;
    struct half_sum half;
    enum meter_method method;
    uint32_t why;
};

struct window {
    struct window *next;
    uint64_t begin_ns, end_ns; /* begin_ns is also the id; end_ns 0: open */
    uid_t uid;
    client_window_fn fn; /* callback of the waiting caller; NULL: none */
    void *user;
    uint64_t until_ns; /* latest time of that callback */
    bool keep;         /* the window stays after the callback */
    struct part part[];
};

struct client_windows {
    struct loop *loop;
    struct loop_timer *timer; /* queries pieces, answers windows */
    struct sampler *sampler[BOARDS_MAX];
    struct sampler_ear ear[BOARDS_MAX];
    unsigned asking[BOARDS_MAX];
    size_t n, count;
    bool whole, sparse;               /* see client_windows_opts */
    struct power_log log[BOARDS_MAX]; /* booked since the oldest window was begun */
    uint64_t last_id;
    uint64_t row;                 /* windows that began soon after the one before */
    struct window *first, **last; /* oldest first; where the next one goes */
    struct piece *piece, **last_piece;
};

/* ---- pieces ---- */

static void unknown(struct part *p, const char *text)
{
    if (p->r < 0)
        return;
    p->r = -ENODATA;
    p->text = strdup(text);
}

static void add(struct part *p, double energy_j, double half_j, enum meter_method method,
                uint32_t why)
{
    p->energy_j += energy_j;
    struct half_sum half = half_sum_of(energy_j, half_j, meter_counted(method, why));
    half_sum_add(&p->half, &half);
    if (method > p->method)
        p->method = method;
    p->why |= why;
}

static void soon(struct client_windows *w)
{
    loop_timer_set(w->timer, loop_now_ns(w->loop), 0);
}

static uint64_t fed_wait_ns(const struct client_windows *w)
{
    return ns_of_s(FED_MAX_S * fmax(1, loop_speed(w->loop)));
}

static void want(struct client_windows *w, struct window *win, size_t board,
                 uint64_t begin_ns, uint64_t end_ns, bool minus)
{
    struct part *part = &win->part[board];
    struct piece *p;

    if (part->r < 0 || end_ns <= begin_ns)
        return;
    p = calloc(1, sizeof *p);
    if (!p) {
        unknown(part, "out of memory in the daemon");
        return;
    }
    *p = (struct piece){.w = w,
                        .win = win,
                        .board = board,
                        .begin_ns = begin_ns,
                        .end_ns = end_ns,
                        .until_ns = loop_now_ns(w->loop) + fed_wait_ns(w),
                        .minus = minus};
    *w->last_piece = p;
    w->last_piece = &p->next;
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
    if (w->last_piece == &piece->next)
        w->last_piece = at;
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
            add(part, fmax(answer->board[0].energy_j, 0) * (piece->minus ? -1 : 1),
                answer->board[0].half_j, answer->board[0].method, answer->board[0].why);
    }
    unlink_piece(w, piece);
    soon(w);
    return 0;
}

static void windows_on_sample(size_t board, const struct gpu_sample *s, void *user)
{
    struct client_windows *w = user;
    (void)s;

    for (const struct piece *p = w->piece; p; p = p->next)
        if (!p->asked && p->board == board) {
            soon(w);
            return;
        }
}

/* Whether the meter has all samples for the piece, or the wait for them is over.  If
 * not, requests a sample: an idle board is sampled rarely, and no board at exactly this
 * moment.
 */
static bool is_fed(struct client_windows *w, struct piece *p)
{
    struct meter *m = sampler_meter(w->sampler[p->board], 0);
    uint64_t now = loop_now_ns(w->loop), ready = meter_ready(m, p->end_ns);
    struct meter_state state;

    meter_state(m, &state);
    if (state.last_ns >= ready || loop_waited(&p->until_ns, now, fed_wait_ns(w)))
        return true;
    sampler_soon(w->sampler[p->board], ready > now ? ready : now);
    if (!w->sparse && now >= ready && !p->read) {
        p->read = true;
        sampler_refresh(w->sampler[p->board], 0);
    }
    return false;
}

/* When to read the board for the end of a whole window; UINT64_MAX: never, or already
 * read.
 */
static uint64_t shows_ns(const struct client_windows *w, const struct piece *p)
{
    return w->whole && !p->shown
               ? meter_shows(sampler_meter(w->sampler[p->board], 0), p->end_ns)
               : UINT64_MAX;
}

/* Answers a whole window from a reading at its end, without waiting for the counter, if
 * the last moments do not change the energy.  Otherwise the next value of the counter is
 * read as soon as it is published.
 */
static bool is_known_early(struct client_windows *w, struct piece *p)
{
    struct part *part = &p->win->part[p->board];
    struct meter *m = sampler_meter(w->sampler[p->board], 0);
    struct meter_state state;
    struct meter_result got;

    if (!w->whole || p->minus || p->begin_ns != p->win->begin_ns)
        return false;
    meter_state(m, &state);
    bool shows = loop_now_ns(w->loop) >= shows_ns(w, p);
    p->shown |= shows;
    if (state.last_ns < p->end_ns || shows)
        sampler_refresh(w->sampler[p->board], 0);
    if (state.last_ns < p->end_ns ||
        meter_window_early(m, p->begin_ns, p->end_ns, &got) != 0)
        return false;
    add(part, fmax(got.energy_j, 0), got.half_j, got.method, got.why);
    part->pieces--;
    unlink_piece(w, p);
    return true;
}

/* False: not possible yet, try again later.  The piece may have been freed. */
static bool ask_piece(struct client_windows *w, struct piece *p)
{
    if (w->asking[p->board] >= ASKING_MAX)
        return false;
    if (is_known_early(w, p))
        return true;
    if (!is_fed(w, p))
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

static bool has_pieces(const struct client_windows *w, const struct window *win,
                       size_t board)
{
    for (size_t i = 0; i < w->n; i++)
        if (win->part[i].pieces > 0 && (board == SIZE_MAX || board == i))
            return true;
    return false;
}

/* Drops the pieces of a window, of one board or of all (SIZE_MAX).  Most windows have no
 * pieces by then, and the list is long where many windows end at once.
 */
static void drop_pieces(struct client_windows *w, const struct window *win, size_t board)
{
    if (!has_pieces(w, win, board))
        return;
    for (struct piece *p = w->piece, *next; p; p = next) {
        next = p->next;
        if (p->win != win || (board != SIZE_MAX && p->board != board))
            continue;
        p->win = NULL;
        if (!p->asked)
            unlink_piece(w, p);
    }
}

static void forget(struct client_windows *w, struct window *win)
{
    struct window **at = &w->first;

    while (*at && *at != win)
        at = &(*at)->next;
    if (*at)
        *at = win->next;
    if (w->last == &win->next)
        w->last = at;
    w->count--;
    drop_pieces(w, win, SIZE_MAX);
    for (size_t i = 0; i < w->n; i++)
        free(win->part[i].text);
    free(win);
}

static bool is_done(const struct client_windows *w, const struct window *win)
{
    bool done = win->end_ns != 0;

    for (size_t i = 0; i < w->n; i++)
        done = done && win->part[i].pieces == 0;
    return done;
}

static void show(const struct client_windows *w, const struct window *win,
                 struct client_window_result *ret)
{
    *ret = (struct client_window_result){
        .begin_ns = win->begin_ns, .end_ns = win->end_ns, .n = w->n};
    for (size_t i = 0; i < w->n; i++) {
        const struct part *p = &win->part[i];
        struct client_window_board *b = &ret->board[i];
        *b = (struct client_window_board){.energy_j = fmax(p->energy_j, 0),
                                          .half_j = half_sum_j(&p->half),
                                          .method = p->method,
                                          .why = p->why};
        if (p->r < 0)
            b->r = fail(&b->error, p->r, "%s", p->text ? p->text : "out of memory");
    }
}

/* Calls the window's callback: the energy is known, or is not known in time. */
static void answer(struct client_windows *w, struct window *win)
{
    struct client_window_result result;
    client_window_fn fn = win->fn;
    void *user = win->user;
    bool done = is_done(w, win);

    win->fn = NULL;
    if (!done) {
        fn(CLIENT_WINDOWS_NOT_YET, NULL, NULL, user);
        return;
    }
    show(w, win, &result);
    if (!win->keep)
        forget(w, win);
    fn(0, &result, NULL, user);
}

/* When to look at a piece again if no sample arrives earlier. */
static uint64_t next_look(const struct client_windows *w, const struct piece *p,
                          uint64_t now_ns)
{
    uint64_t ready = meter_ready(sampler_meter(w->sampler[p->board], 0), p->end_ns);
    uint64_t retry = now_ns + RETRY_MS * NS_PER_MS, shows = shows_ns(w, p);

    retry = shows > now_ns && shows < retry ? shows : retry;
    return ready > now_ns && ready < retry ? ready : retry;
}

static int windows_on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct client_windows *w = user;
    uint64_t next = UINT64_MAX;

    for (struct piece *p = w->piece, *after; p; p = after) {
        after = p->next;
        if (p->asked || ask_piece(w, p))
            continue;
        uint64_t at = next_look(w, p, now_ns);
        next = at < next ? at : next;
    }
    for (struct window *win = w->first; win; win = win->next) {
        if (!win->fn)
            continue;
        if (now_ns >= win->until_ns || is_done(w, win)) {
            answer(w, win); /* may have changed the list */
            loop_timer_set(timer, now_ns, 0);
            return 0;
        }
        if (win->until_ns < next)
            next = win->until_ns;
    }
    loop_timer_set(timer, next, 0);
    return 0;
}

/* Drops a window of a user at the limit: the oldest one whose energy is known and was
 * not queried, else the oldest one that has not ended, else the oldest one without a
 * waiting caller.
 */
static void make_room(struct client_windows *w, uid_t uid)
{
    struct window *known = NULL, *open = NULL, *ended = NULL;
    size_t n = 0;

    for (struct window *win = w->first; win; win = win->next) {
        if (win->uid != uid)
            continue;
        n++;
        if (!open && win->end_ns == 0)
            open = win;
        if (!ended && win->end_ns && !win->fn)
            ended = win;
    }
    if (n < CLIENT_WINDOWS_PER_UID)
        return;
    for (struct window *win = w->first; win && !known; win = win->next)
        if (win->uid == uid && !win->fn && is_done(w, win))
            known = win;
    struct window *gone = known ? known : open ? open : ended;
    if (gone)
        forget(w, gone);
}

/* Requests a reading of the board at this end of a window, and another one when the
 * driver has published the energy counted up to it.  Otherwise boards are read rarely,
 * and the energy between two readings cannot be assigned to either side of the end.
 */
static void read_around(struct client_windows *w, size_t board, uint64_t at_ns)
{
    struct sampler *s = w->sampler[board];

    if (!w->sparse)
        sampler_soon(s, at_ns);
    else
        sampler_around(s, at_ns, meter_ready(sampler_meter(s, 0), at_ns));
}

int client_windows_begin(struct client_windows *w, uid_t uid, uint64_t *ret_id,
                         uw_error *err)
{
    uint64_t now = loop_now_ns(w->loop);

    make_room(w, uid);
    if (w->count >= CLIENT_WINDOWS_MAX)
        return fail(err, -EBUSY, "%d windows are open on this node already",
                    CLIENT_WINDOWS_MAX);
    struct window *win = calloc(1, sizeof *win + w->n * sizeof *win->part);
    if (!win)
        return fail(err, -ENOMEM, "out of memory");
    bool soon_after = w->last_id && s_between(w->last_id, now) < OFTEN_S;
    w->row = soon_after ? w->row + 1 : 0;
    win->begin_ns = now > w->last_id ? now : w->last_id + 1;
    win->uid = uid;
    for (size_t i = 0; i < w->n; i++) {
        win->part[i].upto_ns = win->begin_ns;
        sampler_mark(w->sampler[i], win->begin_ns);
        if (w->row >= OFTEN_ROW)
            sampler_dense(w->sampler[i], now + OFTEN_S * NS_PER_S);
        read_around(w, i, win->begin_ns);
    }
    *w->last = win;
    w->last = &win->next;
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

/* Corrects the energy of a board from the window's begin to its end where the booked
 * stretches extend beyond the end.
 */
static void cut_back(struct client_windows *w, struct window *win, size_t board,
                     uint64_t now)
{
    struct part *p = &win->part[board];

    if (!w->whole && s_between(win->begin_ns, now) > CLIENT_WINDOWS_BACK_S) {
        want(w, win, board, win->end_ns, p->upto_ns, true);
        return;
    }
    drop_pieces(w, win, board);
    free(p->text);
    *p = (struct part){0};
    want(w, win, board, win->begin_ns, win->end_ns, false);
}

/* Whether to query the meter for the whole window although stretches are booked to it:
 * the meter still has all samples, and differences of the counter are cheap.  Each end
 * of a stretch adds to the interval.
 */
static bool is_short(const struct client_windows *w, const struct window *win,
                     size_t board, uint64_t now)
{
    struct meter_state state;

    meter_state(sampler_meter(w->sampler[board], 0), &state);
    return w->sparse && win->part[board].upto_ns > win->begin_ns &&
           win->part[board].r == 0 && state.counter_used &&
           s_between(win->begin_ns, now) < CLIENT_WINDOWS_BACK_S;
}

static void stop(struct client_windows *w, struct window *win, uint64_t at_ns)
{
    uint64_t now = loop_now_ns(w->loop);

    win->end_ns = at_ns > win->begin_ns ? at_ns : win->begin_ns + 1;
    for (size_t i = 0; i < w->n; i++) {
        if (s_between(win->end_ns, now) < MARK_MAX_S)
            sampler_mark(w->sampler[i], win->end_ns);
        read_around(w, i, win->end_ns);
        if (win->part[i].upto_ns <= win->end_ns && !is_short(w, win, i, now))
            want(w, win, i, win->part[i].upto_ns, win->end_ns, false);
        else
            cut_back(w, win, i, now);
    }
    soon(w);
}

int client_windows_stop(struct client_windows *w, uid_t uid, uint64_t id, uint64_t at_ns,
                        uw_error *err)
{
    struct window *win = find_own(w, uid, id, err);
    uint64_t now = loop_now_ns(w->loop);

    if (!win)
        return -ENOENT;
    if (win->end_ns)
        return 0;
    if (at_ns > now)
        return fail(err, -EINVAL, "window %" PRIu64 ": its end is in the future", id);
    if (at_ns && !w->whole && s_between(at_ns, now) > CLIENT_WINDOWS_BACK_S)
        return fail(err, -ERANGE,
                    "window %" PRIu64 ": its end is %.0f s ago, more than the %d s that "
                    "are kept",
                    id, s_between(at_ns, now), CLIENT_WINDOWS_BACK_S);
    stop(w, win, at_ns ? at_ns : now);
    return 0;
}

int client_windows_ask(struct client_windows *w, uid_t uid, uint64_t id,
                       const struct client_window_ask *ask, uw_error *err)
{
    struct window *win = find_own(w, uid, id, err);

    if (!win)
        return -ENOENT;
    if (win->fn)
        return fail(err, -EALREADY, "window %" PRIu64 " is ending", id);
    if (!win->end_ns)
        stop(w, win, loop_now_ns(w->loop));
    win->fn = ask->fn;
    win->user = ask->user;
    win->until_ns = ask->until_ns ? ask->until_ns : UINT64_MAX;
    win->keep = ask->keep;
    soon(w);
    return 0;
}

int client_windows_look(struct client_windows *w, uid_t uid, uint64_t id,
                        struct client_window_result *ret, uw_error *err)
{
    const struct window *win = find_own(w, uid, id, err);

    if (!win)
        return -ENOENT;
    if (!is_done(w, win))
        return 0;
    show(w, win, ret);
    return 1;
}

int client_windows_drop(struct client_windows *w, uid_t uid, uint64_t id, uw_error *err)
{
    struct window *win = find_own(w, uid, id, err);

    if (!win)
        return -ENOENT;
    if (win->fn)
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

    if (win->end_ns || p->r < 0 || t->end_ns <= p->upto_ns)
        return;
    if (t->lost) {
        unknown(p, "the board did not answer for a part of the window");
    } else if (t->begin_ns >= p->upto_ns) {
        want(w, win, t->board, p->upto_ns, t->begin_ns, false);
        add(p, t->end_j - t->begin_j, t->half_j, t->method, t->why);
    } else {
        want(w, win, t->board, p->upto_ns, t->end_ns, false);
    }
    p->upto_ns = t->end_ns;
}

void client_windows_total(struct client_windows *w, const struct attribution_total *total)
{
    if (total->board >= w->n || w->whole)
        return;
    if (!w->first)
        power_log_fini(&w->log[total->board]);
    else if (!total->lost)
        power_log_add(&w->log[total->board], total->begin_ns, total->end_ns,
                      total->end_j - total->begin_j);
    for (struct window *win = w->first; win; win = win->next)
        take_in(w, win, total);
}

/* ---- power over time ---- */

/* Removes the part of the first stretch before the window's start, and assigns to it the
 * rest of the window's energy.  If only a little of it is left, it is merged with the
 * next stretch.
 */
static size_t trim_first(struct meter_power *p, size_t n, const struct part *part,
                         double length)
{
    double before = n > 0 ? p[0].over_s - p[0].end_s : 0, rest = part->energy_j;

    if (before < 1e-6)
        return n;
    p[0].over_s = p[0].end_s;
    if (p[0].over_s < before && n > 1) {
        p[1].power_w = (p[0].power_w * p[0].over_s + p[1].power_w * p[1].over_s) /
                       (p[0].over_s + p[1].over_s);
        p[1].over_s += p[0].over_s;
        memmove(p, p + 1, --n * sizeof *p);
    }
    length -= p[0].over_s;
    for (size_t i = 1; i < n; i++) {
        rest -= p[i].power_w * p[i].over_s;
        length -= p[i].over_s;
    }
    if (part->r == 0 && fabs(length) < 1e-3) /* no gap */
        p[0].power_w = fmax(rest, 0) / p[0].over_s;
    return n;
}

/* The window's stretches from the log, up to *from_ns; after that time the meter is
 * queried.
 */
static size_t logged(const struct client_windows *w, const struct window *win,
                     size_t board, struct meter_power *buf, uint64_t *from_ns)
{
    const struct power_log *log = &w->log[board];
    uint64_t since = meter_since(sampler_meter(w->sampler[board], 0)), from = since;

    if (since <= win->begin_ns)
        return 0;
    if (since < win->end_ns)
        from = power_log_end_from(log, since);
    *from_ns = from && from < win->end_ns ? from : since;
    return power_log_between(log, win->begin_ns,
                             *from_ns < win->end_ns ? *from_ns : win->end_ns, buf);
}

int client_windows_powers(const struct client_windows *w, uid_t uid, uint64_t id,
                          struct client_window_powers *powers, uw_error *err)
{
    const struct window *win = find_own(w, uid, id, err);
    size_t board = powers->board, room = powers->room;
    size_t more = 0;

    if (!win)
        return -ENOENT;
    if (!is_done(w, win))
        return fail(err, -EBUSY, "window %" PRIu64 ": its energy is not known yet", id);
    if (board >= w->n || room < 1)
        return fail(err, -EINVAL, "no such board, or no room");
    uint64_t from = win->begin_ns;
    double length = s_between(win->begin_ns, win->end_ns);
    struct meter_power *all = calloc(POWER_LOG_MAX + room, sizeof *all);
    if (!all)
        return fail(err, -ENOMEM, "out of memory");
    size_t n = logged(w, win, board, all, &from);
    int r = from < win->end_ns ? meter_powers(sampler_meter(w->sampler[board], 0), from,
                                              win->end_ns, all + n, room, &more, err)
                               : fail(err, -ENODATA, "the window is too long ago");
    for (size_t i = 0; i < more; i++)
        all[n + i].end_s += s_between(win->begin_ns, from);
    n = trim_first(all, n + more, &win->part[board], length);
    if (n > room)
        n = meter_powers_join(all, n, length / (double)room);
    powers->n = n < room ? n : room;
    memcpy(powers->buf, all, powers->n * sizeof *all);
    free(all);
    return n > 0 ? 0 : r;
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
    w->sparse = opts->sparse;
    w->last = &w->first;
    w->last_piece = &w->piece;
    int r = loop_timer_new(w->loop, UINT64_MAX, 0, windows_on_timer, w, &w->timer, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < opts->n && i < BOARDS_MAX; i++) {
        w->sampler[w->n++] = opts->sampler[i];
        w->ear[i] = (struct sampler_ear){.fn = windows_on_sample,
                                         .user = w,
                                         .board = i,
                                         .overhears = true,
                                         .patient = true};
        sampler_hear(w->sampler[i], 0, &w->ear[i]);
    }
    *ret = take(w);
    return 0;
}

void client_windows_free(struct client_windows *w)
{
    if (!w)
        return;
    while (w->first) {
        struct window *win = w->first;
        client_window_fn fn = win->fn;
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
    for (size_t i = 0; i < w->n; i++) {
        sampler_deaf(w->sampler[i], 0, &w->ear[i]);
        power_log_fini(&w->log[i]);
    }
    free(w);
}
