/* Jobs of a made-up node: found, registered, owned, ended. */
#include <sys/wait.h>
#include <unistd.h>

#include "base/names.h"
#include "procs.h"

enum { ANNA = 1000, EVE = 1001 };
#define SLURM "/slurm/uid_1000/job_42/step_0"
#define SESSION "/user.slice/user-1000.slice/session-3.scope"

static struct {
    unsigned begun, changed, ended, turns, passes;
    uint64_t from, to;     /* jobs of the last pass */
    struct job_entry last; /* of the last event */
} heard;

static void on_event(enum roster_event event, const struct job_entry *job, void *user)
{
    (void)user;
    heard.begun += event == ROSTER_BEGIN;
    heard.changed += event == ROSTER_CHANGE;
    heard.ended += event == ROSTER_END;
    heard.last = *job;
}

static void on_turn(size_t board, void *user)
{
    (void)board;
    (void)user;
    heard.turns++;
}

static void on_pass(size_t board, const struct job_entry *from,
                    const struct job_entry *to, void *user)
{
    (void)board;
    (void)user;
    heard.passes++;
    heard.from = from ? from->id : 0;
    heard.to = to->id;
}

static struct roster *begin(bool real)
{
    memset(&heard, 0, sizeof heard);
    return fake_roster(real, (struct roster_opts){.on_event = on_event,
                                                  .on_turn = on_turn,
                                                  .on_pass = on_pass,
                                                  .read = fake_read});
}

/* ---- found ---- */

static void found(void)
{
    struct roster *r = begin(false);

    fake_wait(7);
    is_int((long)roster_count(r), 0, "found: nobody there");
    ok(!roster_in_use(r, 0), "found: board 0 is at rest");
    fake_process(100, 1, ANNA, SLURM);
    fake_process(101, 100, ANNA, SLURM);
    fake_on(0, 100, true);
    fake_on(1, 101, true);
    fake_wait(7);
    is_int((long)roster_count(r), 1, "found: both processes are one job");
    const struct job_entry *j = roster_at(r, 0);
    is_str(j->name, "slurm:42", "  its name");
    is_int((long)j->id, 70, "  its id");
    is_int((long)j->boards, 3, "  its boards");
    is_int(j->n_pids, 2, "  its processes");
    is_int(j->uid, ANNA, "  its user");
    is_str(names_word(NAMES_JOB_SOURCE, j->source), "found", "  its source");
    is_str(j->n_labels > 0 ? j->label[0].key : "", "slurm", "  a label");
    is_str(j->n_labels > 0 ? j->label[0].value : "", "42", "  … and its value");
    ok(!j->foreign, "  nobody else is there");
    is_int(heard.begun, 1, "  begun once");
    ok(roster_may_claim(r, ANNA, 0) && roster_may_claim(r, ANNA, 1), "  anna may claim");
    ok(!roster_may_claim(r, ANNA, 2), "  … on her boards alone");
    ok(!roster_may_claim(r, EVE, 0), "  eve may not");
    ok(roster_may_claim(r, 0, 3) && !roster_may_claim(r, 0, 99), "  root may, on boards");

    /* eve starts a tiny process on anna's board */
    fake_process(200, 1, EVE, "/user.slice/user-1001.slice/session-9.scope");
    fake_on(0, 200, true);
    fake_wait(2.1);
    is_int((long)roster_count(r), 2, "eve's tiny process: a job of its own");
    ok(roster_find(r, 70)->foreign, "  anna's job has a stranger");
    ok(!roster_may_claim(r, ANNA, 0), "  found rights on board 0 end at once");
    ok(roster_may_claim(r, ANNA, 1), "  … not on board 1");
    ok(!roster_may_claim(r, EVE, 0), "  and eve gets none");
    is_str(heard.last.name, "python", "  eve's has its program's name");
    fake_exit(200);
    fake_wait(2.1);
    is_int((long)roster_count(r), 1, "eve's is gone");
    ok(!roster_find(r, 70)->foreign && roster_may_claim(r, ANNA, 0), "  anna may again");
    is_int(heard.ended, 1, "  it was told");
    ok(heard.turns >= 4, "  boards turned (%u times)", heard.turns);

    fake_exit(100);
    fake_wait(2.1);
    is_int((long)roster_find(r, 70)->boards, 2, "one process ends: one board less");
    fake_exit(101);
    fake_wait(2.1);
    is_int((long)roster_count(r), 0, "the last one ends: the job, too");
    ok(heard.last.ended_ns > heard.last.began_ns && heard.last.ended_utc_ns > 0,
       "  with its times");
    fake_roster_end(r);
}

