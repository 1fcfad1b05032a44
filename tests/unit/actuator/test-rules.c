/* Root's configuration of the actuator, and what it allows. */
#include "actuator/rules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/names.h"
#include "tap.h"

static char users[] = "/tmp/test-rules-XXXXXX";

#define GPU_1 "GPU-422ea740-d097-4210-8e06-b061b42e2928"
#define GPU_2 "GPU-e016dcf7-D097-4210-8e06-b061b42e2928"

static int parse(const char *text, struct rules *ret, uw_error *err)
{
    return rules_read("actuator.yaml", text, strlen(text), users, ret, err);
}

static void test_whole(void)
{
    struct rules r;
    uw_error err = {""};

    is_int(parse("clients: [watt, 77]\nboards: [" GPU_1 ", " GPU_2
                 "]\nrange: {from: 60 %, to: "
                 "280 W}\n"
                 "grace: 20 s\nrealtime: false\nlibrary: /opt/nvml.so\npowercap: "
                 "/opt/powercap\n",
                 &r, &err),
           0, "a whole file %s", err.text);
    ok(r.n_clients == 2 && r.client[0] == 990 && r.client[1] == 77, "clients");
    ok(r.boards.listed && r.boards.n_boards == 2 && r.grace_ns == 20 * NS_PER_S &&
           !r.realtime,
       "the rest");
    is_str(r.boards.board[1], "GPU-e016dcf7-d097-4210-8e06-b061b42e2928",
           "a UUID as NVML writes it");
    is_str(r.library, "/opt/nvml.so", "library");
    is_str(r.powercap, "/opt/powercap", "powercap");
    is_int(parse("", &r, &err), 0, "an empty file");
    is_str(r.powercap, "", "names no tree");
    ok(!r.n_clients && !r.boards.listed && r.grace_ns == 10 * NS_PER_S && !r.library[0] &&
           r.realtime,
       "is the defaults");
    is_int(parse("clients: watt\nboards: all\ngrace: 0 s\n", &r, &err), 0, "one client");
    is_int(rules_read("x", "clients: nobody-here\n", 21, NULL, &(struct rules){0}, &err),
           0, "where nobody is served no name is looked up");
    ok(r.n_clients == 1 && r.client[0] == 990 && !r.boards.listed && r.grace_ns == 0,
       "by its name, with no grace");
}

