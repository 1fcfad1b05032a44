#!/usr/bin/python3
"""underwatt run --count-launches: a job on simulated boards that tells no steps and launches
kernels through a libcuda and a libcupti of the test's own; what it counts is what the job
did, and whatever is amiss harms no job.  (test-real-cupti.py has NVIDIA's own parts.)
"""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

import uwtest

job, fake_cuda, fake_cupti, parts = sys.argv[1:5]
SIM = uwtest.program("underwatt-sim")
LIBRARY = uwtest.BUILD / "src/cuda/libunderwatt-cuda.so"
SPEED = 4
t = uwtest.Tap()
tmp = pathlib.Path(tempfile.mkdtemp(prefix="uw-launches-", dir="/dev/shm"))
(tmp / "cuda").mkdir()
(tmp / "cupti").mkdir()
shutil.copy(fake_cuda, tmp / "cuda/libcuda.so.1")
shutil.copy(fake_cupti, tmp / "cupti/libcupti.so.12")


def path(*names):
    return ":".join(str(tmp / n) for n in names)


WITH = {"LD_LIBRARY_PATH": path("cuda", "cupti")}


def slots(page):
    data = pathlib.Path(page).read_bytes()
    found = []
    for i in range(63):
        pid, _, state, version, result = struct.unpack_from("<QQIII", data, 4352 + 256 * i)
        if pid:
            counts = struct.unpack_from("<24Q", data, 4352 + 256 * i + 64)
            found.append({"pid": pid, "state": state, "version": version, "result": result,
                          "kernels": sum(counts[:16]), "graphs": sum(counts[16:]),
                          "streams": sum(c > 0 for c in counts[:16])})
    return found


def new_page():
    return subprocess.run([parts, "page", str(tmp)], capture_output=True, text=True, check=True).stdout.strip()


def alone(page, *args, launches=100, wrap=(), **env):
    """The job without Underwatt, with the library."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("UNDERWATT", "CUDA_", "FAKE_"))}
    full = {**clean, **WITH, "CUDA_INJECTION64_PATH": str(LIBRARY), "UNDERWATT_PROGRESS": page, **env}
    return subprocess.run([*wrap, job, str(launches), *args], env=full, capture_output=True, text=True, timeout=60)


def counting():
    page = new_page()
    p = alone(page)
    got = slots(page)
    t.ok(p.returncode == 0 and len(got) == 1, "a process: one slot", f"{p} {got}")
    t.ok((got[0]["kernels"], got[0]["graphs"], got[0]["state"], got[0]["version"]) == (100, 1, 2, 28),
         "its launches, as CUPTI's one subscriber", got)
    t.equal(got[0]["streams"], 2, "two streams, two counters")
    page = new_page()
    alone(page, FAKE_CUPTI="shared")
    got = slots(page)
    t.ok(len(got) == 1 and got[0]["state"] == 3 and got[0]["kernels"] == 100, "beside others where CUPTI shares", got)
    page = new_page()
    p = alone(page, FAKE_CUPTI="taken")
    got = slots(page)
    t.ok(p.returncode == 0 and not p.stderr and got[0]["state"] == 5 and got[0]["result"] == 39
         and got[0]["kernels"] == 0, "another subscriber: stands aside, says nothing", f"{p} {got}")
    page = new_page()
    p = alone(page, LD_LIBRARY_PATH=path("cuda"))
    got = slots(page)
    t.ok(p.returncode == 0 and not p.stderr and got[0]["state"] == 4, "no CUPTI: harmless", f"{p} {got}")


def many():
    """More processes at once than there are slots."""
    page = new_page()
    script = f'for i in $(seq 1 90); do "{job}" 50 & done; wait'
    p = alone(page, wrap=("/bin/sh", "-c", script))
    got = slots(page)
    t.ok(p.returncode == 0 and not p.stderr, "90 processes: all end well", p)
    pids = [s["pid"] for s in got]
    t.ok(0 < len(got) <= 63 and len(set(pids)) == len(pids), f"{len(got)} slots, one a process", got)
    t.ok(all(s["kernels"] % 50 == 0 and s["graphs"] * 50 == s["kernels"] for s in got), "none is half counted", got)


def page_troubles():
    page = new_page()
    os.unlink(page)
    t.equal(alone(page).returncode, 0, "a page that is gone: harmless")
    full = pathlib.Path(tmp, "full")
    full.write_bytes(b"")
    os.truncate(full, 20480)
    t.equal(alone(str(full)).returncode, 0, "a page that is all hole: harmless")
    p = alone("", UNDERWATT_PROGRESS="")
    t.ok(p.returncode == 0 and not p.stderr, "no page: harmless", p)


def set_uid():
    """A program with another's rights reads none of its caller's environment."""
    with tempfile.TemporaryDirectory(prefix="uw-setuid-") as home:
        for folder in (home, tmp):
            os.chmod(folder, 0o755)
        program = pathlib.Path(shutil.copy(parts, home))
        library = shutil.copy(LIBRARY, home)
        for secure in (0, 1):
            page = new_page()
            os.chmod(page, 0o666)
            if secure:
                os.chown(program, 65534, 65534)
                program.chmod(0o4755)
            p = subprocess.run([program, "inject", library], env={**os.environ, "UNDERWATT_PROGRESS": page},
                               capture_output=True, text=True, timeout=60)
            if secure and "secure 0" in p.stdout:
                t.skip("a set-uid program counts nothing", "set-uid has no effect in the temporary folder")
                continue
            t.ok(p.returncode == 0 and p.stdout == f"1 secure {secure}\n", "the driver is told that all is well", p)
            t.equal(len(slots(page)), 1 - secure, "… a set-uid program takes no slot" if secure else "… a slot is taken")


def train(steps, gpu):
    return [job, "200", SIM, "train", "--workload", "resnet50", "--gpus", str(gpu), "--steps", str(steps)]


def environment(node):
    """What CMD finds."""
    show = ["/bin/sh", "-c", 'echo "[$CUDA_INJECTION64_PATH]"']
    base = ["underwatt", "run", "--cap", "60%", "--gpus", "3", "--local"]
    p = node.run(*base, "--", *show)
    t.ok(p.returncode == 0 and p.stdout == "[]\n", "nobody asked: nothing is injected", p)
    p = node.run(*base, "--count-launches", "--", *show)
    t.ok(p.stdout == f"[{LIBRARY.parent.parent}/cli/../cuda/{LIBRARY.name}]\n", "asked for: the library", p)
    p = node.run(*base, "--count-launches", "--", *show, env={"CUDA_INJECTION64_PATH": "/opt/nsight.so"})
    t.ok(p.stdout == "[/opt/nsight.so]\n" and "is set already" in p.stderr, "somebody else's stays, and that is said", p)


def places(node):
    """The library is taken from where the command was installed, and from nobody's folder beside it."""
    home = pathlib.Path(node.tmp, "usr-local")
    for folder in ("bin", "src/cli", "cuda", "src/cuda"):
        (home / folder).mkdir(parents=True)
    for folder in ("cuda", "src/cuda"):
        shutil.copy(LIBRARY, home / folder)
    program = {f: shutil.copy(uwtest.program("underwatt"), home / f) for f in ("bin", "src/cli")}
    for folder in program:
        shutil.copy(uwtest.program("underwatt-actuator"), home / folder)

    def told(folder):
        return node.run(program[folder], "run", "--cap", "60%", "--gpus", "3", "--local", "--count-launches",
                        "--", "/bin/sh", "-c", 'echo "[$CUDA_INJECTION64_PATH]"')

    p = told("bin")
    t.ok(p.returncode == 125 and not p.stdout and "install the whole package" in p.stderr,
         "a library in ../cuda of an installed command is not ours", p)
    p = told("src/cli")
    t.equal(p.stdout, f"[{home}/src/cli/../cuda/{LIBRARY.name}]\n", "… of a build tree's it is")
    (home / "lib/underwatt").mkdir(parents=True)
    shutil.copy(LIBRARY, home / "lib/underwatt")
    p = told("bin")
    t.equal(p.stdout, f"[{home}/bin/../lib/underwatt/{LIBRARY.name}]\n", "… the installed one is")


