#!/usr/bin/python3
"""How measurements read: text, dictionaries, rows, the page of a notebook; prices, boards of CUDA_VISIBLE_DEVICES, the log's
file, frameworks that are loaded; and the monitor that measures nothing.  Without boards.
"""
import asyncio
import csv
import datetime
import json
import linecache
import math
import os
import pathlib
import re
import sys
import tempfile
import threading
import time
import types
import warnings
import xml.etree.ElementTree as xml
from dataclasses import replace
from unittest import mock

import pyuser  # noqa: F401 - the package's path
import uwtest

import underwatt
from underwatt import _html, _log, _monitor, _sync, _text, _training
from underwatt._results import Device, Energy, Price, Sample

BEGAN = datetime.datetime(2026, 11, 26, 8, 30, tzinfo=datetime.timezone.utc)


def gpu(i, joules, half=1.0, **more):
    return Device(f"V100 <{i}>", f"GPU-{i}", i, energy_j=joules, half_j=half, power_w=joules / 10, method="counter", **more)


def cpu(joules):
    return Device("package-0", kind="cpu", energy_j=joules, half_j=2.0, power_w=joules / 10, method="counter")


def energy(**more):
    known = {"gpus": (gpu(0, 30000.0, 3.0), gpu(1, 6000.0, 4.0)), **more}
    return Energy("epoch", BEGAN, 10.0, **known)


def texts(t):
    for got, want in ((_text.joules(1234.4, 5), "1.2344 kJ ± 0.0050 kJ"), (_text.joules(12344, 50), "12.344 kJ ± 0.050 kJ"),
                      (_text.joules(500, 112), "500 J ± 110 J"), (_text.joules(24.5, 34.47), "25 J ± 34 J"), (_text.joules(5, 0.996), "5.0 J ± 1.0 J"), (_text.joules(0.5), "0.500 J"), (_text.joules(2.5e8), "250.0 MJ"), (_text.joules(math.nan), "unknown"),
                      (_text.joules(0.0), "0 J"), (_text.watts(3.25), "3.250 W"), (_text.watts(math.nan), "unknown"),
                      (_text.seconds(0.01), "0.010 s"), (_text.seconds(math.nan), "unknown"), (_text.seconds(754), "12:34 min"), (_text.seconds(7384), "2:03:04 h")):
        t.equal(got, want, want)
    # The values with which the C side is tested; the package groups thousands and has no digits of 0.
    source = pathlib.Path(uwtest.TOP, "tests/unit/cli/test-figures.c").read_text(encoding="utf-8")
    table = source[source.index("joules[] = {"):source.index("};", source.index("joules[] = {"))]
    values = [(float(v), text) for v, text in re.findall(r'\{(-?[0-9.e]+), +"([^"]+)"\}', table)]
    same = [(v, text) for v, text in values if v != 0 and abs(v) < 1e12]
    t.ok(len(same) >= 10 and all(_text.joules(v) == text for v, text in same), "joules: the words of the C side",
         [(v, text, _text.joules(v)) for v, text in same])
    e = energy(price=Price(0.3, "EUR"), gco2e_kwh=400.0)
    t.equal(str(e), "epoch: 36.0000 kJ ± 0.0070 kJ in 10.00 s, 3,600 W, 2 GPUs (counter), 4 gCO2e, 0.003 EUR", "a measurement in a line")
    for saved, half, want in ((0.123, 0.02, ", saved 12.3 %"), (-0.0002, 0.01, ", saved ~0 %"), (None, None, "")):
        status = underwatt.OptimizerStatus("edp", "holds", "holds 184 W", saved=saved, saved_half=half, job=3)
        t.equal(str(status), f"job 3, goal edp: holds 184 W{want}", f"a status in a line{want}")
    t.equal(str(e.gpus[1]), "gpu1: 6.0000 kJ ± 0.0040 kJ, 600.0 W (counter)", "a board in a line")
    reset = gpu(1, 6000.0, 4.0, why="reset, short")
    t.equal(str(reset), "gpu1: 6.0000 kJ ± 0.0040 kJ, 600.0 W (counter; reset, short)", "… with the reasons for a wide interval")
    t.ok("<td>counter; reset, short</td>" in energy(gpus=(reset,))._repr_html_(), "… in a page, too")
    e = energy(gpus=(reset, Device("V100", "GPU-2", 2, why="it hangs")))
    t.equal(str(e), "epoch: 10.00 s, energy unknown: it hangs", "the reason is that of the board that is unknown")
    e = energy(processors=(cpu(1000.0), Device("dram-0", kind="dram", why="root's")))
    t.ok("CPU 1.000 kJ" in str(e) and "DRAM" not in str(e), "processors where they are known", str(e))
    e = energy(gpus=(gpu(0, 30000.0), Device("V100", "GPU-1", 1, why="it hangs")))
    t.equal(str(e), "epoch: 10.00 s, energy unknown: it hangs", "unknown, and why")
    t.equal(str(e.gpus[1]), "gpu1: unknown (it hangs)", "which board")


