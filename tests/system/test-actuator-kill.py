#!/usr/bin/python3
"""Whoever dies or is stopped at whatever step of a cap's life: the original limit is
back within 5 s; what another has set since is never touched.

Every case has a board, a command, a keeper and an actuator of its own.
"""
import concurrent.futures
import ctypes
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import uwtest

WITHIN_S = 5.0
STILL_S = 0.3   # between two looks, which take milliseconds: what is longer is a machine that stands still
BOARDS = 8
LATENCY_S = 0.25
ORIGINAL, CAP = 250000, 200000
MACHINE = f"""
name: for the actuator
set_latency: {int(LATENCY_S * 1000)} ms
boards:
  - model: v100
    count: {BOARDS}
    limit: {ORIGINAL // 1000} W
"""
HOLD = str(uwtest.BUILD / "tests/system/actuator-hold")
ACTUATOR = uwtest.program("underwatt-actuator")


class Nvml:
    """The boards as anybody sees them."""

    def __init__(self, library):
        self.lib = ctypes.CDLL(library)
        r = self.lib.nvmlInit_v2()
        uwtest.must(r == 0, "nvmlInit_v2:", r)
        self.handle = []
        self.uuid = []
        for i in range(BOARDS):
            h = ctypes.c_void_p()
            text = ctypes.create_string_buffer(96)
            r = self.lib.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(h))
            uwtest.must(r == 0, f"handle of board {i}:", r)
            r = self.lib.nvmlDeviceGetUUID(h, text, 96)
            uwtest.must(r == 0, f"UUID of board {i}:", r)
            self.handle.append(h)
            self.uuid.append(text.value.decode())

    def limit(self, i):
        mw = ctypes.c_uint(0)
        r = self.lib.nvmlDeviceGetEnforcedPowerLimit(self.handle[i], ctypes.byref(mw))
        return mw.value if r == 0 else -r

    def set(self, i, mw):
        return self.lib.nvmlDeviceSetPowerManagementLimit(self.handle[i], mw)


def children(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(p) for p in text.split()]


def state_of(pid):
    """The letter of /proc/PID/stat; '' once it is gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


class Client:
    """tests/system/actuator-hold.c: obeys lines, prints what it hears."""

    def __init__(self, library, prefix=(), kind="simulated", stderr=subprocess.PIPE):
        self.p = subprocess.Popen([*prefix, HOLD, ACTUATOR, library, kind],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr)
        self.lines = []
        self.rest = b""
        self.keeper = self.actuator = 0

    def read(self, seconds):
        if not select.select([self.p.stdout], [], [], seconds)[0]:
            return False
        data = os.read(self.p.stdout.fileno(), 65536)
        *lines, self.rest = (self.rest + data).split(b"\n")
        self.lines += [line.decode() for line in lines]
        return bool(data)

    def hear(self, start, seconds=12.0):
        """The first line that begins so and has not been heard before."""
        until = time.monotonic() + seconds
        while True:
            for i, line in enumerate(self.lines):
                if line.startswith(start):
                    del self.lines[i]
                    return line
            left = until - time.monotonic()
            if left <= 0 or not self.read(left):
                return ""

    def tell(self, *words):
        try:
            self.p.stdin.write((" ".join(map(str, words)) + "\n").encode())
            self.p.stdin.flush()
        except OSError:
            pass

    def ready(self):
        line = self.hear("ready")
        if line.startswith("ready 0"):
            self.keeper = children(self.p.pid)[0]
            self.actuator = children(self.keeper)[0]
        return line

    def ask(self, *words):
        self.tell(*words)
        return self.hear(f"{words[0]} {words[1]}")

    def done(self, *words):
        """Ask for what the next step needs."""
        line = self.ask(*words)
        uwtest.must(" done " in line, *words, f"is answered {line!r}; besides:", self.lines)

    def kill(self, *who, signo=signal.SIGKILL):
        for pid in who:
            try:
                if pid:
                    os.kill(pid, signo)
            except ProcessLookupError:
                pass

    def kill_all(self):
        """All three at once: nobody gets to react to another's end."""
        os.kill(self.keeper, signal.SIGSTOP)
        self.kill(self.actuator, self.keeper, self.p.pid)
        uwtest.wait_for(lambda: all(state_of(p) in ("", "Z") for p in
                                    (self.actuator, self.keeper, self.p.pid)), 5)

    def close(self):
        """Ends it, and whatever of its own was stopped."""
        self.kill(self.p.pid, self.keeper, self.actuator, signo=signal.SIGCONT)
        self.tell("quit")
        try:
            self.p.wait(5)
        except subprocess.TimeoutExpired:
            self.p.kill()
            self.p.wait()
        return_by = time.monotonic() + 5
        for pid in (self.keeper, self.actuator):
            uwtest.wait_for(lambda pid=pid: not pid or state_of(pid) in ("", "Z"),
                            return_by - time.monotonic())
        for stream in (self.p.stdin, self.p.stdout, self.p.stderr):
            try:
                if stream:
                    stream.close()
            except OSError:
                pass  # what was written to the dead


