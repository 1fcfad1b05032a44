/* Conditions: what they come to, and what is said of wrong ones. */
#include "core/policy/condition.h"

#include <errno.h>
#include <stdlib.h>

#include "base/units.h"
#include "policy-signals.h"
#include "tap.h"

/* clang-format off */
static const struct {
    const char *text, *error;
} wrong[] = {
    {"", "column 1: a condition is expected"},
    {"   ", "column 1: a condition is expected"},
    {"carbn > 400 g/kWh", "column 1: there is no signal 'carbn': did you mean 'carbon'?"},
    {"zzz > 1", "column 1: there is no signal 'zzz'"},
    {"job.phase == zzz", "column 14: there is no signal 'zzz'; a text stands in quotes: 'text'"},
    {"queue.depth >= zzz", "column 16: there is no signal 'zzz'"},
    {"true and queue.dpeth > 1", "column 10: there is no signal 'queue.dpeth': did you mean 'queue.depth'?"},
    {"carbon > 400 W", "column 10: carbon is in g/kWh, 400 W is in W"},
    {"carbon > 400", "column 10: carbon is in g/kWh, 400 is a plain number"},
    {"400 W < carbon", "column 1: carbon is in g/kWh, 400 W is in W"},
    {"carbon > price", "column 10: carbon is in g/kWh, price is in EUR/kWh"},
    {"queue.depth > 4 W", "column 15: queue.depth is a plain number, 4 W is in W"},
    {"price > 0.3 USD/kWh", "column 9: price is in EUR/kWh, 0.3 USD/kWh is in USD/kWh"},
    {"price * tariff > 1", "column 9: '*' of what is in EUR/kWh and what is in USD/kWh has no unit"},
    {"rack.power * rack.power > 1 W", "column 27: rack.power * rack.power is in W^2, 1 W is in W"},
    {"tariff * rack.power > 1 W", "column 23: tariff * rack.power is in USD/h, 1 W is in W"},
    {"tariff / queue.wait > 1 W", "column 23: tariff / queue.wait is in W^-1 s^-2 USD, 1 W is in W"},
    {"carbon + 3 W > 1 W", "column 10: carbon is in g/kWh, 3 W is in W"},
    {"min(carbon, 3 W) > 1 W", "column 13: carbon is in g/kWh, 3 W is in W"},
    {"carbon > 400 gr/kWh", "column 14: 'gr' is no unit"},
    {"rack.power > 4 kw", "column 16: 'kw' is no unit: did you mean 'kW'?"},
    {"rack.power > 4 kWx", "column 16: 'kWx' is no unit: did you mean 'kW'?"},
    {"board.temperature > 300 K", "column 21: board.temperature is in °C, 300 K is in K"},
    {"board.temperature + outside > 1 °C", "column 21: two temperatures in °C have no sum"},
    {"5 K - outside > 1 °C", "column 7: a temperature in °C is not taken from a difference"},
    {"2 * outside > 1 °C", "column 5: outside is a temperature in °C: '*' takes differences, in K"},
    {"abs(outside) > 1 °C", "column 4: (outside) is a temperature in °C: abs takes differences, in K"},
    {"-outside > 1 °C", "column 2: outside is a temperature in °C: '-' takes differences, in K"},
    {"job.phase < 3", "column 13: job.phase is a text, 3 is a plain number"},
    {"job.phase < 'x'", "column 1: job.phase is a text: only == and != compare it"},
    {"shut < true", "column 1: shut is true or false: only == and != compare it"},
    {"job.phase == 'validat'", "column 15: job.phase is never 'validat': did you mean 'validate'?"},
    {"'x' != job.phase", "column 2: job.phase is never 'x'"},
    {"job.phase", "column 1: a condition is true or false, job.phase is a text"},
    {"carbon", "column 1: a condition is true or false, carbon is in g/kWh"},
    {"queue.depth + 1", "column 1: a condition is true or false, queue.depth + 1 is a plain number"},
    {"carbon and true", "column 1: carbon is in g/kWh, 'and' takes what is true or false"},
    {"true or 'x'", "column 10: x is a text, 'or' takes what is true or false"},
    {"not carbon", "column 5: carbon is in g/kWh, 'not' takes what is true or false"},
    {"shut + 1 > 2", "column 1: shut is true or false, '+' takes numbers"},
    {"abs('x') > 2", "column 4: ('x') is a text, abs takes numbers"},
    {"(carbon > 400 g/kWh", "column 1: this parenthesis is not closed"},
    {"carbon > 400 g/kWh)", "column 19: this parenthesis was never opened"},
    {"(shut shut)", "column 7: an operator or ')' is expected here"},
    {"shut shut", "column 6: an operator is expected here"},
    {"carbon >", "column 9: a value is missing at the end"},
    {"> 3", "column 1: a value is expected here, not '>'"},
    {"1 < queue.depth < 3", "column 17: compare two values: 'a < b and b < c'"},
    {"queue.depth = 3", "column 13: '=' means nothing here: write =="},
    {"shut && true", "column 6: '&&' means nothing here: write and"},
    {"!shut", "column 1: '!' means nothing here: write not"},
    {"job.user == \"x\"", "column 13: '\"' means nothing here: write single quotes"},
    {"job.user == 'x", "column 13: this quote is not closed"},
    {"shut ; shut", "column 6: ';' means nothing here"},
    {"shut \x01", "column 6: a character that is not plain text"},
    {"job.user == 'a\x02'", "column 15: a character that is not plain text"},
    {"outside > 5 °C x", "column 16: an operator is expected here"},
    {"queue.depth > 1 / 0", "column 19: division by zero"},
    {"queue.depth > 1e14 * 1e300", "column 22: '1e300' is too large"},
    {"queue.depth > 1e15*1e15*1e15*1e15*1e15*1e15*1e15*1e15*1e15*1e15*1e15*1e15*1e15*1e15*1e15*1e15*1e15*1e15*1e15*1e15*1e15", "column 115: too large"},
    {"queue.depth > 0.000000000000000000000000000000001", "column 15: a number has 32 characters at most"},
    {"queue.depth.mean(1 h) > 1", "column 1: queue.depth has neither history nor forecast"},
    {"carbon.mean(3) > 1 g/kWh", "column 13: '3' must be a time above 0 s and at most 14 days ('24 h')"},
    {"carbon.mean(15 d) > 1 g/kWh", "column 13: '15 d' must be a time above 0 s and at most 14 days ('24 h')"},
    {"carbon.percentile(24 h) > 1 g/kWh", "column 19: a percentile is a number from 0 to 100"},
    {"carbon.percentile(101, 24 h) > 1 g/kWh", "column 19: a percentile is a number from 0 to 100"},
    {"carbon.percentile(90) > 1 g/kWh", "column 21: a comma and a time ('24 h') is expected here"},
    {"carbon.mean(1 h > 3 W", "column 17: ')' is expected here"},
    {"carbon.forecast > 1 g/kWh", "column 1: carbon.forecast has no value now: write carbon.forecast.mean(24 h)"},
    {"carbon(3) > 1 g/kWh", "column 1: carbon is a signal: .mean, .min, .max, .percentile stand before '('"},
    {"carbon.median(3 h) > 1 g/kWh", "column 1: there is no signal 'carbon.median'"},
    {"min(carbon) > 1 g/kWh", "column 4: min and max take two values or more, with commas between"},
    {"max(1, 2 > 1", "column 8: 2 > 1 is true or false, max takes numbers"},
    {"((((((((((((((((((shut))))))))))))))))))", "column 17: too deep: at most 16 inside each other"},
    {"not not not not not not not not not not not not not not not not not shut", "column 65: too deep: at most 16 inside each other"},
};
/* clang-format on */

