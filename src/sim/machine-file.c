/* Reading a machine file: docs/machine-file.md describes every key. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/names.h"
#include "base/nearest.h"
#include "base/units.h"
#include "base/utf8.h"
#include "io/yaml.h"
#include "sim/catalogue.h"
#include "sim/machine.h"

#define W_MAX 10000.0 /* of any board here */
#define UID_MAX 4294967294ull

/* A board in the file; 0, NULL and NOT_GIVEN: not given. */
struct board_file {
    const char *model, *uuid, *sensor;
    uint64_t count;
    uint32_t limit_mw, min_mw, max_mw, default_mw, idle_mw, noise_mw;
    uint32_t offset_spread_mw;
    uint64_t minor;
    double gain, gain_spread, speed_noise;
    uint64_t speed_memory_ns;
    struct plant_trait trait;
    int counter; /* COUNTER_AS_MODEL or enum plant_counter */
    double ambient_c, resistance_kpw, leak_per_k;
    uint64_t tau_ns, counter_period_ns, lag_ns;
    bool ideal, clock_locks, mig;
};

enum { COUNTER_AS_MODEL = -1 };
#define NOT_GIVEN (-1e9)
#define NO_MINOR UINT64_MAX

static const struct yaml_word counter_words[] = {
    {"none", PLANT_COUNTER_NONE},
    {"true-power", PLANT_COUNTER_TRUE},
    {"sensor", PLANT_COUNTER_SENSED},
    {NULL, 0},
};

#define BOARD(field) offsetof(struct board_file, field)
/* clang-format off */
static const struct yaml_key board_keys[] = {
    {"model", YAML_TYPE_TEXT, BOARD(model), true, 0, 0, NULL},
    {"count", YAML_TYPE_U64, BOARD(count), false, 1, SIM_MACHINE_BOARDS_MAX, NULL},
    {"uuid", YAML_TYPE_TEXT, BOARD(uuid), false, 0, 0, NULL},
    {"minor", YAML_TYPE_U64, BOARD(minor), false, 0, SIM_MINOR_MAX, NULL},
    {"mig", YAML_TYPE_BOOL, BOARD(mig), false, 0, 0, NULL},
    {"limit", YAML_TYPE_POWER, BOARD(limit_mw), false, 1, W_MAX, NULL},
    {"min_limit", YAML_TYPE_POWER, BOARD(min_mw), false, 1, W_MAX, NULL},
    {"max_limit", YAML_TYPE_POWER, BOARD(max_mw), false, 1, W_MAX, NULL},
    {"default_limit", YAML_TYPE_POWER, BOARD(default_mw), false, 1, W_MAX, NULL},
    {"idle", YAML_TYPE_POWER, BOARD(idle_mw), false, 1, W_MAX, NULL},
    {"sensor", YAML_TYPE_TEXT, BOARD(sensor), false, 0, 0, NULL},
    {"gain", YAML_TYPE_DOUBLE, BOARD(gain), false, 0.5, 2, NULL},
    {"gain_spread", YAML_TYPE_DOUBLE, BOARD(gain_spread), false, 0, 0.2, NULL},
    {"offset_spread", YAML_TYPE_POWER, BOARD(offset_spread_mw), false, 0.001, 50, NULL},
    {"noise", YAML_TYPE_POWER, BOARD(noise_mw), false, 0.001, 100, NULL},
    {"ideal", YAML_TYPE_BOOL, BOARD(ideal), false, 0, 0, NULL},
    {"clock_locks", YAML_TYPE_BOOL, BOARD(clock_locks), false, 0, 0, NULL},
    {"lag", YAML_TYPE_DURATION, BOARD(lag_ns), false, 0.001, 5, NULL},
    {"speed_noise", YAML_TYPE_DOUBLE, BOARD(speed_noise), false, 0, 0.2, NULL},
    {"speed_memory", YAML_TYPE_DURATION, BOARD(speed_memory_ns), false, 0, 3600, NULL},
    {"power_factor", YAML_TYPE_DOUBLE, BOARD(trait.power), false, 0.5, 2, NULL},
    {"work", YAML_TYPE_DOUBLE, BOARD(trait.work), false, 0.1, 10, NULL},
    {"spin", YAML_TYPE_DOUBLE, BOARD(trait.spin), false, 0, 1, NULL},
    {"counter", YAML_TYPE_WORD, BOARD(counter), false, 0, 0, counter_words},
    {"counter_period", YAML_TYPE_DURATION, BOARD(counter_period_ns), false, 0.001, 10, NULL},
    {"ambient", YAML_TYPE_DOUBLE, BOARD(ambient_c), false, -20, 60, NULL},
    {"thermal_resistance", YAML_TYPE_DOUBLE, BOARD(resistance_kpw), false, 0.001, 2, NULL},
    {"thermal_tau", YAML_TYPE_DURATION, BOARD(tau_ns), false, 0.1, 3600, NULL},
    {"leakage", YAML_TYPE_DOUBLE, BOARD(leak_per_k), false, 0, 0.05, NULL},
    {NULL, 0, 0, false, 0, 0, NULL},
};
/* clang-format on */

