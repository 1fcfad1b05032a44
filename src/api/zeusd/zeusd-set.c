/* Write routes of zeusd's API: power limits become claims; the rest is refused. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/zeusd/zeusd-inside.h"
#include "base/units.h"

/* Zeus' client gives up after 5 s. */
static const uint64_t WAIT_NS = 3 * NS_PER_S;
static const uint64_t LOOK_NS = 20 * NS_PER_MS;

/* ---- waiting until a limit is in force ---- */

enum outcome { NOT_YET, IN_FORCE, FAILED };

static enum outcome look_at(const struct view_board *b, bool late, unsigned *ret_status)
{
    const struct caps_view *c = &b->cap;

    const bool there = c->state == CAPS_FREE
                           ? c->verdict.target_mw >= c->bounds.original_mw
                           : c->enforced_mw == c->verdict.target_mw;

    *ret_status = c->state == CAPS_DENIED ? 403 : 500;
    if (there || c->dry_run || c->state == CAPS_YIELDED)
        return IN_FORCE; /* yielded: another program's limit is left alone */
    if (c->state == CAPS_DENIED)
        return FAILED;
    if (!late)
        return NOT_YET;
    /* A ramp that has not reached its target counts as in force. */
    return c->state == CAPS_HELD && c->enforced_mw == c->ramp_mw ? IN_FORCE : FAILED;
}

/* True: x has been answered. */
static bool look_at_wait(struct zeusd_wait *w, const struct node_view *v, bool late)
{
    struct zeusd_errors errors = {0};

    for (size_t i = 0; i < v->n_boards && i < BOARDS_MAX; i++) {
        unsigned status;
        if (!(w->ids & (1ull << i)))
            continue;
        enum outcome o = look_at(&v->board[i], late, &status);
        if (o == NOT_YET) {
            text_free(&errors.text);
            return false;
        }
        if (o == FAILED)
            zeusd_error(&errors, v->board[i].info->index, status,
                        *v->board[i].cap.text ? v->board[i].cap.text
                                              : "claimed, but not in force yet");
    }
    struct http_exchange *x = w->x;
    w->x = NULL;
    http_on_gone(x, NULL, NULL);
    if (errors.status)
        zeusd_errors_reply(x, &errors);
    else
        http_reply(x, 200, NULL, NULL, 0, NULL);
    return true;
}

void zeusd_waits_tell(struct zeusd *z)
{
    uint64_t now = loop_now_ns(z->loop);
    const struct node_view *v = NULL;
    bool more = false;

    if (!z->ticking)
        return;
    for (size_t i = 0; i < n_elements(z->wait); i++) {
        struct zeusd_wait *w = &z->wait[i];
        if (!w->x)
            continue;
        v = v ? v : zeusd_look(z);
        if (!look_at_wait(w, v, now >= w->until_ns))
            more = true;
    }
    if (more)
        return;
    z->ticking = false;
    loop_timer_set(z->timer, UINT64_MAX, 0);
}

int zeusd_on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer, (void)now_ns;
    zeusd_waits_tell(user);
    return 0;
}

static void on_gone(struct http_exchange *x, void *user)
{
    struct zeusd_wait *w = user;
    (void)x;
    w->x = NULL;
}

static void wait_for(struct zeusd *z, struct http_exchange *x, uint64_t ids)
{
    uint64_t now = loop_now_ns(z->loop);
    struct zeusd_wait *w = z->wait, *end = w + n_elements(z->wait);

    while (w < end && w->x)
        w++;
    if (w == end) {
        http_fail(x, 503, "too many requests wait for a limit");
        return;
    }
    *w = (struct zeusd_wait){.z = z,
                             .x = x,
                             .ids = ids,
                             .until_ns =
                                 now + (uint64_t)((double)WAIT_NS * loop_speed(z->loop))};
    http_on_gone(x, on_gone, w);
    if (!z->ticking) {
        z->ticking = true;
        loop_timer_set(z->timer, now + LOOK_NS, LOOK_NS);
    }
}

/* ---- claims ---- */

/* The slot of this user's claim on that board, else the oldest slot, which is
 * overwritten; its claim still ends with its process.
 */
static struct zeusd_claim *place_for(struct zeusd *z, uid_t uid, unsigned gpu)
{
    struct zeusd_claim *oldest = z->claim;

    for (size_t i = 0; i < n_elements(z->claim); i++) {
        struct zeusd_claim *c = &z->claim[i];
        if (c->id && c->uid == uid && c->gpu == gpu)
            return c;
        if (c->made_ns < oldest->made_ns)
            oldest = c;
    }
    *oldest = (struct zeusd_claim){.uid = uid, .gpu = gpu};
    return oldest;
}

static unsigned status_of(int r)
{
    unsigned status = http_status(r);

    /* As in zeusd: a board without the ability makes a bad request. */
    return r == -ENOTSUP ? 400 : status == 404 ? 500 : status;
}

