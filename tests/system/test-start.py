#!/usr/bin/python3
"""underwatt-start and the actuator's service under it, with a stand-in for the daemon:
whoever is killed or stopped, caps are taken over without a write or originals are back.
"""
import os
import pathlib
import signal
import stat
import subprocess
import sys
import time

import uwtest

ORIGINAL, CAP = 250000, 200000
# Holds the board and sets the cap, connects again when the actuator has gone; says what it
# hears in a log of its own.
DAEMON = r"""#!/usr/bin/python3
import os, signal, socket, struct, sys, time
ASK, TELL = struct.Struct("=IHHIII96s"), struct.Struct("=IHHII96sIIIIIIi")
log = open(os.environ["STANDIN_LOG"], "a", buffering=1)
uuid, cap = os.environ["STANDIN_UUID"], int(os.environ["STANDIN_CAP"])
path = sys.argv[sys.argv.index("--actuator") + 1]
ending = False
def on_term(*_):
    global ending
    ending = True
signal.signal(signal.SIGTERM, on_term)
signal.signal(signal.SIGHUP, lambda *_: log.write("hup\n"))
log.write(f"start {os.getpid()} {os.getuid()} {os.getgid()} {len(os.getgroups())} {' '.join(sys.argv[1:])}\n")
if os.environ.get("STANDIN_STATUS"):
    sys.exit(int(os.environ["STANDIN_STATUS"]))
seq = 0
def ask(s, kind, mw=0, uuid=""):
    global seq
    seq += 1
    s.send(ASK.pack(0x55574131, 2, kind, seq, mw, 0, uuid.encode()))
    while True:
        data = s.recv(4096)
        if not data:
            raise ConnectionError
        m = TELL.unpack(data[:TELL.size])
        if m[3] == seq:
            return m[4], m[6], m[7]
def live():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(10)
    s.connect(path)
    ask(s, 1)
    result, enforced, original = ask(s, 2, uuid=uuid)
    log.write(f"held {result} {enforced} {original}\n")
    if result:
        return time.sleep(0.2)
    if enforced != cap:
        log.write("set %d %d %d\n" % ask(s, 3, cap, uuid))
    while not ending:
        time.sleep(0.1)
        ask(s, 5)
    log.write("released %d %d %d\n" % ask(s, 6, uuid=uuid))
while not ending:
    try:
        live()
    except OSError:
        time.sleep(0.1)
log.write("end\n")
"""


class Start:
    """underwatt-start in a world, over the stand-in."""

    def __init__(self, node, *more, status="", cap=CAP, config=""):
        self.node = node
        self.dir = pathlib.Path(node.tmp, f"start-{len(node.children)}")
        (self.dir / "any").mkdir(parents=True)
        (self.dir / "any").chmod(0o777)
        self.log = self.dir / "any" / "log"
        daemon = self.dir / "daemon"
        daemon.write_text(DAEMON)
        daemon.chmod(0o755)
        self.errors = self.dir / "errors"
        if config:
            (self.dir / "actuator.yaml").write_text(config)
            more = ("--actuator-config", str(self.dir / "actuator.yaml"), *more)
        uuid = node.status()["boards"][0]["uuid"]
        with open(self.errors, "w", encoding="ascii") as errors:
            self.p = node.popen("underwatt-start", "--daemon", daemon, *more, stderr=errors,
                                env={"STANDIN_LOG": self.log, "STANDIN_UUID": uuid,
                                     "STANDIN_CAP": cap, "STANDIN_STATUS": status})

    def said(self):
        return self.errors.read_text()

    def lines(self, start=""):
        try:
            return [line for line in self.log.read_text().splitlines() if line.startswith(start)]
        except OSError:
            return []

    def hear(self, start, n=1, seconds=20):
        """The n-th line of the stand-in that begins so; [] if it does not come."""
        uwtest.wait_for(lambda: len(self.lines(start)) >= n, seconds)
        got = self.lines(start)
        return got[n - 1].split() if len(got) >= n else []

    def children(self):
        """Command name -> pid."""
        got = {}
        try:
            pids = pathlib.Path(f"/proc/{self.p.pid}/task/{self.p.pid}/children").read_text().split()
        except OSError:
            pids = []
        for pid in map(int, pids):
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"--become" not in words:
                got["actuator" if words[0].endswith(b"underwatt-actuator") else "daemon"] = pid
        return got

    def pid_of(self, name, other_than=0):
        return uwtest.wait_for(lambda: self.children().get(name, other_than) not in (0, other_than)
                               and self.children()[name], 10)

    def capped(self, seconds=20):
        return uwtest.wait_for(lambda: self.node.board(0)["limit_mw"] == CAP, seconds)

    def restored(self, seconds):
        return uwtest.wait_for(lambda: self.node.board(0)["limit_mw"] == ORIGINAL, seconds)

    def end(self, t, what, status=0):
        self.p.send_signal(signal.SIGTERM)
        t.equal(self.p.wait(timeout=30), status, f"{what}: SIGTERM ends it")
        t.equal(self.node.board(0)["limit_mw"], ORIGINAL, f"{what}: with the original in force")


