#include "jobs/roster.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "base/units.h"
#include "base/utf8.h"
#include "core/job/owner.h"
#include "jobs/roster-inside.h"

enum {
    LOOK_S = 2,
    SLACK_MS = 500, /* latest delay of a look, to join another wake-up */
    REST_LOOKS = 3,
    WAKE_MS = 500, /* least interval between reads after roster_look() */
    NAMES_MAX = 1024,
    NAME_DEADLINE_S = 30,
};

void job_procs_text(const struct job_entry *job, char *ret, size_t size)
{
    size_t at = 0;

    ret[0] = '\0';
    for (size_t i = 0; i < job->n_procs && at < size; i++)
        at += (size_t)snprintf(ret + at, size - at, "%s%ld.%llu", i ? " " : "",
                               (long)job->proc[i].pid,
                               (unsigned long long)job->proc[i].start);
}

/* "PID.START" */
static int parse_proc(const char *text, struct job_proc *ret)
{
    const char *dot = strchr(text, '.');
    char pid[JOB_PROC_TEXT];
    uint64_t number = 0;

    if (!dot)
        return -EINVAL;
    (void)snprintf(pid, sizeof pid, "%.*s", (int)(dot - text), text);
    int r = parse_u64(pid, &number, NULL);
    if (r == 0)
        r = parse_u64(dot + 1, &ret->start, NULL);
    if (r < 0 || number == 0 || number > INT32_MAX)
        return -EINVAL;
    ret->pid = (pid_t)number;
    return 0;
}

size_t job_procs_parse(const char *text, struct job_proc ret[static JOB_PROCS])
{
    char word[JOB_PROC_TEXT];
    size_t n = 0;

    for (const char *at = text ? text : ""; *at && n < JOB_PROCS;) {
        size_t len = strcspn(at, " ");
        (void)snprintf(word, sizeof word, "%.*s", (int)len, at);
        if (len < sizeof word && parse_proc(word, &ret[n]) == 0)
            n++;
        at += len + (at[len] != '\0');
    }
    return n;
}

int roster_read(const struct roster *r, pid_t pid, struct proc_facts *ret)
{
    if (r->opts.read)
        return r->opts.read(pid, ret, r->opts.read_user);
    return proc_read(r->opts.proc, pid, ret);
}

void roster_read_title(const struct roster *r, struct proc_facts *f)
{
    if (!r->opts.read) /* otherwise it has the title already */
        proc_read_title(r->opts.proc, f);
}

/* ---- names of users: looked up in a worker, as NSS may query a server ---- */

struct asking {
    struct roster *roster;
    struct name name;
};

static int ask_name(struct loop *loop, void *work)
{
    struct asking *a = work;
    struct passwd pw, *found = NULL;
    char room[4096];
    (void)loop;

    if (getpwuid_r(a->name.uid, &pw, room, sizeof room, &found) == 0 && found)
        (void)snprintf(a->name.user, sizeof a->name.user, "%s", found->pw_name);
    utf8_mend(a->name.user);
    return 0;
}

static int name_done(struct loop *loop, void *work, int result)
{
    struct asking *a = work;
    struct roster *r = a->roster;
    (void)loop;

    if (result == -ETIMEDOUT)
        return 0; /* name_late() frees it */
    if (result == 0) {
        if (array_grow(&r->name, &r->names_room, r->n_names, NAMES_MAX) == 0)
            r->name[r->n_names++] = a->name;
        for (size_t i = 0; i < r->n; i++) {
            struct roster_job *s = r->job[i];
            if (s->e.uid != a->name.uid || s->e.user[0] || !a->name.user[0])
                continue;
            memcpy(s->e.user, a->name.user, sizeof s->e.user);
            s->e.edition++;
            s->changed = true;
        }
    }
    free(a);
    if (result == 0)
        roster_tell(r);
    return 0;
}

static void name_late(struct loop *loop, void *work, int result)
{
    (void)loop;
    (void)result;
    free(work);
}

