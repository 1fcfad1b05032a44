/* zeusd's API over a made-up node: what zeusd 0.5.0 answers, word for word where it
 * has words (tests/system/test-zeusd.py plays the same to the real one).
 */
#include <errno.h>
#include <stdlib.h>

#include "api/zeusd/zeusd.h"
#include "base/auto.h"
#include "base/units.h"
#include "http-try.h"
#include "made.h"
#include "tap.h"
#include "virtual/virtual-loop.h"

struct rig {
    struct loop *loop;
    struct zeusd *z;
    struct made *made;
    struct node_who who;
    int r;        /* what the next claim comes to */
    uint64_t ids; /* given */
    size_t n_claims;
    struct {
        char board[16];
        uint32_t mw;
        pid_t pid;
        uid_t uid;
    } last;
    uint64_t withdrawn;
};

const struct node_view *node_look(struct node *node)
{
    struct rig *rig = (struct rig *)(void *)node;

    rig->made->view.now_ns = loop_now_ns(rig->loop);
    rig->made->view.utc_ns = loop_utc_ns(rig->loop);
    return &rig->made->view;
}

int node_claim(struct node *node, const struct node_who *who,
               const struct node_claim *ask, uint64_t *ret_id, uw_error *err)
{
    struct rig *rig = (struct rig *)(void *)node;

    if (rig->r < 0) {
        (void)snprintf(err->text, sizeof err->text, "no: %s", ask->board);
        return rig->r;
    }
    ok(ask->kind == CLAIM_NAMED && ask->ttl_ns == 0 && ask->cap.percent == 0 && !ask->job,
       "a named claim on one board");
    (void)snprintf(rig->last.board, sizeof rig->last.board, "%s", ask->board);
    rig->last.mw = ask->cap.mw;
    rig->last.pid = ask->pid;
    rig->last.uid = who->uid;
    rig->n_claims++;
    *ret_id = ++rig->ids;
    return 0;
}

int node_withdraw(struct node *node, const struct node_who *who, uint64_t id,
                  uw_error *err)
{
    struct rig *rig = (struct rig *)(void *)node;
    (void)who, (void)err;

    rig->withdrawn = id;
    return 0;
}

static void handler(struct http_exchange *x, void *user)
{
    struct rig *rig = user;

    zeusd_handle(rig->z, x, &rig->who);
}

static struct http_try *ask(struct rig *rig, const char *method, const char *target)
{
    struct http_try_ask what = {.method = method,
                                .target = target,
                                .peer = {.local = true, .uid = 1000, .pid = 77}};
    struct http_try *t = NULL;

    (void)http_try_new(rig->loop, handler, rig, &what, &t);
    return t;
}

