/* Where the node daemon's sockets are, for whoever asks it: commands and libunderwatt. */
#ifndef NODE_WHERE_H
#define NODE_WHERE_H

#include <stdbool.h>

#include "underwatt/error.h"

enum { NODE_WHERE_PATH = 108 };

struct node_where {
    char socket[NODE_WHERE_PATH];
    char job_socket[NODE_WHERE_PATH]; /* beside it: takes progress pages */
    bool named;                       /* by the caller: then it must answer */
};

/* The socket that was named (UNDERWATT_SOCKET; NULL or "": none), else the simulated
 * world's that nvml (NULL: the system's library) belongs to, else the system's.  -EINVAL,
 * -ENAMETOOLONG: a path that is none.
 */
int node_where(const char *named, const char *nvml, struct node_where *ret,
               uw_error *err);

#endif
