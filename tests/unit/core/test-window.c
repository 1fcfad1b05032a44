#include "core/progress/window.h"

#include <math.h>

#include "base/rng.h"
#include "base/units.h"
#include "tap.h"

#define S(x) ((uint64_t)((x)*1e9))

struct job {
    struct steps steps;
    struct window w;
    double now, next, step_s, jitter;
    uint64_t at_once; /* steps that it reports together; 0: each */
    uint64_t done, told;
    uint32_t phase;
    struct rng rng;
    double last;
};

/* Run the job for so long, looking at it each 0.1 s; stops when a window closes. */
static bool run(struct job *j, double seconds)
{
    double end = j->now + seconds;

    while (j->now < end) {
        j->now += 0.1;
        while (j->phase == UW_PHASE_TRAIN && j->next <= j->now) {
            j->done++;
            if (j->at_once == 0 || j->done % j->at_once == 0 || j->done < j->told) {
                j->told = j->done;
                j->last = j->next;
            }
            j->next += j->step_s * (1 + j->jitter * rng_normal(&j->rng));
        }
        if (j->phase != UW_PHASE_TRAIN)
            j->next = j->now + j->step_s;
        struct step_slot slot = {9, j->told, S(j->last), j->phase, true};
        (void)steps_feed(&j->steps, &slot, 1, S(j->now));
        if (window_feed(&j->w, &j->steps, S(j->now)) == WINDOW_CLOSED)
            return true;
    }
    return false;
}

static void job_init(struct job *j, double step_s, double jitter)
{
    *j = (struct job){
        .step_s = step_s, .jitter = jitter, .next = step_s, .phase = UW_PHASE_TRAIN};
    rng_init(&j->rng, 5);
    steps_init(&j->steps);
}

static const struct window_rule rule = {
    .settle_s = 1, .settle_steps = 1, .least_s = 5, .least_steps = 8};

