/* Each allocation fails once.  argv[1]: a stub of driver 535. */
#include "oom.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu/nvml/nvml.h"
#include "gpu/rapl/rapl.h"
#include "stub.h"

static uint64_t still(void *user)
{
    (void)user;
    return 1;
}

static int nvml_op(void *user)
{
    struct gpu_open_opts opts = {.source = user, .clock = {still, NULL}};
    struct gpu_proc procs[GPU_PROCS_MAX];
    struct gpu_about about;
    struct gpu_sample s;
    size_t n = 0;
    void *lib = NULL;
    uw_error err = {{0}};

    int r = nvml_backend.look(user, &about, &err);
    if (r < 0)
        return r;
    r = nvml_backend.open(&opts, &lib, &err);
    if (r < 0)
        return r;
    r = nvml_backend.sample(nvml_backend.at(lib, 1), GPU_HAS_POWER, &s, &err);
    if (r == 0)
        r = nvml_backend.procs(nvml_backend.at(lib, 1), procs, &n, &err);
    nvml_backend.close(lib);
    return r;
}

static char tree[] = "/tmp/uw-oom-XXXXXX";

static void put(const char *file, const char *text)
{
    char path[200];

    (void)snprintf(path, sizeof path, "%s/intel-rapl:0", tree);
    (void)mkdir(path, 0700);
    (void)snprintf(path, sizeof path, "%s/intel-rapl:0/%s", tree, file);
    FILE *f = fopen(path, "w");
    if (f) {
        (void)fputs(text, f);
        (void)fclose(f);
    }
}

static int rapl_op(void *user)
{
    struct gpu_open_opts opts = {.source = tree, .clock = {still, NULL}};
    struct gpu_sample s;
    void *lib = NULL;
    (void)user;

    int r = rapl_backend.open(&opts, &lib, NULL);
    if (r != 0)
        return r;
    r = rapl_backend.sample(rapl_backend.at(lib, 0), GPU_HAS_ENERGY, &s, NULL);
    rapl_backend.close(lib);
    return r;
}

int main(int argc, char **argv)
{
    void *handle = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    struct stub *stub = handle ? dlsym(handle, "stub") : NULL;

    if (!stub || !mkdtemp(tree)) {
        printf("Bail out! usage: %s STUB\n", argv[0]);
        return 2;
    }
    stub->n = 3;
    stub->board[1].n_compute = 20;
    oom_each("nvml: look, open, sample, processes", nvml_op, argv[1]);
    put("name", "package-0\n");
    put("max_energy_range_uj", "262143328850\n");
    put("energy_uj", "1000\n");
    oom_each("rapl: open, sample", rapl_op, NULL);
    char command[100];
    (void)snprintf(command, sizeof command, "rm -rf %s", tree);
    (void)!system(command);
    return done();
}
