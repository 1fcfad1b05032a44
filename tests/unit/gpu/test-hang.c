/* A board that hangs when the library is opened: bounded for the others. */
#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

#include "gpu/nvml/nvml.h"
#include "stub.h"
#include "tap.h"

static uint64_t still(void *user)
{
    (void)user;
    return 1;
}

int main(int argc, char **argv)
{
    void *handle = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    struct stub *stub = handle ? dlsym(handle, "stub") : NULL;

    if (!stub) {
        printf("Bail out! usage: %s STUB\n", argv[0]);
        return 2;
    }
    struct gpu_open_opts opts = {.source = argv[1], .clock = {still, NULL}};
    struct gpu_sample s;
    void *lib = NULL;
    uw_error err = {{0}};

    stub->n = 3;
    atomic_store(&stub->board[1].hang, true);
    is_int(nvml_backend.open(&opts, &lib, &err), 0, "opens beside a board that hangs");
    is_int(nvml_backend.count(lib), 3, "… which is listed");
    is_str(nvml_backend.info(nvml_backend.at(lib, 2))->name, "Stub 2",
           "others are known");
    is_str(nvml_backend.info(nvml_backend.at(lib, 1))->name, "", "it is not");
    is_int(nvml_backend.sample(nvml_backend.at(lib, 0), GPU_HAS_POWER, &s, &err), 0,
           "others are measured");
    is_int(nvml_backend.sample(nvml_backend.at(lib, 1), GPU_HAS_POWER, &s, &err), -ENODEV,
           "it fails at once");
    ok(strstr(err.text, "no answer") != NULL, "… and says: %s", err.text);
    nvml_backend.close(lib); /* the call still hangs: nothing may be unloaded */
    is_int(atomic_load(&stub->shutdowns), 0, "no shutdown under a call that hangs");
    atomic_store(&stub->board[1].hang, false);
    (void)usleep(50000); /* it returns into memory that is still there */
    lib = NULL;
    is_int(nvml_backend.open(&opts, &lib, &err), 0, "opens again");
    is_str(nvml_backend.info(nvml_backend.at(lib, 1))->name, "Stub 1", "all are known");
    nvml_backend.close(lib);
    is_int(atomic_load(&stub->shutdowns), 1, "and shuts down");
    return done();
}
