/* Rows of a report by each key: their sums are the whole in microjoules and milligrams,
 * savings are spread over what is shown, filters show some of the jobs.
 */
#include <errno.h>
#include <grp.h>
#include <math.h>
#include <pwd.h>

#include "help-json.h"
#include "help.h"
#include "io/json.h"
#include "io/ledger-report.h"
#include "tap.h"

enum { JOBS = 12, DAYS = 3, MANY = 5100 };

static const struct ledger_factor grid = {"carbon", "grid", "g/kWh", false},
                                  plant = {"carbon.marginal", "plant", "g/kWh", false},
                                  market = {"price", "market", "EUR/kWh", false};

/* Facts of job `id`: of several users, projects, accounts … and some without one. */
static void put_job(struct ledger_batch *b, uint64_t id)
{
    static const char *const partitions[] = {"a100", "v100,a100", "", "h100"};
    struct ledger_label label[6];
    size_t n = 0;
    char array[8];
    struct ledger_job job = help_job(id, id % 3 ? (uid_t)(61000 + id % 3) : 0,
                                     id % 3 == 1   ? "anna"
                                     : id % 3 == 2 ? "ben"
                                                   : "root");

    (void)snprintf(array, sizeof array, "%u", (unsigned)(id / 4));
    if (id % 4 == 0)
        label[n++] = (struct ledger_label){"project", id % 8 ? "vision" : "language"};
    if (id % 4 <= 1)
        label[n++] = (struct ledger_label){"slurm.account", "chem"};
    if (id % 5)
        label[n++] = (struct ledger_label){"slurm.qos", id % 2 ? "high" : "low"};
    if (id % 6)
        label[n++] = (struct ledger_label){"slurm.array_job", array};
    label[n++] = (struct ledger_label){"slurm.partition", partitions[id % 4]};
    if (id % 2)
        label[n++] = (struct ledger_label){"team", "=x,\"y"};
    job.label = label;
    job.n_labels = n;
    job.source = id == 1 ? "run" : "registered"; /* whose labels are no scheduler's */
    job.cls = id % 3 ? "batch" : NULL;
    job.saved_known = id % 2;
    job.saved_j = 1000.0 * (double)id;
    job.saved_half_j = 100.0 * (double)id;
    (void)ledger_add_job(b, &job);
}

/* Each job on each day: an odd energy, covered in part on some days. */
static void put_energy(struct ledger_batch *b, uint64_t id, int64_t day)
{
    int64_t begin = T0 + day * DAY + (int64_t)id * 600 * S;
    struct ledger_energy e = {.begin_utc_ns = begin,
                              .end_utc_ns = begin + 10 * S,
                              .board = id % 2,
                              .kind = LEDGER_JOB,
                              .job = id,
                              .energy_j =
                                  1000.000001 * (double)(id + 1) + 0.333333 * (double)day,
                              .half_j = 1,
                              .method = LEDGER_COUNTED,
                              .simulated = true};
    int64_t uj = ledger_uj(e.energy_j);

    if ((id + (uint64_t)day) % 4)
        e.charge[LEDGER_CO2] =
            (struct ledger_amount){&grid, 7777 + (int64_t)id, uj - (int64_t)id};
    if (day)
        e.charge[LEDGER_MARGINAL] = (struct ledger_amount){&plant, -13 * day, uj / 2};
    e.charge[LEDGER_COST] = (struct ledger_amount){&market, 1234567 + day, uj};
    (void)ledger_add_energy(b, &e);
    e = (struct ledger_energy){.begin_utc_ns = begin,
                               .end_utc_ns = begin + 10 * S,
                               .board = id % 2,
                               .kind = id % 3 ? LEDGER_IDLE : LEDGER_UNATTRIBUTED,
                               .energy_j = 10.000003,
                               .method = LEDGER_COUNTED,
                               .simulated = true};
    (void)ledger_add_energy(b, &e);
}

static void fill(struct ledger *l)
{
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    uw_error err = {{0}};

    for (uint64_t id = 1; id <= JOBS; id++) {
        put_job(b, id);
        for (int64_t day = 0; day < DAYS; day++)
            put_energy(b, id, day);
    }
    is_int(ledger_write(l, b, &err), 0, "jobs of three days %s", err.text);
}

