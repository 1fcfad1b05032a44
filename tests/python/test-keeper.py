#!/usr/bin/python3
"""The keeper of local=True (python/underwatt/_keeper.py): the limits are back however the program ends."""
import contextlib
import errno
import json
import os
import pathlib
import signal
import subprocess
import time

import pyuser
import uwtest

ORIGINAL, CAP = 300000, 210000
BACK_S = 20     # generous for a busy machine; each line says what it took
NOBODY = 65534

# Tells its keeper's socket and process, and waits; what is then done to it is the test's.
BEGIN = """
import os, subprocess, sys, time
from underwatt._keeper import Keeper
os.setpgid(0, 0)
k = Keeper(group=GROUP, gpus=["0"])
print(k.socket, flush=True)
"""
WAIT = "sys.stdin.readline()\n"
ENDS = {
    "an end without close()": (WAIT, 0),
    "close(), twice": (WAIT + "k.close(); k.close()", 0),
    "sys.exit()": (WAIT + "sys.exit(3)", 3),
    "an exception": (WAIT + "raise KeyError('theirs')", 1),
    "a second Keeper, closed": ("j = Keeper(gpus=['0']); assert j.socket == k.socket; j.close(); assert k.alive\n" + WAIT, 0),
}
# Children that live on: one that was forked, one that was started with all descriptors that may be inherited.
CHILDREN = """
if os.fork() == 0:
    assert not k.alive
    k.close()
    time.sleep(600)
subprocess.Popen(["sleep", "600"], close_fds=False)
time.sleep(600)
"""
KILLED = """
while k.alive:
    time.sleep(0.05)
began = time.monotonic()
k.close()
print(f"{time.monotonic() - began:.2f}", flush=True)
k = Keeper(gpus=["0"])
print(k.socket, flush=True)
"""
REFUSED = """
import sys, underwatt
from underwatt._keeper import Keeper
try:
    Keeper(gpus=sys.argv[1:] or None)
except underwatt.UnderwattError as e:
    print(type(e).__name__, e.errno, e)
"""
NO_BOARD = """
import underwatt
underwatt.Optimizer("edp", gpus=GPUS, local=True)
"""
# An Optimizer whose keeper is killed, and what it says of that.
ENDED = """
import os, sys, warnings, underwatt
from underwatt import _optimizer
_optimizer.EVERY_S = 0.2
warnings.simplefilter("always")
optimizer = underwatt.Optimizer("edp", gpus=[0], local=True)
print(optimizer._keeper.socket, flush=True)
optimizer._thread.join(60)
print(optimizer._thread.is_alive(), optimizer.status.status, optimizer.status.why)
optimizer.step()
optimizer.close()
"""
# An Optimizer on a keeper, never closed: it steps until a line comes.
SEARCH = r"""
import os, select, sys
import underwatt
from underwatt.testing import SimLoad

board = int(sys.argv[1])
os.setpgid(0, 0)
load = SimLoad("resnet50", boards=[board])
load.step().wait()
optimizer = underwatt.Optimizer("edp", gpus=[board], local=True)
print(optimizer._keeper.socket, flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    load.step(5).wait()
    for _ in range(5):
        optimizer.step()
print(optimizer.status.steps, flush=True)
"""


def keeper_of(socket):
    return int(os.path.basename(os.path.dirname(socket)).removeprefix("keep-"))


class Program:
    """A program that has a keeper, whose board 0 is capped."""

    def __init__(self, node, code, group="", capped=True):
        self.node = node
        self.child = pyuser.begun_in_world(node, BEGIN.replace("GROUP", repr(group)) + code, stdin=subprocess.PIPE)
        self.socket = self.child.stdout.readline().strip()
        uwtest.must(self.socket, lambda: self.child.stderr.read())
        self.keeper = keeper_of(self.socket)
        if capped:
            self.cap()

    def cap(self):
        claim = {"gpu": "0", "cap": f"{CAP} mW", "kind": "named", "at_once": True}
        uwtest.must(uwtest.ask_socket(self.socket, "/v1/claims", claim).get("id"), "no claim")
        uwtest.must(uwtest.wait_for(lambda: limit(self.node) == CAP), lambda: limit(self.node))

    def go(self):
        self.child.stdin.write("\n")
        self.child.stdin.flush()


def limit(node, board=0):
    return node.board(board)["limit_mw"]


def back(t, node, name, *pids):
    """The limit comes back, and none of these processes is left."""
    began = time.monotonic()
    uwtest.wait_for(lambda: limit(node) == ORIGINAL and not any(map(uwtest.alive, pids)), BACK_S)
    took = time.monotonic() - began
    t.ok(limit(node) == ORIGINAL and not any(map(uwtest.alive, pids)), f"{name}: the limit is back after {took:.1f} s",
         (limit(node), [p for p in pids if uwtest.alive(p)]))


def nothing_left(t, node, name):
    """Of sockets and folders; those of killed processes go when the next one looks."""
    place = pathlib.Path(node.runtime, "run", "underwatt")
    t.equal([p.name for p in place.iterdir()], [], f"{name}: no socket and no folder are left")


