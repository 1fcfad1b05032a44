/* A node for tests of caps: simulated V100s (150..300 W) on a virtual loop, the
 * actuator's own code, samples at 10 Hz, and everything that caps told.
 */
#ifndef TESTS_UNIT_CAPS_CAPS_SCENE_H
#define TESTS_UNIT_CAPS_CAPS_SCENE_H

#include <stdlib.h>
#include <string.h>

#include "actuator/client.h"
#include "base/units.h"
#include "caps/budget.h"
#include "caps/caps.h"
#include "tap.h"
#include "virtual/virtual-loop.h"
#include "virtual/virtual-world.h"

#define W(x) ((uint32_t)((x)*1000))

enum { TOLD_MAX = 4096 };

/* Through which limits are written. */
static const struct gpu_backend *scene_backend = &virtual_backend;
/* What the boards are found at, in watts; 0: their default limit. */
static double scene_found_w;
/* So many of them say nothing from the start. */
static unsigned scene_silent;
/* For the sum of all limits; 0: none. */
static uint32_t scene_budget_mw;

struct told {
    enum caps_event event;
    size_t board;
    uint64_t at_ns, claim;
    uint32_t target_mw, enforced_mw;
    enum caps_cause cause;
    enum caps_state state;
    char text[200];
};

struct scene {
    struct loop *loop;
    struct virtual_world *world;
    struct boards *boards;
    struct actuator *act;
    struct caps *caps;
    struct budget *budget; /* none at first */
    struct loop_timer *pause, *sampling;
    struct sim_machine machine;
    bool open, ready;
    bool asked[BOARDS_MAX]; /* for a sample that has not come */
    int ready_r;
    struct told told[TOLD_MAX];
    size_t n_told;
    int done_r; /* 1: not called */
    char done_text[200];
    uint64_t began_ns;
};

__attribute__((unused)) static uint64_t scene_clock(void *user)
{
    return loop_now_ns(user);
}

__attribute__((unused)) static int scene_on_pause(struct loop_timer *timer, uint64_t now,
                                                  void *user)
{
    struct scene *s = user;

    (void)timer;
    (void)now;
    loop_stop(s->loop, 0);
    return 0;
}

__attribute__((unused)) static void pass(struct scene *s, double seconds)
{
    loop_timer_set(s->pause, loop_now_ns(s->loop) + ns_of_s(seconds), 0);
    int r = loop_run(s->loop, NULL);
    if (r < 0)
        ok(false, "the loop runs: %d", r);
}

__attribute__((unused)) static void scene_on_caps(const struct caps_what *what,
                                                  void *user)
{
    struct scene *s = user;
    struct caps_view v;

    if (s->n_told == TOLD_MAX)
        return;
    if (s->caps)
        caps_look(s->caps, what->board, &v);
    struct told *t = &s->told[s->n_told++];
    *t = (struct told){.event = what->event,
                       .board = what->board,
                       .at_ns = what->at_ns,
                       .claim = what->claim ? what->claim->id : 0,
                       .target_mw = what->target_mw,
                       .enforced_mw = what->enforced_mw,
                       .cause = what->cause,
                       .state = s->caps ? v.state : CAPS_FREE};
    (void)snprintf(t->text, sizeof t->text, "%s", what->text ? what->text : "(null)");
}

__attribute__((unused)) static int scene_on_boards(struct boards *set, int r,
                                                   const uw_error *err, void *user)
{
    struct scene *s = user;

    (void)set;
    (void)err;
    s->open = r == 0;
    loop_stop(s->loop, 0);
    return 0;
}

__attribute__((unused)) static int scene_on_sample(struct board *b, int r,
                                                   const struct gpu_sample *sample,
                                                   const uw_error *err, void *user)
{
    struct scene *s = user;

    (void)err;
    s->asked[board_view(b)->at] = false;
    if (r == 0 && s->caps)
        caps_seen(s->caps, board_view(b)->at, sample);
    return 0;
}

__attribute__((unused)) static int scene_on_sampling(struct loop_timer *timer,
                                                     uint64_t now, void *user)
{
    struct scene *s = user;

    (void)timer;
    (void)now;
    for (size_t i = 0; i < boards_count(s->boards); i++)
        if (!s->asked[i])
            s->asked[i] =
                board_sample(boards_at(s->boards, i), ~0u, scene_on_sample, s) == 0;
    return 0;
}

__attribute__((unused)) static int scene_on_ready(struct actuator *act, int r,
                                                  const char *text, void *user)
{
    struct scene *s = user;

    (void)text;
    s->ready = true;
    s->ready_r = r;
    if (r == 0 && s->caps)
        caps_use_actuator(s->caps, act);
    return 0;
}

