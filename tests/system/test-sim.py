#!/usr/bin/python3
"""underwatt-sim: start, status, exec, train, fault, reset, stop, as its users see them."""
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import time

import uwtest

t = uwtest.Tap()
HERE = pathlib.Path(__file__).resolve().parent
NVMLC = ["/usr/bin/python3", str(HERE / "nvmlc.py")]
SIM = uwtest.program("underwatt-sim")


def sim(*args):
    return subprocess.run([SIM, *map(str, args)], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL)


def calls(node, *words, **kw):
    p = node.run(*NVMLC, *words, **kw)
    if p.returncode:
        raise RuntimeError(p.stderr)
    return [line.split(" ", 1) for line in p.stdout.splitlines()]


def numbers(node, *words, **kw):
    return [(int(r), eval(v)) for r, v in calls(node, *words, **kw)]


def bad_input(tmp):
    machine = tmp / "broken.yaml"
    machine.write_text("name: x\nboards:\n  - model: v100\n    colour: red\n")
    for args, says in [
            (["start", "--board", "v1000"], "'v1000'"),
            (["start", "--count", "0"], "outside 1..64"),
            (["start", "--speed", "0"], "outside 0.01..1000"),
            (["start", "--count", "x"], "--count: 'x' is not a whole number"),
            (["start", "--speed", "x"], "--speed: 'x' is not a number"),
            (["start", "--speed"], "a value is missing"),
            (["start", "--colour", "red"], "start: unknown option '--colour': one of --board"),
            (["start", "--bord", "v100"], "start: unknown option '--bord': did you mean '--board'?: one of "),
            (["strat"], "unknown command 'strat': did you mean 'start'?: one of "),
            (["start", "--may-set", "me"], "'me' is none of"),
            (["start", "--machine", str(machine)], f"{machine}:4: "),
            (["start", "--machine", str(tmp / "none.yaml")], "none.yaml"),
            (["start", "--machine", str(machine), "--count", "2"], "--machine cannot be combined"),
            (["frobnicate"], "'frobnicate': one of"),
            (["train", "--workload"], "a value is missing"),
            (["train", "--phases", "sleep"], "'sleep' is none of"),
            (["fault", "1", "burn"], "'burn' is none of"),
            (["exec"], "the program is missing"),
            (["status", "--xml"], "--xml")]:
        p = sim("--state", tmp / "w", *args)
        t.ok(p.returncode == 2 and says in p.stderr and len(p.stderr.splitlines()) == 1
             and not p.stdout, f"{' '.join(args[:3])}: 2, '{says.strip()}'", f"{p.returncode} {p.stderr}{p.stdout}")
        t.ok(not (tmp / "w").exists(), "and nothing was made")
    for name in ("start", "status", "exec", "train", "fault", "reset", "stop"):
        p = sim("--state", tmp / "w", name, "--help")
        t.ok(p.returncode == 0 and f" {name} " in p.stdout.splitlines()[0] + " " and not p.stderr
             and not (tmp / "w").exists(), f"{name} --help: its usage", p.stdout + p.stderr)
        t.ok(not re.search(" $", p.stdout + sim("--help").stdout, re.M), "no line ends with a blank", p.stdout)
    for args in (["status"], ["stop"], ["fault", "0", "lost"], ["reset", "0"], ["train"]):
        p = sim("--state", tmp / "w", *args)
        t.ok(p.returncode == 1 and "simulated world" in p.stderr, f"{args[0]} without a world: 1",
             f"{p.returncode} {p.stderr}")
    t.equal(sim("--state", tmp / "w", "exec", "--", "true").returncode, 125,
            "exec without a world: 125")


