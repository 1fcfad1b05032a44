/* One run of CMD: check for other users, start, end, energy. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/error.h"
#include "base/units.h"
#include "board/selection.h"
#include "jobs/job-progress.h"
#include "sweep/sweeper-inside.h"

enum { FAILURES_MOST = 2 };

/* ---- processes on the boards ---- */

static int on_foreign(struct board *b, int r, const struct gpu_proc *procs, size_t n,
                      const uw_error *err, void *user)
{
    struct sweeper *s = user;
    bool real = !loop_is_virtual(s->loop);
    (void)err;

    s->asking--;
    if (s->stage != SWEEPER_S_CHECK)
        return 0;
    pid_t other = r == 0 && real ? selection_foreign(procs, n, s->o.uid) : 0;
    if (other && !s->stop) {
        (void)fail(&s->result.error, 0, "%s: process %d of another user holds this board",
                   board_view(b)->info->uuid, (int)other);
        s->result.end = s->started ? SWEEPER_FAILED : SWEEPER_BEFORE;
        s->stop = true;
    }
    if (s->asking > 0)
        return 0;
    if (s->stop)
        return sweeper_end_with(s, s->result.end);
    return s->spoilt ? sweeper_next_run(s) : sweeper_set_caps(s, sweeper_cap(s));
}

int sweeper_check_foreign(struct sweeper *s)
{
    s->stage = SWEEPER_S_CHECK;
    s->spoilt = false;
    for (size_t i = 0; i < s->n; i++)
        if (s->use[i] && board_procs(s->all[i], on_foreign, s) == 0)
            s->asking++;
    return s->asking == 0 ? sweeper_set_caps(s, sweeper_cap(s)) : 0;
}

static int on_look(struct board *b, int r, const struct gpu_proc *procs, size_t n,
                   const uw_error *err, void *user)
{
    struct sweeper *s = user;
    bool ours = false;
    (void)err;

    s->looking--;
    if (r != 0 || s->stage != SWEEPER_S_RUN || s->named)
        return 0;
    for (size_t k = 0; k < n; k++)
        ours |= job_progress_owns(s->loop, loop_child_pid(s->child), procs[k].pid);
    if (!ours)
        return 0;
    s->use[board_view(b)->at] = true;
    pid_t other = loop_is_virtual(s->loop) ? 0 : selection_foreign(procs, n, s->o.uid);
    if (!other || s->stop)
        return 0;
    (void)fail(&s->result.error, 0,
               "%s: process %d of another user shares this board with CMD",
               board_view(b)->info->uuid, (int)other);
    return sweeper_stop(s, SWEEPER_FAILED);
}

int sweeper_look(struct sweeper *s)
{
    if (s->named || s->looking > 0)
        return 0;
    for (size_t i = 0; i < s->n; i++)
        if (board_procs(s->all[i], on_look, s) == 0)
            s->looking++;
    return 0;
}

/* ---- the end of a run ---- */

/* The boards on which CMD's processes were found become its boards. */
static int adopt_found(struct sweeper *s)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        n += s->use[i];
    if (n == 0) {
        (void)fail(&s->result.error, 0,
                   "CMD was seen on no GPU: name its boards with --gpus");
        return sweeper_end_with(s, SWEEPER_FAILED);
    }
    s->named = true;
    s->found_run = true;
    if (sweeper_count(s, &s->result.error) < 0)
        return sweeper_end_with(s, SWEEPER_FAILED);
    if (sweeper_make_plan(s, true, &s->result.error) < 0)
        return sweeper_end_with(s, SWEEPER_USAGE);
    return 0;
}

static void publish(struct sweeper *s)
{
    uw_error err;

    if (s->o.state_path && sweep_state_write(s->o.state_path, s->state, &err) < 0)
        sweeper_note(s, err.text);
    if (s->o.on_run)
        s->o.on_run(&s->state->done[s->state->n_done - 1], s->state->n_done, s->o.user);
}

static void record(struct sweeper *s, double energy_j)
{
    struct sweep_state *state = s->state;
    struct sweep_run *run = &state->done[state->n_done];

    *run = (struct sweep_run){
        .cap_mw = s->plan[state->n_done],
        .time_s = s_between(s->begin_ns, s->end_ns),
        .energy_j = energy_j,
        .at_s = s->at_offset_s + fmax(0, s_between(s->start_ns, s->begin_ns)),
    };
    state->n_done++;
    s->failures = 0;
    if (!s->found_run) /* otherwise it is not yet known whether the run counts */
        publish(s);
}

static int on_energy(const struct energy_sum_window *w, void *user)
{
    struct sweeper *s = user;

    if (s->stop)
        return sweeper_end_with(s, s->result.end);
    if (w->r < 0 || !(w->energy_j > 0)) {
        if (++s->failures > FAILURES_MOST) {
            s->result.error = w->error;
            (void)fail_in(&s->result.error, 0, "the energy of a run is unknown");
            return sweeper_end_with(s, SWEEPER_FAILED);
        }
        char text[300];
        (void)snprintf(text, sizeof text,
                       "the energy of this run is unknown, the run is repeated: %s",
                       w->error.text);
        sweeper_note(s, text);
    } else if (!s->spoilt) {
        record(s, w->energy_j);
    }
    return sweeper_next_run(s);
}

