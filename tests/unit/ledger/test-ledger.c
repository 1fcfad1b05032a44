/* The ledger: what is written can be read; whose file it is; versions; what remains
 * when something fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "help.h"
#include "io/file.h"
#include "tap.h"

static void test_rows(void)
{
    auto_(ledger_close) struct ledger *l = NULL;
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    uw_error err = {{0}};

    is_int(help_open("a.sqlite", T0, &l, &err), 0, "a new ledger is made");
    is_int(ledger_first_job(l), 1, "the first job is 1");
    is_int(help_boards(l, 2), 0, "boards are known");
    for (int64_t i = 0; i < 6; i++)
        (void)help_interval(b, i, 0, 7, 200000, 2000.5, 0.75);
    (void)help_interval(b, 6, 1, 0, 0, 300, 1);
    struct ledger_job job = help_job(7, 1000, "anna");
    is_int(ledger_add_job(b, &job), 0, "a job is taken");
    is_int(ledger_add_cap(b, &(struct ledger_cap){T0, 0, 200000, 200000, "claim", 3}), 0,
           "a cap is taken");
    is_int(ledger_add_event(b, &(struct ledger_event){.utc_ns = T0,
                                                      .kind = "refused",
                                                      .has_uid = true,
                                                      .uid = 1001,
                                                      .text = "no job of theirs"}),
           0, "an event is taken");
    is_int(ledger_write(l, b, &err), 0, "all is written");
    const char *path = help_path("a.sqlite");
    is_int(help_number(path, "SELECT sum(energy_uj) FROM energy WHERE kind = 1"),
           6 * 1500375000LL, "energy is kept in whole microjoules");
    is_int(help_number(path, "SELECT sum(energy_uj) FROM energy") -
               help_number(path, "SELECT sum(energy_uj) FROM meter"),
           0, "the parts make up the meters' total");
    ok(help_text_is(path, "SELECT value FROM job_label WHERE job = 7 AND key = 'team'",
                    "vision"),
       "labels are kept");
    ok(help_text_is(path, "SELECT class FROM job", "batch"), "and the class of caps");
    ok(help_text_is(path,
                    "SELECT printf('%d %.2f %.2f %s', looks, model_saved,"
                    " model_slowdown, command) FROM job",
                    "12 0.21 1.06 0123456789abcdef"),
       "beside what was measured the model's word");
    is_int(help_number(path, "SELECT uid FROM event WHERE kind = 'refused'"), 1001,
           "who was refused");
    struct ledger_sums sums = {0};
    is_int(ledger_board_sums(l, 0, 0, &sums, &err), 0, "sums of a board");
    is_near(sums.job_j, 9002.25, 1e-9, "to jobs");
    is_near(sums.unattributed_j, 3000.75, 1e-9, "unattributed");
    is_near(sums.meter_j, 12003, 1e-9, "by the meter");
    is_int(ledger_board_sums(l, 0, T0 + 20 * S, &sums, &err), 0, "of the last 40 s");
    is_near(sums.meter_j, 8002, 1e-9, "are two thirds");
    struct ledger_booked had[LEDGER_BOARDS + 1] = {{0}};
    size_t n = 0;
    is_int(ledger_job_energy(l, 7, had, &n, &err), 0, "energy of a job");
    is_int((long long)n, 1, "on one board");
    is_near(had[0].energy_j, 9002.25, 1e-9, "is what it got");
    /* 0.4 % of the energy, and the noise of six rows of 15.00375 J at 1500.375 J */
    is_near(hypot(had[0].half_fixed_j, sqrt(had[0].half_noise2_j2)),
            hypot(36.009, sqrt(6) * sqrt(225.112514 - 36.018002)), 1e-4,
            "and half of its interval");
    is_near(had[0].time_s, 60, 1e-9, "in the time of its rows");
    is_int(ledger_board_sums(l, 2, 0, &sums, &err), -ENODEV, "no third board");
}

static void test_refused_rows(void)
{
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    const struct ledger_energy good = {.begin_utc_ns = T0,
                                       .end_utc_ns = T0 + S,
                                       .kind = LEDGER_JOB,
                                       .job = 1,
                                       .energy_j = 1};
    struct {
        const char *name;
        struct ledger_energy e;
    } cases[] = {
        {"a time that runs backwards", good},
        {"a time before 1970", good},
        {"a negative energy", good},
        {"no number", good},
        {"a job of id 0", good},
        {"a job that is idle", good},
        {"no kind", good},
        {"a board beyond all", good},
        {"a negative interval", good},
    };
    cases[0].e.end_utc_ns = T0 - 1;
    cases[1].e.begin_utc_ns = -1;
    cases[2].e.energy_j = -0.001;
    cases[3].e.energy_j = (double)NAN;
    cases[4].e.job = 0;
    cases[5].e.kind = LEDGER_IDLE;
    cases[6].e.kind = 0;
    cases[7].e.board = LEDGER_PLACES;
    cases[8].e.half_j = -1;
    for (size_t i = 0; i < n_elements(cases); i++) {
        is_int(ledger_add_energy(b, &cases[i].e), -EINVAL, "%s is refused",
               cases[i].name);
        is_int(ledger_batch_rows(b), 0, "and nothing was added");
    }
    is_int(ledger_add_meter(b, &(struct ledger_meter){T0, T0 + S, 0, 5, 4}), -EINVAL,
           "a meter that runs backwards is refused");
    struct ledger_job job = help_job(0, 0, "root");
    is_int(ledger_add_job(b, &job), -EINVAL, "a job without an id is refused");
    is_int(ledger_add_claim(b, &(struct ledger_claim){.made_utc_ns = T0, .kind = "soft"}),
           -EINVAL, "a claim without an id is refused");
    is_int(ledger_add_event(b, &(struct ledger_event){.utc_ns = T0}), -EINVAL,
           "an event without a kind is refused");
    is_int(ledger_batch_rows(b), 0, "nothing of all that was added");
}

