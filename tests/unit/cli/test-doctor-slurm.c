/* Slurm's files in a folder, and what doctor says of them. */
#include "cli/doctor-slurm.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "cli/doctor-classes.h"
#include "tap.h"

static char place[] = "/tmp/uw-doctor-XXXXXX";
static const char *const names[] = {"slurm.conf", "plugstack.conf",     "gres.conf",
                                    "more.conf",  "spank_underwatt.so", "n1.pid",
                                    "n1.sock"};

#define GPUS "Name=gpu File=/dev/nvidia[0-7]\n"
#define NODE(gres) "PrologFlags=Contain\nNodeName=n[1-2] Gres=" gres "\n"
#define TWO "Name=gpu Type=a File=/dev/a\nName=gpu Type=b File=/dev/b\n"
#define PLUGIN "spank_underwatt.so socket=@/%n.sock\n"
#define TABLE "spank_underwatt.so times=/dev/null boards=@/more.conf\n"
#define ORDER "spank_underwatt.so socket=@/%n.sock gres=@/more.conf\n"

/* Text NULL: no such file; "@" is the folder. */
static const struct {
    const char *name, *files[n_elements(names)];
    const char *young; /* which file is younger than slurmd */
    const char *state, *says;
} cases[] = {
    {"no Slurm", {NULL}, NULL, NULL, ""},
    {"all is well",
     {"PrologFlags=X11\nNodeName=n1 Gres=gpu:8\n", "optional " PLUGIN, GPUS, NULL, "", "",
      ""},
     NULL,
     "ok",
     "names spank_underwatt.so; @/gres.conf has 8 GPUs of this node"},
    {"a line of another file",
     {"prologflags=contain\nNodeName=n1 Gres=gpu:8\n", "include @/m*.conf\n", GPUS,
      "optional @/" PLUGIN, "", "", ""},
     NULL,
     "ok",
     "has 8 GPUs"},
    {"an included slurm.conf",
     {"Include more.conf\n", "optional " PLUGIN, GPUS, NODE("gpu:8"), "", "", ""},
     NULL,
     "ok",
     "has 8 GPUs"},
    {"two types",
     {NODE("gpu:b:1,gpu:a:1"), "optional " PLUGIN, TWO, NULL, "", "", ""},
     NULL,
     "ok",
     "has 2 GPUs of this node"},
    {"two types, their order elsewhere",
     {"PrologFlags=Contain\ninclude more.conf\n", "optional " PLUGIN, TWO,
      "NodeName=n1 Gres=gpu:b:1,gpu:a:1\n", "", "", ""},
     NULL,
     "bad",
     "GPUs of several types, whose order is not known: line 2: Include is not followed: "
     "jobs "
     "are registered without their boards, and get no cap -> sudo slurmd -G"},
    {"fewer files than GPUs of a type",
     {NODE("gpu:b:2,gpu:a:1"), "optional " PLUGIN, TWO, NULL, "", "", ""},
     NULL,
     "warn",
     "Gres=gpu:b:2 of this node in @/slurm.conf: @/gres.conf has device files for 1 -> "
     "make types and counts"},
    {"fewer files than GPUs",
     {NODE("gpu:9"), "optional " PLUGIN, GPUS, NULL, "", "", ""},
     NULL,
     "warn",
     "Gres=gpu:9 of this node in @/slurm.conf: @/gres.conf has device files for 8"},
    {"more files than GPUs",
     {NODE("gpu:4"), "optional " PLUGIN, GPUS, NULL, "", "", ""},
     NULL,
     "warn",
     "has 8 GPUs of this node, Gres in @/slurm.conf has 4: jobs get no others"},
    {"another type",
     {NODE("gpu:v100:8"), "optional " PLUGIN, GPUS, NULL, "", "", ""},
     NULL,
     "warn",
     "Gres=gpu:v100:8 of this node in @/slurm.conf: @/gres.conf has device files for 0"},
    {"no Gres",
     {"PrologFlags=X11\nNodeName=n1\n", "optional " PLUGIN, GPUS, NULL, "", "", ""},
     NULL,
     "warn",
     "has 8 GPUs of this node, Gres in @/slurm.conf has 0"},
    {"a node that slurm.conf does not name",
     {"PrologFlags=X11\n", "optional " PLUGIN, GPUS, NULL, "", "", ""},
     NULL,
     "note",
     "no NodeName has n1: its GPUs are not compared with @/gres.conf"},
    {"MIG instances",
     {NODE("gpu:1"), "optional " PLUGIN,
      "Name=gpu MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap3\n", NULL, "", "",
      ""},
     NULL,
     "bad",
     "line 1: MIG instances: a cap is a whole board's, not an instance's: jobs are "
     "registered without their boards, and get no cap -> give jobs whole GPUs"},
    {"a login node",
     {"PrologFlags=X11\n", "optional " PLUGIN, NULL, NULL, "", NULL, NULL},
     NULL,
     "ok",
     "names spank_underwatt.so; no slurmd of node n1 runs here"},
    {"no plugstack.conf", {"", NULL}, NULL, "note", "does not name spank_underwatt.so"},
    {"another plugin",
     {"", "optional other.so\n#optional " PLUGIN},
     NULL,
     "note",
     "echo optional spank_underwatt.so | sudo tee -a @/plugstack.conf"},
    {"required",
     {"PrologFlags=X11\nNodeName=n1 Gres=gpu:8\n", "required " PLUGIN, GPUS, NULL, "", "",
      ""},
     NULL,
     "warn",
     "write optional"},
    {"no library",
     {"PrologFlags=X11\nNodeName=n1 Gres=gpu:8\n", "optional " PLUGIN, GPUS, NULL, NULL,
      "", ""},
     NULL,
     "bad",
     "apt install underwatt-slurm"},
    {"an old slurmd",
     {"PrologFlags=X11\nNodeName=n1 Gres=gpu:8\n", "optional " PLUGIN, GPUS, NULL, "", "",
      ""},
     "plugstack.conf",
     "warn",
     "restart slurmd"},
    {"a young gres.conf",
     {"PrologFlags=X11\nNodeName=n1 Gres=gpu:8\n", "optional " PLUGIN, GPUS, NULL, "", "",
      ""},
     "gres.conf",
     "bad",
     "@/gres.conf was changed after slurmd started: jobs are registered without their "
     "boards, and get no cap -> sudo systemctl restart slurmd"},
    {"a young slurm.conf",
     {NODE("gpu:8"), "optional " PLUGIN, GPUS, NULL, "", "", ""},
     "slurm.conf",
     "ok",
     "has 8 GPUs of this node"},
    {"a young slurm.conf, and two types",
     {NODE("gpu:b:1,gpu:a:1"), "optional " PLUGIN, TWO, NULL, "", "", ""},
     "slurm.conf",
     "bad",
     "@/slurm.conf was changed after slurmd started"},
    {"a young file of the argument",
     {NODE("gpu:8"), "optional " ORDER, TWO, GPUS, "", "", ""},
     "more.conf",
     "ok",
     "@/more.conf has 8 GPUs of this node"},
    {"a young gres.conf beside the argument's",
     {NODE("gpu:8"), "optional " ORDER, TWO, GPUS, "", "", ""},
     "gres.conf",
     "bad",
     "@/gres.conf was changed after slurmd started"},
    {"a young file of the argument, without gres.conf",
     {NODE("gpu:8"), "optional " ORDER, NULL, GPUS, "", "", ""},
     "more.conf",
     "bad",
     "@/more.conf was changed after slurmd started"},
    {"no daemon",
     {"PrologFlags=X11\nNodeName=n1 Gres=gpu:8\n", "optional " PLUGIN, GPUS, NULL, "", "",
      NULL},
     NULL,
     "warn",
     "socket=@/n1.sock does not exist"},
    {"an argument that is misspelt",
     {NODE("gpu:8"), "optional spank_underwatt.so borads=@/more.conf\n", GPUS, NULL, "",
      "", ""},
     NULL,
     "warn",
     "plugstack.conf: the plugin has no argument 'borads=@/more.conf', and ignores it -> "
     "write socket=PATH, boards=FILE"},
    {"an argument without a value",
     {NODE("gpu:8"), "optional spank_underwatt.so boards=\n", GPUS, NULL, "", "", ""},
     NULL,
     "warn",
     "no argument 'boards='"},
    {"a table",
     {NODE("gpu:8"), "optional " TABLE, GPUS, "board v100 150 W 300 W\n", "", "", ""},
     NULL,
     "ok",
     "has 8 GPUs"},
    {"no table",
     {NODE("gpu:8"), "optional " TABLE, GPUS, NULL, "", "", ""},
     NULL,
     "warn",
     "@/more.conf: No such file or directory: caps and classes of jobs submitted "
     "here are not checked -> write a line for each kind of board"},
    {"a wrong table",
     {NODE("gpu:8"), "optional " TABLE, GPUS, "board v100 300 W\n", "", "", ""},
     NULL,
     "warn",
     "@/more.conf: line 1: a board has a name"},
    {"late prologs",
     {"PrologFlags=Alloc,Serial\nNodeName=n1 Gres=gpu:8\n", "optional " PLUGIN, GPUS,
      NULL, "", "", ""},
     NULL,
     "note",
     "PrologFlags=Contain in @/slurm.conf"},
    {"detected GPUs",
     {"PrologFlags=X11\n", "optional " PLUGIN, "AutoDetect=nvml\n", NULL, "", "", ""},
     NULL,
     "bad",
     "line 1: AutoDetect=nvml leaves the order of the GPUs open: jobs are registered "
     "without their boards, and get no cap -> write the GPUs that sudo slurmd -G lists"},
    {"prologs in the job",
     {"PrologFlags=Serial,runinjob\nNodeName=n1 Gres=gpu:8\n", "optional " PLUGIN, GPUS,
      NULL, "", "", ""},
     NULL,
     "ok",
     "has 8 GPUs"},
    {"another node's GPUs",
     {"PrologFlags=X11\n", "optional " PLUGIN, "NodeName=n2 " GPUS, NULL, "", "", ""},
     NULL,
     "note",
     "has no GPU for this node"},
};

