"""`underwatt sweep -- CMD` with real processes on a simulated node."""
import json
import os
import pathlib
import pty
import re
import select
import signal
import sys
import tempfile
import time

import uwtest

t = uwtest.Tap()
SPEED = 8
TRAIN = ["underwatt-sim", "train", "--workload", "alexnet", "--gpus", "1", "--phases", "train",
         "--steps", "300"]  # 15 s at the default limit, 2 s here
RANGE = ["--from", "150", "--to", "300", "--step", "75", "--runs", "1"]


def limits(node):
    return [b["limit_mw"] for b in node.status()["boards"]]


def all_default(node):
    """Seconds until all boards have their limits back."""
    began = time.monotonic()
    uwtest.wait_for(lambda: limits(node) == [300000] * 4, step=0.1)
    return time.monotonic() - began


def in_time(once, what):
    """It takes 6 s at most, in the best of three: others may keep a process from running for a moment."""
    for _ in range(3):
        took = once()
        if took <= 6:
            break
    t.ok(took <= 6, what, f"{took:.1f} s")


def restored(said):
    """Others have kept the actuator or its keeper from running for so long that the one took the other for dead."""
    return "silent for" in said or "the keeper does not answer" in said


def sweep(node, *args, **kw):
    """A sweep to its end, the best of three."""
    for _ in range(3):
        p = node.run("underwatt", "sweep", *args, **kw)
        if not restored(p.stderr):
            break
    return p


def test_whole(node, tmp):
    out = {k: str(tmp / f"sweep.{k}") for k in ("json", "csv", "svg", "html")}
    idle_w = node.board(1)["power_mw"] / 1e3
    p = sweep(node, "--gpus", "1", *RANGE,
              *[x for k, f in out.items() for x in (f"--{k}", f)], "--", *TRAIN)
    t.equal(p.returncode, 0, "a sweep of a command: exit 0")
    t.ok(p.stdout.count("training done") == 4 and "default" not in p.stdout,
         "stdout is the command's own", p.stdout)
    t.ok("SIMULATED: underwatt-sim train" in p.stderr and "min EDS(1.5)" in p.stderr,
         "the table is on stderr", p.stderr)
    t.ok(len(re.findall(r"run \d of 4: \d+ W, .* k?J, mean", p.stderr)) == 4 and
         re.search(r"run 2 of 4.*about \d+ s left", p.stderr) and "\r" not in p.stderr,
         "a plain line a run, with the time left", p.stderr)
    d = json.loads(pathlib.Path(out["json"]).read_text())
    t.ok(d["simulated"] is True and "V100" in d["board"] and
         d["workload"] == " ".join(TRAIN), "JSON: simulated, board, workload")
    t.equal([(x["cap_mw"], x["runs"]) for x in d["points"]],
            [(150000, 1), (225000, 1), (300000, 2)], "JSON: caps and runs")
    # While others keep it from running a job draws what an idle board does.
    work = [x["energy_j"] - idle_w * x["time_s"] for x in d["points"]]
    t.ok(1100 < work[0] < work[2] < 2300, f"JSON: energy above that of an idle board grows with the cap: {work}", d["points"])
    t.ok(all(abs(x["power_w"] * x["time_s"] / x["energy_j"] - 1) < 0.01 for x in d["points"]), "JSON: mean power is energy by time", d["points"])
    t.ok([r["cap_mw"] for r in d["runs"]][0] == 300000 ==
         [r["cap_mw"] for r in d["runs"]][-1], "the default limit is first and last")
    t.ok(limits(node) == [300000] * 4, "all limits are as found")
    t.ok("SIMULATED" in pathlib.Path(out["svg"]).read_text() and
         "SIMULATED" in pathlib.Path(out["html"]).read_text(), "the pictures say simulated")


def test_found(node, tmp):
    p = sweep(node, *RANGE, "--json", tmp / "f.json", "--", *TRAIN)
    t.ok(p.returncode == 0 and p.stdout.count("training done") == 4,
         "no board is named: the first run shows it, and counts", p.stderr)
    p = sweep(node, *RANGE, "--", *TRAIN, env={"CUDA_VISIBLE_DEVICES": "1"})
    t.ok(p.returncode == 0, "CUDA_VISIBLE_DEVICES names it", p.stderr)
    p = node.run("underwatt", "sweep", *RANGE, "--", "true")
    t.ok(p.returncode == 1 and "CMD was seen on no GPU" in p.stderr,
         "a command without a board", p.stderr)
    t.ok(limits(node) == [300000] * 4, "all limits are as found")


