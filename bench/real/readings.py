"""What a session reads of the board itself."""

from __future__ import annotations

import itertools
import math
import pathlib
import statistics
import threading
import time
from collections.abc import Sequence
from types import TracebackType

from nvml import AVERAGE, ENERGY, INSTANT, Found, Nvml, gaps, response

READINGS = ((1, "instant"), (2, "average"), (3, "usage"))


class Timeline:
    """Power ten times a second, from begin to end of the session, as it comes: timeline.csv."""

    def __init__(self, out: pathlib.Path, begin: float) -> None:
        self.path, self.begin, self.stop = out / "timeline.csv", begin, threading.Event()
        self.rows: list[tuple[float, float]] = []
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        nvml = Nvml(0)
        f = nvml.fields(INSTANT)
        with open(self.path, "w", encoding="utf-8", buffering=1) as out:
            out.write("time_s,instant_w\n")
            while not self.stop.wait(0.1):
                nvml.read(f)
                self.rows.append((time.monotonic() - self.begin, f[0].value / 1e3))
                out.write(f"{self.rows[-1][0]:.3f},{self.rows[-1][1]:.3f}\n")

    def end(self) -> list[tuple[float, float]]:
        self.stop.set()
        self.thread.join()
        return self.rows


class Recorder:
    """Power each millisecond (fields and nvmlDeviceGetPowerUsage), and the counter as fast as
    it can be read; or both so many times a second."""

    def __init__(self, out: pathlib.Path, label: str, hz: float | None = None) -> None:
        self.path, self.label, self.wait = out / "sensors.csv", label, 1 / hz if hz else 0.001
        self.power: list[tuple[float, float, float, float]] = []
        self.energy: list[tuple[float, int]] = []
        self.stop = threading.Event()

    def __enter__(self) -> Recorder:
        self.threads = [threading.Thread(target=f, daemon=True) for f in (self._powers, self._energies)]
        for t in self.threads:
            t.start()
        return self

    def _powers(self) -> None:
        nvml = Nvml(0)
        f, usage = nvml.fields(INSTANT, AVERAGE), nvml.calls()["nvmlDeviceGetPowerUsage"]
        while not self.stop.is_set():
            t = time.monotonic()
            nvml.read(f)
            at = (t + time.monotonic()) / 2
            usage()
            self.power.append((at, f[0].value / 1e3, f[1].value / 1e3, nvml.w.value / 1e3))
            time.sleep(self.wait)

    def _energies(self) -> None:
        nvml = Nvml(0)
        f = nvml.fields(ENERGY)
        while not self.stop.is_set():
            t = time.monotonic()
            nvml.read(f)
            self.energy.append(((t + time.monotonic()) / 2, f[0].value))
            time.sleep(self.wait)

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, where: TracebackType | None) -> None:
        self.stop.set()
        for t in self.threads:
            t.join()
        fresh = not self.path.exists()
        with open(self.path, "a", encoding="utf-8") as f:
            if fresh:
                f.write("label,time_s,instant_w,average_w,power_w,energy_j\n")
            rows = [(t, f"{i},{a},{p},") for t, i, a, p in self.power]
            rows += [(t, f",,,{j / 1e3:.3f}") for t, j in self.energy]
            f.writelines(f"{self.label},{t:.6f},{text}\n" for t, text in sorted(rows))

    def joules(self, at: float) -> float | None:
        """What the counter had at a moment: between its changes."""
        pairs = zip(self.energy, self.energy[1:], strict=False)
        edges = [(t, e) for (_, was), (t, e) in pairs if e != was]
        for (a, x), (b, y) in itertools.pairwise(edges):
            if a <= at <= b:
                return (x + (y - x) * (at - a) / (b - a)) / 1e3
        return None

    def against(self, column: int) -> float | None:
        """By how many percent the counter is above the sum of a reading, half a second from both ends."""
        begin, end = self.power[0][0] + 0.5, self.power[-1][0] - 0.5
        a, b = self.joules(begin), self.joules(end)
        rows = zip(self.power, self.power[1:], strict=False)
        inside = sum(r[column] * (s[0] - r[0]) for r, s in rows if begin <= r[0] < end)
        return round(100 * ((b - a) / inside - 1), 2) if a and b and inside else None

    def told(self, busy: Sequence[tuple[float, float]] = ()) -> Found:
        """Periods, units, and how readings follow a load that comes and goes."""
        times = [r[0] for r in self.power]
        found: Found = {"polls": [len(self.power), len(self.energy)]}
        for i, name in READINGS:
            values = [r[i] for r in self.power]
            found[name] = gaps(times, values) or {}
            if busy:
                found[name]["falls"] = response(times, values, [b for _, b in busy], False)
                found[name]["rises"] = response(times, values, [a for a, _ in busy], True)
        t, e = [r[0] for r in self.energy], [r[1] for r in self.energy]
        found["counter"] = gaps(t, e) or {}
        found["counter"]["unit_mj"] = math.gcd(*(y - x for x, y in itertools.pairwise(e)))
        for i, name in READINGS:
            found["counter"][f"against the sum of {name}, percent"] = self.against(i)
        found["usage differs by, W"] = {
            "from instant": statistics.mean(abs(r[3] - r[1]) for r in self.power),
            "from average": statistics.mean(abs(r[3] - r[2]) for r in self.power),
        }
        return found
