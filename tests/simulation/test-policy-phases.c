/* Phase rules on a node in virtual time: how a cap is approached over the times that a
 * phase comes, and how soon it is in force and lifted.
 */
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>

#include "base/names.h"
#include "io/progress.h"
#include "node/node-policy.h"
#include "simulation/policy-scene.h"
#include "tuner/tuner.h"

/* A job that tells its phases. */
static struct paged_job job;

/* goal NULL: a cap by name, of 100 %. */
static void begin_job(const char *goal, const char *steps, const char *phases)
{
    struct node_job ask = {
        .reg = {.source = JOB_REGISTERED, .name = "train", .uid = ANNA, .boards = 1},
        .search = goal != NULL,
        .cap = {.percent = 100},
        .page_fd = -1};
    uw_error err = {""};

    start_paged(&job, "0", steps, phases);
    if (goal)
        (void)goal_parse(goal, &ask.goal, NULL);
    ask.page_fd = page_fd_of(&job);
    if (node_job_begin(w.node, &root, &ask, &job.id, &err) < 0)
        ok(false, "a job: %s", err.text);
}

static void end_scene(void)
{
    (void)node_job_end(w.node, &root, job.id, NULL);
    stop_paged(&job);
    end_node();
    end_policy_scene();
}

static uint32_t phase_now(void)
{
    struct progress_read read;

    if (progress_page_read(job.page, loop_now_ns(w.loop), &read, NULL) < 0 || read.n == 0)
        return UW_PHASE_UNKNOWN;
    return read.slot[0].phase;
}

/* Runs until the job is in that phase, its page says; the time that took. */
static double run_until(uint32_t phase)
{
    uint64_t from_ns = loop_now_ns(w.loop);

    for (int i = 0; i < 100000 && phase_now() != phase; i++)
        run_s(0.01);
    return s_between(from_ns, loop_now_ns(w.loop));
}

/* The limit that the actuator has read back last. */
static uint32_t read_back(void)
{
    return node_look(w.node)->board[0].cap.enforced_mw;
}

/* The time from a change of phase until the limit in force is that. */
static double in_force_after(uint32_t mw)
{
    uint64_t from_ns = loop_now_ns(w.loop);

    for (int i = 0; i < 500 && read_back() != mw; i++)
        run_s(0.005);
    return read_back() == mw ? s_between(from_ns, loop_now_ns(w.loop)) : 99;
}

/* ---- the approach ---- */

/* One validation: the limits in force after `after_s` and at its end, and its length. */
struct time_of_phase {
    uint32_t early_mw, last_mw;
    double length_s;
};

static struct time_of_phase validate(double after_s)
{
    struct time_of_phase t = {0};

    (void)run_until(UW_PHASE_TRAIN);
    (void)run_until(UW_PHASE_VALIDATE);
    uint64_t from_ns = loop_now_ns(w.loop);
    run_s(after_s);
    t.early_mw = in_force(0);
    while (phase_now() == UW_PHASE_VALIDATE) {
        t.last_mw = in_force(0);
        run_s(0.01);
    }
    t.length_s = s_between(from_ns, loop_now_ns(w.loop));
    return t;
}

/* From 300 W to 180 W at 3 W/s. */
static void approaches(void)
{
    if (!begin_policy_scene(
            "a cap is approached over several validations",
            "policy: 1\nrules:\n"
            "  - {name: validation, when: job.phase == 'validate', phase: true,\n"
            "     cap: 60 %, ramp: 1 %/s}\n"))
        return;
    begin_job(NULL, "100", "train,validate=100%");
    struct time_of_phase was = validate(2);
    printf("# %.1f s: %u mW to %u mW\n", was.length_s, was.early_mw, was.last_mw);
    ok(was.early_mw > 280000 && was.last_mw > 200000 && was.last_mw < 290000,
       "the first time gradually, not to its cap: %u mW", was.last_mw);
    uint32_t lowest = was.last_mw;
    for (int i = 0; i < 20 && lowest > 180000; i++) {
        run_s(3);
        ok(in_force(0) == ORIGINAL_MW, "training has the original limit");
        was = validate(2);
        printf("# %.1f s: %u mW to %u mW\n", was.length_s, was.early_mw, was.last_mw);
        ok(was.early_mw <= lowest + 1000 && was.early_mw + 7000 > lowest &&
               was.last_mw < lowest,
           "the approach goes on from where it was: at %u mW at once, then to %u mW",
           was.early_mw, was.last_mw);
        lowest = was.last_mw;
    }
    ok(lowest == 180000, "until the cap is reached");
    was = validate(2);
    is_int(was.early_mw, 180000, "from then on it is set at once");
    run_s(2);
    is_int(in_force(0), ORIGINAL_MW, "and lifted at once");
    end_scene();
}