void roster_name_user(struct roster *r, struct roster_job *s)
{
    for (size_t i = 0; i < r->n_names; i++)
        if (r->name[i].uid == s->e.uid) {
            memcpy(s->e.user, r->name[i].user, sizeof s->e.user);
            return;
        }
    struct asking *a = calloc(1, sizeof *a);
    if (!a)
        return;
    *a = (struct asking){.roster = r, .name = {.uid = s->e.uid}};
    struct loop_work work = {.fn = ask_name,
                             .done = name_done,
                             .late = name_late,
                             .work = a,
                             .deadline_ns = NAME_DEADLINE_S * NS_PER_S};
    if (loop_worker_submit(r->worker, &work) < 0)
        free(a);
}

/* ---- the jobs ---- */

struct roster_job *roster_job(const struct roster *r, uint64_t id)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->job[i]->e.id == id)
            return r->job[i];
    return NULL;
}

static uint64_t new_id(const struct roster *r)
{
    uint64_t id = r->opts.next_id ? r->opts.next_id(r->opts.user) : 0;

    return id > r->next_id ? id : r->next_id;
}

struct roster_job *roster_add(struct roster *r, uint64_t id)
{
    if (array_grow(&r->job, &r->room, r->n, ROSTER_MAX) < 0)
        return NULL;
    struct roster_job *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->roster = r;
    s->pidfd = -1;
    s->is_new = true;
    s->e.id = id ? id : new_id(r);
    s->e.began_ns = loop_now_ns(r->opts.loop);
    s->e.began_utc_ns = loop_utc_ns(r->opts.loop);
    if (s->e.id >= r->next_id)
        r->next_id = s->e.id + 1;
    r->job[r->n++] = s;
    return s;
}

int roster_room(struct roster *r, enum job_source source, uid_t uid, uw_error *err)
{
    size_t kept = source == JOB_RUN ? ROSTER_KEPT : ROSTER_KEPT / 2, own = 0;
    struct rates *begun = &r->begun[source == JOB_RUN];
    uint64_t now = loop_now_ns(r->opts.loop), wait_ns = 0;

    for (size_t i = 0; i < r->n; i++)
        own +=
            !r->job[i]->over && r->job[i]->e.source == source && r->job[i]->e.uid == uid;
    if (r->n >= ROSTER_MAX - kept)
        return fail(err, -E2BIG, "%zu jobs exist; users' jobs may be no more than %zu",
                    r->n, ROSTER_MAX - kept);
    if (uid == 0)
        return 0;
    if (own >= ROSTER_USER_MAX)
        return fail(err, -E2BIG, "user %ld has %zu jobs and may have no more than %d",
                    (long)uid, own, ROSTER_USER_MAX);
    begun->rate = (struct rate){.per_s = 1e3 / ROSTER_BEGIN_MS, .burst = ROSTER_BEGINS};
    if (!bucket_take(rates_bucket(begun, uid, now), &begun->rate, now, &wait_ns))
        return fail(err, -EAGAIN,
                    "user %ld begins too many jobs: %d at once, then one in %g s; the "
                    "next in %.1f s",
                    (long)uid, ROSTER_BEGINS, ROSTER_BEGIN_MS / 1e3, s_of_ns(wait_ns));
    return 0;
}

static void free_job(struct roster_job *s)
{
    loop_fd_free(s->source);
    if (s->pidfd >= 0)
        (void)close(s->pidfd);
    free(s);
}

bool roster_is_there(const struct roster *r, const struct job_proc *p, uid_t uid,
                     struct proc_facts *ret)
{
    return roster_read(r, p->pid, ret) == 0 && ret->start == p->start && ret->uid == uid;
}

bool roster_alive(const struct roster *r, const struct roster_job *s)
{
    struct proc_facts f;

    if (s->e.source == JOB_FOUND) {
        /* For boards kept from an earlier run, the processes decide; otherwise
         * roster_refresh() ends the job.
         */
        bool alive = !s->kept;
        for (size_t i = 0; i < s->e.n_procs && !alive; i++)
            alive = roster_is_there(r, &s->e.proc[i], s->e.uid, &f);
        return alive;
    }
    if (s->e.pid == 0 || s->source)
        return true;
    int result = roster_read(r, s->e.pid, &f);
    return result == 0 ? f.start == s->e.pid_start : result != -ESRCH;
}

