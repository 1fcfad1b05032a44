/* Shared by the files of the YAML reader: yaml.c (the tree), yaml-read.c (values),
 * yaml-fail.c (errors).
 */
#ifndef IO_YAML_INSIDE_H
#define IO_YAML_INSIDE_H

#include <stdarg.h>

#include "io/yaml.h"

/* The place of a fault; hidden: errors must not show the file's text. */
struct yaml_place {
    const char *name;
    unsigned line, column;
    bool hidden;
};

const char *yaml_raw(const struct yaml_node *node); /* a scalar's text */
/* "ledger.keep.fine: ": the keys that lead to the node, from the document or the list's
 * item that it is in, for the beginning of an error; "": none.  Returns ret.
 */
enum { YAML_KEYS = 100 };
const char *yaml_keys_of(const struct yaml_node *node, char ret[YAML_KEYS]);
struct yaml_place yaml_place(const struct yaml_node *node);
struct yaml_place yaml_place_of_key(const struct yaml_node *map, size_t i);

/* fail() with "FILE:LINE: " and the keys of yaml_keys_of(), or "", in front.  Where the
 * text is hidden: "FILE:LINE: column N: " and the format's own words; each argument
 * becomes "…".
 */
int yaml_complain(const struct yaml_place *at, const char *keys, uw_error *err, int r,
                  const char *format, va_list args) __attribute__((format(printf, 5, 0)));
/* yaml_fail() with the keys of the node in front of a text that is shown. */
int yaml_fail_value(const struct yaml_node *node, uw_error *err, int r,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
