/* Claims on the clock in virtual time: from the claim to the clock that the board runs
 * at. */
#include <errno.h>

#include "base/error.h"
#include "base/names.h"
#include "caps/caps-inside.h"
#include "unit/caps/caps-scene.h"

/* At once, but for the stay; 1 % of 1530 MHz a second. */
static const struct caps_conf conf = {.cls = {.first = 0.9, .floor = 0.5, .rate = 0.01},
                                      .clocks = true};

static uint64_t clock_claim(struct scene *s, size_t board, enum claim_kind kind,
                            uint32_t mhz)
{
    struct claim claim = {.kind = kind, .mhz = mhz, .until_ns = CLAIM_FOREVER};
    uint64_t id = 0;
    uw_error err = {""};

    if (caps_claim(s->caps, board, &claim, &id, &err) < 0)
        ok(false, "%s claim of %u MHz: %s", names_word(NAMES_CLAIM_KIND, kind), mhz,
           err.text);
    return id;
}

static struct gpu_sample sample_of(struct scene *s, size_t board)
{
    struct gpu_sample sample = {0};

    (void)virtual_backend.sample(virtual_backend.at(boards_lib(s->boards), board), ~0u,
                                 &sample, NULL);
    return sample;
}

static int on_child(struct loop_child *child, int status, void *user)
{
    (void)child;
    (void)status;
    (void)user;
    return 0;
}

