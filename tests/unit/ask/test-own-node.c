/* Nodes of commands, in virtual time over simulated boards: what they open and start,
 * what their claims may do, and two of them at once.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "ask/own-node.h"
#include "base/log.h"
#include "base/units.h"
#include "tap.h"
#include "virtual/virtual-loop.h"
#include "virtual/virtual-world.h"

static struct {
    struct loop *loop;
    struct virtual_world *sim;
    struct loop_timer *timer;
} w;

static uint64_t clock_of(void *user)
{
    return loop_now_ns(user);
}

static int on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    (void)now_ns;
    (void)user;
    loop_stop(w.loop, 0);
    return 0;
}

static void run_s(double s)
{
    loop_timer_set(w.timer, loop_now_ns(w.loop) + ns_of_s(s), 0);
    (void)loop_run(w.loop, NULL);
}

static void fault(const char *text)
{
    struct sim_fault f;
    uw_error err = {""};

    if (sim_fault_parse(text, &f, &err) < 0 || virtual_world_fault(w.sim, &f, &err) < 0)
        printf("# fault %s: %s\n", text, err.text);
}

static int open_for(const char *only, const struct actuator_virtual *service,
                    bool runs_job, struct own_node **ret, uw_error *err)
{
    struct node_opts node = {.loop = w.loop,
                             .backend = &virtual_backend,
                             .gpu = {.clock = {clock_of, w.loop}, .backend_user = w.sim},
                             .version = "test",
                             .simulated = true,
                             .virtual_actuator = !service,
                             .service = service,
                             .read = virtual_world_proc,
                             .read_user = w.sim};
    const struct own_node_opts opts = {.node = &node, .only = only, .runs_job = runs_job};

    return own_node_new(&opts, ret, err);
}

static int open_own(const char *only, const struct actuator_virtual *service,
                    struct own_node **ret, uw_error *err)
{
    return open_for(only, service, false, ret, err);
}

static struct json *get(struct own_node *own, const char *path)
{
    struct json *doc = NULL;
    uw_error err = {""};

    if (ask_wait(own_node_ask(own), "GET", path, NULL, &doc, &err) < 0)
        printf("# %s: %s\n", path, err.text);
    return doc;
}

static uint64_t number(struct own_node *own, const char *path, const char *under,
                       const char *key)
{
    auto_(json_free) struct json *doc = get(own, path);
    const struct json_value *v = doc ? json_root(doc) : NULL;
    uint64_t n = 0;

    (void)json_get_u64(under ? json_get(v, under) : v, key, &n, NULL);
    return n;
}

static bool actuator_is_up(struct own_node *own)
{
    auto_(json_free) struct json *doc = get(own, "/v1/node");
    bool up = false;

    (void)json_get_bool(json_get(json_root(doc), "actuator"), "up", &up, NULL);
    return up;
}

static int claim(struct own_node *own, const char *gpu, const char *cap, bool at_once,
                 uw_error *err)
{
    struct json_out *o = json_out_new();

    json_out_object(o, NULL);
    json_out_text(o, "gpu", gpu);
    json_out_text(o, "cap", cap);
    if (at_once)
        json_out_bool(o, "at_once", true);
    json_out_end(o);
    return ask_wait(own_node_ask(own), "POST", "/v1/claims", o, NULL, err);
}

static void first_claim(void)
{
    auto_(own_node_free) struct own_node *own = NULL;
    uw_error err = {""};

    ok(open_own("1", NULL, &own, &err) == 0, "a node for one board: %s", err.text);
    if (!own)
        return;
    run_s(60);
    is_int((long long)number(own, "/v1/node", NULL, "gpus"), 1,
           "it has that board alone");
    ok(!actuator_is_up(own), "readers start no actuator");
    ok(claim(own, "0", "200 W", true, &err) == -ENOENT, "a board of others: %s",
       err.text);
    ok(claim(own, "1", "999 W", true, &err) == -EINVAL, "above the board: %s", err.text);
    ok(claim(own, "1", "200 W", true, &err) == 0, "a claim: %s", err.text);
    ok(actuator_is_up(own), "the actuator was started for it");
    run_s(0.5);
    is_int((long long)number(own, "/v1/gpus/1/explain", NULL, "enforced_mw"), 200000,
           "in force without a ramp");
    is_int((long long)number(own, "/v1/node", NULL, "jobs"), 0, "no job was looked for");
}

static void ramp_and_raise(void)
{
    auto_(own_node_free) struct own_node *own = NULL, *two = NULL;
    uw_error err = {""};

    fault("0 limit 200W");
    ok(open_own("0", NULL, &own, &err) == 0 && open_own("2", NULL, &two, &err) == 0,
       "two nodes at once: %s", err.text);
    if (!own || !two)
        return;
    ok(claim(two, "2", "250 W", false, &err) == 0 &&
           claim(own, "0", "280 W", true, &err) == 0,
       "each has a claim: %s", err.text);
    run_s(0.5);
    is_int((long long)number(own, "/v1/gpus/0/explain", NULL, "enforced_mw"), 280000,
           "raised above the 200 W that were found");
    ok(number(two, "/v1/gpus/2/explain", NULL, "enforced_mw") > 290000,
       "without at_once the class's ramp is walked");
    run_s(60);
    is_int((long long)number(two, "/v1/gpus/2/explain", NULL, "enforced_mw"), 250000,
           "to its end");
    fault("0 limit 220W");
    run_s(5);
    auto_(json_free) struct json *doc = get(own, "/v1/gpus/0/explain");
    const char *state = json_as_text(json_get(json_get(json_root(doc), "cap"), "state"));
    ok(state && strcmp(state, "yielded") == 0, "another's limit is left: %s", state);
}

/* What a command waits for: its boards held, and given back. */
static void wait_for_caps(void)
{
    auto_(own_node_free) struct own_node *own = NULL;
    uint64_t began_ns, most_ns = 60 * NS_PER_S;
    struct caps_view cap;
    uw_error err = {""};

    if (!ok(open_own("3", NULL, &own, &err) == 0 && own_node_actuator(own, &err) == 0,
            "a node and its actuator: %s", err.text))
        return;
    const struct caps *caps = node_caps(own_node_node(own));
    for (int hold = 1; hold >= 0; hold--) {
        enum caps_state want = hold ? CAPS_HELD : CAPS_FREE;
        unsigned waits = 0;
        own_node_hold(own, hold == 1);
        began_ns = loop_now_ns(w.loop);
        for (caps_look(caps, 0, &cap); cap.state != want && waits < 10; waits++) {
            own_node_wait(own, began_ns + most_ns);
            caps_look(caps, 0, &cap);
        }
        ok(cap.state == want && waits < 10 &&
               loop_now_ns(w.loop) < began_ns + most_ns / 10,
           "%s after %.3f s, %u waits", hold ? "held" : "given back",
           s_between(began_ns, loop_now_ns(w.loop)), waits);
    }
    began_ns = loop_now_ns(w.loop);
    own_node_wait(own, began_ns + most_ns);
    ok(loop_now_ns(w.loop) == began_ns + most_ns, "without a change it ends in time");
}

