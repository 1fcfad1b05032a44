/* `underwatt keep`: a node in this process, for a program that has its own search on a
 * machine without a daemon.  Holds the program's boards until standard input closes,
 * however the program ended, and then restores their limits.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "board/selection.h"
#include "cli/cli-loop.h"
#include "cli/daemon.h"
#include "cli/options.h"
#include "cli/own-hold.h"
#include "cli/own-place.h"
#include "io/json.h"
#include "jobs/page-socket.h"

struct keep {
    const struct cli_env *env;
    const char *boards, *gpus;
    bool more;
    struct loop *loop;
    struct loop_fd *pipe;
    struct cli_signals signals;
    struct own_setup setup;
    struct own_node *own;
    struct page_socket *pages;
    bool over; /* the pipe is closed, or a signal came */
    bool hurried;
};

/* ---- the end ---- */

static void end(struct keep *k)
{
    k->hurried = k->over;
    k->over = true;
    loop_stop(k->loop, 0);
}

/* The data that the program writes is ignored. */
static int on_pipe(struct loop_fd *source, int fd, int events, void *user)
{
    struct keep *k = user;
    char bytes[256];
    (void)source;
    (void)events;

    ssize_t n = read(fd, bytes, sizeof bytes);
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return 0;
    loop_fd_free(take(k->pipe));
    (void)close(fd); /* later writers of a named pipe get an error */
    (void)open("/dev/null", O_RDONLY | O_CLOEXEC);
    end(k);
    return 0;
}

static int on_signal(struct loop_signal *source, int signo, void *user)
{
    (void)source;
    (void)signo;

    end(user);
    return 0;
}

static int listen_to_end(struct keep *k, uw_error *err)
{
    int r = cli_signals_new(k->loop, CLI_SIGNALS, on_signal, k, &k->signals, err);

    if (r == 0)
        r = loop_fd_new(k->loop, STDIN_FILENO, LOOP_READ, on_pipe, k, &k->pipe, err);
    if (r == -EPERM)
        return fail(
            err, -EINVAL,
            "standard input is a file: it must be a pipe, at whose end the limits "
            "come back");
    return r;
}

/* ---- the node ---- */

/* Refuses beside a daemon: two writers would overwrite each other's limits. */
static int refuse_daemon(const struct keep *k, uw_error *err)
{
    auto_(httpc_free) struct httpc *daemon = NULL;
    struct daemon_address at;

    int r = daemon_open(k->env, k->boards, &daemon, err);
    if (r < 0)
        return r;
    if (r == DAEMON_ABSENT)
        return 0;
    r = daemon_address(k->env->socket, k->boards, &at, err);
    return r < 0 ? r
                 : fail(err, -EEXIST, "a daemon runs (%s) and sets the limits: ask it",
                        at.socket);
}

static int on_page(uint64_t job, uid_t uid, int fd, uw_error *err, void *user)
{
    struct keep *k = user;

    if (uid == geteuid() || uid == 0)
        return own_node_page(k->own, job, fd, err);
    (void)close(fd);
    return fail(err, -EPERM, "this node is another user's");
}

static int on_take(uint64_t job, uid_t uid, uw_error *err, void *user)
{
    const struct keep *k = user;

    return own_node_page_of(k->own, uid, job, err);
}

static int open_node(struct keep *k, char *path, size_t size, uw_error *err)
{
    char dir[OWN_PLACE_PATH], pages[OWN_PLACE_PATH + 16];

    own_setup(k->env, k->boards, k->loop, &k->setup);
    int r = own_place_folder(&k->setup.place, dir, sizeof dir, err);
    if (r < 0)
        return r;
    (void)snprintf(path, size, "%s/" OWN_PLACE_NODE, dir);
    (void)snprintf(pages, sizeof pages, "%s/" OWN_PLACE_JOB, dir);
    k->setup.own.socket = path;
    k->setup.own.only = k->more ? NULL : k->gpus;
    k->setup.own.visible = k->more ? NULL : &k->env->visible;
    k->setup.own.runs_job = true;
    r = own_node_new(&k->setup.own, &k->own, err);
    const struct page_socket_opts opts = {on_page, on_take, k};
    return r < 0 ? r : page_socket_new(k->loop, pages, &opts, &k->pages, err);
}

/* ---- its boards ---- */

/* The boards to hold: the named ones; without names, with *ret_open, all that can be
 * capped.
 */
static int choose(const struct keep *k, bool use[BOARDS_MAX], bool *ret_open,
                  uw_error *err)
{
    struct boards *set = own_node_boards(k->own);
    int r = set ? selection_named(set, k->gpus, &k->env->visible, use, err)
                : fail(err, -ENODEV, "no boards here");

    *ret_open = r == SELECTION_E_OPEN;
    for (size_t i = 0; *ret_open && i < boards_count(set); i++)
        use[i] = true;
    return r < 0 ? r : 0;
}