static void test_unknown_board(void)
{
    auto_(ledger_close) struct ledger *l = NULL;
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    uw_error err = {{0}};

    (void)help_open("ub.sqlite", T0, &l, &err);
    (void)help_boards(l, 1);
    (void)help_interval(b, 0, 0, 0, 0, 100, 1);
    (void)help_interval(b, 0, 1, 0, 0, 100, 1);
    is_int(ledger_write(l, b, &err), -EINVAL, "a row of a board that is not there fails");
    ok(strstr(err.text, "no board 1: there are 1"), "and says so: %s", err.text);
    is_int(help_number(help_path("ub.sqlite"), "SELECT count(*) FROM energy"), 0,
           "all or nothing");
    is_int(ledger_batch_rows(b), 4, "the batch keeps its rows");
}

/* ---- claims ---- */

static struct ledger_claim claim(uint64_t id, uint32_t mw, int64_t made, int64_t until)
{
    return (struct ledger_claim){.id = id,
                                 .made_utc_ns = made,
                                 .until_utc_ns = until,
                                 .uid = 1000,
                                 .kind = "named",
                                 .source = "person",
                                 .pid = 4711,
                                 .pid_start = 88234,
                                 .mw = mw,
                                 .who = "user anna",
                                 .why = "a test"};
}

static void add(struct ledger *l, const struct ledger_claim *c)
{
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    uw_error err = {{0}};

    ok(ledger_add_claim(b, c) == 0 && ledger_write(l, b, &err) == 0,
       "claim %d of %u mW is written %s", (int)c->id, c->mw, err.text);
}

struct seen {
    struct ledger_claim claim[8];
    size_t n;
    char boot[64];
};

static int on_claim(const struct ledger_claim *c, const char *boot_id, void *user)
{
    struct seen *s = user;

    s->claim[s->n++ % 8] = *c;
    (void)snprintf(s->boot, sizeof s->boot, "%s", boot_id);
    return 0;
}

static void test_claims(void)
{
    auto_(ledger_close) struct ledger *l = NULL;
    uw_error err = {{0}};
    const char *path = help_path("c.sqlite");
    struct ledger_claim own = claim(5, 250000, T0, LEDGER_FOREVER);
    own.overwrites = true;
    struct seen seen = {.n = 0};

    (void)help_open("c.sqlite", T0, &l, &err);
    (void)help_boards(l, 1);
    add(l, &own);
    struct ledger_claim c = claim(4, 200000, T0, T0 + 100 * S);
    add(l, &c);
    c.mw = 190000;
    c.made_utc_ns = T0 + 5 * S;
    add(l, &c);
    ok(help_text_is(path, "SELECT how FROM claim WHERE id = 4 AND mw = 200000",
                    "changed"),
       "a changed claim ends the old one");
    for (uint32_t mw = 240000; mw > 200000; mw -= 10000) {
        own.mw = mw;
        add(l, &own);
    }
    is_int(help_number(path, "SELECT count(*) FROM claim WHERE id = 5"), 1,
           "a search's is overwritten");
    is_int(help_number(path, "SELECT changes FROM claim WHERE id = 5"), 4, "and counted");
    c = claim(6, 150000, T0, T0 + 10 * S);
    add(l, &c);
    is_int(ledger_open_claims(l, T0 + 50 * S, 0, on_claim, &seen, &err), 0,
           "open claims");
    is_int(seen.n, 0, "are those of earlier runs alone");
    ledger_close(take(l));

    (void)help_open("c.sqlite", T0 + 50 * S, &l, &err);
    (void)help_boards(l, 1);
    is_int(ledger_first_claim(l), 7, "claims' ids go on");
    is_int(ledger_open_claims(l, T0 + 50 * S, 0, on_claim, &seen, &err), 0,
           "taken over:");
    is_int(seen.n, 2, "two, for the third is over");
    is_int(seen.claim[0].id, 5, "the search's first");
    ok(seen.claim[0].overwrites && seen.claim[0].until_utc_ns == LEDGER_FOREVER,
       "it is a search's, and for ever");
    is_int(seen.claim[1].until_utc_ns, T0 + 100 * S, "the other until its time");
    is_str(seen.boot, BOOT, "of that boot");
    ok(seen.claim[1].pid == 4711 && seen.claim[1].pid_start == 88234,
       "with the process that it ends with");
    c = claim(4, 190000, T0 + 5 * S, T0 + 100 * S + 3 * S / 1000); /* clocks differ */
    add(l, &c);
    is_int(ledger_claims_settle(l, T0 + 60 * S, &err), 0, "settled");
    is_int(help_number(path, "SELECT count(*) FROM claim WHERE id = 4"), 2,
           "what was claimed anew goes on in its row");
    is_int(help_number(path, "SELECT ended_ms IS NULL FROM claim WHERE id = 4 AND mw ="
                             " 190000"),
           1, "and is open");
    ok(help_text_is(path, "SELECT how FROM claim WHERE id = 5", "restart"),
       "what was not ends as restart");
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    (void)ledger_add_claim_end(
        b, &(struct ledger_claim_end){4, 0, T0 + 70 * S, "withdrawn"});
    is_int(ledger_write(l, b, &err), 0, "a claim's end is written");
    ok(help_text_is(path, "SELECT how FROM claim WHERE id = 4 AND mw = 190000",
                    "withdrawn"),
       "with how");
}

