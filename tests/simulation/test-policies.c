/* The policies of docs/policies, each in a node in virtual time: the cap that follows on
 * the boards when its signal says so, the original afterwards, and nothing while the
 * signal is unknown.
 *
 * Usage: test-policies DIR
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>

#include "io/progress.h"
#include "node/policy-facts.h"
#include "simulation/policy-scene.h"

enum { NAMES_MAX = 32 };
static const char *dir;
static const char *played[NAMES_MAX];
static size_t n_played;

/* ---- a scene ---- */

static bool begin_scene(const char *name, const char *boards)
{
    printf("# %s\n", name);
    played[n_played++] = name;
    scene_boards = boards;
    if (!open_world())
        return ok(false, "a world");
    (void)snprintf(w.config.policy_file, sizeof w.config.policy_file, "%s/%s", dir, name);
    return ok(start_node(), "a node") &&
           ok(node_look(w.node)->policy.engine != NULL, "the policy is in force");
}

static void end_scene(void)
{
    if (node_end(w.node, on_node_end, NULL) < 0)
        ok(false, "the node ends");
    run_s(10);
    close_world();
}

/* ---- jobs ---- */

enum { PHASE_STEPS = 200 };

/* A job that root registers with these labels ("KEY=VALUE"; NULL: none).  One that tells
 * its phases has a cap by name, the original, so that the daemon reads its page.
 */
static void begin_phases(struct paged_job *job, unsigned gpu, const char *phases,
                         bool tells, const char *const *labels)
{
    char gpus[8], steps[16];
    struct label label[LABELS_MAX];
    struct node_job ask = {.reg = {.source = JOB_REGISTERED,
                                   .name = "train",
                                   .uid = ANNA,
                                   .boards = 1ull << gpu,
                                   .label = label},
                           .page_fd = -1};
    uw_error err = {""};

    if (tells)
        ask.cap.percent = 100;
    (void)snprintf(gpus, sizeof gpus, "%u", gpu);
    (void)snprintf(steps, sizeof steps, "%d", PHASE_STEPS);
    start_paged(job, gpus, steps, phases);
    if (tells)
        ask.page_fd = page_fd_of(job);
    for (; labels && labels[ask.reg.n_labels]; ask.reg.n_labels++) {
        const char *text = labels[ask.reg.n_labels], *equals = strchr(text, '=');
        struct label *l = &label[ask.reg.n_labels];
        (void)snprintf(l->key, sizeof l->key, "%.*s", (int)(equals - text), text);
        (void)snprintf(l->value, sizeof l->value, "%s", equals + 1);
    }
    if (node_job_begin(w.node, &root, &ask, &job->id, &err) < 0)
        ok(false, "a job: %s", err.text);
}

static void begin_job(struct paged_job *job, unsigned gpu, const char *const *labels)
{
    begin_phases(job, gpu, "load=1s,train", false, labels);
}

static void end_job(struct paged_job *job)
{
    (void)node_job_end(w.node, &root, job->id, NULL);
    stop_paged(job);
}

/* ---- signals and caps ---- */

static void set(const char *name, struct signal_value value, const char *unit)
{
    const struct node_signal ask = {
        .value = value, .unit = unit, .for_ns = 24 * 3600 * NS_PER_S};
    uw_error err = {""};

    if (node_signal_set(w.node, &root, name, &ask, &err) < 0)
        ok(false, "%s is set: %s", name, err.text);
}

static void set_number(const char *name, double v, const char *unit)
{
    set(name, (struct signal_value){.type = POLICY_NUMBER, .number = v}, unit);
}

static void set_truth(const char *name, bool v)
{
    set(name, (struct signal_value){.type = POLICY_TRUTH, .truth = v}, "");
}

static void unset(const char *name)
{
    uw_error err = {""};

    if (node_signal_unset(w.node, &root, name, &err) < 0)
        ok(false, "%s is unset: %s", name, err.text);
}

/* The boards' limits in force after s seconds; 0: whatever it is. */
static void expect(double s, uint32_t mw0, uint32_t mw1, const char *what)
{
    run_s(s);
    ok((!mw0 || in_force(0) == mw0) && (!mw1 || in_force(1) == mw1),
       "%s: %u and %u mW in force", what, in_force(0), in_force(1));
}

static bool is_claimed(void)
{
    const struct node_view *v = node_look(w.node);

    for (size_t i = 0; i < v->n_boards; i++)
        for (size_t k = 0; k < v->board[i].cap.claims->n; k++)
            if (v->board[i].cap.claims->claim[k].source == CLAIM_OF_RULE)
                return true;
    return false;
}

/* The original on all boards, and no claim. */
static void expect_nothing(double s, const char *what)
{
    expect(s, ORIGINAL_MW, ORIGINAL_MW, what);
    ok(!is_claimed(), "... and no claim");
}

/* ---- the policies ---- */

