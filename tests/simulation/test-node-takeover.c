/* What a daemon finds that is started anew beside an actuator that lived on: chosen
 * scenes of what test-node-chaos.c plays at random.
 */
#pragma GCC diagnostic ignored "-Wunused-function" /* it leaves out what is random */
#include "node/tuner.h"
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

/* The claims are in view while nobody can say a thing about the boards. */
static void ask_while_away(void)
{
    const struct caps_view *v = cap(0);
    uw_error err = {""};
    size_t at = 9;
    char text[200];

    ok(node_board(r.node, "1", &at, &err) == 0 && at == 1, "a board is known by name");
    is_int(node_release(r.node, &root, "0", 0, NULL, NULL, &err), -EAGAIN,
           "what has to be done to one waits: %s", err.text);
    is_int(node_withdraw(r.node, &root, 1, &err), -EAGAIN, "a withdrawal, too");
    (void)caps_claim_met(v, &v->claims->claim[0], text, sizeof text);
    is_str(text, "not in force: waiting for the boards", "the claim says so");
}

static void waiting(void)
{
    unsigned without = 0, shown = 0;

    open_scene("boards are opened anew, which takes its time");
    begin_life(&r);
    claim(0, CLAIM_HARD, 200000);
    pass(&r, 5);
    fault(&r, "0 limit 230W");
    pass(&r, 3);
    uint64_t others = changes(0, CAPS_CAUSE_OTHER);
    is_int((long long)others, 1, "another writer was counted");
    fault(&r, "reload");
    fault(&r, "1 hang for 20s");
    r.may_default = r.hung = true;
    for (int i = 0; i < 200; i++) {
        pass(&r, 0.1);
        const struct node_view *v = node_look(r.node);
        without += v->n_boards == 0 || v->board[0].cap.claims->n != 1;
        if (v->n_boards == 2 &&
            strcmp(v->board[0].cap.text, "waiting for the boards") == 0 && shown++ == 0)
            ask_while_away();
    }
    is_int(without, 0, "the claim is there in each look");
    ok(shown > 10, "it waited for the boards (%u looks)", shown);
    pass(&r, 30);
    is_int(limit_of(&r, 0), 200000, "the boards are back: in force");
    ok(changes(0, CAPS_CAUSE_OTHER) == others, "counts go on");
    close_scene();
}

/* Anna's training, registered with a search; its number. */
static uint64_t begin_search(void)
{
    for (int i = 0; i < 40 && !r.run[0].job; i++) {
        end_run(&r, &r.run[0]);
        begin_run(&r, &r.run[0]);
    }
    return r.run[0].job;
}

/* What the ledger has of a job is shown by the next daemon's first look. */
static void energy(void)
{
    open_scene("the energy of a job that is taken over");
    begin_life(&r);
    uint64_t job = begin_search();
    pass(&r, 64);
    const struct view_job *j = node_look(r.node)->job;
    double before_j = j->energy_j, time_s = j->time_s;
    ok(j->job->id == job && before_j > 5000 && j->half_j.known, "%.0f J in %.0f s",
       before_j, time_s);
    kill_node(&r);
    begin_life(&r);
    j = node_look(r.node)->job;
    ok(j->job->id == job && j->time_s < time_s + 1, "another daemon has it");
    ok(j->energy_j <= before_j && j->energy_j > before_j - 300 * INTERVAL_S,
       "… shows its energy at once, less the last interval's at the most: %.0f J",
       j->energy_j);
    ok(j->half_j.known && j->half_j.v > 0, "… and its interval: ± %.0f J", j->half_j.v);
    before_j = j->energy_j;
    pass(&r, 30);
    j = node_look(r.node)->job;
    ok(j->energy_j > before_j + 2000, "… and goes on from there: %.0f J", j->energy_j);
    close_scene();
}

/* A job whose page died with its client: the cap that was found is held blind for a
 * while, no longer.
 */
