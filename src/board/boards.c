#include "board/boards.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "gpu/select.h"

struct board {
    struct boards *set;
    struct gpu_dev *dev;
    struct loop_worker *worker;
    uint64_t calls; /* submitted calls; for backends that do not count driver calls */
    struct board_view view;
};

/* A boards_attach() under way; runs in the opener's worker. */
struct attaching {
    boards_attach_fn fn; /* NULL: none under way */
    void *user;
    uint64_t away;            /* mask of positions in the set */
    struct attach_call *call; /* waits for the end of calls under way; NULL: submitted */
    struct call *first, **last; /* calls that wait for the end of attaching */
};

struct boards {
    struct loop *loop;
    const struct gpu_backend *backend;
    uint64_t away;         /* mask of the backend's devices not attached at the open */
    boards_ready_fn ready; /* NULL: the set is being freed */
    void *user;
    struct loop_worker *opener;
    void *lib;
    struct board *board;
    size_t n;
    size_t waiting;   /* boards that have not answered CALL_FIRST */
    bool abandoned;   /* a thread may still run in the driver while the set is freed */
    size_t under_way; /* calls in the workers, without those that hang */
    struct attaching attaching;
    char mark[64];
};

/* ---- one call of one board ---- */

enum call_kind { CALL_FIRST, CALL_SAMPLE, CALL_PROCS, CALL_USE };

struct call {
    struct board *board;
    const struct gpu_backend *backend;
    struct gpu_dev *dev;
    enum call_kind kind;
    union {
        board_sample_fn sample;
        board_procs_fn procs;
        board_use_fn use;
    } fn;
    void *user;
    board_sampled_fn sampled; /* or NULL */
    struct gpu_limits limits;
    bool has_limits;
    struct gpu_proc *procs;
    struct gpu_use *use;
    size_t n_procs; /* number of procs or use */
    uw_error err;
    struct call *next; /* in attaching.first */
    size_t n;          /* readings */
    size_t n_read;     /* … made by the thread */
    size_t n_told;     /* … passed to fn.sample */
    struct reading {
        struct board_round round;
        struct gpu_sample sample;
    } reading[];
};

static void attach_next(struct boards *set, const struct board *hung);

static void call_free(struct call *c)
{
    if (!c)
        return;
    free(c->procs);
    free(c->use);
    free(c);
}

static struct call *call_new(enum call_kind kind, const struct board_round *round,
                             size_t n)
{
    struct call *c = calloc(1, sizeof *c + n * sizeof *c->reading);

    if (!c)
        return NULL;
    c->kind = kind;
    c->n = n;
    for (size_t i = 0; i < n; i++)
        c->reading[i].round = round[i];
    return c;
}

/* Runs in the worker's thread. */
static int call_read(struct call *c)
{
    struct reading *g = &c->reading[c->n_read];
    int r = c->backend->sample(c->dev, g->round.want, &g->sample, &c->err);

    c->n_read += r >= 0;
    return r;
}

static uint64_t call_again(struct loop *loop, void *work)
{
    const struct call *c = work;
    (void)loop;

    return c->n_read < c->n ? c->reading[c->n_read].round.at_ns : 0;
}

/* Runs in the worker's thread: may touch only the call and the device. */
static int call_work(struct loop *loop, void *work)
{
    struct call *c = work;
    (void)loop;

    switch (c->kind) {
    case CALL_FIRST:
        if (c->backend->limits)
            c->has_limits = c->backend->limits(c->dev, &c->limits, &c->err) == 0;
        return call_read(c);
    case CALL_SAMPLE:
        return call_read(c);
    case CALL_PROCS:
        if (!c->backend->procs)
            return fail(&c->err, -ENOTSUP, "%s does not list processes",
                        c->backend->name);
        return c->backend->procs(c->dev, c->procs, &c->n_procs, &c->err);
    case CALL_USE:
        if (!c->backend->use)
            return fail(&c->err, -ENOTSUP, "%s does not report the use of processes",
                        c->backend->name);
        return c->backend->use(c->dev, c->use, &c->n_procs, &c->err);
    }
    return -EINVAL;
}

