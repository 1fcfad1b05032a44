#include "ask/job-number.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* Each job appends a byte, and its number is the position behind that byte: the kernel
 * appends one after the other, so no process waits for a lock that a stopped one holds.
 */
uint64_t job_number(const char *dir)
{
    char path[256];

    int n = snprintf(path, sizeof path, "%s/jobs", dir);
    if (n < 0 || (size_t)n >= sizeof path)
        return 0;
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return 0;
    off_t end = write(fd, ".", 1) == 1 ? lseek(fd, 0, SEEK_CUR) : 0;
    (void)close(fd);
    return end > 0 ? (uint64_t)end : 0;
}