static void test_wrong(void)
{
    static struct policy_reads reads;
    static struct policy_condition c;
    uw_error err;

    for (size_t i = 0; i < n_elements(wrong); i++) {
        c.n_ops = 7;
        err.text[0] = '\0';
        int r = policy_condition_read(wrong[i].text, &test_catalogue, &reads, &c, &err);
        ok(r == -EINVAL && reads.n == 0 && c.n_ops == 7,
           "refused, nothing changed: %.60s", wrong[i].text);
        is_str(err.text, wrong[i].error, "… and says why");
    }
}

/* Values as "carbon=410 job.phase=train shut=true"; a name that is left out is unknown.
 */
static void give_all(struct test_values *t, const char *text)
{
    static char texts[4][40]; /* of the last values */
    char name[40], value[40];
    int used = 0;

    for (size_t i = 0; sscanf(text, " %39[^= ]=%39s%n", name, value, &used) == 2; i++) {
        int at = policy_signal_find(&test_catalogue, name, strlen(name));
        double number = 0;
        text += used;
        if (test_signals[at].type == POLICY_TRUTH)
            give_truth(t, name, strcmp(value, "true") == 0);
        else if (test_signals[at].type == POLICY_TEXT)
            give_text(t, name, memcpy(texts[i], value, sizeof value));
        else if (parse_double(value, &number, NULL) == 0)
            give_number(t, name, number);
    }
}

