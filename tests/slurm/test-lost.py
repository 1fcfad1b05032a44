"""No epilog comes, because slurmstepd was killed, or the daemon does not hear of it: the job ends in the daemon after 60 s, in a world
whose clock runs ten times as fast.  A job whose slurmstepd lives does not."""
import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import cluster  # noqa: E402
import uwtest  # noqa: E402

t = uwtest.Tap()
cluster.required()
SLEEP = "exec sleep 600"


def capped(c, limits, name):
    got, want = c.have("n1", limits)
    t.equal(got, want, name)


with cluster.Cluster(nodes=1, plugin="", speed=10) as c:
    d = c.daemons["n1"]
    lives = c.sbatch(SLEEP, "--gpus=1", "--gpu-power-cap=200")
    c.running(lives)
    killed = c.sbatch(SLEEP, "--gpus=2", "--gpu-power-cap=150")
    c.running(killed)
    capped(c, {0: 200, 1: 150, 2: 150}, "two jobs have their caps")
    pids = uwtest.wait_until(lambda: c.stepds(killed), bool)
    time.sleep(5)    # the daemon looks for them every second here
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    t.ok(pids, "slurmstepd of one is killed, so that no epilog comes")
    capped(c, {0: 200}, "the daemon ends that job")
    t.equal(sorted(c.jobs("n1")), [lives], "… and not the one whose slurmstepd lives")
    c.run("scancel", killed)
    os.kill(d.pid, signal.SIGSTOP)
    c.run("scancel", lives)
    t.equal(c.ended(lives), ["CANCELLED"], "the other ends while the daemon is stopped")
    os.kill(d.pid, signal.SIGCONT)
    capped(c, {}, "the daemon ends it, too")
    over = [line for line in d.log().splitlines() if "event=job-over" in line]
    t.ok(len(over) == 1 and f"slurm:{killed}" in over[0], "as its epilog has said, though that had no time for an answer", over)
    left = uwtest.wait_until(lambda: c.jobs("n1"), lambda jobs: not jobs)
    t.equal((left, d.ask("GET", "/v1/claims")[1]["claims"]), ({}, []), "no job and no claim is left")
    c.ended(killed)
t.done()
