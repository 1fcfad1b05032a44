/* The engine of random policies in a world that changes at random, against rules that are
 * stepped one by one, each for its own board and job: what units share must change no
 * state.
 *
 * Usage: test-policy-random [SEED [WORLDS]]
 */
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/text.h"
#include "base/units.h"
#include "io/loop.h"
#include "policy/engine.h"
#include "policy/file.h"
#include "tap.h"
#include "virtual/virtual-loop.h"

enum { BOARDS = 3, JOBS = 4, RULES = 12, SECONDS = 60, SUBJECTS = 1 + BOARDS + JOBS };
enum { SIGNALS_MAX = 64 };

/* Rules without the engine, on a board for a job. */
struct alone {
    bool there; /* since the last evaluation at least */
    struct policy_value value[POLICY_READS_MAX];
    struct policy_progress progress[RULES];
    struct policy_verdict verdict[RULES];
};

static struct {
    struct rng rng;
    struct loop *loop;
    struct policy_engine *engine;
    struct policy_file *file;
    struct policy_board board[BOARDS];
    struct engine_job job[JOBS];
    size_t n_jobs;
    struct policy_value value[SUBJECTS][SIGNALS_MAX]; /* of each signal */
    struct alone alone[BOARDS][JOBS + 1];             /* of each job; 0: of none */
    uint64_t seed;
    bool refused, bad;
} w;
static unsigned worlds, rows, states[64], on;

/* ---- the world ---- */

static struct policy_value value_of(const struct policy_signal *signal, size_t board,
                                    uint64_t job)
{
    size_t subject = signal->scope == POLICY_OF_BOARD ? 1 + board
                     : signal->scope == POLICY_OF_JOB ? BOARDS + job
                                                      : 0;
    struct policy_value v = w.value[subject][signal - w.file->policy.catalogue->signal];

    v.known = v.known && loop_now_ns(w.loop) < v.until_ns;
    return v;
}

static void draw_value(const struct policy_signal *signal, struct policy_value *v)
{
    static const char *const texts[] = {"train", "validate", "load"};
    struct policy_unit unit;
    double factor = 1;

    *v = (struct policy_value){.known = rng_below(&w.rng, 8) > 0};
    v->until_ns = rng_below(&w.rng, 3)
                      ? UINT64_MAX
                      : loop_now_ns(w.loop) + rng_below(&w.rng, 5000) * NS_PER_MS;
    (void)policy_signal_unit(signal, &unit, &factor);
    if (signal->type == POLICY_TEXT)
        v->text = texts[rng_below(&w.rng, 3)];
    else if (signal->type == POLICY_TRUTH)
        v->truth = rng_below(&w.rng, 2) > 0;
    else
        v->number = (double)rng_below(&w.rng, 100) * factor;
}

/* One value in `rate` is drawn anew. */
static void draw_values(uint64_t rate)
{
    const struct policy_catalogue *c = w.file->policy.catalogue;

    for (size_t s = 0; s < SUBJECTS; s++)
        for (size_t i = 0; i < c->n && i < SIGNALS_MAX; i++)
            if (rng_below(&w.rng, rate) == 0)
                draw_value(&c->signal[i], &w.value[s][i]);
}

/* Jobs 1 to JOBS come and go, with other boards. */
static void draw_jobs(void)
{
    w.n_jobs = 0;
    for (uint64_t id = 1; id <= JOBS; id++)
        if (rng_below(&w.rng, 3))
            w.job[w.n_jobs++] = (struct engine_job){
                .id = id, .boards = rng_below(&w.rng, 1u << BOARDS), .phase.told = true};
}

static void on_look(struct engine_world *ret, void *user)
{
    (void)user;
    *ret = (struct engine_world){w.board, BOARDS, w.job, w.n_jobs};
}

static void on_value(const struct policy_signal *signal, const struct policy_read *read,
                     const struct engine_of *of, struct policy_value *ret, void *user)
{
    (void)read;
    (void)user;
    *ret = value_of(signal, of->board, of->job);
}

static void on_zone(size_t rule, int64_t utc_s, struct policy_zone *ret, void *user)
{
    (void)user;
    policy_file_zone(w.file, rule, utc_s, ret);
}

static void on_goal(uint64_t job, const struct goal *goal, const char *by, void *user)
{
    (void)job;
    (void)goal;
    (void)by;
    (void)user;
}

/* ---- without the engine ---- */

static bool has_unit(size_t board, uint64_t job)
{
    bool idle = true;

    for (size_t i = 0; i < w.n_jobs; i++) {
        bool here = w.job[i].boards >> board & 1;
        if (here && w.job[i].id == job)
            return true;
        idle = idle && !here;
    }
    return job == 0 && idle;
}

