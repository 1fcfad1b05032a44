/* Machine files: what is read, and what is refused with its line. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "plant/workload.h"
#include "sim/catalogue.h"
#include "sim/machine.h"
#include "tap.h"

static char path[] = "/tmp/uw-machine-XXXXXX";

static int read_text(const char *text, struct sim_machine *ret, uw_error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    size_t n = strlen(text);

    if (fd < 0 || write(fd, text, n) != (ssize_t)n) {
        printf("Bail out! %s: %s\n", path, strerror(errno));
        exit(1);
    }
    (void)close(fd);
    return sim_machine_read(path, ret, err);
}

#define V100 "boards: [{model: v100}]\n"
/* clang-format off */
static const struct {
    const char *text;
    unsigned line;
    const char *says;
} bad[] = {
    {"", 1, "boards"},
    {"boards: []\n", 1, "at least one"},
    {"boards: 3\n", 1, ""},
    {"boards:\n  - {model: v200}\n", 2, "v100"},
    {"boards:\n  - {count: 2}\n", 2, "model"},
    {"boards:\n  - {model: v100, count: 65}\n", 2, "64"},
    {"boards:\n  - {model: v100, count: 40}\n  - {model: a100, count: 40}\n", 3, "64 boards"},
    {"boards:\n  - {model: v100, colour: red}\n", 2, "colour"},
    {"boards:\n  - model: v100\n    limit: 250\n", 3, "250"},
    {"boards:\n  - {model: v100, limit: 2500 W}\n", 2, "2500 W is outside"},
    {"boards:\n  - {model: v100, min_limit: 290 W, default_limit: 200 W}\n", 2, "does not hold"},
    {"boards:\n  - {model: v100, gain: 3}\n", 2, "gain"},
    {"boards:\n  - {model: v100, power_factor: 3}\n", 2, "power_factor"},
    {"boards:\n  - {model: v100, work: 0}\n", 2, "work"},
    {"boards:\n  - {model: v100, spin: 1.1}\n", 2, "spin"},
    {"boards:\n  - {model: v100, sensor: fermi}\n", 2, "'fermi' is none of"},
    {"boards:\n  - {model: v100, counter: some}\n", 2, "some"},
    {"boards:\n  - {model: v100, uuid: GPU-1, count: 2}\n", 2, "share"},
    {"boards:\n  - {model: v100, uuid: x}\n", 2, "GPU-"},
    {"boards:\n  - {model: v100, uuid: GPU-1}\n  - {model: v100, uuid: GPU-1}\n", 2, "two boards"},
    {"boards:\n  - {model: v100, minor: 3, count: 2}\n", 2, "share"},
    {"boards:\n  - {model: v100, minor: 1024}\n", 2, "1023"},
    {"boards:\n  - {model: v100}\n  - {model: v100, minor: 0}\n", 2, "minor: two boards have 0"},
    {"set_limits: me\n" V100, 1, "me"},
    {"set_limits: [root]\n" V100, 1, "root"},
    {"set_latency: 20 s\n" V100, 1, "set_latency"},
    {V100 "faults: [{at: 1 s, fault: burn}]\n", 2, "burn"},
    {V100 "faults:\n  - {fault: lost}\n", 3, "at"},
    {V100 "faults:\n  - {at: 1 s, fault: lost, board: 1}\n", 3, ""},
    {V100 "faults:\n  - {at: 1 s, fault: limit}\n", 3, "needs a power"},
    {V100 "faults:\n  - {at: 1 s, fault: limit, to: 900 W}\n", 3, "outside board 0"},
    {V100 "faults:\n  - {at: 1 s, fault: reload, for: 2 s}\n", 3, "no duration"},
    {V100 "faults:\n  - {at: 1 s, fault: lost, to: 200 W}\n", 3, "takes no power"},
    {V100 "workloads:\n  - {like: vgg19}\n", 3, "name"},
    {V100 "workloads:\n  - {name: a b}\n", 3, "blank"},
    {V100 "workloads:\n  - {name: \"a\\u200bb\"}\n", 3, "invisible or control"},
    {V100 "name: a\u202eb\n", 1, "invisible or control"},
    {V100 "workloads:\n  - {name: a, like: gpt9}\n", 3, "gpt9"},
    {V100 "workloads:\n  - {name: a, board: tpu}\n", 3, "tpu"},
    {V100 "workloads:\n  - {name: a, steps: 0}\n", 3, "steps"},
};
/* clang-format on */

