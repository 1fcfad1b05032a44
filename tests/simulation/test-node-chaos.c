/* A whole node at random, in virtual time: jobs, searches and claims come and go while
 * the daemon is killed, stopped, restarted, its actuator dies, the driver is loaded anew,
 * the machine reboots, boards hang, vanish and refuse, others write, the disk is full.
 * What must hold is looked at after each step, the ledger after each death; at the end
 * the originals are back.
 *
 * kill -9 of the daemon: its files are copied as they are, then it is freed; the next one
 * gets the copies, so nothing that the freed one wrote in order is in them.  The actuator
 * is a guard with grace and journal that outlives it.  SIGSTOP of the daemon is played as
 * silence: no renewal, nothing heard; its own timers go on, so what it decides meanwhile
 * fails.  kill -9 of the actuator restores at once, as its keeper does.  Real signals to
 * real processes: tests/system/test-chaos.py.
 *
 * Usage: test-node-chaos [SEED [ROUNDS]]
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/rng.h"
#include "simulation/chaos-scene.h"

/* ---- what happens ---- */

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

static void do_claim(struct round *r)
{
    static const enum claim_kind kinds[] = {CLAIM_SOFT, CLAIM_NAMED, CLAIM_HARD};
    size_t board = below(r, r->n_boards);
    const struct node_who *who = below(r, 3) ? &root : &anna;
    enum claim_kind kind = kinds[below(r, 3)];
    uint32_t mw = (uint32_t)(150 + below(r, 100)) * 1000;
    uint64_t ttl_ns = below(r, 4) || who == &anna ? ns_of_s(3 + (double)below(r, 60)) : 0;
    char name[24];
    struct node_claim ask = {
        .board = name, .kind = kind, .cap = {.mw = mw}, .ttl_ns = ttl_ns, .why = "chaos"};
    uint64_t id = 0;

    if (below(r, 3) == 0) { /* on the clock */
        mw = 0;
        ask.cap.mw = 0;
        ask.clock_mhz = (uint32_t)(300 + 15 * below(r, 80));
    }
    (void)snprintf(name, sizeof name, "%zu", board);
    if (!r->node || node_claim(r->node, who, &ask, &id, NULL) < 0)
        return;
    if (getenv("CHAOS_LOG"))
        printf("#   %" PRIu64 ": %s on %zu, %u mW, %u MHz for %.1f s, %s\n", id,
               claim_kind_name(kind), board, mw, ask.clock_mhz, s_of_ns(ttl_ns),
               who->name);
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

static void do_withdraw(struct round *r)
{
    if (r->n_ours == 0 || !r->node)
        return;
    struct ours *o = &r->ours[below(r, r->n_ours)];
    if (node_withdraw(r->node, &root, o->id, NULL) < 0)
        return;
    o->withdrawn_ns = now_of(r);
    o->unsure = o->unsure || r->disk_full;
}

static void do_job(struct round *r)
{
    struct run *run = &r->run[below(r, RUNS)];

    if (run->child)
        end_run(r, run);
    else if (r->node)
        begin_run(r, run);
}

static void do_kill_node(struct round *r)
{
    if (!r->node) {
        begin_life(r);
        return;
    }
    if (below(r, 6) == 0)
        end_node(r);
    else
        kill_node(r);
    r->back_ns = now_of(r) + ns_of_s(0.2 + (below(r, 2) ? 6 : 25) * rng_uniform(&r->g));
}

static void do_stop(struct round *r)
{
    r->service.stopped = true;
    r->awake_ns = now_of(r) + ns_of_s(0.3 + 7 * rng_uniform(&r->g));
}

static void do_kill_actuator(struct round *r)
{
    if (!r->service.guard || r->hung)
        return; /* who hangs in the driver is waited for by its keeper, not here */
    if (now_of(r) < r->fault_ns + 10 * NS_PER_S)
        return; /* its keeper goes on trying; here it is tried once */
    stop_guard(r);
    r->guard_ns = now_of(r) + ns_of_s(0.2 + 4 * rng_uniform(&r->g));
}

static void do_reload(struct round *r)
{
    fault(r, "reload");
    r->may_default = true;
}

static void do_reboot(struct round *r)
{
    if (r->hung)
        return;
    if (r->node)
        kill_node(r);
    for (size_t i = 0; i < RUNS; i++)
        end_run(r, &r->run[i]);
    stop_guard(r);
    fault(r, "reload");
    r->may_default = true;
    r->boot++;
    (void)snprintf(r->boot_id, sizeof r->boot_id, "boot-%u", r->boot);
    for (size_t i = 0; i < r->n_ours; i++)
        r->ours[i].rebooted = true;
    r->guard_ns = now_of(r) + ns_of_s(1 + rng_uniform(&r->g));
    r->back_ns = now_of(r) + ns_of_s(1 + 3 * rng_uniform(&r->g));
}

static void do_fault(struct round *r)
{
    static const char *const kinds[] = {"lost", "refuse", "hang"};
    unsigned s = 1 + (unsigned)below(r, 20);
    size_t kind = below(r, r->may_hang && !r->hung ? 3 : 2);
    char text[64];

    if (r->hung)
        return; /* a call that takes an hour has moved the boards' clock on */
    (void)snprintf(text, sizeof text, "%u %s for %us", (unsigned)below(r, r->n_boards),
                   kinds[kind], s);
    r->hung = r->hung || kind == 2;
    fault(r, text);
    if (now_of(r) + s * NS_PER_S > r->fault_ns)
        r->fault_ns = now_of(r) + s * NS_PER_S;
}

static void do_foreign(struct round *r)
{
    char text[64];
    double w = (double)(150 + below(r, 100)) + 0.3; /* never one of ours */

    if (r->n_foreign == FOREIGN_MAX)
        return;
    (void)snprintf(text, sizeof text, "%u limit %.1fW", (unsigned)below(r, r->n_boards),
                   w);
    fault(r, text);
    r->foreign_mw[r->n_foreign++] = (uint32_t)lround(w * 1000);
}

static void do_release(struct round *r)
{
    char name[24];

    (void)snprintf(name, sizeof name, "%zu", (size_t)below(r, r->n_boards));
    if (r->node && node_take_back(r->node, &root, name, NULL) < 0)
        (void)node_release(r->node, &root, name, 1 + below(r, 20 * NS_PER_S), NULL, NULL,
                           NULL);
}

static void do_configure(struct round *r)
{
    r->config.caps.others = below(r, 2) ? CAPS_YIELD : CAPS_REASSERT;
    r->config.caps.always_hold = below(r, 4) == 0;
    r->config.caps.yield_ns = NS_PER_S * (1 + below(r, 20));
    r->config.caps.reassert_ns = NS_PER_S * (1 + below(r, 4));
    if (r->node)
        (void)node_configure(r->node, &r->config, NULL);
}

static void do_disk(struct round *r)
{
    if (!r->disk_full)
        fill_disk(r, true);
    r->disk_ns = now_of(r) + ns_of_s(1 + 15 * rng_uniform(&r->g));
}

/* Twice as often what is at the top, as it stands there twice. */
static const struct event {
    void (*fn)(struct round *);
    const char *name;
} often[] = {{do_claim, "claim"},
             {do_claim, "claim"},
             {do_withdraw, "withdraw"},
             {do_job, "job"}},
  seldom[] = {{do_kill_node, "kill or start the daemon"},
              {do_kill_node, "kill or start the daemon"},
              {do_kill_node, "kill or start the daemon"},
              {do_fault, "fault"},
              {do_fault, "fault"},
              {do_stop, "stop"},
              {do_kill_actuator, "kill the actuator"},
              {do_reload, "reload"},
              {do_reboot, "reboot"},
              {do_foreign, "another writer"},
              {do_release, "release or take back"},
              {do_configure, "configure"},
              {do_disk, "full disk"}};

static void happen(struct round *r)
{
    bool loud = below(r, 3) == 0;
    const struct event *e = loud ? &seldom[below(r, n_elements(seldom))]
                                 : &often[below(r, n_elements(often))];

    if (getenv("CHAOS_LOG"))
        printf("# %.3f s: %s\n", s_between(1000 * NS_PER_S, now_of(r)), e->name);
    if (loud)
        r->noise_ns = now_of(r);
    e->fn(r);
}

/* What was taken away comes back when its time has come. */
static void come_back(struct round *r)
{
    uint64_t now = now_of(r);

    if (r->service.stopped && now >= r->awake_ns) {
        r->service.stopped = false;
        r->noise_ns = now;
    }
    if (r->disk_full && now >= r->disk_ns)
        fill_disk(r, false);
    if (!r->service.guard && now >= r->guard_ns) {
        start_guard(r);
        r->noise_ns = now;
    }
    if (!r->node && now >= r->back_ns)
        begin_life(r);
    if (now < r->fault_ns)
        r->noise_ns = now;
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
    if (c->walked || (c->job && !o))
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
                caps_state_name(b->cap.state), b->cap.text, o->mw);
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
        } else if (k < KNOWN_MAX &&
                   llabs(r->known[k].began_utc_ns - j->began_utc_ns) > 1500000000) {
            bad(r, "job %" PRIu64 " began twice", j->id);
        }
        if (j->id > r->top_job)
            r->top_job = j->id;
    }
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
    if (v)
        look_at_jobs(r, v);
}

