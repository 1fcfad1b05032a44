/* The cap of a scheduler's job: the request, and the claim for it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "node/scheduler-inside.h"

/* ---- the cap ---- */

/* The job's claim on each board; 0: none. */
struct wanted {
    uint32_t mw[BOARDS_MAX];
};

/* The limits that a claim of the job's owner may request. */
static void range_of(const struct scheduler *s, const struct job_entry *job, size_t board,
                     uint32_t *ret_from, uint32_t *ret_to)
{
    const struct board_view *b = board_view(boards_at(s->o.boards, board));
    struct caps_view v;

    *ret_from = b->limits.min_mw;
    *ret_to = b->limits.max_mw;
    if (job->uid != 0)
        node_config_range(s->o.config, &b->limits, ret_from, ret_to);
    caps_look(s->o.caps, board, &v);
    if (v.range.min_mw > *ret_from)
        *ret_from = v.range.min_mw;
    if (v.range.max_mw && v.range.max_mw < *ret_to)
        *ret_to = v.range.max_mw;
}

/* The power of a board's slices is unknown, so a cap would apply to the other job, too.
 */
static int check_slices(const struct scheduler *s, const struct job_entry *job,
                        size_t board, uw_error *err)
{
    const struct gpu_info *info = scheduler_board(s, board);
    uint64_t other = info->mig_enabled ? roster_other(s->o.roster, job->id, board) : 0;

    return other ? fail(err, -EBUSY,
                        "cap: GPU %u is in MIG mode and job %" PRIu64
                        " has a part of it: a cap applies to the whole board",
                        info->index, other)
                 : 0;
}

/* A percentage refers to each board's default limit.  1: the board's lowest limit is
 * above it and replaces it.
 */
static int want_on(const struct scheduler *s, const struct job_entry *job,
                   const struct cap_arg *cap, size_t board, uint32_t *ret, uw_error *err)
{
    const struct board_view *b = board_view(boards_at(s->o.boards, board));
    uint32_t from = 0, to = 0, mw = cap->mw;
    unsigned gpu = b->info->index;

    if (!b->has_limits)
        return fail(err, -ENOTSUP, "cap: GPU %u cannot be capped", gpu);
    range_of(s, job, board, &from, &to);
    if (cap->percent > 0)
        mw = mw_of_w(w_of_mw(b->limits.default_mw) * cap->percent / 100);
    *ret = mw < from ? from : mw;
    if (mw > to)
        return fail(err, -ERANGE, "cap: %g W is above %g W, the highest limit of GPU %u",
                    w_of_mw(mw), w_of_mw(to), gpu);
    int r = check_slices(s, job, board, err);
    if (mw >= from || r < 0)
        return r;
    (void)fail(err, 0, "cap: %g W is below %g W, the lowest limit of GPU %u", w_of_mw(mw),
               w_of_mw(from), gpu);
    return cap->percent > 0 ? 1 : -ERANGE;
}

static int want(const struct scheduler *s, const struct job_entry *job,
                const struct cap_arg *cap, struct wanted *ret, uw_error *err)
{
    int r = job->given ? 0 : fail(err, -ENODEV, "cap: the job has no GPU");
    bool all_low = true;

    *ret = (struct wanted){{0}};
    for (size_t i = 0; i < scheduler_boards(s) && r >= 0; i++) {
        if (!(job->given >> i & 1))
            continue;
        r = want_on(s, job, cap, i, &ret->mw[i], err);
        all_low &= r == 1;
    }
    if (r >= 0 && all_low)
        return -ERANGE;
    return r < 0 ? r : 0;
}

/* The job's claim on a board; NULL: none. */
static const struct claim *claim_on(const struct scheduler *s, uint64_t job, size_t board,
                                    struct caps_view *v)
{
    caps_look(s->o.caps, board, v);
    for (size_t i = 0; i < v->claims->n; i++) {
        const struct claim *c = &v->claims->claim[i];
        if (c->source == CLAIM_OF_SCHEDULER && c->job == job)
            return c;
    }
    return NULL;
}

/* Whether the job's claims are as wanted.  *ret_id: the job's claim; 0: none. */
static bool is_stated(const struct scheduler *s, uint64_t job,
                      const struct wanted *wanted, uint64_t *ret_id)
{
    struct caps_view v;
    bool same = true;

    *ret_id = 0;
    for (size_t i = 0; i < scheduler_boards(s); i++) {
        const struct claim *c = claim_on(s, job, i, &v);
        same &= (c ? c->mw : 0) == wanted->mw[i];
        *ret_id = c ? c->id : *ret_id;
    }
    return same;
}

void scheduler_hold_none(struct scheduler *s, uint64_t job)
{
    const struct wanted none = {{0}};
    uint64_t id = 0;

    if (!is_stated(s, job, &none, &id))
        s->o.withdraw(id, CLAIM_END_WITHDRAWN, s->o.user);
}

/* Withdraws the claim from the boards for which the job requests no cap any more;
 * returns whether it remains on others.
 */
static bool keep_claim(struct scheduler *s, uint64_t id, const struct wanted *wanted)
{
    struct caps_view v;
    bool left = false;

    for (size_t i = 0; id && i < scheduler_boards(s); i++) {
        caps_look(s->o.caps, i, &v);
        bool there = claims_find(v.claims, id);
        if (there && !wanted->mw[i])
            (void)caps_withdraw(s->o.caps, i, id, NULL);
        left |= there && wanted->mw[i];
    }
    return left;
}

