#include "policy/limits.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "core/policy/heat.h"
#include "core/policy/rise.h"
#include "io/loop.h"
#include "policy/rule-claims.h"

_Static_assert((int)LIMITS_BOARDS_MAX <= (int)RISE_BOARDS_MAX, "one each");

#define STEP_NS NS_PER_S
/* An unknown temperature is reported after this time: at first no board has been read. */
#define UNKNOWN_S 30

/* One limit on one board, as shown. */
struct shown {
    enum limit_state state, told;
    uint64_t since_ns;
    uint32_t cap_mw;
    char why[LIMIT_TEXT];
};

struct limits {
    struct limits_opts o;
    struct policy_limits ask;
    struct rule_claims *claims; /* NULL: the boards are not open */
    struct loop_timer *timer;
    size_t n;
    bool rests;
    struct heat heat[LIMITS_BOARDS_MAX];
    struct rise rise;
    struct shown shown[LIMIT_KINDS][LIMITS_BOARDS_MAX];
    struct limits_board board[LIMITS_BOARDS_MAX];
    uint64_t refused; /* refused claims, while other boards were open */
};

static bool is_on(const struct limits *l)
{
    return l->claims && !l->rests && policy_has_limits(&l->ask);
}

/* ---- limits that others allow ---- */

/* The target of all claims except its own and, for the rise, those of searches: the
 * limit must not slow a search's measurements.
 */
static uint32_t others_mw(const struct limits *l, size_t i, enum limit_kind kind)
{
    const struct limits_board *b = &l->board[i];
    uint64_t own = rule_claims_id(l->claims, i, kind);
    struct claims others = {.n = 0};
    struct cap_verdict verdict;

    for (size_t k = 0; b->claims && k < b->claims->n; k++) {
        const struct claim *c = &b->claims->claim[k];
        if (c->id != own && (kind != LIMIT_RISE || c->source != CLAIM_OF_SEARCH))
            others.claim[others.n++] = *c;
    }
    cap_decide(&others, &b->bounds, &verdict);
    return verdict.target_mw;
}

/* ---- claims ---- */

static const char *const words[LIMIT_KINDS] = {
    [LIMIT_TEMPERATURE] = "temperature", [LIMIT_RISE] = "rise"};

const char *limit_word(enum limit_kind kind)
{
    return words[kind];
}

const char *limit_asks(const struct policy_limits *ask, enum limit_kind kind,
                       char ret[LIMIT_TEXT])
{
    ret[0] = '\0';
    if (kind == LIMIT_TEMPERATURE && ask->temperature_c > 0)
        (void)snprintf(ret, LIMIT_TEXT, "%g °C", ask->temperature_c);
    if (kind == LIMIT_RISE && ask->rise_w_s > 0)
        (void)snprintf(ret, LIMIT_TEXT, "%.3g W/s", ask->rise_w_s);
    return ret;
}

static void state_claim(struct limits *l, size_t i, enum limit_kind kind, uint32_t mw)
{
    struct shown *s = &l->shown[kind][i];
    struct engine_claim claim = {.mw = mw, .way = CLAIM_AT_ONCE};

    s->cap_mw = mw;
    if (!mw)
        s->why[0] = '\0';
    (void)snprintf(claim.who, sizeof claim.who, "limit %s", words[kind]);
    (void)snprintf(claim.why, sizeof claim.why, "%s", s->why);
    rule_claims_state(l->claims, i, kind, mw ? &claim : NULL);
}

/* Shows the state.  True if it has changed, or is the first. */
static bool show(struct limits *l, size_t i, enum limit_kind kind, enum limit_state state,
                 uint64_t now_ns)
{
    struct shown *s = &l->shown[kind][i];

    if (s->since_ns && s->state == state)
        return false;
    s->state = state;
    s->since_ns = now_ns;
    return true;
}

/* ---- temperature ---- */

static void tell(struct limits *l, size_t i, enum limit_state state, const char *text)
{
    struct limits_event event = {.kind = LIMIT_TEMPERATURE,
                                 .board = i,
                                 .state = state,
                                 .cap_mw = l->heat[i].cap_mw};

    (void)snprintf(event.text, sizeof event.text, "limit temperature: %s", text);
    l->o.event(&event, l->o.user);
}

