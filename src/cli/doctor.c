#include "cli/doctor.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "actuator/journal.h"
#include "base/units.h"

#define LIBRARY "libnvidia-ml.so.1"

/* ---- access to the boards ---- */

static void judge_no_library(const struct doctor_facts *f, struct findings *ret)
{
    if (f->named) {
        finding_add(ret, "library", FINDING_BAD, "%s", f->library_error.text);
        finding_remedy(ret, "name another with --boards or UNDERWATT_BOARDS, or unset "
                            "it for the system's own");
        return;
    }
    finding_add(ret, "library", FINDING_BAD, "%s: the NVIDIA driver is not installed",
                f->library_error.text);
    if (f->machine.container)
        finding_remedy(ret, "this is a container: start it with the boards, e.g. "
                            "docker run --gpus all … (NVIDIA Container Toolkit); to try "
                            "Underwatt without one: underwatt-sim start && underwatt-sim "
                            "exec -- underwatt list");
    else if (f->machine.pci_known && f->machine.nvidia_boards == 0)
        finding_remedy(ret, "no NVIDIA board is on this machine's bus; to try Underwatt "
                            "without one: underwatt-sim start && underwatt-sim exec -- "
                            "underwatt list");
    else
        finding_remedy(ret, "Debian: add non-free and non-free-firmware to the apt "
                            "sources, then sudo apt update && sudo apt install "
                            "nvidia-driver, and reboot");
}

static void judge_library(const struct doctor_facts *f, struct findings *ret)
{
    if (f->library_r == GPU_ABSENT || f->library_r == -ENOENT) {
        judge_no_library(f, ret);
        return;
    }
    if (f->library_r < 0) {
        finding_add(ret, "library", FINDING_BAD, "%s", f->library_error.text);
        finding_remedy(ret, "install driver version 450 or newer");
        return;
    }
    finding_add(ret, "library", FINDING_OK, "%s%s%s%s",
                f->about.library[0] ? f->about.library : LIBRARY,
                f->about.library_version[0] ? ", NVML " : "", f->about.library_version,
                f->about.recorded    ? ": recorded boards"
                : f->about.simulated ? ": simulated boards, figures are simulated"
                                     : "");
    if (f->survey && f->survey->about.failed[0])
        finding_add(ret, "library", FINDING_WARN, "%s", f->survey->about.failed);
}

static void judge_bus(const struct doctor_facts *f, struct findings *ret)
{
    const struct machine *m = &f->machine;

    if (!m->pci_known || f->about.simulated)
        return;
    if (m->nvidia_boards > 0)
        finding_add(ret, "bus", FINDING_OK, "%u NVIDIA board%s on the PCI bus",
                    m->nvidia_boards, m->nvidia_boards == 1 ? "" : "s");
    else if (!m->wsl)
        finding_add(ret, "bus", FINDING_NOTE, "no NVIDIA board on the PCI bus");
}

static void judge_no_driver(const struct doctor_facts *f, struct findings *ret)
{
    const struct machine *m = &f->machine;

    finding_add(ret, "driver", FINDING_BAD, "%s", f->survey->error.text);
    if (f->about.simulated)
        finding_remedy(ret, "the simulated world has stopped: underwatt-sim start");
    else if (m->nouveau)
        finding_remedy(ret, "the nouveau driver holds the boards: blacklist it (echo "
                            "blacklist nouveau | sudo tee /etc/modprobe.d/nouveau.conf; "
                            "sudo update-initramfs -u) and reboot");
    else if (m->container)
        finding_remedy(ret, "this is a container: load the driver on its host, and start "
                            "it with --gpus all");
    else if (m->module)
        finding_remedy(ret,
                       "library and kernel module are of different versions after an "
                       "upgrade: reboot, or sudo rmmod nvidia_uvm nvidia_drm "
                       "nvidia_modeset nvidia && sudo modprobe nvidia");
    else if (m->pci_known && m->nvidia_boards == 0)
        finding_remedy(ret,
                       "no NVIDIA board is on the bus: nothing to load a driver for; "
                       "without one: underwatt-sim start");
    else
        finding_remedy(ret, "sudo modprobe nvidia; where that fails: sudo dkms status, "
                            "sudo dmesg | grep -i nvidia");
}

