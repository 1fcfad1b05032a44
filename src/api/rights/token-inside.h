/* What the files of tokens share; nobody else includes this. */
#ifndef API_RIGHTS_TOKEN_INSIDE_H
#define API_RIGHTS_TOKEN_INSIDE_H

#include <stdbool.h>

#include "api/rights/token.h"

bool token_name_good(const char *name);
/* A new one of that id: its text and what is kept of it.  -EIO. */
int token_make(uint32_t id, char text[TOKEN_TEXT], unsigned char hash[TOKEN_HASH]);

#endif
