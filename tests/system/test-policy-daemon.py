#!/usr/bin/python3
"""A policy in the daemon, with real processes: what a rule caps, `underwatt policy show`, GET /v1/policy, metrics,
explain, a reload with a wrong file, one without a file."""
import json
import pathlib
import re
import sys
import tempfile

import uwtest

sys.path.insert(0, str(uwtest.TOP / "tests"))
try:
    from openapi import Spec
except ImportError as e:
    uwtest.skip_all(f"{e} (Debian: python3-jsonschema, python3-yaml)")

POLICY = """policy: 1
defaults: {for: 0 s, release: 0 s}
rules:
- {name: young, when: job.age > 1 s, cap: -25 %, ramp: at once}
- {name: never, when: carbon > 400 g/kWh, cap: 50 %}
"""

SIGNALS = """policy: 1
defaults: {for: 0 s, release: 0 s}
signals:
- {name: queue.depth, file: QUEUE, age: 30 s, every: 1 s}
rules:
- {name: nobody-waits, when: queue.depth == 0, until: queue.depth > 0, cap: 60 %, ramp: at once}
- {name: dirty-grid, when: carbon > 400 g/kWh, until: carbon < 370 g/kWh, cap: 50 %, ramp: at once}
"""


def finding(node, what):
    """What doctor says of this, once; None: nothing."""
    found = [f for f in json.loads(node.run("underwatt", "doctor", "--json", "-").stdout)["findings"] if f["what"] == what]
    assert len(found) < 2, found
    return found[0] if found else None


def queue(t, node, d, path):
    """Nobody waits: save.  The queue's depth comes from a file, the grid's carbon by hand."""
    waiting = path.with_name("queue.json")

    def depth(text):
        new = waiting.with_suffix(".new")
        new.write_text(text)
        new.rename(waiting)

    def limit(mw):
        return uwtest.wait_for(lambda: node.board(0)["limit_mw"] == mw)

    depth("3\n")
    path.write_text(SIGNALS.replace("QUEUE", str(waiting)))
    t.equal(d.ask("POST", "/v1/reload")[0], 200, "a policy with a signal from a file")
    t.ok(limit(300000), "somebody waits: no cap", node.board(0))
    depth("0\n")
    t.ok(limit(180000), "nobody waits: 60 %", node.board(0))
    p = node.run("underwatt", "signal", "set", "carbon", "450 g/kWh", "--for", "1 h")
    t.ok(p.returncode == 0 and limit(150000), "a dirty grid: 50 %, the lowest of both", (p, node.board(0)))
    p = node.run("underwatt", "explain", "0")
    t.ok("rule dirty-grid" in p.stdout, "explain names the lower one", p)
    p = node.run("underwatt", "signal", "set", "carbon", "380 g/kWh", "--for", "1 h")
    t.ok(p.returncode == 0 and node.run("underwatt", "policy", "show").returncode == 0 and limit(150000),
         "between `until` and `when` it goes on", (p, node.board(0)))
    p = node.run("underwatt", "signal", "unset", "carbon")
    t.ok(p.returncode == 0 and limit(180000), "carbon is unknown: its rule ends, the other one acts", (p, node.board(0)))
    depth("torn")
    t.ok(uwtest.wait_for(lambda: "not JSON" in node.run("underwatt", "signal", "list").stdout), "a torn file is said")
    depth("2\n")
    t.ok(limit(300000), "somebody waits again: the original", node.board(0))


