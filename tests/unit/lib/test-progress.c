/* Slots of a progress page: who gets which, in processes and after forks, and
 * what the reader of the page sees meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/units.h"
#include "io/progress.h"
#include "lib/inside.h"
#include "tap.h"

static char dir[64];
static struct progress_page *file;
static struct uw_progress_page *page;

static void begin(void)
{
    uw_error err = {""};

    (void)snprintf(dir, sizeof dir, "/tmp/uw-progress-XXXXXX");
    ok(mkdtemp(dir) && progress_page_new(dir, &file, &err) == 0, "a page %s", err.text);
    page = mmap(NULL, UW_PROGRESS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
                progress_page_fd(file), 0);
    (void)setenv("UNDERWATT_PROGRESS", progress_page_path(file), 1);
    (void)unsetenv("LOCAL_RANK");
}

static void end(void)
{
    (void)munmap(page, UW_PROGRESS_BYTES);
    progress_page_free(file);
    (void)rmdir(dir);
}

static int index_of(uw_progress *p)
{
    struct uw_progress_slot *slot = uw_progress_slot_of(p);
    pid_t pid = getpid();

    for (int i = 0; slot && i < UW_PROGRESS_SLOTS; i++)
        if (page->slot[i].pid == (uint64_t)pid)
            return i;
    return -1;
}

/* A pid that no process has. */
static pid_t dead_pid(void)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    (void)waitpid(pid, NULL, 0);
    return pid;
}

static int attach(const char *rank, uw_progress **ret)
{
    uw_error err = {""};
    int r;

    (void)(rank ? setenv("LOCAL_RANK", rank, 1) : unsetenv("LOCAL_RANK"));
    r = uw_progress_attach(NULL, ret, &err);
    if (r < 0)
        printf("# %s\n", err.text);
    return r < 0 ? r : index_of(*ret);
}

static void places(void)
{
    /* clang-format off */
    static const struct {
        const char *name, *rank;
        int alive, dead; /* slots before: those of a live and of a dead process; -1: none */
        bool full;       /* all others are dead processes' */
        int want;
    } cases[] = {
        {"an empty page", NULL, -1, -1, false, 0},
        {"the first is another's", NULL, 0, -1, false, 1},
        {"a dead process' slot stays while one is free", NULL, 0, 1, false, 2},
        {"no slot is free, one process is dead", NULL, 0, 1, true, 1},
        {"a rank", "5", -1, -1, false, 5},
        {"a rank's slot of a dead process", "5", 0, 5, false, 5},
        {"a rank's slot of a live one", "5", 5, -1, false, 0},
        {"a rank beyond the page", "63", -1, -1, false, 0},
        {"a rank that is no number", "five", -1, -1, false, 0},
        {"a negative rank", "-1", -1, -1, false, 0},
        {"an empty rank", "", -1, -1, false, 0},
    };
    /* clang-format on */
    pid_t dead = dead_pid();

    for (size_t i = 0; i < n_elements(cases); i++) {
        uw_progress *p = NULL;
        for (int k = 0; k < UW_PROGRESS_SLOTS; k++)
            page->slot[k] = (struct uw_progress_slot){
                .pid = k == cases[i].alive                   ? (uint64_t)getppid()
                       : k == cases[i].dead || cases[i].full ? (uint64_t)dead
                                                             : 0,
                .steps = 77,
                .last_step_ns = 5,
                .phase = UW_PHASE_LOAD};
        int at = attach(cases[i].rank, &p);
        is_int(at, cases[i].want, "%s: its slot", cases[i].name);
        struct uw_progress_slot *s = uw_progress_slot_of(p);
        ok(s && s->steps == 0 && s->last_step_ns == 0 && s->phase == 0,
           "%s: nothing of the one before is in it", cases[i].name);
        uw_progress_detach(p);
        is_int(page->slot[at >= 0 ? at : 0].pid, 0, "%s: given back", cases[i].name);
    }
    memset(page->slot, 0, sizeof page->slot);
}

static void full(void)
{
    uw_progress *p = NULL;

    for (int k = 0; k < UW_PROGRESS_SLOTS; k++)
        page->slot[k].pid = (uint64_t)getppid();
    is_int(attach(NULL, &p), -ENOSPC, "63 live processes: no slot");
    is_int(attach("3", &p), -ENOSPC, "nor for a rank");
    ok(!p, "nothing is written");
    memset(page->slot, 0, sizeof page->slot);
}