static void strangers(void)
{
    struct roster *r = begin(false);

    fake_process(100, 1, ANNA, SESSION);
    fake_on(0, 100, true);
    fake_on(1, 555, true); /* nobody can tell whose */
    fake_on(2, 100, false);
    fake_wait(7);
    is_int((long)roster_count(r), 1, "strangers: one job");
    is_int((long)roster_at(r, 0)->boards, 1, "  a board where it only draws is not its");
    ok(roster_in_use(r, 1), "  a board of unknown people is in use");
    fake_on(0, 556, false);
    fake_wait(2.1);
    ok(!roster_may_claim(r, ANNA, 0), "  one that cannot be told takes the right away");
    fake_exit(556);
    fake_on(0, 0, false);
    fake.dev[0].proc[fake.dev[0].n - 1].pid = 300;
    fake_process(300, 1, 0, "/system.slice/gdm.service");
    fake_wait(2.1);
    ok(!roster_may_claim(r, ANNA, 0), "  another's desktop does, too");
    is_int((long)roster_count(r), 1, "  but is no job");
    fake_roster_end(r);

    r = begin(false);
    fake_process(300, 1, ANNA, SESSION);
    fake_on(0, 300, false);
    fake_wait(7);
    is_int((long)roster_count(r), 0, "a desktop alone is no job");
    ok(!roster_may_claim(r, ANNA, 0), "  and gives no right");
    fake_roster_end(r);
}

/* The pid is another's before the next look. */
static void reuse(void)
{
    struct roster *r = begin(false);
    uint64_t id = 0;
    uw_error err;

    struct proc_facts *f = fake_process(100, 1, ANNA, SESSION);
    fake_on(0, 100, true);
    fake_wait(7);
    uint64_t first = roster_at(r, 0)->id;
    f->uid = EVE;
    f->start += 5;
    fake_wait(2.1);
    is_int((long)roster_count(r), 1, "a pid used again: one job");
    ok(roster_at(r, 0)->id != first && roster_at(r, 0)->uid == EVE, "  of its new owner");
    ok(!roster_may_claim(r, ANNA, 0), "  the old one has no right left");

    struct proc_facts *g = fake_process(400, 1, ANNA, SESSION);
    struct roster_register reg = {.source = JOB_RUN,
                                  .name = "train",
                                  .uid = ANNA,
                                  .boards = 2,
                                  .pid = 400,
                                  .pid_start = g->start + 1};
    is_int(roster_begin(r, &reg, &id, &err), -ESRCH,
           "taken over: another has the pid now");
    reg.pid_start = g->start;
    is_int(roster_begin(r, &reg, &id, &err), 0, "taken over: the same process");
    ok(roster_may_claim(r, ANNA, 1), "  may claim");
    g->start += 7;
    fake_wait(2.1);
    ok(!roster_find(r, id), "  its pid is another's: it is over");
    ok(!roster_may_claim(r, ANNA, 1), "  and its right");
    fake_roster_end(r);
}

/* ---- registered ---- */

static const struct label too_many[LABELS_MAX + 1];
static char long_name[JOB_NAME + 1];

