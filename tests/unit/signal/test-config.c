/* signals.yaml: what is read, every way to be wrong, and files with secrets. */
#include "signal/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/units.h"
#include "io/secret.h"
#include "oom.h"
#include "tap.h"

#define TOP "signals: 1\nserve: {socket: /run/s.sock}\n"
#define ONE(source) TOP "sources:\n  - {" source "}\n"

static const char countries[] = "DE\tGermany\nFR\tFrance\nGB\tBritain\n";

static const char example[] =
    "signals: 1\n"
    "serve: {socket: /run/s.sock, tcp: {listen: \"[::]:9446\", cert: /e/s.crt, key: "
    "/e/s.key, token: /e/s.token}}\n"
    "cache: /var/lib/s\n"
    "sources:\n"
    "  - {name: grid, type: electricitymaps, api: 4, zone: DE, key_file: /e/em.key, "
    "every: 15 min, provides: [carbon, carbon.forecast]}\n"
    "  - {name: grid-marginal, type: watttime, region: CAISO_NORTH, login_file: "
    "/e/wt.login, every: 5 min, provides: [carbon.marginal]}\n"
    "  - {name: uk, type: uk, region: 13, every: 30 min, provides: [carbon, "
    "carbon.forecast], as: carbon.uk}\n"
    "  - {name: sdk, type: carbon-aware-sdk, url: \"https://cas.example/\", location: "
    "westeurope, every: 1 h, as: carbon.sdk}\n"
    "  - {name: market, type: entsoe, zone: 10Y1001A1001A82H, key_file: /e/entsoe.key, "
    "every: 1 h, provides: [price, price.forecast]}\n"
    "  - {name: tariff, type: csv, path: /e/tariff.csv, unit: EUR/kWh, as: "
    "price.retail}\n"
    "  - {name: country, type: static, zone: DE, year: 2024, as: carbon.static}\n"
    "  - {name: rack3, type: json, url: \"https://dcim.example/rack/3\", path: "
    "data.0.kw, unit: kW, every: 10 s, age: 60 s, as: rack.power}\n";

