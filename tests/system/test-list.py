#!/usr/bin/python3
"""underwatt list and doctor, and what is the same for every command.

usage: test-list.py ACTUATOR-HOLD
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import uwtest

t = uwtest.Tap()
HOLD = sys.argv[1]
UW = uwtest.program("underwatt")


def plain(*args, env=None, **kw):
    """underwatt outside of any simulated world."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("UNDERWATT", "SUDO"))}
    return subprocess.run([UW, *args], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, env={**clean, **(env or {})}, **kw)


# ---- the command itself ----

p = plain()
t.ok(p.returncode == 2 and "usage:" in p.stderr and not p.stdout, "no command: usage, 2")
p = plain("--help")
t.ok(p.returncode == 0 and "  list " in p.stdout and "  doctor " in p.stdout and not p.stderr,
     "--help: the commands, 0")
t.ok(plain("--version").stdout.startswith("underwatt "), "--version")
p = plain("frobnicate")
t.ok(p.returncode == 2 and "'frobnicate'" in p.stderr and "list, " in p.stderr
     and len(p.stderr.splitlines()) == 1, "an unknown command: one line, 2", p.stderr)
for args in (["list", "--help"], ["help", "list"], ["doctor", "-h"]):
    p = plain(*args)
    t.ok(p.returncode == 0 and "usage: underwatt" in p.stdout and "--json" in p.stdout,
         " ".join(args))
COMMANDS = ("list", "doctor", "measure", "run", "cap", "sweep", "explain", "jobs", "release", "report", "top")
for words in (["underwatt"], ["underwattd"], ["underwatt-actuator"], ["underwatt-start"], ["underwatt-sim"],
              *(["underwatt", c] for c in COMMANDS)):
    p = subprocess.run([uwtest.program(words[0]), *words[1:], "--help"], capture_output=True, text=True)
    wide = [line for line in p.stdout.splitlines() if len(line) > 80]
    t.ok(p.returncode == 0 and p.stdout and not wide, f"{' '.join(words)} --help fits 80 columns", wide or p)
for args, word in ((["list", "--frob"], "--frob"), (["list", "x"], "'x'"),
                   (["list", "--json"], "--json"), (["list", "--boards", "/nowhere/x"], "/nowhere/x"),
                   (["list", "--boards", "x.so"], "x.so")):
    p = plain(*args)
    t.ok(p.returncode == 2 and word in p.stderr and len(p.stderr.splitlines()) == 1
         and not p.stdout, f"{' '.join(args)}: one line, 2", p.stderr)
p = plain("list", env={"UNDERWATT_CLOCK": "fast"})
t.ok(p.returncode == 2 and "UNDERWATT_CLOCK" in p.stderr, "a broken clock: 2", p.stderr)

# ---- nothing there ----

if os.path.exists("/proc/driver/nvidia"):
    t.skip("no library", "this machine has a driver")
else:
    for command in ("list", "doctor"):
        p = plain(command)
        said = p.stdout + p.stderr
        t.ok(p.returncode == 1 and "->" in said and "bad " in said,
             f"{command} without boards: 1, what is missing, what to type", said)
    p = plain("doctor", "--json", "-")
    found = {f["what"]: f for f in json.loads(p.stdout)["findings"]}
    t.ok(all(f["remedy"] for f in found.values() if f["state"] == "bad"), "as JSON, too")

# ---- a simulated node ----

