/* Registered jobs by name: found, renewed, sharing boards; by which processes their own
 * are told from others.
 */
#include "procs.h"

enum { ANNA = 1000, EVE = 1001 };
#define SESSION "/user.slice/user-1000.slice/session-3.scope"
#define STEPD "/system.slice/slurmd.service"

static struct roster *begin(void)
{
    memset(&fake_heard, 0, sizeof fake_heard);
    return fake_roster(false,
                       (struct roster_opts){.on_event = fake_hear, .read = fake_read});
}

static const struct label gpu[] = {{"slurm.partition", "gpu"}};
static const struct label cpu[] = {{"slurm.partition", "cpu"}, {"slurm.qos", "low"}};

static struct roster_register of(const char *name, uid_t uid, uint64_t boards)
{
    return (struct roster_register){.source = JOB_REGISTERED,
                                    .name = name,
                                    .uid = uid,
                                    .boards = boards,
                                    .firm = true,
                                    .label = gpu,
                                    .n_labels = 1};
}

static void renewed(void)
{
    struct roster *r = begin();
    struct roster_register reg = of("slurm:42", ANNA, 3), run = of("slurm:42", ANNA, 3);
    uint64_t id = 0, other = 0;
    uw_error err = {""};

    is_int((long)roster_named(r, "slurm:42"), 0, "there is none");
    is_int(roster_begin(r, &reg, &id, &err), 0, "a job");
    ok(roster_named(r, "slurm:42") == id && !roster_named(r, "slurm:4"), "by its name");
    const struct job_entry *j = roster_find(r, id);
    fake_process(100, 1, ANNA, SESSION);
    fake_on(3, 100, true);
    fake_wait(7);
    is_int((long)j->boards, 3, "a stranger of its user elsewhere is not its");
    reg = of("slurm:42", ANNA, 6);
    reg.label = cpu;
    reg.n_labels = 2;
    is_int(roster_renew(r, id, &reg, &err), 0, "renewed");
    ok(j->given == 6 && j->boards == 6 && j->so_far == 7, "other boards");
    ok(j->n_labels == 2 && strcmp(j->label[0].value, "cpu") == 0, "other labels");
    ok(roster_may_claim(r, ANNA, 2) && !roster_may_claim(r, ANNA, 0), "other rights");
    ok(fake_heard.begun == 2 && fake_heard.changed > 0, "told as a change");
    reg.boards = 1u << FAKES;
    is_int(roster_renew(r, id, &reg, &err), -EINVAL, "%s", err.text);
    is_int((long)j->given, 6, "nothing has changed");
    is_int(roster_renew(r, 999, &reg, &err), -ENOENT, "%s", err.text);
    run.source = JOB_RUN;
    run.name = "train";
    is_int(roster_begin(r, &run, &other, &err), 0, "a job that is run");
    is_int(roster_renew(r, other, &reg, &err), -ENOENT, "is not renewed: %s", err.text);
    is_int((long)roster_named(r, "train"), 0, "nor found by its name");
    is_int(roster_end(r, id, &err), 0, "the end");
    is_int((long)roster_named(r, "slurm:42"), 0, "it is found no more");
    fake_roster_end(r);
}

static void shared(void)
{
    struct roster *r = begin();
    struct roster_register a = of("slurm:1", ANNA, 1), b = of("slurm:2", EVE, 3),
                           c = of("batch:3", EVE, 1), d = of("batch:4", EVE, 8);
    uint64_t id = 0;
    uw_error err = {""};

    is_int(roster_begin(r, &a, &id, &err), 0, "a job of Slurm's");
    is_int(roster_begin(r, &b, &id, &err), 0, "another user's on the same board");
    ok(roster_may_claim(r, ANNA, 0) && roster_may_claim(r, EVE, 0), "both may claim");
    is_int(roster_begin(r, &c, &id, &err), -EBUSY, "another registrar's: %s", err.text);
    is_int(roster_begin(r, &d, &id, &err), 0, "on a board of its own");
    a.boards = 9;
    is_int(roster_renew(r, roster_named(r, "slurm:1"), &a, &err), -EBUSY,
           "which Slurm's does not get, either: %s", err.text);
    is_int((long)roster_find(r, roster_named(r, "slurm:1"))->given, 1, "it has the old");
    fake_roster_end(r);
}

