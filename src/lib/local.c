/* Local mode: a thread of the context runs the loop that samples the boards.  The
 * caller's thread sends requests to this thread through a mailbox and waits for answers.
 * The times of windows are noted in the caller's thread, and wait for the other one in a
 * queue.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/names.h"
#include "base/units.h"
#include "board/boards.h"
#include "board/domains.h"
#include "board/sampler.h"
#include "gpu/backends.h"
#include "io/loop.h"
#include "lib/inside.h"

enum ask_kind { ASK_NOTHING, ASK_LIMITS, ASK_POWER, ASK_SAMPLES, ASK_DROP, ASK_QUIT };
enum { MARKS = 64, LONGEST_S = 60 };
enum { SAMPLES_MAX = 16384 }; /* a meter keeps less */

/* The mailbox: one request at a time, the caller waits for `answered`. */
struct ask {
    enum ask_kind kind;
    size_t dev;
    uw_window *win;
    bool answered;
    int r;
    uw_error err;
    uw_limits limits;
    double power_w;
    struct meter_power *samples; /* room for n */
    size_t n;
};

struct local {
    uw_ctx ctx;
    pthread_t thread;
    bool running;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    int bell; /* eventfd: the mailbox has a request */
    struct ask ask;
    uint64_t mark[MARKS]; /* times at which windows begin or end */
    size_t n_marks;       /* further times are not marked: their energy is less certain */
    uw_window *stopped, **last; /* a queue */
    /* Why a processor's energy is unknown, or that of all (no_cpu); 0: only for that
     * time.
     */
    struct {
        int r;
        uw_error err;
    } cpu[DOMAINS_MAX], no_cpu;

    /* Used only by the thread: */
    uw_window *waiting; /* windows of the queue that do not fit into the sampler */
    struct loop *loop;
    struct loop_fd *ear;
    struct boards *boards;
    struct sampler *sampler;
    const char *source; /* source of the boards; until they are open */
    struct domains *domains;
    struct board *board[BOARDS_MAX];
    uw_device device[BOARDS_MAX];
};

static void answer(struct local *l, int r, const uw_error *err)
{
    (void)pthread_mutex_lock(&l->lock);
    l->ask.r = r;
    if (err)
        l->ask.err = *err;
    l->ask.answered = true;
    (void)pthread_cond_broadcast(&l->wake);
    (void)pthread_mutex_unlock(&l->lock);
}

/* ---- in the context's thread ---- */

static int on_limits(struct board *b, int r, const struct gpu_sample *s,
                     const uw_error *err, void *user)
{
    struct local *l = user;
    const struct board_view *v = board_view(b);

    if (r == 0 && !v->has_limits) {
        uw_error none;
        r = fail(&none, -ENOTSUP, "%s: its limits cannot be read", v->info->uuid);
        answer(l, r, &none);
        return 0;
    }
    if (r == 0) {
        l->ask.limits = (uw_limits){
            .min_mw = v->limits.min_mw,
            .max_mw = v->limits.max_mw,
            .default_mw = v->limits.default_mw,
            .enforced_mw = s->has & GPU_HAS_ENFORCED ? s->enforced_mw : 0,
        };
    }
    answer(l, r, err);
    return 0;
}

static int on_power(struct board *b, int r, const struct gpu_sample *s,
                    const uw_error *err, void *user)
{
    struct local *l = user;

    if (r == 0 && !(s->has & (GPU_HAS_INSTANT | GPU_HAS_POWER))) {
        uw_error none;
        r = fail(&none, -ENOTSUP, "%s: the board reports no power",
                 board_view(b)->info->uuid);
        answer(l, r, &none);
        return 0;
    }
    if (r == 0)
        l->ask.power_w = s->has & GPU_HAS_INSTANT ? s->instant_w : s->power_w;
    answer(l, r, err);
    return 0;
}

static void serve_samples(struct local *l, struct ask *a)
{
    uw_error err = {{0}};
    size_t n = 0;
    int r = meter_powers(sampler_meter(l->sampler, a->dev), a->win->begin_ns,
                         a->win->end_ns, a->samples, a->n, &n, &err);

    if (r < 0)
        r = fail_in(&err, r, "%s", l->device[a->dev].id);
    l->ask.n = n; /* its caller waits for the answer */
    answer(l, r, &err);
}

