/* What a daemon finds that is started anew beside an actuator that lived on: chosen
 * scenes of what test-node-chaos.c plays at random.
 */
#pragma GCC diagnostic ignored "-Wunused-function" /* it leaves out what is random */
#include "simulation/chaos-scene.h"

static struct round r;

static void open_scene(const char *name)
{
    printf("# %s\n", name);
    ok(open_round(&r, 1, 2), "a world");
    r.config.caps.yield_ns = 600 * NS_PER_S; /* the default */
}

static void close_scene(void)
{
    is_str(r.bad, "", "nothing else went wrong");
    close_round(&r);
}

static void claim(size_t board, enum claim_kind kind, uint32_t mw)
{
    char name[24];
    struct node_claim ask = {
        .board = name, .kind = kind, .cap = {.mw = mw}, .why = "a test"};
    uw_error err = {""};

    (void)snprintf(name, sizeof name, "%zu", board);
    int got = node_claim(r.node, &root, &ask, NULL, &err);
    ok(got == 0, "%u mW are claimed %s", mw, err.text);
}

static const struct caps_view *cap(size_t board)
{
    return &node_look(r.node)->board[board].cap;
}

static uint64_t changes(size_t board, enum caps_cause cause)
{
    return cap(board)->changes[cause];
}

/* The driver forgets the cap while nobody but the actuator is there: nobody is yielded
 * to. */
static void reloaded(void)
{
    open_scene("the driver is loaded anew between two daemons");
    begin_life(&r);
    claim(0, CLAIM_HARD, 200000);
    pass(&r, 5);
    is_int(limit_of(&r, 0), 200000, "in force");
    kill_node(&r);
    fault(&r, "reload");
    begin_life(&r);
    pass(&r, 2);
    is_int(limit_of(&r, 0), 200000, "in force again: nobody's will had changed it");
    is_int((long long)changes(0, CAPS_CAUSE_OTHER), 0, "nobody is blamed");
    is_str(caps_state_name(cap(0)->state), "held", "held");
    close_scene();
}

/* Another's limit is yielded to as always. */
static void foreign(void)
{
    open_scene("another writes between two daemons");
    begin_life(&r);
    claim(0, CLAIM_HARD, 200000);
    pass(&r, 5);
    kill_node(&r);
    fault(&r, "0 limit 230W");
    begin_life(&r);
    pass(&r, 2);
    is_int(limit_of(&r, 0), 230000, "theirs stays");
    is_int((long long)changes(0, CAPS_CAUSE_OTHER), 1, "counted as theirs");
    is_str(caps_state_name(cap(0)->state), "yielded", "yielded to");
    close_scene();
}

int main(void)
{
    log_set_level((enum log_level)(getenv("CHAOS_LOG") ? LOG_LEVEL_DEBUG : 0));
    reloaded();
    foreign();
    return done();
}