static struct loop_child *train(struct scene *s, const char *gpus)
{
    const char *argv[] = {"train", "--gpus",   gpus,     "--phases",
                          "train", "--epochs", "100000", NULL};
    const struct loop_child_opts opts = {
        .argv = argv, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    struct loop_child *child = NULL;
    uw_error err = {""};

    ok(loop_child_new(s->loop, &opts, on_child, s, &child, &err) == 0, "a job %s",
       err.text);
    pass(s, 2);
    return child;
}

static void test_life(void)
{
    struct scene *s = scene_new("the life of a lock", 2, &conf);
    struct loop_child *job = train(s, "0,1");
    uint32_t free_mhz = sample_of(s, 0).sm_mhz;

    ok(free_mhz > 1100, "%u MHz without a lock", free_mhz);
    uint64_t id = clock_claim(s, 0, CLAIM_HARD, 900);
    pass(s, 0.3);
    struct caps_view v = look(s, 0);
    is_state(s, 0, CAPS_HELD, "held");
    is_limit(s, 0, 300, "the limit is left alone");
    ok(v.clock.can && v.clock.on && v.clock.locked_mhz == 900 &&
           v.clock.verdict.claim == id && v.clock.writes == 1 && v.writes == 0,
       "locked to %u MHz by claim %u", v.clock.locked_mhz,
       (unsigned)v.clock.verdict.claim);
    is_met(s, 0, id, CAPS_MET, "in force");
    ok(sample_of(s, 0).sm_mhz <= 900 && sample_of(s, 1).sm_mhz == free_mhz,
       "the board runs at %u MHz, the other as before", sample_of(s, 0).sm_mhz);
    is_int(told(s, CAPS_EVENT_CLOCK), 1, "told once");
    pass(s, 60);
    v = look(s, 0);
    ok(v.clock.locked_mhz == 900 && v.clock.disobeyed == 0 && v.clock.writes == 1,
       "a minute later nothing has moved");
    withdraw(s, 0, id);
    pass(s, 0.5);
    is_state(s, 0, CAPS_FREE, "withdrawn: given back");
    ok(sample_of(s, 0).sm_mhz == free_mhz && look(s, 0).clock.locked_mhz == 0,
       "its clock is free");
    is_int(told(s, CAPS_EVENT_CLOCK), 2, "told");
    is_int(told(s, CAPS_EVENT_FAIL), 0, "no failure");
    (void)loop_child_kill(job, 9);
    scene_free(s);
}

/* Both kinds on one board; neither moves the other. */
static void test_both(void)
{
    struct scene *s = scene_new("watts and clock", 1, &conf);

    uint64_t clock = clock_claim(s, 0, CLAIM_HARD, 1005);
    uint64_t watts = claim(s, 0, CLAIM_HARD, 200);
    pass(s, 0.5);
    is_limit(s, 0, 200, "the cap");
    is_int((int)look(s, 0).clock.locked_mhz, 1005, "and the lock");
    withdraw(s, 0, watts);
    pass(s, 0.5);
    is_limit(s, 0, 300, "the cap goes");
    is_int((int)look(s, 0).clock.locked_mhz, 1005, "the lock stays");
    is_state(s, 0, CAPS_HELD, "and the board is held for it");
    watts = claim(s, 0, CLAIM_HARD, 180);
    withdraw(s, 0, clock);
    pass(s, 0.5);
    is_limit(s, 0, 180, "a cap");
    is_int((int)look(s, 0).clock.locked_mhz, 0, "without a lock");
    withdraw(s, 0, watts);
    pass(s, 0.5);
    is_state(s, 0, CAPS_FREE, "all gone");
    scene_free(s);
}

static void test_ramp(void)
{
    struct scene *s = scene_new("the way down", 1, &conf);
    uint64_t id = clock_claim(s, 0, CLAIM_NAMED, 1005);

    pass(s, 1);
    is_int((int)look(s, 0).clock.locked_mhz, 1377, "to 0.90 of the highest at once");
    is_met(s, 0, id, CAPS_COMING, "on the way");
    pass(s, 28);
    is_int((int)look(s, 0).clock.locked_mhz, 1377, "a stay, as nobody counts steps");
    pass(s, 12);
    uint32_t at = look(s, 0).clock.locked_mhz;
    ok(at < 1300 && at > 1150, "then 15 MHz a second: %u", at);
    clock_claim(s, 0, CLAIM_HARD, 1100);
    pass(s, 0.3);
    ok(look(s, 0).clock.locked_mhz <= 1100, "a hard one at once");
    pass(s, 20);
    is_int((int)look(s, 0).clock.locked_mhz, 1005, "there");
    is_met(s, 0, id, CAPS_MET, "in force");
    uint64_t soft = clock_claim(s, 0, CLAIM_SOFT, 300);
    withdraw(s, 0, id);
    pass(s, 60);
    is_int((int)look(s, 0).clock.locked_mhz, 765,
           "a soft one stops at half of the highest");
    is_met(s, 0, soft, CAPS_MET, "in force");
    scene_free(s);
}

static void lock_by(struct scene *s, uint64_t *id, uint32_t mhz, unsigned check_units)
{
    struct claim claim = {.id = *id,
                          .kind = CLAIM_SOFT,
                          .source = CLAIM_OF_SEARCH,
                          .mhz = mhz,
                          .way = {.own = true,
                                  .rate_mw_s = 10,
                                  .first_mw = check_units ? 1050 : 0,
                                  .check_units = check_units},
                          .until_ns = CLAIM_FOREVER};
    uw_error err = {""};

    if (caps_claim(s->caps, 0, &claim, id, &err) < 0)
        ok(false, "a lock of %u MHz: %s", mhz, err.text);
}

/* As the search goes to a lock: from the clock that the board runs at, at its own rate.
 */
static void test_own_way(void)
{
    struct scene *s = scene_new("a lock's own way", 1, &conf);
    struct loop_child *job = train(s, "0");
    uint64_t id = 0;

    claim(s, 0, CLAIM_HARD, 210);
    pass(s, 5);
    uint32_t free_mhz = sample_of(s, 0).sm_mhz;
    ok(free_mhz > 1100 && free_mhz < 1500, "the board runs at %u MHz", free_mhz);
    lock_by(s, &id, 1005, 0);
    pass(s, 0.3);
    uint32_t at = look(s, 0).clock.locked_mhz;
    ok(at <= free_mhz && at > free_mhz - 30, "the first lock is what it runs at: %u", at);
    pass(s, 10);
    at = look(s, 0).clock.locked_mhz;
    ok(at <= free_mhz - 85 && at >= free_mhz - 120, "then 10 MHz a second: %u", at);
    ok(look(s, 0).clock.ramping, "it says so");
    pass(s, 40);
    is_int((int)look(s, 0).clock.locked_mhz, 1005, "there");
    ok(!look(s, 0).clock.ramping, "and no more on the way");
    lock_by(s, &id, 1095, 0);
    pass(s, 0.5);
    is_int((int)look(s, 0).clock.locked_mhz, 1095, "up at once");
    lock_by(s, &id, 900, 2);
    pass(s, 60);
    is_int((int)look(s, 0).clock.locked_mhz, 1050, "a stop at its first step");
    caps_progressed(s->caps, 0, id + 1, 9);
    caps_progressed(s->caps, 0, id, 1);
    pass(s, 60);
    is_int((int)look(s, 0).clock.locked_mhz, 1050, "one unit of two");
    caps_progressed(s->caps, 0, id, 1);
    pass(s, 20);
    is_int((int)look(s, 0).clock.locked_mhz, 900, "the second ends it");
    withdraw(s, 0, id);
    pass(s, 0.5);
    is_int((int)look(s, 0).clock.locked_mhz, 0, "withdrawn");
    id = 0;
    (void)loop_child_kill(job, 9);
    pass(s, 30);
    lock_by(s, &id, 1005, 0);
    pass(s, 3);
    ok(look(s, 0).clock.locked_mhz > free_mhz, "a clock seen long ago is none: %u",
       look(s, 0).clock.locked_mhz);
    scene_free(s);
}

static void test_refused(void)
{
    /* clang-format off */
    static const struct {
        const char *name;
        uint32_t mhz, mw;
        enum claim_kind kind;
        int r;
        const char *text;
    } cases[] = {
        {"under the lowest", 100, 0, CLAIM_NAMED, -ERANGE, "100 MHz is outside 135..1530 MHz"},
        {"above the highest", 1545, 0, CLAIM_HARD, -ERANGE, "1545 MHz is outside 135..1530 MHz"},
        {"both", 900, 200000, CLAIM_NAMED, -EINVAL, "make two"},
        {"neither", 0, 0, CLAIM_NAMED, -EINVAL, "0 mW"},
    };
    /* clang-format on */
    struct caps_conf off = conf;
    struct scene *s = scene_new("claims that are refused", 1, &conf);
    uw_error err = {""};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct claim c = {.kind = cases[i].kind,
                                .mhz = cases[i].mhz,
                                .mw = cases[i].mw,
                                .until_ns = CLAIM_FOREVER};
        int r = caps_claim(s->caps, 0, &c, NULL, &err);
        ok(r == cases[i].r && strstr(err.text, cases[i].text), "%s: %d, %s",
           cases[i].name, r, err.text);
    }
    ok(look(s, 0).claims->n == 0, "nothing has changed");
    off.clocks = false;
    uint64_t id = clock_claim(s, 0, CLAIM_HARD, 900);
    pass(s, 0.5);
    caps_configure(s->caps, &off);
    pass(s, 0.5);
    ok(look(s, 0).clock.locked_mhz == 0, "clocks are turned off: the lock goes");
    is_met(s, 0, id, CAPS_NOT_MET, "not in force: locked clocks are off");
    const struct claim c = {.kind = CLAIM_NAMED, .mhz = 900, .until_ns = CLAIM_FOREVER};
    ok(caps_claim(s->caps, 0, &c, NULL, &err) == -ENOTSUP &&
           strstr(err.text, "caps.clocks"),
       "and another is refused: %s", err.text);
    scene_free(s);
}

