#!/usr/bin/python3
"""The actuator's listening socket, spoken to in raw bytes: who may connect, what is
answered, what nonsense and floods do.
"""
import os
import pathlib
import select
import signal
import socket
import stat
import struct
import subprocess
import sys
import time

import uwtest

ACTUATOR = uwtest.program("underwatt-actuator")
HOLD_CLIENT = str(uwtest.BUILD / "tests/system/actuator-hold")
MAGIC, VERSION = 0x55574131, 2
HELLO, HOLD, LIMIT, CLOCKS, RENEW, RELEASE, LEASE_OVER = 1, 2, 3, 4, 5, 6, 101
DONE, REFUSED, TAKEN, GONE, BUSY = 0, 2, 4, 7, 8
ASK, TELL = struct.Struct("=IHHIII96s"), struct.Struct("=IHHII96sIIIIIIiI200s")
MORE = struct.Struct("=III")  # revision 1: what is set, the range in force


class Peer:
    def __init__(self, path):
        self.s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.s.settimeout(5)
        self.s.connect(path)
        self.seq = 0

    def send(self, kind, uuid="", a=0, b=0):
        self.seq += 1
        self.s.send(ASK.pack(MAGIC, VERSION, kind, self.seq, a, b, uuid.encode()))
        return self.seq

    def take(self):
        """(type, seq, result, enforced, pid, text), or None at the end."""
        try:
            data = self.s.recv(4096)
        except ConnectionError:
            return None
        if not data:
            return None
        m = TELL.unpack(data)
        return m[2], m[3], m[4], m[6], m[12], m[14].split(b"\0")[0].decode()

    def ask(self, *args, **kw):
        try:
            seq = self.send(*args, **kw)
        except ConnectionError:
            return None
        while True:
            m = self.take()
            if m is None or m[1] == seq:
                return m


def start(node, *more, config="", **kw):
    library = os.path.join(node.state, "lib", "libnvidia-ml.so.1")
    if config:
        path = os.path.join(node.state, "actuator.yaml")
        pathlib.Path(path).write_text(config)
        more = ("--serve", "--config", path)
    return subprocess.Popen([ACTUATOR, *(more or ("--serve",)), "--library", library],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **kw)


def basics(t, node, path, uuid):
    mode = os.stat(path)
    t.equal(stat.S_IMODE(mode.st_mode), 0o600, "the socket is for its owner alone")
    p = Peer(path)
    t.equal(p.ask(HELLO)[2], DONE, "hello")
    t.equal(p.ask(LIMIT, uuid(0), 200000)[2], GONE, "no cap without a hold")
    t.equal(p.ask(HOLD, uuid(0))[2], DONE, "a hold")
    m = p.ask(LIMIT, uuid(0), 200000)
    t.ok(m[2] == DONE and m[3] == 200000, "a cap", m)
    m = p.ask(LIMIT, uuid(0), 4294967295)
    t.ok(m[2] == REFUSED and "4294967295 mW is outside" in m[5], "out of range", m)
    t.equal(p.ask(HOLD, "GPU-none")[2], GONE, "a board that is not here")
    q = Peer(path)
    t.equal(q.ask(HOLD, uuid(0))[2], TAKEN, "one board, one client")
    t.equal(q.ask(RELEASE, uuid(0))[2], GONE, "nobody releases another's")
    t.equal(q.ask(HOLD, uuid(1))[2], DONE, "another board is free")
    p.s.close()
    t.ok(uwtest.wait_for(lambda: q.ask(RENEW)[2] == DONE and node.board(0)["limit_mw"] == 250000),
         "a client that goes gives its cap up", node.board(0))
    t.equal(q.ask(LIMIT, uuid(1), 200000)[2], DONE, "another's goes on")
    time.sleep(3)
    m = q.take()
    t.ok(m and m[0] == LEASE_OVER, "a lease that is not renewed ends, and it is told", m)
    t.equal(node.board(1)["limit_mw"], 250000, "with the original in force")
    return q


