/* Everything that gpu/gpu.h promises, over every backend there is: the virtual one,
 * NVML on a simulated world (argv[1] is its library; test-backends.py starts it),
 * RAPL on a made-up tree, a recorded trace.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/auto.h"
#include "gpu/backends.h"
#include "gpu/nvml/nvml.h"
#include "gpu/rapl/rapl.h"
#include "gpu/replay/replay.h"
#include "io/loop.h"
#include "tap.h"
#include "virtual/virtual-loop.h"
#include "virtual/virtual-world.h"

#define WANT_ALL 0x3ffu

/* How a backend is brought up, and how time passes for it. */
struct stage {
    const struct gpu_backend *backend;
    bool (*set_up)(struct gpu_open_opts *opts);
    void (*pass)(unsigned ms);
    void (*tear_down)(void);
    struct gpu_open_opts none; /* where there is nothing of this backend */
    int none_result[2];
};

/* ---- NVML on a simulated world ---- */

static const char *library;

static uint64_t real_ns(void *user)
{
    struct timespec t;
    (void)user;

    (void)clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void real_pass(unsigned ms)
{
    const struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};

    (void)nanosleep(&t, NULL);
}

static bool nvml_set_up(struct gpu_open_opts *opts)
{
    *opts = (struct gpu_open_opts){.source = library, .clock = {real_ns, NULL}};
    return true;
}

static void nothing(void)
{
}

/* ---- the virtual node ---- */

static struct loop *loop;
static struct virtual_world *world;

static uint64_t virtual_ns(void *user)
{
    (void)user;
    return loop_now_ns(loop);
}

static int on_passed(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    (void)now_ns;
    (void)user;
    loop_stop(loop, 0);
    return 0;
}

static void virtual_pass(unsigned ms)
{
    struct loop_timer *timer = NULL;

    if (loop_timer_new(loop, loop_now_ns(loop) + ms * 1000000ull, 0, on_passed, NULL,
                       &timer, NULL) < 0)
        return;
    (void)loop_run(loop, NULL);
    loop_timer_free(timer);
}

static bool virtual_set_up(struct gpu_open_opts *opts)
{
    struct sim_machine machine;
    uw_error err = {{0}};

    if (sim_machine_builtin("v100", 3, &machine, &err) < 0 ||
        loop_new_virtual(1000000000, 0, &loop, &err) < 0 ||
        virtual_world_new(loop, &machine, 1, &world, &err) < 0) {
        printf("# %s\n", err.text);
        return false;
    }
    *opts = (struct gpu_open_opts){.clock = {virtual_ns, NULL}, .backend_user = world};
    return true;
}

static void virtual_tear_down(void)
{
    virtual_world_free(world);
    loop_free(loop);
}

/* ---- RAPL on a made-up tree ---- */

static char tree[] = "/tmp/uw-contract-XXXXXX";
static unsigned long long rapl_uj = 262143328000;

static void put(const char *zone, const char *file, const char *text)
{
    char path[200];

    (void)snprintf(path, sizeof path, "%s/%s", tree, zone);
    (void)mkdir(path, 0700);
    (void)snprintf(path, sizeof path, "%s/%s/%s", tree, zone, file);
    FILE *f = fopen(path, "w");
    if (f) {
        (void)fprintf(f, "%s\n", text);
        (void)fclose(f);
    }
}

static void rapl_put(void)
{
    static const char *const zones[][2] = {{"intel-rapl:0", "package-0"},
                                           {"intel-rapl:0:0", "dram"}};
    for (size_t i = 0; i < n_elements(zones); i++) {
        char text[30];
        (void)snprintf(text, sizeof text, "%llu", rapl_uj);
        put(zones[i][0], "name", zones[i][1]);
        put(zones[i][0], "max_energy_range_uj", "262143328850");
        put(zones[i][0], "energy_uj", text);
    }
}

static bool rapl_set_up(struct gpu_open_opts *opts)
{
    if (!mkdtemp(tree))
        return false;
    rapl_put();
    *opts = (struct gpu_open_opts){.source = tree, .clock = {real_ns, NULL}};
    return true;
}