def start(node, *args, **kw):
    """A sweep in its second run, the board has a low cap and the command runs: the sweep, and the command's processes."""
    def low():
        board = node.board(1)
        return board["limit_mw"] < 300000 and board["pids"]
    for _ in range(3):
        child = node.popen("underwatt", "sweep", "--gpus", "1", "--to", "225", "--step", "75", "--runs",
                           "1", *args, "--", *TRAIN, **kw)
        job = uwtest.wait_for(lambda c=child: low() or c.poll() is not None)
        if child.poll() is None or not restored(child.stderr.read()):
            break
    t.ok(child.poll() is None and job, "a sweep runs its command under a low cap")
    return child, job


def test_aborts(node, tmp):
    for name, signo in (("SIGINT", signal.SIGINT), ("SIGTERM", signal.SIGTERM)):
        child, job = start(node)
        child.send_signal(signo)
        try:
            code = child.wait(uwtest.PATIENCE)
        except uwtest.subprocess.TimeoutExpired:
            code = None
        t.equal(code, 128 + signo, f"{name}: the exit status says so")
        t.ok(limits(node) == [300000] * 4, f"{name}: the limits are back at once")
        t.ok(job and not any(uwtest.alive(p) for p in job), f"{name}: the command has ended")
        t.ok("interrupted" in child.stderr.read(), f"{name}: said")


def test_killed(node, tmp):
    """kill -9 in a run at a low cap: the lease runs out and the original comes back."""
    def once():
        child, _ = start(node)
        child.kill()
        took = all_default(node)
        uwtest.wait_for(lambda: not node.board(1)["pids"])
        return took
    in_time(once, "kill -9: the limits are back within 6 s")


def test_state(node, tmp):
    p = node.run("underwatt", "sweep", "--gpus", "1", *RANGE, "--state", "/nowhere/s.json", "--", *TRAIN)
    t.ok(p.returncode == 2 and p.stdout == "" and p.stderr == "underwatt: sweep: --state: cannot write /nowhere/s.json: "
         "No such file or directory\n", "state: a file that cannot be written is refused before the first run", p)
    state = tmp / "state.json"
    args = ["underwatt", "sweep", "--gpus", "1", *RANGE, "--state", state, "--json", tmp / "s.json",
            "--", *TRAIN]
    child = node.popen(*args)
    uwtest.wait_for(lambda: state.exists() and len(json.loads(state.read_text())["done"]) >= 2,
                    30, 0.02)
    child.send_signal(signal.SIGTERM)
    child.wait(uwtest.PATIENCE)
    err = child.stderr.read()
    done = json.loads(state.read_text())["done"]
    t.ok(2 <= len(done) < 4 and "goes on from" in err, f"state: {len(done)} of 4 runs are kept",
         err)
    p = node.run(*args)
    t.ok(p.returncode == 0 and p.stdout.count("training done") == 4 - len(done),
         "state: only those that are missing are made", p.stdout + p.stderr)
    runs = json.loads((tmp / "s.json").read_text())["runs"]
    stand = all(a == b or isinstance(b, float) and abs(a - b) <= 1e-6 * b + 1e-3 for i, run in enumerate(done)
                for key, b in run.items() for a in [runs[i][key]])
    t.ok(len(runs) == 4 and stand, "state: the others stand as they were", f"{runs} {done}")
    p = node.run(*args[:-1], "301")
    t.ok(p.returncode == 2 and "another command: word 10 was '300', is '301'" in p.stderr and
         p.stdout == "", "state: another command is refused, and nothing run", p.stderr)
    state.write_text("[]")
    p = node.run(*args)
    t.ok(p.returncode == 2 and "is not a state file of a sweep" in p.stderr, "state: no state file",
         p.stderr)


def test_command(node, tmp):
    script = tmp / "job.sh"
    script.write_text("#!/bin/sh\nexit 7\n")
    other = tmp / "other"  # of no machine: the kernel alone finds out
    other.write_bytes(b"\x7fELF\ntouch " + bytes(str(tmp / "touched"), "ascii") + b"\n")
    other.chmod(0o755)
    cases = [(["sh", "-c", "exit 7"], 7, "CMD ended with status 7 in run 1"),
             (["sh", "-c", "kill -9 $$"], 137, "CMD was ended by signal 9 in run 1"),
             (["/no/such/program"], 127, "/no/such/program"),
             ([script], 126, "job.sh"),
             ([other], 126, f"sweep: {other}: Exec format error")]
    for cmd, code, text in cases:
        p = node.run("underwatt", "sweep", "--gpus", "1", *RANGE, "--", *cmd)
        t.ok(p.returncode == code and text in p.stderr,
             f"{cmd[-1]}: {code}, {p.returncode}", p.stderr)
    t.ok(not (tmp / "touched").exists(), "no shell reads a program of another machine")
    t.ok(limits(node) == [300000] * 4, "all limits are as found")
    for args, text in ((["--gpus", "9"], "no board '9'"),
                       (["--gpus", "1", "--from", "100"], "--from: '100' is outside 150 W..300 W"),
                       (["--gpus", "1", "--to", "310"], "--to: '310' is outside 150 W..300 W")):
        p = node.run("underwatt", "sweep", *args, "--", "touch", tmp / "touched")
        t.ok(p.returncode == 2 and text in p.stderr and not (tmp / "touched").exists(),
             f"sweep {' '.join(args)}: '{text}', CMD not started", p.stderr)