/* ---- asking ---- */

struct got {
    struct json *doc;
    const struct json_value *root, *rows, *jobs;
};

/* args: "by=user", "from=…", "own=UID" …, NULL at the end. */
static int get(struct ledger *l, const char *const *args, struct got *ret)
{
    auto_(json_out_free) struct json_out *o = json_out_new();
    auto_(mem_free) char *text = NULL;
    struct ledger_query q;
    uw_error err = {{0}};
    char key[20];
    int r = 0;

    *ret = (struct got){0};
    ledger_query_init(&q, T0 + 100 * DAY);
    for (; r == 0 && *args; args++) {
        size_t n = strcspn(*args, "=");
        (void)snprintf(key, sizeof key, "%.*s", (int)n, *args);
        if (strcmp(key, "own") == 0) { /* whom the daemon shows his own jobs alone */
            q.one_user = true;
            q.uid = (uid_t)atoi(*args + n + 1);
            continue;
        }
        r = ledger_query_set(&q, key, *args + n + 1, T0, &err);
    }
    if (r >= 0)
        r = ledger_report(l, &q, o, &err);
    if (r >= 0)
        r = json_out_string(o, &text, &err);
    if (r >= 0)
        r = json_read("report", text, strlen(text), &ret->doc, &err);
    if (r < 0) {
        printf("# %s\n", err.text);
        return r;
    }
    ret->root = json_root(ret->doc);
    ret->rows = json_get(ret->root, "rows");
    ret->jobs = json_get(ret->root, "jobs");
    return 0;
}
#define GET(l, ret, ...) get(l, (const char *const[]){__VA_ARGS__, NULL}, ret)

static const char *text(const struct json_value *v, const char *key)
{
    const char *t = json_as_text(json_get(v, key));
    return t ? t : "(none)";
}

/* The sum of a column in its whole units; what is unknown is in no sum. */
static int64_t sum(const struct json_value *rows, const char *key, double unit)
{
    int64_t ret = 0;

    for (size_t i = 0; i < json_count(rows); i++) {
        double v = number(json_at(rows, i), key);
        ret += isnan(v) ? 0 : llround(v / unit);
    }
    return ret;
}

/* ---- sums ---- */

static const struct {
    const char *by;
    size_t rows;
} keys[] = {
    {"by=job", JOBS},
    {"by=user", 3},
    {"by=group", 2},
    {"by=project", 4},
    {"by=class", 2},
    {"by=partition", 4},
    {"by=account", 2},
    {"by=qos", 3},
    {"by=array", 4},
    {"by=label:team", 2},
    {"by=day", DAYS},
    {"by=user,day", 3 * DAYS},
    {"by=day,user", 3 * DAYS},
    {"by=job,day", (size_t)JOBS *DAYS},
    {"by=project,partition", 5},
    {"by=label:team,qos", 4},
};

