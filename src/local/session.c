#include "local/session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "actuator/client.h"
#include "base/error.h"
#include "board/sampler.h"
#include "board/selection.h"
#include "jobs/job.h"
#include "local/final-read.h"

enum stage {
    STAGE_OPEN,    /* boards open and answer their first questions */
    STAGE_CHECK,   /* checks for other users on the named boards */
    STAGE_RIGHT,   /* the actuator starts and proves that caps can be set */
    STAGE_FEED,    /* meters get their first samples */
    STAGE_RUN,     /* CMD runs */
    STAGE_RELEASE, /* CMD has ended: boards are released */
    STAGE_ENERGY,  /* waits for the energy of the run */
    STAGE_REREAD,  /* caps ended early: reads the limits in force */
    STAGE_OVER,
};

enum {
    LOOK_MS = 500,     /* period of looking for the job's processes */
    SETTLED_LOOKS = 6, /* looks without a new board before the boards count as known */
    FEED_MS = 250,     /* least time of sampling before CMD starts */
    CPU_MAX = 16,
};

struct session {
    struct session_opts o;
    session_done_fn done;
    enum stage stage;
    struct boards *boards;
    struct board *all[BOARDS_MAX];
    bool use[BOARDS_MAX];  /* counts in the result */
    bool held[BOARDS_MAX]; /* by our actuator */
    bool named;            /* boards were named, not searched for */
    size_t n;
    size_t asking; /* pending answers of this stage */
    bool asked_foreign;

    struct actuator *act;
    uint32_t original_mw[BOARDS_MAX];
    struct actuator_range range[BOARDS_MAX]; /* range of limits of each board */
    bool hold_failed, probing;
    size_t probe;

    struct sampler *sampler;
    struct job *job;
    struct tuner *tuner;
    struct tuner_local local;
    struct energy_sum *meters; /* the tuner's meters: the sampler */
    struct progress_period *period;
    struct final_read *reread;
    struct board *tuned[BOARDS_MAX];
    uint32_t tuned_original_mw[BOARDS_MAX];
    struct actuator_range tuned_range[BOARDS_MAX];
    struct loop_timer *timer;
    uint64_t seen_ns; /* last time that CMD's steps were seen */
    bool silent;      /* it was noted that CMD reports none */
    unsigned quiet_looks;
    bool late_hold; /* boards were found while CMD runs: hold, then tune */
    unsigned interrupts;

    struct boards *cpu; /* processors, where readable */
    struct board *domain[CPU_MAX];
    size_t n_cpu;
    struct sampler *cpu_sampler;

    struct session_result result;
    struct session_board out[BOARDS_MAX];
    struct session_board cpu_out[CPU_MAX];
};

static int session_end(struct session *s, enum session_end end);

static void note(struct session *s, const char *text)
{
    if (s->o.note)
        s->o.note(text, true, s->o.user);
}

static const char *uuid_of(const struct session *s, size_t i)
{
    return board_view(s->all[i])->info->uuid;
}

/* ---- the end ---- */

static int finish_now(struct session *s);

static int on_reread(bool restored, const char *text, void *user)
{
    struct session *s = user;

    tuner_verified(s->tuner, restored, text);
    return finish_now(s);
}

/* Whether each board was read as it was released. */
static bool is_sure(const struct tuner_report *t)
{
    return t->restored && !t->unsure && !t->ended[0];
}

/* Reads the limits in force where not all releases were confirmed.  True: on_reread()
 * follows.
 */
