#include "actuator/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "tap.h"

static char top[] = "/tmp/test-journal-XXXXXX";
static char dir[64];

static struct cap_entry entry_of(const char *uuid)
{
    struct cap_entry e = {.boot = "5e83f33a-4bee-4777-af9a-f9a96faa9461",
                          .driver = "535.261.03:1",
                          .original_mw = 250000,
                          .intended_mw = 200000,
                          .readback_mw = 250000};

    (void)snprintf(e.uuid, sizeof e.uuid, "%s", uuid);
    return e;
}

static bool same(const struct cap_entry *a, const struct cap_entry *b)
{
    return strcmp(a->uuid, b->uuid) == 0 && strcmp(a->boot, b->boot) == 0 &&
           strcmp(a->driver, b->driver) == 0 && a->original_mw == b->original_mw &&
           a->intended_mw == b->intended_mw && a->readback_mw == b->readback_mw &&
           a->clocks == b->clocks;
}

static void test_text(void)
{
    struct cap_entry e = entry_of("GPU-1"), got;
    char text[JOURNAL_BYTES];

    journal_format(&e, text);
    is_int(journal_parse(text, sizeof text, &got, NULL), 0, "an entry is understood");
    ok(same(&e, &got), "… as it was");
    e.driver[0] = '\0';
    e.clocks = true;
    e.original_mw = e.intended_mw = e.readback_mw = UINT32_MAX;
    memset(e.uuid, 'a', 80);
    e.uuid[80] = '\0';
    memset(e.boot, 'b', sizeof e.boot - 1);
    memset(e.driver, 'd', sizeof e.driver - 1);
    journal_format(&e, text);
    is_int(journal_parse(text, sizeof text, &got, NULL), 0, "the largest entry fits");
    ok(same(&e, &got), "… as it was");
    e.driver[0] = '\0';
    journal_format(&e, text);
    is_int(journal_parse(text, sizeof text, &got, NULL), 0, "no mark of the driver");

    /* clang-format off */
    static const struct {
        const char *name, *text;
    } bad[] = {
        {"empty", ""},
        {"another file", "root:x:0:0:root:/root:/bin/bash\n"},
        {"a version to come", "underwatt-cap 2\nuuid GPU-1\nboot b\ndriver d\noriginal_mw 1\nintended_mw 1\nreadback_mw 1\nclocks 0\n"},
        {"a line missing", "underwatt-cap 1\nuuid GPU-1\nboot b\noriginal_mw 1\nintended_mw 1\nreadback_mw 1\nclocks 0\n"},
        {"a number cut", "underwatt-cap 1\nuuid GPU-1\nboot b\ndriver d\noriginal_mw 1\nintended_mw 1\nreadback_mw 1"},
        {"a negative number", "underwatt-cap 1\nuuid GPU-1\nboot b\ndriver d\noriginal_mw -1\nintended_mw 1\nreadback_mw 1\nclocks 0\n"},
        {"a number too large", "underwatt-cap 1\nuuid GPU-1\nboot b\ndriver d\noriginal_mw 4294967296\nintended_mw 1\nreadback_mw 1\nclocks 0\n"},
        {"no original", "underwatt-cap 1\nuuid GPU-1\nboot b\ndriver d\noriginal_mw 0\nintended_mw 1\nreadback_mw 1\nclocks 0\n"},
        {"a path for a uuid", "underwatt-cap 1\nuuid ../x\nboot b\ndriver d\noriginal_mw 1\nintended_mw 1\nreadback_mw 1\nclocks 0\n"},
        {"clocks 2", "underwatt-cap 1\nuuid GPU-1\nboot b\ndriver d\noriginal_mw 1\nintended_mw 1\nreadback_mw 1\nclocks 2\n"},
    };
    /* clang-format on */
    for (size_t i = 0; i < n_elements(bad); i++) {
        struct cap_entry canary = entry_of("GPU-canary"), was = canary;
        memset(text, ' ', sizeof text);
        memcpy(text, bad[i].text, strlen(bad[i].text));
        is_int(journal_parse(text, sizeof text, &canary, NULL), -EBADMSG, "%s: no entry",
               bad[i].name);
        ok(same(&canary, &was), "%s: result untouched", bad[i].name);
    }
    char mark[] = "a b\nc\x7f\x80";
    journal_clean_mark(mark);
    is_str(mark, "a_b_c__", "a mark is made fit for a line");
}