struct fault_file {
    uint64_t at_ns, for_ns;
    const struct yaml_node *board;
    int kind;
    uint32_t mw;
};

static const struct yaml_word fault_words[] = {
    {"lost", SIM_FAULT_K_LOST},       {"found", SIM_FAULT_K_FOUND},
    {"hang", SIM_FAULT_K_HANG},       {"release", SIM_FAULT_K_RELEASE},
    {"refuse", SIM_FAULT_K_REFUSE},   {"accept", SIM_FAULT_K_ACCEPT},
    {"limit", SIM_FAULT_K_LIMIT},     {"reload", SIM_FAULT_K_RELOAD},
    {"unload", SIM_FAULT_K_UNLOAD},   {"stuck", SIM_FAULT_K_STUCK},
    {"unstuck", SIM_FAULT_K_UNSTUCK}, {"ignore", SIM_FAULT_K_IGNORE},
    {"heed", SIM_FAULT_K_HEED},       {NULL, 0},
};

#define FAULT(field) offsetof(struct fault_file, field)
static const struct yaml_key fault_keys[] = {
    {"at", YAML_TYPE_DURATION, FAULT(at_ns), true, 0, 0, NULL},
    {"board", YAML_TYPE_NODE, FAULT(board), false, 0, 0, NULL},
    {"fault", YAML_TYPE_WORD, FAULT(kind), true, 0, 0, fault_words},
    {"to", YAML_TYPE_POWER, FAULT(mw), false, 1, W_MAX, NULL},
    {"for", YAML_TYPE_DURATION, FAULT(for_ns), false, 0, 0, NULL},
    {NULL, 0, 0, false, 0, 0, NULL},
};

struct workload_file {
    const char *name, *like, *board;
    uint64_t steps, gap_ns, clock_ns, memory_ns;
    uint32_t dynamic_mw, gap_mw, static_mw;
};

#define WORKLOAD(field) offsetof(struct workload_file, field)
#define DAY_S 86400.0
static const struct yaml_key workload_keys[] = {
    {"name", YAML_TYPE_TEXT, WORKLOAD(name), true, 0, 0, NULL},
    {"like", YAML_TYPE_TEXT, WORKLOAD(like), false, 0, 0, NULL},
    {"board", YAML_TYPE_TEXT, WORKLOAD(board), false, 0, 0, NULL},
    {"steps", YAML_TYPE_U64, WORKLOAD(steps), false, 1, 1e8, NULL},
    {"gap_time", YAML_TYPE_DURATION, WORKLOAD(gap_ns), false, 1e-3, DAY_S, NULL},
    {"clock_time", YAML_TYPE_DURATION, WORKLOAD(clock_ns), false, 1e-3, DAY_S, NULL},
    {"memory_time", YAML_TYPE_DURATION, WORKLOAD(memory_ns), false, 1e-3, DAY_S, NULL},
    {"dynamic_power", YAML_TYPE_POWER, WORKLOAD(dynamic_mw), false, 1, W_MAX, NULL},
    {"gap_power", YAML_TYPE_POWER, WORKLOAD(gap_mw), false, 1, W_MAX, NULL},
    {"static_power", YAML_TYPE_POWER, WORKLOAD(static_mw), false, 1, W_MAX, NULL},
    {NULL, 0, 0, false, 0, 0, NULL},
};

