"""A node without files of its own (slurmd --conf-server): slurmd writes copies of slurmctld's into its spool folder, where prolog and doctor
find them."""
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import cluster  # noqa: E402
import uwtest  # noqa: E402

t = uwtest.Tap()
cluster.required()
if subprocess.run(["unshare", "-m", "true"], check=False).returncode:
    uwtest.skip_all("slurmd without files of its own needs a mount namespace here, and unshare -m cannot make one")
WORDS = ("-w", "n1", "--gpus=2", "--gpu-power-cap=200")


def doctor(c):
    """In slurmd's namespace, where its link to the copies is."""
    node = c.nodes["n1"]
    p = c.run("nsenter", "-m", "-t", c.children["n1"].pid, *node.command(["underwatt", "doctor"]),
              env={**node.env(), "SLURM_CONF": None, "SLURMD_NODENAME": "n1"})
    return " ".join(p.stdout.split())


def job(c, name, limits):
    number = c.heard("n1", "exec sleep 600", *WORDS)
    got, want = c.have("n1", limits)
    t.equal(got, want, name)
    c.run("scancel", number)
    c.ended(number)
    got, want = c.have("n1", {})
    t.equal(got, want, "… until it ends")


with cluster.Cluster(nodes=1, plugin="", configless=True, conf="PrologFlags=Contain") as c:
    copies = pathlib.Path(c.cached("n1")).parent
    t.ok({"slurm.conf", "gres.conf", "plugstack.conf"} <= {p.name for p in copies.iterdir()}, "slurmd has copies of the files", list(copies.iterdir()))
    job(c, "a job with a cap", {0: 200, 1: 200})
    said = doctor(c)
    t.ok("ok slurm /run/slurm/conf/plugstack.conf names spank_underwatt.so; /run/slurm/conf/gres.conf has 8 GPUs of this node" in said, "doctor finds them", said)
    later = time.time() + 600
    os.utime(copies / "gres.conf", (later, later))
    number = c.heard("n1", "exec sleep 600", *WORDS)
    seen = uwtest.wait_until(lambda: c.jobs("n1").get(number), bool) or {}
    t.equal((seen.get("gpus"), c.limits("n1")), ([], [300] * 8), "a copy that was written ten minutes after slurmd's start: no cap")
    c.run("scancel", number)
    c.ended(number)
    said = doctor(c)
    t.ok("bad slurm /run/slurm/conf/gres.conf was changed after slurmd started" in said and
         "are copies, which slurmd gets from slurmctld when it starts -> change them where slurmctld runs" in said, "doctor says so, and where to mend", said)
    c.restart_slurmd("n1")
    job(c, "slurmd was restarted: a job with a cap", {0: 200, 1: 200})
    c.write_plugstack(None)
    c.run("scontrol", "reconfigure")
    t.ok(uwtest.wait_for(lambda: not (copies / "plugstack.conf").exists() or not (copies / "plugstack.conf").read_text().strip()), "the copies follow scontrol reconfigure")
    said = doctor(c)
    t.ok("plugstack.conf does not name spank_underwatt.so" in said and "sudo tee -a /etc/slurm/plugstack.conf, where slurmctld runs; here" in said,
         "doctor says where the line belongs", said)
    t.equal(c.rested(), ["idle"], "the node is not drained")
t.done()
