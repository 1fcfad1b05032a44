/* The tuner's table: every pair of state and event, every row. */
#include "tuner/tuner-table.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "tap.h"
#include "virtual/virtual-loop.h"

#define NAME(name, text) #name,
static const char *const state_names[] = {TUNER_STATES(NAME)};
static const char *const event_names[] = {TUNER_EVENTS(NAME)};

static const struct tuner_row *rows;
static size_t n_rows;
enum { NOTED = 1000 };
/* An event sets the tuner's timer anew. */
static struct loop *loop;
static struct loop_timer *timer;

static bool fits(const struct tuner_row *row, unsigned state, unsigned event)
{
    return row->on == event && row->in & (1u << state);
}

/* '.': left alone; '?': under conditions only; 'x': always. */
static char kind(unsigned state, unsigned event)
{
    char ret = '.';

    for (size_t i = 0; i < n_rows; i++)
        if (fits(&rows[i], state, event))
            ret = rows[i].only ? '?' : 'x';
    return ret;
}

/* What is expected of each pair, in the order of enum tuner_state. */
static void pairs(void)
{
    /* Boards Wait waLk Measure Energy lAte Paused leFt Over */
    static const char *const want[TUNER_EVENTS_N] = {
        [ON_TOLD] = ".xxxx....",        [ON_SURE] = ".x.?.....",
        [ON_SILENT] = ".x.......",      [ON_LATE] = "..xx.....",
        [ON_GOES_ON] = "x....xx..",     [ON_LOST] = "..xx.xx..",
        [ON_DEAF] = "...x.....",        [ON_WINDOW] = "...x.....",
        [ON_SPENT] = "..??.....",       [ON_MET] = "..x......",
        [ON_MOVED] = "..????...",       [ON_UNMET] = "xxxxxxx..",
        [ON_BOARDS_LOST] = "?x?????..", [ON_BOARDS] = "x........",
        [ON_JOULES] = "....x....",      [ON_VOID] = "...xx....",
        [ON_PEAK] = ".?.......",        [ON_GO] = "..x.x....",
        [ON_STAY] = "....x....",        [ON_DUE] = ".x??.x...",
        [ON_STOPPED] = ".?xxxxx..",     [ON_CONTINUED] = "x.....x..",
        [ON_END] = "xxxxxxxx.",
    };
    char got[TUNER_STATES_N + 1] = "";

    for (unsigned event = 0; event < TUNER_EVENTS_N; event++) {
        for (unsigned state = 0; state < TUNER_STATES_N; state++)
            got[state] = kind(state, event);
        is_str(got, want[event], event_names[event]);
    }
}

/* No row is hidden by one above it. */
static void reachable_rows(void)
{
    for (size_t i = 0; i < n_rows; i++) {
        bool open = false;
        for (unsigned state = 0; state < TUNER_STATES_N; state++) {
            bool hidden = !fits(&rows[i], state, rows[i].on);
            for (size_t k = 0; k < i; k++)
                hidden |= fits(&rows[k], state, rows[i].on) &&
                          (!rows[k].only || rows[k].only == rows[i].only);
            open |= !hidden;
        }
        ok(open, "row %zu: %s, %s, %s", i, event_names[rows[i].on], rows[i].only_name,
           rows[i].then_name);
    }
}

/* The states that rows lead to from this one, by any number of events. */
static uint32_t reach(unsigned from)
{
    uint32_t in = 1u << from, was;

    do {
        was = in;
        for (size_t i = 0; i < n_rows; i++)
            if (rows[i].in & in)
                in |= 1u << rows[i].to;
    } while (in != was);
    return in;
}

static void reachable_states(void)
{
    for (unsigned state = 0; state < TUNER_STATES_N; state++) {
        const char *name = state_names[state];
        ok(reach(TUNER_WAIT) & (1u << state), "%s is reached", name);
        ok(reach(state) & (1u << TUNER_OVER), "%s ends", name);
    }
    ok(reach(TUNER_OVER) == 1u << TUNER_OVER, "OVER is the end");
    ok(reach(TUNER_LEFT) == (1u << TUNER_LEFT | 1u << TUNER_OVER),
       "boards that were released are not claimed again");
}

/* A pair without a row changes nothing but its count. */
static void left_alone(void)
{
    static struct tuner t;
    unsigned n = 0;

    for (unsigned state = 0; state < TUNER_STATES_N; state++)
        for (unsigned event = 0; event < TUNER_EVENTS_N; event++) {
            if (kind(state, event) != '.')
                continue;
            t = (struct tuner){.state = state, .from = TUNER_WALK};
            int r = tuner_event(&t, event, NULL);
            bool same = r == 0 && t.state == state && t.from == TUNER_WALK;
            n++;
            if (!same || t.left_alone != 1)
                ok(false, "%s in %s", event_names[event], state_names[state]);
        }
    ok(n > TUNER_STATES_N * TUNER_EVENTS_N / 2, "%u pairs are left alone", n);
}

