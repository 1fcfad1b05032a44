/* The public functions of libunderwatt: check the arguments, then call the context's
 * mode.
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/units.h"
#include "lib/inside.h"

enum { FLAGS = UW_LOCAL | UW_DAEMON };

static int read_options(const uw_options *opts, uw_options *ret, uw_error *err)
{
    const unsigned char *more = (const unsigned char *)opts + sizeof *ret;

    *ret = (uw_options){.size = sizeof *ret};
    if (!opts)
        return 0;
    if (opts->size == 0)
        return fail(err, -EINVAL, "uw_options.size is 0: set it to sizeof(uw_options)");
    for (size_t i = 0; opts->size > sizeof *ret && i < opts->size - sizeof *ret; i++)
        if (more[i])
            return fail(err, -EINVAL,
                        "uw_options has a field set that libunderwatt %s does not know",
                        UW_VERSION);
    memcpy(ret, opts, opts->size < sizeof *ret ? opts->size : sizeof *ret);
    if (ret->flags & ~(unsigned)FLAGS)
        return fail(err, -EINVAL, "uw_options.flags: %#x is not a flag (of %#x)",
                    ret->flags & ~(unsigned)FLAGS, (unsigned)FLAGS);
    if (ret->flags == FLAGS)
        return fail(err, -EINVAL, "uw_options.flags: UW_LOCAL or UW_DAEMON, not both");
    if (ret->flags & UW_LOCAL && ret->socket)
        return fail(err, -EINVAL, "uw_options.socket: not used with UW_LOCAL");
    return 0;
}

/* LIB_ABSENT: there is no daemon, and none is required. */
static int open_remote(const uw_options *o, uw_ctx **ret, uw_error *err)
{
    struct daemon_address where;
    const char *named = o->socket ? o->socket : secure_getenv("UNDERWATT_SOCKET");

    int r = daemon_address(named, o->boards, &where, err);
    if (r == 0) {
        where.named |= (o->flags & UW_DAEMON) != 0;
        r = lib_remote_open(&where, ret, err);
    }
    return r;
}

int uw_ctx_open(const uw_options *opts, uw_ctx **ret_ctx, uw_error *err)
{
    uw_options o;
    int got = LIB_ABSENT;

    if (!ret_ctx)
        return fail(err, -EINVAL, "ret_ctx is NULL");
    int r = read_options(opts, &o, err);
    if (r < 0)
        return r;
    uw_ctx *ctx = NULL;
    if (!(o.flags & UW_LOCAL))
        got = open_remote(&o, &ctx, err);
    r = got == LIB_ABSENT ? lib_local_open(&o, &ctx, err) : got;
    if (r < 0 || !ctx)
        return r;
    ctx->pid = getpid();
    *ret_ctx = ctx;
    return 0;
}

/* Whether this process may use the context: its threads do not exist after a fork. */
static bool is_ours(const uw_ctx *ctx)
{
    return !ctx->mode->threads || ctx->pid == getpid();
}

static int not_ours(uw_error *err)
{
    return fail(err, -ECHILD,
                "this context's thread stayed in the process that opened it: open one "
                "after fork()");
}

void uw_ctx_free(uw_ctx *ctx)
{
    if (!ctx || !is_ours(ctx))
        return;
    uw_window *first = ctx->windows;
    ctx->mode->close(ctx);
    for (uw_window *w = first; w; w = w->after) /* the program frees these */
        w->ctx = NULL;
}

int uw_ctx_has_daemon(const uw_ctx *ctx)
{
    return ctx && lib_remote(ctx, "", NULL, NULL) == 0;
}

const char *uw_version(void)
{
    return UW_VERSION;
}

/* ---- devices ---- */

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
    return dev ? dev->id : "";
}

const char *uw_device_name(const uw_device *dev)
{
    return dev ? dev->name : "";
}

int uw_device_is_simulated(const uw_device *dev)
{
    return dev && dev->simulated;
}

int uw_device_is_closed(const uw_device *dev)
{
    return dev && dev->closed;
}

int uw_device_limits(uw_device *dev, uw_limits *ret, uw_error *err)
{
    if (!dev || !ret)
        return fail(err, -EINVAL, "dev or ret is NULL");
    return is_ours(dev->ctx) ? dev->ctx->mode->limits(dev, ret, err) : not_ours(err);
}

int uw_device_power(uw_device *dev, double *ret_w, uw_error *err)
{
    if (!dev || !ret_w)
        return fail(err, -EINVAL, "dev or ret_w is NULL");
    return is_ours(dev->ctx) ? dev->ctx->mode->power(dev, ret_w, err) : not_ours(err);
}

/* ---- windows ---- */

int uw_window_begin(uw_ctx *ctx, uw_window **ret, uw_error *err)
{
    if (!ctx || !ret)
        return fail(err, -EINVAL, "ctx or ret is NULL");
    if (!is_ours(ctx))
        return not_ours(err);
    uw_window *win = calloc(1, sizeof *win + ctx->n * sizeof *win->board);
    if (!win)
        return fail(err, -ENOMEM, "out of memory");
    win->ctx = ctx;
    win->pid = getpid();
    int r = ctx->mode->begin(ctx, win, err);
    if (r < 0) {
        free(win);
        return r;
    }
    win->after = ctx->windows;
    if (win->after)
        win->after->before = win;
    ctx->windows = win;
    *ret = win;
    return 0;
}