static bool reread(struct session *s)
{
    const struct tuner_report *t = s->tuner ? tuner_report(s->tuner) : NULL;
    struct final_read_board boards[BOARDS_MAX];
    size_t n = 0;

    if (!t || s->stage < STAGE_RELEASE || s->stage >= STAGE_REREAD ||
        loop_is_virtual(s->o.loop) || is_sure(t))
        return false;
    for (size_t i = 0; i < s->n; i++)
        if (s->held[i])
            boards[n++] = (struct final_read_board){s->all[i], s->original_mw[i]};
    tuner_verified(s->tuner, false, "could not be verified");
    s->stage = STAGE_REREAD;
    const struct final_read_opts opts = {.loop = s->o.loop,
                                         .lib = boards_lib(s->boards),
                                         .boards = boards,
                                         .n = n,
                                         .fn = on_reread,
                                         .user = s};
    return final_read_start(&opts, &s->reread, NULL) == 0;
}

static int finish_now(struct session *s)
{
    if (s->stage == STAGE_OVER || reread(s))
        return 0;
    s->stage = STAGE_OVER;
    loop_timer_set(s->timer, UINT64_MAX, 0);
    s->result.n = s->n;
    s->result.board = s->out;
    for (size_t i = 0; i < s->n; i++) {
        s->out[i].info = board_view(s->all[i])->info;
        s->out[i].used = s->use[i];
        s->result.n_used += s->use[i];
        s->result.simulated |= s->out[i].info->simulated;
    }
    if (s->tuner)
        s->result.tuner = tuner_report(s->tuner);
    return s->done(s, &s->result, s->o.user);
}

static int session_end(struct session *s, enum session_end end)
{
    s->result.end = end;
    return finish_now(s);
}

static int on_cpu_energy(struct sampler *sampler, const struct sampler_window *w,
                         void *user)
{
    struct session *s = user;
    (void)sampler;

    if (w->r == 0) {
        s->result.n_cpu = s->n_cpu;
        s->result.cpu = s->cpu_out;
        for (size_t i = 0; i < s->n_cpu; i++)
            s->cpu_out[i] =
                (struct session_board){board_view(s->domain[i])->info, true, w->board[i]};
    }
    return finish_now(s);
}

/* Asks for the processor's energy; unknown where its counters cannot be read. */
static int ask_cpu(struct session *s)
{
    if (!s->cpu_sampler || sampler_window(s->cpu_sampler, s->result.begin_ns,
                                          s->result.end_ns, on_cpu_energy, s) < 0)
        return finish_now(s);
    return 0;
}

static int on_energy(struct sampler *sampler, const struct sampler_window *w, void *user)
{
    struct session *s = user;
    (void)sampler;

    if (w->r < 0) {
        s->result.error = w->error;
        return ask_cpu(s);
    }
    s->result.measured = true;
    s->result.energy_j = w->energy_j;
    s->result.half_j = w->half_j;
    s->result.power_w = w->power_w;
    s->result.why = w->why;
    for (size_t i = 0; i < s->n; i++)
        s->out[i].energy = w->board[i];
    return ask_cpu(s);
}

static int ask_energy(struct session *s)
{
    size_t used = 0;

    s->stage = STAGE_ENERGY;
    for (size_t i = 0; i < s->n; i++) {
        sampler_count_in(s->sampler, i, s->use[i]);
        used += s->use[i];
    }
    if (used == 0) {
        (void)fail(&s->result.error, 0,
                   "no GPU was named and CMD used none: nothing to measure");
        return finish_now(s);
    }
    int r =
        sampler_window(s->sampler, s->result.begin_ns, s->result.end_ns, on_energy, s);
    return r < 0 ? finish_now(s) : 0;
}

static int on_tuner_done(struct tuner *t, void *user)
{
    (void)t;
    return ask_energy(user);
}

static int on_job_exit(struct job *job, int status, void *user)
{
    struct session *s = user;

    s->result.status = status;
    s->result.end_ns = loop_now_ns(s->o.loop);
    s->result.time_s = s_between(s->result.begin_ns, s->result.end_ns);
    s->result.steps = job_steps(job)->mark.steps;
    s->result.silent = s->o.caps != SESSION_MEASURE && s->result.steps == 0;
    job_launches(job, s->result.launches);
    sampler_mark(s->sampler, s->result.end_ns);
    if (s->cpu_sampler)
        sampler_mark(s->cpu_sampler, s->result.end_ns);
    s->stage = STAGE_RELEASE;
    if (s->tuner)
        return tuner_finish(s->tuner, on_tuner_done, s);
    return ask_energy(s);
}