static int exists(const char *name)
{
    char path[160];

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

static void test_files(struct journal *j)
{
    struct cap_entry e = entry_of("GPU-1"), got;

    is_int(journal_read(j, "GPU-1", &got, NULL), JOURNAL_NONE, "no entry yet");
    is_int(journal_note(j, &e, NULL), -ENOENT, "nothing to change in place");
    is_int(journal_write(j, &e, NULL), 0, "an entry is written");
    ok(exists("GPU-1.cap") && !exists("GPU-1.new"), "… under its name alone");
    is_int(journal_read(j, "GPU-1", &got, NULL), 0, "… and read");
    ok(same(&e, &got), "… as it was");
    e.intended_mw = 7;
    e.readback_mw = UINT32_MAX;
    is_int(journal_note(j, &e, NULL), 0, "it is changed in place");
    is_int(journal_read(j, "GPU-1", &got, NULL), 0, "… and read");
    ok(same(&e, &got), "… as it was");
    is_int(journal_write(j, &e, NULL), 0, "it is written over");
}

static void test_list(struct journal *j)
{
    struct cap_entry other = entry_of("GPU-2"), got;
    char uuids[8][96];
    size_t n = 9;

    is_int(journal_write(j, &other, NULL), 0, "a second board");
    ok(journal_list(j, uuids, 8, &n, NULL) == 0 && n == 2, "both are listed");
    ok(journal_list(j, uuids, 1, &n, NULL) == 0 && n == 1,
       "no more than there is room for");
    is_int(journal_remove(j, "GPU-1", NULL), 0, "one is removed");
    is_int(journal_remove(j, "GPU-1", NULL), 0, "… or was already");
    is_int(journal_read(j, "GPU-1", &got, NULL), JOURNAL_NONE, "… and is gone");
    is_int(journal_read(j, "GPU-2", &got, NULL), 0, "the other is not");
    (void)journal_remove(j, "GPU-2", NULL);
}

static void make(const char *name, const char *text, mode_t mode)
{
    char path[160];

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ok(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) &&
           fchmod(fd, mode) == 0 && close(fd) == 0,
       "made %s", name);
}

static char victim[160];

static bool victim_is_safe(void)
{
    struct stat st;

    return stat(victim, &st) == 0 && st.st_size == 4;
}

static void test_links(struct journal *j)
{
    struct cap_entry e = entry_of("GPU-3"), got;
    uw_error err = {""};
    char path[160];
    struct stat st;

    (void)snprintf(victim, sizeof victim, "%s/victim", top);
    int fd = open(victim, O_WRONLY | O_CREAT, 0600);
    ok(fd >= 0 && write(fd, "safe", 4) == 4 && close(fd) == 0, "a victim");
    (void)snprintf(path, sizeof path, "%s/GPU-3.cap", dir);
    ok(symlink(victim, path) == 0, "an entry that is a link");
    is_int(journal_read(j, "GPU-3", &got, &err), -EPERM, "is not read");
    ok(strstr(err.text, "symbolic link") != NULL, "and says so: %s", err.text);
    is_int(journal_note(j, &e, NULL), -EPERM, "is not written to");
    is_int(journal_write(j, &e, NULL), 0, "a new entry takes its name");
    ok(lstat(path, &st) == 0 && S_ISREG(st.st_mode), "… it is a file");
    ok(victim_is_safe(), "what the link named is as it was");
    (void)unlink(path);
}

static int lock_3(struct journal *j)
{
    struct holder holder;
    int fd = -1;

    return journal_lock(j, "GPU-3", 1, &fd, &holder, NULL);
}

