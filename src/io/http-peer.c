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

    if (inet_pton(AF_INET6, address, &a) == 1 && IN6_IS_ADDR_V4MAPPED(&a) &&
        inet_ntop(AF_INET, &a.s6_addr[12], text, sizeof text))
        address = text;
    bool loopback = strncmp(address, "127.", 4) == 0; /* any of them is any user's */
    (void)snprintf(ret, 64, "%s", loopback ? "127.0.0.0/8" : address);
    if (inet_pton(AF_INET6, address, &a) != 1)
        return;
    memset(&a.s6_addr[sizeof a.s6_addr - HOST], 0, HOST);
    if (inet_ntop(AF_INET6, &a, text, sizeof text))
        (void)snprintf(ret, 64, "%s/64", text);
}
