"""2,000 one-second jobs of one GPU each: none is lost, no node is drained, no claim is left, ledger and sacct agree.  The times
inside the hooks are printed, with the daemon, with it stopped and without a socket, and srun's with and without the plugin.

    UNDERWATT_STORM=200    so many jobs
"""
import contextlib
import os
import pathlib
import re
import signal
import sqlite3
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import cluster  # noqa: E402
import uwtest  # noqa: E402

t = uwtest.Tap()
cluster.required()
JOBS = int(os.environ.get("UNDERWATT_STORM", "2000"))
CONF = "MaxArraySize=2001\nSchedulerParameters=batch_sched_delay=0,default_queue_depth=200,sched_interval=5,max_array_tasks=2000\n"


def hooks(times, what):
    """The microseconds in the hooks' file, told."""
    took = {}
    for line in times.read_text().splitlines():
        words = line.split()
        took.setdefault(words[0], []).append(int(words[2]) / 1000)
    for hook, ms in sorted(took.items()):
        ms.sort()
        print(f"# {what}: {len(ms)} {hook}s, ms: p50 {ms[len(ms) // 2]:.2f}, p99 {ms[len(ms) * 99 // 100]:.2f}, max {ms[-1]:.2f}", flush=True)
    times.unlink()
    return took


def ended(c, jobs):
    """How sacct says that the tasks of these arrays ended, once it knows of all."""
    def states():
        p = c.run("sacct", "-n", "-X", "-P", "-a", "-j", ",".join(map(str, jobs)), "-o", "jobidraw,state")
        return dict(line.split("|") for line in p.stdout.split())
    return uwtest.wait_until(states, lambda s: len(s) >= JOBS and set(s.values()) <= {"COMPLETED", "FAILED", "CANCELLED"}, 120)


def ledger(c, name):
    """Names of Slurm's jobs in a daemon's ledger."""
    with contextlib.closing(sqlite3.connect(f"file:{c.daemons[name].ledger}?mode=ro", uri=True)) as db:
        db.execute("PRAGMA busy_timeout = 5000")
        return {row[0] for row in db.execute("SELECT name FROM job WHERE name LIKE 'slurm:%'")}


def storm(c, times):
    began = time.monotonic()
    half = JOBS // 2
    jobs = [c.sbatch("exec sleep 1", "--gpus=1", "--gpu-power-cap=200", f"--array=1-{n}", user=user)
            for n, user in ((half, cluster.USER), (JOBS - half, cluster.OTHER))]
    over = uwtest.wait_until(lambda: c.run("squeue", "-h").stdout, lambda text: not text.strip(), 900)
    print(f"# {JOBS} jobs of 1 s on {len(c.names) * c.boards} GPUs in {time.monotonic() - began:.0f} s", flush=True)
    t.equal(over, "", "the queue is empty")
    states = ended(c, jobs)
    t.equal((len(states), set(states.values())), (JOBS, {"COMPLETED"}), "every job has run, says sacct")
    t.equal(set(c.rested()), {"idle"}, "no node is drained")
    took = hooks(times, "the daemon")
    t.equal((len(took["prolog"]), len(took["epilog"])), (JOBS, JOBS), "each job had a prolog and an epilog")
    late = [line for name in c.names for line in c.log(name).splitlines() if "underwatt:" in line]
    print(f"# {len(late)} hooks had no answer: {late[:3]}", flush=True)
    rows = uwtest.wait_until(lambda: [ledger(c, name) for name in c.names], lambda seen: len(set().union(*seen)) >= JOBS - len(late))
    booked = set().union(*rows)
    missing = {f"slurm:{n}" for n in states} - booked
    t.ok(booked <= {f"slurm:{n}" for n in states}, "the ledgers have no other jobs", booked)
    t.ok(len(missing) <= len(late), "the ledgers have each job whose prolog had an answer", (missing, late))
    # An epilog that had no answer in time may not have been heard: such a job ends later, by the daemon's own rule.
    unheard = {int(re.search(r"epilog of job (\d+)", line).group(1)) for line in late if "epilog of job" in line}
    for name in c.names:
        left = uwtest.wait_until(lambda n=name: set(c.jobs(n)), lambda jobs: jobs <= unheard)
        t.ok(left <= unheard, f"no job is left on {name} whose epilog had an answer", (left, unheard))
        claims = {claim["who"] for claim in c.daemons[name].ask("GET", "/v1/claims")[1]["claims"]}
        t.ok(claims <= {f"slurm:{n}" for n in left}, f"no claim is left on {name} but theirs", claims)
        if not left:
            got, want = c.have(name, {})
            t.equal(got, want, f"the limits of {name} are the original ones")


def few(c, times, what, limit_ms):
    job = c.sbatch("exit 0", "--gpus=1", "--gpu-power-cap=200", "--array=1-60")
    uwtest.wait_until(lambda: c.run("squeue", "-h").stdout, lambda text: not text.strip(), 300)
    took = hooks(times, what)
    every = took["prolog"] + took["epilog"]
    t.ok(len(every) == 120 and statistics.median(every) <= limit_ms, f"{what}: the hooks' median is within {limit_ms} ms", (job, sorted(every)))
    t.equal(set(c.rested()), {"idle"}, f"{what}: no node is drained")


def sruns(c, n=15):
    ms = []
    for _ in range(n):
        began = time.monotonic()
        if c.srun("--nodelist=n1", "--gpus=1", "true").returncode == 0:
            ms.append((time.monotonic() - began) * 1000)
    return ms


def overhead(c):
    """srun's time, in blocks that alternate."""
    took = {"with the plugin": [], "without": []}
    for _ in range(3):
        for name, plugin in (("with the plugin", ""), ("without", None)):
            c.write_plugstack(plugin)
            c.restart_slurmd("n1")
            took[name] += sruns(c)
    for name, ms in took.items():
        print(f"# srun --gpus=1 true, {name}: p50 {statistics.median(ms):.0f} ms of {len(ms)}", flush=True)
        t.equal(len(ms), 45, f"srun {name}: every job ran")


with cluster.Cluster(nodes=4, plugin="", conf=CONF) as c:
    times = pathlib.Path(c.path("times"))
    c.write_plugstack(f"times={times}")
    storm(c, times)
    for name in c.names:
        os.kill(c.daemons[name].pid, signal.SIGSTOP)
    few(c, times, "the daemon stopped", 50)
    for name in c.names:
        os.kill(c.daemons[name].pid, signal.SIGKILL)
        os.kill(c.daemons[name].pid, signal.SIGCONT)
        c.daemons[name].child.wait()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(c.socket(name))
    few(c, times, "no socket", 1)
    for name in c.names:
        c.daemons[name].start()
    overhead(c)
t.done()
