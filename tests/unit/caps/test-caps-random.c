/* Claims, faults, other writers, actuators that go, at random, in virtual time.  What
 * must hold at any moment is looked at after each; at the end the originals are back.
 *
 * Usage: test-node-caps-random [SEED [ROUNDS]]
 */
#include "base/names.h"
#include "base/rng.h"
#include "unit/caps/caps-scene.h"

enum {
    HANG_S = 10,
    RESTORE_S = 6,  /* the actuator tries again every 5 s at the latest (core_retry_ns) */
    WRITE_MS = 200, /* a claim that has just ended: its raise is on its way */
    BOARDS = 3,
    EVENTS = 120,
    FOREIGN_MAX = 256,
    OURS_MAX = 64,
};

struct ours {
    size_t board;
    uint64_t id;
};

struct round {
    struct scene *s;
    struct rng g;
    struct caps_conf conf;
    struct ours ours[OURS_MAX];
    size_t n_ours;
    uint32_t foreign_mw[FOREIGN_MAX]; /* what others have ever set */
    size_t n_foreign;
    uint64_t foreign_ns, fault_ns; /* of the last; until when the last one lasts */
    bool hung;                     /* some call has not come back yet */
    bool dry_seen;                 /* writes are what they were when the dry run began */
    uint64_t writes[BOARDS];
    unsigned long looks, held, locked;
    char bad[300];
};

static uint64_t now_of(struct round *r)
{
    return loop_now_ns(r->s->loop);
}

__attribute__((format(printf, 2, 3))) static void bad(struct round *r, const char *format,
                                                      ...)
{
    va_list args;

    if (r->bad[0])
        return;
    va_start(args, format);
    (void)vsnprintf(r->bad, sizeof r->bad, format, args);
    va_end(args);
}

/* ---- what happens ---- */

static void do_claim(struct round *r)
{
    static const enum claim_kind kinds[] = {CLAIM_SOFT, CLAIM_NAMED, CLAIM_HARD};
    size_t board = rng_below(&r->g, BOARDS);
    struct claim c = {.kind = kinds[rng_below(&r->g, 3)],
                      .mw = W(150 + rng_below(&r->g, 151)),
                      .until_ns = CLAIM_FOREVER,
                      .job = rng_below(&r->g, 3)};

    if (rng_below(&r->g, 3) == 0) { /* on the clock */
        c.mw = 0;
        c.mhz = 150 + 15 * (uint32_t)rng_below(&r->g, 90);
    }
    c.way.own = c.kind != CLAIM_HARD && rng_below(&r->g, 2);
    if (c.way.own && rng_below(&r->g, 2)) {
        bool stops = rng_below(&r->g, 2);
        c.way.rate_mw_s = (c.mhz ? 1 : 1000) * (0.2 + 9 * rng_uniform(&r->g));
        c.way.first_mw = stops ? (c.mhz ? c.mhz + 100 : c.mw + 20000) : 0;
        c.way.check_units = stops ? 1 + (unsigned)rng_below(&r->g, 3) : 0;
    }
    if (rng_below(&r->g, 2))
        c.until_ns = now_of(r) + 1 + rng_below(&r->g, 60 * NS_PER_S);
    if (r->n_ours < OURS_MAX && caps_claim(r->s->caps, board, &c, &c.id, NULL) == 0)
        r->ours[r->n_ours++] = (struct ours){board, c.id};
}

static void do_withdraw(struct round *r)
{
    if (r->n_ours == 0)
        return;
    size_t i = rng_below(&r->g, r->n_ours);
    (void)caps_withdraw(r->s->caps, r->ours[i].board, r->ours[i].id, NULL);
    r->ours[i] = r->ours[--r->n_ours];
}

