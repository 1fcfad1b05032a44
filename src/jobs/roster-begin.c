/* Registers jobs, and assigns boards to them.  If run jobs of several users name a
 * board, it belongs to the user whose processes compute there; no program is delayed.
 * Groups: processes that begin one job together, like the ranks of a distributed
 * training.  A job ends with its first process; a group's job with the last one.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/units.h"
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

/* Writes who has a board.  Without the other job's name, which is private to its user. */
static void held_text(const struct roster_board *s, const struct job_entry *job,
                      pid_t pid, char ret[static JOB_HELD])
{
    unsigned gpu = board_view(s->board)->info->index;

    if (job)
        (void)snprintf(ret, JOB_HELD, "GPU %u belongs to job %llu of %s", gpu,
                       (unsigned long long)job->id,
                       job->user[0] ? job->user : "another user");
    else
        (void)snprintf(ret, JOB_HELD, "GPU %u: process %ld of another user is there", gpu,
                       (long)pid);
}

bool roster_held(const struct roster *r, uid_t uid, uint64_t boards,
                 char ret[static JOB_HELD])
{
    static const char more[] = ", and others too";
    const struct job_entry *job = NULL;
    pid_t pid = 0;
    unsigned n = 0;

    ret[0] = '\0';
    for (size_t i = 0; i < r->n_boards; i++)
        if ((boards >> i & 1) && roster_board_held(r->board[i], uid, &job, &pid) &&
            n++ == 0)
            held_text(r->board[i], job, pid, ret);
    size_t len = strlen(ret);
    if (n > 1 && len + sizeof more <= JOB_HELD)
        memcpy(ret + len, more, sizeof more);
    return n > 0;
}

/* Sets e.held, for display: the owner of the first of the boards that the job waits for.
 */
static void say_held(const struct roster *r, struct roster_job *s)
{
    char text[JOB_HELD] = "";

    (void)roster_held(r, s->e.uid, s->e.waits, text);
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

/* Jobs of one scheduler may share a board: MPS, shards, slices. */
static bool may_share(const char *a, const char *b)
{
    return strncmp(a, ROSTER_SLURM, strlen(ROSTER_SLURM)) == 0 &&
           strncmp(b, ROSTER_SLURM, strlen(ROSTER_SLURM)) == 0;
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
        if (r->job[i]->over || e->uid == reg->uid || both == 0 ||
            reg->source != JOB_REGISTERED || e->source != JOB_REGISTERED ||
            may_share(e->name, reg->name))
            continue;
        /* Without the other job's name, which is private to its user. */
        return fail(err, -EBUSY, "GPU %d belongs to job %llu of %s",
                    __builtin_ctzll(both), (unsigned long long)e->id,
                    e->user[0] ? e->user : "another user");
    }
    return 0;
}

static int check_new(const struct roster *r, uint64_t id, uw_error *err)
{
    const struct roster_job *s = id ? roster_job(r, id) : NULL;

    return s && !s->over
               ? fail(err, -EEXIST, "job %llu exists already", (unsigned long long)id)
               : 0;
}

/* Jobs without boards and process, such as a scheduler's CPU jobs, leave room for
 * others.
 */
static int check_bare(const struct roster *r, const struct roster_register *reg,
                      uw_error *err)
{
    size_t n = 0;

    if (reg->source != JOB_REGISTERED || reg->boards || reg->pid || reg->id)
        return 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct job_entry *e = &r->job[i]->e;
        n += !r->job[i]->over && e->source == JOB_REGISTERED && e->uid == reg->uid &&
             !e->given && !e->pid;
    }
    return n < ROSTER_USER_MAX
               ? 0
               : fail(err, -E2BIG, "user %ld has %d registered jobs without GPUs already",
                      (long)reg->uid, ROSTER_USER_MAX);
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

/* Checks the first process of a job.  *ret_fd: its pidfd; -1: none, poll roster_alive().
 */
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

