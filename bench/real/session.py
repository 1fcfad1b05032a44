#!/usr/bin/python3
"""Reads a real NVIDIA board for about four minutes: what its driver's calls cost, how its sensors
publish, and what Underwatt makes of a training loop.  It sets nothing: `make real`.

    bench/real/session.py OUT [--seconds S] [--programs FOLDER] [--train WORDS] [--quick]

It refuses to start where underwattd or underwatt-actuator runs, and where its guard (a library that
refuses each function of NVML that may write) does not hold.  underwattd runs with --dry-run, without an
actuator, and searches for nothing.

OUT gets, as they come: log.txt (all that was said), report.json, steps.csv (each training step),
timeline.csv and sensors.csv (readings), launches.csv (counts of launches), daemon.txt, nvidia-smi.txt;
at the end summary.txt and session.svg.  A part that fails, or for which no time is left, does
not end the session.

--programs names a folder with the programs and libraries (bench/real/carry makes one), or a build.
--train is what runs train.py in place of this Python; without PyTorch there the parts with a training
loop are left out.  Exit status: 0 done, 1 a part failed, 2 refused, 77 no board.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import pathlib
import shlex
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from types import FrameType

import picture
import replay
from nvml import ENERGY, SETTERS, Found, NoBoard, Nvml, library, timed
from programs import BUILD, HERE, TEN_HZ, Daemon, Gone, Trainer, find, spent, writers
from readings import Recorder, Timeline

STATE = (
    "name,driver_version,persistence_mode,power.limit,enforced.power.limit,clocks.applications.graphics,"
    "clocks.max.sm,mig.mode.current,compute_mode,temperature.gpu,power.draw"
)
COUNTED = (("counted plain", "plain", 8.0), ("norest", "norest", 6.0), ("accum", "accum", 14.0))
SLOT0, SLOT, SLOTS = 4352, 256, 63  # launches in a page (underwatt/launches.h)
POLLS_MS = (25, 15)
CALLS_FILE = "calls-refused.txt"


class Session:
    def __init__(self, a: argparse.Namespace) -> None:
        self.a, self.out = a, pathlib.Path(a.out)
        self.scale = 0.15 if a.quick else 1.0
        self.begin = time.monotonic()
        self.log_file = open(self.out / "log.txt", "a", encoding="utf-8", buffering=1)  # noqa: SIM115 (until the end)
        self.report: Found = {}
        self.parts: list[tuple[str, str, float, float]] = []
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.dir = tempfile.mkdtemp(prefix="uw-real-", dir=memory)
        self.trainers: list[Trainer] = []
        self.no_torch = ""
        self.nvml = Nvml(0)
        self.timeline = Timeline(self.out, self.begin)

    def left(self) -> float:
        return float(self.a.seconds) - (time.monotonic() - self.begin)

    def say(self, text: str) -> None:
        line = f"[{time.monotonic() - self.begin:6.1f}] {text}"
        print(line, flush=True)
        self.note(line + "\n")

    def note(self, text: str) -> None:
        self.log_file.write(text)

    def keep(self, name: str, value: object) -> None:
        self.report[name] = value
        self.note(f"{name}: {json.dumps(value)}\n")
        (self.out / "report.json").write_text(json.dumps(self.report, indent=1), encoding="utf-8")

    def part(self, name: str, needs: float, call: Callable[[], object], trains: bool = False) -> None:
        """Runs one part and catches its errors. needs: about how long it takes, s."""
        t = time.monotonic()
        if trains and self.no_torch:
            state = f"left out: {self.no_torch}"
        elif self.left() < needs * self.scale:
            state = f"left out: {self.left():.0f} s are left"
        else:
            self.say(f"{name}: about {needs * self.scale:.0f} s of the {self.left():.0f} s that are left")
            try:
                call()
                state = "done"
            except (Exception, SystemExit) as e:  # run the next part
                state = f"FAILED: {type(e).__name__}: {e}"
                self.note(traceback.format_exc())
        took = time.monotonic() - t
        self.parts.append((name, state, t - self.begin, took))
        self.keep("parts", self.parts)
        self.say(f"{name}: {state} ({took:.1f} s)")

    def told(self, *words: object, to: str = "", timeout: float = 20) -> tuple[int, str]:
        """Runs a program; its output goes to the log or to a file."""
        line, t = [str(w) for w in words], time.monotonic()
        try:
            p = subprocess.run(
                line, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL, check=False
            )
            code, out, err = p.returncode, p.stdout, p.stderr
        except (OSError, subprocess.TimeoutExpired) as e:
            code, out, err = -1, "", str(e)
        text = f"$ {' '.join(line)}   [{code}, {time.monotonic() - t:.2f} s]\n{out}\n"
        text += f"--- stderr\n{err}\n" if err else ""
        if to:
            with open(self.out / to, "a", encoding="utf-8") as f:
                f.write(text)
        else:
            self.note(text)
        return code, out

    def program(self, name: str) -> str:
        path = find(self.a.programs, name)
        if not path:
            raise Gone(f"{name}: not in {self.a.programs}")
        return str(path)

    def trainer(self, name: str, **env: str) -> Trainer:
        t = Trainer(self, name, self.a.train, **env)
        self.trainers.append(t)
        return t


# ---- parts ----


def about(s: Session) -> None:
    s.told("uname", "-a")
    s.told("nvidia-smi", f"--query-gpu={STATE}", "--format=csv", to="nvidia-smi.txt")
    s.told("nvidia-smi", "-q", to="nvidia-smi.txt")
    s.keep("about", {**s.nvml.about(), "python": sys.version.split()[0], "cpus": os.cpu_count()})
    for words in (["doctor"], ["list"], ["list", "--json", "-"]):
        s.told(s.program("underwatt"), *words)


def idle(s: Session) -> None:
    with Recorder(s.out, "idle") as r:
        s.told(s.program("underwatt"), "measure", "--gpus", "0", "--json", "-", "--", "sleep", f"{4 * s.scale:.1f}")
    s.keep("idle sensors", r.told())


def calls(s: Session, name: str, n: int) -> None:
    found = {}
    for k, call in s.nvml.calls().items():
        found[k] = timed(call, n)
        s.say(f"    {k}: {json.dumps(found[k])}")
    s.keep(name, found)


def idle_daemon(s: Session) -> None:
    """Sensors of a board at rest, at the default rates."""
    with Daemon(s, "rest") as d:
        time.sleep(1)
        before = d.cost()
        time.sleep(8 * s.scale)
        s.keep("daemon at rest", spent(before, d.cost()))


def training_begins(s: Session) -> None:
    for t in s.trainers:
        t.imported()
        if t.missing:
            s.no_torch = f"{shlex.join(s.a.train)} has no {t.missing}"
    if not s.no_torch:
        s.trainers[0].ready()


def busy(s: Session, t: Trainer) -> None:
    with Recorder(s.out, "busy") as r:
        t.ask("busy", "busy", 14 * s.scale)
    spans: list[tuple[float, float]] = []
    begin = None
    steps = replay.steps_of(s.out).get("busy", [])
    for i, (a, b) in enumerate(steps):
        begin = a if begin is None else begin
        if i + 1 == len(steps) or steps[i + 1][0] - b > 1:
            spans.append((begin, b))
            begin = None
    s.keep("sensors", r.told(spans[1:-1] or spans))


def windows(s: Session, t: Trainer, rounds: int, seconds: float) -> None:
    """Windows of the package, one a step, and plain steps, in turn."""
    for i in range(rounds):
        t.ask(f"plain {i}", "plain", seconds * s.scale)
        t.ask(f"window {i}", "window", seconds * s.scale)
    t.ask(f"plain {rounds}", "plain", seconds * s.scale)
    t.ask("zeus", "zeus", seconds * s.scale)


def watch(s: Session, d: Daemon, seconds: float, seen: list[Found]) -> None:
    """Once a second, the daemon's figures of the job and the board's counter."""
    f = s.nvml.fields(ENERGY)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        s.nvml.read(f)
        try:
            jobs = json.loads(d.ask("/v1/jobs"))["jobs"]
        except OSError:  # it has exited early
            return
        seen.append({"at": time.monotonic(), "counter_j": f[0].value / 1e3, "jobs": jobs})
        time.sleep(0.95)


def daemon(s: Session, t: Trainer, seconds: float) -> None:
    """The daemon at its default rates: its cost, whether it finds the job, and the energy it books to the job."""
    with Daemon(s, "default") as d:
        os.environ["UNDERWATT_SOCKET"] = d.socket
        time.sleep(1)
        seen: list[Found] = []
        looker = threading.Thread(target=watch, args=(s, d, seconds, seen))
        before = d.cost()
        looker.start()
        t.ask("plain with daemon", "plain", seconds)
        looker.join()
        s.keep("daemon", spent(before, d.cost()))
        scrape(s, d)
        with open(s.out / "daemon.txt", "a", encoding="utf-8") as f:
            for path in ("/metrics", "/v1/gpus", "/v1/jobs", "/v1/node"):
                f.write(f"---- {path}\n{d.ask(path)}\n")
            f.writelines(json.dumps(look) + "\n" for look in seen)
        s.keep("booked", booked(seen))
        for words in (["top", "--once", "--mono"], ["jobs"], ["list"], ["explain", "0"], ["report"], ["doctor"]):
            s.told(s.program("underwatt"), *words)
        s.told("nvidia-smi", "-q", "-d", "POWER,CLOCK,PERFORMANCE,UTILIZATION", to="nvidia-smi.txt")
        before = d.cost()
        t.ask("dwindow", "dwindow", 6 * s.scale)
        s.keep("daemon, windows that follow each other", spent(before, d.cost()))
        for length, n in ((0.3, 4), (1, 3), (3, 2))[: 1 if s.a.quick else 3]:
            t.ask(f"daemon's windows of {length} s", f"dshort={length}", n)
    del os.environ["UNDERWATT_SOCKET"]


def scrape(s: Session, d: Daemon) -> None:
    spans = []
    for _ in range(20):
        a = time.perf_counter()
        text = d.ask("/metrics")
        spans.append(1e3 * (time.perf_counter() - a))
    s.keep("metrics, ms", {"p50": statistics.median(spans), "most": max(spans), "bytes": len(text)})


def booked(seen: list[Found]) -> Found:
    """The growth of the job's energy compared with the counter."""
    rows = [
        (look["counter_j"], look["at"], j["energy_j"], j.get("booked_s"))
        for look in seen
        for j in look["jobs"]
        if j.get("energy_j")
    ]
    found: Found = {"looks": len(seen), "with a job": len(rows)}
    grown = [r for r, was in zip(rows[1:], rows, strict=False) if r[2] != was[2]]
    if len(grown) > 3:
        first, last = grown[0], grown[-1]
        found["counter_w"] = (last[0] - first[0]) / (last[1] - first[1])
        over = last[3] - first[3] if last[3] and first[3] else 0
        found["booked_w"] = (last[2] - first[2]) / over if over > 0 else None
    return found


