#!/usr/bin/python3
"""underwatt.compare(): its intervals, on synthetic samples; how it runs its windows; driven workloads against the joules that the
simulated boards say; processors alone, by made-up counters of known energy, and without any; what it refuses.
"""
import json
import math
import os
import pathlib
import random
import signal
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

import pyuser
import uwtest

import underwatt
from underwatt import _comparison, _compare, _rapl
from underwatt._comparison import Turn
from underwatt._results import Half

MACHINE = "name: exact\nboards: [{model: h100, ideal: true}]\n"
SPEED = 10
WINDOW_S = 0.3      # real, of a node that is 10 times as fast

DRIVEN = """
import json, sys, underwatt
from underwatt.testing import SimLoad
grants = {"train": lambda: load.phase("train", steps=8), "validate": lambda: load.phase("validate", steps=24)}
steps = {"train": 8, "validate": 24}
done, spans, doing = [], {name: [] for name in grants}, []
def sync():     # what the boards have really spent between two moments at which nothing is queued
    now = load.wait()
    if done and doing:
        spans[doing[0]].append((len(doing), now.energy_j - done[-1].energy_j))
    if now:
        done.append(now)
    doing.clear()
def variant(name):
    def call():
        doing.append(name)
        grants[name]()
    return call
with SimLoad("resnet50", boards=[0]) as load:
    monitor = underwatt.Monitor(sync=sync)
    c = underwatt.compare({name: underwatt.Variant(variant(name), 32 * steps[name], lambda: 0.5) for name in grants}, per="sample",
                          within=0.03, time_s=20, window_s=float(sys.argv[1]), monitor=monitor)
true = {}
for name, found in spans.items():   # windows alone: not what leads in to one, after a rest
    most = max(n for n, _ in found)
    found = [(n, j) for n, j in found if n == most]
    true[name] = sum(j for _, j in found) / sum(n for n, _ in found) / steps[name] / 32
print(json.dumps([c.as_dict(), true, str(c), c.chart(), c._repr_html_()]))
"""

ALONE = """
import json, time, underwatt
c = underwatt.compare({"a": lambda: time.sleep(0.001), "b": lambda: time.sleep(0.002)}, window_s=0.02, time_s=20, within=0.5)
print(json.dumps([c.as_dict(), str(c)]))
try:
    underwatt.compare({"a": lambda: None}, device="gpu")
except underwatt.NoDevice as e:
    print(str(e).count("\\n"), e)
"""

ENDLESS = """
import time, underwatt
begun = []
def call():
    if not begun:
        begun.append(print("begun", flush=True))
    time.sleep(0.01)
underwatt.compare({"a": call, "b": call}, window_s=0.2, within=1e-9, time_s=600)
"""
SOON_S = 60


def turn(joules, half=0.0, seconds=2.0, count=100.0):
    return Turn(iterations=100, units=count, time_s=seconds, energy_j=joules * count, half=Half(noise_j=half * count),
                apart_j=half * count)


