#include "follow.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"

enum { ANSWERS = 1024 };
#define ASK_GROWTH 1.1 /* growth of the time between two questions … */
#define ASK_LEAST_S 1.0
#define SAME 0.05  /* answers this close count as the same period */
#define RIGHT 0.02 /* … and answers this close as correct */
#define CYCLES_TO_KNOW 3.1
#define LEAST_SHARE 0.2 /* of the time in which questions were asked */

const char *why_word(enum period_why why)
{
    static const char *const words[] = {"found", "few", "flat", "none", "alias", "mixed"};

    return words[why];
}

struct answer {
    struct period_found found;
    double at_s, weight;
};

static double cpu_now_s(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool agree(const struct answer *a, const struct answer *b, double within)
{
    return a->found.period_s > 0 && b->found.period_s > 0 &&
           fabs(a->found.period_s / b->found.period_s - 1) < within;
}

static double sharpness(const struct answer *a)
{
    return a->found.confidence * a->found.periods / (a->found.rse + 1e-3);
}

/* The share of time with an answer of this period since a period could be known;
 * *ret_known: the share among answers that were known.
 */
static double share_of(const struct answer *a, unsigned n, const struct answer *of,
                       double *ret_known)
{
    double support = 0, known = 0, asked = 0;

    for (unsigned i = 0; i < n; i++) {
        if (a[i].at_s < CYCLES_TO_KNOW * of->found.period_s)
            continue;
        asked += a[i].weight;
        known += a[i].found.period_s > 0 ? a[i].weight : 0;
        support += agree(&a[i], of, SAME) ? a[i].weight : 0;
    }
    *ret_known = known > 0 ? support / known : 0;
    return asked > 0 ? support / asked : 0;
}

/* The longest period that most answers agree on since a period could be known: earlier
 * answers see only parts of a step.  Returns the sharpest of its answers; NULL: none.
 */
static const struct answer *agreed(const struct answer *a, unsigned n, double *ret_share)
{
    const struct answer *best = NULL, *longest = NULL;

    for (unsigned i = 0; i < n; i++) {
        double known;
        if (a[i].found.period_s <= 0 ||
            (longest && a[i].found.period_s < longest->found.period_s))
            continue;
        if (share_of(a, n, &a[i], &known) < LEAST_SHARE || known < 0.5)
            continue;
        longest = &a[i];
        *ret_share = known;
    }
    for (unsigned i = 0; longest && i < n; i++)
        if (agree(&a[i], longest, SAME) && (!best || sharpness(&a[i]) > sharpness(best)))
            best = &a[i];
    return best;
}

static void conclude(const struct answer *a, unsigned n, struct job_phase *ret)
{
    double share;
    const struct answer *best = agreed(a, n, &share);

    if (!best) {
        ret->why = n == 0 ? PERIOD_FEW : a[n - 1].found.why;
        if (ret->why == PERIOD_FOUND)
            ret->why = PERIOD_NONE;
        return;
    }
    double sum = 0, weight = 0;
    for (unsigned i = 0; i < n; i++)
        if (agree(&a[i], best, RIGHT)) {
            double rse = hypot(a[i].found.rse, 0.002);
            double w = a[i].found.confidence * pow(a[i].found.periods / rse, 2);
            sum += w * a[i].found.period_s;
            weight += w;
        }
    ret->why = PERIOD_FOUND;
    ret->period_s = sum / weight;
    ret->rse = best->found.rse;
    ret->confidence = best->found.confidence * sqrt(share);
    for (unsigned i = n; i-- > 0;) {
        if (a[i].found.period_s <= 0)
            continue;
        if (!agree(&a[i], best, RIGHT))
            break;
        ret->periods_needed = a[i].found.periods;
    }
    if (ret->confidence < FOLLOW_SURE) {
        ret->why = PERIOD_NONE;
        ret->period_s = 0;
    }
}

/* The board with the earliest next sample; boards: all samples were read. */
static unsigned earliest(const struct heard *board, const size_t *at, unsigned boards)
{
    unsigned first = boards;

    for (unsigned b = 0; b < boards; b++)
        if (at[b] < board[b].n &&
            (first == boards ||
             board[b].items[at[b]].at_ns < board[first].items[at[first]].at_ns))
            first = b;
    return first;
}

/* Asks now; returns the time of the next question. */
static double ask(const struct period *p, double at_s, double last_s, double whole_s,
                  struct answer *ret, double *cpu_s)
{
    double began = cpu_now_s();

    period_find(p, &ret->found);
    *cpu_s += cpu_now_s() - began;
    ret->at_s = at_s;
    ret->weight = (at_s - last_s) * (ret->found.period_s > 0 ? ret->found.confidence : 1);
    double next_s = fmin(at_s * ASK_GROWTH, at_s + fmax(60, whole_s / 500));
    return fmax(next_s, at_s + 0.2);
}

int follow(const struct heard *board, unsigned boards, const struct period_sensor *sensor,
           struct job_phase *ret, uw_error *err)
{
    auto_(period_free) struct period *p = NULL;
    auto_(mem_free) struct answer *answers = calloc(ANSWERS, sizeof *answers);
    size_t at[PERIOD_BOARDS] = {0};
    int r = period_new(boards, &p);
    if (r < 0 || !answers)
        return fail(err, -ENOMEM, "no memory for a period estimator");

    if (sensor)
        period_sensor(p, sensor);
    unsigned asked = 0;
    double next_s = ASK_LEAST_S, last_s = 0;
    const struct activity *first = board[0].items, *last = first + board[0].n - 1;
    *ret = (struct job_phase){0};
    for (unsigned b; (b = earliest(board, at, boards)) < boards;) {
        const struct activity *a = &board[b].items[at[b]++];
        if (a->at_ns < first->at_ns)
            continue;
        period_feed(p, b, a);
        double at_s = s_between(first->at_ns, a->at_ns);
        if (asked == ANSWERS || b > 0 || (at_s < next_s && a != last))
            continue;
        next_s = ask(p, at_s, last_s, s_between(first->at_ns, last->at_ns),
                     &answers[asked++], &ret->cpu_s);
        last_s = at_s;
    }
    ret->asked = asked;
    conclude(answers, asked, ret);
    return 0;
}