static void dirty_grid(void)
{
    static const char *const critical[] = {"tier=production", NULL};
    struct paged_job plain, vital;

    if (!begin_scene("dirty-grid.yaml", NULL))
        return;
    begin_job(&plain, 0, NULL);
    begin_job(&vital, 1, critical);
    expect_nothing(1200, "carbon is unknown");
    set_number("carbon", 430, "g/kWh");
    expect(500, ORIGINAL_MW, ORIGINAL_MW, "dirty for less than 10 min");
    expect(300, 225000, ORIGINAL_MW, "a quarter less, but not of what is critical");
    set_number("carbon", 380, "g/kWh");
    expect(300, 225000, ORIGINAL_MW, "between the two limits it goes on");
    unset("carbon");
    expect_nothing(60, "unknown ends it");
    set_number("carbon", 0.43, "kg/kWh");
    expect(800, 225000, ORIGINAL_MW, "dirty again");
    set_number("carbon", 350, "g/kWh");
    expect_nothing(60, "clean");
    end_job(&plain);
    end_job(&vital);
    end_scene();
}

static void price_peak(void)
{
    struct paged_job job;

    if (!begin_scene("price-peak.yaml", NULL))
        return;
    begin_job(&job, 0, NULL);
    expect_nothing(300, "no price is known");
    end_job(&job);
    set_number("price", -20, "EUR/MWh");
    run_s(13 * 3600);
    begin_job(&job, 0, NULL);
    expect_nothing(300, "a negative price is known, and no peak");
    set_number("price", 130, "EUR/MWh");
    expect(300, 225000, ORIGINAL_MW, "well above the mean of the day: 75 %");
    set_number("price", -20, "EUR/MWh");
    expect_nothing(600, "no more");
    set_number("price", 400, "EUR/MWh");
    expect(300, 225000, ORIGINAL_MW, "above the first limit");
    unset("price");
    expect_nothing(60, "unknown ends it");
    set_number("price", 400, "EUR/MWh");
    expect(300, 225000, ORIGINAL_MW, "a peak again");
    set_number("price", 80, "EUR/MWh");
    expect(200, 225000, ORIGINAL_MW, "not below for 5 min");
    expect_nothing(200, "below for 5 min");
    end_job(&job);
    end_scene();
}

/* Seconds of each limit, while a job goes round; false: the other one was capped. */
static bool count_caps(double s, double *ret_capped, double *ret_whole)
{
    bool alone = true;

    for (double t = 0; t < s; t += 0.5) {
        run_s(0.5);
        *ret_capped += in_force(0) == 180000 ? 0.5 : 0;
        *ret_whole += in_force(0) == ORIGINAL_MW ? 0.5 : 0;
        alone = alone && in_force(1) == ORIGINAL_MW;
    }
    return alone;
}

static void validation(void)
{
    struct paged_job job, silent;
    double capped = 0, whole = 0;

    if (!begin_scene("validation.yaml", NULL))
        return;
    begin_phases(&job, 0, "load=1s,train,validate=500%", true, NULL);
    begin_phases(&silent, 1, "load=1s,train,validate=500%", false, NULL);
    run_s(1000); /* the first validations approach the cap by the ramp */
    bool alone = count_caps(5000, &capped, &whole);
    ok(capped > 500 && whole > 1000,
       "60 %% in validations, the original in training: %.0f and %.0f s of 5000", capped,
       whole);
    ok(alone, "a job that does not tell its phases is left alone");
    end_job(&job);
    end_job(&silent);
    expect_nothing(60, "the job has ended");
    end_scene();
}

static void empty_queue(void)
{
    static const char *const partition[] = {"slurm.partition=gpu-long", NULL};
    struct paged_job job, of_long;

    if (!begin_scene("empty-queue.yaml", NULL))
        return;
    begin_job(&job, 0, NULL);
    begin_job(&of_long, 1, partition);
    expect_nothing(1800, "nothing is known of the queue");
    set_number("queue.depth", 0, "");
    expect(800, ORIGINAL_MW, ORIGINAL_MW, "empty for less than 15 min");
    expect(300, 255000, 255000, "nobody waits: 85 %");
    set_number("queue.depth.gpu_long", 0, "");
    expect(1200, 255000, 210000, "nobody waits for that partition: 70 % there");
    set_number("queue.depth", 3, "");
    expect(60, ORIGINAL_MW, 210000, "somebody waits, but not for that partition");
    set_number("queue.depth.gpu_long", 1, "");
    expect_nothing(60, "somebody waits for it, too");
    set_number("queue.depth", 0, "");
    expect(1200, 255000, 255000, "empty again");
    unset("queue.depth");
    expect_nothing(60, "unknown ends it");
    end_job(&job);
    end_job(&of_long);
    end_scene();
}

