/* What a poller in nvidia-smi's manner asks of NVML, and no more:
 *
 *     polling PERIOD_MS [ROUNDS]
 *
 * opens the library, and each period reads power and utilisation of every board and
 * prints a line of each, as `nvidia-smi --query-gpu=power.draw,utilization.gpu
 * --format=csv -lms PERIOD_MS` does.  ROUNDS 0 or none: until it is killed. bench/node.py
 * measures it from outside.
 */
#include <stdio.h>
#include <time.h>

#include "base/units.h"
#include "gpu/nvml/abi.h"

enum { BOARDS = 64 };

static void query(const struct nvml_abi *abi, const nvml_device *board, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct nvml_utilization u = {0, 0};
        unsigned mw = 0;
        nvml_result r = abi->power_usage(board[i], &mw);
        nvml_result s =
            abi->utilization ? abi->utilization(board[i], &u) : NVML_NOT_SUPPORTED;
        if (r == NVML_OK && s == NVML_OK)
            (void)printf("%.2f W, %u %%\n", (double)mw * 1e-3, u.gpu);
        else
            (void)printf("[N/A], [N/A]\n");
    }
    (void)fflush(stdout);
}

static void wait_ms(uint64_t ms)
{
    struct timespec t = {.tv_sec = (time_t)(ms / 1000),
                         .tv_nsec = (long)(ms % 1000 * NS_PER_MS)};

    (void)nanosleep(&t, NULL);
}

int main(int argc, char **argv)
{
    struct nvml_abi abi;
    nvml_device board[BOARDS];
    uint64_t period_ms = 0, rounds = 0;
    unsigned n = 0;
    uw_error err = {{0}};

    if (argc < 2 || parse_u64(argv[1], &period_ms, &err) < 0 ||
        (argc > 2 && parse_u64(argv[2], &rounds, &err) < 0)) {
        (void)fprintf(stderr, "polling PERIOD_MS [ROUNDS]: %s\n", err.text);
        return 2;
    }
    if (nvml_abi_load(NULL, &abi, &err) != 0) {
        (void)fprintf(stderr, "polling: %s\n", err.text);
        return 1;
    }
    nvml_result r = abi.init();
    if (r == NVML_OK)
        r = abi.count(&n);
    for (unsigned i = 0; i < n && i < BOARDS && r == NVML_OK; i++)
        r = abi.by_index(i, &board[i]);
    if (r != NVML_OK) {
        (void)fprintf(stderr, "polling: NVML: result %u\n", r);
        return 1;
    }
    for (uint64_t k = 1;; k++) {
        query(&abi, board, n < BOARDS ? n : BOARDS);
        if (k == rounds)
            break;
        wait_ms(period_ms);
    }
    (void)abi.shutdown();
    nvml_abi_unload(&abi);
    return 0;
}