static void tell_heat(struct limits *l, size_t i, enum limit_state was)
{
    const struct limits_board *b = &l->board[i];
    enum limit_state state = l->heat[i].state;
    char text[LIMIT_TEXT];

    if (state == LIMIT_SHORT)
        (void)snprintf(text, sizeof text,
                       "%d °C at the board's minimum, %g W: above the limit", b->temp_c,
                       w_of_mw(b->min_mw));
    else if (state == LIMIT_UNKNOWN)
        (void)snprintf(text, sizeof text, "the temperature is unknown");
    else if (state == LIMIT_ACTS && was == LIMIT_SHORT)
        (void)snprintf(text, sizeof text, "%d °C: the board is within the limit again",
                       b->temp_c);
    else if (state == LIMIT_ACTS)
        (void)snprintf(text, sizeof text, "takes effect: %s",
                       l->shown[LIMIT_TEMPERATURE][i].why);
    else if (was == LIMIT_UNKNOWN)
        (void)snprintf(text, sizeof text, "the temperature is known: %d °C", b->temp_c);
    else
        (void)snprintf(text, sizeof text, "no longer in effect: %d °C", b->temp_c);
    tell(l, i, state, text);
}

static void step_heat(struct limits *l, size_t i, uint64_t now_ns)
{
    const struct limits_board *b = &l->board[i];
    struct shown *s = &l->shown[LIMIT_TEMPERATURE][i];
    struct heat *h = &l->heat[i];
    const struct heat_now now = {.known = b->temp_known,
                                 .temp_c = b->temp_c,
                                 .limit_c = l->ask.temperature_c,
                                 .power_w = b->power_known ? b->power_w : 0,
                                 .slowed = b->slowed || !b->tells,
                                 .in_force_mw = b->in_force_mw,
                                 .min_mw = b->min_mw,
                                 .default_mw = b->default_mw,
                                 .top_mw = others_mw(l, i, LIMIT_TEMPERATURE),
                                 .open_mw = b->bounds.original_mw};

    if (heat_step(h, &now, now_ns)) {
        if (!s->why[0])
            (void)snprintf(s->why, sizeof s->why, "%d °C at %.0f W, the limit is %g °C",
                           b->temp_c, b->power_w, l->ask.temperature_c);
        state_claim(l, i, LIMIT_TEMPERATURE, h->cap_mw);
    } else if (h->cap_mw && !rule_claims_id(l->claims, i, LIMIT_TEMPERATURE)) {
        state_claim(l, i, LIMIT_TEMPERATURE, h->cap_mw); /* the claim was refused */
    }
    (void)show(l, i, LIMIT_TEMPERATURE, h->state, now_ns);
    if (h->state == s->told ||
        (h->state == LIMIT_UNKNOWN && s_between(s->since_ns, now_ns) < UNKNOWN_S))
        return;
    tell_heat(l, i, s->told);
    s->told = h->state;
}

/* ---- rise ---- */

static void why_rise(const struct limits *l, enum limit_state state, char ret[LIMIT_TEXT])
{
    static const char *const texts[] = {[LIMIT_NO_JOB] = "no job",
                                        [LIMIT_PAUSED] = "the job draws little power",
                                        [LIMIT_RISES] = "rising",
                                        [LIMIT_BEHIND] =
                                            "slightly above the caps of other claims"};
    const char *text = state < n_elements(texts) ? texts[state] : NULL;

    if (text)
        (void)snprintf(ret, LIMIT_TEXT, "%s; the node's power rises by at most %.3g W/s",
                       text, l->ask.rise_w_s);
}

static void step_rise(struct limits *l, uint64_t now_ns)
{
    struct rise_now now[LIMITS_BOARDS_MAX];

    for (size_t i = 0; i < l->n; i++) {
        const struct limits_board *b = &l->board[i];
        now[i] = (struct rise_now){.known = b->power_known && b->can_cap,
                                   .has_job = b->has_job,
                                   .slowed = b->slowed,
                                   .power_w = b->power_w,
                                   .min_mw = b->min_mw,
                                   .default_mw = b->default_mw,
                                   .original_mw = b->bounds.original_mw,
                                   .top_mw = others_mw(l, i, LIMIT_RISE)};
    }
    rise_step(&l->rise, l->ask.rise_w_s, now, l->n, now_ns);
    for (size_t i = 0; i < l->n; i++) {
        const struct rise_board *b = &l->rise.board[i];
        if (show(l, i, LIMIT_RISE, b->state, now_ns))
            why_rise(l, b->state, l->shown[LIMIT_RISE][i].why);
        state_claim(l, i, LIMIT_RISE, b->cap_mw);
    }
}

