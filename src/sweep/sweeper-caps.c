/* The sweep's claims at its node: checking the right, holding, setting limits, release.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/names.h"
#include "base/units.h"
#include "sweep/sweeper-inside.h"

static struct node *node_of(const struct sweeper *s)
{
    return own_node_node(s->own);
}

static void look(const struct sweeper *s, size_t i, struct caps_view *ret)
{
    caps_look(node_caps(node_of(s)), i, ret);
}

/* Ends the sweep with a failure, before or after CMD has run. */
static int cannot(struct sweeper *s, const char *text)
{
    if (!s->stop)
        (void)fail(&s->result.error, 0, "%s", text);
    return sweeper_stop(s, s->started ? SWEEPER_FAILED : SWEEPER_BEFORE);
}

static int claim(struct sweeper *s, size_t i, uint32_t mw)
{
    const struct claimant_ask ask = {.mw = mw, .way = CLAIM_AT_ONCE, .why = "sweep"};
    uw_error err = {""};

    int r = claimant_state(s->claims, i, &ask, &err);
    return r < 0 ? cannot(s, err.text) : 0;
}

/* Claims the present limit: the actuator holds the board and checks the right, and
 * nothing changes.
 */
static int claim_present(struct sweeper *s, size_t i)
{
    struct caps_view v;

    look(s, i, &v);
    return claim(s, i, v.bounds.original_mw);
}

/* ---- the right ---- */

/* No board is named: checks the right on the first board that no other client holds. */
static int probe_next(struct sweeper *s)
{
    for (; s->probe < s->n; s->probe++) {
        struct board_view *v = board_view(s->all[s->probe]);
        if (v->has_limits && !v->error.text[0])
            return claim_present(s, s->probe);
    }
    return cannot(s, "no board here can be capped, or all are held by others");
}

static int on_probe(struct sweeper *s, const struct claim_told *told,
                    const struct caps_view *v)
{
    size_t i = s->probe;

    if (!told->claimed)
        return 0;
    if (v->state == CAPS_HELD) {
        s->held[i] = true; /* until it is released: on_look() */
        s->original_mw[i] = v->bounds.original_mw;
        claimant_drop(s->claims, i);
        return 0;
    }
    if (told->progress < CLAIM_UNMET)
        return 0;
    if (!v->taken_by)
        return cannot(s, v->text);
    claimant_drop(s->claims, i);
    s->probe++;
    return probe_next(s);
}

static void on_actuator(int r, const char *text, void *user)
{
    struct sweeper *s = user;

    s->right_known = true;
    if (s->stage != SWEEPER_S_RIGHT)
        return;
    if (s->stop)
        (void)sweeper_end_with(s, s->result.end);
    else if (r < 0)
        (void)cannot(s, text);
    else
        (void)(s->named ? sweeper_hold_used(s) : probe_next(s));
}

/* ---- holding ---- */

/* The number of times that another program changed the limit, or the driver lost it. */
static uint64_t changes_of(const struct caps_view *v)
{
    return v->changes[CAPS_CAUSE_OTHER] + v->changes[CAPS_CAUSE_DRIVER] +
           v->changes[CAPS_CAUSE_PERSISTENCE];
}

static void narrow(struct sweeper *s, const struct actuator_range *range)
{
    struct actuator_range *all = &s->allowed;

    all->min_mw = range->min_mw > all->min_mw ? range->min_mw : all->min_mw;
    if (!all->max_mw || range->max_mw < all->max_mw)
        all->max_mw = range->max_mw;
}

static bool all_used(const struct sweeper *s, const bool *is)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->use[i] && !is[i])
            return false;
    return true;
}

static int all_held(struct sweeper *s)
{
    int r = sweeper_fit_plan(s, &s->result.error);

    if (r == -ENOMEM || (r < 0 && s->started && !s->found_run))
        return sweeper_end_with(s, s->started ? SWEEPER_FAILED : SWEEPER_BEFORE);
    if (r < 0)
        return sweeper_end_with(s, SWEEPER_USAGE);
    return s->stage == SWEEPER_S_HOLD ? sweeper_after_hold(s) : sweeper_start_sampling(s);
}

