#include "io/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/units.h"

enum { LOOPBACK_NET = 127 };

/* Splits "HOST:PORT" or "[HOST]:PORT". */
static int split_address(const char *address, char host[64], char port[8], uw_error *err)
{
    const char *colon = strrchr(address, ':');
    uint64_t number;

    if (!colon || parse_u64(colon + 1, &number, NULL) < 0)
        return fail(err, -EINVAL, "'%s' is not of the form HOST:PORT", address);
    if (number > 65535)
        return fail(err, -EINVAL, "'%s': port %s is outside 0..65535", address,
                    colon + 1);
    size_t n = (size_t)(colon - address);
    if (n >= 2 && address[0] == '[' && address[n - 1] == ']') {
        address++;
        n -= 2;
    }
    if (n == 0 || n >= 64)
        return fail(err, -EINVAL, "'%s' names no address to listen on", address);
    (void)snprintf(host, 64, "%.*s", (int)n, address);
    (void)snprintf(port, 8, "%u", (unsigned)number);
    return 0;
}

int address_find(const char *text, struct addrinfo **ret, uw_error *err)
{
    char host[64], port[8];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};

    int r = split_address(text, host, port, err);
    if (r < 0)
        return r;
    if (getaddrinfo(host, port, &hints, ret) != 0)
        return fail(err, -EINVAL, "'%s' is not a numeric address", text);
    return 0;
}

static bool is_loopback(const struct sockaddr *a)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    if (a->sa_family == AF_INET) {
        memcpy(&v4, a, sizeof v4);
        return ntohl(v4.sin_addr.s_addr) >> 24 == LOOPBACK_NET;
    }
    if (a->sa_family != AF_INET6)
        return false;
    memcpy(&v6, a, sizeof v6);
    return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

int address_is_loopback(const char *text, uw_error *err)
{
    struct addrinfo *found = NULL;

    int r = address_find(text, &found, err);
    if (r < 0)
        return r;
    if (!is_loopback(found->ai_addr))
        r = fail(err, -EPERM, "'%s' is not a loopback address (127.0.0.1, [::1])", text);
    freeaddrinfo(found);
    return r;
}