def shorts(s: Session, t: Trainer) -> None:
    for length, n in ((0.1, 8), (0.3, 6), (1, 3), (3, 2))[: 1 if s.a.quick else 4]:
        if s.left() > 15:
            t.ask(f"windows of {length} s", f"short={length}", n)


def measured(s: Session, seconds: float) -> None:
    """A whole program under `underwatt measure`, compared with the counter."""
    file = f"{s.dir}/measure.json"
    words = [*s.a.train, HERE / "train.py", s.out, f"measured:plain:{seconds:g}"]
    with Recorder(s.out, "measure", hz=50) as r:
        time.sleep(0.3)
        code, out = s.told(s.program("underwatt"), "measure", "--gpus", "0", "--json", file, "--", *words, timeout=90)
        time.sleep(0.3)
    told = json.loads(pathlib.Path(file).read_text(encoding="utf-8"))
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    s.report.setdefault("blocks", []).append(next(x for x in lines if x.get("label") == "measured"))
    began = next(x["began"] for x in lines if "imported" in x)
    first, last = r.joules(began), r.joules(began + told["time_s"])
    counter = last - first if first and last else None
    ratio = told["energy_j"] / counter if counter and told["energy_j"] else None
    s.keep("measure", {"exit": code, "told": told, "counter_j": counter, "ratio": ratio})