static const struct {
    const char *name;
    struct roster_register reg;
    int r;
    const char *says;
} refused[] = {
    /* clang-format off */
    {"a found one", {.source = JOB_FOUND, .name = "x", .uid = ANNA, .boards = 4}, -EINVAL, "job: source 2 cannot be registered"},
    {"no name", {.source = JOB_RUN, .uid = ANNA, .boards = 4}, -EINVAL, "job: the name must have 1 to 95 bytes"},
    {"an empty name", {.source = JOB_RUN, .name = "", .uid = ANNA, .boards = 4}, -EINVAL, "job: the name must have 1 to 95 bytes"},
    {"a name too long", {.source = JOB_RUN, .name = long_name, .uid = ANNA, .boards = 4}, -EINVAL, "job: the name must have 1 to 95 bytes"},
    {"too many labels", {.source = JOB_RUN, .name = "x", .uid = ANNA, .label = too_many, .n_labels = LABELS_MAX + 1}, -E2BIG, "job: 17 labels: more than 16"},
    {"a board that is not there", {.source = JOB_RUN, .name = "x", .uid = ANNA, .boards = 1u << FAKES}, -EINVAL, "job x: a board beyond the 4 of this node"},
    {"no such process", {.source = JOB_RUN, .name = "x", .uid = ANNA, .boards = 4, .pid = 999}, -ESRCH, "process 999: no such process, or it has ended"},
    {"another's process", {.source = JOB_RUN, .name = "x", .uid = ANNA, .boards = 4, .pid = 200}, -EPERM, "process 200 is not user 1000's"},
    {"another's board, registered", {.source = JOB_REGISTERED, .name = "x", .uid = ANNA, .boards = 8}, -EBUSY, "GPU 3 belongs to job 71 of "},
    {"an id that is there", {.source = JOB_RUN, .name = "x", .uid = ANNA, .boards = 4, .id = 71}, -EEXIST, "job 71 exists already"},
    /* clang-format on */
};

static void refusals(void)
{
    struct roster *r = begin(false);
    struct roster_register batch = {
        .source = JOB_REGISTERED, .name = "batch", .uid = EVE, .boards = 8};
    uint64_t id = 0;
    uw_error err;

    memset(long_name, 'n', JOB_NAME);
    fake_process(200, 1, EVE, SESSION);
    fake_on(0, 200, true);
    fake_on(1, 777, true);
    fake_wait(7);
    is_int(roster_begin(r, &batch, &id, &err), 0, "a scheduler's job");
    is_int((long)id, 71, "  its id");
    unsigned before = heard.begun + heard.changed + heard.ended;
    for (size_t i = 0; i < n_elements(refused); i++) {
        uint64_t canary = 7;
        int result = roster_begin(r, &refused[i].reg, &canary, &err);
        is_int(result, refused[i].r, "refused: %s", refused[i].name);
        /* users' names differ from machine to machine: the fixed part counts */
        size_t n = strlen(refused[i].says);
        ok(strncmp(err.text, refused[i].says, n) == 0, "  %s", err.text);
        ok(canary == 7 && roster_count(r) == 2 &&
               before == heard.begun + heard.changed + heard.ended,
           "  nothing changed");
    }
    is_int(roster_end(r, 99, &err), -ENOENT, "no such job to end");
    fake_roster_end(r);
}