#define GPU_ERRORS(n, text) "{\"errors\":{\"" n "\":\"" text "\"}}"
#define CLOCKS "clocks are not locked through this daemon"
#define ADMINS "persistence mode is the administrator's: nvidia-smi -pm"
/* clang-format off */
static const struct {
    const char *method, *target;
    unsigned status;
    const char *body;
} cases[] = {
    {"GET", "/discover", 200, "{\"gpus\":[{\"id\":0,\"name\":\"Made V100\"},{\"id\":1,\"name\":\"Made V100\"}],\"cpus\":[],"
     "\"enabled_api_groups\":[\"gpu-control\",\"gpu-read\"],\"auth_required\":false}"},
    {"GET", "/time", 200, "{\"timestamp_ms\":1700000000000}"},
    {"POST", "/time", 404, ""},
    {"GET", "/", 404, ""},
    {"GET", "/gpu/nothing", 404, ""},
    {"POST", "/gpu/set_fan", 404, ""},
    {"GET", "/gpu/set_power_limit", 404, ""},
    {"POST", "/gpu/get_power", 404, ""},
    {"GET", "/auth/whoami", 404, "{\"error\":\"Authentication is not enabled on this server.\"}"},
    {"GET", "/cpu/get_power", 404, "{\"error\":\"API group 'cpu-read' is not enabled on this server.\"}"},
    {"GET", "/gpu/get_power_limit", 200, "{\"0\":{\"power_limit_mw\":300000},\"1\":{\"power_limit_mw\":300000}}"},
    {"GET", "/gpu/get_power_limit?gpu_ids=1", 200, "{\"1\":{\"power_limit_mw\":300000}}"},
    {"GET", "/gpu/get_power_limit?gpu_ids=1,0,1", 200, "{\"0\":{\"power_limit_mw\":300000},\"1\":{\"power_limit_mw\":300000}}"},
    {"GET", "/gpu/get_power_limit?gpu_ids=+1+,+0", 200, "{\"0\":{\"power_limit_mw\":300000},\"1\":{\"power_limit_mw\":300000}}"},
    {"GET", "/gpu/get_power_limit?gpu_ids=2", 400, "{\"error\":\"GPU 2 not found\"}"},
    {"GET", "/gpu/get_power_limit?gpu_ids=", 400, "{\"error\":\"gpu_ids must contain at least one GPU index\"}"},
    {"GET", "/gpu/get_power_limit?gpu_ids=+", 400, "{\"error\":\"gpu_ids must contain at least one GPU index\"}"},
    {"GET", "/gpu/get_power_limit?gpu_ids=0,", 400, "{\"error\":\"gpu_ids contains an empty GPU index\"}"},
    {"GET", "/gpu/get_power_limit?gpu_ids=,0", 400, "{\"error\":\"gpu_ids contains an empty GPU index\"}"},
    {"GET", "/gpu/get_power_limit?gpu_ids=x", 400, "{\"error\":\"Invalid GPU index: x\"}"},
    {"GET", "/gpu/get_power_limit?gpu_ids=-1", 400, "{\"error\":\"Invalid GPU index: -1\"}"},
    {"GET", "/gpu/get_power_limit?gpu_ids=1.5", 400, "{\"error\":\"Invalid GPU index: 1.5\"}"},
    {"GET", "/gpu/get_power_limit?gpu=1", 400, "Query deserialize error: unknown field `gpu`, expected `gpu_ids`"},
    {"GET", "/gpu/get_power_limit_constraints?gpu_ids=0", 200, "{\"0\":{\"min_power_limit_mw\":100000,\"max_power_limit_mw\":300000}}"},
    {"GET", "/gpu/get_power?gpu_ids=0", 200, "{\"timestamp_ms\":1700000000000,\"power_mw\":{\"0\":211500}}"},
    {"GET", "/gpu/get_cumulative_energy?gpu_ids=0", 200, "{\"0\":{\"energy_mj\":5000000}}"},
    {"GET", "/gpu/get_cumulative_energy", 400, GPU_ERRORS("1", "NVML error: the requested operation is not available on the target device")},
    {"GET", "/gpu/get_persistence_mode?gpu_ids=0", 200, "{\"0\":{\"enabled\":true}}"},
    {"GET", "/gpu/stream_power?gpu_ids=0,7,9", 400, "{\"error\":\"Unknown GPU indices: [7, 9]. Available: [0, 1]\"}"},
    {"POST", "/gpu/set_power_limit", 400, "Query deserialize error: missing field `gpu_ids`"},
    {"POST", "/gpu/set_power_limit?gpu_ids=0", 400, "Query deserialize error: missing field `power_limit_mw`"},
    {"POST", "/gpu/set_power_limit?gpu_ids=0&power_limit_mw=200000", 400, "Query deserialize error: missing field `block`"},
    {"POST", "/gpu/set_power_limit?gpu_ids=0&power_limit_mw=&block=true", 400, "Query deserialize error: cannot parse integer from empty string"},
    {"POST", "/gpu/set_power_limit?gpu_ids=0&power_limit_mw=-5&block=true", 400, "Query deserialize error: invalid digit found in string"},
    {"POST", "/gpu/set_power_limit?gpu_ids=0&power_limit_mw=5e9&block=true", 400, "Query deserialize error: invalid digit found in string"},
    {"POST", "/gpu/set_power_limit?gpu_ids=0&power_limit_mw=4294967296&block=true", 400, "Query deserialize error: number too large to fit in target type"},
    {"POST", "/gpu/set_power_limit?gpu_ids=0&power_limit_mw=9999999999x&block=true", 400, "Query deserialize error: invalid digit found in string"},
    {"POST", "/gpu/set_power_limit?gpu_ids=0&power_limit_mw=200000&block=yes", 400, "Query deserialize error: provided string was not `true` or `false`"},
    {"POST", "/gpu/set_power_limit?gpu_ids=0&power_limit_mw=200000&block=true&force=1", 400,
     "Query deserialize error: unknown field `force`, expected one of `gpu_ids`, `power_limit_mw`, `block`"},
    {"POST", "/gpu/set_power_limit?gpu_ids=2&power_limit_mw=200000&block=true", 400, "GPU index 2 does not exist."},
    {"POST", "/gpu/set_power_limit?gpu_ids=&power_limit_mw=200000&block=true", 400, "{\"error\":\"gpu_ids must contain at least one GPU index\"}"},
    {"POST", "/gpu/reset_gpu_locked_clocks?gpu_ids=0&block=1", 400, "Query deserialize error: provided string was not `true` or `false`"},
    {"POST", "/gpu/reset_gpu_locked_clocks?x=0", 400, "Query deserialize error: unknown field `x`, expected `gpu_ids` or `block`"},
    {"POST", "/gpu/reset_gpu_locked_clocks?gpu_ids=0&block=true", 403, GPU_ERRORS("0", CLOCKS)},
    {"POST", "/gpu/reset_mem_locked_clocks?gpu_ids=0&block=true", 403, GPU_ERRORS("0", CLOCKS)},
    {"POST", "/gpu/set_gpu_locked_clocks?gpu_ids=1&min_clock_mhz=1&max_clock_mhz=2&block=true", 403, GPU_ERRORS("1", CLOCKS)},
    {"POST", "/gpu/set_mem_locked_clocks?gpu_ids=1&min_clock_mhz=1&max_clock_mhz=2&block=true", 403, GPU_ERRORS("1", CLOCKS)},
    {"POST", "/gpu/set_persistence_mode?gpu_ids=0&enabled=true&block=true", 200, ""},
    {"POST", "/gpu/set_persistence_mode?gpu_ids=0&enabled=false&block=true", 403, GPU_ERRORS("0", ADMINS)},
    {"POST", "/gpu/set_persistence_mode?gpu_ids=0,1&enabled=true&block=false", 403, GPU_ERRORS("1", ADMINS)},
};
/* clang-format on */