/* ---- tuning ---- */

static struct rate *rate_of_job(void *user)
{
    struct session *s = user;
    return s->job ? job_rate(s->job) : NULL;
}

static int begin_tuning(struct session *s)
{
    struct tuner_opts t = {
        .loop = s->o.loop,
        .caps = &tuner_local_caps,
        .caps_of = &s->local,
        .boards = s->tuned,
        .original_mw = s->tuned_original_mw,
        .range = s->tuned_range,
        .search = s->o.caps == SESSION_SEARCH,
        .goal = s->o.goal,
        .cap = s->o.cap,
        .window_s = s->o.window_s,
        .warm_s = s->o.warm_s,
        .checks_share = s->o.checks_share,
        .gap_checks = s->o.gap_checks,
        .note = s->o.note,
        .user = s->o.user,
        .rate = rate_of_job,
        .rate_of = s,
    };
    struct progress_period_board heard[BOARDS_MAX];
    uw_error err;

    for (size_t i = 0; i < s->n; i++) {
        sampler_count_in(s->sampler, i, s->use[i]);
        if (!s->held[i])
            continue;
        heard[t.n] = (struct progress_period_board){
            s->sampler, i, w_of_mw(board_view(s->all[i])->limits.max_mw)};
        s->tuned[t.n] = s->all[i];
        s->tuned_range[t.n] = s->range[i];
        s->tuned_original_mw[t.n++] = s->original_mw[i];
    }
    s->local =
        (struct tuner_local){s->act, s->sampler, s->tuned, s->tuned_original_mw, t.n};
    int r = energy_sum_new(&s->sampler, 1, &s->meters, &err);
    t.meters = s->meters;
    if (r >= 0 && s->o.caps == SESSION_SEARCH) {
        struct progress_period_opts period = {
            .loop = s->o.loop, .board = heard, .n = t.n};
        r = progress_period_new(&period, &s->period, &err);
    }
    t.period = s->period;
    if (r >= 0)
        r = tuner_new(&t, &s->tuner, &err);
    if (r < 0) {
        s->result.error = err;
        if (s->stage == STAGE_RUN) { /* CMD runs already: it stays uncapped */
            note(s, err.text);
            return 0;
        }
        return session_end(s, r == -ERANGE ? SESSION_USAGE : SESSION_BEFORE);
    }
    return 0;
}

/* A job that reports nothing: a named cap needs no progress, a goal needs some. */
static int without_progress(struct session *s)
{
    if (s->o.caps == SESSION_FIXED) {
        note(s, "CMD reports no progress: the cap is set, its saving cannot be measured");
        return tuner_cap_now(s->tuner);
    }
    if (tuner_listen(s->tuner)) {
        note(s, "CMD reports no steps: looking for a period in its boards' power");
        return 0;
    }
    note(s, "CMD reports no progress (see UNDERWATT_PROGRESS in underwatt-run(1)): it is "
            "measured, not capped");
    return 0;
}

static int on_job_steps(struct job *job, const struct steps *steps, uint64_t now_ns,
                        void *user)
{
    struct session *s = user;
    (void)job;

    if (steps_seen(steps)) {
        s->seen_ns = now_ns;
        s->silent = false;
    }
    if (s->tuner && s->stage == STAGE_RUN)
        return tuner_on_steps(s->tuner, steps, now_ns);
    return 0;
}

/* ---- CMD starts ---- */

static void on_job_uncounted(const char *why, void *user)
{
    note(user, why);
}

