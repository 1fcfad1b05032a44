/* A progress page whose job writes anything into it, cuts it and lies. */
#include "page-script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return script_run(data, size, false);
}
