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
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parent / "real"))

from nvml import AVERAGE, ENERGY, INSTANT, TICK, NoBoard, Nvml, gaps, response, timed  # noqa: E402

BUILD = pathlib.Path(os.environ.get("UNDERWATT_BUILD", HERE.parents[1] / "build"))
POLL_S = 0.001
SETTLE_S = 20.0  # time for underwattd to verify the counter and to start the search for a period
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


# ---- calls ----

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
    """Runs a program that prints the begin and the end of each step."""
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
    """The same job under `run` with a daemon that only watches: not counted, counted, counted, not counted."""
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
    try:
        print(json.dumps({"calls": calls, "sensors": sensors, "step": step, "launches": launches}[a.part](a), indent=1))
    except NoBoard as e:
        sys.exit(f"board: {e}")


if __name__ == "__main__":
    main()
