#!/usr/bin/python3
"""step() and phase(): what stands in the page, whose slot it is after fork, spawn and forkserver and with LOCAL_RANK, what a
step costs, and what the daemon sees of a job under `underwatt run`.
"""
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

import pyuser
import uwtest

SLOTS = 63
EVERY_NS = 1000    # a step may cost that over an empty call; on an idle machine it is 0.1 to 0.2 µs

FORKS = """
import os, underwatt
underwatt.step(); underwatt.step()
for steps in (0, 3):
    child = os.fork()
    if child == 0:
        for _ in range(steps):
            underwatt.step()
        os._exit(0 if underwatt.steps() == steps else 1)
    assert os.waitpid(child, 0)[1] == 0
underwatt.step()
print(os.getpid(), child, underwatt.steps())
"""

# Importable, as spawn wants it.
STARTED = r"""
import multiprocessing, os, sys
import underwatt

def work(steps):
    with underwatt.phase("validate"):
        for _ in range(steps):
            underwatt.step()
    os.write(1, b"%d %d\n" % (os.getpid(), steps))

if __name__ == "__main__":
    underwatt.step()
    context = multiprocessing.get_context(sys.argv[1])
    children = [context.Process(target=work, args=(n,)) for n in (2, 5)]
    for c in children:
        c.start()
    for c in children:
        c.join()
    os.write(1, b"%d %d\n" % (os.getpid(), underwatt.steps()))
    sys.exit(max(c.exitcode for c in children))
"""

PHASES = """
import os, underwatt
path = os.environ["UNDERWATT_PROGRESS"]
underwatt.step()
def touched(change):
    os.utime(path, (1, 1))
    change()
    return os.stat(path).st_mtime > 1
print(touched(lambda: underwatt.phase("load")), touched(lambda: underwatt.phase("load")), touched(underwatt.step))
with underwatt.phase("checkpoint"):
    print(open(path, "rb").read()[64 + 24])
print(open(path, "rb").read()[64 + 24])
for name in ("lunch", "unknown"):
    try:
        underwatt.phase(name)
    except ValueError as e:
        print(e)
"""

LEAVES = """
import underwatt
from underwatt import _progress
underwatt.step()
native = _progress.library()
class Calls:
    def __getattr__(self, name):
        return getattr(native.c, name)
    def uw_progress_detach(self, page):
        print(bool(page), bool(_progress._page))
        underwatt.phase("load")    # as another thread would, meanwhile
        native.c.uw_progress_detach(page)
class Library:
    c, call = Calls(), native.call
_progress.library = Library
_progress.leave()
_progress.library = lambda: native
underwatt.step()
_progress.leave()
_progress.leave()
"""

LOOP = """
import time, underwatt
for i in range(100000):
    time.sleep(0.05)
    underwatt.step()
    if i == 20:
        underwatt.phase("validate")
"""


def page(folder, name="page"):
    path = pathlib.Path(folder, name)
    path.write_bytes(struct.pack("<8sII", b"UWPROGR1", 1, SLOTS).ljust(4096, b"\0"))
    return path


def slots(path):
    """Number -> (pid, steps, last_ns, phase) of those that are taken."""
    data = path.read_bytes()
    found = {i: struct.unpack_from("<QQQI", data, 64 * (i + 1)) for i in range(SLOTS)}
    return {i: s for i, s in found.items() if s[0]}


def python(code, *args, **more):
    return subprocess.run([sys.executable, "-W", "error", "-c", code, *args], capture_output=True, text=True,
                          timeout=60, stdin=subprocess.DEVNULL, env=pyuser.env(**more))


def forks(t, folder):
    path = page(folder)
    before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    p = python(FORKS, UNDERWATT_PROGRESS=str(path))
    after = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    if not t.ok(p.returncode == 0, "a program that forks", p.stderr):
        return
    parent, child, told = map(int, p.stdout.split())
    have = slots(path)
    t.equal({i: s[:2] for i, s in have.items()}, {0: (parent, 3), 1: (child, 3)},
            "each process that steps has a slot of its own, one that does not step has none")
    t.ok(told == 3 and all(before <= s[2] <= after and s[3] == 1 for s in have.values()), "time of the last step, and phase", have)


def ranks(t, folder):
    path = page(folder)
    for rank, steps in ((5, 1), (2, 4)):
        p = python(f"import underwatt\nfor _ in range({steps}): underwatt.step()", UNDERWATT_PROGRESS=str(path), LOCAL_RANK=str(rank))
        t.equal((p.returncode, p.stderr), (0, ""), f"LOCAL_RANK {rank}")
    t.equal({i: s[1] for i, s in slots(path).items()}, {5: 1, 2: 4}, "says whose slot it is")


