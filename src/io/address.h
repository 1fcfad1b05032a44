#ifndef UNDERWATT_IO_ADDRESS_H
#define UNDERWATT_IO_ADDRESS_H

#include <underwatt/error.h>

struct addrinfo;

/* Reads "HOST:PORT" with a numeric host ("127.0.0.1:8443", "[::1]:0") to listen on;
 * freeaddrinfo(*ret).  -EINVAL: the text is no such address.
 */
int address_find(const char *text, struct addrinfo **ret, uw_error *err);
/* 0 where the host is a loopback address; -EINVAL, -EPERM: it is another one. */
int address_is_loopback(const char *text, uw_error *err);

#endif