#define CALL_S 0.032 /* of these boards */
#define LOOK_S 0.02  /* between looks at the page of such a job */

static void follows_at_once(void)
{
    double down_s = 0, up_s = 0;

    if (!begin_policy_scene(
            "a change of phase is noticed at once",
            "policy: 1\ndefaults: {every: 10 s}\nrules:\n"
            "  - {name: validation, when: job.phase == 'validate', phase: true,\n"
            "     cap: 60 %, ramp: at once}\n"))
        return;
    begin_job(NULL, "20", "train,validate=100%");
    (void)validate(1);
    for (int i = 0; i < 20; i++) {
        (void)run_until(UW_PHASE_TRAIN);
        up_s = fmax(up_s, in_force_after(ORIGINAL_MW));
        (void)run_until(UW_PHASE_VALIDATE);
        down_s = fmax(down_s, in_force_after(180000));
    }
    ok(down_s < LOOK_S + 2 * CALL_S + 0.02,
       "the cap is in force after %.3f s: the board is held, and the limit set", down_s);
    ok(up_s < LOOK_S + CALL_S + 0.02, "it is lifted after %.3f s", up_s);
    end_scene();
}

/* The number that this comes to in the ledger; -1: none. */
static int in_ledger(const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    sqlite3 *db = NULL;
    int n = -1;

    if (sqlite3_open(w.config.ledger.path, &db) == SQLITE_OK &&
        sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW)
        n = sqlite3_column_int(stmt, 0);
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
    return n;
}

static void on_rule(enum node_event event, const void *what, void *user)
{
    const struct node_rule_event *rule = what;
    int *begins = user;

    if (event == NODE_EVENT_RULE)
        *begins += rule->rule->begins;
}

static void books_a_count(void)
{
    int begins = 0;

    if (!begin_policy_scene("a rule that begins again and again is counted",
                            "policy: 1\ndefaults: {release: 0 s}\nrules:\n"
                            "  - {name: validation, when: job.phase == 'validate',\n"
                            "     for: 0 s, cap: 60 %, ramp: at once}\n"))
        return;
    begin_job(NULL, "20", "train,validate=100%");
    node_listen(w.node, on_rule, &begins);
    run_s(600);
    (void)node_job_end(w.node, &root, job.id, NULL);
    stop_paged(&job);
    end_node();
    int rows = in_ledger("SELECT count(*) FROM event WHERE text LIKE '%takes effect%'");
    int ends =
        in_ledger("SELECT count(*) FROM event WHERE text LIKE '%no longer in effect%'");
    int counts = in_ledger("SELECT count(*) FROM event WHERE text LIKE '%more times "
                           "for job%in%s, without rows'");
    int counted = in_ledger("SELECT sum(CAST(substr(text, 29) AS INTEGER)) FROM event "
                            "WHERE text LIKE 'rule validation took effect %more%'");
    ok(begins > 60 && rows >= 20 && rows <= 22 && ends == rows,
       "%d times: %d rows of beginnings, %d of ends", begins, rows, ends);
    ok(counts > 4 && counts <= 11 && rows + counted == begins,
       "%d rows count the other %d", counts, counted);
    int claims = in_ledger("SELECT count(*) FROM claim WHERE source = 'rule'");
    int open = in_ledger("SELECT count(*) FROM claim WHERE source = 'rule' AND "
                         "ended_ms IS NULL");
    ok(claims >= 20 && claims <= 22 && open == 0, "%d claims, %d of them open", claims,
       open);
    int caps = in_ledger("SELECT count(*) FROM cap");
    ok(caps >= 40 && caps < 60, "%d caps, down and up", caps);
    is_int(in_ledger("SELECT count(*) FROM cap WHERE claim AND claim NOT IN (SELECT id "
                     "FROM claim)"),
           0, "each by a claim that has a row");
    is_int(in_ledger("SELECT target_mw FROM cap ORDER BY at_ms DESC, rowid DESC LIMIT 1"),
           ORIGINAL_MW, "the last one is what holds");
    end_policy_scene();
}

