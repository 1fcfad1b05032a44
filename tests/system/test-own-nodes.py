"""Other terminals beside commands that have a node of their own: explain, jobs and top without a daemon."""
import json
import os
import pathlib
import shutil
import signal
import stat
import tempfile

import uwtest

t = uwtest.Tap()
SWEEP = ["underwatt", "sweep", "--gpus", "1", "--to", "225", "--step", "75", "--runs", "1", "--settle", "0.1 s", "--",
         "underwatt-sim", "train", "--workload", "alexnet", "--gpus", "1", "--steps", "4000"]


def sockets(runtime):
    return sorted(pathlib.Path(runtime, "underwatt").glob("node-*.sock"))


def ask(node, runtime, *args, stopped=None, **kw):
    """Once each command has answered within its second, but for the one that is stopped."""
    def look():
        return node.run("underwatt", *args, env={"XDG_RUNTIME_DIR": runtime}, **kw)
    return uwtest.wait_until(look, lambda p: all(f"process {stopped} " in line for line in p.stderr.splitlines() if "does not answer" in line))


def together(node, other, runtime):
    """A cap and a sweep on two boards: each command is asked, and one answer has both."""
    p = ask(node, runtime, "jobs")
    start = f"this command needs the daemon: underwatt-sim --state {node.state} exec -- underwatt-start\n"
    t.ok(p.returncode == 1 and p.stderr.endswith(start), "no daemon and no command: said, and how to start one", p.stderr)
    p = ask(node, runtime, "policy", "show")
    t.ok(p.returncode == 1 and p.stderr.endswith(start), "a command that only the daemon answers: the same", p.stderr)
    env = {"XDG_RUNTIME_DIR": runtime}
    cap = node.popen("underwatt", "cap", "set", "200", "--gpus", "0", env=env)
    sweep = node.popen(*SWEEP, env=env)
    t.ok(uwtest.wait_for(lambda: node.board(0)["limit_mw"] == 200000 and node.board(1)["pids"]), "both run")
    found = sockets(runtime)
    t.ok(len(found) == 2 and all(stat.S_IMODE(f.stat().st_mode) == 0o600 for f in found) and
         stat.S_IMODE(found[0].parent.stat().st_mode) == 0o700, "a socket each, for their user alone", found)
    p = ask(node, runtime, "explain", "0")
    t.ok(p.returncode == 0 and "named claim of user" in p.stdout, "explain: of the cap",
         p.stdout + p.stderr)
    p = ask(node, runtime, "explain", "1")
    t.ok(p.returncode == 0 and "underwatt sweep" in p.stdout, "explain: of the sweep", p.stdout + p.stderr)
    p = ask(node, runtime, "explain", "3")
    t.ok(p.returncode == 1 and "no command of yours uses GPU 3" in p.stderr, "explain: of a board that neither has",
         p.stderr)
    p = ask(node, runtime, "jobs")
    t.ok(p.returncode == 0 and p.stdout.count("underwatt-sim") == 1, "jobs: the sweep's command", p.stdout + p.stderr)
    p = ask(node, runtime, "jobs", "--json", "-")
    t.equal([j["gpus"] for j in json.loads(p.stdout)["jobs"]], [[1]], "jobs: as JSON")
    p = ask(node, runtime, "top", "--once")
    rows = [line.split()[0] for line in p.stdout.splitlines() if "Tesla" in line]
    t.ok(p.returncode == 0 and rows == ["0", "1"], "top: both boards, in order", p.stdout + p.stderr)
    p = ask(other, runtime, "jobs")
    t.ok(p.returncode == 1 and "needs the daemon" in p.stderr, "another world: none of these", p.stdout + p.stderr)
    if os.getuid() == 0:
        p = ask(node, runtime, "jobs", user=65534, group=65534, extra_groups=[])
        t.ok(p.returncode == 1 and "needs the daemon" in p.stderr, "another user: the same", p.stdout + p.stderr)
    else:
        t.skip("another user", "only root can become somebody else")
    return cap, sweep


