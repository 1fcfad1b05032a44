/* The series of boards. */
#include "api/metrics/metrics-inside.h"
#include "base/auto.h"
#include "base/names.h"
#include "base/units.h"
#include "io/ledger.h"

typedef void (*board_fn)(struct metrics_render *r, const struct view_board *b,
                         struct metrics_slice l);

static void gpu_power(struct metrics_render *r, const struct view_board *b,
                      struct metrics_slice l)
{
    if (b->power_w.known)
        metrics_series(r, l, NULL, NULL, b->power_w.v);
}

/* No counter is shown before the meter's first reading of the board. */
static bool metered(const struct view_board *b)
{
    return b->last.has != 0 || b->energy_j > 0;
}

static void gpu_energy(struct metrics_render *r, const struct view_board *b,
                       struct metrics_slice l)
{
    if (metered(b))
        metrics_series(r, l, NULL, NULL, b->energy_j);
}

static void gpu_split(struct metrics_render *r, const struct view_board *b,
                      struct metrics_slice l)
{
    if (!metered(b))
        return;
    const double parts_j[] = {[LEDGER_JOB] = b->attributed_j,
                              [LEDGER_IDLE] = b->idle_j,
                              [LEDGER_UNATTRIBUTED] = b->unattributed_j};
    for (unsigned i = LEDGER_JOB; i <= LEDGER_UNATTRIBUTED; i++)
        metrics_series(r, l, "kind", names_word(NAMES_ENERGY_KIND, i), parts_j[i]);
}

static void put_use(struct metrics_render *r, struct metrics_slice l,
                    const double v[WASTE_N])
{
    for (unsigned i = 0; i < WASTE_N; i++)
        metrics_series(r, l, "use", names_word(NAMES_USE, i), v[i]);
}

static void gpu_use_energy(struct metrics_render *r, const struct view_board *b,
                           struct metrics_slice l)
{
    if (metered(b))
        put_use(r, l, b->use_j);
}

static void gpu_use_time(struct metrics_render *r, const struct view_board *b,
                         struct metrics_slice l)
{
    if (metered(b))
        put_use(r, l, b->use_s);
}

static void gpu_charge(struct metrics_render *r, const struct view_board *b,
                       struct metrics_slice l)
{
    metrics_put_charge(r, METRICS_GPU_CO2E, l, &b->charged);
}

static void gpu_limit(struct metrics_render *r, const struct view_board *b,
                      struct metrics_slice l)
{
    const struct caps_view *c = &b->cap;
    const struct {
        const char *kind;
        uint32_t mw;
    } limits[] = {
        {"requested", b->last.has & GPU_HAS_REQUESTED ? b->last.requested_mw : 0},
        {"enforced", b->last.has & GPU_HAS_ENFORCED ? b->last.enforced_mw : 0},
        {"target", c->can_cap ? c->verdict.target_mw : 0},
        {"ramp", c->can_cap ? c->ramp_mw : 0},
        {"min", c->limits.min_mw},
        {"max", c->limits.max_mw},
        {"default", c->limits.default_mw},
        {"original", c->bounds.original_mw},
    };

    for (size_t i = 0; i < n_elements(limits); i++)
        if (limits[i].mw > 0)
            metrics_series(r, l, "kind", limits[i].kind, w_of_mw(limits[i].mw));
}

static bool is_unmet(const struct caps_view *v, const struct claim *c)
{
    struct caps_claim_look look;

    caps_claim_look(v, c, &look);
    return look.met == CAPS_NOT_MET;
}

static void count_claims(struct metrics_render *r, const struct view_board *b,
                         struct metrics_slice l, bool unmet)
{
    if (!b->cap.claims)
        return;
    for (enum claim_kind k = CLAIM_SOFT; k <= CLAIM_HARD; k++) {
        uint64_t n = 0;
        for (size_t i = 0; i < b->cap.claims->n; i++)
            n += b->cap.claims->claim[i].kind == k &&
                 (!unmet || is_unmet(&b->cap, &b->cap.claims->claim[i]));
        metrics_series_u64(r, l, "kind", names_word(NAMES_CLAIM_KIND, k), n);
    }
}

static void gpu_claims(struct metrics_render *r, const struct view_board *b,
                       struct metrics_slice l)
{
    count_claims(r, b, l, false);
}

static void gpu_unmet(struct metrics_render *r, const struct view_board *b,
                      struct metrics_slice l)
{
    count_claims(r, b, l, true);
}

static void gpu_state(struct metrics_render *r, const struct view_board *b,
                      struct metrics_slice l)
{
    for (int s = CAPS_FREE; s <= CAPS_DENIED; s++)
        metrics_series_u64(r, l, "state", names_word(NAMES_CAP_STATE, (unsigned)s),
                           b->cap.state == (enum caps_state)s);
}

static void gpu_writes(struct metrics_render *r, const struct view_board *b,
                       struct metrics_slice l)
{
    metrics_series_u64(r, l, NULL, NULL, b->cap.writes);
}

static void gpu_write_failures(struct metrics_render *r, const struct view_board *b,
                               struct metrics_slice l)
{
    metrics_series_u64(r, l, NULL, NULL, b->cap.failures);
}

