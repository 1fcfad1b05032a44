/* Axes and scales of awkward values: round numbers, no more digits than they need. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "chart/chart.h"
#include "cli/grid.h"
#include "cli/sight-chart.h"
#include "tap.h"

/* The ticks' texts with blanks between them. */
static const char *ticks(double lo, double hi, unsigned n)
{
    static char ret[1000];
    struct axis a = axis_over(lo, hi, n, false);
    char text[AXIS_TEXT];

    ret[0] = '\0';
    for (int i = 0; i < 20 && a.lo + i * a.step <= a.hi + a.step / 2; i++) {
        if (i > 0)
            (void)strncat(ret, " ", sizeof ret - strlen(ret) - 1);
        (void)strncat(ret, axis_text(&a, a.lo + i * a.step, text),
                      sizeof ret - strlen(ret) - 1);
    }
    return ret;
}

static void test_ticks(void)
{
    static const struct {
        double lo, hi;
        const char *want;
    } cases[] = {
        {0, 45.6, "0 10 20 30 40 50"},
        {0, 50.00000000000001, "0 10 20 30 40 50"},
        {0, 0.30000000000000004, "0.00 0.05 0.10 0.15 0.20 0.25 0.30"},
        {-0.1 - 0.2, 0.3, "-0.3 -0.2 -0.1 0.0 0.1 0.2 0.3"},
        {-0.6000000000000001, 0.2, "-0.6 -0.4 -0.2 0.0 0.2"},
        {0, 1e-6 * 123457, "0.00 0.02 0.04 0.06 0.08 0.10 0.12 0.14"},
        {0, 3e-7 * 3, "0 2e-07 4e-07 6e-07 8e-07 1e-06"},
        {0, 1.23e-5,
         "0.000000 0.000002 0.000004 0.000006 0.000008 0.000010 0.000012 "
         "0.000014"},
        {0, 0.1 + 0.2 - 0.3, "0 1e-17 2e-17 3e-17 4e-17 5e-17 6e-17"},
        /* one value, and what a sum leaves: no axis of 17 digits */
        {0.3, 0.1 + 0.2, "0.285 0.290 0.295 0.300 0.305 0.310 0.315"},
        {1e15, 1e15 + 3, "9.4e+14 9.6e+14 9.8e+14 1e+15 1.02e+15 1.04e+15 1.06e+15"},
        {0, 4e7 / 3, "0 2e+06 4e+06 6e+06 8e+06 1e+07 1.2e+07 1.4e+07"},
        {0, 999999.5, "0 200000 400000 600000 800000 1000000"},
    };

    for (size_t i = 0; i < n_elements(cases); i++)
        is_str(ticks(cases[i].lo, cases[i].hi, 5), cases[i].want, cases[i].want);
}

/* Each tick reads as its value, none as another's, for axes over sums of random parts. */
static void test_random(void)
{
    struct rng g;
    unsigned wrong = 0, long_ones = 0;
    char text[AXIS_TEXT], before[AXIS_TEXT];

    rng_init(&g, 1);
    for (int i = 0; i < 20000; i++) {
        double scale = pow(10, (double)rng_below(&g, 18) - 9), lo = 0, hi = 0;
        for (int k = 0; k < 10; k++) {
            hi += scale * 1e-6 * floor(1e6 * rng_uniform(&g));
            lo -= i % 2 ? scale * 1e-6 * floor(1e6 * rng_uniform(&g)) : 0;
        }
        struct axis a = axis_over(lo, hi, 5, false);
        before[0] = '\0';
        for (double v = a.lo; v <= a.hi + a.step / 2; v += a.step) {
            const char *t = axis_text(&a, v, text);
            wrong += fabs(strtod(t, NULL) - v) > a.step * 1e-6 ||
                     strcmp(t, before) == 0 || (t[0] == '-' && strtod(t, NULL) == 0);
            long_ones += strlen(t) > 9;
            memcpy(before, text, sizeof before);
        }
    }
    is_int(wrong, 0, "ticks of 20,000 axes read as their values");
    is_int(long_ones, 0, "in nine characters");
}

