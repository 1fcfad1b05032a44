/* Lists of boards: --gpus and CUDA_VISIBLE_DEVICES, on a machine of three boards. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "gpu/select.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); /* -Wmissing-prototypes */

static void check(const struct selection *sel, size_t n)
{
    if (sel->n > n)
        __builtin_trap();
    for (size_t i = 0; i < sel->n; i++) {
        if (sel->at[i] >= n)
            __builtin_trap();
        for (size_t k = 0; k < i; k++) {
            if (sel->at[k] == sel->at[i])
                __builtin_trap();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gpu_info info[3] = {
        {.uuid = "GPU-aaaa0000", .name = "A", .pci_bus_id = "00000000:03:00.0"},
        {.index = 1,
         .uuid = "GPU-aaaa1111",
         .name = "A",
         .n_migs = 1,
         .mig = {{.uuid = "MIG-1234"}}},
        {.index = 2, .uuid = "GPU-bbbb2222", .name = "B"},
    };
    const struct gpu_info *const boards[3] = {&info[0], &info[1], &info[2]};
    struct selection sel = {0};
    char text[300];
    uw_error err;

    if (size >= sizeof text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (select_list(text, boards, 3, &sel, &err) == 0)
        check(&sel, 3);
    sel = (struct selection){0};
    if (select_cuda(text, NULL, boards, 3, &sel, &err) >= 0)
        check(&sel, 3);
    return 0;
}
