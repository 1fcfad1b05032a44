/* Registration of jobs, and which boards they get.  If run jobs of several users name a
 * board, the user whose processes compute there has it; no program is delayed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "jobs/roster-inside.h"

/* ---- boards that several users name ---- */

static bool is_foreign(const struct seen *p, uid_t uid)
{
    return p->compute && (!p->known || p->uid != uid);
}

static bool has(const struct roster_job *job, size_t board)
{
    const struct job_entry *e = &job->e;

    return !job->over && ((e->source == JOB_FOUND ? e->boards : e->given) >> board & 1);
}

/* Returns whether another user than uid has the board, through a job (*ret_job) or, if
 * that is NULL, a computing process (*ret_pid).
 */
static bool roster_board_held(const struct roster_board *s, uid_t uid,
                              const struct job_entry **ret_job, pid_t *ret_pid)
{
    const struct roster *r = s->roster;

    *ret_job = NULL;
    for (size_t i = 0; i < r->n; i++)
        if (r->job[i]->e.uid != uid && has(r->job[i], s->at)) {
            *ret_job = &r->job[i]->e;
            return true;
        }
    for (size_t i = 0; i < s->n; i++)
        if (is_foreign(&s->proc[i], uid)) {
            *ret_pid = s->proc[i].pid;
            return true;
        }
    return false;
}

static bool computes(const struct roster_board *s, const struct roster_job *job)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->proc[i].compute && s->proc[i].job == job->e.id)
            return true;
    return false;
}

/* Whether a waiting run job may get the board: no other user computes there, and no other
 * user's job has the board, or only run jobs that do not compute there while this job
 * does.  A board of a scheduler's or an administrator's job stays with that job.
 */
static bool may_have(const struct roster_board *s, const struct roster_job *job)
{
    const struct roster *r = s->roster;
    bool named = false;

    for (size_t i = 0; i < s->n; i++)
        if (is_foreign(&s->proc[i], job->e.uid))
            return false;
    for (size_t i = 0; i < r->n; i++) {
        const struct roster_job *other = r->job[i];
        if (other->e.uid == job->e.uid || !has(other, s->at))
            continue;
        if (other->e.source != JOB_RUN || other->e.firm)
            return false;
        named = true;
    }
    return !named || computes(s, job);
}

static void move(struct roster_job *s, size_t board, bool to)
{
    uint64_t bit = 1ull << board;

    s->e.given = to ? s->e.given | bit : s->e.given & ~bit;
    s->e.waits = to ? s->e.waits & ~bit : s->e.waits | bit;
    s->e.boards = to ? s->e.boards | bit : s->e.boards & ~bit;
    s->changed = true;
}

static void pass(struct roster_board *s, struct roster_job *to)
{
    struct roster *r = s->roster;
    const struct job_entry *from = NULL;

    roster_board_turn(s);
    for (size_t i = 0; i < r->n; i++) {
        struct roster_job *other = r->job[i];
        if (other->e.uid == to->e.uid || !has(other, s->at))
            continue;
        move(other, s->at, false);
        from = &other->e;
    }
    move(to, s->at, true);
    roster_board_users(s);
    if (r->opts.on_pass)
        r->opts.on_pass(s->at, from, &to->e, r->opts.user);
}

/* Sets e.held, for display: who has the first of the boards that the job waits for. */
static void say_held(const struct roster *r, struct roster_job *s)
{
    char text[sizeof s->e.held] = "", more[24] = "";
    const struct job_entry *job = NULL;
    pid_t pid = 0;

    for (size_t i = 0; i < r->n_boards && !text[0]; i++) {
        unsigned gpu = board_view(r->board[i]->board)->info->index;
        if (!(s->e.waits >> i & 1) ||
            !roster_board_held(r->board[i], s->e.uid, &job, &pid))
            continue;
        if (s->e.waits & (s->e.waits - 1))
            (void)snprintf(more, sizeof more, ", and others too");
        /* Without the other job's name, which is private to its user. */
        if (job)
            (void)snprintf(text, sizeof text, "GPU %u belongs to job %llu of %s%s", gpu,
                           (unsigned long long)job->id,
                           job->user[0] ? job->user : "another user", more);
        else
            (void)snprintf(text, sizeof text,
                           "GPU %u: process %ld of another user is there%s", gpu,
                           (long)pid, more);
    }
    if (strcmp(text, s->e.held) == 0)
        return;
    memcpy(s->e.held, text, sizeof s->e.held);
    s->changed = true;
}

