/* The sources of a job's progress, each driven by hand: when it is certain, that it
 * delivers a window, and what it says when nothing comes.
 */
#include "tuner/progress-source.h"

#include "base/units.h"
#include "tap.h"
#include "virtual/virtual-loop.h"

/* The pasted names are reserved ones; the linker's option --wrap gives them. */
#define JOIN(a, b) a##b
#define WRAPPED(name) JOIN(__wrap_, name)
void WRAPPED(energy_sum_mark)(struct energy_sum *m, uint64_t at_ns);
int WRAPPED(energy_sum_window)(struct energy_sum *m, uint64_t begin_ns, uint64_t end_ns,
                               energy_sum_fn fn, void *user);

static unsigned marks;
static uint64_t booked_ns; /* length of all stretches */

void WRAPPED(energy_sum_mark)(struct energy_sum *m, uint64_t at_ns)
{
    (void)m;
    marks += at_ns > 0;
}

int WRAPPED(energy_sum_window)(struct energy_sum *m, uint64_t begin_ns, uint64_t end_ns,
                               energy_sum_fn fn, void *user)
{
    (void)m;
    (void)fn;
    (void)user;
    booked_ns += end_ns - begin_ns;
    return 0;
}

static int on_energy(void *user)
{
    (void)user;
    return 0;
}

static struct rate *rate_of(void *user)
{
    return user;
}

/* A job that makes a step a second and 1,000 launches a step. */
struct job {
    struct loop *loop;
    struct rate *rate;
    struct board_caps caps;
    struct regimes regimes;
    struct tuner_notes notes;
    struct progress p;
    double now_s;
    uint64_t pid; /* of the process that launches */
    struct progress_period_heard heard;
};

static bool job_open(struct job *j)
{
    uw_error err;

    *j = (struct job){.now_s = 1000, .pid = 1, .caps.commanded_mw = 200000};
    if (loop_new_virtual(ns_of_s(j->now_s), 0, &j->loop, &err) < 0 ||
        rate_new(&j->rate) < 0)
        return ok(false, "no loop or no rate");
    regimes_init(&j->regimes, NULL, on_energy, NULL);
    j->p = (struct progress){
        .loop = j->loop,
        .caps = &j->caps,
        .regimes = &j->regimes,
        .notes = &j->notes,
        .window_s = 10,
        .told.warm_s = 10,
        .launches = {.rate = rate_of, .rate_of = j->rate},
        .none.likely = TUNER_BY_PERIOD,
    };
    steps_init(&j->p.steps);
    j->heard = (struct progress_period_heard){.why = PERIOD_FLAT, .util = 0.9};
    booked_ns = marks = 0;
    return true;
}

static void job_close(struct job *j)
{
    regimes_fini(&j->regimes);
    rate_free(j->rate);
    loop_free(j->loop);
}

/* The job works for a second, and its source is told. */
static enum progress_news second(struct job *j, const struct progress_source *source)
{
    uint64_t now = ns_of_s(++j->now_s);
    struct step_slot slot = {.pid = 1,
                             .steps = (uint64_t)j->now_s,
                             .last_step_ns = now,
                             .phase = UW_PHASE_TRAIN,
                             .live = true};
    struct rate_process process = {
        .pid = j->pid, .since_ns = j->pid, .kind[0] = (uint64_t)(1000 * j->now_s)};
    enum progress_news news = PROGRESS_GOES_ON;

    rate_feed(j->rate, &process, 1, now);
    j->heard.at_ns = j->heard.to_ns = now;
    j->heard.cycles = s_between(j->heard.from_ns, now);
    if (source->inferred || source == &progress_by_nothing)
        return source->on_power(&j->p, &j->heard);
    (void)steps_feed(&j->p.steps, &slot, 1, now);
    if (source->on_steps)
        news = source->on_steps(&j->p, now);
    return news;
}

/* The first news within so many seconds. */
static enum progress_news hear(struct job *j, const struct progress_source *source,
                               unsigned seconds)
{
    enum progress_news news = PROGRESS_GOES_ON;

    while (news == PROGRESS_GOES_ON && seconds-- > 0)
        news = second(j, source);
    return news;
}

