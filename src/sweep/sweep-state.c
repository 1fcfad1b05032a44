#include "sweep/sweep-state.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "io/json.h"

enum { VERSION = 1, FILE_MAX = 64 << 20 };

void sweep_state_free(struct sweep_state *s)
{
    if (!s)
        return;
    for (size_t i = 0; s->argv && s->argv[i]; i++)
        free(s->argv[i]);
    free(s->argv);
    free(s->board);
    free(s->done);
    free(s);
}

/* ---- writing ---- */

static void put_texts(struct json_out *o, const struct sweep_state *s)
{
    json_out_array(o, "command");
    for (size_t i = 0; s->argv[i]; i++)
        json_out_text(o, NULL, s->argv[i]);
    json_out_end(o);
    json_out_array(o, "boards");
    for (size_t i = 0; i < s->n_boards; i++)
        json_out_text(o, NULL, s->board[i]);
    json_out_end(o);
}

static void put_runs(struct json_out *o, const struct sweep_state *s)
{
    json_out_array(o, "done");
    for (size_t i = 0; i < s->n_done; i++) {
        json_out_object(o, NULL);
        json_out_int(o, "cap_mw", s->done[i].cap_mw);
        json_out_exact_double(o, "at_s", s->done[i].at_s);
        json_out_exact_double(o, "time_s", s->done[i].time_s);
        json_out_exact_double(o, "energy_j", s->done[i].energy_j);
        json_out_end(o);
    }
    json_out_end(o);
}

int sweep_state_write(const char *path, const struct sweep_state *s, uw_error *err)
{
    auto_(json_out_free) struct json_out *o = json_out_new();

    json_out_object(o, NULL);
    json_out_int(o, "underwatt_sweep", VERSION);
    json_out_bool(o, "simulated", s->simulated);
    put_texts(o, s);
    json_out_int(o, "min_mw", s->range.min_mw);
    json_out_int(o, "max_mw", s->range.max_mw);
    json_out_int(o, "default_mw", s->range.default_mw);
    json_out_int(o, "from_mw", s->range.from_mw);
    json_out_int(o, "to_mw", s->range.to_mw);
    json_out_int(o, "step_mw", s->range.step_mw);
    json_out_int(o, "runs", s->runs);
    json_out_int(o, "seed", (int64_t)s->seed);
    json_out_int(o, "began_utc_s", s->began_utc_ns / (int64_t)NS_PER_S);
    put_runs(o, s);
    json_out_end(o);
    return json_out_write(o, path, err);
}

/* ---- reading ---- */

static int get_mw(const struct json_value *v, const char *key, uint32_t *ret,
                  uw_error *err)
{
    uint64_t mw;

    int r = json_get_u64(v, key, &mw, err);
    if (r < 0)
        return r;
    if (mw > UINT32_MAX)
        return fail(err, -ERANGE, "%s: %llu is not a cap", key, (unsigned long long)mw);
    *ret = (uint32_t)mw;
    return 0;
}

static int get_text_at(const struct json_value *list, size_t i, char **ret, uw_error *err)
{
    const char *text = json_as_text(json_at(list, i));

    if (!text)
        return fail(err, -EINVAL, "word %zu is not a string", i);
    *ret = strdup(text);
    return *ret ? 0 : fail(err, -ENOMEM, "out of memory");
}

static int get_texts(const struct json_value *root, struct sweep_state *s, uw_error *err)
{
    const struct json_value *command = json_get(root, "command");
    const struct json_value *boards = json_get(root, "boards");
    size_t n = json_count(command);
    int r = 0;

    s->n_boards = json_count(boards);
    if (n == 0 || n > SWEEP_STATE_ARGS_MAX || s->n_boards > SWEEP_STATE_BOARDS_MAX)
        return fail(err, -EINVAL, "no command, too many words, or too many boards");
    s->argv = calloc(n + 1, sizeof *s->argv);
    s->board = calloc(s->n_boards + 1, sizeof *s->board);
    if (!s->argv || !s->board)
        return fail(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < n && r >= 0; i++)
        r = get_text_at(command, i, &s->argv[i], err);
    for (size_t i = 0; i < s->n_boards && r >= 0; i++) {
        auto_(mem_free) char *uuid = NULL;
        r = get_text_at(boards, i, &uuid, err);
        if (r >= 0)
            (void)snprintf(s->board[i], sizeof s->board[i], "%s", uuid);
    }
    return r;
}

static int get_run(const struct json_value *v, struct sweep_run *run, uw_error *err)
{
    int r = get_mw(v, "cap_mw", &run->cap_mw, err);
    if (r >= 0)
        r = json_get_double(v, "at_s", &run->at_s, err);
    if (r >= 0)
        r = json_get_double(v, "time_s", &run->time_s, err);
    if (r >= 0)
        r = json_get_double(v, "energy_j", &run->energy_j, err);
    if (r >= 0 && !(run->time_s > 0 && run->energy_j > 0 && run->at_s >= 0))
        r = fail(err, -EINVAL, "a time or an energy is not positive");
    return r;
}

static int get_runs(const struct json_value *root, struct sweep_state *s, uw_error *err)
{
    const struct json_value *done = json_get(root, "done");
    size_t n = json_count(done);

    if (n > (size_t)SWEEP_CAPS_MAX * SWEEP_RUNS_MAX)
        return fail(err, -EINVAL, "%zu runs are too many", n);
    s->done = calloc(n + 1, sizeof *s->done);
    if (!s->done)
        return fail(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) {
        int r = get_run(json_at(done, i), &s->done[i], err);
        if (r < 0)
            return fail_in(err, r, "run %zu", i + 1);
    }
    s->n_done = n;
    return 0;
}

