/* The owner of a loopback connection. */
#ifndef IO_HTTP_OWNER_H
#define IO_HTTP_OWNER_H

#include <sys/types.h>

/* The user whose process holds the other end of this accepted TCP connection, by the
 * kernel's sock_diag(7).  -ENOENT: the other end is on another machine, or closed; or an
 * error of the netlink socket (-EAFNOSUPPORT where the service may open none).
 */
int http_owner(int fd, uid_t *ret);

#endif
