/* docs/openapi.yaml, as the build put it into the program (tools/embed). */
#ifndef API_OPENAPI_H
#define API_OPENAPI_H

#include <stddef.h>

extern const char openapi_yaml[];
extern const size_t openapi_yaml_len;

#endif
