/* LD_PRELOAD: UTC of one process jumps by the nanoseconds that stand in the file that
 * CHAOS_CLOCK names (8 bytes, this machine's order).  No other clock does, as where
 * somebody sets the machine's.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { SECOND = 1000000000 };

static const int64_t *ahead_ns;

__attribute__((constructor)) static void map_it(void)
{
    const char *path = getenv("CHAOS_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *at =
        fd >= 0 ? mmap(NULL, sizeof *ahead_ns, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

    if (at != MAP_FAILED)
        ahead_ns = at;
    if (fd >= 0)
        (void)close(fd);
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t id,
                                                         struct timespec *ret)
{
    int r = (int)syscall(SYS_clock_gettime, id, ret);

    if (r == 0 && ahead_ns && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
        int64_t ns = (int64_t)ret->tv_sec * SECOND + ret->tv_nsec +
                     *(const volatile int64_t *)ahead_ns;
        *ret = (struct timespec){.tv_sec = ns / SECOND, .tv_nsec = ns % SECOND};
    }
    return r;
}

__attribute__((visibility("default"))) int gettimeofday(struct timeval *restrict ret,
                                                        void *restrict zone)
{
    struct timespec now;
    (void)zone;

    int r = clock_gettime(CLOCK_REALTIME, &now);
    if (r == 0)
        *ret = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return r;
}

__attribute__((visibility("default"))) time_t time(time_t *ret)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (ret)
        *ret = now.tv_sec;
    return now.tv_sec;
}
