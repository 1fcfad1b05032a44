#include "cli/cli-loop.h"

#include <signal.h>
#include <stddef.h>

#include "base/error.h"

int cli_loop_new(const struct cli_env *env, struct loop **ret, uw_error *err)
{
    struct loop_clock clock = {0, 1};

    int r = loop_clock_parse(env->clock, &clock, err);
    if (r < 0)
        return fail_in(err, r, "UNDERWATT_CLOCK");
    return loop_new_real(clock, ret, err);
}

static uint64_t now_of(void *user)
{
    return loop_now_ns(user);
}

struct gpu_clock cli_loop_clock(struct loop *loop)
{
    return (struct gpu_clock){now_of, loop};
}

uint64_t cli_wall_ns(const struct loop *loop, double ms)
{
    return (uint64_t)(ms * 1e6 * loop_speed(loop));
}

static int on_waited(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    (void)now_ns;
    loop_stop(user, 0);
    return 0;
}

void cli_loop_wait(struct loop *loop, double ms)
{
    struct loop_timer *timer = NULL;
    uint64_t at = loop_now_ns(loop) + cli_wall_ns(loop, ms);

    if (loop_timer_new(loop, at, 0, on_waited, loop, &timer, NULL) == 0)
        (void)loop_run(loop, NULL);
    loop_timer_free(timer);
}

/* Under nohup(1), a hangup must reach neither this command nor CMD, which has to find it
 * ignored, too.
 */
static bool is_left(int signo)
{
    struct sigaction was;

    return signo == SIGHUP && sigaction(signo, NULL, &was) == 0 &&
           was.sa_handler == SIG_IGN;
}

static struct sigaction loops[NSIG]; /* the loop's own */
static volatile sig_atomic_t sent[NSIG];

static void on_arrival(int signo, siginfo_t *info, void *context)
{
    (void)context;
    sent[signo] = info->si_code <= 0; /* SI_USER, SI_QUEUE, SI_TKILL */
    loops[signo].sa_handler(signo);
}

/* The loop does not say who sent a signal: puts on_arrival() before its handler. */
static void keep_sender(int signo)
{
    struct sigaction was;

    if (sigaction(signo, NULL, &was) < 0 || was.sa_flags & SA_SIGINFO)
        return;
    loops[signo] = was;
    was.sa_flags |= SA_SIGINFO;
    was.sa_sigaction = on_arrival;
    (void)sigaction(signo, &was, NULL);
}

bool cli_signal_sent(int signo)
{
    return sent[signo];
}

int cli_signals_new(struct loop *loop, size_t n, loop_signal_fn fn, void *user,
                    struct cli_signals *ret, uw_error *err)
{
    static const int signals[CLI_SIGNALS] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    int r = 0;

    (void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    for (size_t i = 0; i < n && r == 0; i++) {
        if (is_left(signals[i]))
            continue;
        r = loop_signal_new(loop, signals[i], fn, user, &ret->source[i], err);
        if (r == 0)
            keep_sender(signals[i]);
    }
    return r;
}

void cli_signals_free(struct cli_signals *s)
{
    for (size_t i = 0; i < CLI_SIGNALS; i++)
        loop_signal_free(s->source[i]);
}