static void set_labels(struct job_entry *e, const struct roster_register *reg)
{
    for (size_t i = 0; i < reg->n_labels; i++) {
        e->label[i] = reg->label[i];
        e->label[i].key[LABEL_KEY - 1] = e->label[i].value[LABEL_VALUE - 1] = '\0';
    }
    e->n_labels = reg->n_labels;
    e->edition++;
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
    }
    if (reg->n_procs > 0 &&
        (reg->source == JOB_FOUND ||
         (reg->id && (reg->n_procs > 1 || reg->source == JOB_REGISTERED)))) {
        e->n_procs = reg->n_procs < JOB_PROCS ? reg->n_procs : JOB_PROCS;
        memcpy(e->proc, reg->proc, e->n_procs * sizeof *e->proc);
    }
    (void)snprintf(e->group, sizeof e->group, "%s", reg->group ? reg->group : "");
    if (e->group[0])
        e->proc[e->n_procs++] = (struct job_proc){e->pid, e->pid_start};
    if (reg->began_utc_ns && reg->began_utc_ns < e->began_utc_ns) {
        uint64_t age = (uint64_t)(e->began_utc_ns - reg->began_utc_ns);
        e->began_ns -= age < e->began_ns ? age : e->began_ns;
        e->began_utc_ns = reg->began_utc_ns;
    }
    set_labels(e, reg);
}

/* Records that the job has named these boards, too; held: it waits for them. */
static void give_boards(struct roster_job *s, uint64_t boards, uint64_t held)
{
    struct roster *r = s->roster;
    uint64_t gets = boards & ~held;

    for (size_t i = 0; i < r->n_boards; i++)
        if (gets >> i & 1)
            roster_board_turn(r->board[i]);
    s->e.waits |= held;
    if (s->e.source == JOB_FOUND)
        s->kept = gets;
    else
        s->e.given |= gets;
    for (size_t i = 0; i < r->n_boards; i++)
        if (gets >> i & 1)
            roster_board_users(r->board[i]);
    /* Processes that are known already may belong to this job: read the lists soon. */
    for (size_t i = 0; i < r->n_boards; i++)
        if (r->board[i]->n > 0 || (boards >> i & 1))
            roster_look(r, i);
}

/* ---- which process a job ends with ---- */

static int on_pidfd(struct loop_fd *source, int fd, int events, void *user)
{
    struct roster_job *s = user;
    struct roster *r = s->roster;
    (void)source;
    (void)fd;
    (void)events;

    roster_first_ended(s);
    roster_refresh(r);
    roster_tell(r);
    roster_schedule(r);
    return 0;
}

/* The job ends with the process of that pidfd (-1: none), which it owns from now on. */
static void watch(struct roster_job *s, int pidfd)
{
    loop_fd_free(take(s->source));
    if (s->pidfd >= 0)
        (void)close(s->pidfd);
    s->pidfd = pidfd;
    if (pidfd >= 0 && loop_fd_new(s->roster->opts.loop, pidfd, LOOP_READ, on_pidfd, s,
                                  &s->source, NULL) < 0)
        s->source = NULL; /* roster_alive() is polled */
}

/* Makes the process the job's first one; false: it has ended.  If no pidfd is available,
 * roster_alive() is polled.
 */
static bool put_first(struct roster_job *s, const struct job_proc *p)
{
    struct roster_register reg = {
        .source = JOB_RUN, .uid = s->e.uid, .pid = p->pid, .pid_start = p->start};
    struct proc_facts f;
    int fd = -1;

    int r = check_process(s->roster, &reg, &f, &fd, NULL);
    if (r == -ESRCH || r == -EPERM)
        return false;
    watch(s, fd);
    s->e.pid = p->pid;
    s->e.pid_start = p->start;
    return true;
}

static void forget(struct job_entry *e, size_t at)
{
    memmove(e->proc + at, e->proc + at + 1, (e->n_procs - at - 1) * sizeof *e->proc);
    e->n_procs--;
}

