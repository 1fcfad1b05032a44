#include "actuator/core.h"

#include <errno.h>

#include "base/auto.h"
#include "base/names.h"
#include "tap.h"

#define W 1000u

static void test_recover(void)
{
    /* clang-format off */
    static const struct {
        const char *name, *boot, *driver, *now_driver;
        uint32_t original, intended, readback;
        bool clocks;
        struct cap_seen seen;
        enum recovery_why why;
        bool set, reset, drop;
    } cases[] = {
        {"killed while capped", "b1", "d1", "d1", 250*W, 200*W, 200*W, false,
         {true, true, 200*W, 200*W}, RECOVERY_RESTORE, true, false, true},
        {"killed before the write", "b1", "d1", "d1", 250*W, 190*W, 200*W, false,
         {true, true, 200*W, 200*W}, RECOVERY_RESTORE, true, false, true},
        {"killed after the write, before the read-back", "b1", "d1", "d1", 250*W, 190*W, 200*W, false,
         {true, true, 190*W, 190*W}, RECOVERY_RESTORE, true, false, true},
        {"killed before the first write", "b1", "d1", "d1", 250*W, 250*W, 250*W, false,
         {true, true, 250*W, 250*W}, RECOVERY_AT_ORIGINAL, false, false, true},
        {"killed after restoring", "b1", "d1", "d1", 250*W, 200*W, 200*W, false,
         {true, true, 250*W, 250*W}, RECOVERY_AT_ORIGINAL, false, false, true},
        {"an administrator's newer limit", "b1", "d1", "d1", 250*W, 200*W, 200*W, false,
         {true, true, 180*W, 180*W}, RECOVERY_FOREIGN, false, false, true},
        {"the limit asked for counts, not the enforced one", "b1", "d1", "d1", 700*W, 600*W, 600*W, false,
         {true, true, 600*W, 500*W}, RECOVERY_RESTORE, true, false, true},
        {"a reboot in between", "b0", "d1", "d1", 250*W, 200*W, 200*W, true,
         {true, true, 200*W, 200*W}, RECOVERY_OTHER_BOOT, false, false, true},
        {"a reboot, the board is gone", "b0", "d1", "", 250*W, 200*W, 200*W, true,
         {0}, RECOVERY_OTHER_BOOT, false, false, true},
        {"a driver's reload in between", "b1", "d0", "d1", 250*W, 200*W, 200*W, true,
         {true, true, 200*W, 200*W}, RECOVERY_OTHER_DRIVER, false, false, true},
        {"no mark then", "b1", "", "d1", 250*W, 200*W, 200*W, false,
         {true, true, 200*W, 200*W}, RECOVERY_RESTORE, true, false, true},
        {"no mark now", "b1", "d1", "", 250*W, 200*W, 200*W, false,
         {true, true, 200*W, 200*W}, RECOVERY_RESTORE, true, false, true},
        {"the board does not answer", "b1", "d1", "d1", 250*W, 200*W, 200*W, true,
         {0}, RECOVERY_UNREADABLE, false, true, false},
        {"it does not answer and was not locked", "b1", "d1", "d1", 250*W, 200*W, 200*W, false,
         {0}, RECOVERY_UNREADABLE, false, false, false},
        {"clocks locked, limit untouched", "b1", "d1", "d1", 250*W, 250*W, 250*W, true,
         {true, true, 250*W, 250*W}, RECOVERY_AT_ORIGINAL, false, true, true},
        {"clocks locked, limit ours", "b1", "d1", "d1", 250*W, 200*W, 200*W, true,
         {true, true, 200*W, 200*W}, RECOVERY_RESTORE, true, true, true},
        {"clocks locked, limit another's", "b1", "d1", "d1", 250*W, 200*W, 200*W, true,
         {true, true, 180*W, 180*W}, RECOVERY_FOREIGN, false, true, true},
    };
    /* clang-format on */

    for (size_t i = 0; i < n_elements(cases); i++) {
        struct cap_entry e = {.original_mw = cases[i].original,
                              .intended_mw = cases[i].intended,
                              .readback_mw = cases[i].readback,
                              .clocks = cases[i].clocks};
        (void)snprintf(e.boot, sizeof e.boot, "%s", cases[i].boot);
        (void)snprintf(e.driver, sizeof e.driver, "%s", cases[i].driver);
        struct recovery got = core_recover(&e, "b1", cases[i].now_driver, &cases[i].seen);
        is_int(got.why, cases[i].why, "%s: why", cases[i].name);
        ok(got.set_original == cases[i].set, "%s: original set: %d", cases[i].name,
           cases[i].set);
        ok(got.reset_clocks == cases[i].reset, "%s: clocks reset: %d", cases[i].name,
           cases[i].reset);
        ok(got.drop == cases[i].drop, "%s: dropped: %d", cases[i].name, cases[i].drop);
    }
}

