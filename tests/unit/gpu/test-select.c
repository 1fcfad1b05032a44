#include "gpu/select.h"

#include <errno.h>

#include "base/auto.h"
#include "tap.h"

enum { N = 18 };
static struct gpu_info info[N];
static const struct gpu_info *boards[N];

/* Eighteen boards; the driver's order is the bus's but for 4 and 5, which stand the
 * other way round there.  UUIDs: GPU-000…, GPU-111…, …, GPU-aaa…; 16 and 17 begin
 * with the same.
 */
static void make(void)
{
    for (unsigned i = 0; i < N; i++) {
        unsigned slot = i == 4 ? 5 : i == 5 ? 4 : i;
        info[i].index = i;
        (void)snprintf(info[i].name, sizeof info[i].name, "Tesla V100");
        (void)snprintf(info[i].pci_bus_id, sizeof info[i].pci_bus_id,
                       "00000000:%02X:00.0", slot + 3);
        (void)snprintf(info[i].uuid, sizeof info[i].uuid,
                       "GPU-%x%x%x%x0000-0000-0000-0000-%012x", i & 15, i & 15, i & 15,
                       i >> 4 ? 7 : i & 15, i);
        boards[i] = &info[i];
    }
    info[2].mig_enabled = true;
    info[2].n_migs = 2;
    (void)snprintf(info[2].mig[0].uuid, sizeof info[2].mig[0].uuid, "MIG-aaaa-1");
    (void)snprintf(info[2].mig[1].uuid, sizeof info[2].mig[1].uuid, "MIG-aaaa-2");
}

#define MANY 16
/* clang-format off */
static const struct {
    const char *list;
    int r;
    size_t n, at[MANY];
    bool mig;
} lists[] = {
    {"0", 0, 1, {0}, false},
    {"3,1", 0, 2, {3, 1}, false},
    {" 3 , 1 ", 0, 2, {3, 1}, false},
    {"0-3", 0, 4, {0, 1, 2, 3}, false},
    {"17,15-16", 0, 3, {17, 15, 16}, false},
    {"GPU-33330000-0000-0000-0000-000000000003", 0, 1, {3}, false},
    {"gpu-aAa", 0, 1, {10}, false},
    {"GPU-5", 0, 1, {5}, false},
    {"aaaa", 0, 1, {10}, false},
    {"b,c", 0, 2, {11, 12}, false},
    {"GPU-1110", -EINVAL, 0, {0}, false},
    {"GPU-0000", 0, 1, {0}, false},
    {"GPU-0007", 0, 1, {16}, false},
    {"GPU-000", -EINVAL, 0, {0}, false},
    {"MIG-aaaa-2", 0, 1, {2}, true},
    {"MIG-aaaa", -EINVAL, 0, {0}, false},
    {"MIG-GPU-33330000-0000-0000-0000-000000000003/7/0", 0, 1, {3}, true},
    {"MIG-GPU-33330000-0000-0000-0000-000000000003", -EINVAL, 0, {0}, false},
    {"MIG-GPU-33330000-0000-0000-0000-000000000003/7/0/1", -EINVAL, 0, {0}, false},
    {"18", -EINVAL, 0, {0}, false},
    {"-1", -EINVAL, 0, {0}, false},
    {"3-1", -EINVAL, 0, {0}, false},
    {"0-99999999999", -EINVAL, 0, {0}, false},
    {"1-2-3", -EINVAL, 0, {0}, false},
    {"", -EINVAL, 0, {0}, false},
    {"0,", -EINVAL, 0, {0}, false},
    {"0,0", -EINVAL, 0, {0}, false},
    {"0,GPU-0000", -EINVAL, 0, {0}, false},
    {"GPU-", -EINVAL, 0, {0}, false},
    {"none", -EINVAL, 0, {0}, false},
};

