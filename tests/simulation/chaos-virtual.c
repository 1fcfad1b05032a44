/* Plays schedules of tests/chaos (schedule.py has their words) in virtual time: a whole
 * node whose jobs, searches and claims come and go while the daemon is killed, stopped,
 * restarted, its actuator dies, the driver is loaded anew, the machine reboots, boards
 * hang, vanish and refuse, others write, the disk is full, UTC jumps.  What must hold is
 * looked at after each moment, the ledger after each death; at the end the originals are
 * back.
 *
 * kill -9 of the daemon: its files are copied as they are, then it is freed; the next one
 * gets the copies, so nothing that the freed one wrote in order is in them.  The actuator
 * is a guard with grace and journal that outlives it.  SIGSTOP of the daemon is played as
 * silence: no renewal, nothing heard; its own timers go on, so what it decides meanwhile
 * fails.  kill -9 of the actuator restores at once, as its keeper does.
 *
 * Usage: chaos-virtual <SCHEDULES
 * For each, a line: "ok SEED LOOKS CALM USERS LOCKED LIVES" or "bad SEED what broke".
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/names.h"
#include "base/rng.h"
#include "simulation/chaos-scene.h"
#include "virtual/virtual-loop.h"

enum { WORDS_MAX = 7, MOMENTS_MAX = 512 };

struct moment {
    double at_s;
    char word[WORDS_MAX][12];
    size_t n_words;
};

struct schedule {
    uint64_t seed;
    uint64_t boards;
    bool dies; /* the daemon, at the end */
    struct moment moment[MOMENTS_MAX];
    size_t n;
};

/* ---- what happens ---- */

static uint64_t number(const struct moment *m, size_t i)
{
    return i < m->n_words ? strtoull(m->word[i], NULL, 10) : 0;
}

static double seconds(const struct moment *m, size_t i)
{
    return i < m->n_words ? strtod(m->word[i], NULL) : 0;
}

static bool says(const struct moment *m, size_t i, const char *word)
{
    return i < m->n_words && strcmp(m->word[i], word) == 0;
}

static size_t board_of(const struct round *r, const struct moment *m)
{
    return number(m, 1) % r->n_boards;
}

static struct ours *new_ours(struct round *r)
{
    if (r->n_ours == OURS_MAX)
        memmove(r->ours, r->ours + 1, --r->n_ours * sizeof r->ours[0]);
    return &r->ours[r->n_ours++];
}

/* The job that gives the right to a claim, and its process. */
static void note_job(struct round *r, struct ours *o)
{
    const struct node_view *v = node_look(r->node);
    const struct claim *c = claims_find(v->board[o->board].cap.claims, o->id);

    for (size_t i = 0; i < v->n_jobs && c; i++)
        if (v->job[i].job->id == c->job) {
            o->job = c->job;
            o->pid = v->job[i].job->source == JOB_FOUND ? v->job[i].job->pid : 0;
        }
}

/* claim BOARD KIND 200W|1200MHz SECONDS root|anna; 0 s: for good. */
static void do_claim(struct round *r, const struct moment *m)
{
    size_t board = board_of(r, m);
    const struct node_who *who = says(m, 5, "root") ? &root : &anna;
    enum claim_kind kind = says(m, 2, "soft")    ? CLAIM_SOFT
                           : says(m, 2, "named") ? CLAIM_NAMED
                                                 : CLAIM_HARD;
    bool clock = m->n_words > 3 && strstr(m->word[3], "MHz");
    uint32_t mw = clock ? 0 : (uint32_t)number(m, 3) * 1000;
    uint64_t ttl_ns = ns_of_s(seconds(m, 4));
    char name[24];
    struct node_claim ask = {.board = name,
                             .kind = kind,
                             .cap = {.mw = mw},
                             .clock_mhz = clock ? (uint32_t)number(m, 3) : 0,
                             .ttl_ns = ttl_ns,
                             .why = "chaos"};
    uint64_t id = 0;

    (void)snprintf(name, sizeof name, "%zu", board);
    if (!r->node || node_claim(r->node, who, &ask, &id, NULL) < 0)
        return;
    for (size_t i = 0; i < r->n_ours; i++)
        if (r->ours[i].id == id)
            bad(r, "claim %" PRIu64 " was there before", id);
    *new_ours(r) = (struct ours){.id = id,
                                 .board = board,
                                 .kind = kind,
                                 .mw = mw,
                                 .mhz = ask.clock_mhz,
                                 .roots = who == &root,
                                 .made_ns = now_of(r),
                                 .until_ns = ttl_ns ? now_of(r) + ttl_ns : CLAIM_FOREVER,
                                 .unsure = r->disk_full};
    note_job(r, &r->ours[r->n_ours - 1]);
}