def many(t, node, d, path):
    """An answer has whole rules until there are 2,048 rows; `policy show` puts the answers together."""
    names = [f"r{i:03d}" for i in range(256)]
    path.write_text("policy: 1\nrules:\n" + "".join(f"- {{name: {x}, when: carbon > 400 g/kWh, cap: 50 %}}\n" for x in names))
    jobs = [d.ask("POST", "/v1/jobs", {"name": f"many-{i}", "source": "registered", "gpus": [0]})[1]["id"] for i in range(10)]
    t.equal(d.ask("POST", "/v1/reload")[0], 200, "256 rules")

    def ask(query=""):
        return d.ask("GET", "/v1/policy" + query)[1]

    units = 11  # 10 jobs on one board, another board without one
    t.ok(uwtest.wait_for(lambda: len(ask()["rules"][0]["boards"]) == units), "each on 10 jobs and a board without one",
         ask()["rules"][0])
    page = ask()
    t.equal((page["rules_total"], [r["name"] for r in page["rules"]]), (256, names[:2048 // units]), "186 rules fit into an answer")
    rest = ask("?from=186")
    t.equal((len(page["presets"]), rest["presets"]), (3, []), "presets are in the first one alone")
    t.equal((rest["rules_total"], [r["name"] for r in rest["rules"]]), (256, names[2048 // units:]), "the others are in the next one")
    t.equal([ask(q)["rules"] for q in ("?from=256", "?from=18446744073709551615")], [[], []], "none is behind the last one")
    t.equal(d.ask("GET", "/v1/policy?from=x")[0], 400, "from is a number")
    p = node.run("underwatt", "policy", "show")
    t.equal([x.split(":")[0][5:] for x in p.stdout.splitlines() if x.startswith("rule ")], names, "policy show has all rules")
    t.equal(p.stdout.count("\n  GPU "), 256 * units, "with all rows")
    p = node.run("underwatt", "policy", "show", "--json", "-")
    t.equal([r["name"] for r in json.loads(p.stdout)["rules"]], names, "policy show --json, too")
    for i in jobs:
        t.equal(d.ask("DELETE", f"/v1/jobs/{i}")[0], 204, "the job ends")


def main():
    t = uwtest.Tap()
    with tempfile.TemporaryDirectory() as tmp, uwtest.Node(count=2) as node:
        pathlib.Path(tmp).chmod(0o755)
        path = pathlib.Path(tmp, "policy.yaml")
        path.write_text(POLICY)
        d = node.daemon(f"policy: {{file: {path}}}\n")
        job = node.train("--workload", "resnet50", "--gpus", "0", "--epochs", "1000")
        t.ok(uwtest.wait_for(lambda: node.board(0)["limit_mw"] == 225000), "a quarter less on the job's board",
             node.board(0))
        status, policy = d.ask("GET", "/v1/policy")
        t.equal(status, 200, "GET /v1/policy")
        why = Spec(uwtest.TOP / "docs" / "openapi.yaml").judge("GET", "/v1/policy", status, "application/json",
                                                               json.dumps(policy))
        t.ok(not why, "as docs/openapi.yaml has it", why)
        young, never = policy["rules"]
        acts = next(b for b in young["boards"] if b["gpu"] == 0)
        t.ok(acts["state"] == "acts" and acts["on"] and acts["reads"][0].startswith("job.age ") and acts["why"],
             "the rule acts, and why", acts)
        unknown = next(b for b in never["boards"] if b["gpu"] == 0)
        t.ok(unknown["state"] == "unknown" and unknown["text"] == "carbon is unknown", "what is unknown", unknown)
        p = node.run("underwatt", "policy", "show")
        t.ok(p.returncode == 0 and "rule young: soft -25 %\n" in p.stdout and "  GPU 0, job 1: acts since " in p.stdout,
             "policy show", p)
        p = node.run("underwatt", "policy", "show", "--json", "-")
        t.equal(json.loads(p.stdout)["rules"][0]["name"], "young", "policy show --json")
        p = node.run("underwatt", "explain", "0")
        t.ok("rule young" in p.stdout, "explain names the rule", p)
        metrics = d.ask("GET", "/metrics")[1]
        t.ok(any(x.startswith("underwatt_rule_firing{gpu=\"0\"") and x.endswith("rule=\"young\"} 1")
                 for x in metrics.splitlines()), "underwatt_rule_firing")
        path.write_text(POLICY.replace("job.age", "job.aeg"))
        t.equal(d.ask("POST", "/v1/reload")[0], 400, "a wrong policy refuses the reload")
        status, policy = d.ask("GET", "/v1/policy")
        t.ok(policy["in_force"] and f"{path}:4: " in policy["error"], "the old one stays", policy["error"])
        t.equal((refused := finding(node, "policy")) and (refused["state"], f"{path}:4: " in refused["text"], str(path) in refused["remedy"]),
                ("warn", True, True), "doctor has the file, the line and what to do")
        t.equal(finding(node, "config"), None, "… once")
        t.equal(d.ask("GET", "/v1/node")[1]["policy"]["error"], policy["error"], "and so has /v1/node")
        before = node.board(0)["limit_mw"]
        path.unlink()
        status, answer = d.ask("POST", "/v1/reload")
        t.ok(status == 400 and f"{path}: the file is missing" in answer["error"], "no file: the reload is refused", answer)
        p = node.run("underwatt", "policy", "show")
        t.ok(f"refused: {path}: " in p.stdout and "rule young" in p.stdout and before < 300000 and node.board(0)["limit_mw"] == before,
             "and said, and the caps stay", (before, node.board(0), p.stdout))
        queue(t, node, d, path)
        node.run("underwatt", "signal", "set", "price", "0.2 EUR/kWh")
        path.write_text("policy: 1\n")
        t.equal(d.ask("POST", "/v1/reload")[0], 200, "a policy without rules")
        t.equal((finding(node, "policy"), finding(node, "config"), d.ask("GET", "/v1/node")[1]["config"]["error"]), (None, None, None),
                "clears what doctor said")
        p = node.run("underwatt", "signal", "list")
        t.ok(re.search(r"^price +0\.2 EUR/kWh", p.stdout, re.M), "a price set by hand outlives it", p)
        t.ok(uwtest.wait_for(lambda: node.board(0)["limit_mw"] == 300000), "the original is back", node.board(0))
        job.terminate()
        job.wait()
        path.unlink()
        d.stop()
        d.start()
        p = node.run("underwatt", "policy", "show")
        t.ok(f"no policy is in force: there is no {path}\n" in p.stdout, "no file at the start: no policy, and said", p)
        many(t, node, d, path)
    t.done()


if __name__ == "__main__":
    sys.exit(main())
