/* A search on a board whose power sensor looks 25 of each 100 ms and feeds the counter
 * (run-scene.h), for a job whose steps take 0.2 s at the original cap: there the sensor
 * sees the same quarter of each step for minutes, and no cap can be compared with it.
 */
#include "run-scene.h"

/* From the first step on it takes 0.9 % longer: 0.2000 s. */
static const char change[] = "1:1.009:1";

static void in_step(struct world *w)
{
    bool ran = run_for(w, "a100", "resnet152", "energy", change, 420);
    const struct tuner_report *t = w->result.tuner;

    if (ok(ran, "a job in step with the sensor: runs to its end")) {
        ok(strstr(w->noted, "in step with the power sensor"),
           "… what is unknown is said: %.200s", w->noted);
        ok(!t->holding && t->n_caps == 0 && t->restored,
           "… no cap is chosen: %zu measured, %.0f W held", t->n_caps,
           t->holding ? w_of_mw(t->held_mw) : 0);
    } else {
        printf("# %s\n", w->result.error.text);
    }
    close_world(w);
}

int main(int argc, char **argv)
{
    struct world w = {.mute = false};
    (void)argv;

    verbose = argc > 1;
    if (!open_dir(&w))
        return skip_all("no folder in memory");
    in_step(&w);
    (void)remove(w.dir);
    return done();
}
