/* A disk that fails: SQLite's own way to files, of which each write, sync, cut and making
 * of a file is counted, and fails from the n-th on (or that one alone).
 */
#ifndef TESTS_LEDGER_FAULT_H
#define TESTS_LEDGER_FAULT_H

#include <sqlite3.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static struct {
    bool full; /* SQLITE_FULL, else SQLITE_IOERR_… */
    bool once;
    bool reads; /* count, and fail, too */
    bool made;  /* files that are there can be opened, and read */
    long at, n; /* fails from operation `at` on, 0: never; so many were made */
} fault;

static sqlite3_vfs *fault_below;
static sqlite3_vfs fault_vfs;
static sqlite3_io_methods fault_methods;

struct fault_file {
    sqlite3_file base;
    sqlite3_file *real;
};

static bool fault_now(void)
{
    fault.n++;
    return fault.at && (fault.once ? fault.n == fault.at : fault.n >= fault.at);
}

static sqlite3_file *fault_real(sqlite3_file *f)
{
    return ((struct fault_file *)(void *)f)->real;
}

#define REAL(f) fault_real(f)->pMethods

static int fault_close(sqlite3_file *f)
{
    return REAL(f)->xClose(fault_real(f));
}
static int fault_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
    if (fault.reads && fault_now())
        return SQLITE_IOERR_READ;
    return REAL(f)->xRead(fault_real(f), to, n, at);
}
static int fault_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at)
{
    if (fault_now()) {
        if (n > 512) /* some of it is there */
            (void)REAL(f)->xWrite(fault_real(f), from, n / 2, at);
        return fault.full ? SQLITE_FULL : SQLITE_IOERR_WRITE;
    }
    return REAL(f)->xWrite(fault_real(f), from, n, at);
}
static int fault_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    return fault_now() ? SQLITE_IOERR_TRUNCATE : REAL(f)->xTruncate(fault_real(f), size);
}
static int fault_sync(sqlite3_file *f, int flags)
{
    (void)f;
    (void)flags; /* no power is cut here: quick */
    return fault_now() ? SQLITE_IOERR_FSYNC : SQLITE_OK;
}
static int fault_size(sqlite3_file *f, sqlite3_int64 *ret)
{
    return REAL(f)->xFileSize(fault_real(f), ret);
}
static int fault_lock(sqlite3_file *f, int level)
{
    return REAL(f)->xLock(fault_real(f), level);
}
static int fault_unlock(sqlite3_file *f, int level)
{
    return REAL(f)->xUnlock(fault_real(f), level);
}
static int fault_reserved(sqlite3_file *f, int *ret)
{
    return REAL(f)->xCheckReservedLock(fault_real(f), ret);
}
static int fault_control(sqlite3_file *f, int op, void *arg)
{
    return REAL(f)->xFileControl(fault_real(f), op, arg);
}
static int fault_sector(sqlite3_file *f)
{
    return REAL(f)->xSectorSize(fault_real(f));
}
static int fault_traits(sqlite3_file *f)
{
    return REAL(f)->xDeviceCharacteristics(fault_real(f));
}
static int fault_shm_map(sqlite3_file *f, int page, int size, int extend,
                         void volatile **ret)
{
    if (extend && !fault.made && fault_now())
        return SQLITE_IOERR_SHMSIZE;
    return REAL(f)->xShmMap(fault_real(f), page, size, extend, ret);
}
static int fault_shm_lock(sqlite3_file *f, int at, int n, int flags)
{
    return REAL(f)->xShmLock(fault_real(f), at, n, flags);
}
static void fault_shm_barrier(sqlite3_file *f)
{
    REAL(f)->xShmBarrier(fault_real(f));
}
static int fault_shm_unmap(sqlite3_file *f, int del)
{
    return REAL(f)->xShmUnmap(fault_real(f), del);
}

static int fault_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags,
                      int *ret_flags)
{
    struct fault_file *mine = (struct fault_file *)(void *)f;

    (void)vfs;
    mine->base.pMethods = NULL;
    mine->real = (sqlite3_file *)(void *)(mine + 1);
    bool makes = (flags & SQLITE_OPEN_CREATE) && (!fault.made || access(name, F_OK) < 0);
    if (makes && fault_now())
        return SQLITE_CANTOPEN;
    int r = fault_below->xOpen(fault_below, name, mine->real, flags, ret_flags);
    if (r == SQLITE_OK)
        mine->base.pMethods = &fault_methods;
    return r;
}

/* From here on all of SQLite's files in this process go this way. */
static void fault_begin(void)
{
    fault_below = sqlite3_vfs_find(NULL);
    fault_methods = (sqlite3_io_methods){.iVersion = 2,
                                         .xClose = fault_close,
                                         .xRead = fault_read,
                                         .xWrite = fault_write,
                                         .xTruncate = fault_truncate,
                                         .xSync = fault_sync,
                                         .xFileSize = fault_size,
                                         .xLock = fault_lock,
                                         .xUnlock = fault_unlock,
                                         .xCheckReservedLock = fault_reserved,
                                         .xFileControl = fault_control,
                                         .xSectorSize = fault_sector,
                                         .xDeviceCharacteristics = fault_traits,
                                         .xShmMap = fault_shm_map,
                                         .xShmLock = fault_shm_lock,
                                         .xShmBarrier = fault_shm_barrier,
                                         .xShmUnmap = fault_shm_unmap};
    fault_vfs = *fault_below;
    fault_vfs.zName = "fault";
    fault_vfs.pNext = NULL;
    fault_vfs.szOsFile += (int)sizeof(struct fault_file);
    fault_vfs.xOpen = fault_open;
    (void)sqlite3_vfs_register(&fault_vfs, 1);
}

#endif
