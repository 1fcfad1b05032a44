/* One source and its server's answers, written down: what is asked, what comes of it. */
#ifndef TESTS_SOURCE_PLAY_H
#define TESTS_SOURCE_PLAY_H

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/moment.h"
#include "signal/source.h"
#include "tap.h"

#define NOW "2026-11-26T12:34:56Z"

struct play {
    struct source_config c;
    const char *secret;
    struct source_state s;
    int64_t utc_s;
    struct source_request request;
    char shown[2000]; /* the values of the last answer */
    char why[200];
    char asked[SOURCE_URL + SOURCE_TOKEN]; /* URL, headers */
};

__attribute__((unused)) static int64_t utc_of(const char *text)
{
    struct moment m = {0};

    if (!moment_read(text, &m))
        ok(false, "%s is a time", text);
    return moment_utc_s(&m);
}

/* "carbon.uk g/kWh at 12:05: 26T12:00+30 322, 26T12:30+30 ~310" */
__attribute__((unused)) static void show(const struct source_values *v, char *to,
                                         size_t size)
{
    size_t n = 0;

    to[0] = '\0';
    for (size_t i = 0; i < v->n; i++) {
        const struct source_series *s = &v->series[i];
        n += (size_t)snprintf(to + n, size - n, "%s%s %s:", i ? "; " : "", s->signal,
                              s->unit);
        for (size_t k = 0; k < s->n && n < size - 80; k++) {
            const struct source_point *p = &s->point[k];
            long long minute = p->from_utc_s / 60;
            n += (size_t)snprintf(to + n, size - n, "%s %02lld:%02lld+%g ", k ? "," : "",
                                  minute / 60 % 24, minute % 60,
                                  (double)(p->to_utc_s - p->from_utc_s) / 60);
            if (isnan(p->v))
                n += (size_t)snprintf(to + n, size - n, "?");
            else
                n += (size_t)snprintf(to + n, size - n, "%s%.6g", p->estimated ? "~" : "",
                                      p->v);
        }
    }
}

/* The next request; "done" and "rest" in p->asked where there is none. */
__attribute__((unused)) static bool ask_next(struct play *p)
{
    uw_error err = {""};
    size_t n;
    int r = source_next(&p->c, p->secret, &p->s, p->utc_s, &p->request, &err);

    if (r != 0) {
        (void)snprintf(p->asked, sizeof p->asked, "%s",
                       r == SOURCE_E_DONE   ? "done"
                       : r == SOURCE_E_REST ? "rest"
                                            : err.text);
        return false;
    }
    n = (size_t)snprintf(p->asked, sizeof p->asked, "%s", p->request.url);
    if (p->request.secret_query)
        n += (size_t)snprintf(p->asked + n, sizeof p->asked - n, " +%s",
                              p->request.secret_query);
    if (p->request.basic)
        n += (size_t)snprintf(p->asked + n, sizeof p->asked - n, " basic %s",
                              p->request.basic);
    for (size_t i = 0; i < p->request.n_headers && n < sizeof p->asked; i++)
        n += (size_t)snprintf(p->asked + n, sizeof p->asked - n, " %s: %s",
                              p->request.header[i].name, p->request.header[i].value);
    return true;
}

/* Answers the last request; "Name: value" in header, NULL: none. */
__attribute__((unused)) static enum source_outcome answer(struct play *p, unsigned status,
                                                          const char *header,
                                                          const char *body)
{
    auto_(source_values_fini) struct source_values v = {.n = 0};
    char text[200] = "";
    struct source_header h = {NULL, NULL};
    struct source_answer a = {.status = status,
                              .header = &h,
                              .n_headers = header ? 1 : 0,
                              .body = body,
                              .len = strlen(body),
                              .utc_s = p->utc_s,
                              .modified_utc_s =
                                  p->request.way == SOURCE_FILE ? p->utc_s - 60 : 0};
    enum source_outcome outcome = SOURCE_OUTCOMES;
    uw_error why = {""};

    if (header) {
        (void)snprintf(text, sizeof text, "%s", header);
        text[strcspn(text, ":")] = '\0';
        h = (struct source_header){text, text + strlen(text) + 2};
    }
    if (source_take(&p->c, p->secret, &p->s, &a, &outcome, &v, &why) < 0)
        ok(false, "the answer is taken: %s", why.text);
    show(&v, p->shown, sizeof p->shown);
    (void)snprintf(p->why, sizeof p->why, "%s", why.text);
    return outcome;
}

/* A case of an answer that is asked for anew: what it comes to. */
struct answer_case {
    const char *name, *body;
    enum source_outcome outcome;
    const char *says; /* the values, or a part of the line */
};
__attribute__((unused)) static void play_case(const struct play *begin,
                                              const struct answer_case *c)
{
    struct play p = *begin;

    if (!ok(ask_next(&p), "%s: is asked", c->name))
        printf("# %s\n", p.asked);
    enum source_outcome o = answer(&p, 200, NULL, c->body);
    if (!ok(o == c->outcome, "%s: %s", c->name, source_outcome_name(c->outcome)))
        printf("# %s: %s\n", source_outcome_name(o), p.why);
    if (o == SOURCE_VALUES)
        is_str(p.shown, c->says, "… its values");
    else if (!ok(strstr(p.why, c->says) && !strchr(p.why, '\n'), "… and says why"))
        printf("# %s\n", p.why);
}

/* A checked configuration; the test ends the fields. */
__attribute__((unused)) static bool checked(struct play *p, const char *type)
{
    uw_error err = {""};

    if (!p->c.name[0])
        (void)snprintf(p->c.name, sizeof p->c.name, "grid");
    p->c.kind = source_kind_find(type);
    p->utc_s = utc_of(NOW);
    bool good =
        ok(p->c.kind && source_check(&p->c, NULL, &err) == 0, "%s is configured", type);
    if (!good)
        printf("# %s\n", err.text);
    return good;
}

#endif