static int claim_one(struct zeusd *z, const struct http_exchange *x,
                     const struct node_who *who, unsigned gpu, uint32_t mw, uw_error *err)
{
    char board[16];
    struct node_claim ask = {.board = board,
                             .kind = CLAIM_NAMED,
                             .cap = {.mw = mw},
                             .why = "set through zeusd's API",
                             .pid = http_peer(x)->pid};
    uint64_t id = 0;

    (void)snprintf(board, sizeof board, "%u", gpu);
    int r = node_claim(z->node, who, &ask, &id, err);
    if (r < 0)
        return r;
    struct zeusd_claim *c = place_for(z, who->uid, gpu);
    if (c->id) /* after the new claim is made, so that one is always in force */
        (void)node_withdraw(z->node, who, c->id, NULL);
    c->id = id;
    c->made_ns = loop_now_ns(z->loop);
    return 0;
}

static void set_limits(struct zeusd *z, struct http_exchange *x,
                       const struct node_who *who, const struct zq_value *q,
                       const unsigned *ids, size_t n)
{
    struct zeusd_errors errors = {0};
    const struct node_view *v = zeusd_look(z);
    uint64_t set = 0;
    uw_error err;

    if (v->read_only && !v->dry_run) {
        for (size_t i = 0; i < n; i++)
            zeusd_error(&errors, ids[i], 500, v->actuator);
        zeusd_errors_reply(x, &errors);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        err.text[0] = '\0';
        int r = claim_one(z, x, who, ids[i], q[1].number, &err);
        if (r < 0)
            zeusd_error(&errors, ids[i], status_of(r), err.text);
        else
            set |= 1ull << zeusd_place(zeusd_look(z), ids[i]);
    }
    if (errors.status)
        zeusd_errors_reply(x, &errors);
    else if (q[2].truth)
        wait_for(z, x, set);
    else
        http_reply(x, 200, NULL, NULL, 0, NULL);
}

/* ---- the rest ---- */

static void set_persistence(struct zeusd *z, struct http_exchange *x, bool wanted,
                            const unsigned *ids, size_t n)
{
    const struct node_view *v = zeusd_look(z);
    struct zeusd_errors errors = {0};

    for (size_t i = 0; i < n; i++) {
        const struct gpu_info *info = zeusd_board(v, ids[i])->info;
        if (!info->has_persistence || info->persistence != wanted)
            zeusd_error(&errors, ids[i], 403,
                        "persistence mode is the administrator's: nvidia-smi -pm");
    }
    if (errors.status)
        zeusd_errors_reply(x, &errors);
    else
        http_reply(x, 200, NULL, NULL, 0, NULL);
}

static void refuse_clocks(struct http_exchange *x, const unsigned *ids, size_t n)
{
    struct zeusd_errors errors = {0};

    for (size_t i = 0; i < n; i++)
        zeusd_error(&errors, ids[i], 403, "clocks are not locked through this daemon");
    zeusd_errors_reply(x, &errors);
}

/* ---- routes ---- */

struct form {
    struct zq_field field[ZQ_FIELDS];
    size_t n;
};
static const struct form FORMS[] = {
    [ZW_LIMIT] = {{{"gpu_ids", ZQ_TEXT}, {"power_limit_mw", ZQ_U32}, {"block", ZQ_BOOL}},
                  3},
    [ZW_PERSISTENCE] = {{{"gpu_ids", ZQ_TEXT}, {"enabled", ZQ_BOOL}, {"block", ZQ_BOOL}},
                        3},
    [ZW_LOCK] = {{{"gpu_ids", ZQ_TEXT},
                  {"min_clock_mhz", ZQ_U32},
                  {"max_clock_mhz", ZQ_U32},
                  {"block", ZQ_BOOL}},
                 4},
    [ZW_RESET] = {{{"gpu_ids", ZQ_TEXT}, {"block", ZQ_BOOL}}, 2},
};

void zeusd_write(struct zeusd *z, struct http_exchange *x, const struct node_who *who,
                 enum zeusd_write what)
{
    const struct form *form = &FORMS[what];
    struct zq_value q[ZQ_FIELDS];
    char error[ZQ_ERROR];
    unsigned ids[ZQ_IDS];
    size_t n;

    if (!zq_read(x, form->field, form->n, q, error)) {
        zeusd_plain(x, 400, "Query deserialize error: %s", error);
        return;
    }
    if (!zq_ids(q[0].text, "GPU", ids, &n, error)) {
        zeusd_bad(x, 400, error);
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (!zeusd_board(zeusd_look(z), ids[i])) {
            zeusd_plain(x, 400, "GPU index %u does not exist.", ids[i]);
            return;
        }
    if (what == ZW_LIMIT)
        set_limits(z, x, who, q, ids, n);
    else if (what == ZW_PERSISTENCE)
        set_persistence(z, x, q[1].truth, ids, n);
    else
        refuse_clocks(x, ids, n);
}