/* UTC is set between two runs: a claim of this boot lasts as long as it did. */
static const struct {
    const char *name;
    int64_t by_s; /* UTC jumps so far */
    int64_t
        after_s; /* so long after the claim of 100 s was made, the second run begins */
    bool there;
} set_clocks[] = {
    {"as it was, in time", 0, 50, true},        {"as it was, over", 0, 150, false},
    {"400 days forward", 34560000, 50, true},   {"400 days back", -34560000, 50, true},
    {"forward, over", 34560000, 150, false},    {"back, over", -34560000, 150, false},
    {"an hour back, in time", -3600, 99, true}, {"an hour back, over", -3600, 101, false},
};

static void test_claims_clock(void)
{
    for (size_t i = 0; i < n_elements(set_clocks); i++) {
        auto_(ledger_close) struct ledger *l = NULL;
        const int64_t ahead = T0 - 7 * S, by = set_clocks[i].by_s * S;
        int64_t now = T0 + set_clocks[i].after_s * S + by;
        struct ledger_claim c = claim(1, 200000, T0, T0 + 100 * S);
        struct seen seen = {.n = 0};
        uw_error err = {{0}};
        char name[24];

        (void)snprintf(name, sizeof name, "clock%zu.sqlite", i);
        (void)help_open(name, T0, &l, &err);
        (void)help_boards(l, 1);
        c.ahead_ns = ahead;
        add(l, &c);
        ledger_close(take(l));
        (void)help_open(name, now, &l, &err);
        (void)help_boards(l, 1);
        is_int(ledger_open_claims(l, now, ahead + by, on_claim, &seen, &err), 0,
               "%s: the open claims", set_clocks[i].name);
        is_int((long long)seen.n, set_clocks[i].there, "%s: there or over",
               set_clocks[i].name);
        if (seen.n == 0)
            continue;
        is_int(seen.claim[0].until_utc_ns - now, (100 - set_clocks[i].after_s) * S,
               "%s: for as long as is left", set_clocks[i].name);
        c.made_utc_ns += by; /* the next run states it anew, in today's UTC */
        c.until_utc_ns += by;
        c.ahead_ns += by;
        add(l, &c);
        is_int(help_number(help_path(name), "SELECT count(*) FROM claim"), 1,
               "%s: taken over it is the same", set_clocks[i].name);
    }
}

/* ---- jobs ---- */

struct jobs_seen {
    size_t n;
    struct ledger_job job;
    char label[32], cls[32], goal[32], user[32], processes[LEDGER_PROCESSES];
};

static int on_job(const struct ledger_job *j, const char *boot_id, void *user)
{
    struct jobs_seen *s = user;

    (void)boot_id;
    s->n++;
    s->job = *j;
    if (j->n_labels == 2)
        (void)snprintf(s->label, sizeof s->label, "%s=%s", j->label[1].key,
                       j->label[1].value);
    (void)snprintf(s->cls, sizeof s->cls, "%s", j->cls);
    (void)snprintf(s->goal, sizeof s->goal, "%s", j->goal);
    (void)snprintf(s->user, sizeof s->user, "%s", j->user);
    (void)snprintf(s->processes, sizeof s->processes, "%s", j->processes);
    return 0;
}

static int write_job(struct ledger *l, const struct ledger_job *j)
{
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();

    int r = ledger_add_job(b, j);
    return r < 0 ? r : ledger_write(l, b, NULL);
}

static void test_jobs(void)
{
    auto_(ledger_close) struct ledger *l = NULL;
    uw_error err = {{0}};
    struct jobs_seen seen = {0};
    char many[LEDGER_PROCESSES] = "";

    (void)help_open("j.sqlite", T0, &l, &err);
    (void)help_boards(l, 2);
    struct ledger_job job = help_job(1, 1000, "anna");
    job.boards = job.held = 3;
    job.processes = "4711.123456";
    job.firm = true;
    is_int(write_job(l, &job), 0, "a job begins");
    job.boards = job.held = 2;
    for (unsigned i = 0; i < 128; i++)
        (void)snprintf(many + 31 * (size_t)i, sizeof many - 31 * (size_t)i,
                       "%010u.%019u ", 4711 + i, i);
    job.processes = many;
    is_int(write_job(l, &job), 0, "it leaves a board");
    job = help_job(2, 1001, "ben");
    is_int(write_job(l, &job), 0, "another");
    job.ended_utc_ns = T0 + 100 * S;
    is_int(write_job(l, &job), 0, "and ends");
    ledger_close(take(l));
    (void)help_open("j.sqlite", T0 + 200 * S, &l, &err);
    (void)help_boards(l, 2);
    is_int(ledger_first_job(l), 3, "after an orderly end ids go on without a gap");
    is_int(ledger_open_jobs(l, on_job, &seen, &err), 0, "jobs to take over");
    is_int(seen.n, 1, "one runs");
    is_int(seen.job.id, 1, "the first");
    is_int(seen.job.boards, 3, "on both boards");
    is_int(seen.job.held, 2, "one of which it has left");
    ok(strcmp(seen.processes, many) == 0, "its processes, as many as a job may have");
    ok(seen.job.firm, "which an administrator began");
    is_int(seen.job.pid, 4711, "its process");
    is_int(seen.job.pid_start, 123456, "and when that began");
    is_int(seen.job.began_utc_ns, T0, "when it began");
    is_str(seen.label, "team=vision", "its labels");
    is_str(seen.cls, "batch", "its class");
    is_str(seen.goal, "edp", "its goal");
    is_str(seen.user, "anna", "its user");
    ok(seen.job.saved_known && seen.job.saved_j == 5000 && seen.job.saved_half_j == 250,
       "what it saved so far");
    is_int(seen.job.cap_mw, 210000, "its best cap");
}

