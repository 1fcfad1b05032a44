/* Judges request lines: methods, paths, queries.  Pure. */
#ifndef IO_HTTP_REQUEST_H
#define IO_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/http.h"

struct http_pair {
    const char *key, *value; /* into target */
};
struct http_target {
    char *text; /* owns the strings below */
    const char *path;
    struct http_pair query[HTTP_QUERY_MAX];
    size_t n_query;
};
/* 0, or the status to refuse with and why: 400, 414, 431. */
unsigned http_target_parse(const char *target, struct http_target *ret,
                           const char **ret_why);
void http_target_fini(struct http_target *t);
static inline void http_target_fini_p(struct http_target *t)
{
    http_target_fini(t);
}
/* 0: not a supported method; *ret_head: the method was HEAD. */
enum http_method http_method_parse(const char *name, bool *ret_head);

#endif
