#!/usr/bin/python3
"""Presets: `run --preset`, `cap set --preset` and the API, by the daemon's policy and by the built-in ones."""
import contextlib
import json
import pathlib
import re
import sqlite3
import tempfile

import uwtest

t = uwtest.Tap()
POLICY = """policy: 1
presets: {aggressive: 60 %, overnight: 55 %}
classes:
- {name: dev, match: {label: {tier: dev}}, preset: overnight}
- {name: batch, match: {label: {tier: batch}}, goal: energy}
"""
BUILT_IN = "aggressive, balanced, minimal"
ALL = BUILT_IN + ", overnight"


def refused(node, words, *args):
    """Exit 2 and one line that has these words."""
    p = node.run("underwatt", *args)
    t.ok(p.returncode == 2 and p.stderr.count("\n") == 1 and all(w in p.stderr for w in words),
         f"{' '.join(args)[:50]}: refused in a line", f"{p.returncode} {p.stderr}")


def refusals(node, local):
    """local: without a daemon, where a policy's own presets are not known."""
    at = ("--local",) if local else ()
    known = f"(known: {BUILT_IN if local else ALL})"
    more = ("; a preset of a policy needs the daemon",) if local else ()
    refused(node, ("cap: 'balancd' is no preset: did you mean 'balanced'?", known, *more),
            "cap", "set", "--preset", "balancd", "--gpus", "0", *at)
    refused(node, ("run: --preset: 'balancd' is no preset: did you mean 'balanced'?", known, *more),
            "run", "--preset", "balancd", "--gpus", "0", *at, "--", "true")
    if local:
        refused(node, ("'overnight' is no preset", known, *more), "cap", "set", "--preset", "overnight", "--gpus", "0", *at)
        refused(node, ("'overnight' is no preset", known, *more), "run", "--preset", "overnight", *at, "--", "true")
    refused(node, ("'200' and --preset exclude each other",), "cap", "set", "200", "--preset", "minimal", "--gpus", "0", *at)
    refused(node, ("'minimal' and --clock",), "cap", "set", "--clock", "900MHz", "--preset", "minimal", "--gpus", "0", *at)
    refused(node, ("--preset is an option of set",), "cap", "clear", "--preset", "minimal", *at)
    for option, value in (("--goal", "edp"), ("--cap", "200")):
        refused(node, (f"--preset and {option} exclude each other",), "run", "--preset", "minimal", option, value, *at, "--", "true")


def limits(node, *mw):
    return uwtest.wait_for(lambda: tuple(node.board(i)["limit_mw"] for i in range(len(mw))) == mw)


def training(node, name, *args):
    """`run --preset` of a short training: the report as JSON and as text."""
    out = pathlib.Path(node.tmp, "report.json")
    p = node.run("underwatt", "run", "--preset", name, "--gpus", "0", "--json", str(out), *args, "--", "underwatt-sim",
                 "train", "--workload", "resnet50", "--gpus", "0", "--steps", "500", "--phases", "load=1s,train")
    return (json.loads(out.read_text()) if out.exists() else {}), p


def report(node, name, share, mw, *args):
    got, p = training(node, name, *args)
    preset = got.get("preset") or {}
    t.ok(p.returncode == 0 and preset.get("name") == name and abs(preset["share"] - share) < 1e-9 and
         preset["boards"] == [{"index": 0, "cap_mw": mw}], "run: the preset, its share and watts", f"{got} {p.stderr}")
    t.ok(f"preset {name}: {100 * share:g} % of the default limit, {mw / 1000:g} W on GPU 0\n" in p.stderr, "… in the report",
         p.stderr)
    t.equal(got.get("held_mw"), mw, "… which the job's boards had")
    saved = got.get("saved")
    t.ok("saved" in got and (saved is None or "half" in saved), "… and what it saved as measured, or unknown", saved)


def alone(node):
    """Without a daemon."""
    refusals(node, True)
    p = node.run("underwatt", "cap", "set", "--preset", "balanced", "--gpus", "0,1", "--for", "15 s", "--local", "--json", "-")
    got = json.loads(p.stdout)
    t.ok(p.returncode == 0 and got["preset"] == "balanced" and all(b["cap_mw"] == 255000 and b["reached"] and b["restored"]
                                                                  for b in got["boards"]), "cap set --local", p)
    t.ok("GPU 1 at 255 W, preset balanced (85 %), was 300 W" in p.stderr, "… says which watts the preset is", p.stderr)
    report(node, "minimal", 0.95, 285000, "--local")