static int boards_first_done(struct boards *set)
{
    if (--set->waiting > 0 || !set->ready)
        return 0;
    return set->ready(set, 0, NULL, set->user);
}

/* Stores the error text for r. */
static void explain(struct call *c, int r, uw_error *ret)
{
    *ret = (uw_error){{0}};
    if (r == -ETIMEDOUT)
        (void)fail(ret, r, "no answer from the driver within %llu s",
                   BOARD_DEADLINE_NS / 1000000000ull);
    else if (r == -EBUSY)
        (void)fail(ret, r, "an earlier call hangs in the driver");
    else if (r == -ECANCELED)
        (void)fail(ret, r, "canceled because the boards are being closed");
    else if (r < 0)
        *ret = c->err;
}

static int call_first_done(struct call *c, int r)
{
    struct board *b = c->board;
    struct boards *set = b->set;

    explain(c, r, &b->view.error);
    bool answered = r != -ETIMEDOUT && r != -EBUSY && r != -ECANCELED;
    if (answered) {
        b->view.has_limits = c->has_limits;
        b->view.limits = c->limits;
        b->view.has_first = r == 0;
        b->view.first = c->reading[0].sample;
    }
    return r == -ECANCELED ? 0 : boards_first_done(set);
}

static int call_part(struct loop *loop, void *work, int r)
{
    struct call *c = work;
    static const uw_error none;
    (void)loop;

    return c->fn.sample(c->board, r, &c->reading[c->n_told++].sample, &none, c->user);
}

static int call_sampled(struct call *c, int r, const uw_error *err)
{
    int result = 0;

    /* After a timeout the thread may still increment n_read. */
    while (r != -ETIMEDOUT && r != -EBUSY && c->n_told < c->n_read && result >= 0)
        result = call_part(NULL, c, 0);
    if (r < 0 && result >= 0)
        result = c->fn.sample(c->board, r, NULL, err, c->user);
    if (c->n_told > 1)
        c->board->calls += c->n_told - 1;
    if (c->sampled)
        c->sampled(c->board, r, c->n_told, c->user);
    return result;
}

static int call_done(struct loop *loop, void *work, int r)
{
    struct call *c = work;
    uw_error err;
    int result = 0;
    (void)loop;

    c->board->set->under_way--;
    attach_next(c->board->set, r == -ETIMEDOUT ? c->board : NULL);
    explain(c, r, &err);
    c->board->set->abandoned |= r == -ETIMEDOUT && !c->board->set->ready;
    switch (c->kind) {
    case CALL_FIRST:
        result = call_first_done(c, r);
        break;
    case CALL_SAMPLE:
        result = call_sampled(c, r, &err);
        break;
    case CALL_PROCS:
        result =
            c->fn.procs(c->board, r, c->procs, r == 0 ? c->n_procs : 0, &err, c->user);
        break;
    case CALL_USE:
        result = c->fn.use(c->board, r, c->use, r == 0 ? c->n_procs : 0, &err, c->user);
        break;
    }
    if (r != -ETIMEDOUT) /* else the thread still uses *c, call_late() frees it */
        call_free(c);
    return result;
}

static void call_late(struct loop *loop, void *work, int r)
{
    (void)loop;
    (void)r;
    call_free(work);
}

/* Submits the call to its board's worker. */
static int call_start(struct call *c)
{
    struct board *b = c->board;
    struct loop_work work = {
        .fn = call_work,
        .done = call_done,
        .late = call_late,
        .work = c,
        .deadline_ns = BOARD_DEADLINE_NS,
        .at_ns = c->kind == CALL_SAMPLE ? c->reading[0].round.at_ns : 0,
        .again = c->n > 1 ? call_again : NULL,
        .part = call_part,
    };
    int r = loop_worker_submit(b->worker, &work);
    if (r == 0) {
        b->calls++;
        b->set->under_way++;
    }
    return r;
}

