"""A cap as an option of a job, on real nodes' daemons: in force on the job's boards and no others while it runs, and gone with it."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import cluster  # noqa: E402
import uwtest  # noqa: E402

t = uwtest.Tap()
cluster.required()
# Slurm's index 0 is the device with minor number 4: a node's own lines come after the others.
GRES = ("NodeName=n1 Name=gpu File={dev}/nvidia[5-7]\nNodeName=n1 Name=gpu File={dev}/nvidia[0-3]\nName=gpu File={dev}/nvidia4\n"
        "NodeName=n2 Name=gpu File={dev}/nvidia7,{dev}/nvidia[0-3]\nNodeName=n2 Name=gpu File={dev}/nvidia[5-6]\n")
ORDER = {"n1": [4, 5, 6, 7, 0, 1, 2, 3], "n2": [4, 7, 0, 1, 2, 3, 5, 6]}
SLEEP = "exec sleep 600"
ON_N1, ON_N2 = "--nodelist=n1", "--nodelist=n2"


def capped(c, node, limits, name):
    got, want = c.have(node, limits)
    return t.equal(got, want, name)


def free(c, name, *nodes):
    """No cap is left, and no job."""
    for node in nodes or c.names:
        capped(c, node, {}, f"{name}: the limits of {node} are back")
        left = uwtest.wait_until(lambda n=node: c.jobs(n), lambda jobs: not jobs)
        t.equal(sorted(left), [], f"{name}: {node} has no job")


def cancelled(c, *jobs):
    c.run("scancel", *jobs)
    c.ended(*jobs)


def order(c, orders=ORDER):
    """The devices as slurmd itself counts them."""
    for name, want in orders.items():
        said = c.run("slurmd", "-G", "-N", name).stderr
        files = " ".join(re.findall(r"Gres Name=gpu .*?File=(\S+)", said))
        got = []
        for first, last, one in re.findall(r"(\d+)-(\d+)|(\d+)", re.sub(r"/[^,\s]*?nvidia", "", files)):
            got += [int(one)] if one else range(int(first), int(last) + 1)
        t.equal(got, want, f"slurmd's order on {name}")


def plain(c):
    """Caps of watts, a percentage and a preset, of two users, beside each other."""
    one = c.sbatch(SLEEP, ON_N1, "--gpus=2", "--gpu-power-cap=200")
    c.running(one)
    capped(c, "n1", {4: 200, 5: 200}, "a cap in watts, on the job's boards")
    two = c.sbatch(SLEEP, ON_N1, "--gpus=1", "--gpu-power-cap=50%", user=cluster.OTHER)
    c.running(two)
    capped(c, "n1", {4: 200, 5: 200, 6: 150}, "a percentage, for another user's")
    three = c.sbatch(SLEEP, ON_N1, "--gpus=2", "--gpu-power-cap=aggressive")
    c.running(three)
    capped(c, "n1", {4: 200, 5: 200, 6: 150, 7: 210, 0: 210}, "a preset")
    jobs = c.jobs("n1")
    t.equal({n: jobs[n]["user"] for n in sorted(jobs)}, {one: cluster.USER, two: cluster.OTHER, three: cluster.USER},
            "the daemon knows whose jobs they are")
    t.equal(jobs[one]["labels"].get("slurm.partition"), "main", "… and of which partition")
    p = c.nodes["n1"].run("underwatt", "jobs")
    t.ok(f"slurm:{one}" in p.stdout, "underwatt jobs shows them", p.stdout)
    cancelled(c, two)
    capped(c, "n1", {4: 200, 5: 200, 7: 210, 0: 210}, "one ends, the others' caps stay")
    cancelled(c, one, three)
    free(c, "plain jobs")


def types(c):
    """GPUs of two types, which gres.conf has in another order than slurm.conf: a job's boards are those of its type."""
    order(c, {"n1": [2, 3, 0]})
    job = c.sbatch(SLEEP, ON_N1, "--gpus=a:1", "--gpu-power-cap=200")
    c.running(job)
    capped(c, "n1", {0: 200}, "a board of the type that gres.conf has first")
    other = c.sbatch(SLEEP, ON_N1, "--gpus=b:2", "--gpu-power-cap=180")
    c.running(other)
    capped(c, "n1", {0: 200, 2: 180, 3: 180}, "boards of the other type")
    said = doctor(c)
    t.ok("has 4 GPUs of this node, Gres in" in said and "has 3: jobs get no others" in said, "doctor compares the counts", said)
    cancelled(c, job, other)
    free(c, "types")