def look(node):
    p = node.sim("status")
    t.ok(p.returncode == 0 and p.stdout.startswith("simulated: ") and p.stdout.count("(simulated)") == 4,
         "status shows four boards and says simulated", p.stdout + p.stderr)
    s = node.status()
    t.ok(s["simulated"] is True and len(s["boards"]) == 4 and s["jobs"] == 0, "and so does its JSON")
    p = node.sim("start")
    t.ok(p.returncode == 1 and str(node.pid) in p.stderr, "a second one is refused with the first's pid",
         p.stderr)
    for cmd, status in ([["true"], 0], [["sh", "-c", "exit 7"], 7], [["/nowhere/at-all"], 127],
                        [["/etc/passwd"], 126], [["sh", "-c", "kill -9 $$"], -9]):
        t.equal(node.run(*cmd).returncode, status, f"exec -- {cmd[-1]}: its own status {status}")
    foreign = pathlib.Path(node.tmp, "foreign")
    foreign.write_bytes(pathlib.Path("/bin/true").read_bytes()[:18] + b"\xff\xfe" + pathlib.Path("/bin/true").read_bytes()[20:])
    foreign.chmod(0o755)
    p = node.run(foreign)
    t.ok(p.returncode == 126 and f"{foreign}: Exec format error: it is a program for machine type 65279, this machine is " in p.stderr,
         "exec -- a program of another machine: 126, with both machines", f"{p.returncode} {p.stderr}")
    env = node.run("env", env={"LD_LIBRARY_PATH": "/before"}).stdout
    t.ok(f"LD_LIBRARY_PATH={node.state}/lib:/before\n" in env, "exec keeps what stood in LD_LIBRARY_PATH", env)
    for name in ("LD_LIBRARY_PATH=" + node.state + "/lib", "UNDERWATT_NVML=" + node.state + "/lib/libnvidia-ml.so.1",
                 "UNDERWATT_CLOCK=", "UNDERWATT_SIM_STATE=" + node.state):
        t.ok(name in env, f"exec gives {name.split('=')[0]}", env)
    got = numbers(node, "init", ";", "count", ";", "power", 0, ";", "energy", 3, ";", "limit", 1, ";", "count")
    t.equal(got[1], (0, 4), "a client counts four boards")
    t.ok(10000 < got[2][1] < 100000, f"an idle board takes {got[2][1]} mW")


def limits(node):
    got = numbers(node, "init", ";", "set", 0, 200000, ";", "limit", 0, ";", "set", 0, 20000, ";",
                  "limit", 0, ";", "limit", 1)
    t.equal(got[1][0], 0, "a limit is set")
    t.ok(got[1][1] >= 25, f"which takes a while, as a driver does: {got[1][1]} ms")
    t.equal(got[2], (0, 200000), "and is in force")
    t.equal(got[3][0], 2, "20 W is out of range: 2")
    t.equal(got[4], (0, 200000), "and changes nothing")
    t.equal(got[5], (0, node.board(1)["default_mw"]), "nor did the other board's change")


def job(node, tmp):
    page = tmp / "progress"
    page.write_bytes(b"UWPROGR1" + struct.pack("<II", 1, 63) + bytes(4096 - 16))
    began = time.clock_gettime(time.CLOCK_BOOTTIME)
    p = node.train("--gpus", "1,2", "--phases", "load=500ms,train", "--steps", "1000",
                   env={"UNDERWATT_PROGRESS": page})
    pid = [b["pids"] for b in node.status()["boards"]]
    t.equal(pid, [[], [p.pid], [p.pid], []], "a job shows up as a process of its boards")
    t.equal(numbers(node, "init", ";", "pids", 1)[1], (0, [p.pid]), "for every client")

    def slot():
        return struct.unpack_from("<QQQI", page.read_bytes(), 64)
    t.ok(uwtest.wait_for(lambda: slot()[1] >= 2), "its steps are reported")
    t.ok(slot()[0] == p.pid and slot()[3] == 1, "under its pid, in training")
    last = slot()[2] * 1e-9
    t.ok(began <= last <= time.clock_gettime(time.CLOCK_BOOTTIME), "with the time of the last one by CLOCK_BOOTTIME", (began, last))
    t.ok(uwtest.wait_for(lambda: node.board(1)["power_mw"] > 2 * node.board(0)["power_mw"]), "its boards work", node.status())
    os.kill(p.pid, signal.SIGSTOP)
    t.ok(uwtest.wait_for(lambda: node.board(1)["power_mw"] < 130000 and
                         node.board(2)["power_mw"] < 130000), "stopped, it computes nothing")
    stood = slot()[1]
    time.sleep(0.7)
    t.ok(slot()[1] <= stood + 1, "and does no steps")
    os.kill(p.pid, signal.SIGCONT)
    t.ok(uwtest.wait_for(lambda: slot()[1] >= stood + 2), "continued, it goes on")
    other = node.train("--workload", "none", "--gpus", "1")
    t.equal(sorted(node.board(1)["pids"]), sorted([p.pid, other.pid]), "another process on its board")
    other.kill()
    t.ok(uwtest.wait_for(lambda: node.board(1)["pids"] == [p.pid]), "comes and goes")
    os.kill(p.pid, signal.SIGKILL)
    t.ok(uwtest.wait_for(lambda: node.status()["jobs"] == 0), "killed: its load ends")
    t.equal(node.board(1)["pids"], [], "and it is gone from its boards")
    t.ok(uwtest.wait_for(lambda: node.board(1)["power_mw"] < 1.3 * node.board(0)["power_mw"]),
         "which are idle again")
    p = node.run("underwatt-sim", "train", "--steps", "3", "--gpus", "0")
    t.ok(p.returncode == 0 and "simulated" in p.stdout and "3 steps" in p.stdout,
         "a job that ends says what it did", p.stdout + p.stderr)
    p = node.train("--phases", "train", env={"CUDA_VISIBLE_DEVICES": "3,0"})
    t.equal([b["pids"] for b in node.status()["boards"]], [[p.pid], [], [], [p.pid]],
            "without --gpus CUDA_VISIBLE_DEVICES says which")
    p.kill()
    t.ok(uwtest.wait_for(lambda: node.status()["jobs"] == 0), "it is gone")
    p = node.run("underwatt-sim", "train", "--gpus", "4")
    t.ok(p.returncode == 2 and "outside 0..3" in p.stderr, "no such board: 2", p.stderr)
    p = node.run("underwatt-sim", "train", "--workload", "gpt9")
    t.ok(p.returncode == 2 and "gpt9" in p.stderr, "no such workload: 2", p.stderr)


