/* Figures as people read them, lines as wide as the terminal, and the table of jobs. */
#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/figures.h"
#include "cli/jobs-text.h"
#include "tap.h"

static void figures(void)
{
    static const struct {
        double j;
        const char *text;
    } joules[] = {
        {0, "0.000 J"},      {5.835, "5.835 J"},   {582.1, "582.1 J"},
        {999.94, "999.9 J"}, {999.96, "1.000 kJ"}, {4582, "4.582 kJ"},
        {67510, "67.51 kJ"}, {176000, "176.0 kJ"}, {999960, "1.000 MJ"},
        {7.2e6, "7.200 MJ"}, {3.2e10, "32.00 GJ"}, {-4582, "-4.582 kJ"},
        {4e13, "40000 GJ"},  {(double)NAN, "-"},
    };
    static const struct {
        double w;
        const char *text;
    } watts[] = {
        {0, "0 W"},     {-0.0001, "0 W"},   {41.23, "41.23 W"},   {236.934, "236.9 W"},
        {300, "300 W"}, {1033.2, "1033 W"}, {12345.6, "12346 W"}, {(double)NAN, "-"},
    };

    for (size_t i = 0; i < n_elements(joules); i++)
        is_str(figure_joules(joules[i].j).t, joules[i].text, joules[i].text);
    for (size_t i = 0; i < n_elements(watts); i++)
        is_str(figure_watts(watts[i].w).t, watts[i].text, watts[i].text);
    is_str(figure_power(300).t, "300.0 W", "a power has one decimal");
    is_str(figure_power(1033.25).t, "1033.2 W", "… whatever its size");
    is_str(figure_power((double)NAN).t, "-", "unknown");
    is_str(figure_time(599).t, "599 s", "seconds");
    is_str(figure_time(600).t, "10 min", "minutes");
    is_str(figure_time(36000).t, "10.0 h", "hours");
    is_str(figure_time(863913287).t, "9999 d", "days");
    is_str(figure_time((double)NAN).t, "-", "no time");
    is_str(figure_joules_within(67510, 4582).t, "67.5 ± 4.6 kJ",
           "an interval in the unit of its figure");
    is_str(figure_joules_within((double)NAN, 1).t, "-", "unknown");
    is_str(figure_saved(5.6, 0.81, "%").t, "5.60 ± 0.81 %", "a saving");
    is_str(figure_saved(-5.6, 0.81, "%").t, "-5.60 ± 0.81 %", "a loss");
    is_str(figure_saved(0.3, 0.81, "%").t, "~0 ± 0.81 %",
           "not distinguishable from zero");
    is_str(figure_saved_in(13.29, 0.79, "%", 14).t, "13.29 ± 0.79 %", "one that fits");
    is_str(figure_saved_in(13.29, 0.79, "%", 13).t, "13.3 ± 0.8 %",
           "one that does not fit has a digit less");
    is_str(figure_saved_in(123.4, 12, "%", 8).t, "123 ± 12 %",
           "digits before the point stay");
    is_str(figure_saved(-0.8, 0.8, "").t, "~0 ± 0.80", "zero at the end of the interval");
    is_str(figure_saved(0.3, (double)NAN, "%").t, "-", "unknown interval");
}

/* What fn writes. */
static char *written(void (*fn)(FILE *to, const void *what), const void *what)
{
    char *text = NULL;
    size_t n = 0;
    FILE *to = open_memstream(&text, &n);

    if (!to)
        return NULL;
    fn(to, what);
    (void)fclose(to);
    return text;
}

static void wrap_it(FILE *to, const void *what)
{
    (void)fputs("0123456789", to);
    text_wrap(to, 10, 4, what);
}

