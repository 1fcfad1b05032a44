#!/usr/bin/python3
"""A training loop controlled by commands, for bench/real/session.py.

    train.py FOLDER [COMMAND...]

Each COMMAND (else each line of standard input) is LABEL:MODE:SECONDS; they run one after the
other.  A line of JSON on standard output has the measurements of each, FOLDER/steps.csv gets
begin and end of each step.  Modes:

    plain       steps that end with loss.item()
    norest      steps whose loss is read every 50 steps
    busy        2 s of steps and 2 s of nothing, in turn
    accum       steps of 16 micro-batches and a wait of 0.15 s for data
    window      each step a window of underwatt.Monitor (dwindow: that of a daemon)
    zeus        the same by ZeusMonitor, as Zeus' users write it
    short=S     windows of S seconds round plain steps (dshort=S)

The board is only read.  UNDERWATT_REAL_SOCKET names the daemon's socket.  In a simulated
world a step is a wait, so that the script can be tried without PyTorch.
"""

from __future__ import annotations

import json
import math
import os
import pathlib
import statistics
import sys
import threading
import time
from collections.abc import Iterable
from typing import Any

from nvml import ENERGY, TICK, Found, Nvml

SIMULATED = "UNDERWATT_SIM_STATE" in os.environ
MICRO, DATA_S, BUSY_S, EDGE_S = 16, 0.15, 2.0, 0.25
NO_TORCH = 3  # exit status
Spans = list[tuple[float, float]]


class Loop:
    """Training steps of a transformer with 8 layers in bf16."""

    def __init__(self) -> None:
        import torch

        torch.manual_seed(1)
        layer = torch.nn.TransformerEncoderLayer(2048, 16, 8192, dropout=0.0, batch_first=True, norm_first=True)
        encoder = torch.nn.TransformerEncoder(layer, 8, enable_nested_tensor=False)
        self.model: Any = encoder.to("cuda", torch.bfloat16)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-5, fused=True)
        self.data = torch.randn(8, 1024, 2048, dtype=torch.bfloat16).to("cuda")
        self.n = 0

    def step(self, micro: int = 1, read: bool = True) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        for _ in range(micro):
            loss = self.model(self.data).float().pow(2).mean()
            loss.backward()
        self.optimizer.step()
        self.n += 1
        if read or self.n % 50 == 0:
            loss.item()


class SimulatedLoop(Loop):
    def __init__(self) -> None:
        self.n = 0

    def step(self, micro: int = 1, read: bool = True) -> None:
        time.sleep(0.01 * (2 + micro / 8))


class Edges(threading.Thread):
    """The time and the value in joules of the next change of the board's energy counter."""

    def __init__(self, nvml: Nvml) -> None:
        super().__init__()
        self.nvml, self.at, self.energy_j = nvml, 0.0, math.nan
        self.start()

    def run(self) -> None:
        f = self.nvml.fields(ENERGY)
        self.nvml.read(f)
        was, end = f[0].value, time.monotonic() + EDGE_S
        while time.monotonic() < end:
            time.sleep(0.0005)
            t = time.monotonic()
            self.nvml.read(f)
            if f[0].value != was:
                self.at, self.energy_j = (t + time.monotonic()) / 2, f[0].value / 1e3
                return


def watts_between(first: Edges, last: Edges) -> float | None:
    if not first.at or not last.at or last.at <= first.at:
        return None
    return (last.energy_j - first.energy_j) / (last.at - first.at)


def cover(spans: Spans, begin: float, end: float) -> float:
    """The number of these spans between two moments, fractions included."""
    return sum(max(0.0, min(b, end) - max(a, begin)) / (b - a) for a, b in spans if b > a)


class ZeusEnergy:
    """Zeus' measurement with the field names of a window's energy."""

    def __init__(self, m: Any) -> None:
        self.total_j = self.gpu_j = float(m.total_energy)
        self.half_j, self.time_s, self.method = math.nan, float(m.time), "zeus"


