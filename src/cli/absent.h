/* There are no boards to work with: what exactly is missing, and what to type. */
#ifndef CLI_ABSENT_H
#define CLI_ABSENT_H

#include "cli/survey.h"

/* Says it on stderr; s->r is not 0.  EXIT_FAIL. */
int absent_say(const struct cmd *cmd, const struct survey *s, const char *boards);

#endif
