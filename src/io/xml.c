#include "io/xml.h"

#include <ctype.h>
#include <errno.h>
#include <expat.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"

struct reading {
    const struct xml_reader *reader;
    XML_Parser parser;
    unsigned depth;
    size_t elements;
    struct level {
        size_t len;
        char text[XML_MAX_TEXT];
    } level[XML_MAX_DEPTH];
    int r;
    const char *refused;
};

static void stop(struct reading *d, int r, const char *refused)
{
    if (d->r != 0)
        return;
    d->r = r;
    d->refused = refused;
    (void)XML_StopParser(d->parser, XML_FALSE);
}

static const char *local(const char *name)
{
    const char *at = strrchr(name, '|');

    return at ? at + 1 : name;
}

static void on_begin(void *user, const XML_Char *name, const XML_Char **attributes)
{
    struct reading *d = user;
    (void)attributes;

    if (d->r != 0)
        return;
    if (d->depth == XML_MAX_DEPTH || d->elements == XML_MAX_ELEMENTS) {
        stop(d, -EINVAL,
             d->depth == XML_MAX_DEPTH ? "nested too deep" : "too many elements");
        return;
    }
    d->elements++;
    d->level[d->depth++].len = 0;
    int r =
        d->reader->begin ? d->reader->begin(local(name), d->depth, d->reader->user) : 0;
    if (r != 0)
        stop(d, r, NULL);
}

static void on_text(void *user, const XML_Char *bytes, int len)
{
    struct reading *d = user;

    if (d->r != 0 || d->depth == 0)
        return;
    struct level *l = &d->level[d->depth - 1];
    size_t room = sizeof l->text - 1 - l->len,
           n = (size_t)len < room ? (size_t)len : room;
    memcpy(l->text + l->len, bytes, n);
    l->len += n;
}

static void on_end(void *user, const XML_Char *name)
{
    struct reading *d = user;

    if (d->r != 0)
        return;
    struct level *l = &d->level[d->depth - 1];
    const char *at = l->text;
    while (l->len > 0 && isspace((unsigned char)l->text[l->len - 1]))
        l->len--;
    l->text[l->len] = '\0';
    while (isspace((unsigned char)*at))
        at++;
    int r = d->reader->end(local(name), at, d->depth, d->reader->user);
    d->depth--;
    if (r != 0)
        stop(d, r, NULL);
}

static void on_doctype(void *user, const XML_Char *name, const XML_Char *sysid,
                       const XML_Char *pubid, int internal)
{
    (void)name;
    (void)sysid;
    (void)pubid;
    (void)internal;
    stop(user, -EINVAL, "the document has a document type declaration");
}

int xml_read(const char *name, const char *text, size_t len,
             const struct xml_reader *reader, uw_error *err)
{
    struct reading d = {.reader = reader, .depth = 0};

    if (len > XML_MAX_BYTES)
        return fail(err, -EFBIG, "%s: larger than %d MiB", name, XML_MAX_BYTES >> 20);
    d.parser = XML_ParserCreateNS("UTF-8", '|');
    if (!d.parser)
        return fail(err, -ENOMEM, "%s: out of memory", name);
    XML_SetUserData(d.parser, &d);
    XML_SetElementHandler(d.parser, on_begin, on_end);
    XML_SetCharacterDataHandler(d.parser, on_text);
    XML_SetStartDoctypeDeclHandler(d.parser, on_doctype);
    enum XML_Status status = XML_Parse(d.parser, text, (int)len, XML_TRUE);
    unsigned line = (unsigned)XML_GetCurrentLineNumber(d.parser);
    bool memory = XML_GetErrorCode(d.parser) == XML_ERROR_NO_MEMORY;
    XML_ParserFree(d.parser);
    if (d.r != 0)
        return d.refused ? fail(err, d.r, "%s:%u: %s", name, line, d.refused) : d.r;
    if (status == XML_STATUS_OK)
        return 0;
    return memory ? fail(err, -ENOMEM, "%s: out of memory", name)
                  : fail(err, -EINVAL, "%s:%u: not XML", name, line);
}