/* A board that takes the lock and runs on as it likes. */
static void test_disobeyed(void)
{
    struct scene *s = scene_new("a lock that is not obeyed", 1, &conf);
    struct loop_child *job = train(s, "0");

    fault(s, "0 ignore");
    uint64_t id = clock_claim(s, 0, CLAIM_HARD, 900);
    pass(s, 1);
    is_met(s, 0, id, CAPS_MET, "in force");
    pass(s, 10);
    struct caps_view v = look(s, 0);
    ok(v.clock.disobeyed == 1 && v.clock.locked_mhz == 0 && v.clock.failed,
       "seen under load, counted, given back: %s", v.clock.text);
    is_met(s, 0, id, CAPS_NOT_MET, "not in force: GPU-");
    is_int(told(s, CAPS_EVENT_FAIL), 1, "said");
    is_state(s, 0, CAPS_FREE, "nothing holds the board");
    pass(s, 600);
    is_int((int)look(s, 0).clock.disobeyed, 1, "and not tried again");
    fault(s, "0 heed");
    clock_claim(s, 0, CLAIM_HARD, 1005);
    pass(s, 20);
    v = look(s, 0);
    ok(v.clock.locked_mhz == 900 && v.clock.disobeyed == 1,
       "until the claims change: %u MHz", v.clock.locked_mhz);
    (void)loop_child_kill(job, 9);
    scene_free(s);
}

