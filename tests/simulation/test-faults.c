/* `underwatt run` and `measure` on a private node in virtual time while boards fail. Each
 * fault comes while a cap is in force on two boards.
 *
 * Usage: test-faults [-v]
 */
#include <signal.h>
#include <sys/wait.h>

#include "run-scene.h"

enum { BOARDS = 2, ORIGINAL = 300000 };

/* What happens once every board is at the cap. */
struct script {
    bool measure;           /* no cap at all */
    uint32_t cap_mw, at_mw; /* it happens at at_mw or below; 0: at the cap */
    const char *steps;
    const char *fault, *undo; /* of board 0: at once, and after undo_s; NULL: none */
    double undo_s;
    int signo; /* to CMD, with the fault; 0: none */
};

struct scene {
    struct world w;
    const struct script *script;
    struct loop_timer *look;
    void *reader;
    double capped_s; /* since every board was at the cap; < 0: they were not */
    double true_j;
    bool undone;
    uint32_t meanwhile_mw; /* of board 1, half-way to the undoing */
    size_t noted;          /* characters of the notes before the fault */
};

static uint32_t limit_of(const struct scene *s, size_t board)
{
    struct gpu_sample sample = {0};

    (void)virtual_backend.sample(virtual_backend.at(s->reader, board), GPU_HAS_REQUESTED,
                                 &sample, NULL);
    return sample.has & GPU_HAS_REQUESTED ? sample.requested_mw : 0;
}

static void fault(struct scene *s, const char *text)
{
    struct sim_fault f;
    uw_error err = {{0}};

    if (sim_fault_parse(text, &f, &err) < 0 ||
        virtual_world_fault(s->w.sim, &f, &err) < 0)
        ok(false, "fault %s: %s", text, err.text);
}

static int on_look(struct loop_timer *timer, uint64_t now, void *user)
{
    struct scene *s = user;
    const struct script *script = s->script;
    (void)timer;
    (void)now;

    if (s->capped_s < 0) {
        uint32_t at_mw = script->at_mw ? script->at_mw : script->cap_mw;
        for (size_t i = 0; i < BOARDS && !script->measure; i++)
            if (limit_of(s, i) > at_mw)
                return 0;
        s->capped_s = 0;
        s->noted = strlen(s->w.noted);
        if (script->fault)
            fault(s, script->fault);
        if (script->signo)
            (void)job_kill(s->w.job, script->signo);
        return 0;
    }
    s->capped_s += 1;
    if (s->capped_s <= script->undo_s / 2)
        s->meanwhile_mw = limit_of(s, 1);
    if (script->undo && !s->undone && s->capped_s >= script->undo_s) {
        s->undone = true;
        fault(s, script->undo);
    }
    return 0;
}

/* The two boards capped by name, and what happens to them. */
static bool capped(struct scene *s, const struct script *script)
{
    const char *argv[] = {"underwatt-sim", "train",   "--workload",  "resnet50", "--gpus",
                          "0,1",           "--steps", script->steps, NULL};
    struct play p = {.argv = argv, .boards = 3, .cap = {.mw = script->cap_mw}};
    struct sim_machine machine;
    uw_error err = {{0}};

    s->script = script;
    s->capped_s = -1;
    s->undone = false;
    int r = sim_machine_builtin("v100", BOARDS, &machine, &err);
    for (size_t i = 0; r >= 0 && i < BOARDS; i++)
        machine.board[i].gain = 1; /* of its sensor */
    if (r >= 0)
        r = open_world(&s->w, &machine, &err);
    if (r >= 0) {
        struct gpu_open_opts gpu = {.clock = {clock_of, s->w.loop},
                                    .backend_user = s->w.sim};
        r = virtual_backend.open(&gpu, &s->reader, &err);
    }
    if (r >= 0)
        r = loop_timer_new(s->w.loop, loop_now_ns(s->w.loop), NS_PER_S, on_look, s,
                           &s->look, &err);
    if (r >= 0)
        r = play(&s->w, &p, &err);
    if (r < 0)
        printf("# %s\n", err.text);
    s->true_j = virtual_world_true_j(s->w.sim, 0) + virtual_world_true_j(s->w.sim, 1);
    return r >= 0 && s->w.done && s->capped_s >= 0 &&
           (s->w.result.tuner || script->measure);
}

static void close_scene(struct scene *s)
{
    loop_timer_free(take(s->look));
    virtual_backend.close(take(s->reader));
    close_world(&s->w);
}

static bool said(const struct scene *s, const char *words)
{
    return strstr(s->w.noted + s->noted, words) != NULL;
}

/* ---- a cap by name ---- */

static void several(struct scene *s)
{
    struct script script = {.cap_mw = 180000, .steps = "450"};
    bool ran = capped(s, &script);
    const struct tuner_report *t = s->w.result.tuner;

    if (ok(ran, "a cap on both boards of a job")) {
        ok(t->restored && limit_of(s, 0) == ORIGINAL && limit_of(s, 1) == ORIGINAL,
           "… the originals are back");
        ok(t->saved.known && t->saved.fraction > 0.1 && t->saved.fraction < 0.4 &&
               t->saved.half < 0.1,
           "… what it saved: %.3f +- %.3f", t->saved.fraction, t->saved.half);
    }
    close_scene(s);
}

