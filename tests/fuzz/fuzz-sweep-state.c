/* A sweep's state of any content; what is accepted is sane and like itself. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "fuzz.h"
#include "sweep/sweep-state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_(sweep_state_free) struct sweep_state *state = NULL;
    uw_error err;

    if (sweep_state_parse("fuzz", (const char *)data, size, &state, &err) < 0)
        return fuzz_say("refused", "%s", err.text);
    if (!state->argv || !state->argv[0] || state->runs < 1 ||
        state->n_boards > SWEEP_STATE_BOARDS_MAX)
        abort();
    for (size_t i = 0; i < state->n_done; i++)
        if (!(state->done[i].time_s > 0) || !isfinite(state->done[i].time_s) ||
            !(state->done[i].energy_j > 0) || !isfinite(state->done[i].energy_j))
            abort();
    if (sweep_state_same(state, state, &err) != 0)
        abort();
    return fuzz_say("accepted", "%zu boards, %zu runs done, %s", state->n_boards,
                    state->n_done, state->argv[0]);
}
