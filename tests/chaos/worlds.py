"""Worlds of real processes in which a schedule is played, and what must hold there."""
import contextlib
import ctypes
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

import uwtest

ORIGINAL, MINIMUM = 300000, 150000  # a V100's default: a reload brings it, too
BOARDS = 4
SIM = uwtest.program("underwatt-sim")
STEP_S = 0.02
CONDITION_S = 60.0


class Broken(Exception):
    """Something that must hold does not."""


def state_of(pid):
    """"run", "stop" or "dead"."""
    try:
        letter = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] if pid else ""
    except OSError:
        letter = ""
    return {"": "dead", "Z": "dead", "X": "dead", "T": "stop", "t": "stop"}.get(letter, "run")


def send(pid, signo):
    with contextlib.suppress(ProcessLookupError):
        if pid:
            os.kill(pid, signo)


def children(pid):
    """{pid: its words}, of all threads."""
    found = {}
    for tasks in pathlib.Path("/proc").glob(f"{pid}/task/*/children"):
        with contextlib.suppress(OSError):
            for p in tasks.read_text(encoding="ascii").split():
                found[int(p)] = words_of(p)
    return found


def words_of(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    return []


def child_of(pid, name, *but):
    """Its child that runs this program without one of these words; 0: none."""
    return next((p for p, words in children(pid).items()
                 if words and os.path.basename(words[0]) == name and not set(but) & set(words)), 0)


class Boards:
    """Limits as any client of NVML sees them, all the time: history has (when, limits)."""

    def __init__(self, node):
        self.lib = ctypes.CDLL(os.path.join(node.state, "lib", "libnvidia-ml.so.1"))
        self.lock = threading.Lock()
        self.handles = []
        self.history = []
        self.done = threading.Event()
        self.open()
        self.thread = threading.Thread(target=self.look, daemon=True)
        self.thread.start()

    def open(self):
        self.lib.nvmlShutdown()
        self.lib.nvmlInit_v2()
        self.handles = [ctypes.c_void_p() for _ in range(BOARDS)]
        for i, h in enumerate(self.handles):
            self.lib.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(h))

    def limit(self, i):
        """None: the board cannot be asked."""
        mw = ctypes.c_uint(0)
        with self.lock:
            for _ in range(2):
                if self.lib.nvmlDeviceGetPowerManagementLimit(self.handles[i], ctypes.byref(mw)) == 0:
                    return mw.value
                self.open()  # lost, or of a driver that has gone
        return None

    def now(self):
        return [self.limit(i) for i in range(BOARDS)]

    def look(self):
        while not self.done.wait(STEP_S):
            self.history.append((time.monotonic(), self.now()))

    def close(self):
        self.done.set()
        self.thread.join()


