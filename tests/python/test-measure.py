#!/usr/bin/python3
"""Windows of the Python package in a simulated node, by the daemon and without one: against the true energy; nested, overlapping,
from several threads and in forked children; what entering and leaving costs; log and summary; a node without boards.
"""
import csv
import json
import os
import subprocess
import sys
import tempfile
import time

import pyuser
import uwtest

import underwatt
from underwatt import _options

MACHINE = "name: exact\nboards: [{model: v100, count: 2, ideal: true}, {model: rtx6000, ideal: true}]\n"
LEAVE_S = 0.001    # what leaving a window may cost

WINDOW = """
import json, sys, time, underwatt
monitor = underwatt.Monitor(sync=None)
time.sleep(float(sys.argv[1]))
with monitor.window("epoch", samples=True) as w:
    print("begun", flush=True)
    sys.stdin.readline()
print("ended", w.ready, flush=True)
e = w.energy
print(json.dumps([monitor.source, w.ready, e.as_dict()]), flush=True)
"""

# Each window with the shortest and the longest time that it may have by the program's own clock.
MANY = """
import json, threading, time, underwatt
class Timed:
    def __init__(self, name):
        self.window = underwatt.window(name)
    def begin(self):
        self.before = time.monotonic()
        self.window.begin()
        self.inside = time.monotonic()
        return self
    __enter__ = begin
    def end(self, *_):
        least = time.monotonic() - self.inside
        self.window.end()
        self.spans = least, time.monotonic() - self.before
    __exit__ = end
found = {}
with Timed("outer") as outer:
    with Timed("inner") as inner:
        time.sleep(0.5)
    time.sleep(0.5)
first = Timed("first").begin()
time.sleep(0.4)
second = Timed("second").begin()
time.sleep(0.4)
first.end()
time.sleep(0.4)
second.end()
def work(i):
    for k in range(5):
        with Timed(f"thread {i}.{k}") as w:
            time.sleep(0.05)
        found[w.window.name] = w
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
[x.start() for x in threads]
[x.join() for x in threads]
print(json.dumps([[w.window.name, w.spans, w.window.energy.as_dict()] for w in (outer, inner, first, second, *found.values())]))
"""

COST = """
import json, time, underwatt
m = underwatt.Monitor()
costs = []
for i in range(200):
    w = m.window("step").begin()
    time.sleep(0.005)
    began = time.perf_counter()
    w.end()
    costs.append(time.perf_counter() - began)
costs.sort()
print(json.dumps([costs[len(costs) // 2], costs[-1], w.energy.time_s]))
"""

TRAINING = """
import json, statistics
from underwatt._training import Recorder
from underwatt.testing import SimLoad
def true_j():
    return load.phase("load", seconds=0.001).wait().energy_j
rows = []
with SimLoad(boards=[1]) as load:
    recorder = Recorder(options={"gpus": [1], "local": True})
    recorder.begin()
    for epoch in range(4):
        began = true_j()
        for step in range(2):
            load.step().wait()
            recorder.step()
        trained = true_j()
        total = recorder.total_j()  # of a checkpoint
        validates = true_j()
        recorder.phase("validate")
        load.phase("validate", steps=4).wait()
        ended = true_j()
        entry = {**recorder.of_phase("validate", "val_"), **recorder.entry()}
        recorder.phase("train")
        rows.append([entry["val_energy_j"] / (ended - validates), 2 * entry["energy_per_step_j"] / (trained - began)])
    recorder.end()
print(json.dumps([statistics.median(column) for column in zip(*rows[1:])]))
"""

FORK = """
import os, sys, time, underwatt
from underwatt import UnderwattError
m = underwatt.Monitor()
with m.window("parent") as w:
    child = os.fork()
    if child == 0:
        with m.window("child") as mine:
            time.sleep(0.3)
        print("child", mine.energy.time_s > 0.29, flush=True)
        try:
            w.__exit__(None, None, None)
            w.energy
        except UnderwattError as e:
            print(e, flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
if sys.argv[1:] == ["collected"]:
    import gc
    gc.collect()
print("parent", w.energy.time_s > 0.29, w.energy.total_j > 0)
"""

