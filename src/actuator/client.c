#include "actuator/client.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actuator/core.h"
#include "actuator/guard.h"
#include "actuator/proto.h"
#include "base/error.h"
#include "base/units.h"
#include "gpu/counters.h"
#include "io/file.h"

enum {
    PENDING_MAX = 64,
    ANSWERS_MAX = 256, /* of a virtual actuator: answers arrive in the loop's next turn */
    RENEWS_UNANSWERED = 12, /* 6 s: it is gone or stopped, and its keeper too */
    RENEW_MS = 500,
    RENEW_JOIN_MS = ACTUATOR_RENEW_MS - RENEW_MS, /* sooner or later by that, to join
                                                   * another wake-up of the loop */
    RENEW_IDLE_MS = 2000, /* while nothing is held: to notice a dead actuator */
    RENEW_EARLY_MS = 500, /* earlier by up to this, to join another wake-up of the loop */
    HELD_MAX = 64,        /* boards that are tracked individually */
    START_S = 30,         /* until the hello */
    START_SUDO_S = 300,   /* time to type a password */
    START_SERVICE_S = 60, /* a service first restores what a killed actuator left */
};

struct pending {
    uint32_t seq; /* 0: free */
    enum proto_type type;
    char uuid[96];
    actuator_reply_fn fn;
    void *user;
};

struct held {
    char uuid[96];
    uint32_t seq; /* newest request to hold it */
};

enum state { STATE_STARTING, STATE_READY, STATE_ENDED };

struct actuator {
    struct loop *loop;
    struct actuator_opts opts;
    enum state state;
    unsigned depth; /* callbacks on the stack: the memory must not be freed */
    bool freed;
    uint32_t last_seq, hello_seq;
    struct pending pending[PENDING_MAX];
    struct loop_timer *renew, *deadline;
    unsigned unanswered;
    /* Boards that the actuator may hold for this client: from the request until the
     * answer that it does not.
     */
    struct held held[HELD_MAX];
    size_t n_held;
    bool many_held; /* more than there is room for */
    struct {
        uint32_t seq, next; /* seq 0: no request */
        actuator_counter_fn fn;
        void *user;
    } counters;

    /* The real actuator. */
    int fd;     /* -1: virtual, or closed */
    int got_fd; /* descriptor received with the current answer; -1: none */
    bool with_sudo;
    struct loop_fd *source;
    struct loop_child *child;

    /* The virtual actuator. */
    struct guard *guard; /* its own, or NULL: the service's */
    const struct actuator_virtual *service;
    uint64_t life; /* the service's life to which this session belongs */
    struct guard_session *session;
    struct loop_timer *flush;
    struct proto_answer *answer;
    size_t n_answers;
};

/* Whether the guard of a virtual service has ended, and with it its sessions. */
static bool service_gone(const struct actuator *act)
{
    return act->service && (!act->service->guard || act->service->life != act->life);
}

static bool service_stopped(const struct actuator *act)
{
    return act->service && act->service->stopped;
}

/* ---- freeing in callbacks ---- */

static void close_all(struct actuator *act)
{
    loop_timer_free(take(act->renew));
    loop_timer_free(take(act->deadline));
    loop_timer_free(take(act->flush));
    loop_fd_free(take(act->source));
    loop_child_free(take(act->child));
    if (act->fd >= 0)
        (void)close(act->fd);
    act->fd = -1;
    if (service_gone(act))
        act->session = NULL;
    guard_session_free(take(act->session));
}

static void release_memory(struct actuator *act)
{
    guard_free(act->guard);
    free(act->answer);
    free(act);
}

void actuator_free(struct actuator *act)
{
    if (!act || act->freed)
        return;
    act->freed = true;
    act->state = STATE_ENDED;
    close_all(act);
    if (act->depth == 0)
        release_memory(act);
}

static void enter(struct actuator *act)
{
    act->depth++;
}

