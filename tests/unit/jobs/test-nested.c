/* A job within a scheduler's: its search for that one's goal cannot begin at first, then
 * it has one of its own, and the outer job's class.
 */
#include <string.h>

#include "node/nested.h"
#include "tuner/searches-inside.h"

#include "procs.h"

enum { ANNA = 1000, STEPD = 90, RUN = 100 };

static unsigned gives;
static int given;

static int give(const struct job_entry *job, struct job_record *rec, void *user,
                uw_error *err)
{
    (void)job;
    (void)rec;
    (void)user;
    gives++;
    return given < 0 ? fail(err, given, "the board cannot be capped") : 0;
}

static void on_event(enum roster_event event, const struct job_entry *job, void *user)
{
    (void)event;
    (void)job;
    (void)user;
}

static void on_drop(uint64_t job, void *user)
{
    (void)job;
    (void)user;
}

static const struct steps *no_steps(uint64_t job, void *user)
{
    (void)job;
    (void)user;
    return NULL;
}

static void ticks(const struct nested *n)
{
    struct job_record *rec = job_records_find(n->records, 2);

    given = -ENOTSUP;
    nested_tick(n);
    ok(gives == 1 && rec->lent && rec->again, "a goal is lent, its search cannot begin");
    nested_tick(n);
    ok(gives == 2 && rec->again, "the next tick tries it again");
    given = 0;
    nested_tick(n);
    ok(gives == 3 && !rec->again, "until it begins");
    job_records_find(n->records, 1)->search = false;
    given = -ENOENT;
    nested_tick(n);
    ok(gives == 4 && !rec->lent && !rec->again, "the goal is taken back");
    nested_tick(n);
    is_int(gives, 4, "then there is none to begin");
}

static const struct cap_class batch = {.floor = 0.7};

static int give_class(const struct job_entry *job, struct job_record *rec, void *user,
                      uw_error *err)
{
    const struct nested *n = user;
    bool is_batch = strcmp(nested_class(n->records, job, rec), "batch") == 0;

    gives++;
    return searches_goal(n->searches, job->id, job_record_goal(rec),
                         is_batch ? &batch : NULL, err);
}

/* The search of job 2 begins before it is known that the job runs in job 1. */
static void classes(struct nested *n)
{
    struct job_record *rec = job_records_find(n->records, 2);
    struct job_record *outer = job_records_find(n->records, 1);
    struct job_entry early = *roster_find(n->roster, 2);
    const struct searches_ask ask = {.search = true, .goal = {.kind = GOAL_EDP}};
    uw_error err = {""};

    early.within = early.boards = 0;
    rec->search = true;
    rec->goal = ask.goal;
    n->give = give_class;
    n->user = n;
    gives = 0;
    if (!ok(searches_begin(n->searches, &early, &ask, &err) == 0, "begins: %s", err.text))
        return;
    const struct searches_ask *is = &searches_find(n->searches, 2)->ask;
    nested_tick(n);
    ok(gives == 0 && !is->cls, "neither job has a class: the search keeps the default");
    (void)snprintf(rec->cls, sizeof rec->cls, "own");
    (void)snprintf(outer->cls, sizeof outer->cls, "batch");
    nested_tick(n);
    ok(gives == 0 && !is->cls, "a class of its own counts before the outer job's");
    rec->cls[0] = '\0';
    nested_tick(n);
    ok(gives == 1 && is->cls && is->cls->floor == batch.floor &&
           is->goal.kind == GOAL_EDP,
       "without one, a search with a goal of its own gets the outer job's class");
    nested_tick(n);
    is_int(gives, 1, "once");
    rec->cls_of = 0;
    nested_begin(n, roster_find(n->roster, 2), rec);
    nested_tick(n);
    is_int(gives, 1, "a search that begins with the class is not given it again");
}

static int begin(struct roster *r, struct job_records *records, uw_error *err)
{
    const struct job_proc stepd = {STEPD, 1090};
    const struct roster_register outer = {.source = JOB_REGISTERED,
                                          .name = "slurm:1",
                                          .uid = ANNA,
                                          .boards = 1,
                                          .id = 1,
                                          .proc = &stepd,
                                          .n_procs = 1};
    const struct roster_register run = {.source = JOB_RUN,
                                        .name = "train",
                                        .uid = ANNA,
                                        .boards = 1,
                                        .id = 2,
                                        .pid = RUN,
                                        .pid_start = 1100};
    uint64_t id = 0;

    fake_process(STEPD, 1, 0, "/slurmd.service");
    fake_process(RUN, STEPD, ANNA, "/slurmd.service");
    int got = roster_begin(r, &outer, &id, err);
    if (got == 0)
        got = roster_begin(r, &run, &id, err);
    if (got == 0)
        roster_note(r, 1, &stepd, 1);
    return got < 0 || !job_records_add(records, 1) || !job_records_add(records, 2) ? -1
                                                                                   : 0;
}

int main(void)
{
    struct roster *r = NULL;
    struct job_records *records = NULL;
    struct searches *searches = NULL;
    uw_error err = {""};

    if (!fake_begin(false))
        return done();
    const struct roster_opts opts = {.loop = fake.loop,
                                     .boards = fake.boards,
                                     .read = fake_read,
                                     .on_event = on_event};
    const struct job_records_opts of_records = {
        .loop = fake.loop, .boards = fake.boards, .steps = no_steps, .on_drop = on_drop};
    const struct searches_opts of_searches = {.loop = fake.loop, .boards = fake.boards};
    int got = roster_new(&opts, &r, &err);
    if (got == 0)
        got = job_records_new(&of_records, &records);
    if (got == 0)
        got = searches_new(&of_searches, &searches, &err);
    if (got == 0)
        got = begin(r, records, &err);
    if (ok(got == 0 && roster_find(r, 2)->within == 1, "a job in one: %s", err.text)) {
        job_records_find(records, 1)->search = true;
        job_records_find(records, 1)->goal = (struct goal){.kind = GOAL_EDP};
        struct nested n = {r, records, searches, give, NULL};
        ticks(&n);
        classes(&n);
    }
    searches_free(searches);
    job_records_free(records);
    roster_free(r);
    fake_end();
    return done();
}
