/* What an actuator that is not one of ours answers its client: a script of what the
 * client asks once it is ready, and of the messages that come, whatever they answer.  A
 * line each:
 *
 *     hold|release|detach|limit|clocks BOARD    the client asks
 *     counters                                  … for the counters of processors
 *     free N                                    it frees its end in the Nth callback
 *     answer TYPE SEQ RESULT BOARD TEXT         comes (BOARD "-": none; hello is SEQ 1)
 *     event TYPE BOARD TEXT                     comes
 *     size N                                    the next message has N bytes
 *     fds N                                     … and N descriptors with it
 *     range MIN MAX                             … and this range
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "actuator/client.h"
#include "actuator/core.h"
#include "actuator/proto.h"
#include "base/names.h"
#include "base/units.h"
#include "fuzz.h"
#include "gpu/counters.h"

enum { ASKS_MAX = 80, MESSAGES_MAX = 100, FDS_MAX = 3 };

static struct {
    int listener;
    struct sockaddr_un at;
} house = {.listener = -1};

struct asked {
    char what;
    char uuid[96];
    bool taken, answered;
};

static struct {
    struct loop *loop;
    struct actuator *act;
    struct asked ask[ASKS_MAX];
    size_t n_asks;
    unsigned free_in, callbacks;
    unsigned readies, ends, counters, counters_ends;
    bool counters_taken, ready, freed;
} w;

/* Each callback begins so: nobody is called who has gone. */
static void called(const struct actuator *act)
{
    must(!w.freed && w.ends == 0 && (!w.act || act == w.act));
    w.callbacks++;
}

static int back(struct actuator *act)
{
    if (w.free_in && w.callbacks == w.free_in) {
        actuator_free(act);
        w.freed = true;
        loop_stop(w.loop, 0);
    }
    return 0;
}

static int on_reply(struct actuator *act, const struct actuator_reply *reply, void *user)
{
    struct asked *ask = user;

    called(act);
    must(ask->taken && !ask->answered);
    ask->answered = true;
    must(memchr(reply->text, '\0', sizeof reply->text) != NULL);
    must(memchr(reply->uuid, '\0', sizeof reply->uuid) != NULL);
    must((unsigned)reply->result < ACTUATOR_N_RESULTS);
    must(reply->range.min_mw <= reply->range.max_mw);
    if (reply->result == ACTUATOR_GONE)
        must(!reply->uuid[0] || core_is_uuid(reply->uuid));
    fuzz_add("%c %s %s; ", ask->what, reply->uuid,
             names_word(NAMES_ACTUATOR_RESULT, reply->result));
    return back(act);
}

static int on_counter(struct actuator *act, const char *zone, int fd, void *user)
{
    struct stat st;
    (void)user;

    called(act);
    must(w.counters_taken && w.counters_ends == 0);
    if (zone) {
        must(gpu_counters_has_name(zone) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode));
        must(++w.counters <= GPU_COUNTERS_MAX);
        (void)close(fd);
        fuzz_add("counter %s; ", zone);
    } else {
        must(fd == -1);
        w.counters_ends++;
        fuzz_add("counters end; ");
    }
    return back(act);
}

static void ask_one(struct actuator *act, struct asked *ask)
{
    int r = -EINVAL;

    switch (ask->what) {
    case 'h':
        r = actuator_hold(act, ask->uuid, on_reply, ask);
        break;
    case 'r':
        r = actuator_release(act, ask->uuid, on_reply, ask);
        break;
    case 'd':
        r = actuator_detach(act, ask->uuid, on_reply, ask);
        break;
    case 'l':
        r = actuator_set_limit(act, ask->uuid, 200000, on_reply, ask);
        break;
    case 'k':
        r = actuator_set_clocks(act, ask->uuid, 0, 1200, on_reply, ask);
        break;
    case 'c':
        r = w.counters_taken ? -EBUSY : actuator_counters(act, on_counter, NULL);
        w.counters_taken = w.counters_taken || r == 0;
        break;
    default:
        break;
    }
    ask->taken = r == 0 && ask->what != 'c';
}

