"""The collector of the queue on a real cluster: while nobody waits a rule caps the jobs, who waits brings the full power back,
and Slurm's facts of a job are on its nodes.  The figures are printed."""
import json
import pathlib
import signal
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import cluster  # noqa: E402
import uwtest  # noqa: E402

t = uwtest.Tap()
cluster.required()

BOARDS, FULL, SAVED = 2, 300, 255    # V100: 85 % of 300 W
ADMIN = cluster.OTHER                # the collector's user: in the daemons' admin_group alone
POLICY = """policy: 1
signals:
  - {name: queue.depth.main}
  - {name: queue.gpus.main}
  - {name: queue.depth.gpu_long}
rules:
  - name: nobody-waits
    jobs: {slurm: {partition: main}, kind: training}
    when: queue.depth.main == 0
    until: queue.depth.main > 0
    for: 2 s
    preset: balanced
    ramp: at once
"""
CONFIG = """every: 1 s
source: {source}
nodes: {{socket: {socket}}}
kinds:
  - {{kind: inference, partition: serve*}}
  - {{kind: training, partition: main}}
"""


FILTERS = {"SQUEUE_STATES": "COMPLETED", "SQUEUE_PARTITION": "none", "SQUEUE_USERS": "root", "SQUEUE_FORMAT": "%i", "SQUEUE_ARRAY": "1",
           "SINFO_PARTITION": "none", "SLURM_CLUSTERS": "none"}    # that Slurm's commands would take from the service


class Collector:
    def __init__(self, c, folder, source="auto"):
        path = folder / "collector.yaml"
        path.write_text(CONFIG.format(source=source, socket=c.socket("%n")))
        path.chmod(0o644)
        program = uwtest.BUILD / "src" / "collector" / "underwatt-slurm-collector"
        self.c = c
        self.child = c.spawn("collector", program, "--config", str(path), user=ADMIN, **FILTERS)

    def log(self):
        return pathlib.Path(self.c.path("log", "collector.out")).read_text(errors="replace")

    def stop(self):
        self.child.send_signal(signal.SIGTERM)
        return self.child.wait(timeout=20)


def queue(d, *names):
    signals = {s["name"]: s for s in d.ask("GET", "/v1/signals")[1]["signals"]}
    return [signals[f"queue.{n}"]["value"] for n in names]


def become(what, get, want):
    began = time.monotonic()
    got = uwtest.wait_until(get, lambda v: v == want)
    t.equal(got, want, what)
    print(f"# … within {time.monotonic() - began:.1f} s", flush=True)


def all_limits(c):
    return [w for name in c.names for w in c.limits(name)]


def facts(c, job):
    got = [c.daemons[n].ask("GET", f"/v1/jobs/slurm:{job}")[1] for n in c.names]
    return [g["labels"].get("slurm.name") if "labels" in g else g for g in got]


def nobody_waits(c):
    job = c.sbatch("srun sleep 600", "-N2", "--ntasks-per-node=1", "--gpus-per-node=2", "-t", "50", "-A", "teama", "-J", "train é")
    t.ok(c.running(job), "a job has all boards")
    become("its name comes to both nodes", lambda: facts(c, job), ["train é"] * 2)
    labels = c.daemons["n2"].ask("GET", f"/v1/jobs/slurm:{job}")[1]["labels"]
    t.ok(labels["slurm.qos"] == "normal" and labels["slurm.account"] == "teama" and labels["underwatt.kind"] == "training",
         "and QoS, account, kind", labels)
    t.equal(labels.get("underwatt.limit"), "3000 s", "and its time limit")
    become("nobody waits: all boards save", lambda: all_limits(c), [SAVED] * 4)
    c.sbatch("sleep 600", "--gpus=1", "--hold")
    c.sbatch("sleep 600", "--gpus=1", "--begin=now+1hour")
    c.sbatch("sleep 600", "--gpus=1", f"--dependency=afterok:{job}")
    time.sleep(3)
    t.equal([queue(d, "depth", "wait", "gpus") for d in c.daemons.values()], [[0, 0, 0]] * 2,
            "held, later and dependent jobs are nobody who waits")
    t.equal(all_limits(c), [SAVED] * 4, "the caps stay")
    return job


def somebody_waits(c):
    array = c.sbatch("sleep 600", "--array=1-3", "--gpus=2", "-A", "teamb")
    become("an array of three waits: full power", lambda: all_limits(c), [FULL] * 4)
    become("three jobs, six GPUs on both nodes", lambda: [queue(d, "depth", "gpus", "depth.main", "gpus.main", "depth.gpu_long")
                                                         for d in c.daemons.values()], [[3, 6, 3, 6, 0]] * 2)
    t.ok(uwtest.wait_for(lambda: all(queue(d, "wait")[0] >= 1 for d in c.daemons.values())), "the wait grows")
    s = next(s for s in c.daemons["n1"].ask("GET", "/v1/signals")[1]["signals"] if s["name"] == "queue.depth")
    t.ok(s["source"] == "slurm" and not s["by_hand"] and s["ends_s"] <= 28, "for three periods and 25 s, by slurm", s)
    c.run("scancel", array)
    become("they are cancelled: all boards save", lambda: all_limits(c), [SAVED] * 4)