def sums(t):
    e = energy(processors=(cpu(1000.0), Device("dram-0", kind="dram", why="root's"), Device("psys", kind="other", energy_j=5.0)))
    t.equal((e.gpu_j, e.cpu_j, e.total_j, float(e), e.power_w), (36000.0, 1000.0, 37000.0, 37000.0, 3700.0), "sums")
    t.ok(math.isnan(e.dram_j) and abs(e.half_j - 9.0) < 1e-9, "of what is known: halves below 0.4 % are the sensor's, and add up", e.half_j)
    wide = energy(gpus=(gpu(0, 1000.0, 5.0), gpu(1, 2000.0, 17.0)))
    t.near(wide.half_j, math.hypot(12.0, 3.0, 15.0), 1e-9, "… of counters: 0.4 % adds up, the rest in squares")
    for why, half in (("short", math.hypot(12.0, 3.0, 15.0)), ("reset", 22.0), ("short, stuck", 22.0)):
        bad = energy(gpus=(gpu(0, 1000.0, 5.0, why=why), gpu(1, 2000.0, 17.0, why=why)))
        t.near(bad.half_j, half, 1e-9, f"… with '{why}': readings had {'a' if half == 22.0 else 'no'} part in the energy")
    read = energy(gpus=tuple(replace(g, method="integrated") for g in wide.gpus))
    t.near(read.half_j, 22.0, 1e-9, "… of readings: all of it adds up")
    t.equal((e.gco2e, e.cost), (None, None), "nothing where no factor is known")
    e = energy(gpus=(gpu(0, 1.0), Device("V100", "GPU-1", 1)), gco2e_kwh=400.0)
    t.ok(all(map(math.isnan, (e.total_j, e.gpu_j, e.half_j, e.power_w))) and e.gco2e is None, "a board that is unknown: so is the sum", e)
    row = e.as_row()
    t.equal((row["total_j"], row["gpu0_j"], row["gpu1_j"], row["gco2e"]), (None, 1.0, None, None), "a row has None there, and what is known")
    d = energy().as_dict()
    t.equal((d["began_utc"], d["total_j"], [g["label"] for g in d["gpus"]], d["gpus"][0]["half_j"]),
            ("2026-11-26T08:30:00+00:00", 36000.0, ["gpu0", "gpu1"], 3.0), "a dictionary of plain values")
    odd = Energy("epoch", BEGAN, math.nan, gpus=(gpu(0, math.inf, math.inf, samples=(Sample(1.0, math.nan, 1.0),)),)).as_dict()
    t.ok(json.dumps(odd, allow_nan=False) and odd["time_s"] is odd["total_j"] is odd["gpus"][0]["half_j"] is odd["gpus"][0]["samples"][0]["power_w"] is None,
         "what is no finite number is None: JSON has neither NaN nor Infinity", odd)