static void do_foreign(struct round *r)
{
    char text[64];
    double w = (double)(150 + rng_below(&r->g, 150)) + 0.3; /* never one of ours */

    if (r->n_foreign == FOREIGN_MAX)
        return;
    (void)snprintf(text, sizeof text, "%u limit %.1fW",
                   (unsigned)rng_below(&r->g, BOARDS), w);
    fault(r->s, text);
    r->foreign_mw[r->n_foreign++] = W(w);
    r->foreign_ns = now_of(r);
}

static void do_fault(struct round *r)
{
    static const char *const kinds[] = {"lost", "refuse", "ignore", "hang"};
    unsigned s = 1 + (unsigned)rng_below(&r->g, 20);
    size_t kind = rng_below(&r->g, r->hung ? 3 : 4); /* an hour, so once a round */
    char text[64];

    (void)snprintf(text, sizeof text, "%u %s for %us", (unsigned)rng_below(&r->g, BOARDS),
                   kinds[kind], s);
    r->hung = r->hung || kind == 3;
    fault(r->s, text);
    if (kind == 3)
        s += HANG_S; /* that is how long it takes until a hang is known for one */
    if (now_of(r) + s * NS_PER_S > r->fault_ns)
        r->fault_ns = now_of(r) + s * NS_PER_S;
}

static void do_reload(struct round *r)
{
    fault(r->s, "reload");
    r->foreign_ns = now_of(r);
}

/* With no fault about, since nobody restores for an actuator in virtual time. */
static void do_actuator(struct round *r)
{
    if (r->hung || now_of(r) < r->fault_ns + 10 * NS_PER_S)
        return;
    if (r->s->act)
        scene_no_actuator(r->s);
    else
        scene_actuator_quiet(r->s);
}

static void do_release(struct round *r)
{
    size_t board = rng_below(&r->g, BOARDS);

    if (caps_take_back(r->s->caps, board, NULL) < 0)
        (void)caps_release(r->s->caps, board, rng_below(&r->g, 20 * NS_PER_S), NULL, NULL,
                           NULL);
}

static void do_configure(struct round *r)
{
    r->conf.others = rng_below(&r->g, 2) ? CAPS_YIELD : CAPS_REASSERT;
    r->conf.always_hold = rng_below(&r->g, 4) == 0;
    r->conf.dry_run = rng_below(&r->g, 5) == 0;
    r->conf.clocks = rng_below(&r->g, 4) != 0;
    r->conf.cls.rate = rng_below(&r->g, 5) ? 0.1 * rng_uniform(&r->g) : 0;
    r->conf.yield_ns = NS_PER_S * (1 + rng_below(&r->g, 60));
    r->conf.reassert_ns = NS_PER_S * (1 + rng_below(&r->g, 10));
    caps_configure(r->s->caps, &r->conf);
    r->dry_seen = false;
}

static void do_work(struct round *r)
{
    struct caps_work work = {.demand_w = (double)rng_below(&r->g, 300),
                             .peak_w = (double)rng_below(&r->g, 300),
                             .counted = rng_below(&r->g, 2),
                             .progressing = rng_below(&r->g, 2)};

    caps_work(r->s->caps, rng_below(&r->g, BOARDS), &work);
}

static void do_units(struct round *r)
{
    if (r->n_ours == 0)
        return;
    const struct ours *o = &r->ours[rng_below(&r->g, r->n_ours)];
    caps_progressed(r->s->caps, o->board, o->id, 1 + (unsigned)rng_below(&r->g, 3));
}

static void happen(struct round *r)
{
    static void (*const often[])(struct round *) = {do_claim, do_claim, do_withdraw,
                                                    do_work, do_units};
    static void (*const seldom[])(struct round *) = {do_foreign,  do_fault,    do_reload,
                                                     do_actuator, do_actuator, do_release,
                                                     do_configure};

    if (rng_below(&r->g, 3))
        often[rng_below(&r->g, 5)](r);
    else
        seldom[rng_below(&r->g, 7)](r);
}

/* ---- what must hold ---- */

