/* /metrics out of a made-up view: what is there, what is left out, how it is spelled. */
#include <errno.h>
#include <stdlib.h>

#include "api/metrics/metrics.h"
#include "base/units.h"
#include "made.h"
#include "node/wasters.h"
#include "oom.h"

static struct made made;
static const struct metrics_http http = {1234, 5, 6, 7};

/* The value behind a series, or NULL. */
static const char *value(const char *text, const char *series)
{
    static char ret[64];
    char line[512];
    const char *at;

    (void)snprintf(line, sizeof line, "\n%s ", series);
    at = strstr(text, line);
    if (!at)
        return NULL;
    at += strlen(line);
    size_t n = strcspn(at, "\n");
    if (n >= sizeof ret)
        return NULL;
    memcpy(ret, at, n);
    ret[n] = '\0';
    return ret;
}

static unsigned count(const char *text, const char *what)
{
    unsigned n = 0;

    for (const char *p = text; (p = strstr(p, what)); p += strlen(what))
        n++;
    return n;
}

static const char *render(struct metrics *m, const struct metrics_opts *opts)
{
    const char *text = "";
    size_t len = 0;
    uw_error err = {""};
    int r = metrics_render(m, &made.view, opts, &text, &len, &err);

    ok(r == 0 && strlen(text) == len, "renders: %s", err.text);
    return text;
}

/* made boards' UUIDs differ in their last character alone */
#define BOARD0                                                                         \
    "gpu=\"0\",board=\"00000000-0000-0000-0000-000000000000\",hostname=\"made-host\"," \
    "simulated=\"1\""
#define BOARD1                                                                         \
    "gpu=\"1\",board=\"00000000-0000-0000-0000-000000000001\",hostname=\"made-host\"," \
    "simulated=\"1\""
#define INFO0                                                        \
    ",UUID=\"GPU-00000000-0000-0000-0000-000000000000\",pci_bus_id=" \
    "\"00000000:10:00.0\",modelName=\"Made V100\""
#define JOB1                                                                          \
    "job_id=\"101\",user=\"user1\",source=\"run\",name=\"secret-1\",hostname=\"made-" \
    "host\",simulated=\"1\""