static void blind(void)
{
    open_scene("daemon and client die, the job lives");
    begin_life(&r);
    uint64_t job = begin_search();
    const struct node_view *v = node_look(r.node);
    size_t at = v->n_jobs && v->job[0].job->boards & 1 ? 0 : 1;
    for (int i = 0; i < 400 && !strstr(node_look(r.node)->job[0].search.state, "holds");
         i++)
        pass(&r, 5);
    pass(&r, 60);
    uint32_t held = limit_of(&r, at);
    ok(job && held && held < ORIGINAL_MW, "a cap is found and held: %u mW", held);
    kill_node(&r);
    r.run[0].job = 0; /* nobody hands the page over */
    begin_life(&r);
    pass(&r, 5);
    is_int(limit_of(&r, at), held, "held on for a moment");
    pass(&r, 40);
    is_int(limit_of(&r, at), ORIGINAL_MW, "no progress is known: no cap of the search's");
    ok(strstr(node_look(r.node)->job[0].search.state, "no steps"), "told: %s",
       node_look(r.node)->job[0].search.state);
    r.run[0].job = job;
    hand_over(&r, &r.run[0]);
    pass(&r, 120);
    ok(limit_of(&r, at) < ORIGINAL_MW, "the page is back: so is the cap, %u mW",
       limit_of(&r, at));
    close_scene();
}

static size_t board_of(uint64_t job)
{
    const struct node_view *v = node_look(r.node);

    for (size_t i = 0; i < v->n_jobs; i++)
        if (v->job[i].job->id == job)
            return v->job[i].job->boards & 1 ? 0 : 1;
    return SIZE_MAX;
}

static const struct view_search *search_of(uint64_t job)
{
    const struct node_view *v = node_look(r.node);

    for (size_t i = 0; i < v->n_jobs; i++)
        if (v->job[i].job->id == job)
            return &v->job[i].search;
    return NULL;
}

/* Until its search has gone well below the original; the limit there. */
static uint32_t wait_for_cap(size_t board)
{
    for (int i = 0; i < 400 && limit_of(&r, board) > ORIGINAL_MW * 8 / 10; i++)
        pass(&r, 1);
    return limit_of(&r, board);
}

/* What is set is the search's doing, and no original. */
static void searching(void)
{
    open_scene("a daemon dies in the middle of a search");
    begin_life(&r);
    uint64_t job = begin_search();
    size_t at = board_of(job);
    uint32_t low = wait_for_cap(at);
    ok(low <= ORIGINAL_MW * 8 / 10 && !strstr(search_of(job)->state, "holds"),
       "it is on its way: %u mW, %s", low, search_of(job)->state);
    kill_node(&r);
    begin_life(&r);
    pass(&r, 3);
    is_int(search_of(job)->report->original_mw, ORIGINAL_MW,
           "the next one knows the original (%s)", search_of(job)->state);
    is_int(limit_of(&r, at), ORIGINAL_MW, "… which is in force until it searches");
    for (int i = 0; i < 400 && !strstr(search_of(job)->state, "holds"); i++)
        pass(&r, 5);
    ok(strstr(search_of(job)->state, "holds") && search_of(job)->cap_mw < ORIGINAL_MW,
       "a cap is found: %s", search_of(job)->state);
    is_int(search_of(job)->report->reference_mw, ORIGINAL_MW,
           "… against the original, as ever");
    close_scene();
}

/* The same for another job, at once: what a dead one's search has left on its board. */
static void left(void)
{
    open_scene("a daemon dies in the middle of a search, then the job does");
    begin_life(&r);
    uint64_t job = begin_search();
    size_t at = board_of(job);
    uint32_t low = wait_for_cap(at);
    ok(low <= ORIGINAL_MW * 8 / 10, "it is on its way: %u mW", low);
    kill_node(&r);
    begin_life(&r);
    end_run(&r, &r.run[0]);
    do {
        job = begin_search();
    } while (board_of(job) != at && (end_run(&r, &r.run[0]), true));
    ok(job, "another job, on the same board");
    pass(&r, 5);
    is_int(search_of(job)->report->original_mw, ORIGINAL_MW,
           "its search knows the original (%s)", search_of(job)->state);
    close_scene();
}

int main(void)
{
    log_set_level((enum log_level)(getenv("CHAOS_LOG") ? LOG_LEVEL_DEBUG : 0));
    reloaded();
    foreign();
    waiting();
    blind();
    energy();
    searching();
    left();
    return done();
}