static void not_pages(void)
{
    uw_progress *p = NULL;
    char path[96];

    (void)unsetenv("UNDERWATT_PROGRESS");
    is_int(attach(NULL, &p), -ENOENT, "no page is named");
    (void)setenv("UNDERWATT_PROGRESS", "/nowhere/page", 1);
    is_int(attach(NULL, &p), -ENOENT, "a file that is not there");
    (void)setenv("UNDERWATT_PROGRESS", "/dev/null", 1);
    is_int(attach(NULL, &p), -EINVAL, "no file");
    (void)snprintf(path, sizeof path, "%s/short", dir);
    (void)setenv("UNDERWATT_PROGRESS", path, 1);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ok(fd >= 0 && ftruncate(fd, UW_PROGRESS_BYTES - 1) == 0, "a file too short");
    is_int(attach(NULL, &p), -EINVAL, "is no page");
    (void)!ftruncate(fd, UW_PROGRESS_BYTES);
    is_int(attach(NULL, &p), -EINVAL, "nor one without the header");
    (void)close(fd);
    (void)unlink(path);
    is_int(uw_progress_attach(NULL, NULL, NULL), -EINVAL, "nowhere to put it");
    ok(!p && !uw_progress_slot_of(NULL) && uw_progress_fd(NULL) == -1, "no attachment");
    is_int(uw_progress_phase(NULL, UW_PHASE_TRAIN, NULL), -EINVAL, "has no phase");
    uw_progress_step(NULL);
    uw_progress_detach(NULL);
    (void)setenv("UNDERWATT_PROGRESS", progress_page_path(file), 1);
}

/* What the reader sees of slot i. */
static struct progress_seen seen(int i)
{
    struct progress_read read;

    if (progress_page_read(file, UINT64_MAX / 2, &read, NULL) == 0)
        for (size_t k = 0; k < read.n; k++)
            if (read.slot[k].index == (unsigned)i)
                return read.slot[k];
    return (struct progress_seen){.index = 99};
}

static uint64_t touched_ns(void)
{
    struct stat st;

    (void)fstat(progress_page_fd(file), &st);
    return (uint64_t)st.st_mtim.tv_sec * NS_PER_S + (uint64_t)st.st_mtim.tv_nsec;
}

static void steps(void)
{
    const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    uw_progress *p = NULL, *same = NULL;
    pid_t dead = dead_pid();

    page->slot[2] = (struct uw_progress_slot){.pid = (uint64_t)dead, .steps = 1000};
    struct progress_seen s = seen(2);
    ok(!s.alive && s.steps == 1000, "the reader: a dead process' steps");
    page->slot[2].pid = (uint64_t)dead | UINT64_C(1) << 63;
    s = seen(2);
    ok(!s.alive, "one that is being taken is nobody's");
    is_int(attach("2", &p), 2, "one that took it and died there is replaced");
    s = seen(2);
    ok(s.alive && s.steps == 0 && s.flaws == 0, "the new owner's begin at 0, no flaw");
    for (int i = 0; i < 3; i++)
        uw_progress_step(p);
    s = seen(2);
    ok(s.steps == 3 && s.last_step_ns > 0 && s.phase == 0, "three steps");
    is_int(attach("7", &same), 2, "a second attachment has the same slot");
    uw_progress_step(same);
    is_int(seen(2).steps, 4, "and goes on there");
    (void)futimens(uw_progress_fd(p), old);
    is_int(uw_progress_phase(p, UW_PHASE_VALIDATE, NULL), 0, "a phase");
    is_int(seen(2).phase, UW_PHASE_VALIDATE, "is seen");
    ok(touched_ns() > NS_PER_S * 2, "the page is touched");
    (void)futimens(uw_progress_fd(p), old);
    is_int(uw_progress_phase(p, UW_PHASE_VALIDATE, NULL), 0, "the same phase");
    is_int(touched_ns(), NS_PER_S, "touches nothing");
    is_int(uw_progress_phase(p, (enum uw_phase)6, NULL), -EINVAL, "no phase");
    uw_progress_detach(same);
    uw_progress_detach(p);
    is_int(seen(2).index, 99, "given back once and for all");
}