/* The microjoules, milligrams and millionths of the file itself. */
static void sums_are(struct ledger *l, const char *path, const char *by, size_t rows)
{
#define WHERE " FROM energy WHERE kind = 1"
    static const struct {
        const char *key, *sql;
        double unit;
    } columns[] = {{"half_j", "SELECT sum(half_uj)" WHERE, 1e-6},
                   {"co2_g", "SELECT sum(co2_mg)" WHERE, 1e-3},
                   {"marginal_g", "SELECT sum(marginal_mg)" WHERE, 1e-3},
                   {"money", "SELECT sum(cost)" WHERE, 1e-6}};
    bool day = strcmp(by, "by=day") == 0;
    int64_t all = help_number(path, "SELECT sum(energy_uj)" WHERE);
    struct got g;

    if (!ok(GET(l, &g, by) == 0, "%s", by))
        return;
    is_int(json_count(g.rows), rows, "%s: %zu rows", by, rows);
    is_int(sum(g.rows, day ? "attributed_j" : "energy_j", 1e-6), all,
           "%s: the rows are the whole, in microjoules", by);
    is_int(llround(number(g.jobs, "energy_j") * 1e6), all, "%s: so is their sum", by);
    for (size_t i = 0; !day && i < n_elements(columns); i++)
        is_int(sum(g.rows, columns[i].key, columns[i].unit),
               help_number(path, columns[i].sql), "%s: %s", by, columns[i].key);
    is_int(llround(number(json_get(g.root, "totals"), "attributed_j") * 1e6), all,
           "%s: the boards' sum", by);
    static const char *const saved[] = {
        "saved_j",     "saved_half_j",     "saved_co2_g",     "saved_co2_half_g",
        "saved_money", "saved_money_half", "saved_marginal_g"};
    static const double want[] = {36000, 3600};
    for (size_t i = 0; i < n_elements(saved); i++) {
        double rows_sum = 0, v = number(g.jobs, saved[i]);
        for (size_t k = 0; k < json_count(g.rows); k++)
            rows_sum += isnan(number(json_at(g.rows, k), saved[i]))
                            ? 0
                            : number(json_at(g.rows, k), saved[i]);
        /* each row is rounded to a millionth */
        is_near(rows_sum, i < 2 ? want[i] : v,
                1e-6 * fabs(v) + 5e-7 * (double)(json_count(g.rows) + 1), "%s: %s", by,
                saved[i]);
    }
    is_int(sum(g.rows, "jobs", 1) >= (day ? 0 : JOBS), 1, "%s: each job is in a row", by);
    json_free(g.doc);
}

/* The parts of a day's stack are the largest ones; nothing is in it twice. */
static void test_stack(struct ledger *l)
{
    static const char *const by[] = {"by=job", "by=user", "by=day,user", "by=user,day"};
    struct got g;

    for (size_t i = 0; i < n_elements(by); i++) {
        if (!ok(GET(l, &g, by[i]) == 0, "%s", by[i]))
            continue;
        size_t n = json_count(json_get(g.root, "stack"));
        const struct json_value *days = json_get(g.root, "days");
        is_int(n, i == 0 ? 5 : 3, "%s: so many are told by day", by[i]);
        for (size_t d = 0; d < DAYS; d++) {
            const struct json_value *j = json_get(json_at(days, d), "stack_j");
            double all = 0, v = 0;
            for (size_t k = 0; k < json_count(j); k++)
                all += json_as_double(json_at(j, k), &v) ? v : 0;
            double most = number(json_at(days, d), "attributed_j");
            ok(json_count(j) == n && (i ? fabs(all - most) < 1e-5 : all < most),
               "%s: day %zu: %g of %g J", by[i], d, all, most);
        }
        json_free(g.doc);
    }
    (void)GET(l, &g, "by=day");
    is_int(json_count(json_get(g.root, "stack")), 0, "by the day alone: none");
    json_free(g.doc);
}

static void test_names(struct ledger *l)
{
    const struct passwd *root = getpwuid(0);
    gid_t gid = root ? root->pw_gid : 0;
    const struct group *group = getgrgid(gid);
    const char *group_name = group ? group->gr_name : "gid 0"; /* of this machine */
    struct got g;

    (void)GET(l, &g, "by=group");
    for (size_t i = 0; i < json_count(g.rows); i++) {
        const struct json_value *row = json_at(g.rows, i);
        is_str(text(row, "group"), number(row, "jobs") == 4 ? group_name : "(none)",
               "the group of a user of this machine, none of the others");
    }
    json_free(g.doc);
    (void)GET(l, &g, "by=project");
    is_str(text(json_at(g.rows, 0), "project"), "(none)", "neither label nor account");
    is_int(number(json_at(g.rows, 0), "jobs"), 7,
           "of so many jobs: a user's own label is no account");
    json_free(g.doc);
    (void)GET(l, &g, "by=account");
    is_str(text(json_at(g.rows, 1), "account"), "chem", "Slurm's account");
    is_int(number(json_at(g.rows, 1), "jobs"), 5, "of registered jobs alone");
    json_free(g.doc);
    (void)GET(l, &g, "by=day,user");
    is_str(text(json_at(g.rows, 0), "day"), "2026-01-01", "days in their order");
    is_str(text(json_at(g.rows, 3), "day"), "2026-01-02", "…");
    ok(number(json_at(g.rows, 0), "energy_j") > number(json_at(g.rows, 1), "energy_j"),
       "the largest of a day first");
    json_free(g.doc);
    (void)GET(l, &g, "by=user,day");
    is_str(text(json_at(g.rows, 0), "user"), text(json_at(g.rows, 2), "user"),
           "a user's days together");
    is_str(text(json_at(g.rows, 2), "day"), "2026-01-03", "in their order");
    json_free(g.doc);
}

