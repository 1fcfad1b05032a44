#include "base/auto.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void mem_free_p(void *p_of_pointer)
{
    void *p;
    memcpy(&p, p_of_pointer, sizeof p);
    free(p);
}

void fd_close_p(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

void file_close_p(void *p_of_file)
{
    FILE *f;
    memcpy(&f, p_of_file, sizeof f);
    if (f)
        (void)fclose(f);
}

void dir_close_p(void *p_of_dir)
{
    DIR *dir;
    memcpy(&dir, p_of_dir, sizeof dir);
    if (dir)
        (void)closedir(dir);
}
