#include "local/final-read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "actuator/core.h"
#include "base/error.h"
#include "base/units.h"
#include "gpu/backends.h"
#include "local/end-state.h"

enum { WAIT_MS = 5000, AGAIN_MS = 250 };

struct slot {
    struct final_read *reread;
    struct board *board;
    uint32_t original_mw, in_force_mw, others_mw;
    int result; /* result of the last reading */
    uw_error error;
};

struct final_read {
    struct loop *loop;
    struct loop_timer *timer;
    char dir[512];
    struct slot slot[BOARDS_MAX];
    size_t n, waiting;
    uint64_t until_ns;
    bool over;
    final_read_fn fn;
    void *user;
};

void final_read_free(struct final_read *r)
{
    if (!r)
        return;
    loop_timer_free(r->timer);
    free(r);
}
DEFINE_AUTO(struct final_read *, final_read_free);

/* Converts wall time to the loop's time. */
static uint64_t wall_ms(const struct final_read *r, unsigned ms)
{
    return ns_of_s(ms * 1e-3 * loop_speed(r->loop));
}

/* The driver has not answered: a call hangs, or the machine is busy. */
static bool is_slow(int result)
{
    return result == -ETIMEDOUT || result == -EBUSY;
}

static bool may_change(const struct slot *s, const struct end_state_board *b,
                       enum end_state left)
{
    if (left == END_STATE_UNREAD)
        return is_slow(s->result);
    return left != END_STATE_BACK && end_state_is_moving(b);
}

static enum end_state judge(const struct final_read *r, struct slot *s, char *text,
                            size_t size, bool *ret_moving)
{
    const char *uuid = board_view(s->board)->info->uuid;
    struct end_state_board b = {.name = uuid,
                                .in_force_mw = s->in_force_mw,
                                .error = s->error.text,
                                .original_mw = s->original_mw,
                                .others_mw = s->others_mw,
                                .self = getpid()};

    held_look(r->dir, uuid, &b.held);
    enum end_state left = end_state_judge(&b, text, size);
    *ret_moving = may_change(s, &b, left);
    s->others_mw = left == END_STATE_OTHERS ? s->in_force_mw : 0;
    return left;
}

static void add(char *text, const char *line)
{
    size_t n = strlen(text);

    (void)snprintf(text + n, FINAL_READ_TEXT - n, "%s%s", n ? "; " : "", line);
}

static int all_read(struct final_read *r)
{
    char text[FINAL_READ_TEXT] = "", line[300];
    uint64_t now = loop_now_ns(r->loop);
    bool restored = true, any_moves = false, moves;

    for (size_t i = 0; i < r->n; i++) {
        enum end_state left = judge(r, &r->slot[i], line, sizeof line, &moves);
        any_moves = any_moves || moves;
        restored = restored && (left == END_STATE_BACK || left == END_STATE_OTHERS);
        if (left != END_STATE_BACK)
            add(text, line);
    }
    if (any_moves && now < r->until_ns) {
        loop_timer_set(r->timer, now + wall_ms(r, AGAIN_MS), 0);
        return 0;
    }
    r->over = true;
    return r->fn(restored, text[0] ? text : "every original is in force", r->user);
}

static int on_sample(struct board *b, int result, const struct gpu_sample *sample,
                     const uw_error *err, void *user)
{
    struct slot *s = user;
    struct final_read *r = s->reread;
    (void)b;

    if (result == -ECANCELED || r->over)
        return 0;
    s->result = result;
    s->in_force_mw = result == 0 ? core_seen(sample).set_mw : 0;
    s->error = result < 0 && err ? *err : (uw_error){""};
    return --r->waiting == 0 ? all_read(r) : 0;
}

static int on_timer(struct loop_timer *timer, uint64_t now, void *user)
{
    struct final_read *r = user;
    (void)timer;
    (void)now;

    if (r->waiting > 0 || r->over)
        return 0;
    for (size_t i = 0; i < r->n; i++) {
        struct slot *s = &r->slot[i];
        int got =
            board_sample(s->board, GPU_HAS_ENFORCED | GPU_HAS_REQUESTED, on_sample, s);
        if (got == 0) {
            r->waiting++;
        } else {
            s->in_force_mw = 0;
            s->result = got;
            (void)fail(&s->error, got, "%s", strerror(-got));
        }
    }
    return r->waiting == 0 ? all_read(r) : 0;
}

int final_read_start(const struct final_read_opts *opts, struct final_read **ret,
                     uw_error *err)
{
    const struct gpu_about *about = gpu_boards_about(opts->lib);
    auto_(final_read_free) struct final_read *r = calloc(1, sizeof *r);

    if (!r)
        return fail(err, -ENOMEM, "out of memory");
    r->loop = opts->loop;
    r->fn = opts->fn;
    r->user = opts->user;
    r->n = opts->n < BOARDS_MAX ? opts->n : BOARDS_MAX;
    for (size_t i = 0; i < r->n; i++)
        r->slot[i] = (struct slot){.reread = r,
                                   .board = opts->boards[i].board,
                                   .original_mw = opts->boards[i].original_mw};
    held_dir(about->simulated ? about->state_dir : NULL, r->dir, sizeof r->dir);
    uint64_t now = loop_now_ns(r->loop);
    r->until_ns = now + wall_ms(r, WAIT_MS);
    int got = loop_timer_new(r->loop, now, 0, on_timer, r, &r->timer, err);
    if (got == 0)
        *ret = take(r);
    return got;
}