static void registered(void)
{
    struct roster *r = begin(false);
    struct label labels[] = {{"project", "vision"}};
    struct roster_register reg = {.source = JOB_REGISTERED,
                                  .name = "slurm:42",
                                  .uid = ANNA,
                                  .boards = 3,
                                  .label = labels,
                                  .n_labels = 1,
                                  .id = 500,
                                  .began_utc_ns = 1699999990ll * 1000000000};
    uint64_t id = 0, other = 0;
    uw_error err;

    is_int(roster_begin(r, &reg, &id, &err), 0, "registered");
    const struct job_entry *j = roster_find(r, id);
    is_int((long)id, 500, "  takes its id over");
    is_str(j->label[0].value, "vision", "  its labels");
    const struct label more[] = {{"slurm.qos", "high"}, {"project", "speech"}};
    heard.changed = 0;
    is_int(roster_label(r, id, more, 2, &err), 0, "  labels are set beside");
    ok(j->n_labels == 2 && strcmp(j->label[0].value, "speech") == 0 &&
           strcmp(j->label[1].value, "high") == 0 && heard.changed == 1,
       "  or replaced, and told");
    is_int(roster_label(r, id, more, 2, &err), 1, "  the same again");
    is_int((long)heard.changed, 1, "  is no change");
    struct label many[LABELS_MAX];
    for (int i = 0; i < LABELS_MAX; i++)
        (void)snprintf(many[i].key, LABEL_KEY, "k%d", i);
    is_int(roster_label(r, id, many, LABELS_MAX, &err), -E2BIG, "  too many");
    is_int((long)j->n_labels, 2, "  change nothing");
    is_int(roster_label(r, 7, more, 2, &err), -ENOENT, "  of no job");
    is_int((long)j->boards, 3, "  its boards");
    ok(j->began_utc_ns == reg.began_utc_ns, "  its beginning");
    ok(roster_may_claim(r, ANNA, 0) && roster_in_use(r, 1), "  may claim at once");
    fake_process(200, 1, EVE, SESSION);
    fake_on(0, 200, true);
    fake_wait(7);
    ok(j->foreign && roster_may_claim(r, ANNA, 0), "  … also beside a tiny process");
    ok(!roster_may_claim(r, EVE, 0), "  which gives eve nothing");
    fake_process(100, 1, ANNA, SLURM); /* on a board that was not named */
    fake_on(2, 100, true);
    fake_wait(7);
    is_int((long)j->boards, 7, "  its processes by the scheduler's name");
    ok(roster_may_claim(r, ANNA, 2), "  a board that it was not given: as one found");
    fake_process(201, 1, EVE, SESSION);
    fake_on(2, 201, true);
    fake_wait(7);
    ok(!roster_may_claim(r, ANNA, 2) && !roster_keeps_claim(r, ANNA, 2) &&
           roster_keeps_claim(r, ANNA, 0),
       "  no longer beside a tiny process, unlike where it was given");
    fake_exit(201);
    fake_wait(7);
    reg.id = 0;
    reg.name = "other";
    reg.boards = 8;
    is_int(roster_begin(r, &reg, &other, &err), 0, "another");
    is_int((long)other, 503, "  ids go on behind the largest");
    is_int(roster_end(r, id, &err), 0, "ended by call");
    ok(!roster_find(r, id) && !roster_may_claim(r, ANNA, 0), "  and gone");
    fake_wait(2.1);
    is_int((long)roster_count(r), 3, "  who is left on its boards is found");
    ok(roster_may_claim(r, ANNA, 2), "  and owns them as such");
    fake_roster_end(r);
}

static void runs(void)
{
    struct roster *r = begin(false);
    struct roster_register reg = {.source = JOB_RUN, .name = "train", .uid = ANNA};
    uint64_t id = 0;
    uw_error err;

    fake_process(100, 1, ANNA, SESSION);
    fake_process(150, 100, ANNA, "/user.slice/user-1000.slice/session-4.scope");
    fake_process(151, 150, ANNA, SESSION);
    fake_process(190, 1, ANNA, SESSION);
    reg.pid = 100;
    is_int(roster_begin(r, &reg, &id, &err), 0, "run: boards to be found");
    fake_on(1, 151, true);
    fake_on(2, 190, true);
    fake_wait(7);
    is_int((long)roster_find(r, id)->boards, 2, "run: its grandchild's board");
    is_int((long)roster_count(r), 2, "run: the other process is another job");
    ok(roster_may_claim(r, ANNA, 2), "  which was found");
    ok(roster_may_claim(r, ANNA, 1), "  on a board that was not named as one found");
    roster_phase(r, id, 3);
    is_int(roster_find(r, id)->phase, 3, "run: its phase");
    unsigned turns = heard.turns, changed = heard.changed;
    roster_phase(r, id, 3);
    ok(heard.turns == turns && heard.changed == changed, "  told once");
    fake_exit(100);
    fake_wait(2.1);
    ok(!roster_find(r, id), "run: it ends with its process");
    fake_roster_end(r);
}

/* ---- taken over ---- */

