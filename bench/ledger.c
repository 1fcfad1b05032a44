/* A simulated year of a node's ledger, written as the daemon writes it but faster: how
 * large it gets, how long the slowest step of rolling up blocks, how long reports take,
 * and whether the sums still hold.  Prints JSON; exits 1 where a bound is broken.
 *
 *     ledger [DAYS [BOARDS [FOLDER]]]      365 8; in FOLDER the file stays
 *
 * Every board has a job of two to ten hours at a time with pauses between them, a fifth
 * of them shared by two jobs; each job begins with a search (40 caps, a ramp of 20
 * steps to each) and then holds its cap.  All but the last 20 days are booked in steps
 * of 300 s instead of 10 s: of them only rows by the hour are left, which are the same.
 * Each row has emissions by the average and the marginal plant, and money; each sixth
 * hour the average is estimated; each quarter of an hour is revised once.
 *
 * Reports of the whole time are made without figures beside what is booked, then with a
 * PUE, embodied grams and a contract of 1 kWh for each hour.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "base/units.h"
#include "core/carbon/accounting.h"
#include "io/json.h"
#include "io/ledger-report.h"
#include "io/ledger.h"
#include "io/loop.h"

enum {
    SIZE_MAX_MB = 200,
    INTERVAL_S = 10,
    SEARCH_CAPS = 40,
    RAMP_STEPS = 20,
    FINE_DAYS = 20,
    COARSE = 30
};
#define S INT64_C(1000000000)
#define T0 (INT64_C(1767225600) * S) /* 2026-01-01 */

struct board {
    uint64_t job, second; /* 0: idle; second: a job that shares the board */
    int64_t until;        /* end of the current interval */
    int64_t began;
    uint32_t cap_mw;
    double meter_j;
};

struct year {
    struct loop *loop; /* for its clock */
    struct ledger *l;
    struct ledger_batch *rows;
    struct board board[LEDGER_BOARDS];
    size_t n_boards;
    struct rng rng;
    uint64_t next_job, next_claim, n_rows, steps, n_jobs;
    uint64_t slowest_ns, slowest_write_ns;
    int64_t largest;
    const char *path;
    uw_error err;
};

static int64_t bytes_of(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    char name[300];
    int64_t sum = 0;

    for (size_t i = 0; i < n_elements(ends); i++) {
        struct stat st;
        (void)snprintf(name, sizeof name, "%s%s", path, ends[i]);
        if (stat(name, &st) == 0)
            sum += st.st_size;
    }
    return sum;
}

static int put_job(struct year *y, size_t at, uint64_t id, int64_t i, bool ends)
{
    struct ledger_label labels[] = {{"project", id % 3 ? "language" : "vision"},
                                    {"slurm.partition", "a100"},
                                    {"slurm.account", "group-17"}};
    char name[64];

    (void)snprintf(name, sizeof name, "slurm:%llu", (unsigned long long)(4000000 + id));
    return ledger_add_job(
        y->rows,
        &(struct ledger_job){.id = id,
                             .source = "registered",
                             .name = name,
                             .user = id % 5 ? "anna.miller" : "ben.smith",
                             .uid = (uid_t)(1000 + id % 5),
                             .label = labels,
                             .n_labels = n_elements(labels),
                             .began_utc_ns = T0 + y->board[at].began * INTERVAL_S * S,
                             .ended_utc_ns = ends ? T0 + i * INTERVAL_S * S : 0,
                             .boards = UINT64_C(1) << at,
                             .pid = 4711,
                             .pid_start = 99887766,
                             .goal = "edp",
                             .cls = "default",
                             .cap_mw = y->board[at].cap_mw,
                             .steps = (uint64_t)(i - y->board[at].began) * 33,
                             .saved_known = true,
                             .saved = 0.18,
                             .saved_half = 0.012,
                             .slowdown = 1.04,
                             .slowdown_half = 0.003,
                             .saved_j = 123456.7,
                             .saved_half_j = 2345.6});
}