LOGGED = """
import sys, time, underwatt
underwatt.configure(log=sys.argv[1], summary=True, gco2e_kwh=400, price_kwh="0.30 EUR", gpus=[0, 2])
for i in range(3):
    with underwatt.window(f"epoch {i}"):
        time.sleep(0.2)
"""

RANK = """
import sys, time, underwatt
sys.stdin.readline()
m = underwatt.Monitor(log=sys.argv[1])
for i in range(50):
    with m.window(f"step {i}"):
        time.sleep(0.005)
m.close(60)
"""

FACTORS = """
import json, time, underwatt
def factors(**options):
    with underwatt.Monitor(**options) as m, m.window("x") as w:
        time.sleep(0.2)
    e = w.energy
    return e.total_j, e.gco2e, e.cost, e.price and e.price.currency
print(json.dumps([factors(), factors(gco2e_kwh=100, price_kwh="1 USD"), factors(local=True)]))
"""

NONE = """
import underwatt
try:
    with underwatt.window("x"):
        pass
except underwatt.NoDevice as e:
    print("NoDevice", str(e).count("\\n"), e)
underwatt.configure(null=True)
with underwatt.window("x") as w:
    pass
print(w.energy)
"""

VISIBLE = """
import underwatt
m = underwatt.Monitor()
print([b.index for b in m.boards])
"""


def measures(t, node, source, wait):
    """One window, against what the simulated boards say of themselves."""
    p = pyuser.begun_in_world(node, WINDOW, str(wait), stdin=subprocess.PIPE)
    t.equal(p.stdout.readline(), "begun\n", f"{source}: a window begins")
    a = node.status()["boards"]
    time.sleep(4)
    b = node.status()["boards"]
    p.stdin.write("\n")
    p.stdin.flush()
    t.equal(p.stdout.readline(), "ended False\n", "it ends before its energy is known")
    text = p.stdout.readline()
    if not t.ok(text.startswith("["), "then it is known", text + p.stderr.read()):
        return
    got, ready, e = json.loads(text)
    t.equal((got, ready, e["name"], e["simulated"], len(e["gpus"])), (source, True, "epoch", True, 3), "by whom, and of which boards")
    for i, g in enumerate(e["gpus"]):
        true_w = (b[i]["true_j"] - a[i]["true_j"]) / (b[i]["at_ns"] - a[i]["at_ns"]) * 1e9
        t.ok(g["id"] == b[i]["uuid"] and abs(g["energy_j"] - true_w * e["time_s"]) <= g["half_j"] + 0.05 * g["energy_j"],
             f"GPU {i}: {g['energy_j']:.1f} J ± {g['half_j']:.1f} J ({g['method']}) in {e['time_s']:.2f} s, true {true_w:.1f} W")
    for i, g in enumerate(e["gpus"]):
        samples = g.get("samples", [])
        ends = [s["time_s"] for s in samples]
        total = sum(s["power_w"] * s["over_s"] for s in samples)
        t.ok(len(samples) >= 1 and all(abs(s["time_s"] - s["over_s"] - before) < 1e-4 for s, before in zip(samples, [0.0, *ends])) and
             abs(ends[-1] - e["time_s"]) < 1e-3, f"GPU {i}: {len(samples)} samples of power, each after the one before", samples[:3])
        t.ok(abs(total - g["energy_j"]) <= g["half_j"], f"GPU {i}: they sum to {total:.1f} J of {g['energy_j']:.1f} J ± {g['half_j']:.1f} J")
    t.ok(source == "daemon" or len(e["gpus"][0]["samples"]) > 20, "as fine as the board is read", len(e["gpus"][0].get("samples", [])))
    t.near(e["total_j"], sum(g["energy_j"] for g in e["gpus"]), 1e-6, "their sum")
    t.equal((p.wait(20), p.stderr.read()), (0, ""), "the program ends, with no word")


def many(t, node):
    p = pyuser.in_world(node, MANY)
    if not t.ok(p.returncode == 0, "windows nested, overlapping, in threads", p.stderr):
        return
    found = json.loads(p.stdout)
    t.equal(len(found), 24, "each is measured")
    wrong = [(name, spans, e) for name, spans, e in found if not spans[0] - 0.005 <= e["time_s"] <= spans[1] + 0.005 or not e["total_j"] > 0]
    t.ok(not wrong, "for as long as by the program's own clock", wrong)
    outer, inner, first, second = (e for _, _, e in found[:4])
    t.ok(inner["total_j"] < outer["total_j"] and first["total_j"] > 0 and second["total_j"] > 0, "the inner one has less than the outer one")


