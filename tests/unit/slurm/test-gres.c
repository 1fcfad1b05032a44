#include "slurm/gres.h"

#include <errno.h>
#include <stdio.h>

#include "base/auto.h"
#include "tap.h"

static char seen[1000];

static void on_device(unsigned index, const char *file, void *user)
{
    size_t used = strlen(seen);
    (void)user;

    (void)snprintf(seen + used, sizeof seen - used, "%u=%s ", index, file);
}

/* clang-format off */
static const struct { const char *name, *text; int r; const char *seen; } cases[] = {
    {"nothing", "", 0, ""},
    {"a file a line", "Name=gpu File=/dev/nvidia1\nName=gpu File=/dev/nvidia0\n", 2, "0=/dev/nvidia1 1=/dev/nvidia0 "},
    {"a range", "NodeName=n[1-4] Name=gpu Type=v100 File=/dev/nvidia[2-3,0] Cores=0-7", 3, "0=/dev/nvidia2 1=/dev/nvidia3 2=/dev/nvidia0 "},
    {"a list", "name=GPU file=/dev/a,/dev/b[0-1],/dev/c\n", 4, "0=/dev/a 1=/dev/b0 2=/dev/b1 3=/dev/c "},
    {"leading zeros", "Name=gpu File=/dev/x[08-10]", 3, "0=/dev/x08 1=/dev/x09 2=/dev/x10 "},
    {"two brackets", "Name=gpu File=/dev/x[0-1]y[0-1]", 4, "0=/dev/x0y0 1=/dev/x0y1 2=/dev/x1y0 3=/dev/x1y1 "},
    {"other nodes' lines", "NodeName=n[2-9] Name=gpu File=/dev/a\nNodeName=n1,login Name=gpu File=/dev/b", 1, "0=/dev/b "},
    {"a node's own lines come last", "NodeName=n1 Name=gpu File=/dev/c\nName=gpu File=/dev/a\nnodename=n1 Name=gpu File=/dev/d\nName=gpu File=/dev/b\n", 4,
     "0=/dev/a 1=/dev/b 2=/dev/c 3=/dev/d "},
    {"other kinds", "Name=nic File=/dev/x\nName=gpu File=/dev/a\nName=mps Count=100\nName=shard Count=8 File=/dev/a", 1, "0=/dev/a "},
    {"comments and blanks", "# File=/dev/x\n\n  Name=gpu\tFile=/dev/a # Name=gpu\n", 1, "0=/dev/a "},
    {"a line that goes on", "Name=gpu \\\n  File=/dev/a\nName=gpu File=/dev/b \\", 2, "0=/dev/a 1=/dev/b "},
    {"quotes", "Name=\"gpu\" File=\"/dev/a\"", 1, "0=/dev/a "},
    {"detection off", "AutoDetect=off\nName=gpu File=/dev/a", 1, "0=/dev/a "},
    {"another node's detection", "NodeName=n2 AutoDetect=nvml\nName=gpu File=/dev/a", 1, "0=/dev/a "},
    {"a bare word", "Name=gpu File=/dev/a Flags", 1, "0=/dev/a "},
    {"one type", "Name=gpu Type=a File=/dev/a\nNodeName=n2 Name=gpu Type=b File=/dev/x\nName=gpu Type=a File=/dev/b", 2, "0=/dev/a 1=/dev/b "},
    {"detection", "AutoDetect=nvml\n", -ENOTSUP, ""},
    {"GPUs without a file", "Name=gpu Count=4", -ENOTSUP, ""},
    {"MIG instances", "Name=gpu MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap3", -ENODEV, ""},
    {"MIG instances as files", "Name=gpu File=/dev/nvidia-caps/nvidia-cap[3-4]", -ENODEV, ""},
    {"another file", "Include /etc/slurm/gpus.conf", -EINVAL, ""},
    {"no path", "Name=gpu File=nvidia0", -EINVAL, ""},
    {"an empty path", "Name=gpu File=/dev/a,,/dev/b", -EINVAL, "0=/dev/a "},
    {"a range backwards", "Name=gpu File=/dev/a[3-1]", -EINVAL, ""},
    {"a bracket left open", "Name=gpu File=/dev/a[0-1", -EINVAL, ""},
    {"empty brackets", "Name=gpu File=/dev/a[]", -EINVAL, ""},
    {"no number", "Name=gpu File=/dev/a[x]", -EINVAL, ""},
    {"more than a node can have", "Name=gpu File=/dev/a[0-2000]", -EINVAL, ""},
    {"a long number", "Name=gpu File=/dev/a[0-99999999999]", -EINVAL, ""},
};
#define A01 "Name=gpu Type=a File=/dev/a[0-1]\n"
#define B01 "Name=gpu Type=b File=/dev/b[0-1]\n"
/* As `slurmd -G` of Slurm 22.05 lists them. */
static const struct { const char *name, *conf, *text; int r; const char *seen; } typed[] = {
    {"slurm.conf's order", "NodeName=n[1-2] CPUs=4 Gres=gpu:b:2,gpu:a:2 State=UNKNOWN\n", A01 B01, 4, "0=/dev/b0 1=/dev/b1 2=/dev/a0 3=/dev/a1 "},
    {"fewer than files", "NodeName=n1 Gres=gpu:b:1,nic:2,gpu:a:2\n", A01 B01, 3, "0=/dev/b0 1=/dev/a0 2=/dev/a1 "},
    {"more than files", "NodeName=n1 Gres=gpu:b:3,gpu:a:2\n", A01 B01, 4, "0=/dev/b0 1=/dev/b1 2=/dev/a0 3=/dev/a1 "},
    {"a type that slurm.conf does not have", "NodeName=n1 Gres=gpu:b:2\n", A01 B01, 2, "0=/dev/b0 1=/dev/b1 "},
    {"a type in parts", "NodeName=n1 Gres=gpu:a:1,gpu:b:2,gpu:a:1\n", A01 B01, 4, "0=/dev/a0 1=/dev/a1 2=/dev/b0 3=/dev/b1 "},
    {"no type in slurm.conf", "NodeName=n1 Gres=gpu:3\n", B01 A01, 3, "0=/dev/b0 1=/dev/b1 2=/dev/a0 "},
    {"the lines of a type in their order", "NodeName=n1 Gres=gpu:b:2,gpu:a:2\n", "NodeName=n1 Name=gpu Type=A File=/dev/a1\n" B01 "Name=gpu Type=a File=/dev/a0\n", 4, "0=/dev/b0 1=/dev/b1 2=/dev/a0 3=/dev/a1 "},
    {"sockets, and no count", "nodename=n1 gres=\"gpu:b(S:0),gpu:a:2(S:0-1)\"\n", A01 B01, 3, "0=/dev/b0 1=/dev/a0 2=/dev/a1 "},
    {"other nodes", "NodeName=n2 Gres=gpu:a:2\nNodeName=DEFAULT Gres=gpu:b:2\nNodeName=n1 \\\n CPUs=2 # Gres=gpu:a:1\n", A01 B01, 2, "0=/dev/b0 1=/dev/b1 "},
    {"no GPU", "NodeName=n1 Gres=gpus:2,nic\n", A01 B01, 0, ""},
    {"no such node", "NodeName=n2 Gres=gpu:a:2\n", A01, -ENOENT, ""},
    {"another file", "include nodes.conf\n", A01, -EINVAL, ""},
    {"with a type and without one", "NodeName=n1 Gres=gpu:2,gpu:a:2\n", A01, -EINVAL, ""},
    {"two names", "NodeName=n1 Gres=gpu:a:b:2\n", A01, -EINVAL, ""},
    {"names that differ in case", "NodeName=n1 Gres=gpu:a:1,gpu:A:1\n", A01, -EINVAL, ""},
    {"a count of no form", "NodeName=n1 Gres=gpu:a:2k\n", A01, -EINVAL, ""},
    {"nothing to share", "NodeName=n1 Gres=gpu:no_consume:2\n", A01, -EINVAL, ""},
    {"detection", "NodeName=n1 Gres=gpu:a:2\n", "AutoDetect=nvml\n" A01, -ENOTSUP, ""},
};
static const struct { const char *expression, *name; bool has; } names[] = {
    {"n1", "n1", true}, {"n1", "n11", false}, {"n11", "n1", false}, {"a,n1", "n1", true},
    {"n[1-4]", "n4", true}, {"n[1-4]", "n5", false}, {"n[1-4]", "n04", false}, {"n[1-4]", "n", false},
    {"n[01-16]", "n07", true}, {"n[01-16]", "n7", false}, {"n[08-16]", "n16", true}, {"n[8-16]", "n16", true},
    {"n[1,3]", "n3", true}, {"n[1,3]", "n2", false}, {"n[1,3],m[2]", "m2", true},
    {"r[0-1]n[0-3]", "r1n3", true}, {"r[0-1]n[0-3]", "r1n4", false}, {"r[1-12]3", "r123", true},
    {"n[1-4]-ib", "n2-ib", true}, {"n[1-4]-ib", "n2", false}, {"n[", "n1", false}, {"n[]", "n1", false}, {"", "n1", false},
    {"n[1-4]", "", false}, {"[1-4]", "3", true}, {"n[1-4", "n[1-4", true},
};
/* clang-format on */