/* A text with the folder for "@". */
static void put_in(const char *text, char *ret, size_t size)
{
    size_t used = 0;

    ret[0] = '\0';
    for (; *text && used < size - 1; text++) {
        int n = *text == '@' ? snprintf(ret + used, size - used, "%s", place)
                             : snprintf(ret + used, size - used, "%c", *text);
        used += (size_t)n;
    }
}

static void write_files(size_t i)
{
    char path[200], text[1000];

    for (size_t k = 0; k < n_elements(names); k++) {
        (void)snprintf(path, sizeof path, "%s/%s", place, names[k]);
        (void)unlink(path);
        if (!cases[i].files[k])
            continue;
        char conf[1200];
        put_in(cases[i].files[k], text, sizeof text);
        (void)snprintf(conf, sizeof conf, "%s%s%s%s%s%s", text,
                       k ? "" : "PluginDir=", k ? "" : place,
                       k ? "" : "\nSlurmdPidFile=", k ? "" : place, k ? "" : "/%n.pid\n");
        FILE *f = fopen(path, "we");
        ok(f && fputs(conf, f) >= 0 && fclose(f) == 0, "%s: %s", cases[i].name, names[k]);
        /* In the future: the time of the change itself is now. */
        struct timespec when[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
        if (strcmp(names[k], "n1.pid") == 0)
            when[0].tv_sec = when[1].tv_sec = 2000000000;
        if (cases[i].young && strcmp(names[k], cases[i].young) == 0)
            when[0].tv_sec = when[1].tv_sec = 2000000100;
        ok(utimensat(AT_FDCWD, path, when, 0) == 0, "… and its time");
    }
}

/* The table's boards beside one of the node. */
static void boards(struct findings *found)
{
    static struct doctor_slurm s = {
        .listed = true, .boards = "/gpu-boards", .table = {.n_boards = 2}};
    const struct gpu_info info = {.index = 3};
    const struct gpu_limits v100 = {.min_mw = 150000, .max_mw = 300000};

    s.table.board[0].min_mw = 200000;
    s.table.board[0].max_mw = 700000;
    s.table.board[1].min_mw = 100000;
    s.table.board[1].max_mw = 300000;
    *found = (struct findings){0};
    doctor_slurm_judge_board(&s, &info, &v100, found);
    is_int(found->n, 1, "a table without the node's board");
    ok(strstr(found->f[0].text, "/gpu-boards has no board within 150 W to 300 W, the "
                                "limits of GPU 3"),
       "… %s", found->f[0].text);
    is_str(found->f[0].remedy, "write there: board NAME 150 W 300 W", "… what to write");
    *found = (struct findings){0};
    s.table.board[1].min_mw = 160000;
    doctor_slurm_judge_board(&s, &info, &v100, found);
    is_int(found->n, 0, "one that lets less through than the board");
    s.table.n_boards = 0;
    doctor_slurm_judge_board(&s, &info, &v100, found);
    is_int(found->n, 0, "no boards at all");
}

/* The table's classes beside the daemon's. */
static void classes(struct findings *found)
{
    static struct doctor_slurm s = {
        .listed = true,
        .boards = "/gpu-boards",
        .table = {.n_classes = 3, .cls = {"default", "training", "old"}}};
    static struct doctor_classes c = {
        .told = true, .n = 2, .name = {"default", "training"}, .file = "/p.yaml"};

    *found = (struct findings){0};
    doctor_classes_judge(&s, &c, found);
    is_int(found->n, 1, "a class that nobody knows");
    is_int(found->f[0].state, FINDING_WARN, "… is a warning");
    ok(strstr(found->f[0].text, "class 'old' of /gpu-boards is in neither"), "… %s",
       found->f[0].text);
    ok(strstr(found->f[0].remedy, "add '\"old\": {}' to caps.classes"),
       "… without a policy: %s", found->f[0].remedy);
    c.in_force = true;
    *found = (struct findings){0};
    doctor_classes_judge(&s, &c, found);
    ok(strstr(found->f[0].remedy, "underwatt.class: \"old\"}}}' to classes in /p.yaml;"),
       "… with one: %s", found->f[0].remedy);
    c.refused = true;
    *found = (struct findings){0};
    doctor_classes_judge(&s, &c, found);
    ok(strstr(found->f[0].remedy, "underwatt policy check /p.yaml;"), "… refused: %s",
       found->f[0].remedy);
    c.told = false;
    *found = (struct findings){0};
    doctor_classes_judge(&s, &c, found);
    is_int(found->n, 0, "nobody told");
    c.told = true;
    s.table.n_classes = 0;
    doctor_classes_judge(&s, &c, found);
    is_int(found->n, 0, "a table without classes");
}

int main(void)
{
    static struct findings found;
    static struct doctor_slurm s;
    char conf[200], want[300], text[700];

    if (!mkdtemp(place))
        return 1;
    (void)snprintf(conf, sizeof conf, "%s/slurm.conf", place);
    for (size_t i = 0; i < n_elements(cases); i++) {
        write_files(i);
        found = (struct findings){0};
        doctor_slurm_read(conf, "n1", &s);
        doctor_slurm_judge(&s, &found);
        is_int(found.n, cases[i].state ? 1 : 0, "%s: findings", cases[i].name);
        if (found.n == 0 || !cases[i].state)
            continue;
        put_in(cases[i].says, want, sizeof want);
        (void)snprintf(text, sizeof text, "%s -> %s", found.f[0].text, found.f[0].remedy);
        is_str(names_word(NAMES_FINDING, found.f[0].state), cases[i].state,
               cases[i].name);
        ok(strstr(text, want) != NULL, "%s: '%s' has '%s'", cases[i].name, text, want);
    }
    boards(&found);
    classes(&found);
    for (size_t k = 0; k < n_elements(names); k++) {
        char path[200];
        (void)snprintf(path, sizeof path, "%s/%s", place, names[k]);
        (void)unlink(path);
    }
    is_int(rmdir(place), 0, "nothing else was written");
    return done();
}
