#include "cli/sight-show.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/units.h"
#include "cli/figures.h"
#include "cli/options.h"
#include "cli/sight-chart.h"
#include "io/file.h"
#include "io/json.h"

enum {
    DAY_S = 86400,
    CHART_MAX_S = 3 * DAY_S, /* for a forecast; for past values, a day */
    SPARK = 16,              /* columns of a forecast in the table */
    UNDER = 2,               /* lines below a row or a value are indented */
    CHART_LEAST = 40,        /* columns of a chart */
    LINE = 512,              /* bytes of a line before it is wrapped */
    ERRORS_ALL = 60, /* width of the errors' table; narrower: without yesterday's */
};

/* The best time to begin a job of `length`. */
struct start {
    bool asked, found, now_known;
    int64_t length_s, begin_utc_s;
    double mean, now_mean;
};

static struct start start_of(const struct sight *s, uint64_t for_ns, int64_t now_s)
{
    struct start w = {.asked = for_ns > 0, .length_s = (int64_t)(for_ns / NS_PER_S)};

    if (!w.asked || !s->known)
        return w;
    w.found = stretch_lowest(s->point, s->n, now_s, w.length_s, &w.begin_utc_s, &w.mean);
    w.now_known = stretch_mean(s->point, s->n, now_s, now_s + w.length_s, &w.now_mean);
    return w;
}

/* ---- text ---- */

/* A line at this indent, wrapped at the terminal's width. */
static void __attribute__((format(printf, 2, 3)))
print_line(unsigned indent, const char *format, ...)
{
    char text[LINE];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    printf("%*s", (int)indent, "");
    text_wrap_in(stdout, text_width(), indent, indent + UNDER, text);
}

/* The time from which its age counts: a forecast's from its issue, if its source gives
 * it.
 */
static int64_t age_from(const struct sight *s)
{
    return s->ahead && s->facts.issued_utc_s ? s->facts.issued_utc_s : s->time_utc_s;
}

/* One line: the reason, whose value it is, and the time of the next query. */
static void say_unknown(const struct sight *s, int64_t now_s)
{
    int64_t next_s = s->facts.asked.next_utc_s;
    char next[SIGHT_TIME];

    cli_say("%s: unknown: %s%s%s%s%s", s->name, s->why, s->source[0] ? "; source " : "",
            s->source, next_s ? ", which is asked again at " : "",
            next_s ? sight_time(next_s, now_s, next) : "");
}

static void print_source(const struct sight *s, int64_t now_s)
{
    char from[SIGHT_TIME], to[SIGHT_TIME], age[24], since[LINE] = "";

    print_line(UNDER, "source %s%s", s->source[0] ? s->source : "-",
               s->estimated && !s->ahead ? ", which estimates it" : "");
    if (s->ahead && s->facts.issued_utc_s)
        (void)snprintf(since, sizeof since, "made %s (%s ago), ",
                       sight_time(s->facts.issued_utc_s, now_s, from),
                       sight_lasts(now_s - s->facts.issued_utc_s, age));
    else if (!s->ahead && s->time_utc_s)
        (void)snprintf(since, sizeof since, "value of %s (%s ago), ",
                       sight_time(s->time_utc_s, now_s, from),
                       sight_lasts(now_s - s->time_utc_s, age));
    print_line(UNDER, "%suntil %s", since,
               s->end_utc_s ? sight_time(s->end_utc_s, now_s, to) : "-");
    if (s->known && s->why[0])
        print_line(UNDER, "the source fails: %s", s->why);
    if (s->why[0] && s->facts.asked.next_utc_s)
        print_line(UNDER, "the source is asked again at %s",
                   sight_time(s->facts.asked.next_utc_s, now_s, to));
}

static void print_value(const struct sight *s, int64_t now_s)
{
    print_line(0, "%s: %s%s", s->name, s->value[0] ? s->value : "forecast, in ",
               s->value[0] ? "" : s->unit);
    print_source(s, now_s);
}

