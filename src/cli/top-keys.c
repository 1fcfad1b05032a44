#include "cli/top.h"

#include <math.h>

enum { PAGE = 5 };

void top_tick(struct top *t)
{
    for (size_t i = 0; i < t->n_boards; i++)
        t->board[i].history_w[t->looks % TOP_HISTORY] = t->board[i].power_w;
    t->looks++;
    top_repick(t);
}

/* at: index among the boards that are shown */
static void pick(struct top *t, const struct top_shown *s, size_t at)
{
    if (s->n > 0)
        t->picked = s->at[at < s->n ? at : s->n - 1];
}

static size_t jobs_shown(const struct top *t)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n_jobs; i++)
        n += top_shows_job(t, &t->job[i]);
    return n;
}

static void move(struct top *t, enum top_key key)
{
    const struct top_shown s = top_boards_shown(t);

    switch (key) {
    case TOP_KEY_UP:
        pick(t, &s, s.picked ? s.picked - 1 : 0);
        break;
    case TOP_KEY_DOWN:
        pick(t, &s, s.picked + 1);
        break;
    case TOP_KEY_HOME:
        pick(t, &s, 0);
        break;
    case TOP_KEY_END:
        pick(t, &s, TOP_BOARDS);
        break;
    case TOP_KEY_PAGE_UP:
        t->first_job = t->first_job > PAGE ? t->first_job - PAGE : 0;
        break;
    case TOP_KEY_PAGE_DOWN:
        if (t->first_job + PAGE < jobs_shown(t))
            t->first_job += PAGE;
        break;
    default:
        break;
    }
}

bool top_key(struct top *t, enum top_key key, const char *text)
{
    if (!t->help && top_filter_key(t, key, text))
        return false;
    if (key == TOP_KEY_QUIT)
        return true;
    if (t->help) { /* any key returns */
        t->help = false;
        return false;
    }
    switch (key) {
    case TOP_KEY_HELP:
        t->help = true;
        break;
    case TOP_KEY_CLAIMS:
        t->claims = !t->claims;
        t->waste = false;
        break;
    case TOP_KEY_WASTE:
        t->waste = !t->waste;
        t->claims = false;
        break;
    case TOP_KEY_SORT:
        t->sort = (enum top_sort)((t->sort + 1) % TOP_SORTS);
        t->first_job = 0;
        break;
    case TOP_KEY_FREEZE:
        t->frozen = !t->frozen;
        break;
    default:
        move(t, key);
        break;
    }
    return false;
}