def new_page(path: pathlib.Path) -> None:
    """Makes a progress page with space for counts of launches."""
    head = struct.pack("<8sII", b"UWPROGR1", 1, SLOTS).ljust(4096, b"\0")
    path.write_bytes(head + struct.pack("<8sII", b"UWLAUNC1", 1, SLOTS).ljust(SLOT * (SLOTS + 1), b"\0"))
    path.chmod(0o600)


def look_at(page: str, stop: threading.Event, rows: list[tuple[float, int, int]]) -> None:
    """Records every change of the page's counts, read every millisecond."""
    fd = os.open(page, os.O_RDONLY)
    was, over = (0, 0), False
    while not over:
        over = stop.is_set()  # and read once more
        kernels, graphs, slots = 0, 0, os.pread(fd, SLOT * SLOTS, SLOT0)
        for i in range(SLOTS):
            if struct.unpack_from("<Q", slots, SLOT * i)[0]:
                counts = struct.unpack_from("<24Q", slots, SLOT * i + 64)
                kernels, graphs = kernels + sum(counts[:16]), graphs + sum(counts[16:])
        if (kernels, graphs) != was:
            rows.append((time.monotonic(), kernels, graphs))
            was = kernels, graphs
        time.sleep(0.001)
    os.close(fd)


def launches(s: Session, t: Trainer, page: str) -> None:
    """Blocks with counted and recorded launches; the page is read meanwhile as the daemon reads it."""
    stop = threading.Event()
    rows: list[tuple[float, int, int]] = []
    looker = threading.Thread(target=look_at, args=(page, stop, rows))
    looker.start()
    try:
        with Recorder(s.out, "launches", hz=50):
            for label, mode, seconds in COUNTED:
                if s.left() > seconds * s.scale + 6:
                    polled(s, t, page, (label, mode), max(1.0, seconds * s.scale))
    finally:
        stop.set()
        looker.join()
        with open(s.out / "launches.csv", "w", encoding="utf-8") as f:
            f.write("time_s,kernels,graphs\n")
            f.writelines(f"{a:.6f},{b},{c}\n" for a, b, c in rows)
        slot = pathlib.Path(page).read_bytes()[SLOT0 : SLOT0 + SLOT]
        _, _, state, version, result = struct.unpack_from("<QQIII", slot, 0)
        last = rows[-1] if rows else (0, 0, 0)
        told = {"state": state, "cupti": version, "result": result, "changes": len(rows)}
        s.keep("launches", {**told, "kernels": last[1], "graphs": last[2]})


