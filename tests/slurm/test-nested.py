"""How a job with --gpu-power-goal reports its steps, as docs/slurm.md has it: `srun underwatt run`, two lines of Python, libunderwatt; steps
one after another and at once, and a daemon that is killed meanwhile."""
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import cluster  # noqa: E402
import libuser  # noqa: E402
import uwtest  # noqa: E402

t = uwtest.Tap()
cluster.required()
BOARDS = 4
SIM, RUN = uwtest.program("underwatt-sim"), uwtest.program("underwatt")
GOAL = "--gpu-power-goal=edp"
# In the order of NVML, so that CUDA_VISIBLE_DEVICES is what underwatt run takes it for.
GRES = "".join(f"Name=gpu File={{dev}}/nvidia{BOARDS - 1 - i}\n" for i in range(BOARDS))
PAGE = (uwtest.TOP / "docs" / "slurm.md").read_text(encoding="utf-8").partition("## How a job reports its steps")[2]
SCRIPT, LINES = (re.search(f"```{kind}\n(.*?)```", PAGE, re.S).group(1) for kind in ("", "python"))
TRAIN = f"{SIM} train --workload resnet50 --epochs 1000"
# Work on the step's board, by a process that the program starts and that ends with it.
LOAD = f"setpriv --pdeathsig KILL -- {TRAIN} --gpus $CUDA_VISIBLE_DEVICES"
# The page's lines, in a program that has batches and train().
PROGRAM = f"""import itertools, os, subprocess, time
if os.environ["SLURM_PROCID"] == "0":
    subprocess.Popen("env -u UNDERWATT_PROGRESS {LOAD}", shell=True)
batches = itertools.count()
def train(batch):
    time.sleep(0.02)
{LINES}"""

# An Optimizer names the boards of CUDA_VISIBLE_DEVICES.
OPTIMIZER = f"""import itertools, subprocess, time, underwatt
subprocess.Popen("env -u UNDERWATT_PROGRESS setpriv --pdeathsig KILL -- {TRAIN} --gpus 0,1", shell=True)
with underwatt.Optimizer("energy") as optimizer:
    for step in itertools.count():
        time.sleep(0.02)
        optimizer.step()
"""


def place(c):
    """What a site's module would set, and underwatt in the node's world."""
    tools = pathlib.Path(c.path("tools"))
    tools.mkdir()
    world = f"{SIM} --state {c.nodes['n1'].state} exec --"
    (tools / "underwatt").write_text(f'#!/bin/sh\nexec {world} {RUN} "$@"\n')
    (tools / "underwatt").chmod(0o755)
    pathlib.Path(c.path("work/train.py")).write_text(PROGRAM)
    pathlib.Path(c.path("work/optimizer.py")).write_text(OPTIMIZER)
    return f"export UNDERWATT_SOCKET={c.socket('n1')} UNDERWATT_LIBRARY={libuser.LIBRARY} PYTHONPATH={uwtest.TOP / 'python'} " \
           f"PYTHONDONTWRITEBYTECODE=1 PATH={tools}:$PATH:{uwtest.programs_path()} world='{world}'"


def script(c, *lines):
    return "\n".join(["#!/bin/bash", c.module, *lines, ""])


def step(words, command):
    return f"srun --exact {words} bash -c 'exec {command}'"


def rows(c):
    return [j for j in c.daemons["n1"].ask("GET", "/v1/jobs")[1].get("jobs", []) if j["running"]]


def inner(c, outer, n, holds=lambda j: True):
    """The jobs in that one, once there are n that hold."""
    return uwtest.wait_until(lambda: [j for j in rows(c) if j["within"] == outer], lambda got: len(got) == n and all(holds(j) for j in got))


def measured(job):
    return job["goal_of"] and job["search"] and job["search"]["page"] and job["search"]["windows"] > 0


def facts(job):
    return (job["goal_of"], job["search"] and job["search"]["goal"], job["search"] and job["search"]["page"])


def begin(c, text, *words):
    job = c.heard("n1", text, GOAL, *words)
    return job, uwtest.wait_until(lambda: c.jobs("n1").get(job), bool)


def over(c, job):
    c.run("scancel", job)
    c.ended(job)
    t.ok(uwtest.wait_for(lambda: not rows(c)), "it is cancelled: no job is left", rows(c))


def one(c):
    """`srun underwatt run`, and the daemon is killed; then the script's next step, with a goal of its own."""
    train = f"-- {TRAIN} --gpus $CUDA_VISIBLE_DEVICES"
    job, outer = begin(c, script(c, step("-n1", f"underwatt run {train}"), step("-n1", f"underwatt run --goal energy {train}")), "--gpus=1")
    got = inner(c, outer["id"], 1, measured)
    t.equal([facts(j) for j in got], [(outer["id"], "edp", True)], "srun underwatt run: searched by its steps, with the job's goal")
    first = got[0]
    text = " ".join(c.nodes["n1"].run("underwatt", "jobs").stdout.split())
    t.ok(f"searched as job {first['id']}, which runs in it" in text and f"runs in job {outer['id']}, and has its goal" in text, "`jobs` says so", text)
    print("\n".join(f"# {line}" for line in c.nodes["n1"].run("underwatt", "jobs").stdout.splitlines()), flush=True)
    d = c.daemons["n1"]
    d.kill(actuator=False)
    d.start()
    got = inner(c, outer["id"], 1, lambda j: measured(j) and j["search"]["windows"] > first["search"]["windows"])
    t.equal([(j["id"], *facts(j)) for j in got], [(first["id"], outer["id"], "edp", True)], "a daemon that is killed: it goes on")
    c.run("scancel", f"{job}.0")
    got = uwtest.wait_until(lambda: [j for j in rows(c) if j["within"] and j["id"] != first["id"]], lambda r: r and r[0]["search"]["windows"] > 0)
    t.equal([facts(j) for j in got], [(None, "energy", True)], "the next step names another goal")
    said = uwtest.wait_until(lambda: {j["id"]: j for j in d.ask("GET", "/v1/jobs")[1]["jobs"]}, lambda j: j[first["id"]]["settled"])
    ended, whole = said[first["id"]], said[outer["id"]]
    t.ok(ended["energy_j"] / ended["booked_s"] > 150 and whole["energy_j"] < 0.2 * ended["energy_j"], "the energy of a step is its own job's",
         (ended["energy_j"], ended["booked_s"], whole["energy_j"]))
    over(c, job)


