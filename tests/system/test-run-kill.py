#!/usr/bin/python3
"""`underwatt run` as its users see it: kill -9 and SIGSTOP of the command, the job,
the keeper and the actuator while it measures, walks down and holds; the original
limit is back within 5 s of wall time each time, and the job is not harmed.
"""
import concurrent.futures
import importlib
import os
import pathlib
import queue
import signal
import subprocess
import tempfile
import time

import uwtest

kill = importlib.import_module("test-actuator-kill")
WITHIN_S = 5.0
BOARDS, SPEED = kill.BOARDS, 10
ORIGINAL, CAP = 250000, 200000
MACHINE = f"boards: [{{model: v100, count: {BOARDS}, limit: {ORIGINAL // 1000} W}}]"


def stat_of(pid):
    """State letter and parent of a process; ('', 0) once it is gone."""
    try:
        rest = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return rest[0], int(rest[1])
    except OSError:
        return "", 0


def alive(pid):
    return stat_of(pid)[0] not in ("", "Z")


def children(pid):
    found = {}
    for p in pathlib.Path("/proc").iterdir():
        if p.name.isdigit() and stat_of(int(p.name))[1] == pid:
            try:
                found[int(p.name)] = (p / "cmdline").read_bytes().split(b"\0")[0].decode()
            except OSError:
                pass
    return found


def child(pid, name):
    return next((p for p, argv0 in children(pid).items() if argv0.endswith(name)), 0)


def send(pid, signo):
    try:
        os.kill(pid, signo)
    except ProcessLookupError:
        pass


