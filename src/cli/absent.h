/* Reports what is missing where no board can be used. */
#ifndef CLI_ABSENT_H
#define CLI_ABSENT_H

#include "cli/survey.h"

/* Writes to stderr; s->r is not 0.  Returns EXIT_FAIL. */
int absent_say(const struct cmd *cmd, const struct survey *s, const char *boards);

#endif