static int at_boot(const char *name, const char *boot, struct ledger **ret)
{
    int r = ledger_open(&(struct ledger_opts){.path = help_path(name),
                                              .boot_id = boot,
                                              .version = "test",
                                              .simulated = true,
                                              .utc_ns = T0 + 200 * S},
                        ret, NULL);
    return r < 0 ? r : help_boards(*ret, 2);
}

/* Ended jobs of this boot that may come back. */
static void test_lost_jobs(void)
{
    struct ledger *l = NULL;
    struct jobs_seen seen = {0};

    (void)at_boot("away.sqlite", BOOT, &l);
    struct ledger_job job = help_job(1, 1000, "anna");
    job.ended_utc_ns = T0 + 100 * S;
    job.lost = true;
    is_int(write_job(l, &job), 0, "a job is lost");
    ledger_close(take(l));
    (void)at_boot("away.sqlite", "another boot", &l);
    is_int(ledger_open_jobs(l, on_job, &seen, NULL), 0, "jobs after a boot");
    is_int(seen.n, 0, "it is over");
    ledger_close(take(l));
    (void)at_boot("away.sqlite", BOOT, &l);
    is_int(ledger_open_jobs(l, on_job, &seen, NULL), 0, "jobs after a restart");
    ok(seen.n == 1 && seen.job.lost && seen.job.ended_utc_ns == T0 + 100 * S,
       "it may come back");
    job.saved_known = job.model_known = job.lost = false;
    job.cap_mw = job.looks = 0;
    is_int(write_job(l, &job), 0, "its end is told");
    seen.n = 0;
    (void)ledger_open_jobs(l, on_job, &seen, NULL);
    is_int(seen.n, 0, "it may not come back");
    ok(help_number(help_path("away.sqlite"), "SELECT saved_j FROM job") == 5000 &&
           help_number(help_path("away.sqlite"), "SELECT cap_mw FROM job") == 210000,
       "what its search had found is kept");
    (void)write_job(l, &job);
    ok(help_number(help_path("away.sqlite"), "SELECT saved_j IS NULL FROM job") == 1,
       "of a job that is not lost the newest row counts");
    ledger_close(l);
}

/* ---- whose file ---- */

static void must(int r)
{
    if (r < 0)
        ok(false, "the test can be laid out");
}

static void expect(const char *name, int want, const char *text)
{
    struct ledger *l = NULL;
    uw_error err = {{0}};

    int r = help_open(name, T0, &l, &err);
    is_int(r, want, "%s: %s", name, err.text);
    ok(strstr(err.text, text), "says '%s'", text);
    ledger_close(l);
}

static void test_guard(void)
{
    uw_error err = {{0}};
    struct stat st;

    (void)file_write(help_path("victim"), "precious", 8, 0600, &err);
    must(symlink(help_path("victim"), help_path("link.sqlite")));
    expect("link.sqlite", -EPERM, "link");
    must(symlink(help_path("nowhere"), help_path("dangling.sqlite")));
    expect("dangling.sqlite", -EPERM, "link");
    ok(access(help_path("nowhere"), F_OK) < 0, "nothing was made through it");
    must(link(help_path("victim"), help_path("hard.sqlite")));
    expect("hard.sqlite", -EPERM, "hard link");
    (void)mkdir(help_path("dir.sqlite"), 0700);
    expect("dir.sqlite", -EPERM, "dir.sqlite");
    (void)mkfifo(help_path("fifo.sqlite"), 0600);
    expect("fifo.sqlite", -EPERM, "not a file");
    (void)file_write(help_path("open.sqlite"), "", 0, 0666, &err);
    (void)chmod(help_path("open.sqlite"), 0666);
    expect("open.sqlite", -EPERM, "others may write");
    (void)mkdir(help_path("loose"), 0777);
    (void)chmod(help_path("loose"), 0777);
    expect("loose/l.sqlite", -EPERM, "others may write in it");
    expect("missing/l.sqlite", -ENOENT, "missing");
    must(symlink(help_path("victim"), help_path("w.sqlite-wal")));
    expect("w.sqlite", -EPERM, "w.sqlite-wal");
    if (geteuid() == 0) {
        (void)file_write(help_path("theirs.sqlite"), "", 0, 0600, &err);
        must(chown(help_path("theirs.sqlite"), 65534, 65534));
        expect("theirs.sqlite", -EPERM, "belongs to uid 65534");
    } else {
        ok(true, "another's file: only as root # SKIP not root");
        ok(true, "another's file: only as root # SKIP not root");
    }
    auto_(mem_free) char *text = NULL;
    ok(file_read(help_path("victim"), 100, &text, NULL, &err) == 0 &&
           strcmp(text, "precious") == 0,
       "the link's target is untouched");
    struct ledger *l = NULL;
    is_int(help_open("mode.sqlite", T0, &l, &err), 0, "a good one is made");
    ok(stat(help_path("mode.sqlite"), &st) == 0 && (st.st_mode & 0137u) == 0,
       "not for everybody's eyes (mode %03o)", st.st_mode & 0777u);
    pid_t pid = fork();
    if (pid == 0) {
        struct ledger *second = NULL;
        _exit(help_open("mode.sqlite", T0, &second, NULL) == -EBUSY ? 0 : 1);
    }
    int status = 1;
    ok(waitpid(pid, &status, 0) == pid && status == 0, "a second writer is refused");
    ledger_close(l);
}

