/* Boards texts (gpu/backends.h), and what a set says where nothing opens. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/auto.h"
#include "gpu/backends.h"
#include "tap.h"

static char trace[] = "/tmp/uw-backends-XXXXXX";

static uint64_t still(void *user)
{
    (void)user;
    return 1;
}

/* clang-format off */
static const struct {
    const char *text;
    int r;
    const char *says; /* of the text that comes back, or of the error */
} texts[] = {
    {"", 0, ""},
    {"nvml", 0, "nvml"},
    {"rapl,nvml", 0, "nvml,rapl"},
    {"/bin/sh", 0, "nvml=/"},
    {"nvml=/bin/sh,rapl", 0, "nvml=/"},
    {"nvml=lib.so", -EINVAL, "is not an absolute path"},
    {"nvml=/nowhere/x.so", -ENOENT, "/nowhere/x.so"},
    {"replay=/nowhere/x.csv", -ENOENT, "/nowhere/x.csv"},
    {"replay", -EINVAL, "replay needs a source"},
    {"nvml=", -EINVAL, "nvml needs a source"},
    {"nvml,nvml", -EINVAL, "nvml is named twice"},
    {"nvml,/bin/sh", -EINVAL, "nvml is named twice"},
    {"x.so", -EINVAL, "'x.so' is neither a backend"},
    {"amd=/x", -EINVAL, "backend (nvml, rapl, replay)"},
    {"nvml,,rapl", -EINVAL, "''"},
};
/* clang-format on */

static void check_texts(void)
{
    for (size_t i = 0; i < n_elements(texts); i++) {
        char ret[GPU_BOARDS_TEXT] = "before";
        uw_error err = {""};
        int r = gpu_boards_check(texts[i].text, false, ret, sizeof ret, &err);
        is_int(r, texts[i].r, "'%s': %d %s", texts[i].text, texts[i].r, err.text);
        const char *got = r == 0 ? ret : err.text;
        ok(strstr(got, texts[i].says) != NULL, "… '%s'", got);
    }
}

static const char *variable, *value;

static char *get(const char *name)
{
    return variable && strcmp(name, variable) == 0 ? strdup(value) : NULL;
}

static void check_environment(void)
{
    static const char *const names[] = {"UNDERWATT_BOARDS", "UNDERWATT_NVML"};
    struct gpu_visible v;

    ok(!gpu_boards_named(get), "nothing is set");
    for (size_t i = 0; i < n_elements(names); i++) {
        variable = names[i];
        value = "/x.so";
        char *text = (char *)gpu_boards_named(get);
        is_str(text, "/x.so", "from the environment");
        free(text);
    }
    variable = "CUDA_VISIBLE_DEVICES";
    value = "";
    gpu_visible_read(get, &v);
    is_str(v.name, variable, "a job's list, though it is empty");
    free((char *)v.list);
    variable = NULL;
    gpu_visible_read(get, &v);
    ok(!v.name && !v.list, "no list");
}

static void check_sets(void)
{
    char text[100];
    struct gpu_open_opts opts = {.source = text, .clock = {still, NULL}};
    struct gpu_about about;
    void *lib = NULL;
    uw_error err = {""};
    int fd = mkstemp(trace);

    if (!ok(fd >= 0 && dprintf(fd, "time_s,uuid,power_w\n0,A,100\n0,B,200\n") > 0,
            "a trace"))
        return;
    (void)close(fd);
    (void)snprintf(text, sizeof text, "replay=%s", trace);
    is_int(gpu_capped.open(&opts, &lib, &err), -ENOTSUP, "no trace is capped");
    ok(strstr(err.text, "replay") && !lib, "… %s", err.text);
    is_int(gpu_boards_look(text, &about, &err), 0, "looked at");
    ok(about.recorded && about.simulated && strstr(about.state_dir, ".underwatt"),
       "recorded, and apart: %s", about.state_dir);
    is_int(gpu_boards.open(&opts, &lib, &err), 0, "opens %s", err.text);
    is_int(gpu_boards.count(lib), 2, "two boards");
    struct gpu_dev *dev = gpu_boards.at(lib, 1);
    is_str(gpu_boards.info(dev)->backend, "replay", "of their backend");
    is_int(gpu_boards.set_limit(dev, 100000, &err), -ENOTSUP, "no limit: %s", err.text);
    is_int(gpu_boards.attach(lib, 0, &err), 0, "all attached");
    is_int(gpu_boards.attach(lib, 2, &err), -ENOTSUP, "none let go of: %s", err.text);
    gpu_boards.close(lib);
    lib = NULL;
    (void)snprintf(text, sizeof text, "replay=/nowhere");
    is_int(gpu_boards.open(&opts, &lib, &err), -ENOENT, "what is named must open");
    (void)snprintf(text, sizeof text, "rapl=/nowhere");
    is_int(gpu_processors.open(&opts, &lib, &err), GPU_ABSENT, "no counters: %s",
           err.text);
    (void)unlink(trace);
}

int main(void)
{
    check_texts();
    check_environment();
    check_sets();
    return done();
}
