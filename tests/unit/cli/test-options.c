#include "cli/options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/units.h"
#include "tap.h"

static const struct cmd cmd_test = {"test", "[OPTIONS] CMD [ARG…]", "Test", NULL};

struct values {
    bool quiet;
    const char *name;
    uint64_t runs;
    double factor;
    struct opt_watts watts;
    struct cap_arg cap;
    uint64_t ns;
};

/* clang-format off */
static const struct {
    const char *what;
    const char *argv[8];
    int r;
    struct values v;
    int rest; bool dashes;
} cases[] = {
    {"nothing", {"test"}, OPTS_GO, {.runs = 5}, 0, false},
    {"flag", {"test", "--quiet"}, OPTS_GO, {.runs = 5, .quiet = true}, 0, false},
    {"short flag", {"test", "-q"}, OPTS_GO, {.runs = 5, .quiet = true}, 0, false},
    {"value apart", {"test", "--runs", "7"}, OPTS_GO, {.runs = 7}, 0, false},
    {"value joined", {"test", "--runs=7"}, OPTS_GO, {.runs = 7}, 0, false},
    {"short, apart", {"test", "-n", "7"}, OPTS_GO, {.runs = 7}, 0, false},
    {"short, joined", {"test", "-n7"}, OPTS_GO, {.runs = 7}, 0, false},
    {"repeated", {"test", "-n7", "-n8"}, OPTS_GO, {.runs = 8}, 0, false},
    {"number", {"test", "--factor", "1.5"}, OPTS_GO, {.runs = 5, .factor = 1.5}, 0, false},
    {"watts, bare", {"test", "--watts", "250"}, OPTS_GO, {.runs = 5, .watts = {250000, "250"}}, 0, false},
    {"watts, unit", {"test", "--watts=0.3 kW"}, OPTS_GO, {.runs = 5, .watts = {300000, "0.3 kW"}}, 0, false},
    {"cap", {"test", "--cap", "85%"}, OPTS_GO, {.runs = 5, .cap = {0, 85}}, 0, false},
    {"duration", {"test", "--for", "5 s"}, OPTS_GO, {.runs = 5, .ns = 5000000000}, 0, false},
    {"CMD after --", {"test", "-q", "--", "-n", "x"}, OPTS_GO, {.runs = 5, .quiet = true}, 2, true},
    {"CMD without --", {"test", "-q", "sh", "-q"}, OPTS_GO, {.runs = 5, .quiet = true}, 2, false},
    {"a dash alone is a word", {"test", "-", "x"}, OPTS_GO, {.runs = 5}, 2, false},
    {"-- in a value's place", {"test", "--name", "--", "x"}, EXIT_USAGE, {.runs = 5}, 0, false},
    {"-- as a value", {"test", "--name=--", "x"}, OPTS_GO, {.runs = 5, .name = "--"}, 1, false},
    {"help", {"test", "--help"}, EXIT_OK, {.runs = 5}, 0, false},
    {"short help", {"test", "-h"}, EXIT_OK, {.runs = 5}, 0, false},
    {"version", {"test", "--version"}, EXIT_OK, {.runs = 5}, 0, false},
    {"short version", {"test", "-V"}, EXIT_OK, {.runs = 5}, 0, false},
    {"unknown", {"test", "--quie"}, EXIT_USAGE, {.runs = 5}, 0, false},
    {"unknown, longer", {"test", "--quietly"}, EXIT_USAGE, {.runs = 5}, 0, false},
    {"unknown letter", {"test", "-z"}, EXIT_USAGE, {.runs = 5}, 0, false},
    {"no value", {"test", "--runs"}, EXIT_USAGE, {.runs = 5}, 0, false},
    {"value for a flag", {"test", "--quiet=1"}, EXIT_USAGE, {.runs = 5}, 0, false},
    {"letters behind a flag", {"test", "-qn"}, EXIT_USAGE, {.runs = 5}, 0, false},
    {"empty value", {"test", "--name="}, EXIT_USAGE, {.runs = 5}, 0, false},
    {"not a number", {"test", "--runs", "x"}, EXIT_USAGE, {.runs = 5}, 0, false},
    {"percent where watts belong", {"test", "--watts", "85%"}, EXIT_USAGE, {.runs = 5}, 0, false},
    {"duration without a unit: seconds", {"test", "--for", "5"}, OPTS_GO, {.runs = 5, .ns = 5000000000}, 0, false},
    {"duration of another unit", {"test", "--for", "5 V"}, EXIT_USAGE, {.runs = 5}, 0, false},
};
/* clang-format on */