static bool has_ended(const struct roster *r, const struct job_proc *p)
{
    struct proc_facts f;
    int result = roster_read(r, p->pid, &f);

    return result == -ESRCH || (result == 0 && f.start != p->start);
}

void roster_prune(struct roster_job *s)
{
    struct job_entry *e = &s->e;

    for (size_t i = e->n_procs; i-- > 0 && e->source == JOB_RUN;)
        if (e->proc[i].pid != e->pid && has_ended(s->roster, &e->proc[i])) {
            forget(e, i);
            s->changed = true;
        }
}

void roster_first_ended(struct roster_job *s)
{
    struct job_entry *e = &s->e;

    if (s->over)
        return;
    s->changed = true;
    for (size_t i = e->n_procs; i-- > 0 && e->source == JOB_RUN;)
        if (e->proc[i].pid == e->pid && e->proc[i].start == e->pid_start)
            forget(e, i);
    while (e->source == JOB_RUN && e->n_procs > 0) {
        if (put_first(s, &e->proc[0]))
            return;
        forget(e, 0);
    }
    roster_job_end(s);
}

/* ---- a job begins ---- */

/* A restored job continues with another of its processes if the first one has ended. */
static int check_first(const struct roster *r, const struct roster_register *reg,
                       struct roster_register *ret, struct proc_facts *facts, int *ret_fd,
                       uw_error *err)
{
    int result = check_process(r, reg, facts, ret_fd, err);

    *ret = *reg;
    for (size_t i = 0;
         i < reg->n_procs && reg->id && reg->source == JOB_RUN && result == -ESRCH; i++) {
        ret->pid = reg->proc[i].pid;
        ret->pid_start = reg->proc[i].start;
        result = check_process(r, ret, facts, ret_fd, err);
    }
    return result;
}

int roster_begin(struct roster *r, const struct roster_register *asked, uint64_t *ret_id,
                 uw_error *err)
{
    struct roster_register one = {0}, *reg = &one;
    struct proc_facts f = {0};
    int fd = -1;

    int result = check_text(asked, err);
    if (result == 0)
        result = check_new(r, asked->id, err);
    if (result == 0)
        result = check_boards(r, asked, err);
    if (result == 0)
        result = check_bare(r, asked, err);
    uint64_t held = held_of(r, asked);
    if (result == 0)
        result = check_first(r, asked, reg, &f, &fd, err);
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
    watch(s, fd);
    roster_name_user(r, s);
    give_boards(s, reg->boards, held);
    uint64_t id = s->e.id;
    roster_refresh(r);
    s->changed = false;
    roster_tell(r);
    *ret_id = id;
    return 0;
}

/* ---- registered jobs, by name ---- */

uint64_t roster_named(const struct roster *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct roster_job *s = r->job[i];
        if (!s->over && s->e.source == JOB_REGISTERED && strcmp(s->e.name, name) == 0)
            return s->e.id;
    }
    return 0;
}

/* The first process of the job on a board; false: there is none. */
static bool on_boards(const struct roster *r, uint64_t id, struct job_proc *ret)
{
    for (size_t i = 0; i < r->n_boards; i++)
        for (size_t k = 0; k < r->board[i]->n; k++) {
            const struct seen *p = &r->board[i]->proc[k];
            if (p->job != id)
                continue;
            *ret = (struct job_proc){p->pid, p->start};
            return true;
        }
    return false;
}

