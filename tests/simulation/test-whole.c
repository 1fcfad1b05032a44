/* slowdown:F over the whole job: a job under a search is compared, step by step, with its
 * twin at the original cap.  At each step that is seen (every 250 ms) the time since the
 * first one is at most F x that of the twin, and 1 s or 0.1 % of it more.
 *
 * Usage: test-whole [BOARD [WORKLOAD [F [SECONDS [NOISE [MEMORY]]]]]]: without, jobs of
 * 10 minutes, with UNDERWATT_SOAK of an hour, too; "all" as BOARD: these, too.  Jobs of
 * 28800 s are played where SECONDS names them.  NOISE: of the speed, a part; MEMORY: s.
 */
#include "run-scene.h"

static struct twin twin;
static double twin_step_j;
static const double lengths[] = {600, 3600, 28800};
#define HOLD_S 300.0    /* latest first hold, from the first step */
#define REFERENCE_S 0.1 /* of the job: most at the original cap after it */

/* Sum over runs with one bound and length. */
static struct shares {
    unsigned n;
    double sum, least;
} shares[3][3];

static const struct {
    const char *text;
    double least[3]; /* of the saving at the oracle's cap, means of 10 min, 1 h, 8 h */
} bounds[] = {{"1.02", {0.30, 0.65, 0.78}},
              {"1.05", {0.60, 0.78, 0.88}},
              {"1.1", {0.65, 0.80, 0.90}}};

static bool run_twin(struct world *w, const char *board, const char *workload, double s)
{
    w->twin = &twin;
    twin.n = 0;
    w->bound = 1;
    w->first_ns = 0;
    bool ran = run_for(w, board, workload, "time", NULL, s);
    twin_step_j = w->result.energy_j / (double)job_steps(w->job)->mark.steps;
    close_world(w);
    return ran;
}

/* The part of the saving of the oracle's cap, against the twin, that the whole job has.
 */
static double share(const struct world *w, const char *board_key, const char *workload,
                    const struct verdict *v)
{
    const struct plant_board *board = plant_board_find(board_key);
    const struct plant_workload *work = plant_workload_find(board, workload);
    double ref_j = plant_steady_step(board, work, board->default_mw).energy_j;
    double best_j = plant_steady_step(board, work, v->oracle_mw).energy_j;
    double steps = (double)job_steps(w->job)->mark.steps;

    return (1 - w->result.energy_j / (twin_step_j * steps)) / (1 - best_j / ref_j);
}

static void one(struct world *w, const char *board, const char *workload, size_t f,
                size_t l)
{
    char goal_text[32];
    struct goal goal;
    struct shares *to = &shares[f][l];

    (void)snprintf(goal_text, sizeof goal_text, "slowdown:%s", bounds[f].text);
    (void)goal_parse(goal_text, &goal, NULL);
    bool ran = run_twin(w, board, workload, lengths[l]);
    w->bound = goal.param;
    w->over_s = -INFINITY;
    w->first_ns = w->over_n = 0;
    w->held_s = w->reference_s = w->seen_s = 0;
    ran = ran && run_for(w, board, workload, goal_text, NULL, lengths[l]);
    const struct tuner_report *t = w->result.tuner;
    if (ok(ran && t, "%s %s %s, %.0f s: runs to its end", board, workload, goal_text,
           lengths[l])) {
        struct verdict v = judge(board, workload, &goal, t->held_mw);
        const struct step_mark *last = &job_steps(w->job)->mark;
        double of = share(w, board, workload, &v);
        double whole = s_between(w->first_ns, last->at_ns) / twin.at_s[twin.n - 1];

        ok(w->over_n == 0,
           "... within the bound at each step: whole job x %.4f, cap held x %.4f, at "
           "most "
           "%+.2f s over at %.0f s",
           whole, v.slowdown, w->over_s, w->over_at_s);
        ok(w->held_s > 0 && w->held_s <= HOLD_S && t->saved.known,
           "... a cap is held after %.0f s, at most %.0f s", w->held_s, HOLD_S);
        ok(w->reference_s <= REFERENCE_S * s_between(w->first_ns, last->at_ns),
           "... then it measures at the original cap for %.0f s, at most %.2f of the job",
           w->reference_s, REFERENCE_S);
        ok(of > 0, "... saves: %.2f of what the oracle does, %zu caps", of, t->n_caps);
        to->least = to->n ? fmin(to->least, of) : of;
        to->n++;
        to->sum += of;
    }
    close_world(w);
}