static void judge_driver(const struct doctor_facts *f, struct findings *ret)
{
    const struct survey *s = f->survey;

    if (!s)
        return;
    if (s->r == 0)
        finding_add(ret, "driver", FINDING_OK, "version %s, %zu board%s",
                    s->about.driver_version[0] ? s->about.driver_version : "unknown",
                    s->n, s->n == 1 ? "" : "s");
    else if (s->r == GPU_ABSENT) {
        finding_add(ret, "driver", FINDING_BAD, "%s", s->error.text);
        finding_remedy(ret, "%s",
                       f->machine.container
                           ? "this container has no boards: docker run --gpus all"
                           : "find the reason: sudo dmesg | grep -iE "
                             "'nvidia|NVRM|xid'");
    } else if (s->r == -EPERM) {
        finding_add(ret, "driver", FINDING_BAD, "%s", s->error.text);
        finding_remedy(ret, "ls -l /dev/nvidia*: the user needs read and write there");
    } else if (s->r == -ENODEV) {
        judge_no_driver(f, ret);
    } else {
        finding_add(ret, "driver", FINDING_BAD, "%s", s->error.text);
        finding_remedy(ret, "sudo dmesg | grep -iE 'nvidia|NVRM|xid'; nvidia-smi shows "
                            "whether others see the boards");
    }
}

static void judge_doors(const struct doctor_facts *f, struct findings *ret)
{
    const struct machine *m = &f->machine;

    if (f->about.simulated || !m->module)
        return;
    if (m->nvidiactl == MACHINE_NODE_OPEN) {
        finding_add(ret, "devices", FINDING_OK, "/dev/nvidiactl is open to this user");
    } else if (m->nvidiactl == MACHINE_NODE_ABSENT) {
        finding_add(ret, "devices", FINDING_BAD,
                    "/dev/nvidiactl does not exist although the driver is loaded");
        finding_remedy(ret, "%s",
                       m->container ? "docker run --gpus all …"
                                    : "sudo nvidia-modprobe -c 0 -u");
    } else {
        finding_add(ret, "devices", FINDING_BAD, "/dev/nvidiactl is closed to this user");
        if (m->node_group[0])
            finding_remedy(ret, "sudo usermod -aG %s \"$USER\", then log in again",
                           m->node_group);
        else
            finding_remedy(ret,
                           "NVreg_DeviceFileMode in /etc/modprobe.d decides: ask the "
                           "administrator; for now: sudo chmod 666 /dev/nvidia*");
    }
}

void doctor_judge_access(const struct doctor_facts *f, struct findings *ret)
{
    judge_library(f, ret);
    judge_bus(f, ret);
    judge_driver(f, ret);
    judge_doors(f, ret);
}

/* ---- the boards ---- */

static const char *name_of(const struct survey_board *b)
{
    return b->info.name[0] ? b->info.name : "unknown";
}

static void judge_answers(const struct survey *s, struct findings *ret)
{
    if (survey_answering(s) == s->n)
        finding_add(ret, "boards", FINDING_OK, "all %zu answer", s->n);
    for (size_t i = 0; i < s->n; i++) {
        const struct survey_board *b = &s->board[i];
        if (b->answers)
            continue;
        finding_add(ret, "boards", FINDING_BAD, "board %u (%s): %s", b->info.index,
                    name_of(b), b->error.text);
        if (s->about.simulated)
            finding_remedy(ret,
                           "a fault of the simulated world: underwatt-sim fault %u "
                           "release, or found",
                           b->info.index);
        else
            finding_remedy(ret,
                           "sudo dmesg | grep -i xid shows why; then sudo nvidia-smi "
                           "--gpu-reset -i %u, or a reboot",
                           b->info.index);
    }
}

/* Proposes a sudoers line that lets a group set limits without a password: it allows one
 * program by its path with fixed arguments (docs/design/actuator.md).
 */
