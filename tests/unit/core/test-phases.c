#include "core/progress/phases.h"

#include <malloc.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/names.h"
#include "base/rng.h"
#include "base/units.h"
#include "core/progress/envelope.h"
#include "core/progress/kind.h"
#include "tap.h"

/* A board at 10 Hz with 1 % noise; power as the time says. */
struct bench {
    struct phases *p;
    struct rng rng;
    double now_s, period_s; /* of the square wave; 0 flat */
    double high_w, low_w, duty;
    double sm; /* NAN unknown */
};

static void begin(struct bench *b)
{
    *b = (struct bench){.duty = 0.7, .sm = NAN};
    rng_init(&b->rng, 11);
    if (phases_new(&b->p) < 0)
        abort();
}

static void run(struct bench *b, double seconds)
{
    double from = b->now_s;
    int n = (int)lround(seconds * 10);

    for (int i = 0; i < n; i++) {
        b->now_s = from + i * 0.1;
        /* A hair later: no edge of the wave falls on a sample. */
        double part =
            b->period_s > 0 ? fmod(b->now_s + 0.013, b->period_s) / b->period_s : 0;
        double w =
            (part < b->duty ? b->high_w : b->low_w) * (1 + 0.01 * rng_normal(&b->rng));
        struct activity a = {(uint64_t)llround(b->now_s * 1e9), w, b->sm, NAN, NAN, NAN};
        (void)phases_feed(b->p, &a);
    }
    b->now_s = from + seconds;
}

static void steps(struct bench *b, double period_s, double high_w, double low_w)
{
    b->period_s = period_s;
    b->high_w = high_w;
    b->low_w = low_w;
}

static void flat(struct bench *b, double w)
{
    steps(b, 0, w, w);
}

static unsigned standing(const struct bench *b)
{
    unsigned n = 0;

    for (uint64_t i = 0; i < phases_events(b->p); i++)
        n += phases_event(b->p, i)->withdrawn_ns == 0;
    return n;
}

static void is_event(const struct bench *b, uint64_t no, double onset_s,
                     enum phase_kind kind, const char *name)
{
    const struct phase_event *e = phases_event(b->p, no);

    ok(e != NULL, "%s: there is an event %d", name, (int)no);
    if (!e)
        return;
    is_near(s_of_ns(e->onset_ns), onset_s, 0.31, "%s: began then", name);
    is_near(s_of_ns(e->fired_ns), onset_s + 0.5, 0.5, "%s: known within a second", name);
    is_str(names_word(NAMES_JOB_PHASE, e->kind), names_word(NAMES_JOB_PHASE, kind), name);
}

static void test_job(void)
{
    struct bench b;

    begin(&b);
    flat(&b, 70);
    run(&b, 30);
    is_str(names_word(NAMES_JOB_PHASE, phases_now(b.p)), "startup",
           "a low level at first is start-up");
    is_int(phases_events(b.p), 0, "where the trace begins is no change");
    steps(&b, 1, 300, 80);
    run(&b, 60);
    is_event(&b, 0, 30, PHASE_TRAIN, "training after start-up");
    flat(&b, 60);
    run(&b, 8);
    is_event(&b, 1, 90, PHASE_CHECKPOINT, "a dip to the floor");
    steps(&b, 1, 300, 80);
    run(&b, 60);
    is_event(&b, 2, 98, PHASE_TRAIN, "training again");
    ok(phases_event(b.p, 2)->back, "the pattern was known");
    flat(&b, 60);
    run(&b, 4);
    is_str(names_word(NAMES_JOB_PHASE, phases_now(b.p)), "checkpoint",
           "a pause may be a checkpoint");
    run(&b, 60);
    is_event(&b, 3, 158, PHASE_IDLE, "but not for a minute");
    is_int(phases_event(b.p, 3)->first_kind, PHASE_CHECKPOINT,
           "what was said first stays on record");
    is_int(phases_events(b.p), 4, "and nothing else happened");
    ok(phases_event(b.p, 4) == NULL, "no event before it happens");
    phases_free(b.p);
}

static void test_steady(void)
{
    static const double periods[] = {0.3, 0.7, 1, 2.5, 6};

    for (size_t i = 0; i < sizeof periods / sizeof *periods; i++) {
        struct bench b;
        begin(&b);
        steps(&b, periods[i], 300, 80);
        run(&b, 1800);
        is_int(standing(&b), 0, "half an hour of steps of %g s is no change", periods[i]);
        phases_free(b.p);
    }
}

