/* nvidia-smi of a simulated node: options. */
#include <string.h>
#include <time.h>

#include "base/auto.h"
#include "base/units.h"
#include "sim/smi/csv.h"
#include "sim/smi/fields.h"
#include "sim/smi/report.h"
#include "sim/smi/set.h"

enum option {
    OPT_HELP,
    OPT_HELP_FIELDS,
    OPT_LIST,
    OPT_QUERY,
    OPT_XML,
    OPT_DISPLAY,
    OPT_ID,
    OPT_QUERY_GPU,
    OPT_QUERY_APPS,
    OPT_FORMAT,
    OPT_LOOP,
    OPT_LOOP_MS,
    OPT_LIMIT,
    OPT_LOCK,
    OPT_RESET,
    OPT_PERSISTENCE,
    OPT_N
};

static const struct {
    const char *name[2];
    const char *value; /* NULL: takes none */
    const char *help;
} options[OPT_N] = {
    [OPT_HELP] = {{"-h", "--help"}, NULL, "print this help"},
    [OPT_HELP_FIELDS] = {{"--help-query-gpu", NULL},
                         NULL,
                         "list the fields of --query-gpu"},
    [OPT_LIST] = {{"-L", "--list-gpus"}, NULL, "list the boards"},
    [OPT_QUERY] = {{"-q", "--query"}, NULL, "show every value of the boards"},
    [OPT_XML] = {{"-x", "--xml-format"}, NULL, "with -q: as XML"},
    [OPT_DISPLAY] = {{"-d", "--display"},
                     "LIST",
                     "with -q: MEMORY, POWER, CLOCK, ... alone"},
    [OPT_ID] = {{"-i", "--id"}, "LIST", "boards by index, UUID, serial or bus id"},
    [OPT_QUERY_GPU] = {{"--query-gpu", NULL},
                       "LIST",
                       "fields of the boards; with --format"},
    [OPT_QUERY_APPS] = {{"--query-compute-apps", NULL},
                        "LIST",
                        "fields of the processes; with --format"},
    [OPT_FORMAT] = {{"--format", NULL},
                    "csv[,noheader][,nounits]",
                    "form of the two queries"},
    [OPT_LOOP] = {{"-l", "--loop"}, "S", "again every S seconds"},
    [OPT_LOOP_MS] = {{"-lms", "--loop-ms"}, "MS", "again every MS milliseconds"},
    [OPT_LIMIT] = {{"-pl", "--power-limit"}, "W", "set the power limit"},
    [OPT_LOCK] = {{"-lgc", "--lock-gpu-clocks"}, "MIN,MAX", "lock the clocks, in MHz"},
    [OPT_RESET] = {{"-rgc", "--reset-gpu-clocks"}, NULL, "release the clocks"},
    [OPT_PERSISTENCE] = {{"-pm", "--persistence-mode"},
                         "0|1",
                         "set the persistence mode"},
};

/* Values of the options given; "" for one that takes none. */
struct given {
    const char *value[OPT_N];
};

static int help(void)
{
    (void)printf(
        "NVIDIA System Management Interface -- of a simulated node: every value is "
        "simulated.\nSee underwatt-sim(1).\n\nnvidia-smi [OPTION [VALUE]] ...\n\n");
    for (size_t i = 0; i < OPT_N; i++) {
        char text[SMI_TEXT];
        (void)snprintf(
            text, sizeof text, "%s%s%s%s%s", options[i].name[0],
            options[i].name[1] ? ", " : "", options[i].name[1] ? options[i].name[1] : "",
            options[i].value ? "=" : "", options[i].value ? options[i].value : "");
        (void)printf("    %-42s %s\n", text, options[i].help);
    }
    return SMI_OK;
}

static int bad(const char *what, const char *text)
{
    (void)printf("%s \"%s\". Please run 'nvidia-smi -h' for help.\n", what, text);
    return SMI_BAD_ARGUMENT;
}

