/* An actuator for tests that says hello and is renewed, and answers nothing else: started
 * by a client in place of underwatt-actuator, on the socket of its standard input.  Where
 * a file "ends" lies beside the program it ends once it is asked to hold a board.
 */
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "actuator/proto.h"

static int ends(void)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 6);

    while (n > 0 && path[n - 1] != '/')
        n--;
    if (n <= 0)
        return 0;
    (void)snprintf(path + n, sizeof path - (size_t)n, "ends");
    return access(path, F_OK) == 0;
}

int main(void)
{
    int may_end = ends();
    const struct actuator_reply done = {.result = ACTUATOR_DONE};
    struct proto_request asked;
    char bytes[4096];
    ssize_t n;

    while ((n = recv(STDIN_FILENO, bytes, sizeof bytes, 0)) > 0) {
        if (proto_parse_request(bytes, (size_t)n, &asked, NULL) < 0)
            return 1;
        if (asked.type == PROTO_HOLD && may_end)
            return 0;
        if (asked.type != PROTO_HELLO && asked.type != PROTO_RENEW)
            continue;
        struct proto_answer answer = proto_answer(asked.type, asked.seq, &done);
        if (send(STDIN_FILENO, &answer, sizeof answer, MSG_NOSIGNAL) < 0)
            return 1;
    }
    return 0;
}
