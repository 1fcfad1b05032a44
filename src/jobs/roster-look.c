/* Reads a board's process list: the owner and job of each process, the board's users. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/names.h"
#include "base/units.h"
#include "core/job/lifetime.h"
#include "jobs/roster-inside.h"

_Static_assert((int)ROSTER_USERS == (int)BOARD_USERS, "roster_users() passes ret on");

enum {
    ANCESTORS = 64,
    TOGETHER_MS = 10, /* lists within this time were requested together */
};

/* ---- the job of a process ---- */

/* A process and its ancestors. */
struct line {
    struct job_proc proc[ANCESTORS];
    size_t n;
    uint64_t step; /* Slurm's job, by the nearest slurmstepd among these; 0: unknown */
};

/* Only a process of root or of the daemon's user: any user may name a program slurmstepd.
 */
static bool is_stepd(const struct proc_facts *f)
{
    return strcmp(f->comm, "slurmstepd") == 0 && (f->uid == 0 || f->uid == geteuid());
}

/* Whether the process is one of a registered job's already. */
static bool is_noted(const struct roster *r, const struct proc_facts *f)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct job_entry *e = &r->job[i]->e;
        for (size_t k = 0; k < e->n_procs && e->source == JOB_REGISTERED; k++)
            if (e->proc[k].pid == f->pid && e->proc[k].start == f->start)
                return true;
    }
    return false;
}

/* The job of a slurmstepd that no look (jobs/step-watch.h) has found yet; 0: unknown. */
static uint64_t step_of(const struct roster *r, struct proc_facts *f)
{
    if (is_noted(r, f))
        return 0;
    roster_read_title(r, f);
    return lifetime_stepd(f->title, strlen(f->title));
}

static void trace_line(const struct roster *r, const struct proc_facts *f,
                       struct line *ret)
{
    struct proc_facts up = *f;
    bool below = true; /* the nearest slurmstepd */

    ret->n = 0;
    ret->step = 0;
    while (ret->n < ANCESTORS && up.pid > 1) {
        ret->proc[ret->n++] = (struct job_proc){up.pid, up.start};
        if (below && is_stepd(&up)) {
            ret->step = step_of(r, &up);
            below = false;
        }
        if (up.ppid <= 1 || roster_read(r, up.ppid, &up) < 0)
            return;
    }
}

enum { UNRELATED = ANCESTORS + 1 };

/* The number of generations from the process up to this ancestor; start is 0: unknown. */
static size_t distance(const struct line *line, pid_t pid, uint64_t start)
{
    for (size_t i = 0; i < line->n; i++)
        if (line->proc[i].pid == pid)
            return start == 0 || line->proc[i].start == start ? i : UNRELATED;
    return UNRELATED;
}

/* The number of generations up to the nearest of the job's processes. */
static size_t distance_to(const struct roster_job *job, const struct line *line)
{
    size_t least = UNRELATED;

    if (job->e.pid > 0)
        least = distance(line, job->e.pid, job->e.pid_start);
    for (size_t i = 0; i < job->e.n_procs; i++) {
        size_t far = distance(line, job->e.proc[i].pid, job->e.proc[i].start);
        least = far < least ? far : least;
    }
    return least;
}

static bool has_name(const struct roster_job *job, const struct cgroup_job *group)
{
    char name[JOB_NAME];

    return group->kind >= CGROUP_PODMAN &&
           strcmp(cgroup_name(group, name, sizeof name), job->e.name) == 0;
}

static bool has_step(const struct roster_job *job, const struct line *line)
{
    char name[JOB_NAME];

    (void)snprintf(name, sizeof name, ROSTER_SLURM "%" PRIu64, line->step);
    return line->step && strcmp(name, job->e.name) == 0;
}

/* The number of generations up to the job: by descent, or by the scheduler's name of the
 * control group or of its slurmstepd.
 */
static size_t distance_of(const struct roster_job *job, const struct line *line,
                          const struct cgroup_job *group)
{
    size_t far = distance_to(job, line);

    return far == UNRELATED && job->e.source == JOB_REGISTERED &&
                   (has_name(job, group) || has_step(job, line))
               ? ANCESTORS
               : far;
}