static void gpu_changes(struct metrics_render *r, const struct view_board *b,
                        struct metrics_slice l)
{
    for (int c = 0; c < CAPS_CAUSES; c++)
        metrics_series_u64(r, l, "cause", names_word(NAMES_CAP_CAUSE, (unsigned)c),
                           b->cap.changes[c]);
}

static void gpu_throttle(struct metrics_render *r, const struct view_board *b,
                         struct metrics_slice l)
{
    if (!(b->last.has & GPU_HAS_REASONS))
        return;
    for (unsigned i = 0; i < VIEW_REASONS; i++)
        metrics_series(r, l, "reason", names_word(NAMES_CLOCK_REASON, i),
                       b->throttle_s[i]);
}

static void gpu_temperature(struct metrics_render *r, const struct view_board *b,
                            struct metrics_slice l)
{
    if (b->last.has & GPU_HAS_TEMP)
        metrics_series(r, l, NULL, NULL, b->last.temp_c);
}

static void gpu_clock(struct metrics_render *r, const struct view_board *b,
                      struct metrics_slice l)
{
    if (!(b->last.has & GPU_HAS_CLOCKS))
        return;
    metrics_series(r, l, "clock", "sm", b->last.sm_mhz * 1e6);
    metrics_series(r, l, "clock", "memory", b->last.mem_mhz * 1e6);
}

static void gpu_lock(struct metrics_render *r, const struct view_board *b,
                     struct metrics_slice l)
{
    const struct caps_clock_view *k = &b->cap.clock;

    if (!k->can)
        return;
    metrics_series(r, l, "kind", "target", k->verdict.target_mhz * 1e6);
    metrics_series(r, l, "kind", "locked", k->locked_mhz * 1e6);
}

static void gpu_disobeyed(struct metrics_render *r, const struct view_board *b,
                          struct metrics_slice l)
{
    metrics_series_u64(r, l, NULL, NULL, b->cap.clock.disobeyed);
}

static void gpu_utilization(struct metrics_render *r, const struct view_board *b,
                            struct metrics_slice l)
{
    if (b->last.has & GPU_HAS_UTIL)
        metrics_series(r, l, NULL, NULL, b->last.util_gpu / 100.0);
}

static void gpu_memory_utilization(struct metrics_render *r, const struct view_board *b,
                                   struct metrics_slice l)
{
    if (b->last.has & GPU_HAS_UTIL)
        metrics_series(r, l, NULL, NULL, b->last.util_mem / 100.0);
}

static void gpu_jobs(struct metrics_render *r, const struct view_board *b,
                     struct metrics_slice l)
{
    metrics_series_u64(r, l, NULL, NULL, b->n_jobs);
}

static void driver_calls(struct metrics_render *r, const struct view_board *b,
                         struct metrics_slice l)
{
    metrics_series_u64(r, l, NULL, NULL, b->calls);
}

static void driver_failures(struct metrics_render *r, const struct view_board *b,
                            struct metrics_slice l)
{
    metrics_series_u64(r, l, NULL, NULL, b->failures);
}

void metrics_put_boards(struct metrics_render *r)
{
    static const struct {
        enum metrics_id id;
        board_fn fn;
    } rows[] = {
        {METRICS_GPU_INFO, metrics_info},
        {METRICS_GPU_POWER, gpu_power},
        {METRICS_GPU_ENERGY, gpu_energy},
        {METRICS_GPU_SPLIT, gpu_split},
        {METRICS_GPU_USE_ENERGY, gpu_use_energy},
        {METRICS_GPU_USE_TIME, gpu_use_time},
        {METRICS_GPU_CO2E, gpu_charge},
        {METRICS_GPU_MARGINAL, gpu_charge},
        {METRICS_GPU_COST, gpu_charge},
        {METRICS_GPU_CHARGED, gpu_charge},
        {METRICS_GPU_LIMIT, gpu_limit},
        {METRICS_GPU_CLAIMS, gpu_claims},
        {METRICS_GPU_UNMET, gpu_unmet},
        {METRICS_GPU_STATE, gpu_state},
        {METRICS_GPU_WRITES, gpu_writes},
        {METRICS_GPU_WRITE_FAILURES, gpu_write_failures},
        {METRICS_GPU_CHANGES, gpu_changes},
        {METRICS_GPU_THROTTLE, gpu_throttle},
        {METRICS_GPU_TEMPERATURE, gpu_temperature},
        {METRICS_GPU_CLOCK, gpu_clock},
        {METRICS_GPU_LOCK, gpu_lock},
        {METRICS_GPU_DISOBEYED, gpu_disobeyed},
        {METRICS_GPU_UTILIZATION, gpu_utilization},
        {METRICS_GPU_MEMORY_UTILIZATION, gpu_memory_utilization},
        {METRICS_GPU_JOBS, gpu_jobs},
        {METRICS_DRIVER_CALLS, driver_calls},
        {METRICS_DRIVER_FAILURES, driver_failures},
    };

    for (size_t k = 0; k < n_elements(rows); k++) {
        metrics_begin(r, rows[k].id);
        for (size_t i = 0; i < r->v->n_boards; i++)
            rows[k].fn(r, &r->v->board[i], metrics_board(r, i));
    }
}