static void ask_sampler(struct local *l);

/* Under the lock. */
static void show_processors(struct local *l, uw_window *win)
{
    double time_s = s_between(win->begin_ns, win->end_ns);

    win->n_processors = domains_count(l->domains);
    for (size_t i = 0; i < win->n_processors; i++) {
        const struct domain_view *d = domains_at(l->domains, i);
        struct lib_processor *p = &win->processor[i];
        uw_energy *e = &p->energy;
        (void)snprintf(p->name, sizeof p->name, "%s", d->name);
        *e = (uw_energy){.time_s = time_s, .method = "interpolated"};
        p->known = domains_between(l->domains, i, true, win->begin_ns, win->end_ns,
                                   &e->energy_j, &e->half_j);
        e->power_w = e->energy_j / time_s;
        l->cpu[i].r = d->sampler ? 0 : d->r;
        l->cpu[i].err = d->error;
    }
}

/* The energy of a window is known, or cannot be known. */
static void window_done(struct local *l, uw_window *win, const struct sampler_window *w)
{
    (void)pthread_mutex_lock(&l->lock);
    for (size_t i = 0; i < l->ctx.n; i++) {
        const struct meter_result *m = w->r == 0 ? &w->board[i] : NULL;
        win->board[i] = (struct lib_energy){.r = w->r, .err = w->error};
        uw_energy *e = &win->board[i].energy;
        if (!m)
            continue;
        *e = (uw_energy){.time_s = s_between(win->begin_ns, win->end_ns),
                         .energy_j = m->energy_j,
                         .half_j = m->half_j,
                         .power_w = m->power_w,
                         .method = names_word(NAMES_METER_METHOD, m->method)};
        (void)meter_why_text(m->why, e->why, sizeof e->why);
    }
    show_processors(l, win);
    win->known = true;
    (void)pthread_cond_broadcast(&l->wake);
    (void)pthread_mutex_unlock(&l->lock);
}

static int on_window(struct sampler *s, const struct sampler_window *w, void *user)
{
    uw_window *win = user;
    struct local *l = (struct local *)win->ctx;
    (void)s;

    window_done(l, win, w);
    ask_sampler(l);
    return 0;
}

/* Queries the waiting windows, as far as the sampler accepts them. */
static void ask_sampler(struct local *l)
{
    while (l->waiting) {
        uw_window *win = l->waiting;
        int r = sampler_window(l->sampler, win->begin_ns, win->end_ns, on_window, win);
        if (r == -EAGAIN)
            return;
        l->waiting = win->queue;
        if (r < 0) {
            struct sampler_window none = {.r = r};
            (void)fail(&none.error, r, "out of memory");
            window_done(l, win, &none);
        }
    }
}

static void take_windows(struct local *l)
{
    uw_window **at = &l->waiting;
    uint64_t mark[MARKS];

    (void)pthread_mutex_lock(&l->lock);
    size_t n = l->n_marks;
    memcpy(mark, l->mark, n * sizeof *mark);
    l->n_marks = 0;
    while (*at)
        at = &(*at)->queue;
    *at = take(l->stopped);
    l->last = &l->stopped;
    (void)pthread_mutex_unlock(&l->lock);
    for (size_t i = 0; i < n; i++)
        sampler_mark(l->sampler, mark[i]);
    if (n > 0)
        domains_read(l->domains);
    ask_sampler(l);
}

/* The window is freed: no result for it may follow. */
static void drop_window(struct local *l, const uw_window *win)
{
    for (uw_window **at = &l->waiting; *at; at = &(*at)->queue)
        if (*at == win) {
            *at = win->queue;
            return;
        }
    sampler_forget(l->sampler, win);
    ask_sampler(l);
}