class Run:
    def __init__(self, node, nvml, board, cap=CAP):
        self.node, self.nvml, self.board, self.cap = node, nvml, board, cap
        self.stderr = tempfile.TemporaryFile(dir=node.tmp)
        self.p = node.popen("underwatt", "run", "--cap", str(cap // 1000), "--window", "2 s",
                            "--gpus", str(board), "--", uwtest.program("underwatt-sim"), "train",
                            "--workload", "resnet50", "--gpus", str(board), "--steps", "100000",
                            stdout=subprocess.DEVNULL, stderr=self.stderr)
        self.pids = {"command": self.p.pid}
        uwtest.must(uwtest.wait_for(lambda: child(self.p.pid, "underwatt-sim")), "no job:", self.p.poll, self.said)
        self.pids["job"] = child(self.p.pid, "underwatt-sim")
        self.pids["keeper"] = child(self.p.pid, "underwatt-actuator")
        self.pids["actuator"] = child(self.pids["keeper"], "underwatt-actuator")
        assert all(self.pids.values()), f"a process is missing: {self.pids}"

    def limit(self):
        return self.nvml.limit(self.board)

    def said(self):
        return os.pread(self.stderr.fileno(), 1 << 20, 0).decode()[-2000:]

    def close(self):
        for pid in self.pids.values():
            send(pid, signal.SIGCONT)
        for name in ("job", "command"):
            send(self.pids[name], signal.SIGKILL)
        self.p.wait()
        self.stderr.close()
        # The board's next job is refused while this one has not ended.
        uwtest.wait_for(lambda: not any(map(alive, self.pids.values())))


# The steps of a run; each waits until it is there.  False: it was over before this process, which others may have kept
# from running, looked; or others have kept the actuator from running for so long that the keeper has killed it.

def measuring(run):
    """measuring at the original"""
    return run.limit() == ORIGINAL


def walking(run):
    """walking down"""
    uwtest.must(uwtest.wait_for(lambda: run.limit() < ORIGINAL or SILENT in run.said()), "the limit is", run.limit, run.said)
    return run.cap < run.limit() < ORIGINAL


def holding(run):
    """holding the cap"""
    uwtest.must(uwtest.wait_for(lambda: run.limit() == run.cap or SILENT in run.said(), step=0.1), "the limit is", run.limit, run.said)
    return run.limit() == run.cap


TRIES = 10
SILENT = "killed, restoring"


def begun(node, nvml, board, step, cap):
    """A run that is at that step."""
    for _ in range(TRIES):
        run = Run(node, nvml, board, cap)
        try:
            if step(run):
                return run
        except BaseException:
            run.close()
            raise
        run.close()
    raise AssertionError(f"{TRIES} runs, and none was seen {step.__doc__}")


def entry_of(node, run):
    uuid = run.nvml.uuid[run.board]
    return os.path.exists(os.path.join(node.state, "actuator", f"{uuid}.cap"))


def case(*args):
    """The best of three: others may keep the actuator from running for a moment."""
    for _ in range(3):
        good, name, why, took = attempt(*args)
        if took <= WITHIN_S:
            return good, name, why
    return False, name, why


def attempt(node, nvml, boards, step, victim, signo, cap=CAP):
    """Whether it is as it is to be, its name, why not, and the seconds until the original was back."""
    name = f"{signal.Signals(signo).name} of the {victim}, {step.__doc__}"
    board = boards.get()
    run = None
    try:
        run = begun(node, nvml, board, step, cap)
        t0 = time.monotonic()
        os.kill(run.pids[victim], signo)
        # A job that is stopped may go on: its board stays held, at the original.
        lasting = victim == "job" and signo == signal.SIGSTOP
        back = uwtest.wait_for(lambda: run.limit() == ORIGINAL and
                               (lasting or not entry_of(node, run)), step=0.1)
        took = time.monotonic() - t0
        unharmed = victim == "job" or alive(run.pids["job"])
        if victim == "job" and signo == signal.SIGKILL:
            run.p.wait(uwtest.PATIENCE)
            unharmed = run.p.returncode == 128 + signal.SIGKILL
        elif lasting and step is holding and back:
            os.kill(run.pids["job"], signal.SIGCONT)
            unharmed = uwtest.wait_for(lambda: run.limit() == cap, step=0.1)
        return back and unharmed, f"{name} ({took:.1f} s)", \
            f"limit {run.limit()}, entry {entry_of(node, run)}, job unharmed {unharmed}: {run.said()}", took
    except (AssertionError, RuntimeError, OSError, subprocess.SubprocessError) as e:
        return False, name, repr(e), 0
    finally:
        if run:
            run.close()
        boards.put(board)


def under_cap(node, capped, args, steps):
    """A command whose job has board 0 under that cap, and the file of its words."""
    said = pathlib.Path(node.tmp, "said")
    for _ in range(TRIES):
        with open(said, "w") as log:  # who is stopped would keep a pipe open
            p = node.popen("underwatt", *args, "--gpus", "0", "--", uwtest.program("underwatt-sim"), "train", "--workload",
                           "resnet50", "--gpus", "0", "--steps", steps, stderr=log, stdout=subprocess.DEVNULL)
        uwtest.wait_for(lambda: node.board(0)["limit_mw"] == capped or SILENT in said.read_text())
        if node.board(0)["limit_mw"] == capped:
            return p, said
        p.terminate()
        p.wait(uwtest.PATIENCE)
    raise AssertionError(said.read_text())


def stuck(t, what, args, capped):
    """Keeper killed, actuator stopped: the cap stays, and the report says so."""
    with uwtest.Node(machine=MACHINE, speed=SPEED) as node:
        p, said = under_cap(node, capped, args, 1000)
        node_limit = lambda: node.board(0)["limit_mw"]
        keeper = child(p.pid, "underwatt-actuator")
        actuator = child(keeper, "underwatt-actuator")
        os.kill(actuator, signal.SIGSTOP)
        os.kill(keeper, signal.SIGKILL)
        assert uwtest.wait_for(lambda: "the actuator does not answer" in said.read_text()), said.read_text()
        if child(p.pid, "underwatt-sim"):
            send(child(p.pid, "underwatt-sim"), signal.SIGTERM)
        p.wait(uwtest.PATIENCE)
        text = said.read_text()
        force = f"{node.board(0)['uuid']}: {capped // 1000} W is in force, the original is {ORIGINAL // 1000} W: "
        t.ok(node_limit() == capped and f"{force}not restored yet; underwatt-actuator (pid {actuator}, {uwtest.USER}, stopped) "
             "has the board's lock" in text and "original was in force" not in text,
             f"{what}: keeper killed, actuator stopped: what is in force is read, and said", text)
        send(actuator, signal.SIGCONT)
        t.ok(uwtest.wait_for(lambda: node_limit() == ORIGINAL), f"{what}: it goes on: restored")


def hurried(t):
    """^C twice while the boards are given back: nobody has read what is in force."""
    with uwtest.Node(machine=MACHINE, speed=SPEED) as node:
        p, said = under_cap(node, 200000, ["run", "--local", "--cap", "200", "--window", "2 s"], 100000)
        keeper, job = child(p.pid, "underwatt-actuator"), child(p.pid, "underwatt-sim")
        actuator = child(keeper, "underwatt-actuator")
        os.kill(actuator, signal.SIGSTOP)
        for pid in (keeper, job):
            os.kill(pid, signal.SIGKILL)
        # It has waited for its job: signals are its own from now on.
        uwtest.wait_for(lambda: not os.path.exists(f"/proc/{job}"))
        p.send_signal(signal.SIGINT)
        while p.poll() is None:  # two at the same time may be one
            send(p.pid, signal.SIGINT)
            time.sleep(0.05)
        text = said.read_text()
        t.ok(node.board(0)["limit_mw"] == 200000 and "NOT RESTORED: could not be verified" in text,
             "^C while boards are given back: nothing is said of what was not read", text)
        send(actuator, signal.SIGCONT)
        t.ok(uwtest.wait_for(lambda: node.board(0)["limit_mw"] == ORIGINAL), "and it is restored later")


def pass_time(node, seconds):
    """Until the boards have lived on for so long."""
    began = node.board(0)["at_ns"]
    uwtest.must(uwtest.wait_for(lambda: node.board(0)["at_ns"] - began >= seconds * 1e9, step=0.1), "the boards stand still")


def suspended(t, *order):
    """All processes stop and go on together, as in a job that a scheduler suspends.  The keeper has heard nothing, and the
    command seen no step, for longer than either waits."""
    with uwtest.Node(machine=MACHINE, speed=SPEED) as node:
        run = begun(node, nvml_of(node), 0, holding, CAP)
        try:
            for name in ("job", "command", "keeper", "actuator"):
                os.kill(run.pids[name], signal.SIGSTOP)
            pass_time(node, 3 * SPEED)
            for name in order:
                os.kill(run.pids[name], signal.SIGCONT)
            pass_time(node, 2 * SPEED)
            t.ok(alive(run.pids["actuator"]) and uwtest.wait_for(lambda: run.limit() == CAP),
                 f"all are stopped, and go on: {', '.join(order)}: the cap is in force again", run.said())
        finally:
            run.close()


def nvml_of(node):
    return kill.Nvml(os.path.join(node.state, "lib", "libnvidia-ml.so.1"))


def main():
    t = uwtest.Tap()
    boards = queue.Queue()
    for i in range(BOARDS):
        boards.put(i)
    cases = [(step, victim, signo) for step in (measuring, walking, holding)
             for victim in ("command", "job", "keeper", "actuator")
             for signo in (signal.SIGKILL, signal.SIGSTOP)]

    def fast():
        with uwtest.Node(machine=MACHINE, speed=SPEED) as node, \
                concurrent.futures.ThreadPoolExecutor(BOARDS) as pool:
            nvml = nvml_of(node)
            for good, name, why in pool.map(lambda c: case(node, nvml, boards, *c), cases):
                t.ok(good, name, why)

    def slow():
        own = queue.Queue()
        own.put(0)
        with uwtest.Node(machine=MACHINE) as node:
            good, name, why = case(node, nvml_of(node), own, holding, "job", signal.SIGSTOP, ORIGINAL - 6000)
            t.ok(good, f"{name}, at the wall's speed", why)
    uwtest.together(fast, slow)
    uwtest.together(lambda: stuck(t, "run", ["run", "--local", "--cap", "200", "--window", "2 s"], 200000),
                    lambda: stuck(t, "sweep", ["sweep", "--runs", "1", "--from", "200", "--to", "210", "--step",
                                               "10", "--settle", "1 s"], 200000),
                    lambda: hurried(t),
                    lambda: suspended(t, "keeper", "actuator", "command", "job"),
                    lambda: suspended(t, "job", "actuator", "keeper", "command"))
    t.done()


if __name__ == "__main__":
    main()
