/* What doctor says of the daemon: facts in, findings out. */
#include <errno.h>
#include <stdlib.h>

#include "base/auto.h"
#include "cli/daemon.h"
#include "cli/doctor-daemon.h"
#include "tap.h"

#define UP                                                                    \
    .asked = true, .actuator_up = true, .version = "1.0", .you = "user anna", \
    .may_claim = true

/* clang-format off */
static const struct {
    const char *name;
    struct doctor_daemon d;
    const char *what; enum finding_state state; /* this finding … */
    const char *text, *remedy;                  /* … with these words in it; NULL: none such */
} cases[] = {
    {"nobody answers", {.asked = true, .r = DAEMON_ABSENT, .error = {"no daemon at X"}},
     "daemon", FINDING_NOTE, "no daemon at X", "systemctl enable --now underwattd"},
    {"nobody answers on simulated boards", {.asked = true, .r = DAEMON_ABSENT, .start = "underwatt-sim --state /w exec -- underwatt-start", .error = {"no daemon at X"}},
     "daemon", FINDING_NOTE, "no daemon at X", "underwatt-sim --state /w exec -- underwatt-start"},
    {"it hangs", {.asked = true, .r = -ETIMEDOUT, .error = {"no answer within 3 s"}},
     "daemon", FINDING_BAD, "no answer", "journalctl -u underwattd"},
    {"not ours to ask", {.asked = true, .r = -EACCES, .error = {"X: Permission denied"}},
     "daemon", FINDING_BAD, "denied", "api.socket"},
    {"all is well", {UP, .boards = 8, .jobs = 1}, "daemon", FINDING_OK, "8 boards, 1 job; you are user anna", ""},
    {"an administrator", {UP, .admin = true}, "daemon", FINDING_OK, "(administrator)", ""},
    {"a reader", {.asked = true, .actuator_up = true, .version = "1.0", .you = "token x"},
     "daemon", FINDING_OK, "(read only)", ""},
    {"another version", {.asked = true, .actuator_up = true, .version = "0.9", .may_claim = true},
     "daemon", FINDING_WARN, "version 0.9, this command is version 1.0", "restart underwattd"},
    {"the actuator answers", {UP}, "actuator", FINDING_OK, "answers the daemon", ""},
    {"a dry run", {UP, .dry_run = true}, "actuator", FINDING_OK, "nothing is written", ""},
    {"no actuator", {.asked = true, .version = "1.0", .why = "no one at Y"},
     "actuator", FINDING_BAD, "the daemon cannot set caps: no one at Y", "underwatt-actuator.socket"},
    {"boards denied", {UP, .denied = 2}, "actuator", FINDING_BAD, "2 boards may not", "explain"},
    {"boards lost", {UP, .lost = 1}, "boards", FINDING_BAD, "has lost 1 board", "underwatt-release(1)"},
    {"a budget", {UP, .budget = "1500 W for the node; limits of 1498 W count"}, "budget", FINDING_OK, "1500 W for the node", ""},
    {"a budget that is not kept", {UP, .over_budget = true, .budget = "1500 W for the node; limits of 1700 W count"},
     "budget", FINDING_BAD, "limits of 1700 W count", "underwatt explain GPU"},
    {"no budget", {UP}, "budget", FINDING_OK, NULL, NULL},
    {"another writer", {UP, .changes = {3}}, "writers", FINDING_WARN, "3 times by another", "reassert"},
    {"reloads", {UP, .changes = {0, 1}}, "writers", FINDING_NOTE, "1 time by a driver reload", "persistenced"},
    {"no persistence", {UP, .changes = {0, 0, 1}}, "writers", FINDING_WARN, "persistence", "nvidia-smi -pm 1"},
    {"heat", {UP, .changes = {0, 0, 0, 7}}, "writers", FINDING_WARN, "7 times by heat", "cooling"},
    {"management", {UP, .changes = {0, 0, 0, 0, 2}}, "writers", FINDING_WARN, "management", "who runs it"},
    {"yielded", {UP, .yielded = 1}, "writers", FINDING_WARN, "1 board is left", ""},
    {"nobody else writes", {UP}, "writers", FINDING_OK, NULL, NULL},
    {"a wrong file", {UP, .config_failures = 1}, "config", FINDING_WARN, "1 configuration was refused", "--check"},
    {"a wrong file that is told", {UP, .tells_config = true, .config_failures = 2, .config_error = "U:3: no key 'x'"},
     "config", FINDING_WARN, "old configuration is in force: U:3: no key 'x'", "--check"},
    {"a wrong file that was corrected", {UP, .tells_config = true, .config_failures = 2}, "config", FINDING_WARN, NULL, NULL},
    {"a wrong policy", {UP, .tells_config = true, .config_failures = 1, .has_policy = true, .config_error = "P:4: no signal 'y'",
     .policy_error = "P:4: no signal 'y'", .policy_file = "P"},
     "policy", FINDING_WARN, "the earlier policy is in force: P:4: no signal 'y'", "policy check P; sudo systemctl reload"},
    {"a wrong policy is no wrong configuration", {UP, .tells_config = true, .config_failures = 1, .config_error = "P:4: z", .policy_error = "P:4: z"},
     "config", FINDING_WARN, NULL, NULL},
    {"a wrong policy at the start", {UP, .tells_config = true, .policy_error = "P:4: z", .policy_file = "P"},
     "policy", FINDING_BAD, "no policy is in force: P:4: z", "correct that line"},
    {"a full disk", {UP, .ledger_failures = 4}, "ledger", FINDING_BAD, "4 writes", "df -h"},
    {"no ledger", {UP, .ledger_down = true, .ledger_trouble = LEDGER_IS_FULL, .ledger_why = "L: disk is full", .ledger_waiting = 12},
     "ledger", FINDING_BAD, "L: disk is full; caps and budget hold, 12 rows wait in memory, 0 lost", "df -h"},
    {"a newer ledger", {UP, .ledger_down = true, .ledger_trouble = LEDGER_IS_NEWER, .ledger_why = "L: written by a newer underwattd"},
     "ledger", FINDING_BAD, "newer underwattd", "move the file away"},
    {"a read-only ledger", {UP, .ledger_down = true, .ledger_trouble = LEDGER_IS_READ_ONLY, .ledger_why = "L: Read-only file system"},
     "ledger", FINDING_BAD, "Read-only", "remount,rw"},
    {"a ledger out of reach", {UP, .ledger_down = true, .ledger_trouble = LEDGER_HAS_FAILED, .ledger_why = "L: Permission denied"},
     "ledger", FINDING_BAD, "Permission denied", "ls -ld"},
    {"rows are lost", {UP, .ledger_failures = 4, .ledger_lost = 7}, "ledger", FINDING_BAD, "7 rows were lost", "journalctl"},
    {"a ledger as it should be", {UP}, "ledger", FINDING_OK, NULL, NULL},
    {"not asked", {.r = -EIO}, "daemon", FINDING_OK, NULL, NULL},
};
/* clang-format on */

int main(void)
{
    struct findings *found = calloc(1, sizeof *found);

    for (size_t i = 0; found && i < n_elements(cases); i++) {
        bool hit = false;
        found->n = 0;
        doctor_daemon_judge(&cases[i].d, "1.0", found);
        for (size_t k = 0; k < found->n; k++) {
            const struct finding *f = &found->f[k];
            if (cases[i].text)
                hit |= strcmp(f->what, cases[i].what) == 0 &&
                       f->state == cases[i].state && strstr(f->text, cases[i].text) &&
                       (*cases[i].remedy ? strstr(f->remedy, cases[i].remedy) != NULL
                                         : !f->remedy[0]);
            else
                hit |= strcmp(f->what, cases[i].what) == 0;
        }
        if (!ok(hit == (cases[i].text != NULL), "%s", cases[i].name))
            findings_print(found, FINDING_OK, stdout);
    }
    free(found);
    return done();
}
