/* Shared by the files of tokens; not for other files. */
#ifndef API_RIGHTS_TOKEN_INSIDE_H
#define API_RIGHTS_TOKEN_INSIDE_H

#include <stdbool.h>

#include "api/rights/token.h"

bool token_name_good(const char *name);
/* Makes a new token with this id: its text and its hash.  -EIO. */
int token_make(uint32_t id, char text[TOKEN_TEXT], unsigned char hash[TOKEN_HASH]);

#endif