class ZeusWindow:
    def __init__(self, m: Any) -> None:
        self.m = m

    @property
    def energy(self) -> ZeusEnergy:
        return ZeusEnergy(self.m)


Windows = list[tuple[Any, float, float]]


class Block:
    """Runs steps for some seconds between two changes of the counter."""

    def __init__(self, loop: Loop, nvml: Nvml) -> None:
        self.loop, self.nvml = loop, nvml
        self.steps: Spans = []
        self.windows: Windows = []

    def run(self, seconds: float, mode: str, monitor: Any) -> Found:
        begin, cpu = time.monotonic(), time.process_time()
        end, first, last = begin + seconds, Edges(self.nvml), None
        while (now := time.monotonic()) < end:
            if last is None and now > end - EDGE_S:
                last = Edges(self.nvml)
            if mode == "busy" and int((now - begin) / BUSY_S) % 2:
                time.sleep(BUSY_S - (now - begin) % BUSY_S)
                continue
            self.one(mode, monitor)
            self.steps.append((now, time.monotonic()))
        cpu = time.process_time() - cpu
        last = last or Edges(self.nvml)
        first.join()
        last.join()
        return self.told(first, last, cpu, time.monotonic() - begin)

    def one(self, mode: str, monitor: Any) -> None:
        t = time.monotonic()
        if mode == "zeus":
            monitor.begin_window("step", sync_execution=not SIMULATED)
            self.loop.step()
            self.windows.append(
                (ZeusWindow(monitor.end_window("step", sync_execution=not SIMULATED)), t, time.monotonic())
            )
        elif monitor is not None:
            with monitor.window() as w:
                self.loop.step()
            self.windows.append((w, t, time.monotonic()))
        elif mode == "accum":
            time.sleep(DATA_S)
            self.loop.step(MICRO)
        else:
            self.loop.step(read=mode != "norest")

    def told(self, first: Edges, last: Edges, cpu: float, seconds: float) -> Found:
        spans = sorted(b - a for a, b in self.steps)
        n = len(spans)
        found: Found = {"steps": n, "cpu_percent": round(100 * cpu / seconds, 1)}
        if n > 1:
            found["mean_ms"], found["sd_ms"] = 1e3 * statistics.mean(spans), 1e3 * statistics.stdev(spans)
            found["p50_ms"], found["p99_ms"] = 1e3 * spans[n // 2], 1e3 * spans[n * 99 // 100]
        watts = watts_between(first, last)
        if n and watts is not None:
            joules, inside = last.energy_j - first.energy_j, cover(self.steps, first.at, last.at)
            found.update(edges=[first.at, last.at], counter_j=joules, counter_w=watts)
            found["j_a_step"] = joules / inside if inside else None
        return found


def energy_of(w: Any, a: float, b: float) -> tuple[Any, ...]:
    try:
        e = w.energy
    except Exception as error:  # report every error, but end the run on none
        return (math.nan, math.nan, b - a, f"{type(error).__name__}: {error}", a, b, math.nan)
    return (e.total_j, e.half_j, e.time_s, e.method, a, b, e.gpu_j)


def energies(windows: Windows, watts: float | None, begin: float = 0.0) -> Found:
    """The monitor's figures of the windows that began after a moment, compared with the counter's mean power."""
    told, waited = [], []
    for w, a, b in windows:
        if a >= begin:
            t = time.monotonic()
            told.append(energy_of(w, a, b))
            waited.append(time.monotonic() - t)
    good = [x for x in told if not math.isnan(x[6])]
    methods: dict[str, int] = {}
    for x in told:
        methods[x[3]] = methods.get(x[3], 0) + 1
    found: Found = {"windows": len(told), "known": len(good), "waited_s": max(waited, default=0.0), "methods": methods}
    if good and watts:
        errors = [100 * (x[6] / (watts * x[2]) - 1) for x in good]
        found.update(
            sum_ratio=sum(x[6] for x in good) / (watts * sum(x[2] for x in good)),
            error_percent_mean=statistics.mean(errors),
            error_percent_sd=statistics.pstdev(errors),
            error_percent_most=max(errors, key=abs),
            half_percent_mean=statistics.mean(100 * x[1] / x[0] for x in good),
            held=sum(abs(x[6] - watts * x[2]) <= x[1] for x in good),
        )
    found["first"] = [[round(v, 4) if isinstance(v, float) else v for v in x] for x in told[:12]]
    return found


def opened(mode: str) -> tuple[Any, Found]:
    import underwatt

    t = time.monotonic()
    monitor: Any
    if mode == "zeus":
        from underwatt.compat.zeus.monitor import ZeusMonitor

        monitor = ZeusMonitor(gpu_indices=[0])
        return monitor, {"open_s": round(time.monotonic() - t, 3)}
    if mode.startswith("d"):
        monitor = underwatt.Monitor(gpus=[0], socket=os.environ["UNDERWATT_REAL_SOCKET"])
    else:
        monitor = underwatt.Monitor(gpus=[0], local=True)
    return monitor, {"source": monitor.source, "open_s": round(time.monotonic() - t, 3)}


def short(loop: Loop, nvml: Nvml, mode: str, length: float, n: int) -> tuple[Found, Spans]:
    """n windows of a length, with a second of steps before the first and after the last."""
    monitor, found = opened(mode)
    windows: Windows = []
    steps: Spans = []

    def until(end: float) -> None:
        while (now := time.monotonic()) < end:
            loop.step()
            steps.append((now, time.monotonic()))

    until(time.monotonic() + 1.5)
    first = Edges(nvml)
    until(time.monotonic() + EDGE_S)
    for _ in range(n):
        with monitor.window() as w:
            a = time.monotonic()
            until(a + length)
        windows.append((w, a, time.monotonic()))
        until(time.monotonic() + 0.13)
    last = Edges(nvml)
    until(time.monotonic() + 1.0)
    first.join()
    last.join()
    watts = watts_between(first, last)
    found.update(counter_w=watts, **energies(windows, watts))
    monitor.close()
    return found, steps


def obey(command: str, folder: pathlib.Path, loop: Loop, nvml: Nvml) -> None:
    label, mode, seconds = command.split(":")
    kind, _, length = mode.partition("=")
    if kind in ("short", "dshort"):
        found, steps = short(loop, nvml, kind, float(length), int(seconds))
    else:
        monitor, about = opened(mode) if "window" in mode or mode == "zeus" else (None, {})
        block = Block(loop, nvml)
        found, steps = block.run(float(seconds), mode, monitor), block.steps
        found.update(about)
        if monitor is not None:
            begin = found.get("edges", [0.0])[0] + min(2.0, float(seconds) / 3)
            found.update(energies(block.windows, found.get("counter_w"), begin))
            if mode != "zeus":
                monitor.close()
    with open(folder / "steps.csv", "a", encoding="utf-8") as f:
        f.writelines(f"{label},{mode},{a:.6f},{b:.6f}\n" for a, b in steps)
    say({"label": label, "mode": mode, **found})


def say(found: Found) -> None:
    print(json.dumps(found), flush=True)


def main() -> int:
    stat = pathlib.Path("/proc/self/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(stat[19]) / TICK
    began, version = time.monotonic() - age, "none: a step is a wait"
    if not SIMULATED:
        try:
            import torch
        except ImportError:
            say({"missing": "PyTorch"})
            return NO_TORCH
        version = torch.__version__
    say({"imported": version, "began": began})
    lines: Iterable[str] = sys.argv[2:] or sys.stdin
    loop: Loop | None = None
    for line in lines:
        if loop is None:
            loop, nvml = SimulatedLoop() if SIMULATED else Loop(), Nvml(0)
            for _ in range(10):
                loop.step()
        if line.strip() == "ready":
            say({"ready": os.getpid()})
        else:
            obey(line.strip(), pathlib.Path(sys.argv[1]), loop, nvml)
    return 0


if __name__ == "__main__":
    sys.exit(main())
