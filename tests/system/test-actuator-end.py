#!/usr/bin/python3
"""How an actuator ends, and what a recovery says: every board that keeps a cap is named
with the limit in force, its original and the reason, and the exit status tells it.
"""
import importlib
import os
import pathlib
import signal
import subprocess
import time

import uwtest

serve = importlib.import_module("test-actuator-serve")
ACTUATOR = serve.ACTUATOR
BOUND_S, SLACK_S = 20, 8  # SERVICE_LINGER_S of main.c; a busy machine
ORIGINAL, CAP = 250000, 200000


def machine(n):
    return f"boards: [{{model: v100, count: {n}, limit: {ORIGINAL // 1000} W}}]"


class World:
    """A simulated node with a service whose boards are all held at the cap."""

    def __init__(self, node, n):
        self.node = node
        self.uuids = [b["uuid"] for b in node.status()["boards"]]
        self.journal = pathlib.Path(node.state, "actuator")
        self.library = os.path.join(node.state, "lib", "libnvidia-ml.so.1")
        self.server = self.begin()
        self.peer = serve.Peer(str(self.journal / "actuator.sock"))
        for uuid in self.uuids[:n]:
            for asked in ((serve.HOLD, uuid), (serve.LIMIT, uuid, CAP)):
                answer = self.peer.ask(*asked)
                uwtest.must(answer[2] == serve.DONE, asked, "is answered", answer)

    def begin(self):
        server = serve.start(self.node, config="grace: 10 s\n")
        self.node.children.append(server)
        path = str(self.journal / "actuator.sock")
        uwtest.must(uwtest.wait_for(lambda: uwtest.Daemon._listens(path) or server.poll() is not None),
                    path, "is not listened at")
        return server

    def end(self, healed=None):
        """SIGTERM: its status, its words and how long it took."""
        t0 = time.monotonic()
        self.server.send_signal(signal.SIGTERM)
        if healed:
            healed()
        try:
            said = self.server.communicate(timeout=BOUND_S + SLACK_S)[1]
        except subprocess.TimeoutExpired:
            self.server.kill()
            said = self.server.communicate()[1]
        return self.server.returncode, said, time.monotonic() - t0

    def kill(self):
        self.server.kill()
        self.server.communicate()
        self.peer.s.close()

    def recover(self):
        return subprocess.run([ACTUATOR, "--recover", "--library", self.library],
                              capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)

    def cap(self, i):
        return self.journal / f"{self.uuids[i]}.cap"

    def aside(self, i):
        return self.journal / f"{self.uuids[i]}.cap.damaged"

    def limit(self, i):
        return self.node.board(i)["limit_mw"]


def ends(t, name, fault, others, status, reason):
    """A service is told to end and board 0 cannot be restored."""
    with uwtest.Node(machine=machine(2)) as node:
        w = World(node, 1 + others)
        node.fault(0, fault)
        code, said, took = w.end()
        line = next((s for s in said.splitlines() if "not restored" in s), "")
        t.ok(code == status and took < BOUND_S + SLACK_S, f"{name}: it ends in time, with status {status}",
             f"{code} after {took:.1f} s\n{said}")
        t.ok(w.uuids[0] in line and "200 W was in force when last read, the original is 250 W" in line and
             reason in line, f"{name}: board, limit, original and reason are said", said)
        t.ok(("hang" in said or "hung" in said) == (fault == "hang"), f"{name}: nobody is said to hang who does not",
             said)
        t.ok(w.cap(0).exists() and (not others or w.limit(1) == ORIGINAL and not w.cap(1).exists()),
             f"{name}: its entry waits, others are restored", node.status()["boards"])
        node.fault(0, {"refuse": "accept", "hang": "release"}[fault])
        p = w.recover()
        t.ok(p.returncode == 0 and w.limit(0) == ORIGINAL, f"{name}: the next start restores it", p.stderr)


def healed(t):
    with uwtest.Node(machine=machine(1)) as node:
        w = World(node, 1)
        node.fault(0, "refuse")
        code, said, took = w.end(lambda: node.fault(0, "accept"))
        t.ok(code == 0 and took < BOUND_S and w.limit(0) == ORIGINAL and not w.cap(0).exists(),
             "a board that can be set again in time is restored: 0", f"{code} after {took:.1f} s\n{said}")