def figures(t):
    for degrees, want in ((1, 12.706), (2, 4.303), (4, 2.776), (5, 2.571), (10, 2.228), (30, 2.042), (120, 1.980)):
        t.near(_comparison.t975(degrees), want, 0.004, f"Student's t of {degrees}")
    # The order of the rounds' values is drift: it is common to both.
    first, second = [turn(1.0 + 0.1 * i) for i in range(6)], [turn(0.5 + 0.05 * i + 0.001 * (-1) ** i) for i in range(6)]
    a, b = _comparison.outcome_of("a", first, None, None), _comparison.outcome_of("b", second, first, 0.9)
    t.near(a.energy_j.value, 1.25, 1e-9, "a mean")
    t.ok(b.energy_j.half > 0.1 and abs(b.energy_change.value + 0.5) < 1e-3 and b.energy_change.half < 0.003, "a common drift is in neither's difference", b)
    t.equal(str(b.energy_change).split(" ±")[0], "-50.00", f"a change prints in percent: {b.energy_change}")
    t.equal([str(_comparison.Change(*x)) for x in ((-0.6656, 0.004), (1.0, 0.05), (0.0, 0.0), (math.nan,))],
            ["-66.56 ± 0.40 %", "+100.0 ± 5.0 %", "+0.0 ± 0 %", "unknown"], "… a saving, a doubling, none")
    t.equal((a.energy_change, a.throughput_change, a.energy_difference_j, b.accuracy), (None, None, None, 0.9), "the first one has no difference")
    t.near(b.power_w.value, b.energy_j.value * 50, 1e-9, "power")
    quick = _comparison.outcome_of("b", [turn(1.0, seconds=1.0 + 0.01 * i) for i in range(4)], [turn(1.0, seconds=2.0 + 0.02 * i) for i in range(4)], None)
    t.ok(abs(quick.throughput_change.value - 1) < 1e-9 and quick.throughput_change.half < 1e-9, "half the time: twice the throughput", quick)
    same = [turn(2.0, half=0.1) for _ in range(4)]
    one = _comparison.outcome_of("a", same, None, None)
    t.near(one.energy_j.half, 0.05, 1e-9, "values that agree: what the sensors leave open")
    two = _comparison.outcome_of("b", same, same, None)
    t.near(two.energy_difference_j.half, 0.05 * math.sqrt(2), 1e-9, "of a difference: of both")
    shared = [Turn(100, 100.0, 2.0, 200.0, half=Half(0.8, 0.6), apart_j=1.0) for _ in range(4)]
    two = _comparison.outcome_of("b", shared, shared, None)
    t.near(two.energy_j.half, math.hypot(0.008, 0.003), 1e-12, "what the windows of a sensor share is no less in four rounds")
    t.near(two.energy_difference_j.half, 0.005 * math.sqrt(2), 1e-12, "… but a difference has no more of it")
    t.ok(math.isnan(_comparison.outcome_of("a", same[:1], None, None).energy_j.half), "one round has no interval")
    t.ok(json.dumps(_comparison._row(_comparison.outcome_of("a", same[:1], None, math.nan)), allow_nan=False), "a row is JSON, of an accuracy of NaN, too")
    timed = [Turn(100, 100.0, 2.0 + 0.01 * i) for i in range(4)]
    o = _comparison.outcome_of("b", timed, timed, None)
    t.ok(math.isnan(o.energy_j.value) and math.isnan(o.energy_change.value) and abs(o.throughput_change.value) < 1e-9, "no energy: time alone", o)


def coverage(t):
    """As compare() ends: with five rounds and more, by its own interval."""
    pick = random.Random(16)
    for noise, within in ((0.002, 0.01), (0.01, 0.01), (0.03, 0.03), (0.03, 0.02)):
        held, change_held, rounds = 0, 0, 0
        trials = 200
        for _ in range(trials):
            first, second = [], []
            while True:
                drift = pick.gauss(0, 0.02)    # of the board's temperature
                first.append(turn(1.0 * (1 + drift) * (1 + pick.gauss(0, noise))))
                second.append(turn(0.7 * (1 + drift) * (1 + pick.gauss(0, noise))))
                if len(first) < _compare.LEAST_ROUNDS:
                    continue
                o = [_comparison.outcome_of("a", first, None, None), _comparison.outcome_of("b", second, first, None)]
                if _comparison.worst_of(o) <= within or len(first) >= 60:
                    break
            held += abs(o[1].energy_j.value - 0.7) <= o[1].energy_j.half
            change_held += abs(o[1].energy_change.value + 0.3) <= o[1].energy_change.half
            rounds += len(first)
        t.ok(min(held, change_held) >= 0.92 * trials, f"noise of {100 * noise:g} %: {held} and {change_held} of {trials} intervals hold the truth, "
             f"{rounds / trials:.1f} rounds")


def order(t):
    """Forth and back, with a warm-up, until it is sure or its time is over."""
    said = []
    calls = {name: (lambda name=name: (said.append(name), time.sleep(0.001))) for name in "abc"}
    accuracy = {"a": 0.9, "b": 0.8, "c": 0.7}
    with underwatt.Monitor(null=True) as m:
        c = underwatt.compare({n: underwatt.Variant(f, 4, lambda n=n: accuracy[n]) for n, f in calls.items()}, per="token", window_s=0.01, time_s=30, within=0.9, monitor=m)
    runs = [name for i, name in enumerate(said) if i == 0 or said[i - 1] != name]
    t.equal("".join(runs[:6]), "abcabc", "each is warmed up twice")
    t.ok("".join(runs[6:]).startswith("abcbabcba"), "then a b c c b a, a b c c b a", "".join(runs))
    t.equal((len(c), [o.name for o in c], c["b"].accuracy, c.measured in ("time", "rapl"), c.simulated), (3, ["a", "b", "c"], 0.8, True, False), "what comes of it")
    t.near(c["a"].throughput.value * c["a"].latency_s.value, 4, 1e-9, "tokens per second")
    began = time.monotonic()
    with underwatt.Monitor(null=True) as m:
        c = underwatt.compare({"a": calls["a"], "b": calls["b"]}, window_s=0.05, time_s=5, within=1e-9, monitor=m)
    t.ok(not c.reached and c.rounds >= 2 and "the time was over" in c.line(), f"its time is over after {time.monotonic() - began:.1f} s", c.line())
    one = underwatt.compare({"a": calls["a"]}, window_s=0.02, time_s=30, within=0.9, device="cpu")
    t.ok(len(one) == 1 and one.reached and "against" not in str(one), "one variant alone", str(one))


