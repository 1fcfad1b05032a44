/* Answers of a daemon as commands and library read and show them: "KIND\nBODY", KIND one
 * of the table below or a status such as 404.  Whatever is in an answer, a terminal gets
 * text and no commands, a page no markup of others, and a model stays within its bounds.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/error.h"
#include "chart/canvas.h"
#include "cli/cap-read.h"
#include "cli/cap-target.h"
#include "cli/job-node.h"
#include "cli/jobs-text.h"
#include "cli/list-daemon.h"
#include "cli/report.h"
#include "cli/top.h"
#include "fuzz.h"
#include "io/answer.h"
#include "lib/inside.h"

static struct top top;
static uw_error err;

static bool ends(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

/* Lines of text: nothing that a terminal takes for a command. */
static void must_plain(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        must((unsigned char)text[i] >= ' ' ? text[i] != 127 : text[i] == '\n');
}

/* CSV: each quoted field ends. */
static void must_closed(const char *text, size_t size)
{
    size_t quotes = 0;

    for (size_t i = 0; i < size; i++)
        quotes += text[i] == '"';
    must(quotes % 2 == 0);
}

/* ---- views into a string ---- */

struct shown {
    FILE *to;
    char *text;
    size_t size;
};

static FILE *show_begin(struct shown *s)
{
    s->to = open_memstream(&s->text, &s->size);
    must(s->to != NULL);
    return s->to;
}

static void show_free(struct shown *s)
{
    free(s->text);
}

static void show_jobs(const struct json_value *jobs, const struct json_value *gpus)
{
    struct shown s;

    jobs_text(jobs, gpus, true, 80, show_begin(&s));
    must(fclose(s.to) == 0);
    must_plain(s.text, s.size);
    fuzz_add("%.300s", s.text);
    show_free(&s);
}

/* ---- the live view ---- */

static void must_top(void)
{
    must(top.n_boards <= TOP_BOARDS && top.n_jobs <= TOP_JOBS);
    must(top.picked == 0 || top.picked < top.n_boards);
    must(ends(top.host, sizeof top.host) && ends(top.clock, sizeof top.clock));
    for (size_t i = 0; i < top.n_boards; i++) {
        const struct top_board *b = &top.board[i];
        must(b->n_claims <= TOP_CLAIMS && b->uuid[0]);
        must(ends(b->uuid, sizeof b->uuid) && ends(b->by, sizeof b->by));
        must(ends(b->state, sizeof b->state) && ends(b->text, sizeof b->text));
    }
    for (size_t i = 0; i < top.n_jobs; i++)
        must(ends(top.job[i].name, sizeof top.job[i].name) &&
             ends(top.job[i].gpus, sizeof top.job[i].gpus));
}

static void draw(bool ascii, bool claims)
{
    auto_(grid_free) struct grid *g = grid_new(24, 80, ascii);

    must(g != NULL);
    top.claims = claims;
    top_draw(&top, g);
    for (unsigned i = 0; i < g->rows * g->cols; i++) {
        must(g->cell[i].code >= ' ' && g->cell[i].code != 127 &&
             g->cell[i].code < 0x110000 && g->cell[i].look < GRID_LOOKS);
        must(!ascii || g->cell[i].code < 128);
    }
}

static int take_top(int (*from)(struct top *, const struct json_value *, uw_error *),
                    const struct json_value *root)
{
    static struct top before;

    before = top;
    int r = from(&top, root, &err);
    must(r == 0 || (r == -EINVAL && err.text[0]));
    if (r < 0) {
        must(memcmp(&before, &top, sizeof top) == 0);
        return r;
    }
    must_top();
    top_tick(&top);
    draw(false, false);
    draw(true, true);
    top.waste = true;
    draw(true, false);
    return 0;
}

/* ---- one reader a kind; < 0: refused with a text ---- */

static int read_node(const struct json_value *root)
{
    int r = take_top(top_take_node, root);

    if (r == 0)
        fuzz_add("%s %s", top.host, top.clock);
    return r;
}

static void read_board(const struct json_value *v)
{
    static const struct cap_arg cap = {.mw = 210000};
    struct cap_target t = {.index = 77};
    char line[240];
    uw_error why;

    int r = cap_read_target(v, &cap, &t, &why);
    must(r == 0 ? t.cap_mw == 210000 && ends(t.uuid, sizeof t.uuid) : t.index == 77);
    bool may = cap_read_board(v, &t, line, sizeof line);
    must(ends(line, sizeof line) && (may || line[0]));
    (void)cap_read_left_alone(v);
    if (list_daemon_cap(v, line, sizeof line))
        must(ends(line, sizeof line));
    fuzz_add("target %d, may %d; ", r, may);
}

static int read_gpus(const struct json_value *root)
{
    const struct json_value *list = json_get(root, "gpus");

    for (size_t i = 0; i < json_count(list) && i < 80; i++)
        read_board(json_at(list, i));
    int r = take_top(top_take_gpus, root);
    if (r == 0)
        fuzz_add("%zu boards", top.n_boards);
    return r;
}

static int read_jobs(const struct json_value *root)
{
    int r = take_top(top_take_jobs, root);

    fuzz_add("%zu jobs; ", top.n_jobs);
    show_jobs(root, NULL);
    show_jobs(root, root); /* which may hold "gpus" as well */
    return r;
}

static int read_waste(const struct json_value *root)
{
    int r = take_top(top_take_waste, root);

    if (r < 0)
        return r;
    for (const struct top_wasted *w = &top.users; w;
         w = w == &top.users ? &top.projects : NULL) {
        must(w->n <= TOP_WASTERS);
        for (size_t i = 0; i < w->n; i++)
            must(ends(w->of[i].name, sizeof w->of[i].name));
        fuzz_add("%zu and %zu, %.60s; ", w->n, w->n_rest, w->n ? w->of[0].name : "-");
    }
    return 0;
}