static struct policy_condition read_condition(const char *text, struct test_values *t)
{
    struct policy_condition c = {0};
    uw_error err;

    if (policy_condition_read(text, &test_catalogue, &t->reads, &c, &err) < 0)
        ok(false, "%s: %s", text, err.text);
    return c;
}

/* clang-format off */
static const struct {
    const char *text, *values;
    enum policy_truth off, on; /* as long as the rule is off; on, with a hysteresis of 10 % */
} right[] = {
    {"true", "", POLICY_TRUE, POLICY_TRUE},
    {"carbon > 400 g/kWh and not job.critical", "carbon=410 job.critical=false", POLICY_TRUE, POLICY_TRUE},
    {"carbon > 400 g/kWh and not job.critical", "carbon=410 job.critical=true", POLICY_FALSE, POLICY_FALSE},
    {"carbon > 400 g/kWh and not job.critical", "carbon=410", POLICY_UNKNOWN, POLICY_UNKNOWN},
    {"carbon > 400 g/kWh and not job.critical", "job.critical=true", POLICY_FALSE, POLICY_FALSE},
    {"carbon > 0.4 kg/kWh", "carbon=401", POLICY_TRUE, POLICY_TRUE},
    {"carbon > 0.4 kg/kWh", "carbon=399", POLICY_FALSE, POLICY_TRUE},
    {"price > 0.35 EUR/kWh or price > 1.5 * price.mean(24 h)", "price=0.36", POLICY_TRUE, POLICY_TRUE},
    {"price > 350 EUR/MWh", "price=0.34", POLICY_FALSE, POLICY_TRUE},
    {"job.phase == 'validation'", "job.phase=validate", POLICY_TRUE, POLICY_TRUE},
    {"'validate' == job.phase", "job.phase=train", POLICY_FALSE, POLICY_FALSE},
    {"job.phase != 'validate'", "job.phase=train", POLICY_TRUE, POLICY_TRUE},
    {"job.phase != 'validate'", "", POLICY_UNKNOWN, POLICY_UNKNOWN},
    {"job.phase == job.class", "job.phase=train job.class=train", POLICY_TRUE, POLICY_TRUE},
    {"queue.depth == 0 and queue.wait < 1 min", "queue.depth=0 queue.wait=59", POLICY_TRUE, POLICY_TRUE},
    {"queue.depth == 0 and queue.wait < 1 min", "queue.depth=0 queue.wait=65", POLICY_FALSE, POLICY_TRUE},
    {"rack.power > 38 kW", "rack.power=38", POLICY_FALSE, POLICY_TRUE},
    {"rack.power >= 38 kW", "rack.power=38", POLICY_TRUE, POLICY_TRUE},
    {"38000 W < rack.power", "rack.power=35", POLICY_FALSE, POLICY_TRUE},
    {"rack.power <= 0.04 MW", "rack.power=43", POLICY_FALSE, POLICY_TRUE},
    {"rack.power <= 0.04 MW", "rack.power=45", POLICY_FALSE, POLICY_FALSE},
    {"rack.power == 38 kW", "rack.power=37.9", POLICY_FALSE, POLICY_FALSE},
    {"rack.power / 8 > 4.7 kW", "rack.power=37", POLICY_FALSE, POLICY_FALSE},
    {"rack.power * price > 10 EUR/h", "rack.power=38 price=0.3", POLICY_TRUE, POLICY_TRUE},
    {"carbon * rack.power > 1 kg/h", "rack.power=3 carbon=400", POLICY_TRUE, POLICY_TRUE},
    {"rack.power * 2 h > 70 kWh", "rack.power=38", POLICY_TRUE, POLICY_TRUE},
    {"rack.power / board.power > 9.5", "rack.power=1 board.power=100", POLICY_TRUE, POLICY_TRUE},
    {"rack.power/board.power > 9.5", "rack.power=1 board.power=100", POLICY_TRUE, POLICY_TRUE},
    {"outside > -10 °C", "outside=-10.5", POLICY_FALSE, POLICY_TRUE},
    {"outside > -10 °C", "outside=-11.5", POLICY_FALSE, POLICY_FALSE},
    {"outside < - 10 °C", "outside=-9.5", POLICY_FALSE, POLICY_TRUE},
    {"outside > 0 °C", "outside=-0.1", POLICY_FALSE, POLICY_FALSE},
    {"board.temperature - outside > 40 K", "board.temperature=71 outside=30", POLICY_TRUE, POLICY_TRUE},
    {"outside + 40 K < board.temperature", "board.temperature=71 outside=30", POLICY_TRUE, POLICY_TRUE},
    {"outside - 5 K > 20 °C", "outside=26", POLICY_TRUE, POLICY_TRUE},
    {"load > 90 %", "load=91", POLICY_TRUE, POLICY_TRUE},
    {"load > 0.9", "load=91", POLICY_TRUE, POLICY_TRUE},
    {"not load > 90 %", "load=89", POLICY_TRUE, POLICY_TRUE},
    {"not load > 90 %", "load=95", POLICY_FALSE, POLICY_TRUE},
    {"not (load > 90 % and shut)", "load=95 shut=true", POLICY_FALSE, POLICY_TRUE},
    {"not not load > 90 %", "load=85", POLICY_FALSE, POLICY_TRUE},
    {"(load > 90 %) == shut", "load=85 shut=true", POLICY_FALSE, POLICY_FALSE},
    {"(load > 90 %) != shut", "load=85 shut=true", POLICY_TRUE, POLICY_TRUE},
    {"min(load, 95 %, 97 %) > 90 %", "load=100", POLICY_TRUE, POLICY_TRUE},
    {"max(load, 95 %) > 96 %", "load=10", POLICY_FALSE, POLICY_FALSE},
    {"max(load, 95 %) > 96 %", "", POLICY_UNKNOWN, POLICY_UNKNOWN},
    {"abs(queue.depth - 5) <= 2", "queue.depth=3", POLICY_TRUE, POLICY_TRUE},
    {"abs(-queue.depth) == 3", "queue.depth=3", POLICY_TRUE, POLICY_TRUE},
    {"- - queue.depth == 3", "queue.depth=3", POLICY_TRUE, POLICY_TRUE},
    {"1 / queue.depth > 0", "queue.depth=0", POLICY_UNKNOWN, POLICY_UNKNOWN},
    {"0 * queue.depth == 0", "", POLICY_UNKNOWN, POLICY_UNKNOWN},
    {"known(carbon)", "", POLICY_FALSE, POLICY_FALSE},
    {"known(carbon)", "carbon=1", POLICY_TRUE, POLICY_TRUE},
    {"known(1 / queue.depth)", "queue.depth=0", POLICY_FALSE, POLICY_FALSE},
    {"known(carbon > 100 g/kWh) and shut", "shut=true", POLICY_FALSE, POLICY_FALSE},
    {"not known(carbon) or carbon > 400 g/kWh", "", POLICY_TRUE, POLICY_TRUE},
    {"shut == true", "shut=true", POLICY_TRUE, POLICY_TRUE},
    {"shut or carbon > 1 g/kWh", "shut=true", POLICY_TRUE, POLICY_TRUE},
    {"shut or carbon > 1 g/kWh", "shut=false", POLICY_UNKNOWN, POLICY_UNKNOWN},
    {"carbon > 1 g/kWh and shut", "shut=false", POLICY_FALSE, POLICY_FALSE},
    {"shut or shut and not shut", "shut=true", POLICY_TRUE, POLICY_TRUE},
    {"queue.depth > 2 + 3 * 4", "queue.depth=15", POLICY_TRUE, POLICY_TRUE},
    {"queue.depth > (2 + 3) * 4", "queue.depth=15", POLICY_FALSE, POLICY_FALSE},
    {"queue.depth - 3 - 2 == 10", "queue.depth=15", POLICY_TRUE, POLICY_TRUE},
    {"queue.depth > 1e1", "queue.depth=11", POLICY_TRUE, POLICY_TRUE},
    {"carbon.percentile(90, 24 h) < carbon", "carbon=11", POLICY_FALSE, POLICY_FALSE},
    {"carbon.percentile(90 %, 24 h) <= carbon and carbon.min(1 h) <= carbon.max(2 d)", "carbon=11", POLICY_TRUE, POLICY_TRUE},
    {"carbon.forecast.mean(1 h) > 3 g/kWh", "carbon.forecast=11", POLICY_TRUE, POLICY_TRUE},
    {"board.temperature > 83.5°C", "board.temperature=84", POLICY_TRUE, POLICY_TRUE},
};
/* clang-format on */