static void serve(struct local *l, struct ask *a)
{
    uw_error err = {{0}};
    int r = 0;

    switch (a->kind) {
    case ASK_LIMITS:
        r = board_sample(l->board[a->dev], GPU_HAS_ENFORCED, on_limits, l);
        break;
    case ASK_POWER:
        r = board_sample(l->board[a->dev], GPU_HAS_POWER | GPU_HAS_INSTANT, on_power, l);
        break;
    case ASK_SAMPLES:
        serve_samples(l, a);
        break;
    case ASK_DROP:
        drop_window(l, a->win);
        answer(l, 0, NULL);
        break;
    case ASK_QUIT:
        loop_stop(l->loop, 0);
        break;
    case ASK_NOTHING:
        break;
    }
    if (r < 0)
        answer(l, fail(&err, r, "too many requests wait on this context"), &err);
}

static int on_bell(struct loop_fd *source, int fd, int events, void *user)
{
    struct local *l = user;
    uint64_t rings;
    (void)source;
    (void)events;

    if (read(fd, &rings, sizeof rings) != (ssize_t)sizeof rings)
        return 0;
    if (l->sampler)
        take_windows(l);
    (void)pthread_mutex_lock(&l->lock);
    struct ask ask = l->ask; /* or none */
    l->ask.kind = ASK_NOTHING;
    (void)pthread_mutex_unlock(&l->lock);
    serve(l, &ask);
    return 0;
}

/* ---- processors ---- */

static uint64_t clock_of(void *user)
{
    return loop_now_ns(user);
}

static int on_processors(int r, const uw_error *err, void *user)
{
    struct local *l = user;

    if (r != 0) {
        l->no_cpu.r = r < 0 ? r : -ENOTSUP;
        l->no_cpu.err = *err;
    }
    answer(l, 0, NULL); /* the boards are open */
    return 0;
}

/* Opens those of this machine, or those in the boards text; a simulated node has none of
 * its own.  Answers the request for the boards.
 */
static void open_processors(struct local *l)
{
    bool named = gpu_processors_named(l->source);
    struct domains_opts opts = {
        .loop = l->loop,
        .backend = &gpu_processors,
        .gpu = {.source = named ? l->source : NULL, .clock = {clock_of, l->loop}},
        .on_open = on_processors,
        .user = l};
    uw_error err = {{0}};
    int r;

    if (l->device[0].simulated && !named)
        r = fail(&err, -ENOTSUP, "a simulated node has no processors");
    else
        r = domains_new(&opts, &l->domains, &err);
    if (r < 0)
        (void)on_processors(r, &err, l);
}

static int on_boards(struct boards *set, int r, const uw_error *err, void *user)
{
    struct local *l = user;
    struct sampler_opts opts = {0};
    uw_error text = {{0}};

    if (r == GPU_ABSENT) {
        answer(
            l,
            fail(&text, -ENODEV, "no driver library for boards was found on this node"),
            &text);
        return 0;
    }
    if (r == 0 && boards_count(set) == 0)
        r = fail(&text, -ENODEV, "the driver lists no board");
    else if (r < 0 && err)
        text = *err;
    if (r == 0) {
        l->ctx.n = boards_count(set);
        l->ctx.device = l->device;
        for (size_t i = 0; i < l->ctx.n; i++) {
            l->board[i] = boards_at(set, i);
            const struct gpu_info *info = board_view(l->board[i])->info;
            l->device[i] =
                (uw_device){&l->ctx, i, info->uuid, info->name, info->simulated, 0};
        }
        r = sampler_new(l->loop, l->board, l->ctx.n, &opts, &l->sampler, &text);
    }
    if (r == 0)
        open_processors(l);
    else
        answer(l, r, &text);
    return 0;
}

static void *thread_main(void *user)
{
    struct local *l = user;
    uw_error err;

    int r = loop_run(l->loop, &err);
    if (r < 0)
        answer(l, r, &err);
    return NULL;
}

/* ---- in the caller's thread ---- */

/* Sends a request to the context's thread and waits for the answer. */
static int send_ask(struct local *l, const struct ask *a, uw_error *err)
{
    static const uint64_t ring = 1;

    (void)pthread_mutex_lock(&l->lock);
    l->ask = *a;
    ssize_t n = write(l->bell, &ring, sizeof ring);
    while (n == (ssize_t)sizeof ring && !l->ask.answered && a->kind != ASK_QUIT)
        (void)pthread_cond_wait(&l->wake, &l->lock);
    int r = n == (ssize_t)sizeof ring ? l->ask.r : -EIO;
    if (r < 0 && err)
        *err = l->ask.err;
    (void)pthread_mutex_unlock(&l->lock);
    return r;
}