static void class_presets(void)
{
    static const char *const dev[] = {"slurm.partition=dev", NULL};
    static const char *const batch[] = {FACT_LABEL_KIND "=training", NULL};
    static const char *const vital[] = {"tier=production", "slurm.partition=dev", NULL};
    struct paged_job job[3];

    if (!begin_scene("class-presets.yaml", NULL))
        return;
    begin_job(&job[0], 0, dev);
    begin_job(&job[1], 1, batch);
    expect(300, 210000, 255000, "development 70 %, batch 85 %");
    end_job(&job[0]);
    end_job(&job[1]);
    expect_nothing(60, "both have ended");
    begin_job(&job[0], 0, NULL);
    begin_job(&job[1], 1, vital);
    expect_nothing(600, "a job of which nothing is known, and one of an earlier class");
    end_job(&job[0]);
    end_job(&job[1]);
    end_scene();
}

static void night(void)
{
    static const char *const batch[] = {FACT_LABEL_KIND "=training", NULL};
    struct paged_job job, unknown;

    if (!begin_scene("night.yaml", NULL)) /* Tuesday, 23:13 in Berlin */
        return;
    begin_job(&job, 0, batch);
    begin_job(&unknown, 1, NULL);
    expect(300, 180000, ORIGINAL_MW, "at night, of training: 60 %");
    loop_shift_utc(w.loop, 7 * 3600 * (int64_t)NS_PER_S);
    expect_nothing(60, "06:19");
    loop_shift_utc(w.loop, 16 * 3600 * (int64_t)NS_PER_S);
    expect(300, 180000, ORIGINAL_MW, "the next night");
    loop_shift_utc(w.loop, 4 * 86400 * (int64_t)NS_PER_S);
    expect_nothing(60, "on Sunday");
    end_job(&job);
    end_job(&unknown);
    end_scene();
}

static void heat(void)
{
    static const char boards[] =
        "boards:\n  - {model: v100, ambient: 58}\n  - {model: v100, count: 3}\n";
    struct paged_job hot, cool;

    if (!begin_scene("heat.yaml", boards))
        return;
    begin_job(&hot, 0, NULL);
    begin_job(&cool, 1, NULL);
    expect(600, 240000, ORIGINAL_MW, "a fifth less on the hot board alone");
    fault("0 lost");
    run_s(30);
    ok(!is_claimed(), "its temperature is unknown: no claim");
    fault("0 found");
    expect(900, 240000, ORIGINAL_MW, "known again");
    end_job(&hot);
    expect_nothing(300, "it has cooled down");
    end_job(&cool);
    end_scene();
}

static void generator(void)
{
    struct paged_job job;

    if (!begin_scene("generator.yaml", NULL))
        return;
    begin_job(&job, 0, NULL);
    expect_nothing(300, "nobody says whether it runs");
    set_truth("generator.on", false);
    expect_nothing(300, "it does not");
    set_truth("generator.on", true);
    expect(10, 200000, 200000, "it runs: 200 W at once, without a job, too");
    set_truth("generator.on", false);
    expect_nothing(30, "it has ended");
    set_truth("generator.on", true);
    expect(10, 200000, 200000, "it runs again");
    unset("generator.on");
    expect_nothing(30, "unknown ends it");
    end_job(&job);
    end_scene();
}

static void fuse(void)
{
    struct paged_job job;

    if (!begin_scene("fuse.yaml", NULL))
        return;
    begin_job(&job, 0, NULL);
    expect_nothing(300, "the rack's power is unknown");
    set_number("rack.power", 37, "kW");
    expect_nothing(60, "below the limit");
    set_number("rack.power", 39000, "W");
    expect(10, 250000, 250000, "above it: 250 W at once, on each board");
    set_number("rack.power", 36, "kW");
    expect(60, 250000, 250000, "between the two powers it goes on");
    set_number("rack.power", 33, "kW");
    expect_nothing(30, "below the second one");
    set_number("rack.power", 39, "kW");
    expect(10, 250000, 250000, "above again");
    unset("rack.power");
    expect_nothing(30, "unknown ends it");
    end_job(&job);
    end_scene();
}

/* Each file of the folder was played; the example shows every key and acts in no test. */
static void all_played(void)
{
    DIR *d = opendir(dir);
    const struct dirent *e;

    if (!ok(d != NULL, "%s", dir))
        return;
    while ((e = readdir(d))) {
        size_t len = strlen(e->d_name);
        bool found = strcmp(e->d_name, "example.yaml") == 0;
        if (len < 5 || strcmp(e->d_name + len - 5, ".yaml") != 0)
            continue;
        for (size_t i = 0; i < n_played; i++)
            found |= strcmp(played[i], e->d_name) == 0;
        ok(found, "%s is played", e->d_name);
    }
    (void)closedir(d);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    dir = argv[1];
    log_set_level(LOG_LEVEL_ERROR);
    dirty_grid();
    price_peak();
    validation();
    empty_queue();
    class_presets();
    night();
    heat();
    generator();
    fuse();
    all_played();
    return done();
}
