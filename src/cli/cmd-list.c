#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/units.h"
#include "cli/absent.h"
#include "cli/figures.h"
#include "cli/list-daemon.h"
#include "cli/options.h"
#include "cli/survey.h"
#include "cli/take.h"
#include "io/json.h"

struct list {
    const char *gpus, *json, *boards;
    bool local;
    struct survey *s;
    struct list_daemon daemon;
    size_t at[BOARDS_MAX]; /* the boards to show */
    size_t n;
};

enum { UNDER = 19 }; /* column of the second line of a board */

static bool has(const struct survey_board *b, enum gpu_sample_has bit)
{
    return b->sample.has & (uint32_t)bit;
}

struct cell {
    char text[40];
};

/* "-" if unknown, never 0. */
static __attribute__((format(printf, 2, 3))) struct cell cell(bool known,
                                                              const char *format, ...)
{
    struct cell c = {"-"};
    va_list args;

    if (!known)
        return c;
    va_start(args, format);
    (void)vsnprintf(c.text, sizeof c.text, format, args);
    va_end(args);
    return c;
}

/* "/usr/bin/python3 train.py" as "python3 train.py" */
static const char *without_folder(const char *command)
{
    const char *name = command;

    for (const char *c = command; *c && *c != ' '; c++)
        if (*c == '/')
            name = c + 1;
    return name;
}

static void print_procs(const struct survey_board *b)
{
    enum { SHOWN = 8 };

    for (size_t i = 0; i < b->n_procs && i < SHOWN; i++) {
        const struct survey_proc *p = &b->procs[i];
        printf("     %7d  %-12s %.53s\n", (int)p->proc.pid,
               p->who.known ? p->who.user : "?",
               p->who.known ? without_folder(p->who.command) : "(not visible from here)");
    }
    if (b->n_procs > SHOWN)
        printf("     and %zu more\n", b->n_procs - SHOWN);
}

static void print_silent(const struct survey_board *b, const char *name)
{
    char text[300];

    printf("%3u  %s\n     %.12s  ", b->info.index, name,
           b->info.uuid[0] ? b->info.uuid : "-");
    (void)snprintf(text, sizeof text, "no answer: %s", b->error.text);
    text_wrap(stdout, UNDER, 5, text);
}

static struct cell limit_cell(const struct survey_board *b)
{
    if (has(b, GPU_HAS_ENFORCED))
        return cell(true, "%s", figure_watts(w_of_mw(b->sample.enforced_mw)).t);
    return cell(has(b, GPU_HAS_REQUESTED), "%s",
                figure_watts(w_of_mw(b->sample.requested_mw)).t);
}

static struct cell energy_cell(const struct survey_board *b)
{
    return cell(has(b, GPU_HAS_ENERGY), "%s",
                figure_joules((double)b->sample.energy_mj * 1e-3).t);
}

/* From the daemon if it controls the board, else from the survey. */
static void board_cap(const struct list *l, const struct survey_board *b, char *ret,
                      size_t size)
{
    const struct json_value *known = list_daemon_board(&l->daemon, b->info.uuid);

    if (!known || !list_daemon_cap(known, ret, size))
        survey_cap(b, ret, size);
}

static void print_board(const struct list *l, const struct survey_board *b)
{
    const struct json_value *known = list_daemon_board(&l->daemon, b->info.uuid);
    char cap[320], why[80], name[80], jobs[160], text[600];

    /* the line above the table says "simulated" */
    const char *model = b->info.name[0] ? b->info.name : "?";
    size_t length = board_name_length(model, l->s->about.recorded ? GPU_NAME_RECORDED
                                                                  : GPU_NAME_SIMULATED);
    (void)snprintf(name, sizeof name, "%.*s%s", length < 60 ? (int)length : 60, model,
                   b->info.mig_enabled ? " (MIG)" : "");
    if (!b->answers) {
        print_silent(b, name);
        return;
    }
    struct cell power =
        cell(has(b, GPU_HAS_POWER), "%s", figure_power(b->sample.power_w).t);
    struct cell range = cell(b->has_limits, "%.0f-%.0f", w_of_mw(b->limits.min_mw),
                             w_of_mw(b->limits.max_mw));
    struct cell temp = cell(has(b, GPU_HAS_TEMP), "%d C", (int)b->sample.temp_c);
    struct cell util = cell(has(b, GPU_HAS_UTIL), "%u %%", b->sample.util_gpu);
    board_cap(l, b, cap, sizeof cap);
    survey_reasons(b, why, sizeof why);
    list_daemon_jobs(&l->daemon, known, jobs, sizeof jobs);
    printf("%3u  %-25.25s %8s %8s %9s %9s %5s %5s\n", b->info.index, name, power.text,
           limit_cell(b).text, range.text, energy_cell(b).text, temp.text, util.text);
    printf("     %-12.12s  ", b->info.uuid);
    (void)snprintf(text, sizeof text, "%s%s%s%s%s", cap, why[0] ? "; " : "", why,
                   jobs[0] ? "; " : "", jobs);
    text_wrap(stdout, UNDER, UNDER, text);
    print_procs(b);
}