static void test_bad(void)
{
    /* clang-format off */
    static const struct { const char *text; int r; const char *says; } cases[] = {
        {"client: watt\n", -EINVAL, "actuator.yaml:1: unknown key 'client'"},
        {"grace: 1 s\nboards: some\n", -EINVAL, "actuator.yaml:2: boards: 'all', or"},
        {"boards: [../x]\n", -EINVAL, "actuator.yaml:1: boards: '../x' is no"},
        {"boards: [0]\n", -EINVAL, "boards: '0' is not the UUID of a board"},
        {"boards: [GPU-1]\n", -EINVAL, "boards: 'GPU-1' is not the UUID of a board (GPU- and 8-4-4-4-12"},
        {"boards: [" GPU_1 "0]\n", -EINVAL, "is not the UUID"},
        {"boards: [MIG-422ea740-d097-4210-8e06-b061b42e2928]\n", -EINVAL, "is not the UUID"},
        {"boards: [GPU-422ea740-d097-4210-8e06-b061b42e292g]\n", -EINVAL, "is not the UUID"},
        {"boards: [GPU-422ea740d0974210-8e06-b061-b42e-2928]\n", -EINVAL, "is not the UUID"},
        {"boards: [[GPU-1]]\n", -EINVAL, "actuator.yaml:1: "},
        {"clients: [nobody-here]\n", -EINVAL, "there is no user 'nobody-here'"},
        {"clients: [4294967295]\n", -ERANGE, "4294967295 is no uid"},
        {"clients: {a: b}\n", -EINVAL, "actuator.yaml:1: "},
        {"clients: ['']\n", -EINVAL, "there is no user ''"},
        {"clients: [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]\n", -E2BIG, "more than 16"},
        {"range: 200 W\n", -EINVAL, "actuator.yaml:1: "},
        {"range: {from: 200}\n", -EINVAL, "actuator.yaml:1: range: '200'"},
        {"range: {from: 0 W}\n", -ERANGE, "a cap is more than 0 W"},
        {"range: {from: 100 %, to: 50 %}\n", -ERANGE, "from is above to"},
        {"range: {from: 300 W, to: 200 W}\n", -ERANGE, "from is above to"},
        {"range: {least: 200 W}\n", -EINVAL, "'least'"},
        {"clocks: on\n", -EINVAL, "actuator.yaml:1: clocks: 'off', 'all', or a map"},
        {"clocks: {from: 900}\n", -EINVAL, "actuator.yaml:1: clocks: '900'"},
        {"clocks: {to: 0 MHz}\n", -ERANGE, "actuator.yaml:1: clocks: '0 MHz'"},
        {"clocks: {from: 1.2 GHz, to: 900 MHz}\n", -ERANGE, "clocks: from is above to"},
        {"clocks: {at: 900 MHz}\n", -EINVAL, "'at'"},
        {"clocks: [900 MHz]\n", -EINVAL, "actuator.yaml:1: "},
        {"realtime: 1\n", -EINVAL, "actuator.yaml:1: "},
        {"grace: 10\n", -EINVAL, "actuator.yaml:1: "},
        {"grace: 61 s\n", -ERANGE, "actuator.yaml:1: "},
        {"grace: -1 s\n", -ERANGE, "actuator.yaml:1: "},
        {"library: nvml.so\n", -EINVAL, "is not an absolute path"},
        {"powercap: cap\n", -EINVAL, "powercap: 'cap' is not an absolute path"},
        {"[", -EINVAL, "actuator.yaml:"},
    };
    /* clang-format on */

    for (size_t i = 0; i < n_elements(cases); i++) {
        struct rules r = {.grace_ns = 7, .n_clients = 3};
        uw_error err = {""};
        int got = parse(cases[i].text, &r, &err);
        ok(got == cases[i].r && strstr(err.text, cases[i].says), "%.30s: %d %s",
           cases[i].text, got, err.text);
        ok(r.grace_ns == 7 && r.n_clients == 3, "… nothing is changed");
    }
}

static void test_clocks_allowed(void)
{
    static const struct gpu_info board = {
        .uuid = "GPU-1", .abilities = GPU_CAN_LOCK_CLOCKS, .clock_max_mhz = 1410};
    /* clang-format off */
    static const struct {
        const char *text;
        uint32_t min, max;
        enum actuator_result want;
        const char *says;
    } cases[] = {
        {"", 210, 900, ACTUATOR_REFUSED, "GPU-1: the actuator's configuration does not allow locked clocks"},
        {"", 0, 0, ACTUATOR_DONE, ""}, /* a reset may always be */
        {"clocks: off", 210, 900, ACTUATOR_REFUSED, "does not allow"},
        {"clocks: all", 210, 900, ACTUATOR_DONE, ""},
        {"clocks: all", 210, 1425, ACTUATOR_REFUSED, "outside 1..1410 MHz"},
        {"clocks: {from: 900 MHz}", 210, 900, ACTUATOR_DONE, ""},
        {"clocks: {from: 900 MHz}", 210, 899, ACTUATOR_REFUSED, "899 MHz is outside 900..1410 MHz"},
        {"clocks: {to: 1.2 GHz}", 210, 1200, ACTUATOR_DONE, ""},
        {"clocks: {to: 1.2 GHz}", 210, 1201, ACTUATOR_REFUSED, "outside 1..1200 MHz, the range of the actuator"},
    };
    /* clang-format on */

    for (size_t i = 0; i < n_elements(cases); i++) {
        struct rules r;
        uw_error err = {""};
        is_int(parse(cases[i].text, &r, &err), 0, "'%s'", cases[i].text);
        enum actuator_result got =
            core_check_clocks(&r.boards, &board, cases[i].min, cases[i].max, &err);
        ok(got == cases[i].want && strstr(err.text, cases[i].says), "%u..%u: %s %s",
           cases[i].min, cases[i].max, names_word(NAMES_ACTUATOR_RESULT, got), err.text);
    }
}