/* clang-format off */
static const struct { const char *name, *text, *says; } wrong[] = {
    {"no version", "serve: {socket: /s}\nsources: []\n", "signals"},
    {"another version", "signals: 2\nserve: {socket: /s}\nsources: []\n", "s.yaml:1: version 2 is not supported: the supported version is 1"},
    {"nobody to read", "signals: 1\nsources: []\n", "serve"},
    {"nowhere to read", "signals: 1\nserve: {}\nsources: []\n", "s.yaml:2: serve: give socket, tcp or both"},
    {"no source", TOP, "sources"},
    {"an empty list", TOP "sources: []\n", "s.yaml:3: sources: 0 are outside 1..64"},
    {"no list", TOP "sources: {a: b}\n", "s.yaml:3: sources: a list"},
    {"neither sources nor a site", TOP "cache: /c\n", "s.yaml:1: no source: give sources, follow or both"},
    {"a site without a token", TOP "follow: {url: \"https://s:1\"}\n", "token"},
    {"a site without TLS", TOP "follow: {url: \"http://127.0.0.1:1\", token: /t}\n", "s.yaml:3: follow: url does not begin with https://"},
    {"... of another host", TOP "follow: {url: \"http://site:9446\", token: /t}\n", "s.yaml:3: follow: url does not begin with https://"},
    {"a site with a path", TOP "follow: {url: \"https://s:1/v1\", token: /t}\n", "follow: url: a host and a port, as in https://site:9446"},
    {"a site with a password", TOP "follow: {url: \"https://a:b@s:1\", token: /t}\n", "follow: url must not hold a name or a password"},
    {"a site that is asked too seldom", TOP "follow: {url: \"https://s:1\", token: /t, every: 2 h}\n", "every"},
    {"a relative CA", TOP "follow: {url: \"https://s:1\", token: /t, ca: c}\n", "ca: 'c' is not an absolute path"},
    {"the site's name", TOP "follow: {url: \"https://s:1\", token: /t}\nsources:\n  - {name: follow, type: uk}\n", "s.yaml:5: name: 'follow' is the site's"},
    {"a name that is a path", ONE("name: a/b, type: uk"), "s.yaml:4: name: 'a/b' is not a name"},
    {"a name that is hidden", ONE("name: .a, type: uk"), "name: '.a' is not a name"},
    {"an unknown key", TOP "sauces: []\n", "unknown key 'sauces'"},
    {"a relative cache", TOP "cache: x\nsources: []\n", "cache: 'x' is not an absolute path"},
    {"a relative socket", "signals: 1\nserve: {socket: s}\nsources: []\n", "socket: 's' is not an absolute path"},
    {"TCP without a token", "signals: 1\nserve: {tcp: {listen: \"[::]:1\", cert: /c, key: /k}}\nsources: []\n", "token"},
    {"no port", "signals: 1\nserve: {tcp: {listen: \"[::]\", cert: /c, key: /k, token: /t}}\nsources: []\n", "listen: '[::]' is not a numeric address and port"},
    {"a host's name", "signals: 1\nserve: {tcp: {listen: \"localhost:0\", cert: /c, key: /k, token: /t}}\nsources: []\n", "listen: 'localhost:0' is not a numeric address and port"},
    {"an address without brackets", "signals: 1\nserve: {tcp: {listen: \"::1:9446\", cert: /c, key: /k, token: /t}}\nsources: []\n", "is not a numeric address and port"},
    {"a large port", "signals: 1\nserve: {tcp: {listen: \"0.0.0.0:65536\", cert: /c, key: /k, token: /t}}\nsources: []\n", "is not a numeric address and port"},
    {"no name", ONE("type: uk"), "s.yaml:4: "},
    {"no type", ONE("name: a"), "s.yaml:4: "},
    {"an unknown type", ONE("name: a, type: gridstatus"), "s.yaml:4: type: 'gridstatus' is none of: electricitymaps, watttime, uk, csv, json, static, carbon-aware-sdk, entsoe"},
    {"an unknown zone", ONE("name: a, type: electricitymaps, zone: UK, key_file: /k"), "s.yaml:4: a: zone: 'UK' is not a zone of the grid: no country has this code; did you mean 'GB'?"},
    {"a zone of no market", ONE("name: a, type: entsoe, zone: 10Y1001A1001A82G, key_file: /k"), "s.yaml:4: a: zone: '10Y1001A1001A82G' is not the code of a bidding zone"},
    {"no key", ONE("name: a, type: electricitymaps, zone: DE"), "s.yaml:4: a: 'key_file' is missing: type electricitymaps needs it"},
    {"a key of another", ONE("name: a, type: uk, zone: GB"), "s.yaml:4: a: 'zone' is not a key of type uk"},
    {"no TLS", ONE("name: a, type: json, url: \"http://dcim.example/x\", unit: kW, as: rack.power"), "s.yaml:4: a: url: http://dcim.example has no TLS"},
    {"a wrong unit", ONE("name: a, type: json, file: /x, unit: km, as: x"), "s.yaml:4: a: unit: 'km' is none of energy, power, price or carbon"},
    {"a relative CA of a source", ONE("name: a, type: uk, ca: x"), "ca: 'x' is not an absolute path"},
    {"a CA of a file", ONE("name: a, type: csv, path: /x, unit: kW, as: x, ca: /c"), "s.yaml:4: a: 'ca' is for sources that ask a server"},
    {"a relative key", ONE("name: a, type: electricitymaps, zone: DE, key_file: k"), "key_file: 'k' is not an absolute path"},
    {"what it does not give", ONE("name: a, type: uk, provides: [price]"), "s.yaml:4: provides: 'price' is none of: carbon, carbon.forecast"},
    {"provides a map", ONE("name: a, type: uk, provides: {a: b}"), "s.yaml:4: provides: a list"},
    {"too often", ONE("name: a, type: uk, every: 10 s"), "s.yaml:4: a: every 10 s is outside 60 s..7 d"},
    {"too seldom", ONE("name: a, type: uk, every: 8 d"), "is outside 60 s..7 d"},
    {"older than it is asked", ONE("name: a, type: uk, every: 30 min, age: 10 min"), "its age limit, 600 s, is below every, 1800 s"},
    {"too long", ONE("name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, type: uk"), "name: longer than 63 bytes"},
    {"an invisible character", ONE("name: \"a\\u200bb\", type: uk"), "name has a control or invisible character"},
    {"one name twice", TOP "sources:\n  - {name: a, type: uk}\n  - {name: a, type: uk, as: b}\n", "s.yaml:5: two sources have the name 'a'"},
    {"one signal twice", TOP "sources:\n  - {name: a, type: uk}\n  - {name: b, type: static, zone: DE}\n", "s.yaml:5: a and b both give carbon: name one of them with 'as'"},
    {"CSV with two files", ONE("name: a, type: csv, path: /x, file: /y, unit: kW, as: x"), "a: 'path' is not a key of type csv"},
};
/* clang-format on */

static int read_text(const char *text, struct signals_config *ret, uw_error *err)
{
    return signals_config_read("s.yaml", text, strlen(text), countries, ret, err);
}

static void check_wrong(void)
{
    for (size_t i = 0; i < n_elements(wrong); i++) {
        struct signals_config c = {.n = 7};
        uw_error err = {""};
        int r = read_text(wrong[i].text, &c, &err);
        if (!ok((r == -EINVAL || r == -ERANGE || r == -ENOENT) &&
                    strstr(err.text, wrong[i].says) && !strchr(err.text, '\n'),
                "%s", wrong[i].name))
            printf("# %d %s\n", r, err.text);
        ok(c.n == 7 && !c.doc, "… and nothing is read");
    }
}

