/* The two kinds of canvas behind cli/canvas.h. */
#ifndef CLI_CANVAS_INSIDE_H
#define CLI_CANVAS_INSIDE_H

#include "cli/canvas.h"

/* Results: 0 or -errno. */
struct canvas_kind {
    int (*path)(void *self, const struct spot *spots, size_t n, bool closed,
                const struct pen *pen);
    int (*box)(void *self, struct box box, double radius, const struct pen *pen);
    int (*circle)(void *self, struct spot at, double radius, const struct pen *pen);
    int (*text)(void *self, struct spot at, const char *text, const struct type *type);
    int (*clip)(void *self, const struct box *box); /* NULL: no more */
    int (*mark)(void *self, size_t i);              /* SIZE_MAX: no more */
    int (*finish)(void *self);
    void (*free)(void *self);
};

/* Takes self over, also when it fails. */
int canvas_new(const struct canvas_kind *kind, void *self, struct canvas **ret,
               uw_error *err);

/* Bytes of text with &, <, >, " and controls made harmless, for XML and HTML. */
int canvas_escape(FILE *to, const char *text);

#endif