def test_two(node, tmp):
    child, _ = start(node)
    p = node.run("underwatt", "sweep", "--gpus", "1", *RANGE, "--", "touch", tmp / "second")
    t.ok(p.returncode == 125 and str(child.pid) in p.stderr and not (tmp / "second").exists(),
         "a second sweep of the board is refused with the first's pid", f"{child.pid}\n{p.stderr}")
    child.send_signal(signal.SIGTERM)
    child.wait(uwtest.PATIENCE)
    t.ok(limits(node) == [300000] * 4, "all limits are as found")


def test_second_signal(node, tmp):
    """A command that does not end by the first signal ends by the second."""
    child = node.popen("underwatt", "sweep", "--gpus", "1", "--to", "225", "--step", "75", "--runs", "1", "--settle",
                       "0.1 s", "--", "sh", "-c", f"trap '' INT; echo $$ >{tmp}/deaf; while :; do sleep 0.1; done")
    t.ok(uwtest.wait_for(lambda: (tmp / "deaf").exists() and (tmp / "deaf").read_text().strip(), 30),
         "a command that hears no ^C")
    pid = int((tmp / "deaf").read_text())
    child.send_signal(signal.SIGINT)
    time.sleep(0.5)
    t.ok(child.poll() is None and uwtest.alive(pid), "the first ^C: it goes on, and the sweep waits")
    for _ in range(10):  # two at the same time may be one
        child.send_signal(signal.SIGINT)
        if uwtest.wait_for(lambda: not uwtest.alive(pid), 5):
            break
    t.equal(child.wait(uwtest.PATIENCE), 130, "the second ^C: the exit status says so")
    t.ok(not uwtest.alive(pid) and limits(node) == [300000] * 4, "the command has ended, the limits are back")


def test_stopped(node, tmp):
    """^Z: the lease runs out, the originals come back; the run is made again when the sweep goes on."""
    def once():
        nonlocal child
        if child:
            child.kill()
            uwtest.wait_for(lambda: not node.board(1)["pids"])
        child, _ = start(node)
        child.send_signal(signal.SIGSTOP)
        return all_default(node)
    child = None
    in_time(once, "^Z: the limits are back within 6 s")
    child.send_signal(signal.SIGCONT)
    out, err = child.communicate(timeout=60)
    t.ok(child.returncode == 0 and "was stopped for a while" in err, "it goes on to its end, and says so", err)
    t.ok(out.count("training done") > len(re.findall(r"run \d of \d: ", err)) >= 4,
         "the run that was under way does not count", out + err)
    t.ok(limits(node) == [300000] * 4, "all limits are as found")


def test_side_by_side(node, tmp):
    """Two nodes at once: each has its boards, and one that names none finds those that are left."""
    child, _ = start(node)
    other = [*TRAIN]
    other[other.index("--gpus") + 1] = "2"
    p = sweep(node, "--from", "200", "--to", "300", "--step", "100", "--runs", "1", "--", *other)
    t.ok(p.returncode == 0 and p.stdout.count("training done") == 3, "a sweep beside another", p.stderr)
    out, err = child.communicate(timeout=60)
    t.ok(child.returncode == 0 and out.count("training done") == 4 and "does not count" not in err,
         "the other one goes on as if alone", out + err)
    t.ok(limits(node) == [300000] * 4, "all limits are as found")


