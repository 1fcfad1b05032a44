/* Removes a test's folder and all in it. */
#ifndef TESTS_REMOVE_TREE_H
#define TESTS_REMOVE_TREE_H

#include <sys/wait.h>
#include <unistd.h>

static inline void remove_tree(const char *folder)
{
    pid_t child = fork();

    if (child == 0) {
        (void)execlp("rm", "rm", "-rf", folder, (char *)NULL);
        _exit(1);
    }
    (void)waitpid(child, NULL, 0);
}

#endif