/* What another roster's found job is known by. */
static void found_again(void)
{
    static const struct job_proc procs[] = {{90, 1090}, {100, 1100}, {101, 1101}};
    struct roster *r = begin(false);
    struct roster_register reg = {.source = JOB_FOUND,
                                  .name = "python",
                                  .uid = ANNA,
                                  .boards = 3,
                                  .proc = procs,
                                  .n_procs = n_elements(procs),
                                  .id = 60,
                                  .began_utc_ns = 1699999990ll * 1000000000};
    struct split_user u[ROSTER_USERS];
    uint64_t id = 0, other = 0;
    uw_error err;

    is_int(roster_begin(r, &reg, &id, &err), -ESRCH,
           "taken over: no process of it lives");
    struct proc_facts *f = fake_process(100, 1, ANNA, SESSION);
    f->start++;
    is_int(roster_begin(r, &reg, &id, &err), -ESRCH, "  nor where its pid is another's");
    f->start--;
    f->uid = EVE;
    is_int(roster_begin(r, &reg, &id, &err), -ESRCH, "  or has another user");
    f->uid = ANNA;
    fake_on(0, 100, true);
    fake_process(101, 1, ANNA, SESSION)->session = 100;
    fake.dev[0].procs_fails = fake.dev[1].procs_fails = -EIO;
    is_int(roster_begin(r, &reg, &id, &err), 0, "taken over: two of three live");
    is_int((long)id, 60, "  its id");
    reg.id = 61;
    is_int(roster_begin(r, &reg, &other, &err), -EEXIST, "  once: %s", err.text);
    fake_wait(20);
    const struct job_entry *j = roster_find(r, 60);
    is_int(j ? (long)j->boards : 0, 3, "  it has its boards while nobody can look there");
    ok(roster_keeps_claim(r, ANNA, 0) && roster_in_use(r, 1), "  what it claimed stands");
    ok(!roster_may_claim(r, ANNA, 0), "  more may not be claimed");
    is_int((long)roster_users(r, 0, u), 1, "  the energy is its");
    fake.dev[0].procs_fails = fake.dev[1].procs_fails = 0;
    fake_wait(7);
    is_int(j ? (long)j->boards : 0, 1, "  then it has those where it computes");
    is_int((long)roster_count(r), 1, "  it is no other job");
    ok(roster_may_claim(r, ANNA, 0), "  and its right");
    ok(j && j->pid == 100 && j->n_procs == 1, "  known by the process that is there");
    fake_exit(100);
    fake_on(2, 101, true);
    fake_wait(7);
    ok(!roster_find(r, 60), "  it ends with it");
    fake_roster_end(r);
}

static void procs_text(void)
{
    struct job_entry e = {.proc = {{1, 2}, {4711, UINT64_MAX}}, .n_procs = 2};
    struct job_proc back[JOB_PROCS] = {{0}};
    char text[JOB_PROCS * JOB_PROC_TEXT];
    static const char *const bad[] = {"",      "x",  "4711", "0.1",
                                      "4711.", ".5", "-1.5", "99999999999.1"};

    job_procs_text(&e, text, sizeof text);
    is_str(text, "1.2 4711.18446744073709551615", "processes as text");
    is_int((long)job_procs_parse(text, back), 2, "  and back");
    ok(memcmp(back, e.proc, sizeof e.proc) == 0, "  the same");
    for (size_t i = 0; i < n_elements(bad); i++)
        is_int((long)job_procs_parse(bad[i], back), 0, "  none in '%s'", bad[i]);
    is_int((long)job_procs_parse("1.2 x 3.4", back), 2, "  what is none is left out");
    is_int((long)job_procs_parse(NULL, back), 0, "  none of an old ledger");
}

/* ---- boards that several name ---- */

static uint64_t names(struct roster *r, uid_t uid, pid_t pid, enum job_source source,
                      bool firm)
{
    struct roster_register reg = {
        .source = source, .name = "x", .uid = uid, .boards = 1, .pid = pid, .firm = firm};
    uint64_t id = 0;
    uw_error err = {""};

    ok(roster_begin(r, &reg, &id, &err) == 0, "uid %u names board 0 %s", (unsigned)uid,
       err.text);
    return id;
}

/* Who may claim on board 0 is as this says, once it was looked at. */
static void may(struct roster *r, bool anna, bool eve, const char *when)
{
    fake_wait(7);
    ok(roster_may_claim(r, ANNA, 0) == anna && roster_may_claim(r, EVE, 0) == eve,
       "%s: %s may claim", when,
       anna  ? "anna"
       : eve ? "eve"
             : "nobody");
}