def report_of(node, gpu, steps, *options, **env):
    path_ = pathlib.Path(node.tmp, f"report-{gpu}.json")
    p = node.run("underwatt", "run", "--cap", "60%", "--gpus", gpu, "--window", "5s", "--json", path_, *options,
                 "--", *train(steps, gpu), env={**WITH, **env}, timeout=240)
    return p, json.loads(path_.read_text()) if path_.exists() else {}


def steps(node, gpu, name, n, *options):
    for _ in range(3):    # a busy machine makes the interval wide: again
        p, r = report_of(node, gpu, n, "--count-launches", *options)
        if (r.get("saved") or {"half": 1})["half"] < 0.05:
            break
    t.ok(p.returncode == 0, f"{name}: the job ends well", p.stderr)
    t.ok(n - 100 < r.get("steps", 0) <= n, f"{name}: its steps are counted: {r.get('steps')} of {n}", p.stderr)
    t.ok(str(r.get("launches")).startswith("201 launches a step, confidence") and r["launches"] in p.stderr,
         f"{name}: the report says by what: {r.get('launches')}", p.stderr)
    s = r.get("saved") or {}
    t.ok(s and 0.05 < s["fraction"] < 0.4, f"{name}: what the cap saved is measured: {s.get('fraction')}"
         f" ± {s.get('half')}", f"{r} {p.stderr}")


def world():
    return uwtest.Node(board="v100", count=4, speed=SPEED)


def local():
    with world() as node:
        steps(node, 0, "local", 450, "--local")


def other():
    with world() as node:
        p, r = report_of(node, 1, 60, "--local")
        t.ok(p.returncode == 0 and not r.get("steps") and not r.get("saved"), "not asked for: no steps", r)
        t.ok("launches" in r and r["launches"] is None and "  count" not in p.stderr, "… nor a word of launches", p.stderr)
        p, r = report_of(node, 1, 60, "--local", "--count-launches", FAKE_CUPTI="taken")
        t.ok(p.returncode == 0 and not r.get("steps"), "a profiler has CUPTI: no steps, no harm", f"{r} {p.stderr}")
        t.ok("CUPTI answers 39" in str(r.get("launches")), "… and the report says why", r)


def with_daemon():
    with world() as node:
        node.daemon()
        steps(node, 2, "with the daemon", 650)


try:
    counting()
    many()
    page_troubles()
    if os.geteuid() == 0:
        set_uid()
    else:
        t.skip("a set-uid program counts nothing", "root is needed to make one")
    with world() as node:
        environment(node)
        places(node)
    uwtest.together(local, other, with_daemon)
finally:
    shutil.rmtree(tmp, ignore_errors=True)
t.done()
