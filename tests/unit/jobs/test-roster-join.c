/* Groups: processes of a made-up node that begin one job together; its boards, and which
 * of them it ends with.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "procs.h"

enum { ANNA = 1000, EVE = 1001 };
#define SESSION "/user.slice/user-1000.slice/session-3.scope"

static pid_t unread; /* the process whose facts cannot be read now */

static int read_most(pid_t pid, struct proc_facts *ret, void *user)
{
    return pid == unread ? -EMFILE : fake_read(pid, ret, user);
}

static struct roster *begin(bool real)
{
    memset(&fake_heard, 0, sizeof fake_heard);
    return fake_roster(real,
                       (struct roster_opts){.on_event = fake_hear, .read = read_most});
}

static struct roster_register of(pid_t pid, uint64_t boards)
{
    return (struct roster_register){.source = JOB_RUN,
                                    .name = "train",
                                    .uid = ANNA,
                                    .pid = pid,
                                    .boards = boards,
                                    .group = "ranks"};
}

/* Ranks 100 … of the launcher 90, which is no part of the job. */
static uint64_t ranks(struct roster *r, int n)
{
    struct roster_register reg = of(100, 1);
    uint64_t id = 0;
    uw_error err = {""};

    fake_process(90, 1, ANNA, SESSION);
    for (int i = 0; i < n; i++)
        fake_process(100 + i, 90, ANNA, SESSION);
    is_int((long)roster_group(r, ANNA, "ranks"), 0, "nobody has begun");
    is_int(roster_begin(r, &reg, &id, &err), 0, "the first rank begins %s", err.text);
    for (int i = 1; i < n; i++) {
        reg = of(100 + i, i < FAKES ? 1ull << i : 0);
        is_int(roster_join(r, roster_group(r, ANNA, "ranks"), &reg, &err), 0,
               "rank %d joins %s", i, err.text);
    }
    return id;
}

static void joins(void)
{
    struct roster *r = begin(false);
    uint64_t id = ranks(r, 3);
    const struct job_entry *j = roster_find(r, id);
    struct roster_register reg = of(101, 2);
    uw_error err = {""};

    is_int((long)j->given, 7, "it has the boards of all");
    is_int((long)j->n_procs, 3, "and its processes");
    ok(roster_count(r) == 1 && fake_heard.begun == 1 && fake_heard.changed >= 2,
       "one job: told");
    ok(roster_may_claim(r, ANNA, 1), "it may claim on a joined board");
    unsigned changed = fake_heard.changed;
    is_int(roster_join(r, id, &reg, &err), 0, "who has joined joins again");
    ok(j->n_procs == 3 && fake_heard.changed == changed, "and nothing changes");
    reg = of(999, 0);
    is_int(roster_join(r, id, &reg, &err), -ESRCH, "no such process: %s", err.text);
    reg = of(101, 0);
    reg.uid = EVE;
    is_int(roster_join(r, id, &reg, &err), -ENOENT, "another user: %s", err.text);
    is_int((long)roster_group(r, EVE, "ranks"), 0, "whose group is not this one");
    reg = of(101, 0);
    reg.group = "others";
    is_int(roster_join(r, id, &reg, &err), -ENOENT, "another group: %s", err.text);
    fake_process(150, 102, ANNA, SESSION); /* a child of rank 2, on a board of none */
    fake_on(3, 150, true);
    fake_wait(7);
    is_int((long)j->boards, 15, "what a rank starts computes for the job");
    fake_roster_end(r);
}

