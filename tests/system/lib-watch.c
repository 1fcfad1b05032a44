/* What a program of somebody else does with libunderwatt: C99, the public header
 * alone.  Prints one line a board, then one a board for a window of argv[1] seconds;
 * the beginning and the end of the window are told on stdout.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "underwatt/underwatt.h"

static int fails(const char *what, const uw_error *err)
{
    (void)fprintf(stderr, "%s: %s\n", what, err->text);
    return 1;
}

static int show(uw_ctx *ctx)
{
    for (size_t i = 0; i < uw_device_count(ctx); i++) {
        uw_device *dev = uw_device_at(ctx, i);
        uw_limits lim;
        uw_error err;
        double w;

        if (uw_device_limits(dev, &lim, &err) < 0)
            return fails("limits", &err);
        if (uw_device_power(dev, &w, &err) < 0)
            return fails("power", &err);
        printf("%s;%s;%d;%u;%u;%u;%u;%.3f\n", uw_device_id(dev), uw_device_name(dev),
               uw_device_is_simulated(dev), (unsigned)lim.min_mw, (unsigned)lim.max_mw,
               (unsigned)lim.default_mw, (unsigned)lim.enforced_mw, w);
    }
    return 0;
}

static int measure(uw_ctx *ctx, time_t seconds)
{
    struct timespec wait = {seconds, 0};
    uw_window *win;
    uw_error err;

    if (uw_window_begin(ctx, &win, &err) < 0)
        return fails("begin", &err);
    printf("begun\n");
    (void)fflush(stdout);
    (void)nanosleep(&wait, NULL);
    printf("ends\n");
    (void)fflush(stdout);
    if (uw_window_end(win, &err) < 0)
        return fails("end", &err);
    for (size_t i = 0; i < uw_device_count(ctx); i++) {
        uw_energy e;
        if (uw_window_energy(win, uw_device_at(ctx, i), &e, &err) < 0)
            return fails("energy", &err);
        printf("%.6f;%.4f;%.4f;%.4f;%s;%s\n", e.time_s, e.energy_j, e.half_j, e.power_w,
               e.method, e.why);
    }
    printf("again %d\n", uw_window_end(win, &err));
    uw_window_free(win);
    return 0;
}

int main(int argc, char **argv)
{
    uw_options opts;
    uw_ctx *ctx;
    uw_error err;

    if (argc != 3)
        return 2;
    memset(&opts, 0, sizeof opts);
    opts.size = sizeof opts;
    opts.boards = strcmp(argv[2], "-") == 0 ? NULL : argv[2];
    if (uw_ctx_open(&opts, &ctx, &err) < 0)
        return fails("open", &err);
    int r = show(ctx);
    if (r == 0)
        r = measure(ctx, atol(argv[1]));
    uw_ctx_free(ctx);
    return r;
}
