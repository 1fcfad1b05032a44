#include "sim/server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "io/loop.h"
#include "sim/reset.h"
#include "sim/state.h"
#include "sim/statedir.h"
#include "sim/world.h"

enum {
    CLIENTS_MAX = 256,
    BUSY_TICK_MS = 4,  /* wall time between publications while a job runs */
    IDLE_TICK_MS = 20, /* the same without a job */
    TICKS_A_LOOK = 10, /* ticks between checks for stopped processes */
    NO_JOB = -1,
};

struct server;

struct client {
    struct server *server;
    int fd;
    struct loop_fd *source;
    struct loop_timer *answer; /* a reply that waits for the set latency */
    struct sim_reply reply;
    struct ucred who;
    int job;     /* its id, or NO_JOB */
    bool driven; /* the job does what this client grants */
    bool told;   /* the job's first state was sent */
    struct sim_job_state last;
};

struct server {
    const struct sim_machine *machine;
    struct loop *loop;
    struct loop_clock clock;
    struct sim_world *world;
    struct statedir dir;
    struct loop_fd *listener;
    struct loop_timer *tick;
    struct loop_timer *event; /* the boards of a driven job change something */
    struct loop_signal *term, *interrupt;
    struct client *client[CLIENTS_MAX];
    bool busy;
    unsigned n_ticks;
};

/* ---- publishing ---- */

static uint64_t boot_ns(const struct server *s, uint64_t now_ns)
{
    double since = (double)(int64_t)(now_ns - s->clock.t0_ns) / s->clock.speed;

    return s->clock.t0_ns + (uint64_t)(since > 0 ? since : 0);
}

static void publish(struct server *s, uint64_t now_ns)
{
    struct sim_page *page = s->dir.page;
    uint64_t utc_us = (uint64_t)loop_utc_ns(s->loop) / NS_PER_US;

    for (size_t i = 0; i < sim_world_n_boards(s->world); i++) {
        struct sim_board *b = &page->board[i];
        struct sim_readings readings;
        struct sim_procs procs;

        sim_world_readings(s->world, i, &readings);
        sim_world_procs(s->world, i, utc_us, &procs);
        sim_seq_write(&b->procs_seq, &b->procs, &procs, sizeof procs / 8);
        sim_seq_write(&b->readings_seq, &b->readings, &readings, sizeof readings / 8);
    }
    __atomic_store_n(&page->n_jobs, sim_world_n_jobs(s->world), __ATOMIC_RELAXED);
    __atomic_store_n(&page->load_id, sim_world_load_id(s->world), __ATOMIC_RELAXED);
    __atomic_store_n(&page->driver_gone, sim_world_driver_gone(s->world) ? 1 : 0,
                     __ATOMIC_RELEASE);
    __atomic_store_n(&page->beat_ns, boot_ns(s, now_ns), __ATOMIC_RELEASE);
}

static void client_free(struct client *c)
{
    if (!c)
        return;
    if (c->job != NO_JOB)
        sim_world_job_remove(c->server->world, (unsigned)c->job);
    loop_timer_free(c->answer);
    loop_fd_free(c->source);
    (void)close(c->fd);
    free(c);
}

static void drop(struct client *c)
{
    struct server *s = c->server;

    for (size_t i = 0; i < CLIENTS_MAX; i++)
        if (s->client[i] == c)
            s->client[i] = NULL;
    client_free(c);
}

/* False if the client does not read: the server does not wait for a client. */
static bool send_reply(const struct client *c, const struct sim_reply *reply)
{
    return send(c->fd, reply, sizeof *reply, MSG_DONTWAIT | MSG_NOSIGNAL) ==
           (ssize_t)sizeof *reply;
}

static bool answer(struct client *c)
{
    return send_reply(c, &c->reply);
}

static void tell_grants(const struct client *c)
{
    struct plant_granted g;

    while (sim_world_granted(c->server->world, (unsigned)c->job, &g))
        (void)send_reply(c, &(struct sim_reply){
                                .phase = g.phase,
                                .steps = g.steps,
                                .last_step_ns = g.at_ns,
                                .grant = g.number,
                                .waited_ns = g.waited_ns,
                                .energy_j = g.energy_j,
                            });
}

static void tell_job(struct client *c)
{
    struct sim_job_state now;

    sim_world_job_state(c->server->world, (unsigned)c->job, &now);
    if (c->told && now.steps == c->last.steps && now.phase == c->last.phase &&
        now.done == c->last.done)
        return;
    c->reply = (struct sim_reply){
        .phase = now.phase,
        .steps = now.steps,
        .last_step_ns = now.last_step_ns,
        .total_steps = now.total_steps,
        .done = now.done,
    };
    if (!answer(c)) /* the queue is full: the next tick sends again */
        return;
    c->told = true;
    c->last = now;
    if (now.done) {
        sim_world_job_remove(c->server->world, (unsigned)c->job);
        c->job = NO_JOB;
    }
}