static void succession(void)
{
    struct roster *r = begin(false);
    uint64_t id = ranks(r, 4);
    const struct job_entry *j = roster_find(r, id);
    uw_error err = {""};

    fake_exit(101);
    fake_exit(100);
    fake_wait(7);
    ok(roster_find(r, id) == j && j->pid == 102 && j->pid_start == 1102,
       "the first is gone: the next that lives takes its place");
    is_int((long)j->given, 15, "with all boards");
    is_int(roster_leave(r, id, 90, &err), -ENOENT, "who has no part: %s", err.text);
    is_int(roster_leave(r, id, 103, &err), 0, "one leaves");
    fake_exit(102);
    fake_wait(7);
    ok(!roster_find(r, id) && fake_heard.ended == 1,
       "it ends with the last that has a part");
    fake_roster_end(r);

    r = begin(false);
    id = ranks(r, 2);
    is_int(roster_leave(r, id, 100, &err), 0, "the first one leaves");
    ok(roster_find(r, id) && roster_find(r, id)->pid == 101, "the other goes on");
    is_int(roster_leave(r, id, 101, &err), 0, "then that");
    ok(!roster_find(r, id), "it has ended");
    is_int(roster_leave(r, id, 101, &err), -ENOENT, "once: %s", err.text);
    fake_roster_end(r);

    r = begin(false);
    id = ranks(r, 2);
    unread = 101;
    fake_exit(100);
    fake_wait(7);
    ok(roster_find(r, id) && roster_find(r, id)->pid == 101,
       "one that cannot be read has not ended");
    unread = 0;
    fake_wait(7);
    ok(roster_find(r, id) != NULL, "nor then");
    fake_exit(101);
    fake_wait(7);
    ok(!roster_find(r, id), "until it has");
    fake_roster_end(r);
}

/* Members that end, and a process that is given the pid of one. */
static void reused(void)
{
    struct roster *r = begin(false);
    const struct job_entry *j = roster_find(r, ranks(r, 3));

    fake_exit(102);
    for (int i = 0; i < 70 && j->n_procs == 3; i++)
        fake_wait(0.1);
    is_int((long)j->n_procs, 2, "who has ended is no member any more");
    fake_exit(101);
    fake_process(101, 1, ANNA, SESSION)->start = 9000;
    fake_process(150, 101, ANNA, SESSION);
    fake_on(3, 150, true);
    roster_look(r, 3);
    fake_wait(1);
    ok(roster_count(r) == 2 && j->n_procs == 2 && !(j->boards >> 3 & 1),
       "a pid that is another process' now: that is not of the job");
    fake_wait(7);
    is_int((long)j->n_procs, 1, "nor a member");
    fake_roster_end(r);
}

/* No more join than are recorded. */
static void crowd(void)
{
    struct roster *r = begin(false);
    uint64_t id = ranks(r, JOB_PROCS);
    const struct job_entry *j = roster_find(r, id);
    struct roster_register reg = of(99, 0);
    uw_error err = {""};

    fake_process(99, 90, ANNA, SESSION);
    is_int((long)j->n_procs, JOB_PROCS, "so many are recorded");
    is_int(roster_join(r, id, &reg, &err), -E2BIG, "one more: %s", err.text);
    is_int((long)j->n_procs, JOB_PROCS, "is not");
    fake_exit(105);
    is_int(roster_join(r, id, &reg, &err), 0, "it has the place of one that has ended");
    ok(j->n_procs == JOB_PROCS && j->proc[JOB_PROCS - 1].pid == 99, "and is recorded");
    is_int(roster_leave(r, id, 99, &err), 0, "and may leave");
    fake_roster_end(r);
}

/* One user's joins are limited, those of others and of root by that user's not. */
static void hurry(void)
{
    struct roster *r = begin(false);
    uint64_t id = ranks(r, JOB_PROCS);
    struct roster_register reg = of(101, 0);
    uw_error err = {""};
    int got = 0, n = JOB_PROCS - 1; /* so many have joined */

    for (; got == 0 && n <= ROSTER_JOINS; n += got == 0)
        got = roster_join(r, id, &reg, &err);
    ok(got == -EAGAIN && n == ROSTER_JOINS, "%d join at once, then: %s", n, err.text);
    is_int((long)roster_find(r, id)->n_procs, JOB_PROCS, "who has joined stays");

    uint64_t eve = 0, root = 0;
    fake_process(80, 1, EVE, SESSION);
    fake_process(81, 1, 0, SESSION);
    struct roster_register of_eve = of(80, 0), of_root = of(81, 0);
    of_eve.uid = EVE;
    of_root.uid = 0;
    is_int(roster_begin(r, &of_eve, &eve, &err), 0, "another user begins");
    is_int(roster_join(r, eve, &of_eve, &err), 0, "and joins");
    is_int(roster_begin(r, &of_root, &root, &err), 0, "root begins");
    for (int i = got = 0; got == 0 && i <= ROSTER_JOINS; i++)
        got = roster_join(r, root, &of_root, &err);
    is_int(got, 0, "and joins as often as it likes");

    fake_wait(ROSTER_JOIN_MS * 1.5 / 1e3);
    is_int(roster_join(r, id, &reg, &err), 0, "a little later there is room for one");
    is_int(roster_join(r, id, &reg, &err), -EAGAIN, "for one alone");
    fake_roster_end(r);
}