/* ---- damaged and foreign files ---- */

static int count_aside(const char *part)
{
    char command[256];
    int n = -1;

    (void)snprintf(command, sizeof command, "ls '%s' | grep -c '%s'", help_dir, part);
    FILE *p = popen(command, "r");
    if (!p || fscanf(p, "%d", &n) != 1)
        n = -1;
    if (p)
        (void)pclose(p);
    return n;
}

static void test_aside(void)
{
    struct ledger *l = NULL;
    uw_error err = {{0}};
    sqlite3 *db = NULL;

    (void)file_write(help_path("d.sqlite"),
                     "this is no database, it is a poem; it has a"
                     " few lines, and that is all of it. "
                     "............................",
                     100, 0600, &err);
    is_int(help_open("d.sqlite", T0, &l, &err), LEDGER_ASIDE, "no database: kept aside");
    ok(strstr(err.text, "damaged-20260101T000000Z"), "%s", err.text);
    ledger_close(take(l));
    auto_(mem_free) char *text = NULL;
    ok(file_read(help_path("d.sqlite.damaged-20260101T000000Z"), 200, &text, NULL,
                 &err) == 0 &&
           strncmp(text, "this is no", 10) == 0,
       "its bytes are all there");
    is_int(help_open("d.sqlite", T0, &l, &err), 0, "the new one is good");
    ledger_close(take(l));

    (void)sqlite3_open(help_path("f.sqlite"), &db);
    (void)sqlite3_exec(db, "CREATE TABLE recipes(cake TEXT)", NULL, NULL, NULL);
    (void)sqlite3_close(db);
    is_int(help_open("f.sqlite", T0, &l, &err), LEDGER_ASIDE, "another's database, too");
    ok(strstr(err.text, "another program's"), "%s", err.text);
    is_int(help_number(help_path("f.sqlite.foreign-20260101T000000Z"),
                       "SELECT count(*) FROM recipes"),
           0, "with its table");
    ledger_close(take(l));
    (void)sqlite3_open(help_path("f.sqlite.x"), &db);
    (void)sqlite3_close(db);

    (void)file_write(help_path("f2.sqlite"), "x", 1, 0600, &err);
    (void)file_write(help_path("f2.sqlite.damaged-20260101T000000Z"), "y", 1, 0600, &err);
    is_int(help_open("f2.sqlite", T0, &l, &err), LEDGER_ASIDE, "a name that is taken");
    is_int(count_aside("^f2.sqlite.damaged"), 2, "is not overwritten");
    ledger_close(take(l));
}

/* Pages in the middle are overwritten: found because the last run did not end. */
static void test_damage_inside(void)
{
    struct ledger *l = NULL;
    uw_error err = {{0}};

    pid_t pid = fork();
    if (pid == 0) {
        auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
        (void)help_open("m.sqlite", T0, &l, &err);
        (void)help_boards(l, 8);
        for (int64_t i = 0; i < 3000; i++)
            (void)help_interval(b, i, (size_t)(i % 8), 0, 0, 100, 1);
        (void)ledger_write(l, b, &err);
        (void)kill(getpid(), SIGKILL);
    }
    (void)waitpid(pid, NULL, 0);
    is_int(help_open("m.sqlite", T0, &l, &err), 0, "a killed writer's ledger opens");
    is_int(help_number(help_path("m.sqlite"), "SELECT count(*) FROM energy"), 3000,
           "with all its rows");
    ok(ledger_first_job(l) > 500, "ids that the killed run may have given are not used");
    pid = fork();
    if (pid == 0)
        _exit(0);
    (void)waitpid(pid, NULL, 0);
    ledger_close(take(l));
    sqlite3 *db = NULL;
    (void)sqlite3_open(help_path("m.sqlite"), &db);
    (void)sqlite3_exec(db, "UPDATE run SET ended_ms = NULL", NULL, NULL, NULL);
    (void)sqlite3_close(db);
    int fd = open(help_path("m.sqlite"), O_WRONLY);
    char junk[8192];
    memset(junk, 0x5a, sizeof junk);
    ok(pwrite(fd, junk, sizeof junk, 10 * 4096) == (ssize_t)sizeof junk, "pages are hit");
    (void)close(fd);
    is_int(help_open("m.sqlite", T0 + S, &l, &err), LEDGER_ASIDE, "that is seen: %s",
           err.text);
    ledger_close(l);
}

/* ---- what searches measured ---- */

static struct ledger_search search_of(uid_t uid, const char *same, int64_t utc_ns,
                                      double step_s)
{
    struct ledger_search s = {.uid = uid,
                              .model = "Board A",
                              .boards = 2,
                              .job = 7,
                              .utc_ns = utc_ns,
                              .reference_mw = 300000,
                              .demand_w = 240.5,
                              .n = 2,
                              .cap = {{300000, 2, step_s, 500.25, 0.002, 0.003},
                                      {210000, 9, step_s * 1.05, 410, 0.001, 0.001}}};

    (void)snprintf(s.same, sizeof s.same, "%s", same);
    return s;
}

struct searches_seen {
    size_t n;
    struct ledger_search last;
};

static int on_search(const struct ledger_search *s, void *user)
{
    struct searches_seen *seen = user;

    seen->n++;
    seen->last = *s;
    return 0;
}

static int write_search(struct ledger *l, const struct ledger_search *s)
{
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();

    int r = ledger_add_search(b, s);
    return r < 0 ? r : ledger_write(l, b, NULL);
}