/* A job's search: a claim, and a cap in force for each step of the ramp. */
static int put_search(struct year *y, size_t at, int64_t i)
{
    int64_t now = T0 + i * INTERVAL_S * S;
    struct ledger_claim c = {.id = y->next_claim++,
                             .board = at,
                             .made_utc_ns = now,
                             .until_utc_ns = LEDGER_FOREVER,
                             .job = y->board[at].job,
                             .kind = "soft",
                             .mw = 200000,
                             .overwrites = true,
                             .who = "search of job",
                             .why = "measuring 200 W"};
    int r = ledger_add_claim(y->rows, &c);

    for (int k = 0; r >= 0 && k < SEARCH_CAPS * RAMP_STEPS; k++)
        r = ledger_add_cap(y->rows,
                           &(struct ledger_cap){now + k * S, at, 200000,
                                                (uint32_t)(200000 + k), "claim", c.id});
    if (r >= 0)
        r = ledger_add_claim_end(
            y->rows, &(struct ledger_claim_end){c.id, at, now + 3600 * S, "withdrawn"});
    return r;
}

/* The next job or pause of the board. */
static int turn(struct year *y, size_t at, int64_t i)
{
    struct board *b = &y->board[at];
    int r = 0;

    if (b->job) {
        r = put_job(y, at, b->job, i, true);
        if (r >= 0 && b->second)
            r = put_job(y, at, b->second, i, true);
        b->job = b->second = 0;
        b->until = i + 6 + (int64_t)rng_below(&y->rng, 360);
        return r;
    }
    b->began = i;
    b->job = y->next_job++;
    b->second = rng_below(&y->rng, 5) == 0 ? y->next_job++ : 0;
    b->until = i + 720 + (int64_t)rng_below(&y->rng, 2880);
    b->cap_mw = 150000 + (uint32_t)rng_below(&y->rng, 150) * 1000;
    y->n_jobs += b->second ? 2 : 1;
    r = put_job(y, at, b->job, i, false);
    if (r >= 0 && b->second)
        r = put_job(y, at, b->second, i, false);
    return r < 0 ? r : put_search(y, at, i);
}

/* Intensities and prices that change every hour. */
static void put_charges(int64_t i, struct ledger_energy *e)
{
    static const struct ledger_factor carbon[] = {
        {"carbon", "electricitymaps DE", "g/kWh", false},
        {"carbon", "electricitymaps DE", "g/kWh", true}};
    static const struct ledger_factor marginal = {"carbon.marginal", "watttime DE",
                                                  "g/kWh", false},
                                      price = {"price", "file /srv/market/day.csv",
                                               "EUR/kWh", false};
    int64_t hour = i * INTERVAL_S / 3600, uj = ledger_uj(e->energy_j);
    double kwh = (double)uj / 3.6e12, swing = sin((double)hour * 0.26);

    e->charge[LEDGER_CO2] = (struct ledger_amount){
        &carbon[hour % 6 == 0], llround(kwh * 1e3 * (350 + 150 * swing)), uj};
    e->charge[LEDGER_MARGINAL] =
        (struct ledger_amount){&marginal, llround(kwh * 1e3 * (600 + 100 * swing)), uj};
    e->charge[LEDGER_COST] =
        (struct ledger_amount){&price, llround(kwh * 1e6 * (0.08 + 0.1 * swing)), uj};
}

