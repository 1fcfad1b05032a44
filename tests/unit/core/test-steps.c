#include "core/progress/steps.h"

#include "base/units.h"
#include "tap.h"

#define S(x) ((uint64_t)((x)*1e9))

static enum steps_outcome feed1(struct steps *s, uint64_t steps, double last_s,
                                double now_s, uint32_t phase)
{
    struct step_slot slot = {1, steps, S(last_s), phase, true};
    return steps_feed(s, &slot, 1, S(now_s));
}

static void one_process(void)
{
    struct steps s;
    double n, t;

    steps_init(&s);
    ok(!steps_known(&s), "nothing is known before anything is read");
    ok(steps_feed(&s, NULL, 0, S(1)) == STEPS_SAME, "an empty page changes nothing");
    feed1(&s, 0, 0, 2, UW_PHASE_STARTUP);
    ok(!steps_known(&s) && !steps_training(&s), "a slot without steps is start-up");
    feed1(&s, 1, 10, 10.5, UW_PHASE_TRAIN);
    ok(steps_known(&s) && steps_training(&s), "the first step makes progress known");
    struct step_mark a = s.mark;
    ok(feed1(&s, 1, 10, 10.7, UW_PHASE_TRAIN) == STEPS_SAME, "no new step, no new mark");
    ok(feed1(&s, 5, 14, 14.2, UW_PHASE_TRAIN) == STEPS_ADVANCED, "steps advance");
    struct step_mark b = s.mark;
    ok(steps_between(&a, &b, &n, &t) && n == 4 && fabs(t - 4) < 1e-9,
       "4 steps in 4 s by the job's own clock, whenever we looked");
    is_near(s.step_s, 1.0, 1e-9, "a step takes 1 s");
    ok(!steps_between(&b, &a, &n, &t), "backwards is no span");
    ok(steps_late_s(&s, S(16), 5, 2) < 0, "two steps' time is not late");
    ok(steps_late_s(&s, S(30), 5, 2) > 0, "sixteen steps' time is");
    feed1(&s, 5, 14, 30, UW_PHASE_VALIDATE);
    ok(steps_late_s(&s, S(60), 5, 2) <= 0, "nobody is late while validating");
    feed1(&s, 5, 14, 61, UW_PHASE_TRAIN);
    ok(steps_late_s(&s, S(62), 5, 2) <= 0, "… nor right after it");
}

static void lies(void)
{
    struct steps s;

    steps_init(&s);
    feed1(&s, 1, 1, 1.1, 1);
    feed1(&s, 2, 99, 2.0, 1);
    ok(s.mark.at_ns == S(2.0) && s.lies == 1,
       "a step in the future ended when we saw it");
    feed1(&s, 3, 0.5, 3.0, 1);
    ok(s.mark.at_ns == S(3.0) && s.lies == 2, "so did one before the last");
    uint64_t generation = s.mark.generation;
    ok(feed1(&s, 1, 4, 4.0, 1) == STEPS_RESTARTED && s.mark.generation > generation,
       "going backwards begins a new generation");
}

static void many(void)
{
    struct steps s;
    double n, t;
    struct step_slot slots[] = {{1, 10, S(10.0), 1, true}, {2, 9, S(9.9), 1, true}};

    steps_init(&s);
    ok(steps_feed(&s, slots, 2, S(10)) == STEPS_RESTARTED, "two slots");
    ok(s.mark.steps == 9 && s.mark.at_ns == S(9.9), "the slowest counts");
    struct step_mark a = s.mark;
    slots[1] = (struct step_slot){2, 10, S(10.2), 1, true};
    steps_feed(&s, slots, 2, S(10.3));
    ok(s.mark.steps == 10 && s.mark.at_ns == S(10.2), "among equals the later one");
    ok(steps_between(&a, &s.mark, &n, &t) && n == 1, "one step of the job");
    slots[1].live = false;
    ok(steps_feed(&s, slots, 2, S(11)) == STEPS_RESTARTED, "a death is a new generation");
    ok(!steps_between(&a, &s.mark, &n, &t), "… and no span crosses it");
    slots[0].phase = UW_PHASE_VALIDATE;
    steps_feed(&s, slots, 2, S(11.5));
    ok(steps_seen(&s), "a pause that is told is seen");
    s.guessed = true;
    ok(steps_known(&s) && !steps_seen(&s), "… one that is guessed may be anything");
    slots[0].phase = UW_PHASE_TRAIN;
    steps_feed(&s, slots, 2, S(11.6));
    ok(steps_seen(&s), "… steps that are guessed are seen");
    slots[0].live = false;
    steps_feed(&s, slots, 2, S(12));
    ok(!steps_known(&s) && !steps_seen(&s), "nobody left, nothing known");
    slots[0] = (struct step_slot){7, 3, S(12.5), 1, true};
    ok(steps_feed(&s, slots, 1, S(13)) == STEPS_RESTARTED && s.mark.steps == 3,
       "another process starts anew");
}

int main(void)
{
    one_process();
    lies();
    many();
    return done();
}