def pages(t):
    samples = tuple(Sample((i + 1) / 100, 100.0 + i % 2 * 80, 0.01) for i in range(1000))
    joined = _html.means(samples, 0.5)
    t.ok(len(joined) == 20 and all(abs(s.power_w - 140) < 1e-9 for s in joined) and joined[-1].time_s == 10.0, "a chart's means have the same energy", joined[:3])
    t.equal(_html.means((Sample(1.0, 100.0, 1.0), Sample(5.0, 200.0, 1.0)), 9.0), [Sample(5.0, 150.0, 2.0)], "a gap is in no mean")
    for name, e, want in (("bars", energy(processors=(cpu(10.0),)), "rect"), ("lines", energy(gpus=(gpu(0, 1.0, samples=samples),)), "polyline")):
        page = xml.fromstring(e._repr_html_())
        svg = page.find("{http://www.w3.org/2000/svg}svg")
        drawn = [] if svg is None else svg.findall(f"{{http://www.w3.org/2000/svg}}{want}")
        t.ok(len(page.findall("table/tr")) == 1 + len(e.gpus) + len(e.processors) and drawn, f"a page with a table and a chart of {want}")
        t.ok("<script" not in e._repr_html_() and "V100 &lt;0&gt;" in e._repr_html_(), f"{name}: no script, names escaped")
    t.ok(">2,000 J<" in energy(gpus=(gpu(0, 1500.0),))._repr_html_(), "figures at an axis have no exponent")
    nothing = energy(gpus=(Device("V100", "GPU-0", 0, why="<gone>"),))._repr_html_()
    t.ok(xml.fromstring(nothing) is not None and "&lt;gone&gt;" in nothing, "nothing known: still a page", nothing)


def choices(t):
    boards = tuple(underwatt.Board(i, f"GPU-{name}", "V100", True, None) for i, name in enumerate(("aa1", "aa2", "b3")))
    for text, want in ((None, [0, 1, 2]), ("1,0", [1, 0]), ("2", [2]), ("", []), ("GPU-b3,0", [2, 0]), ("GPU-aa", []),
                       ("0,-1,1", [0]), ("0,9,1", [0]), ("1,1", [1]), (" 1 , 2", [1, 2])):
        t.equal([b.index for b in _monitor.visible(boards, text)], want, f"CUDA_VISIBLE_DEVICES={text!r}")
    part = (underwatt.Board(0, "GPU-aa1", "V100", True, None, True), *boards[1:])
    for text, want in (("0,1", [1, 2]), ("2", []), ("GPU-aa1", [0])):
        t.equal([b.index for b in _monitor.visible(part, text)], want, f"another job has board 0: CUDA_VISIBLE_DEVICES={text}")
    t.equal([b.index for b in _monitor.chosen(boards, ["GPU-b3", 1])], [2, 1], "boards by UUID and number")
    t.equal([[b.index for b in _monitor.chosen(boards, one)] for one in ("GPU-b3", 1)], [[2], [1]], "one UUID or number alone")
    for wrong in (3, [3], ["GPU-c"], [], "all", "12"):
        t.ok(raises(underwatt.InvalidValue, _monitor.chosen, boards, wrong), f"no board: {wrong}")
    t.equal(raises(underwatt.InvalidValue, _monitor.chosen, boards, "0"),
            "gpus: '0' is not a board: give numbers (0..2), as in gpus=[0], or UUIDs", "a number as text: what to give")
    t.equal([_monitor.price_of(p) for p in (None, 0.3, "0.30 EUR", Price(1.0, "USD"))],
            [None, Price(0.3), Price(0.3, "EUR"), Price(1.0, "USD")], "prices")
    t.ok(raises(underwatt.InvalidValue, _monitor.price_of, "cheap"), "no price")
    t.equal([_monitor.signal_price(s) for s in ((0.3, "EUR/kWh"), (80.0, "EUR/MWh"), (1.0, "W"), None)],
            [Price(0.3, "EUR"), Price(0.08, "EUR"), None, None], "prices of signals")
    for wrong in (-0.3, "0.30 EUR EUR", "-0.30 EUR", "nan", "inf EUR", Price(-0.1, "USD")):
        said = raises(underwatt.InvalidValue, _monitor.price_of, wrong)
        t.ok(said and f"price_kwh '{wrong}'" in said, f"a price that is none: {said}")
    t.equal([_monitor.gco2e_of(g) for g in (None, 0, 400, "1.5")], [None, 0.0, 400.0, 1.5], "grams a kWh")
    for wrong in ("400 g/kWh", float("nan"), [400], -1, "-1.5", "inf"):
        said = raises(underwatt.InvalidValue, _monitor.gco2e_of, wrong)
        t.ok(said and f"gco2e_kwh '{wrong}'" in said, f"no grams: {said}")
    t.ok("-1" in raises(underwatt.InvalidValue, lambda: underwatt.Monitor(gco2e_kwh=-1, null=True)), "nor of a monitor")
    t.ok("-0.3" in raises(underwatt.InvalidValue, lambda: underwatt.Monitor(price_kwh=-0.3, null=True)), "nor a price")


