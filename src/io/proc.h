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
    char title[PROC_TITLE];   /* by proc_read_title(); else "" */
    char cgroup[PROC_CGROUP]; /* the file's text, cut at the end of a line */
    size_t n_cgroup;
};

/* Reads a process of another tree (a virtual world's). */
typedef int (*proc_read_fn)(pid_t pid, struct proc_facts *ret, void *user);

/* Reads no file for which the kernel takes the lock of the process's memory.
 * root: "/proc".  0; -ESRCH (no such process, or it changed during the read), -EACCES, or
 * -EINVAL (not a format of the kernel).  Nothing is written on failure.
 */
int proc_read(const char *root, pid_t pid, struct proc_facts *ret);

/* Sets f->title to the beginning of the command line; "": it cannot be read.  The kernel
 * takes the lock of the process's memory for it, which that process can hold for ever:
 * the read is made in a thread and waited for PROC_TITLE_MS at most, and none is made
 * while a read of a thread (file_hangs()) has not returned.
 */
enum { PROC_TITLE_MS = 100 };
void proc_read_title(const char *root, struct proc_facts *f);

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
