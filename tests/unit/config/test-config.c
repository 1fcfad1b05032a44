/* underwattd.yaml: every key, every way to be wrong, reload's differences; and that the
 * manual page knows each key.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/auto.h"
#include "base/log.h"
#include "config/config.h"
#include "io/file.h"
#include "tap.h"

static int read_text(struct node_config *c, const char *text, uw_error *err)
{
    return node_config_read(c, "c.yaml", text, strlen(text), err);
}

/* ---- every key, a value that is not its default ---- */

/* clang-format off */
static const struct {
    const char *key, *text;
    bool restart;
} good[] = {
    {"node.admin_group", "node: {admin_group: wheel}", false},
    {"node.hostname", "node: {hostname: n1.example.org}", true},
    {"node.interval", "node:\n  interval: 1 min", true},
    {"node.log", "node: {log: debug}", false},
    {"node.dry_run", "node: {dry_run: true}", false},
    {"node.realtime", "node: {realtime: false}", true},
    {"budget.node", "budget: {node: 2400 W}", false},
    {"boards.only", "boards: {only: [0, 2-3, GPU-1234, 7f3a-, mig-0]}", true},
    {"boards.library", "boards: {library: /opt/libnvidia-ml.so.1}", true},
    {"boards.rapl", "boards: {rapl: false}", true},
    {"boards.rapl_period", "boards: {rapl_period: 5 s}", false},
    {"boards.powercap", "boards: {powercap: /opt/powercap}", true},
    {"sampling.rest", "sampling: {rest: 4 s}", false},
    {"sampling.job", "sampling: {job: 300 ms}", false},
    {"sampling.search", "sampling: {search: 50 ms}", false},
    {"caps.users.from", "caps: {users: {from: 50 %}}", false},
    {"caps.users.to", "caps: {users: {to: 250 W}}", false},
    {"caps.users.longest", "caps: {users: {longest: 2 h}}", false},
    {"caps.other_writers", "caps: {other_writers: reassert}", false},
    {"caps.reassert_after", "caps: {reassert_after: 30 s}", false},
    {"caps.yield_for", "caps: {yield_for: 1 h}", false},
    {"caps.clocks", "caps: {clocks: true}", false},
    {"caps.always_hold", "caps: {always_hold: true}", false},
    {"caps.classes", "caps: {classes: {slow: {ramp: 0.1 %/s}}}", false},
    {"jobs.discover", "jobs: {discover: false}", true},
    {"jobs.look", "jobs: {look: 60 s}", true},
    {"jobs.phases", "jobs: {phases: false}", true},
    {"search.found_jobs", "search: {found_jobs: 'slowdown:1.1'}", false},
    {"search.slack", "search: {slack: 1 %}", true},
    {"search.clocks", "search: {clocks: true}", true},
    {"search.history", "search: {history: 30 d}", false},
    {"search.looks", "search: {looks: 2}", true},
    {"search.reference_share", "search: {reference_share: 1 %}", true},
    {"policy.file", "policy: {file: /srv/policy.yaml}", false},
    {"waste.idle_after", "waste: {idle_after: 10 min}", false},
    {"waste.under", "waste: {under: 5 %}", false},
    {"waste.under_for", "waste: {under_for: 1 h}", false},
    {"accounting.market", "accounting: {market: /srv/m.csv}", false},
    {"accounting.embodied", "accounting: {embodied: [{board: NVIDIA H100 80GB HBM3, g_per_hour: 3.4, origin: its maker}]}", false},
    {"ledger.path", "ledger: {path: /srv/l.sqlite}", true},
    {"ledger.keep.fine", "ledger: {keep: {fine: 3 d}}", false},
    {"ledger.keep.minute", "ledger: {keep: {minute: 30 d}}", false},
    {"ledger.keep.hour", "ledger: {keep: {hour: 500 d}}", false},
    {"api.socket", "api: {socket: /run/u.sock}", true},
    {"api.job_socket", "api: {job_socket: /run/j.sock}", true},
    {"api.tcp.certificate", "api: {tcp: {certificate: /etc/c.pem}}", true},
    {"api.tcp.key", "api: {tcp: {key: /etc/k.pem}}", true},
    {"api.tcp.tokens", "api: {tcp: {tokens: /etc/t}}", false},
    {"api.limits.connections", "api: {limits: {connections: 100}}", true},
    {"api.limits.per_client", "api: {limits: {per_client: 10}}", false},
    {"api.limits.requests", "api: {limits: {requests: 7}}", false},
    {"api.limits.followers", "api: {limits: {followers: 7}}", false},
    {"api.limits.idle", "api: {limits: {idle: 7 s}}", false},
    {"metrics.enabled", "metrics: {enabled: false}", false},
    {"metrics.per_job", "metrics: {per_job: false}", false},
    {"metrics.max_jobs", "metrics: {max_jobs: 5}", false},
    {"metrics.listen", "metrics: {listen: '127.0.0.1:9445'}", true},
    {"metrics.hpc_job_mapping_dir", "metrics: {hpc_job_mapping_dir: /run/map}", true},
    {"zeusd.socket", "zeusd: {socket: /run/zeusd.sock}", true},
    {"actuator.socket", "actuator: {socket: /run/a.sock}", true},
};