static void test_slow_steps(void)
{
    struct bench b;

    begin(&b);
    steps(&b, 30, 300, 80);
    run(&b, 600);
    ok(phases_events(b.p) > 0, "the halves of a long step are taken for phases at first");
    is_int(standing(&b), 0, "and withdrawn when they come round again");
    ok(phases_events(b.p) <= 4, "after that they are known: %d events",
       (int)phases_events(b.p));
    flat(&b, 60);
    run(&b, 60);
    is_int(standing(&b), 1, "a pause is still found");
    phases_free(b.p);
}

static void test_changes(void)
{
    struct bench b;

    begin(&b);
    steps(&b, 1, 300, 80);
    run(&b, 120);
    steps(&b, 1, 270, 72);
    run(&b, 60);
    is_int(standing(&b), 1, "10 %% less power is a change");
    is_str(names_word(NAMES_JOB_PHASE, phases_event(b.p, 0)->kind), "change",
           "of training");
    is_near(s_of_ns(phases_event(b.p, 0)->onset_ns), 120, 1, "that began then");
    phases_free(b.p);

    begin(&b);
    flat(&b, 300);
    run(&b, 600);
    for (int i = 0; i < 600; i++) {
        flat(&b, 300 * (1 + 0.05 * i / 600));
        run(&b, 1);
    }
    is_int(phases_events(b.p), 0, "5 %% more in ten minutes is warming, no change");
    phases_free(b.p);
}

static void test_input(void)
{
    struct bench b;

    begin(&b);
    flat(&b, 200);
    run(&b, 30);
    struct activity back = {1, 500, NAN, NAN, NAN, NAN};
    struct activity none = {(uint64_t)(31e9), NAN, 50, 50, NAN, NAN};
    ok(!phases_feed(b.p, &back) && !phases_feed(b.p, &none),
       "a sample of the past or without power is no news");
    b.now_s = 500;
    run(&b, 30);
    is_int(phases_events(b.p), 0, "a gap is no change");
    ok(phases_event(b.p, 0) == NULL, "and there is no event to read");
    for (int i = 0; i < 40; i++) {
        flat(&b, i % 2 ? 60 : 250 + 20 * (i % 7));
        run(&b, 40 + 13 * (i % 5));
    }
    uint64_t n = phases_events(b.p);
    ok(n > PHASES_EVENTS, "%d events were made", (int)n);
    ok(phases_event(b.p, n - PHASES_EVENTS) && !phases_event(b.p, n - PHASES_EVENTS - 1),
       "of them the newest are kept");
    phases_free(b.p);
}

