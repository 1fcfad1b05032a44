#!/usr/bin/python3
"""Jobs within a job of Slurm's that has a goal: `underwatt run`, a Python program and one of libunderwatt are searched in its place, by
their steps.  Slurm's prolog and slurmstepd are stood in for; a real cluster is in tests/slurm/test-nested.py."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import libuser
import uwtest

t = uwtest.Tap()
SPEED = 20
MACHINE = "boards:\n- {model: v100, minor: 1, ideal: true}\n- {model: v100, minor: 0, ideal: true}\n"
ROOT = os.geteuid() == 0
UID = 65534 if ROOT else os.geteuid()
BECOME = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups"] if ROOT else []
# Work on a board, by a process that the program starts and that ends with it.
LOAD = ["setpriv", "--pdeathsig", "KILL", "--", "underwatt-sim", "train", "--workload", "resnet50", "--epochs", "1000", "--gpus", "1"]
STEPS = f"""import subprocess, time, underwatt
subprocess.Popen({LOAD})
while True:
    time.sleep(0.02)
    underwatt.step()
"""
POLICY = """policy: 1
defaults: {for: 0 s, release: 0 s}
classes:
- {name: production, match: {slurm: {partition: prod}}, critical: true}
rules:
- {name: the-rest, when: not job.critical, cap: 60 %, ramp: at once}
"""
PYTHON = {"PYTHONPATH": uwtest.TOP / "python", "UNDERWATT_LIBRARY": libuser.LIBRARY, "PYTHONDONTWRITEBYTECODE": 1}


class Step:
    """What /proc shows of a job's slurmstepd; it starts the step's programs."""

    def __init__(self, node, d, job):
        self.node, self.d, self.job = node, d, job
        self.shell = subprocess.Popen([f"slurmstepd: [{job}.0]"], executable=uwtest.stepd(node, "bash"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      text=True, env=node.env(ROOT))
        node.children.append(self.shell)

    def start(self, *command, **env):
        """In the background, as the job's user: its pid and where its output is."""
        out = pathlib.Path(self.node.tmp, f"out-{len(os.listdir(self.node.tmp))}")
        out.touch()
        env = {"SLURM_JOB_ID": self.job, "SLURM_STEP_ID": 0, "SLURM_STEP_NUM_TASKS": 1, "UNDERWATT_SOCKET": self.d.socket, **env}
        words = [*BECOME, "env", *(f"{k}={v}" for k, v in env.items()), *self.node.command(command)]
        self.shell.stdin.write(" ".join("'" + str(w).replace("'", "'\\''") + "'" for w in words) + f" >{out} 2>&1 </dev/null & echo $!\n")
        self.shell.stdin.flush()
        return int(self.shell.stdout.readline()), out

    def run(self, gpus, *options, **env):
        return self.start("underwatt", "run", "--gpus", gpus, *options, "--", "underwatt-sim", "train", "--workload", "resnet50", "--gpus", gpus,
                          "--epochs", 1000, **env)

    def stop(self, pid):
        """The program, as its user would."""
        self.shell.stdin.write(f"kill {pid}; wait {pid} 2>/dev/null; echo over\n")
        self.shell.stdin.flush()
        return self.shell.stdout.readline()


def jobs(d):
    return [j for j in d.ask("GET", "/v1/jobs")[1]["jobs"] if j["running"]]


def job(d, number):
    return next((j for j in jobs(d) if j["id"] == number), {"search": None})


def begun(d, start, holds=lambda j: j["within"] and j["goal_of"]):
    """What start() returns, and the job that it has begun, once that holds."""
    known = {j["id"] for j in jobs(d)}
    program = start()
    got = uwtest.wait_until(lambda: [j for j in jobs(d) if j["id"] not in known], lambda new: len(new) == 1 and holds(new[0]))
    uwtest.must(len(got) == 1, got)
    return program, got[0]


def status(d, number):
    return (job(d, number)["search"] or {}).get("status")


def states(d):
    """The files of searches."""
    return sorted(pathlib.Path(d.ledger).parent.glob("job-*.json"))