static const struct { const char *name, *text; int r; const char *words; } bad[] = {
    {"an unknown section", "cluster: {}", -EINVAL, "c.yaml:1: unknown key 'cluster'"},
    {"a near section", "nodes: {}", -EINVAL, "c.yaml:1: unknown key 'nodes': did you mean 'node'?"},
    {"an unknown key", "node:\n  admin: x", -EINVAL, "c.yaml:2: unknown key 'node.admin'"},
    {"an unknown deep key", "api:\n  tcp:\n    port: 1", -EINVAL, "c.yaml:3: unknown key 'api.tcp.port'"},
    {"a mistyped section", "cap: {}", -EINVAL, "c.yaml:1: unknown key 'cap': did you mean 'caps'?"},
    {"a mistyped deep key", "api: {tcp: {listn: 1}}", -EINVAL, "c.yaml:1: unknown key 'api.tcp.listn': did you mean 'listen'?"},
    {"the keys of a value", "ledger: {keep: {fine: 3}}", -EINVAL, "c.yaml:1: ledger.keep.fine: '3' has no unit"},
    {"a list for a section", "metrics: []", -EINVAL, "c.yaml:1: metrics: a map of keys is wanted here, not a list"},
    {"a dotted key", "node.interval: 5 s", -EINVAL, "c.yaml:1: unknown key 'node.interval'"},
    {"a key twice", "node: {log: info}\nnode: {log: info}", -EINVAL, "c.yaml:2:"},
    {"no YAML", "node: {", -EINVAL, "c.yaml:"},
    {"a list at the top", "- node", -EINVAL, "c.yaml:1: a map"},
    {"a section that is a value", "node: 5", -EINVAL, "c.yaml:1: node: a map"},
    {"a bare duration", "node:\n  interval: 10", -EINVAL, "c.yaml:2: node.interval: '10' has no unit: write '10 s'"},
    {"a duration in watts", "node: {interval: 10 W}", -EINVAL, "c.yaml:1: node.interval: '10 W' has no unit known"},
    {"too short an interval", "node: {interval: 10 ms}", -ERANGE, "node.interval: 0.01 s is outside 1..600 s"},
    {"too long an interval", "node: {interval: 1 h}", -ERANGE, "outside 1..600 s"},
    {"a negative duration", "node: {interval: -1 s}", -ERANGE, "c.yaml:1: node.interval: '-1 s' is below 0 s"},
    {"a claim of no length", "caps: {users: {longest: 0 s}}", -ERANGE, "caps.users.longest: 0 s is outside 1 s..365 d"},
    {"a word of none", "node: {log: loud}", -EINVAL, "'loud' is none of: error"},
    {"no bool", "node: {dry_run: yes}", -EINVAL, "'yes' is none of: false, true"},
    {"a list where a value is", "node: {hostname: [a]}", -EINVAL, "c.yaml:1:"},
    {"too long a text", "node: {admin_group: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}", -EINVAL, "node.admin_group: longer than 63 bytes"},
    {"boards as a text", "boards: {only: '0,1'}", -EINVAL, "c.yaml:1: boards.only: must be a list"},
    {"a range of boards upside down", "boards: {only: [7-3]}", -EINVAL, "c.yaml:1: boards.only: '7-3' is neither an index nor a range"},
    {"an empty board", "boards: {only: ['']}", -EINVAL, "boards.only: an entry of the list is empty"},
    {"no boards", "boards:\n  only: []", -EINVAL, "c.yaml:2: boards.only: is empty: leave the key out for all boards"},
    {"a board of another name", "boards: {only: [0, x]}", -EINVAL, "c.yaml:1: boards.only: 'x' is neither an index, nor a range (0-3), nor the beginning of a UUID"},
    {"an empty hostname", "node:\n  hostname: ''", -EINVAL, "c.yaml:2: node.hostname: is empty"},
    {"fewer connections than a client may have", "api:\n  limits:\n    connections: 9", -ERANGE, "connections (9) is below per_client (64)"},
    {"two boards in one", "boards:\n  only:\n    - 0\n    - 1,2", -EINVAL, "c.yaml:4: boards.only: '1,2'"},
    {"a hostname with a zero-width space", "node:\n  hostname: a\u200bb", -EINVAL, "c.yaml:2: node.hostname: contains a control or invisible"},
    {"the same by escape", "node: {hostname: \"a\\u200bb\"}", -EINVAL, "node.hostname: contains a control or invisible"},
    {"a group that turns direction", "node: {admin_group: \"a\\u202eb\"}", -EINVAL, "node.admin_group: contains a control"},
    {"a path with a soft hyphen", "ledger: {path: \"/a\\u00adb\"}", -EINVAL, "ledger.path: contains a control"},
    {"a class with a joiner in its name", "caps: {classes: {\"a\\u200d\": {floor: 50 %}}}", -EINVAL, "a class's name contains a control"},
    {"a relative path", "ledger: {path: l.sqlite}", -EINVAL, "ledger.path: 'l.sqlite' is not an absolute path"},
    {"no ledger", "ledger: {path: ''}", -EINVAL, "ledger.path may not be empty"},
    {"no socket", "api:\n  socket: ''", -EINVAL, "c.yaml:2: api.socket may not be empty"},
    {"too long a socket", "api: {socket: /aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}", -EINVAL, "api.socket: longer than 107 bytes"},
    {"a cap without a unit", "caps:\n  users:\n    from: 250", -EINVAL, "c.yaml:3: caps.users.from: '250' has no unit: write '250 W', or a percentage such as '85 %'"},
    {"a cap of 0", "caps: {users: {to: 0 W}}", -ERANGE, "a cap is more than 0 W"},
    {"a cap over 100 %", "caps: {users: {to: 101 %}}", -ERANGE, "caps.users.to: '101 %'"},
    {"a budget without a unit", "budget:\n  node: 2400", -EINVAL, "c.yaml:2: budget.node: '2400' has no unit"},
    {"a budget of 0", "budget: {node: 0 W}", -ERANGE, "budget.node: '0 W': a budget is more than 0 W, or none"},
    {"a budget in percent", "budget: {node: 80 %}", -EINVAL, "c.yaml:1: budget.node: '80 %'"},
    {"a range upside down", "caps:\n  users: {from: 300 W,\n    to: 200 W}", -ERANGE, "c.yaml:2: caps.users.from is above caps.users.to"},
    {"percents upside down", "caps: {users: {from: 90 %, to: 50 %}}", -ERANGE, "is above"},
    {"a class without a name", "caps: {classes: {\"\": {floor: 50 %}}}", -EINVAL, "caps.classes: a class has no name"},
    {"a class without a map", "caps: {classes: {a: 5}}", -EINVAL, "c.yaml:1: caps.classes.a: a map"},
    {"an unknown key of a class", "caps:\n  classes:\n    a:\n      last: 5 %", -EINVAL, "c.yaml:4: unknown key 'last'"},
    {"a bare floor", "caps: {classes: {a: {floor: 50}}}", -EINVAL, "caps.classes.a.floor: '50' is not of the form"},
    {"no number before %", "caps: {classes: {a: {floor: x%}}}", -EINVAL, "is not of the form"},
    {"a floor over 100 %", "caps: {classes: {a: {floor: 120 %}}}", -ERANGE, "120 % is outside 1..100 %"},
    {"a floor of 0", "caps: {classes: {a: {floor: 0 %}}}", -ERANGE, "c.yaml:1: caps.classes.a.floor: 0 % is outside 1..100 %"},
    {"a first cap too low", "caps: {classes: {a: {first: 50 %}}}", -ERANGE, "50 % is outside 85..100 %"},
    {"a ramp without a time", "caps: {classes: {a: {ramp: 5 %}}}", -EINVAL, "caps.classes.a.ramp: '5 %'"},
    {"a ramp of 0", "caps: {classes: {a: {ramp: 0 %/s}}}", -ERANGE, "outside 0.01..100 %"},
    {"an unknown goal", "search: {found_jobs: best}", -EINVAL, "c.yaml:1: search.found_jobs:"},
    {"a share without its unit", "search: {reference_share: 1}", -EINVAL,
     "c.yaml:1: search.reference_share: '1' is not of the form"},
    {"slack too large", "search: {slack: 6 %}", -ERANGE, "6 % is outside 0..5 %"},
    {"too many looks", "search: {looks: 17}", -ERANGE, "17 is outside 0..16"},
    {"a share too large", "search: {reference_share: 50 %}", -ERANGE, "50 % is outside 0..5 %"},
    {"a goal out of range", "search: {found_jobs: 'eds:0'}", -ERANGE, "search.found_jobs:"},
    {"a count with a unit", "api: {limits: {requests: 5 s}}", -EINVAL, "c.yaml:1:"},
    {"too large a count", "metrics: {max_jobs: 1000}", -ERANGE, "metrics.max_jobs: 1000 is outside 1..256"},
    {"TCP without a certificate", "api:\n  tcp:\n    listen: '*:8443'", -EINVAL, "c.yaml:3: api.tcp.listen needs api.tcp.certificate"},
    {"metrics for everybody", "metrics:\n  listen: 0.0.0.0:9445", -EPERM, "c.yaml:2: metrics.listen: '0.0.0.0:9445' is not a loopback address (127.0.0.1, [::1]): other addresses need TLS (api.tcp)"},
    {"a port above the last", "metrics: {listen: '127.0.0.1:99999'}", -EINVAL, "'127.0.0.1:99999': port 99999 is outside 0..65535"},
    {"metrics at a name", "metrics: {listen: 'localhost:9445'}", -EINVAL, "'localhost:9445' is not a numeric address"},
    {"TCP without a key", "api: {tcp: {listen: 'a:1', certificate: /c}}", -EINVAL, "needs api.tcp.key"},
    {"TCP without tokens", "api: {tcp: {listen: 'a:1', certificate: /c, key: /k}}", -EINVAL, "needs api.tcp.tokens"},
    {"TCP without a port", "api: {tcp: {listen: localhost}}", -EINVAL, "is not of the form HOST:PORT"},
    {"sampling the wrong way round", "sampling:\n  job: 5 s", -ERANGE, "search <= job <= rest"},
    {"a bare number of minutes", "waste: {idle_after: 5}", -EINVAL, "has no unit"},
    {"underused in seconds", "waste: {under_for: 5 s}", -ERANGE, "waste.under_for: 5 s is outside 60..86400 s"},
    {"contracts at a relative path", "accounting: {market: m.csv}", -EINVAL, "accounting.market: 'm.csv' is not an absolute path"},
    {"grams as a map", "accounting: {embodied: {A: 3.4}}", -EINVAL, "c.yaml:1: accounting.embodied: a list"},
    {"grams without an origin", "accounting:\n  embodied:\n  - {board: A, g_per_hour: 3.4}", -EINVAL, "c.yaml:3:"},
    {"an unknown key of grams", "accounting: {embodied: [{board: A, g_per_hour: 3.4, origin: x, kg: 1}]}", -EINVAL, "unknown key 'kg'"},
    {"grams under 0", "accounting:\n  embodied:\n  - {board: A, g_per_hour: -1, origin: x}", -ERANGE, "c.yaml:3: accounting.embodied: A: -1 g an hour is outside 0..10000"},
    {"a board twice", "accounting:\n  embodied:\n  - {board: A, g_per_hour: 1, origin: x}\n  - {board: A, g_per_hour: 1, origin: x}", -EEXIST, "c.yaml:4: accounting.embodied: A is there twice"},
    {"an empty origin", "accounting: {embodied: [{board: A, g_per_hour: 1, origin: ''}]}", -EINVAL, "the origin '' is no plain text"},
    {"a PUE", "accounting: {pue: 1.2}", -EINVAL, "c.yaml:1: unknown key 'accounting.pue'"},
    {"keeping the wrong way round", "ledger: {keep: {fine: 100 d}}", -ERANGE, "fine <= minute <= hour"},
};
/* clang-format on */