/* 50 W; the counter wraps on the way. */
static void rapl_pass(unsigned ms)
{
    rapl_uj = (rapl_uj + ms * 50000ull) % 262143328850;
    rapl_put();
}

static void rapl_tear_down(void)
{
    char command[100];

    (void)snprintf(command, sizeof command, "rm -rf %s", tree);
    (void)!system(command);
}

/* ---- a recorded trace ---- */

static char trace[] = "/tmp/uw-contract-XXXXXX";

/* Two boards at 200 and 300 W for twenty seconds, a row each tenth of one. */
static bool replay_set_up(struct gpu_open_opts *opts)
{
    int fd = mkstemp(trace);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

    if (!f)
        return false;
    (void)fprintf(f, "time_s,uuid,name,power_w,energy_j\n");
    for (int i = 0; i < 200; i++)
        (void)fprintf(f, "%.1f,GPU-a,A,200,%d\n%.1f,GPU-b,B,300,%d\n", i * 0.1,
                      1000 + 20 * i, i * 0.1, 2000 + 30 * i);
    (void)fclose(f);
    *opts = (struct gpu_open_opts){.source = trace, .clock = {real_ns, NULL}};
    return true;
}

static void replay_tear_down(void)
{
    (void)unlink(trace);
    memcpy(trace + sizeof trace - 7, "XXXXXX", 6);
}

/* ---- backends as one ---- */

static char boards[300];

static bool boards_set_up(struct gpu_open_opts *opts)
{
    if (!replay_set_up(opts))
        return false;
    (void)snprintf(boards, sizeof boards, "nvml=%s,replay=%s", library, trace);
    opts->source = boards;
    return true;
}

static bool processors_set_up(struct gpu_open_opts *opts)
{
    memcpy(tree + sizeof tree - 7, "XXXXXX", 6);
    return rapl_set_up(opts);
}

/* ---- what holds for all ---- */

static const struct gpu_backend *be;

static void check_table(const struct gpu_backend *b)
{
    ok(b->name && b->name[0], "%s: has a name", b->name);
    ok(b->open && b->close && b->count && b->at && b->info && b->sample,
       "%s: what is mandatory is there", b->name);
    ok(!b->set_limit || b->limits, "%s: who sets limits tells their range", b->name);
    ok(!b->lock_clocks == !b->reset_clocks, "%s: a lock can be undone", b->name);
    ok(b->sensors != NULL, "%s: tells its sensors", b->name);
}

static void check_identity(void *lib)
{
    size_t n = be->count(lib);
    bool good = true, alike = false, unique = true, able = true;

    ok(n > 0, "%s: %zu boards", be->name, n);
    ok(be->at(lib, n) == NULL && be->at(lib, SIZE_MAX) == NULL, "%s: no board beyond",
       be->name);
    for (size_t i = 0; i < n; i++) {
        const struct gpu_info *a = be->info(be->at(lib, i));
        good = good && a->index == i && a->uuid[0] && a->name[0];
        alike = alike || a->simulated != be->info(be->at(lib, 0))->simulated;
        able = able && (be->set_limit || !(a->abilities & GPU_CAN_SET_LIMIT)) &&
               (be->limits || !(a->abilities & GPU_CAN_LIMIT)) &&
               (be->lock_clocks || !(a->abilities & GPU_CAN_LOCK_CLOCKS)) &&
               (be->procs || !(a->abilities & GPU_CAN_PROCS));
        for (size_t k = 0; k < i; k++)
            unique = unique && strcmp(a->uuid, be->info(be->at(lib, k))->uuid) != 0;
    }
    ok(good, "%s: index, UUID and name of each", be->name);
    ok(unique, "%s: no UUID twice", be->name);
    ok(!alike, "%s: all simulated or none", be->name);
    ok(able, "%s: no ability without its function", be->name);
}