static void test_judge(void)
{
    /* clang-format off */
    static const struct {
        const char *name;
        int r;
        struct cap_seen before, after;
        enum actuator_result want;
    } cases[] = {
        {"in force", 0, {true, true, 250*W, 250*W}, {true, true, 200*W, 200*W}, ACTUATOR_DONE},
        {"driver enforces less", 0, {true, true, 250*W, 250*W}, {true, true, 200*W, 164*W}, ACTUATOR_CLAMPED},
        {"driver enforces more", 0, {true, true, 250*W, 250*W}, {true, true, 200*W, 210*W}, ACTUATOR_CLAMPED},
        {"success that did nothing", 0, {true, true, 250*W, 250*W}, {true, true, 250*W, 250*W}, ACTUATOR_CLAMPED},
        {"rounded", 0, {true, true, 250*W, 250*W}, {true, true, 204*W, 204*W}, ACTUATOR_CLAMPED},
        {"another's value since", 0, {true, true, 250*W, 250*W}, {true, true, 180*W, 180*W}, ACTUATOR_YIELDED},
        {"another value, by a driver that does not tell", 0, {true, false, 250*W, 250*W}, {true, false, 180*W, 180*W}, ACTUATOR_CLAMPED},
        {"written, cannot be read", 0, {true, true, 250*W, 250*W}, {0}, ACTUATOR_UNKNOWN},
        {"no right", -EPERM, {true, true, 250*W, 250*W}, {true, true, 250*W, 250*W}, ACTUATOR_DENIED},
        {"out of range", -ERANGE, {true, true, 250*W, 250*W}, {true, true, 250*W, 250*W}, ACTUATOR_REFUSED},
        {"cannot", -ENOTSUP, {true, true, 250*W, 250*W}, {true, true, 250*W, 250*W}, ACTUATOR_REFUSED},
        {"lost", -ENODEV, {true, true, 250*W, 250*W}, {0}, ACTUATOR_GONE},
        {"refused, unchanged", -EIO, {true, true, 250*W, 250*W}, {true, true, 250*W, 250*W}, ACTUATOR_REFUSED},
        {"failed, but changed", -EIO, {true, true, 250*W, 250*W}, {true, true, 200*W, 200*W}, ACTUATOR_UNKNOWN},
        {"failed, cannot be read", -EIO, {true, true, 250*W, 250*W}, {0}, ACTUATOR_UNKNOWN},
    };
    /* clang-format on */

    for (size_t i = 0; i < n_elements(cases); i++)
        is_int(core_judge(200 * W, cases[i].r, &cases[i].before, &cases[i].after),
               cases[i].want, "judge: %s", cases[i].name);
}

static const struct gpu_info board = {.uuid = "GPU-1",
                                      .abilities =
                                          GPU_CAN_SET_LIMIT | GPU_CAN_LOCK_CLOCKS,
                                      .clock_max_mhz = 1530};

static void test_check_limit(void)
{
    static const struct {
        uint32_t mw;
        enum actuator_result want;
    } cases[] = {
        {100 * W, ACTUATOR_DONE},       {300 * W, ACTUATOR_DONE},
        {99999, ACTUATOR_REFUSED},      {300001, ACTUATOR_REFUSED},
        {UINT32_MAX, ACTUATOR_REFUSED}, {0, ACTUATOR_REFUSED},
    };
    const struct gpu_limits limits = {100 * W, 300 * W, 250 * W};
    struct gpu_info other = board;
    uw_error err = {""};

    for (size_t i = 0; i < n_elements(cases); i++)
        is_int(core_check_limit(&board, &limits, cases[i].mw, NULL), cases[i].want,
               "limit %u mW: %s", cases[i].mw,
               names_word(NAMES_ACTUATOR_RESULT, cases[i].want));
    (void)core_check_limit(&board, &limits, 100 * W, &err);
    is_str(err.text, "", "no text without a refusal");
    (void)core_check_limit(&board, &limits, 99999, &err);
    is_str(err.text, "GPU-1: 99999 mW is outside 100000..300000 mW",
           "the range is named");
    other.abilities = 0;
    is_int(core_check_limit(&other, &limits, 200 * W, NULL), ACTUATOR_REFUSED,
           "a board that takes none");
}