static void silent(struct scene *s)
{
    struct script script = {.cap_mw = 210000, .steps = "600"};

    s->w.mute = true;
    bool ran = capped(s, &script);
    ok(ran && s->w.result.tuner->restored && limit_of(s, 0) == ORIGINAL,
       "a job that tells of no steps is capped by name, and its original is back");
    ok(ran && s->w.result.steps == 0 && !s->w.result.tuner->saved.known,
       "… nothing is claimed to be saved");
    s->w.mute = false;
    close_scene(s);
}

/* ---- faults ---- */

/* clang-format off */
static const struct {
    const char *name;
    struct script script;
    const char *heard;     /* in a note after the fault */
    uint32_t first_mw;     /* board 0 at the end; 0: it cannot be asked */
    uint32_t meanwhile_mw; /* board 1 in the middle of it; 0: not looked at */
    bool restored;         /* in the report */
} faults[] = {
    {"lost", {.cap_mw = 230000, .steps = "900", .fault = "0 lost", .undo = "0 found", .undo_s = 120},
     "the caps were lost", ORIGINAL, 230000, true},
    /* a call that hangs here takes an hour: the job is over before */
    {"hang", {.cap_mw = 230000, .steps = "900", .fault = "0 hang", .undo_s = 120},
     "the caps were lost", 0, 230000, false},
    {"stuck", {.cap_mw = 230000, .steps = "900", .fault = "0 stuck", .undo = "0 unstuck", .undo_s = 120},
     "", ORIGINAL, 0, true},
    {"reload", {.cap_mw = 230000, .steps = "900", .fault = "reload"},
     "", ORIGINAL, 0, true},
    {"another's limit", {.cap_mw = 230000, .steps = "900", .fault = "0 limit 210W"},
     "another program has set the limit: 210000 mW", 210000, 0, true},
    {"refused on the way down", {.cap_mw = 160000, .at_mw = 230000, .steps = "900", .fault = "0 refuse",
                                 .undo = "0 accept", .undo_s = 120},
     "ermission", ORIGINAL, ORIGINAL, true},
    {"refused at the end", {.cap_mw = 230000, .steps = "500", .fault = "0 refuse"},
     "", 230000, 0, false},
    {"ended by a signal", {.cap_mw = 230000, .steps = "100000", .signo = SIGTERM},
     "", ORIGINAL, 0, true},
};
/* clang-format on */

static void one_fault(struct scene *s, size_t i)
{
    const char *name = faults[i].name;
    int signo = faults[i].script.signo;
    bool ran = capped(s, &faults[i].script);
    const struct tuner_report *t = s->w.result.tuner;
    int status = s->w.result.status;

    if (ok(ran, "%s: CMD runs to its end", name)) {
        ok(signo ? WIFSIGNALED(status) && WTERMSIG(status) == signo : status == 0,
           "%s: the status is CMD's own: %#x", name, (unsigned)status);
        ok(said(s, faults[i].heard), "%s: it is told", name);
        ok(!said(s, "are available again"), "%s: what others hold is left to them", name);
        ok(t->restored == faults[i].restored, "%s: the report says %s", name,
           t->restored ? "restored" : "NOT RESTORED");
        is_int(limit_of(s, 0), faults[i].first_mw, "%s: board 0 at the end", name);
        is_int(limit_of(s, 1), ORIGINAL, "%s: board 1 at the end", name);
        if (faults[i].meanwhile_mw)
            is_int(s->meanwhile_mw, faults[i].meanwhile_mw, "%s: board 1 meanwhile",
                   name);
    }
    if (faults[i].script.fault && strstr(faults[i].script.fault, "stuck"))
        ok(s->w.result.why & METER_WHY_STUCK, "%s: the report says why: %#x", name,
           s->w.result.why);
    close_scene(s);
}

/* ---- what a job used ---- */

static void measured(struct scene *s, const char *steps, long n)
{
    struct script script = {.measure = true, .steps = steps};
    bool ran = capped(s, &script);
    double used_j = s->w.result.window_j;
    /* before CMD and after it both boards idle at 40 W */
    double idle_s = s_between(NS_PER_S, loop_now_ns(s->w.loop)) - s->w.result.time_s;
    double true_j = s->true_j - BOARDS * 40 * idle_s;

    if (ok(ran && s->w.result.measured, "%s steps on two boards are measured", steps)) {
        is_int((long)s->w.result.steps, n, "… and counted");
        is_near(used_j, true_j, 0.01 * true_j, "… %.0f +- %.0f J of %.0f J", used_j,
                s->w.result.window_half_j, true_j);
        ok(s->w.result.window_half_j < 0.06 * used_j, "… ± %.2f %%",
           100 * s->w.result.window_half_j / used_j);
    }
    close_scene(s);
}

int main(int argc, char **argv)
{
    struct scene s = {0};
    (void)argv;

    verbose = argc > 1;
    if (!open_dir(&s.w))
        return skip_all("no folder in memory");
    measured(&s, "18", 18);
    measured(&s, "900", 900);
    several(&s);
    silent(&s);
    for (size_t i = 0; i < n_elements(faults); i++)
        one_fault(&s, i);
    (void)remove(s.w.dir);
    return done();
}