/* Validations of two steps, 0.26 s: less than a change of cap pays for. */
static void leaves_short_alone(void)
{
    unsigned capped = 0, of = 0;

    if (!begin_policy_scene(
            "short phases are left alone",
            "policy: 1\nrules:\n"
            "  - {name: validation, when: job.phase == 'validate', phase: true,\n"
            "     cap: 60 %, ramp: at once}\n"))
        return;
    begin_job(NULL, "20", "train,validate=10%");
    for (int i = 0; i < 3; i++)
        printf("# %.2f s\n", validate(0.01).length_s);
    for (int i = 0; i < 300; i++) {
        run_s(0.05);
        capped += in_force(0) < ORIGINAL_MW;
        of += phase_now() == UW_PHASE_VALIDATE;
    }
    const struct view_phases *v = &node_look(w.node)->job[0].phases;
    ok(of > 0 && !capped, "no cap in %u of 300 looks, %u of them in the phase", capped,
       of);
    (void)run_until(UW_PHASE_TRAIN);
    (void)run_until(UW_PHASE_VALIDATE);
    run_s(0.05);
    ok(state_of("validation") == RULE_SHORT &&
           phase_book_length(v->book).v < v->break_even_s,
       "the rule says so: %.2f s, under %.2f s", phase_book_length(v->book).v,
       v->break_even_s);
    end_scene();
}

/* Set calls of 300 ms, and a return each five seconds. */
static void ends_what_costs(void)
{
    double s = 0;

    scene_boards = "name: slow\nboards: [{model: v100, count: 4}]\nset_latency: 300 ms\n";
    if (!begin_policy_scene(
            "returns that cost too much end the caps of a job's phases",
            "policy: 1\nrules:\n"
            "  - {name: validation, when: job.phase == 'validate', phase: true,\n"
            "     cap: 60 %, ramp: at once, always: true}\n"))
        return;
    scene_boards = NULL;
    begin_job(NULL, "10", "train,validate=100%");
    for (; s < 300 && state_of("validation") != RULE_COSTLY; s += 1)
        run_s(1);
    const struct view_phases *v = &node_look(w.node)->job[0].phases;
    ok(v->costly && s > 30 && s < 200 && v->late == 0,
       "after %.0f s and %u returns, none of them late: %.2g %% of its time", s,
       v->returns, 100 * v->lost);
    unsigned capped = 0;
    run_s(2);
    for (int i = 0; i < 600; i++) {
        run_s(0.1);
        capped += read_back() != 0 && read_back() < ORIGINAL_MW;
    }
    is_int(capped, 0, "no cap from then on");
    end_scene();
}

/* A person holds the rule's cap beyond the phase: the limit goes up when that ends. */
static void counts_no_others(void)
{
    struct node_claim ask = {.board = "0",
                             .kind = CLAIM_SOFT,
                             .cap = {.mw = ORIGINAL_MW / 10 * 6},
                             .ttl_ns = 3600 * NS_PER_S,
                             .why = "a test"};
    uint64_t id = 0;
    uw_error err = {""};

    if (!begin_policy_scene(
            "a limit that another claim keeps low is no return",
            "policy: 1\nrules:\n"
            "  - {name: validation, when: job.phase == 'validate', phase: true,\n"
            "     cap: 60 %, ramp: at once, always: true}\n"))
        return;
    begin_job(NULL, "100", "train,validate=100%");
    (void)validate(1);
    (void)run_until(UW_PHASE_TRAIN);
    (void)run_until(UW_PHASE_VALIDATE);
    run_s(1);
    ok(node_claim(w.node, &root, &ask, &id, &err) == 0, "a claim: %s", err.text);
    (void)run_until(UW_PHASE_TRAIN);
    run_s(5);
    is_int(read_back(), ORIGINAL_MW / 10 * 6, "its cap stays in training");
    ok(node_withdraw(w.node, &root, id, &err) == 0, "the claim is withdrawn");
    run_s(1);
    const struct view_phases *v = &node_look(w.node)->job[0].phases;
    ok(read_back() == ORIGINAL_MW && v->late == 0 && v->worst_s < 1,
       "the limit is up again: %u returns were late, the longest took %.2f s", v->late,
       v->worst_s);
    end_scene();
}

static void learns_latencies(void)
{
    if (!begin_policy_scene(
            "the board's latencies are learnt",
            "policy: 1\nrules:\n"
            "  - {name: validation, when: job.phase == 'validate', phase: true,\n"
            "     cap: 60 %, ramp: at once}\n"))
        return;
    begin_job("time", "100", "train,validate=50%");
    for (int i = 0; i < 12; i++)
        (void)validate(1);
    const struct view_phases *v = &node_look(w.node)->job[0].phases;
    const struct phase_latency *l = &v->latency, unknown = PHASE_LATENCY_DEFAULT;
    printf("# call %.3f s, down %.3f s, up %.3f s\n", l->call_s, l->down_s, l->up_s);
    ok(l->call_s >= 0.03 && l->call_s < 0.1, "a call: %.3f s", l->call_s);
    ok(fabs(l->up_s - unknown.up_s) > 1e-6 && l->up_s > 0.1 && l->up_s < 0.8,
       "settled upwards: %.3f s", l->up_s);
    ok(v->break_even_s > 0.2 && v->break_even_s < 0.6,
       "a change of cap pays from %.2f s on", v->break_even_s);
    end_scene();
}