/* slurm.conf's lines longer than GRES_LINE_MAX: who they are of decides. */
static void long_lines(void)
{
    static const struct {
        const char *name, *begin;
        int r;
    } lines[] = {
        {"a partition's", "PartitionName=main Nodes=", 0},
        {"a partition's that goes on", "PartitionName=main \\\n Nodes=", 0},
        {"another node's", "NodeName=n2 Gres=gpu:a:1 Features=", 0},
        {"the node's", "NodeName=n1 Gres=gpu:a:1 Features=", -EINVAL},
        {"all nodes'", "NodeName=DEFAULT Features=", -EINVAL},
        {"nodes' whose names do not end", "NodeName=", -EINVAL},
    };
    static char text[2 * GRES_LINE_MAX];
    uw_error err;

    for (size_t i = 0; i < n_elements(lines); i++) {
        struct gres_types t = {0};
        memset(text, 'x', sizeof text);
        memcpy(text, lines[i].begin, strlen(lines[i].begin));
        (void)snprintf(text + GRES_LINE_MAX + 100, 100,
                       "\nNodeName=n1 Gres=gpu:b:2,gpu:a:1\n");
        err.text[0] = '\0';
        is_int(gres_types(text, strlen(text), "n1", &t, &err), lines[i].r,
               "a long line, %s", lines[i].name);
        if (lines[i].r == 0)
            is_int(t.n, 2, "… is skipped");
        else
            ok(strstr(err.text, "line 1: more than 4096 bytes") != NULL,
               "… is refused: %s", err.text);
    }
}

