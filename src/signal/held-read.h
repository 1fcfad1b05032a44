/* Reading what is held; signal/held.h is for everybody else. */
#ifndef SIGNAL_HELD_READ_H
#define SIGNAL_HELD_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "io/json.h"
#include "signal/held.h"
#include "signal/source.h"

/* -EINVAL with its line. */
int held_bad(uw_error *err, const char *name);
/* The text of "error", cut to fit; false: there is none that can be shown, *ret "". */
bool held_read_error(const struct json_value *v, char ret[HELD_ERROR]);
/* A signal's values; free() ret->point. */
int held_read_series(const char *name, const struct json_value *v,
                     struct source_series *ret, uw_error *err);

#endif