/* What errors look like: JSON of ours has its blanks elsewhere. */
static bool same(const char *got, const char *want)
{
    for (; *want != '\0' || *got != '\0'; want++, got++) {
        while (*got == '\n' || (*got == ' ' && *want != ' '))
            got++;
        if (*got == '\0' && *want == '\0')
            break;
        if (*got != *want)
            return false;
    }
    return true;
}

static void test_answers(struct rig *rig)
{
    for (size_t i = 0; i < n_elements(cases); i++) {
        auto_(http_try_free) struct http_try *t =
            ask(rig, cases[i].method, cases[i].target);
        const char *body = http_try_body(t, NULL);
        if (!ok(http_try_status(t) == cases[i].status && same(body, cases[i].body),
                "%s %s: %u", cases[i].method, cases[i].target, cases[i].status))
            printf("# %u %s\n", http_try_status(t), body);
    }
    is_int(rig->n_claims, 0, "and nothing was claimed");
}

static int stop(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)now_ns;
    loop_timer_free(timer);
    loop_stop(user, 0);
    return 0;
}

static void pass(struct loop *loop, uint64_t ns)
{
    struct loop_timer *timer = NULL;

    (void)loop_timer_new(loop, loop_now_ns(loop) + ns, 0, stop, loop, &timer, NULL);
    (void)loop_run(loop, NULL);
}

#define SET(gpus, mw, block) \
    "/gpu/set_power_limit?gpu_ids=" gpus "&power_limit_mw=" mw "&block=" block