def polled(s: Session, t: Trainer, page: str, block: tuple[str, str], seconds: float) -> None:
    """A block, with the cost and the result of reading its launches every 25 and every 15 ms."""
    (label, mode), program, whole = block, s.program("launch-poll"), str(int(seconds))
    pollers = [subprocess.Popen([program, page, str(ms), whole], stdout=subprocess.PIPE, text=True) for ms in POLLS_MS]
    t.ask(label, mode, seconds)
    for p in pollers:
        line, _ = p.communicate(timeout=20)
        found = {"label": label, **json.loads(line or "{}")}
        s.report.setdefault("polls", []).append(found)
        s.say(f"    {json.dumps(found)}")


def at_work(s: Session, t: Trainer) -> None:
    asker = threading.Thread(target=t.ask, args=("plain with calls", "plain", 5 * s.scale))
    asker.start()
    calls(s, "calls, at work", 20)
    asker.join()


def ten_hz(s: Session, t: Trainer, number: int, seconds: float) -> None:
    t.ask(f"plain without 10 Hz {number}", "plain", seconds)
    with Daemon(s, f"ten{number}", TEN_HZ) as d:
        time.sleep(1)
        before = d.cost()
        t.ask(f"plain with 10 Hz {number}", "plain", seconds)
        s.report.setdefault("10 Hz", []).append(spent(before, d.cost()))
    s.say(f"    underwattd at 10 Hz: {json.dumps(s.report['10 Hz'][-1])}")


def played(s: Session) -> None:
    rows = replay.replay(s.out, s.a.programs)
    s.keep("replay", rows)
    for line in replay.lines_of(rows):
        s.say(f"    {line}")


# ---- the whole session ----

COLUMNS = (
    ("steps", "steps", "6d"),
    ("mean_ms", "mean ms", "9.3f"),
    ("p50_ms", "p50", "9.3f"),
    ("p99_ms", "p99", "9.3f"),
    ("cpu_percent", "cpu %", "6.1f"),
    ("j_a_step", "J/step", "8.3f"),
    ("counter_w", "W", "7.2f"),
    ("sum_ratio", "ours/counter", "12.4f"),
    ("half_percent_mean", "half %", "7.1f"),
)


