#include "cli/daemon.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/units.h"
#include "gpu/backends.h"
#include "io/answer.h"
#include "io/file.h"

enum { ANSWER_S = 3 };

int daemon_open(const struct cli_env *env, const char *boards, struct httpc **ret,
                uw_error *err)
{
    return daemon_open_within(env, boards, ANSWER_S * NS_PER_S, ret, err);
}

int daemon_open_within(const struct cli_env *env, const char *boards, uint64_t timeout_ns,
                       struct httpc **ret, uw_error *err)
{
    auto_(httpc_free) struct httpc *c = NULL;
    auto_(httpc_reply_fini) struct httpc_reply reply = {.body = NULL};
    struct daemon_address w;

    int r = daemon_address(env->socket, boards, &w, err);
    if (r < 0)
        return r;
    struct httpc_opts opts = {.socket = w.socket, .timeout_ns = timeout_ns};
    r = httpc_new(&opts, &c, err);
    if (r == 0)
        r = httpc_call(c, "GET", "/healthz", NULL, &reply, err);
    if (!w.named && (r == -ENOENT || r == -ECONNREFUSED))
        return DAEMON_ABSENT;
    if (r < 0)
        return r;
    if (reply.status >= 500 || reply.status == 404)
        return fail(err, -EPROTO, "the server at %s is not underwattd (status %u)",
                    w.socket, reply.status);
    *ret = take(c);
    return 0;
}

int daemon_ask(const struct cli_env *env, const char *boards, struct loop *loop,
               struct ask **ret, uw_error *err)
{
    struct httpc *client = NULL;
    int r = daemon_open(env, boards, &client, err);

    return r == 0 ? ask_http(loop, client, ret, err) : r;
}

static int write_body(const char *json, const struct httpc_reply *reply, uw_error *err)
{
    if (strcmp(json, "-") != 0)
        return file_write(json, reply->body, reply->len, FILE_MODE_UMASK, err);
    if (fwrite(reply->body, 1, reply->len, stdout) != reply->len)
        return fail(err, -EIO, "cannot write to stdout");
    return 0;
}

int daemon_get(struct httpc *c, const char *path, const char *json, struct json **ret,
               uw_error *err)
{
    auto_(httpc_reply_fini) struct httpc_reply reply = {.body = NULL};
    auto_(json_free) struct json *doc = NULL;

    int r = httpc_call(c, "GET", path, NULL, &reply, err);
    if (r < 0)
        return r;
    if (reply.status >= 300) /* queries again, for the error text of httpc_ask() */
        return httpc_ask(c, "GET", path, NULL, ret, err);
    r = answer_read(reply.body, reply.len, &doc, err);
    if (r == 0 && json)
        r = write_body(json, &reply, err);
    if (r == 0)
        *ret = take(doc);
    return r;
}

int daemon_write(const char *json, const struct json *doc, uw_error *err)
{
    auto_(mem_free) char *text = json_text(doc);

    if (!text)
        return fail(err, -ENOMEM, "out of memory");
    if (strcmp(json, "-") == 0)
        return puts(text) < 0 ? fail(err, -EIO, "cannot write to stdout") : 0;
    return file_write(json, text, strlen(text), FILE_MODE_UMASK, err);
}

bool daemon_is_board(const char *word)
{
    size_t n =
        strspn(word, "0123456789abcdefABCDEFGHIJKLMNOPQRSTUVWXYZghijklmnopqrstuvwxyz-");

    return n > 0 && n < 96 && word[n] == '\0';
}

const char *daemon_local_hint(int r)
{
    return r == -ETIMEDOUT || r == -ECONNREFUSED || r == -ECONNRESET || r == -EPIPE ||
                   r == -EPROTO
               ? " (--local runs without the daemon)"
               : "";
}

void daemon_start_simulated(const struct cli_env *env, const char *boards,
                            char ret[DAEMON_START_TEXT])
{
    struct gpu_about about = {.simulated = false};
    char ordinary[sizeof about.state_dir];

    ret[0] = '\0';
    if (gpu_boards_look(boards, &about, NULL) != 0 || !about.simulated)
        return;
    bool named = file_runtime_path(env->runtime_dir, "underwatt-sim", getuid(), ordinary,
                                   sizeof ordinary, NULL) == 0 &&
                 strcmp(about.state_dir, ordinary) != 0;
    if (about.recorded)
        (void)snprintf(ret, DAEMON_START_TEXT, "underwatt-start");
    else
        (void)snprintf(ret, DAEMON_START_TEXT,
                       "underwatt-sim%s%s exec -- underwatt-start",
                       named ? " --state " : "", named ? about.state_dir : "");
}

int daemon_failed(const struct cmd *cmd, const struct cli_env *env, const char *boards,
                  int r, const uw_error *err)
{
    char start[DAEMON_START_TEXT];

    daemon_start_simulated(env, boards, start);
    if (r == DAEMON_ABSENT)
        return cli_fail(EXIT_FAIL, "%s: %s; this command needs the daemon: %s", cmd->name,
                        err->text,
                        start[0] ? start
                                 : "systemctl start underwattd, or underwatt-start (see "
                                   "underwattd(8))");
    return cli_fail(cli_exit_of(r), "%s: %s", cmd->name, err->text);
}

int daemon_need_within(const struct cmd *cmd, const struct cli_env *env,
                       const char *boards, uint64_t timeout_ns, struct httpc **ret)
{
    uw_error err = {""};

    int r = timeout_ns ? daemon_open_within(env, boards, timeout_ns, ret, &err)
                       : daemon_open(env, boards, ret, &err);
    return r == 0 ? EXIT_OK : daemon_failed(cmd, env, boards, r, &err);
}