def within(holds, seconds):
    """How long until it holds, without the time in which the machine stood still; None: not in time."""
    last, took = time.monotonic(), 0.0
    while True:
        good = holds()
        now = time.monotonic()
        took += min(now - last, STILL_S)
        last = now
        if good or took >= seconds:
            return took if good else None
        time.sleep(0.02)


class World:
    def __init__(self, node):
        self.node = node
        self.library = os.path.join(node.state, "lib", "libnvidia-ml.so.1")
        self.journal = pathlib.Path(node.state) / "actuator"
        self.nvml = Nvml(self.library)
        self.uuid = self.nvml.uuid

    def entry(self, i):
        try:
            return (self.journal / f"{self.uuid[i]}.cap").read_text()
        except OSError:
            return ""

    def noted(self, i, text=""):
        """Once board i's entry has the text."""
        uwtest.must(uwtest.wait_for(lambda: self.entry(i) and text in self.entry(i), step=0.002),
                    f"no {text!r} in the entry:", repr(self.entry(i)))

    def capped_at(self, i, mw):
        got = self.nvml.limit(i)
        uwtest.must(got == mw, f"the limit is {got}, not {mw}, after it was set")

    def client(self, **kw):
        c = Client(self.library, **kw)
        line = c.ready()
        if not line.startswith("ready 0"):
            raise RuntimeError(f"actuator: {line!r}")
        return c

    def capped(self, i, mw=CAP, **kw):
        c = self.client(**kw)
        held = c.ask("hold", self.uuid[i])
        done = c.ask("set", self.uuid[i], mw)
        if " done " not in held or " done " not in done:
            raise RuntimeError(f"{held!r} {done!r}")
        return c

    def recover(self):
        return subprocess.run([ACTUATOR, "--recover", "--library", self.library],
                              capture_output=True, text=True, timeout=30)

    def back(self, i, mw=ORIGINAL, seconds=WITHIN_S):
        """How long until the limit is mw and the entry gone; None: not in time."""
        return within(lambda: self.nvml.limit(i) == mw and not self.entry(i), seconds)


# ---- the steps of a cap's life; each leaves the client right there ----

def step_ready(w, c, i):
    """ready, nothing held"""


def step_hold_under_way(w, c, i):
    """entry written, first write under way"""
    c.tell("hold", w.uuid[i])
    w.noted(i)


def step_held(w, c, i):
    """held"""
    c.done("hold", w.uuid[i])


def step_set_under_way(w, c, i):
    """first cap intended, its write under way"""
    step_held(w, c, i)
    c.tell("set", w.uuid[i], CAP)
    w.noted(i, f"intended_mw {CAP}\n")


def step_capped(w, c, i):
    """capped"""
    step_held(w, c, i)
    c.done("set", w.uuid[i], CAP)
    w.capped_at(i, CAP)


def step_ramping(w, c, i):
    """walking down a ramp"""
    step_held(w, c, i)
    for k in range(4):
        c.done("set", w.uuid[i], 240000 - 5000 * k)
    for k in range(20):
        c.tell("set", w.uuid[i], 220000 - 1000 * k)
    time.sleep(LATENCY_S / 2)


def step_releasing(w, c, i):
    """release under way"""
    step_capped(w, c, i)
    c.tell("release", w.uuid[i])
    time.sleep(LATENCY_S / 2)


STEPS = [step_ready, step_hold_under_way, step_held, step_set_under_way, step_capped,
         step_ramping, step_releasing]


