#!/usr/bin/python3
"""underwatt doctor compares the classes of the Slurm plugin's table with those that the daemon knows: of its policy and of caps.classes."""
import json
import os
import pathlib
import re
import tempfile

import uwtest

t = uwtest.Tap()
spec = uwtest.spec()
CAPS = "caps: {classes: {slow: {floor: 60 %}, both: {floor: 70 %}}}\n"
CLASSES = """policy: 1
classes:
- {name: training, match: {kind: training}}
- {name: both, match: {kind: inference}}
"""


class Site:
    """Slurm's files of a login node in a folder, and what doctor says of the classes there."""

    def __init__(self, node, place):
        self.node, self.place, self.table = node, place, place / "gpu-boards"
        (place / "spank_underwatt.so").touch()
        (place / "slurm.conf").write_text(f"PluginDir={place}\nPrologFlags=Contain\nSlurmdPidFile={place}/none.pid\n")
        (place / "plugstack.conf").write_text(f"optional spank_underwatt.so boards={self.table}\n")

    def doctor(self, *classes):
        """The findings on Slurm that are no "ok", as (state, text, remedy); and whether the table was read."""
        self.table.write_text("board v100 150 W 300 W\n" + "".join(f"class {c}\n" for c in classes))
        p = self.node.run("underwatt", "doctor", "--json", "-", env={"SLURM_CONF": self.place / "slurm.conf", "SLURMD_NODENAME": "n1"})
        found = [f for f in json.loads(p.stdout)["findings"] if f["what"] == "slurm"]
        t.equal([f["state"] for f in found if "names spank_underwatt.so" in f["text"]], ["ok"], "… the plugin's files are read")
        return [(f["state"], f["text"], f["remedy"]) for f in found if f["state"] != "ok"]


def known(d, query=""):
    path = "/v1/policy" + query
    status, policy = d.ask("GET", path)
    why = spec.judge("GET", path, status, "application/json", json.dumps(policy))
    t.ok(not why, f"GET {path} is as openapi.yaml says", why)
    return policy["classes"]


def unknown(site, d, name, found, where):
    """One warning, about this class."""
    t.ok(len(found) == 1 and found[0][0] == "warn" and f"class '{name}' of {site.table} is in neither the policy" in found[0][1],
         f"{name}: one warning", found)
    remedy = found[0][2] if found else ""
    add = re.match(r"add '(.*)' to (\S+) in (\S+); sudo systemctl reload underwattd; or remove the line from " + str(site.table), remedy)
    t.ok(add and (add[2], add[3]) == where, "… and what to type", remedy)
    return add[1] if add else ""


def with_policy(site, d, policy):
    t.equal(known(d), ["default", "slow", "both", "training"], "classes of caps and of the policy, each once")
    t.equal(known(d, "?from=1"), [], "… in the first answer alone")
    t.equal(site.doctor("default", "slow", "both", "training"), [], "a table of known classes: nothing")
    t.equal(site.doctor(), [], "a table without classes: nothing")
    line = unknown(site, d, "urgent", site.doctor("training", "urgent"), ("classes", str(policy)))
    policy.write_text(CLASSES + line + "\n")
    t.ok(d.reload(), "what it said is added")
    t.ok("urgent" in known(d), "… the daemon knows the class", d.log())
    t.equal(site.doctor("training", "urgent"), [], "… and doctor has nothing to say")
    policy.write_text("policy: 2\n")
    t.ok(d.reload(), "a file that is refused")
    found = site.doctor("training", "urgent", "late", "later")
    t.equal([f[1].split("'")[1] for f in found], ["late", "later"], "the old policy counts; a line a class")
    t.ok(all(f"underwatt policy check {policy};" in f[2] for f in found), "… the file is checked first", found)


def without_policy(site, d, policy):
    policy.unlink()
    d.stop()
    d.start()
    t.equal(known(d), ["default", "slow", "both"], "no policy: classes of caps alone")
    entry = unknown(site, d, "training", site.doctor("slow", "training"), ("caps.classes", "underwattd.yaml"))
    t.ok(d.reload(pathlib.Path(d.config).read_text().replace("classes: {", "classes: {" + entry + ", ")), "what it said is added")
    t.equal(site.doctor("slow", "training"), [], "… and doctor has nothing to say")
    t.ok(len(site.doctor("slow", "training", "gone")) == 1, "another class is unknown still")
    d.stop()
    t.equal(site.doctor("slow", "training", "gone"), [], "no daemon: nothing")


with tempfile.TemporaryDirectory(prefix="uw-") as tmp, uwtest.Node(count=1) as node:
    place = pathlib.Path(tmp)
    policy = place / "policy.yaml"
    policy.write_text(CLASSES)
    d = node.daemon(f"{CAPS}policy: {{file: {policy}}}\n")
    site = Site(node, place)
    with_policy(site, d, policy)
    without_policy(site, d, policy)
t.done()
