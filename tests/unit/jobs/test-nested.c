/* A job within a scheduler's whose search for that one's goal cannot begin at first. */
#include "node/nested.h"

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
        ticks(&(struct nested){r, records, searches, give, NULL});
    }
    searches_free(searches);
    job_records_free(records);
    roster_free(r);
    fake_end();
    return done();
}
