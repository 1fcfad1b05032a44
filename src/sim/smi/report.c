#include "sim/smi/report.h"

#include <string.h>
#include <strings.h>

#include "base/auto.h"
#include "sim/smi/apps.h"
#include "sim/smi/fields.h"

enum { LABEL_AT = 50, INDENT = 4, TAB = 4 };

/* A group (field NULL) or a value of it; depth 1 is the board's own. */
struct row {
    int depth;
    const char *label, *tag, *field;
    const char *display; /* the word of -d under which a group of depth 1 stands */
};

/* clang-format off */
static const struct row rows[] = {
    {1, "Product Name", "product_name", "name", NULL},
    {1, "Display Mode", "display_mode", "display_mode", NULL},
    {1, "Display Active", "display_active", "display_active", NULL},
    {1, "Persistence Mode", "persistence_mode", "persistence_mode", NULL},
    {1, "MIG Mode", "mig_mode", NULL, "MIG"},
    {2, "Current", "current_mig", "mig.mode.current", NULL},
    {2, "Pending", "pending_mig", "mig.mode.pending", NULL},
    {1, "Serial Number", "serial", "serial", NULL},
    {1, "GPU UUID", "uuid", "uuid", NULL},
    {1, "Minor Number", "minor_number", "q:minor", NULL},
    {1, "VBIOS Version", "vbios_version", "vbios_version", NULL},
    {1, "PCI", "pci", NULL, "PCI"},
    {2, "Bus", "pci_bus", "pci.bus", NULL},
    {2, "Device", "pci_device", "pci.device", NULL},
    {2, "Domain", "pci_domain", "pci.domain", NULL},
    {2, "Device Id", "pci_device_id", "pci.device_id", NULL},
    {2, "Bus Id", "pci_bus_id", "pci.bus_id", NULL},
    {2, "Sub System Id", "pci_sub_system_id", "pci.sub_device_id", NULL},
    {2, "GPU Link Info", "pci_gpu_link_info", NULL, NULL},
    {3, "PCIe Generation", "pcie_gen", NULL, NULL},
    {4, "Max", "max_link_gen", "pcie.link.gen.max", NULL},
    {4, "Current", "current_link_gen", "pcie.link.gen.current", NULL},
    {3, "Link Width", "link_widths", NULL, NULL},
    {4, "Max", "max_link_width", "pcie.link.width.max", NULL},
    {4, "Current", "current_link_width", "pcie.link.width.current", NULL},
    {1, "Fan Speed", "fan_speed", "fan.speed", NULL},
    {1, "Performance State", "performance_state", "pstate", "PERFORMANCE"},
    {1, "Clocks Event Reasons", "clocks_event_reasons", NULL, "PERFORMANCE"},
    {2, "Idle", "clocks_event_reason_gpu_idle", "clocks_event_reasons.gpu_idle", NULL},
    {2, "Applications Clocks Setting", "clocks_event_reason_applications_clocks_setting",
     "clocks_event_reasons.applications_clocks_setting", NULL},
    {2, "SW Power Cap", "clocks_event_reason_sw_power_cap", "clocks_event_reasons.sw_power_cap", NULL},
    {2, "HW Slowdown", "clocks_event_reason_hw_slowdown", "clocks_event_reasons.hw_slowdown", NULL},
    {2, "HW Thermal Slowdown", "clocks_event_reason_hw_thermal_slowdown",
     "clocks_event_reasons.hw_thermal_slowdown", NULL},
    {2, "HW Power Brake Slowdown", "clocks_event_reason_hw_power_brake_slowdown",
     "clocks_event_reasons.hw_power_brake_slowdown", NULL},
    {2, "Sync Boost", "clocks_event_reason_sync_boost", "clocks_event_reasons.sync_boost", NULL},
    {2, "SW Thermal Slowdown", "clocks_event_reason_sw_thermal_slowdown",
     "clocks_event_reasons.sw_thermal_slowdown", NULL},
    {1, "FB Memory Usage", "fb_memory_usage", NULL, "MEMORY"},
    {2, "Total", "total", "memory.total", NULL},
    {2, "Used", "used", "memory.used", NULL},
    {2, "Free", "free", "memory.free", NULL},
    {1, "Compute Mode", "compute_mode", "compute_mode", "COMPUTE"},
    {1, "Utilization", "utilization", NULL, "UTILIZATION"},
    {2, "Gpu", "gpu_util", "utilization.gpu", NULL},
    {2, "Memory", "memory_util", "utilization.memory", NULL},
    {2, "Encoder", "encoder_util", "utilization.encoder", NULL},
    {2, "Decoder", "decoder_util", "utilization.decoder", NULL},
    {1, "ECC Mode", "ecc_mode", NULL, "ECC"},
    {2, "Current", "current_ecc", "ecc.mode.current", NULL},
    {2, "Pending", "pending_ecc", "ecc.mode.pending", NULL},
    {1, "Temperature", "temperature", NULL, "TEMPERATURE"},
    {2, "GPU Current Temp", "gpu_temp", "q:temperature", NULL},
    {2, "GPU Shutdown Temp", "gpu_temp_max_threshold", "q:shutdown", NULL},
    {2, "GPU Slowdown Temp", "gpu_temp_slow_threshold", "q:slowdown", NULL},
    {1, "GPU Power Readings", "gpu_power_readings", NULL, "POWER"},
    {2, "Power State", "power_state", "pstate", NULL},
    {2, "Power Draw", "power_draw", "power.draw", NULL},
    {2, "Average Power Draw", "average_power_draw", "power.draw.average", NULL},
    {2, "Instantaneous Power Draw", "instant_power_draw", "power.draw.instant", NULL},
    {2, "Current Power Limit", "current_power_limit", "enforced.power.limit", NULL},
    {2, "Requested Power Limit", "requested_power_limit", "power.limit", NULL},
    {2, "Default Power Limit", "default_power_limit", "power.default_limit", NULL},
    {2, "Min Power Limit", "min_power_limit", "power.min_limit", NULL},
    {2, "Max Power Limit", "max_power_limit", "power.max_limit", NULL},
    {1, "Clocks", "clocks", NULL, "CLOCK"},
    {2, "Graphics", "graphics_clock", "clocks.current.graphics", NULL},
    {2, "SM", "sm_clock", "clocks.current.sm", NULL},
    {2, "Memory", "mem_clock", "clocks.current.memory", NULL},
    {2, "Video", "video_clock", "clocks.current.video", NULL},
    {1, "Max Clocks", "max_clocks", NULL, "CLOCK"},
    {2, "Graphics", "graphics_clock", "clocks.max.graphics", NULL},
    {2, "SM", "sm_clock", "clocks.max.sm", NULL},
    {2, "Memory", "mem_clock", "clocks.max.memory", NULL},
};
/* clang-format on */