void roster_job_end(struct roster_job *s)
{
    struct roster *r = s->roster;

    if (s->over)
        return;
    for (size_t i = 0; i < r->n_boards; i++)
        if (s->e.boards >> i & 1)
            roster_board_turn(r->board[i]);
    s->over = true;
    s->e.ended_ns = loop_now_ns(r->opts.loop);
    s->e.ended_utc_ns = loop_utc_ns(r->opts.loop);
    for (size_t i = 0; i < r->n_boards; i++) {
        if (!(s->e.boards >> i & 1))
            continue;
        struct roster_board *board = r->board[i];
        for (size_t k = 0; k < board->n; k++)
            if (board->proc[k].job == s->e.id)
                board->proc[k].job = 0; /* assigned anew by the next read */
        roster_board_users(board);
        board->next_ns = 0;
    }
    loop_fd_free(take(s->source));
}

static bool foreign_to(const struct roster_board *board, uid_t uid)
{
    for (size_t i = 0; i < board->n; i++)
        if (!board->proc[i].known || board->proc[i].uid != uid)
            return true;
    return false;
}

static bool is_seen(const struct roster *r, uint64_t job, const struct job_proc *p)
{
    for (size_t i = 0; i < r->n_boards; i++)
        for (size_t k = 0; k < r->board[i]->n; k++) {
            const struct seen *seen = &r->board[i]->proc[k];
            if (seen->job == job && seen->pid == p->pid && seen->start == p->start)
                return true;
        }
    return false;
}

static void note_proc(struct roster_job *s, const struct seen *p)
{
    struct job_entry *e = &s->e;

    for (size_t i = 0; i < e->n_procs; i++)
        if (e->proc[i].pid == p->pid && e->proc[i].start == p->start)
            return;
    if (e->n_procs == JOB_PROCS)
        return;
    e->proc[e->n_procs++] = (struct job_proc){p->pid, p->start};
    s->changed = true;
}

/* Updates the processes by which a found job is recognised after a restart.  Known ones
 * stay first, so that the list changes only if a process ends or is added.
 */
static void note_procs(const struct roster *r, struct roster_job *s)
{
    struct job_entry *e = &s->e;
    size_t n = 0;

    for (size_t i = 0; i < e->n_procs; i++)
        if (is_seen(r, e->id, &e->proc[i]))
            e->proc[n++] = e->proc[i];
    s->changed |= n != e->n_procs;
    e->n_procs = n;
    for (size_t i = 0; i < r->n_boards; i++)
        for (size_t k = 0; k < r->board[i]->n; k++)
            if (r->board[i]->proc[k].job == e->id)
                note_proc(s, &r->board[i]->proc[k]);
    e->pid = e->proc[0].pid;
    e->pid_start = e->proc[0].start;
}

static void refresh(struct roster *r, struct roster_job *s)
{
    uint64_t boards = s->e.given | s->kept;
    unsigned pids = 0;
    bool foreign = false;

    for (size_t i = 0; i < r->n_boards; i++) {
        const struct roster_board *board = r->board[i];
        unsigned here = 0;
        for (size_t k = 0; k < board->n; k++)
            here += board->proc[k].job == s->e.id;
        pids += here;
        if (here > 0)
            boards |= 1ull << i;
        if (boards >> i & 1)
            foreign |= foreign_to(board, s->e.uid);
    }
    if (boards != s->e.boards || foreign != s->e.foreign)
        s->changed = true;
    s->e.boards = boards;
    s->e.so_far |= boards;
    s->e.n_pids = pids;
    s->e.foreign = foreign;
    if (s->e.source == JOB_FOUND && pids > 0 && !s->kept)
        note_procs(r, s);
}

void roster_refresh(struct roster *r)
{
    roster_nest(r);
    for (size_t i = 0; i < r->n; i++) {
        struct roster_job *s = r->job[i];
        if (s->over)
            continue;
        refresh(r, s);
        if (s->e.source == JOB_FOUND && s->e.n_pids == 0 && !s->kept)
            roster_job_end(s);
    }
    roster_share(r);
}

/* Sends one pending event; false: none was left. */
static bool tell_one(struct roster *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct roster_job *s = r->job[i];
        if (s->is_new) {
            s->is_new = s->changed = false;
            r->opts.on_event(ROSTER_BEGIN, &s->e, r->opts.user);
            return true;
        }
        if (s->over) {
            memmove(r->job + i, r->job + i + 1, (r->n - i - 1) * sizeof *r->job);
            r->n--;
            r->opts.on_event(ROSTER_END, &s->e, r->opts.user);
            free_job(s);
            return true;
        }
        if (s->changed) {
            s->changed = false;
            r->opts.on_event(ROSTER_CHANGE, &s->e, r->opts.user);
            return true;
        }
    }
    return false;
}