static void do_withdraw(struct round *r, const struct moment *m)
{
    if (r->n_ours == 0 || !r->node)
        return;
    struct ours *o = &r->ours[number(m, 1) % r->n_ours];
    if (node_withdraw(r->node, &root, o->id, NULL) < 0)
        return;
    o->withdrawn_ns = now_of(r);
    o->unsure = o->unsure || r->disk_full;
}

static void trouble(struct round *r)
{
    for (size_t i = 0; i < r->n_boards; i++)
        r->trouble[i]++;
}

static void stop_run(struct round *r, struct run *run)
{
    if (run->child)
        r->trouble[run->board]++;
    end_run(r, run);
}

/* job N BOARD found|search: begins, or ends if it runs. */
static void do_job(struct round *r, const struct moment *m)
{
    struct run *run = &r->run[number(m, 1) % RUNS];

    if (run->child)
        stop_run(r, run);
    else if (r->node)
        begin_run_on(r, run, number(m, 2) % r->n_boards, says(m, 3, "search"));
}

static void kill_actuator(struct round *r)
{
    if (!r->service.guard || r->hung)
        return; /* who hangs in the driver is waited for by its keeper, not here */
    if (now_of(r) < r->fault_ns + 10 * NS_PER_S)
        return; /* its keeper goes on trying; here it is tried once */
    stop_guard(r);
}

static void do_kill(struct round *r, const struct moment *m)
{
    if (says(m, 1, "actuator"))
        kill_actuator(r);
    else if (r->node)
        kill_node(r);
}

static void do_term(struct round *r, const struct moment *m)
{
    if (says(m, 1, "daemon") && r->node)
        end_node(r);
}

static void do_start(struct round *r, const struct moment *m)
{
    if (says(m, 1, "actuator") && !r->service.guard)
        start_guard(r);
    if (says(m, 1, "daemon") && !r->node)
        begin_life(r);
}

static void do_stop(struct round *r, const struct moment *m)
{
    (void)m;
    r->service.stopped = true;
}

static void do_go_on(struct round *r, const struct moment *m)
{
    (void)m;
    r->service.stopped = false;
}

static void do_reload(struct round *r, const struct moment *m)
{
    (void)m;
    fault(r, "reload");
    trouble(r);
    r->may_default = true;
}

static void do_reboot(struct round *r, const struct moment *m)
{
    if (r->hung)
        return;
    if (r->node)
        kill_node(r);
    for (size_t i = 0; i < RUNS; i++)
        stop_run(r, &r->run[i]);
    stop_guard(r);
    do_reload(r, m);
    r->boot++;
    (void)snprintf(r->boot_id, sizeof r->boot_id, "boot-%u", r->boot);
    for (size_t i = 0; i < r->n_ours; i++)
        r->ours[i].rebooted = true;
    pass(r, 1);
    start_guard(r);
    begin_life(r);
}

/* lose|refuse|hang BOARD SECONDS */
static void do_fault(struct round *r, const struct moment *m)
{
    uint64_t s = number(m, 2);
    const char *kind = says(m, 0, "lose") ? "lost" : m->word[0];
    char text[64];

    if (r->hung)
        return; /* a call that takes an hour has moved the boards' clock on */
    (void)snprintf(text, sizeof text, "%zu %s for %" PRIu64 "s", board_of(r, m), kind, s);
    r->hung = says(m, 0, "hang");
    fault(r, text);
    trouble(r);
    if (now_of(r) + s * NS_PER_S > r->fault_ns)
        r->fault_ns = now_of(r) + s * NS_PER_S;
}

static void do_limit(struct round *r, const struct moment *m)
{
    char text[64];
    double w = seconds(m, 2);

    if (r->n_foreign == FOREIGN_MAX)
        return;
    (void)snprintf(text, sizeof text, "%zu limit %.1fW", board_of(r, m), w);
    fault(r, text);
    r->foreign_mw[r->n_foreign++] = (uint32_t)lround(w * 1000);
}

