#include "sweep/sweeper.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "board/selection.h"
#include "sweep/sweeper-inside.h"

enum {
    FEED_MS = 250, /* least time of sampling before the first run */
    RELEASE_S = 6, /* longest wait for releases (wall-clock time) */
    LOOK_FIRST_MS = 100,
    LOOK_MS = 500,
};

void sweeper_note(struct sweeper *s, const char *text)
{
    if (s->o.note)
        s->o.note(text, s->o.user);
}

const char *sweeper_uuid(const struct sweeper *s, size_t i)
{
    return board_view(s->all[i])->info->uuid;
}

uint32_t sweeper_cap(const struct sweeper *s)
{
    return s->plan && s->state->n_done < s->n_plan ? s->plan[s->state->n_done] : 0;
}

/* ---- the plan ---- */

/* The range common to CMD's boards; to all boards while CMD's are unknown. */
static int common_range(const struct sweeper *s, struct sweep_range *ret, uw_error *err)
{
    struct sweep_range g = {.max_mw = UINT32_MAX};

    for (size_t i = 0; i < s->n; i++) {
        const struct board_view *v = board_view(s->all[i]);
        if (s->named && !s->use[i])
            continue;
        if (!v->has_limits)
            return fail(err, -EINVAL, "%s: its power limits cannot be read%s%.90s",
                        v->info->uuid, v->error.text[0] ? ": " : "", v->error.text);
        if (g.default_mw && g.default_mw != v->limits.default_mw)
            return fail(
                err, -EINVAL,
                "boards with different default limits (%g W, %g W) have no common "
                "reference: name like ones with --gpus",
                w_of_mw(g.default_mw), w_of_mw(v->limits.default_mw));
        g.default_mw = v->limits.default_mw;
        g.min_mw = v->limits.min_mw > g.min_mw ? v->limits.min_mw : g.min_mw;
        g.max_mw = v->limits.max_mw < g.max_mw ? v->limits.max_mw : g.max_mw;
    }
    g.min_mw = s->allowed.min_mw > g.min_mw ? s->allowed.min_mw : g.min_mw;
    if (s->allowed.max_mw && s->allowed.max_mw < g.max_mw)
        g.max_mw = s->allowed.max_mw;
    if (g.min_mw > g.max_mw)
        return fail(err, -EINVAL, "the boards have no power limit in common");
    g.from_mw = s->o.from_mw ? s->o.from_mw : g.min_mw;
    g.to_mw = s->o.to_mw ? s->o.to_mw : g.max_mw;
    g.step_mw = s->o.step_mw;
    g.from_typed = s->o.from_typed;
    g.to_typed = s->o.to_typed;
    g.step_typed = s->o.step_typed;
    *ret = g;
    return 0;
}

static int copy_words(char ***ret, const char *const *argv, uw_error *err)
{
    size_t n = 0;

    while (argv[n])
        n++;
    char **copy = calloc(n + 1, sizeof *copy);
    for (size_t i = 0; copy && i < n; i++) {
        copy[i] = strdup(argv[i]);
        if (!copy[i])
            n = i; /* the copied words are freed with the state */
    }
    *ret = copy;
    return copy && (n == 0 || copy[n - 1]) && !argv[n]
               ? 0
               : fail(err, -ENOMEM, "out of memory");
}

/* The state of a new sweep. */
static int fresh_state(struct sweeper *s, const struct sweep_range *range,
                       struct sweep_state **ret, uw_error *err)
{
    auto_(sweep_state_free) struct sweep_state *state = calloc(1, sizeof *state);