static void print_table(const struct list *l)
{
    survey_say_unreal(&l->s->about);
    struct loop_clock clock = {0, 1};
    if (survey_simulated(l->s) && loop_clock_parse(l->s->about.clock, &clock, NULL) == 0)
        printf("simulated node %s, clock at %g x real time\n", l->s->about.state_dir,
               clock.speed);
    printf("%3s  %-25s %8s %8s %9s %9s %5s %5s\n     %-12s  %s\n", "#", "board", "power",
           "limit", "range, W", "energy", "temp", "util", "uuid",
           "cap; limits of the clock; jobs");
    for (size_t i = 0; i < l->n; i++)
        print_board(l, &l->s->board[l->at[i]]);
}

/* ---- JSON ---- */

static void put_text(struct json_out *o, const char *key, const char *v)
{
    json_out_text(o, key, v[0] ? v : NULL);
}

static void json_limit(struct json_out *o, const struct list *l,
                       const struct survey_board *b)
{
    char cap[320];

    board_cap(l, b, cap, sizeof cap);
    json_out_object(o, "limit");
    json_out_known_int(o, "enforced_mw", has(b, GPU_HAS_ENFORCED), b->sample.enforced_mw);
    json_out_known_int(o, "requested_mw", has(b, GPU_HAS_REQUESTED),
                       b->sample.requested_mw);
    json_out_known_int(o, "default_mw", b->has_limits, b->limits.default_mw);
    json_out_known_int(o, "min_mw", b->has_limits, b->limits.min_mw);
    json_out_known_int(o, "max_mw", b->has_limits, b->limits.max_mw);
    json_out_text(o, "why", cap);
    json_out_known_int(o, "original_mw", b->held.known, b->held.original_mw);
    json_out_known_int(o, "holder_pid", b->held.pid > 0, b->held.pid);
    json_out_end(o);
}

static void json_can(struct json_out *o, const struct survey_board *b)
{
    static const struct {
        uint32_t bit;
        const char *name;
    } names[] = {
        {GPU_CAN_ENERGY, "energy"},       {GPU_CAN_INSTANT, "instant"},
        {GPU_CAN_AVERAGE, "average"},     {GPU_CAN_LIMIT, "limit"},
        {GPU_CAN_SET_LIMIT, "set_limit"}, {GPU_CAN_LOCK_CLOCKS, "lock_clocks"},
        {GPU_CAN_REASONS, "reasons"},     {GPU_CAN_UTIL, "utilization"},
        {GPU_CAN_TEMP, "temperature"},    {GPU_CAN_CLOCKS, "clocks"},
        {GPU_CAN_PROCS, "processes"},
    };
    json_out_object(o, "can");
    for (size_t i = 0; i < n_elements(names); i++)
        json_out_bool(o, names[i].name, b->info.abilities & names[i].bit);
    json_out_end(o);
}

static void json_procs(struct json_out *o, const struct survey_board *b)
{
    if (!b->has_procs) {
        json_out_null(o, "processes");
        return;
    }
    json_out_array(o, "processes");
    for (size_t i = 0; i < b->n_procs; i++) {
        const struct survey_proc *p = &b->procs[i];
        json_out_object(o, NULL);
        json_out_int(o, "pid", p->proc.pid);
        put_text(o, "user", p->who.user);
        put_text(o, "command", p->who.command);
        json_out_known_int(o, "memory_bytes", p->proc.used_bytes > 0,
                           (int64_t)p->proc.used_bytes);
        json_out_text(o, "kind", p->proc.compute ? "compute" : "graphics");
        json_out_end(o);
    }
    json_out_end(o);
}

/* null: no daemon knows the board. */
static void json_daemon(struct json_out *o, const struct list *l,
                        const struct survey_board *b)
{
    const struct json_value *known = list_daemon_board(&l->daemon, b->info.uuid);
    const struct json_value *jobs = json_get(known, "jobs");
    uint64_t id = 0;

    json_out_known_int(o, "claims", known != NULL, (int64_t)take_u64(known, "claims"));
    if (!known) {
        json_out_null(o, "jobs");
        return;
    }
    json_out_array(o, "jobs");
    for (size_t i = 0; i < json_count(jobs); i++)
        if (json_as_u64(json_at(jobs, i), &id))
            json_out_int(o, NULL, (int64_t)id);
    json_out_end(o);
}

