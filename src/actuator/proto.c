#include "actuator/proto.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "actuator/core.h"
#include "base/error.h"

_Static_assert(sizeof(struct proto_request) == 116, "no padding on the wire");
_Static_assert(sizeof(struct proto_answer) == 372, "no padding on the wire");

size_t proto_answer_size(uint32_t revision)
{
    _Static_assert(offsetof(struct proto_answer, reply.set_mw) == 344,
                   "the layout of revision 0 must not change");
    _Static_assert(offsetof(struct proto_answer, reply.from) == 356,
                   "the layout of revision 1 must not change");

    return revision < 1   ? offsetof(struct proto_answer, reply.set_mw)
           : revision < 3 ? offsetof(struct proto_answer, reply.from)
                          : sizeof(struct proto_answer);
}

static int check_head(uint32_t magic, uint16_t version, uw_error *err)
{
    if (magic != PROTO_MAGIC)
        return fail(err, -EPROTO, "not a message of Underwatt's actuator");
    if (version != PROTO_VERSION)
        return fail(err, -EPROTO, "version %u of the protocol, this is %u", version,
                    (unsigned)PROTO_VERSION);
    return 0;
}

static bool takes_uuid(unsigned type)
{
    return type != PROTO_HELLO && type != PROTO_RENEW && type != PROTO_COUNTER;
}

int proto_parse_request(const void *data, size_t size, struct proto_request *ret,
                        uw_error *err)
{
    struct proto_request m;

    if (size != sizeof m)
        return fail(err, -EPROTO, "%zu bytes are not a request", size);
    memcpy(&m, data, sizeof m);
    int r = check_head(m.magic, m.version, err);
    if (r < 0)
        return r;
    if (m.type < PROTO_HELLO || m.type >= PROTO_N_REQUESTS || m.seq == 0)
        return fail(err, -EPROTO, "no such request: type %u, seq %u", m.type, m.seq);
    if (!memchr(m.uuid, '\0', sizeof m.uuid) ||
        (takes_uuid(m.type) ? !core_is_uuid(m.uuid) : m.uuid[0] != '\0'))
        return fail(err, -EPROTO, "a request of type %u with no proper UUID", m.type);
    *ret = m;
    return 0;
}

int proto_parse_answer(const void *data, size_t size, struct proto_answer *ret,
                       uw_error *err)
{
    struct proto_answer m = {0};

    if (size != proto_answer_size(0) && size != proto_answer_size(1) && size != sizeof m)
        return fail(err, -EPROTO, "%zu bytes are not an answer", size);
    memcpy(&m, data, size);
    int r = check_head(m.magic, m.version, err);
    if (r < 0)
        return r;
    bool event = m.type >= PROTO_YIELDED && m.type < PROTO_N_EVENTS && m.seq == 0;
    bool answer = m.type >= PROTO_HELLO && m.type < PROTO_N_REQUESTS && m.seq != 0;
    if ((!event && !answer) || (unsigned)m.reply.result >= ACTUATOR_N_RESULTS)
        return fail(err, -EPROTO, "no such answer: type %u, seq %u, result %u", m.type,
                    m.seq, (unsigned)m.reply.result);
    const struct actuator_reply *reply = &m.reply;
    if (!memchr(reply->uuid, '\0', sizeof reply->uuid) ||
        !memchr(reply->text, '\0', sizeof reply->text) ||
        (reply->uuid[0] && !core_is_uuid(reply->uuid)) ||
        (unsigned)reply->why >= ACTUATOR_N_WHYS ||
        reply->range.min_mw > reply->range.max_mw)
        return fail(err, -EPROTO, "an answer of type %u with broken text", m.type);
    *ret = m;
    return 0;
}

struct proto_request proto_request(enum proto_type type, uint32_t seq, const char *uuid)
{
    struct proto_request m = {.magic = PROTO_MAGIC,
                              .version = PROTO_VERSION,
                              .type = (uint16_t)type,
                              .seq = seq};

    (void)snprintf(m.uuid, sizeof m.uuid, "%s", uuid ? uuid : "");
    return m;
}

struct proto_answer proto_answer(enum proto_type type, uint32_t seq,
                                 const struct actuator_reply *reply)
{
    return (struct proto_answer){.magic = PROTO_MAGIC,
                                 .version = PROTO_VERSION,
                                 .type = (uint16_t)type,
                                 .seq = seq,
                                 .reply = *reply};
}