/* Two jobs of one user on one board: each process belongs to that of its slurmstepd. */
static void steps(void)
{
    struct roster *r = begin();
    struct roster_register a = of("slurm:1", ANNA, 1), b = of("slurm:2", ANNA, 1);
    const struct job_proc first = {90, 1090}, second[] = {{91, 1091}, {92, 1092}};
    uint64_t one = 0, two = 0;
    uw_error err = {""};

    is_int(roster_begin(r, &a, &one, &err), 0, "a job");
    is_int(roster_begin(r, &b, &two, &err), 0, "another one");
    const struct job_entry *j = roster_find(r, two);
    roster_note(r, two, NULL, 0);
    is_int((long)j->n_procs, 0, "nobody is there: nothing is noted");
    for (pid_t stepd = 90; stepd <= 92; stepd++)
        fake_process(stepd, 1, 0, STEPD);
    fake_process(100, 90, ANNA, STEPD);
    fake_process(101, 92, ANNA, STEPD);
    fake_on(0, 100, true);
    fake_on(0, 101, true);
    unsigned changed = fake_heard.changed;
    roster_note(r, one, &first, 1);
    roster_note(r, two, second, 2);
    is_int(fake_heard.changed, changed + 2, "two changes");
    roster_note(r, two, second, 2);
    is_int(fake_heard.changed, changed + 2, "the same again is none");
    fake_wait(7);
    ok(roster_find(r, one)->n_pids == 1 && j->n_pids == 1, "each has its own process");
    roster_note(r, two, NULL, 0);
    ok(j->n_procs == 2 && j->proc[0].pid == 91, "what is noted stays");
    is_int(roster_renew(r, two, &b, &err), 0, "renewed");
    is_int((long)j->n_procs, 0, "nothing is noted");
    roster_note(r, two, NULL, 0);
    ok(j->n_procs == 1 && j->proc[0].pid == 101, "a process on its board is, then");
    fake_roster_end(r);

    r = begin();
    a.id = 70;
    a.proc = second;
    a.n_procs = 1;
    is_int(roster_begin(r, &a, &one, &err), 0, "taken over after a restart");
    ok(roster_find(r, one)->n_procs == 1 && roster_find(r, one)->proc[0].pid == 91,
       "with what was noted");
    fake_roster_end(r);
}

/* `underwatt run` in a job of Slurm's: what it starts is its own, not the outer job's. */
static void within(void)
{
    static const struct label own[] = {{"slurm.qos", "mine"}, {"tier", "mine"}};
    struct roster *r = begin();
    struct roster_register outer = of("slurm:1", ANNA, 1);
    struct roster_register run = {.source = JOB_RUN,
                                  .name = "train",
                                  .uid = ANNA,
                                  .boards = 1,
                                  .label = own,
                                  .n_labels = 2,
                                  .pid = 100,
                                  .pid_start = 1100};
    const struct job_proc stepd = {90, 1090};
    uint64_t one = 0, two = 0;
    uw_error err = {""};

    fake_process(90, 1, 0, STEPD);
    fake_process(100, 90, ANNA, STEPD);
    fake_process(101, 100, ANNA, STEPD);
    fake_process(102, 90, ANNA, STEPD);
    fake_on(0, 101, true);
    fake_on(0, 102, true);
    is_int(roster_begin(r, &outer, &one, &err), 0, "a job of Slurm's");
    is_int(roster_begin(r, &run, &two, &err), 0, "run in it: %s", err.text);
    is_int((long)roster_find(r, two)->within, 0, "no step of the outer one is known");
    unsigned edition = roster_find(r, two)->edition;
    roster_note(r, one, &stepd, 1);
    is_int((long)roster_find(r, two)->within, (long)one, "by its slurmstepd: in it");
    const struct job_entry *in = roster_find(r, two);
    ok(in->n_labels == 2 && strcmp(in->label[0].value, "mine") == 0,
       "with its own labels: those of the outer one are read there");
    ok(in->edition > edition, "which others count for it");
    fake_wait(7);
    const struct job_entry *j = roster_find(r, two), *o = roster_find(r, one);
    is_int((long)j->n_pids, 1, "what it started is its own");
    is_int((long)o->n_pids, 1, "the rest is the outer job's");
    ok(!roster_other(r, one, 0) && !roster_other(r, two, 0), "neither is another job");
    is_int(roster_end(r, two, &err), 0, "its end");
    fake_wait(7);
    is_int((long)roster_find(r, one)->n_pids, 2, "all is the outer job's again");
    fake_roster_end(r);
}

