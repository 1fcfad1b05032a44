#!/usr/bin/python3
"""What the driver of a real board costs, how its sensors publish, and what watching a
training step costs.  It reads, and sets nothing.

    bench/board.py calls [--n N]            each call of NVML that we make
    bench/board.py sensors [--seconds S]    values while a load comes and goes
    bench/board.py step [--seconds S]       steps with underwattd and without, in turn
    bench/board.py launches                 steps with their launches counted and without

Prints JSON, progress goes to stderr.  `calls` and `sensors` want NVML alone (UNDERWATT_NVML
names another library; `sensors` wants PyTorch for its load), `step` and `launches` want PyTorch and our
programs in build/ (UNDERWATT_BUILD).  underwattd runs with --dry-run and without an
actuator, so no limit can be set.
"""
import argparse
import contextlib
import ctypes
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve()
BUILD = pathlib.Path(os.environ.get("UNDERWATT_BUILD", HERE.parents[1] / "build"))
TICK = os.sysconf("SC_CLK_TCK")
INSTANT, AVERAGE, ENERGY = 186, 185, 83  # NVML_FI_DEV_POWER_INSTANT, _AVERAGE, NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION
POLL_S = 0.001
SETTLE_S = 20.0  # until underwattd has proved the counter and looks for a period
CONFIG = "search: {found_jobs: %s}\napi: {socket: %s/d.sock, job_socket: %s/job.sock}\n"

TRAIN = """
import sys, time, torch
torch.manual_seed(1)
layer = lambda: torch.nn.TransformerEncoderLayer(2048, 16, 8192, dropout=0.0, batch_first=True, norm_first=True)
model = torch.nn.TransformerEncoder(layer(), 8, enable_nested_tensor=False).to("cuda", torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), 1e-5, fused=True)
data = torch.randn(8, 1024, 2048, device="cuda", dtype=torch.bfloat16)
def step():
    optimizer.zero_grad(set_to_none=True)
    loss = model(data).float().pow(2).mean()
    loss.backward()
    optimizer.step()
    loss.item()
for _ in range(10):
    step()
seconds, busy = float(sys.argv[1]), float(sys.argv[2])
begin = time.monotonic()
while (now := time.monotonic()) < begin + seconds:
    if busy and int((now - begin) / busy) % 2:
        time.sleep(busy - (now - begin) % busy)
        continue
    step()
    print("%.6f %.6f" % (now, time.monotonic()), flush=True)
"""


def say(text):
    print(text, file=sys.stderr, flush=True)


class Field(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint), ("scope", ctypes.c_uint), ("at", ctypes.c_longlong), ("took", ctypes.c_longlong),
                ("type", ctypes.c_uint), ("result", ctypes.c_uint), ("value", ctypes.c_ulonglong)]


class Nvml:
    """One board, read only."""

    def __init__(self, gpu):
        self.lib = ctypes.CDLL(os.environ.get("UNDERWATT_NVML", "libnvidia-ml.so.1"))
        self.board = ctypes.c_void_p()
        if self.lib.nvmlInit_v2() or self.lib.nvmlDeviceGetHandleByIndex_v2(gpu, ctypes.byref(self.board)):
            raise SystemExit("board: no NVIDIA board answers here")
        self.w, self.j = ctypes.c_uint(), ctypes.c_ulonglong()
        self.pair, self.n, self.list = (ctypes.c_uint * 2)(), ctypes.c_uint(), (ctypes.c_byte * 4096)()

    def text(self, function, *args):
        buffer = ctypes.create_string_buffer(96)
        getattr(self.lib, function)(*args, buffer, 96)
        return buffer.value.decode()

    def about(self):
        return {"board": self.text("nvmlDeviceGetName", self.board), "driver": self.text("nvmlSystemGetDriverVersion")}

    def fields(self, *ids):
        f = (Field * len(ids))()
        for one, number in zip(f, ids):
            one.id = number
        return f

    def read(self, f):
        return self.lib.nvmlDeviceGetFieldValues(self.board, len(f), f)

    def processes(self):
        self.n.value = 64
        return self.lib.nvmlDeviceGetComputeRunningProcesses_v3(self.board, ctypes.byref(self.n), self.list)

    def calls(self):
        lib, board, w, j = self.lib, self.board, ctypes.byref(self.w), ctypes.byref(self.j)
        powers, energy = self.fields(INSTANT, AVERAGE), self.fields(ENERGY)
        return {
            "power fields": lambda: self.read(powers),
            "energy field": lambda: self.read(energy),
            "nvmlDeviceGetPowerUsage": lambda: lib.nvmlDeviceGetPowerUsage(board, w),
            "nvmlDeviceGetTotalEnergyConsumption": lambda: lib.nvmlDeviceGetTotalEnergyConsumption(board, j),
            "nvmlDeviceGetEnforcedPowerLimit": lambda: lib.nvmlDeviceGetEnforcedPowerLimit(board, w),
            "nvmlDeviceGetPowerManagementLimit": lambda: lib.nvmlDeviceGetPowerManagementLimit(board, w),
            "nvmlDeviceGetClockInfo": lambda: lib.nvmlDeviceGetClockInfo(board, 1, w),
            "nvmlDeviceGetCurrentClocksEventReasons": lambda: lib.nvmlDeviceGetCurrentClocksEventReasons(board, j),
            "nvmlDeviceGetTemperature": lambda: lib.nvmlDeviceGetTemperature(board, 0, w),
            "nvmlDeviceGetUtilizationRates": lambda: lib.nvmlDeviceGetUtilizationRates(board, self.pair),
            "nvmlDeviceGetComputeRunningProcesses": self.processes,
        }


