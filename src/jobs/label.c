#include "jobs/label.h"

#include <ctype.h>
#include <string.h>

#include "jobs/roster.h"

bool label_key_valid(const char *key, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)key[i]) && !strchr("_-./", key[i]))
            return false;
    return len > 0 && len < LABEL_KEY;
}
