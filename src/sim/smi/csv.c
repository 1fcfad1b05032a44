#include "sim/smi/csv.h"

#include <string.h>

#include "base/auto.h"
#include "sim/smi/apps.h"
#include "sim/smi/fields.h"

enum { COLUMNS_MAX = 96 };

/* The next word of a list; false: none.  A word that is too long is cut. */
static bool next_word(const char **list, char ret[SMI_TEXT])
{
    const char *p = *list + strspn(*list, " ");
    size_t n = strcspn(p, ",");

    if (!*p)
        return false;
    *list = p + n + (p[n] == ',');
    while (n > 0 && p[n - 1] == ' ')
        n--;
    (void)snprintf(ret, SMI_TEXT, "%.*s", (int)n, p);
    return true;
}

int smi_csv_format(const char *text, struct smi_format *ret)
{
    char word[SMI_TEXT];
    bool csv = false;

    *ret = (struct smi_format){true, true};
    while (next_word(&text, word)) {
        if (strcmp(word, "csv") == 0)
            csv = true;
        else if (strcmp(word, "noheader") == 0)
            ret->header = false;
        else if (strcmp(word, "nounits") == 0)
            ret->units = false;
        else {
            (void)printf("Unrecognized value for \"--format=\": \"%s\" is none of: csv, "
                         "noheader, nounits\n",
                         word);
            return SMI_BAD_ARGUMENT;
        }
    }
    if (csv)
        return SMI_OK;
    (void)printf("\"--format=\" lacks \"csv\"\n");
    return SMI_BAD_ARGUMENT;
}

static int bad_field(const char *word)
{
    (void)printf("Field \"%s\" is not a valid field to query.\n\n", word);
    return SMI_BAD_ARGUMENT;
}

static void column(const char *name, const char *unit, bool first)
{
    (void)printf("%s%s%s%s%s", first ? "" : ", ", name, *unit ? " [" : "", unit,
                 *unit ? "]" : "");
}

int smi_csv_gpus(const struct smi *smi, const char *list, const struct smi_format *format)
{
    const struct smi_field *fields[COLUMNS_MAX];
    char word[SMI_TEXT];
    unsigned n = 0;

    while (n < COLUMNS_MAX && next_word(&list, word)) {
        fields[n] = strchr(word, ':') ? NULL : smi_field(word);
        if (!fields[n++])
            return bad_field(word);
    }
    if (n == 0)
        return bad_field("");
    for (unsigned k = 0; k < n && format->header; k++)
        column(smi_field_name(fields[k]), smi_field_unit(fields[k]), k == 0);
    if (format->header)
        (void)putchar('\n');
    for (unsigned i = 0; i < smi->n_chosen; i++) {
        nv_device dev;
        int r = smi_handle(smi, smi->chosen[i], &dev);
        if (r)
            return r;
        for (unsigned k = 0; k < n; k++) {
            smi_field_show(fields[k], smi, dev, format->units, word);
            (void)printf("%s%s", k ? ", " : "", word);
        }
        (void)putchar('\n');
    }
    return SMI_OK;
}

/* ---- processes ---- */

enum app_value { APP_PID, APP_NAME, APP_MEMORY, APP_BOARD };

static const struct app_column {
    const char *name, *also, *unit;
    enum app_value value;
    const char *field; /* APP_BOARD: of the board */
} columns[] = {
    {"timestamp", NULL, "", APP_BOARD, "timestamp"},
    {"gpu_name", NULL, "", APP_BOARD, "name"},
    {"gpu_bus_id", NULL, "", APP_BOARD, "pci.bus_id"},
    {"gpu_serial", NULL, "", APP_BOARD, "serial"},
    {"gpu_uuid", NULL, "", APP_BOARD, "uuid"},
    {"pid", NULL, "", APP_PID, NULL},
    {"process_name", "name", "", APP_NAME, NULL},
    {"used_gpu_memory", "used_memory", "MiB", APP_MEMORY, NULL},
};

static const struct app_column *app_column(const char *word)
{
    for (size_t i = 0; i < n_elements(columns); i++)
        if (strcmp(columns[i].name, word) == 0 ||
            (columns[i].also && strcmp(columns[i].also, word) == 0))
            return &columns[i];
    return NULL;
}

static void app_value(const struct smi *smi, nv_device dev, const struct app_column *c,
                      const struct smi_app *app, bool units)
{
    char text[SMI_TEXT];

    if (c->value == APP_PID)
        (void)printf("%u", app->pid);
    else if (c->value == APP_NAME)
        (void)printf("%s", app->name);
    else if (c->value == APP_MEMORY)
        (void)printf("%llu%s", (unsigned long long)(app->used_bytes >> 20),
                     units ? " MiB" : "");
    else {
        smi_field_show(smi_field(c->field), smi, dev, units, text);
        (void)printf("%s", text);
    }
}

static int apps_of(const struct smi *smi, unsigned board,
                   const struct app_column *const *shown, unsigned n, bool units)
{
    struct smi_app apps[SIM_PROCS_MAX];
    unsigned n_apps;
    nv_device dev;

    int r = smi_handle(smi, board, &dev);
    if (!r)
        r = smi_exit_of(smi_apps(smi, dev, apps, &n_apps));
    for (unsigned i = 0; !r && i < n_apps; i++) {
        for (unsigned k = 0; k < n; k++) {
            (void)printf("%s", k ? ", " : "");
            app_value(smi, dev, shown[k], &apps[i], units);
        }
        (void)putchar('\n');
    }
    return r;
}

int smi_csv_apps(const struct smi *smi, const char *list, const struct smi_format *format)
{
    const struct app_column *shown[COLUMNS_MAX];
    char word[SMI_TEXT];
    unsigned n = 0;
    int r = SMI_OK;

    while (n < COLUMNS_MAX && next_word(&list, word)) {
        shown[n] = app_column(word);
        if (!shown[n++])
            return bad_field(word);
    }
    if (n == 0)
        return bad_field("");
    for (unsigned k = 0; k < n && format->header; k++)
        column(shown[k]->name, shown[k]->unit, k == 0);
    if (format->header)
        (void)putchar('\n');
    for (unsigned i = 0; i < smi->n_chosen && !r; i++)
        r = apps_of(smi, smi->chosen[i], shown, n, format->units);
    return r;
}