static int ask(struct local *l, enum ask_kind kind, size_t dev, uw_window *win,
               uw_error *err)
{
    const struct ask a = {.kind = kind, .dev = dev, .win = win};

    return send_ask(l, &a, err);
}

static int begin(struct local *l, const uw_options *opts, uw_error *err)
{
    struct loop_clock clock = {0, 1};

    int r = opts->clock ? loop_clock_parse(opts->clock, &clock, err) : 0;
    if (r >= 0)
        r = loop_new_real(clock, &l->loop, err);
    if (r < 0)
        return r;
    l->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->bell < 0)
        return fail(err, -errno, "no file descriptor is free");
    r = loop_fd_new(l->loop, l->bell, LOOP_READ, on_bell, l, &l->ear, err);
    if (r < 0)
        return r;
    l->source = opts->boards;
    struct gpu_open_opts gpu = {.source = opts->boards, .clock = {clock_of, l->loop}};
    r = boards_open(l->loop, &gpu_boards, &gpu, on_boards, l, &l->boards, err);
    if (r < 0)
        return r;
    r = -pthread_create(&l->thread, NULL, thread_main, l);
    if (r < 0)
        return fail(err, r, "a thread cannot be created");
    l->running = true;
    return 0;
}

/* Threads started here block all signals: the program's own threads receive them. */
static int begin_quietly(struct local *l, const uw_options *opts, uw_error *err)
{
    sigset_t all, before;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = begin(l, opts, err);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}

static struct local *local_of(uw_ctx *ctx)
{
    return (struct local *)ctx;
}

static void local_close(uw_ctx *ctx)
{
    struct local *l = local_of(ctx);

    if (l->running) {
        (void)ask(l, ASK_QUIT, 0, NULL, NULL);
        (void)pthread_join(l->thread, NULL);
    }
    domains_free(l->domains);
    sampler_free(l->sampler);
    boards_free(l->boards);
    loop_fd_free(l->ear);
    loop_free(l->loop);
    if (l->bell >= 0)
        (void)close(l->bell);
    (void)pthread_cond_destroy(&l->wake);
    (void)pthread_mutex_destroy(&l->lock);
    free(l);
}

static int local_limits(uw_device *dev, uw_limits *ret, uw_error *err)
{
    struct local *l = local_of(dev->ctx);
    int r = ask(l, ASK_LIMITS, dev->at, NULL, err);

    if (r == 0)
        *ret = l->ask.limits;
    return r;
}

static int local_power(uw_device *dev, double *ret_w, uw_error *err)
{
    struct local *l = local_of(dev->ctx);
    int r = ask(l, ASK_POWER, dev->at, NULL, err);

    if (r == 0)
        *ret_w = l->ask.power_w;
    return r;
}

/* Notes the time of a window's start or end. */
static uint64_t note_time(struct local *l)
{
    uint64_t now = loop_now_ns(l->loop);

    if (l->n_marks < MARKS)
        l->mark[l->n_marks++] = now;
    return now;
}

static int ring(struct local *l, uw_error *err)
{
    static const uint64_t once = 1;

    if (write(l->bell, &once, sizeof once) != (ssize_t)sizeof once)
        return fail(err, -EIO, "the context's thread cannot be reached");
    return 0;
}

static int local_begin(uw_ctx *ctx, uw_window *win, uw_error *err)
{
    struct local *l = local_of(ctx);

    (void)pthread_mutex_lock(&l->lock);
    win->begin_ns = note_time(l);
    (void)pthread_mutex_unlock(&l->lock);
    return ring(l, err);
}

static int local_stop(uw_ctx *ctx, uw_window *win, uw_error *err)
{
    struct local *l = local_of(ctx);

    (void)pthread_mutex_lock(&l->lock);
    win->end_ns = note_time(l);
    if (win->end_ns <= win->begin_ns)
        win->end_ns = win->begin_ns + 1;
    *l->last = win;
    l->last = &win->queue;
    (void)pthread_mutex_unlock(&l->lock);
    return ring(l, err);
}

