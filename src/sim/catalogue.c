#include "sim/catalogue.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* A number given in the file replaces the model's. */
static void put(double given, double *to)
{
    if (given > 0)
        *to = given;
}

static int add(const struct sim_workload *from, const struct plant_board *board,
               struct sim_catalogue *c, uw_error *err)
{
    const struct plant_workload *like = plant_workload_find(board, from->like);

    if (!like)
        return fail(err, -EINVAL, "workload %s: no workload '%s' on a %s", from->name,
                    from->like, board->key);
    if (c->n == SIM_CATALOGUE_MAX)
        return fail(err, -E2BIG, "more than %d workloads", SIM_CATALOGUE_MAX);
    struct plant_workload *w = &c->work[c->n];
    *w = *like;
    (void)snprintf(c->name[c->n], sizeof c->name[0], "%s", from->name);
    w->name = c->name[c->n];
    w->steps = from->steps ? from->steps : w->steps;
    put(from->gap_s, &w->gap_s);
    put(from->clock_s, &w->tc_s);
    put(from->memory_s, &w->tm_s);
    put(from->dynamic_w, &w->d_w);
    put(from->gap_w, &w->gap_w);
    put(from->static_w, &w->ps_w);
    c->n++;
    return 0;
}

static const struct plant_workload *described(const struct sim_catalogue *c,
                                              const struct plant_board *board,
                                              const char *name)
{
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->name[i], name) == 0 && strcmp(c->work[i].board, board->key) == 0)
            return &c->work[i];
    return NULL;
}

int sim_catalogue_fill(const struct sim_machine *machine, struct sim_catalogue *ret,
                       uw_error *err)
{
    ret->n = 0;
    for (size_t i = 0; i < machine->n_workloads; i++) {
        const struct sim_workload *w = &machine->workload[i];
        for (size_t k = 0; k < machine->n_boards; k++) {
            const struct plant_board *board = &machine->board[k].plant;
            if (w->board[0] && strcmp(w->board, board->key) != 0)
                continue;
            if (described(ret, board, w->name))
                continue;
            int r = add(w, board, ret, err);
            if (r)
                return r;
        }
    }
    return 0;
}

const struct plant_workload *sim_catalogue_find(const struct plant_board *board,
                                                const char *name, void *user)
{
    const struct plant_workload *own = described(user, board, name);

    return own ? own : plant_workload_find(board, name);
}
