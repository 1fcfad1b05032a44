#include "slurm/message.h"

#include <errno.h>
#include <stdio.h>

#include "base/auto.h"
#include "tap.h"

#define OK "HTTP/1.1 200 OK\r\n"

/* clang-format off */
static const struct { const char *answer; int status; bool complete; const char *refused; } answers[] = {
    {OK "Content-Length: 2\r\n\r\n{}", 200, true, NULL},
    {OK "content-length:  16\r\n\r\n{\"refused\":null}", 200, true, NULL},
    {OK "Content-Length: 35\r\n\r\n{\"id\": 7, \"refused\": \"no \\\"GPU\\\"\\n\"}", 200, true, "no \"GPU\"n"},
    {OK "Content-Length: 3\r\n\r\n{}", 200, false, NULL},
    {OK "Content-Length: 2\r\n", 200, false, NULL},
    {OK "\r\n{\"refused\":\"x\"", 200, false, "x"},
    {OK "\r\n{\"refused\":\"x", 200, false, "x"},
    {OK "\r\n{\"refused\":\"x\\", 200, false, "x"},
    {OK "\r\n{\"refused\":\"a\xc3\xa4\x01z\"}", 200, false, "a???z"},
    {OK "\r\n{\"refused\"", 200, false, NULL},
    {OK "\r\n{\"refused\":", 200, false, NULL},
    {OK "\r\n{\"refused\":7}", 200, false, NULL},
    {OK "Content-Length: 99999999999999999999999\r\n\r\n{}", 200, false, NULL},
    {"HTTP/1.1 204 No Content\r\n\r\n", 204, true, NULL},
    {"HTTP/1.0 599", 599, false, NULL},
    {"HTTP/1.1 600 x\r\n\r\n", -EPROTO, false, NULL}, {"HTTP/1.1 2000\r\n\r\n", -EPROTO, false, NULL},
    {"HTTP/2 200\r\n\r\n", -EPROTO, false, NULL}, {"HTTP/1.1", -EPROTO, false, NULL}, {"", -EPROTO, false, NULL},
    {"SSH-2.0-OpenSSH_9.2\r\n", -EPROTO, false, NULL}, {"HTTP/1.1 2x0 OK\r\n\r\n", -EPROTO, false, NULL},
};
/* clang-format on */

int main(void)
{
    char request[MESSAGE_REQUEST], said[40];
    struct wish cap, cls;
    struct message_job job = {.id = 4711, .uid = 1000, .minor = {3, 0}, .n_minors = 2};

    (void)wish_cap("250", &cap, NULL);
    (void)wish_class("night \"owls\" \\o/", &cls, NULL);
    int n = message_begin(&job, request);
    is_int(n, strlen(request), "the length of a request");
    is_str(request,
           "PUT /v1/jobs/slurm:4711 HTTP/1.1\r\nHost: localhost\r\n"
           "Content-Type: application/json\r\nContent-Length: 43\r\nConnection: "
           "close\r\n\r\n"
           "{\"uid\":1000,\"gpu_minors\":[3,0],\"labels\":{}}",
           "a job without anything");
    job.label[0] = (struct message_label){"slurm.partition", "gpu"};
    job.label[1] = (struct message_label){"slurm.account", NULL};
    job.label[2] = (struct message_label){
        "slurm.qos",
        "a\x01\xffz 1234567890123456789012345678901234567890123456789012345678\xc3\xa4"};
    job.limit_s = 36000;
    job.ask = &cap;
    job.cls = &cls;
    n = message_begin(&job, request);
    const char *body = strstr(request, "\r\n\r\n");
    is_str(body ? body + 4 : "",
           "{\"uid\":1000,\"gpu_minors\":[3,0],\"labels\":{\"slurm.partition\":\"gpu\","
           "\"slurm.qos\":\"a??z "
           "1234567890123456789012345678901234567890123456789012345678\"},"
           "\"time_limit\":\"36000 s\",\"cap\":\"250 W\","
           "\"class\":\"night \\\"owls\\\" \\\\o/\"}",
           "a job with all, mended and escaped, cut before a character");
    is_int(message_end(7, request), strlen(request), "the length of the end");
    is_str(request,
           "DELETE /v1/jobs/slurm:7 HTTP/1.1\r\nHost: localhost\r\nConnection: "
           "close\r\n\r\n",
           "the end");
    job.n_minors = MESSAGE_GPUS_MAX;
    for (size_t i = 0; i < MESSAGE_GPUS_MAX; i++)
        job.minor[i] = 0xfffff;
    for (size_t i = 0; i < MESSAGE_LABELS_MAX; i++)
        job.label[i] = (struct message_label){"slurm.partition",
                                              "\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\""
                                              "\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\""
                                              "\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\""
                                              "\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\""};
    ok(message_begin(&job, request) > 0, "the largest job has room");

    for (size_t i = 0; i < n_elements(answers); i++) {
        const char *a = answers[i].answer;
        is_int(message_status(a, strlen(a)), answers[i].status, "status of %s", a);
        ok(message_complete(a, strlen(a)) == answers[i].complete, "… it is %scomplete",
           answers[i].complete ? "" : "not ");
        bool has = message_word(a, strlen(a), "refused", said, sizeof said);
        ok(has == (answers[i].refused != NULL), "… it has %s", has ? said : "no word");
        if (has && answers[i].refused)
            is_str(said, answers[i].refused, "… the word");
    }
    ok(message_word(OK "\r\n{\"refused\":\"0123456789\"}", strlen(OK) + 26, "refused",
                    said, 5) &&
           strcmp(said, "0123") == 0,
       "a long word is cut");
    return done();
}