class Free:
    """Boards that no case has."""

    def __init__(self, n):
        self.boards = list(range(n))
        self.lock = threading.Condition()

    def __enter__(self):
        with self.lock:
            while not self.boards:
                self.lock.wait()
            return self.boards.pop()

    def give(self, i):
        with self.lock:
            self.boards.append(i)
            self.lock.notify()

    def __exit__(self, *exc):
        pass


def kill_case(w, free, step, victim, signo):
    i = free.__enter__()
    name = f"{signal.Signals(signo).name} of the {victim}: {step.__doc__}"
    try:
        c = w.client()
        try:
            step(w, c, i)
            pid = {"command": c.p.pid, "keeper": c.keeper, "actuator": c.actuator}[victim]
            os.kill(pid, signo)
            if step is step_ready:
                took = 0.0 if w.nvml.limit(i) == ORIGINAL else None
            else:
                took = w.back(i)
            why = f"limit {w.nvml.limit(i)}, entry {w.entry(i)!r}"
        finally:
            c.close()
        stays = w.nvml.limit(i) == ORIGINAL and not w.entry(i)
        return took is not None and stays, f"{name} ({took if took is None else round(took, 2)} s)", why
    except (AssertionError, RuntimeError, IndexError) as e:
        return False, name, repr(e)
    finally:
        free.give(i)


def kill_steps(t, w):
    free = Free(BOARDS)
    cases = [(step, victim, signo) for step in STEPS
             for victim in ("command", "keeper", "actuator")
             for signo in (signal.SIGKILL, signal.SIGSTOP)]
    with concurrent.futures.ThreadPoolExecutor(BOARDS) as pool:
        for good, name, why in pool.map(lambda case: kill_case(w, free, *case), cases):
            t.ok(good, name, why)


def kill_several(t, w):
    for who, heir in ((("command", "keeper"), "actuator"), (("command", "actuator"), "keeper")):
        c = w.capped(0)
        c.kill(*(c.p.pid if name == "command" else getattr(c, name) for name in who))
        took = w.back(0)
        t.ok(took is not None, f"{' and '.join(who)} killed together: the {heir} sees to it", took)
        c.close()

    c = w.capped(0)
    other = w.capped(1)
    c.kill_all()
    time.sleep(0.5)
    t.equal(w.nvml.limit(0), CAP, "command, keeper and actuator killed together: nobody is left")
    p = w.recover()
    t.ok(p.returncode == 0 and w.nvml.limit(0) == ORIGINAL and not w.entry(0) and
         f": {ORIGINAL / 1000:g} W put back, a killed actuator had left {CAP / 1000:g} W\n" in p.stderr,
         "--recover puts the original back", f"{p.returncode} {p.stderr}")
    t.ok(w.nvml.limit(1) == CAP and w.entry(1), "and leaves alone what a living actuator holds")
    p = w.recover()
    t.ok(p.returncode == 0 and w.nvml.limit(0) == ORIGINAL, "once more does nothing", p.stderr)
    other.close()
    t.ok(w.back(1) is not None, "a command that ends gives its board back")
    c.close()

    c = w.capped(0)
    c.kill_all()
    time.sleep(0.5)
    w.nvml.set(0, ORIGINAL)
    p = w.recover()
    t.ok(p.returncode == 0 and not w.entry(0) and f": {ORIGINAL / 1000:g} W was in force, a killed actuator had left its entry\n" in p.stderr,
         "a recovery does not say that it put back what was in force", f"{p.returncode} {p.stderr}")
    c.close()

    c = w.capped(0)
    c.kill_all()
    time.sleep(0.2)
    nxt = w.client()
    t.ok(w.nvml.limit(0) == ORIGINAL and not w.entry(0),
         "the next start recovers before it serves")
    held = nxt.ask("hold", w.uuid[0])
    t.ok(f" done {ORIGINAL} {ORIGINAL} " in held, "and the original it finds is the right one", held)
    nxt.close()
    c.close()


