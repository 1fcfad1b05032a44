#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/figures.h"
#include "cli/nodes.h"
#include "cli/options.h"
#include "cli/top-ask.h"
#include "cli/top-screen.h"
#include "cli/top.h"
#include "io/loop.h"

enum {
    ONCE_COLS = TEXT_COLUMNS,
    DELAY_LEAST_MS = 200,
    DELAY_MOST_MS = 60000,
    ANSWER_MS = 100, /* between checks for an answer */
};

struct view {
    struct nodes *nodes;
    struct loop *loop; /* provides the clock */
    struct top *top;
    struct top_ask *ask; /* NULL: no daemon has a ledger */
    uint64_t delay_ns, next_ns;
    unsigned rows, cols; /* of the terminal */
    bool ascii;
};

typedef int (*take_fn)(struct top *t, const struct json_value *v, uw_error *err);

static int take_one(struct view *v, const char *path, take_fn fn, uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;

    int r = nodes_get(v->nodes, path, NULL, &doc, err);
    return r < 0 ? r : fn(v->top, json_root(doc), err);
}

/* Queries the history that the daemon has of boards that are new to the view.  Without
 * history, a graph starts empty.
 */
static void look_back(struct view *v)
{
    struct top *t = v->top;
    char path[160];

    for (size_t i = 0; i < t->n_boards; i++) {
        struct top_board *b = &t->board[i];
        if (b->past_asked)
            continue;
        (void)snprintf(path, sizeof path, "/v1/gpus/%s/history", b->uuid);
        (void)take_one(v, path, top_take_history, NULL);
        b->past_asked = true;
    }
}

/* Queries the claims on the picked board, where the view shows them. */
static int look_at_claims(struct view *v, uw_error *err)
{
    struct top *t = v->top;
    char path[160];

    if (t->n_boards == 0 || !(t->claims || top_layout_now(t, v->rows, v->cols).details))
        return 0;
    (void)snprintf(path, sizeof path, "/v1/gpus/%s/explain", t->board[t->picked].uuid);
    return take_one(v, path, top_take_claims, err);
}

/* Queries everything that the view shows; errors go into the view. */
static int look(struct view *v, uw_error *err)
{
    struct top *t = v->top;

    int r = take_one(v, "/v1/node", top_take_node, err);
    if (r == 0)
        r = take_one(v, "/v1/gpus", top_take_gpus, err);
    if (r == 0)
        look_back(v);
    if (r == 0)
        r = take_one(v, "/v1/jobs", top_take_jobs, err);
    int claims = r == 0 ? look_at_claims(v, err) : 0;
    if (t->claims && claims < 0)
        r = claims;
    t->trouble[0] = '\0';
    if (r < 0)
        (void)snprintf(t->trouble, sizeof t->trouble, "%.199s", err->text);
    else
        top_tick(t);
    return r;
}

static int draw(struct view *v)
{
    screen_size(&v->rows, &v->cols, &v->ascii);
    auto_(grid_free) struct grid *g = grid_new(v->rows, v->cols, v->ascii);
    if (!g)
        return -ENOMEM;
    top_draw(v->top, g);
    screen_show(g);
    return 0;
}

/* Milliseconds to wait for a key. */
static int wait_ms(const struct view *v, uint64_t now_ns)
{
    const struct top *t = v->top;
    int ms = (int)((v->next_ns - now_ns) / NS_PER_MS) + 1;
    bool waits = v->ask && t->waste && !t->frozen && top_ask_turn(v->ask);

    return waits && ms > ANSWER_MS ? ANSWER_MS : ms;
}