void roster_tell(struct roster *r)
{
    if (r->telling) /* the outer call sends events until none is left */
        return;
    r->telling = true;
    while (tell_one(r))
        ;
    r->telling = false;
}

/* ---- timer ---- */

void roster_schedule(struct roster *r)
{
    uint64_t at = UINT64_MAX;

    for (size_t i = 0; i < r->n_boards; i++)
        if (r->board[i]->next_ns < at)
            at = r->board[i]->next_ns;
    loop_timer_set(r->timer, at, 0);
}

static int roster_on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct roster *r = user;
    bool news = false, prune = now_ns >= r->pruned_ns + r->opts.look_ns;
    (void)timer;

    if (prune)
        r->pruned_ns = now_ns;
    for (size_t i = 0; i < r->n; i++) {
        if (!r->job[i]->over && !roster_alive(r, r->job[i])) {
            roster_first_ended(r->job[i]);
            news = true;
        }
        if (prune && !r->job[i]->over)
            roster_prune(r->job[i]);
        news |= r->job[i]->changed;
    }
    for (size_t i = 0; i < r->n_boards; i++)
        if (r->board[i]->next_ns <= now_ns)
            roster_board_look(r->board[i]);
    if (news) {
        roster_refresh(r);
        roster_tell(r);
    }
    roster_schedule(r);
    return 0;
}

void roster_look(struct roster *r, size_t board)
{
    if (board >= r->n_boards)
        return;
    struct roster_board *s = r->board[board];
    uint64_t at = s->last_ns + WAKE_MS * NS_PER_MS;
    if (at < s->next_ns) {
        s->next_ns = at;
        roster_schedule(r);
    }
}

int roster_end(struct roster *r, uint64_t id, uw_error *err)
{
    struct roster_job *s = roster_job(r, id);

    if (!s || s->over)
        return fail(err, -ENOENT, "there is no job %llu", (unsigned long long)id);
    roster_job_end(s);
    roster_refresh(r);
    roster_tell(r);
    roster_schedule(r);
    return 0;
}

void roster_phase(struct roster *r, uint64_t id, uint32_t phase)
{
    struct roster_job *s = roster_job(r, id);

    if (!s || s->over || s->e.phase == phase)
        return;
    for (size_t i = 0; i < r->n_boards; i++)
        if (s->e.boards >> i & 1)
            roster_board_turn(r->board[i]);
    s->e.phase = phase;
    s->changed = true;
    roster_tell(r);
}

/* ---- queries ---- */

const struct job_entry *roster_find(const struct roster *r, uint64_t id)
{
    const struct roster_job *s = roster_job(r, id);

    return s ? &s->e : NULL;
}

size_t roster_count(const struct roster *r)
{
    return r->n;
}

const struct job_entry *roster_at(const struct roster *r, size_t i)
{
    return i < r->n ? &r->job[i]->e : NULL;
}

bool roster_has_looked(const struct roster *r)
{
    for (size_t i = 0; i < r->n_boards; i++)
        if (!r->board[i]->looked)
            return false;
    return true;
}

static uint64_t outermost(const struct job_entry *job)
{
    return job->within ? job->within : job->id;
}

uint64_t roster_other(const struct roster *r, uint64_t id, size_t board)
{
    const struct roster_job *job = roster_job(r, id);
    uint64_t whole = job ? outermost(&job->e) : id;

    for (size_t i = 0; i < r->n; i++) {
        const struct job_entry *other = &r->job[i]->e;
        if (outermost(other) != whole && !other->ended_ns && (other->boards >> board & 1))
            return other->id;
    }
    return 0;
}

bool roster_in_use(const struct roster *r, size_t board)
{
    if (board >= r->n_boards)
        return false;
    if (r->board[board]->n > 0)
        return true;
    for (size_t i = 0; i < r->n; i++)
        if (roster_board_given(r->board[board], r->job[i]))
            return true;
    return false;
}

static enum owner_kind owner_of(enum job_source source)
{
    return source == JOB_FOUND ? OWNER_FOUND
           : source == JOB_RUN ? OWNER_RUN
                               : OWNER_REGISTERED;
}