def ends(t, node):
    for name, (code, status) in ENDS.items():
        p = Program(node, code)
        p.go()
        got = p.child.wait(BACK_S)
        t.ok(got == status and limit(node) == ORIGINAL and not uwtest.alive(p.keeper),
             f"{name}: the limit is back when the program is over", (got, limit(node), p.child.stderr.read()))
    p = Program(node, "time.sleep(600)")
    os.killpg(p.child.pid, signal.SIGINT)   # as a terminal's ^C
    got = p.child.wait(BACK_S)
    t.ok(got == -signal.SIGINT and limit(node) == ORIGINAL, "^C: likewise", (got, limit(node)))
    nothing_left(t, node, "so far")


def kills(t, node):
    p = Program(node, "time.sleep(600)")
    p.child.kill()
    back(t, node, "kill -9 of the program", p.keeper)
    p = Program(node, CHILDREN)
    children = uwtest.wait_for(lambda: len(uwtest.children_of(p.child.pid)) == 3 and uwtest.children_of(p.child.pid))
    uwtest.must(children, lambda: uwtest.children_of(p.child.pid))
    p.child.kill()
    back(t, node, "kill -9 of the program, whose children live on", p.keeper)
    others = [c for c in children if c != p.keeper]
    t.ok(len(others) == 2 and all(map(uwtest.alive, others)), "they do", others)
    for pid in others:
        os.kill(pid, signal.SIGKILL)
    p = Program(node, KILLED + WAIT)
    os.kill(p.keeper, signal.SIGKILL)
    back(t, node, "kill -9 of the keeper", p.keeper)
    took = float(p.child.stdout.readline() or "nan")
    t.ok(took < BACK_S, f"the program goes on: close() in {took} s")
    again = p.child.stdout.readline().strip()
    t.ok(again and again != p.socket and uwtest.alive(keeper_of(again)), "and may have another one", again)
    p.socket, p.keeper = again, keeper_of(again)
    p.cap()
    os.kill(p.keeper, signal.SIGKILL)
    p.child.kill()
    back(t, node, "kill -9 of both", p.keeper)


def groups(t, node):
    """Two processes that share one: it ends with the last."""
    a, b = Program(node, WAIT, group="job"), Program(node, WAIT, group="job", capped=False)
    t.equal(b.socket, a.socket, "two processes of a group have one keeper")
    a.go()
    t.equal(a.child.wait(BACK_S), 0, "the one that began ends")
    t.ok(limit(node) == CAP and uwtest.alive(a.keeper), "the cap of the other stays", limit(node))
    c = Program(node, WAIT, group="job", capped=False)
    t.equal(c.socket, a.socket, "a third one joins")
    c.child.kill()
    c.child.wait()
    t.ok(limit(node) == CAP and uwtest.alive(a.keeper), "and is killed: the cap stays", limit(node))
    b.go()
    t.ok(b.child.wait(BACK_S) == 0 and limit(node) == ORIGINAL, "the last one ends: the limit is back", limit(node))
    nothing_left(t, node, "a group")
    a, b = Program(node, WAIT, group="job"), Program(node, WAIT, group="job", capped=False)
    b.child.kill()
    a.child.kill()
    back(t, node, "kill -9 of both", a.keeper)
    a = Program(node, WAIT, group="another")
    a.go()
    a.child.wait(BACK_S)
    nothing_left(t, node, "what killed groups left is removed by the next one")


def refused(t, node):
    def says(name, wanted, *gpus, **more):
        p = pyuser.in_world(node, REFUSED, *gpus, **more)
        t.ok(p.stdout.startswith(wanted[0]) and all(w in p.stdout for w in wanted[1:]), name, p.stdout + p.stderr)
    holder = node.popen("underwatt", "cap", "set", "250", "--gpus", "0")
    uwtest.must(uwtest.wait_for(lambda: limit(node) == 250000), lambda: limit(node))
    says("a board that another command holds", [f"UnderwattError {errno.EBUSY}", "GPU 0", f"(pid {holder.pid}, {uwtest.USER})"], "0")
    says("one of all boards", [f"UnderwattError {errno.EBUSY}", "GPU 0"])
    t.equal(limit(node), 250000, "its cap stays")
    p = pyuser.in_world(node, NO_BOARD.replace("GPUS", "[0]"))
    t.ok("GPU 0" in p.stderr and p.stderr.count("Traceback") == 1 and "local=True)\n" not in p.stderr, "Optimizer(local=True): the cause alone", p.stderr)
    holder.send_signal(signal.SIGINT)
    holder.wait(BACK_S)
    says("no such board", ["InvalidValue", "'7'"], "7")
    says("the command is missing", ["NotSupported", "install", "underwatt-start"], PATH="/nowhere")
    old = pathlib.Path(node.tmp, "old")
    old.mkdir()
    (old / "underwatt").write_text("#!/bin/sh\necho \"underwatt: unknown command 'keep': one of list\" >&2\nexit 2\n")
    (old / "underwatt").chmod(0o755)
    says("an older command", ["NotSupported", "keep", "this version"], PATH=f"{old}:/usr/bin:/bin")
    d = node.daemon()
    says("a daemon runs: it is the one to ask", [f"UnderwattError {errno.EEXIST}", d.socket], "0")
    t.equal(node.board(0)["limit_mw"], ORIGINAL, "nothing was written")
    d.kill()


