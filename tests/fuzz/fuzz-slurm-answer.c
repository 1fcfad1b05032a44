/* An answer to the SPANK plugin from whatever listens at underwattd's socket. */
#include <string.h>

#include "fuzz.h"
#include "slurm/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *answer = (const char *)data;
    char said[160], cut[4];

    int status = message_status(answer, size);
    bool whole = message_complete(answer, size);
    must(status < 0 || (status >= 100 && status <= 599));
    bool has = message_word(answer, size, "refused", said, sizeof said);
    must(!has || (*said && strlen(said) < sizeof said));
    must(message_word(answer, size, "refused", cut, sizeof cut) == has);
    must(!has || (strlen(cut) < sizeof cut && memcmp(cut, said, strlen(cut)) == 0));
    return fuzz_say(status < 0 ? "refused" : "accepted", "%d %s %s", status,
                    whole ? "whole" : "part", has ? said : "-");
}
