#!/usr/bin/python3
"""`underwatt run` and `underwatt measure` with a node of their own, as no daemon runs: who
asks sudo and how often, which processes are started, boards that are found by CMD's
processes, two commands at once, another's limit.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import uwtest

SIM = uwtest.program("underwatt-sim")
NOBODY = 65534
SPEED = 8
V100 = 300000


def train(boards, steps, phases="load=1s,train"):
    return [SIM, "train", "--workload", "resnet50", "--gpus", ",".join(map(str, boards)),
            "--steps", str(steps), "--phases", phases]


def train_until(boards, mark, code):
    """A shell that trains until that file is there, and exits with code."""
    return ["sh", "-c", " ".join(train(boards, 1000000)) + f" & while [ ! -e {mark} ]; do sleep 0.1; done; kill $!; wait; exit {code}"]


def nobody():
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


def children(pid):
    """Names of the processes below pid."""
    found = []
    try:
        below = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return found
    for p in below:
        try:
            found.append(pathlib.Path(f"/proc/{p}/comm").read_text().strip())
        except OSError:
            continue
        found += children(p)
    return found


def catches(pid, signo):
    """It has a handler for the signal."""
    try:
        caught = re.search(r"^SigCgt:\s*(\w+)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)
    except OSError:
        return False
    return bool(int(caught[1], 16) >> signo - 1 & 1)


def limits(node, boards):
    all_of = node.status()["boards"]
    return [all_of[i]["limit_mw"] for i in boards]


def report(node, name):
    return json.loads((pathlib.Path(node.tmp) / name).read_text())


# ---- sudo ----

class Open(uwtest.Node):
    """A node that another user can see."""

    def __enter__(self):
        self.home = tempfile.mkdtemp(prefix="uw-")
        os.chmod(self.home, 0o777)
        self.state = os.path.join(self.home, "world")
        super().__enter__()
        os.chmod(self.tmp, 0o777)
        return self

    def __exit__(self, *exc):
        super().__exit__(*exc)
        shutil.rmtree(self.home, ignore_errors=True)


class Theirs(Open):
    """A node of another user than root."""

    def sim(self, *args, **kw):
        if os.geteuid() == 0:
            kw["preexec_fn"] = nobody
        return super().sim(*args, **kw)


def real_library(node):
    """The simulated library without the symbol that tells so: its boards count as real."""
    path = pathlib.Path(node.state, "lib", "libreal.so")
    path.write_bytes(pathlib.Path(node.state, "lib", "libnvidia-ml.so.1").read_bytes()
                     .replace(b"\0uw_sim_info\0", b"\0uw_xim_info\0"))
    path.chmod(0o755)
    return path


def sudo_is_asked(t):
    """Once by `run`, before CMD; never by `measure`, which needs no right."""
    with Open(count=2) as node:
        boards = ["--boards", f"nvml={real_library(node)}"]
        tools = pathlib.Path(tempfile.mkdtemp(dir=node.home))
        tools.chmod(0o777)
        asked = tools / "asked"
        sudo = tools / "sudo"
        sudo.write_text(f"#!/bin/sh\necho \"$@\" >>{asked}\nexit 1\n")
        sudo.chmod(0o755)
        env = {"PATH": f"{tools}:{uwtest.programs_path()}"}
        who = {"preexec_fn": nobody} if os.geteuid() == 0 else {}
        times = lambda: len(asked.read_text().splitlines()) if asked.exists() else 0
        mark = tools / "started"
        for gpus in (["--gpus", "0"], []):
            p = node.run("underwatt", "measure", *boards, *gpus, "--", "sh", "-c", "sleep 0.5; exit 6", env=env, **who)
            t.ok(p.returncode == 6 and times() == 0, f"measure {' '.join(gpus)} never asks sudo", f"{p.returncode} {p.stderr}")
        for gpus in (["--gpus", "0"], []):
            before = times()
            p = node.run("underwatt", "run", "--cap", "200", *boards, *gpus, "--", "touch", mark, env=env, **who)
            t.ok(p.returncode == 125 and times() == before + 1 and not mark.exists() and "sudo" in p.stderr
                 and len(p.stderr.splitlines()) == 1, f"run {' '.join(gpus)} asks sudo once; refused: one line, 125, CMD not started",
                 f"{p.returncode} {times()} {p.stderr}")


# ---- measure reads alone ----

def reads_alone(t, node):
    p = node.popen("underwatt", "measure", "--gpus", "0", "--", "sh", "-c", "echo ready; read line; exit 4", stdin=subprocess.PIPE)
    p.stdout.readline()
    below = set()
    for _ in range(20):
        below |= set(children(p.pid))
        time.sleep(0.05)
    p.communicate("line\n", timeout=uwtest.PATIENCE)
    t.ok(p.returncode == 4 and "sh" in below and not any("actuator" in name for name in below) and not
         os.path.exists(os.path.join(node.state, "actuator")), "measure starts no actuator", f"{p.returncode} {below}")


class Counters(threading.Thread):
    """A processor's counter in a powercap tree of our own: 50 W, until it is stopped."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.folder = pathlib.Path(path, "intel-rapl:0")
        self.folder.mkdir(parents=True)
        (self.folder / "name").write_text("package-0\n")
        (self.folder / "max_energy_range_uj").write_text("262143328850\n")
        (self.folder / "energy_uj").write_text("%020d\n" % 5000000)
        self.ending = threading.Event()
        self.late_s = 0.0  # the longest time without a write: the counter is no older

    def run(self):
        began = written = time.monotonic()
        with open(self.folder / "energy_uj", "r+b", buffering=0) as f:
            while not self.ending.wait(0.01):
                now = time.monotonic()
                os.pwrite(f.fileno(), b"%020d\n" % int(5e6 + 50e6 * (now - began)), 0)
                self.late_s, written = max(self.late_s, time.monotonic() - written), now
        self.late_s = max(self.late_s, time.monotonic() - written)


