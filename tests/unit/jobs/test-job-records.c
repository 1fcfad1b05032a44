/* How often the phases that a job tells are booked: the table of jobs changes, boards
 * turn.
 */
#include "jobs/job-records.h"

#include "core/progress/steps.h"
#include "procs.h"

enum { ANNA = 1000, JOB = 42, BOOKINGS = 4096 };
#define EVERY_S 0.8 /* as BOOKED_EVERY_S of job-records.c */

static struct {
    struct roster *roster;
    struct job_records *records;
    struct steps steps;
    struct loop_timer *ticks;
    struct {
        uint64_t at_ns;
        uint32_t phase;
    } booked[BOOKINGS];
    size_t n;
    unsigned turns, told;
    uint32_t last_told;
} w;

static void on_event(enum roster_event event, const struct job_entry *job, void *user)
{
    uint32_t before = w.n > 0 ? w.booked[w.n - 1].phase : UW_PHASE_UNKNOWN;
    (void)user;

    if (event != ROSTER_CHANGE || job->phase == before || w.n == BOOKINGS)
        return;
    w.booked[w.n].at_ns = loop_now_ns(fake.loop);
    w.booked[w.n++].phase = job->phase;
}

static void on_turn(size_t board, void *user)
{
    (void)board;
    (void)user;
    w.turns++;
}

static const struct steps *on_steps(uint64_t job, void *user)
{
    (void)user;
    return job == JOB ? &w.steps : NULL;
}

static void on_phase(uint64_t job, const struct view_phase *phase, void *user)
{
    (void)user;
    w.told += job == JOB && phase->phase != w.last_told;
    w.last_told = phase->phase;
}

static void on_drop(uint64_t job, void *user)
{
    (void)job;
    (void)user;
}

static int on_tick(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    (void)user;
    job_records_tick(w.records, now_ns);
    return 0;
}

/* A job on two boards whose page tells a phase; ticks as those of a node. */
static bool begin(void)
{
    const struct roster_register reg = {
        .source = JOB_REGISTERED, .name = "train", .uid = ANNA, .boards = 3, .id = JOB};
    uint64_t id = 0;
    uw_error err = {{0}};

    memset(&w, 0, sizeof w);
    if (!fake_begin(false))
        return false;
    const struct roster_opts opts = {.loop = fake.loop,
                                     .boards = fake.boards,
                                     .read = fake_read,
                                     .on_event = on_event,
                                     .on_turn = on_turn};
    if (roster_new(&opts, &w.roster, &err) < 0)
        return ok(false, "a roster: %s", err.text);
    const struct job_records_opts of_records = {.loop = fake.loop,
                                                .roster = w.roster,
                                                .boards = fake.boards,
                                                .steps = on_steps,
                                                .on_phase = on_phase,
                                                .on_drop = on_drop};
    steps_init(&w.steps);
    fake_wait(2.5);
    int r = job_records_new(&of_records, &w.records);
    if (r == 0)
        r = roster_begin(w.roster, &reg, &id, &err);
    if (r == 0)
        r = loop_timer_new(fake.loop, loop_now_ns(fake.loop), NS_PER_S, on_tick, NULL,
                           &w.ticks, &err);
    bool good = r == 0 && job_records_add(w.records, JOB);
    fake_wait(3.3); /* the ticks are out of step with what the page tells */
    w.turns = 0;
    return ok(good && w.n == 0, "a job without a phase: nothing is booked %s", err.text);
}

static void end(void)
{
    loop_timer_free(w.ticks);
    job_records_free(w.records);
    roster_free(w.roster);
    fake_end();
}

/* The page is in another phase from now on. */
static void page(uint32_t phase)
{
    w.steps.phase = phase;
    w.steps.phase_ns = loop_now_ns(fake.loop);
    job_records_told(w.records, JOB);
}

static double shortest_s(void)
{
    double ret = INFINITY;

    for (size_t i = 1; i < w.n; i++)
        ret = fmin(ret, s_between(w.booked[i - 1].at_ns, w.booked[i].at_ns));
    return ret;
}

static uint32_t phase_no(unsigned i)
{
    return UW_PHASE_TRAIN + i % (UW_PHASE_CHECKPOINT - UW_PHASE_TRAIN + 1);
}

/* Three thousand phases in a minute. */
static void fast(void)
{
    enum { CHANGES = 3000 };

    if (!begin()) {
        end();
        return;
    }
    for (unsigned i = 0; i < CHANGES; i++) {
        page(phase_no(i));
        fake_wait(0.02);
    }
    is_int(w.told, CHANGES, "each of %d phases in a minute is told", CHANGES);
    ok(w.n <= 60 / EVERY_S + 1, "at most each %g s one is booked: %zu", EVERY_S, w.n);
    ok(shortest_s() >= EVERY_S, "no two within %g s: %.3f s", EVERY_S, shortest_s());
    ok(w.n >= 60, "each second one at least");
    is_int(w.turns, 2 * w.n, "each ends a stretch of energy on both boards");

    fake_wait(2);
    const struct job_entry *job = roster_find(w.roster, JOB);
    is_int(job->phase, phase_no(CHANGES - 1), "the last of them is booked in the end");

    /* the last one comes right behind another that was booked */
    page(UW_PHASE_TRAIN);
    fake_wait(0.02);
    page(UW_PHASE_STARTUP);
    is_int(job->phase, UW_PHASE_TRAIN, "a phase after 20 ms of another: not yet");
    fake_wait(2);
    is_int(job->phase, UW_PHASE_STARTUP, "by a tick it is booked");
    is_int(w.booked[w.n - 1].phase, UW_PHASE_STARTUP, "and told");
    size_t n = w.n;
    fake_wait(60);
    is_int(w.n, n, "once");
    end();
}