static int check_room(const struct scheduler *s, const struct claim *claim,
                      const struct wanted *wanted, uw_error *err)
{
    struct caps_view v;

    for (size_t i = 0; i < scheduler_boards(s); i++) {
        caps_look(s->o.caps, i, &v);
        if (wanted->mw[i] && !claims_has_room(v.claims, claim))
            return fail(err, -E2BIG, "GPU %u has no place for another claim",
                        scheduler_board(s, i)->index);
    }
    return 0;
}

/* Makes the claim on all boards or on none: a failed attempt must change no cap. */
static int make_claim(struct scheduler *s, struct claim *claim,
                      const struct wanted *wanted, uw_error *err)
{
    int r = check_room(s, claim, wanted, err);

    for (size_t i = 0; i < scheduler_boards(s) && r == 0; i++) {
        claim->mw = wanted->mw[i];
        if (claim->mw)
            r = caps_claim(s->o.caps, i, claim, &claim->id, err);
    }
    if (r < 0 && claim->id)
        s->o.withdraw(claim->id, CLAIM_END_REFUSED, s->o.user);
    return r;
}

/* Restores the job's claim on the first n boards. */
static void put_back(struct scheduler *s, const struct claim *was,
                     const struct wanted *there, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct claim claim = *was;
        claim.mw = there->mw[i];
        if (claim.mw)
            (void)caps_claim(s->o.caps, i, &claim, NULL, NULL);
        else
            (void)caps_withdraw(s->o.caps, i, claim.id, NULL);
    }
}

/* Replaces the earlier claim of the job, which must be its only one: boards without room
 * for another claim accept this.  Otherwise like make_claim().
 */
static int replace_claim(struct scheduler *s, uint64_t before, struct claim *claim,
                         const struct wanted *wanted)
{
    struct wanted there = {{0}};
    struct claim was = {0};
    struct caps_view v;

    for (size_t i = 0; i < scheduler_boards(s); i++) {
        const struct claim *c = claim_on(s, claim->job, i, &v);
        if (c && c->id != before)
            return -E2BIG;
        if (c) {
            was = *c;
            there.mw[i] = c->mw;
        }
    }
    claim->id = before;
    int r = check_room(s, claim, wanted, NULL);
    for (size_t i = 0; i < scheduler_boards(s) && r == 0; i++) {
        claim->mw = wanted->mw[i];
        if (claim->mw)
            r = caps_claim(s->o.caps, i, claim, NULL, NULL);
        if (r < 0)
            put_back(s, &was, &there, i);
    }
    return r;
}

/* Makes one claim on all boards.  The earlier claim ends after the new one has begun, or
 * is replaced by it.  If that may succeed later, the earlier claim is kept; each look
 * tries again.
 */
static int state(struct scheduler *s, const struct job_entry *job,
                 const struct job_record *rec, const struct wanted *wanted, uw_error *err)
{
    struct claim claim = {.kind = CLAIM_NAMED,
                          .source = CLAIM_OF_SCHEDULER,
                          .until_ns = CLAIM_FOREVER,
                          .uid = job->uid,
                          .job = job->id,
                          .way = CLAIM_AT_ONCE};
    uint64_t before = 0;
    uw_error why = {""};

    if (is_stated(s, job->id, wanted, &before))
        return 0;
    (void)snprintf(claim.who, sizeof claim.who, "%.95s", job->name);
    (void)snprintf(claim.why, sizeof claim.why, "%.95s", rec->ask);
    int r = make_claim(s, &claim, wanted, &why);
    if (r == -E2BIG && before && replace_claim(s, before, &claim, wanted) == 0) {
        (void)keep_claim(s, before, wanted);
        return 0;
    }
    if ((r == -E2BIG || r == -EAGAIN) && keep_claim(s, before, wanted))
        return fail(err, r, "cap: %s; the earlier cap stays in force", why.text);
    if (before)
        s->o.withdraw(before, CLAIM_END_WITHDRAWN, s->o.user);
    return r < 0 ? fail(err, r, "cap: %s", why.text) : 0;
}

/* ---- requests of a job ---- */

const char *scheduler_after(const char *ask, const char *word)
{
    size_t n = strlen(word);

    return strncmp(ask, word, n) == 0 && ask[n] == ' ' ? ask + n + 1 : NULL;
}

static int read_cap(const struct scheduler *s, const char *ask, struct cap_arg *ret,
                    uw_error *err)
{
    const char *preset = scheduler_after(ask, "preset"),
               *cap = scheduler_after(ask, "cap");

    if (preset)
        return s->o.preset(preset, ret, s->o.user, err);
    int r = parse_limit(cap, ret, err);
    return r < 0 ? fail_in(err, r, "cap") : 0;
}

bool scheduler_caps(const struct job_record *rec)
{
    return scheduler_after(rec->ask, "cap") || scheduler_after(rec->ask, "preset");
}

int scheduler_hold(struct scheduler *s, const struct job_entry *job,
                   const struct job_record *rec, bool is_new, uw_error *err)
{
    struct cap_arg cap = {0};
    struct wanted wanted = {{0}};
    int r = read_cap(s, rec->ask, &cap, err);

    if (r == 0)
        r = want(s, job, &cap, &wanted, err);
    if (r < 0 && (is_new || r != -ENOTSUP))
        scheduler_hold_none(s, job->id);
    if (r < 0)
        return r;
    return state(s, job, rec, &wanted, err);
}