def processors(t):
    """Real boards are reported with the energy of the processors beside them."""
    with Open(count=1) as node, tempfile.TemporaryDirectory(prefix="uw-") as folder:
        os.chmod(folder, 0o755)
        tree = os.path.join(folder, "powercap")
        who = {"preexec_fn": nobody} if os.geteuid() == 0 else {}  # root loads no library of a folder that is open to all
        counters = Counters(tree)
        counters.start()
        p = node.run("underwatt", "measure", "--boards", f"nvml={real_library(node)},rapl={tree}", "--gpus", "0", "--json", "-",
                     "-q", "--", "sleep", "2", **who)
        counters.ending.set()
        counters.join()
        d = json.loads(p.stdout) if p.returncode == 0 else {"cpu": []}
        cpu = d["cpu"][0] if d["cpu"] else {"energy_j": 0, "half_j": 0, "domain": ""}
        true = 50 * d.get("time_s", 0)
        t.ok(len(d["cpu"]) == 1 and "package-0" in cpu["domain"] and abs(cpu["energy_j"] - true) < 0.3 * true + 50 * counters.late_s,
             "the processors' energy beside the boards'", f"{d} {p.stderr} the counter was up to {counters.late_s:.2f} s old")


# ---- boards that nobody named ----

def found(t, node, i):
    """CMD's processes show where it computes; the cap comes then."""
    seen = pathlib.Path(node.tmp, f"found-{i}-seen")
    p = node.popen("underwatt", "run", "--cap", "200", "--window", "2s", "--json", os.path.join(node.tmp, f"found-{i}"), "--",
                   *train_until([i], seen, 9))
    low = uwtest.wait_for(lambda: limits(node, [i]) == [200000], step=0.1)
    seen.touch()
    _, err = p.communicate(timeout=90)
    d = report(node, f"found-{i}")
    t.ok(low and p.returncode == 9 and [b["index"] for b in d["boards"]] == [i], "boards found by CMD's processes are capped", f"{p.returncode} {d} {err}")
    t.ok(d["restored"] and d["held_mw"] == 200000 and d["steps"] > 0 and d["energy_j"] > 0 and limits(node, [i]) == [V100],
         "… with the report, and the original is back", f"{d} {err}")


# ---- two at once, and another's limit ----