def daemons(node, d):
    refusals(node, False)
    spec = uwtest.spec()
    status, policy = d.ask("GET", "/v1/policy")
    t.ok(not spec.judge("GET", "/v1/policy", status, "application/json", json.dumps(policy)) and
         [(p["name"], round(p["share"], 9)) for p in policy["presets"]] ==
         [("aggressive", 0.6), ("balanced", 0.85), ("minimal", 0.95), ("overnight", 0.55)], "GET /v1/policy has them", policy)
    p = node.run("underwatt", "policy", "show")
    t.ok("presets: aggressive 60 %, balanced 85 %, minimal 95 %, overnight 55 %\nclasses: default, dev, batch\n" in p.stdout, "policy show", p)

    said = pathlib.Path(node.tmp, "said")
    with open(said, "w") as err:
        held = node.popen("underwatt", "cap", "set", "--preset", "aggressive", "--gpus", "0,1", "--why", "too loud", stderr=err)
    t.ok(limits(node, 180000, 180000), "cap set: as the policy has it", node.board(0))
    p = node.run("underwatt", "explain", "0")
    t.ok("in force   180 W" in p.stdout and "preset aggressive (60 %): too loud" in " ".join(p.stdout.split()),
         "explain names the preset, its watts and the reason", p.stdout)
    t.ok(uwtest.wait_for(lambda: "GPU 0 at 180 W, preset aggressive (60 %), was 300 W" in said.read_text()), "… and the command",
         said.read_text())
    held.terminate()
    t.equal(held.wait(60), 0, "it gives back")
    t.ok(limits(node, 300000, 300000), "the original is back")
    p = node.run("underwatt", "cap", "set", "--preset", "overnight", "--gpus", "1", "--detach")
    t.ok(p.returncode == 0 and "at most 165 W, preset overnight (55 %), left to the daemon" in p.stderr and
         limits(node, 300000, 165000), "--detach", p)
    t.equal(node.run("underwatt", "cap", "clear").returncode, 0, "cleared")

    ask = {"gpu": 0, "preset": "overnight", "for": "10 min"}
    status, made = d.ask("POST", "/v1/claims", ask)
    t.ok(status == 201 and limits(node, 165000), "a claim by the API", made)
    claim = d.ask("GET", "/v1/claims")[1]["claims"][0]
    t.ok(claim["cap_mw"] == 165000 and claim["why"] == "preset overnight (55 %)", "… has watts and the name", claim)
    d.ask("DELETE", f"/v1/claims/{made['id']}")
    status, made = d.ask("POST", "/v1/claims", {**ask, "why": "ä" * 40})
    why = d.ask("GET", "/v1/claims")[1]["claims"][0]["why"]
    t.ok(status == 201 and why == "preset overnight (55 %): " + "ä" * 33 + "…", "a reason that has no room behind the name shows that it was cut", why)
    d.ask("DELETE", f"/v1/claims/{made['id']}")
    for body, words in (({"gpu": 0, "preset": "overnigt"}, "'overnigt' is no preset: did you mean 'overnight'?"),
                        ({"gpu": 0, "preset": "minimal", "cap": "200 W"}, "'cap' and 'preset' exclude each other"),
                        ({"gpu": 0, "preset": "minimal", "clock": "900 MHz"}, "'preset' and 'clock' exclude each other"),
                        ({"gpu": 0, "preset": ""}, "'preset' is empty"), ({"gpu": 0, "preset": 3}, "preset")):
        status, got = d.ask("POST", "/v1/claims", body)
        t.ok(status == 400 and words in got["error"], f"refused: {words}", got)
    status, got = d.ask("POST", "/v1/jobs", {"name": "x", "pid": 1, "preset": "minimal", "goal": "edp"})
    t.ok(status == 400 and "'goal' and 'preset' exclude each other" in got["error"], "a job has one of both", got)
    t.ok(limits(node, 300000, 300000) and d.ask("GET", "/v1/claims")[1]["claims"] == [], "nothing is left", d.log()[-500:])
    report(node, "overnight", 0.55, 165000)


def restarted(node, d):
    """A job by a preset keeps its cap and the name over a restart, whatever the policy has by then."""
    job = node.popen("underwatt", "run", "--preset", "overnight", "--gpus", "0", "-q", "--", "underwatt-sim", "train",
                     "--workload", "resnet50", "--gpus", "0", "--epochs", "1000")
    why = "preset overnight: 55 % of this board's default limit, 300 W"

    def claimed():
        return [c["why"] for c in d.ask("GET", "/v1/claims")[1]["claims"] if c["source"] == "job-cap"]

    t.ok(uwtest.wait_for(lambda: claimed() == [why]), "the job's claim names it", d.ask("GET", "/v1/claims"))
    t.equal(d.ask("GET", "/v1/jobs")[1]["jobs"][0]["search"]["goal"], "cap 55% (overnight)", "… and the job")
    d.stop()
    pathlib.Path(d.policy).write_text("policy: 1\n")
    d.start()
    t.ok(uwtest.wait_for(lambda: claimed() == [why]) and limits(node, 165000), "… after a restart, too",
         d.ask("GET", "/v1/claims"))
    job.terminate()
    job.wait(60)