/* The value as -q shows it: N/A without brackets. */
static void show(const struct smi *smi, nv_device dev, const char *field,
                 char ret[SMI_TEXT])
{
    smi_field_show(smi_field(field), smi, dev, true, ret);
    if (strcmp(ret, "[N/A]") == 0)
        memcpy(ret, "N/A", sizeof "N/A");
}

/* ---- text ---- */

static void line(int depth, const char *label, const char *value)
{
    int at = INDENT * depth;

    if (value)
        (void)printf("%*s%-*s : %s\n", at, "", LABEL_AT - at, label, value);
    else
        (void)printf("%*s%s\n", at, "", label);
}

/* Whether the comma-separated list has the word. */
static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = list; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (strncasecmp(p, word, n) == 0 && (p[n] == ',' || !p[n]))
            return true;
    return false;
}

static int text_apps(const struct smi *smi, nv_device dev)
{
    struct smi_app apps[SIM_PROCS_MAX];
    char value[SMI_TEXT];
    unsigned n;

    int r = smi_exit_of(smi_apps(smi, dev, apps, &n));
    line(1, "Processes", n ? NULL : "None");
    for (unsigned i = 0; i < n; i++) {
        (void)snprintf(value, sizeof value, "%u", apps[i].pid);
        line(2, "Process ID", value);
        line(3, "Type", "C");
        line(3, "Name", apps[i].name);
        (void)snprintf(value, sizeof value, "%llu MiB",
                       (unsigned long long)(apps[i].used_bytes >> 20));
        line(3, "Used GPU Memory", value);
    }
    return r;
}

static int text_board(const struct smi *smi, unsigned board, const char *display)
{
    char value[SMI_TEXT];
    bool shown = true;
    nv_device dev;

    int r = smi_handle(smi, board, &dev);
    if (r)
        return r;
    show(smi, dev, "pci.bus_id", value);
    (void)printf("GPU %s\n", value);
    for (size_t i = 0; i < n_elements(rows); i++) {
        const struct row *row = &rows[i];
        if (row->depth == 1)
            shown = !display || (row->display && has_word(display, row->display));
        if (!shown)
            continue;
        if (row->field)
            show(smi, dev, row->field, value);
        line(row->depth, row->label, row->field ? value : NULL);
    }
    if (!display || has_word(display, "PIDS"))
        r = text_apps(smi, dev);
    (void)putchar('\n');
    return r;
}

