/* The report of waste: what boards did by class, user, project and job, what less would
 * have done, and that rolling up changes none of it.
 */
#include <math.h>

#include "help-json.h"
#include "help.h"
#include "io/ledger-report.h"
#include "tap.h"

/* A day of four boards, a row each minute: anna's job 1 has boards 0 and 1, trains on 0
 * and holds 1; ben's job 2 uses little of board 2 for the first half and works then; on
 * board 3 carla's job 3 works by day, nobody by night.
 */
enum { MINUTES = 1440 };
static struct ledger_factor grid = {"carbon", "file /srv/grid.csv", "g/kWh", false};
static struct ledger_factor price = {"price", "file /srv/price.csv", "EUR/kWh", false};

static void row(struct ledger_batch *b, int64_t minute, size_t board, uint64_t job,
                double w, enum waste_class waste)
{
    struct ledger_energy e = {.begin_utc_ns = T0 + minute * 60 * S,
                              .end_utc_ns = T0 + (minute + 1) * 60 * S,
                              .board = board,
                              .kind = job ? LEDGER_JOB : LEDGER_IDLE,
                              .job = job,
                              .energy_j = w * 60,
                              .method = LEDGER_COUNTED,
                              .waste = waste,
                              .simulated = true};

    e.charge[LEDGER_CO2] =
        (struct ledger_amount){&grid, (int64_t)(w * 10), (int64_t)(w * 60e6)};
    if (board == 1) /* the price was known for half of this board's energy */
        e.charge[LEDGER_COST] =
            (struct ledger_amount){&price, (int64_t)w, (int64_t)(w * 30e6)};
    if (ledger_add_energy(b, &e) < 0)
        ok(false, "a row");
}

static void fill(struct ledger *l)
{
    auto_(ledger_batch_free) struct ledger_batch *b = ledger_batch_new();
    static const struct ledger_label vision[] = {{"project", "vision"}};
    uw_error err = {""};

    for (int64_t i = 0; i < MINUTES; i++) {
        row(b, i, 0, 1, 250, WASTE_WORKING);
        row(b, i, 1, 1, 60, WASTE_HELD);
        row(b, i, 2, 2, i < MINUTES / 2 ? 70 : 200,
            i < MINUTES / 2 ? WASTE_UNDER : WASTE_WORKING);
        row(b, i, 3, i < MINUTES / 2 ? 3 : 0, i < MINUTES / 2 ? 220 : 40, WASTE_WORKING);
    }
    struct ledger_job anna = help_job(1, 1000, "anna"), ben = help_job(2, 1001, "ben"),
                      carla = help_job(3, 1002, "carla");
    anna.boards = 3;
    ben.boards = 4;
    ben.label = carla.label = vision;
    ben.n_labels = carla.n_labels = 1;
    carla.boards = 8;
    struct ledger_search s = {.uid = 1001,
                              .same = "0123456789abcdef",
                              .model = "Board A",
                              .boards = 1,
                              .job = 2,
                              .utc_ns = T0,
                              .reference_mw = 300000,
                              .demand_w = 71,
                              .n = 4,
                              .cap = {{300000, 3, 0.5, 35, 0.001, 0.001},
                                      {100000, 3, 0.6, 30, 0.001, 0.001},
                                      {150000, 3, 0.502, 34, 0.001, 0.001},
                                      {200000, 3, 0.5, 35, 0.001, 0.001}}};
    struct ledger_search other = s;
    (void)snprintf(other.model, sizeof other.model, "Board B");
    other.job = 99;
    other.demand_w = 30;
    other.reference_mw = other.cap[0].cap_mw = 70000;
    other.cap[0].step_s = 0.55;
    other.cap[0].step_j = 16;
    other.n = 1;
    struct ledger_search ours = other; /* another user's, and of another job: not told */
    ours.uid = 1000;
    ours.cap[0].step_j = 1;
    ok(ledger_add_job(b, &anna) == 0 && ledger_add_job(b, &ben) == 0 &&
           ledger_add_job(b, &carla) == 0 && ledger_add_search(b, &s) == 0 &&
           ledger_add_search(b, &other) == 0 && ledger_add_search(b, &ours) == 0 &&
           ledger_write(l, b, &err) == 0,
       "three jobs, %s", err.text);
}

static struct json *get(struct ledger *l, uid_t uid)
{
    auto_(json_out_free) struct json_out *o = json_out_new();
    auto_(mem_free) char *text = NULL;
    struct ledger_query q;
    struct json *doc = NULL;
    uw_error err = {""};

    ledger_query_init(&q, T0 + 2000 * DAY);
    q.one_user = uid > 0;
    q.uid = uid;
    int r = ledger_query_set(&q, "waste", "true", T0, &err);
    if (r >= 0)
        r = ledger_report(l, &q, o, &err);
    if (r >= 0)
        r = json_out_string(o, &text, &err);
    if (r >= 0)
        r = json_read("report", text, strlen(text), &doc, &err);
    ok(r >= 0, "a report: %s", err.text);
    return doc;
}

static const char *text_of(const struct json_value *v, const char *key)
{
    const char *t = json_as_text(json_get(v, key));

    return t ? t : "";
}

