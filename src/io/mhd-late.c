/* An object of the program comes before the archive that has mhd-linked.c. */
#include "base/auto.h"
#include "base/error.h"
#include "base/late.h"
#include "io/mhd.h"

const struct mhd_calls *microhttpd;

int mhd_load(uw_error *err)
{
    static struct mhd_calls calls;
    static const struct late_call late[] = {
#define MHD_CALL(name) {"MHD_" #name, &calls.name},
        MHD_CALLS(MHD_CALL)
#undef MHD_CALL
    };

    if (microhttpd)
        return 0;
    int r = late_load(MHD_LIBRARY, late, n_elements(late), err);
    if (r < 0)
        return fail_in(err, r, "connections need libmicrohttpd");
    microhttpd = &calls;
    return 0;
}
