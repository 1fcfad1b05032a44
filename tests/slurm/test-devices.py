"""Boards under ConstrainDevices, where a job's boards are 0 and 1 to its programs whichever they are, and MIG instances in gres.conf: what is
capped and metered are the boards that the job has, or none."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import cluster  # noqa: E402
import uwtest  # noqa: E402

t = uwtest.Tap()
cluster.required()
DEVICES = pathlib.Path("/sys/fs/cgroup/devices/devices.list")
CGROUP = "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\nCgroupAutomount=no\nConstrainDevices=yes\n"
# Slurm's index 0 is the device with minor number 4, which is NVML's board 3.
GRES = "Name=gpu File={dev}/nvidia[4-7]\nName=gpu File={dev}/nvidia[0-3]\n"
SLEEP = "exec sleep 600"
NVML = pathlib.Path(cluster.HERE.parent, "system", "nvmlc.py")
SIM = uwtest.program("underwatt-sim")


def capped(c, limits, name):
    got, want = c.have(c.names[0], limits)
    t.equal(got, want, name)


def free(c, name):
    capped(c, {}, f"{name}: the limits are back")
    left = uwtest.wait_until(lambda: c.jobs(c.names[0]), lambda jobs: not jobs)
    t.equal(left, {}, f"{name}: no job is left")


def constrained(c):
    """A job has the devices 0 and 1, Slurm's 4 and 5, NVML's 7 and 6, and counts them 0 and 1."""
    name, = c.names
    os.symlink(c.path("dev"), os.path.join(c.nodes[name].state, "dev"))
    world = f"{SIM} --state {c.nodes[name].state} exec --"
    first = c.heard(name, SLEEP, "--gpus=4", "--gpu-power-cap=250")
    seen = c.path("work/seen")
    job = c.heard(name, f"(echo $CUDA_VISIBLE_DEVICES $SLURM_JOB_GPUS; {world} /usr/bin/python3 {NVML} init ';' count ';' minor 0 ';' minor 1; cat /proc/self/cgroup"
                   f") > {seen} 2>&1\n{world} {SIM} train --phases train --epochs 1000 --gpus 0", "--gpus=2", "--gpu-power-cap=200")
    capped(c, {0: 200, 1: 200, 4: 250, 5: 250, 6: 250, 7: 250}, "each job's cap is on its own boards")
    uwtest.wait_for(lambda: c.nodes[name].status()["jobs"] == 1)
    lines = pathlib.Path(seen).read_text().splitlines()
    t.equal(lines[:5], ["0,1 4,5", "0 0", "0 2", "0 1", "0 0"], "its programs see two boards, 0 and 1, which are the devices 1 and 0")
    t.ok(any(f"devices:/slurm_{name}/uid_5/job_{job}/" in line for line in lines), "by a control group of devices that Slurm has made", lines)
    t.equal([len(b["pids"]) for b in reversed(c.nodes[name].status()["boards"])], [0, 1] + [0] * 6, "its training runs on the first of them")
    rows = uwtest.wait_until(lambda: c.jobs(name), lambda jobs: jobs[job]["processes"] >= 1 and jobs[job]["energy_j"] > jobs[first]["energy_j"] / 2)
    t.equal([sorted(rows[n]["gpus"]) for n in (first, job)], [[0, 1, 2, 3], [6, 7]], "the daemon knows each job's boards")
    t.equal([rows[n]["processes"] for n in (first, job)], [0, 1], "and whose process it is")
    c.run("scancel", first, job)
    free(c, "constrained devices")


def inside(c):
    """`underwatt run` in a job counts the job's boards: its 0 and 1 are NVML's 6 and 7, and another job has 0 and 1."""
    name, = c.names
    first = c.heard(name, SLEEP, "--gpus=4")
    said = pathlib.Path(c.path("work/inside"))
    train = f"{SIM} train --phases train --epochs 1000"
    job = c.heard(name, f"export UNDERWATT_SOCKET={c.socket(name)}\nexec {SIM} --state {c.nodes[name].state} exec -- {uwtest.program('underwatt')} run --name inside -- {train} > {said} 2>&1",
                  "--gpus=2")

    def boards():
        rows = c.daemons[name].ask("GET", "/v1/jobs")[1].get("jobs", [])
        return [sorted(j["gpus"]) for j in rows if j["running"] and j["name"] == "inside"]
    got = uwtest.wait_until(boards, bool)
    t.ok(got == [[6, 7]], "underwatt run in a job has the job's boards", (got, said.read_text() if said.exists() else ""))
    t.equal(sorted(c.jobs(name)[first]["gpus"]), [0, 1, 2, 3], "and another job has the node's first")

    def processes():
        rows = c.daemons[name].ask("GET", "/v1/jobs")[1].get("jobs", [])
        return [j["processes"] for n in ("inside", f"slurm:{job}") for j in rows if j["running"] and j["name"] == n]
    got = uwtest.wait_until(processes, lambda seen: seen == [2, 0])
    t.equal(got, [2, 0], "what it has started is its own, not the outer job's")
    c.run("scancel", first, job)
    free(c, "underwatt run")


def parts(c):
    """gres.conf with the device files of MIG instances, as its two forms have them."""
    name, = c.names
    dev = pathlib.Path(c.path("dev"))
    (dev / "nvidia-caps").mkdir()
    for i in range(3, 11):
        os.mknod(dev / "nvidia-caps" / f"nvidia-cap{i}", 0o20444, os.makedev(511, i))
    several = "".join(f"Name=gpu MultipleFiles={{dev}}/nvidia{i},{{dev}}/nvidia-caps/nvidia-cap{i + 3},{{dev}}/nvidia-caps/nvidia-cap{i + 4}\n" for i in range(7))
    for gres, plugin, why in ((several + "Name=gpu File={dev}/nvidia7\n", "", "not an instance"),
                              ("Name=gpu File={dev}/nvidia-caps/nvidia-cap[3-10]\n", "", "MIG instances"),
                              (GRES, f"gres={c.path('detected')}", "AutoDetect=nvml")):
        c.write_gres(gres)
        pathlib.Path(c.path("detected")).write_text("AutoDetect=nvml\n")
        c.write_plugstack(plugin)
        c.restart_slurmd(name)
        before = len(c.log(name))
        job = c.heard(name, SLEEP, "--gpus=2", "--gpu-power-cap=200")
        t.ok(c.running(job), f"{why}: the job runs", c.job(job))
        seen = uwtest.wait_until(lambda n=job: c.jobs(name).get(n), bool) or {}
        t.equal((seen.get("gpus"), c.limits(name)), ([], [300] * 8), f"{why}: it is registered without boards, and none is capped")
        t.ok(uwtest.wait_for(lambda at=before, text=why: text in c.log(name)[at:], 20), f"{why}: slurmd's log says why", c.log(name)[before:])
        p = c.nodes[name].run("underwatt", "jobs")
        said = " ".join(p.stdout.split())
        t.ok(f"slurm:{job}" in said and "GPUs: " in said and why in said, f"{why}: … and underwatt jobs", p.stdout)
        c.run("scancel", job)
        t.equal((c.ended(job), c.rested()), (["CANCELLED"], ["idle"]), f"{why}: the node is not drained")
        free(c, why)


groups = DEVICES.exists()
with cluster.Cluster(nodes=1, plugin="", gres=GRES, cgroup=CGROUP if groups else "") as c:
    if groups:
        uwtest.timed("constrained", constrained, c)
        uwtest.timed("inside", inside, c)
    else:
        t.skip("ConstrainDevices", f"no {DEVICES.parent}: Slurm's control groups of version 2 need a service manager")
    uwtest.timed("parts", parts, c)
    t.equal(c.rested(), ["idle"], "the node is not drained")
t.equal(list(pathlib.Path("/sys/fs/cgroup").glob(f"*/slurm_p{os.getpid()}*")), [], "no control group is left")
t.done()
