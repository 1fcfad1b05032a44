/* Messages of a client, and of an actuator that is not one of ours. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "actuator/core.h"
#include "actuator/proto.h"
#include "base/names.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct proto_request request;
    struct proto_answer answer;
    uw_error err, err2;

    int r = proto_parse_request(data, size, &request, &err);
    if (r == 0) {
        must(request.seq != 0 && (!request.uuid[0] || core_is_uuid(request.uuid)));
        (void)fuzz_say("request", "type %u seq %u a %u b %u '%s'", request.type,
                       request.seq, request.a, request.b, request.uuid);
    }
    if (proto_parse_answer(data, size, &answer, &err2) == 0) {
        struct actuator_reply reply = answer.reply;
        if (strlen(reply.text) >= sizeof reply.text ||
            strcmp(names_word(NAMES_ACTUATOR_RESULT, reply.result), "?") == 0)
            abort();
        return fuzz_say(answer.seq ? "answer" : "event", "type %u seq %u %s '%s' %s",
                        answer.type, answer.seq,
                        names_word(NAMES_ACTUATOR_RESULT, reply.result), reply.uuid,
                        reply.text);
    }
    return r == 0 ? 0
                  : fuzz_say("refused", "request: %s; answer: %s", err.text, err2.text);
}
