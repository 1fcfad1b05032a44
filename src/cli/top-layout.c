/* How many rows each part of the view gets. */
#include "cli/top.h"

enum {
    FRAME = 3,        /* the first line, the head of the boards, the keys */
    FEW_ROWS = 8,     /* with fewer rows, only boards are shown */
    GRAPH_COLS = 60,  /* columns of a graph, with several side by side */
    GRAPH_LEAST = 3,  /* rows: a line of text and a graph of two */
    GRAPH_FLOOR = 6,  /* beside a list that does not fit, at most a quarter */
    GRAPH_ALONE = 12, /* one band of graphs, before events get any */
    GRAPH_BAND = 8,   /* a band, before anything below the list gets any */
    GRAPH_GOOD = 16,  /* a band, before events get more than EVENTS_FIRST */
    BAND_LEAST = 6,   /* a band, with several of them */
    TABLE_LEAST = 3,  /* a list below the first one */
    EVENTS_FIRST = 6,
};

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static unsigned take_rows(unsigned *free, unsigned want)
{
    unsigned got = least(*free, want);

    *free -= got;
    return got;
}

/* Gives more rows to a part that has less than `want`. */
static void widen(unsigned *rows, unsigned want, unsigned *free)
{
    if (*rows < want)
        *rows += take_rows(free, want - *rows);
}

/* A table whole, or what is left of it if that is enough for a table. */
static unsigned take_table(unsigned *free, unsigned need)
{
    return *free >= least(need, TABLE_LEAST) ? take_rows(free, need) : 0;
}

/* The bands of graphs: as many as boards need and `rows` permit. */
static void set_bands(struct top_layout *l, unsigned boards, unsigned cols, unsigned rows)
{
    unsigned beside = cols < GRAPH_COLS ? 1 : cols / GRAPH_COLS;
    unsigned need = boards ? (boards + beside - 1) / beside : 1;
    unsigned bands = rows / BAND_LEAST;

    l->bands = bands < 1 ? 1 : least(bands, need);
    l->beside = boards ? least(beside, (boards + l->bands - 1) / l->bands) : 1;
    if (l->bands < need) /* the boards do not fit: whole bands */
        l->beside = least(beside, boards);
}

static struct top_layout layout(unsigned rows, unsigned cols,
                                const struct top_needs *need)
{
    struct top_layout l = {.bands = 1, .beside = 1};
    unsigned keep = rows < FEW_ROWS ? FRAME : FRAME + TOP_LIST_LEAST + 1;
    unsigned list = need->list > TOP_LIST_LEAST ? need->list : TOP_LIST_LEAST;

    l.boards = least(need->boards, rows > keep ? rows - keep : 1);
    if (rows < FEW_ROWS)
        return l;
    unsigned free = rows - FRAME - l.boards;
    l.graphs = list < free || free / 4 < GRAPH_FLOOR ? 1 : GRAPH_FLOOR;
    free -= l.graphs;
    l.list = take_rows(&free, list);
    set_bands(&l, need->boards, cols, l.graphs + free);
    bool high = l.graphs + free >= GRAPH_LEAST;
    if (high)
        widen(&l.graphs, GRAPH_BAND * l.bands, &free);
    l.jobs = take_table(&free, need->jobs);
    l.details = take_table(&free, need->details);
    if (high && l.bands == 1)
        widen(&l.graphs, GRAPH_ALONE, &free);
    l.events = take_table(&free, least(need->events, EVENTS_FIRST));
    if (high)
        widen(&l.graphs, GRAPH_GOOD * l.bands, &free);
    if (l.events)
        widen(&l.events, need->events, &free);
    if (high && need->boards)
        l.graphs += free;
    return l;
}

/* The details have the cause, too: it has rows of its own where they have none. */
struct top_layout top_layout(unsigned rows, unsigned cols, const struct top_needs *need)
{
    struct top_layout l = layout(rows, cols, need);

    if (l.details || !need->cause || l.graphs < need->cause + GRAPH_LEAST)
        return l;
    l = layout(rows - need->cause, cols, need);
    l.cause = need->cause;
    return l;
}