/* Of two jobs with the same process: whether the process itself began this one. */
static bool is_nearer(const struct roster_job *job, size_t far,
                      const struct roster_job *than, size_t its)
{
    return far < its || (far == its && than && than->e.source == JOB_REGISTERED &&
                         job->e.source == JOB_RUN);
}

/* The run or registered job of a process: by descent, by the scheduler's name of the
 * control group, or because the process's user has a job with this board.  Of nested
 * jobs (`underwatt run` in a scheduler's job) the innermost one; of several by their
 * boards, a scheduler's newest one: the end of an older one may not have been reported.
 */
static const struct roster_job *registered_job(const struct roster_board *s,
                                               const struct proc_facts *f,
                                               const struct cgroup_job *group)
{
    const struct roster *r = s->roster;
    const struct roster_job *best = NULL, *nearest = NULL;
    size_t least = UNRELATED;
    struct line line = {.n = 0};

    for (size_t i = 0; i < r->n; i++) {
        const struct roster_job *job = r->job[i];
        if (job->e.source == JOB_FOUND || job->over || job->e.uid != f->uid)
            continue;
        if (line.n == 0)
            trace_line(r, f, &line);
        size_t far = distance_of(job, &line, group);
        if (is_nearer(job, far, nearest, least)) {
            least = far;
            nearest = job;
        }
        if (roster_board_given(s, job) && (!best || job->e.source == JOB_REGISTERED))
            best = job;
    }
    return nearest ? nearest : best;
}

/* The registered job of the same user in which a process runs; 0: unknown.  start is 0:
 * not checked.
 */
static uint64_t outer_of(const struct roster *r, uid_t uid, pid_t pid, uint64_t start)
{
    size_t least = UNRELATED;
    struct line line = {.n = 0};
    struct cgroup_job group;
    struct proc_facts f;
    uint64_t outer = 0;

    for (size_t i = 0; i < r->n; i++) {
        const struct roster_job *job = r->job[i];
        if (job->e.source != JOB_REGISTERED || job->over || job->e.uid != uid)
            continue;
        if (line.n == 0) {
            if (roster_read(r, pid, &f) < 0 || (start && f.start != start))
                return 0;
            cgroup_parse(f.cgroup, f.n_cgroup, &group);
            trace_line(r, &f, &line);
        }
        size_t far = distance_of(job, &line, &group);
        if (far < least) {
            least = far;
            outer = job->e.id;
        }
    }
    return outer;
}

uint64_t roster_default_boards(const struct roster *r, const struct roster_register *reg)
{
    bool looks = reg->by_default && reg->source == JOB_RUN && reg->pid > 0;
    const struct roster_job *outer =
        looks ? roster_job(r, outer_of(r, reg->uid, reg->pid, 0)) : NULL;

    return outer && outer->e.given && (reg->boards & ~outer->e.given) ? outer->e.given
                                                                      : reg->boards;
}

bool roster_scheduler_key(const char *key)
{
    return strncmp(key, "slurm.", 6) == 0 || strncmp(key, "kubernetes.", 11) == 0 ||
           strcmp(key, "group") == 0;
}

static void set_within(struct roster_job *s, uint64_t outer)
{
    struct roster *r = s->roster;

    for (size_t k = 0; k < r->n_boards; k++)
        if (s->e.given >> k & 1)
            roster_board_turn(r->board[k]);
    s->e.within = outer;
    s->e.edition++;
    s->changed = true;
    for (size_t k = 0; k < r->n_boards; k++)
        if (s->e.given >> k & 1)
            roster_board_users(r->board[k]);
}

void roster_nest(struct roster *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct roster_job *s = r->job[i];
        bool asks = s->e.source == JOB_RUN && !s->over && s->e.pid && !s->e.within;
        uint64_t outer = asks ? outer_of(r, s->e.uid, s->e.pid, s->e.pid_start) : 0;
        if (outer)
            set_within(s, outer);
    }
}