/* Returns a callback's result, and frees act if the callback has requested that. */
static int leave(struct actuator *act, int r)
{
    if (--act->depth == 0 && act->freed)
        release_memory(act);
    return r;
}

/* ---- renewals ---- */

/* Converts kernel time to the loop's time. */
static uint64_t loop_ms(const struct loop *loop, double ms)
{
    return ns_of_s(ms * 1e-3 * loop_speed(loop));
}

static bool holds(const struct actuator *act)
{
    return act->n_held > 0 || act->many_held;
}

/* Virtual time has no wake-ups to join. */
static void renew_next(struct actuator *act)
{
    bool soon = holds(act) || act->state != STATE_READY || act->unanswered > 1;
    int early = act->session ? 0 : soon ? RENEW_JOIN_MS : RENEW_EARLY_MS;
    int due = act->session || soon ? RENEW_MS : RENEW_IDLE_MS;

    loop_timer_set(act->renew, loop_now_ns(act->loop) + loop_ms(act->loop, due - early),
                   0);
    loop_timer_slack(act->renew, loop_ms(act->loop, early + RENEW_JOIN_MS));
}

static struct held *find_held(struct actuator *act, const char *uuid)
{
    for (size_t i = 0; i < act->n_held; i++)
        if (strcmp(act->held[i].uuid, uuid) == 0)
            return &act->held[i];
    return NULL;
}

static void note_hold(struct actuator *act, const char *uuid, uint32_t seq)
{
    struct held *h = find_held(act, uuid);
    bool held = holds(act);

    if (!h && act->n_held < HELD_MAX)
        h = &act->held[act->n_held++];
    act->many_held |= !h;
    if (h) {
        (void)snprintf(h->uuid, sizeof h->uuid, "%s", uuid);
        h->seq = seq;
    }
    if (!held && !act->session)
        renew_next(act);
}

/* Notes the answer to a request to hold or to release a board. */
static void note_answer(struct actuator *act, const struct pending *asked,
                        enum actuator_result result)
{
    bool hold = asked->type == PROTO_HOLD;
    bool gone = hold ? result == ACTUATOR_DENIED || result == ACTUATOR_TAKEN ||
                           result == ACTUATOR_GONE
                     : result == ACTUATOR_DONE;
    struct held *h = gone && asked->type != PROTO_LIMIT && asked->type != PROTO_CLOCKS
                         ? find_held(act, asked->uuid)
                         : NULL;

    if (h && (int32_t)(asked->seq - h->seq) >= 0) /* not held again in between */
        *h = act->held[--act->n_held];
}

/* ---- answers ---- */

static int fail_start(struct actuator *act, int r, const char *text)
{
    act->state = STATE_ENDED;
    close_all(act);
    return act->opts.on_ready(act, r, text, act->opts.user);
}

/* The actuator has ended: answers all requests and notifies the owner. */
static int end_session(struct actuator *act, const char *text)
{
    struct actuator_reply reply = {.result = ACTUATOR_GONE};
    int r = 0;

    act->state = STATE_ENDED;
    close_all(act);
    (void)snprintf(reply.text, sizeof reply.text, "%s", text);
    for (size_t i = 0; r == 0 && !act->freed && i < PENDING_MAX; i++) {
        struct pending asked = act->pending[i];
        act->pending[i].seq = 0;
        if (!asked.seq || !asked.fn)
            continue;
        memcpy(reply.uuid, asked.uuid, sizeof reply.uuid);
        r = asked.fn(act, &reply, asked.user);
    }
    if (r == 0 && !act->freed && act->counters.seq) {
        act->counters.seq = 0;
        r = act->counters.fn(act, NULL, -1, act->counters.user);
    }
    reply.uuid[0] = '\0';
    if (r == 0 && !act->freed)
        r = act->opts.on_event(act, ACTUATOR_EVENT_ENDED, &reply, act->opts.user);
    return r;
}