static void print_extremes(const struct sight *s, unsigned indent, int64_t now_s)
{
    const struct stretch_point *lo = NULL, *hi = NULL;
    char at_lo[SIGHT_TIME], at_hi[SIGHT_TIME];

    for (size_t i = 0; i < s->n; i++) {
        const struct stretch_point *p = &s->point[i];
        if (p->to_utc_s <= now_s)
            continue;
        lo = !lo || p->v < lo->v ? p : lo;
        hi = !hi || p->v > hi->v ? p : hi;
    }
    if (lo)
        print_line(indent, "lowest %.6g %s at %s, highest %.6g %s at %s", lo->v, s->unit,
                   sight_time(lo->from_utc_s, now_s, at_lo), hi->v, s->unit,
                   sight_time(hi->from_utc_s, now_s, at_hi));
}

static void print_start(const struct sight *s, const struct start *w, int64_t now_s)
{
    char begin[SIGHT_TIME], length[24], now[64] = "", change[32] = "";

    if (!w->asked)
        return;
    (void)sight_lasts(w->length_s, length);
    if (!w->found) {
        print_line(0, "the forecast has no %s without a gap before its end", length);
        return;
    }
    if (w->now_known)
        (void)snprintf(now, sizeof now, "; from now %.6g", w->now_mean);
    if (w->now_known && w->now_mean > 0)
        (void)snprintf(change, sizeof change, " (%+.1f %%)",
                       100 * (w->mean / w->now_mean - 1));
    print_line(0, "best %s: from %s, %.6g %s on average%s%s", length,
               sight_time(w->begin_utc_s, now_s, begin), w->mean, s->unit, now, change);
}

static void print_error(double v, int width)
{
    if (isnan(v))
        printf(" %*s", width, "-");
    else
        printf(" %*.4g", width, v);
}

static void print_errors(const struct sight *s)
{
    const struct signal_facts *f = &s->facts;
    bool all = text_width() >= ERRORS_ALL;
    int ahead = all ? 8 : 6, forecast = all ? 11 : 8;

    printf("\n");
    print_line(0, "mean absolute error of its forecasts of the last %d days, %s:",
               JUDGE_DAYS, s->unit);
    printf("%*s %*s %*s %11s%s\n", ahead, "AHEAD", ahead, "VALUES", forecast, "FORECAST",
           "PERSISTENCE", all ? "   YESTERDAY" : "");
    for (size_t i = 0; i < f->n_judged; i++) {
        const struct signal_judged *j = &f->judged[i];
        if (j->score.n == 0)
            continue;
        printf("%*.6g h %*ju", ahead - 2, (double)j->horizon_s / 3600, ahead,
               (uintmax_t)j->score.n);
        print_error(j->score.forecast, forecast);
        print_error(j->score.last, 11);
        if (all)
            print_error(j->score.yesterday, 11);
        printf("%s\n", !j->worse ? "" : all ? "  worse" : " worse");
    }
}

/* The scores of earlier forecasts. */
static void print_judged(const struct sight *s)
{
    const struct signal_facts *f = &s->facts;
    char worse[FACTS_WORSE];
    uint64_t missed = 0, n = 0;

    for (size_t i = 0; i < f->n_judged; i++) {
        missed += f->judged[i].score.missed;
        n += f->judged[i].score.n;
    }
    if (n > 0)
        print_errors(s);
    if (missed)
        print_line(0,
                   "%ju values of it were not judged: the actual value, or one that is "
                   "no estimate, did not come in time",
                   (uintmax_t)missed);
    if (facts_worse(f, worse)[0])
        print_line(0, "the forecast is worse than persistence %s ahead", worse);
}

/* A forecast from now on, else the last day. */
static bool chart_of(const struct sight *s, const struct start *w, int64_t now_s,
                     struct sight_chart *ret)
{
    int64_t end = s->n ? s->point[s->n - 1].to_utc_s : 0;