def failing(t):
    """A round whose energy is unknown is left out, two in a row are an error."""
    def lost(which):
        asked = []

        def turn_of(gauge, readings, count):
            asked.append(count)
            if len(asked) in which:
                raise underwatt.NoData("the daemon was restarted")
            return real(gauge, readings, count)
        return turn_of

    real, variants = _compare._Gauge.turn, {n: (lambda: time.sleep(0.001)) for n in "ab"}
    for calls, good in (((3,), True), ((3, 6), True), ((3, 4), False)):    # the first two are the warm-up's
        _compare._Gauge.turn = lost(calls)
        try:
            c = underwatt.compare(variants, window_s=0.01, time_s=30, within=0.9, device="cpu")
            t.ok(good and c.rounds >= _compare.LEAST_ROUNDS, f"windows {calls} unknown: {c.rounds} rounds", c.line())
        except underwatt.NoData as e:
            t.ok(not good, f"windows {calls} unknown: {e}")
        finally:
            _compare._Gauge.turn = real


def refused(t):
    def nothing():
        return None

    for name, variants, more, want in (
            ("no dictionary", [nothing], {}, "variants: "), ("nothing", {}, {}, "variants: "), ("no name", {3: nothing}, {}, "3 is not a name"),
            ("no callable", {"a": 3}, {}, "'a'"), ("no count", {"a": underwatt.Variant(nothing, 0)}, {}, "count 0"),
            ("a count of text", {"a": underwatt.Variant(nothing, "8")}, {}, "count '8'"), ("no accuracy", {"a": underwatt.Variant(nothing, 1, 0.9)}, {}, "accuracy 0.9"),
            ("per", {"a": nothing}, {"per": ""}, "per ''"), ("within", {"a": nothing}, {"within": 0}, "within 0"), ("within NaN", {"a": nothing}, {"within": math.nan}, "within nan"),
            ("time", {"a": nothing}, {"time_s": -1}, "time_s -1"), ("a window of more", {"a": nothing}, {"window_s": 200}, "window_s 200"),
            ("device", {"a": nothing}, {"device": "tpu"}, "device 'tpu'"), ("null and gpu", {"a": nothing}, {"device": "gpu"}, "null monitor")):
        text = raised(underwatt.UnderwattError, variants, **{"monitor": NULL, **more})
        t.ok(text and want in text and "\n" not in text, f"{name}: {text}")
    text = raised(underwatt.InvalidValue, {"a": lambda: time.sleep(0.2)}, window_s=0.3, time_s=0.5, monitor=NULL)
    t.ok(text and text.startswith("time_s 0.5: warm-up and 2 rounds need "), f"no time: {text}")
    text = raised(underwatt.InvalidValue, {"a": underwatt.Variant(lambda: time.sleep(0.001), 1, lambda: "good")}, window_s=0.01, within=0.9, monitor=NULL)
    t.ok(text and "returned 'good'" in text, f"accuracy: {text}")
    t.ok(raised(ZeroDivisionError, {"a": lambda: 1 / 0}, monitor=NULL), "an error of the variant is its own")


NULL = underwatt.Monitor(null=True)


def raised(kind, variants, **more):
    try:
        underwatt.compare(variants, **more)
    except kind as e:
        return str(e) or True
    return None


def processors(t, folder):
    """Counters that move with each iteration: by 2 J and by 1.5 J, and once beyond their range."""
    range_uj = 300_000_000
    zones = [pathlib.Path(folder, f"intel-rapl:{z}") for z in ("0", "0:0", "0:1")]
    for zone, name in zip(zones, ("package-0", "dram", "core")):
        zone.mkdir()
        for key, text in (("name", name), ("max_energy_range_uj", str(range_uj)), ("energy_uj", "299000000")):
            (zone / key).write_text(text + "\n")

    def spends(package, dram):
        def call():
            for zone, uj in zip(zones, (package, dram, 7)):
                now = int((zone / "energy_uj").read_text())
                (zone / "energy_uj").write_text(f"{(now + uj) % range_uj}\n")
        return call

    _rapl.ROOT, real = pathlib.Path(folder), _rapl.ROOT
    try:
        c = underwatt.compare({"fp32": spends(1_800_000, 200_000), "int8": spends(1_350_000, 150_000)}, window_s=0.02, within=0.5, time_s=30, monitor=NULL)
    finally:
        _rapl.ROOT = real
    t.equal((c.measured, c["fp32"].gpu_j == c["fp32"].gpu_j), ("rapl", False), "counters of processors: labelled as such, no GPU's")
    for name, want in (("fp32", 2.0), ("int8", 1.5)):
        t.near(c[name].energy_j.value, want, 1e-9, f"{name}: {c[name].energy_j.value} J an iteration")
    t.near(c["int8"].energy_change.value, -0.25, 1e-9, "a quarter less")
    t.ok("processors (RAPL)" in str(c) and "GPUs" not in str(c) and all(r["gpu_j"] is None and r["measured"] == "rapl" for r in c.as_rows()), "in text and rows", str(c))


