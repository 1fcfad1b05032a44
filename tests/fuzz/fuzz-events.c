/* Server-sent events as the commands read them: whole, and in two portions, the same. */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "io/httpc-inside.h"

static unsigned n_events;
static char last[600];

static int on_event(const char *event, const char *data, void *user)
{
    uint64_t *sum = user;

    assert(*event != '\0' && !strchr(event, '\n') && strlen(data) < 512);
    n_events++;
    (void)snprintf(last, sizeof last, "%s: %s", event, data);
    for (; *event != '\0'; event++)
        *sum = *sum * 31 + (unsigned char)*event;
    for (; *data != '\0'; data++)
        *sum = *sum * 31 + (unsigned char)*data;
    *sum += 7;
    return 0;
}

static int feed(const char *text, size_t size, size_t step, uint64_t *sum)
{
    struct events e;
    int r = 0;

    *sum = 0;
    n_events = 0;
    last[0] = '\0';
    events_init(&e, 512, on_event, sum);
    for (size_t at = 0; at < size && r == 0; at += step)
        r = events_feed(&e, text + at, size - at < step ? size - at : step);
    events_fini(&e);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    uint64_t whole, parts;

    int r = feed(text, size, size + 1, &whole);
    int q = feed(text, size, 3, &parts);
    if (r == 0 && q == 0)
        assert(whole == parts);
    assert(r == 0 || r == -EFBIG);
    return fuzz_say(r == 0 && q == 0 ? "taken" : "too-large", "%u events, last %s",
                    n_events, last);
}