static size_t claims_of(struct own_node *own)
{
    auto_(json_free) struct json *doc = get(own, "/v1/claims");

    return doc ? json_count(json_get(json_root(doc), "claims")) : 0;
}

/* There is no ledger from which boards that are opened anew would have their claims. */
static void driver_loaded_anew(void)
{
    auto_(own_node_free) struct own_node *own = NULL;
    uw_error err = {""};

    ok(open_own("2", NULL, &own, &err) == 0 && claim(own, "2", "200 W", true, &err) == 0,
       "a claim before the driver is loaded anew: %s", err.text);
    if (!own)
        return;
    run_s(1);
    fault("reload");
    run_s(20);
    is_int((long long)claims_of(own), 1, "the claim stands");
    is_int((long long)number(own, "/v1/gpus/2/explain", NULL, "enforced_mw"), 200000,
           "and is in force again");
}

static void refused(void)
{
    static const struct actuator_virtual nobody = {.guard = NULL};
    auto_(own_node_free) struct own_node *own = NULL;
    uw_error err = {""}, again = {""};

    ok(open_own("3", &nobody, &own, &err) == 0, "a node whose actuator cannot start");
    if (!own)
        return;
    ok(claim(own, "3", "200 W", true, &err) == -EPERM && strstr(err.text, "does not run"),
       "the claim fails with the actuator's text: %s", err.text);
    run_s(120);
    ok(claim(own, "3", "200 W", true, &again) == -EPERM &&
           strcmp(err.text, again.text) == 0,
       "so does the next one; it is not started again");
    ok(own_node_actuator(own, &again) == -EPERM, "nor by who asks for it");
}

