/* The file of tokens: read, and where it is one, looked at for the text behind it. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/rights/token.h"
#include "base/auto.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char NO_TOKEN[] = "uwt_0a1b2c3d_0123456789abcdef0123456789abcdef"
                                   "0123456789abcdef0123456789abcdef";
    auto_(mem_free) struct tokens *t = calloc(1, sizeof *t);
    const char *why = NULL;
    uw_error err;

    if (!t)
        return 0;
    if (tokens_read("fuzz", (const char *)data, size, t, &err) < 0)
        return fuzz_say("refused", "%s", err.text);
    must(t->n <= TOKENS_MAX);
    for (size_t i = 0; i < t->n; i++) {
        const struct token *one = &t->token[i];
        must(one->scope >= TOKEN_READ && one->scope <= TOKEN_ADMIN && *one->name);
        must((one->scope == TOKEN_CLAIM) == (one->uid != (uid_t)-1));
        must(one->job == 0 || one->scope == TOKEN_CLAIM);
    }
    /* Nobody has a text to the hashes of a corpus. */
    must(!tokens_find(t, NO_TOKEN, 0, &why) && why);
    return fuzz_say("accepted", "%zu tokens", t->n);
}