static void propose_sudoers(const struct doctor_facts *f, struct findings *ret)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
        "0123456789/._-"; /* other characters have a meaning in sudoers */

    if (f->actuator_unsafe.text[0])
        finding_remedy(ret, "no sudoers line would be safe: %s", f->actuator_unsafe.text);
    else if (f->actuator[0] && !f->actuator[strspn(f->actuator, plain)])
        finding_remedy(
            ret,
            "without one, for a group: sudo visudo -f /etc/sudoers.d/underwatt, "
            "and this line, word by word: " DOCTOR_SUDOERS,
            f->actuator);
}

static void judge_right(const struct doctor_facts *f, struct findings *ret)
{
    const struct survey *s = f->survey;
    size_t can = 0;

    for (size_t i = 0; i < s->n; i++) {
        const struct survey_board *b = &s->board[i];
        bool able = b->info.abilities & GPU_CAN_SET_LIMIT;
        can += able;
        if (!able && b->answers) {
            finding_add(ret, "caps", FINDING_WARN,
                        "board %u (%s) cannot be capped: its driver has no power limits "
                        "for it",
                        b->info.index, name_of(b));
            finding_remedy(ret, "measure and list work; run and sweep need other boards "
                                "(--gpus)");
        }
    }
    if (can == 0)
        return;
    if (s->about.simulated)
        finding_add(ret, "right", FINDING_NOTE,
                    "simulated boards: their world says who may set limits");
    else if (f->root)
        finding_add(ret, "right", FINDING_OK, "may set limits: runs as root");
    else if (f->machine.sudo) {
        finding_add(ret, "right", FINDING_NOTE,
                    "only root may set limits: run and sweep start their actuator "
                    "through sudo, which may ask for your password");
        propose_sudoers(f, ret);
    } else {
        finding_add(ret, "right", FINDING_BAD,
                    "only root may set limits, and sudo is not installed");
        finding_remedy(ret, "as root: apt install sudo && adduser USER sudo; measure and "
                            "list work without");
    }
}

static void judge_sensors(const struct survey *s, struct findings *ret)
{
    size_t good = 0;

    for (size_t i = 0; i < s->n; i++) {
        const struct survey_board *b = &s->board[i];
        if (!b->answers)
            continue;
        if (!(b->sample.has & GPU_HAS_POWER)) {
            finding_add(ret, "sensors", FINDING_BAD, "board %u (%s) reports no power",
                        b->info.index, name_of(b));
            finding_remedy(ret, "this board cannot be measured: leave it out (--gpus)");
        } else if (!(b->info.abilities & GPU_CAN_ENERGY)) {
            finding_add(ret, "sensors", FINDING_WARN,
                        "board %u (%s) has no energy counter: energy is summed up from "
                        "power samples, with a wider interval",
                        b->info.index, name_of(b));
        } else {
            good++;
        }
    }
    if (good > 0)
        finding_add(ret, "sensors", FINDING_OK, "power and energy counter on %zu board%s",
                    good, good == 1 ? "" : "s");
}

/* Compares the energy counter with the power readings: they are independent. */
static void judge_energy(const struct doctor_facts *f, struct findings *ret)
{
    const double tolerance = 0.05; /* of a check of seconds; the meter has its own */

    for (size_t i = 0; f->energy && i < f->survey->n; i++) {
        const struct doctor_energy *e = &f->energy[i];
        unsigned index = f->survey->board[i].info.index;
        if (!e->answered)
            continue;
        if (e->changes == 0) {
            finding_add(ret, "counter", FINDING_WARN,
                        "board %u: the energy counter stood still for %.1f s", index,
                        e->time_s);
            finding_remedy(ret, "the meter then sums up power samples; check again: "
                                "underwatt doctor");
        } else if (e->changes > 1 && e->power_j > 0) {
            double off = e->counter_j / e->power_j - 1;
            bool good = fabs(off) <= tolerance;
            finding_add(ret, "counter", good ? FINDING_OK : FINDING_WARN,
                        "board %u: energy counter %+.1f %% against power over %.1f s",
                        index, 100 * off, e->time_s);
            if (!good)
                finding_remedy(ret, "check again under a steady load; if it stays, the "
                                    "meter widens its interval");
        }
    }
}

