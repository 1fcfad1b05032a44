#include "cli/survey.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "actuator/others.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/cli-loop.h"
#include "gpu/select.h"

static struct survey_board *entry_of(struct survey *s, struct board *b)
{
    return &s->board[board_view(b)->at];
}

static int one_less(struct survey *s)
{
    if (--s->waiting == 0)
        loop_stop(s->loop, 0);
    return 0;
}

static int on_procs(struct board *b, int r, const struct gpu_proc *procs, size_t n,
                    const uw_error *err, void *user)
{
    struct survey *s = user;
    struct survey_board *e = entry_of(s, b);
    (void)err;

    if (r == 0) {
        e->procs = calloc(n ? n : 1, sizeof *e->procs);
        e->has_procs = e->procs != NULL;
        e->n_procs = e->procs ? n : 0;
    }
    for (size_t i = 0; i < e->n_procs; i++) {
        e->procs[i].proc = procs[i];
        who_is("", procs[i].pid, &e->procs[i].who);
    }
    return one_less(s);
}

static void take_view(const struct survey *s, struct survey_board *e,
                      const struct board_view *v)
{
    char dir[sizeof s->about.state_dir + 16];

    held_dir(s->about.simulated ? s->about.state_dir : NULL, dir, sizeof dir);
    held_look(dir, v->info->uuid, &e->held);
    e->info = *v->info;
    e->answers = v->has_first;
    e->error = v->error;
    e->has_limits = v->has_limits;
    e->limits = v->limits;
    if (v->has_first)
        e->sample = v->first;
}

static int on_ready(struct boards *set, int r, const uw_error *err, void *user)
{
    struct survey *s = user;

    s->r = r;
    if (r != 0) {
        if (err)
            s->error = *err;
        loop_stop(s->loop, 0);
        return 0;
    }
    size_t n = boards_count(set);
    s->about = *gpu_boards_about(boards_lib(set));
    s->board = calloc(n ? n : 1, sizeof *s->board);
    if (!s->board)
        return -ENOMEM;
    s->n = n;
    s->waiting = 1;
    for (size_t i = 0; i < n; i++) {
        struct board *b = boards_at(set, i);
        take_view(s, &s->board[i], board_view(b));
        if (!s->board[i].answers || !(s->board[i].info.abilities & GPU_CAN_PROCS))
            continue;
        s->waiting++;
        if (board_procs(b, on_procs, s) < 0)
            s->waiting--;
    }
    return one_less(s);
}

int survey_new(const struct cmd *cmd, const struct cli_env *env, const char *boards,
               struct survey **ret)
{
    auto_(survey_free) struct survey *s = calloc(1, sizeof *s);
    uw_error err = {{0}};

    if (!s)
        return cli_fail(EXIT_FAIL, "%s: out of memory", cmd->name);
    int r = cli_loop_new(env, &s->loop, &err);
    if (r < 0)
        return cli_fail(cli_exit_of(r), "%s: %s", cmd->name, err.text);
    struct gpu_open_opts opts = {.source = boards, .clock = cli_loop_clock(s->loop)};
    r = boards_open(s->loop, &gpu_boards, &opts, on_ready, s, &s->set, &err);
    if (r == 0)
        r = loop_run(s->loop, &err);
    if (r < 0)
        return cli_fail(EXIT_FAIL, "%s: %s", cmd->name, err.text);
    *ret = take(s);
    return EXIT_OK;
}

void survey_free(struct survey *s)
{
    if (!s)
        return;
    boards_free(s->set);
    loop_free(s->loop);
    for (size_t i = 0; i < s->n; i++)
        free(s->board[i].procs);
    free(s->board);
    free(s);
}

int survey_select(const struct survey *s, const struct cmd *cmd, const char *gpus,
                  size_t ret_at[static BOARDS_MAX], size_t *ret_n)
{
    const struct gpu_info *infos[BOARDS_MAX];
    struct selection sel = {0};
    uw_error err = {{0}};

    for (size_t i = 0; i < s->n; i++)
        infos[i] = &s->board[i].info;
    int r = select_list(gpus ? gpus : "all", infos, s->n, &sel, &err);
    if (r < 0)
        return cli_fail(EXIT_USAGE, "%s: --gpus: %s", cmd->name, err.text);
    memcpy(ret_at, sel.at, sel.n * sizeof *sel.at);
    *ret_n = sel.n;
    return EXIT_OK;
}

size_t survey_answering(const struct survey *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        n += s->board[i].answers;
    return n;
}

void survey_say_unreal(const struct gpu_about *about)
{
    if (about->recorded)
        printf("recorded boards: all figures are those of %s\n", about->library);
    else if (about->simulated)
        printf("simulated boards: all figures are simulated\n");
}

bool survey_simulated(const struct survey *s)
{
    return s->about.simulated;
}

bool survey_is_left(const struct survey_board *b)
{
    const struct gpu_sample *s = &b->sample;
    uint32_t mw = s->has & GPU_HAS_ENFORCED ? s->enforced_mw : s->requested_mw;

    return b->held.gone && mw != b->held.original_mw;
}

void survey_cap(const struct survey_board *b, char *ret, size_t size)
{
    const struct gpu_sample *s = &b->sample;
    const bool enforced = s->has & GPU_HAS_ENFORCED, asked = s->has & GPU_HAS_REQUESTED;
    const uint32_t mw = enforced ? s->enforced_mw : s->requested_mw;

    if (!enforced && !asked)
        (void)snprintf(ret, size, "unknown");
    else if (enforced && asked && s->enforced_mw != s->requested_mw)
        (void)snprintf(ret, size, "%g W enforced, %g W asked for",
                       w_of_mw(s->enforced_mw), w_of_mw(s->requested_mw));
    else if (b->held.known && survey_is_left(b))
        (void)snprintf(ret, size,
                       "left by underwatt (its process has ended), original %g W",
                       w_of_mw(b->held.original_mw));
    else if (b->held.known && !b->held.gone)
        others_say(&b->held.holder, b->held.original_mw, ret, size);
    else if (!b->has_limits)
        (void)snprintf(ret, size, "%g W, default unknown", w_of_mw(mw));
    else if (mw == b->limits.default_mw)
        (void)snprintf(ret, size, "default");
    else
        (void)snprintf(ret, size, "set; default %g W", w_of_mw(b->limits.default_mw));
}

void survey_reasons(const struct survey_board *b, char *ret, size_t size)
{
    static const struct {
        uint64_t bit;
        const char *word;
    } words[] = {
        {GPU_REASON_SW_POWER_CAP, "power-cap"},
        {GPU_REASON_HW_POWER_BRAKE, "power-brake"},
        {GPU_REASON_SW_THERMAL, "hot"},
        {GPU_REASON_HW_THERMAL, "too-hot"},
        {GPU_REASON_HW_SLOWDOWN, "slowdown"},
        {GPU_REASON_SYNC_BOOST, "sync-boost"},
        {GPU_REASON_APP_CLOCKS, "set-clocks"},
        {GPU_REASON_IDLE, "idle"},
    };
    size_t at = 0;

    ret[0] = '\0';
    for (size_t i = 0; i < n_elements(words); i++) {
        if (!(b->sample.has & GPU_HAS_REASONS) || !(b->sample.reasons & words[i].bit))
            continue;
        int n = snprintf(ret + at, size - at, "%s%s", at ? " " : "", words[i].word);
        if (n < 0 || (size_t)n >= size - at)
            return;
        at += (size_t)n;
    }
}
