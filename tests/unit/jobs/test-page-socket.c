/* The door that progress pages come in by: real sockets, clients in a thread. */
#include "jobs/page-socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "tap.h"

static struct {
    struct loop *loop;
    struct loop_worker *worker;
    struct page_socket *door;
    char dir[64], path[96];
    /* what the door was told */
    unsigned pages;
    uint64_t job;
    uid_t uid;
    bool readable;
    int page;
} w;

static struct page_socket_opts door_opts;

static int on_page(uint64_t job, uid_t uid, int fd, uw_error *err, void *user)
{
    char byte;
    (void)user;

    w.pages++;
    w.job = job;
    w.uid = uid;
    w.readable = pread(fd, &byte, 1, 0) == 1;
    (void)close(fd);
    return job == 13 ? fail(err, -ENOENT, "job 13 is not tuned") : 0;
}

/* Job 12 has the page that its client sent, job 13 is another user's, others have none.
 */
static int on_take(uint64_t job, uid_t uid, uw_error *err, void *user)
{
    const int *page = user;

    w.uid = uid;
    if (job == 13)
        return fail(err, -EPERM, "job 13 is not yours");
    return job == 12 ? *page : fail(err, -ENODATA, "none");
}

/* One exchange from a client's thread while the loop serves. */
struct client {
    int (*go)(struct client *c);
    uint64_t job;
    const char *text;
    size_t fds;
    int page;
    int r;
    uw_error err;
    char answer[PAGE_SOCKET_ANSWER];
};

static int client_run(struct loop *loop, void *work)
{
    struct client *c = work;
    (void)loop;
    return c->go(c);
}

static int client_done(struct loop *loop, void *work, int r)
{
    struct client *c = work;
    c->r = r;
    loop_stop(loop, 0);
    return 0;
}

static void play(struct client *c, int (*go)(struct client *))
{
    struct loop_work work = {.fn = client_run, .done = client_done, .work = c};

    c->go = go;
    if (loop_worker_submit(w.worker, &work) == 0)
        (void)loop_run(w.loop, NULL);
}

static int send_well(struct client *c)
{
    return page_socket_send(w.path, c->job, c->page, &c->err);
}

static int take_well(struct client *c)
{
    return page_socket_take(w.path, c->job, &c->page, &c->err);
}