/* ---- parts ---- */

static void test_span(struct ledger *l)
{
    struct got g;
    double one = 0, whole = 3600;
    static const char *const from[] = {"from=2026-01-01", "from=2026-01-02",
                                       "from=2026-01-03"},
                             *const to[] = {"to=2026-01-01", "to=2026-01-02",
                                            "to=2026-01-03"};

    for (size_t i = 0; i < DAYS; i++) {
        (void)GET(l, &g, "by=user", from[i], to[i]);
        double v = number(g.jobs, "saved_half_j");
        is_near(v, 1200, 1, "day %zu has its share of what was saved", i);
        one += v;
        json_free(g.doc);
    }
    is_near(one, whole, 1e-6, "the days' shares are the whole");
    (void)GET(l, &g, "by=job", "from=2026-01-02", "to=2026-01-02", "job=3");
    is_near(number(json_at(g.rows, 0), "saved"), 0.2, 1e-12, "the fraction is the job's");
    is_near(number(json_at(g.rows, 0), "saved_j"), 1000, 1, "of its 3000 J a third");
    json_free(g.doc);
}

static void test_filters(struct ledger *l)
{
    static const struct {
        const char *filter;
        int jobs;
    } cases[] = {
        {"user=anna", 4},         {"user=61001", 4},
        {"user=nobody-here", 0},  {"job=7", 1},
        {"job=4711", 0},          {"label=slurm.qos=high", 5},
        {"label=team==x,\"y", 6},
    };
    struct got g;

    for (size_t i = 0; i < n_elements(cases); i++) {
        static const char *const by[] = {"by=job", "by=user", "by=day", "by=qos,day"};
        for (size_t k = 0; k < n_elements(by); k++) {
            if (!ok(GET(l, &g, by[k], cases[i].filter) == 0, "%s %s", by[k],
                    cases[i].filter))
                continue;
            int n = (int)number(g.jobs, "jobs");
            bool days = k > 1;
            is_int(isnan(number(g.jobs, "jobs")) ? 0 : n,
                   cases[i].jobs * (days ? DAYS : 1), "%s %s: its jobs", by[k],
                   cases[i].filter);
            is_int(sum(g.rows, "energy_j", 1e-6),
                   llround(number(g.jobs, "energy_j") * 1e6), "and their energy alone");
            ok(number(json_get(g.root, "totals"), "attributed_j") > 200000,
               "the boards' sums are of all");
            json_free(g.doc);
        }
    }
    is_int(GET(l, &g, "by=gpu", "user=anna"), -EINVAL, "boards have no user");
    is_int(GET(l, &g, "by=cpu", "job=1"), -EINVAL, "processors have no job");
}

/* A user without rights sees nothing of other users' jobs, whatever is asked for. */
static void test_own(struct ledger *l)
{
    struct got g;

    for (size_t i = 0; i < n_elements(keys); i++) {
        if (!ok(GET(l, &g, keys[i].by, "own=61001") == 0, "%s", keys[i].by))
            continue;
        bool day = strcmp(keys[i].by, "by=day") == 0;
        double j = number(g.jobs, "energy_j");
        is_near(j, 1000.000001 * 26 * DAYS + 4 * 0.999999, 1e-3, "his jobs' energy");
        for (size_t k = 0; !day && k < json_count(g.rows); k++) {
            double uid = number(json_at(g.rows, k), "uid");
            ok(isnan(uid) || uid == 61001, "no other user's row");
        }
        double stack = 0, v = 0;
        for (size_t d = 0; d < DAYS; d++) {
            const struct json_value *of =
                json_get(json_at(json_get(g.root, "days"), d), "stack_j");
            for (size_t k = 0; k < json_count(of); k++)
                stack += json_as_double(json_at(of, k), &v) ? v : 0;
        }
        ok(day ? stack == 0 : fabs(stack - j) < 1e-3, "the stack is of his jobs");
        json_free(g.doc);
    }
    (void)GET(l, &g, "by=user", "own=61001", "user=ben");
    is_int(json_count(g.rows), 0, "a filter shows no other user");
    ok(isnan(number(g.jobs, "saved_j")), "nor what he saved");
    json_free(g.doc);
}