static void test_troubles(void)
{
    struct scene *s = scene_new("troubles", 1, &conf);

    uint64_t id = clock_claim(s, 0, CLAIM_HARD, 900);
    pass(s, 0.5);
    scene_no_actuator(s);
    is_int((int)look(s, 0).clock.locked_mhz, 0, "the actuator is gone, the lock with it");
    is_met(s, 0, id, CAPS_NOT_MET, "not in force: ");
    scene_actuator(s);
    pass(s, 1);
    is_int((int)look(s, 0).clock.locked_mhz, 900, "another one: locked again");
    fault(s, "reload");
    pass(s, 3);
    uint64_t watts = claim(s, 0, CLAIM_HARD, 200);
    pass(s, 3);
    is_int((int)look(s, 0).clock.locked_mhz, 900,
           "a driver that was loaded anew: locked again with the next write");
    withdraw(s, 0, watts);
    pass(s, 1);
    fault(s, "0 refuse");
    clock_claim(s, 0, CLAIM_HARD, 600);
    pass(s, 5);
    struct caps_view v = look(s, 0);
    ok(v.clock.locked_mhz == 900 && v.clock.failures >= 1 && v.clock.failed,
       "a lock that is refused: the one before stays: %s", v.clock.text);
    is_int(told(s, CAPS_EVENT_FAIL), 1, "said once");
    fault(s, "0 accept");
    pass(s, 120);
    is_int((int)look(s, 0).clock.locked_mhz, 600, "tried again");
    scene_free(s);
}

/* ---- what root's configuration refuses, and resets that fail ---- */

static struct {
    uint32_t most_mhz, most_mw; /* 0: the board's */
    int reset_r;
} root;

static int lock_below(struct gpu_dev *dev, uint32_t min_mhz, uint32_t max_mhz,
                      uw_error *err)
{
    if (root.most_mhz && max_mhz > root.most_mhz)
        return fail(err, -ERANGE, "more than %u MHz", root.most_mhz);
    return virtual_backend.lock_clocks(dev, min_mhz, max_mhz, err);
}

static int reset_or_fail(struct gpu_dev *dev, uw_error *err)
{
    return root.reset_r ? fail(err, root.reset_r, "the reset fails")
                        : virtual_backend.reset_clocks(dev, err);
}

/* The original may always be set. */
static int limit_below(struct gpu_dev *dev, uint32_t mw, uw_error *err)
{
    if (root.most_mw && mw > root.most_mw && mw != W(300))
        return fail(err, -ERANGE, "more than %u mW", root.most_mw);
    return virtual_backend.set_limit(dev, mw, err);
}

static struct scene *bounded_scene(const char *name, uint32_t most_mhz, double most_w)
{
    static struct gpu_backend bounded;
    struct scene *s = scene_boards(name, 1);
    const struct actuator_opts opts = {
        .on_ready = scene_on_ready, .on_event = scene_on_event, .user = s};
    uw_error err = {""};