static void test_right(void)
{
    for (size_t i = 0; i < n_elements(right); i++) {
        struct test_values t = {0};
        struct policy_condition c = read_condition(right[i].text, &t);
        struct policy_result off, on;
        give_all(&t, right[i].values);
        policy_evaluate(&c, t.value, 0, 1, &off);
        policy_evaluate(&c, t.value, 0.1, 1, &on);
        ok(off.truth == right[i].off && on.truth == right[i].on, "%s, %s: %d, %d",
           right[i].text, right[i].values, off.truth, on.truth);
    }
}

/* A signal and a constant are one instruction where the signal stands first, else three:
 * both must come to the same.  The numbers have exact sums.
 */
static void test_sides(void)
{
    static const char *const sides[][2] = {
        {"queue.depth < 4", "4 > queue.depth"},
        {"queue.depth <= 4", "4 >= queue.depth"},
        {"queue.depth > 4", "4 < queue.depth"},
        {"queue.depth >= -4", "-4 <= queue.depth"},
        {"not queue.depth < 4", "not 4 > queue.depth"},
        {"not not queue.depth > 4", "not not 4 < queue.depth"},
        {"(queue.depth > 4) == shut", "(4 < queue.depth) == shut"},
        {"queue.depth == 4", "4 == queue.depth"},
        {"queue.depth != 4", "4 != queue.depth"},
        {"job.phase == 'train'", "'train' == job.phase"},
        {"job.phase != 'training'", "'training' != job.phase"},
        {"shut and queue.depth > 4", "shut and 4 < queue.depth"},
        {"queue.depth - 1 > 4 or queue.depth > 4",
         "4 < queue.depth - 1 or 4 < queue.depth"},
    };

    for (size_t i = 0; i < n_elements(sides); i++) {
        struct test_values t = {0};
        struct policy_condition a = read_condition(sides[i][0], &t),
                                b = read_condition(sides[i][1], &t);
        struct policy_result x, y;
        int same = 0;
        ok(a.n_ops < b.n_ops, "%s is shorter", sides[i][0]);
        for (int k = 0; k < 4 * 27; k++) {
            give(&t, "queue.depth",
                 (struct policy_value){.number = k % 27 / 2.0 - 6, .until_ns = 50});
            give_truth(&t, "shut", k % 2);
            give_text(&t, "job.phase", k % 3 ? "train" : "validate");
            policy_evaluate(&a, t.value, k < 54 ? 0 : 0.25, k % 2 ? 49 : 50, &x);
            policy_evaluate(&b, t.value, k < 54 ? 0 : 0.25, k % 2 ? 49 : 50, &y);
            same += x.truth == y.truth && x.due_ns == y.due_ns && x.unknown == y.unknown;
        }
        is_int(same, 4 * 27, "… and comes to what %s does", sides[i][1]);
    }
}