def cell(v: object, form: str) -> str:
    width = int(form.split(".", maxsplit=1)[0].rstrip("d"))
    return f"{format(v, form) if isinstance(v, int | float) else '-':>{width}}"


def mean_ms(blocks: list[Found], begins: str) -> float | None:
    """Only the blocks whose label is this word and a number."""
    found = [
        b["mean_ms"]
        for b in blocks
        if b["label"].startswith(begins) and b["label"][len(begins) :].isdigit() and "mean_ms" in b
    ]
    return statistics.mean(found) if found else None


def summary(s: Session) -> list[str]:
    blocks, r = s.report.get("blocks", []), s.report
    about = r.get("about", {})
    lines = [f"{about.get('board', '?')}, driver {about.get('driver', '?')}", ""]
    lines.append(f"{'block':30} " + " ".join(f"{name:>{len(cell(None, form))}}" for _, name, form in COLUMNS))
    lines += [f"{b['label']:30} " + " ".join(cell(b.get(k), form) for k, _, form in COLUMNS) for b in blocks]
    lines.append("")
    for name, with_, without in (
        ("the package's windows", "window ", "plain "),
        ("underwattd at 10 Hz", "plain with 10 Hz ", "plain without 10 Hz "),
    ):
        a, o = mean_ms(blocks, with_), mean_ms(blocks, without)
        if a and o:
            lines.append(f"{name}: {a:.3f} ms a step with, {o:.3f} without: {100 * (a / o - 1):+.2f} %")
    names = ("daemon at rest", "daemon", "daemon, windows that follow each other", "10 Hz", "polls", "booked")
    for key in (*names, "metrics, ms", "idle sensors", "sensors", "measure", "launches"):
        if key in r:
            many = r[key] if isinstance(r[key], list) else [r[key]]
            lines += [f"{key}: {json.dumps(one)}" for one in many]
    lines.append("")
    lines += [f"{name:24} {state} ({took:.1f} s)" for name, state, _, took in s.parts]
    refused = s.out / CALLS_FILE
    n = len(refused.read_text(encoding="utf-8").splitlines()) if refused.exists() else 0
    lines.append(f"calls that may write, all refused by the guard: {n}")
    return lines


def run(s: Session) -> None:
    page = pathlib.Path(s.dir, "page")
    new_page(page)
    library_path, cuda = s.program("libunderwatt.so.0"), s.program("libunderwatt-cuda.so")
    t = s.trainer("main", UNDERWATT_LIBRARY=library_path, UNDERWATT_REAL_SOCKET=f"{s.dir}/default/d.sock")
    counted = s.trainer("counted", CUDA_INJECTION64_PATH=cuda, UNDERWATT_PROGRESS=str(page))
    more = s.trainer("more")
    s.part("about", 4, lambda: about(s))
    s.part("idle", 5, lambda: idle(s))
    s.part("calls, idle", 10, lambda: calls(s, "calls, idle", 8 if s.a.quick else 60))
    s.part("daemon at rest", 10, lambda: idle_daemon(s))
    s.part("training begins", 20, lambda: training_begins(s))
    s.part("sensors", 17, lambda: busy(s, t), trains=True)
    s.part("windows each step", 27, lambda: windows(s, t, 2, 4), trains=True)
    s.part("daemon", 42, lambda: daemon(s, t, max(2.0, 14 * s.scale)), trains=True)
    s.part("short windows", 24, lambda: shorts(s, t), trains=True)
    t.end()
    s.part("counted begins", 10, counted.ready, trains=True)
    s.part("launches", 30, lambda: launches(s, counted, str(page)), trains=True)
    counted.end()
    s.part("measure", 15, lambda: measured(s, 6 * s.scale), trains=True)
    s.part("more begins", 6, more.ready, trains=True)
    s.part("calls, at work", 6, lambda: at_work(s, more), trains=True)
    for i in range(1 if s.a.quick else 3):
        s.part(f"daemon at 10 Hz {i}", 12, lambda i=i: ten_hz(s, more, i, 5 * s.scale), trains=True)  # type: ignore[misc]
    more.end()
    s.part(
        "state at the end", 1, lambda: s.told("nvidia-smi", f"--query-gpu={STATE}", "--format=csv", to="nvidia-smi.txt")
    )
    s.part("replay", 2, lambda: played(s), trains=True)