static const char good[] =
    "name: mixed\n"
    "driver: 1.2\n"
    "seed: 9\n"
    "set_latency: 5 ms\n"
    "set_limits: [0, 1000]\n"
    "boards:\n"
    "  - {model: v100, count: 2, limit: 200 W, gain: 1.03, idle: 33 W, ambient: 12.5, "
    "power_factor: 1.05, work: 1.2, spin: 0.3}\n"
    "  - {model: a100, uuid: GPU-mine, counter: true-power, sensor: hopper, ideal: "
    "true}\n"
    "workloads:\n"
    "  - {name: mine, like: vgg19, steps: 77, memory_time: 90 s, dynamic_power: 111 W}\n"
    "faults:\n"
    "  - {at: 3 s, board: 1, fault: lost, for: 10 s}\n"
    "  - {at: 4 s, board: all, fault: limit, to: 222 W}\n";

static void test_good(struct sim_machine *m)
{
    static struct sim_catalogue works;
    uw_error err = {""};

    is_int(read_text(good, m, &err), 0, "a good file %s", err.text);
    is_str(m->name, "mixed", "name");
    is_int(m->seed, 9, "seed");
    is_int(m->set_latency_ns, 5000000, "latency");
    is_int(m->may_set, SIM_MAY_ROOT, "a list: root and those");
    ok(m->n_uids == 2 && m->uids[1] == 1000, "those");
    is_int(m->n_boards, 3, "three boards");
    ok(m->board[1].limit_mw == 200000 && m->board[2].limit_mw == 0, "limits");
    is_near(m->board[0].gain, 1.03, 1e-12, "gain");
    is_near(m->board[0].trait.power, 1.05, 1e-12, "power_factor");
    is_near(m->board[0].trait.work, 1.2, 1e-12, "work");
    is_near(m->board[0].trait.spin, 0.3, 1e-12, "spin");
    is_near(m->board[0].plant.idle_w, 33, 1e-9, "idle power");
    is_near(m->board[0].plant.ambient_c, 12.5, 1e-9, "air");
    is_str(m->board[2].uuid, "GPU-mine", "UUID");
    is_int(m->board[2].plant.sensor.plain, PLANT_PLAIN_AVERAGE, "the sensor of another");
    ok(m->board[2].ideal && !m->board[0].ideal, "ideal");
    is_int(m->n_faults, 2, "two faults");
    ok(m->fault[0].board == 1 && m->fault[0].for_ns == 10000000000ull, "the first");
    ok(m->fault[1].board == SIM_ALL_BOARDS && m->fault[1].mw == 222000, "the second");
    is_int(sim_catalogue_fill(m, &works, &err), 0, "its workloads");
    is_int(works.n, 2, "one on each of two models");
    const struct plant_workload *w =
        sim_catalogue_find(&m->board[2].plant, "mine", &works);
    const struct plant_workload *like = plant_workload_find(&m->board[2].plant, "vgg19");
    if (!ok(w && like, "found"))
        return;
    is_int(w->steps, 77, "its own steps");
    is_near(w->tm_s, 90, 1e-9, "its own time");
    is_near(w->d_w, 111, 1e-9, "its own power");
    is_near(w->tc_s, like->tc_s, 1e-12, "the rest is the other's");
    ok(sim_catalogue_find(&m->board[0].plant, "resnet50", &works) ==
           plant_workload_find(&m->board[0].plant, "resnet50"),
       "the built-in ones are there");
    ok(sim_catalogue_find(&m->board[0].plant, "gpt9", &works) == NULL, "others are not");
}

int main(void)
{
    static struct sim_machine m;

    int fd = mkstemp(path);
    if (fd < 0)
        return skip_all("no room in /tmp");
    (void)close(fd);
    test_good(&m);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char where[96];
        uw_error err = {""};
        int r = sim_machine_read_text(path, bad[i].text, strlen(bad[i].text), &m, &err);
        ok(r < 0, "case %zu is refused", i);
        (void)snprintf(where, sizeof where, "%s:%u: ", path, bad[i].line);
        ok(strncmp(err.text, where, strlen(where)) == 0 && strstr(err.text, bad[i].says),
           "line %u, '%s': %s", bad[i].line, bad[i].says, err.text + strlen(path));
    }
    (void)unlink(path);
    return done();
}