static int on_hello(struct actuator *act, const struct actuator_reply *reply)
{
    if (act->state != STATE_STARTING)
        return 0;
    if (reply->result != ACTUATOR_DONE)
        return fail_start(act, reply->result == ACTUATOR_DENIED ? -EPERM : -EIO,
                          reply->text[0] ? reply->text
                                         : "the actuator refused, and gave no reason");
    act->state = STATE_READY;
    loop_timer_free(take(act->deadline));
    return act->opts.on_ready(act, 0, "", act->opts.user);
}

static int on_event(struct actuator *act, unsigned type,
                    const struct actuator_reply *reply)
{
    enum actuator_event event = type == PROTO_YIELDED      ? ACTUATOR_EVENT_YIELDED
                                : type == PROTO_LEASE_OVER ? ACTUATOR_EVENT_LEASE
                                : type == PROTO_WRITING    ? ACTUATOR_EVENT_WRITING
                                : type == PROTO_BOARD      ? ACTUATOR_EVENT_BOARD
                                                           : ACTUATOR_EVENT_LOST;
    return act->opts.on_event(act, event, reply, act->opts.user);
}

static int ask_counter(struct actuator *act);

static int on_counter(struct actuator *act, const struct actuator_reply *reply)
{
    struct stat st;
    int r = 0;

    act->counters.seq = 0;
    bool good = reply->result == ACTUATOR_DONE && act->got_fd >= 0 &&
                gpu_counters_has_name(reply->text) && fstat(act->got_fd, &st) == 0 &&
                S_ISREG(st.st_mode);
    if (good)
        r = act->counters.fn(act, reply->text, fd_take(&act->got_fd), act->counters.user);
    if (r < 0 || act->freed)
        return r;
    if (good && act->counters.next < GPU_COUNTERS_MAX && ask_counter(act) == 0)
        return 0;
    return act->counters.fn(act, NULL, -1, act->counters.user);
}

static int on_answer(struct actuator *act, const struct proto_answer *answer)
{
    struct actuator_reply reply = answer->reply;

    act->unanswered = 0;
    if (answer->seq == 0)
        return on_event(act, answer->type, &reply);
    if (answer->seq == act->hello_seq)
        return on_hello(act, &reply);
    if (answer->seq == act->counters.seq)
        return on_counter(act, &reply);
    for (size_t i = 0; i < PENDING_MAX; i++) {
        struct pending asked = act->pending[i];
        if (asked.seq != answer->seq)
            continue;
        act->pending[i].seq = 0;
        note_answer(act, &asked, reply.result);
        return asked.fn ? asked.fn(act, &reply, asked.user) : 0;
    }
    return 0; /* the answer to a renewal */
}

/* ---- requests ---- */

static void take_virtual(const struct proto_answer *answer, void *user);

static int send_request(struct actuator *act, const struct proto_request *request)
{
    if (act->session) {
        if (service_gone(act))
            return -ENOTCONN;
        if (service_stopped(act))
            return -EAGAIN;
        guard_request(act->session, request);
        return 0;
    }
    ssize_t n = send(act->fd, request, sizeof *request, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == ENOBUFS))
        return -EAGAIN;
    return n == (ssize_t)sizeof *request ? 0 : -ENOTCONN;
}

static uint32_t next_seq(struct actuator *act)
{
    if (++act->last_seq == 0)
        act->last_seq = 1;
    return act->last_seq;
}

static int ask(struct actuator *act, struct proto_request request, actuator_reply_fn fn,
               void *user)
{
    size_t i = 0;

    if (act->state != STATE_READY)
        return -ENOTCONN;
    if (request.type != PROTO_RENEW && !core_is_uuid(request.uuid))
        return -EINVAL;
    while (i < PENDING_MAX && act->pending[i].seq)
        i++;
    if (i == PENDING_MAX)
        return -EAGAIN;
    request.seq = next_seq(act);
    act->pending[i] = (struct pending){.seq = request.seq,
                                       .type = (enum proto_type)request.type,
                                       .fn = fn,
                                       .user = user};
    memcpy(act->pending[i].uuid, request.uuid, sizeof request.uuid);
    int r = send_request(act, &request);
    if (r < 0)
        act->pending[i].seq = 0;
    else if (request.type == PROTO_HOLD)
        note_hold(act, request.uuid, request.seq);
    return r;
}