__attribute__((unused)) static int scene_on_event(struct actuator *act,
                                                  enum actuator_event event,
                                                  const struct actuator_reply *what,
                                                  void *user)
{
    struct scene *s = user;

    (void)act;
    caps_on_actuator(s->caps, event, what);
    return 0;
}

/* quiet: TAP only where it fails. */
__attribute__((unused)) static void scene_actuator_quiet(struct scene *s)
{
    const struct actuator_opts opts = {
        .on_ready = scene_on_ready, .on_event = scene_on_event, .user = s};
    uw_error err = {""};

    s->ready = false;
    if (actuator_start_virtual(s->loop, scene_backend, boards_lib(s->boards), &opts,
                               &s->act, &err) < 0)
        ok(false, "an actuator starts: %s", err.text);
}

__attribute__((unused)) static void scene_actuator(struct scene *s)
{
    scene_actuator_quiet(s);
    ok(s->act != NULL, "an actuator starts");
}

/* The actuator is gone; what it held is restored by its keeper. */
__attribute__((unused)) static void scene_no_actuator(struct scene *s)
{
    actuator_free(take(s->act));
    caps_use_actuator(s->caps, NULL);
}

/* Boards alone; scene_caps() and scene_actuator() make the rest. */
__attribute__((unused)) static struct scene *scene_open(unsigned boards, bool quiet)
{
    struct scene *s = calloc(1, sizeof *s);
    uw_error err = {""};

    s->done_r = 1;
    int r = loop_new_virtual(1000 * NS_PER_S, 1700000000, &s->loop, &err);
    if (r == 0)
        r = loop_timer_new(s->loop, 0, 0, scene_on_pause, s, &s->pause, &err);
    if (r == 0)
        r = sim_machine_builtin("v100", boards, &s->machine, &err);
    s->machine.set_latency_ns = 32 * NS_PER_MS;
    for (unsigned i = 0; i < boards && scene_found_w > 0; i++)
        s->machine.board[i].limit_mw = W(scene_found_w);
    for (unsigned i = 0; i < scene_silent; i++)
        s->machine.fault[s->machine.n_faults++] =
            (struct sim_fault){.board = i, .kind = SIM_FAULT_K_LOST};
    if (r == 0)
        r = virtual_world_new(s->loop, &s->machine, 7, &s->world, &err);
    struct gpu_open_opts opts = {.clock = {scene_clock, s->loop},
                                 .backend_user = s->world};
    if (r == 0)
        r = boards_open(s->loop, &virtual_backend, &opts, scene_on_boards, s, &s->boards,
                        &err);
    for (int i = 0; r == 0 && !s->open && i < 100; i++)
        r = loop_run(s->loop, &err);
    if (r < 0 || !s->open || !quiet)
        ok(r == 0 && s->open, "%u boards open %s", boards, err.text);
    return s;
}

__attribute__((unused)) static struct scene *scene_boards(const char *name,
                                                          unsigned boards)
{
    printf("# %s\n", name);
    return scene_open(boards, false);
}

__attribute__((unused)) static void scene_caps(struct scene *s,
                                               const struct caps_conf *conf)
{
    struct caps_opts opts = {.loop = s->loop,
                             .boards = s->boards,
                             .conf = *conf,
                             .on_event = scene_on_caps,
                             .user = s};
    uw_error err = {""};
    uint64_t now = loop_now_ns(s->loop);

    if (caps_new(&opts, &s->caps, &err) < 0)
        ok(false, "caps: %s", err.text);
    if (budget_new(s->loop, s->caps, boards_count(s->boards), &s->budget, &err) < 0)
        ok(false, "a budget: %s", err.text);
    budget_configure(s->budget, scene_budget_mw);
    if (loop_timer_new(s->loop, now, NS_PER_S / 10, scene_on_sampling, s, &s->sampling,
                       &err) < 0)
        ok(false, "sampling: %s", err.text);
    s->began_ns = now;
}

__attribute__((unused)) static struct scene *scene_new(const char *name, unsigned boards,
                                                       const struct caps_conf *conf)
{
    struct scene *s = scene_boards(name, boards);

    scene_caps(s, conf);
    scene_actuator(s);
    pass(s, 0.5);
    ok(s->ready && s->ready_r == 0, "it is ready");
    return s;
}

/* The same without a word. */
__attribute__((unused)) static struct scene *scene_quiet(unsigned boards,
                                                         const struct caps_conf *conf)
{
    struct scene *s = scene_open(boards, true);

    scene_caps(s, conf);
    scene_actuator_quiet(s);
    pass(s, 0.5);
    return s;
}

/* Ends it all. */
__attribute__((unused)) static void scene_free(struct scene *s)
{
    loop_timer_free(s->sampling);
    actuator_free(s->act);
    budget_free(s->budget);
    caps_free(s->caps);
    boards_free(s->boards);
    loop_timer_free(s->pause);
    virtual_world_free(s->world);
    loop_free(s->loop);
    free(s);
}