def devices(node, tmp):
    """Boards whose device files a process may not open are none to it."""
    folder = tmp / "dev"
    folder.mkdir()
    for i in (1, 3):
        (folder / f"nvidia{i}").touch()
        (folder / f"nvidia{i}").chmod(0o666)
    os.symlink(folder, os.path.join(node.state, "dev"))
    uuids = [b["uuid"] for b in node.status()["boards"]]
    got = numbers(node, "init", ";", "count", ";", "minor", 0, ";", "minor", 1, ";", "minor", 2)
    t.equal(got[1:], [(0, 2), (0, 1), (0, 3), (2, 0)], "boards whose device files are there are counted from 0")
    got = numbers(node, "init", ";", "index", uuids[3], ";", "index", uuids[0], ";", "set", 1, 210000)
    t.equal([got[1], got[2][0], got[3][0]], [(0, 1), 6, 0], "others are not found by their UUIDs")
    t.equal([b["limit_mw"] for b in node.status()["boards"]][2:], [300000, 210000], "a limit is set on the board that is meant")
    numbers(node, "init", ";", "set", 1, 300000)
    for gpus, visible, want in ((["--gpus", "1"], "0", [3]), ([], "1,0", [1, 3]), ([], "", [1, 3])):
        p = node.train("--phases", "train", *gpus, env={"CUDA_VISIBLE_DEVICES": visible})
        t.equal([i for i, b in enumerate(node.status()["boards"]) if b["pids"] == [p.pid]], want,
                f"a job that says {gpus or visible or 'nothing'} has these boards")
        p.kill()
        t.ok(uwtest.wait_for(lambda: node.status()["jobs"] == 0), "it is gone")
    p = node.run("underwatt-sim", "train", "--gpus", "2")
    t.ok(p.returncode == 2 and "this process may use 2 boards, and 2 is not one of them" in p.stderr, "no such board among them: 2", p.stderr)
    for visible, want in (("1", "[3]"), ("", "[1, 3]"), ("2", "[4]")):
        p = node.run("/usr/bin/python3", "-c", "from underwatt.testing._simload import visible_boards; print(visible_boards())",
                     env={"PYTHONPATH": uwtest.TOP / "python", "CUDA_VISIBLE_DEVICES": visible})
        t.equal(p.stdout.strip(), want, f"so has a program in Python that sees '{visible}'; 4 is none")
    if os.getuid() == 0:
        t.equal(numbers(node, "init", ";", "count", preexec_fn=lambda: (os.setgid(65534), os.setuid(65534)))[1], (0, 0),
                "another user may not look into the folder: no board is his")
        tmp.chmod(0o755)
        (folder / "nvidia1").chmod(0o600)
        t.equal(numbers(node, "init", ";", "count", preexec_fn=lambda: (os.setgid(65534), os.setuid(65534)))[1], (0, 1),
                "another user may open one of them")
    os.unlink(os.path.join(node.state, "dev"))
    t.equal(numbers(node, "init", ";", "count")[1], (0, 4), "without the folder all are there")