static void test_odd_locks(struct journal *j)
{
    char path[160];

    (void)snprintf(path, sizeof path, "%s/GPU-3.lock", dir);
    ok(symlink(victim, path) == 0 && lock_3(j) == -EPERM, "a lock that is a link");
    ok(victim_is_safe(), "what the link named is as it was");
    (void)unlink(path);
    ok(link(victim, path) == 0 && lock_3(j) == -EPERM, "a lock with a second name");
    (void)unlink(path);
    ok(mkfifo(path, 0600) == 0 && lock_3(j) == -EPERM, "a lock that is a pipe");
    (void)unlink(path);
}

static void test_odd_entries(struct journal *j)
{
    struct cap_entry liar = entry_of("GPU-5"), got;
    char path[160];

    (void)snprintf(path, sizeof path, "%s/GPU-3.cap", dir);
    make("GPU-3.cap", "nonsense", 0600);
    is_int(journal_read(j, "GPU-3", &got, NULL), -EBADMSG, "nonsense is no entry");
    make("GPU-3.cap", "nonsense", 0666);
    is_int(journal_read(j, "GPU-3", &got, NULL), -EPERM,
           "what others may write is refused");
    if (geteuid() == 0) {
        make("GPU-3.cap", "nonsense", 0600);
        ok(chown(path, 65534, 65534) == 0, "an entry of another's");
        is_int(journal_read(j, "GPU-3", &got, NULL), -EPERM, "is refused");
    } else {
        skip_one("an entry of another's", "takes root to make one");
    }
    (void)journal_write(j, &liar, NULL);
    (void)renameat(j->dir_fd, "GPU-5.cap", j->dir_fd, "GPU-6.cap");
    is_int(journal_read(j, "GPU-6", &got, NULL), -EBADMSG,
           "an entry under another's name");
}

static void test_locks(struct journal *j)
{
    const pid_t client = getppid();
    int fd = -1, other = -7;
    struct holder holder = {.pid = -7};
    uw_error err = {""};
    char number[24];

    is_int(journal_lock(j, "GPU-1", client, &fd, &holder, NULL), 0, "a lock is taken");
    ok(holder.pid == -7, "nobody else is named");
    is_int(journal_lock(j, "GPU-1", 99, &other, &holder, &err), JOURNAL_TAKEN,
           "the second is refused");
    ok(holder.client == client && holder.pid == getpid() && !holder.stopped,
       "… with the first's client and process: %d %d", holder.client, holder.pid);
    is_int(holder_pid(&holder), client, "… whose client is named");
    (void)snprintf(number, sizeof number, "(pid %d, ", client);
    ok(strstr(err.text, number) != NULL, "… in words too: %s", err.text);
    ok(other == -7, "… and gets nothing");
    (void)close(fd);
    is_int(journal_lock(j, "GPU-1", 99, &fd, &holder, NULL), 0, "given up, it is free");

    pid_t child = fork();
    if (child == 0) {
        (void)close(fd);
        int mine = -1;
        bool taken = journal_lock(j, "GPU-1", 5, &mine, &holder, NULL) == JOURNAL_TAKEN;
        bool alone = journal_lock(j, "GPU-2", 5, &mine, &holder, NULL) == 0;
        _exit(taken && alone ? 0 : 1); /* its lock of GPU-2 dies with it */
    }
    int status = 1;
    ok(waitpid(child, &status, 0) == child && status == 0,
       "another process is refused too, but gets another board");
    is_int(journal_lock(j, "GPU-2", 6, &other, &holder, NULL), 0,
           "a dead holder's lock is free");
    (void)close(other);
    (void)close(fd);
}