static int start_job(struct session *s)
{
    struct job_opts job = {
        .argv = s->o.argv,
        .runtime_dir = s->o.runtime_dir,
        .inject = s->o.inject,
        .on_steps = on_job_steps,
        .on_uncounted = on_job_uncounted,
        .on_exit = on_job_exit,
        .user = s,
    };

    s->result.begin_utc_ns = loop_utc_ns(s->o.loop);
    s->result.begin_ns = loop_now_ns(s->o.loop);
    sampler_mark(s->sampler, s->result.begin_ns);
    if (s->cpu_sampler)
        sampler_mark(s->cpu_sampler, s->result.begin_ns);
    int r = job_start(s->o.loop, &job, &s->job, &s->result.error);
    if (r < 0)
        return session_end(s, r == -ENOENT   ? SESSION_NOT_FOUND
                              : r == -EACCES ? SESSION_CANNOT_RUN
                                             : SESSION_BEFORE);
    s->stage = STAGE_RUN;
    loop_timer_set(s->timer, s->result.begin_ns + LOOK_MS * NS_PER_MS,
                   LOOK_MS * NS_PER_MS);
    return 0;
}

static int start_sampling(struct session *s)
{
    struct sampler_opts opts = {0};
    uw_error err;

    s->stage = STAGE_FEED;
    int r = sampler_new(s->o.loop, s->all, s->n, &opts, &s->sampler, &err);
    if (r < 0) {
        s->result.error = err;
        return session_end(s, SESSION_BEFORE);
    }
    for (size_t i = 0; i < s->n && s->named; i++)
        if (!s->use[i])
            sampler_rest(s->sampler, i);
    if (s->n_cpu > 0 &&
        sampler_new(s->o.loop, s->domain, s->n_cpu, &opts, &s->cpu_sampler, NULL) < 0)
        s->n_cpu = 0;
    if (s->o.caps != SESSION_MEASURE && s->named) {
        r = begin_tuning(s);
        if (r < 0 || s->stage == STAGE_OVER)
            return r;
    }
    loop_timer_set(s->timer, loop_now_ns(s->o.loop) + FEED_MS * NS_PER_MS,
                   FEED_MS * NS_PER_MS);
    return 0;
}

/* ---- the right to cap ---- */

static int all_held(struct session *s)
{
    if (s->late_hold)
        return s->stage == STAGE_RUN && !s->hold_failed ? begin_tuning(s) : 0;
    if (s->hold_failed)
        return session_end(s, SESSION_BEFORE);
    return start_sampling(s);
}

static int on_probe_released(struct actuator *act, const struct actuator_reply *reply,
                             void *user)
{
    struct session *s = user;
    (void)act;
    (void)reply;

    s->held[s->probe] = false;
    return start_sampling(s);
}

static size_t board_of(const struct session *s, const char *uuid)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(uuid_of(s, i), uuid) == 0)
            return i;
    return s->n;
}

static int on_hold(struct actuator *act, const struct actuator_reply *reply, void *user)
{
    struct session *s = user;
    size_t i = board_of(s, reply->uuid);

    s->asking--;
    if (reply->result == ACTUATOR_DONE && i < s->n) {
        s->held[i] = true;
        s->original_mw[i] = reply->original_mw;
        s->range[i] = reply->range;
        if (!reply->range.max_mw) /* from an older actuator */
            s->range[i] =
                (struct actuator_range){reply->limits.min_mw, reply->limits.max_mw};
        if (s->probing)
            return actuator_release(act, reply->uuid, on_probe_released, s);
    } else if (s->late_hold) {
        s->hold_failed = true;
        note(s, reply->text);
    } else if (!s->hold_failed) {
        s->hold_failed = true;
        (void)fail(&s->result.error, 0, "%s", reply->text);
    }
    return s->asking == 0 ? all_held(s) : 0;
}

static int hold_used(struct session *s)
{
    for (size_t i = 0; i < s->n; i++) {
        if (!s->use[i])
            continue;
        int r = actuator_hold(s->act, uuid_of(s, i), on_hold, s);
        if (r < 0)
            return r;
        s->asking++;
    }
    return 0;
}

