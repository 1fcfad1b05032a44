/* A ledger whose file cannot be opened, goes away or is replaced: ids, boards, what is
 * taken over, what the next file is told.
 */
#include <errno.h>
#include <fcntl.h>

#include "help.h"
#include "io/ledger-queue.h"
#include "tap.h"

#define FROM (UINT64_C(1) << 52) /* ids of runs that could not open the file */

static struct ledger_opts opts_of(const char *path, int64_t utc_ns)
{
    return (struct ledger_opts){.path = path,
                                .boot_id = BOOT,
                                .version = "test",
                                .simulated = true,
                                .utc_ns = utc_ns};
}

static struct ledger *later(const char *name, int64_t utc_ns, int why)
{
    const struct ledger_opts opts = opts_of(help_path(name), utc_ns);
    struct ledger *l = NULL;

    is_int(ledger_open_later(&opts, why, &l, NULL), 0, "a run without %s", name);
    return l;
}

static int put(struct ledger *l, int64_t i, uint64_t job)
{
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    struct ledger_job j = help_job(job ? job : 1, 1000, "anna");

    (void)help_interval(b, i, 0, job, 200000, 100, 1);
    if (job)
        (void)ledger_add_job(b, &j);
    return ledger_write(l, b, NULL);
}

static int count(const struct ledger_job *job, const char *boot_id, void *user)
{
    unsigned *n = user;

    (void)job;
    (void)boot_id;
    ++*n;
    return 0;
}

static void test_ids(void)
{
    const struct ledger_opts at = opts_of(help_path("x"), T0);
    struct ledger_opts other_boot = at;
    struct ledger *a = later("x", T0, -ENOENT), *b = later("x", T0 + S, -ENOENT),
                  *c = NULL;

    other_boot.boot_id = "another";
    (void)ledger_open_later(&other_boot, -ENOENT, &c, NULL);
    ok(ledger_first_job(a) >= FROM && ledger_first_job(a) < 2 * FROM &&
           ledger_first_claim(a) == ledger_first_job(a),
       "its ids are far from those counted from 1, and exact as doubles");
    ok(ledger_first_job(b) > ledger_first_job(a) + 4096, "a second later others");
    ok(ledger_first_job(c) != ledger_first_job(a), "in another boot others");
    ok(!ledger_is_open(a) && !ledger_is_readable(a), "there is nothing");
    is_int(help_boards(a, 2), 0, "it is told of its boards");
    is_int(put(a, 0, 0), -ENODEV, "and cannot write");
    ledger_close(a);
    ledger_close(b);
    ledger_close(c);
}

static void test_begins_later(void)
{
    const char *path = help_path("late.sqlite");
    struct ledger *l = later("late.sqlite", T0, -ENOENT);
    uint64_t first = ledger_first_job(l);
    uw_error err = {{0}};

    (void)help_boards(l, 2);
    is_int(ledger_ready(&l, T0 + S, &err), LEDGER_ANEW, "then it can: %s", err.text);
    is_int(ledger_ready(&l, T0 + S, &err), 0, "once");
    ok(ledger_first_job(l) == first, "ids go on");
    is_int(put(l, 0, first), 0, "it writes");
    ledger_close(l);
    is_int(help_open("late.sqlite", T0 + 9 * S, &l, &err), 0, "the next run opens it");
    ok(ledger_first_job(l) == first + 1, "with ids above");
    ledger_close(l);
    is_int(help_number(path, "SELECT count(*) FROM board"), 2, "the boards are there");
    is_int(help_number(path, "SELECT min(began_ms) FROM run"), T0 / 1000000,
           "the run began when it did");
}

/* Jobs that stand open in a file of earlier runs. */
static void test_takes_over(int why, bool readable)
{
    struct ledger *l = NULL;
    unsigned n = 0;
    struct ledger_sums sums = {0};
    char name[32];
    uw_error err = {{0}};

    (void)snprintf(name, sizeof name, "over%d.sqlite", readable);
    (void)help_open(name, T0, &l, NULL);
    (void)help_boards(l, 1);
    (void)put(l, 0, 1);
    (void)put(l, 1, 2);
    ledger_abandon(l);
    l = later(name, T0 + 60 * S, why);
    is_int(help_boards(l, 2), 0, "boards");
    is_int(ledger_is_readable(l), readable, "what earlier runs left is %sread",
           readable ? "" : "not ");
    if (readable) {
        is_int(ledger_open_jobs(l, count, &n, &err), 0, "jobs are read %s", err.text);
        is_int(n, 2, "both");
        is_int(ledger_board_sums(l, 0, 0, &sums, &err), 0, "sums, too");
        is_int((long long)sums.job_j, 200, "of its board");
        is_int(ledger_board_sums(l, 1, 0, &sums, &err), 0, "a board that it never saw");
        is_int((long long)sums.meter_j, 0, "has none");
        is_int(put(l, 2, 1), -ENODEV, "nothing is written");
    }
    is_int(ledger_ready(&l, T0 + 70 * S, &err), LEDGER_ANEW, "then: %s", err.text);
    ledger_settle(l, T0 + 70 * S);
    is_int(put(l, 3, 1), 0, "job 1 is told to it");
    ledger_close(l);
    is_int(help_number(help_path(name), "SELECT sum(id) FROM job WHERE ended_ms IS NULL"),
           1, "the other has ended");
}

