/* The next run of a job in virtual time: what its last run's search measured is told to
 * it, through ledger and restarts, to nobody else's job; and where it is another job's
 * curve after all, the cap that is found is as good as without.
 */
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sqlite3.h>

#include "io/ledger.h"
#include "io/progress.h"
#include "plant/plant.h"
#include "tuner/tuner.h"
#include "unit/node/node-scene.h"

enum { ANNA = 1000, BEN = 1001 };
static const struct node_who root = {.may_claim = true, .admin = true, .name = "root"};

struct job {
    const char *workload, *command, *label;
    size_t boards; /* from 0 on */
    uid_t uid;
};

struct found {
    uint32_t held_mw;
    unsigned caps, windows;
    uint64_t id, earlier_job;
    enum search_memory memory;
};

static struct loop_child *start(const struct job *j, struct progress_page *page,
                                const char *gpus)
{
    char owner[40], path[300];
    const char *argv[] = {"underwatt-sim", "train",  "--workload",
                          j->workload,     "--gpus", gpus,
                          "--epochs",      "100000", NULL};
    const char *env[] = {owner, path, NULL};
    struct loop_child_opts opts = {
        .argv = argv, .env = env, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    struct loop_child *child = NULL;

    (void)snprintf(owner, sizeof owner, VIRTUAL_UID "=%u", (unsigned)j->uid);
    (void)snprintf(path, sizeof path, "UNDERWATT_PROGRESS=%s", progress_page_path(page));
    (void)loop_child_new(w.loop, &opts, nobody_cares, NULL, &child, NULL);
    return child;
}

static const struct view_job *job_of(uint64_t id)
{
    const struct node_view *v = node_look(w.node);

    for (size_t i = 0; i < v->n_jobs; i++)
        if (v->job[i].job->id == id)
            return &v->job[i];
    return NULL;
}

static uint64_t begin(const struct job *j, struct progress_page *page)
{
    struct label label = {.key = "same"};
    struct node_job ask = {.reg = {.source = JOB_REGISTERED,
                                   .name = "train",
                                   .uid = j->uid,
                                   .boards = (1ull << j->boards) - 1,
                                   .label = &label,
                                   .n_labels = j->label != NULL},
                           .search = true,
                           .command = j->command,
                           .page_fd = -1};
    uint64_t id = 0;
    uw_error err = {""};

    if (j->label)
        (void)snprintf(label.value, sizeof label.value, "%s", j->label);
    (void)goal_parse("edp", &ask.goal, NULL);
    ask.page_fd = open(progress_page_path(page), O_RDONLY | O_CLOEXEC);
    if (node_job_begin(w.node, &root, &ask, &id, &err) < 0)
        ok(false, "%s: %s", j->workload, err.text);
    return id;
}

/* Until it holds, and a little longer; then it ends. */
static struct found play(const struct job *j)
{
    char gpus[16] = "0";
    struct progress_page *page = NULL;
    struct found f = {0};

    for (size_t i = 1; i < j->boards; i++)
        (void)snprintf(gpus + 2 * i - 1, sizeof gpus - (2 * i - 1), ",%zu", i);
    if (!ok(progress_page_new("/dev/shm", &page, NULL) >= 0, "a page"))
        return f;
    struct loop_child *child = start(j, page, gpus);
    f.id = begin(j, page);
    for (int i = 0; i < 300; i++) {
        const struct view_job *v = job_of(f.id);
        if (!v || !v->search.report || v->search.report->holding)
            break;
        run_s(5);
    }
    const struct view_job *v = job_of(f.id);
    if (ok(v && v->search.report && v->search.report->holding, "%s: holds",
           j->workload)) {
        const struct tuner_report *r = v->search.report;
        f.held_mw = r->held_mw;
        f.caps = (unsigned)r->n_caps;
        f.windows = r->windows;
        f.memory = r->memory;
        f.earlier_job = r->earlier_job;
    }
    run_s(90); /* two windows of the hold */
    (void)node_job_end(w.node, &root, f.id, NULL);
    (void)loop_child_kill(child, SIGKILL);
    run_s(20);
    loop_child_free(child);
    progress_page_free(page);
    printf("# job %llu, %s: %.0f W after %u caps, %u windows; memory %d of job %llu\n",
           (unsigned long long)f.id, j->workload, w_of_mw(f.held_mw), f.caps, f.windows,
           (int)f.memory, (unsigned long long)f.earlier_job);
    return f;
}

static double edp(const char *workload, uint32_t mw)
{
    const struct plant_board *b = plant_board_find("v100");
    struct plant_steady s = plant_steady(b, plant_workload_find(b, workload), mw);
    return s.power_w * s.time_s * s.time_s;
}

/* Over the least that may be had, in percent. */
static double regret(const char *workload, uint32_t mw)
{
    double least = HUGE_VAL;

    for (uint32_t cap = 150000; cap <= ORIGINAL_MW; cap += 1000)
        least = fmin(least, edp(workload, cap));
    return 100 * (edp(workload, mw) / least - 1);
}

static void restart(void)
{
    node_free(take(w.node));
    ok(start_node(), "a new daemon");
}

/* What the job saved stands in the file: measured, with its interval, and beside it the
 * model's word.
 */
static void both_are_kept(uint64_t id)
{
    static const char sql[] = "SELECT saved, saved_half, saved_j, saved_half_j, looks, "
                              "model_saved, model_slowdown FROM job WHERE id = ?";
    char path[sizeof w.dir + sizeof "/ledger.sqlite"];
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;

    (void)snprintf(path, sizeof path, "%s/ledger.sqlite", w.dir);
    if (ok(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
               sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK &&
               sqlite3_bind_int64(stmt, 1, (sqlite3_int64)id) == SQLITE_OK &&
               sqlite3_step(stmt) == SQLITE_ROW,
           "the ledger has the job")) {
        double v[7];
        for (int i = 0; i < 7; i++)
            v[i] = sqlite3_column_double(stmt, i);
        ok(v[0] > 0 && v[1] > 0 && v[2] > 0 && v[3] > 0 &&
               fabs(v[0] / v[1] - v[2] / v[3]) < 0.01 * v[0] / v[1],
           "measured: %.1f +- %.1f %%, %.0f +- %.0f J", 100 * v[0], 100 * v[1], v[2],
           v[3]);
        ok(v[4] == 0 && v[5] > 0 && v[5] != v[0] && v[6] > 1,
           "and what the model says: %.1f %% for x %.3f of its time", 100 * v[5], v[6]);
    }
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
}

static void same_job_again(void)
{
    const struct job j = {"resnet50", "train 1", NULL, 1, ANNA};
    struct job other = j;
    struct found first = play(&j), again = play(&j);

    is_int((long long)first.earlier_job, 0, "the first run knows nothing");
    both_are_kept(first.id);
    ok(again.earlier_job == first.id && again.memory == SEARCH_MEMORY_KEPT,
       "the second knows the first");
    ok(regret(j.workload, again.held_mw) <= 1.5, "%.2f %% above the least",
       regret(j.workload, again.held_mw));
    restart();
    struct found after = play(&j);
    is_int((long long)after.earlier_job, (long long)again.id,
           "so does the next daemon's: of the newest");

    other.uid = BEN;
    is_int((long long)play(&other).earlier_job, 0, "another user's run knows nothing");
    other = j;
    other.command = "train 2";
    is_int((long long)play(&other).earlier_job, 0, "nor another command's");
    other = j;
    other.boards = 2;
    is_int((long long)play(&other).earlier_job, 0, "nor one on more boards");
    other = j;
    other.command = NULL;
    is_int((long long)play(&other).earlier_job, 0, "nor one that tells no command");
    other.label = "mine";
    struct found said = play(&other);
    other.command = "whatever";
    is_int((long long)play(&other).earlier_job, (long long)said.id,
           "but the user may say which are the same");
}

/* Each search has its luck: many jobs, each run twice. */
static void twice(const char *workload, unsigned jobs)
{
    struct found first = {0}, again = {0};
    double worst = 0;

    for (unsigned i = 0; i < jobs; i++) {
        char command[32];
        (void)snprintf(command, sizeof command, "%s %u", workload, i);
        struct job j = {workload, command, NULL, 1, ANNA};
        struct found f = play(&j);
        first.windows += f.windows;
        first.caps += f.caps;
        f = play(&j);
        again.windows += f.windows;
        again.caps += f.caps;
        worst = fmax(worst, regret(workload, f.held_mw));
    }
    ok(again.caps <= first.caps && again.windows <= first.windows && worst <= 1.5,
       "%s: %u first runs %u caps, %u windows; their next %u, %u, at worst %.2f %% above "
       "the least",
       workload, jobs, first.caps, first.windows, again.caps, again.windows, worst);
}

/* The command is the same and the curve is not. */
static void other_curve(void)
{
    static const char *const workloads[] = {"resnet50", "vgg19", "alexnet"};

    for (size_t a = 0; a < n_elements(workloads); a++)
        for (size_t b = 0; b < n_elements(workloads); b++) {
            char command[32];
            if (a == b)
                continue;
            (void)snprintf(command, sizeof command, "%zu then %zu", a, b);
            struct job was = {workloads[a], command, NULL, 1, ANNA}, now = was;
            now.workload = workloads[b];
            struct found old = play(&was), f = play(&now);
            double off = regret(now.workload, f.held_mw);
            ok(f.earlier_job == old.id && off <= 1.5 && f.windows <= 24,
               "%s remembered, %s run: %.2f %% above the least, %u windows (%s)",
               was.workload, now.workload, off, f.windows,
               f.memory == SEARCH_MEMORY_DENIED ? "denied" : "kept");
        }
}

static void forgotten(void)
{
    struct node_config config = w.config;
    const struct job j = {"resnet50", "train 1", NULL, 1, ANNA};

    config.history_ns = 0;
    (void)node_configure(w.node, &config, NULL);
    is_int((long long)play(&j).earlier_job, 0, "search.history: 0 s remembers nothing");
    is_int((long long)play(&j).earlier_job, 0, "and keeps nothing");
    config.history_ns = 90 * 86400 * NS_PER_S;
    (void)node_configure(w.node, &config, NULL);
    restart();
    is_int((long long)play(&j).earlier_job, 0, "what was kept before is gone");
}

int main(void)
{
    log_set_level((enum log_level)0);
    if (ok(open_world() && start_node(), "a node")) {
        same_job_again();
        twice("resnet50", 12);
        twice("vgg19", 12);
        other_curve();
        forgotten();
    }
    close_world();
    return done();
}