static void test_set(struct rig *rig)
{
    struct caps_view *cap = &rig->made->board[1].cap;
    struct http_try *t = ask(rig, "POST", SET("1", "200000", "false"));

    ok(http_try_status(t) == 200 && strcmp(http_try_body(t, NULL), "") == 0,
       "a limit, at once");
    http_try_free(t);
    ok(strcmp(rig->last.board, "1") == 0 && rig->last.mw == 200000 &&
           rig->last.pid == 77 && rig->last.uid == 1000,
       "is a claim that ends with the process");
    is_int(rig->withdrawn, 0, "the first one replaces none");

    cap->state = CAPS_HOLDING;
    cap->enforced_mw = cap->ramp_mw = 300000;
    cap->verdict.target_mw = 180000;
    t = ask(rig, "POST", SET("1", "180000", "true"));
    is_int(rig->withdrawn, 1, "the second one does");
    pass(rig->loop, 100 * NS_PER_MS);
    is_int(http_try_status(t), 0, "who blocks waits …");
    cap->state = CAPS_HELD; /* but at the limit that was found there */
    pass(rig->loop, 100 * NS_PER_MS);
    is_int(http_try_status(t), 0, "… and waits …");
    cap->enforced_mw = cap->ramp_mw = 180000;
    pass(rig->loop, 100 * NS_PER_MS);
    is_int(http_try_status(t), 200, "… until it is in force");
    http_try_free(t);

    cap->ramping = true;
    cap->verdict.target_mw = 150000;
    t = ask(rig, "POST", SET("1", "150000", "true"));
    pass(rig->loop, 2900 * NS_PER_MS);
    is_int(http_try_status(t), 0, "on a ramp …");
    pass(rig->loop, 200 * NS_PER_MS);
    is_int(http_try_status(t), 200, "… three seconds at most: it walks on");
    http_try_free(t);

    cap->ramping = false;
    cap->state = CAPS_DENIED;
    (void)snprintf(cap->text, sizeof cap->text, "the right is \"missing\"");
    t = ask(rig, "POST", SET("0,1", "150000", "true"));
    pass(rig->loop, 100 * NS_PER_MS);
    ok(http_try_status(t) == 403 &&
           strcmp(http_try_body(t, NULL),
                  GPU_ERRORS("1", "the right is \\\"missing\\\"")) == 0,
       "denied: %s", http_try_body(t, NULL));
    http_try_free(t);
    cap->state = CAPS_LOST;
    t = ask(rig, "POST", SET("1", "150000", "true"));
    pass(rig->loop, 4 * NS_PER_S);
    is_int(http_try_status(t), 500, "lost");
    http_try_free(t);
    cap->state = CAPS_HOLDING;
    t = ask(rig, "POST", SET("1", "150000", "true"));
    http_try_free(t);
    pass(rig->loop, 4 * NS_PER_S); /* nobody is there any more */
    cap->state = CAPS_FREE;
    cap->enforced_mw = cap->verdict.target_mw = 300000;
    cap->text[0] = '\0';
}

static void test_refused(struct rig *rig)
{
    static const struct {
        int r;
        unsigned status;
    } map[] = {{-EPERM, 403},   {-ERANGE, 400}, {-EINVAL, 400},
               {-ENOTSUP, 400}, {-ESRCH, 500},  {-ENOENT, 500},
               {-E2BIG, 409},   {-EAGAIN, 503}, {-EIO, 500}};

    for (size_t i = 0; i < n_elements(map); i++) {
        rig->r = map[i].r;
        auto_(http_try_free) struct http_try *t =
            ask(rig, "POST", SET("0,1", "200000", "true"));
        ok(http_try_status(t) == map[i].status &&
               strcmp(http_try_body(t, NULL),
                      "{\"errors\":{\"0\":\"no: 0\",\"1\":\"no: 1\"}}") == 0,
           "%s: %u", strerror(-map[i].r), http_try_status(t));
    }
    rig->r = 0;
    rig->made->view.read_only = true;
    (void)snprintf(rig->made->view.actuator, sizeof rig->made->view.actuator,
                   "not connected");
    size_t before = rig->n_claims;
    auto_(http_try_free) struct http_try *t =
        ask(rig, "POST", SET("0", "200000", "true"));
    ok(http_try_status(t) == 500 && rig->n_claims == before &&
           strcmp(http_try_body(t, NULL), GPU_ERRORS("0", "not connected")) == 0,
       "nobody writes caps: said, and nothing claimed");
    rig->made->view.read_only = false;
}