static int on_hold(struct sweeper *s, size_t i, const struct claim_told *told,
                   const struct caps_view *v)
{
    if (!s->use[i] || s->held[i] || !told->claimed)
        return 0;
    if (v->state != CAPS_HELD)
        return told->progress >= CLAIM_UNMET ? cannot(s, v->text) : 0;
    s->held[i] = true;
    s->original_mw[i] = v->bounds.original_mw;
    s->changes[i] = changes_of(v);
    narrow(s, &v->range);
    return all_used(s, s->held) ? all_held(s) : 0;
}

int sweeper_hold_used(struct sweeper *s)
{
    int r = 0;

    if (s->energy)
        s->stage = SWEEPER_S_HOLD;
    for (size_t i = 0; i < s->n && r == 0 && s->stage < SWEEPER_S_RELEASE; i++)
        if (s->use[i])
            r = claim_present(s, i);
    return r;
}

/* ---- setting ---- */

static int on_cap(struct sweeper *s, size_t i, const struct claim_told *told,
                  const struct caps_view *v)
{
    char text[sizeof v->text + 64];

    if (v->asking) /* however long the driver takes: on_moved() */
        return 0;
    if (told->progress == CLAIM_CLAMPED && v->failed)
        return cannot(s, v->text);
    if (told->progress == CLAIM_CLAMPED) {
        (void)snprintf(text, sizeof text, "%s: the driver enforces %g W, not %g W",
                       sweeper_uuid(s, i), w_of_mw(told->in_force_mw),
                       w_of_mw(sweeper_cap(s)));
        return cannot(s, text);
    }
    s->set[i] = told->progress == CLAIM_MET;
    return all_used(s, s->set) ? sweeper_settle(s) : 0;
}

int sweeper_set_caps(struct sweeper *s, uint32_t mw)
{
    int r = 0;

    s->stage = SWEEPER_S_CAP;
    memset(s->set, 0, sizeof s->set);
    for (size_t i = 0; i < s->n && r == 0 && s->stage == SWEEPER_S_CAP; i++)
        if (s->use[i])
            r = claim(s, i, mw);
    return r;
}

/* ---- results of the claims ---- */

/* A daemon's caps leave another program's limit alone for a while; a sweep ends. */
static int on_others(struct sweeper *s, size_t i, const struct caps_view *v)
{
    bool lost = v->state == CAPS_HOLDING; /* the caps would set ours again at once */
    char text[200];

    (void)snprintf(text, sizeof text, "%s: %s, %g W; not changed", sweeper_uuid(s, i),
                   lost ? "the driver has lost the limit"
                        : names_text(NAMES_CAP_CAUSE, CAPS_CAUSE_OTHER),
                   w_of_mw(v->enforced_mw));
    return cannot(s, text);
}

/* The lease was lost, and the board is being held again. */
static void on_pause(struct sweeper *s)
{
    if (!s->spoilt)
        sweeper_note(
            s, "underwatt was stopped for a while and the original limits were restored: "
               "the run under way does not count");
    s->spoilt = true;
}

static int on_used(struct sweeper *s, size_t i, const struct claim_told *told,
                   const struct caps_view *v)
{
    if (v->state == CAPS_YIELDED || changes_of(v) != s->changes[i])
        return on_others(s, i, v);
    if (s->stage == SWEEPER_S_CAP || v->state != CAPS_HOLDING) {
        if (told->progress == CLAIM_UNMET || told->progress == CLAIM_OVER)
            return cannot(s, v->text[0] ? v->text : "the claim of the sweep has ended");
    } else {
        on_pause(s);
    }
    return s->stage == SWEEPER_S_CAP ? on_cap(s, i, told, v) : 0;
}

static int on_told(size_t i, const struct claim_told *told, const char *text, void *user)
{
    struct sweeper *s = user;
    struct caps_view v;
    (void)text; /* the view's */

    if (s->stage >= SWEEPER_S_RELEASE)
        return 0;
    look(s, i, &v);
    if (s->stage == SWEEPER_S_RIGHT && !s->named)
        return i == s->probe ? on_probe(s, told, &v) : 0;
    if (s->stage == SWEEPER_S_RIGHT || s->stage == SWEEPER_S_HOLD)
        return on_hold(s, i, told, &v);
    return s->held[i] && s->use[i] ? on_used(s, i, told, &v) : 0;
}

/* ---- changes that no claim reports ---- */

/* Whether a write was answered: a claim with another limit than the target's was
 * reported before.
 */