static void check_example(void)
{
    auto_(signals_config_fini) struct signals_config c = {.n = 0};
    uw_error err = {""};
    char name[SIGNAL_NAME];

    if (!ok(read_text(example, &c, &err) == 0 && c.n == 8, "eight sources")) {
        printf("# %s\n", err.text);
        return;
    }
    is_str(c.socket, "/run/s.sock", "the socket");
    is_str(c.listen, "[::]:9446", "the address");
    is_str(c.token, "/e/s.token", "the token's file");
    is_str(c.cache, "/var/lib/s", "the cache");
    ok(c.source[0].c.provides == 3 && c.source[0].every_ns == 900 * NS_PER_S,
       "two signals, every 15 min");
    is_str(c.source[0].secret, "/e/em.key", "… with a key");
    is_str(c.source[1].secret, "/e/wt.login", "… with a login");
    is_str(source_signal(&c.source[2].c, 1, name), "carbon.uk.forecast",
           "… under another name");
    ok(c.source[3].c.provides == 1, "where nothing is said, the first signal");
    is_str(c.source[5].c.file, "/e/tariff.csv", "the path of CSV is its file");
    ok(c.source[5].every_ns == 10 * NS_PER_S, "… which is read every 10 s");
    ok(c.source[6].c.year == 2024 && c.source[6].every_ns == 86400 * NS_PER_S,
       "a table, once a day");
    is_str(c.source[7].c.path, "data.0.kw", "the path of JSON is in it");
    ok(c.source[7].age_ns == 60 * NS_PER_S, "… with an age limit");
}

static void check_follow(void)
{
    static const char text[] = TOP "follow: {url: \"https://site:9446/\", token: /t, ca: "
                                   "/c, every: 5 min}\n";
    auto_(signals_config_fini) struct signals_config c = {.n = 0}, both = {.n = 0};
    uw_error err = {""};

    ok(read_text(text, &c, &err) == 0 && c.n == 0, "a site and no source: %s", err.text);
    is_str(c.follow.url, "https://site:9446/", "its URL");
    ok(strcmp(c.follow.token, "/t") == 0 && strcmp(c.follow.ca, "/c") == 0 &&
           c.follow.every_ns == 300 * NS_PER_S,
       "its files, how often");
    ok(read_text(
           ONE("name: a, type: uk, as: c") "follow: {url: \"https://s\", token: /t}\n",
           &both, &err) == 0 &&
           both.n == 1 && both.follow.every_ns == 60 * NS_PER_S && !both.follow.ca,
       "a source beside it");
    ok(signals_config_gives(&both, "c") && !signals_config_gives(&both, "carbon"),
       "what the source gives");
}

static void secret(const char *type, const char *with, mode_t mode, int want,
                   const char *says)
{
    char path[] = "/tmp/uw-test-XXXXXX", text[300];
    auto_(signals_config_fini) struct signals_config c = {.n = 0};
    char *got = NULL;
    uw_error err = {""};
    int fd = mkstemp(path);

    ok(fd >= 0 && write(fd, with, strlen(with)) == (ssize_t)strlen(with) &&
           fchmod(fd, mode) == 0,
       "a file");
    (void)close(fd);
    (void)snprintf(text, sizeof text, ONE("name: a, type: %s: %s"), type, path);
    ok(read_text(text, &c, NULL) == 0, "… is named");
    int r = signals_config_secret(&c, 0, &got, &err);
    if (!ok(r == want && (r < 0 ? strstr(err.text, says) &&
                                      strncmp(err.text, "s.yaml:4: a: ", 13) == 0
                                : strcmp(got, says) == 0),
            "… %s", says))
        printf("# %d %s\n", r, r < 0 ? err.text : got);
    ok(r == 0 || !strstr(err.text, "word"), "… and is not shown");
    secret_free(got);
    (void)unlink(path);
}

static void secrets(void)
{
    static const char em[] = "electricitymaps, zone: DE, key_file";
    static const char wt[] = "watttime, region: PJM, login_file";

    secret(em, "word-1\n", 0600, 0, "word-1");
    secret(em, "word-1", 0400, 0, "word-1");
    secret(em, "word-1\n", 0640, -EPERM,
           "others may read the key: its owner must be this user or root, its mode 0600");
    secret(em, "word-1\n", 0604, -EPERM, "others may read the key");
    secret(em, "\nword-1\n", 0600, -EINVAL, "its first line is no key");
    secret(em, "word 1\n", 0600, -EINVAL, "its first line is no key");
    secret(wt, "anna:pass word\n", 0600, 0, "anna:pass word");
    secret(wt, "annaword\n", 0600, -EINVAL,
           "its first line is not a login: NAME:PASSWORD");
    secret(wt, ":word\n", 0600, -EINVAL, "is not a login");
    secret(wt, "word:\n", 0600, -EINVAL, "is not a login");
}

static int read_example(void *user)
{
    auto_(signals_config_fini) struct signals_config c = {.n = 0};
    (void)user;

    return read_text(example, &c, NULL);
}

int main(void)
{
    check_wrong();
    check_example();
    check_follow();
    secrets();
    oom_each("signals_config_read", read_example, NULL);
    return done();
}
