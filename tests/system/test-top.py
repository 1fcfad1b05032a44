#!/usr/bin/python3
"""`underwatt top` in a terminal of its own: what stands there, keys, sizes, the end."""
import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import socket
import struct
import sys
import termios
import threading
import time

import uwtest

COLOUR = re.compile(rb"\x1b\[[0-9;]*(3[1-7]|4[1-7])[0-9;]*m")
LEAVES = b"\x1b[?1049l"  # the screen that was there before is back


RULES = """policy: 1
defaults: {for: 0 s, release: 0 s, idle_boards: true}
rules:
- {name: dirty-grid, when: carbon > 400 g/kWh, cap: 60 %, ramp: at once}
- {name: only-shown, when: carbon > 400 g/kWh, cap: 50 %, ramp: at once, dry_run: true}
"""


class Top:
    def __init__(self, node, lines=24, columns=80, **env):
        command, env = node.command(["underwatt", "top"]), node.env(TERM="xterm-256color", **env)
        self.out = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            # The size before the first look.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
            os.execve(command[0], command, env)

    def read(self):
        if select.select([self.fd], [], [], 0.05)[0]:
            try:
                self.out += os.read(self.fd, 65536)
            except OSError:
                pass

    def until(self, test, seconds=20):
        """Reads until it holds."""
        end = time.monotonic() + seconds
        while not test() and time.monotonic() < end:
            self.read()
        return test()

    def shows(self, *words):
        return self.until(lambda: all(w.encode() in self.text() for w in words))

    def text(self):
        return re.sub(rb"\x1b(\[[0-9;?]*[A-Za-z]|[()][A-Z0-9])", b" ", self.out)

    def fresh(self):
        self.out = b""

    def size(self, lines, columns):
        self.fresh()
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def drawn(self, *words, without=None):
        """Whether a whole screen shows that, soon."""
        for n in range(20):
            self.size(25 - n % 2, 80)
            if self.until(lambda: all(w.encode() in self.text() for w in words), 1) and not (
                    without and without.encode() in self.text()):
                return True
        return False

    def press(self, keys):
        os.write(self.fd, keys)

    def end(self):
        """Its status, once it has ended; None: it has not."""
        status = []

        def gone():
            pid, got = (0, 0) if status else os.waitpid(self.pid, os.WNOHANG)
            if pid:
                status.append(os.waitstatus_to_exitcode(got))
            return bool(status)

        self.until(gone)
        if not status:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        while select.select([self.fd], [], [], 0)[0]:
            before = len(self.out)
            self.read()
            if len(self.out) == before:
                break
        os.close(self.fd)
        return status[0] if status else None


def screen(t, node):
    top = Top(node)
    t.ok(top.shows("GPU", "Tesla V100", "CAP", "simulated"), "80x24: boards and caps", top.text()[-400:])
    t.ok(COLOUR.search(top.out), "in colour")
    top.size(50, 200)
    t.ok(top.shows("GPU 0 power, ", "GPU 1 power, "), "50x200: a graph of each board", top.text()[-400:])
    for lines, columns in ((5, 20), (1, 1), (60, 200), (24, 80)):
        top.size(lines, columns)
        t.ok(top.until(lambda: len(top.out) > 0), f"drawn anew at {columns}x{lines}")
    top.fresh()
    top.press(b"h")
    t.ok(top.until(lambda: len(top.out) > 100), "a key opens the help")
    top.press(b"\x1b")
    top.press(b"jk~\x1b[B\x01\xff")
    time.sleep(0.2)
    top.fresh()
    t.ok(top.until(lambda: len(top.out) > 0), "keys of any kind: it goes on")
    top.fresh()
    top.press(b"/\xc3\xa9\xff\x7fgpu 1q")    # one character of two bytes goes again; a byte that is none is none
    t.ok(top.shows("Enter", "Keep", "Clear", "Filter"), "a filter is typed", top.text()[-400:])
    t.ok(top.drawn("gpu 1q", "Keep", "no board matches the filter"), "keys are its text", top.text()[-800:])
    top.press(b"\x7f\r")
    t.ok(top.drawn("filtered", "Filter: gpu 1 ", "Clear", "  1 Tesla V100", without="  0 Tesla V100"), "and kept",
         top.text()[-800:])
    top.press(b"\x1b")
    t.ok(top.drawn("  0 Tesla V100", "  1 Tesla V100", without="filtered"), "Esc shows the other boards again",
         top.text()[-800:])
    top.size(24, 80)
    top.fresh()
    top.press(b"w")
    t.ok(top.shows("GPU WASTE", "WASTED TODAY BY USER"), "a key opens the view of waste", top.text()[-800:])
    t.ok(top.until(lambda: re.search(rb"TO +\d\d:\d\d +UTC", top.text())), "with the daemon's answer", top.text()[-800:])
    t.ok(top.shows("none: no job is known to waste energy", "BY PROJECT"), "nobody has wasted any", top.text()[-800:])
    top.press(b"q")
    t.equal(top.end(), 0, "q ends it")
    t.ok(LEAVES in top.out, "and leaves the terminal as it was", top.out[-100:])