static unsigned index_of(const struct keep *k, size_t i)
{
    return board_view(boards_at(own_node_boards(k->own), i))->info->index;
}

static int hold_one(struct keep *k, size_t i, uint64_t until, uw_error *err)
{
    int r =
        own_hold_claim(k->own, i, "kept for a program, at the limit found", NULL, err);

    if (r < 0)
        return fail_in(err, r, "GPU %u", index_of(k, i));
    while (r >= 0 && !k->over && loop_now_ns(k->loop) < until) {
        r = own_hold_is(k->own, i, err);
        if (r == 1)
            return 0;
        if (r == 0)
            own_node_wait(k->own, until);
    }
    if (r < 0)
        return r;
    return k->over ? -EINTR : own_hold_late(k->own, i, err);
}

static int hold(struct keep *k, uw_error *err)
{
    bool use[BOARDS_MAX] = {false}, open = false;
    unsigned n_held = 0;
    int r = own_node_actuator(k->own, err);

    if (r >= 0)
        r = choose(k, use, &open, err);
    uint64_t until = loop_now_ns(k->loop) + cli_wall_ns(k->loop, OWN_HOLD_MS);
    for (size_t i = 0; r >= 0 && i < boards_count(own_node_boards(k->own)); i++) {
        if (!use[i])
            continue;
        r = hold_one(k, i, until, err);
        n_held += r == 0;
        if (r == -ENOTSUP && open)
            r = 0;
    }
    if (r < 0)
        return r;
    return n_held > 0 ? 0 : fail(err, -ENOTSUP, "no board here can be capped");
}

static int on_back(struct node *node, void *user)
{
    struct keep *k = user;
    (void)node;

    loop_stop(k->loop, 0);
    return 0;
}

/* Waits until the limits are restored, unless a signal ends the wait. */
static void let_go(struct keep *k)
{
    if (k->own && node_end(own_node_node(k->own), on_back, k) == 0 && !k->hurried)
        (void)loop_run(k->loop, NULL);
}

/* ---- the whole command ---- */

/* Writes one line of JSON: the socket, or the error (r < 0). */
static int tell(const char *socket, int r, const uw_error *why, uw_error *err)
{
    auto_(json_out_free) struct json_out *o = json_out_new();

    json_out_object(o, NULL);
    if (r == 0)
        json_out_text(o, "socket", socket);
    else
        json_out_text(o, "error", why->text);
    if (r < 0)
        json_out_int(o, "errno", -r);
    json_out_end(o);
    return json_out_line(o, stdout, err);
}

/* Runs until the end; < 0: it could not begin, or was ended before. */
static int keep(struct keep *k, uw_error *err)
{
    char path[OWN_PLACE_PATH + 16];
    int r = refuse_daemon(k, err);

    if (r == 0)
        r = listen_to_end(k, err);
    if (r == 0)
        r = open_node(k, path, sizeof path, err);
    if (r == 0)
        r = hold(k, err);
    if (r == 0 && !k->over)
        r = tell(path, 0, NULL, err);
    while (r == 0 && !k->over)
        r = loop_run(k->loop, err);
    return r;
}

static void close_all(struct keep *k)
{
    let_go(k);
    page_socket_free(k->pages);
    own_node_free(k->own);
    own_place_remove_folder(&k->setup.place);
    loop_fd_free(k->pipe);
    cli_signals_free(&k->signals);
    loop_free(k->loop);
}

static int run(const struct cli_env *env, int argc, char **argv)
{
    struct keep k = {.env = env, .boards = env->boards};
    const struct opt opts[] = {OPT_GPUS(&k.gpus),
                               {"more", 0, NULL,
                                "open the other boards, too, for other processes of the "
                                "program",
                                opt_flag, &k.more},
                               OPT_BOARDS(&k.boards)};
    uw_error err = {""};

    int r = opts_parse(&cmd_keep, opts, n_elements(opts), argc, argv, NULL);
    if (r != OPTS_GO)
        return r;
    int flags = fcntl(STDIN_FILENO, F_GETFL);
    r = cli_loop_new(env, &k.loop, &err);
    if (r == 0)
        r = keep(&k, &err);
    bool over = k.over;
    close_all(&k);
    if (flags >= 0) /* it may be shared with a terminal */
        (void)fcntl(STDIN_FILENO, F_SETFL, flags);
    if (r == 0 || over)
        return EXIT_OK;
    (void)tell(NULL, r, &err, NULL);
    return cli_fail(cli_exit_of(r), "keep: %s", err.text);
}

const struct cmd cmd_keep = {
    "keep",
    "[--gpus LIST] [OPTIONS]",
    "Hold boards for a program that searches by itself, until standard input closes",
    run,
};