def alone(t):
    p = uwtest.subprocess.run([sys.executable, "-c", ALONE.replace("import json", "import json, pathlib", 1).replace(
        "c = ", "from underwatt import _rapl\n_rapl.ROOT = pathlib.Path('/nowhere')\nc = ", 1)],
        capture_output=True, text=True, timeout=120, env=pyuser.env(UNDERWATT_NVML="/nowhere/libnvidia-ml.so.1"))
    lines = p.stdout.splitlines()
    if not t.ok(p.returncode == 0 and len(lines) >= 2, "without a GPU", p.stdout + p.stderr):
        return
    found, text = json.loads(lines[0])
    t.ok(found["measured"] == "time" and all(v["energy_j"] is None and v["power_w"] is None and v["latency_s"] > 0 for v in found["variants"]), "time alone", found)
    t.ok("time only: no GPU" in text and "energy" not in text and " J" not in text, "and says so", text)
    t.ok(lines[1].startswith("0 "), "device='gpu': NoDevice, one line", lines[1])


def driven(t):
    with uwtest.Node(machine=MACHINE, speed=SPEED) as node:
        p = uwtest.timed("driven workloads", lambda: pyuser.in_world(node, DRIVEN, str(WINDOW_S)))
    if not t.ok(p.returncode == 0, "driven workloads", p.stderr):
        return
    found, true, text, chart, page = json.loads(p.stdout)
    t.ok(found["measured"] == "gpu" and found["simulated"] and found["rounds"] >= 2 and "1 simulated GPU" in text, f"measured: {found['about']}, {found['rounds']} rounds", text)
    by_name = {v["variant"]: v for v in found["variants"]}
    for name, v in by_name.items():
        t.ok(abs(v["energy_j"] - true[name]) <= v["energy_j_half"] + 0.02 * true[name],
             f"{name}: {v['energy_j']:.4f} ± {v['energy_j_half']:.4f} J a sample, true {true[name]:.4f}")
        t.ok(abs(v["gpu_j"] - v["energy_j"]) < 1e-6 * v["energy_j"] or v["cpu_j"] is not None, f"{name}: the GPU's")
    v, want = by_name["validate"], true["validate"] / true["train"] - 1
    t.ok(abs(v["energy_change"] - want) <= v["energy_change_half"] + 0.02, f"the difference: {v['energy_change']:.3f} ± {v['energy_change_half']:.3f}, true {want:.3f}")
    t.ok(len(chart.splitlines()) == 3 and chart.count("█") > 32, "a chart of text", chart)
    root = xml.fromstring(page)
    svg = root.find("{http://www.w3.org/2000/svg}svg")
    t.ok(len(root.findall("table/tr")) == 3 and svg is not None and len(svg.findall("{http://www.w3.org/2000/svg}rect")) == 2 and "<script" not in page, "a page with a table and a chart")


def ends(t):
    """By ^C, and where the daemon is gone for good."""
    with uwtest.Node(board="v100", count=1) as node:
        d = node.daemon()
        for what, word, status in (("SIGINT", "KeyboardInterrupt", -signal.SIGINT), ("the daemon is killed", "DaemonError", 1)):
            p = pyuser.begun_in_world(node, ENDLESS)
            t.equal(p.stdout.readline(), "begun\n", f"{what}: it measures")
            began = time.monotonic()
            if status < 0:
                p.send_signal(signal.SIGINT)
            else:
                d.child.kill()
                d.child.wait()
            got = p.wait(SOON_S)
            said = p.stderr.read()
            t.ok(got == status and word in said.splitlines()[-1], f"{what}: it ends in {time.monotonic() - began:.1f} s", f"{got} {said}")


def main():
    t = uwtest.Tap()
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    figures(t)
    coverage(t)
    order(t)
    failing(t)
    refused(t)
    with tempfile.TemporaryDirectory(prefix="uw-") as folder:
        processors(t, folder)
    alone(t)
    driven(t)
    ends(t)
    t.done()


if __name__ == "__main__":
    main()