/* release BOARD SECONDS, or take it back. */
static void do_release(struct round *r, const struct moment *m)
{
    size_t board = board_of(r, m);
    char name[24];

    (void)snprintf(name, sizeof name, "%zu", board);
    r->trouble[board]++;
    if (r->node && node_take_back(r->node, &root, name, NULL) < 0)
        (void)node_release(r->node, &root, name, ns_of_s(seconds(m, 2)), NULL, NULL,
                           NULL);
}

static void do_configure(struct round *r, const struct moment *m)
{
    r->config.caps.others = says(m, 1, "yield") ? CAPS_YIELD : CAPS_REASSERT;
    r->config.caps.always_hold = number(m, 2) != 0;
    r->config.caps.yield_ns = ns_of_s(seconds(m, 3));
    r->config.caps.reassert_ns = ns_of_s(seconds(m, 4));
    if (r->node)
        (void)node_configure(r->node, &r->config, NULL);
}

static void do_fill(struct round *r, const struct moment *m)
{
    (void)m;
    if (!r->disk_full)
        fill_disk(r, true);
}

static void do_free(struct round *r, const struct moment *m)
{
    (void)m;
    if (r->disk_full)
        fill_disk(r, false);
}

static void do_clock(struct round *r, const struct moment *m)
{
    loop_shift_utc(r->loop, strtoll(m->word[1], NULL, 10) * 86400 * (int64_t)NS_PER_S);
    r->jumped = true;
}

static const struct event {
    const char *name;
    void (*fn)(struct round *r, const struct moment *m);
    bool loud; /* claims may be out of force for a while */
} events[] = {
    {"claim", do_claim, false},    {"withdraw", do_withdraw, false},
    {"job", do_job, false},        {"kill", do_kill, true},
    {"term", do_term, true},       {"start", do_start, true},
    {"stop", do_stop, true},       {"go-on", do_go_on, true},
    {"reload", do_reload, true},   {"reboot", do_reboot, true},
    {"lose", do_fault, true},      {"refuse", do_fault, true},
    {"hang", do_fault, true},      {"limit", do_limit, true},
    {"release", do_release, true}, {"configure", do_configure, true},
    {"fill-disk", do_fill, true},  {"free-disk", do_free, true},
    {"clock", do_clock, true},
};

static const struct event *event_of(const char *name)
{
    for (size_t i = 0; i < n_elements(events); i++)
        if (strcmp(events[i].name, name) == 0)
            return &events[i];
    return NULL;
}

static void happen(struct round *r, const struct moment *m)
{
    const struct event *e = event_of(m->word[0]);

    if (getenv("CHAOS_LOG"))
        printf("# %.3f s: %s %s %s %s\n", s_between(1000 * NS_PER_S, now_of(r)),
               m->word[0], m->word[1], m->word[2], m->word[3]);
    if (e->loud)
        r->noise_ns = now_of(r);
    e->fn(r, m);
}

/* ---- what must hold ---- */

static void look_at_limit(struct round *r, size_t i)
{
    uint32_t mw = limit_of(r, i), most = highest(r);

    if (mw && (mw < MIN_MW || mw > most))
        bad(r, "board %zu: %u mW in force, outside %u..%u", i, mw, MIN_MW, most);
    /* Nobody has been there for longer than lease and grace: nothing of ours is. */
    if (!r->node && r->service.guard && r->gone_ns && !r->hung &&
        now_of(r) > r->gone_ns + ns_of_s(GRACE_S + LEASE_S + 1) &&
        now_of(r) > r->noise_ns + ns_of_s(GRACE_S + LEASE_S + 1) && mw &&
        !is_theirs(r, mw))
        bad(r, "board %zu: %u mW in force, its daemon dead for %.1f s", i, mw,
            s_between(r->gone_ns, now_of(r)));
    if (!r->node && r->service.guard && r->gone_ns && !r->hung &&
        now_of(r) > r->gone_ns + ns_of_s(GRACE_S + LEASE_S + 1) &&
        now_of(r) > r->noise_ns + ns_of_s(GRACE_S + LEASE_S + 1) && mw &&
        virtual_world_locked_mhz(r->sim, i))
        bad(r, "board %zu: its clock is locked, its daemon dead for %.1f s", i,
            s_between(r->gone_ns, now_of(r)));
    r->locked += virtual_world_locked_mhz(r->sim, i) > 0;
}

static const struct ours *find_ours(const struct round *r, uint64_t id)
{
    for (size_t i = 0; i < r->n_ours; i++)
        if (r->ours[i].id == id)
            return &r->ours[i];
    return NULL;
}

