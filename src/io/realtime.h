/* Real-time priority for a process, with a guard. */
#ifndef IO_REALTIME_H
#define IO_REALTIME_H

enum { REALTIME_REFUSED = 1 };
enum { REALTIME_MOST_MS = 200 };

enum realtime_who {
    REALTIME_FIRST, /* only the first thread; not later threads and children */
    REALTIME_ALL,   /* also every thread that is made later */
};

/* Gives the process's first thread, which must be the caller, the lowest real-time
 * priority.  If a thread with it computes for REALTIME_MOST_MS without waiting, all
 * threads return to the normal class permanently; the string line, which must stay valid,
 * is then written to stderr if that does not block.  Takes SIGXCPU.
 *
 * 0, or REALTIME_REFUSED with nothing changed: no right to (RLIMIT_RTPRIO, CAP_SYS_NICE).
 */
int realtime_begin(enum realtime_who who, const char *line);

/* Returns all threads to the normal class permanently. */
void realtime_end(void);

#endif
