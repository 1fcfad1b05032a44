#include "node/view.h"

const char *view_reason(size_t i)
{
    static const char *const names[VIEW_REASONS] = {
        "idle",       "application_clocks", "sw_power_cap", "hw_slowdown",
        "sync_boost", "sw_thermal",         "hw_thermal",   "hw_power_brake"};

    return names[i];
}