static void values(void)
{
    /* clang-format off */
    static const struct { const char *series, *want; } cases[] = {
        {"underwatt_build_info{version=\"0.1.0\",hostname=\"made-host\",simulated=\"1\"}", "1"},
        {"underwatt_start_time_seconds{hostname=\"made-host\"}", "1760000005"},
        {"underwatt_actuator_up{hostname=\"made-host\"}", "1"},
        {"underwatt_http_requests_total{hostname=\"made-host\"}", "1234"},
        {"underwatt_http_refused_total{hostname=\"made-host\"}", "5"},
        {"underwatt_http_connections{hostname=\"made-host\"}", "6"},
        {"underwatt_http_followers{hostname=\"made-host\"}", "7"},
        {"underwatt_jobs{source=\"run\",hostname=\"made-host\"}", "4"},
        {"underwatt_jobs{source=\"registered\",hostname=\"made-host\"}", "0"},
        {"underwatt_gpu_info{" BOARD0 INFO0 "}", "1"},
        {"underwatt_gpu_power_watts{" BOARD0 "}", "210.25"},
        {"underwatt_gpu_energy_joules_total{" BOARD0 "}", "123456.789"},
        {"underwatt_gpu_energy_split_joules_total{" BOARD0 ",kind=\"attributed\"}", "100000"},
        {"underwatt_gpu_energy_split_joules_total{" BOARD0 ",kind=\"unattributed\"}", "0"},
        {"underwatt_gpu_use_joules_total{" BOARD0 ",use=\"held\"}", "1500"},
        {"underwatt_gpu_use_seconds_total{" BOARD0 ",use=\"nobody\"}", "600"},
        {"underwatt_gpu_use_seconds_total{" BOARD0 ",use=\"underused\"}", "0"},
        {"underwatt_gpu_co2e_grams_total{" BOARD0 "}", "4.5"},
        {"underwatt_gpu_co2e_marginal_grams{" BOARD0 "}", "-0.25"},
        {"underwatt_gpu_cost{" BOARD0 ",currency=\"EUR\"}", "-1.5"},
        {"underwatt_gpu_charged_joules_total{" BOARD0 ",signal=\"carbon\"}", "54000"},
        {"underwatt_gpu_charged_joules_total{" BOARD0 ",signal=\"price\"}", "36000"},
        {"underwatt_job_co2e_grams_total{" JOB1 "}", "4.5"},
        {"underwatt_job_cost{" JOB1 ",currency=\"EUR\"}", "-1.5"},
        {"underwatt_gpu_power_limit_watts{" BOARD0 ",kind=\"requested\"}", "150"},
        {"underwatt_gpu_power_limit_watts{" BOARD0 ",kind=\"target\"}", "150"},
        {"underwatt_gpu_power_limit_watts{" BOARD0 ",kind=\"original\"}", "300"},
        {"underwatt_gpu_power_limit_watts{" BOARD0 ",kind=\"min\"}", "100"},
        {"underwatt_gpu_claims{" BOARD0 ",kind=\"soft\"}", "1"},
        {"underwatt_gpu_claims{" BOARD0 ",kind=\"named\"}", "0"},
        {"underwatt_gpu_cap_state{" BOARD0 ",state=\"held\"}", "1"},
        {"underwatt_gpu_cap_state{" BOARD0 ",state=\"free\"}", "0"},
        {"underwatt_gpu_cap_writes_total{" BOARD0 "}", "3"},
        {"underwatt_gpu_cap_changes_total{" BOARD0 ",cause=\"persistence\"}", "1"},
        {"underwatt_gpu_throttle_seconds_total{" BOARD0 ",reason=\"sw_power_cap\"}", "12.5"},
        {"underwatt_gpu_temperature_celsius{" BOARD0 "}", "61"},
        {"underwatt_gpu_clock_hertz{" BOARD0 ",clock=\"sm\"}", "1380000000"},
        {"underwatt_gpu_utilization_ratio{" BOARD0 "}", "0.97"},
        {"underwatt_driver_calls_total{" BOARD0 "}", "1000"},
        {"underwatt_job_energy_joules_total{" JOB1 "}", "1001.5"},
        {"underwatt_job_cap_watts{" JOB1 "}", "300"},
        {"underwatt_job_best_cap_watts{" JOB1 "}", "205"},
        {"underwatt_job_saved_ratio{" JOB1 "}", "0.21"},
        {"underwatt_job_saved_lower_ratio{" JOB1 "}", "0.19"},
        {"underwatt_job_saved_upper_ratio{" JOB1 "}", "0.23"},
        {"underwatt_job_slowdown_ratio{" JOB1 "}", "1.04"},
        {"underwatt_job_gpu_info{" BOARD0 ",job_id=\"100\"}", "1"},
        {"underwatt_cpu_power_watts{domain=\"package-0\",hostname=\"made-host\"}", "80.5"},
        {"underwatt_cpu_energy_joules_total{domain=\"dram-0\",hostname=\"made-host\"}", "400"},
    };
    /* clang-format on */
    auto_(metrics_free) struct metrics *m = NULL;
    struct metrics_opts opts = METRICS_DEFAULT;

    opts.all = true;
    opts.http = &http;
    made_init(&made, 8, 8);
    ok(metrics_new(&m, NULL) == 0, "a renderer");
    const char *text = render(m, &opts);
    for (size_t i = 0; i < n_elements(cases); i++) {
        const char *got = value(text, cases[i].series);
        is_str(got ? got : "(none)", cases[i].want, cases[i].series);
    }
    ok(!value(text,
              "underwatt_cpu_power_watts{domain=\"dram-0\",hostname=\"made-host\"}"),
       "an unknown power is left out");
    (void)snprintf(made.board[1].cap.holder, sizeof made.board[1].cap.holder, "held");
    text = render(m, &opts);
    is_str(value(text, "underwatt_gpu_cap_state{" BOARD1 ",state=\"free\"}"), "1",
           "a board without claims that another Underwatt holds is free");
    is_str(value(text, "underwatt_gpu_claims_unmet{" BOARD0 ",kind=\"hard\"}"), "0",
           "a claim in force is met");
    made.board[0].cap.state = CAPS_DENIED;
    made.board[0].cap.enforced_mw = 200000;
    text = render(m, &opts);
    is_str(value(text, "underwatt_gpu_claims_unmet{" BOARD0 ",kind=\"hard\"}"), "1",
           "one that is denied is not");
    is_str(value(text, "underwatt_gpu_claims_unmet{" BOARD0 ",kind=\"soft\"}"), "0",
           "one of less is");
    ok(!strstr(text, "{job_id=\"other\""), "no sum where nothing is beyond the bound");
}

