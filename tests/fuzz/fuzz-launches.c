/* Launches behind a progress page (from byte 4096 on), of processes that write anything.
 */
#include "page-script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return script_run(data, size, true);
}