def doctor(c):
    p = c.nodes["n1"].run("underwatt", "doctor", env={"SLURM_CONF": c.path("etc", "slurm.conf"), "SLURMD_NODENAME": "n1"})
    return " ".join(p.stdout.split())


def changed(c):
    """gres.conf has another order while slurmd counts by the old one: no board is capped, least of all another one, until slurmd has read it."""
    c.write_gres("Name=gpu Type=a File={dev}/nvidia[2-3]\nName=gpu Type=b File={dev}/nvidia[0-1]\n")
    for what, command in (("gres.conf is changed", ["true"]), ("… and slurmd is told to read it", ["scontrol", "reconfigure"])):
        c.run(*command)
        job = c.heard("n1", SLEEP, "--gpus=a:1", "--gpu-power-cap=200")
        t.ok(c.running(job), f"{what}: the job runs", c.job(job))
        seen = uwtest.wait_until(lambda n=job: c.jobs("n1").get(n), bool) or {}
        t.equal((seen.get("gpus"), c.limits("n1")), ([], [300] * 4), f"{what}: it is registered without boards, and none is capped")
        p = c.nodes["n1"].run("underwatt", "jobs")
        why = "gres.conf was changed after slurmd started"
        t.ok(why in " ".join(p.stdout.split()), f"{what}: underwatt jobs says why", p.stdout)
        said = doctor(c)
        t.ok(f"{why}: jobs are registered without their boards" in said, f"{what}: … and doctor", said)
        cancelled(c, job)
        free(c, what)
    c.restart_slurmd("n1")
    order(c, {"n1": [0, 1, 2]})
    job = c.sbatch(SLEEP, ON_N1, "--gpus=a:1", "--gpu-power-cap=200")
    c.running(job)
    capped(c, "n1", {2: 200}, "slurmd is restarted: the board that it gives the job")
    cancelled(c, job)
    free(c, "changed files")


def nodes(c):
    """A job on both nodes, whose devices have another order, and an array."""
    job = c.sbatch("srun sleep 600", "-N2", "--gpus-per-node=3", "--gpu-power-cap=180", "--ntasks-per-node=1")
    c.running(job)
    capped(c, "n1", {4: 180, 5: 180, 6: 180}, "a job on two nodes: the first")
    capped(c, "n2", {4: 180, 7: 180, 0: 180}, "a job on two nodes: the second")
    t.equal([c.jobs(n)[job]["labels"].get("slurm.nodes") for n in ("n1", "n2")], ["2", "2"], "each daemon knows of how many nodes it is")
    cancelled(c, job)
    free(c, "two nodes")
    job = c.sbatch("#!/bin/sh\n#SBATCH --gpu-power-goal=edp\nsrun sleep 600", "-N2", "--gpus-per-node=1", "--gpu-power-cap=190", "--ntasks-per-node=1")
    capped(c, "n1", {4: 190}, "a cap on the command line, a goal in the script: the first node")
    capped(c, "n2", {4: 190}, "… the second, whose prolog runs with the first step")
    cancelled(c, job)
    free(c, "a cap before a goal")
    job = c.sbatch(SLEEP, ON_N1, "--gpus=1", "--array=1-4", "--gpu-power-cap=150")
    capped(c, "n1", {4: 150, 5: 150, 6: 150, 7: 150}, "each task of an array has its cap")
    t.equal(len(c.jobs("n1")), 4, "… and is a job of its own")
    cancelled(c, job)
    free(c, "an array")