int actuator_hold(struct actuator *act, const char *uuid, actuator_reply_fn fn,
                  void *user)
{
    return ask(act, proto_request(PROTO_HOLD, 1, uuid), fn, user);
}

int actuator_hold_again(struct actuator *act, const char *uuid, bool keep_original,
                        actuator_reply_fn fn, void *user)
{
    struct proto_request request = proto_request(PROTO_HOLD, 1, uuid);

    request.a = keep_original ? PROTO_AGAIN_KEEP : PROTO_AGAIN_FOUND;
    return ask(act, request, fn, user);
}

int actuator_release(struct actuator *act, const char *uuid, actuator_reply_fn fn,
                     void *user)
{
    return ask(act, proto_request(PROTO_RELEASE, 1, uuid), fn, user);
}

int actuator_look(struct actuator *act, actuator_reply_fn fn, void *user)
{
    return ask(act, proto_request(PROTO_RENEW, 1, NULL), fn, user);
}

int actuator_detach(struct actuator *act, const char *uuid, actuator_reply_fn fn,
                    void *user)
{
    return ask(act, proto_request(PROTO_DETACH, 1, uuid), fn, user);
}

int actuator_set_limit(struct actuator *act, const char *uuid, uint32_t mw,
                       actuator_reply_fn fn, void *user)
{
    struct proto_request request = proto_request(PROTO_LIMIT, 1, uuid);

    request.a = mw;
    return ask(act, request, fn, user);
}

int actuator_set_clocks(struct actuator *act, const char *uuid, uint32_t min_mhz,
                        uint32_t max_mhz, actuator_reply_fn fn, void *user)
{
    struct proto_request request = proto_request(PROTO_CLOCKS, 1, uuid);

    request.a = min_mhz;
    request.b = max_mhz;
    return ask(act, request, fn, user);
}

static int ask_counter(struct actuator *act)
{
    struct proto_request request = proto_request(PROTO_COUNTER, next_seq(act), NULL);

    request.a = act->counters.next++;
    act->counters.seq = request.seq;
    int r = act->session ? -ENOTCONN : send_request(act, &request);
    if (r < 0)
        act->counters.seq = 0;
    return r;
}

int actuator_counters(struct actuator *act, actuator_counter_fn fn, void *user)
{
    if (act->state != STATE_READY)
        return -ENOTCONN;
    if (act->counters.seq)
        return -EBUSY;
    act->counters.next = 0;
    act->counters.fn = fn;
    act->counters.user = user;
    return ask_counter(act);
}

static int on_renew_due(struct loop_timer *timer, uint64_t now, void *user)
{
    struct actuator *act = user;

    (void)timer;
    if (act->state == STATE_ENDED)
        return 0;
    renew_next(act);
    if (service_stopped(act))
        return 0;
    enter(act);
    if (service_gone(act))
        return leave(act, act->state == STATE_STARTING
                              ? fail_start(act, -ECONNREFUSED, "the actuator has ended")
                              : end_session(act, "the actuator has ended"));
    if (act->state != STATE_READY)
        return leave(act, 0);
    if (act->n_answers)
        loop_timer_set(act->flush, now, 0);
    if (++act->unanswered > RENEWS_UNANSWERED)
        return leave(act, end_session(act, "the actuator does not answer"));
    struct proto_request request = proto_request(PROTO_RENEW, next_seq(act), NULL);
    (void)send_request(act, &request);
    return leave(act, 0);
}

/* ---- the real kind ---- */

