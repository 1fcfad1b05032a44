/* Windows that clients hold open, in virtual time: as exact as the sampler's own, longer
 * than what meters remember, whose they are, what is not known.
 */
#include "energy/client-windows.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>

#include "base/auto.h"
#include "base/names.h"
#include "base/units.h"
#include "tap.h"
#include "world.h"

enum { HISTORY_S = 60, ANNA = 1001, BERT = 1002 };

static struct {
    struct world world;
    struct sampler *sampler;
    struct attribution *book;
    struct client_windows *windows;
    struct loop_child *child;
    unsigned answers;
    int r;
    double time_s;
    struct client_window_board got;
    struct sampler_window own;
    struct meter_result own_result;
} w;

static void wait_s(double s)
{
    world_wait_s(&w.world, s);
}

static void on_row(const struct attribution_row *row, void *user)
{
    (void)row;
    (void)user;
}

static void on_total(const struct attribution_total *total, void *user)
{
    (void)user;
    if (w.windows)
        client_windows_total(w.windows, total);
}

static void on_window(int r, const struct client_window_result *result, const char *text,
                      void *user)
{
    (void)text;
    (void)user;
    w.answers++;
    w.r = r;
    if (r == 0) {
        w.time_s = s_between(result->begin_ns, result->end_ns);
        w.got = result->board[0];
    }
}

static int on_own(struct sampler *s, const struct sampler_window *window, void *user)
{
    (void)s;
    (void)user;
    w.own = *window;
    if (window->r == 0)
        w.own_result = window->board[0];
    return 0;
}

static int on_exit_of(struct loop_child *child, int status, void *user)
{
    (void)child;
    (void)status;
    (void)user;
    return 0;
}

static bool begin_as(const char *model, bool whole)
{
    uw_error err = {{0}};

    memset(&w, 0, sizeof w);
    int r = world_new(&w.world, model, 1, 3, &err);
    if (r == 0)
        r = world_open_boards(&w.world, &err);
    struct board *b = w.world.boards ? boards_at(w.world.boards, 0) : NULL;
    struct sampler_opts opts = {.period_ns = 100 * NS_PER_MS, .history_s = HISTORY_S};
    if (r == 0)
        r = sampler_new(w.world.loop, &b, 1, &opts, &w.sampler, &err);
    struct attribution_opts book = {.loop = w.world.loop,
                                    .sampler = &w.sampler,
                                    .n = 1,
                                    .on_row = on_row,
                                    .on_total = on_total};
    if (r == 0)
        r = attribution_new(&book, &w.book, &err);
    struct client_windows_opts windows = {.loop = w.world.loop,
                                          .sampler = &w.sampler,
                                          .n = 1,
                                          .whole = whole,
                                          .sparse = !whole};
    if (r == 0)
        r = client_windows_new(&windows, &w.windows, &err);
    return ok(r == 0, "%s: a board %s", model, err.text);
}

static bool begin(const char *model)
{
    return begin_as(model, false);
}

static void end(void)
{
    loop_child_free(w.child);
    client_windows_free(w.windows);
    attribution_free(w.book);
    sampler_free(w.sampler);
    world_close(&w.world);
}

