/* The time by which rows are old: clocks that are set, machines that are off; and that a
 * clock set forward by 400 days and back costs no fineness.
 */
#include "base/units.h"
#include "fault.h"
#include "help.h"
#include "io/ledger-queue.h"
#include "io/store/clock.h"
#include "tap.h"
#include "virtual/virtual-loop.h"

#define H_MS INT64_C(3600000)
#define D_MS (24 * H_MS)
#define U (T0 / 1000000)

/* So long passes, and UTC goes so far on. */
struct stretch {
    int64_t passed_ms, utc_ms;
    int times;
};

/* clang-format off */
static const struct {
    const char *name;
    int64_t kept_ms, stood_ms; /* by earlier runs; since U */
    bool kept;
    int64_t utc_ms; /* … theirs at last; since U */
    struct stretch s[4];
    int64_t want_ms; /* since U */
} cases[] = {
    {"both go on", 0, 0, false, 0, {{60000, 60000, 100}}, 6000000},
    {"UTC is slewed", 0, 0, false, 0, {{60000, 60030, 100}}, 6003000},
    {"400 days forward: not followed", 0, 0, false, 0, {{60000, 60000, 10}, {0, 400 * D_MS, 1}, {60000, 60000, 60}}, 70 * 60000},
    {"and back", 0, 0, false, 0, {{0, 400 * D_MS, 1}, {60000, 60000, 60}, {0, -400 * D_MS, 1}, {60000, 60000, 60}}, 120 * 60000},
    {"400 days back: not followed", 0, 0, false, 0, {{60000, 60000, 10}, {0, -400 * D_MS, 1}, {60000, 60000, 60}}, 70 * 60000},
    {"back and forward", 0, 0, false, 0, {{0, -400 * D_MS, 1}, {60000, 60000, 60}, {0, 400 * D_MS, 1}, {60000, 60000, 60}}, 120 * 60000},
    {"again and again", 0, 0, false, 0, {{60000, 3 * D_MS, 1000}}, 1000 * 60000},
    {"it stands for a week: believed", 0, 0, false, 0, {{0, 400 * D_MS, 1}, {H_MS, H_MS, 169}}, 400 * D_MS + 169 * H_MS},
    {"not for six days", 0, 0, false, 0, {{0, 400 * D_MS, 1}, {H_MS, H_MS, 144}}, 144 * H_MS},
    {"set again on the sixth: not for six more", 0, 0, false, 0, {{0, 400 * D_MS, 1}, {H_MS, H_MS, 144}, {0, D_MS, 1}, {H_MS, H_MS, 144}}, 288 * H_MS},
    {"back for a week: believed, too", 0, 0, false, 0, {{0, -400 * D_MS, 1}, {H_MS, H_MS, 169}}, -400 * D_MS + 169 * H_MS},
    {"off for a night: believed", -10 * H_MS, 0, true, -10 * H_MS, {{60000, 60000, 1}}, 60000},
    {"off for a month: not yet", -30 * D_MS, 0, true, -30 * D_MS, {{H_MS, H_MS, 24}}, -29 * D_MS},
    {"but in a week, of two runs", -30 * D_MS, 3 * D_MS, true, -H_MS, {{H_MS, H_MS, 97}}, 97 * H_MS},
    {"it stood for long, then a start 400 days ahead: not followed", -400 * D_MS, 100 * D_MS, true, -400 * D_MS, {{H_MS, H_MS, 100}}, -400 * D_MS + 100 * H_MS},
    {"it stood for long, then a start 400 days back: not followed", 400 * D_MS, 100 * D_MS, true, 400 * D_MS, {{H_MS, H_MS, 100}}, 400 * D_MS + 100 * H_MS},
    {"started while UTC is 400 days ahead, then set right", -400 * D_MS, 0, true, -400 * D_MS, {{H_MS, H_MS, 2}, {0, -400 * D_MS, 1}, {H_MS, H_MS, 1}}, -400 * D_MS + 3 * H_MS},
    {"started while UTC is behind", 400 * D_MS, 0, true, 400 * D_MS, {{H_MS, H_MS, 2}}, 400 * D_MS + 2 * H_MS},
};
/* clang-format on */