static int call_submit(struct boards *set, struct board *b, struct call *c)
{
    struct attaching *m = &set->attaching;

    c->board = b;
    c->backend = set->backend;
    c->dev = b->dev;
    if (m->fn) {
        *m->last = c;
        m->last = &c->next;
        return 0;
    }
    int r = call_start(c);
    if (r < 0)
        call_free(c);
    return r;
}

int board_sample(struct board *b, uint32_t want, board_sample_fn fn, void *user)
{
    return board_sample_at(b, &(struct board_round){.want = want}, 1, fn, NULL, user);
}

int board_sample_at(struct board *b, const struct board_round *round, size_t n,
                    board_sample_fn fn, board_sampled_fn sampled, void *user)
{
    struct call *c = call_new(CALL_SAMPLE, round, n);
    if (!c)
        return -ENOMEM;
    c->fn.sample = fn;
    c->sampled = sampled;
    c->user = user;
    return call_submit(b->set, b, c);
}

bool board_withdraw(struct board *b)
{
    struct loop_work work;

    if (!loop_worker_withdraw(b->worker, &work))
        return false;
    b->calls--;
    b->set->under_way--;
    call_free(work.work);
    attach_next(b->set, NULL);
    return true;
}

int board_procs(struct board *b, board_procs_fn fn, void *user)
{
    struct call *c = call_new(CALL_PROCS, NULL, 0);
    if (!c)
        return -ENOMEM;
    c->procs = calloc(BOARD_PROCS_MAX, sizeof *c->procs);
    if (!c->procs) {
        call_free(c);
        return -ENOMEM;
    }
    c->fn.procs = fn;
    c->user = user;
    return call_submit(b->set, b, c);
}

int board_use(struct board *b, board_use_fn fn, void *user)
{
    struct call *c = call_new(CALL_USE, NULL, 0);
    if (!c)
        return -ENOMEM;
    c->use = calloc(BOARD_PROCS_MAX, sizeof *c->use);
    if (!c->use) {
        call_free(c);
        return -ENOMEM;
    }
    c->fn.use = fn;
    c->user = user;
    return call_submit(b->set, b, c);
}

uint64_t board_calls(const struct board *b)
{
    const struct gpu_backend *backend = b->set->backend;

    return backend->calls ? backend->calls(b->dev) : b->calls;
}

void board_sensors(const struct board *b, struct sensor_model *ret)
{
    b->set->backend->sensors(b->dev, ret);
}

/* ---- detaching of boards ---- */

struct attach_call {
    struct boards *set;
    const struct gpu_backend *backend;
    void *lib;
    uint64_t away; /* mask of the backend's devices */
    int r;         /* < 0: a call hangs, do not call the driver */
    uw_error err;
};

static int attach_work(struct loop *loop, void *work)
{
    struct attach_call *m = work;
    (void)loop;

    if (m->r < 0)
        return m->r;
    return m->backend->attach ? m->backend->attach(m->lib, m->away, &m->err) : 0;
}

/* Completes a call that waited for the end of attaching and cannot start. */
static int call_refuse(struct call *c, int r)
{
    c->board->set->under_way++; /* call_done() decrements it */
    return call_done(c->board->set->loop, c, r);
}

/* Ends attaching: calls fn, then starts the calls that have waited. */
static int attach_end(struct boards *set, int r, const uw_error *err)
{
    struct attaching m = set->attaching;
    bool stands = r == 0 || r == -EBUSY || r == -ENOTSUP;

    set->attaching = (struct attaching){.fn = NULL};
    for (size_t i = 0; r == 0 && i < set->n; i++)
        set->board[i].view.away = m.away >> i & 1;
    int result = m.fn(set, r, err, m.user);
    while (m.first) {
        struct call *c = m.first;
        m.first = c->next;
        int failed = stands ? call_start(c) : fail(&c->err, -EIO, "%s", err->text);
        if (failed < 0)
            failed = call_refuse(c, failed);
        result = failed < 0 ? failed : result;
    }
    return result;
}

