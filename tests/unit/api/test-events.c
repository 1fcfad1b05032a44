/* Live events over a made-up node, on the virtual clock. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/events.h"
#include "node/node-policy.h"
#include "tap.h"
#include "try.h"

#define S 1000000000ull

static struct fake f;

static int stop(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    (void)now_ns;
    loop_stop(user, 0);
    return 0;
}

/* So much time goes by. */
static void wait_s(double s)
{
    struct loop_timer *timer = NULL;

    (void)loop_timer_new(f.loop, loop_now_ns(f.loop) + (uint64_t)(s * 1e9), 0, stop,
                         f.loop, &timer, NULL);
    (void)loop_run(f.loop, NULL);
    loop_timer_free(timer);
    f.made.view.now_ns = loop_now_ns(f.loop);
    f.made.view.utc_ns = loop_utc_ns(f.loop);
}

static unsigned count(const char *text, const char *what)
{
    unsigned n = 0;

    for (const char *p = text; p && (p = strstr(p, what)); p += strlen(what))
        n++;
    return n;
}

static const char *sent(struct http_try *t)
{
    size_t len = 0;
    const char *text = http_try_body(t, &len);

    return text ? text : "";
}

static void samples(void)
{
    struct http_try *a = fake_ask(&f, "GET", "/v1/events?what=samples", NULL);

    is_int(http_try_status(a), 200, "a stream");
    const char *text = sent(a);
    ok(count(text, "event: samples\n") == 1 && strstr(text, "\"power_w\": 1682"),
       "the first comes at once");
    ok(!strchr(strstr(text, "data: "), '\n')[1] || count(text, "data: ") == 1,
       "in one line");
    ok(!strstr(text, "secret-") && !strstr(text, "hidden-"), "no name of any job in it");
    f.made.board[0].power_w.v += 100;
    wait_s(3.5);
    text = sent(a);
    is_int(count(text, "event: samples\n"), 3, "then one a second");
    ok(strstr(text, "\"power_w\": 1782") != NULL, "with what is so by then");

    struct http_try *b = fake_ask(&f, "GET", "/v1/events", NULL);
    is_int(count(sent(b), "event: samples\n"), 1,
           "a second follower has one at once, too");
    wait_s(2);
    is_int(count(sent(a), "event: samples\n"), 2, "both have the same pace");
    is_int(count(sent(b), "event: samples\n"), 2, "of one text");
    http_try_free(a);
    wait_s(2);
    is_int(count(sent(b), "event: samples\n"), 2, "one goes, the other stays");
    http_try_free(b);
    wait_s(2);
    ok(true, "nobody follows, nothing is made");
}

/* Who names no kinds follows all. */
static void tell_policy(void)
{
    struct http_try *all = fake_ask(&f, "GET", "/v1/events", NULL);
    struct http_try *limits = fake_ask(&f, "GET", "/v1/events?what=limit", NULL);
    static const struct policy_rule rule = {.name = "night"};
    const struct engine_event begins = {.rule = &rule, .begins = true};
    const struct node_rule_event of_rule = {.rule = &begins};
    struct limits_event of_limit = {.kind = LIMIT_TEMPERATURE,
                                    .state = LIMIT_ACTS,
                                    .cap_mw = 240000,
                                    .text = "limit temperature: takes effect"};

    (void)sent(all); /* the first sample */
    routes_tell(f.routes, NODE_EVENT_RULE, &of_rule);
    ok(strstr(sent(all), "event: rule\n") != NULL, "rules are told to who follows all");
    is_str(sent(limits), "", "and not to who follows limits");
    routes_tell(f.routes, NODE_EVENT_LIMIT, &of_limit);
    static const char says[] =
        "\"limit\": \"temperature\", \"cap_mw\": 240000, \"text\": \"limit temperature: "
        "takes effect\"}";
    const char *text = sent(limits);
    ok(strncmp(text, "event: limit\n", 13) == 0 && strstr(text, "\"event\": \"acts\"") &&
           strstr(text, says),
       "a limit that acts: %s", text);
    ok(strstr(sent(all), "event: limit\n") != NULL, "to both");
    of_limit.board = 99;
    routes_tell(f.routes, NODE_EVENT_LIMIT, &of_limit);
    is_str(sent(limits), "", "not of a board that is not there");
    http_try_free(all);
    http_try_free(limits);
}

