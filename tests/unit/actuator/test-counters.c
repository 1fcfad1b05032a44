/* Counters of processors: opened by the service, handed to its client, read by gpu/rapl.
 */
#include "gpu/counters.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actuator/client.h"
#include "actuator/server.h"
#include "base/units.h"
#include "gpu/rapl/rapl.h"
#include "remove-tree.h"
#include "tap.h"
#include "unit/actuator/fake.h"

static char top[] = "/tmp/test-counters-XXXXXX";
static char tree[64], socket_path[64];

static void put(const char *zone, const char *file, const char *text)
{
    char path[200];

    (void)snprintf(path, sizeof path, "%s/%s", tree, zone);
    (void)mkdir(path, 0755);
    (void)snprintf(path, sizeof path, "%s/%s/%s", tree, zone, file);
    FILE *f = fopen(path, "we");
    if (!f)
        return;
    (void)fprintf(f, "%s\n", text);
    (void)fclose(f);
}

static void make_zone(const char *zone, const char *name, const char *uj)
{
    put(zone, "name", name);
    put(zone, "max_energy_range_uj", "262143328850");
    put(zone, "energy_uj", uj);
}

static void test_open(void)
{
    struct gpu_counters c;
    char found[200] = "";

    gpu_counters_open("/nowhere", geteuid(), &c);
    is_int((int)c.n, 0, "no tree is no fault");
    make_zone("intel-rapl:0", "package-0", "1000000");
    make_zone("intel-rapl:0:0", "core", "1");
    make_zone("intel-rapl:0:1", "dram", "2000000");
    make_zone("intel-rapl:1", "psys", "1");
    make_zone("intel-rapl-mmio:0", "package-0", "1");
    make_zone("intel-rapl:evil", "package-0", "1");
    gpu_counters_open(tree, geteuid(), &c);
    is_int((int)c.n, 2, "packages and their memory, nothing else");
    for (size_t i = 0; i < c.n; i++)
        (void)snprintf(found + strlen(found), 80, "%s ", c.at[i].name);
    ok(strstr(found, "intel-rapl:0 ") && strstr(found, "intel-rapl:0:1 "),
       "by their zones: %s", found);
    gpu_counters_close(&c);
    ok(c.n == 0, "closed");
    static const char *const bad[] = {"intel-rapl:", "intel-rapl:0/x", "intel-rapl",
                                      "rapl:0",      "intel-rapl:..",  ""};
    for (size_t i = 0; i < n_elements(bad); i++)
        ok(!gpu_counters_has_name(bad[i]), "'%s' is no zone", bad[i]);
}

/* What others can have put there is handed to nobody. */
static void test_others(void)
{
    char zone[100], counter[120], elsewhere[100];
    struct gpu_counters c;
    static const char *const what[] = {
        "a link to another file",          "a pipe",
        "a counter that others may write", "a zone that others may write",
        "a link to such a zone",           "another user's counter"};

    for (size_t i = 0; i < n_elements(what); i++) {
        make_zone("intel-rapl:7", "package-7", "1000000");
        (void)snprintf(zone, sizeof zone, "%s/intel-rapl:7", tree);
        (void)snprintf(counter, sizeof counter, "%s/energy_uj", zone);
        (void)snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", top);
        gpu_counters_open(tree, geteuid(), &c);
        size_t before = c.n;
        gpu_counters_close(&c);
        int r = i == 5 && geteuid() != 0 ? -1 : 0;
        if (i == 0)
            r = unlink(counter) < 0 ? -1 : symlink("/etc/passwd", counter);
        else if (i == 1)
            r = unlink(counter) < 0 ? -1 : mkfifo(counter, 0644);
        else if (i == 2)
            r = chmod(counter, 0666);
        else if (i == 3)
            r = chmod(zone, 0777);
        else if (i == 4)
            r = chmod(zone, 0777) < 0 || rename(zone, elsewhere) < 0
                    ? -1
                    : symlink(elsewhere, zone);
        else if (r == 0)
            r = chown(counter, 65534, 65534);
        gpu_counters_open(tree, geteuid(), &c);
        if (r < 0)
            skip_one(what[i], "takes root");
        else
            is_int((long long)c.n, (long long)before - 1, "%s is left out", what[i]);
        gpu_counters_close(&c);
        (void)unlink(counter);
        (void)unlink(zone); /* where it is a link */
        if (rename(elsewhere, zone) < 0)
            (void)chmod(zone, 0755);
        (void)chmod(zone, 0755);
    }
    (void)snprintf(counter, sizeof counter, "%s/name", zone);
    (void)unlink(counter);
}