def finish(s: Session) -> int:
    for t in s.trainers:
        t.end()
    power = s.timeline.end()
    lines = summary(s)
    (s.out / "summary.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    about = s.report.get("about", {})
    parts = [(name, a, a + took) for name, state, a, took in s.parts if state == "done"]
    picture.draw(s.out / "session.svg", f"{about.get('board')}: power, and what ran", power, parts)
    shutil.rmtree(s.dir, ignore_errors=True)
    print("\n".join(["", *lines, "", f"results: {s.out}"]), flush=True)
    return 1 if any(state.startswith("FAILED") for _, state, _, _ in s.parts) else 0


def over(number: int, frame: FrameType | None) -> None:
    raise TimeoutError("the time is over")


def place_of(address: int) -> str:
    """The file that is mapped at an address."""
    for line in pathlib.Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        words = line.split()
        first, last = (int(x, 16) for x in words[0].split("-"))
        if first <= address < last:
            return words[-1]
    return ""


def guarded(guard: pathlib.Path) -> str:
    """Why a function that writes could be called; '' if none can."""
    lib, here = library(), str(guard.resolve())

    def at(name: str) -> str:
        return place_of(ctypes.cast(getattr(lib, name), ctypes.c_void_p).value or 0)

    there = [n for n in SETTERS if hasattr(lib, n)]
    if not there:
        return "the driver's library has none of the functions by which the guard is tried"
    open_ = [n for n in there if at(n) != here]
    if open_:
        return f"{open_[0]} is not held by {here}"
    return "nvmlDeviceGetPowerUsage is held, too" if at("nvmlDeviceGetPowerUsage") == here else ""


def refusal(a: argparse.Namespace) -> str:
    """Why this machine must not be read; '' if it may be."""
    running = writers()
    if running:
        return f"{', '.join(running)} may set limits here: stop it first"
    missing = [n for n in ("underwatt", "underwattd", "guard.so", "launch-poll") if not find(a.programs, n)]
    return f"{a.programs}: no {', '.join(missing)}" if missing else ""


def preload(a: argparse.Namespace, guard: pathlib.Path) -> None:
    """Restarts with the guard in this process and all its children."""
    calls_file = pathlib.Path(a.out).resolve() / CALLS_FILE
    calls_file.unlink(missing_ok=True)
    kept = os.environ.get("LD_PRELOAD")
    os.environ["LD_PRELOAD"] = f"{guard.resolve()}:{kept}" if kept else str(guard.resolve())
    os.environ["UNDERWATT_REAL_CALLS"] = str(calls_file)
    python_path = [str(HERE.parents[1] / "python"), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(p for p in python_path if p)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.execv(sys.executable, [sys.executable, *sys.argv])


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out")
    p.add_argument("--seconds", type=float, default=235, help="after which no part begins that needs more (235)")
    p.add_argument("--programs", type=pathlib.Path, default=BUILD)
    p.add_argument("--train", type=shlex.split, default=[sys.executable])
    p.add_argument("--quick", action="store_true", help="short parts, to try the script itself")
    return p.parse_args()


def main() -> int:
    a = arguments()
    try:
        Nvml(0)
    except NoBoard as e:
        print(f"skipped: {e}")
        return 77
    why = refusal(a)
    if why:
        print(f"refused: {why}", file=sys.stderr)
        return 2
    pathlib.Path(a.out).mkdir(parents=True, exist_ok=True)
    guard = pathlib.Path(find(a.programs, "guard.so") or "")
    if "UNDERWATT_REAL_CALLS" not in os.environ:
        preload(a, guard)
    why = guarded(guard)
    if why:
        print(f"refused: the guard does not hold: {why}", file=sys.stderr)
        return 2
    s = Session(a)
    s.say(f"reads board 0 for about {a.seconds:.0f} s and sets nothing; results come into {s.out}")
    signal.signal(signal.SIGALRM, over)
    signal.signal(signal.SIGTERM, over)
    signal.alarm(int(a.seconds) + 2)
    try:
        run(s)
    except (TimeoutError, KeyboardInterrupt) as e:
        s.say(f"ended early: {e or 'interrupted'}")
    finally:
        signal.alarm(0)
        with contextlib.suppress(KeyboardInterrupt):
            code = finish(s)
    return code


if __name__ == "__main__":
    sys.exit(main())