def options(t):
    """Of a callback, when it is made."""
    for wrong, want in (({"gpus": [-1]}, "gpus: -1"), ({"gpus": 1.5}, "gpus: 1.5"), ({"gpus": [0, None]}, "gpus: None"), ({"gpus": []}, "gpus is empty"),
                        ({"gpus": ["0"]}, "gpus: '0'"), ({"gpus": True}, "gpus: True"), ({"gco2e_kwh": -1}, "gco2e_kwh '-1'"), ({"boards": "bogus"}, "boards: 'bogus'"),
                        ({"boards": "rapl,x=/y"}, "boards: 'x=/y'"), ({"boards": 7}, "boards 7"), ({"socket": 7}, "socket 7"), ({"socket": ""}, "socket ''"),
                        ({"local": "no"}, "local 'no'"), ({"null": 1}, "null 1"), ({"price": 1}, "option 'price'")):
        said = raises(underwatt.InvalidValue, lambda: _training.Recorder(options=wrong))
        t.ok(said and said.startswith(want), f"{wrong}: {said}")
    right = {"gpus": (i for i in (0, "GPU-b3")), "gco2e_kwh": 400, "boards": "nvml=/x,rapl", "socket": "/run/s", "local": True, "null": False}
    t.equal(_training.Recorder(options=right)._options["gpus"], [0, "GPU-b3"], "what may be right on a node")


def raises(kind, call, *args):
    try:
        call(*args)
    except kind as e:
        return str(e) or True
    return False


def syncs(t):
    asked = []
    cuda = types.SimpleNamespace(is_initialized=lambda: bool(asked), device_count=lambda: 3, synchronize=lambda *d: asked.append(("torch", *d)))
    torch = types.SimpleNamespace(cuda=cuda, _C=types.SimpleNamespace(_cuda_hasPrimaryContext=lambda d: d != 1))
    cupy = types.SimpleNamespace(cuda=types.SimpleNamespace(runtime=types.SimpleNamespace(deviceSynchronize=lambda: asked.append("cupy"))))
    sync = _sync.sync_of("auto")
    sync()
    t.equal((asked, "torch" in sys.modules, "jax" in sys.modules), ([], False, False), "nothing is imported")
    sys.modules["torch"] = torch
    sync()
    t.equal(asked, [], "torch that has used no GPU is not asked")
    asked.append("begun")
    sys.modules["cupy"] = cupy
    sync()
    t.equal(asked, ["begun", ("torch", 0), ("torch", 2), "cupy"], "frameworks that are loaded, each GPU that torch uses")
    jax = types.SimpleNamespace(local_devices=lambda: ["d0"], device_put=lambda x, d: Array(asked, d))
    sys.modules.update({"jax": jax, "jax._src.xla_bridge": types.SimpleNamespace(backends_are_initialized=lambda: "jax" in asked)})
    _sync.sync_of("jax")()
    t.ok("d0" not in asked, "jax that has used no device is not asked")
    asked.append("jax")
    _sync.sync_of("jax")()
    t.equal(asked[-1], "d0", "jax, by what is put on each device last")
    for name in ("torch", "cupy", "jax", "jax._src.xla_bridge"):
        del sys.modules[name]
    t.ok(raises(underwatt.InvalidValue, _sync.sync_of, "tensorflow"), "no such framework")


class Array:
    def __init__(self, asked, device):
        self.asked, self.device = asked, device

    def __add__(self, other):
        return self

    def block_until_ready(self):
        self.asked.append(self.device)