class SlowReport:
    """A way to the daemon on which reports wait until `go` is set."""
    def __init__(self, path, to):
        self.to, self.go, self.asked = to, threading.Event(), []
        self.listens = socket.socket(socket.AF_UNIX)
        self.listens.bind(str(path))
        self.listens.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            threading.Thread(target=self.relay, args=(self.listens.accept()[0],), daemon=True).start()

    def relay(self, client):
        with client, socket.socket(socket.AF_UNIX) as daemon:
            daemon.connect(self.to)
            while True:
                for one in select.select([client, daemon], [], [])[0]:
                    data = one.recv(65536)
                    if not data:
                        return
                    if one is client and b"/v1/report" in data:
                        self.asked.append(data.split(b"\r\n")[0])
                        self.go.wait()
                    (daemon if one is client else client).sendall(data)


def slow(t, node, daemon):
    """A report that takes its time does not hold up the view."""
    way = SlowReport(pathlib.Path(node.tmp, "slow.sock"), daemon.socket)
    top = Top(node, UNDERWATT_SOCKET=pathlib.Path(node.tmp, "slow.sock"))
    t.ok(top.shows("Tesla V100") and not way.asked, "the view of waste is closed: no report is asked for", way.asked)
    top.press(b"w")
    t.ok(top.shows("no answer yet") and top.until(lambda: way.asked), "it is open: one is asked for", top.text()[-800:])
    for i in range(2):
        top.press(b"h")
        t.ok(top.shows("any key goes back"), "keys do their work meanwhile", top.text()[-800:])
        top.press(b"h")
        t.ok(top.drawn("Tesla V100", without="any key goes back"), "… and are gone", top.text()[-800:])
        top.fresh()
    clock = lambda: set(re.findall(rb"\d\d:\d\d:\d\d", top.text()))
    top.size(30, 100)
    t.ok(top.until(lambda: len(top.out) > 1000 and clock()), "and figures come", top.text()[-800:])
    way.go.set()
    t.ok(top.until(lambda: re.search(rb"TO +\d\d:\d\d +UTC", top.text())), "then the report", top.text()[-800:])
    top.press(b"ww")
    end = time.monotonic() + 1.5
    top.until(lambda: time.monotonic() > end)
    t.equal([x.split()[1] for x in way.asked], [b"/v1/report?waste=true&from=today"], "once a minute")
    top.press(b"q")
    t.equal(top.end(), 0, "q ends it")
    way.go.clear()
    top = Top(node, UNDERWATT_SOCKET=pathlib.Path(node.tmp, "slow.sock"))
    t.ok(top.shows("Tesla V100"), "another one")
    top.press(b"w")
    t.ok(top.until(lambda: len(way.asked) == 2), "asks as well", way.asked)
    top.press(b"q")
    t.equal(top.end(), 0, "and ends while the report is awaited")
    way.go.set()