    if (!state)
        return fail(err, -ENOMEM, "out of memory");
    state->board = calloc(s->n + 1, sizeof *state->board);
    state->done = calloc(s->n_plan + 1, sizeof *state->done);
    if (!state->board || !state->done)
        return fail(err, -ENOMEM, "out of memory");
    int r = copy_words(&state->argv, s->o.argv, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < s->n; i++) {
        if (!s->use[i])
            continue;
        state->simulated |= board_view(s->all[i])->info->simulated;
        (void)snprintf(state->board[state->n_boards++], sizeof *state->board, "%s",
                       sweeper_uuid(s, i));
    }
    state->range = *range;
    state->runs = s->o.runs;
    state->seed = s->o.seed;
    state->began_utc_ns = loop_utc_ns(s->loop);
    *ret = take(state);
    return 0;
}

/* Continues from the state file if that is of the same sweep. */
static int resume(struct sweeper *s, struct sweep_state *fresh, uw_error *err)
{
    const struct sweep_state *found = s->state;

    if (!found)
        return 0;
    int r = sweep_state_same(found, fresh, err);
    for (size_t i = 0; r >= 0 && i < found->n_done && i < s->n_plan; i++) {
        if (found->done[i].cap_mw != s->plan[i])
            r = fail(err, -EINVAL, "its run %zu was at %g W, the plan has %g W", i + 1,
                     w_of_mw(found->done[i].cap_mw), w_of_mw(s->plan[i]));
        fresh->done[i] = found->done[i];
        fresh->n_done = i + 1;
    }
    if (r < 0)
        return fail_in(err, r, "cannot continue with %.60s", s->o.state_path);
    s->result.n_resumed = fresh->n_done;
    s->at_offset_s = (double)(fresh->began_utc_ns - found->began_utc_ns) * 1e-9;
    if (s->at_offset_s < 0)
        s->at_offset_s = 0;
    fresh->began_utc_ns = found->began_utc_ns;
    return 0;
}

int sweeper_make_plan(struct sweeper *s, bool must, uw_error *err)
{
    auto_(sweep_state_free) struct sweep_state *fresh = NULL;
    auto_(mem_free) uint32_t *caps = NULL;
    struct sweep_range range = {0};
    size_t n_caps = 0;

    int r = common_range(s, &range, err);
    if (r < 0)
        return must ? r : 0;
    r = sweep_grid(&range, &caps, &n_caps, err);
    if (r < 0 || !must)
        return r;
    struct sweep_order order = {range.default_mw, s->o.runs, s->o.seed};
    r = sweep_plan(caps, n_caps, &order, &s->plan, &s->n_plan, err);
    if (r >= 0)
        r = fresh_state(s, &range, &fresh, err);
    if (r >= 0 && fresh)
        r = resume(s, fresh, err);
    if (r < 0)
        return r;
    sweep_state_free(s->state);
    s->state = take(fresh);
    s->start_ns = loop_now_ns(s->loop);
    return 0;
}

static bool is_original(const struct sweeper *s, uint32_t mw)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->use[i] && s->original_mw[i] != mw)
            return false;
    return true;
}

static bool is_allowed(const struct sweeper *s, uint32_t mw)
{
    return !s->allowed.max_mw || (mw >= s->allowed.min_mw && mw <= s->allowed.max_mw) ||
           is_original(s, mw);
}

static bool plan_fits(const struct sweeper *s)
{
    for (size_t i = 0; i < s->n_plan; i++)
        if (!is_allowed(s, s->plan[i]))
            return false;
    return true;
}

/* Plans the same sweep in a narrower range; keeps the run that found CMD's boards. */
static int plan_anew(struct sweeper *s, uw_error *err)
{
    auto_(sweep_state_free) struct sweep_state *old = take(s->state);
    auto_(mem_free) uint32_t *plan = take(s->plan);
    size_t n_plan = s->n_plan;
    uint64_t start_ns = s->start_ns;

    int r = sweeper_make_plan(s, true, err);
    if (r < 0) { /* restore the old plan */
        free(s->plan);
        s->plan = take(plan);
        s->n_plan = n_plan;
        s->state = take(old);
        return r;
    }
    memcpy(s->state->done, old->done, old->n_done * sizeof *old->done);
    s->state->n_done = old->n_done;
    s->state->began_utc_ns = old->began_utc_ns;
    s->start_ns = start_ns;
    return 0;
}