/* Two parts of a program attach and one of them ends: another process takes the slot. */
static void shared(void)
{
    uw_progress *p = NULL, *same = NULL;

    ok(attach(NULL, &p) == 0 && attach(NULL, &same) == 0, "two attachments, one slot");
    uw_progress_step(p);
    uw_progress_detach(same);
    page->slot[0] = (struct uw_progress_slot){.pid = (uint64_t)getppid(), .steps = 40};
    uw_progress_step(p);
    is_int(page->slot[0].steps, 40, "one was given back: the new owner's is not written");
    is_int(index_of(p), 1, "the other takes a slot again");
    is_int(seen(1).steps, 1, "and goes on there");
    uw_progress_detach(p);
    ok(page->slot[0].pid == (uint64_t)getppid() && page->slot[1].pid == 0,
       "its own is given back alone");
    memset(page->slot, 0, sizeof page->slot);
}

/* In a child: 0, or the line of what is wrong. */
static int child_steps(uw_progress *p, struct uw_progress_slot *parents)
{
    struct uw_progress_slot *own = uw_progress_slot_of(p);

    if (!own || own == parents || own->pid != (uint64_t)getpid())
        return __LINE__;
    uw_progress_step(p);
    if (own->steps != 1 || parents->steps != 1)
        return __LINE__;
    const struct uw_progress_slot *mine = &page->slot[4 + (own - parents)];
    uw_progress_detach(p); /* with its mapping */
    return mine->pid == 0 && page->slot[4].pid == (uint64_t)getppid() ? 0 : __LINE__;
}

static void forks(void)
{
    uw_progress *p = NULL;
    int status = -1;

    is_int(attach("4", &p), 4, "a parent");
    struct uw_progress_slot *slot = uw_progress_slot_of(p);
    uw_progress_step(p);
    pid_t child = fork();
    if (child == 0) {
        _exit(child_steps(p, slot) ? 1 : 0);
    }
    (void)waitpid(child, &status, 0);
    is_int(status, 0, "a child takes a slot of its own and gives that one back");
    child = fork();
    if (child == 0) {
        uw_progress_detach(p);
        _exit(0);
    }
    (void)waitpid(child, &status, 0);
    is_int(slot->pid, getpid(), "a child that never took one frees nothing");
    uw_progress_detach(p);
}

/* As many processes as there are slots at once: each has one, none has two. */
static void crowd(void)
{
    static const struct timespec nap = {.tv_nsec = 1000000};
    int go[2], n = 0, bad = 0;
    pid_t child[UW_PROGRESS_SLOTS];
    char c;

    if (pipe(go) < 0)
        return;
    for (int i = 0; i < UW_PROGRESS_SLOTS; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            uw_progress *p = NULL;
            (void)close(go[1]);
            (void)!read(go[0], &c, 1); /* until the parent closes it */
            int r = uw_progress_attach(NULL, &p, NULL);
            if (r == 0)
                uw_progress_step(p);
            for (int k = 0; r == 0 && k < 60000; k++) { /* until it is killed */
                (void)nanosleep(&nap, NULL);
            }
            _exit(1);
        }
    }
    (void)close(go[0]);
    (void)close(go[1]);
    for (int k = 0; k < 60000 && n < UW_PROGRESS_SLOTS; k++) {
        (void)nanosleep(&nap, NULL);
        n = 0;
        for (int i = 0; i < UW_PROGRESS_SLOTS; i++)
            n += page->slot[i].pid && page->slot[i].steps == 1;
    }
    for (int i = 0; i < UW_PROGRESS_SLOTS; i++) {
        int has = 0;
        for (int k = 0; k < UW_PROGRESS_SLOTS; k++)
            has += page->slot[k].pid == (uint64_t)child[i];
        bad += has != 1;
        (void)kill(child[i], SIGKILL);
    }
    for (int i = 0; i < UW_PROGRESS_SLOTS; i++)
        (void)waitpid(child[i], NULL, 0);
    is_int(n, UW_PROGRESS_SLOTS, "63 processes at once: each has a slot");
    is_int(bad, 0, "and one alone");
    memset(page->slot, 0, sizeof page->slot);
}

int main(void)
{
    begin();
    places();
    full();
    not_pages();
    steps();
    shared();
    forks();
    crowd();
    end();
    return done();
}