# ---- calls ----

def timed(call, n):
    """Wall time of single calls a few milliseconds apart, and processor time of many."""
    spans = []
    result = call()
    for _ in range(n):
        time.sleep(random.uniform(0.001, 0.006))
        t = time.perf_counter_ns()
        result = call()
        spans.append((time.perf_counter_ns() - t) / 1e3)
    cpu, t = time.process_time_ns(), time.perf_counter_ns()
    for _ in range(n):
        call()
    cpu, t = (time.process_time_ns() - cpu) / n / 1e3, (time.perf_counter_ns() - t) / n / 1e3
    spans.sort()
    return {"result": result, "p50_us": round(spans[n // 2], 1), "p99_us": round(spans[n * 99 // 100], 1),
            "cpu_us": round(cpu, 1), "back_to_back_us": round(t, 1)}


def calls(a):
    nvml = Nvml(a.gpu)
    found = nvml.about()
    for name, call in nvml.calls().items():
        found[name] = timed(call, a.n)
        say(f"{name}: {found[name]}")
    return found


# ---- a training step ----

@contextlib.contextmanager
def training(seconds, busy=0.0, before=()):
    """A program that prints begin and end of each step."""
    p = subprocess.Popen([*before, sys.executable, "-c", TRAIN, str(seconds), str(busy)], stdout=subprocess.PIPE, text=True)
    try:
        first = p.stdout.readline()
        if not first:
            raise SystemExit("board: the training step does not run: is PyTorch here, and a board?")
        yield p, first
    finally:
        p.kill()
        p.wait()


def steps_of(p, first):
    text = first + p.stdout.read()
    p.wait()
    return [tuple(float(x) for x in line.split()) for line in text.splitlines()]


# ---- sensors ----

def gaps(times, values):
    """Between the moments at which polls found another value, ms."""
    changed = [t for t, old, new in zip(times[1:], values, values[1:]) if old != new]
    spans = sorted(b - a for a, b in zip(changed, changed[1:]))
    if not spans:
        return None
    return {"changes": len(changed), **{f"p{k}_ms": round(spans[len(spans) * k // 100] * 1e3, 1) for k in (5, 50, 95)}}


def response(times, values, edges, high):
    """Where a reading crosses the middle after an edge of the load, ms: the median and all."""
    low, top = min(values), statistics.quantiles(values, n=10)[-1]
    crossed = []
    for edge in edges:
        after = [(t, v) for t, v in zip(times, values) if edge <= t < edge + 1.5]
        hit = next((t - edge for t, v in after if (v > (low + top) / 2) == high), None)
        if hit is not None:
            crossed.append(round(hit * 1e3))
    return {"p50_ms": statistics.median(crossed), "all_ms": crossed} if crossed else None


def sensors(a):
    nvml = Nvml(a.gpu)
    f = nvml.fields(INSTANT, AVERAGE, ENERGY)
    rows = []
    with training(a.seconds + 5, busy=2.0) as (p, first):
        end = time.monotonic() + a.seconds
        while time.monotonic() < end:
            t = time.monotonic()
            nvml.read(f)
            rows.append(((t + time.monotonic()) / 2, f[0].value / 1e3, f[1].value / 1e3, f[2].value / 1e3))
            time.sleep(POLL_S)
        steps = steps_of(p, first)
    times = [r[0] for r in rows]
    falls = [x[1] for x, y in zip(steps, steps[1:]) if y[0] - x[1] > 1]
    rises = [y[0] for x, y in zip(steps, steps[1:]) if y[0] - x[1] > 1]
    found = {**nvml.about(), "polls_a_second": round(len(rows) / a.seconds)}
    for i, name in ((1, "instant"), (2, "average"), (3, "energy")):
        found[name] = gaps(times, [r[i] for r in rows])
    for i, name in ((1, "instant"), (2, "average")):
        found[name]["falls"] = response(times, [r[i] for r in rows], falls, False)
        found[name]["rises"] = response(times, [r[i] for r in rows], rises, True)
        sums = sum(r[i] * (s[0] - r[0]) for r, s in zip(rows, rows[1:]))
        found[name]["counter_against_it_percent"] = round(100 * ((rows[-1][3] - rows[0][3]) / sums - 1), 2)
    return found


# ---- with us and without ----

class Daemon:
    def __init__(self, folder, goal="edp"):
        self.folder = folder
        pathlib.Path(folder, "c.yaml").write_text(CONFIG % (goal, folder, folder), encoding="utf-8")
        os.makedirs(f"{folder}/state", exist_ok=True)

    def __enter__(self):
        user = ["--user", "root"] if os.geteuid() == 0 else []
        self.p = subprocess.Popen([BUILD / "src/daemon/underwattd", "--dry-run", "--config", f"{self.folder}/c.yaml",
                                   "--state", f"{self.folder}/state", *user], stderr=subprocess.DEVNULL)
        return self

    def __exit__(self, *what):
        self.p.terminate()
        self.p.wait()

    def cpu_s(self):
        f = pathlib.Path(f"/proc/{self.p.pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        return (int(f[11]) + int(f[12])) / TICK


def mean_step(steps, begin, end):
    spans = [b - a for a, b in steps if a > begin and b < end]
    return round(statistics.mean(spans) * 1e3, 3) if spans else None


def step(a):
    """Ten seconds with underwattd and ten without, in turn, while one job trains."""
    found = Nvml(a.gpu).about()
    spans = []
    with tempfile.TemporaryDirectory() as folder, training(a.seconds + 200) as (p, first):
        time.sleep(5)
        for i in range(int(a.seconds / 20) * 2):
            begin = time.monotonic()
            with (Daemon(folder) if i % 2 else contextlib.nullcontext()):
                time.sleep(10)
                spans.append((i % 2, begin + 1, time.monotonic()))
            say(f"{'with' if i % 2 else 'without'} underwattd: {i + 1}")
        for name, goal in (("watches", "none"), ("searches", "edp")):
            with Daemon(folder, goal) as d:
                time.sleep(SETTLE_S)
                before, began = d.cpu_s(), time.monotonic()
                time.sleep(20)
                found[f"underwattd {name}: percent of a core"] = round(100 * (d.cpu_s() - before) / (time.monotonic() - began), 2)
        p.terminate()
        steps = steps_of(p, first)
    for name, k in (("without_ms", 0), ("with_ms", 1)):
        found[name] = [mean_step(steps, b, e) for kind, b, e in spans if kind == k]
    pairs = [100 * (w / o - 1) for w, o in zip(found["with_ms"], found["without_ms"])]
    if len(pairs) < 2:
        return found
    found["slower_percent"] = {"mean": round(statistics.mean(pairs), 3), "sd_of_mean": round(statistics.stdev(pairs) / len(pairs) ** 0.5, 3)}
    return found


def launches(a):
    """The same job under `run` of a daemon that only watches: not counted, counted, counted, not counted."""
    found = Nvml(a.gpu).about()
    with tempfile.TemporaryDirectory() as folder, Daemon(folder):
        os.environ["UNDERWATT_SOCKET"] = f"{folder}/d.sock"
        time.sleep(2)
        for i, counted in enumerate((False, True, True, False)):
            before = [BUILD / "src/cli/underwatt", "run", "--goal", "edp", "--report", f"{folder}/report",
                      *(["--count-launches"] if counted else []), "--"]
            with training(a.seconds, before=before) as (p, first):
                steps = steps_of(p, first)
            name = f"{'counted' if counted else 'not counted'} {i + 1}"
            found[name] = mean_step(steps, steps[0][0] + 2, steps[-1][1])
            report = pathlib.Path(folder, "report")
            found[f"{name}: report"] = report.read_text(encoding="utf-8").splitlines() if report.exists() else []
            say(f"{name}: {found[name]} ms a step")
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("part", choices=["calls", "sensors", "step", "launches"])
    p.add_argument("--gpu", type=int, default=0)
    p.add_argument("--n", type=int, default=100, help="calls of each kind (default 100)")
    p.add_argument("--seconds", type=float, default=20)
    a = p.parse_args()
    print(json.dumps({"calls": calls, "sensors": sensors, "step": step, "launches": launches}[a.part](a), indent=1))


if __name__ == "__main__":
    main()