struct machine_file {
    const char *name, *driver;
    uint64_t seed, latency_ns;
    const struct yaml_node *set_limits, *boards, *workloads, *faults;
};

#define MACHINE(field) offsetof(struct machine_file, field)
static const struct yaml_key machine_keys[] = {
    {"name", YAML_TYPE_TEXT, MACHINE(name), false, 0, 0, NULL},
    {"driver", YAML_TYPE_TEXT, MACHINE(driver), false, 0, 0, NULL},
    {"seed", YAML_TYPE_U64, MACHINE(seed), false, 0, 0, NULL},
    {"set_latency", YAML_TYPE_DURATION, MACHINE(latency_ns), false, 0, 9, NULL},
    {"set_limits", YAML_TYPE_NODE, MACHINE(set_limits), false, 0, 0, NULL},
    {"boards", YAML_TYPE_NODE, MACHINE(boards), true, 0, 0, NULL},
    {"workloads", YAML_TYPE_NODE, MACHINE(workloads), false, 0, 0, NULL},
    {"faults", YAML_TYPE_NODE, MACHINE(faults), false, 0, 0, NULL},
    {NULL, 0, 0, false, 0, 0, NULL},
};

static int copy_text(const struct yaml_node *node, const char *what, const char *text,
                     char *to, size_t size, uw_error *err)
{
    size_t n = strlen(text);

    if (n == 0 || n >= size)
        return yaml_fail(node, err, -EINVAL, "%s: 1 to %zu characters", what, size - 1);
    if (!utf8_is_plain(text))
        return yaml_fail(node, err, -EINVAL, "%s: has an invisible or control character",
                         what);
    memcpy(to, text, n + 1);
    return 0;
}

/* ---- boards ---- */

static int fail_board(const struct yaml_node *node, const char *key, const char *model,
                      uw_error *err)
{
    uw_error why = {""};
    int r = sim_machine_no_board(model, &why);

    return yaml_fail(node, err, r, "%s: %s", key, why.text);
}

static int read_sensor(const struct yaml_node *node, const struct board_file *f,
                       struct sim_machine_board *b, uw_error *err)
{
    static const char *const known[] = {"kepler",    "maxwell", "pascal", "volta",
                                        "turing",    "ga100",   "ampere", "hopper",
                                        "blackwell", NULL};
    struct plant_sensor_spec *s = &b->plant.sensor;
    char none[NEAREST_NONE];

    if (f->sensor) {
        const struct plant_sensor_spec *spec = plant_sensor_generation(f->sensor);
        if (!spec)
            return yaml_fail(node, err, -EINVAL, "sensor: %s",
                             nearest_none_of(f->sensor, known, none));
        *s = *spec;
    }
    if (f->noise_mw)
        s->noise_w = w_of_mw(f->noise_mw);
    if (f->gain_spread != NOT_GIVEN)
        s->gain_sd = f->gain_spread;
    if (f->offset_spread_mw)
        s->offset_sd_w = w_of_mw(f->offset_spread_mw);
    if (f->lag_ns)
        s->lag_ns = f->lag_ns;
    if (f->counter != COUNTER_AS_MODEL)
        s->counter = (enum plant_counter)f->counter;
    if (f->counter_period_ns)
        s->counter_period_ns = f->counter_period_ns;
    if (s->counter != PLANT_COUNTER_NONE &&
        (s->counter_period_ns == 0 || s->counter_step_mj == 0))
        return yaml_fail(
            node, err, -EINVAL,
            "counter: this sensor generation has no counter: choose another sensor");
    return 0;
}

static int read_limits(const struct yaml_node *node, const struct board_file *f,
                       struct sim_machine_board *b, uw_error *err)
{
    struct plant_board *p = &b->plant;

    p->min_mw = f->min_mw ? f->min_mw : p->min_mw;
    p->max_mw = f->max_mw ? f->max_mw : p->max_mw;
    p->default_mw = f->default_mw ? f->default_mw : p->default_mw;
    if (p->min_mw > p->default_mw || p->default_mw > p->max_mw)
        return yaml_fail(node, err, -EINVAL,
                         "min_limit %u mW <= default_limit %u mW <= max_limit %u mW does "
                         "not hold",
                         p->min_mw, p->default_mw, p->max_mw);
    b->limit_mw = f->limit_mw;
    if (f->limit_mw && (f->limit_mw < p->min_mw || f->limit_mw > p->max_mw))
        return yaml_fail(node, err, -ERANGE, "limit: %g W is outside %g..%g W",
                         w_of_mw(f->limit_mw), w_of_mw(p->min_mw), w_of_mw(p->max_mw));
    return 0;
}

