/* What a `cap` command leaves behind: the boards are read again before it is said. */
#ifndef CLI_CAP_LEFT_H
#define CLI_CAP_LEFT_H

#include "cli/cap-hold.h"
#include "cli/survey.h"

/* After cap_hold(): each board that was held, and not given back with a read-back, is
 * read until it is restored, 5 s at most, and said.
 */
void cap_left(struct cap_hold *h);

/* `cap clear` without the daemon, of these boards of a survey: puts back what was left,
 * reads, says.  EXIT_OK: nothing is left that nobody who runs sees to; EXIT_PARTIAL:
 * something is, something was put back; EXIT_FAIL.
 */
int cap_clear(const struct cli_env *env, const char *boards, const struct survey *before,
              const size_t *at, size_t n);

#endif
