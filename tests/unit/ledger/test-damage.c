/* Ledgers with random bytes in them, 100 of them from a printed seed: opening, writing,
 * rolling up and reporting end with a result; never with a crash, a hang or a file that
 * is gone.
 */
#include <errno.h>
#include <fcntl.h>

#include "base/rng.h"
#include "base/units.h"
#include "help.h"
#include "io/file.h"
#include "io/ledger-report.h"
#include "tap.h"

enum { ROUNDS = 100, HITS = 12 };

static void make(const char *name)
{
    auto_(ledger_close) struct ledger *l = NULL;
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    struct ledger_job job = help_job(1, 1000, "anna");

    (void)help_open(name, T0, &l, NULL);
    (void)help_boards(l, 2);
    for (int64_t i = 0; i < 400; i++)
        (void)help_interval(b, i, (size_t)(i % 2), i % 2 ? 0 : 1, 200000, 100, 0.9);
    (void)ledger_add_job(b, &job);
    (void)ledger_write(l, b, NULL);
}

static void damage(const char *from, const char *to, struct rng *rng)
{
    auto_(mem_free) char *bytes = NULL;
    size_t len = 0;

    if (file_read(from, 1 << 22, &bytes, &len, NULL) < 0)
        return;
    uint64_t hits = 1 + rng_below(rng, HITS);
    for (uint64_t k = 0; k < hits; k++) {
        /* Some of them where the file and its tables begin. */
        uint64_t most = rng_below(rng, 8) == 0 && len > 4096 ? 4096 : len;
        size_t at = (size_t)rng_below(rng, most);
        bytes[at] = (char)rng_u64(rng);
    }
    if (rng_below(rng, 10) == 0)
        len = (size_t)rng_below(rng, len);
    (void)file_write(to, bytes, len, 0600, NULL);
}

static void look(const char *path, unsigned *good, unsigned *bad)
{
    auto_(ledger_close) struct ledger *l = NULL;
    auto_(json_out_free) struct json_out *o = json_out_new();
    struct ledger_query q;
    uw_error err = {{0}};

    ledger_query_init(&q, T0 + DAY);
    int r = ledger_open(&(struct ledger_opts){.path = path, .read_only = true}, &l, &err);
    if (r >= 0)
        r = ledger_report(l, &q, o, &err);
    (void)(r >= 0 ? (*good)++ : (*bad)++);
}

static int on_job(const struct ledger_job *job, const char *boot_id, void *user)
{
    (void)job;
    (void)boot_id;
    (void)user;
    return 0;
}

/* What a daemon does with it; false: it had to give up. */
static int use(const char *name, bool *ret_closed)
{
    struct ledger *l = NULL;
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    struct ledger_sums sums;
    struct ledger_booked had[LEDGER_BOARDS + 1];
    size_t n = 0;
    uw_error err = {{0}};

    int r = help_open(name, T0 + DAY, &l, &err);
    if (r < 0)
        return r;
    (void)help_boards(l, 2);
    (void)ledger_open_jobs(l, on_job, NULL, &err);
    (void)ledger_board_sums(l, 0, 0, &sums, &err);
    (void)ledger_job_energy(l, 1, had, &n, &err);
    (void)help_interval(b, 9000, 0, 0, 0, 100, 1);
    (void)ledger_write(l, b, &err);
    for (int i = 0; i < 50 && ledger_tidy(l, T0 + 30 * DAY, &err) == 1; i++)
        ;
    ledger_close(l);
    *ret_closed = true;
    return r;
}

/* The end of a run over a damaged file is no orderly one: the next run looks at it. */
static void test_found_later(void)
{
    struct ledger *l = NULL;
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    char junk[4096];
    uw_error err = {{0}};
    int r = 0;

    make("later.sqlite");
    int64_t page = help_number(help_path("later.sqlite"),
                               "SELECT rootpage FROM sqlite_master WHERE name = "
                               "'energy_by_age'");
    int fd = open(help_path("later.sqlite"), O_WRONLY);
    memset(junk, 0x5a, sizeof junk);
    (void)!pwrite(fd, junk, sizeof junk, (page - 1) * 4096);
    (void)close(fd);
    is_int(help_open("later.sqlite", T0 + S, &l, &err), 0,
           "an orderly end was trusted %s", err.text);
    (void)help_boards(l, 2);
    for (int64_t i = 0; i < 50 && r == 0; i++) {
        (void)help_interval(b, i, 0, 0, 0, 100, 1);
        r = ledger_write(l, b, &err);
    }
    is_int(r, -EBADMSG, "writing meets the damage: %s", err.text);
    ledger_close(l);
    is_int(help_open("later.sqlite", T0 + 2 * S, &l, &err), LEDGER_ASIDE,
           "the next run keeps it aside: %s", err.text);
    ledger_close(l);
}

int main(int argc, char **argv)
{
    uint64_t seed = (uint64_t)getpid();
    unsigned good = 0, bad = 0, aside = 0, opened = 0, refused = 0, lost = 0;
    struct rng rng;

    if (argc > 1 && argv[1][0] != '/')
        (void)parse_u64(argv[1], &seed, NULL);
    rng_init(&rng, seed);
    printf("# seed %llu\n", (unsigned long long)seed);
    if (!help_begin())
        return skip_all("no folder in /tmp");
    make("whole.sqlite");
    for (int i = 0; i < ROUNDS; i++) {
        char name[32];
        bool closed = false;
        (void)snprintf(name, sizeof name, "d%d.sqlite", i);
        damage(help_path("whole.sqlite"), help_path(name), &rng);
        look(help_path(name), &good, &bad);
        int r = use(name, &closed);
        aside += r == LEDGER_ASIDE;
        opened += r == 0;
        refused += r < 0;
        lost += access(help_path(name), F_OK) < 0;
    }
    ok(good + bad == ROUNDS, "%u reports, %u refused", good, bad);
    ok(bad > 0 && good > 0, "damage of both kinds");
    ok(aside > 0, "%u kept aside, %u used, %u refused", aside, opened, refused);
    is_int(lost, 0, "a file is always there");
    test_found_later();
    help_end();
    return done();
}