static void test_streams(struct rig *rig)
{
    struct view_board *b = &rig->made->board[0];
    struct http_try *t = ask(rig, "GET", "/gpu/stream_power");

    ok(http_try_status(t) == 200 &&
           strcmp(http_try_header(t, "Content-Type"), "text/event-stream") == 0,
       "a stream");
    const char *text = http_try_body(t, NULL);
    ok(strstr(text, ",\"gpu_id\":0,\"power_mw\":211500}\n\n") &&
           strstr(text, ",\"gpu_id\":1,\"power_mw\":211500}\n\n") &&
           strncmp(text, "data: {\"timestamp_ms\":17000", 27) == 0,
       "what is known comes at once");
    zeusd_tell(rig->z, NODE_EVENT_SAMPLES);
    is_str(http_try_body(t, NULL), "", "nothing while nothing changes");
    b->power_w.v = 123.4;
    zeusd_tell(rig->z, NODE_EVENT_SAMPLES);
    text = http_try_body(t, NULL);
    ok(strstr(text, "\"gpu_id\":0,\"power_mw\":123400}") && !strstr(text, "\"gpu_id\":1"),
       "a change");
    struct http_try *one = ask(rig, "GET", "/gpu/stream_power?gpu_ids=1");
    ok(!strstr(http_try_body(one, NULL), "\"gpu_id\":0"), "of one board alone");
    http_try_free(t);
    b->power_w.v = 200;
    rig->made->board[1].power_w.v = 99;
    zeusd_tell(rig->z, NODE_EVENT_SAMPLES);
    ok(strstr(http_try_body(one, NULL), "\"gpu_id\":1,\"power_mw\":99000}"),
       "others go on when one goes");
    http_try_free(one);
}

static void test_energy(struct rig *rig)
{
    struct gpu_sample *last = &rig->made->board[0].last;
    uint64_t mj[4];
    static const char TARGET[] = "/gpu/get_cumulative_energy?gpu_ids=0";
    const uint64_t start = loop_now_ns(rig->loop);

    rig->made->board[0].power_w.v = 100;
    last->energy_mj = 6000000;
    last->energy_at_ns = start;
    for (int i = 0; i < 4; i++) {
        auto_(http_try_free) struct http_try *t = ask(rig, "GET", TARGET);
        const char *at = strstr(http_try_body(t, NULL), "energy_mj\":");
        mj[i] = at ? strtoull(at + 11, NULL, 10) : 0;
        if (i == 2) { /* the board used less than was thought */
            last->energy_mj = 6150000;
            last->energy_at_ns = loop_now_ns(rig->loop);
        } else {
            pass(rig->loop, NS_PER_S);
        }
    }
    ok(mj[0] == 6000000, "as it was read");
    ok(mj[1] >= 6099999 && mj[1] <= 6100001, "carried forward at 100 W: %ju",
       (uintmax_t)mj[1]);
    ok(mj[2] > mj[1] && mj[3] == mj[2], "never back");
    pass(rig->loop, 60 * NS_PER_S);
    auto_(http_try_free) struct http_try *t = ask(rig, "GET", TARGET);
    ok(strstr(http_try_body(t, NULL), "6200000}") != NULL,
       "nor forward on a reading that is old");
    last->energy_mj = 40;
    auto_(http_try_free) struct http_try *u = ask(rig, "GET", TARGET);
    ok(strstr(http_try_body(u, NULL), "{\"energy_mj\":40}") != NULL,
       "but with the counter, when the driver began anew");
}

