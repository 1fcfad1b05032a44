/* The plugin's hooks in a process that plays slurmstepd: with a daemon that answers,
 * lies, is slow, or is not there.  Whatever happens the hook returns 0, says one line at
 * most and leaves nothing behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/auto.h"
#include "open-files.h"
#include "slurm/client.h"
#include "slurm/context.h"
#include "tap.h"

/* ---- what Slurm gives a plugin ---- */

static struct {
    char line[400];
    int lines, registered;
    enum spank_context context;
    const char *option[OPTIONS];
    bool control;
} host;

static void said(const char *format, va_list args)
{
    host.lines++;
    (void)vsnprintf(host.line, sizeof host.line, format, args);
}

void slurm_error(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    said(format, args);
    va_end(args);
}

void slurm_info(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    said(format, args);
    va_end(args);
}

spank_context_t spank_context(void)
{
    return host.context;
}

spank_err_t spank_option_register(spank_t sp, struct spank_option *opt)
{
    (void)sp;
    host.registered += opt->has_arg;
    return ESPANK_SUCCESS;
}

spank_err_t spank_option_getopt(spank_t sp, struct spank_option *opt, char **ret)
{
    static char value[OPTIONS][200];
    (void)sp;

    if (!host.option[opt->val])
        return ESPANK_ERROR;
    (void)snprintf(value[opt->val], sizeof value[0], "%s", host.option[opt->val]);
    *ret = value[opt->val];
    return ESPANK_SUCCESS;
}

spank_err_t spank_job_control_setenv(spank_t sp, const char *name, const char *value,
                                     int overwrite)
{
    (void)sp;
    host.control = strcmp(name, "UNDERWATT_CAP_FIRST") == 0 && *value && overwrite;
    return ESPANK_SUCCESS;
}

spank_err_t spank_job_control_unsetenv(spank_t sp, const char *name)
{
    (void)sp;
    (void)name;
    host.control = false;
    return ESPANK_ENV_NOEXIST;
}

spank_err_t spank_get_item(spank_t sp, spank_item_t item, ...)
{
    va_list args;
    (void)sp;

    va_start(args, item);
    if (item == S_JOB_ID)
        *va_arg(args, uint32_t *) = 4711;
    else
        *va_arg(args, uid_t *) = 1000;
    va_end(args);
    return ESPANK_SUCCESS;
}

/* ---- what stands in the daemon's place ---- */

enum manner { ANSWERS, CLOSES, IS_MUTE, DRIPS, FLOODS, NOT_READING };

/* A process of its own, so that the descriptors here are the plugin's. */
static struct {
    enum manner manner;
    const char *answer;
    size_t len;
    int fd;
    pid_t pid;
    char *asked; /* shared memory */
} server;
enum { ASKED_MAX = 10000 };

static void pause_ms(long ms)
{
    struct pollfd none = {.fd = -1};

    (void)poll(&none, 1, (int)ms);
}

static void serve(int fd)
{
    static const char junk[4096] = "x";
    size_t used = 0;

    while (server.manner != NOT_READING && used < ASKED_MAX - 1) {
        ssize_t n = recv(fd, server.asked + used, ASKED_MAX - 1 - used, 0);
        if (n <= 0)
            break;
        used += (size_t)n;
        server.asked[used] = '\0';
        const char *body = strstr(server.asked, "\r\n\r\n");
        if (body && (strncmp(server.asked, "PUT", 3) != 0 || strstr(body, "}}") ||
                     server.asked[used - 1] == '}'))
            break;
    }
    if (server.manner == ANSWERS)
        (void)send(fd, server.answer, server.len, MSG_NOSIGNAL);
    while (server.manner == IS_MUTE)
        pause_ms(1000);
    for (size_t i = 0; server.manner == DRIPS; i++) {
        if (send(fd, server.answer + i % server.len, 1, MSG_NOSIGNAL) < 0)
            break;
        pause_ms(1);
    }
    while (server.manner == FLOODS)
        if (send(fd, junk, sizeof junk, MSG_NOSIGNAL) < 0)
            break;
    while (server.manner == NOT_READING)
        pause_ms(1000);
}

static int listen_at(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    (void)unlink(path);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof at) < 0 ||
        listen(fd, 8) < 0)
        return -1;
    return fd;
}