/* The board: 100..300 W, 250 W by default. */
static void test_range(void)
{
    /* clang-format off */
    static const struct {
        const char *name;
        struct cap_arg from, to;
        uint32_t original, min, max;
    } cases[] = {
        {"nothing configured", {0, 0, ""}, {0, 0, ""}, 250*W, 100*W, 300*W},
        {"watts", {150*W, 0, ""}, {200*W, 0, ""}, 250*W, 150*W, 200*W},
        {"percent of the default", {0, 60, ""}, {0, 80, ""}, 250*W, 150*W, 200*W},
        {"from alone", {150*W, 0, ""}, {0, 0, ""}, 250*W, 150*W, 300*W},
        {"wider than the board", {50*W, 0, ""}, {400*W, 0, ""}, 250*W, 100*W, 300*W},
        {"the original under it is the lowest", {200*W, 0, ""}, {0, 0, ""}, 150*W, 150*W, 300*W},
        {"… unknown", {200*W, 0, ""}, {0, 0, ""}, 0, 200*W, 300*W},
        {"all above the board: the original alone", {350*W, 0, ""}, {400*W, 0, ""}, 250*W, 250*W, 250*W},
        {"all under it", {0, 10, ""}, {0, 20, ""}, 250*W, 250*W, 250*W},
        {"from above to, in other units", {0, 90, ""}, {200*W, 0, ""}, 250*W, 250*W, 250*W},
        {"… and the original unknown", {0, 90, ""}, {200*W, 0, ""}, 0, 0, 0},
    };
    /* clang-format on */
    const struct gpu_limits limits = {100 * W, 300 * W, 250 * W}, none = {0};
    struct actuator_range got = core_range(NULL, &limits, 250 * W);

    ok(got.min_mw == 100 * W && got.max_mw == 300 * W, "no rules: the board's own");
    got = core_range(&(struct core_rules){.from = {.mw = 1}}, &none, 250 * W);
    ok(got.min_mw == 0 && got.max_mw == 0, "a board whose limits are not known");
    for (size_t i = 0; i < n_elements(cases); i++) {
        const struct core_rules rules = {.from = cases[i].from, .to = cases[i].to};
        uint32_t original = cases[i].original;
        unsigned wrong = 0;

        got = core_range(&rules, &limits, original);
        ok(got.min_mw == cases[i].min && got.max_mw == cases[i].max,
           "range: %s: %u..%u mW", cases[i].name, got.min_mw, got.max_mw);
        for (uint32_t mw = 100 * W; original && mw <= 300 * W; mw += W) {
            bool in = (mw >= got.min_mw && mw <= got.max_mw) || mw == original;
            bool may = core_check_rules(&rules, "GPU-1", &limits, original, mw, NULL) ==
                       ACTUATOR_DONE;
            wrong += in != may && mw <= original && mw != got.min_mw;
            wrong += mw == got.min_mw && !may;
        }
        is_int(wrong, 0, "… and just that may be set under the original");
        struct actuator_reply told = {.result = ACTUATOR_DONE};
        core_tell_rules(&rules, &told);
        const struct actuator_range same =
            core_told_range(&told.from, &told.to, &limits, original);
        ok(same.min_mw == got.min_mw && same.max_mw == got.max_mw,
           "… the same for a client that is told the rules");
    }
}

static void test_check_clocks(void)
{
    static const struct {
        uint32_t min, max;
        enum actuator_result want;
    } cases[] = {
        {0, 0, ACTUATOR_DONE},         {900, 1200, ACTUATOR_DONE},
        {1530, 1530, ACTUATOR_DONE},   {1200, 900, ACTUATOR_REFUSED},
        {900, 1531, ACTUATOR_REFUSED}, {0, 900, ACTUATOR_REFUSED},
    };
    struct gpu_info other = board;
    uw_error err = {""};

    for (size_t i = 0; i < n_elements(cases); i++)
        is_int(core_check_clocks(NULL, &board, cases[i].min, cases[i].max, NULL),
               cases[i].want, "clocks %u..%u: %s", cases[i].min, cases[i].max,
               names_word(NAMES_ACTUATOR_RESULT, cases[i].want));
    (void)core_check_clocks(NULL, &board, 1200, 900, &err);
    is_str(err.text, "GPU-1: clocks 1200..900 MHz are outside 1..1530 MHz", "said so");
    other.abilities = 0;
    is_int(core_check_clocks(NULL, &other, 0, 0, NULL), ACTUATOR_REFUSED,
           "a board whose clocks stay");
}

