#include "cli/doctor-daemon.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "cli/daemon.h"
#include "cli/take.h"

static int read_board(struct httpc *c, const struct json_value *board,
                      struct doctor_daemon *ret)
{
    auto_(json_free) struct json *doc = NULL;
    const struct json_value *cap = json_get(board, "cap");
    const char *state = take_text(cap, "state");
    char path[160];

    ret->yielded += strcmp(state, "yielded") == 0;
    ret->lost += strcmp(state, "lost") == 0 && !*take_text(cap, "holder");
    ret->denied += strcmp(state, "denied") == 0;
    (void)snprintf(path, sizeof path, "/v1/gpus/%s/explain", take_text(board, "uuid"));
    int r = httpc_ask(c, "GET", path, NULL, &doc, &ret->error);
    const struct json_value *others = json_get(json_root(doc), "other_writers");
    for (unsigned i = 0; r == 0 && i < CAPS_CAUSES; i++)
        ret->changes[i] += take_u64(others, names_word(NAMES_CAP_CAUSE, i));
    return r;
}

static int read_boards(struct httpc *c, struct doctor_daemon *ret)
{
    auto_(json_free) struct json *doc = NULL;

    int r = httpc_ask(c, "GET", "/v1/gpus", NULL, &doc, &ret->error);
    if (r < 0)
        return r;
    const struct json_value *list = json_get(json_root(doc), "gpus");
    for (size_t i = 0; r == 0 && i < json_count(list); i++)
        r = read_board(c, json_at(list, i), ret);
    return r;
}

static void read_ledger(const struct json_value *v, struct doctor_daemon *ret)
{
    ret->ledger_failures = take_u64(v, "failures");
    /* Older daemons do not report "up". */
    ret->ledger_down = json_get(v, "up") && !take_bool(v, "up");
    ret->ledger_waiting = take_u64(v, "waiting");
    ret->ledger_lost = take_u64(v, "lost");
    int trouble = names_number(NAMES_LEDGER_TROUBLE, take_text(v, "reason"));
    ret->ledger_trouble = trouble > 0 ? (enum ledger_trouble)trouble : LEDGER_HAS_FAILED;
    take_copy(v, "why", ret->ledger_why, sizeof ret->ledger_why);
}

static void read_config(const struct json_value *v, struct doctor_daemon *ret)
{
    const struct json_value *config = json_get(v, "config"), *p = json_get(v, "policy");

    ret->config_failures = take_u64(config, "failures");
    ret->tells_config = json_get(config, "error") != NULL;
    take_copy(config, "error", ret->config_error, sizeof ret->config_error);
    take_copy(p, "file", ret->policy_file, sizeof ret->policy_file);
    take_copy(p, "error", ret->policy_error, sizeof ret->policy_error);
    ret->has_policy = take_bool(p, "in_force");
}

void doctor_daemon_ask(const struct cli_env *env, const char *boards,
                       struct doctor_daemon *ret)
{
    auto_(httpc_free) struct httpc *c = NULL;
    auto_(json_free) struct json *doc = NULL;

    *ret = (struct doctor_daemon){.asked = true};
    ret->r = daemon_open(env, boards, &c, &ret->error);
    if (ret->r != 0)
        return;
    ret->r = httpc_ask(c, "GET", "/v1/node", NULL, &doc, &ret->error);
    if (ret->r < 0)
        return;
    const struct json_value *v = json_root(doc), *act = json_get(v, "actuator");
    const struct json_value *you = json_get(v, "you");
    ret->dry_run = take_bool(v, "dry_run");
    ret->actuator_up = take_bool(act, "up");
    take_copy(act, "why", ret->why, sizeof ret->why);
    take_copy(v, "version", ret->version, sizeof ret->version);
    take_copy(you, "name", ret->you, sizeof ret->you);
    ret->may_claim = take_bool(you, "may_claim");
    ret->admin = take_bool(you, "admin");
    ret->boards = take_u64(v, "gpus");
    ret->jobs = take_u64(v, "jobs");
    ret->over_budget = take_budget(v, ret->budget, sizeof ret->budget);
    read_config(v, ret);
    read_ledger(json_get(v, "ledger"), ret);
    ret->r = read_boards(c, ret);
}

