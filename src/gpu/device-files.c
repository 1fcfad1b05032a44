#include "gpu/device-files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "gpu/select.h"

enum device_file device_file_of(const struct gpu_info *board, const char *sim_state)
{
    const char *root = board->simulated ? sim_state : "";
    char path[4096];

    if (!board->has_minor || !root)
        return DEVICE_FILE_UNKNOWN;
    int len = snprintf(path, sizeof path, "%s/dev/nvidia%u", root, board->minor);
    if (len < 0 || (size_t)len >= sizeof path)
        return DEVICE_FILE_UNKNOWN;
    /* The kernel checks the process's control group, too. */
    if (faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) == 0)
        return DEVICE_FILE_OPEN;
    if (errno == EACCES || errno == EPERM)
        return DEVICE_FILE_CLOSED;
    return errno == ENOENT || errno == ENOTDIR ? DEVICE_FILE_ABSENT : DEVICE_FILE_UNKNOWN;
}

bool device_file_allows(const enum device_file *file, size_t n, size_t at)
{
    if (file[at] != DEVICE_FILE_ABSENT)
        return file[at] != DEVICE_FILE_CLOSED;
    for (size_t i = 0; i < n; i++) {
        if (file[i] == DEVICE_FILE_OPEN || file[i] == DEVICE_FILE_CLOSED)
            return false;
    }
    return true;
}

size_t device_files_filter(const struct gpu_info **list, size_t n, const char *sim_state)
{
    enum device_file file[SELECT_MAX];
    size_t left = 0;

    if (n > SELECT_MAX)
        n = SELECT_MAX;
    for (size_t i = 0; i < n; i++)
        file[i] = device_file_of(list[i], sim_state);
    for (size_t i = 0; i < n; i++) {
        if (device_file_allows(file, n, i))
            list[left++] = list[i];
    }
    return left;
}