static bool same(const struct values *a, const struct values *b)
{
    bool names =
        a->name == b->name || (a->name && b->name && strcmp(a->name, b->name) == 0);
    return a->quiet == b->quiet && names && a->runs == b->runs &&
           fabs(a->factor - b->factor) < 1e-12 && a->watts.mw == b->watts.mw &&
           strcmp(a->watts.text ? a->watts.text : "",
                  b->watts.text ? b->watts.text : "") == 0 &&
           a->cap.mw == b->cap.mw && fabs(a->cap.percent - b->cap.percent) < 1e-12 &&
           a->ns == b->ns;
}

static void quiet(bool on)
{
    static int kept = -1;

    (void)fflush(stdout);
    if (on) {
        kept = dup(STDOUT_FILENO);
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        (void)dup2(null, STDOUT_FILENO);
        (void)close(null);
    } else {
        (void)dup2(kept, STDOUT_FILENO);
        (void)close(kept);
    }
}

static void run_case(size_t i)
{
    struct values v = {.runs = 5};
    struct opt_time hold = {.least_ns = OPT_TIME_LEAST, .most_ns = 60 * NS_PER_S};
    const struct opt opts[] = {
        {"quiet", 'q', NULL, "say nothing", opt_flag, &v.quiet},
        {"name", 0, "NAME", "a name", opt_text, &v.name},
        {"runs", 'n', "N", "runs", opt_u64, &v.runs},
        {"factor", 0, "F", "a factor", opt_double, &v.factor},
        {"watts", 0, "W", "a power", opt_watts, &v.watts},
        {"cap", 0, "W|N%", "a cap", opt_cap, &v.cap},
        {"for", 0, "TIME", "a time", opt_time, &hold},
    };
    struct opts_rest rest = {.argc = -7};
    char words[8][32];
    char *argv[9] = {0};
    int argc = 0;

    for (; argc < 8 && cases[i].argv[argc]; argc++) {
        (void)snprintf(words[argc], sizeof words[argc], "%s", cases[i].argv[argc]);
        argv[argc] = words[argc];
    }
    quiet(true); /* the help is no TAP */
    int r = opts_parse(&cmd_test, opts, n_elements(opts), argc, argv, &rest);
    quiet(false);
    v.ns = hold.ns;
    is_int(r, cases[i].r, "%s: returns %d", cases[i].what, cases[i].r);
    ok(same(&v, &cases[i].v), "%s: values", cases[i].what);
    if (r != OPTS_GO) {
        is_int(rest.argc, -7, "%s: the rest is untouched", cases[i].what);
        return;
    }
    is_int(rest.argc, cases[i].rest, "%s: words left", cases[i].what);
    ok(rest.dashes == cases[i].dashes, "%s: dashes", cases[i].what);
    ok(rest.argv[rest.argc] == NULL, "%s: the rest ends with NULL", cases[i].what);
    is_int(opts_parse(&cmd_test, opts, n_elements(opts), argc, argv, NULL),
           cases[i].rest ? EXIT_USAGE : OPTS_GO, "%s: no more", cases[i].what);
}

/* Numbers below 0 are operands of a command that starts no CMD. */
static void negative(void)
{
    static const struct cmd other = {"other", "[OPTIONS] [BOARD]", "Test", NULL};
    char name[] = "other", number[] = "-1", half[] = "-.5", flag[] = "-q";
    char *argv[] = {name, number, flag, half, NULL};
    bool is_quiet = false;
    struct opts_rest rest = {0};
    const struct opt opts[] = {{"quiet", 'q', NULL, "no output", opt_flag, &is_quiet}};

    is_int(opts_parse(&other, opts, 1, 4, argv, &rest), OPTS_GO, "-1 is an operand");
    ok(rest.argc == 2 && is_quiet && strcmp(rest.argv[0], "-1") == 0 &&
           strcmp(rest.argv[1], "-.5") == 0,
       "so is -.5; -q is an option");
    is_int(opts_parse(&cmd_test, opts, 1, 2, argv, &rest), EXIT_USAGE,
           "before a CMD it is none");
}