static void judge_absent(const struct doctor_daemon *d, struct findings *ret)
{
    if (d->r == DAEMON_ABSENT) {
        finding_add(ret, "daemon", FINDING_NOTE,
                    "%s: commands work by themselves, without jobs, ledger and metrics",
                    d->error.text);
        finding_remedy(ret, "%s",
                       d->start[0] ? d->start
                                   : "sudo systemctl enable --now underwattd; without "
                                     "systemd: underwatt-start");
    } else if (d->r == -EACCES) {
        finding_add(ret, "daemon", FINDING_BAD, "%s", d->error.text);
        finding_remedy(ret, "this user may not use its socket: see api.socket in "
                            "underwattd.yaml(5)");
    } else {
        finding_add(ret, "daemon", FINDING_BAD, "%s", d->error.text);
        finding_remedy(ret, "journalctl -u underwattd; sudo systemctl restart underwattd "
                            "(caps and jobs are taken over)");
    }
}

static void judge_rights(const struct doctor_daemon *d, struct findings *ret)
{
    if (!d->actuator_up) {
        finding_add(ret, "actuator", FINDING_BAD, "the daemon cannot set caps: %s",
                    d->why[0] ? d->why : "no actuator");
        finding_remedy(ret, "sudo systemctl enable --now underwatt-actuator.socket; "
                            "journalctl -u underwatt-actuator");
    } else if (d->denied > 0) {
        finding_add(ret, "actuator", FINDING_BAD, "%u board%s may not be capped",
                    d->denied, d->denied == 1 ? "" : "s");
        finding_remedy(ret,
                       "underwatt explain GPU says why; see underwatt-actuator.yaml(5)");
    } else {
        finding_add(ret, "actuator", FINDING_OK, "answers the daemon%s",
                    d->dry_run ? "; dry run: nothing is written" : "");
    }
    if (d->lost > 0) {
        finding_add(ret, "boards", FINDING_BAD, "the daemon has lost %u board%s", d->lost,
                    d->lost == 1 ? "" : "s");
        finding_remedy(ret, "underwatt explain GPU says why; a board that hangs needs a "
                            "reset: underwatt-release(1)");
    }
}

static void judge_budget(const struct doctor_daemon *d, struct findings *ret)
{
    if (!d->budget[0])
        return;
    finding_add(ret, "budget", d->over_budget ? FINDING_BAD : FINDING_OK, "%s",
                d->budget);
    if (d->over_budget)
        finding_remedy(ret, "underwatt explain GPU says why a board is not lowered");
}

/* Other programs that set limits, as the daemon counted them. */
static void judge_writers(const struct doctor_daemon *d, struct findings *ret)
{
    static const struct {
        enum finding_state state;
        const char *what, *remedy;
    } by[CAPS_CAUSES] = {
        [CAPS_CAUSE_OTHER] = {FINDING_WARN, "by another program",
                              "stop the other writer (nvidia-smi in a timer, DCGM's "
                              "configuration), or set "
                              "caps.other_writers to reassert"},
        [CAPS_CAUSE_DRIVER] = {FINDING_NOTE, "by a driver reload",
                               "keep the driver loaded: nvidia-persistenced"},
        [CAPS_CAUSE_PERSISTENCE] = {FINDING_WARN, "because persistence mode is off",
                                    "sudo nvidia-smi -pm 1, or run "
                                    "nvidia-persistenced"},
        [CAPS_CAUSE_THERMAL] = {FINDING_WARN, "by heat", "check the cooling"},
        [CAPS_CAUSE_BOARD] = {FINDING_WARN, "by the board's management",
                              "a management controller or a power brake limits the "
                              "board: ask who runs it"},
    };

    for (size_t i = 0; i < CAPS_CAUSES; i++) {
        if (d->changes[i] == 0)
            continue;
        finding_add(ret, "writers", by[i].state, "limits were changed %llu time%s %s",
                    (unsigned long long)d->changes[i], d->changes[i] == 1 ? "" : "s",
                    by[i].what);
        finding_remedy(ret, "%s", by[i].remedy);
    }
    if (d->yielded > 0)
        finding_add(ret, "writers", FINDING_WARN,
                    "%u board%s left to another program's limit", d->yielded,
                    d->yielded == 1 ? " is" : "s are");
}

