/* A long time of a whole node of 8 boards in virtual time: at rest mostly, jobs, searches
 * and claims come and go, the driver is loaded anew each week.  At each midnight nothing
 * is left of the day: originals, no claims, no jobs, and memory, descriptors and the
 * ledger's growth as they were after the first day.
 *
 * Rows by the minute are kept for two weeks: until then the ledger grows.
 *
 * Usage: test-node-soak [DAYS [SEED]]
 */
#include <malloc.h>
#include <time.h>

#pragma GCC diagnostic ignored "-Wunused-function" /* it leaves out what kills */
#include "open-files.h"
#include "simulation/chaos-scene.h"

/* A sanitizer has a heap of its own, which keeps what was freed. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { MEASURED = false };
#else
enum { MEASURED = true };
#endif

enum {
    SOAK_BOARDS = 8,
    JOBS_A_DAY = 6,
    DAY_S = 86400,
    SETTLED_DAYS = 17,
    SLACK_KIB = 128,
    RINGS_KIB = 1024 /* by which samples of searches make the meters' rings grow */
};

struct levels {
    size_t heap, files;
    double rss_kib, ledger_kib;
};

static double rss_kib(void)
{
    unsigned long size = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");

    if (f && fscanf(f, "%lu %lu", &size, &resident) != 2)
        resident = 0;
    if (f)
        (void)fclose(f);
    return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1024;
}

static double ledger_kib(const struct round *r)
{
    static const char *const ends[] = {"", "-wal"};
    double kib = 0;
    struct stat st;

    for (size_t i = 0; i < n_elements(ends); i++) {
        char path[sizeof r->config.ledger.path + 8];
        (void)snprintf(path, sizeof path, "%s%s", r->config.ledger.path, ends[i]);
        if (stat(path, &st) == 0)
            kib += (double)st.st_size / 1024;
    }
    return kib;
}

static struct levels levels(const struct round *r)
{
    /* SQLite's cache of pages fills and empties. */
    size_t cache = (size_t)sqlite3_memory_used();
    return (struct levels){.heap = (mallinfo2().uordblks - cache) >> 10,
                           .files = open_files(),
                           .rss_kib = rss_kib(),
                           .ledger_kib = ledger_kib(r)};
}

static void a_claim(struct round *r)
{
    char name[24];
    struct node_claim ask = {.board = name,
                             .kind = below(r, 2) ? CLAIM_HARD : CLAIM_NAMED,
                             .cap = {.mw = (uint32_t)(150 + below(r, 100)) * 1000},
                             .ttl_ns = ns_of_s(60 + (double)below(r, 1800)),
                             .why = "a day's work"};

    (void)snprintf(name, sizeof name, "%zu", (size_t)below(r, r->n_boards));
    if (node_claim(r->node, &root, &ask, NULL, NULL) < 0)
        bad(r, "a claim is refused");
}

/* A job of 10 to 40 minutes on one board, a claim or two meanwhile; then rest. */
static void a_job(struct round *r)
{
    struct run *run = &r->run[below(r, 2)];
    double s = 600 + (double)below(r, 1800),
           rest = (double)(DAY_S - 3600) / JOBS_A_DAY - s;

    begin_run(r, run);
    a_claim(r);
    pass(r, s / 2);
    a_claim(r);
    pass(r, s / 2);
    end_run(r, run);
    pass(r, rest);
}

static void at_midnight(struct round *r, unsigned day)
{
    const struct node_view *v = node_look(r->node);
    double worst = 0;

    if (v->n_jobs)
        bad(r, "day %u: %zu jobs are left", day, v->n_jobs);
    for (size_t i = 0; i < v->n_boards; i++) {
        const struct view_board *b = &v->board[i];
        double sum = b->attributed_j + b->idle_j + b->unattributed_j;
        worst = fmax(worst, fabs(sum - b->energy_j) / fmax(b->energy_j, 1));
        if (b->cap.claims->n)
            bad(r, "day %u: board %zu has claims", day, i);
        if (!is_theirs(r, limit_of(r, i)))
            bad(r, "day %u: board %zu is at %u mW", day, i, limit_of(r, i));
    }
    if (v->n_boards != SOAK_BOARDS || worst > 1e-3)
        bad(r, "day %u: %zu boards, parts off by %.2g", day, v->n_boards, worst);
    if (v->ledger_failures)
        bad(r, "day %u: rows were not written", day);
}

static void say_speed(unsigned days, clock_t began)
{
    double s = (double)(clock() - began) / CLOCKS_PER_SEC;

    printf("# %.4f board-years a second of processor\n", SOAK_BOARDS * days / 365.0 / s);
}

static void live(struct round *r, unsigned days)
{
    clock_t began = clock();
    struct levels first = {0}, settled = {0}, most = {0}, fresh = {0}, now = {0};

    for (unsigned day = 1; day <= days && !r->bad[0]; day++) {
        for (int i = 0; i < JOBS_A_DAY; i++)
            a_job(r);
        if (day % 7 == 3) {
            fault(r, "reload");
            r->may_default = true;
        }
        pass(r, 3600);
        at_midnight(r, day);
        now = levels(r);
        if (day == 1)
            first = most = now;
        if (day <= SETTLED_DAYS)
            settled = now;
        most.heap = now.heap > most.heap ? now.heap : most.heap;
        if (day % 7 == 3 && now.heap > fresh.heap) /* the meters are new */
            fresh = now;
        most.files = now.files > most.files ? now.files : most.files;
        if (getenv("CHAOS_LOG"))
            printf(
                "# day %u: heap %zu KiB, resident %.0f KiB, %zu files, ledger %.0f KiB\n",
                day, now.heap, now.rss_kib, now.files, now.ledger_kib);
    }
    say_speed(days, began);
    ok(!r->bad[0], "%u days: each midnight nothing is left of the day %s", days, r->bad);
    ok(!MEASURED ||
           (most.heap <= first.heap + RINGS_KIB && fresh.heap <= first.heap + SLACK_KIB &&
            now.rss_kib <= first.rss_kib + 1024),
       "memory: %zu KiB after the first day, %zu KiB at most, with new meters %zu KiB "
       "(resident %.0f and %.0f KiB)",
       first.heap, most.heap, fresh.heap, first.rss_kib, now.rss_kib);
    ok(most.files <= first.files && now.files == first.files,
       "descriptors: %zu after the first day, %zu at the end", first.files, now.files);
    double daily = days > SETTLED_DAYS ? (now.ledger_kib - settled.ledger_kib) /
                                             (double)(days - SETTLED_DAYS)
                                       : 0;
    ok(now.ledger_kib < 64 * 1024 && daily < 200.0 * 1024 / 365,
       "ledger: %.0f KiB at the end, %.0f KiB a day after %d days", now.ledger_kib, daily,
       SETTLED_DAYS);
}

int main(int argc, char **argv)
{
    static struct round r;
    uint64_t days = getenv("UNDERWATT_SANITIZED") ? 1 : 3, seed = 1;

    if ((argc > 1 && parse_u64(argv[1], &days, NULL)) ||
        (argc > 2 && parse_u64(argv[2], &seed, NULL)))
        return 2;
    log_set_level((enum log_level)0);
    if (ok(open_round(&r, seed, SOAK_BOARDS), "a node of %d boards, seed %" PRIu64,
           SOAK_BOARDS, seed)) {
        begin_life(&r);
        live(&r, (unsigned)days);
        kill_node(&r);
        ok(!r.bad[0], "its ledger is sound %s", r.bad);
    }
    close_round(&r);
    return done();
}
