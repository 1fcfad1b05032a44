#include "cli/absent.h"

#include "cli/doctor.h"

int absent_say(const struct cmd *cmd, const struct survey *s, const char *boards)
{
    struct doctor_facts facts = {.named = boards, .survey = s, .loop_speed = 1};
    struct findings found = {0};

    machine_read("", &facts.machine);
    facts.library_r = gpu_boards_look(boards, &facts.about, &facts.library_error);
    if (facts.library_r != 0)
        facts.survey = NULL; /* the library is missing */
    doctor_judge_access(&facts, &found);
    int code = cli_fail(EXIT_FAIL, "%s: no board can be used", cmd->name);
    findings_print(&found, FINDING_WARN, stderr);
    (void)fprintf(stderr, "all checks: underwatt doctor\n");
    return code;
}