void roster_share(struct roster *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct roster_job *s = r->job[i];
        for (size_t k = 0; k < r->n_boards && s->e.waits && !s->over; k++)
            if ((s->e.waits >> k & 1) && may_have(r->board[k], s))
                pass(r->board[k], s);
    }
    for (size_t i = 0; i < r->n; i++)
        if (!r->job[i]->over && (r->job[i]->e.waits || r->job[i]->e.held[0]))
            say_held(r, r->job[i]);
}

/* ---- jobs that begin ---- */

static int check_text(const struct roster_register *reg, uw_error *err)
{
    if (reg->source != JOB_RUN && reg->source != JOB_REGISTERED &&
        (reg->source != JOB_FOUND || !reg->id))
        return fail(err, -EINVAL, "job: source %d cannot be registered",
                    (int)reg->source);
    if (!reg->name || !reg->name[0] || strlen(reg->name) >= JOB_NAME)
        return fail(err, -EINVAL, "job: the name must have 1 to %d bytes", JOB_NAME - 1);
    if (reg->source == JOB_RUN && cgroup_is_name(reg->name))
        return fail(err, -EINVAL,
                    "job: '%s' has a scheduler's prefix; 'slurm:', 'k8s:', 'docker:' and "
                    "'podman:' are reserved",
                    reg->name);
    if (reg->n_labels > LABELS_MAX)
        return fail(err, -E2BIG, "job: %zu labels: more than %d", reg->n_labels,
                    LABELS_MAX);
    return 0;
}

static int check_boards(const struct roster *r, const struct roster_register *reg,
                        uw_error *err)
{
    if (r->n_boards < 64 && reg->boards >> r->n_boards)
        return fail(err, -EINVAL, "job %s: a board beyond the %zu of this node",
                    reg->name, r->n_boards);
    for (size_t i = 0; i < r->n; i++) {
        const struct job_entry *e = &r->job[i]->e;
        uint64_t both = e->given & reg->boards;
        if (e->id == reg->id && !r->job[i]->over)
            return fail(err, -EEXIST, "job %llu exists already",
                        (unsigned long long)e->id);
        if (r->job[i]->over || e->uid == reg->uid || both == 0 ||
            reg->source != JOB_REGISTERED || e->source != JOB_REGISTERED)
            continue;
        /* Without the other job's name, which is private to its user. */
        return fail(err, -EBUSY, "GPU %d belongs to job %llu of %s",
                    __builtin_ctzll(both), (unsigned long long)e->id,
                    e->user[0] ? e->user : "another user");
    }
    return 0;
}

/* Boards that a run job names and other users have: the job waits for them. */
static uint64_t held_of(const struct roster *r, const struct roster_register *reg)
{
    const struct job_entry *job = NULL;
    uint64_t held = 0;
    pid_t pid = 0;

    for (size_t i = 0; i < r->n_boards && reg->source == JOB_RUN; i++)
        if ((reg->boards >> i & 1) &&
            roster_board_held(r->board[i], reg->uid, &job, &pid))
            held |= 1ull << i;
    return held;
}

/* Finds a process that the found job had before the restart; *ret: its facts. */
static int check_found(const struct roster *r, const struct roster_register *reg,
                       struct proc_facts *ret, uw_error *err)
{
    if (r->opts.no_found)
        return fail(err, -ENOTSUP, "the search for unregistered jobs is off");
    for (size_t i = 0; i < reg->n_procs; i++) {
        if (!roster_is_there(r, &reg->proc[i], reg->uid, ret))
            continue;
        struct job_key key = roster_key(ret);
        const struct roster_job *same = roster_found(r, &key);
        return same ? fail(err, -EEXIST, "the job has been found again as job %llu",
                           (unsigned long long)same->e.id)
                    : 0;
    }
    return fail(err, -ESRCH, "none of the job's processes exists any more");
}

/* Checks the job's first process.  *ret_fd: its pidfd; -1: none, poll roster_alive(). */
static int check_process(const struct roster *r, const struct roster_register *reg,
                         struct proc_facts *ret, int *ret_fd, uw_error *err)
{
    int result;

    *ret_fd = -1;
    if (reg->source == JOB_FOUND)
        return check_found(r, reg, ret, err);
    if (reg->pid == 0)
        return 0;
    if (!r->opts.read && !loop_is_virtual(r->opts.loop)) {
        result = proc_open_pidfd(r->opts.proc, reg->pid, reg->pid_start, reg->uid, ret);
        if (result >= 0) {
            *ret_fd = result;
            return 0;
        }
    } else {
        result = roster_read(r, reg->pid, ret);
        if (result == 0 && reg->pid_start && ret->start != reg->pid_start)
            result = -ESRCH;
        if (result == 0 && ret->uid != reg->uid)
            result = -EPERM;
    }
    if (result == -EPERM)
        return fail(err, result, "process %ld is not user %ld's", (long)reg->pid,
                    (long)reg->uid);
    if (result < 0)
        return fail(
            err, result == -ENOENT ? -ESRCH : result, "process %ld: %s", (long)reg->pid,
            result == -ESRCH ? "no such process, or it has ended" : strerror(-result));
    return 0;
}