static void test_removed(void)
{
    const char *path = help_path("gone.sqlite"), *moved = help_path("moved.sqlite");
    struct ledger *l = NULL;
    uw_error err = {{0}};

    (void)help_open("gone.sqlite", T0, &l, NULL);
    (void)help_boards(l, 1);
    (void)put(l, 0, 1);
    ok(rename(path, moved) == 0, "it is renamed");
    is_int(ledger_ready(&l, T0 + S, &err), LEDGER_ANEW, "missed: %s", err.text);
    is_int(put(l, 1, 1), 0, "a new one is written");
    is_int(help_number(moved, "SELECT count(*) FROM energy"), 1, "the old one is whole");
    is_int(help_number(path, "SELECT count(*) FROM energy"), 1, "so is the new one");
    is_int(help_number(path, "SELECT value FROM meta WHERE key = 'next_job'"), 1002,
           "whose ids go on");
    ok(rename(moved, path) == 0, "the old one comes back over it");
    is_int(ledger_ready(&l, T0 + 2 * S, &err), LEDGER_ANEW, "%s", err.text);
    is_int(put(l, 2, 1), 0, "written");
    is_int(help_number(path, "SELECT count(*) FROM energy"), 2, "after what it had");
    (void)unlink(help_path("gone.sqlite-wal"));
    is_int(ledger_ready(&l, T0 + 3 * S, &err), LEDGER_ANEW, "its -wal is taken away: %s",
           err.text);
    is_int(put(l, 3, 1), 0, "written");
    (void)unlink(help_path("gone.sqlite-shm"));
    is_int(ledger_ready(&l, T0 + 4 * S, &err), LEDGER_ANEW, "its -shm: %s", err.text);
    is_int(put(l, 4, 1), 0, "written");
    ledger_close(l);
    path = help_path("gone.sqlite");
    ok(help_text_is(path, "PRAGMA integrity_check", "ok"), "it is whole");
    is_int(help_number(path, "SELECT count(*) FROM energy"), 4, "with all of its rows");
}

static void test_replaced(void)
{
    const char *path = help_path("mine.sqlite"), *other = help_path("other.sqlite");
    struct ledger *l = NULL, *o = NULL;
    uw_error err = {{0}};

    (void)help_open("other.sqlite", T0, &o, NULL);
    (void)help_boards(o, 1);
    (void)put(o, 0, 700);
    ledger_close(o);
    (void)help_open("mine.sqlite", T0 + S, &l, NULL);
    (void)help_boards(l, 1);
    (void)put(l, 0, 3);
    ok(rename(other, path) == 0, "another's is put in its place");
    is_int(ledger_ready(&l, T0 + S, &err), -EEXIST, "its ids may be ours: %s", err.text);
    is_int(put(l, 1, 3), -ENODEV, "it is left alone");
    is_int(help_number(path, "SELECT max(id) FROM job"), 700, "untouched");
    is_int(help_number(path, "SELECT count(*) FROM run"), 1, "in all");
    (void)unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT, 0640);
    ok(write(fd, "no database at all", 18) == 18, "something else lies there");
    (void)close(fd);
    is_int(ledger_ready(&l, T0 + 2 * S, &err), LEDGER_ASIDE, "kept aside: %s", err.text);
    is_int(put(l, 2, 3), 0, "a new one is written");
    (void)unlink(path);
    ok(symlink("/dev/null", path) == 0, "a link");
    is_int(ledger_ready(&l, T0 + 3 * S, &err), -EPERM, "is refused: %s", err.text);
    ledger_close(l);
}

static void test_shed(void)
{
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    struct ledger_job job = help_job(1, 1000, "anna");
    const struct ledger_cap cap = {T0, 0, 200000, 200000, "claim", 1};
    const struct ledger_event event = {.utc_ns = T0, .kind = "x"};

    for (int64_t i = 0; i < 40; i++) {
        job.steps = (uint64_t)i;
        (void)ledger_add_job(b, &job);
        (void)ledger_add_cap(b, &cap);
        (void)ledger_add_event(b, &event);
        (void)help_interval(b, i, 0, 0, 0, 100, 1);
    }
    is_int((long long)ledger_batch_squeeze(b), 1 + 2 + 80,
           "of a job the newest, energy and meter by the hour");
    is_int((long long)ledger_batch_shed(b, 90), 0, "few enough");
    is_int((long long)ledger_batch_shed(b, 20), 63, "caps and events go");
    is_int((long long)ledger_batch_shed(b, 0), 17, "all of them");
    is_int((long long)ledger_batch_rows(b), 3, "joules and jobs stay");
    struct ledger *l = NULL;
    (void)help_open("shed.sqlite", T0, &l, NULL);
    (void)help_boards(l, 1);
    is_int(ledger_write(l, b, NULL), 0, "and are written");
    ledger_close(l);
    is_int(help_number(help_path("shed.sqlite"), "SELECT steps FROM job"), 39,
           "as they were last");
}

int main(void)
{
    if (!help_begin())
        return skip_all("no folder in /tmp");
    test_ids();
    test_begins_later();
    test_takes_over(-ENOSPC, true);
    test_takes_over(-EBUSY, false);
    test_removed();
    test_replaced();
    test_shed();
    help_end();
    return done();
}