/* The option that word names, with *ret_value behind a "=" or NULL; OPT_N: none. */
static size_t option_of(const char *word, const char **ret_value)
{
    size_t n = strcspn(word, "=");

    *ret_value = word[n] ? word + n + 1 : NULL;
    for (size_t i = 0; i < OPT_N; i++)
        for (size_t k = 0; k < 2; k++) {
            const char *name = options[i].name[k];
            if (name && strlen(name) == n && strncmp(word, name, n) == 0)
                return i;
        }
    return OPT_N;
}

static int parse(int argc, char **argv, struct given *ret)
{
    for (int i = 1; i < argc; i++) {
        const char *value;
        size_t o = option_of(argv[i], &value);
        if (o == OPT_N || (value && !options[o].value))
            return bad("Invalid option", argv[i]);
        if (options[o].value && !value && i + 1 < argc)
            value = argv[++i];
        if (options[o].value && !value)
            return bad("A value is missing behind", argv[i]);
        ret->value[o] = value ? value : "";
    }
    return SMI_OK;
}

static int once(const struct smi *smi, const struct given *g)
{
    static const struct {
        enum option option;
        int (*set)(const struct smi *smi, const char *text);
    } sets[] = {
        {OPT_LIMIT, smi_set_limit},
        {OPT_LOCK, smi_set_clocks},
        {OPT_RESET, smi_reset_clocks},
        {OPT_PERSISTENCE, smi_set_persistence},
    };
    struct smi_format format;

    for (size_t i = 0; i < n_elements(sets); i++)
        if (g->value[sets[i].option])
            return sets[i].set(smi, g->value[sets[i].option]);
    if (g->value[OPT_LIST])
        return smi_list(smi);
    if (g->value[OPT_QUERY])
        return g->value[OPT_XML] ? smi_report_xml(smi)
                                 : smi_report_text(smi, g->value[OPT_DISPLAY]);
    if (!g->value[OPT_QUERY_GPU] && !g->value[OPT_QUERY_APPS])
        return smi_summary(smi);
    if (!g->value[OPT_FORMAT])
        return bad("\"--format=\" is missing:", "--format=csv");
    int r = smi_csv_format(g->value[OPT_FORMAT], &format);
    if (r)
        return r;
    return g->value[OPT_QUERY_GPU] ? smi_csv_gpus(smi, g->value[OPT_QUERY_GPU], &format)
                                   : smi_csv_apps(smi, g->value[OPT_QUERY_APPS], &format);
}

/* The period of -l or -lms; 0: once. */
static int period(const struct given *g, uint64_t *ret_ms)
{
    const char *s = g->value[OPT_LOOP];
    const char *ms = g->value[OPT_LOOP_MS];
    uw_error err = {""};

    *ret_ms = 0;
    if (!s && !ms)
        return SMI_OK;
    if (parse_u64(s ? s : ms, ret_ms, &err) || *ret_ms == 0 || *ret_ms > 1000000)
        return bad("Invalid period", s ? s : ms);
    *ret_ms *= s ? 1000 : 1;
    return SMI_OK;
}

static int work(struct smi *smi, const struct given *g)
{
    uint64_t ms;

    int r = period(g, &ms);
    if (!r && g->value[OPT_ID])
        r = smi_choose(smi, g->value[OPT_ID]);
    if (!r)
        r = once(smi, g);
    while (!r && ms && fflush(stdout) == 0) {
        struct timespec pause = {.tv_sec = (time_t)(ms / 1000),
                                 .tv_nsec = (long)(ms % 1000 * NS_PER_MS)};
        (void)nanosleep(&pause, NULL);
        r = once(smi, g);
    }
    return r;
}

int main(int argc, char **argv)
{
    struct given g = {{NULL}};
    struct smi smi;

    int r = parse(argc, argv, &g);
    if (r)
        return r;
    if (g.value[OPT_HELP])
        return help();
    if (g.value[OPT_HELP_FIELDS]) {
        smi_fields_print(stdout);
        return SMI_OK;
    }
    r = smi_open(&smi);
    if (r)
        return r;
    r = work(&smi, &g);
    smi_close(&smi);
    return fflush(stdout) == 0 ? r : SMI_OTHER;
}
