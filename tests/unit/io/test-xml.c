/* XML as a stream: elements, bounds, what is refused. */
#include "io/xml.h"

#include <errno.h>
#include <stdlib.h>

#include "base/auto.h"
#include "tap.h"

struct seen {
    char text[500];
    size_t n;
    int stop; /* at the end of "stop" */
};

static int on_begin(const char *name, unsigned depth, void *user)
{
    struct seen *s = user;

    if (s->n < sizeof s->text - 300)
        s->n += (size_t)snprintf(s->text + s->n, sizeof s->text - s->n, "%u<%s ", depth,
                                 name);
    return 0;
}

static int on_end(const char *name, const char *text, unsigned depth, void *user)
{
    struct seen *s = user;

    if (s->n < sizeof s->text - 300)
        s->n += (size_t)snprintf(s->text + s->n, sizeof s->text - s->n, "%u>%s='%.200s' ",
                                 depth, name, text);
    return strcmp(name, "stop") == 0 ? s->stop : 0;
}

/* clang-format off */
static const struct { const char *name, *text; int r; const char *says; } cases[] = {
    {"elements", "<a xmlns=\"urn:x\"><b k=\"1\"> 5 </b><c/></a>", 0, "1<a 2<b 2>b='5' 2<c 2>c='' 1>a='' "},
    {"a prefix", "<x:a xmlns:x=\"urn:x\"><x:b>1</x:b></x:a>", 0, "1<a 2<b 2>b='1' 1>a='' "},
    {"characters", "<?xml version=\"1.0\"?><a>&lt;&#65;<![CDATA[&]]></a>", 0, "1<a 1>a='<A&' "},
    {"text around elements", "<a>x<b>y</b>z</a>", 0, "1<a 2<b 2>b='y' 1>a='xz' "},
    {"a stop", "<a><stop/><b/></a>", 7, "1<a 2<stop 2>stop='' "},
    {"half", "<a><b>", -EINVAL, "x:1: not XML"},
    {"nothing", "", -EINVAL, "x:1: not XML"},
    {"no XML", "{}", -EINVAL, "x:1: not XML"},
    {"two roots", "<a/>\n<b/>", -EINVAL, "x:2: not XML"},
    {"an entity of its own", "<!DOCTYPE a [<!ENTITY e \"eeee\">]>\n<a>&e;</a>", -EINVAL, "the document has a document type declaration"},
    {"an entity from elsewhere", "<!DOCTYPE a [<!ENTITY e SYSTEM \"file:///etc/passwd\">]><a>&e;</a>", -EINVAL, "the document has a document type declaration"},
    {"a type from elsewhere", "<!DOCTYPE a SYSTEM \"http://127.0.0.1/a.dtd\"><a/>", -EINVAL, "the document has a document type declaration"},
    {"an unknown entity", "<a>&e;</a>", -EINVAL, "not XML"},
    {"wrong UTF-8", "<a>\xff</a>", -EINVAL, "not XML"},
};
/* clang-format on */

static int read_text(const char *text, size_t len, struct seen *s, uw_error *err)
{
    struct xml_reader reader = {on_begin, on_end, s};

    return xml_read("x", text, len, &reader, err);
}

static void bounds(void)
{
    enum { SIZE = XML_MAX_BYTES + 1 };
    char deep[XML_MAX_DEPTH * 4 + 8] = "", longer[400];
    auto_(mem_free) char *large = malloc(SIZE);
    struct seen s = {.n = 0};
    uw_error err = {""};

    for (int i = 0; i <= XML_MAX_DEPTH; i++)
        memcpy(deep + (ptrdiff_t)3 * i, "<a>", 4);
    ok(read_text(deep, strlen(deep), &s, &err) == -EINVAL &&
           strstr(err.text, "nested too deep"),
       "%d levels at most", XML_MAX_DEPTH);
    if (!large)
        return;
    memset(large, ' ', SIZE);
    memcpy(large, "<a/>", 4);
    s.n = 0;
    ok(read_text(large, SIZE - 1, &s, &err) == 0, "4 MiB are read");
    ok(read_text(large, SIZE, &s, &err) == -EFBIG, "more are not");
    for (size_t i = 0; i + 4 < SIZE; i += 4)
        memcpy(large + i, "<b/>", 4);
    memcpy(large, "<a> ", 4);
    s.n = 0;
    ok(read_text(large, SIZE - 1, &s, &err) == -EINVAL &&
           strstr(err.text, "too many elements"),
       "%d elements at most", XML_MAX_ELEMENTS);
    memset(longer, 'x', sizeof longer);
    memcpy(longer, "<a>", 3);
    memcpy(longer + sizeof longer - 4, "</a>", 4);
    s.n = 0;
    ok(read_text(longer, sizeof longer, &s, &err) == 0, "a long text is cut");
}

int main(void)
{
    for (size_t i = 0; i < n_elements(cases); i++) {
        struct seen s = {.stop = 7};
        uw_error err = {""};
        int r = read_text(cases[i].text, strlen(cases[i].text), &s, &err);
        is_int(r, cases[i].r, "%s: %d", cases[i].name, cases[i].r);
        if (r < 0) {
            if (!ok(strstr(err.text, cases[i].says), "… says so"))
                printf("# %s\n", err.text);
        } else {
            is_str(s.text, cases[i].says, "… in order");
        }
    }
    bounds();
    return done();
}