static void test_kinds(void)
{
    static const struct {
        const char *name;
        struct look look;
        struct look_back past;
        enum phase_kind kind;
    } cases[] = {
        /* clang-format off */
        {"low at first",        {60, 58, 62, 1, NAN, NAN, 5},  {60, 60, 0, false},   PHASE_STARTUP},
        {"much more",           {200, 198, 202, 1, NAN, NAN, 5}, {60, 60, 0, false}, PHASE_TRAIN},
        {"idle SMs",            {200, 198, 202, 1, 0, 0, 5},   {60, 60, 0, false},   PHASE_STARTUP},
        {"busy SMs",            {70, 68, 72, 1, 90, 0, 5},     {60, 60, 0, false},   PHASE_TRAIN},
        {"at the floor",        {62, 60, 64, 1, NAN, NAN, 5},  {60, 60, 300, true},  PHASE_CHECKPOINT},
        {"above the floor",     {100, 98, 102, 1, NAN, NAN, 5}, {60, 60, 300, true}, PHASE_LOAD},
        {"SMs work a little",   {62, 60, 64, 1, 15, 5, 5},     {60, 60, 300, true},  PHASE_LOAD},
        {"for a minute",        {62, 60, 64, 1, NAN, NAN, 60}, {60, 60, 300, true},  PHASE_IDLE},
        {"two thirds",          {220, 80, 300, 1, NAN, NAN, 5}, {60, 60, 300, true}, PHASE_VALIDATE},
        {"two thirds, lasting", {220, 80, 300, 1, NAN, NAN, 300}, {60, 60, 300, true}, PHASE_CHANGE},
        {"a little less",       {280, 80, 300, 1, NAN, NAN, 5}, {60, 60, 300, true}, PHASE_CHANGE},
        {"… after a pause",     {280, 80, 300, 1, NAN, NAN, 5}, {60, 60, 300, false}, PHASE_TRAIN},
        /* clang-format on */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        is_str(names_word(NAMES_JOB_PHASE, phase_guess(&cases[i].look, &cases[i].past)),
               names_word(NAMES_JOB_PHASE, cases[i].kind), cases[i].name);
}

/* Another limit: a third less power, and no event. */
static void test_rescale(void)
{
    struct bench b;

    begin(&b);
    phases_rescale(b.p, 200);
    is_int(phases_since(b.p), 0, "nothing was fed: no phase yet");
    steps(&b, 1, 300, 80);
    run(&b, 60);
    steps(&b, 1, 190, 80);
    run(&b, 1);
    phases_rescale(b.p, 200);
    run(&b, 60);
    is_str(names_word(NAMES_JOB_PHASE, phases_now(b.p)), "train",
           "training goes on under a limit");
    is_int(standing(&b), 0, "… and nothing happened");
    flat(&b, 120);
    run(&b, 20);
    is_int(standing(&b), 1, "a lower level of that is told");
    is_str(names_word(NAMES_JOB_PHASE, phases_now(b.p)), "validate",
           "… against training under it");
    is_near(s_of_ns(phases_since(b.p)), 121, 0.31, "… since when");
    steps(&b, 1, 190, 80);
    run(&b, 60);
    phases_free(b.p);
}

/* A limit that changes while a change is being looked at, or just after. */
static void test_rescale_between(void)
{
    for (int late = 0; late <= 8; late++) {
        struct bench b;
        begin(&b);
        steps(&b, 1, 300, 80);
        run(&b, 60);
        flat(&b, 120);
        run(&b, 0.1 * late);
        phases_rescale(b.p, 130);
        run(&b, 60);
        is_int(phases_now(b.p), PHASE_TRAIN, "%d samples: the limit's doing", late);
        is_int(standing(&b), 0, "… and no event of it stands");
        phases_free(b.p);
    }
}

/* Utilisation that is read each 5 s is no pattern, but tells training. */
static void test_rare(void)
{
    struct bench b;

    begin(&b);
    flat(&b, 250); /* nothing swings */
    for (int i = 0; i < 400; i++) {
        b.sm = i % 3 ? 97 : 60;
        run(&b, 0.1);
        b.sm = NAN;
        run(&b, 4.9);
    }
    is_int(standing(&b), 0, "half an hour with a reading each 5 s: no change");
    is_str(names_word(NAMES_JOB_PHASE, phases_now(b.p)), "train",
           "… of which they say that it works");
    phases_free(b.p);
}

static void test_confidence(void)
{
    for (int k = 0; k < PHASE_KINDS; k++) {
        double c = phase_confidence((enum phase_kind)k);
        ok(k == PHASE_UNKNOWN ? c == 0 : c > 0 && c < 1, "%s: %g",
           names_word(NAMES_JOB_PHASE, (enum phase_kind)k), c);
    }
}

/* A history takes pages as it fills: 7 minutes at 10 Hz are 230 kB a job. */
static void test_memory(void)
{
    struct rusage before, after;
    struct phases *p;

    (void)getrusage(RUSAGE_SELF, &before);
    ok(phases_new(&p) == 0, "new");
    (void)phases_feed(p, &(struct activity){NS_PER_S, 100, 50, 20, NAN, NAN});
    (void)getrusage(RUSAGE_SELF, &after);
    ok(after.ru_minflt - before.ru_minflt < 40, "%ld pages for a sample",
       after.ru_minflt - before.ru_minflt);
    phases_free(p);
}

static void test_history(void)
{
    static struct history h;

    for (unsigned i = 0; i <= 10000; i++)
        (void)history_add(&h,
                          &(struct activity){i * (NS_PER_S / 10), i < 9950 ? 100 : 200,
                                             NAN, NAN, NAN, NAN});
    is_int(h.n - history_first(&h), HISTORY_SAMPLES, "so many samples are kept");
    is_near(history_mean(&h, CHANNEL_POWER, 990 * NS_PER_S, 1000 * NS_PER_S), 151, 1e-6,
            "a reading stands for the time before it");
    is_near(
        history_mean(&h, CHANNEL_POWER, 994 * NS_PER_S, 995 * NS_PER_S - NS_PER_S / 20),
        100 + 100 * 0.05 / 0.95, 1e-6, "an end between two readings is interpolated");
    is_near(history_mean(&h, CHANNEL_POWER, 0, 1000 * NS_PER_S),
            (100 * 404.5 + 200 * 5.1) / 409.5, 0.1, "what is no longer kept is left out");
}

int main(void)
{
#ifndef __SANITIZE_ADDRESS__     /* has pages of its own */
    (void)mallopt(M_PERTURB, 0); /* meson sets it: calloc() would write */
    test_memory();               /* first: later ones get pages that were used */
#endif
    test_job();
    test_steady();
    test_slow_steps();
    test_changes();
    test_input();
    test_kinds();
    test_history();
    test_rescale();
    test_rescale_between();
    test_rare();
    test_confidence();
    return done();
}