/* A user's job that holds a board for ten seconds. */
static struct wasters *waste(void)
{
    static const struct ledger_factor price = {"price", "market", "EUR/kWh", false};
    const struct ledger_energy e = {.kind = LEDGER_JOB,
                                    .end_utc_ns = 10 * (int64_t)NS_PER_S,
                                    .waste = WASTE_HELD,
                                    .energy_j = 600,
                                    .charge[LEDGER_COST] = {&price, 50, 600000000}};
    const struct job_entry job = {
        .user = "anna", .n_labels = 1, .label = {{"project", "llm"}}};
    struct wasters *w = NULL;

    if (wasters_new(&w) == 0)
        wasters_add(w, &e, &job, NULL);
    return w;
}

static void waste_is_told(void)
{
    auto_(metrics_free) struct metrics *m = NULL;
    auto_(wasters_free) struct wasters *w = waste();
    struct metrics_opts opts = METRICS_DEFAULT;

    made_init(&made, 1, 0);
    made.view.wasters = w;
    (void)metrics_new(&m, NULL);
    const char *text = render(m, &opts);
    ok(strstr(text, "underwatt_user_waste_joules_total{user=\"anna\",hostname=") &&
           strstr(text, "use=\"held\"} 600\n") &&
           strstr(text, "underwatt_user_waste_seconds_total{user=\"other\",hostname="),
       "a user's waste, and the rest's");
    ok(!strstr(text, "project=\"llm\""), "projects are not for everybody");
    opts.all = true;
    text = render(m, &opts);
    ok(strstr(text, "underwatt_project_waste_cost{project=\"llm\",hostname=") &&
           strstr(text, "currency=\"EUR\"} 0.00005\n"),
       "a project's cost");
    opts.per_job = false;
    ok(!strstr(render(m, &opts), "_waste_"), "none where metrics leave jobs out");
}

static const struct ledger_revised by_later = {
    .rows = {3, 1, 2}, .amount = {-1500, 2000, 1250000}, .currency = "EUR"};

static void revisions_are_told(void)
{
    auto_(metrics_free) struct metrics *m = NULL;
    struct metrics_opts opts = METRICS_DEFAULT;

    made_init(&made, 1, 0);
    (void)metrics_new(&m, NULL);
    const char *text = render(m, &opts);
    ok(strstr(text, "underwatt_ledger_revisions_total{signal=\"price\",hostname=\"made-"
                    "host\",simulated=\"1\"} 0\n") &&
           !strstr(text, "_revised_"),
       "no revision: counts of 0, no sums");
    made.view.ledger_revised = by_later;
    text = render(m, &opts);
    ok(strstr(text, "underwatt_ledger_revisions_total{signal=\"carbon\",hostname=\"made-"
                    "host\",simulated=\"1\"} 3\n") &&
           strstr(text, "_revised_co2e_grams{hostname=\"made-host\"} -1.5\n") &&
           strstr(text, "_revised_co2e_marginal_grams{hostname=\"made-host\"} 2\n") &&
           strstr(text, "_revised_cost{currency=\"EUR\",hostname=\"made-host\",simulated="
                        "\"1\"} 1.25\n"),
       "counts, grams and money");
}

/* Each family once, HELP before TYPE before its series, all of them of the table. */
static void shape(void)
{
    auto_(metrics_free) struct metrics *m = NULL;
    struct metrics_opts opts = METRICS_DEFAULT;
    const char *type, *help, *name;
    char head[512];

    auto_(wasters_free) struct wasters *w = waste();
    made_init(&made, 8, 8);
    made.view.wasters = w;
    made.view.ledger_revised = by_later;
    opts.http = &http;
    opts.all = true;
    (void)metrics_new(&m, NULL);
    const char *text = render(m, &opts);
    bool once = true, last = text[strlen(text) - 1] == '\n';
    for (size_t i = 0; (name = metrics_family(i, &type, &help)); i++) {
        (void)snprintf(head, sizeof head, "# HELP %s %s\n# TYPE %s %s\n%s{", name, help,
                       name, type, name);
        bool none = strcmp(name, "underwatt_rule_firing") == 0 || /* no policy */
                    strncmp(name, "underwatt_limit_", 16) == 0;
        if (count(text, head) != !none) {
            once = false;
            printf("# %s: %u times\n", name, count(text, head));
        }
    }
    ok(once, "each family of the table has its head once, then its series");
    ok(last, "ends with a newline");
    ok(!strstr(text, "} nan") && !strstr(text, "} -nan") && !strstr(text, "} inf") &&
           !strstr(text, "} -inf"),
       "nothing that is no number");
}