static bool has_state(struct own_node *own, const char *path, const char *want)
{
    auto_(json_free) struct json *doc = get(own, path);
    const struct json_value *cap = doc ? json_get(json_root(doc), "cap") : NULL;
    const char *state = json_as_text(json_get(cap, "state"));

    return state && strcmp(state, want) == 0;
}

/* What `underwatt run` needs beside claims. */
static void job(void)
{
    auto_(own_node_free) struct own_node *own = NULL;
    auto_(json_free) struct json *begun = NULL, *ended = NULL;
    uw_error err = {""};
    uint64_t id = 0;
    char path[64];

    ok(open_for("2", NULL, true, &own, &err) == 0, "a node for a job: %s", err.text);
    if (!own)
        return;
    uint64_t began = loop_now_ns(w.loop);
    ok(own_node_feed(own, &err) == 0 && !actuator_is_up(own), "it reads: %s", err.text);
    ok(s_between(began, loop_now_ns(w.loop)) < 0.01, "CMD may start %g s later",
       s_between(began, loop_now_ns(w.loop)));
    ok(own_node_actuator(own, &err) == 0, "an actuator: %s", err.text);
    own_node_hold(own, true);
    run_s(0.5);
    ok(has_state(own, "/v1/gpus/2/explain", "held"), "its board is held without a claim");
    own_node_hold(own, false);
    run_s(0.5);
    ok(has_state(own, "/v1/gpus/2/explain", "free"), "and given back");
    ok(ask_wait(own_node_ask(own), "POST", "/v1/windows", NULL, &begun, &err) == 0,
       "a window: %s", err.text);
    fault("all reload");
    run_s(300);
    (void)json_get_u64(begun ? json_root(begun) : NULL, "id", &id, NULL);
    (void)snprintf(path, sizeof path, "/v1/windows/%" PRIu64 "/end", id);
    ok(ask_wait(own_node_ask(own), "POST", path, NULL, &ended, &err) == 0,
       "the driver is loaded anew: the window stays: %s", err.text);
    ok(claim(own, "2", "200 W", true, &err) == 0, "a claim: %s", err.text);
    run_s(1);
    fault("2 limit 220W");
    run_s(3600);
    ok(has_state(own, "/v1/gpus/2/explain", "yielded"),
       "another's limit is left alone for good");
}

int main(void)
{
    struct own_node *none = NULL;
    struct sim_machine machine;
    uw_error err = {""};
    int r = loop_new_virtual(1000 * NS_PER_S, 1700000000, &w.loop, &err);

    log_set_level(LOG_LEVEL_NONE);
    if (r == 0)
        r = loop_timer_new(w.loop, UINT64_MAX, 0, on_timer, NULL, &w.timer, &err);
    if (r == 0)
        r = sim_machine_builtin("v100", 4, &machine, &err);
    if (r == 0)
        r = virtual_world_new(w.loop, &machine, 1, &w.sim, &err);
    ok(r == 0, "a world: %s", err.text);
    ok(open_own("7", NULL, &none, &err) < 0 && !none, "no such board: %s", err.text);
    first_claim();
    ramp_and_raise();
    wait_for_caps();
    driver_loaded_anew();
    refused();
    job();
    virtual_world_free(w.sim);
    loop_timer_free(w.timer);
    loop_free(w.loop);
    return done();
}
