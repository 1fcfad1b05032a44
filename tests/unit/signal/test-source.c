/* What all kinds of sources share: keys, statuses, clocks, tags, the words of a refusal.
 */
#include "signal/source.h"
#include "source-play.h"

#define KEY "k-123456"
#define BODY                                                                       \
    "{\"zone\":\"DE\",\"carbonIntensity\":322,\"datetime\":\"2026-11-26T12:00:00." \
    "000Z\"}"

static struct play begin(void)
{
    struct play p = {.secret = KEY};

    (void)snprintf(p.c.zone, sizeof p.c.zone, "DE");
    p.c.given = KEY_ZONE | KEY_KEY_FILE;
    (void)checked(&p, "electricitymaps");
    (void)ask_next(&p);
    return p;
}

/* clang-format off */
static const struct { const char *name; unsigned status; const char *header, *body; enum source_outcome outcome; const char *says; int wait_s; } statuses[] = {
    {"not modified", 304, NULL, "", SOURCE_SAME, "grid: not modified", 0},
    {"no key", 401, NULL, "{\"message\":\"Invalid auth-token\"}", SOURCE_REFUSED, "grid: the key is refused (status 401): Invalid auth-token", 0},
    {"another zone's key", 403, NULL, "{\"error\":\"Token unauthorized for zoneKey=DE\"}", SOURCE_REFUSED, "(status 403): Token unauthorized for zoneKey=DE", 0},
    {"the key in the words", 401, NULL, "{\"error\":\"no key " KEY "\"}", SOURCE_REFUSED, "grid: the key is refused (status 401)", 0},
    {"words that cannot be shown", 401, NULL, "{\"error\":\"a\\u001b[31m\"}", SOURCE_REFUSED, "(status 401)", 0},
    {"words in an object", 400, NULL, "{\"error\":{\"code\":\"400\",\"message\":\"no such zone\"}}", SOURCE_BAD, "status 400: no such zone", 0},
    {"not found", 404, NULL, "<html>", SOURCE_BAD, "grid: status 404", 0},
    {"elsewhere", 302, "Location: https://other/", "", SOURCE_BAD, "grid: status 302", 0},
    {"too many", 429, NULL, "", SOURCE_WAIT, "too many requests (status 429), again in 60 s", 60},
    {"too many, for seconds", 429, "retry-after: 17", "", SOURCE_WAIT, "again in 17 s", 17},
    {"too many, to a time", 429, "Retry-After: Thu, 26 Nov 2026 12:44:56 GMT", "", SOURCE_WAIT, "again in 600 s", 600},
    {"too many, for ever", 429, "Retry-After: 99999999999", "", SOURCE_WAIT, "again in 86400 s", 86400},
    {"too many, in the past", 429, "Retry-After: Thu, 26 Nov 2020 12:44:56 GMT", "", SOURCE_WAIT, "again in 1 s", 1},
    {"too many, in no words", 429, "Retry-After: soon", "", SOURCE_WAIT, "again in 60 s", 60},
    {"down", 503, NULL, "", SOURCE_WAIT, "the service fails (status 503), again in 60 s", 60},
    {"a clock near ours", 200, "date: Thu, 26 Nov 2026 12:38:00 GMT", BODY, SOURCE_VALUES, "", 0},
    {"a clock far behind", 200, "Date: Thu, 26 Nov 2026 12:24:56 GMT", BODY, SOURCE_BAD, "grid: its clock and the local one differ by -600 s: 300 s at most", 0},
    {"a clock far ahead", 200, "Date: Thu, 26 Nov 2026 13:34:56 GMT", BODY, SOURCE_BAD, "differ by 3600 s", 0},
    {"a date that is none", 200, "Date: today", BODY, SOURCE_VALUES, "", 0},
};
/* clang-format on */

static void play_statuses(void)
{
    for (size_t i = 0; i < n_elements(statuses); i++) {
        struct play p = begin();
        enum source_outcome o =
            answer(&p, statuses[i].status, statuses[i].header, statuses[i].body);
        if (!ok(o == statuses[i].outcome, "%s: %s", statuses[i].name,
                source_outcome_name(statuses[i].outcome)))
            printf("# %s: %s\n", source_outcome_name(o), p.why);
        if (!ok(strstr(p.why, statuses[i].says) && !strstr(p.why, KEY),
                "… says so, without the key"))
            printf("# %s\n", p.why);
        is_int(p.s.rest_utc_s, statuses[i].wait_s ? p.utc_s + statuses[i].wait_s : 0,
               "… waits %d s", statuses[i].wait_s);
    }
}