/* More jobs than there are rows: the rest is one row. */
static void test_rest(struct ledger *l, const char *path)
{
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    struct got g;

    for (uint64_t id = 1; id <= MANY; id++) {
        put_job(b, id);
        put_energy(b, id, 0);
    }
    is_int(ledger_write(l, b, NULL), 0, "%d jobs", MANY);
    (void)GET(l, &g, "by=job");
    const struct json_value *rest = json_get(g.root, "rest");
    is_int(json_count(g.rows), 5000, "rows of the largest ones");
    is_int(number(rest, "jobs"), MANY - 5000, "the rest has the others");
    is_int(sum(g.rows, "energy_j", 1e-6) + llround(number(rest, "energy_j") * 1e6),
           help_number(path, "SELECT sum(energy_uj) FROM energy WHERE kind = 1"),
           "with it the rows are the whole, in microjoules");
    is_int(sum(g.rows, "co2_g", 1e-3) + llround(number(rest, "co2_g") * 1e3),
           help_number(path, "SELECT sum(co2_mg) FROM energy WHERE kind = 1"),
           "and in milligrams");
    json_free(g.doc);
}

/* ---- jobs within a scheduler's ---- */

static void put_run(struct ledger_batch *b, uint64_t id, uint64_t within)
{
    static const struct ledger_label own[] = {{"slurm.account", "bio"},
                                              {"slurm.partition", "free"}};
    struct ledger_job job = help_job(id, 61001, "anna");
    struct ledger_energy e = {.begin_utc_ns = T0 + (int64_t)id * 600 * S,
                              .end_utc_ns = T0 + (int64_t)id * 600 * S + 10 * S,
                              .kind = LEDGER_JOB,
                              .job = id,
                              .energy_j = 1000,
                              .method = LEDGER_COUNTED,
                              .simulated = true,
                              .waste = WASTE_HELD};

    job.label = own;
    job.cls = NULL;
    job.n_labels = n_elements(own);
    job.within = within;
    job.ended_utc_ns = T0 + DAY;
    (void)ledger_add_job(b, &job);
    job.within = 0; /* a restart does not know it at once */
    (void)ledger_add_job(b, &job);
    (void)ledger_add_energy(b, &e);
}

/* Job 1 is a scheduler's and has no energy: job 2 ran in it.  Job 3 ran in none. */
static void fill_within(struct ledger *l)
{
    static const struct ledger_label labels[] = {{"slurm.account", "phys"},
                                                 {"slurm.array_job", "7"},
                                                 {"slurm.partition", "prod"},
                                                 {"slurm.qos", "high"},
                                                 {"tier", "silver"}};
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    struct ledger_job outer = help_job(1, 61001, "anna");
    uw_error err = {{0}};

    outer.source = "registered";
    outer.cls = "careful";
    outer.label = labels;
    outer.n_labels = n_elements(labels);
    outer.ended_utc_ns = T0 + DAY;
    (void)ledger_add_job(b, &outer);
    put_run(b, 2, 1);
    put_run(b, 3, 0);
    is_int(ledger_write(l, b, &err), 0, "a job in a scheduler's %s", err.text);
}

/* The value's row has job 2 alone; the other row, without one, job 3. */
static void has_inner(struct ledger *l, const char *by, const char *key, const char *want)
{
    struct got g;

    (void)get(l, (const char *const[]){by, NULL}, &g);
    const struct json_value *rows = g.rows ? g.rows : json_get(g.root, "projects");
    is_int(json_count(rows), 2, "%s: two rows", by);
    for (size_t i = 0; i < json_count(rows); i++) {
        const char *value = text(json_at(rows, i), key);
        ok(strcmp(value, want) == 0 || strcmp(value, "(none)") == 0,
           "%s: the outer job's %s, or none: %s", by, want, value);
        is_int(number(json_at(rows, i), "jobs"), 1, "of one job");
    }
    json_free(g.doc);
}

