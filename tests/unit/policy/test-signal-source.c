/* `signals` of policy.yaml: what is read, every way to be wrong. */
#include <errno.h>
#include <string.h>

#include "base/units.h"
#include "policy/signal-source.h"
#include "tap.h"

/* clang-format off */
static const struct { const char *name, *text, *says; } bad[] = {
    {"no list", "signals: {name: carbon}", "p.yaml:1: signals: a list"},
    {"no name", "signals:\n  - {age: 60 s}", "p.yaml:2: "},
    {"an unknown key", "signals: [{name: carbon, url: x}]", "unknown key 'url'"},
    {"a wrong name", "signals:\n  - {name: carbon}\n  - {name: a-b}", "p.yaml:3: 'a-b' is not the name of a signal"},
    {"a name of the node", "signals: [{name: job.phase, age: 60 s}]", "names that begin with 'job'"},
    {"twice", "signals:\n  - {name: carbon}\n  - {name: carbon}", "p.yaml:3: carbon is declared twice"},
    {"a unit of none", "signals: [{name: rack, unit: kw, age: 60 s}]", "'kw' is no unit: did you mean 'kW'?"},
    {"a unit of another", "signals: [{name: price, unit: USD/kWh}]", "price is in EUR/kWh, USD/kWh is not"},
    {"no age", "signals: [{name: rack, unit: kW}]", "rack needs 'age'"},
    {"an age of 0", "signals: [{name: rack, unit: kW, age: 0 s}]", "needs 'age'"},
    {"a long age", "signals: [{name: rack, unit: kW, age: 15 d}]", "outside 1 s..14 d"},
    {"a relative file", "signals: [{name: carbon, file: c.json}]", "carbon: file: 'c.json' is not an absolute path"},
    {"path and column", "signals: [{name: carbon, file: /c, path: a, column: b}]", "not both"},
    {"a path without a file", "signals: [{name: carbon, path: a}]", "need a file"},
    {"every without a file", "signals: [{name: carbon, every: 5 s}]", "need a file"},
    {"file and socket", "signals: [{name: carbon, file: /c, socket: /s}]", "carbon: give one of file and socket"},
    {"a relative socket", "signals: [{name: carbon, socket: s}]", "carbon: socket: 's' is not an absolute path"},
    {"a column of a socket", "signals: [{name: carbon, socket: /s, column: a}]", "apply to files, not to sockets"},
    {"a text of a socket", "signals: [{name: grid, type: text, age: 1 h, socket: /s}]", "grid: a socket provides numbers only"},
    {"a socket too often", "signals: [{name: carbon, socket: /s, every: 0.5 s}]", "every 0.5 s is outside 1 s..1 h"},
    {"a broken path", "signals: [{name: carbon, file: /c, path: a..b}]", "path: 'a..b' is not a path"},
    {"a path of too many keys", "signals: [{name: carbon, file: /c, path: a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q}]", "is not a path"},
    {"too often", "signals: [{name: carbon, file: /c, every: 0.5 s}]", "every 0.5 s is outside 1 s..1 h"},
    {"too seldom", "signals: [{name: carbon, file: /c, every: 2 h}]", "outside 1 s..1 h"},
    {"older than it is looked at", "signals: [{name: carbon, file: /c, age: 5 s, every: 10 s}]", "is shorter than every"},
    {"a forecast of JSON", "signals: [{name: carbon.forecast, file: /c.json}]", "a forecast needs a CSV file"},
    {"a type of none", "signals: [{name: x, type: bool, age: 5 s}]", "'bool' is none of"},
    {"a unit of a truth", "signals: [{name: x, type: truth, unit: W, age: 5 s}]", "it has no unit"},
    {"no currency", "facility: {currency: euro}", "facility.currency: 'euro'"},
    {"too long a unit", "signals: [{name: x, unit: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, age: 5 s}]", "unit: longer than 31 bytes"},
    {"an invisible character", "signals: [{name: carbon, file: \"/a\\u200bb\"}]", "control or invisible"},
};
/* clang-format on */

static int read_text(const char *text, struct signal_sources *ret, uw_error *err)
{
    auto_(yaml_free) struct yaml *doc = NULL;
    int r = yaml_read("p.yaml", text, strlen(text), &doc, err);

    return r < 0 ? r : signal_sources_read(yaml_root(doc), ret, err);
}

static void wrong(void)
{
    for (size_t i = 0; i < n_elements(bad); i++) {
        struct signal_sources all = {.n = 7};
        uw_error err = {""};
        int r = read_text(bad[i].text, &all, &err);
        if (!ok((r == -EINVAL || r == -ERANGE) && strstr(err.text, bad[i].says) &&
                    strncmp(err.text, "p.yaml:", 7) == 0,
                "%s", bad[i].name))
            printf("# %d %s\n", r, err.text);
        ok(all.n == 7 && !all.source, "… and nothing is read");
    }
}

static void right(void)
{
    static const char text[] =
        "policy: 1\n"
        "facility: {zone: DE, currency: USD}\n"
        "signals:\n"
        "  - {name: carbon, file: /srv/c.json, path: data.0.v, every: 1 min}\n"
        "  - {name: price, unit: USD/MWh, file: /srv/p.csv, column: DE}\n"
        "  - {name: price.forecast, file: /srv/p.csv}\n"
        "  - {name: rack3.power, unit: kW, age: 5 s, file: /srv/r}\n"
        "  - {name: queue.depth.gpu}\n"
        "  - {name: grid, type: text, age: 1 h}\n";
    auto_(signal_sources_fini) struct signal_sources all = {0};
    uw_error err = {""};

    if (!ok(read_text(text, &all, &err) == 0 && all.n == 6, "six signals"))
        printf("# %s\n", err.text);
    const struct signal_source *s = all.source;
    is_str(all.currency, "USD", "the currency");
    ok(!s[0].csv && s[0].every_ns == 60 * NS_PER_S && s[0].decl.age_ns == 7200 * NS_PER_S,
       "JSON, with the known age limit");
    ok(s[1].csv && s[1].every_ns == 10 * NS_PER_S, "CSV, looked at every 10 s");
    is_str(s[1].decl.unit, "USD/kWh", "in its own unit");
    is_str(s[1].unit, "USD/MWh", "the file in another");
    ok(s[2].csv && s[3].every_ns == 5 * NS_PER_S && !s[3].csv,
       "a short age limit is looked at as often");
    ok(!s[4].file[0] && s[4].every_ns == 0, "without a file");
    ok(s[5].decl.type == POLICY_TEXT, "a text");
}

static void none(void)
{
    auto_(signal_sources_fini) struct signal_sources all = {0};

    ok(read_text("rules: []", &all, NULL) == 0 && all.n == 0, "no list is no signal");
    is_str(all.currency, "EUR", "in euros");
}

int main(void)
{
    wrong();
    right();
    none();
    return done();
}