int sweeper_fit_plan(struct sweeper *s, uw_error *err)
{
    const struct actuator_range *all = &s->allowed;
    char text[160];

    if (plan_fits(s))
        return 0;
    (void)snprintf(text, sizeof text, "root's configuration allows %g W to %g W here",
                   w_of_mw(all->min_mw), w_of_mw(all->max_mw));
    if (!is_allowed(s, s->state->range.default_mw))
        return fail(err, -ERANGE,
                    "%s, not the default limit, %g W, which all caps are compared with",
                    text, w_of_mw(s->state->range.default_mw));
    if (s->state->n_done > s->found_run)
        return fail(err, -ERANGE, "%s, and %.60s has caps of %g W to %g W", text,
                    s->o.state_path, w_of_mw(s->state->range.from_mw),
                    w_of_mw(s->state->range.to_mw));
    int r = plan_anew(s, err);
    if (r < 0)
        return fail_in(err, r, "%s", text);
    (void)snprintf(text + strlen(text), sizeof text - strlen(text),
                   ": the sweep keeps within");
    sweeper_note(s, text);
    return 0;
}

/* ---- the end ---- */

static int finish(struct sweeper *s);

static int on_reread(bool restored, const char *text, void *user)
{
    struct sweeper *s = user;

    s->result.restored = restored;
    (void)snprintf(s->result.restore, sizeof s->result.restore, "%s", text);
    s->final_read_over = true;
    return finish(s);
}

/* Reads the limits in force where releases were not confirmed.  True: on_reread()
 * follows. */
static bool reread(struct sweeper *s)
{
    struct final_read_board boards[BOARDS_MAX];
    size_t n = 0;

    if (s->result.restored || s->stage != SWEEPER_S_RELEASE || loop_is_virtual(s->loop))
        return false;
    for (size_t i = 0; i < s->n; i++)
        if (s->original_mw[i])
            boards[n++] = (struct final_read_board){s->all[i], s->original_mw[i]};
    s->stage = SWEEPER_S_REREAD;
    loop_timer_set(s->timer, UINT64_MAX, 0);
    const struct final_read_opts opts = {
        .loop = s->loop,
        .lib = boards_lib(node_boards(own_node_node(s->own))),
        .boards = boards,
        .n = n,
        .fn = on_reread,
        .user = s};
    return final_read_start(&opts, &s->reread, NULL) == 0;
}

static int finish(struct sweeper *s)
{
    bool waits = s->stage == SWEEPER_S_REREAD && s->reread && !s->final_read_over;

    if (s->stage == SWEEPER_S_OVER || waits || reread(s))
        return 0;
    s->stage = SWEEPER_S_OVER;
    loop_timer_set(s->timer, UINT64_MAX, 0);
    loop_timer_set(s->kill, UINT64_MAX, 0);
    for (size_t i = 0; i < s->n; i++) {
        const struct gpu_info *info = board_view(s->all[i])->info;
        if (!s->use[i])
            continue;
        s->result.n_boards++;
        s->result.simulated |= info->simulated;
        if (!s->result.board_name)
            s->result.board_name = info->name;
        s->result.unlike |= strcmp(s->result.board_name, info->name) != 0;
    }
    s->result.n_plan = s->n_plan;
    if (s->state && s->plan) {
        s->result.range = s->state->range;
        s->result.done = s->state->done;
        s->result.n_done = s->state->n_done;
    }
    return s->done(s, &s->result, s->o.user);
}

int sweeper_finish(struct sweeper *s)
{
    return finish(s);
}