static void unknown(void)
{
    static const char *const gone[] = {
        "underwatt_gpu_power_watts",
        "underwatt_gpu_energy_joules_total",
        "underwatt_gpu_energy_split",
        "underwatt_gpu_use_",
        "underwatt_gpu_temperature_celsius",
        "underwatt_gpu_clock_hertz",
        "underwatt_gpu_utilization_ratio",
        "underwatt_gpu_throttle_seconds",
        "kind=\"requested\"",
        "kind=\"enforced\"",
        "kind=\"target\"",
        "kind=\"min\"",
        "underwatt_job_saved_ratio",
        "underwatt_job_cap_watts",
        "underwatt_job_best_cap_watts",
        "underwatt_job_phase",
        "underwatt_cpu_",
        "underwatt_http_",
        "underwatt_job_steps_total",
        "underwatt_budget_counted_watts",
        "pci_bus_id",
    };
    auto_(metrics_free) struct metrics *m = NULL;
    struct metrics_opts opts = METRICS_DEFAULT;

    made_init(&made, 1, 1);
    made.info[0].pci_bus_id[0] = '\0';
    made.board[0] = (struct view_board){.info = &made.info[0]};
    made.job[0] = (struct view_job){.job = &made.entry[0]};
    made.view.n_rapl = 0;
    made.view.read_only = true;
    made.view.budget.unknown = true;
    (void)metrics_new(&m, NULL);
    const char *text = render(m, &opts);
    for (size_t i = 0; i < n_elements(gone); i++)
        ok(!strstr(text, gone[i]), "unknown, so left out: %s", gone[i]);
    is_str(value(text, "underwatt_actuator_up{hostname=\"made-host\"}"), "0",
           "no actuator is said");
    made_init(&made, 0, 0);
    text = render(m, &opts);
    ok(!strstr(text, "underwatt_gpu_"), "a node without boards has no series of any");
}

static void set_uuid(size_t i, const char *uuid)
{
    (void)snprintf(made.info[i].uuid, sizeof made.info[i].uuid, "%s", uuid);
}

/* Every series of a board has a part of its UUID that is no other's; the whole UUID, bus
 * id and model stand in its info alone.
 */
static void labels(void)
{
    auto_(metrics_free) struct metrics *m = NULL;
    struct metrics_opts opts = METRICS_DEFAULT;

    made_init(&made, 3, 2);
    set_uuid(0, "GPU-422ea740-d097-4210-8e06-b061b42e2928");
    set_uuid(1, "GPU-0b7f1c55-d097-4210-8e06-b061b42e2928");
    set_uuid(2, "odd");
    (void)metrics_new(&m, NULL);
    const char *text = render(m, &opts);
    ok(strstr(text, "underwatt_gpu_power_watts{gpu=\"0\",board=\"422ea740\",hostname=") &&
           strstr(text, "{gpu=\"1\",board=\"0b7f1c55\",") &&
           strstr(text, "{gpu=\"2\",board=\"odd\","),
       "eight characters, a short UUID as it is");
    is_int(count(text, "UUID="), 3, "a UUID once a board");
    is_int(count(text, "modelName="), 3, "… as its model");
    is_int(count(text, "pci_bus_id="), 3, "… and its bus id");
    set_uuid(1, "GPU-422ea740-d197-4210-8e06-b061b42e2928");
    text = render(m, &opts);
    ok(strstr(text, "{gpu=\"0\",board=\"422ea740-d0\",") &&
           strstr(text, "{gpu=\"1\",board=\"422ea740-d1\","),
       "more where two boards begin alike");
}

static void escapes(void)
{
    auto_(metrics_free) struct metrics *m = NULL;
    struct metrics_opts opts = METRICS_DEFAULT;

    made_init(&made, 1, 1);
    made.board[0].power_w.v = NAN;
    made.board[0].energy_j = INFINITY;
    opts.all = true;
    (void)snprintf(made.entry[0].name, JOB_NAME, "a\"b\\c\nd\te\xff");
    (void)metrics_new(&m, NULL);
    const char *text = render(m, &opts);
    ok(strstr(text, ",name=\"a\\\"b\\\\c\\nd\xef\xbf\xbd"
                    "e\xef\xbf\xbd\",") != NULL,
       "quote, backslash, newline, control byte and no UTF-8 in a label");
    is_int(count(text, "\nunderwatt_job_energy_joules_total{"), 1, "still one line");
    ok(!strstr(text, "underwatt_gpu_power_watts") &&
           !strstr(text, "underwatt_gpu_energy_joules_total"),
       "what is no number is left out");
}