void roster_note(struct roster *r, uint64_t id, const struct job_proc *proc, size_t n)
{
    struct roster_job *s = roster_job(r, id);
    struct job_proc one;

    if (!s || s->over || s->e.source != JOB_REGISTERED)
        return;
    if (n == 0 && (s->e.n_procs > 0 || !on_boards(r, id, &one)))
        return;
    if (n == 0) {
        proc = &one;
        n = 1;
    }
    n = n < JOB_PROCS ? n : JOB_PROCS;
    bool same = s->e.n_procs == n;
    for (size_t i = 0; i < n && same; i++)
        same = s->e.proc[i].pid == proc[i].pid && s->e.proc[i].start == proc[i].start;
    if (same)
        return;
    memcpy(s->e.proc, proc, n * sizeof *proc);
    s->e.n_procs = n;
    s->changed = true;
    roster_nest(r);
    roster_tell(r);
}

static void set_given(struct roster_job *s, uint64_t boards)
{
    struct roster *r = s->roster;
    uint64_t differ = s->e.given ^ boards;

    for (size_t i = 0; i < r->n_boards; i++)
        if (differ >> i & 1)
            roster_board_turn(r->board[i]);
    s->e.given = boards;
    for (size_t i = 0; i < r->n_boards; i++) {
        if (!(differ >> i & 1))
            continue;
        roster_board_users(r->board[i]);
        roster_look(r, i);
    }
}

int roster_renew(struct roster *r, uint64_t id, const struct roster_register *reg,
                 uw_error *err)
{
    struct roster_job *s = roster_job(r, id);

    if (!s || s->over || s->e.source != JOB_REGISTERED)
        return fail(err, -ENOENT, "there is no registered job %llu",
                    (unsigned long long)id);
    int result = check_text(reg, err);
    if (result == 0)
        result = check_boards(r, reg, err);
    if (result < 0)
        return result;
    set_labels(&s->e, reg);
    s->e.n_procs = 0;
    s->changed = true;
    set_given(s, reg->boards);
    roster_refresh(r);
    roster_tell(r);
    roster_schedule(r);
    return 0;
}

/* Sets one label among *n; false: there is no room. */
static bool set_label(struct label all[static LABELS_MAX], size_t *n,
                      const struct label *label)
{
    size_t i = 0;

    while (i < *n && strcmp(all[i].key, label->key) != 0)
        i++;
    if (i == LABELS_MAX)
        return false;
    all[i] = *label;
    *n = i < *n ? *n : i + 1;
    return true;
}

int roster_label(struct roster *r, uint64_t id, const struct label *label, size_t n,
                 uw_error *err)
{
    struct roster_job *s = roster_job(r, id);
    struct label all[LABELS_MAX];

    if (!s || s->over || s->e.source != JOB_REGISTERED)
        return fail(err, -ENOENT, "there is no registered job %llu",
                    (unsigned long long)id);
    size_t n_all = s->e.n_labels;
    memcpy(all, s->e.label, sizeof all);
    for (size_t i = 0; i < n; i++)
        if (!set_label(all, &n_all, &label[i]))
            return fail(err, -E2BIG, "'labels': the job would have more than %d",
                        LABELS_MAX);
    bool same = n_all == s->e.n_labels;
    for (size_t i = 0; same && i < n_all; i++)
        same = strcmp(all[i].value, s->e.label[i].value) == 0;
    if (same)
        return 1;
    memcpy(s->e.label, all, sizeof all);
    s->e.n_labels = n_all;
    s->e.edition++;
    s->changed = true;
    roster_tell(r);
    return 0;
}

/* ---- groups ---- */

static bool is_of(const struct roster_job *s, uid_t uid)
{
    return !s->over && s->e.source == JOB_RUN && s->e.uid == uid;
}

uint64_t roster_group(const struct roster *r, uid_t uid, const char *group)
{
    for (size_t i = 0; i < r->n; i++)
        if (is_of(r->job[i], uid) && group[0] && strcmp(r->job[i]->e.group, group) == 0)
            return r->job[i]->e.id;
    return 0;
}

static bool has_process(const struct job_entry *e, const struct job_proc *p)
{
    for (size_t i = 0; i < e->n_procs; i++)
        if (e->proc[i].pid == p->pid && e->proc[i].start == p->start)
            return true;
    return false;
}