static void train(void)
{
    const char *argv[] = {"underwatt-sim", "train", "--workload", "resnet50",
                          "--epochs",      "1000",  NULL};
    struct loop_child_opts opts = {
        .argv = argv, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    uw_error err = {{0}};

    ok(loop_child_new(w.world.loop, &opts, on_exit_of, NULL, &w.child, &err) == 0,
       "a job begins %s", err.text);
}

static uint64_t open_one(uid_t uid)
{
    uint64_t id = 0;
    uw_error err;

    return client_windows_begin(w.windows, uid, &id, &err) == 0 ? id : 0;
}

static int ask_one(uid_t uid, uint64_t id, bool keep)
{
    uw_error err;

    const struct client_window_ask ask = {.fn = on_window, .keep = keep};
    return client_windows_ask(w.windows, uid, id, &ask, &err);
}

static int close_one(uid_t uid, uint64_t id)
{
    return ask_one(uid, id, false);
}

enum { ROOM = 2048 };
static struct meter_power power[ROOM];

/* The energy of the first s seconds by the means; each follows the one before. */
static double energy_of(size_t n, double s, bool *ret_whole)
{
    double at = 0, j = 0;

    *ret_whole = true;
    for (size_t i = 0; i < n; i++) {
        double begin = power[i].end_s - power[i].over_s;
        *ret_whole &= fabs(begin - at) < 1e-6 && power[i].over_s > 0;
        at = power[i].end_s;
        j += power[i].power_w * fmax(fmin(at, s) - begin, 0);
    }
    return j;
}

/* Of window id of a user, in the array of that name. */
static int powers_of(uid_t uid, uint64_t id, size_t board, size_t room, size_t *ret_n,
                     uw_error *err)
{
    struct client_window_powers p = {.board = board, .buf = power, .room = room};
    int r = client_windows_powers(w.windows, uid, id, &p, err);

    *ret_n = r == 0 ? p.n : 0;
    return r;
}

/* The power over a window of s seconds that is known and kept: its sum is the energy. */
static void powers(const char *model, uint64_t id, double s)
{
    static const size_t rooms[] = {ROOM, 16, 1};
    uw_error err = {""};

    for (size_t i = 0; i < n_elements(rooms); i++) {
        size_t n = 0;
        bool whole;
        int r = powers_of(ANNA, id, 0, rooms[i], &n, &err);
        double j = energy_of(n, s, &whole),
               exact = w.got.method == METER_FOLDED ? 1 : 0.02;
        ok(r == 0 && n > 0 && n <= rooms[i] && (i > 0 || n >= fmin(s / 4, 100)),
           "%s: %.1f s: %zu means in %zu places %s", model, s, n, rooms[i], err.text);
        ok(whole && n > 0 && fabs(power[n - 1].end_s - s) < 1e-3,
           "%s: %.1f s: they follow each other", model, s);
        ok(fabs(j - w.got.energy_j) <= w.got.half_j * exact,
           "%s: %.1f s: they sum to %.2f J, the window has %.2f J", model, s, j,
           w.got.energy_j);
    }
}

/* A window of s seconds, as the plant has it. */
static void exact(const char *model, double s)
{
    double true_j = virtual_world_true_j(w.world.sim, 0);
    uint64_t id = open_one(ANNA), from = loop_now_ns(w.world.loop);

    w.answers = 0;
    wait_s(s);
    true_j = virtual_world_true_j(w.world.sim, 0) - true_j;
    int r = ask_one(ANNA, id, true);
    uint64_t to = loop_now_ns(w.world.loop);
    if (s < HISTORY_S)
        (void)sampler_window(w.sampler, from, to, on_own, NULL);
    is_int(w.answers, 0, "%s: %.1f s: never answered from inside", model, s);
    wait_s(5);
    ok(r == 0 && w.answers == 1 && w.r == 0 && w.got.r == 0, "%s: %.1f s: answered %s",
       model, s, w.got.error.text);
    is_near(w.time_s, s, 1e-3, "%s: %.1f s: its time", model, s);
    ok(fabs(w.got.energy_j - true_j) <= w.got.half_j,
       "%s: %.1f s: %.1f J +- %.1f J (%s), true %.1f J", model, s, w.got.energy_j,
       w.got.half_j, names_word(NAMES_METER_METHOD, w.got.method), true_j);
    ok(w.got.half_j < 0.03 * true_j + 100, "%s: %.1f s: an interval that says something",
       model, s);
    if (s < HISTORY_S)
        ok(fabs(w.got.energy_j - w.own_result.energy_j) <=
               w.got.half_j + w.own_result.half_j,
           "%s: %.1f s: %.1f J +- %.1f J by the sampler", model, s, w.own_result.energy_j,
           w.own_result.half_j);
    powers(model, id, s);
    is_int(client_windows_drop(w.windows, ANNA, id, NULL), 0, "%s: it goes", model);
}

/* A job begins with a window of which little is left in the meter, and ends within it. */
static void shape(void)
{
    bool whole;
    size_t n = 0;

    if (!begin("v100")) {
        end();
        return;
    }
    wait_s(25.7); /* not where a booked stretch begins */
    uint64_t id = open_one(ANNA);
    double from = virtual_world_true_j(w.world.sim, 0), at[3];
    train();
    for (size_t i = 0; i < n_elements(at); i++) {
        wait_s(i == 0 ? 12.3 : 8.0 * HISTORY_S);
        at[i] = virtual_world_true_j(w.world.sim, 0) - from;
        if (i == 1)
            (void)loop_child_kill(w.child, SIGTERM);
    }
    uint64_t other = open_one(BERT);
    int r = powers_of(ANNA, id, 0, ROOM, &n, NULL);
    is_int(r, -EBUSY, "none while its energy is not known");
    (void)ask_one(ANNA, id, true);
    wait_s(5);
    r = powers_of(ANNA, id, 0, ROOM, &n, NULL);
    ok(r == 0 && n > 150, "a window of %.0f s has %zu means", w.time_s, n);
    double first = energy_of(n, 12.3, &whole), upto = 8.0 * HISTORY_S + 12.3;
    ok(whole && fabs(first - at[0]) < 0.1 * at[0],
       "of its first seconds %.0f J, true %.0f J", first, at[0]);
    double job = energy_of(n, upto, &whole), all = energy_of(n, w.time_s, &whole);
    ok(fabs(job - at[1]) < 0.02 * at[1], "of the job %.0f J, true %.0f J", job, at[1]);
    ok(fabs(all - job - (at[2] - at[1])) < 0.1 * (at[2] - at[1]),
       "of the time after it %.0f J, true %.0f J", all - job, at[2] - at[1]);
    is_int(powers_of(BERT, id, 0, ROOM, &n, NULL), -ENOENT, "another's");
    is_int(powers_of(BERT, other, 0, ROOM, &n, NULL), -EBUSY, "one that is open");
    is_int(powers_of(ANNA, id, 1, ROOM, &n, NULL), -EINVAL, "no such board");

    /* Asked long after its end: of the books alone. */
    double energy_j = w.got.energy_j;
    wait_s(20.0 * HISTORY_S);
    r = powers_of(ANNA, id, 0, ROOM, &n, NULL);
    all = energy_of(n, w.time_s, &whole);
    ok(r == 0 && n > 10 && whole && fabs(all - energy_j) < 1e-3 * energy_j,
       "20 min later: %zu means, %.0f J of %.0f J", n, all, energy_j);
    end();
}

static void lengths(const char *model)
{
    if (!begin(model)) {
        end();
        return;
    }
    wait_s(20);
    train();
    wait_s(20);
    exact(model, 2.5);
    exact(model, 12);
    exact(model, 40);
    exact(model, 10.0 * HISTORY_S + 3.3); /* what meters remember, many times over */
    is_int(client_windows_count(w.windows), 0, "%s: none is left", model);
    end();
}

/* At the rates of a daemon's boards a window is not wider for the seconds between two
 * readings: a job that runs, and a job that begins and ends within one after a rest.
 */
static void sparse(bool rests)
{
    double widest = 0;
    unsigned held = 0, n = 0;

    if (!begin("v100")) {
        end();
        return;
    }
    sampler_periods(w.sampler, 500 * NS_PER_MS, 3 * NS_PER_S, 200 * NS_PER_MS);
    sampler_rate(w.sampler, 0, rests ? SAMPLER_REST : SAMPLER_JOB, false);
    if (!rests)
        train();
    wait_s(20.3);
    for (unsigned i = 0; i < 20; i++) {
        wait_s(rests ? 17.3 + 0.1 * i : 0.37 + 0.01 * i);
        double from = virtual_world_true_j(w.world.sim, 0);
        uint64_t id = open_one(ANNA);
        if (rests)
            train();
        wait_s(0.7);
        sampler_rate(w.sampler, 0, SAMPLER_JOB, false); /* as the roster finds it */
        wait_s(rests ? 4 : 1.3);
        if (rests)
            (void)loop_child_kill(w.child, SIGTERM);
        double j = virtual_world_true_j(w.world.sim, 0) - from;
        (void)close_one(ANNA, id);
        wait_s(3);
        n += w.r == 0 && w.got.r == 0;
        held += fabs(w.got.energy_j - j) <= w.got.half_j;
        widest = fmax(widest, w.got.half_j);
        if (rests) {
            loop_child_free(take(w.child));
            sampler_rate(w.sampler, 0, SAMPLER_REST, false);
        }
    }
    ok(n == 20 && held >= 19, "%s: %u of 20 windows hold the truth",
       rests ? "after a rest" : "a job runs", held);
    ok(widest < 70, "and are +- %.0f J at most", widest);
    end();
}

/* A daemon's boards at rest give a sample every few seconds. */
static void rest(const char *model)
{
    if (!begin(model)) {
        end();
        return;
    }
    wait_s(20);
    sampler_periods(w.sampler, 500 * NS_PER_MS, 3 * NS_PER_S, 200 * NS_PER_MS);
    sampler_rate(w.sampler, 0, SAMPLER_REST, false);
    wait_s(20);
    exact(model, 3.1);
    exact(model, 14.7);
    wait_s(10);
    uint64_t before = sampler_calls(w.sampler);
    for (int i = 0; i < 50; i++) {
        (void)close_one(ANNA, open_one(ANNA));
        wait_s(0.02);
    }
    uint64_t calls = sampler_calls(w.sampler) - before;
    ok(calls <= 14, "%s: 50 windows in a second: %u calls of the driver", model,
       (unsigned)calls);
    wait_s(10);
    before = sampler_calls(w.sampler);
    wait_s(30);
    calls = sampler_calls(w.sampler) - before;
    ok(calls <= 16, "%s: … and in the 30 s after them %u", model, (unsigned)calls);

    /* A job that begins within one, on a board that was at rest. */
    double true_j = virtual_world_true_j(w.world.sim, 0);
    uint64_t id = open_one(ANNA);
    wait_s(1.3);
    train();
    wait_s(2.2);
    sampler_rate(w.sampler, 0, SAMPLER_JOB, false); /* as the roster finds it */
    wait_s(20);
    true_j = virtual_world_true_j(w.world.sim, 0) - true_j;
    (void)close_one(ANNA, id);
    wait_s(5);
    ok(w.got.r == 0 && fabs(w.got.energy_j - true_j) <= w.got.half_j,
       "%s: a job begins within: %.1f J +- %.1f J, true %.1f J", model, w.got.energy_j,
       w.got.half_j, true_j);
    end();
}

static void whose(void)
{
    uw_error err;

    if (!begin("v100")) {
        end();
        return;
    }
    wait_s(10);
    uint64_t a = open_one(ANNA), b = open_one(ANNA), c = open_one(BERT);
    ok(a && a < b && b < c, "each has a number of its own, at one moment too");
    const struct client_window_ask ask = {.fn = on_window};
    is_int(client_windows_ask(w.windows, BERT, a, &ask, &err), -ENOENT, "another's: %s",
           err.text);
    is_int(client_windows_stop(w.windows, BERT, a, 0, &err), -ENOENT, "nor stopped");
    is_int(client_windows_drop(w.windows, BERT, a, &err), -ENOENT,
           "nor may it be dropped");
    is_int(close_one(ANNA, 12), -ENOENT, "one that never was");
    is_int(client_windows_drop(w.windows, ANNA, a, &err), 0, "its own is dropped");
    is_int(close_one(ANNA, a), -ENOENT, "and gone");
    wait_s(1);
    is_int(close_one(CLIENT_WINDOWS_ANYBODY, c), 0, "an administrator ends anybody's");
    is_int(close_one(BERT, c), -EALREADY, "it ends once");
    is_int(client_windows_drop(w.windows, BERT, c, &err), -EALREADY,
           "and is not dropped then");
    wait_s(5);
    is_int(w.answers, 1, "one answer");

    /* The bounds. */
    for (int i = 1; i < CLIENT_WINDOWS_PER_UID; i++)
        (void)open_one(ANNA);
    is_int(client_windows_count(w.windows), CLIENT_WINDOWS_PER_UID,
           "as many as a user may hold");
    c = open_one(BERT);
    (void)open_one(ANNA);
    is_int(close_one(ANNA, b), -ENOENT, "one more: its own oldest is gone");
    wait_s(1);
    is_int(close_one(BERT, c), 0, "another's is not");
    uid_t uid = 2000;
    while (client_windows_count(w.windows) < CLIENT_WINDOWS_MAX && uid < 60000)
        (void)open_one(uid++);
    is_int(client_windows_begin(w.windows, 60000, &a, &err), -EBUSY,
           "a bound for all: %s", err.text);
    end();
}

/* Of a window that has ended: whether its energy is known, within its interval. */
static void known(uint64_t id, double true_j, double s, const char *name)
{
    struct client_window_result result;
    uw_error err = {""};

    int r = client_windows_look(w.windows, ANNA, id, &result, &err);
    const struct client_window_board *b = &result.board[0];
    if (!ok(r == 1, "%s: known %d %s", name, r, err.text))
        return;
    ok(b->r == 0 && fabs(b->energy_j - true_j) <= b->half_j,
       "%s: %.1f J +- %.1f J, true %.1f J", name, b->energy_j, b->half_j, true_j);
    is_near(s_between(result.begin_ns, result.end_ns), s, 1e-6, "%s: its length", name);
}

static double true_j(void)
{
    return virtual_world_true_j(w.world.sim, 0);
}

/* A board that has trained for 10 s. */
static bool begin_trained(void)
{
    if (!begin("v100"))
        return false;
    train();
    wait_s(10);
    return true;
}

/* Ends that are told later than they were. */
static void stopped_before(void)
{
    struct client_window_result result;
    uw_error err = {""};

    if (!begin_trained()) {
        end();
        return;
    }
    double a0 = true_j();
    uint64_t a = open_one(ANNA);
    wait_s(3);
    double a1 = true_j();
    uint64_t a_end = loop_now_ns(w.world.loop);
    is_int(client_windows_look(w.windows, ANNA, a, &result, &err), 0,
           "one that has not ended is not known");
    wait_s(0.5);
    double b0 = true_j();
    uint64_t b = open_one(ANNA);
    wait_s(90); /* stretches of 10 s are booked to both meanwhile */
    is_int(client_windows_stop(w.windows, ANNA, a, a_end, &err), 0, "told after 90 s %s",
           err.text);
    is_int(client_windows_stop(w.windows, ANNA, a, 0, &err), 0, "and again");
    wait_s(3);
    known(a, a1 - a0, 3, "3 s, told 90 s later");
    known(a, a1 - a0, 3, "it stays known");
    is_int(client_windows_drop(w.windows, ANNA, a, &err), 0, "until it is dropped");
    is_int(client_windows_look(w.windows, ANNA, a, &result, &err), -ENOENT, "then not");
    wait_s(200);
    double b1 = true_j(), s = s_between(b, loop_now_ns(w.world.loop));
    uint64_t b_end = loop_now_ns(w.world.loop);
    wait_s(40);
    is_int(client_windows_stop(w.windows, ANNA, b, b_end, &err), 0,
           "a long one, told after 40 s");
    wait_s(3);
    known(b, b1 - b0, s, "a long one");
    uint64_t c = open_one(ANNA);
    uint64_t c_end = loop_now_ns(w.world.loop) + NS_PER_S;
    is_int(client_windows_stop(w.windows, ANNA, c, c_end, &err), -EINVAL,
           "an end in the future: %s", err.text);
    wait_s(CLIENT_WINDOWS_BACK_S + 2);
    is_int(client_windows_stop(w.windows, ANNA, c, c_end, &err), -ERANGE,
           "one too long ago: %s", err.text);
    is_int(client_windows_look(w.windows, ANNA, c, &result, &err), 0, "it goes on");
    end();
}

/* The daemon is stopped, and a window ends meanwhile. */
static void stood(void)
{
    uw_error err = {""};

    if (!begin_trained()) {
        end();
        return;
    }
    double a0 = true_j();
    uint64_t a = open_one(ANNA);
    wait_s(3);
    loop_virtual_stand(w.world.loop, 12 * NS_PER_S);
    double a1 = true_j();
    uint64_t a_end = loop_now_ns(w.world.loop);
    loop_virtual_stand(w.world.loop, 10 * NS_PER_S);
    struct sim_fault late = {.kind = SIM_FAULT_K_LOST, .for_ns = NS_PER_S / 5};
    is_int(virtual_world_fault(w.world.sim, &late, &err), 0, "the board is late");
    is_int(client_windows_stop(w.windows, ANNA, a, a_end, &err), 0, "is told %s",
           err.text);
    wait_s(4);
    known(a, a1 - a0, 15, "the daemon stood still");
    end();
}

enum { STEPS = 60, DENSE = 30 };

/* A window a step: each is told with an interval that says something, though the board is
 * read once a second otherwise; and so it is read again after them.
 */
static void often(void)
{
    struct client_window_result result;
    double j = 0, half = 0, begun_j = 0;
    uint64_t id[STEPS];

    if (!begin("v100")) {
        end();
        return;
    }
    sampler_periods(w.sampler, NS_PER_S, 0, 0);
    sampler_rate(w.sampler, 0, SAMPLER_JOB, false);
    train();
    wait_s(20);
    uint64_t calls = sampler_calls(w.sampler);
    wait_s(10);
    uint64_t plain = sampler_calls(w.sampler) - calls;
    for (int i = 0; i < STEPS; i++) {
        if (i == DENSE)
            begun_j = true_j();
        id[i] = open_one(ANNA);
        wait_s(0.09);
        (void)client_windows_stop(w.windows, ANNA, id[i], 0, NULL);
    }
    double all_j = true_j() - begun_j;
    wait_s(5);
    for (int i = DENSE; i < STEPS; i++)
        if (client_windows_look(w.windows, ANNA, id[i], &result, NULL) == 1) {
            j += result.board[0].energy_j;
            half += result.board[0].half_j / (STEPS - DENSE);
        }
    is_near(j, all_j, 0.02 * all_j, "the sum of steps: %.1f J, true %.1f J", j, all_j);
    ok(half > 0 && half < 4 * all_j / (STEPS - DENSE), "each of %.1f J +- %.1f J",
       all_j / (STEPS - DENSE), half);
    calls = sampler_calls(w.sampler);
    wait_s(10);
    is_near((double)(sampler_calls(w.sampler) - calls), (double)plain,
            0.3 * (double)plain + 3, "as many calls after them as before: %u",
            (unsigned)plain);
    end();
}

/* Waiting for a time, and what stays. */
static void waiting(void)
{
    struct client_window_ask ask = {.keep = true, .fn = on_window};
    uw_error err = {""};

    if (!begin("v100")) {
        end();
        return;
    }
    wait_s(10);
    uint64_t a = open_one(ANNA);
    wait_s(1);
    ask.until_ns = loop_now_ns(w.world.loop) + NS_PER_MS;
    is_int(client_windows_ask(w.windows, ANNA, a, &ask, &err), 0, "waits for 1 ms");
    wait_s(0.01);
    ok(w.answers == 1 && w.r == CLIENT_WINDOWS_NOT_YET, "it is not known in time: %d",
       w.r);
    wait_s(0.5);
    is_int(w.answers, 1, "who waited is told once");
    ask.until_ns = loop_now_ns(w.world.loop) + 30 * NS_PER_S;
    is_int(client_windows_ask(w.windows, ANNA, a, &ask, &err), 0, "waits again");
    wait_s(5);
    ok(w.answers == 2 && w.r == 0, "it is known then");
    ask.until_ns = 0;
    ask.keep = false;
    is_int(client_windows_ask(w.windows, ANNA, a, &ask, &err), 0, "it stays");
    wait_s(1);
    ok(w.answers == 3 && w.r == 0, "known at once");
    is_int(client_windows_count(w.windows), 0, "until it is not to be kept");
    end();
}

/* At the limit of a user: what is known goes before what has not ended. */
static void full(void)
{
    struct client_window_result result;
    uw_error err = {""};

    if (!begin("v100")) {
        end();
        return;
    }
    wait_s(10);
    uint64_t open = open_one(ANNA), known = open_one(ANNA), second = open_one(ANNA);
    wait_s(1);
    (void)client_windows_stop(w.windows, ANNA, known, 0, NULL);
    (void)client_windows_stop(w.windows, ANNA, second, 0, NULL);
    wait_s(5);
    while (client_windows_count(w.windows) < CLIENT_WINDOWS_PER_UID)
        (void)open_one(ANNA);
    (void)open_one(ANNA);
    is_int(client_windows_look(w.windows, ANNA, known, &result, &err), -ENOENT,
           "one too many: the oldest that is known is gone");
    is_int(client_windows_look(w.windows, ANNA, second, &result, &err), 1,
           "the next is not");
    is_int(client_windows_look(w.windows, ANNA, open, &result, &err), 0,
           "nor an older one that has not ended");
    end();
}

/* One user cannot take the windows of all, with ends whose energy is not known yet. */
static void full_of_ended(void)
{
    uw_error err = {""};

    if (!begin("v100")) {
        end();
        return;
    }
    wait_s(10);
    uint64_t first = open_one(ANNA);
    (void)close_one(ANNA, first);
    uint64_t second = 0;
    for (int i = 0; i < CLIENT_WINDOWS_PER_UID + 10; i++) {
        uint64_t id = open_one(ANNA);
        second = second ? second : id;
        (void)client_windows_stop(w.windows, ANNA, id, 0, NULL);
    }
    is_int(client_windows_count(w.windows), CLIENT_WINDOWS_PER_UID,
           "a user at the limit, no energy is known: no more than that");
    is_int(client_windows_drop(w.windows, ANNA, second, &err), -ENOENT,
           "the oldest that nobody waits for is gone");
    is_int(client_windows_drop(w.windows, ANNA, first, &err), -EALREADY,
           "one that somebody waits for is not");
    end();
}

static void many(void)
{
    uint64_t id[40];

    if (!begin("v100")) {
        end();
        return;
    }
    wait_s(10);
    for (int i = 0; i < 40; i++)
        id[i] = open_one(ANNA);
    wait_s(25);
    bool good = true;
    for (int i = 0; i < 40; i++)
        good &= close_one(ANNA, id[i]) == 0;
    wait_s(10);
    ok(good && w.answers == 40, "40 that end at once, more than a sampler takes: %u",
       w.answers);
    id[0] = open_one(ANNA);
    wait_s(2);
    (void)close_one(ANNA, id[0]);
    client_windows_free(take(w.windows));
    ok(w.answers == 41 && w.r == -EAGAIN, "who waits when the boards go is told");
    end();
}

/* Nobody can tell what a board that hangs for long takes. */
static void lost(void)
{
    struct sim_fault fault;
    uw_error err = {{0}};

    if (!begin("v100")) {
        end();
        return;
    }
    wait_s(10);
    uint64_t id = open_one(ANNA);
    wait_s(15);
    memset(&fault, 0, sizeof fault);
    fault.kind = SIM_FAULT_K_HANG;
    ok(virtual_world_fault(w.world.sim, &fault, &err) == 0, "the board hangs %s",
       err.text);
    wait_s(30);
    (void)close_one(ANNA, id);
    wait_s(20);
    ok(w.answers == 1 && w.r == 0 && w.got.r == -ENODATA,
       "its energy is not known, which is said: %s", w.got.error.text);
    end();
}

/* What comes after CMD's end is waited for where it narrows the interval: of a window of
 * seconds, until the counter's next change, and not of one of minutes, whose interval
 * covers a load that ended just before.
 */
static void at_the_end(double s, bool waits)
{
    unsigned held = 0, soon = 0, next = 0, n = 8;
    double half = 0;

    if (!begin_as("v100", true)) {
        end();
        return;
    }
    wait_s(20);
    for (unsigned i = 0; i < n; i++) {
        train();
        wait_s(0.5 + 0.013 * i);
        double from = virtual_world_true_j(w.world.sim, 0);
        uint64_t id = open_one(ANNA);
        wait_s(s - 0.03);
        (void)loop_child_kill(w.child, SIGTERM);
        wait_s(0.03);
        double true_j = virtual_world_true_j(w.world.sim, 0) - from;
        unsigned before = w.answers;
        (void)close_one(ANNA, id);
        wait_s(0.02);
        soon += w.answers > before;
        wait_s(0.06);
        next += w.answers > before;
        wait_s(0.14);
        half = w.got.half_j;
        held += w.answers == before + 1 && w.r == 0 && w.got.r == 0 &&
                fabs(w.got.energy_j - true_j) <= half;
        loop_child_free(take(w.child));
    }
    ok(waits ? soon < n : soon == n, "%.0f s: known within 20 ms %u times of %u", s, soon,
       n);
    ok(next >= n / 2,
       "%.0f s: known at the counter's next change, within 80 ms, %u times", s, next);
    ok(held == n, "%.0f s: known within 0.22 s and within its interval %u times of %u", s,
       held, n);
    ok(!waits || half < 20, "%.0f s: its interval is %.1f J", s, half);
    end();
}

int main(void)
{
    at_the_end(2, true);
    at_the_end(150, false);
    lengths("v100");
    lengths("h100");
    rest("v100");
    rest("h100");
    sparse(false);
    sparse(true);
    whose();
    shape();
    stopped_before();
    stood();
    often();
    waiting();
    full();
    full_of_ended();
    many();
    lost();
    return done();
}