int sweeper_end_with(struct sweeper *s, enum sweeper_end end)
{
    if (s->stage >= SWEEPER_S_RELEASE)
        return 0;
    if (!s->stop)
        s->result.end = end;
    s->stop = true;
    s->stage = SWEEPER_S_RELEASE;
    loop_timer_set(s->kill, UINT64_MAX, 0);
    uint64_t wait_ns = ns_of_s(RELEASE_S * loop_speed(s->loop));
    loop_timer_set(s->timer, loop_now_ns(s->loop) + wait_ns, 0);
    sweeper_release(s);
    return sweeper_is_back(s) ? finish(s) : 0;
}

/* The first reason counts; CMD is told to end.  sudo does not ask for its password any
 * more once the actuator's start has ended.
 */
int sweeper_stop(struct sweeper *s, enum sweeper_end end)
{
    if (s->stop)
        return 0;
    s->result.end = end;
    s->stop = true;
    if (s->running) {
        (void)loop_child_kill(s->child, s->result.signo ? s->result.signo : SIGTERM);
        uint64_t wait_ns = ns_of_s(10 * loop_speed(s->loop));
        loop_timer_set(s->kill, loop_now_ns(s->loop) + wait_ns, 0);
        return 0;
    }
    if (s->opening)
        loop_stop(s->loop, 0);
    bool waits =
        s->stage == SWEEPER_S_OPEN || (s->stage == SWEEPER_S_RIGHT && !s->right_known);
    return waits ? 0 : sweeper_end_with(s, end);
}

int sweeper_signal(struct sweeper *s, int signo)
{
    if (!s->result.signo)
        s->result.signo = signo;
    if (!s->stop) {
        (void)fail(&s->result.error, 0, "interrupted");
        return sweeper_stop(s, SWEEPER_INTERRUPTED);
    }
    if (s->running) {
        (void)loop_child_kill(s->child, SIGKILL);
        return 0;
    }
    if (s->opening ||                  /* its loop ends: on_open() goes on */
        s->stage >= SWEEPER_S_RELEASE) /* a third signal: the release has a deadline */
        return 0;
    return sweeper_end_with(s, s->result.end);
}

static int sweeper_on_kill(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct sweeper *s = user;
    (void)timer;
    (void)now_ns;

    if (s->running)
        (void)loop_child_kill(s->child, SIGKILL);
    return 0;
}

/* ---- boards ---- */

static int boards_of_state(struct sweeper *s, struct boards *set, uw_error *err)
{
    for (size_t k = 0; k < s->state->n_boards; k++) {
        struct board *b = boards_find(set, s->state->board[k]);
        if (!b)
            return fail(err, -EINVAL, "%s of %.60s is not on this machine",
                        s->state->board[k], s->o.state_path);
        s->use[board_view(b)->at] = true;
    }
    s->named = s->state->n_boards > 0;
    return 0;
}

/* Keeps the boards of the user's list, of the environment, or of the state file. */
static int on_choose(struct boards *set, void *user, uw_error *err)
{
    struct sweeper *s = user;

    int r = selection_named(set, s->o.gpus, s->o.visible, s->use, err);
    if (r < 0)
        return r;
    s->named = r != SELECTION_E_OPEN;
    if (r == SELECTION_E_UNSURE)
        sweeper_note(s, err->text);
    r = !s->named && s->state ? boards_of_state(s, set, err) : 0;
    if (r == 0 && s->named)
        boards_keep_these(set, s->use);
    return r < 0 ? r : 0;
}

static int begin(struct sweeper *s)
{
    uw_error *err = &s->result.error;

    if (s->state) /* the range at the start of that sweep */
        s->allowed =
            (struct actuator_range){s->state->range.min_mw, s->state->range.max_mw};
    int r = sweeper_make_plan(s, s->named, err);
    if (r < 0)
        return sweeper_end_with(s, r == -ENOMEM ? SWEEPER_BEFORE : SWEEPER_USAGE);
    if (s->plan && s->state->n_done == s->n_plan)
        return sweeper_end_with(s, SWEEPER_DONE);
    return sweeper_start_right(s);
}