static int attach_done(struct loop *loop, void *work, int r)
{
    struct attach_call *m = work;
    struct boards *set = m->set;
    uw_error err = m->err;
    (void)loop;

    if (r == -ETIMEDOUT)
        (void)fail(&err, r, "the driver hangs while it detaches a board");
    else /* after a timeout the thread still uses *m, attach_late() frees it */
        free(m);
    if (r == -ECANCELED || !set->ready)
        return 0;
    return attach_end(set, r, &err);
}

static void attach_late(struct loop *loop, void *work, int r)
{
    (void)loop;
    (void)r;
    free(work);
}

static void attach_start(struct boards *set)
{
    struct loop_work work = {
        .fn = attach_work,
        .done = attach_done,
        .late = attach_late,
        .work = take(set->attaching.call),
        .deadline_ns = 10 * BOARD_DEADLINE_NS,
    };

    (void)loop_worker_submit(set->opener, &work); /* cannot fail: the worker is idle */
}

static int name_hung(const struct board *b, uw_error *err)
{
    return fail(err, -EBUSY, "GPU %u (%s): a call hangs in the driver",
                b->view.info->index, b->view.info->uuid);
}

/* Starts attaching if no call is under way any more, or if a call hangs on the board hung
 * (which makes it fail).
 */
static void attach_next(struct boards *set, const struct board *hung)
{
    struct attaching *m = &set->attaching;

    if (!m->fn || !m->call || !set->ready)
        return;
    if (hung)
        m->call->r = name_hung(hung, &m->call->err);
    if (hung || set->under_way == 0)
        attach_start(set);
}

int boards_hang(const struct boards *set, uw_error *err)
{
    for (size_t i = 0; i < set->n; i++)
        if (loop_worker_hangs(set->board[i].worker))
            return name_hung(&set->board[i], err);
    return 0;
}

int boards_attach(struct boards *set, uint64_t away, boards_attach_fn fn, void *user,
                  uw_error *err)
{
    struct attaching *m = &set->attaching;

    if (m->fn)
        return fail(err, -EBUSY, "another board is being detached");
    int r = boards_hang(set, err);
    if (r < 0)
        return r;
    struct attach_call *call = calloc(1, sizeof *call);
    if (!call)
        return fail(err, -ENOMEM, "out of memory to detach a board");
    *call = (struct attach_call){.set = set, .backend = set->backend, .lib = set->lib};
    for (size_t i = 0; i < set->n; i++)
        if (away >> i & 1)
            call->away |= 1ull << set->board[i].view.info->index;
    *m = (struct attaching){
        .fn = fn, .user = user, .away = away, .call = call, .last = &m->first};
    for (size_t i = 0; i < set->n; i++)
        loop_worker_hasten(set->board[i].worker);
    attach_next(set, NULL);
    return 0;
}

int boards_all(const struct boards *set, struct gpu_info **ret, size_t *ret_n)
{
    size_t n = set->lib ? set->backend->count(set->lib) : 0;
    struct gpu_info *info = calloc(n ? n : 1, sizeof *info);

    if (!info)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        info[i] = *set->backend->info(set->backend->at(set->lib, i));
    *ret = info;
    *ret_n = n;
    return 0;
}

/* ---- the set ---- */

struct opening {
    struct boards *set;
    const struct gpu_backend *backend;
    struct gpu_open_opts opts;
    void *lib;
    char mark[64];
    uw_error err;
};