/* ---- service and client in one loop ---- */

struct world {
    struct loop *loop;
    struct guard *guard;
    struct server *server;
    struct actuator *act;
    struct gpu_counters counters;
    struct gpu_given *given;
    int n, ends, ready, held;
    bool free_in_callback;
    char said[200];
};

static void on_say(const char *text, void *user)
{
    struct world *w = user;

    (void)snprintf(w->said, sizeof w->said, "%s", text);
}

static void on_gone(void *user)
{
    (void)user;
}

static int on_hold(struct actuator *act, const struct actuator_reply *reply, void *user)
{
    struct world *w = user;

    (void)act;
    w->held = reply->result == ACTUATOR_DONE;
    loop_stop(w->loop, 0);
    return 0;
}

static int on_counter(struct actuator *act, const char *zone, int fd, void *user)
{
    struct world *w = user;

    if (zone) {
        w->n++;
        if (gpu_given_put(w->given, zone, fd) < 0)
            w->n = 100;
        if (w->free_in_callback) {
            actuator_free(act);
            w->act = NULL;
            loop_stop(w->loop, 0);
        }
        return 0;
    }
    w->ends++;
    ok(fd == -1, "the last one has no descriptor");
    if (actuator_hold(act, "GPU-0", on_hold, w) < 0)
        loop_stop(w->loop, 0);
    return 0;
}

static int on_ready(struct actuator *act, int r, const char *text, void *user)
{
    struct world *w = user;

    ok(r == 0, "ready %s", text);
    w->ready++;
    is_int(actuator_counters(act, on_counter, w), 0, "counters are asked for");
    is_int(actuator_counters(act, on_counter, w), -EBUSY, "once at a time");
    return 0;
}

static int on_event(struct actuator *act, enum actuator_event event,
                    const struct actuator_reply *what, void *user)
{
    struct world *w = user;

    (void)act;
    (void)what;
    if (event == ACTUATOR_EVENT_ENDED)
        loop_stop(w->loop, 0);
    return 0;
}

static void up(struct world *w)
{
    const struct actuator_opts opts = {
        .on_ready = on_ready, .on_event = on_event, .user = w};
    int fd = -1;
    uw_error err = {""};

    (void)loop_new_real((struct loop_clock){.speed = 1}, &w->loop, NULL);
    fake_reset(w->loop);
    gpu_counters_open(tree, geteuid(), &w->counters);
    w->given = gpu_given_new();
    struct guard_opts guard = {.loop = w->loop, .backend = &fake_backend};
    ok(guard_new(&guard, &w->guard, NULL) == 0, "a guard");
    struct server_opts server = {.loop = w->loop,
                                 .guard = w->guard,
                                 .counters = &w->counters,
                                 .say = on_say,
                                 .on_gone = on_gone,
                                 .user = w};
    ok(server_bind(socket_path, (uid_t)-1, &fd, &err) == 0 &&
           server_new_listening(&server, fd, &w->server, &err) == 0,
       "a service %s", err.text);
    is_int(actuator_connect(w->loop, socket_path, &opts, &w->act, &err), 0, "a client %s",
           err.text);
    is_int(actuator_counters(w->act, on_counter, w), -ENOTCONN, "not before it is ready");
}