static void read_heat(const struct board_file *f, struct plant_board *p)
{
    if (f->idle_mw)
        p->idle_w = w_of_mw(f->idle_mw);
    if (f->ambient_c != NOT_GIVEN)
        p->ambient_c = f->ambient_c;
    if (f->resistance_kpw != NOT_GIVEN)
        p->resistance_kpw = f->resistance_kpw;
    if (f->tau_ns)
        p->tau_s = s_of_ns(f->tau_ns);
    if (f->leak_per_k != NOT_GIVEN)
        p->leak_per_k = f->leak_per_k;
}

static int read_board(const struct yaml_node *node, struct sim_machine *m, uw_error *err)
{
    struct board_file f = {.count = 1,
                           .minor = NO_MINOR,
                           .clock_locks = true,
                           .gain_spread = NOT_GIVEN,
                           .counter = COUNTER_AS_MODEL,
                           .ambient_c = NOT_GIVEN,
                           .resistance_kpw = NOT_GIVEN,
                           .leak_per_k = NOT_GIVEN};
    struct sim_machine one;

    int r = yaml_want(node, YAML_MAP, err);
    if (!r)
        r = yaml_read_map(node, board_keys, &f, err);
    if (r)
        return r;
    if (sim_machine_builtin(f.model, 1, &one, NULL))
        return fail_board(yaml_get(node, "model"), "model", f.model, err);
    if (m->n_boards + f.count > SIM_MACHINE_BOARDS_MAX)
        return yaml_fail(node, err, -EINVAL, "more than %d boards",
                         SIM_MACHINE_BOARDS_MAX);
    struct sim_machine_board *b = &one.board[0];
    b->gain = f.gain;
    b->speed_noise = f.speed_noise;
    b->speed_memory_s = (double)f.speed_memory_ns / 1e9;
    b->trait = f.trait;
    b->ideal = f.ideal;
    b->no_clock_locks = !f.clock_locks;
    b->mig = f.mig;
    r = read_sensor(node, &f, b, err);
    if (!r)
        r = read_limits(node, &f, b, err);
    if (!r && f.uuid && f.count > 1)
        r = yaml_fail(node, err, -EINVAL, "uuid: %llu boards cannot share one",
                      (unsigned long long)f.count);
    if (!r && f.uuid && strncmp(f.uuid, "GPU-", 4) != 0)
        r = yaml_fail(node, err, -EINVAL, "uuid: '%.40s' does not begin with GPU-",
                      f.uuid);
    if (!r && f.minor != NO_MINOR && f.count > 1)
        r = yaml_fail(node, err, -EINVAL, "minor: %llu boards cannot share one",
                      (unsigned long long)f.count);
    if (!r && f.uuid)
        r = copy_text(node, "uuid", f.uuid, b->uuid, sizeof b->uuid, err);
    if (r)
        return r;
    read_heat(&f, &b->plant);
    for (uint64_t i = 0; i < f.count; i++) {
        b->minor = f.minor == NO_MINOR ? (uint32_t)m->n_boards : (uint32_t)f.minor;
        m->board[m->n_boards++] = *b;
    }
    return 0;
}

static int check_two(const struct yaml_node *node, const struct sim_machine_board *a,
                     const struct sim_machine_board *b, uw_error *err)
{
    if (a->uuid[0] && strcmp(a->uuid, b->uuid) == 0)
        return yaml_fail(node, err, -EINVAL, "uuid: two boards have %s", a->uuid);
    if (a->minor == b->minor)
        return yaml_fail(node, err, -EINVAL,
                         "minor: two boards have %u (a board without one has its index)",
                         a->minor);
    return 0;
}