static void test_reads(void)
{
    struct test_values t = {0};
    struct policy_condition a = read_condition("carbon > 1 g/kWh and shut", &t);
    struct policy_condition b =
        read_condition("carbon.mean(1 h) > 1 g/kWh or carbon > 3 g/kWh", &t);
    uw_error err;

    is_int(t.reads.n, 3, "each value is read once for all conditions");
    ok(policy_condition_uses(&a, 0) && policy_condition_uses(&a, 1) &&
           !policy_condition_uses(&a, 2),
       "a condition names what it reads");
    ok(policy_condition_uses(&b, 0) && !policy_condition_uses(&b, 1) &&
           policy_condition_uses(&b, 2),
       "… and so does another");
    ok(policy_condition_read("carbon.max(1 h) > 1 g/kWh and nothing", &test_catalogue,
                             &t.reads, &a, &err) < 0 &&
           t.reads.n == 3,
       "a condition that is refused leaves no read behind");
    for (int i = 0; t.reads.n < POLICY_READS_MAX; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "carbon.mean(%d s) > 1 g/kWh", 100 + i);
        (void)read_condition(text, &t);
    }
    (void)policy_condition_read("known(price)", &test_catalogue, &t.reads, &a, &err);
    is_str(err.text, "column 7: too many: all conditions read at most 256 values",
           "more values than there is room for");
}