/* step: the number of intervals that one row represents. */
static int put_energy(struct year *y, size_t at, int64_t i, int64_t step)
{
    struct board *b = &y->board[at];
    double power_w = (b->job ? 250 : 60) * (1 + 0.05 * rng_normal(&y->rng));
    double j = fabs(power_w) * INTERVAL_S * (double)step;
    double parts[3] = {b->second ? 0.6 * j : j, b->second ? 0.3 * j : 0,
                       b->second ? 0.1 * j : 0};
    uint64_t jobs[3] = {b->job, b->second, 0};
    int64_t begin = T0 + i * INTERVAL_S * S, end = begin + step * INTERVAL_S * S;
    bool search = b->job && i - b->began < (int64_t)SEARCH_CAPS * 3;
    int r = 0;

    for (int k = 0; r >= 0 && k < 3; k++) {
        if (parts[k] <= 0)
            continue;
        struct ledger_energy e = {
            .begin_utc_ns = begin,
            .end_utc_ns = end,
            .board = at,
            .kind = jobs[k]  ? LEDGER_JOB
                    : k == 2 ? LEDGER_UNATTRIBUTED
                             : LEDGER_IDLE,
            .job = jobs[k],
            .phase = b->job && i % 50 == 0,
            .cap_mw = !b->job  ? 400000
                      : search ? 150000 + (uint32_t)((i - b->began) / 3) * 2000
                               : b->cap_mw,
            .energy_j = parts[k],
            .half_j = parts[k] * 0.01,
            .method = LEDGER_COUNTED,
            .waste = jobs[k] && i / 180 % 5 == 0 ? WASTE_HELD : WASTE_WORKING,
            .simulated = true};
        put_charges(i, &e);
        r = ledger_add_energy(y->rows, &e);
    }
    if (r >= 0)
        r = ledger_add_meter(
            y->rows, &(struct ledger_meter){begin, end, at, b->meter_j, b->meter_j + j});
    b->meter_j += j;
    return r;
}

/* A revised intensity of the hour, a little higher: a row for each quarter, board and
 * job.
 */
static int revise_hour(struct year *y, int64_t hour)
{
    const struct ledger_value v = {T0 + hour * 3600 * S, T0 + (hour + 2) * 3600 * S,
                                   llround((355 + 150 * sin((double)hour * 0.26)) * 1e6),
                                   false};
    int r = 0;

    for (int64_t quarter = 0; r >= 0 && quarter < 4; quarter++)
        r = ledger_add_revision(
            y->rows, &(struct ledger_revision){.charge = LEDGER_CO2,
                                               .signal = "carbon",
                                               .source = "electricitymaps DE",
                                               .unit = "g/kWh",
                                               .begin_utc_ns = T0 + hour * 3600 * S +
                                                               quarter * 900 * S,
                                               .utc_ns = T0 + (hour + 1) * 3600 * S,
                                               .value = &v,
                                               .n = 1});
    return r;
}

static int write_hour(struct year *y, int64_t hour, int64_t step)
{
    enum { PER_HOUR = 3600 / INTERVAL_S };
    int r = 0;

    for (int64_t i = hour * PER_HOUR; r >= 0 && i < (hour + 1) * PER_HOUR; i += step) {
        for (size_t at = 0; r >= 0 && at < y->n_boards; at++) {
            if (i >= y->board[at].until)
                r = turn(y, at, i);
            if (r >= 0)
                r = put_energy(y, at, i, step);
        }
    }
    if (r >= 0)
        r = revise_hour(y, hour);
    uint64_t began = loop_now_ns(y->loop);
    if (r >= 0)
        r = ledger_write(y->l, y->rows, &y->err);
    uint64_t took = loop_now_ns(y->loop) - began;
    y->slowest_write_ns = took > y->slowest_write_ns ? took : y->slowest_write_ns;
    y->n_rows += ledger_batch_rows(y->rows);
    ledger_batch_clear(y->rows);
    return r;
}

static int tidy(struct year *y, int64_t hour)
{
    int r = 1;

    while (r == 1) {
        uint64_t began = loop_now_ns(y->loop);
        r = ledger_tidy(y->l, T0 + (hour + 1) * 3600 * S, &y->err);
        uint64_t took = loop_now_ns(y->loop) - began;
        y->slowest_ns = took > y->slowest_ns ? took : y->slowest_ns;
        y->steps++;
    }
    int64_t bytes = bytes_of(y->path);
    y->largest = bytes > y->largest ? bytes : y->largest;
    return r;
}