static bool ordered(const struct gpu_sample *s)
{
    bool energy = !(s->has & GPU_HAS_ENERGY) ||
                  (s->began_ns <= s->energy_began_ns &&
                   s->energy_began_ns <= s->energy_at_ns && s->energy_at_ns <= s->at_ns);
    return s->began_ns <= s->at_ns && energy;
}

/* What a sample has is what the board can. */
static bool fits(const struct gpu_info *info, const struct gpu_sample *s)
{
    static const uint32_t pairs[][2] = {
        {GPU_CAN_ENERGY, GPU_HAS_ENERGY},   {GPU_CAN_INSTANT, GPU_HAS_INSTANT},
        {GPU_CAN_AVERAGE, GPU_HAS_AVERAGE}, {GPU_CAN_REASONS, GPU_HAS_REASONS},
        {GPU_CAN_UTIL, GPU_HAS_UTIL},       {GPU_CAN_TEMP, GPU_HAS_TEMP},
        {GPU_CAN_CLOCKS, GPU_HAS_CLOCKS},   {GPU_CAN_LIMIT, GPU_HAS_ENFORCED},
    };
    for (size_t i = 0; i < n_elements(pairs); i++) {
        if (!(info->abilities & pairs[i][0]) != !(s->has & pairs[i][1]))
            return false;
    }
    return true;
}

static void check_sample(struct gpu_dev *dev)
{
    const struct gpu_info *info = be->info(dev);
    struct gpu_sample s = {0};
    uw_error err = {{0}};
    bool subset = true;

    is_int(be->sample(dev, WANT_ALL, &s, &err), 0, "%s: sample", be->name);
    ok(s.has != 0 && (s.has & ~WANT_ALL) == 0 && fits(info, &s),
       "%s: a sample has what the board can: %#x", be->name, s.has);
    ok(ordered(&s), "%s: time stamps in order", be->name);
    ok(!(s.has & GPU_HAS_POWER) || (s.power_w > 0 && s.power_w < 3000),
       "%s: power in watts", be->name);
    is_int(be->sample(dev, 0, &s, &err), 0, "%s: nothing wanted", be->name);
    is_int(s.has, 0, "%s: nothing given", be->name);
    for (uint32_t bit = 1; bit < WANT_ALL; bit <<= 1) {
        s.has = 0;
        int r = be->sample(dev, bit, &s, &err);
        subset = subset && (r == 0 || r == -ENOTSUP) && (s.has & ~bit) == 0;
    }
    ok(subset, "%s: only what is wanted", be->name);
    is_int(be->sample(dev, WANT_ALL, &s, NULL), 0, "%s: no error object is fine",
           be->name);
}

static void check_counter(struct gpu_dev *dev, void (*pass)(unsigned ms))
{
    struct gpu_sample a, b;
    bool rises = true;

    if (!(be->info(dev)->abilities & GPU_CAN_ENERGY))
        return;
    (void)be->sample(dev, GPU_HAS_ENERGY, &a, NULL);
    for (int i = 0; i < 5; i++) {
        pass(300);
        (void)be->sample(dev, GPU_HAS_ENERGY, &b, NULL);
        rises = rises && b.energy_mj > a.energy_mj &&
                b.energy_mj - a.energy_mj < 1000000 && b.at_ns >= a.at_ns;
        a = b;
    }
    ok(rises, "%s: the energy counter rises", be->name);
}

static uint32_t enforced(struct gpu_dev *dev)
{
    struct gpu_sample s = {0};

    (void)be->sample(dev, GPU_HAS_ENFORCED, &s, NULL);
    return s.has & GPU_HAS_ENFORCED ? s.enforced_mw : 0;
}