struct diff {
    char keys[200];
    bool restart;
};

static void on_diff(const char *key, bool restart, void *user)
{
    struct diff *d = user;
    size_t used = strlen(d->keys);

    (void)snprintf(d->keys + used, sizeof d->keys - used, "%s%s", used ? " " : "", key);
    d->restart = restart;
}

static void every_key(void)
{
    struct node_config defaults;
    uw_error err = {""};
    size_t n = 0;

    ok(node_config_init(&defaults, NULL, &err) == 0, "the defaults");
    while (node_config_key(n))
        n++;
    is_int(n, n_elements(good) + 1,
           "the table has a case for each key (api.tcp.listen "
           "apart)");
    for (size_t i = 0; i < n_elements(good); i++) {
        struct node_config c = defaults;
        struct diff d = {0};
        err = (uw_error){""};
        int r = read_text(&c, good[i].text, &err);
        size_t differ = node_config_diff(&defaults, &c, on_diff, &d);
        if (!ok(r == 0 && differ == 1 && strcmp(d.keys, good[i].key) == 0 &&
                    d.restart == good[i].restart,
                "%s is read, and it alone differs", good[i].key))
            printf("# %s; differ: '%s' restart %d\n", err.text, d.keys, d.restart);
    }
}

static void every_error(void)
{
    struct node_config before, c;
    uw_error err;

    (void)node_config_init(&before, NULL, NULL);
    (void)read_text(&before, "node: {log: debug}", NULL);
    for (size_t i = 0; i < n_elements(bad); i++) {
        c = before;
        err = (uw_error){""};
        int r = read_text(&c, bad[i].text, &err);
        if (!ok(r == bad[i].r && strstr(err.text, bad[i].words) &&
                    strncmp(err.text, "c.yaml:", 7) == 0 &&
                    memcmp(&c, &before, sizeof c) == 0,
                "%s is refused, nothing changes", bad[i].name))
            printf("# r %d: %s\n", r, err.text);
    }
    char many[4096] = "caps:\n  classes:\n";
    for (unsigned i = 0; i < CONFIG_CLASSES_MAX; i++) {
        size_t used = strlen(many);
        (void)snprintf(many + used, sizeof many - used, "    c%u: {floor: 1 %%}\n", i);
    }
    int r = read_text(&c, many, &err);
    ok(r == -E2BIG && strstr(err.text, "more than 32 classes"), "too many classes: %s",
       err.text);
    r = node_config_file(&c, "/nonexistent/c.yaml", &err);
    ok(r == -ENOENT && strstr(err.text, "/nonexistent/c.yaml"), "no such file: %s",
       err.text);
}