static int read_explain(const struct json_value *root)
{
    bool back = cap_read_back(root, true);

    must(back || !cap_read_back(root, false));
    (void)cap_read_mine(root, root);
    int r = take_top(top_take_claims, root);
    if (r == 0)
        fuzz_add("%zu claims, back %d", top.board[0].n_claims, back);
    return r;
}

/* As `underwatt report` reads it: texts stay as they are for CSV alone. */
static int read_report(struct json *doc)
{
    const struct json_value *root = json_root(doc);
    struct shown s;
    int r = report_check(root, &err);

    if (r < 0)
        return r;
    int csv = report_csv(root, show_begin(&s), &err);
    must(fclose(s.to) == 0);
    must_closed(s.text, s.size);
    show_free(&s);
    must(json_make_plain(doc) == 0);
    int text = report_text(root, show_begin(&s), &err);
    must(fclose(s.to) == 0);
    must_plain(s.text, s.size);
    fuzz_add("%.300s", s.text);
    show_free(&s);
    int html = report_html(root, show_begin(&s), &err);
    must(fclose(s.to) == 0);
    must(text == 0 && csv == 0 && html == 0);
    must(!memmem(s.text, s.size, "<evil", 5)); /* which seeds put into their names */
    show_free(&s);
    return 0;
}

static int read_job(const struct json *doc)
{
    struct job_answer a;

    job_answer(doc, &a);
    must(isfinite(a.result.time_s) && isfinite(a.result.energy_j));
    must(ends(a.result.error.text, sizeof a.result.error.text));
    must(a.report.n_caps <= TUNER_CAPS_MAX);
    must(!a.result.tuner || a.result.tuner == &a.report);
    must(ends(a.report.why, sizeof a.report.why));
    must(isfinite(a.report.saved.fraction) && isfinite(a.report.period_s));
    must(!a.result.measured || (a.result.time_s > 0 && a.result.energy_j > 0));
    fuzz_add("%g s, %g J, %zu caps, saved %g, %s", a.result.time_s, a.result.energy_j,
             a.report.n_caps, a.report.saved.fraction, a.result.error.text);
    return 0;
}

static int read_window(const struct json_value *root)
{
    enum { BOARDS = 2 };
    static uw_device device[BOARDS] = {{.id = "GPU-0"}, {.id = "GPU-1"}};
    static uw_ctx ctx = {.n = BOARDS, .device = device};
    auto_(mem_free) uw_window *win =
        calloc(1, sizeof *win + BOARDS * sizeof win->board[0]);

    must(win != NULL);
    win->ctx = &ctx;
    int r = lib_read_window(root, win, &err);
    for (size_t i = 0; r == 0 && i < BOARDS; i++) {
        const struct lib_energy *e = &win->board[i];
        must(e->r < 0 ? e->err.text[0] : e->energy.time_s > 0 && e->energy.method);
        must(e->r < 0 || isfinite(e->energy.energy_j));
        fuzz_add("%s; ", e->r < 0 ? e->err.text : e->energy.method);
    }
    return r;
}

static int read_kind(const char *kind, struct json *doc)
{
    static const struct {
        const char *kind;
        int (*read)(const struct json_value *root);
    } kinds[] = {{"node", read_node},   {"gpus", read_gpus},
                 {"jobs", read_jobs},   {"explain", read_explain},
                 {"waste", read_waste}, {"window", read_window}};

    if (strcmp(kind, "job") == 0)
        return read_job(doc);
    if (strcmp(kind, "report") == 0)
        return read_report(doc);
    for (size_t i = 0; i < n_elements(kinds); i++)
        if (strcmp(kind, kinds[i].kind) == 0)
            return kinds[i].read(json_root(doc));
    return fail(&err, -ENOENT, "no such kind");
}

/* A refusal is a failure with words, whatever comes with it. */
static int read_refused(const char *kind, const char *body, size_t len)
{
    unsigned status = 0;

    for (; *kind >= '0' && *kind <= '9' && status < 1000; kind++)
        status = status * 10 + (unsigned)(*kind - '0');
    must(answer_refused(status, body, len, &err) < 0 && ends(err.text, sizeof err.text));
    must(err.text[0] || len > 0);
    must_plain(err.text, strlen(err.text));
    return fuzz_say("refused", "%s", err.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_(json_free) struct json *doc = NULL;
    const char *text = (const char *)data, *body = size ? memchr(text, '\n', size) : NULL;
    char kind[16] = "";
    static bool begun;

    if (!begun)
        (void)atexit(canvas_forget_fonts); /* the libraries' own caches are no leak */
    begun = true;
    if (!body || (size_t)(body - text) >= sizeof kind)
        return fuzz_say("passed-over", "no kind");
    memcpy(kind, text, (size_t)(body++ - text));
    size_t len = size - (size_t)(body - text);
    top = (struct top){.n_boards = 1, .board = {{.uuid = "GPU-0"}}};
    err.text[0] = '\0';
    if (*kind >= '0' && *kind <= '9')
        return read_refused(kind, body, len);
    int r = strcmp(kind, "report") == 0 ? json_read("answer", body, len, &doc, &err)
                                        : answer_read(body, len, &doc, &err);
    if (r < 0)
        return fuzz_say("refused", "%s", err.text);
    (void)fuzz_say("accepted", "%s", "");
    if (read_kind(kind, doc) < 0) {
        must(err.text[0]);
        (void)fuzz_say("refused", "%s", err.text);
    }
    return 0;
}