/* Nobody is named who has gone, nor who has got the pid of one that has. */
static void test_holders(struct journal *j)
{
    static const struct {
        const char *kernels, *shown;
    } names[] = {{"test-of ) S 1", "test-of?)?S?1"},
                 {"underwatt-actua", "underwatt-actuator"}};
    struct holder holder = {.pid = 0};
    int fd = -1, other = -1;
    char text[128], want[128];

    pid_t gone = fork();
    if (gone == 0)
        _exit(0);
    (void)waitpid(gone, NULL, 0);
    is_int(journal_lock(j, "GPU-1", gone, &fd, &holder, NULL), 0,
           "a client that has gone");
    is_int(journal_lock(j, "GPU-1", 1, &other, &holder, NULL), JOURNAL_TAKEN, "taken");
    ok(holder.client == 0 && holder.client_gone, "is not named");
    is_int(holder_pid(&holder), getpid(), "… who has the lock is");
    for (size_t i = 0; i < n_elements(names); i++) {
        (void)prctl(PR_SET_NAME, names[i].kernels);
        is_int(journal_lock(j, "GPU-1", 1, &other, &holder, NULL), JOURNAL_TAKEN,
               "taken");
        char user[32] = "root";
        if (geteuid() != 0)
            (void)snprintf(user, sizeof user, "uid %u", geteuid());
        (void)snprintf(want, sizeof want, "%s (pid %d, %s)", names[i].shown, getpid(),
                       user);
        is_str(holder_text(&holder, text, sizeof text), want, "… in words");
    }

    (void)snprintf(text, sizeof text, "%d\n1\n", getppid());
    ok(pwrite(fd, text, strlen(text) + 1, 0) > 0, "a pid that another process has now");
    is_int(journal_lock(j, "GPU-1", 1, &other, &holder, NULL), JOURNAL_TAKEN, "taken");
    ok(holder.client == 0 && holder.client_gone, "is not named either");
    ok(holder_passes(&holder), "… it passes: nobody's command stands behind it");
    journal_lock_name(fd, getppid());
    is_int(journal_lock(j, "GPU-1", 1, &other, &holder, NULL), JOURNAL_TAKEN, "taken");
    ok(holder.client && !holder_passes(&holder), "by a command that runs: it stays");
    holder.pid = 0;
    ok(holder_passes(&holder), "… but not if nobody has the lock any more");
    holder = (struct holder){.pid = 7, .stopped = true, .client_gone = true};
    ok(!holder_passes(&holder), "one that is stopped gives nothing up");
    journal_unlock(fd);
    fd = openat(j->dir_fd, "GPU-1.lock", O_RDONLY | O_CLOEXEC);
    ok(fd >= 0 && lseek(fd, 0, SEEK_END) == 0, "one that is given up names nobody");
    (void)close(fd);
    holder_look(j->dir, "GPU-1", NULL, &holder);
    ok(!holder.locked && !holder.pid && !holder.client, "given up, nobody has it");
    holder_look(j->dir, "GPU-none", NULL, &holder);
    ok(!holder.locked, "nor a lock that is not there");

    static const char locks[] = "1: POSIX  ADVISORY  WRITE 11 fe:00:77 0 EOF\n"
                                "2: FLOCK  ADVISORY  WRITE 12 fe:00:777 0 EOF\n"
                                "3: -> FLOCK  ADVISORY  WRITE 13 fe:00:77 0 EOF\n"
                                "4: FLOCK  ADVISORY  WRITE 14 fe:01:77 0 EOF\n"
                                "nonsense\n\n"
                                "5: FLOCK  ADVISORY  WRITE 15 fe:00:77 0 EOF";
    is_int(holder_parse(locks, 0xfe, 0, 77), 15, "the kernel's list of locks");
    is_int(holder_parse(locks, 0xfe, 1, 77), 14, "… by device");
    is_int(holder_parse(locks, 0xfe, 0, 78), 0, "… or none");
    is_int(holder_parse("", 0, 0, 0), 0, "… nor in an empty one");
}