static void waits(void)
{
    struct play p = begin();

    (void)answer(&p, 429, "Retry-After: 17", "");
    ok(!ask_next(&p) && strcmp(p.asked, "rest") == 0, "nothing is asked at once");
    p.utc_s += 17;
    ok(!ask_next(&p) && strcmp(p.asked, "done") == 0, "the round is over");
    ok(ask_next(&p), "then another begins");
    (void)answer(&p, 429, "Retry-After: 17", "");
    p.utc_s -= 400 * 86400;
    ok(!ask_next(&p) && strcmp(p.asked, "done") == 0, "a clock set back ends the rest");
}

/* A cache's answer carries the date at which it was made. */
static void cached(void)
{
    struct play p = begin();
    struct source_header h[] = {{"Date", "Thu, 26 Nov 2026 12:24:00 GMT"},
                                {"Age", "650"}};
    struct source_answer a = {.status = 200,
                              .header = h,
                              .n_headers = 2,
                              .body = BODY,
                              .len = strlen(BODY),
                              .utc_s = p.utc_s};
    auto_(source_values_fini) struct source_values v = {.n = 0};
    enum source_outcome o = SOURCE_BAD;

    ok(source_take(&p.c, KEY, &p.s, &a, &o, &v, NULL) == 0 && o == SOURCE_VALUES,
       "Age is added to Date");
}

static void tags(void)
{
    struct play p = begin();
    char tag[300], header[320];

    p.s.past_utc_s = p.utc_s;
    (void)answer(&p, 200, NULL, BODY);
    (void)ask_next(&p);
    (void)ask_next(&p);
    (void)answer(&p, 200, "ETag: \"a1\"", BODY);
    (void)ask_next(&p);
    ok(ask_next(&p) && strstr(p.asked, " If-None-Match: \"a1\""), "the tag is sent");
    ok(answer(&p, 304, NULL, "") == SOURCE_SAME, "… and nothing has changed");
    (void)ask_next(&p);
    ok(ask_next(&p) && strstr(p.asked, "\"a1\""), "… the tag stays");
    p.s.known_utc_s = 0;
    ok(ask_next(&p) && strstr(p.asked, "/history?") && !strstr(p.asked, "\"a1\""),
       "another URL is asked without it");
    memset(tag, 'x', sizeof tag - 1);
    tag[sizeof tag - 1] = '\0';
    (void)snprintf(header, sizeof header, "ETag: %s", tag);
    (void)answer(&p, 200, header, BODY);
    (void)ask_next(&p);
    ok(ask_next(&p) && !strstr(p.asked, "xxx"), "a tag that is too long is not kept");
}

/* ---- keys ---- */