static int display_known(const char *display)
{
    char word[SMI_TEXT];

    for (const char *p = display; *p; p += strcspn(p, ","), p += *p == ',') {
        bool known;
        (void)snprintf(word, sizeof word, "%.*s", (int)strcspn(p, ","), p);
        known = strcasecmp(word, "PIDS") == 0;
        for (size_t i = 0; i < n_elements(rows); i++)
            known = known || (rows[i].display && strcasecmp(rows[i].display, word) == 0);
        if (known)
            continue;
        (void)printf(
            "Invalid value \"%s\" for --display: one of CLOCK, COMPUTE, ECC, MEMORY, "
            "MIG, PCI, PERFORMANCE, PIDS, POWER, TEMPERATURE, UTILIZATION is "
            "wanted\n",
            word);
        return SMI_BAD_ARGUMENT;
    }
    return SMI_OK;
}

int smi_report_text(const struct smi *smi, const char *display)
{
    char driver[SMI_TEXT], cuda[SMI_TEXT], text[SMI_TEXT];
    int r = display ? display_known(display) : SMI_OK;

    if (r)
        return r;
    smi_versions(smi, driver, cuda);
    smi_date(text);
    (void)printf("\n==============NVSMI LOG==============\n\n");
    line(0, "Timestamp", text);
    line(0, "Driver Version", driver);
    line(0, "CUDA Version", cuda);
    (void)snprintf(text, sizeof text, "%u", smi->n);
    (void)putchar('\n');
    line(0, "Attached GPUs", text);
    for (unsigned i = 0; i < smi->n_chosen && !r; i++)
        r = text_board(smi, smi->chosen[i], display);
    return r;
}

/* ---- XML ---- */

static void escaped(const char *text)
{
    for (const char *p = text; *p; p++)
        if (*p == '&' || *p == '<' || *p == '>')
            (void)printf("%s", *p == '&' ? "&amp;" : *p == '<' ? "&lt;" : "&gt;");
        else
            (void)putchar((unsigned char)*p < ' ' ? ' ' : *p);
}

static void element(int depth, const char *tag, const char *value)
{
    (void)printf("%.*s<%s>", depth, "\t\t\t\t\t\t", tag);
    escaped(value);
    (void)printf("</%s>\n", tag);
}

static void tag_line(int depth, const char *end, const char *tag)
{
    (void)printf("%.*s<%s%s>\n", depth, "\t\t\t\t\t\t", end, tag);
}

static int xml_apps(const struct smi *smi, nv_device dev)
{
    struct smi_app apps[SIM_PROCS_MAX];
    char value[SMI_TEXT];
    unsigned n;

    int r = smi_exit_of(smi_apps(smi, dev, apps, &n));
    tag_line(2, "", "processes");
    for (unsigned i = 0; i < n; i++) {
        tag_line(3, "", "process_info");
        element(4, "gpu_instance_id", "N/A");
        element(4, "compute_instance_id", "N/A");
        (void)snprintf(value, sizeof value, "%u", apps[i].pid);
        element(4, "pid", value);
        element(4, "type", "C");
        element(4, "process_name", apps[i].name);
        (void)snprintf(value, sizeof value, "%llu MiB",
                       (unsigned long long)(apps[i].used_bytes >> 20));
        element(4, "used_memory", value);
        tag_line(3, "/", "process_info");
    }
    tag_line(2, "/", "processes");
    return r;
}

static int xml_board(const struct smi *smi, unsigned board)
{
    const char *open[TAB + 1] = {NULL}; /* the group at each depth */
    char value[SMI_TEXT];
    int depth = 1;
    nv_device dev;

    int r = smi_handle(smi, board, &dev);
    if (r)
        return r;
    show(smi, dev, "pci.bus_id", value);
    (void)printf("\t<gpu id=\"%s\">\n", value);
    for (size_t i = 0; i < n_elements(rows); i++) {
        const struct row *row = &rows[i];
        for (; depth > row->depth; depth--)
            tag_line(depth, "/", open[depth - 1]);
        if (row->field) {
            show(smi, dev, row->field, value);
            element(row->depth + 1, row->tag, value);
        } else {
            tag_line(row->depth + 1, "", row->tag);
            open[row->depth] = row->tag;
            depth = row->depth + 1;
        }
    }
    for (; depth > 1; depth--)
        tag_line(depth, "/", open[depth - 1]);
    r = xml_apps(smi, dev);
    (void)printf("\t</gpu>\n");
    return r;
}

