/* A boards text, taken apart; for gpu/ alone. */
#ifndef GPU_CHOICE_H
#define GPU_CHOICE_H

#include "gpu/row.h"

/* By the places of gpu_backends[]. */
struct gpu_choice {
    char text[GPU_BOARDS_TEXT];
    bool named[GPU_BACKENDS_MAX];
    const char *source[GPU_BACKENDS_MAX]; /* into text; NULL: the backend's own */
};

/* role: of an absolute path that stands alone.  -EINVAL. */
int gpu_choice_parse(const char *text, enum gpu_role role, struct gpu_choice *ret,
                     uw_error *err);
/* Whether backend i is to be opened, among those of its role. */
bool gpu_choice_has(const struct gpu_choice *c, size_t i);

#endif