/* Phases a little slower than the bound, told by the page and by no tick. */
static void slow(double every_s)
{
    enum { CHANGES = 50 };
    unsigned late = 0;

    if (!begin()) {
        end();
        return;
    }
    for (unsigned i = 0; i < CHANGES; i++) {
        uint64_t at_ns = loop_now_ns(fake.loop);
        page(phase_no(i));
        late += w.n != i + 1 || w.booked[i].phase != phase_no(i) ||
                w.booked[i].at_ns != at_ns;
        fake_wait(every_s);
    }
    is_int(w.n, CHANGES, "phases of %g s: all are booked", every_s);
    is_int(late, 0, "each when it is told");
    is_int(w.turns, 2 * CHANGES, "the boards turn with each");
    end();
}

static uint64_t now(void)
{
    return loop_now_ns(fake.loop);
}

/* For how long the record of a job is kept that has ended, or is taken to be over. */
static void kept(void)
{
    if (!begin()) {
        end();
        return;
    }
    struct job_record *rec = job_records_find(w.records, JOB);
    const struct job_entry last = *roster_find(w.roster, JOB);
    job_records_end(w.records, rec, &last);
    fake_wait(55);
    ok(job_records_find(w.records, JOB) == rec && rec->last.id == JOB, "a minute");
    rec->lost = true;
    fake_wait(540);
    ok(job_records_find(w.records, JOB) == rec && job_records_shows(rec, now()),
       "ten minutes where it may come back");
    fake_wait(86400);
    ok(job_records_find(w.records, JOB) == rec && !job_records_shows(rec, now()),
       "without a limit for days, but not shown");
    rec->ended_ns = now() - 7 * 86400 * NS_PER_S + 2 * NS_PER_S;
    fake_wait(1);
    ok(job_records_find(w.records, JOB) == rec, "a week");
    job_records_back(rec);
    fake_wait(700);
    ok(job_records_find(w.records, JOB) == rec && !rec->ended_ns && !rec->lost,
       "as long as it runs where it is back");
    job_records_end(w.records, rec, &last);
    fake_wait(63);
    ok(!job_records_find(w.records, JOB), "a minute, and not longer");
    rec = job_records_add(w.records, JOB);
    job_records_end(w.records, rec, &last);
    rec->lost = true;
    rec->life = (struct lifetime){.began_ns = now(), .limit_ns = 3600 * NS_PER_S};
    fake_wait(3655);
    ok(job_records_find(w.records, JOB) == rec, "until its time is over");
    fake_wait(8);
    ok(!job_records_find(w.records, JOB), "and not longer");
    end();
}

/* How many jobs are kept that may come back: they take no place of those that run. */
static void many(void)
{
    size_t n = 0;

    if (!begin()) {
        end();
        return;
    }
    const struct job_entry last = *roster_find(w.roster, JOB);
    for (uint64_t id = 1000; id < 1000 + JOB_LOST_MAX + 2; id++) {
        struct job_record *rec = job_records_add(w.records, id);
        fake_wait(1);
        job_records_end(w.records, rec, &last);
        rec->lost = true;
        job_records_trim(w.records);
    }
    ok(!job_records_find(w.records, 1001) && job_records_find(w.records, 1002),
       "of more than %d those go that ended first", JOB_LOST_MAX);
    for (uint64_t id = 2000; id < 2000 + ROSTER_MAX; id++)
        n += job_records_add(w.records, id) != NULL;
    is_int((long)n, ROSTER_MAX - 1, "as many others as without them");
    ok(job_records_full(w.records), "not one more");
    struct job_record *rec = job_records_find(w.records, 2000);
    job_records_end(w.records, rec, &last);
    ok(job_records_add(w.records, 3000) && !job_records_find(w.records, 2000) &&
           job_records_find(w.records, 1002),
       "an ended one makes room, no lost one does");
    end();
}

/* The end of lost jobs is told while the table is full: there are more of the others than
 * have a place.
 */
static void overfull(void)
{
    enum { LOST = 3 };

    if (!begin()) {
        end();
        return;
    }
    const struct job_entry last = *roster_find(w.roster, JOB);
    for (uint64_t id = 1000; id < 1000 + LOST; id++) {
        struct job_record *rec = job_records_add(w.records, id);
        job_records_end(w.records, rec, &last);
        rec->lost = true;
    }
    for (uint64_t id = 2000; id < 2000 + ROSTER_MAX - 1; id++) {
        struct job_record *rec = job_records_add(w.records, id);
        job_records_end(w.records, rec, &last);
    }
    for (uint64_t id = 1000; id < 1000 + LOST; id++)
        job_records_find(w.records, id)->lost = false;
    ok(job_records_add(w.records, 3000), "a job has a record where others have ended");
    ok(job_records_add(w.records, 3001), "so has the next");
    is_int((long)job_records_count(w.records), ROSTER_MAX, "no more records than places");
    ok(job_records_find(w.records, JOB), "that of a running job is kept");
    end();
}

/* The last messages stay, each at its number. */
static void notes(void)
{
    struct job_notes said = {0};
    char text[16];

    for (int i = 1; i <= JOB_NOTES_MAX + 2; i++) {
        (void)snprintf(text, sizeof text, "message %d", i);
        job_notes_add(&said, text);
    }
    is_int((long)said.n, JOB_NOTES_MAX + 2, "all messages are counted");
    for (uint64_t i = 3; i <= said.n; i++) {
        (void)snprintf(text, sizeof text, "message %d", (int)i);
        is_str(said.text[i % JOB_NOTES_MAX], text, "a late one is kept");
    }
}

int main(void)
{
    notes();
    fast();
    kept();
    many();
    overfull();
    slow(0.85);
    slow(30);
    return done();
}
