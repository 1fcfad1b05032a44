"""The ways in which a job's life can go on a node: steps at the same time and one after another, an epilog that comes twice, or without a
prolog, a prolog that is interrupted, the node's reboot.  The simulated clock runs ten times as fast."""
import contextlib
import os
import pathlib
import signal
import sqlite3
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import cluster  # noqa: E402
import uwtest  # noqa: E402

t = uwtest.Tap()
cluster.required()
SLEEP = "exec sleep 600"
BOOT = "11111111-2222-3333-4444-555555555555"


def capped(c, limits, name):
    got, want = c.have("n1", limits)
    t.equal(got, want, name)


def free(c, name):
    capped(c, {}, f"{name}: the limits are back")
    left = uwtest.wait_until(lambda: c.jobs("n1"), lambda jobs: not jobs)
    t.equal((left, c.daemons["n1"].ask("GET", "/v1/claims")[1]["claims"]), ({}, []), f"{name}: no job and no claim is left")


def booked(c, job):
    """The ledger's rows of a job, the first one first: begun and ended."""
    with contextlib.closing(sqlite3.connect(f"file:{c.daemons['n1'].ledger}?mode=ro", uri=True)) as db:
        db.execute("PRAGMA busy_timeout = 5000")
        return db.execute("SELECT began_ms, ended_ms FROM job WHERE name = ? ORDER BY began_ms", (f"slurm:{job}",)).fetchall()


def ended(c, job, n, name):
    """The ledger has this many rows of the job, and all have ended."""
    rows = uwtest.wait_until(lambda: booked(c, job), lambda rows: len(rows) == n and all(end for _, end in rows))
    t.ok(len(rows) == n and all(end for _, end in rows), name, rows)


def hooks(times, job):
    rows = [line.split() for line in times.read_text().splitlines()] if times.exists() else []
    return [row[0] for row in rows if row[1] == str(job)]


def true_j(c):
    return sum(b["true_j"] for b in c.nodes["n1"].status()["boards"][-2:])    # of the devices 0 and 1


class Allocation:
    """salloc with a shell, which is told what to do."""

    def __init__(self, c, *words):
        place = pathlib.Path(c.path("work"))
        os.mkfifo(place / "told")
        (place / "told").chmod(0o666)
        self.child = c.popen("salloc", "-Q", *words, "sh", "-c", 'echo $SLURM_JOB_ID > job; exec 3< told; while read -r line <&3; do eval "$line"; done')
        uwtest.must(uwtest.wait_for(lambda: (place / "job").exists() and (place / "job").read_text()), "salloc")
        self.job = int((place / "job").read_text())
        self.shell = open(place / "told", "w", buffering=1, encoding="ascii")

    def step(self, command):
        self.shell.write(f"srun -Q --overlap -n1 {command} 2>> errors &\n")


def steps(c, times):
    """Of an allocation: two at the same time, then others."""
    allocation = Allocation(c, "--gpus=2", "-n2", "--gpu-power-cap=200")
    job = allocation.job
    before = true_j(c)
    sim = uwtest.program("underwatt-sim")
    train = f"{sim} --state {c.nodes['n1'].state} exec -- {sim} train --gpus 6,7"
    allocation.step(f"{train} --phases train --epochs 1000")
    capped(c, {0: 200, 1: 200}, "the first step begins the job")
    uwtest.wait_for(lambda: c.nodes["n1"].status()["jobs"] == 1)
    allocation.step(f"{train} --workload none")
    seen = uwtest.wait_until(lambda: (len(c.stepds(job)), c.nodes["n1"].status()["jobs"], c.jobs("n1").get(job, {}).get("processes")),
                             lambda n: n == (2, 2, 4))
    t.equal(seen, (2, 2, 4), "two steps run at the same time, each with a process on both boards")
    c.run("scancel", f"{job}.0")
    seen = uwtest.wait_until(lambda: len(c.stepds(job)), lambda n: n == 1)
    t.ok(seen == 1, "one of them ends", (seen, pathlib.Path(c.path("work/errors")).read_text()))
    time.sleep(8)    # more than the 60 s of a job that is alone
    capped(c, {0: 200, 1: 200}, "the cap stays as long as the other runs")
    allocation.step("touch third")
    t.ok(uwtest.wait_for(lambda: os.path.exists(c.path("work/third")) and len(c.stepds(job)) == 1), "a third begins and ends")
    capped(c, {0: 200, 1: 200}, "the cap is still there")
    now = c.jobs("n1")[job]
    c.run("scancel", f"{job}.1")
    capped(c, {}, "the last has ended: so does the cap 60 s later, with an allocation that goes on")
    allocation.step("sleep 600")
    capped(c, {0: 200, 1: 200}, "a step after that has it again")
    t.equal({n: j["id"] for n, j in c.jobs("n1").items()}, {job: now["id"]}, "it is the same job")
    d = c.daemons["n1"]
    allocation.shell.close()
    allocation.child.wait(timeout=60)
    free(c, "steps")
    after = true_j(c)
    ended(c, job, 1, "the ledger has one job")
    end = uwtest.wait_until(lambda: d.ask("GET", f"/v1/jobs/{now['id']}")[1], lambda j: j.get("settled"))
    t.ok(now["energy_j"] < end["energy_j"] and 0.5 * (after - before) < end["energy_j"] + end["half_j"]
         and end["energy_j"] - end["half_j"] <= after - before, "whose energy is that of its boards, counted once", (end, after - before))
    t.equal(hooks(times, job), ["prolog", "epilog"], "there was one prolog and one epilog")