static struct job_key key_of(const struct proc_facts *f, const struct cgroup_job *group)
{
    struct job_key k = {.uid = f->uid};

    if (group->kind >= CGROUP_PODMAN) {
        k.kind = group->kind;
        memcpy(k.id, group->id, sizeof k.id);
    } else {
        k.session = f->session ? f->session : f->pid;
    }
    return k;
}

static bool same_key(const struct job_key *a, const struct job_key *b)
{
    return a->uid == b->uid && a->kind == b->kind && a->session == b->session &&
           strcmp(a->id, b->id) == 0;
}

struct job_key roster_key(const struct proc_facts *f)
{
    struct cgroup_job group;

    cgroup_parse(f->cgroup, f->n_cgroup, &group);
    return key_of(f, &group);
}

struct roster_job *roster_found(const struct roster *r, const struct job_key *key)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->job[i]->e.source == JOB_FOUND && !r->job[i]->over &&
            same_key(&r->job[i]->key, key))
            return r->job[i];
    return NULL;
}

static void add_label(struct job_entry *e, const char *key, const char *value)
{
    if (!*value || e->n_labels == LABELS_MAX)
        return;
    struct label *l = &e->label[e->n_labels++];
    (void)snprintf(l->key, sizeof l->key, "%s", key);
    (void)snprintf(l->value, sizeof l->value, "%.*s", (int)sizeof l->value - 1, value);
}

static struct roster_job *make_found(struct roster *r, const struct proc_facts *f,
                                     const struct cgroup_job *group,
                                     const struct job_key *key)
{
    if (r->opts.no_found || roster_room(r, JOB_FOUND, f->uid, NULL) < 0)
        return NULL; /* its energy belongs to job 0 until the limits allow the job */
    struct roster_job *job = roster_add(r, 0);
    if (!job)
        return NULL;
    job->key = *key;
    job->e.source = JOB_FOUND;
    job->e.uid = f->uid;
    job->e.pid = f->pid;
    job->e.pid_start = f->start;
    if (key->kind != CGROUP_NONE) {
        (void)cgroup_name(group, job->e.name, sizeof job->e.name);
        add_label(&job->e, names_word(NAMES_CGROUP, group->kind), group->id);
        add_label(&job->e, "step", group->step);
        add_label(&job->e, "container", group->container);
    } else {
        (void)snprintf(job->e.name, sizeof job->e.name, "%s", f->comm);
        if (cgroup_is_name(job->e.name)) /* comm may imitate a scheduler's name */
            *strchr(job->e.name, ':') = '_';
    }
    roster_name_user(r, job);
    return job;
}

/* The id of the process's job; 0: none (owner unknown, or graphics only and not of a
 * registered job, or no further job allowed).
 */
static uint64_t job_of(struct roster_board *s, const struct seen *p,
                       const struct proc_facts *f)
{
    struct roster *r = s->roster;
    struct cgroup_job group;

    if (!p->known)
        return 0;
    cgroup_parse(f->cgroup, f->n_cgroup, &group);
    const struct roster_job *job = registered_job(s, f, &group);
    if (job)
        return job->e.id;
    if (!p->compute)
        return 0;
    struct job_key key = key_of(f, &group);
    job = roster_found(r, &key);
    if (!job)
        job = make_found(r, f, &group, &key);
    return job ? job->e.id : 0;
}

/* ---- users of a board ---- */

static bool computes_for(const struct seen *procs, size_t n, uint64_t job)
{
    for (size_t i = 0; i < n; i++)
        if (procs[i].job == job && (job != 0 || procs[i].compute))
            return true;
    return false;
}

bool roster_board_given(const struct roster_board *s, const struct roster_job *job)
{
    return !job->over && ((job->e.given | job->kept) >> s->at & 1) != 0;
}