    if (s->n == 0 || (s->n < 2 && !s->ahead))
        return false;
    *ret = (struct sight_chart){.point = s->point, .n = s->n};
    if (s->ahead) {
        ret->from_utc_s = now_s;
        ret->to_utc_s = end < now_s + CHART_MAX_S ? end : now_s + CHART_MAX_S;
        ret->mark_utc_s = w->begin_utc_s;
        ret->mark_s = w->found ? w->length_s : 0;
    } else {
        int64_t begin = s->point[0].from_utc_s;
        ret->from_utc_s = begin > now_s - DAY_S ? begin : now_s - DAY_S;
        ret->to_utc_s = now_s;
    }
    return ret->to_utc_s > ret->from_utc_s;
}

static int print_chart(const struct sight *s, const struct start *w, int64_t now_s,
                       bool colour)
{
    struct sight_chart c;

    if (!chart_of(s, w, now_s, &c))
        return 0;
    unsigned cols = text_width();
    cols = cols > SIGHT_COLS ? SIGHT_COLS : cols < CHART_LEAST ? CHART_LEAST : cols;
    auto_(grid_free) struct grid *g = grid_new(SIGHT_ROWS, cols, sight_ascii());
    if (!g)
        return -ENOMEM;
    sight_chart_draw(&c, g);
    printf("\n");
    sight_print(g, colour);
    printf("\n");
    return 0;
}

/* ---- JSON and CSV ---- */

static void put_utc(struct json_out *o, const char *key, int64_t utc_s)
{
    time_t t = (time_t)utc_s;
    char text[SIGHT_TIME];
    struct tm tm;

    if (utc_s && gmtime_r(&t, &tm) &&
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm) > 0)
        json_out_text(o, key, text);
    else
        json_out_null(o, key);
}

static void put_sight(struct json_out *o, const struct sight *s, int64_t now_s)
{
    json_out_object(o, NULL);
    json_out_text(o, "name", s->name);
    json_out_text(o, "unit", s->unit);
    json_out_bool(o, "known", s->known);
    if (isnan(s->number) && s->value[0])
        json_out_text(o, "value", s->value);
    else
        json_out_given(o, "value", s->number);
    if (s->known)
        json_out_bool(o, "estimated", s->estimated);
    else
        json_out_null(o, "estimated");
    json_out_text(o, "source", s->source);
    put_utc(o, "time_utc", s->time_utc_s);
    put_utc(o, "end_utc", s->end_utc_s);
    put_utc(o, "issued_utc", s->facts.issued_utc_s);
    json_out_known_int(o, "age_s", age_from(s) != 0, now_s - age_from(s));
    json_out_text(o, "why", s->why);
    facts_show(o, &s->facts);
    json_out_array(o, "series");
    for (size_t i = 0; i < s->n; i++) {
        json_out_object(o, NULL);
        put_utc(o, "begin_utc", s->point[i].from_utc_s);
        put_utc(o, "end_utc", s->point[i].to_utc_s);
        json_out_given(o, "value", s->point[i].v);
        json_out_end(o);
    }
    json_out_end(o);
    json_out_end(o);
}

static void put_start(struct json_out *o, const struct start *w)
{
    json_out_object(o, "best");
    json_out_int(o, "length_s", w->length_s);
    put_utc(o, "begin_utc", w->found ? w->begin_utc_s : 0);
    put_utc(o, "end_utc", w->found ? w->begin_utc_s + w->length_s : 0);
    json_out_known_double(o, "mean", w->found, w->mean);
    json_out_known_double(o, "mean_from_now", w->now_known, w->now_mean);
    json_out_end(o);
}

static int write_json(const char *path, const struct sights *all, const struct start *w,
                      int64_t now_s, uw_error *err)
{
    auto_(json_out_free) struct json_out *o = json_out_new();

    json_out_object(o, NULL);
    put_utc(o, "now_utc", now_s);
    json_out_array(o, "signals");
    for (size_t i = 0; i < all->n; i++)
        put_sight(o, &all->sight[i], now_s);
    json_out_end(o);
    if (w && w->asked)
        put_start(o, w);
    json_out_end(o);
    return json_out_write(o, path, err);
}

