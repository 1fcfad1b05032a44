/* Whose a connection on loopback is. */
#ifndef IO_HTTP_OWNER_H
#define IO_HTTP_OWNER_H

#include <sys/types.h>

/* The user whose process holds the other end of this accepted TCP connection, as the
 * kernel's sock_diag(7) has it.  -ENOENT: the other end is of another machine, or closed;
 * or a fault of the netlink socket (-EAFNOSUPPORT where the service may open none).
 */
int http_owner(int fd, uid_t *ret);

#endif