static const struct {
    const char *visible, *order;
    int r;
    size_t n, at[MANY];
    bool mig;
    const char *stop;
} cuda[] = {
    {"", NULL, 0, 0, {0}, false, ""},
    {"0", NULL, 0, 1, {0}, false, ""},
    {"1,0", NULL, 0, 2, {1, 0}, false, ""},
    {" 1 , 0 ", NULL, 0, 2, {1, 0}, false, ""},
    {"4", NULL, 0, 1, {5}, false, ""},
    {"4", "PCI_BUS_ID", 0, 1, {5}, false, ""},
    {"4,5,6", "FASTEST_FIRST", 0, 3, {5, 4, 6}, false, ""},
    {"16,17", NULL, 0, 2, {16, 17}, false, ""},
    {"0,1,-1,2", NULL, 0, 2, {0, 1}, false, "-1"},
    {"-1", NULL, 0, 0, {0}, false, "-1"},
    {"NoDevFiles", NULL, 0, 0, {0}, false, "NoDevFiles"},
    {"0,18,1", NULL, 0, 1, {0}, false, "18"},
    {"0,,1", NULL, 0, 1, {0}, false, ""},
    {"0,1,0", NULL, 0, 0, {0}, false, "0"},
    {"2gpu,+3", NULL, 0, 2, {2, 3}, false, ""},
    {"99999999999999999999", NULL, 0, 0, {0}, false, "99999999999999999999"},
    {"GPU-3333", NULL, 0, 1, {3}, false, ""},
    {"GPU-5,GPU-4", NULL, 0, 2, {5, 4}, false, ""},
    {"GPU-3333,GPU-000,GPU-5", NULL, 0, 1, {3}, false, "GPU-000"},
    {"GPU-3333,0", NULL, 0, 1, {3}, false, "0"},
    {"0,GPU-3333", NULL, 0, 1, {0}, false, "GPU-3333"},
    {"GPU-3333,GPU-3333", NULL, 0, 0, {0}, false, "GPU-3333"},
    {"GPU-", NULL, 0, 0, {0}, false, "GPU-"},
    {"MIG-aaaa-2", NULL, 0, 1, {2}, true, ""},
    {"MIG-aaaa-2,MIG-aaaa-1", NULL, 0, 1, {2}, true, ""},
    {"MIG-bbbb", NULL, 0, 0, {0}, false, "MIG-bbbb"},
    {"MIG-GPU-33330000-0000-0000-0000-000000000003/7/0", NULL, 0, 1, {3}, true, ""},
};
/* clang-format on */

static bool same(const struct selection *sel, size_t n, const size_t *at)
{
    for (size_t i = 0; i < n && i < sel->n; i++) {
        if (sel->at[i] != at[i])
            return false;
    }
    return sel->n == n;
}

static void check_lists(void)
{
    for (size_t i = 0; i < n_elements(lists); i++) {
        struct selection sel = {.n = 77};
        uw_error err = {{0}};
        int r = select_list(lists[i].list, boards, N, &sel, &err);
        is_int(r, lists[i].r, "--gpus '%s'", lists[i].list);
        if (lists[i].r < 0)
            ok(sel.n == 77 && err.text[0], "… untouched, and why: %s", err.text);
        else
            ok(same(&sel, lists[i].n, lists[i].at) && sel.mig == lists[i].mig,
               "… means the right boards");
    }
}

static void check_cuda(void)
{
    for (size_t i = 0; i < n_elements(cuda); i++) {
        struct selection sel = {.n = 77};
        int r = select_cuda(cuda[i].visible, cuda[i].order, boards, N, &sel, NULL);
        is_int(r, cuda[i].r, "CUDA_VISIBLE_DEVICES='%s'", cuda[i].visible);
        ok(same(&sel, cuda[i].n, cuda[i].at) && sel.mig == cuda[i].mig,
           "… shows the right boards (%zu)", sel.n);
        is_str(sel.stop, cuda[i].stop, "… ended by");
    }
}

int main(void)
{
    struct selection sel = {0};
    uw_error err = {{0}};

    make();
    check_lists();
    check_cuda();
    is_int(select_list("all", boards, N, &sel, &err), 0, "all");
    is_int(sel.n, N, "… is all");
    is_int(select_cuda(NULL, NULL, boards, N, &sel, &err), 0, "nothing set");
    is_int(sel.n, N, "… is all");
    is_int(select_cuda("0", NULL, boards, 0, &sel, &err), 0, "no board at all");
    (void)select_list("3", boards, 1, &sel, &err);
    is_str(err.text, "no board '3': the only board is 0, see underwatt list",
           "one board");
    is_int(sel.n, 0, "… is none");
    (void)select_list("GPU-", boards, N, &sel, &err);
    is_str(err.text, "'GPU-' matches several boards: write more of the UUID",
           "a prefix alone");
    (void)select_list("GPU-", boards, 1, &sel, &err);
    is_str(err.text, "no board 'GPU-': the only board is 0, see underwatt list",
           "… of one board");

    (void)snprintf(info[7].name, sizeof info[7].name, "Quadro RTX 6000");
    is_int(select_cuda("1,0", NULL, boards, N, &sel, &err), SELECT_UNSURE,
           "indices of different boards are not sure");
    ok(strstr(err.text, "CUDA_DEVICE_ORDER=PCI_BUS_ID") != NULL, "… and says: %s",
       err.text);
    is_int(sel.n, 2, "… and a guess is there");
    is_int(select_cuda("1,0", "PCI_BUS_ID", boards, N, &sel, &err), 0,
           "the order of the bus is sure");
    is_int(select_cuda("GPU-3333", NULL, boards, N, &sel, &err), 0, "UUIDs are sure");
    return done();
}
