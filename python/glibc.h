/* Included before each file of the package's library, so that one wheel fits glibc 2.34 and
 * later: hypot() of 2.35 differs from the older one only in not setting errno.
 */
#include <features.h>
#if defined(__x86_64__) && defined(__GLIBC__)
__asm__(".symver hypot, hypot@GLIBC_2.2.5");
#endif