/* What is wrong is kept for root, and nobody takes the board meanwhile. */
static void test_damaged(struct journal *j)
{
    static const char *const kinds[] = {"nonsense", "nothing", "a link", "a folder"};
    struct cap_entry got, good = entry_of("GPU-7");
    char uuids[8][96], cap[160], aside[160];
    size_t n = 0;

    (void)snprintf(cap, sizeof cap, "%s/GPU-7.cap", dir);
    (void)snprintf(aside, sizeof aside, "%s/GPU-7.cap.damaged", dir);
    (void)unlink(aside);
    for (size_t i = 0; i < n_elements(kinds); i++) {
        uw_error err = {""};
        if (i < 2)
            make("GPU-7.cap", i == 0 ? "nonsense" : "", 0600);
        else if (i == 2)
            ok(symlink(victim, cap) == 0, "a link");
        else
            ok(mkdir(cap, 0700) == 0, "a folder");
        is_int(journal_take(j, "GPU-7", &got, &err), -EBADMSG, "%s", kinds[i]);
        ok(!exists("GPU-7.cap") && strstr(err.text, "GPU-7.cap.damaged"),
           "… is put aside: %s", err.text);
        struct stat st;
        ok(lstat(aside, &st) == 0, "… and kept");
        is_int(journal_take(j, "GPU-7", &got, &err), -EBADMSG, "… and told again");
        (void)journal_write(j, &good, NULL);
        is_int(journal_take(j, "GPU-7", &got, &err), -EBADMSG, "… whatever comes then");
        bool listed = journal_list(j, uuids, 8, &n, NULL) == 0;
        unsigned same_board = 0;
        for (size_t k = 0; k < n; k++)
            same_board += strcmp(uuids[k], "GPU-7") == 0;
        ok(listed && same_board == 1, "… and listed once");
        ok((i == 3 ? rmdir(aside) : unlink(aside)) == 0, "… until root removes it");
        is_int(journal_take(j, "GPU-7", &got, &err), 0, "… then it is as ever");
        is_int(journal_remove(j, "GPU-7", NULL), 0, "… and can be removed");
        is_int(journal_take(j, "GPU-7", &got, &err), JOURNAL_NONE, "… as can be seen");
    }
    ok(victim_is_safe(), "what the link named is as it was");
}

static void test_dirs(void)
{
    struct journal j = {.dir_fd = -7};
    char path[64];
    uw_error err = {""};

    (void)snprintf(path, sizeof path, "%s/loose", top);
    ok(mkdir(path, 0700) == 0 && chmod(path, 0777) == 0, "a folder that all may write");
    is_int(journal_open(path, &j, &err), -EPERM, "is refused");
    ok(j.dir_fd == -7, "… result untouched");
    (void)snprintf(path, sizeof path, "%s/link", top);
    ok(symlink(dir, path) == 0, "a folder that is a link");
    ok(journal_open(path, &j, &err) < 0, "is refused: %s", err.text);
    (void)snprintf(path, sizeof path, "%s/no/where", top);
    is_int(journal_open(path, &j, &err), -ENOENT, "no parent, no folder");
}

/* No room for the client's name: no board may wait for that to be restored. */
static void test_no_room(const struct journal *j)
{
    struct rlimit was, none;
    struct holder holder;
    int fd = -1, other = -1;

    (void)getrlimit(RLIMIT_FSIZE, &was);
    none = was;
    none.rlim_cur = 0;
    (void)signal(SIGXFSZ, SIG_IGN);
    (void)setrlimit(RLIMIT_FSIZE, &none);
    is_int(journal_lock(j, "GPU-7", getpid(), &fd, &holder, NULL), 0,
           "a lock that cannot name its client is a lock");
    (void)setrlimit(RLIMIT_FSIZE, &was);
    is_int(journal_lock(j, "GPU-7", 1, &other, &holder, NULL), JOURNAL_TAKEN, "… taken");
    ok(holder.client == 0 && holder.pid == getpid(), "… by whoever the kernel names");
    fd_close_p(&fd);
}

int main(void)
{
    struct journal j;
    char command[] = "rm";

    if (!mkdtemp(top))
        return skip_all("no temporary folder");
    (void)snprintf(dir, sizeof dir, "%s/journal", top);
    test_text();
    is_int(journal_open(dir, &j, NULL), 0, "the folder is made");
    struct stat st;
    ok(stat(dir, &st) == 0 && (st.st_mode & 07777) == 0711,
       "… its owner alone may list it");
    is_int((int)strlen(j.boot), 36, "the boot id is read");
    test_files(&j);
    test_list(&j);
    test_links(&j);
    test_odd_locks(&j);
    test_odd_entries(&j);
    test_locks(&j);
    test_holders(&j);
    test_no_room(&j);
    test_damaged(&j);
    test_dirs();
    journal_close(&j);

    pid_t child = fork();
    if (child == 0) {
        (void)execlp(command, command, "-rf", top, (char *)NULL);
        _exit(1);
    }
    (void)waitpid(child, NULL, 0);
    return done();
}
