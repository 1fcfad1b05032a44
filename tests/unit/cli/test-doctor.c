/* What doctor says of which facts, as a table: a finding and a word of its remedy. */
#include "cli/doctor.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/auto.h"
#include "tap.h"

enum { NO_PID = INT32_MAX };

struct world { /* what the cases change */
    struct machine machine;
    bool root;
    const char *named;
    int library_r;
    const char *library_text;
    bool simulated;
    int r; /* of opening */
    const char *text;
    struct survey_board board[2];
    size_t n;
    struct doctor_energy energy[2];
    double speed;
    const char *actuator, *unsafe;
};

#define GOOD                                                                      \
    {                                                                             \
        .info = {.name = "V100",                                                  \
                 .uuid = "GPU-0",                                                 \
                 .abilities = GPU_CAN_ENERGY | GPU_CAN_LIMIT | GPU_CAN_SET_LIMIT, \
                 .has_persistence = true,                                         \
                 .persistence = true},                                            \
        .answers = true, .has_limits = true, .limits = {150000, 300000, 300000},  \
        .sample = {.has = GPU_HAS_POWER | GPU_HAS_ENERGY | GPU_HAS_ENFORCED,      \
                   .enforced_mw = 300000},                                        \
    }

/* clang-format off */
static const struct {
    const char *name;
    struct world w;
    const char *what; enum finding_state state; /* this finding … */
    const char *text, *remedy;                  /* … with these words in it */
} cases[] = {
    {"no library", {.library_r = GPU_ABSENT, .library_text = "cannot load X", .machine = {.pci_known = true, .nvidia_boards = 1}},
     "library", FINDING_BAD, "driver is not installed", "apt install nvidia-driver"},
    {"no library, no board", {.library_r = GPU_ABSENT, .library_text = "x", .machine = {.pci_known = true}},
     "library", FINDING_BAD, "not installed", "underwatt-sim start"},
    {"no library in a container", {.library_r = GPU_ABSENT, .library_text = "x", .machine = {.container = true}},
     "library", FINDING_BAD, "not installed", "docker run --gpus all"},
    {"named library is missing", {.library_r = -ENOENT, .named = "/x", .library_text = "cannot load /x"},
     "library", FINDING_BAD, "cannot load /x", "--boards or UNDERWATT_BOARDS"},
    {"too old a library", {.library_r = -ENOTSUP, .library_text = "nvmlInit_v2 is missing"},
     "library", FINDING_BAD, "is missing", "450 or newer"},
    {"driver not loaded", {.r = -ENODEV, .text = "Driver Not Loaded", .machine = {.pci_known = true, .nvidia_boards = 1}},
     "driver", FINDING_BAD, "Not Loaded", "sudo modprobe nvidia"},
    {"driver not loaded, no board", {.r = -ENODEV, .text = "Driver Not Loaded", .machine = {.pci_known = true}},
     "driver", FINDING_BAD, "Not Loaded", "nothing to load a driver for"},
    {"driver not loaded in a container", {.r = -ENODEV, .text = "x", .machine = {.container = true}},
     "driver", FINDING_BAD, "x", "on its host"},
    {"nouveau", {.r = -ENODEV, .text = "x", .machine = {.nouveau = true}},
     "driver", FINDING_BAD, "x", "blacklist nouveau"},
    {"versions differ", {.r = -ENODEV, .text = "mismatch", .machine = {.module = true}},
     "driver", FINDING_BAD, "mismatch", "reboot"},
    {"world has stopped", {.r = -ENODEV, .text = "x", .simulated = true},
     "driver", FINDING_BAD, "x", "underwatt-sim start"},
    {"no board behind the driver", {.r = GPU_ABSENT, .text = "shows no board"},
     "driver", FINDING_BAD, "no board", "dmesg"},
    {"no permission", {.r = -EPERM, .text = "Insufficient Permissions"},
     "driver", FINDING_BAD, "Insufficient", "/dev/nvidia"},
    {"another fault", {.r = -EIO, .text = "Unknown Error"}, "driver", FINDING_BAD, "Unknown", "nvidia-smi"},
    {"door closed", {.machine = {.module = true, .nvidiactl = MACHINE_NODE_CLOSED}, .n = 1, .board = {GOOD}},
     "devices", FINDING_BAD, "closed", "NVreg_DeviceFileMode"},
    {"door closed, for a group", {.machine = {.module = true, .nvidiactl = MACHINE_NODE_CLOSED, .node_group = "video"}},
     "devices", FINDING_BAD, "closed", "usermod -aG video"},
    {"no door", {.machine = {.module = true}}, "devices", FINDING_BAD, "does not exist", "nvidia-modprobe"},
    {"door open", {.machine = {.module = true, .nvidiactl = MACHINE_NODE_OPEN}}, "devices", FINDING_OK, "open", ""},
    {"all answer", {.n = 2, .board = {GOOD, GOOD}}, "boards", FINDING_OK, "all 2", ""},
    {"one is silent", {.n = 2, .board = {GOOD, {.info = {.index = 1}, .error = {"no answer"}}}},
     "boards", FINDING_BAD, "board 1 (unknown): no answer", "--gpu-reset -i 1"},
    {"one is silent, simulated", {.n = 2, .simulated = true, .board = {GOOD, {.info = {.index = 1}, .error = {"no answer"}}}},
     "boards", FINDING_BAD, "no answer", "underwatt-sim fault 1 release"},
    {"root", {.n = 1, .board = {GOOD}, .root = true}, "right", FINDING_OK, "root", ""},
    {"a user with sudo", {.n = 1, .board = {GOOD}, .machine = {.sudo = true}}, "right", FINDING_NOTE, "through sudo", ""},
    {"a user with sudo, and the actuator", {.n = 1, .board = {GOOD}, .machine = {.sudo = true}, .actuator = "/usr/bin/underwatt-actuator"},
     "right", FINDING_NOTE, "through sudo", ": %underwatt-admin ALL = (root) NOPASSWD: /usr/bin/underwatt-actuator --local"},
    {"an actuator that others could change", {.n = 1, .board = {GOOD}, .machine = {.sudo = true}, .unsafe = "/home/x belongs to user 7"},
     "right", FINDING_NOTE, "through sudo", "no sudoers line would be safe: /home/x belongs"},
    {"an actuator with a wildcard in its path", {.n = 1, .board = {GOOD}, .machine = {.sudo = true}, .actuator = "/opt/a*/underwatt-actuator"},
     "right", FINDING_NOTE, "through sudo", ""},
    {"a user without sudo", {.n = 1, .board = {GOOD}}, "right", FINDING_BAD, "only root may", "apt install sudo"},
    {"cannot be capped", {.n = 1, .board = {{.answers = true, .info = {.name = "GT 710"}}}},
     "caps", FINDING_WARN, "GT 710", "--gpus"},
    {"no power", {.n = 1, .board = {{.answers = true}}}, "sensors", FINDING_BAD, "reports no power", "--gpus"},
    {"no counter", {.n = 1, .board = {{.answers = true, .sample = {.has = GPU_HAS_POWER}}}},
     "sensors", FINDING_WARN, "no energy counter", ""},
    {"sensors", {.n = 2, .board = {GOOD, GOOD}}, "sensors", FINDING_OK, "2 boards", ""},
    {"counter agrees", {.n = 1, .board = {GOOD}, .energy = {{true, 9, 101, 100, 2}}},
     "counter", FINDING_OK, "+1.0 %", ""},
    {"counter differs", {.n = 1, .board = {GOOD}, .energy = {{true, 9, 80, 100, 2}}},
     "counter", FINDING_WARN, "-20.0 %", "steady load"},
    {"counter stands", {.n = 1, .board = {GOOD}, .energy = {{true, 0, 0, 0, 2.5}}},
     "counter", FINDING_WARN, "stood still for 2.5 s", "power samples"},
    {"persistence off", {.n = 1, .board = {{.info = {.index = 3, .has_persistence = true}}}},
     "persistence", FINDING_WARN, "board 3", "nvidia-smi -pm 1"},
    {"persistence on", {.n = 1, .board = {GOOD}}, "persistence", FINDING_OK, "on for all boards", ""},
    {"persistence unknown", {.n = 2, .board = {GOOD, {.info = {.index = 1}, .answers = true}}},
     "persistence", FINDING_NOTE, "unknown on board 1, whose driver does not report it", ""},
    {"no other writer", {.n = 1, .board = {GOOD}}, "writers", FINDING_OK, "no other program that sets limits was found", ""},
    {"MIG", {.n = 1, .board = {{.info = {.mig_enabled = true}}}}, "mig", FINDING_WARN, "whole board", "-mig 0"},
    {"a limit is set", {.n = 1, .board = {{.info = {.index = 0}, .answers = true, .has_limits = true,
      .limits = {150000, 300000, 300000}, .sample = {.has = GPU_HAS_ENFORCED, .enforced_mw = 250000}}}},
     "limit", FINDING_NOTE, "250 W", "-pl 300"},
    {"a limit that is held", {.n = 1, .board = {{.answers = true, .has_limits = true, .held = {.known = true, .holder = {.locked = true, .pid = NO_PID, .name = "underwatt-actuator"}, .original_mw = 300000},
      .limits = {150000, 300000, 300000}, .sample = {.has = GPU_HAS_ENFORCED, .enforced_mw = 250000}}}},
     "limit", FINDING_NOTE, "(held by underwatt-actuator (pid 2147483647), original 300 W)", ""},
    {"a limit that was left behind", {.n = 1, .board = {{.info = {.index = 2}, .answers = true, .has_limits = true, .held = {.known = true, .pid = 4711, .gone = true, .original_mw = 300000},
      .limits = {150000, 300000, 300000}, .sample = {.has = GPU_HAS_ENFORCED, .enforced_mw = 250000}}}},
     "limit", FINDING_WARN, "its process has ended", "underwatt cap clear --gpus 2"},
    {"an entry that was left behind at the original", {.n = 1, .board = {{.info = {.index = 2}, .answers = true, .has_limits = true, .held = {.known = true, .pid = 4711, .gone = true, .original_mw = 250000},
      .limits = {150000, 300000, 300000}, .sample = {.has = GPU_HAS_ENFORCED, .enforced_mw = 250000}}}},
     "limit", FINDING_NOTE, "board 2 has 250 W (set; default 300 W)", "-pl 300"},
    {"a limit whose actuator is stopped", {.n = 1, .board = {{.info = {.index = 2}, .answers = true, .has_limits = true, .held = {.entry = true, .known = true, .pid = NO_PID, .holder = {.locked = true, .pid = NO_PID, .name = "underwatt-actuator", .stopped = true}, .original_mw = 300000},
      .limits = {150000, 300000, 300000}, .sample = {.has = GPU_HAS_ENFORCED, .enforced_mw = 250000}}}},
     "limit", FINDING_WARN, "underwatt-actuator (pid 2147483647, stopped), original 300 W)", "kill -CONT 2147483647"},
    {"a damaged entry", {.n = 1, .board = {{.info = {.index = 2, .uuid = "GPU-2"}, .answers = true, .held = {.damaged = true}}}},
     "journal", FINDING_WARN, "GPU-2.cap.damaged", "nvidia-smi -i 2"},
    {"the actuator of a world", {.n = 1, .board = {GOOD}, .simulated = true, .machine = {.n_writers = 1, .writer = {{78, "underwatt-actua", "/other/lib.so"}}}},
     "writers", FINDING_OK, "no other program", ""},
    {"another writer", {.n = 1, .board = {GOOD}, .machine = {.n_writers = 1, .writer = {{77, "zeusd", ""}}}},
     "writers", FINDING_NOTE, "zeusd (pid 77)", "yields"},
    {"our own writer", {.n = 1, .board = {GOOD}, .machine = {.n_writers = 1, .writer = {{78, "underwatt-actua", ""}}}},
     "writers", FINDING_NOTE, "underwatt-actuator (pid 78), Underwatt's own", ""},
    {"simulated right", {.n = 1, .simulated = true, .board = {{.info = {.abilities = GPU_CAN_SET_LIMIT}, .answers = true}}},
     "right", FINDING_NOTE, "their world says", ""},
    {"no writer", {.n = 1, .board = {GOOD}}, "writers", FINDING_OK, "no other", ""},
    {"clock", {.n = 1, .board = {GOOD}}, "clock", FINDING_OK, "real time", ""},
    {"another clock", {.n = 1, .simulated = true, .board = {GOOD}, .speed = 20},
     "clock", FINDING_BAD, "at 20", "underwatt-sim exec"},
};
/* clang-format on */