/* A remedy, by the state of the ledger that the daemon reports. */
static const char *ledger_remedy(enum ledger_trouble trouble)
{
    static const char *const by[] = {
        [LEDGER_IS_FULL] =
            "free disk space: df -h /var/lib/underwatt; the daemon tries again",
        [LEDGER_IS_NEWER] = ("install that underwattd again, or move the file away: the "
                             "daemon begins a new one"),
        [LEDGER_NEEDS_RESTART] = "sudo systemctl restart underwattd",
        [LEDGER_IS_READ_ONLY] =
            "mount -o remount,rw its file system; the daemon tries again",
        [LEDGER_IS_TAKEN] =
            "sudo fuser -v /var/lib/underwatt/ledger.sqlite; end that process",
        [LEDGER_HAS_FAILED] =
            "ls -ld /var/lib/underwatt; ls -l /var/lib/underwatt; the daemon tries again",
    };

    return by[trouble];
}

static void judge_ledger(const struct doctor_daemon *d, struct findings *ret)
{
    if (d->ledger_down) {
        finding_add(ret, "ledger", FINDING_BAD,
                    "cannot be written: %s; caps and budget hold, %llu row%s wait in "
                    "memory, %llu lost",
                    d->ledger_why, (unsigned long long)d->ledger_waiting,
                    d->ledger_waiting == 1 ? "" : "s",
                    (unsigned long long)d->ledger_lost);
        finding_remedy(ret, "%s", ledger_remedy(d->ledger_trouble));
    } else if (d->ledger_lost > 0) {
        finding_add(ret, "ledger", FINDING_BAD,
                    "is written, but %llu row%s lost since the daemon started",
                    (unsigned long long)d->ledger_lost,
                    d->ledger_lost == 1 ? " was" : "s were");
        finding_remedy(ret, "journalctl -u underwattd shows when");
    } else if (d->ledger_failures > 0) {
        finding_add(
            ret, "ledger", FINDING_BAD,
            "%llu write%s to the ledger failed; it is written again, no row is lost",
            (unsigned long long)d->ledger_failures, d->ledger_failures == 1 ? "" : "s");
        finding_remedy(ret, "df -h /var/lib/underwatt; journalctl -u underwattd");
    }
}

static void judge_config(const struct doctor_daemon *d, struct findings *ret)
{
    if (d->tells_config && d->config_error[0] &&
        strcmp(d->config_error, d->policy_error) != 0)
        finding_add(ret, "config", FINDING_WARN,
                    "the last reload was refused, the old configuration is in force: %s",
                    d->config_error);
    else if (!d->tells_config && d->config_failures > 0)
        finding_add(
            ret, "config", FINDING_WARN,
            "%llu configuration%s refused since it started; the old one is in force",
            (unsigned long long)d->config_failures,
            d->config_failures == 1 ? " was" : "s were");
    else
        return;
    finding_remedy(ret, "underwattd --check " UNDERWATT_ETC
                        "/underwattd.yaml; sudo systemctl reload underwattd");
}

static void judge_policy(const struct doctor_daemon *d, struct findings *ret)
{
    if (!d->policy_error[0])
        return;
    finding_add(ret, "policy", d->has_policy ? FINDING_WARN : FINDING_BAD,
                "the file was refused, %s: %s",
                d->has_policy ? "the earlier policy is in force"
                              : "no policy is in force",
                d->policy_error);
    finding_remedy(ret,
                   "correct that line; sudo underwatt policy check %s; sudo systemctl "
                   "reload underwattd",
                   d->policy_file);
}

void doctor_daemon_judge(const struct doctor_daemon *d, const char *version,
                         struct findings *ret)
{
    if (!d->asked)
        return;
    if (d->r != 0) {
        judge_absent(d, ret);
        return;
    }
    finding_add(ret, "daemon", FINDING_OK,
                "underwattd %s: %llu board%s, %llu job%s; you are %s%s", d->version,
                (unsigned long long)d->boards, d->boards == 1 ? "" : "s",
                (unsigned long long)d->jobs, d->jobs == 1 ? "" : "s", d->you,
                d->admin       ? " (administrator)"
                : d->may_claim ? ""
                               : " (read only)");
    if (strcmp(d->version, version) != 0) {
        finding_add(ret, "daemon", FINDING_WARN,
                    "the daemon is version %s, this command is version %s", d->version,
                    version);
        finding_remedy(ret, "sudo systemctl restart underwattd (caps and jobs are taken "
                            "over)");
    }
    judge_rights(d, ret);
    judge_budget(d, ret);
    judge_writers(d, ret);
    judge_config(d, ret);
    judge_policy(d, ret);
    judge_ledger(d, ret);
}