def damage(w, i, kind):
    path = w.cap(i)
    text = path.read_text()
    if kind == "garbage":
        path.write_text("x" * len(text))
    elif kind == "cut":
        path.write_text(text[:100])
    elif kind == "empty":
        path.write_text("")
    elif kind == "another's":
        os.chown(path, 65534, 65534)
    elif kind == "a link":
        victim = pathlib.Path(w.node.tmp, "victim")
        victim.write_text("safe")
        path.unlink()
        path.symlink_to(victim)


def says(w, i, said):
    mine = [s for s in said.splitlines() if w.uuids[i] in s]
    return any(str(w.aside(i)) in s or w.aside(i).name in s for s in mine) and \
        any("not restored: 200 W is in force" in s for s in mine)


def damaged(t):
    kinds = ["garbage", "cut", "empty", "a link"] + (["another's"] if os.geteuid() == 0 else [])
    with uwtest.Node(machine=machine(len(kinds) + 1)) as node:
        good = len(kinds)
        w = World(node, good + 1)
        w.kill()
        for i, kind in enumerate(kinds):
            damage(w, i, kind)
        p = w.recover()
        t.equal(p.returncode, 3, "one restored, others damaged: 3")
        t.equal(w.limit(good), ORIGINAL, "the one that can be is restored")
        for i, kind in enumerate(kinds):
            t.ok(says(w, i, p.stderr), f"{kind}: board, file and the limit in force are said", p.stderr)
            t.ok(not os.path.lexists(w.cap(i)) and os.path.lexists(w.aside(i)), f"{kind}: it is kept aside",
                 list(w.journal.iterdir()))
            t.equal(w.limit(i), CAP, f"{kind}: nothing is guessed")
        t.equal(pathlib.Path(node.tmp, "victim").read_text(), "safe", "what a link names is untouched")
        p = w.recover()
        t.ok(p.returncode == 1 and all(says(w, i, p.stderr) for i in range(len(kinds))),
             "as long as root has not decided it is said again: 1", f"{p.returncode} {p.stderr}")
        p = node.run("underwatt", "doctor")
        t.ok(w.aside(0).name in p.stdout, "underwatt doctor lists it", p.stdout + p.stderr)

        server = w.begin()
        peer = serve.Peer(str(w.journal / "actuator.sock"))
        m = peer.ask(serve.HOLD, w.uuids[0])
        t.ok(m[2] == serve.REFUSED and w.aside(0).name in m[5], "nobody holds such a board", m)
        t.equal(peer.ask(serve.HOLD, w.uuids[good])[2], serve.DONE, "others are served")
        w.aside(0).unlink()
        t.equal(peer.ask(serve.HOLD, w.uuids[0])[2], serve.DONE, "until root has removed the file")
        server.send_signal(signal.SIGTERM)
        said = server.communicate(timeout=BOUND_S + SLACK_S)[1]
        t.ok(all(says(w, i, said) for i in range(len(kinds))), "a service that starts says the same", said)


def decided(t):
    """What root has decided while a service ran is no failure of its end."""
    with uwtest.Node(machine=machine(1)) as node:
        w = World(node, 1)
        w.kill()
        damage(w, 0, "garbage")

        def serving():  # its recovery is over then
            w.server = w.begin()
            w.peer = serve.Peer(str(w.journal / "actuator.sock"))
            answer = w.peer.ask(serve.HELLO)
            uwtest.must(answer[2] == serve.DONE, "HELLO is answered", answer)
        serving()
        w.aside(0).unlink()
        code, said, _ = w.end()
        t.equal(code, 0, "a damaged entry that root has removed since: 0")
        serving()
        w.cap(0).write_text("garbage")
        code, said, _ = w.end()
        t.equal(code, 0, "one that came later is the next start's")
        serving()
        code, said, _ = w.end()
        t.ok(code == 1 and said.count(w.aside(0).name) == 2, "one that is still there is said at the end, too: 1", said)


def main():
    t = uwtest.Tap()
    uwtest.together(lambda: ends(t, "one of two refuses", "refuse", 1, 3, "ermission"),
                    lambda: ends(t, "the only one refuses", "refuse", 0, 1, "ermission"),
                    lambda: ends(t, "the only one hangs", "hang", 0, 1, "a call has hung in the driver for"),
                    lambda: healed(t), lambda: damaged(t), lambda: decided(t))
    t.done()


if __name__ == "__main__":
    main()
