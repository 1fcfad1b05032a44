/* The functions of libmicrohttpd.  A program that serves is linked with them
 * (mhd-linked.c); `underwatt`, which seldom does, loads them with its first connection
 * (mhd-late.c, docs/decisions/0024-late.md).
 */
#ifndef IO_MHD_H
#define IO_MHD_H

#include <microhttpd.h>

#include "underwatt/error.h"

#define MHD_CALLS(X)                 \
    X(add_connection)                \
    X(add_response_header)           \
    X(create_response_from_buffer)   \
    X(create_response_from_callback) \
    X(destroy_response)              \
    X(get_connection_info)           \
    X(get_connection_values)         \
    X(get_daemon_info)               \
    X(get_timeout)                   \
    X(lookup_connection_value)       \
    X(queue_response)                \
    X(resume_connection)             \
    X(run)                           \
    X(start_daemon)                  \
    X(stop_daemon)                   \
    X(suspend_connection)

struct mhd_calls {
#define MHD_CALL(name) __typeof__(&MHD_##name) name;
    MHD_CALLS(MHD_CALL)
#undef MHD_CALL
};
/* NULL before mhd_load() has returned 0. */
extern const struct mhd_calls *microhttpd;

/* 0 at once where it is there.  -ENOENT: it cannot be loaded. */
int mhd_load(uw_error *err);

#endif
