/* `underwattd --token-new`, `--token-list`, `--token-revoke`: administration of the
 * tokens for TCP clients.
 */
#ifndef DAEMON_TOKEN_COMMAND_H
#define DAEMON_TOKEN_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "underwatt/error.h"

struct token_words {
    const char *make, *revoke; /* a name */
    const char *scope, *user, *job, *ttl;
    bool list;
};
/* Whether any of these options was given. */
bool token_wanted(const struct token_words *words);
/* path: the file of tokens.  Writes to standard output; -EINVAL: bad options. */
int token_command(const struct token_words *words, const char *path, int64_t now_s,
                  uw_error *err);

#endif