/* Eve sleeps, and has named the board before anna came. */
static void idle_board(void)
{
    struct roster *r = begin(false);

    fake_process(200, 1, EVE, SESSION);
    fake_process(100, 1, ANNA, SESSION);
    uint64_t hers = names(r, EVE, 200, JOB_RUN, false);
    may(r, false, true, "named by eve");
    uint64_t annas = names(r, ANNA, 100, JOB_RUN, false);
    const struct job_entry *a = roster_find(r, annas), *e = roster_find(r, hers);
    ok(a->boards == 0 && a->waits == 1, "anna's job is there, and waits for the board");
    ok(strncmp(a->held, "GPU 0 belongs to job 70 of ", 27) == 0, "  %s", a->held);
    may(r, false, true, "nobody computes there");
    fake_on(0, 100, true);
    may(r, true, false, "anna computes there");
    ok(a->given == 1 && a->waits == 0 && !a->held[0], "  it is her job's");
    ok(e->given == 0 && e->boards == 0 && e->waits == 1, "  no longer eve's");
    ok(heard.passes == 1 && heard.from == hers && heard.to == annas, "  it is told");
    fake_on(0, 200, true);
    may(r, false, false, "eve computes there, too");
    ok(heard.passes == 1 && a->given == 1 && e->waits == 1, "  nothing passes");
    fake.dev[0].n--;
    may(r, true, false, "eve does not any more");
    fake_exit(100);
    may(r, false, true, "anna has gone");
    ok(heard.passes == 2 && heard.from == 0 && heard.to == hers, "  it is told");
    fake_roster_end(r);
}

/* Who computes there keeps what is theirs. */
static void used_board(void)
{
    static const struct {
        const char *name;
        bool found, firm, joins;
        enum job_source source;
        bool anna, eve;
    } cases[] = {
        {.name = "eve's run computes there", .eve = true},
        {.name = "eve's found one does", .found = true, .eve = true},
        {.name = "both compute there", .joins = true},
        {.name = "an administrator began hers",
         .firm = true,
         .joins = true,
         .anna = true},
        {.name = "a scheduler gave it to her",
         .source = JOB_REGISTERED,
         .joins = true,
         .eve = true},
    };

    for (size_t i = 0; i < n_elements(cases); i++) {
        struct roster *r = begin(false);
        bool sleeps = cases[i].firm || cases[i].source == JOB_REGISTERED;
        fake_process(200, 1, EVE, SESSION);
        fake_process(100, 1, ANNA, SESSION);
        if (!sleeps)
            fake_on(0, 200, true);
        fake_wait(7);
        if (!cases[i].found)
            (void)names(r, EVE, 200, cases[i].source, cases[i].firm);
        uint64_t annas = names(r, ANNA, 100, JOB_RUN, false);
        if (cases[i].joins)
            fake_on(0, 100, true);
        may(r, cases[i].anna, cases[i].eve, cases[i].name);
        const struct job_entry *a = roster_find(r, annas);
        ok(a && a->waits == 1 && a->given == 0 && a->held[0] && heard.passes == 0,
           "  anna's job runs, and waits: %s", a ? a->held : "");
        fake_roster_end(r);
    }
}