static int get_numbers(const struct json_value *root, struct sweep_state *s,
                       uw_error *err)
{
    const struct {
        const char *key;
        uint32_t *ret;
    } caps[] = {
        {"min_mw", &s->range.min_mw},   {"max_mw", &s->range.max_mw},
        {"from_mw", &s->range.from_mw}, {"default_mw", &s->range.default_mw},
        {"to_mw", &s->range.to_mw},     {"step_mw", &s->range.step_mw},
    };
    uint64_t version = 0, runs = 0, began = 0;
    int r = json_get_u64(root, "underwatt_sweep", &version, err);

    if (r >= 0 && version != VERSION)
        r = fail(err, -EINVAL, "unknown version %llu", (unsigned long long)version);
    for (size_t i = 0; i < n_elements(caps) && r >= 0; i++)
        r = get_mw(root, caps[i].key, caps[i].ret, err);
    if (r >= 0)
        r = json_get_u64(root, "runs", &runs, err);
    if (r >= 0 && (runs < 1 || runs > SWEEP_RUNS_MAX))
        r = fail(err, -EINVAL, "runs: %llu is outside 1..%d", (unsigned long long)runs,
                 SWEEP_RUNS_MAX);
    if (r >= 0)
        r = json_get_u64(root, "seed", &s->seed, err);
    if (r >= 0)
        r = json_get_u64(root, "began_utc_s", &began, err);
    if (r >= 0)
        r = json_get_bool(root, "simulated", &s->simulated, err);
    s->runs = (unsigned)runs;
    s->began_utc_ns = (int64_t)(began % (UINT64_C(1) << 33)) * (int64_t)NS_PER_S;
    return r;
}

static int of_document(const char *name, const struct json *doc, struct sweep_state **ret,
                       uw_error *err)
{
    auto_(sweep_state_free) struct sweep_state *s = calloc(1, sizeof *s);
    const struct json_value *root = json_root(doc);

    if (!s)
        return fail(err, -ENOMEM, "out of memory");
    int r = get_numbers(root, s, err);
    if (r >= 0)
        r = get_texts(root, s, err);
    if (r >= 0)
        r = get_runs(root, s, err);
    if (r < 0)
        return fail_in(err, r == -ENOMEM ? r : -EINVAL,
                       "%.80s is not a state file of a sweep", name);
    *ret = take(s);
    return 0;
}

int sweep_state_parse(const char *name, const char *text, size_t len,
                      struct sweep_state **ret, uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;

    int r = json_read(name, text, len, &doc, err);
    return r < 0 ? r : of_document(name, doc, ret, err);
}

int sweep_state_read(const char *path, struct sweep_state **ret, uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;

    int r = json_read_file(path, FILE_MAX, &doc, err);
    return r < 0 ? r : of_document(path, doc, ret, err);
}

/* ---- comparing ---- */

static int job_key_command(const struct sweep_state *a, const struct sweep_state *b,
                           uw_error *err)
{
    for (size_t i = 0;; i++) {
        if (!a->argv[i] && !b->argv[i])
            return 0;
        if (!a->argv[i] || !b->argv[i] || strcmp(a->argv[i], b->argv[i]) != 0)
            return fail(err, -EINVAL, "another command: word %zu was '%.60s', is '%.60s'",
                        i + 1, a->argv[i] ? a->argv[i] : "",
                        b->argv[i] ? b->argv[i] : "");
    }
}

static int same_boards(const struct sweep_state *a, const struct sweep_state *b,
                       uw_error *err)
{
    if (a->n_boards != b->n_boards)
        return fail(err, -EINVAL, "other boards: were %zu, are %zu", a->n_boards,
                    b->n_boards);
    for (size_t i = 0; i < a->n_boards; i++)
        if (strcmp(a->board[i], b->board[i]) != 0)
            return fail(err, -EINVAL, "another board: was %.48s, is %.48s", a->board[i],
                        b->board[i]);
    return 0;
}

int sweep_state_same(const struct sweep_state *a, const struct sweep_state *b,
                     uw_error *err)
{
    const struct {
        const char *name;
        uint32_t was, is;
    } caps[] = {
        {"lowest cap", a->range.from_mw, b->range.from_mw},
        {"highest cap", a->range.to_mw, b->range.to_mw},
        {"step", a->range.step_mw, b->range.step_mw},
        {"default limit", a->range.default_mw, b->range.default_mw},
    };

    int r = job_key_command(a, b, err);
    if (r >= 0)
        r = same_boards(a, b, err);
    for (size_t i = 0; i < n_elements(caps) && r >= 0; i++)
        if (caps[i].was != caps[i].is)
            r = fail(err, -EINVAL, "another range: the %s was %g W, is %g W",
                     caps[i].name, w_of_mw(caps[i].was), w_of_mw(caps[i].is));
    if (r >= 0 && a->seed != b->seed)
        r = fail(err, -EINVAL, "another order of runs: --seed was %llu, is %llu",
                 (unsigned long long)a->seed, (unsigned long long)b->seed);
    if (r >= 0 && a->simulated != b->simulated)
        r = fail(err, -EINVAL, "made on %s boards", a->simulated ? "simulated" : "real");
    return r;
}