static void test_searches(void)
{
    auto_(ledger_close) struct ledger *l = NULL;
    const char *path = help_path("s.sqlite");
    struct ledger_search s = search_of(1000, "a", T0, 0.5), bad = s;
    struct searches_seen seen = {0};
    uw_error err = {{0}};

    (void)help_open("s.sqlite", T0, &l, &err);
    is_int(write_search(l, &s), 0, "a search is written");
    s = search_of(1000, "a", T0 + DAY, 0.25);
    is_int(write_search(l, &s), 0, "the same job's next");
    is_int(ledger_searches(l, on_search, &seen, &err), 0, "they are read");
    is_int(seen.n, 1, "one of them, %s", "the newest");
    ok(seen.last.uid == 1000 && strcmp(seen.last.same, "a") == 0 &&
           strcmp(seen.last.model, "Board A") == 0 && seen.last.boards == 2 &&
           seen.last.job == 7 && seen.last.utc_ns == T0 + DAY &&
           seen.last.reference_mw == 300000,
       "whose it is");
    is_int(seen.last.n, 2, "with its caps");
    ok(memcmp(seen.last.cap, s.cap, 2 * sizeof *s.cap) == 0, "as they were");
    is_int(help_number(path, "SELECT count(*) FROM search_cap"), 2, "no others are left");
    for (int i = 0; i < LEDGER_USER_SEARCHES + 5; i++) {
        char same[LEDGER_SAME];
        (void)snprintf(same, sizeof same, "job %d", i);
        s = search_of(1001, same, T0 + 2 * DAY + i * S, 1);
        if (write_search(l, &s) != 0)
            ok(false, "search %d", i);
    }
    is_int(help_number(path, "SELECT count(*) FROM search WHERE uid = 1001"),
           LEDGER_USER_SEARCHES, "a user has so many at the most");
    is_int(help_number(path, "SELECT count(*) FROM search WHERE uid = 1000"), 1,
           "and pushes nobody else's out");
    is_int(help_number(path, "SELECT count(*) FROM search WHERE same = 'job 4'"), 0,
           "the oldest went");
    for (int i = 0; i < LEDGER_SEARCHES; i++) {
        s = search_of((uid_t)(2000 + i), "x", T0 + 3 * DAY, 1);
        if (write_search(l, &s) != 0)
            ok(false, "user %d", i);
    }
    is_int(help_number(path, "SELECT count(*) FROM search"), LEDGER_SEARCHES,
           "all users together so many");
    is_int(help_number(path, "SELECT count(*) FROM search_cap"), 2 * LEDGER_SEARCHES,
           "with their caps");
    while (ledger_tidy(l, T0 + 3 * DAY + 91 * DAY, &err) == 1)
        ;
    is_int(help_number(path, "SELECT count(*) FROM search"), 0, "after 90 days: none");
    is_int(help_number(path, "SELECT count(*) FROM search_cap"), 0, "nor a cap");
    bad.cap[1].step_j = 0;
    is_int(write_search(l, &bad), -EINVAL, "a step of no energy is refused");
    bad = search_of(1000, "", T0, 1);
    is_int(write_search(l, &bad), -EINVAL, "and a job that is like none");
    bad = search_of(1000, "a", T0, 1);
    bad.n = LEDGER_SEARCH_CAPS + 1;
    is_int(write_search(l, &bad), -EINVAL, "and more caps than there can be");
}

/* ---- versions ---- */

/* What stood in `who` alone up to version 6. */
static void test_claims_forward(const char *path)
{
    static const struct {
        const char *sql, *want;
    } claims[] = {
        {"SELECT source || pid || '.' || pid_start FROM claim WHERE id = 2",
         "person4711.88234"},
        {"SELECT source FROM claim WHERE id = 3 AND pid IS NULL", "job-cap"},
        {"SELECT source FROM claim WHERE id = 4 AND pid IS NULL", "budget"},
        {"SELECT source FROM claim WHERE id = 5 AND pid_start IS NULL", "person"},
    };

    for (size_t i = 0; i < n_elements(claims); i++)
        ok(help_text_is(path, claims[i].sql, claims[i].want), "claim %zu is %s", i + 2,
           claims[i].want);
}

/* Before version 9 no factor covered any energy. */
static void test_charges_forward(const char *path, int version)
{
    const char *want = version < 9    ? "0 0 0 0 0 0"
                       : version < 10 ? "4706 55000000000 -157 2097 4 0"
                                      : "4706 55000000000 -157 2097 4 1";

    ok(help_text_is(path,
                    "SELECT ifnull(sum(co2_mg), 0) || ' ' || sum(co2_covered_uj) || ' '"
                    " || ifnull(sum(marginal_mg), 0) || ' ' || ifnull(sum(cost), 0) ||"
                    " ' ' || (SELECT count(*) FROM factor) || ' ' || (SELECT count(*)"
                    " FROM revision) FROM energy",
                    want),
       "emissions, money and what they cover stay: %s", want);
}