static int look_at_caps(struct sweeper *s)
{
    struct claim_told told;
    int r = 0;

    for (size_t i = 0; i < s->n && r == 0 && s->stage == SWEEPER_S_CAP; i++) {
        if (!s->use[i] || s->set[i])
            continue;
        claimant_look(s->claims, i, &told);
        r = on_told(i, &told, "", s);
    }
    return r;
}

/* ---- released boards ---- */

/* For a board without a claim: any other state is part of its hold, or of its release. */
static bool is_held(const struct sweeper *s, size_t i)
{
    struct caps_view v;

    look(s, i, &v);
    return v.state != CAPS_FREE;
}

static int on_look(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct sweeper *s = user;
    (void)timer;
    (void)now_ns;

    if (s->stage == SWEEPER_S_CAP)
        return look_at_caps(s);
    if (s->stage == SWEEPER_S_RELEASE)
        return sweeper_is_back(s) ? sweeper_finish(s) : 0;
    bool probed = s->stage == SWEEPER_S_RIGHT && !s->named && s->held[s->probe];
    if (!probed || claimant_claim(s->claims, s->probe) || is_held(s, s->probe))
        return 0;
    struct caps_view v;
    look(s, s->probe, &v);
    s->held[s->probe] = false;
    if (!v.unrestored) /* the board is released: its limit may change */
        s->original_mw[s->probe] = 0;
    return sweeper_start_sampling(s);
}

static void on_moved(size_t board, void *user)
{
    struct sweeper *s = user;
    (void)board;

    if (s->stage == SWEEPER_S_RIGHT || s->stage == SWEEPER_S_CAP ||
        s->stage == SWEEPER_S_RELEASE)
        loop_timer_set(s->again, loop_now_ns(s->loop), 0);
}

static void on_over(size_t board, uint64_t id, void *user)
{
    (void)board; /* reported by the claimant */
    (void)id;
    (void)user;
}

static int listen_to_caps(struct sweeper *s, uw_error *err)
{
    int r = loop_timer_new(s->loop, UINT64_MAX, 0, on_look, s, &s->again, err);

    s->listener = (struct caps_listener){.moved = on_moved, .over = on_over, .user = s};
    if (r == 0)
        caps_listen(node_caps(node_of(s)), &s->listener);
    return r;
}

void sweeper_forget_caps(struct sweeper *s)
{
    claimant_free(take(s->claims));
    if (s->again)
        caps_unlisten(node_caps(node_of(s)), &s->listener);
    loop_timer_free(take(s->again));
}

int sweeper_start_right(struct sweeper *s)
{
    const struct claimant_who who = {.source = CLAIM_OF_SWEEP,
                                     .uid = getuid(),
                                     .boards = UINT64_MAX >> (64 - s->n),
                                     .name = "underwatt sweep",
                                     .fn = on_told,
                                     .user = s};

    s->stage = SWEEPER_S_RIGHT;
    int r =
        claimant_new(s->loop, node_caps(node_of(s)), &who, &s->claims, &s->result.error);
    if (r == 0)
        r = listen_to_caps(s, &s->result.error);
    if (r == 0)
        r = node_need_actuator(node_of(s), on_actuator, s, &s->result.error);
    return r < 0 ? sweeper_end_with(s, SWEEPER_BEFORE) : 0;
}

/* ---- release ---- */

void sweeper_release(struct sweeper *s)
{
    for (size_t i = 0; i < s->n && s->claims; i++)
        claimant_drop(s->claims, i);
}

bool sweeper_is_back(struct sweeper *s)
{
    struct caps_view v;

    s->result.restored = true;
    for (size_t i = 0; i < s->n && s->claims; i++) {
        if (is_held(s, i))
            return false;
        look(s, i, &v);
        if (!v.unrestored)
            continue;
        if (!s->original_mw[i]) /* its first hold was not answered */
            s->original_mw[i] = v.bounds.original_mw;
        s->result.restored = false;
        (void)snprintf(s->result.restore, sizeof s->result.restore,
                       "%s: its original limit, %g W, is not confirmed",
                       sweeper_uuid(s, i), w_of_mw(s->original_mw[i]));
    }
    return true;
}

void sweeper_not_back(struct sweeper *s, int wait_s)
{
    size_t i = 0;

    while (i + 1 < s->n && !is_held(s, i))
        i++;
    s->result.restored = false;
    (void)snprintf(s->result.restore, sizeof s->result.restore,
                   "%s: the actuator does not answer within %d s", sweeper_uuid(s, i),
                   wait_s);
}
