#include "made.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "core/policy/policy.h"

#define S 1000000000ull

static void make_board(struct made *m, size_t i)
{
    struct gpu_info *info = &m->info[i];
    struct view_board *b = &m->board[i];

    *info = (struct gpu_info){.index = (unsigned)i,
                              .name = "Made V100",
                              .abilities = GPU_CAN_LIMIT | GPU_CAN_SET_LIMIT,
                              .simulated = true};
    (void)snprintf(info->uuid, sizeof info->uuid,
                   "GPU-00000000-0000-0000-0000-00000000000%zu", i);
    (void)snprintf(info->pci_bus_id, sizeof info->pci_bus_id, "00000000:%02zX:00.0",
                   i + 16);
    *b = (struct view_board){
        .info = info,
        .cap = {.state = CAPS_FREE,
                .can_cap = true,
                .clock = {.can = true,
                          .on = true,
                          .bounds = {.max_mhz = 1410, .min_mhz = 210, .floor_mhz = 705},
                          .verdict = {.target_mhz = 1410, .most_mhz = 1410}},
                .limits = {100000, 300000, 300000},
                .bounds = {300000, 100000, 120000},
                .verdict = {.target_mw = 300000, .most_mw = 300000},
                .ramp_mw = 300000,
                .ramping = i == 1,
                .rate_mw_s = i == 1 ? 6250 : 0,
                .enforced_mw = 300000,
                .claims = &m->claims[i],
                .cls = CAP_CLASS_DEFAULT,
                .writes = 3,
                .failures = 1,
                .changes = {2, 0, 1, 0, 0}},
        .last = {.has = GPU_HAS_POWER | GPU_HAS_ENFORCED | GPU_HAS_REQUESTED |
                        GPU_HAS_UTIL | GPU_HAS_TEMP | GPU_HAS_CLOCKS | GPU_HAS_REASONS,
                 .power_w = 211.5,
                 .enforced_mw = 300000,
                 .requested_mw = 300000,
                 .util_gpu = 97,
                 .util_mem = 40,
                 .temp_c = 61,
                 .sm_mhz = 1380,
                 .mem_mhz = 877},
        .power_w = {true, 210.25},
        .energy_j = 123456.789 + (double)i,
        .idle_j = 23456.789,
        .use_j = {[WASTE_HELD] = 1500, [WASTE_NOBODY] = 23456.789},
        .use_s = {[WASTE_HELD] = 30, [WASTE_NOBODY] = 600},
        .use = WASTE_HELD,
        .use_for_s = 330,
        .memory_bytes = 1 << 30,
        .unattributed_j = (double)i,
        .attributed_j = 100000,
        .today_j = 3600,
        .charged = {.amount = {4500, -250, -1500000},
                    .covered_uj = {54000000000, 18000000000, 36000000000},
                    .currency = "EUR"},
        .throttle_s = {10, 0, 12.5, 0, 0, 0.25, 0, 0},
        .calls = 1000 + i,
        .failures = i,
    };
}

static void make_job(struct made *m, size_t i, size_t n_boards)
{
    struct job_entry *e = &m->entry[i];
    size_t on = n_boards ? i % n_boards : 0;

    *e = (struct job_entry){.id = 100 + i,
                            .source = i % 2 ? JOB_RUN : JOB_FOUND,
                            .uid = (uid_t)(1000 + i),
                            .boards = 1ull << on,
                            .n_labels = 1,
                            .pid = (pid_t)(4000 + i),
                            .n_pids = 1,
                            .began_ns = 10 * S,
                            .began_utc_ns = 1760000010LL * (int64_t)S};
    (void)snprintf(e->name, sizeof e->name, "secret-%zu", i);
    (void)snprintf(e->user, sizeof e->user, "user%zu", i);
    (void)snprintf(e->label[0].key, sizeof e->label[0].key, "project");
    (void)snprintf(e->label[0].value, sizeof e->label[0].value, "hidden-%zu", i);
    m->job[i] = (struct view_job){
        .job = e,
        .energy_j = 1000.5 + (double)i,
        .half_j = {true, 10},
        .booked_s = 80,
        .time_s = 90,
        .charged = {.amount = {4500, -250, -1500000},
                    .covered_uj = {54000000000, 18000000000, 36000000000},
                    .currency = "EUR"},
        .steps = 450,
        .phase = {.phase = UW_PHASE_VALIDATE,
                  .by = PHASE_BY_TELEMETRY,
                  .since_ns = 50 * S,
                  .confidence = {true, 0.66}},
        .phases = {.no_gain = true, .compared = {.static_w = 205}},
        .step_s = 0.2};
    if (i % 2)
        m->job[i].search = (struct searches_view){.on = true,
                                                  .goal = "edp",
                                                  .state = "holding",
                                                  .cap_mw = 205000,
                                                  .caps = 9,
                                                  .windows = 20,
                                                  .saved = {.known = true,
                                                            .fraction = 0.21,
                                                            .half = 0.02,
                                                            .slowdown = 1.04,
                                                            .slowdown_half = 0.01,
                                                            .energy_j = 260,
                                                            .half_j = 25}};
    if (n_boards == 0)
        return;
    m->board[on].job[m->board[on].n_jobs++ % 8] = e->id;
    if (m->board[on].n_jobs > 8)
        m->board[on].n_jobs = 8;
}