static void fill(struct roster_job *s, const struct roster_register *reg,
                 const struct proc_facts *f)
{
    struct job_entry *e = &s->e;

    e->source = reg->source;
    (void)snprintf(e->name, sizeof e->name, "%s", reg->name);
    e->uid = reg->uid;
    e->firm = reg->firm;
    e->pid = reg->pid;
    e->pid_start = reg->pid ? f->start : 0;
    if (reg->source == JOB_FOUND) {
        s->key = roster_key(f);
        e->pid = f->pid;
        e->pid_start = f->start;
        e->n_procs = reg->n_procs < JOB_PROCS ? reg->n_procs : JOB_PROCS;
        memcpy(e->proc, reg->proc, e->n_procs * sizeof *e->proc);
    }
    if (reg->began_utc_ns && reg->began_utc_ns < e->began_utc_ns) {
        uint64_t age = (uint64_t)(e->began_utc_ns - reg->began_utc_ns);
        e->began_ns -= age < e->began_ns ? age : e->began_ns;
        e->began_utc_ns = reg->began_utc_ns;
    }
    for (size_t i = 0; i < reg->n_labels; i++) {
        e->label[i] = reg->label[i];
        e->label[i].key[LABEL_KEY - 1] = e->label[i].value[LABEL_VALUE - 1] = '\0';
    }
    e->n_labels = reg->n_labels;
}

static void give_boards(struct roster_job *s, uint64_t boards, uint64_t held)
{
    struct roster *r = s->roster;
    uint64_t gets = boards & ~held;

    for (size_t i = 0; i < r->n_boards; i++)
        if (gets >> i & 1)
            roster_board_turn(r->board[i]);
    s->e.waits = held;
    if (s->e.source == JOB_FOUND)
        s->kept = gets;
    else
        s->e.given = gets;
    for (size_t i = 0; i < r->n_boards; i++)
        if (gets >> i & 1)
            roster_board_users(r->board[i]);
    /* Processes that are known already may belong to this job: read the lists soon. */
    for (size_t i = 0; i < r->n_boards; i++)
        if (r->board[i]->n > 0 || (boards >> i & 1))
            roster_look(r, i);
}

static int on_pidfd(struct loop_fd *source, int fd, int events, void *user)
{
    struct roster_job *s = user;
    struct roster *r = s->roster;
    (void)source;
    (void)fd;
    (void)events;

    roster_job_end(s);
    roster_refresh(r);
    roster_tell(r);
    roster_schedule(r);
    return 0;
}

int roster_begin(struct roster *r, const struct roster_register *reg, uint64_t *ret_id,
                 uw_error *err)
{
    struct proc_facts f = {0};
    int fd = -1;

    int result = check_text(reg, err);
    if (result == 0)
        result = check_boards(r, reg, err);
    uint64_t held = held_of(r, reg);
    if (result == 0)
        result = check_process(r, reg, &f, &fd, err);
    if (result == 0 && reg->source == JOB_RUN && !reg->id)
        result = roster_room(r, JOB_RUN, reg->uid, err);
    if (result < 0) {
        if (fd >= 0)
            (void)close(fd);
        return result;
    }
    struct roster_job *s = r->n < ROSTER_MAX ? roster_add(r, reg->id) : NULL;
    if (!s) {
        if (fd >= 0)
            (void)close(fd);
        return r->n < ROSTER_MAX ? fail(err, -ENOMEM, "out of memory for a job")
                                 : fail(err, -E2BIG, "more than %d jobs", ROSTER_MAX);
    }
    fill(s, reg, &f);
    s->pidfd = fd;
    if (fd >= 0 &&
        loop_fd_new(r->opts.loop, fd, LOOP_READ, on_pidfd, s, &s->source, NULL) < 0)
        s->source = NULL; /* roster_alive() is polled */
    roster_name_user(r, s);
    give_boards(s, reg->boards, held);
    uint64_t id = s->e.id;
    roster_refresh(r);
    s->changed = false;
    roster_tell(r);
    *ret_id = id;
    return 0;
}