static void who_sees(void)
{
    auto_(metrics_free) struct metrics *m = NULL;
    struct metrics_opts opts = METRICS_DEFAULT;

    made_init(&made, 8, 8);
    (void)metrics_new(&m, NULL);
    opts.uid = 1003;
    const char *text = render(m, &opts);
    ok(strstr(text, "secret-3") && !strstr(text, "secret-2"),
       "a user sees the name of its own job alone");
    ok(strstr(text, "user=\"user2\""), "and whose the others are");
    opts.uid = 4711;
    ok(!strstr(render(m, &opts), "secret-"), "somebody without a job sees none");
    ok(!strstr(render(m, &opts), "hidden-"), "labels of jobs are no labels here");
    opts.per_job = false;
    text = render(m, &opts);
    ok(!strstr(text, "underwatt_job_"), "no series of jobs where they are off");
    ok(strstr(text, "underwatt_jobs{"), "but how many there are");
}

static void bound(void)
{
    static const char other[] = "underwatt_job_energy_joules_total{job_id=\"other\","
                                "hostname=\"made-host\",simulated=\"1\"}";
    auto_(metrics_free) struct metrics *m = NULL;
    struct metrics_opts opts = METRICS_DEFAULT;

    opts.max_jobs = 5;
    made_init(&made, 8, 8);
    (void)metrics_new(&m, NULL);
    const char *text = render(m, &opts);
    is_int(count(text, "\nunderwatt_job_energy_joules_total{"), 6, "5 and the rest");
    is_int(count(text, "\nunderwatt_job_time_seconds_total{"), 5, "the rest has no time");
    is_str(value(text, other), "3019.5", "the rest is summed");
    made.job[7].energy_j += 100;
    is_str(value(render(m, &opts), other), "3119.5", "and goes on");
    made.view.n_jobs = 7; /* the last one ended */
    is_str(value(render(m, &opts), other), "3119.5",
           "a job that ends takes nothing back");
    made.view.n_jobs = 5;
    is_str(value(render(m, &opts), other), "3119.5", "nor do all of them");
    made.view.n_jobs = 6;
    made.entry[5].id = 900;
    made.job[5].energy_j = 1;
    is_str(value(render(m, &opts), other), "3120.5", "what is new counts from its start");
}

static void fine_grained(void)
{
    static const char series[] =
        "underwatt_cpu_energy_joules_total{domain=\"package-0\",hostname=\"made-host\"}";
    auto_(metrics_free) struct metrics *m = NULL;
    struct metrics_opts opts = METRICS_DEFAULT;

    made_init(&made, 1, 0);
    (void)metrics_new(&m, NULL);
    is_str(value(render(m, &opts), series), "5000", "RAPL as everybody may see it");
    ok(!strstr(render(m, &opts), "81.75"), "not as administrators do");
}

/* 8 boards and 8 jobs, again and again; build/bench/node tells how fast. */
static void frugal(void)
{
    auto_(metrics_free) struct metrics *m = NULL;
    struct metrics_opts opts = METRICS_DEFAULT;
    size_t len = 0;
    const char *text;

    made_init(&made, 8, 8);
    (void)metrics_new(&m, NULL);
    (void)metrics_render(m, &made.view, &opts, &text, &len, NULL);
    oom_fail_at(0);
    unsigned long before = oom_count();
    for (int i = 0; i < 100; i++)
        (void)metrics_render(m, &made.view, &opts, &text, &len, NULL);
    is_int(oom_count() - before, 0, "no allocation from the second text on");
}

static int make(void *user)
{
    auto_(metrics_free) struct metrics *m = NULL;
    struct metrics_opts opts = METRICS_DEFAULT;
    const char *text;
    size_t len;

    (void)user;
    int r = metrics_new(&m, NULL);
    return r < 0 ? r : metrics_render(m, &made.view, &opts, &text, &len, NULL);
}

/* The text for other tools: promtool. */
static int print(void)
{
    auto_(metrics_free) struct metrics *m = NULL;
    struct metrics_opts opts = METRICS_DEFAULT;
    const char *text;
    size_t len;

    made_init(&made, 8, 8);
    opts.all = true;
    opts.http = &http;
    opts.max_jobs = 6;
    if (metrics_new(&m, NULL) < 0 ||
        metrics_render(m, &made.view, &opts, &text, &len, NULL) < 0)
        return 1;
    return fwrite(text, 1, len, stdout) == len ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--print") == 0)
        return print();
    values();
    shape();
    waste_is_told();
    revisions_are_told();
    unknown();
    labels();
    escapes();
    who_sees();
    bound();
    fine_grained();
    frugal();
    made_init(&made, 2, 2);
    oom_each("metrics", make, NULL);
    return done();
}
