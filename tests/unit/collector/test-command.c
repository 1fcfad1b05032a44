/* Programs that are run for their output: a bound, an end, a status. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "collector/command.h"
#include "tap.h"

static struct {
    int calls, r;
    char *text;
    size_t len;
    uw_error why;
} got;
static struct loop *loop;

static void on_end(int r, char *text, size_t len, const uw_error *why, void *user)
{
    (void)user;
    free(got.text);
    got.calls++;
    got.r = r;
    got.text = text;
    got.len = len;
    got.why = *why;
    loop_stop(loop, 0);
}

static int on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    (void)now_ns;
    (void)user;
    loop_stop(loop, 0);
    return 0;
}

static struct command *run(const char *script, double deadline_s, size_t max)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    const struct command_opts opts = {
        .argv = argv, .deadline_ns = ns_of_s(deadline_s), .max = max, .fn = on_end};
    struct command *c = NULL;
    uw_error err = {""};

    got.calls = 0;
    is_int(command_new(loop, &opts, &c, &err), 0, "begun: %s %s", script, err.text);
    (void)loop_run(loop, &err);
    return c;
}

static void ends(const char *script, double deadline_s, size_t max, int r,
                 const char *says)
{
    struct command *c = run(script, deadline_s, max);

    ok(got.calls == 1 && got.r == r && strstr(r < 0 ? got.why.text : got.text, says),
       "%d: %s", got.r, r < 0 ? got.why.text : "output");
    ok(r == 0 || !got.text, "output only of what ended well");
    command_free(c);
}

int main(void)
{
    const struct loop_clock real = {0, 1};
    const char *const none[] = {"/no/such/program", NULL};
    struct command *c = NULL;
    struct loop_timer *timer = NULL;
    uw_error err = {""};

    if (loop_new_real(real, &loop, &err) < 0)
        return 1;
    ends("echo out; echo more >&2", 60, 1000, 0, "out\n");
    is_int(got.len, 4, "all of it, without standard error");
    ends("echo $SLURM_TIME_FORMAT $SLURM_BITSTR_LEN", 60, 1000, 0, "%s 0");
    (void)setenv("SQUEUE_STATES", "RUNNING", 1);
    (void)setenv("SLURM_CONF", "/etc/here", 1);
    ends("echo \"$SLURM_CONF,$SQUEUE_STATES,\"", 60, 1000, 0, "/etc/here,,");
    ends("head -c 100000 /dev/zero | tr '\\0' x", 60, 100000, 0, "xxxx");
    is_int(got.len, 100000, "as much as may be");
    ends("head -c 3000000 /dev/zero | tr '\\0' x", 60, 2 << 20, -EFBIG,
         "it prints more than 2 MiB");
    ends("yes", 60, 1 << 20, -EFBIG, "more than 1 MiB");
    ends("echo out; echo why >&2; exit 3", 60, 1000, -EPROTO, "sh: status 3: why");
    ends("exit 1", 60, 1000, -EPROTO, "status 1: no message");
    ends("kill -9 $$", 60, 1000, -EPROTO, "signal 9 ended it");
    ends("sleep 1000 & sleep 1000", 0.2, 1000, -ETIMEDOUT, "no end within 0.2 s");
    ends("exec >&- 2>&-; sleep 1000", 0.2, 1000, -ETIMEDOUT, "no end within 0.2 s");
    ok(command_new(loop,
                   &(struct command_opts){
                       .argv = none, .deadline_ns = NS_PER_S, .max = 1000, .fn = on_end},
                   &c, &err) == -ENOENT,
       "no such program: %s", err.text);
    const char *const sleeper[] = {"sleep", "1000", NULL};
    got.calls = 0;
    is_int(command_new(loop,
                       &(struct command_opts){.argv = sleeper,
                                              .deadline_ns = NS_PER_S / 5,
                                              .max = 1000,
                                              .fn = on_end},
                       &c, &err),
           0, "begun");
    command_free(c);
    is_int(loop_timer_new(loop, loop_now_ns(loop) + NS_PER_S / 2, 0, on_timer, NULL,
                          &timer, &err),
           0, "half a second");
    (void)loop_run(loop, &err);
    is_int(got.calls, 0, "freed before its end: nobody is told");
    loop_timer_free(timer);
    free(got.text);
    loop_free(loop);
    return done();
}