static void values(void)
{
    struct node_config c;
    uw_error err = {""};

    (void)node_config_init(&c, NULL, NULL);
    int r = read_text(&c,
                      "caps:\n  users: {from: 50 %, to: 220 W}\n"
                      "  classes:\n    default: {floor: 60%}\n"
                      "    live: {first: 95 %, ramp: at once}\n"
                      "boards: {only: [1, GPU-a]}\n"
                      "node:\n# all of it commented out\njobs: {look: 500 ms}\n",
                      &err);
    ok(r == 0, "a longer file %s", err.text);
    is_str(c.boards.only, "1,GPU-a", "a list is joined");
    is_int(c.jobs.look_ns, 500000000, "a duration");
    const struct cap_class *live = node_config_class(&c, "live");
    const struct cap_class *def = node_config_class(&c, "default");
    ok(live && live->rate <= 0 && live->first > 0.949 && live->floor >= 0.5,
       "a class: what it names not is the default's");
    ok(def && def->floor > 0.599 && def->floor < 0.601, "the default class can be set");
    ok(!node_config_class(&c, "dead"), "no such class");
    r = read_text(&c,
                  "accounting:\n  embodied:\n  - {board: B1, g_per_hour: 0, origin: a, "
                  "b}\n",
                  &err);
    ok(r == -EINVAL, "a comma in an origin wants quotes: %s", err.text);
    r = read_text(
        &c,
        "accounting:\n  embodied:\n  - {board: B1, g_per_hour: 0, origin: 'a, b'}"
        "\n  - board: B2\n    g_per_hour: 2.5\n    origin: its maker\n",
        &err);
    ok(r == 0 && c.accounting.embodied.n == 2 &&
           strcmp(c.accounting.embodied.of[0].origin, "a, b") == 0 &&
           strcmp(c.accounting.embodied.of[1].model, "B2") == 0 &&
           fabs(c.accounting.embodied.of[1].g_hour - 2.5) < 1e-9,
       "grams of two boards %s", err.text);

    static const struct gpu_limits v100 = {100000, 300000, 250000},
                                   small = {100000, 200000, 200000};
    uint32_t from = 0, to = 0;
    node_config_range(&c, &v100, &from, &to);
    ok(from == 125000 && to == 220000, "what users may claim: %u..%u", from, to);
    node_config_range(&c, &small, &from, &to);
    ok(from == 100000 && to == 200000, "… never beyond the board: %u..%u", from, to);
    (void)node_config_init(&c, NULL, NULL);
    node_config_range(&c, &v100, &from, &to);
    ok(from == 100000 && to == 300000, "… by default the board's own range");
    ok(read_text(&c, "", &err) == 0 && read_text(&c, "# nothing\n", &err) == 0,
       "an empty file is valid");
}