static int write_year(struct year *y, int64_t days)
{
    static const struct ledger_board board = {NULL, "Simulated board", NULL};
    struct ledger_board boards[LEDGER_BOARDS];
    char uuid[LEDGER_BOARDS][48];

    for (size_t i = 0; i < y->n_boards; i++) {
        (void)snprintf(uuid[i], sizeof uuid[i], "GPU-00000000-0000-0000-0000-%012u",
                       (unsigned)i);
        boards[i] = board;
        boards[i].uuid = uuid[i];
    }
    int r = ledger_open(&(struct ledger_opts){.path = y->path,
                                              .simulated = true,
                                              .boot_id = "bench",
                                              .version = "bench",
                                              .utc_ns = T0},
                        &y->l, &y->err);
    if (r >= 0)
        r = ledger_boards(y->l, boards, y->n_boards, &y->err);
    for (int64_t hour = 0; r >= 0 && hour < days * 24; hour++) {
        r = write_hour(y, hour, hour < (days - FINE_DAYS) * 24 ? COARSE : 1);
        if (r >= 0)
            r = tidy(y, hour);
    }
    return r;
}

/* Read from the text: parsing the whole document would need more memory than a daemon
 * uses.
 */
static int read_difference(const char *text, double *ret, uw_error *err)
{
    static const char key[] = "\"difference\":";
    const char *at = strstr(text, key);
    char number[40];

    if (!at)
        return -1;
    at += sizeof key - 1;
    (void)snprintf(number, sizeof number, "%.*s", (int)strcspn(at, ",}"), at);
    return parse_double(number, ret, err);
}

/* A contract for each hour. */
static struct accounting *new_figures(int64_t days)
{
    auto_(accounting_free) struct accounting *a = calloc(1, sizeof *a);
    size_t n = (size_t)days * 24;

    if (!a || accounting_pue(a, "1.25", NULL) < 0 ||
        accounting_embodied(a, "Simulated board", 3.4, "bench", NULL) < 0)
        return NULL;
    a->contract = calloc(n, sizeof *a->contract);
    if (!a->contract)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        int64_t from_ms = T0 / 1000000 + (int64_t)i * 3600000;
        a->contract[i] = (struct market_contract){.from_ms = from_ms,
                                                  .to_ms = from_ms + 3600000,
                                                  .kind = MARKET_ENERGY,
                                                  .amount = 1,
                                                  .g_kwh = 20,
                                                  .origin = "solar of this hour"};
    }
    a->n_contracts = n;
    return take(a);
}

/* A report of the whole time by `by`; *ret_off: difference between its sum and the
 * meters.
 */
static int report(struct year *y, const char *by, int64_t days,
                  const struct accounting *figures, double *ret_s, double *ret_off)
{
    auto_(json_out_free) struct json_out *o = json_out_new();
    auto_(mem_free) char *text = NULL;
    struct ledger_query q;
    uint64_t began = loop_now_ns(y->loop);

    ledger_query_init(&q, T0 + days * 86400 * S);
    q.accounting = figures;
    int r = ledger_query_set(&q, "by", by, T0, &y->err);
    if (r >= 0)
        r = ledger_report(y->l, &q, o, &y->err);
    if (r >= 0)
        r = json_out_string(o, &text, &y->err);
    *ret_s = s_of_ns(loop_now_ns(y->loop) - began);
    return r < 0 ? r : read_difference(text, ret_off, &y->err);
}

/* All reports; figures NULL: without accounting figures. */
static int reports(struct year *y, int64_t days, const struct accounting *figures,
                   struct json_out *o, double *ret_off)
{
    static const char *const by[] = {"job",     "user",      "gpu",      "day",
                                     "group",   "project",   "class",    "label:project",
                                     "account", "partition", "user,day", "job,day"};
    struct rusage usage;
    int r = 0;