/* One user cannot take all places, nor begin jobs for ever. */
static void crowds(void)
{
    struct roster *r = begin(false);
    struct roster_register reg = {.source = JOB_RUN, .name = "many", .uid = EVE};
    uint64_t id = 0, other = 0;
    unsigned n = 0;
    uw_error err;

    while (n < ROSTER_MAX && roster_begin(r, &reg, &id, &err) == 0)
        n++;
    is_int((long)n, ROSTER_USER_MAX, "a crowd: so many of one user's");
    is_int(roster_begin(r, &reg, &other, &err), -E2BIG, "  no more: %s", err.text);
    reg.uid = ANNA;
    is_int(roster_begin(r, &reg, &other, &err), 0, "  another user's");
    reg.uid = EVE;
    for (uint64_t i = id - n + 1; i <= id; i++)
        (void)roster_end(r, i, NULL);
    is_int((long)roster_count(r), 1, "  all ended");
    is_int(roster_begin(r, &reg, &other, &err), -EAGAIN, "  not at once: %s", err.text);
    reg.source = JOB_REGISTERED;
    is_int(roster_begin(r, &reg, &other, &err), 0, "  a scheduler's at once");
    reg.source = JOB_RUN;
    fake_wait(2.1);
    is_int(roster_begin(r, &reg, &other, &err), 0, "  one after a while");
    is_int(roster_begin(r, &reg, &other, &err), -EAGAIN, "  and no other");
    for (uid_t uid = 2000; roster_count(r) < ROSTER_MAX - ROSTER_KEPT; uid++) {
        reg.uid = uid;
        if (roster_begin(r, &reg, &other, &err) < 0)
            break;
    }
    reg.uid = 3000;
    is_int(roster_begin(r, &reg, &other, &err), -E2BIG, "  places that are kept: %s",
           err.text);
    fake_process(100, 1, ANNA, SLURM);
    fake_on(0, 100, true);
    fake_wait(8);
    is_int((long)roster_count(r), ROSTER_MAX - ROSTER_KEPT + 1, "  for found ones");
    reg.source = JOB_REGISTERED;
    is_int(roster_begin(r, &reg, &other, &err), 0, "  and registered ones");
    fake_roster_end(r);
}

/* ---- who used what ---- */

static const struct split_user *user_of(const struct split_user *u, size_t n,
                                        uint64_t job)
{
    for (size_t i = 0; i < n; i++)
        if (u[i].job == job)
            return &u[i];
    return NULL;
}

static void uses(void)
{
    struct roster *r = begin(false);
    struct split_user u[ROSTER_USERS];
    const struct split_user *a, *b;

    fake_process(100, 1, ANNA, SLURM);
    fake_process(200, 1, EVE, SESSION);
    fake_on(0, 100, true);
    fake_wait(8);
    size_t n = roster_users(r, 0, u);
    is_int((long)n, 1, "use: one user");
    is_int((long)u[0].job, 70, "  its job");
    is_int(fake.dev[0].use_calls, 0, "  the driver was not asked for its use");
    fake_on(0, 200, true);
    fake.dev[0].n_use = 2;
    fake.dev[0].use[0] = (struct gpu_use){100, 60};
    fake.dev[0].use[1] = (struct gpu_use){200, 20};
    fake_wait(3);
    (void)roster_users(r, 0, u);
    fake_wait(10);
    n = roster_users(r, 0, u);
    is_int((long)n, 2, "use: two users");
    a = user_of(u, n, 70);
    b = user_of(u, n, 71);
    ok(a && b && a->use_known && b->use_known, "  whose use is known");
    is_near(a ? a->use_s : 0, 6, 0.01, "  60 %% of 10 s");
    is_near(b ? b->use_s : 0, 2, 0.01, "  20 %% of 10 s");
    is_near((double)roster_users(r, 0, u), 2, 0, "  still two");
    is_near(u[0].use_s + u[1].use_s, 0, 1e-9, "  what was told is not told again");
    fake_exit(200);
    fake_wait(2.1);
    n = roster_users(r, 0, u);
    is_int((long)n, 2, "use: who left is told once");
    n = roster_users(r, 0, u);
    is_int((long)n, 1, "  and no more");
    fake_on(0, 888, true);
    fake.dev[0].use_fails = -EIO;
    fake_wait(8);
    (void)roster_users(r, 0, u);
    fake_wait(8);
    n = roster_users(r, 0, u);
    b = user_of(u, n, 0);
    ok(n == 2 && b && !b->use_known, "use: people unknown, use unknown");
    fake.dev[0].use_fails = -ENOTSUP;
    fake_wait(4);
    unsigned calls = fake.dev[0].use_calls;
    fake_wait(8);
    is_int(fake.dev[0].use_calls, calls, "  a driver that cannot is not asked again");
    fake_roster_end(r);
}

/* ---- the driver does not answer ---- */

