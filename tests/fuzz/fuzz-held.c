/* What underwatt-signals has written, of any content: its cache of a source and of a
 * site, the answer of its socket as the daemon reads it, the site's answer as a node
 * reads it. The first byte says which.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "fuzz.h"
#include "io/unix-ask.h"
#include "signal/followed.h"
#include "signal/held.h"

#define SITE "https://site:9446"
enum { NOW_S = 1795696496 }; /* 2026-11-26T12:34:56Z */
#define LATEST_UTC_S INT64_C(7258118400)

static struct signals_source source = {.c = {.name = "grid", .provides = 3}};

static void check_series(const struct source_series *s)
{
    must(s->n <= SIGNAL_POINTS);
    for (size_t i = 0; i < s->n; i++) {
        const struct source_point *p = &s->point[i];
        must(!isinf(p->v) && p->to_utc_s >= p->from_utc_s && p->from_utc_s >= 0 &&
             p->to_utc_s <= LATEST_UTC_S);
        must(i == 0 || s->point[i - 1].from_utc_s < p->from_utc_s);
        must(held_end(&source, s, p) >= p->from_utc_s);
    }
}

static int refused(int r, const char *why)
{
    must(r < 0 && utf8_is_plain(why));
    return fuzz_say("refused", "%s", why);
}

static int read_cache(const char *text, size_t len)
{
    struct held h = {.asked_utc_s = 0}, again = {.asked_utc_s = 0};
    auto_(mem_free) char *written = NULL;
    uw_error err = {""};
    int r = held_read(&source.c, "grid.json", text, len, &h, &err);

    if (r < 0)
        return refused(r, err.text);
    must(h.values.n <= SOURCE_GIVES);
    for (size_t i = 0; i < h.values.n; i++)
        check_series(&h.values.series[i]);
    (void)fuzz_say("values", "%zu signals", h.values.n);
    if (held_write(&source.c, &h, &written, NULL) == 0)
        must(held_read(&source.c, "grid.json", written, strlen(written), &again, &err) ==
                 0 &&
             again.values.n == h.values.n && again.asked_utc_s == h.asked_utc_s);
    held_fini(&again);
    held_fini(&h);
    return 0;
}

static int read_answer(const char *text, size_t len)
{
    auto_(held_signal_fini) struct held_signal h = {.n = 0};
    struct unix_reply got = {.status = 0};
    uw_error err = {""};
    char *copy = malloc(len + 1);

    if (!copy)
        return fuzz_say("memory", "none");
    memcpy(copy, text, len);
    copy[len] = '\0';
    int r = unix_reply_read("sock", copy, len, &got, &err);
    if (r < 0) {
        free(copy);
        return refused(r, err.text);
    }
    must(got.len <= len && got.status <= 999);
    r = held_take("sock", got.body, got.len, "carbon", NOW_S, &h, &err);
    free(got.body);
    if (r < 0)
        return refused(r, err.text);
    must(h.source[0] && utf8_is_plain(h.source) && utf8_is_plain(h.error));
    must(h.n <= SIGNAL_POINTS && h.age_s <= SIGNAL_AGE_MAX_S && h.time_utc_s <= NOW_S);
    size_t estimated = 0;
    for (size_t i = 0; i < h.n; i++) {
        must(h.point[i].utc_s >= 0 && h.point[i].utc_s <= LATEST_UTC_S);
        must(i == 0 || h.point[i - 1].utc_s <= h.point[i].utc_s);
        estimated += h.estimated[i];
    }
    return fuzz_say(h.known ? "known" : "unknown", "%zu points, %zu estimated, of %s",
                    h.n, estimated, h.source);
}

/* It can be shown, cached and read again. */
static int check_followed(struct followed *f)
{
    auto_(followed_fini) struct followed again = {.n = 0};
    auto_(mem_free) char *written = NULL;
    uw_error err = {""};

    must(f->n <= FOLLOWED_MAX);
    for (size_t i = 0; i < f->n; i++) {
        const struct followed_signal *s = &f->signal[i];
        must(s->source[0] && utf8_is_plain(s->source) && utf8_is_plain(s->error));
        check_series(&s->series);
    }
    (void)fuzz_say("values", "%zu signals", f->n);
    if (followed_write(SITE, f, &written, NULL) == 0)
        must(followed_load(SITE, "f.json", written, strlen(written), &again, &err) == 0 &&
             again.n == f->n);
    followed_fini(f);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct followed f = {.n = 0};
    uw_error err = {""};

    if (size < 1)
        return fuzz_say("skipped", "empty");
    const char *text = (const char *)data + 1;
    size_t len = size - 1;
    source.c.kind = source_kind_find("uk");
    switch (data[0] % 4) {
    case 0:
        return read_cache(text, len);
    case 1:
        return read_answer(text, len);
    case 2:
        return followed_read(SITE, text, len, &f, &err) < 0 ? refused(-1, err.text)
                                                            : check_followed(&f);
    default:
        return followed_load(SITE, "f.json", text, len, &f, &err) < 0
                   ? refused(-1, err.text)
                   : check_followed(&f);
    }
}