    json_out_object(o, figures ? "report_with_figures_s" : "report_s");
    for (size_t i = 0; r >= 0 && i < n_elements(by); i++) {
        double s = 0;
        r = report(y, by[i], days, figures, &s, ret_off);
        json_out_double(o, by[i], s);
    }
    json_out_end(o);
    (void)getrusage(RUSAGE_SELF, &usage);
    json_out_double(
        o, figures ? "memory_peak_reports_with_figures_mib" : "memory_peak_reports_mib",
        (double)usage.ru_maxrss / 1024);
    return r;
}

static int finish(struct year *y, int64_t days, double wall_s)
{
    auto_(accounting_free) struct accounting *figures = new_figures(days);
    auto_(json_out_free) struct json_out *o = json_out_new();
    struct rusage usage;
    double off = 1;

    (void)getrusage(RUSAGE_SELF, &usage);
    double writing_mib = (double)usage.ru_maxrss / 1024;
    json_out_object(o, NULL);
    json_out_bool(o, "simulated", true);
    json_out_int(o, "days", days);
    json_out_int(o, "boards", (int64_t)y->n_boards);
    json_out_int(o, "jobs", (int64_t)y->n_jobs);
    json_out_int(o, "rows_written", (int64_t)y->n_rows);
    json_out_double(o, "wall_s", wall_s);
    json_out_int(o, "steps", (int64_t)y->steps);
    json_out_double(o, "slowest_step_ms", (double)y->slowest_ns * 1e-6);
    json_out_double(o, "slowest_hour_written_ms", (double)y->slowest_write_ns * 1e-6);
    json_out_double(o, "memory_peak_writing_mib", writing_mib);
    int r = figures ? reports(y, days, NULL, o, &off) : -ENOMEM;
    if (r >= 0)
        r = reports(y, days, figures, o, &off);
    json_out_double(o, "difference", off);
    double mb = (double)y->largest * 1e-6;
    json_out_double(o, "largest_mb", mb);
    ledger_close(take(y->l));
    json_out_double(o, "size_mb", (double)bytes_of(y->path) * 1e-6);
    json_out_end(o);
    if (r >= 0)
        r = json_out_write(o, "-", &y->err);
    if (r >= 0 && (mb > SIZE_MAX_MB || !(off < 1e-6 && off > -1e-6))) {
        (void)snprintf(y->err.text, sizeof y->err.text, "%.1f MB, sums off by %.2g", mb,
                       off);
        r = -1;
    }
    return r;
}

int main(int argc, char **argv)
{
    uint64_t days = 365, boards = 8;
    char dir[200], path[256];
    struct year y = {.next_job = 1, .next_claim = 1, .path = path};

    if ((argc > 1 && parse_u64(argv[1], &days, &y.err) < 0) ||
        (argc > 2 && parse_u64(argv[2], &boards, &y.err) < 0) || boards > LEDGER_BOARDS) {
        (void)fprintf(stderr, "ledger: [DAYS [BOARDS [FOLDER]]]\n");
        return 2;
    }
    (void)snprintf(dir, sizeof dir, "%s", argc > 3 ? argv[3] : "/tmp/uw-bench-XXXXXX");
    if (argc <= 3 && !mkdtemp(dir))
        return 1;
    (void)snprintf(path, sizeof path, "%s/ledger.sqlite", dir);
    y.n_boards = boards;
    rng_init(&y.rng, 1);
    y.rows = ledger_batch_new();
    int r = loop_new_real((struct loop_clock){0, 1}, &y.loop, &y.err);
    if (r >= 0 && y.rows) {
        uint64_t began = loop_now_ns(y.loop);
        r = write_year(&y, (int64_t)days);
        if (r >= 0)
            r = finish(&y, (int64_t)days, s_of_ns(loop_now_ns(y.loop) - began));
    }
    if (r < 0)
        (void)fprintf(stderr, "ledger: %s\n", y.err.text);
    ledger_close(y.l);
    ledger_batch_free(y.rows);
    loop_free(y.loop);
    if (argc <= 3) {
        (void)unlink(path);
        (void)rmdir(dir);
    }
    return r < 0 ? 1 : 0;
}
