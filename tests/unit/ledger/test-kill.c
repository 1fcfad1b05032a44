/* A writer is killed with SIGKILL at random moments, 200 rounds from a printed seed:
 * the file is whole after each, its sums agree, and no interval is missing but the one
 * in flight.  A reader in another process runs meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "base/rng.h"
#include "base/units.h"
#include "help.h"
#include "tap.h"

enum { ROUNDS = 200, BOARDS = 2, PART_J = 7 };

/* Writes intervals for ever, rolling up between them; each is told once it is written. */
static void writer(int64_t from, int tell)
{
    struct ledger *l = NULL;
    uw_error err = {{0}};
    int64_t at = from;

    if (ledger_open(&(struct ledger_opts){.path = help_path("k.sqlite"),
                                          .boot_id = BOOT,
                                          .version = "test",
                                          .simulated = true,
                                          .keep = {.booked_ns = 600 * NS_PER_S,
                                                   .minute_ns = 7200 * NS_PER_S},
                                          .utc_ns = T0 + at * 10 * S},
                    &l, &err) != 0 ||
        help_boards(l, BOARDS) < 0)
        _exit(3);
    uint64_t job = ledger_first_job(l);
    if (write(tell, &job, sizeof job) != (ssize_t)sizeof job)
        _exit(4);
    for (;; at++) {
        struct ledger_batch *b = ledger_batch_new();
        struct ledger_job j = help_job(job + (uint64_t)(at % 3), 1000, "anna");
        for (size_t board = 0; board < BOARDS; board++)
            (void)help_interval(b, at, board, j.id, 200000, PART_J, 0.5);
        (void)ledger_add_job(b, &j);
        if (ledger_write(l, b, &err) != 0 || ledger_tidy(l, T0 + at * 10 * S, &err) < 0)
            _exit(5);
        ledger_batch_free(b);
        if (write(tell, &at, sizeof at) != (ssize_t)sizeof at)
            _exit(4);
    }
}

/* One of the file's sums; 0 where there is no file yet. */
#define METER "SELECT ifnull(sum(energy_uj), 0) FROM meter"
#define ENERGY "SELECT ifnull(sum(energy_uj), 0) FROM energy"
#define AN_INTERVAL (BOARDS * PART_J * INT64_C(1000000))
/* Killed while the file was made: the next writer takes that back, a reader may not. */
static bool unborn(void)
{
    return access(help_path("k.sqlite-journal"), F_OK) == 0;
}

static int64_t sum_of(const char *sql)
{
    const char *path = help_path("k.sqlite");
    if (access(path, F_OK) < 0 || unborn() ||
        help_number(path, "SELECT count(*) FROM sqlite_master WHERE name = 'meter'") != 1)
        return 0;
    return help_number(path, sql);
}

static void nap(uint64_t us)
{
    (void)nanosleep(&(struct timespec){0, (long)us * 1000}, NULL);
}

struct state {
    int64_t told;     /* the last interval that the writer told of; -1 none */
    uint64_t top_job; /* no id up to this may come again */
    int64_t have;     /* intervals in the file when the round began */
    int bad;
};

/* One word of the writer; false: it is gone. */
static bool hear(struct state *s, int fd, int64_t *n)
{
    int64_t value = 0;

    if (read(fd, &value, sizeof value) != (ssize_t)sizeof value)
        return false;
    if ((*n)++ > 0) {
        s->told = value;
        return true;
    }
    if ((uint64_t)value <= s->top_job) {
        printf("# job %d comes again\n", (int)value);
        s->bad++;
    }
    s->top_job = (uint64_t)value + 2;
    return true;
}

/* Kill it some time after it has told of some intervals, or before it tells anything. */
static void one_round(struct state *s, struct rng *rng)
{
    int64_t n = 0, words = (int64_t)rng_below(rng, 8);
    int ends[2], status = 0;

    s->have = sum_of(METER) / AN_INTERVAL;
    if (pipe2(ends, O_CLOEXEC) < 0) {
        s->bad++;
        return;
    }
    pid_t pid = fork();
    if (pid == 0)
        writer(s->have, ends[1]);
    (void)close(ends[1]);
    while (n < words && hear(s, ends[0], &n))
        ;
    nap(rng_below(rng, 10000));
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, &status, 0);
    if (!WIFSIGNALED(status)) {
        printf("# the writer ended by itself: %d\n", WEXITSTATUS(status));
        s->bad++;
    }
    while (hear(s, ends[0], &n))
        ;
    (void)close(ends[0]);
}

static void check(struct state *s)
{
    const char *path = help_path("k.sqlite");
    int64_t energy = sum_of(ENERGY), meter = sum_of(METER);
    int64_t n = meter / AN_INTERVAL,
            least = s->told + 1 > s->have ? s->told + 1 : s->have;

    if ((access(path, F_OK) == 0 && !(s->told < 0 && unborn()) &&
         !help_text_is(path, "PRAGMA integrity_check", "ok")) ||
        energy != meter || meter % AN_INTERVAL != 0 || n < least || n > least + 1) {
        printf("# energy %lld, meter %lld, told of %lld\n", (long long)energy,
               (long long)meter, (long long)s->told);
        s->bad++;
    }
}

/* Killed while the file is made: the next run opens it, and keeps nothing aside. */
static void test_birth(struct rng *rng)
{
    int bad = 0;

    for (int i = 0; i < 40; i++) {
        struct ledger *l = NULL;
        uw_error err = {{0}};
        char name[32];
        (void)snprintf(name, sizeof name, "birth%d.sqlite", i);
        pid_t pid = fork();
        if (pid == 0) {
            (void)help_open(name, T0, &l, NULL);
            (void)pause();
        }
        nap(rng_below(rng, 12000));
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        int r = help_open(name, T0 + S, &l, &err);
        if (r != 0)
            printf("# round %d: %d %s\n", i, r, err.text);
        bad += r != 0;
        ledger_close(l);
    }
    is_int(bad, 0, "40 kills while a file is made: the next run opens each");
}

int main(int argc, char **argv)
{
    uint64_t seed = (uint64_t)getpid();
    struct state s = {.told = -1};
    struct rng rng;

    if (argc > 1 && argv[1][0] != '/')
        (void)parse_u64(argv[1], &seed, NULL);
    rng_init(&rng, seed);
    printf("# seed %llu\n", (unsigned long long)seed);
    if (!help_begin())
        return skip_all("no folder in /tmp");
    for (int i = 0; i < ROUNDS && !s.bad; i++) {
        one_round(&s, &rng);
        check(&s);
    }
    ok(s.bad == 0, "%d rounds of SIGKILL: whole, sums agree, nothing told is lost",
       ROUNDS);
    ok(s.told > 100, "%d intervals were written", (int)s.told + 1);
    ok(help_number(help_path("k.sqlite"), "SELECT count(*) FROM energy WHERE res > 0") >
           0,
       "rolled up among them");
    is_int(help_number(help_path("k.sqlite"), "SELECT count(*) FROM run WHERE ended_ms IS"
                                              " NOT NULL"),
           0, "no run ended in order");
    test_birth(&rng);
    help_end();
    return done();
}