static void down(struct world *w)
{
    actuator_free(w->act);
    server_free(w->server);
    guard_free(w->guard);
    loop_free(w->loop);
    gpu_given_free(w->given);
    gpu_counters_close(&w->counters);
}

static uint64_t tick(void *user)
{
    static uint64_t now;

    (void)user;
    return ++now;
}

/* The tree as a user finds it: counters that cannot be opened. */
static void close_tree(void)
{
    static const char *const zones[] = {"intel-rapl:0", "intel-rapl:0:1"};
    char path[200];

    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/%s/energy_uj", tree, zones[i]);
        (void)unlink(path); /* root could open any file: gone is gone for all */
    }
}

static void test_hand_over(void)
{
    struct world w = {.ready = 0};
    struct gpu_sample s;
    uw_error err = {""};
    void *lib = NULL;

    up(&w);
    close_tree();
    struct gpu_open_opts opts = {.source = tree, .clock = {tick, NULL}, .given = w.given};
    is_int(rapl_backend.open(&opts, &lib, &err), 0, "the counters are listed");
    ok(rapl_backend.sample(rapl_backend.at(lib, 0), GPU_HAS_ENERGY, &s, &err) < 0,
       "but cannot be read: %s", err.text);
    (void)loop_run(w.loop, NULL);
    ok(w.n == 2 && w.ends == 1, "two are handed over, then the end is told");
    ok(w.held, "requests are answered as ever");
    is_int(rapl_backend.sample(rapl_backend.at(lib, 0), GPU_HAS_ENERGY, &s, &err), 0,
           "a package is read %s", err.text);
    is_int((int)s.energy_mj, 1000, "its energy");
    is_int(rapl_backend.sample(rapl_backend.at(lib, 1), GPU_HAS_ENERGY, &s, &err), 0,
           "its memory %s", err.text);
    is_int((int)s.energy_mj, 2000, "likewise");
    rapl_backend.close(lib);
    down(&w);
}

static void test_frees(void)
{
    struct world w = {.free_in_callback = true};

    make_zone("intel-rapl:0", "package-0", "1000000");
    up(&w);
    (void)loop_run(w.loop, NULL);
    ok(w.n == 1 && w.ends == 0 && !w.act, "a client that frees itself hears no more");
    down(&w);

    w = (struct world){.ready = 0};
    close_tree();
    up(&w);
    (void)loop_run(w.loop, NULL);
    ok(w.n == 0 && w.ends == 1, "no counters: the end alone");
    down(&w);
}

static void test_given(void)
{
    struct gpu_given *g = gpu_given_new();
    char zone[40], longest[100] = "";
    int r = 0, n = 0;

    for (; n < 1000 && r == 0; n += r == 0) {
        (void)snprintf(zone, sizeof zone, "intel-rapl:%d", n);
        r = gpu_given_put(g, zone, dup(STDIN_FILENO));
    }
    ok(n == 64 && r == -E2BIG, "64 descriptors and no more");
    is_int(gpu_given_put(g, "intel-rapl:0", dup(STDIN_FILENO)), 0,
           "a newer one of a zone");
    memset(longest, '1', sizeof longest - 1);
    is_int(gpu_given_put(g, longest, dup(STDIN_FILENO)), -EINVAL, "too long a name");
    int next = dup(STDIN_FILENO);
    gpu_given_free(g);
    (void)close(next);
    ok(next < 3 + 64 + 4, "those that were refused are closed");
    gpu_given_free(NULL);
}

int main(void)
{
    if (!mkdtemp(top))
        return skip_all("no temporary folder");
    (void)snprintf(tree, sizeof tree, "%s/powercap", top);
    (void)snprintf(socket_path, sizeof socket_path, "%s/sock", top);
    (void)mkdir(tree, 0755);
    test_open();
    test_others();
    test_hand_over();
    test_frees();
    test_given();
    remove_tree(top);
    return done();
}
