/* Letting go of single boards, on stubs: argv[1] of driver 450, argv[2] one that is too
 * old for it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

#include "gpu/nvml/nvml.h"
#include "stub.h"
#include "tap.h"

static const struct gpu_backend *const b = &nvml_backend;

static uint64_t still(void *user)
{
    (void)user;
    return 1;
}

static struct stub *stub_of(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL); /* stays */
    struct stub *s = handle ? dlsym(handle, "stub") : NULL;

    if (s)
        s->n = 3;
    return s;
}

static int sample(void *lib, size_t i, uw_error *err)
{
    struct gpu_sample s;

    return b->sample(b->at(lib, i), GPU_HAS_POWER, &s, err);
}

static void *open_with(const char *path, const struct gpu_info *known, size_t n,
                       uint64_t away, int want)
{
    struct gpu_open_opts opts = {.source = path,
                                 .clock = {still, NULL},
                                 .known = known,
                                 .n_known = n,
                                 .away = away};
    void *lib = NULL;
    uw_error err = {""};

    is_int(b->open(&opts, &lib, &err), want, "open: %d %s", want, err.text);
    return lib;
}

static void check_in_place(const char *path, struct stub *stub)
{
    void *lib = open_with(path, NULL, 0, 0, 0);
    const struct gpu_info *info = b->info(b->at(lib, 2));
    char uuid[96];
    uw_error err = {""};

    (void)snprintf(uuid, sizeof uuid, "%s", info->uuid);
    is_int(b->attach(lib, 1 << 2, &err), 0, "board 2 is let go of");
    ok(atomic_load(&stub->bare) && atomic_load(&stub->attached) == 3,
       "begun anew, without attaching, and the others taken");
    is_int(sample(lib, 1, &err), 0, "others are measured");
    uint64_t calls = b->calls(b->at(lib, 2));
    is_int(sample(lib, 2, &err), -ENODEV, "it is not");
    ok(strstr(err.text, "released") && b->calls(b->at(lib, 2)) == calls,
       "no call reaches the driver: %s", err.text);
    ok(b->info(b->at(lib, 2)) == info && strcmp(info->uuid, uuid) == 0,
       "and is known as before, at the same place");
    is_int(b->attach(lib, 1 << 0, &err), 0, "another in its place");
    ok(atomic_load(&stub->attached) == 6 && sample(lib, 2, &err) == 0 &&
           sample(lib, 0, &err) == -ENODEV,
       "it is back, the other away");
    is_int(b->attach(lib, 0, &err), 0, "none");
    ok(atomic_load(&stub->attached) == 7 && sample(lib, 0, &err) == 0, "all are back");
    stub->board[1].by_index = 15;
    is_int(b->attach(lib, 1 << 2, &err), 0, "beside one that is lost");
    is_int(sample(lib, 1, &err), -ENODEV, "which fails");
    is_int(sample(lib, 0, &err), 0, "alone");
    stub->board[1].by_index = 0;
    stub->init = 9;
    is_int(b->attach(lib, 0, &err), -ENODEV, "the driver is unloaded meanwhile");
    is_int(sample(lib, 0, &err), -ENODEV, "every board fails");
    stub->init = 0;
    is_int(b->attach(lib, 0, &err), 0, "until it is asked again");
    is_int(sample(lib, 0, &err), 0, "and the driver there");
    b->close(lib);
    is_int(atomic_load(&stub->attached), 0, "closing lets go of all");
}

static void check_known(const char *path, struct stub *stub)
{
    struct gpu_info known[3];
    void *lib = open_with(path, NULL, 0, 0, 0);
    uw_error err = {""};

    for (size_t i = 0; i < 3; i++)
        known[i] = *b->info(b->at(lib, i));
    b->close(lib);
    lib = open_with(path, known, 3, 1 << 1, 0);
    is_int(b->count(lib), 3, "opened without one: it is listed");
    is_int(atomic_load(&stub->attached), 5, "and was not touched");
    is_str(b->info(b->at(lib, 1))->uuid, known[1].uuid, "known by what was told");
    is_int(b->info(b->at(lib, 0))->abilities, known[0].abilities, "others were asked");
    is_int(sample(lib, 1, &err), -ENODEV, "no call on it");
    is_int(b->attach(lib, 0, &err), 0, "taken back");
    is_int(sample(lib, 1, &err), 0, "it answers");
    b->close(lib);
    known[2].uuid[4] = 'x';
    lib = open_with(path, known, 3, 1 << 1, -ESTALE);
    is_int(atomic_load(&stub->attached), 0, "another board there: nothing stays open");
    known[2].pci_bus_id[0] = '\0';
    lib = open_with(path, known, 3, 1 << 1, -ENOTSUP);
}

static void check_hanging(const char *path, struct stub *stub)
{
    void *lib = open_with(path, NULL, 0, 0, 0);
    uw_error err = {""};

    atomic_store(&stub->board[1].hang, true);
    is_int(b->attach(lib, 1 << 2, &err), 0, "a board that hangs when it is taken again");
    is_int(sample(lib, 0, &err), 0, "costs the others nothing");
    int shutdowns = atomic_load(&stub->shutdowns);
    is_int(b->attach(lib, 0, &err), -EBUSY, "nothing is let go of while it does");
    ok(atomic_load(&stub->shutdowns) == shutdowns && sample(lib, 0, &err) == 0,
       "and nothing has changed");
    b->close(lib); /* it stays open, with what it has attached */
    void *other =
        open_with(path, NULL, 0, 1 << 1, 0); /* away without known: passed over */
    is_int(b->attach(other, 1 << 2, &err), -EBUSY, "nor while an earlier opening hangs");
    atomic_store(&stub->board[1].hang, false);
    int r = -EBUSY;
    for (unsigned i = 0; i < 1000 && r == -EBUSY; i++) { /* until its threads have run */
        (void)usleep(10000);
        r = b->attach(other, 1 << 1, &err);
    }
    is_int(r, 0, "once it has returned");
    is_int(atomic_load(&stub->attached), 5, "the earlier one is closed, too");
    b->close(other);
}

int main(int argc, char **argv)
{
    struct stub *stub = argc == 3 ? stub_of(argv[1]) : NULL;
    struct stub *old = stub ? stub_of(argv[2]) : NULL;
    uw_error err = {""};

    if (!old) {
        printf("Bail out! usage: %s STUB STUB\n", argv[0]);
        return 2;
    }
    check_in_place(argv[1], stub);
    check_known(argv[1], stub);
    check_hanging(argv[1], stub);
    void *lib = open_with(argv[2], NULL, 0, 0, 0);
    is_int(b->attach(lib, 1, &err), -ENOTSUP, "a driver that is too old");
    ok(strstr(err.text, "nvmlInitWithFlags") && strstr(err.text, "stop underwattd"),
       "says so, and what to do: %s", err.text);
    ok(sample(lib, 0, &err) == 0 && atomic_load(&old->shutdowns) == 0, "unchanged");
    b->close(lib);
    return done();
}