static void worlds(void)
{
    struct node_config c;
    char deep[200], dir[64];
    uw_error err = {""};

    ok(node_config_init(&c, "/tmp/w", &err) == 0, "a simulated world's defaults");
    is_str(c.api.socket, "/tmp/w/underwattd/underwattd.sock", "… its socket");
    is_str(c.ledger.path, "/tmp/w/underwattd/ledger.sqlite", "… its ledger");
    is_str(c.actuator_socket, "/tmp/w/actuator/actuator.sock", "… its actuator");
    ok(node_config_world_dir("/tmp/w", dir, sizeof dir, &err) == 0 &&
           strcmp(dir, "/tmp/w/underwattd") == 0,
       "… its folder");
    memset(deep, 'a', sizeof deep - 1);
    deep[0] = '/';
    deep[sizeof deep - 1] = '\0';
    memset(&c, 7, sizeof c);
    ok(node_config_init(&c, deep, &err) == -ENAMETOOLONG && c.node.log == 0x07070707,
       "too deep a world: nothing is written");
}

/* A reload takes over what is marked so, and nothing else. */
static void live(void)
{
    for (size_t i = 0; i < n_elements(good); i++) {
        struct node_config c, new;
        struct diff d = {0};
        uw_error err = {""};
        (void)node_config_init(&c, NULL, &err);
        (void)node_config_init(&new, NULL, &err);
        (void)read_text(&new, good[i].text, &err);
        node_config_take_live(&c, &new);
        size_t n = node_config_diff(&c, &new, on_diff, &d);
        ok(n == good[i].restart, "%s: %s", good[i].key,
           good[i].restart ? "stays what it was" : "is taken over");
    }
}