def searches(t, node):
    """Optimizer(local=True): steps reach the keeper's search, which caps; the limits are back however the program ends."""
    begun = [pyuser.begun_in_world(node, SEARCH, i, stdin=subprocess.PIPE) for i in range(3)]
    keepers = [keeper_of(p.stdout.readline().strip()) for p in begun]
    for i in range(3):
        t.ok(uwtest.wait_for(lambda i=i: limit(node, i) < ORIGINAL, 60), f"board {i}: a search caps it by the steps that are told", limit(node, i))
    begun[0].kill()
    back(t, node, "kill -9 of a program that searches", keepers[0])
    os.killpg(begun[1].pid, signal.SIGINT)
    got = begun[1].wait(BACK_S)
    t.ok(got == -signal.SIGINT and limit(node, 1) == ORIGINAL and not uwtest.alive(keepers[1]), "^C: likewise", (got, limit(node, 1)))
    begun[2].stdin.write("\n")
    begun[2].stdin.flush()
    got, steps = begun[2].wait(BACK_S), int(begun[2].stdout.readline() or 0)
    t.ok(got == 0 and limit(node, 2) == ORIGINAL and not uwtest.alive(keepers[2]), "an Optimizer that is left open at the end: likewise",
         (got, limit(node, 2), begun[2].stderr.read()))
    t.ok(steps > 0, f"its status had {steps} steps")
    ranks = [pyuser.begun_in_world(node, SEARCH, i, stdin=subprocess.PIPE, RANK=i, WORLD_SIZE=2, LOCAL_RANK=i, LOCAL_WORLD_SIZE=2, MASTER_PORT=29405)
             for i in (0, 1)]
    sockets = [p.stdout.readline().strip() for p in ranks]
    t.ok(sockets[0] and sockets[0] == sockets[1], "two ranks share a keeper", sockets)
    t.ok(uwtest.wait_for(lambda: max(limit(node, 0), limit(node, 1)) < ORIGINAL, 60), "which caps both boards", (limit(node, 0), limit(node, 1)))
    for p in ranks:
        p.kill()
    back(t, node, "kill -9 of both ranks", keeper_of(sockets[0]))
    t.equal(limit(node, 1), ORIGINAL, "on both boards")


def keeper_ends(t, node):
    p = pyuser.begun_in_world(node, ENDED)
    os.kill(keeper_of(p.stdout.readline().strip()), signal.SIGKILL)
    out, err = p.communicate(timeout=100)
    told = "the keeper of this program has ended: the original limits are restored, and the program continues without caps"
    t.ok(p.returncode == 0 and out == f"False unknown {told}\n" and err.count("RuntimeWarning: ") == 1 and told in err and "daemon" not in err,
         "the keeper of an Optimizer is killed: one warning says that there are no caps from now on", out + err)


MANY = """
import os, resource, sys, underwatt
from underwatt._keeper import Keeper
resource.setrlimit(resource.RLIMIT_NOFILE, (2048, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
for fd in range(1100):
    os.open("/dev/null", os.O_RDONLY)
print(Keeper(gpus=["0"]).alive)
try:
    os.environ["XDG_RUNTIME_DIR"] = "/nowhere"
    Keeper("group", gpus=["0"])
except underwatt.UnderwattError as e:
    print(e.errno, e)
"""


def odd_places(t, node):
    p = pyuser.in_world(node, MANY)
    t.equal(p.stdout.splitlines(), ["True", f"{errno.ENOENT} /nowhere/underwatt: cannot be created: No such file or directory (XDG_RUNTIME_DIR is '/nowhere')"],
            "a program with 1,100 open files has a keeper; no folder for a group: one line" + p.stderr)


def without_rights(t):
    with uwtest.Node(board="v100", count=1, may_set="root") as node:
        kw = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        p = node.run("/usr/bin/python3", "-c", REFUSED, env={"PYTHONPATH": str(pyuser.PACKAGE)}, **kw)
        t.ok(p.stdout.startswith(f"PermissionError {errno.EPERM}"), "a user without the right to set limits", p.stdout + p.stderr)


def main():
    t = uwtest.Tap()
    with uwtest.Node(board="v100", count=2) as node:
        ends(t, node)
        kills(t, node)
        groups(t, node)
        keeper_ends(t, node)
        refused(t, node)
    with uwtest.Node(board="v100", count=3, speed=20) as node:
        searches(t, node)
        odd_places(t, node)
    if os.geteuid() == 0:
        without_rights(t)
    else:
        t.skip("a user without the right to set limits", "only root can become somebody else")
    t.done()


if __name__ == "__main__":
    main()