static void check_limit(struct gpu_dev *dev, void (*pass)(unsigned ms))
{
    struct gpu_limits l = {0};
    uw_error err = {{0}};

    if (!be->limits)
        return;
    if (!(be->info(dev)->abilities & GPU_CAN_LIMIT)) { /* one of a set */
        is_int(be->limits(dev, &l, &err), -ENOTSUP, "%s: no limits", be->name);
        is_int(be->set_limit(dev, 100000, &err), -ENOTSUP, "%s: none to set", be->name);
        ok(strstr(err.text, "has no set_limit"), "%s: … in words: %s", be->name,
           err.text);
        return;
    }
    is_int(be->limits(dev, &l, &err), 0, "%s: limits", be->name);
    ok(l.min_mw > 0 && l.min_mw <= l.default_mw && l.default_mw <= l.max_mw,
       "%s: minimum <= default <= maximum", be->name);
    uint32_t before = enforced(dev);
    ok(before >= l.min_mw && before <= l.max_mw, "%s: the limit found is in the range",
       be->name);
    if (!be->set_limit)
        return;
    is_int(be->set_limit(dev, l.min_mw - 1, &err), -ERANGE, "%s: too low", be->name);
    ok(err.text[0], "%s: … in words: %s", be->name, err.text);
    is_int(be->set_limit(dev, l.max_mw + 1, &err), -ERANGE, "%s: too high", be->name);
    pass(100);
    is_int(enforced(dev), before, "%s: refused, nothing changed", be->name);
    is_int(be->set_limit(dev, l.min_mw + 7000, &err), 0, "%s: in the range", be->name);
    pass(100);
    is_int(enforced(dev), l.min_mw + 7000, "%s: read back", be->name);
    is_int(be->set_limit(dev, before, NULL), 0, "%s: back", be->name);
    pass(100);
    is_int(enforced(dev), before, "%s: as found", be->name);
}

static void check_clocks(struct gpu_dev *dev)
{
    uw_error err = {{0}};

    if (!be->lock_clocks)
        return;
    bool can = be->info(dev)->abilities & GPU_CAN_LOCK_CLOCKS;
    uint32_t max = be->info(dev)->clock_max_mhz;
    is_int(be->lock_clocks(dev, max, max - 100, &err), can ? -ERANGE : -ENOTSUP,
           "%s: clocks upside down", be->name);
    is_int(be->lock_clocks(dev, max / 2, max - 100, &err), can ? 0 : -ENOTSUP,
           "%s: clocks locked", be->name);
    is_int(be->reset_clocks(dev, &err), can ? 0 : -ENOTSUP, "%s: clocks free", be->name);
}

static void check_rest(void *lib, struct gpu_dev *dev)
{
    struct gpu_proc procs[GPU_PROCS_MAX];
    char mark[128] = "", again[128] = "";
    uw_error err = {{0}};
    size_t n = 0;

    if (be->procs) {
        is_int(be->procs(dev, procs, &n, &err),
               be->info(dev)->abilities & GPU_CAN_PROCS ? 0 : -ENOTSUP, "%s: processes",
               be->name);
        ok(n <= GPU_PROCS_MAX, "%s: within the bound", be->name);
    }
    if (!be->driver_mark)
        return;
    is_int(be->driver_mark(lib, NULL, mark, sizeof mark, &err), 0, "%s: mark", be->name);
    (void)be->driver_mark(lib, NULL, again, sizeof again, &err);
    is_str(again, mark, "the mark stays");
    if (mark[0])
        is_int(be->driver_mark(lib, NULL, again, 2, &err), -ERANGE,
               "%s: a mark needs room", be->name);
}

static void check_none(const struct stage *st)
{
    struct gpu_open_opts none = st->none;
    uw_error err = {{0}};
    void *lib = NULL;

    if (!none.clock.now_ns)
        return;
    int r = be->open(&none, &lib, &err);
    ok(r == st->none_result[0] || r == st->none_result[1], "%s: nothing there is %d: %s",
       be->name, r, err.text);
    ok(lib == NULL && err.text[0], "%s: … nothing opened, and why", be->name);
}

static void check_board(void *lib, struct gpu_dev *dev, void (*pass)(unsigned ms))
{
    struct sensor_model sensors = {0};

    be->sensors(dev, &sensors);
    ok(sensors.counter_update_s > 0 || sensors.power.update_s > 0,
       "%s: a sensor or a counter", be->name);
    check_sample(dev);
    check_counter(dev, pass);
    check_limit(dev, pass);
    check_clocks(dev);
    check_rest(lib, dev);
}