static void hangs(void)
{
    struct roster *r = begin(false);
    struct roster_counts counts;

    fake_process(100, 1, ANNA, SLURM);
    fake_process(101, 1, ANNA, SLURM);
    fake_on(0, 100, true);
    fake_on(0, 101, true);
    fake_wait(7);
    fake.dev[0].procs_fails = -EIO;
    fake_wait(2.1);
    is_int((long)roster_count(r), 1, "no list: the job stays");
    ok(!roster_may_claim(r, ANNA, 0), "  found rights need a list");
    fake_exit(101);
    fake_wait(2.1);
    is_int(roster_at(r, 0)->n_pids, 1, "  a process that ended is none of it");
    fake_exit(100);
    fake_wait(2.1);
    is_int((long)roster_count(r), 0, "  its last process ended: so did it");
    fake.dev[0].procs_fails = 0;
    roster_counts(r, &counts);
    ok(counts.failures >= 3 && counts.looks > counts.failures, "  failures are counted");
    fake_roster_end(r);
}

static void rates(void)
{
    struct roster *r = begin(false);

    fake_wait(60);
    unsigned at_rest = fake.dev[0].procs_calls;
    ok(at_rest >= 9 && at_rest <= 12, "at rest: %u looks in a minute", at_rest);
    fake_process(100, 1, ANNA, SLURM);
    fake_on(0, 100, true);
    roster_look(r, 0);
    fake_wait(0.6);
    is_int((long)roster_count(r), 1, "woken: seen at once");
    unsigned before = fake.dev[0].procs_calls, others = fake.dev[1].procs_calls;
    fake_wait(60);
    unsigned busy = fake.dev[0].procs_calls - before;
    ok(busy >= 29 && busy <= 31, "in use: %u looks in a minute", busy);
    others = fake.dev[1].procs_calls - others;
    ok(others <= 12, "  others rest on: %u", others);
    for (int i = 0; i < 50; i++)
        roster_look(r, 1);
    before = fake.dev[1].procs_calls;
    fake_wait(0.4);
    ok(fake.dev[1].procs_calls - before <= 1, "asked again and again: one look");
    fake_roster_end(r);
}

/* ---- real processes ---- */

static void real(void)
{
    struct roster *r;
    struct roster_register reg = {
        .source = JOB_RUN, .name = "child", .uid = getuid(), .boards = 2};
    int pipes[2];
    uint64_t id = 0;
    uw_error err = {{0}};

    if (pipe(pipes) < 0)
        return;
    pid_t child = fork();
    if (child == 0) {
        char c;
        (void)close(pipes[1]);
        (void)!read(pipes[0], &c, 1);
        _exit(0);
    }
    r = begin(true);
    fake_on(0, child, true);
    roster_look(r, 0);
    fake_wait(0.7);
    is_int((long)roster_count(r), 1, "real: found");
    if (roster_count(r) == 1)
        ok(roster_at(r, 0)->uid == getuid() && roster_at(r, 0)->pid == child,
           "  its process and user");
    reg.pid = child;
    is_int(roster_begin(r, &reg, &id, &err), 0, "real: registered %s", err.text);
    (void)close(pipes[1]);
    for (int i = 0; i < 50 && roster_find(r, id); i++)
        fake_wait(0.02);
    ok(!roster_find(r, id), "real: ended with its process, by its pidfd");
    (void)waitpid(child, NULL, 0);
    (void)close(pipes[0]);
    fake_roster_end(r);
}

/* A process with four boards is read once a look, and a change of it is seen. */
static void several_boards(void)
{
    struct roster *r = begin(false);

    struct proc_facts *f = fake_process(100, 1, ANNA, SLURM);
    for (size_t i = 0; i < FAKES; i++)
        fake_on(i, 100, true);
    fake_wait(7);
    unsigned calls = fake.dev[0].procs_calls;
    fake.reads = 0;
    fake_wait(20);
    calls = fake.dev[0].procs_calls - calls;
    ok(calls >= 9 && fake.reads <= calls + 1, "several boards: %u reads in %u looks",
       fake.reads, calls);
    f->uid = EVE;
    fake_wait(3);
    is_int(heard.last.uid, EVE, "  the job of its new user");
    roster_free(r);
    fake_end();
}

int main(void)
{
    found();
    strangers();
    reuse();
    refusals();
    registered();
    runs();
    found_again();
    several_boards();
    procs_text();
    idle_board();
    used_board();
    crowds();
    uses();
    hangs();
    rates();
    real();
    return done();
}