def two(t, node, boards):
    """Each opens its own board alone: neither is in the other's way."""
    seen = pathlib.Path(node.tmp, "two-seen")
    runs = [node.popen("underwatt", "run", "--cap", "220", "--window", "2s", "--gpus", str(i), "--json",
                       os.path.join(node.tmp, f"two-{i}"), "--", *train_until([i], seen, 0)) for i in boards]
    both = uwtest.wait_for(lambda: limits(node, boards) == [220000] * 2, step=0.1)
    third = node.run("underwatt", "measure", "--gpus", ",".join(map(str, boards)), "--", "true")
    seen.touch()
    said = [p.communicate(timeout=90)[1] for p in runs]
    t.ok(both and third.returncode == 0 and [p.returncode for p in runs] == [0, 0], "two at once on two boards, and a measure of both",
         f"{said} {third.stderr}")
    t.ok(limits(node, boards) == [V100] * 2 and all(report(node, f"two-{i}")["restored"] for i in boards), "… both originals are back", said)


def yielded(t, node, i):
    """Somebody else sets the limit: no more caps, theirs stays, CMD runs on."""
    seen = pathlib.Path(node.tmp, "yielded-seen")
    p = node.popen("underwatt", "run", "--cap", "230", "--window", "2s", "--gpus", str(i), "--json", os.path.join(node.tmp, "yielded"), "--",
                   *train_until([i], seen, 12))
    low = uwtest.wait_for(lambda: limits(node, [i]) == [230000], step=0.1)
    node.fault(i, "limit", "210W")
    time.sleep(80 / SPEED)
    going = p.poll() is None and limits(node, [i]) == [210000]
    seen.touch()
    _, err = p.communicate(timeout=90)
    d = report(node, "yielded")
    t.ok(low and going and p.returncode == 12 and limits(node, [i]) == [210000], "another's limit stays, CMD runs on", f"{p.returncode} {err}")
    t.ok(f"the job is no longer capped: GPU {i}: another program" in err and "210000 mW" in err and "in 31536000 s" not in err and d["ended"] and d["ended_s"] > 0
         and d["restored"] is True, "… said when and why, and what is in force at the end", f"{d} {err}")
    node.fault(i, "limit", "300W")


# ---- signals ----

def before_cmd(t, node, i):
    """^C while the boards are opened and held: nothing is started, nothing is left."""
    mark = pathlib.Path(node.tmp) / "before"
    for wait_s in (0.0, 0.01, 0.03, 0.06, 0.1):
        p = node.popen("underwatt", "run", "--cap", "200", "--gpus", str(i), "--", "sh", "-c", f"touch {mark}; exec sleep 30")
        time.sleep(wait_s)
        p.send_signal(signal.SIGINT)
        try:
            _, err = p.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            p.kill()
            err = "it goes on"
        t.ok(p.returncode in (125, 130, -signal.SIGINT) and (not mark.exists() or p.returncode == 130), f"^C after {wait_s} s",
             f"{p.returncode} {mark.exists()} {err}")
        mark.unlink(missing_ok=True)
    t.ok(uwtest.wait_for(lambda: limits(node, [i]) == [V100]), "the original is in force")


def slow(seconds):
    """A driver that takes its time: a call that sets a limit is under way for so long."""
    return f"set_latency: {seconds} s\nboards: [{{model: v100, count: 2, limit: 250 W}}]"


def entries(node):
    """Boards whose originals the actuator has to restore."""
    return list(pathlib.Path(node.state, "actuator").glob("*.cap"))


def begun(node, *args, cmd, **kw):
    """`run --cap 200`, and the files of what it says, its report, and the mark that CMD makes as it starts."""
    files = pathlib.Path(tempfile.mkdtemp(dir=node.tmp))
    files.chmod(0o777)
    with open(files / "err", "w") as err:  # not a pipe: the actuator may keep it open for longer
        p = node.popen("underwatt", "run", "--cap", "200", *args, "--json", files / "json", "--", "sh", "-c",
                       f"touch {files / 'mark'}; {cmd}", stderr=err, stdout=subprocess.DEVNULL, **kw)
    return p, files