static void test_judge_clocks(void)
{
    static const struct {
        int r;
        enum actuator_result want;
        bool locked;
    } cases[] = {
        {0, ACTUATOR_DONE, true},           {-EPERM, ACTUATOR_DENIED, false},
        {-ERANGE, ACTUATOR_REFUSED, false}, {-ENOTSUP, ACTUATOR_REFUSED, false},
        {-ENODEV, ACTUATOR_GONE, true},     {-EIO, ACTUATOR_UNKNOWN, true},
    };

    for (size_t i = 0; i < n_elements(cases); i++) {
        bool locked = !cases[i].locked;
        enum actuator_result got = core_judge_clocks(cases[i].r, &locked);
        ok(got == cases[i].want && locked == cases[i].locked,
           "a lock that came to %d: %s, %s", cases[i].r,
           names_word(NAMES_ACTUATOR_RESULT, got),
           locked ? "to be reset" : "nothing to undo");
    }
}

static void test_seen(void)
{
    struct gpu_sample s = {.enforced_mw = 164 * W, .requested_mw = 160 * W};

    ok(!core_seen(&s).readable, "no field: not readable");
    s.has = GPU_HAS_ENFORCED;
    is_int(core_seen(&s).set_mw, 164 * W, "the enforced one stands in for the set one");
    ok(!core_seen(&s).told, "… but does not tell it");
    s.has |= GPU_HAS_REQUESTED;
    is_int(core_seen(&s).set_mw, 160 * W, "what was asked for, where the driver tells");
    ok(core_seen(&s).told, "… and that it does");
    is_int(core_seen(&s).enforced_mw, 164 * W, "… and what is in force");
    s.has = GPU_HAS_REQUESTED;
    is_int(core_seen(&s).enforced_mw, 160 * W,
           "the set one stands in for the enforced one");

    struct cap_entry e = {.intended_mw = 190 * W, .readback_mw = 200 * W};
    struct cap_seen seen = {true, true, 190 * W, 190 * W};
    ok(!core_is_foreign(&e, &seen), "what we are about to set is ours");
    seen.set_mw = 200 * W;
    ok(!core_is_foreign(&e, &seen), "what we have set is ours");
    seen.set_mw = 195 * W;
    ok(core_is_foreign(&e, &seen), "anything else is another's");
    seen.readable = false;
    ok(!core_is_foreign(&e, &seen), "unknown is nobody's");
}

static void test_rest(void)
{
    static const char *const good[] = {"GPU-3f", "0", "MIG-GPU-aa-1"};
    static const char *const bad[] = {"", "-GPU", "GPU/1", "..", "GPU 1", "GPU-\n", "."};
    uint64_t last = 0, sum = 0;

    for (size_t i = 0; i < n_elements(good); i++)
        ok(core_is_uuid(good[i]), "'%s' is a UUID", good[i]);
    for (size_t i = 0; i < n_elements(bad); i++)
        ok(!core_is_uuid(bad[i]), "UUID %zu is refused", i);
    char long_one[96];
    memset(long_one, 'a', sizeof long_one);
    long_one[81] = '\0';
    ok(!core_is_uuid(long_one), "81 characters are refused");
    long_one[80] = '\0';
    ok(core_is_uuid(long_one), "80 are not");

    unsigned n = 1;
    for (; core_retry_ns(n) && n < 1000; n++) {
        last = core_retry_ns(n);
        sum += last;
        if (n == 3)
            ok(sum <= 1500000000ull, "three attempts come within 1.5 s");
    }
    ok(n < 100, "it gives up at last");
    ok(last == 5000000000ull && sum > 60000000000ull, "not before a minute, 5 s apart");
    for (int i = 0; i < ACTUATOR_N_RESULTS; i++)
        ok(strcmp(names_word(NAMES_ACTUATOR_RESULT, (enum actuator_result)i), "?") != 0,
           "result %d has a name", i);
    is_str(names_word(NAMES_ACTUATOR_RESULT, (enum actuator_result)99), "?",
           "no other has");
}

