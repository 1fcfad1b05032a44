/* Telemetry that others recorded: through a file in memory, as bench/period opens a path.
 */
#include <sys/mman.h>
#include <unistd.h>

/* the benchmarks have no library */
#include "../../bench/tracefile.c" /* NOLINT(bugprone-suspicious-include) */
#include "core/progress/period.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_(tracefile_fini) struct tracefile t = {0};
    auto_(period_free) struct period *p = NULL;
    struct period_found f;
    char path[40];
    uw_error err = {""};
    int fd = memfd_create("trace", MFD_CLOEXEC);

    if (fd < 0)
        return 0;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (write(fd, data, size) == (ssize_t)size && tracefile_read(path, &t, &err) == 0 &&
        period_new(1, &p) == 0) {
        for (size_t i = 0; i < t.n; i++)
            period_feed(p, 0, &t.items[i]);
        period_find(p, &f);
        (void)fuzz_say("accepted", "%zu items, period %.3g s", t.n, f.period_s);
    } else {
        (void)fuzz_say("refused", "%s", err.text);
    }
    (void)close(fd);
    return 0;
}
