/* Numbers of jobs from a shared file. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ask/job-number.h"
#include "tap.h"

enum { PROCESSES = 8, EACH = 200 };

/* Processes side by side never have the same number. */
static void side_by_side(const char *dir)
{
    for (int i = 0; i < PROCESSES; i++) {
        if (fork() != 0)
            continue;
        for (int k = 0; k < EACH; k++)
            (void)job_number(dir);
        _exit(0);
    }
    while (wait(NULL) > 0)
        ;
    is_int((long long)job_number(dir), 2 + PROCESSES * EACH + 1,
           "%d processes, %d numbers each: none twice", PROCESSES, EACH);
}

int main(void)
{
    char dir[] = "/tmp/uw-number-XXXXXX", path[64];

    if (!mkdtemp(dir))
        return 1;
    (void)snprintf(path, sizeof path, "%s/jobs", dir);
    is_int((long long)job_number(dir), 1, "the first job");
    is_int((long long)job_number(dir), 2, "the second one");
    side_by_side(dir);
    (void)unlink(path);
    ok(symlink("elsewhere", path) == 0, "a link in the file's place");
    is_int((long long)job_number(dir), 0, "a link is not followed");
    (void)unlink(path);
    (void)rmdir(dir);
    is_int((long long)job_number(dir), 0, "no folder, no number");
    return done();
}
