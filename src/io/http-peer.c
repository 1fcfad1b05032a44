/* Which addresses count as one peer. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "io/http.h"

enum { HOST = 8 }; /* bytes of an IPv6 address behind its /64 */

void http_network(const char *address, char ret[64])
{
    struct in6_addr a;
    char text[INET6_ADDRSTRLEN];

    (void)snprintf(ret, 64, "%s", address);
    if (inet_pton(AF_INET6, address, &a) != 1)
        return;
    if (IN6_IS_ADDR_V4MAPPED(&a)) {
        if (inet_ntop(AF_INET, &a.s6_addr[12], text, sizeof text))
            (void)snprintf(ret, 64, "%s", text);
        return;
    }
    memset(&a.s6_addr[sizeof a.s6_addr - HOST], 0, HOST);
    if (inet_ntop(AF_INET6, &a, text, sizeof text))
        (void)snprintf(ret, 64, "%s/64", text);
}
