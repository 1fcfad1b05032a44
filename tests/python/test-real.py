#!/usr/bin/python3
"""bench/real/session.py (`make real`) from begin to end on a simulated board, its refusals, and its guard."""
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

import pyuser
import uwtest

t = uwtest.Tap()
SESSION = uwtest.TOP / "bench" / "real" / "session.py"
PARTS = {"about", "idle", "calls, idle", "daemon at rest", "training begins", "sensors", "windows each step", "daemon",
         "short windows", "counted begins", "launches", "measure", "more begins", "calls, at work", "daemon at 10 Hz 0",
         "state at the end", "replay"}
FILES = {"log.txt", "report.json", "steps.csv", "timeline.csv", "sensors.csv", "launches.csv", "daemon.txt", "nvidia-smi.txt",
         "summary.txt", "session.svg"}
SET = """
import ctypes
lib = ctypes.CDLL("libnvidia-ml.so.1")
board, mw = ctypes.c_void_p(), ctypes.c_uint()
lib.nvmlInit_v2(), lib.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(board))
print(lib.nvmlDeviceSetPowerManagementLimit(board, 300000))
print(lib.nvmlDeviceGetPowerManagementLimit(board, ctypes.byref(mw)), mw.value)
"""


def session(node, out, *words, **kw):
    env = {k: v for k, v in pyuser.env().items() if k not in ("UNDERWATT_REAL_CALLS", "UNDERWATT_NVML")}
    return node.run(sys.executable, SESSION, out, *words, env=env, timeout=240, **kw)


def no_board():
    with tempfile.TemporaryDirectory() as out:
        env = {**pyuser.env(), "UNDERWATT_NVML": "libnothing.so.1"}
        p = subprocess.run([sys.executable, SESSION, out], env=env, capture_output=True, text=True, timeout=60, check=False)
    t.ok((p.returncode, len(p.stdout.splitlines())) == (77, 1), "without a board: one line and 77", p.stdout + p.stderr)
    t.ok("no NVIDIA board answers here" in p.stdout, "the line says so", p.stdout)


def refusals(node):
    d = node.daemon()
    with tempfile.TemporaryDirectory() as out:
        p = session(node, out)
        t.ok(p.returncode == 2, "beside underwattd: refused", p.stdout + p.stderr)
        t.ok("underwattd (pid" in p.stderr and len(p.stderr.splitlines()) == 1, "one line names it", p.stderr)
        p = session(node, out, "--programs", out)
        t.equal(p.returncode, 2, "the refusal comes first")
    d.kill()
    with tempfile.TemporaryDirectory() as out:
        p = session(node, out, "--programs", out)
        t.ok(p.returncode == 2 and "guard.so" in p.stderr, "without a guard: refused", p.stdout + p.stderr)


def guard(node):
    with tempfile.TemporaryDirectory() as folder:
        calls = pathlib.Path(folder, "calls")
        env = {**os.environ, "LD_PRELOAD": str(uwtest.BUILD / "bench/real/guard.so"), "UNDERWATT_REAL_CALLS": str(calls)}
        before = node.status()["boards"][0]["limit_mw"]
        p = node.run(sys.executable, "-c", SET, env=env)
        t.ok(p.stdout.split()[:2] == ["4", "0"], "the guard refuses a limit, and lets it be read", p.stdout + p.stderr)
        t.equal(len(calls.read_text(encoding="utf-8").splitlines()), 1, "the call is noted")
        t.equal(node.status()["boards"][0]["limit_mw"], before, "the limit stays")