int smi_report_xml(const struct smi *smi)
{
    char driver[SMI_TEXT], cuda[SMI_TEXT], text[SMI_TEXT];
    int r = SMI_OK;

    smi_versions(smi, driver, cuda);
    smi_date(text);
    (void)printf("<?xml version=\"1.0\" ?>\n"
                 "<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n"
                 "<nvidia_smi_log>\n");
    element(1, "timestamp", text);
    element(1, "driver_version", driver);
    element(1, "cuda_version", cuda);
    (void)snprintf(text, sizeof text, "%u", smi->n);
    element(1, "attached_gpus", text);
    for (unsigned i = 0; i < smi->n_chosen && !r; i++)
        r = xml_board(smi, smi->chosen[i]);
    (void)printf("</nvidia_smi_log>\n");
    return r;
}

/* ---- the summary and -L ---- */

/* The value in a column of this width; negative: from the left. */
static void of_board(const struct smi *smi, nv_device dev, const char *field, int width)
{
    char value[SMI_TEXT];

    show(smi, dev, field, value);
    (void)printf("%*s", width, value);
}

static int summary_board(const struct smi *smi, unsigned board)
{
    nv_device dev;

    int r = smi_handle(smi, board, &dev);
    if (r)
        return r;
    (void)printf("| %3u  ", board);
    of_board(smi, dev, "name", -34);
    of_board(smi, dev, "pci.bus_id", -18);
    of_board(smi, dev, "q:temperature", 5);
    of_board(smi, dev, "pstate", 5);
    of_board(smi, dev, "power.draw", 11);
    (void)printf(" / ");
    of_board(smi, dev, "power.limit", -9);
    of_board(smi, dev, "memory.used", 10);
    (void)printf(" / ");
    of_board(smi, dev, "memory.total", -10);
    of_board(smi, dev, "utilization.gpu", 6);
    (void)printf(" |\n");
    return SMI_OK;
}

static int summary_apps(const struct smi *smi, unsigned board)
{
    struct smi_app apps[SIM_PROCS_MAX];
    unsigned n = 0;
    nv_device dev;

    int r = smi_handle(smi, board, &dev);
    if (!r)
        r = smi_exit_of(smi_apps(smi, dev, apps, &n));
    for (unsigned i = 0; i < n; i++)
        (void)printf("| %3u  %9u   C   %-70.70s %6llu MiB\n", board, apps[i].pid,
                     apps[i].name, (unsigned long long)(apps[i].used_bytes >> 20));
    return r;
}

int smi_summary(const struct smi *smi)
{
    char driver[SMI_TEXT], cuda[SMI_TEXT], text[SMI_TEXT];
    int r = SMI_OK;

    smi_versions(smi, driver, cuda);
    smi_date(text);
    (void)printf("%s\n| NVIDIA-SMI %s    Driver Version: %s    CUDA Version: %s |\n",
                 text, driver, driver, cuda);
    (void)printf("| GPU  %-34s%-18s%5s %4s %10s / %-9s %9s / %-10s %5s |\n", "Name",
                 "Bus-Id", "Temp", "Perf", "Pwr:Usage", "Cap", "Memory", "Total", "Util");
    for (unsigned i = 0; i < smi->n_chosen && !r; i++)
        r = summary_board(smi, smi->chosen[i]);
    (void)printf(
        "| Processes:\n| GPU        PID  Type  Process name, GPU memory usage\n");
    for (unsigned i = 0; i < smi->n_chosen && !r; i++)
        r = summary_apps(smi, smi->chosen[i]);
    return r;
}

int smi_list(const struct smi *smi)
{
    int r = SMI_OK;

    for (unsigned i = 0; i < smi->n_chosen && !r; i++) {
        nv_device dev;
        r = smi_handle(smi, smi->chosen[i], &dev);
        if (r)
            break;
        (void)printf("GPU %u: ", smi->chosen[i]);
        of_board(smi, dev, "name", 0);
        (void)printf(" (UUID: ");
        of_board(smi, dev, "uuid", 0);
        (void)printf(")\n");
    }
    return r;
}