def faults(node):
    node.fault("1", "lost")
    got = numbers(node, "init", ";", "count", ";", "power", 1, ";", "power", 0)
    t.equal([r for r, _ in got], [0, 0, 15, 0], "a lost board answers 15, the others answer")
    node.fault("1", "found")
    node.fault("0", "refuse")
    got = numbers(node, "init", ";", "set", 0, 190000, ";", "limit", 0, ";", "set", 2, 190000)
    t.equal([r for r, _ in got], [0, 4, 0, 0], "a refused set answers 4")
    t.equal(got[2][1], 200000, "and changes nothing")
    node.fault("0", "accept")
    node.fault("0", "limit", "180W")
    t.equal(numbers(node, "init", ";", "limit", 0)[1], (0, 180000), "somebody else sets a limit")
    hung = node.popen(*NVMLC, "init", ";", "wait", ";", "power", 3, ";", "power", 2, stdin=subprocess.PIPE)
    hung.stdout.readline()
    node.fault("3", "hang")
    hung.stdin.write("\n")
    hung.stdin.flush()
    hung.stdout.readline()
    time.sleep(0.3)
    t.ok(hung.poll() is None, "a call on a board that hangs does not return")
    t.equal(numbers(node, "init", ";", "power", 0)[1][0], 0, "others do")
    node.fault("3", "release")
    t.equal(hung.stdout.readline().split()[0], "0", "until it is released")
    before = node.board(2)["energy_mj"]
    node.fault("reload")
    after = node.board(2)
    t.ok(after["energy_mj"] < before and after["limit_mw"] == after["default_mw"],
         "a reload resets counter and limit", after)
    p = node.sim("fault", "9", "lost")
    t.ok(p.returncode == 2 and "outside 0..3" in p.stderr, "a fault of no board: 2", p.stderr)


def resets(node):
    """A reset is for a board that nobody has open; who has is named."""
    def refused(board, *pids):
        p = node.sim("reset", board)
        return p.returncode == 1 and f"board {board} is in use by" in p.stderr and \
            all(f"{pid} (" in p.stderr for pid in pids)

    def client(*words):
        c = node.popen(*NVMLC, *words, stdin=subprocess.PIPE)
        c.stdout.readline()
        return c

    def go_on(c, lines):
        c.stdin.write("\n")
        c.stdin.flush()
        return [c.stdout.readline().split() for _ in range(lines)][-1]

    node.run(*NVMLC, "init", ";", "set", 3, 150000)
    all_open = client("init", ";", "wait", ";", "shutdown", ";", "wait")
    bare = client("init-bare", ";", "wait", ";", "bus", node.board(0)["pci_bus_id"], ";", "wait", ";", "power", 3,
                  ";", "wait")
    t.ok(all(refused(i, all_open.pid) for i in range(4)), "nvmlInit opens every board")
    t.equal(node.board(3)["limit_mw"], 150000, "a refused reset changes nothing")
    go_on(all_open, 2)
    before = uwtest.wait_until(lambda: node.board(3), lambda b: b["energy_mj"] > 5000)  # the counter began anew with the driver above
    t.equal(node.sim("reset", "3").returncode, 0, "after nvmlShutdown, and beside NO_ATTACH, it is done")
    b = node.board(3)
    t.ok(b["limit_mw"] == b["default_mw"] and b["energy_mj"] <= 1100 * (b["true_j"] - before["true_j"]) + 1000,
         "limit and counter begin anew", (before, b))
    t.equal(go_on(bare, 2)[0], "0", "a handle by bus id")
    t.ok(refused(0, bare.pid) and node.sim("reset", "1").returncode == 0, "opens its board alone")
    t.equal(go_on(bare, 2)[0], "0", "a handle by index opens another")
    t.ok(refused(3, bare.pid), "… which cannot be reset any more")
    bare.kill()
    bare.wait()
    t.equal(node.sim("reset", "3").returncode, 0, "whoever is killed lets go")
    job = node.train("--gpus", "2")
    t.ok(uwtest.wait_for(lambda: node.board(2)["pids"]) and refused(2, job.pid), "a job has its board open")
    job.kill()
    t.ok(uwtest.wait_for(lambda: node.sim("reset", "2").returncode == 0), "until it ends")
    node.fault("2", "lost")
    t.ok(node.sim("reset", "2").returncode == 0 and numbers(node, "init", ";", "power", 2)[1][0] == 0,
         "a reset brings a lost board back")
    for args in ((), ("all",), ("64",), ("0", "1")):
        t.equal(node.sim("reset", *args).returncode, 2, f"reset {args}: 2")
    for args in (("reset", "9"), ("reset", "99"), ("fault", "99", "lost"), ("train", "--gpus", "99"), ("train", "--gpus", "0,9")):
        p = node.sim(*args)
        t.ok(p.returncode == 2 and p.stderr.endswith(f"board {args[1 if args[0] != 'train' else 2].rpartition(',')[2]} is outside 0..3\n"),
             f"{' '.join(args)}: names the boards that are there", p)
    with uwtest.Node(count=1) as one:
        for args in (("reset", "9"), ("fault", "9", "lost"), ("train", "--gpus", "9")):
            p = one.sim(*args)
            t.ok(p.returncode == 2 and p.stderr.endswith("no board 9: the only board is 0\n"), f"{' '.join(args)}: the one board", p)
    all_open.kill()


