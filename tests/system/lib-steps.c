/* A program that tells its steps in a job of Slurm's: it starts another one, its work. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <underwatt/underwatt.h>

int main(int argc, char **argv)
{
    struct timespec step = {0, 20000000};
    uw_progress *progress = NULL;
    uw_error err = {""};
    long n;

    if (argc < 2 || uw_progress_attach(NULL, &progress, &err) < 0) {
        fprintf(stderr, "lib-steps: %s\n", err.text);
        return 1;
    }
    if (fork() == 0) {
        execvp(argv[1], argv + 1);
        _exit(1);
    }
    for (n = 1;; n++) {
        nanosleep(&step, NULL);
        uw_progress_step(progress);
        if (n % 50 == 0 && uw_progress_renew(progress, &err) < 0)
            fprintf(stderr, "lib-steps: %s\n", err.text);
    }
}