def twice(c, times, flags):
    """slurmd dies within the epilog; slurmctld asks the next one to end the job again."""
    job = c.heard("n1", SLEEP, "--gpus=1", "--gpu-power-cap=200")
    capped(c, {0: 200}, "before an epilog that comes twice")
    (flags / "epilog").touch()
    c.run("scancel", job)
    capped(c, {}, "the cap has gone with the first epilog")
    uwtest.wait_until(lambda: hooks(times, job), lambda h: len(h) == 2)    # the hook writes it after it has had the answer
    child = c.children.pop("n1")
    child.kill()
    child.wait()
    (flags / "epilog").unlink()
    t.equal(hooks(times, job), ["prolog", "epilog"], "slurmd is killed within it, and loses what it knew of the job")
    c.spawn("n1", "slurmd", "-D", "-N", "n1", "-c")
    c.wait("n1 answers", lambda: "n1" in c.run("timeout", "5", "sinfo", "-h", "-r", "-N", "-o", "%N").stdout.split())
    c.run("scontrol", "reconfigure")    # asks for the ends of jobs anew
    seen = uwtest.wait_until(lambda: hooks(times, job), lambda h: len(h) == 3)
    t.equal(seen, ["prolog", "epilog", "epilog"], "the next slurmd runs another one")
    t.equal(c.ended(job), ["CANCELLED"], "the job ends")
    ended(c, job, 1, "the ledger has the job once")
    free(c, "an epilog that comes twice")


def without(c, times, flags):
    """An allocation that ends before its first step has an epilog alone; one that ends within the prolog has both."""
    p = c.run("salloc", "-Q", "--gpus=1", "--gpu-power-cap=200", "sh", "-c", "echo $SLURM_JOB_ID", user=cluster.USER)
    job = int(p.stdout)
    seen = uwtest.wait_until(lambda: hooks(times, job), bool)
    t.equal((seen, booked(c, job)), (["epilog"], []), "an epilog without a prolog is nothing")
    free(c, "an epilog without a prolog")
    (flags / "prolog").touch()
    job = c.sbatch(SLEEP, "--gpus=1", "--gpu-power-cap=200")
    capped(c, {0: 200}, "the job's prolog has begun")
    c.run("scancel", job)
    time.sleep(1)
    (flags / "prolog").unlink()
    t.equal(c.ended(job), ["CANCELLED"], "it is cancelled within the prolog")
    seen = uwtest.wait_until(lambda: hooks(times, job), lambda h: "epilog" in h)
    t.ok(seen[0] == "prolog" and "epilog" in seen, "the epilog comes", seen)
    free(c, "a prolog that is interrupted")
    ended(c, job, 1, "the ledger has the job once")


def down(c, times):
    """The administrator takes the node down: Slurm ends the job there, and requeues it."""
    job = c.heard("n1", SLEEP, "--gpus=2", "--gpu-power-cap=200", "--requeue")
    capped(c, {0: 200, 1: 200}, "before the node is taken down")
    c.run("scontrol", "update", "node=n1", "state=down", "reason=test")
    free(c, "a node that is down")
    ended(c, job, 1, "the ledger has the job's end")
    runs = 1 + again(c, times, job)
    c.run("scancel", job)
    free(c, "after a node that was down")
    ended(c, job, runs, "each run of the job is one in the ledger")