static void test_time(void)
{
    struct test_values t = {0};
    struct policy_condition c =
        read_condition("carbon > 400 g/kWh and queue.depth > 3", &t);
    struct policy_result result;

    give(&t, "carbon", (struct policy_value){.number = 500, .until_ns = 100});
    give(&t, "queue.depth", (struct policy_value){.number = 5, .until_ns = 70});
    policy_evaluate(&c, t.value, 0, 60, &result);
    ok(result.truth == POLICY_TRUE && result.due_ns == 70,
       "due when the first value is too old");
    policy_evaluate(&c, t.value, 0, 70, &result);
    ok(result.truth == POLICY_UNKNOWN && result.due_ns == 100 && result.unknown == 1,
       "a value is unknown from the end of its time on");
    policy_evaluate(&c, t.value, 0, 100, &result);
    ok(result.truth == POLICY_UNKNOWN && result.due_ns == UINT64_MAX &&
           result.unknown == 0,
       "never due again while all is unknown; the first unknown value is named");
    give_number(&t, "carbon", NAN);
    policy_evaluate(&c, t.value, 0, 1, &result);
    ok(result.truth == POLICY_UNKNOWN && result.unknown == 0,
       "what is no number is unknown");
}

static void test_constant(void)
{
    static const struct {
        const char *text;
        enum policy_truth is;
    } cases[] = {{"carbon > 1 g/kWh", POLICY_UNKNOWN},
                 {"carbon > 1 g/kWh and false", POLICY_FALSE},
                 {"1 > 2", POLICY_FALSE},
                 {"shut or 2 > 1", POLICY_TRUE},
                 {"known(carbon)", POLICY_UNKNOWN},
                 {"known(carbon + 1 g/kWh) and 1 > 2", POLICY_FALSE},
                 {"not known(1 + 1)", POLICY_UNKNOWN}};

    for (size_t i = 0; i < n_elements(cases); i++) {
        struct test_values t = {0};
        struct policy_condition c = read_condition(cases[i].text, &t);
        is_int(policy_condition_constant(&c), cases[i].is, "whatever the values are: %s",
               cases[i].text);
    }
}