/* No board is named: proves the right on a board that no other client holds. */
static int hold_probe(struct session *s)
{
    s->probing = true;
    for (size_t i = 0; i < s->n; i++) {
        const struct board_view *v = board_view(s->all[i]);
        if (!v->has_limits || v->error.text[0])
            continue;
        s->probe = i;
        s->asking = 1;
        return actuator_hold(s->act, uuid_of(s, i), on_hold, s);
    }
    (void)fail(&s->result.error, 0, "no board here can be capped");
    return session_end(s, SESSION_BEFORE);
}

static int on_actuator_ready(struct actuator *act, int r, const char *text, void *user)
{
    struct session *s = user;
    (void)act;

    if (r < 0) {
        (void)fail(&s->result.error, r, "%s", text);
        return session_end(s, SESSION_BEFORE);
    }
    return s->named ? hold_used(s) : hold_probe(s);
}

static int on_actuator_event(struct actuator *act, enum actuator_event event,
                             const struct actuator_reply *what, void *user)
{
    struct session *s = user;
    (void)act;

    if (s->tuner)
        return tuner_on_event(s->tuner, event, what);
    if (event == ACTUATOR_EVENT_ENDED && s->stage < STAGE_RUN) {
        (void)fail(&s->result.error, 0, "the actuator ended: %s", what->text);
        return session_end(s, SESSION_BEFORE);
    }
    return 0;
}

static int start_actuator(struct session *s)
{
    struct actuator_opts opts = {
        .on_ready = on_actuator_ready,
        .on_event = on_actuator_event,
        .user = s,
        .library = s->o.actuator_library,
        .program = s->o.actuator_program,
        .simulated = board_view(s->all[0])->info->simulated,
    };
    uw_error err;
    int r;

    s->stage = STAGE_RIGHT;
    if (loop_is_virtual(s->o.loop))
        r = actuator_start_virtual(s->o.loop, s->o.backend, boards_lib(s->boards), &opts,
                                   &s->act, &err);
    else
        r = actuator_start_local(s->o.loop, &opts, &s->act, &err);
    if (r < 0) {
        s->result.error = err;
        return session_end(s, SESSION_BEFORE);
    }
    return 0;
}

/* ---- boards ---- */

static int boards_known(struct session *s)
{
    return s->o.caps == SESSION_MEASURE ? start_sampling(s) : start_actuator(s);
}

static int on_foreign(struct board *b, int r, const struct gpu_proc *procs, size_t n,
                      const uw_error *err, void *user)
{
    struct session *s = user;
    (void)err;

    s->asking--;
    pid_t other =
        r == 0 && !loop_is_virtual(s->o.loop) ? selection_foreign(procs, n, s->o.uid) : 0;
    if (other && !s->asked_foreign) {
        s->asked_foreign = true;
        (void)fail(&s->result.error, 0, "%s: process %d of another user holds this board",
                   board_view(b)->info->uuid, (int)other);
    }
    if (s->asking > 0)
        return 0;
    if (s->asked_foreign) { /* other users never keep CMD from running */
        char text[sizeof s->result.error.text + 40];
        (void)snprintf(text, sizeof text, "%s: CMD runs without a cap",
                       s->result.error.text);
        note(s, text);
        s->result.error = (uw_error){""};
        s->o.caps = SESSION_MEASURE;
    }
    return boards_known(s);
}

/* Only boards without other users' processes are capped. */
static int check_foreign(struct session *s)
{
    s->stage = STAGE_CHECK;
    for (size_t i = 0; i < s->n; i++) {
        if (s->use[i] && board_procs(s->all[i], on_foreign, s) == 0)
            s->asking++;
    }
    return s->asking == 0 ? boards_known(s) : 0;
}

static int after_boards(struct session *s)
{
    if (s->named && s->o.caps != SESSION_MEASURE)
        return check_foreign(s);
    return boards_known(s);
}

