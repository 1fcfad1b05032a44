/* What a CUDA program does at its start, for tests with the real libraries.
 *
 *     cuda-parts init          cuInit(0) of libcuda.so.1; prints its answer
 *     cuda-parts fork|exec     the same, then a child (another program) does it again
 *     cuda-parts names LIB     do the ids of cuda/cupti.h have their names there?
 *     cuda-parts inject LIB    InitializeInjection() of it; prints whether this process
 *                              runs with another's rights (set-uid)
 *     cuda-parts page FILE     a page with room for launches, as `underwatt run` makes it
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "cuda/cupti.h"
#include "io/launches.h"

static int init(void)
{
    int (*cu_init)(unsigned);
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
    void *at = cuda ? dlsym(cuda, "cuInit") : NULL;

    if (!at) {
        printf("no libcuda: %s\n", dlerror());
        return 1;
    }
    memcpy(&cu_init, &at, sizeof at);
    printf("cuInit %d\n", cu_init(0));
    (void)fflush(stdout);
    return 0;
}

static int init_twice(const char *self, int exec)
{
    int status = 1;

    if (init() != 0)
        return 1;
    if (exec) {
        (void)execl(self, self, "init", (char *)NULL);
        return 1;
    }
    pid_t pid = fork();
    if (pid == 0)
        return init();
    (void)waitpid(pid, &status, 0);
    return status == 0 ? 0 : 1;
}

static int names(const char *path)
{
#define LAUNCH(id, name) {id, name},
    static const struct {
        uint32_t id;
        const char *name;
    } calls[] = {CUPTI_LAUNCHES(LAUNCH)};
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *at = lib ? dlsym(lib, "cuptiGetCallbackName") : NULL;
    struct cupti cupti = {0};
    int wrong = 0;

    if (!at) {
        printf("%s: %s\n", path, dlerror());
        return 1;
    }
    memcpy(&cupti.callback_name, &at, sizeof at);
    for (size_t i = 0; i < n_elements(calls); i++) {
        const char *name = NULL;
        int r = cupti.callback_name(CUPTI_DOMAIN_DRIVER_API, calls[i].id, &name);
        if (r != 0 || !name || strcmp(name, calls[i].name) != 0) {
            printf("%u: %d %s, not %s\n", calls[i].id, r, name ? name : "?",
                   calls[i].name);
            wrong++;
        }
    }
    printf("%zu names, %d wrong\n", n_elements(calls), wrong);
    return wrong > 0;
}

static int inject(const char *path)
{
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *at = lib ? dlsym(lib, "InitializeInjection") : NULL;
    int (*fn)(void);

    if (!at) {
        printf("%s: %s\n", path, dlerror());
        return 1;
    }
    memcpy(&fn, &at, sizeof at);
    printf("%d secure %lu\n", fn(), getauxval(AT_SECURE));
    return 0;
}

static int page(const char *dir)
{
    struct progress_page *p = NULL;
    uw_error err = {""};

    if (progress_page_new(dir, &p, &err) < 0 || launches_add(p, &err) < 0) {
        printf("%s\n", err.text);
        return 1;
    }
    printf("%s\n", progress_page_path(p));
    return 0; /* it stays */
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    if (strcmp(what, "init") == 0)
        return init();
    if (strcmp(what, "fork") == 0 || strcmp(what, "exec") == 0)
        return init_twice(argv[0], what[0] == 'e');
    if (strcmp(what, "names") == 0 && argc > 2)
        return names(argv[2]);
    if (strcmp(what, "inject") == 0 && argc > 2)
        return inject(argv[2]);
    if (strcmp(what, "page") == 0 && argc > 2)
        return page(argv[2]);
    return 2;
}