def sandboxed(t, pid):
    """Every thread of the actuator: one capability at most, no new rights, the filter."""
    tasks = list(pathlib.Path(f"/proc/{pid}/task").iterdir())
    bad = []
    for task in tasks:
        words = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines() if ":\t" in line)
        caps = [int(words[k], 16) & ~(1 << 21) for k in ("CapInh", "CapPrm", "CapEff", "CapAmb")]
        if os.geteuid() == 0:
            caps.append(int(words["CapBnd"], 16) & ~(1 << 21))
        if any(caps) or words["NoNewPrivs"] != "1" or (words["Seccomp"] != "2" and not uwtest.SANITIZED):
            bad.append((task.name, caps, words["NoNewPrivs"], words["Seccomp"]))
    t.ok(len(tasks) > 1 and not bad, f"all {len(tasks)} threads of the actuator are locked down", bad)


def life(t, node, user):
    s = Start(node, *(["--user", user] if user else []), "--", "--config", "x.yaml")
    first = s.hear("start")
    want_uid = os.getuid() if not user else 65534 if user == "nobody" else 0
    t.ok(first[2:3] == [str(want_uid)], f"the daemon runs as uid {want_uid}", f"{first} {s.said()}")
    if user == "nobody":
        t.ok(first[3] != "0" and int(first[4]) <= 1, "with that user's groups alone", first)
    path = os.path.join(node.state, "actuator", "actuator.sock")
    t.ok(first[5:7] == ["--actuator", path] and first[-2:] == ["--config", "x.yaml"],
         "it is told where the actuator is, and what was meant for it", first)
    st = os.stat(path)
    t.ok(stat.S_IMODE(st.st_mode) == 0o600 and st.st_uid == want_uid, "the socket is that user's alone")
    t.ok(s.hear("set") and s.capped(), "it holds a cap", s.said())

    other = Start(node, *(["--user", user] if user else []))
    t.equal(other.p.wait(timeout=15), 1, "another starter does not begin …")
    t.ok("runs already" in other.said() and os.stat(path).st_ino == st.st_ino, "… says why, and leaves the socket",
         other.said())
    sandboxed(t, s.pid_of("actuator"))
    t.ok(uwtest.SANITIZED or s.said().count("locked down") == 1, "and its log says so", s.said())
    writes = node.board(0)["limit_writes"]
    daemon = s.pid_of("daemon")
    os.kill(daemon, signal.SIGKILL)
    held = s.hear("held", 2)
    t.equal(held, ["held", "0", str(CAP), str(ORIGINAL)], "kill -9 of the daemon: the next one takes over")
    t.ok("killed by signal 9" in s.said(), "it is said", s.said())
    b = node.board(0)
    t.ok(b["limit_writes"] == writes and b["limit_mw"] == CAP, "without a write", b)

    daemon = s.pid_of("daemon")
    os.kill(daemon, signal.SIGSTOP)
    t.ok(s.restored(20), "SIGSTOP of the daemon: its lease is over", node.board(0))
    os.kill(daemon, signal.SIGKILL)
    t.ok(s.capped(), "killed, the next one begins anew")

    n = len(s.lines("held"))
    actuator = s.pid_of("actuator")
    os.kill(actuator, signal.SIGKILL)
    t.ok(s.hear("held", n + 1)[2:] == [str(ORIGINAL)] * 2 and s.capped(),
         "kill -9 of the actuator: the next one restores, then serves the same daemon", s.lines())

    n = len(s.lines("held"))
    actuator = s.pid_of("actuator", actuator)
    os.kill(actuator, signal.SIGSTOP)
    t.ok(s.hear("held", n + 1, 20)[2:] == [str(ORIGINAL)] * 2 and "silent" in s.said(),
         "SIGSTOP of the actuator: noticed, killed, restored", f"{s.lines()} {s.said()}")
    t.ok(s.capped(), "and served again")
    s.p.send_signal(signal.SIGHUP)
    t.ok(s.hear("hup"), "SIGHUP is the daemon's")
    s.end(t, "a life")
    t.ok(s.lines()[-1] == "end" and s.lines()[-2].startswith("released 0"),
         "the daemon ended first, its actuator there", s.lines()[-3:])
    left = [name for name in os.listdir(os.path.dirname(path)) if name.startswith("actuator.sock")]
    t.equal(left, [], "the socket is gone, and what lay beside it")


