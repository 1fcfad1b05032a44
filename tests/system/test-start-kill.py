#!/usr/bin/python3
"""underwatt-start, its actuator, the keeper and the daemon, killed and stopped in every
combination that leaves one of them who can act: the original is back.  The starter's end
is not over before it is, and its exit status says what became of it.
"""
import os
import signal
import sys
import time

import uwtest
from starter import CAP, ORIGINAL, Start

USER = ["--user", "root"] if os.geteuid() == 0 else []
MACHINE = "set_latency: 40 ms\nboards: [{model: v100, count: 1, limit: 250 W}]"
KILL, STOP, TERM, CONT = signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGCONT
GAPS_MS = (0, 5, 10, 20, 30, 45, 60, 90, 120, 200, 400)


class Case:
    """A starter whose daemon holds a cap."""

    def __init__(self, t, node, name, boards=1):
        self.t, self.node, self.name = t, node, name
        self.s = Start(node, *USER, boards=boards)
        t.ok(self.s.capped(), f"{name}: a cap", self.s.said())
        self.pids = dict(uwtest.services(self.s.p.pid), starter=self.s.p.pid)

    def send(self, *what):
        """(name, signal) in this order, with nothing in between; who is not there gets none."""
        for who, signo in what:
            if self.pids.get(who):
                try:
                    os.kill(self.pids[who], signo)
                except ProcessLookupError:
                    pass

    def ended(self, status=0, seconds=uwtest.PATIENCE):
        """The starter ends, and with it all that it started; the original is in force then."""
        got = self.s.p.wait(timeout=seconds)
        limit, left = self.node.board(0)["limit_mw"], self.s.entries()
        self.t.ok((got, limit, left) == (status, ORIGINAL, []),
                  f"{self.name}: it ends with {status}, the original in force",
                  f"status {got}, {limit} mW, entries {left}\n{self.s.said()}")
        self.t.ok(uwtest.wait_for(self.nobody), f"{self.name}: nobody is left", self.pids)

    def nobody(self):
        return not any(map(uwtest.alive, self.pids.values()))

    def back(self, what, seconds=10):
        self.t.ok(uwtest.wait_for(lambda: self.node.board(0)["limit_mw"] == ORIGINAL and not self.s.entries(), seconds),
                  f"{self.name}: {what}", f"{self.node.board(0)} {self.s.entries()}\n{self.s.said()}")

    def clean_up(self):
        """After a failure, too, the next case finds the board as it was."""
        self.send(("starter", KILL), *((who, signo) for who in self.pids for signo in (CONT, KILL)))
        self.s.p.wait()
        uwtest.wait_for(self.nobody)
        self.node.run("underwatt-actuator", "--recover", "--library",
                      os.path.join(self.node.state, "lib", "libnvidia-ml.so.1"))


def gaps(t, node):
    """SIGTERM in the gap between an actuator that was killed and the next one's start, while
    that one recovers, and once it serves."""
    for who in (["actuator"], ["keeper", "actuator"]):
        for gap in GAPS_MS:
            c = Case(t, node, f"kill -9 of {' and '.join(who)}, SIGTERM {gap} ms later")
            c.send(*((w, KILL) for w in who))
            time.sleep(gap / 1000)
            c.send(("starter", TERM))
            c.ended()
            c.clean_up()


def endings(t, node):
    """What is killed or stopped while it ends."""
    for name, what in (("SIGTERM twice", [("starter", TERM)]),
                       ("SIGTERM, then kill -9 of the actuator", [("actuator", KILL)]),
                       ("SIGTERM, then kill -9 of the keeper", [("keeper", KILL)]),
                       ("SIGTERM, then kill -9 of both", [("keeper", KILL), ("actuator", KILL)]),
                       ("SIGTERM, then kill -9 of the daemon", [("daemon", KILL)]),
                       ("SIGTERM, then SIGSTOP of the actuator", [("actuator", STOP)]),
                       ("SIGTERM, then kill -9 of daemon and actuator", [("daemon", KILL), ("actuator", KILL)])):
        c = Case(t, node, name)
        c.send(("starter", TERM), *what)
        c.ended()
        c.clean_up()
    for name, what in (("actuator stopped, SIGTERM", [("actuator", STOP)]),
                       ("keeper stopped, SIGTERM", [("keeper", STOP)]),
                       ("actuator killed and keeper stopped, SIGTERM", [("keeper", STOP), ("actuator", KILL)])):
        c = Case(t, node, name)
        c.send(*what, ("starter", TERM))
        c.ended()
        c.clean_up()