/* Lists the boards with a mode, as "0, 2, 5". */
static size_t collect(const struct survey *s, bool (*is)(const struct survey_board *),
                      char *ret, size_t size)
{
    size_t n = 0, at = 0;

    ret[0] = '\0';
    for (size_t i = 0; i < s->n; i++) {
        if (!is(&s->board[i]))
            continue;
        n++;
        int k =
            snprintf(ret + at, size - at, "%s%u", at ? ", " : "", s->board[i].info.index);
        if (k > 0 && (size_t)k < size - at)
            at += (size_t)k;
    }
    return n;
}

static bool forgets(const struct survey_board *b)
{
    return b->info.has_persistence && !b->info.persistence;
}

static bool hides_persistence(const struct survey_board *b)
{
    return !b->info.has_persistence;
}

static bool is_sliced(const struct survey_board *b)
{
    return b->info.mig_enabled;
}

static void judge_modes(const struct survey *s, struct findings *ret)
{
    char which[200];

    if (collect(s, forgets, which, sizeof which) > 0) {
        finding_add(
            ret, "persistence", s->about.simulated ? FINDING_NOTE : FINDING_WARN,
            "off on board %s: the driver forgets limits when no program uses the board, "
            "and each start waits for it",
            which);
        if (!s->about.simulated)
            finding_remedy(ret, "sudo nvidia-smi -pm 1, or sudo systemctl enable --now "
                                "nvidia-persistenced");
    } else if (collect(s, hides_persistence, which, sizeof which) > 0) {
        finding_add(ret, "persistence", FINDING_NOTE,
                    "unknown on board %s, whose driver does not report it", which);
    } else {
        finding_add(ret, "persistence", FINDING_OK, "on for all boards");
    }
    if (collect(s, is_sliced, which, sizeof which) > 0) {
        finding_add(ret, "mig", FINDING_WARN,
                    "on board %s: power, energy and caps are the whole board's, not a "
                    "slice's",
                    which);
        finding_remedy(ret,
                       "sudo nvidia-smi -i N -mig 0 where one job uses the whole board");
    }
}

static void judge_limits(const struct survey *s, struct findings *ret)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct survey_board *b = &s->board[i];
        char cap[160];
        if (!b->answers || !b->has_limits || !(b->sample.has & GPU_HAS_ENFORCED) ||
            b->sample.enforced_mw == b->limits.default_mw)
            continue;
        survey_cap(b, cap, sizeof cap);
        bool stuck = b->held.entry && b->held.holder.stopped;
        bool left = survey_is_left(b);
        finding_add(ret, "limit", left || stuck ? FINDING_WARN : FINDING_NOTE,
                    "board %u has %g W (%s)", b->info.index,
                    w_of_mw(b->sample.enforced_mw), cap);
        if (left)
            finding_remedy(ret, "underwatt cap clear --gpus %u restores the original",
                           b->info.index);
        else if (stuck)
            finding_remedy(
                ret,
                "process %d (%s) is stopped: kill -CONT %d lets it restore the original",
                (int)b->held.holder.pid, b->held.holder.name, (int)b->held.holder.pid);
        else if (b->held.known && !b->held.gone)
            continue; /* its holder restores it */
        else if (!s->about.simulated)
            finding_remedy(ret,
                           "Underwatt uses it as the original and restores it; for the "
                           "default: sudo nvidia-smi -i %u -pl %g",
                           b->info.index, w_of_mw(b->limits.default_mw));
    }
}

static void judge_damaged(const struct survey *s, struct findings *ret)
{
    char dir[sizeof s->about.state_dir + 16];

    held_dir(s->about.simulated ? s->about.state_dir : NULL, dir, sizeof dir);
    for (size_t i = 0; i < s->n; i++) {
        const struct gpu_info *info = &s->board[i].info;
        if (!s->board[i].held.damaged)
            continue;
        finding_add(ret, "journal", FINDING_WARN,
                    "board %u: a damaged entry is kept aside as %s/%s" JOURNAL_DAMAGED
                    ": the original limit is unknown, and no process holds the board",
                    info->index, dir, info->uuid);
        finding_remedy(ret,
                       "set the right limit (nvidia-smi -i %u -pl …), then "
                       "remove that file",
                       info->index);
    }
}

