#!/usr/bin/python3
"""How programs with windows end, and what they meet: the interpreter's exit, exceptions, SIGINT, kill -9, a daemon that is restarted
or hangs.  Nothing may hang: each case has a bound in time, generous for a busy machine.  Nothing may be left over.
"""
import contextlib
import csv
import json
import os
import select
import signal
import socket
import socketserver
import subprocess
import tempfile
import threading
import time

import pyuser
import uwtest

from underwatt import _window

SOON_S = 30     # a program's whole life where nothing is waited for
AT_ONCE_S = 5   # what asks no daemon: who waits for its answer waits for 10 s; milliseconds as a rule
HANG_S = 60     # one that asks a daemon that hangs: 10 s of the library, 10 s at the exit

EXITS = {
    "with a window that is open": "m.window('x').begin()",
    "with windows whose energy nobody asked for": "[m.window('x').begin().end() for _ in range(100)]",
    "in a thread's window": "import threading; threading.Thread(target=lambda: (m.window('x').begin(), time.sleep(60)), daemon=True).start(); time.sleep(0.2)",
    "by sys.exit in a window": "import sys\nwith m.window('x'): sys.exit(0)",
    "after close": "m.close(); m.close()",
    "with a tracked function's windows": "f = m.track()(lambda: time.sleep(0.01)); f(); f()",
    "in a forked child": "import os, sys\nif os.fork() == 0:\n    m.window('x').begin().end(); sys.exit(0)\nassert os.wait()[1] == 0",
}
BEGIN = "import time, underwatt\nm = underwatt.Monitor()\n"

RAISES = """
import underwatt
m = underwatt.Monitor()
try:
    with m.window("x") as w:
        raise KeyError("theirs")
except KeyError as e:
    print(e, w.energy.time_s > 0)
try:
    with underwatt.Monitor(sync=lambda: 1 / 0).window("y"):
        pass
except ZeroDivisionError:
    print("sync's own")
m.track()(lambda: [][0])()
"""

INTERRUPTED = """
import sys, time, underwatt
m = underwatt.Monitor(log=sys.argv[1])
w = m.window("x")
try:
    with w:
        print("in", flush=True)
        time.sleep(600)
except KeyboardInterrupt:
    print("interrupted", w.energy.time_s > 0, flush=True)
try:
    with m.window("never known") as v:
        pass
    v._monitor._collect = lambda window, patient: False
    print("waits", flush=True)
    v.wait(600)
except KeyboardInterrupt:
    print("again", flush=True)
    raise
"""

KILLED = """
import sys, time, underwatt
m = underwatt.Monitor(log=sys.argv[1])
for i in range(100000):
    with m.window("step"):
        underwatt.step()
        time.sleep(0.01)
    if i == 20:
        print("begun", flush=True)
"""

LEAKS = """
import json, os, statistics, time, underwatt
def state():
    with open("/proc/self/status") as f:
        kib = next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), kib
def monitors():
    for _ in range(10):
        with underwatt.Monitor() as m:
            with m.window("x") as w:
                pass
            w.wait()
        m = underwatt.Monitor()
        m.window("y").begin().end()
        del m
def windows(m):
    for _ in range(1000):
        w = m.window("x").begin().end()
    w.wait()
with underwatt.Monitor():
    pass
before = state()    # libuv keeps a pipe
monitors()
monitors()
m = underwatt.Monitor()
levels = []
for _ in range(9):
    windows(m)
    levels.append(state()[2])
more = statistics.median(b - a for a, b in zip(levels[1:], levels[2:]))    # what windows keep is kept in each round; readings come and go
m.close()
del m
for _ in range(200):
    after = state()
    if after[:2] == before[:2]:
        break
    time.sleep(0.1)
print(json.dumps([before, after, more]))
"""

# Each line that comes in is a command; each answer is a line.
ASKED = """
import sys, time, underwatt, warnings
warnings.simplefilter("always")
m = underwatt.Monitor()
w = None
for line in sys.stdin:
    word = line.strip()
    began = time.monotonic()
    try:
        if word == "begin":
            w = m.window("x").begin()
            told = "begun"
        elif word == "end":
            w.end()
            told = "ended"
        elif word == "energy":
            told = f"energy {w.energy.total_j > 0}"
        else:
            break
    except underwatt.UnderwattError as e:
        told = f"{type(e).__name__} {e}"
    print(f"{time.monotonic() - began:.3f} {told}", flush=True)
"""