static int open_work(struct loop *loop, void *work)
{
    struct opening *o = work;
    (void)loop;

    int r = o->backend->open(&o->opts, &o->lib, &o->err);
    if (r == 0 && o->backend->driver_mark &&
        o->backend->driver_mark(o->lib, NULL, o->mark, sizeof o->mark, NULL) < 0)
        o->mark[0] = '\0';
    return r;
}

static int boards_ask_first(struct boards *set)
{
    enum {
        FIRST = GPU_HAS_POWER | GPU_HAS_INSTANT | GPU_HAS_AVERAGE | GPU_HAS_ENERGY |
                GPU_HAS_ENFORCED | GPU_HAS_REQUESTED | GPU_HAS_UTIL | GPU_HAS_TEMP |
                GPU_HAS_CLOCKS | GPU_HAS_REASONS
    };

    set->waiting = set->n + 1;
    for (size_t i = 0; i < set->n; i++) {
        struct call *c = call_new(CALL_FIRST, &(struct board_round){.want = FIRST}, 1);
        if (!c)
            return -ENOMEM;
        int r = call_submit(set, &set->board[i], c);
        if (r < 0)
            return r;
    }
    return boards_first_done(set);
}

static int boards_fill(struct boards *set, uw_error *err)
{
    size_t n = set->backend->count(set->lib);

    if (n > BOARDS_MAX)
        return fail(err, -E2BIG, "%zu boards: more than %d", n, BOARDS_MAX);
    set->board = calloc(n ? n : 1, sizeof *set->board);
    if (!set->board)
        return fail(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) {
        struct board *b = &set->board[i];
        char name[16];

        (void)snprintf(name, sizeof name, "gpu%zu", i);
        int r = loop_worker_new_shared(set->loop, name, &b->worker, err);
        if (r < 0)
            return r;
        b->set = set;
        b->dev = set->backend->at(set->lib, i);
        b->view.at = i;
        b->view.info = set->backend->info(b->dev);
        b->view.away = set->away >> i & 1;
        set->n = i + 1;
    }
    return 0;
}

static int open_done(struct loop *loop, void *work, int r)
{
    struct opening *o = work;
    struct boards *set = o->set;
    uw_error err = o->err;
    (void)loop;

    if (r == -ETIMEDOUT && !set->ready)
        return 0;
    if (r == -ETIMEDOUT) { /* the thread still uses *o */
        (void)fail(&err, r, "the driver does not respond");
        return set->ready(set, r, &err, set->user);
    }
    if (r == -ECANCELED || !set->ready) {
        if (r == 0)
            o->backend->close(o->lib);
        free(o);
        return 0;
    }
    if (r == 0) {
        set->lib = o->lib;
        (void)snprintf(set->mark, sizeof set->mark, "%s", o->mark);
        r = boards_fill(set, &err);
    }
    free(o);
    if (r == 0) {
        r = boards_ask_first(set);
        if (r < 0)
            return fail(NULL, r, "out of memory");
        return 0;
    }
    return set->ready(set, r, &err, set->user);
}

static void open_late(struct loop *loop, void *work, int r)
{
    struct opening *o = work;
    (void)loop;

    if (r == 0)
        o->backend->close(o->lib);
    free(o);
}

int boards_open(struct loop *loop, const struct gpu_backend *backend,
                const struct gpu_open_opts *opts, boards_ready_fn fn, void *user,
                struct boards **ret, uw_error *err)
{
    auto_(boards_free) struct boards *set = calloc(1, sizeof *set);
    struct opening *o = calloc(1, sizeof *o);

    if (!set || !o) {
        free(o);
        return fail(err, -ENOMEM, "out of memory");
    }
    set->loop = loop;
    set->backend = backend;
    set->away = backend->attach && opts->n_known ? opts->away : 0;
    set->ready = fn;
    set->user = user;
    *o = (struct opening){.set = set, .backend = backend, .opts = *opts};
    int r = loop_worker_new(loop, "gpu-open", &set->opener, err);
    if (r < 0) {
        free(o);
        return r;
    }
    struct loop_work work = {
        .fn = open_work,
        .done = open_done,
        .late = open_late,
        .work = o,
        .deadline_ns = 10 * BOARD_DEADLINE_NS,
    };
    r = loop_worker_submit(set->opener, &work);
    if (r < 0) {
        free(o);
        return fail(err, r, "cannot start the driver's worker");
    }
    *ret = take(set);
    return 0;
}