def logs(t, folder):
    path = os.path.join(folder, "run.csv")
    for _ in range(2):
        log = _log.Log(path, ["gpu0", "gpu1"])
        log.write(energy())
        log.write(Energy("bad, \"one\"", BEGAN, 1.0), "it\nbroke")
        log.close()
    with open(path, newline="", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    t.equal([(r["name"], r["total_j"], r["gpu1_j"], r["why"]) for r in rows],
            2 * [("epoch", "36000.0", "6000.0", ""), ('bad, "one"', "", "", "it\nbroke")], "a log has one head, and a row a window")
    t.ok(raises(underwatt.InvalidValue, _log.Log, path, ["gpu0"]), "of other boards: refused")
    t.ok(raises(OSError, _log.Log, "/nowhere/run.csv", []), "no such folder: at once")


def nothing(t):
    monitor = underwatt.configure(null=True)
    with underwatt.window("a") as w:
        t.ok(not w.ready and raises(underwatt.UnderwattError, w.wait), "a window that is open is not ready")
    t.ok(w.ready and w.energy.source == "null" and math.isnan(w.energy.total_j) and w.energy.time_s > 0,
         "the null monitor measures time alone", w.energy)
    t.ok("not measured" in str(w.energy) and w.energy.as_dict()["total_j"] is None, "and says so", w.energy)
    t.ok(raises(underwatt.UnderwattError, w.begin), "a window is used once")

    @underwatt.track
    def f(x):
        """Twice."""
        return 2 * x

    @underwatt.track("other")
    def g():
        return f(1)

    t.equal((f(2), g(), f.__name__, f.__doc__, f.windows[0].name, len(f.windows), g.windows[0].name),
            (4, 2, "f", "Twice.", "nothing.<locals>.f", 2, "other"), "functions that are tracked")
    tracks(t, monitor)
    generators(t, monitor)
    never = monitor.window("never")
    t.equal((raises(underwatt.UnderwattError, lambda: never.energy), never.ready),
            ("window 'never' has not begun: enter it, or call begin()", False), "a window that was never entered")
    never.begin()
    t.equal(raises(underwatt.UnderwattError, lambda: never.energy), "window 'never' has not ended", "nor ended")
    monitor.close()
    t.ok(raises(underwatt.UnderwattError, monitor.window), "a monitor that is closed begins none")


def tracks(t, monitor):
    """The forms of the decorator, of the module and of a monitor."""
    def h(x):
        return x + 1

    for whose, track in (("underwatt", underwatt.track), ("monitor", monitor.track)):
        for form, want in ((track, "tracks.<locals>.h"), (track(), "tracks.<locals>.h"), (track("n"), "n"), (track(name="n"), "n")):
            tracked = form(h)
            t.equal((tracked(1), [w.name for w in tracked.windows]), (2, [want]), f"{whose}.track: a function is run, and named {want}")
        t.equal(raises(underwatt.InvalidValue, track, 7), "track: 7 is neither a function nor a name", f"{whose}.track of neither")


def generators(t, monitor):
    """The window of a generator lasts from its first item to its end; it is the program's generator still."""
    closed = []

    @monitor.track
    def numbers(n):
        try:
            for i in range(n):
                try:
                    time.sleep((yield i) or 0)
                except KeyError:
                    yield "caught"
            return "returned"
        finally:
            closed.append(n)

    def whole():
        return (yield from numbers(2))

    items = whole()
    time.sleep(0.05)
    t.equal((len(numbers.windows), next(items)), (0, 0), "a generator that is not asked yet has no window")
    time.sleep(0.2)
    window = numbers.windows[0]
    t.equal((window._state, items.throw(KeyError()), items.send(None)), ("open", "caught", 1), "what it is thrown and sent comes to it")
    t.equal(raises_value(items, 0.2), "returned", "its value comes back")
    t.ok(window._state != "open" and 0.4 < window.seconds, f"its window has its iteration: {window.seconds:.2f} s")
    items = numbers(3)
    next(items)
    items.close()
    t.equal((closed, numbers.windows[1]._state != "open"), ([2, 3], True), "close() ends both")
    items = numbers(4)
    next(items)
    t.ok(raises(ZeroDivisionError, items.throw, ZeroDivisionError("theirs")) == "theirs" and numbers.windows[2]._state != "open", "an exception passes")
    asyncio.run(async_generators(t, monitor))


def raises_value(items, sent):
    try:
        items.send(sent)
    except StopIteration as e:
        return e.value
    return None


async def async_generators(t, monitor):
    closed = []

    @monitor.track
    async def numbers(n):
        try:
            for i in range(n):
                try:
                    await asyncio.sleep((yield i) or 0)
                except KeyError:
                    yield "caught"
        finally:
            await asyncio.sleep(0)
            closed.append(n)

    items = numbers(2)
    told = [await items.asend(None), await items.asend(0.2), await items.athrow(KeyError()), [i async for i in items]]
    window = numbers.windows[0]
    t.equal((told, closed), ([0, 1, "caught", []], [2]), "an asynchronous generator: what it is sent and thrown")
    t.ok(window._state != "open" and 0.19 < window.seconds, f"and its iteration: {window.seconds:.2f} s")
    items = numbers(3)
    await items.asend(None)
    await items.aclose()
    t.equal((closed, numbers.windows[1]._state != "open"), ([2, 3], True), "aclose() ends both")


class Watts:
    """Stands for a monitor, and for its windows: 100 W; a window without length has no energy."""

    def __init__(self, clock):
        self.clock, self.ready, self._warned, self.boards = clock, True, False, ()

    def window(self, _):
        return Watts(self.clock)

    def _start(self, sync):
        self.began = self.clock[0]
        return self

    def _end(self, sync):
        self.time_s = self.clock[0] - self.began

    def wait(self, _):
        if not self.time_s:
            raise underwatt.NoData("no reading")
        return Energy("w", datetime.datetime.now(datetime.timezone.utc), self.time_s, gpus=(Device("g", energy_j=100 * self.time_s, half_j=0.0),))


def hang(t):
    """A daemon keeps the thread that cuts a training's windows from 1 s to 3 s; a step takes 0.1 s."""
    clock, each, total = [0.0], [], {}
    with mock.patch.object(threading, "Thread"), mock.patch.object(time, "monotonic", lambda: clock[0]):
        session = _training._Session(Watts(clock), 0.0)
        for i in range(1, 61):
            clock[0] = i / 10
            session.mark("train", _training.Counts(steps=1))
            if not 10 < i < 30:
                while session._marks:
                    session._cut(*session._marks.popleft())
                with warnings.catch_warnings(record=True):
                    session._collect()
                total = session.entry()
                each += [total["energy_per_step_j"]] if "energy_per_step_j" in total else []
    t.ok(len(each) > 30 and max(abs(j - 10) for j in each) < 1e-6, "after a hang: joules a step are those of the steps", each)
    t.near(total["energy_total_j"], 590, 1e-6, "and the total has the hang, too")


def blames(t):
    """The warning that windows are not measured is about the user's line, however the window begins."""
    def block(m):
        with m.window("a"):  # here
            pass

    def explicit(m):
        m.window("a").begin()  # here

    def decorated(m):
        @m.track
        def call():
            pass
        call()  # here

    def generator(m):
        @m.track
        def numbers():
            yield 1
        next(numbers())  # here

    async def awaited(m):
        @m.track
        async def call():
            pass
        await call()  # here

    for begins in (block, explicit, decorated, generator, lambda m: asyncio.run(awaited(m))):
        m = underwatt.Monitor(null=True)
        m._open_node = m._here = mock.Mock(side_effect=underwatt.NoData("a daemon that hangs"))
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            begins(m)
        t.equal([(w.category, str(w.message), "# here" in linecache.getline(w.filename, w.lineno)) for w in found],
                [(RuntimeWarning, "underwatt: windows are not measured: a daemon that hangs", True)], f"{begins.__name__}: a warning of the user's line")
        m.close()


def main():
    t = uwtest.Tap()
    hang(t)
    blames(t)
    texts(t)
    sums(t)
    pages(t)
    choices(t)
    options(t)
    syncs(t)
    with tempfile.TemporaryDirectory(prefix="uw-") as folder:
        logs(t, folder)
    nothing(t)
    t.done()


if __name__ == "__main__":
    main()