def whole(node):
    with tempfile.TemporaryDirectory() as out:
        p = session(node, out, "--quick", "--seconds", "200")
        t.ok(p.returncode == 0, "a quick session", p.stdout + p.stderr)
        report = json.loads(pathlib.Path(out, "report.json").read_text(encoding="utf-8"))
        t.equal({name: state for name, state, *_ in report["parts"]}, dict.fromkeys(PARTS, "done"), "each part is done")
        t.equal(FILES - set(os.listdir(out)), set(), "each file is there")
        t.ok("refused by the guard: 0" in p.stdout, "nothing that writes was called", p.stdout[-500:])
        labels = {b["label"] for b in report["blocks"]}
        t.ok({"plain 0", "window 0", "zeus", "dwindow", "windows of 0.1 s", "measured", "accum"} <= labels, "the blocks", labels)
        polls = [(x["label"], x["poll_ms"]) for x in report["polls"]]
        t.ok(("accum", 25) in polls and ("accum", 15) in polls, "launches are looked at every 25 and 15 ms", polls)
        t.ok(report["daemon"]["seconds"] > 0 and set(report["daemon ended"]) == {0}, "the daemon's cost; it ended well")
        t.ok("<polyline" in pathlib.Path(out, "session.svg").read_text(encoding="utf-8"), "the picture has a curve")
        t.ok("about: about " in p.stdout and "replay: done (" in p.stdout, "progress is shown")


def without_torch(node):
    with tempfile.TemporaryDirectory() as out:
        p = session(node, out, "--quick", "--train", "env -u UNDERWATT_SIM_STATE /usr/bin/python3 -S")
        t.ok(p.returncode == 0, "without PyTorch", p.stdout + p.stderr)
        report = json.loads(pathlib.Path(out, "report.json").read_text(encoding="utf-8"))
        state = {name: s for name, s, *_ in report["parts"]}
        t.ok("has no PyTorch" in state["sensors"] and "left out" in state["measure"], "training is left out, and said", state)
        t.equal(state["calls, idle"], "done", "the others are done")


def traced():
    """Steps of 200 ms that launch for 100 ms and then wait."""
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as f:
        f.write("time_s,kernels,graphs\n")
        f.writelines(f"{100 + step * 0.2 + i * 0.001:.6f},{step * 100 + i + 1},0\n" for step in range(150) for i in range(100))
        f.flush()
        for poll in (25, 15):
            p = subprocess.run([uwtest.BUILD / "bench/real/launch-trace", f.name, str(poll)], capture_output=True, text=True,
                               timeout=60, check=False)
            found = json.loads(p.stdout)
            t.ok(found["known"] and abs(found["step_ms"] - 200) < 2, f"launch-trace finds steps of 200 ms at {poll} ms", p.stdout)
    for words in (["nothing.csv", "25"], [f.name, "frequently"], [f.name]):
        p = subprocess.run([uwtest.BUILD / "bench/real/launch-trace", *words], capture_output=True, text=True, timeout=60,
                           check=False)
        t.ok(p.returncode in (1, 2) and len(p.stderr.splitlines()) == 1, f"launch-trace {words}: one line", p.stderr)


def polled():
    """A page whose counts this process raises."""
    sys.path.insert(0, str(SESSION.parent))
    import session as real
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        page, stop = pathlib.Path(folder, "page"), threading.Event()
        real.new_page(page)

        def work():
            with open(page, "r+b", buffering=0) as f:
                n = 0
                while not stop.is_set():
                    n += 10
                    f.seek(real.SLOT0)
                    f.write(struct.pack("<QQIII36xQ", os.getpid(), 1, 2, 0, 0, n))
                    time.sleep(0.01)
        worker = threading.Thread(target=work)
        worker.start()
        p = subprocess.run([uwtest.BUILD / "bench/real/launch-poll", str(page), "15", "1"], capture_output=True, text=True,
                           timeout=60, check=False)
        stop.set()
        worker.join()
        found = json.loads(p.stdout)
        t.ok(found["polls"] > 1 and found["why"] != 1, "launch-poll sees a process that counts", p.stdout + p.stderr)
        t.ok(page.exists(), "the page stays")


def main():
    signal.alarm(280)
    no_board()
    traced()
    polled()
    with uwtest.Node(board="h100", count=1) as one, uwtest.Node(board="h100", count=1) as other:
        guard(one)
        uwtest.together(lambda: whole(one), lambda: without_torch(other))
        refusals(one)
    t.done()


if __name__ == "__main__":
    main()