static void test_table(void)
{
    for (size_t i = 0; i < n_elements(cases); i++) {
        struct tidy_clock c = {.at_ms = cases[i].kept ? U + cases[i].kept_ms : 0,
                               .stood_ms = cases[i].stood_ms,
                               .utc_ms = cases[i].kept ? U + cases[i].utc_ms : 0};
        uint64_t now = 5 * NS_PER_S;
        int64_t utc = U;
        tidy_clock_look(&c, now, utc);
        for (size_t k = 0; k < n_elements(cases[i].s); k++) {
            for (int n = 0; n < cases[i].s[k].times; n++) {
                now += (uint64_t)cases[i].s[k].passed_ms * NS_PER_MS;
                utc += cases[i].s[k].utc_ms;
                tidy_clock_look(&c, now, utc);
            }
        }
        is_int(c.at_ms - U, cases[i].want_ms, "%s", cases[i].name);
    }
}

/* ---- a queue, whose loop's UTC is set ---- */

static int stop(struct loop_timer *timer, uint64_t now, void *user)
{
    (void)timer;
    (void)now;
    loop_stop(user, 0);
    return 0;
}

static struct ledger_queue *queue_of(struct loop *loop)
{
    struct ledger *l = NULL;
    struct ledger_queue *q = NULL;

    if (help_open("clock.sqlite", loop_utc_ns(loop), &l, NULL) < 0 ||
        help_boards(l, 1) < 0 ||
        ledger_queue_new(&(struct ledger_queue_opts){.loop = loop,
                                                     .ledger = l,
                                                     .flush_ns = 300 * NS_PER_S},
                         &q, NULL) < 0)
        ok(false, "a queue");
    return q;
}

/* A row each ten seconds, as the loop's UTC says. */
static void pass(struct loop *loop, struct ledger_queue *q, int64_t s)
{
    for (int64_t i = 0; i < s / 10; i++) {
        struct loop_timer *t = NULL;
        (void)loop_timer_new(loop, loop_now_ns(loop) + 10 * NS_PER_S, 0, stop, loop, &t,
                             NULL);
        (void)loop_run(loop, NULL);
        loop_timer_free(t);
        int64_t at = (loop_utc_ns(loop) - T0) / (10 * S);
        (void)help_interval(ledger_queue_rows(q), at, 0, 0, 0, 100, 1);
    }
}

#define FINE "SELECT count(*) FROM energy WHERE res = 0"
#define ALL "SELECT sum(energy_uj) / 100000000 FROM energy"

static void test_jump(void)
{
    struct loop *loop = NULL;
    const char *path = help_path("clock.sqlite");

    if (loop_new_virtual(NS_PER_S, T0 / S, &loop, NULL) < 0)
        return;
    struct ledger_queue *q = queue_of(loop);
    pass(loop, q, 6 * 3600);
    loop_shift_utc(loop, 400 * DAY);
    pass(loop, q, 3600);
    is_int(help_number(path, FINE " AND begin_ms < 1767225600000 + 86400000"), 2160,
           "an hour at 400 days forward: all rows before it are as booked");
    ledger_queue_free(q);
    q = queue_of(loop); /* and the daemon is started anew meanwhile */
    pass(loop, q, 3600);
    loop_shift_utc(loop, -400 * DAY);
    pass(loop, q, 6 * 3600);
    ledger_queue_free(q);
    is_int(help_number(path, "SELECT count(*) FROM energy WHERE res > 0"), 0,
           "back: nothing was rolled up");
    is_int(help_number(path, FINE), 14 * 360, "all rows are there");
    is_int(help_number(path, FINE " AND begin_ms > 1767225600000 + 399 * 86400000"), 720,
           "those of the time ahead where they were booked");
    loop_shift_utc(loop, -400 * DAY);
    q = queue_of(loop);
    pass(loop, q, 3600);
    loop_shift_utc(loop, 400 * DAY);
    pass(loop, q, 3 * 86400);
    ledger_queue_free(q);
    ok(help_number(path, FINE) < 2 * 8640 + 3000,
       "after days they are rolled up (%d left)", (int)help_number(path, FINE));
    is_int(help_number(path, ALL), 15 * 360 + 3 * 8640, "and not a joule is missing");
    is_int(help_number(path, "SELECT sum(energy_uj) / 100000000 FROM meter"),
           15 * 360 + 3 * 8640, "nor one of the meter's");
    loop_free(loop);
}

int main(void)
{
    if (!help_begin())
        return skip_all("no folder in /tmp");
    fault_begin(); /* for its quick syncs */
    test_table();
    test_jump();
    help_end();
    return done();
}