/* Asks for a window of 10 s: the one way in which sources deliver. */
static void delivers(struct job *j, const struct progress_source *source,
                     const char *name)
{
    static const struct window_rule rule = {.least_s = 10, .least_steps = 5};
    struct window *w = &j->p.window;

    window_arm(w, &rule, ns_of_s(j->now_s));
    if (source->ask)
        source->ask(&j->p);
    j->p.from_ns = j->heard.from_ns = ns_of_s(j->now_s);
    enum progress_news news = hear(j, source, 60);
    double s = s_between(w->piece[0].from.at_ns, w->piece[0].to.at_ns);
    ok(news == PROGRESS_WINDOW && w->n_pieces == 1 && s >= 7 && s < 60,
       "%s: a window of %.1f s", name, s);
    ok(w->steps >= 5 && fabs(w->steps * w->time_s / s - 1) < 0.01,
       "… of %.1f steps, %.3g s each", w->steps, w->time_s);
}

static void table(void)
{
    for (size_t i = 0; i < PROGRESS_SOURCES; i++) {
        const struct progress_source *s = progress_sources[i];
        bool hears = s->on_power ? s->ask != NULL : s->waits && s->on_steps;
        ok(hears && s->missing && s->lost && s->found, "row %zu: %s", i, s->missing);
        ok(!s->inferred || (s->begin && s->on_power),
           "… what is inferred begins with what was heard");
    }
}

static bool awaits(const struct progress *p, const char *what)
{
    char text[80];

    progress_awaits(p, text, sizeof text);
    return ok(strcmp(text, what) == 0, "steps: it %s", text);
}

static void steps(void)
{
    const struct progress_source *s = &progress_by_steps;
    struct job j;

    if (!job_open(&j))
        return;
    enum progress_news news = PROGRESS_GOES_ON;
    double began_s = j.now_s;
    (void)awaits(&j.p, "waits for training steps");
    while (news == PROGRESS_GOES_ON && j.now_s < began_s + 60) {
        (void)second(&j, s);
        if (j.now_s == began_s + 1)
            (void)awaits(&j.p, "waits for 3 steps and 10 s of training");
        news = s->waits(&j.p, ns_of_s(j.now_s));
    }
    ok(news == PROGRESS_SURE && j.now_s - began_s >= 10, "steps: certain after %.0f s",
       j.now_s - began_s);
    ok(progress_begin(&j.p) == PROGRESS_SAME && j.p.by == TUNER_BY_STEPS,
       "… and are the regime's unit");
    delivers(&j, s, "steps");
    ok(marks == 2, "… whose begin and end are marked");
    ok(s->lost_ns(&j.p) == UINT64_MAX, "… are not lost while they come");
    j.p.steps.phase = UW_PHASE_VALIDATE;
    (void)awaits(&j.p, "waits for training to go on");
    j.p.told.seen_ns = ns_of_s(j.now_s);
    steps_init(&j.p.steps);
    is_near(s_between(j.p.told.seen_ns, s->lost_ns(&j.p)), 120, 1e-6,
            "… are lost two minutes later");
    job_close(&j);
}

/* A period of a second is heard from now on. */
static void repeat(struct job *j)
{
    j->heard.known = true;
    j->heard.period_s = 1;
    j->heard.rse = 0.001;
    j->heard.confidence = 0.9;
    j->heard.from_ns = ns_of_s(j->now_s);
}

static void listen(struct job *j, uint64_t sure_ns)
{
    j->p.by = TUNER_BY_NOTHING;
    progress_listen(&j->p, &(struct progress_listen){.anew = true, .sure_ns = sure_ns});
    j->p.from_ns = ns_of_s(j->now_s);
}