/* The descriptor that came with a message; -1: none, or several, which are closed. */
static int take_fd(struct msghdr *message)
{
    const struct cmsghdr *c = CMSG_FIRSTHDR(message);
    int fd = -1;

    if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
        return -1;
    size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof fd;
    for (size_t i = 0; i < n; i++) {
        memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
        if (n > 1)
            (void)close(fd);
    }
    return n == 1 ? fd : -1;
}

/* Receives a message, and the descriptor that came with it in *ret_fd (-1: none). */
static ssize_t receive(int fd, void *data, size_t size, int *ret_fd)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec vector = {.iov_base = data, .iov_len = size};
    struct msghdr message = {.msg_iov = &vector,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};

    ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    *ret_fd = n < 0 ? -1 : take_fd(&message);
    return n;
}

static int on_readable(struct loop_fd *source, int fd, int events, void *user)
{
    struct actuator *act = user;
    struct proto_answer answer;
    char data[sizeof answer + 1];
    int r = 0;

    (void)source;
    (void)events;
    enter(act);
    while (r == 0 && !act->freed && act->fd >= 0) {
        ssize_t n = receive(fd, data, sizeof data, &act->got_fd);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (n > 0 && proto_parse_answer(data, (size_t)n, &answer, NULL) == 0) {
            r = on_answer(act, &answer);
        } else if (act->state == STATE_STARTING && !act->child) {
            r = fail_start(act, -ECONNRESET,
                           "the actuator's service has closed the connection: may this "
                           "user connect (see its log, and clients in actuator.yaml)?");
        } else if (act->state == STATE_STARTING) {
            loop_fd_free(take(
                act->source)); /* its exit status gives the reason: see on_exit_of() */
            break;
        } else {
            r = end_session(act, "the actuator has closed the connection");
        }
        fd_close_p(&act->got_fd);
        act->got_fd = -1;
    }
    return leave(act, r);
}