def again(c, times, job):
    """Slurm runs the job again.  The end of its first run, which Slurm tells the node once more when that is back, can end the new
    one, too: Slurm requeues it then, and holds it.  And slurmd runs no prolog for a job that it still knows: a run that follows within seconds, which
    Slurm's own delay of two minutes prevents, has no cap then, and there is nothing to see of it."""
    uwtest.wait_until(c.states, lambda s: s == ["idle"])
    runs, before = 0, hooks(times, job).count("prolog")
    for _ in range(5):
        uwtest.wait_until(lambda: c.state(job), lambda s: s == "PENDING")
        c.run("scontrol", "release", job)
        c.run("scontrol", "update", f"jobid={job}", "starttime=now")
        c.running(job)
        seen = uwtest.wait_until(lambda: (c.unheard("n1", job), c.have("n1", {0: 200, 1: 200}, 0)), lambda s: s[0] or s[1][0] == s[1][1], 10)
        runs = len(booked(c, job)) - 1
        if c.state(job) == "RUNNING":
            break
        print(f"# again: {c.job(job).get('Reason')}", flush=True)
    if seen[0]:
        print(f"# again: a hook had no answer in time: {seen[0]}", flush=True)
        return runs
    if hooks(times, job).count("prolog") == before:
        print("# again: slurmd ran no prolog for it", flush=True)
        return runs
    t.equal((c.state(job), *seen[1]), ("RUNNING", seen[1][1], seen[1][1]), "requeued, it runs again, with its cap")
    return runs


def power_off(c):
    """Everything of the node ends at once; what lies in memory is lost, and the boards have their limits of before."""
    child = c.children.pop("n1")
    child.kill()
    child.wait()
    d, node = c.daemons["n1"], c.nodes["n1"]
    for pid in c.stepds():
        for one in [pid, *uwtest.children_of(pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
    for child in (d.child, d.actuator):
        child.kill()
        child.wait()
    for path in (d.socket, d.job_socket, d.actuator_socket, *map(str, pathlib.Path(node.state, "actuator").glob("*"))):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    node.fault("reload")


def boots(d, folder):
    """The daemon's processes see another boot id from now on, in a mount namespace of their own."""
    file = folder / "boot_id"
    file.write_text(BOOT + "\n")
    plain = d.node.command
    script = f'mount --bind {file} /proc/sys/kernel/random/boot_id && exec "$@"'

    def command(args):
        args = [str(a) for a in args]
        if args[0] in ("underwattd", "underwatt-actuator"):
            return ["unshare", "--mount", "sh", "-c", script, "sh", *plain(args)]
        return plain(args)
    d.node.command = command


def reboot(c, times, folder):
    job = c.heard("n1", SLEEP, "--gpus=2", "--gpu-power-cap=200", "--requeue")
    capped(c, {0: 200, 1: 200}, "before the node's reboot")
    d = c.daemons["n1"]
    d.booked(*[claim["id"] for claim in d.ask("GET", "/v1/claims")[1]["claims"]])
    t.equal([end for _, end in booked(c, job)], [None], "the ledger has a job that runs")
    writes = [b["limit_writes"] for b in c.nodes["n1"].status()["boards"]]
    power_off(c)
    c.run("scontrol", "update", "node=n1", "state=down", "reason=test")    # as slurmctld does after SlurmdTimeout
    boots(d, folder)
    d.start()
    free(c, "after the reboot")
    ended(c, job, 1, "the ledger has the job's end")
    t.ok("from an earlier boot of this machine" in d.log(), "the daemon says why", d.log()[-2000:])
    t.equal([b["limit_writes"] for b in c.nodes["n1"].status()["boards"]], writes, "no limit was set for it meanwhile")
    c.start_slurmd("n1")
    # slurmctld tells the node the end of the first run once it is back; before, slurmd runs no prolog for a job that it still knows.
    seen = uwtest.wait_until(lambda: hooks(times, job), lambda h: "epilog" in h)
    t.equal(seen, ["prolog", "epilog"], "the epilog comes late")
    runs = 1 + again(c, times, job)
    c.run("scancel", job)
    free(c, "in the end")
    ended(c, job, runs, "each run of the job is one in the ledger")


with tempfile.TemporaryDirectory(prefix="uw-lives-", dir="/tmp") as place:
    folder = pathlib.Path(place)
    for hook in ("prolog", "epilog"):    # the site's own, which come after the plugin's and wait as long as there is a file
        (folder / hook).write_text(f"#!/bin/sh\nwhile [ -e {folder}/flags/{hook} ]; do sleep 0.1; done\n")
        (folder / hook).chmod(0o755)
    (folder / "flags").mkdir()
    with cluster.Cluster(nodes=1, plugin="", speed=10, conf=f"Prolog={folder}/prolog\nEpilog={folder}/epilog\n") as c:
        times = pathlib.Path(c.path("times"))
        c.write_plugstack(f"times={times}")
        uwtest.timed("steps", steps, c, times)
        uwtest.timed("twice", twice, c, times, folder / "flags")
        uwtest.timed("without", without, c, times, folder / "flags")
        uwtest.timed("down", down, c, times)
        uwtest.timed("reboot", reboot, c, times, folder)
        t.equal(c.rested(), ["idle"], "the node is not drained")
t.done()