static void period(void)
{
    struct job j;

    if (!job_open(&j))
        return;
    j.p.launches.rate = NULL;
    listen(&j, 0);
    repeat(&j);
    ok(second(&j, &progress_by_nothing) == PROGRESS_GOES_ON, "one period is not certain");
    ok(second(&j, &progress_by_nothing) == PROGRESS_SURE, "… the same again is");
    ok(progress_begin(&j.p) == PROGRESS_OTHER_UNIT && j.p.by == TUNER_BY_PERIOD &&
           j.p.unknown[0] == '\0' && j.p.period_s == 1,
       "… and counts");
    delivers(&j, &progress_by_period, "period");
    ok(booked_ns > ns_of_s(6), "… whose stretch is booked: %.1f s",
       (double)booked_ns * 1e-9);
    j.heard.known = false;
    enum progress_news news = hear(&j, &progress_by_period, 100);
    ok(news == PROGRESS_DEAF && j.p.inferred.missed == 1, "… it says that it is deaf: %s",
       j.p.unknown);
    ok(j.p.inferred.booked_ns == 0, "… and steps since then are unknown");
    job_close(&j);
}

static void launches(void)
{
    struct job j;

    if (!job_open(&j))
        return;
    listen(&j, 0);
    enum progress_news news = hear(&j, &progress_by_nothing, 200);
    ok(news == PROGRESS_SURE && j.p.none.likely == TUNER_BY_LAUNCHES,
       "launches: certain after %.0f s", j.now_s - 1000);
    ok(progress_begin(&j.p) == PROGRESS_OTHER_UNIT && j.p.by == TUNER_BY_LAUNCHES,
       "… and count");
    ok(j.p.period_s >= 0.09 && j.p.period_s <= 1.1, "… %.0f of them take %.2f s",
       j.p.launches.unit, j.p.period_s);
    delivers(&j, &progress_by_launches, "launches");
    ok(!progress_takes(&j.p, &(struct steps){.guessed = true}) &&
           progress_takes(&j.p, &(struct steps){.guessed = false}),
       "… guessed steps do not count beside them, reported ones do");
    j.pid = 2; /* another process launches */
    news = hear(&j, &progress_by_launches, 200);
    ok(news == PROGRESS_LOST, "… are lost: %s", j.p.unknown);
    job_close(&j);
}

static void nothing(void)
{
    struct job j;

    if (!job_open(&j))
        return;
    j.p.launches.rate = NULL;
    listen(&j, ns_of_s(2000));
    ok(hear(&j, &progress_by_nothing, 119) == PROGRESS_GOES_ON &&
           second(&j, &progress_by_nothing) == PROGRESS_UNKNOWN,
       "nothing: unknown after two minutes: %s", j.p.unknown);
    repeat(&j);
    ok(hear(&j, &progress_by_nothing, 60) == PROGRESS_GOES_ON,
       "… nothing is certain while the job rests");
    progress_listen(&j.p, &(struct progress_listen){.safe = true});
    j.heard.known = false;
    ok(hear(&j, &progress_by_nothing, 1000) == PROGRESS_GOES_ON,
       "… under the safe cap nothing is due");
    ok(progress_is_told(&j.p, &(struct steps){.has_mark = true}),
       "… steps replace it at once");
    progress_count_steps(&j.p);
    ok(j.p.by == TUNER_BY_STEPS && j.p.unit == TUNER_BY_STEPS, "… and count");
    job_close(&j);
}

/* A source that this test makes up: the job tells of work in parts of a step. */
static enum progress_news on_parts(struct progress *p, uint64_t now)
{
    struct window *w = &p->window;
    double s = s_between(p->from_ns, now);

    if (s < w->rule.least_s)
        return PROGRESS_GOES_ON;
    w->state = WINDOW_CLOSED;
    w->n_pieces = 1;
    w->piece[0] = (struct window_piece){{1, p->from_ns, 1}, {11, now, 1}};
    w->steps = 4 * s;
    w->time_s = 0.25;
    return PROGRESS_WINDOW;
}

static void made_up(void)
{
    static const struct progress_source parts = {.missing = "parts",
                                                 .on_steps = on_parts};
    struct job j;

    if (!job_open(&j))
        return;
    delivers(&j, &parts, "a made-up source");
    job_close(&j);
}

int main(void)
{
    table();
    steps();
    period();
    launches();
    nothing();
    made_up();
    return done();
}
