/* A process's loop before everybody of the normal class, with a guard. */
#ifndef NODE_REALTIME_H
#define NODE_REALTIME_H

enum { REALTIME_REFUSED = 1 };
enum { REALTIME_MOST_MS = 200 };

/* The process's first thread, which must be the caller, has the lowest real-time priority
 * from now on; threads and children that it makes later have not.  If it ever computes
 * for REALTIME_MOST_MS without waiting it falls back to the normal class, for good, and
 * says so (event=realtime-lost).  Takes SIGXCPU.
 *
 * 0, or REALTIME_REFUSED with nothing changed: no right to (RLIMIT_RTPRIO, CAP_SYS_NICE).
 */
int realtime_begin(void);

#endif