    root.most_mhz = most_mhz;
    root.most_mw = W(most_w);
    root.reset_r = 0;
    bounded = virtual_backend;
    bounded.lock_clocks = lock_below;
    bounded.reset_clocks = reset_or_fail;
    bounded.set_limit = limit_below;
    scene_caps(s, &conf);
    ok(actuator_start_virtual(s->loop, &bounded, boards_lib(s->boards), &opts, &s->act,
                              &err) == 0,
       "an actuator with its own range starts %s", err.text);
    pass(s, 0.5);
    return s;
}

static void test_too_low(void)
{
    struct scene *s = bounded_scene("a lower lock that stands", 1200, 0);
    uint64_t hard = clock_claim(s, 0, CLAIM_HARD, 900);
    uint64_t named = clock_claim(s, 0, CLAIM_NAMED, 1300);

    pass(s, 1);
    is_int((int)look(s, 0).clock.locked_mhz, 900, "the hard one is in force");
    withdraw(s, 0, hard);
    pass(s, 1);
    is_int((int)look(s, 0).clock.locked_mhz, 0,
           "1300 MHz are refused: the lock at 900, which nobody wants, is given back");
    is_met(s, 0, named, CAPS_NOT_MET, "not in force: GPU-");
    is_int(told(s, CAPS_EVENT_FAIL), 1, "said");
    uint64_t writes = look(s, 0).clock.writes;
    pass(s, 1000);
    ok(look(s, 0).clock.writes == writes && told(s, CAPS_EVENT_FAIL) == 1 &&
           look(s, 0).clock.failures < 12,
       "and tried seldom: %u failures", (unsigned)look(s, 0).clock.failures);
    root.most_mhz = 0;
    pass(s, 400);
    is_int((int)look(s, 0).clock.locked_mhz, 1300, "once it may be: locked");
    is_met(s, 0, named, CAPS_MET, "in force");
    scene_free(s);
}

static void test_first_step_refused(void)
{
    struct scene *s = bounded_scene("a first step that is refused", 1200, 0);
    uint64_t id = clock_claim(s, 0, CLAIM_NAMED, 1005);

    pass(s, 20);
    is_int((int)look(s, 0).clock.locked_mhz, 0, "1377 MHz are refused");
    is_met(s, 0, id, CAPS_NOT_MET, "not in force: GPU-");
    pass(s, 25);
    uint32_t at = look(s, 0).clock.locked_mhz;
    ok(at > 1100 && at <= 1200, "the way goes on to what may be: %u MHz", at);
    pass(s, 20);
    is_int((int)look(s, 0).clock.locked_mhz, 1005, "and there");
    is_met(s, 0, id, CAPS_MET, "in force");
    scene_free(s);
}

/* The same where steps are counted: no stay waits for them under no lock. */
static void test_first_step_refused_counted(void)
{
    struct scene *s = bounded_scene("a refused first step, steps counted", 1200, 0);
    const struct caps_work work = {.counted = true, .progressing = true};
    uint64_t id = clock_claim(s, 0, CLAIM_NAMED, 1005);

    for (int i = 0; i < 90; i++) {
        pass(s, 0.5);
        caps_work(s->caps, 0, &work);
    }
    is_int((int)look(s, 0).clock.locked_mhz, 1005, "the way goes on to what may be");
    is_met(s, 0, id, CAPS_MET, "in force");
    scene_free(s);
}

static void test_first_cap_refused(void)
{
    struct scene *s = bounded_scene("a first cap that is refused", 0, 200);
    const struct caps_work work = {.demand_w = 280, .peak_w = 280};

    caps_work(s->caps, 0, &work);
    uint64_t id = claim(s, 0, CLAIM_NAMED, 170);
    pass(s, 20);
    is_limit(s, 0, 300, "252 W are refused");
    is_met(s, 0, id, CAPS_NOT_MET, "not in force: ");
    pass(s, 120);
    is_limit(s, 0, 170, "the way goes on");
    is_met(s, 0, id, CAPS_MET, "in force");
    scene_free(s);
}

