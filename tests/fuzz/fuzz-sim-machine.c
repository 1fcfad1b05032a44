/* Machine files of any content: what is accepted makes a world that runs. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "fuzz.h"
#include "sim/machine.h"
#include "sim/world.h"

/* libfyaml 0.7.12 forgets 512 bytes on some errors in flow style; not ours to mend. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libfyaml.so";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct sim_machine machine;
    struct sim_world *world = NULL;
    struct sim_readings now;
    uw_error err;

    if (sim_machine_read_text("fuzz", (const char *)data, size, &machine, &err))
        return fuzz_say("refused", "%s", err.text);
    if (machine.n_boards == 0 || machine.n_boards > SIM_MACHINE_BOARDS_MAX)
        abort();
    if (sim_world_new(&machine, 0, 1000, &world, &err))
        abort(); /* a file that was accepted must work */
    sim_world_advance(world, 2000000000);
    for (size_t i = 0; i < sim_world_n_boards(world); i++) {
        const struct sim_identity *id = sim_world_identity(world, i);
        sim_world_readings(world, i, &now);
        if (now.enforced_mw < id->min_mw || now.enforced_mw > id->max_mw)
            abort();
    }
    sim_world_free(world);
    return fuzz_say("accepted", "%zu boards, %zu faults", machine.n_boards,
                    machine.n_faults);
}