/* Whether an actuator uses another library, thus other boards. */
static bool is_of_another_world(const struct doctor_facts *f,
                                const struct machine_writer *w)
{
    const struct gpu_about *about = f->survey ? &f->survey->about : &f->about;

    if (!w->library[0]) /* the system library */
        return about->simulated;
    return about->library[0] && strcmp(w->library, about->library) != 0;
}

static void judge_writers(const struct doctor_facts *f, struct findings *ret)
{
    size_t n = 0;

    for (size_t i = 0; i < f->machine.n_writers; i++) {
        const struct machine_writer *w = &f->machine.writer[i];
        bool ours = strncmp(w->name, "underwatt", 9) == 0;
        if (ours && is_of_another_world(f, w))
            continue;
        n++;
        if (ours) /* the kernel cuts the name to 15 characters */
            finding_add(ret, "writers", FINDING_NOTE,
                        "underwatt-actuator (pid %d), Underwatt's own, runs",
                        (int)w->pid);
        else
            finding_add(ret, "writers", FINDING_NOTE,
                        "%s (pid %d) runs and may set limits", w->name, (int)w->pid);
        if (!ours)
            finding_remedy(ret, "where it changes a limit while a job runs, Underwatt "
                                "yields: keep one of the two from setting limits");
    }
    if (n == 0)
        finding_add(ret, "writers", FINDING_OK,
                    "no other program that sets limits was found");
}

static void judge_functions(const struct doctor_facts *f, struct findings *ret)
{
    for (size_t i = 0; i < f->about.n_missing; i++) {
        finding_add(ret, "function", FINDING_WARN, "this driver's NVML has no %s",
                    f->about.missing[i]);
        finding_remedy(ret, "a newer driver may have it");
    }
}

/* ---- other checks ---- */

static void judge_rapl(const struct doctor_facts *f, struct findings *ret)
{
    const struct doctor_rapl *r = &f->rapl;

    if (r->r != 0)
        finding_add(ret, "cpu", FINDING_NOTE,
                    "no RAPL counters: energy of processor and memory stays unknown");
    else if (r->readable == r->n)
        finding_add(ret, "cpu", FINDING_OK, "%zu RAPL counters are readable", r->n);
    else
        finding_add(ret, "cpu", FINDING_NOTE, "%zu of %zu RAPL counters are readable. %s",
                    r->readable, r->n, r->error.text);
}

static void judge_clock(const struct doctor_facts *f, struct findings *ret)
{
    struct loop_clock world = {0, 1};
    const bool simulated = f->survey && f->survey->about.simulated;

    if (simulated && loop_clock_parse(f->survey->about.clock, &world, NULL) < 0)
        world.speed = 1;
    if (fabs(world.speed - f->loop_speed) > 1e-9) {
        finding_add(
            ret, "clock", FINDING_BAD,
            "the simulated world runs at speed %g, this command at %g: energy and "
            "time would be wrong",
            world.speed, f->loop_speed);
        finding_remedy(ret, "underwatt-sim exec -- underwatt …");
    } else if (simulated) {
        finding_add(ret, "clock", FINDING_OK, "simulated time, speed %g", world.speed);
    } else {
        finding_add(ret, "clock", FINDING_OK, "real time (CLOCK_BOOTTIME)");
    }
}

void doctor_judge(const struct doctor_facts *f, struct findings *ret)
{
    doctor_judge_access(f, ret);
    judge_functions(f, ret);
    if (f->survey && f->survey->r == 0) {
        judge_answers(f->survey, ret);
        judge_right(f, ret);
        judge_sensors(f->survey, ret);
        judge_energy(f, ret);
        judge_modes(f->survey, ret);
        judge_limits(f->survey, ret);
        judge_damaged(f->survey, ret);
        judge_writers(f, ret);
    }
    judge_rapl(f, ret);
    judge_clock(f, ret);
}