static int on_exit_of(struct loop_child *child, int status, void *user)
{
    struct actuator *act = user;
    char text[256];

    (void)child;
    if (act->state != STATE_STARTING)
        return 0; /* the socket reports the end */
    enter(act);
    if (act->with_sudo)
        (void)snprintf(
            text, sizeof text,
            "no permission to set power limits: sudo did not start the actuator "
            "(status %d); this needs root, or a sudo rule for underwatt-actuator",
            WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    else
        (void)snprintf(text, sizeof text,
                       "the actuator ended with status %d as it started",
                       WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    return leave(act, fail_start(act, act->with_sudo ? -EPERM : -EIO, text));
}

static int on_start_late(struct loop_timer *timer, uint64_t now, void *user)
{
    struct actuator *act = user;

    (void)timer;
    (void)now;
    if (act->state != STATE_STARTING)
        return 0;
    enter(act);
    return leave(act,
                 fail_start(act, -ETIMEDOUT,
                            "the actuator did not start in time: does the driver hang?"));
}

static bool program_at(char *ret, size_t size, const char *dir, const char *name)
{
    int n = snprintf(ret, size, "%s/%s", dir, name);

    return n > 0 && (size_t)n < size && access(ret, X_OK) == 0;
}

bool actuator_find_program(char *ret, size_t size)
{
    char here[PATH_MAX];
    bool built = false;

    return (file_program_dir(here, sizeof here, &built) == 0 &&
            (program_at(ret, size, here, "underwatt-actuator") ||
             program_at(ret, size, here, "../libexec/underwatt-actuator") ||
             (built && program_at(ret, size, here, "../actuator/underwatt-actuator")))) ||
           program_at(ret, size, "/usr/libexec", "underwatt-actuator") ||
           program_at(ret, size, "/usr/sbin", "underwatt-actuator");
}

static int start_program(struct actuator *act, int socket_fd, uw_error *err)
{
    char found[PATH_MAX + 64];
    const char *program = act->opts.program;
    const char *argv[8];
    size_t n = 0;

    if (!program) {
        if (!actuator_find_program(found, sizeof found))
            return fail(err, -ENOENT,
                        "underwatt-actuator is not installed beside underwatt");
        program = found;
    }
    act->with_sudo = geteuid() != 0 && !act->opts.simulated;
    if (act->with_sudo) {
        argv[n++] = "sudo";
        argv[n++] = "--";
    }
    argv[n++] = program;
    argv[n++] = "--local";
    if (act->opts.library) {
        argv[n++] = "--library";
        argv[n++] = act->opts.library;
    }
    argv[n] = NULL;
    struct loop_child_opts child = {
        .argv = argv, .stdin_fd = socket_fd, .stdout_fd = STDERR_FILENO, .stderr_fd = -1};
    int r = loop_child_new(act->loop, &child, on_exit_of, act, &act->child, err);
    if (r == -ENOENT && act->with_sudo)
        return fail(
            err, -EPERM,
            "no permission to set power limits as uid %u, and there is no sudo: run as "
            "root",
            geteuid());
    return r;
}

static int say_hello(struct actuator *act)
{
    act->hello_seq = next_seq(act);
    struct proto_request hello = proto_request(PROTO_HELLO, act->hello_seq, NULL);

    hello.a = PROTO_REVISION;
    return send_request(act, &hello);
}

static int start_timers(struct actuator *act, uw_error *err)
{
    int r = loop_timer_new(act->loop, UINT64_MAX, 0, on_renew_due, act, &act->renew, err);

    if (r == 0)
        renew_next(act);
    return r;
}

static struct actuator *new_actuator(struct loop *loop, const struct actuator_opts *opts)
{
    struct actuator *act = calloc(1, sizeof *act);

    if (act) {
        act->loop = loop;
        act->opts = *opts;
        act->fd = act->got_fd = -1;
    }
    return act;
}

int actuator_start_local(struct loop *loop, const struct actuator_opts *opts,
                         struct actuator **ret, uw_error *err)
{
    int pair[2];
    auto_(actuator_free) struct actuator *act = new_actuator(loop, opts);

    if (!act)
        return fail(err, -ENOMEM, "out of memory");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return fail(err, -errno, "socketpair: %s", strerror(errno));
    act->fd = pair[0];
    int r = start_program(act, pair[1], err);
    (void)close(pair[1]);
    if (r == 0)
        r = loop_fd_new(loop, act->fd, LOOP_READ, on_readable, act, &act->source, err);
    if (r == 0)
        r = start_timers(act, err);
    if (r == 0)
        r = loop_timer_new(
            loop,
            loop_now_ns(loop) +
                loop_ms(loop, (act->with_sudo ? START_SUDO_S : START_S) * 1e3),
            0, on_start_late, act, &act->deadline, err);
    if (r < 0)
        return r;
    (void)say_hello(act);
    *ret = take(act);
    return 0;
}

/* ---- the service ---- */

/* Only root and this process's uid may listen as the actuator. */
static int check_service(int fd, const char *path, uw_error *err)
{
    struct ucred who = {0};
    socklen_t len = sizeof who;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    if (who.uid != 0 && who.uid != geteuid())
        return fail(err, -EPERM, "%s: uid %u listens there, not root: refused", path,
                    who.uid);
    return 0;
}

static int dial(const char *path, int *ret_fd, uw_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(path);

    if (path[0] != '/' || len >= sizeof address.sun_path)
        return fail(err, -EINVAL, "%s: not an absolute path of at most %zu bytes", path,
                    sizeof address.sun_path - 1);
    memcpy(address.sun_path, path, len + 1);
    auto_(fd_close) int fd =
        socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) < 0)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    int r = check_service(fd, path, err);
    if (r == 0)
        *ret_fd = fd_take(&fd);
    return r;
}

