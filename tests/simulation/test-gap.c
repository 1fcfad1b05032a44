/* `underwatt run` of jobs that count steps and never tell that they validate, load data
 * or save a checkpoint, in virtual time: their pauses are not taken for what a cap did,
 * and are in no window and no book.
 *
 * Usage: test-gap [WORKLOAD [GOAL]]: all of them without, and no notes.
 */
#include "run-scene.h"

#define LONG_S 1800.0

static const struct {
    const char *name, *list;
} shapes[] = {
    {"none", "train"},
    {"pauses", "load=25s,train,validate=4%,checkpoint=6s"},
    {"long", "train,checkpoint=100s"},
};

static void one(struct world *w, size_t shape, const char *workload,
                const char *goal_text, double *none)
{
    const char *more[] = {"--tells", "steps", "--phases", shapes[shape].list, NULL};
    struct goal goal;

    w->more = more;
    bool ran = run_for(w, "v100", workload, goal_text, NULL, LONG_S);
    (void)goal_parse(goal_text, &goal, NULL);
    if (!ok(ran, "%s, %s %s: runs to its end", workload, goal_text, shapes[shape].name))
        printf("# %s\n", w->result.error.text);
    else {
        const struct tuner_report *t = w->result.tuner;
        uint32_t mw = t->holding ? t->held_mw : t->original_mw;
        struct verdict v = judge("v100", workload, &goal, mw);
        ok(t->restored, "… the original limit is back");
        ok(t->holding && v.regret <= 0.01,
           "… holds %.0f W (oracle %.0f W): regret %.2f %%", w_of_mw(mw),
           w_of_mw(v.oracle_mw), 100 * v.regret);
        ok(t->stalls == 0 && t->changes == 0, "… %u stalls, %u changes", t->stalls,
           t->changes);
        bool long_one = strcmp(shapes[shape].name, "long") == 0;
        ok((strstr(w->noted, "the original cap until the next step") != NULL) == long_one,
           "… %s", long_one ? "the original cap for the long ones" : "its cap stays");
        if (shape == 0)
            *none = t->saved.fraction;
        ok(t->saved.known && fabs(t->saved.fraction - *none) <= (long_one ? 0.04 : 0.01),
           "… saved %.1f %%, without pauses %.1f %%", 100 * t->saved.fraction,
           100 * *none);
    }
    close_world(w);
}

int main(int argc, char **argv)
{
    static const char *const works[] = {"resnet50", "vgg19"};
    static const char *const wanted[] = {"energy", "eds:2"};
    struct world w = {.looks = -1, .checks_share = -1};
    double none = 0;

    verbose = argc > 2;
    if (!open_dir(&w))
        return skip_all("no folder in memory");
    for (size_t i = 0; i < n_elements(works); i++)
        for (size_t g = 0; g < n_elements(wanted); g++)
            for (size_t s = 0; s < n_elements(shapes); s++)
                if ((argc < 2 || strcmp(argv[1], works[i]) == 0) &&
                    (argc < 3 || strcmp(argv[2], wanted[g]) == 0) && !left_out(i, g))
                    one(&w, s, works[i], wanted[g], &none);
    (void)remove(w.dir);
    return done();
}