/* A grant is answered when it is done, not at the next tick. */
static void await_grants(struct server *s)
{
    loop_timer_set(s->event, sim_world_driven_ns(s->world), 0);
}

/* Advances the world, publishes its state, and reports to the jobs' clients. */
static void step(struct server *s, uint64_t now_ns)
{
    sim_world_advance(s->world, now_ns);
    publish(s, now_ns);
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        struct client *c = s->client[i];
        if (!c || c->job == NO_JOB)
            continue;
        if (c->driven)
            tell_grants(c);
        else
            tell_job(c);
    }
    await_grants(s);
}

static int on_event(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    step(user, now_ns);
    return 0;
}

static void set_pace(struct server *s, uint64_t now_ns)
{
    bool busy = sim_world_busy(s->world);

    if (busy == s->busy)
        return;
    s->busy = busy;
    double wall_ms = busy ? BUSY_TICK_MS : IDLE_TICK_MS;
    uint64_t period = (uint64_t)(wall_ms * (double)NS_PER_MS * s->clock.speed);
    loop_timer_set(s->tick, now_ns + period, period);
}

/* True for a process stopped by SIGSTOP: it does no steps. */
static bool is_stopped(pid_t pid)
{
    char path[64];
    char text[512];

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    auto_(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *name_end = strrchr(text, ')');
    return name_end &&
           (strncmp(name_end, ") T", 3) == 0 || strncmp(name_end, ") t", 3) == 0);
}

static void look_at_processes(struct server *s)
{
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        const struct client *c = s->client[i];
        if (c && c->job != NO_JOB)
            sim_world_job_pause(s->world, (unsigned)c->job, is_stopped(c->who.pid));
    }
}

static int on_tick(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct server *s = user;

    (void)timer;
    step(s, now_ns);
    if (++s->n_ticks % TICKS_A_LOOK == 0)
        look_at_processes(s);
    set_pace(s, now_ns);
    return 0;
}

/* ---- requests ---- */

static void refuse(struct client *c, enum sim_result result, const uw_error *err)
{
    c->reply.result = result;
    (void)snprintf(c->reply.text, sizeof c->reply.text, "%s", err->text);
}

/* False, with the refusal in c->reply, if c is neither root nor the user who started the
 * world.
 */
static bool is_owner(struct client *c)
{
    uw_error err = {""};

    if (c->who.uid == 0 || c->who.uid == geteuid())
        return true;
    (void)fail(&err, 0, "only the user who started the world may do that");
    refuse(c, SIM_NO_PERMISSION, &err);
    return false;
}

static void do_fault(struct client *c, const struct sim_request *q)
{
    struct sim_fault fault;
    uw_error err = {""};

    if (!is_owner(c))
        return;
    int r = sim_fault_parse(q->text, &fault, &err);
    if (!r)
        r = sim_world_fault(c->server->world, &fault, &err);
    if (r)
        refuse(c, SIM_INVALID, &err);
    else
        log_event(LOG_LEVEL_NOTICE, LOG_EVENT_SIM_FAULT, "fault=%s",
                  log_quote(q->text).text);
}

static void do_reset(struct client *c, const struct sim_request *q)
{
    struct server *s = c->server;
    uw_error err = {""};

    if (!is_owner(c))
        return;
    enum sim_result r = reset_board(s->world, s->dir.path, q->board, &err);
    if (r)
        refuse(c, r, &err);
    else
        log_event(LOG_LEVEL_NOTICE, LOG_EVENT_SIM_RESET, "board=%u", q->board);
}

/* q->op: SIM_OP_JOB or SIM_OP_DRIVE. */
static void do_job(struct client *c, const struct sim_request *q)
{
    struct sim_job job;
    uw_error err = {""};
    unsigned id;

    if (c->job != NO_JOB) {
        (void)fail(&err, 0, "this process already runs a job");
        refuse(c, SIM_IN_USE, &err);
        return;
    }
    int r = q->op == SIM_OP_DRIVE ? sim_job_parse_driven(q->text, &job, &err)
                                  : sim_job_parse_text(q->text, &job, &err);
    if (!r)
        r = sim_world_job_add(c->server->world, &job, c->who.pid, &id, &err);
    if (r) {
        refuse(c, SIM_INVALID, &err);
        return;
    }
    c->job = (int)id;
    c->driven = job.driven;
    c->told = false;
    log_event(LOG_LEVEL_INFO, LOG_EVENT_SIM_JOB, "pid=%d options=%s", (int)c->who.pid,
              log_quote(q->text).text);
}