def node_away(c, collector):
    c.daemons["n2"].stop()
    t.ok(uwtest.wait_for(lambda: "event=node name=n2 state=silent" in collector.log()), "a node's daemon is away",
         collector.log())
    job = c.sbatch("sleep 600", "--gpus=1")
    become("the other node is told all the same", lambda: queue(c.daemons["n1"], "depth"), [1])
    c.daemons["n2"].start()
    become("it is back and told everything", lambda: queue(c.daemons["n2"], "depth", "depth.main"), [1, 1])
    c.run("scancel", job)
    become("and again", lambda: queue(c.daemons["n2"], "depth"), [0])


def slurm_away(c, collector):
    child = c.children.pop("slurmctld")
    child.terminate()
    child.wait(timeout=30)
    seen = []
    uwtest.wait_for(lambda: seen.append(queue(c.daemons["n1"], "depth")[0]) or seen[-1] is None, step=0.2)
    t.ok(seen[-1] is None and set(seen) == {0, None}, "slurmctld is away: the queue is unknown", seen)
    become("what is unknown caps nothing", lambda: c.limits("n1"), [FULL] * 2)
    t.ok(uwtest.wait_for(lambda: "event=slurm state=silent" in collector.log()), "the log says why", collector.log())
    t.equal(queue(c.daemons["n1"], "depth", "wait", "gpus"), [None] * 3, "and it stays unknown, never 0")
    c.spawn("slurmctld", "slurmctld", "-D")
    become("it is back", lambda: queue(c.daemons["n1"], "depth"), [0])


def told(c, name):
    """The running jobs of a node as `underwatt jobs --json` prints them, by Slurm's number."""
    p = c.nodes[name].run("underwatt", "jobs", "--json", "-")
    jobs = json.loads(p.stdout)["jobs"] if p.returncode == 0 else []
    return {int(j["name"][6:]): j for j in jobs if j["running"] and (j["name"] or "").startswith("slurm:")}


def identity(c, what, job, want):
    """Its jobs have these facts, by the number of each."""
    common = {"slurm.partition": "main", "slurm.account": "teamb", "slurm.qos": "high", "underwatt.kind": "training"}
    keys = {*common, *want[0]}

    def got():
        jobs = [j for name in c.names for j in told(c, name).values()]
        return sorted([{k: v for k, v in j["labels"].items() if k in keys} for j in jobs], key=str)

    def seen():
        for name in c.names:
            for number, j in told(c, name).items():
                same = c.daemons[name].ask("GET", f"/v1/jobs/slurm:{number}")[1]["labels"] == j["labels"]
                yield number, j["time_limit_s"], j["labels"]["slurm.name"] == c.job(number)["JobName"], same

    want = sorted([{**common, **facts} for facts in want], key=str)
    become(f"{what}: each job's facts are in underwatt jobs --json", lambda: sorted(got(), key=str), want)
    jobs = sorted(seen())
    t.equal([row[1:] for row in jobs], [(1800, True, True)] * 2, "with its time limit, and the same in /v1/jobs/slurm:NUMBER")
    c.run("scancel", job)
    become("they end", lambda: [told(c, name) for name in c.names], [{}, {}])
    return [row[0] for row in jobs]


def identities(c):
    common = ["--gpus=1", "-A", "teamb", "-t", "30", "--qos=high"]
    job = c.sbatch("sleep 600", "-J", "sweep", "--array=7,9", *common)
    identity(c, "tasks of an array", job, [{"slurm.name": "sweep", "slurm.array_job": str(job), "slurm.array_task": str(i)} for i in (7, 9)])
    job = c.sbatch("srun --het-group=0,1 sleep 600", "-J", "pair", *common, ":", *common)
    numbers = identity(c, "components of a heterogeneous job", job,
                       [{"slurm.name": "pair", "slurm.het_job": str(job), "slurm.het_component": str(i)} for i in (0, 1)])
    t.equal(numbers, [job, job + 1], "each component by its own number")


with tempfile.TemporaryDirectory(prefix="uw-queue-", dir="/tmp") as place:
    folder = pathlib.Path(place)
    folder.chmod(0o755)
    (folder / "policy.yaml").write_text(POLICY)
    daemon = f"node: {{admin_group: {ADMIN}}}\npolicy: {{file: {folder}/policy.yaml}}\n"
    # Components of a heterogeneous job begin with the backfill alone, every 30 s unless told.
    partitions = "PartitionName=gpu-long Nodes=n1 MaxTime=120 State=UP\nSchedulerParameters=bf_interval=2"
    with cluster.Cluster(nodes=2, boards=BOARDS, plugin="", daemon=daemon, conf=partitions) as c:
        c.run("sacctmgr", "-i", "-Q", "add", "qos", "high")
        c.run("sacctmgr", "-i", "-Q", "modify", "user", cluster.USER, "set", "qos+=high")
        collector = Collector(c, folder)
        job = nobody_waits(c)
        somebody_waits(c)
        t.equal(collector.stop(), 0, "the collector ends")
        collector = Collector(c, folder, "text")
        somebody_waits(c)
        node_away(c, collector)
        slurm_away(c, collector)
        c.run("scancel", "-u", cluster.USER)
        t.equal(c.ended(job), ["CANCELLED"], "the boards are free")
        identities(c)
        t.equal(collector.stop(), 0, "the collector ends")
        collector = Collector(c, folder)
        identities(c)
        t.equal(collector.stop(), 0, "the collector ends")
        t.ok("Sanitizer" not in collector.log(), "and has complained of nothing")
t.done()