def others_limits(t, w):
    c = w.capped(0)
    w.nvml.set(0, 180000)
    heard = c.hear("event yielded")
    t.ok("180000" in heard and "200000" in heard, "an administrator's limit is seen and named", heard)
    t.ok(" yielded " in c.ask("set", w.uuid[0], 150000), "after that nothing is set any more")
    t.ok(" yielded " in c.ask("hold", w.uuid[0]), "nor held")
    c.close()
    time.sleep(0.3)
    t.equal(w.nvml.limit(0), 180000, "it is never overwritten")
    w.nvml.set(0, ORIGINAL)

    c = w.capped(0)
    c.kill_all()
    w.nvml.set(0, 180000)
    p = w.recover()
    t.ok(w.nvml.limit(0) == 180000 and not w.entry(0) and "Underwatt did not set the limit" in p.stderr,
         "nor by a recovery, which says so", p.stderr)
    c.close()
    w.nvml.set(0, ORIGINAL)

    c = w.capped(0)
    os.kill(c.actuator, signal.SIGSTOP)
    w.nvml.set(0, 180000)
    uwtest.wait_for(lambda: not w.entry(0))
    t.equal(w.nvml.limit(0), 180000, "nor by a keeper's recovery")
    c.close()
    w.nvml.set(0, ORIGINAL)


def other_times(t, w):
    c = w.capped(0)
    c.kill_all()
    path = w.journal / f"{w.uuid[0]}.cap"
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    path.write_text(path.read_text().replace(boot, boot[::-1]))
    p = w.recover()
    t.ok(w.nvml.limit(0) == CAP and not w.entry(0) and "rebooted" in p.stderr,
         "a reboot in between: the entry is dropped, and said", p.stderr)
    c.close()
    w.nvml.set(0, ORIGINAL)

    c = w.capped(0)
    c.kill_all()
    w.node.fault("all", "reload")
    w.nvml.set(0, CAP)  # somebody's own, equal to what ours was
    p = w.recover()
    t.ok(w.nvml.limit(0) == CAP and not w.entry(0) and "driver was reloaded" in p.stderr,
         "a driver's reload in between: the same", p.stderr)
    c.close()
    for i in range(BOARDS):
        w.nvml.set(i, ORIGINAL)

    c = w.capped(0)
    w.node.fault("all", "reload")
    heard = c.hear("event yielded")
    t.ok("driver was reloaded" in heard, "a reload while capped is named", heard)
    c.close()
    t.ok(w.nvml.limit(0) != CAP and not w.entry(0), "and nothing is undone")

    w.nvml.set(0, ORIGINAL)
    c = w.capped(0)
    c.kill_all()
    w.node.fault("all", "unload")
    p = w.recover()
    t.ok(p.returncode == 1 and w.entry(0), "with the driver unloaded a recovery fails, and says so",
         f"{p.returncode} {p.stderr}")
    w.node.fault("all", "reload")
    p = w.recover()
    t.ok(p.returncode == 0 and not w.entry(0), "with a new one the entry is dropped", p.stderr)
    c.close()
    for i in range(BOARDS):
        w.nvml.set(i, ORIGINAL)


def faults(t, w):
    c = w.client()
    w.node.fault(0, "refuse")
    line = c.ask("hold", w.uuid[0])
    t.ok(" denied " in line and "sudo" in line and "CAP_SYS_ADMIN" in line,
         "no permission to set: the first hold says so, and the ways to get it", line)
    t.ok(not w.entry(0), "and leaves nothing")
    w.node.fault(0, "accept")
    line = c.ask("hold", w.uuid[0])
    t.ok(" done " in line, "with the right it holds", line)
    line = c.ask("set", w.uuid[0], 999000)
    t.ok(" refused " in line and "999000 mW is outside 150000..300000" in line,
         "out of range: the range is named", line)
    t.ok(" done " in c.ask("set", w.uuid[0], CAP), "in range it is done")
    w.node.fault(0, "refuse")
    line = c.ask("set", w.uuid[0], 190000)
    t.ok(" denied " in line and f" {CAP} " in line, "a write refused later: the old cap stays", line)
    c.tell("release", w.uuid[0])
    line = c.hear(f"release {w.uuid[0]}")
    t.ok(" unknown " in line, "a release that is refused is not called done", line)
    w.node.fault(0, "accept")
    t.ok(w.back(0, seconds=20) is not None, "it goes on trying until the original is back")

    for i in (1, 2):
        c.ask("hold", w.uuid[i])
        c.ask("set", w.uuid[i], CAP)
    w.node.fault(1, "hang")
    c.tell("set", w.uuid[1], 190000)
    line = c.ask("set", w.uuid[2], 190000)
    t.ok(" done " in line and not any(heard.startswith("set") for heard in c.lines),
         "a board that hangs does not delay another: its own answer is yet to come", f"{line} {c.lines}")
    line = c.hear(f"set {w.uuid[1]}")
    t.ok(" unknown " in line, "its own set is answered: unknown", line)
    w.node.fault(1, "release")
    t.ok(w.back(1) is not None, "when it answers again, its original is back")

    w.node.fault(2, "lost")
    t.ok(c.hear("event lost"), "a board that falls off the bus is told")
    c.close()
    t.ok(w.entry(2), "its entry waits")
    w.node.fault(2, "found")
    w.recover()
    t.ok(w.back(2) is not None, "and is undone when the board is there again")