bool roster_has_part(const struct roster *r, uint64_t id, uid_t uid, pid_t pid)
{
    const struct roster_job *s = roster_job(r, id);
    struct proc_facts f;

    if (!s || !is_of(s, uid) || s->e.group[0] || roster_read(r, pid, &f) < 0 ||
        f.uid != uid)
        return false;
    return (s->e.pid == pid && s->e.pid_start == f.start) ||
           has_process(&s->e, &(struct job_proc){pid, f.start});
}

/* False: all places are taken by living processes. */
static bool add_process(struct roster_job *s, const struct job_proc *p)
{
    struct job_entry *e = &s->e;

    if (e->n_procs == 0)
        e->proc[e->n_procs++] = (struct job_proc){e->pid, e->pid_start};
    if (has_process(e, p))
        return true;
    if (e->n_procs == JOB_PROCS)
        roster_prune(s);
    if (e->n_procs == JOB_PROCS)
        return false;
    e->proc[e->n_procs++] = *p;
    s->changed = true;
    return true;
}

/* Checks the rate limit on joins of uid.  -EAGAIN. */
static int may_join(struct roster *r, uid_t uid, uw_error *err)
{
    uint64_t now = loop_now_ns(r->opts.loop), wait_ns = 0;

    r->joined.rate = (struct rate){.per_s = 1e3 / ROSTER_JOIN_MS, .burst = ROSTER_JOINS};
    if (uid == 0 ||
        bucket_take(rates_bucket(&r->joined, uid, now), &r->joined.rate, now, &wait_ns))
        return 0;
    return fail(err, -EAGAIN,
                "processes of user %ld join groups too often: %d at once, then one in "
                "%g s; the next in %.2f s",
                (long)uid, ROSTER_JOINS, ROSTER_JOIN_MS / 1e3, s_of_ns(wait_ns));
}

int roster_join(struct roster *r, uint64_t id, const struct roster_register *reg,
                uw_error *err)
{
    struct roster_job *s = roster_job(r, id);
    const char *group = reg->group ? reg->group : "";
    struct proc_facts f = {0};
    int fd = -1;

    if (!s || !is_of(s, reg->uid) || (s->e.group[0] && strcmp(s->e.group, group) != 0))
        return fail(err, -ENOENT, "there is no job %llu of this group",
                    (unsigned long long)id);
    int result = may_join(r, reg->uid, err);
    if (result == 0)
        result = check_process(r, reg, &f, &fd, err);
    if (fd >= 0)
        (void)close(fd);
    if (result < 0)
        return result;
    if (!add_process(s, &(struct job_proc){reg->pid, f.start}))
        return fail(err, -E2BIG, "job %llu has %d processes already",
                    (unsigned long long)id, JOB_PROCS);
    (void)snprintf(s->e.group, sizeof s->e.group, "%s", group);
    struct roster_register more = *reg;
    more.boards &= ~(s->e.given | s->e.waits);
    if (more.boards)
        give_boards(s, more.boards, held_of(r, &more));
    roster_refresh(r);
    roster_tell(r);
    return 0;
}

int roster_leave(struct roster *r, uint64_t id, pid_t pid, uw_error *err)
{
    struct roster_job *s = roster_job(r, id);
    bool runs = s && !s->over && s->e.source == JOB_RUN;
    bool had = runs && s->e.pid == pid;

    for (size_t i = runs && !had ? s->e.n_procs : 0; i-- > 0;)
        if (s->e.proc[i].pid == pid) {
            forget(&s->e, i);
            s->changed = had = true;
        }
    if (!had)
        return fail(err, -ENOENT, "process %ld has no part in job %llu", (long)pid,
                    (unsigned long long)id);
    if (s->e.pid == pid)
        roster_first_ended(s);
    roster_refresh(r);
    roster_tell(r);
    roster_schedule(r);
    return 0;
}