# The daemon hangs when it begins.
FIRST = """
import sys, time, underwatt, warnings, weakref
from underwatt import _monitor
warnings.simplefilter("always")
_monitor.AWAY_S = (1.0, 1.0)
class Batch:
    pass
def first():
    batch = Batch()
    with underwatt.window("first") as w:
        print("in", flush=True)
    return w, weakref.ref(batch)
w, batch = first()
@underwatt.track
def second():
    return 2 if batch() is None else "kept"
print(second(), flush=True)
try:
    w.energy
except underwatt.TimeoutError as e:
    print("unknown", flush=True)
try:
    underwatt.Monitor()
except underwatt.TimeoutError:
    print("explicit", flush=True)
sys.stdin.readline()
while True:
    with underwatt.window("later") as w:
        pass
    try:
        print(w.energy.source, len(w.energy.gpus), flush=True)
        break
    except underwatt.TimeoutError:
        time.sleep(0.2)
"""

SUMMARY = """
import sys, underwatt
m = underwatt.Monitor(log=sys.argv[1], summary=True)
with m.window("x"):
    print("in", flush=True)
    sys.stdin.readline()
"""

SLOW = """
import sys, underwatt
with underwatt.Monitor(socket=sys.argv[1], log=sys.argv[2]) as m:
    windows = []
    for i in range(5):
        with m.window(str(i)) as w:
            pass
        windows.append(w)
    print(windows[0].energy.source)
    m.close(30)
"""


class Asked:
    def __init__(self, node):
        self.child = pyuser.begun_in_world(node, ASKED, stdin=subprocess.PIPE)

    def ask(self, word):
        """(seconds, answer)"""
        self.child.stdin.write(word + "\n")
        self.child.stdin.flush()
        seconds, _, told = self.child.stdout.readline().strip().partition(" ")
        return float(seconds or 999), told

    def done(self):
        self.child.stdin.close()
        return self.child.wait(HANG_S), self.child.stderr.read()


class Held:
    """A window that a thread looks at until it may go on."""

    def __init__(self):
        self.begun, self.go = threading.Event(), threading.Event()

    def _look(self, patient):
        self.begun.set()
        return self.go.wait(HANG_S)


class Known(list):
    def take(self, window):
        self.append(window)


def drained(t):
    """Who closes a log waits for the window that the collector's thread is looking at."""
    known, held, told = Known(), Held(), []
    collector = _window.Collector(known.take)
    collector.add(held)
    collects = threading.Thread(target=collector.collect)
    drains = threading.Thread(target=lambda: (collector.drain(time.monotonic() + HANG_S), told.append(len(known))))
    collects.start()
    t.ok(held.begun.wait(SOON_S), "a thread looks at the last window")
    drains.start()
    time.sleep(0.2)
    held.go.set()
    for thread in (collects, drains):
        thread.join(HANG_S)
    t.equal(told, [1], "the end of the log waits for it")


def exits(t, node, source):
    for name, code in EXITS.items():
        began = time.monotonic()
        p = pyuser.in_world(node, BEGIN + code)
        took = time.monotonic() - began
        t.ok((p.returncode, p.stderr) == (0, "") and took < SOON_S, f"{source}: exit {name}: {took:.1f} s", p.stderr)
    p = pyuser.in_world(node, RAISES)
    lines = p.stdout.splitlines()
    t.ok(p.returncode == 1 and lines[0] == "'theirs' True" and "IndexError" in p.stderr, f"{source}: an exception passes, and the window is measured", p.stdout + p.stderr)
    t.equal(lines[1:], ["sync's own"], f"{source}: so does one of sync")


