/* Bounded reads of a process' files in /proc, whose text is not trusted. */
#ifndef IO_PROC_H
#define IO_PROC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PROC_CGROUP = 2048, PROC_COMM = 32, PROC_TITLE = 48 };

struct proc_facts {
    pid_t pid, ppid, session;
    uint64_t start; /* ticks after boot; with pid, unique within a boot */
    uid_t uid;      /* the real one */
    char comm[PROC_COMM];
    char title[PROC_TITLE];   /* of a slurmstepd: how its command line begins; else "" */
    char cgroup[PROC_CGROUP]; /* the file's text, cut at the end of a line */
    size_t n_cgroup;
};

/* Reads a process of another tree (a virtual world's). */
typedef int (*proc_read_fn)(pid_t pid, struct proc_facts *ret, void *user);

/* root: "/proc".  0; -ESRCH (no such process, or it changed during the read), -EACCES, or
 * -EINVAL (not a format of the kernel).  Nothing is written on failure.
 */
int proc_read(const char *root, pid_t pid, struct proc_facts *ret);

/* /proc/PID/stat: pid, comm, ppid, session and start.  0 or -EINVAL. */
int proc_parse_stat(const char *text, size_t n, struct proc_facts *ret);
/* /proc/PID/status: the real uid.  0 or -EINVAL. */
int proc_parse_status(const char *text, size_t n, uid_t *ret_uid);

/* Opens a pidfd, which shows the end of this very process: start (unless 0) and uid are
 * checked after the open, so that a reused pid cannot be mistaken.  The descriptor, or
 * -ESRCH, -EPERM (not uid's), else open's.
 */
int proc_open_pidfd(const char *root, pid_t pid, uint64_t start, uid_t uid,
                    struct proc_facts *ret);

#endif
