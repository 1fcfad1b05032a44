/* Messages of a client, and of an actuator that is not one of ours. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "actuator/core.h"
#include "actuator/proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct proto_request request;
    struct proto_answer answer;
    uw_error err;

    if (proto_parse_request(data, size, &request, &err) == 0 &&
        (request.seq == 0 || (request.uuid[0] && !core_is_uuid(request.uuid))))
        abort();
    if (proto_parse_answer(data, size, &answer, &err) == 0) {
        struct actuator_reply reply = answer.reply;
        if (strlen(reply.text) >= sizeof reply.text ||
            strcmp(actuator_result_name(reply.result), "?") == 0)
            abort();
    }
    return 0;
}