static void types(void)
{
    uw_error err;

    for (size_t i = 0; i < n_elements(typed); i++) {
        struct gres_types t;
        seen[0] = err.text[0] = '\0';
        int r = gres_types(typed[i].conf, strlen(typed[i].conf), "n1", &t, &err);
        if (r == 0)
            r = gres_read(typed[i].text, strlen(typed[i].text), "n1", &t, on_device, NULL,
                          &err);
        is_int(r, typed[i].r, "%s: returns %d", typed[i].name, typed[i].r);
        is_str(seen, typed[i].seen, "which devices");
    }
}

int main(void)
{
    uw_error err;
    char lines[GRES_LINE_MAX + 10];

    for (size_t i = 0; i < n_elements(cases); i++) {
        seen[0] = err.text[0] = '\0';
        int r = gres_read(cases[i].text, strlen(cases[i].text), "n1", NULL, on_device,
                          NULL, &err);
        is_int(r, cases[i].r, "%s: returns %d", cases[i].name, cases[i].r);
        is_str(seen, cases[i].seen, "which devices");
        ok(r >= 0 || strncmp(err.text, "line 1: ", 8) == 0, "a fault names its line: %s",
           err.text);
    }
    for (size_t i = 0; i < n_elements(names); i++)
        ok(gres_names(names[i].expression, strlen(names[i].expression), names[i].name) ==
               names[i].has,
           "'%s' %s '%s'", names[i].expression, names[i].has ? "has" : "does not have",
           names[i].name);
    static const char two[] =
        "Name=gpu Type=a File=/dev/a\nName=gpu Type=b File=/dev/b\n";
    is_int(gres_read(two, sizeof two - 1, "n1", NULL, on_device, NULL, &err), -ENOTUNIQ,
           "two types");
    ok(strstr(err.text, "line 2: GPUs of several types") != NULL, "… are told: %s",
       err.text);
    memset(lines, ' ', sizeof lines);
    is_int(gres_read(lines, GRES_LINE_MAX - 1, "n1", NULL, on_device, NULL, &err), 0,
           "blanks are no long line");
    lines[sizeof lines - 1] = 'x';
    is_int(gres_read(lines, sizeof lines, "n1", NULL, on_device, NULL, &err), -EINVAL,
           "a line of more than %d bytes is refused", GRES_LINE_MAX);
    types();
    long_lines();
    return done();
}