def rights(node):
    """Started with --may-set root."""
    got = numbers(node, "init", ";", "set", 0, 200000)
    t.equal(got[1][0], 0, "root may set a limit")

    def drop():
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    got = numbers(node, "init", ";", "set", 0, 210000, ";", "limit", 0, ";", "lock", 0, 600, 900, preexec_fn=drop)
    t.equal([r for r, _ in got], [0, 4, 0, 4], "somebody else may read, not set")
    t.equal(got[2][1], 200000, "and changed nothing")
    p = node.sim("reset", "0", preexec_fn=drop)
    t.ok(p.returncode == 1 and "only the user who started" in p.stderr and node.board(0)["limit_mw"] == 200000,
         "nor may they reset", p.stderr)
    p = node.sim("exec", "--", "true", preexec_fn=drop)
    t.equal(p.returncode, 0, "who is not root may enter root's world")
    strange = os.path.join(node.tmp, "strange")
    os.mkdir(strange)
    os.chown(strange, 65534, 65534)
    p = sim("--state", strange, "start")
    t.ok(p.returncode == 1 and "belongs to user 65534" in p.stderr and not os.listdir(strange),
         "nobody starts a world in somebody else's folder", p.stderr)
    os.chown(node.state, 65534, 65534)
    p = node.run("true")
    t.ok(p.returncode == 125 and "belongs to user 65534" in p.stderr,
         "root does not load somebody else's library", p.stderr)
    os.chown(node.state, 0, 0)
    p = node.sim("fault", "0", "lost", preexec_fn=drop)
    t.ok(p.returncode == 1, "nor make faults", p.stderr)
    p = node.sim("stop", preexec_fn=drop)
    t.ok(p.returncode == 1 and node.status()["pid"] == node.pid, "nor stop the world", p.stderr)


EVENTS = """import ctypes, sys
lib = ctypes.CDLL("libnvidia-ml.so.1")
class Event(ctypes.Structure):
    _fields_ = [("device", ctypes.c_void_p), ("type", ctypes.c_ulonglong), ("data", ctypes.c_ulonglong),
                ("gpu", ctypes.c_uint), ("compute", ctypes.c_uint)]
dev, events, event, types = ctypes.c_void_p(), ctypes.c_void_p(), Event(), ctypes.c_ulonglong()
lib.nvmlInit_v2()
lib.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(1), ctypes.byref(dev))
r = [lib.nvmlDeviceGetSupportedEventTypes(dev, ctypes.byref(types)), lib.nvmlEventSetCreate(ctypes.byref(events))]
r.append(lib.nvmlDeviceRegisterEvents(dev, ctypes.c_ulonglong(1), events))
r.append(lib.nvmlDeviceRegisterEvents(dev, ctypes.c_ulonglong(0x18), events))
r.append(lib.nvmlEventSetWait_v2(events, ctypes.byref(event), ctypes.c_uint(20)))
print(types.value, *r, flush=True)
while True:
    r = lib.nvmlEventSetWait_v2(events, ctypes.byref(event), ctypes.c_uint(60000))
    print(r, event.type, event.data, int(event.device == dev.value), flush=True)
    if r or event.type == 8:
        break
print(lib.nvmlEventSetFree(events), flush=True)
"""