def ends(node, runtime, cap, sweep):
    """A killed command leaves its socket, which the next look removes."""
    sweep.send_signal(signal.SIGSTOP)
    p = ask(node, runtime, "explain", "0", stopped=sweep.pid)
    t.ok(p.returncode == 0 and f"process {sweep.pid} does not answer" in p.stderr,
         "a command that is stopped: said, and the other one is told", p.stdout + p.stderr)
    os.kill(sweep.pid, signal.SIGKILL)
    sweep.wait()
    t.ok(len(sockets(runtime)) == 2, "a killed command leaves its socket", sockets(runtime))
    p = ask(node, runtime, "top", "--once")
    t.ok(p.returncode == 0 and p.stdout.count("Tesla") == 1 and len(sockets(runtime)) == 1,
         "the next look removes it", p.stdout + p.stderr)
    cap.send_signal(signal.SIGINT)
    cap.wait()
    t.ok(sockets(runtime) == [], "a command that ends takes its own along", sockets(runtime))
    p = ask(node, runtime, "explain", "0")
    t.ok(p.returncode == 1 and "needs the daemon" in p.stderr, "then there is none", p.stderr)


def of_run(node, runtime):
    """A job of `run` and one of `measure`."""
    env = {"XDG_RUNTIME_DIR": runtime}
    jobs = [node.popen("underwatt", *what, "--gpus", gpu, "--", "underwatt-sim", "train", "--gpus", gpu, "--steps", "4000",
                       env=env)
            for gpu, what in (("2", ("run", "--cap", "200")), ("3", ("measure",)))]

    def both():
        p = ask(node, runtime, "jobs")
        return p.returncode == 0 and p.stdout.count("underwatt-sim") == 2
    t.ok(uwtest.wait_for(both, step=0.5), "jobs: of run and measure", ask(node, runtime, "jobs"))
    p = ask(node, runtime, "explain", "2")
    t.ok(p.returncode == 0 and "cap 200 W" in p.stdout, "explain: of run's cap", p.stdout + p.stderr)
    for job in jobs:
        job.send_signal(signal.SIGTERM)
        job.wait(uwtest.PATIENCE)
    t.ok(sockets(runtime) == [], "they take their sockets along", sockets(runtime))


def both_open_all(node, runtime):
    """Two that name no board open all: each board is told of by the one that caps it."""
    env = {"XDG_RUNTIME_DIR": runtime}
    jobs = [node.popen("underwatt", "run", "--cap", "200", "--window", "1s", "--", "underwatt-sim", "train", "--gpus", gpu,
                       "--steps", "40000", env=env) for gpu in ("2", "3")]
    t.ok(uwtest.wait_for(lambda: all(node.board(i)["limit_mw"] < 300000 for i in (2, 3)), 90, 0.2), "both cap their boards")
    for gpu in ("2", "3"):
        p = ask(node, runtime, "explain", gpu)
        t.ok(p.returncode == 0 and "  state      held" in p.stdout, f"explain {gpu}: of the one that caps it", p.stdout + p.stderr)
    for job in jobs:
        job.send_signal(signal.SIGTERM)
        job.wait(uwtest.PATIENCE)


def numbers(node, runtime):
    """The first job of a user is 1, and the next command's has the next number."""
    env = {"XDG_RUNTIME_DIR": runtime}
    cmd = ["underwatt", "run", "--cap", "200", "--gpus", "0", "--", "underwatt-sim", "train", "--gpus", "0", "--steps", "40000"]
    for want in (1, 2):
        p = node.popen(*cmd, env=env)
        got = []

        def told():
            p = ask(node, runtime, "jobs", "--json", "-")
            got[:] = [j["id"] for j in json.loads(p.stdout)["jobs"]] if p.returncode == 0 else []
            return got
        uwtest.wait_for(told, step=0.2)
        t.equal(got, [want], f"job {want} has the number {want}")
        p.send_signal(signal.SIGTERM)
        p.wait(uwtest.PATIENCE)


runtime = tempfile.mkdtemp(prefix="uw-run-")
try:
    with uwtest.Node(board="v100", count=4, may_set="anyone") as node, \
            uwtest.Node(board="v100", count=1, may_set="anyone") as other:
        numbers(node, runtime)
        ends(node, runtime, *together(node, other, runtime))
        of_run(node, runtime)
        both_open_all(node, runtime)
finally:
    shutil.rmtree(runtime)
t.done()