static void look_at_claim(struct round *r, size_t i, const struct claim *c)
{
    const struct ours *o = find_ours(r, c->id);

    if (c->until_ns < now_of(r)) /* its timer may be next */
        bad(r, "board %zu: claim %" PRIu64 " is over for %.4f s and there (%s)", i, c->id,
            s_between(c->until_ns, now_of(r)), c->who);
    if (c->source == CLAIM_OF_SEARCH || (c->job && !o))
        return; /* of a search, or of a job's cap by name */
    if (!o && r->n_ours < OURS_MAX)
        bad(r, "board %zu: nobody made claim %" PRIu64, i, c->id);
    if (!o || o->unsure)
        return;
    if (o->rebooted)
        bad(r, "board %zu: claim %" PRIu64 " is of another boot", i, c->id);
    if (o->withdrawn_ns)
        bad(r, "board %zu: claim %" PRIu64 " was withdrawn %.1f s ago", i, c->id,
            s_between(o->withdrawn_ns, now_of(r)));
    if (o->board != i || o->mw != c->mw || o->mhz != c->mhz || o->kind != c->kind)
        bad(r, "board %zu: claim %" PRIu64 " is another", i, c->id);
    /* Times are kept in milliseconds; each restart rounds. */
    if ((o->until_ns == CLAIM_FOREVER) != (c->until_ns == CLAIM_FOREVER) ||
        (o->until_ns != CLAIM_FOREVER && c->until_ns > o->until_ns + 50 * NS_PER_MS))
        bad(r, "board %zu: claim %" PRIu64 " lasts longer than was asked", i, c->id);
}

static bool has_claim(const struct claims *claims, uint64_t id)
{
    for (size_t i = 0; i < claims->n; i++)
        if (claims->claim[i].id == id)
            return true;
    return false;
}

static bool lives(const struct round *r, pid_t pid)
{
    for (size_t i = 0; i < RUNS; i++)
        if (pid > 0 && r->run[i].child && loop_child_pid(r->run[i].child) == pid)
            return true;
    return false;
}

/* Claims that are due are there: root's, and anna's while the process lives that she was
 * found by; hard ones are in force.
 */
static void look_at_due(struct round *r, size_t i, const struct view_board *b)
{
    bool calm = now_of(r) > r->noise_ns + ns_of_s(CALM_S) && !r->hung && !r->disk_full;

    for (size_t k = 0; k < r->n_ours; k++) {
        const struct ours *o = &r->ours[k];
        bool stands = o->roots || lives(r, o->pid);
        if (o->board != i || !stands || o->unsure || o->rebooted || o->withdrawn_ns ||
            o->until_ns < now_of(r) + NS_PER_S)
            continue;
        if (!has_claim(b->cap.claims, o->id))
            bad(r, "board %zu: claim %" PRIu64 " of %s is lost", i, o->id,
                o->roots ? "root" : "anna");
        r->users += !o->roots;
        if (!calm || o->kind != CLAIM_HARD || o->mhz ||
            now_of(r) < o->made_ns + NS_PER_S ||
            (b->cap.state == CAPS_YIELDED && r->n_foreign > 0) ||
            b->cap.state == CAPS_RELEASED ||
            b->cap.state == CAPS_DENIED) /* tried again after up to 32 s */
            continue;
        r->calm++;
        uint32_t mw = limit_of(r, i);
        if (mw > o->mw)
            bad(r, "board %zu: %u mW in force (%s: %s), %u is claimed, hard", i, mw,
                names_word(NAMES_CAP_STATE, b->cap.state), b->cap.text, o->mw);
    }
}

static void look_at_books(struct round *r, size_t i, const struct view_board *b)
{
    double sum = b->attributed_j + b->idle_j + b->unattributed_j;

    if (fabs(sum - b->energy_j) > 1e-3 * fmax(b->energy_j, 100))
        bad(r, "board %zu: parts are %.1f J, the whole %.1f J", i, sum, b->energy_j);
    /* An interval may be lost with a killed one, and what a full disk kept waiting. */
    if (!r->disk_ever && b->energy_j < r->energy_j[i] - (INTERVAL_S + 3) * 350)
        bad(r, "board %zu: %.0f J after %.0f J", i, b->energy_j, r->energy_j[i]);
    r->energy_j[i] = b->energy_j;
}

