#include "slurm/message.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"

/* ---- requests ---- */

struct writer {
    char *at;
    size_t used, size;
    bool over;
};

static void put(struct writer *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void put(struct writer *w, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int n = vsnprintf(w->at + w->used, w->size - w->used, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= w->size - w->used)
        w->over = true;
    else
        w->used += (size_t)n;
}

/* A JSON string.  Replaces bytes that the daemon would refuse, and cuts text longer than
 * most.
 */
static void put_string(struct writer *w, const char *text, size_t most)
{
    char mended[sizeof(uw_error)];
    size_t n = strnlen(text, most < sizeof mended ? most : sizeof mended - 1);

    while (n > 0 && text[n] && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--; /* not within a character */
    memcpy(mended, text, n);
    mended[n] = '\0';
    utf8_mend(mended);
    put(w, "\"");
    for (const char *c = mended; *c; c++)
        put(w, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    put(w, "\"");
}

static void put_body(struct writer *w, const struct message_job *job)
{
    const char *comma = "";

    put(w, "{\"uid\":%u,\"gpu_minors\":[", (unsigned)job->uid);
    for (size_t i = 0; i < job->n_minors; i++)
        put(w, "%s%u", i ? "," : "", job->minor[i]);
    put(w, "],\"labels\":{");
    for (size_t i = 0; i < MESSAGE_LABELS_MAX; i++) {
        const struct message_label *l = &job->label[i];
        if (!l->key || !l->value || !*l->value)
            continue;
        put(w, "%s\"%s\":", comma, l->key);
        put_string(w, l->value, MESSAGE_LABEL - 1);
        comma = ",";
    }
    put(w, "}");
    if (job->limit_s > 0)
        put(w, ",\"time_limit\":\"%" PRIu64 " s\"", job->limit_s);
    for (int i = 0; i < 2; i++) {
        const struct wish *wish = i ? job->cls : job->ask;
        if (!wish)
            continue;
        put(w, ",\"%s\":", wish->key);
        put_string(w, wish->text, MESSAGE_LABEL - 1);
    }
    if (job->unknown) {
        put(w, ",\"unknown_gpus\":");
        put_string(w, job->unknown, sizeof(uw_error) - 1);
    }
    put(w, "}");
}

int message_begin(const struct message_job *job, char ret[MESSAGE_REQUEST])
{
    char body[MESSAGE_REQUEST - 256];
    struct writer b = {.at = body, .size = sizeof body};
    struct writer w = {.at = ret, .size = MESSAGE_REQUEST};

    put_body(&b, job);
    put(&w,
        "PUT /v1/jobs/slurm:%" PRIu32 " HTTP/1.1\r\nHost: localhost\r\n"
        "Content-Type: application/json\r\nContent-Length: %zu\r\n"
        "Connection: close\r\n\r\n%s",
        job->id, b.used, body);
    return b.over || w.over ? -E2BIG : (int)w.used;
}

int message_end(uint32_t job_id, char ret[MESSAGE_REQUEST])
{
    struct writer w = {.at = ret, .size = MESSAGE_REQUEST};

    put(&w,
        "DELETE /v1/jobs/slurm:%" PRIu32 " HTTP/1.1\r\nHost: localhost\r\n"
        "Connection: close\r\n\r\n",
        job_id);
    return w.over ? -E2BIG : (int)w.used;
}

/* ---- answers ---- */

int message_status(const char *answer, size_t len)
{
    static const char HEAD[] = "HTTP/1.";
    size_t n = sizeof HEAD - 1;

    if (len < n + 5 || memcmp(answer, HEAD, n) != 0 ||
        !isdigit((unsigned char)answer[n]) || answer[n + 1] != ' ')
        return -EPROTO;
    const char *c = answer + n + 2;
    for (int i = 0; i < 3; i++)
        if (!isdigit((unsigned char)c[i]))
            return -EPROTO;
    if ((len > n + 5 && isdigit((unsigned char)c[3])) || c[0] < '1' || c[0] > '5')
        return -EPROTO;
    return (c[0] - '0') * 100 + (c[1] - '0') * 10 + (c[2] - '0');
}

/* The start of the body; NULL: the head is not complete. */
static const char *body_of(const char *answer, size_t len)
{
    const char *end = memmem(answer, len, "\r\n\r\n", 4);

    return end ? end + 4 : NULL;
}

bool message_complete(const char *answer, size_t len)
{
    static const char NAME[] = "\ncontent-length:";
    const char *body = body_of(answer, len);

    if (!body)
        return false;
    for (const char *at = answer; at + sizeof NAME - 1 < body; at++) {
        size_t announced = 0;
        if (strncasecmp(at, NAME, sizeof NAME - 1) != 0)
            continue;
        for (at += sizeof NAME - 1; *at == ' ' || *at == '\t'; at++)
            ;
        for (; isdigit((unsigned char)*at) && announced <= MESSAGE_ANSWER; at++)
            announced = announced * 10 + (size_t)(*at - '0');
        return len - (size_t)(body - answer) >= announced;
    }
    int status = message_status(answer, len);
    return status == 204 || status == 304;
}

/* The start of the string at a key, after its quote; NULL: there is none. */
static const char *string_at(const char *body, const char *end, const char *key)
{
    size_t n = strlen(key);

    for (const char *at = body; end - at > (ptrdiff_t)n + 2; at++) {
        if (*at != '"' || memcmp(at + 1, key, n) != 0 || at[n + 1] != '"')
            continue;
        at += n + 2;
        while (at < end && (*at == ' ' || *at == ':'))
            at++;
        return at < end && *at == '"' ? at + 1 : NULL;
    }
    return NULL;
}

bool message_word(const char *answer, size_t len, const char *key, char *ret, size_t size)
{
    const char *body = body_of(answer, len), *end = answer + len;
    const char *at = body ? string_at(body, end, key) : NULL;
    size_t used = 0;

    for (; at && at < end && *at != '"' && used + 1 < size; at++) {
        if (*at == '\\' && ++at == end)
            break;
        ret[used++] = isprint((unsigned char)*at) ? *at : '?';
    }
    if (used > 0)
        ret[used] = '\0';
    return used > 0;
}
