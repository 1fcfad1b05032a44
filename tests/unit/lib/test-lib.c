/* libunderwatt's edges: bad arguments, no library, no leaks.  On boards: the system
 * tests.
 */
#include <errno.h>

#include "tap.h"
#include "underwatt/underwatt.h"

int main(void)
{
    uw_options o = {.size = sizeof o, .boards = "/nowhere/libnvidia-ml.so.1"};
    uw_ctx *ctx = (uw_ctx *)&o;
    uw_error err = {{0}};
    uw_limits lim;
    uw_energy energy;
    double w;

    is_int(uw_ctx_open(&o, NULL, &err), -EINVAL, "nowhere to put it");
    ok(uw_ctx_open(&o, &ctx, &err) < 0 && err.text[0], "no library: %s", err.text);
    ok(ctx == (uw_ctx *)&o, "… and nothing is written");
    o.clock = "0:-1";
    ok(uw_ctx_open(&o, &ctx, &err) < 0, "a clock that cannot be: %s", err.text);
    o.size = 0;
    is_int(uw_ctx_open(&o, &ctx, &err), -EINVAL, "options without a size");
    is_int(uw_device_limits(NULL, &lim, &err), -EINVAL, "no device: limits");
    is_int(uw_device_power(NULL, &w, NULL), -EINVAL, "no device: power");
    is_int(uw_signal_value(NULL, "carbon", &w, NULL, 0, &err), -EINVAL,
           "no context: signal");
    is_int(uw_window_begin(NULL, NULL, &err), -EINVAL, "no context: window");
    is_int(uw_window_end(NULL, &err), -EINVAL, "no window: end");
    is_int(uw_window_energy(NULL, NULL, &energy, &err), -EINVAL, "no window: energy");
    ok(uw_device_count(NULL) == 0 && !uw_device_at(NULL, 0), "no context has no devices");
    is_str(uw_device_id(NULL), "", "no device has no id");
    ok(uw_version()[0] != '\0', "a version: %s", uw_version());
    uw_ctx_free(NULL);
    uw_window_free(NULL);
    return done();
}