/* A key's line says "restart" where, and only where, a reload is not enough. */
static void restart_is_told(const char *key, const char *line)
{
    const char *end = strchr(line, '\n'), *word = strstr(line, "restart)");
    bool told = word && end && word < end;

    for (size_t i = 0; i < n_elements(good); i++)
        if (strcmp(good[i].key, key) == 0 && told != good[i].restart)
            ok(false, "%s: the page is wrong about a restart", key);
}

/* The page has each key, and no other. */
static void page(const char *path)
{
    auto_(mem_free) char *text = NULL;
    char want[120];
    uw_error err = {""};
    bool all = file_read(path, 1 << 20, &text, NULL, &err) == 0;

    for (size_t i = 0; all && node_config_key(i); i++) {
        (void)snprintf(want, sizeof want, "\n*%s* _", node_config_key(i));
        char *at = strstr(text, want);
        (void)snprintf(want, sizeof want, "\n*%s* *", node_config_key(i));
        at = at ? at : strstr(text, want);
        if (!ok(at != NULL, "%s is in the manual page", node_config_key(i)))
            all = false;
        else
            restart_is_told(node_config_key(i), at + 1);
    }
    for (char *p = text; p && (p = strstr(p, "\n*")) != NULL; p += 2) {
        size_t len = strcspn(p + 2, "* \n"), i = 0;
        if (!memchr(p + 2, '.', len))
            continue;
        while (node_config_key(i) && (strlen(node_config_key(i)) != len ||
                                      strncmp(node_config_key(i), p + 2, len) != 0))
            i++;
        if (!node_config_key(i))
            ok(false, "the page has '%.*s', which is no key", (int)len, p + 2);
    }
    ok(all, "%s was compared", path);
}

int main(int argc, char **argv)
{
    every_key();
    every_error();
    values();
    worlds();
    live();
    if (argc > 1)
        page(argv[1]);
    return done();
}