static void look_at_jobs(struct round *r, const struct node_view *v)
{
    for (size_t i = 0; i < v->n_jobs; i++) {
        const struct job_entry *j = v->job[i].job;
        size_t k = 0;
        while (k < r->n_known && r->known[k].id != j->id)
            k++;
        if (k == r->n_known && k < KNOWN_MAX) {
            if (j->id <= r->last_life_job)
                bad(r, "job %" PRIu64 " was there before", j->id);
            r->known[r->n_known++] = (struct known){j->id, j->began_utc_ns};
        } else if (k < KNOWN_MAX && !r->jumped &&
                   llabs(r->known[k].began_utc_ns - j->began_utc_ns) > 1500000000) {
            bad(r, "job %" PRIu64 " began twice", j->id);
        }
        if (j->id > r->top_job)
            r->top_job = j->id;
    }
}

/* A process is one job, over restarts, while it works on a board in peace and the ledger
 * may know of it.
 */
static void look_at_run(struct round *r, struct run *run, const struct job_entry *j)
{
    bool peace = run->trouble == r->trouble[run->board] && !r->disk_full;

    if (run->found && run->found != j->id && peace)
        bad(r, "job %" PRIu64 " is job %" PRIu64 " now, of the same process", run->found,
            j->id);
    if (run->found != j->id || r->disk_full)
        run->found_ns = now_of(r) + (r->disk_full ? 10 * NS_PER_S : 0); /* tried again */
    run->found = j->id;
    run->trouble = r->trouble[run->board];
}

static void look_at_runs(struct round *r, const struct node_view *v)
{
    for (size_t k = 0; k < RUNS; k++)
        for (size_t i = 0; r->run[k].child && !r->run[k].job && i < v->n_jobs; i++)
            if (v->job[i].job->pid == loop_child_pid(r->run[k].child) &&
                !v->job[i].job->ended_ns)
                look_at_run(r, &r->run[k], v->job[i].job);
}

static void look(struct round *r)
{
    const struct node_view *v = r->node ? node_look(r->node) : NULL;

    r->looks++;
    for (size_t i = 0; i < r->n_boards; i++)
        look_at_limit(r, i);
    for (size_t i = 0; v && i < v->n_boards; i++) {
        const struct view_board *b = &v->board[i];
        for (size_t k = 0; k < b->cap.claims->n; k++)
            look_at_claim(r, i, &b->cap.claims->claim[k]);
        look_at_due(r, i, b);
        look_at_books(r, i, b);
    }
    if (v) {
        look_at_jobs(r, v);
        look_at_runs(r, v);
    }
}

/* ---- a round ---- */

static void settle(struct round *r)
{
    for (size_t i = 0; i < RUNS; i++)
        stop_run(r, &r->run[i]);
    r->service.stopped = false;
    if (r->disk_full)
        fill_disk(r, false);
    while (now_of(r) < r->fault_ns)
        pass(r, 1);
    if (!r->service.guard)
        start_guard(r);
    if (!r->node)
        begin_life(r);
    r->noise_ns = now_of(r);
    r->config.caps.always_hold = false;
    if (r->node)
        (void)node_configure(r->node, &r->config, NULL);
}

/* Jobs that were registered and whose programs ended while the daemon was dead: nobody
 * has told it, so they keep their searches' caps.
 */
static void end_jobs(struct round *r)
{
    uint64_t ids[KNOWN_MAX];
    const struct node_view *v = node_look(r->node);
    size_t n = 0;

    for (size_t i = 0; i < v->n_jobs && n < KNOWN_MAX; i++)
        ids[n++] = v->job[i].job->id;
    for (size_t i = 0; i < n; i++)
        (void)node_job_end(r->node, &root, ids[i], NULL);
}

/* Everything is quiet: claims are obeyed.  Then the daemon dies for good, or all claims
 * are withdrawn and all jobs ended; then nothing of ours is left.
 */
static void last_looks(struct round *r, bool dies)
{
    settle(r);
    for (int i = 0; i < 12 && !r->bad[0]; i++) {
        pass(r, 5);
        look(r);
    }
    if (r->bad[0])
        return;
    if (dies && r->node)
        kill_node(r);
    for (size_t i = 0; r->node && i < r->n_ours; i++)
        (void)node_withdraw(r->node, &root, r->ours[i].id, NULL);
    if (r->node)
        end_jobs(r);
    for (size_t i = 0; r->node && i < r->n_boards; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "%zu", i);
        (void)node_take_back(r->node, &root, name, NULL);
    }
    pass(r, r->hung ? 3700 : GRACE_S + LEASE_S + 20);
    for (size_t i = 0; i < r->n_boards; i++)
        if (virtual_world_locked_mhz(r->sim, i))
            bad(r, "board %zu: its clock is locked at the end (%s)", i,
                dies ? "the daemon dead" : "no claims");
    for (size_t i = 0; i < r->n_boards; i++)
        if (!is_theirs(r, limit_of(r, i)))
            bad(r, "board %zu: %u mW in force at the end (%s)", i, limit_of(r, i),
                dies ? "the daemon dead" : "no claims");
    if (entries_left(r))
        bad(r, "the actuator's journal is not empty at the end");
    if (r->node)
        kill_node(r);
    look_at_ledger(r);
}

