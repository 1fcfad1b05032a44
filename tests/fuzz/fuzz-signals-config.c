/* signals.yaml of any content: sources within bounds, or one line with the file's name.
 */
#include <string.h>

#include "base/units.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "signal/config.h"

static void check_source(const struct signals_source *s)
{
    char name[SIGNAL_NAME];
    unsigned least_s = 0, usual_s = 0;

    must(s->c.kind && s->c.name[0] && s->c.provides);
    source_kind_every(&s->c, &least_s, &usual_s);
    must(s->every_ns >= least_s * NS_PER_S &&
         s->every_ns <= SOURCE_EVERY_MAX_S * NS_PER_S);
    must(!source_needs_secret(&s->c) || (s->secret && s->secret[0] == '/'));
    must(!s->c.file[0] || s->c.file[0] == '/');
    for (size_t i = 0; source_kind_gives(s->c.kind, i); i++)
        if (s->c.provides >> i & 1)
            must(strcmp(source_signal(&s->c, i, name), "value") != 0);
}

/* Whatever is configured can be asked. */
static void ask(const struct source_config *c)
{
    struct source_state s = {.step = 0};
    struct source_request request;

    must(source_next(c, "name:word", &s, 1795696496, &request, NULL) == 0);
    must(strlen(request.url) < sizeof request.url);
    for (const char *p = request.url; request.way == SOURCE_HTTP && *p; p++)
        must(*p > ' ' && *p <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_(signals_config_fini) struct signals_config c = {.n = 0};
    uw_error err = {""};

    if (signals_config_read("s.yaml", (const char *)data, size, NULL, &c, &err) < 0) {
        must(err.text[0] && !strchr(err.text, '\n'));
        return fuzz_say("refused", "%s", err.text);
    }
    must(c.n > 0 && c.n <= SIGNALS_CONFIG_SOURCES && (c.socket || c.listen));
    for (size_t i = 0; i < c.n; i++) {
        check_source(&c.source[i]);
        ask(&c.source[i].c);
    }
    return fuzz_say("accepted", "%zu sources", c.n);
}