static void test_limits(void)
{
    static const struct {
        const char *text, *more, *end, *error;
        int n;
    } cases[] = {
        {"shut", " or shut", "",
         "too long: a condition has at most 64 values and operators", 32},
        {"shut or (", "1 < 2 and (", "true", "too deep: at most 16 inside each other",
         17},
        {"job.user == 'a", "a", "'",
         "too long: all texts of a condition have at most 128 bytes", 127},
        {"shut", " ", "", "too long: a condition has at most 500 bytes", 500},
    };

    for (size_t i = 0; i < n_elements(cases); i++) {
        struct test_values t = {0};
        struct policy_condition c;
        char text[1000];
        uw_error err = {{0}};
        size_t n = (size_t)snprintf(text, sizeof text, "%s", cases[i].text);
        for (int k = 0; k < cases[i].n; k++)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s", cases[i].more);
        (void)snprintf(text + n, sizeof text - n, "%s", cases[i].end);
        ok(policy_condition_read(text, &test_catalogue, &t.reads, &c, &err) == -EINVAL &&
               strstr(err.text, cases[i].error),
           "limit: %s", cases[i].error);
    }
    struct test_values t = {0};
    char text[600] = "shut";
    for (int k = 0; k < 31; k++)
        memcpy(text + strlen(text), " or shut", sizeof " or shut");
    (void)read_condition(text, &t);
}

/* The indented lines below "## Conditions" of the page whose path is given. */
static void test_page(const char *path)
{
    FILE *f = fopen(path, "r");
    char line[300];
    bool inside = false;
    int n = 0;

    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#')
            inside = strcmp(line, "## Conditions") == 0;
        struct test_values t = {0};
        if (inside && strncmp(line, "    ", 4) == 0)
            n += read_condition(line + 4, &t).n_ops > 0;
    }
    if (f)
        (void)fclose(f);
    is_int(n, 7, "the examples of docs/policies.md are conditions");
}

/* Times in conditions are written as everywhere else. */
static void test_times(void)
{
    static const char *const words[] = {"s",    "sec",   "second", "seconds", "ms",
                                        "m",    "min",   "minute", "minutes", "h",
                                        "hour", "hours", "d",      "day",     "days"};

    for (size_t i = 0; i < n_elements(words); i++) {
        struct policy_unit unit = {0}, time = {0};
        double factor = 0, one = 0;
        uint64_t ns = 0;
        char text[20];
        (void)snprintf(text, sizeof text, "2 %s", words[i]);
        (void)policy_unit_read("s", 1, &time, &one);
        size_t n = policy_unit_read(words[i], strlen(words[i]), &unit, &factor);
        ok(parse_duration(text, &ns, NULL) == 0 && n == strlen(words[i]) &&
               policy_unit_same(&unit, &time) && ns == ns_of_s(2 * factor),
           "'%s' is %g s in conditions and in durations", words[i], factor);
    }
}

int main(int argc, char **argv)
{
    test_times();
    if (argc > 1)
        test_page(argv[1]);
    test_wrong();
    test_right();
    test_sides();
    test_reads();
    test_time();
    test_constant();
    test_limits();
    return done();
}
