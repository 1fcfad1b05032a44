#include "cli/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/cmd.h"
#include "io/program.h"

int gate_run(int argc, char **argv, const char *folders)
{
    uint64_t number = 0;
    char path[PATH_MAX], go;
    ssize_t n;

    if (argc < 2 || parse_u64(argv[0], &number, NULL) < 0 || number > INT_MAX)
        return EXIT_BEFORE;
    int fd = (int)number;
    do {
        n = read(fd, &go, 1);
    } while (n < 0 && errno == EINTR);
    if (n != 1 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
        return EXIT_BEFORE;
    int r = program_find(argv[1], folders, path, sizeof path, NULL);
    if (r == 0)
        r = program_exec(path, argv + 1, environ);
    int why = -r;
    (void)!write(fd, &why, sizeof why);
    return cli_exit_of_exec(r);
}