static void do_grant(struct client *c, const struct sim_request *q)
{
    bool steps = q->board == UW_PHASE_TRAIN || q->board == UW_PHASE_VALIDATE;
    uw_error err = {""};

    int r = sim_world_grant(c->server->world, (unsigned)c->job, (enum uw_phase)q->board,
                            steps ? q->a : q->b, &err);
    if (r == PLANT_GRANT_FULL)
        (void)fail(&err, r, "%d grants are open already", PLANT_JOB_GRANTS_MAX);
    if (r)
        refuse(c, r < 0 ? SIM_INVALID : SIM_IN_USE, &err);
}

static enum sim_result do_board(struct client *c, const struct sim_request *q)
{
    struct sim_world *w = c->server->world;

    if (q->board >= sim_world_n_boards(w))
        return SIM_INVALID;
    switch (q->op) {
    case SIM_OP_SET_LIMIT:
        return sim_world_set_limit(w, q->board, q->a, c->who.uid);
    case SIM_OP_LOCK_CLOCKS:
        return sim_world_lock_clocks(w, q->board, q->a, q->b, c->who.uid);
    case SIM_OP_RESET_CLOCKS:
        return sim_world_reset_clocks(w, q->board, c->who.uid);
    case SIM_OP_PERSISTENCE:
        return sim_world_persistence(w, q->board, q->a != 0, c->who.uid);
    default:
        return SIM_INVALID;
    }
}

static int on_answer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct client *c = user;

    (void)timer;
    (void)now_ns;
    (void)answer(c);
    return 0;
}

static uint64_t set_latency_ns(const struct server *s, uint32_t board)
{
    const struct sim_machine *m = s->machine;

    if (m->set_latency_ns || board >= m->n_boards)
        return m->set_latency_ns;
    return m->board[board].plant.set_limit_ns;
}

static void handle(struct client *c, const struct sim_request *q, uint64_t now_ns)
{
    struct server *s = c->server;

    c->reply = (struct sim_reply){.result = SIM_OK};
    step(s, now_ns);
    switch (q->op) {
    case SIM_OP_FAULT:
        do_fault(c, q);
        break;
    case SIM_OP_JOB:
    case SIM_OP_DRIVE:
        do_job(c, q);
        break;
    case SIM_OP_GRANT:
        do_grant(c, q);
        break;
    case SIM_OP_STOP:
        if (is_owner(c))
            loop_stop(s->loop, 0);
        break;
    case SIM_OP_RESET:
        do_reset(c, q);
        break;
    default: {
        c->reply.result = do_board(c, q);
        publish(s, now_ns); /* before the answer: a client reads the limit back */
        await_grants(s);
        loop_timer_set(c->answer, now_ns + set_latency_ns(s, q->board), 0);
        return;
    }
    }
    publish(s, now_ns);
    set_pace(s, now_ns);
    await_grants(s);
    if (q->op == SIM_OP_JOB && c->reply.result == SIM_OK)
        tell_job(c);
    else if (q->op != SIM_OP_GRANT || c->reply.result != SIM_OK)
        (void)answer(c);
}

static int on_client(struct loop_fd *source, int fd, int events, void *user)
{
    struct client *c = user;
    struct sim_request q;

    (void)source;
    (void)events;
    ssize_t n = recv(fd, &q, sizeof q, MSG_DONTWAIT | MSG_TRUNC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n != (ssize_t)sizeof q || q.version != SIM_VERSION) {
        struct server *s = c->server;
        drop(c);
        step(s, loop_now_ns(s->loop));
        return 0;
    }
    q.text[sizeof q.text - 1] = '\0';
    handle(c, &q, loop_now_ns(c->server->loop));
    return 0;
}

/* ---- connections ---- */

static int client_new(struct server *s, int fd, struct client **slot, uw_error *err)
{
    socklen_t len = sizeof(struct ucred);

    struct client *c = calloc(1, sizeof *c);
    if (!c) {
        (void)close(fd);
        return fail(err, -ENOMEM, "out of memory for a client");
    }
    c->server = s;
    c->fd = fd;
    c->job = NO_JOB;
    int r = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c->who, &len) ? -errno : 0;
    if (!r)
        r = loop_timer_new(s->loop, UINT64_MAX, 0, on_answer, c, &c->answer, err);
    if (!r)
        r = loop_fd_new(s->loop, fd, LOOP_READ, on_client, c, &c->source, err);
    if (r) {
        client_free(c);
        return r;
    }
    *slot = c;
    return 0;
}

