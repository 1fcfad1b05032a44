/* A parsed boards text; used only within gpu/. */
#ifndef GPU_CHOICE_H
#define GPU_CHOICE_H

#include "gpu/row.h"

/* Arrays are indexed as gpu_backends[]. */
struct gpu_choice {
    char text[GPU_BOARDS_TEXT];
    bool named[GPU_BACKENDS_MAX];
    const char *source[GPU_BACKENDS_MAX]; /* points into text; NULL: the default */
};

/* role: for an absolute path without a backend's name.  -EINVAL. */
int gpu_choice_parse(const char *text, enum gpu_role role, struct gpu_choice *ret,
                     uw_error *err);
/* Whether backend i is to be opened. */
bool gpu_choice_has(const struct gpu_choice *c, size_t i);

#endif