/* After a restart the ledger has id, first process and the others. */
static void restored(void)
{
    struct roster *r = begin(false);
    struct job_proc procs[] = {{100, 1100}, {101, 1101}, {102, 1102}};
    struct roster_register reg = {.source = JOB_RUN,
                                  .name = "train",
                                  .uid = ANNA,
                                  .pid = 100,
                                  .pid_start = 1100,
                                  .proc = procs,
                                  .n_procs = 3,
                                  .boards = 3,
                                  .id = 60};
    uint64_t id = 0;
    uw_error err = {""};

    is_int(roster_begin(r, &reg, &id, &err), -ESRCH, "all are gone: %s", err.text);
    fake_process(102, 1, ANNA, SESSION);
    is_int(roster_begin(r, &reg, &id, &err), 0, "one lives: the job goes on");
    const struct job_entry *j = roster_find(r, id);
    ok(id == 60 && j->pid == 102 && j->boards == 3, "by that one");
    ok(roster_has_part(r, 60, ANNA, 102), "which has its part in it");
    fake_process(103, 1, ANNA, SESSION);
    ok(!roster_has_part(r, 60, ANNA, 103), "another process has none");
    ok(!roster_has_part(r, 60, EVE, 102) && !roster_has_part(r, 61, ANNA, 102),
       "nor another user, nor is it another job's");
    reg = of(102, 4);
    is_int(roster_join(r, id, &reg, &err), 0, "which says its group again");
    ok(roster_group(r, ANNA, "ranks") == 60 && j->given == 7, "and is found by it");
    ok(!roster_has_part(r, 60, ANNA, 102), "by it alone");
    fake_exit(102);
    fake_wait(7);
    ok(!roster_find(r, id), "it ends with it");
    fake_roster_end(r);
}

static pid_t sleeper(int *ret_end)
{
    int pipes[2];

    if (pipe(pipes) < 0)
        return -1;
    pid_t child = fork();
    if (child == 0) {
        char c;
        (void)close(pipes[1]);
        (void)!read(pipes[0], &c, 1);
        _exit(0);
    }
    (void)close(pipes[0]);
    *ret_end = pipes[1];
    return child;
}

/* Real processes, by their pidfds. */
static void real(void)
{
    int first_end = -1, second_end = -1;
    pid_t second = sleeper(&second_end), first = sleeper(&first_end);
    struct roster *r = begin(true);
    struct roster_register reg = of(first, 0);
    uint64_t id = 0;
    uw_error err = {""};

    reg.uid = getuid();
    is_int(roster_begin(r, &reg, &id, &err), 0, "real: begun %s", err.text);
    reg.pid = second;
    is_int(roster_join(r, id, &reg, &err), 0, "real: joined %s", err.text);
    (void)close(first_end);
    for (int i = 0; i < 100 && roster_find(r, id) && roster_find(r, id)->pid == first;
         i++)
        fake_wait(0.02);
    ok(roster_find(r, id) && roster_find(r, id)->pid == second, "real: the other's");
    (void)close(second_end);
    for (int i = 0; i < 100 && roster_find(r, id); i++)
        fake_wait(0.02);
    ok(!roster_find(r, id), "real: ended with the last");
    (void)waitpid(first, NULL, 0);
    (void)waitpid(second, NULL, 0);
    fake_roster_end(r);
}

int main(void)
{
    joins();
    succession();
    reused();
    crowd();
    hurry();
    restored();
    real();
    return done();
}