static void check_stage(const struct stage *st)
{
    struct gpu_open_opts opts;
    uw_error err = {{0}};
    void *lib = NULL;

    be = st->backend;
    check_table(be);
    check_none(st);
    if (!ok(st->set_up(&opts), "%s: brought up", be->name))
        return;
    if (ok(be->open(&opts, &lib, &err) == 0, "%s: opens", be->name) && lib) {
        check_identity(lib);
        size_t last = be->count(lib) - 1; /* of another backend, in a set */
        check_board(lib, be->at(lib, 0), st->pass);
        if (last > 0)
            check_board(lib, be->at(lib, last), st->pass);
        be->close(lib);
        lib = NULL;
        is_int(be->open(&opts, &lib, &err), 0, "%s: opens again", be->name);
        be->close(lib);
    }
    st->tear_down();
}

static const struct stage stages[] = {
    {&virtual_backend, virtual_set_up, virtual_pass, virtual_tear_down, {0}, {0}},
    {&nvml_backend,
     nvml_set_up,
     real_pass,
     nothing,
     {.source = "/nowhere/libnvidia-ml.so.1", .clock = {real_ns, NULL}},
     {-ENOENT, -ENOENT}},
    {&rapl_backend,
     rapl_set_up,
     rapl_pass,
     rapl_tear_down,
     {.source = "/nowhere", .clock = {real_ns, NULL}},
     {GPU_ABSENT, GPU_ABSENT}},
    {&replay_backend,
     replay_set_up,
     real_pass,
     replay_tear_down,
     {.source = "/nowhere", .clock = {real_ns, NULL}},
     {-ENOENT, -ENOENT}},
    {&gpu_boards,
     boards_set_up,
     real_pass,
     replay_tear_down,
     {.source = "nvml=/nowhere/x.so", .clock = {real_ns, NULL}},
     {-ENOENT, -ENOENT}},
    {&gpu_capped,
     nvml_set_up,
     real_pass,
     nothing,
     {.source = "replay=/nowhere", .clock = {real_ns, NULL}},
     {-ENOTSUP, -ENOTSUP}},
    {&gpu_processors,
     processors_set_up,
     rapl_pass,
     rapl_tear_down,
     {.source = "/nowhere", .clock = {real_ns, NULL}},
     {GPU_ABSENT, GPU_ABSENT}},
};

/* Every row of the registry is played above, and asks for no more than its backend has.
 */
static void check_rows(void)
{
    for (size_t i = 0; gpu_backends[i]; i++) {
        const struct gpu_backend_row *row = gpu_backends[i];
        const char *name = row->backend->name;
        size_t played = 0;
        for (size_t k = 0; k < n_elements(stages); k++)
            played += stages[k].backend == row->backend;
        is_int((long)played, 1, "%s: has a stage", name);
        ok(strlen(name) < sizeof((struct gpu_info *)0)->backend, "%s: fits an info",
           name);
        ok(!row->may_cap || row->backend->set_limit, "%s: caps only what it can", name);
        ok(row->may_cap || (!row->devices && !row->ioctl_types),
           "%s: no device for the actuator without caps", name);
        ok(row->role != GPU_ROLE_ACCELERATOR ||
               (row->backend->look && row->backend->about),
           "%s: an accelerator's library can be looked at", name);
        ok(!row->open_counters == !row->is_counter, "%s: counters have names", name);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        printf("Bail out! usage: %s LIBRARY\n", argv[0]);
        return 2;
    }
    library = argv[1];
    check_rows();
    for (size_t i = 0; i < n_elements(stages); i++) {
        check_stage(&stages[i]);
        for (size_t k = 0; k < i; k++)
            ok(strcmp(stages[i].backend->name, stages[k].backend->name) != 0,
               "names differ");
    }
    return done();
}