with uwtest.Node(count=4, may_set="anyone") as node:
    p = node.run("underwatt", "list")
    t.ok(p.returncode == 0 and not p.stderr, "list: 0", p.stderr)
    t.ok("simulated" in p.stdout.splitlines()[0], "… says that all is simulated", p.stdout)
    t.equal(p.stdout.splitlines()[1], f"simulated node {node.state}, clock at 1 x real time", "… and which node it is")
    t.equal(p.stdout.count("Tesla V100"), 4, "… four boards")
    t.ok(all(len(line) <= 80 for line in p.stdout.splitlines()), "… in 80 columns", p.stdout)

    def boards():
        q = node.run("underwatt", "list", "--json", "-")
        return json.loads(q.stdout)["boards"]

    d = json.loads(node.run("underwatt", "list", "--json", "-").stdout)
    b = d["boards"][1]
    t.ok(d["simulated"] is True and b["simulated"] is True and b["answers"] is True, "--json -")
    t.ok(20 < b["power_w"] < 120 and b["energy_j"] >= 0, "power and energy", b)
    t.equal([b["limit"][k] for k in ("enforced_mw", "requested_mw", "default_mw", "min_mw", "max_mw")],
            [300000, 300000, 300000, 150000, 300000], "limits")
    t.ok(b["average_w"] is None and b["can"]["average"] is False, "unknown is null, not 0")
    path = os.path.join(node.tmp, "list.json")
    p = node.run("underwatt", "list", "--json", path)
    t.ok(p.returncode == 0 and "Tesla" in p.stdout
         and len(json.loads(pathlib.Path(path).read_text())["boards"]) == 4,
         "--json FILE: file and table")
    p = node.run("underwatt", "list", "--json", "/nowhere/x.json")
    t.ok(p.returncode == 2 and "--json: cannot write /nowhere/x.json" in p.stderr, "… that cannot be written: 2", p.stderr)

    p = node.run("underwatt", "list", "--gpus", "2,0", "--json", "-")
    t.equal([x["index"] for x in json.loads(p.stdout)["boards"]], [2, 0], "--gpus 2,0")
    p = node.run("underwatt", "list", "--gpus", b["uuid"][:10], "--json", "-")
    t.equal([x["index"] for x in json.loads(p.stdout)["boards"]], [1], "--gpus, a UUID's beginning")
    p = node.run("underwatt", "list", "--gpus", "4")
    t.ok(p.returncode == 2 and "'4'" in p.stderr, "--gpus 4: 2", p.stderr)

    job = node.train("--workload", "resnet50", "--gpus", "1,3", "--epochs", "50")
    busy = uwtest.wait_for(lambda: [x for x in boards() if x["processes"]])
    t.equal([x["index"] for x in busy], [1, 3], "a job's boards show it")
    owner = busy[0]["processes"][0]
    t.ok(owner["pid"] > 0 and owner["user"] and "resnet50" in owner["command"], "… its owner", owner)
    t.ok("resnet50" in node.run("underwatt", "list").stdout, "… in the table, too")
    job.terminate()
    job.wait(timeout=10)

    node.fault(0, "limit", "200W")
    x = uwtest.wait_for(lambda: (lambda l: l if l["enforced_mw"] == 200000 else None)(
        boards()[0]["limit"]))
    t.equal(x["why"], "set; default 300 W", "a limit that somebody set")

    hold = node.popen(HOLD, uwtest.program("underwatt-actuator"),
                      os.path.join(node.state, "lib", "libnvidia-ml.so.1"), "simulated",
                      stdin=subprocess.PIPE)
    t.ok(hold.stdout.readline().startswith("ready 0"), "an actuator")
    for line in (f"hold {b['uuid']}", f"set {b['uuid']} 250000"):
        print(line, file=hold.stdin, flush=True)
        for said in iter(hold.stdout.readline, ""):
            if said.split()[0] == line.split()[0]:  # else an event
                break
    x = boards()[1]["limit"]
    comm = pathlib.Path(f"/proc/{hold.pid}/comm").read_text().strip()
    t.ok(x["why"] == f"held by {comm} (pid {hold.pid}, {uwtest.USER}), original 300 W" and x["original_mw"] == 300000
         and x["enforced_mw"] == 250000 and x["holder_pid"] == hold.pid,
         "a cap of Underwatt says whose it is", x)
    print("quit", file=hold.stdin, flush=True)
    hold.wait(timeout=10)
    t.ok(uwtest.wait_for(lambda: boards()[1]["limit"]["why"] == "default"), "… and goes with it")

    p = node.run("underwatt", "doctor")
    t.ok(p.returncode == 0 and "simulated" in p.stdout and "bad " not in p.stdout, "doctor: 0", p.stdout)
    found = json.loads(node.run("underwatt", "doctor", "--json", "-").stdout)["findings"]
    counters = [f for f in found if f["what"] == "counter"]
    t.ok(len(counters) == 4 and all("against power" in f["text"] for f in counters),
         "… looks at each counter", counters)

    # ---- one board hangs, another is lost ----
    node.fault(2, "hang")
    node.fault(3, "lost")
    begin = time.monotonic()
    p = node.run("underwatt", "list", "--json", "-")
    took = time.monotonic() - begin
    x = json.loads(p.stdout)["boards"]
    t.ok(p.returncode == 3 and "2 of 4" in p.stderr, "two boards in trouble: 3", p.stderr)
    t.equal([y["answers"] for y in x], [True, True, False, False], "… the others are there")
    t.ok("no answer" in x[2]["error"] and "lost" in x[3]["error"].lower(), "… each with its reason", x[2:])
    t.ok(all(x[i]["power_w"] > 0 and x[i]["name"] for i in (0, 1)), "… the others with figures")
    t.ok(took < 20, f"… after {took:.1f} s")
    p = node.run("underwatt", "list", "--gpus", "0,1")
    t.equal(p.returncode, 0, "asked for the good ones alone: 0")
    p = node.run("underwatt", "doctor")
    t.ok(p.returncode == 3 and p.stdout.count("bad ") == 2 and "underwatt-sim fault 2 release" in p.stdout,
         "doctor: 3, two bad, what to type", p.stdout)
    node.fault(2, "release")
    node.fault(3, "found")

    # ---- who runs it ----
    if os.geteuid() != 0:
        t.skip("sudo", "not root")
        t.skip("a library for root", "not root")
    else:
        p = node.run("underwatt", "list", "--json", "-", env={"SUDO_UID": "65534", "SUDO_GID": "65534"})
        t.ok(p.returncode == 0 and "uid 65534" in p.stderr and "reset the environment" in p.stderr,
             "through sudo: becomes the caller and says so", p.stderr)
        p = node.run("underwatt", "list", env={"SUDO_UID": "x", "SUDO_GID": "65534"})
        t.ok(p.returncode == 1 and not p.stdout, "… or does nothing at all", p.stderr)
        p = node.run("underwatt", "list", "--json", os.path.join(node.tmp, "no.json"),
                     env={"SUDO_UID": "65534", "SUDO_GID": "65534"})
        t.ok(p.returncode == 2 and not os.path.exists(os.path.join(node.tmp, "no.json")),
             "… writes nothing where the caller may not", p.stderr)
        open_dir = tempfile.mkdtemp(prefix="uw-")
        shutil.copy(os.path.join(node.state, "lib", "libnvidia-ml.so.1"), open_dir)
        os.chmod(open_dir, 0o777)
        lib = os.path.join(open_dir, "libnvidia-ml.so.1")
        for args, env in ((["--boards", lib], {}), ([], {"UNDERWATT_NVML": lib})):
            p = plain("list", *args, env=env)
            t.ok(p.returncode == 2 and "root does not load it" in p.stderr,
                 "root loads nothing that others may exchange", p.stderr)
        shutil.rmtree(open_dir)

    library = os.path.join(node.state, "lib", "libnvidia-ml.so.1")
    kept = os.path.join(node.tmp, "lib")
    os.mkdir(kept)
    shutil.copy(library, kept)
    p = plain("doctor", env={"UNDERWATT_NVML": os.path.join(kept, "libnvidia-ml.so.1")})
    t.ok(p.returncode == 1 and "underwatt-sim start" in p.stdout, "a library without its world: 1", p.stdout)