def while_it_writes(t):
    """A signal while the driver writes and CMD waits for it: CMD is not started, the original is in force, the board is free."""
    with Theirs(machine=slow(3)) as node:
        # An actuator of root lets CMD start before the driver has answered.
        who = {"preexec_fn": nobody} if os.geteuid() == 0 else {}
        for signo, gpus in ((signal.SIGINT, ["--gpus", "0"]), (signal.SIGTERM, ["--gpus", "1"]), (signal.SIGINT, [])):
            p, files = begun(node, *gpus, cmd="sleep 30", **who)
            writing = uwtest.wait_for(lambda: entries(node))
            p.send_signal(signo)
            code, err = p.wait(uwtest.PATIENCE), (files / "err").read_text()
            name = f"{signo.name} before CMD, {' '.join(gpus) or 'no board named'}"
            t.ok(writing and code == 125 and "interrupted" in err and len(err.splitlines()) == 1, f"{name}: one line, 125", f"{code} {err}")
            t.ok(uwtest.wait_for(lambda: not entries(node)) and limits(node, [0, 1]) == [250000] * 2
                 and not (files / "mark").exists(), "… CMD was not started, the originals are in force, nothing is left to restore",
                 f"{limits(node, [0, 1])} {entries(node)}")


def as_root(t, name):
    if os.geteuid() != 0:
        t.skip(name, "only an actuator of root lets CMD start while the driver writes")
    return os.geteuid() == 0


def hangs_at_end(t):
    """CMD ends while the driver hangs in the first write."""
    name = "the driver hangs in its first write as CMD ends"
    if not as_root(t, name):
        return
    with uwtest.Node(machine=slow(8)) as node:
        hung = pathlib.Path(node.tmp, "hung")
        p, files = begun(node, "--gpus", "0", cmd=f"while [ ! -e {hung} ]; do sleep 0.1; done; exit 9")
        started = uwtest.wait_for(lambda: (files / "mark").exists() or p.poll() is not None)
        node.fault(0, "hang")
        hung.touch()
        code, err = p.wait(uwtest.PATIENCE), (files / "err").read_text()
        d = json.loads((files / "json").read_text())
        t.ok(started and code == 9 and d["restored"] is False and "NOT RESTORED" in err and "could not be verified" in err
             and "is in force" not in err, f"{name}: nothing is said to be restored", f"{code} {d} {err}")
        node.fault(0, "release")
        t.ok(uwtest.wait_for(lambda: not entries(node)) and limits(node, [0]) == [250000], "… the actuator restores it later", f"{entries(node)}")


def late_refusal(t):
    """The write that was to prove the right to set limits fails after CMD has been started."""
    name = "the driver fails the first write late"
    if not as_root(t, name):
        return
    with uwtest.Node(machine=slow(8)) as node:
        seen = pathlib.Path(node.tmp, "seen")
        p, files = begun(node, cmd=f"while [ ! -e {seen} ]; do sleep 0.1; done; exit 9")
        started = uwtest.wait_for(lambda: (files / "mark").exists() or p.poll() is not None)
        node.fault(0, "lost")
        said = lambda: (files / "err").read_text()
        told = uwtest.wait_for(lambda: "CMD runs without a cap" in said() or p.poll() is not None)
        going = p.poll() is None
        node.fault(0, "found")
        seen.touch()
        code = p.wait(uwtest.PATIENCE)
        first = said().splitlines()[0] if said() else ""
        t.ok(started and told and going and code == 9 and first.startswith("underwatt: GPU 0: ") and "lost" in first and "GPU-" not in first,
             f"{name}: which board and why, CMD runs on", f"{code} {said()}")
        t.ok(uwtest.wait_for(lambda: not entries(node)) and limits(node, [0, 1]) == [250000] * 2,
             "… the originals are in force", f"{entries(node)}")


def cap_of_no_board(t, node):
    """A cap that no board takes is refused before CMD, although CMD's boards are not known; one that some take is not."""
    p = node.run("underwatt", "run", "--cap", "999", "--", "sh", "-c", "echo started")
    t.ok(p.returncode == 2 and p.stdout == "" and p.stderr.count("\n") == 1 and "'999'" in p.stderr and "150..300 W" in p.stderr,
         "999 W without --gpus: one line, CMD is not started", f"{p.returncode} {p.stdout} {p.stderr}")
    p = node.run("underwatt", "run", "--cap", "200", "-q", "--", "sh", "-c", "exit 4")
    t.equal(p.returncode, 4, "200 W without --gpus: CMD is started")


