/* The public header alone, as C99. */
#include "underwatt/underwatt.h"

int header_is_c99(void);
int header_is_c99(void)
{
    uw_options o = {sizeof o, 0, 0, UW_LOCAL, 0};
    return o.size > 0;
}