/* A look into a gap that slowdown:F cannot pay does not begin: no window at the original
 * cap in its place.  Noise keeps the held cap's upper limit above the bound.
 */
static void looks(struct world *w)
{
    static const char *const jobs[][2] = {{"v100", "alexnet"}, {"rtx6000", "vgg19"}};
    unsigned looked = 0, waited = 0;

    w->noise_sd = 0.003;
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        one(w, jobs[i][0], jobs[i][1], 2, 1);
        for (const char *at = w->noted; (at = strstr(at, "tests the widest gap"));
             looked++, at++) {
            const char *wait = strstr(at, "measuring 300 W (until the bound");
            const char *end = strstr(at, "holds ");
            waited += wait && (!end || wait < end);
        }
    }
    w->noise_sd = 0;
    shares[2][1] = (struct shares){0};
    ok(looked > 0 && waited == 0,
       "... looks into gaps that are paid, waits for none: %u, %u", looked, waited);
}

/* A job that ends while its search waits for time: the reason of its cap says that. */
static void ends_in_a_wait(struct world *w)
{
    bool ran = run_for(w, "v100", "resnet50", "slowdown:1.01", NULL, 100);
    const struct tuner_report *t = w->result.tuner;

    ok(ran && t && t->holding &&
           strstr(w->noted, "W: until the bound leaves time to try "),
       "a job of 100 s waits for time to try a cap");
    ok(ran && t && strstr(t->why, "the bound left no time to try ") == t->why,
       "... and its end says that there was none: %s", t ? t->why : "");
    close_world(w);
}

static bool named(int argc, char **argv, int i, const char *what)
{
    return argc <= i || strcmp(argv[i], "all") == 0 || strcmp(argv[i], what) == 0;
}

static void each_of(struct world *w, int argc, char **argv, const char *key)
{
    const struct plant_board *board = plant_board_find(key);
    const struct plant_workload *work;

    for (size_t i = 0; (work = plant_workload_at(board, i)); i++)
        for (size_t f = 0; f < n_elements(bounds); f++)
            for (size_t l = 0; l < n_elements(lengths); l++) {
                char s[16];
                (void)snprintf(s, sizeof s, "%.0f", lengths[l]);
                bool longer = (l == 1 && argc == 1 && !getenv("UNDERWATT_SOAK")) ||
                              (l == 2 && (argc <= 4 || strcmp(argv[4], "all") == 0));
                if (!longer && named(argc, argv, 1, key) &&
                    named(argc, argv, 2, work->name) &&
                    named(argc, argv, 3, bounds[f].text) && named(argc, argv, 4, s))
                    one(w, key, work->name, f, l);
            }
}

int main(int argc, char **argv)
{
    struct world w = {.noise_sd = argc > 5 ? strtod(argv[5], NULL) : 0,
                      .memory_s = argc > 6 ? strtod(argv[6], NULL) : 0};

    verbose = argc > 1 && strcmp(argv[1], "all") != 0;
    if (!open_dir(&w))
        return skip_all("no folder in memory");
    if (argc == 1) {
        looks(&w);
        ends_in_a_wait(&w);
    }
    each_of(&w, argc, argv, "rtx6000");
    each_of(&w, argc, argv, "v100");
    for (size_t f = 0; f < n_elements(bounds); f++)
        for (size_t l = 0; l < n_elements(lengths); l++) {
            const struct shares *s = &shares[f][l];
            if (s->n > 1)
                ok(s->sum / s->n >= bounds[f].least[l],
                   "slowdown:%s, %.0f s: %u jobs saved %.2f of the oracle's, the least "
                   "%.2f; at least %.2f",
                   bounds[f].text, lengths[l], s->n, s->sum / s->n, s->least,
                   bounds[f].least[l]);
        }
    (void)remove(w.dir);
    return done();
}