static const char *csv_utc(int64_t utc_s, char ret[SIGHT_TIME])
{
    time_t t = (time_t)utc_s;
    struct tm tm;

    if (!gmtime_r(&t, &tm) || strftime(ret, SIGHT_TIME, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        ret[0] = '\0';
    return ret;
}

static void put_csv(const struct sights *all, FILE *to)
{
    char begin[SIGHT_TIME], end[SIGHT_TIME];

    (void)fprintf(to, "begin_utc,end_utc,signal,value,unit\n");
    for (size_t i = 0; i < all->n; i++)
        for (size_t k = 0; k < all->sight[i].n; k++) {
            const struct sight *s = &all->sight[i];
            (void)fprintf(
                to, "%s,%s,%s,%.9g,%s\n", csv_utc(s->point[k].from_utc_s, begin),
                csv_utc(s->point[k].to_utc_s, end), s->name, s->point[k].v, s->unit);
        }
}

static int write_csv(const char *path, const struct sights *all, uw_error *err)
{
    auto_(mem_free) char *text = NULL;
    size_t len = 0;
    FILE *mem = open_memstream(&text, &len);

    if (!mem)
        return fail(err, -ENOMEM, "out of memory");
    put_csv(all, mem);
    if (fclose(mem) != 0)
        return fail(err, -ENOMEM, "out of memory");
    if (strcmp(path, "-") != 0)
        return file_write(path, text, len, FILE_MODE_UMASK, err);
    if (fwrite(text, 1, len, stdout) != len)
        return fail(err, -EIO, "cannot write to stdout");
    return 0;
}

static bool is_stdout(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

/* ---- one signal ---- */

static int print_one(const struct sights *all, const struct start *w, int64_t now_s,
                     bool colour)
{
    const struct sight *s = &all->sight[0];

    if (s->known) {
        print_value(s, now_s);
        if (print_chart(s, w, now_s, colour) < 0)
            return cli_fail(EXIT_FAIL, "out of memory");
        if (s->ahead)
            print_extremes(s, 0, now_s);
        print_start(s, w, now_s);
        print_judged(s);
    } else {
        say_unknown(s, now_s);
    }
    for (size_t i = 1; i < all->n; i++)
        print_value(&all->sight[i], now_s);
    return EXIT_OK;
}

/* The signal, followed by the other known signals.  After a failure the caller frees
 * *ret, too.
 */
static int get_one(const struct sight_link *l, const char *name,
                   const char *const *others, struct sights *ret, uw_error *err)
{
    auto_(sights_free) struct sights all = {.n = 0};
    int r = sight_get(l, name, ret, err);

    if (r != 0)
        return r;
    if (ret->n != 1)
        return fail(err, -EINVAL,
                    "no source gives %s: `underwatt signals` lists what is there", name);
    for (size_t i = 0; others && others[i]; i++) {
        r = sight_get(l, others[i], &all, err);
        if (r != 0)
            return r;
        struct sight *list = realloc(ret->sight, (ret->n + 1) * sizeof *list);
        if (!list)
            return fail(err, -ENOMEM, "out of memory");
        ret->sight = list;
        if (all.n == 1 && all.sight[0].known) {
            list[ret->n++] = all.sight[0];
            all.sight[0].point = NULL;
        }
        sights_free(&all);
    }
    return 0;
}

int sight_one(const struct cmd *cmd, const struct cli_env *env,
              const struct sight_opts *o, const char *name, const char *const *others)
{
    auto_(sight_link_close) struct sight_link l = {.client = NULL};
    auto_(sights_free) struct sights all = {.n = 0};
    uw_error err = {""};
    int code = sight_link_open(cmd, env, o->boards, o->socket, &l);

    if (code != EXIT_OK)
        return code;
    int r = get_one(&l, name, others, &all, &err);
    if (r != 0 || !all.sight)
        return cli_fail(cli_exit_of(r), "%s: %s", cmd->name, err.text);
    const struct sight *s = &all.sight[0];
    const struct start w = start_of(s, o->for_ns, l.utc_s);
    bool colour = isatty(STDOUT_FILENO) == 1 && !env->no_color;
    if (o->json)
        r = write_json(o->json, &all, &w, l.utc_s, &err);
    if (r == 0 && o->csv)
        r = write_csv(o->csv, &all, &err);
    if (r < 0)
        return cli_fail(EXIT_FAIL, "%s: %s", cmd->name, err.text);
    if (is_stdout(o->json) || is_stdout(o->csv)) {
        if (!s->known)
            say_unknown(s, l.utc_s);
    } else {
        code = print_one(&all, &w, l.utc_s, colour);
    }
    return code == EXIT_OK && !s->known ? EXIT_FAIL : code;
}

/* ---- all of them ---- */

static const char *spark_text(const struct sight *s, int64_t now_s,
                              char ret[SIGNAL_SHOWN])
{
    auto_(grid_free) struct grid *g = grid_new(1, SPARK, sight_ascii());
    const struct sight_chart c = {
        .point = s->point,
        .n = s->n,
        .from_utc_s = now_s,
        .to_utc_s = s->end_utc_s < now_s + DAY_S ? s->end_utc_s : now_s + DAY_S};
    if (g)
        sight_chart_spark(&c, g, 0, 0, SPARK);
    auto_(mem_free) char *row = g ? grid_row(g, 0) : NULL;
    (void)snprintf(ret, SIGNAL_SHOWN, "%s", row ? row : "(series)");
    return ret;
}

/* Pads by characters: blocks have three bytes each. */
static void print_padded(const char *text, unsigned width)
{
    unsigned n = text_columns(text);

    printf("%s%*s ", text, n < width ? (int)(width - n) : 0, "");
}

/* A row's value: a number or a word; for a forecast, its course. */
static void value_text(const struct sight *s, int64_t now_s, char ret[SIGNAL_SHOWN + 8])
{
    char shown[SIGNAL_SHOWN];

    if (!s->known)
        (void)snprintf(ret, SIGNAL_SHOWN + 8, "unknown");
    else if (s->ahead)
        (void)snprintf(ret, SIGNAL_SHOWN + 8, "%s", spark_text(s, now_s, shown));
    else
        (void)snprintf(ret, SIGNAL_SHOWN + 8, "%s%s", s->value,
                       s->estimated ? " (est.)" : "");
}

/* Widths of the names and values: those of the longest ones, if they fit. */
struct all_table {
    unsigned name, value, source; /* start of the source */
    unsigned width;
};

enum { AGE_ENDS = 8 + 1 + 8, NAME_MOST = 26, NAME_LEAST = 6, VALUE_LEAST = 7 };

static struct all_table table_of(const struct sights *all, int64_t now_s)
{
    struct all_table t = {.name = 15, .value = 16, .width = text_width()};
    char value[SIGNAL_SHOWN + 8];

    for (size_t i = 0; i < all->n; i++) {
        unsigned name = text_columns(all->sight[i].name);
        value_text(&all->sight[i], now_s, value);
        unsigned n = text_columns(value);
        t.name = name > t.name ? name : t.name;
        t.value = n > t.value ? n : t.value;
    }
    unsigned rest = t.width > AGE_ENDS + 2 ? t.width - AGE_ENDS - 2 : 0;
    t.name = t.name > NAME_MOST ? NAME_MOST : t.name;
    rest = rest > NAME_LEAST + VALUE_LEAST ? rest : NAME_LEAST + VALUE_LEAST;
    if (t.name + t.value > rest) {
        t.name = t.name > rest - VALUE_LEAST ? rest - VALUE_LEAST : t.name;
        t.value = rest - t.name;
    }
    t.source = t.name + 1 + t.value + 1 + AGE_ENDS + 2;
    return t;
}

static void print_row(const struct all_table *t, const struct sight *s, int64_t now_s)
{
    char value[SIGNAL_SHOWN + 8], age[24] = "-", ends[24] = "-";
    const char *source = s->source[0] ? s->source : "-";

    value_text(s, now_s, value);
    if (age_from(s))
        (void)sight_lasts(now_s > age_from(s) ? now_s - age_from(s) : 0, age);
    if (s->known && s->end_utc_s)
        (void)sight_lasts(s->end_utc_s > now_s ? s->end_utc_s - now_s : 0, ends);
    bool name_fits = text_columns(s->name) <= t->name;
    bool value_fits = text_columns(value) <= t->value;
    bool source_fits = t->source + text_columns(source) <= t->width;
    if (!name_fits)
        printf("%s\n", s->name);
    print_padded(name_fits ? s->name : "", t->name);
    print_padded(value_fits ? value : "", t->value);
    printf("%8s %8s%s%s\n", age, ends, source_fits ? "  " : "",
           source_fits ? source : "");
    if (!value_fits)
        print_line(UNDER, "value %s", value);
    if (!source_fits)
        print_line(UNDER, "source %s", source);
    if (s->ahead && s->known)
        print_extremes(s, UNDER, now_s);
    if (s->why[0])
        print_line(UNDER, "%s", s->why);
}

/* One row each; text that does not fit continues on lines below. */
static void print_all(const struct sights *all, int64_t now_s)
{
    const struct all_table t = table_of(all, now_s);

    print_padded("SIGNAL", t.name);
    print_padded("VALUE", t.value);
    printf("%8s %8s%s\n", "AGE", "ENDS IN",
           t.source + strlen("SOURCE") <= t.width ? "  SOURCE" : "");
    for (size_t i = 0; i < all->n; i++)
        print_row(&t, &all->sight[i], now_s);
}

int sight_all(const struct cmd *cmd, const struct cli_env *env,
              const struct sight_opts *o)
{
    auto_(sight_link_close) struct sight_link l = {.client = NULL};
    auto_(sights_free) struct sights all = {.n = 0};
    uw_error err = {""};
    int code = sight_link_open(cmd, env, o->boards, o->socket, &l);

    if (code != EXIT_OK)
        return code;
    int r = sight_get(&l, NULL, &all, &err);
    if (r == 0 && o->json)
        r = write_json(o->json, &all, NULL, l.utc_s, &err);
    if (r == 0 && o->csv)
        r = write_csv(o->csv, &all, &err);
    if (r < 0)
        return cli_fail(cli_exit_of(r), "%s: %s", cmd->name, err.text);
    if (is_stdout(o->json) || is_stdout(o->csv))
        return EXIT_OK;
    print_all(&all, l.utc_s);
    return EXIT_OK;
}

/* ---- commands ---- */

int opt_job_time(const char *text, void *ret, uw_error *err)
{
    uint64_t ns = 0;
    int r = parse_duration(text, &ns, err);

    if (r == 0 && (ns < NS_PER_S || ns > (uint64_t)SIGNAL_DAYS * DAY_S * NS_PER_S))
        r = fail(err, -ERANGE,
                 "'%s' is not between 1 s and %d d, as far as a forecast "
                 "reaches",
                 text, SIGNAL_DAYS);
    if (r == 0)
        *(uint64_t *)ret = ns;
    return r;
}

int sight_command(const struct cmd *cmd, const struct cli_env *env, int argc, char **argv,
                  const char *const *others)
{
    static const char *const words[] = {"now", "forecast", NULL};
    struct sight_opts o = {.boards = env->boards};
    const struct opt opts[] = {
        SIGHT_OPTIONS(o),
    };
    bool has_word = argc > 1 && argv[1][0] != '-'; /* options follow the word */
    struct opts_rest rest;
    char name[SIGNAL_NAME];
    int code =
        opts_parse(cmd, opts, n_elements(opts), argc - has_word, argv + has_word, &rest);

    if (code != OPTS_GO)
        return code;
    bool ahead = has_word && strcmp(argv[1], "forecast") == 0;
    if (rest.argc > 0)
        return opts_unexpected(cmd, rest.argv[0], cmd->args);
    if (!has_word)
        return opts_missing(cmd, cmd->args);
    if (!ahead && strcmp(argv[1], "now") != 0)
        return opts_unknown_word(cmd, argv[1], words);
    if (o.for_ns && !ahead)
        return cli_fail(EXIT_USAGE, "%s: --for belongs to forecast", cmd->name);
    (void)snprintf(name, sizeof name, "%s%s", cmd->name, ahead ? ".forecast" : "");
    return sight_one(cmd, env, &o, name, ahead ? NULL : others);
}
