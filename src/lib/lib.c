/* libunderwatt in local mode: a thread of its own runs the loop that samples the
 * boards; the caller's thread asks it through a mailbox and waits.
 */
#define UW_API __attribute__((visibility("default")))
#include "underwatt/underwatt.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "gpu/nvml/nvml.h"
#include "io/loop.h"
#include "node/boards.h"
#include "node/sampler.h"

struct uw_device {
    uw_ctx *ctx;
    struct board *board;
    size_t at;
};

enum ask_kind { ASK_NOTHING, ASK_LIMITS, ASK_POWER, ASK_BEGIN, ASK_END, ASK_QUIT };

/* The mailbox: one request at a time, the caller waits for `answered`. */
struct ask {
    enum ask_kind kind;
    uw_device *dev;
    uw_window *win;
    bool answered;
    int r;
    uw_error err;
    uw_limits limits;
    double power_w;
};

struct uw_ctx {
    pthread_t thread;
    bool running;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    int bell; /* eventfd: the mailbox has something */
    struct ask ask;

    /* The thread's own. */
    struct loop *loop;
    struct loop_fd *ear;
    struct boards *boards;
    struct sampler *sampler;
    struct board *board[BOARDS_MAX];
    uw_device device[BOARDS_MAX];
    size_t n;
};

struct uw_window {
    uw_ctx *ctx;
    uint64_t begin_ns, end_ns;
    bool ended;
    int r;
    uw_error err;
    struct meter_result result[BOARDS_MAX];
};

static void answer(uw_ctx *ctx, int r, const uw_error *err)
{
    (void)pthread_mutex_lock(&ctx->lock);
    ctx->ask.r = r;
    if (err)
        ctx->ask.err = *err;
    ctx->ask.answered = true;
    (void)pthread_cond_broadcast(&ctx->wake);
    (void)pthread_mutex_unlock(&ctx->lock);
}

/* ---- in the context's thread ---- */

static int on_limits(struct board *b, int r, const struct gpu_sample *s,
                     const uw_error *err, void *user)
{
    uw_ctx *ctx = user;
    const struct board_view *v = board_view(b);

    if (r == 0 && !v->has_limits) {
        uw_error none;
        r = fail(&none, -ENOTSUP, "%s: its limits cannot be read", v->info->uuid);
        answer(ctx, r, &none);
        return 0;
    }
    if (r == 0) {
        ctx->ask.limits = (uw_limits){
            .min_mw = v->limits.min_mw,
            .max_mw = v->limits.max_mw,
            .default_mw = v->limits.default_mw,
            .enforced_mw = s->has & GPU_HAS_ENFORCED ? s->enforced_mw : 0,
        };
    }
    answer(ctx, r, err);
    return 0;
}

static int on_power(struct board *b, int r, const struct gpu_sample *s,
                    const uw_error *err, void *user)
{
    uw_ctx *ctx = user;

    if (r == 0 && !(s->has & (GPU_HAS_INSTANT | GPU_HAS_POWER))) {
        uw_error none;
        r = fail(&none, -ENOTSUP, "%s: it tells no power", board_view(b)->info->uuid);
        answer(ctx, r, &none);
        return 0;
    }
    if (r == 0)
        ctx->ask.power_w = s->has & GPU_HAS_INSTANT ? s->instant_w : s->power_w;
    answer(ctx, r, err);
    return 0;
}

static int on_window(struct sampler *s, const struct sampler_window *w, void *user)
{
    uw_ctx *ctx = user;
    uw_window *win = ctx->ask.win;
    (void)s;

    win->r = w->r;
    win->err = w->error;
    for (size_t i = 0; i < ctx->n; i++)
        win->result[i] = w->board[i];
    answer(ctx, 0, NULL);
    return 0;
}

static void serve(uw_ctx *ctx, struct ask *a)
{
    uw_error err = {{0}};
    int r = 0;

    switch (a->kind) {
    case ASK_LIMITS:
        r = board_sample(a->dev->board, GPU_HAS_ENFORCED, on_limits, ctx);
        break;
    case ASK_POWER:
        r = board_sample(a->dev->board, GPU_HAS_POWER | GPU_HAS_INSTANT, on_power, ctx);
        break;
    case ASK_BEGIN:
        a->win->begin_ns = loop_now_ns(ctx->loop);
        sampler_mark(ctx->sampler, a->win->begin_ns);
        answer(ctx, 0, NULL);
        break;
    case ASK_END:
        a->win->end_ns = loop_now_ns(ctx->loop);
        sampler_mark(ctx->sampler, a->win->end_ns);
        r = sampler_window(ctx->sampler, a->win->begin_ns, a->win->end_ns, on_window,
                           ctx);
        break;
    case ASK_QUIT:
        loop_stop(ctx->loop, 0);
        break;
    case ASK_NOTHING:
        break;
    }
    if (r < 0)
        answer(ctx, fail(&err, r, "too much is asked of this context at once"), &err);
}