static int on_connect(struct loop_fd *source, int fd, int events, void *user)
{
    struct server *s = user;
    uw_error err = {""};
    size_t i = 0;

    (void)source;
    (void)events;
    int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (peer < 0)
        return 0;
    while (i < CLIENTS_MAX && s->client[i])
        i++;
    if (i == CLIENTS_MAX) { /* the client sees the connection close */
        (void)close(peer);
        log_event(LOG_LEVEL_WARNING, LOG_EVENT_SIM_FULL, "clients=%d", CLIENTS_MAX);
        return 0;
    }
    if (client_new(s, peer, &s->client[i], &err))
        log_event(LOG_LEVEL_WARNING, LOG_EVENT_SIM_CLIENT, "error=%s",
                  log_quote(err.text).text);
    return 0;
}

static int on_signal(struct loop_signal *source, int signo, void *user)
{
    struct server *s = user;

    (void)source;
    log_event(LOG_LEVEL_NOTICE, LOG_EVENT_SIM_STOP, "signal=%d", signo);
    loop_stop(s->loop, 0);
    return 0;
}

/* ---- start and end ---- */

static int start_clock(struct server *s, double speed, uw_error *err)
{
    auto_(loop_free) struct loop *wall = NULL;

    int r = loop_new_real((struct loop_clock){0, 1}, &wall, err);
    if (r)
        return r;
    s->clock = (struct loop_clock){loop_now_ns(wall), speed};
    return loop_new_real(s->clock, &s->loop, err);
}

static void fill_page(struct server *s)
{
    struct sim_page *page = s->dir.page;

    page->n_boards = (uint32_t)sim_world_n_boards(s->world);
    page->sets_need_root = s->machine->may_set == SIM_MAY_ROOT;
    page->t0_ns = s->clock.t0_ns;
    page->speed = s->clock.speed;
    page->server_pid = (uint64_t)getpid();
    page->world_id = s->clock.t0_ns ^ (page->server_pid << 40);
    (void)snprintf(page->state_dir, sizeof page->state_dir, "%s", s->dir.path);
    (void)snprintf(page->driver_version, sizeof page->driver_version, "%s",
                   s->machine->driver_version);
    (void)snprintf(page->machine, sizeof page->machine, "%s", s->machine->name);
    for (size_t i = 0; i < page->n_boards; i++)
        page->board[i].identity = *sim_world_identity(s->world, i);
}

static int listen_to_all(struct server *s, uw_error *err)
{
    uint64_t now = loop_now_ns(s->loop);

    int r = loop_timer_new(s->loop, now, 0, on_tick, s, &s->tick, err);
    if (!r)
        r = loop_timer_new(s->loop, UINT64_MAX, 0, on_event, s, &s->event, err);
    if (!r)
        r = loop_fd_new(s->loop, s->dir.listen_fd, LOOP_READ, on_connect, s, &s->listener,
                        err);
    if (!r)
        r = loop_signal_new(s->loop, SIGTERM, on_signal, s, &s->term, err);
    if (!r)
        r = loop_signal_new(s->loop, SIGINT, on_signal, s, &s->interrupt, err);
    s->busy = !sim_world_busy(s->world); /* so that the first tick sets the pace */
    return r;
}

static int start(struct server *s, const struct server_opts *opts, uw_error *err)
{
    int r = start_clock(s, opts->speed, err);

    if (!r)
        r = sim_world_new(opts->machine, 0, s->clock.t0_ns, &s->world, err);
    if (!r)
        r = statedir_make(opts->state_dir, opts->library, &s->dir, err);
    if (r)
        return r;
    if (opts->ready_fd >= 0)
        statedir_log(&s->dir);
    fill_page(s);
    r = listen_to_all(s, err);
    if (r)
        return r;
    step(s, loop_now_ns(s->loop));
    return statedir_publish(&s->dir, err);
}

int server_run(const struct server_opts *opts, uw_error *err)
{
    struct server s = {.machine = opts->machine, .dir = {.lock_fd = -1, .listen_fd = -1}};

    int r = start(&s, opts, err);
    if (!r) {
        log_event(LOG_LEVEL_NOTICE, LOG_EVENT_SIM_START, "state=%s boards=%zu speed=%g",
                  log_quote(opts->state_dir).text, opts->machine->n_boards, opts->speed);
        if (opts->ready_fd >= 0 && write(opts->ready_fd, "", 1) != 1)
            log_event(LOG_LEVEL_WARNING, LOG_EVENT_SIM_READY, "error=no-reader");
        if (opts->ready_fd >= 0)
            (void)close(opts->ready_fd);
        r = loop_run(s.loop, err);
    }
    if (s.dir.lock_fd >= 0)
        statedir_remove(&s.dir); /* before the clients' connections end */
    for (size_t i = 0; i < CLIENTS_MAX; i++)
        client_free(s.client[i]);
    loop_signal_free(s.interrupt);
    loop_signal_free(s.term);
    loop_timer_free(s.tick);
    loop_timer_free(s.event);
    loop_fd_free(s.listener);
    loop_free(s.loop);
    sim_world_free(s.world);
    return r;
}