def events():
    """nvmlEventSet: what a client registers for it hears, and nothing else."""
    with uwtest.Node(count=2) as node:
        child = node.popen("/usr/bin/python3", "-c", EVENTS)
        t.equal(child.stdout.readline().split(), ["156", "0", "0", "3", "0", "10"],
                "types, a set, one type that no board has: 3, two that it has, nothing happens: 10")
        node.train("--gpus", "0,1", "--phases", "train")
        t.equal(child.stdout.readline().split(), ["0", "16", "0", "1"], "a job begins: the SM clock changes, on the registered board")
        node.sim("fault", "1", "lost")
        lines = child.stdout.read().splitlines()
        t.equal(lines[-2:], ["0 8 79 1", "0"], "a lost board: XID 79")


GPM = """import ctypes
lib = ctypes.CDLL("libnvidia-ml.so.1")
class Metric(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint), ("result", ctypes.c_int), ("value", ctypes.c_double), ("short", ctypes.c_char_p),
                ("long", ctypes.c_char_p), ("unit", ctypes.c_char_p)]
class Get(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("n", ctypes.c_uint), ("a", ctypes.c_void_p), ("b", ctypes.c_void_p), ("m", Metric * 3)]
class Support(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("yes", ctypes.c_uint)]
dev, get, support = ctypes.c_void_p(), Get(version=1, n=3), Support(1)
a, b = ctypes.c_void_p(), ctypes.c_void_p()
lib.nvmlInit_v2()
lib.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(dev))
r = [lib.nvmlGpmQueryDeviceSupport(dev, ctypes.byref(support)), support.yes]
for s in (a, b):
    r += [lib.nvmlGpmSampleAlloc(ctypes.byref(s)), lib.nvmlGpmSampleGet(dev, s)]
get.a, get.b = a.value, b.value
for m, i in zip(get.m, (2, 10, 60)):
    m.id = i
r.append(lib.nvmlGpmMetricsGet(ctypes.byref(get)))
print(*r, *(f"{m.result}:{m.value:.1f}" for m in get.m), lib.nvmlGpmSampleFree(a), lib.nvmlGpmSampleFree(b))
"""


def gpm():
    """nvmlGpm*: on Hopper and newer."""
    with uwtest.Node(board="h100", count=1) as node:
        t.equal(node.run("/usr/bin/python3", "-c", GPM).stdout.split(),
                ["0", "1", "0", "0", "0", "0", "0", "0:0.0", "0:0.0", "3:0.0", "0", "0"], "an idle H100 has metrics, all 0, and no NVLink")
        node.train("--phases", "train")
        got = uwtest.wait_until(lambda: node.run("/usr/bin/python3", "-c", GPM).stdout.split(),
                                lambda r: len(r) == 12 and 50 < float(r[7][2:]) <= 100 and 1 < float(r[8][2:]) <= 100)
        t.ok(50 < float(got[7][2:]) <= 100 and 1 < float(got[8][2:]) <= 100, "at work its SMs and its memory are busy", got)
    with uwtest.Node(board="v100", count=1) as node:
        t.equal(node.run("/usr/bin/python3", "-c", GPM).stdout.split()[:4], ["0", "0", "0", "3"], "a V100 has none")


