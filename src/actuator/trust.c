#include "actuator/trust.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"

bool trust_is_privileged(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = {0};

    if (geteuid() == 0 || getuid() != geteuid() || getauxval(AT_SECURE))
        return true;
    if (syscall(SYS_capget, &head, caps) < 0)
        return true;
    return caps[0].effective || caps[1].effective;
}

int trust_state_dir(bool simulated, const char *state_dir, char *ret, size_t size,
                    uw_error *err)
{
    int n;

    if (simulated && state_dir[0] != '/')
        return fail(err, -EIO, "the simulated library does not name its world");
    if (!simulated && geteuid() != 0)
        return fail(err, -EPERM, "this needs root (sudo underwatt …)");
    if (simulated)
        n = snprintf(ret, size, "%s/actuator", state_dir);
    else
        n = snprintf(ret, size, "/run/underwatt-actuator");
    if (n < 0 || (size_t)n >= size)
        return fail(err, -ENAMETOOLONG, "%s: too long a path", state_dir);
    return 0;
}