/* The numbers beside the bars of `underwatt carbon`, from the top down. */
static const char *scale_of(double a, double b)
{
    static char ret[64];
    const struct stretch_point point[] = {{.from_utc_s = 0, .to_utc_s = 3600, .v = a},
                                          {.from_utc_s = 3600, .to_utc_s = 7200, .v = b}};
    const struct sight_chart c = {.point = point, .n = 2, .to_utc_s = 7200};
    auto_(grid_free) struct grid *g = grid_new(SIGHT_ROWS, 40, true);

    sight_chart_draw(&c, g);
    ret[0] = '\0';
    for (unsigned row = 0; row < SIGHT_ROWS - 2; row++) {
        auto_(mem_free) char *text = grid_row(g, row);
        char word[10];
        if (sscanf(text, "%9s", word) == 1 && strspn(text, " ") < 8)
            (void)snprintf(ret + strlen(ret), sizeof ret - strlen(ret), "%s%s",
                           *ret ? " " : "", word);
    }
    return ret;
}

static void test_scale(void)
{
    static const struct {
        double a, b;
        const char *want;
    } cases[] = {
        {420, 100, "420 210 0"},
        {421.7, 0, "421.7 210.8 0.0"},
        {0.1 + 0.2, 0.1, "0.30 0.15 0.00"},
        {0.1 + 0.2 - 0.3 + 0.1, -0.1, "0.1 0.0 -0.1"},
        {1e-6 * 299999999.99999997, 0, "300 150 0"},
        {-0.05, 0.1 - 0.05 - 0.05, "0.000 -0.025 -0.050"},
        {12345.678, -3, "12346 6171 -3"},
        {123456.7, 0, "123457 61728 0"},
        {1e-7, 0, "1e-07 5e-08 0"},
        {123456789, 0, "1.2e+08 6.2e+07 0"},
    };

    for (size_t i = 0; i < n_elements(cases); i++)
        is_str(scale_of(cases[i].a, cases[i].b), cases[i].want, cases[i].want);
}

/* ---- error bars ---- */

struct bars {
    struct value x, y;
    size_t taken; /* boxes of which labels keep clear */
    bool label;   /* one was put where the bar lies */
};

static void draw_bars(struct canvas *c, const void *user)
{
    struct bars *b = *(struct bars *const *)user;
    struct frame f = {
        .box = {100, 200, 400, 100}, .x = {0, 10, 0, 0, 0}, .y = {0, 10, 0, 0, 0}};
    const struct type type = {12, INK_TEXT, false};

    frame_draw(c, &f);
    chart_dot(c, &f, b->x, b->y, 2, pen_line(INK_POINT, 1));
    b->taken = canvas_labels(c)->n;
    b->label =
        labels_put(c, (struct spot){300, 250}, 0, &type, false, "a label of some length");
}

static char *svg_of(struct bars *b)
{
    char *text = NULL;
    size_t size = 0;
    uw_error err = {""};
    FILE *to = open_memstream(&text, &size);
    struct sheet sheet = {CANVAS_SVG, 600, 400, "bars"};

    if (!to)
        return NULL;
    int r = canvas_write(to, &sheet, draw_bars, &b, &err);
    (void)fclose(to);
    ok(r == 0 && text, "a picture: %s", err.text);
    return text;
}

static void test_bars(void)
{
    struct bars within = {{5, 1}, {5, 2}, 0, false}, beyond = {{5, 60}, {9, 3}, 0, false};
    auto_(mem_free) char *in = svg_of(&within), *out = svg_of(&beyond);

    if (!in || !out)
        return;
    ok(strstr(in, "M260.00 250.00L340.00 250.00\"") &&
           strstr(in, "M300.00 230.00L300.00 270.00\""),
       "bars within the frame");
    ok(strstr(in, "M340.00 247.00L340.00 253.00\""), "… end with a stroke");
    ok(strstr(out, "M100.00 210.00L500.00 210.00\""),
       "a bar that leaves the frame ends at both sides");
    ok(strstr(out, "M106.00 213.00L100.00 210.00L106.00 207.00\"") ||
           strstr(out, "M106.00 207.00L100.00 210.00L106.00 213.00\""),
       "… with an arrow");
    ok(strstr(out, "M300.00 200.00L300.00 240.00\"") &&
           strstr(out, "M297.00 240.00L303.00 240.00\""),
       "the side that stays within has a stroke");
    is_int((long long)within.taken, 2, "labels keep clear of both bars");
    ok(!within.label && beyond.label, "a label is put where there is none");
}

int main(void)
{
    test_bars();
    test_ticks();
    test_random();
    test_scale();
    return done();
}