/* Whether an inner job has taken over the board. */
static bool has_passed(const struct roster_board *s, const struct roster_job *job,
                       const struct seen *procs, size_t n)
{
    const struct roster *r = s->roster;

    for (size_t i = 0; i < r->n && job->e.source == JOB_REGISTERED; i++) {
        const struct roster_job *inner = r->job[i];
        if (inner->e.within == job->e.id && !inner->over &&
            (roster_board_given(s, inner) || computes_for(procs, n, inner->e.id)))
            return true;
    }
    return false;
}

/* Fills roster.there with the jobs that have the board or one of these processes, and 0
 * if a process computes for no job; returns their number.
 */
static size_t who_is_there(const struct roster_board *s, const struct seen *procs,
                           size_t n)
{
    struct roster *r = s->roster;
    uint64_t bit = 1ull << s->at;
    size_t n_there = 0;

    for (size_t i = 0; i < r->n; i++) {
        struct roster_job *job = r->job[i];
        bool computes = !job->over && computes_for(procs, n, job->e.id);
        bool given = roster_board_given(s, job);
        bool passed = given && !computes && has_passed(s, job, procs, n);
        job->e.passed = passed ? job->e.passed | bit : job->e.passed & ~bit;
        if (computes || (given && !passed))
            r->there[n_there++] = job->e.id;
    }
    if (computes_for(procs, n, 0))
        r->there[n_there++] = 0;
    return n_there;
}

static void count(struct roster_board *s)
{
    board_users_count(&s->users, loop_now_ns(s->roster->opts.loop));
}

void roster_board_users(struct roster_board *s)
{
    size_t n = who_is_there(s, s->proc, s->n);

    board_users_set(&s->users, s->roster->there, n);
}

void roster_board_turn(struct roster_board *s)
{
    count(s);
    if (s->roster->opts.on_turn)
        s->roster->opts.on_turn(s->at, s->roster->opts.user);
}

static uint64_t job_of_pid(const struct roster_board *s, pid_t pid, bool *ret_known)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->proc[i].pid == pid) {
            *ret_known = true;
            return s->proc[i].job;
        }
    *ret_known = false;
    return 0;
}

static int on_use(struct board *b, int result, const struct gpu_use *use, size_t n,
                  const uw_error *err, void *user)
{
    struct roster_board *s = user;
    (void)b;
    (void)err;

    s->calls--;
    if (!s->roster) {
        roster_board_free(s);
        return 0;
    }
    if (result == -ECANCELED)
        return 0;
    count(s);
    board_users_clear_use(&s->users, result == 0);
    s->no_use = result == -ENOTSUP;
    for (size_t i = 0; i < n; i++) {
        bool known;
        uint64_t job = job_of_pid(s, use[i].pid, &known);
        if (known)
            board_users_add_use(&s->users, job, use[i].sm_percent * 0.01);
    }
    return 0;
}

static void ask_use(struct roster_board *s)
{
    if (board_users_share(&s->users) && !s->no_use && board_use(s->board, on_use, s) == 0)
        s->calls++;
}

size_t roster_users(struct roster *r, size_t board,
                    struct split_user ret[static ROSTER_USERS])
{
    if (board >= r->n_boards)
        return 0;
    count(r->board[board]);
    return board_users_take(&r->board[board]->users, ret);
}

bool roster_has_process(const struct roster *r, size_t board, uint64_t job)
{
    const struct roster_board *s = board < r->n_boards ? r->board[board] : NULL;

    if (!s || !s->known)
        return true;
    for (size_t i = 0; i < s->n; i++)
        if (s->proc[i].job == job)
            return true;
    return false;
}

uint64_t roster_memory(const struct roster *r, size_t board)
{
    const struct roster_board *s = board < r->n_boards ? r->board[board] : NULL;
    uint64_t bytes = 0;

    for (size_t i = 0; s && i < s->n; i++)
        bytes += s->proc[i].used_bytes;
    return bytes;
}

/* ---- the list ---- */

/* The process's facts; NULL if they cannot be read.  The lists of boards that share a
 * process arrive together, so it is read once for all of them.
 */
