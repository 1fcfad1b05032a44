"""What a session runs beside itself: where the programs are, the training program, underwattd."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import pathlib
import queue
import signal
import socket
import subprocess
import threading
import time
from types import TracebackType
from typing import IO, Protocol

from nvml import TICK, Found

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("UNDERWATT_BUILD", HERE.parents[1] / "build"))
# No search, no actuator: such a daemon reads.
CONFIG = """api: {{socket: {dir}/d.sock, job_socket: {dir}/job.sock}}
search: {{found_jobs: none}}
node: {{interval: 2 s}}
{more}"""
TEN_HZ = "sampling: {rest: 100 ms, job: 100 ms, search: 100 ms}\n"
WRITERS = ("underwatt-actuator", "underwattd")
START_S = 60.0


def find(folder: pathlib.Path, name: str) -> pathlib.Path | None:
    """A program or library in a folder of programs, or in a build."""
    for pattern in (name, f"src/*/{name}", f"bench/{name}", f"bench/real/{name}"):
        for path in sorted(folder.glob(pattern)):
            if path.is_file():
                return path
    return None


def world_of(pid: str) -> str | None:
    """The simulated world of a process; None: the real one, or unreadable."""
    try:
        words = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    return next((os.fsdecode(w).split("=", 1)[1] for w in words if w.startswith(b"UNDERWATT_SIM_STATE=")), None)


def writers() -> list[str]:
    """Programs that may cap the boards of this world: 'underwattd (pid 12)'."""
    ours, found = os.environ.get("UNDERWATT_SIM_STATE"), []
    for comm in pathlib.Path("/proc").glob("[0-9]*/comm"):
        try:
            name = comm.read_text(encoding="utf-8").strip()
        except OSError:
            continue
        full = next((w for w in WRITERS if w[:15] == name), None)
        if full and world_of(comm.parent.name) == ours:
            found.append(f"{full} (pid {comm.parent.name})")
    return found


class Log(Protocol):
    out: pathlib.Path
    dir: str
    report: Found

    def say(self, text: str) -> None: ...

    def note(self, text: str) -> None: ...

    def program(self, name: str) -> str: ...


class Gone(Exception):
    """A program has ended early."""


class Trainer:
    """train.py, told by lines; it touches the board from the first one on."""

    def __init__(self, log: Log, name: str, words: list[str], **env: str) -> None:
        self.log, self.name = log, name
        self.lines: queue.Queue[str | None] = queue.Queue()
        self.missing = ""
        with open(log.out / "log.txt", "a", encoding="utf-8") as err:
            self.p = subprocess.Popen(
                [*words, str(HERE / "train.py"), str(log.out)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=err,
                text=True,
                env={**os.environ, **env},
            )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.p.stdout or ():
            self.lines.put(line)
        self.lines.put(None)

    def hear(self, seconds: float) -> Found:
        while True:
            try:
                line = self.lines.get(timeout=seconds)
            except queue.Empty:
                raise Gone(f"the program {self.name} says nothing for {seconds:.0f} s") from None
            if line is None:
                raise Gone(f"the program {self.name} has ended: {self.p.wait(5)}; see log.txt")
            if line.startswith("{"):
                return dict(json.loads(line))
            self.log.note(f"{self.name}: {line}")

    def tell(self, line: str) -> None:
        try:
            print(line, file=self.p.stdin, flush=True)
        except BrokenPipeError:
            raise Gone(f"the program {self.name} has ended: {self.p.wait(5)}; see log.txt") from None

    def imported(self) -> None:
        """Waits until it has imported what it needs; sets `missing` where it has not."""
        self.missing = str(self.hear(90).get("missing", ""))

    def ready(self) -> None:
        self.tell("ready")
        self.hear(60)

    def ask(self, label: str, mode: str, seconds: float) -> Found:
        self.tell(f"{label}:{mode}:{seconds:g}")
        found = self.hear(30 + 5 * seconds)
        while found.get("label") != label:  # of a block that was given up
            found = self.hear(30 + 5 * seconds)
        brief = {k: round(v, 4) if isinstance(v, float) else v for k, v in found.items() if k not in ("first", "label")}
        self.log.say(f"    {label}: {json.dumps(brief)}")
        self.log.report.setdefault("blocks", []).append(found)
        return found

    def end(self) -> None:
        if self.p.stdin:
            with contextlib.suppress(OSError):
                self.p.stdin.close()
        try:
            self.p.wait(8)
        except subprocess.TimeoutExpired:
            self.p.kill()
            self.p.wait()


class Daemon:
    """underwattd, which only reads: --dry-run, an actuator's socket that is not there, no searches."""

    def __init__(self, log: Log, name: str, more: str = "") -> None:
        self.log, self.dir = log, os.path.join(log.dir, name)
        os.makedirs(f"{self.dir}/state")
        pathlib.Path(self.dir, "c.yaml").write_text(CONFIG.format(dir=self.dir, more=more), encoding="utf-8")
        self.socket = f"{self.dir}/d.sock"
        self.err: IO[str] | None = None

    def __enter__(self) -> Daemon:
        user = ["--user", "root"] if os.geteuid() == 0 else []
        words = ["--dry-run", "--config", f"{self.dir}/c.yaml", "--actuator", f"{self.dir}/none"]
        self.err = open(self.log.out / "daemon.txt", "a", encoding="utf-8")
        self.p = subprocess.Popen(
            [self.log.program("underwattd"), *words, "--state", f"{self.dir}/state", *user],
            stdin=subprocess.DEVNULL,
            stdout=self.err,
            stderr=self.err,
        )
        end = time.monotonic() + START_S
        while not os.path.exists(self.socket):
            if self.p.poll() is not None or time.monotonic() > end:
                self.__exit__(None, None, None)
                raise Gone(f"underwattd is not ready: {self.p.poll()}; see daemon.txt")
            time.sleep(0.02)
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, where: TracebackType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.p.send_signal(signal.SIGTERM)
        try:
            self.log.report.setdefault("daemon ended", []).append(self.p.wait(10))
        except subprocess.TimeoutExpired:
            self.log.say("underwattd does not end: killed")
            self.p.kill()
            self.p.wait()
        if self.err:
            self.err.close()

    def ask(self, path: str) -> str:
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(5)
            s.connect(self.socket)
            s.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            answer = http.client.HTTPResponse(s)
            answer.begin()
            return answer.read().decode()

    def cost(self) -> Found:
        """Processor time, waits and memory so far."""
        proc = pathlib.Path(f"/proc/{self.p.pid}")
        stat = (proc / "stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        waits, threads = 0, {}
        for task in (proc / "task").iterdir():
            with contextlib.suppress(OSError):
                for line in (task / "status").read_text(encoding="utf-8").splitlines():
                    if line.startswith("voluntary_ctxt"):
                        waits += int(line.split()[1])
                head, tail = (task / "stat").read_text(encoding="utf-8").rsplit(")", 1)
                threads[f"{head.split('(')[1]} {task.name}"] = sum(map(int, tail.split()[11:13])) / TICK
        rollup = (proc / "smaps_rollup").read_text(encoding="ascii").splitlines()
        pss = [int(line.split()[1]) for line in rollup if line.startswith("Pss:")]
        cpu = (int(stat[11]) + int(stat[12])) / TICK
        return {
            "at": time.monotonic(),
            "cpu_s": cpu,
            "waits": waits,
            "pss_kb": pss[0] if pss else None,
            "threads": threads,
        }


def spent(a: Found, b: Found) -> Found:
    """Between two looks at a daemon's cost."""
    over = b["at"] - a["at"]
    return {
        "seconds": round(over, 2),
        "percent of a core": round(100 * (b["cpu_s"] - a["cpu_s"]) / over, 2),
        "waits a second": round((b["waits"] - a["waits"]) / over, 1),
        "pss_kb": b["pss_kb"],
        "threads_s": b["threads"],
    }