static int on_cpu(struct boards *set, int r, const uw_error *err, void *user)
{
    struct session *s = user;
    (void)err;

    for (size_t i = 0; r == 0 && i < boards_count(set) && s->n_cpu < CPU_MAX; i++) {
        if (board_view(boards_at(set, i))->first.has & GPU_HAS_ENERGY)
            s->domain[s->n_cpu++] = boards_at(set, i);
    }
    return after_boards(s);
}

/* Opens the processor's counters; the session works without them. */
static int open_cpu(struct session *s)
{
    struct gpu_open_opts opts = {.source = s->o.gpu.source, .clock = s->o.gpu.clock};

    if (s->o.cpu && !board_view(s->all[0])->info->simulated &&
        boards_open(s->o.loop, s->o.cpu, &opts, on_cpu, s, &s->cpu, NULL) == 0)
        return 0;
    return after_boards(s);
}

static int on_boards(struct boards *set, int r, const uw_error *err, void *user)
{
    struct session *s = user;

    if (r != 0) {
        if (err && err->text[0])
            s->result.error = *err;
        else
            (void)fail(&s->result.error, r, "no boards here");
        return session_end(s, SESSION_BEFORE);
    }
    s->n = boards_count(set);
    for (size_t i = 0; i < s->n; i++)
        s->all[i] = boards_at(set, i);
    r = selection_named(set, s->o.gpus, s->o.visible, s->use, &s->result.error);
    if (r < 0)
        return session_end(s, SESSION_USAGE);
    if (r == SELECTION_E_UNSURE)
        note(s, s->result.error.text);
    s->named = r != SELECTION_E_OPEN;
    if (s->n == 0) {
        (void)fail(&s->result.error, 0, "the driver knows no board");
        return session_end(s, SESSION_BEFORE);
    }
    return open_cpu(s);
}

/* ---- which boards CMD uses, where none were named ---- */

static int found_enough(struct session *s)
{
    size_t used = 0;

    for (size_t i = 0; i < s->n; i++)
        used += s->use[i];
    if (used == 0 || s->late_hold || s->quiet_looks < SETTLED_LOOKS ||
        s->o.caps == SESSION_MEASURE)
        return 0;
    s->late_hold = true;
    s->probing = false;
    return hold_used(s);
}

static int on_look(struct board *b, int r, const struct gpu_proc *procs, size_t n,
                   const uw_error *err, void *user)
{
    struct session *s = user;
    size_t i = board_view(b)->at;
    bool ours = false, foreign = false;
    (void)err;

    s->asking--;
    if (r == 0 && s->stage == STAGE_RUN && !s->late_hold) {
        for (size_t k = 0; k < n; k++)
            ours |= job_owns(s->job, procs[k].pid);
        foreign = !loop_is_virtual(s->o.loop) && selection_foreign(procs, n, s->o.uid);
        if (ours && foreign && !s->asked_foreign && s->o.caps != SESSION_MEASURE) {
            s->asked_foreign = true;
            note(
                s,
                "another user's process shares a board of CMD: that board is not capped");
        }
        bool take = ours && (!foreign || s->o.caps == SESSION_MEASURE);
        if (take && !s->use[i]) {
            s->use[i] = true;
            s->quiet_looks = 0;
        }
    }
    return s->asking == 0 && s->stage == STAGE_RUN ? found_enough(s) : 0;
}

static int look(struct session *s)
{
    if (s->asking > 0 || s->late_hold)
        return 0;
    s->quiet_looks++;
    for (size_t i = 0; i < s->n; i++)
        if (board_procs(s->all[i], on_look, s) == 0)
            s->asking++;
    return 0;
}

enum { NO_PROGRESS_S = 30 }; /* start-up time before the first reported step */