static void test_cpus(struct rig *rig)
{
    struct view_rapl rapl[] = {{"package-0", 12, {true, 30.25}, {12.5, {true, 30}}},
                               {"dram-0", 3, {true, 4}, {3.25, {true, 5}}},
                               {"package-1", 1, {true, 20}, {1.5, {true, 21}}}};

    rig->made->view.rapl = rapl;
    rig->made->view.n_rapl = 3;
    struct http_try *t = ask(rig, "GET", "/discover");
    ok(strstr(http_try_body(t, NULL), "\"cpus\":[{\"id\":0,\"dram_available\":true},"
                                      "{\"id\":1,\"dram_available\":false}],"
                                      "\"enabled_api_groups\":[\"gpu-control\","
                                      "\"gpu-read\",\"cpu-read\"]") != NULL,
       "two packages");
    http_try_free(t);
    t = ask(rig, "GET", "/cpu/get_cumulative_energy?cpu=true&dram=true");
    is_str(http_try_body(t, NULL),
           "{\"0\":{\"cpu_energy_uj\":12000000,\"dram_energy_uj\":3000000},"
           "\"1\":{\"cpu_energy_uj\":1000000,\"dram_energy_uj\":null}}",
           "their energy");
    http_try_free(t);
    t = ask(rig, "GET", "/cpu/get_cumulative_energy?cpu_ids=0&cpu=false&dram=true");
    is_str(http_try_body(t, NULL),
           "{\"0\":{\"cpu_energy_uj\":null,\"dram_energy_uj\":3000000}}", "in part");
    http_try_free(t);
    t = ask(rig, "GET", "/cpu/get_cumulative_energy?cpu=true");
    is_str(http_try_body(t, NULL), "Query deserialize error: missing field `dram`",
           "both are asked for");
    http_try_free(t);
    t = ask(rig, "GET", "/cpu/get_power?cpu_ids=2");
    is_str(http_try_body(t, NULL), "{\n  \"error\": \"CPU 2 not found\"\n}", "a third");
    http_try_free(t);
    t = ask(rig, "GET", "/cpu/get_power?cpu_ids=0");
    ok(strstr(http_try_body(t, NULL),
              "\"power_mw\":{\"0\":{\"cpu_mw\":30250,\"dram_mw\":4000}}}") != NULL,
       "power");
    http_try_free(t);
    t = ask(rig, "GET", "/cpu/stream_power");
    ok(strstr(http_try_body(t, NULL),
              "\"cpu_id\":0,\"cpu_mw\":30250,\"dram_mw\":4000}") != NULL,
       "and its stream");
    rapl[0].power_w.v = 31;
    zeusd_tell(rig->z, NODE_EVENT_SAMPLES);
    ok(strstr(http_try_body(t, NULL), "\"cpu_mw\":31000") != NULL, "goes on");
    http_try_free(t);
    rig->made->view.n_rapl = 0;
}

int main(void)
{
    struct rig rig = {.who = {.uid = 1000, .may_claim = true, .name = "user u"}};
    uw_error err;

    rig.made = calloc(1, sizeof *rig.made);
    made_init(rig.made, 2, 0);
    for (int i = 0; i < 2; i++) {
        rig.made->board[i].last.began_ns = NS_PER_S;
        rig.made->board[i].last.at_ns = NS_PER_S;
        rig.made->board[i].power_w = (struct maybe){true, 211.5};
        rig.made->board[i].last.requested_mw = 300000;
        rig.made->board[i].cap.enforced_mw = 300000;
        rig.made->board[i].cap.verdict.target_mw = 300000;
        rig.made->info[i].abilities &= ~(uint32_t)GPU_CAN_ENERGY;
        rig.made->board[i].last.has &= ~(uint32_t)GPU_HAS_ENERGY;
        rig.made->info[i].has_persistence = true;
        rig.made->info[i].persistence = i == 0;
    }
    rig.made->view.n_rapl = 0;
    rig.made->board[0].last.has |= GPU_HAS_ENERGY;
    rig.made->board[0].last.energy_mj = 5000000;
    rig.made->board[0].last.energy_at_ns = NS_PER_S;
    if (loop_new_virtual(NS_PER_S, 1700000000, &rig.loop, &err) < 0 ||
        zeusd_new(rig.loop, (struct node *)(void *)&rig, &rig.z, &err) < 0)
        return 1;
    test_answers(&rig);
    test_set(&rig);
    test_refused(&rig);
    test_streams(&rig);
    test_energy(&rig);
    test_cpus(&rig);
    rig.made->board[0].cap.state = CAPS_HOLDING;
    rig.made->board[0].cap.verdict.target_mw = 200000;
    struct http_try *a = ask(&rig, "POST", SET("0", "200000", "true")),
                    *b = ask(&rig, "GET", "/gpu/stream_power");
    zeusd_free(rig.z);
    is_int(http_try_status(a), 503, "nobody is left waiting at the end");
    http_try_free(a);
    http_try_free(b);
    loop_free(rig.loop);
    free(rig.made);
    return done();
}