/* The values that rules read on a board for a job. */
static void read_values(size_t board, uint64_t job, struct policy_value *ret)
{
    const struct policy *p = &w.file->policy;

    for (size_t i = 0; i < p->reads.n; i++) {
        const struct policy_signal *s = &p->catalogue->signal[p->reads.read[i].signal];
        ret[i] = s->scope == POLICY_OF_JOB && job == 0
                     ? (struct policy_value){.known = false}
                     : value_of(s, board, job);
    }
}

/* A value that stays known for longer is no news before its old time. */
static bool is_news(const struct policy_value *was, const struct policy_value *now)
{
    uint64_t old, new; /* number, text or truth */

    memcpy(&old, &was->number, sizeof old);
    memcpy(&new, &now->number, sizeof new);
    return was->known != now->known ||
           (now->known && (now->until_ns < was->until_ns || old != new));
}

static void step_alone(size_t rule, struct alone *a, const struct policy_value *values,
                       uint64_t job)
{
    const struct policy_rule *r = &w.file->policy.rule[rule];
    const struct policy_instant at = {.now_ns = loop_now_ns(w.loop),
                                      .values = values,
                                      .is_for_job = job || r->idle_boards,
                                      .no_job = !job,
                                      .inside = true,
                                      .edge_ns = UINT64_MAX,
                                      .phase_told = true};
    bool news = !a->there || at.now_ns >= a->verdict[rule].due_ns;

    for (size_t i = 0; i < w.file->policy.reads.n; i++)
        news |= (policy_condition_uses(&r->when, i) ||
                 (r->has_until && policy_condition_uses(&r->until, i))) &&
                is_news(&a->value[i], &values[i]);
    if (news)
        policy_rule_step(r, &a->progress[rule], &at, &a->verdict[rule]);
}

static bool is_same(const struct engine_row *row, const struct policy_verdict *v)
{
    const struct policy *p = &w.file->policy;
    const char *unknown = NULL;

    if (v->state == RULE_UNKNOWN && v->slot != POLICY_NO_SLOT)
        unknown = p->catalogue->signal[p->reads.read[v->slot].signal].name;
    return row->state == v->state && row->on == v->on && row->since_ns == v->since_ns &&
           row->unknown == unknown;
}

static void compare(const struct engine_row *row, const struct policy_verdict *v)
{
    rows++;
    states[v->state]++;
    on += v->on;
    if (is_same(row, v) || w.bad)
        return;
    w.bad = true;
    printf("# seed %llu, %s, board %zu, job %llu: %d since %llu, not %d since %llu\n",
           (unsigned long long)w.seed, row->rule->name, row->board,
           (unsigned long long)row->job, row->state, (unsigned long long)row->since_ns,
           v->state, (unsigned long long)v->since_ns);
}

static void step_all_alone(size_t board, uint64_t job)
{
    static struct policy_value values[POLICY_READS_MAX];
    struct alone *a = &w.alone[board][job];

    if (!has_unit(board, job)) {
        memset(a, 0, sizeof *a);
        return;
    }
    read_values(board, job, values);
    for (size_t i = 0; i < w.file->policy.n_rules; i++)
        step_alone(i, a, values, job);
    memcpy(a->value, values, sizeof a->value);
    a->there = true;
}

/* Each evaluation ends with claims; all rules have been stepped by the first one. */
static void on_claim(size_t board, bool hard, const struct engine_claim *claim,
                     void *user)
{
    struct engine_row row;
    size_t n = 0;

    (void)claim;
    (void)user;
    if (board != 0 || hard)
        return;
    for (size_t b = 0; b < BOARDS; b++) {
        for (uint64_t job = 0; job <= JOBS; job++) {
            step_all_alone(b, job);
            n += w.alone[b][job].there ? w.file->policy.n_rules : 0;
        }
    }
    for (size_t i = 0; policy_engine_row(w.engine, i, &row); i++, n--)
        compare(&row, &w.alone[row.board][row.job]
                           .verdict[(size_t)(row.rule - w.file->policy.rule)]);
    w.bad |= n != 0;
}

/* ---- policies ---- */

static const char *pick(const char *const *of, size_t n)
{
    return of[rng_below(&w.rng, n)];
}

