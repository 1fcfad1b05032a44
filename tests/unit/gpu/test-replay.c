#include "gpu/replay/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/auto.h"
#include "tap.h"

static uint64_t now_ns = 5000000000;
static uint64_t clock_now(void *user)
{
    (void)user;
    return now_ns;
}

static char path[] = "/tmp/uw-replay-XXXXXX";

static int open_text(const char *text, void **ret, uw_error *err)
{
    struct gpu_open_opts opts = {.source = path, .clock = {clock_now, NULL}};
    FILE *f = fopen(path, "w");

    if (f) {
        (void)fputs(text, f);
        (void)fclose(f);
    }
    return replay_backend.open(&opts, ret, err);
}

#define HEAD "time_s,uuid,power_w,energy_j,temp_c\n"
static const struct {
    const char *what, *text;
    int r;
    const char *says;
} cases[] = {
    {"empty", "", GPU_ABSENT, "no rows"},
    {"header alone", HEAD, GPU_ABSENT, "no rows"},
    {"a row", HEAD "1,GPU-a,100,5,40\n", 0, ""},
    {"no line feed at the end", HEAD "1,GPU-a,100,5,40", 0, ""},
    {"unknown values", HEAD "1,GPU-a,,,\n", 0, ""},
    {"comments", "# x\n" HEAD "# y\n1,GPU-a,100,5,40\n", 0, ""},
    {"no uuid column", "time_s,power_w\n", -EINVAL, ":1: the columns time_s and uuid"},
    {"unknown column", "time_s,uuid,watts\n", -EINVAL, ":1: unknown column 'watts'"},
    {"column twice", "time_s,uuid,uuid\n", -EINVAL, ":1: column 'uuid'"},
    {"too few fields", HEAD "1,GPU-a\n", -EINVAL, ":2: 2 fields"},
    {"too many fields", HEAD "1,GPU-a,1,1,1,1\n", -EINVAL, ":2: more than the 5"},
    {"not a number", HEAD "1,GPU-a,x,1,1\n", -EINVAL, ":2: power_w: 'x'"},
    {"out of range", HEAD "1,GPU-a,-1,1,1\n", -EINVAL, ":2: power_w: -1 is outside"},
    {"no time", HEAD ",GPU-a,1,1,1\n", -EINVAL, ":2: time_s"},
    {"no uuid", HEAD "1,,1,1,1\n", -EINVAL, ":2: uuid"},
    {"backwards", HEAD "2,GPU-a,1,1,1\n1,GPU-b,1,1,1\n", -EINVAL, ":3: time_s: 1"},
    {"twice the same time", HEAD "2,GPU-a,1,1,1\n2,GPU-a,1,1,1\n", -EINVAL, ":3: time_s"},
};

static void check_parsing(void)
{
    for (size_t i = 0; i < n_elements(cases); i++) {
        void *lib = NULL;
        uw_error err = {{0}};
        is_int(open_text(cases[i].text, &lib, &err), cases[i].r, "%s", cases[i].what);
        ok(strstr(err.text, cases[i].says) && (lib != NULL) == (cases[i].r == 0),
           "… and says: %s", err.text);
        replay_backend.close(lib);
    }
}

static void check_time(void)
{
    static const char text[] = HEAD "100,GPU-a,100,5000,40\n"
                                    "100.5,GPU-b,50,,30\n"
                                    "101,GPU-a,200,5150.25,41\n";
    const uint32_t all = GPU_HAS_POWER | GPU_HAS_ENERGY | GPU_HAS_TEMP | GPU_HAS_UTIL;
    struct gpu_sample s = {.has = 7};
    uw_error err = {{0}};
    void *lib = NULL;

    is_int(open_text(text, &lib, &err), 0, "a trace of two boards");
    is_int(replay_backend.count(lib), 2, "two boards");
    struct gpu_dev *a = replay_backend.at(lib, 0), *b = replay_backend.at(lib, 1);
    is_str(replay_backend.info(b)->uuid, "GPU-b", "in order of their first rows");
    ok(strstr(replay_backend.info(a)->name, "recorded"), "said to be recorded");
    ok(replay_backend.info(a)->abilities & GPU_CAN_ENERGY, "what it can …");
    ok(!(replay_backend.info(b)->abilities & GPU_CAN_ENERGY), "… and cannot");
    is_int(replay_backend.sample(a, all, &s, &err), 0, "the first row");
    is_int(s.has, GPU_HAS_POWER | GPU_HAS_ENERGY | GPU_HAS_TEMP, "what it has");
    ok(s.energy_mj == 5000000 && s.temp_c == 40, "its values");
    s.has = 7;
    is_int(replay_backend.sample(b, all, &s, &err), -ENODEV, "no row of the other yet");
    is_int(s.has, 7, "… untouched");
    now_ns += 999999999;
    is_int(replay_backend.sample(b, all, &s, &err), 0, "then there is");
    is_int(s.has, GPU_HAS_POWER | GPU_HAS_TEMP, "… without energy");
    (void)replay_backend.sample(a, GPU_HAS_POWER, &s, &err);
    is_near(s.power_w, 100, 1e-9, "still the first row");
    is_int(s.has, GPU_HAS_POWER, "only what is wanted");
    now_ns += 1;
    (void)replay_backend.sample(a, all, &s, &err);
    ok(s.energy_mj == 5150250 && fabs(s.power_w - 200) < 1e-9, "the second row");
    now_ns += 1000000000;
    is_int(replay_backend.sample(a, all, &s, &err), 0, "it holds for a second");
    now_ns += 1;
    is_int(replay_backend.sample(a, all, &s, &err), -ENODEV, "then the trace has ended");
    replay_backend.close(lib);
}

int main(void)
{
    int fd = mkstemp(path);
    struct gpu_open_opts opts = {.source = "/nowhere/x.csv", .clock = {clock_now, NULL}};
    void *lib = NULL;
    uw_error err = {{0}};

    if (fd < 0)
        return skip_all("no room in /tmp");
    (void)close(fd);
    is_int(replay_backend.open(&opts, &lib, &err), -ENOENT, "no such file");
    check_parsing();
    check_time();
    (void)unlink(path);
    return done();
}