static int local_await(uw_ctx *ctx, uw_window *win, uint64_t timeout_ns, uw_error *err)
{
    struct local *l = local_of(ctx);
    struct timespec until;
    uint64_t ns = timeout_ns < LONGEST_S * NS_PER_S ? timeout_ns : LONGEST_S * NS_PER_S;
    int r = 0;
    (void)err;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    ns += (uint64_t)until.tv_nsec;
    until.tv_sec += (time_t)(ns / NS_PER_S);
    until.tv_nsec = (long)(ns % NS_PER_S);
    (void)pthread_mutex_lock(&l->lock);
    while (!win->known && timeout_ns > 0 && r == 0)
        r = pthread_cond_timedwait(&l->wake, &l->lock, &until);
    int known = win->known;
    (void)pthread_mutex_unlock(&l->lock);
    return known;
}

static void local_drop(uw_ctx *ctx, uw_window *win)
{
    struct local *l = local_of(ctx);

    (void)pthread_mutex_lock(&l->lock);
    bool pending = win->stopped && !win->known;
    (void)pthread_mutex_unlock(&l->lock);
    if (pending)
        (void)ask(l, ASK_DROP, 0, win, NULL);
}

static int local_no_processor(uw_ctx *ctx, const uw_window *win, size_t i, uw_error *err)
{
    struct local *l = local_of(ctx);
    uw_error why;
    int r;

    if (i >= win->n_processors)
        return l->no_cpu.r ? fail(err, l->no_cpu.r, "%s", l->no_cpu.err.text)
                           : fail(err, -ENODATA, "processor %zu: this node has %zu", i,
                                  win->n_processors);
    (void)pthread_mutex_lock(&l->lock);
    r = l->cpu[i].r;
    why = l->cpu[i].err;
    (void)pthread_mutex_unlock(&l->lock);
    return r ? fail(err, r, "%s", why.text)
             : fail(err, -ENODATA, "%s: its energy in that time is not known",
                    win->processor[i].name);
}

static int local_samples(uw_ctx *ctx, uw_window *win, size_t dev, uw_sample *buf,
                         size_t n, size_t *ret_n, uw_error *err)
{
    struct local *l = local_of(ctx);
    struct ask a = {.kind = ASK_SAMPLES, .dev = dev, .win = win};
    int r;

    a.n = n < SAMPLES_MAX ? n : SAMPLES_MAX;
    a.samples = calloc(a.n, sizeof *a.samples);
    if (!a.samples)
        return fail(err, -ENOMEM, "no memory for %zu samples", a.n);
    r = send_ask(l, &a, err);
    for (size_t i = 0; r == 0 && i < l->ask.n; i++)
        buf[i] =
            (uw_sample){a.samples[i].end_s, a.samples[i].over_s, a.samples[i].power_w};
    if (r == 0)
        *ret_n = l->ask.n;
    free(a.samples);
    return r;
}

static const struct lib_mode local_mode = {
    1,          local_close, local_limits, local_power,        local_begin,
    local_stop, local_await, local_drop,   local_no_processor, local_samples,
};

int lib_local_open(const uw_options *opts, uw_ctx **ret, uw_error *err)
{
    struct local *l = calloc(1, sizeof *l);
    pthread_condattr_t monotonic;

    if (!l)
        return fail(err, -ENOMEM, "out of memory");
    l->ctx.mode = &local_mode;
    l->bell = -1;
    (void)pthread_mutex_init(&l->lock, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&l->wake, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    l->last = &l->stopped;
    int r = begin_quietly(l, opts, err);
    if (r >= 0) { /* the first answer is that of the boards */
        (void)pthread_mutex_lock(&l->lock);
        while (!l->ask.answered)
            (void)pthread_cond_wait(&l->wake, &l->lock);
        r = l->ask.r;
        if (r < 0 && err)
            *err = l->ask.err;
        (void)pthread_mutex_unlock(&l->lock);
    }
    if (r < 0) {
        local_close(&l->ctx);
        return r;
    }
    *ret = &l->ctx;
    return 0;
}