/* For each call on a window. */
static int check_window(const uw_window *win, uw_error *err)
{
    if (!win)
        return fail(err, -EINVAL, "win is NULL");
    if (!win->ctx)
        return fail(err, -EINVAL, "the window's context was freed");
    return is_ours(win->ctx) ? 0 : not_ours(err);
}

int uw_window_stop(uw_window *win, uw_error *err)
{
    int r = check_window(win, err);

    if (r < 0)
        return r;
    if (win->stopped)
        return fail(err, -EALREADY, "this window has already ended");
    r = win->ctx->mode->stop(win->ctx, win, err);
    if (r == 0) /* another thread may tell the daemon of it */
        __atomic_store_n(&win->stopped, true, __ATOMIC_RELEASE);
    return r;
}

/* 1: its energy is known; 0: not in time. */
static int await(uw_window *win, uint64_t timeout_ns, uw_error *err)
{
    if (!win->stopped)
        return fail(err, -EINVAL, "the window has not ended: uw_window_stop()");
    if (win->ready)
        return 1;
    int r = win->ctx->mode->await(win->ctx, win, timeout_ns, err);
    if (r == 1)
        win->ready = true;
    return r;
}

int uw_window_ready(uw_window *win, uw_error *err)
{
    int r = check_window(win, err);

    return r < 0 ? r : await(win, 0, err);
}

int uw_window_wait(uw_window *win, double timeout_s, uw_error *err)
{
    uint64_t ns = LIB_FOREVER;
    int r = check_window(win, err);

    if (r == 0 && isnan(timeout_s))
        r = fail(err, -EINVAL, "timeout_s is no number");
    if (r < 0)
        return r;
    if (timeout_s >= 0 && timeout_s < 1e9)
        ns = (uint64_t)(timeout_s * (double)NS_PER_S);
    r = await(win, ns, err);
    if (r == 0)
        return fail(err, -ETIMEDOUT, "the energy is not known yet, after %.3g s",
                    ns == LIB_FOREVER ? 10 : timeout_s);
    return r < 0 ? r : 0;
}

int uw_window_end(uw_window *win, uw_error *err)
{
    int r = check_window(win, err);

    if (r == 0 && win->ready)
        r = fail(err, -EALREADY, "this window has already ended");
    if (r == 0 && !win->stopped)
        r = uw_window_stop(win, err);
    return r < 0 ? r : uw_window_wait(win, -1, err);
}

/* For a window and a board: the energy is known, or -errno. */
static int check_known(const uw_window *win, const uw_device *dev, uw_error *err)
{
    if (!win->stopped || dev->ctx != win->ctx)
        return fail(err, -EINVAL,
                    win->stopped ? "the device is another context's"
                                 : "the window has not ended");
    if (!win->ready)
        return fail(err, -EAGAIN,
                    "the window's energy is not known yet: "
                    "uw_window_wait()");
    const struct lib_energy *e = &win->board[dev->at];
    return e->r < 0 ? fail(err, e->r, "%s", e->err.text) : 0;
}

int uw_window_energy(const uw_window *win, const uw_device *dev, uw_energy *ret,
                     uw_error *err)
{
    if (!win || !dev || !ret)
        return fail(err, -EINVAL, "win, dev or ret is NULL");
    int r = check_known(win, dev, err);
    if (r == 0)
        *ret = win->board[dev->at].energy;
    return r;
}

int uw_window_samples(uw_window *win, const uw_device *dev, uw_sample *buf, size_t n,
                      size_t *ret_n, uw_error *err)
{
    if (!dev || !buf || n == 0 || !ret_n)
        return fail(err, -EINVAL, "dev, buf or ret_n is NULL, or n is 0");
    int r = check_window(win, err);
    if (r == 0)
        r = check_known(win, dev, err);
    return r < 0 ? r
                 : win->ctx->mode->samples(win->ctx, win, dev->at, buf, n, ret_n, err);
}

size_t uw_window_processors(const uw_window *win)
{
    return win && win->ready ? win->n_processors : 0;
}

const char *uw_window_processor_name(const uw_window *win, size_t i)
{
    return i < uw_window_processors(win) ? win->processor[i].name : "";
}

int uw_window_processor(const uw_window *win, size_t i, uw_energy *ret, uw_error *err)
{
    if (!win || !ret)
        return fail(err, -EINVAL, "win or ret is NULL");
    if (!win->ready)
        return fail(err, win->stopped ? -EAGAIN : -EINVAL,
                    win->stopped ? "the window's energy is not known yet"
                                 : "the window has not ended");
    if (i < win->n_processors && win->processor[i].known) {
        *ret = win->processor[i].energy;
        return 0;
    }
    return win->ctx ? win->ctx->mode->no_processor(win->ctx, win, i, err)
                    : fail(err, -ENODATA, "processor %zu is not known", i);
}

void uw_window_free(uw_window *win)
{
    if (!win)
        return;
    uw_ctx *ctx = win->ctx;
    if (ctx && is_ours(ctx))
        ctx->mode->drop(ctx, win);
    if (ctx && win->before)
        win->before->after = win->after;
    else if (ctx)
        ctx->windows = win->after;
    if (ctx && win->after)
        win->after->before = win->before;
    free(win);
}