/* Job 2 has the outer job's partition, job 3 its user's word. */
static void is_partition(struct ledger *l, const char *by)
{
    struct got g;

    (void)get(l, (const char *const[]){by, "label=slurm.partition=prod", NULL}, &g);
    is_int(json_count(g.rows), 1, "%s: of the outer job's", by);
    ok(strcmp(text(json_at(g.rows, 0), "value"), "prod") == 0, "a scheduler's word");
    json_free(g.doc);
}

static void test_within(struct ledger *l)
{
    fill_within(l);
    for (int i = 0; i < 2; i++) {
        has_inner(l, "by=account", "account", "phys");
        has_inner(l, "by=partition", "partition", "prod");
        has_inner(l, "by=qos", "qos", "high");
        has_inner(l, "by=array", "array", "7");
        has_inner(l, "by=project", "project", "phys");
        has_inner(l, "waste=true", "project", "phys");
        has_inner(l, "by=class", "class", "careful");
        has_inner(l, "by=label:tier", "value", "silver");
        is_partition(l, "by=label:slurm.partition");
        while (ledger_tidy(l, T0 + 500 * DAY, NULL) == 1)
            ;
    }
}

/* A zone whose day begins within an hour of UTC; the process's zone is another. */
static void test_zone(void)
{
    static const struct {
        const char *zone, *day[2]; /* of 18:20 and 18:40 UTC */
    } cases[] = {{"zone=utc", {"2026-01-01", NULL}},
                 {"zone=Europe/Berlin", {"2026-01-01", NULL}},
                 {"zone=Asia/Kolkata", {"2026-01-01", "2026-01-02"}},
                 {"zone=Pacific/Kiritimati", {"2026-01-02", NULL}}};
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    auto_(ledger_close) struct ledger *l = NULL;
    uw_error err = {""};
    struct got g;

    (void)help_open("z.sqlite", T0, &l, &err);
    (void)help_boards(l, 1);
    for (int64_t i = 18 * 360 + 120; i <= 18 * 360 + 240; i += 120)
        (void)help_interval(b, i, 0, 0, 0, 100, 1);
    is_int(ledger_write(l, b, &err), 0, "two rows %s", err.text);
    for (size_t i = 0; i < n_elements(cases); i++) {
        is_int(GET(l, &g, cases[i].zone, "by=day"), 0, "%s", cases[i].zone);
        is_str(text(g.root, "zone"), cases[i].zone + strlen("zone="), "says so");
        is_int((long long)json_count(g.rows), cases[i].day[1] ? 2 : 1, "its days");
        is_str(text(json_at(g.rows, 0), "day"), cases[i].day[0], "the first");
        if (cases[i].day[1])
            is_str(text(json_at(g.rows, 1), "day"), cases[i].day[1], "the second");
        json_free(g.doc);
    }
}

int main(void)
{
    auto_(ledger_close) struct ledger *l = NULL, *many = NULL, *in = NULL;
    uw_error err = {{0}};

    if (!help_begin())
        return skip_all("no folder in /tmp");
    if (help_open("g.sqlite", T0, &l, &err) < 0 ||
        help_open("many.sqlite", T0, &many, &err) < 0 ||
        help_open("in.sqlite", T0, &in, &err) < 0)
        return skip_all(err.text);
    (void)help_boards(l, 2);
    (void)help_boards(many, 2);
    (void)help_boards(in, 2);
    fill(l);
    for (size_t i = 0; i < n_elements(keys); i++)
        sums_are(l, help_path("g.sqlite"), keys[i].by, keys[i].rows);
    test_stack(l);
    test_names(l);
    test_span(l);
    test_filters(l);
    test_own(l);
    while (ledger_tidy(l, T0 + 500 * DAY, &err) == 1)
        ;
    for (size_t i = 0; i < n_elements(keys); i++)
        sums_are(l, help_path("g.sqlite"), keys[i].by, keys[i].rows);
    test_rest(many, help_path("many.sqlite"));
    test_within(in);
    test_zone();
    ledger_close(take(in));
    ledger_close(take(l));
    ledger_close(take(many));
    help_end();
    return done();
}
