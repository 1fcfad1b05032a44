/* Messages between a client and the actuator: of fixed size, one in each datagram of a
 * SOCK_SEQPACKET socket, in the machine's byte order (both ends run on the same machine).
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
    /* Revision of the answer's format: later revisions append fields.  A client states
     * its revision in its hello (a), and gets no later fields.
     */
    PROTO_REVISION = 3, /* 1: what is set, and the range in force; 2: PROTO_WRITING; 3:
                         * PROTO_BOARD */
};

enum proto_type {
    PROTO_HELLO =
        1,       /* the first message; a: PROTO_REVISION of the client (0: an old client);
                    answered DONE, or with the reason that nothing can be done */
    PROTO_HOLD,  /* uuid, a: enum proto_again */
    PROTO_LIMIT, /* uuid, a: mW */
    PROTO_CLOCKS,  /* uuid, a..b: MHz; 0, 0 resets */
    PROTO_RENEW,   /* renews the lease, as every message does; answered after PROTO_BOARD
                      of each board whose holder has changed */
    PROTO_RELEASE, /* uuid */
    PROTO_COUNTER, /* a: which; DONE with its zone in text and its descriptor beside
                    * it (SCM_RIGHTS), GONE past the last one */
    PROTO_DETACH,  /* uuid: close the driver on the board; the next hold opens it again */
    PROTO_N_REQUESTS,
    /* Events: sent by the actuator only, seq 0. */
    PROTO_YIELDED = 100,
    PROTO_LEASE_OVER,
    PROTO_LOST,
    PROTO_WRITING, /* uuid: the driver has been processing a hold's write for
                      GUARD_WRITING_MS */
    PROTO_BOARD,   /* uuid, from, to: root's range; TAKEN: another Underwatt holds the
                      board (pid, original_mw; text without the board's name), else DONE;
                      after the hello of each board, then when the holder has changed */
    PROTO_N_EVENTS,
};

/* A hold of a board on which this session has yielded to another program's limit. */
enum proto_again {
    PROTO_AGAIN_NO = 0, /* the hold is refused */
    PROTO_AGAIN_FOUND,  /* the limit found now becomes the original */
    PROTO_AGAIN_KEEP,   /* the original stays as it was, unless the driver was reloaded */
};

struct proto_request {
    uint32_t magic;
    uint16_t version;
    uint16_t type; /* enum proto_type */
    uint32_t seq;  /* repeated in the answer; not 0 */
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

/* The size of an answer for a client of this revision. */
size_t proto_answer_size(uint32_t revision);

/* Parse the bytes of a peer: 0, or -EPROTO with a text; *ret is written only on success,
 * and its strings are terminated and valid.  In an answer of an older revision the later
 * fields are 0.
 */
int proto_parse_request(const void *data, size_t size, struct proto_request *ret,
                        uw_error *err);
int proto_parse_answer(const void *data, size_t size, struct proto_answer *ret,
                       uw_error *err);

/* Build messages for sending.  uuid may be NULL. */
struct proto_request proto_request(enum proto_type type, uint32_t seq, const char *uuid);
struct proto_answer proto_answer(enum proto_type type, uint32_t seq,
                                 const struct actuator_reply *reply);

#endif