def while_counters_open(t):
    """^C while a processor's counter is opened, which hangs here: CMD is not started."""
    with Open(count=1) as node, tempfile.TemporaryDirectory(prefix="uw-") as folder:
        os.chmod(folder, 0o755)
        zone = pathlib.Path(folder, "powercap", "intel-rapl:0")
        zone.mkdir(parents=True)
        (zone / "name").write_text("package-0\n")
        (zone / "max_energy_range_uj").write_text("262143328850\n")
        os.mkfifo(zone / "energy_uj", 0o644)
        who = {"preexec_fn": nobody} if os.geteuid() == 0 else {}
        p = node.popen("underwatt", "measure", "--boards", f"nvml={real_library(node)},rapl={zone.parent}", "--gpus", "0", "--",
                       "sh", "-c", "echo started", **who)
        uwtest.wait_for(lambda: catches(p.pid, signal.SIGINT) or p.poll() is not None)
        time.sleep(1)
        opening = p.poll() is None
        p.send_signal(signal.SIGINT)
        try:
            out, err = p.communicate(timeout=uwtest.PATIENCE)
        except subprocess.TimeoutExpired:
            p.kill()
            out, err = "", "it goes on"
        t.ok(opening and p.returncode == 125 and out == "" and "interrupted" in err, "^C while counters are opened: CMD is not started",
             f"{opening} {p.returncode} {out} {err}")


def under_nohup(t, node, i):
    """A hangup that the caller ignores ends neither the command nor CMD."""
    p = node.popen("underwatt", "measure", "--gpus", str(i), "-q", "--", "sh", "-c", "echo ready; kill -HUP $$; sleep 1; exit 3",
                   preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    p.stdout.readline()
    p.send_signal(signal.SIGHUP)
    _, err = p.communicate(timeout=20)
    t.ok(p.returncode == 3, "an ignored hangup stays ignored, by CMD too", f"{p.returncode} {err}")


def unread(t, node, i):
    """Who reads the output has gone: the command goes on to CMD's end, and CMD finds SIGPIPE as it was."""
    read, write = os.pipe()
    os.close(read)
    for args in (["run", "--local", "--cap", "200"], ["measure"]):
        p = node.popen("underwatt", *args, "--gpus", str(i), "--", "sh", "-c", "grep SigIgn /proc/self/status; exit 3", stderr=write)
        out, _ = p.communicate(timeout=uwtest.PATIENCE)
        t.ok(p.returncode == 3 and not int(out.split()[1], 16) >> signal.SIGPIPE - 1 & 1,
             f"{args[0]}: a closed pipe in place of stderr does not end it", f"{p.returncode} {out}")
    os.close(write)
    t.equal(limits(node, [i]), [V100], "the original is in force")


def live(t, node, i):
    """The live line below "trying N W" has the state of that trial, not the one before; the clock is marked as simulated."""
    said = uwtest.on_terminal(node, "run", "--local", "--goal", "edp", "--window", "2s", "--gpus", str(i), "--", *train([i], 450), stream="stderr")
    trials = re.findall(r"underwatt: trying (\d+) W [^\r]*\r\n\r\033\[K(\d+ s \(simulated\)  [^\r]*)", said)
    t.ok(trials and all(f" {watts} W (window " in line for watts, line in trials), "the live line has the state of the trial", trials or said)
    results = re.findall(r"underwatt: \d+ W: .*", said)
    t.ok(results and not uwtest.too_wide("\n".join(r.rstrip() for r in results), 80), "a trial's result is one line", results)


def main():
    t = uwtest.Tap()
    with uwtest.Node(count=8, speed=SPEED) as node, uwtest.Node(count=2) as slow:
        def quiet():
            reads_alone(t, slow)
            before_cmd(t, slow, 1)
            under_nohup(t, slow, 0)
            cap_of_no_board(t, slow)
            unread(t, slow, 0)
        uwtest.together(lambda: sudo_is_asked(t), lambda: processors(t), lambda: while_counters_open(t), lambda: while_it_writes(t),
                        lambda: hangs_at_end(t), lambda: late_refusal(t), quiet, lambda: found(t, node, 1),
                        lambda: two(t, node, [3, 4]), lambda: yielded(t, node, 5),
                        lambda: live(t, node, 6))
    t.done()


if __name__ == "__main__":
    main()