static void wrapped(void)
{
    static const struct {
        const char *text, *want, *name;
    } cases[] = {
        {"", "0123456789\n", "nothing"},
        {" a  b", "0123456789 a b\n", "blanks count once"},
        {"aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaa 1.04 ± 0.001 s",
         "0123456789aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaa\n"
         "    1.04 ± 0.001 s\n",
         "a value and its interval stay together"},
        {"aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaaa",
         "0123456789aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaa "
         "aaaaaaaaaa\n",
         "80 columns fit"},
        {"aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaaaa",
         "0123456789aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaa\n"
         "    aaaaaaaaaaa\n",
         "81 do not"},
        {"aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaa ääääääaaaa",
         "0123456789aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaa aaaaaaaaa "
         "ääääääaaaa\n",
         "columns count, not bytes"},
    };

    for (size_t i = 0; i < n_elements(cases); i++) {
        char *got = written(wrap_it, cases[i].text);
        is_str(got ? got : "(none)", cases[i].want, cases[i].name);
        free(got);
    }
}

static void wide(void)
{
    static const struct {
        const char *text;
        unsigned utf8, c;
    } cases[] = {
        {"", 0, 0},        {"abc", 3, 3},      {"67.5 ± 4.6 kJ", 13, 13},
        {"▁█…°", 4, 4},    {"電力価格", 8, 4}, {"e\xcc\x81", 1, 2},
        {"a\xff b", 4, 4}, {"\xe9\x9b", 1, 1}, {"🔋 1", 4, 3},
    };

    for (size_t i = 0; i < n_elements(cases); i++) {
        (void)setlocale(LC_CTYPE, "C.UTF-8");
        is_int(text_columns(cases[i].text), cases[i].utf8, "columns of '%s'",
               cases[i].text);
        (void)setlocale(LC_CTYPE, "C");
        is_int(text_columns(cases[i].text), cases[i].c, "… in the locale C");
    }
    (void)setlocale(LC_CTYPE, "C.UTF-8");
}

static const unsigned widths[] = {40, 60, 80, 200};

/* text_width() while standard output is a terminal of so many columns; TAP goes on. */
static unsigned width_on_terminal(int terminal, unsigned columns)
{
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};

    (void)fflush(stdout);
    int before = dup(STDOUT_FILENO);
    (void)ioctl(terminal, TIOCSWINSZ, &size);
    (void)dup2(terminal, STDOUT_FILENO);
    unsigned width = text_width();
    (void)dup2(before, STDOUT_FILENO);
    (void)close(before);
    return width;
}

static void terminals(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);

    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) {
        skip_one("text_width", "no pseudo-terminals here");
        return;
    }
    int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    for (size_t i = 0; i < n_elements(widths); i++)
        is_int(width_on_terminal(terminal, widths[i]), widths[i],
               "a terminal of %u columns", widths[i]);
    is_int(width_on_terminal(terminal, 0), TEXT_COLUMNS, "a terminal without a size");
    int file = open("/dev/null", O_WRONLY);
    is_int(width_on_terminal(file, 40), TEXT_COLUMNS, "no terminal");
    (void)close(file);
    (void)close(terminal);
    (void)close(master);
}

static void wrap_words(FILE *to, const void *what)
{
    static const char words[] = "電力価 電力価 電力価 電力価 電力価 電力価 電力価 電力価 "
                                "電力価 電力価 電力価 電力価 電力価 電力価 電力価 電力価 "
                                "電力価 電力価 電力価 電力価 電力価 電力価 電力価 電力価 "
                                "電力価 電力価 電力価 電力価 電力価 電力価 電力価 電力価";

    text_wrap_in(to, *(const unsigned *)what, 0, 0, words);
}

/* Words of six columns each, and a blank: so many of them in the lines of each width. */
static void wide_lines(void)
{
    static const unsigned first[] = {5, 8, 11, 28}; /* 41, 62, 83 and 202 do not fit */

    for (size_t i = 0; i < n_elements(widths); i++) {
        char *got = written(wrap_words, &widths[i]), *rest = NULL;
        unsigned most = 0;
        for (char *line = strtok_r(got, "\n", &rest); line;
             line = strtok_r(NULL, "\n", &rest)) {
            unsigned n = text_columns(line);
            most = n > most ? n : most;
        }
        is_int(most, 7 * first[i] - 1, "%u columns: %u wide words fill the longest line",
               widths[i], first[i]);
        free(got);
    }
}