static const struct {
    const char *name;
    unsigned given;
    const char *url;
    bool insecure;
    const char *says; /* NULL: it is right */
} wrong[] = {
    {"right", KEY_ZONE | KEY_KEY_FILE, "", false, NULL},
    {"no key", KEY_ZONE, "", false,
     "grid: 'key_file' is missing: type electricitymaps needs it"},
    {"a key of another", KEY_ZONE | KEY_KEY_FILE | KEY_POSTCODE, "", false,
     "grid: 'postcode' is not a key of type electricitymaps"},
    {"TLS", KEY_ZONE | KEY_KEY_FILE | KEY_URL, "https://proxy.example:8443/em", false,
     NULL},
    {"no TLS", KEY_ZONE | KEY_KEY_FILE | KEY_URL, "http://proxy.example/", false,
     "grid: url: http://proxy.example has no TLS: use https://, or say 'insecure: true'"},
    {"no TLS, meant", KEY_ZONE | KEY_KEY_FILE | KEY_URL, "http://proxy.example/", true,
     NULL},
    {"loopback", KEY_ZONE | KEY_KEY_FILE | KEY_URL, "http://127.0.0.1:80/", false, NULL},
    {"loopback by name", KEY_ZONE | KEY_KEY_FILE | KEY_URL, "http://localhost", false,
     NULL},
    {"loopback, IPv6", KEY_ZONE | KEY_KEY_FILE | KEY_URL, "http://[::1]:8080/a", false,
     NULL},
    {"looks like loopback", KEY_ZONE | KEY_KEY_FILE | KEY_URL,
     "http://127.0.0.1.example/", false, "has no TLS"},
    {"looks like it, too", KEY_ZONE | KEY_KEY_FILE | KEY_URL, "http://localhost.example/",
     false, "has no TLS"},
    {"a password", KEY_ZONE | KEY_KEY_FILE | KEY_URL, "https://me:pw@proxy.example/",
     false, "must not hold a name or a password"},
    {"loopback as a name", KEY_ZONE | KEY_KEY_FILE | KEY_URL,
     "http://localhost:1@evil.example/", false, "must not hold"},
    {"brackets and more", KEY_ZONE | KEY_KEY_FILE | KEY_URL, "http://[::1].evil.example/",
     false, "url is none"},
    {"a port and more", KEY_ZONE | KEY_KEY_FILE | KEY_URL,
     "http://localhost:80.evil.example/", false, "url is none"},
    {"no port", KEY_ZONE | KEY_KEY_FILE | KEY_URL, "http://localhost:/", false,
     "url is none"},
    {"an open bracket", KEY_ZONE | KEY_KEY_FILE | KEY_URL, "http://[::1/", false,
     "url is none"},
    {"another scheme", KEY_ZONE | KEY_KEY_FILE | KEY_URL, "file:///etc/passwd", false,
     "does not begin with https://"},
    {"no host", KEY_ZONE | KEY_KEY_FILE | KEY_URL, "https:///x", false, "url is none"},
    {"a blank", KEY_ZONE | KEY_KEY_FILE | KEY_URL, "https://a b/", false, "url is none"},
    {"a line end", KEY_ZONE | KEY_KEY_FILE | KEY_URL, "https://a/\r\nX: y", false,
     "url is none"},
};

static void keys(void)
{
    for (size_t i = 0; i < n_elements(wrong); i++) {
        struct source_config c = {.kind = source_kind_find("electricitymaps"),
                                  .name = "grid",
                                  .zone = "DE",
                                  .given = wrong[i].given,
                                  .insecure = wrong[i].insecure};
        uw_error err = {""};
        (void)snprintf(c.url, sizeof c.url, "%s", wrong[i].url);
        int r = source_check(&c, NULL, &err);
        if (!ok(wrong[i].says ? r == -EINVAL && strstr(err.text, wrong[i].says) : r == 0,
                "%s", wrong[i].name))
            printf("# %d %s\n", r, err.text);
        ok(c.provides == (r == 0), "… and what it provides is %s",
           r == 0 ? "completed" : "left");
    }
}

static void names(void)
{
    struct source_config c = {.kind = source_kind_find("electricitymaps"),
                              .as = "carbon.de"};
    char name[SIGNAL_NAME];
    uw_error err = {""};

    is_str(source_signal(&c, 0, name), "carbon.de", "`as` names the signal");
    is_str(source_signal(&c, 1, name), "carbon.de.forecast", "… and its forecast");
    c.given = KEY_ZONE | KEY_KEY_FILE;
    (void)snprintf(c.zone, sizeof c.zone, "DE");
    (void)snprintf(c.name, sizeof c.name, "grid");
    (void)snprintf(c.as, sizeof c.as, "job.x");
    ok(source_check(&c, NULL, &err) == -EINVAL &&
           strstr(err.text, "names that begin with 'job'"),
       "names of the node are refused");
    ok(source_kind_find("nosuch") == NULL, "there are no other kinds");
    for (size_t i = 0; source_kind_at(i); i++)
        ok(source_kind_find(source_kind_type(source_kind_at(i))) == source_kind_at(i) &&
               source_kind_gives(source_kind_at(i), 0),
           "%s is found", source_kind_type(source_kind_at(i)));
    for (size_t i = 0; i < SOURCE_KEYS; i++)
        ok(source_key_name(i) && source_key_name(i)[0], "key %zu has a name", i);
}

int main(void)
{
    play_statuses();
    waits();
    cached();
    tags();
    keys();
    names();
    return done();
}
