/* A world for tests of the guard: a virtual loop, boards that misbehave, a real journal.
 */
#ifndef TESTS_UNIT_ACTUATOR_GUARD_SCENE_H
#define TESTS_UNIT_ACTUATOR_GUARD_SCENE_H

#include "actuator/guard.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/units.h"
#include "remove-tree.h"
#include "tap.h"
#include "unit/actuator/fake.h"
#include "virtual/virtual-loop.h"

static char top[] = "/tmp/test-guard-XXXXXX";

/* One world a test: a loop, a guard, one session, the answers so far. */
struct world {
    struct loop *loop;
    struct journal journal;
    struct guard *guard;
    struct guard_session *session;
    struct loop_timer *pause;
    struct proto_answer answer[64];
    size_t n;
    uint32_t seq;
    char said[512];
    char log[4096]; /* all that was said */
    unsigned says;  /* how often */
    int idles;
    bool keep_trying;
    uint64_t grace_ns; /* of guard_up() … */
    const struct core_rules *rules;
    uid_t uid; /* of session_up() */
};

static void on_say(const char *text, void *user)
{
    struct world *w = user;

    size_t n = strlen(w->log);

    w->says++;
    (void)snprintf(w->said, sizeof w->said, "%s", text);
    (void)snprintf(w->log + n, sizeof w->log - n, "%s | ", text);
}

static void on_change(void *user)
{
    struct world *w = user;

    w->idles += w->guard && guard_is_idle(w->guard);
}

static void on_answer(const struct proto_answer *answer, void *user)
{
    struct world *w = user;

    if (w->n < 64)
        w->answer[w->n++] = *answer;
}

static int on_pause(struct loop_timer *timer, uint64_t now, void *user)
{
    struct world *w = user;

    (void)timer;
    (void)now;
    loop_stop(w->loop, 0);
    return 0;
}

/* Let ms of the world pass. */
static void pass(struct world *w, unsigned ms)
{
    loop_timer_set(w->pause, loop_now_ns(w->loop) + ms * NS_PER_MS, 0);
    (void)loop_run(w->loop, NULL);
}

static void guard_up(struct world *w)
{
    struct guard_opts opts = {.loop = w->loop,
                              .grace_ns = w->grace_ns,
                              .keep_trying = w->keep_trying,
                              .privileged = true,
                              .backend = &fake_backend,
                              .journal = &w->journal,
                              .rules = w->rules,
                              .say = on_say,
                              .on_change = on_change,
                              .user = w};

    ok(guard_new(&opts, &w->guard, NULL) == 0, "a guard");
}

static void session_up(struct world *w, pid_t client)
{
    const struct guard_client who = {.pid = client, .uid = w->uid};

    ok(guard_session_new(w->guard, &who, on_answer, w, &w->session, NULL) == 0,
       "a session");
}

static struct world *begin(const char *name)
{
    static struct world w;

    memset(&w, 0, sizeof w);
    printf("# %s\n", name);
    (void)loop_new_virtual(1000 * NS_PER_S, 0, &w.loop, NULL);
    (void)loop_timer_new(w.loop, UINT64_MAX, 0, on_pause, &w, &w.pause, NULL);
    fake_reset(w.loop);
    if (journal_open(top, &w.journal, NULL) < 0)
        ok(false, "the journal opens");
    guard_up(&w);
    session_up(&w, 77);
    return &w;
}

/* As if the process were killed: no clean-up of any board. */
__attribute__((unused)) static void die(struct world *w)
{
    guard_free(w->guard);
    w->guard = NULL;
    w->session = NULL;
}

static void finish(struct world *w)
{
    for (unsigned i = 0; i < 4; i++) {
        char uuid[8];
        (void)snprintf(uuid, sizeof uuid, "GPU-%u", i);
        (void)journal_remove(&w->journal, uuid, NULL);
    }
    guard_free(w->guard);
    loop_timer_free(w->pause);
    loop_free(w->loop);
    journal_close(&w->journal);
}

static uint32_t ask(struct world *w, enum proto_type type, const char *uuid, uint32_t a)
{
    struct proto_request request = proto_request(type, ++w->seq, uuid);

    request.a = a;
    request.b = type == PROTO_CLOCKS ? a : 0;
    guard_request(w->session, &request);
    return w->seq;
}

static const struct proto_answer *answer_to(struct world *w, uint32_t seq)
{
    static const struct proto_answer none = {.reply.result = ACTUATOR_N_RESULTS};

    for (size_t i = 0; i < w->n; i++)
        if (w->answer[i].seq == seq)
            return &w->answer[i];
    return &none;
}

__attribute__((unused)) static unsigned events(struct world *w, enum proto_type type)
{
    unsigned n = 0;

    for (size_t i = 0; i < w->n; i++)
        n += w->answer[i].seq == 0 && w->answer[i].type == type;
    return n;
}

/* Ask, wait, expect. */
__attribute__((unused)) static const struct proto_answer *expect(
    struct world *w, enum proto_type type, const char *uuid, uint32_t a,
    enum actuator_result want)
{
    static const char *const names[] = {"",       "hello", "hold",   "limit",
                                        "clocks", "renew", "release"};
    uint32_t seq = ask(w, type, uuid, a);

    pass(w, 200);
    const struct proto_answer *got = answer_to(w, seq);
    ok(got->reply.result == want, "%s %s %u: %s (%s)", names[type], uuid, a,
       names_word(NAMES_ACTUATOR_RESULT, want),
       got->reply.result == want ? got->reply.text
                                 : names_word(NAMES_ACTUATOR_RESULT, got->reply.result));
    return got;
}

__attribute__((unused)) static bool has_entry(struct world *w, const char *uuid)
{
    struct cap_entry e;

    return journal_read(&w->journal, uuid, &e, NULL) == 0;
}

#endif
