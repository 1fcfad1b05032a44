/* Boards by their device files: indices count those that this process may use. */
#include "gpu/device-files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu/select.h"
#include "remove-tree.h"
#include "tap.h"

enum { N = 4 };

static void rules(void)
{
    /* clang-format off */
    static const struct { const char *name; enum device_file file[N]; bool allowed[N]; } cases[] = {
        {"all open", {DEVICE_FILE_OPEN, DEVICE_FILE_OPEN, DEVICE_FILE_OPEN, DEVICE_FILE_OPEN}, {1, 1, 1, 1}},
        {"two closed", {DEVICE_FILE_CLOSED, DEVICE_FILE_CLOSED, DEVICE_FILE_OPEN, DEVICE_FILE_OPEN}, {0, 0, 1, 1}},
        {"all closed", {DEVICE_FILE_CLOSED, DEVICE_FILE_CLOSED, DEVICE_FILE_CLOSED, DEVICE_FILE_CLOSED}, {0}},
        {"a container has one", {DEVICE_FILE_ABSENT, DEVICE_FILE_ABSENT, DEVICE_FILE_OPEN, DEVICE_FILE_ABSENT}, {0, 0, 1, 0}},
        {"one closed, one absent", {DEVICE_FILE_ABSENT, DEVICE_FILE_CLOSED, DEVICE_FILE_UNKNOWN, DEVICE_FILE_UNKNOWN}, {0, 0, 1, 1}},
        {"no files", {DEVICE_FILE_ABSENT, DEVICE_FILE_ABSENT, DEVICE_FILE_ABSENT, DEVICE_FILE_ABSENT}, {1, 1, 1, 1}},
        {"nothing known", {DEVICE_FILE_UNKNOWN, DEVICE_FILE_ABSENT, DEVICE_FILE_UNKNOWN, DEVICE_FILE_ABSENT}, {1, 1, 1, 1}},
    };
    /* clang-format on */

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool same = true;
        for (size_t at = 0; at < N; at++)
            same =
                same && device_file_allows(cases[i].file, N, at) == cases[i].allowed[at];
        ok(same, "%s", cases[i].name);
    }
}

/* Four boards; board i has the device file 3 - i. */
static void make(struct gpu_info info[N], const struct gpu_info *list[N])
{
    for (unsigned i = 0; i < N; i++) {
        info[i] = (struct gpu_info){
            .index = i, .has_minor = true, .minor = N - 1 - i, .simulated = true};
        (void)snprintf(info[i].uuid, sizeof info[i].uuid, "GPU-%u", i);
        list[i] = &info[i];
    }
}

static void indices(const char *state)
{
    struct gpu_info info[N];
    const struct gpu_info *list[N];
    struct selection sel = {0};
    char path[200];

    make(info, list);
    ok(device_files_filter(list, N, state) == N,
       "no folder with device files: all boards");
    (void)snprintf(path, sizeof path, "%s/dev", state);
    ok(mkdir(path, 0700) == 0 && device_files_filter(list, N, state) == N,
       "no device file: all boards");
    for (unsigned minor = 0; minor < 2; minor++) {
        (void)snprintf(path, sizeof path, "%s/dev/nvidia%u", state, minor);
        int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        ok(fd >= 0 && close(fd) == 0, "device file %u", minor);
    }
    size_t n = device_files_filter(list, N, state);
    ok(n == 2 && list[0]->index == 2 && list[1]->index == 3,
       "the files 0 and 1 are those of boards 3 and 2");
    ok(select_cuda("0,1", NULL, list, n, &sel, NULL) == 0 && sel.n == 2 &&
           list[sel.at[0]]->index == 2 && list[sel.at[1]]->index == 3,
       "CUDA_VISIBLE_DEVICES=0,1: the boards 2 and 3");
    ok(select_cuda("2", NULL, list, n, &sel, NULL) == 0 && sel.n == 0,
       "there is no third board");
    make(info, list);
    ok(device_files_filter(list, N, NULL) == N, "a world that is not known: all boards");
    info[1].has_minor = false;
    ok(device_files_filter(list, N, state) == 3 && list[0]->index == 1,
       "a board without a minor number stays");
}

static void closed(const char *state)
{
    const struct gpu_info board = {.has_minor = true, .minor = 1, .simulated = true};
    char path[200];

    (void)snprintf(path, sizeof path, "%s/dev/nvidia1", state);
    ok(device_file_of(&board, state) == DEVICE_FILE_OPEN, "open");
    if (geteuid() == 0 && seteuid(65534) != 0)
        printf("# stays root\n");
    ok(chmod(path, 0) == 0 || geteuid() == 65534, "its mode is 0, or it is another's");
    ok(device_file_of(&board, state) == DEVICE_FILE_CLOSED, "closed");
    ok(seteuid(getuid()) == 0, "back");
}

int main(void)
{
    char state[] = "/tmp/uw-device-files-XXXXXX";

    rules();
    ok(mkdtemp(state), "a state directory");
    indices(state);
    closed(state);
    remove_tree(state);
    ok(select_is_index("0,1") && select_is_index(" 1") && !select_is_index("GPU-1") &&
           !select_is_index("MIG-1,0") && select_is_index("x") &&
           select_is_part("MIG-1,0") && !select_is_part("GPU-1"),
       "the first entry decides");
    return done();
}