static int on_open(struct sweeper *s)
{
    return s->own && !s->stop ? begin(s) : sweeper_end_with(s, s->result.end);
}

void sweeper_start(struct sweeper *s)
{
    const struct own_node_opts opts = {.node = s->o.node,
                                       .choose = on_choose,
                                       .user = s,
                                       .runtime_dir = s->o.runtime_dir,
                                       .world = s->o.world};
    s->opening = true;
    int r = own_node_new(&opts, &s->own, &s->result.error);
    s->opening = false;
    if (r < 0 && !s->stop)
        s->result.end = r == -EINVAL  ? SWEEPER_USAGE
                        : r == -EINTR ? SWEEPER_INTERRUPTED
                                      : SWEEPER_BEFORE;
    struct boards *set = r == 0 ? node_boards(own_node_node(s->own)) : NULL;
    s->n = set ? boards_count(set) : 0;
    for (size_t i = 0; i < s->n; i++) {
        s->all[i] = boards_at(set, i);
        s->use[i] = s->named;
    }
    if (s->own)
        node_measure(own_node_node(s->own), UINT64_MAX);
    loop_timer_set(s->timer, loop_now_ns(s->loop), 0);
}

/* ---- one run after the other ---- */

/* The samplers of the boards that count. */
static size_t samplers_of(const struct sweeper *s, struct sampler *ret[BOARDS_MAX],
                          uint64_t *ret_mask)
{
    size_t n = 0;

    *ret_mask = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (s->named && !s->use[i])
            continue;
        ret[n++] = node_sampler(own_node_node(s->own), i);
        *ret_mask |= UINT64_C(1) << i;
    }
    return n;
}

int sweeper_count(struct sweeper *s, uw_error *err)
{
    struct sampler *sampler[BOARDS_MAX];
    uint64_t mask;
    size_t n = samplers_of(s, sampler, &mask);

    energy_sum_free(take(s->energy));
    node_measure(own_node_node(s->own), mask);
    return energy_sum_new(sampler, n, &s->energy, err);
}

int sweeper_start_sampling(struct sweeper *s)
{
    s->stage = SWEEPER_S_FEED;
    if (sweeper_count(s, &s->result.error) < 0)
        return sweeper_end_with(s, s->started ? SWEEPER_FAILED : SWEEPER_BEFORE);
    loop_timer_set(s->timer, loop_now_ns(s->loop) + FEED_MS * NS_PER_MS,
                   FEED_MS * NS_PER_MS);
    return 0;
}

static bool is_fed(const struct sweeper *s, uint64_t now_ns)
{
    struct sampler *sampler[BOARDS_MAX];
    uint64_t mask;
    size_t n = samplers_of(s, sampler, &mask);

    for (size_t i = 0; i < n; i++)
        if (!sampler_fed(sampler[i], now_ns))
            return false;
    return true;
}

int sweeper_next_run(struct sweeper *s)
{
    loop_timer_set(s->timer, UINT64_MAX, 0);
    if (s->stop)
        return sweeper_end_with(s, s->result.end);
    if (!s->named)
        return sweeper_start_cmd(s);
    if (s->state->n_done >= s->n_plan)
        return sweeper_end_with(s, SWEEPER_DONE);
    for (size_t i = 0; i < s->n; i++)
        if (s->use[i] && !s->held[i])
            return sweeper_hold_used(s);
    return sweeper_check_foreign(s);
}

int sweeper_settle(struct sweeper *s)
{
    s->stage = SWEEPER_S_SETTLE;
    loop_timer_set(s->timer, loop_now_ns(s->loop) + ns_of_s(s->o.settle_s), 0);
    return 0;
}

void sweeper_begin_looking(struct sweeper *s)
{
    if (!s->named)
        loop_timer_set(s->timer, s->begin_ns + LOOK_FIRST_MS * NS_PER_MS,
                       LOOK_MS * NS_PER_MS);
}