static int on_bell(struct loop_fd *source, int fd, int events, void *user)
{
    uw_ctx *ctx = user;
    uint64_t rings;
    (void)source;
    (void)events;

    if (read(fd, &rings, sizeof rings) == (ssize_t)sizeof rings)
        serve(ctx, &ctx->ask);
    return 0;
}

static int on_boards(struct boards *set, int r, const uw_error *err, void *user)
{
    uw_ctx *ctx = user;
    struct sampler_opts opts = {0};
    uw_error text = {{0}};

    if (r == GPU_ABSENT) {
        answer(ctx, fail(&text, -ENODEV, "no NVIDIA library on this node"), &text);
        return 0;
    }
    if (r == 0 && boards_count(set) == 0)
        r = fail(&text, -ENODEV, "the driver knows no board");
    else if (r < 0 && err)
        text = *err;
    if (r == 0) {
        ctx->n = boards_count(set);
        for (size_t i = 0; i < ctx->n; i++) {
            ctx->board[i] = boards_at(set, i);
            ctx->device[i] = (uw_device){ctx, ctx->board[i], i};
        }
        r = sampler_new(ctx->loop, ctx->board, ctx->n, &opts, &ctx->sampler, &text);
    }
    answer(ctx, r, &text);
    return 0;
}

static void *thread_main(void *user)
{
    uw_ctx *ctx = user;
    uw_error err;

    int r = loop_run(ctx->loop, &err);
    if (r < 0)
        answer(ctx, r, &err);
    return NULL;
}

/* ---- in the caller's thread ---- */

/* Ask and wait; fields of the request are set by the caller before. */
static int ask(uw_ctx *ctx, enum ask_kind kind, uw_device *dev, uw_window *win,
               uw_error *err)
{
    static const uint64_t ring = 1;

    (void)pthread_mutex_lock(&ctx->lock);
    ctx->ask = (struct ask){.kind = kind, .dev = dev, .win = win};
    ssize_t n = write(ctx->bell, &ring, sizeof ring);
    while (n == (ssize_t)sizeof ring && !ctx->ask.answered && kind != ASK_QUIT)
        (void)pthread_cond_wait(&ctx->wake, &ctx->lock);
    int r = n == (ssize_t)sizeof ring ? ctx->ask.r : -EIO;
    if (r < 0 && err)
        *err = ctx->ask.err;
    (void)pthread_mutex_unlock(&ctx->lock);
    return r;
}

static uint64_t clock_of(void *user)
{
    return loop_now_ns(user);
}

static int ctx_begin(uw_ctx *ctx, const uw_options *opts, uw_error *err)
{
    struct loop_clock clock = {0, 1};

    int r = opts->clock ? loop_clock_parse(opts->clock, &clock, err) : 0;
    if (r >= 0)
        r = loop_new_real(clock, &ctx->loop, err);
    if (r < 0)
        return r;
    ctx->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ctx->bell < 0)
        return fail(err, -errno, "no descriptor left");
    r = loop_fd_new(ctx->loop, ctx->bell, LOOP_READ, on_bell, ctx, &ctx->ear, err);
    if (r < 0)
        return r;
    struct gpu_open_opts gpu = {.library = opts->nvml, .clock = {clock_of, ctx->loop}};
    r = boards_open(ctx->loop, &nvml_backend, &gpu, on_boards, ctx, &ctx->boards, err);
    if (r < 0)
        return r;
    r = -pthread_create(&ctx->thread, NULL, thread_main, ctx);
    if (r < 0)
        return fail(err, r, "no thread left");
    ctx->running = true;
    return 0;
}

