#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "actuator/client.h"
#include "cli/doctor-classes.h"
#include "cli/doctor-daemon.h"
#include "cli/doctor-slurm.h"
#include "cli/doctor.h"
#include "cli/energy-check.h"
#include "cli/options.h"
#include "gpu/backends.h"
#include "gpu/library.h"

static uint64_t no_clock(void *user)
{
    (void)user;
    return 0;
}

static void read_rapl(struct doctor_rapl *ret)
{
    struct gpu_open_opts opts = {.clock = {no_clock, NULL}};
    void *lib = NULL;
    struct gpu_sample s;
    uw_error err = {{0}};

    ret->r = gpu_processors.open(&opts, &lib, &err);
    if (ret->r != 0)
        return;
    ret->n = gpu_processors.count(lib);
    for (size_t i = 0; i < ret->n; i++) {
        if (gpu_processors.sample(gpu_processors.at(lib, i), GPU_HAS_ENERGY, &s, &err) ==
            0)
            ret->readable++;
        else if (!ret->error.text[0])
            ret->error = err;
    }
    gpu_processors.close(lib);
}

static void read_actuator(struct doctor_facts *ret)
{
    char real[PATH_MAX];

    if (!actuator_find_program(real, sizeof real))
        return;
    (void)gpu_library_check(real, true, ret->actuator, sizeof ret->actuator,
                            &ret->actuator_unsafe);
}

static int report(const struct findings *found, const struct doctor_facts *f,
                  const char *json)
{
    uw_error err = {{0}};

    if (!json || strcmp(json, "-") != 0) {
        survey_say_unreal(&f->about);
        findings_print(found, FINDING_OK, stdout);
    }
    if (json) {
        auto_(json_out_free) struct json_out *o = json_out_new();
        json_out_object(o, NULL);
        json_out_bool(o, "simulated", f->about.simulated);
        findings_json(found, o, "findings");
        json_out_end(o);
        if (json_out_write(o, json, &err) < 0)
            return cli_fail(EXIT_FAIL, "doctor: %s", err.text);
    }
    if (findings_worst(found) < FINDING_BAD)
        return EXIT_OK;
    if (f->survey && f->survey->r == 0 && survey_answering(f->survey) > 0)
        return EXIT_PARTIAL;
    return EXIT_FAIL;
}

static void examine_classes(const struct cli_env *env, const char *boards,
                            const struct doctor_slurm *slurm, struct findings *found)
{
    auto_(mem_free) struct doctor_classes *classes = calloc(1, sizeof *classes);

    if (!classes || slurm->table.n_classes == 0)
        return;
    doctor_classes_ask(env, boards, classes);
    doctor_classes_judge(slurm, classes, found);
}

/* answers: whether the daemon answers. */
static void examine_slurm(const struct cli_env *env, const char *boards,
                          const struct survey *s, bool answers, struct findings *found)
{
    auto_(mem_free) struct doctor_slurm *slurm = calloc(1, sizeof *slurm);
    char host[65] = "";

    if (!slurm)
        return;
    (void)gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = '\0';
    doctor_slurm_read(env->slurm_conf, env->slurm_node ? env->slurm_node : host, slurm);
    doctor_slurm_judge(slurm, found);
    for (size_t i = 0, before = found->n; i < s->n && found->n == before; i++)
        if (s->board[i].has_limits) /* one board of a kind is enough */
            doctor_slurm_judge_board(slurm, &s->board[i].info, &s->board[i].limits,
                                     found);
    if (answers)
        examine_classes(env, boards, slurm, found);
}

static int examine(const struct cli_env *env, const char *boards, const char *json)
{
    auto_(survey_free) struct survey *s = NULL;
    auto_(mem_free) struct doctor_energy *energy = NULL;
    auto_(mem_free) struct findings *found = calloc(1, sizeof *found);
    struct doctor_daemon daemon;
    struct doctor_facts f = {.root = env->root, .named = boards};

    if (!found)
        return cli_fail(EXIT_FAIL, "doctor: out of memory");
    machine_read("", &f.machine);
    f.library_r = gpu_boards_look(boards, &f.about, &f.library_error);
    int code = survey_new(&cmd_doctor, env, boards, &s);
    if (code != EXIT_OK)
        return code;
    f.loop_speed = loop_speed(s->loop);
    if (f.library_r == 0)
        f.survey = s;
    if (s->r == 0) {
        energy = calloc(s->n ? s->n : 1, sizeof *energy);
        uw_error err = {{0}};
        if (energy && energy_check(s, energy, &err) == 0)
            f.energy = energy;
    }
    read_rapl(&f.rapl);
    read_actuator(&f);
    doctor_judge(&f, found);
    doctor_daemon_ask(env, boards, &daemon);
    daemon_start_simulated(env, boards, daemon.start);
    doctor_daemon_judge(&daemon, UW_VERSION, found);
    examine_slurm(env, boards, s, daemon.r == 0, found);
    return report(found, &f, json);
}

static int run(const struct cli_env *env, int argc, char **argv)
{
    const char *json = NULL, *boards = env->boards;
    const struct opt opts[] = {
        OPT_JSON(&json),
        OPT_BOARDS(&boards),
    };

    int r = opts_parse(&cmd_doctor, opts, n_elements(opts), argc, argv, NULL);
    return r == OPTS_GO ? examine(env, boards, json) : r;
}

const struct cmd cmd_doctor = {
    "doctor",
    "[OPTIONS]",
    "Check library, driver, rights, sensors and clock, and say what to type",
    run,
};