static int on_ready(struct actuator *act, int r, const char *text, void *user)
{
    (void)user;
    called(act);
    must(w.readies++ == 0 && r <= 0 && text && (r == 0 || *text));
    w.ready = r == 0;
    fuzz_add("%s; ", r == 0 ? "ready" : text);
    for (size_t i = 0; r == 0 && i < w.n_asks; i++)
        ask_one(act, &w.ask[i]);
    if (r < 0)
        loop_stop(w.loop, 0);
    return back(act);
}

static int on_event(struct actuator *act, enum actuator_event event,
                    const struct actuator_reply *what, void *user)
{
    (void)user;
    called(act);
    must(w.readies == 1 || event != ACTUATOR_EVENT_ENDED);
    must(memchr(what->text, '\0', sizeof what->text) != NULL);
    fuzz_add("event %d %s %s; ", (int)event, what->uuid, what->text);
    if (event == ACTUATOR_EVENT_ENDED) {
        must(!what->uuid[0]);
        for (size_t i = 0; i < w.n_asks; i++)
            must(w.ask[i].taken == w.ask[i].answered);
        must(!w.counters_taken || w.counters_ends == 1);
        w.ends++;
        loop_stop(w.loop, 0);
    }
    return back(act);
}

static int on_late(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer, (void)now_ns, (void)user;
    abort(); /* the peer has hung up: the end comes at once */
}

/* ---- the other end ---- */

struct next {
    size_t size;
    unsigned fds;
    struct actuator_range range;
};

static void send_answer(int fd, unsigned type, uint32_t seq,
                        const struct actuator_reply *reply, struct next *next)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
    } control = {.room = {0}};
    struct proto_answer answer = proto_answer(PROTO_HELLO, seq, reply);
    struct iovec data = {.iov_base = &answer, .iov_len = next->size};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    int fds[FDS_MAX];

    answer.type = (uint16_t)type;
    for (unsigned i = 0; i < next->fds; i++)
        must((fds[i] = memfd_create("counter", MFD_CLOEXEC)) >= 0);
    if (next->fds) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(next->fds * sizeof(int));
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(next->fds * sizeof(int));
        memcpy(CMSG_DATA(&control.head), fds, next->fds * sizeof(int));
    }
    (void)sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    for (unsigned i = 0; i < next->fds; i++)
        (void)close(fds[i]);
    *next = (struct next){.size = sizeof answer};
}

static void copy_word(char *ret, size_t size, const char *word)
{
    (void)snprintf(ret, size, "%s", word && strcmp(word, "-") != 0 ? word : "");
}

static unsigned number(const char *word)
{
    unsigned v = 0;

    for (; word && *word >= '0' && *word <= '9'; word++)
        v = v * 10 + (unsigned)(*word - '0');
    return v;
}

static void play_message(int fd, char *line, struct next *next)
{
    const char *what = strsep(&line, " "), *first = strsep(&line, " ");
    struct actuator_reply reply = {.result = ACTUATOR_DONE, .range = next->range};

    if (strcmp(what, "size") == 0) {
        unsigned n = number(first);
        next->size = n < sizeof(struct proto_answer) ? n : sizeof(struct proto_answer);
    } else if (strcmp(what, "fds") == 0) {
        next->fds = number(first) % (FDS_MAX + 1);
    } else if (strcmp(what, "range") == 0) {
        next->range = (struct actuator_range){number(first), number(line)};
    } else if (strcmp(what, "event") == 0) {
        copy_word(reply.uuid, sizeof reply.uuid, strsep(&line, " "));
        copy_word(reply.text, sizeof reply.text, line);
        send_answer(fd, number(first), 0, &reply, next);
    } else if (strcmp(what, "answer") == 0) {
        unsigned seq = number(strsep(&line, " "));
        unsigned result = number(strsep(&line, " "));
        memcpy(&reply.result, &result, sizeof reply.result); /* may be none */
        copy_word(reply.uuid, sizeof reply.uuid, strsep(&line, " "));
        copy_word(reply.text, sizeof reply.text, line);
        send_answer(fd, number(first), seq, &reply, next);
    }
}