static void test_versions(const char *data)
{
    struct ledger *l = NULL;
    uw_error err = {{0}};

    for (int version = 1; version <= LEDGER_VERSION; version++) {
        char path[512];
        auto_(mem_free) char *sql = NULL;
        sqlite3 *db = NULL;
        (void)snprintf(path, sizeof path, "%s/ledger-v%d.sql", data, version);
        is_int(file_read(path, 1 << 20, &sql, NULL, &err), 0, "%s %s", path, err.text);
        for (int k = 0; k < 2; k++) {
            (void)sqlite3_open(help_path(k ? "old-ro.sqlite" : "old.sqlite"), &db);
            is_int(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK, "is a database");
            (void)sqlite3_close(db);
        }
        int64_t sum = help_number(help_path("old.sqlite"), "SELECT sum(energy_uj) FROM"
                                                           " energy");
        is_int(help_open("old.sqlite", T0 + 40 * DAY, &l, &err), 0,
               "version %d is brought forward %s", version, err.text);
        is_int(help_number(help_path("old.sqlite"), "PRAGMA user_version"),
               LEDGER_VERSION, "to the version of today");
        is_int(
            help_number(help_path("old.sqlite"), "SELECT count(*) FROM schema_version"),
            LEDGER_VERSION, "each step is noted");
        is_int(help_number(help_path("old.sqlite"), "SELECT sum(energy_uj) FROM energy"),
               sum, "no joule is lost");
        ok(sum > 0, "there are some");
        struct jobs_seen seen = {0};
        (void)help_boards(l, 2);
        is_int(ledger_open_jobs(l, on_job, &seen, &err), 0, "its jobs can be read");
        is_int(seen.n, 1, "one runs");
        ok(seen.job.held == seen.job.boards && seen.job.held && !seen.processes[0],
           "it has its boards, and is known by its first process alone");
        is_int(help_number(help_path("old.sqlite"),
                           "SELECT count(*) FROM board WHERE kind = 1"),
               2, "what it knew are boards");
        is_int(help_number(help_path("old.sqlite"),
                           "SELECT count(within) * 10 + (SELECT sum(waste = 2) > 0 FROM"
                           " energy) FROM job"),
               version < 11 ? 0 : 11, "jobs that ran in another, boards that were held");
        ok(help_text_is(help_path("old.sqlite"), "SELECT source FROM claim WHERE id = 1",
                        "search"),
           "a search's claim is told by its source");
        test_charges_forward(help_path("old.sqlite"), version);
        if (version >= 6)
            test_claims_forward(help_path("old.sqlite"));
        while (ledger_tidy(l, T0 + 40 * DAY, &err) == 1)
            ;
        is_int(help_number(help_path("old.sqlite"), "SELECT sum(energy_uj) FROM energy"),
               sum, "rolled up, still none is lost");
        test_charges_forward(help_path("old.sqlite"), version);
        ledger_close(take(l));
        is_int(ledger_open(&(struct ledger_opts){.path = help_path("old-ro.sqlite"),
                                                 .read_only = true},
                           &l, &err),
               0, "a report reads it as it is %s", err.text);
        is_int(help_number(help_path("old-ro.sqlite"), "PRAGMA user_version"), version,
               "and leaves it so");
        ledger_close(take(l));
        (void)unlink(help_path("old.sqlite"));
        (void)unlink(help_path("old-ro.sqlite"));
    }
}

static void test_newer(void)
{
    struct ledger *l = NULL;
    uw_error err = {{0}};
    sqlite3 *db = NULL;

    (void)help_open("n.sqlite", T0, &l, &err);
    ledger_close(take(l));
    (void)sqlite3_open(help_path("n.sqlite"), &db);
    (void)sqlite3_exec(db, "PRAGMA user_version = 99", NULL, NULL, NULL);
    (void)sqlite3_close(db);
    is_int(help_open("n.sqlite", T0, &l, &err), -EPROTONOSUPPORT,
           "a newer one is refused");
    is_int(ledger_trouble(-EPROTONOSUPPORT), LEDGER_IS_NEWER, "… with its reason");
    ok(strstr(err.text, "version 99") && strstr(err.text, "up to 11"), "%s", err.text);
    is_int(count_aside("^n.sqlite.d"), 0, "and stays where it is");
}

static void test_kinds(void)
{
    struct ledger *l = NULL;
    uw_error err = {{0}};
    struct ledger_opts real = {
        .path = help_path("k.sqlite"), .boot_id = BOOT, .version = "test", .utc_ns = T0};

    (void)help_open("k.sqlite", T0, &l, &err);
    ledger_close(take(l));
    is_int(ledger_open(&real, &l, &err), -ENOTSUP, "simulated and real do not mix: %s",
           err.text);
    is_int(
        ledger_open(&(struct ledger_opts){.path = help_path("none"), .read_only = true},
                    &l, &err),
        -ENOENT, "a report of nothing: %s", err.text);
    is_int(
        ledger_open(&(struct ledger_opts){.path = help_path("victim"), .read_only = true},
                    &l, &err),
        -EBADMSG, "a report of a poem: %s", err.text);
    ok(access(help_path("victim"), F_OK) == 0, "which stays");
    is_int(ledger_open(
               &(struct ledger_opts){.path = help_path("k.sqlite"), .read_only = true},
               &l, &err),
           0, "a reader");
    ledger_close(l);
}

/* ---- full disks ---- */

static int fill(struct ledger *l, int64_t from, int64_t n, uw_error *err)
{
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();

    for (int64_t i = from; i < from + n; i++)
        (void)help_interval(b, i, 0, 0, 0, 100, 1);
    return ledger_write(l, b, err);
}