static void tell(void)
{
    struct http_try *all = fake_ask(&f, "GET", "/v1/events?what=cap,claim,job", NULL);
    struct http_try *jobs = fake_ask(&f, "GET", "/v1/events?what=job", NULL);
    struct caps_what what = {.event = CAPS_EVENT_CLAIM,
                             .board = 0,
                             .claim = &f.made.claims[0].claim[1],
                             .target_mw = 150000,
                             .enforced_mw = 151000};
    static const struct {
        enum caps_event event;
        const char *name, *says;
    } cases[] = {
        {CAPS_EVENT_CLAIM, "event: claim\n", "\"event\": \"made\""},
        {CAPS_EVENT_WITHDRAW, "event: claim\n", "\"event\": \"withdrawn\""},
        {CAPS_EVENT_EXPIRE, "event: claim\n", "\"event\": \"expired\""},
        {CAPS_EVENT_CAP, "event: cap\n", "\"enforced_mw\": 151000"},
        {CAPS_EVENT_FAIL, "event: cap\n", "\"event\": \"fail\""},
        {CAPS_EVENT_OTHER, "event: cap\n", "\"cause\": \"thermal\""},
        {CAPS_EVENT_STATE, "event: cap\n", "\"event\": \"state\""},
    };

    for (size_t i = 0; i < n_elements(cases); i++) {
        what.event = cases[i].event;
        what.cause = CAPS_CAUSE_THERMAL;
        routes_tell(f.routes, NODE_EVENT_CAPS, &what);
        const char *text = sent(all);
        ok(strncmp(text, cases[i].name, strlen(cases[i].name)) == 0 &&
               strstr(text, cases[i].says),
           "%s", cases[i].says);
    }
    what.claim = NULL;
    what.event = CAPS_EVENT_CAP;
    routes_tell(f.routes, NODE_EVENT_CAPS, &what);
    ok(strstr(sent(all), "\"claim\": null") != NULL, "a cap that no claim decided");
    what.board = 99;
    routes_tell(f.routes, NODE_EVENT_CAPS, &what);
    is_str(sent(all), "", "a board that is not there is nobody's news");
    routes_tell(f.routes, NODE_EVENT_SAMPLES, NULL);
    is_str(sent(all), "", "a sample round alone is none either");
    is_str(sent(jobs), "", "who follows jobs hears nothing of caps");

    routes_tell(f.routes, NODE_EVENT_JOB, &f.made.entry[3]);
    const char *text = sent(jobs);
    ok(strstr(text, "\"event\": \"begin\"") && strstr(text, "\"id\": 103") &&
           strstr(text, "\"gpus\": [3]"),
       "a job begins");
    ok(!strstr(text, "secret-"), "without its name");
    routes_tell(f.routes, NODE_EVENT_JOB, &f.made.entry[3]);
    ok(strstr(sent(jobs), "\"event\": \"change\"") != NULL, "changes");
    f.made.entry[3].ended_ns = 1;
    routes_tell(f.routes, NODE_EVENT_JOB, &f.made.entry[3]);
    ok(strstr(sent(jobs), "\"event\": \"end\"") != NULL, "ends");
    http_try_free(all);
    http_try_free(jobs);
}

/* The most boards and jobs that there can be are still one event. */
static void largest(void)
{
    static struct view_board board[64];
    static struct view_job job[VIEW_JOBS_MAX];
    static struct job_entry entry[VIEW_JOBS_MAX];

    for (size_t i = 0; i < n_elements(board); i++) {
        board[i] = f.made.board[0];
        board[i].n_jobs = n_elements(board[i].job);
    }
    for (size_t i = 0; i < n_elements(job); i++) {
        job[i] = f.made.job[1];
        entry[i] = f.made.entry[1];
        entry[i].boards = UINT64_MAX;
        memset(entry[i].user, 'u', sizeof entry[i].user - 1);
        memset(job[i].search.state, 's', sizeof job[i].search.state - 1);
        job[i].job = &entry[i];
    }
    f.made.view.board = board;
    f.made.view.n_boards = n_elements(board);
    f.made.view.job = job;
    f.made.view.n_jobs = n_elements(job);
    struct http_try *t = fake_ask(&f, "GET", "/v1/events?what=samples", NULL);
    const char *text = sent(t);
    is_int(count(text, "event: samples\n"), 1, "64 boards and 256 jobs: %zu bytes",
           strlen(text));
    http_try_free(t);
}

static void kinds(void)
{
    uint32_t got = 0;
    uw_error err;

    ok(events_kinds_parse(NULL, &got, &err) == 0 && got == EVENTS_ALL, "all by default");
    ok(events_kinds_parse("job,samples,job", &got, &err) == 0 &&
           got == (EVENTS_JOB | EVENTS_SAMPLES),
       "some");
    got = 7;
    ok(events_kinds_parse("job,sample", &got, &err) == -EINVAL && got == 7 &&
           strstr(err.text, "'sample'"),
       "one that is none: %s", err.text);
}

int main(void)
{
    if (fake_new(&f, 8, 8) < 0)
        return 1;
    samples();
    tell();
    tell_policy();
    kinds();
    largest();
    fake_free(&f);
    return done();
}
