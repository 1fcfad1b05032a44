/* Recorded traces: through a file in memory, as the backend opens a path. */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "gpu/replay/replay.h"

static uint64_t still(void *user)
{
    (void)user;
    return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[40];
    struct gpu_open_opts opts = {.source = path, .clock = {still, NULL}};
    struct gpu_sample s = {0};
    void *lib = NULL;
    uw_error err = {""};
    int fd = memfd_create("trace", MFD_CLOEXEC);

    if (fd < 0)
        return 0;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (write(fd, data, size) == (ssize_t)size &&
        replay_backend.open(&opts, &lib, &err) == 0) {
        (void)fuzz_say("accepted", "%zu boards", replay_backend.count(lib));
        for (size_t i = 0; i < replay_backend.count(lib); i++) {
            int r =
                replay_backend.sample(replay_backend.at(lib, i), UINT32_MAX, &s, &err);
            fuzz_add(", has %#x r %d", s.has, r);
        }
        replay_backend.close(lib);
    } else {
        (void)fuzz_say("refused", "%s", err.text);
    }
    (void)close(fd);
    return 0;
}