static void test_allowed(void)
{
    static const struct gpu_limits limits = {100000, 300000, 250000};
    /* clang-format off */
    static const struct {
        const char *name, *text;
        uint32_t original, mw;
        enum actuator_result want;
        const char *says;
    } cases[] = {
        {"no range", "", 250000, 300000, ACTUATOR_DONE, ""},
        {"at the lower end", "range: {from: 60 %}", 250000, 150000, ACTUATOR_DONE, ""},
        {"under it", "range: {from: 60 %}", 250000, 149999, ACTUATOR_REFUSED,
         "GPU-1: 149999 mW is outside 150000..300000 mW"},
        {"at the upper end", "range: {to: 240 W}", 250000, 240000, ACTUATOR_DONE, ""},
        {"above it", "range: {to: 240 W}", 250000, 240001, ACTUATOR_REFUSED,
         "GPU-1: 240001 mW is outside 100000..240000 mW"},
        {"above it, but the original", "range: {to: 240 W}", 250000, 250000, ACTUATOR_DONE, ""},
        {"mixed", "range: {from: 200 W, to: 100 %}", 300000, 250001, ACTUATOR_REFUSED,
         "outside 200000..250000 mW, the range of the actuator's configuration"},
    };
    /* clang-format on */
    struct rules r;
    uw_error err = {""};

    for (size_t i = 0; i < n_elements(cases); i++) {
        err.text[0] = '\0';
        is_int(parse(cases[i].text, &r, &err), 0, "%s", cases[i].text);
        enum actuator_result got = core_check_rules(&r.boards, "GPU-1", &limits,
                                                    cases[i].original, cases[i].mw, &err);
        ok(got == cases[i].want && strstr(err.text, cases[i].says), "%s: %s %s",
           cases[i].name, names_word(NAMES_ACTUATOR_RESULT, got), err.text);
    }
    test_clocks_allowed();
    (void)parse("boards: [" GPU_1 "]", &r, NULL);
    is_int(core_check_board(&r.boards, GPU_1, &err), ACTUATOR_DONE,
           "a board of the list");
    is_int(core_check_board(&r.boards, "GPU-11", &err), ACTUATOR_REFUSED, "another");
    ok(strstr(err.text, "GPU-11: not among the boards"), "%s", err.text);
    (void)parse("boards: []", &r, NULL);
    is_int(core_check_board(&r.boards, "GPU-1", &err), ACTUATOR_REFUSED, "none at all");
    is_int(core_check_board(NULL, "GPU-1", &err), ACTUATOR_DONE, "no rules");
}

static void test_file(void)
{
    char path[] = "/tmp/test-rules-file-XXXXXX";
    struct rules r = {.grace_ns = 7};
    uw_error err = {""};
    int fd = mkstemp(path);

    if (fd < 0 || write(fd, "grace: 3 s\n", 11) != 11)
        ok(false, "a file is written");
    is_int(rules_read_file(path, false, users, &r, &err), 0,
           "without privilege, anybody's file");
    is_int((int)(r.grace_ns / NS_PER_S), 3, "is read");
    r.grace_ns = 7;
    is_int(rules_read_file(path, true, users, &r, &err), -EPERM,
           "with privilege, none that lies where everybody may write: %s", err.text);
    ok(r.grace_ns == 7, "nothing is changed");
    (void)close(fd);
    (void)unlink(path);
    is_int(rules_read_file(path, false, users, &r, &err), -ENOENT,
           "one that is not there");
}

int main(void)
{
    static const char list[] = "root:x:0:0::/:\nbroken\nwatt:x:990:990::/:/bin/false\n";
    int fd = mkstemp(users);

    if (fd < 0 || write(fd, list, sizeof list - 1) != sizeof list - 1)
        return skip_all("no temporary file");
    (void)close(fd);
    test_whole();
    test_bad();
    test_allowed();
    test_file();
    (void)unlink(users);
    return done();
}