/* ---- life ---- */

static void forget(struct limits *l, enum limit_kind kind)
{
    for (size_t i = 0; i < l->n; i++) {
        if (l->claims)
            rule_claims_state(l->claims, i, kind, NULL);
        l->shown[kind][i] = (struct shown){.since_ns = 0};
    }
    if (kind == LIMIT_RISE)
        l->rise = (struct rise){.last_ns = 0};
    else
        memset(l->heat, 0, sizeof l->heat);
}

/* Reports the end of each reported state of a board. */
static void end_heat(struct limits *l)
{
    struct shown was[LIMITS_BOARDS_MAX];

    memcpy(was, l->shown[LIMIT_TEMPERATURE], sizeof was);
    forget(l, LIMIT_TEMPERATURE);
    for (size_t i = 0; i < l->n; i++)
        if (was[i].told != LIMIT_FREE)
            tell(l, i, LIMIT_FREE,
                 was[i].cap_mw ? "no longer in effect: removed from the policy"
                               : "removed from the policy");
}

static int on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct limits *l = user;

    if (!is_on(l))
        return 0;
    size_t n = l->o.look(l->board, l->o.user);
    l->n = n < l->n ? n : l->n;
    for (size_t i = 0; i < l->n && l->ask.temperature_c > 0; i++)
        if (l->board[i].can_cap)
            step_heat(l, i, now_ns);
    if (l->ask.rise_w_s > 0)
        step_rise(l, now_ns);
    loop_timer_set(timer, now_ns + STEP_NS, 0);
    return 0;
}

static void begin(struct limits *l)
{
    if (is_on(l))
        loop_timer_set(l->timer, loop_now_ns(l->o.loop), 0);
}

void limits_use(struct limits *l, const struct policy_limits *ask)
{
    l->ask = *ask;
    if (!(ask->temperature_c > 0))
        end_heat(l);
    if (!(ask->rise_w_s > 0))
        forget(l, LIMIT_RISE);
    begin(l);
}

int limits_open(struct limits *l, struct caps *caps, size_t n_boards, uw_error *err)
{
    int r = l->claims ? 0
                      : rule_claims_new(l->o.loop, caps, CLAIM_OF_LIMIT, n_boards,
                                        &l->claims, err);

    if (r < 0)
        return r;
    l->n = n_boards < LIMITS_BOARDS_MAX ? n_boards : LIMITS_BOARDS_MAX;
    begin(l);
    return 0;
}

void limits_rest(struct limits *l, bool rests)
{
    l->rests = rests;
    begin(l);
}

void limits_close(struct limits *l)
{
    if (!l->claims)
        return;
    l->refused += rule_claims_refused(l->claims);
    rule_claims_free(take(l->claims));
    forget(l, LIMIT_TEMPERATURE);
    forget(l, LIMIT_RISE);
    l->n = 0;
}

void limits_look(const struct limits *l, struct limits_view *ret)
{
    *ret = (struct limits_view){.ask = l->ask,
                                .n_boards = l->n,
                                .first_w = l->rise.first_w,
                                .fall_w = l->rise.fall_w};
    for (size_t k = 0; k < LIMIT_KINDS; k++) {
        for (size_t i = 0; i < l->n; i++) {
            const struct shown *s = &l->shown[k][i];
            ret->row[k][i] = (struct limits_row){
                .state = s->state,
                .since_ns = s->since_ns,
                .cap_mw = s->cap_mw,
                .why = s->why,
                .margin_known = k == LIMIT_TEMPERATURE && l->board[i].temp_known,
                .margin_k = l->ask.temperature_c - l->board[i].temp_c};
        }
    }
}

uint64_t limits_refused(const struct limits *l)
{
    return l->refused + (l->claims ? rule_claims_refused(l->claims) : 0);
}

int limits_new(const struct limits_opts *opts, struct limits **ret, uw_error *err)
{
    auto_(limits_free) struct limits *l = calloc(1, sizeof *l);

    if (!l)
        return fail(err, -ENOMEM, "out of memory");
    l->o = *opts;
    int r = loop_timer_new(opts->loop, UINT64_MAX, 0, on_timer, l, &l->timer, err);
    if (r < 0)
        return r;
    *ret = take(l);
    return 0;
}

void limits_free(struct limits *l)
{
    if (!l)
        return;
    limits_close(l);
    loop_timer_free(l->timer);
    free(l);
}