def classes(node, d):
    """A class's preset, of a job that asked for nothing."""
    pathlib.Path(d.policy).write_text(POLICY)
    d.reload()
    train = node.train("--workload", "resnet50", "--gpus", "1", "--epochs", "1000")
    status, made = d.ask("POST", "/v1/jobs", {"name": "x", "source": "registered", "pid": train.pid, "uid": 0, "gpus": [1],
                                              "labels": {"tier": "dev"}})
    t.ok(status == 201 and limits(node, 300000, 165000), "the preset of its class", (made, node.board(1)))
    p = node.run("underwatt", "explain", "1")
    t.ok("class dev: preset overnight (55 %)" in " ".join(p.stdout.split()), "explain names class and preset", p.stdout)
    train.terminate()
    train.wait(60)


def query(d, sql):
    with contextlib.closing(sqlite3.connect(f"file:{d.ledger}?mode=ro", uri=True)) as db:
        return db.execute(sql).fetchall()


def goal_of(d):
    return [j["search"]["goal"] for j in d.ask("GET", "/v1/jobs")[1]["jobs"] if j["running"] and j["search"]]


def asked(node, d):
    """Of `run`: a class's goal, and its preset, where nobody asked; over a restart of the daemon, too."""
    def run(tier, *args):
        # The job begins before CMD: run writes no report if it is ended between the two.
        job = node.popen("underwatt", "run", "--gpus", "1", "--label", f"tier={tier}", "--report", d.policy.with_name("report"),
                         *args, "--", "sh", "-c", "echo begun; exec underwatt-sim train --workload resnet50 --gpus 1 --epochs 1000")
        uwtest.must(job.stdout.readline() == "begun\n", job.stderr)
        return job

    def has(*goals):
        return uwtest.wait_until(lambda: goal_of(d), lambda got: got == list(goals))

    def over(job):
        job.terminate()
        job.wait(60)
    job = run("batch")
    t.equal(has("energy"), ["energy"], "run without --goal: the goal of its class")
    t.ok(uwtest.wait_for(lambda: query(d, "SELECT goal FROM job ORDER BY id DESC LIMIT 1") == [("slowdown:1.05 by default",)]),
         "the ledger has what the job came with", query(d, "SELECT goal FROM job"))
    d.stop()
    d.start()
    t.equal(has("energy"), ["energy"], "… after a restart, too")
    over(job)
    text = d.policy.with_name("report").read_text()
    t.ok("goal   energy" in text, "the report tells the goal that was searched for", text)
    job = run("batch", "--goal", "edp")
    t.equal(has("edp"), ["edp"], "--goal: that one, for it was asked for")
    over(job)
    job = run("other")
    t.equal(has("slowdown:1.05"), ["slowdown:1.05"], "no class: the default")
    over(job)
    job = run("dev")
    t.ok(limits(node, 300000, 165000), "a class's preset", node.status()["boards"])
    t.ok(uwtest.wait_for(lambda: [(c["who"], c["lowest_mw"], c["time_s"] >= 1) for j in d.ask("GET", "/v1/jobs")[1]["jobs"] if j["running"]
                                  for c in j["capped_by"]] == [("class dev", 165000, True)]), "the job has who capped it", d.ask("GET", "/v1/jobs"))
    over(job)
    text = d.policy.with_name("report").read_text()
    t.ok(re.search(r"^  policy class dev: 165 W at the lowest, for [1-9]\d* s$", text, re.M), "and the report of run", text)


def main():
    with uwtest.Node(count=2, speed=10) as node:
        alone(node)
    with tempfile.TemporaryDirectory() as tmp, uwtest.Node(count=2, speed=10) as node:
        pathlib.Path(tmp).chmod(0o755)
        policy = pathlib.Path(tmp, "policy.yaml")
        policy.write_text(POLICY)
        d = node.daemon(f"policy: {{file: {policy}}}\ncaps: {{classes: {{default: {{ramp: at once}}}}}}\n")
        d.policy = policy
        daemons(node, d)
        restarted(node, d)
        classes(node, d)
        asked(node, d)
    t.done()


if __name__ == "__main__":
    main()
