/* Locks that are given up soon, and holds that wait for them. */
#include "unit/actuator/guard-scene.h"

/* A pid that was a process of ours. */
static pid_t ended_pid(void)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    (void)waitpid(pid, NULL, 0);
    return pid;
}

/* A lock behind which no command stands is given up soon: a hold waits for it. */
static void test_passing(void)
{
    const struct {
        const char *name;
        pid_t client; /* that the lock names */
        unsigned passes_ms;
        enum actuator_result want;
        unsigned from_ms, until_ms; /* of the answer */
    } cases[] = {
        {"a recovery, for a while", getpid(), 1500, ACTUATOR_DONE, 1500, 1800},
        {"… for too long", getpid(), 60000, ACTUATOR_TAKEN, 5000, 5300},
        {"a restore after a command's end", ended_pid(), 4500, ACTUATOR_DONE, 4500, 4800},
        {"a command", getppid(), 1500, ACTUATOR_TAKEN, 0, 50},
    };

    for (size_t i = 0; i < n_elements(cases); i++) {
        struct world *w = begin(cases[i].name);
        struct holder holder;
        unsigned ms = 0;
        int fd = -1;
        (void)journal_lock(&w->journal, "GPU-1", cases[i].client, &fd, &holder, NULL);
        uint32_t seq = ask(w, PROTO_HOLD, "GPU-1", 0);
        for (; ms < 6000 && answer_to(w, seq)->seq != seq; ms += 50) {
            if (ms == cases[i].passes_ms) {
                journal_unlock(fd);
                fd = -1;
            }
            if (ms % 500 == 0)
                ask(w, PROTO_RENEW, "", 0);
            w->n = 0;
            pass(w, 50);
        }
        is_int(answer_to(w, seq)->reply.result, cases[i].want, "what it comes to");
        ok(ms >= cases[i].from_ms && ms <= cases[i].until_ms + 50, "… after %u ms", ms);
        if (fd >= 0)
            journal_unlock(fd);
        finish(w);
    }
}

/* Who does not wait for its hold to the end, and who gets the board afterwards. */
static void test_passing_left(void)
{
    struct world *w = begin("a hold that waits, and its client goes");
    struct holder holder;
    int fd = -1;

    (void)journal_lock(&w->journal, "GPU-1", getpid(), &fd, &holder, NULL);
    (void)ask(w, PROTO_HOLD, "GPU-1", 0);
    pass(w, 500);
    ok(!guard_is_idle(w->guard), "it waits");
    guard_session_free(w->session);
    pass(w, 300);
    ok(guard_is_idle(w->guard), "nobody waits any more");
    journal_unlock(fd);
    pass(w, 500);
    ok(!has_entry(w, "GPU-1"), "and nothing is held");

    session_up(w, 78);
    (void)journal_lock(&w->journal, "GPU-1", getpid(), &fd, &holder, NULL);
    uint32_t held = ask(w, PROTO_HOLD, "GPU-1", 0);
    pass(w, 300);
    uint32_t released = ask(w, PROTO_RELEASE, "GPU-1", 0);
    pass(w, 500);
    is_int(answer_to(w, held)->reply.result, ACTUATOR_TAKEN,
           "released while it waits: it is taken");
    is_int(answer_to(w, released)->reply.result, ACTUATOR_GONE, "… and was never held");
    journal_unlock(fd);
    expect(w, PROTO_HOLD, "GPU-1", 0, ACTUATOR_DONE);
    finish(w);
}

int main(void)
{
    if (!mkdtemp(top))
        return 1;
    test_passing();
    test_passing_left();
    remove_tree(top);
    return done();
}
