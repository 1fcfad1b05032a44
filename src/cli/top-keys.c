#include "cli/top.h"

#include <math.h>

enum { PAGE = 5 };

void top_tick(struct top *t)
{
    for (size_t i = 0; i < t->n_boards; i++)
        t->board[i].history_w[t->looks % TOP_HISTORY] = t->board[i].power_w;
    t->looks++;
}

static void pick(struct top *t, size_t board)
{
    size_t last = t->n_boards ? t->n_boards - 1 : 0;

    t->picked = board > last ? last : board;
}

static void move(struct top *t, enum top_key key)
{
    switch (key) {
    case TOP_KEY_UP:
        pick(t, t->picked ? t->picked - 1 : 0);
        break;
    case TOP_KEY_DOWN:
        pick(t, t->picked + 1);
        break;
    case TOP_KEY_HOME:
        pick(t, 0);
        break;
    case TOP_KEY_END:
        pick(t, TOP_BOARDS);
        break;
    case TOP_KEY_PAGE_UP:
        t->first_job = t->first_job > PAGE ? t->first_job - PAGE : 0;
        break;
    case TOP_KEY_PAGE_DOWN:
        if (t->first_job + PAGE < t->n_jobs)
            t->first_job += PAGE;
        break;
    default:
        break;
    }
}

bool top_key(struct top *t, enum top_key key)
{
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
