#include <errno.h>

#include "sim/machine.h"
#include "tap.h"

/* clang-format off */
static const struct {
    const char *text;
    enum sim_fault_kind kind;
    unsigned board;
    uint32_t mw;
    uint64_t for_ns;
} good[] = {
    {"1 lost", SIM_FAULT_K_LOST, 1, 0, 0},
    {"1 lost for 5s", SIM_FAULT_K_LOST, 1, 0, 5000000000ull},
    {"0 limit 200W", SIM_FAULT_K_LIMIT, 0, 200000, 0},
    {"all hang for 250ms", SIM_FAULT_K_HANG, SIM_ALL_BOARDS, 0, 250000000ull},
    {"reload", SIM_FAULT_K_RELOAD, SIM_ALL_BOARDS, 0, 0},
    {"  3   stuck ", SIM_FAULT_K_STUCK, 3, 0, 0},
    {"99 lost", SIM_FAULT_K_LOST, 99, 0, 0}, /* the world refuses it */
};
static const struct {
    const char *text;
    int r;
    const char *says;
} bad[] = {
    {"", -EINVAL, "the fault is missing"},
    {"1", -EINVAL, "the fault of board 1"},
    {"4294967295 lost", -ERANGE, "'4294967295' is not the number of a board"},
    {"1 burn", -EINVAL, "'burn' is none of"},
    {"1 limit", -EINVAL, "watts are missing"},
    {"1 limit 200", -EINVAL, "200"},
    {"1 reload for 5s", -EINVAL, "takes no duration"},
    {"1 lost for", -EINVAL, "time is missing"},
    {"1 lost for 5", -EINVAL, "5"},
    {"1 lost now", -EINVAL, "unexpected word"},
};
/* clang-format on */

int main(void)
{
    static struct sim_machine machine;
    struct sim_machine *m = &machine;
    uw_error err = {""};

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct sim_fault f = {0};
        is_int(sim_fault_parse(good[i].text, &f, &err), 0, "'%s'", good[i].text);
        is_int(f.kind, good[i].kind, "its kind");
        is_int(f.board, good[i].board, "its board");
        is_int(f.mw, good[i].mw, "its limit");
        is_int(f.for_ns, good[i].for_ns, "its time");
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct sim_fault f = {.board = 77};
        is_int(sim_fault_parse(bad[i].text, &f, &err), bad[i].r, "'%s' is refused",
               bad[i].text);
        if (!ok(strstr(err.text, bad[i].says) != NULL, "and says '%s'", bad[i].says))
            printf("# got: %s\n", err.text);
        is_int(f.board, 77, "nothing is changed");
    }
    is_int(sim_machine_builtin("v100", 4, m, &err), 0, "four V100");
    is_int(m->n_boards, 4, "four boards");
    is_int(m->may_set, SIM_MAY_ANYONE, "anyone may set limits");
    is_int(sim_machine_builtin("v1000", 1, m, &err), -EINVAL, "no such board");
    ok(strstr(err.text, "v100") && strstr(err.text, "b200"), "the text names them: %s",
       err.text);
    is_int(sim_machine_builtin("v100", 65, m, &err), -EINVAL, "too many boards");
    is_int(m->n_boards, 4, "nothing is changed");
    return done();
}