def costs(t, node, source):
    p = pyuser.in_world(node, COST)
    median, most, length = json.loads(p.stdout or "[1, 1, 1]")
    t.ok(median <= LEAVE_S, f"{source}: leaving a window takes {median * 1e6:.0f} µs (median of 200), {most * 1e6:.0f} µs at most", p.stderr)


def forks(t, node, source):
    p = pyuser.in_world(node, FORK, "collected")
    lines = p.stdout.splitlines()
    t.ok(p.returncode == 0 and lines[0] == "child True" and lines[-1] == "parent True True",
         f"{source}: parent and child measure, each its own", p.stdout + p.stderr)
    t.ok(len(lines) == 3 and "began in process" in lines[1], "a child has no energy of its parent's window", lines)


def logged(t, node, folder):
    path = os.path.join(folder, "run.csv")
    for _ in range(2):
        p = pyuser.in_world(node, LOGGED, path)
        t.equal(p.returncode, 0, f"a log and a summary {p.stderr}")
    with open(path, newline="", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    t.equal([r["name"] for r in rows], 2 * ["epoch 0", "epoch 1", "epoch 2"], "a row a window, of two runs")
    t.ok(all(float(r["total_j"]) > 0 and float(r["gco2e"]) > 0 and float(r["cost"]) > 0 and r["currency"] == "EUR" for r in rows), "with gCO2e and cost", rows)
    t.ok(all(float(r["gpu0_j"]) > 0 and float(r["gpu2_j"]) > 0 and r.get("gpu1_j") == "" and r.get("rank") == "0" for r in rows), "of the boards asked for", rows)
    lines = p.stderr.splitlines()
    t.ok(len(lines) == 1 and lines[0].startswith("underwatt: ") and "2 simulated GPUs" in lines[0], "the summary is one line", p.stderr)


def shared_log(t, node, folder):
    """Three ranks with a board each begin one log together."""
    path = os.path.join(folder, "ranks.csv")
    ranks = [pyuser.begun_in_world(node, RANK, path, stdin=subprocess.PIPE, RANK=str(i), WORLD_SIZE="3", LOCAL_RANK=str(i),
                                   CUDA_VISIBLE_DEVICES=str(i)) for i in range(3)]
    for p in ranks:
        p.stdin.write("\n")
        p.stdin.flush()
    t.equal([(p.wait(120), p.stderr.read()) for p in ranks], 3 * [(0, "")], "ranks with a board each write one log")
    with open(path, newline="", encoding="utf-8") as f:
        text = f.read()
    rows = list(csv.DictReader(text.splitlines()))
    if not t.equal((text.count("began_utc"), len(rows)), (1, 150), "one head, and each rank's rows"):
        return
    steps = [[r["name"] for r in rows if r["rank"] == str(i)] for i in range(3)]
    t.ok(all(sorted(own) == sorted(f"step {i}" for i in range(50)) for own in steps), "each rank's windows", steps)
    own = [[r[f"gpu{g}_j"] for g in range(3)] for r in rows]
    t.ok(all(float(cells.pop(int(r["rank"]))) == float(r["gpu_j"]) and cells == ["", ""] for r, cells in zip(rows, own)),
         "each row has its rank's board alone", rows[:3])


def factors(t, node):
    unknown = json.loads(pyuser.in_world(node, FACTORS).stdout)
    t.equal([f[1:] for f in (unknown[0], unknown[2])], 2 * [[None, None, None]], "no signal: gCO2e and cost are unknown")
    for name, value in (("carbon", "360 g/kWh"), ("price", "0.36 EUR/kWh")):
        p = node.run("underwatt", "signal", "set", name, value)
        t.equal(p.returncode, 0, f"{name} is set {p.stderr}")
    by_signal, given, local = json.loads(pyuser.in_world(node, FACTORS).stdout)
    t.ok(abs(by_signal[1] - by_signal[0] * 1e-4) < 1e-9 and abs(by_signal[2] - by_signal[0] * 1e-7) < 1e-12 and by_signal[3] == "EUR",
         "gCO2e and cost by the daemon's signals", by_signal)
    t.ok(abs(given[1] - given[0] / 36000) < 1e-9 and given[3] == "USD" and local[1:] == [None, None, None], "by what is given; none without the daemon", (given, local))


def visible(t, node):
    for text, want in (("2,0", "[2, 0]\n"), ("1", "[1]\n")):
        t.equal(pyuser.in_world(node, VISIBLE, CUDA_VISIBLE_DEVICES=text).stdout, want, f"CUDA_VISIBLE_DEVICES={text}")
    p = pyuser.in_world(node, VISIBLE, CUDA_VISIBLE_DEVICES="")
    t.ok("NoDevice" in p.stderr and "leaves none of 3 boards" in p.stderr, "CUDA_VISIBLE_DEVICES with none", p.stderr)


def constrained(t, node):
    """A program may open the device files of the daemon's boards 1 and 2."""
    with tempfile.TemporaryDirectory(prefix="uw-") as folder:
        os.mkdir(os.path.join(folder, "dev"))
        for i in (1, 2):
            with open(os.path.join(folder, "dev", f"nvidia{i}"), "w", encoding="ascii"):
                pass
        program = f"import os\nos.environ['UNDERWATT_SIM_STATE'] = {folder!r}\n{VISIBLE}"
        for text, want in (("0,1", "[1, 2]\n"), ("1", "[2]\n")):
            t.equal(pyuser.in_world(node, program, CUDA_VISIBLE_DEVICES=text).stdout, want, f"boards 1 and 2 are the job's: CUDA_VISIBLE_DEVICES={text}")


def training(t, node):
    """What the callbacks of the frameworks count: no wait for an energy is in the next figure."""
    validated, stepped = json.loads(pyuser.in_world(node, TRAINING).stdout or "[0, 0]")
    t.near(validated, 1, 0.08, "an evaluation: its own energy, and no wait for the one before (simulated)")
    t.near(stepped, 1, 0.08, "a step: its own energy, and no wait for a checkpoint or an evaluation (simulated)")


def absent(t):
    p = subprocess.run([sys.executable, "-c", NONE], capture_output=True, text=True, timeout=60,
                       env=pyuser.env(UNDERWATT_NVML="/nowhere/libnvidia-ml.so.1"))
    lines = p.stdout.splitlines()
    t.ok(p.returncode == 0 and lines[0].startswith("NoDevice 0 ") and "null=True" in lines[0], "no board: one clear line", p.stdout + p.stderr)
    t.ok(len(lines) == 2 and "not measured" in lines[1], "and the null monitor goes on", lines)
    try:
        underwatt.Monitor(boards="bogus", local=True)
        said = ""
    except underwatt.InvalidValue as e:
        said = str(e)
    t.ok(f"({', '.join(_options.BACKENDS)})" in said, "backends are those that the library has", said)
    for make, options, want in ((underwatt.Monitor, {"local": "x"}, "local 'x'"), (underwatt.Monitor, {"summary": "yes"}, "summary 'yes'"),
                                (underwatt.Monitor, {"null": 1}, "null 1"), (underwatt.Optimizer, {"local": "no"}, "local 'no'")):
        try:
            make(**options)
            said = ""
        except ValueError as e:
            said = str(e)
        t.equal(said, want + " is neither True nor False", f"{make.__name__}: {want}")


def main():
    t = uwtest.Tap()
    with tempfile.TemporaryDirectory(prefix="uw-") as folder:
        with uwtest.Node(machine=MACHINE) as node:
            job = node.train("--gpus", "0,2", "--epochs", "100000", "--phases", "train")
            uwtest.wait_for(lambda: node.board(0)["power_mw"] > 200000)
            measures(t, node, "local", 3)
            many(t, node)
            costs(t, node, "local")
            forks(t, node, "local")
            visible(t, node)
            training(t, node)
            d = node.daemon()
            uwtest.wait_for(lambda: (d.ask("GET", "/v1/gpus/0")[1].get("power_w") or 0) > 100)
            constrained(t, node)
            measures(t, node, "daemon", 0)
            many(t, node)
            costs(t, node, "daemon")
            forks(t, node, "daemon")
            logged(t, node, folder)
            shared_log(t, node, folder)
            factors(t, node)
            job.terminate()
    absent(t)
    t.done()


if __name__ == "__main__":
    main()