static int session_on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct session *s = user;
    (void)timer;

    if (s->stage == STAGE_FEED)
        return sampler_fed(s->sampler, now_ns) ? start_job(s) : 0;
    if (s->stage != STAGE_RUN)
        return 0;
    if (s->tuner) {
        int r = tuner_on_stopped(s->tuner, job_stopped(s->job));
        if (r < 0)
            return r;
    }
    uint64_t since = s->seen_ns > s->result.begin_ns ? s->seen_ns : s->result.begin_ns;
    if (s->tuner && !s->silent && tuner_waits(s->tuner) &&
        s_between(since, now_ns) > NO_PROGRESS_S) {
        s->silent = true;
        return without_progress(s);
    }
    return s->named ? 0 : look(s);
}

/* ---- life ---- */

int session_start(const struct session_opts *opts, session_done_fn done,
                  struct session **ret, uw_error *err)
{
    auto_(session_free) struct session *s = calloc(1, sizeof *s);

    if (!s)
        return fail(err, -ENOMEM, "out of memory");
    s->o = *opts;
    s->done = done;
    int r =
        loop_timer_new(opts->loop, UINT64_MAX, 0, session_on_timer, s, &s->timer, err);
    if (r >= 0)
        r = boards_open(opts->loop, opts->backend, &opts->gpu, on_boards, s, &s->boards,
                        err);
    if (r < 0)
        return r;
    *ret = take(s);
    return 0;
}

void session_free(struct session *s)
{
    if (!s)
        return;
    tuner_free(s->tuner);
    progress_period_free(s->period);
    energy_sum_free(s->meters);
    job_free(s->job);
    sampler_free(s->sampler);
    sampler_free(s->cpu_sampler);
    boards_free(s->cpu);
    actuator_free(s->act);
    boards_free(s->boards);
    final_read_free(s->reread);
    loop_timer_free(s->timer);
    free(s);
}

/* Ends the wait for releases and for the final reading. */
static void stop_waiting(struct session *s)
{
    bool open = s->stage < STAGE_ENERGY;

    if (s->stage >= STAGE_REREAD)
        return;
    s->stage = STAGE_REREAD;
    if (s->tuner && (open || !is_sure(tuner_report(s->tuner))))
        tuner_verified(s->tuner, false,
                       "could not be verified: interrupted before it was read");
}

void session_signal(struct session *s, int signo, bool told)
{
    if (s->job && job_running(s->job)) {
        if (!told)
            (void)job_kill(s->job, signo);
        return;
    }
    if ((signo == SIGINT || signo == SIGTERM) &&
        (++s->interrupts > 1 || s->stage < STAGE_RUN)) {
        enum session_end end = s->stage < STAGE_RUN ? SESSION_BEFORE : SESSION_RAN;
        (void)fail(&s->result.error, 0, "interrupted");
        if (end == SESSION_RAN)
            stop_waiting(s);
        (void)session_end(s, end);
        loop_stop(s->o.loop, 0);
    }
}

void session_now(struct session *s, struct session_now *ret)
{
    *ret = (struct session_now){.running = s->stage == STAGE_RUN};
    if (s->stage < STAGE_RUN) {
        (void)snprintf(ret->status, sizeof ret->status, "starting");
        return;
    }
    ret->time_s = s_between(s->result.begin_ns, loop_now_ns(s->o.loop));
    ret->steps = s->job ? job_steps(s->job)->mark.steps : 0;
    ret->step_s = s->job ? job_steps(s->job)->step_s : 0;
    for (size_t i = 0; i < s->n && s->sampler; i++) {
        const struct sampler_now *now = sampler_board(s->sampler, i);
        if (s->use[i])
            ret->power_w +=
                now->last.has & GPU_HAS_INSTANT ? now->last.instant_w : now->last.power_w;
    }
    if (s->tuner)
        (void)tuner_status(s->tuner, ret->status, sizeof ret->status);
    else
        (void)snprintf(ret->status, sizeof ret->status, "measures");
}