static const struct proc_facts *facts_of(struct roster *r, pid_t pid)
{
    uint64_t now = loop_now_ns(r->opts.loop);

    if (r->last.at_ns && r->last.facts.pid == pid &&
        now - r->last.at_ns < TOGETHER_MS * NS_PER_MS)
        return &r->last.facts;
    r->last.at_ns = roster_read(r, pid, &r->last.facts) == 0 ? now : 0;
    return r->last.at_ns ? &r->last.facts : NULL;
}

static void judge(struct roster_board *s, const struct gpu_proc *p, struct seen *ret)
{
    const struct proc_facts *f = facts_of(s->roster, p->pid);

    *ret =
        (struct seen){.pid = p->pid, .compute = p->compute, .used_bytes = p->used_bytes};
    if (f) {
        ret->known = true;
        ret->uid = f->uid;
        ret->start = f->start;
        ret->job = job_of(s, ret, f);
    }
}

/* Processes of the last list that still exist, for when the list cannot be read. */
static size_t survivors(struct roster_board *s, struct seen *ret)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++) {
        struct proc_facts f;
        int r = roster_read(s->roster, s->proc[i].pid, &f);
        if (r == -ESRCH || (r == 0 && s->proc[i].known && f.start != s->proc[i].start))
            continue;
        ret[n++] = s->proc[i];
    }
    return n;
}

/* Replaces the board's process list. */
static void take_over(struct roster_board *s, const struct seen *fresh, size_t n)
{
    void *room = s->proc;

    if (array_reserve(&room, &s->room, n, sizeof *s->proc, BOARD_PROCS_MAX) < 0) {
        s->known = false;
        n = s->n < n ? s->n : n;
    }
    s->proc = room;
    size_t n_there = who_is_there(s, fresh, n);
    if (board_users_differ(&s->users, s->roster->there, n_there))
        roster_board_turn(s);
    count(s);
    if (n > 0)
        memcpy(s->proc, fresh, n * sizeof *fresh);
    s->n = n;
    roster_board_users(s);
}

static int on_procs(struct board *b, int result, const struct gpu_proc *procs, size_t n,
                    const uw_error *err, void *user)
{
    struct roster_board *s = user;
    (void)b;
    (void)err;

    s->calls--;
    if (!s->roster) {
        roster_board_free(s);
        return 0;
    }
    if (result == -ECANCELED)
        return 0;
    struct roster *r = s->roster;
    struct seen *fresh = r->fresh;
    s->looked = true;
    r->counts.looks++;
    if (result == 0) {
        s->known = n < BOARD_PROCS_MAX; /* there may be more */
        s->known_ns = loop_now_ns(r->opts.loop);
        for (size_t i = 0; i < n; i++)
            judge(s, &procs[i], &fresh[i]);
        for (size_t i = 0; i < r->n; i++)
            r->job[i]->kept &= ~(1ull << s->at); /* replaced by the list */
    } else {
        r->counts.failures++;
        s->known = false;
        n = survivors(s, fresh);
    }
    take_over(s, fresh, n);
    ask_use(s);
    if (roster_in_use(r, s->at) && s->next_ns > s->last_ns + r->opts.look_ns)
        s->next_ns = s->last_ns + r->opts.look_ns;
    roster_refresh(r);
    roster_tell(r);
    roster_schedule(r);
    if (r->opts.on_look)
        r->opts.on_look(s->at, r->opts.user);
    return 0;
}

void roster_board_look(struct roster_board *s)
{
    uint64_t now = loop_now_ns(s->roster->opts.loop);
    bool busy = s->n > 0 || roster_in_use(s->roster, s->at);

    s->next_ns = now + (busy ? s->roster->opts.look_ns : s->roster->opts.rest_ns);
    if (s->calls > 0)
        return; /* the last call is still under way */
    s->last_ns = now;
    if (board_procs(s->board, on_procs, s) == 0) {
        s->calls++;
    } else {
        s->known = false;
        s->looked = true;
    }
}

void roster_board_free(struct roster_board *s)
{
    if (!s)
        return;
    if (s->calls > 0) { /* the last call under way frees it */
        s->roster = NULL;
        return;
    }
    free(s->proc);
    free(s);
}
