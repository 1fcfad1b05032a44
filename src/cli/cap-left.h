/* What a `cap` command leaves behind: reads the boards again and reports. */
#ifndef CLI_CAP_LEFT_H
#define CLI_CAP_LEFT_H

#include "cli/cap-target.h"
#include "cli/survey.h"

/* After cap_own_hold(): reads each board that was held and whose restore is not
 * confirmed, for at most 5 s, and reports its state.
 */
void cap_left(struct cap_hold *h);

/* `cap clear` without the daemon, for these boards of a survey: restores what was left,
 * reads the boards, reports.  EXIT_OK: each limit is restored or belongs to a running
 * process; EXIT_PARTIAL: some are; EXIT_FAIL.
 */
int cap_clear(const struct cli_env *env, const char *boards, const struct survey *before,
              const size_t *at, size_t n);

#endif