/* Boards that nobody named, of a process in a job of Slurm's: that job's. */
static void defaults(void)
{
    static const struct {
        uint64_t asked, want;
        pid_t pid;
        bool by_default;
        const char *what;
    } cases[] = {{1, 6, 101, true, "another job's board"},
                 {3, 6, 101, true, "one of them"},
                 {6, 6, 101, true, "all of the job's"},
                 {4, 4, 101, true, "a part of the job's, as of a step"},
                 {1, 1, 101, false, "a user has named it"},
                 {1, 1, 103, true, "by a user's own slurmstepd"},
                 {1, 1, 105, true, "in no job"},
                 {1, 1, 107, true, "in a job whose boards are not known"},
                 {1, 1, 109, true, "by a program of another name"},
                 {1, 1, 99, true, "no such process"}};
    struct roster *r = begin();
    struct roster_register two = of("slurm:1", ANNA, 6), one = of("slurm:2", ANNA, 1),
                           none = of("slurm:3", ANNA, 0);
    uint64_t id = 0, first = 0;
    uw_error err = {""};

    is_int(roster_begin(r, &two, &first, &err), 0, "two boards");
    is_int(roster_begin(r, &one, &id, &err), 0, "the next one");
    is_int(roster_begin(r, &none, &id, &err), 0, "and one whose GPUs are not known");
    const struct {
        const char *comm, *title;
        pid_t pid;
        uid_t uid;
    } stepd[] = {{"slurmstepd", "slurmstepd: [1.batch]", 90, 0},
                 {"slurmstepd", "slurmstepd: [1.0]", 92, EVE},
                 {"slurmd", "slurmd", 94, 0},
                 {"slurmstepd", "slurmstepd: [3.4294967291]", 96, 0},
                 {"sh", "slurmstepd: [1.0]", 98, 0}};
    for (size_t i = 0; i < n_elements(stepd); i++) {
        struct proc_facts *f = fake_process(stepd[i].pid, 1, stepd[i].uid, STEPD);
        (void)snprintf(f->comm, sizeof f->comm, "%s", stepd[i].comm);
        (void)snprintf(f->title, sizeof f->title, "%s", stepd[i].title);
        fake_process(stepd[i].pid + 10, stepd[i].pid, ANNA, STEPD);
        fake_process(stepd[i].pid + 11, stepd[i].pid + 10, ANNA, STEPD);
    }
    for (size_t i = 0; i < n_elements(cases); i++) {
        struct roster_register run = {.source = JOB_RUN,
                                      .name = "train",
                                      .uid = ANNA,
                                      .boards = cases[i].asked,
                                      .by_default = cases[i].by_default,
                                      .pid = cases[i].pid};
        is_int((long)roster_default_boards(r, &run), (long)cases[i].want, "%s",
               cases[i].what);
    }
    struct roster_register run = {
        .source = JOB_RUN, .name = "train", .uid = ANNA, .boards = 2, .pid = 101};
    is_int(roster_begin(r, &run, &id, &err), 0, "it begins: %s", err.text);
    is_int((long)roster_find(r, id)->within, (long)first, "and is in that job at once");
    fake_roster_end(r);
}