int sweeper_after_hold(struct sweeper *s)
{
    struct sweep_state *state = s->state;
    bool at_default = true;

    for (size_t i = 0; i < s->n; i++)
        at_default &= !s->use[i] || s->original_mw[i] == state->range.default_mw;
    if (s->found_run && at_default && state->n_done > 0) {
        publish(s);
    } else if (s->found_run) {
        state->n_done = 0;
        sweeper_note(s, "the first run was not at the default limit: it found CMD's "
                        "boards and does not count");
    }
    bool found = s->found_run;
    s->found_run = false;
    return found ? sweeper_start_sampling(s) : sweeper_next_run(s);
}

static int cmd_failed(struct sweeper *s, int status)
{
    char how[64];

    s->result.status = status;
    if (WIFSIGNALED(status))
        (void)snprintf(how, sizeof how, "was ended by signal %d", WTERMSIG(status));
    else
        (void)snprintf(how, sizeof how, "ended with status %d", WEXITSTATUS(status));
    (void)fail(&s->result.error, 0, "CMD %s in run %zu%s", how,
               s->plan ? s->state->n_done + 1 : 1,
               s->named ? "" : ", which was to find its boards");
    return sweeper_end_with(s, SWEEPER_CMD);
}

/* Registers CMD as a job of the node, for users at other terminals; the sweep needs
 * none.
 */
static void tell_node(struct sweeper *s, bool runs)
{
    const struct node_who self = {
        .uid = s->o.uid, .admin = true, .may_claim = true, .name = "underwatt sweep"};
    struct node *node = own_node_node(s->own);
    const char *slash = strrchr(s->o.argv[0], '/');
    struct node_job ask = {.reg = {.source = JOB_RUN,
                                   .name = slash ? slash + 1 : s->o.argv[0],
                                   .uid = s->o.uid,
                                   .pid = runs ? loop_child_pid(s->child) : 0},
                           .page_fd = -1};

    if (s->node_job)
        (void)node_job_end(node, &self, s->node_job, NULL);
    s->node_job = 0;
    for (size_t i = 0; i < s->n; i++)
        ask.reg.boards |= s->use[i] ? UINT64_C(1) << i : 0;
    if (runs)
        (void)node_job_begin(node, &self, &ask, &s->node_job, NULL);
}

static int on_exit_of_cmd(struct loop_child *child, int status, void *user)
{
    struct sweeper *s = user;
    (void)child;

    s->running = false;
    s->end_ns = loop_now_ns(s->loop);
    energy_sum_mark(s->energy, s->end_ns);
    tell_node(s, false);
    loop_timer_set(s->timer, UINT64_MAX, 0);
    loop_timer_set(s->kill, UINT64_MAX, 0);
    if (s->stop)
        return sweeper_end_with(s, s->result.end);
    if (status != 0)
        return cmd_failed(s, status);
    if (!s->named) {
        int r = adopt_found(s);
        if (r < 0 || s->stage >= SWEEPER_S_RELEASE)
            return r;
    }
    if (s->spoilt)
        return sweeper_next_run(s);
    s->stage = SWEEPER_S_ENERGY;
    int r = energy_sum_window(s->energy, s->begin_ns, s->end_ns, on_energy, s);
    if (r >= 0)
        return 0;
    (void)fail(&s->result.error, r, "the energy of a run cannot be measured");
    return sweeper_end_with(s, SWEEPER_FAILED);
}

int sweeper_start_cmd(struct sweeper *s)
{
    const struct loop_child_opts cmd = {.argv = s->o.argv,
                                        .inherit = true,
                                        .stdin_fd = -1,
                                        .stdout_fd = -1,
                                        .stderr_fd = -1};

    if (s->stop)
        return sweeper_end_with(s, s->result.end);
    if (s->spoilt && s->named)
        return sweeper_next_run(s);
    loop_child_free(take(s->child));
    s->begin_ns = loop_now_ns(s->loop);
    energy_sum_mark(s->energy, s->begin_ns);
    int r = loop_child_new(s->loop, &cmd, on_exit_of_cmd, s, &s->child, &s->result.error);
    if (r < 0)
        return sweeper_end_with(s, r == -ENOENT ? SWEEPER_NOT_FOUND
                                   : r == -EACCES || r == -EISDIR || r == -ENOEXEC
                                       ? SWEEPER_CANNOT_RUN
                                   : s->started ? SWEEPER_FAILED
                                                : SWEEPER_BEFORE);
    s->started = s->running = true;
    s->stage = SWEEPER_S_RUN;
    tell_node(s, true);
    sweeper_begin_looking(s);
    return 0;
}
