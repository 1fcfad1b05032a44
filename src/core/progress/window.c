#include "core/progress/window.h"

#include <math.h>

#include "base/units.h"

/* Spans between reports of which a window consists at least: a program that reports many
 * steps at once, or that stood still, would have an error of 0 with fewer.
 */
enum { LEAST_PARTS = 3 };

void window_arm(struct window *w, const struct window_rule *rule, uint64_t now_ns)
{
    *w = (struct window){
        .rule = *rule,
        .state = WINDOW_SETTLING,
        .armed_ns = now_ns,
    };
}

void window_cancel(struct window *w)
{
    w->state = WINDOW_IDLE;
}

/* Back to settling.  Drops the current piece and its marks, as across_pause() would not
 * know of the pause after them.
 */
static void start_over(struct window *w)
{
    uint64_t kept_ns = w->n_pieces > 0 ? w->piece[w->n_pieces - 1].to.at_ns : 0;

    while (w->n_block > 0 && w->block[w->n_block - 1].at_ns > kept_ns)
        w->n_block--;
    if (w->state == WINDOW_OPEN)
        w->restarts++;
    w->state = WINDOW_SETTLING;
    w->has_armed = false;
}

void window_settle(struct window *w, uint64_t now_ns)
{
    if (w->state != WINDOW_SETTLING && w->state != WINDOW_OPEN)
        return;
    start_over(w);
    w->armed_ns = now_ns;
}

static void forget_all(struct window *w)
{
    start_over(w);
    w->n_pieces = 0;
    w->n_block = 0;
    w->kept_steps = w->kept_s = 0;
}

static void open_at(struct window *w, const struct step_mark *mark)
{
    w->state = WINDOW_OPEN;
    w->from = *mark;
    if (w->n_block == 0) {
        w->thin = 1;
        w->skipped = 0;
    }
    if (w->n_block < WINDOW_BLOCKS)
        w->block[w->n_block++] = *mark;
}

/* Ends the piece from w->from to mark. */
static void keep_piece(struct window *w, const struct step_mark *mark, double steps,
                       double seconds)
{
    w->piece[w->n_pieces++] = (struct window_piece){w->from, *mark};
    w->kept_steps += steps;
    w->kept_s += seconds;
}

/* Keeps every thin-th mark, for the scatter of step times; thins out when full. */
static void keep_mark(struct window *w, const struct step_mark *mark)
{
    if (w->n_block == 0 || mark->steps == w->block[w->n_block - 1].steps ||
        ++w->skipped < w->thin)
        return;
    w->skipped = 0;
    if (w->n_block == WINDOW_BLOCKS) {
        for (size_t i = 0; i < WINDOW_BLOCKS / 2; i++)
            w->block[i] = w->block[2 * i];
        w->n_block = WINDOW_BLOCKS / 2;
        w->thin *= 2;
    }
    w->block[w->n_block++] = *mark;
}

/* Whether a pause lies between two marks. */
static bool across_pause(const struct window *w, const struct step_mark *a,
                         const struct step_mark *b)
{
    for (size_t i = 0; i < w->n_pieces; i++)
        if (a->at_ns <= w->piece[i].to.at_ns && b->at_ns > w->piece[i].to.at_ns)
            return true;
    return false;
}

/* Relative standard error of the mean step time from the scatter between blocks, each
 * weighted by its steps (batch means).  False: too few blocks to tell.
 */
static bool scatter(const struct window *w, double step_s, double *ret_rse)
{
    double sum = 0, total = 0;
    unsigned n = 0;

    for (unsigned i = 1; i < w->n_block; i++) {
        double steps, seconds;
        if (!steps_between(&w->block[i - 1], &w->block[i], &steps, &seconds) ||
            across_pause(w, &w->block[i - 1], &w->block[i]))
            continue;
        double d = seconds / steps - step_s;
        sum += steps * d * d;
        total += steps;
        n++;
    }
    if (n < LEAST_PARTS)
        return false;
    double variance = sum / (n - 1); /* of one step */
    *ret_rse = sqrt(variance / total) / step_s;
    return true;
}

static bool long_enough(struct window *w, double steps, double seconds)
{
    if (seconds < w->rule.least_s || steps < w->rule.least_steps ||
        !scatter(w, seconds / steps, &w->time_rse))
        return false;
    return w->rule.target_rse <= 0 || w->time_rse <= w->rule.target_rse ||
           seconds >= w->rule.most_s;
}

/* Whether the window may begin at this mark. */
static bool settled(struct window *w, const struct step_mark *mark)
{
    if (!w->has_armed) {
        /* the current step began before arming: count from its end */
        w->has_armed = true;
        w->armed = *mark;
        return false;
    }
    return mark->steps > w->armed.steps + w->rule.settle_steps &&
           s_between(w->armed_ns, mark->at_ns) >= w->rule.settle_s;
}

/* A pause after mark: keeps the piece before it, if long enough. */
static void pause_at(struct window *w, const struct step_mark *mark, double steps,
                     double seconds)
{
    if (seconds >= LEAST_PIECE_S && w->n_pieces < WINDOW_PIECES - 1)
        keep_piece(w, mark, steps, seconds);
    start_over(w);
}

static enum window_state feed_open(struct window *w, const struct step_mark *mark,
                                   bool training)
{
    double steps, seconds;

    keep_mark(w, mark);
    if (!steps_between(&w->from, mark, &steps, &seconds)) {
        if (!training)
            start_over(w);
        return w->state;
    }
    if (long_enough(w, w->kept_steps + steps, w->kept_s + seconds)) {
        keep_piece(w, mark, steps, seconds);
        w->state = WINDOW_CLOSED;
        w->steps = w->kept_steps;
        w->time_s = w->kept_s / w->kept_steps;
    } else if (!training) {
        pause_at(w, mark, steps, seconds);
    }
    return w->state;
}

enum window_state window_feed(struct window *w, const struct steps *s, uint64_t now_ns)
{
    const struct step_mark *mark = &s->mark;

    (void)now_ns;
    if (w->state != WINDOW_SETTLING && w->state != WINDOW_OPEN)
        return w->state = WINDOW_IDLE;
    if (!steps_known(s)) {
        forget_all(w);
        return w->state;
    }
    if (w->has_armed && mark->generation != w->armed.generation)
        forget_all(w);
    bool training = steps_training(s);
    if (w->state == WINDOW_OPEN)
        return feed_open(w, mark, training);
    if (!training)
        w->has_armed = false;
    else if (settled(w, mark))
        open_at(w, mark);
    return w->state;
}