static void make_claims(struct made *m)
{
    struct claims *c = &m->claims[0];
    struct caps_view *v = &m->board[0].cap;

    c->claim[0] = (struct claim){.id = 7,
                                 .kind = CLAIM_SOFT,
                                 .mw = 210000,
                                 .made_ns = 20 * S,
                                 .until_ns = CLAIM_FOREVER,
                                 .uid = 1000,
                                 .job = 100,
                                 .source = CLAIM_OF_SEARCH,
                                 .way = CLAIM_AT_ONCE,
                                 .who = "search of job 100",
                                 .why = "least energy so far"};
    c->claim[1] = (struct claim){.id = 8,
                                 .kind = CLAIM_HARD,
                                 .mw = 150000,
                                 .made_ns = 30 * S,
                                 .until_ns = 700 * S,
                                 .uid = 0,
                                 .who = "user root",
                                 .why = "budget \"row 3\""};
    c->n = 2;
    v->state = CAPS_HELD;
    v->verdict = (struct cap_verdict){.target_mw = 150000,
                                      .by = CAP_BY_CLAIM,
                                      .claim = 8,
                                      .most_mw = 150000,
                                      .at_once = true};
    v->ramp_mw = v->enforced_mw = 150000;
    m->board[0].last.enforced_mw = m->board[0].last.requested_mw = 150000;
}

/* A price below 0, a truth, a forecast, one that is unknown. */
static void make_signals(struct made *m)
{
    static const char *const names[] = {"price", "grid.open", "carbon.forecast",
                                        "carbon"};
    static const char *const units[] = {"EUR/kWh", "", "g/kWh", "g/kWh"};
    static const struct policy_point ahead[] = {
        {1760000040, 250.5}, {1760001840, (double)NAN}, {1760003640, 240}};

    for (size_t i = 0; i < 4; i++) {
        (void)snprintf(m->decl[i].name, sizeof m->decl[i].name, "%s", names[i]);
        (void)snprintf(m->decl[i].unit, sizeof m->decl[i].unit, "%s", units[i]);
        m->decl[i].age_ns = 7200 * S;
        m->signal[i] =
            (struct signal_view){.decl = &m->decl[i],
                                 .source = "file /srv/grid.csv",
                                 .known = i < 3,
                                 .used = true,
                                 .age_s = 60,
                                 .utc_ns = 1760000040LL * (int64_t)S,
                                 .ends_s = i < 3 ? 7140 : 0,
                                 .end_utc_ns = i < 3 ? 1760007240LL * (int64_t)S : 0,
                                 .point = i == 2 ? ahead : NULL,
                                 .points = i == 2 ? 3 : 0,
                                 .point_end_utc_s = 1760007240,
                                 .why = i < 3 ? "" : "/srv/grid.csv: torn"};
    }
    static const struct signal_facts facts = {
        .asked = {"grid", 7, 1, 1760000000, 1760000900},
        .issued_utc_s = 1760000000,
        .judged = {{3600, true, {60, 60, 0, 3, 20.5, 15, 30}},
                   {10800, false, {59, 0, 1, 3, 10, 15, (double)NAN}}},
        .n_judged = 2};
    m->signal[2].facts = &facts;
    m->value[0].number = -0.02;
    m->decl[1].type = m->value[1].type = POLICY_TRUTH;
    m->value[1].truth = true;
    m->signal[0].value = &m->value[0];
    m->signal[1].value = &m->value[1];
    m->signal[1].by_hand = true;
}

void made_init(struct made *m, size_t n_boards, size_t n_jobs)
{
    static const struct config_class of_caps[] = {{.name = "default"}, {.name = "slow"}};
    static const struct policy_class of_policy[] = {{.name = "slow"}, {.name = "night"}};

    memset(m, 0, sizeof *m);
    for (size_t i = 0; i < n_boards; i++)
        make_board(m, i);
    for (size_t i = 0; i < n_jobs; i++)
        make_job(m, i, n_boards);
    if (n_boards > 0)
        make_claims(m);
    make_signals(m);
    m->rapl[0] =
        (struct view_rapl){"package-0", 5000, {true, 80.5}, {5000.25, {true, 81.75}}};
    m->rapl[1] = (struct view_rapl){"dram-0", 400, {false, 0}, {400.5, {false, 0}}};
    m->view = (struct node_view){
        .hostname = "made-host",
        .version = "0.1.0",
        .simulated = true,
        .now_ns = 100 * S,
        .began_ns = 5 * S,
        .utc_ns = 1760000100LL * (int64_t)S,
        .board = m->board,
        .n_boards = n_boards,
        .job = m->job,
        .n_jobs = n_jobs,
        .rapl = m->rapl,
        .n_rapl = 2,
        .signal = m->signal,
        .n_signals = 4,
        .budget = {.budget_mw = 2400000, .counted_mw = 2400000, .least_mw = 1200000},
        .policy = {.caps_cls = of_caps,
                   .n_caps_classes = 2,
                   .cls = of_policy,
                   .n_classes = 2},
        .config_loads = 1,
        .ledger_rows = 40};
}