static void test_hold(void)
{
    /* clang-format off */
    static const struct {
        const char *name;
        struct core_board board;
        uid_t uid;
        enum core_hold want;
    } cases[] = {
        {"free", {.free = true}, 7, CORE_HOLD_BEGIN},
        {"another's", {0}, 7, CORE_HOLD_TAKEN},
        {"left by the same uid", {.left = true, .left_uid = 7}, 7, CORE_HOLD_ADOPT},
        {"left by root, root comes", {.left = true}, 0, CORE_HOLD_ADOPT},
        {"left by another uid", {.left = true, .left_uid = 8}, 7, CORE_HOLD_TAKEN},
        {"left, root comes", {.left = true, .left_uid = 8}, 0, CORE_HOLD_TAKEN},
        {"being restored", {.restoring = true}, 7, CORE_HOLD_RESTORING},
        {"hangs", {.restoring = true, .hangs = true}, 7, CORE_HOLD_HANGS},
        {"free, but hangs", {.free = true, .hangs = true}, 7, CORE_HOLD_HANGS},
        {"another's limit was seen", {.free = true, .yielded_to = true}, 7, CORE_HOLD_YIELDED},
        {"… and then it was another's", {.yielded_to = true}, 7, CORE_HOLD_TAKEN},
    };
    /* clang-format on */

    for (size_t i = 0; i < n_elements(cases); i++) {
        enum actuator_result result = ACTUATOR_N_RESULTS;
        enum core_hold got = core_hold(&cases[i].board, cases[i].uid);
        ok(got == cases[i].want, "a board that is %s: %d", cases[i].name, (int)got);
        bool refused = core_hold_refusal(got, &result) != NULL;
        bool asks = got == CORE_HOLD_BEGIN || got == CORE_HOLD_ADOPT;
        ok(refused == !asks && (result != ACTUATOR_N_RESULTS) == refused &&
               result != ACTUATOR_DONE,
           "… is %s", refused ? "refused" : "to be had");
    }
    static const struct {
        uint64_t late_ms, more_ms;
        const char *name;
    } ends[] = {
        {0, 0, "in time: it is over"},
        {50, 0, "a little late: over, too"},
        {51, ACTUATOR_RENEW_MS, "this process stood still: one more interval"},
        {3600000, ACTUATOR_RENEW_MS, "for an hour: no more than that"},
    };
    for (size_t i = 0; i < n_elements(ends); i++)
        is_int(core_lease_more_ns(NS_PER_S, NS_PER_S + ends[i].late_ms * NS_PER_MS),
               ends[i].more_ms * NS_PER_MS, "the end of a lease is noticed %s",
               ends[i].name);
    is_int(core_leave(0, false), CORE_LEFT_RESTORE, "no grace: restored");
    is_int(core_leave(1, false), CORE_LEFT_KEEP, "a grace: kept");
    is_int(core_leave(1, true), CORE_LEFT_RESTORE, "its end had begun: restored");
}

static void test_kept(void)
{
    /* clang-format off */
    static const struct {
        struct core_kept kept;
        const char *want;
    } cases[] = {
        {{"GPU-1", 200000, 300000, false, 0, "GPU-1: the driver says no", true},
         "GPU-1: not restored: 200 W was in force when last read, the original is 300 W: the driver says no; its entry waits for underwatt-actuator --recover"},
        {{"GPU-1", 200500, 300000, false, 0, "no right", false},
         "GPU-1: not restored: 200.5 W was in force when last read, the original is 300 W: no right"},
        {{"GPU-1", 0, 0, false, 0, "GPU-10: another's", false},
         "GPU-1: not restored: the limit in force is unknown, the original is unknown: GPU-10: another's"},
        {{"GPU-1", 0, 300000, true, 18400 * NS_PER_MS, "GPU-1: no", false},
         "GPU-1: not restored: the limit in force is unknown, the original is 300 W: "
         "a call has hung in the driver for 18 s"},
    };
    static const struct {
        unsigned restored, failed;
        enum core_status want;
    } ends[] = {{0, 0, CORE_ALL}, {3, 0, CORE_ALL}, {0, 2, CORE_NONE}, {1, 2, CORE_SOME}};
    /* clang-format on */
    char text[400];

    for (size_t i = 0; i < n_elements(cases); i++) {
        core_kept_text(&cases[i].kept, text, sizeof text);
        is_str(text, cases[i].want, "what a board keeps");
    }
    for (size_t i = 0; i < n_elements(ends); i++)
        is_int(core_status(ends[i].restored, ends[i].failed), ends[i].want,
               "%u restored, %u not", ends[i].restored, ends[i].failed);
}

int main(void)
{
    test_kept();
    test_hold();
    test_recover();
    test_judge();
    test_check_limit();
    test_range();
    test_check_clocks();
    test_judge_clocks();
    test_seen();
    test_rest();
    return done();
}
