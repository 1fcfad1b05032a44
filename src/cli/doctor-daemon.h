/* Findings about the node daemon.  Only doctor_daemon_ask() does I/O; the facts are
 * values.
 */
#ifndef CLI_DOCTOR_DAEMON_H
#define CLI_DOCTOR_DAEMON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/names.h"
#include "cli/cmd.h"
#include "cli/daemon.h"
#include "cli/findings.h"
#include "io/ledger.h"

struct doctor_daemon {
    bool asked;
    int r;          /* result of daemon_open() or of a later request */
    uw_error error; /* the text of that result */
    bool dry_run, actuator_up, may_claim, admin;
    char start[DAEMON_START_TEXT];       /* daemon_start_simulated() */
    char version[32], why[200], you[96]; /* why: the reason that no cap can be set */
    uint64_t config_failures, ledger_failures, boards, jobs;
    char budget[80]; /* of the node, and what counts; "": none */
    bool over_budget;
    bool tells_config;      /* older daemons do not: */
    char config_error[200]; /* of the last reload; "": it was not refused */
    char policy_file[200], policy_error[200]; /* "": the file was not refused */
    bool has_policy;
    bool ledger_down;
    enum ledger_trouble ledger_trouble; /* while it is down */
    char ledger_why[200];
    uint64_t ledger_waiting, ledger_lost; /* rows */
    uint64_t changes[CAPS_CAUSES];        /* from outside: other, driver, persistence,
                                           * thermal, board */
    unsigned yielded, lost, denied;       /* boards in these states */
};

void doctor_daemon_ask(const struct cli_env *env, const char *boards,
                       struct doctor_daemon *ret);
/* version: this command's own. */
void doctor_daemon_judge(const struct doctor_daemon *d, const char *version,
                         struct findings *ret);

#endif