static int read_boards(const struct yaml_node *node, struct sim_machine *m, uw_error *err)
{
    int r = yaml_want(node, YAML_SEQ, err);

    for (size_t i = 0; !r && i < yaml_count(node); i++)
        r = read_board(yaml_at(node, i), m, err);
    if (!r && m->n_boards == 0)
        r = yaml_fail(node, err, -EINVAL, "boards: at least one");
    for (size_t i = 0; !r && i < m->n_boards; i++)
        for (size_t k = 0; !r && k < i; k++)
            r = check_two(node, &m->board[i], &m->board[k], err);
    return r;
}

/* ---- faults ---- */

static int read_fault_board(const struct yaml_node *node, const struct sim_machine *m,
                            struct sim_fault *f, uw_error *err)
{
    const char *text = "";
    uint64_t board;

    f->board = SIM_ALL_BOARDS;
    if (!node)
        return 0;
    if (yaml_kind(node) == YAML_SCALAR && yaml_text(node, &text, NULL) == 0 &&
        strcmp(text, "all") == 0)
        return 0;
    int r = yaml_u64_in(node, 0, m->n_boards - 1, &board, err);
    if (!r)
        f->board = (unsigned)board;
    return r;
}

static int check_fault(const struct yaml_node *node, const struct sim_machine *m,
                       const struct sim_fault *f, uw_error *err)
{
    const char *name = names_word(NAMES_SIM_FAULT, f->kind);

    if (f->for_ns && !sim_fault_may_last(f->kind))
        return yaml_fail(node, err, -EINVAL, "%s: takes no duration (for)", name);
    if ((f->kind == SIM_FAULT_K_LIMIT) != (f->mw != 0))
        return yaml_fail(node, err, -EINVAL,
                         f->mw ? "%s: takes no power (to)" : "%s: needs a power (to)",
                         name);
    for (size_t i = 0; f->kind == SIM_FAULT_K_LIMIT && i < m->n_boards; i++) {
        const struct plant_board *p = &m->board[i].plant;
        if ((f->board == SIM_ALL_BOARDS || f->board == i) &&
            (f->mw < p->min_mw || f->mw > p->max_mw))
            return yaml_fail(node, err, -ERANGE,
                             "to: %g W is outside board %zu's %g..%g W", w_of_mw(f->mw),
                             i, w_of_mw(p->min_mw), w_of_mw(p->max_mw));
    }
    return 0;
}

static int read_faults(const struct yaml_node *node, struct sim_machine *m, uw_error *err)
{
    int r = node ? yaml_want(node, YAML_SEQ, err) : 0;

    for (size_t i = 0; !r && node && i < yaml_count(node); i++) {
        const struct yaml_node *item = yaml_at(node, i);
        struct fault_file f = {0};
        if (i == SIM_FAULTS_MAX)
            return yaml_fail(item, err, -E2BIG, "more than %d faults", SIM_FAULTS_MAX);
        r = yaml_want(item, YAML_MAP, err);
        if (!r)
            r = yaml_read_map(item, fault_keys, &f, err);
        if (r)
            return r;
        struct sim_fault *to = &m->fault[i];
        *to = (struct sim_fault){.at_ns = f.at_ns,
                                 .kind = (enum sim_fault_kind)f.kind,
                                 .mw = f.mw,
                                 .for_ns = f.for_ns};
        r = read_fault_board(f.board, m, to, err);
        if (!r)
            r = check_fault(item, m, to, err);
        m->n_faults = i + 1;
    }
    return r;
}

/* ---- workloads ---- */

static int read_workload(const struct yaml_node *node, struct sim_workload *w,
                         uw_error *err)
{
    struct workload_file f = {.like = "resnet50"};

    int r = yaml_want(node, YAML_MAP, err);
    if (!r)
        r = yaml_read_map(node, workload_keys, &f, err);
    if (!r)
        r = copy_text(node, "name", f.name, w->name, sizeof w->name, err);
    if (!r)
        r = copy_text(node, "like", f.like, w->like, sizeof w->like, err);
    if (!r && f.board)
        r = copy_text(node, "board", f.board, w->board, sizeof w->board, err);
    if (r)
        return r;
    if (f.board && !plant_board_find(f.board))
        return fail_board(node, "board", f.board, err);
    if (strpbrk(w->name, " ,="))
        return yaml_fail(node, err, -EINVAL,
                         "name: '%s' contains a blank, comma or =", w->name);
    w->steps = (uint32_t)f.steps;
    w->gap_s = s_of_ns(f.gap_ns);
    w->clock_s = s_of_ns(f.clock_ns);
    w->memory_s = s_of_ns(f.memory_ns);
    w->dynamic_w = w_of_mw(f.dynamic_mw);
    w->gap_w = w_of_mw(f.gap_mw);
    w->static_w = w_of_mw(f.static_mw);
    return 0;
}