static void times(void)
{
    struct opt_time t = {.least_ns = NS_PER_S, .most_ns = 60 * NS_PER_S, .ns = 7};
    struct opt_time days = {.least_ns = OPT_TIME_LEAST,
                            .most_ns = 365 * 86400 * NS_PER_S};
    uw_error err = {""};

    is_int(opt_time("2h", &t, &err), -ERANGE, "a time above its range");
    is_str(err.text, "'2h' is outside 1 s..60 s", "… is named as it was typed");
    is_int(opt_time("0", &t, NULL), -ERANGE, "… and 0, which has no unit");
    is_int(opt_time("x", &t, NULL), -EINVAL, "no time");
    is_int((long long)t.ns, 7, "… changes nothing");
    is_int(opt_time("60", &t, NULL), 0, "the end of the range");
    is_int((long long)t.ns, 60LL * NS_PER_S, "… in seconds");
    static const char *const beyond[] = {"0",    "0 s", "-5",     "1 us",
                                         "366d", "1e9", "40000d", "1e99"};
    for (size_t i = 0; i < n_elements(beyond); i++) {
        char says[80];
        (void)snprintf(says, sizeof says, "'%s' is outside 0.001 s..365 d", beyond[i]);
        is_int(opt_time(beyond[i], &days, &err), -ERANGE, "%s", beyond[i]);
        is_str(err.text, says, "… is named, with the limits of the option");
    }
    ok(days.ns == 0 && opt_time("365d", &days, NULL) == 0 && days.ns == days.most_ns,
       "the most");
}

/* Files are tried when all words are parsed, and the last value of an option counts. */
static void files(void)
{
    static const struct {
        const char *argv[6];
        int r;
    } of[] = {
        {{"test", "--json", "/nowhere/x", "--help"}, EXIT_OK},
        {{"test", "--from", "/nowhere/x", "--help"}, EXIT_OK},
        {{"test", "--json", "/nowhere/x", "--json", "-"}, OPTS_GO},
        {{"test", "--json", "/nowhere/x"}, EXIT_USAGE},
        {{"test", "--from", "/nowhere/x"}, EXIT_USAGE},
        {{"test", "--from", "/dev/null", "--json", "/dev/null"}, OPTS_GO},
        {{"test", "--json="}, EXIT_USAGE},
    };

    for (size_t i = 0; i < n_elements(of); i++) {
        const char *from = NULL, *json = NULL;
        const struct opt opts[] = {
            {"from", 0, "FILE", "an input", opt_input, &from},
            OPT_JSON(&json),
        };
        char words[6][32], *argv[7] = {0};
        int argc = 0;
        for (; argc < 6 && of[i].argv[argc]; argc++) {
            (void)snprintf(words[argc], sizeof words[argc], "%s", of[i].argv[argc]);
            argv[argc] = words[argc];
        }
        quiet(true);
        int r = opts_parse(&cmd_test, opts, n_elements(opts), argc, argv, NULL);
        quiet(false);
        is_int(r, of[i].r, "%s %s %s", argv[1], argv[2] ? argv[2] : "",
               argv[2] && argv[3] ? argv[3] : "");
    }
}

int main(void)
{
    for (size_t i = 0; i < n_elements(cases); i++)
        run_case(i);
    times();
    negative();
    files();
    is_int(cli_exit_of(0), EXIT_OK, "0 is done");
    is_int(cli_exit_of(-EINVAL), EXIT_USAGE, "a bad value is a usage error");
    is_int(cli_exit_of(-ERANGE), EXIT_USAGE, "… so is one out of range");
    is_int(cli_exit_of(-EIO), EXIT_FAIL, "a fault is a failure");
    return done();
}