/* While nothing may be locked nothing is walked, so that the next lock is a first step.
 */
static void test_no_silent_way(void)
{
    struct caps_conf off = conf;
    struct scene *s = scene_new("no way while nothing is locked", 1, &conf);
    struct loop_child *job = train(s, "0");

    (void)claim(s, 0, CLAIM_HARD, 250);
    clock_claim(s, 0, CLAIM_NAMED, 600);
    pass(s, 1);
    off.clocks = false;
    caps_configure(s->caps, &off);
    pass(s, 100);
    is_int((int)look(s, 0).clock.locked_mhz, 0, "turned off");
    caps_configure(s->caps, &conf);
    pass(s, 1);
    is_int((int)look(s, 0).clock.locked_mhz, 1377, "and on: the first step");

    fault(s, "0 ignore");
    clock_claim(s, 0, CLAIM_NAMED, 585);
    for (int i = 0; i < 100 && !look(s, 0).clock.given_up; i++)
        pass(s, 1);
    ok(look(s, 0).clock.given_up, "given up");
    pass(s, 100);
    fault(s, "0 heed");
    clock_claim(s, 0, CLAIM_NAMED, 570);
    pass(s, 1);
    is_int((int)look(s, 0).clock.locked_mhz, 1377, "then the first step again");
    (void)loop_child_kill(job, 9);
    scene_free(s);
}

/* A reset waits for no older failure. */
static void test_reset_at_once(void)
{
    struct caps_conf off = conf;
    struct scene *s = scene_new("a reset waits for nothing", 1, &conf);

    (void)claim(s, 0, CLAIM_HARD, 250);
    clock_claim(s, 0, CLAIM_HARD, 900);
    pass(s, 1);
    fault(s, "0 refuse");
    clock_claim(s, 0, CLAIM_HARD, 600);
    pass(s, 1);
    fault(s, "0 accept");
    ok(look(s, 0).clock.failed, "a try waits");
    off.clocks = false;
    caps_configure(s->caps, &off);
    pass(s, 1);
    is_int((int)look(s, 0).clock.locked_mhz, 0, "turned off: reset at once");
    scene_free(s);
}

/* Steps that were done before the lock was there do not end the stay. */
static void test_steps_before(void)
{
    struct scene *s = scene_new("steps before the lock", 1, &conf);
    const struct caps_work work = {.counted = true, .progressing = true};

    (void)claim(s, 0, CLAIM_HARD, 250);
    pass(s, 1);
    clock_claim(s, 0, CLAIM_NAMED, 1005);
    caps_work(s->caps, 0, &work);
    is_int((int)look(s, 0).clock.locked_mhz, 0, "asked for, not there yet");
    pass(s, 5);
    is_int((int)look(s, 0).clock.locked_mhz, 1377, "the stay goes on");
    is_int(told(s, CAPS_EVENT_CLOCK), 1, "it is told, so that steps count from there");
    caps_work(s->caps, 0, &work);
    pass(s, 5);
    ok(look(s, 0).clock.locked_mhz < 1350, "steps with it: on the way");
    scene_free(s);
}

/* The hold is over, and nobody has said that the lock is reset. */
static void test_unconfirmed(void)
{
    struct scene *s = bounded_scene("a reset that is not confirmed", 0, 0);
    uint64_t id = clock_claim(s, 0, CLAIM_HARD, 900);

    pass(s, 1);
    ok(!look(s, 0).unrestored, "held");
    root.reset_r = -EIO;
    withdraw(s, 0, id);
    pass(s, 5);
    struct caps_view v = look(s, 0);
    ok(v.unrestored && v.clock.locked_mhz == 0, "withdrawn, the reset fails: unrestored");
    is_int(told(s, CAPS_EVENT_CLOCK), 1, "that it is no longer locked is not told");
    root.reset_r = 0;
    pass(s, 30);
    id = clock_claim(s, 0, CLAIM_HARD, 900);
    pass(s, 40);
    is_met(s, 0, id, CAPS_MET, "in force");
    withdraw(s, 0, id);
    pass(s, 5);
    ok(!look(s, 0).unrestored, "held and given back again: restored");
    is_int(told(s, CAPS_EVENT_CLOCK), 4, "told at the hold that found none, and here");
    scene_free(s);
}