def script():
    machine = ("name: scripted\nseed: 5\nset_limits: anyone\nset_latency: 5 ms\nboards:\n"
               "  - {model: a100, uuid: GPU-of-mine}\n  - {model: h100}\n  - {model: a100, limit: 300 W}\n"
               "workloads:\n  - {name: mine, like: vgg19, steps: 10, memory_time: 1 s, clock_time: 1 s}\n"
               "faults:\n  - {at: 20 s, board: 1, fault: lost, for: 100000 s}\n"
               "  - {at: 20 s, board: 0, fault: limit, to: 222 W}\n")
    with uwtest.Node(machine=machine, speed=50) as node:
        s = node.status()
        t.ok(s["machine"] == "scripted" and s["speed"] == 50, "a machine file")
        t.equal(s["boards"][0]["uuid"], "GPU-of-mine", "its UUID")
        t.equal(s["boards"][2]["limit_mw"], 300000, "its limit")
        p = node.run("underwatt-sim", "train", "--workload", "mine", "--gpus", "0", "--phases", "train")
        t.ok(p.returncode == 0 and "10 steps" in p.stdout, "its workload", p.stdout + p.stderr)
        t.ok(uwtest.wait_for(lambda: node.board(1)["faults"] == ["lost"]), "its faults happen")
        t.ok(uwtest.wait_for(lambda: node.board(0)["limit_mw"] == 222000), "both of them", node.board(0))
        clock = node.run("sh", "-c", "echo $UNDERWATT_CLOCK").stdout.strip()
        t.ok(clock.endswith(":50"), f"its clock: {clock}")


def ends(tmp):
    node = uwtest.Node(count=2)
    with node:
        client = node.popen(*NVMLC, "init", ";", "power", 0, ";", "wait", ";", "power", 0, ";", "init",
                            stdin=subprocess.PIPE)
        training = node.train("--epochs", "9")
        client.stdout.readline(), client.stdout.readline()
        p = node.sim("stop")
        t.equal(p.returncode, 0, "stop")
        t.ok(not os.path.exists(node.state), "nothing is left of it")
        t.ok(uwtest.wait_for(lambda: not uwtest.alive(node.pid)), "nor of its process")
        client.stdin.write("\n")
        client.stdin.flush()
        client.stdout.readline()
        t.equal(client.stdout.readline().split()[0], "15", "who was there sees its boards lost")
        t.equal(client.stdout.readline().split()[0], "9", "and no driver when it looks again")
        t.equal(training.wait(timeout=uwtest.PATIENCE), 1, "a job fails")
        t.ok("has stopped" in training.stderr.read(), "and says why")
    with uwtest.Node(count=1) as node:
        node.kill()
        p = node.sim("status")
        t.ok(p.returncode == 1 and "was killed" in p.stderr, "a killed world is known as such", p.stderr)
        p = node.sim("start", "--count", "2")
        t.equal(p.returncode, 0, "and another can begin in its place")
        node.pid = node.status()["pid"]
        node.kill()
        p = node.sim("stop")
        t.ok(p.returncode == 0 and not os.path.exists(node.state), "stop removes what a killed one left",
             p.stderr)


KILLED = """import os, signal, sys
sys.path.insert(0, sys.argv[1])
import uwtest
with uwtest.Node(count=1) as node:
    d = node.daemon()
    run = node.popen("sh", "-c", "sleep 1000 & sleep 1000")
    uwtest.wait_for(lambda: uwtest.children_of(run.pid))
    print(node.pid, d.pid, d.actuator.pid, run.pid, *uwtest.children_of(run.pid), node.tmp, node.runtime, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def killed():
    """A test that is killed leaves nothing."""
    p = subprocess.run([sys.executable, "-c", KILLED, os.path.dirname(uwtest.__file__)], stdout=subprocess.PIPE, text=True, timeout=300, check=False)
    *pids, tmp, runtime = p.stdout.split() or ["", ""]
    t.ok(p.returncode == -9 and len(pids) >= 5, "a test is killed", p.stdout)
    left = uwtest.wait_until(lambda: [q for q in pids if uwtest.alive(q)] + [f for f in (tmp, runtime) if os.path.exists(f)], lambda found: not found)
    t.equal(left, [], "its node, daemon, actuator and programs end, and their folders go")


def main():
    import tempfile
    with tempfile.TemporaryDirectory(prefix="uw-") as d:
        tmp = pathlib.Path(d)
        bad_input(tmp)
        with uwtest.Node(count=4) as node:
            look(node)
            limits(node)
            job(node, tmp)
            devices(node, tmp)
            faults(node)
            resets(node)
        if os.getuid() == 0:
            mask = os.umask(0o077)  # others look in whatever the umask
            with uwtest.Node(count=1, may_set="root") as node:
                rights(node)
            os.umask(mask)
        else:
            t.skip("rights of others", "only root can become somebody else")
        events()
        gpm()
        script()
        ends(tmp)
    killed()
    t.done()


if __name__ == "__main__":
    sys.exit(main())