def het(c):
    """Components of a heterogeneous job are jobs of their own; the option holds for each."""
    p = c.popen("srun", "-Q", ON_N1, "--gpus=1", "--gpu-power-cap=200", "sleep", "600", ":", ON_N2, "--gpus=1", "sleep", "600")
    capped(c, "n1", {4: 200}, "a heterogeneous job: the first component's cap")
    capped(c, "n2", {4: 200}, "… and the other's")
    seen = uwtest.wait_until(lambda: (len(c.jobs("n1")), len(c.jobs("n2"))), lambda n: n == (1, 1))
    t.equal(seen, (1, 1), "each component is a job of its node")
    c.run("scancel", "-u", cluster.USER)
    p.wait(timeout=60)
    free(c, "a heterogeneous job")


def again(c, job):
    """A requeued job runs.  Where that follows within seconds, which Slurm's own delay of two minutes prevents, the end of the run before
    can end the new one, too: Slurm holds the job then."""
    for _ in range(5):
        uwtest.wait_until(lambda: c.state(job), lambda s: s == "PENDING")
        time.sleep(2)
        c.run("scontrol", "release", job)
        c.run("scontrol", "update", f"jobid={job}", "starttime=now")
        if uwtest.wait_for(lambda: c.state(job) == "RUNNING", 20):
            return True
    return False


def comings(c):
    """Requeue, and slurmd's restart."""
    job = c.sbatch(SLEEP, ON_N1, "--gpus=2", "--gpu-power-cap=200", "--requeue")
    c.running(job)
    capped(c, "n1", {4: 200, 5: 200}, "before a requeue")
    c.run("scontrol", "requeue", job)
    free(c, "requeued", "n1")
    t.ok(again(c, job), "it runs again", c.job(job))
    capped(c, "n1", {4: 200, 5: 200}, "with its cap")
    c.restart_slurmd("n1")
    t.equal(c.state(job), "RUNNING", "slurmd is restarted, the job goes on")
    capped(c, "n1", {4: 200, 5: 200}, "so does its cap")
    cancelled(c, job)
    free(c, "after a restart of slurmd")


def refused(c):
    """What a submitter could forge, or the plugin cannot know."""
    for words, why in ((["--gpus=1", "--gpu-power-cap=999"], "cap: 999 W is above"), (["--gpu-power-cap=200"], "cap: the job has no GPU"),
                       (["--gpus=1", "--gpu-power-class=hobby"], "class 'hobby' is none of: ")):
        job = c.sbatch(SLEEP, ON_N1, *words)
        t.ok(c.running(job), f"{' '.join(words)}: the job runs")
        seen = uwtest.wait_for(lambda n=job: c.jobs("n1").get(n)) or {}
        t.ok((seen.get("refused") or "").startswith(why), "… and the daemon says why it has no cap", seen)
        p = c.nodes["n1"].run("underwatt", "jobs")
        t.ok(why in p.stdout, "… in underwatt jobs, too", p.stdout)
        t.equal(c.limits("n1"), [300] * 8, "… no limit has changed")
        cancelled(c, job)
    free(c, "refused caps", "n1")
    job = c.sbatch(SLEEP, ON_N1, "--gpus=1", "--gpu-power-goal=edp")
    c.running(job)
    seen = uwtest.wait_until(lambda: c.jobs("n1").get(job, {}).get("search"), bool)
    t.equal((seen or {}).get("goal"), "edp", "a goal is searched for")
    cancelled(c, job)
    free(c, "a search", "n1")


