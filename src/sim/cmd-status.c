#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/nearest.h"
#include "base/units.h"
#include "io/json.h"
#include "sim/main.h"
#include "sim/statedir.h"

static const struct {
    uint64_t flag;
    const char *name;
} flags[] = {
    {SIM_FAULT_LOST, "lost"},     {SIM_FAULT_HANG, "hang"},
    {SIM_FAULT_REFUSE, "refuse"}, {SIM_FAULT_STUCK, "stuck"},
    {SIM_FAULT_IGNORE, "ignore"},
};

static void print_board(unsigned i, const struct sim_board *b,
                        const struct sim_readings *now, const struct sim_procs *procs)
{
    printf("%3u  %-34.34s %8.2f W  %4llu W  %3llu %%  %3llu C  ", i, b->identity.name,
           (double)now->power_mw * 1e-3, (unsigned long long)now->enforced_mw / 1000,
           (unsigned long long)now->util_gpu, (unsigned long long)now->temp_c);
    for (uint64_t k = 0; k < procs->n; k++)
        printf("%s%llu", k ? "," : "", (unsigned long long)procs->proc[k].pid);
    for (size_t k = 0; k < n_elements(flags); k++)
        if (now->faults & flags[k].flag)
            printf(" %s", flags[k].name);
    printf("\n");
}

static bool read_board(const struct sim_board *b, struct sim_readings *now,
                       struct sim_procs *procs)
{
    return sim_seq_read(&b->readings_seq, &b->readings, now, sizeof *now / 8) &&
           sim_seq_read(&b->procs_seq, &b->procs, procs, sizeof *procs / 8) &&
           procs->n <= SIM_PROCS_MAX;
}

static int print_text(const struct sim_page *page)
{
    struct sim_readings now;
    struct sim_procs procs;

    printf("simulated: %s, process %llu, clock at %g x real time, limits set by %s%s\n",
           page->machine, (unsigned long long)page->server_pid, page->speed,
           page->sets_need_root ? "root" : "anyone",
           page->driver_gone ? ", driver unloaded" : "");
    printf("GPU  name                                  power   limit   util   temp  "
           "processes, faults\n");
    for (unsigned i = 0; i < page->n_boards; i++) {
        if (!read_board(&page->board[i], &now, &procs))
            return complain(EXIT_FAIL, "board %u cannot be read: it changes all the time",
                            i);
        print_board(i, &page->board[i], &now, &procs);
    }
    return EXIT_OK;
}

static void board_json(struct json_out *o, unsigned i, const struct sim_board *b,
                       const struct sim_readings *now, const struct sim_procs *procs)
{
    json_out_object(o, NULL);
    json_out_int(o, "index", i);
    json_out_text(o, "uuid", b->identity.uuid);
    json_out_text(o, "name", b->identity.name);
    json_out_int(o, "power_mw", (int64_t)now->power_mw);
    json_out_int(o, "limit_mw", (int64_t)now->enforced_mw);
    json_out_int(o, "limit_writes", (int64_t)now->limit_writes);
    json_out_text(o, "pci_bus_id", b->identity.bus_id);
    json_out_int(o, "default_mw", b->identity.default_mw);
    json_out_int(o, "min_mw", b->identity.min_mw);
    json_out_int(o, "max_mw", b->identity.max_mw);
    json_out_int(o, "energy_mj", (int64_t)now->energy_mj);
    json_out_counter(o, "true_j", (double)now->true_uj * 1e-6);
    json_out_int(o, "at_ns", (int64_t)now->at_ns);
    json_out_int(o, "util_gpu", (int64_t)now->util_gpu);
    json_out_int(o, "temp_c", (int64_t)now->temp_c);
    json_out_int(o, "sm_mhz", (int64_t)now->sm_mhz);
    json_out_int(o, "locked_max_mhz", (int64_t)now->locked_max_mhz);
    json_out_int(o, "clock_resets", (int64_t)now->clock_resets);
    json_out_array(o, "pids");
    for (uint64_t k = 0; k < procs->n; k++)
        json_out_int(o, NULL, (int64_t)procs->proc[k].pid);
    json_out_end(o);
    json_out_array(o, "faults");
    for (size_t k = 0; k < n_elements(flags); k++)
        if (now->faults & flags[k].flag)
            json_out_text(o, NULL, flags[k].name);
    json_out_end(o);
    json_out_end(o);
}

static int print_json(const struct sim_page *page)
{
    auto_(json_out_free) struct json_out *o = json_out_new();
    struct sim_readings now;
    struct sim_procs procs;
    uw_error err = {""};

    json_out_object(o, NULL);
    json_out_bool(o, "simulated", true);
    json_out_text(o, "machine", page->machine);
    json_out_text(o, "state_dir", page->state_dir);
    json_out_int(o, "pid", (int64_t)page->server_pid);
    json_out_double(o, "speed", page->speed);
    json_out_int(o, "jobs", (int64_t)page->n_jobs);
    json_out_bool(o, "driver_loaded", !page->driver_gone);
    json_out_array(o, "boards");
    for (unsigned i = 0; i < page->n_boards; i++) {
        if (!read_board(&page->board[i], &now, &procs))
            return complain(EXIT_FAIL, "board %u cannot be read: it changes all the time",
                            i);
        board_json(o, i, &page->board[i], &now, &procs);
    }
    json_out_end(o);
    json_out_end(o);
    if (json_out_write(o, "-", &err))
        return complain(EXIT_FAIL, "%s", err.text);
    return EXIT_OK;
}

int cmd_status(const struct sim_env *env, int argc, char **argv)
{
    auto_(statedir_unmap) const struct sim_page *page = NULL;
    uw_error err = {""};

    static const char *const known[] = {"--json", "--state", NULL};
    char hint[NEAREST_TEXT];

    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--json") != 0)
            return complain(EXIT_USAGE,
                            "status: unknown option '%s'%s: one of --json, --state",
                            argv[i], nearest_of(argv[i], known, hint));
    if (statedir_map(env->state_dir, &page, &err))
        return complain(EXIT_FAIL, "%s", err.text);
    return argc > 0 ? print_json(page) : print_text(page);
}
