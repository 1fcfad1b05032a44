/* Where the node daemon's sockets are: for commands and libunderwatt. */
#ifndef CONFIG_DAEMON_ADDRESS_H
#define CONFIG_DAEMON_ADDRESS_H

#include <stdbool.h>

#include "underwatt/error.h"

enum { DAEMON_ADDRESS_PATH = 108 };

struct daemon_address {
    char socket[DAEMON_ADDRESS_PATH];
    char job_socket[DAEMON_ADDRESS_PATH]; /* in the same folder; takes progress pages */
    bool named;                           /* by the caller: the daemon must answer */
};

/* The named socket (UNDERWATT_SOCKET; NULL or "": none); else that of the simulated world
 * to which the text boards (NULL: the system's) belongs; else the system's.  -EINVAL,
 * -ENAMETOOLONG: not a valid path.
 */
int daemon_address(const char *named, const char *boards, struct daemon_address *ret,
                   uw_error *err);

#endif
