#include "sim/nvml/attach.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "sim/devices.h"
#include "sim/nvml/users.h"

struct nv_handle {
    char unused;
};

/* Only the addresses are used. */
static struct nv_handle handles[SIM_BOARDS_MAX];
static const struct sim_page *the_page; /* replaced when a new world is found */
static unsigned n_init;
static uint64_t may_use;

enum { ANSWER_S = 10, POLL_MS = 2 };

int64_t nv_utc_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static uint64_t boot_ns(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_BOOTTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int nv_state_dir(char *ret, size_t size)
{
    Dl_info info;

    if (!dladdr((const void *)handles, &info) || !info.dli_fname ||
        info.dli_fname[0] != '/')
        return SIM_NO_DRIVER;
    int n = snprintf(ret, size, "%s", info.dli_fname);
    if (n < 0 || (size_t)n >= size)
        return SIM_NO_DRIVER;
    for (int up = 0; up < 2; up++) { /* …/STATE/lib/libnvidia-ml.so.1 */
        char *slash = strrchr(ret, '/');
        if (!slash || slash == ret)
            return SIM_NO_DRIVER;
        *slash = '\0';
    }
    return SIM_OK;
}

/* The writer holds this lock while it lives. */
static bool writer_holds_lock(const struct sim_page *page)
{
    char path[SIM_PATH_MAX + 16];

    (void)snprintf(path, sizeof path, "%s/lock", page->state_dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool held = flock(fd, LOCK_SH | LOCK_NB) != 0;
    (void)close(fd);
    return held;
}

static uint64_t beat_ns(const struct sim_page *page)
{
    return __atomic_load_n(&page->beat_ns, __ATOMIC_ACQUIRE);
}

/* From this time on the writer may have ended. */
static uint64_t stale_ns(const struct sim_page *page)
{
    return beat_ns(page) + SIM_STALE_MS * 1000000ull;
}

bool nv_world_lives(const struct sim_page *page)
{
    if (__atomic_load_n(&page->stopped, __ATOMIC_ACQUIRE))
        return false;
    return boot_ns() < stale_ns(page) || writer_holds_lock(page);
}

static bool page_fits(const struct sim_page *page, off_t size)
{
    return size >= (off_t)sizeof *page && memcmp(page->magic, SIM_MAGIC, 8) == 0 &&
           page->version == SIM_VERSION && page->bytes == sizeof *page &&
           page->n_boards <= SIM_BOARDS_MAX;
}

static int map_page(const struct sim_page **ret)
{
    char path[NV_PATH_MAX + 8];
    struct stat st;

    int r = nv_state_dir(path, NV_PATH_MAX);
    if (r)
        return r;
    memcpy(path + strlen(path), "/state", sizeof "/state");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == EACCES || errno == EPERM ? SIM_NO_PERMISSION : SIM_NO_DRIVER;
    if (fstat(fd, &st) || st.st_size < (off_t)sizeof(struct sim_page)) {
        (void)close(fd);
        return NV_VERSION_MISMATCH;
    }
    void *p = mmap(NULL, sizeof(struct sim_page), PROT_READ, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (p == MAP_FAILED)
        return SIM_UNKNOWN;
    if (!page_fits(p, st.st_size)) {
        (void)munmap(p, sizeof(struct sim_page));
        return NV_VERSION_MISMATCH;
    }
    *ret = p;
    return SIM_OK;
}

/* munmap() of a const page. */
static void unmap(const struct sim_page *page)
{
    void *p;

    memcpy(&p, &page, sizeof p);
    (void)munmap(p, sizeof *page);
}

int nv_world(const struct sim_page **ret)
{
    const struct sim_page *page = __atomic_load_n(&the_page, __ATOMIC_ACQUIRE);
    const struct sim_page *fresh = NULL;

    if (page && nv_world_lives(page)) {
        *ret = page;
        return SIM_OK;
    }
    int r = map_page(&fresh);
    if (r)
        return r;
    if (!nv_world_lives(fresh)) {
        unmap(fresh);
        return SIM_NO_DRIVER;
    }
    /* An old page stays mapped: another thread may be reading it. */
    if (!__atomic_compare_exchange_n(&the_page, &page, fresh, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        unmap(fresh);
        fresh = page;
    }
    *ret = fresh;
    return SIM_OK;
}

int nv_init(bool attach)
{
    const struct sim_page *page;

    int r = nv_world(&page);
    if (!r && __atomic_load_n(&page->driver_gone, __ATOMIC_RELAXED))
        r = SIM_NO_DRIVER;
    if (r)
        return r;
    if (__atomic_load_n(&n_init, __ATOMIC_ACQUIRE) == 0)
        __atomic_store_n(&may_use, sim_devices(page), __ATOMIC_RELEASE);
    if (__atomic_add_fetch(&n_init, 1, __ATOMIC_ACQ_REL) == 1)
        users_begin(page);
    for (unsigned i = 0; i < page->n_boards && attach; i++)
        if (nv_may() >> i & 1)
            users_attach(i);
    return SIM_OK;
}

int nv_shutdown(void)
{
    unsigned n = __atomic_load_n(&n_init, __ATOMIC_ACQUIRE);

    do {
        if (n == 0)
            return SIM_UNINITIALIZED;
    } while (!__atomic_compare_exchange_n(&n_init, &n, n - 1, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    if (n == 1)
        users_end();
    return SIM_OK;
}

int nv_page(const struct sim_page **ret)
{
    if (__atomic_load_n(&n_init, __ATOMIC_ACQUIRE) == 0)
        return SIM_UNINITIALIZED;
    *ret = __atomic_load_n(&the_page, __ATOMIC_ACQUIRE);
    return SIM_OK;
}

uint64_t nv_may(void)
{
    return __atomic_load_n(&may_use, __ATOMIC_ACQUIRE);
}

nv_device nv_handle_of(unsigned i)
{
    return &handles[i];
}

static int board_of(nv_device dev, const struct sim_page **ret_page,
                    const struct sim_board **ret)
{
    int r = nv_page(ret_page);

    if (r)
        return r;
    if (dev < handles || dev >= handles + (*ret_page)->n_boards ||
        !users_has((unsigned)(dev - handles)))
        return SIM_INVALID;
    *ret = &(*ret_page)->board[dev - handles];
    return SIM_OK;
}

static uint64_t faults_of(const struct sim_board *b)
{
    return __atomic_load_n(&b->readings.faults, __ATOMIC_RELAXED);
}

/* A board whose world or driver is gone answers as a lost board. */
static int gone(const struct sim_page *page, const struct sim_board *b)
{
    if (!nv_world_lives(page) || __atomic_load_n(&page->driver_gone, __ATOMIC_RELAXED) ||
        (faults_of(b) & SIM_FAULT_LOST))
        return SIM_LOST;
    return SIM_OK;
}

static void wait_a_moment(void)
{
    struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};

    (void)nanosleep(&pause, NULL);
}

/* Whether a call that began at began_ns waits for the writer, which the host keeps from
 * running: the page is then older than a board's state would be.  A writer that does not
 * return is not waited for.
 */
static bool is_late(const struct sim_page *page, uint64_t began_ns)
{
    return began_ns > beat_ns(page) + SIM_LATE_MS * 1000000ull &&
           boot_ns() < stale_ns(page);
}

/* Blocks while the board hangs or its writer is late, as a call in the driver would. */
static int usable(const struct sim_page *page, const struct sim_board *b)
{
    uint64_t began = boot_ns();
    int r = gone(page, b);

    while (!r && ((faults_of(b) & SIM_FAULT_HANG) || is_late(page, began))) {
        wait_a_moment();
        r = gone(page, b);
    }
    return r;
}

/* Copies words that the writer changes; the host may keep it from running in mid-change.
 */
static int copy_words(const struct sim_page *page, const uint64_t *seq, const void *from,
                      void *to, size_t words)
{
    while (!sim_seq_read(seq, from, to, words)) {
        if (boot_ns() >= stale_ns(page) || !nv_world_lives(page))
            return SIM_LOST;
        wait_a_moment();
    }
    return SIM_OK;
}

int nv_index(nv_device dev, unsigned *ret)
{
    const struct sim_page *page;
    const struct sim_board *b;

    int r = board_of(dev, &page, &b);
    if (!r)
        r = gone(page, b);
    if (!r)
        *ret = sim_devices_place(nv_may(), (unsigned)(dev - handles));
    return r;
}

int nv_identity(nv_device dev, const struct sim_identity **ret)
{
    const struct sim_page *page;
    const struct sim_board *b;

    int r = board_of(dev, &page, &b);
    if (!r)
        r = gone(page, b);
    if (!r)
        *ret = &b->identity;
    return r;
}

int nv_readings(nv_device dev, struct sim_readings *ret)
{
    const struct sim_page *page;
    const struct sim_board *b;

    int r = board_of(dev, &page, &b);
    if (!r)
        r = usable(page, b);
    return r ? r : copy_words(page, &b->readings_seq, &b->readings, ret, sizeof *ret / 8);
}

int nv_peek(nv_device dev, struct sim_readings *ret)
{
    const struct sim_page *page;
    const struct sim_board *b;

    int r = board_of(dev, &page, &b);
    if (!r)
        r = gone(page, b);
    return r ? r : copy_words(page, &b->readings_seq, &b->readings, ret, sizeof *ret / 8);
}

int nv_readings_of(nv_device dev, struct sim_readings *ret,
                   const struct sim_identity **ret_id)
{
    int r = nv_readings(dev, ret);

    return r ? r : nv_identity(dev, ret_id);
}

int nv_procs(nv_device dev, struct sim_procs *ret)
{
    const struct sim_page *page;
    const struct sim_board *b;

    int r = board_of(dev, &page, &b);
    if (!r)
        r = usable(page, b);
    if (!r)
        r = copy_words(page, &b->procs_seq, &b->procs, ret, sizeof *ret / 8);
    if (!r && ret->n > SIM_PROCS_MAX)
        r = SIM_LOST;
    return r;
}

static int exchange(int fd, const struct sim_page *page, const struct sim_request *q)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    struct timeval limit = {.tv_sec = ANSWER_S};
    struct sim_reply reply;

    int n = snprintf(addr.sun_path, sizeof addr.sun_path, "%s/socket", page->state_dir);
    if (n < 0 || (size_t)n >= sizeof addr.sun_path)
        return SIM_UNKNOWN;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit))
        return SIM_UNKNOWN;
    if (connect(fd, (const struct sockaddr *)&addr, sizeof addr))
        return errno == EACCES || errno == EPERM ? SIM_NO_PERMISSION : SIM_LOST;
    if (send(fd, q, sizeof *q, MSG_NOSIGNAL) != (ssize_t)sizeof *q)
        return SIM_LOST;
    ssize_t got;
    do {
        got = recv(fd, &reply, sizeof reply, 0);
    } while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return SIM_TIMEOUT;
    return got == (ssize_t)sizeof reply ? reply.result : SIM_LOST;
}

int nv_request(nv_device dev, enum sim_op op, uint64_t a, uint64_t b)
{
    struct sim_request q = {.version = SIM_VERSION, .op = op, .a = a, .b = b};
    const struct sim_page *page;
    const struct sim_board *board;

    int r = board_of(dev, &page, &board);
    if (!r)
        r = usable(page, board);
    if (!r && (faults_of(board) & SIM_FAULT_REFUSE)) /* before it asks the board */
        r = SIM_NO_PERMISSION;
    if (r)
        return r;
    q.board = (uint32_t)(dev - handles);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return SIM_UNKNOWN;
    r = exchange(fd, page, &q);
    (void)close(fd);
    return r;
}
