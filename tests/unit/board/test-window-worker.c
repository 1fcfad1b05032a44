/* Windows beside the loop: the same figures as on it, in order, forgotten when asked to
 * be; a board whose sensor looks part of the time, so that they are folded.  On the real
 * loop with its thread (ThreadSanitizer looks on), and on a virtual one.
 */
#include "board/window-worker.h"

#include <errno.h>
#include <stdlib.h>

#include "base/units.h"
#include "tap.h"
#include "virtual/virtual-loop.h"

#define S(x) ((uint64_t)((x)*1e9))
enum { ASKS = 6 };

static struct {
    struct loop *loop;
    struct window_worker *folds;
    struct meter *meter;
    struct window_ask ask[ASKS];
    int order[ASKS], n_told;
    bool inside;
} w;

/* An A100's power reading: 25 of every 100 ms, a load with a period of 0.73 s. */
static bool feed(double from_s, double to_s)
{
    for (int i = (int)(from_s * 20); i < (int)(to_s * 20); i++) {
        double t = 0.05 * i;
        double seen = 0.1 * floor(t * 10), phase = fmod(seen, 0.73) / 0.73;
        struct meter_sample s = {.has = METER_HAS_POWER,
                                 .power_began_ns = S(1 + t) - 300000,
                                 .power_at_ns = S(1 + t),
                                 .power_w = phase < 0.4 ? 120 : 320};
        if (meter_feed(w.meter, &s, NULL) != 0)
            return false;
    }
    return true;
}

static int on_done(struct window_ask *ask, void *user)
{
    (void)user;

    if (w.inside)
        ok(false, "never from inside");
    w.order[w.n_told++] = (int)(ask - w.ask);
    if (w.n_told == 2) /* one that is computed by now, and one that waits */
        window_worker_forget(w.folds, &w.ask[2]),
            window_worker_forget(w.folds, &w.ask[4]);
    if (ask == &w.ask[ASKS - 1])
        loop_stop(w.loop, 0);
    return 0;
}

static void play(const char *which)
{
    struct meter_result direct, known = {.energy_j = -1};
    double peak = 0;
    uw_error err = {""};

    w.n_told = 0;
    ok(window_worker_new(w.loop, &w.folds, &err) == 0, "%s: the thread starts %s", which,
       err.text);
    w.inside = true;
    for (int i = 0; i < ASKS; i++) {
        w.ask[i] = (struct window_ask){
            .meter = w.meter, .begin_ns = S(5 + i), .end_ns = S(9 + i), .done = on_done};
        window_worker_add(w.folds, &w.ask[i]);
    }
    w.ask[3].end_ns = w.ask[3].begin_ns; /* no window */
    w.inside = false;
    ok(feed(40, 45), "(the meter goes on meanwhile)");
    ok(loop_run(w.loop, NULL) == 0, "all are told");
    ok(w.n_told == 4 && w.order[0] == 0 && w.order[1] == 1 && w.order[2] == 3 &&
           w.order[3] == 5,
       "in order, less those that were forgotten");
    ok(w.ask[3].r == -EINVAL && w.ask[3].error.text[0], "a fault is told: %s",
       w.ask[3].error.text);
    ok(meter_window(w.meter, S(5), S(9), &direct, &err) == 0 &&
           meter_peak(w.meter, S(5), S(9), &peak, &err) == 0,
       "the same on the meter itself %s", err.text);
    ok(w.ask[0].r == 0 && w.ask[0].result.method == METER_FOLDED, "it was folded");
    ok(meter_window_known(w.meter, S(5), S(9), &known, &err) == METER_E_FOLDS &&
           known.energy_j < 0,
       "which is no work for the loop");
    is_near(w.ask[0].result.energy_j, direct.energy_j, 0.02 * direct.energy_j,
            "the same energy");
    is_near(w.ask[0].peak_w, peak, 1e-9, "the same peak");

    window_worker_add(w.folds, &w.ask[0]);
    window_worker_forget(w.folds, &w.ask[0]);
    window_worker_forget(NULL, &w.ask[0]);
    window_worker_free(w.folds);
    ok(w.n_told == 4, "an end while one is computed");
}

int main(void)
{
    struct meter_opts opts = {.seed = 1};
    uw_error err = {""};

    opts.model.power = (struct sensor){.update_s = 0.1, .window_s = 0.025, .lag_s = 0.02};
    if (!ok(meter_new(&opts, &w.meter, &err) == 0 && feed(0, 40), "a meter %s", err.text))
        return done();
    if (ok(loop_new_virtual(S(100), 0, &w.loop, &err) == 0, "a virtual loop"))
        play("virtual");
    loop_free(w.loop);
    meter_free(w.meter);
    if (!ok(meter_new(&opts, &w.meter, &err) == 0 && feed(0, 40), "a meter %s", err.text))
        return done();
    if (ok(loop_new_real((struct loop_clock){0, 1}, &w.loop, &err) == 0, "a real loop"))
        play("real");
    loop_free(w.loop);
    meter_free(w.meter);
    return done();
}
