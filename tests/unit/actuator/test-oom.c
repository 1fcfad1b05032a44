/* Each allocation of the guard and of the client fails once. */
#include <stdlib.h>
#include <unistd.h>

#include "actuator/client.h"
#include "actuator/guard.h"
#include "base/auto.h"
#include "oom.h"
#include "tap.h"
#include "unit/actuator/fake.h"
#include "virtual/virtual-loop.h"

static const struct guard_client client = {.pid = 1};
static char top[] = "/tmp/test-oom-XXXXXX";

static int on_ready(struct actuator *act, int r, const char *text, void *user)
{
    (void)act;
    (void)r;
    (void)text;
    (void)user;
    return 0;
}

static int on_event(struct actuator *act, enum actuator_event event,
                    const struct actuator_reply *what, void *user)
{
    (void)act;
    (void)event;
    (void)what;
    (void)user;
    return 0;
}

static int start_and_free(void *user)
{
    const struct actuator_opts opts = {.on_ready = on_ready, .on_event = on_event};
    struct actuator *act = NULL;

    int r = actuator_start_virtual(user, &fake_backend, NULL, &opts, &act, NULL);
    actuator_free(act);
    return r;
}

static void on_answer(const struct proto_answer *answer, void *user)
{
    (void)answer;
    (void)user;
}

static int session_and_free(void *user)
{
    struct guard_session *session = NULL;

    int r = guard_session_new(user, &client, on_answer, NULL, &session, NULL);
    guard_session_free(session);
    return r;
}

/* A hold whose worker cannot be had is answered, and the board is free again. */
struct hold {
    struct guard *guard;
    struct loop *loop;
    enum actuator_result result;
};

static void on_hold(const struct proto_answer *answer, void *user)
{
    struct hold *h = user;

    if (answer->type == PROTO_HOLD)
        h->result = answer->reply.result;
    loop_stop(h->loop, 0);
}

static void test_hold(struct loop *loop, const struct guard_opts *opts)
{
    struct proto_request hold = proto_request(PROTO_HOLD, 1, "GPU-0");
    unsigned done = 0;

    for (unsigned long nth = 1; nth < 20; nth++) {
        struct hold h = {.loop = loop, .result = ACTUATOR_N_RESULTS};
        struct guard_session *session = NULL;
        if (guard_new(opts, &h.guard, NULL) < 0 ||
            guard_session_new(h.guard, &client, on_hold, &h, &session, NULL) < 0)
            ok(false, "a session");
        oom_fail_at(nth);
        guard_request(session, &hold);
        (void)loop_run(loop, NULL);
        oom_fail_at(0);
        if (h.result != ACTUATOR_DONE && h.result != ACTUATOR_UNKNOWN &&
            h.result != ACTUATOR_REFUSED)
            ok(false, "allocation %lu: answered with %d", nth, h.result);
        done += h.result == ACTUATOR_DONE;
        if (h.result != ACTUATOR_DONE)
            ok(guard_is_idle(h.guard), "allocation %lu fails: refused, board free", nth);
        guard_free(h.guard);
    }
    ok(done > 0 && done < 19, "some failed, those beyond the last one did not");
}

int main(void)
{
    struct journal journal;
    struct loop *loop = NULL;
    struct guard *guard = NULL;

    if (!mkdtemp(top) || journal_open(top, &journal, NULL) < 0 ||
        loop_new_virtual(0, 0, &loop, NULL) < 0)
        return skip_all("no temporary folder");
    fake_reset(loop);
    oom_each("actuator_start_virtual", start_and_free, loop);
    const struct guard_opts opts = {
        .loop = loop, .backend = &fake_backend, .journal = &journal};
    ok(guard_new(&opts, &guard, NULL) == 0, "a guard");
    oom_each("guard_session_new", session_and_free, guard);
    guard_free(guard);
    test_hold(loop, &opts);
    loop_free(loop);
    (void)unlinkat(journal.dir_fd, "GPU-0.lock", 0);
    journal_close(&journal);
    ok(rmdir(top) == 0, "nothing but the lock was left");
    return done();
}
