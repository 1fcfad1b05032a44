"""The suite's own cluster: jobs with GPUs run on nodes that have simulated boards, and nothing is left when it stops."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import cluster  # noqa: E402
import uwtest  # noqa: E402

t = uwtest.Tap()
cluster.required(plugin=False)

with cluster.Cluster(nodes=2) as c:
    t.equal(c.states(), ["idle", "idle"], "two nodes are idle")
    p = c.srun("-N2", "--gpus-per-node=2", "--ntasks-per-node=1", "-l", "sh", "-c",
               "echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES $(id -un)")
    t.equal(sorted(p.stdout.split("\n")), ["", f"0: n1 0,1 {cluster.USER}", f"1: n2 0,1 {cluster.USER}"],
            "a user's job gets two boards on each")
    uuids = [{b["uuid"] for b in node.status()["boards"]} for node in c.nodes.values()]
    t.ok(len(uuids[0]) == 8 and not uuids[0] & uuids[1], "each node has eight boards of its own", uuids)
    job = c.sbatch("exit 0", "--gpus=1", "-A", "teama")
    t.equal(c.ended(job), ["COMPLETED"], "a batch job ends")
    row = uwtest.wait_until(lambda: c.run("sacct", "-n", "-X", "-P", "-a", "-j", job, "-o", "account,state").stdout.strip(),
                            lambda text: "COMPLETED" in text)
    t.equal(row, "teama|COMPLETED", "and is accounted for")
    pids = [child.pid for child in c.children.values()]
    place = c.dir
t.ok(not any(uwtest.alive(pid) for pid in pids), "no service outlives the cluster", pids)
t.ok(not os.path.exists(place), "nor does a file")
t.done()