def daemons(c):
    """The daemon is killed, stopped, away, or its disk is full, while jobs begin, run and end."""
    d = c.daemons["n1"]
    job = c.sbatch(SLEEP, ON_N1, "--gpus=1", "--gpu-power-cap=200")
    c.running(job)
    capped(c, "n1", {4: 200}, "a job before the daemon is killed")
    d.booked(*[claim["id"] for claim in d.ask("GET", "/v1/claims")[1]["claims"]])
    d.kill(actuator=False)
    d.start()
    capped(c, "n1", {4: 200}, "its cap is held on by the next daemon")
    t.equal(sorted(c.jobs("n1")), [job], "which knows the job")
    os.kill(d.pid, signal.SIGSTOP)
    second = c.sbatch("exit 0", ON_N1, "--gpus=1", "--gpu-power-cap=150")
    t.equal(c.ended(second), ["COMPLETED"], "with the daemon stopped a job comes and goes")
    c.rested()
    os.kill(d.pid, signal.SIGCONT)
    third = c.sbatch(SLEEP, ON_N1, "--gpus=1", "--gpu-power-cap=150")
    c.running(third)
    capped(c, "n1", {4: 200, 5: 150}, "a daemon that goes on caps the next job")
    seen = uwtest.wait_until(lambda: sorted(c.jobs("n1")), lambda jobs: jobs == [job, third], 20)    # it would end a job without a step after 60 s
    t.equal(seen, [job, third], "… and has nothing of the one between")
    d.kill(actuator=False)
    fourth = c.sbatch("exit 0", ON_N1, "--gpus=1", "--gpu-power-cap=150")
    t.equal(c.ended(fourth), ["COMPLETED"], "without a daemon a job comes and goes")
    d.start()
    capped(c, "n1", {4: 200, 5: 150}, "the daemon is back, and with it the others' caps")
    cancelled(c, job, third)
    free(c, "after all that", "n1")
    for path in (f"/v1/jobs/slurm:{job}", "/v1/jobs/slurm:4000000000"):
        t.equal(d.ask("DELETE", path)[0], 204, "an end that comes twice, or for a job that never began, is none")


def full_disk(c):
    place = pathlib.Path(c.path("disk"))
    place.mkdir(mode=0o700)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs", place], capture_output=True, check=False).returncode:
        t.skip("a full disk", "needs the right to mount a tmpfs")
        return
    c.stack.callback(subprocess.run, ["umount", "-l", place], check=False)
    d = c.daemons["n2"]
    d.kill(actuator=False)
    d.configure(f"ledger:\n  path: {place}/ledger.sqlite\n")
    d.start()
    with open(place / "ballast", "wb", buffering=0) as f:
        try:
            while True:
                f.write(b"x" * 4096)
        except OSError:
            pass
    job = c.sbatch(SLEEP, ON_N2, "--gpus=1", "--gpu-power-cap=200")
    t.ok(c.running(job), "with the disk full a job runs")
    capped(c, "n2", {4: 200}, "… capped")
    t.ok(uwtest.wait_for(lambda: "event=ledger-failed" in d.log()), "the daemon has met the full disk", d.log())
    cancelled(c, job)
    free(c, "a full disk", "n2")
    os.unlink(place / "ballast")
    d.kill(actuator=False)
    d.configure("")
    d.start()


with cluster.Cluster(nodes=2, plugin="", gres=GRES) as c:
    for part in (order, plain, nodes, het, comings, refused, daemons, full_disk):
        uwtest.timed(part.__name__, part, c)
        t.equal(c.rested(), ["idle", "idle"], f"{part.__name__}: no node is drained")
    for name in c.names:
        t.equal(c.daemons[name].ask("GET", "/v1/claims")[1]["claims"], [], f"no claim is left on {name}")
with cluster.Cluster(nodes=1, boards=4, plugin="", counts="gpu:b:2,gpu:a:1",
                     gres="Name=gpu Type=a File={dev}/nvidia[0-1]\nName=gpu Type=b File={dev}/nvidia[2-3]\n") as c:
    uwtest.timed("types", types, c)
    uwtest.timed("changed", changed, c)
t.done()