static void test_full(void)
{
    struct ledger *l = NULL;
    uw_error err = {{0}};
    int64_t i = 0;
    int r;

    is_int(ledger_open(&(struct ledger_opts){.path = help_path("full.sqlite"),
                                             .boot_id = BOOT,
                                             .version = "test",
                                             .simulated = true,
                                             .utc_ns = T0,
                                             .disk_max = 256 << 10},
                       &l, &err),
           0, "a ledger of 256 KiB at most %s", err.text);
    (void)help_boards(l, 1);
    while ((r = fill(l, i, 50, &err)) == 0 && i < 100000)
        i += 50;
    is_int(r, -ENOSPC, "is full one day: %s", err.text);
    is_int(help_number(help_path("full.sqlite"), "SELECT count(*) FROM energy"), i,
           "holds whole transactions");
    sqlite3 *db = NULL;
    (void)sqlite3_open(help_path("full.sqlite"), &db);
    (void)sqlite3_exec(
        db,
        "DELETE FROM energy WHERE begin_ms < (SELECT min(begin_ms) + 300000 FROM"
        " energy); DELETE FROM meter WHERE begin_ms < (SELECT"
        " min(begin_ms) + 300000 FROM meter)",
        NULL, NULL, NULL);
    (void)sqlite3_close(db);
    is_int(fill(l, i, 1, &err), 0, "with room again it goes on %s", err.text);
    ledger_close(l);
}

/* The kernel refuses to let the file grow: the same, in a process of its own. */
static void test_file_limit(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        struct ledger *l = NULL;
        struct rlimit limit = {300 << 10, RLIM_INFINITY};
        int64_t i = 0;
        int r = help_open("limit.sqlite", T0, &l, NULL), good = 0;
        (void)signal(SIGXFSZ, SIG_IGN);
        (void)help_boards(l, 1);
        (void)setrlimit(RLIMIT_FSIZE, &limit);
        while (r == 0 && i < 100000 && (r = fill(l, i, 50, NULL)) == 0)
            i += 50;
        good += r == -ENOSPC || r == -EIO;
        limit.rlim_cur = RLIM_INFINITY;
        (void)setrlimit(RLIMIT_FSIZE, &limit);
        good += fill(l, i, 50, NULL) == 0;
        good += help_number(help_path("limit.sqlite"), "SELECT count(*) FROM energy") ==
                i + 50;
        ledger_close(l);
        _exit(good == 3 ? 0 : good + 1);
    }
    int status = 1;
    (void)waitpid(pid, &status, 0);
    is_int(status, 0, "RLIMIT_FSIZE: a clear failure, then it goes on");
}

/* ---- what is forgotten ---- */

/* 250 jobs, each of an hour, one after the other from T0 on: each tenth has energy, of
 * each fineness that there is; the last one runs.
 */
static void test_jobs_forgotten(void)
{
    auto_(ledger_close) struct ledger *l = NULL;
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    const char *path = help_path("jobs.sqlite");
    const uint64_t n = 250;
    uw_error err = {{0}};

    (void)help_open("jobs.sqlite", T0, &l, &err);
    (void)help_boards(l, 1);
    uint64_t first = ledger_first_job(l);
    for (uint64_t k = 0; k < n; k++) {
        struct ledger_job job = help_job(first + k, 1000, "anna");
        job.began_utc_ns = T0 + (int64_t)k * 3600 * S;
        job.ended_utc_ns = k + 1 < n ? job.began_utc_ns + 3600 * S : 0;
        (void)ledger_add_job(b, &job);
        if (k % 10 == 0)
            (void)help_interval(b, (int64_t)k * 360, 0, first + k, 0, 100, 1);
    }
    is_int(ledger_write(l, b, &err), 0, "250 jobs %s", err.text);
    int64_t sum = help_number(path, "SELECT sum(energy_uj) FROM energy");

    while (ledger_tidy(l, T0 + 400 * DAY, &err) == 1)
        ;
    is_int(help_number(path, "SELECT count(*) FROM job"), (int64_t)n, "all are young");
    /* the first 99 ended 400 days ago: 10 of them have energy */
    while (ledger_tidy(l, T0 + 400 * DAY + 99 * 3600 * S + 1 * S, &err) == 1)
        ;
    is_int(help_number(path, "SELECT count(*) FROM job"), (int64_t)n - 89,
           "those that have none are forgotten once they are old enough");
    is_int(help_number(path, "SELECT count(DISTINCT job) FROM energy"), 25,
           "all that have some are there");
    is_int(help_number(path, "SELECT count(*) FROM energy e JOIN job j ON j.id = e.job"),
           help_number(path, "SELECT count(*) FROM energy WHERE job IS NOT NULL"),
           "and every row's job with its row");
    while (ledger_tidy(l, T0 + 900 * DAY, &err) == 1)
        ;
    is_int(help_number(path, "SELECT count(*) FROM job"), 26,
           "by the day, too; the one that runs stays");
    is_int(help_number(path, "SELECT count(*) FROM job_label"), 2 * 26, "labels");
    is_int(help_number(path, "SELECT count(*) FROM job_board"), 26, "boards");
    is_int(help_number(path, "SELECT sum(energy_uj) FROM energy"), sum,
           "no joule is lost");
    ledger_close(take(l));
    is_int(help_open("jobs.sqlite", T0 + 900 * DAY, &l, &err), 0, "again %s", err.text);
    ok(ledger_first_job(l) >= first + n, "ids of the forgotten are not given again");
    while (ledger_tidy(l, T0 + 900 * DAY, &err) == 1)
        ;
    is_int(help_number(path, "SELECT count(*) FROM job"), 26, "nothing more goes");
}

int main(int argc, char **argv)
{
    if (!help_begin())
        return skip_all("no folder in /tmp");
    (void)umask(022);
    test_rows();
    test_refused_rows();
    test_unknown_board();
    test_claims();
    test_claims_clock();
    test_jobs();
    test_lost_jobs();
    test_guard();
    test_aside();
    test_damage_inside();
    test_searches();
    test_versions(argc > 1 ? argv[1] : "tests/data");
    test_newer();
    test_kinds();
    test_jobs_forgotten();
    test_full();
    test_file_limit();
    help_end();
    return done();
}