static void json_board(struct json_out *o, const struct list *l,
                       const struct survey_board *b)
{
    const struct gpu_info *info = &b->info;
    const struct gpu_sample *s = &b->sample;
    char why[80];

    survey_reasons(b, why, sizeof why);
    json_out_object(o, NULL);
    json_out_int(o, "index", info->index);
    put_text(o, "uuid", info->uuid);
    put_text(o, "name", info->name);
    put_text(o, "pci_bus_id", info->pci_bus_id);
    json_out_bool(o, "simulated", info->simulated);
    json_out_bool(o, "answers", b->answers);
    put_text(o, "error", b->error.text);
    json_out_double(o, "power_w", has(b, GPU_HAS_POWER) ? s->power_w : (double)NAN);
    json_out_double(o, "instant_w", has(b, GPU_HAS_INSTANT) ? s->instant_w : (double)NAN);
    json_out_double(o, "average_w", has(b, GPU_HAS_AVERAGE) ? s->average_w : (double)NAN);
    json_out_counter(o, "energy_j",
                     has(b, GPU_HAS_ENERGY) ? (double)s->energy_mj * 1e-3 : (double)NAN);
    json_limit(o, l, b);
    json_out_known_int(o, "temperature_c", has(b, GPU_HAS_TEMP), s->temp_c);
    json_out_known_int(o, "utilization_percent", has(b, GPU_HAS_UTIL), s->util_gpu);
    json_out_known_int(o, "memory_utilization_percent", has(b, GPU_HAS_UTIL),
                       s->util_mem);
    json_out_known_int(o, "sm_mhz", has(b, GPU_HAS_CLOCKS), s->sm_mhz);
    json_out_known_int(o, "memory_mhz", has(b, GPU_HAS_CLOCKS), s->mem_mhz);
    json_out_known_int(o, "sm_max_mhz", info->clock_max_mhz > 0, info->clock_max_mhz);
    json_out_text(o, "held_by", has(b, GPU_HAS_REASONS) ? why : NULL);
    json_out_bool(o, "mig", info->mig_enabled);
    if (info->has_persistence)
        json_out_bool(o, "persistence", info->persistence);
    else
        json_out_null(o, "persistence");
    json_can(o, b);
    json_daemon(o, l, b);
    json_procs(o, b);
    json_out_end(o);
}

static int write_json(const struct list *l)
{
    auto_(json_out_free) struct json_out *o = json_out_new();
    const struct gpu_about *about = &l->s->about;
    uw_error err = {{0}};

    json_out_object(o, NULL);
    json_out_bool(o, "simulated", survey_simulated(l->s));
    put_text(o, "library", about->library);
    put_text(o, "driver", about->driver_version);
    put_text(o, "nvml", about->library_version);
    json_out_array(o, "boards");
    for (size_t i = 0; i < l->n; i++)
        json_board(o, l, &l->s->board[l->at[i]]);
    json_out_end(o);
    json_out_end(o);
    int r = json_out_write(o, l->json, &err);
    return r < 0 ? cli_fail(EXIT_FAIL, "list: %s", err.text) : EXIT_OK;
}

/* ---- ---- */

static int show(struct list *l)
{
    size_t answer = 0;

    int code = survey_select(l->s, &cmd_list, l->gpus, l->at, &l->n);
    if (code != EXIT_OK)
        return code;
    if (!l->json || strcmp(l->json, "-") != 0)
        print_table(l);
    if (l->json)
        code = write_json(l);
    if (code != EXIT_OK)
        return code;
    for (size_t i = 0; i < l->n; i++)
        answer += l->s->board[l->at[i]].answers;
    if (answer == l->n)
        return EXIT_OK;
    return cli_fail(answer ? EXIT_PARTIAL : EXIT_FAIL,
                    "list: %zu of %zu boards do not answer", l->n - answer, l->n);
}

static int run(const struct cli_env *env, int argc, char **argv)
{
    struct list l = {.boards = env->boards};
    const struct opt opts[] = {
        OPT_GPUS(&l.gpus),
        {"local", 0, NULL, "do not use the daemon, even if it answers", opt_flag,
         &l.local},
        OPT_JSON(&l.json),
        OPT_BOARDS(&l.boards),
    };

    int r = opts_parse(&cmd_list, opts, n_elements(opts), argc, argv, NULL);
    if (r != OPTS_GO)
        return r;
    auto_(survey_free) struct survey *s = NULL;
    r = survey_new(&cmd_list, env, l.boards, &s);
    if (r != EXIT_OK)
        return r;
    if (s->r != 0)
        return absent_say(&cmd_list, s, l.boards);
    l.s = s;
    if (!l.local)
        list_daemon_ask(env, l.boards, &l.daemon);
    r = show(&l);
    list_daemon_fini(&l.daemon);
    return r;
}

const struct cmd cmd_list = {
    "list",
    "[OPTIONS]",
    "Show the boards of this machine: limits, power, energy, owner, cap",
    run,
};