def interrupted(t, node, folder, source):
    path = os.path.join(folder, f"{source}.csv")
    p = pyuser.begun_in_world(node, INTERRUPTED, path)
    for before, after in (("in", "interrupted True"), ("waits", "again")):
        t.equal(p.stdout.readline().strip(), before, f"{source}: {before}")
        time.sleep(0.2)
        p.send_signal(signal.SIGINT)
        t.equal(p.stdout.readline().strip(), after, f"{source}: SIGINT: {after}")
    began = time.monotonic()
    status = p.wait(HANG_S)
    t.ok(status == -signal.SIGINT and time.monotonic() - began < SOON_S, f"{source}: SIGINT ends it in {time.monotonic() - began:.1f} s", status)


def killed(t, node, folder, source):
    path, page = os.path.join(folder, f"killed-{source}.csv"), os.path.join(folder, f"page-{source}")
    with open(page, "wb") as f:
        f.write(b"UWPROGR1\1\0\0\0\x3f\0\0\0".ljust(4096, b"\0"))
    p = pyuser.begun_in_world(node, KILLED, path, UNDERWATT_PROGRESS=page)
    t.equal(p.stdout.readline(), "begun\n", f"{source}: it logs")
    uwtest.wait_for(lambda: os.path.getsize(path) > 2000)
    children = uwtest.children_of(p.pid)
    p.kill()
    p.wait(10)
    t.equal((children, [c for c in children if uwtest.alive(c)]), ({}, []), f"{source}: kill -9: it had no process of its own")
    with open(path, newline="", encoding="utf-8") as f:
        text = f.read()
    rows = list(csv.DictReader(text.splitlines()))
    t.ok(text.endswith("\n") and rows and all(r["why"] is not None for r in rows), f"{source}: its log has {len(rows)} whole rows")
    p = pyuser.in_world(node, "import underwatt; underwatt.step()", UNDERWATT_PROGRESS=page, LOCAL_RANK="0")
    with open(page, "rb") as f:
        f.seek(64)
        t.ok(p.returncode == 0 and f.read(16)[8] == 1, f"{source}: its slot is the next one's", p.stderr)


def leaks(t, node, source):
    p = pyuser.in_world(node, LEAKS)
    if not t.ok(p.returncode == 0, f"{source}: 20 monitors, 9000 windows", p.stderr):
        return
    before, after, more = json.loads(p.stdout)
    t.equal(after[:2], before[:2], f"{source}: files and threads are those of before")
    t.ok(more < 1024, f"{source}: 1000 more windows take {more} KiB (median of 7 rounds)")


def restarted(t, node, d):
    a = Asked(node)
    t.equal(a.ask("begin")[1], "begun", "a window is open")
    d.child.kill()
    d.child.wait()
    seconds, told = a.ask("end")
    t.ok(told == "ended" and seconds < AT_ONCE_S, f"the daemon is killed: the window is left in {seconds * 1000:.0f} ms", told)
    seconds, told = a.ask("energy")
    t.ok(told.startswith("DaemonError") and seconds < SOON_S, "its energy is unknown, and why", told)
    t.ok(a.ask("begin")[1] == "begun" and a.ask("end")[1] == "ended", "windows go on")
    t.ok(a.ask("energy")[1].startswith("DaemonError"), "without an energy")
    d.start()
    again = lambda: a.ask("begin")[1] == "begun" and a.ask("end")[1] == "ended" and a.ask("energy")[1] == "energy True"
    t.ok(uwtest.wait_for(again, step=0.5), "another daemon: they are measured again")
    a.ask("begin")
    d.child.kill()
    d.child.wait()
    d.start()
    a.ask("end")
    seconds, told = a.ask("energy")
    t.ok(told.startswith("NoData") and "restarted" in told and seconds < SOON_S, "a window over a restart: unknown, and why", told)
    status, said = a.done()
    t.ok(status == 0 and said.count("RuntimeWarning") == 1, "one warning, and the program ends", said)


