#!/usr/bin/python3
"""The actuator's service and clients that die, hang, or come back, at every step of a cap's
life: originals back in time, or taken over without a write.

Every case has a board and a client of its own; all live in one service.
"""
import concurrent.futures
import importlib
import os
import pathlib
import select
import signal
import subprocess
import sys
import threading
import time

import uwtest

kill = importlib.import_module("test-actuator-kill")
ACTUATOR = uwtest.program("underwatt-actuator")
HOLD = str(uwtest.BUILD / "tests/system/actuator-hold")
GRACE_S, LEASE_S, SLACK_S, LATENCY_S = 4.0, 2.5, 3.0, 0.25
ORIGINAL, CAP = 250000, 200000
STEPS = ["holding", "held", "setting", "set", "later", "releasing"]
BOARDS = 14
MACHINE = f"""
set_latency: {int(LATENCY_S * 1000)} ms
boards: [{{model: v100, count: {BOARDS}, limit: 250 W}}]
"""
lock = threading.Lock()


class Client:
    """tests/system/actuator-hold.c at the service's socket."""

    def __init__(self, path):
        self.p = subprocess.Popen([HOLD, path, "-", "service"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.read = b""    # select(2) does not see lines that a buffered reader has read

    def hear(self, start, seconds=8.0):
        until = time.monotonic() + seconds
        while True:
            while b"\n" not in self.read:
                if not select.select([self.p.stdout], [], [], max(0, until - time.monotonic()))[0]:
                    return []
                more = self.p.stdout.read(65536)
                if not more:
                    return []
                self.read += more
            line, _, self.read = self.read.partition(b"\n")
            if line.decode().startswith(start):
                return line.decode().split()

    def tell(self, *words):
        self.p.stdin.write((" ".join(map(str, words)) + "\n").encode())

    def ask(self, *words):
        """WORD UUID RESULT ENFORCED ORIGINAL …"""
        self.tell(*words)
        return self.hear(f"{words[0]} {words[1]}")

    def end(self):
        self.p.kill()
        self.p.wait()
        self.p.stdin.close()
        self.p.stdout.close()


def reach(w, c, i, step):
    """Bring a client to the step; those in flight have a write under way, by journal or board."""
    uuid = w.uuids[i]
    c.hear("ready")
    if step == "holding":
        c.tell("hold", uuid)
        uwtest.must(uwtest.wait_for(lambda: w.entry(i), step=0.005), step, "no entry")
        return
    c.ask("hold", uuid)
    if step == "held":
        return
    if step == "setting":
        c.tell("set", uuid, CAP)
        uwtest.must(uwtest.wait_for(lambda: f"intended_mw {CAP}\n" in w.entry(i), step=0.005), step, w.entry(i))
        return
    c.ask("set", uuid, CAP)
    if step == "later":
        time.sleep(1.2)
    if step == "releasing":
        c.tell("release", uuid)
        uwtest.must(uwtest.wait_for(lambda: w.nvml.limit(i) == ORIGINAL, step=0.005), step, w.nvml.limit(i))


class World:
    def __init__(self, t, node, path):
        self.t, self.node, self.path = t, node, path
        kill.BOARDS = BOARDS
        self.nvml = kill.Nvml(os.path.join(node.state, "lib", "libnvidia-ml.so.1"))
        self.uuids = self.nvml.uuid
        self.journal = pathlib.Path(node.state, "actuator")

    def entry(self, i):
        try:
            return (self.journal / f"{self.uuids[i]}.cap").read_text()
        except OSError:
            return ""

    def ok(self, good, name, why=""):
        with lock:
            self.t.ok(good, name, why)

    def free(self, i):
        """The original is in force and nothing is owed."""
        return self.nvml.limit(i) == ORIGINAL and not (self.journal / f"{self.uuids[i]}.cap").exists()

    def nobody_follows(self, i, step, signo):
        c = Client(self.path)
        try:
            reach(self, c, i, step)
            began = time.monotonic()
            os.kill(c.p.pid, signo)
            name = f"{signal.Signals(signo).name} when {step}"
            most = (GRACE_S if signo == signal.SIGKILL else LEASE_S) + SLACK_S
            if signo == signal.SIGKILL and step in ("set", "later"):
                time.sleep(GRACE_S - 1)
                b = self.node.board(i)    # on a busy machine this may be late, and shows nothing
                self.ok(b["limit_mw"] == CAP or time.monotonic() - began >= GRACE_S,
                        f"{name}: the cap stays for the grace", b)
            uwtest.wait_for(lambda: self.free(i), most - (time.monotonic() - began) + 1, 0.1)
            took = time.monotonic() - began
            self.ok(self.free(i) and took <= most, f"{name}: the original is back ({took:.1f} s of {most})",
                    self.node.board(i))
        finally:
            c.end()

    def another_follows(self, i, step):
        c = Client(self.path)
        reach(self, c, i, step)
        before = self.node.board(i)["limit_writes"]
        c.end()
        d = Client(self.path)
        try:
            d.hear("ready")
            held = d.ask("hold", self.uuids[i])
            b = self.node.board(i)
            name = f"killed when {step}"
            if step == "releasing":  # its end had begun
                self.ok(held[2:3] in (["unknown"], ["done"]), f"{name}: no cap is taken over", held)
                self.ok(uwtest.wait_for(lambda: self.node.board(i)["limit_mw"] == ORIGINAL, 3),
                        f"{name}: the original comes back", self.node.board(i))
                return
            capped = step in ("setting", "set", "later")
            self.ok(held[2:5] == ["done", str(CAP if capped else ORIGINAL), str(ORIGINAL)],
                    f"{name}: taken over with the original and the limit in force", f"{held} {b}")
            flight = step in ("holding", "setting")
            self.ok(b["limit_writes"] <= before + flight and
                    b["limit_mw"] == (CAP if capped else ORIGINAL),
                    f"{name}: without a write but the one in flight", f"{before} {b}")
            time.sleep(GRACE_S + 1)
            b = self.node.board(i)
            self.ok(b["limit_writes"] <= before + flight and b["limit_mw"] == (CAP if capped else ORIGINAL),
                    f"{name}: and it is the new one's after the grace", b)
            got = d.ask("release", self.uuids[i])
            self.ok(got[2:4] == ["done", str(ORIGINAL)], f"{name}: which gives it back", got)
        finally:
            d.end()


def start(node):
    path = os.path.join(node.state, "actuator", "actuator.sock")
    config = pathlib.Path(node.state, "actuator.yaml")
    config.write_text(f"grace: {GRACE_S} s\n")
    server = subprocess.Popen([ACTUATOR, "--serve", "--config", str(config), "--library",
                               os.path.join(node.state, "lib", "libnvidia-ml.so.1")],
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    node.children.append(server)
    uwtest.must(uwtest.wait_for(lambda: uwtest.Daemon._listens(path)), path, "is not listened at")
    return server, path


def actuator_dies(t, w, node, server):
    """With a client that holds and one that has left: recovery restores both."""
    c, gone = Client(w.path), Client(w.path)
    for client, i in ((c, 0), (gone, 1)):
        reach(w, client, i, "set")
    gone.end()
    os.kill(server.pid, signal.SIGKILL)
    server.wait()
    t.ok(c.hear("event ended"), "kill -9 of the service: its client hears it")
    c.end()
    t.ok(node.board(0)["limit_mw"] == CAP and node.board(1)["limit_mw"] == CAP, "nobody restores yet")
    os.unlink(w.path)
    again, _ = start(node)
    c = Client(w.path)
    t.ok(c.hear("ready"), "the next one serves …")
    t.ok(w.free(0) and w.free(1), "… once it has restored", node.status()["boards"][:2])
    c.ask("hold", w.uuids[0])
    c.ask("set", w.uuids[0], CAP)
    began = time.monotonic()
    again.send_signal(signal.SIGTERM)
    t.equal((again.communicate(timeout=10), again.returncode)[1], 0, "SIGTERM ends it")
    t.ok(w.free(0) and time.monotonic() - began < 3, "at once, originals first: no grace then")
    c.end()


def main():
    t = uwtest.Tap()
    with uwtest.Node(machine=MACHINE) as node:
        server, path = start(node)
        w = World(t, node, path)
        with concurrent.futures.ThreadPoolExecutor(BOARDS) as pool:
            cases = [(step, signo) for step in STEPS for signo in (signal.SIGKILL, signal.SIGSTOP)]
            for done in [pool.submit(w.nobody_follows, i, *case) for i, case in enumerate(cases)]:
                done.result()
            for done in [pool.submit(w.another_follows, i, step) for i, step in enumerate(STEPS)]:
                done.result()
        t.ok(uwtest.wait_for(lambda: all(w.free(i) for i in range(BOARDS)), GRACE_S + SLACK_S, 0.2),
             "every board is free in the end", node.status()["boards"])
        actuator_dies(t, w, node, server)
    t.done()


if __name__ == "__main__":
    sys.exit(main())