def page(c):
    """The page's script and program as they stand there."""
    head, rest = SCRIPT.split("\nsrun", 1)
    job = c.heard("n1", f"{head}\n{c.module}\nsrun{rest}")
    outer = uwtest.wait_until(lambda: c.jobs("n1").get(job), bool)
    got = inner(c, outer["id"], 1, measured)
    t.equal([facts(j) for j in got], [(outer["id"], "edp", True)], "the page's script is searched by its steps")
    over(c, job)


def several(c):
    """Four steps at once, a board each."""
    steps = [step("-n1 --gpus=1", f"underwatt run -- {TRAIN} --gpus $CUDA_VISIBLE_DEVICES") + " &" for _ in range(BOARDS)]
    job, outer = begin(c, script(c, *steps, "wait"), f"--gpus={BOARDS}", f"--ntasks={BOARDS}")
    got = inner(c, outer["id"], BOARDS, measured)
    t.equal(sorted((j["gpus"], *facts(j)) for j in got), [([i], outer["id"], "edp", True) for i in range(BOARDS)], "four steps at once: each is searched on its board")
    seen = c.jobs("n1")[job]["search"]
    t.ok(seen["status"] == "passed" and "and 1 more, which run in it" in seen["state"], "the job itself on none", seen)
    over(c, job)


def programs(c, exe):
    """Without `underwatt run`: two lines of Python in two tasks, and a program of libunderwatt, on a board each."""
    lines = [step("-n2 --gpus=1", "$world python3 train.py") + " &", step("-n1 --gpus=1", f"$world {exe} {LOAD}") + " &", "wait"]
    job, outer = begin(c, script(c, "export world", *lines), "--gpus=2", "--ntasks=3")
    # A C program's clock is this machine's: at the node's speed its steps do not make windows.
    got = inner(c, outer["id"], 2, lambda j: measured(j) if j["members"] else j["goal_of"] and j["steps"] > 0)
    t.equal([facts(j) for j in got], [(outer["id"], "edp", True)] * 2, "Python and libunderwatt: searched by their steps, with the job's goal")
    t.equal(sorted(len(j["members"]) for j in got), [0, 2], "the tasks of a step are one job")
    t.equal(sorted(j["gpus"] for j in got), sorted([g] for g in outer["gpus"]), "each has the board on which it works")
    over(c, job)


def order(c):
    """Where Slurm counts the boards the other way round than NVML the indices of CUDA_VISIBLE_DEVICES are another job's boards."""
    c.write_gres("Name=gpu File={dev}/nvidia[0-3]\n")
    c.restart_slurmd("n1")
    other = c.heard("n1", "exec sleep 600", "--gpus=2")
    lines = [step("-n1", f"underwatt run --name seen -- {TRAIN} --gpus 0,1"), step("-n1", "underwatt run --gpus 0 -- sleep 600"),
             step("-n1", "$world python3 optimizer.py")]
    job, outer = begin(c, script(c, "export world; echo $CUDA_VISIBLE_DEVICES > indices", *lines), "--gpus=2")
    indices = pathlib.Path(c.path("work/indices"))
    uwtest.wait_for(lambda: indices.exists() and indices.read_text())
    t.equal((indices.read_text(), outer["gpus"], c.jobs("n1")[other]["gpus"]), ("2,3\n", [0, 1], [2, 3]),
            "the indices are the other job's boards, as NVML counts")
    got = inner(c, outer["id"], 1, measured)
    t.equal([(j["gpus"], *facts(j)) for j in got], [([0, 1], outer["id"], "edp", True)], "srun underwatt run: has the job's boards and goal")
    c.run("scancel", f"{job}.0")
    got = inner(c, outer["id"], 1, lambda j: j["name"] == "sleep")
    t.equal([j["gpus"] for j in got], [[0]], "with --gpus: the board that it names")
    c.run("scancel", f"{job}.1")
    got = inner(c, outer["id"], 1, lambda j: j["name"] == "optimizer.py" and j["search"] and j["search"]["windows"] > 0)
    t.equal([(j["gpus"], j["search"]["goal"]) for j in got], [([0, 1], "energy")], "an Optimizer, too, with its own goal")
    c.run("scancel", other)
    over(c, job)


with cluster.Cluster(nodes=1, boards=BOARDS, plugin="", conf="PrologFlags=Contain\n", gres=GRES, speed=20) as c:
    c.module = place(c)
    pathlib.Path(c.path("programs")).mkdir()
    exe = libuser.build(t, c.path("programs"), "lib-steps")
    os.chmod(c.path("programs"), 0o755)
    uwtest.timed("one", one, c)
    uwtest.timed("page", page, c)
    uwtest.timed("several", several, c)
    uwtest.timed("programs", programs, c, exe)
    uwtest.timed("order", order, c)
    t.equal(c.rested(), ["idle"], "the node is not drained")
    t.equal(c.limits("n1"), [300] * BOARDS, "no cap is left")
t.done()