def past(t, daemon):
    """What the daemon knows of the seconds before `top` starts."""
    look = lambda: daemon.ask("GET", "/v1/gpus/0/history")[1]
    got = uwtest.wait_until(look, lambda got: len(got["samples"]) > 1)
    samples = got["samples"]
    t.ok(len(samples) > 1 and 0 < samples[-1]["time_s"] <= got["length_s"] <= 180 and
         all(s["power_w"] > 0 for s in samples), "its history", got)


def plain(t, node):
    top = Top(node, NO_COLOR="1")
    t.ok(top.shows("Tesla V100"), "NO_COLOR: boards")
    t.ok(not COLOUR.search(top.out), "no colour", COLOUR.search(top.out))
    os.kill(top.pid, signal.SIGTERM)
    status = top.end()
    t.ok(status not in (None, 0), f"SIGTERM ends it: {status}")
    t.ok(LEAVES in top.out, "with the terminal as it was", top.out[-100:])
    top = Top(node)
    t.ok(top.shows("Tesla V100"), "once more")
    top.press(b"\x03")
    t.equal(top.end(), 0, "^C quits")
    t.ok(LEAVES in top.out, "with the terminal as it was", top.out[-100:])


def ruled(t, node, daemon, policy):
    """A rule's name is why the cap is what it is: in the column, among the claims; and no longer when it ends."""
    policy.write_text(RULES)
    t.equal(daemon.ask("POST", "/v1/reload")[0], 200, "a policy")
    p = node.run("underwatt", "signal", "set", "carbon", "450 g/kWh", "--for", "1 h")
    t.equal(p.returncode, 0, "its signal")

    def once():
        out = node.run("underwatt", "top", "--once").stdout
        return [x.split() for x in out.splitlines() if "Tesla V100" in x]

    t.ok(uwtest.wait_for(lambda: [("180" in x, x[-2:]) for x in once()] == [(True, ["rule", "dirty-grid:~"])] * 2),
         "--once: the cap and the rule on both boards", once())
    top = Top(node)
    t.ok(top.shows("180", "rule dirty-grid"), "80x24: CAPPED BY names the rule", top.text()[-400:])
    top.press(b"c")
    top.size(30, 100)  # all of it is drawn, not what differs
    t.ok(top.shows("CLAIMS ON GPU 0", "soft", "rule dirty-grid: carbon 450 g/kWh"), "the claims say why", top.text()[-800:])
    t.ok(b"only-shown" not in top.text(), "a dry run is no claim", top.text()[-800:])
    top.press(b"q")
    t.equal(top.end(), 0, "q ends it")
    p = node.run("underwatt", "signal", "unset", "carbon")
    t.equal(p.returncode, 0, "the signal is unknown")
    t.ok(uwtest.wait_for(lambda: [("300" in x, "rule" in x) for x in once()] == [(True, False)] * 2),
         "--once: the originals are back, and no rule is named", once())


def main():
    t = uwtest.Tap()
    with uwtest.Node(board="v100", count=2) as node:
        policy = pathlib.Path(node.tmp, "policy.yaml")
        daemon = node.daemon(f"policy: {{file: {policy}}}\n")
        past(t, daemon)
        screen(t, node)
        plain(t, node)
        slow(t, node, daemon)
        ruled(t, node, daemon, policy)
        p = node.run("underwatt", "top", "--once")
        t.ok(p.returncode == 0 and "Tesla V100" in p.stdout and "\x1b" not in p.stdout, "--once: plain text", p.stderr)
        p = node.run("underwatt", "top")
        t.ok(p.returncode == 1 and "--once" in p.stderr, "no terminal: it says what to take", p.stderr)
    t.done()


if __name__ == "__main__":
    sys.exit(main())
