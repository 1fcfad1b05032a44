#!/usr/bin/python3
"""`underwatt keep`: the boards of another program, which asks by a socket, until standard input closes.  How programs end that have
it: tests/python/test-keeper.py.
"""
import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import tempfile

import uwtest

ORIGINAL, CAP = 300000, 200000
NOBODY = 65534


def begin(node, *args):
    """A keeper and its socket; "" where it refuses."""
    p = node.popen("underwatt", "keep", *args, stdin=subprocess.PIPE)
    return p, json.loads(p.stdout.readline() or "{}").get("socket", "")


def limits(node):
    return [b["limit_mw"] for b in node.status()["boards"]]


def claim(socket, board):
    return uwtest.ask_socket(socket, "/v1/claims", {"gpu": board, "cap": f"{CAP} mW", "kind": "named", "at_once": True})


def ignores(pid, signo):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        mask = next(line for line in f if line.startswith("SigIgn:")).split()[1]
    return bool(int(mask, 16) >> signo - 1 & 1)


def asked(t, node, other):
    """What the program has at the socket, and who else."""
    p, socket = begin(node, "--gpus", "0")
    if not t.ok(socket, "it begins", p.stderr.read() if p.poll() is not None else ""):
        return
    folder = os.path.dirname(socket)
    t.ok(ignores(p.pid, signal.SIGPIPE), "who hangs up does not end it")
    t.equal(stat.S_IMODE(os.stat(folder).st_mode), 0o700, "its folder is its user's alone")
    gpus = uwtest.ask_socket(socket, "/v1/gpus")["gpus"]
    t.equal([(g["gpu"], g["cap"]["state"]) for g in gpus], [(0, "held")], "board 0 is held")
    job = {"source": "run", "pid": p.pid, "gpus": ["0"], "goal": "edp", "name": "kept"}
    t.ok(uwtest.ask_socket(socket, "/v1/jobs", job).get("id"), "a job with a search begins")
    q = node.run("underwatt", "jobs")
    t.ok(q.returncode == 0 and "kept" in q.stdout, "`underwatt jobs` shows it", q.stdout + q.stderr)
    q = node.run("underwatt", "explain", "0")
    t.ok("kept for a program" in q.stdout, "and `underwatt explain` says why the board is held", q.stdout + q.stderr)
    t.ok("id" in claim(socket, "0") and uwtest.wait_for(lambda: limits(node)[0] == CAP), "a claim caps the board", limits(node))
    t.ok("id" not in claim(socket, "1"), "another board it does not have")
    if os.geteuid() == 0:
        q = node.run("/usr/bin/python3", "-c", f"import socket; socket.socket(socket.AF_UNIX).connect({socket!r})",
                     user=NOBODY, group=NOBODY, extra_groups=[])
        t.ok(q.returncode == 1 and "Permission" in q.stderr, "another user cannot ask", q.stderr)
    else:
        t.skip("another user", "only root can become somebody else")
    q = node.run("underwatt", "keep", "--gpus", "1,0")
    t.ok(q.returncode == 2, "from a file: refused", q.stderr)
    for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        q = node.run("sh", "-c", f"underwatt list {closed}")
        t.equal((q.returncode, q.stderr), (0, ""), f"a command runs with {closed}")
    q = node.run("sh", "-c", "underwatt keep <&-")
    t.ok(q.returncode == 2 and "standard input is a file" in q.stderr, "without an input: refused", q.stderr)
    second, none = begin(node, "--gpus", "1,0")
    t.ok(second.wait(uwtest.PATIENCE) == 1 and not none, "a second one for the same board is refused")
    said = second.stderr.read()
    t.ok("GPU 0" in said and f"(pid {p.pid}, {uwtest.USER})" in said and limits(node)[0] == CAP, "with who has it", said)
    second, socket = begin(other, "--gpus", "0")
    t.ok(socket, "another world's board is another one")
    p.stdin.close()
    t.ok(p.wait(uwtest.PATIENCE) == 0 and limits(node) == [ORIGINAL] * 2 and not os.path.exists(folder),
         "its input closes: the limit is back, and its folder gone", (limits(node), p.stderr.read()))


def more(t, node):
    """Boards that a program names later, and signals."""
    p, socket = begin(node, "--gpus", "1", "--more")
    gpus = uwtest.ask_socket(socket, "/v1/gpus")["gpus"]
    t.equal([(g["gpu"], g["cap"]["state"]) for g in gpus], [(0, "free"), (1, "held")], "--more: the other boards are open")
    claim(socket, "0")
    t.ok(uwtest.wait_for(lambda: limits(node) == [CAP, ORIGINAL]), "and can be capped", limits(node))
    for signo in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        p.send_signal(signo)
        t.ok(p.wait(uwtest.PATIENCE) == 0 and limits(node) == [ORIGINAL] * 2, f"{signo.name}: the limits are back", limits(node))
        p, socket = begin(node, "--gpus", "0")
        claim(socket, "0")
        uwtest.must(uwtest.wait_for(lambda: limits(node)[0] == CAP), limits(node))
    os.kill(p.pid, signal.SIGSTOP)
    t.ok(uwtest.wait_for(lambda: limits(node) == [ORIGINAL] * 2), "a keeper that is stopped loses its caps, too", limits(node))
    os.kill(p.pid, signal.SIGKILL)
    p.wait()
    p, _ = begin(node, "--gpus", "0")
    place = os.path.join(node.runtime, "run", "underwatt")
    left = [name for name in os.listdir(place) if name.startswith(("keep-", "node-"))]
    t.equal(len(left), 2, "a killed one's folder and link are removed by the next")


def unanswered(t):
    """The actuator says hello and answers nothing else: who waits for it says of which board, and how long."""
    with uwtest.Node(board="v100", count=2) as node, tempfile.TemporaryDirectory(prefix="uw-") as folder:
        program = shutil.copy(uwtest.program("underwatt"), folder)
        shutil.copy(sys.argv[1], pathlib.Path(folder, "underwatt-actuator"))
        run = node.popen(program, "run", "--local", "--cap", "200", "--gpus", "1", "--", "true", stdin=subprocess.DEVNULL)
        kept = node.popen(program, "keep", "--gpus", "1", stdin=subprocess.PIPE)
        for p, name, code in ((run, "run", 125), (kept, "keep", 1)):
            said = p.stderr.read()
            t.ok(p.wait(uwtest.PATIENCE) == code and f"{name}: GPU 1: the actuator does not answer within 15 s" in said,
                 f"{name}: no answer of the actuator", f"{p.returncode} {said}")
        pathlib.Path(folder, "ends").touch()
        for name, more, code in (("run", ("--local", "--cap", "200", "--gpus", "1", "--", "true"), 125), ("keep", ("--gpus", "1"), 1)):
            p = node.popen(program, name, *more, stdin=subprocess.PIPE)
            said = p.stderr.read()
            t.ok(p.wait(uwtest.PATIENCE) == code and said.startswith(f"underwatt: {name}: GPU 1: the actuator ") and said.count("\n") == 1,
                 f"{name}: the actuator ends: {said.strip()}", f"{p.returncode} {said}")


def main():
    t = uwtest.Tap()

    def answered():
        with uwtest.Node(board="v100", count=2) as node, uwtest.Node(board="v100", count=1) as other:
            asked(t, node, other)
            more(t, node)
    uwtest.together(answered, lambda: unanswered(t))
    t.done()


if __name__ == "__main__":
    main()
