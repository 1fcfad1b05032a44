#include "trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "tuner/tuner-table.h"
#include "virtual/virtual-world.h"

enum { TRACE_BOARDS = 64, TRACE_TUNERS = 64, TRACE_CASES = 1024, TRACE_NAME = 96 };

#define TRACE_JOIN_(a, b) a##b
#define TRACE_JOIN(a, b) TRACE_JOIN_(a, b)
#define WRAPPED(name) TRACE_JOIN(__wrap_, name)
#define REAL(name) TRACE_JOIN(__real_, name)

int REAL(tuner_new)(const struct tuner_opts *opts, struct tuner **ret, uw_error *err);
void REAL(tuner_free)(struct tuner *t);
int WRAPPED(tuner_new)(const struct tuner_opts *opts, struct tuner **ret, uw_error *err);
void WRAPPED(tuner_free)(struct tuner *t);

/* What was last written of a board; cap_mw 0: nothing. */
struct trace_board {
    uint32_t cap_mw, lock_mhz;
    const char *state;
};

/* Written at the end of a search at the latest: a test may forbid files to grow. */
static FILE *file;
static char buffer[1 << 20];
static struct gpu_clock clock_of_world;
static struct trace_board written[TRACE_BOARDS], now_of[TRACE_BOARDS];
static struct tuner *tuners[TRACE_TUNERS];
static char cases[TRACE_CASES][TRACE_NAME];
static size_t n_cases;

/* The words of a trace: those that are recorded stay as they are. */
static const char *word(enum tuner_state state)
{
    switch (state) {
    case TUNER_WAIT:
        return "wait";
    case TUNER_WALK:
        return "ramp";
    case TUNER_MEASURE:
        return "window";
    case TUNER_ENERGY:
        return "energy";
    case TUNER_BOARDS:
        return "rehold";
    case TUNER_LEFT:
        return "left";
    case TUNER_OVER:
        return "over";
    default:
        break;
    }
    return "?";
}

/* Of an interruption, the state that it goes back to. */
static enum tuner_state shown(const struct tuner *t)
{
    return t->state == TUNER_LATE || t->state == TUNER_PAUSED ? t->from : t->state;
}

static const char *state_of(size_t board)
{
    for (size_t k = 0; k < TRACE_TUNERS; k++)
        for (size_t i = 0; tuners[k] && i < tuners[k]->o.n; i++)
            if (board_view(tuners[k]->o.boards[i])->info->index == board)
                return word(shown(tuners[k]));
    return "-";
}

static void look(size_t board)
{
    struct trace_board *was = &written[board], *is = &now_of[board];

    is->state = state_of(board);
    if (is->cap_mw == 0 || (was->cap_mw == is->cap_mw && was->lock_mhz == is->lock_mhz &&
                            was->state && strcmp(was->state, is->state) == 0))
        return;
    uint64_t ns = clock_of_world.now_ns(clock_of_world.user);
    (void)fprintf(file, "%llu.%09llu %zu %u %s", (unsigned long long)(ns / NS_PER_S),
                  (unsigned long long)(ns % NS_PER_S), board, is->cap_mw, is->state);
    if (is->lock_mhz)
        (void)fprintf(file, " %u", is->lock_mhz);
    (void)fputc('\n', file);
    *was = *is;
}

static size_t index_of(const struct gpu_dev *dev)
{
    size_t i = virtual_backend.info(dev)->index;
    return i < TRACE_BOARDS ? i : 0;
}

static int trace_open(const struct gpu_open_opts *opts, void **ret_lib, uw_error *err)
{
    clock_of_world = opts->clock;
    return virtual_backend.open(opts, ret_lib, err);
}

static int trace_sample(struct gpu_dev *dev, uint32_t want, struct gpu_sample *ret,
                        uw_error *err)
{
    size_t board = index_of(dev);
    int r = virtual_backend.sample(dev, want, ret, err);

    if (r == 0 && ret->has & GPU_HAS_ENFORCED)
        now_of[board].cap_mw = ret->enforced_mw;
    look(board);
    return r;
}

static int trace_set_limit(struct gpu_dev *dev, uint32_t mw, uw_error *err)
{
    size_t board = index_of(dev);
    int r = virtual_backend.set_limit(dev, mw, err);

    if (r == 0)
        now_of[board].cap_mw = mw;
    look(board);
    return r;
}

static int trace_lock_clocks(struct gpu_dev *dev, uint32_t min_mhz, uint32_t max_mhz,
                             uw_error *err)
{
    size_t board = index_of(dev);
    int r = virtual_backend.lock_clocks(dev, min_mhz, max_mhz, err);

    if (r == 0)
        now_of[board].lock_mhz = max_mhz;
    look(board);
    return r;
}

static int trace_reset_clocks(struct gpu_dev *dev, uw_error *err)
{
    size_t board = index_of(dev);
    int r = virtual_backend.reset_clocks(dev, err);

    if (r == 0)
        now_of[board].lock_mhz = 0;
    look(board);
    return r;
}

static bool wanted(void)
{
    static bool asked;
    const char *path = getenv("UNDERWATT_TRACE");

    if (asked || !path || !*path)
        return file != NULL;
    asked = true;
    file = fopen(path, "we");
    if (file)
        (void)setvbuf(file, buffer, _IOFBF, sizeof buffer);
    else
        perror(path);
    return file != NULL;
}

const struct gpu_backend *trace_backend(void)
{
    static struct gpu_backend watched;

    if (!wanted())
        return &virtual_backend;
    watched = virtual_backend;
    watched.open = trace_open;
    watched.sample = trace_sample;
    watched.set_limit = trace_set_limit;
    watched.lock_clocks = trace_lock_clocks;
    watched.reset_clocks = trace_reset_clocks;
    return &watched;
}

void trace_case(const char *format, ...)
{
    char name[TRACE_NAME];
    unsigned earlier = 0;
    va_list args;

    if (!wanted())
        return;
    va_start(args, format);
    (void)vsnprintf(name, sizeof name, format, args);
    va_end(args);
    for (size_t i = 0; i < n_cases; i++)
        earlier += strcmp(cases[i], name) == 0;
    if (n_cases < TRACE_CASES)
        (void)snprintf(cases[n_cases++], TRACE_NAME, "%s", name);
    (void)fprintf(file, "case %s", name);
    if (earlier)
        (void)fprintf(file, " (%u)", earlier + 1);
    (void)fputc('\n', file);
    memset(written, 0, sizeof written);
    memset(now_of, 0, sizeof now_of);
}

int WRAPPED(tuner_new)(const struct tuner_opts *opts, struct tuner **ret, uw_error *err)
{
    int r = REAL(tuner_new)(opts, ret, err);

    for (size_t k = 0; r >= 0 && k < TRACE_TUNERS; k++)
        if (!tuners[k]) {
            tuners[k] = *ret;
            break;
        }
    return r;
}

void WRAPPED(tuner_free)(struct tuner *t)
{
    for (size_t k = 0; k < TRACE_TUNERS; k++)
        if (tuners[k] == t)
            tuners[k] = NULL;
    REAL(tuner_free)(t);
    if (file)
        (void)fflush(file);
}