static bool start_server(const char *path, enum manner manner, const char *answer)
{
    server.manner = manner;
    server.answer = answer;
    server.len = strlen(answer);
    server.asked[0] = '\0';
    server.fd = listen_at(path);
    server.pid = server.fd < 0 ? -1 : fork();
    while (server.pid == 0) {
        int fd = accept4(server.fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) {
            serve(fd);
            (void)close(fd);
        }
    }
    return ok(server.pid > 0, "a server listens");
}

static void stop_server(void)
{
    (void)kill(server.pid, SIGKILL);
    (void)waitpid(server.pid, NULL, 0);
    (void)close(server.fd);
}

/* ---- slurmd ---- */

/* Calls a function in a child of a process that began just now and has slurmd's name. */
static int as_slurmd(int (*fn)(const void *), const void *arg)
{
    int status = -1;

    pause_ms(100); /* files' times are no finer than a clock tick */
    (void)fflush(stdout);
    pid_t slurmd = fork();
    if (slurmd == 0) {
        (void)prctl(PR_SET_NAME, "slurmd");
        pid_t child = fork();
        if (child == 0) {
            (void)prctl(PR_SET_NAME, "slurmstepd");
            int r = fn(arg);
            (void)fflush(stdout);
            _exit(r);
        }
        if (child < 0 || waitpid(child, &status, 0) < 0)
            _exit(1);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
    }
    if (slurmd < 0 || waitpid(slurmd, &status, 0) < 0)
        return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* ---- the tests ---- */

static char place[] = "/tmp/uw-hooks-XXXXXX";
static char arg_socket[200], arg_gres[200], arg_times[200];
static char *args[] = {arg_socket, arg_times, arg_gres};
enum { N_ARGS = 3 };

static double now_s(void)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Calls a hook; what must hold whatever the daemon does. */
static void hook(const char *name, int (*call)(spank_t, int, char **))
{
    struct sigaction before, after;
    size_t fds = open_files();
    double began = now_s();

    (void)sigaction(SIGPIPE, NULL, &before);
    host.lines = 0;
    host.line[0] = '\0';
    int r = call(NULL, N_ARGS, args);
    double took = now_s() - began;
    (void)sigaction(SIGPIPE, NULL, &after);
    printf("# %s: %.1f ms; %s\n", name, took * 1e3, host.line);
    is_int(r, 0, "%s: the hook returns 0", name);
    ok(took < 5, "%s: … and soon", name); /* 50 ms on a machine at rest */
    ok(host.lines <= 1, "%s: … with %d lines in the log", name, host.lines);
    is_int((long)open_files(), (long)fds, "%s: … and leaves no descriptor", name);
    ok(before.sa_handler == after.sa_handler, "%s: … nor a signal's handler", name);
}

/* clang-format off */
static const struct { const char *name; enum manner manner; const char *answer, *line; } daemons[] = {
    {"a daemon", ANSWERS, "HTTP/1.1 201 Created\r\nContent-Length: 16\r\n\r\n{\"refused\":null}", ""},
    {"a refused cap", ANSWERS, "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{\"refused\":\"cap: no\"}", "cap: no"},
    {"an error", ANSWERS, "HTTP/1.1 409 Conflict\r\nContent-Length: 18\r\n\r\n{\"error\":\"GPU 0: x\"}", "GPU 0: x"},
    {"an error without a text", ANSWERS, "HTTP/1.1 500 x\r\nContent-Length: 0\r\n\r\n", "HTTP status 500"},
    {"half an answer", ANSWERS, "HTTP/1.1 200 OK\r\nContent-Le", ""},
    {"garbage", ANSWERS, "\x7f" "ELF\x02\x01\x01", "no answer of underwattd's"},
    {"an end at once", CLOSES, "", "no answer of underwattd's"},
    {"no answer", IS_MUTE, "", "no answer in time"},
    {"a byte at a time", DRIPS, "HTTP/1.1 200 OK\r\nX: y\r\n", "no answer in time"},
    {"too much", FLOODS, "", "Message too long"},
    {"nobody reads", NOT_READING, "", "no answer in time"},
};
/* clang-format on */

static void with_daemons(void)
{
    char path[100];

    (void)snprintf(path, sizeof path, "%s/node7/sock", place);
    for (size_t i = 0; i < n_elements(daemons); i++) {
        if (!start_server(path, daemons[i].manner, daemons[i].answer))
            return;
        hook(daemons[i].name, slurm_spank_job_prolog);
        const char *line = strstr(host.line, daemons[i].line);
        /* A busy machine may be late for any answer. */
        ok((line && (*daemons[i].line || !host.lines)) ||
               strstr(host.line, "no answer in time"),
           "%s: … and says: %s", daemons[i].name, daemons[i].line);
        hook(daemons[i].name, slurm_spank_job_epilog);
        stop_server();
    }
    hook("nobody listens", slurm_spank_job_prolog);
    ok(strstr(host.line, "Connection refused") != NULL, "… and says so");
    (void)unlink(path);
    hook("no socket", slurm_spank_job_prolog);
    ok(strstr(host.line, "No such file or directory") != NULL, "… and says so");
}

/* The daemon repeats why the job's GPUs are not known: that is one reason. */
static void says_it_once(void)
{
    static const char why[] = "is no list of indices";
    char path[100];

    (void)snprintf(path, sizeof path, "%s/node7/sock", place);
    if (!start_server(path, ANSWERS,
                      "HTTP/1.1 201 Created\r\nContent-Length: 62\r\n\r\n"
                      "{\"refused\":\"GPUs: SLURM_JOB_GPUS=0;1 is no list of "
                      "indices\"} "))
        return;
    (void)setenv("SLURM_JOB_GPUS", "0;1", 1);
    hook("GPUs that are not known", slurm_spank_job_prolog);
    const char *first = strstr(host.line, why);
    ok(strstr(host.line, "in time") || (first && !strstr(first + 1, why)),
       "… and says it once");
    stop_server();
}

/* A process that was kept from a CPU until the deadline. */
static void late(void)
{
    static const char ask[] = "DELETE /v1/jobs/slurm:1 HTTP/1.1\r\n\r\n";
    char path[100], answer[MESSAGE_KEPT];

    (void)snprintf(path, sizeof path, "%s/node7/sock", place);
    if (!start_server(path, ANSWERS, daemons[0].answer))
        return;
    int r = client_ask(path, ask, sizeof ask - 1, 1, answer);
    ok(r > 0 || r == -ETIMEDOUT, "a late request may have an answer still: %d", r);
    for (int t = 0; t < 600 && !*server.asked; t++)
        pause_ms(100);
    is_str(server.asked, ask, "a late request is sent");
    stop_server();
    for (size_t i = 0; i < n_elements(daemons); i++) {
        if (*daemons[i].line == '\0' || daemons[i].manner == ANSWERS)
            continue;
        if (!start_server(path, daemons[i].manner, daemons[i].answer))
            return;
        double began = now_s();
        r = client_ask(path, ask, sizeof ask - 1, 1, answer);
        printf("# %s: %d in %.1f ms\n", daemons[i].name, r, (now_s() - began) * 1e3);
        ok(r <= 0 && now_s() - began < 5, "%s: a late request ends", daemons[i].name);
        stop_server();
    }
    (void)unlink(path);
}

/* What the daemon is asked. */
static void requests(void)
{
    char path[100];

    (void)snprintf(path, sizeof path, "%s/node7/sock", place);
    if (!start_server(path, ANSWERS, daemons[0].answer))
        return;
    static const struct {
        const char *name, *gpus, *cap, *goal, *cls, *want, *line;
    } cases[] = {
        {"a cap", "1", "250", NULL, NULL,
         "{\"uid\":1000,\"gpu_minors\":[5],\"labels\":{\"slurm.partition\":\"gpu\"},"
         "\"cap\":\"250 W\"}",
         ""},
        {"a goal before the environment's cap, a class, ranges", "0-1", "250", "edp",
         "mine",
         "{\"uid\":1000,\"gpu_minors\":[3,5],\"labels\":{\"slurm.partition\":\"gpu\"},"
         "\"goal\":\"edp\",\"class\":\"mine\"}",
         ""},
        {"a forged cap", "0", "abc", NULL, NULL,
         "{\"uid\":1000,\"gpu_minors\":[3],\"labels\":{\"slurm.partition\":\"gpu\"}}",
         "'abc' is none of"},
        {"a cap that forges a line of the log", "0", "9\n[date] x\xff", NULL, NULL,
         "{\"uid\":1000,\"gpu_minors\":[3],\"labels\":{\"slurm.partition\":\"gpu\"}}",
         "'9?[date] x?' is none of"},
        {"no GPU", "", "250", NULL, NULL,
         "{\"uid\":1000,\"gpu_minors\":[],\"labels\":{\"slurm.partition\":\"gpu\"},"
         "\"cap\":\"250 W\"}",
         ""},
        {"a GPU that gres.conf does not have", "0,2", "250", NULL, NULL,
         "{\"uid\":1000,\"gpu_minors\":[],\"labels\":{\"slurm.partition\":\"gpu\"},"
         "\"unknown_gpus\":\"/", /* the path of gres.conf, and why */
         ": 2 GPUs for this node"},
        {"a list that is none", "0;1", "250", NULL, NULL,
         "{\"uid\":1000,\"gpu_minors\":[],\"labels\":{\"slurm.partition\":\"gpu\"},"
         "\"unknown_gpus\":\"SLURM_JOB_GPUS=0;1 is no list of indices\"}",
         "is no list of indices"},
        {"nothing to say", "", NULL, NULL, NULL, "", ""},
    };
    for (size_t i = 0; i < n_elements(cases); i++) {
        server.asked[0] = '\0';
        (void)setenv("SLURM_JOB_GPUS", cases[i].gpus, 1);
        host.option[OPTION_CAP] = cases[i].cap;
        host.option[OPTION_GOAL] = cases[i].goal;
        host.option[OPTION_CLASS] = cases[i].cls;
        hook(cases[i].name, slurm_spank_job_prolog);
        for (int t = 0; t < 600 && strstr(host.line, "no answer in time"); t++) {
            if (strstr(server.asked, "}}") || strstr(server.asked, "\"}"))
                break; /* a busy machine: read later */
            pause_ms(100);
        }
        char *body = strstr(server.asked, "\r\n\r\n");
        size_t n = strlen(cases[i].want);
        if (body && n > 0 && cases[i].want[n - 1] == '/' && strlen(body + 4) > n &&
            ok(strstr(body, "GPUs for this node") != NULL, "the reason is there"))
            body[4 + n] = '\0';
        is_str(body ? body + 4 : "", cases[i].want, cases[i].name);
        ok(strstr(host.line, cases[i].line) != NULL, "… and says: %s", cases[i].line);
    }
    stop_server();
}

/* Which files were changed after slurmd started. */
/* clang-format off */
static const struct age { const char *name, *text; bool argument; const char *young[2], *says; } ages[] = {
    {"no file is young", "Name=gpu File=/dev/null\n", false, {0}, "[3]"},
    {"gres.conf is young", "Name=gpu File=/dev/null\n", false, {"gres.conf"}, "/gres.conf was changed after slurmd started"},
    {"slurm.conf is young, and not needed", "Name=gpu File=/dev/null\n", false, {"slurm.conf"}, "[3]"},
    {"two types", "Name=gpu Type=a File=/dev/null\nName=gpu Type=b File=/dev/zero\n", false, {0}, "[5]"},
    {"two types, slurm.conf is young", "Name=gpu Type=a File=/dev/null\nName=gpu Type=b File=/dev/zero\n", false, {"slurm.conf"},
     "/slurm.conf was changed after slurmd started"},
    {"the argument's file is young", "AutoDetect=nvml\n", true, {"order"}, "[5]"},
    {"slurm.conf alone is", "AutoDetect=nvml\n", true, {"slurm.conf"}, "[5]"},
    {"both are", "AutoDetect=nvml\n", true, {"order", "slurm.conf"}, "/slurm.conf was changed after slurmd started"},
    {"gres.conf is, which is not the argument's", "AutoDetect=nvml\n", true, {"gres.conf"}, "/gres.conf was changed after slurmd started"},
    {"no gres.conf but the argument's", NULL, true, {0}, "[5]"},
    {"no gres.conf but the argument's young one", NULL, true, {"order"}, "/order was changed after slurmd started"},
};
/* clang-format on */

static void write_file(const char *name, const char *text)
{
    char path[100];

    (void)snprintf(path, sizeof path, "%s/%s", place, name);
    (void)unlink(path);
    FILE *f = text ? fopen(path, "we") : NULL;
    if (f) {
        (void)fputs(text, f);
        (void)fclose(f);
    }
}

static int aged(const void *arg)
{
    const struct age *a = arg;
    char path[100];

    for (size_t i = 0; i < n_elements(a->young) && a->young[i]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", place, a->young[i]);
        if (utimensat(AT_FDCWD, path, NULL, 0) < 0)
            return 1;
    }
    (void)snprintf(arg_gres, sizeof arg_gres, "gres=%s/order", place);
    return slurm_spank_job_prolog(NULL, a->argument ? N_ARGS : N_ARGS - 1, args);
}

static void files_ages(void)
{
    char path[100];

    (void)snprintf(path, sizeof path, "%s/node7/sock", place);
    (void)setenv("SLURM_JOB_GPUS", "0", 1);
    host.option[OPTION_CAP] = "250";
    write_file("slurm.conf", "NodeName=node7 Gres=gpu:b:1,gpu:a:1\n");
    write_file("order", "Name=gpu File=/dev/zero\n");
    for (size_t i = 0; i < n_elements(ages); i++) {
        write_file("gres.conf", ages[i].text);
        if (!start_server(path, ANSWERS, daemons[0].answer))
            return;
        is_int(as_slurmd(aged, &ages[i]), 0, "%s: the hook returns 0", ages[i].name);
        for (int t = 0;
             t < 600 && !strstr(server.asked, "}}") && !strstr(server.asked, "\"}"); t++)
            pause_ms(100); /* a busy machine: read later */
        bool boards = ages[i].says[0] == '[';
        ok(strstr(server.asked, ages[i].says) &&
               (boards || strstr(server.asked, "\"gpu_minors\":[],")) &&
               boards == (strstr(server.asked, "\"cap\":") != NULL),
           "%s: '%s' has %s", ages[i].name, server.asked, ages[i].says);
        stop_server();
    }
    write_file("slurm.conf", NULL);
    write_file("order", NULL);
}

static void write_gres(void)
{
    char path[100], dev[2][100];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/node7", place);
    (void)mkdir(path, 0700);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(dev[i], sizeof dev[i], "%s/dev%d", place, i);
        /* The minor numbers of /dev/null and /dev/zero. */
        ok(symlink(i ? "/dev/zero" : "/dev/null", dev[i]) == 0, "a device file");
    }
    (void)snprintf(path, sizeof path, "%s/gres.conf", place);
    f = fopen(path, "we");
    if (f) {
        (void)fprintf(f, "Name=gpu File=%s\nNodeName=node[1-9] Name=gpu File=%s\n",
                      dev[0], dev[1]);
        (void)fclose(f);
    }
}