/* ---- asking and looking ---- */

__attribute__((unused)) static uint64_t claim_for(struct scene *s, size_t board,
                                                  enum claim_kind kind, double w,
                                                  double for_s)
{
    struct claim claim = {.kind = kind, .mw = W(w), .until_ns = CLAIM_FOREVER};
    uint64_t id = 0;
    uw_error err = {""};

    if (for_s > 0)
        claim.until_ns = loop_now_ns(s->loop) + ns_of_s(for_s);
    if (caps_claim(s->caps, board, &claim, &id, &err) < 0)
        ok(false, "%s claim of %.0f W: %s", names_word(NAMES_CLAIM_KIND, kind), w,
           err.text);
    return id;
}

__attribute__((unused)) static uint64_t claim(struct scene *s, size_t board,
                                              enum claim_kind kind, double w)
{
    return claim_for(s, board, kind, w, 0);
}

__attribute__((unused)) static void withdraw(struct scene *s, size_t board, uint64_t id)
{
    uw_error err = {""};

    if (caps_withdraw(s->caps, board, id, &err) < 0)
        ok(false, "withdraw: %s", err.text);
}

__attribute__((unused)) static struct caps_view look(struct scene *s, size_t board)
{
    struct caps_view v;

    caps_look(s->caps, board, &v);
    return v;
}

/* Of all causes. */
__attribute__((unused)) static uint64_t changes(struct scene *s, size_t board)
{
    struct caps_view v = look(s, board);
    uint64_t n = 0;

    for (int i = 0; i < CAPS_CAUSES; i++)
        n += v.changes[i];
    return n;
}

/* What the driver says is set, whoever set it. */
__attribute__((unused)) static uint32_t limit_of(struct scene *s, size_t board)
{
    struct gpu_sample sample = {0};

    (void)virtual_backend.sample(virtual_backend.at(boards_lib(s->boards), board), ~0u,
                                 &sample, NULL);
    return sample.requested_mw;
}

__attribute__((unused)) static void is_limit(struct scene *s, size_t board, double w,
                                             const char *name)
{
    uint32_t mw = limit_of(s, board);

    if (!ok(mw == W(w), "%s: %.0f W", name, w)) {
        struct caps_view v = look(s, board);
        printf("# %u mW is set; %s, target %u, ramp %u, '%s'\n", mw,
               names_word(NAMES_CAP_STATE, v.state), v.verdict.target_mw, v.ramp_mw,
               v.text);
    }
}

__attribute__((unused)) static void is_state(struct scene *s, size_t board,
                                             enum caps_state state, const char *name)
{
    struct caps_view v = look(s, board);

    ok(v.state == state, "%s: %s%s%s", name, names_word(NAMES_CAP_STATE, v.state),
       v.text[0] ? ": " : "", v.text);
}

/* What became of a claim, in words that begin so. */
__attribute__((unused)) static void is_met(struct scene *s, size_t board, uint64_t id,
                                           enum caps_met met, const char *begins)
{
    struct caps_view v = look(s, board);
    const struct claim *c = claims_find(v.claims, id);
    struct caps_claim_look l = {.text = "no such claim"};

    if (c)
        caps_claim_look(&v, c, &l);
    ok(c && l.met == met && (l.why != CAPS_UNMET_NONE) == (met == CAPS_NOT_MET) &&
           strncmp(l.text, begins, strlen(begins)) == 0,
       "claim %ju: %s (%s...), %s", (uintmax_t)id, l.text, begins,
       names_word(NAMES_CLAIM_REASON, l.why));
}

/* How many events of this kind so far. */
__attribute__((unused)) static unsigned told(const struct scene *s, enum caps_event event)
{
    unsigned n = 0;

    for (size_t i = 0; i < s->n_told; i++)
        n += s->told[i].event == event;
    return n;
}

__attribute__((unused)) static const struct told *last_told(const struct scene *s,
                                                            enum caps_event event)
{
    static const struct told none = {.text = "never"};

    for (size_t i = s->n_told; i-- > 0;)
        if (s->told[i].event == event)
            return &s->told[i];
    return &none;
}

__attribute__((unused)) static void scene_on_done(int r, const char *text, void *user)
{
    struct scene *s = user;

    s->done_r = r;
    (void)snprintf(s->done_text, sizeof s->done_text, "%s", text);
}

__attribute__((unused)) static void fault(struct scene *s, const char *text)
{
    struct sim_fault f;
    uw_error err = {""};

    if (sim_fault_parse(text, &f, &err) || virtual_world_fault(s->world, &f, &err))
        ok(false, "fault '%s': %s", text, err.text);
}

#endif