def killed(t, node, user):
    """Whoever kills the starter ends what it started."""
    s = Start(node, *user)
    t.ok(s.capped(), "a cap", s.said())
    pids = [s.pid_of("actuator"), s.pid_of("daemon")]
    os.kill(s.p.pid, signal.SIGKILL)
    s.p.wait()
    t.ok(s.restored(20), "kill -9 of the starter: the original is back")
    t.ok(uwtest.wait_for(lambda: not any(map(uwtest.alive, pids)), 10), "nobody is left behind", pids)


def graces(t, node, user):
    """No grace: restored at once; a short one: after it; both before the default's 10 s."""
    for grace, least, most in (("0 s", 0, 8), ("2 s", 1.8, 8)):
        s = Start(node, *user, config=f"grace: {grace}\n")
        t.ok(s.capped(), f"grace {grace}: a cap", s.said())
        os.kill(s.p.pid, signal.SIGSTOP)  # nobody starts another daemon
        os.kill(s.pid_of("daemon"), signal.SIGKILL)
        began = time.monotonic()
        t.ok(s.restored(most), f"grace {grace}: restored", node.board(0))
        took = time.monotonic() - began
        t.ok(least <= took <= most, f"after {took:.1f} s")
        os.kill(s.p.pid, signal.SIGCONT)
        t.ok(s.capped(), "and the next daemon is served")
        s.end(t, f"grace {grace}")


def may_realtime():
    """Whether a process of ours may have the lowest real-time priority."""
    code = "import os; os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))"
    return subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL, check=False).returncode == 0


def classes(t, node, user):
    """The actuator's threads go before everybody of the normal class, unless root says no."""
    for config, want in (("realtime: true\n", os.SCHED_RR), ("realtime: false\n", os.SCHED_OTHER)):
        if want == os.SCHED_RR and not may_realtime():
            t.skip("a real-time class", "no right to one here")
            continue
        s = Start(node, *user, config=config)
        t.ok(s.capped(), f"{config.strip()}: a cap", s.said())
        pid = s.pid_of("actuator")
        got = [os.sched_getscheduler(int(tid)) for tid in os.listdir(f"/proc/{pid}/task")]
        t.ok(len(got) > 1 and set(got) == {want}, f"all {len(got)} threads have class {want}", got)
        if want == os.SCHED_RR:
            node.fault("0", "hang")
            t.ok(uwtest.wait_for(lambda: "back to the normal class" in s.said(), 30),
                 "a call hangs in the driver: it is told", s.said())
            got = [os.sched_getscheduler(int(tid)) for tid in os.listdir(f"/proc/{pid}/task")]
            t.ok(set(got) == {os.SCHED_OTHER}, "and all threads have the normal class", got)
            node.fault("0", "release")
        s.end(t, config.strip())


def endings(t, node, user):
    for status, want in (("0", 0), ("2", 2)):
        s = Start(node, *user, status=status)
        t.equal(s.p.wait(timeout=15), want, f"a daemon that ends with {status} ends all")
    s = Start(node, *user, status="1")
    t.ok(s.hear("start", 4), "one that fails is started again …", s.said())
    said = s.said()
    t.ok("100 ms" in said and "200 ms" in said and "400 ms" in said, "… later each time", said)
    s.p.send_signal(signal.SIGTERM)
    t.equal(s.p.wait(timeout=15), 0, "and ended while it waits for that")

    s = Start(node, *user, config="grace: 5\n")
    t.ok(uwtest.wait_for(lambda: "actuator.yaml:1: " in s.said(), 10), "a wrong configuration is named",
         s.said())
    s.p.send_signal(signal.SIGTERM)
    s.p.wait(timeout=15)


def usage(t, node, user):
    for args, says in ((["--frobnicate"], "--frobnicate"), (["--user"], "--user needs a value"),
                       (["--socket", "x.sock"], "x.sock"), (["--socket", "/" + "x" * 200], "absolute path"),
                       (["--daemon", "/nowhere/underwattd"], "/nowhere/underwattd"),
                       (["--user", "nobody-at-all"], "nobody-at-all" if os.geteuid() == 0 else "takes root")):
        p = node.run("underwatt-start", *user[:0 if "--user" in args else 2], *args)
        t.ok(p.returncode in (1, 2) and says in p.stderr, f"{' '.join(args)[:30]} is refused", p.stderr)
    p = node.run("underwatt-start", "--help")
    t.ok(p.returncode == 0 and "--actuator-config" in p.stdout, "--help")


def main():
    t = uwtest.Tap()
    root = os.geteuid() == 0
    with uwtest.Node(machine="boards: [{model: v100, count: 1, limit: 250 W}]") as node:
        user = ["--user", "root"] if root else []
        usage(t, node, user)
        life(t, node, "nobody" if root else "")
        killed(t, node, user)
        graces(t, node, user)
        classes(t, node, user)
        endings(t, node, user)
        t.ok(not list(pathlib.Path(node.state, "actuator").glob("*.cap")), "no entry is left")
    t.done()


if __name__ == "__main__":
    sys.exit(main())