def starts(t, folder):
    script = pathlib.Path(folder, "started.py")
    script.write_text(STARTED)
    for how in ("fork", "spawn", "forkserver"):
        path = page(folder)
        p = subprocess.run([sys.executable, str(script), how], capture_output=True, text=True, timeout=120,
                           stdin=subprocess.DEVNULL, env=pyuser.env(UNDERWATT_PROGRESS=str(path)))
        want = sorted(tuple(map(int, line.split())) for line in p.stdout.splitlines())
        t.ok(p.returncode == 0 and len(want) == 3, f"multiprocessing by {how}", p.stderr)
        t.equal(sorted(s[:2] for s in slots(path).values()), want, f"{how}: each process counts in its own slot")
        t.equal({s[3] for s in slots(path).values()}, {1}, f"{how}: the phase before it comes back")


def phases(t, folder):
    path = page(folder)
    p = python(PHASES, UNDERWATT_PROGRESS=str(path))
    t.equal(p.stdout.splitlines()[:3], ["True False False", "4", "3"], "a change of phase touches the page, nothing else does")
    t.equal(p.stdout.splitlines()[3:], [f"phase '{name}' is none of: train, validate, load, checkpoint, startup" for name in ("lunch", "unknown")],
            "no such phase, and none that is not known: " + p.stderr)


def leaves(t, folder):
    path = page(folder)
    p = python(LEAVES, UNDERWATT_PROGRESS=str(path))
    t.equal((p.returncode, p.stdout, slots(path)), (0, "True False\n", {}), f"a page that is left is forgotten before it is freed {p.stderr[-300:]}")


def trouble(t, folder):
    p = python("import underwatt; underwatt.step(); underwatt.phase('load'); print(underwatt.steps())")
    t.equal((p.returncode, p.stdout, p.stderr), (0, "1\n", ""), "without a page: nothing, and no word")
    path = pathlib.Path(folder, "none")
    path.write_bytes(b"x" * 4096)
    p = subprocess.run([sys.executable, "-c", "import underwatt; underwatt.step(); underwatt.step(); print(underwatt.steps())"],
                       capture_output=True, text=True, timeout=60, env=pyuser.env(UNDERWATT_PROGRESS=str(path)))
    t.ok(p.returncode == 0 and p.stdout == "2\n" and p.stderr.count("steps are not reported") == 1,
         "a page that is none: one warning, and the program goes on", p.stdout + p.stderr)


def costs(t, folder):
    for name, args in (("with a page", [str(page(folder))]), ("without one", [])):
        p = subprocess.run([sys.executable, str(pyuser.HERE / "step-cost.py"), *args], capture_output=True, text=True, timeout=120,
                           env=pyuser.env())
        t.ok(p.returncode == 0 and float(p.stdout) <= EVERY_NS, f"a step {name}: {p.stdout.strip()} ns, {EVERY_NS} at most", p.stderr)


def daemon(t, folder):
    script = pathlib.Path(folder, "loop.py")
    script.write_text(LOOP)
    with uwtest.Node(board="v100", count=1) as node:
        d = node.daemon()
        job = node.popen("underwatt", "run", "--cap", "250", "--gpus", "0", "--", sys.executable, str(script),
                         env={"PYTHONPATH": str(pyuser.PACKAGE), "UNDERWATT_LIBRARY": str(pyuser.LIBRARY)})
        look = lambda: next((j for j in d.ask("GET", "/v1/jobs")[1]["jobs"] if j["running"]), {})
        j = uwtest.wait_until(look, lambda j: (j.get("steps") or 0) > 25 and j.get("phase") == "validate")
        t.ok((j.get("steps") or 0) > 25 and j["phase"] == "validate" and j["phase_by"] == "job",
             "the daemon sees steps and phase of a job", f"{j} {job.poll()}")
        job.terminate()
        job.wait(60)


def written(t, folder):
    """The lines of docs/progress.md, as they stand there: alone, and under `underwatt run`."""
    text = pathlib.Path(__file__).resolve().parents[2].joinpath("docs/progress.md").read_text(encoding="utf-8")
    lines = text.split("```python\n")[1].split("```")[0]
    script = pathlib.Path(folder, "written.py")
    script.write_text(lines + "for _ in range(3):\n    step()\nprint(page[slot + 1], page[slot] == os.getpid())\n")
    env = {k: v for k, v in os.environ.items() if k not in ("UNDERWATT_PROGRESS", "LOCAL_RANK")}
    p = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True, timeout=60)
    t.equal((p.returncode, p.stdout), (0, "3 True\n"), f"the documented lines without `underwatt run` {p.stderr}")
    path = page(folder, "written")
    p = subprocess.run([sys.executable, script], env={**env, "UNDERWATT_PROGRESS": str(path)}, capture_output=True, text=True, timeout=60)
    with open(path, "rb") as f:
        steps = struct.unpack_from("<Q", f.read(), 64 + 8)[0]
    t.equal((p.returncode, p.stdout, steps), (0, "3 True\n", 3), f"... and with a page {p.stderr}")


def main():
    t = uwtest.Tap()
    with tempfile.TemporaryDirectory(prefix="uw-") as folder:
        forks(t, folder)
        ranks(t, folder)
        starts(t, folder)
        phases(t, folder)
        leaves(t, folder)
        trouble(t, folder)
        costs(t, folder)
        written(t, folder)
        daemon(t, folder)
    t.done()


if __name__ == "__main__":
    main()
