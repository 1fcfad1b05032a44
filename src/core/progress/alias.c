#include "core/progress/alias.h"

#include <math.h>
#include <string.h>

#include "base/units.h"

enum {
    MORE_TURNS = 4, /* most turns between two samples: no step is shorter */
    SEEN_TURNS = 2, /* with more, the errors of the sample times blur the phases */
    /* with fewer, boards agree by chance at one of the frequencies tried */
    SEEN_BOARDS = 4
};
/* least length of the boards' mean phase vector if they are in step */
#define IN_STEP 0.95
#define APART 0.1        /* a faster tone's length must be lower by this, errors aside */
#define OUT_OF_STEP 0.75 /* largest length if the boards are surely out of step */
#define CLEAR 4.0        /* least size of a tone, relative to all else taken as noise */
#define WEAKEST 0.5      /* least size of a tone shown by others, relative to the first */
#define SAME_RATE 0.05
#define OTHER_RATE 1.15 /* least quotient of two rates of reading */
#define MULTIPLE 0.05   /* least distance of the quotient from a whole number */

struct tone tone_of(const struct series *s, double hz)
{
    struct tone t = {0};

    for (size_t i = 0; i < s->n; i++) {
        double turn = 2 * M_PI * hz * s_of_ns(s->t[i]);
        t.re += s->x[i] * cos(turn);
        t.im -= s->x[i] * sin(turn);
    }
    double scale = s->n > 0 ? 2 / (double)s->n : 0;
    return (struct tone){t.re * scale, t.im * scale};
}

double tone_size(const struct tone *t)
{
    return hypot(t->re, t->im);
}

/* Length of the mean of the boards' phase vectors, 1 where all agree; each is turned by
 * `turns` times the board's sampling delay.
 */
static double agreement(const struct tone_board *board, unsigned n, int turns)
{
    double re = 0, im = 0;

    for (unsigned b = 0; b < n; b++) {
        const struct tone *t = &board[b].tone;
        double angle = atan2(t->im, t->re) + 2 * M_PI * turns * board[b].late;
        re += cos(angle);
        im += sin(angle);
    }
    return hypot(re, im) / n;
}

/* The agreement at the slow frequency of boards in step at a tone with `turns` more
 * turns.
 */
static double agreement_of_faster(const struct tone_board *board, unsigned n, int turns)
{
    double re = 0, im = 0;

    for (unsigned b = 0; b < n; b++) {
        re += cos(2 * M_PI * turns * board[b].late);
        im += sin(2 * M_PI * turns * board[b].late);
    }
    return hypot(re, im) / n;
}

static bool is_excluded(const struct tone_board *board, unsigned n)
{
    double error = 0;

    for (unsigned b = 0; b < n; b++)
        error += board[b].error * board[b].error / n;
    for (int turns = 1; turns <= MORE_TURNS; turns++) {
        double spread = 4 * M_PI * M_PI * turns * turns * error;
        double most = IN_STEP * exp(-spread / 2) - APART;
        if (agreement_of_faster(board, n, turns) > most)
            return false;
    }
    return true;
}

enum alias alias_of(const struct tone_board *board, unsigned n)
{
    double slow = n < 2 ? 0 : agreement(board, n, 0);

    if (slow >= IN_STEP)
        return is_excluded(board, n) ? ALIAS_EXCLUDED : ALIAS_OPEN;
    if (slow > OUT_OF_STEP || n < SEEN_BOARDS)
        return ALIAS_OPEN;
    for (int turns = -SEEN_TURNS; turns <= SEEN_TURNS; turns++)
        if (turns != 0 && agreement(board, n, turns) >= IN_STEP)
            return ALIAS_SEEN;
    return ALIAS_OPEN;
}

struct reach reach_of(double hz, double window_s, double mean_w, double most_w)
{
    double cycles = hz * window_s, part = cycles - floor(cycles);
    double top_w = fmax(most_w, mean_w);
    /* extremes of the energy in the window's fractional cycle, in W x cycles */
    double most = fmin(part * top_w, mean_w);
    double least = fmax(0, mean_w - (1 - part) * top_w);

    return (struct reach){(most - part * mean_w) / cycles,
                          (part * mean_w - least) / cycles};
}

static bool is_clear(const struct series *s, const struct tone *t)
{
    return s->n > 0 && tone_size(t) >= CLEAR * sqrt(2 * series_total(s)) / (double)s->n;
}

bool counter_has_tone(const struct series *power, const struct series *energy, double hz)
{
    struct tone p = tone_of(power, hz), e = tone_of(energy, hz);

    return is_clear(energy, &e) &&
           tone_size(&e) * 2 * M_PI * hz >= WEAKEST * tone_size(&p);
}

static double mean_gap(const struct series *s, size_t from, size_t to)
{
    return s_between(s->t[from], s->t[to]) / (double)(to - from);
}

/* Where the rate of reading changes most, and by how much; 0: too few readings. */
static size_t change_of_rate(const struct series *s, double *ret_quotient)
{
    size_t at = 0;

    *ret_quotient = 1;
    for (size_t i = s->n / 4; i > 0 && i + s->n / 4 < s->n; i++) {
        double q = mean_gap(s, 0, i) / mean_gap(s, i, s->n - 1);
        q = q < 1 ? 1 / q : q;
        if (q > *ret_quotient) {
            *ret_quotient = q;
            at = i;
        }
    }
    return at;
}

static bool is_one_rate(const struct series *s, size_t from, size_t to)
{
    size_t middle = from + (to - from) / 2;
    double q = mean_gap(s, from, middle) / mean_gap(s, middle, to);

    return fabs(q - 1) < SAME_RATE;
}

static struct series part_of(const struct series *s, size_t from, size_t to)
{
    struct series part = {.n = to - from};

    memcpy(part.t, s->t + from, part.n * sizeof *part.t);
    memcpy(part.x, s->x + from, part.n * sizeof *part.x);
    return part;
}

bool rates_have_tone(const struct series *power, double hz)
{
    double quotient;
    size_t at = change_of_rate(power, &quotient);

    if (quotient < OTHER_RATE || fabs(quotient - round(quotient)) < MULTIPLE ||
        !is_one_rate(power, 0, at) || !is_one_rate(power, at, power->n - 1))
        return false;
    struct series a = part_of(power, 0, at), b = part_of(power, at, power->n);
    struct tone ta = tone_of(&a, hz), tb = tone_of(&b, hz);
    double sa = tone_size(&ta), sb = tone_size(&tb);
    return is_clear(&a, &ta) && is_clear(&b, &tb) &&
           fmin(sa, sb) >= WEAKEST * fmax(sa, sb);
}