/* Input of core/job/owner.h for one board. */
struct owned {
    struct owner_job jobs[ROSTER_MAX];
    struct owner_proc procs[BOARD_PROCS_MAX + 1];
    struct owner_board b;
};

static const struct owner_board *look_at_owners(const struct roster *r, size_t board,
                                                struct owned *ret)
{
    const struct roster_board *s = r->board[board];
    struct owner_board *b = &ret->b;

    *b = (struct owner_board){.job = ret->jobs, .proc = ret->procs};
    for (size_t i = 0; i < r->n; i++) {
        const struct job_entry *e = &r->job[i]->e;
        bool given = e->source != JOB_FOUND && (e->given >> board & 1);
        if (!r->job[i]->over && (e->boards >> board & 1))
            ret->jobs[b->n_jobs++] =
                (struct owner_job){given ? owner_of(e->source) : OWNER_FOUND, e->uid};
    }
    for (size_t i = 0; i < s->n; i++)
        ret->procs[b->n_procs++] =
            (struct owner_proc){s->proc[i].known, s->proc[i].uid, s->proc[i].compute};
    if (s->n == BOARD_PROCS_MAX) /* there may be more, of unknown owners */
        ret->procs[b->n_procs++] = (struct owner_proc){.compute = true};
    b->procs_known = s->known && s_between(s->known_ns, loop_now_ns(r->opts.loop)) <=
                                     3 * s_of_ns(r->opts.look_ns);
    return b;
}

bool roster_may_claim(const struct roster *r, uid_t uid, size_t board)
{
    struct owned o;

    return board < r->n_boards && owner_may_claim(look_at_owners(r, board, &o), uid);
}

bool roster_keeps_claim(const struct roster *r, uid_t uid, size_t board)
{
    struct owned o;

    return board < r->n_boards && owner_keeps_claim(look_at_owners(r, board, &o), uid);
}

void roster_counts(const struct roster *r, struct roster_counts *ret)
{
    *ret = r->counts;
}

/* ---- set-up ---- */

static int make_boards(struct roster *r, uw_error *err)
{
    size_t n = boards_count(r->opts.boards);

    r->board = calloc(n ? n : 1, sizeof(struct roster_board *));
    if (!r->board)
        return fail(err, -ENOMEM, "out of memory for the jobs of %zu boards", n);
    for (size_t i = 0; i < n; i++) {
        struct roster_board *s = calloc(1, sizeof *s);
        if (!s)
            return fail(err, -ENOMEM, "out of memory for the jobs of %zu boards", n);
        s->roster = r;
        s->at = i;
        s->board = boards_at(r->opts.boards, i);
        s->users.counted_ns = loop_now_ns(r->opts.loop);
        r->board[r->n_boards++] = s;
    }
    return 0;
}

int roster_new(const struct roster_opts *opts, struct roster **ret, uw_error *err)
{
    auto_(roster_free) struct roster *r = calloc(1, sizeof *r);

    if (!r)
        return fail(err, -ENOMEM, "out of memory for the jobs");
    r->opts = *opts;
    if (!r->opts.proc)
        r->opts.proc = "/proc";
    if (!r->opts.look_ns)
        r->opts.look_ns = LOOK_S * NS_PER_S;
    if (!r->opts.rest_ns)
        r->opts.rest_ns = REST_LOOKS * r->opts.look_ns;
    r->next_id = opts->first_id ? opts->first_id : 1;
    int result = make_boards(r, err);
    if (result == 0)
        result = loop_worker_new(opts->loop, "names", &r->worker, err);
    if (result == 0)
        result = loop_timer_new(opts->loop, loop_now_ns(opts->loop), 0, roster_on_timer,
                                r, &r->timer, err);
    if (result < 0)
        return result;
    loop_timer_slack(r->timer, SLACK_MS * NS_PER_MS);
    *ret = take(r);
    return 0;
}

void roster_free(struct roster *r)
{
    if (!r)
        return;
    r->telling = true; /* sends no events any more */
    loop_worker_free(r->worker);
    loop_timer_free(r->timer);
    for (size_t i = 0; i < r->n; i++)
        free_job(r->job[i]);
    for (size_t i = 0; i < r->n_boards; i++)
        roster_board_free(r->board[i]);
    free(r->job);
    free(r->board);
    free(r->name);
    free(r);
}