def nonsense(t, node, path, uuid):
    good = ASK.pack(MAGIC, VERSION, HELLO, 1, 0, 0, b"")
    for name, data in {"a short message": good[:-1], "a long one": good + b"x",
                       "another protocol": b"GET / HTTP/1.1\r\n\r\n",
                       "another version": ASK.pack(MAGIC, VERSION + 1, HELLO, 1, 0, 0, b""),
                       "an unknown request": ASK.pack(MAGIC, VERSION, 99, 1, 0, 0, b""),
                       "a path for a UUID": ASK.pack(MAGIC, VERSION, HOLD, 1, 0, 0, b"../../etc/passwd"),
                       "a UUID without end": ASK.pack(MAGIC, VERSION, HOLD, 1, 0, 0, b"a" * 96)}.items():
        p = Peer(path)
        p.s.send(data)
        t.equal(p.take(), None, f"{name}: the connection is closed")
    before = Peer(path)
    t.equal(before.ask(HELLO)[2], DONE, "others are served all the same")

    for _ in range(60):
        p = Peer(path)
        p.s.send(b"nonsense")
        p.take()
    peers = []
    for _ in range(40):
        p = Peer(path)
        peers.append(p if p.ask(HELLO) else None)
    n = sum(p is not None for p in peers)
    t.ok(8 <= n <= 16, f"sixteen clients and no more ({n} new ones)")
    for p in peers:
        if p:
            p.s.close()
    p = Peer(path)
    t.ok(uwtest.wait_for(lambda: Peer(path).ask(HELLO)), "when they go, there is room again")

    p = Peer(path)
    t.equal(p.ask(HOLD, uuid(2))[2], DONE, "a hold")
    p.s.setblocking(False)
    n = 0
    until = time.monotonic() + 2
    while time.monotonic() < until:  # a flood, its answers never read
        try:
            p.send(LIMIT, uuid(2), 200000 + n % 1000)
            n += 1
        except BlockingIOError:
            time.sleep(0.001)
        except OSError:
            break
    p.s.close()
    t.ok(n > 100, f"a flood of {n} requests")
    t.ok(uwtest.wait_for(lambda: node.board(2)["limit_mw"] == 250000),
         "leaves the original", node.board(2))
    t.equal(before.ask(HELLO)[2], DONE, "and the others served")


def strangers(t, path):
    if os.geteuid() != 0:
        t.skip("another user is refused", "takes root to be another user")
        return
    script = ("import socket,sys; s=socket.socket(socket.AF_UNIX,socket.SOCK_SEQPACKET); "
              "s.settimeout(5); s.connect(sys.argv[1]); print(len(s.recv(1)))")
    def stranger():
        return subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
                               "/usr/bin/python3", "-c", script, path], capture_output=True, text=True)
    p = stranger()
    t.ok("PermissionError" in p.stderr, "another user cannot connect", p.stderr)
    folders = [path, os.path.dirname(path)]
    for f in folders:
        os.chmod(f, 0o777)
    p, _ = stranger(), stranger()
    for f in folders:
        os.chmod(f, 0o700)
    t.equal(p.stdout.strip(), "0", "and if it could, its uid is refused")