/* Another's limit, and the lock cannot be reset at first: theirs is left alone, by its
 * right value, told once.
 */
static void test_yield_unreset(void)
{
    struct scene *s = bounded_scene("another's limit, a reset that fails", 0, 0);

    clock_claim(s, 0, CLAIM_HARD, 900);
    claim(s, 0, CLAIM_HARD, 250);
    pass(s, 3);
    root.reset_r = -EIO;
    fault(s, "0 limit 200W");
    pass(s, 3);
    is_state(s, 0, CAPS_LOST, "the hold is over, our lock not reset");
    root.reset_r = 0;
    for (int i = 0; i < 60 && look(s, 0).state != CAPS_YIELDED; i++)
        pass(s, 0.5);
    is_state(s, 0, CAPS_YIELDED, "then theirs is left alone");
    pass(s, 2);
    struct caps_view v = look(s, 0);
    bool right = true;
    for (size_t i = 0; i < s->n_told; i++)
        right &= s->told[i].event != CAPS_EVENT_OTHER ||
                 (s->told[i].enforced_mw == W(200) && !strstr(s->told[i].text, " 0 mW"));
    ok(right && !strstr(v.text, " 0 mW"), "by its value: '%s'", v.text);
    is_int((int)changes(s, 0), 1, "counted once");
    ok(v.bounds.original_mw == W(200) && v.enforced_mw == W(200),
       "and is the original now");
    scene_free(s);
}

/* A reset waits not even for the limit's, when nothing wants the board any more. */
static void test_reset_beside_refused_cap(void)
{
    struct scene *s = bounded_scene("a reset beside a cap that is refused", 0, 200);
    const struct caps_work work = {.demand_w = 280, .peak_w = 280};

    caps_work(s->caps, 0, &work);
    uint64_t watts = claim(s, 0, CLAIM_SOFT, 180);
    uint64_t clock = clock_claim(s, 0, CLAIM_SOFT, 900);
    pass(s, 20);
    struct caps_view v = look(s, 0);
    ok(v.failed && v.clock.locked_mhz == 1377, "the cap is refused, the clock locked");
    withdraw(s, 0, watts);
    withdraw(s, 0, clock);
    pass(s, 0.5);
    is_int((int)look(s, 0).clock.locked_mhz, 0, "withdrawn: reset at once");
    scene_free(s);
}

/* Of a board that an earlier daemon could lock, and this one cannot. */
static void test_cannot(void)
{
    struct scene *s = scene_new("a lock that this daemon cannot make", 1, &conf);

    (void)claim(s, 0, CLAIM_HARD, 250);
    clock_claim(s, 0, CLAIM_HARD, 900);
    pass(s, 1);
    s->caps->board[0].clock.can = false;
    (void)claim(s, 0, CLAIM_HARD, 240);
    pass(s, 1);
    is_int((int)look(s, 0).clock.locked_mhz, 0, "it is reset");
    is_state(s, 0, CAPS_HELD, "the board stays held for its cap");
    scene_free(s);
}

int main(void)
{
    test_life();
    test_both();
    test_ramp();
    test_own_way();
    test_refused();
    test_disobeyed();
    test_troubles();
    test_too_low();
    test_first_step_refused();
    test_first_step_refused_counted();
    test_first_cap_refused();
    test_no_silent_way();
    test_reset_at_once();
    test_yield_unreset();
    test_reset_beside_refused_cap();
    test_steps_before();
    test_unconfirmed();
    test_cannot();
    return done();
}
