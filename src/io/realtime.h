/* A process before everybody of the normal class, with a guard. */
#ifndef IO_REALTIME_H
#define IO_REALTIME_H

enum { REALTIME_REFUSED = 1 };
enum { REALTIME_MOST_MS = 200 };

enum realtime_who {
    REALTIME_FIRST, /* the first thread alone; threads and children made later are not */
    REALTIME_ALL,   /* and every thread that is made from now on */
};

/* The process's first thread, which must be the caller, has the lowest real-time priority
 * from now on.  If one that has it ever computes for REALTIME_MOST_MS without waiting,
 * all fall back to the normal class, for good; a line, which lives on, is then written to
 * stderr where that can be done without waiting.  Takes SIGXCPU.
 *
 * 0, or REALTIME_REFUSED with nothing changed: no right to (RLIMIT_RTPRIO, CAP_SYS_NICE).
 */
int realtime_begin(enum realtime_who who, const char *line);

/* All threads back to the normal class, for good; nothing where they are. */
void realtime_end(void);

#endif