def two_at_once(t, w):
    c = w.capped(0)
    d = w.client()
    line = d.ask("hold", w.uuid[0])
    t.ok(" taken " in line and f" {c.p.pid} " in line,
         "a second Underwatt is refused with the first's pid", f"{line} {c.p.pid}")
    t.ok(" done " in d.ask("hold", w.uuid[1]), "but gets another board")
    d.close()
    t.equal(w.nvml.limit(0), CAP, "the first keeps its cap")
    c.close()

    c = w.capped(0)
    os.kill(c.p.pid, signal.SIGSTOP)
    took = w.back(0)
    os.kill(c.p.pid, signal.SIGCONT)
    t.ok(took is not None and c.hear("event lease"), "a command that was stopped hears of its lease")
    t.ok(" done " in c.ask("hold", w.uuid[0]), "and may hold its board again")
    c.close()


def words(t, w):
    """Its words on standard error must cost nothing but themselves."""
    for name in ("closed", "full"):
        ours, theirs = os.pipe()
        if name == "full":
            os.set_blocking(theirs, False)
            while True:
                try:
                    os.write(theirs, b"x" * 4096)
                except BlockingIOError:
                    break
            os.set_blocking(theirs, True)
        c = w.capped(0, stderr=theirs)
        os.close(theirs)
        if name == "closed":
            os.close(ours)
        os.kill(c.p.pid, signal.SIGSTOP)  # "did not renew its lease"
        t.ok(w.back(0) is not None, f"standard error is {name}: the original comes back all the same")
        t.ok(state_of(c.actuator) and state_of(c.keeper), "and the actuator lives on")
        c.close()
        if name == "full":
            os.close(ours)


def links(t, w):
    victim = pathlib.Path(w.node.tmp) / "victim"
    victim.write_text("safe")
    for suffix in (".cap", ".lock"):
        path = w.journal / (w.uuid[0] + suffix)
        path.unlink(missing_ok=True)
        path.symlink_to(victim)
        c = w.client()
        line = c.ask("hold", w.uuid[0])
        t.ok(" refused " in line and "symbolic link" in line, f"UUID{suffix} as a link is refused", line)
        c.close()
        kept = path.with_name(path.name + ".damaged") if suffix == ".cap" else path
        t.ok(kept.is_symlink() and (kept == path or not os.path.lexists(path)),
             f"UUID{suffix} is kept {'aside ' if kept != path else ''}for root", list(w.journal.iterdir()))
        kept.unlink()
        t.equal(victim.read_text(), "safe", "what it names is untouched")
    if os.geteuid() != 0:
        t.skip("a library that others may exchange", "takes root to be refused it")
        return
    loose = pathlib.Path(tempfile.mkdtemp(prefix="uw-", dir="/tmp"))
    shutil.copy(w.library, loose / "libnvidia-ml.so.1")
    os.chmod(loose, 0o777)
    c = Client(str(loose / "libnvidia-ml.so.1"))
    line = c.hear("ready")
    t.ok(line.startswith("ready -1 ") and "root" in line,
         "root loads no library that others may exchange", line)
    c.close()
    shutil.rmtree(loose)


def play(t, *parts):
    """Parts of the test, one after the other, in a world of their own."""
    with uwtest.Node(machine=MACHINE) as node:
        w = World(node)
        for part in parts:
            part(t, w)


def main():
    t = uwtest.Tap()
    uwtest.together(lambda: play(t, kill_steps, two_at_once), lambda: play(t, kill_several, words, links),
                    lambda: play(t, others_limits, other_times), lambda: play(t, faults))
    t.done()


if __name__ == "__main__":
    main()
