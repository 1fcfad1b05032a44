/* machine.h and who.h on a made-up tree. */
#include "cli/machine.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/utf8.h"
#include "cli/who.h"
#include "tap.h"

static char root[] = "/tmp/uw-machine-XXXXXX";

static void put(const char *path, const char *text, size_t len)
{
    char full[300];

    for (const char *p = path + 1; (p = strchr(p, '/')) != NULL; p++) {
        (void)snprintf(full, sizeof full, "%s%.*s", root, (int)(p - path), path);
        (void)mkdir(full, 0755);
    }
    (void)snprintf(full, sizeof full, "%s%s", root, path);
    FILE *f = fopen(full, "w");
    if (!f)
        return;
    (void)fwrite(text, 1, len, f);
    (void)fclose(f);
}
#define PUT(path, text) put(path, text, sizeof(text) - 1)

static const struct {
    const char *in, *out;
} texts[] = {
    {"plain", "plain"},        {"a\x1b[31mb", "a?[31mb"},
    {"tab\there", "tab?here"}, {"é€😀", "é€😀"},
    {"\xff\xc3", "??"},        {"\xc2\x9b", "?"},
    {"\xc0\xaf", "??"},        {"", ""},
};

static void check_clean(void)
{
    for (size_t i = 0; i < n_elements(texts); i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "%s", texts[i].in);
        utf8_mend(text);
        is_str(text, texts[i].out, "a terminal is safe");
    }
}

static void check_who(void)
{
    struct who w;

    PUT("/proc/41/cmdline", "python\0train.py\0--x=\x1b[2J\0");
    who_is(root, 41, &w);
    ok(w.known && w.uid == getuid() && w.user[0], "a process is known: %s", w.user);
    is_str(w.command, "python train.py --x=?[2J", "… its words, nothing to obey");
    PUT("/proc/42/cmdline", "");
    PUT("/proc/42/comm", "kworker\n");
    who_is(root, 42, &w);
    is_str(w.command, "kworker", "… its name where it has no words");
    char longest[600];
    memset(longest, 'x', sizeof longest);
    memcpy(longest + 110, "€€€€", 12);
    put("/proc/43/cmdline", longest, sizeof longest);
    who_is(root, 43, &w);
    ok(strlen(w.command) < sizeof w.command && strstr(w.command, "…"),
       "a long one is cut");
    ok(!strchr(w.command, '?'), "… between characters");
    who_is(root, 44, &w);
    ok(!w.known && !w.command[0], "one that has gone is unknown");
}

static void check_daemon(void)
{
#define WORDS(text) text, sizeof text - 1 /* each with a 0 behind it */
    static const struct {
        const char *name, *words;
        size_t n;
        bool daemon;
    } cases[] = {
        {"the daemon", WORDS("/usr/sbin/underwattd\0--config\0x\0"), true},
        {"without a folder", WORDS("underwattd\0"), true},
        {"its actuator", WORDS("/a b/underwatt-actuator\0--serve\0--keeper\0"), true},
        {"further on", WORDS("underwatt-actuator\0--library\0x\0--serve\0"), true},
        {"a command's actuator", WORDS("/usr/bin/underwatt-actuator\0--local\0"), false},
        {"one word of both", WORDS("underwatt-actuator --serve\0"), false},
        {"words of another", WORDS("grep\0underwatt-actuator\0--serve\0"), false},
        {"another's path", WORDS("cat\0/etc/underwattd\0"), false},
        {"no words", "", 0, false},
    };

    for (size_t i = 0; i < n_elements(cases); i++) {
        struct who w;
        put("/proc/45/cmdline", cases[i].words, cases[i].n);
        put("/proc/45/comm", "x\n", 2);
        who_is(root, 45, &w);
        ok(w.known && w.daemon == cases[i].daemon, "a daemon or none: %s", cases[i].name);
    }
}

int main(void)
{
    struct machine m;

    if (!mkdtemp(root))
        return skip_all("no room in /tmp");
    machine_read(root, &m);
    ok(!m.pci_known && !m.module && m.nvidiactl == MACHINE_NODE_ABSENT && !m.sudo,
       "an empty machine");
    PUT("/sys/bus/pci/devices/0000:3b:00.0/vendor", "0x10de\n");
    PUT("/sys/bus/pci/devices/0000:3b:00.0/class", "0x030200\n");
    PUT("/sys/bus/pci/devices/0000:3b:00.1/vendor", "0x10de\n"); /* its sound */
    PUT("/sys/bus/pci/devices/0000:3b:00.1/class", "0x040300\n");
    PUT("/sys/bus/pci/devices/0000:00:02.0/vendor", "0x8086\n");
    PUT("/sys/bus/pci/devices/0000:00:02.0/class", "0x030000\n");
    PUT("/proc/driver/nvidia/version", "x");
    PUT("/dev/nvidiactl", "");
    PUT("/usr/bin/sudo", "");
    PUT("/proc/123/comm", "nv-hostengine\n");
    PUT("/proc/123/cmdline", "nv-hostengine\0-n\0--library\0/world/lib.so\0--serve\0");
    PUT("/proc/124/comm", "bash\n");
    machine_read(root, &m);
    ok(m.pci_known && m.nvidia_boards == 1, "one board on the bus");
    ok(m.module && m.nvidiactl == MACHINE_NODE_OPEN && m.sudo, "driver, door, sudo");
    ok(m.n_writers == 1 && m.writer[0].pid == 123, "one program that may set limits");
    is_str(m.writer[0].name, "nv-hostengine", "… by name");
    const struct machine_writer *w = m.writer;
    is_str(w->library, "/world/lib.so", "… and by the library it was told");
    check_clean();
    check_who();
    check_daemon();
    char command[100];
    (void)snprintf(command, sizeof command, "rm -rf %s", root);
    (void)!system(command);
    return done();
}