void boards_free(struct boards *set)
{
    if (!set)
        return;
    bool hangs = false;
    set->ready = NULL; /* completions that come later are ignored */
    free(set->attaching.call);
    while (set->attaching.first) {
        struct call *c = set->attaching.first;
        set->attaching.first = c->next;
        (void)call_refuse(c, -ECANCELED);
    }
    for (size_t i = 0; i < set->n; i++) {
        hangs |= loop_worker_hangs(set->board[i].worker);
        loop_worker_free(set->board[i].worker);
    }
    hangs |= loop_worker_hangs(set->opener);
    loop_worker_free(set->opener);
    if (set->lib && !hangs && !set->abandoned) /* a thread inside the library needs it */
        set->backend->close(set->lib);
    free(set->board);
    free(set);
}

int boards_keep(struct boards *set, const char *list, uw_error *err)
{
    const struct gpu_info *info[BOARDS_MAX] = {NULL};
    struct selection chosen;
    bool keep[BOARDS_MAX] = {false};

    for (size_t i = 0; i < set->n; i++)
        info[i] = set->board[i].view.info;
    int r = select_list(list, info, set->n, &chosen, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < chosen.n; i++)
        keep[chosen.at[i]] = true;
    boards_keep_these(set, keep);
    return 0;
}

void boards_keep_these(struct boards *set, const bool *keep)
{
    size_t n = 0;

    for (size_t i = 0; i < set->n; i++) {
        if (!keep[i]) {
            loop_worker_free(set->board[i].worker);
            continue;
        }
        set->board[n] = set->board[i];
        set->board[n].view.at = n;
        n++;
    }
    set->n = n;
}

size_t boards_count(const struct boards *set)
{
    return set->n;
}

struct board *boards_at(struct boards *set, size_t i)
{
    return i < set->n ? &set->board[i] : NULL;
}

int boards_check_cap(struct boards *set, const struct cap_arg *cap, uw_error *err)
{
    const struct board_view *one = NULL;
    char text[WATTS_TEXT], hint[PERCENT_HINT];
    uint32_t mw = cap->mw;

    for (size_t i = 0; set && i < boards_count(set); i++) {
        one = board_view(boards_at(set, i));
        if (!one->has_limits || (mw >= one->limits.min_mw && mw <= one->limits.max_mw))
            return 0;
    }
    if (!one)
        return 0;
    return fail(err, -ERANGE,
                "%s is outside the range of every board; GPU %u takes %g..%g W%s",
                watts_typed(cap->typed, mw, text), one->info->index,
                w_of_mw(one->limits.min_mw), w_of_mw(one->limits.max_mw),
                percent_hint(cap->typed, mw, one->limits.min_mw, hint));
}

struct board_view *board_view(struct board *b)
{
    return &b->view;
}

struct board *boards_find(struct boards *set, const char *uuid)
{
    for (size_t i = 0; i < set->n; i++)
        if (strcmp(set->board[i].view.info->uuid, uuid) == 0)
            return &set->board[i];
    return NULL;
}

const char *boards_driver_mark(const struct boards *set)
{
    return set->mark;
}

bool boards_outdated(const struct boards *set)
{
    char mark[sizeof set->mark];

    if (!set->lib || !set->mark[0])
        return false;
    return set->backend->driver_mark(set->lib, NULL, mark, sizeof mark, NULL) < 0 ||
           strcmp(mark, set->mark) != 0;
}

void *boards_lib(const struct boards *set)
{
    return set->lib;
}