/* In a process that was called so: 1 where the variable is said not to count. */
static int as_called(void)
{
    host.context = S_CTX_ALLOCATOR;
    host.lines = 0;
    (void)slurm_spank_init(NULL, 0, NULL);
    bool handed = getenv("SLURM_SPANK__SLURM_SPANK_OPTION_underwatt_gpu_power_cap");
    return !handed && host.lines == 1 &&
           strstr(host.line, "underwatt: SLURM_GPU_POWER_CAP does not count") &&
           strstr(host.line, "'junk' is none of");
}

static int called(const char *cap, const char *option)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        (void)setenv("SLURM_GPU_POWER_CAP", cap, 1);
        (void)execl("/proc/self/exe", "srun", option, (char *)NULL);
        _exit(9);
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 9;
}

static void submissions(void)
{
    static const struct {
        int which;
        const char *value;
        int r;
        const char *line;
    } cases[] = {
        {OPTION_CAP, "abc", -1, "underwatt: SLURM_GPU_POWER_CAP: 'abc' is none of"},
        {OPTION_GOAL, "faster", -1,
         "underwatt: --gpu-power-goal: goal 'faster' is none of"},
        {OPTION_CLASS, "", -1, "underwatt: --gpu-power-class: class ''"},
        {OPTION_CLASS, "mine", 0, ""},
        {OPTION_CAP, "200", 0, ""}, /* the environment's … */
        {OPTION_CAP, "abc", -1, "underwatt: --gpu-power-cap: 'abc' is none of"},
        {OPTION_CAP, NULL, -1, "underwatt: --gpu-power-cap: '' is none of"},
        {OPTION_GOAL, "edp", 0, ""},
        {OPTION_CAP, "250", -1,
         "--gpu-power-cap or --gpu-power-goal, not both"}, /* … not */
    };

    (void)setenv("SLURM_GPU_POWER_CAP", "200", 1);
    host.context = S_CTX_ALLOCATOR;
    is_int(slurm_spank_init(NULL, N_ARGS, args), 0, "sbatch loads the plugin");
    is_int(host.registered, OPTIONS, "all options are registered");
    const char *given = getenv("SLURM_SPANK__SLURM_SPANK_OPTION_underwatt_gpu_power_cap");
    is_str(given ? given : "", "200", "the environment's cap is handed to Slurm");
    for (size_t i = 0; i < n_elements(cases); i++) {
        host.line[0] = '\0';
        is_int(submission_option(cases[i].which, cases[i].value, 0), cases[i].r, "%s=%s",
               context_option[cases[i].which].name,
               cases[i].value ? cases[i].value : "(none)");
        ok(strncmp(host.line, "underwatt: ", 11) == 0 || !*cases[i].line, "… says who");
        ok(strstr(host.line, cases[i].line) != NULL, "… says: %s", host.line);
    }
    is_int(submission_option(OPTION_CAP, "abc", 1), 0,
           "slurmstepd is not the place to check");
    host.context = S_CTX_REMOTE;
    is_int(slurm_spank_init(NULL, N_ARGS, args), 0, "slurmstepd loads it, too");
    is_int(host.registered, 2 * OPTIONS, "… and knows the options");
    static char odd[] = "sokcet=/x";
    char *odd_args[] = {odd};
    host.context = S_CTX_SLURMD;
    host.lines = 0;
    is_int(slurm_spank_init(NULL, 1, odd_args), 0, "slurmd takes an odd argument");
    ok(host.lines == 1 && strstr(host.line, "'sokcet=/x' is none of"),
       "… and says so: %s", host.line);
    host.context = S_CTX_ALLOCATOR;
    host.lines = 0;
    is_int(slurm_spank_init(NULL, 1, odd_args), 0, "so does salloc");
    is_int(host.lines, 0, "… and says nothing to who uses no option");
    for (int i = 0; i < 2; i++)
        is_int(submission_option(OPTION_CLASS, "mine", 0), 0, "an option");
    ok(host.lines == 1 && strstr(host.line, "plugstack.conf: 'sokcet=/x' is none of"),
       "… brings one line: %s", host.line);
    is_int(slurm_spank_init_post_opt(NULL, N_ARGS, args), 0, "all options are read");
    ok(!host.control, "… no cap goes before a goal");
    (void)setenv("SLURM_JOB_ID", "4711", 1);
    (void)setenv("SLURM_SPANK_UNDERWATT_CAP_FIRST", "yes", 1);
    host.context = S_CTX_LOCAL;
    is_int(slurm_spank_init(NULL, N_ARGS, args), 0, "a step of a job whose cap does");
    is_int(slurm_spank_init_post_opt(NULL, N_ARGS, args), 0, "… has read all");
    ok(host.control, "… and tells the prologs of its nodes");
    (void)unsetenv("SLURM_JOB_ID");
    (void)unsetenv("SLURM_SPANK_UNDERWATT_CAP_FIRST");
    host.context = S_CTX_ALLOCATOR;
    is_int(called("junk", "--gpu-power-goal=edp"), 1, "a wrong default beside a goal");
    is_int(called("junk", "--gpu-power-cap"), 1, "… beside a cap");
    is_int(called("junk", "--gpu-power-class=a"), 0, "… beside a class is refused");
    is_int(called("200", "--gpu-power-goal=edp"), 0, "a right one is handed on");
}

