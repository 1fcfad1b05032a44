/* Where the node daemon's sockets are, for whoever asks it: commands and libunderwatt. */
#ifndef CONFIG_DAEMON_ADDRESS_H
#define CONFIG_DAEMON_ADDRESS_H

#include <stdbool.h>

#include "underwatt/error.h"

enum { DAEMON_ADDRESS_PATH = 108 };

struct daemon_address {
    char socket[DAEMON_ADDRESS_PATH];
    char job_socket[DAEMON_ADDRESS_PATH]; /* beside it: takes progress pages */
    bool named;                           /* by the caller: then it must answer */
};

/* The socket that was named (UNDERWATT_SOCKET; NULL or "": none), else the simulated
 * world's that the boards text (NULL: the system's) belongs to, else the system's.
 * -EINVAL, -ENAMETOOLONG: a path that is none.
 */
int daemon_address(const char *named, const char *boards, struct daemon_address *ret,
                   uw_error *err);

#endif