static const struct finding *find(const struct findings *in, const char *what)
{
    for (size_t i = 0; i < in->n; i++) {
        if (strcmp(in->f[i].what, what) == 0)
            return &in->f[i];
    }
    return NULL;
}

static void judge(const struct world *w, struct findings *ret)
{
    struct survey survey = {.r = w->r, .n = w->n};
    struct survey_board boards[2];
    struct doctor_facts f = {
        .machine = w->machine,
        .root = w->root,
        .named = w->named,
        .library_r = w->library_r,
        .about = {.simulated = w->simulated},
        .survey = w->library_r == 0 ? &survey : NULL,
        .energy = w->energy,
        .rapl = {.r = GPU_ABSENT},
        .loop_speed = w->speed > 0 ? w->speed : 1,
    };
    if (w->actuator)
        (void)snprintf(f.actuator, sizeof f.actuator, "%s", w->actuator);
    if (w->unsafe)
        (void)snprintf(f.actuator_unsafe.text, sizeof f.actuator_unsafe.text, "%s",
                       w->unsafe);
    memcpy(boards, w->board, sizeof boards);
    survey.board = boards;
    survey.about.simulated = w->simulated;
    struct gpu_about *about = &survey.about;
    (void)snprintf(about->library, sizeof about->library, "/our/lib.so");
    (void)snprintf(survey.about.clock, sizeof survey.about.clock, "0:1");
    if (w->text)
        (void)snprintf(survey.error.text, sizeof survey.error.text, "%s", w->text);
    if (w->library_text)
        (void)snprintf(f.library_error.text, sizeof f.library_error.text, "%s",
                       w->library_text);
    *ret = (struct findings){0};
    doctor_judge(&f, ret);
}

int main(void)
{
    static struct findings found;

    for (size_t i = 0; i < n_elements(cases); i++) {
        judge(&cases[i].w, &found);
        const struct finding *f = find(&found, cases[i].what);
        ok(f && f->state == cases[i].state && strstr(f->text, cases[i].text) &&
               strstr(f->remedy, cases[i].remedy) &&
               (cases[i].remedy[0] || f->state == FINDING_OK || !f->remedy[0]),
           "%s", cases[i].name);
        if (f)
            printf("# %s -> %s\n", f->text, f->remedy);
        bool bad_has_remedy = true;
        for (size_t k = 0; k < found.n; k++)
            bad_has_remedy = bad_has_remedy &&
                             (found.f[k].state != FINDING_BAD || found.f[k].remedy[0]);
        ok(bad_has_remedy, "%s: whatever is bad says what to do", cases[i].name);
    }
    found.n = FINDINGS_MAX;
    finding_add(&found, "x", FINDING_BAD, "y");
    is_int(found.n, FINDINGS_MAX, "findings have a bound");
    return done();
}