static void uses(const struct json_value *root)
{
    static const struct {
        const char *use;
        double h, w;
    } want[] = {{"working", 24 + 12 + 12, (24 * 250 + 12 * 200 + 12 * 220) / 48.0},
                {"held", 24, 60},
                {"underused", 12, 70},
                {"nobody", 12, 40}};
    const struct json_value *list = json_get(root, "uses");

    is_int((long long)json_count(list), 4, "four classes were seen");
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const struct json_value *v = json_at(list, i);
        is_str(text_of(v, "use"), want[i].use, "a class");
        is_near(number(v, "time_s"), want[i].h * 3600, 1e-6, "its time");
        is_near(number(v, "energy_j"), want[i].h * 3600 * want[i].w, 1e-3, "its energy");
        is_near(number(v, "co2_covered"), 1, 1e-9, "its coverage");
    }
}

static void rows(const struct json_value *root)
{
    const struct json_value *users = json_get(root, "users");
    const struct json_value *projects = json_get(root, "projects");
    const struct json_value *jobs = json_get(root, "jobs");
    const struct json_value *anna = json_at(users, 0), *ben = json_at(users, 1);

    is_int((long long)json_count(users), 2, "carla is not among the users");
    is_str(text_of(anna, "user"), "anna", "anna wasted most");
    is_near(number(anna, "time_s"), 24 * 3600, 0, "24 h …");
    is_near(number(anna, "held_s"), 24 * 3600, 0, "held");
    is_near(number(anna, "allocated_s"), 0, 0, "not allocated");
    is_near(number(anna, "energy_j"), 24 * 3600 * 60, 1e-3, "1.44 kWh");
    is_near(number(anna, "of_time"), 0.5, 1e-12, "half of her boards' time");
    is_near(number(anna, "co2_g"), 1440 * 0.6, 1e-9, "864 g");
    is_near(number(anna, "money"), 1440 * 60e-6, 1e-9, "8.64 ct");
    is_near(number(anna, "money_covered"), 0.5, 1e-9, "of half of it");
    is_str(text_of(ben, "user"), "ben", "then ben");
    is_near(number(ben, "underused_j"), 12 * 3600 * 70, 1e-3, "underused");
    is_near(number(ben, "mean_w"), 70, 1e-9, "at 70 W");
    is_int((long long)json_count(projects), 2, "two projects");
    is_str(text_of(json_at(projects, 0), "project"), "llm", "the worst first");
    is_near(number(json_at(projects, 1), "of_time"), 1.0 / 3, 1e-7,
            "12 h of ben's 24 and carla's 12");
    is_near(number(json_at(projects, 1), "jobs"), 1, 0, "one job of two");

    is_int((long long)json_count(jobs), 2, "two jobs");
    const struct json_value *less = json_get(json_at(jobs, 0), "less");
    is_int((long long)json_count(less), 1, "of job 1 one thing is known");
    is_str(text_of(json_at(less, 0), "kind"), "fewer-boards", "fewer boards");
    is_near(number(json_at(less, 0), "boards"), 2, 0, "of two");
    is_near(number(json_at(less, 0), "idle_boards"), 1, 0, "one");
    is_near(number(json_at(less, 0), "idle"), 1, 0, "all of the time");
    less = json_get(json_at(jobs, 1), "less");
    is_int((long long)json_count(less), 2, "of job 2 two");
    is_str(text_of(json_at(less, 0), "kind"), "lower-cap", "its search's curve");
    is_near(number(json_at(less, 0), "cap_mw"), 150000, 0, "is flat from 150 W on");
    is_near(number(json_at(less, 0), "demand_w"), 71, 0, "at 71 W");
    is_str(text_of(json_at(less, 1), "model"), "Board B", "and it ran on another model");
    is_near(number(json_at(less, 1), "step_j"), 16, 1e-12, "with 16 J a step");
    is_near(number(json_at(less, 1), "here_step_j"), 35, 1e-12, "for 35");
}

static void one_user(struct ledger *l)
{
    auto_(json_free) struct json *doc = get(l, 1001);
    const struct json_value *root = json_root(doc);
    const struct json_value *list = json_get(root, "uses");

    is_int((long long)json_count(json_get(root, "jobs")), 1, "ben sees his own job");
    is_str(text_of(json_at(json_get(root, "users"), 0), "user"), "ben", "alone");
    is_int((long long)json_count(json_get(root, "projects")), 1, "and its project");
    is_int((long long)json_count(list), 3, "no class of others' boards");
    is_near(number(json_at(list, 0), "time_s"), 12 * 3600, 0, "his working time alone");
    is_str(text_of(json_at(list, 2), "use"), "nobody", "and nobody's");
}

int main(void)
{
    struct ledger *l = NULL;
    uw_error err = {""};

    (void)help_begin();
    ok(help_open("w.sqlite", T0, &l, &err) == 0 && help_boards(l, 4) == 0, "a ledger %s",
       err.text);
    fill(l);
    for (int k = 0; k < 3; k++) {
        static const int64_t days[] = {0, 20, 500};
        int r = 0;
        while (days[k] && (r = ledger_tidy(l, T0 + days[k] * DAY, &err)) == 1)
            ;
        ok(r == 0, "after %d days", (int)days[k]);
        auto_(json_free) struct json *doc = get(l, 0);
        uses(json_root(doc));
        if (k < 2) /* searches are forgotten, jobs stay */
            rows(json_root(doc));
    }
    one_user(l);
    ledger_close(l);
    help_end();
    return done();
}