/* Until then; what lasts longer than it took is looked at on the way. */
static void pass_until(struct round *r, uint64_t until_ns)
{
    while (now_of(r) < until_ns && !r->bad[0]) {
        uint64_t left = until_ns - now_of(r);
        pass(r, s_of_ns(left < 5 * NS_PER_S ? left : 5 * NS_PER_S));
        if (now_of(r) < r->fault_ns)
            r->noise_ns = now_of(r);
        look(r);
    }
}

static void play(struct round *r, const struct schedule *s)
{
    if (!open_round(r, s->seed, s->boards))
        bad(r, "no world");
    begin_life(r);
    uint64_t began_ns = now_of(r);
    for (size_t i = 0; i < s->n && !r->bad[0]; i++) {
        pass_until(r, began_ns + ns_of_s(s->moment[i].at_s));
        happen(r, &s->moment[i]);
    }
    if (!r->bad[0])
        pass_until(r, now_of(r) + NS_PER_S / 2);
    if (!r->bad[0])
        last_looks(r, s->dies);
    close_round(r);
}

/* ---- the text ---- */

static size_t split(char *line, char *word[], size_t max)
{
    size_t n = 0;
    char *hash = strchr(line, '#');

    if (hash)
        *hash = '\0';
    for (char *at = strtok(line, " \n"); at && n < max; at = strtok(NULL, " \n"))
        word[n++] = at;
    return n;
}

/* 0: taken; 1: another schedule begins here; -EINVAL. */
static int take_line(struct schedule *s, char *word[], size_t n)
{
    if (strcmp(word[0], "world") == 0)
        return 1;
    if (strcmp(word[0], "seed") == 0 && n == 2)
        return parse_u64(word[1], &s->seed, NULL);
    if (strcmp(word[0], "with") == 0 && n == 3) {
        s->dies = s->dies || strcmp(word[2], "dead") == 0;
        return strcmp(word[1], "boards") != 0 ? 0 : parse_u64(word[2], &s->boards, NULL);
    }
    if (strcmp(word[0], "at") != 0 || n < 3 || s->n == MOMENTS_MAX || !event_of(word[2]))
        return -EINVAL;
    struct moment *m = &s->moment[s->n++];
    *m = (struct moment){.at_s = strtod(word[1], NULL)};
    for (size_t i = 2; i < n && m->n_words < WORDS_MAX; i++)
        (void)snprintf(m->word[m->n_words++], sizeof m->word[0], "%s", word[i]);
    return 0;
}

static bool told(const struct schedule *s)
{
    static struct round r;

    play(&r, s);
    if (r.bad[0])
        printf("bad %" PRIu64 " %s\n", s->seed, r.bad);
    else
        printf("ok %" PRIu64 " %lu %lu %lu %lu %u\n", s->seed, r.looks, r.calm, r.users,
               r.locked, r.life);
    (void)fflush(stdout);
    return !r.bad[0];
}

int main(void)
{
    static struct schedule s;
    char line[300], copy[300], *word[WORDS_MAX + 2];
    bool good = true, any = false;

    log_set_level((enum log_level)(getenv("CHAOS_LOG") ? LOG_LEVEL_DEBUG : 0));
    (void)signal(SIGXFSZ, SIG_IGN);
    while (fgets(line, sizeof line, stdin)) {
        (void)snprintf(copy, sizeof copy, "%s", line);
        size_t n = split(line, word, n_elements(word));
        int taken = n ? take_line(&s, word, n) : 0;
        if (taken < 0) {
            (void)fprintf(stderr, "chaos-virtual: %s", copy);
            return 2;
        }
        if (taken == 1) {
            good = (!any || told(&s)) && good;
            s = (struct schedule){.seed = 1};
            any = true;
        }
    }
    return (!any || told(&s)) && good ? 0 : 1;
}