static const char jobs_answer[] =
    "{\"simulated\": true, \"jobs\": ["
    "{\"id\": 1, \"user\": \"anna\", \"uid\": 7, \"name\": "
    "\"a-training-with-a-long-name\","
    " \"gpus\": [0, 1], \"running\": true, \"time_s\": 482, \"energy_j\": 167400,"
    " \"steps\": 612, \"search\": {\"goal\": \"edp\", \"state\": \"holds 270 W\","
    " \"cap_mw\": 270000, \"saved\": {\"fraction\": -0.1329, \"fraction_half\": 0.0079,"
    " \"slowdown\": 1.041}}},"
    "{\"id\": 12345, \"user\": null, \"uid\": 1002, \"gpus\": [2], \"running\": true,"
    " \"time_s\": 40000, \"energy_j\": 0, \"half_j\": null, \"search\": null},"
    "{\"id\": 3, \"user\": \"bob\", \"uid\": 8, \"name\": \"x\", \"gpus\": [],"
    " \"running\": false, \"time_s\": 9, \"energy_j\": 5, \"steps\": 1, \"search\": "
    "null}]}";
static const char gpus_answer[] =
    "{\"gpus\": [{\"gpu\": 0, \"limits\": {\"enforced_mw\": 160000}},"
    "{\"gpu\": 1, \"limits\": {\"enforced_mw\": 270000}},"
    "{\"gpu\": 2, \"limits\": {\"enforced_mw\": 236934}}]}";

struct answers {
    const struct json_value *jobs, *gpus;
    bool all;
    unsigned width;
};

static void write_jobs(FILE *to, const void *what)
{
    const struct answers *a = what;

    jobs_text(a->jobs, a->gpus, a->all, a->width, to);
}

static void is_table(const struct answers *a, const char *want, const char *name)
{
    char *got = written(write_jobs, a);

    is_str(got ? got : "(none)", want, name);
    free(got);
}

static void jobs(void)
{
    struct json *j = NULL, *g = NULL, *none = NULL;

    if (json_read("jobs", jobs_answer, sizeof jobs_answer - 1, &j, NULL) < 0 ||
        json_read("gpus", gpus_answer, sizeof gpus_answer - 1, &g, NULL) < 0 ||
        json_read("none", "{\"jobs\": []}", 12, &none, NULL) < 0) {
        ok(false, "the answers are JSON");
        return;
    }
    struct answers a = {json_root(j), json_root(g), false, TEXT_COLUMNS};
    is_table(
        &a,
        "  JOB USER: NAME             GPUS        TIME    ENERGY       CAP          "
        "SAVED\n"
        "    1 anna: a-training-with~ 0-1        482 s  167.4 kJ 160-270 W  "
        "-13.3 ± 0.8 %\n"
        "      edp: holds 270 W, 612 steps, time x 1.041\n"
        "12345 uid 1002               2         11.1 h         -   236.9 W              "
        "-\n"
        "      measured only, its energy is not booked yet\n"
        "±: half of the 95 % interval\n"
        "(simulated boards)\n",
        "the caps are those in force, in 80 columns");
    a.width = 200;
    char *wide_table = written(write_jobs, &a);
    ok(wide_table && strstr(wide_table, "    1 anna: a-training-with-a-long-name") &&
           !strchr(wide_table, '~'),
       "a wider terminal has whole names: %s", wide_table ? wide_table : "");
    free(wide_table);
    a.width = TEXT_COLUMNS;
    a.all = true;
    a.gpus = NULL;
    char *got = written(write_jobs, &a);
    ok(got && strstr(got, "    3 bob: x") && strstr(got, "over, 1 step\n"),
       "include jobs that have ended");
    ok(got && !strstr(got, " W "), "a cap that is not known is not told");
    free(got);
    a = (struct answers){json_root(none), NULL, false, TEXT_COLUMNS};
    is_table(&a, "no job runs\n", "none");
    json_free(j);
    json_free(g);
    json_free(none);
}

int main(void)
{
    figures();
    (void)setlocale(LC_CTYPE, "C.UTF-8");
    wrapped();
    wide();
    terminals();
    wide_lines();
    jobs();
    return done();
}
