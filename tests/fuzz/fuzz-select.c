/* Lists of boards: --gpus and CUDA_VISIBLE_DEVICES, on a machine of three boards. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "fuzz.h"
#include "gpu/select.h"

static void check(const struct selection *sel, size_t n)
{
    if (sel->n > n)
        __builtin_trap();
    for (size_t i = 0; i < sel->n; i++)
        fuzz_add(" %zu", sel->at[i]);
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
        return fuzz_say("passed-over", "longer than %zu bytes", sizeof text - 1);
    memcpy(text, data, size);
    text[size] = '\0';
    int r = select_list(text, boards, 3, &sel, &err);
    (void)fuzz_say("-", "list: %s", r == 0 ? "" : err.text);
    if (r == 0)
        check(&sel, 3);
    sel = (struct selection){0};
    int q = select_cuda(text, NULL, boards, 3, &sel, &err);
    fuzz_add("; cuda: %s", q >= 0 ? "" : err.text);
    if (q >= 0)
        check(&sel, 3);
    (void)snprintf(fuzz_said.word, sizeof fuzz_said.word, "%s",
                   r == 0 && q >= 0 ? "both"
                   : r == 0         ? "list"
                   : q >= 0         ? "cuda"
                                    : "refused");
    return 0;
}