class World:
    """What all of them share: events of the machine, processes by role, reports."""

    speed = 1

    def __init__(self, schedule):
        self.schedule = schedule
        self.foreign = [set() for _ in range(BOARDS)]
        self.exits = {}  # role: (status, limits at that moment)
        self.faulty = {}  # board: until when it is lost or refuses
        self.trouble = False  # jobs may have been lost sight of
        self.unplayed = set()
        self.used = {0}  # boards that somebody asked for
        self.node = self.boards = None
        self.stack = contextlib.ExitStack()

    # ---- life ----

    def __enter__(self):
        self.node = self.stack.enter_context(
            uwtest.Node(machine=f"boards: [{{model: v100, count: {BOARDS}}}]", speed=self.speed))
        self.boards = Boards(self.node)
        self.stack.callback(self.boards.close)
        self.stack.callback(self.kill_all)
        return self

    def __exit__(self, *exc):
        self.stack.close()

    def ours(self):
        """Our programs that live in this world: {pid: name}."""
        found = {}
        for p in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if p.name.isdigit() and int(p.name) != self.node.pid and state_of(p.name) != "dead":
                    name = (p / "comm").read_text(encoding="utf-8").strip()
                    if name.startswith("underwatt") and self.node.tmp.encode() in (p / "environ").read_bytes():
                        found[int(p.name)] = name
        return found

    def kill_all(self):
        for pid in self.ours():
            send(pid, signal.SIGKILL)

    def start(self, role, *args, **kw):
        """A program whose end is seen at once: what it left is told with its status."""
        log = open(os.path.join(self.node.tmp, role + ".log"), "ab")  # pylint: disable=consider-using-with
        p = self.node.popen(*args, stdout=log, stderr=log, **kw)
        log.close()
        self.exits.pop(role, None)

        def wait():
            status = p.wait()
            self.exits[role] = (status, self.boards.now())
        threading.Thread(target=wait, daemon=True).start()
        return p

    def said(self, role):
        with contextlib.suppress(OSError):
            return pathlib.Path(self.node.tmp, role + ".log").read_text(encoding="utf-8", errors="replace")
        return ""

    # ---- what must hold ----

    def need(self, good, name, why=""):
        if not good:
            raise Broken(f"{name}\n{why}".strip())

    def free(self, i):
        """The limits that a board may have with nothing of ours on it."""
        return {ORIGINAL} | self.foreign[i]

    def back(self, limits=None):
        return all(mw in self.free(i) for i, mw in enumerate(limits or self.boards.now()))

    def need_back(self, seconds, name):
        """On each board whose driver obeys."""
        def back():
            now = time.monotonic()
            return all(mw in self.free(i) or self.faulty.get(i, 0) > now for i, mw in enumerate(self.boards.now()))
        self.need(uwtest.wait_for(back, seconds, STEP_S), f"{name}: an original is not back within {seconds:g} s",
                  f"limits {self.boards.now()}")

    def entries(self):
        return sorted(p.name for p in pathlib.Path(self.node.state, "actuator").glob("*.cap"))

    def held_locks(self):
        held = set(re.findall(r"FLOCK .*:(\d+) 0 EOF", pathlib.Path("/proc/locks").read_text(encoding="ascii")))
        return [p.name for p in pathlib.Path(self.node.state, "actuator").glob("GPU-*.lock") if str(p.stat().st_ino) in held]

    def need_bounds(self):
        for when, limits in self.boards.history:
            low = [mw for mw in limits if mw is not None and not MINIMUM <= mw <= ORIGINAL]
            self.need(not low, "a limit was out of bounds", f"{limits} at {when}")
            idle = {i: mw for i, mw in enumerate(limits) if mw is not None and i not in self.used and mw not in self.free(i)}
            self.need(not idle, "a board that nobody asked for was limited", f"{idle} at {when}")

    def need_nobody(self, name):
        left = uwtest.wait_until(self.ours, lambda found: not found, 8)
        self.need(not left, f"{name}: a process is left over", f"{left}")
        self.need(not self.held_locks(), f"{name}: a lock is held by nobody", f"{self.held_locks()}")

    def need_named(self):
        """Who is said to hold a board lives."""
        def gone():
            p = self.node.run("underwatt", "cap", "show", "--local", "--json", "-")
            try:
                boards = json.loads(p.stdout)["boards"]
            except (ValueError, KeyError):
                return []
            return [b["holder_pid"] for b in boards if b.get("holder_pid") and state_of(b["holder_pid"]) == "dead"]
        self.need(uwtest.wait_for(lambda: not gone(), 3), "a process that has gone is said to hold a board", f"{gone()}")

    # ---- events ----

    def pid(self, role):
        raise NotImplementedError

    def state(self, role):
        return state_of(self.pid(role))

    def event(self, words):
        name = words[0].replace("-", "_")
        getattr(self, f"do_{name}")(*words[1:])

    def do_kill(self, role):
        pid = self.pid(role)
        send(pid, signal.SIGKILL)
        uwtest.wait_for(lambda: state_of(pid) == "dead", 5, 0.001)

    def do_stop(self, role):
        self.stopped.append(self.pid(role))
        send(self.stopped[-1], signal.SIGSTOP)

    def do_go_on(self, role):
        send(self.pid(role), signal.SIGCONT)

    def go_on_all(self):
        for pid in self.stopped:
            if state_of(pid) == "stop":
                send(pid, signal.SIGCONT)

    def do_term(self, role):
        send(self.pid(role), signal.SIGTERM)

    def do_limit(self, board, watts):
        self.foreign[int(board)].add(round(float(watts) * 1000))
        self.node.fault(board, "limit", f"{watts}W")

    def fault(self, board, what, s):
        """It lasts shorter in a world that runs faster, and is tried again some seconds after its end."""
        self.faulty[int(board)] = time.monotonic() + float(s) + 6
        self.node.fault(board, what, "for", f"{s}s")

    def do_lose(self, board, s):
        self.trouble = True
        self.fault(board, "lost", s)

    def do_refuse(self, board, s):
        self.fault(board, "refuse", s)

    def do_reload(self):
        self.trouble = True
        self.node.fault("reload")

    def heal(self):
        self.faulty = {}
        self.node.fault("all", "found")
        self.node.fault("all", "accept")

    # ---- a round ----

    stopped = ()

    def until(self, condition):
        words = " ".join(condition)
        checks = {"gone": lambda role: self.state(role) == "dead", "stopped": lambda role: self.state(role) == "stop",
                  "back": self.back, "limit": lambda i, w: self.boards.limit(int(i)) == int(w) * 1000,
                  "entry": lambda: bool(self.entries())}
        if condition[0] not in checks:
            raise Broken(f"'{words}' is no condition")
        self.need(uwtest.wait_for(lambda: checks[condition[0]](*condition[1:]), CONDITION_S, 0.005),
                  f"'{words}' did not come", f"limits {self.boards.now()}")

    def round(self):
        self.stopped = []
        self.set_up()
        began = time.monotonic()
        for e in self.schedule.events:
            if e.condition:
                self.until(e.condition)
                time.sleep(e.at)
            else:
                time.sleep(max(0.0, began + e.at - time.monotonic()))
            self.event(e.words)
        self.rest()
        self.settle()
        self.need_bounds()


def play(schedule):
    """What broke ("": nothing), and what could not be played here."""
    import local  # pylint: disable=import-outside-toplevel
    import services  # pylint: disable=import-outside-toplevel
    kinds = {"local": local.Local, "daemon": services.DaemonWorld, "starter": services.StarterWorld}
    with kinds[schedule.world](schedule) as world:
        try:
            world.round()
            return "", world.unplayed
        except Broken as e:
            why = str(e)
        except (AssertionError, OSError, RuntimeError, subprocess.SubprocessError) as e:
            why = f"{type(e).__name__}: {e}"
        logs = "".join(f"--- {p.name}\n{p.read_text(encoding='utf-8', errors='replace')[-3000:]}"
                       for p in sorted(pathlib.Path(world.node.tmp).rglob("*.log")))
        return f"{why}\n{logs}", world.unplayed