with uwtest.Node(count=1, speed=10) as node:
    p = node.run("underwatt", "doctor")
    t.ok(p.returncode == 0 and "speed 10" in p.stdout, "doctor in a world that runs faster", p.stdout)
    p = plain("doctor", env={"UNDERWATT_NVML": os.path.join(node.state, "lib", "libnvidia-ml.so.1")})
    t.ok(p.returncode == 3 and "underwatt-sim exec" in p.stdout, "… and beside its clock: 3", p.stdout)

# Every command can be tried on a recorded trace; none pretends to cap it.
with tempfile.TemporaryDirectory() as tmp:
    trace = pathlib.Path(tmp) / "trace.csv"
    trace.write_text("time_s,uuid,name,power_w,energy_j,enforced_w\n" + "".join(
        f"{i / 10:.1f},GPU-{u},Board,{w},{w * i / 10:.1f},300\n" for i in range(600) for u, w in (("a", 200), ("b", 100))))
    def on_trace(*args):
        return plain(*args, env={"UNDERWATT_BOARDS": f"replay={trace}"})

    p = on_trace("list")
    t.ok(p.returncode == 0 and "recorded boards" in p.stdout and "200.0 W" in p.stdout, "list of a trace", p.stdout + p.stderr)
    p = on_trace("measure", "--gpus", "b", "--", "sleep", "1")
    t.ok(p.returncode == 0 and "(recorded)" in p.stderr, "measure on a trace", p.stderr)
    for args in (("cap", "set", "200", "--gpus", "0", "--for", "1s"), ("run", "--gpus", "0", "--cap", "200W", "--", "true"),
                 ("sweep", "--gpus", "0", "--", "true")):
        p = on_trace(*args)
        t.ok(p.returncode in (2, 125) and "limit" in p.stderr, f"{args[0]} refuses a trace", p.stderr)
t.done()
