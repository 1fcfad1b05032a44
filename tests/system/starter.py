"""underwatt-start with a stand-in for the daemon, for the tests of the starter."""
import os
import pathlib
import signal

import uwtest

ORIGINAL, CAP = 250000, 200000
# Holds its boards and sets the cap, connects again when the actuator has ended; says what it
# hears in a log of its own.
DAEMON = r"""#!/usr/bin/python3
import os, signal, socket, struct, sys, time
ASK, TELL = struct.Struct("=IHHIII96s"), struct.Struct("=IHHII96sIIIIIIi")
log = open(os.environ["STANDIN_LOG"], "a", buffering=1)
uuids, cap = os.environ["STANDIN_UUIDS"].split(), int(os.environ["STANDIN_CAP"])
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
    s.settimeout(3)
    s.connect(path)
    ask(s, 1)
    for uuid in uuids:
        result, enforced, original = ask(s, 2, uuid=uuid)
        log.write(f"held {result} {enforced} {original}\n")
        if result:
            return time.sleep(0.2)
        if enforced != cap:
            log.write("set %d %d %d\n" % ask(s, 3, cap, uuid))
    while not ending:
        time.sleep(0.1)
        ask(s, 5)
    for uuid in uuids:
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

    def __init__(self, node, *more, status="", cap=CAP, config="", stderr=None, boards=1):
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
        uuids = " ".join(b["uuid"] for b in node.status()["boards"][:boards])
        with open(self.errors, "w", encoding="ascii") as errors:
            self.p = node.popen("underwatt-start", "--daemon", daemon, *more,
                                stderr=errors if stderr is None else stderr,
                                env={"STANDIN_LOG": self.log, "STANDIN_UUIDS": uuids,
                                     "STANDIN_CAP": cap, "STANDIN_STATUS": status})

    def said(self):
        return self.errors.read_text()

    def lines(self, start=""):
        try:
            return [line for line in self.log.read_text().splitlines() if line.startswith(start)]
        except OSError:
            return []

    def hear(self, start, n=1, seconds=uwtest.PATIENCE):
        """The n-th line of the stand-in that begins so; [] if it does not come."""
        uwtest.wait_for(lambda: len(self.lines(start)) >= n, seconds)
        got = self.lines(start)
        return got[n - 1].split() if len(got) >= n else []

    def pid_of(self, name, other_than=0):
        def now():
            pid = uwtest.services(self.p.pid).get(name, 0)
            return pid if pid != other_than else 0
        return uwtest.wait_for(now)

    def capped(self, seconds=uwtest.PATIENCE):
        return uwtest.wait_for(lambda: self.node.board(0)["limit_mw"] == CAP, seconds)

    def restored(self, seconds=uwtest.PATIENCE):
        return uwtest.wait_for(lambda: self.node.board(0)["limit_mw"] == ORIGINAL, seconds)

    def entries(self):
        """What the journal says is still to be undone."""
        return [f.name for f in pathlib.Path(self.node.state, "actuator").glob("*.cap")]

    def end(self, t, what, status=0):
        self.p.send_signal(signal.SIGTERM)
        t.equal(self.p.wait(timeout=uwtest.PATIENCE), status, f"{what}: SIGTERM ends it")
        t.equal(self.node.board(0)["limit_mw"], ORIGINAL, f"{what}: with the original in force")