/* An interruption knows what it goes back to. */
static void interruptions(void)
{
    static const struct {
        enum tuner_state in, from;
        enum tuner_event on;
        enum tuner_state to, want;
    } cases[] = {
        {TUNER_BOARDS, TUNER_MEASURE, ON_GOES_ON, TUNER_BOARDS, TUNER_WALK},
        {TUNER_BOARDS, TUNER_PAUSED, ON_CONTINUED, TUNER_BOARDS, TUNER_WALK},
        {TUNER_BOARDS, TUNER_PAUSED, ON_BOARDS, TUNER_PAUSED, TUNER_WALK},
        {TUNER_BOARDS, TUNER_LATE, ON_BOARDS, TUNER_PAUSED, TUNER_WALK},
        {TUNER_WALK, TUNER_BOARDS, ON_LATE, TUNER_LATE, TUNER_WALK},
        {TUNER_MEASURE, TUNER_BOARDS, ON_LATE, TUNER_LATE, TUNER_MEASURE},
    };
    static struct tuner t;

    for (size_t i = 0; i < n_elements(cases); i++) {
        t = (struct tuner){
            .o.loop = loop, .timer = timer, .state = cases[i].in, .from = cases[i].from};
        t.progress.steps.mark.steps = 100; /* the job ran well at its cap */
        (void)tuner_event(&t, cases[i].on, NULL);
        ok(t.state == cases[i].to && t.from == cases[i].want, "%s in %s: %s, from %s",
           event_names[cases[i].on], state_names[cases[i].in], state_names[t.state],
           state_names[t.from]);
    }
}

/* Boards were away while a search waited for steps, after the safe cap: it waits on, and
 * holds no cap that nobody named.
 */
static void unbegun(void)
{
    static int somewhere;
    static struct tuner t;

    for (int stopped = 0; stopped < 2; stopped++) {
        t = (struct tuner){.o.loop = loop,
                           .timer = timer,
                           .state = TUNER_BOARDS,
                           .from = TUNER_WAIT,
                           .search = (struct search *)&somewhere,
                           .step.cap_mw = 240000,
                           .stopped = stopped};
        (void)tuner_event(&t, ON_BOARDS, NULL);
        ok(t.state == TUNER_WAIT && !t.holding, "a search without a step%s: %s",
           stopped ? ", stopped" : "", state_names[t.state]);
    }
}

/* Nothing is heard under a rule's cap: that ends no hold. */
static void deaf(void)
{
    static int somewhere;
    static struct tuner t;

    t = (struct tuner){.o.loop = loop,
                       .timer = timer,
                       .state = TUNER_MEASURE,
                       .search = (struct search *)&somewhere,
                       .step.kind = SEARCH_HOLD,
                       .holding = true,
                       .report.ruled = true};
    t.progress = (struct progress){
        .loop = loop, .caps = &t.caps, .regimes = &t.regimes, .by = TUNER_BY_PERIOD};
    for (int i = 0; i < 5; i++) {
        t.progress.inferred.missed++;
        (void)tuner_on_progress(&t, PROGRESS_DEAF);
    }
    ok(t.state == TUNER_MEASURE && t.holding, "deaf under a rule: %s, %s",
       state_names[t.state], t.holding ? "holds" : "holds no more");
    ok(!tuner_missed_many(&t), "none of it counts after the rule");
}

static void on_note(const char *text, bool important, void *user)
{
    char *noted = user;
    size_t n = strlen(noted);
    (void)important;

    (void)snprintf(noted + n, NOTED - n, "%s\n", text);
}

/* Each lost window is noted, and once what that means. */
static void lost(void)
{
    static struct tuner t;
    char noted[NOTED] = "";

    t = (struct tuner){
        .state = TUNER_ENERGY, .notes = {on_note, noted}, .energy.pending = 3};
    (void)tuner_on_piece(NULL, &t);
    (void)tuner_on_piece("GPU-1: no samples", &t);
    (void)tuner_on_piece("GPU-2: no samples", &t);
    is_str(noted,
           "a window was lost: GPU-1: no samples\n"
           "lost windows delay the results, which stay valid; if the machine is busy, "
           "leave a processor free\n"
           "a window was lost: GPU-2: no samples\n",
           "two lost windows");
}

static int on_timer(struct loop_timer *t, uint64_t now_ns, void *user)
{
    (void)t;
    (void)now_ns;
    (void)user;
    return 0;
}

int main(void)
{
    uw_error err;

    if (loop_new_virtual(NS_PER_S, 0, &loop, &err) < 0 ||
        loop_timer_new(loop, UINT64_MAX, 0, on_timer, NULL, &timer, &err) < 0)
        return 1;
    rows = tuner_rows(&n_rows);
    pairs();
    reachable_rows();
    reachable_states();
    left_alone();
    interruptions();
    unbegun();
    deaf();
    lost();
    loop_timer_free(timer);
    loop_free(loop);
    return done();
}