/* ---- a round ---- */

static void settle(struct round *r)
{
    for (size_t i = 0; i < RUNS; i++)
        end_run(r, &r->run[i]);
    r->awake_ns = r->disk_ns = r->guard_ns = r->back_ns = 0;
    while (now_of(r) < r->fault_ns)
        pass(r, 1);
    come_back(r);
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
static void last_looks(struct round *r)
{
    bool dies = below(r, 2);

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

static void play(struct round *r, uint64_t seed)
{
    if (!open_round(r, seed, 0))
        bad(r, "no world");
    begin_life(r);
    for (int i = 0; i < EVENTS && !r->bad[0]; i++) {
        happen(r);
        if (below(r, 3) == 0)
            continue; /* several at once */
        pass(r, 0.1 + 3 * rng_uniform(&r->g));
        come_back(r);
        look(r);
    }
    if (!r->bad[0])
        last_looks(r);
    close_round(r);
}

int main(int argc, char **argv)
{
    static struct round r;
    uint64_t seed = 1, rounds = getenv("UNDERWATT_SANITIZED") ? 60 : 200;
    unsigned long looks = 0, calm = 0, lives = 0, locked = 0, users = 0;

    if ((argc > 1 && parse_u64(argv[1], &seed, NULL)) ||
        (argc > 2 && parse_u64(argv[2], &rounds, NULL)))
        return 2;
    log_set_level((enum log_level)(getenv("CHAOS_LOG") ? LOG_LEVEL_DEBUG : 0));
    (void)signal(SIGXFSZ, SIG_IGN);
    for (uint64_t i = 0; i < rounds; i++) {
        play(&r, seed + i);
        looks += r.looks;
        calm += r.calm;
        locked += r.locked;
        users += r.users;
        lives += r.life;
        if (r.bad[0])
            ok(false, "seed %" PRIu64 ": %s", seed + i, r.bad);
    }
    ok(rounds < 50 || (calm > rounds / 4 && locked > rounds && users > rounds / 4),
       "%" PRIu64 " rounds from seed %" PRIu64
       ": %lu looks, %lu at hard claims in peace, %lu at users' claims, %lu at locked "
       "clocks, %lu lives of the daemon",
       rounds, seed, looks, calm, users, locked, lives);
    return done();
}