def put(d, number, minors, **more):
    code, got = d.ask("PUT", f"/v1/jobs/slurm:{number}", {"uid": UID, "gpu_minors": minors, **more})
    t.ok(code == 201, f"slurm:{number} is registered", got)
    return got["id"]


def said(node, command="jobs", *words):
    return " ".join(node.run("underwatt", command, *words).stdout.split())


def lent(node, d, step, outer):
    """`underwatt run` names no goal: it is searched with the outer job's, by its steps, on its board."""
    (first, out), inner = begun(d, lambda: step.run(0))
    t.equal((inner["within"], inner["goal_of"], inner["search"]["goal"]), (outer, outer, "edp"), "run in a job of Slurm's has its goal")
    got = uwtest.wait_until(lambda: job(d, inner["id"]), lambda j: j["search"]["windows"] > 0)
    t.ok(got["search"]["page"] and got["steps"] > 0 and got["search"]["windows"] > 0, "and is measured by its steps", got)
    t.ok(status(d, outer) not in ("passed", "behind"), "the outer job is searched on its other board", job(d, outer))
    text = said(node)
    t.ok(f"runs in job {outer}, and has its goal" in text, "`jobs` says so", text)
    (second, _), own = begun(d, lambda: step.run(1, "--goal", "energy"), lambda j: j["within"])
    t.equal((own["within"], own["goal_of"], own["search"]["goal"]), (outer, None, "energy"), "one that names a goal keeps it")
    got = uwtest.wait_until(lambda: status(d, outer), lambda s: s == "passed")
    text = f"searched as jobs {inner['id']}, {own['id']}, which run in it"
    t.ok(got == "passed" and text in said(node) and text in said(node, "explain", 1), "no board is left to the outer job", said(node))
    t.ok(uwtest.wait_for(lambda: job(d, own["id"])["search"]["windows"] > 0), "the other one is measured, too", job(d, own["id"]))
    d.booked()
    got = [d.ask("GET", f"/v1/report?by=account&job={n}")[1]["rows"] for n in (inner["id"], own["id"])]
    t.ok([[r["account"] for r in rows] for rows in got] == [["phys"], ["phys"]], "their energy is the outer job's account's", got)
    return first, out, inner["id"], second, own["id"]


def restarted(d, inner, own, outer):
    """kill -9: which runs in which, whose goal, what was measured."""
    before = job(d, inner)["search"]["windows"]
    t.ok(uwtest.wait_for(lambda: job(d, inner)["search"]["windows"] >= before + 2 and job(d, inner)["search"]["cap_mw"]), "more is measured", job(d, inner))
    d.booked()
    d.kill(actuator=False)
    stray = pathlib.Path(states(d)[0]).with_name("job-9999.json")
    stray.write_text("{}")
    d.start()
    t.ok(uwtest.wait_for(lambda: not stray.exists()), "the state of a search whose job is over is removed", states(d))
    got = uwtest.wait_until(lambda: job(d, inner), lambda j: j.get("goal_of") and j["search"]["page"])
    t.equal((got["within"], got["goal_of"], got["search"]["goal"]), (outer, outer, "edp"), "after a restart it has that goal")
    t.equal((job(d, own)["within"], job(d, own)["search"]["goal"]), (outer, "energy"), "and the other its own")
    got = uwtest.wait_until(lambda: (status(d, outer), job(d, inner)["search"]["windows"] > 0), lambda s: s == ("passed", True))
    t.equal(got, ("passed", True), "its search goes on, the outer job's does not begin")


def capped(node, d, step, outer, inner):
    """One with a cap of its own: it holds it, and the outer job's search leaves it the board."""
    (pid, _), own = begun(d, lambda: step.run(1, "--cap", "80%"), lambda j: j["within"])
    t.ok(uwtest.wait_for(lambda: node.board(1)["limit_mw"] == 240000), "a cap by name is held", node.board(1))
    t.equal((own["goal_of"], own["search"]["goal"]), (None, "cap 80%"), "in place of a goal")
    t.ok(uwtest.wait_for(lambda: status(d, outer) == "passed"), "no search of the outer job is on its board", job(d, outer))
    step.stop(pid)


