"""Boards idle or underused, as their readers see them: one that works is never among them, one that a process
holds, one that a job has without a process; report, top, API, metrics, a user's own view, and a restart."""
import getpass
import json
import os
import re
import sqlite3

import uwtest

t = uwtest.Tap()
# A job that others keep from running for 3 s computes nothing for a minute of the node's time.
CONFIG = "node:\n  interval: 5 s\nwaste:\n  idle_after: 2 min\n  under_for: 5 min\n"


def waste(node, *args, **kw):
    p = node.run("underwatt", "report", "--waste", "--format", "json", *args, **kw)
    return (json.loads(p.stdout) if p.returncode == 0 else {"uses": [], "jobs": [], "users": []}), p


def uses(d):
    return {g["gpu"]: g["use"] for g in d.ask("GET", "/v1/gpus")[1]["gpus"]}


def seconds(report, use):
    return sum(u["time_s"] for u in report["uses"] if u["use"] == use)


def readers(node, d):
    r, p = waste(node)
    t.ok(r["simulated"] and seconds(r, "held") > 60 and seconds(r, "allocated") > 60 and seconds(r, "working") > 100,
         "time of each class", p)
    t.equal(sorted(j["name"] for j in r["jobs"]), ["slurm:7", "underwatt-sim"], "two jobs wasted some")
    jobs = {j["name"]: j for j in r["jobs"]}
    t.ok(jobs["slurm:7"]["allocated_s"] > 60 and jobs["slurm:7"]["held_s"] == 0, "one without a process", jobs)
    t.ok(jobs["underwatt-sim"]["held_s"] > 60 and jobs["underwatt-sim"]["allocated_s"] == 0, "one with", jobs)
    t.ok(abs(sum(j["energy_j"] for j in r["jobs"]) - sum(u["energy_j"] for u in r["users"])) < 1e-3 and
         abs(sum(j["energy_j"] for j in r["jobs"]) - sum(u["energy_j"] for u in r["projects"])) < 1e-3,
         "users and projects are the sums of the jobs", r)
    t.equal([u["project"] for u in r["projects"]], [p["project"] for p in sorted(r["projects"], key=lambda p: -p["energy_j"])],
            "the worst first")
    t.ok("llm" in [u["project"] for u in r["projects"]], "a project by its label", r["projects"])
    out = node.run("underwatt", "report", "--waste").stdout
    t.ok(out.startswith("Boards idle or underused from the beginning to ") and "SIMULATED" in out and "nobody" in out and
         max(map(len, out.splitlines())) <= 80 and "h held" in out, "text in 80 columns", out)
    p = node.run("underwatt", "report", "--waste", "--format", "csv")
    head = p.stdout.splitlines()[0].split(",")
    t.ok(head[0] == "of" and all(len(x.split(",")) == len(head) for x in p.stdout.splitlines()), "csv", p.stdout)
    p = node.run("underwatt", "report", "--waste", "--format", "html")
    t.ok("<h2>By project</h2>" in p.stdout and p.stdout.rstrip().endswith("</html>"), "html", p.stdout[-300:])
    t.ok([f["source"] for f in r["factors"]] == [f"set by user {getpass.getuser()}"] and "<li>carbon: set by user" in p.stdout and
         "\n  carbon: set by user" in out, "the sources of the factors, in each format", (r["factors"], out))
    p = node.run("underwatt", "report", "--waste", "--by", "user")
    t.ok(p.returncode == 2 and "--by: --waste shows" in p.stderr, "--by beside it is refused", p)
    t.equal(d.ask("GET", "/v1/report?waste=maybe")[0], 400, "waste=maybe is refused")
    if os.geteuid() == 0:
        p = node.run("underwatt", "report", "--waste", "--format", "json", user=65534, group=65534, extra_groups=[])
        r = json.loads(p.stdout)
        t.ok(r["only_uid"] == 65534 and not r["jobs"] and not r["users"] and not r["projects"] and
             {u["use"] for u in r["uses"]} == {"nobody"}, "another user sees nobody's time alone", p)
    else:
        t.skip("another user", "needs root")


with uwtest.Node(board="v100", count=4, speed=20) as node:
    d = node.daemon(CONFIG)
    uwtest.wait_for(lambda: set(uses(d).values()) == {"nobody"})
    t.equal(set(uses(d).values()), {"nobody"}, "at first all boards are nobody's")
    t.equal(node.run("underwatt", "signal", "set", "carbon", "300 g/kWh", "--for", "12 h").returncode, 0, "carbon is set")
    node.train("--workload", "resnet50", "--steps", "1000000", "--gpus", "0")
    held = node.train("--workload", "none", "--gpus", "1")
    code, body = d.ask("POST", "/v1/jobs", {"source": "registered", "name": "slurm:7", "uid": os.geteuid(), "gpus": ["2"],
                                            "labels": {"project": "llm"}})
    t.ok(code in (200, 201), "a job that has board 2", body)
    want = {0: "working", 1: "held", 2: "allocated", 3: "nobody"}
    t.equal(uwtest.wait_until(lambda: uses(d), lambda u: u == want), want, "what each board does")
    t.ok(uwtest.wait_for(lambda: seconds(waste(node)[0], "held") > 60 and seconds(waste(node)[0], "allocated") > 60),
         "is booked", d.log())
    readers(node, d)
    g = {g["gpu"]: g for g in d.ask("GET", "/v1/gpus")[1]["gpus"]}
    t.ok(g[1]["memory_used_bytes"] > 1 << 20 and g[1]["use_for_s"] > 30 and g[0]["use_for_s"] is None and
         g[3]["memory_used_bytes"] is None, "with memory and time", g)
    text = d.ask("GET", "/metrics")[1]
    t.ok(any('use="held"' in x and not x.endswith(" 0") for x in text.splitlines() if x.startswith("underwatt_gpu_use_seconds_total")),
         "metrics have it", [x for x in text.splitlines() if "gpu_use" in x])
    wasted = {tuple(re.findall(r'(?:user|project|use)="([^"]*)"', x)): float(x.split()[-1]) for x in text.splitlines()
              if re.match("underwatt_(user|project)_waste_seconds_total", x)}
    t.ok(wasted.get((getpass.getuser(), "held"), 0) > 60 and wasted.get((getpass.getuser(), "allocated"), 0) > 60 and
         wasted.get(("other", "held")) == 0, "by user", wasted)
    if os.geteuid() == 0:
        t.ok(wasted.get(("llm", "allocated"), 0) > 60 and wasted.get(("", "held"), 0) > 60, "by project", wasted)
    else:
        t.skip("by project", "needs root")
    with sqlite3.connect(f"file:{d.ledger}?mode=ro", uri=True) as db:
        db.execute("PRAGMA busy_timeout = 5000")
        boards = db.execute("SELECT DISTINCT b.at FROM energy e JOIN board b ON b.id = e.board WHERE waste NOT NULL ORDER BY 1")
        t.equal([x for x, in boards.fetchall()], [1, 2], "the board that trains was never waste")
    before = seconds(waste(node)[0], "held")
    d.kill()
    held.kill()
    d = node.daemon(CONFIG)
    r = uwtest.wait_until(lambda: waste(node)[0], lambda r: r["uses"])
    t.ok(seconds(r, "held") >= before - 10, "kill -9: what was booked is there", (before, r["uses"]))
    t.equal(d.stop(), 0, "ends in order")

t.done()