/* A validation that a cap slows as it does training. */
static void compares(void)
{
    if (!begin_policy_scene(
            "caps of phases against a static cap",
            "policy: 1\nrules:\n"
            "  - {name: validation, when: job.phase == 'validate', phase: true,\n"
            "     cap: 150 W, ramp: 0.3 %/s}\n"))
        return;
    begin_job("eds:1.5", "300", "train,validate=50%");
    double s = 0;
    for (; s < 7200 && state_of("validation") != RULE_NO_GAIN; s += 10)
        run_s(10);
    unsigned capped = 0;
    for (int i = 0; i < 3600; i++) { /* the search looks at other caps now and then */
        run_s(1);
        capped += rule_claim(CLAIM_SOFT) != NULL;
    }
    const struct view_job *j = &node_look(w.node)->job[0];
    const struct phase_compared *c = &j->phases.compared;
    ok(state_of("validation") == RULE_NO_GAIN && c->known && c->saved < 0.005,
       "after %.0f s it does not act: phase caps save %.2f %% against %.0f W", s,
       100 * c->saved, c->static_w);
    ok(c->static_w > 150 && c->static_w <= w_of_mw(j->search.report->held_mw) + 1,
       "the static cap is below what the search holds, %.0f W",
       w_of_mw(j->search.report->held_mw));
    ok(capped < 3600 / 20, "claims of the rule in the hour from then on: %u s", capped);
    end_scene();
}

#define VALIDATION                                                                     \
    "policy: 1\nrules:\n"                                                              \
    "  - {name: validation, when: job.phase == 'validate', phase: true, cap: 150 W,\n" \
    "     ramp: at once, always: true}\n"
enum { CAPS = 16 };

/* What a search has measured until it holds, or for two hours. */
struct searched {
    double s;
    bool holds;
    size_t n;
    uint32_t cap_mw[CAPS];
    double step_s[CAPS], step_j[CAPS];
};

static bool search(const char *policy, const char *steps, struct searched *ret)
{
    *ret = (struct searched){.s = 0};
    if (!begin_policy_scene(steps, policy))
        return false;
    begin_job("edp", steps, "train,validate=60%");
    while (ret->s < 7200 && !node_look(w.node)->job[0].search.report->holding) {
        run_s(5);
        ret->s += 5;
    }
    const struct tuner_report *r = node_look(w.node)->job[0].search.report;
    ret->holds = r->holding;
    for (; ret->n < r->n_caps && ret->n < CAPS; ret->n++) {
        ret->cap_mw[ret->n] = r->cap[ret->n].cap_mw;
        ret->step_s[ret->n] = savings_mean_time(&r->cap[ret->n].mean);
        ret->step_j[ret->n] = savings_mean_energy(&r->cap[ret->n].mean);
    }
    end_scene();
    return true;
}

/* Training of 21, 10 and 5 s, validation of 5, 2.5 and 1.3 s: no window of a search fits
 * in one training phase, and none holds anything of a phase under the rule's cap.
 */
static void windows_keep_to_training(void)
{
    static const char *const steps[] = {"60", "30", "15"};
    struct searched without, with;

    printf("# a search beside a phase rule\n");
    for (size_t i = 0; i < n_elements(steps); i++) {
        unsigned same = 0;
        double most_s = 0, most_j = 0;
        if (!search("policy: 1\n", steps[i], &without) ||
            !search(VALIDATION, steps[i], &with))
            return;
        ok(with.holds && with.s < 2 * without.s + 60,
           "%s steps: it holds after %.0f s, without the rule after %.0f s", steps[i],
           with.s, without.s);
        for (size_t a = 0; a < with.n; a++)
            for (size_t b = 0; b < without.n; b++) {
                if (with.cap_mw[a] != without.cap_mw[b])
                    continue;
                same++;
                most_s = fmax(most_s, fabs(with.step_s[a] / without.step_s[b] - 1));
                most_j = fmax(most_j, fabs(with.step_j[a] / without.step_j[b] - 1));
            }
        ok(same >= 3 && most_s < 0.003 && most_j < 0.03,
           "the same steps at %u caps: %.2f %% of time, %.2f %% of energy apart at most",
           same, 100 * most_s, 100 * most_j);
    }
}

int main(void)
{
    log_set_level(LOG_LEVEL_ERROR);
    approaches();
    follows_at_once();
    books_a_count();
    leaves_short_alone();
    ends_what_costs();
    counts_no_others();
    learns_latencies();
    compares();
    windows_keep_to_training();
    return done();
}