def recovery_killed(t, node):
    c = Case(t, node, "the last recovery is killed")
    node.fault("0", "hang")
    c.send(("keeper", KILL), ("actuator", KILL), ("starter", TERM))

    def recovery():
        return [p for p, words in uwtest.children_of(c.s.p.pid).items() if "--recover" in words]
    first = uwtest.wait_for(recovery)
    if t.ok(first, f"{c.name}: there is one", c.s.said()):
        os.kill(first[0], KILL)
    node.fault("0", "release")
    c.ended()
    c.clean_up()


def gone(t, node):
    """The starter is killed, and others with it."""
    for others in ([], ["actuator"], ["keeper"], ["daemon"], ["daemon", "actuator"], ["daemon", "keeper"]):
        for order in ((["starter"], others), (others, ["starter"])) if others else ((["starter"], []),):
            names = order[0] + order[1]
            c = Case(t, node, f"kill -9 of {', '.join(names)}")
            c.send(*((who, KILL) for who in names))
            c.s.p.wait()
            c.back("the original is back")
            t.ok(uwtest.wait_for(c.nobody), f"{c.name}: nobody is left", c.pids)
            c.clean_up()
    for gap in (1, 3, 10, 30, 100):  # the starter has seen to the first death, or has begun to
        for who in ("keeper", "actuator"):
            c = Case(t, node, f"kill -9 of {who}, and of the starter {gap} ms later")
            c.send((who, KILL))
            time.sleep(gap / 1000)
            c.send(("starter", KILL))
            c.s.p.wait()
            c.back("the original is back")
            t.ok(uwtest.wait_for(c.nobody), f"{c.name}: nobody is left", c.pids)
            c.clean_up()
    c = Case(t, node, "kill -9 of the starter, SIGSTOP of the actuator")
    c.send(("actuator", STOP), ("starter", KILL))
    c.back("the original is back")
    t.ok(uwtest.wait_for(c.nobody), f"{c.name}: nobody is left", c.pids)
    c.clean_up()
    c = Case(t, node, "kill -9 of all")
    c.send(("starter", STOP), ("keeper", STOP), ("daemon", STOP), ("actuator", KILL), ("keeper", KILL), ("starter", KILL),
           ("daemon", KILL))
    c.s.p.wait()
    uwtest.wait_for(c.nobody)
    t.equal(node.board(0)["limit_mw"], CAP, f"{c.name}: nobody can act")
    nxt = Case(t, node, f"{c.name}, the next start")
    t.equal(nxt.s.hear("held")[2:], [str(ORIGINAL)] * 2, f"{nxt.name} has put it back before it serves")
    nxt.send(("starter", TERM))
    nxt.ended()
    nxt.clean_up()


def stopped(t, node):
    """The starter is stopped: what happens to the others is seen to without it."""
    for name, what in (("kill -9 of the actuator", [("actuator", KILL)]),
                       ("SIGSTOP of the actuator", [("actuator", STOP)]),
                       ("kill -9 of the keeper", [("keeper", KILL)]),
                       ("SIGSTOP of the keeper", [("keeper", STOP)]),
                       ("kill -9 of the daemon and the actuator", [("daemon", KILL), ("actuator", KILL)])):
        c = Case(t, node, f"SIGSTOP of the starter, {name}")
        c.send(("starter", STOP), *what)
        c.back("the original is back")
        c.send(("starter", CONT))
        t.ok(c.s.capped(), f"{c.name}: once it goes on, the daemon is served again", c.s.said())
        c.send(("starter", TERM))
        c.ended()
        c.clean_up()
    c = Case(t, node, "SIGSTOP of the starter alone")
    writes = node.board(0)["limit_writes"]
    c.send(("starter", STOP))
    time.sleep(4)  # longer than anybody's patience
    b = node.board(0)
    t.ok((b["limit_mw"], b["limit_writes"]) == (CAP, writes), f"{c.name}: caps stay", b)
    c.send(("starter", CONT), ("starter", TERM))
    c.ended()
    c.clean_up()


