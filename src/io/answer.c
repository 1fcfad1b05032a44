#include "io/answer.h"

#include <errno.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/error.h"

static int errno_of(unsigned status)
{
    static const struct {
        unsigned status;
        int r;
    } MAP[] = {
        {400, -EINVAL}, {401, -EACCES},    {403, -EPERM},   {404, -ENOENT},
        {409, -EBUSY},  {413, -EFBIG},     {422, -ENOTSUP}, {429, -EAGAIN},
        {503, -EAGAIN}, {504, -ETIMEDOUT},
    };

    for (size_t i = 0; i < n_elements(MAP); i++)
        if (MAP[i].status == status)
            return MAP[i].r;
    return -EIO;
}

int answer_read(const char *body, size_t len, struct json **ret, uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;
    int r = json_read("answer", body, len, &doc, err);

    if (r == 0 && json_make_plain(doc) < 0)
        r = fail(err, -ENOMEM, "answer: out of memory");
    if (r == 0)
        *ret = take(doc);
    return r;
}

/* The error text of the server, if the answer has one. */
int answer_refused(unsigned status, const char *body, size_t len, uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;
    const char *text = NULL;

    if (len > 0 && answer_read(body, len, &doc, NULL) == 0)
        text = json_as_text(json_get(json_root(doc), "error"));
    if (text)
        return fail(err, errno_of(status), "%s", text);
    return fail(err, errno_of(status), "the daemon answers with status %u", status);
}