static int with_slurmd(const void *none)
{
    char command[200];
    struct stat st;
    (void)none;

    submissions();
    host.context = S_CTX_JOB_SCRIPT;
    with_daemons();
    says_it_once();
    late();
    requests();
    files_ages();
    (void)snprintf(command, sizeof command, "%s/times", place);
    ok(stat(command, &st) == 0 && st.st_size > 200, "the hooks' own times were written");
    static const char *const made[] = {"times", "gres.conf",  "dev0",
                                       "dev1",  "node7/sock", "node7"};
    for (size_t i = 0; i < n_elements(made); i++) {
        (void)snprintf(command, sizeof command, "%s/%s", place, made[i]);
        (void)remove(command);
    }
    is_int(rmdir(place), 0, "no other file was written");
    return done();
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        return as_called();
    char conf[100];

    server.asked =
        mmap(NULL, ASKED_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (server.asked == MAP_FAILED || !mkdtemp(place))
        return 1;
    (void)snprintf(arg_socket, sizeof arg_socket, "socket=%s/%%n/sock", place);
    (void)snprintf(arg_gres, sizeof arg_gres, "gres=%s/gres.conf", place);
    (void)snprintf(arg_times, sizeof arg_times, "times=%s/times", place);
    (void)setenv("SLURMD_NODENAME", "node7", 1);
    (void)setenv("SLURM_JOB_GPUS", "0", 1);
    (void)setenv("SLURM_JOB_PARTITION", "gpu", 1);
    (void)snprintf(conf, sizeof conf, "%s/slurm.conf", place);
    (void)setenv("SLURM_CONF", conf, 1);
    write_gres();
    return as_slurmd(with_slurmd, NULL);
}