def suspended(t, node):
    """All stand still together for longer than the starter's patience, as on a machine that is suspended: nobody is killed
    when they go on, the starter first."""
    c = Case(t, node, "all are stopped, and go on")
    others = [who for who in c.pids if who != "starter"]
    c.send(*((who, STOP) for who in ("starter", *others)))
    time.sleep(11)
    c.send(("starter", CONT))
    time.sleep(0.3)
    c.send(*((who, CONT) for who in others))
    time.sleep(2)
    t.equal(dict(uwtest.services(c.s.p.pid), starter=c.s.p.pid), c.pids, f"{c.name}: nobody is killed")
    c.send(("starter", TERM))
    c.ended()
    c.clean_up()


def served_again(t, node):
    """The starter lives: an original, then the cap again."""
    for name, what in (("kill -9 of the keeper", [("keeper", KILL)]),
                       ("kill -9 of keeper and actuator", [("keeper", KILL), ("actuator", KILL)]),
                       ("SIGSTOP of the keeper", [("keeper", STOP)]),
                       ("SIGSTOP of the keeper, kill -9 of the actuator", [("keeper", STOP), ("actuator", KILL)]),
                       ("SIGSTOP of the actuator, kill -9 of the keeper", [("actuator", STOP), ("keeper", KILL)]),
                       ("SIGTERM to the keeper", [("keeper", TERM)])):
        c = Case(t, node, name)
        n = len(c.s.lines("held"))
        c.send(*what)
        t.equal(c.s.hear("held", n + 1)[2:], [str(ORIGINAL)] * 2, f"{name}: the original is back, the daemon served again")
        t.ok(c.s.capped(), f"{name}: and the cap", c.s.said())
        c.send(("starter", TERM))
        c.ended()
        c.clean_up()


# ---- what could not be put back shows in the exit status ----

def unloaded(t):
    with uwtest.Node(machine=MACHINE) as node:
        c = Case(t, node, "the driver is unloaded, actuator and keeper killed")
        node.fault("all", "unload")
        c.send(("keeper", KILL), ("actuator", KILL), ("starter", TERM))
        t.equal(c.s.p.wait(timeout=uwtest.PATIENCE), 1, f"{c.name}: it ends with 1")
        t.ok(c.s.entries(), f"{c.name}: the entry is kept", c.s.said())
        node.fault("all", "reload")
        c.clean_up()


def refused(t):
    with uwtest.Node(machine=MACHINE.replace("count: 1", "count: 2")) as node:
        c = Case(t, node, "a board refuses, another does not", boards=2)
        t.ok(uwtest.wait_for(lambda: node.board(1)["limit_mw"] == CAP), f"{c.name}: and a cap", c.s.said())
        node.fault("0", "refuse")
        c.send(("keeper", KILL), ("actuator", KILL), ("starter", TERM))
        t.equal(c.s.p.wait(timeout=150), 3, f"{c.name}: it ends with 3")
        t.equal(node.board(1)["limit_mw"], ORIGINAL, f"{c.name}: the other has its original")
        t.ok(len(c.s.entries()) == 1 and c.nobody(), f"{c.name}: an entry waits, nobody is left", c.s.said())
        node.fault("0", "accept")
        c.clean_up()
        t.equal(node.board(0)["limit_mw"], ORIGINAL, f"{c.name}: --recover puts it back later")


def play(t, *parts):
    """On a node of their own."""
    with uwtest.Node(machine=MACHINE) as node:
        for part in parts:
            uwtest.timed(part.__name__, part, t, node)


def main():
    t = uwtest.Tap()
    uwtest.together(lambda: uwtest.timed("unloaded", unloaded, t), lambda: uwtest.timed("refused", refused, t),
                    lambda: play(t, gaps), lambda: play(t, endings, recovery_killed, served_again),
                    lambda: play(t, gone), lambda: play(t, stopped, suspended))
    t.done()


if __name__ == "__main__":
    sys.exit(main())