static void write_rule(struct text *t, size_t i)
{
    static const char *const whens[] = {
        "carbon > 40 g/kWh",
        "price < 60 EUR/kWh or queue.depth > 30",
        "queue.depth - 1 > 50 and not queue.wait < 20 s",
        "job.age > 35 s",
        "job.phase == 'validate'",
        "job.phase != 'train' and carbon > 30 g/kWh",
        "known(price) and not job.critical",
        "board.temperature > 45 °C",
        "board.temperature > 30 °C and job.age < 80 s",
        "board.hot or job.critical and queue.depth < 90",
    };
    static const char *const untils[] = {"carbon < 20 g/kWh", "job.age < 10 s",
                                         "board.temperature < 15 °C",
                                         "price > 90 EUR/kWh or job.critical"};
    static const char *const caps[] = {"-30 %", "70 %", "300 W"};
    const char *when = pick(whens, n_elements(whens));
    bool until = strstr(when, "board.") || rng_below(&w.rng, 3) == 0;
    char line[400], end[100];

    if (until)
        (void)snprintf(end, sizeof end, "until: \"%s\"", pick(untils, 4));
    else
        (void)snprintf(end, sizeof end, "release: %d s", (int)rng_below(&w.rng, 4));
    (void)snprintf(line, sizeof line,
                   "- {name: r%zu, when: \"%s\", %s, for: %d s, cap: %s%s%s%s}\n", i,
                   when, end, (int)rng_below(&w.rng, 3), pick(caps, 3),
                   until || rng_below(&w.rng, 2) ? "" : ", hysteresis: 20 %",
                   rng_below(&w.rng, 4) ? "" : ", idle_boards: true",
                   rng_below(&w.rng, 6) ? "" : ", dry_run: true");
    text_put(t, line);
}

static void use_policy(void)
{
    struct text t = {0};
    uw_error err = {""};

    text_put(&t, "policy: 1\nrules:\n");
    for (size_t i = 0; i < RULES; i++)
        write_rule(&t, i);
    w.refused = policy_file_read("test", t.at, t.len, false, &w.file, &err) < 0;
    if (w.refused)
        printf("# seed %llu: %s\n", (unsigned long long)w.seed, err.text);
    text_free(&t);
}

static int on_second(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    (void)now_ns;
    (void)user;
    if (rng_below(&w.rng, 8) == 0)
        draw_jobs();
    draw_values(rng_below(&w.rng, 4) ? 12 : 1);
    if (rng_below(&w.rng, 4))
        policy_engine_changed(w.engine);
    return 0;
}

static int on_end(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    (void)now_ns;
    (void)user;
    loop_stop(w.loop, 0);
    return 0;
}

static void play(uint64_t seed)
{
    const uint64_t begin_ns = 1000 * NS_PER_S;
    struct engine_opts o = {.look = on_look,
                            .value = on_value,
                            .zone = on_zone,
                            .claim = on_claim,
                            .goal = on_goal};
    struct loop_timer *second = NULL, *end = NULL;

    memset(&w, 0, sizeof w);
    w.seed = seed;
    rng_init(&w.rng, seed);
    for (size_t i = 0; i < BOARDS; i++)
        w.board[i] = (struct policy_board){
            .original_mw = 700000, .default_mw = 700000, .min_mw = 200000};
    use_policy();
    if (w.refused)
        return;
    worlds++;
    if (loop_new_virtual(begin_ns, 1763553600, &w.loop, NULL) < 0)
        abort();
    o.loop = w.loop;
    draw_jobs();
    draw_values(1);
    if (policy_engine_new(&o, &w.engine, NULL) < 0 ||
        policy_engine_use(w.engine, &w.file->policy, NS_PER_S, NULL) < 0 ||
        loop_timer_new(w.loop, begin_ns + NS_PER_S / 3, NS_PER_S, on_second, NULL,
                       &second, NULL) < 0 ||
        loop_timer_new(w.loop, begin_ns + SECONDS * NS_PER_S, 0, on_end, NULL, &end,
                       NULL) < 0 ||
        loop_run(w.loop, NULL) < 0)
        abort();
    policy_engine_free(w.engine);
    loop_timer_free(second);
    loop_timer_free(end);
    loop_free(w.loop);
    policy_file_free(w.file);
}

int main(int argc, char **argv)
{
    uint64_t seed = 1, most = 60;
    unsigned bad = 0;

    if ((argc > 1 && parse_u64(argv[1], &seed, NULL) < 0) ||
        (argc > 2 && parse_u64(argv[2], &most, NULL) < 0))
        return 2;
    for (uint64_t i = 0; i < most; i++) {
        play(seed + i);
        bad += w.bad;
    }
    ok(worlds > most / 2, "%u worlds of %llu, %u rows", worlds, (unsigned long long)most,
       rows);
    ok(states[RULE_FALSE] > rows / 100 && states[RULE_UNKNOWN] > rows / 100 &&
           states[RULE_UNTIL] > rows / 100 && states[RULE_WAITS] > rows / 100 &&
           states[RULE_NO_JOB] > 0 && on > rows / 100,
       "states: %u false, %u unknown, %u until, %u wait, %u other job, %u on",
       states[RULE_FALSE], states[RULE_UNKNOWN], states[RULE_UNTIL], states[RULE_WAITS],
       states[RULE_NO_JOB], on);
    is_int(bad, 0, "the engine says what each rule comes to alone");
    return done();
}