static int watch(struct view *v, const struct cli_env *env, bool mono)
{
    uw_error err = {""};

    int r = screen_open(!mono && !env->no_color, &err);
    if (r < 0)
        return cli_fail(EXIT_FAIL, "top: %s", err.text);
    screen_size(&v->rows, &v->cols, &v->ascii);
    for (;;) {
        uint64_t now = loop_now_ns(v->loop);
        enum top_key key = TOP_KEY_OTHER;
        char text[SCREEN_TEXT] = "";
        if (now >= v->next_ns) {
            if (!v->top->frozen) {
                nodes_look(v->nodes);
                (void)look(v, &err);
            }
            v->next_ns = loop_now_ns(v->loop) + v->delay_ns;
            now = loop_now_ns(v->loop);
        }
        r = draw(v);
        if (r < 0)
            break;
        if (!screen_key(wait_ms(v, now), &key, text))
            continue;
        size_t picked = v->top->picked;
        bool claims = v->top->claims;
        if (top_key(v->top, key, text))
            break;
        if (!v->top->frozen && !v->top->trouble[0] &&
            (v->top->picked != picked || v->top->claims != claims))
            (void)look_at_claims(v, NULL); /* of the board that is picked now */
    }
    screen_close();
    return r < 0 ? cli_fail(EXIT_FAIL, "top: out of memory") : EXIT_OK;
}

/* Prints the view once as plain text. */
static int once(struct view *v)
{
    uw_error err = {""};

    if (look(v, &err) < 0)
        return cli_fail(EXIT_FAIL, "top: %s", err.text);
    size_t jobs = v->top->n_jobs > 4 ? v->top->n_jobs : 4;
    size_t rows = 6 + v->top->n_boards + jobs;
    auto_(grid_free) struct grid *g = grid_new((unsigned)rows, ONCE_COLS, true);
    if (!g)
        return cli_fail(EXIT_FAIL, "top: out of memory");
    top_draw(v->top, g);
    for (unsigned row = 0; row + 1 < g->rows; row++) {
        auto_(mem_free) char *text = grid_row(g, row);
        if (!text)
            return cli_fail(EXIT_FAIL, "top: out of memory");
        if (*text)
            (void)puts(text);
    }
    return EXIT_OK;
}

static int run(const struct cli_env *env, int argc, char **argv)
{
    const char *boards = env->boards;
    bool just_once = false, mono = false;
    auto_(nodes_free) struct nodes *nodes = NULL;
    auto_(loop_free) struct loop *loop = NULL;
    auto_(mem_free) struct top *top = calloc(1, sizeof *top);
    auto_(top_ask_free) struct top_ask *ask = NULL;
    struct view v = {.top = top};
    struct opt_time delay = {.least_ns = DELAY_LEAST_MS * NS_PER_MS,
                             .most_ns = DELAY_MOST_MS * NS_PER_MS,
                             .ns = NS_PER_S};
    uw_error err = {""};
    const struct opt opts[] = {
        {"delay", 'd', "TIME", "time between updates (1 s)", opt_time, &delay},
        {"once", 0, NULL, "print once as plain text", opt_flag, &just_once},
        {"mono", 0, NULL, "no colours (NO_COLOR does the same)", opt_flag, &mono},
        OPT_BOARDS(&boards),
    };

    int code = opts_parse(&cmd_top, opts, n_elements(opts), argc, argv, NULL);
    if (code != OPTS_GO)
        return code;
    v.delay_ns = delay.ns;
    code = nodes_need(&cmd_top, env, boards, &nodes);
    if (code != EXIT_OK)
        return code;
    if (!top || loop_new_real((struct loop_clock){.speed = 1}, &loop, &err) < 0)
        return cli_fail(EXIT_FAIL, "top: out of memory");
    top->look_s = s_of_ns(v.delay_ns);
    v.nodes = nodes;
    v.loop = loop;
    if (nodes_are_own(nodes))
        (void)fail(&err, -ENOENT, "only the daemon books waste, and no daemon answers");
    else if (!just_once && top_ask_new(env, boards, loop, top, &ask, &err) == 0)
        v.ask = ask;
    (void)snprintf(top->wasted_trouble, sizeof top->wasted_trouble, "%.199s", err.text);
    return just_once ? once(&v) : watch(&v, env, mono);
}

const struct cmd cmd_top = {
    "top",
    "[OPTIONS]",
    "Show boards, power against cap, jobs and claims, live",
    run,
};
