/* What yaml.c tells yaml-read.c of its nodes. */
#ifndef IO_YAML_INSIDE_H
#define IO_YAML_INSIDE_H

#include "io/yaml.h"

const char *yaml_name(const struct yaml_node *node); /* of the document */
const char *yaml_raw(const struct yaml_node *node);  /* a scalar's text */
unsigned yaml_key_line(const struct yaml_node *map, size_t i);

#endif