static void look_at_claims(struct round *r, size_t i, const struct caps_view *v)
{
    struct cap_verdict want;
    bool soft_alone = true;

    for (size_t k = 0; k < v->claims->n; k++) {
        const struct claim *c = &v->claims->claim[k];
        if (c->until_ns <= now_of(r))
            bad(r, "board %zu: claim %u is over and there", i, (unsigned)c->id);
        soft_alone = soft_alone && c->kind == CLAIM_SOFT;
    }
    cap_decide(v->claims, &v->bounds, &want);
    if (want.target_mw != v->verdict.target_mw || want.claim != v->verdict.claim)
        bad(r, "board %zu: the verdict is not that of its claims", i);
    if (soft_alone && v->verdict.target_mw < v->bounds.floor_mw &&
        v->verdict.target_mw < v->bounds.original_mw)
        bad(r, "board %zu: under the floor by soft claims", i);
}

/* What is shown is what is set, a write under way aside. */
static void look_at_shown(struct round *r, size_t i)
{
    uint32_t shown_mw = 0, set_mw = 1;

    for (int k = 0; k < 20 && shown_mw != set_mw; k++) {
        pass(r->s, 0.01);
        shown_mw = look(r->s, i).enforced_mw;
        set_mw = limit_of(r->s, i);
    }
    if (shown_mw != set_mw)
        bad(r, "board %zu: %u mW is set, %u is shown", i, set_mw, shown_mw);
}

/* What is set is what was decided, a write under way aside. */
static void look_at_set(struct round *r, size_t i)
{
    struct caps_view v = look(r->s, i);
    uint32_t mw = limit_of(r->s, i);
    uint64_t until_ns = now_of(r) + WRITE_MS * NS_PER_MS;

    while (v.state == CAPS_HELD && now_of(r) < until_ns &&
           (mw > v.verdict.at_once_mw || mw < v.verdict.target_mw)) {
        pass(r->s, 0.01);
        v = look(r->s, i);
        mw = limit_of(r->s, i);
    }
    if (v.state == CAPS_HELD && (mw > v.verdict.at_once_mw || mw < v.verdict.target_mw))
        bad(r, "board %zu: %u mW is set, outside %u..%u", i, mw, v.verdict.target_mw,
            v.verdict.at_once_mw);
}

/* The clock is not locked below what was decided, a write under way aside. */
static void look_at_lock(struct round *r, size_t i)
{
    struct caps_view v = look(r->s, i);
    uint64_t until_ns = now_of(r) + WRITE_MS * NS_PER_MS;

    while (v.state == CAPS_HELD && now_of(r) < until_ns && !v.clock.failed &&
           v.clock.locked_mhz && v.clock.locked_mhz < v.clock.verdict.target_mhz) {
        pass(r->s, 0.01);
        v = look(r->s, i);
    }
    if (v.state == CAPS_HELD && !v.clock.failed && v.clock.locked_mhz &&
        v.clock.locked_mhz < v.clock.verdict.target_mhz)
        bad(r, "board %zu: locked to %u MHz, wanted %u", i, v.clock.locked_mhz,
            v.clock.verdict.target_mhz);
}

/* Nothing but our own doing for a while: what is set is what was decided. */
static void look_at_limit(struct round *r, size_t i, const struct caps_view *v)
{
    uint32_t mhz = virtual_world_locked_mhz(r->s->world, i);
    uint64_t quiet_ns = r->foreign_ns > r->fault_ns ? r->foreign_ns : r->fault_ns;

    if (mhz && v->state == CAPS_FREE && now_of(r) > quiet_ns + RESTORE_S * NS_PER_S &&
        v->clock.locked_mhz == 0 && !r->hung)
        bad(r, "board %zu: nobody holds it, and its clock is locked to %u MHz", i, mhz);
    if (mhz && v->state == CAPS_HELD && v->clock.locked_mhz == mhz) {
        r->locked++;
        if (now_of(r) > quiet_ns + 2 * NS_PER_S)
            look_at_lock(r, i);
    }
    if (r->conf.dry_run) {
        if (r->dry_seen && v->writes != r->writes[i])
            bad(r, "board %zu: a write in a dry run", i);
        return;
    }
    if (v->state != CAPS_HELD || now_of(r) < quiet_ns + 2 * NS_PER_S || v->text[0])
        return;
    r->held++;
    look_at_set(r, i);
    look_at_shown(r, i);
}