def ends(node, d, step, outer, first, out, inner):
    """The inner jobs end: the outer job has its boards again.  The next run of the same command goes on from what is known."""
    t.ok(uwtest.wait_for(lambda: status(d, inner) == "holds"), "a cap is found", job(d, inner))
    step.stop(first)
    t.ok(uwtest.wait_for(lambda: len(jobs(d)) == 1 and status(d, outer) not in ("passed", None)), "the outer job has its boards again", jobs(d))
    text = " ".join(out.read_text().split())
    t.ok(f"goal edp, of job {outer}, in which it ran" in text, "the report names both", text)
    (pid, _), again = begun(d, lambda: step.run(0))
    got = uwtest.wait_until(lambda: d.ask("GET", f"/v1/jobs/{again['id']}")[1], lambda j: (j["search"].get("details") or {}).get("earlier_job"))
    t.equal(((got["search"].get("details") or {}).get("earlier_job"), got["goal_of"]), (inner, outer), "the next one knows what it has measured")
    step.stop(pid)


def outside(d, node, outer):
    """Of the same user on the same board, but no part of Slurm's job."""
    who = {"user": UID, "group": UID, "extra_groups": []} if ROOT else {}
    child, other = begun(d, lambda: node.popen("underwatt", "run", "--gpus", 0, "--", "sleep", "1000",
                                               env={"UNDERWATT_SOCKET": d.socket, "SLURM_JOB_ID": "7001"}, **who), lambda j: j["search"])
    t.ok(not uwtest.wait_for(lambda: job(d, other["id"])["within"], 1) and other["search"]["goal"] == "slowdown:1.05",
         "what does not descend from its slurmstepd is not in it", other)
    t.ok(job(d, outer)["search"]["status"] != "passed", "the outer job keeps its board", job(d, outer))
    child.terminate()
    child.wait()


def programs(node, d, step, outer, exe):
    """A program without `underwatt run`: two lines of Python, a call of libunderwatt."""
    for what, command, env in (("Python", [sys.executable, "-c", STEPS], PYTHON), ("libunderwatt", [exe, *LOAD], {})):
        (pid, out), inner = begun(d, lambda c=command, e=env: step.start(*c, **e), lambda j: j["within"])
        got = uwtest.wait_until(lambda n=inner["id"]: job(d, n), lambda j: j["search"] and j["search"]["page"] and j["steps"] > 0 or not j.get("id"))
        t.ok(got["search"] and got["gpus"] == [1] and got["goal_of"] == outer and got["search"]["goal"] == "edp" and got["steps"] > 0,
             f"{what}: its steps are told, under the job's goal", f"{got} {out.read_text()}")
        known = None
        if what == "Python":  # its state is written when a cap is held
            known = uwtest.wait_until(lambda n=inner["id"]: job(d, n), lambda j: j["search"]["status"] == "holds")["search"]
            file = pathlib.Path(d.ledger).with_name(f"job-{inner['id']}.json")
            written = uwtest.wait_for(lambda f=file, k=known: f.exists() and re.search(rf'"held_mw": ?{k["cap_mw"]}\b', f.read_text()))
            t.ok(written, f"{what}: the cap that it holds is written", file)
        d.kill(actuator=False)
        d.start()
        back = uwtest.wait_until(lambda n=inner["id"]: job(d, n), lambda j: j["search"] and j["search"]["page"] and j["steps"] > 0
                                 and j["search"]["status"] != "waits-boards")  # its windows are shown from then on
        t.ok(not known or back["search"]["windows"] >= known["windows"] > 0, f"{what}: its search goes on from what it has measured", f"{known} {back}")
        t.ok(back["search"] and back["search"]["page"] and back["steps"] > got["steps"], f"{what}: to the next daemon, too", back)
        step.stop(pid)
        uwtest.wait_for(lambda: len(jobs(d)) == 1)


def without(node, d):
    """A job without a goal: nothing is begun in it."""
    put(d, 7002, [1])
    uwtest.wait_for(lambda: len(jobs(d)) == 1)
    step = Step(node, d, 7002)
    pid, out = step.start(sys.executable, "-c", "import underwatt\nunderwatt.step()\nprint(underwatt.steps(), flush=True)\nimport time\ntime.sleep(60)", **PYTHON)
    t.ok(uwtest.wait_for(lambda: out.read_text() == "1\n"), "steps without a goal cost nothing", out.read_text())
    t.ok([j["name"] for j in jobs(d)] == ["slurm:7002"], "and begin no job", jobs(d))
    step.stop(pid)


