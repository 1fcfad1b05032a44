/* The filter of `underwatt top`: its text, and the boards and jobs that it leaves. */
#include <stdio.h>
#include <string.h>

#include "cli/top.h"

static bool has(const char *text, const char *filter)
{
    return strcasestr(text, filter) != NULL;
}

static bool begins(const char *text, const char *filter)
{
    return strncasecmp(text, filter, strlen(filter)) == 0;
}

bool top_shows_job(const struct top *t, const struct top_job *j)
{
    char id[32];

    (void)snprintf(id, sizeof id, "job %llu", (unsigned long long)j->id);
    return has(id, t->filter) || has(j->user, t->filter) || has(j->name, t->filter) ||
           has(j->state, t->filter) || has(j->goal, t->filter) ||
           has(j->phase, t->filter);
}

bool top_shows_board(const struct top *t, const struct top_board *b)
{
    char index[32];

    (void)snprintf(index, sizeof index, "GPU %u", b->index);
    if (has(index, t->filter) || has(b->name, t->filter) || begins(b->uuid, t->filter) ||
        has(b->by, t->filter) || has(b->text, t->filter) || has(b->use, t->filter))
        return true;
    for (size_t i = 0; i < t->n_jobs; i++)
        if (b->n_jobs > 0 && t->job[i].id == b->job && top_shows_job(t, &t->job[i]))
            return true;
    return false;
}

struct top_shown top_boards_shown(const struct top *t)
{
    struct top_shown s = {.n = 0};

    for (size_t i = 0; i < t->n_boards; i++) {
        if (!top_shows_board(t, &t->board[i]))
            continue;
        if (i <= t->picked)
            s.picked = s.n;
        s.at[s.n++] = i;
    }
    return s;
}

void top_repick(struct top *t)
{
    struct top_shown s = top_boards_shown(t);

    if (s.n > 0)
        t->picked = s.at[s.picked];
}

static void append(struct top *t, const char *text)
{
    size_t n = strlen(t->filter), len = strlen(text);

    if (n + len < sizeof t->filter)
        memcpy(t->filter + n, text, len + 1);
}

static void chop(struct top *t)
{
    size_t n = strlen(t->filter);

    while (n > 0 && ((unsigned char)t->filter[--n] & 0xc0) == 0x80)
        ;
    t->filter[n] = '\0';
}

bool top_filter_key(struct top *t, enum top_key key, const char *text)
{
    if (key == TOP_KEY_ESCAPE && (t->typing || t->filter[0])) {
        t->typing = false;
        t->filter[0] = '\0';
    } else if (!t->typing) {
        t->typing = key == TOP_KEY_FILTER;
        return t->typing;
    } else if (*text) {
        append(t, text);
    } else if (key == TOP_KEY_BACKSPACE) {
        chop(t);
    } else if (key == TOP_KEY_ENTER || key == TOP_KEY_FILTER) {
        t->typing = false;
    } else {
        return false;
    }
    top_repick(t);
    t->first_job = 0;
    return true;
}