@contextlib.contextmanager
def hanging(d):
    os.kill(d.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(d.pid, signal.SIGCONT)


@contextlib.contextmanager
def slowed(d, folder):
    """A socket on which each answer of the daemon is late by as much as on a busy machine."""
    path = os.path.join(folder, "slow.sock")

    class Passes(socketserver.BaseRequestHandler):
        def handle(self):
            with socket.socket(socket.AF_UNIX) as link:
                link.connect(d.socket)
                while ready := select.select([self.request, link], [], [])[0]:
                    data = ready[0].recv(1 << 16)
                    if not data:
                        return
                    if ready[0] is link:
                        time.sleep(0.02)
                    (self.request if ready[0] is link else link).sendall(data)

    class Server(socketserver.ThreadingUnixStreamServer):
        daemon_threads = True

        def handle_error(self, request, client_address):
            pass    # who asked has gone

    with Server(path, Passes) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield path
        finally:
            server.shutdown()
            thread.join()


def slow(t, node, d, folder):
    log = os.path.join(folder, "slow.csv")
    with slowed(d, folder) as path:
        p = pyuser.in_world(node, SLOW, path, log)
    t.equal((p.returncode, p.stdout), (0, "daemon\n"), f"a daemon that answers after 20 ms: an energy is known {p.stderr}")
    with open(log, newline="", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    t.ok(sorted(r["name"] for r in rows) == list("01234") and all(float(r["total_j"]) > 0 for r in rows), "… and a log that is closed has all", rows)


def hangs(t, node, d, folder):
    a, b = Asked(node), Asked(node)
    t.equal((a.ask("begin")[1], b.ask("begin")[1]), ("begun", "begun"), "windows are open")
    with hanging(d):
        seconds, told = a.ask("end")
        t.ok(told == "ended" and seconds < AT_ONCE_S, f"a daemon that hangs: a window is left in {seconds * 1000:.0f} ms", told)
        seconds, told = a.ask("energy")
        t.ok(told.startswith("TimeoutError") and seconds < HANG_S, f"its energy: TimeoutError in {seconds:.0f} s", told)
        b.ask("end")
        seconds, told = a.ask("begin")
        t.ok(told == "begun" and seconds < HANG_S, f"the next one is entered in {seconds:.0f} s")
        seconds = sum(a.ask(word)[0] for _ in range(100) for word in ("end", "begin"))
        t.ok(seconds < 5, f"and 100 more in {seconds:.2f} s")
        path = os.path.join(folder, "hang.csv")
    t.equal(b.ask("energy")[1], "energy True", "it goes on: what ended meanwhile is known")
    p = pyuser.begun_in_world(node, SUMMARY, path, stdin=subprocess.PIPE)
    t.equal(p.stdout.readline(), "in\n", "a program with a log and a summary")
    with hanging(d):
        p.stdin.write("\n")
        p.stdin.flush()
        began = time.monotonic()
        status = p.wait(HANG_S)
        took = time.monotonic() - began
        said = p.stderr.read()
        t.ok(status == 0 and took < HANG_S and "energy unknown" in said, f"ends in {took:.0f} s where the daemon hangs", said)
    for each in (a, b):
        status, said = each.done()
        t.equal(status, 0, f"the program ends {said}")


def hangs_first(t, node, d):
    with hanging(d):
        p = pyuser.begun_in_world(node, FIRST, stdin=subprocess.PIPE)
        began = time.monotonic()
        told = [p.stdout.readline().strip() for _ in range(4)]
        t.equal(told, ["in", "2", "unknown", "explicit"], f"a daemon that hangs: the first window is entered, in {time.monotonic() - began:.0f} s in all")
    p.stdin.write("\n")
    p.stdin.flush()
    t.equal(p.stdout.readline(), "daemon 2\n", "it goes on: later windows are measured")
    status, said = p.wait(HANG_S), p.stderr.read()
    t.ok(status == 0 and said.count("RuntimeWarning: underwatt: windows are not measured") == 1, "one warning", said)


def main():
    t = uwtest.Tap()
    drained(t)
    with tempfile.TemporaryDirectory(prefix="uw-") as folder, uwtest.Node(board="v100", count=2) as node:
        for source in ("local", "daemon"):
            d = node.daemon() if source == "daemon" else None
            exits(t, node, source)
            interrupted(t, node, folder, source)
            killed(t, node, folder, source)
            leaks(t, node, source)
        slow(t, node, d, folder)
        restarted(t, node, d)
        hangs(t, node, d, folder)
        hangs_first(t, node, d)
    t.done()


if __name__ == "__main__":
    main()
