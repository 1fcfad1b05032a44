// The public header alone, as C++.
#include "underwatt/underwatt.h"

extern "C" int header_is_cpp(void);
extern "C" int header_is_cpp(void)
{
    uw_options o = {sizeof o, nullptr, nullptr, UW_DAEMON, nullptr};
    return uw_device_count(nullptr) == 0 && o.size > 0;
}