/* What the client asks; false: the line is not of that kind. */
static bool play_ask(const char *line)
{
    static const struct {
        const char *word;
        char what;
    } words[] = {{"hold ", 'h'},  {"release ", 'r'}, {"detach ", 'd'},
                 {"limit ", 'l'}, {"clocks ", 'k'},  {"counters", 'c'}};

    if (strncmp(line, "free ", 5) == 0) {
        w.free_in = number(line + 5);
        return true;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strncmp(line, words[i].word, strlen(words[i].word)) == 0) {
            struct asked *ask = &w.ask[w.n_asks];
            if (w.n_asks == ASKS_MAX)
                return true;
            w.n_asks++;
            ask->what = words[i].what;
            copy_word(ask->uuid, sizeof ask->uuid, line + strlen(words[i].word));
            return true;
        }
    return false;
}

static void play(int fd, char *text)
{
    struct next next = {.size = sizeof(struct proto_answer)};
    char *line;
    int n = 0;

    while ((line = strsep(&text, "\n")) && n++ < MESSAGES_MAX)
        if (!play_ask(line))
            play_message(fd, line, &next);
    (void)shutdown(fd, SHUT_WR);
}

static void start(void)
{
    static char dir[] = "/tmp/uw-fuzz-XXXXXX";

    house.at.sun_family = AF_UNIX;
    must(mkdtemp(dir) != NULL);
    (void)snprintf(house.at.sun_path, sizeof house.at.sun_path, "%s/a", dir);
    house.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    must(house.listener >= 0 &&
         bind(house.listener, (struct sockaddr *)&house.at, sizeof house.at) == 0 &&
         listen(house.listener, 4) == 0);
}

static void clean_up(void)
{
    char *slash = strrchr(house.at.sun_path, '/');

    (void)unlink(house.at.sun_path);
    if (slash) {
        *slash = '\0';
        (void)rmdir(house.at.sun_path);
    }
}

static int lowest_free(void)
{
    int fd = dup(house.listener);

    must(fd >= 0);
    (void)close(fd);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct actuator_opts opts = {.on_ready = on_ready, .on_event = on_event};
    struct loop_timer *late = NULL;
    char *text = strndup((const char *)data, size);

    if (house.listener < 0) {
        start();
        (void)atexit(clean_up);
    }
    memset(&w, 0, sizeof w);
    (void)fuzz_say("-", "%s", "");
    int free_fd = lowest_free();
    must(text && loop_new_real((struct loop_clock){0, 1}, &w.loop, NULL) == 0);
    must(loop_timer_new(w.loop, loop_now_ns(w.loop) + 8 * NS_PER_S, 0, on_late, NULL,
                        &late, NULL) == 0);
    must(actuator_connect(w.loop, house.at.sun_path, &opts, &w.act, NULL) == 0);
    int fd = accept4(house.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    must(fd >= 0);
    play(fd, text);
    must(loop_run(w.loop, NULL) == 0);
    must(w.freed || (w.readies == 1 && w.ends == (w.ready ? 1 : 0)));
    if (!w.freed)
        actuator_free(w.act);
    loop_timer_free(late);
    loop_free(w.loop);
    (void)close(fd);
    must(lowest_free() == free_fd); /* what came with messages was closed */
    (void)snprintf(fuzz_said.word, sizeof fuzz_said.word, "%s",
                   w.freed   ? "freed"
                   : w.ready ? "ready"
                             : "failed");
    free(text);
    return 0;
}