int main(void)
{
    struct job j;
    struct window_rule sure = rule;

    sure.target_rse = 0.003;
    sure.most_s = 3 * rule.least_s;

    job_init(&j, 0.34, 0);
    (void)run(&j, 3);
    window_arm(&j.w, &rule, S(j.now));
    double armed = j.now;
    ok(run(&j, 30), "a window closes");
    ok(j.w.piece[0].from.at_ns >= S(armed + 1), "it begins after the cap has settled");
    is_near(j.w.time_s, 0.34, 1e-6, "whole steps: the time a step is exact");
    ok(s_between(j.w.piece[0].from.at_ns, j.w.piece[0].to.at_ns) >= 5 && j.w.steps >= 8,
       "it is long enough");
    ok(window_feed(&j.w, &j.steps, S(j.now)) == WINDOW_IDLE, "then it is over");

    job_init(&j, 3, 0);
    (void)run(&j, 10);
    window_arm(&j.w, &rule, S(j.now));
    ok(run(&j, 60) && j.w.steps >= 8, "long steps: as many as asked for");

    job_init(&j, 0.34, 0);
    j.at_once = 10;
    (void)run(&j, 8);
    window_arm(&j.w, &sure, S(j.now));
    (void)run(&j, 6);
    ok(j.w.state == WINDOW_OPEN, "ten steps are reported at once");
    j.next += 24; /* the program stands still */
    ok(run(&j, 120), "… and one report is late by 24 s");
    ok(fabs(j.w.time_s - 0.34) < 2.6 * j.w.time_rse * j.w.time_s,
       "the error covers that: %.2f s +- %.2f a step", j.w.time_s,
       j.w.time_rse * j.w.time_s);

    job_init(&j, 0.34, 0);
    (void)run(&j, 3);
    window_arm(&j.w, &rule, S(j.now));
    (void)run(&j, 4);
    j.phase = UW_PHASE_VALIDATE;
    (void)run(&j, 20);
    ok(j.w.state == WINDOW_SETTLING && j.w.restarts == 1, "a validation throws it back");
    j.phase = UW_PHASE_TRAIN;
    ok(run(&j, 30), "it is done after it");
    is_near(j.w.time_s, 0.34, 1e-6, "… and holds nothing of the pause");
    ok(j.w.n_pieces == 2 && j.w.piece[1].from.at_ns > j.w.piece[0].to.at_ns + S(19),
       "… in two pieces, one before and one after it");

    job_init(&j, 0.1, 0.01);
    (void)run(&j, 3);
    window_arm(&j.w, &rule, S(j.now));
    bool closed = false;
    for (int i = 0; i < 10 && !closed; i++) {
        j.phase = UW_PHASE_TRAIN;
        closed = run(&j, 3);
        j.phase = UW_PHASE_CHECKPOINT;
        if (!closed)
            closed = run(&j, 2);
    }
    ok(closed && j.w.n_pieces >= 2, "a job that pauses every 3 s: %zu pieces",
       j.w.n_pieces);
    is_near(j.w.time_s, 0.1, 0.001, "… its step is right");
    ok(j.w.time_rse > 0 && j.w.time_rse < 0.004, "… and pauses are no scatter: %.4f",
       j.w.time_rse);

    job_init(&j, 0.1, 0);
    (void)run(&j, 3);
    window_arm(&j.w, &rule, S(j.now));
    (void)run(&j, 2);
    ok(j.w.state == WINDOW_OPEN, "about a second of a window");
    j.phase = UW_PHASE_CHECKPOINT;
    (void)run(&j, 3);
    j.phase = UW_PHASE_TRAIN;
    ok(run(&j, 30) && j.w.n_pieces == 1, "… too short to be kept before a pause");
    is_near(j.w.time_rse, 0, 1e-6, "… whose pause is no scatter either");

    job_init(&j, 0.1, 0.1);
    (void)run(&j, 3);
    window_arm(&j.w, &rule, S(j.now));
    ok(run(&j, 30), "jitter");
    ok(j.w.time_rse > 0.002 && j.w.time_rse < 0.05, "the scatter shows: rse %.4f",
       j.w.time_rse);
    sure.target_rse = 0.002;
    sure.most_s = 200;
    window_arm(&j.w, &sure, S(j.now));
    ok(run(&j, 300) && j.w.steps > 300, "a target makes it longer: %.0f steps",
       j.w.steps);
    is_near(j.w.time_s, 0.1, 0.001, "… and surer");
    sure.most_s = 8;
    window_arm(&j.w, &sure, S(j.now));
    ok(run(&j, 12), "but never longer than allowed");

    job_init(&j, 0.34, 0);
    (void)run(&j, 3);
    window_arm(&j.w, &rule, S(j.now));
    (void)run(&j, 4);
    j.done = 0;
    (void)run(&j, 3);
    ok(j.w.restarts == 1, "a job that begins anew throws it back");
    ok(run(&j, 30), "… and it closes later");
    window_arm(&j.w, &rule, S(j.now));
    window_cancel(&j.w);
    ok(!run(&j, 30), "a cancelled window never closes");

    job_init(&j, 0.34, 0);
    (void)run(&j, 3);
    window_arm(&j.w, &rule, S(j.now));
    ok(!run(&j, 4), "a window of 5 s does not close in 4 s");
    j.phase = UW_PHASE_VALIDATE;
    ok(!run(&j, 3) && j.w.n_pieces == 1, "a pause ends its first piece");
    j.phase = UW_PHASE_TRAIN;
    (void)run(&j, 1.5); /* under another cap still */
    window_settle(&j.w, S(j.now));
    double back = j.now;
    bool again = run(&j, 30);
    ok(again && j.w.n_pieces == 2 && s_of_ns(j.w.piece[1].from.at_ns) >= back + 1,
       "after another cap in the pause it goes on once the cap has settled: %.2f s later",
       s_of_ns(j.w.piece[1].from.at_ns) - back);
    window_settle(&j.w, S(j.now));
    ok(j.w.state == WINDOW_IDLE || j.w.state == WINDOW_CLOSED,
       "a closed one stays closed");
    return done();
}