def hears(pid, signo):
    """Whether the process has a handler of its own for the signal."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return int(line.split()[1], 16) >> (signo - 1) & 1
    return False


def test_opening(tmp):
    """^C while a board hangs that is being opened, as they all are where none is named."""
    with uwtest.Node(board="v100", count=2, may_set="anyone") as node:
        node.fault("0", "hang")
        child = node.popen("underwatt", "sweep", *RANGE, "--", "touch", tmp / "opened")
        t.ok(uwtest.wait_for(lambda: hears(child.pid, signal.SIGINT), 30), "a sweep opens boards, one of them hangs")
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=uwtest.PATIENCE)
        t.ok(child.returncode == 130 and "interrupted by signal 2" in err and not (tmp / "opened").exists(),
             "^C: it ends, and CMD was not started", f"{child.returncode} {err}")


def test_two_signals():
    """Two signals at once at moments of the start: the sweep ends, whichever turn of the loop they share."""
    hung = 0
    with uwtest.Node(board="v100", count=1) as node:
        for i in range(100):
            child = node.popen("underwatt", "sweep", "--gpus", "0", "--runs", "1", "--", "sleep", "5")
            time.sleep(i * 0.08 / 100)
            child.send_signal(signal.SIGTERM)
            child.send_signal(signal.SIGHUP)
            try:
                child.communicate(timeout=uwtest.PATIENCE)
            except uwtest.subprocess.TimeoutExpired:
                hung += 1
                child.kill()
                child.communicate()
    t.equal(hung, 0, "two signals at once while a sweep starts: it ends, 100 times")


def test_slow_driver():
    """A driver that takes 8 s of this world for each limit; ^C in the middle of a write: the release waits."""
    with uwtest.Node(machine="set_latency: 8 s\nboards: [{model: v100, count: 2}]", speed=SPEED,
                     may_set="anyone") as node:
        p = sweep(node, "--gpus", "1", "--from", "200", "--to", "300", "--step", "100", "--runs", "1", "--", *TRAIN)
        t.ok(p.returncode == 0, "a write counts as under way for as long as the driver takes", p.stderr)
        child = node.popen("underwatt", "sweep", "--gpus", "1", "--from", "150", "--to", "200", "--step", "50", "--runs",
                           "1", "--settle", "0.1 s", "--", "true")
        t.ok(uwtest.wait_for(lambda: node.board(1)["limit_mw"] < 300000, 60), "a sweep under a slow driver")
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=uwtest.PATIENCE)
        t.ok(child.returncode == 130 and "NOT all" not in err and node.board(1)["limit_mw"] == 300000,
             "^C: the original is back when it ends", f"{child.returncode} {err}")


def test_rights(tmp):
    with uwtest.Node(board="v100", count=4, speed=SPEED, may_set="root") as node:
        if os.getuid() != 0:
            t.skip("without the right", "needs to be root, to become somebody else")
            return
        p = node.run("underwatt", "sweep", "--gpus", "1", *RANGE, "--", "touch", tmp / "denied",
                     user=65534, group=65534, extra_groups=[])
        t.ok(p.returncode == 125 and not (tmp / "denied").exists(),
             "without the right CMD is not started", f"{p.returncode} {p.stderr}")
        t.ok("ermission" in p.stderr or "right" in p.stderr, "and it is said which is missing",
             p.stderr)
        train = node.train("--gpus", "2", "--workload", "vgg19", "--epochs", "50")
        p = node.run("underwatt", "sweep", "--gpus", "2", *RANGE, "--", "touch", tmp / "foreign",
                     user=65534, group=65534, extra_groups=[])
        t.ok(p.returncode == 125 and not (tmp / "foreign").exists(),
             "a board of another user's process is left alone", f"{p.returncode} {p.stderr}")
        train.kill()


def test_terminal(node, tmp):
    """At a terminal there is one line that renews itself."""
    lead, follow = pty.openpty()
    child = node.popen("underwatt", "sweep", "--gpus", "1", *RANGE, "--", *TRAIN, stderr=follow)
    os.close(follow)
    text = b""
    while child.poll() is None or select.select([lead], [], [], 0)[0]:
        if select.select([lead], [], [], 0.1)[0]:
            try:
                piece = os.read(lead, 65536)
            except OSError:
                break
            if not piece:
                break
            text += piece
    os.close(lead)
    child.wait(30)
    text = text.decode()
    t.ok(re.search("\r\033\\[Krun [1-4] of 4: \\d+ W, \\d+ s, [\\d.]+ W, about \\d+ (s|min) left", text),
         "a live line with the time left at a terminal", text[-2000:])
    t.ok("\r\033[K" in text and "min EDP" in text and child.returncode == 0,
         "then the table", text[-2000:])


def play(*tests):
    with uwtest.Node(board="v100", count=4, speed=SPEED, may_set="anyone") as world:
        where = pathlib.Path(world.tmp)
        for test in tests:
            began = time.monotonic()
            test(world, where)
            print(f"# {test.__name__}: {time.monotonic() - began:.1f} s", flush=True)


def rights():
    with tempfile.TemporaryDirectory(prefix="uw-") as where:
        os.chmod(where, 0o777)
        test_rights(pathlib.Path(where))
        test_opening(pathlib.Path(where))


uwtest.together(lambda: play(test_whole, test_found), lambda: play(test_aborts, test_killed, test_terminal),
                lambda: play(test_state, test_command, test_two),
                lambda: play(test_second_signal, test_stopped, test_side_by_side), test_slow_driver, rights, test_two_signals)
t.done()