class Hold:
    """tests/system/actuator-hold.c as a client of the service."""

    def __init__(self, path, prefix=()):
        self.p = subprocess.Popen([*prefix, HOLD_CLIENT, path, "-", "service"], text=True, bufsize=1,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def hear(self, start, seconds=5):
        """The next line that begins so; '' if none does in time."""
        until = time.monotonic() + seconds
        while select.select([self.p.stdout], [], [], max(0, until - time.monotonic()))[0]:
            line = self.p.stdout.readline()
            if not line or line.startswith(start):
                return line.strip()
        return ""

    def tell(self, text, seconds=5):
        """A line to it, and its answer's words: WORD UUID RESULT ENFORCED ORIGINAL …."""
        self.p.stdin.write(text + "\n")
        return self.hear(" ".join(text.split()[:2]), seconds).split()


def old_actuator(t, stranger, path):
    """The C client, and an actuator of before there were revisions."""
    c = Hold(path)
    peer = stranger.accept()[0]
    told = []

    def answer(kind, result=DONE, of=b"", *numbers):
        while True:  # it renews in between
            ask = ASK.unpack(peer.recv(4096))
            last = ask[2] == kind
            peer.send(TELL.pack(MAGIC, VERSION, ask[2], ask[3], result if last else DONE, of if last else b"",
                                *((numbers if last else ()) or (0,) * 5), 0, 0, 0, b""))
            if last:
                told.append(ask[4])
                return
    answer(HELLO)
    t.equal(c.hear("ready"), "ready 0", "an old actuator will do")
    c.p.stdin.write("hold GPU-1\n")
    answer(HOLD, DONE, b"GPU-1", 200000, 250000, 150000, 300000, 300000)
    t.equal(c.hear("hold").split()[2:5], ["done", "200000", "250000"], "… its answers are understood")
    t.equal(told[0], 3, "the client says what it knows of")
    peer.close()
    c.p.stdin.close()
    c.p.wait()


def client(t, node, path, uuid):
    c = Hold(path + ".none")
    t.ok("No such file" in c.hear("failed"), "nobody is there: said at once")
    c.p.wait()
    stranger = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    stranger.bind(path + ".deaf")
    c = Hold(path + ".deaf")
    t.ok("refused" in c.hear("failed"), "nobody listens")
    c.p.wait()
    stranger.listen(1)
    c = Hold(path + ".deaf")
    peer = stranger.accept()[0]
    peer.close()
    said = c.hear("")
    t.ok("hung up" in said or "closed the connection" in said, "one who hangs up before hello", said)
    c.p.stdin.close()
    c.p.wait()
    old_actuator(t, stranger, path + ".deaf")
    stranger.close()

    c = Hold(path)
    t.equal(c.hear("ready"), "ready 0", "the C client is ready")
    t.equal(c.tell(f"hold {uuid(0)}")[2:5], ["done", "250000", "250000"], "holds")
    t.equal(c.tell(f"set {uuid(0)} 190000")[2:4], ["done", "190000"], "sets")
    time.sleep(3)
    t.equal(node.board(0)["limit_mw"], 190000, "renews")
    t.equal(c.tell(f"release {uuid(0)}")[2:4], ["done", "250000"], "releases")
    return c


def rules(t, node, uuid, path):
    for text, says in {"grace: 5\n": "actuator.yaml:1: ", "boards: all\nlimits: 3\n": "actuator.yaml:2: ",
                       "clients: [nobody-at-all]\n": "clients: this value is refused" if os.geteuid() == 0 else
                       "nobody-at-all"}.items():
        p = start(node, config=text)
        err = p.communicate(timeout=10)[1]
        t.ok(p.returncode == 2 and says in err, f"a configuration of {text!r} is refused", err)
    if os.geteuid() == 0:
        file = os.path.join(node.state, "actuator.yaml")
        for mode, uid in ((0o666, 0), (0o644, 65534)):
            os.chmod(file, mode)
            os.chown(file, uid, 0)
            p = start(node, "--serve", "--config", file)
            err = p.communicate(timeout=10)[1]
            t.ok(p.returncode == 2 and "root" in err, f"one of uid {uid}, mode {mode:o}, too", err)
        os.unlink(file)
    p = start(node, "--serve", "--config", "/nowhere/actuator.yaml")
    t.ok("/nowhere/actuator.yaml" in p.communicate(timeout=10)[1] and p.returncode == 2,
         "one that is not there, too")

    server = start(node, config=f"boards: [{uuid(0)}]\nrange: {{from: 60 %, to: 240 W}}\n")
    node.children.append(server)
    uwtest.must(uwtest.wait_for(lambda: uwtest.Daemon._listens(path)), path, "is not listened at")
    p = Peer(path)
    m = p.ask(HOLD, uuid(1))
    t.ok(m[2] == REFUSED and f"{uuid(1)}: not among the boards" in m[5], "a board that is not allowed", m)
    t.equal(p.ask(HOLD, uuid(0))[2], DONE, "one that is")
    m = p.ask(LIMIT, uuid(0), 170000)
    t.ok(m[2] == REFUSED and "170000 mW is outside 180000..240000 mW" in m[5] and uuid(0) in m[5],
         "under the range: board, value and range are named", m)
    t.equal(p.ask(LIMIT, uuid(0), 240001)[2], REFUSED, "above it")
    t.equal(p.ask(LIMIT, uuid(0), 180000)[2], DONE, "at its end")
    t.equal(p.ask(LIMIT, uuid(0), 250000)[2], DONE, "the original, though above it")
    t.equal(p.ask(RELEASE, uuid(0))[2], DONE, "an old client is answered as ever")
    p.s.close()
    q = Peer(path)
    q.send(HELLO, a=1)
    t.equal(len(q.s.recv(4096)), TELL.size + MORE.size, "one who knows more gets more")
    q.send(HOLD, uuid(0))
    data = q.s.recv(4096)
    t.equal((TELL.unpack(data[:TELL.size])[4], MORE.unpack(data[TELL.size:])), (DONE, (250000, 180000, 240000)),
            "a hold tells what is set and the range in force")
    q.s.close()
    server.send_signal(signal.SIGTERM)
    t.equal((server.communicate(timeout=10), server.returncode)[1], 0, "and the end")
    os.unlink(path)


def checks(t, node):
    """--check FILE: one line with file and line, or OK; nothing is opened."""
    file = os.path.join(node.tmp, "draft.yaml")
    for text, code, says in (("grace: 5 s\n", 0, f"{file}: OK\n"), ("\nlimits: 3\n", 2, f"{file}:2: "),
                             ("grace: 5\n", 2, f"{file}:1: "), ("clients: [nobody-at-all]\n", 2, f"{file}:1: "),
                             ("powercap: /nope\n", 2, f"{file}: powercap: /nope: No such file or directory"),
                             ("library: /nope.so\n", 2, f"{file}: library: /nope.so: ")):
        with open(file, "w") as f:
            f.write(text)
        os.chmod(file, 0o600)
        p = subprocess.run([ACTUATOR, "--check", file], capture_output=True, text=True)
        t.ok(p.returncode == code and says in p.stdout + p.stderr and (p.stdout + p.stderr).count("\n") == 1,
             f"--check of {text!r}: {code}", p)
    p = subprocess.run([ACTUATOR, "--check", "draft.yaml"], capture_output=True, text=True, cwd=node.tmp)
    t.ok(p.returncode == 2 and f"{file}: library: " in p.stderr, "a path from the folder of the caller", p)
    p = subprocess.run([ACTUATOR, "--check", file[1:]], capture_output=True, text=True, cwd="/")
    t.ok(p.returncode == 2 and f"underwatt-actuator: {file}: library: " in p.stderr, "… from the root folder", p)
    p = subprocess.run([ACTUATOR, "--check", "./" * 2048 + "draft.yaml"], capture_output=True, text=True, cwd=node.tmp)
    t.ok(p.returncode == 2 and "/: the path is longer than 4095 bytes" in p.stderr, "a path that is too long is not cut", p)
    p = subprocess.run([ACTUATOR, "--check"], capture_output=True, text=True)
    t.ok(p.returncode == 2 and p.stderr == "underwatt-actuator: --check needs a value\n", "--check without FILE", p)


def bad_starts(t, node):
    p = subprocess.run([ACTUATOR, "--frobnicate"], capture_output=True, text=True)
    t.ok(p.returncode == 2 and "--frobnicate" in p.stderr, "an unknown option", p.stderr)
    p = subprocess.run([ACTUATOR], capture_output=True, text=True)
    t.ok(p.returncode == 2 and "--recover" in p.stderr, "no option", p.stderr)
    p = subprocess.run([ACTUATOR, "--help"], capture_output=True, text=True)
    t.ok(p.returncode == 0 and "--library" in p.stdout, "--help")
    p = start(node, "--local")
    err = p.communicate(timeout=10)[1]
    t.ok(p.returncode == 1 and "standard input is not its socket" in err,
         "--local without its socket", f"{p.returncode} {err}")
    p = subprocess.run([ACTUATOR, "--recover", "--library", "lib.so"], capture_output=True, text=True)
    t.ok(p.returncode == 1 and "lib.so" in p.stderr, "a library that is no path", p.stderr)


def main():
    t = uwtest.Tap()
    with uwtest.Node(machine="boards: [{model: v100, count: 3, limit: 250 W}]") as node:
        bad_starts(t, node)
        checks(t, node)
        boards = node.status()["boards"]
        uuid = lambda i: boards[i]["uuid"]
        path = os.path.join(node.state, "actuator", "actuator.sock")
        rules(t, node, uuid, path)
        server = start(node, config="grace: 1 s\n")
        node.children.append(server)  # killed with the node, if it comes to that
        uwtest.must(uwtest.wait_for(lambda: uwtest.Daemon._listens(path)), path, "is not listened at")
        basics(t, node, path, uuid)
        nonsense(t, node, path, uuid)
        strangers(t, path)
        held = client(t, node, path, uuid)

        p = Peer(path)
        p.ask(HOLD, uuid(0))
        p.ask(LIMIT, uuid(0), 200000)
        server.send_signal(signal.SIGTERM)
        said = server.communicate(timeout=10)[1]
        t.ok(said.count("are not a request") <= 20 and "not logged for a minute" in said,
             "nonsense does not fill the log", len(said.splitlines()))
        if os.geteuid() == 0:
            t.equal(said.count("uid 65534"), 1, "a stranger is named once")
        t.ok(held.hear("event ended"), "the client hears that its actuator has gone")
        held.p.stdin.close()
        held.p.wait()
        t.ok(server.returncode == 0 and node.board(0)["limit_mw"] == 250000,
             "SIGTERM: originals back, then the end", f"{server.returncode} {said}")
        t.ok(not list(pathlib.Path(node.state, "actuator").glob("*.cap")), "no entry is left")
    t.done()


if __name__ == "__main__":
    sys.exit(main())