static int open_client(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s", w.path);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at) < 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* c->text with c->fds copies of the page. */
static int send_raw(struct client *c)
{
    union {
        char buf[CMSG_SPACE(8 * sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    char text[100];
    int len = snprintf(text, sizeof text, "%s", c->text);
    struct iovec iov = {text, (size_t)len};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    auto_(fd_close) int fd = open_client();

    if (fd < 0)
        return -errno;
    if (c->fds > 0) {
        msg.msg_control = control.buf;
        msg.msg_controllen = CMSG_SPACE(c->fds * sizeof(int));
        struct cmsghdr *h = CMSG_FIRSTHDR(&msg);
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN(c->fds * sizeof(int));
        for (size_t i = 0; i < c->fds; i++)
            memcpy(CMSG_DATA(h) + i * sizeof(int), &c->page, sizeof(int));
    }
    if (sendmsg(fd, &msg, MSG_NOSIGNAL) < 0)
        return -errno;
    ssize_t n = recv(fd, c->answer, sizeof c->answer - 1, 0);
    c->answer[n > 0 ? n : 0] = '\0';
    return n > 0 ? 0 : -ECONNRESET;
}

/* More of those who say nothing than there are places, then one who speaks. */
static int crowd(struct client *c)
{
    int idle[PAGE_SOCKET_PEERS + 20];
    int r;

    for (size_t i = 0; i < n_elements(idle); i++)
        idle[i] = open_client();
    r = send_well(c);
    for (size_t i = 0; i < n_elements(idle); i++)
        if (idle[i] >= 0)
            (void)close(idle[i]);
    return r;
}

static void raw(const char *text, size_t fds, const char *want)
{
    struct client c = {.text = text, .fds = fds, .page = STDIN_FILENO};
    unsigned before = w.pages;

    c.page = open("/dev/null", O_RDONLY | O_CLOEXEC);
    play(&c, send_raw);
    (void)close(c.page);
    ok(c.r == 0 && strstr(c.answer, "refused ") == c.answer && strstr(c.answer, want),
       "'%.20s' with %zu descriptors: %s", text, fds, c.answer);
    ok(w.pages == before, "… and nothing was handed on");
}

static unsigned open_fds(void)
{
    unsigned n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static int give_up(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    (void)now_ns;
    (void)user;
    loop_stop(w.loop, 0);
    return 0;
}

static int look_at_fds(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    const unsigned *want = user;
    (void)timer;
    (void)now_ns;

    if (open_fds() == *want)
        loop_stop(w.loop, 0);
    return 0;
}

/* The door closes its end of a connection when the loop sees that the client has. */
static bool fds_come_to(unsigned want)
{
    uint64_t now = loop_now_ns(w.loop), until = now + 10 * NS_PER_S;
    struct loop_timer *look = NULL, *end = NULL;

    if (loop_timer_new(w.loop, now, NS_PER_MS, look_at_fds, &want, &look, NULL) == 0 &&
        loop_timer_new(w.loop, until, 0, give_up, NULL, &end, NULL) == 0)
        (void)loop_run(w.loop, NULL);
    loop_timer_free(look);
    loop_timer_free(end);
    return open_fds() == want;
}

static void pages(int page)
{
    const unsigned before = open_fds();
    struct client good = {.job = 12, .page = page}, bad = {.job = 13, .page = page};

    play(&good, send_well);
    ok(good.r == 0 && w.pages == 1 && w.job == 12 && w.uid == getuid() && w.readable,
       "a page comes through, with its job and the peer's uid %s", good.err.text);
    play(&bad, send_well);
    ok(bad.r == -EPERM, "a refusal is told");
    is_str(bad.err.text, "job 13 is not tuned", "… in the daemon's words");

    struct client take_good = {.job = 12, .page = -1}, none = {.job = 14, .page = -1},
                  not_yours = {.job = 13, .page = -1};
    struct stat a, b;
    play(&take_good, take_well);
    ok(take_good.r == 0 && fstat(take_good.page, &a) == 0 && fstat(page, &b) == 0 &&
           a.st_ino == b.st_ino && take_good.page != page && w.uid == getuid(),
       "the page is given out %s", take_good.err.text);
    (void)close(take_good.page);
    play(&none, take_well);
    ok(none.r == -ENODATA && none.page == -1, "none yet: %s", none.err.text);
    play(&not_yours, take_well);
    ok(not_yours.r == -EPERM && strcmp(not_yours.err.text, "job 13 is not yours") == 0,
       "refused: %s", not_yours.err.text);
    raw("take 12", 1, "1 descriptors");
    raw("take 12x", 0, "number");
    raw("page 12", 0, "0 descriptors");
    raw("page 12", 2, "2 descriptors");
    raw("page 12", 8, "4 descriptors");
    raw("page 12x", 1, "number");
    raw("page ", 1, "page JOB");
    raw("PAGE 12", 1, "page JOB");
    raw("page 99999999999999999999", 1, "99999999999999999999");
    raw("page 1234567890123456789012345678901234567890123456789012345678901234567890", 1,
        "64 bytes");
    bool all = fds_come_to(before);
    ok(all, "no descriptor is left behind: %u, %u", before, open_fds());

    struct client late = {.job = 14, .page = page};
    play(&late, crowd);
    ok(late.r == 0 && w.job == 14, "a crowd that says nothing keeps nobody out");
}

static void places(void)
{
    struct page_socket *second = NULL;
    uw_error err = {""};
    struct stat st;

    ok(stat(w.path, &st) == 0 && (st.st_mode & 0777) == 0666, "everybody may knock");
    ok(page_socket_new(w.loop, w.path, &door_opts, &second, &err) == -EADDRINUSE &&
           strstr(err.text, "another process listens"),
       "a door that is served is not taken: %s", err.text);
    page_socket_free(take(w.door));
    ok(access(w.path, F_OK) < 0, "its file goes with it");

    struct sockaddr_un at = {.sun_family = AF_UNIX};
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s", w.path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ok(bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && close(fd) == 0,
       "(a daemon that was killed leaves its socket)");
    ok(page_socket_new(w.loop, w.path, &door_opts, &w.door, &err) == 0,
       "which is replaced %s", err.text);
    page_socket_free(take(w.door));

    fd = open(w.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    (void)close(fd);
    ok(page_socket_new(w.loop, w.path, &door_opts, &w.door, &err) == -EEXIST &&
           access(w.path, F_OK) == 0,
       "a file of somebody's is not: %s", err.text);
    (void)unlink(w.path);
    struct client gone = {.job = 12, .page = STDERR_FILENO};
    play(&gone, send_well);
    ok(gone.r == -ENOENT && strstr(gone.err.text, w.path), "no door: %s", gone.err.text);
}

int main(void)
{
    uw_error err = {""};
    int page = memfd_create("page", MFD_CLOEXEC);

    w.page = page;
    door_opts = (struct page_socket_opts){on_page, on_take, &w.page};
    (void)snprintf(w.dir, sizeof w.dir, "/tmp/underwatt-test-XXXXXX");
    if (page < 0 || write(page, "x", 1) != 1 || !mkdtemp(w.dir))
        return skip_all("no memfd, or no temporary directory");
    (void)snprintf(w.path, sizeof w.path, "%s/job.sock", w.dir);
    int r = loop_new_real((struct loop_clock){0, 1}, &w.loop, &err);
    if (r >= 0)
        r = loop_worker_new(w.loop, "client", &w.worker, &err);
    if (r >= 0)
        r = page_socket_new(w.loop, w.path, &door_opts, &w.door, &err);
    if (ok(r >= 0, "the door opens %s", err.text)) {
        pages(page);
        places();
    }
    page_socket_free(w.door);
    loop_worker_free(w.worker);
    loop_free(w.loop);
    (void)close(page);
    (void)rmdir(w.dir);
    return done();
}