/* Whose energy is on a board that an inner job has: never the outer one's, unless that
 * computes there, too.  What began the inner job may have been the outer one's process.
 */
static void users(void)
{
    struct roster *r = begin();
    struct roster_register outer = of("slurm:1", ANNA, 3), eves = of("slurm:2", EVE, 4);
    struct roster_register run = {
        .source = JOB_RUN, .name = "train", .uid = ANNA, .boards = 1, .pid = 100};
    struct split_user user[ROSTER_USERS];
    uint64_t one = 0, two = 0, eve = 0;
    uw_error err = {""};

    fake_process(100, 1, ANNA, STEPD);
    fake_on(0, 100, true);
    is_int(roster_begin(r, &outer, &one, &err), 0, "a job of Slurm's");
    is_int(roster_begin(r, &eves, &eve, &err), 0, "another user's");
    fake_wait(7);
    roster_note(r, one, NULL, 0); /* its process on the board */
    run.pid_start = 0;
    is_int(roster_begin(r, &run, &two, &err), 0, "which begins one: %s", err.text);
    is_int((long)roster_find(r, two)->within, (long)one, "in that one");
    fake_wait(7);
    (void)roster_users(r, 0, user);
    fake_wait(7);
    size_t n = roster_users(r, 0, user);
    ok(n == 1 && user[0].job == two, "its board's energy is its alone (%zu)", n);
    is_int((long)roster_find(r, one)->passed, 1, "the outer one has passed it on");
    n = roster_users(r, 1, user);
    ok(n == 1 && user[0].job == one, "another board is the outer one's (%zu)", n);
    fake_process(101, 1, ANNA, STEPD);
    fake_on(0, 101, true);
    fake_wait(7);
    (void)roster_users(r, 0, user);
    fake_wait(7);
    is_int((long)roster_users(r, 0, user), 2, "both, where both compute");
    is_int((long)roster_find(r, one)->passed, 0, "then it has not");
    ok(roster_other(r, eve, 0) && !roster_other(r, eve, 2) &&
           roster_other(r, two, 2) == eve,
       "jobs of others are others");
    fake_roster_end(r);
}

/* The end of a user's job was not told, and the next one has its board: a process of
 * which no more is known is the next one's.
 */
static void stale(void)
{
    struct roster *r = begin();
    struct roster_register a = of("slurm:1", ANNA, 1), b = of("slurm:2", ANNA, 1);
    uint64_t one = 0, two = 0;
    uw_error err = {""};

    is_int(roster_begin(r, &a, &one, &err), 0, "a job");
    is_int(roster_begin(r, &b, &two, &err), 0, "the next one");
    fake_process(100, 1, ANNA, STEPD);
    fake_on(0, 100, true);
    fake_wait(7);
    ok(roster_find(r, one)->n_pids == 0 && roster_find(r, two)->n_pids == 1,
       "the process is the newest job's");
    fake_roster_end(r);
}

/* A user's jobs without boards take a part of the places. */
static void bare(void)
{
    struct roster *r = begin();
    char name[24];
    uint64_t id = 0;
    uw_error err = {""};
    int got = 0, n = 0;

    for (; got == 0 && n <= ROSTER_USER_MAX; n += got == 0) {
        (void)snprintf(name, sizeof name, "slurm:%d", n + 1);
        struct roster_register reg = of(name, ANNA, 0);
        got = roster_begin(r, &reg, &id, &err);
    }
    ok(got == -E2BIG && n == ROSTER_USER_MAX, "%d, then: %s", n, err.text);
    struct roster_register a = of("slurm:90", ANNA, 1), b = of("slurm:91", EVE, 0);
    is_int(roster_begin(r, &a, &id, &err), 0, "a job with a board begins");
    is_int(roster_begin(r, &b, &id, &err), 0, "and another user's");
    fake_roster_end(r);
}

int main(void)
{
    bare();
    stale();
    renewed();
    shared();
    steps();
    within();
    defaults();
    users();
    return done();
}
