/* Messages between a client and the actuator: fixed, one a datagram of a
 * SOCK_SEQPACKET socket, in the machine's own byte order (both ends are on it).
 */
#ifndef ACTUATOR_PROTO_H
#define ACTUATOR_PROTO_H

#include <stddef.h>
#include <stdint.h>

#include "actuator/result.h"
#include "underwatt/error.h"

enum {
    PROTO_VERSION = 2,
    PROTO_MAGIC = 0x55574131, /* "UWA1" */
    /* What an answer holds beyond the version's first form, at its end.  A client says in
     * its hello how much of that it knows (a), and gets no more.
     */
    PROTO_REVISION = 2, /* 1: what is set, and the range in force; 2: PROTO_WRITING */
};

enum proto_type {
    PROTO_HELLO = 1, /* first, a: PROTO_REVISION of the client (0: an old one); answered
                      * DONE, or why nothing can be done */
    PROTO_HOLD,      /* uuid, a: enum proto_again */
    PROTO_LIMIT,     /* uuid, a: mW */
    PROTO_CLOCKS,    /* uuid, a..b: MHz; 0, 0 resets */
    PROTO_RENEW,     /* every message renews; this one does nothing else */
    PROTO_RELEASE,   /* uuid */
    PROTO_COUNTER,   /* a: which; DONE with its zone in text and its descriptor beside
                      * it (SCM_RIGHTS), GONE past the last one */
    PROTO_DETACH, /* uuid: let go of the driver's handle; the next hold takes it back */
    PROTO_N_REQUESTS,
    /* From the actuator alone, seq 0. */
    PROTO_YIELDED = 100,
    PROTO_LEASE_OVER,
    PROTO_LOST,
    PROTO_WRITING, /* uuid: the driver has had a hold's write for GUARD_WRITING_MS */
    PROTO_N_EVENTS,
};

/* A hold of a board where this session has yielded to another's limit. */
enum proto_again {
    PROTO_AGAIN_NO = 0, /* is refused */
    PROTO_AGAIN_FOUND,  /* what is found now is the original */
    PROTO_AGAIN_KEEP,   /* the original is what it was, if the driver is, too */
};

struct proto_request {
    uint32_t magic;
    uint16_t version;
    uint16_t type; /* enum proto_type */
    uint32_t seq;  /* comes back in the answer; not 0 */
    uint32_t a, b;
    char uuid[96]; /* "" where the type takes none */
};

struct proto_answer {
    uint32_t magic;
    uint16_t version;
    uint16_t type; /* the request's, or an event's */
    uint32_t seq;
    struct actuator_reply reply;
};

/* How many bytes of an answer a client of this revision takes. */
size_t proto_answer_size(uint32_t revision);

/* Bytes of a peer to a message: 0, or -EPROTO with a text; *ret is written only
 * on success, its strings end and hold nothing but what they may.  An answer of an older
 * revision has zeroes where that says nothing.
 */
int proto_parse_request(const void *data, size_t size, struct proto_request *ret,
                        uw_error *err);
int proto_parse_answer(const void *data, size_t size, struct proto_answer *ret,
                       uw_error *err);

/* Messages ready to be sent.  uuid may be NULL. */
struct proto_request proto_request(enum proto_type type, uint32_t seq, const char *uuid);
struct proto_answer proto_answer(enum proto_type type, uint32_t seq,
                                 const struct actuator_reply *reply);

#endif