static void look_at_all(struct round *r)
{
    for (size_t i = 0; i < BOARDS; i++) {
        struct caps_view v = look(r->s, i);
        look_at_claims(r, i, &v);
        look_at_limit(r, i, &v);
        r->writes[i] = v.writes;
        r->looks++;
    }
    r->dry_seen = r->conf.dry_run;
}

/* ---- a round ---- */

/* The original, a default after a reload, or another's: none of ours. */
static bool is_theirs(const struct round *r, uint32_t mw)
{
    bool theirs = mw == W(300);

    for (size_t i = 0; i < r->n_foreign; i++)
        theirs = theirs || mw == r->foreign_mw[i];
    return theirs;
}

static void look_at_end(struct round *r)
{
    if (r->s->act == NULL)
        scene_actuator_quiet(r->s);
    for (size_t i = 0; i < BOARDS; i++) {
        (void)caps_take_back(r->s->caps, i, NULL);
        for (struct caps_view v = look(r->s, i); v.claims->n; v = look(r->s, i))
            (void)caps_withdraw(r->s->caps, i, v.claims->claim[0].id, NULL);
    }
    r->conf.always_hold = r->conf.dry_run = false;
    caps_configure(r->s->caps, &r->conf);
    pass(r->s, 4000); /* a call that hangs comes back within an hour */
    for (size_t i = 0; i < BOARDS; i++) {
        struct caps_view v = look(r->s, i);
        uint32_t mw = limit_of(r->s, i);
        if (virtual_world_locked_mhz(r->s->world, i))
            bad(r, "board %zu: its clock is locked at the end", i);
        if (v.state != CAPS_FREE)
            bad(r, "board %zu: %s at the end: %s", i,
                names_word(NAMES_CAP_STATE, v.state), v.text);
        if (!is_theirs(r, mw) || mw != v.bounds.original_mw ||
            (!r->hung && mw != v.enforced_mw)) /* the sampler may hang, too */
            bad(r, "board %zu: %u mW at the end, the original %u, shown %u", i, mw,
                v.bounds.original_mw, v.enforced_mw);
    }
}

static void play(struct round *r, uint64_t seed)
{
    *r = (struct round){.conf = {.cls = CAP_CLASS_DEFAULT, .clocks = true}};
    rng_init(&r->g, seed);
    r->s = scene_quiet(BOARDS, &r->conf);
    for (int i = 0; i < EVENTS && !r->bad[0]; i++) {
        happen(r);
        if (rng_below(&r->g, 3) == 0)
            continue; /* several at once */
        pass(r->s, 0.3 + 4 * rng_uniform(&r->g));
        look_at_all(r);
    }
    if (!r->bad[0])
        look_at_end(r);
    scene_free(r->s);
}

int main(int argc, char **argv)
{
    uint64_t seed = 1, rounds = 60; /* the same in every run; others by hand */
    unsigned long looks = 0, held = 0, locked = 0;

    if ((argc > 1 && parse_u64(argv[1], &seed, NULL)) ||
        (argc > 2 && parse_u64(argv[2], &rounds, NULL)))
        return 2;
    for (uint64_t i = 0; i < rounds; i++) {
        static struct round r;
        play(&r, seed + i);
        looks += r.looks;
        held += r.held;
        locked += r.locked;
        if (r.bad[0])
            ok(false, "seed %llu: %s", (unsigned long long)(seed + i), r.bad);
    }
    ok(held > rounds && locked > rounds,
       "%llu rounds from seed %llu: %lu looks, %lu at boards held in peace, %lu with "
       "their "
       "clock locked",
       (unsigned long long)rounds, (unsigned long long)seed, looks, held, locked);
    return done();
}