def phased(node, d):
    """A job that tells no phase, within one: its boards' telemetry is its alone."""
    put(d, 7004, [1])
    step = Step(node, d, 7004)
    (pid, _), inner = begun(d, lambda: step.start("underwatt", "run", "--gpus", 0, "--goal", "time", "--", "underwatt-sim", "train", "--workload",
                                                  "resnet50", "--gpus", 0, "--epochs", 100, "--tells", "steps", "--steps", 150),
                            lambda j: j["within"])
    got = uwtest.wait_until(lambda: job(d, inner["id"]), lambda j: j.get("phase_by"))
    t.equal(got.get("phase_by"), "telemetry", "its phase is seen where it tells none")
    step.stop(pid)
    d.ask("DELETE", "/v1/jobs/slurm:7004")


def classed(node, d):
    """The outer job's labels choose the inner one's class, whatever its user says of them."""
    put(d, 7003, [0], labels={"slurm.partition": "prod"})
    step = Step(node, d, 7003)
    own = [word for i in range(15) for word in ("--label", f"own.{i}=x")]  # with the next one as many as a job may have
    _, inner = begun(d, lambda: step.run(0, "--goal", "time", "--label", "slurm.partition=dev", *own), lambda j: j["within"])
    who = {"user": UID, "group": UID, "extra_groups": []} if ROOT else {}
    node.popen("underwatt", "run", "--gpus", 1, "--goal", "time", "--label", "slurm.partition=prod", "--", "sleep", "1000",
               env={"UNDERWATT_SOCKET": d.socket}, **who)
    t.ok(uwtest.wait_for(lambda: node.board(1)["limit_mw"] == 180000), "a rule caps a job that is not critical, whatever it calls itself", node.board(1))
    t.ok(uwtest.wait_for(lambda: node.board(0)["limit_mw"] == 300000), "one in a critical job is critical, too", f"{node.board(0)} {inner}")
    d.kill(actuator=False)
    d.start()
    t.ok(uwtest.wait_for(lambda: node.board(1)["limit_mw"] == 180000 and node.board(0)["limit_mw"] == 300000), "after a restart, too",
         [node.board(i)["limit_mw"] for i in (0, 1)])
    code, got = d.ask("PATCH", "/v1/jobs/slurm:7003", {"labels": {"slurm.partition": "dev"}})
    t.ok(uwtest.wait_for(lambda: node.board(0)["limit_mw"] == 180000), "as long as the outer job's partition says so", (code, got, node.board(0)))


with tempfile.TemporaryDirectory(prefix="uw-") as place:
    rules = pathlib.Path(place, "policy.yaml")
    rules.write_text(POLICY)
    with uwtest.Node(machine=MACHINE, speed=SPEED) as node:
        uwtest.timed("classed", classed, node, node.daemon(f"policy: {{file: {rules}}}\n"))
with uwtest.Node(machine=MACHINE, speed=SPEED) as node:
    d = node.daemon()
    outer = put(d, 7001, [0, 1], goal="edp", labels={"slurm.account": "phys"})
    step = Step(node, d, 7001)
    exe = libuser.build(t, node.tmp, "lib-steps")
    uwtest.timed("outside", outside, d, node, outer)
    first, out, inner, second, own = uwtest.timed("lent", lent, node, d, step, outer)
    uwtest.timed("restarted", restarted, d, inner, own, outer)
    step.stop(second)
    uwtest.timed("capped", capped, node, d, step, outer, inner)
    uwtest.timed("ends", ends, node, d, step, outer, first, out, inner)
    uwtest.timed("programs", programs, node, d, step, outer, exe)
    d.ask("PUT", f"/v1/jobs/{outer}/goal", {"goal": None})
    d.ask("DELETE", "/v1/jobs/slurm:7001")
    left = uwtest.wait_until(lambda: states(d), lambda files: not files)
    t.equal(left, [], "no job that has ended leaves its search's state")
    uwtest.timed("phased", phased, node, d)
    uwtest.timed("without", without, node, d)
t.done()