int actuator_connect(struct loop *loop, const char *path,
                     const struct actuator_opts *opts, struct actuator **ret,
                     uw_error *err)
{
    auto_(actuator_free) struct actuator *act = new_actuator(loop, opts);

    if (!act)
        return fail(err, -ENOMEM, "out of memory");
    int r = dial(path, &act->fd, err);
    if (r == 0)
        r = loop_fd_new(loop, act->fd, LOOP_READ, on_readable, act, &act->source, err);
    if (r == 0)
        r = start_timers(act, err);
    if (r == 0)
        r = loop_timer_new(loop, loop_now_ns(loop) + loop_ms(loop, START_SERVICE_S * 1e3),
                           0, on_start_late, act, &act->deadline, err);
    if (r == 0 && say_hello(act) < 0)
        r = fail(err, -ECONNREFUSED, "%s: the actuator closed the connection at once",
                 path);
    if (r < 0)
        return r;
    *ret = take(act);
    return 0;
}

/* ---- the virtual kind ---- */

static void take_virtual(const struct proto_answer *answer, void *user)
{
    struct actuator *act = user;

    if (act->n_answers == ANSWERS_MAX)
        return; /* cannot happen: there is room for all requests and events */
    act->answer[act->n_answers++] = *answer;
    if (act->flush)
        loop_timer_set(act->flush, loop_now_ns(act->loop), 0);
}

static int on_flush(struct loop_timer *timer, uint64_t now, void *user)
{
    struct actuator *act = user;
    int r = 0;

    (void)timer;
    (void)now;
    if (service_stopped(act))
        return 0; /* the next renewal checks again */
    enter(act);
    for (size_t i = 0; r == 0 && !act->freed && i < act->n_answers; i++) {
        struct proto_answer answer = act->answer[i];
        r = on_answer(act, &answer);
    }
    act->n_answers = 0;
    return leave(act, r);
}

/* A session with the guard, and the receiver of its answers. */
static int join_guard(struct actuator *act, struct guard *guard, uw_error *err)
{
    const struct guard_client self = {.pid = getpid(), .uid = geteuid()};

    act->answer = calloc(ANSWERS_MAX, sizeof *act->answer);
    if (!act->answer)
        return fail(err, -ENOMEM, "out of memory");
    int r = loop_timer_new(act->loop, loop_now_ns(act->loop), 0, on_flush, act,
                           &act->flush, err);
    if (r == 0)
        r = guard_session_new(guard, &self, take_virtual, act, &act->session, err);
    return r < 0 ? r : start_timers(act, err);
}

int actuator_start_virtual(struct loop *loop, const struct gpu_backend *backend,
                           void *lib, const struct actuator_opts *opts,
                           struct actuator **ret, uw_error *err)
{
    auto_(actuator_free) struct actuator *act = new_actuator(loop, opts);

    if (!act)
        return fail(err, -ENOMEM, "out of memory");
    struct guard_opts guard = {.loop = loop,
                               .backend = backend,
                               .lib = lib,
                               .rules = opts->rules,
                               .keep_trying = true};
    int r = guard_new(&guard, &act->guard, err);
    if (r == 0)
        r = join_guard(act, act->guard, err);
    if (r < 0)
        return r;
    (void)say_hello(act);
    *ret = take(act);
    return 0;
}

int actuator_connect_virtual(struct loop *loop, const struct actuator_virtual *service,
                             const struct actuator_opts *opts, struct actuator **ret,
                             uw_error *err)
{
    if (!service->guard)
        return fail(err, -ECONNREFUSED, "the virtual actuator does not run");
    auto_(actuator_free) struct actuator *act = new_actuator(loop, opts);
    if (!act)
        return fail(err, -ENOMEM, "out of memory");
    act->service = service;
    act->life = service->life;
    int r = join_guard(act, service->guard, err);
    if (r < 0)
        return r;
    if (say_hello(act) < 0)
        return fail(err, -EAGAIN, "the virtual actuator does not listen");
    *ret = take(act);
    return 0;
}