int uw_ctx_open(const uw_options *opts, uw_ctx **ret_ctx, uw_error *err)
{
    uw_options o = {0};

    if (!ret_ctx)
        return fail(err, -EINVAL, "ret_ctx is NULL");
    if (opts) {
        if (opts->size == 0)
            return fail(err, -EINVAL,
                        "uw_options.size is 0: set it to sizeof(uw_options)");
        memcpy(&o, opts, opts->size < sizeof o ? opts->size : sizeof o);
    }
    uw_ctx *ctx = calloc(1, sizeof *ctx);
    if (!ctx)
        return fail(err, -ENOMEM, "out of memory");
    ctx->bell = -1;
    (void)pthread_mutex_init(&ctx->lock, NULL);
    (void)pthread_cond_init(&ctx->wake, NULL);
    int r = ctx_begin(ctx, &o, err);
    if (r >= 0) { /* the first answer is that of the boards */
        (void)pthread_mutex_lock(&ctx->lock);
        while (!ctx->ask.answered)
            (void)pthread_cond_wait(&ctx->wake, &ctx->lock);
        r = ctx->ask.r;
        if (r < 0 && err)
            *err = ctx->ask.err;
        (void)pthread_mutex_unlock(&ctx->lock);
    }
    if (r < 0) {
        uw_ctx_free(ctx);
        return r;
    }
    *ret_ctx = ctx;
    return 0;
}

void uw_ctx_free(uw_ctx *ctx)
{
    if (!ctx)
        return;
    if (ctx->running) {
        (void)ask(ctx, ASK_QUIT, NULL, NULL, NULL);
        (void)pthread_join(ctx->thread, NULL);
    }
    sampler_free(ctx->sampler);
    boards_free(ctx->boards);
    loop_fd_free(ctx->ear);
    loop_free(ctx->loop);
    if (ctx->bell >= 0)
        (void)close(ctx->bell);
    (void)pthread_cond_destroy(&ctx->wake);
    (void)pthread_mutex_destroy(&ctx->lock);
    free(ctx);
}

const char *uw_version(void)
{
    return UW_VERSION;
}

size_t uw_device_count(const uw_ctx *ctx)
{
    return ctx ? ctx->n : 0;
}

uw_device *uw_device_at(uw_ctx *ctx, size_t i)
{
    return ctx && i < ctx->n ? &ctx->device[i] : NULL;
}

const char *uw_device_id(const uw_device *dev)
{
    return dev ? board_view(dev->board)->info->uuid : "";
}

const char *uw_device_name(const uw_device *dev)
{
    return dev ? board_view(dev->board)->info->name : "";
}

int uw_device_is_simulated(const uw_device *dev)
{
    return dev && board_view(dev->board)->info->simulated;
}

int uw_device_limits(uw_device *dev, uw_limits *ret, uw_error *err)
{
    if (!dev || !ret)
        return fail(err, -EINVAL, "dev or ret is NULL");
    int r = ask(dev->ctx, ASK_LIMITS, dev, NULL, err);
    if (r == 0)
        *ret = dev->ctx->ask.limits;
    return r;
}

int uw_device_power(uw_device *dev, double *ret_w, uw_error *err)
{
    if (!dev || !ret_w)
        return fail(err, -EINVAL, "dev or ret_w is NULL");
    int r = ask(dev->ctx, ASK_POWER, dev, NULL, err);
    if (r == 0)
        *ret_w = dev->ctx->ask.power_w;
    return r;
}

int uw_window_begin(uw_ctx *ctx, uw_window **ret, uw_error *err)
{
    if (!ctx || !ret)
        return fail(err, -EINVAL, "ctx or ret is NULL");
    uw_window *win = calloc(1, sizeof *win);
    if (!win)
        return fail(err, -ENOMEM, "out of memory");
    win->ctx = ctx;
    int r = ask(ctx, ASK_BEGIN, NULL, win, err);
    if (r < 0) {
        free(win);
        return r;
    }
    *ret = win;
    return 0;
}

int uw_window_end(uw_window *win, uw_error *err)
{
    if (!win)
        return fail(err, -EINVAL, "win is NULL");
    if (win->ended)
        return fail(err, -EALREADY, "this window has ended before");
    int r = ask(win->ctx, ASK_END, NULL, win, err);
    if (r == 0)
        win->ended = true;
    return r;
}

int uw_window_energy(const uw_window *win, const uw_device *dev, uw_energy *ret,
                     uw_error *err)
{
    if (!win || !dev || !ret)
        return fail(err, -EINVAL, "win, dev or ret is NULL");
    if (!win->ended || dev->ctx != win->ctx)
        return fail(err, -EINVAL,
                    win->ended ? "the device is another context's"
                               : "the window has not ended");
    if (win->r < 0) {
        if (err)
            *err = win->err;
        return win->r;
    }
    const struct meter_result *m = &win->result[dev->at];
    *ret = (uw_energy){
        .time_s = s_between(win->begin_ns, win->end_ns),
        .energy_j = m->energy_j,
        .half_j = m->half_j,
        .power_w = m->power_w,
        .method = meter_method_name(m->method),
    };
    return 0;
}

void uw_window_free(uw_window *win)
{
    free(win);
}