static int read_workloads(const struct yaml_node *node, struct sim_machine *m,
                          uw_error *err)
{
    int r = node ? yaml_want(node, YAML_SEQ, err) : 0;

    for (size_t i = 0; !r && node && i < yaml_count(node); i++) {
        const struct yaml_node *item = yaml_at(node, i);
        if (i == SIM_WORKLOADS_MAX)
            return yaml_fail(item, err, -E2BIG, "more than %d workloads",
                             SIM_WORKLOADS_MAX);
        r = read_workload(item, &m->workload[i], err);
        m->n_workloads = i + 1;
        /* does each board have this workload's numbers? */
        static struct sim_catalogue try;
        uw_error why = {""};
        if (!r && sim_catalogue_fill(m, &try, &why))
            r = yaml_fail(item, err, -EINVAL, "%s", why.text);
    }
    return r;
}

/* ---- the machine ---- */

static int read_set_limits(const struct yaml_node *node, struct sim_machine *m,
                           uw_error *err)
{
    static const struct yaml_word words[] = {
        {"root", SIM_MAY_ROOT}, {"anyone", SIM_MAY_ANYONE}, {NULL, 0}};
    int word;

    if (!node)
        return 0;
    if (yaml_kind(node) != YAML_SEQ) {
        int r = yaml_word(node, words, &word, err);
        if (!r)
            m->may_set = (enum sim_may_set)word;
        return r;
    }
    m->may_set = SIM_MAY_ROOT;
    for (size_t i = 0; i < yaml_count(node); i++) {
        uint64_t uid;
        if (i == SIM_UIDS_MAX)
            return yaml_fail(node, err, -E2BIG, "set_limits: more than %d users",
                             SIM_UIDS_MAX);
        int r = yaml_u64_in(yaml_at(node, i), 0, UID_MAX, &uid, err);
        if (r)
            return r;
        m->uids[m->n_uids++] = (uint32_t)uid;
    }
    return 0;
}

static int read_machine(const struct yaml *doc, struct sim_machine *m, uw_error *err)
{
    const struct yaml_node *root = yaml_root(doc);
    struct machine_file f = {
        .name = "simulated machine", .driver = SIM_DRIVER_VERSION, .seed = 1};

    int r = yaml_want(root, YAML_MAP, err);
    if (!r)
        r = yaml_read_map(root, machine_keys, &f, err);
    if (!r)
        r = copy_text(root, "name", f.name, m->name, sizeof m->name, err);
    if (!r)
        r = copy_text(root, "driver", f.driver, m->driver_version,
                      sizeof m->driver_version, err);
    if (r)
        return r;
    m->seed = f.seed ? f.seed : 1;
    m->set_latency_ns = f.latency_ns;
    m->may_set = SIM_MAY_ANYONE;
    r = read_set_limits(f.set_limits, m, err);
    if (!r)
        r = read_boards(f.boards, m, err);
    if (!r)
        r = read_workloads(f.workloads, m, err);
    if (!r)
        r = read_faults(f.faults, m, err);
    return r;
}

int sim_machine_read(const char *path, struct sim_machine *ret, uw_error *err)
{
    auto_(yaml_free) struct yaml *doc = NULL;

    memset(ret, 0, sizeof *ret);
    bool hidden = false;
    int r = yaml_read_shown(path, &doc, &hidden, err);
    if (r == 0)
        r = read_machine(doc, ret, err);
    return r < 0 && hidden ? yaml_not_shown(r, err) : r;
}

int sim_machine_read_text(const char *name, const char *text, size_t len,
                          struct sim_machine *ret, uw_error *err)
{
    auto_(yaml_free) struct yaml *doc = NULL;

    memset(ret, 0, sizeof *ret);
    int r = yaml_read(name, text, len, &doc, err);
    return r ? r : read_machine(doc, ret, err);
}