static int sweeper_on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct sweeper *s = user;
    (void)timer;

    switch (s->stage) {
    case SWEEPER_S_OPEN:
        return on_open(s);
    case SWEEPER_S_FEED:
        return is_fed(s, now_ns) ? sweeper_next_run(s) : 0;
    case SWEEPER_S_SETTLE:
        return sweeper_start_cmd(s);
    case SWEEPER_S_RUN:
        return sweeper_look(s);
    case SWEEPER_S_RELEASE:
        if (sweeper_is_back(s))
            return finish(s);
        sweeper_not_back(s, RELEASE_S);
        return finish(s);
    default:
        return 0;
    }
}

/* ---- life ---- */

int sweeper_new(const struct sweeper_opts *opts, sweeper_done_fn done,
                struct sweeper **ret, uw_error *err)
{
    auto_(sweeper_free) struct sweeper *s = calloc(1, sizeof *s);
    struct loop *loop = opts->node->loop;

    if (!s)
        return fail(err, -ENOMEM, "out of memory");
    s->o = *opts;
    s->loop = loop;
    s->done = done;
    s->result.restored = true;
    int r = 0;
    if (opts->state_path) {
        r = sweep_state_read(opts->state_path, &s->state, err);
        if (r < 0 && r != -ENOENT)
            return r;
    }
    r = loop_timer_new(loop, UINT64_MAX, 0, sweeper_on_timer, s, &s->timer, err);
    if (r >= 0)
        r = loop_timer_new(loop, UINT64_MAX, 0, sweeper_on_kill, s, &s->kill, err);
    if (r < 0)
        return r;
    *ret = take(s);
    return 0;
}

void sweeper_free(struct sweeper *s)
{
    if (!s)
        return;
    loop_child_free(s->child);
    energy_sum_free(s->energy);
    sweeper_forget_caps(s);
    own_node_free(s->own);
    final_read_free(s->reread);
    loop_timer_free(s->timer);
    loop_timer_free(s->kill);
    sweep_state_free(s->state);
    free(s->plan);
    free(s);
}

/* ---- the live line ---- */

/* Mean time of the runs at this cap; of all runs if there is none at this cap. */
static double expected_s(const struct sweeper *s, uint32_t cap_mw)
{
    double sum = 0, all = 0;
    size_t n = 0;

    for (size_t i = 0; i < s->state->n_done; i++) {
        all += s->state->done[i].time_s;
        if (s->state->done[i].cap_mw != cap_mw)
            continue;
        sum += s->state->done[i].time_s;
        n++;
    }
    return n ? sum / (double)n : all / (double)s->state->n_done;
}

void sweeper_now(struct sweeper *s, struct sweeper_now *ret)
{
    size_t at = s->plan ? s->state->n_done : 0;

    *ret = (struct sweeper_now){.n_plan = s->n_plan};
    if (s->stage < SWEEPER_S_CHECK || s->stage >= SWEEPER_S_RELEASE)
        return;
    ret->run = at + 1;
    ret->cap_mw = sweeper_cap(s);
    ret->running = s->stage == SWEEPER_S_RUN;
    if (ret->running)
        ret->time_s = s_between(s->begin_ns, loop_now_ns(s->loop));
    for (size_t i = 0; i < s->n; i++) {
        const struct maybe *power = &node_look(own_node_node(s->own))->board[i].power_w;
        if (s->use[i])
            ret->power_w += power->known ? power->v : (double)NAN;
    }
    ret->left_known = s->plan && at > 0;
    for (size_t i = at; ret->left_known && i < s->n_plan; i++)
        ret->left_s += expected_s(s, s->plan[i]) + s->o.settle_s + 0.5;
    ret->left_s -= ret->time_s;
    if (ret->left_s < 0)
        ret->left_s = 0;
}
