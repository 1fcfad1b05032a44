/* Locks that are given up soon, and holds that wait for them. */
#include <signal.h>
#include <sys/prctl.h>

#include "unit/actuator/guard-scene.h"

static unsigned locks_reads; /* of /proc/locks */

/* The linker's --wrap sends the calls of file_read() here. */
int __real_file_read(const char *path, size_t max, char **ret_text, size_t *ret_len,
                     uw_error *err);
int __wrap_file_read(const char *path, size_t max, char **ret_text, size_t *ret_len,
                     uw_error *err);
int __wrap_file_read(const char *path, size_t max, char **ret_text, size_t *ret_len,
                     uw_error *err)
{
    locks_reads += strcmp(path, "/proc/locks") == 0;
    return __real_file_read(path, max, ret_text, ret_len, err);
}

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

/* The newest event about a board. */
static const struct actuator_reply *board_told(const struct world *w, const char *uuid)
{
    static const struct actuator_reply none = {.result = ACTUATOR_N_RESULTS};
    const struct actuator_reply *last = &none;

    for (size_t i = 0; i < w->n; i++)
        if (w->answer[i].type == PROTO_BOARD &&
            strcmp(w->answer[i].reply.uuid, uuid) == 0)
            last = &w->answer[i].reply;
    return last;
}

/* A child that holds GPU-1 for the client getppid(). */
static pid_t held_by_child(struct world *w)
{
    pid_t client = getppid();
    struct holder holder;
    int fd = -1, ready[2];
    char byte = 0;

    if (pipe(ready) < 0)
        return -1;
    pid_t child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        byte = journal_lock(&w->journal, "GPU-1", client, &fd, &holder, NULL) == 0;
        if (write(ready[1], &byte, 1) == 1)
            (void)pause();
        _exit(0);
    }
    (void)close(ready[1]);
    ok(read(ready[0], &byte, 1) == 1 && byte, "a child takes the lock");
    (void)close(ready[0]);
    return child;
}

/* Another Underwatt holds a board: who, and which limit it has found. */
static void test_others(void)
{
    const struct core_rules rules = {.from = {.percent = 60}, .to = {.mw = 240000}};
    struct cap_entry entry = {.uuid = "GPU-1", .original_mw = 260000};
    struct world *w = begin("boards that another Underwatt holds");
    struct holder holder;
    char says[64];
    int fd = -1;

    die(w);
    w->rules = &rules;
    guard_up(w);
    session_up(w, 77);
    (void)ask(w, PROTO_HELLO, NULL, 0);
    const struct actuator_reply *told = board_told(w, "GPU-1");
    ok(w->answer[0].type == PROTO_HELLO && events(w, PROTO_BOARD) == 4,
       "after the hello each board");
    ok(told->result == ACTUATOR_DONE && told->from.ppm == 600000 && told->to.mw == 240000,
       "root's range, and nobody else");
    (void)journal_lock(&w->journal, "GPU-1", getppid(), &fd, &holder, NULL);
    (void)snprintf(entry.boot, sizeof entry.boot, "%s", w->journal.boot);
    (void)journal_write(&w->journal, &entry, NULL);
    (void)ask(w, PROTO_RENEW, NULL, 0);
    told = board_told(w, "GPU-1");
    (void)snprintf(says, sizeof says, "(pid %d, ", (int)getppid());
    ok(told->result == ACTUATOR_TAKEN && told->pid == getppid() &&
           told->original_mw == 260000 && strstr(told->text, says) &&
           strstr(told->text, ", original 260 W"),
       "another holds one: %s", told->text);
    (void)ask(w, PROTO_RENEW, NULL, 0);
    ok(events(w, PROTO_BOARD) == 5 && w->answer[w->n - 1].type == PROTO_RENEW,
       "told once, before the answer");
    journal_unlock(fd);
    pid_t child = held_by_child(w);
    (void)ask(w, PROTO_RENEW, NULL, 0);
    ok(events(w, PROTO_BOARD) == 6 && !strstr(board_told(w, "GPU-1")->text, "stopped"),
       "another process has the lock for the same client");
    (void)kill(child, SIGSTOP);
    (void)waitpid(child, NULL, WUNTRACED);
    (void)ask(w, PROTO_RENEW, NULL, 0);
    told = board_told(w, "GPU-1");
    ok(events(w, PROTO_BOARD) == 7 && told->pid == getppid() &&
           strstr(told->text, " is stopped), original 260 W"),
       "the process is stopped: %s", told->text);
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    (void)journal_remove(&w->journal, "GPU-1", NULL);
    (void)ask(w, PROTO_HELLO, NULL, 0);
    ok(board_told(w, "GPU-1")->result == ACTUATOR_DONE && events(w, PROTO_BOARD) == 11,
       "it has ended: told once, also where a client says hello then");
    expect(w, PROTO_HOLD, "GPU-1", 0, ACTUATOR_DONE);
    (void)ask(w, PROTO_RENEW, NULL, 0);
    is_int(events(w, PROTO_BOARD), 11, "a hold of our own is nobody else's");
    finish(w);
}

/* Several boards are looked at with one list of locks. */
static void test_others_at_once(void)
{
    struct world *w = begin("all boards are held by another Underwatt");
    static const enum proto_type types[] = {PROTO_HELLO, PROTO_RENEW};
    struct holder holder;
    int fd[4] = {-1, -1, -1, -1};
    const size_t n = n_elements(fd);

    for (size_t i = 0; i < n; i++) {
        struct cap_entry entry = {.original_mw = 260000};
        (void)snprintf(entry.uuid, sizeof entry.uuid, "GPU-%zu", i);
        (void)snprintf(entry.boot, sizeof entry.boot, "%s", w->journal.boot);
        (void)journal_lock(&w->journal, entry.uuid, getppid(), &fd[i], &holder, NULL);
        (void)journal_write(&w->journal, &entry, NULL);
    }
    for (size_t k = 0; k < n_elements(types); k++) {
        size_t taken = 0;
        w->n = 0;
        locks_reads = 0;
        (void)ask(w, types[k], NULL, 0);
        is_int(locks_reads, 1, "one read for all boards");
        for (size_t i = 0; i < w->n; i++)
            taken += w->answer[i].reply.result == ACTUATOR_TAKEN;
        is_int((long)taken, (long)(k == 0 ? n : 0), "each is held, which is told once");
    }
    for (size_t i = 0; i < n; i++)
        journal_unlock(fd[i]);
    (void)ask(w, PROTO_RENEW, NULL, 0);
    is_int(board_told(w, "GPU-0")->result, ACTUATOR_DONE, "the next read is a new one");
    finish(w);
}

int main(void)
{
    if (!mkdtemp(top))
        return 1;
    test_passing();
    test_passing_left();
    test_others();
    test_others_at_once();
    remove_tree(top);
    return done();
}
