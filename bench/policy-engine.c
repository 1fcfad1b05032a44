/* What the engine of policy rules costs: RULES rules over 8 boards with 16 jobs on each,
 * all of whose values change each second, with the claims that follow.  Prints JSON;
 * exits 1 where more than 0.1 % of a processor is used.
 *
 *     policy-engine [RULES [SECONDS]]      200 100
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/auto.h"
#include "base/rng.h"
#include "base/text.h"
#include "base/units.h"
#include "policy/engine.h"
#include "policy/file.h"
#include "virtual/virtual-loop.h"

enum { BOARDS = 8, JOBS = 16, RULES_MAX = 256 };

/* clang-format off */
static const char *const conditions[] = {
    "carbon > %d g/kWh and not job.critical",
    "price > 0.%d EUR/kWh or queue.depth > 3",
    "job.phase == 'validate' and queue.depth < %d",
    "queue.depth == 0 and queue.wait < %d s",
    "job.class == 'other' and carbon < %d g/kWh",
    "job.age > %d s and board.temperature > 60 °C",
};
/* clang-format on */

static struct {
    struct policy_board board[BOARDS];
    struct engine_job job[JOBS];
    struct rng rng;
    unsigned long claims;
} b;

static void on_look(struct engine_world *ret, void *user)
{
    (void)user;
    *ret = (struct engine_world){b.board, BOARDS, b.job, JOBS};
}

static void on_value(const struct policy_signal *signal, const struct policy_read *read,
                     const struct engine_of *of, struct policy_value *ret, void *user)
{
    static const char *const texts[] = {"train", "validate", "other"};
    (void)read;
    (void)of;
    (void)user;

    ret->known = rng_below(&b.rng, 10) > 0;
    if (signal->type == POLICY_NUMBER)
        ret->number = rng_uniform(&b.rng) * 100;
    else if (signal->type == POLICY_TEXT)
        ret->text = texts[rng_below(&b.rng, 3)];
    else
        ret->truth = rng_below(&b.rng, 2) > 0;
}

static void on_zone(size_t rule, int64_t utc_s, struct policy_zone *ret, void *user)
{
    (void)rule;
    (void)utc_s;
    (void)user;
    *ret = (struct policy_zone){.change_utc_s = INT64_MAX};
}

static void on_claim(size_t board, bool hard, const struct engine_claim *claim,
                     void *user)
{
    (void)board;
    (void)hard;
    (void)user;
    b.claims += claim != NULL;
}

static void on_goal(uint64_t job, const struct goal *goal, const char *by, void *user)
{
    (void)job;
    (void)goal;
    (void)by;
    (void)user;
}

static void on_event(const struct engine_event *event, void *user)
{
    (void)event;
    (void)user;
}

static void write_rules(struct text *t, size_t n)
{
    char line[256], when[160];

    text_put(t, "policy: 1\nrules:\n");
    for (size_t i = 0; i < n; i++) {
/* the format comes from the table */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        (void)snprintf(when, sizeof when, conditions[i % n_elements(conditions)],
                       (int)(i % 90) + 10);
#pragma GCC diagnostic pop
        (void)snprintf(line, sizeof line,
                       "- {name: r%zu, when: \"%s\", until: \"carbon < 1 g/kWh\", "
                       "for: %zu s, cap: %s}\n",
                       i, when, i % 3, i % 2 ? "-30 %" : "70 %");
        text_put(t, line);
    }
}

static double now_s(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static int on_second(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    (void)now_ns;
    policy_engine_changed(user);
    return 0;
}

static int on_end(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    (void)now_ns;
    loop_stop(user, 0);
    return 0;
}

static int play(struct loop *loop, const struct policy_file *file, size_t rules,
                uint64_t seconds)
{
    const struct engine_opts opts = {.loop = loop,
                                     .look = on_look,
                                     .value = on_value,
                                     .zone = on_zone,
                                     .claim = on_claim,
                                     .goal = on_goal,
                                     .event = on_event};
    auto_(policy_engine_free) struct policy_engine *e = NULL;
    struct loop_timer *second = NULL, *end = NULL;
    struct engine_counts counts;
    uint64_t now = loop_now_ns(loop);

    if (policy_engine_new(&opts, &e, NULL) < 0 ||
        policy_engine_use(e, &file->policy, NS_PER_S, NULL) < 0 ||
        loop_timer_new(loop, now, NS_PER_S, on_second, e, &second, NULL) < 0 ||
        loop_timer_new(loop, now + seconds * NS_PER_S, 0, on_end, loop, &end, NULL) < 0)
        return 1;
    policy_engine_step(e); /* the first step allocates */
    double from_s = now_s();
    (void)loop_run(loop, NULL);
    double ms = (now_s() - from_s) / (double)seconds * 1e3;
    policy_engine_counts(e, &counts);
    printf("{\"rules\": %zu, \"boards\": %d, \"jobs\": %d, \"seconds\": %llu, "
           "\"steps\": %.0f, \"claims\": %.1f, \"ms\": %.4f, "
           "\"percent_of_a_core\": %.4f}\n",
           rules, BOARDS, JOBS, (unsigned long long)seconds,
           (double)counts.steps / (double)seconds, (double)b.claims / (double)seconds, ms,
           ms / 10);
    loop_timer_free(second);
    loop_timer_free(end);
    return ms > 1;
}

int main(int argc, char **argv)
{
    auto_(policy_file_free) struct policy_file *file = NULL;
    auto_(loop_free) struct loop *loop = NULL;
    struct text t = {0};
    uint64_t rules = 200, seconds = 100;
    uw_error err = {{0}};

    if ((argc > 1 && parse_u64(argv[1], &rules, &err) < 0) ||
        (argc > 2 && parse_u64(argv[2], &seconds, &err) < 0) || rules == 0 ||
        rules > RULES_MAX || seconds == 0) {
        (void)fprintf(stderr, "policy-engine: [RULES 1..%d [SECONDS]] %s\n", RULES_MAX,
                      err.text);
        return 2;
    }
    rng_init(&b.rng, 1);
    for (size_t i = 0; i < BOARDS; i++)
        b.board[i] = (struct policy_board){
            .original_mw = 700000, .default_mw = 700000, .min_mw = 200000};
    for (size_t i = 0; i < JOBS; i++)
        b.job[i] = (struct engine_job){
            .id = i + 1, .boards = (1u << BOARDS) - 1, .phase.told = true};
    write_rules(&t, rules);
    int r = policy_file_read("bench", t.at, t.len, false, &file, &err);
    if (r == 0)
        r = loop_new_virtual(NS_PER_S, 1700000000, &loop, &err);
    text_free(&t);
    if (r < 0) {
        (void)fprintf(stderr, "policy-engine: %s\n", err.text);
        return 1;
    }
    return play(loop, file, rules, seconds);
}
