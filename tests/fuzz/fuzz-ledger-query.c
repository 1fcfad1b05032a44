/* Parameters of a report: "key=value" a line, as they come from anybody's URL. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "fuzz.h"
#include "io/ledger-report.h"

#define NOW INT64_C(1795275010000000000)

static void check_key(const struct ledger_key *k)
{
    if (k->by > LEDGER_BY_ARRAY ||
        strnlen(k->label, sizeof k->label) == sizeof k->label ||
        (k->by == LEDGER_BY_LABEL) != (k->label[0] != '\0'))
        __builtin_trap();
    for (const char *c = k->label; *c; c++)
        if (*c == '\'' || *c == '"' || *c == '<' || (unsigned char)*c < ' ')
            __builtin_trap();
}

static void check(const struct ledger_query *q)
{
    if (q->n_keys < 1 || q->n_keys > LEDGER_KEYS || q->from_utc_ns < 0 ||
        q->to_utc_ns < 0 ||
        strnlen(q->currency, sizeof q->currency) == sizeof q->currency)
        __builtin_trap();
    for (size_t i = 0; i < q->n_keys; i++)
        check_key(&q->key[i]);
    if (strnlen(q->of_user, sizeof q->of_user) == sizeof q->of_user ||
        strnlen(q->of_value, sizeof q->of_value) == sizeof q->of_value ||
        (q->of_label[0] != '\0') != (q->of_value[0] != '\0'))
        __builtin_trap();
    if (q->has_carbon && !(q->gco2e_kwh >= 0 && q->gco2e_kwh <= 10000))
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[512];
    char *rest = text, *line;
    struct ledger_query q;
    uw_error err = {{0}};
    bool refused = false;

    if (size >= sizeof text)
        return fuzz_say("passed-over", "longer than %zu bytes", sizeof text - 1);
    (void)fuzz_say("refused", "%s", "");
    memcpy(text, data, size);
    text[size] = '\0';
    ledger_query_init(&q, NOW);
    while ((line = strsep(&rest, "\n")) != NULL) {
        char *value = strchr(line, '=');
        if (!value)
            continue;
        *value++ = '\0';
        struct ledger_query before = q;
        int r = ledger_query_set(&q, line, value, NOW, &err);
        if (r < 0 && memcmp(&q, &before, sizeof q) != 0)
            __builtin_trap();
        if (r < 0)
            fuzz_add("%s; ", err.text);
        refused = refused || r < 0;
        check(&q);
    }
    int r = ledger_query_check(&q, &err);
    if (r == 0 && q.from_utc_ns >= q.to_utc_ns)
        __builtin_trap();
    if (r < 0)
        fuzz_add("%s", err.text);
    if (r < 0 || refused)
        return 0;
    return fuzz_say("accepted", "by %d '%s' %s from %lld to %lld", (int)q.key[0].by,
                    q.key[0].label, q.local ? "local" : "utc",
                    (long long)(q.from_utc_ns / 1000000000),
                    (long long)(q.to_utc_ns / 1000000000));
}
